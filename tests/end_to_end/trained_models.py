"""Models as people write them, each with the loop that trains it: the same code, eagerly and converted.

Each function of ``MODELS`` takes what converts (``to_static``, or nothing), and the number of steps. It makes a model
and data from one seed, trains, and gives what there is to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.func import functional_call
from torch.nn.utils import clip_grad_norm_

Convert = Callable[[Any], Any]
"""What makes the static form of a module or function."""


@dataclass
class Trained:
    """What a training run gives."""

    losses: list[Tensor]
    state: dict[str, Tensor]
    """Parameters and buffers afterwards."""
    seen: list[Any] = field(default_factory=list)
    """What else each step gives: numbers of iterations, lengths of episodes."""
    functions: list[Any] = field(default_factory=list)
    """What was converted."""


def _held_by(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


# -- an LSTM language model --------------------------------------------------------------------------------------------

TEXT = "the cat sat on the mat and the dog sat on the log while the cat saw the dog and the dog saw the cat. "
LETTERS = sorted(set(TEXT))


class LSTMCell(nn.Module):
    """A cell written by hand."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        i, f, g, o = self.gates(torch.cat([x, h], dim=-1)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class LanguageModel(nn.Module):
    """Letters to scores of the next letter."""

    def __init__(self, letters: int, width: int = 12, hidden: int = 16, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.cells = nn.ModuleList(LSTMCell(width if layer == 0 else hidden, hidden) for layer in range(layers))
        self.head = nn.Linear(hidden, letters)
        self.hidden = hidden
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, length = tokens.shape
        states = [(torch.zeros(batch, self.hidden), torch.zeros(batch, self.hidden)) for _ in self.cells]
        outputs = []
        for t in range(length):
            x = self.embedding(tokens[:, t])
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(x, states[layer])
                x = self.dropout(states[layer][0])
            outputs.append(self.head(x))
        return torch.stack(outputs, dim=1)


def language_model(convert: Convert, steps: int) -> Trained:
    """An LSTM over letters, with gradients clipped by their norm."""
    torch.manual_seed(0)
    model = convert(LanguageModel(len(LETTERS)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    text = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    losses, norms = [], []
    for _ in range(steps):
        starts = torch.randint(0, len(text) - 11, (4,)).tolist()
        batch = torch.stack([text[start : start + 11] for start in starts])
        optimizer.zero_grad()
        scores = model(batch[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, len(LETTERS)), batch[:, 1:].reshape(-1))
        loss.backward()
        norms.append(clip_grad_norm_(model.parameters(), 0.25))
        optimizer.step()
        losses.append(loss.detach())
    return Trained(losses, _held_by(model), norms, [model])


# -- a recurrent network over sequences of several lengths -------------------------------------------------------------


class DynamicRNN(nn.Module):
    """Runs until the longest sequence of the batch is done; what is done keeps its state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 8)
        self.out = nn.Linear(8, 1)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        h = x.new_zeros(x.size(0), 8)
        outputs = []
        t = 0
        while t < lengths.max():
            mask = (t < lengths).unsqueeze(1)
            h = torch.where(mask, self.cell(x[:, t], h), h)
            outputs.append(h * mask)
            t += 1
        if self.training:
            self.seen += t
        return self.out(h).squeeze(1), torch.stack(outputs, 1)


def dynamic_rnn(convert: Convert, steps: int) -> Trained:
    """The sum of a sequence's first feature, with a penalty on the states."""
    torch.manual_seed(1)
    model = convert(DynamicRNN())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses, shapes = [], []
    for _ in range(steps):
        x = torch.randn(5, 9, 3)
        lengths = torch.randint(1, 10, (5,))
        target = (x[..., 0] * (torch.arange(9) < lengths.unsqueeze(1))).sum(1)
        optimizer.zero_grad()
        prediction, states = model(x, lengths)
        loss = F.mse_loss(prediction, target) + 0.01 * states.pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        shapes.append(tuple(states.shape))
    return Trained(losses, _held_by(model), shapes, [model])


# -- adaptive computation time -----------------------------------------------------------------------------------------


class PonderNet(nn.Module):
    """Graves' adaptive computation time: each row halts when its probabilities add up to one."""

    def __init__(self, limit: int = 8) -> None:
        super().__init__()
        self.cell = nn.GRUCell(5, 10)
        self.halting = nn.Linear(10, 1)
        self.out = nn.Linear(10, 1)
        self.limit = limit

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        batch = x.shape[0]
        h = torch.zeros(batch, 10)
        mixed = torch.zeros(batch, 10)
        halted = torch.zeros(batch)
        remainder = torch.zeros(batch)
        updates = torch.zeros(batch)
        step = 0
        while (halted < 1 - 0.01).any() and step < self.limit:
            flag = torch.full((batch, 1), float(step == 0))
            h = self.cell(torch.cat([x, flag], 1), h)
            p = torch.sigmoid(self.halting(h)).squeeze(1)
            running = (halted < 1 - 0.01).float()
            last = (halted + p * running > 1 - 0.01).float() * running
            going = running - last
            weight = p * going + (1 - halted) * last
            remainder = remainder + (1 - halted) * last
            halted = halted + weight
            updates = updates + running
            mixed = mixed + weight.unsqueeze(1) * h
            step += 1
        return self.out(mixed).squeeze(1), updates + remainder


def ponder_net(convert: Convert, steps: int) -> Trained:
    """Parity of four signs, with the cost of pondering."""
    torch.manual_seed(2)
    model = convert(PonderNet())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    losses, counts = [], []
    for _ in range(steps):
        x = torch.randint(0, 2, (8, 4)).float() * 2 - 1
        target = (x.prod(1) > 0).float()
        optimizer.zero_grad()
        logits, cost = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, target) + 0.05 * cost.mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        counts.append(cost.detach().floor())
    return Trained(losses, _held_by(model), counts, [model])


# -- a TreeLSTM --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """An inner node of a tree of words."""

    left: Any
    right: Any


Tree = Any
"""A word's number, a Node, or a tuple of two trees."""


class TreeLSTM(nn.Module):
    """A binary TreeLSTM (Tai et al.), by recursion over Python's trees."""

    def __init__(self, words: int = 8, width: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.leaf = nn.Linear(width, 3 * width)
        self.inner = nn.Linear(2 * width, 5 * width)
        self.out = nn.Linear(width, 2)

    def encode(self, tree: Tree) -> tuple[Tensor, Tensor]:
        if isinstance(tree, Tensor):
            i, o, u = self.leaf(self.words(tree)).chunk(3, dim=-1)
            c = torch.sigmoid(i) * torch.tanh(u)
            return torch.sigmoid(o) * torch.tanh(c), c
        if isinstance(tree, Node):
            left, right = tree.left, tree.right
        else:
            left, right = tree
        (hl, cl), (hr, cr) = self.encode(left), self.encode(right)
        i, fl, fr, o, u = self.inner(torch.cat([hl, hr], dim=-1)).chunk(5, dim=-1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(fl) * cl + torch.sigmoid(fr) * cr
        h = torch.sigmoid(o) * torch.tanh(c)
        if h.mean() > 0.5:  # a node that is too sure of itself is damped
            h = h * 0.5
        return h, c

    def forward(self, tree: Tree) -> Tensor:
        h, _ = self.encode(tree)
        return self.out(h)


def _word(number: int) -> Tensor:
    return torch.tensor(number)


def _trees() -> list[tuple[Tree, int]]:
    w = [_word(number) for number in range(8)]
    return [
        ((w[0], (w[1], w[2])), 0),
        (Node(w[3], Node(w[1], w[4])), 1),
        ((Node(w[0], w[5]), (w[6], w[7])), 1),
        (w[2], 0),
        ((w[4], (w[3], w[0])), 1),
        (Node((w[1], w[1]), w[5]), 0),
    ]


def tree_lstm(convert: Convert, steps: int) -> Trained:
    """Trees of tuples and objects, one at a time."""
    torch.manual_seed(3)
    model = convert(TreeLSTM())
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    trees = _trees()
    losses = []
    for step in range(steps):
        tree, label = trees[step % len(trees)]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tree).unsqueeze(0), torch.tensor([label]))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return Trained(losses, _held_by(model), [], [model])


# -- MAML --------------------------------------------------------------------------------------------------------------


def sines(task: int) -> tuple[Tensor, Tensor]:
    """Ten points of a sine with its own amplitude and phase."""
    amplitude, phase = torch.rand(()) * 2 + 0.5, torch.rand(()) * math.pi
    x = torch.rand(10, 1) * 6 - 3
    return x, amplitude * torch.sin(x + phase)


class MAML(nn.Module):
    """A network that is adapted to a task by a few steps of gradient descent, with ``functional_call``."""

    def __init__(self, inner_lr: float = 0.05, inner_steps: int = 3) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
        self.inner_lr = nn.Parameter(torch.tensor(inner_lr))
        self.inner_steps = inner_steps

    def forward(self, support: tuple[Tensor, Tensor], query: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        x, y = support
        params = dict(self.net.named_parameters())
        for _ in range(self.inner_steps):
            loss = F.mse_loss(functional_call(self.net, params, (x,)), y)
            grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
            params = {name: p - self.inner_lr * g for (name, p), g in zip(params.items(), grads)}
        x, y = query
        return F.mse_loss(functional_call(self.net, params, (x,)), y), self.inner_steps


class MAMLUntilGoodEnough(nn.Module):
    """The same with as many steps as a task takes."""

    def __init__(self, inner_lr: float = 0.05) -> None:
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.randn(10, 1)), nn.Parameter(torch.randn(10))
        self.w2, self.b2 = nn.Parameter(torch.randn(1, 10) * 0.3), nn.Parameter(torch.zeros(1))
        self.inner_lr = nn.Parameter(torch.tensor(inner_lr))

    def net(self, x: Tensor, params: tuple[Tensor, ...]) -> Tensor:
        w1, b1, w2, b2 = params
        return F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)

    def forward(self, support: tuple[Tensor, Tensor], query: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        x, y = support
        params = (self.w1, self.b1, self.w2, self.b2)
        steps = 0
        while steps < 5:
            loss = F.mse_loss(self.net(x, params), y)
            if loss < 0.3:
                break
            grads = torch.autograd.grad(loss, params, create_graph=True)
            params = tuple(p - self.inner_lr * g for p, g in zip(params, grads))
            steps += 1
        x, y = query
        return F.mse_loss(self.net(x, params), y), steps


def maml(convert: Convert, steps: int) -> Trained:
    """Sines of several phases; the gradient goes through the inner steps."""
    return _maml(convert, MAML, steps)


def maml_until_good_enough(convert: Convert, steps: int) -> Trained:
    """As many inner steps as the data asks for."""
    return _maml(convert, MAMLUntilGoodEnough, steps)


def _maml(convert: Convert, make: Callable[[], nn.Module], steps: int) -> Trained:
    torch.manual_seed(4)
    model = convert(make())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, counts = [], []
    for _ in range(steps):
        optimizer.zero_grad()
        total = torch.zeros(())
        for task in range(2):
            x, y = sines(task)
            loss, count = model((x[:5], y[:5]), (x[5:], y[5:]))
            total = total + loss / 2
            counts.append(count)
        total.backward()
        optimizer.step()
        losses.append(total.detach())
    return Trained(losses, _held_by(model), counts, [model])


# -- L-BFGS ------------------------------------------------------------------------------------------------------------


class Rosenbrocks(nn.Module):
    """A network with a loop whose length depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        n = 0
        while y.abs().max() > 1 and n < 5:
            y = y * 0.7
            n += 1
        return y


def lbfgs_outside(convert: Convert, steps: int) -> Trained:
    """``torch.optim.LBFGS`` with a closure around a converted model."""
    torch.manual_seed(5)
    model = convert(Rosenbrocks())
    x = torch.randn(12, 2)
    target = torch.stack([x[:, 0] * x[:, 1], x[:, 0] - x[:, 1]], 1).tanh()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3, line_search_fn="strong_wolfe")
    losses, counts = [], []
    evaluations = 0

    def closure() -> Tensor:
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).detach())
        counts.append(evaluations)
    return Trained(losses, _held_by(model), counts, [model])


def rosenbrock(x: Tensor) -> Tensor:
    """Rosenbrock's function."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def minimize(function: Callable[[Tensor], Tensor], x: Tensor, memory: int = 5, iterations: int = 10) -> Any:
    """L-BFGS with the two-loop recursion and a backtracking line search: the point, its value, how often it looked."""

    def evaluate(point: Tensor) -> tuple[Tensor, Tensor]:
        point = point.detach().requires_grad_()
        value = function(point)
        (gradient,) = torch.autograd.grad(value, point)
        return value.detach(), gradient

    value, gradient = evaluate(x)
    steps: list[Tensor] = []
    changes: list[Tensor] = []
    looked = 1
    for _ in range(iterations):
        if gradient.norm() < 1e-5:
            break
        direction = gradient.clone()
        alphas = []
        for s, y in zip(reversed(steps), reversed(changes)):
            alpha = s.dot(direction) / y.dot(s)
            direction = direction - alpha * y
            alphas.append(alpha)
        if steps:
            direction = direction * (steps[-1].dot(changes[-1]) / changes[-1].dot(changes[-1]))
        for s, y, alpha in zip(steps, changes, reversed(alphas)):
            beta = y.dot(direction) / y.dot(s)
            direction = direction + s * (alpha - beta)
        direction = -direction
        slope = gradient.dot(direction)
        t = 1.0 if steps else float(min(1.0, 1.0 / gradient.abs().sum()))
        new_value, new_gradient = evaluate(x + t * direction)
        looked += 1
        while new_value > value + 1e-4 * t * slope and t > 1e-8:
            t = t / 2
            new_value, new_gradient = evaluate(x + t * direction)
            looked += 1
        s, y = t * direction, new_gradient - gradient
        if s.dot(y) > 1e-10:
            steps.append(s)
            changes.append(y)
            if len(steps) > memory:
                steps.pop(0)
                changes.pop(0)
        x, value, gradient = x + t * direction, new_value, new_gradient
    return x, value, looked


def lbfgs_by_hand(convert: Convert, steps: int) -> Trained:
    """A minimizer that is converted as a whole."""
    torch.manual_seed(6)
    static = convert(minimize)
    x = torch.randn(4)
    losses, counts = [], []
    for _ in range(steps):
        x, value, looked = static(rosenbrock, x, 4, 3)
        losses.append(value)
        counts.append(looked)
    return Trained(losses, {"x": x}, counts, [static])


# -- REINFORCE ---------------------------------------------------------------------------------------------------------


class Pole:
    """A cart with a pole on it, in tensors."""

    def __init__(self) -> None:
        self.state = torch.zeros(4)

    def reset(self) -> Tensor:
        self.state = torch.rand(4) * 0.1 - 0.05
        return self.state

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, v, angle, w = self.state
        force = torch.where(action == 1, 10.0, -10.0)
        sin, cos = torch.sin(angle), torch.cos(angle)
        push = (force + 0.05 * w**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        move = push - 0.05 * turn * cos / 1.1
        self.state = torch.stack([x + 0.06 * v, v + 0.06 * move, angle + 0.06 * w, w + 0.06 * turn])
        done = (self.state[0].abs() > 2.4) | (self.state[2].abs() > 0.21)
        return self.state, torch.ones(()), done


class Policy(nn.Module):
    """An episode: log probabilities and rewards."""

    def __init__(self, env: Pole) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 2))
        self.env = env

    def forward(self, limit: int) -> tuple[Tensor, Tensor]:
        state = self.env.reset()
        log_probs, rewards = [], []
        for _ in range(limit):
            policy = Categorical(logits=self.net(state))
            action = policy.sample()
            log_probs.append(policy.log_prob(action))
            state, reward, done = self.env.step(action)
            rewards.append(reward)
            if done:
                break
        returns = []
        total = torch.zeros(())
        for reward in reversed(rewards):
            total = reward + 0.95 * total
            returns.insert(0, total)
        return torch.stack(log_probs), torch.stack(returns)


def reinforce(convert: Convert, steps: int) -> Trained:
    """REINFORCE with a baseline."""
    torch.manual_seed(7)
    model = convert(Policy(Pole()))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses, lengths = [], []
    baseline = 0.0
    for _ in range(steps):
        log_probs, returns = model(80)
        advantage = returns - baseline
        baseline = 0.9 * baseline + 0.1 * returns.mean().item()
        loss = -(log_probs * advantage).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        lengths.append((len(returns), model.env.state.clone()))
    return Trained(losses, _held_by(model), lengths, [model])


# -- a diffusion sampler -----------------------------------------------------------------------------------------------


class Denoiser(nn.Module):
    """A sampler of a diffusion model, as one differentiable function of the network's weights."""

    def __init__(self, steps: int = 8) -> None:
        super().__init__()
        self.time = nn.Embedding(steps, 6)
        self.net = nn.Sequential(nn.Linear(2 + 6, 16), nn.SiLU(), nn.Linear(16, 2))
        betas = torch.linspace(1e-3, 0.2, steps)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas", torch.cumprod(1 - betas, 0))

    def noise(self, x: Tensor, t: Tensor) -> Tensor:
        return self.net(torch.cat([x, self.time(t).expand(x.shape[0], -1)], dim=1))

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        for t in reversed(range(int(steps))):
            e = self.noise(x, torch.tensor(t))
            beta, alpha = self.betas[t], self.alphas[t]
            x = (x - beta / torch.sqrt(1 - alpha) * e) / torch.sqrt(1 - beta)
            if t > 0:
                x = x + torch.sqrt(beta) * torch.randn_like(x)
        return x


def diffusion(convert: Convert, steps: int) -> Trained:
    """Samples are to lie on a circle; the gradient goes through all steps of the sampler."""
    torch.manual_seed(8)
    model = convert(Denoiser())
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.002)
    losses = []
    for step in range(steps):
        x = torch.randn(6, 2)
        optimizer.zero_grad()
        loss = (model(x, torch.tensor(3 + step % 6)).norm(dim=1) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return Trained(losses, _held_by(model), [], [model])


MODELS: Sequence[Callable[[Convert, int], Trained]] = (
    language_model, dynamic_rnn, ponder_net, tree_lstm, maml, maml_until_good_enough, lbfgs_outside, lbfgs_by_hand,
    reinforce, diffusion,
)  # fmt: skip
