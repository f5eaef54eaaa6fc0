"""Where an exported function gives up, and what it says: the user's line, then the exception or the operator.

    raise("no convergence after ", %n) {exception: "ValueError"}   ->   d2s_say(c, "fit.py:12: ValueError: "); ...
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field

from runtime.export.shared import place
from runtime.ir import Operand, Operator, ScalarType, TensorType, Variable
from runtime.native import scalar
from runtime.native.branches import flag_of
from runtime.native.lowering import Lowering
from runtime.native.values import Nothing, Number, Unsupported

_Part = str | Number


def literal(text: str) -> str:
    """A text as a string of C: whatever is in it, it stays inside, and says nothing to templates.

    >>> print(literal('a "b"\\\\n??/'))
    "a \\042b\\042\\134n\\077\\077/"
    """
    plain = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text.encode("utf-8") if byte)
    return f'"{plain}"'


_PLAIN = (string.ascii_letters + string.digits + " .,:;-_+*/()[]{}<>=!'#%&|^~").encode()


@dataclass
class Failures:
    """The places at which a function may give up, and texts that are put together."""

    places: list[str] = field(default_factory=lambda: ["the arguments"])
    texts: dict[Variable, list[_Part]] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def at(self, op: Operator) -> str:
        """How an Operator gives up, as C."""
        where = place(op.location)
        told = f"{where}{': ' if where else ''}{op.name}: {_reason(op)}"
        number = self._numbers.get(told)
        if number is None:
            number = self._numbers[told] = len(self.places)
            self.places.append(told)
        return f"{{ c->at = {number}; goto bail; }}"

    # -- rules ---------------------------------------------------------------------------------------------------

    def rule_of_raise(self, low: Lowering, op: Operator) -> None:
        """``raise``: its text, and the end."""
        low.flush()
        self._write(low, op, list(op.args))
        for out in op.outputs:
            low.give(out, Nothing())

    def rule_of_assert(self, low: Lowering, op: Operator) -> None:
        """``assert``: the same under a condition."""
        flag, *parts = op.args
        text = flag_of(low, flag)
        low.flush()
        message = op.attrs.get("message")
        with low.w.block(f"if (!({text}))"):
            self._write(low, op, parts if message is None else [message, *parts], joined=True)

    def _write(self, low: Lowering, op: Operator, args: list[Operand], *, joined: bool = False) -> None:
        w = low.w
        name = str(op.attrs["exception"]).rpartition(".")[2]
        where = place(op.location)
        several = len(args) > 1 and not joined
        parts: list[_Part] = [f"{where}: " if where else "", name, ": " if args else ""]
        parts += ["("] if several else []
        for number, arg in enumerate(args):
            parts += [", "] if number and several else []
            parts += self._parts(low, arg, quoted=several or (name == "KeyError" and len(args) == 1))
        parts += [")"] if several else []
        self._say(low, parts)
        w.line("c->code = RAISED;")
        w.line("goto bail;")

    def _say(self, low: Lowering, parts: list[_Part]) -> None:
        text = ""
        for one in parts:
            if isinstance(one, str):
                text += one
                continue
            if text:
                low.w.line(f"d2s_say(c, {literal(text)});")
            text = ""
            low.w.line(f"d2s_say_{one.kind}(c, {one.text});")
        if text:
            low.w.line(f"d2s_say(c, {literal(text)});")

    def _parts(self, low: Lowering, arg: Operand, *, quoted: bool = False) -> list[_Part]:
        if isinstance(arg, Variable):
            if arg in self.texts:
                return ["'", *self.texts[arg], "'"] if quoted else self.texts[arg]
            if isinstance(arg.type, ScalarType) and arg.type.kind in ("int", "float", "bool"):
                return [low.number(arg)]
            return ["<a tensor>" if isinstance(arg.type, TensorType) else "<a value>"]
        return [repr(arg) if quoted else str(arg)]

    def rule_of_text(self, low: Lowering, op: Operator) -> None:
        """``str``, ``repr``, ``format`` without a format, sums of texts: they are written where something is raised."""
        short = op.name.removeprefix("scalar.")
        type_ = op.outputs[0].type
        if not isinstance(type_, ScalarType) or type_.kind != "str":
            scalar.emit(low, op)
            return
        if short in ("str", "format", "repr") and (len(op.args) == 1 or op.args[1] == "") and not op.kwargs:
            found = self._parts(low, op.args[0], quoted=short == "repr")
        elif short == "add":
            found = [*self._parts(low, op.args[0]), *self._parts(low, op.args[1])]
        else:
            raise Unsupported("a text that is put together this way")
        kept: list[_Part] = []
        for one in found:  # a number may change before the text is written
            if isinstance(one, Number):
                name = low.w.local("double" if one.kind == "float" else "i64", "n")
                low.w.line(f"{name} = {one.text};")
                one = Number(one.kind, name)
            kept.append(one)
        self.texts[op.outputs[0]] = kept


def _reason(op: Operator) -> str:
    if op.name.startswith("scalar."):
        return "a whole number beyond 64 bits, or a value that Python does not take here"
    if op.name.startswith("array."):
        return "there is no such item in the list"
    return "sizes that do not fit, an index out of range, or a value that is not taken here"


__all__ = ["Failures", "literal"]
