"""Sparse tensors in straight code: what they hold is counted when a Program runs, and is their own memory.

On fake tensors torch counts no elements. Here every question that has an answer about elements is asked of tensors with
other numbers of them, coalesced or not, hybrid and compressed: the answer is eager's, or the question is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec, to_static
from runtime.errors import TraceError
from tests.oracle import same

I = torch.tensor([[0, 0, 1], [0, 1, 2]])
V = torch.tensor([3.0, 4.0, 5.0])


pytestmark = pytest.mark.filterwarnings("ignore:Sparse (invariant|CSR|CSC|BSR)")


def coo(indices: Any = None, values: Any = None) -> torch.Tensor:
    return torch.sparse_coo_tensor(
        I.clone() if indices is None else indices, V.clone() if values is None else values, (3, 3))


MAKERS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": coo,
    "twice_the_same": lambda: coo(torch.tensor([[0, 0, 1], [0, 0, 2]])),
    "coalesced": lambda: torch.eye(3).to_sparse(),
    "two": lambda: torch.diag(torch.tensor([1.0, 0.0, 2.0])).to_sparse(),
    "empty": lambda: torch.zeros(3, 3).to_sparse(),
    "hybrid": lambda: torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2, 3), (3, 3)),
    "rows": lambda: coo().to_dense().to_sparse_csr(),
    "columns": lambda: torch.eye(3).to_sparse_csc(),
    "dense": lambda: torch.diag(torch.tensor([1.0, 0.0, 2.0])),
}
QUESTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "indices": lambda s: s._indices(),
    "values": lambda s: s._values(),
    "coalesced_parts": lambda s: (s.coalesce().indices(), s.coalesce().values()),
    "parts_that_may_raise": lambda s: (s.indices(), s.values()),
    "rows": lambda s: (s.crow_indices(), s.col_indices(), s.values()),
    "columns": lambda s: (s.ccol_indices(), s.row_indices()),
    "count": lambda s: s._nnz(),
    "count_in_a_condition": lambda s: 1 if s._nnz() > 2 else 0,
    "count_as_a_size": lambda s: torch.zeros(s._nnz()),
    "count_of_two": lambda s: s._nnz() + torch.cat([s, s])._nnz(),
    "count_of_a_dense_one": lambda s: s.to_dense().to_sparse()._nnz(),
    "shapes": lambda s: (s._indices().shape, s._values().shape, s.shape, s.sparse_dim(), s.dense_dim()),
    "length": lambda s: len(s._values()),
    "numel": lambda s: (s._values().numel(), s.numel()),
    "is_coalesced": lambda s: s.is_coalesced(),
    "coalesce_is_coalesced": lambda s: s.coalesce().is_coalesced(),
    "layout": lambda s: (str(s.layout), s.is_sparse, s.is_sparse_csr),
    "branch_on_a_size": lambda s: s._values() * 2 if s._values().shape[0] > 2 else s._values() - 1,
    "range": lambda s: sum(range(s._values().shape[0])),
    "element": lambda s: s._values()[1],
    "last": lambda s: s._values()[-1],
    "sum": lambda s: s._values().sum() / s._nnz(),
    "gathered": lambda s: torch.arange(3.0)[s._indices()[1]] * s._values(),
    "counted": lambda s: torch.bincount(s._indices()[0], minlength=3),
    "scattered": lambda s: torch.zeros(3).index_add(0, s.coalesce().indices()[0], s.coalesce().values()),
    "made_again": lambda s: torch.sparse_coo_tensor(s._indices(), s._values() * 2, s.shape).to_dense(),
    "normalised": lambda s: coo(s._indices(), s._values() / torch.sparse.sum(s, 1).to_dense()[s._indices()[0]]),
    "selected": lambda s: torch.index_select(s, 0, torch.tensor([0, 1])).to_dense(),
    "a_row": lambda s: s[0].to_dense(),
    "product": lambda s: torch.sparse.mm(s, torch.ones(3, 2)),
    "product_of_two": lambda s: torch.sparse.mm(s, s).to_dense(),
    "transposed": lambda s: s.t().to_dense(),
    "sums": lambda s: (s.sum(), torch.sparse.sum(s, 0).to_dense()),
    "softmax": lambda s: torch.sparse.softmax(s, 1).to_dense(),
    "with_dense": lambda s: s + torch.ones(3, 3),
    "detached": lambda s: s.detach().to_dense(),
    "like": lambda s: torch.zeros_like(s).to_dense(),
    "as_float64": lambda s: s.double()._values(),
    "itself": lambda s: s,
    "masked": lambda s: torch.ones(3, 3).sparse_mask(s.coalesce())._values(),
    "dropped": lambda s: torch.dropout(s, 0.5, False).to_dense(),
    "written": lambda s: (s.mul_(2), s._values().clone())[1],
    "added_to": lambda s: (s.add_(s.t()), s._nnz())[1],
}


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except TraceError:
        raise
    except Exception as error:
        return type(error)


def dense(value: Any) -> Any:
    """With parts in place of sparse tensors: values cannot be compared otherwise."""
    if isinstance(value, (tuple, list)):
        return tuple(map(dense, value))
    if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
        return str(value.layout), value.to_dense()
    return value


@pytest.mark.parametrize("question", QUESTIONS)
def test_of_every_kind_of_tensor(question: str) -> None:
    """One converted function answers all of them in turn, so that no answer is another tensor's."""
    static = to_static(QUESTIONS[question])
    for made in (*MAKERS.values(), *MAKERS.values()):
        given, expected = made(), made()
        theirs = outcome(QUESTIONS[question], expected)
        try:
            ours = outcome(static, given)
        except TraceError as error:
            assert isinstance(theirs, type) or error.code in ("D2S235", "D2S240"), error
            continue
        same(dense(ours), dense(theirs))
        if not isinstance(theirs, type):
            same(dense(given), dense(expected))


NEVER_REFUSED = (
    "indices", "values", "count", "count_in_a_condition", "shapes", "branch_on_a_size", "element", "gathered",
    "made_again", "normalised", "product", "is_coalesced", "coalesce_is_coalesced",
)  # fmt: skip


@pytest.mark.parametrize("question", NEVER_REFUSED)
@pytest.mark.parametrize("maker", ["plain", "coalesced", "two"])
def test_not_refused(question: str, maker: str) -> None:
    given = MAKERS[maker]()
    same(dense(to_static(QUESTIONS[question])(given)), dense(QUESTIONS[question](given)))


def test_few_programs_are_made() -> None:
    static = to_static(lambda s: s._values() * 2)
    for count in (1, 2, 3):
        given = torch.diag(torch.tensor([1.0, 2.0, 3.0]) * (torch.arange(3) < count)).to_sparse()
        assert torch.equal(static(given), given._values() * 2)
    assert len(static.programs) == 1


def test_shortcuts_ask_whether_it_is_coalesced() -> None:
    static = to_static(lambda s: s.is_coalesced())
    for _ in range(8):
        assert static(coo()) is False
    assert static(coo().coalesce()) is True


class Adjacent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.eye(4).to_sparse())

    def forward(self, x: torch.Tensor) -> Any:
        return torch.sparse.mm(self.edges, x) * self.edges._nnz(), self.edges.is_coalesced()


def test_buffers_that_change() -> None:
    module = Adjacent()
    static = to_static(module)
    x = torch.ones(4, 2)
    for edges in (torch.eye(4).to_sparse(), torch.ones(4, 4).to_sparse(),
                  torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (4, 4))):  # fmt: skip
        module.edges = edges
        same(static(x), (torch.sparse.mm(edges, x) * edges._nnz(), edges.is_coalesced()))


WRITES: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "values": lambda s, v: (s._values().mul_(2), s.to_dense())[1],
    "indices": lambda s, v: (s._indices().zero_(), s.to_dense())[1],
    "values_of_coalesced": lambda s, v: (s.coalesce().values().mul_(2), s.to_dense())[1],
    "what_it_was_made_of": lambda s, v: (lambda made: (v.mul_(2), made.to_dense())[1])(coo(values=v)),
    "values_of_what_was_made": lambda s, v: (coo(values=v)._values().mul_(2), v)[1],
    "itself": lambda s, v: (s.mul_(2), s.to_dense())[1],
    "a_transposed": lambda s, v: (s.t().mul_(2), s.to_dense())[1],
    "a_clone": lambda s, v: (s.clone()._values().mul_(2), s.to_dense())[1],
    "resized": lambda s, v: (s.sparse_resize_((4, 4), 2, 0), s.shape)[1],
    "cleared": lambda s, v: (s.sparse_resize_and_clear_((4, 4), 2, 0), s._nnz())[1],
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("maker", ["plain", "coalesced"])
def test_writes_reach_all_that_share_memory(write: str, maker: str) -> None:
    """Written as in eager, or refused."""
    given, expected = (MAKERS[maker](), V.clone()), (MAKERS[maker](), V.clone())
    theirs = WRITES[write](*expected)
    try:
        ours = to_static(WRITES[write])(*given)
    except TraceError as error:
        assert error.code in ("D2S222", "D2S240"), error
        given, expected = given[1:], expected[1:]
        theirs = ours = None
        expected = (V.clone(),)
    same(ours, theirs)
    same(dense(given), dense(expected))


ITSELF: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "same_dtype": lambda s: s.to(torch.float32), "float": lambda s: s.float(), "cpu": lambda s: s.cpu(),
    "to_sparse": lambda s: s.to_sparse(), "detached": lambda s: s.detach(),
    "data": lambda s: s.data, "dropped": lambda s: torch.dropout(s, 0.5, False), "transposed": lambda s: s.t(),
    "unsqueezed": lambda s: s.unsqueeze(0), "coalesced": lambda s: s.coalesce(),
    "a_row": lambda s: s[0], "double": lambda s: s.double(),
}  # fmt: skip


@pytest.mark.parametrize("maker", ["plain", "coalesced"])
@pytest.mark.parametrize("way", ITSELF)
def test_writes_reach_what_is_the_tensor_itself(way: str, maker: str) -> None:
    """Either one is written, and the other looked at: as in eager, or refused."""
    def first(s: Any) -> Any:
        other = ITSELF[way](s)
        s.mul_(2)
        return other.to_dense()

    def second(s: Any) -> Any:
        other = ITSELF[way](s)
        other.zero_()
        return s.to_dense()

    for function in (first, second):
        given, expected = MAKERS[maker](), MAKERS[maker]()
        theirs = function(expected)
        try:
            ours = to_static(function)(given)
        except TraceError as error:
            assert error.code in ("D2S222", "D2S240") and way in ("coalesced", "a_row"), error
            continue
        same(ours, theirs)
        same(dense(given), dense(expected))


@pytest.mark.parametrize("make", [lambda s: torch.cat([s, s]).to_sparse(), lambda s: (s * 2).to_sparse()])
def test_whether_what_was_sparse_is_coalesced(make: Any) -> None:
    with pytest.raises(TraceError, match="is coalesced") as error:
        to_static(lambda s: make(s).is_coalesced())(coo())
    assert error.value.code == "D2S240"


TRAINED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "product": lambda v, x: torch.sparse.mm(coo(values=v), x),
    "operator": lambda v, x: coo(values=v) @ x,
    "dense": lambda v, x: coo(values=v).to_dense() ** 2 * x[:, :1],
    "values": lambda v, x: coo(values=v).coalesce().values() ** 2 * x.sum(),
    "sums": lambda v, x: torch.sparse.sum(coo(values=v), 0).to_dense() ** 2 * x.sum(),
    "softmax": lambda v, x: torch.sparse.softmax(coo(values=v), 1).to_dense() ** 2 * x.sum(),
    "of_dense": lambda v, x: torch.sparse.mm((x @ x.t()).to_sparse(), x) * v[0],
    "added": lambda v, x: torch.sparse.addmm(x, coo(values=v), x),
    "masked": lambda v, x: (x @ x.t()).sparse_mask(coo().coalesce()).to_dense() * v,
    "normalised": lambda v, x: torch.sparse.mm(coo(values=v / coo(values=v)._nnz()), x),
}


@pytest.mark.parametrize("name", TRAINED)
def test_gradients(name: str) -> None:
    found = []
    for function in (TRAINED[name], to_static(TRAINED[name])):
        torch.manual_seed(0)
        given = [torch.rand(3, requires_grad=True), torch.rand(3, 2, requires_grad=True)]
        result = function(*given)
        (result * torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape)).sum().backward()
        found.append((result.detach(), [one.grad for one in given]))
    same(found[1], found[0], tolerance=1e-6)


def test_saved(tmp_path: Any) -> None:
    class Edges(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            s = x.to_sparse()
            return s._values() * 2, s._nnz(), s.indices(), torch.sparse.mm(s, x)

    loaded = dy2static.load(dy2static.save(Edges(), tmp_path / "edges", [InputSpec([3, 3])]))
    for x in (torch.eye(3), torch.ones(3, 3), torch.zeros(3, 3)):
        same(loaded(x), Edges()(x))
