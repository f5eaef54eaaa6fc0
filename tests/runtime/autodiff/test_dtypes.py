"""Complex numbers, half precision, autocast, mixed dtypes; and whole layers."""

import pytest
import torch


def test_complex(same_gradients):
    def f(x, w):
        h = x
        while h.abs().sum() < 50:
            h = h @ w + x
        return h.real, h, h.imag.sum()

    torch.manual_seed(1)
    same_gradients(f, torch.randn(3, 3, dtype=torch.complex128, requires_grad=True),
                   torch.randn(3, 3, dtype=torch.complex128, requires_grad=True), numeric=False)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(same_gradients, dtype):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            if h.sum() > 0:
                h = torch.tanh(h @ w)
            else:
                h = h + w
            i = i + 1
        return h, h.float().sum()

    same_gradients(f, torch.randn(4, 4).to(dtype).requires_grad_(), torch.randn(4, 4).to(dtype).requires_grad_(),
                   torch.tensor(3), rtol=1e-2, atol=1e-2)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_an_autocast_region(same_gradients, seed):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = h @ w
            if y.sum() > 0:
                h = torch.tanh(y).float()
            else:
                h = h + y
            i = i + 1
        return h

    torch.manual_seed(seed)
    same_gradients(f, torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True), torch.tensor(3),
                   rtol=2e-2, atol=2e-2)  # fmt: skip


def test_a_call_under_autocast(same_gradients):
    def f(x, w):
        h = torch.nn.functional.linear(x, w)
        if h.sum() > -1000:
            h = torch.nn.functional.layer_norm(h, (4,))
        return h

    def call(x, w):
        return f(x, w)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        same_gradients(call, torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True),
                       rtol=2e-2, atol=2e-2)  # fmt: skip


def test_mixed_dtypes(same_gradients):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        total = torch.zeros((), dtype=torch.float64)
        while i < n:
            h = torch.tanh(h.double() @ w).float()
            total = total + h.double().sum()
            i = i + 1
        return h, total

    same_gradients(f, torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, dtype=torch.float64, requires_grad=True),
                   torch.tensor(3), rtol=1e-5, atol=1e-6, numeric=False)  # fmt: skip


def test_convolution_attention_and_losses(same_gradients):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
            self.norm = torch.nn.LayerNorm(8)
            self.project = torch.nn.Linear(8, 8)
            self.pool = torch.nn.MaxPool2d(2)

        def forward(self, x):
            y = self.pool(torch.relu(self.conv(x)))
            z = self.norm(y.flatten(2)[..., :8])
            n = torch.tensor(0)
            while n < 2:
                q = self.project(z)
                z = z + torch.nn.functional.scaled_dot_product_attention(q, q, z)
                n = n + 1
            return torch.nn.functional.cross_entropy(z.mean(1), torch.arange(x.shape[0]))

    same_gradients(Net(), torch.randn(2, 3, 8, 8, requires_grad=True), rtol=1e-4, atol=1e-5)


def test_recurrent_cells_and_embeddings(same_gradients):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = torch.nn.LSTMCell(3, 4)
            self.words = torch.nn.Embedding(5, 3)

        def forward(self, ids, lengths):
            h = c = torch.zeros(2, 4)
            out = torch.zeros(ids.shape[0], 2, 4)
            for t in range(lengths.max().item()):
                h, c = self.cell(self.words(ids[t]), (h, c))
                out[t] = h
            return out, torch.nn.functional.gelu(out).logsumexp(0)

    for longest in (0, 2, 4):
        same_gradients(Net(), torch.randint(5, (4, 2)), torch.tensor([longest, 0]), rtol=1e-4, atol=1e-6)


def test_multihead_transformer_layer(same_gradients):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)

        def forward(self, x, depth):
            for _ in range(depth.item()):
                x = self.layer(x)
                if x.abs().max() > 100:
                    break
            return x

    same_gradients(Net(), torch.randn(2, 5, 8, requires_grad=True), torch.tensor(3), rtol=1e-4, atol=1e-5)
