"""What the recorder makes of a call: one Operator, a view of memory that is there, a write, or a located error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x, m: F.linear(m, m), "linear.default"),
        (lambda x, m: F.layer_norm(m, [3]), "layer_norm.default"),
        (lambda x, m: F.dropout(x, 0.5, True), "dropout.default"),
        (lambda x, m: torch.einsum("ij,j->i", m, x), "einsum.default"),
        (lambda x, m: x + m, "add.Tensor"),
        (lambda x, m: x + 1, "add.Tensor"),
        (lambda x, m: 2 - x, "rsub.Scalar"),
    ],
)
def test_operators_arrive_whole(
    call: Callable[..., Any], name: str, given: Any, made: Any, recorded: Any
) -> None:
    made(call, given("x", 3), given("m", 2, 3))
    assert recorded() == [f"aten.{name}"]


@pytest.mark.parametrize(
    "ask",
    [lambda x: (x.shape, x.size(0), x.numel(), x.dim(), len(x)), lambda x: (x.device, x.dtype, x.layout, x.is_cuda),
     lambda x: (x.stride(), x.is_contiguous(), x.storage_offset()), lambda x: torch.result_type(x, 1)],
)  # fmt: skip
def test_questions_about_metadata_record_nothing(
    ask: Callable[[Tensor], Any], given: Any, made: Any, recorded: Any
) -> None:
    real = torch.ones(2, 3).t()
    assert made(lambda x: ask(x.t()), given("x", 2, 3)) == ask(real)
    assert recorded() == ["aten.t.default"]


def test_an_operator_on_two_tensors(given: Any, made: Any, program: Any) -> None:
    made(lambda x, y: torch.cat([x, y * 2], dim=0), given("x", 3), given("y", None))
    assert program() == [
        "%0 : f32[s0] = aten.mul.Tensor(%y, 2)", '%1 : f32["s0 + 3"] = aten.cat.default([%x, %0])',
    ]  # fmt: skip


def test_constants_are_made_anew_in_each_run(session: Session, made: Any) -> None:
    _, several = made(lambda: (torch.tensor(2.5), torch.tensor([1, 2])))
    number, *constant = session.program.block.ops
    assert number.name == "aten.full.default" and number.args == ([], 2.5)
    assert [op.name for op in constant] == ["aten.lift_fresh_copy.default"]
    assert constant[0].args == (session.program.params[0].var,)
    assert torch.Size([2]) == several.shape and not session.info(several).requires_grad
    made(lambda: several.add_(1))
    assert session.program.params[0].var not in session.program.block.ops[-1].args, "the constant stays as it is"


def test_views_are_of_the_memory_they_show(session: Session, given: Any, made: Any) -> None:
    x = given("x", 2, 3)
    row, copy = made(lambda: (x.t()[1], x.t().reshape(6)))
    info = session.info(row)
    assert info.storage is session.info(x).storage
    assert [step.name for step in info.steps] == ["aten.t.default", "aten.select.int"]
    assert session.info(copy).storage is not info.storage and session.info(copy).steps == ()


def test_whose_results_have_a_history(session: Session, given: Any, made: Any) -> None:
    w, x = given("w", 3, requires_grad=True), given("x", 3)
    with torch.no_grad():
        off = made(lambda: w * 2)
    results = made(lambda: (w * x, x * 2, w.detach(), w.argmax(), torch.ones_like(w), w > 0, w.max(0)))
    *plain, (most, place) = results
    flags = [session.info(one).requires_grad for one in (*plain, most, place, off)]
    assert flags == [True, False, False, False, False, False, True, False, False]


def test_a_result_that_is_the_argument(session: Session, given: Any, made: Any, recorded: Any) -> None:
    """Another object in the trace, which stands for the same one of eager's."""
    x = given("x", 3)
    same, other = made(lambda: (x.to(torch.float32), x.to(torch.float64)))
    assert session.info(same).itself is x and session.info(same).storage is session.info(x).storage
    assert session.info(other).itself is None and session.info(other).storage is not session.info(x).storage
    assert recorded() == ["aten.to.dtype", "aten.to.dtype"]


def test_contiguous_that_copies_is_a_clone(given: Any, made: Any, recorded: Any) -> None:
    made(lambda x: x.t().contiguous(), given("x", 2, 3))
    assert recorded() == ["aten.t.default", "aten.clone.default"]


def test_a_write_is_an_update_of_the_base(given: Any, made: Any, program: Any) -> None:
    x = given("x", 2, 3)
    assert made(lambda: x[0].mul_(2)).shape == (3,)
    assert program() == [
        "%0 : f32[3] = aten.select.int(%x, 0, 0)",
        "%x.2 : f32[2, 3] = update(%x) {",
        "^(%x.1 : f32[2, 3]):",
        "%1 : f32[3] = aten.select.int(%x.1, 0, 0)",
        "%2 : f32[3] = aten.mul_.Tensor(%1, 2)",
        "yield %x.1",
        "}",
    ]


def test_what_a_write_leaves(session: Session, given: Any, made: Any) -> None:
    x = given("x", 2, 3)
    storage = session.info(x).storage
    before = storage.value
    row = made(lambda: x[0])
    assert made(lambda: row.add_(1)) is row, "the very tensor that was written"
    assert storage.first is before and storage.value is not before
    assert storage.written[storage.value].before is before and storage.written[storage.value].happened.always
    assert storage.in_graph and not storage.unnoticed


def test_a_write_without_gradients_is_not_in_the_graph(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    with torch.no_grad():
        made(lambda: x.add_(1))
    assert not session.info(x).storage.in_graph


def test_a_write_through_data_is_not_noticed(session: Session, given: Any, made: Any) -> None:
    w = given("w", 3, requires_grad=True)
    made(lambda: w.data.add_(1))
    storage = session.info(w).storage
    assert storage.unnoticed and storage.written[storage.value].happened.never
    assert session.program.block.ops[-1].attrs == {"unnoticed": True}


def test_several_bases_are_written_at_once(given: Any, made: Any, program: Any) -> None:
    x, values, places = given("x", 3), given("v", 3), given("p", 3, dtype=torch.int64)
    found = made(lambda: torch.sort(x, out=(values, places)))
    assert list(found) == [values, places]
    assert program()[0] == "%v.2 : f32[3], %p.2 : i64[3] = update(%v, %p) {"


def test_a_write_that_gives_something_new(session: Session, given: Any, made: Any, program: Any) -> None:
    x, mean, variance = given("x", 2, 3), given("mean", 3), given("variance", 3)
    out = made(lambda: F.batch_norm(x, mean, variance, training=True))
    assert session.info(out).storage.value is session.program.block.ops[-1].outputs[2]
    assert program()[0].startswith("%mean.2 : f32[3], %variance.2 : f32[3], %") and program()[-2].count(",") == 2


def test_a_write_reads_the_value_before_it(session: Session, given: Any, made: Any, program: Any) -> None:
    """The operand that shares the written memory is read inside, the other one outside."""
    x, y = given("x", 3), given("y", 3)
    made(lambda: x.add_(x + y))
    assert "%1 : f32[3] = aten.add_.Tensor(%x.1, %0)" in program()
    made(lambda: y[1:].copy_(y[:2]))
    *_, first, second, copied, _, _ = program()
    assert first.endswith("= aten.slice.Tensor(%y.1, 0, 1, 9223372036854775807)")
    assert second.endswith("= aten.slice.Tensor(%y.1, 0, 0, 2)")
    assert copied.endswith(f"= aten.copy_.default({first.split()[0]}, {second.split()[0]})")


def test_a_change_of_shape_in_place(session: Session, given: Any, made: Any, recorded: Any) -> None:
    x = given("x", 2, 3)
    y = made(lambda: x * 2)
    assert made(lambda: y.t_()) is y and y.shape == (3, 2)
    assert recorded() == ["aten.mul.Tensor"], "nothing is recorded until it is read"
    assert session.type_of(y).shape == (3, 2) and session.read(y).type.shape == (3, 2)  # type: ignore[union-attr]
    assert recorded() == ["aten.t.default"] and session.info(y).reshaped_by == "aten.t_.default"


REFUSED: dict[str, tuple[str, Callable[[Tensor, Tensor], Any]]] = {
    "quantized": ("D2S213", lambda x, w: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)),
    "memory": ("D2S223", lambda x, w: (x * 2).resize_(6)),
    "set": ("D2S223", lambda x, w: (x * 2).set_(x * 3)),
    "detach": ("D2S221", lambda x, w: w.detach_()),
    "a caller's shape": ("D2S223", lambda x, w: x.unsqueeze_(0)),
    "value": ("D2S212", lambda x, w: torch.ops.aten.equal.default(x, x)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_calls_that_are_refused(what: str, given: Any, made: Any, refused: Any) -> None:
    code, call = REFUSED[what]
    with refused(code, f'"{what}": ("{code}"'):
        made(call, given("x", 3), given("w", 3, requires_grad=True))


def test_the_dispatcher_is_left_as_it_was(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    with pytest.raises(RuntimeError):
        made(lambda: x @ torch.ones(4))
    assert session.dispatching is False


def test_an_operator_that_raises_is_not_recorded(given: Any, made: Any, recorded: Any) -> None:
    """What it says is what eager says."""
    def call(x: Tensor) -> Tensor:
        return torch.linalg.solve(x, x[0, 0])

    with pytest.raises(RuntimeError) as expected:
        call(torch.ones(2, 3))
    with pytest.raises(RuntimeError) as found:
        made(call, given("x", 2, 3))
    assert found.value.args == expected.value.args
    assert recorded() == 2 * ["aten.select.int"]


def test_what_raises_for_all_sizes_is_recorded_without_results(session: Session, given: Any, made: Any) -> None:
    """What it says may depend on the size."""
    with pytest.raises(IndexError):
        made(lambda x: x.sum(3), given("x", None))
    op = session.program.block.ops[-1]
    assert op.name == "aten.sum.dim_IntList" and op.outputs == ()


def test_a_number_that_is_a_tensor_is_its_item(given: Any, made: Any, recorded: Any) -> None:
    made(lambda x, n: x.clamp(0, n), given("x", 6), given("n", dtype=torch.int64))
    assert recorded() == ["scalar.item", "aten.clamp.default"]


def test_a_name_for_the_profiler_records_nothing(given: Any, made: Any, recorded: Any) -> None:
    def named(x: Tensor) -> Tensor:
        with torch.profiler.record_function("part"):
            return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made(named, given("x", 3))
    assert recorded() == ["aten.mul.Tensor"]
