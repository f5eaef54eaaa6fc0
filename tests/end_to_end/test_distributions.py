"""``torch.distributions`` inside converted functions: every class, of numbers and of tensors, and what each answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributions as D

from tests import oracle


def _unit(*shape: int) -> torch.Tensor:
    """Numbers between 0.1 and 0.9, always the same."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(3)) * 0.8 + 0.1


def _definite() -> torch.Tensor:
    return torch.eye(3) + 0.1


TENSORS: dict[str, tuple[Any, ...]] = {
    "Bernoulli": (_unit(3),), "Beta": (_unit(3) + 1, _unit(3) + 1), "Binomial": (5, _unit(3)),
    "Categorical": (_unit(4, 3),), "Cauchy": (_unit(3), _unit(3)), "Chi2": (_unit(3) + 2,),
    "ContinuousBernoulli": (_unit(3),), "Dirichlet": (_unit(3) + 1,), "Exponential": (_unit(3),),
    "FisherSnedecor": (_unit(3) + 3, _unit(3) + 5), "Gamma": (_unit(3) + 1, _unit(3) + 1),
    "GeneralizedPareto": (_unit(3), _unit(3), _unit(3)), "Geometric": (_unit(3),), "Gumbel": (_unit(3), _unit(3)),
    "HalfCauchy": (_unit(3),), "HalfNormal": (_unit(3),), "InverseGamma": (_unit(3) + 3, _unit(3) + 1),
    "Kumaraswamy": (_unit(3) + 1, _unit(3) + 1), "LKJCholesky": (3, _unit(1) + 1), "Laplace": (_unit(3), _unit(3)),
    "LogNormal": (_unit(3), _unit(3)), "LogisticNormal": (_unit(3), _unit(3)),
    "LowRankMultivariateNormal": (_unit(3), _unit(3, 1), _unit(3)), "Multinomial": (5, _unit(3)),
    "MultivariateNormal": (_unit(3), _definite()), "NegativeBinomial": (5.0, _unit(3)), "Normal": (_unit(3), _unit(3)),
    "OneHotCategorical": (_unit(4, 3),), "OneHotCategoricalStraightThrough": (_unit(4, 3),),
    "Pareto": (_unit(3) + 1, _unit(3) + 3), "Poisson": (_unit(3),), "RelaxedBernoulli": (torch.tensor(0.5), _unit(3)),
    "RelaxedOneHotCategorical": (torch.tensor(0.5), _unit(4, 3)), "StudentT": (_unit(3) + 3, _unit(3), _unit(3)),
    "Uniform": (_unit(3), _unit(3) + 1), "VonMises": (_unit(3), _unit(3)), "Weibull": (_unit(3) + 1, _unit(3) + 1),
    "Wishart": (torch.tensor(4.0), _definite()),
}  # fmt: skip
NUMBERS: dict[str, tuple[float, ...]] = {
    "Bernoulli": (0.3,), "Beta": (1.5, 2.0), "Binomial": (5, 0.3), "Cauchy": (0.0, 1.0), "Chi2": (3.0,),
    "ContinuousBernoulli": (0.3,), "Exponential": (1.0,), "FisherSnedecor": (3.0, 6.0), "Gamma": (2.0, 1.0),
    "GeneralizedPareto": (0.0, 1.0, 0.2), "Geometric": (0.4,), "Gumbel": (0.0, 1.0), "HalfCauchy": (1.0,),
    "HalfNormal": (1.0,), "InverseGamma": (3.0, 1.0), "Kumaraswamy": (1.5, 2.0), "LKJCholesky": (3, 1.0),
    "Laplace": (0.0, 1.0), "LogNormal": (0.0, 1.0), "NegativeBinomial": (5.0, 0.3), "Normal": (0.0, 1.0),
    "Pareto": (1.0, 3.0), "Poisson": (2.0,), "StudentT": (4.0, 0.0, 1.0), "Uniform": (0.0, 1.0),
    "VonMises": (0.0, 1.0), "Weibull": (1.0, 2.0),
}  # fmt: skip
WRAPPERS = {"Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily", "TransformedDistribution"}
"""The base classes, and those that are made of others."""


def _branch(d: Any) -> Any:
    s = d.sample()
    if s.sum() > 0.7:
        return d.log_prob(s)
    return s


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "sample": lambda d: d.sample((2,)),
    "rsample": lambda d: d.rsample((2,)),
    "log_prob": lambda d: d.log_prob(d.sample()),
    "cdf": lambda d: d.cdf(d.sample()),
    "icdf": lambda d: d.icdf(torch.full((3,), 0.3)),
    "expand": lambda d: d.expand((5, *d.batch_shape)).sample(),
    "enumerate_support": lambda d: d.enumerate_support(),
    "repr": repr,
    "text": lambda d: f"{d}",
    "shapes": lambda d: (d.batch_shape, d.event_shape, d.has_rsample),
    "branch": _branch,
    **{name: lambda d, name=name: getattr(d, name) for name in ("mean", "variance", "stddev", "mode")},  # type: ignore[misc]
    "entropy": lambda d: d.entropy(),
    "perplexity": lambda d: d.perplexity(),
    "divergence": lambda d: D.kl_divergence(d, d),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_the_tables_name_every_class() -> None:
    classes = {name for name in D.__all__ if isinstance(getattr(D, name), type)
               and issubclass(getattr(D, name), D.Distribution)}  # fmt: skip
    assert classes == TENSORS.keys() | WRAPPERS


def _checked(make: Callable[..., Any], question: str, args: tuple[Any, ...]) -> None:
    ask = QUESTIONS[question]

    def asked(*given: Any) -> Any:
        return ask(make(*given))

    oracle.check(asked, args, tolerance=1e-5)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", TENSORS)
def test_of_tensors(name: str, question: str) -> None:
    args = tuple(one.clone().requires_grad_() if isinstance(one, torch.Tensor) else one for one in TENSORS[name])
    _checked(getattr(D, name), question, args)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", NUMBERS)
def test_of_numbers(name: str, question: str) -> None:
    _checked(lambda x: getattr(D, name)(*NUMBERS[name]), question, (torch.ones(2),))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", NUMBERS)
def test_of_tensors_without_dimensions(name: str, question: str) -> None:
    """Made inside, of what only the run knows."""
    is_count = [type(one) is int for one in NUMBERS[name]]

    def make(*given: Any) -> Any:
        return getattr(D, name)(*(one if plain else one * 1.0 for one, plain in zip(given, is_count)))

    args = tuple(one if plain else torch.tensor(float(one), requires_grad=True)
                 for one, plain in zip(NUMBERS[name], is_count))  # fmt: skip
    _checked(make, question, args)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "make",
    [
        lambda p: D.Independent(D.Normal(p, p + 0.1), 1),
        lambda p: D.MixtureSameFamily(D.Categorical(p), D.Normal(p, p)),
        lambda p: D.TransformedDistribution(D.Normal(0.0, 1.0), [D.AffineTransform(p, p), D.ExpTransform()]),
        lambda p: D.TransformedDistribution(D.Uniform(p * 0, p * 0 + 1), D.SigmoidTransform().inv),
        lambda p: D.TransformedDistribution(D.Normal(p, p), D.ComposeTransform([D.TanhTransform()])),
    ],
    ids=["independent", "mixture", "affine_exp", "logistic", "tanh"],
)
def test_made_of_others(make: Callable[..., Any], question: str) -> None:
    _checked(make, question, (_unit(3).requires_grad_(),))


@pytest.mark.parametrize("wrong", [lambda x: D.Normal(x, -x.abs()), lambda x: D.Normal(0.0, -1.0),
                                   lambda x: D.Uniform(1.0, 0.0), lambda x: D.Bernoulli(1.5),
                                   lambda x: D.Normal(0.0, 1.0).log_prob(x / 0 * 0),
                                   lambda x: D.Bernoulli(0.5).log_prob(x)])  # fmt: skip
def test_what_is_no_parameter_or_value(wrong: Callable[..., Any]) -> None:
    """Eager's error, its text with the distribution's own text and the values in it."""
    oracle.check(wrong, (torch.tensor([0.5, 2.0]),), (torch.tensor([2.5]),))
