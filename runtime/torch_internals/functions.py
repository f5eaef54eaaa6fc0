"""Functions that torch wraps: ``autograd.Function.apply``, a Python function until torch 2.14 and a builtin one since,
and what torch hides from its own compiler."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import _jit_internal
from torch.utils import _contextlib

from runtime.kinds import is_a
from runtime.torch_internals.batches import without_transforms

_HIDDEN = torch._disable_dynamo(lambda: None).__code__


def hidden_from_dynamo(function: types.FunctionType) -> Any:
    """What ``torch._disable_dynamo`` wraps in ``function``, None for another function. The wrapper only keeps torch's
    compiler away, and hangs a cache on what it wraps in the first call."""
    return getattr(function, "__wrapped__", None) if function.__code__ is _HIDDEN else None


def decorates(manager: Any) -> bool:
    """Whether this is a context manager of torch that decorates functions, or the class of one (``@torch.no_grad``)."""
    if is_a(manager, type):
        return issubclass(manager, (_contextlib._NoParamDecoratorContextManager, torch.inference_mode))
    return is_a(manager, _contextlib._DecoratorContextManager)


def decorated_generator(manager: Any, function: Callable[..., Any]) -> Any:
    """``manager(function)``, for a function that gives generators although it is no generator function."""
    one = manager() if is_a(manager, type) else manager
    one(lambda: None)  # set_grad_enabled(False) switches the mode when it is made, and back when it decorates
    wrap: Callable[..., Any] = _contextlib._wrap_generator
    if "ctx_name" in inspect.signature(wrap).parameters:  # since torch 2.15, for profiles
        return wrap(one.clone, function, _contextlib._context_manager_name(one))  # type: ignore[attr-defined]
    return wrap(one.clone, function)


MODULE_CALL = cast(types.FunctionType, torch.nn.Module._wrapped_call_impl)
"""``nn.Module.__call__``, unless a user put another function there, which calls it."""


def copy_of(function: types.FunctionType) -> types.FunctionType:
    """A function that does what this one does now, whatever code it is given later."""
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def code_of_call(function: Callable[..., Any]) -> types.CodeType:
    """Code for a function without free variables that hands its arguments on to ``function``.

    To give a function of PyTorch's other code takes no time. To store another function in one of its classes makes
    Python forget what it knows of that class and of all derived from it: hundreds, below ``nn.Module``.
    """
    def handed_on(*args: Any, **kwargs: Any) -> Any:
        hole: Any = "the function"
        return hole(*args, **kwargs)

    constants = tuple(function if one == "the function" else one for one in handed_on.__code__.co_consts)
    return handed_on.__code__.replace(co_consts=constants)


PLAIN_APPLY = torch.autograd.Function.__dict__["apply"]


def plain_apply(cls: type) -> Any:
    """``cls.apply`` as torch defines it, whatever ``torch.autograd.Function`` says now."""
    return PLAIN_APPLY.__get__(None, cls)


def _numbers_unused() -> bool:
    """Whether torch says by its number which tensor a gradient does not reach: not in torch 2.11."""
    with torch.inference_mode(False), torch.enable_grad():
        one, other = (torch.zeros((), device="cpu", requires_grad=True) for _ in range(2))
        try:
            torch.autograd.grad(one, other)
        except RuntimeError as error:
            return "at index 0" in str(error)
    return False


_NUMBERS_UNUSED = _numbers_unused()  # asked before a trace begins


def unused_gradient(index: int) -> str:
    """What ``torch.autograd.grad`` says where no gradient reaches the input with this number."""
    which = f"The differentiated Tensor at index {index}" if _NUMBERS_UNUSED else "One of the differentiated Tensors"
    return (f"{which} appears to not have been used in the graph. Set allow_unused=True if this is the desired "
            "behavior.")  # fmt: skip


def apply_takes_keywords() -> bool:
    """Whether ``apply`` takes arguments by name also where a function has no ``setup_context``: not in torch 2.11."""
    try:
        with without_transforms():
            plain_apply(_Probe)(number=1)
    except TypeError:
        return False
    return True


class _Probe(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, number: int) -> int:
        return number


def is_plain_apply(method: Any) -> bool:
    """Whether something callable is ``SomeFunction.apply`` as torch defines it."""
    owner = method.__self__ if is_a(method, (types.MethodType, types.BuiltinFunctionType)) else None
    return is_a(owner, type) and issubclass(owner, torch.autograd.Function) and method == plain_apply(owner)


ABOUT_CLASSES: frozenset[Any] = frozenset({
    torch.jit.annotate, torch.jit.isinstance, _jit_internal._isinstance, _jit_internal.container_checker,
    _jit_internal.check_empty_containers})
"""Functions that ask of what class the items of a container are, and one that gives back what it is given."""
_IN_C = "__torch__.torch.classes."


def class_in_c(method: Any) -> str:
    """Of a method of an object whose class is written in C++ (``torch.classes``): the name of the class. Else empty."""
    owner = method.owner if is_a(method, torch.ScriptMethod) else None
    name: str = owner._type().qualified_name() if is_a(owner, torch._C.ScriptModule) else ""
    return name.removeprefix(_IN_C) if name.startswith(_IN_C) else ""


def differentiable_once(results: Sequence[Any], read: Sequence[Any]) -> tuple[Any, ...]:
    """Gradients that raise where they are differentiated themselves, if anything that they come from needs that."""
    sources = [one for one in read if is_a(one, torch.Tensor) and one.requires_grad]
    return plain_apply(_Once)(len(sources), *sources, *results) if sources else tuple(results)


class _Once(torch.autograd.Function):
    """``apply(count, *sources, *results)``: the results, with a history that leads to the sources and ends here."""

    @staticmethod
    def forward(ctx: Any, count: int, *values: Any) -> tuple[Any, ...]:
        return tuple(one.detach() if is_a(one, torch.Tensor) else one for one in values[count:])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function whose backward says itself whether gradients are on, as "
            "@once_differentiable and torch.no_grad() do")


def unprofiled(compiled: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[], Any] | None:
    """A call of a function or method of ``torch.jit``'s as its first one would be: the same graph, without what earlier
    calls made of it. None for arguments that do not fit."""
    owner = [compiled.owner] if is_a(compiled, torch.ScriptMethod) else []
    parameters = compiled.schema.arguments[len(owner) :]
    given = dict(zip((one.name for one in parameters), args)) | dict(kwargs)
    known = {one.name for one in parameters}
    if len(args) > len(parameters) or not given.keys() <= known or len(given) < len(args) + len(kwargs) or any(
            one.name not in given and not one.has_default_value() for one in parameters):  # fmt: skip
        return None
    values = [given[one.name] if one.name in given else one.default_value for one in parameters]
    made = torch._C._create_function_from_graph(compiled.name, compiled.graph.copy())
    return functools.partial(made, *owner, *values)


def scripted_from(compiled: Any) -> types.FunctionType | None:
    """The Python function that ``torch.jit.script`` compiled; None if that is not known."""
    found = getattr(compiled, "_torchdynamo_inline", None) if is_a(compiled, torch.jit.ScriptFunction) else None
    return found if is_a(found, types.FunctionType) else None


def scripted_kinds(compiled: Any) -> frozenset[str]:
    """The kinds of operators in the graph of a scripted function, those of the functions that it calls included."""
    found: set[str] = set()
    graph = compiled.inlined_graph  # whose nodes live as long as it does
    todo = [graph]
    while todo:
        for node in todo.pop().nodes():
            found.add(node.kind())
            todo += node.blocks()
    return frozenset(found)
