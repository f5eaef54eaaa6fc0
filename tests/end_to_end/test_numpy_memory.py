"""Memory that arrays, buffers and tensors share inside a converted function, whoever writes it."""

from __future__ import annotations

import array
import copy
import itertools
import linecache
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dy2static
from dy2static import InputSpec, not_to_static, to_static
from runtime.errors import TraceError
from tests.oracle import same

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


@not_to_static
def made_elsewhere() -> np.ndarray[Any, Any]:
    return np.array([1.0, 2.0, 3.0])


def outcome(function: Callable[..., Any], x: torch.Tensor, times: int = 3) -> list[Any]:
    """What calls give; each result is written by the caller before the next."""
    found = []
    for _ in range(times):
        given = x.clone()
        result = function(given)
        found.append((_copied(result), given))
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(one, torch.Tensor):
                one.detach().add_(1)
            elif isinstance(one, np.ndarray) and one.flags.writeable:
                one *= 2
        found.append((_copied(result), given.clone()))
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_copied, value))
    return value.clone() if isinstance(value, torch.Tensor) else copy.copy(value)


def check(function: Callable[..., Any], **options: Any) -> None:
    static = to_static(function, **options)
    for scale in (1.0, -2.0, 1.0):
        same(outcome(static, X * scale), outcome(function, X * scale))


MAKERS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: np.zeros(3), "array": lambda: np.array([1.0, 2.0, 3.0]), "sum": lambda: np.ones(3) + 1,
    "copy": lambda: np.arange(3.0).copy(), "elsewhere": made_elsewhere,
    "method": lambda: np.arange(3).astype("float64"),
}  # fmt: skip
SHOWING = {
    "from_numpy": torch.from_numpy, "as_tensor": torch.as_tensor, "asarray": torch.asarray,
    "from_dlpack": torch.from_dlpack, "frombuffer": lambda a: torch.frombuffer(a, dtype=torch.float64),
    "tensor": torch.tensor,
}  # fmt: skip


def written_through_the_tensor(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t = show(a)
    t.add_(1)
    return x + float(a.sum()) if x.sum() > 0 else x


def written_on_a_path(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t = show(a)
    if x.sum() > 0:
        t[1] = 7
    return x + show(a), t


def written_in_a_loop(make: Any, show: Any, x: Any) -> Any:
    a = make()
    n = 0
    while n < x.sum():
        t = show(a)
        t += n
        n += 1
    return x + show(a)


def array_written_later(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t = show(a)
    y = x + t
    a[0] = 5
    return (y, x + t, t) if x.sum() > 0 else (y, t)


def array_written_on_a_path(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t = show(a)
    if x.sum() > 0:
        a[1:] = 4
    else:
        a += 2
    return x * t, a


def both_leave(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t = show(a)
    return (x + t, t, a) if x.sum() > 0 else (x, t, a)


def two_names(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t, u = show(a), show(a)
    t += x
    return u * 2 if x.sum() > 0 else u


def in_a_dict(make: Any, show: Any, x: Any) -> Any:
    held: dict[str, Any] = {"a": make()}
    held["t"] = show(held["a"])
    held["t"] *= x
    return held["a"].tolist() if x.sum() > 0 else held["a"]


def only_read(make: Any, show: Any, x: Any) -> Any:
    a = make()
    t = show(a)
    total = 0.0
    for one in a:
        total += one
    return x * t + total if x.sum() > 0 else t


@pytest.mark.parametrize("use", [
    written_through_the_tensor, written_on_a_path, written_in_a_loop, array_written_later, array_written_on_a_path,
    both_leave, two_names, in_a_dict, only_read])  # fmt: skip
@pytest.mark.parametrize("show", list(SHOWING))
def test_what_an_array_of_the_function_shares(show: str, use: Any) -> None:
    for maker in MAKERS if show == "from_numpy" else ("zeros",):
        if show == "frombuffer" and use not in (only_read, both_leave):
            continue  # refused, below
        if show == "frombuffer" and use is both_leave:
            continue
        make = MAKERS[maker]
        check(lambda x, make=make: use(make, SHOWING[show], x))


def views(x: torch.Tensor) -> Any:
    a = np.zeros((2, 3))
    t = torch.from_numpy(a[1])
    t += x
    u = torch.from_numpy(a.T)
    return (u, a) if x.sum() > 0 else (a, t)


def layouts(x: torch.Tensor) -> Any:
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    t = torch.from_numpy(a)
    t[0] += x
    return (a, t.stride(), t) if x.sum() > 0 else (t, t.stride(), a)


def empty(x: torch.Tensor) -> Any:
    a = np.zeros((0, 3))
    t = torch.from_numpy(a)
    t += x
    return t, a


def decides(x: torch.Tensor) -> Any:
    """What Python reads of an array that nobody writes is no value of the run."""
    sizes = np.array([1, 3])
    t = torch.from_numpy(sizes)
    y = x.reshape(tuple(sizes))
    return y * t.sum() if x.sum() > 0 else y


def of_copies(x: torch.Tensor) -> Any:
    a = np.zeros(3)
    t = torch.tensor(a)
    u = torch.from_numpy(a.copy())
    t += 1
    a[0] = 3
    u += x
    return (t, u, a) if x.sum() > 0 else (a, t)


def fresh_without_a_name(x: torch.Tensor) -> Any:
    t = torch.from_numpy(np.arange(3.0))
    t += x
    return t if x.sum() > 0 else t * 2


def buffer_without_writes(x: torch.Tensor) -> Any:
    t = torch.frombuffer(bytearray(b"\x01\x02\x03"), dtype=torch.uint8)
    return (x + t, t) if x.sum() > 0 else (x, t)


def bytes_inside(x: torch.Tensor) -> Any:
    t = torch.frombuffer(memoryview(bytearray(16))[8:], dtype=torch.float64)
    return x + t if x.sum() > 0 else x


def in_lists_that_grow(x: torch.Tensor) -> Any:
    a, log, others = x.numpy() * 2, [], []
    for _ in range(int((x > 1).sum())):
        log.append(a + 1)
    log.append(a)
    if x.sum() > 0:
        others.append(2)
    others.append(a)
    return log, others, a, a.sum(), [a.max()]


@pytest.mark.parametrize("function", [
    in_lists_that_grow, views, layouts, empty, decides, of_copies, fresh_without_a_name, buffer_without_writes,
    bytes_inside])  # fmt: skip
def test_other_ways(function: Any) -> None:
    check(function)


TABLE = np.arange(3.0)
BUFFER = bytearray(24)


class Holder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = np.array([1.0, 2.0, 3.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = torch.from_numpy(self.table)
        if x.sum() > 0:
            t += x
        return t


def of_global(x: torch.Tensor) -> Any:
    t = torch.from_numpy(TABLE)
    t[1] += 1
    return (x + t, t) if x.sum() > 0 else x - t


def of_buffer(x: torch.Tensor) -> Any:
    t = torch.frombuffer(BUFFER, dtype=torch.float64)
    t += 1
    return x + t if x.sum() > 0 else t


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("function", [of_global, of_buffer])
def test_memory_from_outside_is_written(function: Any) -> None:
    found = []
    for one in (function, to_static(function)):
        TABLE[:] = np.arange(3.0)
        BUFFER[:] = bytes(24)
        results = [outcome(one, X * scale, 2) for scale in (1.0, -2.0, 1.0)]
        found.append((results, TABLE.copy(), bytes(BUFFER)))
    same(found[1], found[0])


COUNTED, LOGGED = np.zeros(2), array.array("i", [1])


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_memory_from_outside_is_written_once_where_the_trace_is_made_again() -> None:
    def function(x: torch.Tensor, k: float) -> Any:
        COUNTED[0] += 1
        LOGGED.append(3)
        made = np.zeros(2)  # an array of the Program, as the next trace knows
        t = torch.from_numpy(made)
        made += 2
        return x * k + t

    found = []
    for called in (function, to_static(function)):
        COUNTED[:], LOGGED[:] = 0, array.array("i", [1])
        results = [called(torch.ones(2, dtype=torch.float64), k) for k in (1, 2, 3, 4, 4.5)]
        found.append((results, COUNTED.copy(), LOGGED.tolist()))
    same(found[1], found[0])


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_another_array_of_the_same_content() -> None:
    found = []
    for module in (Holder(), to_static(Holder())):
        tables, results = [], []
        for scale in (1.0, 1.0, -1.0, 1.0):
            module.table = np.array([1.0, 2.0, 3.0])
            tables.append(module.table)
            results.append(module(X * scale))
        found.append(([one.copy() for one in tables], results))
    same(found[1], found[0])


def buffer_written(x: torch.Tensor) -> Any:
    b = bytearray(24)
    t = torch.frombuffer(b, dtype=torch.float64)
    t += x
    return len(bytes(b).strip(b"\0"))


def buffer_changed(x: torch.Tensor) -> Any:
    b = bytearray(24)
    t = torch.frombuffer(b, dtype=torch.float64)
    b[3] = 1
    return x + t


def buffer_leaves(x: torch.Tensor) -> Any:
    b = array.array("d", [1.0, 2.0, 3.0])
    return x + torch.frombuffer(b, dtype=torch.float64), b


def array_inside_a_list(x: torch.Tensor) -> Any:
    arrays = list(map(np.zeros, [3, 3]))
    t = torch.from_numpy(arrays[0])
    t += x
    return float(arrays[0].sum()) + x


@pytest.mark.parametrize("function", [buffer_written, buffer_changed, buffer_leaves])
def test_what_is_no_array_is_refused(function: Any) -> None:
    with pytest.raises(TraceError) as caught:
        to_static(function)(X)
    assert caught.value.code == "D2S222" and "frombuffer" in caught.value.location.text
    check(lambda x: torch.frombuffer(bytearray(24), dtype=torch.float64).clone().add_(x))


def test_an_array_whose_making_nobody_saw() -> None:
    try:
        check(array_inside_a_list)
    except TraceError as error:
        assert error.code == "D2S222"


def test_saved(tmp_path: Path) -> None:
    for number, function in enumerate((fresh_without_a_name, both_leave_of_zeros)):
        dy2static.save(to_static(function), tmp_path / str(number), [InputSpec([3], "float64", "x")])
        loaded = dy2static.load(tmp_path / str(number))
        for scale in (1.0, -1.0):
            same(outcome(loaded, X * scale), outcome(function, X * scale))


def both_leave_of_zeros(x: torch.Tensor) -> Any:
    return both_leave(MAKERS["zeros"], torch.from_numpy, x)


# -- values of the run in arrays that the function makes


def added(x: torch.Tensor) -> Any:
    a = np.zeros(3)
    b = a
    a += x.numpy()
    return a, b


def added_to_a_view(x: torch.Tensor) -> Any:
    a = np.zeros(3)
    v = a[1:]
    v += x.numpy()[1:]
    return a


def added_in_a_list(x: torch.Tensor) -> Any:
    a = np.zeros(3)
    held = [a]
    held[0] -= x.numpy()
    return held, a


def multiplied(x: torch.Tensor) -> Any:
    a = np.array([1.0, 2.0, 3.0])
    a *= float(x.sum())
    return a


def filled(x: torch.Tensor) -> Any:
    a = np.zeros((3, 2))
    for i, row in enumerate(x):
        a[i] = row.item()
    a[:, 1] = x.numpy()
    return torch.from_numpy(a), a.sum()


def filled_in_a_loop(x: torch.Tensor) -> Any:
    a = np.zeros(3)
    n = 0
    while n < 3 and n < x.sum():
        a[n] = float(x[n]) + n
        n += 1
    return a


@pytest.mark.parametrize("function", [
    added, added_to_a_view, added_in_a_list, multiplied, filled, filled_in_a_loop])  # fmt: skip
def test_values_of_the_run_are_written(function: Any) -> None:
    check(function)


CHOSEN = {
    "made": ("np.ones(3)", "a + 1"), "of the run": ("np.ones(3)", "x.numpy() * 2"),
    "of both": ("x.numpy() * 1", "a - 1"),
    "other dtype": ("np.ones(3)", "np.ones(3, np.float32)"), "scalar": ("np.float64(2)", "np.ones(3)"),
    "number": ("np.ones(3)", "2.0"), "number of the run": ("x.sum().item()", "np.ones(3)"),
    "list": ("[1.0]", "np.ones(3)"), "view": ("np.ones((2, 3))[0]", "np.zeros((2, 3))[1]"),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("chosen", list(CHOSEN))
def test_values_of_the_run_are_written_to_one_of_two(chosen: str, tmp_path: Path) -> None:
    """In place, so that every name sees it; of what is no array, another one is made."""
    first, second = CHOSEN[chosen]
    values = ("x.numpy()", "x.numpy()[:1]", "x[0].item()", "x.numpy().sum()")
    for number, (op, value) in enumerate(itertools.product(("+=", "*=", "-="), values)):
        path = tmp_path / f"form_{number}.py"
        path.write_text(f"def f(x):\n    a = {first}\n    if x.sum() > 0:\n        a = {second}\n    b = a\n"
                        f"    if x[0] < 3:\n        a {op} {value}\n    return a, b\n")  # fmt: skip
        names: dict[str, Any] = {"np": np, "torch": torch}
        exec(compile(path.read_text(), str(path), "exec"), names)
        for scale in (1.0, -2.0):
            _as_eager_or_refused(names["f"], f"{op} {value}", X * scale)


def test_they_are_not_written_to_an_array_from_outside() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        table = TABLE
        table += x.numpy()
        return x * 2

    with pytest.raises(TraceError) as caught:
        to_static(function)(X)
    assert caught.value.code == "D2S213" and caught.value.location is not None


# -- views of arrays that the function makes

VIEWS = ("np.ones(5)[1:4]", "np.stack([np.ones(3), np.ones(3)])[0]", "np.eye(3)[1]", "np.ones((3, 1)).T[0]",
         "np.ones((3, 1)).reshape(3)", "(np.ones(3) * 1)[:]", "np.split(np.ones(6), 2)[1]", "np.zeros((2, 3))[..., 1]",
         "np.arange(12.0).reshape(3, 4)[1][1:]", "list(np.ones((2, 3)))[0]", "np.ones(3)[::-1]")  # fmt: skip
CHANGES = ("a *= 2", "a += np.ones(len(a))", "a[0] = 5", "a[1:] = a[1:] * 2", "np.add(a, 1, out=a)", "a.fill(3)",
           "a.sort()", "a[a > 0] = 0", "np.copyto(a, 4)", "a -= x[: len(a)].numpy()", "a[0] = x[0].item()",
           "change(a)")  # fmt: skip
PLACES = (
    "if x.sum() > 0:\n    {}",
    "if x.sum() > 0:\n    x = x + 1\nelse:\n    {}",
    "for _ in range(int((x > 0).sum())):\n    {}",
    "n = 0\nwhile n < 2 and (x * n).sum() < 1:\n    {}\n    n += 1",
    "if x.sum() > 0:\n    if x[0] > 0:\n        {}",
    "[change(a) for _ in range(int((x > 0).sum()))]\n{}",
)  # fmt: skip


@pytest.mark.sample(20)
@pytest.mark.parametrize(("view", "change"), list(itertools.product(VIEWS, CHANGES)))
def test_views_are_written_on_a_path(view: str, change: str, tmp_path: Path) -> None:
    """Whoever else has the memory, or nobody: it is the array that the view is of which is the Program's then."""
    for number, place in enumerate(PLACES):
        named = (number + len(view) + len(change)) % 2 == 0
        lines = [f"held = {view}", "a = held" if named else "a, held = held, None", *place.format(change).split("\n"),
                 "return a, held, torch.from_numpy(a) * 2"]  # fmt: skip
        path = tmp_path / f"form_{number}.py"
        path.write_text("def change(a):\n    a[-1] = 9\ndef f(x):\n" + "".join(f"    {line}\n" for line in lines))
        names: dict[str, Any] = {"np": np, "torch": torch}
        exec(compile(path.read_text(), str(path), "exec"), names)
        check(names["f"])


# -- written arrays

KEYS: dict[str, Callable[[Any], Any]] = {
    "number": lambda a: 1, "from the end": lambda a: -1, "slice": lambda a: slice(0, 2),
    "step": lambda a: slice(0, 3, 2),
    "all": lambda a: slice(None), "dots": lambda a: ..., "new": lambda a: (None, 0), "mask": lambda a: a > 1,
    "pair": lambda a: (0, slice(1, None)), "item": lambda a: (0, 1), "run": lambda a: int(a.sum()) % 2,
    "slice of the run": lambda a: slice(int(a.sum()) % 2, None),
    "backwards": lambda a: slice(None, None, -1), "places": lambda a: [0, 1], "array of places": lambda a: a.argsort(),
    "beyond": lambda a: 9, "mask of Python": lambda a: np.arange(len(a)) > 0,
}  # fmt: skip
VALUES: dict[str, Callable[[Any], Any]] = {
    "int": lambda a: 2, "float": lambda a: 2.75, "bool": lambda a: True, "huge": lambda a: 1e300,
    "nan": lambda a: np.nan, "complex": lambda a: 1j, "number of the run": lambda a: float(a.sum()),
    "whole of the run": lambda a: int(a.sum()), "scalar": lambda a: a.max(), "array": lambda a: a[..., :1],
    "same": lambda a: a * 2, "constant": lambda a: np.array([5.0]), "itself": lambda a: a[..., ::1],
    "text": lambda a: "x", "none": lambda a: None, "float32": lambda a: np.float32(3),
}  # fmt: skip


DTYPES = ["float64", "float32", "int64", "int32", "bool", "uint8"]
OPERATORS = ["+=", "-=", "*=", "/=", "//=", "**=", "%=", "&=", "|=", "<<="]


def written(key: str, value: str) -> Callable[[torch.Tensor], Any]:
    def function(x: torch.Tensor) -> Any:
        a = x.clone().numpy()
        before = a.copy()
        a[KEYS[key](a)] = VALUES[value](a)
        return a, before, a.sum()

    return function


def augmented(op: str, value: str) -> Callable[[torch.Tensor], Any]:
    space: dict[str, Any] = {"VALUES": VALUES}
    source = f"def function(x):\n    a = b = x.clone().numpy()\n    a {op} VALUES[{value!r}](a)\n    return a, b\n"
    file = f"<augmented {op} {value}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)
    found: Callable[[torch.Tensor], Any] = space["function"]
    return found


@pytest.mark.parametrize("key", list(KEYS))
def test_items_are_written(key: str) -> None:
    """As NumPy writes them, or refused; what eager raises is raised."""
    x = torch.arange(6).remainder(4).reshape(2, 3)
    taken = [_agree(written(key, value), x.to(dtype)) for value, dtype in [
        ("float", torch.float64), ("whole of the run", torch.int64), ("array", torch.float32), ("bool", torch.bool),
        ("float", torch.uint8)]]  # fmt: skip
    assert any(taken) or key in ("backwards", "places", "array of places", "beyond")


@pytest.mark.parametrize("value", list(VALUES))
def test_values_are_written(value: str) -> None:
    x = torch.tensor([3, 1, 2])
    taken = [_agree(written(key, value), x.to(dtype)) for key, dtype in [
        ("slice", torch.float64), ("number", torch.int64), ("mask", torch.float32),
        ("all", torch.float64)]]  # fmt: skip
    assert any(taken) or value in ("complex", "text", "none")


@pytest.mark.parametrize("op", OPERATORS)
def test_arrays_are_augmented(op: str) -> None:
    x = torch.tensor([3, 1, 2])
    assert any([_agree(augmented(op, value), x.to(dtype)) for value, dtype in [
        ("int", torch.int64), ("float", torch.float32), ("array", torch.float64), ("same", torch.uint8),
        ("whole of the run", torch.int64), ("float", torch.int64), ("bool", torch.bool)]])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", list(KEYS))
def test_all_items_are_written(key: str, dtype: str) -> None:
    for shape, value in itertools.product([(3,), (2, 3)], VALUES):
        x = torch.arange(6).remainder(4).reshape(2, 3)[: shape[0] if len(shape) > 1 else 1].reshape(shape)
        _agree(written(key, value), x.to(getattr(torch, dtype)))


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_all_arrays_are_augmented(op: str) -> None:
    for dtype, value in itertools.product(DTYPES, VALUES):
        if value != "none":  # a TypeError, and in eager NumPy's class of it
            _agree(augmented(op, value), torch.tensor([3, 1, 2]).to(getattr(torch, dtype)))


def _agree(function: Any, x: torch.Tensor) -> bool:
    """Whether it was taken."""
    found = []
    for one in (function, to_static(function)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(one(x))
            except TraceError as error:
                assert error.code in ("D2S213", "D2S222", "D2S210"), error
                return False
            except Exception as error:  # what is raised is what is compared
                found.append((TypeError if isinstance(error, TypeError) else type(error), None))
    same(found[1], found[0])
    return not isinstance(found[0][0], type)


def test_a_write_that_autograd_does_not_see() -> None:
    """What was kept for backward has the new value, as in eager."""

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        z = y * y
        a = y.detach().numpy()
        if z.sum() > 0:
            a[0] = 10
        return z

    found = []
    for one in (function, to_static(function)):
        x = X.clone().requires_grad_()
        z = one(x)
        z.sum().backward()
        found.append((z, x.grad))
    same(found[1], found[0])


READ_ONLY = (
    "np.broadcast_to(a, (2, 3))", "np.broadcast_to(m, (2, 3, 3))", "np.diagonal(m)", "m.diagonal()",
    "np.einsum('ii->i', m)", "np.lib.stride_tricks.sliding_window_view(a, 2)", "a[::-1]", "np.flip(m)",
)  # fmt: skip
VIEWS_OF_IT = (
    "v", "v[1:2]", "v[...]", "v.T", "v[1:]", "v[:, None]", "v.reshape(-1)", "np.squeeze(v)", "v.view()", "v + 0",
    "np.atleast_2d(v)[0]",
)  # fmt: skip
WRITES_OF_IT = ("w[:] = 7", "w[0] = 7", "w += 1", "np.copyto(w, 1)", "w.fill(3)", "w[-1:] = x.sum().item()")


@pytest.mark.sample(9)
@pytest.mark.parametrize(("made", "view"), list(itertools.product(READ_ONLY, VIEWS_OF_IT)))
def test_views_that_may_not_be_written(made: str, view: str, tmp_path: Path) -> None:
    """Where other names hold the memory, where none does, and carried by a loop: as eager, or refused."""
    ends = ("", "a = m = v = None", "a = m = v = None\n    for _ in range(2):\n        w, a = a, w\n")
    for number, (end, write) in enumerate(itertools.product(ends, WRITES_OF_IT)):
        path = tmp_path / f"form_{number}.py"
        path.write_text(f"def f(x):\n    a = x.numpy() * 1\n    m = np.ones((3, 3)) * a\n    v = {made}\n"
                        f"    w = {view}\n    {end}\n    {write}\n    return w\n")  # fmt: skip
        names: dict[str, Any] = {"np": np}
        exec(compile(path.read_text(), str(path), "exec"), names)
        _as_eager_or_refused(names["f"], f"{end}\n{write}")


REFUSING = ("D2S210", "D2S213", "D2S222", "D2S255")


def _as_eager_or_refused(function: Any, form: str, x: torch.Tensor = X) -> None:
    try:
        expected = function(x.clone())
    except (ValueError, IndexError, TypeError) as error:
        with pytest.raises((type(error), TraceError)) as raised:
            to_static(function)(x.clone())
        assert not isinstance(raised.value, TraceError) or raised.value.code in REFUSING, form
        return
    try:
        got = to_static(function)(x.clone())
    except TraceError as error:
        assert error.code in REFUSING, (form, str(error))
    else:
        same(got, expected)
