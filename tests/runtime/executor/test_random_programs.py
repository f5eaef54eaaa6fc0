"""Random Programs, run by the executor and by the naive one: the same values, the same gradients, inputs untouched."""

import random
import re

import pytest
import torch

from runtime.executor import compile_program, emitter, liveness, ownership, reuse
from runtime.executor.ownership import Owner
from runtime.ir import ArrayType, Block, Input, Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.tree import Leaf
from runtime.ir.verify import verify
from tests.oracle import difference, same

VECTOR = TensorType(torch.float64, (4,))
INT = ScalarType("int")
BOOL = ScalarType("bool")
LIST = ArrayType(VECTOR)


class Maker:
    """Grows a Program, Block by Block, from what is visible so far."""

    def __init__(self, seed: int, modes: bool) -> None:
        self.random = random.Random(seed)
        self.modes = modes
        self.count = 0

    def var(self, type_):
        self.count += 1
        return Variable(f"v{self.count}", type_)

    def program(self) -> Program:
        program = Program("random")
        inputs = [self.var(VECTOR) for _ in range(3)]
        program.inputs = [Input(var, var.name) for var in inputs]
        program.block.args = list(inputs)
        visible = list(inputs)
        self.fill(program.block, visible, 3, self.random.randint(6, 14))
        vectors = [var for var in visible if var.type is VECTOR]
        program.block.yields = self.random.sample(vectors, min(len(vectors), self.random.randint(1, 4)))
        program.output = [Leaf(index) for index in range(len(program.block.yields))]
        return program

    def pick(self, visible, type_=VECTOR):
        found = [var for var in visible if var.type is type_]
        return self.random.choice(found[-8:]) if found else None

    def fill(self, block, visible, depth, count):
        for _ in range(count):
            kinds = ["math", "math", "view", "new", "update", "update", "list", "number"]
            if depth:
                kinds += ["cond", "loop", "loop", "switch"]
            getattr(self, self.random.choice(kinds))(block, visible, depth)

    def add(self, block, visible, name, args, types, blocks=()):
        outputs = tuple(self.var(type_) for type_ in types)
        mode = "inherit"
        if self.modes and self.random.random() < 0.2:
            mode = self.random.choice(["on", "off"])
        block.ops.append(Operator(name, tuple(args), {}, outputs, tuple(blocks), grad_mode=mode))
        if visible is not None:
            visible.extend(outputs)
        return outputs

    def math(self, block, visible, depth):
        name = self.random.choice(["aten.mul.Tensor", "aten.sub.Tensor", "aten.tanh.default", "aten.sigmoid.default"])
        args = [self.pick(visible)]
        if name.endswith("Tensor"):
            args.append(self.pick(visible))
        self.add(block, visible, name, args, [VECTOR])

    def view(self, block, visible, depth):
        name = self.random.choice(["aten.view.default", "aten.reshape.default", "aten.expand.default"])
        self.add(block, visible, name, [self.pick(visible), [4]], [VECTOR])

    def new(self, block, visible, depth):
        if self.random.random() < 0.5:
            self.add(block, visible, "aten.full.default", [[4], 0.5], [VECTOR])
            block.ops[-1].kwargs["dtype"] = torch.float64
        else:
            self.add(block, visible, "aten.clone.default", [self.pick(visible)], [VECTOR])

    def number(self, block, visible, depth):
        found = self.pick(visible, INT)
        self.add(block, visible, "scalar.add", [found if found is not None else 1, 1], [INT])

    def list(self, block, visible, depth):
        array = self.pick(visible, LIST)
        if array is None or self.random.random() < 0.2:
            self.add(block, visible, "array.new", [[self.pick(visible), self.pick(visible)]], [LIST])
            return
        kind = self.random.choice(["append", "append", "set", "get", "concat", "stack"])
        if kind == "append":
            self.add(block, visible, "array.append", [array, self.pick(visible)], [LIST])
        elif kind == "set":
            self.add(block, visible, "array.set", [array, self.random.randint(0, 1), self.pick(visible)], [LIST])
        elif kind == "get":
            self.add(block, visible, "array.get", [array, self.random.randint(-2, 1)], [VECTOR])
        elif kind == "concat":
            self.add(block, visible, "array.extend", [array, self.pick(visible, LIST)], [LIST])
        else:
            (stacked,) = self.add(block, None, "aten.stack.default", [array], [TensorType(torch.float64, ("n", 4))])
            self.add(block, visible, "aten.mean.dim", [stacked, [0]], [VECTOR])

    def update(self, block, visible, depth):
        bases = list(dict.fromkeys(self.pick(visible) for _ in range(self.random.choice([1, 1, 1, 2]))))
        inner = Block([self.var(VECTOR) for _ in bases])
        seen = list(inner.args)
        captured = [var for var in visible if var not in bases] or visible
        extras = []
        for _ in range(self.random.randint(1, 3)):
            target = self.random.choice(seen)
            kind = self.random.choice(["add", "mul", "copy", "part", "fresh", "view"])
            if kind == "view":
                self.add(inner, seen, "aten.view.default", [target, [4]], [VECTOR])
                extras.append(seen[-1])
            elif kind == "fresh":
                extras += self.add(inner, None, "aten.mul.Tensor", [target, self.pick(captured)], [VECTOR])
            elif kind == "part":
                type_ = TensorType(torch.float64, (2,))
                (part,) = self.add(inner, None, "aten.slice.Tensor", [target, 0, self.random.randint(0, 2)], [type_])
                self.add(inner, None, "aten.mul_.Scalar", [part, 0.5], [type_])
            else:
                name = {"add": "aten.add_.Tensor", "mul": "aten.mul_.Tensor", "copy": "aten.copy_.default"}[kind]
                self.add(inner, None, name, [target, self.pick(captured)], [VECTOR])
        extras = [var for var in extras if self.random.random() < 0.4]
        inner.yields = [*inner.args, *extras]
        self.add(block, visible, "update", bases, [VECTOR] * len(inner.yields), [inner])

    def flag(self, block, visible):
        (total,) = self.add(block, None, "aten.sum.default", [self.pick(visible)], [TensorType(torch.float64, ())])
        (value,) = self.add(block, None, "scalar.item", [total], [ScalarType("float")])
        (flag,) = self.add(block, None, "scalar.gt", [value, self.random.choice([-1.0, 0.0, 1.0])], [BOOL])
        return flag

    def signature(self, visible):
        types = [VECTOR] * self.random.randint(1, 2)
        if self.pick(visible, LIST) is not None and self.random.random() < 0.4:
            types.append(LIST)
        return types

    def branch(self, visible, depth, types):
        block, seen = Block(), list(visible)
        self.fill(block, seen, depth - 1, self.random.randint(0, 4))
        block.yields = [self.pick(seen, type_) for type_ in types]
        return block

    def cond(self, block, visible, depth):
        flag, types = self.flag(block, visible), self.signature(visible)
        self.add(block, visible, "cond", [flag], types, [self.branch(visible, depth, types) for _ in range(2)])

    def switch(self, block, visible, depth):
        types = self.signature(visible)
        found = self.pick(visible, INT)
        (index,) = self.add(block, None, "scalar.mod", [found if found is not None else 1, 3], [INT])
        self.add(block, visible, "switch", [index], types, [self.branch(visible, depth, types) for _ in range(3)])

    def loop(self, block, visible, depth):
        types = [INT, *self.signature(visible)]
        test, body = Block([self.var(t) for t in types]), Block([self.var(t) for t in types])
        limit = self.random.randint(0, 3)
        if self.random.random() < 0.2:
            self.fill(test, [*visible, *test.args], 0, 1)
        (flag,) = self.add(test, None, "scalar.lt", [test.args[0], limit], [BOOL])
        test.yields = [flag]
        seen = [*visible, *body.args, *body.args[1:]]
        self.fill(body, seen, depth - 1, self.random.randint(1, 5))
        (following,) = self.add(body, None, "scalar.add", [body.args[0], 1], [INT])
        body.yields = [following, *(self.pick(seen, type_) for type_ in types[1:])]
        first = [0, *(self.pick(visible, type_) for type_ in types[1:])]
        self.add(block, visible, "while_loop", first, types, [test, body])


def values(seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(4, generator=generator, dtype=torch.float64) for _ in range(3)]


def backward(outputs, inputs):
    wanted = [out.sum() for out in outputs if out.requires_grad]
    if not wanted:
        return []
    return torch.autograd.grad(sum(wanted), inputs, allow_unused=True)


def compare(seed, naive, *, grad, modes):
    program = Maker(seed, modes).program()
    verify(program)
    executable = compile_program(program, coverage=True)
    inputs = [value.requires_grad_(grad) for value in values(seed)]
    before = [value.detach().clone() for value in inputs]
    with torch.set_grad_enabled(grad):
        try:
            wanted = naive(program).run(inputs)
        except RuntimeError as error:  # PyTorch refuses some writes through an older view: the executor must too
            with pytest.raises(RuntimeError, match=re.escape(str(error))):
                executable.run(inputs, [])
            return
        got = executable.run(inputs, [])
    wrong = difference(list(got), list(wanted))
    assert not wrong, f"{wrong}\n{program}\n{executable.source(grad=grad)}"
    assert not difference([value.detach() for value in inputs], before), f"an input was written\n{program}"
    if grad:
        try:
            gradients = backward(wanted, inputs)
        except RuntimeError:  # the writes of one update spoil each other's backward, as they would in eager PyTorch
            return
        same(backward(got, inputs), gradients, "gradients", tolerance=1e-12)


@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
@pytest.mark.parametrize("part", range(2))
@pytest.mark.usefixtures("uncounted")
def test_random_programs(part, grad, naive):
    for seed in range(part * 35, part * 35 + 35):
        compare(seed, naive, grad=grad, modes=False)


@pytest.mark.parametrize("part", range(2))
@pytest.mark.usefixtures("uncounted")
def test_random_grad_modes(part, naive):
    for seed in range(part * 35, part * 35 + 35):
        compare(seed + 10_000, naive, grad=True, modes=True)


def test_random_programs_in_outlined_functions(naive, monkeypatch):
    monkeypatch.setattr(emitter, "MAX_NESTING", 1)
    for seed in range(50):
        compare(seed, naive, grad=False, modes=True)


def test_random_programs_write_results_in_the_place_of_operands():
    made = [Maker(seed, False).program() for seed in range(50)]
    written = [
        op
        for program in made
        for owners in [ownership.analyse(program, liveness.analyse(program), grad=False)]
        for op in program.block.walk()
        if op.name in reuse.POINTWISE and owners.donated.get((id(op), 0), Owner.NO) is not Owner.NO
    ]
    assert len(written) >= 25


@pytest.mark.slow
@pytest.mark.usefixtures("uncounted")
def test_many_random_programs(naive):
    for seed in range(1000, 4000):
        compare(seed, naive, grad=seed % 2 == 0, modes=seed % 3 == 0)
