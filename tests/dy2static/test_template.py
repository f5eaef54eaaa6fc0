"""Holes of every kind, in every place they may stand."""

from __future__ import annotations

from typing import Any

import gast
import pytest

from dy2static.generate import to_source
from dy2static.template import replace, replace_expr


def expression(text: str) -> Any:
    return gast.parse(text, mode="eval").body


def source(statements: list[Any]) -> str:
    return to_source(gast.Module(statements, []))


def test_a_str_renames_functions_arguments_attributes_and_keywords() -> None:
    new = replace("def f(a): return obj.a(a=a)", f="g", a="b", obj="thing")
    assert source(new) == "def g(b):\n    return thing.b(b=b)\n"


def test_the_attributes_of_the_operators_module_are_never_renamed() -> None:
    assert source(replace("_d2s.load(load, name)", load="x", name=gast.Constant("x", None))) == "_d2s.load(x, 'x')\n"


def test_an_expression_takes_the_context_of_its_place() -> None:
    (assign,) = replace("target = value", target=expression("a, (b.c, [d[0], *e])"), value=expression("x"))
    stores = [type(node.ctx).__name__ for node in gast.walk(assign.targets[0]) if hasattr(node, "ctx")]
    assert stores.count("Store") == 8 and stores.count("Load") == 2  # b and d are only read


def test_lists_are_spliced_into_calls_displays_and_arguments() -> None:
    new = replace(
        "def f(first, params): return g(0, args, **keywords), (items,), [items]",
        params=["a", "b"],
        args=[expression("x"), gast.Starred(expression("y"), gast.Load())],
        keywords=[gast.keyword("k", expression("z"))],
        items=[],
    )
    assert source(new) == "def f(first, a, b):\n    return g(0, x, *y, k=z), (), []\n"


@pytest.mark.parametrize(
    ("names", "line"),
    [([], ""), (["x"], "    nonlocal x\n"), (["x", "y"], "    nonlocal x, y\n")],
)
def test_a_declaration_without_names_disappears(names: list[str], line: str) -> None:
    assert source(replace("def f():\n    nonlocal names\n    g()", names=names)) == f"def f():\n{line}    g()\n"


def test_statements_replace_the_name_alone_and_an_empty_body_passes() -> None:
    new = replace("if test: body\nelse: orelse", test=expression("t"), body=gast.parse("a = 1\nb = 2").body, orelse=[])
    assert source(new) == "if t:\n    a = 1\n    b = 2\n"
    assert source(replace("def f():\n    body", body=[])) == "def f():\n    pass\n"


def test_a_node_used_twice_stands_in_the_tree_as_two_nodes() -> None:
    tree = replace_expr("f(x, x)", x=expression("a + b"))
    assert tree.args[0] is not tree.args[1]
    tree.args[0].left.id = "changed"
    assert tree.args[1].left.id == "a"


def test_filled_nodes_keep_their_place_and_new_ones_take_the_origins() -> None:
    node = gast.parse("\n\nif x: y").body[0]
    (call,) = replace("_d2s.run(test)", origin=node, test=node.test)
    assert (call.lineno, call.value.func.lineno) == (3, 3)
    assert call.value.args[0] is node.test and call.value.args[0].col_offset == 3
    assert not hasattr(replace("f()")[0], "lineno")


@pytest.mark.parametrize(
    ("template", "holes", "message"),
    [
        ("f(x)", {"y": "z"}, "do not occur"),
        ("def f(): pass", {"f": gast.Constant(1, None)}, "stands for an identifier"),
        ("x + y", {"x": [gast.Constant(1, None)]}, "takes one expression"),
    ],
)
def test_a_hole_that_does_not_fit_is_an_error(template: str, holes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(template, **holes)


def test_not_one_expression_is_an_error() -> None:
    with pytest.raises(ValueError, match="not one expression"):
        replace_expr("a = 1")
