"""A Program made runnable: the reference executor, one ATen call after another.

It runs under whatever autograd mode its caller has, so gradients are PyTorch's own. Every other executor is held
against this one.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from runtime import torch_internals
from runtime.executor import coverage as coverage_of_blocks
from runtime.executor import liveness, ownership, reuse, tested, traceback
from runtime.executor.emitter import Emitter
from runtime.executor.modes import Modes
from runtime.ir import Operator, Program
from runtime.ops.registry import STRUCTURAL

_numbers = itertools.count()


@dataclass(frozen=True)
class _Variant:
    """The generated code for one grad mode of the caller."""

    function: Callable[..., list[Any]]
    source: str
    filename: str
    operators: list[Operator | None]
    for_ordinary_calls: bool
    """Whether it may only run where ``reuse.ordinary`` holds."""


class Executable:
    """A compiled Program; made by ``compile_program``. ``run`` may be called from any number of threads at once."""

    def __init__(
        self, program: Program, functions: Mapping[str, Callable[..., Any]],
        exceptions: Mapping[str, type[BaseException]], coverage: bool, consuming: bool,
        memory: reuse.Memory = reuse.USUAL,
    ) -> None:
        self.program = program
        self._memory = memory
        self._consuming = consuming
        self._functions = functions
        self._exceptions = exceptions
        self._live = liveness.analyse(program, consuming=consuming)
        self._tested = tested.tested(program)
        self._blocks = coverage_of_blocks.numbered(program) if coverage else []
        self._hits = [0] * len(self._blocks)
        self._counted = {id(block): index for index, (block, _, _) in enumerate(self._blocks)} if coverage else None
        self._variants: dict[tuple[bool, bool], _Variant] = {}
        self._lock = threading.Lock()
        self._variant(torch.is_grad_enabled())

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat results of the Program, in the order of its main Block's yields; values that do not exist are None.

        Errors raised: whatever the operators raise, as in eager PyTorch, with the user's line in the traceback.
        """
        if self._may_set_device_aside():
            with torch_internals.without_default_device():
                return self.run(inputs, params)
        grad = torch.is_grad_enabled()
        variant = self._variants.get((grad, True)) or self._variant(grad)
        if variant.for_ordinary_calls and not reuse.ordinary(inputs, params):
            variant = self._variant(grad, ordinary=False)
        try:
            return variant.function(inputs) if self._consuming else variant.function(*inputs, *params)
        except BaseException as error:
            raise traceback.locate(error, variant.filename, variant.operators)  # noqa: B904  # the same exception

    def _may_set_device_aside(self) -> bool:
        """Whether there is a default device that nothing in the Program could ask for: PyTorch's operators are told
        where to make tensors, what others wrote may not be."""
        return torch_internals.only_a_default_device() and not self._asks_others

    @functools.cached_property
    def _asks_others(self) -> bool:
        """Whether it calls what is neither PyTorch's nor ours."""
        return bool(self._functions) or any(
            op.name not in STRUCTURAL and not op.name.startswith("aten.") for op in self.program.block.walk()
        )

    def attempt(
        self, arguments: Sequence[Any], failed: Callable[[BaseException, Operator | None], None]
    ) -> None:
        """Run it to see whether that works: ``failed`` gets an exception and the Operator it is from."""
        variant = self._variant(torch.is_grad_enabled(), ordinary=False)
        try:
            variant.function(*arguments)
        except Exception as error:
            entry, found = error.__traceback__, None
            while entry is not None:
                if entry.tb_frame.f_code.co_filename == variant.filename:
                    found = variant.operators[entry.tb_lineno - 1]
                entry = entry.tb_next
            failed(error, found)

    def source(self, *, grad: bool = True) -> str:
        """The generated Python, for reading; ``grad``: the variant for callers with gradients enabled."""
        return self._variant(grad).source

    def coverage_report(self) -> coverage_of_blocks.Coverage:
        """Which Blocks have run so far, and how often. Errors raised: ValueError if they are not counted."""
        if self._counted is None:
            raise ValueError("blocks are counted only in a Program that was compiled with coverage=True")
        return coverage_of_blocks.Coverage(tuple(
            coverage_of_blocks.BlockRuns(what, location, runs)
            for (_, what, location), runs in zip(self._blocks, self._hits)
        ))

    def _variant(self, grad: bool, *, ordinary: bool = True) -> _Variant:
        with self._lock:
            if (grad, ordinary) not in self._variants:
                self._variants[grad, ordinary] = self._generate(grad, ordinary)
            return self._variants[grad, ordinary]

    def _emitter(self, *args: Any) -> Emitter:
        """What writes the code."""
        return Emitter(*args)

    def _generate(self, grad: bool, ordinary: bool) -> _Variant:
        filename = f"<program {next(_numbers)}>"
        owners = ownership.analyse(self.program, self._live, grad=grad, reusing=ordinary, memory=self._memory,
                                   backward=self._consuming)  # fmt: skip
        emitter = self._emitter(
            self.program, self._live, owners, self._functions, self._exceptions, Modes("on" if grad else "off"),
            self._counted, self._tested if ordinary else frozenset(), self._consuming,
        )
        source, operators, main = emitter.write()
        namespace = emitter.namespace
        namespace["hits"] = self._hits
        namespace["locate"] = lambda error: traceback.locate(error, filename, operators)
        code: CodeType = compile(source, filename, "exec")
        exec(code, namespace)  # our own generated text: names and numbers only, see Emitter
        return _Variant(namespace[main], source, filename, operators, emitter.for_ordinary_calls)


def compile_program(
    program: Program, *, functions: Mapping[str, Callable[..., Any]] | None = None,
    exceptions: Mapping[str, type[BaseException]] | None = None, coverage: bool = False, consuming: bool = False,
    kept: Collection[int] = (), memory: reuse.Memory = reuse.USUAL,
) -> Executable:
    """Make a Program runnable.

    ``functions`` are those that ``py_func`` operators name; ``exceptions`` are classes, beside the builtins, that
    ``raise`` and ``assert`` name; with ``coverage`` the runs of every Block are counted. ``consuming``: ``run``
    is given all arguments in one list, which it empties: each is dropped after its last use. ``kept``: positions of
    yields that only Programs compiled here read, so that they may have any form (here they are what they are).
    ``memory``: where results may be written.

    Errors raised: ProgramError for an unknown operator, or a ``py_func`` whose function was not given.

    >>> from runtime.ir.parser import parse_program
    >>> program = parse_program('''program "f" {
    ...   input %x : f32[2] = "x"
    ...   %y : f32[2] = aten.add.Tensor(%x, %x)
    ...   return %y as $0
    ... }''')
    >>> compile_program(program).run([torch.ones(2)], [])
    [tensor([2., 2.])]
    """
    return Executable(program, dict(functions or {}), dict(exceptions or {}), coverage, consuming, memory)
