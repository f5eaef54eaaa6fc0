"""The order of the transforms: THE list, and why each stands where it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import gast

from dy2static.names import Namer
from dy2static.nodes import kinds_in, kinds_under, mask_of
from dy2static.source import FunctionSource
from dy2static.transforms import (
    assert_stmt,
    attribute,
    aug_assign,
    binary,
    bool_ops,
    break_stmt,
    call,
    caught_raise,
    class_body,
    compare_chain,
    comprehension,
    comprehension_names,
    continue_stmt,
    declarations,
    definition,
    display,
    elif_chain,
    escaping,
    except_handler,
    f_string,
    finally_stmt,
    for_stmt,
    generator,
    global_stmt,
    if_expr,
    if_stmt,
    load,
    local_names,
    locals_call,
    loop_else,
    manager_halves,
    match_stmt,
    nonlocal_stmt,
    private_names,
    raise_stmt,
    readable_names,
    return_stmt,
    short_blocks,
    starred,
    subscript,
    super_call,
    suppress,
    targets,
    unpack,
    walrus,
    while_stmt,
    with_stmt,
)
from dy2static.transforms.base import Context, Transform, annotate, prepare

Level = Literal["control_flow", "full"]


@dataclass(frozen=True)
class Step:
    """One transform; ``control_flow`` tells whether it runs where only control flow converts.

    ``needs``: kinds of nodes without all of which it changes nothing, so that it need not run; () where it always must.
    """

    name: str
    transform: Transform
    control_flow: bool
    reason: str
    needs: tuple[type[gast.AST], ...] = ()


VISITED_ONLY = frozenset((
    "if_expr", "bool_ops", "compare_chain", "assert_stmt", "raise_stmt", "with_stmt", "f_string", "display",
    "aug_assign", "targets", "unpack", "starred", "nonlocal_stmt", "global_stmt", "attribute", "subscript", "call",
    "binary", "definition",
))  # fmt: skip
"""Steps that change nothing but the nodes that they visit: what the others keep of the kinds under them stays true
(see `Transformer`), so that the next step passes over all that has nothing for it."""
_COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)

STEPS = (
    Step("prepare", prepare, True, "Notes what is local before a transform drops unreachable code."),
    Step("private_names", private_names.transform, False, "First: later steps turn names into strings."),
    Step("locals_call", locals_call.transform, True, "While all names are the user's.", (gast.Call,)),
    Step("super_call", super_call.transform, True, "Before code moves into functions with another first argument."),
    Step("comprehension", comprehension.transform, False, "Before all that lowers loops: it makes some.",
         _COMPREHENSIONS),  # fmt: skip
    Step("generator", generator.transform, False, "After comprehension, which makes some; it makes returns.",
         (gast.Yield, gast.YieldFrom)),  # fmt: skip
    Step("match_stmt", match_stmt.transform, True, "Before elif_chain: it makes chains of branches.", (gast.Match,)),
    Step("elif_chain", elif_chain.transform, True, "Before return_stmt: the pieces are ordinary branches.", (gast.If,)),
    Step("declarations", declarations.transform, True, "Before blocks are moved: declarations hold everywhere.",
         (gast.Global, gast.Nonlocal)),  # fmt: skip
    Step("suppress", suppress.transform, False, "Before escaping and caught_raise, which look at handlers.",
         (gast.With,)),  # fmt: skip
    Step("finally_stmt", finally_stmt.transform, True, "Before caught_raise: it makes handlers.", (gast.Try,)),
    Step("caught_raise", caught_raise.transform, False, "Before return_stmt: it copies handlers, which may return.",
         (gast.Try,)),  # fmt: skip
    Step("return_stmt", return_stmt.transform, True, "Before break_stmt: in loops it makes breaks."),
    Step("loop_else", loop_else.transform, True, "After return_stmt, before break_stmt: it looks at the breaks.",
         (gast.While, gast.For)),  # fmt: skip
    Step("break_stmt", break_stmt.transform, True, "After all that makes or reads breaks.", (gast.Break,)),
    Step("continue_stmt", continue_stmt.transform, True, "After break_stmt: it keeps clear of the test it left.",
         (gast.Continue,)),  # fmt: skip
    Step("walrus", walrus.transform, True, "After break_stmt, whose flag comes before the test it hoists.",
         (gast.NamedExpr,)),  # fmt: skip
    Step("analyses", annotate, True, "After the last step that changes the flow, before the first that asks."),
    Step("load", load.transform, True, "While the reads that the analyses looked at are where they were."),
    Step("local_names", local_names.transform, True, "While blocks are still blocks.", (gast.If, gast.While, gast.For)),
    Step("if_stmt", if_stmt.transform, True, "Blocks become functions; their order does not matter.", (gast.If,)),
    Step("while_stmt", while_stmt.transform, True, "As if_stmt.", (gast.While,)),
    Step("for_stmt", for_stmt.transform, True, "As if_stmt.", (gast.For,)),
    Step("if_expr", if_expr.transform, True, "After the statements: it must also see the tests they made.",
         (gast.IfExp,)),  # fmt: skip
    Step("bool_ops", bool_ops.transform, True, "As if_expr.", (gast.BoolOp, gast.UnaryOp)),
    Step("compare_chain", compare_chain.transform, True, "As if_expr.", (gast.Compare,)),
    Step("assert_stmt", assert_stmt.transform, True, "After the analyses: they know where control goes.",
         (gast.Assert,)),  # fmt: skip
    Step("raise_stmt", raise_stmt.transform, False, "As assert_stmt: to the analyses a raise leaves, a call does not.",
         (gast.Raise,)),  # fmt: skip
    Step("with_stmt", with_stmt.transform, False, "Before except_handler: it makes one that needs no operator.",
         (gast.With,)),  # fmt: skip
    Step("except_handler", except_handler.transform, False, "After load, which looks into handlers.",
         (gast.Try, gast.TryStar)),  # fmt: skip
    Step("class_body", class_body.transform, False, "After compare_chain: it looks at what is Python's own by now.",
         (gast.ClassDef,)),  # fmt: skip
    Step("f_string", f_string.transform, False, "Before call: the order among expressions does not matter else.",
         (gast.JoinedStr, gast.FormattedValue)),  # fmt: skip
    Step("display", display.transform, False, "As f_string.", (gast.Dict, gast.Set)),
    Step("aug_assign", aug_assign.transform, False, "Before targets: it makes plain assignments.", (gast.AugAssign,)),
    Step("targets", targets.transform, False, "After for_stmt, whose targets became assignments."),
    Step("unpack", unpack.transform, False, "After targets, which unpacks what it takes apart.",
         (gast.Tuple, gast.List)),  # fmt: skip
    Step("starred", starred.transform, False, "Before call: the order among expressions does not matter else.",
         (gast.Starred, gast.keyword)),  # fmt: skip
    Step("nonlocal_stmt", nonlocal_stmt.transform, True, "After targets: its statements are simple.", (gast.Nonlocal,)),
    Step("global_stmt", global_stmt.transform, False, "After targets: one target a statement.", (gast.Global,)),
    Step("attribute", attribute.transform, False, "After targets: one target a statement.", (gast.Attribute,)),
    Step("subscript", subscript.transform, False, "After targets: one target a statement.", (gast.Subscript,)),
    Step("call", call.transform, False, "After all that makes calls: it wraps whatever calls there are.", (gast.Call,)),
    Step("comprehension_names", comprehension_names.transform, True, "Late: all code is in its function now.",
         _COMPREHENSIONS),  # fmt: skip
    Step("short_blocks", short_blocks.transform, True, "Late: what was a statement may be an expression now."),
    Step("readable_names", readable_names.transform, True, "Last: till then the prefix tells our names."),
)

ROUTED_STEPS = (
    *STEPS[:-4],
    Step("binary", binary.transform, False, "As f_string.", (gast.BinOp, gast.UnaryOp, gast.Compare)),
    Step("definition", definition.transform, False, "After the steps that look for lambdas."),
    *STEPS[-4:],
)
"""Those of a trace, which sees all operators: of sets that differ between paths, and of lists that grow. It also is
told of functions and classes as they are made."""


_BEFORE_ESCAPING = "suppress"
ESCAPING_STEPS = tuple(
    one for step in ROUTED_STEPS for one in (
        (step, Step("escaping", escaping.transform, False, "Before finally_stmt and return_stmt: it makes both."))
        if step.name == _BEFORE_ESCAPING else (step,)
    )
)  # fmt: skip
"""Those for a function that exceptions leave on some paths only."""
MANAGER_STEPS = tuple(
    one for step in ESCAPING_STEPS for one in (
        (Step("manager_halves", manager_halves.transform, False, "Before generator, which makes others of generators."),
         step) if step.name == "generator" else (step,))
)  # fmt: skip
"""Those for the generator of a ``@contextmanager``, whose block exceptions leave on some paths only."""


def convert_tree(
    tree: gast.FunctionDef, source: FunctionSource, level: Level = "full", steps: Sequence[Step] = STEPS
) -> gast.FunctionDef:
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
    kinds: set[type] | None = None
    changes = 0
    for step in steps:
        if not full and not step.control_flow:
            continue
        context.kinds = f"_dy2static_kinds_{changes}" if step.name in VISITED_ONLY else None
        if step.needs and context.kinds is not None:
            if not kinds_under(tree, context.kinds) & mask_of(step.needs):
                continue
        elif step.needs:
            if kinds is None:
                kinds = kinds_in(tree, until=step.needs)
            if kinds.isdisjoint(step.needs):
                continue
        tree, kinds = step.transform(tree, context), None
        changes += context.kinds is None  # what nodes keep is true no more
    return tree
