"""Symbolic sizes: which Variable each symbol stands for, and the other way round.

A size that is not fixed is a SymInt of torch's shape environment in fake tensors, and a scalar Variable in the Program.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Assume, Dim, Operand, ScalarType, Variable
from runtime.ir.flow import Flow, Kind
from runtime.kinds import is_a
from runtime.tracer.numbers import known_sizes, scalars
from runtime.tracer.numbers.scalars import Staged, StagedBool, StagedFloat, StagedInt

if TYPE_CHECKING:
    import sympy
else:
    from runtime.tracer.numbers.symbols import sympy

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "neg": lambda a: -a,
    "pos": lambda a: +a,
    "min": torch.sym_min,
    "max": torch.sym_max,
}


class Sizes:
    """The symbols of one trace."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._definitions: dict[Variable, tuple[str, tuple[Any, ...]]] = {}
        self._meanings: dict[Variable, tuple[str, tuple[Any, ...]]] = {}
        self._numbers: dict[Variable, Any] = {}
        self._values: dict[sympy.Symbol, Variable] = {}
        self._sizes: dict[sympy.Symbol, tuple[Variable, int]] = {}
        self._names: dict[sympy.Symbol, str] = {}
        self._inputs: dict[sympy.Symbol, tuple[str, int]] = {}
        self._asserts_seen: set[Any] = set()
        self._forgotten: set[Any] = set()
        """What was assumed in Blocks that are closed."""
        self._of_paths: set[Any] = set()
        """What follows from what the path to it says, where it was assumed."""
        self._on_path: dict[sympy.Symbol, Any] = {}
        """Sizes that are others, or numbers, on the path that the trace is on."""
        self._added: dict[sympy.Symbol, Any] = {}
        """What iterations of a loop have added to a size or number, as an expression over it."""
        self.natural: set[Variable] = set()
        """Counters of loops, which are never negative."""
        self.apart: dict[str, frozenset[int]] = {}
        """By input: open dimensions whose sizes 0 and 1 are cases of their own, with Programs of their own."""

    # -- symbols -------------------------------------------------------------------------------------------------

    def new_input_symbol(self, input_name: str, dim: int, hint: int) -> torch.SymInt:
        """A symbol for a dimension of an input; ``hint`` is its size in the call that is traced."""
        symbol = torch_internals.new_symbol(self.session.shape_env, size=True, hint=hint)
        expr = symbol.node.expr
        self._names[expr] = f"s{len(self._inputs)}"
        self._inputs[expr] = (input_name, dim)
        return symbol

    def fresh(self) -> torch.SymInt:
        """A symbol for a size that is only known while the Program runs."""
        return torch_internals.new_symbol(self.session.shape_env, size=True)

    def bind_size(self, size: Any, var: Variable, dim: int) -> None:
        """Note that a bare symbol is the size of ``var`` along ``dim``."""
        if is_a(size, torch.SymInt):
            expr = size.node.expr
            if is_a(expr, sympy.Symbol) and expr not in self._values:
                known = self._sizes.setdefault(expr, (var, dim))
                if known[0] is not var and not self.session.visible(known[0]):  # of a Block that is closed by now:
                    self._sizes[expr] = var, dim  # torch remembers how many items of a tensor are not 0

    def is_read_off(self, size: Any, var: Variable, dim: int) -> bool:
        """Whether a symbolic size is by definition that of ``var`` along ``dim``."""
        return size.node.expr not in self._values and self._sizes.get(size.node.expr) == (var, dim)

    def bind_sizes(self, fake: torch.Tensor, var: Variable) -> None:
        """Bind every new symbol among the sizes of an operator's result."""
        for dim, size in enumerate(fake.shape):
            if type(size) is not int:
                self.bind_size(size, var, dim)

    def number_of(self, size: torch.SymInt) -> Variable | None:
        """The number of the Program that a size is; None if it is another one, or computed of such."""
        return self._values.get(size.node.expr)

    def visible(self, size: Any) -> bool:
        """Whether a size can be computed from what the current Block may read."""
        if type(size) is int:
            return True
        return self.are_visible(size.node.expr)

    def are_visible(self, expr: Any) -> bool:
        """Whether the current Block may read what an expression is made of."""
        for symbol in expr.free_symbols:
            if symbol in self._added:
                if not self.are_visible(self._added[symbol]):
                    return False
                continue
            var = self._values.get(symbol) or self._sizes.get(symbol, (None,))[0]
            if var is None or not self.session.visible(var):
                return False
        return True

    def dim(self, size: Any) -> Dim:
        """A symbolic size as the Program's text writes it."""
        expr = size.node.expr
        if expr.is_number:
            return int(expr)
        expr = self._without_added(expr)
        return str(expr.xreplace({symbol: sympy.Symbol(self.name(symbol)) for symbol in expr.free_symbols}))

    def name(self, symbol: sympy.Symbol) -> str:
        """The Program's name for a symbol: s0, s1... for inputs' sizes, n0, n1... for others."""
        if symbol not in self._names:
            count = sum(name.startswith("n") for name in self._names.values())
            self._names[symbol] = f"n{count}"
        return self._names[symbol]

    # -- what loops add ------------------------------------------------------------------------------------------

    def added(self, var: Variable, dim: int | None, start: Any, counted: bool) -> Any:
        """What iterations of a loop have added to the size of ``var`` along ``dim``, or to the number ``var``.

        ``start``: what it was before the loop. ``counted``: what is added is never negative.
        """
        size = self.fresh() if dim is not None else torch_internals.new_number(self.session.shape_env, "int")
        symbol = size.node.expr
        if dim is not None:
            self._sizes[symbol] = var, dim
        else:
            self._values[symbol] = var
        if not counted:
            return symbol - start
        more = torch_internals.new_count(self.session.shape_env).node.expr
        self._added[more] = symbol - start
        return more

    def first_of(self, size: Any, stop: Any) -> tuple[Any, torch.SymInt | None]:
        """The size of what ``[:stop]`` leaves of a dimension; a symbol to bind to it, if it is another number."""
        whole = sympy.Integer(size) if type(size) is int else size.node.expr
        wanted = self.in_terms(stop, {})
        if wanted is not None and self._lower(wanted) >= 0 and self._lower(whole - wanted) >= 0:
            return self.of_expression(wanted), None
        least = 0 if wanted is None else min(self._lower(wanted), self._lower(whole))
        symbol = self.fresh()
        if least <= 0:
            return symbol, None
        more = torch_internals.new_count(self.session.shape_env).node.expr
        self._added[more] = symbol.node.expr - least
        return self.of_expression(more + least), symbol

    def _lower(self, expr: Any) -> int:
        """A number that an expression is never less than; -1 if none is known."""
        env = self.session.shape_env
        if not expr.free_symbols <= env.var_to_range.keys():
            return -1
        lower = env.bound_sympy(sympy.expand(expr)).lower
        return int(lower) if lower.is_Integer else -1

    def of_expression(self, expr: Any) -> Any:
        """A size, as torch takes it."""
        expr = sympy.expand(expr)
        return int(expr) if expr.is_Integer else self.session.shape_env.create_symintnode(expr, hint=None)

    def note_number(self, var: Variable, size: Any) -> None:
        """A number of the Program is this, wherever a size is computed from it."""
        self._numbers[var] = size

    def in_terms(self, value: Any, atoms: dict[Variable, Any]) -> Any:
        """An int over symbols, with those of ``atoms`` for numbers that none stands for; None for anything else."""
        if type(value) is int:
            return sympy.Integer(value)
        if type(value) is not StagedInt:
            return None
        known = self.expression(value)
        if known is not None:
            return known
        name, args = self._definitions.get(value.var) or ("", ())
        if name in known_sizes.EXACT and all(type(arg) is int or type(arg) is StagedInt for arg in args):
            return known_sizes.EXACT[name](*(self.in_terms(arg, atoms) for arg in args))
        return atoms.setdefault(value.var, sympy.Dummy(integer=True))

    def _without_added(self, expr: Any) -> Any:
        """An expression over what the Program has: a size where it says what was added to it."""
        while not self._added.keys().isdisjoint(expr.free_symbols):
            expr = expr.xreplace({one: self._added[one] for one in expr.free_symbols if one in self._added})
            if is_a(expr, sympy.Expr):  # no condition
                expr = sympy.expand(expr)
        return expr

    # -- staged numbers to symbols -------------------------------------------------------------------------------

    def define(self, value: Any, name: str, args: tuple[Any, ...]) -> None:
        """Remember how a staged int was computed, so that its symbol keeps the relation to its operands'."""
        if is_a(value, StagedInt) and (name in _ARITHMETIC or name in known_sizes.DECIDED):
            self._definitions[value.var] = (name, args)

    def definition(self, value: Staged) -> tuple[str, tuple[Any, ...]] | None:
        """How a staged number was computed, if that was noted."""
        return self._definitions.get(value.var)

    def note_meaning(self, value: Staged, name: str, parts: tuple[Any, ...]) -> None:
        """A bool is "and_" or "or_" of some parts, which may be made where it is not: its paths say this of them."""
        self._meanings[value.var] = name, parts

    def meaning(self, value: Staged) -> tuple[str, tuple[Any, ...]] | None:
        """What a bool says of others; these may not be read."""
        return self._meanings.get(value.var) or self._definitions.get(value.var)

    def expression(self, value: Any) -> Any:
        """The expression over symbols that an int is, None for one that is no size."""
        symbol = value.sym if is_a(value, Staged) else value
        if symbol is None:
            symbol = self._numbers.get(value.var)
        if symbol is None:
            return None
        return sympy.Integer(symbol) if type(symbol) is int else symbol.node.expr

    def settled(self, value: Any) -> int | None:
        """The one value that a number has for every call, if what was asked of it, or what it is made of, says so."""
        if type(value) is int:
            return value
        expr = self.expression(value)
        if expr is not None:
            return int(expr) if expr.is_Integer else None
        name, args = self._definitions.get(value.var) or ("", ())
        if name not in _ARITHMETIC or not all(type(arg) is int or type(arg) is StagedInt for arg in args):
            return None
        parts = [self.settled(arg) for arg in args]
        made = None if None in parts else _ARITHMETIC[name](*parts)
        return made if type(made) is int else None

    def kept_apart(self, symbol: sympy.Symbol) -> bool:
        """Whether a symbol is the size of an input that is neither 0 nor 1 in any call that this Program is for."""
        name, dim = self._inputs.get(symbol, ("", -1))
        return dim in self.apart.get(name, frozenset())

    def least(self, symbol: sympy.Symbol) -> int | None:
        """What a size is at least in every call that this Program is for; None for a number that is no size."""
        if self.kept_apart(symbol):
            return known_sizes.SMALLEST
        return 0 if symbol in self._added or symbol in self._sizes and symbol not in self._values else None

    @property
    def has_added(self) -> bool:
        """Whether it is known of a size what iterations of a loop add to it."""
        return bool(self._added)

    def is_of_inputs(self, size: torch.SymInt) -> bool:
        """Whether a size is computed from sizes of inputs alone."""
        return all(symbol in self._inputs for symbol in size.node.expr.free_symbols)

    def symbolic(self, value: Any) -> Any:
        """The SymInt, SymFloat or SymBool for a staged value; other values unchanged, containers item by item."""
        if is_a(value, Staged):
            return self._symbol_for(value) if value.sym is None else value.sym
        if type(value) in (list, tuple):
            return type(value)(self.symbolic(item) for item in value)
        if type(value) is dict:
            return {key: self.symbolic(item) for key, item in value.items()}
        if type(value) is slice:
            return slice(self.symbolic(value.start), self.symbolic(value.stop), self.symbolic(value.step))
        return value

    def _symbol_for(self, value: Staged) -> Any:
        known = self._numbers.get(value.var)
        if known is not None:
            return known
        definition = self._definitions.get(value.var)
        symbol: Any
        name, args = definition or ("", ())
        if name in _ARITHMETIC and all(type(a) is int or type(a) is StagedInt for a in args):
            symbol = _ARITHMETIC[name](*(self.symbolic(arg) for arg in args))
            if type(symbol) is not int:
                self._numbers[value.var] = symbol
                return symbol
        if not is_a(value, (StagedBool, StagedInt, StagedFloat)):
            raise self.session.error(
                f"a Python {value.kind} that is only known while the Program runs is passed to torch",
                hint="Choose between fixed values with if, and call the function on each path.",
                code="D2S234",
            )
        symbol = torch_internals.new_number(self.session.shape_env, value.kind)
        (key,) = symbol.node.expr.free_symbols
        self._values[key] = value.var
        self._numbers[value.var] = symbol
        return symbol

    # -- symbols to staged numbers -------------------------------------------------------------------------------

    def staged(self, value: Any) -> Any:
        """The staged number for a SymInt, SymFloat or SymBool (a plain one when it is constant)."""
        expr = value.node.expr
        if is_a(value, torch.SymInt) and expr.is_number:
            return int(expr)
        operand = self.materialize(value)
        if not is_a(operand, Variable):
            return operand
        return scalars.wrap(operand, value)

    def materialize(self, value: Any) -> Operand:
        """The operand that holds a symbolic number's value: a constant, or a Variable of the current Block."""
        expr = value.node.expr
        if is_a(value, torch.SymBool) and not is_a(expr, sympy.Basic):
            return bool(expr)
        return self._emit(expr)

    def _emit(self, expr: Any) -> Operand:
        if expr in (sympy.true, sympy.false):
            return bool(expr)
        if expr.is_Integer:
            return int(expr)
        if expr.is_number and not expr.free_symbols:
            return float(expr)
        for scope in self.session.scope.chain():
            if expr in scope.sizes:
                return scope.sizes[expr]
        operand = self._emit_new(expr)
        if is_a(operand, Variable):
            self.session.scope.sizes[expr] = operand
        return operand

    def _emit_new(self, expr: Any) -> Operand:
        session = self.session
        if not self._added.keys().isdisjoint(expr.free_symbols):
            return self._emit(self._without_added(expr))
        if is_a(expr, sympy.Symbol):
            if expr in self._values:
                return session.require_visible(self._values[expr], "a Python number")
            if expr in self._sizes:
                var, dim = self._sizes[expr]
                session.require_visible(var)
                (size,) = session.emit("scalar.size", [var, dim])
                return size
            raise session.error(
                "a size that depends on data is used where it is not known",
                hint="Compute the size from a tensor of the same branch or loop.",
                code="D2S233",
            )
        relation = _RELATIONS.get(type(expr).__name__)
        if relation is not None and len(expr.args) == 2:
            a, b = expr.args
            if (
                relation == "eq"
                and is_a(a, sympy.Symbol)
                and a in self._values
                and self._values[a].type == ScalarType("bool")
            ):
                return self._emit(a) if b == 1 else self._apply("not_", [self._emit(a)], "bool")
            return self._apply(relation, [self._emit(a), self._emit(b)], "bool")
        folded = _FOLDS.get(type(expr).__name__)
        if folded is not None:
            result = self._emit(expr.args[0])
            for arg in expr.args[1:]:
                result = self._apply(folded, [result, self._emit(arg)], "bool" if folded in ("and_", "or_") else "int")
            return result
        two = _TWO.get(type(expr).__name__)
        if two is not None:
            return self._apply(two, [self._emit(arg) for arg in expr.args], "int")
        kind = type(expr).__name__
        if kind == "Not":
            return self._apply("not_", [self._emit(expr.args[0])], "bool")
        if kind == "CeilDiv":
            a, b = (self._emit(arg) for arg in expr.args)
            negative = self._apply("neg", [a], "int")
            return self._apply("neg", [self._apply("floordiv", [negative, b], "int")], "int")
        if kind in ("ToFloat", "FloatTrueDiv", "IntTrueDiv"):
            args = [self._emit(arg) for arg in expr.args]
            if kind != "ToFloat" and self.session.replaying is not None and self._may_be_zero(expr.args[1]):
                return self._divided_as_in_c(*args)
            return self._apply("float" if kind == "ToFloat" else "truediv", args, "float")
        if kind in ("TruncToInt", "FloorToInt", "CeilToInt"):
            fn = {"TruncToInt": "math.trunc", "FloorToInt": "math.floor", "CeilToInt": "math.ceil"}[kind]
            return self._apply(fn, [self._emit(expr.args[0])], "int")
        raise session.error(
            f"a size computed as {self._describe(expr)} cannot be written into the Program",
            hint="Compute it with plain +, -, *, //, % or min/max.",
            code="D2S230",
        )

    def _may_be_zero(self, expr: Any) -> bool:
        known = self.session.shape_env.bound_sympy(expr) if expr.free_symbols else None
        return bool(expr == 0 if known is None else known.lower <= 0 <= known.upper)

    def _divided_as_in_c(self, a: Operand, b: Operand) -> Operand:
        """Of PyTorch's own formulas, which are C++: what is divided by 0 is infinite, or no number."""
        zero = self._apply("eq", [b, 0], "bool")
        quotient = self._apply("truediv", [a, self._apply("select", [zero, 1, b], "int")], "float")
        return self._apply("select", [zero, self._apply("mul", [a, math.inf], "float"), quotient], "float")

    def _apply(self, name: str, operands: list[Operand], kind: Any) -> Operand:
        (var,) = self.session.emit("scalar." + name, operands, types=[ScalarType(kind)])
        return var

    def _describe(self, expr: Any) -> str:
        return type(expr).__name__

    # -- facts ---------------------------------------------------------------------------------------------------

    def collect_asserts(self) -> None:
        """Turn what torch's shape rules assumed since the last call into assumes of inputs or run-time asserts."""
        for asserts in list(self.session.shape_env.deferred_runtime_asserts.values()):
            for fact in asserts:
                expr = fact.expr
                if expr in self._asserts_seen:
                    continue
                self._asserts_seen.add(expr)
                if self._trivial(expr):
                    continue
                if self._on_path and expr.xreplace(self._on_path) == sympy.true:
                    self._of_paths.add(expr)
                    continue
                if expr.free_symbols and all(symbol in self._inputs for symbol in expr.free_symbols):
                    self.assume(expr)
                else:
                    self._assert(expr)
                if is_a(expr, sympy.Ne):
                    self._positive(expr.lhs - expr.rhs)

    def note_on_path(self, one: Any, other: Any) -> None:
        """Two sizes, as expressions, are equal in the Block that is open: the path to it says so."""
        for symbol, value in ((one, other), (other, one)):
            if is_a(symbol, sympy.Symbol) and symbol not in value.free_symbols:
                self._on_path = {**self._on_path, symbol: value.xreplace(self._on_path)}
                return

    def note_least_on_path(self, symbol: Any, least: int) -> None:
        """A size is at least so much in the Block that is open: the path to it says so."""
        if symbol not in self._on_path and least > 0:
            more = sympy.Dummy(integer=True, nonnegative=True)
            self._on_path = {**self._on_path, symbol: more + least}

    def collect_of_inputs(self) -> None:
        """Turn what torch's Python assumed of inputs' sizes into assumes, though no Operator came after it."""
        for expr in self._facts() - self._asserts_seen:
            if expr.free_symbols and expr.free_symbols <= self._inputs.keys() and not self._trivial(expr):
                self._asserts_seen.add(expr)
                self.assume(expr)

    def _positive(self, expr: Any) -> None:
        """Of a size that is not 0, note that it is 1 at least: the ranges that torch keeps have no holes, and where a
        later fact leaves the 0 alone, what was divided by that size is a division by zero while this is traced."""
        env = self.session.shape_env
        for size in (expr, -expr):
            if size.is_integer and env.bound_sympy(size).lower == 0:  # a float that is not 0 may be 0.5
                known = self._facts()
                torch_internals.assume(env.create_symintnode(size, hint=None) >= 1)
                self._asserts_seen |= self._facts() - known  # it follows from what is asserted

    def facts_of_inputs(self) -> set[Any]:
        """What shape rules and derivative formulas assumed of the sizes of inputs so far, in closed Blocks as well."""
        every = (self._forgotten | self._facts()) - self._of_paths
        return {fact for fact in every if fact.free_symbols <= self._inputs.keys() and not self._trivial(fact)}

    def places(self, facts: Iterable[Any], inputs: Sequence[str]) -> dict[Any, tuple[int, int]]:
        """Where the sizes come from that facts about inputs speak of: the number of the input, and the dimension."""
        named = {symbol: self._inputs[symbol] for fact in facts for symbol in fact.free_symbols}
        return {symbol: (inputs.index(name), dim) for symbol, (name, dim) in named.items()}

    def _facts(self) -> set[Any]:
        return {fact.expr for facts in self.session.shape_env.deferred_runtime_asserts.values() for fact in facts}

    def facts_of_a_block(self, flow: Flow) -> contextlib.AbstractContextManager[None]:
        """What shape rules assume of sizes while a Block is recorded holds in it alone: a run may not come there."""
        return contextlib.nullcontext() if flow.kind is Kind.INLINE else self.forgotten()

    @contextlib.contextmanager
    def forgotten(self) -> Iterator[None]:
        """What is assumed in the ``with`` block is not assumed any more after it; facts about inputs stay written."""
        facts, seen = torch_internals.SizeFacts(self.session.shape_env), set(self._asserts_seen)
        before, on_path = len(self._numbers), self._on_path
        try:
            yield
        finally:
            self._forgotten |= self._facts()
            facts.put_back()
            self._asserts_seen, self._on_path = seen, on_path
            new = list(itertools.islice(reversed(self._numbers), len(self._numbers) - before))
            for var in [var for var in new if var in self._definitions]:
                del self._numbers[var]  # computed from others, with what was assumed of these

    def written(self) -> Callable[[], None]:
        """What puts back what is written of inputs now: facts that a Block needed which is traced again are not those
        of the Program. (``row`` of the first iteration is ``x[0]``, which is there only if there is a row.)"""
        assumes, program = list(self.session.program.assumes), self.session.program
        forgotten, of_paths = set(self._forgotten), set(self._of_paths)

        def put_back() -> None:
            program.assumes[:] = assumes
            self._forgotten, self._of_paths = forgotten, of_paths

        return put_back

    def _trivial(self, expr: Any) -> bool:
        """A size is never negative: nothing to check."""
        return is_a(expr, (sympy.Ge, sympy.Le)) and expr in (
            [sympy.Ge(s, 0) for s in expr.free_symbols] + [sympy.Le(0, s) for s in expr.free_symbols]
        )

    def assume(self, expr: Any) -> None:
        """Record a fact about input sizes."""
        self._of_paths.discard(expr)
        names = {symbol: sympy.Symbol(self.name(symbol)) for symbol in expr.free_symbols}
        self.session.add_assume(
            Assume(
                str(expr.xreplace(names)),
                {self.name(symbol): self._inputs[symbol] for symbol in sorted(expr.free_symbols, key=str)},
                self.session.location(),
            )
        )

    def _assert(self, expr: Any) -> None:
        try:
            flag = self._emit(expr)
        except Exception as error:  # an assumption that cannot be checked cannot be relied on
            raise self.session.error(
                "an operator here works only for sizes that cannot be checked while the Program runs",
                hint="Fix the size, or compute it from a tensor's shape.",
                code="D2S231",
            ) from error
        message = "tensor sizes do not fit together here: "
        message += "the sizes met while tracing were related in a way these are not"
        if expr.has(sympy.Eq):
            message += "; of sizes that are only known while the Program runs, a 1 fits the others after expand() only"
        self.session.emit("assert", [flag], attrs={"exception": "RuntimeError", "message": message})


_RELATIONS = {
    "Equality": "eq",
    "Unequality": "ne",
    "LessThan": "le",
    "StrictLessThan": "lt",
    "GreaterThan": "ge",
    "StrictGreaterThan": "gt",
}
_FOLDS = {"Add": "add", "Mul": "mul", "Min": "min", "Max": "max", "And": "and_", "Or": "or_"}
_TWO = {
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
    "Pow": "pow",
    "PowByNatural": "pow",
}


__all__ = ["Sizes"]
