"""Links: how tensors that are views of one memory are views of each other, however many ways lead there."""

from __future__ import annotations

from typing import Any

from runtime.ir import ScalarType, Variable
from runtime.tracer.memory.aliases import Root, links
from runtime.tracer.memory.conditions import any_of, when

HUB: Any = "hub"
SHOWN: Any = ("step",)


def flags(name: str, count: int) -> list[Variable]:
    return [Variable(f"{name}{number}", ScalarType("bool")) for number in range(count)]


def test_many_ways_to_the_whole_of_one_memory_are_one_link_a_pair() -> None:
    a, b, c = flags("a", 100), flags("b", 100), flags("c", 100)
    members = [(number, Root(HUB, (), when(way))) for number, ways in enumerate((a, b, c)) for way in ways]
    found, unknown = links(members)
    assert [(link.one, link.other) for link in found] == [(1, 0), (2, 0), (2, 1)] and unknown == []
    assert found[0].when == any_of(map(when, a)) & any_of(map(when, b))


def test_what_lies_on_all_ways_links_nearer() -> None:
    one, two, three = flags("f", 3)
    near, other = "near", "other"
    through_both = [(0, Root(HUB, (), when(one), (), (near,))), (0, Root(HUB, (), when(two), (), (near, other)))]  # type: ignore[arg-type]
    assert links([*through_both, (1, Root(HUB, (), when(three), (), (near,)))]) == ([], [])  # type: ignore[arg-type]
    [link] = links([*through_both, (1, Root(HUB, (), when(three), (), (other,)))])[0]  # type: ignore[arg-type]
    assert link.when == (when(one) | when(two)) & when(three)


def test_views_of_the_whole_are_linked_under_any_of_its_ways() -> None:
    one, two, three = flags("f", 3)
    whole = [(0, Root(HUB, (), when(one))), (0, Root(HUB, (), when(two)))]
    [link], unknown = links([*whole, (1, Root(HUB, SHOWN, when(three)))])
    assert (link.one, link.other, link.steps, unknown) == (1, 0, SHOWN, [])
    assert link.when == (when(one) | when(two)) & when(three)
    assert links([(1, Root(HUB, SHOWN, when(three))), (2, Root(HUB, SHOWN, when(one)))]) == ([], [(1, 2)])


def test_a_tensor_that_always_is_that_memory_is_what_others_are_views_of() -> None:
    [one] = flags("f", 1)
    [link], _ = links([(0, Root(HUB, (), when(one))), (1, Root(HUB, ()))])
    assert (link.one, link.other, link.when) == (0, 1, when(one))
