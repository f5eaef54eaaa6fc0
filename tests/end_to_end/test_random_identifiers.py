"""``uuid.uuid4()`` inside: a key that only tells things apart is made while tracing; anything else of it is refused."""

from __future__ import annotations

import random
import uuid

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check

CALLS = [[torch.tensor([1.0, 2.0, 3.0])], [torch.tensor([-1.0, 2.0, -3.5])], [torch.ones(4)]]
COUNTS = np.zeros(2)


def a_key(x):
    key = str(uuid.uuid4())
    held = {key: x * 2}
    if x.sum() > 0:
        held[key] = held[key] + 1
    return held[key]


def names(x):
    found = [f"axis.{uuid.uuid4().int}" for _ in range(3)]
    table = {name: x * index for index, name in enumerate(found)}
    if found[0] == found[1]:
        return x
    return sum(table.values()), len(set(found)), found[1] in table


class _Node:
    def __init__(self, value):
        self.value = value
        self.key = uuid.uuid4().hex[:8]


def nodes_on_a_path(x):
    nodes = [_Node(x), _Node(x * 2)]
    by_key = {node.key: node for node in nodes}
    if x.sum() > 0:
        node = _Node(x * 3)
        by_key[node.key] = node
    return sum(node.value.sum() for node in by_key.values())


def compared(x):
    a, b = uuid.uuid4(), uuid.uuid4()
    return x * (2 if a == b else 3), a in {a: 1}, isinstance(a, uuid.UUID), type(a)


def in_a_call_of_its_own(x):
    COUNTS[0] += 1
    key = str(uuid.uuid4())
    return {key: x}[key], len(key)


@pytest.mark.parametrize("function", [a_key, names, nodes_on_a_path, compared, in_a_call_of_its_own])
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_what_only_tells_apart(function):
    check(function, *CALLS)


class _Holder:
    last = ""


def _stored(x):
    _Holder.last = uuid.uuid4().hex
    return x


def _raised(x):
    if x.sum() > 0:
        raise ValueError(f"run {uuid.uuid4()}")
    return x


def _printed(x):
    print("run", uuid.uuid4())
    return x


REFUSED = {
    "a part": lambda x: x * (uuid.uuid4().int % 2),
    "an order": lambda x: x if uuid.uuid4() < uuid.uuid4() else -x,
    "bytes": lambda x: x * uuid.uuid4().bytes[0],
    "an int": lambda x: x * (int(uuid.uuid4()) % 2),
    "a letter": lambda x: x * ord(str(uuid.uuid4())[0]),
    "a kind of letter": lambda x: x if uuid.uuid4().hex[0] in "01234567" else -x,
    "a seed": lambda x: x * random.Random(uuid.uuid4().int).random(),
    "a text": lambda x: (x, str(uuid.uuid4())),
    "a part of the text": lambda x: (x, uuid.uuid4().hex[:3]),
    "itself": lambda x: (x, uuid.uuid4()),
    "a key": lambda x: {f"key{uuid.uuid4().int}": x},
    "stored": _stored, "raised": _raised, "printed": _printed,
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_made_of_it_is_refused(what):
    with pytest.raises(TraceError, match="D2S214"):
        to_static(REFUSED[what])(*CALLS[0])
    assert _Holder.last == ""


class _OfNumber(uuid.UUID):
    def __init__(self, number):
        super().__init__(int=number)


FORMS = {
    "int": lambda n: uuid.UUID(int=n),
    "by position": lambda n: uuid.UUID(None, None, None, None, n),
    "hex": lambda n: uuid.UUID(hex=f"{n:032x}"),
    "text": lambda n: uuid.UUID(str(n % 8) * 32),
    "fields": lambda n: uuid.UUID(fields=(n, 1, 2, 3, 4, 5)),
    "a list of fields": lambda n: uuid.UUID(fields=[1, 2, 3, 4, 5, n]),
    "version": lambda n: uuid.UUID(int=5, version=n % 5 + 1),
    "too much": lambda n: uuid.UUID("0" * 32, int=n),
    "derived": lambda n: _OfNumber(n),
}
NUMBERS = {
    "of a tensor": lambda x: int(x.sum()),
    "of a path": lambda x: 5 if x.sum() > 0 else 7,
    "drawn": lambda x: random.getrandbits(16),
}
READ = {
    "int": lambda made: made.int % 5, "hex": lambda made: made.hex, "text": str, "hash": lambda made: {made: 1},
    "itself": lambda made: made,
}  # fmt: skip


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
def test_one_of_a_number_of_the_run_is_refused(form, number, read):
    with pytest.raises(TraceError, match="D2S214"):
        to_static(lambda x: (x * 2, READ[read](FORMS[form](NUMBERS[number](x)))))(*CALLS[0])


@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"too much"}))
def test_one_of_a_known_number(form):
    check(lambda x: (x * (FORMS[form](3).int % 5), str(FORMS[form](3))), *CALLS)


@pytest.mark.parametrize("text", ["0" * 32, "1" * 32])
def test_one_of_a_text_of_the_path(text):
    check(lambda x: x * (uuid.UUID(text if x.sum() > 0 else "2" * 32).int % 7), *CALLS)
