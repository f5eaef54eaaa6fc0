"""vmap over control flow, held against a loop over the rows: the conformance suite, and what torch.vmap can do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests import oracle
from tests.conformance import suite
from tests.conformance.family import Case
from tests.conformance.runner import varied
from tests.over_rows import fit, judge, put_together

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script")
"""torch's own forward mode uses it when it is first used."""

ROWS = 4

EXPECTED: dict[str, dict[str, int]] = {
    "Joins": {"same": 36, "raises": 4, "no rows": 3, "D2S283": 21},
    "Returns": {"same": 18, "no rows": 1, "D2S283": 11},
    "Loops": {"same": 55, "raises": 5, "no rows": 1, "D2S283": 57},
    "Casts and shape": {"same": 35, "raises": 4, "no rows": 6, "D2S283": 13, "D2S284": 2},
    "Mutation": {"same": 29, "no rows": 3, "D2S283": 14, "D2S284": 9, "D2S285": 1},
    "Calls": {"same": 72, "raises": 8, "no rows": 5, "D2S283": 23},
    "Recursion": {"same": 1, "D2S283": 37},
    "Booleans": {"same": 26, "raises": 4, "no rows": 2, "D2S283": 11},
    "Errors": {"same": 5, "raises": 4},
    "Guards": {"no rows": 18},
    "In-graph training": {"same": 10, "no rows": 1, "D2S285": 1},
    "Under vmap": {},
    "Checkpoints": {},
    "Programs built by hand": {},
}
"""By family: what becomes of its batches; whatever is not named there is none."""


def batches(case: Case) -> list[list[Any]]:
    """The case's calls that can be rows of one batch, repeated or varied until there are enough."""
    found: list[list[Any]] = []
    generator = torch.Generator().manual_seed(0)
    for call in case.calls:
        if any(isinstance(one, torch.Tensor) for one in torch.utils._pytree.tree_leaves(list(call))):
            group = next((group for group in found if fit(group[0], call)), None)
            if group is None:
                found.append([call])
            else:
                group.append(call)
    for group in found:
        calls = len(group)
        while len(group) < ROWS:
            call = group[len(group) % calls]
            group.append(varied(call, case.search, generator) if case.search else call)
    return found


def outcome(case: Case, rows: list[Any]) -> str:
    def make() -> Any:
        torch.manual_seed(1234)
        return case.target() if case.kind == "module" else case.target

    try:
        return judge(make, rows, max(case.tolerance, 2e-6))
    except AssertionError as error:
        raise AssertionError(f"{case.id}: {error}") from error


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own, from 2.15 on
@pytest.mark.parametrize("family", suite.ORDER)
def test_conformance_programs_are_what_they_are_row_by_row(family: str) -> None:
    counts: Counter[str] = Counter()
    for one in suite.families():
        for case in one.cases if one.name == family else ():
            if case.kind != "scenario" and not case.refused:
                counts.update(outcome(case, rows) for rows in batches(case))
    print(family, dict(sorted(counts.items())))
    assert dict(counts) == EXPECTED[family]


# --- what torch.vmap and torch.func can do, around functions that decide on data


def steps(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Rows take different branches and numbers of iterations."""
    count = 0
    while x.abs().max() > 1:
        if x.sum() > 0:
            x = x / 2
        else:
            x = x * 0.75
        count += 1
    if count == 0:
        return x * 3, count
    return x.log1p() if x.min() > 0 else x.sin(), count


def by_row(function: Any, x: torch.Tensor) -> Any:
    return put_together([function(row) for row in x])


X = torch.tensor([[1.0, 2.0], [-4.0, 0.5], [0.5, 0.25], [-0.5, 0.75], [9.0, 7.0]])


def same(got: Any, expected: Any) -> None:
    oracle.same(got, expected, tolerance=2e-6)


def test_rows_part_and_meet() -> None:
    got = dy2static.vmap(steps)(X)
    same(got, by_row(steps, X))
    assert got[1].dtype is torch.int64 and len(set(got[1].tolist())) > 2


def test_torch_vmap_of_a_converted_function() -> None:
    converted = dy2static.to_static(steps)
    same(torch.vmap(converted)(X), by_row(steps, X))
    assert len(converted.programs) == 1
    same(converted(X[0])[0], steps(X[0])[0])
    assert len(converted.programs) == 1, "the Program of one row is that of a call with one row"


def test_in_dims_out_dims_and_keywords() -> None:
    def f(x: torch.Tensor, options: dict[str, Any], *, shift: torch.Tensor) -> dict[str, torch.Tensor]:
        if (x * options["scale"]).sum() > shift:
            return {"y": x + shift, "z": x}
        return {"y": x - options["scale"], "z": x * 2}

    options = {"scale": torch.tensor([1.0, -1.0]), "n": 2}
    shift = torch.tensor(0.5)
    got = dy2static.vmap(f, in_dims=(-1, {"scale": None, "n": None}), out_dims={"y": 1, "z": 0})(
        X.T, options, shift=shift)  # fmt: skip
    expected = put_together([f(row, options, shift=shift) for row in X])
    same(got, {"y": expected["y"].T, "z": expected["z"]})


def test_vmap_of_vmap() -> None:
    grid = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0)) * 3
    expected = put_together([by_row(steps, rows) for rows in grid])
    same(dy2static.vmap(dy2static.vmap(steps))(grid), expected)
    same(dy2static.vmap(dy2static.vmap(steps, in_dims=1), in_dims=2)(grid.permute(2, 1, 0)), expected)


def test_vmap_of_vmap_over_one_argument_each() -> None:
    def f(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, float]:
        total = 0.0
        for value in a:
            if value > b:
                total += value.item()
                b = b + 0.5
        return b, total

    a, b = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)), torch.linspace(-2, 1, 5)
    got = dy2static.vmap(dy2static.vmap(f, in_dims=(None, 0)), in_dims=(0, None))(a, b)
    same(got, put_together([put_together([f(x, y) for y in b]) for x in a]))


def test_chunks() -> None:
    same(dy2static.vmap(steps, chunk_size=2)(X), by_row(steps, X))


def test_randomness() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(2)
        while noise.sum() < 0.9:
            noise = noise + torch.rand(2)
        return x + noise

    with pytest.raises(RuntimeError, match="randomness error mode"):
        dy2static.vmap(f)(X)
    torch.manual_seed(0)
    alike = dy2static.vmap(f, randomness="same")(X) - X
    assert torch.allclose(alike, alike[:1].expand(5, 2), atol=1e-6)
    each = dy2static.vmap(f, randomness="different")(X) - X
    assert len({round(row.sum().item(), 5) for row in each}) == 5 and bool((each.sum(1) > 0.89).all())


def scalar_steps(x: torch.Tensor) -> torch.Tensor:
    return steps(x)[0].sum()


@pytest.mark.parametrize("make", [torch.func.grad, torch.func.jacrev, torch.func.jacfwd, torch.func.hessian])
def test_transforms_for_gradients_inside(make: Any) -> None:
    converted = dy2static.to_static(scalar_steps)
    expected = torch.stack([make(scalar_steps)(row) for row in X])
    same(torch.vmap(make(converted))(X), expected)
    same(dy2static.vmap(make(converted))(X), expected)


def test_gradients_around() -> None:
    converted = dy2static.to_static(scalar_steps)
    expected = torch.stack([torch.func.grad(scalar_steps)(row) for row in X])
    same(torch.func.grad(lambda x: torch.vmap(converted)(x).sum())(X), expected)
    leaf = X.clone().requires_grad_()
    dy2static.vmap(scalar_steps)(leaf).sum().backward()
    assert leaf.grad is not None
    same(leaf.grad, expected)
    tangents = torch.func.jvp(torch.vmap(converted), (X,), (torch.ones_like(X),))[1]
    same(tangents, expected.sum(1))


def test_gradients_for_each_sample() -> None:
    def step(weight: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = (weight @ x - y).square()
        while loss > 1:
            loss = loss * 0.5
        (gradient,) = torch.autograd.grad(loss, weight)
        return gradient

    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, generator=generator, requires_grad=True)
    x, y = torch.randn(8, 3, generator=generator) * 2, torch.randn(8, generator=generator)
    got = dy2static.vmap(step, (None, 0, 0))(weight, x, y)
    same(got.detach(), torch.stack([step(weight, *row) for row in zip(x, y)]))


class Net(torch.nn.Module):
    """A layer applied until its result is long enough."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        while y.norm() < 3:
            y = y * 1.5 + 0.1
        return y


def test_many_models_at_once() -> None:
    torch.manual_seed(0)
    nets = [Net() for _ in range(4)]
    state, _ = torch.func.stack_module_state(nets)
    base = dy2static.to_static(Net())
    own = {name: tensor.clone() for name, tensor in base.state_dict().items()}

    def call(parameters: Any, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.func.functional_call(base, parameters, (x,))
        return found

    got = torch.vmap(torch.vmap(call, (None, 0)), (0, None))(state, X)
    same(got, torch.stack([by_row(net, X) for net in nets]))
    got.sum().backward()
    mine = {name: tensor.grad for name, tensor in state.items()}
    torch.stack([net(row) for net in nets for row in X]).sum().backward()
    for name, grads in mine.items():
        same(grads, put_together([dict(net.named_parameters())[name].grad for net in nets]))
    same(dict(base.state_dict()), own)


def test_weights_that_all_rows_share_get_the_sum() -> None:
    torch.manual_seed(0)
    net, other = Net(), Net()
    other.load_state_dict(net.state_dict())
    dy2static.vmap(net)(X).sum().backward()
    by_row(other, X).sum().backward()
    for a, b in zip(net.parameters(), other.parameters()):
        oracle.same(a.grad, b.grad, tolerance=1e-5)


def test_a_loaded_layer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net()
    expected = by_row(net, X)
    spec = dy2static.InputSpec([2], "float32")
    dy2static.save(dy2static.to_static(net, input_spec=[spec]), tmp_path / "net")
    loaded = dy2static.load(tmp_path / "net")
    same(dy2static.vmap(loaded)(X), expected)
    same(torch.vmap(loaded)(X), expected)


# --- what a row is spared


def test_gradients_do_not_come_through_ways_that_a_row_does_not_go() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sqrt() + 1 / x if x > 0 else x * 2

    x = torch.tensor([4.0, 0.0, -1.0, 0.25], requires_grad=True)
    (got,) = torch.autograd.grad(dy2static.vmap(f)(x).sum(), x)
    same(got, torch.tensor([0.25 - 1 / 16, 2.0, 2.0, 1.0 - 16.0]))


def test_exceptions_are_those_of_the_rows_that_meet_them() -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        if n > 0:
            assert x.sum() > 0, f"row with {n.item()}"
            return x[int(n) - 1] * (6 // int(n))
        return x.sum()

    x, n = torch.ones(3, 2), torch.tensor([0, 1, 2])
    same(dy2static.vmap(f)(x, n), torch.tensor([2.0, 6.0, 3.0]))
    with pytest.raises(AssertionError, match="^row with 2$"):
        dy2static.vmap(f)(x * torch.tensor([[1.0], [1.0], [-1.0]]), n)
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
        dy2static.vmap(f)(x, torch.tensor([0, 1, 3]))


def test_no_row_takes_a_branch() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 100:
            raise ValueError("too much")
        while x.sum() < -100:
            x = x + 1
        return x

    same(dy2static.vmap(f)(X), X)
    with pytest.raises(ValueError, match="too much"):
        dy2static.vmap(f)(X * 50)


def test_numbers_are_pythons() -> None:
    def f(x: torch.Tensor) -> tuple[int, float, bool, int]:
        n = int(x)
        big = (n * 10**18) * 1000 // (7 * 10**18)
        return big, n / 3, n > 2, -n // 2 + n % -3

    x = torch.tensor([1.0, 5.0, -4.0])
    same(dy2static.vmap(f)(x), by_row(f, x))


def test_in_place_writes_are_those_of_each_row() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(3)
        for i in range(3):
            if x[i % 2] > i:
                out[i] = x[0] * i
            else:
                out[int(x[1] > 0)] += 1
                break
        x.mul_(2)
        x[x > 3] = 0
        return out

    rows, batch = X.clone(), X.clone()
    expected = by_row(f, rows)
    same(dy2static.vmap(f)(batch), expected)
    same(batch, rows)


def test_a_write_to_what_rows_share_is_torchs_error() -> None:
    shared = torch.zeros(2)
    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
        dy2static.vmap(lambda x, y: y.add_(x), (0, None))(X, shared)


def test_a_call_is_one_call() -> None:
    class Counts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.get_buffer("seen").add_(1)
            return x * 2 if x.sum() > 0 else x

    net = Counts()
    mapped = dy2static.vmap(net)
    mapped(X)
    mapped(X)
    assert net.calls == 2 and net.get_buffer("seen") == 2


# --- what is refused


class Doubled(torch.autograd.Function):
    """A gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 3


def other_sizes(x: torch.Tensor) -> torch.Tensor:
    y = x if x.sum() > 0 else x[:1]
    return y * 2


def list_grows(x: torch.Tensor) -> torch.Tensor:
    rows = []
    while x.sum() > 1:
        rows.append(x)
        x = x / 2
    return torch.stack(rows).sum(0) if rows else x


def masked(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].sum()


def said(x: torch.Tensor) -> torch.Tensor:
    print(x.sum().item())
    return x


def through_data(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    if y.sum() > 0:
        y.data.mul_(2)
    return y * y


def own_gradient(x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = Doubled.apply(x)
    return found


@pytest.mark.parametrize(
    ("function", "code", "line"),
    [
        (other_sizes, "D2S283", "y = x if x.sum() > 0 else x[:1]"), (masked, "D2S283", "return x[x > 0].sum()"),
        (list_grows, "D2S283", "while x.sum() > 1:"), (said, "D2S284", "print(x.sum().item())"),
        (through_data, "D2S285", "y.data.mul_(2)"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_for_many_rows_is_refused_at_its_line(function: Any, code: str, line: str) -> None:
    with pytest.raises(dy2static.TraceError) as caught:
        dy2static.vmap(function)(X.clone().requires_grad_())
    assert caught.value.code == code and caught.value.hint
    assert caught.value.location is not None and caught.value.location.text.strip() == line


def test_what_is_refused_for_gradients_runs_without() -> None:
    same(dy2static.vmap(through_data)(X), by_row(through_data, X))


def test_functions_with_gradients_of_their_own() -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = own_gradient(x) * w
        while y.abs().max() > 4:
            y = own_gradient(y) * 0.2
        return y if y.sum() > 0 else own_gradient(w) - y

    results = []
    for call in (dy2static.vmap(f, (0, None)), lambda x, w: torch.stack([f(row, w) for row in x])):
        x, w = X.clone().requires_grad_(), torch.tensor([0.5, 2.0], requires_grad=True)
        got = call(x, w)
        results.append([got.detach(), *torch.autograd.grad(got.sum(), (x, w))])
    same(*results)
    converted = dy2static.to_static(lambda x: f(x, X[0]).sum())
    rows = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad(torch.stack([f(row, X[0]) for row in rows]).sum(), rows)
    same(torch.vmap(torch.func.grad(converted))(X), expected)


def test_tensors_of_a_vmap_around_in_closures() -> None:
    def outer(x: torch.Tensor) -> torch.Tensor:
        def inner(y: torch.Tensor) -> torch.Tensor:
            return y + x if y.sum() > x.sum() else y * x

        found: torch.Tensor = torch.vmap(dy2static.to_static(inner))(X)
        return found

    expected = [[y + x if y.sum() > x.sum() else y * x for y in X] for x in X]
    same(torch.vmap(outer)(X), torch.stack([torch.stack(rows) for rows in expected]))


def test_without_rows_nothing_is_decided() -> None:
    assert dy2static.vmap(lambda x: x * 2)(X[:0]).shape == (0, 2)
    with pytest.raises(dy2static.TraceError, match="nothing can be decided where there are no rows"):
        dy2static.vmap(steps)(X[:0])


def test_a_value_stored_for_each_row_is_refused() -> None:
    class Remembers(torch.nn.Module):
        last: Any = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x
            return x

    net = Remembers()
    with pytest.raises(dy2static.TraceError, match=r"\[D2S284\] under vmap, what is stored in attribute 'last'"):
        dy2static.vmap(net)(X)
    assert net.last is None


def test_vmap_inside_a_converted_function_is_refused() -> None:
    mapped = dy2static.vmap(steps)
    with pytest.raises(dy2static.TraceError, match="D2S271"):
        dy2static.to_static(lambda x: mapped(x))(X)


def test_a_function_that_cannot_be_traced_runs_as_it_is_where_that_is_allowed() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        dy2static.vmap(lambda row: row)(x[None])
        return x * 2

    converted = dy2static.to_static(f, full_graph=False)
    with pytest.warns(dy2static.EagerWarning):
        same(torch.vmap(converted)(X), X * 2)


def test_without_conversion_torch_decides() -> None:
    converted = dy2static.to_static(steps)
    dy2static.enable_to_static(False)
    try:
        with pytest.raises(RuntimeError, match="data-dependent control flow"):
            torch.vmap(converted)(X)
    finally:
        dy2static.enable_to_static(True)
