"""``register_hook`` on what a function computes: hooks that change gradients or note them, on parts, and removed."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode


class TensorHooks(Mode):
    """Statements that put hooks on tensors, mostly on those just made, among branches, loops, writes and gradients."""

    head = "import torch\ndef f(x, y, k):\n    p, q, r, n, seen = x * 0.5, y * 2, x + y, k, []\n"
    tail = "    return p * 1, q * 1, r * 1, n, seen\n"
    stays = True
    refusals = frozenset({"D2S213", "D2S222", "D2S228", "D2S245", "D2S275"})

    def _value(self) -> str:
        one, other = self.name(), self.name()
        return self.rng.choice((
            f"torch.tanh({one}) * {other}", f"{one} * 0.5 + {other}", f"{one} - {other}.detach()",
            f"torch.where({one} > 0, {other}, {one} * 2)", f"{one}.sort(-1).values", f"{one}.flip(-1)",
            f"{one}.exp().tanh()", f"{one}.clone()", f"({one} * {other})[...]", f"{one} + x",
            f"{one} / ({other} ** 2 + 1)",
        ))  # fmt: skip

    def _hook(self, one: str) -> str:
        """A hook for a tensor."""
        rng, other = self.rng, self.name()
        return rng.choice((
            "lambda g: g * 2", "lambda g: g.clamp(-0.5, 0.5)", "lambda g: None", "lambda g: g + 0.1", "torch.neg",
            f"lambda g, m={other}.detach(): g * m", f"lambda g, m={one} > 0: g * m",
            "lambda g: g / (g.abs().sum() + 1)", "lambda g: g * 2 if g.sum() > 0 else g",
            "lambda g: g * 3 if g.sum() > 0 else None",
            *(("lambda g: seen.append(g.sum())", "lambda g: seen.append(1)") if rng.random() < 0.3 else ()),
            *((f"lambda g: g * {other}.detach()",) if rng.random() < 0.2 else ()),
        ))  # fmt: skip

    def simple(self) -> str:
        """A value, a write, a hook, or a gradient."""
        rng, one, other = self.rng, self.name(), self.name()
        kind = rng.random()
        if kind < 0.25:
            return f"{one} = {self._value()}"
        if kind < 0.32:
            return rng.choice((f"{one} = {one} * 1\n{one}.mul_(0.5)", f"{one} = {one}.clone()\n{one}[..., :1] = 0.3",
                               "n = n + 1", f"{one} = {one}.clone()\n{one}.relu_().add_({other})"))  # fmt: skip
        if kind < 0.75:
            return "\n".join(self._hooked(one))
        if kind < 0.9:
            return "\n".join(self._with_gradient(one))
        lines = [f"{one} = {self._value()}", f"if {one}.requires_grad:"]
        part = rng.choice((f"{one}[..., 1:]", f"{one}.view(-1)", f"{one}.unsqueeze(0)", f"{one}.T"))
        lines += [f"    v = {part}", "    v.register_hook(lambda g: g * 2)", f"    {one} = {one} + v.tanh().sum()"]
        return "\n".join(lines)

    def _hooked(self, one: str) -> list[str]:
        """A tensor gets a hook, or several."""
        rng = self.rng
        lines = [f"{one} = {self._value()}"] if rng.random() < 0.85 else []
        lines += [f"{self.name()} = {one} * 0.5 + 1"] if rng.random() < 0.2 else []
        lines.append(f"if {one}.requires_grad:")
        lines.append(f"    h = {one}.register_hook({self._hook(one)})")
        lines += [f"    {one}.register_hook({self._hook(one)})"] if rng.random() < 0.3 else []
        lines += ["    h.remove()"] if rng.random() < 0.15 else []
        if rng.random() < 0.15:
            lines += [f"    with {one}.register_hook({self._hook(one)}):", f"        {one} = torch.sin({one})"]
        return lines

    def _with_gradient(self, one: str) -> list[str]:
        """A leaf, hooks on what is computed from it, and its gradient."""
        rng = self.rng
        lines = [f"t = {self.name()}.detach().requires_grad_()", f"u = t * {self.name()}.detach()"]
        lines += ["t.register_hook(lambda g: g * 2)"] if rng.random() < 0.3 else []
        lines += [f"u.register_hook({self._hook('u')})"] if rng.random() < 0.8 else []
        lines += ["w = u.tanh()", f"w.register_hook({self._hook('w')})"] if rng.random() < 0.5 else ["w = u + t"]
        if rng.random() < 0.3:
            lines += [f"if {self.condition()}:", "    w = w * u", f"    w.register_hook({self._hook('w')})"]
        loss = rng.choice(("w.pow(2).sum()", "(w * u).mean()"))
        if rng.random() < 0.5:
            by = rng.choice(("t", "u", "[u, t]", "[w, u]", "[w, t]"))
            asked = f"torch.autograd.grad({loss}, {by}, allow_unused=True)[0]"
            return [*lines, f"d = {asked}", f"{one} = {one} if d is None else {one} + d"]
        keeps = ["u.retain_grad()"] if rng.random() < 0.3 else []
        return [*lines, *keeps, f"({loss}).backward()", f"{one} = {one} + t.grad",
                *([f"{one} = {one} + u.grad"] if keeps else [])]  # fmt: skip


__all__ = ["TensorHooks"]
