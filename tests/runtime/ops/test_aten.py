"""What operators do to memory and random numbers, held against real tensors: version counters, contents, storages."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.errors import ProgramError
from runtime.ops import corrections
from runtime.ops.aten import arguments, is_random, is_view, may_alias, name_of, resolve, returns_alias, writes


def sibling(stem: str) -> Any:
    """The module beside this file."""
    spec = importlib.util.spec_from_file_location(f"operator_{stem}", Path(__file__).parent / f"{stem}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


calls, observe = sibling("calls"), sibling("observe")
Seen = observe.Seen

ROWS = [(f"{name}.default", (calls.f(3, 3),), {}) for name in calls.UNARY]
ROWS += [(row[0], row[1], row[2] if len(row) > 2 else {}) for row in calls.CALLS]
CUDA_ONLY = {"aten.cudnn_batch_norm", "aten.miopen_batch_norm", "aten.batch_norm_gather_stats",
             "aten.batch_norm_gather_stats_with_counts"}  # fmt: skip


def prepared() -> Iterator[Any]:
    for name, args, kwargs in ROWS:
        flags = [arg for arg in (*args, *kwargs.values()) if type(arg) in (bool, float)]
        yield pytest.param(name, args, kwargs, id=f"{name}{flags or ''}")


def check_facts(overload: Any, args: Any, kwargs: Any, seen: Any) -> None:
    for known in ((args, kwargs), ()):  # with the arguments, and without knowing any
        assert seen.written <= set(writes(overload, *known)), overload
        assert not seen.aliased or seen.aliased & set(may_alias(overload, *known)), overload
        assert seen.random <= is_random(overload, *known), overload
        assert not is_view(overload, *known) or seen.all_views, overload


def test_there_are_many_operators():
    assert len({name for name, _, _ in ROWS}) > 300


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "args", "kwargs"), list(prepared()))
def test_the_facts_hold_on_real_tensors(name, args, kwargs):
    overload = resolve(f"aten.{name}")
    torch.manual_seed(0)
    seen = Seen(overload, args, kwargs)
    check_facts(overload, args, kwargs, seen)
    hidden = corrections.WRITES.get(name_of(overload).rpartition(".")[0])
    if hidden is not None:  # with the arguments, exactly
        assert seen.written == set(writes(overload, args, kwargs))
    assert set(writes(overload, args, kwargs)) <= set(writes(overload))
    assert set(may_alias(overload, args, kwargs)) <= set(may_alias(overload))
    assert is_random(overload, args, kwargs) <= is_random(overload)


def _shown(table: dict[str, Any], attribute: str, declared: Any) -> set[str]:
    """The operators of a table that a call shows to do what their schema does not say."""
    found = set()
    for name, args, kwargs in ROWS:
        overload = resolve(f"aten.{name}")
        packet = f"aten.{name.partition('.')[0]}"
        if packet in table and getattr(Seen(overload, args, kwargs), attribute) - set(declared(overload)):
            found.add(packet)
    return found


def test_every_hidden_write_is_shown():
    from runtime.ops.aten import _declared_writes

    assert _shown(corrections.WRITES, "written", _declared_writes) == set(corrections.WRITES) - CUDA_ONLY


def test_every_hidden_alias_is_shown():
    assert _shown(corrections.ALIASES, "aliased", returns_alias) == set(corrections.ALIASES)


def test_names_of_the_tables_exist():
    for table in (corrections.WRITES, corrections.ALIASES, corrections.RANDOM, corrections.MAYBE_VIEWS):
        for name in table:
            assert hasattr(torch.ops.aten, name.removeprefix("aten.")), name


def test_facts_that_depend_on_what_is_not_known_yet():
    dropout = resolve("aten.dropout.default")
    unknown = object()
    x = torch.ones(3)
    assert is_random(dropout, (x, unknown, True)) and is_random(dropout, (x, 0.5, unknown))
    assert not is_random(dropout, (x, unknown, False)) and not is_random(dropout, (x, 0.0, unknown))
    assert may_alias(dropout, (x, unknown, True)) and may_alias(dropout, (x, 0.5, unknown))
    assert not may_alias(dropout, (x, 0.5, True))
    assert is_view(dropout, (x, unknown, False)) and not is_view(dropout, (x, 0.5, unknown)) and not is_view(dropout)
    norm = resolve("aten.batch_norm.default")
    assert writes(norm, (x, None, None, x, x, unknown, 0.1, 0.1, False)) == ("running_mean", "running_var")
    assert writes(norm, (x, None, None, None, None, True, 0.1, 0.1, False)) == ()


def test_arguments_by_keyword_and_default():
    lstm = resolve("aten.dropout.default")
    assert arguments(lstm, (1,), {"train": False, "p": 0.1}) == {"input": 1, "train": False, "p": 0.1}
    assert arguments(resolve("aten.add.Tensor"), (1, 2)) == {"self": 1, "other": 2, "alpha": 1}
    assert not is_random(lstm, (1,), {"train": False, "p": 0.1})


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten.add.out", "aten.relu.default", "aten.__and__.Tensor",
                                  "prims.add.default"])  # fmt: skip
def test_names_resolve_and_come_back(name):
    assert name_of(resolve(name)) == name
    assert resolve(name) is resolve(name)


@pytest.mark.parametrize(
    "name", ["aten.add", "aten.add.Tensors", "aten.no_such.default", "no_such.add.Tensor", "add.Tensor", "", "..",
             "aten.add.Tensor.x",
             "aten.add.__class__", "load_library.a.b", "aten.__dict__.x", "aten.add.overloads"])  # fmt: skip
def test_other_names_do_not_resolve(name):
    with pytest.raises(ProgramError, match="unknown operator"):
        resolve(name)


def test_lists_of_views_alias_their_source():
    assert returns_alias(resolve("aten.unbind.int")) == ("self",)
    assert is_view(resolve("aten.chunk.default"))
    assert not is_view(resolve("aten._foreach_add_.Scalar"))


class Calls(TorchDispatchMode):
    """Records the calls that reach the dispatcher, composite operators whole."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.made.append((func, *observe.copied((args, kwargs or {}))))
        return func(*args, **(kwargs or {}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_facts_hold_for_the_samples_that_torch_tests_itself_with():
    pytest.importorskip("expecttest", reason="torch's own test data needs expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    checked = set()
    for info in op_db:
        for dtype in {torch.float32, torch.complex64, torch.int64, torch.bool} & set(info.dtypes):
            for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), 6):
                recorded = Calls()
                try:
                    with torch._C._AutoDispatchBelowAutograd(), recorded:
                        info.op(sample.input, *sample.args, **sample.kwargs)
                except (RuntimeError, NotImplementedError, TypeError, AssertionError):
                    continue  # not every sample runs below autograd
                for func, args, kwargs in recorded.made:
                    try:
                        seen = Seen(func, args, kwargs)
                    except (RuntimeError, NotImplementedError):
                        continue  # an argument that cannot be copied
                    check_facts(func, args, kwargs, seen)
                    checked.add(func)
    assert len(checked) > 500
