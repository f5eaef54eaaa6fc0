"""The text of kernels and of the Python that launches them.

    host:    d3_0 = a0.shape[0] ...; p7 = new(...); K1(d3_0 * 8, 1, p3, p7, d3_0)        runs on the CPU, has the sizes
    kernel:  extern "C" __global__ void k1(const float *p3, float *p7, i64 d3_0) { ... }      has them as parameters

A name means the same in both. What of the host's names a kernel speaks of are its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from runtime.native.values import Expr, Unsupported
from runtime.native.writer import Writer

Kind = Literal["elements", "rows", "sums", "columns"]
"""What a kernel's threads share: elements one by one, rows (a block a row), rows that are summed, too (a block some of
them), or columns (a warp's width a block)."""

UNROLL = "#pragma unroll 4"
"""Before a thread's loop over its elements: what is read for several waits at once."""

_NAME = re.compile(r"\b[a-z]+\d+(?:_\d+)?\b")


@dataclass(frozen=True)
class Kernel:
    """A kernel. parameters: the host's names in their order; signature: q for a word, d for a float; shared: how many
    bytes for each element of a row it can make use of in a block's own memory."""

    name: str
    text: str
    kind: Kind
    parameters: tuple[str, ...]
    signature: str
    shared: tuple[int, ...] = ()


class HostWriter(Writer):
    """Python that computes sizes, makes memory and launches kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.types: dict[str, str] = {}
        """The C type that each local has as a parameter of a kernel."""

    def declare(self, ctype: str, name: str, first: str = "0") -> None:
        """Python declares nothing; the type is kept for kernels."""
        self.types[name] = ctype

    def bail(self, condition: str) -> None:
        """Give up under a condition, said in C, that is Python too once its signs are words."""
        condition = re.sub(r"\(\(i64\)(-?\d+)LL\)", r"\1", condition)
        said = re.sub(r"!(?!=)", " not ", condition.replace("||", " or ").replace("&&", " and "))
        if re.search(r"[?&|;{}]|->|\bi64\b", said):
            raise Unsupported("a condition that only C can say")
        self.line(f"if {said.strip()}: return None")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Errors raised: Unsupported; what asks for blocks of C on the host is no rule for kernels."""
        raise Unsupported("C on the host")
        yield


class KernelWriter(Writer):
    """The text of one kernel. ``host``: whose names it goes on with."""

    def __init__(self, host: HostWriter) -> None:
        super().__init__()
        self.host = host

    def fresh(self) -> int:
        """A number that no name has yet, in no kernel and not on the host."""
        return self.host.fresh()

    def bail(self, condition: str) -> None:
        """A kernel cannot go back: it stops the device as PyTorch's kernels do where they assert."""
        self.line(f"if ({condition}) TRAP;")


def kernel(host: HostWriter, name: str, kind: Kind, body: KernelWriter, written: set[str],
           shared: tuple[int, ...] = ()) -> Kernel:  # fmt: skip
    """What a body is as a whole kernel. written: pointers through which it stores."""
    text = "\n".join([*body.locals, *body.lines])
    own = {line.split()[-3] for line in body.locals}
    found = sorted({one for one in _NAME.findall(text) if one in host.types and one not in own},
                   key=lambda one: (not host.types[one].endswith("*"), int(re.findall(r"\d+", one)[0]), one))
    parameters = []
    signature = ""
    for one in found:
        ctype = host.types[one]
        signature += "d" if ctype == "double" else "q"
        if ctype.endswith("*"):
            parameters.append(f"{'' if one in written else 'const '}{ctype}__restrict__ {one}")
        else:
            parameters.append(f"const {ctype} {one}")
    head = f'extern "C" __global__ void {name}({", ".join(parameters)}) {{'
    return Kernel(name, "\n".join([head, text, "}"]), kind, tuple(found), signature, shared)


def indices(count: str, spans: list[Expr], first: int) -> Iterator[str]:
    """Lines that make the numbers of loops, from ``first`` on, of one number."""
    if not spans:
        return
    if len(spans) == 1:
        yield f"const i64 i{first} = {count};"
        return
    yield f"INDEX rest{first} = {count};"
    for level in range(len(spans) - 1, 0, -1):
        size = f"(INDEX){spans[level]}"
        yield f"const i64 i{first + level} = rest{first} % {size}; rest{first} /= {size};"
    yield f"const i64 i{first} = rest{first};"


__all__ = ["UNROLL", "HostWriter", "Kernel", "KernelWriter", "Kind", "indices", "kernel"]
