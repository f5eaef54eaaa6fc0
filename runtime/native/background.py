"""Building while the process goes on: a queue of jobs and the one thread that does them.

The thread lives while there are jobs. The next job is one that a call waits for, else the one whose Program has taken
the most time so far. A job of which nobody holds the result any more is dropped. A forked child does its parent's jobs
anew, as its thread is not in it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from runtime.native import build

PATIENT = 1.0
"""Seconds that a call waits for its job before it says so."""

_log = logging.getLogger("dy2static")


@contextlib.contextmanager
def logged(what: str) -> Iterator[None]:
    _log.info("compiling %s to C; the call waits for it", what)
    yield


progress: Callable[[str], AbstractContextManager[Any]] = logged
"""Around waiting that takes long; gets the name of the Program. Who has a terminal puts another one here."""


class Job:
    """Something that is made in the background, once; ``make`` runs on the queue's thread, ``name`` is for people."""

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self.make = make
        self.name = name
        self.spent = 0.0
        """Seconds that its Program has taken so far: how much there is to gain."""
        self.waited = False
        self.done = threading.Event()
        self.result: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Do it, in this thread."""
        try:
            self.result = self.make()
        except Exception as error:  # whoever waits for it hears of it
            self.error = error
        finally:
            self.done.set()


class Queue:
    """Jobs that wait, and the thread that does them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: list[weakref.ref[Job]] = []
        self.current: weakref.ref[Job] | None = None
        self.thread: threading.Thread | None = None
        self.ending = False

    def submit(self, job: Job) -> None:
        """Have a job done soon."""
        with self.lock:
            self.jobs.append(weakref.ref(job))
        self._work()

    def wait(self, job: Job) -> None:
        """Until a job is done. It is done next; what takes long is shown."""
        job.waited = True
        self._work()
        if not job.done.wait(PATIENT):
            with progress(job.name):
                job.done.wait()

    def _work(self) -> None:
        """See to it that somebody does the jobs."""
        with self.lock:
            if self.thread is not None or not self.jobs or self.ending:
                return
            self.thread = threading.Thread(target=self._loop, name="dy2static-build", daemon=True)
            try:
                self.thread.start()
                return
            except RuntimeError:  # the interpreter ends: no more threads
                self.thread = None
        self._loop()

    def _loop(self) -> None:
        while True:
            job = self._next()
            if job is None:
                return
            job.run()
            del job

    def _next(self) -> Job | None:
        """The next job; None where there is none, and the thread ends."""
        with self.lock:
            alive = [(job.waited, job.spent, -index, job) for index, ref in enumerate(self.jobs)
                     if (job := ref()) is not None]  # fmt: skip
            if not alive or self.ending:
                self.thread = self.current = None
                return None
            chosen = max(alive)[-1]
            self.jobs = [ref for ref in self.jobs if ref() not in (None, chosen)]
            self.current = weakref.ref(chosen)
            return chosen

    def after_fork(self) -> None:
        """In a child: the thread is not there, and locks may be held by it."""
        again = [self.current, *self.jobs] if self.current is not None else self.jobs
        self.__init__()  # type: ignore[misc]  # as it began
        for ref in again:
            job = ref()
            if job is not None and not job.done.is_set():
                job.done = threading.Event()
                self.jobs.append(ref)

    def end(self) -> None:
        """The process ends: compilers are stopped, and the thread is waited for."""
        with self.lock:
            self.ending = True
            thread = self.thread
        build.stop()
        if thread is not None:
            thread.join(10.0)


queue = Queue()
atexit.register(queue.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=queue.after_fork)

__all__ = ["Job", "Queue", "logged", "queue"]
