"""What a call is given that is one of several, of which some do not fit: None after stars, None for a function."""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check, check_saved

PLAIN = [
    {"x": torch.tensor([3.0, 1.0, 2.0]) * sign, "y": torch.tensor([1.0, 2.0, 0.0]) * other}
    for sign, other in ((1, 1), (-1, 1), (-1, -1))
]
WITH_GRADIENT = [{name: tensor.clone().requires_grad_() for name, tensor in given.items()} for given in PLAIN]


def holds(function: Callable[..., Any], tmp_path: Path) -> None:
    """The function does what eager does, live and from a file, with gradients and without."""
    static = check(function, *PLAIN)
    check_saved(function, static, tmp_path / "saved.d2s", *WITH_GRADIENT, paths=["program"])


def named(**given: Any) -> Any:
    return sorted(given.items())


def two(a: Any = 1, b: Any = 2) -> Any:
    return a, b


def rest(*given: Any) -> Any:
    return given


class Settings:
    """A mapping that is no dict."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def keys(self) -> list[str]:
        return ["a"]

    def __getitem__(self, key: str) -> Any:
        return self.value * 2


def test_none_is_not_unpacked_where_a_test_excludes_it(tmp_path: Path) -> None:
    def is_not_none(x: torch.Tensor, y: torch.Tensor) -> Any:
        k = None
        if x.sum() > 0:
            k = {"a": x * 2}
        if k is not None:
            return named(**k)
        return named()

    def or_(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt = None
        if x.sum() > 0:
            opt = {"a": x * 2}
        k = opt or {}
        return named(**k)

    def or_in_the_call(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt = None
        if x.sum() > 0:
            opt = {"a": x * 2}
        return two(**(opt or {})), two(**(opt if opt else {"b": y}))

    def replaced(x: torch.Tensor, y: torch.Tensor) -> Any:
        k = None
        if x.sum() > 0:
            k = {"a": x * 2}
        if k is None:
            k = {}
        return two(**k)

    def by_class(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = 3
        if x.sum() > 0:
            k = {"a": x * 2}
        return two(**k) if isinstance(k, dict) else k

    def into_a_dict(x: torch.Tensor, y: torch.Tensor) -> Any:
        k = None
        if x.sum() > 0:
            k = {"a": x * 2}
        return dict(**k, c=y) if k else y

    def one_of_three(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = None
        if x.sum() > 0:
            k = {"a": x * 2}
        elif y.sum() > 0:
            k = Settings(y)
        return two(b=y, **k) if k is not None else x

    def beside_another(x: torch.Tensor, y: torch.Tensor) -> Any:
        k, other = None, None
        if x.sum() > 0:
            k = {"a": x * 2}
        if y.sum() > 0:
            other = {"b": y * 3}
        if k is not None and other is not None:
            return two(**k, **other)
        return x

    def after_one_star(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = None
        if x.sum() > 0:
            k = (x * 2, y)
        if k is not None:
            return two(*k), rest(1, *k)
        return rest(*(k or ()))

    def one_star_of_kinds(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = 7
        if x.sum() > 0:
            k = [x * 2, 3]
        elif y.sum() > 0:
            k = (4, y)
        return k if isinstance(k, int) else rest(*k)

    for function in (is_not_none, or_, or_in_the_call, replaced, by_class, into_a_dict, one_of_three, beside_another,
                     after_one_star, one_star_of_kinds):  # fmt: skip
        holds(function, tmp_path)


def test_what_cannot_be_unpacked_raises_on_its_path(tmp_path: Path) -> None:
    def two_stars(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = None
        if x.sum() > 0:
            k = {"a": x * 2}
        elif y.sum() > 0:
            k = 3
        return two(**k)

    def two_stars_of_a_dict(x: torch.Tensor, y: torch.Tensor) -> Any:
        k = None
        if x.sum() > 0:
            k = {"a": x * 2}
        return dict(**k)

    def one_star(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = None
        if x.sum() > 0:
            k = x * 2, y
        return two(*k)

    def one_star_among_others(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = None
        if x.sum() > 0:
            k = x * 2, y
        elif y.sum() > 0:
            k = 3
        return rest(1, *k)

    def never(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = None
        if x.sum() > 0:
            k = 3
        return two(**k)

    def caught(x: torch.Tensor, y: torch.Tensor) -> Any:
        k: Any = 4
        if x.sum() > 0:
            k = 3
        try:
            return two(**k)
        except TypeError:
            return y

    for function in (two_stars, two_stars_of_a_dict, one_star, one_star_among_others, never, caught):
        holds(function, tmp_path)


def minus(value: Any) -> Any:
    return -value


def is_positive(value: Any) -> Any:
    return value > 0


def test_a_function_or_none_of_a_builtin(tmp_path: Path) -> None:
    def of_known_items(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = minus if x.sum() > 0 else None
        words = sorted([str(number) for number in range(40)], key=len if y.sum() > 0 else None)
        return sorted([1, 3, 2], key=key), max([1, 3, 2], key=key), min(1, 3, 2, key=key), words

    def of_tensors(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = minus if x.sum() > 0 else None
        items = [x.sum(), y.sum()]
        return sorted(items, key=key), max(items, key=key), min([], key=key, default=y)

    def in_place(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = minus if x.sum() > 0 else None
        known, unbound, items = [1, 3, 2], [2, 1, 3], [x[0], y[0]]
        known.sort(key=key)
        list.sort(unbound, key=key)
        items.sort(key=key, reverse=True)
        return known, unbound, items

    def of_a_grown_list(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = minus if x.sum() > 0 else None
        grown = []
        for value in x:
            if value > 1:
                grown.append(value)
        return sorted(grown, key=key), max(grown, key=key, default=y)

    def of_a_generator(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = minus if x.sum() > 0 else None
        return sorted((value * 2 for value in (3, 1, 2)), key=key), max(iter([1, 2]), key=key)

    def one_of_three(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = None
        if x.sum() > 0:
            key = minus
        elif y.sum() > 0:
            key = abs
        return sorted([1, -3, 2], key=key)

    def of_heaps(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = minus if x.sum() > 0 else None
        return heapq.nsmallest(2, [1, 3, 2], key=key), heapq.nlargest(2, [x.sum(), y.sum()], key)

    def of_bisection(x: torch.Tensor, y: torch.Tensor) -> Any:
        key = (lambda value: value * 2) if x.sum() > 0 else None
        return bisect.bisect([1, 2, 3], 3, key=key), bisect.bisect_left([1, 2, 3], 3, key=key)

    def lazily(x: torch.Tensor, y: torch.Tensor) -> Any:
        test = is_positive if x.sum() > 0 else None
        kept = [value for value in filter(test, [-1, 0, 1, 2])]
        return kept, list(filter(test, y)), list(itertools.filterfalse(test, [-1, 0, 1]))

    def accumulated(x: torch.Tensor, y: torch.Tensor) -> Any:
        function = torch.mul if x.sum() > 0 else None
        initial = y[0] if y.sum() > 0 else None
        return list(itertools.accumulate(x, function)), list(itertools.accumulate([x, y], initial=initial))

    def which_is_mapped(x: torch.Tensor, y: torch.Tensor) -> Any:
        function = minus if x.sum() > 0 else is_positive
        maybe = minus if x.sum() > 0 else None
        return list(map(function, [1, 2])), list(map(maybe, [x, y])) if maybe is not None else y

    def not_called(x: torch.Tensor, y: torch.Tensor) -> Any:
        maybe: Any = minus if x.sum() > 0 else 3
        return list(map(maybe, [1, 2]))

    for function in (of_known_items, of_tensors, in_place, of_a_grown_list, of_a_generator, one_of_three, of_heaps,
                     of_bisection, lazily, accumulated, which_is_mapped, not_called):  # fmt: skip
        holds(function, tmp_path)


def test_the_order_is_known_in_the_run(tmp_path: Path) -> None:
    def staged(x: torch.Tensor, y: torch.Tensor) -> Any:
        down = bool(x.sum() > 0)
        known = [1, 3, 2]
        known.sort(reverse=down)
        return known, sorted([x.sum(), y.sum()], reverse=down), sorted("bca", key=ord, reverse=int(y.sum()))

    def tensor(x: torch.Tensor, y: torch.Tensor) -> Any:
        return sorted([1, 3, 2], reverse=x.sum() > 0), sorted((v for v in (1, 3)), reverse=y.sum() > 0)

    def chosen(x: torch.Tensor, y: torch.Tensor) -> Any:
        down: Any = True
        if x.sum() > 0:
            down = None
        return sorted([1, 3, 2], reverse=down)

    def grown(x: torch.Tensor, y: torch.Tensor) -> Any:
        values = []
        for value in x:
            if value > 1:
                values.append(value)
        values.sort(reverse=bool(y.sum() > 0))
        return values

    for function in (staged, tensor, chosen, grown):
        holds(function, tmp_path)


def test_groups_by_a_key_of_several_are_refused() -> None:
    def grouped(x: torch.Tensor) -> Any:
        key = is_positive if x.sum() > 0 else None
        return [(key, list(group)) for key, group in itertools.groupby([1, 1, 2], key)]

    with pytest.raises(TraceError, match="D2S210.*groupby"):
        to_static(grouped)(torch.ones(2))
