"""The tables of what operators keep for backward, each row held against PyTorch's version counters."""

import pytest
import torch

from runtime.executor import keeps

N = 4


def _calls():
    """Operator name -> arguments; tensors of floats among them will need gradients."""
    m, v = torch.rand(N, N, dtype=torch.float64) + 0.5, torch.rand(N, dtype=torch.float64) + 0.5
    image, kernel = torch.rand(1, 2, 5, 5, dtype=torch.float64), torch.rand(3, 2, 2, 2, dtype=torch.float64)
    index = torch.tensor([1, 0, 3, 2])
    square = torch.tensor([[0, 1, 2, 3]] * N)
    flags = torch.tensor([True, False, True, False])
    stats = (torch.zeros(N, dtype=torch.float64), torch.ones(N, dtype=torch.float64))
    batch = (m, v, v.clone(), *stats, True, 0.1, 1e-5, False)
    one = {name: (m,) for name in (
        "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "clone", "neg", "sum", "mean",
        "isnan", "isinf", "isfinite", "argmax", "argmin", "is_nonzero", "lift_fresh_copy", "zero_", "neg_",
        "tril_", "triu_", "logical_not_", "sign_", "floor_", "ceil_", "round_", "trunc_", "random_", "normal_",
        "uniform_",
    )}  # fmt: skip
    two = {name: (m, m.clone()) for name in (
        "add", "sub", "rsub", "mul", "div", "mm", "matmul", "eq", "ne", "lt", "le", "gt", "ge", "equal", "allclose",
        "add_", "sub_", "mul_", "div_", "copy_", "logical_and_", "logical_or_", "logical_xor_",
        "eq_", "ne_", "lt_", "le_", "gt_", "ge_",
    )}  # fmt: skip
    table = {
        **one, **two,
        "full_like": (m, 2.0), "is_nonzero": (torch.rand(1, dtype=torch.float64),), "randint_like": (index, 5),
        "new_zeros": (m, [3]), "new_ones": (m, [3]), "new_empty": (m, [3]), "new_full": (m, [3], 1.0),
        "new_empty_strided": (m, [3], [1]), "bmm": (m[None], m[None].clone()), "addmm": (v, m, m.clone()),
        "baddbmm": (m[None], m[None].clone(), m[None].clone()), "linear": (m, m.clone(), v), "cat": ([m, m.clone()],),
        "stack": ([m, m.clone()],), "conv1d": (image[:, :, 0], kernel[:, :, 0]), "conv2d": (image, kernel),
        "conv3d": (image[:, :, None], kernel[:, :, None]), "layer_norm": (m, [N], v, v.clone()), "batch_norm": batch,
        "group_norm": (m, 2, v, v.clone()), "embedding": (m, index), "index_select": (m, 0, index),
        "gather": (m, 0, square), "where": (flags, m, m.clone()), "masked_fill": (m, flags, 0.0), "cumsum": (m, 0),
        "roll": (m, [1]), "flip": (m, [0]), "fill_": (m, 2.0), "index_put_": (m, [index], m.clone()),
        "index_add_": (m, 0, index, m.clone()), "index_copy_": (m, 0, index, m.clone()),
        "index_fill_": (m, 0, index, 1.0),
        "scatter_": (m, 0, square, m.clone()), "scatter_add_": (m, 0, square, m.clone()),
        "masked_fill_": (m, flags, 0.0),
        "masked_scatter_": (m, flags, m.clone()), "addmm_": (m, m.clone(), m.clone()), "addmv_": (v, m, v.clone()),
        "addr_": (m, v, v.clone()), "baddbmm_": (m[None], m[None].clone(), m[None].clone()),
        "lerp_": (m, m.clone(), 0.5),
        "addcmul_": (m, m.clone(), m.clone()), "addcdiv_": (m, m.clone(), m.clone()), "bernoulli_": (m,),
        "clamp_": (m, 0.6, 0.9), "clamp_min_": (m, 0.6), "clamp_max_": (m, 0.9),
    }  # fmt: skip
    factories = {
        "zeros": ([2],), "ones": ([2],), "empty": ([2],), "full": ([2], 1.0), "empty_strided": ([2], [1]),
        "arange": (3,),
        "linspace": (0, 1, 3), "logspace": (0, 1, 3), "eye": (2,), "scalar_tensor": (1.0,), "rand": ([2],),
        "randn": ([2],), "randint": (5, [2]), "tril_indices": (2, 2), "triu_indices": (2, 2),
    }  # fmt: skip
    return {**table, **factories}


CALLS = _calls()


def _overload(name, args):
    packet = getattr(torch.ops.aten, name)
    if len(args) > 1 and isinstance(args[1], torch.Tensor) and len(args) == 2:
        for wanted in ("Tensor", "self"):
            if wanted in packet.overloads():
                return getattr(packet, wanted)
    return packet


def _leaves(args):
    for arg in args:
        yield from arg if isinstance(arg, list) and arg and isinstance(arg[0], torch.Tensor) else [arg]


def _fresh(value):
    """A copy that needs a gradient and is no leaf, so that it may be written."""
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.clone().requires_grad_().clone()


def _call(name):
    args = [_fresh(arg) for arg in CALLS[name]]
    if name == "batch_norm":
        args[3:5] = [arg.detach() for arg in args[3:5]]
    result = _overload(name, args)(*args)
    return args, result


def _rows(table):
    return sorted(one.removeprefix("aten.") for one in table)


def _run_backward(result):
    first = result[0] if isinstance(result, (tuple, list)) else result
    if isinstance(first, torch.Tensor) and first.requires_grad:
        first.backward(torch.ones_like(first))
        return True
    return False


@pytest.mark.parametrize("name", _rows(keeps.FRESH))
def test_a_fresh_result_may_be_written(name):
    args, result = _call(name)
    memory = {arg.untyped_storage().data_ptr() for arg in _leaves(args) if isinstance(arg, torch.Tensor)}
    assert result.untyped_storage().data_ptr() not in memory
    if result.requires_grad:
        with torch.no_grad():
            result.add_(1)  # raises in backward if the result was kept
        assert _run_backward(result)


@pytest.mark.parametrize("name", _rows(keeps.READS_SIZES_ONLY))
def test_operands_of_which_only_sizes_are_read_may_be_written(name):
    args, result = _call(name)
    with torch.no_grad():
        for arg in _leaves(args):
            if isinstance(arg, torch.Tensor) and arg.is_floating_point():
                arg.add_(1)
    _run_backward(result)


@pytest.mark.parametrize("name", _rows(keeps._WRITES_KEEPING_NOTHING | keeps._WRITES_KEEPING_SOURCES))
def test_what_was_written_may_be_written_again(name):
    args, result = _call(name)
    nothing = "aten." + name in keeps._WRITES_KEEPING_NOTHING
    with torch.no_grad():
        for arg in args if nothing else args[:1]:
            if isinstance(arg, torch.Tensor):
                arg.add_(1)
    _run_backward(result)


@pytest.mark.parametrize("name, args", [("tanh_", 1), ("mul", 2), ("exp", 1)])
def test_the_check_can_fail(name, args):
    x = torch.rand(3, requires_grad=True).clone()
    y = getattr(torch.ops.aten, name)(*[x] * args)
    with torch.no_grad():
        (x if args == 2 else y).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _run_backward(y)
