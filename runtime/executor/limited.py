"""The executor of files that are not trusted: the interpreter, counting what a run asks for.

    compile_limited(program, limits=Limits(max_bytes=1 << 30, max_iterations=100_000))
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from runtime.errors import StorageError
from runtime.executor.emitter import Emitter
from runtime.executor.executable import Executable
from runtime.executor.limits import OBJECT, Limits, Meter, too_large
from runtime.executor.reuse import USUAL
from runtime.executor.watch import Watch, tensors_in
from runtime.ir import Operator, Program
from runtime.ops.scalar import FUNCTIONS as NUMBERS

_HERE = str(Path(__file__).parent)
_LARGEST_NUMBER = 1 << 16
"""Bytes of a number or text: arithmetic on larger ones takes for ever."""
_LARGEST_COUNT = 100_000
"""Of what factorials and binomials are taken."""
_here = threading.local()


def meter() -> Meter | None:
    """The meter of this thread's latest run; a function of a loaded Program that autograd calls goes on with it."""
    found: Meter | None = getattr(_here, "meter", None)
    return found


def _tick() -> None:
    found = meter()
    if found is not None:
        found.tick()


def _digits(name: str, args: Sequence[Any]) -> int:
    """About how many bytes a number or text will take, where that may be much more than its operands do."""
    first, second = (*args, None, None)[:2]
    whole = type(first) in (int, bool) and type(second) in (int, bool)
    if name == "pow" and whole and len(args) == 2:
        return int(first).bit_length() * max(int(second), 0) // 8
    if name in ("lshift", "math.ldexp") and whole:
        return (int(first).bit_length() + max(int(second), 0)) // 8 if name == "lshift" else 0
    if name == "mul" and str in (type(first), type(second)):
        text, times = (first, second) if type(first) is str else (second, first)
        return len(text) * max(int(times), 0)
    if name == "format" and type(second) is str:
        return sum(int(part[:20]) for part in "".join(c if c.isdigit() else " " for c in second).split())
    if name == "mod" and type(first) is str:
        return sum(int(part[:20]) for part in "".join(c if c.isdigit() else " " for c in first).split())
    if name in ("str.center", "str.ljust", "str.rjust", "str.zfill") and type(second) is int:
        return second
    if name == "str.replace" and type(first) is str:
        return len(first) + (len(first) + 1) * len(args[2])
    if name == "str.expandtabs" and type(first) is str:
        return len(first) + first.count("\t") * (second if type(second) is int else 8)
    if name in ("math.factorial", "math.comb", "math.perm"):
        counts = [one for one in args if type(one) is int]
        return _LARGEST_NUMBER + 1 if any(one > _LARGEST_COUNT for one in counts) else 0
    return 0


def _size(value: Any) -> int:
    if type(value) is int:
        return value.bit_length() // 8
    return len(value) if type(value) is str else 0


def _number(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar operator that makes no absurd number or text."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = meter()
        if found is None or found.limits.max_bytes is None:
            return function(*args, **kwargs)
        limit = min(found.limits.max_bytes, _LARGEST_NUMBER)
        if (before := _digits(name, args)) > limit:
            too_large(f"a number or text, the result of {name}", before, 0, limit)
        result = function(*args, **kwargs)
        if _size(result) > limit:
            too_large(f"a number or text, the result of {name}", _size(result), 0, limit)
        return result

    return call


def _items(value: Any) -> int:
    return len(value) + sum(len(one) for one in value if type(one) is list) if type(value) is list else 0


def _list_made(value: Any) -> None:
    found = meter()
    if found is not None and found.limits.max_bytes is not None:
        whole = value[0] if type(value) is tuple else value
        if _items(whole) * OBJECT > found.limits.max_bytes:
            too_large("a list", _items(whole) * OBJECT, 0, found.limits.max_bytes)


class LimitedEmitter(Emitter):
    """Writes code that counts."""

    def iteration(self) -> None:
        self.line(f"{self.bind(_tick, 'f')}()")

    def emit(self, op: Operator) -> None:
        """As usual, but numbers and texts are made by functions that look first, and long lists looked at."""
        if op.name in NUMBERS and op.name.removeprefix("scalar.") in _GROWING:
            before, self.operator = self.operator, op
            args = [*map(self.operand, op.args), *([f"**{self.operand(op.kwargs)}"] if op.kwargs else [])]
            function = _number(op.name.removeprefix("scalar."), NUMBERS[op.name])
            self.assign(op.outputs, f"{self.bind(function, 'f')}({', '.join(args)})", unpack=False)
            self.drop([*self.live.dying[id(op)], *self.live.unread[id(op)]])
            self.operator = before
            return
        if op.name in ("array.fill", "array.fill_each", "array.rows"):
            self.line(f"{self.bind(_before_rows, 'f')}({', '.join(map(self.operand, op.args))})")
        if op.name.startswith("host.np.") or "gives" in op.attrs:
            self.line(f"{self.bind(_refuse_arrays, 'f')}()")
        if op.name.startswith("host.") and op.name.rpartition(".")[2] in _DRAWING_MANY:
            values = [*op.args, *op.kwargs.values()]
            self.line(f"{self.bind(_before_draw, 'f')}({', '.join(map(self.operand, values))})")
        super().emit(op)
        if op.name in _LENGTHENING and op.outputs and op.outputs[0] not in self.live.unread[id(op)]:
            self.line(f"{self.bind(_list_made, 'f')}({self.name(op.outputs[0])})")


_GROWING = ("add", "sub", "mul", "pow", "lshift", "format", "mod", "math.factorial", "math.comb", "math.perm",
            "math.lcm", "str", "repr", "ascii", "bin", "oct", "hex", "str.center", "str.ljust", "str.rjust",
            "str.zfill", "str.replace", "str.expandtabs")  # fmt: skip
_DRAWING_MANY = ("getrandbits", "token_hex", "token_urlsafe", "choice", "choices", "sample", "shuffle")
"""Functions that draw as much as a number says."""
_LENGTHENING = ("array.append", "array.extend", "array.concat", "array.new")


def _refuse_arrays() -> None:
    """NumPy's memory is not counted."""
    found = meter()
    if found is not None and found.limits.max_bytes is not None:
        raise StorageError(
            "the file calls functions of NumPy's, whose memory no limit bounds", code="D2S523",
            hint="If you trust the file, load it without max_bytes.")


def _before_draw(*counts: Any) -> None:
    """What is drawn is as long as the largest number given."""
    found = meter()
    if found is None or found.limits.max_bytes is None:
        return
    most = max((one for one in counts if type(one) is int), default=0)
    if most * OBJECT > found.limits.max_bytes:
        too_large("a list", most * OBJECT, 0, found.limits.max_bytes)


def _before_rows(array: Any, other: Any) -> None:
    """What ``fill``, ``fill_each`` and ``rows`` make is as large as a product."""
    found = meter()
    if found is None or found.limits.max_bytes is None:
        return
    items = _items(array) + (len(array) * len(other) if type(other) is list else 0)
    if items * OBJECT > found.limits.max_bytes:
        too_large("a list", items * OBJECT, 0, found.limits.max_bytes)


def _without_ours(entry: TracebackType | None) -> TracebackType | None:
    """A traceback that ends where the user's line is, and not in what counted."""
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    while entries and entries[-1].tb_frame.f_code.co_filename.startswith(_HERE):
        entries.pop()
    found = None
    for one in reversed(entries):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


class LimitedExecutable(Executable):
    """An Executable whose runs keep to limits."""

    def __init__(self, limits: Limits, *args: Any) -> None:
        self.limits = limits
        super().__init__(*args)

    def _emitter(self, *args: Any) -> Emitter:
        return LimitedEmitter(*args)

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """As of an Executable. Errors raised besides: StorageError at a limit (D2S523, D2S524)."""
        if getattr(_here, "depth", 0):  # a part of another run
            return super().run(inputs, params)
        made = _here.meter = Meter(self.limits)
        _here.depth = 1
        try:
            if self.limits.max_bytes is None:
                return super().run(inputs, params)
            for tensor in tensors_in([*inputs, *params]):
                made.known(tensor)
            with Watch(made):
                return super().run(inputs, params)
        except StorageError as error:
            raise error.with_traceback(_without_ours(error.__traceback__))  # noqa: B904  # the same exception
        finally:
            _here.depth = 0


def compile_limited(
    program: Program, *, limits: Limits, functions: Any = None, exceptions: Any = None, coverage: bool = False,
    consuming: bool = False, kept: Any = (), memory: Any = USUAL,
) -> Executable:  # fmt: skip
    """Make a Program runnable within limits; the other arguments are those of ``compile_program``."""
    return LimitedExecutable(
        limits, program, dict(functions or {}), dict(exceptions or {}), coverage, consuming, memory
    )


__all__ = ["LimitedExecutable", "compile_limited"]
