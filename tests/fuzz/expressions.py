"""Random expressions: float tensors of three elements, Python numbers, conditions."""

from __future__ import annotations

from tests.fuzz.writer import INTS, TENSORS, Writer


def tensor(g: Writer, depth: int = 2) -> str:
    """A float tensor of three elements."""
    if depth == 0 or g.chance(0.35):
        return g.pick(TENSORS)
    one = tensor(g, depth - 1)

    def other() -> str:
        return tensor(g, depth - 1)

    if g.module and g.chance(0.2):
        return g.one_of(
            lambda: f"self.linear({one})",
            lambda: f"self.layers[{g.pick(('0', '-1', 'k % 2', 'i % 2'))}]({one})",
            lambda: f"({one} * self.scale)",
            lambda: f"({one} + self.running)",
            lambda: f"self.gate({one})",
        )
    if g.draws and g.chance(0.12):
        g.note("random")
        return g.one_of(
            lambda: f"F.dropout({one}, 0.3)",
            lambda: f"({one} + torch.rand(3))",
            lambda: f"({one} * torch.randn_like({one}))",
        )
    if g.chance(0.2):
        g.note("call")
        return g.one_of(
            lambda: f"helper({one}, {number(g)})",
            lambda: f"count_up({one}, {g.random.randint(0, 2)})[0]",
            lambda: f"recurse({one}, {g.pick(('1', '2', 'k'))})",
            lambda: f"partial(helper, limit={number(g)})({one})",
            lambda: f"(lambda q: q * 2 if q.sum() < 1 else q - 1)({one})",
            lambda: f"variadic({one}, {other()}, scale={number(g)})",
            lambda: f"variadic(*({one}, {other()}), **{{'scale': {number(g)}}})",
            lambda: f"Box.mix({one}, {other()})",
        )
    return g.one_of(
        lambda: f"torch.tanh({one})",
        lambda: f"torch.sin({one} + {other()})",
        lambda: f"({one} * {other()} * 0.5)",
        lambda: f"({one} - {number(g)})",
        lambda: f"({one} + {integer(g)} * 0.25)",
        lambda: f"({one} * {real(g)})",
        lambda: f"torch.relu({one})",
        lambda: f"({one} * {one}.mean())",
        lambda: f"({one} if {condition(g)} else {other()})",
        lambda: f"torch.where({one} > 0, {other()}, -{one})",
        lambda: f"{one}.flip(0)",
        lambda: f"{one}[[1, 2, 0]]",
        lambda: f"torch.cat([{one}[:1], {other()}[1:]])",
        lambda: f"({one} / (1 + {other()}.abs()))",
        lambda: f"{one}.detach()",
        lambda: f"{one}.expand(2, 3).sum(0)",
        lambda: f"({one} / {one}.shape[0])",
    )


def number(g: Writer) -> str:
    """A literal float."""
    return g.pick(("0.1", "-0.2", "0.5", "1.0", "-0.7", "0.0"))


def real(g: Writer) -> str:
    """A Python number, known or not."""
    return g.one_of(
        lambda: "s",
        lambda: "s",
        lambda: number(g),
        lambda: f"float({g.pick(TENSORS)}.detach().mean())",
        lambda: f"{g.pick(TENSORS)}.tolist()[0]",
        lambda: f"{g.pick(TENSORS)}.max().item()",
        lambda: f"round({g.pick(TENSORS)}.sum().item(), 1)",
        lambda: f"max(min(s, {number(g)}), -1)",
        lambda: f"abs({g.pick(INTS)} - s)",
        lambda: f"({g.pick(INTS)} / 2)",
        lambda: f"(math.tanh(s) if s > {number(g)} else {integer(g)})",
    )


def integer(g: Writer) -> str:
    """A Python int, known or not."""
    one = g.pick(INTS)
    return g.one_of(
        lambda: one,
        lambda: one,
        lambda: str(g.random.randint(-2, 3)),
        lambda: "k",
        lambda: "len(out)",
        lambda: f"({one} + {g.random.randint(0, 2)})",
        lambda: f"min({one}, 3)",
        lambda: f"max({one}, {g.pick(INTS)})",
        lambda: f"abs({one})",
        lambda: f"({one} % 3)",
        lambda: f"int({g.pick(TENSORS)}.sum() > 0)",
        lambda: f"({one} // 2)",
        lambda: f"(x.shape[0] - {g.random.randint(0, 2)})",
        lambda: f"(a.numel() // {g.random.randint(1, 3)})",
        lambda: f"sum([{one}, 1])",
        lambda: f"sorted([{one}, {g.pick(INTS)}, 1])[{g.pick(('0', '1', '-1'))}]",
        lambda: f"({one} or {g.random.randint(1, 3)})",
        lambda: f"({one} and {g.pick(INTS)})",
        lambda: f"({g.pick(TENSORS)} > 0).sum().item()",
        lambda: f"len([t for t in ({g.pick(TENSORS)}, {g.pick(TENSORS)}) if t.sum() > {number(g)}])",
    )


def condition(g: Writer, depth: int = 1) -> str:
    """A condition: of tensors, of numbers read off tensors, or of Python values."""
    t = g.pick(TENSORS)
    if depth and g.chance(0.35):
        return g.one_of(
            lambda: f"{condition(g, 0)} and {condition(g, 0)}",
            lambda: f"{condition(g, 0)} or {condition(g, 0)}",
            lambda: f"not ({condition(g, 0)})",
        )
    return g.one_of(
        lambda: f"{t}.sum() > {number(g)}",
        lambda: f"{t}.sum() > {number(g)}",
        lambda: f"{t}.mean() < {number(g)}",
        lambda: f"{t}[0] > {g.pick(TENSORS)}[1]",
        lambda: f"{integer(g)} > {integer(g)}",
        lambda: f"{real(g)} < {number(g)}",
        lambda: f"{t}.sum().item() > {number(g)}",
        lambda: f"({t} > 0).any()",
        lambda: f"bool(({t} < 0).all())",
        lambda: f"{number(g)} < {t}.max() < 1.5",
        lambda: f"0 <= {integer(g)} < {integer(g)}",
        lambda: f"k == {g.random.randint(0, 2)}",
        lambda: f"{integer(g)} in (0, 2)",
        lambda: f"len(out) > {g.random.randint(0, 2)}",
        lambda: f"any([t.sum() > {number(g)} for t in ({t}, {g.pick(TENSORS)})])",
        lambda: f"all(t.mean() < {number(g)} for t in ({t}, {g.pick(TENSORS)}))",
        lambda: f"isinstance({g.pick(('a', 's', 'i', 'out'))}, {g.pick(('torch.Tensor', 'int', 'float', 'list'))})",
        lambda: f"{t}.requires_grad",
        lambda: "last is None",
    )
