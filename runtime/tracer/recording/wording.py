"""What an exception says: of what stands for a value of the user's it says what eager says of that value.

    'FakeTensor' object has no attribute 'q'   ->   'Tensor' object has no attribute 'q'

Python and torch name the class of what they are given, and in a trace that is a class of ours or of torch's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch

from runtime.tracer.numbers.scalars import StagedBool, StagedFloat, StagedInt, StagedStr
from runtime.tracer.numbers.staged_size import StagedSize

_ORDER = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "@": "matmul", "&": "and",
    "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift", "** or pow()": "pow", "**": "pow", "divmod()": "divmod",
}  # fmt: skip
_UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__", "abs()": "__abs__"}
_ALWAYS = "__class__"
"""What every class has: what is said is right then of both classes."""
_METHODS: tuple[tuple[str, str], ...] = (
    (r"^'\S+' object is not subscriptable", "__getitem__"),
    (r"^'\S+' object is not callable", "__call__"),
    (r"^'\S+' object is not (iterable|an iterator)", "__iter__"),
    (r"^'\S+' object is not reversible", "__getitem__"),
    (r"^'\S+' object is not a mapping", "keys"),
    (r"^'\S+' object (does not|doesn't) support item assignment", "__setitem__"),
    (r"^'\S+' object (does not|doesn't) support item deletion", "__delitem__"),
    (r"^'\S+' object (does not|doesn't) support the context manager protocol", "__enter__"),
    (r"^argument of type '\S+' is not (iterable|a container)", "__contains__"),
    (r"^object of type '\S+' has no len\(\)", "__len__"),
    (r"^cannot unpack non-iterable \S+ object", "__iter__"),
    (r"^can't multiply sequence by non-int of type '\S+'", _ALWAYS),
    (r"^can only concatenate (str|list|tuple) \(not \"?\S+\) to", _ALWAYS),
    (r"^unsupported format string passed to \S+\.__format__", _ALWAYS),
    (r"^must be real number, not \S+$|^(int|float|complex)\(\) argument must be", "__float__"),
    (r"^'\S+' object cannot be interpreted as an integer", "__index__"),
    (r"^type \S+ doesn't define __round__ method", "__round__"),
    (r"^Tensor\.__contains__ only supports|^\S+ is not a Module subclass", _ALWAYS),
    (r"^[\w.]+\(\) argument after \*\*? must be", _ALWAYS),
    (r"^catching|^exceptions must|^isinstance\(\) arg 2|^issubclass\(\) arg", _ALWAYS),
)
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (int, float), "Number": (int, float), "number": (int, float), "bool": (bool,),
    "str": (str,), "string": (str,), "list": (list, tuple), "tuple": (list, tuple), "dict": (dict,),
    "Tensor": (torch.Tensor,), "SymInt": (int,),
}  # fmt: skip
"""What arguments are said to have to be, and what is one."""
_STANDS_FOR: dict[str, tuple[type, type]] = {}


def stands_for(stand_in: type, real: type) -> None:
    """Note that objects of a class stand for those of another."""
    _STANDS_FOR[stand_in.__name__] = stand_in, real


for _stand_in, _real in (
    (StagedInt, int), (StagedFloat, float), (StagedBool, bool), (StagedStr, str), (StagedSize, torch.Size),
    (torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool),
):  # fmt: skip
    stands_for(_stand_in, _real)

_TENSOR = re.compile(r"\b(torch)\._subclasses\.fake_tensor\.FakeTensor\b|\bFakeTensor\b")
_WORD = re.compile(r"\w+")


def say_as_eager(error: BaseException) -> None:
    """Let the text of an exception that Python or torch raised speak of the user's values.

    What only a stand-in cannot do is a fault of ours, and its text stays.

    >>> error = TypeError("'StagedInt' object doesn't support item deletion")
    >>> say_as_eager(error)
    >>> error
    TypeError("'int' object does not support item deletion")
    """
    for place, arg in enumerate(error.args):
        if type(arg) is str and ("FakeTensor" in arg or any(word in _STANDS_FOR for word in _WORD.findall(arg))):
            error.args = (*error.args[:place], _said(arg), *error.args[place + 1 :])


def _said(text: str) -> str:
    text = _TENSOR.sub(lambda found: "torch.Tensor" if found[1] else "Tensor", text)
    named = [_STANDS_FOR[word] for word in _WORD.findall(text) if word in _STANDS_FOR]
    asked = list(_asked(text))
    wanted = re.search(r" must be (?:an? )?(\w+)(?: of (\w+?)s?)?, not ['\"]?[\w.]+['\"]?$", text)
    if re.match(r"\S+ received an invalid combination of arguments", text) and not any(
        issubclass(real, (int, float, str)) for _, real in named
    ):
        asked.append(_ALWAYS)  # torch takes none of the others anywhere
    if wanted is not None and wanted[1] in _KINDS:
        kinds = (*_KINDS[wanted[1]], *_KINDS.get(wanted[2], ()))  # torch takes one number for a tuple of them
        if any(issubclass(real, kinds) for _, real in named):
            return text
        asked.append(_ALWAYS)
    only_size = all(stand_in is StagedSize for stand_in, _ in named)
    if not named or not (asked or only_size) or any(_lacks(*pair, method) for pair in named for method in asked):
        return text
    text = re.sub(r"^('Staged\w+' object) doesn't support", r"\1 does not support", text)  # without sequence slots
    names = "|".join(map(re.escape, _STANDS_FOR))
    return re.sub(rf"(?:\b(?:runtime|dy2static|torch)\.(?:[\w.]+\.)?)?\b({names})\b", _name, text)


def _name(word: re.Match[str]) -> str:
    real = _STANDS_FOR[word[1]][1]
    return real.__name__ if real.__module__ == "builtins" else f"{real.__module__}.{real.__name__}"


def _asked(text: str) -> Iterator[str]:
    """The methods of which a message says that a class does not have them, or that they do not take a class."""
    binary = re.match(r"unsupported operand type\(s\) for (\S+?|\*\* or pow\(\))=?: ", text)
    if binary is not None and binary[1] in _BINARY:
        yield from (f"__{_BINARY[binary[1]]}__", f"__r{_BINARY[binary[1]]}__")
    ordered = re.match(r"'(<|<=|>|>=)' not supported between instances of", text)
    if ordered is not None:
        yield _ORDER[ordered[1]]
    unary = re.match(r"bad operand type for (?:unary )?(-|\+|~|abs\(\)):", text)
    if unary is not None:
        yield _UNARY[unary[1]]
    attribute = re.match(r"'\w+' object has no attribute '(\w+)'", text)
    if attribute is not None:
        yield attribute[1]
    yield from (method for pattern, method in _METHODS if re.match(pattern, text))


def _lacks(stand_in: type, real: type, method: str) -> bool:
    return hasattr(real, method) and not hasattr(stand_in, method)


__all__ = ["say_as_eager", "stands_for"]
