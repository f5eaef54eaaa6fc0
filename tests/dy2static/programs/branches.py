# ruff: noqa: E722, F821
"""Programs of branches, early returns, try and with. CASES: function -> argument tuples."""

import contextlib

LOG = []


def log(value):
    LOG.append(value)
    return value


def if_simple(c):
    y = 0
    if c:
        y = 1
    return y


def if_else_bound(c):
    if c:
        y = 1
    else:
        y = "a"
    return y


def elif_chain(n):
    if n < 0:
        r = "negative"
    elif n == 0:
        r = "zero"
    elif n < 10:
        r = "small"
    else:
        r = "big"
    return r


def one_side_bound(c):
    if c:
        y = 1
    return y


def one_side_bound_elif(n):
    if n == 1:
        y = "one"
    elif n == 2:
        log("two")
    else:
        y = "many"
    return y


def deleted_on_one_side(c, y):
    if c:
        del y
    return y


def deleted_unbound(c):
    if c:
        y = 1
    del y
    return "deleted"


def delete_twice(c):
    y = 1
    if c:
        del y
    if c:
        del y


def augmented_unbound(c):
    if c:
        n = 1
    n += 1
    return n


def read_before_bound(c):
    if c:
        log(y)
    y = 2
    return y


def swap_in_branch(a, b):
    if a > b:
        a, b = b, a
    return a, b


def early_return(x):
    if x > 0:
        return "positive"
    log("on")
    if x < 0:
        return "negative"
    return "zero"


def early_return_nested(a, b):
    if a:
        if b:
            return "both"
        log("a")
    log("rest")
    if b:
        return "b"
    else:
        log("none")


def return_in_all(a, b):
    if a:
        if b:
            return 1
        else:
            return 2
    elif b:
        return 3
    return 4


def return_none(c):
    if c:
        return
    log("falls off")


def many_guards(n):
    if n == 0:
        return "a"
    if n == 1:
        log(1)
        return "b"
    if n == 2:
        n = 20
    if n == 20:
        return n
    if n > 5:
        raise ValueError(n)
    return "end"


def unreachable(c):
    if c:
        return 1
        y = 5
    return y


def local_by_unreachable():
    return len_of
    len_of = 1


def return_in_try(x):
    try:
        if x == 0:
            return "zero"
        y = 10 // (x - 1)
    except ZeroDivisionError as e:
        log(str(e))
        if x:
            return "one"
    else:
        log("else")
        return y
    finally:
        log("finally")
    return "never"


def return_skips_else(x):
    try:
        if x:
            return "body"
        log("body on")
    except ValueError:
        return "handler"
    else:
        log("else")
    finally:
        log("finally")
    return "end"


def break_in_try(xs):
    for x in xs:
        try:
            if x == 0:
                break
            if x == 1:
                continue
            log(10 // (x - 2))
        except ZeroDivisionError:
            log("zero")
            if len(xs) > 3:
                break
            continue
        else:
            log("else")
        finally:
            log("finally")
        log("tail")
    else:
        log("no break")
    return x


def return_expression_raises(x):
    try:
        if x:
            return 1 // 0
        return "fine"
    except ZeroDivisionError:
        return "caught"


def finally_changes(x):
    y = x
    try:
        if y:
            return y
    finally:
        y = "changed"
        log(y)
    return y


def try_binds(x):
    try:
        y = 1 // x
        z = y
    except ZeroDivisionError:
        y = "error"
    if x:
        return y, z
    return y, z


def except_name_is_deleted(x):
    try:
        log(1 // x)
    except ZeroDivisionError as e:
        if x == 0:
            log(str(e))
    return e


def except_name_rebinds(x):
    e = "before"
    if x is not None:
        try:
            log(1 // x)
        except ZeroDivisionError as e:
            log("handled")
    return e


def except_name_captured(x):
    try:
        log(1 // x)
    except ZeroDivisionError as e:
        get = lambda: e
        log(str(get()))
        if x == 0:
            log("inside")
    return get()


def reraise(x):
    try:
        try:
            if x:
                raise KeyError(x)
        except KeyError:
            log("first")
            if x > 1:
                raise
            raise ValueError("new") from None
    except ValueError as e:
        return repr(e), e.__suppress_context__


def raise_from(x):
    try:
        try:
            raise KeyError(x)
        except KeyError as cause:
            raise ValueError("x") from cause
    except ValueError as e:
        return repr(e.__cause__), repr(e.__context__)


def raise_class(x):
    if x:
        raise StopIteration
    raise TypeError("no") from ValueError("because")


def raise_nonsense(x):
    raise x


def bare_except(x):
    try:
        log(1 // x)
    except:
        return "caught"
    return "fine"


def broad_except(x):
    try:
        log(1 // x)
    except (Exception, KeyError) as e:
        return repr(e)
    return "fine"


def computed_except(x, kind):
    try:
        log(1 // x)
    except kind as e:
        return type(e).__name__
    return "fine"


def with_return(x):
    with contextlib.nullcontext(x) as y:
        if y:
            return y
        log("inside")
    log("after")
    return "end"


def with_swallow(x):
    with contextlib.suppress(ZeroDivisionError):
        if x > 5:
            return "early"
        y = 1 // x
        return "body"
    log("swallowed")
    return y


def with_swallow_falls_off(x):
    with contextlib.suppress(ZeroDivisionError):
        if x > 5:
            x = 0
        return 1 // x


def with_break(xs):
    for x in xs:
        with contextlib.nullcontext():
            if x == 2:
                break
            if x == 1:
                continue
            log(x)
        log("tail")
    return x


def with_attribute(box):
    with contextlib.nullcontext(5) as box.value:
        if box.value:
            log(box.value)
    return box.value


def with_many(x):
    with contextlib.nullcontext(1) as a, contextlib.nullcontext((2, 3)) as (b, c):
        if x:
            return a + b
    return c


def nested_try_finally(n):
    for i in range(n):
        try:
            try:
                if i == 1:
                    continue
                if i == 3:
                    return "out"
            finally:
                log(("inner", i))
        finally:
            log(("outer", i))
    return "end"


def match_statement(x):
    match x:
        case 0:
            return "zero"
        case [a, *rest] if a:
            y = rest
        case {"k": v, **others}:
            if v:
                return v
            y = others
        case str() as s:
            y = s
        case _:
            y = None
    return y


def match_in_loop(xs):
    for x in xs:
        match x:
            case 0:
                continue
            case 1 | 2:
                break
            case n:
                log(n)
        log("tail")
    return x


def assertion(x):
    assert x > 0, f"bad {log(x)}"
    assert x != 5
    if x > 3:
        assert False, (x, "three")
    return x


def annotated(c):
    y: int
    if c:
        y: int = 1
        z: "unknown" = 2
    else:
        z = 3
    return y, z


def docstring(c):
    """Stays the docstring."""
    if c:
        y = 1
    return y


def import_in_branch(c):
    if c:
        import math as m
    else:
        from operator import neg as m
    return m.__name__


def import_dotted(c):
    if c:
        import os.path
    return os.path.join("a", "b")


def def_in_branch(c):
    if c:

        def g(x):
            return x + 1

    else:

        def g(x, y=2):
            if x:
                return y
            return x

    return g(1), g.__name__, g.__qualname__


def class_in_branch(c):
    if c:

        class K:
            size = 3

            def get(self):
                if self.size:
                    return self.size, K.__qualname__

    else:
        K = None
    return K().get()


def shadowed_builtins(slice, isinstance):
    if slice:
        r = [1, 2, 3][0:2]
    else:
        r = isinstance
    return r


def ternary(a, b):
    return log(a) if log(b) else log("c") if a else log("d")


def laziness(a, b, c):
    x = log(a) and log(b) or log(c)
    y = not log(a) or log(b)
    return x, y, a and b and c, a or b or c, not not a


def chained(a, b, c):
    return log(a) < log(b) <= log(c), log(a) == log(b) != log(c) < log(a), a < b < c < 9, 0 < a, a in [b, c] == True


def identity(a, b):
    return a is b, a is not None, a in [b], a not in (b, 1) is True, a is b is None


def condition_once(xs):
    if log(xs) and len(xs) > 1:
        return "long"
    elif xs:
        return "one"
    return "empty"


def walrus_in_if(x):
    if (y := x + 1) > 3 and (z := y * 2) > 9:
        return y, z
    return y


def walrus_lazy(x):
    r = x and (y := x + 1)
    return r, y


def walrus_lazy_order(a):
    n = 1
    r = (log(n), a, [n, log(a) and (n := 5), n], n if a else (n := 7), n)
    return r, n


def walrus_in_ternary(x):
    r = (y := 1) if x else (z := 2)
    if x:
        return r, y
    return r, z


def walrus_in_chain(a):
    return log(0) < log(a) < (y := log(5)) < 9, y


def walrus_in_comprehension(xs):
    r = [last := x for x in xs if x]
    return r, last


def walrus_in_branch(x):
    if x:
        r = [y := x, y + 1]
    else:
        r = None
    return r, y


def walrus_while_if(xs):
    out = []
    while xs and (x := xs.pop()):
        if (y := x - 1) and y > 1:
            out.append(y)
    return out, xs


class Box:
    value = None

    def __eq__(self, other):
        return type(other) is Box and self.__dict__ == other.__dict__


BOTH = [(True,), (False,)]
PAIRS = [(a, b) for a in (0, 1, 2) for b in (0, 1, 2)]
NUMBERS = [(n,) for n in (-1, 0, 1, 2, 3, 5, 6, 20)]
LISTS = [([],), ([0],), ([1],), ([3, 0, 4],), ([5, 2, 4],), ([3, 1, 3, 1, 0],), ([2, 2, 2, 2],)]

CASES = {
    **dict.fromkeys(
        [
            if_simple, if_else_bound, one_side_bound, deleted_unbound, delete_twice, augmented_unbound,
            read_before_bound, return_none, unreachable, annotated, docstring, import_in_branch, import_dotted,
            def_in_branch, class_in_branch,
        ],
        BOTH,
    ),
    **dict.fromkeys(
        [
            elif_chain, one_side_bound_elif, early_return, many_guards, return_in_try, return_skips_else,
            return_expression_raises, finally_changes, try_binds, except_name_is_deleted, except_name_rebinds,
            except_name_captured, reraise, raise_from, raise_class, bare_except, broad_except, with_return,
            with_swallow, with_swallow_falls_off, with_many, nested_try_finally, assertion, walrus_in_if, walrus_lazy,
            walrus_lazy_order, walrus_in_ternary, walrus_in_chain, walrus_in_branch,
        ],
        NUMBERS,
    ),
    **dict.fromkeys(
        [break_in_try, with_break, match_in_loop, condition_once, walrus_in_comprehension, walrus_while_if], LISTS
    ),
    **dict.fromkeys(
        [swap_in_branch, early_return_nested, return_in_all, deleted_on_one_side, ternary, identity, shadowed_builtins],
        PAIRS,
    ),
    laziness: [(a, b, c) for a in (0, 1) for b in ("", "b") for c in ([], [1])],
    chained: [(a, b, c) for a in (0, 2) for b in (1, 2) for c in (0, 3)],
    local_by_unreachable: [()],
    raise_nonsense: [(1,), (None,), (KeyError,)],
    computed_except: [(0, ZeroDivisionError), (0, (KeyError, ArithmeticError)), (0, KeyError), (1, KeyError)],
    with_attribute: [(Box(),)],
    match_statement: [(0,), ([1, 2, 3],), ([0, 2],), ({"k": 1},), ({"k": 0, "j": 2},), ("s",), (None,)],
}  # fmt: skip
