"""Random numbers of Python's and NumPy's, clocks and seeds inside a trace: drawn, read and set at every run.

    random.uniform(0, n)         ->   %a : float = host.random.uniform(0, %n)
    random.choice([a, b])        ->   %i : int = host.random.choice(2), and the item at %i
    random.shuffle(items)        ->   %i : int, %j : int = host.random.shuffle(2), and the items in that order
    torch.manual_seed(3)         ->   host.torch.manual_seed(3)
    g = torch.Generator()        ->   host.torch_generator.manual_seed(..., generator=made), drawn from by ATen's
    rng = random.Random(3)       ->   host.random.new(3, generator=made), and made is drawn from
"""

from __future__ import annotations

import operator
import random
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from dy2static.operators.calls import growing
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedSize
from dy2static.operators.provenance.observed import done
from dy2static.operators.provenance.provenance import adopt, memo
from dy2static.operators.shared.staging import Choice, Session, Staged, any_staged, distribute, held_choice
from runtime.ir import ScalarType, Variable
from runtime.kinds import is_a
from runtime.ops import host, host_numpy
from runtime.tracer.ambient.theirs import acts_for_user, theirs
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers import scalars
from runtime.tracer.python_state.ages import existed_before
from runtime.tracer.recording import made_generators, numpy_calls

_LONGEST = 256
"""Of so many objects that are no numbers the order may be drawn: each is a choice among all."""
_OF_ITEMS = ("choice", "shuffle", "sample", "choices")
_SHARED = random.random.__self__  # type: ignore[attr-defined]  # the generator behind the functions of random

_FUNCTIONS: dict[int, str] = {
    **{id(getattr(time, name)): f"time.{name}" for name in host.CLOCKS},
    id(secrets.randbelow): "secrets.randbelow", id(secrets.token_hex): "secrets.token_hex",
    id(secrets.token_urlsafe): "secrets.token_urlsafe",
}  # fmt: skip
"""By identity: what is called may be an object of the user's, whose ``__hash__`` nobody asks."""


def called(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the call draws, reads or sets, as an Operator; NotImplemented if it is no such call, or has no form.

    Raises:
        TraceError: D2S214, inside of torch.utils.checkpoint: eager's backward would draw other numbers.
    """
    family = _made_by(f)
    if family is not None:
        return _new(session, family, tuple(map(_entropy, args)), kwargs)
    if f is numpy.random.SeedSequence and len(args) == 1 and not kwargs and _is_seed(args[0]):
        return theirs(f, *args)
    if f is torch.Generator or id(unasked(f, "__self__")) in session.objects.generators and is_a(
            unasked(f, "__self__"), torch.Generator):
        return _of_torch(session, f, args, kwargs)
    found = _found(f)
    if found is None or f"host.{found[0]}" not in host.FUNCTIONS:
        return NotImplemented
    given = held_choice([*args, *kwargs.values()])
    if given is not None:
        return _per_option(session, f, args, kwargs)
    name, generator = found
    short = name.rpartition(".")[2]
    if short == "shuffle" or (short in _OF_ITEMS and not name.startswith(("numpy.", "generator."))):
        make: Callable[..., Any] = _MAKERS[short]
        return make(session, name, generator, args, kwargs)
    if name.startswith(("numpy.", "generator.")):
        args, kwargs = tuple(map(_named, args)), {key: _named(one) for key, one in kwargs.items()}
    if not all(map(_is_plain_or_size, (*args, *kwargs.values()))) or kwargs.get("out") is not None:
        return NotImplemented
    if name == "torch.manual_seed":
        _emit(session, name, None, *_positional(args, kwargs, "seed"), kinds=[])
        adopt(session, torch.default_generator)
        return torch.default_generator
    if short == "seed" and not name.startswith("torch."):
        _emit(session, name, generator, args, kwargs, kinds=[])
        return None
    kind = _kind(session, name, generator, args, kwargs)
    if is_a(kind, _Drawn):
        return _array(session, name, generator, args, kwargs, kind)
    if kind is None:
        return NotImplemented
    (var,) = _emit(session, name, generator, args, kwargs, kinds=[kind])
    return scalars.wrap(var)


def _is_seed(value: Any) -> bool:
    """Whether it is a known number, or a list of such, of which a ``SeedSequence`` is always the same."""
    return type(value) is int or type(value) in (list, tuple) and all(type(one) is int for one in value)


def _entropy(value: Any) -> Any:
    """What a generator may be made of in the place of a ``SeedSequence`` that nothing was spawned from."""
    if type(value) is not numpy.random.SeedSequence or value.spawn_key or value.n_children_spawned:
        return value
    return value.entropy if value.pool_size == numpy.random.SeedSequence(0).pool_size else value


def _made_by(f: Any) -> str | None:
    """The family of the generators that a class or function makes; None for others."""
    if f is random.Random:
        return "random"
    if unasked(f, "__name__", "") not in ("RandomState", "default_rng"):
        return None
    return next((family for family in ("numpy", "generator") if f is host.new_generator(family)), None)


def _new(session: Session, family: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A generator that the function makes: each run makes it, with the seed that it has there.

    Raises:
        TraceError: D2S214.
    """
    if not all(map(_is_plain_or_size, (*args, *kwargs.values()))):
        return NotImplemented
    sampled = [_SAMPLES[one.kind] if is_a(one, Staged) else one for one in args]
    named = {key: _SAMPLES[one.kind] if is_a(one, Staged) else one for key, one in kwargs.items()}
    made = theirs(host.new_generator(family), *sampled, **named)
    made_generators.note(session, family, made)
    _emit(session, f"{family}.new", made, args, kwargs, kinds=[])
    return made


def _of_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ``torch.Generator`` that the function makes, or one of its methods.

    Raises:
        TraceError: D2S214.
    """
    if f is torch.Generator:
        if any_staged([args, kwargs]):
            return NotImplemented
        made = theirs(f, *args, **kwargs)
        made_generators.note(session, "", made)
        _emit(session, "torch_generator.manual_seed", made, (host.UNSEEDED,), {}, kinds=[])
        return made
    owner, name = f.__self__, f.__name__
    if name == "initial_seed" and not args and not kwargs:
        (var,) = _emit(session, f"torch_generator.{name}", owner, (), {}, kinds=["int"])
        return scalars.wrap(var)
    args, kwargs = _positional(args, kwargs, "seed")
    if name != "manual_seed" or len(args) != 1 or kwargs:
        return NotImplemented
    (seed,) = args
    if type(seed) is int:
        theirs(f.__self__.clone_state().manual_seed, seed)  # raises what torch raises of such a seed
    elif not (is_a(seed, Staged) and seed.kind == "int"):
        return NotImplemented
    _emit(session, f"torch_generator.{name}", owner, (seed,), {}, kinds=[])
    return owner


def _found(f: Any) -> tuple[str, Any] | None:
    """The name that a function has among the host operators, and the generator that it draws from, None for the one
    that all share."""
    name = _FUNCTIONS.get(id(f))
    if name is not None:
        return name, None
    owner, short = unasked(f, "__self__"), unasked(f, "__name__", "")
    if unasked(f, "__module__", "") == "torch.random":  # by name: torch wraps them
        return f"torch.{short}", None
    if type(owner) is random.Random:
        return f"random.{short}", None if owner is _SHARED else owner
    if type(owner) is random.SystemRandom:
        return f"system.{short}", None
    kinds = (type(owner).__module__, type(f).__module__, unasked(f, "__module__"))
    if any(is_a(one, str) and one.startswith("numpy.random") for one in kinds):
        return _of_numpy(f, owner, short)
    return None


def _of_numpy(f: Any, owner: Any, short: str) -> tuple[str, Any] | None:
    from numpy import random as numpys  # NumPy imports it when it is first used

    shared = numpys.rand.__self__  # type: ignore[attr-defined]
    if f is numpys.seed:
        return "numpy.seed", None
    if f in (numpys.ranf, numpys.sample):
        return "numpy.random_sample", None
    if type(owner) is numpys.RandomState:
        return f"numpy.{short}", None if owner is shared else owner
    if type(owner) is numpys.Generator:
        return f"generator.{short}", owner
    return None


def _is_plain(value: Any) -> bool:
    """Whether an Operator can be given a value as it is."""
    return value is None or is_a(value, Staged) or type(value) in (int, float, bool, str, complex)


def _is_plain_or_size(value: Any) -> bool:
    return _is_plain(value) or (type(value) in (tuple, list) and all(map(_is_plain_or_size, value)))


def _named(value: Any) -> Any:
    """A dtype by name, and a torch.Size as a tuple."""
    if is_a(value, (torch.Size, StagedSize)):
        return tuple(value)
    is_class = is_a(value, type) and issubclass(value, (numpy.generic, int, float))
    return numpy.dtype(value).name if is_class or is_a(value, numpy.dtype) else value


def _per_option(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = list(kwargs)
    values = [*args, *kwargs.values()]
    for index, value in enumerate(values):
        if is_a(value, Choice):

            def once(option: Any, index: int = index) -> Any:
                given = [*values[:index], option, *values[index + 1:]]
                return call(f, *given[:len(args)], **dict(zip(names, given[len(args):])))

            return distribute(session, value, once)
    return NotImplemented


def _positional(args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (kwargs[name],) if not args and list(kwargs) == [name] else args, {} if not args else kwargs


def _emit(session: Session, name: str, generator: Any, args: Any, kwargs: Any, kinds: list[Any]) -> Any:
    """Record the call; without ``kinds`` it gives nothing."""
    operands, keywords = _operands(session, name, generator, args, kwargs)
    return session.emit(f"host.{name}", operands, keywords, [ScalarType(kind) for kind in kinds])


def _operands(session: Session, name: str, generator: Any, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """What an Operator is given.

    Raises:
        TraceError: D2S214, in ``torch.utils.checkpoint``.
    """
    if memo(session).checkpointed:
        raise session.error(
            f"{name}() in torch.utils.checkpoint.checkpoint: eager's backward calls the function again, and draws "
            "other numbers there", code="D2S214", hint="Draw before, and give the number to the function.")
    operands = [session.operand(list(one) if is_a(one, tuple) and name.startswith(("random", "system")) else one)
                for one in args]  # fmt: skip
    keywords = {key: session.operand(one) for key, one in kwargs.items()}
    if id(generator) in session.objects.generators:
        keywords["generator"] = session.objects.generators[id(generator)][1]
    elif generator is not None:
        if existed_before(session, generator) is not True:
            made_generators.require_no_copy(session)
            done(session, "random numbers are drawn from a copy of a generator")
        adopt(session, generator)
        keywords["generator"] = generator
    return operands, keywords


def _kind(session: Session, name: str, generator: Any, args: Any, kwargs: Any) -> Any:
    """The kind of the number that a call gives; None: it gives something else.

    Raises:
        Exception: What the function raises for numbers that are known; a run raises it, too.
    """
    usual = host.KINDS[f"host.{name}"]
    if name.startswith(("time.", "secrets.", "torch.")) and not args and not kwargs:
        return usual
    staged = any(is_a(one, Staged) for one in (*args, *kwargs.values()))
    samples = [_SAMPLES[one.kind] if is_a(one, Staged) else one for one in args]
    named = {key: _SAMPLES[one.kind] if is_a(one, Staged) else one for key, one in kwargs.items()}
    twin = _twin(name)
    before = _place(twin)
    try:
        value = twin(*samples, **named)
    except Exception as error:
        if not staged or is_a(error, TypeError):
            _raise_it(session, name, generator, args, kwargs, error, _place(twin) != before)
        return usual
    if host_numpy.kind_of(value) not in (None, "number"):
        return None if staged else _Drawn(value)
    return usual if staged and scalars.kind_of(value) is not None else scalars.kind_of(value)


@dataclass
class _Drawn:
    """An array or scalar of NumPy's, as a stream of its own gives it."""

    sample: Any


def _array(session: Session, name: str, generator: Any, args: Any, kwargs: Any, drawn: _Drawn) -> Any:
    """The array that a run draws."""
    operands, keywords = _operands(session, name, generator, args, kwargs)
    return numpy_calls.drawn(session, f"host.{name}", operands, keywords, drawn.sample)


_SAMPLES: dict[str, Any] = {"bool": True, "int": 1, "float": 0.5, "complex": 1j, "str": "1"}


def _twin(name: str) -> Callable[..., Any]:
    """The function, drawing from a stream of its own."""
    family, _, short = name.partition(".")
    if family in ("random", "system"):
        found: Callable[..., Any] = getattr(random.Random(0), short)
        return found
    if family in ("numpy", "generator"):
        from numpy import random as numpys

        made: Any = numpys.RandomState(0) if family == "numpy" else numpys.default_rng(0)
        found = getattr(made, short)
        return found
    return host.FUNCTIONS[f"host.{name}"]


def _place(twin: Any) -> Any:
    """Where the stream of its own is."""
    return made_generators.place_of(unasked(twin, "__self__"))


@acts_for_user
def _raise_it(session: Session, name: str, generator: Any, args: Any, kwargs: Any, error: Exception,
              drew: bool) -> None:  # fmt: skip
    """A run that comes here raises what the function raises; if it has drawn before that, the Program calls it."""
    if drew:
        _emit(session, name, generator, args, kwargs, kinds=[])
    raise error


# -- what gives items


def _choice(session: Session, name: str, generator: Any, args: Any, kwargs: Any) -> Any:
    """``choice(seq)``."""
    theirs(_signature_of_choice, *args, **kwargs)
    seq = args[0] if args else kwargs["seq"]
    items, kind = _numbers(seq)
    if items is not None and kind is not None:
        (var,) = _emit(session, name, generator, [items], {}, [kind])
        return scalars.wrap(var)
    count = _length(session, seq)
    if count is NotImplemented:
        return NotImplemented
    if type(count) is int and count == 0:
        return _of_nothing(session, name, generator, seq)
    (var,) = _emit(session, name, generator, [count], {}, ["int"])
    return call(operator.getitem, seq, scalars.wrap(var))


def _of_nothing(session: Session, name: str, generator: Any, seq: Any) -> Any:
    """``choice`` of a sequence without items."""
    if sys.version_info < (3, 11):  # Python 3.10 reads the first item: the sequence says what is wrong
        return call(operator.getitem, seq, 0)
    _raise_it(session, name, generator, [0], {}, IndexError("Cannot choose from an empty sequence"), False)


def _signature_of_choice(seq: Any) -> None:
    """Raises what Python raises for other arguments."""


def _shuffle(session: Session, name: str, generator: Any, args: Any, kwargs: Any) -> Any:
    """``shuffle(x)``: the list itself gets another order."""
    if len(args) != 1 or kwargs or type(args[0]) is not list or growing.is_growing(args[0]):
        return NotImplemented
    seq = args[0]
    items, kind = _numbers(seq)
    if items is not None and kind is not None:
        found = _wrapped(_emit(session, name, generator, [items], {}, [kind] * len(items)))
    else:
        if len(seq) > _LONGEST:
            return NotImplemented
        before = list(seq)
        places = _wrapped(_emit(session, name, generator, [len(seq)], {}, ["int"] * len(seq)))
        found = [call(operator.getitem, before, place) for place in places]
    if found:
        call(operator.setitem, seq, slice(None), found)
    return None


def _sample(session: Session, name: str, generator: Any, args: Any, kwargs: Any) -> Any:
    """``sample(population, k)``."""
    given = dict(zip(("population", "k"), args)) | kwargs
    if len(args) > 2 or set(given) != {"population", "k"} or type(given["k"]) is not int:
        return NotImplemented
    return _several(session, name, generator, given["population"], given["k"], (given["k"],), {})


def _choices(session: Session, name: str, generator: Any, args: Any, kwargs: Any) -> Any:
    """``choices(population, weights, cum_weights=..., k=...)``."""
    given = {"weights": None, "cum_weights": None, "k": 1} | dict(zip(("population", "weights"), args)) | kwargs
    if len(args) > 2 or set(given) != {"population", "weights", "cum_weights", "k"} or type(given["k"]) is not int:
        return NotImplemented
    weights = {}
    for key in ("weights", "cum_weights"):
        value = given[key]
        if value is not None and (not is_a(value, (list, tuple)) or growing.is_growing(value) or not all(
                map(_is_plain, value))):
            return NotImplemented
        weights[key] = list(value) if value is not None else None
    return _several(session, name, generator, given["population"], given["k"], (), {**weights, "k": given["k"]})


def _several(session: Session, name: str, generator: Any, seq: Any, count: int, args: Any, kwargs: Any) -> Any:
    """A list of ``count`` items of a sequence."""
    if not is_a(seq, (list, tuple, range, str)) or growing.is_growing(seq) or count > _LONGEST:
        return NotImplemented
    items, kind = _numbers(seq)
    given = items if items is not None and kind is not None else len(seq)
    plain = not any(is_a(one, Staged) for value in kwargs.values() if is_a(value, list) for one in value)
    if plain:  # an error in the numbers is one of every run
        twin = _twin(name)
        before = _place(twin)
        try:
            twin(range(len(seq)), *args, **kwargs)
        except Exception as error:
            _raise_it(session, name, generator, [given, *args], kwargs, error, _place(twin) != before)
    if given is items:
        return _wrapped(_emit(session, name, generator, [items, *args], kwargs, [kind] * count))
    places = _wrapped(_emit(session, name, generator, [given, *args], kwargs, ["int"] * count))
    return [call(operator.getitem, seq, place) for place in places]


_MAKERS = {"choice": _choice, "shuffle": _shuffle, "sample": _sample, "choices": _choices}


def _wrapped(made: tuple[Variable, ...]) -> list[Any]:
    return [scalars.wrap(var) for var in made]


def _numbers(seq: Any) -> tuple[list[Any] | None, Any]:
    """The items of a list or tuple of numbers, and their kind if it is one; else None. Texts are chosen by index: what
    is done by a known text can be done for each."""
    if not is_a(seq, (list, tuple)) or growing.is_growing(seq) or not seq:
        return None, None
    kinds = {scalars.kind_of(one) for one in seq}
    (kind, *others) = kinds
    return (list(seq), kind) if not others and kind not in (None, "str") else (None, None)


def _length(session: Session, seq: Any) -> Any:
    """How many items there are, as far as that is a number of the trace or of a run."""
    if is_a(seq, (list, tuple, range, str, torch.Tensor)) or hasattr(seq, "length"):
        return call(len, seq)
    return NotImplemented


__all__ = ["called"]
