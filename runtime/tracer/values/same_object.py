"""``a is b`` of values that joins made anew: what is known of it while tracing, and the flag that a run makes.

``origins`` knows what each came from. Of two, the one that a later join gave is followed back, until both are objects
that no join made, which are one or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch

from runtime import torch_internals
from runtime.ir import Operand
from runtime.kinds import is_a
from runtime.tracer.memory import aliases
from runtime.tracer.memory.deferred import BOOL, JoinOutput, LoopValue
from runtime.tracer.numbers.scalars import wrap
from runtime.tracer.values import alias_sets
from runtime.tracer.values.origins import Carried, Given, Itself, Joined, Left, OneOf, Origin, Verdict

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


Decision = Literal["same", "other", "open", "circular", "unknown"]
"""Whether two are one object: always, never, or as a flag says that can be made; or if they are, or nobody knows."""


def may_be_one(session: Session, a: Any, b: Any) -> Decision:
    """Whether two objects of one type are one: always, never, or what ``identical`` records."""
    origins = session.origins
    if a is b:
        return "same"
    if origins.known(a) is None and origins.known(b) is None:
        return "other"
    return _decide(origins.of(a), origins.of(b))


def identical(session: Session, a: Any, b: Any) -> Any:
    """``a is b`` for two objects of one type, a plain or staged bool.

    Raises:
        TraceError: D2S264, nobody knows.
    """
    found = may_be_one(session, a, b)
    if found in ("same", "other"):
        return found == "same"
    return _flag(session, session.origins.of(a), session.origins.of(b))


def is_joined(session: Session, value: Any) -> bool:
    """Whether it is known which object a value is, and that a join made it anew."""
    return is_a(session.origins.known(value), (Joined, Carried, Left))


def related(session: Session, a: torch.Tensor, b: torch.Tensor) -> Verdict:
    """Whether two tensors are one object, as ``is`` answers or refuses to."""
    a, b = session.one(a), session.one(b)
    if a is b:
        return "same"
    if is_the_callers(session, a) and is_the_callers(session, b):
        return "other"
    found = may_be_one(session, a, b)
    if found in ("open", "circular") or (found == "unknown" and is_followed(session, a, b)):
        return "unknown"
    if found == "same":
        return "same"
    joined = is_joined(session, a) or is_joined(session, b)
    return "unknown" if not joined and may_share(session, a, b) else "other"


def is_the_callers(session: Session, tensor: torch.Tensor) -> bool:
    """Whether this is a tensor that is older than the trace: which of them are one is known."""
    return session.inputs.own_variable(tensor) is not None or not torch_internals.is_fake(tensor)


def is_followed(session: Session, a: Any, b: Any) -> bool:
    """Whether what two come from is followed: that nobody knows if they are one then says that they may be."""
    if is_joined(session, a) or is_joined(session, b):
        return True
    one, other = session.origins.known(a), session.origins.known(b)
    if is_a(one, Given) and is_a(other, Given) and one.call is other.call:
        return True
    given = [origin for origin in (one, other) if is_a(origin, Given)]
    return bool(given) and all(origin.older is not None for origin in given)


def may_share(session: Session, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors may be the same whole memory, by what is known of memory."""
    first, second = session.info(a), session.info(b)
    ways, others = aliases.few_roots(first, ())[0], aliases.few_roots(second, ())[0]
    if not ways or not others:  # too many to tell them apart
        return not set(aliases.reached(first, ())).isdisjoint(aliases.reached(second, ()))
    whole = [(one, other) for one in ways for other in others
             if one.storage is other.storage and not one.steps and not other.steps]
    return any(not (one.when & other.when).always for one, other in whole) or any(
        one.other() is second.storage for one in first.storage.unknown_aliases
    ) or alias_sets.may_be_one(first.storage, second.storage)


def require_one(session: Session, value: Any) -> None:
    """Refuse to take a value for its identity that is one of several objects.

    Raises:
        TraceError: D2S264.
    """
    found = session.origins.known(value)
    if found is not None and not is_a(found, Itself):
        raise _refusal(session, "the identity of a tuple or method is asked for (by id() or hash()) that is")


def _refusal(session: Session, what: str) -> Exception:
    return session.error(f"{what} another one on some paths or in some iterations", code="D2S264",
                         hint="Set a flag on each path and test that.")  # fmt: skip


def _flag(session: Session, a: Origin | None, b: Origin | None) -> Any:
    """Whether two are one object, computed where the trace stands."""
    found = _decide(a, b)
    if found == "unknown":
        raise _refusal(session, "'is' compares two tensors, tuples or other objects, of which one is")
    if found != "open" or a is None or b is None:
        return found == "same"
    if is_a(b, OneOf):
        a, b = b, a
    if is_a(a, OneOf):
        *rest, last = [_flag(session, option, b) for option in a.options]
        for number in range(len(rest) - 1, -1, -1):
            last = session.scalar("select", a.selector == number, rest[number], last)
        return last
    a, b = _newest_first(a, b)
    if is_a(a, Joined):
        return wrap(session.require_visible(_join_flag(session, a, b).demand(session)))
    if is_a(a, Left):
        value = _loop_flag(session, a.carried, _in_loop(a, b)).after
    else:
        assert is_a(a, Carried)
        value = _loop_flag(session, a, b).inside
    return wrap(session.require_visible(value.demand(session)))


def _join_flag(session: Session, a: Joined, b: Origin) -> JoinOutput:
    """The output of a join that says whether what it gave is ``b``."""
    join, flags = a.join, a.join.flags
    if (a, b) not in flags:
        rows = [
            (end, lambda mine=mine, other=other: session.operand(_flag(session, mine, other)))
            for end, (mine, other) in zip(join.ends, _by_path(a, b))
        ]
        flags[a, b] = JoinOutput(join.op, join.scope, BOOL, rows)
    return flags[a, b]


def _loop_flag(session: Session, a: Carried, b: Origin) -> LoopValue:
    """What a loop carries to say whether what an iteration began with is ``b``."""
    loop, flags = a.loop, a.loop.flags
    if (a, b) not in flags:
        assert loop.body is not None
        flags[a, b] = value = LoopValue(BOOL, _before_loop(session, a, b), loop.body)
        value.next = lambda: session.operand(_flag(session, a.next, _of_loop(a, b, "next")))
        if loop.op is not None and loop.end is not None:
            with session.reopen(loop.scope):
                value.finish(session, loop.op, loop.end)
    return flags[a, b]


def _before_loop(session: Session, a: Carried, b: Origin) -> Operand:
    """The flag's value before the loop, recorded there."""
    loop = a.loop
    with session.reopen(loop.scope, before=loop.op):
        return session.operand(_flag(session, a.first, _of_loop(a, b, "first")))


def _newest_first(a: Origin, b: Origin) -> tuple[Origin, Origin]:
    """What came from others later can have come from the other one."""
    first, second = (is_a(one, (Joined, Carried, Left)) for one in (a, b))
    return (b, a) if second and (not first or b.number > a.number) else (a, b)


def _by_path(a: Joined, b: Origin) -> list[tuple[Origin | None, Origin | None]]:
    if is_a(b, Joined) and b.join is a.join:
        return list(zip(a.by_path, b.by_path))
    return [(mine, b) for mine in a.by_path]


def _of_loop(a: Carried, b: Origin, when: str) -> Origin | None:
    if is_a(b, Carried) and b.loop is a.loop:
        return b.first if when == "first" else b.next
    return b


def _in_loop(a: Left, b: Origin) -> Origin:
    return b.carried if is_a(b, Left) and b.carried.loop is a.carried.loop else b


def _decide(a: Origin | None, b: Origin | None) -> Decision:
    """What is known while tracing: all that the two may be is looked at once, in however many ways it is reached."""
    found: set[Decision] = set()
    seen: set[tuple[Origin, Origin]] = set()
    todo: list[tuple[Origin | None, Origin | None]] = [(a, b)]
    while todo and "unknown" not in found:
        one, other = todo.pop()
        if one is not None and other is not None and one is not other:
            one, other = _newest_first(one, other)
            if (one, other) in seen:
                continue
            seen.add((one, other))
        answer = _answer(one, other)
        if is_a(answer, str):
            found.add(answer)
        else:
            todo += answer
    if "unknown" in found:
        return "unknown"
    if len(found) > 1:
        return "open"
    return found.pop() if found else "circular"


def _answer(a: Origin | None, b: Origin | None) -> Decision | list[tuple[Origin | None, Origin | None]]:
    """Whether two are one, or what has to be one for that; of two that joins made ``a`` is the later one."""
    if a is None and b is None:  # a path that ended, or that has neither: nobody asks there
        return []
    if a is None or b is None:
        return "other"
    if a is b:
        return "same"
    if is_a(b, OneOf):
        a, b = b, a
    if is_a(a, OneOf):
        return [(option, b) for option in a.options]
    if is_a(a, Given) and is_a(b, Given) and a.call is b.call:
        return a.pairs.get((min(a.place, b.place), max(a.place, b.place)), "unknown")
    if type(a) is Origin or type(b) is Origin:
        return "unknown"
    if is_a(a, Joined):
        return _by_path(a, b)
    if is_a(a, Given) or is_a(b, Given):
        return _answer_of_given(a, b)
    if is_a(a, Left):
        made_inside = is_a(b, Itself) and a.carried.loop in b.inside
        return "unknown" if made_inside else [(a.carried, _in_loop(a, b))]
    if not is_a(a, Carried):
        return "other"
    if is_a(b, Itself) and a.loop in b.inside:
        return "unknown" if b.constant else "other"
    if a.loop.op is None:
        return "open"
    return [(a.first, _of_loop(a, b, "first")), (a.next, _of_loop(a, b, "next"))]


def _answer_of_given(a: Origin, b: Origin) -> Verdict:
    """Whether what a recursive function is given, or gives, is something else."""
    parameters = [one for one in (a, b) if is_a(one, Given) and one.older is not None]
    if not parameters or is_a(a, (Carried, Left)):
        return "unknown"
    newest = max(parameters, key=lambda one: one.number)
    other = b if newest is a else a
    return "other" if all(_decide(one, other) == "other" for one in newest.older or ()) else "unknown"


__all__ = [
    "identical", "is_followed", "is_joined", "is_the_callers", "may_be_one", "may_share", "related", "require_one",
]  # fmt: skip
