"""Calls: plain outside a trace; in one, what is called decides (see ``traced_call``).

    f(a, *b, c=d)   ->   call(f, a, *b, c=d)
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from dy2static.names import is_generated
from dy2static.operators.staging import active


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)``."""
    special = _ABOUT_THE_CALLER.get(id(f))
    if special is not None and not (args and f in (vars, dir)):
        return special(sys._getframe(1), *args, **kwargs)
    session = active()
    if session is None:
        return f(*args, **kwargs)
    from dy2static.operators.traced_call import traced_call

    return traced_call(session, f, args, kwargs)


def _locals(frame: FrameType) -> dict[str, Any]:
    from runtime.tracer.structure import Undefined

    return {
        name: value for name, value in frame.f_locals.items()
        if not is_generated(name) and not isinstance(value, Undefined)
    }


def _globals(frame: FrameType) -> dict[str, Any]:
    return frame.f_globals


def _vars(frame: FrameType) -> Any:
    return _locals(frame)


def _dir(frame: FrameType) -> list[str]:
    return sorted(_locals(frame))


def _eval(frame: FrameType, source: Any, *spaces: Any, **keywords: Any) -> Any:
    if not spaces and not keywords:
        return eval(source, frame.f_globals, _locals(frame))
    return eval(source, *spaces, **keywords)


def _exec(frame: FrameType, source: Any, *spaces: Any, **keywords: Any) -> None:
    if not spaces and "globals" not in keywords:
        exec(source, frame.f_globals, _locals(frame), **keywords)
    else:
        exec(source, *spaces, **keywords)


def _getframe(frame: FrameType, depth: int = 0) -> FrameType:
    return sys._getframe(depth + 2)


def _warn(frame: FrameType, message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
    warnings.warn(message, category, stacklevel + 2, *args, **kwargs)


_ABOUT_THE_CALLER: dict[int, Callable[..., Any]] = {
    id(builtins.locals): _locals, id(builtins.globals): _globals, id(builtins.vars): _vars, id(builtins.dir): _dir,
    id(builtins.eval): _eval, id(builtins.exec): _exec, id(sys._getframe): _getframe, id(warnings.warn): _warn,
}  # fmt: skip
"""Functions whose result depends on the frame that calls them."""
