"""What stands for NumPy's arrays: NumPy's protocols hand calls on, and Python is given nothing."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.recording import numpy_calls
from runtime.tracer.recording.session import Session
from runtime.tracer.values import numpy_arrays
from runtime.tracer.values.numpy_arrays import ArrayMethod, NumpyArray, NumpyCopy, NumpyScalar, dtype_of

Calls = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def calls() -> Iterator[Calls]:
    """What is recorded, by the name that it is recorded under."""
    before, seen = numpy_arrays._record[0], Calls()

    def record(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen.append((name, args, kwargs))
        return ("result", name)

    numpy_arrays.register(record)
    yield seen
    numpy_arrays.register(before)


ARRAY, SCALAR = NumpyArray(torch.ones(3)), NumpyScalar(torch.tensor(2.0))


def test_what_records_is_registered_once() -> None:
    assert len(numpy_arrays._record) == 1 and numpy_calls is not None


NAMED: dict[str, Callable[[Any], Any]] = {
    "add": lambda a: a + 1, "multiply": lambda a: 2 * a, "negative": operator.neg, "matmul": lambda a: a @ a,
    "sin": numpy.sin, "less": lambda a: a < 2, "equal": lambda a: a == 1, "add.reduce": numpy.add.reduce,
    "maximum.accumulate": numpy.maximum.accumulate, "add.outer": lambda a: numpy.add.outer(a, a),
    "power": lambda a: a**2, "divmod": lambda a: divmod(a, 2), "concatenate": lambda a: numpy.concatenate([a, a]),
    "sum": lambda a: numpy.sum(a, axis=0), "linalg.norm": numpy.linalg.norm, "fft.fft": numpy.fft.fft,
    "zeros_like": numpy.zeros_like, "stack": lambda a: numpy.stack([numpy.ones(3), a]),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_call_of_numpys_is_recorded_by_its_name(name: str, calls: Calls) -> None:
    assert NAMED[name](ARRAY) == ("result", name)
    ((found, args, _),) = calls
    items = [item for one in args for item in (one if isinstance(one, (list, tuple)) else [one])]
    assert found == name and any(one is ARRAY for one in items)


def test_arguments_by_name_come_along(calls: Calls) -> None:
    numpy.sum(ARRAY, axis=0, keepdims=True)
    numpy.add(1, ARRAY, dtype=float)
    assert calls[0][2] == {"axis": 0, "keepdims": True}
    assert calls[1][1] == (1, ARRAY) and calls[1][2] == {"dtype": float}


def test_powers_of_scalars_are_pythons(calls: Calls) -> None:
    """NumPy gives other types for powers of its scalars than its function ``power``."""
    for act, name in ((lambda: SCALAR**2, "operator.pow"), (lambda: 2**SCALAR, "operator.pow"),
                      (lambda: SCALAR**SCALAR, "operator.pow"), (lambda: SCALAR**ARRAY, "power"),
                      (lambda: ARRAY**SCALAR, "power"), (lambda: SCALAR ** numpy.ones(2), "power")):  # fmt: skip
        calls.clear()
        assert act() == ("result", name)
    calls.clear()
    assert 2**SCALAR and calls[0][1] == (2, SCALAR)


def test_items_are_taken_one_by_one(calls: Calls) -> None:
    assert len(ARRAY) == 3 and list(ARRAY) == [("result", "ndarray.__getitem__")] * 3
    assert [args for _, args, _ in calls] == [(ARRAY, 0), (ARRAY, 1), (ARRAY, 2)]


def test_rounding(calls: Calls) -> None:
    assert round(SCALAR, 2) == ("result", "operator.round") and calls == [("operator.round", (SCALAR, 2), {})]


REFUSED: dict[str, Callable[[Any], Any]] = {
    "array": numpy.asarray, "float": float, "int": int, "index": operator.index, "complex": complex, "bool": bool,
    "item": lambda a: a[0], "store": lambda a: operator.setitem(a, 0, 1), "in": lambda a: 1 in a, "str": str,
    "repr": repr, "format": lambda a: f"{a}", "pickle": pickle.dumps, "copy": copy.copy, "deepcopy": copy.deepcopy,
    "hash": hash, "round": round, "floor": lambda a: a.__floor__(),
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSED)
def test_what_code_that_is_not_converted_may_not_do(how: str, session: Session) -> None:
    for one in (ARRAY, SCALAR, NumpyCopy(torch.ones(3))):
        with pytest.raises(TraceError) as found:
            REFUSED[how](one)
        assert found.value.code == "D2S213"


def test_an_array_may_not_be_rounded_by_python(session: Session) -> None:
    with pytest.raises(TraceError):
        round(ARRAY, 2)


def test_dtypes() -> None:
    for dtype in (torch.float32, torch.float64, torch.int8, torch.int64, torch.bool, torch.uint8, torch.complex64):
        tensor = torch.ones(1, dtype=dtype)
        assert dtype_of(NumpyArray(tensor)) == tensor.numpy().dtype


def test_arrays_are_frozen_records() -> None:
    method = ArrayMethod(ARRAY, "sum")
    for one, name in ((ARRAY, "tensor"), (method, "name")):
        with pytest.raises(AttributeError):
            setattr(one, name, 1)
    assert method != ArrayMethod(ARRAY, "sum"), "each is asked for anew"
