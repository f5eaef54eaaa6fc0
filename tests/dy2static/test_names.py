"""Fresh names collide with nothing the user's function can see."""

from __future__ import annotations

import gast
import pytest

from dy2static.names import Namer, identifiers, is_generated

EVERYWHERE = """
import a1.b1, c1 as d1
from e1 import f1 as g1
class H1(I1, metaclass=J1): pass
def k1(l1, /, m1, *n1, o1=p1, **q1):
    global r1
    try: s1 = t1.attribute
    except u1 as v1: del w1
    match x1:
        case y1.z1(keyword=a2) | {"k": a2, **b2}: pass
        case [*c2]: pass
        case _ as d2: pass
    async def e2(): await f2
    lambda g2: (h2 := [i2 for i2 in j2])
    with k2 as l2: nonlocal_m2 = 1
"""


def test_every_binding_and_use_counts_but_attributes_and_keywords_do_not() -> None:
    found = identifiers(gast.parse(EVERYWHERE))
    letters = "a1 d1 g1 H1 I1 J1 k1 l1 m1 n1 o1 p1 q1 r1 s1 t1 u1 v1 w1 x1 y1 a2 b2 c2 d2 e2 f2 g2 h2 i2 j2 k2 l2"
    assert set(letters.split()) <= found
    assert not found & {"attribute", "keyword", "z1"}


@pytest.mark.parametrize("bound", ["_d2s_if_1", "_d2s_if_1 = 0; _d2s_if_2"])
def test_the_users_own_names_with_the_prefix_are_passed_over(bound: str) -> None:
    namer = Namer(gast.parse(f"{bound} = 1"), taken=["_d2s_if_3"])
    fresh = namer.fresh("if")
    assert fresh not in identifiers(gast.parse(bound)) and fresh != "_d2s_if_3"
    assert namer.fresh("if") != fresh


def test_generated_names_are_told_from_the_users() -> None:
    assert is_generated("_d2s") and is_generated("_d2s_lambda")
    assert not is_generated("d2s_x") and not is_generated("_d2sx") and not is_generated("x")
