"""Random statements without a body of their own."""

from __future__ import annotations

from tests.fuzz.expressions import condition, integer, number, real, tensor
from tests.fuzz.writer import INTS, TENSORS, Writer, simple

LOCALS = TENSORS[2:]


@simple("assign", 5)
def assign(g: Writer) -> None:
    g.line(f"{g.pick(LOCALS)} = {tensor(g)}")


@simple("augmented")
def augmented(g: Writer) -> None:
    name = g.pick(("a", "b"))
    if g.chance(0.5):
        g.line(f"{name} = {name} * 1")
    g.line(f"{name} {g.pick(('+=', '-=', '*='))} {g.pick(('0.5', tensor(g, 1)))}")


@simple("in_place")
def in_place(g: Writer) -> None:
    name = g.pick(LOCALS)
    g.line(f"{name} = {name}.clone()")
    g.line(f"{name}." + g.pick(("add_(0.5)", "mul_(0.5)", f"sub_({tensor(g, 1)}.detach())", "clamp_(-1, 1)")))


@simple("set_item")
def set_item(g: Writer) -> None:
    name = g.pick(LOCALS)
    g.line(f"{name} = {name} + 0")
    index = g.pick(("0", "1:", "-1", "[0, 2]", f"{name} > 0", "i % 3"))
    g.line(f"{name}[{index}] = {g.pick(('0.5', f'{tensor(g, 1)}.sum()', f'{tensor(g, 1)}[0]'))}")


@simple("view_write")
def view_write(g: Writer) -> None:
    name, view = g.pick(("a", "b")), g.name("v")
    g.line(f"{name} = {name}.clone()")
    g.line(f"{view} = {name}[{g.pick(('1:', ':2', '::2'))}]")
    g.line(f"{view}.mul_({g.pick(('0.5', '-1'))})")


@simple("integer", 2)
def set_integer(g: Writer) -> None:
    g.line(f"{g.pick(INTS)} {g.pick(('=', '+=', '='))} {integer(g)}")


@simple("float", 2)
def set_float(g: Writer) -> None:
    g.line(f"s = {real(g)}")


@simple("int_or_float")
def int_or_float(g: Writer) -> None:
    with g.inside("if", f"if {condition(g)}:"):
        g.line(f"s = {integer(g)}")
    with g.inside("if", "else:"):
        g.line(f"s = {g.pick(('s * 0.5', number(g), 's'))}")


@simple("none_or_tensor", 1.5)
def none_or_tensor(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: f"last = {tensor(g, 1)} if {condition(g)} else None",
            lambda: f"last = {tensor(g, 1)}",
            lambda: "last = None",
            lambda: "c = c if last is None else c + last",
            lambda: "b = b + (last if last is not None else 0.5)",
        )
    )


@simple("tuple", 1.5)
def set_tuple(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: f"pair = ({tensor(g, 1)}, {integer(g)})",
            lambda: f"pair = (a, i) if {condition(g)} else (b, {integer(g)})",
            lambda: "c = c + pair[0] * pair[1]",
            lambda: "b, m = pair",
        )
    )


@simple("namedtuple")
def set_namedtuple(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: f"named = Pair({tensor(g, 1)}, {integer(g)})",
            lambda: f"named = named._replace(first={tensor(g, 1)})",
            lambda: "c = c + named.first * named.second",
            lambda: f"named = Pair(a, 1) if {condition(g)} else named",
        )
    )


@simple("dataclass")
def set_dataclass(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: f"record = Record({tensor(g, 1)}, {integer(g)})",
            lambda: "record.count += 1",
            lambda: f"record.value = {tensor(g, 1)}",
            lambda: "b = b + record.value * record.count",
        )
    )


@simple("append", 1.5)
def append(g: Writer) -> None:
    g.line(f"out.append({tensor(g, 1)})")


@simple("list", 1.5)
def use_list(g: Writer) -> None:
    name = g.pick(("a", "b"))
    with g.inside("if", "if len(out) > 0:"):
        g.line(
            g.one_of(
                lambda: f"{name} = {name} + out[{g.pick(('-1', '0', 'i % len(out)'))}]",
                lambda: f"{name} = {name} + torch.stack(out).sum(0) * 0.1",
                lambda: f"{name} = out.pop()",
                lambda: "out = out[:2]",
                lambda: "out.extend([a, b])",
                lambda: f"out[0] = {tensor(g, 1)}",
                lambda: "out = out + [c]",
                lambda: "out = list(reversed(out))",
                lambda: f"{name} = {name} + sum(out)",
                lambda: "out = [t * 0.5 for t in out]",
                lambda: f"out = [t for t in out if t.sum() > {number(g)}]",
            )
        )


@simple("swap")
def swap(g: Writer) -> None:
    one, two = g.random.sample(LOCALS, 2)
    g.line(g.pick((f"{one}, {two} = {two}, {one} * 0.5", f"{one}, {two} = {two}, {one}", f"{one} = {two} = {one} + 1")))


@simple("starred", 0.5)
def starred(g: Writer) -> None:
    rest = g.name("rest")
    g.line(g.pick((f"a, *{rest} = (b, c, a)", f"*{rest}, b = [a, c, b]", f"c, *{rest}, a = (a, b, c, {tensor(g, 1)})")))
    g.line(f"c = c + {rest}[-1]")


@simple("dict", 1.5)
def use_dict(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: f"d['p'] = {tensor(g, 1)}",
            lambda: "d['n'] += 1",
            lambda: f"{g.pick(('a', 'b'))} = d['p'] + d['n']",
            lambda: f"d = {{**d, 'p': {tensor(g, 1)}}}",
            lambda: "c = c + d.get('q', 1)",
            lambda: f"d.update(p={tensor(g, 1)})",
            lambda: "b = b + sum([v for v in d.values()])",
        )
    )


@simple("attribute", 1.5)
def attribute(g: Writer) -> None:
    if g.module and g.chance(0.7):
        g.line(
            g.one_of(
                lambda: "self.steps += 1",
                lambda: f"self.running = {tensor(g, 1)}.detach()",
                lambda: f"self.running.add_({tensor(g, 1)}.detach())",
                lambda: "self.seen += 1",
                lambda: "self.running.mul_(0.5)",
                lambda: f"b = b + self.running * {g.pick(('self.steps', 'self.limit'))}",
                lambda: "m = self.seen.item()",
            )
        )
        return
    g.line(
        g.one_of(
            lambda: f"box.value = {tensor(g, 1)}",
            lambda: "box.hits += 1",
            lambda: "a = box.push(a)",
            lambda: "b = b + box.value * 0.1",
            lambda: "m = box.level",
            lambda: f"box.table['p'] = {tensor(g, 1)}",
            lambda: "box.table['n'] += 1",
            lambda: "c = box.table['p'] + box.table['n']",
            lambda: f"box = Box({tensor(g, 1)})",
        )
    )


@simple("call_pair")
def call_pair(g: Writer) -> None:
    times = g.pick(("1", "2", "int(x.sum() > 0)", "min(abs(j), 3)"))
    g.line(f"c, m = count_up({tensor(g, 1)}, {times})")


@simple("assert", 0.7)
def assert_(g: Writer) -> None:
    g.line(g.pick(("assert a.sum() < 1e6, 'too large'", f"assert {condition(g, 0)} or k < 2, 'not {g.name('so')}'")))


@simple("walrus")
def walrus(g: Writer) -> None:
    name = g.name("w")
    g.line(f"c = c + {name} if ({name} := {tensor(g, 1)}).sum() > 0 else c - 0.25")


@simple("closure")
def closure(g: Writer) -> None:
    name = g.name("g")
    with g.inside("closure", f"def {name}(q, r=0.5):"):
        g.line(f"return q * {g.pick(('a', 'b'))} * r if q.sum() > {number(g)} else q + i")
    g.line(f"c = {name}({g.pick(TENSORS)}{g.pick(('', ', 2.0', ', r=s'))})")


@simple("function_of_path", 0.7)
def function_of_path(g: Writer) -> None:
    name = g.name("g")
    g.line(f"{name} = lambda q: q + {number(g)}")
    with g.inside("if", f"if {condition(g)}:"):
        g.line(f"{name} = lambda q: q * {g.pick(('a', 'b', '2'))}")
    g.line(f"c = {name}({g.pick(TENSORS)})")


@simple("nonlocal", 0.7)
def nonlocal_(g: Writer) -> None:
    name = g.name("g")
    with g.inside("closure", f"def {name}(q):"):
        g.line("nonlocal m")
        with g.inside("if", f"if q.sum() > {number(g)}:"):
            g.line("m = m + 1")
        g.line("return q * m")
    g.line(f"b = {name}({g.pick(TENSORS)})")


@simple("global", 0.5)
def global_(g: Writer) -> None:
    g.line(g.pick(("total += 1", f"total = {integer(g)}", "m = total")))


@simple("comprehension", 1.5)
def comprehension(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: "c = sum([t * 0.5 for t in (a, b, c)])",
            lambda: "m = len([t for t in (a, b) if t.shape[0] > 2])",
            lambda: "c = torch.stack([helper(t, 0.0) for t in (a, b)]).mean(0)",
            lambda: f"c = c + sum([t for t in (a, b) if t.sum() > {number(g)}])",
            lambda: "c = sum(t * 0.5 for t in (a, b, c))",
            lambda: "d = {**d, **{key: t * 2 for key, t in zip('pq', (a, b)) if key != 'q'}}",
            lambda: "m = len({t.shape[0] for t in (a, b)})",
            lambda: "c = sum([p * q for p, q in zip((a, b), (b, c))])",
            lambda: f"out = [t * n for n, t in enumerate((a, b)) if n < {integer(g)}]",
        )
    )


@simple("builtin", 1.5)
def builtin(g: Writer) -> None:
    g.line(
        g.one_of(
            lambda: f"c = c + sum(list(map(lambda t: t * 0.5 if t.sum() > {number(g)} else t, (a, b))))",
            lambda: "c = sum(map(torch.sin, (a, b)))",
            lambda: "m = len(list(filter(lambda n: n > 0, (i, 1, k))))",
            lambda: f"c = max([a, b], key=lambda t: t.sum()) * {number(g)}",
            lambda: "s = sum(a.tolist())",
            lambda: "i, j = divmod(j, 2)",
            lambda: "s = float(m) + int(s)",
            lambda: "m = sorted((i, j, k), reverse=True)[0]",
            lambda: "j = bool(i) + int(a[0] > 0)",
            lambda: f"s = round(s, 2) if s > {number(g)} else -s",
            lambda: "m = int(any((a > 0).tolist()))",
        )
    )


@simple("bound_on_one_path", 0.25)
def bound_on_one_path(g: Writer) -> None:
    name = g.name("late")
    with g.inside("if", f"if {condition(g)}:"):
        g.line(f"{name} = {tensor(g, 1)}")
    g.line(f"b = b + {name}")


@simple("delete", 0.5)
def delete(g: Writer) -> None:
    name = g.name("gone")
    g.line(f"{name} = {tensor(g, 1)}")
    if g.chance(0.2):
        with g.inside("if", f"if {condition(g)}:"):
            g.line(f"del {name}")
        g.line(f"a = a + {name}")
    else:
        g.line(f"b = b + {name}")
        g.line(f"del {name}")


@simple("raise", 0.4)
def raise_(g: Writer) -> None:
    text = g.name("path ")
    with g.inside("if", f"if {condition(g)} and k == {g.random.randint(0, 2)}:"):
        error = g.pick((f"ValueError('{text}')", f"KeyError('{text}')", f"RuntimeError(f'{text} {{i}}')"))
        g.line(f"raise {error}")


@simple("leave", 2)
def leave(g: Writer) -> None:
    kinds = (["return"] if g.returns else []) + (["break", "continue", "break"] if g.loops else [])
    if not kinds or len(g.stack) == 1:
        assign(g)
        return
    kind = g.pick(kinds)
    g.note(kind)
    with g.inside("if", f"if {condition(g)}:"):
        if kind == "return":
            g.line(
                g.one_of(
                    lambda: "return a, b",
                    lambda: "return a * 2",
                    lambda: f"return {tensor(g, 1)}, i",
                    lambda: "return None",
                    lambda: "return out",
                    lambda: "return",
                    lambda: "return {'a': a, 's': s}",
                    lambda: "return Pair(a, m)",
                    lambda: "return Record(b, i)",
                )
            )
        else:
            g.line(kind)
