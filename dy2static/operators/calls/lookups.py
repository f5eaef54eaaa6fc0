"""What code that backward runs looks up in Python. Eager finds what is there then, a Program what was there before:

    def backward(ctx, g):
        return g * ctx.module.scale     ->     { ^(%g): unchanged() {function: "lookups 0"}; %dx = mul(%g, 2.0) ... }

So the Block that is traced of such code begins with a test. Where something else is there by now, that raises: the
Program has no gradient of other values.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Any

import torch

from dy2static.operators.provenance.provenance import CONTAINERS, holds_traced, is_external, memo, written
from dy2static.operators.shared.policy import is_librarys
from dy2static.operators.shared.staging import Session, Staged
from runtime import torch_internals
from runtime.errors import Dy2StaticError, TraceError
from runtime.ir import Block, Location, Operator, Variable
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control.branches import Path
from runtime.tracer.python_state.guard_code import Check, CheckWriter
from runtime.tracer.python_state.guards import (
    READ_ERRORS,
    Guard,
    Looked,
    LookedUp,
    by_identity,
    is_like,
    is_plain,
    same_plain,
)
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.recording import hook_calls
from runtime.tracer.recording.attempt import Attempt
from runtime.tracer.values import structure

_HINT = "Look it up before, and pass it as an argument (to an autograd.Function, or keep it on its ctx)."


@contextlib.contextmanager
def looking_up(session: Session) -> Iterator[LookedUp]:
    """Record what is looked up in here, also what the function has looked up before."""
    known = memo(session)
    entered, called = known.entered, known.called
    known.entered, known.called = {}, {}
    try:
        with session.guards.apart() as found:
            yield found
    finally:
        known.entered, known.called = {**known.entered, **entered}, {**known.called, **called}


def note_held(session: Session, value: Any) -> None:
    """Record what containers from before the trace hold that code is given and has not looked up itself."""
    todo, seen = [value], set[int]()
    while todo:
        one = todo.pop()
        if id(one) in seen or is_plain(one) or is_a(one, torch.Tensor):
            continue
        seen.add(id(one))
        if is_a(one, CONTAINERS) and id(one) in session.objects.externals:
            if written(session, Place("content", one)):
                session.guards.looked_up(f"the content of a {type(one).__name__}", functools.partial(_itself, one), one)
                continue
            with session.journal.as_before(one):
                if not holds_traced(one):
                    what = f"the content of a {type(one).__name__}"
                    session.guards.add(("content", id(one)), what, functools.partial(_itself, one), one)
        elif is_a(one, (tuple, *CONTAINERS)):
            todo += dict.values(one) if is_a(one, dict) else one


def _itself(value: Any) -> Any:
    return value


def may_change(found: LookedUp) -> bool:
    """Whether it is usual that something else is there the next time: that of a function of the user's is not."""
    code = types.FunctionType, types.CodeType, type
    return bool(found.others) or any(
        not _is_certain(one) and one.value is not None and not is_a(one.value, code)
        for one in found.guards.values())


def put_test(session: Session, found: LookedUp, path: Path, location: Location | None) -> None:
    """Let a Block that was traced of such code begin with a test of what the code has found."""
    block = path.scope.block
    guards = [one for one in found.guards.values() if not _is_certain(one)]
    operands, others = [], []
    with path.inside(session):
        for one in found.others:
            operand = _operand(session, one.value)
            if operand is not None:
                operands.append(operand)
                others.append(one)
            elif is_a(one.value, torch.Tensor):
                if not torch_internals.is_fake(one.value):  # the Program reads no more than what it looks like
                    guards.append(Guard(one.description, one.get, _looks_like(one.value), location=one.location))
            elif _can_be_compared(session, one.value):
                guards.append(
                    Guard(one.description, one.get, is_like(one.value), value=one.value, location=one.location))
    if any(op.name.startswith("aten.") and not op.inputs for op in block.walk()):  # what makes tensors of nothing
        default = torch.get_default_dtype()
        guards.append(Guard("torch.get_default_dtype()", torch.get_default_dtype, is_like(default), value=default))
    if not guards and not others:
        return
    _put(session, block, _test(guards, others), operands, location)


def _put(
    session: Session, block: Block, test: Callable[..., None], operands: list[Variable], location: Location | None
) -> None:
    key = f"lookups {len(session.graph.hook_functions)}"
    session.graph.hook_functions[key] = test
    op = Operator("unchanged", tuple(operands), attrs={"function": key}, location=location)
    place = max((index for index, one in enumerate(block.ops) if not set(operands).isdisjoint(one.outputs)), default=-1)
    block.ops.insert(place + 1, op)


def watch(
    session: Session, function: Any, op: Operator, captured: Collection[Variable], what: str,
    again: Callable[[], Iterable[tuple[Block, Block]]],
) -> None:
    """Look once more what code that backward runs would compute: where the function itself asks for a gradient, and at
    its end, when eager's backward is still to come. What the function has made itself no test of a run can see.

    ``captured``: what the code reads. ``what``: the code, for errors. ``again``: traces it now; Blocks to be compared.
    """
    memory = {storage: value for storage, value in session.storages.snapshot().items() if value in captured}
    stores, seen = session.journal.stores, held_in_closures(function)

    def is_same(op: Operator) -> bool:
        now = held_in_closures(function)
        if (
            session.journal.stores == stores and len(now) == len(seen) and all(map(structure.same_known, now, seen))
            and all(storage.value is value for storage, value in memory.items())
        ):
            return True
        if not all(map(session.visible, captured)):
            return False
        same = False
        with contextlib.suppress(Dy2StaticError), Attempt(session) as tried:
            same = all(hook_calls.alike(one, other, {}) for one, other in again())
            tried.undo()
        return same

    def verify(op: Operator) -> None:
        if not is_same(op):
            raise session.error(
                f"{what} would compute something else by now: what it looks up has changed since it was called",
                code="D2S213", location=op.location, hint=_HINT)

    def settle(op: Operator) -> None:
        if session.visible(op.outputs[0]) and not is_same(op):
            if session.call.ahead.in_file:
                verify(op)
            for block in op.blocks[1:]:
                _put(session, block, _raising(what, op.location), [], op.location)

    session.graph.hook_records[op] = hook_calls.HookRecord(
        None, None, "", False, op.location, verify, None, [], None, settle)


def _raising(what: str, location: Location | None) -> Callable[..., None]:
    def unchanged() -> None:
        raise TraceError(
            f"what {what} looks up has changed since it was called: the function that calls it has done so",
            location=location, code="D2S275", hint=_HINT)

    return unchanged


def held_in_closures(function: Any, depth: int = 4) -> list[Any]:
    """What the closures of a function hold, and those of the functions among it."""
    while not is_a(function, types.FunctionType):
        inner = unasked(function, "__func__") or unasked(function, "func")
        if inner is None:
            return []
        function = inner
    found: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # nothing is bound to the name
            found.append(MISSING)
    return [*found, *(one for held in found if depth for one in held_in_closures(held, depth - 1))]


def _is_certain(guard: Guard) -> bool:
    """Whether it is about what nobody changes, a module by its name or what a library has; or about no change."""
    value = guard.value
    return guard.once or is_a(value, types.ModuleType) or (
        is_a(value, (type, types.FunctionType, types.BuiltinFunctionType))
        and is_librarys(str(value.__module__)))


def leave_out_changed(session: Session, found: LookedUp, made: Container[Variable]) -> None:
    """Leave out what code has changed itself, and so looks up otherwise a second time. ``made``: what it has made."""
    for key, guard in [*found.guards.items()]:
        if not guard.holds():
            del found.guards[key]
    found.others[:] = [one for one in found.others if _memory(session, one.value) not in made
                       and structure.same_known(_found(one.get), one.value)]  # fmt: skip


def _memory(session: Session, value: Any) -> Variable | None:
    """The Variable of a staged value, or what the memory of a tensor holds."""
    if is_a(value, Staged):
        return value.var
    known = is_a(value, torch.Tensor) and torch_internals.is_fake(value) and session.knows(value)
    return session.info(value).storage.value if known else None


def _operand(session: Session, value: Any) -> Variable | None:
    """What each run has for a value, if it is one that each run has another one for."""
    if is_a(value, Staged):
        return value.var if session.visible(value.var) else None
    if not is_a(value, torch.Tensor):
        return None
    fake = value if torch_internals.is_fake(value) else session.inputs.lifted(value)
    if fake is None or not session.knows(fake) or not session.visible(session.info(fake).storage.value):
        return None
    return session.read(fake)


def _looks_like(tensor: torch.Tensor) -> Callable[[Any], bool]:
    kind = _kind(tensor)
    return lambda there: is_a(there, torch.Tensor) and _kind(there) == kind


def _can_be_compared(session: Session, value: Any) -> bool:
    if is_a(value, torch.Tensor) or holds_traced(value):
        return False
    return not by_identity(value) or is_external(session, value)


def _test(guards: list[Guard], others: list[Looked]) -> Callable[..., None]:
    """Raises if something is not as it was found. It is called by every backward: one generated function asks all."""
    quick: list[Check | None] = []

    def unchanged(*now: Any) -> None:
        if not quick:
            writer = CheckWriter(())
            for guard in guards:
                writer.guard(guard)
            quick.append(writer.finish())
        check = quick[0]
        if check is None or check() is None:  # which says more often than need be that something has changed
            for guard in guards:
                if not guard.holds():
                    raise _changed(guard.description, _said(guard.value), _said(_found(guard.read)), guard.location)
        for one, value in zip(others, now):
            there = _found(one.get)
            if not _is_same(there, value):
                raise _changed(one.description, _said(value), _said(there), one.location)

    return unchanged


_GONE = object()


def _found(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except READ_ERRORS:
        return _GONE


def _is_same(there: Any, value: Any) -> bool:
    """Whether what is there now gives what a run had there."""
    if there is value:
        return True
    if not is_a(value, torch.Tensor):
        return same_plain(there, value)
    if not is_a(there, torch.Tensor) or _kind(there) != _kind(value):
        return False
    if there.layout is not torch.strided:
        return there is value or torch.equal(there.to_dense(), value.to_dense())
    if there.data_ptr() == value.data_ptr() and there.stride() == value.stride() and there.is_conj() is value.is_conj():
        return True
    return torch.equal(_bits(there), _bits(value))


def _kind(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.device, tensor.layout


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().reshape(-1).contiguous().view(torch.uint8)


def _said(value: Any) -> str:
    if value is _GONE:
        return "gone"
    return repr(value) if is_plain(value) else ""


def _changed(what: str, before: str, now: str, location: Location | None) -> TraceError:
    said = f": it was {before}, and is {now}" if before and now and before != now else ""
    return TraceError(
        f"{what}, which is looked up when a gradient is computed, has changed since the function was called{said}",
        location=location, code="D2S275",
        hint=f"{_HINT[:-1]}; or change it after backward().")


__all__ = ["held_in_closures", "leave_out_changed", "looking_up", "may_change", "note_held", "put_test", "watch"]
