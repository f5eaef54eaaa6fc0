"""Requests put together: equal results, an error only for who caused it, at most so many rows."""

from __future__ import annotations

import threading
import time

import pytest
import torch

import dy2static
from dy2static import InputSpec
from runtime import Predictor
from runtime.serving.batching import Batcher
from tests.runtime.serving.models import Attention, saved


def together(run, requests):
    """Run requests at the same time; their results or exceptions."""
    found: list = [None] * len(requests)
    ready = threading.Barrier(len(requests))

    def work(at: int) -> None:
        ready.wait()
        try:
            found[at] = run(requests[at])
        except Exception as error:
            found[at] = error

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(requests))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return found


def test_each_request_gets_its_rows():
    sizes: list[int] = []

    def run(tensors):
        sizes.append(len(tensors[0]))
        return [tensors[0] * 2, tensors[0].sum(1)]

    batcher = Batcher(run, 6, 0.3)
    requests = [[torch.full((1 + at % 3, 2), float(at))] for at in range(8)]
    for (given,), (twice, sums) in zip(requests, together(batcher.run, requests)):
        assert torch.equal(twice, given * 2) and torch.equal(sums, given.sum(1))
    batcher.close()
    assert max(sizes) <= 6 and len(sizes) < 8 and sum(sizes) == sum(len(one[0]) for one in requests)


def test_an_error_is_only_for_who_caused_it():
    def run(tensors):
        if (tensors[0] < 0).any():
            raise ValueError("negative")
        return [tensors[0] + 1]

    batcher = Batcher(run, 32, 0.2)
    requests = [[torch.full((2, 2), -1.0 if at == 3 else float(at))] for at in range(6)]
    found = together(batcher.run, requests)
    assert isinstance(found[3], ValueError)
    assert all(torch.equal(found[at][0], requests[at][0] + 1) for at in range(6) if at != 3)
    assert torch.equal(batcher.run([torch.ones(1, 2)])[0], torch.full((1, 2), 2.0))
    batcher.close()


def test_other_sizes_and_larger_requests_run_by_themselves():
    shapes: list[tuple[int, ...]] = []

    def run(tensors):
        shapes.append(tuple(tensors[0].shape))
        return [tensors[0].clone()]

    batcher = Batcher(run, 4, 0.05)
    requests = [[torch.randn(9, 2)], [torch.randn(1, 3)], [torch.randn(1, 2)], [torch.randn(0, 2)]]
    for (given,), (got,) in zip(requests, together(batcher.run, requests)):
        assert torch.equal(got, given)
    batcher.close()
    assert (9, 2) in shapes


def test_a_single_request_waits_no_longer_than_it_says():
    batcher = Batcher(lambda tensors: [tensors[0]], 4, 0.05)
    began = time.monotonic()
    batcher.run([torch.ones(1, 1)])
    assert time.monotonic() - began < 2
    batcher.close()
    with pytest.raises(RuntimeError, match="closed"):
        batcher.run([torch.ones(1, 1)])


def test_attention_in_batches_gives_what_single_calls_give(tmp_path):
    specs = [InputSpec([None, None], "int64", "ids")]
    path = saved(Attention, tmp_path, specs)
    layer = dy2static.load(path)
    with Predictor(path, max_batch=15, max_wait=60.0) as predict:
        for runs, length in enumerate((4, 6), 1):
            requests = [torch.randint(30, (1 + at % 3, length)) for at in range(8)]
            assert sum(map(len, requests)) == 15  # a batch that is full waits for nothing more
            found = together(lambda ids: predict.run({"ids": ids})["result"], requests)
            for ids, got in zip(requests, found):
                torch.testing.assert_close(got, layer(ids), rtol=1e-5, atol=1e-5)
            assert predict.statistics().runs == runs
