"""TranslatedLayer: a saved layer or function as a module, run by its Programs.

    layer = load("model"); layer.eval(); layer(x)          the saved forward, for inference
    layer.train(); loss(layer(x)).backward()               gradients reach its parameters, under their own names
    layer.encode(x)                                        other saved methods
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from runtime.autodiff import gradient_path
from runtime.calling.report import Compiled, compiled
from runtime.errors import SignatureError, TraceError
from runtime.executor.limits import Limits
from runtime.kinds import is_a
from runtime.storage.artefact import (
    WITHOUT_GRADIENTS,
    Artefact,
    Attribute,
    Constant,
    Method,
    ModuleEntry,
    Passed,
    State,
    Target,
    Variant,
)
from runtime.storage.modules import describe_modules
from runtime.storage.reading import signature_of
from runtime.tracer.ambient import state
from runtime.tracer.boundary.tracing import Effect
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values.arguments import Arguments, flatten, follow
from runtime.translated.fitting import check_conversion, check_memory, choose
from runtime.translated.located import located
from runtime.translated.parts import Part, Places, refuse, tensor_at
from runtime.translated.running import callee, device_of, prepared

_HOOKS = {"forward": ("_forward_hooks", "_forward_pre_hooks"), "backward": ("_backward_hooks", "_backward_pre_hooks")}


class TranslatedLayer(torch.nn.Module):
    """A loaded artefact. Made by ``load``.

    Parameters and buffers have the names they had; ``train()`` and ``eval()`` choose the Program; calls are checked
    against what was saved (SignatureError); gradients flow as through the original.
    """

    def __init__(
        self, artefact: Artefact, autograd: str = "program", limits: Limits | None = None,
        backend: str = "interpreter",
    ) -> None:  # fmt: skip
        super().__init__()
        self._limits = limits
        self._backend = backend
        self._metadata = artefact.metadata
        self.original_type_name = artefact.name
        self._methods = artefact.methods
        self._autograd = autograd
        self._constants = SimpleNamespace(**{f"c{index}": one for index, one in enumerate(artefact.constants)})
        self._signatures: dict[str, inspect.Signature] = {}
        self._places = Places(artefact)
        _build(self, artefact)
        self.train(not any("eval" in method.variants for method in artefact.methods.values()))

    # -- calling -------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the saved ``forward``. Errors raised: SignatureError if the call does not fit what was saved."""
        if torch.compiler.is_compiling():  # torch.compile reads these lines: a Program is no Python for it to compile
            return torch.compiler.disable(self._run)("forward", args, kwargs)
        return self._run("forward", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("_methods", {})
        if name in methods:
            return self._method(name)
        return super().__getattr__(name)

    def _method(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return torch.compiler.disable(self._run)(name, args, kwargs)
            return self._run(name, args, kwargs)

        method.__name__ = name
        method.__signature__ = self.signature(name)  # type: ignore[attr-defined]  # what inspect.signature() reads
        return method

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the saved methods."""
        return tuple(self._methods)

    @located
    def signature(self, method: str = "forward") -> inspect.Signature:
        """The parameters of a saved method, defaults included. Errors raised: SignatureError if there is none."""
        found = self._signatures.get(method)
        if found is None:
            saved = self._methods.get(method)
            if saved is None:
                names = ", ".join(self._methods)
                raise SignatureError(
                    f"no method '{method}' was saved; there are: {names}",
                    hint=f"Save it too: save(..., methods=['{method}']).",
                    code="D2S312",
                )
            constants = [getattr(self._constants, f"c{index}") for index in range(len(vars(self._constants)))]
            found = self._signatures[method] = signature_of(saved, constants)
        return found

    @property
    def metadata(self) -> dict[str, Any]:
        """What was given to ``save(..., metadata=...)``; what is changed here is saved with the layer."""
        return self._metadata

    def program(self, method: str = "forward") -> Any:
        """The Program that a call in the present mode runs; the first, if constants among its arguments choose."""
        return self.programs(method)[0]

    @located
    def programs(self, method: str = "forward") -> list[Any]:
        """The Programs that a call in the present mode chooses from, by the constants among its arguments."""
        self.signature(method)
        return [variant.program for variant in self._variants(self._methods[method])]

    @property
    def compiled(self) -> list[Compiled]:
        """How each Program runs that has been called; ``print(*layer.compiled)`` says it."""
        variants = [one for method in self._methods.values() for one in method.all()]
        return [compiled(one.runner, self._backend) for one in prepared(variants, self._limits, self._backend)]

    @located
    def _run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.signature(name)
        if state.active() is not None:
            raise TraceError(
                "a loaded layer is called in a function that is being converted",
                hint="Call it outside the converted function.",
                location=state.current().location(),
                code="D2S313",
            )
        modules = self._modules_now()
        arguments, variant, inputs, params = self._chosen(name, args, kwargs, modules)
        inputs = [t.detach() if index in variant.stopped else t for index, t in enumerate(inputs)]
        check_memory(variant.program, inputs, params)
        stores = [self._effect(store.target, store.tree, arguments, modules) for store in variant.stores]
        ready = callee(variant, device_of([*inputs, *params]), self._limits, self._backend)
        with gradient_path("autograd") if self._autograd == "eager" else contextlib.nullcontext():
            return ready.call(arguments, inputs, params, stores)

    def chosen(
        self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Variant, list[torch.Tensor], list[torch.Tensor]]:
        """What a call would run, and on what: a Variant, its Program's inputs, its parameters.

        Errors raised: SignatureError and TypeError, as for the call.
        """
        self.signature(method)
        return self._chosen(method, args, kwargs, self._modules_now())[1:]

    def _chosen(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], modules: dict[str, torch.nn.Module]
    ) -> tuple[Arguments, Variant, list[torch.Tensor], list[torch.Tensor]]:
        try:
            bound = self.signature(name).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        arguments = flatten(dict(bound.arguments))
        variants = self._variants(self._methods[name])
        variant, inputs, params = choose(
            variants, arguments, name, lambda one: [self._tensor(source, modules) for source in one.params])
        return arguments, variant, inputs, params

    def _variants(self, method: Method) -> tuple[Variant, ...]:
        mode = "train" if self.training else "eval"
        if mode not in method.variants:
            other = "eval" if self.training else "train"
            raise SignatureError(
                f"{method.name}() was saved for {other} mode only, and the layer is in {mode} mode",
                hint=f"Call .{other}() on it, or save it for both: save(..., modes=('train', 'eval')).",
                code="D2S312",
            )
        if not torch.is_grad_enabled() and WITHOUT_GRADIENTS[mode] in method.variants:
            mode = WITHOUT_GRADIENTS[mode]
        return method.of(mode)

    # -- what it holds -------------------------------------------------------------------------------------------

    def _modules_now(self) -> dict[str, torch.nn.Module]:
        """Every part by its path, as it is now. Errors raised: SignatureError for what a Program cannot follow."""
        found: dict[str, torch.nn.Module] = {"": self}
        todo: list[tuple[str, torch.nn.Module]] = [("", self)]
        training = self.training
        while todo:
            prefix, module = todo.pop()
            for name, child in module._modules.items():
                if child is None:
                    continue
                path = f"{prefix}{name}"
                found[path] = child
                if child.training is not training:
                    mode = "train" if child.training else "eval"
                    refuse(path, f"is in {mode} mode", "Call train() or eval() on the whole layer.")
                for kind, slots in _HOOKS.items():
                    if any(getattr(child, slot) for slot in slots):
                        refuse(path, f"has {kind} hooks", "The Programs never call it; put them on the whole layer.")
                todo.append((f"{path}.", child))
        self._places.check_parts(found)
        return found

    def _tensor(self, source: State | Constant, modules: dict[str, torch.nn.Module]) -> Any:
        if is_a(source, Constant):
            return getattr(self._constants, f"c{source.index}")
        path, _, name = source.name.rpartition(".")
        self._places.check_part(path, modules.get(path))
        self._places.check_ties(source.name, modules)
        return tensor_at(modules[path], name)

    def _effect(self, target: Target, tree: Any, arguments: Arguments, modules: dict[str, torch.nn.Module]) -> Effect:
        if is_a(target, State):
            path, _, name = target.name.rpartition(".")
            return Effect(Place("attribute", modules[path], name), tree)
        if is_a(target, Constant):
            return Effect(Place("attribute", self._constants, f"c{target.index}"), tree)
        if is_a(target, Attribute):
            return Effect(Place("attribute", modules[target.path], target.name), tree)
        return Effect(_passed(target, arguments), tree)

    @located
    def _check_conversion(self, fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Errors raised: SignatureError (D2S309) if ``fn`` would give a tensor a dtype that a Program cannot take, or
        move constants from where they have no values."""
        for constant in vars(self._constants).values():
            if constant.is_meta and not fn(torch.empty(0, dtype=constant.dtype, device="meta")).is_meta:
                raise SignatureError(
                    "the layer holds constants that no state dict has, and on the device 'meta' they have no values",
                    hint="Load it where it is to run: load(path, device=...).",
                    code="D2S309",
                )
        modules = dict(self.named_modules(remove_duplicate=False))
        for method in self._methods.values():
            for variant in method.all():
                tensors = []
                for source in variant.params:
                    path, _, name = source.name.rpartition(".") if is_a(source, State) else ("", "", "")
                    module = modules.get(path)
                    slots = {} if module is None else {**module._parameters, **module._buffers}
                    tensors.append(slots.get(name) if is_a(source, State) else None)
                check_conversion(variant.program, tensors, fn)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> TranslatedLayer:
        self._check_conversion(fn)
        modules = dict(self.named_modules(remove_duplicate=False))
        tied = self._places.tied(modules)
        super()._apply(fn, recurse)
        self._places.tie(modules, tied)
        with torch.no_grad():
            for name, constant in vars(self._constants).items():
                moved = fn(constant)
                if moved.device != constant.device:  # a constant has the dtype that the Program was traced with
                    kept = constant.to(moved.device).requires_grad_(constant.requires_grad)
                    setattr(self._constants, name, kept)
        self._signatures = {}
        return self

    def artefact(self) -> Artefact:
        """What it takes to save the layer as it is now."""
        modules, tensors = describe_modules(self)
        constants = [getattr(self._constants, f"c{index}") for index in range(len(vars(self._constants)))]
        return Artefact(self.original_type_name, modules, tensors, constants, self._methods, self._metadata)

    def with_artefact(self, artefact: Artefact) -> TranslatedLayer:
        """A layer of another artefact, which runs as this one does and is in the same mode, if it was saved for it."""
        other = TranslatedLayer(artefact, self._autograd, self._limits, self._backend)
        mode = "train" if self.training else "eval"
        if any(mode in method.variants for method in artefact.methods.values()):
            other.train(self.training)
        return other

    def extra_repr(self) -> str:
        """The original type and the saved methods."""
        methods = ", ".join(f"{name}{self.signature(name)}" for name in self._methods)
        return f"{self.original_type_name}: {methods}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_signatures": {}}


def _build(root: TranslatedLayer, artefact: Artefact) -> None:
    """Make the parts, and put parameters and buffers in their places; ties stay ties."""
    parameters: dict[int, torch.nn.Parameter] = {}
    parts: dict[str, torch.nn.Module] = {"": root}
    for entry in artefact.modules:
        parent, _, name = entry.path.rpartition(".")
        if entry.same_as is not None:
            parts[parent]._modules[name] = parts[entry.same_as]
            continue
        if entry.path:
            parts[entry.path] = parts[parent]._modules[name] = Part(entry.type_name, entry.path)
        _fill(parts[entry.path], entry, artefact, parameters)


def _fill(
    part: torch.nn.Module, entry: ModuleEntry, artefact: Artefact, parameters: dict[int, torch.nn.Parameter]
) -> None:
    for name, index in entry.parameters:
        if index is not None and index not in parameters:
            tensor = artefact.tensors[index]
            parameters[index] = torch.nn.Parameter(tensor.detach(), tensor.requires_grad)
        part._parameters[name] = None if index is None else parameters[index]
    for name, index, persistent in entry.buffers:
        part._buffers[name] = None if index is None else artefact.tensors[index]
        if not persistent:
            part._non_persistent_buffers_set.add(name)


def _passed(target: Passed, arguments: Arguments) -> Place:
    owner = follow(arguments, target.path)
    return Place("attribute", owner, target.name) if target.name else Place("content", owner)


__all__ = ["Part", "TranslatedLayer"]
