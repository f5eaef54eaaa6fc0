"""Functions that are no Program as a whole, piece by piece: what is traced and how often, and what stays as it was."""

from __future__ import annotations

import copy
import logging
import pickle
import random
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import EagerWarning, explain, subject, to_static
from dy2static.pieces import MADE, decides
from dy2static.verdicts import CALLS, FAILURES, PART_FAILURES, PART_TRACES, TRACES
from tests.oracle import same

X = torch.tensor([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def told() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerWarning)
        yield


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is traced."""
    found: list[str] = []
    real = subject.trace

    def noted(function: Any, arguments: Any, **options: Any) -> Any:
        found.append(options["name"])
        return real(function, arguments, **options)

    monkeypatch.setattr(subject, "trace", noted)
    return found


def halved(x):
    while x.norm() > 1:
        x = x * 0.5
    return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x)
        return halved(y) if y.sum() > 0 else -y


def part_of(static: Any, name: str) -> Any:
    (found,) = [part for part in static.explain().walk() if part.name.endswith(name)]
    return found


def test_each_part_is_traced_once(traces: list[str]) -> None:
    net = Net()

    def f(x):
        return net(x) + halved(x) * (random.randbytes(1)[0] / 255)

    static = to_static(f, full_graph=False)
    for _ in range(5):
        static(X)
    assert traces == ["f", "forward", "halved"]
    assert part_of(static, "Net.forward").runs_as == part_of(static, "halved").runs_as == "Program"
    assert part_of(static, "f").runs_as == "Python" and part_of(static, "f").python == 5


def test_what_fails_is_not_traced_again(traces: list[str]) -> None:
    def reads(x, n):
        for _ in range(2):
            x = x * float(x.__array__()[0]) * n
        return x

    def f(x, n):
        return reads(x, n) if n else x

    static = to_static(f, full_graph=False)
    for n in range(1, 40):
        static(X, n)
    assert traces.count("f") == FAILURES and traces.count("reads") == PART_FAILURES


def test_a_part_that_fits_no_second_call_is_closed(traces: list[str]) -> None:
    def scaled(x, n):
        return x * n if x.sum() > 0 else x

    def f(x):
        for step in range(30):
            x = scaled(x, step + (random.randbytes(1)[0] / 255) * 0)
        return x

    static = to_static(f, full_graph=False)
    static(X)
    static(X)
    assert traces.count("scaled") == PART_TRACES
    (reason,) = part_of(static, "scaled").reasons
    assert "calls differ too much" in str(reason) and reason.code == "D2S278"
    random.seed(1)
    got = static(X)
    random.seed(1)
    assert torch.equal(got, f(X))


def test_programs_that_are_used_pay_for_others(traces: list[str]) -> None:
    def scaled(x, n):
        return x * n if x.sum() > 0 else x

    def f(x, n):
        return scaled(x, n) * (random.randbytes(1)[0] / 255)

    static = to_static(f, full_graph=False)
    for n in range(4):
        for _ in range(CALLS + 1):
            static(X, complex(n))  # a plain number would become an input of the Program
    assert traces.count("scaled") == 4
    converted = to_static(scaled, full_graph=False)
    for n in range(3 * TRACES):
        assert torch.equal(converted(X, complex(n)), scaled(X, complex(n)))
    assert len(converted.programs) == TRACES


def test_small_straight_parts_are_left_in_python(traces: list[str]) -> None:
    def straight(x):
        return x * 2 + 1

    def chosen(x, how="double"):
        return x * 2 if how == "double" else x

    def f(x):
        return straight(x) + chosen(x) * (random.randbytes(1)[0] / 255)

    static = to_static(f, full_graph=False)
    for _ in range(3):
        static(X)
    assert traces == ["f", "chosen"], "only a trace tells that it branches on nothing that a Program knows"
    for name in ("straight", "chosen"):
        part = part_of(static, name)
        assert part.runs_as == "Python" and "too small" in str(part.reasons[0])


def test_objects_made_at_each_call_do_not_pile_up(traces: list[str]) -> None:
    class Step:
        def __init__(self, n):
            self.n = n

        def run(self, x):
            return x * self.n if x.sum() > 0 else x + self.n

    def f(x):
        return Step(2).run(x) * (random.randbytes(1)[0] / 255)

    static = to_static(f, full_graph=False)
    for _ in range(2 * MADE):
        static(X)
    assert len(static._fallback.part.pieces._parts) <= MADE
    assert traces.count("run") <= MADE
    assert len(part_of(static, "f").parts) == 2, "those that were kept, and those that pass"


def test_a_raise_leaves_what_eager_leaves() -> None:
    log: list[str] = []

    def part(x, rows):
        log.append("begun")
        rows.add_(torch.rand(()))
        if x.sum() < 0:
            raise ValueError("negative")
        return rows

    def f(x, rows):
        random.randbytes(1)
        try:
            return part(x, rows)
        except ValueError:
            return rows.clone()

    static = to_static(f, full_graph=False)
    for function in (f, static):
        log.clear()
        torch.manual_seed(0)
        rows = torch.zeros(3)
        for sign in (1, 1, -1, -1, 1):
            function(X * sign, rows)
        state = (list(log), rows, torch.rand(()))
        if function is f:
            expected = state
    same(state, expected)
    assert part_of(static, "part").programs


def test_a_program_that_raises_where_python_does_not_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def part(x):
        return x * 2 if x.sum() > 0 else x

    def f(x):
        return part(x) + (random.randbytes(1)[0] / 255) * 0

    static = to_static(f, full_graph=False)
    static(X)
    found = static._fallback.part.children.values()
    (one,) = [part.static for part in found]
    assert one is not None
    (program,) = one._dispatch.cache.all()

    def broken(*args: Any) -> Any:
        raise RuntimeError("wrong size")

    monkeypatch.setattr(program.ready.callee, "call", broken)  # type: ignore[union-attr]
    one._dispatch.shortcuts = ()
    assert torch.equal(static(X), f(X))
    assert "D2S279" in str(part_of(static, "part").reasons[0])


def test_gradients_twice_and_hooks_between_pieces() -> None:
    net = Net()
    seen: list[torch.Tensor] = []

    def f(x):
        y = net(x * x)
        if y.requires_grad:
            y.register_hook(lambda grad: seen.append(grad) or grad * 2)
        return halved(y * (random.randbytes(1)[0] / 255))

    static = to_static(f, full_graph=False)
    results = []
    for function in (f, static, static):
        random.seed(3)
        seen.clear()
        net.zero_grad()
        x = X.clone().requires_grad_()
        loss = function(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        (first,) = torch.autograd.grad(function(x).pow(3).sum(), x, create_graph=True)
        first.sum().backward()
        results.append([x.grad, net.linear.weight.grad, len(seen), *seen])
    same(results[1], results[0], tolerance=1e-6)
    same(results[2], results[0], tolerance=1e-6)


def test_modules_and_objects_stay_as_they_are() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def forward(self, x):
            return self.net(x) * (random.randbytes(1)[0] / 255)

    outer = Outer()
    before = [sorted(vars(module)) for module in outer.modules()]
    static = to_static(outer.forward, full_graph=False)
    static(X)
    static(X)
    assert [sorted(vars(module)) for module in outer.modules()] == before
    assert type(pickle.loads(pickle.dumps(outer.net.linear))) is nn.Linear
    twin = copy.deepcopy(outer)
    random.seed(0)
    expected = twin(X)
    random.seed(0)
    assert torch.equal(static(X), expected)


def test_many_threads() -> None:
    net = Net()

    def f(x):
        with threading.Lock():
            return halved(net(x)) + float(x.__array__()[0])

    static = to_static(f, full_graph=False)
    inputs = [X * n for n in range(1, 9)]
    expected = [f(x) for x in inputs]
    got: list[Any] = [None] * len(inputs)

    def work(n: int) -> None:
        with warnings.catch_warnings():
            got[n] = [static(inputs[n]) for _ in range(5)][-1]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(got, expected, tolerance=1e-6)


def test_recursion_goes_as_deep_as_in_eager() -> None:
    def down(x, n):
        return x * float(x.__array__()[0]) if n == 0 else down(x, n - 1) + 1

    static = to_static(down, full_graph=False)
    depth = sys.getrecursionlimit() // 2
    assert torch.equal(static(X, depth), down(X, depth))


def test_one_warning_for_each_place() -> None:
    def inner(x):
        return x * float(x.__array__()[0])

    def f(x, flag):
        y = inner(x)
        return y * (random.randbytes(1)[0] / 255) if flag else y

    static = to_static(f, full_graph=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for flag in (True, False, True, False):
            static(X, flag)
            static(X.double(), flag)
    assert len(caught) == 1, [str(one.message) for one in caught]
    (warning,) = caught
    assert warning.category is EagerWarning and "return x * float(x.__array__()[0])" in str(warning.message)
    assert "explain() shows it" in str(warning.message)


def test_explain_shows_the_tree() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Net() for _ in range(3)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x.tolist(), float(x.detach().__array__().sum())

    outer = Outer()
    found = explain(outer, X)
    text = str(found).splitlines()
    assert text[0].startswith("test_explain_shows_the_tree.<locals>.Outer.forward: plain Python, 1 call  (")
    assert text[1].strip().startswith("[D2S213] .__array__() reads")
    assert text[2].startswith("  Net.forward of 3 objects: 3 Programs, 3 calls  (")
    assert [part.runs_as for part in found.walk()] == ["Python", "Program"]
    assert "forward" not in vars(outer), "the module is left as it is"
    assert explain(halved, X).runs_as == "Program"


def test_full_graph_functions_can_be_explained() -> None:
    static = to_static(halved)
    assert static.explain().runs_as == "nothing yet"
    assert "not called yet" in str(static.explain())
    static(X)
    assert static.explain().runs_as == "Program"


def refused(x):
    x = halved(x)
    if x.sum() > 0:
        raise ValueError("positive")
    return x


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 gives a handler the traceback it had before")
def test_a_handler_sees_the_users_lines() -> None:
    def seen(error: Exception) -> list[Any]:
        return [(one.name, one.lineno, one.filename) for one in traceback.extract_tb(error.__traceback__)]

    def f(x):
        x.__array__()
        found: list[Any] = []
        try:
            refused(x)
        except ValueError as error:
            found += seen(error), traceback.format_exc(), sys.exc_info()[2].tb_lineno
        for key in range(2):
            try:
                try:
                    {}[key]
                except KeyError as error:
                    raise TypeError("of a key") from error
                finally:
                    found.append(key)
            except TypeError as error:
                found += seen(error), seen(error.__cause__), traceback.format_exc()
        return found

    assert to_static(f, full_graph=False)(X) == f(X)


def test_log_records_are_of_the_users_places(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tests.pieces")
    unknown = logging.Logger("tests.pieces")  # logging.getLogger gives another one, so no Program can report by it
    unknown.addHandler(caplog.handler)

    def part(x):
        x = halved(x)
        logger.warning("of a part %s", x.shape)
        unknown.warning("of another")
        return x

    def f(x):
        x.__array__()
        logger.warning("plain")
        x = part(x)
        for i in range(2):
            if i:
                logging.getLogger("tests.pieces").log(logging.ERROR, "in a loop %d", i)
        logging.LoggerAdapter(logger, {"who": 1}).warning("adapted")
        return x

    def told(function: Any) -> list[Any]:
        caplog.clear()
        result = [function(X) for _ in range(3)]
        records = caplog.records
        return [[(r.getMessage(), r.levelno, r.pathname, r.lineno, r.funcName) for r in records], result]

    same(told(to_static(f, full_graph=False)), told(f))


def test_rollback_forgets_verdicts(traces: list[str]) -> None:
    def f(x):
        return halved(x) * float(x.__array__()[0])

    static = to_static(f, full_graph=False)
    static(X)
    assert static.rollback() is f
    static(X)
    assert traces == ["f", "halved", "f", "halved"]


def test_which_code_decides() -> None:
    assert decides((lambda x: [t for t in x]).__code__)
    assert decides(halved.__code__)
    assert not decides((lambda x: x.sum() + 1).__code__)
