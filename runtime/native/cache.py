"""Compiled libraries, and converted code, on disk: found again by what they were made of, and used only if they are
what was written.

    <folder>/<what it was made of>-<what is in it>.so         both are SHA-256 digests

Loading a library is running it. So the folder must be the user's own, nobody else may write to it or replace it, and
a file whose content is not what its name says is removed and made again. Files appear whole or not at all: any number
of processes may use one folder.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
import warnings
from pathlib import Path

FOLDER = "DY2STATIC_CACHE"
"""The environment variable that names the folder; ``off``: libraries live as long as the process."""
LIMIT = 256 * 2**20
"""Bytes of libraries; beyond, those that were not used for the longest time are removed."""

_OURS = re.compile(r"[0-9a-f]{64}-[0-9a-f]{64}\.(so|o|cubin)|[0-9a-f]{64}\.conversions|d2s-.*\.tmp")
_LEFT_BEHIND = 3600.0
"""Seconds after which a file that was being written is one that a process left behind when it ended."""


def folder() -> Path:
    """Where libraries are kept: the folder that was chosen, else one in the user's cache, else the process's own.

    A warning says once why the first two cannot be used.
    """
    chosen = _chosen()
    if chosen is None:
        return _of_the_process(os.getpid())
    path, complaint = _looked_at(chosen)
    if not complaint:
        return path
    _warn(complaint)
    return _of_the_process(os.getpid())


def is_kept() -> bool:
    """Whether what is put there outlives the process; nothing is said where it does not."""
    chosen = _chosen()
    return chosen is not None and not _looked_at(chosen)[1]


def _chosen() -> str | None:
    chosen = os.environ.get(FOLDER)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    return None if chosen == "off" else os.path.expanduser(chosen or os.path.join(base, "dy2static"))


@functools.cache
def _looked_at(name: str) -> tuple[Path, str]:
    """The folder, made if there is none, and why it cannot be used; "" where it can."""
    path = Path(name).absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = path.resolve()
        complaint = unsafe(path)
        if not complaint and not os.access(path, os.W_OK | os.X_OK):
            complaint = f"{path} cannot be written to"
    except OSError as error:
        complaint = f"{path}: {error.strerror}"
    return path, complaint


@functools.cache
def _warn(complaint: str) -> None:
    warnings.warn(f"compiled libraries are not kept: {complaint}. Choose another folder with {FOLDER}, or "
                  f"{FOLDER}=off", RuntimeWarning, stacklevel=3)  # fmt: skip


def unsafe(path: Path) -> str:
    """Why somebody else could put a library into a folder, or another folder in its place; "" if nobody can."""
    mine = os.geteuid()
    trusted = {0, mine, os.stat("/").st_uid}
    found = os.stat(path)
    if found.st_uid != mine:
        return f"{path} belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {path} (chmod go-w)"
    for above in path.parents:
        found = os.stat(above)
        if found.st_uid not in trusted:
            return f"{above} belongs to another user"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            return f"others may write to {above}"
    return ""


@functools.cache
def _of_the_process(process: int) -> Path:
    """A folder that is removed when the process ends that made it."""
    path = Path(tempfile.mkdtemp(prefix="dy2static-"))

    def remove() -> None:
        if os.getpid() == process:  # children that were forked end, too
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return path


def find(key: str, ending: str) -> Path | None:
    """The file made of what ``key`` is the digest of, if it is there and nothing else."""
    for path in sorted(folder().glob(f"{key}-*{ending}")):
        if _digest(path) == path.name[len(key) + 1 : -len(ending)]:
            with contextlib.suppress(OSError):
                os.utime(path)
            return path
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def put(key: str, ending: str, made: Path) -> Path:
    """Keep a file; gives its place. Errors raised: OSError."""
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have removed it since
    content = made.read_bytes()
    path = place / f"{key}-{hashlib.sha256(content).hexdigest()}{ending}"
    _write(path, content)
    trim(place, path)
    return path


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="d2s-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


class Records:
    """Small files that change, in a folder of their own inside: each has the digest of its content at its head."""

    def __init__(self, name: str, ending: str, limit: int) -> None:
        """``limit``: bytes of such files; see `LIMIT`."""
        self._name, self._ending, self._limit = name, ending, limit
        self._trimmed = False

    def read(self, key: str) -> bytes | None:
        """What was written last under a key; None where there is nothing, or what nobody has written."""
        path = folder() / self._name / f"{key}{self._ending}"
        found = _content(path)
        if found is None:
            return None
        content = found[_HEAD:]
        if hashlib.sha256(content).digest() == found[:_HEAD]:
            with contextlib.suppress(OSError):
                os.utime(path)
            return content
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def write(self, key: str, content: bytes) -> None:
        """Put this in the place of what is there. Errors raised: OSError."""
        place = folder() / self._name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = place / f"{key}{self._ending}"
        _write(path, hashlib.sha256(content).digest() + content)
        if not self._trimmed:  # once a process: looking through the folder takes longer than writing
            self._trimmed = True
            trim(place, path, self._limit)


_HEAD = hashlib.sha256().digest_size


def trim(place: Path, new: Path, limit: int | None = None) -> None:
    """Remove what was not used for the longest time where there is too much, and what processes left behind."""
    found: list[tuple[float, int, Path]] = []
    for entry in os.scandir(place):
        with contextlib.suppress(OSError):  # another process may have removed it
            if not _OURS.fullmatch(entry.name):
                continue
            known = entry.stat(follow_symlinks=False)
            if entry.name.endswith(".tmp"):
                if time.time() - known.st_mtime > _LEFT_BEHIND:
                    os.unlink(entry.path)
            elif entry.name != new.name:
                found.append((known.st_mtime, known.st_size, Path(entry.path)))
    total = sum(size for _, size, _ in found) + new.stat().st_size
    limit = LIMIT if limit is None else limit
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit * 3 // 4:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def _digest(path: Path) -> str:
    """The digest of a file's content; "" for a file that others could have written."""
    content = _content(path)
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes | None:
    """A file's content; None where there is none, or others could have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode) or known.st_uid != os.geteuid():
            return None
        if known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        return file.read()


__all__ = ["FOLDER", "LIMIT", "Records", "find", "folder", "is_kept", "put", "trim", "unsafe"]
