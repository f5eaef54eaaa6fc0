"""Calls of NumPy's functions on arrays of the trace: one Operator each, of what samples told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from runtime.tracer.recording import numpy_calls
from runtime.tracer.recording.numpy_calls import record
from runtime.tracer.recording.session import Session
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyCopy, NumpyScalar

Tensor = torch.Tensor


@pytest.fixture
def array(given: Any, made: Any) -> NumpyArray:
    """An array of the trace."""
    return made(lambda x: x.numpy(), given("x", 3))


CALLS: dict[str, tuple[str, tuple[Any, ...], type, list[str]]] = {
    "array": ("sort", (), NumpyArray, ["array"]),
    "scalar": ("sum", (), NumpyScalar, ["generic"]),
    "bools": ("greater", (1,), NumpyArray, ["array"]),
    "dtype": ("ndarray.astype", (np.float64,), NumpyArray, ["array"]),
    "shape": ("reshape", ((1, 3),), NumpyArray, ["array"]),
    "negative strides": ("flip", (), NumpyCopy, ["array"]),
    "read only": ("broadcast_to", ((2, 3),), NumpyCopy, ["array"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_gives(name: str, session: Session, array: NumpyArray, made: Any) -> None:
    function, more, kind, gives = CALLS[name]
    found = made(record, function, (array, *more), {})
    assert type(found) is kind
    op = session.program.block.ops[-1]
    assert op.name == f"host.np.{function}" and op.args[0] == {"array": session.read(array.tensor)}
    assert (op.attrs["gives"], op.attrs["many"]) == (gives, False)
    path = function.removeprefix("ndarray.")
    real = np.ones(3, np.float32)
    real = getattr(real, path)(*more) if path != function else getattr(np, path)(real, *more)
    fake = session.fake(found.tensor)
    assert (tuple(fake.shape), fake.dtype) == (real.shape, torch.from_numpy(np.array(real)).dtype)


def test_several_results(session: Session, array: NumpyArray, made: Any) -> None:
    found = made(record, "split", (array, 3), {})
    assert type(found) is list and [type(one) for one in found] == 3 * [NumpyArray]
    assert session.program.block.ops[-1].attrs["many"] is True and len(session.program.block.ops[-1].outputs) == 3


def test_dtypes_and_constants_as_operands(session: Session, array: NumpyArray, made: Any) -> None:
    """An array from outside is held against later calls; a dtype is there by name."""
    outside = np.ones(3, np.float32)
    made(record, "add", (array, outside), {"dtype": np.float64})
    op = session.program.block.ops[-1]
    assert op.kwargs == {"dtype": "float64"} and list(op.args[1]) == ["array"]  # type: ignore[arg-type]
    assert len(session.program.params) == 1
    made(record, "add", (array, np.float32(2)), {})
    assert list(session.program.block.ops[-1].args[1]) == ["generic"]  # type: ignore[arg-type]


def test_numbers_of_the_run(session: Session, array: NumpyArray, number: Any, made: Any, refused: Any) -> None:
    """They may be given where the result looks the same for all of them."""
    n = number()
    made(record, "multiply", (array, n), {})
    assert session.program.block.ops[-1].args[1] is n.var
    assert type(made(record, "ndarray.__getitem__", (array, n), {})) is NumpyScalar
    with refused("D2S213", "record(", said="is given a number that is only known while the Program runs"):
        made(lambda: record("roll", (array, n), {}))


def test_how_errors_are_told(session: Session, array: NumpyArray, made: Any, refused: Any) -> None:
    made(record, "divide", (array, 0), {})
    assert "errors" not in session.program.block.ops[-1].attrs
    with np.errstate(divide="raise"):
        made(record, "divide", (array, 0), {})
    assert session.program.block.ops[-1].attrs["errors"] == ["raise", "warn", "ignore", "warn"]
    with np.errstate(divide="call"), refused("D2S213", "record(", said="tells of errors by calling a function"):
        made(lambda: record("divide", (array, 0), {}))


REFUSED: dict[str, tuple[Callable[[NumpyArray], Any], str]] = {
    "table": (lambda a: record("nothing", (a,), {}), "is not among the functions of NumPy's"),
    "where": (lambda a: record("add", (a, 1), {"where": a}), "is given an array to write into"),
    "object": (lambda a: record("add", (a, object()), {}), "is given a object"),
    "values": (lambda a: record("where", (a,), {}), "gives another shape or dtype for other values"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_are_refused(name: str, array: NumpyArray, made: Any, recorded: Any, refused: Any) -> None:
    call, said = REFUSED[name]
    recorded()
    with refused("D2S213", f'"{name}": (lambda', said=said):
        made(call, array)
    assert recorded() == []


def test_what_numpy_raises_for_all_values(session: Session, array: NumpyArray, made: Any) -> None:
    with pytest.raises(ValueError) as expected:
        np.add(np.ones(3), np.ones(4))
    with pytest.raises(ValueError) as found:
        made(record, "add", (array, np.ones(4)), {})
    assert found.value.args == expected.value.args
    assert all(not op.name.startswith("host.") for op in session.program.block.ops)


def test_further_requirements_are_asked_of_each_call(
    session: Session, array: NumpyArray, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(numpy_calls, "requirements", [lambda *given: asked.append(given)])
    made(record, "sum", (array,), {})
    assert asked == [(session, "sum")]


EAGER: dict[str, Callable[[Tensor], Any]] = {
    "gradient": lambda w: w.numpy(),
    "dtype": lambda w: w.detach().bfloat16().numpy(),
    "conjugate": lambda w: (w.detach() * 1j).conj().numpy(),
}


@pytest.mark.parametrize("name", EAGER)
def test_tensors_that_give_no_array(name: str, as_eager: Any) -> None:
    as_eager(EAGER[name], torch.ones(3, requires_grad=True))


def test_an_array_that_is_forced(session: Session, given: Any, made: Any, recorded: Any) -> None:
    w = given("w", 3, requires_grad=True)
    made(lambda: w.numpy(force=True))
    assert recorded() == ["aten.detach.default"]
    made(lambda: (w.detach() * 1j).conj().numpy(force=True))
    assert "aten.clone.default" in recorded()


def test_a_gradient_that_some_runs_need(session: Session, given: Any, made: Any, recorded: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    session.info(y).grad_in_some_runs = True
    recorded()
    made(lambda: y.numpy())
    assert recorded() == ["grad.needed", "cond", "aten.detach.default"]


OPEN: dict[str, tuple[str, tuple[Any, ...], list[Any]]] = {
    "all alike": ("add", (1,), ["s0", 3]),
    "of no other size": ("sum", (0,), [3]),
    "a number for all": ("reshape", ((-1, 3, 1),), [None, 3, 1]),
    "another size": ("diff", (1, 0), [None, 3]),
    "a number for large ones": ("resize", ((4, 3),), [4, 3]),
    "turned": ("transpose", (), [3, None]),
    "one dimension": ("ravel", (), [None]),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name: str, session: Session, given: Any, made: Any) -> None:
    """A size is a number where it is one for all sizes tried, the operand's where it has to be, else a new one."""
    function, more, expected = OPEN[name]
    array = made(lambda x: x.numpy(), given("x", None, 3))
    found = made(record, function, (array, *more), {})
    shape = session.program.block.ops[-1].outputs[0].type.shape
    assert len(shape) == len(expected) and all(
        size == wanted if wanted is not None else size.startswith("n") for size, wanted in zip(shape, expected))
    assert session.info(found.tensor).layout_known


def test_open_sizes_that_must_agree(session: Session, given: Any, made: Any, refused: Any) -> None:
    """Tried with sizes that differ, and where these fail with equal ones."""
    one, other = (made(lambda x: x.numpy(), given(name, None)) for name in "ab")
    found = made(record, "add", (one, other), {})
    assert session.fake(found.tensor).dim() == 1
    with refused("D2S213", 'record("add", (one, constant), {})', said="raises for most sizes"):
        constant = made(lambda x: x.numpy(), given("c", 3))
        record("add", (one, constant), {})


def test_errors_of_all_sizes(session: Session, given: Any, made: Any) -> None:
    array = made(lambda x: x.numpy(), given("x", None))
    with pytest.raises(np.exceptions.AxisError):
        made(record, "sum", (array, 1), {})


def test_back_to_a_tensor(session: Session, given: Any, made: Any, refused: Any) -> None:
    """It is in the array's memory, which a NumPy array of negative strides has for itself."""
    x = given("x", 3)
    array = made(lambda: x.numpy())
    y = made(numpy_calls.to_tensor, session, array)
    assert session.info(y).storage is session.info(x).storage and session.info(y).detached
    flipped = made(record, "flip", (array,), {})
    with refused("D2S213", "to_tensor(session, flipped)", said="with negative strides"):
        numpy_calls.to_tensor(session, flipped)


def test_memory_that_a_call_may_have_given_on(session: Session, given: Any, made: Any, refused: Any) -> None:
    x = given("x", 3)
    y = made(lambda: record("reshape", (x.numpy(), (1, 3)), {})).tensor
    with refused("D2S222", "y.add_(1)", said="NumPy made an array of another's memory"):
        made(lambda: y.add_(1))


def test_whether_an_array_lies_in_order(session: Session, given: Any, made: Any) -> None:
    x = given("x", 2, 3)
    plain, turned = made(lambda: (x.numpy(), x.t().numpy()))
    assert numpy_calls.is_contiguous(session, plain) and not numpy_calls.is_contiguous(session, turned)
