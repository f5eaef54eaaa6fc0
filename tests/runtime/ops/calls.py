"""Calls of many operators on real tensors: (overload, args, kwargs). Shared by the tests of the facts."""

from __future__ import annotations

from typing import Any

import torch

GENERATOR = torch.Generator().manual_seed(7)


def f(*shape: int) -> torch.Tensor:
    """Random floats in (0.1, 0.9): in the domain of every elementwise function."""
    return torch.rand(shape, generator=GENERATOR) * 0.8 + 0.1


def i(*shape: int, high: int = 3) -> torch.Tensor:
    return torch.randint(1, high, shape, generator=GENERATOR)


def b(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=GENERATOR) > 0.5


def c(*shape: int) -> torch.Tensor:
    return torch.complex(f(*shape), f(*shape))


UNARY = (
    "abs acos acosh angle arccos arctan asin asinh atan atanh ceil clone conj conj_physical cos cosh deg2rad "
    "digamma erf erfc erfinv exp exp2 expm1 fix floor frac gelu hardsigmoid hardswish i0 isfinite isinf isnan "
    "lgamma log log10 log1p log2 log_sigmoid logical_not logit mish nan_to_num neg negative positive rad2deg ravel "
    "real reciprocal relu relu6 resolve_conj resolve_neg round rsqrt selu sgn sigmoid sign signbit silu sin sinc "
    "sinh softplus special_entr special_expit special_ndtr sqrt square tan tanh trunc t matrix_H mT alias detach "
    "contiguous all any amax amin argmax argmin count_nonzero max mean median min prod std sum var trace tril triu "
    "det squeeze adjoint atleast_1d atleast_2d atleast_3d data lift lift_fresh _cast_Float _cast_Double numpy_T "
    "zeros_like ones_like empty_like rand_like randn_like bernoulli fliplr flipud inverse linalg_inv "
    "linalg_cholesky_ex linalg_qr linalg_svd linalg_eigh matrix_exp svd qr slogdet logdet nonzero pinverse isreal "
    "relu_ sigmoid_ tanh_ exp_ neg_ abs_ zero_ squeeze_ t_ detach_ normal_ uniform_ exponential_ cauchy_ "
    "log_normal_ random_ hardtanh hardtanh_ elu leaky_relu celu"
).split()
"""Called with one square matrix where they take just that; the rest of their arguments default."""

GONE = {name for name in ("qr", "cholesky") if not hasattr(torch.ops.aten, name)}
"""Operators that some of the supported versions of torch have no longer."""
UNARY = [name for name in UNARY if name not in GONE]

X, S, V = f(2, 3), f(3, 3), f(3)
BN = (f(4, 3), f(3), f(3), f(3), f(3))
LSTM = (f(5, 2, 3), [torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)],
        [f(16, 3), f(16, 4), f(16), f(16), f(16, 4), f(16, 4), f(16), f(16)], True, 2)  # fmt: skip
GRU = (f(5, 2, 3), torch.zeros(2, 2, 4), [f(12, 3), f(12, 4), f(12), f(12), f(12, 4), f(12, 4), f(12), f(12)], True, 2)
RNN = (f(5, 2, 3), torch.zeros(2, 2, 4), [f(4, 3), f(4, 4), f(4), f(4), f(4, 4), f(4, 4), f(4), f(4)], True, 2)
QKV = (f(1, 2, 4, 8), f(1, 2, 4, 8), f(1, 2, 4, 8))

CALLS: list[tuple[Any, ...]] = [
    # arithmetic and comparison
    ("add.Tensor", (X, V)), ("sub.Tensor", (X, V)), ("mul.Tensor", (X, V)), ("div.Tensor", (X, V)),
    ("div.Tensor_mode", (X, V), {"rounding_mode": "floor"}), ("pow.Tensor_Scalar", (X, 2)), ("atan2.default", (X, X)),
    ("maximum.default", (X, V)), ("where.self", (b(2, 3), X, V)), ("eq.Tensor", (X, V)), ("lt.Scalar", (X, 1)),
    ("lerp.Scalar", (X, V, 0.5)), ("addcmul.default", (X, X, X)), ("clamp.default", (X, 0)),
    ("remainder.Scalar", (X, 2)),
    ("bitwise_and.Tensor", (i(3), i(3))), ("logical_and.default", (b(3), b(3))),
    ("floor_divide.default", (i(3), i(3))),
    ("masked_fill.Scalar", (X, b(2, 3), 0)), ("fmod.Scalar", (X, 1)), ("copysign.Scalar", (X, -1)),
    ("type_as.default", (X, V)), ("type_as.default", (X, i(1))), ("to_dense.default", (X,)),
    ("sum_to_size.default", (X, [2, 3])),
    ("sum_to_size.default", (X, [1, 3])), ("dequantize.self", (X,)),
    *((f"_cast_{kind}.default", (torch.ones(2, dtype=dtype),)) for kind, dtype in (
        ("Byte", torch.uint8), ("Char", torch.int8), ("Double", torch.float64), ("Float", torch.float64),
        ("Float", torch.float32),
        ("Half", torch.float16), ("Int", torch.int32), ("Long", torch.int64), ("Short", torch.int16))),
        ("round.decimals", (X,), {"decimals": 1}), ("clamp_min.default", (X, 0)),
    ("add_.Tensor", (X, V)), ("mul_.Scalar", (X, 2)), ("clamp_.default", (X, 0)), ("copy_.default", (X, V)),
    ("fill_.Scalar", (X, 1)), ("masked_fill_.Scalar", (X, b(2, 3), 0)), ("add.out", (X, V), {"out": f(2, 3)}),
    ("sort.values", (X,), {"values": f(2, 3), "indices": i(2, 3)}), ("div_.Tensor", (X, V)),
    ("lerp_.Scalar", (X, X, 0.5)),
    ("addcdiv_.default", (X, X, X)), ("conj_physical.default", (c(2),)), ("conj_physical_.default", (c(2),)),
    ("conj.default", (c(2, 2),)), ("resolve_conj.default", (c(2).conj(),)), ("view_as_complex.default", (f(3, 2),)),
    ("view_as_real.default", (c(3),)), ("imag.default", (c(3),)), ("real.default", (c(3),)),
    ("angle.default", (c(3),)),
    ("to.dtype", (X, torch.float32)), ("to.dtype", (X, torch.float64)), ("to.dtype", (X, torch.float32, False, True)),
    ("_to_copy.default", (X,), {"dtype": torch.float32}), ("to.other", (X, V)), ("float_power.Tensor_Scalar", (X, 1)),
    ("_foreach_add.Scalar", ([X, V], 1)), ("_foreach_add_.Scalar", ([f(2), f(3)], 1)), ("rsub.Scalar", (X, 1)),
    # shapes and views
    ("view.default", (X, [3, 2])), ("reshape.default", (X, [3, 2])), ("reshape.default", (f(3, 2).t(), [6])),
    ("flatten.using_ints", (X,)), ("flatten.using_ints", (f(3, 2).t(),)), ("contiguous.default", (f(3, 2).t(),)),
    ("transpose.int", (X, 0, 1)), ("permute.default", (X, [1, 0])), ("movedim.int", (X, 0, 1)),
    ("swapaxes.default", (X, 0, 1)),
    ("select.int", (X, 0, 0)), ("slice.Tensor", (X, 1, 0, 2)), ("narrow.default", (X, 1, 0, 2)),
    ("unsqueeze.default", (X, 0)),
    ("squeeze.dim", (f(1, 2), 0)), ("expand.default", (V, [2, 3])), ("expand_as.default", (V, X)),
    ("diagonal.default", (S,)),
    ("unfold.default", (V, 0, 2, 1)), ("as_strided.default", (X, [2], [1])), ("unflatten.int", (f(6), 0, [2, 3])),
    ("broadcast_to.default", (V, [2, 3])), ("broadcast_tensors.default", ([X, V],)), ("meshgrid.default", ([V, V],)),
    ("meshgrid.indexing", ([V, V],), {"indexing": "xy"}), ("view_as.default", (X, f(3, 2))),
    ("reshape_as.default", (X, f(3, 2))), ("_unsafe_view.default", (X, [6])),
    ("_reshape_alias.default", (X, [6], [1])),
    ("split.Tensor", (X, 1)), ("split_with_sizes.default", (X, [1, 1])), ("chunk.default", (X, 2)),
    ("unbind.int", (X,)),
    ("tensor_split.sections", (X, 2)), ("unsafe_split.Tensor", (X, 1)), ("unsafe_chunk.default", (X, 2)),
    ("unsafe_split_with_sizes.default", (X, [1, 1])), ("hsplit.int", (f(2, 2), 2)), ("vsplit.int", (f(2, 2), 2)),
    ("atleast_2d.Sequence", ([V],)), ("atleast_1d.Sequence", ([V],)), ("atleast_3d.Sequence", ([V],)),
    ("select_copy.int", (X, 0, 0)), ("view_copy.default", (X, [6])), ("repeat.default", (X, [1, 1])),
    ("tile.default", (X, [1])),
    ("roll.default", (X, [0])), ("rot90.default", (X, 0)), ("flip.default", (X, [])), ("cat.default", ([X],)),
    ("stack.default", ([X],)), ("hstack.default", ([X],)), ("vstack.default", ([X],)), ("block_diag.default", ([X],)),
    ("transpose_.default", (f(2, 3), 0, 1)), ("unsqueeze_.default", (f(2, 3), 0)), ("pad.default", (X, [0, 0])),
    ("constant_pad_nd.default", (X, [0, 0])), ("repeat_interleave.self_int", (V, 1)),
    ("lift_fresh_copy.default", (X,)),
    ("flatten_dense_tensors.default", ([V],)), ("flatten_dense_tensors.default", ([V, V],)),
    ("unflatten_dense_tensors.default", (f(6), [V, V])), ("cartesian_prod.default", ([V],)),
    ("combinations.default", (V,)), ("_to_cpu.default", ([V],)), ("_remove_batch_dim.default", (X, 0, 2, 0)),
    ("set.source_Tensor", (X, V)),
    ("histogramdd.TensorList_bins", (f(4, 2), [torch.tensor([0.0, 0.5, 1.0])] * 2)),
    ("_saturate_weight_to_fp16.default", (X,)),
    ("chain_matmul.default", ([S],)), ("chain_matmul.default", ([S, S],)), ("diag_embed.default", (V,)),
    ("pixel_shuffle.default", (f(1, 4, 2, 2), 1)), ("channel_shuffle.default", (f(1, 4, 2, 2), 1)),
    # indexing
    ("index.Tensor", (X, [i(2, high=2)])), ("index_select.default", (X, 0, i(2, high=2))),
    ("gather.default", (X, 1, i(2, 3))),
    ("scatter.value", (X, 1, i(2, 3), 1.0)), ("scatter_add.default", (X, 1, i(2, 3), X)), ("take.default", (X, i(2))),
    ("masked_select.default", (X, b(2, 3))), ("index_put.default", (X, [i(1, high=2)], V)), ("topk.default", (V, 2)),
    ("index_put_.default", (f(2, 3), [i(1, high=2)], V)), ("scatter_.value", (f(2, 3), 1, i(2, 3), 1.0)),
    ("index_add_.default", (f(3), 0, i(2), f(2))), ("index_copy.default", (V, 0, i(1), f(1))), ("sort.default", (X,)),
    ("kthvalue.default", (V, 1)), ("unique_consecutive.default", (i(4),)), ("searchsorted.Tensor", (V, X)),
    ("bincount.default", (i(4),)), ("slice_scatter.default", (X, X)), ("select_scatter.default", (X, V, 0, 0)),
    ("embedding.default", (S, i(2))), ("embedding_bag.default", (S, i(4), torch.tensor([0, 2]))),
    ("one_hot.default", (i(3),)),
    ("embedding_renorm_.default", (f(3, 3) * 9, i(2), 1.0, 2.0)), ("histc.default", (V,)),
    ("bucketize.Tensor", (X, V)),
    # reductions and linear algebra
    ("sum.dim_IntList", (X, [])), ("sum.dim_IntList", (X, [0], True)), ("mean.dim", (X, [1])), ("norm.Scalar", (X,)),
    ("linalg_vector_norm.default", (X,)), ("max.dim", (X, 1)), ("cummax.default", (X, 0)), ("var_mean.default", (X,)),
    ("aminmax.default", (X,)), ("mm.default", (X, S)), ("matmul.default", (X, V)),
    ("bmm.default", (f(1, 2, 3), f(1, 3, 2))),
    ("linear.default", (X, S, V)), ("addmm.default", (V, X, S)), ("dot.default", (V, V)), ("outer.default", (V, V)),
    ("einsum.default", ("ij,jk->ik", [X, S])), ("einsum.default", ("ij->ji", [X])),
    ("einsum.default", ("ii->i", [S])),
    ("tensordot.default", (X, S, [1], [0])), ("linalg_matrix_power.default", (S, 1)),
    ("linalg_multi_dot.default", ([X, S],)),
    ("linalg_solve.default", (S, V)), ("cdist.default", (X, X)), ("kron.default", (X, X)),
    ("cross.default", (X, X, 1)),
    ("baddbmm.default", (f(1, 2, 2), f(1, 2, 3), f(1, 3, 2))), ("cumprod.default", (X, 0)),
    ("logsumexp.default", (X, [0])), ("cumsum.default", (X, 0)), ("diff.default", (X, 0)),
    ("fft_fft.default", (V,)), ("fft_fftn.default", (c(2, 2),)), ("fft_fftshift.default", (V,)),
    ("stft.default", (f(16), 4), {"window": torch.ones(4), "return_complex": True}),
    # neural networks
    ("relu.default", (X,)), ("gelu.default", (X,)), ("softmax.int", (X, 1)), ("log_softmax.int", (X, 1)),
    ("threshold.default", (X, 0, 0)),
    ("softmax.int", (X, 1, torch.float32)), ("layer_norm.default", (X, [3], V, V)),
    ("group_norm.default", (f(2, 4, 3), 2)),
    ("rms_norm.default", (X, [3])), ("conv1d.default", (f(1, 2, 5), f(3, 2, 2))),
    ("conv2d.default", (f(1, 1, 4, 4), f(1, 1, 1, 1))),
    ("conv_transpose2d.input", (f(1, 1, 4, 4), f(1, 1, 2, 2))), ("max_pool2d.default", (f(1, 1, 4, 4), [1, 1])),
    ("avg_pool2d.default", (f(1, 1, 4, 4), [1, 1])), ("adaptive_avg_pool2d.default", (f(1, 1, 4, 4), [4, 4])),
    ("upsample_nearest2d.vec", (f(1, 1, 4, 4), [4, 4], None)),
    ("max_pool2d_with_indices.default", (f(1, 1, 4, 4), [2, 2])),
    ("upsample_bilinear2d.default", (f(1, 1, 4, 4), [4, 4], False)),
    ("cross_entropy_loss.default", (X, torch.tensor([0, 1]))),
    ("mse_loss.default", (X, X, 0)), ("l1_loss.default", (X, X, 0)), ("nll_loss.default", (X, torch.tensor([0, 1]))),
    ("binary_cross_entropy_with_logits.default", (X, X)), ("smooth_l1_loss.default", (X, X)),
    ("prelu.default", (X, f(1))),
    ("kl_div.default", (X, X)), ("cosine_similarity.default", (X, X)), ("pairwise_distance.default", (X, X)),
    ("ctc_loss.IntList", (f(5, 1, 3).log(), i(1, 2), [5], [2])), ("hinge_embedding_loss.default", (V, i(3))),
    ("multi_margin_loss.default", (X, torch.tensor([0, 1]))), ("glu.default", (f(2, 4),)),
    ("grid_sampler.default", (f(1, 1, 2, 2), f(1, 2, 2, 2), 0, 0, False)),
    ("batch_norm.default", (*BN, True, 0.1, 1e-5, False)), ("batch_norm.default", (*BN, False, 0.1, 1e-5, False)),
    ("batch_norm.default", (BN[0], None, None, None, None, True, 0.1, 1e-5, False)),
    ("instance_norm.default", (f(4, 3, 5), *BN[1:], True, 0.1, 1e-5, False)),
    ("instance_norm.default", (f(4, 3, 5), *BN[1:], False, 0.1, 1e-5, False)),
    ("native_batch_norm.default", (*BN, True, 0.1, 1e-5)), ("native_batch_norm.default", (*BN, False, 0.1, 1e-5)),
    ("_batch_norm_impl_index.default", (*BN, True, 0.1, 1e-5, False)),
    ("_native_batch_norm_legit.default", (*BN, True, 0.1, 1e-5)), ("native_layer_norm.default", (X, [3], V, V, 1e-5)),
    ("batch_norm_update_stats.default", (BN[0], BN[3], BN[4], 0.1)),
    ("_batch_norm_with_update.default", (*BN, 0.1, 1e-5)),
    *((f"{kind}dropout.default", (f(2, 3, 4), p, train))
      for kind in ("", "feature_", "alpha_", "feature_alpha_") for p in (0.0, 0.5, 1.0) for train in (True, False)),
    *((f"{kind}dropout_.default", (f(2, 3, 4), 0.5, train))
      for kind in ("", "feature_", "alpha_", "feature_alpha_") for train in (True, False)),
    *(("native_dropout.default", (X, p, train)) for p in (0.0, 0.5) for train in (True, False)),
    *(("lstm.input", (*LSTM, p, train, False, False)) for p in (0.0, 0.5) for train in (True, False)),
    *(("gru.input", (*GRU, p, train, False, False)) for p in (0.0, 0.5) for train in (True, False)),
    *((f"rnn_{kind}.input", (*RNN, p, train, False, False)) for kind in ("tanh", "relu") for p in (0.0, 0.5)
      for train in (True, False)),
    *(("rrelu.default", (X - 0.5, 0.1, 0.3, train)) for train in (True, False)),
    *(("rrelu_.default", (X - 0.5, 0.1, 0.3, train)) for train in (True, False)),
    *(("rrelu_with_noise.default", (X - 0.5, f(2, 3), 0.1, 0.3, train)) for train in (True, False)),
    *(("scaled_dot_product_attention.default", QKV, {"dropout_p": p}) for p in (0.0, 0.5)),
    ("lstm_cell.default", (f(2, 3), [f(2, 4), f(2, 4)], f(16, 3), f(16, 4))),
    ("gru_cell.default", (f(2, 3), f(2, 4), f(12, 3), f(12, 4))),
    # new tensors and random numbers
    ("zeros.default", ([2],)), ("arange.default", (3,)), ("full.default", ([2], 1)), ("eye.default", (2,)),
    ("new_zeros.default", (X, [2])),
    ("sparse_coo_tensor.indices_size", (torch.zeros(2, 1, dtype=torch.int64), f(1), [3, 3])),
    ("linspace.default", (0, 1, 3)), ("scalar_tensor.default", (1,)), ("rand.default", ([2],)),
    ("randn.default", ([2],)),
    ("randint.default", (9, [2])), ("randperm.default", (9,)), ("normal.Tensor_float", (X,)),
    ("bernoulli.p", (X, 0.5)),
    ("multinomial.default", (V, 1)), ("poisson.default", (X,)), ("binomial.default", (X + 3, X)),
    ("randint_like.default", (X, 9)),
    ("_sample_dirichlet.default", (X,)), ("_standard_gamma.default", (X,)),
]  # fmt: skip
