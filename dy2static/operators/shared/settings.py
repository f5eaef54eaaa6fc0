"""Settings of the process that traced code asks for: the Program holds as long as the answer stays."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import torch

from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.storage.answers import AUTOCAST, is_setting
from runtime.tracer.ambient.unasked import module_name

_OF_THE_KEY = {"torch.is_inference_mode_enabled()", "torch.get_default_dtype()", "torch.get_default_device()",
               "torch.are_deterministic_algorithms_enabled()"}  # fmt: skip
"""Settings for each of which a live function has other Programs in any case."""
_OF_AUTOCAST = """is_autocast_enabled is_autocast_cpu_enabled get_autocast_dtype get_autocast_cpu_dtype
get_autocast_gpu_dtype is_autocast_cache_enabled""".split()


def _functions() -> dict[int, tuple[str, Any]]:
    found = {id(function): (name, function) for name, function in torch_internals.setting_functions().items()}
    for name in _OF_AUTOCAST:
        with contextlib.suppress(AttributeError):  # not every version has all
            function = getattr(torch, name)
            found[id(function)] = AUTOCAST, function
    return found


_BY_ID = _functions()
_PLAIN = (bool, int, float, str, type(None))


def note_call(session: Session, f: Any) -> None:
    """Note that ``f`` is about to be called: if it asks for a setting, the answer has to be the same in later calls."""
    if f is torch.is_grad_enabled:  # a Program is for calls with gradients, or without; a file has one for each
        session.outside.asks_gradients = True
    name, function = _BY_ID.get(id(f), ("", None))
    session.graph.autocast_asked += name == AUTOCAST
    if name == AUTOCAST:
        if _is_callers(session):
            session.outside.asked_settings.add(name)
    elif name and function() == session.outside.answers[name]:
        session.outside.asked_settings.add(name)
        if name not in _OF_THE_KEY:
            session.guards.add(("setting", name), name, function, _of_caller(session, function, name))


def anomaly(session: Session, function: Any) -> bool:
    """What ``torch.is_anomaly_enabled`` or ``torch.is_anomaly_check_nan_enabled`` answers."""
    note_call(session, function)
    name, _ = _BY_ID[id(function)]
    now: bool = function()
    return _of_caller(session, function, name) if now == session.outside.answers[name] else now


def _of_caller(session: Session, function: Any, name: str) -> Any:
    """How the caller has a setting: anomaly detection is switched off while tracing."""
    off = torch_internals.callers_anomaly()
    if off is not None and function in _ANOMALY:
        return off[_ANOMALY.index(function)]
    return session.outside.answers[name]


_ANOMALY = (torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled)


def note_attribute(session: Session, obj: Any, name: str, value: Any) -> None:
    """The same for what is read of ``torch.backends.mkldnn`` and the like."""
    kind = type(obj)
    of_backends = module_name(kind).startswith("torch.backends")
    if type(value) not in _PLAIN or not (of_backends or is_a(obj, types.ModuleType)):
        return
    where = obj.__name__ if is_a(obj, types.ModuleType) else f"{kind.__module__}.{kind.__name__}"
    if of_backends and not _is_callers(session):
        return
    if where.partition(".")[0] == "torch":
        session.guards.add(("setting", where, name), f"{where}.{name}", lambda: getattr(obj, name), value)
        if is_setting(f"{where}.{name}"):
            session.outside.asked_settings.add(f"{where}.{name}")


def note_operator(session: Session, namespace: Any, name: str, packet: Any) -> None:
    """Note an operator of a library: where the library is loaded again, ``torch.ops.lib.name`` is another one."""
    if torch_internals.may_go(namespace, packet):
        what = f"torch.ops.{namespace.name}.{name}"
        session.guards.add_test((what, "operator"), what, lambda: getattr(namespace, name, None) is packet)


def _is_callers(session: Session) -> bool:
    """Whether the settings are those that the caller has: what traced code sets, it sets in each trace."""
    return not torch_internals.changed_settings(session.outside.settings)


__all__ = ["anomaly", "note_attribute", "note_call", "note_operator"]
