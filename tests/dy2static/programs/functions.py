# ruff: noqa: F401, F541, F821
"""Programs of functions, closures, classes, names and stores. CASES: function -> argument tuples."""

LOG = []
COUNT = 0
TOTAL = [0]


def log(value):
    LOG.append(value)
    return value


def defaults(a, b=2, *args, c, d=4, **kw):
    if a:
        b = a
    return a, b, args, c, d, kw


def positional_only(a, b=1, /, c=2):
    if a > b:
        return c
    return a


def call_forms(f):
    args, kw = (1, 2), {"c": 3}
    return f(*args, **kw), f(0, *args, c=1), f(1, c=2, **{"e": 5}), f(*[9], *(8,), c=0)


def recursion(n):
    if n <= 1:
        return 1
    return n * recursion(n - 1)


def mutual(n):
    def even(k):
        if k == 0:
            return True
        return odd(k - 1)

    def odd(k):
        if k == 0:
            return False
        return even(k - 1)

    return even(n), even.__qualname__


def counter(n):
    count = 0

    def step(by):
        nonlocal count
        if by > 1:
            count += by
        else:
            count -= 1
        return count

    for i in range(n):
        log(step(i))
    return count


def closure_in_branch(c):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    if c:
        bump()
        n += 10
        bump()
    return n, bump(), n


def late_binding(n):
    fs = []
    for i in range(n):
        if i % 2:
            fs.append(lambda: i)
        else:
            fs.append(lambda j=i: (i, j))
    return [f() for f in fs]


def captured_loop_local(n):
    fs = []
    for i in range(n):
        sq = i * i
        fs.append(lambda: sq)
    return [f() for f in fs]


def captured_unbound(c):
    if c:
        y = 1
    return (lambda: y)()


def captured_later(c):
    def get():
        return y

    if c:
        y = 5
    return get()


def captured_deleted(c):
    y = 1
    get = lambda: y
    if c:
        del y
    return get()


def nonlocal_delete(c):
    y = 1

    def drop():
        nonlocal y
        del y

    if c:
        drop()
    return y


def nonlocal_binds(c):
    def bind():
        nonlocal y
        if c:
            y = 3

    bind()
    log("bound")
    if c:
        log(y)
    return y
    y = 0


def nested_return_in_loop(xs):
    def first(pred):
        for x in xs:
            if pred(x):
                return x
        return None

    return first(lambda v: v > 1), first(lambda v: v and v < 0)


def decorated_inside(x):
    def twice(f):
        def inner(*a):
            if a[0]:
                return f(*a) * 2
            return None

        return inner

    @twice
    def g(v):
        if v > 1:
            return v
        return -v

    return g(x)


def lambda_with_condition(x):
    f = lambda a, b=2: a if a > b else (b and not a) or -a
    return f(x), f(x, 0), f(x, b=9)


def lambda_walrus(x):
    f = lambda a: a and (y := a + 1) and y * 2
    return f(x)


def generator_inside(n):
    def gen(k):
        while k > 0:
            if k % 2:
                yield k
            k -= 1
        return "end"

    def outer():
        result = yield from gen(n)
        yield result

    return list(gen(n)), list(outer())


def generator_expression(xs):
    w = 2
    g = (x * w for x in xs if x > 1)
    w = 3
    return list(g), sum(x for x in xs), any(log(x) for x in xs)


def comprehensions(xs):
    return (
        [x * y for x in xs if x for y in range(x) if y % 2 == 0],
        {x % 3 for x in xs},
        {log(x): log(x + 1) for x in xs},
        [[y for y in range(x)] for x in xs],
        [x if x > 1 else -x for x in xs if x and x < 9 or x == 0],
    )


def comprehension_scope(xs):
    x = "outer"
    r = [x for x in xs]
    return r, x


def comprehension_unbound(c):
    if c:
        k = 2
    return [k * i for i in range(2)]


def comprehension_in_condition(xs):
    out = 0
    while len([x for x in xs if x > out]) > 1:
        out += 1
    if [x for x in xs if x > 5]:
        out = -out
    return out


def comprehension_in_lambda(xs):
    f = lambda k: [x * k for x in xs if x > k]
    return f(1)


def comprehension_class(c):
    class K:
        items = [1, 2]
        double = [i * 2 for i in items]
        if c:
            extra = 5

    return K.double, hasattr(K, "extra")


def class_reads_locals(c):
    n = 3
    if c:
        base = object
    else:
        base = list

    class K(base):
        m = n

        def get(self):
            return n if c else self.m

    n = 4
    return K.m, K().get(), K.__qualname__, K.get.__qualname__


def class_reads_unbound(c):
    if c:
        n = 1

    class K:
        m = n

    return K.m


def class_nonlocal(c):
    n = 1

    class K:
        nonlocal n
        n = 2

    if c:
        n += 1
    return n


def global_counter(c):
    global COUNT
    if c:
        COUNT += 1
    else:
        COUNT = 0
    return COUNT


def global_declared_in_branch(c):
    if c:
        global COUNT
        COUNT = 7
    return COUNT


def global_in_loop(n):
    global COUNT
    for COUNT in range(n):
        if COUNT > 1:
            break
    a, COUNT = COUNT, COUNT + 10
    return a, COUNT


def global_nested(n):
    global COUNT

    def inner():
        global COUNT
        COUNT = n
        return COUNT

    if n:
        inner()
    return COUNT


def attribute_stores(box, n):
    box.a = log(1)
    box.b, box.c = log((2, 3))
    box.a += n
    if n:
        box.d = n
        del box.c
    return box


def subscript_stores(d, n):
    d[log("k")] = log(n)
    d["l"], d["m"] = "d", n
    d["k"] += 1
    i = 0
    if n:
        i, d[i] = 1, "first"
        del d["m"], d["k"]
    return i, sorted(map(str, d))


def store_order(n):
    xs = [0, 0, 0]

    def at(i):
        return log(("at", i)) and xs

    at(0)[log(0)] = log("value")
    at(1)[log(1)] = at(2)[log(2)] = log("both")
    at(0)[log(1)], at(1)[log(2)] = log("p"), log("q")
    at(3)[log(0)] += log("x")
    at(4)[log(0) : log(1)] += log(["y"])
    return xs


def slices(xs):
    ys = list(xs)
    ys[1:2] = [9, 9]
    ys[::2] = ys[::2]
    del ys[-1:]
    return ys, xs[:], xs[1:], xs[:-1], xs[::-1], xs[log(0) : log(2) : log(1)]


def augmented(a, b):
    c = a
    a += b
    c *= 2
    return a, c


def augmented_in_place(xs):
    ys = xs
    ys += [1]
    if len(ys) > 2:
        ys *= 2
    return xs, ys, xs is ys


def augmented_all(a, b):
    r = []
    x = a
    x -= b
    r.append(x)
    x *= 3
    x //= 2
    r.append(x)
    x %= 5
    x **= 2
    r.append(x)
    x <<= 2
    x >>= 1
    x |= 8
    x &= 12
    x ^= 5
    r.append(x)
    x /= 2
    return r, x


def multiple_assignment(n):
    a = b = c = [n]
    (d, e), *f = (n, 2), 3, 4
    [g, h] = "xy"
    return a is b is c, d, e, f, g, h


def evaluation_order(n):
    return log("f") and max(log(n), *log((2, 3)), key=log(abs)), {log("k"): log("v")}, log(1) + log(2) * log(3)


def strings(x, w):
    name = "abc"
    a = f"{x!r:>{w}}|{name!s}|{x:{w}}|{{}}|{name!a:^{w + 1}}"
    b = f"{x=}" f"{'nested ' + f'{name[0]}'}" "tail"
    if x:
        b += f"{(lambda: x)()}"
    return a, b, f"", f"plain"


def unbound_builtin_shadow(c):
    if c:
        len = lambda v: "mine"
    return len([1])


def print_to(c):
    if c:
        print("a", 1, sep="-", end="!\n")
    print()


def frame_readers(x):
    return globals() is log.__globals__, type(breakpoint).__name__


def uses_locals(x):
    if x:
        y = 1
    return sorted(locals())


def del_many(d, box):
    box.v = 1
    a = b = 2
    del a, (d["k"], box.v), [b]
    return d, box


def star_expressions(xs):
    return [*xs, 1], (*xs, *xs), {*xs}, {**{"a": 1}, "b": 2}


def conditional_import_error(c):
    try:
        if c:
            import no_such_module_at_all
    except ImportError as e:
        return e.name
    return None


def deep_elif(n):
    if n == 0: r = 0
    elif n == 1: r = 1
    elif n == 2: r = 4
    elif n == 3: r = 9
    elif n == 4: r = 16
    elif n == 5: r = 25
    elif n == 6: r = 36
    else: r = None
    return r


class Box:
    def __init__(self, **kw):
        self.__dict__.update(kw)

    def __eq__(self, other):
        return type(other) is Box and self.__dict__ == other.__dict__


def show(*args, **kw):
    return args, sorted(kw.items())


BOTH = [(True,), (False,)]
NUMBERS = [(n,) for n in (-1, 0, 1, 2, 3, 6)]
LISTS = [([],), ([1],), ([3, 1, 2],), ([0, 9, 7],)]

CASES = {
    **dict.fromkeys(
        [
            closure_in_branch, captured_unbound, captured_later, captured_deleted, nonlocal_delete, nonlocal_binds,
            comprehension_unbound, comprehension_class, class_reads_locals, class_reads_unbound, class_nonlocal,
            global_counter, global_declared_in_branch, unbound_builtin_shadow, print_to, conditional_import_error,
        ],
        BOTH,
    ),
    **dict.fromkeys(
        [
            recursion, counter, late_binding, captured_loop_local, decorated_inside, lambda_with_condition,
            lambda_walrus, generator_inside, global_in_loop, global_nested, store_order, multiple_assignment,
            evaluation_order, frame_readers, uses_locals, deep_elif,
        ],
        NUMBERS,
    ),
    **dict.fromkeys(
        [
            nested_return_in_loop, generator_expression, comprehensions, comprehension_scope,
            comprehension_in_condition, comprehension_in_lambda, slices, augmented_in_place, star_expressions,
        ],
        LISTS,
    ),
    mutual: [(0,), (3,), (4,)],
    call_forms: [(show,), (lambda *a, **k: a,), (lambda a: a,)],
    positional_only: [(0,), (2,), (3, 4, 5)],
    attribute_stores: [(Box(), 0), (Box(), 2)],
    subscript_stores: [({}, 0), ({}, 2), ([], 1)],
    augmented: [(1, 2), ([1], [2]), ("a", "b"), ([1], 2)],
    augmented_all: [(7, 2), (100, 3)],
    strings: [(1, 8), (0, 3), (2.5, 10)],
    del_many: [({"k": 1}, Box()), ({}, Box())],
}  # fmt: skip
