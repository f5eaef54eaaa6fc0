"""Host operators: what the process gives when the Program runs: random numbers of Python's and NumPy's, clocks.

    %n : int = host.random.randint(1, 6)                  Python's own stream goes on by one draw
    %a : float, %b : float = host.random.shuffle([%x, %y])
    host.torch.manual_seed(3)

The table is closed: a Program can name no function that is not in it. ``generator`` as a keyword is an object of the
caller's (``random.Random``, ``numpy.random.Generator``) that is drawn from in place of the one that all share, or a
``Made``, which ``host.random.new``, ``host.numpy.new`` and ``host.generator.new`` make anew. A ``MadeTorch`` is a
``torch.Generator`` that the function makes: ATen operators draw from it, after ``host.torch_generator.manual_seed``.
``choice``, ``choices``, ``sample`` and ``shuffle`` take a list of items, or a number, which means ``range`` of it.
"""

from __future__ import annotations

import importlib
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from runtime.ir.constants import MadeByRuns
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ir.types import ScalarKind, ScalarType, TensorType
from runtime.ir.variable import Variable
from runtime.ops.arity import check_attrs, check_blocks

Function = Callable[..., Any]

PYTHONS: dict[str, ScalarKind] = {
    **dict.fromkeys((
        "betavariate", "expovariate", "gammavariate", "gauss", "lognormvariate", "normalvariate", "paretovariate",
        "random", "triangular", "uniform", "vonmisesvariate", "weibullvariate"), "float"),
    **dict.fromkeys(("binomialvariate", "getrandbits", "randint", "randrange"), "int"),
}  # fmt: skip
"""Methods of ``random.Random`` that give a number, and the kind of it."""

OF_ITEMS = ("choice", "choices", "sample", "shuffle")
"""Methods of ``random.Random`` that give items of what they are given."""

NUMPYS: dict[str, ScalarKind] = {
    **dict.fromkeys((
        "beta", "chisquare", "exponential", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal",
        "noncentral_chisquare", "noncentral_f", "normal", "pareto", "power", "rand", "randn", "random",
        "random_sample", "rayleigh", "standard_cauchy", "standard_exponential", "standard_gamma",
        "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull"), "float"),
    **dict.fromkeys((
        "binomial", "geometric", "hypergeometric", "logseries", "negative_binomial", "poisson", "randint",
        "zipf"), "int"),
}  # fmt: skip
"""Methods of ``numpy.random.RandomState`` that give a number of Python's where no size is given."""

NUMPYS_GENERATOR: dict[str, ScalarKind] = dict.fromkeys((
    "beta", "chisquare", "exponential", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal",
    "noncentral_chisquare", "noncentral_f", "normal", "pareto", "power", "random", "rayleigh", "standard_cauchy",
    "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises",
    "wald", "weibull"), "float")  # fmt: skip
"""The same of ``numpy.random.Generator``; the whole numbers that it draws are NumPy's."""

_ARRAYS = ("choice", "dirichlet", "multinomial", "multivariate_normal", "permutation")
"""Functions of NumPy's, besides these, that give arrays. So do the others where a size is given."""
_ARRAYS_OF_STATES = (*_ARRAYS, "random_integers")
_ARRAYS_OF_GENERATORS = (
    *_ARRAYS, "binomial", "geometric", "hypergeometric", "integers", "logseries", "multivariate_hypergeometric",
    "negative_binomial", "permuted", "poisson", "zipf")  # fmt: skip

CLOCKS: dict[str, ScalarKind] = {
    name: "int" if name.endswith("_ns") else "float"
    for name in ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
                 "process_time_ns", "thread_time", "thread_time_ns")
    if hasattr(time, name)
}  # fmt: skip

_SYSTEM = random.SystemRandom()


FAMILIES = ("random", "numpy", "generator")
"""What generators that a function makes are of: ``random.Random``, ``RandomState``, ``default_rng``."""


class Made(MadeByRuns):
    """A generator that each run of a Program makes anew: ``random.Random(3)`` in the user's function.

    >>> made = Made("random")
    >>> made.start(3)
    >>> made.random() == random.Random(3).random()
    True
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self._here = threading.local()  # runs in several threads have one each

    def start(self, *args: Any, **kwargs: Any) -> None:
        """A new one begins."""
        self._here.made = new_generator(self.family)(*args, **kwargs)

    def __reduce__(self) -> Any:
        return Made, (self.family,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here.made, name)


class MadeTorch(MadeByRuns):
    """The same for a ``torch.Generator``, which kernels are given themselves.

    >>> MadeTorch(torch.device("cpu")).here().initial_seed() == torch.Generator().initial_seed()
    True
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._here = threading.local()

    def __reduce__(self) -> Any:
        return MadeTorch, (self.device,)

    def here(self) -> torch.Generator:
        """The one of this thread; the Program seeds it where the function makes one."""
        made: torch.Generator | None = getattr(self._here, "made", None)
        if made is None:
            made = self._here.made = torch.Generator(self.device)
        return made


UNSEEDED = torch.Generator().initial_seed()
"""The seed of a ``torch.Generator`` that is given none: always the same."""


def new_generator(family: str) -> Function:
    """What makes a generator of a family."""
    if family == "random":
        return random.Random
    return numpy.random.RandomState if family == "numpy" else numpy.random.default_rng


def population(items: Any) -> Any:
    """What is chosen from: a number is all whole numbers below it."""
    return range(items) if type(items) is int else items


def _of_python(name: str) -> Function:
    def draw(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
        return getattr(random if generator is None else generator, name)(*args, **kwargs)

    return draw


def _of_system(name: str) -> Function:
    def draw(*args: Any, **kwargs: Any) -> Any:
        return getattr(_SYSTEM, name)(*args, **kwargs)

    return draw


def _of_items(draw: Function) -> Function:
    def chosen(items: Any, *args: Any, **kwargs: Any) -> Any:
        return draw(population(items), *args, **kwargs)

    return chosen


def _of_one_item(draw: Function) -> Function:
    def chosen(items: Any, *args: Any, **kwargs: Any) -> Any:
        if items == 0 and type(items) is int and sys.version_info < (3, 11):
            return 0  # Python 3.10 draws nothing and reads the first item: what that says is what is wrong
        return draw(population(items), *args, **kwargs)

    return chosen


def _shuffled(draw: Function) -> Function:
    def shuffled(items: Any, *args: Any, **kwargs: Any) -> list[Any]:
        found = list(population(items))
        draw(found, *args, **kwargs)
        return found

    return shuffled


_WAYS = {"choice": _of_one_item, "shuffle": _shuffled}


def _of_numpy(name: str) -> Function:
    def draw(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
        return getattr(numpy.random if generator is None else generator, name)(*args, **kwargs)

    return draw


def _of_generator(name: str) -> Function:
    def draw(*args: Any, generator: Any, **kwargs: Any) -> Any:
        return getattr(generator, name)(*args, **kwargs)

    return draw


def _secret(name: str) -> Function:
    def draw(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module("secrets"), name)(*args, **kwargs)

    return draw


def _manual_seed(seed: int) -> None:
    torch.manual_seed(seed)


def _seed(seed: int, generator: torch.Generator) -> None:
    generator.manual_seed(seed)


def _initial_seed(generator: torch.Generator) -> int:
    return generator.initial_seed()


def _start(*args: Any, generator: Made, **kwargs: Any) -> None:
    generator.start(*args, **kwargs)


def _methods(family: str, of: Callable[[str], Function]) -> dict[str, tuple[Function, ScalarKind | None]]:
    """Those of a class like ``random.Random``."""
    found: dict[str, tuple[Function, ScalarKind | None]] = {
        f"{family}.{name}": (of(name), kind) for name, kind in PYTHONS.items() if hasattr(random.Random, name)}
    for name in OF_ITEMS:
        found[f"{family}.{name}"] = _WAYS.get(name, _of_items)(of(name)), None
    return found


# name -> (function, the kind of its one result; None: other results, or none)
_TABLE: dict[str, tuple[Function, ScalarKind | None]] = {
    **_methods("random", _of_python),
    "random.seed": (_of_python("seed"), None),
    **_methods("system", _of_system),
    **{f"numpy.{name}": (_of_numpy(name), kind) for name, kind in NUMPYS.items()},
    **{f"numpy.{name}": (_of_numpy(name), None) for name in _ARRAYS_OF_STATES},
    "numpy.shuffle": (_shuffled(_of_numpy("shuffle")), None),
    "generator.shuffle": (_shuffled(_of_generator("shuffle")), None),
    "numpy.seed": (_of_numpy("seed"), None),
    **{f"generator.{name}": (_of_generator(name), None) for name in _ARRAYS_OF_GENERATORS},
    **{f"generator.{name}": (_of_generator(name), kind) for name, kind in NUMPYS_GENERATOR.items()},
    **{f"time.{name}": (getattr(time, name), kind) for name, kind in CLOCKS.items()},
    "secrets.randbelow": (_secret("randbelow"), "int"),
    "secrets.token_hex": (_secret("token_hex"), "str"),
    "secrets.token_urlsafe": (_secret("token_urlsafe"), "str"),
    **{f"{family}.new": (_start, None) for family in FAMILIES},
    "torch.manual_seed": (_manual_seed, None),
    "torch_generator.manual_seed": (_seed, None),
    "torch_generator.initial_seed": (_initial_seed, "int"),
    "torch.seed": (torch.seed, "int"),
    "torch.initial_seed": (torch.initial_seed, "int"),
}

FUNCTIONS: dict[str, Function] = {f"host.{name}": row[0] for name, row in _TABLE.items()}
"""``"host.random.uniform" -> random.uniform``: what each operator calls."""
KINDS: dict[str, ScalarKind | None] = {f"host.{name}": row[1] for name, row in _TABLE.items()}
"""The kind of an operator's one result; None: it gives items, or nothing."""
FAMILY = "host."


def is_listed(op: Operator) -> bool:
    """Whether the function gives a list: an output for each item."""
    return op.name.rpartition(".")[2] in ("choices", "sample", "shuffle") and "gives" not in op.attrs


def sets_torch(op: Operator) -> bool:
    """Whether an Operator sets PyTorch's own generators."""
    return op.name in ("host.torch.manual_seed", "host.torch.seed")


def seeds_own(op: Operator) -> bool:
    """Whether an Operator seeds a ``torch.Generator`` that the function makes."""
    return op.name == "host.torch_generator.manual_seed"


def stream(op: Operator) -> str:
    """The random stream, of those that all share, that an Operator draws from or sets: torch, random, numpy; or none.

    >>> stream(Operator("host.numpy.rand", (), {}, []))
    'numpy'
    """
    if not op.name.startswith(FAMILY):
        return "torch"
    return "" if "generator" in op.kwargs else op.name.split(".")[1]


def is_generator(value: Any) -> bool:
    """Whether it is an object that random numbers are drawn from by host operators."""
    return isinstance(value, (random.Random, Made, MadeTorch)) or type(value).__module__.startswith("numpy.random")


def _verify(op: Operator, fail: Fail) -> None:
    check_blocks(op, fail, ())
    if not is_listed(op) and len(op.outputs) > 1:
        fail("arity", f"{op.name} gives one result at most")
    generator = op.kwargs.get("generator")
    if generator is not None and not is_generator(generator):
        fail("operand", f"the generator of {op.name} is a random.Random or one of NumPy's")
    if generator is None and op.name.startswith("host.generator."):
        fail("arity", f"{op.name} needs a generator")
    if op.name.endswith(".new") and not isinstance(generator, Made):
        fail("operand", f"{op.name} makes no object of the caller's")
    arrays = op.name.startswith(("host.numpy.", "host.generator."))
    check_attrs(op, fail, {"gives": (str,)} if arrays else {})
    if "gives" in op.attrs and op.attrs["gives"] not in ("array", "generic"):
        fail("attrs", f"{op.name} gives an array or a scalar of NumPy's")
    if "out" in op.kwargs:
        fail("arity", f"{op.name} writes no array")
    for output in op.outputs:
        if not isinstance(output.type, TensorType if "gives" in op.attrs else ScalarType):
            fail("type", f"{op.name} gives a number of Python's in a scalar, or one of NumPy's in a tensor")


def _raises(op: Operator) -> bool:
    """Whether it may raise: with numbers that are known it was tried while tracing."""
    return not op.outputs or any(isinstance(one, Variable) for one in op.inputs)


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(name, f"Calls {name.removeprefix(FAMILY)} when the Program runs.", verify=_verify, effect=True,
                 neutral=True, passes_gradient=False, raises=_raises)
    for name in FUNCTIONS
]
"""The index: every function of the table is an effect, never dropped, doubled, or moved over another."""
