"""What users hang on tensors, and what a tensor says of itself."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    p, q, r, n, m = x * 0.5, y * 2, x, k, 0
"""
_TAIL = """    return p, q, r, n, m, [getattr(t, "test", "none") for t in (p, q, r, x, y)]
"""


class Attributes(Mode):
    """Attributes set, read and deleted, on tensors with several names.

    Few programs ask for the ``__dict__`` or ``.grad`` of a tensor, or give a name another tensor on a path, which may
    have an attribute: all that is refused.
    """

    head = _HEAD
    stays = True
    tail = _TAIL
    refusals = frozenset({"D2S213", "D2S227", "D2S228", "D2S244", "D2S245", "D2S246", "D2S264"})

    def simple(self) -> str:
        """One use of an attribute, of identity, or of a name."""
        one, other, third = self.name(), self.name(), self.name()
        sets = (f"{one}.test = n", f'{one}.test = "a"', f"{one}.test = None", f"{one}.test = m + 1",
                f'setattr({one}, "test", k)', f"{one}.test = {other} * 2", "x.test = n")  # fmt: skip
        reads = (f'm = m + (1 if hasattr({one}, "test") else 0)', f'm = m + (getattr({one}, "test", None) is None)',
                 f'if hasattr({one}, "test"):\n    del {one}.test', f'n = getattr({one}, "other", n)',
                 *((f"m = m + len(vars({one}))", f'm = m + ("test" in {one}.__dict__)') if self.free else ()),
                 )  # fmt: skip
        says = (f"m = m + ({one} is {other})", f"m = m + len({{{one}, {other}, {third}}})",
                f"m = m + ({one}.__class__ is torch.Tensor)", f"m = m + (type({one}) is torch.Tensor)",
                f"m = m + len(type({one}).__name__)", f"m = m + (id({one}) == id({other}))",
                f"m = m + isinstance({one}, torch.nn.Parameter)",
                f"m = m + {one}.requires_grad", f"m = m + {one}.is_inference()",
                f"m = m + (hash({one}) == hash({other}))",
                f"m = m + len({{{one}: 1, {other}: 2}})",
                *((f"m = m + ({one}.grad is None)", f"m = m + {one}.is_leaf") if self.free else ()))  # fmt: skip
        names = (f"{one} = {other}", f"{one} = {other} * 0.5", f"{one} = {other}.view(3)", f"{one} = {other}.detach()",
                 f"{one} = {other} if {self.condition()} else {third}", f"{one} += 1", "n = n + 1")  # fmt: skip
        if not self.free:
            names = tuple(text for text in names if " if " not in text)
        if self.inside and not self.free:
            names = (f"t = {other} * 0.5\nt.test = n\nm = m + (t.test is n)", f"t = {other}\nt.test = m", "n = n + 1")
        return self.rng.choice(self.rng.choices((sets, reads, says, names), (3, 3, 3, 3))[0])
