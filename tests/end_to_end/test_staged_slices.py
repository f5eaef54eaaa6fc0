"""Parts of ordinary lists whose bounds are only known while the Program runs, and lists turned round."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from tests import oracle


def _calls() -> list[tuple[Any, ...]]:
    return [(torch.arange(1.0, 5.0, requires_grad=True), torch.tensor(n)) for n in (2, 0, 4, 1, -1, -9, 7)]


def test_a_part_of_a_list_of_tensors() -> None:
    def f(x: Any, n: Any) -> Any:
        items = [x * i for i in range(4)]
        return items[: int(n)], items[n:], items[int(n) - 1 : 3], items[-n :: 2], items[::-1][n:], len(items[:n])

    static = oracle.check(f, *_calls())
    assert len(static.programs) == 1


def test_a_part_of_a_list_of_numbers_and_of_nothing() -> None:
    def f(x: Any, n: Any) -> Any:
        numbers = [1, 2.5, 3]
        first = numbers[:n]
        for number in numbers[n:]:
            x = x * number
        return x, first, [][:n], [x.sum().item(), n.item()][n:]

    oracle.check(f, *_calls())


def test_a_part_is_a_list_of_its_own() -> None:
    def f(x: Any, n: Any) -> Any:
        items = [x, x * 2, x * 3]
        part = items[:n]
        part.append(x * 4)
        items.append(x * 5)
        return part, items, sum(part)

    oracle.check(f, *_calls())


def test_items_of_several_kinds() -> None:
    def f(x: Any, n: Any) -> Any:
        items = [x, 2, (x * 2, 1.5), None]
        return items[n:]

    oracle.check(f, *_calls())


def test_the_longest_way_back() -> None:
    def f(scores: Any, lengths: Any) -> Any:
        history = [scores.argmax(1) for scores in scores[1:]]
        paths = []
        for row in range(2):
            path = [scores[0][row].argmax().item()]
            for step in reversed(history[: lengths[row]]):
                path.append(step[path[-1]].item())
            path.reverse()
            paths.append(path)
        return paths

    generator = torch.Generator().manual_seed(0)
    oracle.check(f, *[(torch.rand(5, 3, 3, generator=generator), torch.tensor(lengths))
                      for lengths in ((2, 4), (0, 1), (4, 0))])  # fmt: skip


def test_a_list_that_grew_is_turned_round() -> None:
    def f(x: Any, n: Any) -> Any:
        items = [x]
        for i in range(int(n)):
            items.append(x * i)
        items.reverse()
        items.append(x + 9)
        items.reverse()
        return items, items[0]

    oracle.check(f, *_calls())


def test_turned_round_on_one_path() -> None:
    def f(x: Any, n: Any) -> Any:
        items = [x]
        for i in range(int(n)):
            items.append(x * i)
        other = items
        if n > 1:
            items.reverse()
        return other

    oracle.check(f, *_calls())


@pytest.mark.parametrize("through", ["item", "list"])
def test_items_are_not_written_behind_the_list(through: str) -> None:
    def f(x: Any, n: Any) -> Any:
        items = [x * 1, x * 2, x * 3]
        part = items[:n]
        if through == "item":
            for item in part:
                item.mul_(2)
        else:
            items[0].mul_(2)
        return items, part

    with pytest.raises(TraceError, match="D2S222"):
        oracle.check(f, *_calls()[:1])


def test_lists_inside_are_the_same_ones() -> None:
    def f(x: Any, n: Any) -> Any:
        rows = [[x], [x * 2]]
        for row in rows[:n]:
            row.append(x)
        return rows

    oracle.check(f, *_calls())


def test_tuples() -> None:
    oracle.check(lambda x, n: (x, x * 2)[:n], *_calls())


def test_all_items_are_replaced() -> None:
    def f(x: Any, n: Any) -> Any:
        cached: list[Any] = []
        other = cached
        for i in range(int(n)):
            cached.append(x * i)
        if x.sum() > n:
            cached[:] = (x + 1, x + 2)
        for i in range(int(n)):
            cached[:] = [*cached[:1], x * 7]
        cached.append(x)
        return other

    oracle.check(f, *_calls())
