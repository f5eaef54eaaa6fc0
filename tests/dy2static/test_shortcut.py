"""The short way to a Program: made for simple calls that come again, right in all others."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.func import vmap

from dy2static import InputSpec, enable_to_static, to_static
from dy2static.errors import SignatureError
from dy2static.shortcut import KEPT, MADE_AT
from runtime.autodiff import gradient_path
from tests.oracle import difference, same

X = torch.tensor([1.0, -2.0, 4.0])
TIMES = MADE_AT[0] + 2


def scaled(x, by=2.0, *, plus=None):
    if x.sum() > 0:
        x = x * by
    return x if plus is None else x + plus


def call(static, *args, **kwargs):
    for _ in range(TIMES):
        same(static(*args, **kwargs), static.function(*args, **kwargs))


def short(static):
    return len(static._dispatch.shortcuts)


def test_made_after_some_calls_and_used() -> None:
    static = to_static(scaled)
    for number in range(1, TIMES):
        static(X)
        assert short(static) == (number >= MADE_AT[0])
    found = static._dispatch.shortcuts[0].found
    before = found.found
    static(X)
    assert found.found == before  # it did not go the long way
    check = static._dispatch.shortcuts[0].check
    assert check(X) is not None and check(X.double()) is None


def test_arguments_of_many_kinds() -> None:
    static = to_static(scaled)
    for args in ((X,), (X, 3.0), (X, 3), (X, True), (X, 1.0), (X, 1), (X, -0.0), (X, float("nan")), (X,), (-X, 3)):
        call(static, *args)
    assert short(static) == KEPT
    call(static, X, plus=1.0)
    call(static, x=X)
    call(static, X[None])
    call(static, X.double())
    call(static, X.clone().requires_grad_())
    call(static, X[::2])
    call(static, nn.Parameter(X.clone()))
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        static(X, 1, 2)


def test_defaults_that_change() -> None:
    def f(x, by=2.0):
        return x * by

    static = to_static(f)
    call(static, X)
    f.__defaults__ = (5.0,)
    call(static, X)


def test_sizes_left_open() -> None:
    static = to_static(scaled)
    for size in (3, 4, 5, 6, 5, 1, 0, 4, 7):
        call(static, torch.rand(size))
        call(static, torch.rand(size, 2).t())
    limited = to_static(lambda x: x[:2] if x.shape[0] > 4 else x)
    for size in (3, 5, 6, 4, 2, 7, 1):
        call(limited, torch.rand(size))
    specified = to_static(scaled, input_spec=[InputSpec([None])])
    for size in (3, 4):
        call(specified, torch.rand(size))


def test_input_specs() -> None:
    """What fits the Program fits the specs; what does not is refused as before."""
    static = to_static(scaled, input_spec=[InputSpec([None]), 3.0])
    for size in (3, 4, 3, 5, 1):
        call(static, torch.rand(size), 3.0)
    assert short(static) and all(one.found.sizes[0] == (None,) for one in static._dispatch.shortcuts)
    for args, code in [((X[None], 3.0), "D2S302"), ((X.double(), 3.0), "D2S303"), ((X, 2.0), "D2S306")]:
        with pytest.raises(SignatureError) as raised:
            static(*args)
        assert raised.value.code == code
    fixed = to_static(scaled, input_spec=[InputSpec([3])])
    call(fixed, X)
    assert short(fixed)
    with pytest.raises(SignatureError, match="D2S304"):
        fixed(torch.rand(4))
    stopped = to_static(scaled, input_spec=[InputSpec([3], stop_gradient=True)])
    for _ in range(TIMES):
        assert not stopped(X.clone().requires_grad_()).requires_grad
    assert not short(stopped)


def test_shared_memory() -> None:
    def f(x, y):
        x += 1
        return y * 2

    static = to_static(f)
    for _ in range(2):
        for share in (False, True, False):
            for _ in range(TIMES):
                found = []
                for function in (static, f):
                    x = torch.zeros(3)
                    y = x if share else torch.zeros(3)
                    found += [torch.stack([function(x, y), x])]
                    x = torch.zeros(4)
                    found += [torch.stack([function(x[:3], x[1:] if share else torch.zeros(3)), x[1:]])]
                assert torch.equal(found[0], found[2]) and torch.equal(found[1], found[3])


def test_results_effects_and_buffers() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.calls = 0
            self.last = None

        def forward(self, x):
            self.calls += 1
            self.last = x
            return {"y": self.norm(x), "same": x, "n": (self.calls, None)}

    net, eager = to_static(Net()), Net()
    for number in range(12):
        x = torch.rand(4, 3)
        mine, theirs = net(x), eager(x)
        assert torch.equal(mine["y"], theirs["y"]) and mine["same"] is x
        assert mine["n"] == theirs["n"] == (number + 1, None)
        assert net.last is x and torch.equal(net.norm.running_mean, eager.norm.running_mean)


def test_gradients_on_both_paths() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    static = to_static(lambda x: net(x) * x if x.sum() > 0 else net(x))
    for number in range(TIMES + 4):
        for path in ("program", "autograd"):
            x = X.clone().requires_grad_()
            y = X.clone().requires_grad_()
            with gradient_path(path):
                static(x).sum().backward()
            static.function(y).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)
        if number % 2:
            net[0].bias.requires_grad_(number % 4 == 1)


def test_what_goes_another_way() -> None:
    static = to_static(scaled)
    call(static, X)
    torch.testing.assert_close(vmap(to_static(lambda x: x * 2))(X), X * 2)
    enable_to_static(False)
    try:
        before = static._dispatch.shortcuts[0].found.last_used
        call(static, X)
        assert static._dispatch.shortcuts[0].found.last_used == before
    finally:
        enable_to_static(True)
    outer = to_static(lambda x: static(x) + 1)
    call(outer, X)
    simple = to_static(lambda x: x * 3)
    call(simple, X)
    torch.testing.assert_close(vmap(simple)(X), X * 3)
    torch.testing.assert_close(vmap(lambda y: simple(X) * y)(X), X * 3 * X[:, None])
    static.rollback()
    assert short(static) == 0


def test_errors_show_the_users_line() -> None:
    def f(x):
        if x.sum() > 0:
            raise ValueError("positive")
        return x

    static = to_static(f)
    call(static, -X)
    for _ in range(TIMES):
        with pytest.raises(ValueError, match="^positive$") as caught:
            static(X)
        assert caught.traceback[-1].lineno + 1 == f.__code__.co_firstlineno + 2


def test_threads_in_different_modes() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    static = to_static(lambda x: net(x) * 2 if x.sum() > 0 else net(x) - x, backend="interpreter")
    wrong: list[object] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        start.wait()
        generator = torch.Generator().manual_seed(seed)
        for number in range(12):
            x = torch.randn(2 + number % 2, 3, generator=generator)
            try:
                with torch.set_grad_enabled(seed % 2 == 0), torch.autocast("cpu", enabled=seed % 4 == 3):
                    x.requires_grad_(seed % 2 == 0)
                    y, eager = static(x), static.function(x)
                    if apart := difference(y, eager):
                        wrong.append((seed, number, apart))
                    if y.requires_grad:
                        gradients = [torch.autograd.grad(one.sum(), [x]) for one in (y, eager)]
                        if apart := difference(*gradients, tolerance=1e-5):
                            wrong.append((seed, number, "gradient", apart))
            except Exception as error:  # a thread's error would be lost
                wrong.append((seed, repr(error)))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


class Block(nn.Module):
    """Reads its parts and settings, and goes on differently where one of them changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(3, 3), nn.Linear(3, 3), nn.LayerNorm(3)
        self.scale, self.spare = 2.0, None

    def forward(self, x):
        y = self.second(torch.relu(self.first(x))) * self.scale
        if y.sum() > 0:
            y = self.norm(y)
        return y if self.spare is None else y + self.spare(x)


def hides_part(block):
    block.__dict__["first"] = nn.Linear(3, 3)


def class_gets_name_of_part(block):
    type(block).second = property(lambda self: self.first)


def class_gets_name_of_setting(block):
    type(block).scale = property(lambda self: 5.0)


def class_gets_lookup(block):
    type(block).__getattr__ = lambda self, name: nn.Identity() if name == "norm" else nn.Module.__getattr__(self, name)


def class_gets_lookup_of_all(block):
    found = object.__getattribute__
    type(block).__getattribute__ = lambda self, name: 7.0 if name == "scale" else found(self, name)


def ties(block):
    block.second.weight = block.first.weight


def ties_across(block):
    block.norm.weight = block.second.bias


def replaces_part(block):
    block.first = nn.Linear(3, 3)


def other_class_of_part(block):
    block.norm.__class__ = type("Other", (nn.LayerNorm,), {"forward": lambda self, x: x + 1})


def setting(block):
    block.scale = 3.0


def adds_part(block):
    block.spare = nn.Linear(3, 3)


def swaps_order(block):
    block._modules["first"] = block._modules.pop("first")


def test_a_module_that_is_read_and_not_called_gets_another_class() -> None:
    class Settings(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.part = 2.0, nn.Identity()

    class Others(Settings):
        scale = property(lambda self: 5.0)

    settings = Settings()

    def scaled_by(x):
        return x * settings.scale if isinstance(settings.part, nn.Identity) else x

    static = to_static(scaled_by)
    for _ in range(TIMES):
        static(X)
    assert short(static)
    settings.__class__ = Others
    same(static(X), scaled_by(X))


class Same(nn.Linear):
    """Equal to every other one."""

    __hash__ = nn.Linear.__hash__

    def __eq__(self, other):
        return isinstance(other, Same)


def test_a_part_that_is_replaced_by_an_equal_one() -> None:
    cls = type("Block", (Block,), {})
    block = cls()
    block.first = Same(3, 3)
    static = to_static(block)
    x = torch.randn(2, 3)
    for _ in range(TIMES):
        static(x)
    assert static.forward._dispatch.shortcuts
    block.first = Same(3, 3)
    for _ in range(TIMES):
        same(block(x), cls.forward(block, x))


CHANGES = [
    hides_part, class_gets_name_of_part, class_gets_name_of_setting, class_gets_lookup, class_gets_lookup_of_all, ties,
    ties_across, replaces_part, other_class_of_part, setting, adds_part, swaps_order,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_parts_and_settings_that_change_after_the_short_way_was_made(change) -> None:
    cls = type("Block", (Block,), {})
    block = cls()
    static = to_static(block)
    x = torch.randn(2, 3)
    for _ in range(TIMES):
        static(x)
    assert static.forward._dispatch.shortcuts
    change(block)
    for _ in range(TIMES):
        same(block(x), cls.forward(block, x))


def test_tied_parameters_keep_the_short_way_until_they_are_apart() -> None:
    block = Block()
    block.second.weight = block.first.weight
    static = to_static(block)
    x = torch.randn(2, 3)
    for _ in range(TIMES):
        static(x)
    check = static.forward._dispatch.shortcuts[0].check
    assert check(x) is not None
    block.second.weight = nn.Parameter(block.first.weight.detach().clone())
    assert check(x) is None
    same(block(x), Block.forward(block, x))


def packs(x, *rest, by=1.0, **named):
    """Everything a call can give, in an order that shows."""
    for one in rest:
        x = x * one
    for name, one in named.items():
        x = x * len(name) + one
    return x * by if x.sum() > 0 else x - by


def defaults(x, *, held=[2.0], y=None):
    return x * held[0] if x.sum() > 0 and y is None else x


def wrapped(*args, **kwargs):
    return scaled(*args, **kwargs)


Y = torch.tensor([2.0, 3.0, 5.0])
CALLS = [
    ((X,), {"by": 3.0}), ((X,), {"plus": 1.0}), ((), {"x": X}), ((X,), {"by": Y}), ((X,), {"plus": Y, "by": 2.0}),
    ((X,), {"by": 2.0, "plus": Y}), ((), {"plus": Y, "x": X}), ((), {"x": Y, "plus": X}),
]  # fmt: skip


@pytest.mark.parametrize("function", [scaled, wrapped])
def test_arguments_by_name(function) -> None:
    """Each form of a call has a short way of its own; what is given by name is found by name."""
    static = to_static(function)
    for number, (args, kwargs) in enumerate(CALLS):
        call(static, *args, **kwargs)
        newest = static._dispatch.shortcuts[0]
        assert newest.names == tuple(kwargs), number
        before = newest.found.found
        static(*args, **kwargs)
        assert newest.found.found == before  # it did not go the long way
    for args, kwargs in CALLS:  # all of them once more, each after another
        other = {name: one + 1 if isinstance(one, torch.Tensor) else one for name, one in kwargs.items()}
        same(static(*args, **other), function(*args, **other))
    with pytest.raises(TypeError, match="unexpected keyword|multiple values"):
        static(X, x=X)


def test_arguments_that_are_packed() -> None:
    static = to_static(packs)
    calls = [((X, Y), {}), ((X, Y, X), {}), ((X,), {"a": Y, "bb": X}), ((X,), {"bb": X, "a": Y}), ((X, Y), {"a": X}),
             ((X,), {"by": 2.0, "a": 3.0}), ((X, 2.0), {"c": Y})]  # fmt: skip
    for args, kwargs in calls:
        call(static, *args, **kwargs)
        before = static._dispatch.shortcuts[0].found.found
        static(*args, **kwargs)
        assert static._dispatch.shortcuts[0].found.found == before
    for args, kwargs in calls:
        same(static(*args, **kwargs), packs(*args, **kwargs))


def test_numbers_by_name_that_change() -> None:
    """They become inputs, wherever they are given."""
    for function, name in ((scaled, "by"), (packs, "by"), (packs, "other"), (wrapped, "plus")):
        static = to_static(function)
        for number in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5):
            same(static(X, **{name: number}), function(X, **{name: number}))
        assert len(static.programs) <= 3, (function, name)
        found = static._dispatch.shortcuts[0].found
        before = found.found
        same(static(X, **{name: 9.5}), function(X, **{name: 9.5}))
        assert found.open and found.found == before, (function, name)


def test_a_default_that_can_be_changed_has_no_short_way_by_name() -> None:
    static = to_static(defaults)
    call(static, X)
    call(static, x=X)
    defaults.__kwdefaults__["held"].append(1.0)
    defaults.__kwdefaults__["held"][0] = 3.0
    same(static(x=X), X * 3.0)


def test_one_tensor_under_two_names() -> None:
    static = to_static(scaled)
    call(static, x=X, by=Y)
    same(static(x=X, by=X), scaled(X, X))
    call(static, x=X, by=X)
    same(static(x=X, by=Y), scaled(X, Y))
    same(static(x=X, by=X[:]), scaled(X, X))


def test_written_arguments_by_name() -> None:
    def write(x, *, to, **more):
        if x.sum() > 0:
            to.add_(x)
        return to * 2

    static = to_static(write)
    for extra in ({}, {"unused": 1}):
        mine, theirs = torch.zeros(3), torch.zeros(3)
        for _ in range(TIMES):
            same(static(X, to=mine, **extra), write(X, to=theirs, **extra))
            same(mine, theirs)


def test_gradients_by_name() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, *, x, scale=None):
            y = self.inner(x)
            return (y * y if y.sum() > 0 else y - 1) * (1.0 if scale is None else scale)

    torch.manual_seed(0)
    net = Net()
    static = to_static(net)
    for kwargs in ({"x": X}, {"x": X, "scale": Y}, {"scale": Y, "x": X}):
        for _ in range(TIMES):
            mine = torch.autograd.grad(static(**kwargs).sum(), list(net.parameters()))
            theirs = torch.autograd.grad(Net.forward(net, **kwargs).sum(), list(net.parameters()))
            same(mine, theirs)


LAYOUTS = {
    "rows": lambda n, k: torch.randn(n, k),
    "columns": lambda n, k: torch.randn(k, n).t(),
    "every second": lambda n, k: torch.randn(n, 2 * k)[:, ::2],
    "one row for all": lambda n, k: torch.randn(1, k).expand(n, k),
}
LENGTHS = (4, 2, 1, 5, 0, 3)


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("learned", [(), ("x",), ("w",), ("x", "w")])
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.sample(10)
def test_open_sizes_in_all_layouts(first: str, learned: tuple[str, ...], backend: str) -> None:
    """Calls of other sizes and layouts than those that the short way was made of, with gradients and without."""

    def f(x, w):
        y = torch.tanh(x * w)
        if y.numel() > 2:
            for row in y:
                y = y + row.sin()
        return y * x

    static = to_static(f, input_spec=[InputSpec([None, 3]), InputSpec([3])], backend=backend)
    order = [first, *(name for name in LAYOUTS if name != first)]
    for layout in order:
        for length in LENGTHS:
            for _ in range(3):
                given = {"x": LAYOUTS[layout](length, 3), "w": torch.randn(3)}
                for name in learned:
                    given[name].requires_grad_()
                results = []
                for function in (static, f):
                    y = function(**given)
                    wanted = [given[name] for name in learned]
                    results.append([y.detach(), *(torch.autograd.grad(y.sum(), wanted) if wanted else ())])
                assert [one.shape for one in results[0]] == [one.shape for one in results[1]]
                torch.testing.assert_close(results[0], results[1])
    assert short(static)
