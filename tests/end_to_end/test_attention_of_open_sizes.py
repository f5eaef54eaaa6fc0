"""``scaled_dot_product_attention`` over sizes that change: one Program with open sizes, for every kind of arguments."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from dy2static import InputSpec, load, save, to_static
from tests.oracle import check

SIZES = ((2, 3, 3), (3, 5, 5), (2, 4, 4), (4, 2, 2), (3, 6, 6))
"""Batch, length of the query, length of the keys."""
OTHERS = ((2, 3, 4), (3, 5, 2), (2, 4, 6), (4, 2, 3), (3, 6, 2))
"""Where the query is not as long as the keys."""

LAYOUTS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "plain": lambda x, heads: x.unflatten(-1, (heads, -1)).transpose(1, 2).contiguous(),
    "heads inside": lambda x, heads: x.unflatten(-1, (heads, -1)).transpose(1, 2),
    "a part": lambda x, heads: torch.cat([x, x], 2).chunk(2, 2)[1].unflatten(-1, (heads, -1)).transpose(1, 2),
    "last dimension inside": lambda x, heads: x.unflatten(-1, (-1, heads)).transpose(1, 3),
}
"""What a projection [batch, length, heads * 4] becomes: [batch, heads, length, 4]."""

RANKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "4-d": lambda x: x, "3-d": lambda x: x.flatten(0, 1), "2-d": lambda x: x[0, 0], "5-d": lambda x: x[None],
}  # fmt: skip
BY_RANK = {"4-d": 4, "3-d": 3, "2-d": 2, "5-d": 5}

MASKS: dict[str, Callable[[int, int, int], tuple[int, ...]] | None] = {
    "none": None,
    "[L, S]": lambda b, t, s: (t, s),
    "[S]": lambda b, t, s: (s,),
    "[L, 1]": lambda b, t, s: (t, 1),
    "[B, 1, L, S]": lambda b, t, s: (b, 1, t, s),
    "[1, 4, L, S]": lambda b, t, s: (1, 4, t, s),
    "[B, 4, L, S]": lambda b, t, s: (b, 4, t, s),
    "[B, 1, 1, S]": lambda b, t, s: (b, 1, 1, s),
}
"""With the rank's own dimensions before the last two: fewer for fewer."""


def _mask(shape: Callable[[int, int, int], tuple[int, ...]] | None, kind: str, rank: str, sizes: Any) -> Any:
    if shape is None:
        return None
    b, t, s = sizes
    wanted = shape(b, t, s)
    if rank == "3-d" and len(wanted) == 4:
        wanted = (1 if wanted[:2] == (1, 1) else b * 4, *wanted[2:])
    if rank == "2-d":
        wanted = wanted[-2:]
    generator = torch.Generator().manual_seed(b + t)
    drawn = torch.randn(wanted, generator=generator, dtype=torch.float64)
    if kind == "bool":
        return (drawn > -0.5) | torch.eye(*wanted[-2:] if len(wanted) > 1 else (1, wanted[0]), dtype=torch.bool)[0]
    return drawn.requires_grad_(kind == "needs a gradient")


def _call(sizes: tuple[int, int, int], heads: int, mask: Any, needs: bool, other: int = 4) -> tuple[Any, ...]:
    b, t, s = sizes
    generator = torch.Generator().manual_seed(sum(sizes))
    made = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(needs)
        for shape in ((b, t, 16), (b, s, 4 * heads), (b, s, other * heads))
    ]
    return *made, mask


def _program(layout: str, rank: str, heads: int, **options: Any) -> Callable[..., torch.Tensor]:
    place, ranked = LAYOUTS[layout], RANKS[rank]

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None) -> Any:
        q, k, v = ranked(place(q, 4)), ranked(place(k, heads)), ranked(place(v, heads))
        y = F.scaled_dot_product_attention(q, k, v, mask, **options)
        if y.dim() > 2:
            y = y.transpose(-2, -3)
        return y.reshape(y.shape[0], -1) * 2, y.shape

    return attend


CASES = [
    (layout, rank, name, kind)
    for layout, rank, (name, shape), kind in itertools.product(
        LAYOUTS, RANKS, MASKS.items(), ("bool", "float", "needs a gradient"))
    if (shape is not None or kind == "bool")
]  # fmt: skip


@pytest.mark.sample(100)
@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize(("layout", "rank", "name", "kind"), CASES)
@pytest.mark.parametrize("sizes", [SIZES, OTHERS], ids=["alike", "other"])
def test_masks(layout: str, rank: str, name: str, kind: str, needs: bool, sizes: Any) -> None:
    program = _program(layout, rank, 4)
    calls = [_call(one, 4, _mask(MASKS[name], kind, rank, one), needs) for one in sizes]
    static = check(program, *calls, paths=("program", "autograd") if needs else ("program",), tolerance=1e-12)
    assert len(static.programs) <= 2


OPTIONS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "causal": (4, 4, {"is_causal": True}),
    "nothing dropped": (4, 4, {"dropout_p": 0.0, "scale": 0.3}),
    "groups": (2, 4, {"enable_gqa": True}),
    "one group, causal": (1, 4, {"enable_gqa": True, "is_causal": True}),
    "as many groups": (4, 4, {"enable_gqa": True}),
    "longer values": (4, 6, {}),
    "longer values, groups": (2, 6, {"enable_gqa": True, "is_causal": True}),
}
"""Heads of the keys, last size of the values, the other arguments."""


@pytest.mark.sample(16)
@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("rank", ["4-d", "5-d"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [SIZES, OTHERS], ids=["alike", "other"])
def test_options(layout: str, rank: str, name: str, needs: bool, sizes: Any) -> None:
    heads, other, options = OPTIONS[name]
    calls = [_call(one, heads, None, needs, other) for one in sizes]
    static = check(_program(layout, rank, heads, **options), *calls, tolerance=1e-12,
                   paths=("program", "autograd") if needs else ("program",))  # fmt: skip
    assert len(static.programs) <= 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_mask_beside_is_causal(layout: str) -> None:
    """One kernel takes both, another raises; which one it is, the layout decides."""
    calls = [_call(one, 4, _mask(MASKS["[L, S]"], "bool", "4-d", one), False) for one in SIZES[:3]]
    check(_program(layout, "4-d", 4, is_causal=True), *calls, paths=("program",), tolerance=1e-12)


@pytest.mark.sample(16)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("needs", [False, True])
def test_in_a_file(layout: str, name: str, kind: str, needs: bool, tmp_path: Path) -> None:
    program = _program(layout, "4-d", 4)
    masks = [_mask(MASKS[name], kind, "4-d", sizes) for sizes in OTHERS]
    spec: list[Any] = [InputSpec([None, None, 16], torch.float64, need) for need in ("q", "k", "v")]
    if masks[0] is not None:
        alike = [len({one.shape[dim] for one in masks}) == 1 for dim in range(masks[0].dim())]
        shape = [size if same else None for size, same in zip(masks[0].shape, alike)]
        spec.append(InputSpec(shape, masks[0].dtype, "mask"))
    else:
        spec.append(None)
    loaded = load(save(to_static(program), tmp_path / "f", input_spec=spec))
    more = [(1, 3, 1), (1, 1, 2), (2, 1, 3)]
    calls = [_call(sizes, 4, _mask(MASKS[name], kind, "4-d", sizes), needs) for sizes in (*OTHERS, *more)]
    check(program, *calls, static=loaded, tolerance=1e-12, by_name=True)


def test_what_does_not_fit_raises_what_eager_raises() -> None:
    """Keys and values of other lengths, masks of other sizes: after calls with others, so that the sizes are open."""
    program = _program("plain", "3-d", 4)
    calls = [_call(sizes, 4, _mask(MASKS["[L, S]"], "bool", "3-d", sizes), True) for sizes in SIZES[:3]]
    q, k, v, mask = _call((3, 5, 4), 4, _mask(MASKS["[L, S]"], "bool", "3-d", (3, 5, 4)), True)
    wrong = [(q, k[:, :3], v, mask), (q, k, v[:2], mask), (q[:2], k, v, mask), (q, k, v, mask[:3]),
             (q, k, v, mask[:, :3])]  # fmt: skip
    static = check(program, *calls, tolerance=1e-12)
    for call in wrong:
        with pytest.raises(RuntimeError) as eager:
            program(*call)
        with pytest.raises(RuntimeError) as converted:
            static(*call)
        assert str(converted.value).splitlines()[0] == str(eager.value).splitlines()[0]


def test_in_a_loop_that_adds_to_the_keys() -> None:
    """As generation does it: each iteration adds a key, and the mask is as long as a tensor says."""

    def program(x: torch.Tensor, n: torch.Tensor) -> Any:
        keys, length = x, torch.tensor(x.shape[1])
        while keys.sum() < n:
            last = keys[:, -1:].unflatten(-1, (2, 2)).transpose(1, 2)
            k = keys.unflatten(-1, (2, 2)).transpose(1, 2)
            seen = torch.ones(x.shape[0], 1, 1, int(length), dtype=torch.bool)
            y = F.scaled_dot_product_attention(last, k, k, seen)
            keys = torch.cat([keys, y.transpose(1, 2).reshape(x.shape[0], 1, 4) + 1], 1)
            length = length + 1
        return keys, length

    calls = [
        (torch.rand(*sizes, 4, dtype=torch.float64), torch.tensor(number))
        for sizes in ((2, 3), (3, 5), (2, 4), (4, 2)) for number in (90.0, 0.0)
    ]  # fmt: skip
    static = check(program, *calls, tolerance=1e-12)
    assert len(static.programs) == 2
