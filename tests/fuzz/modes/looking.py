"""What a function may look at: names, types, attributes, signatures, what tensors say of themselves, texts,"
" identity."""

from __future__ import annotations

from tests.fuzz.modes.beside import Beside

_HEAD = '''import collections, collections.abc, dataclasses, functools, inspect, operator, types, typing
import numbers
import torch
Pair = collections.namedtuple("Pair", "a b")
FACTOR, MODES, TENSOR = 2.0, ["plain"], torch.zeros(3)
@typing.runtime_checkable
class Sized(typing.Protocol):
    def size(self): ...
@typing.runtime_checkable
class Scaled(typing.Protocol):
    factor: float
class Base:
    factor, seen = 1.5, 0
    def __init__(self, a=1.0):
        self.a = a
    def scaled(self, t):
        return t * self.factor + self.a
    def __repr__(self):
        return f"{type(self).__name__}({self.a})"
    @property
    def double(self):
        return self.a * 2
    @classmethod
    def count(cls):
        cls.seen += 1
        return cls.seen
class Other(Base):
    factor = 0.5
    __slots__ = ()
@dataclasses.dataclass
class Record:
    a: object = 1.0
    b: object = None
class Lazy:
    def __getattr__(self, name):
        if name.startswith("no"):
            raise AttributeError(name)
        return len(name)
class Layer(torch.nn.Module):
    factor = 3.0
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Identity()
        self.register_buffer("bias", torch.zeros(1))
        self.scale = 1.0
    def forward(self, t):
        if hasattr(self, "extra"):
            t = t + self.extra
        return self.inner(t) * self.scale + self.bias
    def extra_repr(self):
        return f"scale={self.scale}"
BASE, OTHER, RECORD, LAZY, LAYER = Base(), Other(), Record(), Lazy(), Layer()
@functools.singledispatch
def told(v):
    return 0
@told.register(int)
@told.register(float)
def _(v):
    return v + 1
@told.register
def _(v: torch.Tensor):
    return v.sum() * 2
@told.register(list)
def _(v):
    return len(v)
@told.register(Base)
def _(v):
    return v.a
def matched(v):
    match v:
        case torch.Tensor():
            return 1
        case Pair(a=a) | Record(a=a):
            return a
        case Other():
            return 2
        case Base(a=a) if isinstance(a, float):
            return a
        case {"a": a, **rest}:
            return len(rest)
        case [a, *rest]:
            return len(rest) + 1
        case bool() | None:
            return 3
        case int(n) | float(n):
            return n
        case str():
            return 4
        case _:
            return 5
def named(t, /, scale: float = 2.0, *rest, flag=False, **more):
    here = dict(locals())
    return t * scale + len(here) + len(rest) + len(more)
def inside(t, u=1.0):
    v = t * u
    if v.sum() > 0:
        w = v + 1
    else:
        w = v - 1
    found = locals()
    return found["w"] * found["u"], sorted(found)
def shown(given):
    return given
def begin():
    global FACTOR
    FACTOR = 2.0
    MODES[:] = ["plain"]
    TENSOR.zero_()
    vars(TENSOR).clear()
    Base.factor, Base.seen, Other.factor = 1.5, 0, 0.5
    if "seen" in vars(Other):
        del Other.seen
    for one, state in ((BASE, {"a": 1.0}), (OTHER, {"a": 1.0}), (RECORD, {"a": 1.0, "b": None}), (LAZY, {})):
        vars(one).clear()
        vars(one).update(state)
    BASE.__class__, OTHER.__class__ = Base, Other
    LAYER.__dict__.pop("extra", None)
    LAYER.scale = 1.0
    LAYER.bias.zero_()
    LAYER.train()
    for name in ("set_inside", "made_inside"):
        globals().pop(name, None)
def beside():
    return (FACTOR, MODES, TENSOR, dict(vars(TENSOR)), Base.factor, Base.seen, Other.factor, vars(BASE), vars(OTHER),
            vars(RECORD), vars(LAZY), LAYER.scale, LAYER.bias, LAYER.training,
            LAYER.__dict__.get("extra"), type(BASE).__name__,
            globals().get("set_inside"), "seen" in vars(Other))
def f(x, y, k):
    p, q, r, n, v = x * 0.5, y * 2, torch.ones(len(x)), k, 1.0
    own, log, items, table, pair = Base(0.5), [], [1, 2.0, x], {"a": 1.0, "t": y}, Pair(x, 2)
'''
_OBJECTS = ("BASE", "OTHER", "own", "RECORD", "LAZY", "LAYER")
_TYPES = ("torch.Tensor", "int", "float", "(int, float)", "list", "tuple", "dict", "Base", "Other", "Pair", "object",
          "str",
          "collections.abc.Sequence", "collections.abc.Mapping", "collections.abc.Callable", "collections.abc.Sized",
          "numbers.Number", "Sized", "Scaled", "(torch.Tensor, type(None))", "int | float", "torch.nn.Module",
          "torch.Size",
          "collections.abc.Iterable", "collections.abc.Hashable", "bool", "type", "torch.nn.Parameter",
          "(list, (tuple, dict))",
          "typing.Sequence", "numbers.Real", "torch.FloatTensor")  # fmt: skip


class Looking(Beside):
    """Tensors, a number and objects, and questions about all of them.

    No path takes an attribute away and sets it again: in which order an object has its attributes is not joined.
    """

    head = _HEAD
    tail = "    return p * 1, q, r, n, v, log, items, table, own\n"
    names = ("p", "q", "r")
    stays = True
    refusals = frozenset({"D2S210", "D2S212", "D2S213", "D2S214", "D2S229", "D2S243", "D2S245", "D2S253", "D2S260",
                          "D2S262", "D2S263", "D2S264", "D2S265", "D2S277"})

    def thing(self) -> str:
        """Something that is asked about."""
        return self.rng.choice((
            *self.names, "x", "y", "n", "k", "v", "items", "table", "pair", "log", *_OBJECTS, "None", "p.shape",
            "torch.relu",
            "Base", "BASE.scaled", "items[0]", "table['a']", "pair.b", "TENSOR", "p.sum()", "p.sum().item()", "MODES",
            "'text'",
            "p.dtype", "items[2]", "LAYER.bias", "type(own)", "(lambda t: t)", "f", "(n > 0)", "(p > 0)", "len(items)",
            "f'{n}'", "1j",
        ))  # fmt: skip

    def object(self) -> str:
        """An object with attributes."""
        return self.rng.choice(_OBJECTS[:3] * 2 + _OBJECTS)

    def truth(self) -> str:
        """A question with yes or no."""
        rng, one, other, t, o = self.rng, self.thing(), self.thing(), self.name(), self.object()
        name = rng.choice(("a", "b", "factor", "shape", "no", "tag", "extra", "double", "scaled", "seen", "__len__",
                           "forward"))
        return str(rng.choice((
            f"isinstance({one}, {rng.choice(_TYPES)})",
            f"type({one}) is {rng.choice(('torch.Tensor', 'int', 'float', 'Base', 'list', 'bool'))}",
            f"{one}.__class__ is type({other})", f"type({one}) == type({other})", f"hasattr({one}, '{name}')",
            f"callable({one})",
            f"{one} is {other}", f"{t} is {self.name()}", f"{t} is x", f"getattr({o}, '{name}', None) is None",
            f"'{name}' in dir({one})",
            f"'{name}' in vars({o})", f"'{name}' in {o}.__dict__", f"{t}.requires_grad", f"{t}.is_leaf",
            f"{t}.grad_fn is None",
            f"{t}.shape == x.shape", f"{t}.dtype == torch.float32", f"{t}.dtype is torch.float32",
            f"{t}.device.type == 'cpu'",
            f"{t}.dim() == 1", f"{t}.is_floating_point()", f"len({t}.shape) == 1", f"{t}.shape[0] > 3",
            f"{t}.numel() == len(x)",
            f"issubclass(type({one}), {rng.choice(_TYPES)})", f"{t}.grad is None",
            f"{one} is None",
            f"hasattr({t}, 'tag')", f"isinstance({t}, (torch.Tensor, list))", "'p' in locals()",
            "'nothing' in locals()",
            "'FACTOR' in globals()", "'set_inside' in globals()", f"isinstance({o}, Scaled)",
            f"torch.is_tensor({one})",
            f"isinstance(own, Base) and own.a > {self.name()}.sum()", "issubclass(Other, Base)",
            f"inspect.isfunction({one})",
            f"inspect.isclass({one})", f"inspect.ismethod({one})", "type(own).__name__ == 'Base'",
            f"{t}.is_contiguous()",
            "LAYER.training", "any(isinstance(i, torch.Tensor) for i in items)", f"{t}.layout is torch.strided",
            f"{t}.ndim > 1",
            "'scale' in inspect.signature(named).parameters",
            f"len(inspect.signature({rng.choice(('named', 'f', 'Base', 'LAYER.forward'))}).parameters) > 1",
            "all(p is not i for i in items)", "x in [x]" if rng.random() < 0.1 else "n in (1, 2)",
            f"hash({one}) == hash({one})" if one not in ("items", "table", "log", "MODES", "RECORD",
            "pair") and "lambda" not in one else "True",  # two lambdas may stand in one place
            "torch.is_grad_enabled()", f"{t}.is_sparse", f"{t}.is_nested", f"{t}.retains_grad", f"{t}.output_nr == 0",
        )))  # fmt: skip

    def condition(self) -> str:
        """One on tensors, or a question."""
        return self.truth() if self.rng.random() < 0.5 else super().condition()

    def text(self) -> str:
        """A text, or something with one."""
        rng, one, t, o = self.rng, self.thing(), self.name(), self.object()
        return str(rng.choice((
            f"type({one}).__name__", f"{one}.__class__.__name__", f"str({t}.dtype)", f"repr({t}.shape)",
            f"f'{{{t}.shape}}'", f"str({t}.device)",
            f"repr({o})" if o != "LAZY" else "repr(own)", "str(own)", "f'{own} {n}'", "f'{n:>3}'", "repr(n)",
            "str(v)", f"type({one}).__mro__[-1].__name__",
            "repr(LAYER)", f"str({t}.requires_grad)", f"repr(type({one}))", "Base.__doc__",
            f"{o}.__class__.__qualname__", "named.__name__",
            f"list({t}.shape)", f"tuple({t}.size())", f"{t}.shape", f"{t}.dtype",
            f"{t}._version" if self.free else f"{t}.numel()", f"{t}.stride()", f"sorted(vars({o}))",
            f"list({o}.__dict__)", "sorted(locals())", "str(inspect.signature(named))",
            "list(inspect.signature(Base).parameters)",
            "inspect.signature(named).parameters['scale'].default",
            f"[name for name in dir({o}) if name[0] != '_']" if o != "LAYER" else "len(dir(LAYER)) > 9",
            "Pair._fields", "pair._fields", "[f.name for f in dataclasses.fields(RECORD)]",
            "typing.get_type_hints(named)", "named.__defaults__",
            "named.__kwdefaults__", "inspect.getdoc(Base)", "f.__code__.co_varnames[:3]", "f.__name__",
            "inspect.getfullargspec(named).varargs",
            f"str({t}.detach())" if rng.random() < 0.5 else f"repr({t})", f"f'{{{t}.sum().item():.2f}}'",
            f"'%s %d' % (type({one}).__name__, n)",
            f"'{{}}'.format({t}.dtype)", "[type(i).__name__ for i in items]",
            "{name: type(i).__name__ for name, i in table.items()}",
            "sorted(name for name, _ in inspect.getmembers(own, inspect.ismethod))",
            "[name for name, _ in LAYER.named_buffers()]",
            "list(LAYER._modules)", f"str(type({t}.grad_fn).__name__)", f"{t}.type()",
            "Base.__name__ + Base.__module__[:4]", "sorted(Base.__dict__)[0]",
        )))  # fmt: skip

    def number(self) -> str:
        """A number that comes of looking."""
        rng, one, t, o = self.rng, self.thing(), self.name(), self.object()
        return str(rng.choice((
            "n", "v", "0.5", f"getattr({o}, 'a', 2.0)" if o != "RECORD" else "RECORD.a", f"getattr({o}, 'factor', 3)",
            f"{t}.shape[0]", f"len({t})",
            f"matched({one})", f"matched({t})", f"matched([{t}, n])", f"matched({{'a': n, 'b': {t}}})",
            f"len(vars({o}))", f"told({one})", "told(n)",
            f"told([{t}])", "told(own)", f"{t}.dim()", "LAYER.scale", "Base.factor", "Other.factor",
            f"int(hasattr({o}, 'b'))", "FACTOR", "globals()['FACTOR']",
            "own.double", "Base.count()", "type(own).factor", "own.__class__.factor", "vars(own)['a']",
            "own.__dict__.get('a', 1)", "len(locals())",
            "locals()['n']", "getattr(own, 'a' if n > 0 else 'factor')", "operator.attrgetter('a')(own)",
            f"int({self.truth()})", "LAZY.word", "getattr(LAZY, 'no', 5)",
            "sum(isinstance(i, int) for i in items)", f"{t}.element_size()", f"{t}.storage_offset()",
            "len(inspect.signature(named).parameters)", f"len(type({one}).__mro__)",
            "(lambda a, b=2: len(locals()))(n)", "next((i for i in items if isinstance(i, float)), 0)",
            f"getattr({t}, 'tag', 4)", "getattr(x, 'tag', 4)",
            "getattr(TENSOR, 'tag', 2.0)", "len(str(n))", "max(len(type(i).__name__) for i in items)", f"{t}.size(0)",
            f"{t}.grad.sum().item() if {t}.grad is not None else 1",
        )))  # fmt: skip

    def tensor(self) -> str:
        """A tensor of as many numbers as ``x`` has."""
        rng, one, other, o = self.rng, self.name(), self.name(), self.object()
        number = self.number()
        number = f"float({number})" if "told" in number or "matched" in number else number
        return str(rng.choice((
            f"{one} * {number}", f"{one} + {number}", f"{one} if {self.truth()} else {other}", f"{one} + {other}",
            f"torch.tanh({one})",
            f"BASE.scaled({one})", f"OTHER.scaled({one})", f"getattr(own, 'scaled')({one})",
            f"type(own).scaled(own, {one})", f"LAYER({one})", f"inside({one})[0]",
            f"named({one})", f"named({one}, 1.0, 2, flag=True, more={other})", f"locals()['{one}'] * 2",
            f"vars()['{one}'] + 1" , f"getattr(torch, 'relu')({one})",
            f"getattr({one}, 'abs')()", f"{one}.new_zeros({other}.shape) + {one}",
            f"torch.zeros({one}.shape, dtype={other}.dtype)", f"{one}.to({other}.dtype)",
            f"torch.ones_like({one}) * told({other})", f"{one} * told(own)",
            f"{one} + sum(i for i in items if isinstance(i, torch.Tensor))", f"{one} * globals()['FACTOR']",
            f"{one} + getattr({other}, 'tag', 1.0)", f"next(i for i in items if isinstance(i, torch.Tensor)) + {one}",
            f"{one}.expand(x.shape)", f"Base.scaled(OTHER, {one})",
            f"functools.reduce(operator.add, [i for i in table.values() if type(i) is torch.Tensor], {one})",
            f"inspect.signature(Base).parameters['a'].default * {one}",
            f"dict(zip(pair._fields, pair))['a'] + {one}", f"{one}.__class__.__add__({one}, {other})",
            f"{one}.__mul__(2)", f"operator.methodcaller('mul', n)({one})",
        )))  # fmt: skip

    def changes(self) -> list[str]:
        """Statements that change what is looked at."""
        rng, one, t, o, v = self.rng, self.thing(), self.name(), self.object(), self.number()
        found = [
            f"setattr({o}, 'a', {v})", f"{o}.b = {v}", f"setattr({o}, 'a', {v})\nlog.append({o}.a)",
            f"vars({o})['c'] = {v}" if o != "LAYER" else "LAYER.scale = 2.0",
            f"{o}.__dict__.update(d=1)" if o != "LAYER" else "LAYER.scale = n",
            f"if hasattr({o}, 'b'):\n    delattr({o}, 'b')", f"own.made = {t}\nlog.append(hasattr(own, 'made'))",
            f"{t}.tag = {v}\nlog.append({t}.tag)",
            f"{t} = {t} * 1\n{t}.tag = 3\n{self.name()} = {t} * getattr({t}, 'tag', 1)", f"TENSOR.tag = {v}",
            f"t = {t}.clone()\nt.tag = 'x'\nlog.append(t.tag)",
            f"Base.factor = {v}", "Other.factor = 2", "type(own).factor = 3.0", "Base.count()", f"LAYER.scale = {v}",
            f"LAYER.extra = {t}.mean()", "LAYER.eval()", "LAYER.train(False)",
            f"global FACTOR\nFACTOR = {v}" if False else f"globals()['set_inside'] = {v}",
            f"globals()['FACTOR'] = {v}", "MODES.append('more')", "LAYER.bias.add_(1)", f"RECORD.b = {t}",
            "own.__class__ = Other", "own = Other(n)",
            f"own = dataclasses.replace(RECORD, a={v})\nlog.append(own.a)\nown = Base()", f"items.append({v})",
            f"items[0] = {t}", f"table['b'] = {t}",
            f"pair = pair._replace(b={v})", f"v = {v}", f"n = n + int({self.truth()})", f"{t}.mul_(0.5)",
            "own.a = 1.0" if self.inside else "del own.a\nlog.append(hasattr(own, 'a'))\nown.a = 1.0",
            f"n = {v}\nn = int(n)",
            f"for name in sorted(vars({o})):\n    log.append(name)",
            "for name, i in vars(own).items():\n    log.append((name, type(i).__name__))",
            f"for name in ('a', 'b'):\n    setattr(own, name, {t})\nown.a = 2.0",
            f"log.append(sorted(inside({t})[1]))",
            f"try:\n    log.append({o}.nothing)\nexcept AttributeError:\n    log.append('none')",
            f"if isinstance({one}, torch.Tensor):\n    {t} = {t} + 1\nelif callable({one}):\n    n = n + 1",
            f"here = locals()\nlog.append(type(here['{t}']).__name__)",
            f"match ({one}):\n    case torch.Tensor(shape=[_]):\n        log.append('row')\n"
            f"    case int() | float():\n        {t} = {t} + 1\n    case _:\n        log.append('other')",
            f"match {t}.shape:\n    case (1,):\n        n = 0\n    case (s,):\n        n = n + s",
            f"match {t}.dtype:\n    case torch.float32:\n        log.append('f32')\n    case _:\n"
            f"        log.append('else')",
        ]  # fmt: skip
        rare = ["BASE.__class__ = Other", f"x.tag = {v}",
                "Base.scaled = lambda self, t: t" if False else "Base.seen = 5", "exec('n = 3')",
                "delattr(LAYER, 'extra')", f"log.append(id({t}))" if False else f"{t}.extra = {t}"]
        return [*found, *rare] if self.free else found

    def simple(self) -> str:
        """A computation, a question, a change."""
        rng, t = self.rng, self.name()
        names = (f"{t} = {self.tensor()}", f"{t} = {self.tensor()}", f"v = {self.number()}",
                 f"{t}, {self.name()} = {self.name()}, {self.tensor()}")
        notes = (f"log.append({self.text()})", f"log.append({self.truth()})", f"log.append({self.number()})",
                 f"log.append([{self.text()}, {self.truth()}])")
        return str(rng.choice(rng.choices((names, self.changes(), notes), (4, 4, 3))[0]))
