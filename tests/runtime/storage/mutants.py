"""Mutants of artefact files: bits, truncations, documents changed as documents; most with right checksums."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from runtime.storage.allowed import allowed_operators
from runtime.storage.files import PROGRAM, TENSORS

Mutate = Callable[[random.Random, bytes], bytes]


def parts_of(data: bytes) -> dict[str, bytes]:
    """The parts of a file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in (PROGRAM, TENSORS)}


def sealed(parts: dict[str, bytes]) -> bytes:
    """A file of such parts, with a right checksum."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), part)
        archive.comment = b"sha256:" + b"0" * 64
    return resealed(stream.getvalue())


def resealed(data: bytes) -> bytes:
    """The bytes with a right checksum in place of the last ones."""
    whole = data[:-71]
    return whole + b"sha256:" + hashlib.sha256(whole).hexdigest().encode()


def flipped(draw: random.Random, data: bytes, begin: int = 0, end: int | None = None) -> bytes:
    """Some bits turned over."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        changed[draw.randrange(begin, len(data) if end is None else end)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def flip(draw: random.Random, data: bytes) -> bytes:
    return flipped(draw, data)


def truncate(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))]


def flip_sealed(draw: random.Random, data: bytes) -> bytes:
    return resealed(flipped(draw, data, 0, len(data) - 71))


def truncate_sealed(draw: random.Random, data: bytes) -> bytes:
    kept = data[: draw.randrange(4, len(data))] if draw.random() < 0.8 else data + draw.randbytes(draw.randrange(1, 50))
    return resealed(kept + b"\0" * 71)


def flip_part(draw: random.Random, data: bytes) -> bytes:
    """In one part, in its document or in the header of the table, with checksums all right."""
    parts = parts_of(data)
    name = draw.choice([PROGRAM, TENSORS])
    end = len(parts[name]) if name == PROGRAM or draw.random() < 0.3 else min(len(parts[name]), 800)
    parts[name] = flipped(draw, parts[name], 0, end)
    return sealed(parts)


def cut_part(draw: random.Random, data: bytes) -> bytes:
    parts = parts_of(data)
    name = draw.choice([PROGRAM, TENSORS])
    parts[name] = parts[name][: draw.randrange(len(parts[name]))] + draw.randbytes(draw.choice([0, 0, 5]))
    return sealed(parts)


def edit_document(draw: random.Random, data: bytes) -> bytes:
    """The document changed as a document: types, sizes, names, indices, nesting."""
    parts = parts_of(data)
    document = json.loads(parts[PROGRAM])
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        document = edited(draw, document)
    parts[PROGRAM] = json.dumps(document).encode("ascii")
    return sealed(parts)


def edit_table(draw: random.Random, data: bytes) -> bytes:
    """The same for the header of the table of tensors."""
    parts = parts_of(data)
    length = int.from_bytes(parts[TENSORS][:8], "little")
    header = json.dumps(edited(draw, json.loads(parts[TENSORS][8 : 8 + length]))).encode("ascii")
    stated = len(header) if draw.random() < 0.9 else draw.choice([0, 1, len(header) + 1, 1 << 40, (1 << 64) - 1])
    parts[TENSORS] = stated.to_bytes(8, "little") + header + parts[TENSORS][8 + length :]
    return sealed(parts)


def repeat_document(draw: random.Random, data: bytes) -> bytes:
    """Text that JSON readers differ about: keys twice, deep nesting, other constants, long numbers."""
    parts = parts_of(data)
    text = parts[PROGRAM].decode("ascii")
    at = draw.randrange(len(text))
    piece = draw.choice(_PIECES)
    parts[PROGRAM] = (text[:at] + piece + text[at + draw.choice([0, 1, 5]) :]).encode("utf-8")
    return sealed(parts)


KINDS: dict[str, tuple[int, Mutate]] = {
    "bits": (4, flip), "truncated": (4, truncate), "bits, sealed": (8, flip_sealed),
    "truncated, sealed": (4, truncate_sealed), "bits of a part": (12, flip_part), "a part cut": (4, cut_part),
    "the document": (54, edit_document), "the table": (6, edit_table), "odd text": (4, repeat_document),
}  # fmt: skip
"""Kind of mutation -> its share of all, in percent, and what does it."""

_OPERATORS = sorted(allowed_operators())
_NAMES = (
    "cond", "while_loop", "scan", "switch", "update", "raise", "assert", "print", "custom_grad", "gradients",
    "scalar.pow", "scalar.lshift", "scalar.mul", "array.pop", "array.slice", "py_func", "aten.set_.source_Tensor",
    "aten.from_file.default", "aten.ones.default", "aten._unsafe_view.default", "nonsense", "a.b.c.d",
)  # fmt: skip
_WORDS = (
    "", "x", "forward", "__class__", "eval", "é", "a" * 3000, "float32", "int4", "cuda:99", "meta", "cpu", "sparse",
    "s0", "s0 + 1", "Eq(s0, 2**2**2**2**2)", "__import__('os')", "namedtuple", "os.system", "nan", "f" * 20, "0" * 4000,
    "%x", "a.b", "ValueError", "SystemExit", "KeyboardInterrupt",
)  # fmt: skip
_NUMBERS = (
    0, 1, 2, 3, 7, -1, -2, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**4000,
    0.0, -0.0, 1.5, 1e308, -1e308,
)  # fmt: skip
_TAGS = (
    "var", "leaf", "slot", "again", "tensor", "hole", "tuple", "dict", "record", "slice", "undef", "int", "float",
    "complex", "str", "bytes", "device", "dtype", "layout", "memory_format", "codes", "state", "constant", "attribute",
    "passed", "scalar", "array",
)  # fmt: skip
_PIECES = (
    '"name":1,', "[" * 5000, '{"a":' * 5000, "NaN", "1" * 5000, "-Infinity", '\\ud800"', "\u00e9", "1e999",
)  # fmt: skip


def nested(kind: str, depth: int) -> Any:
    """Lists or tagged objects inside each other."""
    value: Any = []
    for _ in range(depth):
        value = [value] if kind == "list" else {kind: value}
    return value


def a_value(draw: random.Random) -> Any:
    """Something that may stand nowhere in a document, or where it does not belong."""
    kinds = ("list", "tuple", "dict", "array", "slice", "record")
    return draw.choice([
        lambda: draw.choice([None, True, False, *_NUMBERS]), lambda: draw.choice([None, True, False, *_NUMBERS]),
        lambda: draw.choice(_WORDS), lambda: draw.choice(_NAMES), lambda: draw.choice(_OPERATORS),
        lambda: [], lambda: {}, lambda: [[]], lambda: {"a": 1}, lambda: [1, 2, 3],
        lambda: nested(draw.choice(kinds), draw.choice([2, 60, 300, 900])),
        lambda: {draw.choice(_TAGS): a_value(draw)},
    ])()  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part of a document."""
    yield path
    inside = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for step, item in inside:
        yield from places(item, (*path, step))


def edited(draw: random.Random, document: Any) -> Any:
    """A document with one part changed."""
    every = list(places(document))
    path = draw.choice(every)
    if not path:
        return a_value(draw) if draw.random() < 0.1 else edited(draw, document)
    owner = document
    for step in path[:-1]:
        owner = owner[step]
    last, value = path[-1], owner[path[-1]]
    what = draw.randrange(10)
    if what < 3:
        owner[last] = a_value(draw)
    elif what == 3:
        del owner[last]
    elif what == 4:
        owner[last] = copy.deepcopy(_at(document, draw.choice(every)))
        if len(json.dumps(owner[last])) > 200_000:
            owner[last] = None
    elif what == 5 and type(owner) is list:
        owner.insert(draw.randrange(len(owner) + 1), copy.deepcopy(value))
    elif what == 6 and type(owner) is list:
        draw.shuffle(owner)
    elif what == 7 and type(owner) is dict:
        owner[draw.choice([*_WORDS, "kwargs", "attrs", "blocks", "grad", "default", "offset"])] = owner.pop(last)
    elif type(value) is int:
        others = [value + 1, value - 1, -value, value * 2, value << 32, 1 << 62, value / 2, f"{value}"]
        owner[last] = draw.choice(others)
    elif type(value) is str:
        words = [draw.choice(some) for some in (_WORDS, _OPERATORS, _NAMES)]
        owner[last] = draw.choice([value + "x", value[:-1], *words])
    elif type(value) is bool:
        owner[last] = not value
    elif type(value) in (list, dict):
        owner[last] = type(value)()
    return document


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def mutant(seed: int, number: int, files: list[bytes]) -> tuple[str, bytes]:
    """One mutant, and the kind of its mutation: always the same for a seed and a number."""
    draw = random.Random(f"{seed}/{number}")
    data = draw.choice(files)
    while True:
        kind = draw.choices(list(KINDS), [share for share, _ in KINDS.values()])[0]
        try:
            return kind, KINDS[kind][1](draw, data)
        except (RecursionError, ValueError):  # what Python's own writer cannot write: another one
            continue
