"""Models in ONNX Runtime, on inputs that take every path, against eager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static.onnx
from dy2static import InputSpec, to_static
from tests.runtime.export.onnx import harness
from tests.runtime.export.onnx.harness import check, operators


def vec(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


X = [InputSpec([3], "float32", "x")]
UP, DOWN, MIXED = vec(1, 2, 3), vec(-1, -2, -3), vec(-1, 5, 0.5)


def branch(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + x


def other_dtypes(x):
    if x.sum() > 0:
        y = x.long()
    else:
        y = x
    return y


def other_sizes(x):
    if x.sum() > 0:
        y = x[:2]
    else:
        y = torch.cat([x, x])
    return y * 2


def other_ranks(x):
    if x.sum() > 0:
        y = x.sum()
    else:
        y = x.reshape(3, 1)
    return (y * 2).sum()


def halving(x):
    steps = 0
    while x.abs().max() > 1:
        x = x / 2
        steps += 1
    return x, steps


def ranged(x):
    total = x
    for i in range(x.abs().max().long()):
        total = total + i * x
    return total


def breaking(x):
    for i in range(10):
        x = x * 1.5
        if x.abs().sum() > 20:
            break
    return x, i


def continuing(x):
    total = torch.zeros(())
    for row in x:
        if row < 0:
            continue
        total = total + row
    return total


def early(x):
    if x.max() < 0:
        return x * 0
    for i in range(4):
        x = x + i
        if x.sum() > 12:
            return x, i
    return x


def appending(x):
    items = []
    while x.abs().max() > 0.5:
        items.append(x)
        x = x / 2
    return items, len(items)


def stacking(x):
    items = [x]
    while x.abs().max() > 0.5:
        x = x / 2
        items.append(x)
    return torch.stack(items), torch.cat(items, dim=0)


def branch_in_loop(x):
    n = 0
    while x.sum().abs() < 30:
        if x.max() > 4:
            x = x + x.abs()
            n += 1
        else:
            x = x * 2 - 1
    return x, n


def counting(x):
    count, total = 0, x
    while count < 5 and total.sum() < 10:
        total = total + count
        count += 1
    return total, count, total * count


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))

    def forward(self, x):
        out = torch.zeros(2, 3)
        if x.sum() > 0:
            out[0] = x * self.scale
            out[1, 1:] += 1
        else:
            out[:, 0] = 5
        return out


def nonlocals(x):
    total = torch.zeros(3)

    def add(value):
        nonlocal total
        total = total + value

    while total.sum() < 6:
        add(x.abs())
    return total


def ternary(x):
    return (x if x.sum() > 0 else -x) + (1 if x.max() > 2 else 0)


def chains(x):
    if x.sum() > 0 and x.max() > 2 or not x.min() > -2:
        return x + 1
    return x - 1


def deep(x):
    if x.sum() > 0:
        while x.max() < 50:
            if x.min() > 3:
                x = x * 3
            else:
                x = x + 1
    else:
        x = -x
    return x


def raising(x):
    if x.min() < -1:
        raise ValueError(f"too small: {x.min().item()}")
    assert x.max() < 3, "too large"
    return x * 2


def numbers(x):
    n = int(x.abs().sum())
    return n // 2, n % 3, n / 4, -n // 2, round(x[0].item()), max(n, 2), n > 3, 1.5 * n, float(n) % 2.5, n ** 3


CONSTRUCTS = [branch, other_dtypes, other_sizes, other_ranks, halving, ranged, breaking, continuing, early, appending,
              stacking, branch_in_loop, counting, Buffered(), nonlocals, ternary, chains, deep, raising, numbers]


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", CONSTRUCTS, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_constructs(function, tmp_path):
    check(function, tmp_path, X, (UP,), (DOWN,), (MIXED,), (vec(0.1, 0.2, 0.05),))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(3))

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mask = chosen == number
            if mask.any():
                out[mask] = expert(x[mask])
        return out


def test_mixture_of_experts(tmp_path):
    torch.manual_seed(0)
    model = Experts().eval()
    calls = [(torch.randn(n, 4) * 3,) for n in (1, 2, 5, 16)]
    check(model, tmp_path, [InputSpec([None, 4], "float32", "x")], *calls)


class Language(nn.Module):
    """A small language model: what comes after the tokens so far."""

    def __init__(self, words: int = 11, width: int = 16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(torch.tanh(self.mix(self.embed(tokens)).cumsum(1)[:, -1]))


class Greedy(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Language()

    def forward(self, tokens, most):
        done = torch.zeros(tokens.shape[0], dtype=torch.bool)
        steps = 0
        while steps < most.item() and not done.all():
            word = self.model(tokens).argmax(-1)
            word = torch.where(done, torch.zeros_like(word), word)
            tokens = torch.cat([tokens, word.unsqueeze(1)], dim=1)
            done = done | (word == 3)
            steps += 1
        return tokens, steps


def test_greedy_decoder(tmp_path):
    torch.manual_seed(1)
    specs = [InputSpec([None, None], "int64", "tokens"), InputSpec([], "int64", "most")]
    calls = [(torch.randint(11, (b, t)), torch.tensor(n)) for b, t, n in ((1, 2, 5), (3, 4, 12), (2, 1, 0))]
    model = check(Greedy().eval(), tmp_path, specs, *calls)
    assert operators(model).count("Loop") == 1


class Beam(nn.Module):
    def __init__(self, width: int = 3):
        super().__init__()
        self.model = Language()
        self.width = width

    def forward(self, start, most):
        tokens = start.expand(self.width, -1)
        scores = torch.full((self.width,), -1e9)
        scores[0] = 0.0
        for _ in range(most.item()):
            logits = torch.log_softmax(self.model(tokens), -1)
            whole = (scores.unsqueeze(1) + logits).reshape(-1)
            scores, places = whole.topk(self.width)
            beams = torch.div(places, logits.shape[-1], rounding_mode="floor")
            tokens = torch.cat([tokens[beams], (places % logits.shape[-1]).unsqueeze(1)], dim=1)
            if (tokens[0] == 3).any():
                break
        return tokens, scores


def test_beam_search(tmp_path):
    torch.manual_seed(2)
    specs = [InputSpec([1, None], "int64", "start"), InputSpec([], "int64", "most")]
    calls = [(torch.randint(11, (1, t)), torch.tensor(n)) for t, n in ((1, 6), (3, 3), (2, 0), (4, 1))]
    check(Beam().eval(), tmp_path, specs, *calls)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 5)

    def forward(self, x):
        h = torch.zeros(x.shape[1], 5)
        rows = []
        for row in x:
            h = self.cell(row, h)
            rows.append(h)
        return torch.stack(rows), h


def test_a_recurrent_network_is_one_loop(tmp_path):
    torch.manual_seed(3)
    calls = [(torch.randn(t, b, 4),) for t, b in ((1, 1), (7, 2), (20, 3))]
    model = check(Recurrent().eval(), tmp_path, [InputSpec([None, None, 4], "float32", "x")], *calls)
    found = operators(model)
    assert found.count("Loop") == 1 and found.count("Tanh") == 1
    assert not any("Sequence" in name for name in found)  # rows of one length are what the loop scans


def test_sizes_that_the_call_knows(tmp_path):
    def f(x, y):
        z = torch.cat([x, y], dim=0)
        if z.shape[0] > 4:
            z = z[: x.shape[0] * 2]
        return z.reshape(-1, 2).sum(0) / z.shape[0], x.shape[0] + y.shape[1]

    specs = [InputSpec([None, 2], "float32", "x"), InputSpec([None, 2], "float32", "y")]
    calls = [(torch.randn(a, 2), torch.randn(b, 2)) for a, b in ((2, 2), (3, 9), (4, 2))]
    check(f, tmp_path, specs, *calls)


def nested(batch, pair):
    mask = batch["mask"]
    if mask.any():
        values = batch["ids"] * 2
    else:
        values = batch["ids"] + pair[1]
    return {"values": values, "rest": [pair[0], (values.sum(), 3)]}


NESTED = [
    {"ids": InputSpec([3], "int64", "ids"), "mask": InputSpec([3], "bool", "mask")},
    (InputSpec([2], "float32"), InputSpec([3], "int64")),
]
NESTED_CALLS = [
    ({"ids": torch.arange(3), "mask": torch.tensor(one)}, (torch.ones(2), torch.arange(3)))
    for one in ([True, False, False], [False] * 3)
]


def test_nested_arguments_and_results(tmp_path):
    model = check(nested, tmp_path, NESTED, *NESTED_CALLS)
    assert model.exported.inputs == ("batch_ids", "batch_mask", "pair_0", "pair_1")
    assert model.exported.outputs == ("out_values", "out_rest_0", "out_rest_1_0")


def test_the_adaptive_classifier(tmp_path):
    from adaptive_classifier import AdaptiveClassifier

    torch.manual_seed(0)
    model = AdaptiveClassifier(pixels=16, classes=3, hidden=8, patience=4)
    calls = [(torch.rand(n, 16) * top,) for n in (1, 5) for top in (1, 16)]
    check(model, tmp_path, [InputSpec([None, 16], "float32", "images")], *calls)


def test_a_loaded_layer(tmp_path):
    layer = to_static(Greedy().eval())
    specs = [InputSpec([None, None], "int64", "tokens"), InputSpec([], "int64", "most")]
    dy2static.save(layer, tmp_path / "greedy", specs)
    path = dy2static.onnx.export(dy2static.load(tmp_path / "greedy"), tmp_path / "greedy.onnx")
    session = harness.onnxruntime.InferenceSession(str(path))
    tokens = torch.randint(11, (2, 3))
    got = session.run(None, {"tokens": tokens.numpy(), "most": torch.tensor(4).numpy()})
    assert torch.equal(torch.from_numpy(got[0]), layer(tokens, torch.tensor(4))[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_transformer(name: str, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if name == "bert":
        config = transformers.BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                         intermediate_size=32, max_position_embeddings=32, attn_implementation="eager")
        inner = transformers.BertModel(config, add_pooling_layer=False)
    else:
        config = transformers.GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=32)
        inner = transformers.GPT2Model(config)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, ids):
            return self.inner(input_ids=ids).last_hidden_state

    model = Encoder().eval()
    calls = [(torch.randint(20, (b, t)),) for b, t in ((1, 4), (3, 9))]
    check(model, tmp_path, [InputSpec([None, None], "int64", "ids")], *calls)


def limited(x):
    with dy2static.loop_options(max_iterations=3):
        while x.sum() > 1:
            x = x / 2
    return x


def test_a_loop_with_a_limit(tmp_path):
    check(limited, tmp_path, X, (vec(1, 1, 1),), (vec(0, 0, 0),))
    model = harness.export(limited, tmp_path, X)
    with pytest.raises(Exception, match="RuntimeError: the loop has not ended after 3 iterations"):
        model.run(vec(100, 100, 100))


def test_a_loop_on_nan_ends_as_in_eager(tmp_path):
    check(halving, tmp_path, X, (vec(4, 1, 1),), (vec(4, float("nan"), 1),))
