"""In-place changes of a tensor's shape and strides: of arguments, of results, of views, on some paths."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    p, q, r, n, s = x, y * 2, torch.ones(3), 0, 0
"""


class Metadata(Mode):
    """Tensors of three elements in shapes that change.

    Few programs change a tensor of the caller, one that is two, or one in a branch that did not make it: all refused.
    """

    head = _HEAD
    stays = True
    tail = "    return p * 1, q * 1, r * 1, n, s, tuple(p.shape), tuple(x.shape), p.is_contiguous()\n"
    # Whether a tensor that is another one on some path is a third (D2S264).
    refusals = frozenset({"D2S221", "D2S223", "D2S224", "D2S225", "D2S244", "D2S245", "D2S246", "D2S264"})

    after = False
    """Whether there was a branch or loop."""

    def source(self) -> str:
        """The program's text."""
        text = super().source()
        return text if self.free else text.replace("p, q, r, n, s = x, ", "p, q, r, n, s = x.clone(), ")

    def simple(self) -> str:
        """A change of metadata, of a name, of values, or a question."""
        one, other = self.name(), self.name()
        changes = (f"{one}.unsqueeze_(0)", f"{one}.unsqueeze_(-1)", f"{one}.squeeze_()", f"{one}.squeeze_(0)",
                   f"{one}.transpose_(0, -1)", f"{one}.swapaxes_(0, -1)", f"{one}.swapdims_(-1, 0)",
                   f"if {one}.dim() < 3:\n    {one}.t_()", f"{one}.as_strided_((3,), (1,))",
                   f"{one}.as_strided_((1, 3), (3, 1))", f"{other} = {one}.squeeze_()",
                   f"{one}.resize_(3)")  # fmt: skip
        names = (f"{one} = {other}", f"{one} = {other}.clone()", f"{one} = {other}.view(3)", f"{one} = x",
                 f"{one}, {other} = {other}, {one}", f"{one} = {other} if {self.condition()} else x")  # fmt: skip
        values = (f"{one} = {other}.reshape(3) + 1", f"{one} = {other} * 2", f"{one} += 1", f"{one}.mul_(0.5)",
                  f"{one} = torch.zeros(3)")  # fmt: skip
        reads = (f"n = n + {one}.dim()", f"s = s + {one}.shape[0]", f"n = n + len({one}.size())",
                 f"s = s + {one}.stride(0)", f"n = n + int({one} is {other})")  # fmt: skip
        if not self.free:
            changes = tuple(text for text in changes if "resize_" not in text)
            names = tuple(text.replace(" x", " x.clone()") for text in names if " if " not in text)
            if self.inside:
                changes = tuple(f"t = {one}.clone()\n{text.replace(one + '.', 't.')}\n"
                                f"s = s + t.shape[0] + t.stride(-1)\n{one} = t.reshape(3) * 1"
                                for text in changes if not text.startswith(f"{other} ="))
                names = (f"{one} = {other}.clone()", f"{one} = {other}.reshape(3) * 1")
                self.after = True
            elif self.after:  # it may be another tensor on some path
                changes = tuple(f"{one} = {one} * 1\n{text}" for text in changes)
        return self.rng.choice(self.rng.choices((changes, names, values, reads), (5, 2, 2, 2))[0])
