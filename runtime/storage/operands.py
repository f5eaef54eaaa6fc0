"""Operands and output trees as JSON, exactly: containers keep their type, constants their bits.

    (1, -0.0, torch.float32)   ->   {"tuple": [1, -0.0, {"dtype": "float32"}]}
    %x, nan, 1j                ->   {"var": "x"}, {"float": "nan"}, {"complex": [0.0, 1.0]}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from runtime.errors import StorageError
from runtime.ir import UNDEF, Operand, Variable
from runtime.ir.constants import TORCH_CONSTANTS
from runtime.ir.tree import Leaf, Record
from runtime.storage.document import Node, text_of

Visible = Mapping[str, Variable]
"""The Variables that an operand may name."""

_TORCH_KINDS: dict[str, type] = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}
_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "-nan": math.copysign(math.nan, -1.0)}
_SAFE_BITS = 63


def encode(value: Any, leaf: Callable[[Any], Any] | None = None) -> Any:
    """An operand, an attribute's value or an output tree as JSON.

    ``leaf`` is asked first about objects that are no operands; it gives their JSON, or None if it does not know them.

    Errors raised: StorageError for an object that no artefact can hold.

    >>> encode([1, (2.0,), {"a": slice(None, 3)}])
    [1, {'tuple': [2.0]}, {'dict': [['a', {'slice': [None, 3, None]}]]}]
    """
    if value is None or type(value) is bool:
        return value
    if leaf is not None and (found := leaf(value)) is not None:
        return found
    kind = type(value)
    if kind is int:
        return value if value.bit_length() <= _SAFE_BITS else {"int": hex(value)}
    if kind is float:
        return _encode_float(value)
    if kind is str:
        spelled = text_of(value)
        return spelled if type(spelled) is str else {"str": spelled}
    if kind is list:
        return [encode(item, leaf) for item in value]
    if kind is tuple:
        return {"tuple": [encode(item, leaf) for item in value]}
    if kind is dict:
        return {"dict": [[encode(key), encode(item, leaf)] for key, item in value.items()]}
    if isinstance(value, Record):
        fields = [[text_of(name), encode(item, leaf)] for name, item in value.fields]
        return {"record": [text_of(value.kind), text_of(value.type_name), fields]}
    if isinstance(value, slice):
        return {"slice": [encode(part, leaf) for part in (value.start, value.stop, value.step)]}
    return _encode_atom(value, kind)


def _encode_atom(value: Any, kind: type) -> Any:
    if isinstance(value, Variable):
        return {"var": text_of(value.name)}
    if isinstance(value, Leaf):
        return {"leaf": value.index}
    if value is UNDEF:
        return {"undef": True}
    if kind is complex:
        return {"complex": [_encode_float(value.real), _encode_float(value.imag)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is torch.device:
        return {"device": str(value)}
    for name, torch_kind in _TORCH_KINDS.items():
        if kind is torch_kind:
            return {name: str(value).removeprefix("torch.")}
    raise StorageError(
        f"an object of type {kind.__module__}.{kind.__qualname__} cannot be saved",
        hint="An artefact holds numbers, strings, dtypes, devices and tensors, in lists, tuples and dicts.",
        code="D2S501",
    )


def _encode_float(value: float) -> Any:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return {"float": "-nan" if math.copysign(1.0, value) < 0 else "nan"}
    return {"float": "inf" if value > 0 else "-inf"}


def decode(node: Node, visible: Visible, leaf: Callable[[str, Node], Any] | None = None) -> Operand:
    """The operand that ``encode`` wrote; ``leaf`` reads the objects that its ``leaf`` wrote, by their tag.

    Errors raised: StorageError with the place in the document.
    """
    value = node.value
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [decode(item, visible, leaf) for item in node.items()]
    tag, inner = node.tagged()
    reader = _READERS.get(tag)
    if reader is not None:
        return reader(inner, visible, leaf)
    if leaf is None:
        node.fail(f"unknown kind of operand {tag!r}")
    return leaf(tag, inner)


_Leaf = Callable[[str, Node], Any]


def _variable(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
    name = node.text()
    if name not in visible:
        node.fail(f"%{name} is read before it is assigned")
    return visible[name]


def _dict(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
    found: dict[Any, Any] = {}
    for pair in node.items():
        key_node, item = pair.items(2)
        key = decode(key_node, {})
        try:
            size = len(found)
            found[key] = decode(item, visible, leaf)
        except TypeError:
            key_node.fail("this cannot be a key")
        if len(found) == size:
            key_node.fail("a key stands twice")
    return found


def _record(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
    kind, type_name, fields = node.items(3)
    pairs = [field.items(2) for field in fields.items()]
    values = tuple((name.text(), decode(item, visible, leaf)) for name, item in pairs)
    return Record(kind.text(), type_name.text(), values)


def _int(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
    try:
        return int(node.text(), 16)
    except ValueError:
        node.fail("expected a hexadecimal number")


def _float(node: Node, visible: Visible, leaf: _Leaf | None) -> float:
    return _FLOATS[node.choice(*_FLOATS)]


def _number(node: Node) -> float:
    value = node.value if type(node.value) is float else decode(node, {})
    if type(value) is not float:
        node.fail("expected a float")
    return value


def _bytes(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
    try:
        return bytes.fromhex(node.text())
    except ValueError:
        node.fail("expected hexadecimal digits")


def read_device(node: Node) -> torch.device:
    """A device by its name. Errors raised: StorageError."""
    try:
        return torch.device(node.text())
    except RuntimeError:
        node.fail(f"{node.text()!r} is no device")


def _torch_constant(kind: str) -> Callable[[Node, Visible, _Leaf | None], Any]:
    def read(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
        found = TORCH_CONSTANTS.get("torch." + node.text())
        if not isinstance(found, _TORCH_KINDS[kind]):
            node.fail(f"this version of torch has no {kind} {node.text()!r}")
        return found

    return read


def _undef(node: Node, visible: Visible, leaf: _Leaf | None) -> Any:
    return UNDEF if node.flag() else node.fail("expected true")


_READERS: dict[str, Callable[[Node, Visible, _Leaf | None], Any]] = {
    "var": _variable,
    "leaf": lambda node, visible, leaf: Leaf(node.integer(0)),
    "tuple": lambda node, visible, leaf: tuple(decode(item, visible, leaf) for item in node.items()),
    "dict": _dict,
    "slice": lambda node, visible, leaf: slice(*(decode(part, visible, leaf) for part in node.items(3))),
    "record": _record,
    "int": _int,
    "float": _float,
    "complex": lambda node, visible, leaf: complex(*map(_number, node.items(2))),
    "str": lambda node, visible, leaf: node.text(),
    "bytes": _bytes,
    "device": lambda node, visible, leaf: read_device(node),
    "undef": _undef,
    **{kind: _torch_constant(kind) for kind in _TORCH_KINDS},
}
"""How each tag is read."""
