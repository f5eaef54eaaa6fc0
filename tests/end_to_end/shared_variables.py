"""Small programs about variables that branches, loops, handlers and nested functions share."""

from __future__ import annotations

import torch


def unbound_read_one_path(x):
    if x.sum() > 0:
        y = x * 2
    return y

def unbound_in_nested_block(x):
    if x.sum() > 0:
        if x.sum() > 10:
            y = x
        x = y + 1
    return x

def unbound_both(x):
    if x.sum() > 100:
        y = 1
    if x.sum() > 0:
        return x
    return y

def unbound_aug(x):
    if x.sum() > 0:
        t = x
    t += 1
    return t

def unbound_plain_flag(x, c=False):
    if c:
        y = x
    if x.sum() > 0:
        return x
    return y

def del_one_path(x):
    y = x * 3
    if x.sum() > 0:
        del y
        y = x
    return y

def del_one_path_read(x):
    y = x * 3
    if x.sum() > 0:
        del y
    return y

def del_twice(x):
    y = x
    if x.sum() > 0:
        del y
    del y
    return x

def del_then_bind_in_loop(x):
    n = 0
    while x.sum() < 5:
        y = x + 1
        x = y
        del y
        n += 1
    return x, n

def del_in_loop_read_after(x):
    y = x
    for i in range(2):
        if x.sum() > 0:
            y = x + i
        else:
            del y
            y = x - i
    return y

def del_outer_in_nested(x):
    n = x
    def drop():
        nonlocal n
        del n
    if x.sum() > 0:
        drop()
        n = x + 1
    return n

def del_outer_in_nested_read(x):
    n = x
    def drop():
        nonlocal n
        del n
    if x.sum() > 0:
        drop()
    return n

def set_outer_first_in_nested(x):
    def put(v):
        nonlocal n
        n = v
    if x.sum() > 0:
        put(x * 2)
    else:
        put(x * 3)
    return n  # noqa: F821 # bound below
    n = 0

def set_outer_one_path(x):
    def put(v):
        nonlocal n
        n = v
    if x.sum() > 0:
        put(x * 2)
    return n  # noqa: F821 # bound below
    n = 0

def read_free_unbound(x):
    def get():
        return y
    if x.sum() > 0:
        y = x
    return get()

def read_free_after(x):
    if x.sum() > 0:
        y = x
    else:
        y = -x
    def get():
        return y
    y = y + 1
    return get()

def handler_name(x):
    try:
        raise ValueError("a")
    except ValueError as e:
        if x.sum() > 0:
            m = len(e.args)
        else:
            m = 7
    return m

def handler_name_gone(x):
    e = x
    try:
        raise ValueError("a")
    except ValueError as e:
        if x.sum() > 0:
            x = x + 1
    return x, e

def handler_name_in_branch(x):
    e = x
    if x.sum() > 0:
        try:
            raise ValueError("a")
        except ValueError as e:
            pass
    return e

def handler_name_rebound(x):
    e = x
    if x.sum() > 0:
        try:
            raise ValueError("a")
        except ValueError as e:
            pass
        e = x * 5
    return e

def import_in_branch(x):
    if x.sum() > 0:
        import math
    else:
        math = None
    return x

def def_in_branch(x):
    if x.sum() > 0:
        def g(a):
            return a * 2
    else:
        def g(a):
            return a * 3
    return g(x)

def class_in_branch(x):
    if x.sum() > 0:
        class A:
            k = x * 2
        r = A.k
    else:
        r = x
    return r

def class_reads_shared(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x
    class A:
        k = y
        def m(self):
            return y + 1
    return A().m() + A.k

def comprehension_reads(x):
    if x.sum() > 0:
        k = 2
    else:
        k = 3
    return [x * k for _ in range(2)]

def comprehension_in_block(x):
    out = []
    if x.sum() > 0:
        k = x
        out = [k + i for i in range(2)]
    return out

def lambda_default(x):
    if x.sum() > 0:
        y = x
    else:
        y = x * 2
    f = lambda a=y: a + y
    y = y + 1
    return f()

def closure_called_in_branch(x):
    y = x
    def bump():
        nonlocal y
        y = y * 2
    if x.sum() > 0:
        bump()
        z = y
    else:
        z = y + 1
    bump()
    return y, z

def closure_in_loop(x):
    y = x
    def bump():
        nonlocal y
        y = y + 1
    while y.sum() < 4:
        bump()
    return y

def names_not_in_body(x):
    y = z = x
    if x.sum() > 0:
        y = x + 1
    else:
        z = x + 2
    return y, z

def generator_names(x):
    def gen(n):
        t = n
        for i in range(3):
            if t.sum() > 0:
                t = t - 1
            yield t
    s = x * 0
    for v in gen(x):
        s = s + v
    return s

def global_in_branch(x):
    global G
    if x.sum() > 0:
        G = 1
    else:
        G = 2
    return x * G

def walrus_in_branch(x):
    if x.sum() > 0:
        print_me = (y := x * 2) + 1
    else:
        y = x
        print_me = y
    return y, print_me

def tuple_target(x):
    a, b = x, x
    for a, b in [(1, 2), (3, 4)]:
        if x.sum() > 0:
            a, b = b, a
        x = x + a - b
    return x, a, b

def loop_var_after(x):
    for i in range(3):
        if x.sum() > i:
            x = x - 1
    return x, i

def loop_var_captured(x):
    fs = []
    for i in range(3):
        fs.append(lambda: i)
        if x.sum() > 0:
            x = x + fs[0]()
    return x

def loop_var_is_name(x):
    for x in [x, x + 1]:
        if x.sum() > 0:
            x = x * 2
    return x

def loop_unbound(x):
    while x.sum() > 0:
        y = x
        x = x - 1
    return y

def for_unbound(x):
    for i in range(int(x.numel()) - 2):
        y = x
    if x.sum() > 0:
        return x
    return y

def star_target(x):
    for a, *b in [(1, 2, 3)]:
        if x.sum() > 0:
            b = [a]
        else:
            b = [a + 1]
        x = x * b[0]
    return x

def annotated(x):
    y: object
    if x.sum() > 0:
        y: object = x
    else:
        y = x + 1
    return y

def annotated_in_block(x):
    if x.sum() > 0:
        y: object
        y = x
        z: int = 3
        x = y * z
    return x

def annotated_read_outer(x):
    y = x
    if x.sum() > 0:
        def g():
            return y
        x = g()
    return x

def returns_two(x):
    if x.sum() > 0:
        return x, 1
    return -x, 2

def returns_raise(x):
    if x.sum() > 0:
        return x
    elif x.sum() < -100:
        raise ValueError("small")
    else:
        y = x * 2
        return y * y

def returns_in_with(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x
    return -x

def returns_in_try(x):
    try:
        if x.sum() > 0:
            return x
        return -x
    finally:
        x = x + 1

def returns_state(x):
    k = 0
    def count():
        return k
    if x.sum() > 0:
        k = 1
        return x, count
    k = 2
    return x, count

def returns_nested(x):
    if x.sum() > 0:
        if x.sum() > 2:
            return 1
        elif x.sum() > 1:
            return 2
        return 3
    else:
        if x.mean() > -1:
            return 4
        raise KeyError("x")

def returns_none(x, log=None):
    out = [0]
    def put(v):
        if v > 0:
            out[0] = 1
            return
        out[0] = 2
    put(x.sum())
    return x * out[0]

def returns_none_sometimes(x):
    if x.sum() > 0:
        return
    return x

def returns_none_loop(x):
    for i in range(3):
        if x.sum() > i:
            return None
    return None

def returns_in_loop(x):
    for i in range(4):
        x = x - 1
        if x.sum() < 0:
            return x, i
    return x, -1

def return_lists(x):
    if x.sum() > 0:
        return [x, 1]
    return [x * 2, 2]

def return_list_alias(x):
    a = [x]
    if x.sum() > 0:
        return a
    a.append(x)
    return a

def return_closure(x):
    if x.sum() > 0:
        return lambda: x
    return lambda: -x

def expr_blocks(x):
    out = []
    if x.sum() > 0:
        out.append(x)
    else:
        out.append(-x)
    return out[0]

def expr_blocks_value(x):
    out = [x]
    if x.sum() > 0:
        out.pop()
    else:
        out.clear()
    return len(out), x

def expr_blocks_differ(x):
    d = {}
    if x.sum() > 0:
        d.setdefault("a", x)
    else:
        len(d)
    return sorted(d), x

def expr_loop(x):
    out = []
    for i in range(3):
        out.append(x * i)
    if x.sum() > 0:
        out.reverse()
    return out

def raise_in_branch(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x

def assert_in_branch(x):
    if x.sum() > 0:
        assert x.sum() < 0, "no"
    return x

def zero_div(x):
    n = 0
    if x.sum() > 0:
        n = 1 // n
    return x

def words(x, body=2, orelse=3):
    broken = body
    for value in range(3):
        if x.sum() > value:
            broken = broken + orelse
            break
    else:
        broken = -1
    return broken, x

def while_else(x):
    n = 0
    while x.sum() > 0:
        x = x - 1
        n += 1
        if n > 2:
            break
    else:
        n = -n
    return x, n

def while_continue(x):
    n = 0
    while n < 4:
        n += 1
        if x.sum() > n:
            continue
        x = x + 1
        if x.sum() > 8:
            break
    return x, n

def nested_loops(x):
    t = 0
    for i in range(2):
        for j in range(3):
            if x.sum() > j:
                t = t + i
                break
            x = x + j
        else:
            t = t - 1
    return x, t

def del_captured(x):
    y = x
    f = lambda: y
    r = f()
    if x.sum() > 0:
        del y
        y = r + 1
    return f()

def swap(x):
    a, b = x, x + 1
    while a.sum() < 6:
        a, b = b, a + b + 1
    return a, b

def list_state(x):
    a = [x]
    if x.sum() > 0:
        a = a + [x]
    else:
        a.append(x * 2)
    return a

def with_as(x):
    import contextlib
    if x.sum() > 0:
        with contextlib.nullcontext(x * 2) as y:
            x = y
    return x

def with_as_unbound(x):
    import contextlib
    if x.sum() > 0:
        with contextlib.nullcontext(x * 2) as y:
            pass
    return y

def match_names(x):
    p = (1, 2)
    if x.sum() > 0:
        match p:
            case (a, b):
                r = a
    else:
        b = 5
        r = 0
    return b, r, x

def recursion(x, n=3):
    if n == 0:
        return x
    if x.sum() > 0:
        x = x - 1
    return recursion(x, n - 1)

def private(x):
    if x.sum() > 0:
        __y = x
    else:
        __y = x * 2
    return __y

class Private:
    def forward(self, x):
        if x.sum() > 0:
            __y = x
        else:
            __y = x * 2

        class __Inner:
            def scaled(self, x):
                __y = x
                while __y.sum() < 4:
                    __y = __y + 1
                return __y

        return __y, __Inner().scaled(x)


def private_of_a_method(x):
    return Private().forward(x)

def many(x):
    a = b = c = d = 0
    for i in range(5):
        if x.sum() > i:
            a, b = b + 1, a
        elif x.sum() < -i:
            c = c + 1
        else:
            d = d + i
    return a, b, c, d, x

def loop_reads_unbound_first(x):
    for i in range(2):
        if i == 1:
            x = x + y  # noqa: F821 # perhaps
        if x.sum() > 0:
            y = x
    return x

def shadow(x):
    y = x
    def inner(y):
        if y.sum() > 0:
            y = y * 2
        return y
    if x.sum() > 0:
        y = inner(y)
    return y

def uses_locals_inside(x):
    def show():
        a = 1
        return sorted(locals())
    if x.sum() > 0:
        n = len(show())
    else:
        n = 0
    return n, x

