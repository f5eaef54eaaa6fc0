"""A TreeLSTM that learns what arithmetic expressions give, modulo 5: trees in tensors, a function that calls itself.

A node of a tree is a row: which token it is, and the numbers of its children (-1: it is a leaf). How deep a tree is
only its tensors say. One Program encodes trees of all shapes; it is trained, saved, loaded, and held against eager.

Run: python examples/tree_lstm_in_tensors.py
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import torch
from torch import nn

import dy2static

MODULUS = 5
OPERATORS = ("+", "-", "*")
TOKENS = MODULUS + len(OPERATORS)
ROWS = 31
"""Trees are padded to so many rows: one Program is for tensors of one size, unless a size is left open."""


class TreeLSTM(nn.Module):
    """Child-sum is of no use for ``-``: each child has gates of its own (Tai et al. 2015, binary)."""

    def __init__(self, size: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, size)
        self.gates = nn.Linear(3 * size, 5 * size)
        self.start = nn.Parameter(torch.zeros(size))
        self.answer = nn.Linear(size, MODULUS)

    def encode(
        self, token: torch.Tensor, children: torch.Tensor, node: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden and cell state of a node."""
        word = self.tokens(token[node])
        if children[node, 0] < 0:
            return word.tanh(), self.start
        left, left_cell = self.encode(token, children, children[node, 0])
        right, right_cell = self.encode(token, children, children[node, 1])
        i, o, u, f, g = self.gates(torch.cat([word, left, right])).chunk(5)
        cell = i.sigmoid() * u.tanh() + f.sigmoid() * left_cell + g.sigmoid() * right_cell
        return o.sigmoid() * cell.tanh(), cell

    def forward(self, token: torch.Tensor, children: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
        """A score for each remainder."""
        hidden, _ = self.encode(token, children, root)
        return self.answer(hidden)


Tree = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def expression(draw: random.Random, depth: int) -> tuple[Tree, torch.Tensor]:
    """A random expression as a tree in tensors, and what it gives."""
    token, children = [0] * ROWS, [(-1, -1)] * ROWS
    count = 0

    def grow(depth: int) -> tuple[int, int]:
        nonlocal count
        if depth == 0 or draw.random() < 0.3:
            value = draw.randrange(MODULUS)
            token[count] = value
        else:
            left, a = grow(depth - 1)
            right, b = grow(depth - 1)
            kind = draw.randrange(len(OPERATORS))
            value = (a + b, a - b, a * b)[kind] % MODULUS
            token[count], children[count] = MODULUS + kind, (left, right)
        count += 1
        return count - 1, value

    root, value = grow(depth)
    return (torch.tensor(token), torch.tensor(children), torch.tensor(root)), torch.tensor(value)


def accuracy(model: nn.Module, trees: list[tuple[Tree, torch.Tensor]]) -> float:
    """The share of expressions that a model has right."""
    with torch.no_grad():
        return sum(int(model(*tree).argmax() == value) for tree, value in trees) / len(trees)


def main() -> None:
    """Train, hold a gradient against eager's, save, load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=16)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    draw = random.Random(0)
    eager = TreeLSTM()
    model = dy2static.to_static(eager)
    optimizer = torch.optim.Adam(eager.parameters(), lr=3e-3)
    test = [expression(draw, 4) for _ in range(200)]

    for step in range(arguments.steps + 1):
        trees = [expression(draw, draw.randrange(1, 5)) for _ in range(arguments.batch)]
        scores = torch.stack([model(*tree) for tree, _ in trees])
        loss = nn.functional.cross_entropy(scores, torch.stack([value for _, value in trees]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            print(f"step {step}: loss {loss.item():.3f}")

    tree, _ = test[0]
    weights = list(eager.parameters())
    plain = TreeLSTM()
    plain.load_state_dict(eager.state_dict())
    found = torch.autograd.grad(model(*tree).square().sum(), weights)
    wanted = torch.autograd.grad(plain(*tree).square().sum(), list(plain.parameters()))
    print("gradients as in eager:", all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted)))
    print(f"accuracy: {accuracy(model, test):.3f}")

    with tempfile.TemporaryDirectory() as folder:
        dy2static.save(model, Path(folder) / "tree")
        loaded = dy2static.load(Path(folder) / "tree")
        print(f"loaded: {accuracy(loaded, test):.3f}")


if __name__ == "__main__":
    main()
