"""Packed sequences: how many rows and steps they have is data's, and every size that is read is eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence

from dy2static import to_static
from tests.oracle import check, check_module, same

LENGTHS = (torch.tensor([5, 3, 2]), torch.tensor([1, 4, 4]), torch.tensor([2, 2, 2]), torch.tensor([1, 1, 5]))


def calls(sorted_: bool = False, features: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    made = []
    for seed, lengths in enumerate(LENGTHS):
        x = torch.randn(3, 5, features, generator=torch.Generator().manual_seed(seed), requires_grad=True)
        made.append((x, lengths.sort(descending=True).values if sorted_ else lengths))
    return made


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("sorted_", [True, False])
def test_packing(batch_first: bool, sorted_: bool) -> None:
    def pack(x: Any, lengths: Any) -> Any:
        x = x if batch_first else x.transpose(0, 1)
        one = pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=sorted_)
        return one.data * 2, one.batch_sizes, one.data.shape, one.batch_sizes.dtype, len(one.batch_sizes)

    check(pack, *calls(sorted_))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("total_length", [None, 7])
def test_and_back(batch_first: bool, total_length: int | None) -> None:
    def there_and_back(x: Any, lengths: Any) -> Any:
        one = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        padded, found = pad_packed_sequence(one, batch_first, padding_value=-1.5, total_length=total_length)
        return padded, found, padded.shape, padded.sum() / found.sum()

    check(there_and_back, *calls())


class Reader(nn.Module):
    """What every manual shows: pack, a recurrent layer, unpack, the last state."""

    def __init__(self, kind: type[nn.Module], **options: Any) -> None:
        super().__init__()
        self.rnn = kind(4, 3, batch_first=True, **options)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        one = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, state = self.rnn(one)
        padded, found = pad_packed_sequence(out, batch_first=True)
        if padded.mean() > 0:
            padded = padded * 2
        return padded, found, state


@pytest.mark.sample(3)
@pytest.mark.parametrize("options", [
    {}, {"num_layers": 2, "bidirectional": True}, {"bias": False}, {"num_layers": 2, "dropout": 0.5},
], ids=["plain", "deep", "no bias", "dropout"])  # fmt: skip
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind: type[nn.Module], options: dict[str, Any]) -> None:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return Reader(kind, **options)

    check_module(make, *calls())


def test_projections_and_a_state_given() -> None:
    class Given(Reader):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
            one = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, (h, c) = self.rnn(one, (x.mean() + torch.zeros(1, 3, 2), torch.ones(1, 3, 3)))
            return out.data, out.data.shape, h, c

    def make() -> nn.Module:
        torch.manual_seed(0)
        return Given(nn.LSTM, proj_size=2)

    check_module(make, *calls())


def test_a_packed_sequence_in_a_loop_and_as_a_result() -> None:
    def halve(x: Any, lengths: Any) -> Any:
        one = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        steps = 0
        while one.data.abs().max() > 0.5:
            one = PackedSequence(one.data / 2, one.batch_sizes, one.sorted_indices, one.unsorted_indices)
            steps += 1
        return one, steps

    check(halve, *calls())


def test_sequences_of_their_own() -> None:
    def pack(x: Any, lengths: Any) -> Any:
        one = pack_sequence([x[0], x[1, :2], x[2, :4]], enforce_sorted=False)
        return one.data, [part * 2 for part in unpack_sequence(one)]

    check(pack, *calls())


def test_lengths_that_do_not_fit() -> None:
    def pack(x: Any, lengths: Any) -> Any:
        return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=True).data

    unsorted = (calls()[0][0], torch.tensor([2, 3, 1]))
    check(pack, calls(True)[0], unsorted, (calls()[1][0], torch.tensor([3, 0, 0])))


ARGUMENTS: dict[str, Callable[[], PackedSequence]] = {
    "two": lambda: pack_sequence([torch.ones(2, 1), torch.ones(1, 1)]),
    "three": lambda: pack_sequence([torch.ones(3, 1), torch.ones(2, 1) * 2, torch.ones(1, 1)]),
    "unsorted": lambda: pack_padded_sequence(torch.ones(3, 2, 1), torch.tensor([1, 3]), enforce_sorted=False),
    "with a gradient": lambda: pack_sequence([torch.ones(2, 1, requires_grad=True), torch.ones(1, 1)]),
}


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
def test_one_as_an_argument(cell: Any) -> None:
    """Of other lengths at each call; on a path another one is made of it."""
    torch.manual_seed(0)
    net = cell(1, 2)

    def run(given: PackedSequence, x: torch.Tensor) -> Any:
        if x.sum() > 0:
            given = given._replace(data=given.data * 3)
        output, _ = net(given)
        padded, lengths = pad_packed_sequence(output, batch_first=True)
        return padded * 2 if padded.sum() > 0 else padded, lengths, given, output.data.shape[0]

    converted: Any = to_static(run)
    for make in ARGUMENTS.values():
        for x in (torch.ones(1), -torch.ones(1)):
            outcomes = []
            for function in (run, converted):
                net.zero_grad()
                given = make()
                result = function(given, x)
                result[0].square().sum().backward()
                outcomes.append((result, [one.grad.clone() for one in net.parameters()]))
            same(outcomes[1], outcomes[0], tolerance=1e-5)
