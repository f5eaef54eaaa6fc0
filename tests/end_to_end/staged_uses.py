"""Uses of torch's functions with a number, bool or text that only the run knows.

A use is an expression over ``x`` (a tensor) and one of

    n   an int        f   a float        b   a bool        s   one of two words

and the values which that takes. ``SIZES`` has expressions over ``x`` and ``n = x.shape[0]`` or another open size.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"

IMAGE, SIGNAL, MATRIX, VECTOR = (2, 4, 6, 6), (2, 4, 8), (4, 4), (6,)

INTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "torch.linspace(0, 1, n) * x.sum()": (VECTOR, (3, 1, 0, 7, -1)),
    "torch.linspace(x[0], x[1], n)": (VECTOR, (3, 1, 7)),
    "torch.linspace(0, 1, steps=n, dtype=torch.float64)": (VECTOR, (3, 5)),
    "torch.linspace(0, 1, n) * torch.ones(n)": (VECTOR, (3, 1, 4)),
    "torch.linspace(0, 1, n).view(n, 1).expand(n, 2) + x[0]": (VECTOR, (3, 1, 4)),
    "len(torch.linspace(0, 1, n)) + x.sum()": (VECTOR, (3, 1)),
    "torch.logspace(0, 1, n) * x.sum()": (VECTOR, (3, 1, 7)),
    "torch.vander(x, n)": (VECTOR, (3, 1, 7)),
    "torch.linalg.vander(x, N=n)": (VECTOR, (3, 2, 7)),
    "torch.histc(x, n)": (VECTOR, (3, 1, 7)),
    "torch.histc(x, bins=n, min=-1, max=1)": (VECTOR, (3, 1, 7, 0)),
    "torch.histogram(x, n)": (VECTOR, (3, 1, 7)),
    "torch.hann_window(n)": (VECTOR, (3, 1, 7)),
    "torch.hann_window(n, periodic=False) * x.sum()": (VECTOR, (3, 1, 7)),
    "torch.hamming_window(n)": (VECTOR, (3, 1, 7)),
    "torch.bartlett_window(n)": (VECTOR, (3, 1, 7)),
    "torch.blackman_window(n)": (VECTOR, (3, 1, 7)),
    "torch.kaiser_window(n)": (VECTOR, (3, 1, 7)),
    "torch.signal.windows.hann(n)": (VECTOR, (3, 1, 7)),
    "torch.signal.windows.gaussian(n, std=2.0)": (VECTOR, (3, 7)),
    "torch.fft.fftfreq(n)": (VECTOR, (3, 1, 8)),
    "torch.fft.rfftfreq(n)": (VECTOR, (3, 1, 8)),
    "torch.fft.fft(x, n).abs()": (VECTOR, (3, 1, 8)),
    "torch.fft.rfft(x, n).abs()": (VECTOR, (3, 1, 8)),
    "torch.fft.irfft(x, n)": (VECTOR, (3, 1, 8)),
    "torch.fft.fftn(x, s=(n, 4)).abs()": (MATRIX, (3, 1, 8)),
    "torch.tril_indices(n, n)": (VECTOR, (3, 1, 4, 0)),
    "torch.tril_indices(3, 4, n)": (VECTOR, (1, 0, -1, 9)),
    "torch.triu_indices(n, 4, offset=1)": (VECTOR, (3, 1, 4)),
    "torch.tril(x, n)": (MATRIX, (1, 0, -1, 9)),
    "x.triu(diagonal=n)": (MATRIX, (1, 0, -1, 9)),
    "torch.eye(n) * x.sum()": (MATRIX, (1, 0, 4)),
    "torch.eye(n, n + 1) * x.sum()": (MATRIX, (1, 0, 4)),
    "torch.randperm(n)": (MATRIX, (1, 0, 4)),
    "torch.randint(n, (3,))": (MATRIX, (1, 9, 4)),
    "torch.randint(0, 5, (n,))": (MATRIX, (1, 9, 4)),
    "torch.arange(n) * x.sum()": (MATRIX, (1, 0, 4)),
    "torch.arange(0, 10, n)": (MATRIX, (1, 3, 4)),
    "torch.diag_embed(x, n)": (VECTOR, (1, 0, -2)),
    "torch.diag_embed(x, offset=n, dim1=0, dim2=2)": (MATRIX, (1, 0, -2)),
    "torch.diagflat(x, n)": (VECTOR, (1, 0, -2)),
    "torch.diag(x, n)": (VECTOR, (1, 0, -2)),
    "torch.linalg.diagonal(x, offset=n)": (MATRIX, (1, 0, -2)),
    "x.trace() * torch.diagonal(x, n).sum()": (MATRIX, (1, 0, -2)),
    "torch.linalg.matrix_power(x, n)": (MATRIX, (2, 0, 1, 3, -1)),
    "x.matrix_power(n)": (MATRIX, (2, 0, 1, 5)),
    "torch.combinations(x, n)": (VECTOR, (2, 1, 3)),
    "torch.combinations(x, r=n, with_replacement=True)": (VECTOR, (2, 1, 3)),
    "torch.polygamma(n, x.abs() + 1)": (VECTOR, (1, 2, 3)),
    "x.abs().add(1).polygamma(n)": (VECTOR, (1, 2, 0)),
    "torch.mvlgamma(x.abs() + 4, n)": (VECTOR, (1, 2, 3)),
    "torch.round(x, decimals=n)": (VECTOR, (1, 2, 0, -1)),
    "x.round(decimals=n)": (VECTOR, (1, 2, 0)),
    "torch.cov(x, correction=n)": (MATRIX, (1, 2, 0)),
    "torch.var(x, 0, correction=n)": (MATRIX, (1, 2, 0)),
    "torch.std(x, correction=n)": (MATRIX, (1, 2, 0)),
    "F.group_norm(x, n)": (IMAGE, (1, 2, 4, 3)),
    "F.pixel_shuffle(x, n)": (IMAGE, (1, 2)),
    "F.pixel_unshuffle(x, n)": (IMAGE, (1, 2, 3)),
    "F.channel_shuffle(x, n)": (IMAGE, (1, 2, 4)),
    "F.max_pool1d(x, n)": (SIGNAL, (1, 2, 3, 9)),
    "F.avg_pool1d(x, n)": (SIGNAL, (1, 2, 3)),
    "F.max_pool2d(x, n)": (IMAGE, (1, 2, 3, 9)),
    "F.max_pool2d(x, 3, n)": (IMAGE, (1, 2, 3)),
    "F.max_pool2d(x, (3, n), stride=1)": (IMAGE, (1, 2, 3)),
    "F.max_pool2d(x, 3, stride=1, padding=n)": (IMAGE, (1, 0)),
    "F.max_pool2d(x, 2, stride=1, dilation=n)": (IMAGE, (1, 2)),
    "F.max_pool2d(x, n, return_indices=True)": (IMAGE, (1, 2)),
    "F.max_pool2d(x, n, ceil_mode=True)": (IMAGE, (1, 4)),
    "F.avg_pool2d(x, n, padding=n // 2)": (IMAGE, (1, 2, 3)),
    "F.avg_pool2d(x, 2, divisor_override=n)": (IMAGE, (1, 2, 3)),
    "F.lp_pool2d(x.abs() + 1, 2, n)": (IMAGE, (1, 2, 3)),
    "F.lp_pool1d(x.abs() + 1, 2, n)": (SIGNAL, (1, 2, 3)),
    "F.adaptive_avg_pool1d(x, n)": (SIGNAL, (1, 2, 3)),
    "F.adaptive_avg_pool2d(x, n)": (IMAGE, (1, 2, 3)),
    "F.adaptive_avg_pool2d(x, (n, 2))": (IMAGE, (1, 2, 3)),
    "F.adaptive_max_pool1d(x, n)": (SIGNAL, (1, 2, 3)),
    "F.adaptive_max_pool2d(x, (n, None))": (IMAGE, (1, 2, 3)),
    "F.adaptive_max_pool2d(x, n, return_indices=True)": (IMAGE, (1, 2, 3)),
    "nn.AvgPool2d(n)(x)": (IMAGE, (1, 2, 3)),
    "nn.MaxPool2d(n, stride=1)(x)": (IMAGE, (1, 2, 3)),
    "nn.AdaptiveAvgPool2d(n)(x)": (IMAGE, (1, 2, 3)),
    "nn.PixelShuffle(n)(x)": (IMAGE, (1, 2)),
    "nn.Unfold(n)(x)": (IMAGE, (1, 2)),
    "F.local_response_norm(x, n)": (IMAGE, (1, 2, 3)),
    "F.unfold(x, n)": (IMAGE, (1, 2, 3)),
    "F.unfold(x, (2, 2), stride=n, padding=n)": (IMAGE, (1, 2, 3)),
    "F.fold(x, 3, 2)[:, :, :n]": ((2, 4, 4), (1, 2)),
    "F.fold(x, n, 2)": ((2, 4, 4), (3,)),
    "F.fold(x, (3, 3), kernel_size=n)": ((2, 4, 4), (2,)),
    "F.interpolate(x, n)": (IMAGE, (1, 2, 9)),
    "F.interpolate(x, (n, 3), mode='bilinear', align_corners=True)": (IMAGE, (1, 2, 9)),
    "F.interpolate(x, size=n, mode='nearest-exact')": (SIGNAL, (1, 2, 9)),
    "F.interpolate(x, scale_factor=n)": (IMAGE, (1, 2, 3)),
    "F.interpolate(x, size=n, mode='area')": (IMAGE, (1, 2, 3)),
    "F.interpolate(x, size=(n, n), mode='bicubic', antialias=True)": (IMAGE, (1, 2, 3)),
    "nn.Upsample(scale_factor=n)(x)": (IMAGE, (1, 2, 3)),
    "F.conv1d(x, x[:, :, :3], stride=n)": (SIGNAL, (1, 2)),
    "F.conv1d(x, x[:, :, :3], padding=n)": (SIGNAL, (0, 1, 2)),
    "F.conv1d(x, x[:, :, :3], dilation=n)": (SIGNAL, (1, 2)),
    "F.conv1d(x, x[:, :1, :3].expand(4, 1, 3) if False else x[0, :, None, :3], groups=n)": (SIGNAL, (4,)),
    "F.conv2d(x, x[:, :, :3, :3], stride=n, padding=(n, 1))": (IMAGE, (1, 2)),
    "F.conv_transpose1d(x, x[:1].mT[:, :4, :].transpose(0, 1), stride=n)": ((2, 4, 4), (1, 2)),
    "F.conv_transpose1d(x, x.transpose(0, 1), output_padding=n, stride=3)": (SIGNAL, (0, 1, 2)),
    "F.one_hot(x.argsort(), n)": (VECTOR, (6, 7, -1)),
    "F.one_hot(x.argsort(), num_classes=n).float()": (VECTOR, (6, 9)),
    "torch.topk(x, n)": (VECTOR, (1, 3, 6, 0)),
    "x.topk(n, dim=0).values": (MATRIX, (1, 3)),
    "torch.kthvalue(x, n)": (VECTOR, (1, 3, 6)),
    "torch.multinomial(x.abs(), n)": (VECTOR, (1, 3, 6)),
    "torch.multinomial(x.abs(), n, replacement=True)": (VECTOR, (1, 3, 9)),
    "torch.roll(x, n)": (MATRIX, (1, -3, 0)),
    "torch.roll(x, (n, 1), (0, 1))": (MATRIX, (1, -3, 0)),
    "x.roll(shifts=n, dims=1)": (MATRIX, (1, -3, 0)),
    "x.repeat_interleave(n)": (VECTOR, (1, 3, 0)),
    "torch.repeat_interleave(x, n, dim=1)": (MATRIX, (1, 3, 0)),
    "x.repeat(n, 2)": (VECTOR, (1, 3, 0)),
    "torch.tile(x, (n,))": (VECTOR, (1, 3, 0)),
    "x.expand(n, 6)": (VECTOR, (1, 3, 0)),
    "torch.tensor_split(x, n)": (VECTOR, (1, 3, 2)),
    "x.chunk(n)": (VECTOR, (1, 3, 2)),
    "x.split(n)": (VECTOR, (1, 3, 2)),
    "F.glu(x, n)": (MATRIX, (0, 1, -1)),
    "x.cumsum(n)": (MATRIX, (0, 1, -1)),
    "x.sort(n)": (MATRIX, (0, 1, -1)),
    "x.flip(n)": (MATRIX, (0, 1, -1)),
    "x.narrow(0, n, 2)": (MATRIX, (0, 1, 2)),
    "x.narrow(0, 1, n)": (MATRIX, (0, 1, 2)),
    "torch.narrow(x, 0, 0, length=n)": (MATRIX, (0, 1, 2)),
    "torch.select(x, 0, n)": (MATRIX, (0, 1, -1)),
    "x.index_select(0, torch.tensor([n]))": (MATRIX, (0, 1, 2)),
    "F.pad(x, (n, 1))": (MATRIX, (0, 1, 2)),
    "F.pad(x, (n, n), mode='reflect')": (MATRIX, (0, 1, 2)),
    "F.pad(x, (1, n), mode='circular')": (MATRIX, (0, 1, 2)),
    "nn.ZeroPad2d(n)(x)": (IMAGE, (0, 1, 2)),
    "nn.ReflectionPad1d(n)(x)": (SIGNAL, (0, 1, 2)),
    "torch.nan_to_num(x, n)": (VECTOR, (0, 1)),
    "torch.clamp(x, max=n)": (VECTOR, (0, 1)),
    "torch.pow(x, n)": (VECTOR, (0, 1, 2)),
    "torch.pow(n, x)": (VECTOR, (0, 1, 2)),
    "torch.norm(x, n)": (VECTOR, (1, 2, 3)),
    "torch.linalg.vector_norm(x, n)": (VECTOR, (1, 2, 3)),
    "torch.linalg.norm(x, n)": (MATRIX, (1, 2, -1)),
    "torch.cdist(x, x + 1, n)": (MATRIX, (1, 2, 3)),
    "torch.renorm(x, n, 0, 1.0)": (MATRIX, (1, 2)),
    "torch.dist(x, x * 2, n)": (MATRIX, (1, 2)),
    "F.normalize(x, n)": (MATRIX, (1, 2)),
    "F.normalize(x, dim=n)": (MATRIX, (1, 0)),
    "F.pairwise_distance(x, x * 2, n)": (MATRIX, (1, 2)),
    "F.cosine_similarity(x, x * 2, n)": (MATRIX, (1, 0)),
    "F.multi_margin_loss(x, x.argmax(1), p=n)": (MATRIX, (1, 2)),
    "F.cross_entropy(x, x.argmax(1), ignore_index=n)": (MATRIX, (0, 1)),
    "F.nll_loss(x, x.argmax(1), ignore_index=n)": (MATRIX, (0, 1)),
    "F.embedding(x.argmax(1), x, padding_idx=n)": (MATRIX, (0, 1)),
    "F.embedding(x.argmax(1), x, max_norm=n)": ((4, 5), (1, 2)),
    "F.softmax(x, n)": (MATRIX, (0, 1)),
    "F.threshold(x, n, 2)": (MATRIX, (0, 1)),
    "F.hardtanh(x, -n, n)": (MATRIX, (2, 1)),
    "F.celu(x, n)": (MATRIX, (2, 1)),
    "F.relu6(x) + F.elu(x, alpha=n)": (MATRIX, (2, 1)),
    "torch.diff(x, n)": (VECTOR, (2, 1)),
    "torch.gradient(x, spacing=n)": (VECTOR, (2, 1)),
    "torch.gradient(x, edge_order=n)[0]": (VECTOR, (2, 1)),
    "torch.trapezoid(x, dx=n)": (VECTOR, (2, 1)),
    "torch.rot90(x, n)": (MATRIX, (2, 1)),
    "torch.movedim(x, n, 0)": (SIGNAL, (2, 1)),
    "torch.flatten(x, n)": (SIGNAL, (2, 1)),
    "torch.unflatten(x, 2, (n, -1))": (SIGNAL, (2, 1, 4)),
    "x.unfold(2, n, 1)": (SIGNAL, (2, 1, 4)),
    "torch.unsqueeze(x, n)": (SIGNAL, (2, 1)),
    "torch.tensordot(x, x, n)": (MATRIX, (2, 1)),
    "torch.bucketize(x, torch.linspace(0, 1, n))": (VECTOR, (2, 1)),
    "torch.bincount(x.argsort(), minlength=n)": (VECTOR, (2, 9)),
    "torch.stft(x, n, window=torch.hann_window(n), return_complex=True).abs()": ((32,), (8, 16)),
    "torch.stft(x, 8, hop_length=n, window=torch.ones(8), return_complex=True).abs()": ((32,), (2, 4)),
    "torch.cumulative_trapezoid(x, dx=n)": (VECTOR, (2, 1)),
    "torch.special.multigammaln(x.abs() + 4, n)": (VECTOR, (2, 1)),
    "torch.special.polygamma(n, x.abs() + 1)": (VECTOR, (2, 1)),
    "torch.special.hermite_polynomial_h(x.detach(), n)": (VECTOR, (2, 1)),
    "torch.tensor_split(x, (n, 4))": (VECTOR, (2, 1)),
    "torch.as_strided(x, (n, 2), (1, 1))": (VECTOR, (2, 1)),
    "torch.full((2,), n) + x[0]": (VECTOR, (2, 1)),
    "x.new_full((n,), 1.0)": (VECTOR, (2, 1)),
    "torch.scalar_tensor(n) + x": (VECTOR, (2, 1)),
    "torch.nn.utils.rnn.pad_sequence([x[:n], x[:3]])": (VECTOR, (2, 5)),
    "torch.block_diag(x[:n], x)": (MATRIX, (2, 3)),
    "torch.addmm(x, x, x, alpha=n)": (MATRIX, (2, 3)),
    "torch.bitwise_left_shift(x.argsort(), n)": (VECTOR, (2, 3)),
    "torch.ldexp(x, torch.tensor(n))": (VECTOR, (2, 3)),
    "torch.quantize_per_tensor(x.detach(), 0.1, n, torch.quint8).dequantize()": (VECTOR, (2, 3)),
    "torch.fake_quantize_per_tensor_affine(x, 0.1, n, 0, 255)": (VECTOR, (2, 3)),
    "torch.nonzero_static(x > 0, size=n)": (VECTOR, (2, 3)),
    "torch.tensor([n, 1, 2]) + x[:3]": (VECTOR, (2, 3)),
    "torch.unravel_index(x.argsort(), (n, 6))": (VECTOR, (1, 3)),
    "torch.linalg.tensorinv(x.view(4, 2, 2), ind=n)": ((4, 4), (1,)),
    "torch.nn.functional.gumbel_softmax(x, dim=n)": (MATRIX, (1, 0)),
    "torch.logsumexp(x, n)": (MATRIX, (1, 0)),
    "F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None].expand(2, 2, 3), (2, 4, n, 5)))": (IMAGE, (1, 3)),
    "torch.empty(n, 3).fill_(1.0) + x[0]": (VECTOR, (1, 3)),
    "x.clone().random_(n)": (VECTOR, (1, 3)),
    "x.detach().clone().fill_(n)": (VECTOR, (1, 3)),
    "torch.cholesky_inverse(x @ x.T + torch.eye(4) * n)": (MATRIX, (1, 3)),
    "F.ctc_loss(F.log_softmax(x.view(8, 1, 3), 2), torch.tensor([[1]]), torch.tensor([8]), torch.tensor([1]),"
    " blank=n)": ((24,), (0, 2)),
    "F.huber_loss(x, x * 2, delta=n)": (VECTOR, (1, 3)),
    "torch.lerp(x, x * 2, n)": (VECTOR, (1, 3)),
    "torch.where(x > 0, x, n)": (VECTOR, (1, 3)),
    "x.masked_fill(x > 0, n)": (VECTOR, (1, 3)),
    "x.index_fill(0, torch.tensor([1]), n)": (VECTOR, (1, 3)),
    "F.conv2d(x, x[:4, :2, :3, :3].repeat(2, 1, 1, 1), groups=n)": (IMAGE, (2,)),
    "torch.svd_lowrank(x, n)[1].shape[0] + x.sum()": (MATRIX, (2, 3)),
}

FLOATS: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "F.interpolate(x, scale_factor=f)": (IMAGE, (0.5, 2.0, 1.5)),
    "F.interpolate(x, scale_factor=(f, 2.0), mode='bilinear')": (IMAGE, (0.5, 2.0, 1.5)),
    "F.interpolate(x, scale_factor=f, mode='linear', align_corners=True)": (SIGNAL, (0.5, 2.0)),
    "F.interpolate(x, scale_factor=f, recompute_scale_factor=True)": (IMAGE, (0.5, 2.0, 1.5)),
    "F.dropout(x, f)": (IMAGE, (0.5, 0.0, 1.0)),
    "F.dropout(x.detach(), f) * x": (IMAGE, (0.5, 0.0, 1.0)),
    "F.dropout2d(x, f)": (IMAGE, (0.5, 0.0)),
    "F.alpha_dropout(x, f, training=True)": (IMAGE, (0.5, 0.25)),
    "F.leaky_relu(x, f)": (VECTOR, (0.5, 0.1)),
    "F.elu(x, f)": (VECTOR, (0.5, 0.1)),
    "F.rrelu(x, f, 0.6)": (VECTOR, (0.5, 0.1)),
    "F.rrelu(x, f, 0.6, training=True)": (VECTOR, (0.5, 0.1)),
    "F.layer_norm(x, (4,), eps=f)": (MATRIX, (0.5, 0.1)),
    "F.rms_norm(x, (4,), eps=f)": (MATRIX, (0.5, 0.1)),
    "F.batch_norm(x, torch.zeros(4), torch.ones(4), training=True, momentum=f)": (MATRIX, (0.5, 0.1)),
    "F.batch_norm(x, torch.zeros(4), torch.ones(4), eps=f)": (MATRIX, (0.5, 0.1)),
    "F.instance_norm(x, eps=f)": (SIGNAL, (0.5, 0.1)),
    "F.group_norm(x, 2, eps=f)": (SIGNAL, (0.5, 0.1)),
    "F.local_response_norm(x, 2, alpha=f, beta=f, k=f)": (IMAGE, (0.5, 0.1)),
    "F.softplus(x, f)": (VECTOR, (0.5, 2.0)),
    "F.softshrink(x, f)": (VECTOR, (0.5, 2.0)),
    "F.hardshrink(x, f)": (VECTOR, (0.5, 2.0)),
    "F.threshold(x, f, f)": (VECTOR, (0.5, 2.0)),
    "F.celu(x, f)": (VECTOR, (0.5, 2.0)),
    "F.normalize(x, eps=f)": (MATRIX, (0.5, 2.0)),
    "F.pairwise_distance(x, x * 2, p=f, eps=f)": (MATRIX, (0.5, 2.0)),
    "F.smooth_l1_loss(x, x * 2, beta=f)": (MATRIX, (0.5, 2.0)),
    "F.huber_loss(x, x * 2, delta=f)": (MATRIX, (0.5, 2.0)),
    "F.cross_entropy(x, x.argmax(1), label_smoothing=f)": (MATRIX, (0.5, 0.1)),
    "F.margin_ranking_loss(x, x * 2, x.sign(), margin=f)": (MATRIX, (0.5, 0.1)),
    "F.triplet_margin_loss(x, x * 2, x + 1, margin=f, p=f)": (MATRIX, (0.5, 0.1)),
    "F.poisson_nll_loss(x, x.abs(), log_input=False, eps=f)": (MATRIX, (0.5, 0.1)),
    "F.gaussian_nll_loss(x, x * 2, x.abs(), eps=f)": (MATRIX, (0.5, 0.1)),
    "F.gumbel_softmax(x, tau=f)": (MATRIX, (0.5, 0.1)),
    "F.lp_pool2d(x.abs() + 1, f, 2)": (IMAGE, (1.5, 2.0)),
    "F.scaled_dot_product_attention(x, x, x, scale=f)": (SIGNAL, (1.5, 2.0)),
    "F.scaled_dot_product_attention(x, x, x, dropout_p=f)": (SIGNAL, (0.5, 0.0)),
    "torch.quantile(x, f)": (VECTOR, (0.5, 0.25, 1.0)),
    "torch.quantile(x, f, dim=0, keepdim=True)": (MATRIX, (0.5, 0.25)),
    "torch.add(x, x, alpha=f)": (VECTOR, (0.5, 0.25)),
    "torch.addcmul(x, x, x, value=f)": (VECTOR, (0.5, 0.25)),
    "torch.clamp(x, -f, f)": (VECTOR, (0.5, 0.25)),
    "torch.lerp(x, x * 2, f)": (VECTOR, (0.5, 0.25)),
    "torch.logit(x.sigmoid(), eps=f)": (VECTOR, (0.25, 0.4)),
    "torch.linspace(f, 1, 5) + x.sum()": (VECTOR, (0.25, 0.4)),
    "torch.arange(0, 1, f)": (VECTOR, (0.25, 0.4)),
    "torch.arange(f, 3.0) * x.sum()": (VECTOR, (0.25, 0.4)),
    "torch.full((2,), f) + x[0]": (VECTOR, (0.25, 0.4)),
    "torch.normal(f, 1.0, (3,)) + x[0]": (VECTOR, (0.25, 0.4)),
    "torch.normal(0.0, f, (3,)) + x[0]": (VECTOR, (0.25, 0.4)),
    "torch.bernoulli(x, f)": (VECTOR, (0.25, 0.4)),
    "x.clone().bernoulli_(f)": (VECTOR, (0.25, 0.4)),
    "x.detach().clone().uniform_(0, f)": (VECTOR, (0.25, 0.4)),
    "x.detach().clone().normal_(f, 2.0)": (VECTOR, (0.25, 0.4)),
    "torch.nn.init.normal_(torch.empty(3), std=f) + x[0]": (VECTOR, (0.25, 0.4)),
    "torch.histc(x, 5, min=-f, max=f)": (VECTOR, (0.25, 0.4)),
    "torch.isclose(x, x + 0.3, atol=f)": (VECTOR, (0.25, 0.4)),
    "torch.nan_to_num(x, nan=f)": (VECTOR, (0.25, 0.4)),
    "torch.kaiser_window(5, True, f)": (VECTOR, (0.25, 4.0)),
    "torch.hamming_window(5, True, f)": (VECTOR, (0.25, 0.4)),
    "torch.cdist(x, x + 1, p=f)": (MATRIX, (1.5, 2.0)),
    "torch.linalg.pinv(x, rcond=f)": (MATRIX, (0.1, 0.01)),
    "torch.linalg.matrix_rank(x, tol=f)": (MATRIX, (0.1, 0.01)),
    "torch.linalg.vector_norm(x, f)": (MATRIX, (1.5, 2.0)),
    "torch.renorm(x, f, 0, f)": (MATRIX, (1.5, 2.0)),
    "torch.pow(x.abs(), f)": (MATRIX, (1.5, 2.0)),
    "torch.float_power(x.abs(), f)": (MATRIX, (1.5, 2.0)),
    "torch.special.zeta(x.abs() + 2, f)": (VECTOR, (1.5, 2.0)),
    "torch.special.xlogy(x.detach().abs(), f)": (VECTOR, (1.5, 2.0)),
    "torch.fft.fftfreq(5, f)": (VECTOR, (1.5, 2.0)),
    "torch.nn.Dropout(f)(x)": (VECTOR, (0.5, 0.25)),
    "torch.nn.functional.multi_margin_loss(x, x.argmax(1), margin=f)": (MATRIX, (0.5, 0.25)),
    "torch.gradient(x, spacing=f)[0]": (VECTOR, (0.5, 0.25)),
    "torch.fake_quantize_per_tensor_affine(x, f, 0, 0, 255)": (VECTOR, (0.5, 0.25)),
}

BOOLS: dict[str, tuple[int, ...]] = {
    "F.dropout(x, 0.5, training=b)": VECTOR,
    "F.dropout(x, 0.5, training=b, inplace=False)": VECTOR,
    "F.batch_norm(x, torch.zeros(4), torch.ones(4), training=b)": MATRIX,
    "F.instance_norm(x, use_input_stats=True, eps=1e-3 if b else 1e-5)": SIGNAL,
    "F.max_pool2d(x, 2, ceil_mode=b)": IMAGE,
    "F.max_pool2d(x, 2, return_indices=b)": IMAGE,
    "F.avg_pool2d(x, 2, 1, 1, count_include_pad=b)": IMAGE,
    "F.interpolate(x, 9, mode='bilinear', align_corners=b)": IMAGE,
    "F.interpolate(x, 3, mode='bilinear', antialias=b)": IMAGE,
    "F.interpolate(x, scale_factor=1.5, recompute_scale_factor=b)": IMAGE,
    "F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None].expand(2, 2, 3), (2, 4, 3, 3), align_corners=b),"
    " align_corners=b)": IMAGE,
    "F.embedding(x.argmax(1), x, scale_grad_by_freq=b)": MATRIX,
    "F.cosine_embedding_loss(x, x * 2, torch.ones(4), margin=0.5 if b else 0.1)": MATRIX,
    "F.kl_div(x, x.softmax(1), log_target=b, reduction='sum')": MATRIX,
    "F.poisson_nll_loss(x, x.abs(), log_input=b, full=b)": MATRIX,
    "F.gumbel_softmax(x, hard=b)": MATRIX,
    "F.leaky_relu(x, inplace=False) if b else F.relu(x)": MATRIX,
    "F.scaled_dot_product_attention(x, x, x, is_causal=b)": SIGNAL,
    "F.triplet_margin_loss(x, x * 2, x + 1, swap=b)": MATRIX,
    "x.sum(0, keepdim=b)": MATRIX,
    "x.var(0, unbiased=b)": MATRIX,
    "x.std(0, keepdim=b)": MATRIX,
    "torch.topk(x, 3, largest=b, sorted=True)": VECTOR,
    "torch.sort(x, descending=b)": VECTOR,
    "torch.sort(x, stable=b)": VECTOR,
    "x.argsort(descending=b)": VECTOR,
    "torch.unique(x, return_inverse=b)": VECTOR,
    "torch.vander(x, 3, b)": VECTOR,
    "torch.hann_window(5, b) * x[0]": VECTOR,
    "torch.cumsum(x, 0) if b else torch.cumprod(x, 0)": VECTOR,
    "torch.multinomial(x.abs(), 3, replacement=b)": VECTOR,
    "torch.bucketize(x, torch.linspace(0, 1, 3), right=b)": VECTOR,
    "torch.searchsorted(torch.linspace(0, 1, 3), x, right=b)": VECTOR,
    "torch.combinations(x, 2, b)": VECTOR,
    "torch.isclose(x, x * 1, equal_nan=b)": VECTOR,
    "torch.linalg.cholesky(x @ x.T + torch.eye(4), upper=b)": MATRIX,
    "torch.linalg.svd(x, full_matrices=b)[1]": MATRIX,
    "torch.linalg.solve(x, x * 2, left=b)": MATRIX,
    "torch.triangular_solve(x, x + torch.eye(4) * 4, upper=b)[0]": MATRIX,
    "torch.linalg.vector_norm(x, dim=0, keepdim=b)": MATRIX,
    "torch.nanmean(x, 0, b)": MATRIX,
    "torch.full((2,), b)": MATRIX,
    "x.new_zeros(2, requires_grad=False) + int(b)": MATRIX,
    "torch.stft(x, 8, window=torch.ones(8), onesided=b, return_complex=True).abs()": (32,),
    "torch.stft(x, 8, window=torch.ones(8), center=b, normalized=b, return_complex=True).abs()": (32,),
    "torch.std_mean(x, 0, keepdim=b)": MATRIX,
    "torch.cartesian_prod(x, x) if b else torch.combinations(x)": VECTOR,
    "torch.tensor(b) | (x > 0)": VECTOR,
    "torch.index_reduce(x, 0, torch.tensor([0, 1]), x[:2], 'mean', include_self=b)": VECTOR,
    "torch.scatter_reduce(x, 0, torch.tensor([0, 1]), x[:2], 'amax', include_self=b)": VECTOR,
    "torch.addmv(x[0], x, x[1], beta=b)": MATRIX,
    "nn.Identity()(x).requires_grad_(False) if b else x * 2": VECTOR,
    "F.ctc_loss(F.log_softmax(x.view(8, 1, 3), 2), torch.tensor([[1]]), torch.tensor([8]), torch.tensor([1]),"
    " zero_infinity=b)": (24,),
}

WORDS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "F.mse_loss(x, x * 2, reduction=s)": (MATRIX, ("mean", "sum")),
    "F.mse_loss(x, x * 2, reduction=s).sum()": (MATRIX, ("mean", "none")),
    "F.l1_loss(x, x * 2, reduction=s)": (MATRIX, ("none", "sum")),
    "F.cross_entropy(x, x.argmax(1), reduction=s)": (MATRIX, ("none", "sum")),
    "F.nll_loss(x, x.argmax(1), reduction=s)": (MATRIX, ("mean", "sum")),
    "F.kl_div(x, x.softmax(1), reduction=s)": (MATRIX, ("batchmean", "sum")),
    "F.binary_cross_entropy(x.sigmoid(), x.sigmoid().detach(), reduction=s)": (MATRIX, ("mean", "sum")),
    "F.huber_loss(x, x * 2, reduction=s)": (MATRIX, ("mean", "sum")),
    "F.ctc_loss(F.log_softmax(x.view(8, 1, 3), 2), torch.tensor([[1]]), torch.tensor([8]), torch.tensor([1]),"
    " reduction=s)": ((24,), ("mean", "sum")),
    "F.interpolate(x, 9, mode=s)": (IMAGE, ("nearest", "bilinear")),
    "F.interpolate(x, 9, mode=s)[0]": (IMAGE, ("bicubic", "area")),
    "F.pad(x, (1, 1), mode=s)": (SIGNAL, ("reflect", "constant")),
    "F.pad(x, (1, 1), s)": (SIGNAL, ("replicate", "circular")),
    "F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None].expand(2, 2, 3), (2, 4, 3, 3)), mode=s)": (
        IMAGE, ("nearest", "bilinear")),
    "F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None].expand(2, 2, 3) * 2, (2, 4, 3, 3)), padding_mode=s)": (
        IMAGE, ("zeros", "border")),
    "F.gelu(x, approximate=s)": (VECTOR, ("none", "tanh")),
    "F.conv1d(x, x[:, :, :3], padding=s)": (SIGNAL, ("same", "valid")),
    "torch.div(x, 2, rounding_mode=s)": (VECTOR, ("trunc", None)),
    "torch.quantile(x, 0.3, interpolation=s)": (VECTOR, ("lower", "higher")),
    "torch.fft.fft(x, norm=s).abs()": (VECTOR, ("ortho", None)),
    "torch.linalg.norm(x, s)": (MATRIX, ("fro", "nuc")),
    "torch.linalg.norm(x, s) + 1": (MATRIX, ("fro", 2)),
    "torch.linalg.qr(x, mode=s)[1]": (MATRIX, ("reduced", "complete")),
    "torch.meshgrid(x, x, indexing=s)": (VECTOR, ("ij", "xy")),
    "torch.einsum(s, x, x)": (MATRIX, ("ij,jk->ik", "ij,ij->")),
    "x.sum(s)": (MATRIX, (0, None)),
    "x.clamp(s, 2.0)": (VECTOR, (0.5, None)),
    "torch.var(x, s)": (MATRIX, (0, None)),
    "F.embedding(x.argmax(1), x, padding_idx=s)": (MATRIX, (0, None)),
    "F.layer_norm(x, (4,), s)": (MATRIX, (None, None)),
    "x.to(s)": (MATRIX, (torch.float64, torch.int64)),
    "torch.zeros(2, dtype=s)": (MATRIX, (torch.float64, torch.int64)),
    "F.interpolate(x, size=s)": (IMAGE, (3, (2, 5))),
    "F.interpolate(x, scale_factor=s)": (IMAGE, (2, (2.0, 0.5))),
    "torch.scatter(x, 0, torch.tensor([0, 1]), x[:2], reduce=s)": (VECTOR, ("add", "multiply")),
    "torch.scatter_reduce(x, 0, torch.tensor([0, 1]), x[:2], s)": (VECTOR, ("sum", "amax")),
    "torch.searchsorted(torch.linspace(0, 1, 3), x, side=s)": (VECTOR, ("left", "right")),
    "F.embedding_bag(x.argmax(1)[None], x, mode=s)": (MATRIX, ("mean", "sum")),
    "nn.CrossEntropyLoss(reduction=s)(x, x.argmax(1))": (MATRIX, ("mean", "sum")),
    "nn.Conv1d(4, 2, 3, padding_mode=s, padding=1)(x)": (SIGNAL, ("zeros", "reflect")),
    "getattr(torch, s)(x)": (VECTOR, ("sin", "cos")),
}

SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "torch.linspace(0, 1, x.shape[0]) * x": ((3,), (5,), (8,)),
    "torch.linspace(0, 1, x.shape[0] + 1)[:-1] * x": ((3,), (5,), (8,)),
    "torch.hann_window(x.shape[0]) * x": ((3,), (5,), (8,)),
    "torch.hann_window(x.shape[-1], periodic=False)[None] * x": ((2, 3), (2, 5), (2, 8)),
    "torch.hamming_window(x.shape[0]) * x": ((3,), (5,), (8,)),
    "torch.logspace(0, 1, len(x)) * x": ((3,), (5,), (8,)),
    "torch.vander(x, len(x))": ((3,), (5,), (8,)),
    "torch.histc(x, len(x)) + x": ((3,), (5,), (8,)),
    "x[torch.tril_indices(len(x), len(x)).unbind()] * 2": ((3, 3), (5, 5), (8, 8)),
    "x[torch.triu_indices(len(x), len(x), 1).unbind()].sum()": ((3, 3), (5, 5), (8, 8)),
    "F.avg_pool1d(x, x.shape[-1])": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.avg_pool1d(x, x.shape[-1]).squeeze(-1) @ x[0]": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.max_pool1d(x, x.shape[-1]).squeeze(-1)": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.avg_pool2d(x, x.shape[2:])": ((2, 3, 4, 4), (2, 3, 6, 6), (2, 3, 9, 9)),
    "F.max_pool2d(x, x.shape[2:]).flatten(1)": ((2, 3, 4, 4), (2, 3, 6, 6), (2, 3, 9, 9)),
    "F.avg_pool2d(x, (x.size(2), x.size(3))).view(x.size(0), -1)": ((2, 3, 4, 4), (2, 3, 6, 6), (2, 3, 9, 9)),
    "F.adaptive_avg_pool1d(x, x.shape[-1] // 2)": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.adaptive_max_pool1d(x, x.shape[-1] // 2)": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.interpolate(x, x.shape[-1] * 2)": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.interpolate(x, scale_factor=2) + 1": ((2, 3, 4), (2, 3, 6), (2, 3, 9)),
    "F.one_hot(torch.arange(len(x)), len(x)) * x": ((3,), (5,), (8,)),
    "F.group_norm(x, x.shape[1])": ((2, 4, 4), (2, 6, 4), (2, 3, 4)),
    "torch.diag_embed(x, len(x))": ((3,), (5,), (8,)),
    "torch.roll(x, len(x) // 2)": ((3,), (5,), (8,)),
    "x.topk(len(x) // 2).values": ((3,), (5,), (8,)),
    "x.kthvalue(len(x) // 2 + 1).values": ((3,), (5,), (8,)),
    "torch.fft.fftfreq(len(x)) * x": ((3,), (5,), (8,)),
    "torch.fft.rfftfreq(len(x)) + torch.fft.rfft(x).abs()": ((3,), (5,), (8,)),
    "torch.fft.irfft(torch.fft.rfft(x), n=len(x))": ((3,), (5,), (8,)),
    "torch.matrix_power(x, len(x))": ((3, 3), (5, 5), (4, 4)),
    "F.unfold(x, x.shape[-1])": ((2, 3, 4, 4), (2, 3, 6, 6), (2, 3, 9, 9)),
    "F.fold(F.unfold(x, 2), x.shape[2:], 2)": ((2, 3, 4, 4), (2, 3, 6, 6), (2, 3, 9, 9)),
    "torch.tensor_split(x, len(x))[0]": ((3,), (5,), (8,)),
    "torch.eye(len(x)) @ x": ((3,), (5,), (8,)),
    "F.pad(x, (0, len(x)))": ((3,), (5,), (8,)),
    "F.conv1d(x, x[:, :, :2], padding=x.shape[-1] // 2)": ((2, 2, 4), (2, 2, 6), (2, 2, 9)),
    "F.dropout(x, 1 / len(x))": ((3,), (5,), (8,)),
    "F.layer_norm(x, x.shape[1:], eps=1 / len(x))": ((3, 4), (5, 4), (8, 4)),
    "torch.combinations(x, 2)": ((3,), (5,), (8,)),
    "torch.chunk(x, 2)[0]": ((4,), (6,), (8,)),
    "x.unfold(0, len(x) // 2, 1)": ((4,), (6,), (9,)),
    "torch.stft(x, 4, hop_length=2, window=torch.hann_window(4), return_complex=True).abs()": ((16,), (24,), (32,)),
    "torch.repeat_interleave(x, len(x))": ((4,), (6,), (9,)),
    "torch.polygamma(len(x), x.abs() + 1)": ((2,), (3,), (4,)),
    "torch.linspace(-1, 1, x.shape[-1])[None, :].expand(x.shape[-2], -1) * x": ((3, 3), (5, 4), (8, 2)),
    "torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1 / x.shape[-1])": (
        (1, 3, 4), (1, 5, 6), (1, 8, 9)),
    "torch.multinomial(x.abs(), len(x) // 2)": ((4,), (6,), (9,)),
    "torch.cov(x, correction=len(x) - 2)": ((4, 4), (6, 4), (9, 4)),
    "torch.narrow(x, 0, len(x) // 2, 1)": ((4, 4), (6, 4), (9, 4)),
    "torch.rot90(x, len(x))": ((4, 4), (6, 4), (9, 4)),
    "torch.diagonal(x, len(x) - 3)": ((4, 4), (6, 4), (9, 4)),
    "x.chunk(len(x) // 2)[0]": ((4, 4), (6, 4), (9, 4)),
}


REFUSED: dict[str, str] = {
    "torch.tensor_split(x, n)": "D2S238", "x.narrow(0, n, 2)": "D2S231", "torch.unflatten(x, 2, (n, -1))": "D2S235",
    "torch.tensordot(x, x, n)": "D2S253", "F.interpolate(x, scale_factor=1.5, recompute_scale_factor=b)": "D2S253",
    "torch.quantize_per_tensor(x.detach(), 0.1, n, torch.quint8).dequantize()": "D2S213",
    "nn.Identity()(x).requires_grad_(False) if b else x * 2": "D2S213",
    "nn.Conv1d(4, 2, 3, padding_mode=s, padding=1)(x)": "D2S220",
    "F.fold(F.unfold(x, 2), x.shape[2:], 2)": "D2S315", "torch.tensor_split(x, len(x))[0]": "D2S315",
    "x.unfold(0, len(x) // 2, 1)": "D2S238", "torch.diagonal(x, len(x) - 3)": "D2S238",
    "x.chunk(len(x) // 2)[0]": "D2S238", "torch.tensor([n, 1, 2]) + x[:3]": "D2S515",
}
"""Uses that are not possible, all or in a file only, and the code that says so; ``ctc_loss`` never is (D2S235)."""


@dataclass(frozen=True)
class Use:
    """An expression, the kind of what is staged in it, the shapes of ``x`` and the values that it takes."""

    text: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    values: tuple[Any, ...]

    def source(self, name: str) -> str:
        """The use as a function of ``x`` and of a tensor that says which value."""
        if self.kind == "size":
            return f"def {name}(x):\n    return {self.text}\n"
        if self.kind == "word":
            first, second = self.values
            head = f"    s = {first!r}\n    if t > 0:\n        s = {second!r}\n"
        else:
            head = {"int": "    n = int(t)\n", "float": "    f = float(t)\n", "bool": "    b = bool(t)\n"}[self.kind]
        return f"def {name}(x, t):\n{head}    return {self.text}\n"

    def calls(self, grad: bool) -> list[tuple[torch.Tensor, ...]]:
        """What to call the function with."""
        tensors = []
        for shape in self.shapes:
            x = torch.randn(shape, generator=torch.Generator().manual_seed(5))
            tensors.append(x.requires_grad_(grad))
        if self.kind == "size":
            return [(x,) for x in tensors]
        values = (0, 1) if self.kind == "word" else self.values
        dtype = torch.float64 if self.kind == "float" else None
        return [(x.detach().clone().requires_grad_(grad), torch.tensor(value, dtype=dtype))
                for x, value in itertools.product(tensors, values)]


def every() -> Iterator[Use]:
    """All uses."""
    for text, (shape, values) in INTS.items():
        yield Use(text, "int", (shape,), values)
    for text, (shape, numbers) in FLOATS.items():
        yield Use(text, "float", (shape,), numbers)
    for text, shape in BOOLS.items():
        yield Use(text, "bool", (shape,), (True, False))
    for text, (shape, words) in WORDS.items():
        yield Use(text, "word", (shape,), words)
    for text, shapes in SIZES.items():
        yield Use(text, "size", shapes, ())


def functions(uses: list[Use], folder: Path) -> list[Callable[..., Any]]:
    """The uses as functions of a module that is written into a folder."""
    path = folder / "uses_of_staged_values.py"
    path.write_text(_HEAD + "\n\n".join(use.source(f"use_{index}") for index, use in enumerate(uses)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return [getattr(module, f"use_{index}") for index in range(len(uses))]
