"""What every trace switches on: modules and custom functions convert wherever they are called from, who seeds
PyTorch's generator is seen, and the code of files that are imported is no part of it. A trace that fails leaves
Python's generators where they were."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dy2static.operators.calls.autograd_function import patched_functions, watch_contexts
from dy2static.operators.calls.functions import patched_backward
from dy2static.operators.provenance import host_random
from dy2static.operators.shared.impure import watched_seeds
from dy2static.operators.shared.staging import Session
from dy2static.operators.values.imports import imported_outside
from dy2static.operators.values.modules import patched_modules
from dy2static.origin import user_location
from runtime.tracer.ambient import source_places
from runtime.tracer.boundary import tracing


@contextlib.contextmanager
def patches(session: Session) -> Iterator[None]:
    """All of it, for the length of one trace."""
    with (
        host_random.put_back(session), patched_modules(session), patched_functions(session), watched_seeds(session),
        patched_backward(), imported_outside(session),
    ):  # fmt: skip
        yield


def install() -> None:
    """Have every trace use them, and find its place in the user's files; calling it again changes nothing."""
    source_places.location_provider = user_location
    watch_contexts()
    if patches not in tracing.trace_contexts:
        tracing.trace_contexts.append(patches)
