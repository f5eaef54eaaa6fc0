"""Libraries on disk: found again, never half of one, never somebody else's."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch

from runtime.native import build, cache
from tests.runtime.native.programs import compiled

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """program "f" {
  input %x : f32[n] = "x"
  input %n : int = "n"
  %more : bool = scalar.gt(%n, 0)
  %f : bool, %i : int, %s : f32[n] = while_loop(%more, 0, %x) {
    ^(%g : bool, %j : int, %t : f32[n]):
      yield %g
  } {
    ^(%h : bool, %k : int, %u : f32[n]):
      %v : f32[n] = aten.mul.Tensor(%u, NUMBER)
      %l : int = scalar.add(%k, 1)
      %m : bool = scalar.lt(%l, %n)
      yield %m, %l, %v
  }
  return %s as $0
}"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of its own, and a process that has loaded nothing yet."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    again(monkeypatch)
    return tmp_path / "kept"


def again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process began."""
    monkeypatch.setattr(build, "_shelf", build._Shelf())


def run(number: float = 0.5) -> list[float]:
    """A loop in C, built where it is not there yet."""
    made = compiled(PROGRAM.replace("NUMBER", repr(number)))
    (result,) = made.run([torch.ones(2), 3], [])
    assert not any(region.failures for region in made.written.compiled)
    return result.tolist()


def libraries(place: Path) -> list[Path]:
    return sorted(place.glob("*.so"))


def test_a_library_is_made_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run() == [0.125, 0.125]
    (library,) = libraries(place)
    again(monkeypatch)
    monkeypatch.setattr(build, "_compile", None)
    assert run() == [0.125, 0.125]
    assert libraries(place) == [library]
    (built,) = build._shelf.built.values()
    assert built.path == library and built.seconds == 0.0


@pytest.mark.parametrize("damage", [
    lambda data: data[:-100], lambda data: b"", lambda data: data[:2000] + b"\xcc" * 64 + data[2064:],
    lambda data: data + b"!",
], ids=["truncated", "empty", "changed", "longer"])  # fmt: skip
def test_a_damaged_library_is_made_again(place: Path, monkeypatch: pytest.MonkeyPatch, damage: object) -> None:
    run()
    (library,) = libraries(place)
    good = library.read_bytes()
    library.unlink()  # the file that this process has loaded stays as it is
    library.write_bytes(damage(good))  # type: ignore[operator]
    os.chmod(library, 0o600)
    again(monkeypatch)
    assert run() == [0.125, 0.125]
    (made,) = libraries(place)
    assert cache._digest(made) in made.name


def test_a_damaged_object_file_is_made_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    for path in place.glob("*.o"):
        path.write_bytes(b"no object file")
    again(monkeypatch)
    assert run(0.25) == [0.015625, 0.015625]
    (made,) = place.glob("*.o")
    assert cache._digest(made) in made.name


def test_a_file_that_others_may_have_written_is_not_loaded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    (library,) = libraries(place)
    os.chmod(library, 0o666)
    before = library.stat().st_ino
    again(monkeypatch)
    run()
    (made,) = libraries(place)
    assert made.stat().st_ino != before and made.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(place: Path, tmp_path: Path) -> None:
    place.mkdir(mode=0o700)
    (tmp_path / "target").write_bytes(b"x")
    digest = cache._digest(tmp_path / "target")
    assert digest
    (place / f"{'0' * 64}-{digest}.so").symlink_to(tmp_path / "target")
    assert cache.find("0" * 64, ".so") is None


def test_folders_that_others_may_change(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True, mode=0o700)
    os.chmod(inner, 0o700)
    os.chmod(tmp_path / "outer", 0o700)
    assert cache.unsafe(inner) == ""
    for mode in (0o770, 0o707):
        os.chmod(inner, mode)
        assert cache.unsafe(inner) == f"others may write to {inner} (chmod go-w)"
    os.chmod(inner, 0o700)
    os.chmod(tmp_path / "outer", 0o777)
    assert cache.unsafe(inner) == f"others may write to {tmp_path / 'outer'}"
    os.chmod(tmp_path / "outer", 0o1777)
    assert cache.unsafe(inner) == ""


def test_folders_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(tmp_path, 0o700)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert cache.unsafe(tmp_path) == f"{tmp_path} belongs to another user"


def test_an_unsafe_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsafe = tmp_path / "shared"
    unsafe.mkdir()
    os.chmod(unsafe, 0o777)
    monkeypatch.setenv(cache.FOLDER, str(unsafe))
    with pytest.warns(RuntimeWarning, match="compiled libraries are not kept: others may write to .*shared"):
        found = cache.folder()
    assert found != unsafe and found.stat().st_mode & 0o777 == 0o700
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.folder() == found, "one warning"
    again(monkeypatch)
    assert run() == [0.125, 0.125] and not list(unsafe.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "file" / "inner"))
    with pytest.warns(RuntimeWarning, match="not kept: .*Not a directory"):
        assert cache.folder().is_dir()


def test_a_folder_that_is_removed_is_made_again(place: Path) -> None:
    run()
    shutil.rmtree(place)
    assert run(0.25) == [0.015625, 0.015625]
    assert len(libraries(place)) == 1 and place.stat().st_mode & 0o777 == 0o700


def test_a_full_disk_is_a_build_that_failed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "put", full)
    with pytest.raises(build.BuildError, match="cannot be kept: .*No space left on device"):
        run()


def test_off_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "from runtime.native import cache\n"
        "print(cache.folder())\n"
        "assert cache.folder().is_dir()\n"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, cache.FOLDER: "off"},
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert not Path(done.stdout.strip()).exists(), "it ends with the process"


def test_the_default_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "dy2static"
    assert (tmp_path / "dy2static").stat().st_mode & 0o777 == 0o700


def test_what_was_not_used_longest_goes_first(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 1000)
    (tmp_path / "made").write_bytes(b"x" * 300)
    paths = []
    for number in range(3):
        paths.append(cache.put(f"{number}" * 64, ".so", tmp_path / "made"))
        os.utime(paths[-1], (1000 + number, 1000 + number))
    assert cache.find("0" * 64, ".so") == paths[0]  # used now
    own = place / "notes.so"
    own.write_bytes(b"x" * 5000)
    os.utime(own, (1, 1))
    left = place / "d2s-old.tmp"
    left.write_bytes(b"x")
    os.utime(left, (1, 1))
    last = cache.put("3" * 64, ".so", tmp_path / "made")
    assert {path.name for path in place.iterdir()} == {paths[0].name, last.name, own.name}
    assert (place / "notes.so").exists(), "a file that is not ours stays"


_ONE = """
import sys
import torch
from tests.runtime.native import test_cache
print(test_cache.run())
"""


@pytest.mark.slow
def test_four_processes_at_once(place: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", _ONE], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        for _ in range(4)
    ]  # fmt: skip
    for one in started:
        out, err = one.communicate(timeout=300)
        assert one.returncode == 0 and out.strip() == "[0.125, 0.125]", err
    found = list(place.iterdir())
    assert found and all(cache._digest(path) in path.name for path in found), found


def _in_a_child(queue: object) -> None:
    queue.put([run(), run(0.25)])  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_a_library_is_being_made(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    compile_ = build._compile

    def slow(*args: object) -> Path:
        entered.set()
        assert go_on.wait(300)
        return compile_(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "_compile", slow)
    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(300)
    monkeypatch.setattr(build, "_compile", compile_)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=300) == [[0.125, 0.125], [0.015625, 0.015625]]
    child.join(300)
    go_on.set()
    thread.join()
    assert child.exitcode == 0
    assert all(cache._digest(path) in path.name for path in place.iterdir())


def test_what_a_library_is_made_of_is_its_key(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = build._key("source", "-O3", "cc")
    assert key == build._key("source", "-O3", "cc")
    found = {key, build._key("source", "-O2", "cc"), build._key("other", "-O3", "cc"), build._key("source", "-O3")}
    for name, value in (("_version", "cc 99"), ("_processor", "another")):
        with monkeypatch.context() as changed:
            changed.setattr(build, name, lambda value=value: value)
            found.add(build._key("source", "-O3", "cc"))
    with monkeypatch.context() as changed:
        changed.setattr(torch, "__version__", "9.9")
        found.add(build._key("source", "-O3", "cc"))
    assert len(found) == 7
