"""What an operator gives when numbers among its arguments, or sizes, are only known while the Program runs.

    F.avg_pool1d(x, n)           x: [2, 3, 8]   ->   [2, 3, n0]
    torch.linspace(0, 1, n)                     ->   [n]

Torch's shape rule is asked several times, with other plain numbers in place of the unknown ones each time. A size on
which all answers agree is fixed. One that always equals a size or number among the arguments is that. Any other is a
size of its own, which the Program reads off the result.

What all answers have in common need not be so for every number. The Operator is recorded with the attribute
``checked``: what was taken for fixed. The executor holds each result against it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Variable
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.tracer.numbers import number_operands
from runtime.tracer.recording.session import Session

if TYPE_CHECKING:
    import sympy
else:
    from runtime.tracer.numbers.symbols import sympy

Casting = tuple[tuple[str, bool, str], ...]
Judge = Callable[[Exception, list[Any], dict[str, Any]], Exception]
_Values = dict[Any, Any]

_INTS = (2, 1, 3, 4, 0, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32, -1, -2)
_FLOATS = (0.5, 2.0, 1.0, 1.5, 3.0, 0.1, 20.0, -0.5, 0.0)
_SIZES = (12, 60, 8, 7, 4, 30, 25, 24)
_FEW = 5
_MOST_TRIED = 400
_FAILURES: tuple[type[Exception], ...] = (
    RuntimeError, ValueError, TypeError, IndexError, ArithmeticError)


class Unlike(BaseException):
    """For one value of a staged number the result has another form than for others. No user's handler sees it."""

    def __init__(self, stand_in: int | float, value: Any) -> None:
        super().__init__(stand_in, value)
        self.stand_in, self.value = stand_in, value


@dataclass
class _Unknown:
    """A symbol for something that is not known, and what it may be."""

    symbol: sympy.Symbol
    domain: tuple[Any, ...]
    stand_in: int | float | None = None


class _Call:
    """A call, and its unknown numbers and sizes as symbols."""

    def __init__(self, session: Session, args: Any, kwargs: Any) -> None:
        self.session = session
        self.args, self.kwargs = args, kwargs
        self.unknown: dict[sympy.Symbol, _Unknown] = {}
        self.expressions: dict[int | float, Any] = {}
        """What each stand-in is, as an expression over symbols."""
        self.sources: list[tuple[Any, Any]] = []
        """Expressions, and the size or symbolic number that has that value."""
        self._find((*args, *kwargs.values()))

    def _find(self, value: Any) -> None:
        if is_a(value, (list, tuple)):
            for item in value:
                self._find(item)
        elif is_a(value, torch.Tensor):
            for size in value.shape:
                if is_a(size, torch.SymInt):
                    self._note(size.node.expr, _SIZES)
                    self.sources.append((size.node.expr, size))
        elif is_a(value, (torch.SymInt, torch.SymFloat)):
            whole = is_a(value, torch.SymInt)
            self._note(value.node.expr, _INTS if whole else _FLOATS)
            if whole:
                self.sources.append((value.node.expr, value))
        else:
            number = number_operands.of(self.session, value)
            if number is not None and value not in self.expressions:
                self._stands_in(value, number)

    def _stands_in(self, value: int | float, number: Any) -> None:
        whole = type(value) is int
        expr = self.session.sizes.expression(number) if whole else None
        if expr is not None and expr.free_symbols:
            self._note(expr, _INTS)
            self.sources.append((expr, self.session.sizes.symbolic(number)))
        else:
            expr = sympy.Dummy()
            barred = self.session.values.special_numbers.get(value, frozenset())
            domain = tuple(one for one in (_INTS if whole else _FLOATS) if one not in barred)
            self.unknown[expr] = _Unknown(expr, domain, value)
            if whole:
                self.sources.append((expr, number))
        self.expressions[value] = expr

    def _note(self, expr: Any, domain: tuple[Any, ...]) -> None:
        for symbol in expr.free_symbols:
            known = self.unknown.get(symbol)
            if known is None or domain is _SIZES:
                self.unknown[symbol] = _Unknown(symbol, domain)

    def concrete(self, value: Any, values: _Values) -> Any:
        """The value with plain numbers in place of what is not known."""
        if is_a(value, (list, tuple)):
            return type(value)(self.concrete(item, values) for item in value)
        if is_a(value, torch.Tensor):
            parts = [*value.shape, *torch_internals.strides_of(value)] if value.layout is torch.strided else []
            if all(type(part) is int for part in parts):
                return value
            with torch_internals.fake_only(self.session.fake_mode):
                return torch.empty_strided(
                    [self.concrete(size, values) for size in value.shape],
                    [self.concrete(stride, values) for stride in torch_internals.strides_of(value)],
                    dtype=value.dtype, device=value.device)
        if is_a(value, torch.SymInt):
            return int(value.node.expr.xreplace(values))
        if is_a(value, torch.SymFloat):
            return float(value.node.expr.xreplace(values))
        if type(value) in (int, float) and value in self.expressions:
            found = self.expressions[value].xreplace(values)
            return int(found) if type(value) is int else float(found)
        return value

    def assignments(self) -> Iterator[_Values]:
        """Values for all that is unknown, the likeliest first."""
        every = list(self.unknown.values())
        most = max((len(one.domain) for one in every), default=0)
        for place in range(most):  # all alike
            yield {one.symbol: one.domain[place % len(one.domain)] for one in every}
        for chosen in itertools.product(*(one.domain[:_FEW] for one in every)):
            yield {one.symbol: value for one, value in zip(every, chosen)}

    def variations(self, base: _Values) -> Iterator[_Values]:
        """Assignments that differ from one in a single number, and those in which all are alike."""
        for one in self.unknown.values():
            for value in one.domain:
                yield {**base, one.symbol: value}
        most = max((len(one.domain) for one in self.unknown.values()), default=0)
        for place in range(most):
            yield {one.symbol: one.domain[place % len(one.domain)] for one in self.unknown.values()}


@dataclass(frozen=True)
class _Sample:
    values: _Values
    result: Any
    flat: list[Any]


def apply(
    session: Session, func: Any, args: Any, kwargs: Any, casting: Casting = (), judged: Judge | None = None
) -> Any:
    """The result of a call on fake tensors; None if no numbers were found for which torch has one.

    ``judged``: what to raise where the shape rule raises for arguments that hold no unknown numbers any more.

    Raises:
        Unlike: For one value of a number that a plain one stands for, the result has another form.
        Exception: What the shape rule raises whatever the numbers are.
    """
    call = _Call(session, args, kwargs)
    if func._schema.is_mutable or not call.unknown:
        return None
    failures: list[Exception] = []
    failed: list[tuple[list[Any], dict[str, Any]]] = []
    """The arguments that each failure is about."""
    really = False

    def tried(values: _Values) -> _Sample | None:
        given: list[Any] = []
        named: dict[str, Any] = {}
        try:
            given += [call.concrete(arg, values) for arg in args]
            named |= {key: call.concrete(value, values) for key, value in kwargs.items()}
            result = torch_internals.by_own_rule(session.fake_mode, session.shape_env, func, given, named)
            if result is None:
                result = torch_internals.fake_call(session.fake_mode, func, given, named, casting)
        except _FAILURES as error:
            failures.append(error)
            failed.append((given, named))
            if not torch_internals.is_shape_error(error):
                real = torch_internals.real_results(func, given, named) if really else None
                return None if real is None else _Sample(values, real, list(_flat(real)))
            shape_env = session.shape_env  # the rule asks what a tensor holds: it is tried on real ones
            result = torch_internals.unknown_sizes(session.fake_mode, shape_env, func, given, named, casting)
            if result is None:
                return None
        _require_apart(session, result, (*given, *named.values()))
        return _Sample(values, result, list(_flat(result)))

    likely = itertools.islice(call.assignments(), _MOST_TRIED)
    base = next((found for values in likely if (found := tried(values))), None)
    if base is None and func.namespace == "aten" and not any(map(torch_internals.is_shape_error, failures)):
        really = True  # the rule may be at fault
        base = next((found for values in itertools.islice(call.assignments(), _FEW) if (found := tried(values))), None)
    if base is None:
        if len(set(map(str, failures))) == 1 and not torch_internals.is_shape_error(failures[0]):
            raise failures[0] if judged is None else judged(failures[0], *failed[0])
        return None
    every = [base]
    seen = [base.values]
    for values in itertools.islice(call.variations(base.values), _MOST_TRIED):
        if values not in seen:
            seen.append(values)
            found = tried(values)
            if found is not None:
                every.append(found)
    every = _of_one_form(call, every)
    varied = all(len({found.values[symbol] for found in every}) > 1 for symbol in call.unknown)
    return _merged(call, every, varied, [found.result for found in every])


def _require_apart(session: Session, result: Any, args: Sequence[Any]) -> None:
    """Refuse results that share memory with an argument: which part of it depends on the number."""
    given = {torch_internals.storage_identity(one) for one in _flat(args) if is_a(one, torch.Tensor)
             and one.layout is torch.strided}
    for one in _flat(result):
        if is_a(one, torch.Tensor) and one.layout is torch.strided:
            if torch_internals.storage_identity(one) in given:
                raise session.error(
                    "which part of a tensor's memory this function gives depends on a number that is only known while "
                    "the Program runs", hint="Choose between fixed values with if, and call the function on each path.",
                    code="D2S238")


def _flat(value: Any) -> Iterator[Any]:
    if is_a(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _form(found: _Sample) -> Any:
    return [(one.dim(), one.dtype, one.device, one.layout) if is_a(one, torch.Tensor) else one
            for one in found.flat]


def _of_one_form(call: _Call, every: list[_Sample]) -> list[_Sample]:
    """The results, which all have one form.

    Raises:
        Unlike: They have two, and what makes the difference is one value of a stand-in.
    """
    forms: list[Any] = []
    groups: list[list[_Sample]] = []
    for found in every:
        form = _form(found)
        if form not in forms:
            forms.append(form)
            groups.append([])
        groups[forms.index(form)].append(found)
    if len(groups) == 1:
        return every
    for group in sorted(groups, key=len):
        others = [found for one in groups if one is not group for found in one]
        for symbol, unknown in call.unknown.items():
            values = {found.values[symbol] for found in group}
            if unknown.stand_in is not None and len(values) == 1:
                if values.isdisjoint(found.values[symbol] for found in others):
                    raise Unlike(unknown.stand_in, values.pop())
    raise _undecided(call.session)


def _undecided(session: Session) -> Exception:
    return session.error(
        "the form of a result (its number of dimensions or parts, its dtype or memory layout) depends on a number that "
        "is only known while the Program runs",
        hint="Choose between fixed values with if, and call the function on each path.", code="D2S238")


def _merged(call: _Call, every: list[_Sample], varied: bool, results: list[Any]) -> Any:
    first = results[0]
    if is_a(first, (list, tuple)):
        parts = [_merged(call, every, varied, list(items)) for items in zip(*results)]
        return type(first)(parts)
    if not is_a(first, torch.Tensor):
        return first
    if first.layout is not torch.strided or first.is_quantized or any(one.dtype != first.dtype for one in results):
        raise _undecided(call.session)
    sizes = [_size(call, every, varied, list(dims)) for dims in zip(*(one.shape for one in results))]
    order = order_of(results)
    with torch_internals.fake_only(call.session.fake_mode):
        if order is None:
            made = torch.empty(sizes, dtype=first.dtype, device=first.device)
            call.session.values.any_layout[made] = True
        else:
            made = torch.empty([sizes[dim] for dim in order], dtype=first.dtype, device=first.device)
            made = made.permute([order.index(dim) for dim in range(len(order))])
    call.session.values.sampled[made] = order
    return made


def order_of(results: list[Any]) -> list[int] | None:
    """The dimensions from the outermost in memory to the innermost, as all results have them; None if they differ."""
    for one in results:
        strides = torch_internals.strides_of(one)
        order = sorted(range(one.dim()), key=lambda dim: (-strides[dim], dim))
        if all(result.permute(order).is_contiguous() for result in results):
            return order
    return None


def _size(call: _Call, every: list[_Sample], varied: bool, sizes: list[Any]) -> Any:
    if any(type(size) is not int for size in sizes):  # it depends on what the tensors hold
        return torch_internals.new_symbol(call.session.shape_env, size=True)
    if varied and len(set(sizes)) == 1:
        return sizes[0]
    for expr, source in call.sources:
        if len(set(sizes)) > 1 and all(expr.xreplace(found.values) == size for found, size in zip(every, sizes)):
            return call.session.sizes.symbolic(source)
    return torch_internals.new_symbol(call.session.shape_env, size=True)


def checks(session: Session, results: Sequence[Any]) -> dict[str, Any]:
    """The attribute of an Operator that says what is only known from samples of its results; {} if nothing is."""
    if not any(is_a(one, torch.Tensor) and one in session.values.sampled for one in results):
        return {}
    return {aten.CHECKED: [_taken_for_fixed(session, one) for one in results]}


def _taken_for_fixed(session: Session, result: Any) -> Any:
    if not is_a(result, torch.Tensor):
        return None
    sizes = [size if type(size) is int else None for size in result.shape]
    return [result.dtype, sizes, session.values.sampled.get(result)]


def require_relations(session: Session, results: Sequence[Any], variables: Sequence[Variable]) -> None:
    """Record tests of the sizes that were taken for sizes or numbers among the arguments."""
    for result, var in zip(results, variables):
        if is_a(result, torch.Tensor) and result in session.values.sampled:
            for dim, size in enumerate(result.shape):
                if type(size) is not int and not session.sizes.is_read_off(size, var, dim):
                    (real,) = session.emit("scalar.size", [var, dim])
                    (same,) = session.emit("scalar.eq", [real, session.sizes.materialize(size)])
                    session.emit("assert", [same], attrs={
                        "exception": "RuntimeError",
                        "message": "a size here is not related to the arguments in the way that it was for all numbers "
                        "tried while tracing",
                    })  # fmt: skip

__all__ = ["Unlike", "apply", "checks", "order_of", "require_relations"]
