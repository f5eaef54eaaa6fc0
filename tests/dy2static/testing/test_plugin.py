"""``pytest --dy2static`` on small suites: what it converts, compares, reports and leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch._dynamo  # or else what the inner runs import is imported again by each: they forget it

pytest_plugins = "pytester"
import dy2static.testing.plugin  # noqa: F401, E402 # the same

ROOT = Path(__file__).resolve().parents[3]

LIBRARY = '''
import random
import numpy as np
import torch
import torch._dynamo  # or else what the inner runs import is imported again by each: they forget it

def grow(x, times=2):
    while x.norm() < 10:
        x = x * times
    return x

def through_numpy(x):
    return float(x.detach().__array__().sum())

def clip_(x):
    if x.max() > 1:
        x.clamp_(max=1.0)

def noisy(x):
    return x + torch.rand(x.shape)

def fails(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.dropout = torch.nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x):
        self.seen += 1
        self.calls += 1
        if x.sum() > 0:
            return self.dropout(self.linear(x))
        return self.linear(x).relu()

class Refused(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.detach().__array__() * 2) + int(x.sum())

class Box:
    def __init__(self, start):
        self.total = start

    def add(self, x):
        self.total = self.total + x
        return self.total
'''


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the library above."""
    pytester.makepyfile(lib=LIBRARY)
    pytester.syspathinsert()
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # for runs in a process of their own
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    """The suite under conversion, in this process."""
    before = torch.nn.Module.__call__
    result = suite.runpytest_inprocess("-p", "pytest_dy2static", "-p", "no:cacheprovider", *options)
    assert torch.nn.Module.__call__ is before
    return result


def test_modules_convert_and_are_the_same(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import pytest, torch
        from lib import Net

        @pytest.fixture
        def net():
            torch.manual_seed(0)
            return Net()

        @pytest.mark.parametrize("sign", [1, -1])
        def test_steps(net, sign):
            for step in range(3):
                net(torch.ones(2, 3) * sign).sum().backward()
            assert net.seen == 3 and net.calls == 3
            assert net.linear.weight.grad is not None

        def test_evaluation(net):
            net.eval()
            with torch.no_grad():
                assert net(torch.ones(1, 3)).shape == (1, 3)
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["lib.py:* Net.forward: 7 same", "7 calls at 1 place: 7 same"])


def test_the_result_is_the_converted_one(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch
        from lib import Net

        def test_it():
            y = Net()(torch.ones(2, 3))
            assert type(y.grad_fn).__name__ == "ProgramNodeBackward"
    ''')
    run(suite, "--dy2static").assert_outcomes(passed=1)
    suite.runpytest_inprocess("-p", "pytest_dy2static").assert_outcomes(failed=1)


def test_what_is_refused_runs_eagerly(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch
        from lib import Refused

        def test_it():
            module = Refused()
            for _ in range(5):
                assert module(torch.ones(2)).tolist() == [4.0, 4.0]
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([
        "lib.py:* Refused.forward: 5 refused", "*[[]D2S213[]] .__array__() *at lib.py:* (5)",
        "5 calls at 1 place: 5 refused (D2S213 5)",
    ])  # fmt: skip


CALLS = '''
    import pytest, torch
    import lib
    from lib import grow

    def test_values():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        grow(x).sum().backward()
        assert lib.grow(x * 2).norm() >= 10
        assert x.grad is not None

    def test_written_arguments():
        x = torch.tensor([0.5, 2.0])
        lib.clip_(x)
        assert x.tolist() == [0.5, 1.0]

    def test_random_numbers():
        torch.manual_seed(1)
        y = lib.noisy(torch.zeros(3))
        torch.manual_seed(1)
        assert torch.equal(y, torch.rand(3))

    def test_exceptions():
        with pytest.raises(ValueError, match="positive"):
            lib.fails(torch.ones(2))

    def test_refused():
        assert lib.through_numpy(torch.ones(2)) == 2.0

    def test_objects():
        box = lib.Box(torch.zeros(2))
        for _ in range(3):
            box.add(torch.ones(2))
        assert box.total.tolist() == [3.0, 3.0]

    class TestClass:
        def test_method(self):
            assert grow(torch.ones(2)).norm() >= 10
'''


def test_calls_of_a_test_file(suite: pytest.Pytester) -> None:
    suite.makepyfile(CALLS)
    result = run(suite, "--dy2static-calls", "--dy2static-report", "report.json")
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines([
        "lib.py:* grow: 3 same", "lib.py:* through_numpy: 1 refused", "lib.py:* clip_: 1 same",
        "lib.py:* noisy: 1 same", "lib.py:* fails: 1 same", "lib.py:* Box.add: 3 same",
    ])  # fmt: skip
    data = json.loads((suite.path / "report.json").read_text())
    assert len(data["places"]) == 6 and list(data["tests"]) == ["refused", "same"]


def test_assertions_say_as_much_as_before(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch
        from lib import grow

        def test_it():
            assert grow(torch.tensor([8.0, 8.0]))[0] + 1 == 3
    ''')
    result = run(suite, "--dy2static-calls")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*assert (tensor(8.) + 1) == 3"])


def test_named_functions(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch
        from lib import grow, Box

        def test_it():
            grow(torch.ones(2))
            list(map(grow, [torch.ones(2), torch.ones(3)]))
            Box(torch.zeros(2)).add(torch.ones(2))
    ''')
    result = run(suite, "--dy2static-function", "lib.grow")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["3 calls at 1 place: 3 same"])
    run(suite, "--dy2static-function", "lib.*").stdout.fnmatch_lines(["4 calls at 2 places: 4 same"])
    left = run(suite, "--dy2static-function", "lib.*", "--dy2static-leave", "lib.Box.*")
    left.stdout.fnmatch_lines(["3 calls at 1 place: 3 same"])
    wrong = run(suite, "--dy2static-function", "lib.grwo")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*--dy2static-function: no Python function is called lib.grwo*"])


FAULTS = {
    "value": ("y * 1.001", "result differs by 0.00*elements; the largest in eager is*"),
    "element": ("torch.cat([y[:-1], y[-1:] * 1.001])", "result differs by 0.00* (1 of 3 elements*"),
    "type": ("(y,)", "result is a tuple, and in eager a Tensor"),
    "dtype": ("y.double()", "result has dtype torch.float64, and in eager torch.float32"),
    "gradient": ("y + (x - x.detach()) * 0.01", "the gradient of input 0 differs by *"),
    "no gradient": ("y.detach()", "result has requires_grad False, and in eager True"),
    "written": ("x.detach().add_(1) is None or y", "args[[]0[]] differs by 1*"),
    "random numbers": ("y + 0 * torch.rand(())", "the state of a random generator afterwards differs"),
    "state": ("setattr(self._subject.instance, 'calls', 7) or y", "self[[]0[]].calls is 7, and in eager 1"),
    "exception": ("1 / 0", "ZeroDivisionError is raised (division by zero), and in eager nothing is raised"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_difference_fails_the_test(suite: pytest.Pytester, fault: str) -> None:
    expression, said = FAULTS[fault]
    suite.makeconftest(f'''
        import pytest, torch, lib
        from dy2static.static_function import StaticFunction

        @pytest.fixture(autouse=True)
        def planted(monkeypatch):
            own = StaticFunction.__call__
            def call(self, x):
                y = own(self, x)
                return {expression}
            monkeypatch.setattr(StaticFunction, "__call__", call)
    ''')
    suite.makepyfile('''
        import torch, pytest

        class Twice(torch.nn.Module):
            calls = 0
            def forward(self, x):
                self.calls += 1
                return x * 2 if x.sum() > 0 else x

        def test_it():
            x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            try:
                Twice()(x)
            except ZeroDivisionError:
                pytest.fail("eager raises nothing")
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["converted code differs from eager:", f"*Twice.forward: {said}"])
    result.stdout.fnmatch_lines(["1 call at 1 place: 1 different"])


def test_hooks_run_once(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch

        def test_it():
            seen = []
            net = torch.nn.Sequential(torch.nn.Linear(2, 2))
            net.register_forward_hook(lambda *_: seen.append("forward"))
            net.register_forward_pre_hook(lambda *_: seen.append("before"))
            net.register_full_backward_hook(lambda *_: seen.append("backward"))
            net[0].register_forward_hook(lambda *_: seen.append("inner"))
            net(torch.ones(1, 2, requires_grad=True)).sum().backward()
            assert seen == ["before", "inner", "forward", "backward"]
    ''')
    run(suite, "--dy2static").assert_outcomes(passed=1)


def test_output_and_warnings_appear_once(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import warnings, torch

        class Loud(torch.nn.Module):
            def forward(self, x):
                print("called")
                warnings.warn("careful")
                return x

        def test_it(capsys, recwarn):
            Loud()(torch.ones(1))
            assert capsys.readouterr().out == "called\\n"
            assert [str(one.message) for one in recwarn] == ["careful"]
    ''')
    run(suite, "--dy2static").assert_outcomes(passed=1)


def test_closures_and_shared_state_count_once(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch

        def counter():
            seen = []
            class Counts(torch.nn.Module):
                def forward(self, x):
                    seen.append(1)
                    return x + len(seen)
            return Counts(), seen

        def test_it():
            net, seen = counter()
            for _ in range(3):
                net(torch.ones(1))
            assert len(seen) == 3
    ''')
    run(suite, "--dy2static").assert_outcomes(passed=1)


def test_what_cannot_be_compared_runs_as_it_is(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import threading, torch

        class Locked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lock = threading.Lock()
            def forward(self, x):
                with self.lock:
                    return x + 1

        def test_it():
            assert Locked()(torch.ones(1)) == 2
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*its arguments cannot be copied: TypeError*lock*", "1 call at*: 1 not compared"])


def test_copies_that_are_not_like_the_original(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch

        class Forgetful(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cache = 3
            def __deepcopy__(self, memo):
                twin = Forgetful()
                del twin.cache
                return twin
            def forward(self, x):
                return x + 1

        def test_it():
            Forgetful()(torch.ones(1))
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*a copy of its arguments is not like them: self*cache*"])


def test_eager_that_does_not_repeat_itself_is_no_witness(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import itertools, torch
        numbers = itertools.count()

        class Counted(torch.nn.Module):
            def forward(self, x):
                return x + next(numbers)

        def test_it():
            Counted()(torch.ones(1))
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*different*")


@pytest.mark.slow
def test_other_tools_are_left_alone(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch
        from lib import Net

        def test_traced():
            net = torch.nn.Linear(3, 3)
            traced = torch.jit.trace(net, torch.ones(1, 3))
            traced(torch.ones(1, 3))

        def test_scripted():
            torch.jit.script(torch.nn.Linear(3, 3))(torch.ones(1, 3))

        def test_rows():
            net = torch.nn.Linear(3, 3)
            torch.vmap(net)(torch.ones(4, 3))

        def test_exported():
            torch.export.export(torch.nn.Linear(3, 3), (torch.ones(1, 3),))
    ''')
    options = ("-p", "pytest_dy2static", "--dy2static", "-W", "ignore")
    suite.runpytest_subprocess(*options).assert_outcomes(passed=4)


def test_only_the_first_calls_are_compared(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch

        def test_it():
            net = torch.nn.Linear(2, 2)
            for _ in range(5):
                net(torch.ones(1, 2))
    ''')
    result = run(suite, "--dy2static", "--dy2static-compare", "2")
    result.stdout.fnmatch_lines(["5 calls at 1 place: 2 same, 3 converted"])


def test_views_and_computed_arguments(suite: pytest.Pytester) -> None:
    suite.makepyfile('''
        import torch

        class Adds(torch.nn.Module):
            def forward(self, a, b, c):
                a.add_(b.sum())
                return (a * b).sum() + c["x"][0].exp()

        def test_it():
            base = torch.ones(4, 3, requires_grad=True)
            q, k = (base * 2).chunk(2)
            leaf = torch.ones(2, requires_grad=True)
            out = Adds()(torch.ones(2, 3) * 1.0, k, {"x": [leaf]})
            out.sum().backward()
            assert base.grad is not None and leaf.grad is not None
    ''')
    result = run(suite, "--dy2static")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 call at 1 place: 1 same"])


def test_off_it_imports_nothing(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("import sys\ndef test_it():\n    assert not {'torch', 'dy2static', 'runtime'} & set(sys.modules)\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pytest_dy2static", "-p", "no:cacheprovider", str(test)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "dy2static" not in done.stdout


@pytest.mark.slow
def test_workers_report_together(suite: pytest.Pytester) -> None:
    suite.makepyfile(CALLS)
    result = suite.runpytest_subprocess("-p", "pytest_dy2static", "-n", "2", "--dy2static-calls")
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(["10 calls at 6 places: 9 same, 1 refused (D2S213 1)"])
