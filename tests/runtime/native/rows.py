"""Programs of softmax and norms, row by row: what is compiled to C and to kernels alike."""

from __future__ import annotations

import torch

SIZES = [(3, 5), (2, 64), (1, 1), (4, 0), (0, 3), (7, 130)]
_INF, _NAN = float("inf"), float("nan")
NOT_FINITE = torch.tensor([
    [-_INF, 0.0, 1.0], [-_INF, -_INF, -_INF], [_NAN, 0.0, 1.0], [0.0, _NAN, 1.0], [_INF, 0.0, 1.0],
    [200.0, -200.0, 0.0],
])  # fmt: skip


def text_of(kind: str, inputs: str, lines: str, results: str) -> str:
    """A Program's text. ``inputs``: ``"x:a,n w:n"``; ``T[`` in the lines stands for the dtype."""
    given = "\n".join(f'  input %{name} : {kind}[{shape}] = "{name}"' for name, shape in
                      (one.split(":") for one in inputs.split()))  # fmt: skip
    names = results.split(", ")
    body = "\n".join(f"  {line}" for line in lines.replace("T[", f"{kind}[").split("\n"))
    places = ", ".join(f"${place}" for place in range(len(names)))
    returned = f"return {results} as ({places})" if len(names) > 1 else f"return {results} as $0"
    return f'program "f" {{\n{given}\n{body}\n  {returned}\n}}'


def softmax(kind: str, dtype: torch.dtype, log: str) -> str:
    """Both of its forms and the backward operator; ``log``: ``"log_"`` or nothing."""
    return text_of(kind, "x:a,n g:a,n", (
        f"%y : T[a, n] = aten._{log}softmax.default(%x, -1, False)\n"
        f"%z : T[a, n] = aten.{log}softmax.int(%g, 1)\n"
        f"%d : T[a, n] = aten._{log}softmax_backward_data.default(%g, %y, -1, {dtype})"
    ), "%y, %z, %d")  # fmt: skip


def two_softmaxes() -> str:
    """Of one input, with the logarithm and without."""
    return text_of("f32", "x:a,n", "%y : T[a, n] = aten._softmax.default(%x, -1, False)\n"
                   "%z : T[a, n] = aten._log_softmax.default(%x, -1, False)", "%y, %z")  # fmt: skip


def layer_norm_backward(kind: str, mask: str) -> str:
    """The results that the mask asks for."""
    wanted = [name for name, flag in zip(("%d", "%u", "%v"), mask.strip("[]").split(", ")) if flag == "True"]
    return text_of(kind, "g:a,n x:a,n m:a,1 r:a,1 w:n b:n", (
        "%n : int = scalar.size(%x, 1)\n"
        f"%d : T[a, n], %u : T[n], %v : T[n] = aten.native_layer_norm_backward.default("
        f"%g, %x, [%n], %m, %r, %w, %b, {mask})"
    ), ", ".join(wanted))  # fmt: skip
