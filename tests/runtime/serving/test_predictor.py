"""A Predictor as a user has it: names, threads, buffers, what does not fit, its end."""

from __future__ import annotations

import collections
import threading

import numpy
import pytest
import torch

import dy2static
import runtime
from dy2static import InputSpec
from runtime import Predictor
from runtime.errors import SignatureError, StorageError
from tests.oracle import difference
from tests.runtime.serving.models import ROWS, Classifier, Settling, saved


def test_names_and_results(tmp_path):
    path = saved(Classifier, tmp_path, ROWS)
    layer = dy2static.load(path)
    with Predictor(path) as predict:
        assert [(one.name, one.dtype, one.shape[1:]) for one in predict.inputs] == [("x", torch.float32, (8,))]
        assert predict.outputs == ("out_scores", "out_best")
        for rows in (1, 5):
            x = torch.randn(rows, 8)
            got, wanted = predict.run({"x": x}), layer(x)
            assert torch.equal(got["out_scores"], wanted["scores"]) and torch.equal(got["out_best"], wanted["best"])
            assert not got["out_scores"].requires_grad
            again = predict.run({"x": x.numpy()})
            assert torch.equal(again["out_scores"], wanted["scores"])


def test_numbers_and_exceptions_are_those_of_the_function(tmp_path):
    path = saved(Settling, tmp_path, ROWS)
    layer = dy2static.load(path)
    with Predictor(path) as predict:
        x = torch.full((3, 8), 4.0)
        y, steps = layer(x)
        got = predict.run({"x": x})
        assert torch.equal(got["out_0"], y) and got["out_1"] == steps and type(got["out_1"]) is int
        with pytest.raises(ValueError, match="it does not settle"):
            predict.run({"x": torch.full((3, 8), 1e9)})
        assert torch.equal(predict.run({"x": x})["out_0"], y)
        told = predict.statistics()
        assert (told.requests, told.errors, told.runs) == (2, 1, 2) and 0 < told.p50 <= told.p99


WRONG = [
    ({}, "D2S305", "input 'x' is missing"),
    ({"x": torch.zeros(2, 8), "z": torch.zeros(1)}, "D2S305", "no input 'z'"),
    ({"x": [[0.0] * 8]}, "D2S305", "input 'x' is list"),
    ({"x": torch.zeros(2, 8, dtype=torch.float64)}, "D2S303", "input 'x' has dtype float64"),
    ({"x": numpy.zeros((2, 8))}, "D2S303", "input 'x' has dtype float64"),
    ({"x": numpy.array([["a"]])}, "D2S303", "input 'x' is an array of <U1"),
    ({"x": torch.zeros(8)}, "D2S302", "input 'x' has 1 dimensions"),
    ({"x": torch.zeros(2, 9)}, "D2S304", "input 'x' has size 9 in dimension 1"),
    (torch.zeros(2, 8), "D2S305", "a request is a mapping"),
]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return saved(Classifier, tmp_path_factory.mktemp("classifier"), ROWS)


@pytest.mark.parametrize("max_batch", [None, 8])
@pytest.mark.parametrize(("request_", "code", "said"), WRONG)
def test_what_does_not_fit_is_named(request_, code, said, max_batch, classifier):
    with Predictor(classifier, max_batch=max_batch) as predict:
        with pytest.raises(SignatureError, match=said) as raised:
            predict.run(request_)
        assert raised.value.code == code and raised.value.hint
        predict.run({"x": torch.zeros(2, 8)})
        assert predict.statistics().errors == 1


@pytest.mark.parametrize("max_batch", [None, 8])
def test_arrays_of_any_layout(max_batch, classifier):
    x = numpy.arange(16, dtype="float32").reshape(2, 8)
    read_only = x.copy()
    read_only.flags.writeable = False
    with Predictor(classifier, max_batch=max_batch) as predict:
        for given in (x[::-1], x[:, ::-1], numpy.asfortranarray(x), x.astype(">f4"), read_only):
            expected = predict.run({"x": torch.tensor(numpy.array(given, dtype="float32"))})
            found = predict.run({"x": given})
            assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_sizes_that_belong_together(tmp_path):
    def f(x, y):
        return x + y

    specs = [InputSpec([None, 2], "float32", "x"), InputSpec([None, 2], "float32", "y")]
    with Predictor(saved(f, tmp_path, specs)) as predict:
        with pytest.raises(SignatureError, match=r"x.shape\[0\]") as raised:
            predict.run({"x": torch.zeros(3, 2), "y": torch.zeros(4, 2)})
        assert raised.value.code == "D2S308"
        assert predict.run({"x": torch.ones(3, 2), "y": torch.ones(3, 2)})["result"].sum() == 12


def test_results_in_tensors_of_the_caller(tmp_path):
    with Predictor(saved(Classifier, tmp_path, ROWS)) as predict:
        x, into = torch.randn(3, 8), torch.empty(3, 4)
        wanted = predict.run({"x": x})["out_scores"]
        got = predict.run({"x": x}, out={"out_scores": into})
        assert got["out_scores"] is into and torch.equal(into, wanted)
        for out in ({"out_scores": torch.empty(3, 5)}, {"out_scores": torch.empty(3, 4).double()}, {"nothing": into}):
            with pytest.raises(SignatureError, match="output"):
                predict.run({"x": x}, out=out)


WEIGHT = torch.arange(3.0)


def test_nobody_gets_the_memory_of_the_model_or_of_a_request(tmp_path):
    def f(x):
        return x, x[:1], WEIGHT, WEIGHT * 1 + x.sum()

    with Predictor(saved(f, tmp_path, [InputSpec([None, 3], "float32", "x")])) as predict:
        x = torch.ones(2, 3)
        for one in predict.run({"x": x}).values():
            one.fill_(9)
        assert torch.equal(x, torch.ones(2, 3))
        got = list(predict.run({"x": x}).values())
        assert torch.equal(got[-1], torch.arange(3.0) + 6) and torch.equal(got[0], x)


def test_a_model_that_keeps_something_is_refused(tmp_path):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(8))

        def forward(self, x):
            self.total += x.sum(0)
            return x + self.total

    with pytest.raises(StorageError, match="writes to 'total'") as raised:
        Predictor(saved(Counting, tmp_path, ROWS))
    assert raised.value.code == "D2S560"


def test_results_without_a_form_are_refused(tmp_path):
    def f(x):
        return collections.deque([x])

    with pytest.raises(StorageError) as raised:
        Predictor(saved(f, tmp_path, ROWS))
    assert raised.value.code == "D2S561"


@pytest.mark.parametrize("wrong", [{"max_batch": 0}, {"max_batch": 2.5}, {"max_wait": -1}, {"method": "other"},
                                   {"backend": "fast"}])  # fmt: skip
def test_arguments_that_make_no_sense(wrong, classifier):
    with pytest.raises(ValueError):
        Predictor(classifier, **wrong)


def test_no_file_and_a_damaged_one(tmp_path):
    with pytest.raises(StorageError):
        Predictor(tmp_path / "nothing")
    path = saved(Classifier, tmp_path, ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StorageError):
        Predictor(path)


def test_another_method(tmp_path):
    class Coder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(8, 2)

        def forward(self, x):
            return self.inner(x)

        def encode(self, x):
            return self.inner(x).relu()

    coder = Coder()
    dy2static.save(coder, tmp_path / "coder", ROWS, methods={"encode": ROWS})
    with Predictor(tmp_path / "coder", method="encode") as predict:
        x = torch.randn(4, 8)
        assert torch.equal(predict.run({"x": x})["result"], coder.encode(x))


@pytest.mark.sample(2)
@pytest.mark.parametrize(("model", "max_batch", "backend"), [
    (Classifier, None, None), (Classifier, 16, None), (Settling, None, None), (Settling, None, "auto"),
])  # fmt: skip
def test_eight_threads_with_mixed_shapes(model, max_batch, backend, tmp_path):
    path = saved(model, tmp_path, ROWS)
    layer = dy2static.load(path)
    requests = [torch.randn(1 + at % 5, 8) * (1 + at % 3) for at in range(20)]
    with torch.no_grad():
        wanted = [list(layer(x).values()) if model is Classifier else list(layer(x)) for x in requests]
    wrong: list[str] = []

    def work(seed: int) -> None:
        for at in range(40):
            at = (at * (seed + 3) + seed) % len(requests)
            got = list(predict.run({"x": requests[at]}).values())
            if apart := difference(got, wanted[at], tolerance=1e-5):
                wrong.append(apart)

    with Predictor(path, max_batch=max_batch, backend=backend, warm_up={"x": requests[0]}) as predict:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        told = predict.statistics()
    assert not wrong and told.requests == 320 and told.errors == 0
    assert told.runs < 320 if max_batch else told.runs == 320


@pytest.mark.parametrize("max_batch", [None, 4])
def test_close_waits_for_what_runs_and_takes_no_more(max_batch, tmp_path):
    path = saved(Classifier, tmp_path, ROWS)
    predict = Predictor(path, max_batch=max_batch, max_wait=0.2)
    results: list[object] = []

    def work() -> None:
        try:
            results.append(predict.run({"x": torch.zeros(1, 8)}))
        except RuntimeError as error:
            results.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for one in threads:
        one.start()
    predict.close()
    predict.close()
    for one in threads:
        one.join()
    assert len(results) == 6 and all(isinstance(one, dict) or "closed" in str(one) for one in results)
    with pytest.raises(RuntimeError, match="closed"):
        predict.run({"x": torch.zeros(1, 8)})
    assert not [one for one in threading.enumerate() if one.name == "dy2static batcher"]


def test_the_public_name():
    assert runtime.Predictor is Predictor
