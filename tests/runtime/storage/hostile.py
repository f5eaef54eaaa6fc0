"""Files that somebody else wrote: mutants of ten artefacts, most with right checksums, so that they reach the reader.

``python -m tests.runtime.storage.hostile --count 20000 --seed 0`` makes mutants, loads each, and prints how many were
refused and how many loaded (their Programs verify), by kind of mutation; any other outcome is printed and is an error.
``--only N`` runs one mutant again.
"""

from __future__ import annotations

import argparse
import collections
import copy
import hashlib
import io
import json
import random
import resource
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import runtime
from runtime.errors import StorageError
from runtime.ir.tree import tree_leaves
from runtime.ir.verify import verify
from runtime.storage.allowed import allowed_operators
from runtime.storage.files import PROGRAM, TENSORS
from tests.runtime.storage.goldens import golden

SECONDS = 20
"""A mutant that takes longer hangs."""
MEMORY = 512 << 20
"""Bytes that a mutant may ask the process for; the files have some 30 kB."""

Mutate = Callable[[random.Random, bytes], bytes]


class Hang(BaseException):
    """A mutant did not come to an end."""


# --- the artefacts


class _Routed(nn.Module):
    """Lists that grow, branches in loops, exceptions, printed lines."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3, bias=False)])

    def forward(self, x: torch.Tensor, options: dict[str, Any]) -> Any:
        rows = []
        for row in x:
            if row.sum() > 0:
                row = self.experts[0](row)
            elif row.max() > 5:
                raise ValueError("too much", options["name"])
            rows.append(row)
        print("routed", len(rows))
        return {"rows": rows, "options": options, "shape": x.shape}, f"{x.sum().item():.2f}"


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.saved_tensors[0] * grad


def _custom(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x * 2
    return _Square.apply(x) + y


def _inner_gradient(x: torch.Tensor) -> torch.Tensor:
    y = x.detach().requires_grad_()
    (grad,) = torch.autograd.grad((y * y * y).sum(), [y])
    return x + grad


def _scanned(x: torch.Tensor, n: int = 40) -> Any:
    state, seen = x, []
    for i in range(n):
        state = torch.tanh(state * 0.9 + i)
        seen.append(state)
    return torch.stack(seen), state[0].item() > 0 and x[1:2]


def _written(x: torch.Tensor, log: dict[str, Any]) -> Any:
    x[1:].mul_(2)
    log["last"] = x.sum()
    return x[0], log


def artefacts(folder: Path) -> list[bytes]:
    """Ten files: of both versions of the format, layers and functions, with most of what files can hold."""
    import dy2static
    from dy2static import InputSpec

    torch.manual_seed(0)
    spec = InputSpec([None, 3])
    saved: list[tuple[Any, Any, dict[str, Any]]] = [
        (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), [InputSpec([None, 5, 4])], {}),
        (nn.LSTM(3, 2, 2, batch_first=True), [InputSpec([None, 4, 3])], {"modes": ["eval"], "output_spec": [0]}),
        (_Routed(), [InputSpec([2, 3]), {"name": "a", "x": spec}], {"metadata": {"a": [1, 2.5, None, {"b": "c"}]}}),
        (_custom, [InputSpec([3])], {"source_locations": False}),
        (_inner_gradient, [InputSpec([3])], {}),
        (_scanned, [InputSpec([3])], {"variants": {"n": [2, 40]}}),
        (_written, [InputSpec([3]), {"first": InputSpec([1])}], {}),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.1)), [InputSpec([None, 1, 8, 8])], {}),
    ]
    found = [golden(1).read_bytes(), golden(2).read_bytes()]
    for number, (layer, specs, options) in enumerate(saved):
        found.append(dy2static.save(layer, folder / f"artefact{number}", specs, **options).read_bytes())
    return found


# --- mutations


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
    piece = draw.choice(['"name":1,', "[" * 5000, '{"a":' * 5000, "NaN", "1" * 5000, "-Infinity", '\\ud800"', "\u00e9", "1e999"])
    parts[PROGRAM] = (text[:at] + piece + text[at + draw.choice([0, 1, 5]) :]).encode("utf-8")
    return sealed(parts)


KINDS: dict[str, tuple[int, Mutate]] = {
    "bits": (4, flip), "truncated": (4, truncate), "bits, sealed": (8, flip_sealed),
    "truncated, sealed": (4, truncate_sealed), "bits of a part": (12, flip_part), "a part cut": (4, cut_part),
    "the document": (54, edit_document), "the table": (6, edit_table), "odd text": (4, repeat_document),
}  # fmt: skip
"""Kind of mutation -> its share of all, in percent, and what does it."""

_OPERATORS = sorted(allowed_operators())
_NAMES = ("cond", "while_loop", "scan", "switch", "update", "raise", "assert", "print", "custom_grad", "gradients",
          "scalar.pow", "scalar.lshift", "scalar.mul", "array.pop", "array.slice", "py_func", "aten.set_.source_Tensor",
          "aten.from_file.default", "aten.ones.default", "aten._unsafe_view.default", "nonsense", "a.b.c.d")  # fmt: skip
_WORDS = ("", "x", "forward", "__class__", "eval", "é", "a" * 3000, "float32", "int4", "cuda:99", "meta", "cpu", "sparse",
          "s0", "s0 + 1", "Eq(s0, 2**2**2**2**2)", "__import__('os')", "namedtuple", "os.system", "nan", "ffffffffffffffffff",
          "0" * 4000, "%x", "a.b", "ValueError", "SystemExit", "KeyboardInterrupt")  # fmt: skip


def nested(kind: str, depth: int) -> Any:
    """Lists or tagged objects inside each other."""
    value: Any = []
    for _ in range(depth):
        value = [value] if kind == "list" else {kind: value}
    return value


def a_value(draw: random.Random) -> Any:
    """Something that may stand nowhere in a document, or where it does not belong."""
    return draw.choice([
        lambda: draw.choice([None, True, False, 0, 1, 2, 3, 7, -1, -2, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, -(2**63),
                             2**64, 10**30, 10**4000, 0.0, -0.0, 1.5, 1e308, -1e308]),
        lambda: draw.choice(_WORDS), lambda: draw.choice(_NAMES), lambda: draw.choice(_OPERATORS),
        lambda: [], lambda: {}, lambda: [[]], lambda: {"a": 1}, lambda: [1, 2, 3],
        lambda: nested(draw.choice(["list", "tuple", "dict", "array", "slice", "record"]), draw.choice([2, 60, 300, 900])),
        lambda: {draw.choice(["var", "leaf", "slot", "again", "tensor", "hole", "tuple", "dict", "record", "slice", "undef",
                              "int", "float", "complex", "str", "bytes", "device", "dtype", "layout", "memory_format", "codes",
                              "state", "constant", "attribute", "passed", "scalar", "array"]): a_value(draw)},
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
        owner[last] = draw.choice([value + 1, value - 1, -value, value * 2, value << 32, 1 << 62, float(value), str(value)])
    elif type(value) is str:
        owner[last] = draw.choice([value + "x", value[:-1], draw.choice(_WORDS), draw.choice(_OPERATORS), draw.choice(_NAMES)])
    elif type(value) is bool:
        owner[last] = not value
    elif type(value) in (list, dict):
        owner[last] = type(value)()
    return document


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


# --- holding a mutant


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


def hold(path: Path) -> str:
    """Load a file: "refused", or "loaded" if it is a layer whose Programs verify. Anything else is raised."""
    try:
        layer = runtime.load(path)
    except StorageError as error:
        assert error.code != "D2S500" and str(error), error
        return "refused"
    for name in layer.methods:
        assert str(layer.signature(name))
        for variant in layer._methods[name].all():
            trees = [store.tree for store in variant.stores]
            verify(variant.program, {leaf.index for tree in trees for leaf in tree_leaves(tree)})
    assert repr(layer) and layer.state_dict() is not None
    return "loaded"


def bounded() -> None:
    """Limit what the process may take from now on, so that a mutant that asks for absurd sizes fails."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))


def _hang(*rest: Any) -> None:
    raise Hang(f"more than {SECONDS} s")


def run(seed: int, numbers: range, folder: Path) -> tuple[collections.Counter[tuple[str, str]], list[str]]:
    """Make and hold mutants: outcomes by kind, and what was none of the two that may be."""
    files = artefacts(folder)
    path = folder / "mutant.d2s"
    hold(_written_to(path, files[0]))
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    failures = []
    before = signal.signal(signal.SIGALRM, _hang)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    bounded()
    try:
        for number in numbers:
            kind, data = mutant(seed, number, files)
            signal.alarm(SECONDS)
            try:
                outcome = hold(_written_to(path, data))
            except (Exception, Hang) as error:
                outcome = "failed"
                failures.append(f"mutant {number} ({kind}): {type(error).__name__}: {str(error)[:300]}")
                if "pytest" not in sys.modules:
                    print(failures[-1], flush=True)
            signal.alarm(0)
            found[kind, outcome] += 1
            if "pytest" not in sys.modules and number % 1000 == 999:
                print(number + 1, len(failures), "failed", flush=True)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return found, failures


def _written_to(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.only is not None:
            kind, data = mutant(options.seed, options.only, artefacts(Path(name)))
            print(kind, hold(_written_to(Path(name) / "mutant.d2s", data)))
            return 0
        found, failures = run(options.seed, range(options.start, options.start + options.count), Path(name))
    for (kind, outcome), count in sorted(found.items()):
        print(f"{kind:20}{outcome:10}{count:7}")
    print(f"{sum(found.values())} mutants, {len(failures)} failed", *failures, sep="\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
