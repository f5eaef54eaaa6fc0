"""The function-mode interceptor: sees what reads a tensor's data or metadata from Python.

The recorder sees ATen calls alone, and ``.tolist()``, ``.numpy()`` and most questions about metadata never become one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.torch_internals import batches
from runtime.tracer.ambient.calls import tensors_in
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.memory import hung
from runtime.tracer.memory.deferred import unneeded
from runtime.tracer.numbers import number_arguments
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.recording import (
    backward,
    gradients,
    leaf_gradients,
    leaf_writes,
    numpy_calls,
    reads,
    scalar_masks,
    sparse_parts,
    transforms,
    users_tensors,
)  # fmt: skip
from runtime.tracer.recording.session import Session
from runtime.tracer.values.structure import Choice
from runtime.tracer.values.transient import Transient

_REFUSED = {
    "numpy": "reads a tensor's data as a NumPy array",
    "__array__": "reads a tensor's data as a NumPy array",
    "data_ptr": "reads a tensor's memory address",
    "apply_": "calls a Python function for each element",
    "map_": "calls a Python function for each element",
    "map2_": "calls a Python function for each element",
    "is_set_to": "asks which memory a tensor has",
    "storage_type": "reads a tensor's raw memory",
    "storage": "reads a tensor's raw memory",
    "untyped_storage": "reads a tensor's raw memory",
    "_typed_storage": "reads a tensor's raw memory",
    "__dlpack__": "exports a tensor's memory",
    "__reduce_ex__": "pickles a tensor",
    "register_hook": "registers a gradient hook",
    "register_post_accumulate_grad_hook": "registers a gradient hook",
    "share_memory_": "moves a tensor to shared memory",
    "pin_memory": "pins memory",
    "to_mkldnn": "gives a layout that only oneDNN knows",
    "__deepcopy__": "deep-copies a tensor",
    "save": "writes a file",
    "load": "reads a file",
}
HOOKS: dict[str, Callable[[Session, Any, Any], Any]] = {}
"""What registers hooks in converted code, by the names of torch's methods."""
_HINTS = {
    "register_hook": "Register hooks of single tensors, with tensor.register_hook() in converted code, or outside.",
    "register_post_accumulate_grad_hook": "Register the hook in converted code, or outside.",
    "__deepcopy__": "Use .clone() instead.",
}


_LAYOUT = ("stride", "is_contiguous", "storage_offset")
"""Questions about how a tensor lies in memory; the tracer's own are asked by ``torch_internals.strides_of``."""


_ASKED = {"storage_offset": torch.Tensor.storage_offset, "is_shared": torch.Tensor.is_shared}


OF_DTYPES = frozenset({"dtype", "itemsize", "nbytes", "type", "type_as", "to", "is_floating_point", "element_size",
                       "result_type", "can_cast"})  # fmt: skip
"""What is asked of dtypes, or takes that of another tensor."""


def _is_inference(tensor: torch.Tensor) -> bool:
    return tensor.is_inference()


def _is_leaf(tensor: torch.Tensor) -> bool:
    return tensor.is_leaf


_DEEPEST = 32
"""No tensor has more dimensions by far."""


def _has_staged(values: Any) -> bool:
    return any(is_a(value, Staged) for value in walk(values, _items, _DEEPEST))


def _items(value: Any) -> Any:
    return value if type(value) in (list, tuple) else ()


class History(Transient):
    """What stands for the ``grad_fn`` of a tensor with a history."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        self.refuse(f"'.{name}'")

    def __eq__(self, other: object) -> bool:
        if is_a(other, History):
            self.refuse("the identity")
        return False

    def __hash__(self) -> int:
        self.refuse("the identity")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.refuse("a call")

    def __str__(self) -> str:
        self.refuse("the text")

    def __repr__(self) -> str:
        self.refuse("the text")

    def leave(self) -> NoReturn:
        self.refuse("the node")

    def refuse(self, what: str) -> NoReturn:
        """Raise the located error for what was asked.

        Raises:
            TraceError: D2S213.
        """
        raise self._session.error(
            f"{what} of a grad_fn: the nodes of the graph do not exist while the function is being converted",
            code="D2S213", hint="Ask for requires_grad, or do it outside the converted function.")


_FACTORIES = frozenset({
    "arange", "empty", "eye", "full", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn", "randperm",
    "range", "zeros",
})  # fmt: skip
"""Functions that make a tensor, and take ``requires_grad``: what is given as ``out`` gets it, too."""


_SPACED = frozenset({"linspace", "logspace"})
"""Those of them that take tensors for their bounds."""


class Interceptor(torch_internals.TorchFunctionMode):
    """Refuses, or stages, what would freeze a tensor's data into the Program."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = unasked(func, "__name__", "")
        session = self.session
        session.autocast = torch_internals.autocast_now(session.outside.autocast)
        if torch.is_autocast_cache_enabled():  # by a torch.autocast from before the trace: a decorator, an attribute
            torch.set_autocast_cache_enabled(False)
        if session.code.transforms and transforms.is_under(session, args, kwargs):
            return transforms.called(session, func, name, args, kwargs)
        for position, arg in enumerate(args):
            if batches.levels_of(arg):  # of a vmap around, met in a closure: torch would batch the stand-ins with it
                args = (*args[:position], session.inputs.lift(arg), *args[position + 1 :])
        if users_tensors.are_there(types):
            args, kwargs = users_tensors.stand_ins(session, args), users_tensors.stand_ins(session, kwargs)
        users_tensors.require_known(session, name, args, kwargs)
        if name == "__get__":
            return self._attribute(func, args)
        if name == "_set_grad_enabled":
            session.graph.grad_switches += 1
        if name == "__set__":
            return self._set_attribute(func, args)
        if name == "detach":
            return self._detach(name, func, args, kwargs)
        if func is torch.autograd.grad:
            return theirs(gradients.grad, *args, **kwargs)
        if func is torch.Tensor.backward:
            return theirs(backward.of_tensor, *args, **kwargs)
        if name == "retain_grad":
            return theirs(leaf_gradients.retain, session, *args, **kwargs)
        if name in HOOKS and session.code.functions and not session.code.unconverted:  # a decorator
            made = HOOKS[name](session, args, kwargs)
            if made is not NotImplemented:
                return made
        if name == "requires_grad_":
            return theirs(gradients.requires_grad_, session, *args, **kwargs)
        if name == "is_inference" and session.knows(args[0]):
            answer = hung.ask(session, args[0], "is_inference()", _is_inference)
            if answer is not MISSING:
                return answer
            session.outside.asked_settings.add("torch.is_inference_mode_enabled()")
        if name in ("storage_offset", "is_shared") and session.knows(args[0]):
            return self._of_memory(name, args[0])
        if name == "contiguous" and session.knows(args[0]) and not session.info(args[0]).layout_known:
            return theirs(torch.ops.aten.contiguous.default, *args, **kwargs)  # its method looks at the stand-in first
        if (name in _LAYOUT or name == "is_conj" and args[0].is_complex()) and session.knows(args[0]):
            self._require_layout(name, args[0])
            if name == "is_contiguous":
                memory_format = kwargs.get("memory_format", args[1] if len(args) > 1 else torch.contiguous_format)
                lies_so = torch_internals.lies_in_order(self.session.fake(args[0]), memory_format)
                if lies_so is not None:
                    self.session.sizes.collect_asserts()  # there may be no Operator any more that would
                    return lies_so
        if name in OF_DTYPES:
            for one in tensors_in(args[name == "to" :], kwargs):  # what is cast does not matter
                session.note_dtype(one)
        if name == "_nnz" and torch_internals.is_sparse(args[0]):
            return torch_internals.sparse_count(args[0])
        if name == "is_coalesced" and session.knows(args[0]):
            sparse_parts.require_known_order(session, args[0])
        if name == "numpy" and is_a(args[0], torch.Tensor) and not session.code.unconverted:
            return numpy_calls.of_tensor(session, args[0], *args[1:], **kwargs)
        if name in _REFUSED and (args and is_a(args[0], torch.Tensor) or name in ("save", "load")):
            raise session.error(
                f".{name}() {_REFUSED[name]} while the function is being converted",
                code="D2S213",
                hint=_HINTS.get(name, "Do it outside the converted function, or in a function marked not_to_static."),
            )
        if name in (
            "item",
            "tolist",
            "__bool__",
            "__int__",
            "__float__",
            "__index__",
            "__complex__",
            "__contains__",
            "equal",
            "allclose",
            "__format__",
            "__repr__",
            "is_nonzero",
        ):
            return reads.read(session, name, func, args, kwargs)
        if name in ("__getitem__", "__setitem__") and not kwargs:
            instead = scalar_masks.without(args[1])
            if instead is not None:
                part = self.__torch_function__(torch.Tensor.__getitem__, types, (args[0], instead[0]))
                return self.__torch_function__(func, types, (part, instead[1], *args[2:]))
        if name in _FACTORIES and is_a(kwargs.get("out"), torch.Tensor) and not any(
                is_a(one, torch.Tensor) for one in args):
            needs = bool(kwargs.pop("requires_grad", False))
            return gradients.given_to_factory(session, self._called(func, args, kwargs), needs)
        if name in _SPACED and kwargs.get("out") is None:
            args, kwargs = self._without_history(args), self._without_history(kwargs)
        if kwargs.get("requires_grad") is True:  # of a factory: below autograd it would be lost
            made = self.__torch_function__(func, types, args, {**kwargs, "requires_grad": False})
            return gradients.requires_grad_(session, made)
        return self._called(func, args, kwargs)

    def _without_history(self, given: Any) -> Any:
        """Arguments of a factory, whose result has no history whatever its bounds are."""
        items = given.items() if is_a(given, dict) else enumerate(given)
        found = {key: self._detach("detach", torch.Tensor.detach, (one,), {})
                 if is_a(one, torch.Tensor) else one for key, one in items}  # fmt: skip
        return found if is_a(given, dict) else tuple(found.values())

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What torch's function gives."""
        session = self.session
        if _has_staged(args) or _has_staged(kwargs.values()):
            args, kwargs = session.sizes.symbolic(tuple(args)), session.sizes.symbolic(dict(kwargs))
        session.graph.inner = None
        try:
            result = number_arguments.called(session, func, args, kwargs)
        except RuntimeError as error:
            said = error.args[0] if error.args else None  # which may be a text that only the run knows
            if not is_a(said, str) or ".numpy() is not supported for tensor subclasses" not in said:
                raise
            raise session.error(
                "NumPy reads a tensor's data while the function is being converted",
                code="D2S213",
                hint="Make the array a tensor (torch.from_numpy) outside the function.",
            ) from error
        if session.graph.inner is not None:
            session.forget_inner((*args, *kwargs.values()))
        users_tensors.note(session, args, kwargs, result)
        return result

    def _require_layout(self, name: str, tensor: torch.Tensor) -> None:
        """Refuse a question about the layout of a tensor that lies in memory in one way or another.

        Raises:
            TraceError: D2S213.
        """
        info = self.session.info(tensor)
        if not info.layout_known or (name == "storage_offset" and info.storage.aliases):
            raise self.session.error(
                f".{name}() of a tensor whose place in memory depends on the path that was taken, or on a size that "
                "only the run knows",
                code="D2S213", hint="Ask what .contiguous() gives.")

    def _of_memory(self, name: str, tensor: torch.Tensor) -> Any:
        """Where a tensor is in its memory, and whether other processes have that: fake tensors do not know."""
        if name == "storage_offset":
            self._require_layout(name, tensor)
        answer = hung.ask_memory(self.session, tensor, f"{name}()", _ASKED[name])
        if name == "is_shared":
            return answer is not MISSING and answer
        return torch_internals.offset_of(self.session.fake(tensor)) + (0 if answer is MISSING else answer)

    def _detach(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """What the user detaches, which factories do on their own too."""
        self.session.graph.detaching = name
        try:
            return theirs(func, *args, **kwargs)
        finally:
            self.session.graph.detaching = None

    def _attribute(self, func: Any, args: Any) -> Any:
        attribute = getattr(unasked(func, "__self__"), "__name__", "")
        tensor = args[0]
        session = self.session
        if attribute == "requires_grad" and session.knows(tensor):  # not of a tensor that the trace is just meeting
            session.graph.asked_flags.add(id(tensor))
            return gradients.needed(session, tensor)
        if attribute in OF_DTYPES and session.code.unconverted:
            session.note_dtype(tensor)
        if attribute in ("is_leaf", "grad_fn"):
            tensor = session.itself(tensor)  # what ``+p`` gave is the parameter
            hung.require_certain(session, tensor, f".{attribute}")
        if attribute == "is_leaf" and session.knows(tensor):
            return self._is_leaf(tensor)
        if attribute == "grad_fn" and session.knows(tensor):
            return self._history(tensor)
        if attribute in ("grad", hung.RETAINS):
            return self._gradient(tensor, attribute)
        if attribute == "data":
            return self._detach(attribute, func, args, {})
        if attribute in ("real", "imag", "T", "H", "mT", "mH") or not torch_internals.is_fake(tensor):
            return theirs(func, *args)
        return theirs(func, *args)

    def _is_leaf(self, tensor: torch.Tensor) -> bool:
        """``is_leaf``: whether no operator that autograd noticed made the tensor.

        Raises:
            TraceError: D2S213, that depends on the path that was taken.
        """
        session = self.session
        info = session.info(tensor)
        session.inputs.decide(tensor)
        answer = hung.ask(session, tensor, "is_leaf", _is_leaf)
        if info.grad_in_some_runs or (answer is not MISSING and info.storage.in_graph):
            raise session.error("whether a tensor is a leaf depends on the path that was taken, or on a write",
                                code="D2S213", hint="Ask outside the converted function.")
        if answer is not MISSING:
            return bool(answer)
        return not info.requires_grad or isinstance(tensor, torch.nn.Parameter) or gradients.is_leaf(
            session, info, info.storage.first)

    def _history(self, tensor: torch.Tensor) -> Any:
        """``grad_fn``: None without a history, else an object that is there and can only be asked whether it is."""
        session = self.session
        info = session.info(tensor)
        session.inputs.decide(tensor)
        if not info.requires_grad or isinstance(tensor, torch.nn.Parameter) or gradients.is_leaf(session, info):
            return None
        leaf_writes.note_history(session, info, unneeded([info]))  # asked for it a view gets it
        if info.grad_in_some_runs:
            raise session.error("whether a tensor has a grad_fn depends on the path that was taken", code="D2S213",
                                hint="Ask for requires_grad.")
        if session.inputs.own_variable(tensor) is not None:
            raise session.error("whether a tensor of the caller has a grad_fn is not known while the function is being "
                                "converted", code="D2S213", hint="Ask outside the converted function.")
        return History(session)

    def _gradient(self, tensor: torch.Tensor, attribute: str) -> Any:
        """``grad`` and ``retains_grad``, for code that is not converted: that cannot ask what depends on the path.

        Raises:
            TraceError: D2S212.
        """
        ask = leaf_gradients.read if attribute == "grad" else leaf_gradients.retains
        found = ask(self.session, tensor)
        if is_a(found, (Choice, Staged)):
            raise self.session.undecidable()
        return found

    def _set_attribute(self, func: Any, args: Any) -> Any:
        attribute = getattr(unasked(func, "__self__"), "__name__", "")
        if attribute == "requires_grad":
            theirs(gradients.set_requires_grad, self.session, *args)
            return None
        if attribute == "grad":
            return theirs(leaf_gradients.write, self.session, *args)
        if attribute == "data":
            raise self.session.error(
                "a tensor's .data is assigned inside a converted function",
                code="D2S213",
                hint="Use an in-place method (x.copy_(y)), or assign it outside.",
            )
        return theirs(func, *args)


__all__ = ["HOOKS", "OF_DTYPES", "Interceptor"]
