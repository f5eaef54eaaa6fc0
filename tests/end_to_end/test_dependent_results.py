"""Results of one call that depend on each other: the graph between them is eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from runtime import recompute
from tests.oracle import same


def used_twice(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = h * h + x
    return h, y


def hidden_between(x: torch.Tensor, n: torch.Tensor) -> Any:
    a = torch.exp(x)
    h = torch.sin(a)
    z = torch.cos(x)
    y = h * a * z
    return h, y, y * h, z


def before_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.tanh(x)
    if h.sum() > n:
        y = h * 2
    else:
        y = h * x
    return h, y


def after_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x
    for _ in range(n.item()):
        h = torch.tanh(h * 1.1)
    y = h.square().sum()
    return h, y


def before_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.tanh(x)
    y = x
    for _ in range(n.item()):
        y = torch.sin(y * h)
    return {"h": h, "y": [y, y * h]}


def list_and_its_sum(x: torch.Tensor, n: torch.Tensor) -> Any:
    parts = []
    for i in range(n.item()):
        parts.append(torch.sin(x * i))
    return parts, torch.stack(parts).square().sum()


def one_of_two(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    b = h
    if n > 2:
        b = h * 2
    return h, b * h


def sometimes(x: torch.Tensor, n: torch.Tensor) -> Any:
    if n > 2:
        h = torch.sin(x)
    else:
        h = torch.ones_like(x)
    y = h * h
    return h, y + x, y


def given_on_one_path(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = h if n > 1 else h.exp()
    return h, y


def view_on_one_path(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    v = h[:]
    y = h
    if n > 1:
        y = v
    return v, y, x + v


def view_given_by_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    v = h[1:]
    y = h[:-1]
    for _ in range(n.item()):
        y = v
    return v, y, v.sum() * y


def detached_view_on_one_path(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = torch.cos(x)
    if n > 1:
        y = h[:].detach()
    return h, y, h * 2


def given_through_two_branches(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    r = h.flip(0)
    if n > 1:
        h = h + x
    if n > 0:
        h = h.exp() * r
    return h, r, x + h


def view_of_a_view_after_what_nobody_reads(x: torch.Tensor, n: torch.Tensor) -> Any:
    h, b = torch.sin(x), x * 2
    r = torch.ones(()) * h
    r = b[:]
    q = r[:]
    return h, q, r, x + h


def given_by_a_branch_of_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = h.exp()
    for _ in range(n.item()):
        if y.sum() > 2:
            y = h
    return h, y, h * 2


def passed_on_in_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    a, b, c = h.exp(), h.cos(), h
    for _ in range(n.item()):
        a, b, c = b, c, c
    return h, a, b


def given_or_computed_in_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = h
    for _ in range(n.item()):
        y = torch.cos(y)
    return h, y


def with_a_mask(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.nn.functional.dropout(torch.sin(x), 0.5)
    y = torch.nn.functional.dropout(h * h, 0.5)
    return h, y, torch.rand(2)


def recomputed(x: torch.Tensor, n: torch.Tensor) -> Any:
    with recompute():
        h = torch.tanh(torch.sin(x))
    with recompute():
        y = torch.exp(torch.sin(h)) * x
    return h, y


def detached_too(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    return h, h.detach(), h.detach() * h


def written_after(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = h.clone()
    y += h
    y *= x
    return h, y


def three_in_a_row(x: torch.Tensor, n: torch.Tensor) -> Any:
    a = torch.sin(x)
    b = torch.tanh(a * x)
    c = a * b + x
    return [a, (b, c), c.sum()]


def grad_inside(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = (h * h).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return h, g, g * h


def given_by_a_branch_of_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = torch.ones(2, 2)
    if n > 0:
        if n < 2:
            y = h
        if y.sum() > 100:
            y = y * 2
    return h * 3, y


def given_in_a_loop_and_passed_on_by_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    y = torch.ones(2, 2)
    for _ in range(n.item()):
        if n < 2:
            y = h
        while y.sum() > 100:
            y = y / 2
    return h * 3, y


def put_into_a_list_on_one_path(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    ys = [x.cos()]
    if n < 2:
        ys.append(h)
    return h * 3, ys[-1]


def the_list_itself(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    ys = [x.cos()]
    if n < 2:
        ys.append(h)
    return h * 3, ys


def taken_out_of_a_list(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    ys = [x.cos(), h]
    for _ in range(n.item() - 1):
        ys.append(x * 2)
    y = ys.pop()
    return h * 3, y, ys


def the_states_of_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    states = [torch.sin(x)]
    for _ in range(n.item()):
        states.append(states[-1].cos())
    return states[0] * 3, states[0], states[-1]


def one_value_in_each_iteration(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    ys = []
    for _ in range(n.item()):
        ys.append(h if n < 2 else x * 2)
    return h * 3, ys[0]


def of_a_list_that_a_branch_extends(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    ys = [x.cos()]
    for _ in range(n.item()):
        if n < 2:
            ys = [*ys, h]
        else:
            ys = [h] + ys[:1]
    return h * 3, ys[0], ys[-1]


FAMILY = [
    given_by_a_branch_of_a_branch, given_in_a_loop_and_passed_on_by_a_branch, put_into_a_list_on_one_path,
    the_list_itself, taken_out_of_a_list, the_states_of_a_loop, one_value_in_each_iteration,
    of_a_list_that_a_branch_extends,
    used_twice, hidden_between, before_a_branch, after_a_loop, before_a_loop, list_and_its_sum, one_of_two, sometimes,
    with_a_mask, recomputed, detached_too, written_after, three_in_a_row, grad_inside,
    given_on_one_path, given_or_computed_in_a_loop, view_on_one_path, view_given_by_a_loop, detached_view_on_one_path,
    given_by_a_branch_of_a_loop, passed_on_in_a_loop, given_through_two_branches,
    view_of_a_view_after_what_nobody_reads,
]  # fmt: skip


def flat(value: Any) -> list[torch.Tensor]:
    """The tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [tensor for item in items for tensor in flat(item)]


def observed(function: Callable[..., Any], steps: int, *, double: bool = True) -> list[Any]:
    """Everything a caller can ask of the graph between results."""
    torch.manual_seed(0)
    x = torch.tensor([[0.3, 0.7], [0.2, -0.5]], dtype=torch.double).requires_grad_()
    results = flat(function(x, torch.tensor(steps)))
    seen: list[Any] = [tensor.requires_grad for tensor in results]
    active = [tensor for tensor in results if tensor.requires_grad]
    order: list[int] = []
    for index, tensor in enumerate(active):
        tensor.retain_grad()
        tensor.register_hook(lambda grad, index=index: order.append(index))
    loss = sum((index + 1) * tensor.square().sum() for index, tensor in enumerate(active))
    assert isinstance(loss, torch.Tensor)
    loss.backward(retain_graph=True)
    seen += [x.grad, *(tensor.grad for tensor in active), sorted(order)]
    for index, tensor in enumerate(active):
        others = [x, *active[:index], *active[index + 1 :]]
        seen += torch.autograd.grad(tensor.sum(), others, allow_unused=True, retain_graph=True)
        seen += torch.autograd.grad(tensor.sum() + loss, [active[0], x], retain_graph=True)
    loss.backward()
    seen += [x.grad, *(tensor.grad for tensor in active), torch.rand(())]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    return [*seen, *(twice(function, steps) if double else ())]


def twice(function: Callable[..., Any], steps: int) -> list[Any]:
    """Gradients of results that were differentiated again."""
    torch.manual_seed(0)
    x = torch.tensor([[0.3, 0.7], [0.2, -0.5]], dtype=torch.double).requires_grad_()
    active = [tensor for tensor in flat(function(x, torch.tensor(steps))) if tensor.requires_grad]
    loss = sum((index + 1) * tensor.square().sum() for index, tensor in enumerate(active))
    first = torch.autograd.grad(loss, [x, *active], create_graph=True)
    total = sum(one.square().sum() for one in first)
    return [*first, *torch.autograd.grad(total, x)]


@pytest.mark.parametrize("function", FAMILY)
def test_the_graph_between_results(function: Callable[..., Any]) -> None:
    converted = to_static(function)
    double = function is not grad_inside
    for steps in (1, 3):
        expected = observed(function, steps, double=double)
        same(observed(converted, steps, double=double), expected, tolerance=1e-5)


class Net(nn.Module):
    """Keeps what it computes on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2).double()
        self.head = nn.Linear(2, 2).double()
        self.kept: list[torch.Tensor] = []
        self.register_buffer("state", torch.zeros(2, 2, dtype=torch.double))

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        """The head's result; features and the hidden state are kept."""
        self.features = torch.tanh(self.inner(x))
        self.kept = [self.features * 2]
        return self.head(self.kept[0] * self.features) * n


def of_a_net(net: nn.Module) -> Callable[..., Any]:
    def call(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = net(x, n)
        return y, net.features, *net.kept

    return call


@pytest.mark.parametrize("loaded", [False, True])
def test_results_that_are_kept_as_attributes(loaded: bool, tmp_path: Path) -> None:
    net = Net()
    static: Any = to_static(copy.deepcopy(net))
    if loaded:
        args = (torch.zeros(2, 2, dtype=torch.double).requires_grad_(), torch.tensor(2))
        dy2static.save(copy.deepcopy(net), tmp_path / "net", input_spec=list(args))
        static = dy2static.load(tmp_path / "net")
    same(observed(of_a_net(static), 2), observed(of_a_net(net), 2), tolerance=1e-5)


def test_an_argument_that_is_written_and_read_after() -> None:
    def write(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return torch.sin(x)

    found = []
    for road in (write, to_static(write)):
        leaf = torch.tensor([0.3, 0.7]).requires_grad_()
        x = leaf.clone()
        y = road(x)
        x.retain_grad()
        (shares, whole) = torch.autograd.grad(y.sum() + x.sum(), [x, leaf], retain_graph=True)
        y.sum().backward()
        found.append((shares, whole, x.grad, leaf.grad))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


def test_a_written_buffer_that_is_read_after() -> None:
    def write(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        state.copy_(torch.sin(x))
        return state * x

    found = []
    for road in (write, to_static(write)):
        x, state = torch.tensor([0.3, 0.7]).requires_grad_(), torch.zeros(2)
        y = road(x, state)
        found.append(torch.autograd.grad(y.sum() + state.sum(), [state, x]))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


def test_one_random_run() -> None:
    """Cutting runs nothing twice."""
    def noisy(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.sin(x) * torch.rand_like(x)
        return h, h * torch.rand_like(x)

    found = []
    for road in (noisy, to_static(noisy)):
        torch.manual_seed(3)
        x = torch.ones(4).requires_grad_()
        h, y = road(x)
        found.append((h, y, *torch.autograd.grad(y.sum(), [h, x]), torch.rand(2)))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_what_was_written_since_is_seen() -> None:
    converted = to_static(used_twice)
    for road in (used_twice, converted):
        h, y = road(torch.ones(2).requires_grad_(), torch.tensor(1))
        with torch.no_grad():
            h.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def count_nodes(result: torch.Tensor) -> int:
    seen: set[Any] = set()
    todo = [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return sum(type(node).__name__ == "ProgramNodeBackward" for node in seen)


def test_only_results_that_depend_on_each_other_are_cut() -> None:
    def apart(x: torch.Tensor) -> Any:
        h = torch.sin(x)
        return h * 2, h * 3, torch.cos(x)

    def classes(x: torch.Tensor) -> Any:
        h = torch.sin(x)
        return h, h.argmax(), h.detach() * 2

    def one_after_the_other(x: torch.Tensor) -> Any:
        h = torch.sin(x)
        return h, h * 2, h * 3, x * 2

    x = torch.ones(3).requires_grad_()
    for function, nodes in ((apart, 1), (classes, 1), (one_after_the_other, 2)):
        results = to_static(function)(x)
        assert max(count_nodes(result) for result in results) == nodes, function.__name__


# -- where a cut is impossible ----------------------------------------------------------------------------------------


def both_out_of_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = y = x
    for _ in range(n.item()):
        h = torch.tanh(y)
        y = h * h
    return h, y


def both_out_of_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    if n > 0:
        h = torch.tanh(x)
        y = h * h
    else:
        h, y = x, x
    return h, y


def steps_of_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    states = []
    h = x
    for _ in range(n.item()):
        h = torch.tanh(h * 1.1)
        states.append(h)
    return states


TOGETHER = [both_out_of_a_loop, both_out_of_a_branch, steps_of_a_loop]


@pytest.mark.parametrize("function", TOGETHER)
def test_results_of_one_construct_are_results_of_one_node(function: Callable[..., Any]) -> None:
    """The documented difference: no result is an ancestor of another; what reaches the arguments is right."""
    found = []
    for road in (function, to_static(function)):
        x = torch.tensor([0.3, 0.7]).requires_grad_()
        first, last = flat(road(x, torch.tensor(2)))
        between = torch.autograd.grad(last.sum(), first, allow_unused=True, retain_graph=True)[0]
        (whole,) = torch.autograd.grad(last.sum() + first.sum(), x)
        found.append((between, whole))
    assert found[0][0] is not None and found[1][0] is None
    torch.testing.assert_close(found[0][1], found[1][1])


@pytest.mark.parametrize("function", [*FAMILY, *TOGETHER])
def test_the_switch_gives_eagers_graph(function: Callable[..., Any]) -> None:
    double = function is not grad_inside
    for steps in (1, 3):
        found = observed(to_static(function, autograd="eager"), steps, double=double)
        same(found, observed(function, steps, double=double), tolerance=1e-5)


@pytest.mark.parametrize("function", TOGETHER)
def test_the_switch_of_a_loaded_function(function: Callable[..., Any], tmp_path: Path) -> None:
    args = (torch.zeros(2, 2, dtype=torch.double).requires_grad_(), torch.tensor(2))
    dy2static.save(to_static(function), tmp_path / "f", input_spec=list(args))
    loaded = dy2static.load(tmp_path / "f", autograd="eager")
    same(observed(loaded, 2), observed(function, 2), tolerance=1e-5)
    same(observed(copy.deepcopy(loaded), 2), observed(function, 2), tolerance=1e-5)


def test_the_switch_takes_two_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="autograd is 'program' or 'eager', not 'torch'"):
        to_static(used_twice, autograd="torch")
    with pytest.raises(ValueError, match="autograd is 'program' or 'eager', not None"):
        dy2static.load(tmp_path / "f", autograd=None)


def test_the_switch_and_the_order_of_hooks() -> None:
    """Hooks that the function sets inside a loop, and anomaly mode: eager's, where autograd itself runs."""
    def hooked(x: torch.Tensor, n: torch.Tensor) -> Any:
        states = []
        h = x
        for _ in range(n.item()):
            h = torch.tanh(h)
            states.append(h)
        return states

    orders = []
    for road in (hooked, to_static(hooked, autograd="eager")):
        order: list[str] = []
        x = torch.tensor([0.3, 0.7]).requires_grad_()
        states = road(x, torch.tensor(3))
        for index, state in enumerate(states):
            state.register_hook(lambda grad, index=index, order=order: order.append(f"hook {index}"))
            state.retain_grad()
        x.register_hook(lambda grad, order=order: order.append("x"))
        states[-1].sum().backward()
        orders.append((order, [state.grad for state in states]))
    assert orders[0][0] == orders[1][0] == ["hook 2", "hook 1", "hook 0", "x"]
    for one, other in zip(orders[0][1], orders[1][1]):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore:Error detected in SqrtBackward0", "ignore:Anomaly Detection has been enabled")
def test_the_switch_and_anomaly_mode() -> None:
    def root(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > -1:
            x = torch.sqrt(x) * 0
        return x

    for road in (root, to_static(root, autograd="eager")):
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0.*nan values"):
            road(torch.zeros(2).requires_grad_()).sum().backward()


# -- results that are views of each other -----------------------------------------------------------------------------


def view_and_base(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    return h, h.view(-1), h[0]


def only_a_view(x: torch.Tensor, n: torch.Tensor) -> Any:
    return torch.sin(x).transpose(0, 1)


def parts(x: torch.Tensor, n: torch.Tensor) -> Any:
    return (x * 2).split(1)


def view_of_a_view(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.exp(x)
    row = h[1]
    return row, row[:1], (row * h).sum()


def computed_from_a_view(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.sin(x)
    v = h.t()
    return v, v @ x, h


def row_at_a_number(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = torch.tanh(x)
    return h[n.item() - 1], h


def view_of_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    if n > 1:
        h = x * 2
    else:
        h = torch.zeros(2, 2, dtype=x.dtype)
    return h.view(4), h * x


VIEWS = [view_and_base, only_a_view, parts, view_of_a_view, computed_from_a_view, row_at_a_number, view_of_a_branch]


@pytest.mark.parametrize("function", VIEWS)
@pytest.mark.parametrize("autograd", ["program", "eager"])
def test_results_that_are_views(function: Callable[..., Any], autograd: str) -> None:
    converted = to_static(function, autograd=autograd)
    steps = (1, 2)
    for step in steps:
        same(observed(converted, step), observed(function, step), tolerance=1e-5)


def written(function: Callable[..., Any], which: int, steps: int) -> list[Any]:
    """What becomes of the others, and the gradient, when the caller writes one of the results."""
    x = torch.tensor([[0.3, 0.7], [0.2, -0.5]], dtype=torch.double).requires_grad_()
    results = flat(function(x, torch.tensor(steps)))
    try:
        results[which].mul_(3)
        total = sum((index + 1) * (result * 2).sum() for index, result in enumerate(results))
        assert isinstance(total, torch.Tensor)
        gradients = list(torch.autograd.grad(total, x))
    except RuntimeError as error:
        return ["inplace" in str(error) or "in-place" in str(error)]
    return [*results, *gradients]


@pytest.mark.parametrize("function", VIEWS)
def test_writing_a_result_shows_in_its_views(function: Callable[..., Any]) -> None:
    converted = to_static(function)
    for step in (1, 2):
        for which in range(len(flat(function(torch.ones(2, 2, dtype=torch.double), torch.tensor(step))))):
            same(written(converted, which, step), written(function, which, step), tolerance=1e-5)


def test_the_same_result_twice_and_an_argument() -> None:
    def twice_the_same(x: torch.Tensor) -> Any:
        h = torch.sin(x)
        return h, [h], x, h * x

    x = torch.ones(3).requires_grad_()
    h, (again,), given, y = to_static(twice_the_same)(x)
    assert h is again and given is x
    for tensor in (h, x):
        (found,) = torch.autograd.grad(y.sum() + tensor.sum(), tensor, retain_graph=True)
        torch.testing.assert_close(found, 1 + (x if tensor is h else torch.sin(x) + x * torch.cos(x)).detach())


@pytest.mark.parametrize("autograd", ["program", "eager"])
def test_a_path_that_gives_an_earlier_value_as_it_is(autograd: str) -> None:
    def perhaps(x: torch.Tensor, n: torch.Tensor) -> Any:
        q = torch.sin(x)
        p = q[0] * 2
        if n > 1:
            q = torch.tanh(q) * p
        return p, q

    def around_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
        q = torch.sin(x)
        p = q * 2
        while n > 1:
            q = q * p
            n = n - 1
        return p, q, p * q

    for function in (perhaps, around_a_loop):
        converted = to_static(function, autograd=autograd)
        for step in (1, 2):
            same(observed(converted, step), observed(function, step), tolerance=1e-5)


@pytest.mark.parametrize("needs", [False, True])
def test_results_that_need_a_gradient_of_leaves_made_inside_alone(needs: bool) -> None:
    """``p`` needs a gradient, and no result leads there: each result is one of a leaf that the call made."""

    def made(x: torch.Tensor, p: torch.Tensor) -> Any:
        q = x + torch.ones(3, requires_grad=True).sum()
        return q, -q

    def copied(x: torch.Tensor, p: torch.Tensor) -> Any:
        q = x + p.detach().clone().requires_grad_().sum()
        return q, -q, torch.sin(-q)

    def as_parameter(x: torch.Tensor, p: torch.Tensor) -> Any:
        with torch.no_grad():
            inner = p * 1
        q = x + nn.Parameter(inner)
        return q, q * (p > 0)

    def beside(x: torch.Tensor, p: torch.Tensor) -> Any:
        q = x + torch.ones(3, requires_grad=True).sum() + p.detach()
        return q, -q, p * 2

    for function in (made, copied, as_parameter, beside):
        converted = to_static(function)
        for _ in range(2):
            x, p = torch.ones(3), torch.ones(3, requires_grad=needs)
            got, expected = converted(x, p), function(x, p)
            assert [one.requires_grad for one in got] == [one.requires_grad for one in expected]
            same(got, expected)
            found = torch.autograd.grad(got[1].sum(), got[0])
            same(found, torch.autograd.grad(expected[1].sum(), expected[0]))


# -- results under two names ------------------------------------------------------------------------------------------

SAME: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "float": torch.Tensor.float,
    "to": lambda x: x.to(torch.float32),
    "contiguous": torch.Tensor.contiguous,
    "cpu": torch.Tensor.cpu,
    "plus": lambda x: +x,
    "view": lambda x: x.view(3, 3),
    "type_as": lambda x: x.type_as(x),
    "nothing": lambda x: x,
}


def all_of_it(x: torch.Tensor, y: torch.Tensor, same: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    q = torch.tanh(x[:, None] + y)
    p = q * q
    r = torch.eye(3) * 0.5
    r = r + torch.cosine_similarity(q, r)
    r = r + (same(r) * p).mean()
    return p, q, r


def both_names(x: torch.Tensor, y: torch.Tensor, same: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    q = x[:, None] / y
    p = q * 2
    return p, (same(p) / q).sqrt() + p / same(q), same(q) * p


def of_the_first(x: torch.Tensor, y: torch.Tensor, same: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    p = torch.exp(x[:, None] + y)
    r = p.sqrt()
    return p, r / same(r) + same(p).log(), r * same(p)


def after_a_branch(x: torch.Tensor, y: torch.Tensor, same: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    q = torch.tanh(x[:, None] + y)
    if y.sum() > 0:
        q = q * 2
    r = q / (1 + q * q)
    return q, r + (same(r) * same(q)).mean(), r * r


@pytest.mark.parametrize("asked", ["abc", "ab", "ac", "bc", "a", "b", "c"])
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("function", [all_of_it, both_names, of_the_first, after_a_branch],
                         ids=lambda one: one.__name__)  # fmt: skip
def test_values_under_two_names(function: Callable[..., Any], name: str, asked: str) -> None:
    """The gradients of both names count, whichever results a gradient is asked of."""
    def run(called: Callable[..., Any]) -> list[torch.Tensor | None]:
        x, y = torch.tensor([0.3, -0.7, 1.2], requires_grad=True), torch.tensor([0.5, 0.9, -0.4], requires_grad=True)
        results = called(x, y)
        weights = torch.arange(1.0, 10.0).reshape(3, 3)
        sum((results["abc".index(one)] * weights).sum() for one in asked).backward()
        return [x.grad, y.grad]

    torch.testing.assert_close(
        run(to_static(lambda x, y: function(x, y, SAME[name]))), run(lambda x, y: function(x, y, SAME[name])),
        equal_nan=True)  # fmt: skip


class Normed(nn.Module):
    """Results that depend on each other, of a module that counts its calls and keeps statistics of them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.linear = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        h = self.norm(x)
        self.seen += h.detach().abs().sum(0)
        y = self.linear(h) * self.seen
        return h, y, y + h


def _grads_again(module: nn.Module, called: Callable[..., Any], x: torch.Tensor, way: str) -> list[Any]:
    """The gradients of two calls, each asked in a way in which backward computes the call again."""
    found: list[Any] = []
    inputs = [x, *module.parameters()]
    for _ in range(2):
        results = called(x)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=way.startswith("autocast")):
            loss = sum(one.square().sum() for one in results)
            keep = way.endswith("twice")
            found += torch.autograd.grad(loss, inputs, create_graph="create" in way, retain_graph=keep or None)
            if keep:
                found += torch.autograd.grad(loss, inputs)
    return [one.detach() for one in (*found, *module.buffers())]


@pytest.mark.parametrize("way", ["plain", "twice", "autocast", "autocast twice", "create graph", "create graph twice"])
def test_calls_computed_again_by_several_nodes(way: str) -> None:
    """What a module writes while it is computed again for one node is not what the next node begins with."""
    torch.manual_seed(0)
    eager = Normed()
    static = copy.deepcopy(eager)
    x = torch.randn(4, 3, requires_grad=True)
    same(_grads_again(static, to_static(static), x, way), _grads_again(eager, eager, x, way), tolerance=1e-5)
