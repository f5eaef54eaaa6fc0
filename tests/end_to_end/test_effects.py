"""What a path does to the world around it: staged, or refused; never done for a path that is not taken."""

from __future__ import annotations

import array
import contextlib
import io
import itertools
import random
import weakref

import numpy
import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check, same

POS, NEG = (torch.ones(3, requires_grad=True),), (torch.full((3,), -1.0, requires_grad=True),)


def generate():
    for value in range(1, 6):
        yield value


def consume(how, make):
    def f(x):
        it = make()
        if x.sum() > 0:
            how(it)
        return x * len(list(it))

    return f


def advance_first(it):
    return next(it)


CONSUMED = [
    lambda it: [value for value in it], lambda it: list(it), lambda it: sum(it), lambda it: 2 in it,
    lambda it: print(*it, end=""), lambda it: [*it], lambda it: dict(enumerate(it)), lambda it: [].extend(it),
    lambda it: it.__next__(), lambda it: list(itertools.islice(it, 2)), lambda it: next(zip([1], it)),
    lambda it: max(it), lambda it: any(map(bool, it)), advance_first,
]  # fmt: skip


@pytest.mark.parametrize("how", range(len(CONSUMED)))
@pytest.mark.parametrize("make", [lambda: iter([1, 2, 3]), generate, lambda: iter({1: 2, 3: 4}), lambda: map(abs, [1])])
def test_an_iterator_advanced_on_one_path_is_refused(how, make):
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(consume(CONSUMED[how], make))(torch.ones(3))
    assert caught.value.code == "D2S266"


def test_a_generator_sent_to_on_one_path_is_refused():
    def echo():
        value = 1
        while True:
            value = (yield value) or value

    def f(x):
        it = echo()
        next(it)
        if x.sum() > 0:
            it.send(5)
        return x * next(it)

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(3))
    assert caught.value.code == "D2S266"


def test_iterators_of_the_path_itself_are_free():
    def f(x):
        if x.sum() > 0:
            a, b = iter([1, 2])
            x = x * sum(iter([a, b])) * sum(value for value in generate()) * len(list(zip([1], generate())))
        return x

    check(f, POS, NEG)


def bytes_of():
    return bytearray(2)


WRITTEN = [
    (bytes_of, lambda o: o.append(1)), (lambda: array.array("i"), lambda o: o.append(1)),
    (io.StringIO, lambda o: o.write("a")), (lambda: io.StringIO("ab"), lambda o: o.read(1)),
    (lambda: io.BytesIO(b"a"), lambda o: o.read()),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(WRITTEN)))
def test_buffers_and_files_changed_on_one_path_are_refused(index):
    make, write = WRITTEN[index]

    def f(x):
        held = make()
        if x.sum() > 0:
            write(held)
        return x

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(3))
    assert caught.value.code == ("D2S213" if isinstance(make(), numpy.ndarray) else "D2S227")


BUFFERS = {
    "array": ("np.ones(3)", "{}[-1] = 9"), "view": ("np.ones((2, 3))[1]", "{}[0] = 5"),
    "of objects": ("np.array([1, None], dtype=object)", "{}[0] = 5"), "bytes": ("bytearray(b'abc')", "{}[-1] = 9"),
    "ints": ("array.array('i', [1, 2, 3])", "{}[-1] = 9"), "by a function": ("np.ones(3)", "change({})"),
    "by a method": ("bytearray(b'abc')", "{}.append(7)"), "file": ("io.StringIO()", "{}.write('a')"),
}  # fmt: skip
HELD = {
    "one of two": ("a = {0}\nif x[0] > 0:\n    a = {0}", "a"),
    "a copy": ("a = {0}\nif x[0] > 0:\n    a = copy.copy(a)", "a"),
    "or a list": ("a = {0}\nif x[0] > 0:\n    a = Other()", "a"),
    "in a dict": ("d = {{'k': {0}}}\nif x[0] > 0:\n    d['z'] = 1", "d['k']"),
    "in a list": ("d = [{0}]\nif x[0] > 0:\n    d.append(1)", "d[0]"),
    "in one of two lists": ("d = [{0}]\nif x[0] > 0:\n    d = [{0}]", "d[0]"),
    "in a tuple": ("d = {0}, 1\nif x[0] > 0:\n    d = {0}, 2", "d[0]"),
    "an attribute": ("d = Box({0})\nif x[0] > 0:\n    d.k = {0}", "d.k"),
    "of one of two": ("d = Box({0})\nif x[0] > 0:\n    d = Box({0})", "d.k"),
    "of an object outside": ("if x[0] > 0:\n    BOX.k = {0}\nelse:\n    BOX.k = {0}", "BOX.k"),
    "in a dict of an object": ("d = Box({{'u': {0}}})\nif x[0] > 0:\n    d.k['w'] = 3", "d.k['u']"),
    "in a list that grew": ("a, d = {0}, []\nfor _ in range(int((x > -9).sum())):\n    d.append((a, x * 1))\n"
                            "a = None", "d[0][0]"),
    "made by a loop": ("a, n = {0}, 0\nwhile n < 2 and x.sum() < 9:\n    a = {0}\n    n += 1", "a"),
    "in a closure": ("def make(v):\n    return lambda: v\ng = make({0})\nif x[0] > 0:\n    g = make({0})", "g()"),
}  # fmt: skip
ON_A_PATH = (
    "if x.sum() > 0:\n    {}", "n = 0\nwhile n < 2 and x.sum() > n:\n    {}\n    n += 1",
    "for q in [{1}]:\n    if x.sum() > 0:\n        {0}",
)  # fmt: skip
AROUND = '''import array, copy, io
import numpy as np
class Box:
    def __init__(self, k):
        self.k = k
BOX = Box(None)
class Other(list):
    def append(self, v): pass
    def write(self, v): pass
    def __setitem__(self, k, v): pass
def change(a):
    a[0] = 7
def shown(a):
    return a.getvalue() if isinstance(a, io.StringIO) else list(a)
def f(x):
'''


@pytest.mark.sample(10)
@pytest.mark.parametrize(("held", "buffer"), list(itertools.product(HELD, BUFFERS)))
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_a_buffer_that_one_path_changes_wherever_it_is(held, buffer, tmp_path):
    """As in eager, or refused: never changed where the path is not taken."""
    (make, name), (made, change) = HELD[held], BUFFERS[buffer]
    for number, place in enumerate(ON_A_PATH):
        lines = [*make.format(made).split("\n"), *place.format(change.format(name), name).split("\n"),
                 f"return x * 2, shown({name})"]  # fmt: skip
        file = tmp_path / f"form_{number}.py"
        file.write_text(AROUND + "".join(f"    {line}\n" for line in lines))
        eager, static = module_of(file).f, dy2static.to_static(module_of(file).f)
        for signs in ((1.0, 1.0, 1.0), (-1.0, -1.0, -1.0), (1.0, -2.0, -1.0), (-1.0, 3.0, 1.0)):
            x = torch.tensor(signs)
            try:
                got = static(x)
            except TraceError as error:
                assert error.code in ("D2S213", "D2S220", "D2S222", "D2S227", "D2S250", "D2S277")
                break
            same(got, eager(x))


def test_an_array_written_by_index_on_one_path():
    def f(x):
        held = numpy.zeros(2)
        if x.sum() > 0:
            held[0] = 1
        return x * float(held.sum())

    check(f, POS, NEG)


FROZEN = [
    lambda: torch.cuda.manual_seed(3), lambda: torch.get_rng_state(), random.getstate,
    lambda: torch.random.fork_rng(), lambda: contextlib.redirect_stdout(io.StringIO()), lambda: random.randbytes(2),
    lambda: numpy.random.bytes(2), lambda: FILE.write("a"), lambda: FILE.getvalue(), lambda: __import__("os").getpid(),
    lambda: __import__("os").path.exists("/"), lambda: __import__("os").urandom(3),
]  # fmt: skip
FILE = io.StringIO()


@pytest.mark.parametrize("index", range(len(FROZEN)))
def test_what_a_run_would_not_repeat_is_refused(index):
    read = FROZEN[index]

    def f(x):
        read()
        return x

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(3))
    assert caught.value.code == "D2S214"


SETTINGS = [
    lambda: torch.set_grad_enabled(False), lambda: torch.set_default_dtype(torch.float64),
    lambda: torch.set_autocast_enabled("cpu", True),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(SETTINGS)))
def test_a_setting_that_outlasts_a_path_is_refused_and_undone(index):
    change = SETTINGS[index]

    def f(x):
        if x.sum() > 0:
            change()
        return x * 2

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(3))
    assert caught.value.code == ("D2S214" if index == 1 else "D2S227")
    assert torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_grad_mode_that_a_tensor_decides_is_refused():
    def f(x):
        with torch.set_grad_enabled(bool(x.sum() > 0)):
            return x * 2

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(3))
    assert caught.value.code == "D2S212"


class Counted:
    def __init__(self):
        self.n = 0

    def __enter__(self):
        self.n += 1
        return self

    def __exit__(self, kind, error, trace):
        self.n += 10 if kind is None else 100
        return None


def test_users_managers_in_branches_and_loops():
    def branch(x):
        count = Counted()
        if x.sum() > 0:
            with count as same:
                x = x + same.n
        return x * count.n

    def loop(x):
        count = Counted()
        while x.sum() < 10:
            with count:
                x = x + 1
        return x * count.n

    def raised(x):
        count = Counted()
        try:
            with count:
                raise ValueError
        except ValueError:
            pass
        return x * count.n

    for f in (branch, loop, raised):
        check(f, POS, NEG)


def test_a_manager_cannot_swallow_the_converters_errors():
    class Everything:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return True

    def f(x):
        with Everything():
            return x.data_ptr()
        return x

    with pytest.raises(TraceError):
        dy2static.to_static(f)(torch.ones(3))


def test_no_manager_at_all():
    def f(x):
        with x.sum().item():
            return x

    with pytest.raises((TypeError, AttributeError)) as eager:  # which of them depends on Python's version
        f(torch.ones(3))
    with pytest.raises(eager.type, match="__enter__|context manager"):
        dy2static.to_static(f)(torch.ones(3))


def test_a_tensor_that_is_another_on_one_path_only():
    def f(x):
        y = x if x.sum() > 0 else x.clone()
        return x * (y is x)

    converted = dy2static.to_static(f)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(converted(x), f(x))


def test_an_attribute_that_the_class_has_where_the_object_does_not():
    class Number:
        n = 1

    class Nothing:
        n = None

    def number(x):
        a = Number()
        if x.sum() > 0:
            a.n += 1
        return x * a.n * Number.n

    def nothing(x):
        a = Nothing()
        if x.sum() > 0:
            a.n = x
        return x * 2 if a.n is None else a.n

    check(number, POS, NEG)
    check(nothing, POS, NEG)


def test_what_a_weak_reference_holds():
    class Held:
        n = 1

    def f(x):
        held = Held()
        reference = weakref.ref(held)
        if x.sum() > 0:
            reference().n = 5
        return x * held.n

    check(f, POS, NEG)


def test_other_tensors_are_others():
    def f(x):
        y = x.clone() if x.sum() > 0 else x * 2
        z = x
        for _ in range(3):
            if z.sum() < 10:
                z = z + 1
        return x * (y is x) + 2 * (x is x.view(3)) + (y is y)

    check(f, POS, NEG)


class Counter:
    def __init__(self, value):
        self.value = value
        self.hits = 0


@contextlib.contextmanager
def counted(counter, step):
    counter.hits += step
    try:
        yield counter.hits
    finally:
        counter.value = counter.value + 1


def test_generators_of_context_managers_are_converted():
    def f(x):
        counter = Counter(x)
        if x.sum() > 0:
            counter = Counter(x * 2)
            with counted(counter, 2) as hits:
                counter.value = counter.value * hits
        with counted(counter, 1) as hits:
            y = counter.value + hits
        return y, counter.value, counter.hits

    check(f, POS, NEG)
