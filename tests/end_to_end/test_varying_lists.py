"""Lists of tensors among the arguments whose length changes: a few Programs for all, and eager's results and writes."""

from __future__ import annotations

import warnings

import pytest
import torch

import dy2static
from dy2static import to_static
from tests.end_to_end.varying import MOST, X, alike, outcome, shows


def tensors(count: int, needs_gradient: bool = False) -> list[torch.Tensor]:
    return [torch.tensor([1.0, -2.0, 3.0 + k], requires_grad=needs_gradient) for k in range(count)]


def pop_and_append(xs):
    last = xs.pop()
    xs.append(last * 2)
    xs.insert(0, xs[0])
    return len(xs)


def sum_on_paths(xs):
    total = 0
    for k, x in enumerate(reversed(xs)):
        if x.sum() > 3:
            total = total + x * k
    return total, len(xs)


def take_apart(xs):
    first, *rest = xs
    return first + len(rest), [x + 1 for x in rest]


def choose_by_length(xs):
    if len(xs) > 2:
        return torch.stack(xs).mean(0)
    return xs[0] * 2


def write_each(xs):
    for k, x in enumerate(xs):
        x.add_(k)
    return xs[0]


def write_a_view(xs):
    xs[0][:2].mul_(2)
    return xs[0] + 1


def write_one_of_two(xs):
    y = xs[0] if xs[0].sum() > 0 else torch.zeros(3)
    y.add_(1)
    return y


def write_in_a_loop(xs):
    y = xs[-1]
    k = 0
    while y.sum() < 20:
        y += 1
        k += 1
    return k


def go_backward(xs):
    sum((x * x).sum() for x in xs).backward()


def go_backward_from_one(xs):
    (xs[0] * xs[0]).sum().backward()
    return len(xs)


def hang(xs):
    xs[-1].note = 3
    return len(xs)


def write_without_gradients(xs):
    with torch.no_grad():
        for x in xs:
            x.sub_(1)
    return len(xs)


def write_by_other_names(xs):
    torch.add(xs[0], 1, out=xs[-1])
    torch._foreach_add_(xs, 1.0)
    xs[0].detach().mul_(2)


def write_an_element(xs):
    xs[0][0] = 5.0
    return xs[-1]


def write_a_cell(xs):
    xs[0] = xs[-1] * 2
    return xs[0]


def write_a_copy(xs):
    y = xs[0].clone()
    y.add_(1)
    y[:2] += xs[-1][:2]
    return y


LIST_USES = {
    "sum": lambda xs: sum(x.sum() for x in xs),
    "cat": lambda xs: (torch.cat(xs), torch.stack(xs, 1), len(xs)),
    "each": lambda xs: [x * 2 for x in xs],
    "items": lambda xs: (xs[0], xs[-1], xs[1:]),
    "itself": lambda xs: xs,
    "copy": lambda xs: (list(xs), tuple(xs)),
    "length": lambda xs: len(xs),
    "not there": lambda xs: xs[3],
    "zip": lambda xs: [x * w for x, w in zip(xs, [1.0, 2.0, 3.0])],
    "truth": lambda xs: xs[0] if xs else None,
    "leaves": lambda xs: [x.is_leaf for x in xs] + [xs[0].requires_grad, xs[0].shape],
    "view": lambda xs: (xs[0][:2], xs[0].view(3, 1), xs[0].detach()),
    "keys": lambda xs: dict(enumerate(xs)), "identity": lambda xs: xs[0] is xs[-1],
    "gradients": lambda xs: [x.grad for x in xs],
    "pop": pop_and_append, "paths": sum_on_paths, "apart": take_apart, "by length": choose_by_length,
    "write": write_each, "write view": write_a_view, "write one": write_one_of_two, "write loop": write_in_a_loop,
    "write copy": write_a_copy, "backward": go_backward, "backward of one": go_backward_from_one, "hang": hang,
    "no_grad": write_without_gradients, "other names": write_by_other_names, "element": write_an_element,
    "cell": write_a_cell, "hung": lambda xs: xs[0] * getattr(xs[0], "hung", 1.0),
    "hung on all": lambda xs: [hasattr(x, "hung") for x in xs],
    "gradient of": lambda xs: torch.autograd.grad(sum((x * x).sum() for x in xs), xs),
    "needs": lambda xs: [x.requires_grad for x in xs], "set": lambda xs: len({id(x) for x in xs}),
    "sizes": lambda xs: (sum(x.shape[0] for x in xs), xs[0].stride(), xs[0].dtype, xs[0].device),
    "shown": lambda xs: f"{len(xs)}", "sorted": lambda xs: sorted(xs, key=lambda x: x.sum().item()),
    "grid": lambda xs: torch.meshgrid(*xs, indexing="ij")[0].sum(), "repeat": lambda xs: (xs * 2)[-1] + 1,
    "plus": lambda xs: len(xs + [xs[0]]), "in": lambda xs: [xs[0] in [x] for x in xs[:1]],
}
FEW = {"sum", "cat", "each", "items", "itself", "copy", "length", "not there", "zip", "truth", "paths", "apart",
       "by length", "pop", "write copy"}  # fmt: skip


def places(value, inputs):
    """Which of the inputs the tensors in a result are, or show."""
    if isinstance(value, torch.Tensor):
        return [next((k for k, x in enumerate(inputs) if x is value), None), [shows(value, x) for x in inputs]]
    if isinstance(value, (list, tuple, dict)):
        return [places(one, inputs) for one in (value.values() if isinstance(value, dict) else value)]
    return None


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("name", LIST_USES)
def test_a_list_of_tensors(name, needs_gradient):
    f = LIST_USES[name]
    static = to_static(f)
    for count in (1, 2, 3, 5, 4, 1, 7, 2):
        found = []
        for g in (f, static):
            xs = tensors(count, needs_gradient)
            xs[0].hung = 3.0
            given = list(xs)
            result = outcome(g, (xs,), {})
            found.append((result, xs, given, places([result, xs], given), result is xs,
                          [(x.grad, x.is_leaf, getattr(x, "note", None)) for x in given]))  # fmt: skip
        assert alike(*found), (count, found)
    assert len(static.programs) <= (MOST if name in FEW else 8), len(static.programs)


@pytest.mark.slow
@pytest.mark.parametrize("taken", [
    lambda x: x.contiguous(), lambda x: x.to(torch.float32), lambda x: x.reshape(3, 1), lambda x: x.reshape(-1),
    lambda x: x.flatten(), lambda x: x.real, lambda x: x.squeeze(), lambda x: x[None], lambda x: x[...],
    lambda x: x.chunk(3)[1], lambda x: x.unbind()[0], lambda x: x.split(1)[2], lambda x: x.expand(1, 3)[0],
    lambda x: x.detach(), lambda x: x.float(), lambda x: x.cpu(), lambda x: x.view_as(x), lambda x: x.type_as(x),
    lambda x: torch.atleast_1d(x), lambda x: x if x.sum() > 0 else x * 2, lambda x: x.swapaxes(0, 0), lambda x: x.data,
    lambda x: torch.ravel(x), lambda x: x.narrow(0, 1, 2), lambda x: x.as_strided((2,), (1,)),
    lambda x: x.type(x.dtype),
    lambda x: [x, x * 2][0], lambda x: torch.as_tensor(x), lambda x: x.requires_grad_(False),
    lambda x: x.unflatten(0, (3, 1)), lambda x: torch.broadcast_to(x, (3,)), lambda x: x.masked_fill(x > 9, 0),
    lambda x: torch.nn.functional.dropout(x, 0.5, False), lambda x: torch.nn.Identity()(x),
])  # fmt: skip
def test_what_shows_an_item_is_written(taken):
    def write(xs):
        y = taken(xs[-1])
        y.add_(1)
        return y

    def give(xs):
        return taken(xs[0]), [taken(x) for x in xs]

    def write_in_a_loop(xs):
        k = 0
        for x in xs:
            while k < x.sum() and k < 6:
                taken(x).add_(1)
                k += 3
        return k

    for f in (write, give, write_in_a_loop):
        static = to_static(f)
        for count in (1, 2, 3, 5, 4):
            found = []
            for g in (f, static):
                xs = tensors(count)
                result = outcome(g, (xs,), {})
                found.append((result, places(result, xs), xs))
            assert alike(*found), (f.__name__, count, found)


def test_tensors_behind_a_star():
    def f(x, *others, **named):
        return torch.stack(others).sum(0) * x, len(others), sum(y.sum() for y in named["ys"])

    static = to_static(f)
    for count in (1, 2, 3, 4, 5, 6):
        args = (X[0], *tensors(count))
        assert alike(f(*args, ys=tensors(count)), static(*args, ys=tensors(count)))
    assert len(static.programs) <= MOST


@pytest.mark.parametrize("how", ["program", "eager"])
def test_gradients_of_lists(how):
    def f(batch, w):
        total = 0.0
        for x in batch["xs"]:
            total = total + (x * w).sum() * 0.5 if x.sum() > 3 else total - x.sum()
        return total + torch.cat(batch["xs"]).pow(2).sum()

    static = to_static(f, autograd=how)
    for count in (1, 2, 3, 4, 5):
        found = []
        for g in (f, static):
            xs, w = tensors(count, True), torch.ones(3, requires_grad=True)
            y = g({"xs": xs}, w)
            y.backward()
            found.append((y, w.grad, [x.grad for x in xs]))
        assert alike(*found)
    assert len(static.programs) <= MOST


def test_one_tensor_twice_in_a_list():
    static = to_static(lambda xs: sum((x * x).sum() for x in xs))
    for count in (1, 2, 3, 4, 5):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        static([x] * count).backward()
        assert torch.equal(x.grad, count * 2 * x.detach())
    assert len(static.programs) <= MOST
    f = LIST_USES["identity"]
    static = to_static(f)
    for count in (1, 2, 3, 4):
        assert static([X] * count) is f([X] * count) is True


def test_a_list_beside_what_shares_its_memory():
    def f(xs, y):
        y.add_(1)
        return sum(x.sum() for x in xs), y

    static = to_static(f)
    for count in (2, 3, 4, 5):
        found = []
        for g in (f, static):
            xs = tensors(count)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append((outcome(g, (xs, xs[0]), {}), outcome(g, (xs, torch.ones(3)), {}),
                              outcome(g, (xs, xs[0].view(3)), {}), xs))  # fmt: skip
        assert alike(*found)


def test_lists_that_are_not_alike():
    static = to_static(lambda xs: sum(x.sum() for x in xs))
    for count in range(1, 7):
        xs = [torch.ones(k + 1, dtype=torch.float32 if k % 2 else torch.float64) for k in range(count)]
        assert torch.equal(static(xs), sum(x.sum() for x in xs))
    assert torch.equal(static([torch.nn.Parameter(torch.ones(2))] * 2), torch.tensor(4.0))
    assert static([]) == 0


def test_a_module_of_a_list():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, xs, scale):
            return [self.linear(x) * scale for x in xs], len(xs)

    eager, static = Model(), to_static(Model())
    for count in (1, 2, 3, 4, 5, 6):
        for model in (eager, static):
            ys, _ = model(tensors(count), count / 2)
            sum(y.sum() for y in ys).backward()
        assert torch.equal(eager.linear.weight.grad, static.linear.weight.grad)
    assert len(static.forward.programs) <= 4


@pytest.mark.parametrize("backend", ["c", "auto"])
def test_lists_and_backends(backend):
    static = to_static(sum_on_paths, backend=backend)
    for count in (1, 2, 3, 4, 5, 6) * 3:
        assert alike(sum_on_paths(tensors(count)), static(tensors(count)))


def test_lists_that_calls_had_are_saved_as_before(tmp_path):
    def f(xs):
        return torch.cat(xs)

    static = to_static(f)
    for count in (1, 2, 3, 4):
        static(tensors(count))
    with pytest.raises(dy2static.SignatureError, match="D2S316"):
        dy2static.save(static, tmp_path / "f.d2s")
    dy2static.save(static, tmp_path / "f.d2s", input_spec=[[dy2static.InputSpec([3])] * 2])
    assert torch.equal(dy2static.load(tmp_path / "f.d2s")(tensors(2)), torch.cat(tensors(2)))
