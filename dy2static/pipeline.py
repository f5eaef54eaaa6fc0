"""The order of the transforms: THE list, and why each stands where it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import gast

from dy2static.names import Namer
from dy2static.source import FunctionSource
from dy2static.transforms import (
    break_stmt,
    continue_stmt,
    declarations,
    delete,
    for_stmt,
    if_stmt,
    load,
    loop_else,
    placeholder,
    private_names,
    return_stmt,
    super_call,
    while_stmt,
)
from dy2static.transforms.base import Context, Transform, annotate, prepare

Level = Literal["control_flow", "full"]


@dataclass(frozen=True)
class Step:
    """One transform; ``control_flow`` tells whether it runs where only control flow converts."""

    name: str
    transform: Transform
    control_flow: bool
    reason: str


STEPS = (
    Step("prepare", prepare, True, "Notes what is local before a transform drops unreachable code."),
    Step("private_names", private_names.transform, False, "First: later steps turn names into strings."),
    Step("super_call", super_call.transform, True, "Before code moves into functions with no first argument."),
    Step("declarations", declarations.transform, True, "Before blocks are moved: declarations hold everywhere."),
    Step("return_stmt", return_stmt.transform, True, "Before break_stmt: in loops it makes breaks."),
    Step("loop_else", loop_else.transform, True, "After return_stmt, before break_stmt: it looks at the breaks."),
    Step("break_stmt", break_stmt.transform, True, "After all that makes or reads breaks."),
    Step("continue_stmt", continue_stmt.transform, True, "After break_stmt: it keeps clear of the test it left."),
    Step("analyses", annotate, True, "After the last step that changes the flow, before the first that asks."),
    Step("load", load.transform, True, "Before delete and placeholder: they bind the names it looks at."),
    Step("delete", delete.transform, True, "After load: a deletion is a read as well."),
    Step("placeholder", placeholder.transform, True, "While blocks are still blocks."),
    Step("if_stmt", if_stmt.transform, True, "Blocks become functions; their order does not matter."),
    Step("while_stmt", while_stmt.transform, True, "As if_stmt."),
    Step("for_stmt", for_stmt.transform, True, "As if_stmt."),
)


def convert_tree(tree: gast.FunctionDef, source: FunctionSource, level: Level = "full") -> gast.FunctionDef:
    """The converted tree of one function; ``tree`` is used up. Unchanged statements keep their places.

    ``level`` "full" converts all; "control_flow" leaves calls, attributes and the like as they are.
    """
    full = level == "full"
    context = Context(
        namer=Namer(tree, source.freevars),
        class_name=source.class_name,
        class_cell="__class__" in source.freevars,
        full=full,
        root=tree,
    )
    for step in STEPS:
        if full or step.control_flow:
            tree = step.transform(tree, context)
    return tree
