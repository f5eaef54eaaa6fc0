"""Mistakes of users, made from what PyTorch and Python have: wrong arguments, indices, names, shapes and dtypes.

A *subject* is a value that user code holds (a tensor, its size, a number of the run, a list that grew). A *mistake* is
one statement about it, most of which raise in eager: each method with each of a set of argument lists, each operator
with each of a set of values, items, attributes, unpacking, Python's own functions. A *place* is where in the converted
function the statement stands. ``outcome`` runs the function converted and not, and says how the two compare.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import functools
import linecache
import math
import re
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

import dy2static
from runtime.errors import Dy2StaticError
from tests import oracle

# ----------------------------------------------------------------------------------------------- what user code holds


def helper(a: Any, b: Any = 1) -> Any:
    """A function of the user's."""
    return a + b


class Thing:
    """A class of the user's."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def twice(self, other: Any) -> Any:
        """What a method gives."""
        return self.held * 2 + other


@dataclass
class Record:
    """A dataclass of the user's."""

    first: Any
    second: int = 2


Pair = collections.namedtuple("Pair", "left right")

_GROWN = "    v = []\n    i = 0\n    while i < x.sum():\n        v.append({})\n        i = i + 1\n"

SUBJECTS: dict[str, tuple[str, type]] = {
    "tensor": ("    v = x\n", torch.Tensor),
    "result": ("    v = x * 2\n", torch.Tensor),
    "number": ("    v = x.sum()\n", torch.Tensor),
    "empty": ("    v = x[:0]\n", torch.Tensor),
    "integers": ("    v = x.long()\n", torch.Tensor),
    "complex": ("    v = torch.complex(x, x)\n", torch.Tensor),
    "shape": ("    v = x.shape\n", torch.Size),
    "size": ("    v = x.shape[0]\n", int),
    "int": ("    v = int(x.sum())\n", int),
    "float": ("    v = float(x.sum())\n", float),
    "bool": ("    v = bool(x.sum() > 0)\n", bool),
    "text": ("    v = f'{int(x.sum())}'\n", str),
    "list": ("    v = [x, 1]\n", list),
    "dict": ("    v = {'a': x, 'b': 1}\n", dict),
    "tuple": ("    v = (x, 1)\n", tuple),
    "set": ("    v = {1, 2}\n", set),
    "deque": ("    v = deque([x, 1], 3)\n", collections.deque),
    "str": ("    v = 'abc'\n", str),
    "grown": (_GROWN.format("x * i"), list),
    "grown_numbers": (_GROWN.format("i"), list),
    "grown_pairs": (_GROWN.format("(x, i)"), list),
    "list_of_a_path": ("    v = [x]\n    if x.sum() > 0:\n        v.append(x)\n", list),
    "dict_of_a_path": ("    v = {'a': x}\n    if x.sum() > 0:\n        v['b'] = x\n", dict),
    "set_of_a_path": ("    v = {1}\n    if x.sum() > 0:\n        v.add(2)\n", set),
    "one_of_two": ("    v = 1\n    if x.sum() > 0:\n        v = x\n", torch.Tensor),
    "perhaps_none": ("    v = None\n    if x.sum() > 0:\n        v = x\n", torch.Tensor),
    "none": ("    v = None\n", type(None)),
    "module": ("    v = LINEAR\n", torch.nn.Linear),
    "convolution": ("    v = CONV\n", torch.nn.Conv1d),
    "modules": ("    v = MODULES\n", torch.nn.ModuleList),
    "function": ("    v = helper\n", types.FunctionType),
    "thing": ("    v = Thing(x)\n", Thing),
    "record": ("    v = Record(x)\n", Record),
    "pair": ("    v = Pair(x, 1)\n", Pair),
    "range": ("    v = range(3)\n", range),
    "range_of_the_run": ("    v = range(int(x.sum()))\n", range),
    "iterator": ("    v = iter([x])\n", type(iter([]))),
    "class": ("    v = Record\n", type),
}
"""What binds ``v`` to a value, given a tensor ``x`` of two rows and three columns, and the value's class in eager."""

# --------------------------------------------------------------------------------------------- what is done with them

ATOMS = (
    "'q'", "None", "[]", "object()", "LINEAR", "7", "-9", "1.5", "{}", "(1, 2)", "x", "torch.ones(5, 7)", "'q', 'r'",
    "torch.ones(7, dtype=torch.complex64)", "torch.float64", "helper", "True", "slice(1)", "...", "10 ** 30",
    "torch.tensor([1, 2])", "[x, x]", "('a', x)", "int(x.sum())", "x.shape", "float('nan')",
)  # fmt: skip
"""Values that most operations do not take, or do not take from here."""

ARGUMENTS = (
    "", *ATOMS, "1, 1, 1, 1, 1, 1, 1, 1, 1", "x, 'q'", "x, 7", "x, -9", "x, x", "x, x, x", "7, 8", "0, 9", "-1, 'q'",
    "x, torch.ones(5, 7)", "x, torch.ones(3, 2), torch.ones(4)", "nothing_like_it=1", "x, nothing_like_it=1", "dim=9",
    "dim='q'", "x, dim=9", "x, dim=None", "x, dtype='q'", "x, out=3", "x, out=torch.ones(5)", "input=x", "self=x",
    "x, 0, torch.tensor([9])", "0, torch.tensor([9]), x", "x, torch.tensor([[0.5]])", "x, keepdim='q'",
    "x, x, reduction='q'", "*[1, 2, 3]", "**{'q': 1}", "*3", "**3", "x, 0, 9, 9",
)  # fmt: skip

_BINARY = ("+", "-", "*", "/", "//", "%", "@", "**", "<<", ">>", "&", "|", "^", "<", ">=", "==", "!=", "in", "not in")

_STATEMENTS = (
    "r = v[{atom}]", "v[{atom}] = 1", "v[{atom}] = x", "del v[{atom}]", "r = v[0, {atom}]", "r = v[{atom}:]",
    "r = v[::{atom}]", "v += {atom}", "v @= {atom}", "r = v.nothing_like_it({atom})", "r = v({atom})",
    "r = isinstance(v, {atom})", "r = getattr(v, {atom})", "r = f'{{v:{{{atom}}}}}'", "r = v % {atom}",
    "r = '%d' % ({atom},)", "r = [*v, *{atom}]", "r = {{**v, **{atom}}}", "r = v if v else {atom}",
)  # fmt: skip
_ALONE = (
    "r = v.nothing_like_it", "v.nothing_like_it = 1", "del v.nothing_like_it", "a, b, c, d, e = v", "a, = v",
    "(a, b), c = v", "a, *b, c, d, e = v", "r = [y for y in v]", "r = [a + b for a, b in v]",
    "for y in v:\n        r = y.nothing_like_it", "with v:\n        r = 1", "with v as y:\n        r = y", "r = -v",
    "r = ~v", "r = not v", "assert v, 'no'", "assert not v", "raise v", "raise ValueError(v)",
    "r = lambda: v.q\n    r = r()", "r = v.shape[9]", "r = v.T.q", "r = v[0][0][0][0]", "r = v[0]['q']",
    "r = nothing_like_it + v", "r = v.pop()", "r = {v: 1}[2]", "r = (yes := v) + 'q'", "del v\n    r = v",
    "r = 1 / (v - v)", "r = x[v, v, v]", "r = x.view(v)", "r = x.reshape(v, 5)", "x[v] = 'q'", "r = 'q'.join(v)",
    "r = v.real.q", "r = 1 if v > 'q' else 2", "r = range(v, 'q')", "r = torch.zeros(v, 'q')", "r = x.sum(v)",
    "r = x.unbind(v)", "r = helper(v, 1, 2)", "r = helper()", "r = helper(q=v)", "r = Thing()", "r = Thing(v).q",
    "r = Record(v, v, v)", "r = [][0]", "r = {}['q']", "r = [].pop()", "r = {}.popitem()", "r = [1].index(v)",
    "r = [1].remove(v)", "r = int('q')", "r = next(iter([]))", "r = 1 % 0", "r = math.sqrt(-1)",
    "r = 10 ** 400 * 1.0", "r = max([])", "r = 'q'.encode('nothing')", "import nothing_like_it",
    "r = torch.nothing_like_it", "from torch import nothing_like_it", "r = LINEAR(v)", "r = LINEAR(x.long())",
    "r = CONV(x)", "r = EMBEDDING(x)", "r = NORM(torch.ones(5, 7))", "r = MODULES[7]", "r = MODULES['q']",
    "r = MAPPING['q']", "r = LINEAR.weight[7]", "r = x.backward()", "r = torch.autograd.grad(x, v)",
    "r = x.requires_grad_('q')", "match v:\n        case Thing(1, 2):\n            r = 1", "a = b = v.q",
    "r = v.q.q()", "v.q.q = 1",
)  # fmt: skip

_NO_BUILTINS = (
    "input open exit quit breakpoint exec eval compile help copyright credits license print globals locals vars dir id "
    "memoryview classmethod staticmethod property super object aiter anext hash delattr"
).split()
"""What reads from a keyboard or a file, ends the process, or speaks of the frame or of addresses."""
_BUILTINS = tuple(
    name for name in dir(builtins)
    if name not in _NO_BUILTINS and not name.startswith("_") and callable(getattr(builtins, name))
    and not (isinstance(getattr(builtins, name), type) and issubclass(getattr(builtins, name), BaseException))
)  # fmt: skip
_AFTER = (
    "v", "v, v", "v, 'q'", "v, None", "v, 7", "v, key=1", "'q', v", "3, v", "v, x", "helper, v", "v, v, v, v", "x, v",
)  # fmt: skip

_NO_METHODS = re.compile(
    r"^(__(class|dict|weakref|init_subclass|subclasshook|new|del|sizeof|dir|reduce|reduce_ex|hash|init|doc|module"
    r"|class_getitem|cuda_array_interface|torch_function|torch_dispatch|dlpack|repr|str|set_name|prepare)__"
    r"|_.*|share_memory|share_memory_|cuda|ipu|xpu|mtia|data_ptr|compile|register_.*|is_shared|to_mkldnn|storage.*"
    r"|untyped_storage|typed_storage|apply_|map_|map2_|put_|set_|pin_memory|is_pinned|module_load|to_sparse_csr|"
    r"random_|index_reduce_?|resize_.*|crow_indices|col_indices)$"
)
"""Names that ask about memory or processes, or that eager itself does not say twice."""
_NO_FUNCTIONS = re.compile(
    r"^(_.*|.*(seed|rng|set_|init|save|load|compile|fork|import|default|get_|deterministic|grad|cudnn|miopen|profiler"
    r"|script|jit|from_file|frombuffer|thread|vitals|cuda|dlpack|mkldnn|fbgemm|xnnpack|quant|library|typename|is_.*"
    r"|wait|assert|obj|guard|vmap|cond|while_loop|preserve|typing|handle|boolean_dispatch|empty|sym_|chkstk"
    r"|prepare_multiprocessing|has_torch_function.*|unravel|classproperty|segment_reduce|resize_as|rand|export|segment|fft_|rrelu).*)$"
)
"""Functions of the process, of what is no user's, of memory that is not filled, or of random numbers."""


def _functions(module: Any, name: str) -> Iterator[str]:
    kinds = (types.FunctionType, types.BuiltinFunctionType)
    for function in sorted(vars(module)):
        if isinstance(getattr(module, function), kinds) and not _NO_FUNCTIONS.match(function):
            yield f"{name}.{function}"


def _methods(cls: type) -> Iterator[str]:
    for name in dir(cls):
        special = name.startswith("__") and name.endswith("__")
        if not _NO_METHODS.match(name) or (special and not _NO_METHODS.match(name.replace("__", "_x_", 1))):
            if callable(getattr(cls, name, None)):
                yield name


_SPECIAL = (
    "add getitem setitem delitem contains len iter mul eq lt call enter getattr setattr index int float bool matmul "
    "rsub iadd and invert format round next"
).split()


def statements(subject: str) -> Iterator[str]:
    """All that is done with a subject; much of it is a mistake."""
    cls = SUBJECTS[subject][1]
    yield from _ALONE
    for atom in ATOMS:
        yield from (text.format(atom=atom) for text in _STATEMENTS)
        for operator in _BINARY:
            if operator == "**" and atom == "10 ** 30":
                continue  # takes forever
            yield f"r = v {operator} {atom.split(', ')[0] if atom[0] not in '([t' else atom}"
            yield f"r = {atom.split(', ')[0] if atom[0] not in '([t' else atom} {operator} v"
    for name in _BUILTINS:
        yield from (f"r = {name}({after})" for after in _AFTER)
    for name in dir(math):
        if not name.startswith("_") and callable(getattr(math, name)):
            yield from (f"r = math.{name}({after})" for after in ("v", "v, 'q'", "v, v", "v, v, v"))
    names = [*_methods(cls), *(f"__{name}__" for name in _SPECIAL if hasattr(cls, f"__{name}__"))]
    for name in names:
        yield from (f"r = v.{name}({arguments})" for arguments in ARGUMENTS)


def functions() -> Iterator[str]:
    """Calls of torch's own functions, in which ``v`` is one of the arguments."""
    names = [
        *_functions(torch, "torch"), *_functions(F, "F"),
        *(text for part in ("linalg", "special", "fft") for text in _functions_of(part)),
    ]  # fmt: skip
    for name in names:
        yield from (f"r = {name}({arguments})" for arguments in ARGUMENTS)
        yield from (f"r = {name}({after})" for after in _AFTER)


def _functions_of(part: str) -> Iterator[str]:
    yield from _functions(getattr(torch, part), f"torch.{part}")


MODULES = tuple(
    name for name in dir(torch.nn)
    if isinstance(getattr(torch.nn, name), type) and issubclass(getattr(torch.nn, name), torch.nn.Module)
    and not name.startswith(("Lazy", "Data", "Module", "Container"))
)  # fmt: skip


def modules() -> Iterator[str]:
    """Modules that are made with arguments which do not fit, or called with what they do not take."""
    for name in MODULES:
        for arguments in ("", "'q'", "0, 0", "3, 3", "3, 3, 3", "nothing_like_it=1", ", ".join("1" * 12)):
            for given in ("x", "", "'q'", "x, x", "x.long()", "torch.ones(5, 7)", "None", "v"):
                if arguments not in ("3, 3", "3, 3, 3", "") and given != "x":
                    continue
                yield f"r = zeroed(torch.nn.{name}({arguments}))({given})"


# ------------------------------------------------------------------------------------------------------------- places

PLACES = {
    "plain": "{setup}    {mistake}\n    return r\n",
    "branch": "{setup}    r = x\n    if x.mean() > 0.1:\n{inner}\n        r = x + 1\n    return r\n",
    "result_of_a_branch": "{setup}    if x.mean() > 0.1:\n{inner}\n    else:\n        r = x + 1\n    return r\n",
    "loop": "{setup}    n = 0\n    r = None\n    while n < x.mean():\n{inner}\n        n = n + 1\n    return n\n",
    "caught": "{setup}    r = 5\n    try:\n{inner}\n    except {error} as e:\n"
              "        r = type(e).__name__, Text(e), e.args == ()\n"
              "    return r, x + 1\n",
    "caught_in_a_branch": "{setup}    r = x\n    if x.mean() > 0.1:\n        try:\n{more}\n            r = x + 3\n"
                          "        except {error}:\n            r = x + 2\n    return r\n",
    "sizes": "{setup}    r = x\n    if flag:\n{inner}\n        r = x + 1\n    return r\n",
    "gradient": "{setup}    {mistake}\n    return r\n",
    "called": "    def inner(x):\n{deeper}\n        return r\n    return inner(x)\n",
}  # fmt: skip


def _indented(text: str, levels: int) -> str:
    return "\n".join("    " * (levels - 1) + line for line in ("    " + text).split("\n"))


@dataclass(frozen=True)
class Case:
    """A mistake of a subject at a place."""

    subject: str
    mistake: str
    place: str

    def source(self, error: str) -> str:
        """The function of a tensor and a flag that makes the mistake; ``error`` is what its handler catches."""
        setup = SUBJECTS[self.subject][0]
        body = PLACES[self.place].format(
            setup=setup, mistake=self.mistake, inner=_indented(self.mistake, 2), more=_indented(self.mistake, 3),
            deeper="\n".join("    " + line for line in (setup + "    " + self.mistake).split("\n")), error=error,
        )  # fmt: skip
        return f"def mistake(x, flag):\n{body}"

    def calls(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What the function is called with, one after another."""
        if self.place == "sizes":
            return [(_tensor(rows), torch.tensor(rows == 5)) for rows in (2, 4, 5)]
        return [(_tensor(2, self.place == "gradient"), torch.tensor(True))]


def _tensor(rows: int, grad: bool = False) -> torch.Tensor:
    return (torch.arange(1.0, rows * 3 + 1).reshape(rows, 3) / (rows * 3)).requires_grad_(grad)


_POSSIBLE: dict[str, bool] = {}


def _compiles(mistake: str) -> bool:
    if mistake not in _POSSIBLE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile(f"def f(x, v):\n    {mistake}\n    return r\n", "<mistake>", "exec")
                _POSSIBLE[mistake] = True
            except SyntaxError:
                _POSSIBLE[mistake] = False
    return _POSSIBLE[mistake]


def cases(most: int = 600) -> Iterator[Case]:
    """Mistakes, each at one of the places: all of ``_ALONE``, and of the others about ``most`` of each source."""
    places = list(PLACES)
    for name, source in _SOURCES.items():
        subject = name.partition(" ")[0]
        found = [one for one in source() if not (subject == "shape" and _ASKED.match(one))]
        for mistake in found:
            number = zlib.crc32(f"{name} {mistake}".encode())
            taken = mistake in _ALONE or number // len(places) % len(found) < most
            if taken and _compiles(mistake):
                yield Case(subject, mistake, places[number % len(places)])


_SOURCES: dict[str, Callable[[], Iterator[str]]] = {
    **{subject: functools.partial(statements, subject) for subject in SUBJECTS},
    "tensor and functions": functions, "int and functions": functions, "grown and functions": functions,
    "tensor and modules": modules,
}  # fmt: skip


_ASKED = re.compile(r"r = v\.__(add|eq|mul|rsub|lt|iadd|and|matmul|or|ne|ge|gt|le|radd|rmul|contains)__\(")
"""Methods that give NotImplemented to Python's operators, and nobody else calls."""

# ----------------------------------------------------------------------------------------------------------- outcomes


class Text:
    """The first line of what an exception says, as the user's code reads it."""

    def __init__(self, error: Exception) -> None:
        self.text = str(error)


def _texts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in _texts(one)]
    return [value.text] if isinstance(value, Text) else []


def zeroed(module: torch.nn.Module) -> torch.nn.Module:
    """A module without random numbers."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.25)
    return module.eval()


def _names() -> dict[str, Any]:
    """What the functions see, made anew for each."""
    return {
        "torch": torch, "F": F, "math": math, "deque": collections.deque, "dataclasses": dataclasses,
        "LINEAR": zeroed(torch.nn.Linear(3, 2)), "CONV": zeroed(torch.nn.Conv1d(3, 2, 2)),
        "EMBEDDING": zeroed(torch.nn.Embedding(4, 2)), "NORM": zeroed(torch.nn.LayerNorm(3)),
        "Text": Text, "MODULES": torch.nn.ModuleList([zeroed(torch.nn.Linear(3, 3))]),
        "MAPPING": torch.nn.ModuleDict({"a": zeroed(torch.nn.Linear(3, 3))}),
        "helper": helper, "Thing": Thing, "Record": Record, "Pair": Pair, "zeroed": zeroed,
    }  # fmt: skip


_OURS = re.compile(
    r"\b(Staged\w+|Growing|Choice|Several|Undefined|dy2static|_d2s|FakeTensor\w*|SymInt|SymFloat|SymBool|NotImplemented"
    r"|ProxyTensor|unbacked|u\d+|runtime\.\w+|SymNode|GuardOnDataDependent\w*)\b|aten::|aten\."
)
"""What no message of eager's holds, unless it holds the same word."""
_ADDRESS = re.compile(r"0x[0-9a-f]+|<object object[^>]*>|<mistake \d+>")


@dataclass
class Done:
    """What one function did."""

    results: list[Any]
    error: Exception | None = None
    line: int = 0


def outcome(case: Case) -> str:
    """One of

    ``value``    neither raises, and all that can be seen is equal
    ``same``     both raise the same: class, text, and the user's line
    ``words``    both raise the same class at the same line; the texts differ, and there is nothing of ours in them
    ``refused``  with the code
    ``internal`` a fault of ours
    ``different``
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _outcome(case)
        except AssertionError as error:
            return "different: " + " ".join(str(error).split())


def _outcome(case: Case) -> str:
    error = "Exception"
    if case.place.startswith("caught"):
        raised = _done(Case(case.subject, case.mistake, "plain"), lambda function: function, "")
        if raised.error is not None:
            error = type(raised.error).__name__ if type(raised.error).__module__ == "builtins" else "Exception"
    expected = _done(case, lambda function: function, error)
    got = _done(case, dy2static.to_static, error)
    if isinstance(got.error, Dy2StaticError):
        if got.error.code in ("", "D2S290", "D2S120") or got.error.location is None:
            return f"internal: {' '.join(str(got.error).split())[:400]}"
        return f"refused {got.error.code}"
    if expected.error is None and got.error is None:
        texts = _texts(expected.results), _texts(got.results)
        _without_texts(expected.results), _without_texts(got.results)
        oracle.same(got.results, expected.results)
        return _said_alike(*(" ".join(map(_first_line, found)) for found in texts)) if texts[0] else "value"
    if expected.error is None or got.error is None:
        shown = [repr(one.error) if one.error is not None else "a value" for one in (expected, got)]
        return f"different: eager {shown[0][:200]}, converted {shown[1][:200]}"
    return _compared(expected, got)


def _compared(expected: Done, got: Done) -> str:
    if type(expected.error) is not type(got.error):
        return f"different: eager {expected.error!r:.200}, converted {got.error!r:.200}"
    theirs, mine = _first_line(expected.error), _first_line(got.error)
    if expected.line != got.line:
        return f"different: line {expected.line} in eager, converted {got.line}: {mine[:200]}"
    return _said_alike(theirs, mine)


def _said_alike(theirs: str, mine: str) -> str:
    if theirs == mine:
        return "same"
    alien = {match[0] for match in _OURS.finditer(mine)} - {match[0] for match in _OURS.finditer(theirs)}
    kind = "different: words of ours" if alien else "words"
    return f"{kind}: eager {theirs[:200]!r}, converted {mine[:200]!r}"


def _first_line(error: Any) -> str:
    return _ADDRESS.sub("...", str(error).partition("\n")[0]).replace("TensorBase.", "Tensor.")


def _without_texts(value: Any) -> None:
    for one in value if isinstance(value, (list, tuple)) else ():
        _without_texts(one)
    if isinstance(value, Text):
        value.text = ""


def _comparable(value: Any) -> Any:
    """A result, in which modules, made anew for each function, and sets of tensors are what they hold."""
    if type(value) is slice:
        return slice, _comparable((value.start, value.stop, value.step))
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(map(repr, value))
    if isinstance(value, torch.nn.Module):
        return type(value), {name: tensor.detach() for name, tensor in value.state_dict().items()}, value.training
    if isinstance(value, (Record, Thing)) and any(isinstance(one, torch.nn.Module) for one in vars(value).values()):
        return type(value), _comparable(list(vars(value).values()))
    if type(value) in (list, tuple) and any(_comparable(one) is not one for one in value):
        return type(value)(map(_comparable, value))
    return value


_FILES = 0


def _done(case: Case, convert: Callable[[Any], Any], error: str) -> Done:
    global _FILES
    _FILES += 1
    path = f"<mistake {_FILES}>"
    source = case.source(error)
    names = _names()
    exec(compile(source, path, "exec"), names)
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    done = Done([])
    try:
        oracle.seeded(0)
        function = convert(names["mistake"])
        for call in case.calls():
            done.results.append((_comparable(function(*call)), call[0]))
    except Exception as raised:
        done.error = raised
        done.line = _line(raised, path)
    finally:
        del linecache.cache[path]
    return done


def _line(error: Exception, path: str) -> int:
    """The last line of the user's in a traceback, which may stand in a function or method that the mistake calls."""
    entry, line = error.__traceback__, 0
    while entry is not None:
        if entry.tb_frame.f_code.co_filename in (path, __file__):
            line = entry.tb_lineno
        entry = entry.tb_next
    return line
