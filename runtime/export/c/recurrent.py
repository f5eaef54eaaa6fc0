"""``nn.LSTM``, ``nn.GRU``, ``nn.RNN`` and their cells: a loop over time for each layer and direction.

    aten.lstm.input(%x, [%h, %c], [...])      ->      for (t ...) { gates = x[t] @ w.t() + h @ u.t() + b; h, c = ... }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.export.c.elements import arguments, dense, each, floats, size
from runtime.ir import Operand, Operator
from runtime.native.lowering import Lowering
from runtime.native.values import Expr, Tensor, Unsupported

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass
class _Weights:
    """Those of one layer in one direction."""

    ih: Tensor
    hh: Tensor
    biases: Sequence[Tensor]


def _step(low: Lowering, kind: str, weights: _Weights, x: str, inputs: Expr, batch: Expr, h: str, c: str, room: str,
          more: str, t: Tensor) -> None:  # fmt: skip
    """One step: ``h`` and ``c`` (where they are in memory) become those of the next. room, more: memory for gates."""
    w, s = low.w, floats(t)
    hidden = weights.hh.dims[1]
    wide = w.arith("*", hidden, _GATES[kind])
    for place, one in ((room, 0), (more, 1)):
        with each(low, (batch, wide)) as (i, j):
            bias = f"p{weights.biases[one].n}[{j}]" if weights.biases else "0"
            w.line(f"{place}[{i} * {wide} + {j}] = {bias};")
    first, second = (f"{one}, {wide}, {one}, {wide}" for one in (room, more))
    w.line(f"gemm_{s}(0, 1, {batch}, {wide}, {inputs}, {x}, {inputs}, p{weights.ih.n}, {inputs}, {first});")
    w.line(f"gemm_{s}(0, 1, {batch}, {wide}, {hidden}, {h}, {hidden}, p{weights.hh.n}, {hidden}, {second});")
    ctype = t.ctype
    with each(low, (batch, hidden)) as (i, j):
        w.line(f"const {ctype} *a = {room} + {i} * {wide} + {j}, *b = {more} + {i} * {wide} + {j};")
        at = f"[{i} * {hidden} + {j}]"
        if kind == "lstm":
            for name, gate in (("in", 0), ("keep", 1), ("out_gate", 3)):
                w.line(f"const {ctype} {name}_ = 1 / (1 + m_exp_{s}(-(a[{gate} * {hidden}] + b[{gate} * {hidden}])));")
            w.line(f"const {ctype} new = m_tanh_{s}(a[2 * {hidden}] + b[2 * {hidden}]);")
            w.line(f"{c}{at} = keep_ * {c}{at} + in_ * new;")
            w.line(f"{h}{at} = out_gate_ * m_tanh_{s}({c}{at});")
        elif kind == "gru":
            w.line(f"const {ctype} reset = 1 / (1 + m_exp_{s}(-(a[0] + b[0])));")
            w.line(f"const {ctype} keep = 1 / (1 + m_exp_{s}(-(a[{hidden}] + b[{hidden}])));")
            w.line(f"const {ctype} new = m_tanh_{s}(a[2 * {hidden}] + reset * b[2 * {hidden}]);")
            w.line(f"{h}{at} = new + keep * ({h}{at} - new);")
        elif kind == "rnn_tanh":
            w.line(f"{h}{at} = m_tanh_{s}(a[0] + b[0]);")
        else:
            w.line(f"{h}{at} = a[0] + b[0] > 0 ? a[0] + b[0] : 0;")


def _weights(low: Lowering, given: Sequence[Operand], biased: bool, inputs: Expr) -> _Weights:
    found = dense(low, *given)
    if found[0].rank != 2 or found[1].rank != 2 or found[0].dims[1] != inputs:
        raise Unsupported("weights that do not fit")
    return _Weights(found[0], found[1], found[2:4] if biased else ())


def emit_cell(low: Lowering, op: Operator) -> None:
    """One step of a cell."""
    call = arguments(op)
    kind = op.name.split(".")[1].removesuffix("_cell")
    state = call["hx"] if kind == "lstm" else [call["hx"]]
    (x,) = dense(low, call["input"])
    before = dense(low, *state)
    biases = [one for one in (call["b_ih"], call["b_hh"]) if one is not None]
    if x.rank != 2 or len(biases) == 1:
        raise Unsupported("a rank")
    weights = _weights(low, [call["w_ih"], call["w_hh"], *biases], bool(biases), x.dims[1])
    batch, w = x.dims[0], low.w
    floats(x, weights.ih, weights.hh, *before)
    wide = w.arith("*", weights.hh.dims[1], _GATES[kind])
    rooms = [low.fresh(x.dtype, (batch, wide)) for _ in range(2)]
    made = []
    for one in before:
        for own, other in zip(one.dims, (batch, weights.hh.dims[1])):
            if own != other:
                w.bail(f"{own} != {other}")
        made.append(low.fresh(one.dtype, one.dims))
        low.copy(made[-1], one)
    _step(low, kind, weights, f"p{x.n}", x.dims[1], batch, f"p{made[0].n}", f"p{made[-1].n}", f"p{rooms[0].n}",
          f"p{rooms[1].n}", x)  # fmt: skip
    for room in rooms:
        low.release(room)
    for out, value in zip(op.outputs, made):
        low.give(out, value)


def emit_layers(low: Lowering, op: Operator) -> None:
    """A whole network: layers, one direction or both."""
    call = arguments(op)
    kind = op.name.split(".")[1]
    if call["train"] and call["dropout"]:
        raise Unsupported("dropout in training")
    (x,) = dense(low, call["input"])
    state = call["hx"] if kind == "lstm" else [call["hx"]]
    before = dense(low, *state)
    if x.rank != 3:
        raise Unsupported("a rank")
    first, biased, layers = bool(call["batch_first"]), bool(call["has_biases"]), int(call["num_layers"])
    ways = 2 if call["bidirectional"] else 1
    given = list(call["params"])
    each_of = 4 if biased else 2
    if len(given) != each_of * layers * ways:
        raise Unsupported("projections")
    batch, steps = (x.dims[0], x.dims[1]) if first else (x.dims[1], x.dims[0])
    w, t = low.w, x.ctype
    hidden = before[0].dims[2]
    floats(x, *before)
    for one in before:
        for own, other in zip(one.dims, (layers * ways, batch, hidden)):
            if own != other:
                w.bail(f"{own} != {other}")
    # time first, as the loops go
    row: Expr = x.dims[2]
    sequence = low.fresh(x.dtype, (steps, batch, row))
    with each(low, (steps, batch, row)) as (s, b, i):
        source = f"({b} * {steps} + {s})" if first else f"({s} * {batch} + {b})"
        w.line(f"p{sequence.n}[({s} * {batch} + {b}) * {row} + {i}] = p{x.n}[{source} * {row} + {i}];")
    wide = w.arith("*", hidden, _GATES[kind])
    rooms = [low.fresh(x.dtype, (batch, wide)) for _ in range(2)]
    last = []
    for one in before:
        last.append(low.fresh(one.dtype, one.dims))
        low.copy(last[-1], one)
    step = w.arith("*", batch, hidden)
    for layer in range(layers):
        made = low.fresh(x.dtype, (steps, batch, w.arith("*", hidden, ways)))
        for way in range(ways):
            number = layer * ways + way
            part = given[number * each_of : (number + 1) * each_of]
            weights = _weights(low, part, biased, row)
            with w.block(""):
                w.line(f"{t} *h = p{last[0].n} + {number} * {step}, *cell = p{last[-1].n} + {number} * {step};")
                w.line("(void)cell;")
                with each(low, (steps,)) as (s,):
                    place = size(low, f"{steps} - 1 - {s}" if way else s)
                    _step(low, kind, weights, f"(p{sequence.n} + {place} * {batch} * {row})", row, batch, "h", "cell",
                          f"p{rooms[0].n}", f"p{rooms[1].n}", x)  # fmt: skip
                    with each(low, (batch, hidden)) as (b, j):
                        w.line(f"p{made.n}[(({place} * {batch} + {b}) * {ways} + {way}) * {hidden} + {j}] = "
                               f"h[{b} * {hidden} + {j}];")  # fmt: skip
        low.release(sequence)
        sequence, row = made, w.arith("*", hidden, ways)
    for room in rooms:
        low.release(room)
    if first:
        turned = low.fresh(x.dtype, (batch, steps, row))
        with each(low, (batch, steps, row)) as (b, s, i):
            w.line(f"p{turned.n}[({b} * {steps} + {s}) * {row} + {i}] = p{sequence.n}[({s} * {batch} + {b}) * {row} + "
                   f"{i}];")  # fmt: skip
        low.release(sequence)
        sequence = turned
    for out, value in zip(op.outputs, [sequence, *last]):
        low.give(out, value)


NAMES = {
    emit_cell: ["lstm_cell.default", "gru_cell.default", "rnn_tanh_cell.default", "rnn_relu_cell.default"],
    emit_layers: ["lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"],
}
