"""What shape rules assume of unknown sizes holds on the path that assumes it, and only if the rule goes through."""

from __future__ import annotations

import linecache
import textwrap

import pytest
import torch
import torch.nn.functional as F

import dy2static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, difference, run, same

INPUTS = [[1.0, 2.0, 3.0], [-1.0, 2.0, 4.0], [-1.0, -2.0, -1.0], [1.0, 0.1, -3.0]]
PATHS = {
    "two branches": """
        if x.sum() < 1.5:
            u = z.view(3)
        else:
            u = z.view(2)
        return z.shape[0] * 2, torch.cat([z, z]), p * 2
    """,
    "after a branch": """
        if x.sum() < 1.5:
            u = z + x
        return z.shape[0] * 2, torch.cat([z, z]), z + 1, p * 2
    """,
    "in a loop": """
        i = 0
        while i < 3:
            if x[0] > 100: z = z + x
            elif i == 2: p = p + z.sum()
            i += 1
        return len(z), torch.cat([z, z]), p
    """,
    "a loop that narrows": """
        i = 0
        while i < 2 and (p > 0).any():
            i = i + 1
            u = p.narrow(0, 0, m - 2)
            u = p.reshape(m - 2, 3)
        return p, m
    """,
    "a path that raises": """
        if x.sum() < 1.5:
            u = torch.ones(m + 4) @ torch.eye(3)
        return p.sum() + x, m
    """,
    "one in another": """
        if x[0] > 0:
            if x.sum() < 2: u = z.expand(3)
            else: p = p + z.expand(m).sum()
            p = p + z.numel()
        else:
            u = z.view(2)
        return p, m, z
    """,
    "the same on both": """
        z = p[:m] * 3
        if x[0] > 0:
            u = p.narrow(0, 0, m)
            w = z.narrow(0, 0, 2)
        else:
            w = z.narrow(0, 0, 2)
            u = p.narrow(0, 0, m)
        return w * 2, u.sum()
    """,
    "a size that one path has": """
        z = p[:m] * 3
        u = p
        if x[0] > 0: u = z.unfold(0, 2, 1)
        return z.squeeze(), u.sum()
    """,
    "numbers made of numbers": """
        if x.sum() < 1.5:
            u = p.narrow(0, 0, 1 + m)
        else:
            u = p.view(m - 2, -1)
        return p, torch.zeros(m + 1), torch.zeros(m + 1).shape[0]
    """,
}


def function(body: str):
    """A function of a tensor; ``p`` is half of it, ``m`` a number that the run knows, ``z`` has so many elements."""
    lines = [line[8:] for line in body.strip("\n").rstrip().splitlines()]
    head = ["def f(x):", "    p, m = x * 0.5, int((x > 0).sum())", "    z = torch.zeros(m)"]
    source = "\n".join([*head, *("    " + line for line in lines)]) + "\n"
    name = f"<facts of paths {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"torch": torch, "F": F}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"]


def outcome(f, values, needs_gradient):
    """What the call did, or the code of an error of ours."""
    try:
        return run(f, [torch.tensor(values, requires_grad=needs_gradient)])
    except Dy2StaticError as error:
        return error.code


def in_words_of_ours(static, eager):
    """Whether eager refuses sizes in a RuntimeError, and the converted function does, in words that name no number."""
    return type(getattr(static, "error", None)) is type(eager.error) is RuntimeError


def alike(f, static, values, needs_gradient):
    """Both do the same; a size that does not fit may be said in words of ours."""
    expected, got = outcome(f, values, needs_gradient), outcome(static, values, needs_gradient)
    if not (in_words_of_ours(got, expected) and "do not fit together" in str(got.error)):
        same(got, expected, f"of {values}")


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("name", PATHS)
def test_facts_of_one_path(name, needs_gradient, tmp_path):
    f = function(PATHS[name])
    static = dy2static.to_static(f)
    for values in INPUTS:
        alike(f, static, values, needs_gradient)
    dy2static.save(static, tmp_path / "f.d2s")
    loaded = dy2static.load(tmp_path / "f.d2s")
    for values in INPUTS:
        alike(f, loaded, values, needs_gradient)


ALWAYS = [
    "p.view(m - 2, -1)", "p.narrow(0, 0, m + 4)", "p.select(0, m + 3)", "p[m + 3]", "p[-4 - m]", "p.reshape(m + 4, -1)",
    "p.expand(m + 5)", "p.expand(m + 5, m + 6)", "p.split(-m - 1)", "p.unfold(0, m + 4, 1)", "torch.zeros(-m - 1)",
    "torch.eye(3) @ p[:m - 1]", "p + torch.zeros(m + 4)", "p.unflatten(0, (m + 4, 2))", "p.topk(m + 4)",
    "torch.where(torch.ones(m + 4) > 0, p, p)", "F.layer_norm(p, (m + 4,))",
    "F.linear(torch.ones(2, m + 4), torch.eye(3))", "p.repeat(-m - 1)",
    "p.view(torch.int32).view(m + 4, 3)",
]  # fmt: skip


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("use", ALWAYS)
def test_what_raises_for_every_number(use, needs_gradient):
    for body in (f"        u = {use}\n        return p, m", f"        if x.sum() < 2: u = {use}\n        return p, m"):
        f = function(body)
        static = dy2static.to_static(f)
        for values in INPUTS:
            same(outcome(static, values, needs_gradient), outcome(f, values, needs_gradient), f"{body} of {values}")


@pytest.mark.parametrize("use", ["p.add_(torch.zeros(m + 4))", "torch.ones(m + 4).mul_(torch.eye(3))"])
def test_writes_that_raise_for_every_number(use):
    """They end in words that name no number; what else is known of the sizes is as before."""
    f = function(f"        if x.sum() < 2: u = {use}\n        return p.sum() + x, m")
    static = dy2static.to_static(f)
    for values in INPUTS:
        eager, given = outcome(f, values, False), outcome(static, values, False)
        if not in_words_of_ours(given, eager):
            same(given, eager, f"of {values}")


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_a_rule_that_raises_leaves_nothing_assumed(needs_gradient):
    f = function("""
        try:
            u = z.view(3, 2)
        except RuntimeError:
            p = p + 1
        return p, torch.cat([z, z]), len(z)
    """)
    static = dy2static.to_static(f)
    for values in INPUTS:
        eager, given = outcome(f, values, needs_gradient), outcome(static, values, needs_gradient)
        if given != "D2S229":
            same(given, eager, f"of {values}")


@pytest.mark.parametrize("handler", ["RuntimeError", "Exception", "(ValueError, RuntimeError)", "BaseException"])
def test_an_error_that_a_handler_would_catch_is_named(handler, tmp_path):
    f = function(f"""
        try:
            u = z.view(3)
        except {handler}:
            return p, -1
        return p * 2, m
    """)
    for needs_gradient in (False, True):
        static = dy2static.to_static(f)
        same(outcome(static, INPUTS[0], needs_gradient), outcome(f, INPUTS[0], needs_gradient))
        assert outcome(static, INPUTS[1], needs_gradient) == "D2S229"
    dy2static.save(static, tmp_path / "f.d2s")
    assert outcome(dy2static.load(tmp_path / "f.d2s"), INPUTS[1], False) == "D2S229"


def test_a_handler_that_only_raises_again_catches_nothing():
    f = function("""
        try:
            u = z.view(3)
        except RuntimeError:
            raise
        except Exception:
            return p, -1
        return p * 2, m
    """)
    static = dy2static.to_static(f)
    for values in INPUTS:
        same(outcome(static, values, False), outcome(f, values, False), f"of {values}")


def inner_gradient(x):
    try:
        y = x.clone().requires_grad_()
        (g,) = torch.autograd.grad((y * y * x.item()).sum(), y)
    except RuntimeError:
        return x
    return g


def test_operators_of_all_kinds_stand_under_a_handler():
    """What is computed in a try is what is computed outside of one."""
    check(inner_gradient, (torch.tensor(2.0),), (torch.tensor(-1.0),))


FITTING = {
    "add": "a + b",
    "where": "torch.where(a > 0, a, b)",
    "maximum": "torch.maximum(a, b)",
    "lerp": "torch.lerp(a, b, 0.5)",
    "outer": "torch.outer(a, b) + torch.outer(b, a)",
    "broadcast": "torch.broadcast_tensors(a, b)[0]",
    "product": "(a.unsqueeze(0).expand(2, -1) * b).sum(0)",
    "addcmul": "torch.addcmul(a, a, b)",
    "write": "a.clone().add_(b)",
    "einsum": 'torch.einsum("i,i->i", a, b)',
    "loss": 'F.mse_loss(a, b, reduction="none")',
}
BEFORE = {
    "a branch": """
        if x.sum() > 100:
            z = z + ({use}).sum()
    """,
    "both branches": """
        if x.sum() > 100:
            z = z + ({use}).sum()
        else:
            z = ({use}).sum()
    """,
    "a loop": """
        while z > 1000:
            z = z - ({use}).sum()
    """,
    "a loop over rows": """
        for row in x[:0]:
            z = z - ({use}).sum()
    """,
    "a choice": """
        z = ({use}).sum() if x.sum() > 100 else z
    """,
    "a rule that raised": """
        try:
            ({use}).view(-1, 0, 7)
        except RuntimeError:
            z = z + 1
    """,
    "nothing": "",
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.sample(12)
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", FITTING)
def test_what_a_path_assumed_is_assumed_again_after_it(name, before, needs_gradient):
    """Sizes that have to fit are asserted wherever an operator needs it, if a path asked the same before or not."""
    use = FITTING[name]
    first = textwrap.dedent(BEFORE[before]).format(use=use)
    f = given_both(f"a = x[x > 0]\nb = y[y > 0]\nz = x.sum()\n{first}\nr = {use}\nreturn r.shape[0], r, z, len(r)")
    static = dy2static.to_static(f)
    allowed = (RuntimeError, "D2S229") if before == "a rule that raised" else (RuntimeError,)
    assert answered(f, static, needs_gradient, allowed) >= 3 or before == "a rule that raised"


INSIDE = {
    "while": """
        i, n = 0, 0
        while i < (x > 0).sum():
            r = {use}
            n = n + r.shape[0]
            z = z * 0.5 + r.sum()
            i = i + 1
        return n, z, i
    """,
    "rows": """
        n = 0
        for row in x:
            if row > 0:
                n = n + len({use})
            z = z * row
        return n, z
    """,
    "list": """
        rows = []
        for i in range(int((y > 0).sum())):
            rows.append(({use}).shape[0] + i)
        return sum(rows), len(rows), z
    """,
    "nested": """
        n = 0
        while n < 4:
            for row in x:
                if row > 0:
                    n = n + ({use}).shape[0]
                else:
                    n = n + 1
        return n, z
    """,
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.sample(8)
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("where", INSIDE)
@pytest.mark.parametrize("name", FITTING)
def test_what_a_loop_asks_is_asserted_in_it(name, where, needs_gradient):
    """A body is traced several times: what the rules assume the first time is assumed the last time, too."""
    body = textwrap.dedent(INSIDE[where]).format(use=FITTING[name])
    f = given_both(f"a = x[x > 0]\nb = y[y > 0]\nz = x.sum()\n{body}")
    static = dy2static.to_static(f)
    assert answered(f, static, needs_gradient, (RuntimeError,)) >= 3


def answered(f, static, needs_gradient, allowed):
    """How many pairs of sizes give what eager gives; the others end as is allowed."""
    agreeing = 0
    for many, few in ((2, 2), (1, 3), (3, 1), (3, 2), (1, 1), (0, 3)):
        given = [torch.tensor([1.0] * n + [-1.0] * (4 - n), requires_grad=needs_gradient) for n in (many, few)]
        eager, got = both_outcome(f, given), both_outcome(static, given)
        apart = difference(got, eager)
        assert not apart or got in allowed, (many, few, apart)
        agreeing += not apart
    return agreeing


def given_both(body):
    """A function of two tensors with this body."""
    source = f"def f(x, y):\n{textwrap.indent(body, '    ')}\n"
    name = f"<facts of both {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made = {"torch": torch, "F": F}
    exec(compile(source, name, "exec"), made)
    return made["f"]


def both_outcome(function, given):
    """All that the call does; the type of what it raises, or its code."""
    try:
        done = run(function, given)
    except Dy2StaticError as error:
        return error.code
    return done if done.error is None else type(done.error)
