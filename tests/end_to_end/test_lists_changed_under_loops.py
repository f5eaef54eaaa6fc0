"""A loop over a list sees what the list holds when it takes each item, whatever its body did to the list."""

from __future__ import annotations

from collections import deque

import pytest
import torch

import dy2static
from tests.oracle import check

INPUTS = [[1.0, 2.0, -1.0], [3.0, 1.0, 2.0], [-1.0, -2.0, -3.0]]
CALLS = [(torch.tensor(values),) for values in INPUTS] + [(torch.tensor(INPUTS[1], requires_grad=True),)]


def grow(x):
    xs = [x]
    for _ in range(int((x > 0).sum())):
        xs.append(xs[-1] * 0.5)
    return xs


def grown_enumerated(x):
    y = grow(x)
    z = enumerate(y, 1)
    y.append(x)
    return [i * t for i, t in z]


def grown_zipped(x):
    y = grow(x)
    z = zip(y, [x, x, x])
    y.insert(0, x)
    return [i * t for i, t in z]


def grown_mapped(x):
    y = grow(x)
    z = map(lambda v: v * 2, y)
    y.append(x)
    return list(z)


def grown_reversed(x):
    y = grow(x)
    z = reversed(y)
    y.append(x)
    y[0] = x * 7
    return list(z)


def reversed_and_longer(x):
    y, taken = grow(x), []
    for t in reversed(y):
        if t.sum() > 1:
            y.append(t * 2)
        taken.append(t.sum())
        y[0] = x * 3
    return y, taken


def reversed_and_shorter(x):
    y, taken = grow(x), []
    for i, t in enumerate(reversed(y)):
        taken.append((i, t * 1))
        if len(y) > 2:
            y.pop()
            y.pop()
    return y, taken


def reversed_again_and_again(x):
    y, z = [x], [x, x + 1, x * 2]
    for _ in range((x > 0).sum()):
        if (x > 2.5).any():
            return y, z
        y, z = list(reversed(y)), [t * 1 for t in reversed(z)]
    return y, z


def grown_iterator(x):
    y = grow(x)
    z = iter(y)
    y.append(x)
    return list(z)


def grown_work_list(x):
    y = grow(x)
    out = []
    n = 0
    for t in y:
        n += 1
        if n < 3:
            y.append(t)
        out.append(t)
    return out


def grown_last_item_replaced(x):
    y = grow(x)
    out = []
    for t in y:
        y[-1] = x * 3
        out.append(t)
    return out


def grown_generator(x):
    y = grow(x)
    z = (t * 2 for t in y)
    y.append(x)
    return list(z)


def grown_filtered(x):
    y = grow(x)
    z = filter(lambda t: t.sum() > 0, y)
    y.append(x)
    return list(z)


def work_list(x):
    todo = [x]
    out = []
    for t in todo:
        if t.sum() > 1:
            todo.append(t * 0.5)
        out.append(t)
    return out


def enumerated_work_list(x):
    todo = [x, x + 1]
    out = []
    for i, t in enumerate(todo):
        if t.sum() > 1:
            todo.append(t * 0.4)
        out.append(t * i)
    return out


def work_list_left(x):
    todo = [x, x + 1]
    out = x
    for t in todo:
        if t.sum() > 1 and len(todo) < 4:
            todo.append(t * 0.4)
        if t.sum() < 0:
            break
        out = out + t
    return out, todo


def shortened(x):
    todo = [x, x + 1, x + 2]
    out = x
    for t in todo:
        if t.sum() > 1:
            todo.pop()
        out = out + t
    return out, todo


def zipped_work_list(x):
    todo = [x, x + 1, x + 2]
    out = []
    for s, t in zip(todo, [x, x, x, x]):
        if t.sum() > 1:
            todo.append(s)
        out.append(s * t)
    return out


def deque_changed(x):
    todo = deque([x, x + 1])
    out = []
    for s in todo:
        if s.sum() > 1:
            todo.append(s)
        out.append(s)
    return out


def comprehension_over_a_work_list(x):
    todo = [x, x + 1]
    return [todo.append(t * 0.5) or t for t in todo if t.sum() > 1 and len(todo) < 5]


def remove_in_a_loop(x):
    todo = [x, x + 1, x - 1]
    out = []
    for t in todo:
        if t.sum() > 1:
            todo.remove(todo[0])
        out.append(t)
    return out


def several_at_once(x):
    todo = [x]
    out = []
    for t in todo:
        for k in range(int((t > 1).sum())):
            todo.append(t * 0.5 - k)
        out.append(t)
    return out


def dict_changed(x):
    todo = {"a": x}
    out = []
    for k in todo:
        if x.sum() > 1:
            todo["b"] = x
        out.append(k)
    return out


def iterator_of_before(x):
    todo = [x]
    it = iter(todo)
    if x.sum() > 0:
        todo.append(x * 2)
    return [t for t in it]


def zip_of_before(x):
    todo = [x]
    z = zip(todo, [x, x])
    if x.sum() > 0:
        todo.append(x * 2)
    return [s * t for s, t in z]


def enumerate_of_before(x):
    todo = [x]
    z = enumerate(todo)
    if x.sum() > 0:
        todo.append(x * 2)
    return list(z)


def reversed_of_before(x):
    todo = [x, x]
    z = reversed(todo)
    if x.sum() > 0:
        todo.append(x * 2)
    else:
        todo[0] = x * 3
    return list(z)


def generator_of_before(x):
    todo = [x, x]
    z = (t * 2 for t in todo)
    if x.sum() > 0:
        todo.append(x * 2)
    return list(z)


def map_of_before(x):
    todo = [x, x]
    z = map(lambda t: t * 2, todo)
    if x.sum() > 0:
        todo.append(x * 2)
    return list(z)


def rebound(x):
    todo = [x, x + 1]
    out = []
    for t in todo:
        if t.sum() > 1:
            todo = [t, *todo]
        out.append(t)
    return out


def item_replaced(x):
    todo = [x, x + 1, x + 2]
    out = []
    for t in todo:
        if t.sum() > 1:
            todo[-1] = t * 3
        out.append(t)
    return out


def loop_over_a_copy(x):
    todo = [x, x + 1, x + 2]
    out = []
    for t in todo[:]:
        if t.sum() > 1:
            todo.append(t)
        out.append(t)
    return out, todo


def read_after_the_loop(x):
    todo = [x, x + 1]
    z = enumerate(todo)
    out = []
    for i, v in z:
        if v.sum() > 1 and len(todo) < 5:
            todo.append(v * i)
        out.append(v)
    return out, next(z, None)


def one_taken_before(x):
    todo = [x, x + 1]
    z = enumerate(todo, 2)
    out = []
    next(z)
    for i, v in z:
        if v.sum() > 1 and len(todo) < 5:
            todo.append(v * i)
        out.append(v * i)
    return out


def zip_of_a_list_and_its_rest(x):
    todo = [x, x + 1]
    out = []
    for i, (a, b) in enumerate(zip(todo, todo[1:])):
        if a.sum() > 1 and len(todo) < 5:
            todo.append(b * i)
        out.append(a * i)
    return out


def enumerate_left(x):
    todo = [x, x + 1, x - 1]
    out = x
    for i, a in enumerate(todo):
        if a.sum() > 1 and len(todo) < 5:
            todo.append(a * i)
        if a.sum() < 0:
            break
        out = out + a
    return out, todo


def keys_copied(x):
    todo = {"a": x, "b": x}
    out = []
    for k in list(todo):
        if x.sum() > 1:
            todo.pop(k)
        out.append(k)
    return out, todo


def queue(x):
    todo = [x, x + 1]
    out = []
    while todo:
        t = todo.pop(0)
        if t.sum() > 1:
            todo.extend([t * 0.3, t * 0.2])
        out.append(t)
    return out


REFUSED = {
    "deque_changed": "D2S266",
    "dict_changed": "D2S266",
    "remove_in_a_loop": "D2S253",
    "iterator_of_before": "D2S266",
    "zip_of_before": "D2S266",
    "enumerate_of_before": "D2S266",
    "reversed_of_before": "D2S266",
    "read_after_the_loop": "D2S266",
    "grown_iterator": "D2S266",
}
"""Located errors in place of a difference."""
HELPERS = {"grow"}
PROGRAMS = [
    value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and name not in HELPERS | REFUSED.keys()
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_eager(program):
    check(program, *CALLS)


@pytest.mark.parametrize(("name", "code"), REFUSED.items())
def test_refused(name, code):
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(globals()[name])(*CALLS[1])
    assert caught.value.code == code and caught.value.location is not None
