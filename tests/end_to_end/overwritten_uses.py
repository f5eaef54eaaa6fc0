"""Programs that overwrite what a derivative reads: what is saved x how it is overwritten x where x how it runs.

Each is a function of a tensor (2, 3) and an integer tensor, and is held against eager: the same gradient, or the same
refusal of backward.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dy2static import InputSpec, load, save, to_static
from runtime.autodiff import gradient_path
from runtime.errors import Dy2StaticError, SignatureError
from tests.from_files import module_of
from tests.oracle import difference

HEAD = """import torch
import torch.nn.functional as F
W = torch.tensor([[0.5, -0.25, 1.0], [0.75, 0.5, -0.5]])
I = torch.tensor([[1, 0, 1], [0, 0, 1]])
class Box:
    pass
class Item:
    def __init__(self, value):
        self.value = value
"""

SAVES = {
    "mul": "v * v", "mul_by_another": "v * x", "mul_by_a_constant": "v * W", "sin": "v.sin()", "exp": "v.exp()",
    "sqrt": "(v + 5).sqrt() * v", "sqrt_result": "v.abs().sqrt()", "div": "W / (v + 4)", "div_of": "v / x.exp()",
    "tanh": "v.tanh()", "sigmoid": "torch.sigmoid(v)", "relu": "v.relu()", "softmax": "v.softmax(1)",
    "log_softmax": "v.log_softmax(-1)", "matmul": "v @ v.T", "addcmul": "torch.addcmul(x, v, v)",
    "where": "torch.where(v > 0, v, x)", "max": "v.max(1)[0]", "min": "v.min(dim=0).values",
    "sort": "v.sort(1)[0]", "cumprod": "v.cumprod(1)", "norm": "v.norm()", "pow": "v ** 3", "pow_result": "2.0 ** v",
    "prod": "v.prod()", "layer_norm": "F.layer_norm(v, (3,))", "linear": "F.linear(v, v)",
    "conv1d": "F.conv1d(v[None], v[None, :, :2])", "gather": "v.gather(0, I)", "clamp": "v.clamp(-0.5, 0.5)",
    "std": "v.std()", "index_put": "x.index_put((I[0],), v[:1])", "add": "v + v", "sum": "v.sum(0)",
    "gelu": "F.gelu(v)", "atan2": "torch.atan2(v, x)", "logsumexp": "v.logsumexp(1)", "cat": "torch.cat([v, x])",
    "var": "v.var(1)", "einsum": "torch.einsum('ij,kj->ik', v, v)", "bce": "F.mse_loss(v, W)", "abs": "v.abs()",
    "maximum": "torch.maximum(v, x)", "lerp": "torch.lerp(v, x, 0.3)", "reciprocal": "(v + 5).reciprocal() * v",
}  # fmt: skip
"""What is computed of ``v``: each keeps its operand, its result, both, or nothing."""

WRITES = {
    "in_place": "v.mul_(2)", "add": "v.add_(1)", "view": "v[0].mul_(2)", "index": "v[0] = 1.0",
    "slice": "v[:, 1:] += 1",
    "out": "with torch.no_grad():\n    torch.mul(v, 2, out=v)", "copy": "v.copy_(W)", "data": "v.data.mul_(2)",
    "data_view": "v.data[0] = 0.25", "detach": "v.detach().add_(1)", "no_grad": "with torch.no_grad():\n    v.mul_(2)",
    "zero": "v.zero_()", "fill": "v.fill_(0.5)", "flat": "v.view(-1)[1:].mul_(3)", "transposed": "v.T.add_(1)",
    "augmented": "v += 1", "itself": "v *= v", "masked": "v.masked_fill_(W > 0, 0.5)", "by_another": "v.mul_(x)",
    "detached_view": "v[0].detach().zero_()", "sin": "v.sin_()", "clamp": "v.clamp_(max=0.25)",
    "index_add": "v.index_add_(0, I[0, :2], W)", "data_twice": "v.data.add_(1)\nv.data.mul_(2)", "tanh": "v.tanh_()",
}  # fmt: skip

# ``SAVE``: ``z = z + <what is saved>.sum()``.  ``WRITE``: the statement on ``v``.  ``MAKE``: ``v`` is made.
_PLACES = """straight
MAKE
SAVE
WRITE

before
MAKE
WRITE
SAVE

between
MAKE
SAVE
WRITE
SAVE

other_name
MAKE
w = v
SAVE
v = w.view(2, 3)
WRITE

branch
MAKE
SAVE
if n > 1:
    WRITE

branch_saves
MAKE
if n > 1:
    SAVE
WRITE

branch_both
MAKE
if n > 1:
    SAVE
    WRITE

other_branch
MAKE
if n > 1:
    SAVE
else:
    WRITE

two_branches
MAKE
if n > 0:
    SAVE
if n < 2:
    WRITE

branch_makes
MAKE
if n > 1:
    v = v + 1
SAVE
if n > 0:
    WRITE

loop_after
MAKE
SAVE
for _ in range(int(n)):
    WRITE

loop_before
MAKE
for _ in range(int(n)):
    WRITE
SAVE

loop_saves
MAKE
for _ in range(int(n)):
    SAVE
WRITE

iteration
MAKE
for _ in range(int(n)):
    SAVE
    WRITE

iteration_first_writes
MAKE
for i in range(int(n)):
    if i == 1:
        WRITE
    SAVE

iteration_made
for _ in range(int(n)):
    MAKE
    SAVE
    WRITE

iteration_moves
MAKE
for i in range(int(n)):
    SAVE
    if i == 0:
        v = v + 1
    if i == 1:
        WRITE

while_breaks
MAKE
i = 0
while i < 4 and x[0, 0] > 0:
    SAVE
    if i == n:
        break
    if i == 1:
        WRITE
    i += 1

nested
MAKE
for i in range(int(n)):
    for j in range(2):
        SAVE
    if i == 1:
        WRITE

nested_inner
MAKE
for i in range(int(n)):
    SAVE
    for j in range(int(n)):
        if i + j == 2:
            WRITE

swapped
MAKE
u = x * 3
for i in range(int(n)):
    SAVE
    if i == 1:
        WRITE
    u, v = v, u

fixed_list
MAKE
l = [v, x * 3]
SAVE
for i in range(int(n)):
    v = l[0]
    if i == 1:
        WRITE

fixed_list_chosen
MAKE
l = [v, x * 3]
SAVE
v = l[int(n > 1)]
WRITE

dict
MAKE
d = {'p': v}
SAVE
if n > 0:
    v = d['p']
    WRITE

attribute
MAKE
box = Box()
box.value = v
for _ in range(int(n)):
    v = box.value
    SAVE
    WRITE

attribute_rebound
MAKE
box = Box()
box.value = v
for _ in range(int(n)):
    v = box.value
    SAVE
    box.value = v + 1
WRITE

grown
l = []
for i in range(int(n)):
    MAKE
    l.append(v)
    SAVE
if n > 0:
    v = l[0]
    WRITE

grown_last
l = []
for i in range(int(n)):
    MAKE
    l.append(v)
    SAVE
l.append(x * 3)
v = l[-1]
WRITE

grown_all
l = []
for i in range(int(n)):
    MAKE
    l.append(v)
    SAVE
for v in l:
    WRITE

grown_read
l = []
for i in range(int(n)):
    MAKE
    l.append(v)
for v in l:
    SAVE
if n > 1:
    v = l[1]
    WRITE

grown_then_name
MAKE
l = []
for i in range(int(n)):
    l.append(v)
w = v
for v in l:
    SAVE
v = w
WRITE

grown_saved_before
MAKE
SAVE
l = []
for i in range(int(n)):
    l.append(v)
for v in l:
    WRITE

grown_in_loop
l = []
for i in range(int(n)):
    MAKE
    l.append(v)
    SAVE
    v = l[0]
    if i == 1:
        WRITE

grown_popped
l = []
for i in range(int(n)):
    MAKE
    l.append(v)
    SAVE
if n > 0:
    v = l.pop()
    WRITE

grown_pairs
l = []
for i in range(int(n)):
    MAKE
    l.append((v, i))
    SAVE
for v, j in l:
    if j == 1:
        WRITE

grown_dicts
l = []
for i in range(int(n)):
    MAKE
    l.append({'p': v})
    SAVE
if n > 0:
    v = l[0]['p']
    WRITE

grown_objects
l = []
for i in range(int(n)):
    MAKE
    l.append(Item(v))
    SAVE
if n > 0:
    v = l[0].value
    WRITE

grown_saved_and_kept
l = [x * 3]
for i in range(int(n)):
    MAKE
    l.append(v)
v = l[int(n)]
SAVE
v = l[0]
WRITE

grown_tuple
l = ()
for i in range(int(n)):
    MAKE
    l = (*l, v)
    SAVE
if n > 0:
    v = l[0]
    WRITE

rows
MAKE
w = v.clone()
for v in w.split(2):
    SAVE
    WRITE

function
MAKE
def change(v):
    WRITE
    return 1
SAVE
if n > 1:
    change(v)

list_of_argument
l = []
for i in range(int(n)):
    l.append(x * 2)
for v in l:
    SAVE
    WRITE
"""

PLACES = {text.split("\n")[0]: text.partition("\n")[2] for text in _PLACES.split("\n\n")}


def program(name: str, save: str, of_result: bool, write: str, place: str) -> str:
    """The function. ``of_result``: what is overwritten is the saving operator's result, not its operand."""
    expression = SAVES[save]
    if of_result:
        made, saved = f"u = x * 2\nv = {expression.replace('v', 'u')}", "v + 1"
        made = made.replace(".uar(", ".var(").replace(".ualues", ".values").replace("conu1d", "conv1d")
    else:
        made, saved = "v = x * 2", expression
    pieces = {"MAKE": made, "SAVE": f"z = z + ({saved}).sum()", "WRITE": WRITES[write]}
    lines = ["z = (x * 0.5).sum()"]
    for line in PLACES[place].strip("\n").split("\n"):
        indent = len(line) - len(line.lstrip())
        found = pieces.get(line.strip())
        lines += textwrap.indent(found, " " * indent).split("\n") if found else [line]
    return f"def {name}(x, n):\n" + textwrap.indent("\n".join([*lines, "return z"]), "    ") + "\n"


def sample(seed: int, count: int) -> list[tuple[str, bool, str, str]]:
    """Some of them: every place equally often, and every write at each place in turn."""
    rng = random.Random(seed)
    saves, places, writes = list(SAVES), list(PLACES), list(WRITES)
    found = []
    for index in range(count):
        write = writes[(index // len(places) + seed) % len(writes)]
        found.append((rng.choice(saves), rng.random() < 0.35, write, places[index % len(places)]))
    return found


def load_programs(sources: list[str], folder: Path) -> list[Callable[..., Any]]:
    """The functions of a file of their own."""
    path = folder / "overwritten_programs.py"
    path.write_text(HEAD + "\n\n".join(sources))
    module = module_of(path)
    return [getattr(module, source.split("(")[0].removeprefix("def ")) for source in sources]


REFUSES = ("modified by an inplace operation", "is a view and is being modified inplace",
           "its base or another view of its base has been modified inplace")  # fmt: skip


def run(function: Callable[..., Any], n: int) -> Any:
    """Its result and gradient, or what was refused: the call, or backward."""
    x = torch.tensor([[0.1, 0.2, 0.4], [-0.3, 0.6, 0.5]], requires_grad=True)
    try:
        result = function(x, torch.tensor(n))
    except Dy2StaticError:
        raise
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__, "in the call"
    try:
        return result.detach(), torch.autograd.grad(result, x)[0]
    except RuntimeError as error:
        assert any(text in str(error) for text in REFUSES), error
        return result.detach(), "backward raises"


def differs(eager: Any, other: Any) -> str:
    """In what the other one is not eager's; empty if it is."""
    for n in range(4):
        found = difference(run(other, n), run(eager, n), tolerance=1e-5)
        if found:
            return f"n={n}: {found}"
    return ""


def judge(eager: Any, folder: Path) -> str:
    """ "same", a code with which it is refused, or what is different: live, loaded, and under torch's autograd."""
    try:
        converted = to_static(eager)
        found = differs(eager, converted)
        if found:
            return f"live, {found}"
        with gradient_path("autograd"):
            found = differs(eager, converted)
        if found:
            return f"autograd, {found}"
        specified = to_static(eager, input_spec=[InputSpec([2, 3], "float32"), InputSpec([], "int64")])
        try:
            save(specified, folder / "saved")
        except SignatureError as error:
            if error.code == "D2S318" and all(run(eager, n)[1] == "in the call" for n in range(4)):
                return "same"  # there is no file of a function that raises for every call
            raise
        found = differs(eager, load(folder / "saved"))
        return f"loaded, {found}" if found else "same"
    except Dy2StaticError as error:
        return str(error.code)
