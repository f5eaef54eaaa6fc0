"""Mistakes of users end as eager's exceptions, or are refused at the user's line; see ``mistakes``."""

from __future__ import annotations

import collections
import math
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
import torch

import dy2static
from runtime.tracer.recording import wording
from tests.end_to_end import mistakes
from tests.end_to_end.mistakes import Case, Record
from tests.oracle import check

PARTS = 24
_SEED = 7


def _all(most: int = 600) -> list[Case]:
    found = list(mistakes.cases(most))
    random.Random(_SEED).shuffle(found)
    return found


def _compare(cases: Iterable[Case]) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for case in cases:
        outcome = mistakes.outcome(case)
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith(("different", "internal")):
            wrong.append(f"{case.subject} | {case.mistake} | {case.place}: {outcome}")
    print(dict(counts))
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:40])
    assert counts["same"] > sum(counts.values()) // 3


def test_some_mistakes() -> None:
    _compare(_all(60)[:150:3])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_mistakes(part: int) -> None:
    _compare(_all()[part::PARTS])


FOUND = [
    Case("number", "r = 'q' not in v", "branch"), Case("result", "r = torch.tensor([1, 2]) in v", "caught"),
    Case("tensor", "r = v.dense_dim(x, q=1)", "caught"), Case("int", "del v[0]", "caught"),
    Case("shape", "r = v % x", "caught"), Case("shape", "r = v.pop()", "branch"),
    Case("shape", "r = {**v, **object()}", "caught"), Case("shape", "r = v.__mul__(7, 8)", "called"),
    Case("range_of_the_run", "r = v << x", "branch"), Case("range_of_the_run", "r = v.nothing_like_it", "caught"),
    Case("range_of_the_run", "r = math.ulp(v)", "loop"), Case("range_of_the_run", "r = v['q']", "caught"),
    Case("grown", "r = v.__len__(x)", "branch"), Case("grown", "r = v.clear(...)", "branch"),
    Case("grown", "r = reversed(x, v)", "branch"), Case("grown", "del v[float('nan')]", "caught_in_a_branch"),
    Case("grown", "v['q'] = 1", "caught"), Case("grown", "r = v['q':]", "caught"),
    Case("grown", "v[0, 1] = 1", "loop"), Case("grown", "r = v[...]", "called"),
    Case("set", "r = set(v, key=1)", "branch"), Case("function", "a, *b, c, d, e = v", "called"),
    Case("int", "r = v.bit_length(1, 1)", "caught"), Case("int", "r = v.conjugate((1, 2))", "plain"),
    Case("int", "v.nothing_like_it = 1", "branch"), Case("float", "r = str(3, v)", "loop"),
    Case("int", "r = torch.log2(v, key=1)", "branch"), Case("int", "r = torch.histc(v, None)", "loop"),
    Case("int", "r = torch.copysign(v, None)", "caught"), Case("modules", "r = v.to(dim='q')", "branch"),
    Case("result", "r = f'{v:{-9}}'", "plain"), Case("integers", "r = '%d' % (v,)", "caught"),
    Case("complex", "r = '%x' % (v,)", "caught"), Case("text", "r = helper % v", "gradient"),
    Case("bool", "r = torch.ones(7, dtype=torch.complex64) ^ v", "branch"), Case("int", "r = divmod(v, x)", "branch"),
    Case("float", "r = x >> v", "branch"), Case("float", "r = torch.ones(2, dtype=torch.complex64) // v", "branch"),
    Case("integers", "r = f'{v:{torch.ones(7)}}'", "branch"), Case("function", "r = v.__call__({})", "branch"),
    Case("int", "x[v] = 'q'", "plain"), Case("range_of_the_run", "r = x.sum(v)", "called"),
    Case("integers", "r = F.one_hot(v, x)", "called"), Case("grown_numbers", "r = v.insert(x, 1)", "gradient"),
    Case("bool", "r = isinstance(v, -9)", "branch"), Case("modules", "v.append(int(x.sum()))", "caught"),
    Case("range_of_the_run", "r = enumerate(v, 'q')", "sizes"), Case("float", "r = filter(v, None)", "loop"),
    Case("grown_numbers", "r = v.remove('q')", "sizes"), Case("tensor", "r = v.__name__", "branch"),
    Case("shape", "v.nothing_like_it = 1", "sizes"), Case("tuple", "r = v + x.shape", "sizes"),
    Case("shape", "r = v in torch.ones(5, 7)", "plain"), Case("float", "r = torch.autograd.grad(x, v)", "sizes"),
    Case("perhaps_none", "r = v.diagonal_scatter(x, 0, 9, 9)", "gradient"),
    Case("int", "r = v.bit_length(*3)", "result_of_a_branch"),
]  # fmt: skip


@pytest.mark.parametrize("case", FOUND, ids=lambda case: f"{case.subject}-{case.mistake}-{case.place}")
def test_the_exception_of_eager(case: Case) -> None:
    assert mistakes.outcome(case) == "same" or case.place == "caught_in_a_branch"


def said_on_purpose(x: Any) -> Any:
    if x.sum() > 0:
        raise TypeError("'Own' object doesn't support StagedInt, a FakeTensor")
    return x


def raised_again(x: Any) -> Any:
    try:
        return x.nothing_like_it
    except AttributeError as error:
        raise ValueError(f"FakeTensor: {error}") from error


@pytest.mark.parametrize("function", [said_on_purpose, raised_again])
def test_what_the_user_says_stays(function: Any) -> None:
    check(function, (torch.ones(2),), (-torch.ones(2),))


@pytest.mark.parametrize("text", ["'StagedInt' object has no attribute 'real'", "StagedInt.bit_length() takes 1"])
def test_what_only_a_stand_in_cannot_do_is_not_said_of_the_users_value(text: str) -> None:
    error = TypeError(text.replace("real", "to_bytes"))
    wording.say_as_eager(error)
    assert "StagedInt" in str(error)


def wrong_where_it_does_not_run(x: Any) -> Any:
    r = x * 2
    if x.sum() > 0:
        r = x.diagonal_scatter(x, 0, 9, 9)
    return r


def test_a_formula_that_raises_where_its_operator_does() -> None:
    check(wrong_where_it_does_not_run, (torch.full((2, 3), -1.0, requires_grad=True),),
          (torch.ones(2, 3, requires_grad=True),))


def text_of_an_exception(x: Any) -> Any:
    try:
        raise ValueError(x)
    except ValueError as error:
        return str(error), f"{error}", repr(error), f"{error!r:>60}"


def texts_of_exceptions(x: Any) -> Any:
    return str(KeyError(x)), str(KeyError(x, [x])), str(ValueError()), repr(ValueError(x, int(x.sum())))


class OwnText(ValueError):
    def __str__(self) -> str:
        return f"own {self.args[0]}"


class OwnRepr(ValueError):
    def __repr__(self) -> str:
        return f"OwnRepr of {self.args[0]}"


def texts_of_exceptions_with_one_of_their_own(x: Any) -> Any:
    n = int(x.sum())
    found = []
    for error in (OwnText(n), OwnRepr(n), OwnRepr(n, n), OwnText(x)):
        found += [str(error), repr(error), f"{error}", f"{error!r:>20}", "%s %r" % (error, error), f"{error!a}"]
    return found


Field = collections.namedtuple("Field", "größe b")


def texts_in_ascii(x: Any) -> Any:
    n = int(x.sum())
    s = f"é{n}"
    held = {"a": s, "é": [n]}
    found = [ascii(one) for one in (n, s, [s, "é"], (s,), held, Field(n, "é"), Field(s, s), KeyError("é", n))]
    found += [repr(one) for one in ([s, "é"], Field(n, "é"), KeyError("é", s))]
    return found, f"{s!a:>12}", f"{[s, 'é']!a}", f"{(n,)!a:>9}", f"{ValueError(s)!a}"


def text_of_an_object(x: Any) -> Any:
    class Shown:
        def __repr__(self) -> str:
            return f"Shown({x})"

    return str(Shown()), repr(Shown()), f"{Shown()}"


def ranges(x: Any) -> Any:
    n = int(x.sum())
    return range(n), [range(1, n), {"a": range(n, 0, -1)}]


@pytest.mark.parametrize("function", [
    text_of_an_exception, texts_of_exceptions, texts_of_exceptions_with_one_of_their_own, texts_in_ascii,
    text_of_an_object, ranges])
def test_values(function: Any) -> None:
    check(function, (torch.ones(2),), (torch.ones(3) * 2,))


def text_of_a_record(x: Any) -> Any:
    return str(Record(x))


def text_of_a_record_inside(x: Any) -> Any:
    return f"{Record(x)!r}", "%s" % Record(x)


def iterator_of_the_run(x: Any) -> Any:
    return map(abs, range(int(x.sum())))


@pytest.mark.parametrize("function", [text_of_a_record, text_of_a_record_inside])
def test_texts_of_records(function: Any) -> None:
    check(function, (torch.ones(2),), (torch.zeros(2),))


@pytest.mark.parametrize(("function", "code"), [(iterator_of_the_run, "D2S261")])
def test_refused(function: Any, code: str) -> None:
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(function)(torch.ones(2))
    assert caught.value.code == code and caught.value.location is not None


def products(x: Any) -> Any:
    return math.prod(x), math.prod([x, 2]), math.prod([int(x.sum()), 2.5], start=x), math.prod(x.shape), math.prod(())


def product_of_a_range(x: Any) -> Any:
    return math.prod(range(1, int(x.sum()))), torch.tensor(2) in range(int(x.sum()))


@pytest.mark.parametrize("function", [products, product_of_a_range])
def test_what_is_no_mistake(function: Any) -> None:
    check(function, (torch.ones(2),), (torch.ones(3) * 2,))
