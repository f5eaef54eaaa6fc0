"""A tuple that the caller gave leaves the call as that very object."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import dy2static
from runtime.autodiff import gradient_path


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any


class Box:
    value: Any = None


def _arguments(grad: bool) -> dict[str, Any]:
    def tensor(value: float) -> torch.Tensor:
        return torch.full((2,), value, requires_grad=grad)

    return {
        "t": (tensor(1.0), 1), "n": ((tensor(2.0), "z"), (1, 2)), "p": Pair(tensor(3.0), 1),
        "d": Frozen(tensor(4.0), 1),
        "items": [(tensor(5.0), 5), (1, 2)], "named": {"t": (tensor(6.0), Pair(tensor(7.0), 1))}, "plain": (1, 2),
        "empty": (),
    }  # fmt: skip


Use = Callable[..., Any]

USES: dict[str, tuple[Use, list[Callable[[dict[str, Any]], Any]]]] = {
    "itself": (lambda t, **_: t, [lambda g: g["t"]]),
    "twice": (lambda t, **_: (t, t), [lambda g: g["t"]] * 2),
    "in a list": (lambda t, **_: [t], [lambda g: g["t"]]),
    "one inside": (lambda n, **_: [n[0], n[1], n], [lambda g: g["n"][0], lambda g: g["n"][1], lambda g: g["n"]]),
    "a named tuple": (lambda p, **_: [p], [lambda g: g["p"]]),
    "a frozen dataclass": (lambda d, **_: [d], [lambda g: g["d"]]),
    "items of a list": (lambda items, **_: items[:], [lambda g: g["items"][0], lambda g: g["items"][1]]),
    "items of a dict": (lambda named, **_: [named["t"], named["t"][1]],
                        [lambda g: g["named"]["t"], lambda g: g["named"]["t"][1]]),
    "without tensors": (lambda plain, **_: [plain], [lambda g: g["plain"]]),
    "an empty one": (lambda empty, **_: [empty], [lambda g: ()]),
    "a slice of all": (lambda t, **_: [t[:], tuple(t), t + (), t * 1], [lambda g: g["t"]] * 4),
    "by a function": (lambda t, **_: [(lambda *q: q)(*t), (lambda q: q)(t)], [lambda g: None, lambda g: g["t"]]),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", list(USES))
def test_identity(name: str, grad: bool, tmp_path: Path) -> None:
    use, expected = USES[name]

    def f(t: Any, n: Any, p: Any, d: Any, items: Any, named: Any, plain: Any, empty: Any) -> Any:
        return use(t=t, n=n, p=p, d=d, items=items, named=named, plain=plain, empty=empty)

    def require(called: Callable[..., Any]) -> None:
        given = _arguments(grad)
        found = called(**given)
        for one, want in zip([found] if name == "itself" else found, expected):
            wanted = want(given)
            assert all(one is not value for value in given.values()) if wanted is None else one is wanted

    static = dy2static.to_static(f)
    require(f)
    for path in ("program", "autograd"):
        with gradient_path(path):
            require(static)
    if not grad:
        require(dy2static.load(dy2static.save(static, tmp_path / "f.d2s")))


def test_a_tuple_made_inside_is_one_object() -> None:
    def f(x: torch.Tensor) -> Any:
        t = (x * 2, 1)
        return t, [t, (t,)]

    first, (second, (third,)) = dy2static.to_static(f)(torch.ones(2))
    assert first is second and second is third


def test_a_tuple_that_is_stored() -> None:
    box = Box()

    def f(x: torch.Tensor, t: Any, items: list[Any]) -> None:
        box.value = t
        items.append(t)

    static = dy2static.to_static(f)
    for _ in range(2):
        t, items = (torch.ones(2), 1), [1]
        static(torch.ones(2), t, items)
        assert box.value is t and items[1] is t
