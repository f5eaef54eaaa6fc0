"""A file is the old one or the new one, whole: whoever is killed, however full the disk is, whoever else writes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.errors import StorageError
from runtime.storage import Artefact, files, read_artefact, write_artefact

HERE = Path(__file__).parent
PREAMBLE = f"""
import os, random, resource, signal, sys, time
sys.path[:0] = [{str(HERE.parents[2])!r}, {str(HERE)!r}]
import torch
from conftest import make
from runtime.errors import StorageError
from runtime.storage import files, read_artefact, write_artefact

torch.set_num_threads(1)
path = sys.argv[1]

def filled(value, size=2):
    return make(weight=torch.full((3, size), float(value)).requires_grad_())

def value_of(artefact):
    (weight,) = artefact.tensors
    assert weight.eq(weight[0, 0]).all(), "a mixture"
    return int(weight[0, 0])

def child(work):
    made = os.fork()
    if made == 0:
        try:
            work()
        finally:
            os._exit(0)
    return made

def kill(*rest):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run(script: str, folder: Path) -> str:
    """Run a script in a process of its own, which may fork; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREAMBLE + script, str(folder / "model.d2s")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


KILLED = """
def after(name, owner=files, of=None):
    real = getattr(of or owner, name)
    def stage():
        def call(*args, **kwargs):
            result = real(*args, **kwargs)
            kill()
            return result
        setattr(of or owner, name, call)
        write_artefact(filled(2), path)
    return stage

def half_a_table(stream, table):
    stream.write(b"half")
    stream.flush() if hasattr(stream, "flush") else None
    kill()

def in_the_table():
    files.write_table = half_a_table
    write_artefact(filled(2), path)

stages = {
    "open": after("open", of=os), "table": in_the_table, "after the table": after("write_table"),
    "seal": after("_seal"), "fsync": after("fsync", of=os), "replace": after("replace", of=os),
}
for name, stage in stages.items():
    write_artefact(filled(1), path)
    _, status = os.waitpid(child(stage), 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, name
    print(name, value_of(read_artefact(path)))
    write_artefact(filled(3), path)
    assert value_of(read_artefact(path)) == 3
"""


def test_kill_at_every_stage_leaves_a_whole_file(tmp_path: Path) -> None:
    out = run(KILLED, tmp_path)
    assert out.splitlines() == ["open 1", "table 1", "after the table 1", "seal 1", "fsync 1", "replace 2"]


ANYWHERE = """
random.seed(1)

def write_on():
    value = 10
    while True:
        value += 1
        write_artefact(filled(value, 20000), path)

write_artefact(filled(1), path)
seen = set()
for _ in range(25):
    made = child(write_on)
    time.sleep(random.uniform(0.0, 0.08))
    os.kill(made, signal.SIGKILL)
    os.waitpid(made, 0)
    seen.add(value_of(read_artefact(path)))
print(len(seen))
"""


@pytest.mark.slow
def test_kill_at_any_time_leaves_a_whole_file(tmp_path: Path) -> None:
    assert int(run(ANYWHERE, tmp_path)) > 1, "nothing was written in the meantime"


WRITERS = """
def writer(number):
    for step in range(30):
        write_artefact(filled(number * 100 + step, 5000), path)

write_artefact(filled(0), path)
writers = [child(lambda number=number: writer(number)) for number in (1, 2, 3)]
seen, alive = [], set(writers)
while alive:
    seen.append(value_of(read_artefact(path)))
    for one in list(alive):
        done, status = os.waitpid(one, os.WNOHANG)
        if done:
            assert status == 0
            alive.discard(one)
assert value_of(read_artefact(path)) % 100 == 29
assert os.listdir(os.path.dirname(path)) == ["model.d2s"]
print(len({value // 100 for value in seen}))
"""


@pytest.mark.slow
def test_writers_at_once_and_a_reader(tmp_path: Path) -> None:
    """Every read finds the whole file of one of them; the last to finish wins; nothing is left beside it."""
    assert int(run(WRITERS, tmp_path)) > 1


LIMITED = """
write_artefact(filled(1), path)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
for size in (5000, 1000000):
    try:
        write_artefact(filled(2, size), path)
    except StorageError as error:
        print(error.code, value_of(read_artefact(path)), os.listdir(os.path.dirname(path)))
"""


def test_the_kernel_takes_no_more_bytes(tmp_path: Path) -> None:
    assert run(LIMITED, tmp_path) == "D2S505 1 ['model.d2s']\n" * 2


def test_full_disk(make_artefact: Callable[..., Artefact], tmp_path: Path) -> None:
    """A file system of its own, too small for the file."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting takes rights that this process has not")
    try:
        path = write_artefact(make_artefact(), tmp_path / "model")
        before = path.read_bytes()
        large = make_artefact(weight=torch.ones(3, 20000).requires_grad_())
        for where in (path, tmp_path / "a" / "b" / "other"):
            with pytest.raises(StorageError, match=r"D2S505.*cannot be written: No space left on device"):
                write_artefact(large, where)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.d2s"]
        assert read_artefact(path).name == "Net"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [5, 28, 122])
def test_errors_of_the_disk(
    artefact: Artefact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """EIO, ENOSPC and EDQUOT come at the end as well: when what was written is to be on disk, and in its place."""
    path = write_artefact(artefact, tmp_path / "model")
    before = path.read_bytes()

    def fail(*rest: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, call, fail)
    with pytest.raises(StorageError, match=f"D2S505.*cannot be written: {os.strerror(number)}"):
        write_artefact(artefact, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.d2s"]


def test_a_folder_that_cannot_be_synced_is_no_error(
    artefact: Artefact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems sync no folders; the file itself is on disk."""
    real = os.fsync

    def sync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", sync)
    assert read_artefact(write_artefact(artefact, tmp_path / "model")).name == "Net"
