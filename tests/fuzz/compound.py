"""Random statements with bodies."""

from __future__ import annotations

from tests.fuzz.expressions import condition, integer, number, tensor
from tests.fuzz.writer import TENSORS, Writer, block, nested


@nested("if", 4)
def if_(g: Writer, depth: int) -> None:
    with g.inside("if", f"if {condition(g)}:"):
        block(g, depth)
    while g.chance(0.2):
        g.note("elif")
        with g.inside("if", f"elif {condition(g)}:"):
            block(g, depth)
    if g.chance(0.6):
        g.note("else")
        with g.inside("if", "else:"):
            block(g, depth)


def loop(g: Writer, kind: str, header: str, depth: int, before: str = "") -> None:
    """A loop's body, and sometimes its ``else``."""
    with g.inside(kind, header, loop=True):
        if before:
            g.line(before)
        block(g, depth)
    if g.chance(0.2):
        g.note("loop_else")
        with g.inside(kind, "else:"):
            block(g, 0)


@nested("while", 2)
def while_(g: Writer, depth: int) -> None:
    count, limit = g.name("n"), g.pick(("3", "2", "1"))
    g.line(f"{count} = {g.pick(('0', 'torch.tensor(0)', 'int(x.sum() > 0)'))}")
    more = f" and {condition(g, 0)}" if g.chance(0.5) else ""
    loop(g, "while", f"while {count} < {limit}{more}:", depth, f"{count} = {count} + 1")


@nested("while_true")
def while_true(g: Writer, depth: int) -> None:
    count = g.name("n")
    g.line(f"{count} = 0")
    with g.inside("while_true", "while True:", loop=True):
        g.line(f"{count} += 1")
        with g.inside("if", f"if {count} > {g.pick(('1', '2'))} or {condition(g)}:"):
            g.line("break")
        block(g, depth)


@nested("for_range")
def for_range(g: Writer, depth: int) -> None:
    loop(g, "for_range", f"for i in range({g.pick(('2', '3', 'k', '1, 3', '2, 0, -1'))}):", depth)


@nested("for_staged", 1.5)
def for_staged(g: Writer, depth: int) -> None:
    bound = g.pick(
        ("int((x > 0).sum())", "int(y.abs().sum() > 1) + 1", "(x > 0).sum()", "min(abs(j), 2)", "2, k, -1")
    )
    loop(g, "for_staged", f"for j in range({bound}):", depth)


@nested("for_rows")
def for_rows(g: Writer, depth: int) -> None:
    rows = f"torch.stack([{tensor(g, 1)}, {tensor(g, 1)}])"
    if g.chance(0.4):
        loop(g, "for_rows", f"for m, r in enumerate({g.pick((rows, 'a'))}):", depth, "c = c + r * m")
    else:
        loop(g, "for_rows", f"for r in {rows}:", depth, "c = c + r * 0.5")


@nested("for_list", 1.5)
def for_list(g: Writer, depth: int) -> None:
    one, two = tensor(g, 1), tensor(g, 1)
    header = g.one_of(
        lambda: f"for m, t in enumerate(({one}, {two})):",
        lambda: f"for t in reversed([{one}, {two}]):",
        lambda: f"for t, r in zip(({one}, {two}), (a, b)):",
        lambda: "for t in list(out):",
        lambda: "for m, t in enumerate(out[:2]):",
        lambda: f"for t in list(produce({one}, {g.pick(('1', '2', 'k'))})):",
        lambda: f"for t in map(torch.sin, ({one}, {two})):",
        lambda: f"for t, (m, i) in (({one}, (0, 1)), ({two}, (1, {integer(g)}))):",
        lambda: "for t in d.values():",
    )
    loop(g, "for_list", header, depth, "b = b + t * 0.1")


@nested("for_layers", 0.5)
def for_layers(g: Writer, depth: int) -> None:
    if not g.module:
        for_list(g, depth)
        return
    loop(g, "for_layers", "for layer in self.layers:", depth, f"a = torch.tanh(layer({g.pick(TENSORS)}))")


@nested("no_grad", 0.7)
def no_grad(g: Writer, depth: int) -> None:
    with g.inside("no_grad", g.pick(("with torch.no_grad():", "with torch.set_grad_enabled(k != 1):"))):
        block(g, min(depth, 1))


@nested("with")
def with_(g: Writer, depth: int) -> None:
    scaled = f"Scaled({number(g)}) as s"
    header = g.pick((f"with {scaled}:", "with counted(box) as m:", f"with {scaled}, counted(box):"))
    with g.inside("with", header):
        block(g, depth)


@nested("try_finally", 0.7)
def try_finally(g: Writer, depth: int) -> None:
    with g.inside("try", "try:"):
        block(g, depth)
    with g.inside("try", "finally:"):
        g.line("m = m + 1")


@nested("try_except", 0.7)
def try_except(g: Writer, depth: int) -> None:
    errors = {"KeyError": "d['absent']", "ValueError": "at_most(k, 1)", "IndexError": "(0, 1)[k + 1]"}
    kind = g.pick(tuple(errors))
    wrong = errors[kind]
    with g.inside("try", "try:"):
        if g.chance(0.5):
            g.line(f"b = {tensor(g, 1)}")
        g.line(f"j = {wrong}" if kind != "KeyError" else f"c = {wrong}")
    with g.inside("try", f"except {g.pick((kind, '(KeyError, ValueError, IndexError)', f'{kind} as error'))}:"):
        block(g, depth, 2)
    if g.chance(0.3):
        with g.inside("try", "else:"):
            block(g, 0, 2)
    if g.chance(0.3):
        with g.inside("try", "finally:"):
            g.line("s = s + 1")


@nested("match", 0.7)
def match(g: Writer, depth: int) -> None:
    subject = g.pick(("k", "(k, d)", "named"))
    cases = {
        "k": ["case 0:", "case 1 | 2:", "case _:"],
        "(k, d)": ["case (0, {'p': t, **rest}) if rest:", "case (1 | 2, t) if k == 1:", "case _:"],
        "named": ["case Pair(first=None):", "case (t, _):"],
    }[subject]
    with g.inside("match", f"match {subject}:"):
        for header in cases:
            with g.inside("match", header):
                block(g, depth, 2)


@nested("function")
def function(g: Writer, depth: int) -> None:
    name, loops, returns = g.name("inner"), g.loops, g.returns
    g.loops, g.returns = 0, False
    with g.inside("closure", f"def {name}(a, i, s={number(g)}):"):
        g.line("b, c, j, m, out, last, pair = a * 0.5, a + 1, 0, 1, [], None, (a, 1)")
        g.line("named, record, d, box = Pair(a, 1), Record(a), {'p': a, 'n': 0}, Box(a)")
        g.line("total = 0")
        block(g, min(depth, 1))
        with g.inside("if", f"if {condition(g)}:"):
            g.line("return b, m")
        g.line("return a + c, i")
    g.loops, g.returns = loops, returns
    g.line(f"c, m = {name}({g.pick(TENSORS)}, {integer(g)})")
