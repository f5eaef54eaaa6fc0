"""Arguments that are tensors of a user's class which adds attributes: results have that class where eager's have it, or
the function is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import Dy2StaticError
from tests.from_files import module_of

HEAD = """import torch, copy, operator, math
import numpy as np

class Image(torch.Tensor):
    scale = 3
    def area(self):
        return self.shape[-1] * self.shape[-2]
    @property
    def halved(self):
        return self / 2
HELD = torch.full((2, 3), 2.0).as_subclass(Image)
"""
FORMS = {
    "straight": "    return {use}\n",
    "path": "    r = None\n    if y.sum() > 0:\n        r = {use}\n    return r\n",
    "kept": "    r = [0]\n    for i in range(int((y > 0).sum())):\n        r[0] = {use}\n    return r[0]\n",
    "grown": "    r = []\n    for i in range(int((y > 0).sum())):\n        r.append({use})\n    return r\n",
    "met": "    x = HELD if y.sum() > 0 else HELD * 2\n    return {use}\n",
}
USES = """
x + 1
torch.ones(2, 3) * x
torch.ones(3) * x.sum().item()
torch.ones(3) * float(x.sum())
torch.full((2,), float(x.sum()))
torch.full((2,), x.sum().item())
torch.tensor([float(x.sum())])
torch.tensor(x.tolist())
torch.tensor([v for v in x[0].tolist()])
torch.from_numpy(x.detach().numpy() + 1)
torch.ones(int((x > 0).sum()) + 1)
torch.zeros(3).add_(x[0])
torch.zeros(3).copy_(x[0])
torch.zeros(3).add(x[0])
torch.add(x, 1, out=torch.empty(2, 3))
torch.ones(5)[(x[0] > 0).long()]
torch.ones(2, 3)[x > 0]
torch.where(x > 0, torch.ones(2, 3), torch.zeros(2, 3))
x > 0
x.shape
x.size()
x.T
x.unbind()
list(x)
[r * 2 for r in x]
torch.stack([r * 2 for r in x])
torch.cat([torch.ones(1, 3), x])
torch.nn.functional.linear(x, torch.ones(4, 3))
torch.nn.functional.layer_norm(x, (3,))
torch.nn.functional.dropout(x, 0.0)
torch.nn.functional.softmax(x, dim=-1)
x.max(0)
x.max(0).values
x.sort()
x.topk(2)
torch.ones_like(x)
x.new_zeros(3)
x.new_tensor([1.0])
torch.empty_like(x).fill_(1)
x.clone()
x.detach()
x.data
x.to(torch.float64)
x.double().float()
x.contiguous()
x.view(6)
x[0]
x[0, 1]
x[:, :2]
x.sum().item()
torch.tensor(x)
torch.as_tensor(x)
torch.as_tensor(x, dtype=torch.float64)
torch.asarray(x)
x.real
x.abs().sqrt()
torch.einsum('ij,kj->ik', x, torch.ones(2, 3))
torch.linalg.norm(x)
torch.broadcast_tensors(x, torch.ones(1))
torch.split(x, 1)
torch.chunk(x, 2)
x.expand(2, 2, 3)
x.add_(1)
x.mul_(2).sum()
torch.ones(2, 3).masked_fill(x > 0, 2.0)
torch.zeros(2, 3).masked_fill_(x > 0, 2.0)
torch.arange(3) + x
3 - x
-x
abs(x)
x @ torch.ones(3)
torch.ones(2) @ x
torch.distributions.Normal(x, 1.0).mean
torch.distributions.Normal(x, 1.0).log_prob(torch.zeros(2, 3))
torch.nn.Linear(3, 2)(x) * 0
torch.nonzero(x > 0)
torch.unique(x)
x.tolist()
bool(x.sum() > 0)
str(x.shape)
str(x)
repr(x + 1)
f'{x.sum()}'
f'{x.sum():.2f}'
f'{x.sum().item():.2f}'
format(x)
'%s' % x
'%.2f' % x.sum()
len(x)
x.numpy()
torch.sparse_coo_tensor([[0], [1]], x[0, :1])
torch.searchsorted(x[0].sort().values, torch.zeros(2))
torch.jit.annotate(torch.Tensor, x)
x.is_contiguous()
x.requires_grad
x.device
x.dtype
x.is_leaf
copy.copy(x)
(x, torch.ones(2))
{'a': x, 'b': torch.ones(2)}
getattr(x, 'scale', 7)
getattr(x + 1, 'scale', 7)
hasattr(x, 'area')
hasattr(x + 1, 'area')
hasattr(x, 'halved')
hasattr(x + 1, 'halved')
hasattr(x, 'nothing')
hasattr(x + 1, 'nothing')
x.scale
(x + 1).scale
x.halved
(x + 1).halved
x.area()
(x + 1).area()
Image.area(x)
Image.halved.fget(x)
x.__class__.__name__
type(x).__name__
isinstance(x, Image)
isinstance(x, torch.Tensor)
isinstance(x + 1, Image)
'scale' in dir(x)
callable(getattr(x, 'area', None))
operator.attrgetter('scale')(x + 1)
x.as_subclass(torch.Tensor)
x.as_subclass(torch.Tensor) + 1
x.as_subclass(Image)
torch.ones(2).as_subclass(Image)
torch.Tensor._make_subclass(Image, torch.ones(2))
Image(torch.ones(2))
torch.func.functional_call(torch.nn.Identity(), {}, (x,))
torch.utils.checkpoint.checkpoint(lambda v: v * 2, x, use_reentrant=False)
torch.vmap(lambda v: v * 2)(x)
sum(x)
max(x[0])
sorted(x[0].tolist())
math.sqrt(abs(x.sum()))
np.asarray(x)
np.sin(x.detach())
torch.atleast_2d(x[0])
torch.meshgrid(x[0], x[1], indexing='ij')
torch.block_diag(x, x)
torch.nn.utils.rnn.pad_sequence([x[0], x[1]])
torch.nn.functional.pad(x, (1, 1))
torch.nn.functional.one_hot((x > 0).long())
torch.nn.functional.cross_entropy(x, torch.tensor([0, 1]))
torch.nn.functional.interpolate(x[None], scale_factor=2)
torch.allclose(x, x)
torch.equal(x, x)
x == x
(x == x).all()
x.isnan().any()
torch.is_tensor(x)
torch.numel(x)
torch.autograd.functional.jacobian(lambda v: v * 2, x)
torch.zeros(2, 3).index_put_((torch.tensor([0]),), x[0])
torch.zeros(2, 3).scatter_(1, (x > 0).long(), x)
torch.add(torch.ones(3), 1, alpha=x.sum().item())
torch.ones(2, 3).T.copy_(x.T)
torch.where(x > 0, 1.0, 0.0)
torch.cumsum(x, 0)
torch.randn_like(x) * 0
torch.bernoulli(x.sigmoid()) * 0
torch.complex(x, x)
torch.view_as_real(torch.complex(x, x))
torch.result_type(x, 1)
torch.Tensor.add(x, 1)
torch.ops.aten.add(x, 1)
torch.special.expit(x)
torch.fft.fft(x)""".strip().split("\n")
CODES = {"D2S211", "D2S213", "D2S222", "D2S228", "D2S235", "D2S245", "D2S246"}


def shown(value: Any) -> Any:
    """A value with the classes of all that is in it."""
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, dict):
        return {key: shown(held) for key, held in value.items()}
    if isinstance(value, torch.Tensor):
        plain = value.as_subclass(torch.Tensor).detach().to_dense()  # type: ignore[no-untyped-call]
        return type(value).__name__, value.requires_grad, plain.tolist()
    return type(value).__name__, str(value)


def outcome(function: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
    torch.manual_seed(1)
    try:
        return shown(function(x, y)), shown(x)
    except Dy2StaticError:
        raise
    except Exception as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.sample(12)
@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use", USES)
def test_results_have_the_class_that_they_have_in_eager(use: str, form: str, needs: bool, tmp_path: Path) -> None:
    source = HEAD + "\n\ndef f(x, y):\n" + FORMS[form].format(use=use)
    (tmp_path / "one.py").write_text(source)
    module = module_of(tmp_path / "one.py")
    static = dy2static.to_static(module.f)
    for y in (torch.ones(2), -torch.ones(2), torch.ones(2)):
        torch.manual_seed(0)
        given = torch.randn(2, 3)
        mine, theirs = (given.clone().as_subclass(module.Image).requires_grad_(needs) for _ in range(2))
        module.HELD.data.fill_(2.0)
        expected = outcome(module.f, theirs, y), shown(module.HELD)
        module.HELD.data.fill_(2.0)
        try:
            got = outcome(static, mine, y), shown(module.HELD)
        except Dy2StaticError as error:
            assert error.code in CODES
            return
        assert got == expected


@pytest.mark.parametrize("use", [
    "x + 1", "torch.where(x > 0, torch.ones(2, 3), torch.zeros(2, 3))", "[r * 2 for r in x]", "x.max(0)", "HELD * x",
    "torch.cat([torch.ones(1, 3), x])", "x.add_(1)", "x.sum().item()", "hasattr(x, 'nothing')", "HELD + 1",
    "HELD @ x.T",
])  # fmt: skip
def test_what_computes_is_not_refused(use: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(HEAD + "\n\ndef f(x, y):\n" + FORMS["straight"].format(use=use))
    module = module_of(tmp_path / "one.py")
    mine, theirs = (torch.ones(2, 3).as_subclass(module.Image) for _ in range(2))  # type: ignore[no-untyped-call]
    assert outcome(dy2static.to_static(module.f), mine, torch.ones(2)) == outcome(module.f, theirs, torch.ones(2))


@pytest.mark.parametrize("use", ["getattr(x + 1, 'scale', 7)", "hasattr(x, 'halved')", "(x + 1).area()", "x.halved",
                                 "torch.zeros(3).add_(x[0])", "f'{x.sum():.2f}'", "torch.tensor(x)",
                                 "x.__class__.__name__", "torch.vmap(lambda v: v * 2)(x)"])  # fmt: skip
def test_refusals_name_the_class(use: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(HEAD + "\n\ndef f(x, y):\n" + FORMS["straight"].format(use=use))
    module = module_of(tmp_path / "one.py")
    static = dy2static.to_static(module.f)
    given = torch.ones(2, 3).as_subclass(module.Image)  # type: ignore[no-untyped-call]
    with pytest.raises(Dy2StaticError, match="given a Image.*torch's own"):
        static(given, torch.ones(2))
    for plain in (torch.ones(2, 3), torch.randn(2, 3)):  # the same function, of plain tensors
        assert outcome(static, plain, torch.ones(2)) == outcome(module.f, plain, torch.ones(2))


def test_a_class_of_a_library_whose_name_begins_with_torch(tmp_path: Path) -> None:
    (tmp_path / "torchpictures.py").write_text(HEAD + "\n\ndef asked(x, y):\n    return isinstance(x + 1, Image)\n\n\n"
                                               "def held(x, y):\n    return HELD + x\n")  # fmt: skip
    module = module_of(tmp_path / "torchpictures.py", "torchpictures")
    given = torch.ones(2, 3).as_subclass(module.Image)  # type: ignore[no-untyped-call]
    with pytest.raises(Dy2StaticError, match="given a Image"):
        dy2static.to_static(module.asked)(given, 1)
    assert outcome(dy2static.to_static(module.held), given, given) == outcome(module.held, given, given)


class First(torch.Tensor):
    pass


class Second(First):
    pass


class Third(torch.Tensor):
    pass


TWO = [
    lambda x, y: x + y, lambda x, y: y + x, lambda x, y: x.add_(y), lambda x, y: y.mul_(x),
    lambda x, y: (x * 2).add_(y),
    lambda x, y: torch.cat([x, y]), lambda x, y: torch.where(x > 0, x, y), lambda x, y: x if x.sum() > 0 else y,
    lambda x, y: (x * y).add_(x), lambda x, y: torch.add(x, y, out=torch.empty(3)), lambda x, y: (x * 2, [y - 1]),
]  # fmt: skip


@pytest.mark.parametrize("use", range(len(TWO)))
@pytest.mark.parametrize("second", [torch.Tensor, First, Second, Third])
@pytest.mark.parametrize("first", [torch.Tensor, First, Second, Third])
def test_two_classes(first: type, second: type, use: int) -> None:
    mine, theirs = ([torch.ones(3).as_subclass(cls) for cls in (first, second)] for _ in range(2))
    expected = outcome(lambda x, y: TWO[use](*x), theirs, torch.ones(1))
    try:
        got = outcome(dy2static.to_static(lambda x, y: TWO[use](*x)), mine, torch.ones(1))
    except Dy2StaticError as error:
        assert error.code in ("D2S213", "D2S225")
        assert first is not second or use == 9
        return
    assert got == expected
