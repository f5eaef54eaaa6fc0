"""A BERT-shaped classifier on 1,000 sentences, one after the other: each way to run it, its time and its accuracy.

    python benchmarks/sentiment.py [--sentences 1000] [--repeats 5]

The sentences are made here: reviews with words that praise or blame, negations that turn them round, and clauses that
say nothing; 5 to 40 words. The classifier (four layers of width 256, four heads) is trained on others of the kind.
Each way answers all sentences, in turn with the others, and the least of the repeats counts: processor time of its
process or thread, one thread each. Its answers are held against eager's.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import platform
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

import dy2static
from dy2static import InputSpec
from runtime import Predictor

GOOD = "good great fine brilliant moving funny clever warm".split()
BAD = "bad dull weak boring awful slow cold messy".split()
THINGS = "film plot cast music ending story script acting".split()
FILLERS = "we saw it on a rainy evening with friends who had read the book before it was sold out again".split()
WORDS = ["[pad]", "[cls]", "the", "is", "was", "not", "never", "and", "but", "very", "rather", "quite",
         *GOOD, *BAD, *THINGS, *dict.fromkeys(FILLERS)]  # fmt: skip
NUMBER = {word: number for number, word in enumerate(dict.fromkeys(WORDS))}
LONGEST = 48


def sentence(chance: random.Random) -> tuple[list[str], int]:
    """The words, and whether there is more praise than blame."""
    words: list[str] = []
    total = 0
    for _ in range(chance.choice((1, 3, 5))):
        value = chance.choice((-1, 1))
        turned = chance.random() < 0.3
        words += ["the", chance.choice(THINGS), chance.choice(("is", "was"))]
        words += [chance.choice(("not", "never"))] if turned else []
        words += [chance.choice(("very", "rather", "quite"))] if chance.random() < 0.4 else []
        words.append(chance.choice(GOOD if value > 0 else BAD))
        words.append(chance.choice(("and", "but")))
        total += -value if turned else value
    words += [chance.choice(FILLERS) for _ in range(chance.randrange(6))]
    return words[:LONGEST - 1], int(total > 0)


def encoded(words: Sequence[str]) -> Tensor:
    return torch.tensor([[NUMBER["[cls]"], *(NUMBER[word] for word in words)]])


class Layer(nn.Module):
    """Self-attention and a feed-forward part, normalised afterwards as in BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``x``: (batch, length, width); ``mask``: (batch, 1, 1, length), true for words."""
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind()
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(width // self.heads)
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)
        x = self.first(x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)))
        normed: Tensor = self.second(x + self.narrow(nn.functional.gelu(self.wide(x))))
        return normed


class Classifier(nn.Module):
    """Word numbers (batch, length) to logits (batch, 2)."""

    def __init__(self, width: int = 256, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(len(NUMBER), width, padding_idx=0)
        self.places = nn.Embedding(LONGEST, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.pooler, self.out = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits for blame and praise."""
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        mask = (ids != 0)[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        logits: Tensor = self.out(torch.tanh(self.pooler(x[:, 0])))
        return logits


def trained(steps: int) -> Classifier:
    """A classifier that has learned from sentences of its own."""
    torch.manual_seed(0)
    chance = random.Random(1)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(steps):
        batch = [sentence(chance) for _ in range(32)]
        rows = [encoded(words)[0] for words, _ in batch]
        loss = nn.functional.cross_entropy(
            model(nn.utils.rnn.pad_sequence(rows, batch_first=True)), torch.tensor([label for _, label in batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return model.eval()


MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "net.h"
int main(int count, char **texts) {
    FILE *file = fopen(texts[1], "rb");
    char text[256];
    net_model *model;
    if (count < 2 || !file || net_load("net.weights", &model, text, sizeof(text))) return 1;
    net_context *context = net_context_new(model, 0);
    net_inputs in = {0};
    net_outputs out = {0};
    static long long ids[4096], sizes[100000], *words[100000];
    long long length, sentences = 0;
    while (fread(&length, 8, 1, file) == 1) {
        if (fread(ids, 8, (size_t)length, file) != (size_t)length) return 1;
        words[sentences] = malloc(8 * (size_t)length);
        for (long long at = 0; at < length; ++at) words[sentences][at] = ids[at];
        sizes[sentences++] = length;
    }
    float *logits = malloc(8 * (size_t)sentences);
    clock_t began = clock();
    for (long long at = 0; at < sentences; ++at) {
        in.ids.data = words[at];
        in.ids.dtype = NET_INT64;
        in.ids.rank = 2;
        in.ids.sizes[0] = 1;
        in.ids.sizes[1] = sizes[at];
        if (net_run(context, &in, &out)) { puts(net_error(context)); return 1; }
        logits[2 * at] = ((const float *)out.result.data)[0];
        logits[2 * at + 1] = ((const float *)out.result.data)[1];
    }
    printf("%.9g\\n", (double)(clock() - began) / CLOCKS_PER_SEC);
    for (long long at = 0; at < sentences; ++at) printf("%.9g %.9g\\n", logits[2 * at], logits[2 * at + 1]);
    return 0;
}
"""


def ways(model: Classifier, sentences: Sequence[Tensor], folder: Path) -> dict[str, Callable[[], tuple[float, Tensor]]]:
    """By name, what answers all sentences: processor time, and the logits."""
    import onnxruntime

    specs = [InputSpec([None, None], "int64", "ids")]
    dy2static.save(model, folder / "model", specs)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = dy2static.onnx.export(model, folder / "model.onnx", specs)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    dy2static.export_c(model, folder / "c", specs, name="net")
    (folder / "c/all.c").write_text(MAIN)
    subprocess.run("cc -std=c11 -O3 -march=native all.c net.c -o all -lm", shell=True, check=True, cwd=folder / "c")
    with (folder / "c/sentences").open("wb") as file:
        for ids in sentences:
            file.write(torch.tensor([ids.shape[1], *ids[0].tolist()]).numpy().tobytes())
    static = dy2static.to_static(copy.deepcopy(model), backend="c")
    compiled = torch.compile(copy.deepcopy(model), dynamic=True)
    reading = {kind: Predictor(folder / "model", backend=kind) for kind in ("interpreter", "c")}

    def in_process(call: Callable[[Tensor], Tensor]) -> Callable[[], tuple[float, Tensor]]:
        def run() -> tuple[float, Tensor]:
            with torch.no_grad():
                began = time.thread_time()
                found = [call(ids) for ids in sentences]
                return time.thread_time() - began, torch.cat([torch.as_tensor(one) for one in found])

        return run

    def in_c() -> tuple[float, Tensor]:
        said = subprocess.run(["./all", "sentences"], cwd=folder / "c", check=True, capture_output=True, text=True)
        first, *rows = said.stdout.splitlines()
        return float(first), torch.tensor([[float(number) for number in row.split()] for row in rows])

    return {
        "PyTorch, eager": in_process(model),
        "to_static, backend c": in_process(static),
        "Predictor": in_process(lambda ids: next(iter(reading["interpreter"].run({"ids": ids}).values()))),
        "Predictor, backend c": in_process(lambda ids: next(iter(reading["c"].run({"ids": ids}).values()))),
        "export_c (no PyTorch, no BLAS)": in_c,
        "torch.compile, dynamic": in_process(compiled),
        "ONNX Runtime": in_process(lambda ids: session.run(None, {"ids": ids.numpy()})[0]),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500, help="of training")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model = trained(asked.steps)
    chance = random.Random(2)
    made = [sentence(chance) for _ in range(asked.sentences)]
    labels = torch.tensor([label for _, label in made])
    with tempfile.TemporaryDirectory() as folder:
        callables = ways(model, [encoded(words) for words, _ in made], Path(folder))
        times: dict[str, list[float]] = {name: [] for name in callables}
        logits: dict[str, Tensor] = {}
        for repeat in range(asked.repeats + 1):  # the first warms up
            for name, run in callables.items():
                spent, logits[name] = run()
                if repeat:
                    times[name].append(spent)
    cpu = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor())  # fmt: skip
    print(f"\n{cpu}, {os.cpu_count()} cores, PyTorch {torch.__version__}, {asked.sentences} sentences, "
          f"least of {asked.repeats}\n")  # fmt: skip
    print("| way | seconds | of eager | accuracy | logits differ by |\n| --- | ---: | ---: | ---: | ---: |")
    eager = min(times["PyTorch, eager"])
    for name, spent in times.items():
        right = (logits[name].argmax(1) == labels).double().mean().item()
        apart = (logits[name] - logits["PyTorch, eager"]).abs().max().item()
        print(f"| {name} | {min(spent):.2f} | {min(spent) / eager:.2f} | {right:.1%} | {apart:.0e} |")


if __name__ == "__main__":
    main()
