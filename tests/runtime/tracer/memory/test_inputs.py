"""The caller's tensors in a trace: what stands for each, what is asked of each, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

import pytest
import torch
from torch import nn

from runtime.errors import TraceError
from runtime.tracer.ambient.calls import Ahead, Findings, Undecided
from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.memory.inputs import SharedBase, looks
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.recording.session import Session
from tests.oracle import same

Tensor = torch.Tensor


class Owner:
    held: Any
    more: Any


class Plain(torch.Tensor):
    """A user's class that changes nothing of what torch's does."""


class Overriding(torch.Tensor):
    def add(self, other: Any) -> Any:  # type: ignore[override]
        return other


class Dispatching(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError("nobody calls it")


# -- inputs

KINDS: dict[str, Callable[[], Tensor]] = {
    "floats": lambda: torch.ones(2, 3), "a number": lambda: torch.tensor(3), "none": lambda: torch.ones(0, 2),
    "bools": lambda: torch.tensor([True]), "complex": lambda: torch.ones(2, dtype=torch.complex64),
    "transposed": lambda: torch.ones(2, 3).t(), "a part": lambda: torch.ones(9)[1:8:2],
    "needs a gradient": lambda: torch.ones(3, requires_grad=True), "a parameter": lambda: nn.Parameter(torch.ones(3)),
    "a buffer": lambda: nn.Buffer(torch.ones(3)), "sparse": lambda: torch.eye(2).to_sparse(),
    "of a class of a user": lambda: torch.ones(3).as_subclass(Plain), "on meta": lambda: torch.ones(3, device="meta"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_for_an_argument_looks_like_it(kind: str, session: Session) -> None:
    real = KINDS[kind]()
    fake = session.inputs.add_input(real, "x")
    info = session.info(fake)
    assert (fake.shape, fake.dtype, fake.device, fake.layout) == (real.shape, real.dtype, real.device, real.layout)
    if real.layout is torch.strided:
        assert fake.stride() == real.stride()
    assert info.requires_grad == real.requires_grad and info.layout_known and not info.grad_in_some_runs
    assert isinstance(fake, nn.Parameter) == isinstance(real, nn.Parameter)
    assert isinstance(fake, nn.Buffer) == isinstance(real, nn.Buffer)
    [one] = session.program.inputs
    assert one.name == one.var.hint == info.storage.label == "x" and session.read(fake) is one.var
    assert session.inputs.real(one.var) is real and session.inputs.is_input(info.storage)
    assert session.inputs.own_variable(fake) is one.var and info.storage.origin is one.var
    assert session.inputs.needs_gradient(one.var) == real.requires_grad
    assert (session.inputs.users_classes == {Plain}) == (type(real) is Plain)


def test_sizes_that_are_open(session: Session) -> None:
    fake = session.inputs.add_input(torch.ones(2, 3, 4), "x", frozenset({0, 2}))
    assert [type(size) is int for size in fake.shape] == [False, True, False] and fake.shape[1] == 3
    assert session.program.inputs[0].var.type.shape == ("s0", 3, "s1")
    assert session.inputs._reals[session.read(fake)].shape == (2, 3, 4)


def test_what_the_trace_is_told_ahead(session: Session) -> None:
    session.call.ahead = Ahead(needing=frozenset({"x", "i"}), layouts=frozenset({"y"}))
    x, y, i = (session.inputs.add_input(torch.ones(3).to(dtype), name)
               for name, dtype in (("x", torch.float32), ("y", torch.float32), ("i", torch.int64)))  # fmt: skip
    infos = [session.info(one) for one in (x, y, i)]
    assert [info.requires_grad for info in infos] == [info.grad_in_some_runs for info in infos] == [True, False, False]
    assert [info.layout_known for info in infos] == [True, False, True]
    assert session.inputs.undecided == {session.read(x)}


REFUSED: dict[str, tuple[Callable[[], Tensor], str]] = {
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged), "nested"),
    "mkldnn": (lambda: torch.ones(3).to_mkldnn(), "which only its library knows"),
    "dispatching": (lambda: torch.ones(3).as_subclass(Dispatching), "a Dispatching, a class of tensors with a"),
    "overriding": (lambda: torch.ones(3).as_subclass(Overriding), "an? Overriding, a class of tensors with a add"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_tensors_that_are_no_single_block_of_memory(name: str, session: Session) -> None:
    make, said = REFUSED[name]
    with pytest.raises(TraceError, match=f"D2S213\\] argument 'x' .*{said}"):
        session.inputs.add_input(make(), "x")
    with pytest.raises(TraceError, match=f"D2S213\\] a tensor from outside .*{said}"):
        session.inputs.lift(make())


def test_the_class_of_tensors_where_a_users_came_in(session: Session, refused: Any) -> None:
    session.inputs.add_input(torch.ones(3), "x")
    session.inputs.require_plain_classes()
    session.inputs.add_input(torch.ones(3).as_subclass(Plain), "y")
    with refused("D2S213", "require_plain_classes()", said="a function that is given a Plain"):
        session.inputs.require_plain_classes()


# -- arguments that share memory


def test_memory_that_two_may_share_is_uncertain(session: Session) -> None:
    memory = torch.arange(6.0)
    parts = {"x": memory[:4], "y": memory[2:], "apart": memory[5:], "other": torch.ones(2)}
    storages = {name: session.info(session.inputs.add_input(real, name)).storage for name, real in parts.items()}

    def others(name: str) -> set[str]:
        return {one.label for unknown in storages[name].unknown_aliases if (one := unknown.other()) is not None}

    assert [others(name) for name in parts] == [{"y"}, {"x", "apart"}, {"y"}, set()]


@pytest.mark.parametrize("real", [torch.ones(1).expand(3), torch.ones(9).as_strided((3, 3), (1, 1))])
def test_an_argument_whose_elements_are_one_memory(real: Tensor, session: Session) -> None:
    storage = session.info(session.inputs.add_input(real, "x")).storage
    assert [unknown.other() for unknown in storage.unknown_aliases] == [storage]


def test_a_parameter_met_after_its_memory_was_written(session: Session, made: Any, refused: Any) -> None:
    memory = torch.ones(3)
    x = session.inputs.add_input(memory, "x")
    made(lambda: x.add_(1))
    with refused("D2S225", "session.inputs.lift(memory[1:])", said="'constant_0' and 'x' share memory"):
        session.inputs.lift(memory[1:])


SHARED: dict[str, Callable[[Tensor], dict[str, Tensor]]] = {
    "two parts": lambda m: {"x": m[1:5], "y": m[3:]},
    "the first one begins later": lambda m: {"x": m[3:], "y": m[2:4]},
    "one that is shown twice": lambda m: {"x": m, "y": m},
    "a matrix and its diagonal": lambda m: {"x": m[:9].view(3, 3), "y": m[:9].view(3, 3).diagonal()},
    "elements that are one": lambda m: {"x": m[2:3].expand(4)},
    "transposed": lambda m: {"x": m[1:7].view(2, 3).t()},
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_arguments_that_share_memory_are_views_of_one_base(name: str, session: Session, made: Any) -> None:
    memory = torch.arange(10.0)
    reals = {**SHARED[name](memory), "other": torch.zeros(2)}
    fakes = {label: session.inputs.add_input(real, label) for label, real in reals.items()}
    session.call.known = Findings(shared=frozenset(reals) - {"other"})
    session.inputs.join_shared_inputs(list(reals.values()), list(reals))
    storages = {label: session.info(fake).storage for label, fake in fakes.items()}
    base = storages["x"]
    assert storages["other"] is not base and all(storages[label] is base for label in session.call.known.shared)
    [shared] = session.inputs.bases
    assert session.inputs.real(base.origin) is None and session.program.inputs[-1].var is base.value
    assert base.label == "memory of " + " and ".join(f"'{label}'" for label in reals if label != "other")
    found = shared.tensor(reals[shared.label])
    assert found.data_ptr() == min(reals[label].data_ptr() for label in session.call.known.shared)
    assert found.shape == base.value.type.shape and not found.requires_grad
    for label in session.call.known.shared:
        [step] = session.info(fakes[label]).steps
        assert step.plain.name == "aten.as_strided.default"
        _, sizes, strides, offset = step.args
        view = found.as_strided(sizes, strides, found.storage_offset() + offset)
        assert view.is_set_to(reals[label])
        assert session.inputs.shown_by(base, (step,)) is not None


def test_groups_are_told_apart(session: Session) -> None:
    one, other = torch.ones(3), torch.ones(3)
    reals = {"a": one, "b": other, "c": one[1:], "d": other[:2]}
    for label, real in reals.items():
        session.inputs.add_input(real, label)
    session.call.known = Findings(shared=frozenset(reals))
    session.inputs.join_shared_inputs(list(reals.values()), list(reals))
    assert [base.label for base in session.inputs.bases] == ["a", "b"]
    assert [one.name for one in session.program.inputs][4:] == ["memory of 'a' and 'c'", "memory of 'b' and 'd'"]


def test_where_the_memory_begins_may_differ_from_call_to_call() -> None:
    base = SharedBase("x", 3, 1)
    first, second = torch.arange(6.0), torch.arange(9.0)
    assert base.tensor(first[1:3]).tolist() == [0, 1, 2] and base.tensor(second[5:7]).tolist() == [4, 5, 6]


@pytest.mark.parametrize("make, said", [
    (lambda: {"x": (m := torch.ones(4, requires_grad=True)), "y": m[1:]}, "the arguments 'x' and 'y' share memory"),
    (lambda: {"x": (m := torch.ones(4)), "y": m.view(torch.int32)}, "the arguments 'x' and 'y' share memory"),
    (lambda: {"x": torch.ones(1, requires_grad=True).expand(3)}, "elements of the argument 'x' share memory"),
])  # fmt: skip
def test_shared_memory_that_has_no_one_base(
    make: Callable[[], dict[str, Tensor]], said: str, session: Session, refused: Any
) -> None:
    reals = make()
    for label, real in reals.items():
        session.inputs.add_input(real, label)
    session.call.known = Findings(shared=frozenset(reals))
    with refused("D2S225", "join_shared_inputs(", said=said):
        session.inputs.join_shared_inputs(list(reals.values()), list(reals))


# -- parameters and constants


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.plain = torch.full((3,), 2.0)
        self.held = Owner()
        self.held.held = torch.ones(1)


def test_a_tensor_from_outside_is_a_parameter(session: Session) -> None:
    net = Net()
    for name in ("weight", "mean", "plain"):
        session.inputs.hint_source(getattr(net, name), net, name, f"self.{name}")
    found = [session.inputs.lift(real) for real in (net.weight, net.mean, net.plain, net.held.held)]
    assert [session.inputs.lift(real) for real in (net.weight, net.held.held)] == [found[0], found[3]]
    told = [(one.name, one.kind, one.requires_grad) for one in session.program.params]
    assert told == [("self.weight", "parameter", True), ("self.mean", "buffer", False),
                    ("self.plain", "constant", False), ("constant_3", "constant", False)]  # fmt: skip
    assert [one.owner for one in session.inputs.live] == [net, net, net, None]
    assert session.inputs.label_of(net.weight) == "self.weight"
    for one, fake in zip(session.program.params, found):
        assert session.read(fake) is one.var and session.inputs.needs_gradient(one.var) == one.requires_grad
        assert not session.inputs.is_input(session.info(fake).storage)
    assert session.inputs.own_variable(net.weight) is session.program.params[0].var
    assert session.inputs.own_variable(torch.ones(1)) is None
    assert session.inputs.needs_gradient(session.new_variable(session.program.params[0].var.type)) is False


def test_a_tensor_of_the_trace_is_what_it_is(session: Session) -> None:
    x = session.inputs.add_input(torch.ones(3), "x")
    assert session.inputs.lift(x) is x and session.program.params == []


def test_a_tensor_beside_the_one_that_is_registered(session: Session, refused: Any) -> None:
    net = Net()
    net.__dict__["weight"] = torch.zeros(3)
    session.inputs.hint_source(net.weight, net, "weight", "self.weight")
    with refused("D2S274", "session.inputs.lift(net.weight)", said="'self.weight' of a Net is read"):
        session.inputs.lift(net.weight)


def test_a_constant_of_the_code(session: Session) -> None:
    real = torch.tensor([1, 2])
    var = session.inputs.add_constant(real)
    assert (var.hint, var.type.dtype, var.type.shape) == ("constant_0", torch.int64, (2,))
    assert session.program.params[0].kind == "constant"
    assert session.inputs.live[0].real is real and session.inputs.add_constant(real).hint == "constant_1"


def test_where_a_tensor_was_read_first(session: Session) -> None:
    """It is looked up there; that another place has the same one is a guard."""
    owner, real = Owner(), torch.ones(3)
    owner.held = owner.more = real
    other = Owner()
    other.held = real
    now = session.inputs.place_of(real)
    assert now() is real
    session.inputs.hint_source(real, owner, "held", "owner.held")
    session.inputs.hint_source(real, owner, "held", "owner.held")
    assert session.guards.copy() == {}
    for place in ((owner, "more"), (other, "held")):
        session.inputs.hint_source(real, *place, "another")
    guards = session.guards.freeze()
    assert [guard.holds() for guard in guards] == [True, True]
    owner.more = torch.ones(3)
    assert [guard.holds() for guard in guards] == [False, True]
    owner.held = other.held = torch.zeros(3)
    assert [guard.holds() for guard in guards] == [False, True]
    now = session.inputs.place_of(real)
    assert now() is owner.held
    del owner.held
    assert now() is None and [guard.holds() for guard in guards] == [False, False]
    assert session.inputs.lift(real) is not None and session.inputs.label_of(real) == "owner.held"


def test_what_lay_in_a_variable_that_is_unbound_now(session: Session) -> None:
    real = torch.ones(3)
    cell = CellType(real)
    session.inputs.hint_source(real, cell, "cell_contents", "held")
    now = session.inputs.place_of(real)
    assert now() is real
    del cell.cell_contents
    assert now() is None


def test_tensors_that_were_only_looked_at(session: Session) -> None:
    net, owner = Net(), Owner()
    owner.held, owner.more = torch.ones(3), [1]
    session.guards.add_test((id(net), "<module>"), "the module", lambda: True)
    for one, name in ((net, "weight"), (net, "mean"), (net, "plain"), (owner, "held"), (owner, "more")):
        session.inputs.hint_source(getattr(one, name), one, name, name)
    session.inputs.lift(owner.held)
    session.inputs.guard_unread()
    assert {guard.description for guard in session.guards.freeze()} == {"the module", "tensor 'plain'", "tensor 'more'"}
    guards = session.guards.freeze()
    net.plain, owner.more = torch.zeros(3), [2]
    assert all(guard.holds() for guard in guards)
    net.plain = torch.zeros(2)
    assert [guard.holds() for guard in guards] == [True, False, True]
    owner.more = ()
    assert [guard.holds() for guard in guards] == [True, False, False]


LOOKS: list[Callable[[], Any]] = [
    lambda: torch.ones(2, 3), lambda: torch.ones(3, 2), lambda: torch.ones(3, 2).t(), lambda: torch.ones(2, 3).double(),
    lambda: torch.ones(2, 3, requires_grad=True), lambda: nn.Parameter(torch.ones(2, 3), False),
    lambda: torch.ones(2, 3, device="meta"), lambda: torch.ones(2, 3, dtype=torch.complex64),
    lambda: torch.ones(2, 3, dtype=torch.complex64).conj(), lambda: torch.ones(2, 3, dtype=torch.complex64).conj().imag,
    lambda: torch.ones(2, 3).to_sparse(), lambda: torch.ones(2, 3).to_sparse_csr(), lambda: None, lambda: 3,
    lambda: torch.nested.nested_tensor([torch.ones(1)], layout=torch.jagged), lambda: [1], lambda: 3.5,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_what_a_tensor_says_of_itself() -> None:
    for place, make in enumerate(LOOKS):
        assert [looks(make()) == looks(other()) for other in LOOKS].index(True) == place
    assert looks(3) is int and looks(torch.ones(3)) == looks(torch.zeros(3)), "what it holds does not matter"


# -- gradients


def test_leaves_among_the_arguments(session: Session) -> None:
    session.call.ahead = Ahead(needing=frozenset({"open"}))
    w = torch.ones(3, requires_grad=True)
    reals = {"w": w, "y": w * 2, "x": torch.ones(3), "open": torch.ones(3)}
    fakes = {name: session.inputs.add_input(real, name) for name, real in reals.items()}
    assert [one is fakes[name] for one, name in zip(session.inputs.leaf_arguments(), ("w", "open"))] == [True, True]
    asked = {var.hint: leaf for var, leaf in session.inputs.leaves.items()}
    assert asked == {"w": True, "y": False, "open": True}


def test_leaves_that_an_open_list_may_hold(session: Session) -> None:
    session.containers.open_alias_sets.append((None, False))  # type: ignore[arg-type]
    assert session.inputs.leaf_arguments() == []
    session.containers.open_alias_sets.append((None, True))  # type: ignore[arg-type]
    with pytest.raises(CannotBeOpen, match="gradients are asked for"):
        session.inputs.leaf_arguments()


def test_what_depends_on_whether_arguments_need_a_gradient(session: Session, made: Any) -> None:
    session.call.ahead = Ahead(needing=frozenset({"x", "y"}), decidable=2)
    x, y = (session.inputs.add_input(torch.ones(3), name) for name in "xy")
    plain = session.inputs.add_input(torch.ones(3), "plain")
    session.inputs.decide(plain)
    assert not session.outside.asks_gradients and not session.inputs.asks_needs
    for tensor, labels in ((x, ["x"]), (made(lambda: x * 2), ["x", "y"])):
        with pytest.raises(Undecided) as found:
            session.inputs.decide(tensor)
        assert list(found.value.labels) == labels
    assert session.outside.asks_gradients and session.inputs.asks_needs
    with pytest.raises(Undecided):
        session.inputs.require_decided()


@pytest.mark.parametrize("why", ["too many", "advanced"])
def test_what_cannot_be_told(why: str, session: Session, refused: Any) -> None:
    session.call.ahead = Ahead(needing=frozenset({"x", "y"}), decidable=2 if why == "advanced" else 1)
    session.call.advanced = why == "advanced"
    x, _ = (session.inputs.add_input(torch.ones(3), name) for name in "xy")
    if why == "advanced":
        session.inputs.decide(x)
    with refused("D2S213", "require_decided()", said="gradients go to all leaves"):
        session.inputs.require_decided()


def test_nothing_to_decide(session: Session, made: Any) -> None:
    session.inputs.require_decided()
    w = session.inputs.add_input(torch.ones(3, requires_grad=True), "w")
    session.inputs.decide(made(lambda: w * 2))


# -- which of the caller's tensors it is


def test_a_tensor_from_outside_that_is_an_argument(session: Session) -> None:
    real, other = torch.ones(3), torch.ones(3)
    x = session.inputs.add_input(real, "x")
    assert session.inputs.one(real) is x and session.inputs.one(other) is other
    answers = [(question(real), answer) for _, question, answer in session.inputs.asked[session.read(x)].values()]
    assert answers == [(True, True), (False, False)]


def test_a_tensor_from_outside_is_looked_up_in_each_call(session: Session) -> None:
    owner, real = Owner(), torch.ones(3)
    owner.held = real
    session.inputs.hint_source(real, owner, "held", "owner.held")
    x = session.inputs.add_input(real, "x")
    assert session.inputs.one(real) is x
    [(_, question, _)] = session.inputs.asked[session.read(x)].values()
    owner.held = torch.zeros(3)
    assert question(owner.held) is True and question(real) is False


def test_an_input_that_shows_some_memory(session: Session, made: Any) -> None:
    x, y = (session.inputs.add_input(torch.ones(3), name) for name in "xy")
    view = session.info(made(lambda: x[1:]))
    assert session.inputs.shown_by(view.storage, ()) is session.read(x)
    assert session.inputs.shown_by(view.storage, view.steps) is None
    assert session.inputs.shown_by(session.info(y).storage, ()) is session.read(y)
    assert session.inputs.real(session.read(made(lambda: x * 2))) is None
    assert MISSING is not session.inputs.real(session.read(x))
    same(session.inputs.real(session.read(y)), torch.ones(3))
