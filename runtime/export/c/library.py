"""An artefact as a folder with a C library. Nothing is written before all of it is known to work.

    Artefact > Variant for inference > Program, passes -> source.write -> templates -> a folder beside, then renamed
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

from runtime.export.c import templates
from runtime.export.c.failures import literal
from runtime.export.c.interface import MAX_RANK
from runtime.export.c.quantised import store
from runtime.export.c.runtime_text import PIECES, needed
from runtime.export.c.source import Source, write
from runtime.export.inference import program_for_inference, variant_for_inference
from runtime.ir import Program, TensorType
from runtime.native.values import Items, Number, Value
from runtime.native.writer import annotated
from runtime.storage.artefact import Artefact

_NOTE = re.compile("/\\*\x01 (\\d+)\\*/")
"""A note on a line of the user's, which is no name of the library's."""

_MADE = "Made by dy2static.export_c"


@dataclass(frozen=True)
class Exported:
    """A library that was written: its folder and its files' names."""

    folder: Path
    name: str
    header: str
    source: str


def export_artefact(artefact: Artefact, folder: str | os.PathLike[str], name: str, method: str = "forward") -> Exported:
    """Write the C library of a method.

    Errors raised: StorageError, D2S530 and D2S531, for what C cannot do; FileExistsError for a folder that holds
    something else; ValueError for a name that is none in C.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", name):
        raise ValueError(f"{name!r} is no name for a C library: letters, digits and _")
    target = Path(folder)
    if target.exists() and not _is_ours(target):
        raise FileExistsError(f"{target} holds something that export_c has not made; give another folder")
    files = files_of(artefact, name, method)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for file, content in files.items():
            (made / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        made.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
            os.replace(target, old / "old")
            os.replace(made, target)
            shutil.rmtree(old)
        else:
            os.replace(made, target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    header, source = files[f"{name}.h"], files[f"{name}.c"]
    assert isinstance(header, str) and isinstance(source, str)
    return Exported(target, name, header, source)


def _is_ours(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    inside = list(folder.iterdir())
    return not inside or any(file.suffix == ".h" and _MADE in file.read_text(errors="replace")[:400] for file in inside)


def files_of(artefact: Artefact, name: str, method: str = "forward") -> dict[str, str | bytes]:
    """The files of the library: name -> content. Errors raised: StorageError for what C cannot do."""
    program, tensors = program_for_inference(artefact, variant_for_inference(artefact, method), "c")
    tensors = store(program, tensors)
    weights, offsets, fingerprint = _weights(program, tensors)
    source = write(program, offsets)
    about = re.sub(r"[^\w ]", "?", f"{artefact.name}.{method}" if method != "forward" else artefact.name)
    return _written(program, source, name, about, len(weights) - 64, fingerprint) | {f"{name}.weights": weights}


def _weights(program: Program, tensors: Sequence[torch.Tensor]) -> tuple[bytes, dict[str, int], int]:
    """The file of weights, where each parameter is in it, and the number that tells this model from others.

    8 bytes "d2sw" and a version, the number, how many bytes follow, their digest, zeros up to 64; the tensors,
    each at a multiple of 64.
    """
    offsets: dict[str, int] = {}
    parts: list[bytes] = []
    at = 0
    told = hashlib.sha256()
    for param, tensor in zip(program.params, tensors):
        data = tensor.detach().cpu().contiguous().numpy().tobytes() if tensor.numel() else b""
        offsets[param.name] = at
        told.update(f"{param.name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        padding = -len(data) % 64
        parts += [data, bytes(padding)]
        at += len(data) + padding
    whole = b"".join(parts)
    fingerprint = int.from_bytes(told.digest()[:8], "little")
    head = b"d2sw\x01\0\0\0" + struct.pack("<QQQQ", fingerprint, len(whole), _digest(whole), 0)
    return head + bytes(64 - len(head)) + whole, offsets, fingerprint


def _digest(data: bytes) -> int:
    """The sum of all words of 8 bytes, and the sum of these sums, put together; begun with 1.

    >>> _digest(bytes([1, 0, 0, 0, 0, 0, 0, 0])) == 2 ^ (2 << 17)
    True
    """
    words = numpy.frombuffer(data, dtype="<u8")
    count = len(words)
    factors = numpy.arange(count, 0, -1, dtype=numpy.uint64)
    total = (int(words.sum(dtype=numpy.uint64)) + 1) % 2**64
    totals = (int((words * factors).sum(dtype=numpy.uint64)) + count) % 2**64
    return totals ^ ((total << 17 | total >> 47) % 2**64)


def _written(program: Program, source: Source, name: str, about: str, size: int, fingerprint: int,
             ) -> dict[str, str | bytes]:  # fmt: skip
    inputs = [f"    @tensor {one.name}; /* {_plain(one.said)}: {_type(one.type)} */" for one in source.inputs]
    outputs: list[str] = []
    printing: list[str] = []
    for one, value in source.outputs:
        said = _plain(one.said)
        if isinstance(value, Number):
            ctype = {"int": "int64_t", "float": "double", "bool": "int64_t"}[value.kind]
            outputs.append(f"    {ctype} {one.name}; int has_{one.name}; /* {said}: {value.kind}, if it has_ */")
            form = '"%.17g\\n"' if value.kind == "float" else '"%" PRId64 "\\n"'
            printing.append(f'        if (out.has_{one.name}) printf("{one.name} {value.kind} " {form}, '
                            f'out.{one.name}); else printf("{one.name} none\\n");')  # fmt: skip
            continue
        kind = "list" if isinstance(value, Items) else "tensor"
        outputs.append(f"    @{kind} {one.name}; /* {said}: {_form(value)} */")
        printing.append(f'        print_{kind}("{one.name}", &out.{one.name});')
    reading = [f'    if (!code) code = read_tensor(file, "{one.name}", &in.{one.name});' for one in source.inputs]
    freeing = [f"    free(in.{one.name}.buffer);" for one in source.inputs]
    nothing = "    int nothing;"
    fields = {
        "about": about, "first": source.inputs[0].name if source.inputs else "nothing", "rank": str(MAX_RANK),
        "inputs": "\n".join(inputs) or nothing, "outputs": "\n".join(outputs) or nothing, "tree": _tree(program),
        "size": f"UINT64_C({size})", "fingerprint": str(fingerprint), "reading": "\n".join(reading),
        "printing": "\n".join(printing), "freeing": "\n".join(freeing),
    }  # fmt: skip
    calls = "".join(text for key, text in templates.CALLS.items() if _speaks(key, source.text))
    places = ",\n".join(f"    {literal(one)}" for one in source.places)
    table = f"\nstatic const char *const places[] = {{ /* where it gives up */\n{places}\n}};\n\n"
    body = calls + table + re.sub(r"/\*@(\d+)\*/", "/*\x01 \\1*/", source.text)
    whole = templates.SOURCE_HEAD + needed(body) + body + templates.SOURCE_TAIL
    example = templates.EXAMPLE if source.inputs else templates.EXAMPLE.replace(
        "static int read_tensor", "static inline int read_tensor")  # fmt: skip
    made: dict[str, str | bytes] = {
        f"{name}.h": _named(_filled(templates.HEADER, fields), name),
        f"{name}.c": annotated(_NOTE.sub(r"/*@\1*/", _named(_filled(whole, fields), name)), source.lines),
        "main.c": _named(_filled(example, fields), name),
        "Makefile": re.sub(r"(?<!\$)@", name, templates.MAKEFILE),
        "inputs.txt": _example(source),
    }
    return made


def _speaks(key: str, text: str) -> bool:
    return key in text or (key in ("d2s_result",) and "d2s_items" in text)


def _filled(text: str, fields: dict[str, str]) -> str:
    return re.sub(r"\$([a-z]+)", lambda found: fields.get(found[1], found[0]), text)


def _named(text: str, name: str) -> str:
    """A template with the library's name: ``@run`` is ``net_run``, ``@@OK`` is ``NET_OK``, ``@.h`` is ``net.h``."""
    text = re.sub(r"@@(?=\w)", f"{name.upper()}_", text)
    return re.sub(r"@(?=\w)", f"{name}_", text).replace("@", name)


def _plain(text: str) -> str:
    found = "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in text)
    return found.replace("*/", "* /").replace("/*", "/ *").replace("@", "(at)").replace("$", "(dollar)")


def _type(type_: TensorType) -> str:
    return f"{str(type_.dtype).removeprefix('torch.')} [{', '.join(map(str, type_.shape or ()))}]"


def _form(value: Value) -> str:
    if isinstance(value, Items):
        if isinstance(value.item, Number):
            return f"a list of {value.item.kind}"
        dtype = str(value.item.dtype).removeprefix("torch.")
        return f"a list of tensors, {dtype} of {value.item.rank} dimensions"
    dims = [str(dim) if isinstance(dim, int) else "any" for dim in getattr(value, "dims", ())]
    return f"{str(getattr(value, 'dtype', 'None')).removeprefix('torch.')} [{', '.join(dims)}]"


def _tree(program: Program) -> str:
    return _plain(f"returns {program.output!r}".replace("Leaf(index=", "value("))[:400]


def _example(source: Source) -> str:
    """Arguments of zeros, with sizes that are open as 2."""
    lines = []
    for one in source.inputs:
        sizes = [dim if isinstance(dim, int) else 2 for dim in one.type.shape or ()]
        count = 1
        for size in sizes:
            count *= size
        dtype = str(one.type.dtype).removeprefix("torch.")
        lines.append(" ".join([one.name, "tensor", dtype, *map(str, sizes)]))
        lines.append(" ".join(["0"] * count))
    return "\n".join(lines) + "\n"


__all__ = ["PIECES", "Exported", "export_artefact", "files_of", "variant_for_inference"]
