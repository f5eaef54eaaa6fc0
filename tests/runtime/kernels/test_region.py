"""How regions are planned and called: what becomes a kernel, sizes, memory, gradients, who gives up."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from runtime.executor import compile_program as interpreted
from runtime.executor.executable import Executable
from runtime.ir.parser import parse_program
from runtime.kernels import KernelExecutable, compile_program, emitter, launch
from runtime.kernels.region import PATIENCE
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import agree, compiled, gave_up

_CHAIN = """program "f" {
  input %x : f32[a, b] = "x"
  input %w : f32[b, b] = "w"
  %u : f32[a, b] = aten.mul.Tensor(%x, %x)
  %v : f32[a, b] = aten.exp.default(%u)
  %p : f32[a, b] = aten.mm.default(%v, %w)
  %q : f32[a, b] = aten.tanh.default(%p)
  %r : f32[a, b] = aten.add.Tensor(%q, %x)
  return %r as $0
}"""


def test_products_are_pytorchs_and_stand_between_kernels(host: Host) -> None:
    x, w = torch.randn(5, 4), torch.randn(4, 4)
    made = agree(_CHAIN, [x, w], rounding=1e-6, in_kernels=4, kernels=2)
    assert "K" not in made.source() and made.source().count("R") >= 2
    assert [name for name, _, _ in host.launches] == ["k0", "k0"]


def test_one_library_serves_all_sizes(host: Host) -> None:
    made = compiled(_CHAIN)
    for a, b in [(2, 3), (7, 3), (1, 1), (0, 4), (40, 70)]:
        x, w = torch.randn(a, b), torch.randn(b, b)
        torch.testing.assert_close(made.run([x, w], [])[0], torch.tanh((x * x).exp() @ w) + x)
    assert len(host.sources) == 2


def test_what_saves_no_launch_is_pytorchs(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter, "GAIN", 1)
    alone = _CHAIN.replace("  %v : f32[a, b] = aten.exp.default(%u)\n", "").replace("%v", "%u")
    assert compiled(alone).in_kernels() == ["aten.tanh.default", "aten.add.Tensor"]
    assert len(compiled(_CHAIN).in_kernels()) == 4


def test_a_launch_has_a_thread_for_each_element(host: Host) -> None:
    made = compiled(_CHAIN)
    made.run([torch.randn(30, 30), torch.randn(30, 30)], [])
    assert host.launches == [("k0", 4, 256), ("k0", 4, 256)]


def test_more_elements_than_threads(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread then computes several; a block goes over several rows."""
    monkeypatch.setattr(launch, "MOST_BLOCKS", 2)
    monkeypatch.setattr(launch, "MOST_THREADS", 64)
    text = """program "f" {
      input %x : f32[a, b] = "x"
      %u : f32[a, b] = aten.mul.Tensor(%x, %x)
      %s : f32[a, b] = aten._softmax.default(%u, -1, False)
      %v : f32[a, b] = aten.exp.default(%s)
      %t : f32[a] = aten.sum.dim_IntList(%v, [1])
      return %v, %t as ($0, $1)
    }"""
    agree(text, [torch.randn(9, 700)], rounding=1e-4)


def test_elements_are_counted_in_64_bits_where_there_are_many(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled(_CHAIN)
    monkeypatch.setattr(launch, "NARROW", 100)
    for a in (2, 60):
        x, w = torch.randn(a, 4), torch.randn(4, 4)
        torch.testing.assert_close(made.run([x, w], [])[0], torch.tanh((x * x).exp() @ w) + x)
    heads = [source.split("\n")[0] for source in host.sources]
    assert sorted(set(heads)) == ["#define INDEX long long", "#define INDEX unsigned"]


class _Mine(torch.Tensor):
    pass


@pytest.mark.parametrize("make", [
    lambda x: x.double(), lambda x: x.as_subclass(_Mine), lambda x: x.clone().requires_grad_(),
    lambda x: torch._neg_view(x), lambda x: x.to_sparse(), lambda x: x[0],
])  # fmt: skip
def test_other_tensors_are_the_interpreters(host: Host, make: object) -> None:
    """Kernels take plain memory that no gradients are recorded of."""
    assert callable(make)
    text = """program "f" {
      input %x : f32[a, b] = "x"
      %u : f32[a, b] = aten.mul.Tensor(%x, %x)
      %v : f32[a, b] = aten.neg.default(%u)
      return %v as $0
    }"""
    x = make(torch.randn(3, 4))
    made = compiled(text)
    (got,) = made.run([x], [])
    (expected,) = interpreted(parse_program(text)).run([x], [])
    assert type(got) is type(expected) and got.requires_grad == expected.requires_grad
    torch.testing.assert_close(got.to_dense(), expected.to_dense())
    assert gave_up(made) == 1 and not host.launches


def test_without_gradients_a_parameter_is_plain(host: Host) -> None:
    text = """program "f" {
      input %x : f32[a] = "x"
      %u : f32[a] = aten.mul.Tensor(%x, %x)
      %v : f32[a] = aten.neg.default(%u)
      return %v as $0
    }"""
    x = torch.nn.Parameter(torch.randn(4))
    with torch.no_grad():
        made = compiled(text)
        assert torch.equal(made.run([x], [])[0], -(x * x))
    assert gave_up(made) == 0 and host.launches


def test_a_region_that_always_gives_up_is_left_to_the_interpreter(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.kernels.region.PATIENCE", PATIENCE)
    made = compiled(_CHAIN)
    x, w = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    for _ in range(PATIENCE + 2):
        torch.testing.assert_close(made.run([x, w], [])[0], torch.tanh((x * x).exp() @ w) + x)
    assert made.written.compiled[0].given_up


def test_watched_operators_are_the_interpreters(host: Host) -> None:
    """A dispatch mode sees each operator."""
    from torch.utils.flop_counter import FlopCounterMode

    made = compiled(_CHAIN)
    with FlopCounterMode(display=False) as counter:
        made.run([torch.randn(5, 4), torch.randn(4, 4)], [])
    assert counter.get_total_flops() == 160 and not host.launches


def test_branches_hold_kernels(host: Host) -> None:
    """Control flow is the interpreter's; what is straight in it is not."""
    text = """program "f" {
      input %x : f32[a] = "x"
      input %f : bool = "f"
      %r : f32[a] = cond(%f) {
        ^():
          %u : f32[a] = aten.mul.Tensor(%x, %x)
          %v : f32[a] = aten.neg.default(%u)
          yield %v
      } {
        ^():
          %s : f32[a] = aten.exp.default(%x)
          %t : f32[a] = aten.add.Tensor(%s, %x)
          yield %t
      }
      return %r as $0
    }"""
    agree(text, [torch.randn(4), True], [torch.randn(4), False], rounding=1e-6, in_kernels=4, kernels=2)


def test_a_sum_of_gradients_that_may_be_none(host: Host) -> None:
    text = """program "f" {
      input %x : f32[a] = "x"
      input %y : f32[a] = "y"
      %s : f32[a] = grad.sum(%x, %y)
      %u : f32[a] = grad.sum(%s, %x)
      return %u as $0
    }"""
    x, y = torch.randn(4), torch.randn(4)
    made = compiled(text)
    assert torch.equal(made.run([x, y], [])[0], x + y + x) and gave_up(made) == 0
    assert torch.equal(made.run([x, None], [])[0], x + x) and gave_up(made) == 1


def test_intermediate_memory_is_given_back(host: Host) -> None:
    """What a later kernel was the last to read is dead before the region ends."""
    text = """program "f" {
      input %x : f32[a, b] = "x"
      %u : f32[a, b] = aten.mul.Tensor(%x, %x)
      %s : f32[a, b] = aten._softmax.default(%u, -1, False)
      %t : f32[a, b] = aten._softmax.default(%s, -1, False)
      %v : f32[a, b] = aten.neg.default(%t)
      return %v as $0
    }"""
    made = agree(text, [torch.randn(3, 5)], rounding=1e-6, kernels=1)
    source = made.written.compiled[0].source
    assert source.count(" = None\n") == 3 and source.count(" = None if ") == 3  # of rows that are short there is none


def test_few_long_rows_are_pytorchs(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "LONG_ROW", 10)
    text = """program "f" {
      input %x : f32[a, b] = "x"
      %u : f32[a, b] = aten.mul.Tensor(%x, %x)
      %s : f32[a, b] = aten._softmax.default(%u, -1, False)
      return %s as $0
    }"""
    made = compiled(text)
    for a, b, calls in [(3, 10, 0), (3, 11, 1), (64, 11, 0)]:
        x = torch.randn(a, b)
        torch.testing.assert_close(made.run([x], [])[0], torch.softmax(x * x, -1))
        assert gave_up(made) == calls


def test_types_name_the_device(host: Host) -> None:
    """What was traced on CUDA tensors says so in its types; of other devices nothing becomes a kernel."""
    for device, count in [("cuda:0", 2), ("meta", 0)]:
        text = f"""program "f" {{
          input %x : f32[a] on "{device}" = "x"
          %u : f32[a] on "{device}" = aten.mul.Tensor(%x, %x)
          %v : f32[a] on "{device}" = aten.neg.default(%u)
          return %v as $0
        }}"""
        assert len(compiled(text).in_kernels()) == count


def test_a_number_in_a_tensor_of_the_cpu_is_pytorchs(host: Host) -> None:
    text = """program "f" {
      input %x : f32[a] on "cuda:0" = "x"
      input %k : f32[] = "k"
      %u : f32[a] on "cuda:0" = aten.mul.Tensor(%x, %x)
      %v : f32[a] on "cuda:0" = aten.neg.default(%u)
      %w : f32[a] on "cuda:0" = aten.mul.Tensor(%v, %k)
      return %w as $0
    }"""
    assert compiled(text).in_kernels() == ["aten.mul.Tensor", "aten.neg.default"]


def test_what_is_told(host: Host) -> None:
    """How many Operators are how many kernels, and that a part was left to the interpreter."""
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * x) + x.sum()

    static = to_static(f, backend="cuda")
    static(torch.randn(4))
    (part,) = static.compiled[0].parts
    assert part.state == "kernels" and part.kernels is not None and part.share is None
    assert (part.kernels.operators, part.kernels.kernels, part.kernels.all) == (3, 2, 4)
    assert str(part) == "without gradients: kernels, 3 of 4 operators in 2 kernels"


def test_without_a_device_nothing_changes() -> None:
    """The executor is the interpreter's."""
    if launch.machine.is_there():
        pytest.skip("there is a CUDA device")
    made = compile_program(parse_program(_CHAIN))
    assert type(made) is Executable and not isinstance(made, KernelExecutable)
