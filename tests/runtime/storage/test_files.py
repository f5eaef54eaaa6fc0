"""Files: whole or not at all when written, and believed only when every byte is right."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from runtime.errors import StorageError
from runtime.ir.compare import difference
from runtime.storage import Artefact, artefact_path, files, read_artefact, write_artefact
from runtime.storage.document import write_json

Make = Callable[..., Artefact]


def test_artefact_comes_back(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    again = read_artefact(tmp_path / "model")
    assert path == tmp_path / "model.d2s" and os.listdir(tmp_path) == ["model.d2s"]
    assert torch.equal(again.tensors[0], artefact.tensors[0]) and again.tensors[0].requires_grad
    assert again.modules == artefact.modules and again.name == "Net"
    mine, others = artefact.methods["forward"], again.methods["forward"]
    assert others.variants["train"] is others.variants["eval"] and others.signature == mine.signature
    assert difference(mine.variants["eval"].program, others.variants["eval"].program) is None


def test_file_is_an_ordinary_zip_of_json_and_safetensors(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model.d2s")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        table = safetensors.torch.load(archive.read("tensors.safetensors"))
    assert torch.equal(table["fc.weight"], artefact.tensors[0])


def test_same_artefact_gives_the_same_bytes(artefact: Artefact, tmp_path: Path) -> None:
    first, second = (write_artefact(artefact, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_loaded_tensors_do_not_depend_on_the_file(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    again = read_artefact(path)
    path.write_bytes(b"\0" * path.stat().st_size)
    assert torch.equal(again.tensors[0], artefact.tensors[0])


def test_every_corrupted_byte_is_noticed(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ (1 + position % 255)]) + data[position + 1 :])
        with pytest.raises(StorageError, match=r"is damaged|is no dy2static artefact"):
            read_artefact(path)


def test_every_truncation_is_noticed(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(StorageError, match="no dy2static artefact, or only a part of one"):
            read_artefact(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(StorageError):
        read_artefact(path)


def test_damage_names_the_part(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    data = bytearray(path.read_bytes())
    at = data.index(artefact.tensors[0].detach().numpy().tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"model\.d2s is damaged: its part tensors\.safetensors is not what was"):
        read_artefact(path)


def sealed(path: Path, parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """A file with a right checksum and any content."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        archive.comment = b"sha256:" + b"0" * 64
    data = path.read_bytes()[:-71]
    path.write_bytes(data + b"sha256:" + hashlib.sha256(data).hexdigest().encode())
    return path


EMPTY_TABLE = (2).to_bytes(8, "little") + b"{}"


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({}, "does not begin like one"),
        ({"program.json": b"{}"}, "does not hold program.json and tensors.safetensors"),
        ({"program.json": b"{}", "tensors.safetensors": EMPTY_TABLE}, "program.json: 'version' is missing"),
        ({"program.json": b"[]", "tensors.safetensors": EMPTY_TABLE}, "program.json: 'version' is missing"),
        ({"program.json": b"\x80\x04K.", "tensors.safetensors": EMPTY_TABLE}, "program.json is no valid document"),
        (
            {"program.json": b'{"version": 3}', "tensors.safetensors": EMPTY_TABLE},
            "has version 3, and this package reads",
        ),
        ({"program.json": b'{"version": 1}', "tensors.safetensors": EMPTY_TABLE}, "'format' is missing"),
        ({"program.json": b'{"version": 2}', "tensors.safetensors": EMPTY_TABLE}, "'format' is missing"),
        ({"program.json": b"{}", "tensors.safetensors": b""}, "tensors.safetensors is cut off"),
    ],
)
def test_foreign_content_is_refused(parts: dict[str, bytes], problem: str, tmp_path: Path) -> None:
    path = sealed(tmp_path / "model.d2s", parts)
    with pytest.raises(StorageError, match=problem) as caught:
        read_artefact(path)
    assert str(path) in str(caught.value)


def test_compressed_parts_are_refused(tmp_path: Path) -> None:
    parts = {"program.json": b"{}" + b" " * 1000, "tensors.safetensors": EMPTY_TABLE}
    with pytest.raises(StorageError, match=r"its part program\.json is not stored plainly"):
        read_artefact(sealed(tmp_path / "model.d2s", parts, zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize("data", [b"", b"PK", b"hello" * 100, b"PK\x03\x04" + b"\0" * 200])
def test_foreign_file_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.d2s").write_bytes(data)
    with pytest.raises(StorageError, match="is no dy2static artefact"):
        read_artefact(tmp_path / "model")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"model\.d2s cannot be read: No such file"):
        read_artefact(tmp_path / "model")


def test_file_without_the_suffix_is_found(artefact: Artefact, tmp_path: Path) -> None:
    write_artefact(artefact, tmp_path / "model").rename(tmp_path / "renamed.bin")
    assert read_artefact(tmp_path / "renamed.bin").name == "Net"


@pytest.mark.parametrize(
    ("where", "problem"),
    [("folder", "there is a folder of that name"), ("file/model", "is no folder"), ("file/a/model", "is no folder")],
)
def test_unwritable_place_is_named(artefact: Artefact, tmp_path: Path, where: str, problem: str) -> None:
    (tmp_path / "folder.d2s").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=f"cannot be written: .*{problem}"):
        write_artefact(artefact, tmp_path / where)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.d2s"]


def test_missing_folders_are_made(artefact: Artefact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_artefact(artefact, tmp_path / "a" / "b" / "model")
    assert path == tmp_path / "a" / "b" / "model.d2s" and read_artefact(path).name == "Net"
    monkeypatch.chdir(tmp_path)
    assert write_artefact(artefact, "c/model") == Path("c/model.d2s") and Path("c/model.d2s").is_file()


def test_folders_made_in_vain_are_removed(
    artefact: Artefact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "write_table", full)
    with pytest.raises(StorageError, match="No space left"):
        write_artefact(artefact, tmp_path / "a" / "b" / "model")
    assert os.listdir(tmp_path) == []


def full(*rest: Any) -> None:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_saved_is_refused_before_the_disk_is_touched(make_artefact: Make, tmp_path: Path) -> None:
    path = write_artefact(make_artefact(), tmp_path / "model")
    before = path.read_bytes()
    text = """program "f" { input %x : f32[] = "x"  param %w : f32[] = "fc.weight" parameter
      %y : f32[] = py_func(%x) attrs {function: "f"} @ "user.py":7:0  return %y as $0 }"""
    with pytest.raises(StorageError, match=r"'py_func' calls a Python function(.|\n)*user\.py:7"):
        write_artefact(make_artefact(text), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.d2s"]


@pytest.mark.parametrize("failing", ["write_table", "_seal"])
def test_error_while_writing_leaves_the_old_file(
    artefact: Artefact, tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    before = path.read_bytes()

    def fail(stream: Any, *rest: Any) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, failing, fail)
    with pytest.raises(StorageError, match=r"model\.d2s cannot be written: No space left"):
        write_artefact(artefact, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.d2s"]


def test_interruption_leaves_the_old_file(artefact: Artefact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    before = path.read_bytes()

    def interrupt(*rest: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_seal", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_artefact(artefact, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.d2s"]


KILLED = """
import os, signal, sys
sys.path[:0] = [{root!r}, {here!r}]
from conftest import make
from runtime.storage import files, write_artefact
files._seal = lambda stream: (stream.flush(), os.kill(os.getpid(), signal.SIGKILL))
write_artefact(make(), {path!r})
"""


def test_kill_while_saving_leaves_the_old_file(artefact: Artefact, tmp_path: Path) -> None:
    path = write_artefact(artefact, tmp_path / "model")
    before = path.read_bytes()
    here = Path(__file__).parent
    script = KILLED.format(root=str(here.parents[2]), here=str(here), path=str(path))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == before and len(os.listdir(tmp_path)) == 2
    write_artefact(artefact, path)
    assert read_artefact(path).name == "Net"


def test_file_has_ordinary_rights_and_links_stay(artefact: Artefact, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "model.d2s"
    link.symlink_to(tmp_path / "there" / "real.d2s")
    write_artefact(artefact, link)
    assert link.is_symlink() and os.listdir(tmp_path / "there") == ["real.d2s"]
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(link.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_suffix_is_put_at_the_end_once() -> None:
    assert str(artefact_path("a/model.v1")) == "a/model.v1.d2s" and str(artefact_path("m.d2s")) == "m.d2s"


@pytest.mark.parametrize("depth", [900, 100_000])
def test_deep_nesting_is_refused(artefact: Artefact, tmp_path: Path, depth: int) -> None:
    with zipfile.ZipFile(write_artefact(artefact, tmp_path / "right")) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    deep = b'"args":[' + b"[" * depth + b"]" * depth + b","
    parts["program.json"] = parts["program.json"].replace(b'"args":[', deep, 1)
    path = sealed(tmp_path / "model.d2s", parts)
    with pytest.raises(StorageError, match=r"D2S51[01]"):
        read_artefact(path)


def test_edited_program_with_a_right_checksum_is_checked(artefact: Artefact, tmp_path: Path) -> None:
    """A checksum says that nothing was damaged, not that the content may be trusted."""
    from runtime.storage.writing import to_document

    document, table = to_document(artefact)
    document["methods"]["forward"]["variants"][0]["program"]["ops"][0]["op"] = "aten.from_file.default"
    document["methods"]["forward"]["variants"][0]["program"]["ops"][0]["args"] = [str(tmp_path / "made"), True, 4]
    with zipfile.ZipFile(write_artefact(artefact, tmp_path / "right")) as archive:
        tensors = archive.read("tensors.safetensors")
    path = sealed(tmp_path / "model.d2s", {"program.json": write_json(document), "tensors.safetensors": tensors})
    with pytest.raises(StorageError, match=r"'aten\.from_file\.default' is not among those that an artefact may hold"):
        read_artefact(path)
    assert not (tmp_path / "made").exists()
