"""Normalisation with known statistics or those of groups, softmax along any dimension, variances.

    aten.batch_norm.default(%x, %w, %b, %m, %v, False, ...)      ->      y = x * a + c, with a and c for each channel
"""

from __future__ import annotations

from runtime.export.c.elements import arguments, at, close, dense, dtype_of, each, floats, ready, size
from runtime.export.c.shaping import first_of
from runtime.ir import Operator
from runtime.native import rows
from runtime.native.lowering import Lowering, Rule
from runtime.native.values import Expr, Tensor, Unsupported
from runtime.native.views import axis


def _optional(low: Lowering, *operands: object) -> list[Tensor | None]:
    return [None if one is None else dense(low, one)[0] for one in operands]


def emit_batch_norm(low: Lowering, op: Operator) -> None:
    """``batch_norm`` with running statistics."""
    call = arguments(op)
    if call["training"] is not False or call.get("running_mean") is None or call.get("running_var") is None:
        raise Unsupported("batch normalisation with the statistics of the batch")
    (x,) = dense(low, call["input"])
    weight, bias, mean, var = _optional(low, call["weight"], call["bias"], call["running_mean"], call["running_var"])
    assert mean is not None and var is not None
    floats(x, weight, bias, mean, var)
    if x.rank < 2:
        raise Unsupported("a rank")
    w, t = low.w, x.ctype
    made = low.fresh(x.dtype, x.dims)
    n, channels, inner = x.dims[0], x.dims[1], w.product(x.dims[2:])
    for one in (weight, bias, mean, var):
        if one is not None and one.dims != (channels,):
            raise Unsupported("sizes that do not fit")
    eps = low.number(call["eps"]).text
    with each(low, (n, channels)) as (i, c):
        factor = "" if weight is None else f" * p{weight.n}[{c}]"
        w.line(f"const {t} a = ({t})1 / {'sqrtf' if t == 'float' else 'sqrt'}(p{var.n}[{c}] + ({t}){eps}){factor};")
        w.line(f"const {t} b = {'0' if bias is None else f'p{bias.n}[{c}]'} - p{mean.n}[{c}] * a;")
        w.line(f"const {t} *from = p{x.n} + ({i} * {channels} + {c}) * {inner};")
        w.line(f"{t} *to = p{made.n} + ({i} * {channels} + {c}) * {inner};")
        w.line(f"for (i64 j = 0; j < {inner}; j++) to[j] = from[j] * a + b;")
    close(low, [call["input"]], [x])
    low.give(op.outputs[0], made)


def emit_group_norm(low: Lowering, op: Operator) -> None:
    """``group_norm``, and ``instance_norm`` with the statistics of each instance."""
    call = arguments(op)
    (x,) = dense(low, call["input"])
    weight, bias = _optional(low, call["weight"], call["bias"])
    floats(x, weight, bias)
    if x.rank < 2 or call.get("use_input_stats") is False:
        raise Unsupported("running statistics")
    w, t = low.w, x.ctype
    made = low.fresh(x.dtype, x.dims)
    n, channels, inner = x.dims[0], x.dims[1], w.product(x.dims[2:])
    groups: Expr = low.size(call["num_groups"]) if "num_groups" in call else channels
    if not isinstance(channels, int) or not isinstance(groups, int) or channels % groups:
        raise Unsupported("channels that are not known")
    share = channels // groups
    eps = low.number(call["eps"]).text
    count = w.arith("*", share, inner)
    with each(low, (n, groups)) as (i, g):
        w.line(f"const {t} *from = p{x.n} + ({i} * {channels} + {g} * {share}) * {inner};")
        w.line(f"{t} *to = p{made.n} + ({i} * {channels} + {g} * {share}) * {inner};")
        w.line("double sum = 0, squares = 0;")
        w.line(f"for (i64 j = 0; j < {count}; j++) sum += from[j];")
        w.line(f"const double mean = sum / (double){count};")
        w.line(f"for (i64 j = 0; j < {count}; j++) squares += (from[j] - mean) * (from[j] - mean);")
        w.line(f"const double inverse = 1 / sqrt(squares / (double){count} + {eps});")
        with each(low, (share,)) as (c,):
            factor = "" if weight is None else f" * p{weight.n}[{g} * {share} + {c}]"
            addend = "" if bias is None else f" + p{bias.n}[{g} * {share} + {c}]"
            w.line(f"for (i64 j = {c} * {inner}; j < ({c} + 1) * {inner}; j++) "
                   f"to[j] = ({t})((from[j] - mean) * inverse){factor}{addend};")  # fmt: skip
    close(low, [call["input"]], [x])
    low.give(op.outputs[0], made)


def emit_softmax(low: Lowering, op: Operator) -> None:
    """``softmax``, ``log_softmax`` and ``logsumexp`` along any dimension of any layout."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    if call.get("half_to_float") or dtype_of(op.outputs[0]) != x.dtype:
        raise Unsupported("another dtype")
    kind, w, t = floats(x), low.w, x.ctype
    logsum = "logsumexp" in op.name
    wanted = call["dim"][0] if isinstance(call["dim"], (list, tuple)) and len(call["dim"]) == 1 else call["dim"]
    if not x.rank:
        raise Unsupported("a number")
    dim = axis(x, wanted)
    stay = (*x.dims[:dim], *x.dims[dim + 1 :])
    keep = [1] if call.get("keepdim") else []
    made = low.fresh(x.dtype, (*x.dims[:dim], *keep, *x.dims[dim + 1 :]) if logsum else x.dims)
    low.strides(x), low.strides(made)
    flat = Tensor(made.n, made.dtype, stay, order=tuple(range(len(stay))))
    with each(low, stay) as index:
        before, after = index[:dim], index[dim:]
        element = at(low, x, *before, "j", *after)
        w.line(f"{t} top = -INFINITY; double sum = 0;")
        w.line(f"for (i64 j = 0; j < {x.dims[dim]}; j++) if ({element} > top || {element} != {element}) "
               f"top = {element};")  # fmt: skip
        if logsum:
            w.line("if (fabs((double)top) == INFINITY) top = 0;")
        w.line(f"for (i64 j = 0; j < {x.dims[dim]}; j++) sum += m_exp_{kind}({element} - top);")
        if logsum:
            w.line(f"{at(low, flat, *index)} = ({t})log(sum) + top;")
        elif "log" in op.name:
            w.line(f"const {t} rest = ({t})log(sum);")
            w.line(f"for (i64 j = 0; j < {x.dims[dim]}; j++) {at(low, made, *before, 'j', *after)} = "
                   f"{element} - top - rest;")  # fmt: skip
        else:
            w.line(f"for (i64 j = 0; j < {x.dims[dim]}; j++) {at(low, made, *before, 'j', *after)} = "
                   f"({t})(m_exp_{kind}({element} - top) / sum);")  # fmt: skip
    low.give(op.outputs[0], made)


def emit_layer_norm(low: Lowering, op: Operator) -> None:
    """``layer_norm`` of memory that lies otherwise: of a dense copy."""
    call = arguments(op)
    if len(op.outputs) > 1:
        raise Unsupported("the statistics")
    (x,) = dense(low, call["input"])
    weight, bias = _optional(low, call["weight"], call["bias"])
    floats(x, weight, bias)
    sizes = low.sizes(call["normalized_shape"])
    w, t = low.w, x.ctype
    for own, other in zip(x.dims[x.rank - len(sizes) :], sizes):
        if own != other:
            w.bail(f"{own} != {other}")
    made = low.fresh(x.dtype, x.dims)
    count, n = w.product(x.dims[: x.rank - len(sizes)]), w.product(tuple(sizes))
    eps = low.number(call["eps"]).text
    with each(low, (count,)) as (i,):
        w.line(f"const {t} *from = p{x.n} + {i} * {n}; {t} *to = p{made.n} + {i} * {n};")
        w.line("double sum = 0, squares = 0;")
        w.line(f"for (i64 j = 0; j < {n}; j++) sum += from[j];")
        w.line(f"const double mean = sum / (double){n};")
        w.line(f"for (i64 j = 0; j < {n}; j++) squares += (from[j] - mean) * (from[j] - mean);")
        w.line(f"const double inverse = 1 / sqrt(squares / (double){n} + {eps});")
        factor = "" if weight is None else f" * p{weight.n}[j]"
        addend = "" if bias is None else f" + p{bias.n}[j]"
        w.line(f"for (i64 j = 0; j < {n}; j++) to[j] = ({t})((from[j] - mean) * inverse){factor}{addend};")
    close(low, [call["input"]], [x])
    low.give(op.outputs[0], made)


def emit_variance(low: Lowering, op: Operator) -> None:
    """``var`` and ``std``, with any correction."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    floats(x)
    w, t = low.w, x.ctype
    wanted = call.get("dim")
    if isinstance(wanted, int):
        wanted = [wanted]
    gone = sorted(axis(x, one) for one in wanted) if wanted else list(range(x.rank))
    correction = call.get("correction", call.get("unbiased", True))
    less = "1" if correction is None else low.number(correction).text
    stay = [dim for dim in range(x.rank) if dim not in gone]
    keep = bool(call.get("keepdim", False))
    made = low.fresh(x.dtype, [1 if dim in gone else x.dims[dim] for dim in range(x.rank) if keep or dim in stay])
    flat = Tensor(made.n, made.dtype, tuple(x.dims[dim] for dim in stay), order=tuple(range(len(stay))))
    count = size(low, str(w.product(tuple(x.dims[dim] for dim in gone))))
    low.strides(x), low.strides(flat)

    def fold(index: list[str], text: str) -> None:
        with each(low, [x.dims[dim] for dim in gone]) as inner:
            places = dict(zip(stay, index)) | dict(zip(gone, inner))
            w.line(text.format(at(low, x, *(places[dim] for dim in range(x.rank)))))

    with each(low, flat.dims) as index:
        w.line("double sum = 0, squares = 0;")
        fold(index, "sum += {0};")
        w.line(f"const double mean = sum / (double){count};")
        fold(index, "squares += ({0} - mean) * ({0} - mean);")
        w.line(f"const double rest = (double){count} - (double){less};")
        value = "squares / (rest > 0 ? rest : 0)"
        w.line(f"{at(low, flat, *index)} = ({t}){f'sqrt({value})' if '.std.' in op.name else f'({value})'};")
    low.give(op.outputs[0], made)


NAMES: dict[Rule, list[str]] = {
    emit_batch_norm: ["batch_norm.default"],
    emit_group_norm: ["group_norm.default", "instance_norm.default"],
    first_of(rows.emit_softmax, emit_softmax): ["softmax.int", "log_softmax.int", "_softmax.default",
                                                "_log_softmax.default"],
    emit_softmax: ["logsumexp.default"],
    first_of(rows.emit_layer_norm, emit_layer_norm): ["layer_norm.default"],
    emit_variance: [f"{name}.{kind}" for name in ("var", "std") for kind in ("default", "dim", "correction")],
}  # fmt: skip
