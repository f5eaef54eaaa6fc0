"""Shape rules for packed sequences and layers of recurrent cells: torch's own take the number of steps for that of
rows, go through the steps one by one, or read memory.

    data, batch_sizes = _pack_padded_sequence(input, lengths)     data: (rows, *features), batch_sizes: (steps,)
    output, *states = lstm.data(data, batch_sizes, ...)           output: (rows, features)
    padded, lengths = _pad_packed_sequence(data, batch_sizes)     padded: (steps, batch, *features), lengths: (batch,)

How many rows and steps there are only a run knows. ``batch_sizes`` and ``lengths`` are int64 and on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from runtime.kinds import is_a
from runtime.torch_internals.fakes import fake_only, new_symbol
from runtime.torch_internals.versions import before

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv


def _whole(size: Any, like: Any = None) -> Any:
    """A fake of ``size``: int64 on the CPU, or of the dtype and on the device of ``like``."""
    if like is None:
        return torch.empty(size, dtype=torch.int64, device="cpu")
    return torch.empty(size, dtype=like.dtype, device=like.device)


def _pack(shape_env: ShapeEnv, data: Any, lengths: Any, batch_first: Any) -> Any:
    if data.dim() < 2 or type(batch_first) is not bool:
        return None
    rows, steps = new_symbol(shape_env, size=True), new_symbol(shape_env, size=True)
    return _whole((rows, *data.shape[2:]), data), _whole((steps,))


def _pad(shape_env: ShapeEnv, data: Any, batch_sizes: Any, batch_first: Any, padding: Any, total_length: Any) -> Any:
    if data.dim() < 1 or batch_sizes.dim() != 1 or type(batch_first) is not bool:
        return None
    batch, steps = new_symbol(shape_env, size=True), batch_sizes.shape[0]
    if is_a(total_length, torch.SymInt):
        known = shape_env.bound_sympy(total_length.node.expr).lower >= 0  # a length that is not positive is no length
        steps = total_length if known else new_symbol(shape_env, size=True)
    elif total_length > 0:
        steps = total_length
    padded = _whole((steps, batch, *data.shape[1:]), data)
    return padded.transpose(0, 1) if batch_first else padded, _whole((batch,))


def _recurrent(shape_env: ShapeEnv, data: Any, batch_sizes: Any, states: Any, *rest: Any) -> Any:
    if data.dim() != 2 or batch_sizes.dim() != 1 or type(rest[-1]) is not bool:
        return None
    given = states if is_a(states, (list, tuple)) else (states,)
    features = given[0].shape[-1] * (2 if rest[-1] else 1)
    return _whole((data.shape[0], features), data), *(_whole(tuple(one.shape), one) for one in given)


def _layers(
    shape_env: ShapeEnv, data: Any, state: Any, params: Any, *rest: Any, of_any_sizes: bool = False
) -> Any:  # fmt: skip
    """Of layers over a whole tensor with open sizes (``of_any_sizes``: or fixed ones): torch's rule goes through the
    steps one by one."""
    *_, bidirectional, batch_first = rest
    sizes = (*data.shape, *state.shape)
    if data.dim() != 3 or state.dim() != 3 or type(bidirectional) is not bool or type(batch_first) is not bool:
        return None
    if not of_any_sizes and not any(is_a(size, torch.SymInt) for size in sizes):
        return None
    steps, batch = (data.shape[1], data.shape[0]) if batch_first else (data.shape[0], data.shape[1])
    output = _whole((steps, batch, state.shape[-1] * (2 if bidirectional else 1)), data)
    return output.transpose(0, 1) if batch_first else output, _whole(tuple(state.shape), state)


def _long_layers(shape_env: ShapeEnv, data: Any, states: Any, params: Any, *rest: Any) -> Any:
    """As ``_layers``, of ``lstm``, whose hidden states may have another size than its cells (``proj_size``): then
    the rule of PyTorch 2.11 gives states with a dimension too many."""
    if len(states) != 2 or states[1].dim() != 3:
        return None
    is_projected = bool(states[0].shape[-1] != states[1].shape[-1])
    found = _layers(shape_env, data, states[0], params, *rest, of_any_sizes=is_projected and before(2, 13))
    return None if found is None else (*found, _whole(tuple(states[1].shape), states[1]))


_RULES: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._pack_padded_sequence.default: _pack,
    torch.ops.aten._pad_packed_sequence.default: _pad,
    torch.ops.aten.gru.input: _layers,
    torch.ops.aten.rnn_tanh.input: _layers,
    torch.ops.aten.rnn_relu.input: _layers,
    torch.ops.aten.lstm.input: _long_layers,
    torch.ops.aten.lstm.data: _recurrent,
    torch.ops.aten.gru.data: _recurrent,
    torch.ops.aten.rnn_tanh.data: _recurrent,
    torch.ops.aten.rnn_relu.data: _recurrent,
}


def packed(fake_mode: FakeTensorMode, shape_env: ShapeEnv, func: Any, args: Any, kwargs: Any) -> Any:
    """The results of an operator on packed sequences, as fake tensors; None for other operators and arguments.

    ``total_length`` may be a symbol.
    """
    rule = _RULES.get(func)
    if rule is None or kwargs:
        return None
    with fake_only(fake_mode):
        return rule(shape_env, *args)


def reads_lengths(func: Any) -> bool:
    """Whether an operator is made of others, by code that reads the numbers of rows in memory: stand-ins have none."""
    return _RULES.get(func) is _recurrent


def with_fitting_lengths(args: Sequence[Any]) -> list[Any]:
    """The arguments of an operator that ``reads_lengths``, with numbers of rows that fit its data and its states."""
    data, _, states, *rest = args
    state = states[0] if is_a(states, (list, tuple)) else states
    rows, batch = data.shape[0], state.shape[-2]
    steps = [batch] * (rows // batch) + [rows % batch] * (rows % batch > 0)
    return [data, torch.tensor(steps, device="cpu"), states, *rest]


def is_packed(func: Any) -> bool:
    """Whether an operator takes packed sequences, or makes them."""
    return func in _RULES
