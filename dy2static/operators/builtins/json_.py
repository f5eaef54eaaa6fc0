"""``json.dumps`` of values that only the run knows: the same written in Python, and converted.

    json.dumps({"loss": loss.item()})    ->    '{"loss": ' + repr(...) + '}'
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from dy2static.operators.builtins import json_in_python
from dy2static.operators.calls import growing
from dy2static.operators.calls.call import call
from dy2static.operators.shared.staging import Choice, Session, Staged
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.walks import walk
from runtime.tracer.values import containers

_DEEPEST = 100
_DUMPS: Any = json_in_python.dumps
_LEFT_OUT = ("skipkeys", "check_circular", "cls")
"""Arguments that the one in Python does not have; a value that holds itself is refused."""


def _dumps(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = inspect.signature(json.dumps).bind(*args, **kwargs).arguments
    value = given.pop("obj")
    options = {**given, **given.pop("kw", {})}
    plain = not any(is_a(one, (Staged, Choice)) for one in options.values())
    if not plain or not any(map(_is_open, walk([value], _parts, _DEEPEST))) or any(
            options.get(name) for name in _LEFT_OUT if name != "check_circular"):
        return NotImplemented
    return call(_DUMPS, value, **{name: option for name, option in options.items() if name not in _LEFT_OUT})


def _is_open(value: Any) -> bool:
    return is_a(value, (Staged, Choice, Keyed)) or growing.is_growing(value) or (
        containers.several(value) is not None)


def _parts(value: Any) -> Any:
    if is_a(value, dict):
        return [*dict.keys(value), *dict.values(value)]
    return value if is_a(value, (list, tuple)) and not growing.is_growing(value) else ()


HANDLERS: list[tuple[Any, Any]] = [(json.dumps, _dumps)]
