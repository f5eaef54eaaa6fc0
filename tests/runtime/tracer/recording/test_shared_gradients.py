"""Which memories have elements in common, and what a value's gradient is where several Operators contribute."""

from __future__ import annotations

from typing import Any

from runtime.ir import Operator
from runtime.tracer.recording.shared_gradients import Memory, _gradient, _meet, _Share


def operator(name: str) -> Any:
    return Operator(name, (), {}, ())


def test_parts_of_one_memory() -> None:
    whole, other = Memory(), Memory()
    cat, stack = operator("aten.cat.default"), operator("aten.stack.default")
    first, second = Memory(whole, cat, 0), Memory(whole, cat, 1)
    assert _meet(whole, whole) and not _meet(whole, other)
    assert _meet(whole, first) and _meet(first, whole) and _meet(first, Memory(whole, cat, 0))
    assert not _meet(first, second) and not _meet(first, Memory(other, cat, 0))
    assert _meet(first, Memory(whole, stack, 1))  # nobody says that they are apart
    assert not _meet(Memory(first, stack, 0), Memory(second, stack, 0)) and _meet(Memory(first, stack, 0), first)
    assert not _meet(Memory(first, stack, 0), Memory(first, stack, 1))


def test_what_is_added_up_is_new() -> None:
    one, other = (frozenset({Memory()}) for _ in range(2))
    assert _gradient([_Share(one, True)]).memories == one
    added = _gradient([_Share(one, True), _Share(other, True)])
    assert added.certain and added.memories.isdisjoint(one | other)
    open_ = _gradient([_Share(one, True), _Share(other, False)])
    assert open_.certain and open_.memories > one | other
    assert not _gradient([_Share(one, False), _Share(other, False)]).certain
