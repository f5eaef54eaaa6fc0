"""``out=`` of every operator that PyTorch has samples of: right, empty, other shapes or dtypes; given or local."""

from __future__ import annotations

import re
import sys
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dy2static
from tests.from_files import module_of
from tests.oracle import check

_SEEDED: dict[str, Any] = {"bernoulli": torch.bernoulli, "multinomial": torch.multinomial, "normal": torch.normal}
"""Operators that torch's samples call through a function which sets the seed of the generator itself."""
_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def _operators() -> Iterator[tuple[str, Any, Any, list[torch.Tensor]]]:
    """Every operator with ``out=`` of which the first sample gives dense tensors (a sparse ``out=`` has a
    test of its own): name, operator, sample, results."""
    stand_in: Any = types.ModuleType("expecttest")  # what torch's own tests import and these do not use
    stand_in.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", stand_in)
    from torch.testing._internal.common_methods_invocations import op_db

    for one in op_db:
        if not one.supports_out or torch.float32 not in one.dtypes:
            continue
        torch.manual_seed(0)
        sample = next(iter(one.sample_inputs("cpu", torch.float32, requires_grad=False)))
        if not isinstance(sample.input, torch.Tensor):
            continue
        op = _SEEDED.get(one.name, one.op)
        try:
            made = op(sample.input, *sample.args, **sample.kwargs)
        except RuntimeError:  # not in this build
            continue
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        if all(isinstance(result, torch.Tensor) and result.layout is torch.strided for result in results):
            yield one.name, op, sample, results


def _given(op: Any, sample: Any) -> Callable[..., Any]:
    def function(x: Any, *outs: Any) -> Any:
        result = op(x, *sample.args, out=outs[0] if len(outs) == 1 else tuple(outs), **sample.kwargs)
        return result, [one.shape for one in outs], [one * 1 for one in outs]

    return function


def _local(op: Any, sample: Any, like: list[torch.Tensor]) -> Callable[..., Any]:
    places = [(tuple(one.shape), one.dtype) for one in like]

    def function(x: Any) -> Any:
        outs = [torch.zeros(shape, dtype=dtype) for shape, dtype in places]
        op(x, *sample.args, out=outs[0] if len(outs) == 1 else tuple(outs), **sample.kwargs)
        return outs, [one.shape for one in outs]

    return function


def _kinds(results: list[torch.Tensor]) -> dict[str, list[torch.Tensor]]:
    return {
        "right": [torch.zeros_like(one) for one in results],
        "empty": [torch.empty(0, dtype=one.dtype) for one in results],
        "other shape": [torch.zeros((*one.shape, 2), dtype=one.dtype) for one in results],
        "wider": [torch.zeros(one.shape, dtype=_WIDER.get(one.dtype, one.dtype)) for one in results],
        "other dtype": [torch.zeros(one.shape, dtype=torch.int32) for one in results],
    }


def _outcome(function: Callable[..., Any], *call: Any) -> str:
    try:
        check(function, call, paths=("program",))
    except dy2static.Dy2StaticError as error:
        return str(error.code)
    except Exception as error:
        return f"different: {str(error).splitlines()[0]}"
    return "equal"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_operator_with_out() -> None:
    counts: Counter[str] = Counter()
    different = []
    for name, op, sample, results in _operators():
        for kind, outs in _kinds(results).items():
            for place, function, call in (
                ("given", _given(op, sample), (sample.input, *outs)),
                ("local", _local(op, sample, outs), (sample.input,)),
            ):
                outcome = _outcome(function, *call)
                counts[outcome.partition(":")[0]] += 1
                if outcome.startswith("different"):
                    different.append((name, kind, place, outcome))
                    print(different[-1], flush=True)
    print(dict(counts))
    assert not different, "\n".join(map(str, different))
    assert counts["equal"] > 3000


def cat_into_empty(x: Any) -> Any:
    m = torch.empty(0)
    torch.cat([x, x], out=m)
    return m, m.shape


def cat_into_empty_argument(x: Any, m: Any) -> Any:
    r = torch.cat([x, x], out=m)
    return r is m, m.shape, m * 2


def written_then_used(x: Any, m: Any) -> Any:
    torch.add(x, 1, out=m)
    m.mul_(3)
    return m[0]


def frexp(x: Any) -> Any:
    m, e = torch.empty(0), torch.empty(0, dtype=torch.int32)
    torch.frexp(x, out=(m, e))
    return m, e


def complex_(x: Any, m: Any) -> Any:
    torch.complex(x, x, out=m)
    return m


def in_branch(x: Any) -> Any:
    if x.sum() > 100:
        m = torch.empty(0)
        torch.add(x, x, out=m)
    else:
        m = x
    return m


def in_loop(x: Any) -> Any:
    n = 0
    while n < x.sum():
        m = torch.empty(0)
        torch.add(x, n, out=m)
        x = m - 1
        n = n + 3
    return x


def with_gradient(x: Any, w: Any) -> Any:
    m = torch.empty(0)
    torch.add(x, x, out=m)
    return (m * w).sum()


X = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function, args", [
    (cat_into_empty, (X,)),
    (cat_into_empty_argument, (X, torch.empty(0))),
    (cat_into_empty_argument, (X, torch.zeros(2, 2))),
    (written_then_used, (X, torch.empty(0))),
    (frexp, (X,)),
    (complex_, (X, torch.empty(0, dtype=torch.complex64))),
    (complex_, (X, torch.empty(3, dtype=torch.complex64))),
    (in_branch, (X,)), (in_branch, (X * 100,)),
    (in_loop, (X,)),
    (with_gradient, (X, torch.ones(3, requires_grad=True))),
])  # fmt: skip
def test_out_that_is_resized(function: Any, args: Any) -> None:
    check(function, args)


def given_what_needs_a_gradient(x: Any) -> Any:
    return torch.mul(x, 2, out=torch.empty(3))


def composite_into_what_needs_a_gradient(x: Any) -> Any:
    y = x * 2
    torch.outer(torch.ones(3), torch.ones(3), out=y)
    return y


def needed_on_a_path(x: Any) -> Any:
    y = x * 2
    if x.sum() > 0:
        y = y.detach()
    torch.mul(y, 2, out=torch.empty(2))  # which also warns
    return x * 3


def without_gradients(x: Any) -> Any:
    y = x * 2
    with torch.no_grad():
        torch.mul(x, 2, out=y)
    return torch.argmax(x, 0, out=torch.empty(0, dtype=torch.int64)), y.requires_grad


def made_into_what_needs_a_gradient(x: Any) -> Any:
    y = x * 2
    torch.full((3,), 0.5, out=y)
    return y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [
    given_what_needs_a_gradient, composite_into_what_needs_a_gradient, needed_on_a_path, without_gradients,
    made_into_what_needs_a_gradient,
])  # fmt: skip
def test_out_that_no_gradient_passes(function: Any) -> None:
    calls = [(X,), (-X,)]
    check(function, *calls, *((x.clone().requires_grad_(),) for (x,) in calls), paths=("program",))


def read_and_resized(x: Any) -> Any:
    y = x * 1
    for _ in range(int((x > 0).sum())):
        torch.stack([x, y], out=y)
    return y.shape


def test_what_a_shape_rule_did_before_it_raised_is_undone() -> None:
    assert dy2static.to_static(lambda x: torch.linspace(0, 1, 0, out=x).shape)(torch.zeros(0, 2)) == (0, 2)
    with pytest.raises((RuntimeError, dy2static.Dy2StaticError)):
        dy2static.to_static(read_and_resized)(X)


@pytest.mark.filterwarnings("ignore")
def test_a_sparse_out_is_refused() -> None:
    one, other = torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csr()
    with pytest.raises(dy2static.Dy2StaticError, match="D2S240"):
        dy2static.to_static(lambda x, m: torch.sparse.sampled_addmm(one, x, x, out=m))(X.expand(3, 3), other)


GLOBAL = torch.zeros(0)


def into_global(x: Any) -> Any:
    torch.add(x, x, out=GLOBAL)
    return GLOBAL * 2


def test_a_global_is_resized() -> None:
    static = dy2static.to_static(into_global)
    for _ in range(2):
        GLOBAL.resize_(0)
        assert torch.equal(static(X), X * 4)
        assert torch.equal(GLOBAL, X * 2)


def test_the_callers_memory_grows_where_out_is_a_part_of_it() -> None:
    memory = torch.zeros(4)
    dy2static.to_static(cat_into_empty_argument)(X[:2], memory[:0])
    assert memory.tolist() == [1.0, 2.0, 1.0, 2.0]


def a_view_is_there(x: Any) -> Any:
    m = torch.zeros(2)
    v = m[:1]
    torch.add(x, x, out=m)
    return m, v


def out_is_a_view(x: Any) -> Any:
    m = torch.zeros(4)[:0]
    torch.add(x, x, out=m)
    return m


def from_outside_the_branch(x: Any) -> Any:
    m = torch.empty(0)
    if x.sum() > 0:
        torch.add(x, x, out=m)
    return m


def from_outside_the_loop(x: Any) -> Any:
    m = torch.empty(0)
    n = 0
    while n < x.sum():
        torch.add(x, n, out=m)
        n = n + 1
    return m


def of_a_size_of_two_paths(x: Any) -> Any:
    m = torch.empty(3) if x.sum() > 0 else torch.empty(0)
    torch.sum(x, 0, out=m)
    return m


def of_a_size_that_is_counted(x: Any) -> Any:
    m = torch.empty(int((x > 0).sum()))
    torch.add(x, x, out=m)
    return m


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [
    a_view_is_there, out_is_a_view, from_outside_the_branch, from_outside_the_loop, of_a_size_of_two_paths,
    of_a_size_that_is_counted,
])  # fmt: skip
def test_a_resize_that_others_see_is_refused(function: Any) -> None:
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(function)(X)
    assert caught.value.code == "D2S244"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [lambda: torch.arange(3.0).requires_grad_(), lambda: torch.arange(3.0)])
def test_an_argument_that_requires_grad_is_resized(make: Any) -> None:
    def into_itself(x: Any) -> Any:
        with torch.no_grad():
            torch.sum(x, 0, out=x)
            y = x + 1
        return y

    one, other = make(), make()
    assert torch.equal(dy2static.to_static(into_itself)(one), into_itself(other))
    assert torch.equal(one, other) and one.shape == other.shape and one.requires_grad == other.requires_grad
    assert one.is_leaf


@pytest.mark.filterwarnings("ignore")
def test_a_loaded_program_resizes_too(tmp_path: Any) -> None:
    static = dy2static.to_static(cat_into_empty_argument)
    static(X, torch.empty(0))
    dy2static.save(static, tmp_path / "out.d2s", input_spec=[dy2static.InputSpec((3,)), dy2static.InputSpec((0,))])
    out = torch.empty(0)
    result = dy2static.load(tmp_path / "out.d2s")(X, out)
    assert torch.equal(out, torch.cat([X, X])) and torch.equal(result[2], out * 2)


def test_warning_of_a_resize_comes_from_the_run() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        dy2static.to_static(cat_into_empty)(X)
    assert not seen


@pytest.mark.parametrize(
    "call",
    ["torch.stack([q, p], out=p[:])", "torch.add(p, q.t(), out=p[:])", "torch.mm(q, p, out=q[:, 0])"],
)
def test_errors_with_memory_shared_are_eagers(call, tmp_path):
    """Whether it raises is tried on real tensors that share memory as the arguments do."""
    file = tmp_path / "shared_memory.py"
    file.write_text(f"import torch\ndef f(x):\n    p, q = x * 0.5, torch.ones(2, 3)\n    {call}\n    return p * 1\n")
    module = module_of(file)
    with pytest.raises(RuntimeError) as eager:
        module.f(torch.ones(3))
    with pytest.raises(RuntimeError, match=re.escape(str(eager.value))):
        dy2static.to_static(module.f)(torch.ones(3))


OUT_OF_NOTHING: dict[str, Callable[[torch.Tensor], Any]] = {
    "full": lambda out: torch.full((3,), 0.5, out=out),
    "ones": lambda out: torch.ones(3, out=out),
    "arange": lambda out: torch.arange(3.0, out=out),
    "linspace": lambda out: torch.linspace(0, 1, 3, out=out),
    "add": lambda out: torch.add(torch.ones(3), 1, out=out),
}


@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("name", OUT_OF_NOTHING)
def test_a_view_made_without_gradients(name: str, needs: bool) -> None:
    """It has no node, so that autograd says of it what it says of a leaf."""
    def function(x: torch.Tensor) -> Any:
        p = x * 0.5
        with torch.no_grad():
            r = p[:]
        OUT_OF_NOTHING[name](r)
        return p * 1

    check(function, (torch.tensor([1.0, -1.0, 2.0], requires_grad=needs),))
