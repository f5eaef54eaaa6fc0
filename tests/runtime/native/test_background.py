"""The queue of what is compiled while the process goes on."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.native import background
from runtime.native.background import Job, Queue

ROOT = Path(__file__).resolve().parents[3]


class Gate:
    """A job that lasts until it is let go."""

    def __init__(self, queue: Queue) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.job = Job(self._run, "gate")
        queue.submit(self.job)
        assert self.entered.wait(300)

    def _run(self) -> str:
        self.entered.set()
        assert self.go_on.wait(300)
        return "gone"


def test_the_one_waited_for_comes_first_then_the_one_that_took_longest() -> None:
    queue, order = Queue(), []
    gate = Gate(queue)
    jobs = [Job(lambda name=name: order.append(name), name) for name in ("cold", "warm", "hot", "waited")]  # type: ignore[misc]
    for job, spent in zip(jobs, (0.1, 0.2, 3.0, 0.0)):
        queue.submit(job)
        job.spent = spent
    jobs[3].waited = True
    gate.go_on.set()
    assert all(job.done.wait(300) for job in jobs)
    assert order == ["waited", "hot", "warm", "cold"]
    assert gate.job.result == "gone"


def test_an_error_is_kept_for_who_waits() -> None:
    queue = Queue()

    def fail() -> None:
        raise ValueError("no")

    job = Job(fail, "f")
    queue.submit(job)
    queue.wait(job)
    assert str(job.error) == "no" and job.result is None


def test_what_nobody_holds_any_more_is_not_done() -> None:
    queue, done = Queue(), []
    gate = Gate(queue)
    lost = Job(lambda: done.append("lost"), "lost")
    queue.submit(lost)
    kept = Job(lambda: done.append("kept"), "kept")
    queue.submit(kept)
    del lost
    gc.collect()
    gate.go_on.set()
    queue.wait(kept)
    assert done == ["kept"]


def test_the_thread_ends_when_there_is_nothing_to_do() -> None:
    queue = Queue()
    for _ in range(3):
        job = Job(lambda: 1, "one")
        queue.submit(job)
        queue.wait(job)
        until = time.monotonic() + 60
        while queue.thread is not None and time.monotonic() < until:
            time.sleep(0.001)
        assert queue.thread is None


def test_waiting_that_takes_long_is_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(background, "PATIENT", 0.01)
    shown = []

    @contextlib.contextmanager
    def progress(what: str) -> Iterator[None]:
        shown.append(what)
        gate.go_on.set()
        yield
        shown.append("end")

    @contextlib.contextmanager
    def logged(what: str) -> Iterator[None]:
        with background.logged(what):
            gate.go_on.set()
            yield

    queue = Queue()
    gate = Gate(queue)
    monkeypatch.setattr(background, "progress", progress)
    queue.wait(gate.job)
    assert shown == ["gate", "end"]
    gate = Gate(queue)
    monkeypatch.setattr(background, "progress", logged)
    with caplog.at_level(logging.INFO, logger="dy2static"):
        queue.wait(gate.job)
    assert caplog.messages == ["compiling gate to C; the call waits for it"]


def _wait_in_a_child(jobs: list[Job], answers: object) -> None:
    for job in jobs:
        background.queue.wait(job)
    answers.put([job.result for job in jobs])  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_them_itself() -> None:
    parent = os.getpid()
    gate = threading.Event()
    began = threading.Event()

    def make() -> int:
        if os.getpid() == parent:
            began.set()
            assert gate.wait(300)
        return os.getpid()

    jobs = [Job(make, "one"), Job(os.getpid, "two")]
    for job in jobs:
        background.queue.submit(job)
    assert began.wait(300)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_wait_in_a_child, args=(jobs, answers))
    child.start()
    assert answers.get(timeout=300) == [child.pid, child.pid]
    child.join(300)
    gate.set()
    for job in jobs:
        background.queue.wait(job)
    assert [job.result for job in jobs] == [parent, parent] and child.exitcode == 0


_ENDS = """
import torch
from dy2static import to_static

@to_static(backend="auto")
def f(x):
    while x.sum() > 1:
        x = x / 2
    return x

for _ in range(3):
    f(torch.ones(4))
from runtime.native.background import queue
import os, time
while not os.path.exists(os.environ["BEGAN"]):
    time.sleep(0.01)
assert queue.thread is not None
print("end")
"""


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_the_process_ends_although_a_compiler_runs(tmp_path: Path) -> None:
    compiler = tmp_path / "slow-cc"
    compiler.write_text(f"""#!/bin/sh
        [ "$1" = --version ] && exit 0
        echo $$ > {tmp_path}/pid
        mv {tmp_path}/pid {tmp_path}/began
        sleep 400
        """)
    compiler.chmod(0o700)
    environment = {**os.environ, "CC": str(compiler), "BEGAN": f"{tmp_path}/began", "TMPDIR": str(tmp_path / "tmp"),
                   "DY2STATIC_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}  # fmt: skip
    (tmp_path / "tmp").mkdir()
    (tmp_path / "ends.py").write_text(_ENDS)
    done = subprocess.run([sys.executable, str(tmp_path / "ends.py")], capture_output=True, text=True, timeout=300,
                          check=False, env=environment)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    left = [one for one in (tmp_path / "tmp").iterdir() if not one.name.startswith("torch")]  # PyTorch may have one
    assert not left, "nothing is left behind"
    pid = int((tmp_path / "began").read_text())
    until = time.monotonic() + 60
    while _is_there(pid) and time.monotonic() < until:  # it was told to end
        time.sleep(0.01)
    assert not _is_there(pid)
