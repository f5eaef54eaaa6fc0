"""Eager as the oracle: what a function does, converted and not, and everything of it that can be seen.

``run`` calls something and notes all that it did, ``same`` compares two things, ``check`` and ``check_module`` hold a
converted function or module against the original on some calls. No other helper of the tests compares tensors, but for
those that ``tests.test_layout`` names, each with the reason; single tests may ask whether two tensors are equal.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import io
import itertools
import random
import struct
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dy2static
from runtime.autodiff import gradient_path
from runtime.errors import Dy2StaticError
from tests.devices import DEVICE

REFUSED = "eager refuses to differentiate this"
ROUNDING = 0.0
"""What values may differ by in any case: for backends that add in another order."""
Call = Sequence[Any] | dict[str, Any]
"""The arguments of a call, by position or by name."""
PATHS = ("program", "autograd")
"""How gradients are found: by the backward Program, and by torch's autograd behind the forward one."""
_NO_GRADIENT = (
    "modified by an inplace operation", "derivative for", "in at::autocast::prioritize",
    "returned an invalid gradient",  # out= gave a tensor with a history another shape
    "backward through the graph a second time",  # of state with a history that the call before used up
    "Trying to use a saved tensor that has been detached in-place",
    "ZeroTensors are immutable",  # a fault of PyTorch's own, of a gradient of a gradient
    "is a view and is being modified inplace", "its base or another view of its base has been modified inplace",
)  # fmt: skip
_ATOMS = (int, str, bytes, bool, type(None), type(...), type, types.ModuleType, torch.dtype)
_CODE = (type, types.FunctionType, types.MethodType, functools.partial, functools._lru_cache_wrapper)


class _Pairs:
    """Which things of one side are which of the other: each is one, on both sides."""

    def __init__(self) -> None:
        self._there: dict[int, int] = {}
        self._back: dict[int, int] = {}

    def new(self, got: int, expected: int) -> bool | None:
        """True for two that were not met, False for two that are a pair, None for two that are not."""
        if got not in self._there and expected not in self._back:
            self._there[got], self._back[expected] = expected, got
            return True
        return False if self._there.get(got) == expected else None


class Comparison:
    """One walk through two values: types, structure, values, and which objects are the same one in both.

    ``strides``: tensors lie in memory alike as well: strides, offset, which share memory, which are leaves and what
    else torch says of a tensor. Not asked of everything: a Program may lay out what it computes in another way.
    ``apart``: tensors that are one object in eager may be two. ``by_name``: users' classes are compared by name.
    ``bits``: numbers are the same bit for bit: -0.0 is not 0.0. In tensors any NaN is the same as any other.
    """

    def __init__(
        self, tolerance: float = 0.0, strides: bool = False, apart: bool = False, by_name: bool = False,
        bits: bool = False,
    ) -> None:
        self.tolerance = max(tolerance, ROUNDING)
        self.strides = strides
        self.apart = apart
        self.by_name = by_name
        self.bits = bits
        self._objects_of = _Pairs()
        self._memory_of = _Pairs()
        self._alive: list[Any] = []

    def compare(self, got: Any, expected: Any, path: str) -> None:
        """Assert that two values are the same."""
        if self.by_name and type(got) is type(expected) and isinstance(got, _CODE):
            return self._code(got, expected, path)
        if self.by_name and type(got).__name__ == type(expected).__name__ and type(got) is not type(expected):
            if isinstance(expected, tuple) or not self._was_met(got, expected, path):
                self.compare(_held_by(got), _held_by(expected), f"{path} fields")
            return
        assert type(got) is type(expected), f"{path}: {type(got)} and in eager {type(expected)}"
        if isinstance(got, float):
            self._floats(got, expected, path)
        elif isinstance(got, complex):
            self.compare((got.real, got.imag), (expected.real, expected.imag), path)
        elif isinstance(got, _ATOMS):
            assert got == expected, f"{path}: {got!r} and in eager {expected!r}"
        elif isinstance(got, slice):
            self.compare((got.start, got.stop, got.step), (expected.start, expected.stop, expected.step), path)
        elif isinstance(got, tuple):  # two equal ones may be one object: Python itself folds constants
            self._items(got, expected, path)
            self._attributes(got, expected, path)
        elif not self._was_met(got, expected, path):
            self._objects(got, expected, path)

    def _code(self, got: Any, expected: Any, path: str) -> None:
        """Classes and functions by name, partial functions and methods with what they hold."""
        if isinstance(got, functools.partial):
            self.compare((got.func, got.args, got.keywords), (expected.func, expected.args, expected.keywords), path)
            return
        assert got.__qualname__ == expected.__qualname__, f"{path}: {got} and in eager {expected}"
        if isinstance(got, types.MethodType):
            self.compare(got.__self__, expected.__self__, f"{path}.__self__")

    def _was_met(self, got: Any, expected: Any, path: str) -> bool:
        """Whether two objects were compared before; it is the same object in both, or in neither."""
        if self.apart and isinstance(got, torch.Tensor):
            return False
        self._alive += got, expected  # no other object gets their ids
        new = self._objects_of.new(id(got), id(expected))
        assert new is not None, f"{path}: identity of a {type(got).__name__}: one object here, two in the other"
        return not new

    def _objects(self, got: Any, expected: Any, path: str) -> None:
        if isinstance(got, torch.Tensor):
            self._tensors(got, expected, path)
        elif isinstance(got, (list, collections.deque)):
            if isinstance(got, collections.deque):
                assert got.maxlen == expected.maxlen, f"{path}: maxlen {got.maxlen} and in eager {expected.maxlen}"
            self._items(got, expected, path)
        elif isinstance(got, dict):
            self._items(list(got), list(expected), f"{path} keys")
            for (key, value), other in zip(got.items(), expected.values()):
                self.compare(value, other, f"{path}[{key!r}]")
        elif isinstance(got, (np.ndarray, np.generic)):
            for fact in ("dtype", "shape"):
                seen = getattr(got, fact), getattr(expected, fact)
                assert seen[0] == seen[1], f"{path}: {fact} {seen[0]} and in eager {seen[1]}"
            if self.strides and isinstance(got, np.ndarray):
                seen = (got.strides, got.flags.writeable), (expected.strides, expected.flags.writeable)
                assert seen[0] == seen[1], f"{path}: strides, writeable {seen[0]} and in eager {seen[1]}"
            self.compare(got.tolist(), expected.tolist(), path)
        elif isinstance(got, (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)):
            names = [getattr(one, "__func__", one.__qualname__) for one in (got, expected)]
            assert names[0] == names[1], f"{path}: {names[0]} and in eager {names[1]}"
            self.compare(got.__self__, expected.__self__, f"{path}.__self__")
        elif isinstance(got, Iterator) and hasattr(got, "__reduce__") and not isinstance(got, types.GeneratorType):
            self._items(list(copy.copy(got)), list(copy.copy(expected)), f"{path} items")
        elif isinstance(got, torch.nn.Module) and got is not expected:
            self.compare(state_of(got), state_of(expected), path)
        elif isinstance(got, BaseException):
            self.compare(got.args, expected.args, f"{path}.args")
        elif got is not expected and not self._has_content(got):
            assert got == expected, f"{path}: {got!r} and in eager {expected!r}"
        self._attributes(got, expected, path)

    def _floats(self, got: float, expected: float, path: str) -> None:
        near = abs(got - expected) <= self.tolerance * max(abs(got), abs(expected))
        alike = got == expected or (got != got and expected != expected) or near
        if self.bits:
            alike = struct.pack("d", got) == struct.pack("d", expected)
        assert alike, f"{path}: {got} and in eager {expected}"

    def _items(self, got: Sequence[Any], expected: Sequence[Any], path: str) -> None:
        assert len(got) == len(expected), f"{path}: {len(got)} items and in eager {len(expected)}"
        for index, (item, other) in enumerate(zip(got, expected)):
            self.compare(item, other, f"{path}[{index}]")

    def _attributes(self, got: Any, expected: Any, path: str) -> None:
        if got is expected or callable(got):
            return
        mine, theirs = _attributes(got), _attributes(expected)
        assert list(mine) == list(theirs), f"{path}: attributes {list(mine)} and in eager {list(theirs)}"
        for name, value in mine.items():
            self.compare(value, theirs[name], f"{path}.{name}")

    @staticmethod
    def _has_content(value: Any) -> bool:
        return not callable(value) and (hasattr(value, "__dict__") or bool(_attributes(value)))

    def _tensors(self, got: torch.Tensor, expected: torch.Tensor, path: str) -> None:
        facts = ["dtype", "shape", "layout", "device", "requires_grad", *(["is_leaf"] if self.strides else [])]
        for fact in facts:
            seen = getattr(got, fact), getattr(expected, fact)
            assert seen[0] == seen[1], f"{path}: {fact} {seen[0]} and in eager {seen[1]}"
        if self.strides:
            self._layouts(got, expected, path)
        if got.is_neg() and got.dtype is torch.bool:  # nobody can read that
            return
        if not _equal(got, expected):
            near = self.tolerance if got.is_floating_point() or got.is_complex() or got.is_quantized else 0.0
            torch.testing.assert_close(
                got, expected, rtol=near, atol=near, equal_nan=True, msg=lambda m: f"{path}: {m}"
            )
        if self.bits and (got.is_floating_point() or got.is_complex()):
            signs = [_parts(one).signbit() for one in (got, expected)]
            wrong = (signs[0] != signs[1]) & ~_parts(got).isnan()
            assert not wrong.any(), f"{path}: signs of zeros: {got} and in eager {expected}"

    def _layouts(self, got: torch.Tensor, expected: torch.Tensor, path: str) -> None:
        for question in ("is_conj", "is_neg", "is_inference"):
            answers = getattr(got, question)(), getattr(expected, question)()
            assert answers[0] == answers[1], f"{path}.{question}(): {answers[0]} and in eager {answers[1]}"
        if got.layout is not torch.strided:
            return
        assert got.stride() == expected.stride(), f"{path}: strides {got.stride()} and in eager {expected.stride()}"
        assert got.storage_offset() == expected.storage_offset(), f"{path}: storage_offset()"
        mine, theirs = got.untyped_storage()._cdata, expected.untyped_storage()._cdata
        shared = self._memory_of.new(mine, theirs) is not None
        assert shared, f"{path}: memory that is shared in one of them is its own in the other"


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds by name, in ``__dict__`` and in slots."""
    slots = {
        name: getattr(value, name)
        for cls in type(value).__mro__
        if cls.__module__ not in ("builtins", "collections", "torch", "torch._C")
        for name in ([cls.__dict__["__slots__"]] if isinstance(cls.__dict__.get("__slots__"), str)
                     else cls.__dict__.get("__slots__", ()))
        if name not in ("__dict__", "__weakref__") and hasattr(value, name)
    }  # fmt: skip
    return {**slots, **getattr(value, "__dict__", {})}


def _held_by(value: Any) -> dict[str, Any]:
    """What an object of a user's class holds by name; a named tuple its items."""
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else dict(_attributes(value))


def _equal(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two common tensors are equal. It is a tenth of the time of an assertion that allows for more."""
    plain = type(got) in (torch.Tensor, torch.nn.Parameter) and got.layout is torch.strided
    plain = plain and got.device.type == DEVICE.type
    return plain and got.dtype in (torch.float32, torch.float64, torch.int64, torch.bool) and torch.equal(got, expected)


def _parts(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's floats: of complex numbers their parts."""
    return torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()


def same(got: Any, expected: Any, path: str = "result", tolerance: float = 0.0, **how: bool) -> None:
    """Assert that two values are equal in type, structure, value, and in which of their parts are one object.

    ``how``: see ``Comparison``.
    """
    Comparison(tolerance, **how).compare(got, expected, path)


def difference(got: Any, expected: Any, tolerance: float = 0.0, **how: bool) -> str:
    """As ``same``, for what notes a difference and goes on: the difference in words, empty where there is none."""
    try:
        same(got, expected, "result", tolerance, **how)
    except AssertionError as error:
        return str(error)
    return ""


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples, dicts and deques, one after another."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple, collections.deque)):
        return [tensor for item in value for tensor in tensors(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors(item)]
    return []


def opened(value: Any) -> Any:
    """A result with the objects of users' classes in it as dicts: for what stands for such classes in a file."""
    if type(value) in (list, tuple, dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        found = {key: opened(item) for key, item in items}
        return found if isinstance(value, dict) else type(value)(found.values())
    held = {} if isinstance(value, (torch.Tensor, *_ATOMS)) else _held_by(value)
    return {name: opened(item) for name, item in held.items()} if held else value


def copied(call: Call) -> Any:
    """The arguments of a call for one of those that are compared; what can be called is not copied."""
    memo: dict[int, Any] = {}
    if isinstance(call, dict):
        return dict(zip(call, copied(list(call.values()))))
    return [copy.deepcopy(item, memo) if not callable(item) else item for item in call]


@dataclass
class Outcome:
    """All that a call did."""

    result: Any = None
    error: Exception | None = None
    printed: str = ""
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    """Of the arguments, and of the parameters that were named."""
    refused: str = ""
    """What torch said where the result cannot be differentiated."""
    random: torch.Tensor | None = None
    """The next random number."""


_start_again = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
"""Of an accelerator that is not there ``torch.manual_seed`` notes the seed for later, with the text of the stack."""


def seeded(seed: int) -> None:
    """Every random generator starts again."""
    _start_again(seed)
    random.seed(seed)
    np.random.seed(seed)


def loss_of(result: Any) -> torch.Tensor | None:
    """A number that every element of every tensor that has a gradient counts in, each with its own weight."""
    total = None
    for index, tensor in enumerate(one for one in tensors(result) if one.requires_grad):
        value = tensor.abs() if tensor.is_complex() else tensor.double().abs()
        weights = (torch.arange(value.numel()) % 3 + index + 1).reshape(value.shape)
        part = (value * weights.to(value.device)).sum()
        total = part if total is None else total + part
    return total


def run(
    function: Callable[..., Any], args: Call, seed: int = 0, parameters: Sequence[Any] = (),
    scale: float = 1.0, gradients: bool = True,
) -> Outcome:  # fmt: skip
    """Call a function, and differentiate what it gives with respect to the arguments and parameters.

    ``scale``: the loss is multiplied by it, and the gradients are divided by it.
    """
    seeded(seed)
    outcome = Outcome()
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            outcome.result = function(**args) if isinstance(args, dict) else function(*args)
    except Dy2StaticError:
        raise
    except Exception as error:  # whatever eager raises is what is compared
        outcome.error = error
    outcome.printed = text.getvalue()
    sys.stdout.write(outcome.printed)
    leaves = [tensor for tensor in tensors([args, list(parameters)]) if tensor.requires_grad and tensor.is_leaf]
    loss = loss_of(outcome.result) if gradients and leaves else None
    if loss is not None:
        try:
            found = torch.autograd.grad(loss * scale if scale != 1.0 else loss, leaves, allow_unused=True)
            outcome.gradients = [grad if grad is None or scale == 1.0 else grad / scale for grad in found]
        except RuntimeError as error:
            if not any(words in str(error) for words in _NO_GRADIENT):
                raise
            outcome.refused = str(error)
    outcome.random = torch.rand(())
    return outcome


@dataclass(frozen=True)
class Terms:
    """How far two outcomes may be apart; each field that is not its default loosens something, for a stated reason."""

    tolerance: float = 0.0
    """For kernels that sum in another order where a Program calls another overload."""
    gradient_tolerance: float | None = None
    """Gradients are sums in an order that autograd does not promise: 1e-6 at least."""
    none_is_zero: bool = False
    """Random programs multiply by constants of zero: eager has a gradient of zeros where another has none."""
    rounding: Sequence[float] = ()
    """In half precision gradients may differ by twice as much as eager's own do with the loss scaled by these."""
    largest: bool = False
    """The gradients' tolerance is for the largest of them: deep models have parameters whose gradient is noise."""
    strides: bool = False
    apart: bool = False
    """A tensor without gradient that is two results on some path is two objects where others have gradients."""
    separate_gradients: bool = False
    """Gradients that are one tensor in eager may be several: those of a loop have memory of their own."""
    by_name: bool = False
    """A file holds no code: classes of its own stand for the user's."""

    @property
    def of_gradients(self) -> float:
        return self.gradient_tolerance or max(self.tolerance, 1e-6)


def hold(
    got: Outcome, expected: Outcome, where: str, terms: Terms = Terms(), around: Sequence[tuple[str, Any, Any]] = (),
    again: Callable[[float], Outcome] | None = None,
) -> bool:  # fmt: skip
    """Assert that two outcomes are the same; whether the call gave a result.

    ``around``: what else the two could see and change (a name, ours, eager's). ``again``: eager once more, with the
    loss scaled.
    """
    comparison = Comparison(terms.tolerance, terms.strides, terms.apart, terms.by_name)
    if expected.error is not None:
        assert type(got.error) is type(expected.error), (
            f"{where}: eager raises {expected.error!r}, converted gives {got.error or got.result!r}"
        )
        said = [str(error).split("\n")[0] for error in (got.error, expected.error)]
        assert said[0] == said[1], f"{where} message: {said[0]!r} and in eager {said[1]!r}"
    elif got.error is not None:
        raise got.error
    comparison.compare(got.result, expected.result, where)
    refusals = bool(got.refused), bool(expected.refused)
    assert refusals[0] == refusals[1], f"{where} gradients refused: {got.refused!r} and in eager {expected.refused!r}"
    if not any(refusals):
        _hold_gradients(got.gradients, expected.gradients, f"{where} gradients", terms, again)
    for name, mine, theirs in around if expected.error is None else ():  # a call that raises writes nothing back
        comparison.compare(mine, theirs, f"{where} {name}")
    comparison.compare(got.printed, expected.printed, f"{where} printed text")
    comparison.compare(got.random, expected.random, f"{where} random stream")
    return expected.error is None


def _hold_gradients(
    got: list[Any], expected: list[Any], where: str, terms: Terms, again: Callable[[float], Outcome] | None
) -> None:
    tolerance = terms.of_gradients
    if terms.largest:
        largest = [float(grad.abs().max()) for grad in expected if grad is not None and grad.numel()]
        tolerance *= max(largest, default=0.0)
    if terms.none_is_zero:
        got, expected = _without_zeros(got, expected, tolerance), _without_zeros(expected, got, tolerance)
    if terms.separate_gradients:
        for one, other in itertools.combinations(range(min(len(got), len(expected))), 2):
            mine = got[one] is not None and got[one] is got[other]
            assert not mine or expected[one] is expected[other], f"{where}: {one} and {other} are one tensor"
    try:
        same(got, expected, where, tolerance, apart=terms.apart or terms.separate_gradients)
    except AssertionError:
        runs = [again(scale).gradients for scale in terms.rounding] if again is not None else []
        if not _within(got, expected, runs):
            raise


def _without_zeros(gradients: list[Any], others: list[Any], tolerance: float) -> list[Any]:
    """None for what is zero; where the other has zeros, for what is zero but for rounding as well."""
    kept = []
    for grad, other in itertools.zip_longest(gradients, others[: len(gradients)]):
        limit = tolerance if other is not None and not other.any() else 0.0
        kept.append(None if grad is not None and not (grad.abs() > limit).any() and not grad.isnan().any() else grad)
    return kept


def _within(got: list[Any], expected: list[Any], others: list[list[Any]]) -> bool:
    """Whether gradients differ by no more than rounding explains: twice what eager's own differ by."""
    for mine, theirs, *runs in zip(got, expected, *others):
        if (mine is None) != (theirs is None) or not runs:
            return False
        if mine is not None and (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return False
        if mine is not None and (mine - theirs).abs().max() > 2 * max((run - theirs).abs().max() for run in runs):
            return False
    return True


def check(
    function: Callable[..., Any], *calls: Call, static: Any = None, paths: Sequence[str] = PATHS,
    parameters: Sequence[Any] = (), **terms: Any,
) -> Any:  # fmt: skip
    """Run one converted object on all calls; each must do what eager does, or raise what eager raises.

    Compared are results, with their Python types, structure and identities, gradients, arguments afterwards, printed
    text and the random stream. ``static``: what holds instead of ``to_static(function)``, a loaded file for one.
    ``parameters``: tensors that are no arguments, whose gradients are compared too. ``terms``: see ``Terms``.
    Returns the StaticFunction.
    """
    converted = static if static is not None else dy2static.to_static(function)
    agreed = Terms(**terms)
    for number, call in enumerate(calls):
        for path in paths:
            mine, theirs = copied(call), copied(call)
            expected = run(function, theirs, number, parameters)
            with gradient_path(path):
                got = run(converted, mine, number, parameters)
            hold(
                got, expected, f"call {number} ({path})", agreed, [("arguments", mine, theirs)],
                lambda scale: run(function, copied(call), number, parameters, scale),
            )  # fmt: skip
    return converted


def check_saved(
    function: Callable[..., Any], static: Any, file: Path, *calls: Call, paths: Sequence[str] = PATHS,
    **terms: Any,
) -> Any:  # fmt: skip
    """As ``check``, of what comes back from a file that the converted function is saved to."""
    dy2static.save(static, file)
    return check(function, *calls, static=dy2static.load(file), paths=paths, by_name=True, **terms)


def check_module(
    make: Callable[[], torch.nn.Module], *calls: Call, paths: Sequence[str] = PATHS, **terms: Any
) -> Any:
    """As ``check`` for a module, which keeps what the calls leave behind: its state is compared too, after each."""
    layer: Any = None
    for path in paths:
        layer, eager = paired(make)
        hold_modules(layer, eager, calls, path, **terms)
    return layer


def paired(make: Callable[[], torch.nn.Module]) -> tuple[Any, torch.nn.Module]:
    """A module that is converted, and another like it that is not; both are made, as hooks may hold their module."""
    seeded(1234)
    layer = dy2static.to_static(make())
    seeded(1234)
    return layer, make()


def hold_modules(
    layer: Any, eager: torch.nn.Module, calls: Iterable[Call], path: str = "program",
    to_the_end: bool = True, **terms: Any,
) -> None:  # fmt: skip
    """Hold a module against the one it was converted from, through the calls.

    ``to_the_end``: also after a call that raised, which leaves in eager what it had changed before that.
    """
    agreed = Terms(**terms)
    for number, call in enumerate(calls):
        mine, theirs = copied(call), copied(call)
        expected = run(eager, theirs, number, list(eager.parameters()))
        with gradient_path(path):
            got = run(layer, mine, number, list(layer.parameters()))
        around = [("arguments", mine, theirs), ("state", state_of(layer), state_of(eager))]
        if not hold(got, expected, f"call {number} ({path})", agreed, around) and not to_the_end:
            return


def state_of(module: torch.nn.Module) -> dict[str, Any]:
    """What a user sees of a module between calls: parameters, buffers, and attributes that hold data."""
    state: dict[str, Any] = dict(itertools.chain(module.named_parameters(), module.named_buffers()))
    for prefix, inner in module.named_modules():
        for name, value in vars(inner).items():
            if not name.startswith("_") and name != "forward" and not callable(value):
                state[f"{prefix}.{name}"] = value
    return state
