"""Operators that run in C as one: what goes in, what comes out, and how Python calls it.

A region is all or nothing. It changes nothing that was there before; where it gives up, ``call`` gives None, and the
same Operators run in Python, from the start.

Arguments that a region is the last to read are let go as they die, where nothing can make C give up any more but that
there is no memory, or a signal. That is an exception then: nothing could run again.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import struct
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Operator, Variable
from runtime.native import build
from runtime.native.layout import Layout, layout_of
from runtime.native.lowering import Lowering
from runtime.native.outer import Input
from runtime.native.results import reading
from runtime.native.serving import Call, words_of
from runtime.native.stack import Stack
from runtime.native.values import GONE, UNKNOWN, Items, Number, Stacked, Tensor, Value
from runtime.native.writer import BAIL, annotated, bare

_tokens = itertools.count(1)
_calls: dict[int, Call] = {}


def _serve(token: int, what: int, address: int) -> int:
    call = _calls[token]
    try:
        if what >= 0:
            call.operator(what, address)
        elif what == -2:
            call.results()
        elif what == -3:
            call.sources[ctypes.c_int64.from_address(address).value] = None
        elif what == -4:
            call.memory(address)
        elif what == -5:
            call.forget(address)
        elif what == -6:
            call.result(address)
        elif what == -7:
            call.let_go(ctypes.c_int64.from_address(address).value)
        return 0
    except BaseException as error:
        call.error = error
        return 1


CALLBACK = build.Callback(_serve)
"""The one function that C calls: -1 lets Python handle signals, -2 hands over results, -3 gives back what an
Operator gave, -4 asks for memory, -5 gives it back, -6 asks for that of an output, -7 lets an argument go, others are
Operators."""

Layouts = Mapping[Variable, Layout]
"""How arguments lie in memory, where that is not row after row."""
Shape = tuple[tuple[int, ...], torch.dtype]
OWN = 1 << 13
"""Bytes from which on copying a result takes longer than asking for its memory."""
_QUICKER = (3, 24, 192)
"""After how many calls the arguments' tensors are held against those of the last."""
MOST_VARIANTS = 4
"""For how many layouts of its arguments a region is written once more."""

PATIENCE = 20
"""How often in a row a region may give up before it is left to Python."""


@dataclass
class Region:
    """A region's C function, and what Python has to know to call it."""

    name: str
    inputs: list[Input]
    outputs: list[Value | Stacked]
    calls: list[tuple[Operator, list[Variable]]]
    text: str
    """Its C, with the user's lines as comments."""
    random: bool
    size: int
    library: Library
    counters: list[int]
    """The Blocks' counters that stand behind the results."""
    strict: bool
    """Whether gradients may be recorded in it although they are off where it is called."""
    lets_go: bool = False
    """Whether arguments may be gone when it has run."""
    places: list[int] = field(default_factory=list)
    """Where its inputs stand among the arguments, where that is not their own order."""
    shapes: list[Shape | None] = field(default_factory=list)
    """The sizes and dtypes of outputs whose memory Python makes."""
    hits: list[int] = field(default_factory=list)
    """The executable's counters."""
    failures: int = 0
    room: int = 0
    """Bytes of all small stacks that the last call gave."""
    packed: dict[tuple[int, bool], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    """Matrices that never change, by identity, and their panels."""
    again: Callable[[Layouts], Region | None] | None = None
    """Writes it once more, for other layouts."""
    variants: dict[tuple[Any, ...], Region | None] = field(default_factory=dict)
    """Layouts of the arguments -> the region for them."""
    _favourite: Region | None = None
    """The variant that served the last call."""
    _run: Callable[..., Any] | None = None
    _slow: Callable[..., Any] | None = None
    """What serves all calls; ``_run`` may be quicker for those like an earlier one."""
    _function: Any = None
    _served: int = 0

    @property
    def given_up(self) -> bool:
        """Whether it is left to Python from now on."""
        return self.failures > PATIENCE

    def call(self, arguments: list[Any]) -> tuple[Any, ...] | None:
        """The values of the outputs; None where Python has to do it. Arguments that are gone are None in the list."""
        if self.failures > PATIENCE:
            return None
        if self._favourite is not None:
            found = self._favourite.call(arguments)
            if found is not None:
                return found
        if self._run is None:
            try:
                self._run = self._prepare()
            except build.BuildError as error:
                if build.strict:
                    raise
                self.library.error = str(error)
                warnings.warn(f"{error}; the interpreter runs what was to be compiled", RuntimeWarning, stacklevel=2)
                self.failures = PATIENCE + 1
                return None
        before = self.failures
        quicker = self._runner(self._function, arguments) if self._served + 1 in _QUICKER else None
        found = self._run(arguments)
        if found is not None:
            self._favourite = None
            self._served += 1
            self._run = quicker or self._run
        return self._in_another_layout(arguments) if found is None and self.failures == before else found

    def _in_another_layout(self, arguments: list[Any]) -> tuple[Any, ...] | None:
        """What a region for arguments that lie like these gives; None if that is not why this one did not run."""
        if self.again is None:
            return None
        layouts = tuple(layout_of(arg) if one.kind == "tensor" and type(arg) in _KINDS else None
                        for one, arg in zip(self.inputs, arguments))  # fmt: skip
        if not any(layouts):
            return None
        if layouts not in self.variants and len(self.variants) < MOST_VARIANTS:
            made = self.again({one.var: layout for one, layout in zip(self.inputs, layouts) if layout})
            places = {one.var: place for place, one in enumerate(self.inputs)}
            if made is not None and all(one.var in places for one in made.inputs):
                made.places = [places[one.var] for one in made.inputs]
                self.variants[layouts] = made
            else:
                self.variants[layouts] = None
        variant = self.variants.get(layouts)
        if variant is None:
            return None
        variant.hits = self.hits
        results = variant.call(arguments)
        self._favourite = variant if results is not None else None
        return results

    def _panels(self, matrix: torch.Tensor, turned: bool) -> int:
        """The address of a matrix in panels; it is packed when it is first asked for, and kept."""
        found = self.packed.get((id(matrix), turned))
        if found is None:
            letter, size = ("f", 4) if matrix.dtype is torch.float32 else ("d", 8)
            k, n = matrix.shape[::-1] if turned else matrix.shape
            library = self.library.loaded()
            count = getattr(library, f"d2s_panels_{letter}")
            count.restype = ctypes.c_int64
            whole, step = ctypes.c_int64, matrix.shape[1]
            panels = torch.empty(count(whole(n), whole(k)) + 64 // size, dtype=matrix.dtype)
            panels = panels[-panels.data_ptr() % 64 // size :]
            getattr(library, f"d2s_pack_{letter}")(
                int(turned), whole(n), whole(k), ctypes.c_void_p(matrix.data_ptr()), whole(step),
                ctypes.c_void_p(panels.data_ptr()))  # fmt: skip
            found = self.packed[id(matrix), turned] = (matrix, panels)
        return found[1].data_ptr()

    def gave_up(self, call: Call, failed: int) -> None:
        """C gave up. Errors raised: why it did, where that is KeyboardInterrupt and the like, or arguments are gone."""
        self.failures += 1
        if call.error is not None and (failed > 1 or not isinstance(call.error, Exception)):
            raise call.error
        if failed > 1:
            raise MemoryError

    def _prepare(self) -> Callable[..., Any]:
        function = getattr(self.library.loaded(), self.name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
        function.restype = ctypes.c_int64
        self._function = function
        self._slow = self._runner(function)
        assert self._slow is not None
        return self._slow

    def _runner(self, function: Any, example: Sequence[Any] | None = None) -> Callable[..., Any] | None:
        """The function that checks arguments, writes them as words, calls C and reads the results.

        Its text is made of names and numbers of ours. ``example``: arguments that went well; then tensors are held
        against those by one test of PyTorch's, and what differs is served as ever. None if there is no such test.
        """
        names = [f"a{index}" for index in range(len(self.inputs))]
        space: dict[str, Any] = {
            "plain": torch_internals.is_plain_memory, "grad": torch.is_grad_enabled, "Call": Call, "calls": _calls,
            "tokens": _tokens, "counters": self.counters, "hits": self.hits, "call_c": function,
            "Out": ctypes.c_int64 * max(self.size, 1), "address": ctypes.addressof, "operators": self.calls,
            "read": reading(self.outputs) if self.outputs else None, "shapes": self.shapes,
            "errors": (struct.error, OverflowError),
            "region": self, "gave_up": self.gave_up,
            "state": torch.default_generator.get_state, "restore": torch.default_generator.set_state,
            "extend": _extend, "KINDS": _KINDS, "layout_of": layout_of, "panels": self._panels,
        }  # fmt: skip
        places = self.places or range(len(names))
        picked = "".join(f"given[{place}], " for place in self.places) or "given"
        lines = ["def run(given):", f" [{', '.join(names)}] = {picked}"]
        formats: list[str] = []
        words: list[str] = []
        lists: list[tuple[str, Input]] = []
        tensors: list[str] = []
        alike: list[tuple[str, torch.Tensor]] = []
        for place, name, one in zip(places, names, self.inputs):
            known = None if example is None else example[place]
            if one.kind == "tensor" and isinstance(known, torch.Tensor):
                alike.append((name, known))
                tensors.append(name)
                steps = known.stride() if one.steps else ()
                formats.append("q" * (1 + known.dim() + len(steps)))
                words.append(", ".join([f"{name}.data_ptr()", *map(str, (*known.shape, *steps))]))
            elif one.kind == "tensor":
                like = one.value
                assert isinstance(like, Tensor)
                space[f"d_{name}"] = like.dtype
                recorded = f"{name}.requires_grad" + ("" if self.strict else " and grad()")
                rows = name if like.straight else f"{name}.permute({like.order})"
                lies = f"{rows}.is_contiguous()"
                if one.steps:
                    space[f"lies_{name}"] = one.layout
                    lies = f"layout_of({name}) == lies_{name}"
                check = (f"type({name}) in KINDS and {name}.dtype is d_{name} and {name}.dim() == {like.rank} and "
                         f"{lies} and plain({name}) and not ({recorded})")  # fmt: skip
                strides = f", *{name}.stride()" if one.steps else ""
                formats.append("q" * (1 + like.rank + len(one.steps)))
                tensors.append(name)
                if like.null:
                    lines.append(f" if {name} is None: w_{name} = (-1, {'0, ' * (like.rank + len(one.steps))})")
                    lines.append(f" elif {check}: w_{name} = ({name}.data_ptr(), *{name}.shape{strides})")
                    lines.append(" else: return None")
                    words.append(f"*w_{name}")
                else:
                    lines.append(f" if not ({check}): return None")
                    words.append(f"{name}.data_ptr(), *{name}.shape{strides}")
            elif one.kind == "packed":
                formats.append("q")
                words.append(f"panels({name}, {one.turned})")
            elif one.kind == "list":
                lists.append((name, one))
                formats.append("qq")
                words.append(f"at_{name}, n_{name}")
            else:
                kind = {"int": int, "float": float, "bool": bool}[one.kind]
                space[f"d_{name}"] = kind
                lines.append(f" if type({name}) is not d_{name}: return None")
                formats.append("d" if one.kind == "float" else "q")
                words.append(name)
        if example is not None:
            test = torch_internals.tensor_test([(known, None) for _, known in alike]) if alike else None
            if test is None:
                return None
            space |= {"test": test, "slow": self._slow}
            recorded = " or grad()" if any(known.requires_grad for _, known in alike) else ""
            lines.insert(2, f" if not test({', '.join(name for name, _ in alike)}){recorded}: return slow(given)")
        head = "".join(formats)
        space["pack"] = struct.Struct("<" + head).pack
        lines.append(f" sources = [{', '.join(tensors)}]")
        if lists:
            lines.append(" tail = []")
            lines.append(f" at = {struct.calcsize('<' + head) // 8}")
            for name, one in lists:
                space[f"like_{name}"] = one.value
                lines.append(f" at_{name} = at")
                quick = _quick_stack(name, one.value, space)
                if quick is not None:
                    lines += quick
                lines.append(f" {'else' if quick else 'if 1'}:")
                lines.append(f"  n_{name} = extend({name}, like_{name}, tail, sources)")
                lines.append(f"  if n_{name} is None: return None")
                lines.append(f"  at += len(tail[-1]) // 8 if n_{name} != -1 else 0")
        lines.append(f" try: words = pack({', '.join(words)})")
        lines.append(" except errors: return None")
        if lists:
            lines.append(" words = b''.join([words, *tail])")
        lines.append(" out = Out()")
        lines.append(" token = next(tokens)")
        lines.append(" call = calls[token] = Call(operators, read, sources, out, shapes)")
        stacks = any(type(one) is Stacked for one in self.outputs)
        if stacks:
            lines.append(" if region.room: out[0], out[1] = call.take(region.room)")
        if self.lets_go:
            space["places"] = [place for place, one in zip(places, self.inputs) if one.kind == "tensor"]
            lines.append(" call.given, call.places = given, places")
            lines.append(f" del sources, {', '.join(tensors)}")
        if self.counters:
            lines.append(" call.counters = counters")
        if self.random:
            lines.append(" before = state()")
        lines.append(" try: failed = call_c(words, address(out), token)")
        lines.append(" finally: del calls[token]")
        lines.append(" if failed:")
        if self.random:
            lines.append("  restore(before)")
        lines.append("  gave_up(call, failed)")
        lines.append("  return None")
        lines.append(" region.failures = 0")
        if stacks:
            lines.append(" region.room = call.needed")
        if self.counters:
            lines.append(" for index, count in zip(counters, call.hits): hits[index] += count")
        lines.append(" return call.found")
        exec(compile("\n".join(lines) + "\n", "<region>", "exec"), space)
        run: Callable[..., Any] = space["run"]
        return run


_KINDS = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})


_GONE = struct.pack("<q", GONE)


def _extend(items: Any, like: Items, tail: list[bytes], sources: list[Any]) -> int | None:
    """The words of a list's items; how many, -1 for None, and None where C cannot take it."""
    if items is None:
        return -1
    if type(items) is Stack:
        return _stack_in(items, like, tail, sources)
    if type(items) is not list:
        return None
    item = like.item
    if isinstance(item, Number):
        kind = {"int": int, "float": float, "bool": bool}[item.kind]
        given = items if None not in items else [one for one in items if one is not None]
        if not {kind}.issuperset(map(type, given)):
            return None
        try:
            packed = struct.pack(f"<{len(given)}{'d' if item.kind == 'float' else 'q'}", *given)
        except (struct.error, OverflowError):
            return None
        if _GONE in packed:
            return None
        if given is not items:
            words_of = iter(packed[at : at + 8] for at in range(0, len(packed), 8))
            packed = b"".join(_GONE if one is None else next(words_of) for one in items)
        tail.append(packed)
        return len(items)
    words: list[int] = []
    rank, recording = item.rank, torch.is_grad_enabled()
    for one in items:
        if one is None:
            words += [-1] + [0] * (1 + rank)
            continue
        if not (type(one) in _KINDS and one.dtype is item.dtype and one.dim() == rank and one.is_contiguous()
                and torch_internals.is_plain_memory(one) and not (recording and one.requires_grad)):  # fmt: skip
            return None
        if any(known not in (-1, size) for known, size in zip(item.dims, one.shape)):
            return None
        words += [len(sources), one.data_ptr(), *one.shape]
        sources.append(one)
    tail.append(struct.pack(f"<{len(words)}q", *words))
    return len(items)


def _stack_in(stack: Stack, like: Items, tail: list[bytes], sources: list[Any]) -> int | None:
    """The words of a stack: whose memory, where, how many, the sizes of one."""
    item, shape = like.item, stack.shape
    if not isinstance(item, Tensor) or stack.dtype is not item.dtype or len(shape) != len(item.dims) + 1:
        return None
    if shape[1:] != item.dims and any(known not in (-1, size) for known, size in zip(item.dims, shape[1:])):
        return None
    tail.append(struct.pack(_FORMATS[len(shape)], len(sources), stack.address, *shape))
    sources.append(stack)
    return -2


def _quick_stack(name: str, like: Value, space: dict[str, Any]) -> list[str] | None:
    """Lines that write the words of a list where it is a stack of the right form; None if it never is."""
    item = like.item if isinstance(like, Items) else None
    if not isinstance(item, Tensor):
        return None
    space |= {"Stack": Stack, f"dtype_{name}": item.dtype, f"pack_{name}": struct.Struct(_FORMATS[item.rank + 1]).pack}
    known = [f"{name}.shape[{dim + 1}] == {size}" for dim, size in enumerate(item.dims) if size not in (-1, UNKNOWN)]
    test = " and ".join([f"type({name}) is Stack", f"{name}.dtype is dtype_{name}",
                         f"len({name}.shape) == {item.rank + 1}", *known])  # fmt: skip
    return [
        f" if {test}:",
        f"  n_{name} = -2",
        f"  tail.append(pack_{name}(len(sources), {name}.address, *{name}.shape))",
        f"  sources.append({name})",
        f"  at += {item.rank + 3}",
    ]


_FORMATS = [f"<{2 + rank}q" for rank in range(65)]
"""Of the words of a stack, by the rank of all its rows."""


class Library:
    """The C of one Program, compiled when its first region runs."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.built: build.Built | None = None
        self.error = ""
        """Why it could not be built."""
        self._count = 0

    def loaded(self) -> ctypes.CDLL:
        """The library. Further regions that were written since are compiled, too."""
        if self.built is None or self._count != len(self.functions):
            count = len(self.functions)
            self.built = build.build("\n".join(self.functions[:count]), CALLBACK)
            self._count = count
        return self.built.library


def finish(low: Lowering, name: str, results: Sequence[Variable], library: Library, ops: Sequence[Operator],
           stacks: Collection[Variable] = ()) -> Region:  # fmt: skip
    """The region of what was lowered. Errors raised: Unsupported if a result has no form outside of C."""
    w = low.w
    low.flush()
    inputs = low.inputs
    outputs: list[Value | Stacked] = []
    size = 0
    for var in results:
        value = low.value(var)
        if isinstance(value, Tensor):
            low.memory(value)
            low.flush()
        found = stacked(low, value) if var in stacks and isinstance(value, Items) else value
        outputs.append(found)
        size += words_of(found)
    shapes = _own_memory(w.lines, outputs)
    gone = _let_go(low)
    at = 0
    for output in outputs:
        _write(low, output, at)
        at += words_of(output)
    w.line("d2s_tidy(c); failed = c->call(c->token, -2, out);" if outputs or low.hits else "failed = 0;")
    body = w.lines
    for local in low.hits.values():
        w.lines.insert(len(w.lines) - 1, f"  out[{size}] = {local};")
        size += 1
    prologue = _prologue(low, inputs, gone)
    lines = [
        f"i64 {name}(const i64 *in, i64 *out, i64 token) {{", *w.locals, "  char stack[16384] "
        "__attribute__((aligned(64)));", "  ctx room, *c = &room; i64 failed = 1, objects = (i64)1 << 40;",
        "  memset(c, 0, sizeof(ctx)); c->token = token; c->call = d2s_callback; c->bump = stack; c->left = 16384;",
        *(["  c->room = (char *)out[0]; c->space = out[1];"] if any(type(one) is Stacked for one in outputs) else []),
        *prologue, *w.head, *body, "  goto done;",
        "bail: __attribute__((cold)); failed = 1;",  # else the compiler takes all that follows many checks for rare
        "done: d2s_end(c); return failed ? 1 + c->gone : 0;", "}",
    ]  # fmt: skip
    text = "\n".join(lines)
    library.functions.append(bare(text))
    calls = [(op, list(dict.fromkeys(op.inputs))) for op, _ in low.calls]
    strict = any(op.grad_mode == "on" for op in _all(ops))
    seen = annotated(text, w.places)
    return Region(name, inputs, outputs, calls, seen, low.random, size, library, list(low.hits), strict, bool(gone),
                  shapes=shapes)  # fmt: skip


_RAISES = re.compile(r"if \(!\((b|l)\d+ = (d2s_|l_)\w+\(c, [^;]*\)\)\) goto bail;|if \(d2s_spin\(c\)\) goto bail;")
"""Where C gives up because there is no memory, or a signal came."""


def _let_go(low: Lowering) -> set[int]:
    """Let arguments go after their last use, and after the last line where Python may have to begin again; their
    numbers."""
    lines = low.w.lines
    low.end()
    last = max((at for at, line in enumerate(lines) if BAIL in _RAISES.sub("", line)), default=-1)
    waiting: list[int] = []
    found: set[int] = set()
    inserted: list[tuple[int, str]] = []
    for at, dead in low.ends:
        waiting += [t.n for t in dead if not t.mine]
        if at > last and waiting:
            inserted.append((at, "  " + " ".join(f"d2s_put(c, b{n});" for n in waiting)))
            found.update(waiting)
            waiting = []
    for at, line in reversed(inserted):
        lines.insert(at, line)
    return found


def _own_memory(lines: list[str], outputs: Sequence[Value | Stacked]) -> list[Shape | None]:
    """Let outputs of a certain size be computed in the memory of the tensors that they become; their forms."""
    places = {line.split("(b", 1)[1].split(" ", 1)[0]: place for place, line in enumerate(lines) if "d2s_new(" in line}
    found: list[Shape | None] = []
    for number, output in enumerate(outputs):
        place = places.get(str(output.n)) if isinstance(output, Tensor) else None
        if place is None or not isinstance(output, Tensor) or output.strides is not None or not output.straight:
            found.append(None)
            continue
        sizes = tuple(size for size in output.dims if isinstance(size, int))
        fits = len(sizes) == output.rank and math.prod(sizes) * output.dtype.itemsize >= OWN
        found.append((sizes, output.dtype) if fits else None)
        if fits:
            head, _, tail = lines[place].partition("d2s_new(")
            lines[place] = f"{head}d2s_out({tail.replace('))) goto', f', {number}))) goto', 1)}"
    return found


def _all(ops: Sequence[Operator]) -> Iterator[Operator]:
    for op in ops:
        yield op
        for block in op.blocks:
            yield from block.walk()


def stacked(low: Lowering, items: Items) -> Value | Stacked:
    """The items as rows of one tensor, which is there if there are any and they have one size, and are not ``BIG``:
    those leave C without a copy, and beside copies of them they would be twice as much."""
    if not isinstance(items.item, Tensor):
        return items
    w, n, rank, width = low.w, items.n, items.item.rank, items.width
    rows = low.blank(items.item.dtype, (0,) * (rank + 1))
    for dim in range(rank + 1):
        w.declare("i64", f"d{rows.n}_{dim}")
    rows.dims = tuple(f"d{rows.n}_{dim}" for dim in range(rank + 1))
    with w.block(f"if (l{n} && l{n}->len)"):
        w.line(f"i64 *first = l{n}->at, same = 1, size = 1;")
        w.line(f"for (i64 d = 0; d < {rank}; d++) size *= first[3 + d];")
        w.line(f"for (i64 i = 0; i < l{n}->len; i++) {{ i64 *t = first + i * {width};")
        w.line(f"  if (!t[0] || memcmp(t + 3, first + 3, 8 * {rank})) same = 0; }}")
        w.line(f"size *= sizeof({rows.ctype});")
        with w.block("if (same && size <= BIG)"):
            w.line(f"if (!(b{rows.n} = d2s_room(c, size * l{n}->len))) goto bail;")
            w.line(f"p{rows.n} = ({rows.ctype} *)b{rows.n}->data; o{rows.n} = ++objects; d{rows.n}_0 = l{n}->len;")
            for dim in range(rank):
                w.line(f"d{rows.n}_{dim + 1} = first[{3 + dim}];")
            w.line(f"for (i64 i = 0; i < l{n}->len; i++) "
                   f"d2s_copy(b{rows.n}->data + i * size, (void *)first[i * {width} + 1], size);")  # fmt: skip
    return Stacked(items, rows)


def _write(low: Lowering, value: Value | Stacked, at: int) -> None:
    """What C tells Python of a result."""
    w = low.w
    if isinstance(value, Stacked):
        _write(low, value.rows, at)
        _write(low, value.items, at + words_of(value.rows))
    elif isinstance(value, Number):
        w.line(f"out[{at}] = {value.has}; out[{at + 1}] = "
               f"{f'as_word({value.text})' if value.kind == 'float' else value.text};")  # fmt: skip
    elif isinstance(value, Items):
        w.line(f"out[{at}] = l{value.n} ? l{value.n}->len : -1; out[{at + 1}] = l{value.n} ? (i64)l{value.n}->at : 0;")
    elif isinstance(value, Tensor):
        n = value.n
        strides = low.strides(value)
        parts = [f"out[{at}] = (i64)b{n};"]
        inner = [f"out[{at + 1}] = b{n}->src; out[{at + 2}] = (char *)p{n} - b{n}->data; out[{at + 3}] = o{n};",
                 f"out[{at + 4}] = (i64)b{n}->data; out[{at + 5}] = b{n}->size;"]  # fmt: skip
        for dim in range(value.rank):
            inner.append(f"out[{at + 6 + dim}] = {value.dims[dim]};")
            inner.append(f"out[{at + 6 + value.rank + dim}] = {strides[dim]};")
        w.line(f"{parts[0]} if (b{n}) {{ {' '.join(inner)} }}")


def _prologue(low: Lowering, inputs: list[Input], gone: Collection[int]) -> list[str]:
    """The inputs' locals, from the words that Python wrote. ``gone``: the numbers of those that are let go."""
    lines: list[str] = []
    sources = [one for one in inputs if one.kind == "tensor"]
    if sources:
        lines.append(f"  buf given[{len(sources)}]; memset(given, 0, sizeof(given));")
    at, number = 0, 0
    for one in inputs:
        value = one.value
        if isinstance(value, Tensor) and one.kind == "tensor":
            n = value.n
            count = f"1; given[{number}].cls = 63" if n in gone else "(i64)1 << 40"
            lines.append(f"  given[{number}].rc = {count}; given[{number}].src = {number}; "
                         f"given[{number}].data = (char *)in[{at}];")  # fmt: skip
            guard = f"if (in[{at}] != -1) " if value.null else ""
            lines.append(f"  {guard}{{ b{n} = &given[{number}]; p{n} = ({value.ctype} *)in[{at}]; "
                         f"o{n} = {number + 1}; }}")  # fmt: skip
            for dim in range(value.rank):
                own = one.dims[dim]
                if isinstance(own, int):
                    lines.append(f"  if ({'b' + str(n) + ' && ' if value.null else ''}in[{at + 1 + dim}] != {own}) "
                                 "goto bail;")  # fmt: skip
                elif own in one.new:
                    lines.append(f"  {own} = in[{at + 1 + dim}];")
                else:
                    lines.append(f"  if (in[{at + 1 + dim}] != {own}) goto bail;")
            total = " * ".join(f"in[{at + 1 + dim}]" for dim in range(value.rank)) or "1"
            lines.append(f"  given[{number}].size = sizeof({value.ctype}) * {total};")
            at += 1 + value.rank
            for dim, step in enumerate(one.steps):
                if isinstance(step, str):
                    lines.append(f"  {step} = in[{at + dim}];")
            at += len(one.steps)
            number += 1
        elif one.kind == "packed":
            assert isinstance(value, Tensor)
            lines.append(f"  k{value.n} = (const {value.ctype} *)in[{at}];")
            at += 1
        elif isinstance(value, Items):
            lines += _list_in(value, at)
            at += 2
        else:
            assert isinstance(value, Number)
            lines.append(f"  {value.text} = {f'as_double(in[{at}])' if value.kind == 'float' else f'in[{at}]'};")
            at += 1
    return lines


def _list_in(value: Items, at: int) -> list[str]:
    n, item = value.n, value.item
    if isinstance(item, Number):
        lines = [f"  if (in[{at + 1}] >= 0) {{ if (!(l{n} = l_new(c, 1, 0, in[{at + 1}]))) goto bail;",
                 f"    d2s_copy(l{n}->at, in + in[{at}], 8 * in[{at + 1}]); l{n}->len = in[{at + 1}]; }}"]  # fmt: skip
    else:
        lines = [f"  if (in[{at + 1}] != -1) {{",
                 f"    l{n} = l_in(c, in + in[{at}], in[{at + 1}], {item.rank}, {item.dtype.itemsize}, objects);",
                 f"    if (!l{n}) goto bail;",
                 f"    objects += l{n}->len; }}"]  # fmt: skip
    if not value.null:
        lines.append(f"  if (!l{n}) goto bail;")
    return lines


__all__ = ["CALLBACK", "Library", "Region", "finish"]
