"""Lists that grow as sequences of tensors."""

from __future__ import annotations

import pytest
import torch

from dy2static import InputSpec
from tests.runtime.export.onnx.harness import check, operators, refused

SPECS = [InputSpec([None], "float32", "x"), InputSpec([], "int64", "n")]
CALLS = [(torch.tensor([1.0, 2.0]), torch.tensor(n)) for n in (0, 1, 2, 5)]


def grown(x, n):
    items = []
    while len(items) < n:
        items.append(x * len(items))
    return items


def changed(x, n):
    items = grown(x, n)
    items[0] = x + 7
    last = items.pop()
    return items, last, items[-1], items[1], len(items)


def sliced(x, n):
    items = grown(x, n)
    return items[1:], items[-2:], items[:1], items + [x], [x] + items


def extended(x, n):
    items, others = grown(x, n), grown(x * 3, n)
    items.extend(others)
    return items


def of_numbers(x, n):
    numbers = []
    for i in range(n):
        if i % 2 == 0:
            numbers.append(i * 3)
    return numbers, sum(numbers)


def other_sizes(x, n):
    items = []
    while len(items) < n:
        items.append(x)
        x = torch.cat([x, x])
    return items


def put_together(x, n):
    items = [x]
    for i in range(n):
        items.append(x + i)
    return torch.stack(items), torch.cat(items)


def of_a_path(x, n):
    items = [x]
    if n > 1:
        items.append(x * 2)
    total = x
    for item in items:
        total = total + item
    return total, items


LISTS = [grown, changed, sliced, extended, of_numbers, other_sizes, put_together, of_a_path]


@pytest.mark.parametrize("function", LISTS)
def test_lists(function, tmp_path):
    check(function, tmp_path, SPECS, *CALLS)


def test_rows_that_are_stacked_are_scanned(tmp_path):
    def f(x, n):
        rows = []
        for i in range(n):
            x = x * 0.5 + i
            rows.append(x)
        return torch.stack(rows)

    model = check(f, tmp_path, SPECS, *CALLS)  # without rows eager raises, and the run fails
    assert operators(model).count("Loop") == 1 and not any("Sequence" in one for one in operators(model))


def test_lists_of_lists_are_refused(tmp_path):
    def f(x, n):
        rows = []
        for i in range(n):
            row = []
            for j in range(i):
                row.append(x * j)
            rows.append(row)
        return rows

    assert "list" in refused(f, tmp_path, SPECS, "D2S540").summary
