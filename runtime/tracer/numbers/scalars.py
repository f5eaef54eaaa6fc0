"""Staged numbers: Python ints, floats, bools and strings that are computed while the Program runs.

Every operation on one is a scalar Operator with Python's exact semantics; nothing is simplified, so
``(t.item() + 1e16) - 1e16`` and ``inf * 0`` mean what they mean in Python.
"""

from __future__ import annotations

import numbers
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy
import torch

from runtime.ir import ScalarType, Variable
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.ambient.theirs import theirs


class Staged:
    """A Python value known only when the Program runs. ``var`` is its Variable; ``kind`` its Python type's name."""

    __slots__ = ("var", "sym", "__weakref__")
    kind: str = ""
    python_type: type = object

    def __init__(self, var: Variable, sym: Any = None) -> None:
        self.var = var
        self.sym = sym
        """The symbolic size (SymInt) that stands for the value where sizes are needed, once there is one."""

    def __repr__(self) -> str:
        if state.active() is not None:
            refuse(self, "turned into text")
        return f"<{self.kind} computed while the Program runs>"

    def __bool__(self) -> bool:
        refuse(self, "used as a condition")

    def __hash__(self) -> int:
        refuse(self, "hashed (used as a dict key or set member)")

    def __iter__(self) -> NoReturn:
        if is_a(self, StagedStr):
            refuse(self, "iterated over")
        raise TypeError(f"'{self.kind}' object is not iterable")

    def __format__(self, spec: str) -> str:
        refuse(self, "formatted")

    def __str__(self) -> str:
        refuse(self, "turned into text")

    def __eq__(self, other: object) -> Any:
        return _binary("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _binary("ne", self, other)

    def __reduce__(self) -> NoReturn:
        refuse(self, "pickled or copied")


def refuse(value: Staged, how: str) -> NoReturn:
    """Raise the located error for a use of a staged value that plain Python would freeze."""
    raise state.current().error(
        f"a Python {value.kind} that is only known while the Program runs was {how} in code that is not converted",
        hint="Let the code that does this be converted (it needs Python source), mark it with not_to_static if it "
        "does not depend on tensors, or keep the value a tensor.",
        code="D2S210",
    )


def _is_number(value: object) -> bool:
    return is_a(value, (int, float, complex, str, Staged)) or value is None


def _divided(a: Any, b: Any) -> tuple[Any, Any]:
    """``divmod(a, b)``, which has words of its own for a division of floats by zero."""
    kinds = {kind_of(one) for one in (a, b)}
    if "float" in kinds and (is_a(b, Staged) or not b):
        session = state.current()
        try:
            divmod(1.0, 0.0)
        except ZeroDivisionError as error:
            words = str(error)
        session.emit("assert", [session.operand(session.scalar("ne", b, 0))],
                     attrs={"exception": "ZeroDivisionError", "message": words})
    return a // b, a % b


def _is_real(value: object) -> bool:
    return is_a(value, (int, float, StagedNumber)) and not is_a(value, numpy.generic)


def _without(value: Staged, name: str, other: object) -> Any:
    """What an operation gives that no Operator is for: the other one may know more."""
    if computes_with_numbers(name, other):
        refuse(value, f"used together with a {type(other).__name__}")
    return NotImplemented


def _binary(name: str, a: Any, b: Any) -> Any:
    other = b if is_a(a, Staged) else a
    if is_a(other, torch.Tensor):
        return _with_tensor(name, a, b)
    if is_a(other, _AS_PYTHON_COMPARES) and name in _COMPARISONS:
        a, b = (one.item() if one is other else one for one in (a, b))
    elif computes_with_numbers(name, other):
        refuse(a if is_a(a, Staged) else b, f"used together with a {type(other).__name__}")
    elif not _is_number(other):
        return NotImplemented
    if name in _COMPARISONS and other is None:
        return name == "ne" if name in ("eq", "ne") else NotImplemented
    return state.current().scalar(name, a, b)


def computes_with_numbers(name: str, other: object) -> bool:
    """Whether an object of a library's does something with a number that it does not do with a staged one:
    ``Fraction(1, 2) * n``, ``timedelta(1) * n``. A user's class, and Python's own containers, would have said so."""
    if is_a(other, (int, float, Staged)) and not is_a(other, numpy.generic):
        return False
    if is_a(other, complex):
        return name not in _COMPARISONS
    if is_a(other, (numbers.Number, numpy.generic)):
        return True
    cls = type(other)
    if name in _COMPARISONS or cls.__module__ not in _LIBRARIES:
        return False
    return any(hasattr(cls, f"__{side}{name.rstrip('_')}__") for side in ("", "r"))


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_LIBRARIES = frozenset({"datetime", "ipaddress", "pandas", "sympy"})
_AS_PYTHON_COMPARES = (numpy.integer, numpy.bool_, numpy.float64)
"""Numbers of NumPy's that compare as Python's of their value do: a float32 would make the other one a float32."""
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _with_tensor(name: str, a: Any, b: Any) -> Any:
    """An operation of a staged number and a tensor: torch's, with the number as a symbolic one."""
    session = state.current()
    if is_a(a, torch.Tensor):
        return theirs(getattr(operator, name), a, session.sizes.symbolic(b))
    number = session.sizes.symbolic(a)
    if name in _MIRRORED or name in ("eq", "ne"):
        return theirs(getattr(operator, _MIRRORED.get(name, name)), b, number)
    return theirs(getattr(b, f"__r{name.rstrip('_')}__"), number)


def _op(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return _binary(name, self, other)

    return method


def _rop(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return _binary(name, other, self)

    return method


def _tensor_op(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """An operation that a number of a class has with tensors only."""

    def method(self: Any, other: Any) -> Any:
        if not is_a(other, torch.Tensor):
            return NotImplemented
        return _with_tensor(name, other, self) if reflected else _with_tensor(name, self, other)

    return method


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return state.current().scalar(name, self)

    return method


class StagedNumber(Staged):
    """Arithmetic shared by staged ints, floats and bools."""

    __slots__ = ()
    __hash__ = Staged.__hash__

    __add__, __radd__ = _op("add"), _rop("add")
    __sub__, __rsub__ = _op("sub"), _rop("sub")
    __rmul__ = _rop("mul")
    __truediv__, __rtruediv__ = _op("truediv"), _rop("truediv")
    __floordiv__, __rfloordiv__ = _op("floordiv"), _rop("floordiv")
    __mod__, __rmod__ = _op("mod"), _rop("mod")
    __lt__, __le__, __gt__, __ge__ = _op("lt"), _op("le"), _op("gt"), _op("ge")
    __neg__, __pos__, __abs__ = _unary("neg"), _unary("pos"), _unary("abs")
    __trunc__, __floor__, __ceil__ = _unary("math.trunc"), _unary("math.floor"), _unary("math.ceil")

    def __mul__(self, other: Any) -> Any:
        if is_a(other, (list, tuple)):
            refuse(self, "used to repeat a sequence")
        return _binary("mul", self, other)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return state.current().scalar("pow", self, other, modulo)
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _binary("pow", other, self)

    def __divmod__(self, other: Any) -> Any:
        return _divided(self, other) if _is_real(other) else _without(self, "divmod", other)

    def __rdivmod__(self, other: Any) -> Any:
        return _divided(other, self) if _is_real(other) else _without(self, "divmod", other)

    def __round__(self, digits: Any = None) -> Any:
        return (
            state.current().scalar("round", self) if digits is None else state.current().scalar("round", self, digits)
        )

    def __int__(self) -> int:
        refuse(self, "converted to an int")

    def __float__(self) -> float:
        refuse(self, "converted to a float")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions, and operators of its numbers in code that is not converted, give numbers of NumPy's."""
        refuse(self, f"given to NumPy's {ufunc.__name__}")

    def conjugate(self) -> Any:
        """The number itself, as for every real Python number."""
        return +self

    @property
    def real(self) -> Any:
        """The number itself."""
        return +self

    @property
    def imag(self) -> Any:
        """Zero of the number's own type."""
        return 0.0 if is_a(self, StagedFloat) else 0


class StagedInt(StagedNumber):
    """A Python int computed while the Program runs."""

    __slots__ = ()
    kind = "int"
    python_type: type = int
    __hash__ = Staged.__hash__

    __and__, __rand__ = _op("and_"), _rop("and_")
    __or__, __ror__ = _op("or_"), _rop("or_")
    __xor__, __rxor__ = _op("xor"), _rop("xor")
    __lshift__, __rlshift__ = _op("lshift"), _rop("lshift")
    __rshift__, __rrshift__ = _op("rshift"), _rop("rshift")
    __invert__ = _unary("invert")

    def __index__(self) -> int:
        refuse(self, "used as an index or size")

    def bit_length(self) -> Any:
        """As ``int.bit_length``."""
        return state.current().scalar("bit_length", self)


class StagedBool(StagedInt):
    """A Python bool computed while the Program runs."""

    __slots__ = ()
    kind = "bool"
    python_type = bool
    __hash__ = Staged.__hash__


class StagedFloat(StagedNumber):
    """A Python float computed while the Program runs."""

    __slots__ = ()
    kind = "float"
    python_type = float
    __hash__ = Staged.__hash__

    __and__, __rand__ = _tensor_op("and_"), _tensor_op("and_", True)
    __or__, __ror__ = _tensor_op("or_"), _tensor_op("or_", True)
    __xor__, __rxor__ = _tensor_op("xor"), _tensor_op("xor", True)
    __lshift__, __rlshift__ = _tensor_op("lshift"), _tensor_op("lshift", True)
    __rshift__, __rrshift__ = _tensor_op("rshift"), _tensor_op("rshift", True)

    def is_integer(self) -> Any:
        """As ``float.is_integer``."""
        return state.current().scalar("is_integer", self)


class StagedStr(Staged):
    """A Python str computed while the Program runs (an f-string with a staged part)."""

    __slots__ = ()
    kind = "str"
    python_type = str
    __hash__ = Staged.__hash__

    __add__, __radd__ = _op("add"), _rop("add")
    __mul__, __rmul__ = _op("mul"), _rop("mul")
    __lt__, __le__, __gt__, __ge__ = _op("lt"), _op("le"), _op("gt"), _op("ge")

    def __reversed__(self) -> Any:
        refuse(self, "iterated over")

    def __mod__(self, other: Any) -> Any:
        refuse(self, "used as a format")

    def __rmod__(self, other: Any) -> Any:
        return refuse(self, "formatted") if is_a(other, str) else NotImplemented


MethodOfText = Callable[[StagedStr, str, tuple[Any, ...], dict[str, Any]], Any]
_method_of_text: list[MethodOfText] = []


def register_methods_of_text(names: Iterable[str], method: MethodOfText) -> None:
    """Say what ``text.name(*args)`` gives, for these names."""
    _method_of_text[:] = [method]
    for name in names:
        setattr(StagedStr, name, _of_text(name))


def _of_text(name: str) -> Callable[..., Any]:
    def of_text(self: StagedStr, *args: Any, **kwargs: Any) -> Any:
        return _method_of_text[0](self, name, args, kwargs)

    of_text.__name__ = name
    return of_text


_CLASSES: dict[str, type[Staged]] = {"int": StagedInt, "bool": StagedBool, "float": StagedFloat, "str": StagedStr}


def wrap(var: Variable, sym: Any = None) -> Staged:
    """The staged value of a scalar Variable."""
    assert is_a(var.type, ScalarType)
    return _CLASSES[var.type.kind](var, sym)


def python_type(value: object) -> type:
    """``type(value)`` as eager Python would see it."""
    return value.python_type if is_a(value, Staged) else type(value)


def without_class(value: Any, name: str) -> Any:
    """A number or string of a class derived from Python's own as a plain one, which is what an operator makes of it:
    a member of an ``IntEnum``. NumPy's have operators of their own.

    Raises:
        TraceError: D2S262, the class has another operator, written in Python (``IntFlag``).
    """
    if type(value) in _PLAIN or not is_a(value, _BASES) or is_a(value, numpy.generic):
        return value
    operator_name = name.rstrip("_")
    for one in (f"__{operator_name}__", f"__r{operator_name}__"):
        if is_a(getattr(type(value), one, None), types.FunctionType):
            raise state.current().error(
                f"an operator of {type(value).__name__} and a Python number that is only known while the Program runs",
                hint="Use its value: int(...), or .value.", code="D2S262")
    base = next(cls for cls in _BASES if is_a(value, cls))
    return base.__str__(value) if base is str else base.__pos__(value)


_PLAIN = frozenset((bool, int, float, complex, str))
_BASES: tuple[Any, ...] = (int, float, complex, str)


def kind_of(value: object) -> str | None:
    """The scalar kind of a staged or plain Python number or string, None for anything else."""
    if is_a(value, Staged):
        return value.kind
    for kind, cls in (("bool", bool), ("int", int), ("float", float), ("complex", complex), ("str", str)):
        if type(value) is cls:
            return kind
    return None
