"""``warn`` and ``log``: what a program says through Python's ``warnings`` and ``logging``, when the Program runs.

    warn("sum ", %n) attrs {category: "RuntimeWarning", file: "user.py", line: 3, module: "user", level: 0}
    log("sum %s", None, %n) attrs {logger: "user", severity: 20, file: "user.py", line: 3, function: "f", level: 0}

``alone``: whatever was warned about before (``warnings.warn_explicit``). ``level`` 0: the place is the one given;
above: the frame so many calls outside the Program. The operands of ``warn``
are those of the category; the operands of ``log`` are the message, the extra fields, and what the message formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ops.arity import check_args, check_attrs, check_blocks, check_no_kwargs, check_outputs

_PLACE = {"file": (str,), "line": (int,), "level": (int,)}


def _check(op: Operator, fail: Fail, least: int) -> None:
    check_args(op, fail, least, None)
    check_no_kwargs(op, fail)
    check_outputs(op, fail, 0)
    check_blocks(op, fail, ())


def _verify_warn(op: Operator, fail: Fail) -> None:
    _check(op, fail, 0)
    known = {**_PLACE, "category": (str,), "module": (str,)}
    check_attrs(op, fail, {**known, "alone": (bool,)}, required=known)


def _verify_log(op: Operator, fail: Fail) -> None:
    _check(op, fail, 2)
    known = {**_PLACE, "logger": (str,), "severity": (int,), "function": (str,), "configure": (bool,)}
    check_attrs(op, fail, known, required=[key for key in known if key != "configure"])


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition("warn", "Issue a warning.", verify=_verify_warn, effect=True, neutral=True,
                 passes_gradient=False, says=True, raises=lambda op: False),
    OpDefinition("log", "Give a record to a logger.", verify=_verify_log, effect=True, neutral=True,
                 passes_gradient=False, says=True, raises=lambda op: False),
]
