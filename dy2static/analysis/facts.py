"""Facts: what the analyses know about a node, kept on the node under a closed list of keys.

Analyses write facts, transforms only read them. A fact survives copying the node.

>>> import gast
>>> node = gast.parse("x = 1").body[0]
>>> put(node, Fact.LIVE_OUT, frozenset({"x"}))
>>> get(node, Fact.LIVE_OUT), get(node, Fact.LIVE_IN)
(frozenset({'x'}), None)
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import gast

ATTRIBUTE = "_dy2static_facts"
"""Where a node keeps its facts."""


class Fact(Enum):
    """Every key there is. In brackets: the nodes that carry it."""

    LOCALS = "names that are local to the function, found before any transform [function]"
    LEFT_ALONE = "why its control flow is not converted, or an empty string [function]"
    SCOPE = "its Scope [function]"
    LIVE_IN = "names whose value is read at or after the start of the statement [statement]"
    LIVE_OUT = "names whose value is read after the statement [statement]"
    LIVE_BODY = "names live at the start of the body [If, While, For]"
    LIVE_ORELSE = "names live at the start of the else block [If]"
    BOUND = "names certainly bound before the statement [statement]"
    UNBOUND = "this read may find the name unbound [Name]"
    UNBOUND_READS = "names that this call, which stands for a comprehension, may find unbound [Name]"
    STATE = "names that the construct hands over to what comes after it, in order [If, While, For]"
    RESULT = "the name of the value that every branch ends with, and that is returned next [If]"
    DECLARED = "names that nothing but nested blocks binds: the function [function] or body [If, While, For] owns them"
    BOUND_INSIDE = "names that a comprehension's function binds, and the function itself no more [function]"
    DECLARED_ORELSE = "the same for the else block [If]"
    UNSURE = "local names that may be unbound at some time, or on some path only [function]"
    CONVERTIBLE = "bodies of this construct can become functions [If, While, For]"
    BREAK_FLAG = "the name of the flag that is set whenever this is reached [Break]"
    LOOP_TEST = "this last statement of a loop body leaves the loop; it stands for a test before each item [If]"
    IMMEDIATE = "stands for a comprehension, runs only where its name is read: inlined or consumed [FunctionDef]"
    READS = "names that are read when this function, which stands for a comprehension, is called [Name]"
    ATTEMPT = "the name that holds the run of this statement, whose handlers also stand inside its body [Try]"
    BLOCK = "this was a block of a construct, and is used once, in the next statement that is none [FunctionDef]"
    MADE_NAMES = "the names in it that transforms made, as they are at the end [function]"
    ESCAPES = "its only handler hands what is raised to the function's caller as a value [Try]"
    HANDS_ON = "its last handler does so; those before it are the user's [Try]"
    PLAIN = "made by a transform: later transforms leave it as it is [any]"

    __hash__ = object.__hash__  # that of Enum is written in Python, and hashes the name


def put(node: gast.AST, fact: Fact, value: Any = True) -> None:
    """Set a fact."""
    node.__dict__.setdefault(ATTRIBUTE, {})[fact] = value


def get(node: gast.AST, fact: Fact, default: Any = None) -> Any:
    """The value of a fact, or ``default``."""
    found = node.__dict__.get(ATTRIBUTE)
    return default if found is None else found.get(fact, default)


def drop(node: gast.AST, fact: Fact) -> None:
    """Remove a fact, if it is there."""
    node.__dict__.get(ATTRIBUTE, {}).pop(fact, None)
