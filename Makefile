# make demo: set up and run the demonstration.   make test: set up, then lint, types and tests.
# Everything lives in .venv; PYTHON chooses the interpreter that makes it (3.10 or later).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# JOBS test processes side by side; TESTS narrows what is run, as in make test TESTS=tests/runtime
JOBS ?= 2
TESTS ?=
MATRIX ?=
BENCH ?=

.PHONY: help demo test lint types test-slow test-traced test-matrix test-cuda bench clean
.DELETE_ON_ERROR:

help:
	@echo "make demo         set up .venv, train, save, reload and show a converted model"
	@echo "make test         set up .venv, then lint, types and the default tests"
	@echo "make test-slow    the tests marked slow"
	@echo "make test-traced  the conformance suite while a debugger reads all frames, and under coverage"
	@echo "make test-matrix  the default tests with the lowest, the pinned and the newest torch"
	@echo "make test-cuda    tests of kernels, the conformance suite and random programs on a CUDA device"
	@echo "make bench        measure beside JAX, TensorFlow, ONNX Runtime and Paddle (installs them into .venv-bench)"
	@echo "make clean        remove .venv and everything that was generated"

demo: $(VENV)/.installed-examples
	@$(BIN)/python examples/digits_adaptive.py

test: lint types
	@echo "== tests: pytest, $(JOBS) processes"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile $(TESTS)

test-slow: $(VENV)/.installed-dev
	@echo "== slow tests: pytest, $(JOBS) processes"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m slow $(TESTS)

test-traced: $(VENV)/.installed-dev $(VENV)/.installed-traced
	@echo "== conformance suite: pytest while a trace function reads f_locals of all frames, $(JOBS) processes"
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile tests/conformance --frames
	@echo "== conformance suite: pytest under coverage"
	@$(BIN)/python -m coverage run --data-file=$(VENV)/.coverage -m pytest -q tests/conformance

test-cuda: export DY2STATIC_TEST_DEVICE = cuda
test-cuda: $(VENV)/.installed-dev
	@echo "== on a CUDA device: kernels and the conformance suite, $(JOBS) processes"
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "" tests/runtime/kernels tests/conformance/test_conformance.py
	@echo "== on a CUDA device: random programs as kernels"
	@DY2STATIC_BACKEND=cuda $(BIN)/python -m tests.fuzz.run --count 500 --jobs $(JOBS)

# MATRIX=newest (or lowest, pinned) runs one row of it; see scripts/test_matrix.py
test-matrix: $(VENV)/.installed-dev
	@$(BIN)/python scripts/test_matrix.py $(MATRIX) -n $(JOBS) --dist loadfile $(TESTS)

# BENCH narrows what is measured, as in make bench BENCH="--only W3,W4 --columns jax"
bench: $(VENV)/.installed-dev
	@echo "== set-up: .venv-bench with the frameworks that install here (the first time, several minutes)"
	@$(BIN)/python benchmarks/peers.py --install
	@$(BIN)/python benchmarks/peers.py $(BENCH)

lint: $(VENV)/.installed-dev
	@echo "== lint: ruff"
	@$(BIN)/python -m ruff check .

types: $(VENV)/.installed-dev
	@echo "== types: mypy"
	@$(BIN)/python -m mypy

$(VENV)/bin/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10) and 'dy2static needs Python 3.10 or later; choose one with PYTHON=...')"
	@echo "== set-up: a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# One stamp a set of extras, so that the second call installs nothing.
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "== set-up: dy2static[$*] and what it needs (the first time, torch takes a few minutes)"
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-matrix .venv-bench build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
