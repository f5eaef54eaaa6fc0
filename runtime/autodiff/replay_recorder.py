"""Recording a replay: copies are not made where an ``update`` copies anyway.

    c = clone(x); n = update(c) {...}      ->   n = update(x) {...}
    e = empty(); n = update(e) {copy_(e, x)}   ->   n is x

An ``update`` has value semantics, so a copy is the same value; it matters only where it leaves the Program or a Block,
as a value that may not be the caller's own memory. Then ``settle`` makes it, in the Block where it stood: all that
leaves other Blocks, and is it or a view of it, shares that memory.

While gradients are written out, copies of the user's are made: the Program that comes out may be differentiated, and a
write to a copy is none to what was copied.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Variable
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Scope, Session


class ReplayRecorder(Recorder):
    """A recorder that remembers which values stand for copies that were not made."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._shared: weakref.WeakKeyDictionary[Storage, tuple[Variable, Scope]] = weakref.WeakKeyDictionary()
        """By memory of which no copy was made: the value that stands for it, and where the copy stood."""
        self._copies: weakref.WeakKeyDictionary[Storage, Any] = weakref.WeakKeyDictionary()
        """The last copy that was made of a storage: for which value, and the Variable that holds it."""
        self._of_update = False

    def copy_for_update(self, fake: torch.Tensor) -> torch.Tensor:
        """The copy on which an ``update`` writes."""
        self._of_update = True
        try:
            return torch.ops.aten.clone.default(fake)
        finally:
            self._of_update = False

    @property
    def _may_share(self) -> bool:
        """Whether copies need not be made."""
        return self._of_update or self.session.replaying is None or not self.session.replaying.lowering

    def settle(self, fake: Any) -> Any:
        """The value for use as a result: the copy is made if it was not, one for all that share its memory."""
        if not isinstance(fake, torch.Tensor):
            return fake
        session = self.session
        info = session.info(fake)
        value, scope = self._shared.get(info.storage, (None, session.scope))
        if value is not info.storage.value:
            return fake
        copy = self._copy_of(info.storage, scope)
        return session.fresh(session.clone_meta(fake), session.replay(copy, info.steps, session.type_of(fake)))

    def _copy_of(self, storage: Storage, scope: Scope) -> Variable:
        """The copy of a storage that all share which it leaves as."""
        session = self.session
        value, copy = self._copies.get(storage, (None, None))
        if value is not storage.value:
            with contextlib.nullcontext() if scope is session.scope else session.reopen(scope):
                (copy,) = session.emit("aten.clone.default", [storage.value], types=[storage.value.type])
            self._copies[storage] = storage.value, copy
        return copy

    def _record(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        plain = name == "aten.clone.default" and _keeps_layout(kwargs.get("memory_format"))
        if plain and self._may_share and self._is_whole(args[0]):
            session = self.session
            var = session.read(args[0])
            copy = session.fresh(session.clone_meta(session.fake(args[0])), var)
            self._share(copy, var)
            return copy
        if name == "aten._efficientzerotensor.default":  # zeros without memory, which nothing may be added to in place
            zeros: Any = torch.ops.aten.zeros.default
            return super()._record(zeros, "aten.zeros.default", args, kwargs)
        return self._laid_out(super()._record(func, name, args, kwargs))

    def _laid_out(self, result: Any) -> Any:
        """Results with a contiguous copy in place of those whose memory layout depends on the run: formulas look at
        it."""
        if isinstance(result, (list, tuple)):
            return type(result)(self._laid_out(one) for one in result)
        if not isinstance(result, torch.Tensor) or self.session.fake(result) not in self.session.values.any_layout:
            return result
        as_new = {"memory_format": torch.contiguous_format}
        copy: torch.Tensor = super()._record(torch.ops.aten.clone.default, "aten.clone.default", (result,), as_new)
        self.session.info(copy).layout_known = True
        return copy

    def _record_write(self, func: Any, name: str, args: Any, kwargs: Any, written: list[torch.Tensor]) -> Any:
        if name == "aten.copy_.default" and self._may_share and self._replaces(args[0], args[1]):
            var = self.session.read(args[1])
            self.session.info(args[0]).storage.value = var
            self._share(args[0], var)
            return args[0]
        return super()._record_write(func, name, args, kwargs, written)

    def _share(self, tensor: torch.Tensor, var: Variable) -> None:
        info = self.session.info(tensor)
        info.cached, info.cached_for = var, var
        self._shared[info.storage] = var, self.session.scope

    def _is_whole(self, tensor: torch.Tensor) -> bool:
        """A contiguous tensor that is no view: a view that stays alive would keep its base from being overwritten."""
        return self._is_plain(tensor) and not self.session.info(tensor).steps

    def _is_plain(self, tensor: torch.Tensor) -> bool:
        fake = self.session.fake(tensor)
        return fake.layout is torch.strided and torch_internals.contiguity(fake)[0]

    def _replaces(self, target: torch.Tensor, source: Any) -> bool:
        """Whether a copy gives a tensor of our own, as a whole, the value of another."""
        if not isinstance(source, torch.Tensor):
            return False
        info = self.session.info(target)
        same_type = self.session.type_of(target) == self.session.type_of(source)
        return (
            not info.steps
            and info.storage.origin is None
            and same_type
            and self._is_plain(target)
            and self._is_whole(source)
            and self.session.visible(info.storage.value)
        )


def _keeps_layout(memory_format: Any) -> bool:
    return memory_format in (None, torch.contiguous_format, torch.preserve_format)
