"""`convert`: everything about the function but its code stays; closures are shared; code converts once."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import types
import weakref

import pytest

from dy2static import conversion
from dy2static.conversion import convert, is_converted, is_generated_code, reason_left_alone
from dy2static.errors import SourceUnavailable


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Annotation:
    pass


def sample(a: Annotation, b=[], *, c: int = 3) -> "str":
    """What it says."""
    if a:
        b = b + [a]
    return b, c


sample.mark = object()


def test_metadata_is_kept() -> None:
    new = convert(sample)
    assert new is not sample and is_converted(new) and not is_converted(sample)
    assert new(1) == ([1], 3) and new(0, c=4) == ([], 4)
    assert new.__defaults__ is sample.__defaults__ and new.__kwdefaults__ == sample.__kwdefaults__
    assert new.__globals__ is sample.__globals__
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(new, name) == getattr(sample, name)
    assert new.mark is sample.mark
    assert inspect.signature(new) == inspect.signature(sample)
    assert new.__code__.co_name == "sample"
    assert "def sample(" in new.__dy2static_source__ and "_d2s.if_stmt" in new.__dy2static_source__


def test_source_of_the_generated_code_can_be_opened() -> None:
    new = convert(sample)
    assert inspect.getsource(new.__code__).strip().startswith("def sample(")


def test_converting_again_changes_nothing() -> None:
    new = convert(sample)
    assert convert(new) is new


def test_code_converts_once() -> None:
    assert convert(sample).__code__ is convert(sample).__code__


def test_wrapper_loses_no_call_and_does_not_point_past_itself() -> None:
    calls = []

    @decorated
    def inner(x):
        calls.append(x)
        return x if x else -1

    new = convert(inner)
    assert not hasattr(new, "__wrapped__") and hasattr(inner, "__wrapped__")
    assert new(0) == -1 and calls == [0]


def make_counter(start):
    count = start

    def bump(by=1):
        nonlocal count
        if by:
            count += by
        return count

    def read():
        return count

    return bump, read


def test_closure_cells_are_shared_both_ways() -> None:
    bump, read = make_counter(10)
    new_bump, new_read = convert(bump), convert(read)
    assert new_bump(5) == 15 and read() == 15 and bump(1) == 16 and new_read() == 16
    index = new_bump.__code__.co_freevars.index("count")
    assert new_bump.__closure__[index] is bump.__closure__[bump.__code__.co_freevars.index("count")]


def test_closures_over_one_code_share_the_conversion() -> None:
    (bump, _), (other, _) = make_counter(0), make_counter(100)
    new, new_other = convert(bump), convert(other)
    assert new.__code__ is new_other.__code__
    assert (new(1), new_other(1), new(1)) == (1, 101, 2)


def test_empty_cell_may_be_filled_later() -> None:
    def outer():
        def inner(x):
            if x:
                return later
            return None

        new = convert(inner)
        later = "now"
        return new(1)

    assert outer() == "now"


def test_empty_cell_raises_as_python_does() -> None:
    def outer():
        def inner(x):
            nonlocal later
            if x:
                log = later
            later = 1
            return log

        yield inner
        later = 2

    inner = next(outer())
    with pytest.raises(NameError) as expected:
        inner(1)
    with pytest.raises(NameError) as actual:
        convert(inner)(1)
    assert (actual.type, str(actual.value)) == (expected.type, str(expected.value))


class Base:
    __secret = "base"

    def value(self, x):
        return ("Base", x)

    @classmethod
    def make(cls, x):
        return (cls.__name__, x)


class Middle(Base):
    def value(self, x):
        if x > 0:
            return ("Middle", *super().value(x - 1))
        return super().value(x)


class Leaf(Middle):
    __secret = "leaf"

    def __init__(self, **kw):
        self.__private = 0
        for name in kw:
            setattr(self, name, kw[name])

    def value(self, x):
        parts = [super(Leaf, self).value(x), [super().value(i) for i in range(0)]]
        if x:
            parts.append(super().value(x))
        return parts

    def secrets(self, __x=1):
        self.__private += __x

        class Inner:
            __secret = "inner"

            def get(self, outer):
                if outer:
                    return self.__secret
                return None

        if __x:
            __local = self.__secret, Inner().get(__x), type(self)._Base__secret
        return __local, self.__private, sorted(vars(self))

    @classmethod
    def make(cls, x):
        if x:
            return super().make(x)
        return __class__

    def first_rebound(self, x):
        if x:
            self = x
        return super().value(1)

    def in_lambda(self, x):
        f = lambda me: super().value(x) if me else None
        return f(self)

    def no_arguments(*args):
        if args:
            return super().value(1)


class Heir(Leaf):
    def value(self, x):
        if x > 1:
            x = super().value(x)
        return ["Heir", x]


METHODS = ["value", "secrets", "in_lambda", "no_arguments"]


@pytest.mark.parametrize("cls", [Middle, Leaf, Heir])
@pytest.mark.parametrize("x", [0, 1, 3])
def test_super_through_three_levels(cls: type, x: int) -> None:
    expected = cls().value(x)
    originals = {owner: owner.value for owner in (Base, Middle, Leaf, Heir)}
    try:
        for owner, method in originals.items():
            owner.value = convert(method)
        assert cls().value(x) == expected
    finally:
        for owner, method in originals.items():
            owner.value = method


@pytest.mark.parametrize("argument", [0, 1])
def test_private_names(argument: int) -> None:
    assert convert(Leaf.secrets)(Leaf(), argument) == Leaf().secrets(argument) if argument else True
    with pytest.raises(UnboundLocalError, match="_Leaf__local") as expected:
        Leaf().secrets(0)
    with pytest.raises(UnboundLocalError, match="_Leaf__local") as actual:
        convert(Leaf.secrets)(Leaf(), 0)
    assert str(actual.value) == str(expected.value)
    assert convert(Leaf.secrets)(Leaf(), _Leaf__x=2)[1] == 2


@pytest.mark.parametrize("name", ["first_rebound", "in_lambda", "no_arguments"])
@pytest.mark.parametrize("x", [0, Heir(), Leaf()])
def test_odd_uses_of_super(name: str, x: object) -> None:
    def outcome(function):
        try:
            return function(Leaf(), x) if name != "no_arguments" else function(Leaf())
        except Exception as error:  # the original's own error is the expectation
            return type(error), str(error)

    method = getattr(Leaf, name)
    assert outcome(convert(method)) == outcome(method)


def test_class_methods_and_class_cell() -> None:
    function = Leaf.make.__func__
    new = convert(function)
    assert new(Heir, 5) == Leaf.make.__func__(Heir, 5) == ("Heir", 5)
    assert new(Heir, 0) is Leaf


def test_recursion_finds_the_global() -> None:
    new = convert(factorial)
    assert new(5) == 120 and new.__code__.co_name == "factorial"


def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)


def generator(x):
    return g((yield x))  # noqa: F821


async def coroutine(x):
    if x:
        return x


def looks_at_itself(x):
    if x:
        y = 1
    return sorted(eval("locals()"))


@pytest.mark.parametrize("function", [generator, coroutine, looks_at_itself])
def test_left_alone(function: types.FunctionType) -> None:
    assert convert(function) is function


def test_why_it_is_left_alone() -> None:
    reasons = [reason_left_alone(f) for f in (generator, coroutine, looks_at_itself, factorial)]
    assert reasons == [
        "it is a generator that yields inside an expression", "it is a coroutine",
        "it calls eval(), which looks at its variables", "",
    ]  # fmt: skip


def test_finally_that_leaves_is_left_alone() -> None:
    namespace: dict[str, object] = {}
    del namespace

    def f(xs):
        for x in xs:
            try:
                if x:
                    return x
            finally:
                break
        return "end"

    assert convert(f) is f and f([1]) == "end"


def test_lambdas() -> None:
    f, g = lambda x: 1 if x else 2, lambda x: x and 3
    new = convert(f)
    assert (new(0), new(1), convert(g)(5), convert(g)(0)) == (2, 1, 3, 0)
    assert new.__name__ == "<lambda>" and new.__qualname__ == f.__qualname__


def test_nested_functions_have_their_names() -> None:
    new = convert(outer_names)
    assert new(1) == outer_names(1)
    inner = new(1)[0]
    assert "_d2s" not in inner


def outer_names(x):
    class K:
        def method(self):
            pass

    if x:

        def g():
            def h():
                pass

            return h

    return g.__qualname__, g().__qualname__, g().__code__.co_name, K.__qualname__, K.method.__qualname__


def test_functions_in_comprehensions_have_their_names() -> None:
    """Python says in them what kind of comprehension they are in, where that is a function to it."""
    expected, found = names_in_comprehensions(2), convert(names_in_comprehensions)(2)
    assert found == expected
    assert "genexpr" in found[3] and len(set(found)) > 6


def names_in_comprehensions(n):
    def listcomp():
        return [lambda: n for _ in range(n)]

    class K:
        made = [lambda: n for _ in (1, 2)]

        def method(self):
            return {(lambda: n) for _ in range(n)}.pop()

    found = [
        [lambda: n for _ in range(n)][0], {k: (lambda: n) for k in range(n)}[0], {(lambda: n) for _ in range(n)}.pop(),
        next((lambda: n) for _ in range(n)), [[lambda: n for _ in range(n)] for _ in range(n)][0][1],
        list([lambda: n for _ in range(n)] for _ in range(n))[1][0], [(lambda: (lambda: n)) for _ in range(n)][0](),
        (lambda: [lambda: n for _ in range(n)])()[0], [one for one in [lambda: n] for _ in range(n) if n][0],
        listcomp, listcomp()[0], K.made[0], K().method(),
    ]  # fmt: skip
    if n > 1:
        found += [lambda: [lambda: n for _ in range(n)] for _ in range(n)][0]()
    return [one.__qualname__ for one in found]


def test_nested_functions_count_as_converted() -> None:
    new = convert(returns_nested)
    assert is_converted(new(1)) and is_generated_code(new(1).__code__)
    assert not is_converted(returns_nested(1)) and not is_converted(len) and not is_converted(3)


def returns_nested(x):
    def inner(y):
        if y:
            return x
        return None

    return inner


def test_no_source() -> None:
    namespace: dict[str, types.FunctionType] = {}
    exec("def f(x):\n    return x", namespace)
    with pytest.raises(SourceUnavailable):
        convert(namespace["f"])


@pytest.mark.parametrize("value", [len, Leaf, Leaf().value, 3, functools.partial(sample)])
def test_only_functions(value: object) -> None:
    with pytest.raises(TypeError, match="takes a Python function"):
        convert(value)  # type: ignore[arg-type] # that is the point


def test_threads_get_one_conversion() -> None:
    results = []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        results.append(convert(for_threads).__code__)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and len(set(map(id, results))) == 1


def for_threads(x):
    while x:
        x -= 1
    return x


def test_dead_code_is_forgotten(tmp_path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    namespace: dict[str, types.FunctionType] = {"__name__": "module", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    function = namespace.pop("f")
    assert convert(function)(0) == 2
    alive = weakref.ref(function.__code__)
    gc.collect()  # what other tests left
    before = len(conversion._cache)
    namespace.clear()
    del function
    gc.collect()
    assert alive() is None and len(conversion._cache) == before - 1


def test_future_flags_are_kept() -> None:
    flag = sample.__code__.co_flags & inspect.CO_NESTED
    assert flag == 0
    new = convert(sample)
    wanted = sample.__code__.co_flags & 0x1000000
    assert wanted and new.__code__.co_flags & 0x1000000 == wanted
