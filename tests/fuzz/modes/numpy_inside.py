"""NumPy in the middle: arrays of tensors' memory and tensors of arrays', NumPy's functions, writes to both."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from tests.fuzz.modes.beside import Beside

_HEAD = '''import numpy as np
import torch
HELD = np.zeros(3, np.float32)
TABLE = np.zeros(6)
CELLS = {"a": HELD}
class Box:
    def __init__(self):
        self.array, self.count = HELD, 0
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = np.full(3, 2.0, np.float32)
        self.seen = np.zeros(1)
    def forward(self, t):
        if t.sum() > 0:
            self.seen = self.seen + 1
        return t * torch.from_numpy(self.weight[: 1])
BOX, LAYER, OBJECTS = Box(), Layer(), np.array([None, "a", 2.5], dtype=object)
def shown(given):
    return given
def begin():
    HELD[...], TABLE[...] = [0.5, -1, 2], np.arange(6) * 0.5 - 1
    CELLS.clear()
    CELLS["a"] = HELD
    BOX.array, BOX.count = np.array([1, 2, 3], np.float32), 0
    LAYER.weight, LAYER.seen = np.full(3, 2.0, np.float32), np.zeros(1)
def beside():
    return HELD, TABLE, CELLS, BOX.array, BOX.count, LAYER.weight, LAYER.seen
def scaled(v, s=2.0):
    return np.tanh(v) * s
def larger(v, w):
    if v.sum() > w.sum():
        return v
    return w + 1
def kept(v, into):
    into.append(v)
    return len(into)
def back(v):
    return torch.from_numpy(np.ascontiguousarray(v))
def f(x, y, k, g):
    p, q, r, n = x * 0.5, y * 2, torch.ones(len(x)), k
    a, b, c, s, log, box = x.detach().numpy() * 1, np.array(y.detach()), np.ones(len(x)), np.float64(0.5), [], Box()
'''
_ONES = ("np.abs", "np.tanh", "np.negative", "np.square", "np.sign", "np.floor", "np.cos", "np.arctan", "np.sort",
         "np.cumsum", "np.argsort", "scaled", "np.array", "np.asarray", "np.copy", "np.ravel",
         "np.ascontiguousarray", "np.atleast_1d", "np.squeeze", "np.exp", "np.sinc", "np.nan_to_num", "np.float32",
         "np.zeros_like", "np.ones_like", "np.diff", "np.isfinite", "np.signbit", "np.rint")  # fmt: skip
_TWO = ("np.maximum", "np.minimum", "np.add", "np.subtract", "np.multiply", "np.hypot", "np.arctan2", "larger",
        "np.fmax", "np.copysign", "np.logaddexp", "np.heaviside")  # fmt: skip
_REDUCTIONS = ("np.sum", "np.mean", "np.max", "np.min", "np.prod", "np.std", "np.var", "np.median", "np.ptp",
               "np.linalg.norm", "np.argmax", "np.argmin", "np.count_nonzero", "np.nanmean")  # fmt: skip
_METHODS = ("sum", "mean", "max", "min", "prod", "std", "argmax", "argmin")


class NumpyInside(Beside):
    """Three tensors, three arrays, a scalar of NumPy's and a number.

    Few programs have what is refused for good: memory that is another's on some path and written, shapes by values.
    """

    head = _HEAD
    tail = "    return p * 1, q, r, n, a, b, c, s, log, box.array\n"
    names = ("p", "q", "r")
    stays = True
    arrays = ("a", "b", "c")
    refusals = frozenset({"D2S210", "D2S213", "D2S214", "D2S224", "D2S228", "D2S264", "D2S277"})

    def arguments(self, call: tuple[Any, ...], module: types.ModuleType, number: int) -> list[Any]:
        """The array that comes with a call: of the module, of another dtype, or of the call alone."""
        given = super().arguments(call, module, number)
        size = len(call[0])
        arrays = (module.np.ones(size, "float32"), module.np.arange(size * 1.0), module.np.arange(size) - 1)
        return [*given, arrays[(number if self.free else len(self.head)) % 3]]

    def array(self) -> str:
        """The name of an array."""
        return self.rng.choice(self.arrays)

    def scalar(self) -> str:
        """A number of NumPy's or Python's."""
        rng, one = self.rng, self.array()
        return str(rng.choice((
            "s", "n", "2", "0.5", "np.float32(1.5)", "np.float64(n)", f"{one}[0]", f"{one}[-1]", "np.int64(2)",
            f"{rng.choice(_REDUCTIONS)}({one})", f"{one}.{rng.choice(_METHODS)}()", f"float({one}.mean())",
            f"{one}[0].item()", "s * 2", "s + n", "s / 3", f"{one}[n % len({one})]", f"int({one}[0] > 0)",
            "round(s, 1)",
            f"np.dot({one}, {self.array()})", f"float(np.float32({self.name()}.sum().item()))", "np.pi", "abs(s)",
            f"max({one}[0], {self.array()}[0])", f"min({one}[0], 1)", f"{one}.tolist()[0]", f"len({one})",
            "np.sqrt(n)",
            f"sum({one}.tolist())", f"{one}.shape[0]", f"np.log1p(abs({one}[0]))", "k", f"np.sum({one} > 0)",
            f"{self.name()}.detach().numpy().sum()", f"np.max({self.name()}.tolist())", "np.square(n)", "s.item()",
            f"np.mean([float({self.name()}.sum()), n])", f"float({one}.max())",
        )))  # fmt: skip

    def value(self, depth: int = 1) -> str:
        """An array of as many numbers as ``x`` has."""
        rng, one, other = self.rng, self.array(), self.array()
        if depth and rng.random() < 0.3:
            one = f"({self.value(depth - 1)})"
        tensor = self.name()
        made = (
            "np.ones(len(x), np.float32)", "np.zeros(len(x))", "np.arange(len(x))", "np.full(len(x), 0.5)",
            "np.linspace(0, 1, len(x))", "np.empty(len(x)) * 0", "np.array([0.5] * len(x), dtype=np.float32)",
            f"np.array([n, 1.0, {self.array()}[0]])[: len(x)]", "np.eye(len(x))[0]", "g * 1", "g",
            "box.array[:1] + c",
            "HELD[:1] * c", "BOX.array[0] * c", "CELLS['a'][1] + c", "TABLE[n] * c", "TABLE[: 1] + c",
            "LAYER.weight[0] * c", f"np.array([float(v) for v in {tensor}])", f"np.array({tensor}.tolist())",
            "np.repeat(0.5, len(x))",
        )
        of_tensors = (
            f"{tensor}.detach().numpy()", f"np.asarray({tensor}.detach())", f"np.array({tensor}.detach())",
            f"{tensor}.detach().clone().numpy()", f"{tensor}.detach().double().numpy()",
            f"{tensor}.data.numpy()", f"{tensor}.detach().numpy().copy()", f"{tensor}.numpy(force=True)",
            f"{tensor}.detach().cpu().numpy()", f"({tensor} > 0).numpy()", f"{tensor}.detach().long().numpy()",
            f"({tensor}.detach() * 2).numpy()[::-1].copy()", f"np.exp({tensor}.detach()).numpy()",
            f"np.stack([{tensor}.detach(), {tensor}.detach() + 1])[1]", f"{tensor}.argsort().numpy()",
            f"np.asarray({tensor}.detach(), dtype=np.float64)", f"np.abs({tensor}.detach().numpy())",
            f"np.array([{tensor}.detach().numpy(), {other}]).max(0)",
        )
        ones = (
            f"{rng.choice(_ONES)}({one})", f"-{one}", f"{one} * {self.scalar()}", f"{one} + {self.scalar()}",
            f"{self.scalar()} - {one}", f"{one} / 2", f"{one} ** 2", f"{one} // 2", f"{one} % 3", f"{one} > 0",
            f"{one}[::-1] * 1", f"{one}[:]", f"{one}[np.arange(len(x))]", f"{one}[np.argsort({other})]",
            f"{one}.copy()",
            f"{one}.astype(np.float64)", f"{one}.astype('float32')", f"{one}.astype(int)",
            f"{one}.astype({other}.dtype)",
            f"np.clip({one}, -1, 1)", f"{one}.clip(0, None)", f"np.roll({one}, 1)", f"{one}.reshape(-1)",
            f"{one}.reshape(1, -1)[0]", f"{one}[None][0]", f"{one}[:, None].T[0]", f"{one}.T", f"{one}.ravel()",
            f"np.take({one}, [0] * len(x))", f"{one}.cumsum()", f"scaled({one}, s)", f"scaled(v={one})",
            f"np.round({one}, 1)", f"{one}.round(2)", f"np.broadcast_to({one}, (2, len(x)))[1]",
            f"np.tile({one}, 2)[: len(x)]",
            f"np.pad({one}, 1)[1:-1]", f"np.interp({one}, [0, 1], [2, 3])", f"np.array([v * 2 for v in {one}])",
            f"np.array(list({one}))", f"np.array(sorted({one}.tolist()))", f"np.flip({one}).copy()",
            f"np.full_like({one}, 2)", f"{one}.view()", f"np.diag(np.diag({one}))", f"np.expand_dims({one}, 0)[0]",
        )  # fmt: skip
        twos = (
            f"{rng.choice(_TWO)}({one}, {other})", f"{one} + {other}", f"{one} * {other}", f"{one} - {other}",
            f"np.where({one} > 0, {one}, {other})", f"np.where({other} > {self.scalar()}, {one}, 0)",
            f"np.stack([{one}, {other}]).sum(0)", f"np.concatenate([{one}, {other}])[: len(x)]",
            f"np.vstack([{one}, {other}])[1]", f"np.hstack(({one}, {other}))[-len(x):]",
            f"np.outer({one}, {other})[0]",
            f"({one} @ {other}) * c", f"np.einsum('i,j->j', {one}, {other})", f"np.select([{one} > 0], [{other}], 0)",
            f"np.column_stack([{one}, {other}])[:, 0]", f"np.meshgrid({one}, {other})[0][0]",
            f"({one} > {other}) & ({one} > 0)",
            f"{one} if {self.truth()} else {other}", f"larger({one}, {other})", f"np.mean([{one}, {other}], axis=0)",
            f"[{one}, {other}][n % 2]", f"{{'u': {one}, 'v': {other}}}['u']", f"np.sum(({one}, {other}), 0)",
            f"np.split(np.concatenate([{one}, {other}]), 2)[1]", f"max(({one}, {other}), key=np.sum)", one, other,
            f"np.add.outer({one}, {other}).sum(0)", f"np.logical_or({one} > 0, {other} > 0)",
        )  # fmt: skip
        return str(rng.choice(rng.choices((made, of_tensors, ones, twos), (2, 3, 5, 4))[0]))

    def tensor(self) -> str:
        """A tensor of as many numbers as ``x`` has."""
        rng, one, other = self.rng, self.name(), self.name()
        value = self.value(1 if rng.random() < 0.3 else 0)
        return str(rng.choice((
            f"{one} + torch.tensor({value})", f"{one} * torch.as_tensor({value})",
            f"{one} + torch.from_numpy({self.array()})",
            f"back({value}).float()", f"torch.from_numpy(({value}).copy()) * {one}", f"{one} * {self.scalar()}",
            f"{self.scalar()} * {one}", f"{one} + float({self.scalar()})", f"{one} + {other}", f"{one} * 0.5",
            f"torch.tanh({one})",
            f"{one} - {self.scalar()}", f"torch.asarray({self.array()}) + {one}",
            f"{one} + torch.tensor({self.scalar()})",
            f"torch.full((len(x),), float({self.scalar()}))",
            f"torch.where(torch.from_numpy({self.array()} > 0), {one}, {other})",
            f"{one}[torch.from_numpy(np.argsort({self.array()}))]", f"{one}[np.arange(len(x))]",
            f"{one}.clamp(max={self.scalar()})",
            f"torch.stack([{one}, torch.from_numpy({self.array()}).float()]).sum(0)", f"LAYER({one})",
            f"{one} / 2 + n",
            f"{one} + torch.from_numpy({self.array()}.astype(np.float32))",
            f"torch.tensor(({value}).tolist()) + {one}",
            f"torch.tensor(np.array([{self.scalar()}, 1.0])).sum() + {one}", f"{one} * torch.from_numpy(HELD[:1])",
            f"torch.from_numpy({self.array()}).to({one})", f"{one} + torch.from_numpy(BOX.array)[:1]",
            f"{one} * torch.tensor({self.array()}, dtype={one}.dtype)",
            f"torch.ones(len(x), dtype=torch.float64) * {self.scalar()}", f"{one} * {self.array()}[0]",
            f"torch.from_dlpack({self.array()}) + {one}", f"torch.nn.functional.relu({one}) + torch.as_tensor(s)",
        )))  # fmt: skip

    def truth(self) -> str:
        """A condition on arrays."""
        rng, one, other = self.rng, self.array(), self.array()
        return str(rng.choice((
            f"{one}.sum() > 0", f"({one} > 0).any()", f"np.all({one} < 2)", "s > 0.5", "float(s) < 1", "s", "not s",
            f"np.allclose({one}, {other})", f"{one}[0] > {other}[0]", f"len({one}) > 2",
            f"{one}.shape == ({one}.size,)",
            f"{one}.dtype == np.float32", f"isinstance({one}, np.ndarray)", f"np.isnan({one}).any()",
            f"{one} is {other}",
            f"np.array_equal({one}, {other})", "isinstance(s, (float, np.floating))", f"{one}.ndim == 1",
            f"bool({one}.max() > s)", f"n in {one}.tolist()",
            f"{one}[0] in (1, 2)",
            f"np.any({one} > {self.scalar()})", f"{self.name()}.detach().numpy().mean() < s", f"{one}.any()",
            f"1.0 in {one}", f"hasattr({one}, 'numpy')", f"type({one}) is np.ndarray", f"n == {self.scalar()}",
            f"0 < {one}.mean() < 1", f"{one}.argmax() == 0", f"np.sum({one}) > 0 and s > 0", f"{one}.size == len(x)",
        )))  # fmt: skip

    def condition(self) -> str:
        """One on tensors or on arrays."""
        return self.truth() if self.rng.random() < 0.6 else super().condition()

    def writes(self) -> Sequence[str]:
        """Statements that write to arrays, or to tensors in whose memory there may be arrays."""
        one, other, tensor, s = self.array(), self.array(), self.name(), self.scalar()
        outside = [f"HELD[0] = {s}", f"BOX.array[0] = {s}", f"CELLS['a'][1] = {s}", "LAYER.weight[0] = 3",
                   "HELD[...] = HELD + 1", "BOX.array += 1", "TABLE[n] = 5", "g[0] = 2", "g += 1"]
        plain = [
            f"{one}[0] = {s}", f"{one}[-1] += {s}", f"{one}[...] = {other}", f"{one}[:] = 0",
            f"{one}[1:] = {other}[1:]",
            f"{one} += 1", f"{one} *= {s}", f"{one} -= {other}", f"{one}[{one} > 0] = 0", f"{one}[{one} < 0] *= 2",
            f"{one}[n % len({one})] = {s}",
            "box.array[1] = 2",
            f"t = {tensor}.detach().clone()\nv = t.numpy()\nv[0] = 7\n{tensor} = {tensor} + t",
            f"t = {tensor}.detach().clone()\nv = t.numpy()\nt.add_(1)\n{one} = v * 1",
            f"v = np.zeros(len(x), np.float32)\nt = torch.from_numpy(v)\nv += 2\nt.mul_(3)\n"
            f"{tensor} = {tensor} * t\n{one} = v",
            f"v = ({self.value()}).astype(np.float32)\nt = torch.from_numpy(v)\nt.add_(1)\n{one} = v\n"
            f"{tensor} = {tensor} + t",
            f"v = ({self.value()}) * 1.0\nt = torch.as_tensor(v)\nv[0] = 4\n{tensor} = t + {tensor}\n{one} = v",
            f"t = back({one})\nt.mul_(2)\n{tensor} = {tensor} + t", f"x.detach().numpy()[0] = {s}", "g[0] = 2",

            f"m = np.stack([{one}, {other}])\nm[0, 0] = 5\nm[:, 1:] = m[:, 1:] * 2\n{one} = m[0]",
            f"m = np.zeros((2, len(x)))\nm[n % 2] = {other}\n{one} = m.sum(0)", f"{one} = {one}.copy()\n{one}[0] = 1",
            f"v = {one}[:2]\nv[0] = 6", f"v = {one}.T\nv += 1", f"{tensor}.detach().mul_(2)", f"r.add_({s})",
            f"m = np.zeros((len(x), len(x)))\nfor i in range(len(x)):\n    m[i, i] = {one}[i]\n{other} = m.sum(0)",
            f"v = np.zeros(len(x))\nfor i, u in enumerate({tensor}.tolist()):\n    v[i] = u\n{one} = v",
            f"v = np.empty(len(x))\nfor i in range(len(x)):\n    v[i] = {tensor}[i].item()\n{one} = v",
        ]  # fmt: skip
        rare = [f"{one}.sort()", f"{one}.fill(2)", f"np.add({one}, {other}, out={one})", f"np.copyto({one}, {other})",
                f"np.put({one}, [0], {s})", f"{one}.flat[0] = 1", f"{one}[[0, -1]] = {s}",
                f"np.random.shuffle({one})",
                f"{one} = {one}[{one} > 0]", f"{one} = np.unique({one})", f"x.numpy()[0] = {s}",
                f"{one}.resize(2, refcheck=False)", f"OBJECTS[0] = {s}", f"{one}.setflags(write=False)"]  # fmt: skip
        more = ["HELD[0] = 3", "BOX.array[1] = 2", "BOX.array += 1", "CELLS['a'][1] = 4", "g[0] = 2", "g += 1"]
        return [*plain, *rare, *outside] if self.free else plain if self.inside else [*plain, *more]

    def simple(self) -> str:
        """A computation, a write, a store, or something that is noted."""
        rng, one, other, tensor = self.rng, self.array(), self.array(), self.name()
        names = (f"{one} = {self.value(2)}", f"{one} = {self.value()}", f"{tensor} = {self.tensor()}",
                 f"{tensor} = {self.tensor()}", f"s = {self.scalar()}", f"n = n + int({self.scalar()} > 0)",
                 f"{one}, {other} = {other}, {self.value()}", f"s = s + {self.scalar()}",
                 f"{one} = {one} + {self.scalar()}",
                 f"s = np.float64({self.scalar()})", f"n = int({self.scalar()})")  # fmt: skip
        stores = (f"log.append({self.scalar()})", f"log.append({self.value()})", f"box.array = {self.value()}",
                  f"kept({one}, log)", f"BOX.array = {self.value()}", "BOX.count = BOX.count + 1",
                  f"HELD[:1] = {one}[:1]",
                  f"CELLS['b'] = {self.value()}", f"CELLS['a'] = {one}", f"LAYER.weight = {self.value()}",
                  f"{one} = box.array[:1] + {one}", f"log.append({self.truth()})", f"box.count = {self.scalar()}",
                  "box.count += 1\ns = s + box.count", f"log.extend({one}.tolist())", f"log += [{one}, s]")  # fmt: skip
        notes = (f"log.append(str({one}.dtype))", f"log.append({one}.shape)",
                 f"log.append(type({self.scalar()}).__name__)",
                 f"e = {self.scalar()}\nlog.append(f'{{e:.2f}}')", f"log.append({one}.tolist())",
                 f"log.append(OBJECTS[{rng.randint(0, 2)}])",
                 f"log.append(len({one}))", f"log.append({one}.nbytes)",
                 f"log.append(np.result_type({one}, {other}).name)",
                 f"log.append(isinstance({self.scalar()}, float))",
                 f"log.append(repr(torch.as_tensor({one}).dtype))")  # fmt: skip
        loops = (f"for v in {one}:\n    s = s + v", f"for v, w in zip({one}, {other}):\n    s = s + v * w",
                 f"for v in {one}:\n    if v > 0:\n        {tensor} = {tensor} + v",
                 f"for i, v in enumerate({one}):\n    log.append(v)\n    {tensor} = {tensor} * 0.5 + i",
                 f"for i in range(len({one})):\n    {tensor} = {tensor} + {one}[i]",
                 f"for row in np.stack([{one}, {other}]):\n    {tensor} = {tensor} + float(row.sum())",
                 f"log.append([v for v in {one} if v > 0])", f"log.append(sum(v > 0 for v in {one}))",
                 f"i = 0\nwhile i < 3 and {one}.sum() < 5:\n    i = i + 1\n    {one} = {one} + 1",
                 f"for i in np.argsort({one}):\n    {tensor} = {tensor} + {other}[i]",
                 f"u, *rest = {one}\ns = s + u\nlog.append(len(rest))")  # fmt: skip
        return str(rng.choice(rng.choices((names, self.writes(), stores, notes, loops), (6, 4, 2, 1, 1))[0]))
