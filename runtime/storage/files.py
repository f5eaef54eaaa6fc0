"""Artefact files: one zip file, ``model.d2s``, which any zip tool opens.

    program.json           modules, signatures and Programs
    tensors.safetensors    every tensor once
    (zip comment)          the SHA-256 of every byte before it

A file is written beside its place and moved there when it is complete and on disk, so that the old file survives
whatever happens; and nothing in it is believed before its checksum is right.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import secrets
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, TypeVar

import torch

from runtime.errors import StorageError
from runtime.storage.artefact import Artefact
from runtime.storage.document import Node, read_json, write_json
from runtime.storage.reading import from_document, state_from_document
from runtime.storage.table import Raw, read_table, table_size, write_table
from runtime.storage.writing import to_document

T = TypeVar("T")

SUFFIX = ".d2s"
PROGRAM, TENSORS = "program.json", "tensors.safetensors"
_MARK = b"sha256:"
_COMMENT = len(_MARK) + 64
_DATE = (1980, 1, 1, 0, 0, 0)
_CHUNK = 1 << 20


def artefact_path(path: str | os.PathLike[str]) -> Path:
    """Where an artefact saved as ``path`` lies: with ``.d2s`` at the end.

    >>> artefact_path("out/model").name, artefact_path("model.d2s").name
    ('model.d2s', 'model.d2s')
    """
    found = Path(os.fspath(path))
    return found if found.name.endswith(SUFFIX) else found.with_name(found.name + SUFFIX)


def write_artefact(artefact: Artefact, path: str | os.PathLike[str], source_locations: bool = True) -> Path:
    """Save an artefact; returns the file's path. Either the whole file is there afterwards, or what was there before.

    Errors raised: StorageError if something cannot be saved (before the disk is touched), or the file not be written.
    """
    document, table = to_document(artefact, source_locations)
    try:
        program = write_json(document)
    except RecursionError:
        hint = "Write branches inside branches as a loop."
        raise StorageError("the program nests too deeply to be saved", hint=hint, code="D2S504") from None
    target = artefact_path(path)
    try:
        with _replacing(target) as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo(PROGRAM, _DATE), program)
                large = table_size(table) > zipfile.ZIP64_LIMIT
                with archive.open(zipfile.ZipInfo(TENSORS, _DATE), "w", force_zip64=large) as part:
                    write_table(part, table)
                archive.comment = _MARK + b"0" * 64
            _seal(stream)
    except OSError as error:
        hint = "Make room there, or choose another path."
        problem = f"{target} cannot be written: {error.strerror or error}"
        raise StorageError(problem, hint=hint, code="D2S505") from error
    return target


def _seal(stream: IO[bytes]) -> None:
    """Put the checksum of all bytes before it into the zip comment."""
    remaining = stream.seek(0, os.SEEK_END) - _COMMENT
    stream.seek(0)
    digest = hashlib.sha256()
    while remaining:
        chunk = stream.read(min(_CHUNK, remaining))
        digest.update(chunk)
        remaining -= len(chunk)
    stream.seek(-_COMMENT, os.SEEK_END)
    stream.write(_MARK + digest.hexdigest().encode("ascii"))


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the target's place when it is complete; on any error it is removed."""
    target = Path(os.path.realpath(target))
    if target.is_dir():
        raise IsADirectoryError(None, "there is a folder of that name")
    with _made_folders(target.parent):
        with _moved_when_whole(target) as stream:
            yield stream


@contextlib.contextmanager
def _made_folders(folder: Path) -> Iterator[None]:
    """Make the folders that are missing; on any error, those that were made and are still empty are removed."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(None, f"{folder} is no folder")
    try:
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for one in missing:
                one.rmdir()
        raise


@contextlib.contextmanager
def _moved_when_whole(target: Path) -> Iterator[IO[bytes]]:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(descriptor, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_artefact(
    path: str | os.PathLike[str], allow: Collection[str] = (), device: str | torch.device | None = None,
    max_bytes: int | None = None,
) -> Artefact:  # fmt: skip
    """The artefact in a file. ``allow`` names libraries of custom operators that it may use; a file of more bytes than
    ``max_bytes`` is not read.

    Errors raised: StorageError if there is no such file, it is damaged or no artefact, holds what is not allowed, or is
    too large.
    """
    place = torch.device(device) if device is not None else None
    return _read(path, lambda node, table: from_document(node, table, allow, place), max_bytes)


def read_state(path: str | os.PathLike[str], device: str | torch.device | None = None) -> dict[str, torch.Tensor]:
    """The state dict of the module in a file; nothing else of it is read, so its operators may be any.

    Errors raised: StorageError if there is no such file, or it is damaged or no artefact.
    """
    place = torch.device(device) if device is not None else None
    return _read(path, lambda node, table: state_from_document(node, table, place))


def found_path(path: str | os.PathLike[str]) -> Path:
    """The file that ``path`` names: as it stands, or with ``.d2s`` at the end."""
    target = Path(os.fspath(path))
    return target if target.is_file() else artefact_path(path)


def checksums(path: str | os.PathLike[str]) -> dict[str, str]:
    """The SHA-256 of the parts of an artefact by name, and under "" the one that the file has of itself.

    Errors raised: StorageError if there is no such file, or it is damaged or no artefact.
    """
    with _opened(path) as (stream, data, target):
        parts = _parts(stream, data, target)
        found = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}
        return {"": bytes(data[-64:]).decode("ascii"), **found}


def _read(
    path: str | os.PathLike[str], read: Callable[[Node, dict[str, Raw]], T], max_bytes: int | None = None
) -> T:
    with _opened(path) as (stream, data, target):
        if max_bytes is not None and len(data) > max_bytes:
            raise StorageError(
                f"{target} has {len(data)} bytes, and the limit is {max_bytes}",
                hint="If you trust it, load it with a larger limit: load(path, limits=Limits(max_bytes=...)).",
                code="D2S523",
            )
        parts = _parts(stream, data, target)
        try:
            table = read_table(parts[TENSORS], TENSORS)
            return read(read_json(bytes(parts[PROGRAM]), PROGRAM), table)
        except StorageError as error:
            raise StorageError(
                f"{target}: {error.summary}", hint=error.hint, code=error.code, location=error.location
            ) from None
        except RecursionError:
            raise StorageError(
                f"{target}: {PROGRAM} nests too deeply to be read", hint="Load what save() wrote.", code="D2S510"
            ) from None


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[IO[bytes], memoryview, Path]]:
    target = found_path(path)
    try:
        stream = open(target, "rb")
    except OSError as error:
        hint = "Check the path: it is what was given to save()."
        raise StorageError(f"{target} cannot be read: {error.strerror or error}", hint=hint, code="D2S506") from None
    with stream:
        if os.fstat(stream.fileno()).st_size == 0:
            raise _foreign(target, "it is empty")
        # A private mapping: pages come from the file as they are read, and are let go when the last view of them is.
        yield stream, memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)), target


def _parts(stream: IO[bytes], data: memoryview, target: Path) -> dict[str, memoryview]:
    """The two parts of the file, after its checksum was found right."""
    if bytes(data[:4]) != b"PK\x03\x04":
        raise _foreign(target, "it does not begin like one")
    if bytes(data[-_COMMENT : len(data) - 64]) != _MARK:
        raise _foreign(target, "its checksum is missing, so it was cut off or is something else")
    digest = hashlib.sha256()
    for at in range(0, len(data) - _COMMENT, _CHUNK):
        digest.update(data[at : min(at + _CHUNK, len(data) - _COMMENT)])
    if digest.hexdigest().encode("ascii") != bytes(data[-64:]):
        hint = "Copy it again, or save it anew."
        raise StorageError(f"{target} is damaged: {_damage(stream)}", hint=hint, code="D2S507")
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise _foreign(target, str(error)) from None
    if [member.filename for member in members] != [PROGRAM, TENSORS]:
        raise _foreign(target, f"it does not hold {PROGRAM} and {TENSORS}")
    parts = {}
    for member in members:
        header = member.header_offset
        begin = header + 30 + int.from_bytes(data[header + 26 : header + 28], "little")
        begin += int.from_bytes(data[header + 28 : header + 30], "little")
        plain = member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size
        if not plain or member.flag_bits & 1 or not 0 <= begin <= begin + member.file_size <= len(data):
            raise _foreign(target, f"its part {member.filename} is not stored plainly")
        parts[member.filename] = data[begin : begin + member.file_size]
    return parts


def _damage(stream: IO[bytes]) -> str:
    """Which part is not what it was."""
    try:
        with zipfile.ZipFile(stream) as archive:
            part = archive.testzip()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError, RuntimeError):
        return "its bytes are not those that were written, and its directory cannot be read"
    return f"its part {part} is not what was written" if part else "its bytes are not those that were written"


def _foreign(target: Path, reason: str) -> StorageError:
    hint = "Load what save() wrote, whole."
    return StorageError(f"{target} is no dy2static artefact, or only a part of one: {reason}", hint=hint, code="D2S508")
