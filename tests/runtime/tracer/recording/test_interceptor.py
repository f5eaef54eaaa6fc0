"""What reads a tensor's data or metadata from Python while it is traced: answered, staged, or refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.recording.interceptor import History
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor

REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "data_ptr": lambda x: x.data_ptr(),
    "apply_": lambda x: x.detach().apply_(abs),
    "map_": lambda x: x.detach().map_(x, max),
    "map2_": lambda x: x.detach().map2_(x, x, max),
    "is_set_to": lambda x: x.is_set_to(x),
    "untyped_storage": lambda x: x.untyped_storage(),
    "storage": lambda x: x.storage(),
    "__dlpack__": lambda x: x.__dlpack__(),
    "__reduce_ex__": lambda x: x.__reduce_ex__(2),
    "register_hook": lambda x: x.register_hook(print),
    "register_post_accumulate_grad_hook": lambda x: x.register_post_accumulate_grad_hook(print),
    "share_memory_": lambda x: x.share_memory_(),
    "pin_memory": lambda x: x.pin_memory(),
    "to_mkldnn": lambda x: x.to_mkldnn(),
    "__deepcopy__": lambda x: x.__deepcopy__({}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_freeze_data_is_refused(name: str, given: Any, made: Any, recorded: Any, refused: Any) -> None:
    with refused("D2S213", f'"{name}": lambda', said=f".{name}() "):
        made(REFUSED[name], given("x", 3, requires_grad=True))
    assert set(recorded()) <= {"aten.detach.default"}


def test_a_deep_copy_is_advised_against(given: Any, made: Any) -> None:
    with pytest.raises(TraceError, match="deep-copies a tensor") as found:
        made(copy.deepcopy, given("x", 3))
    assert found.value.hint == "Use .clone() instead."


def test_a_numpy_array_in_code_that_is_not_converted(session: Session, given: Any, made: Any, refused: Any) -> None:
    session.code.unconverted = [("h", "it is in C")]
    with refused("D2S213", "x.numpy()", said="(inside h, which was not converted: it is in C)"):
        made(lambda x: x.numpy(), given("x", 3))


def test_data_is_not_assigned(given: Any, made: Any, refused: Any) -> None:
    def assign(x: Tensor) -> None:
        x.data = x * 2

    with refused("D2S213", "x.data = x * 2", said=".data is assigned"):
        made(assign, given("x", 3))


# -- places in memory


def test_places_in_memory_are_known(given: Any, made: Any, recorded: Any) -> None:
    def asked(x: Tensor) -> Any:
        part = x[1:, 1:]
        return part.storage_offset(), part.stride(), part.is_contiguous(), x.t().t().is_contiguous(), x.is_shared()

    assert made(asked, given("x", 2, 3)) == asked(torch.ones(2, 3))
    assert set(recorded()) == {"aten.slice.Tensor", "aten.t.default"}


@pytest.mark.parametrize("ask", [lambda x: x.stride(), lambda x: x.is_contiguous(), lambda x: x.storage_offset()])
def test_a_layout_that_is_not_known_is_not_told(
    ask: Callable[[Tensor], Any], session: Session, given: Any, made: Any, refused: Any
) -> None:
    x = given("x", 3)
    session.info(x).layout_known = False
    with refused("D2S213", "lambda x: x.stride(), lambda x: x.is_contiguous()", said="depends on the path"):
        made(ask, x)
    assert made(lambda: x.contiguous().stride()) == (1,)


def test_contiguous_of_a_layout_that_is_not_known_is_asked_in_the_run(
    session: Session, given: Any, made: Any, recorded: Any
) -> None:
    x = given("x", 3)
    session.info(x).layout_known = False
    y = made(lambda: x.contiguous())
    assert recorded() == ["aten.contiguous.default"] and session.info(y).layout_known and session.info(y).itself is None


# -- the graph


def test_leaves_and_nodes(given: Any, made: Any) -> None:
    def asked(x: Tensor, w: Tensor) -> list[Any]:
        y = w * x
        values = (x, x * 2, w, y, y.detach(), y > 0)
        return [(one.is_leaf, one.requires_grad, one.grad_fn is None) for one in values]

    real = torch.ones(3, requires_grad=True)
    assert made(asked, given("x", 3), given("w", 3, requires_grad=True)) == asked(torch.ones(3), real)


@pytest.mark.parametrize(
    ("use", "what"),
    [(lambda node: node.name(), "'.name' of a grad_fn"), (lambda node: node == node, "the identity"),
     (hash, "the identity"), (lambda node: node(1), "a call"), (str, "the text"), (repr, "the text"),
     (lambda node: node.leave(), "the node")],
)  # fmt: skip
def test_a_node_can_only_be_asked_whether_it_is_there(
    use: Callable[[Any], Any], what: str, given: Any, made: Any
) -> None:
    node = made(lambda w: (w * 2).grad_fn, given("w", 3, requires_grad=True))
    assert isinstance(node, History) and node is not None and (node == 3) is False
    with pytest.raises(TraceError, match=what) as found:
        use(node)
    assert found.value.code == "D2S213"


def test_what_depends_on_the_path_is_refused(session: Session, given: Any, made: Any, refused: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    session.info(y).grad_in_some_runs = True
    with refused("D2S213", "y.is_leaf", said="is a leaf depends on the path"):
        made(lambda: y.is_leaf)
    with refused("D2S213", "y.grad_fn", said="has a grad_fn depends on the path"):
        made(lambda: y.grad_fn)


def test_a_gradient_that_depends_on_the_path_in_code_that_is_not_converted(
    session: Session, given: Any, number: Any, made: Any, refused: Any
) -> None:
    def kept(w: Tensor) -> Tensor:
        y = w * 2
        y.retain_grad()
        return y

    y = made(kept, given("w", 3, requires_grad=True))
    (place,) = session.graph.retaining.values()
    place.retains_grad = number("bool")
    with refused("D2S212", "y.retains_grad"):
        made(lambda: y.retains_grad)


# -- factories


def test_factories_make_leaves(session: Session, made: Any, recorded: Any) -> None:
    y = made(lambda: torch.zeros(3, requires_grad=True))
    assert recorded() == ["aten.zeros.default", "grad.leaf"]
    assert session.info(y).requires_grad and session.graph.made_leaves
    assert not session.info(made(lambda: torch.zeros(3, requires_grad=False))).requires_grad


def test_out_of_a_factory_says_whether_it_needs_a_gradient(session: Session, made: Any) -> None:
    leaf = made(lambda: torch.zeros(3, requires_grad=True))
    with torch.no_grad():
        made(lambda: torch.ones(3, out=leaf))
    assert not session.info(leaf).requires_grad
    made(lambda: torch.ones(3, out=leaf, requires_grad=True))
    assert session.info(leaf).requires_grad


def test_bounds_of_a_factory_have_no_history_in_it(session: Session, given: Any, made: Any, recorded: Any) -> None:
    w = given("w", requires_grad=True)
    y = made(lambda: torch.linspace(0, w, 3))
    assert not session.info(y).requires_grad and not y.requires_grad
    assert recorded() == ["aten.detach.default", "aten.linspace.Scalar_Tensor"]


# -- what the trace remembers of it


def test_what_was_asked_is_remembered(session: Session, given: Any, made: Any) -> None:
    """A later call with other settings must not use the Program."""
    x, i = given("x", 3), given("i", 3, dtype=torch.int64)
    made(lambda: (x.to(torch.float64), (i * 2).dtype, x.shape))
    assert session.outside.asked_settings == set()
    session.code.unconverted = [("h", "it is in C")]
    made(lambda: (x * 2).dtype)
    assert session.outside.asked_settings == {"autocast"}
    made(lambda: (x * 2).is_inference())
    assert session.outside.asked_settings == {"autocast", "torch.is_inference_mode_enabled()"}


def test_switching_gradients_is_counted(session: Session, given: Any, made: Any) -> None:
    def off(x: Tensor) -> Tensor:
        with torch.no_grad():
            return x * 2

    made(off, given("x", 3))
    assert session.graph.grad_switches == 2 and torch.is_grad_enabled()


def test_who_detaches_is_known_only_while_it_happens(session: Session, given: Any, made: Any) -> None:
    w = given("w", 3, requires_grad=True)
    detached, data = made(lambda: (w.detach(), w.data))
    steps = [session.info(one).steps[-1] for one in (detached, data)]
    assert [step.unnoticed for step in steps] == [False, True]
    assert all(step.location.text.strip().startswith("detached, data") for step in steps if step.location)
    with pytest.raises(TypeError):
        made(lambda: w.detach(1))
    assert session.graph.detaching is None


def test_the_cache_of_autocast_is_off(given: Any, made: Any) -> None:
    before = torch.is_autocast_cache_enabled()
    try:
        torch.set_autocast_cache_enabled(True)
        seen = made(lambda x: (x * 2, torch.is_autocast_cache_enabled()), given("x", 3))[1]
        assert not seen and torch.is_autocast_cache_enabled()
    finally:
        torch.set_autocast_cache_enabled(before)
