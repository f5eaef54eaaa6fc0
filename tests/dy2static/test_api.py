"""to_static on everything it takes, and what it refuses."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch

import dy2static
from dy2static import BuildStrategy, InputSpec, StaticFunction, enable_to_static, not_to_static, to_static


def branch(x, scale=2.0):
    """Doubles what is positive."""
    if x.sum() > 0:
        y = x * scale
    else:
        y = x - scale
    return y


@to_static
def decorated(x):
    return branch(x)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        h = self.linear(x)
        if h.sum() > 0:
            h = h * 2
        return h

    def other(self, x):
        return self.linear(x) - 1


class Decorated(torch.nn.Module):
    def __init__(self, factor=2.0) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), factor))

    @to_static
    def forward(self, x):
        return branch(x * self.weight)

    @to_static(input_spec=[InputSpec([None])])
    def scaled(self, x):
        return x * self.weight.sum()

    @to_static
    @staticmethod
    def plus(x, n):
        return x + n

    @staticmethod
    @to_static(input_spec=[InputSpec([3])])
    def minus(x):
        return x - 1

    @to_static
    @classmethod
    def named(cls, x):
        return x, cls.__name__

    @classmethod
    @to_static
    def named_too(cls, x):
        return x, cls.__name__


class Child(Decorated):
    @to_static
    def forward(self, x):
        return super().forward(x) + 1


class Scaler:
    __slots__ = ("__weakref__", "factor")

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    @to_static
    def scale(self, x):
        return x * self.factor


X = torch.tensor([1.0, 2.0, -0.5])


# -- what can be converted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [X, -X])
def test_function(x):
    for converted in (to_static(branch), to_static()(branch), to_static(backend="interpreter")(branch)):
        assert torch.equal(converted(x), branch(x))
        assert torch.equal(converted(x, scale=3.0), branch(x, 3.0))


def test_it_looks_like_the_function(monkeypatch):
    monkeypatch.delenv("DY2STATIC_BACKEND", raising=False)
    converted = to_static(branch)
    assert converted.__name__ == "branch" and converted.__qualname__ == "branch"
    assert converted.__doc__ == branch.__doc__ and converted.__module__ == branch.__module__
    assert inspect.signature(converted) == inspect.signature(branch)
    assert converted.function is branch and inspect.unwrap(converted) is branch
    assert repr(converted) == "<StaticFunction branch(x, scale=2.0), 0 programs, auto>"
    converted(X)
    assert repr(converted) == "<StaticFunction branch(x, scale=2.0), 1 program, auto>"
    assert "if_stmt" in converted.code
    assert "cond" in str(converted.program)


def test_attributes_of_the_function_stay_readable():
    def f(x):
        return x

    f.level = 3
    assert to_static(f).level == 3
    with pytest.raises(AttributeError, match="no attribute 'levle'"):
        _ = to_static(f).levle


def test_lambda_closure_and_partial():
    factor = torch.tensor(3.0)
    assert torch.equal(to_static(lambda x: x * factor)(X), X * 3)
    assert torch.equal(to_static(functools.partial(branch, scale=5.0))(X), branch(X, 5.0))


def test_callable_object_and_bound_method():
    scaler = Scaler(4.0)
    assert torch.equal(to_static(scaler)(X), X * 4)
    net = Net()
    other = to_static(net.other)
    assert torch.equal(other(X), net.other(X))
    assert other.__self__ is net


def test_module():
    net = Net()
    eager = copy.deepcopy(net)
    assert to_static(net) is net
    assert isinstance(net.forward, StaticFunction) and type(net) is Net
    for x in (X, -X, X):
        assert torch.equal(net(x), eager(x))
    assert net.calls.item() == 3
    assert net.state_dict().keys() == eager.state_dict().keys()
    assert [name for name, _ in net.named_modules()] == ["", "linear"]


def test_module_hooks_run_once_each():
    net, seen = to_static(Net()), []
    net.register_forward_pre_hook(lambda module, args: seen.append("pre"))
    net.register_forward_hook(lambda module, args, out: out + 1)
    eager = copy.deepcopy(net).forward.rollback()
    got, wanted = net(X), eager(X)
    assert torch.equal(got, wanted)
    assert seen == ["pre", "pre"]


def test_methods_in_a_class_body():
    one, two = Decorated(2.0), Decorated(3.0)
    assert torch.equal(one(X), branch(X * 2)) and torch.equal(two(X), branch(X * 3))
    assert one.forward is one.forward and one.forward is not two.forward
    assert torch.equal(one.scaled(torch.ones(5)), torch.full((5,), 6.0))
    assert torch.equal(Decorated.forward(two, X), branch(X * 3))
    assert torch.equal(Decorated.plus(X, 1), X + 1) and torch.equal(one.plus(X, 2), X + 2)
    assert torch.equal(Decorated.minus(X), X - 1) and torch.equal(one.minus(X), X - 1)
    with pytest.raises(dy2static.SignatureError, match="argument 'x' has size 2"):
        one.minus(torch.ones(2))
    for method in ("named", "named_too"):
        assert getattr(Child, method)(X)[1] == "Child" and getattr(one, method)(X)[1] == "Decorated"


def test_super_reaches_the_converted_method_of_the_base():
    child = Child(2.0)
    assert torch.equal(child(X), branch(X * 2) + 1)
    assert len(child.forward.programs) == 1


def test_methods_of_objects_without_a_dict():
    assert torch.equal(Scaler(2.0).scale(X), X * 2)
    assert torch.equal(Scaler(5.0).scale(X), X * 5)


def test_programs_go_with_their_object():
    net = Decorated()
    net(X)
    net.scaled(X)
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_converting_again_replaces():
    net = to_static(Net())
    first = net.forward
    to_static(net, input_spec=[InputSpec([None])])
    assert net.forward is not first and net.forward.function == first.function
    assert to_static(decorated).function is decorated.function


def test_rollback():
    net = to_static(Net())
    assert net.forward.rollback() is net
    assert "forward" not in net.__dict__
    assert to_static(branch).rollback() is branch
    other = Net()
    other.forward = own = lambda x: x + 1
    assert torch.equal(to_static(other)(X), X + 1)
    assert other.forward.rollback().forward is own


# -- copies ------------------------------------------------------------------------------------------------------------


def test_deepcopy_is_independent():
    net = to_static(Net())
    net(X)
    twin = copy.deepcopy(net)
    assert isinstance(twin.forward, StaticFunction) and twin.forward.__self__ is twin
    with torch.no_grad():
        twin.linear.weight.zero_()
        twin.linear.bias.zero_()
    assert torch.equal(twin(X), torch.zeros(3))
    assert net(X).abs().sum() > 0
    assert (net.calls.item(), twin.calls.item()) == (2, 2)


def test_deepcopy_of_an_object_with_converted_methods():
    net = Decorated(2.0)
    net(X)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.weight.fill_(7.0)
    assert torch.equal(twin(X), branch(X * 7)) and torch.equal(net(X), branch(X * 2))
    assert copy.deepcopy(decorated) is decorated and copy.copy(decorated) is decorated


def test_pickle_as_the_original():
    net = to_static(Net())
    net(X)
    loaded = pickle.loads(pickle.dumps(net))
    assert not isinstance(loaded.forward, StaticFunction)
    assert torch.equal(loaded(X), net(X))
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    again = pickle.loads(pickle.dumps(Decorated(3.0)))
    assert torch.equal(again(X), branch(X * 3))


# -- what is refused ---------------------------------------------------------------------------------------------------


def generator(x):
    yield x


async def coroutine(x):
    return x


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: to_static(branch, input_specs=[]), TypeError, "'input_specs'; did you mean 'input_spec'"),
        (lambda: to_static(backnd="interpreter"), TypeError, "did you mean 'backend'"),
        (lambda: to_static(branch, zzz=1), TypeError, "its options are input_spec"),
        (lambda: to_static(branch, build_strategy={}), TypeError, "must be a BuildStrategy or None, not dict"),
        (lambda: to_static(branch, full_graph=1), TypeError, "full_graph must be True or False"),
        (lambda: to_static(branch, backend=3), TypeError, "backend must be a string"),
        (lambda: to_static(branch, backend="interpeter"), ValueError, "did you mean 'interpreter'"),
        (lambda: to_static(branch, backend="inductor"), ValueError, "not available yet"),
        (lambda: to_static(Net), TypeError, "Net, an nn.Module class; convert an instance"),
        (lambda: to_static(Scaler), TypeError, "Scaler, a class"),
        (lambda: to_static(property(branch)), TypeError, "write @property above"),
        (lambda: to_static(len), TypeError, "takes a Python function"),
        (lambda: to_static(3), TypeError, "takes a Python function"),
        (lambda: to_static([InputSpec([2])]), TypeError, "options are given by name"),
        (lambda: to_static(generator), TypeError, "a generator"),
        (lambda: to_static(coroutine), TypeError, "an async function"),
        (lambda: enable_to_static("no"), TypeError, "takes True or False"),
        (lambda: not_to_static(3), TypeError, "takes a function"),
        (lambda: not_to_static(len), TypeError, "never converted anyway"),
        (lambda: dy2static.ignore_module(["json"]), TypeError, "takes Python modules"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_build_strategy_is_accepted():
    assert torch.equal(to_static(branch, build_strategy=BuildStrategy())(X), branch(X))


def test_backend_from_the_environment(monkeypatch):
    monkeypatch.setenv("DY2STATIC_BACKEND", "nonsense")
    with pytest.raises(ValueError, match="environment variable DY2STATIC_BACKEND is 'nonsense'"):
        to_static(branch)
    assert to_static(branch, backend="interpreter").backend == "interpreter"


# -- switches ----------------------------------------------------------------------------------------------------------


def test_enable_to_static_is_asked_at_each_call():
    converted = to_static(branch)
    enable_to_static(False)
    try:
        assert torch.equal(converted(X), branch(X)) and converted.programs == []
    finally:
        enable_to_static(True)
    converted(X)
    assert len(converted.programs) == 1


def test_not_to_static_runs_as_it_is():
    seen = []

    @not_to_static
    def helper(x):
        seen.append(type(x).__name__)
        return x + 1

    converted = to_static(lambda x: helper(x) * 2)
    assert torch.equal(converted(X), (X + 1) * 2)
    assert seen, "the helper ran while tracing"


def test_runtime_of_another_project_is_refused(tmp_path):
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "__init__.py").write_text("")
    root = str(Path(dy2static.__file__).parents[1])
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {root!r}]; import dy2static"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert str(tmp_path / "runtime" / "__init__.py") in done.stderr and str(Path(root) / "runtime") in done.stderr
