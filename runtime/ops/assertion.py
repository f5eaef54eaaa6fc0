"""``assert`` and ``raise``: exceptions that depend on what is computed.

    assert(%flag, "size ", %n) attrs {exception: "AssertionError", message: None}
    raise("no convergence after", %n, steps=%n) attrs {exception: "ValueError"}

An exception is a builtin by its name, or the user's own by module and name (``"solver.NotConverged"``). What ``raise``
has as keywords are attributes that it gets, or fields of Python's classes (``filename``). An object among them that is
no constant of Programs is one that the caller knows by name; a file has its two texts, ``repr`` where it stands and
``str`` beside the name:

``raise X from Y`` has the class and arguments of Y beside, and its attributes if it has any; ``suppress``: whether a
context is not to be shown, as after ``from None``. The context itself, what was being handled, is not kept.

    raise("no convergence", __cause__=["KeyError", "tol"]) attrs {exception: "ValueError", suppress: True}
    raise("stuck", __cause__=["solver.Far", 3], __cause_fields__={"n": 3}) attrs {exception: "ValueError"}
    raise("<Color.RED: 1>") attrs {exception: "KeyError", objects: {"0": ["object 1 paint.Color", "Color.RED"]}}

The place of an object that the cause has is ``"__cause__.0"``, or that of an attribute.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from runtime.errors import ProgramError
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ops.arity import check_args, check_attrs, check_blocks, check_no_kwargs, check_outputs

CAUSE = "__cause__"
"""The keyword with what an exception was raised from."""
CAUSE_FIELDS = "__cause_fields__"
"""The keyword with the attributes of that."""


def of_cause(place: object) -> str:
    """The place of an argument or attribute of what an exception was raised from."""
    return f"{CAUSE}.{place}"


def exception_class(name: str) -> type[BaseException]:
    """The builtin exception of this name. Errors raised: ProgramError if there is none.

    >>> exception_class("ValueError")
    <class 'ValueError'>
    """
    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    raise ProgramError(f"{name!r} is no builtin exception")


def _verify_exception(op: Operator, fail: Fail) -> None:
    name = op.attrs["exception"]
    if "." in name and all(name.split(".")):
        return
    try:
        exception_class(name)
    except ProgramError as error:
        fail("attrs", error.summary)


def _verify_assert(op: Operator, fail: Fail) -> None:
    check_args(op, fail, 1, None)
    check_no_kwargs(op, fail)
    check_outputs(op, fail, 0)
    check_blocks(op, fail, ())
    check_attrs(op, fail, {"exception": (str,), "message": (str, type(None))}, required=["exception"])
    _verify_exception(op, fail)


def _verify_raise(op: Operator, fail: Fail) -> None:
    check_outputs(op, fail, 0)
    check_blocks(op, fail, ())
    known = {"exception": (str,), "objects": (dict,), "suppress": (bool,), "overwritten": (bool,)}
    check_attrs(op, fail, known, required=["exception"])
    _verify_exception(op, fail)
    cause = op.kwargs.get(CAUSE)
    if CAUSE in op.kwargs and not (isinstance(cause, (list, tuple)) and cause and type(cause[0]) is str):
        fail("kwargs", "the cause of an exception is a list of the name of its class and its arguments")
    if CAUSE_FIELDS in op.kwargs and not (isinstance(op.kwargs[CAUSE_FIELDS], dict) and CAUSE in op.kwargs):
        fail("kwargs", "the attributes of the cause of an exception are a dict beside the cause")
    places = {**dict(zip(map(str, range(len(op.args))), op.args)), **op.kwargs}
    if isinstance(cause, (list, tuple)):
        fields = op.kwargs.get(CAUSE_FIELDS)
        places |= {of_cause(position): value for position, value in enumerate(cause[1:])}
        places |= {of_cause(name): value for name, value in (fields if isinstance(fields, dict) else {}).items()}
    for place, found in op.attrs.get("objects", {}).items():
        there = places.get(place)
        texts = found if isinstance(found, (list, tuple)) else ()
        if type(there) is not str or len(texts) != 2 or not all(type(text) is str for text in texts):
            fail("attrs", f"the object at {place!r} needs its text there, and its name and other text in the attribute")


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition("assert", "Raise an exception if the flag is false.", verify=_verify_assert, effect=True, neutral=True,
                 passes_gradient=False, only_reads=True, asserts=True),
    OpDefinition("raise", "Raise an exception.", verify=_verify_raise, effect=True, neutral=True,
                 passes_gradient=False),
]
