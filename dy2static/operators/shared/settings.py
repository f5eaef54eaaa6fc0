"""Settings of the process that traced code asks for: the Program holds as long as the answer stays."""

from __future__ import annotations

import types
from operator import attrgetter
from typing import Any

import torch

from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.storage.answers import AUTOCAST, SETTINGS
from runtime.tracer.ambient.unasked import module_name

_OF_THE_KEY = {"torch.is_inference_mode_enabled()", "torch.get_default_dtype()", "torch.get_default_device()",
               "torch.are_deterministic_algorithms_enabled()"}  # fmt: skip
"""Settings for each of which a live function has other Programs in any case."""
_OF_AUTOCAST = """is_autocast_enabled is_autocast_cpu_enabled get_autocast_dtype get_autocast_cpu_dtype
get_autocast_gpu_dtype is_autocast_cache_enabled""".split()


def _functions() -> dict[int, tuple[str, Any]]:
    found: dict[int, tuple[str, Any]] = {}
    for name in (*SETTINGS, *(f"torch.{name}()" for name in _OF_AUTOCAST)):
        try:
            function = attrgetter(name.removeprefix("torch.").removesuffix("()"))(torch)
        except AttributeError:  # not every version has all
            continue
        found[id(function)] = name if name in SETTINGS else AUTOCAST, function
    return found


_BY_ID = _functions()
_PLAIN = (bool, int, float, str, type(None))


def note_call(session: Session, f: Any) -> None:
    """Note that ``f`` is about to be called: if it asks for a setting, the answer has to be the same in later calls."""
    if f is torch.is_grad_enabled:  # a Program is for calls with gradients, or without; a file has one for each
        session.outside.asks_gradients = True
    name, function = _BY_ID.get(id(f), ("", None))
    session.graph.autocast_asked += name == AUTOCAST
    if name and _is_callers(session):
        session.outside.asked_settings.add(name)
        if name != AUTOCAST and name not in _OF_THE_KEY:
            session.guards.add(("setting", name), name, function, function())


def note_attribute(session: Session, obj: Any, name: str, value: Any) -> None:
    """The same for what is read of ``torch.backends.mkldnn`` and the like."""
    kind = type(obj)
    if kind is not types.ModuleType and module_name(kind).startswith("torch.backends") and type(value) in _PLAIN:
        if _is_callers(session):
            where = obj.__name__ if is_a(obj, types.ModuleType) else f"{kind.__module__}.{kind.__name__}"
            session.guards.add(("setting", where, name), f"{where}.{name}", lambda: getattr(obj, name), value)
            session.outside.asked_settings.add(f"{where}.{name}")


def note_operator(session: Session, namespace: Any, name: str, packet: Any) -> None:
    """Note an operator of a library: where the library is loaded again, ``torch.ops.lib.name`` is another one."""
    if torch_internals.may_go(namespace, packet):
        what = f"torch.ops.{namespace.name}.{name}"
        session.guards.add_test((what, "operator"), what, lambda: getattr(namespace, name, None) is packet)


def _is_callers(session: Session) -> bool:
    """Whether the settings are those that the caller has: what traced code sets, it sets in each trace."""
    return not torch_internals.changed_settings(session.outside.settings)


__all__ = ["note_attribute", "note_call", "note_operator"]
