"""Threads of PyTorch's share big loops: the same bits however many there are, and as many as PyTorch would take."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from runtime.native import build, target
from tests.runtime.native.programs import agree, compiled

_PROGRAMS = {
    "elements": ("x:a,b y:b", "%c : f32[a, b] = aten.exp.default(%x)\n%d : f32[a, b] = aten.mul.Tensor(%c, %y)\n"
                 "%r : f32[a, b] = aten.tanh.default(%d)"),
    "turned": ("x:a,b y:b", "%t : f32[b, a] = aten.t.default(%x)\n%r : f32[b, a] = aten.sigmoid.default(%t)"),
    "parts": ("x:a,b y:b", "%s : f32[a, c] = aten.slice.Tensor(%x, 1, 1, 9)\n%r : f32[a, c] = aten.exp.default(%s)"),
    "folds": ("x:a,b y:b", "%e : f32[a, b] = aten.exp.default(%x)\n%r : f32[a] = aten.sum.dim_IntList(%e, [1])"),
    "whole": ("x:a,b y:b", "%e : f32[a, b] = aten.exp.default(%x)\n%r : f32[] = aten.sum.default(%e)"),
    "softmax": ("x:a,b y:b", "%r : f32[a, b] = aten.softmax.int(%x, -1)"),
    "norm": ("x:a,b y:b", "%n : int = scalar.size(%x, 1)\n"
             "%r : f32[a, b] = aten.layer_norm.default(%x, [%n], %y, %y)"),
    "root": ("x:a,b y:b", "%n : int = scalar.size(%x, 1)\n%r : f32[a, b] = aten.rms_norm.default(%x, [%n], %y)"),
    "product": ("x:a,b y:a,b", "%r : f32[a, a] = aten.linear.default(%x, %y)"),
    "attention": ("x:a,3,b,8 y:a,3,b,8",
                  "%o : f32[a, 3, b, 8] = aten.scaled_dot_product_attention.default(%x, %y, %y, None, 0.0, True)\n"
                  "%r : f32[a, 3, b, 8] = aten.neg.default(%o)"),
}  # fmt: skip


def _text(name: str) -> str:
    inputs, lines = _PROGRAMS[name]
    given = "\n".join(f'  input %{one} : f32[{shape}] = "{one}"' for one, shape in
                      (part.split(":") for part in inputs.split()))  # fmt: skip
    return f'program "f" {{\n{given}\n{lines}\n  return %r as $0\n}}'


def _tensors(name: str, a: int, b: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(a * 100 + b)
    shapes = [part.split(":")[1].split(",") for part in _PROGRAMS[name][0].split()]
    sizes = [[{"a": a, "b": b}.get(one) or int(one) for one in shape] for shape in shapes]
    return [torch.randn(size, generator=generator) for size in sizes]


@pytest.fixture(autouse=True)
def shares_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small a loop is, threads share it."""
    monkeypatch.setattr(target, "GRAIN", 1)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", _PROGRAMS)
def test_bits_do_not_depend_on_threads(name: str) -> None:
    calls = [_tensors(name, a, b) for a, b in ((1, 20), (7, 40), (70, 33))]
    made = agree(_text(name), *calls, rounding=1e-5)
    seen = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        seen.append([made.run(list(call), [])[0].clone() for call in calls])
    for other in seen[1:]:
        assert all(map(torch.equal, seen[0], other))


def test_threads_are_pytorchs() -> None:
    """Loops are shared where the compiler is GCC, and by as many threads as PyTorch was told."""
    text = _text("elements")
    assert ("omp parallel" in compiled(text).c_source())
    if "clang" in build._version():
        pytest.skip("one thread, where the compiler is clang")
    made = compiled(text)
    for threads in (1, 4):
        torch.set_num_threads(threads)
        assert len(made.run(_tensors("elements", 70, 33), [])) == 1
    library = made.libraries[-1].loaded()
    for threads in (1, 4, 2):
        torch.set_num_threads(threads)
        assert library.d2s_count() == threads


def test_calls_from_several_threads_at_once() -> None:
    made = compiled(_text("attention"))
    torch.set_num_threads(3)
    calls = [_tensors("attention", 2, 30 + number) for number in range(4)]
    expected = [made.run(list(call), [])[0].clone() for call in calls]
    found: list[list[torch.Tensor]] = [[] for _ in calls]

    def run_often(number: int) -> None:
        for _ in range(50):
            found[number].append(made.run(list(calls[number]), [])[0])

    threads = [threading.Thread(target=run_often, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for many, one in zip(found, expected):
        assert len(many) == 50 and all(torch.equal(each, one) for each in many)


def test_small_loops_are_one_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "GRAIN", 32768)
    for text, clause in ((_text("elements"), "if("), (_sized(20, 30), ""), (_sized(200, 300), "if(1)")):
        assert ("omp parallel for" in compiled(text).c_source()) is bool(clause)
        assert clause in compiled(text).c_source()


def _sized(a: int, b: int) -> str:
    text = _text("elements").replace("[a,b]", f"[{a}, {b}]")
    return text.replace("[a, b]", f"[{a}, {b}]").replace("[b]", f"[{b}]")
