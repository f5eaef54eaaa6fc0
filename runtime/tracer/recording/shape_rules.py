"""What an operator gives, in metadata: torch's own shape rules, run on fake tensors.

A rule that raises is not believed: the operator is tried on real tensors that look alike. What it raises there is
what eager raises; where it works, the fault is the rule's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import Dy2StaticError
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.tracer.ambient.calls import tensors_in
from runtime.tracer.numbers import known_sizes, number_operands
from runtime.tracer.recording import faults, kernel_layouts, sampled_shapes, unknown_sizes
from runtime.tracer.recording.session import Session

Casting = tuple[tuple[str, bool, str], ...]


def fakes(session: Session, value: Any) -> Any:
    """The value with fake tensors in place of all tensors."""
    if is_a(value, torch.Tensor):
        return session.fake(value)
    return type(value)(fakes(session, item) for item in value) if type(value) in (list, tuple) else value


def call_fakes(session: Session, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with fake tensors in place of all tensors."""
    return [fakes(session, arg) for arg in args], {key: fakes(session, value) for key, value in kwargs.items()}


def apply(session: Session, func: Any, args: Any, kwargs: Any, casting: Casting = ()) -> Any:
    """The results of ``func(*args, **kwargs)`` as fake tensors; ``casting``: the autocast state inside the operator.

    Raises:
        TraceError: There is no shape rule (D2S232), or it cannot tell, or it is wrong (D2S235).
        Exception: What the operator raises on real tensors.
    """
    result = _applied(session, func, args, kwargs, casting)
    if not kernel_layouts.has_its_own(func, args):
        return result
    needs = {id(session.fake(one)): True for one in tensors_in(args, kwargs) if _requires_grad(session, one)}
    given, named = call_fakes(session, args, kwargs)
    return kernel_layouts.settle(session, func, given, named, result, needs if torch.is_grad_enabled() else {})


def _applied(session: Session, func: Any, args: Any, kwargs: Any, casting: Casting) -> Any:
    fake_args, fake_kwargs = call_fakes(session, args, kwargs)
    if session.values.number_operands:
        fake_args = _settled(session, fake_args)
        fake_kwargs = {key: _settled(session, value) for key, value in fake_kwargs.items()}

    def judged(error: Exception, args: list[Any] = fake_args, kwargs: dict[str, Any] = fake_kwargs) -> Exception:
        return _judged(session, func, args, kwargs, error, needs, casting)

    needs = {id(session.fake(one)): True for one in tensors_in(args, kwargs) if _requires_grad(session, one)}

    if is_a(fake_kwargs.get("correction"), (torch.SymInt, torch.SymFloat)):
        fake_kwargs["correction"] = 1  # only kernels read it, and the rules of var and std do not take a symbol
    if torch_internals.is_packed(func):
        symbolic = [one if (number := number_operands.of(session, one)) is None else session.sizes.symbolic(number)
                    for one in fake_args]  # fmt: skip
        own = torch_internals.packed(session.fake_mode, session.shape_env, func, symbolic, fake_kwargs)
        if own is not None:
            return own
    if number_operands.must_be_tried(session, (*fake_args, *fake_kwargs.values())):
        return _with_numbers(session, func, fake_args, fake_kwargs, casting, judged)
    if func is torch.ops.aten.slice.Tensor:
        known_sizes.rest_on_bounds(session, *fake_args[:4])
    own = torch_internals.by_own_rule(session.fake_mode, session.shape_env, func, fake_args, fake_kwargs)
    if own is not None:
        if not casting or func._schema.name not in torch_internals.CASTING_KERNELS:
            return own
        with session.fake_mode:
            return torch_internals.cast_inside(func, fake_args, fake_kwargs, casting, own)
    unknown = torch_internals.is_unknown((*fake_args, *fake_kwargs.values()))
    facts = torch_internals.SizeFacts(session.shape_env) if unknown else None  # a rule that raises has assumed some
    settled = unknown_sizes.settled(session, func, args, kwargs) if unknown else None
    if settled is not None:
        try:
            result = torch_internals.fake_call(session.fake_mode, func, settled, fake_kwargs, casting)
        except Exception as error:
            _put_back(facts)
            if not is_a(error, RuntimeError):
                raise judged(error) from None
        else:
            if not func._schema.is_mutable and not unknown_sizes.is_dense(session, func, args):
                for one in tensors_in([result], {}):
                    session.values.any_layout[one] = True
            return result
    if unknown and torch_internals.has_numbers((*fake_args, *fake_kwargs.values())):
        try:
            return torch_internals.fake_call(session.fake_mode, func, fake_args, fake_kwargs, casting)
        except Exception as error:
            _put_back(facts)
            if not is_a(error, RuntimeError):
                raise judged(error) from None
            found = torch_internals.with_plain_numbers(session.fake_mode, func, fake_args, fake_kwargs, casting)
        if found is not None:
            return found
    outs = places(func, fake_args, fake_kwargs)
    try:
        return torch_internals.fake_call(session.fake_mode, func, fake_args, fake_kwargs, casting)
    except torch_internals.UnsupportedOperatorException as error:
        raise _no_shape_rule(session, func) from error
    except Exception as error:
        _put_back(facts)
        if is_a(error, RuntimeError) and "no fake impl" in str(error):  # NotImplementedError is one
            raise _no_shape_rule(session, func) from error
        put_back(session, outs)  # a rule that raises may have resized them
        if not torch_internals.is_shape_error(error):
            if outs and resized(session, func, fake_args, fake_kwargs, outs):
                count = len(func._schema.returns)
                return None if count == 0 else outs[0][0] if count == 1 else tuple(out for out, _ in outs)
            without = _without_empty(func, fake_args)
            if without is not None:
                return apply(session, func, [without, *fake_args[1:]], fake_kwargs, casting)
            if _writes_only(func) and set(torch_internals.real_errors(func, fake_args, fake_kwargs)) == {None}:
                return fake_args[0]
            tried = _as_real_ones(session, func, fake_args, fake_kwargs)
            if tried is not None:
                return tried
            raise judged(error) from None
        if func.namespace != "aten" and not func._schema.is_mutable and aten.returns_alias(func):
            raise session.error(
                f"torch cannot tell which part of its argument {_name(func)} gives for sizes that change from call to "
                "call", code="D2S235",
                hint="Make the size fixed (InputSpec), or write the operator's shape rule for any size.") from error
        try:
            loose: list[torch.Tensor] = []
            result = torch_internals.unknown_sizes(
                session.fake_mode, session.shape_env, func, fake_args, fake_kwargs, casting, loose
            )
            if result is None and _is_given_symbols((*fake_args, *fake_kwargs.values())):
                result = sampled_shapes.apply(session, func, fake_args, fake_kwargs, casting)
        except Dy2StaticError:
            raise
        except Exception as other:
            raise judged(other) from None
        if result is None:
            raise _unknown_shape(session, func) from error
        given = list(tensors_in(fake_args, fake_kwargs))  # the samples of these were of the usual layout
        usual = all(torch_internals.contiguity(one)[0] for one in given if one.layout is torch.strided)
        memory = {torch_internals.storage_identity(one) for one in given if one.layout is torch.strided}
        for one in tensors_in([result], {}):
            is_view = one.layout is torch.strided and torch_internals.storage_identity(one) in memory
            session.values.sampled[one] = list(range(one.dim())) if usual and not is_view else None
            if not usual and not is_view or any(one is other for other in loose):
                session.values.any_layout[one] = True
        return result


def _put_back(facts: torch_internals.SizeFacts | None) -> None:
    if facts is not None:
        facts.put_back()


def _is_given_symbols(values: Iterable[Any]) -> bool:
    """Whether a number that is not known is among the arguments of a call, beside the sizes of tensors."""
    for value in values:
        if is_a(value, (torch.SymInt, torch.SymFloat)):
            return True
        if is_a(value, (list, tuple)) and _is_given_symbols(value):
            return True
    return False


def _unknown_shape(session: Session, func: Any) -> Exception:
    return session.error(
        f"torch cannot tell the shape of {_name(func)}'s result when sizes depend on data",
        hint="Make the size fixed (pad), or compute it from an input's shape.",
        code="D2S235",
    )


def _settled(session: Session, value: Any) -> Any:
    """An argument with the number itself in place of one that stands for it, where it is the same for every call."""
    if type(value) in (list, tuple):
        return type(value)(_settled(session, item) for item in value)
    number = number_operands.of(session, value) if type(value) is int else None
    known = None if number is None else session.sizes.settled(number)
    return value if known is None else known


def _with_numbers(
    session: Session, func: Any, args: list[Any], kwargs: dict[str, Any], casting: Casting, judged: sampled_shapes.Judge
) -> Any:
    """The results of a call with numbers that stand for staged ones."""
    if _writes_only(func):
        return args[0]
    result = sampled_shapes.apply(session, func, args, kwargs, casting, judged)
    if result is None:
        raise _unknown_shape(session, func)
    return result


Places = list[tuple[torch.Tensor, tuple[Any, ...]]]


def places(func: Any, args: Any, kwargs: dict[str, Any]) -> Places:
    """The fake tensors that a call writes as ``out=``, each with its shape, strides and offset."""
    names = [argument.name for argument in func._schema.arguments if argument.is_out]
    if not names:
        return []
    given = aten.arguments(func, args, kwargs)
    return [(one, (one.shape, torch_internals.strides_of(one), torch_internals.offset_of(one)))
            for one in tensors_in([given.get(name) for name in names], {})]


def put_back(session: Session, outs: Places) -> None:
    """Give fake tensors the shapes, strides and offsets that they had."""
    with torch_internals.in_fake_mode(session.fake_mode):
        for out, place in outs:
            if (out.shape, out.stride(), out.storage_offset()) != place:
                out.as_strided_(*place)


def resized(session: Session, func: Any, args: list[Any], kwargs: dict[str, Any], outs: Places) -> bool:
    """Give the fake ``out=`` tensors of a call the shapes that the operator gives real ones, if it can be tried."""
    shapes = torch_internals.out_shapes(func, args, kwargs)
    if shapes is None or len(shapes) != len(outs):
        return False
    with torch_internals.in_fake_mode(session.fake_mode):
        for (out, _), shape in zip(outs, shapes):
            if tuple(out.shape) != shape:
                out.resize_(shape)
    return True


def _name(func: Any) -> str:
    return str(func._schema.name.split("::")[1])


def _no_shape_rule(session: Session, func: Any) -> Exception:
    return session.error(
        f"the operator {func} has no shape rule (no fake or meta kernel)",
        code="D2S232",
        hint="Register one with torch.library.register_fake.",
    )


def _without_empty(func: Any, args: list[Any]) -> list[torch.Tensor] | None:
    """What ``cat`` joins where it joins anything: it passes over vectors without elements whatever the others' rank is.

    A vector of unknown length among tensors of another rank has none, or the operator raises when it runs.
    """
    if _name(func) != "cat" or not args or not is_a(args[0], (list, tuple)):
        return None
    ranks = {tensor.dim() for tensor in args[0]}
    if len(ranks) < 2 or 1 not in ranks:
        return None
    kept = [one for one in args[0] if one.dim() != 1 or not torch_internals.is_unknown([one])]
    return kept if len(kept) < len(args[0]) else None


def _writes_only(func: Any) -> bool:
    """Whether an operator gives back its first tensor, which it writes and whose shape it leaves as it is."""
    schema = func._schema
    written = [argument.name for argument in schema.arguments if argument.is_write]
    names = [argument.name for argument in schema.arguments]
    return (
        written == names[:1] and len(schema.returns) == 1 and schema.returns[0].alias_info is not None
        and torch.Tag.inplace_view not in func.tags and not _name(func).startswith(("resize", "set_"))
    )  # fmt: skip


def _as_real_ones(session: Session, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Fake results like those of real tensors, for a call that the rule refuses and the operator takes; else None.

    What they hold may decide what the results are like: the executor holds these against what is told here.
    """
    value = torch_internals.real_results(func, args, kwargs)
    if value is None:
        return None

    def fake(real: Any) -> Any:
        if is_a(real, (list, tuple)):
            return type(real)(map(fake, real))
        with torch_internals.fake_only(session.fake_mode):
            made = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=real.device)
        session.values.sampled[made] = sampled_shapes.order_of([made])
        return made

    return fake(value)


def _requires_grad(session: Session, tensor: torch.Tensor) -> bool:
    return session.info(tensor).requires_grad if session.knows(tensor) else tensor.requires_grad


def _judged(
    session: Session, func: Any, args: list[Any], kwargs: dict[str, Any], error: Exception, needs: dict[int, bool],
    casting: Casting,
) -> Exception:
    """What to raise where a shape rule raised: eager's error if the operator raises, too."""
    found = torch_internals.real_errors(func, args, kwargs, needs, casting)
    if found and None not in found:
        known = not torch_internals.is_unknown((*args, *kwargs.values()))
        real = found[0]
        if real is not None and (known or len(set(map(str, found))) == 1):
            error = real  # as eager words it
    elif any(found):
        return session.error(
            f"whether {_name(func)} works here depends on sizes that are only known while the Program runs",
            hint="Make the size fixed (pad), or test it with if before.",
            code="D2S235",
        )
    elif found:
        return session.error(
            f"torch cannot tell the shape of {_name(func)}'s result: its shape rule raises {type(error).__name__} "
            f"({str(error).splitlines()[0] if str(error) else ''}), and the operator does not",
            hint="Call it outside, or mark the function that calls it with not_to_static.",
            code="D2S235",
        )
    faults.vet(error)
    return error


__all__ = ["apply", "call_fakes", "fakes", "places", "put_back", "resized"]
