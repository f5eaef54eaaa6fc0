"""Values that a program finds in what is around it, how it reads them, and how they change in place between two calls.

``$V`` stands for the expression that reads the value, ``$A`` for a tensor variable of three numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of value."""

    values: Sequence[str]
    """Expressions; many of them are equal for Python, and not the same."""
    plain: Sequence[str]
    """Expressions without tensors, which are shown or compared."""
    tensors: Sequence[str] = ()
    """Expressions that give a tensor of three numbers."""
    changes: Sequence[str] = ()
    """Statements that change the value where it is."""
    has_tensors: bool = False
    """Whether there are tensors in it: its text is none of a Program's numbers."""


NUMBERS = Kind(
    values=(
        "1", "True", "1.0", "0", "False", "0.0", "-0.0", "2", "3.5", "-1", "float('nan')", "float('inf')",
        "np.float32(1)", "np.int64(1)", "np.bool_(True)", "2**70", "None",
    ),
    plain=(
        "$V", "$V or 5", "$V == 1", "repr($V)", "f\"{$V}\"", "type($V).__name__", "[$V, 1].count(1)", "{$V: 1}",
        "math.copysign(1, $V)", "isinstance($V, bool)", "max($V, 0)", "sorted([$V, 1])", "{1: 'a'}.get($V)", "not $V",
        "$V is True", "'yes' if $V else 'no'", "[v for v in (1, 2) if v > $V]", "$V in (1, 2)", "str($V).upper()",
        "'%s' % $V", "divmod(7, $V)", "round($V)", "hash($V)", "($V, 1) == (1, 1)", "isinstance($V, int)",
    ),
    tensors=(
        "$A * $V", "$A + $V", "$A if $V else $A + 1", "torch.full((3,), $V) + $A", "$A.clamp(max=$V)",
        "torch.tensor($V) + $A", "$A ** $V", "$V - $A", "torch.where($A > 0, $A, $V)",
        "$A.sum(0, keepdim=$V) + $A", "torch.stack([$A * i for i in range(int($V) % 4 + 1)]).sum(0)",
        "$A.masked_fill($A > 0, $V)",
    ),
)  # fmt: skip

TEXTS = Kind(
    values=("'relu'", "'tanh'", "'abs'", "''", "'1'", "b'relu'", "None"),
    plain=(
        "$V", "len($V)", "$V == 'relu'", "$V.upper()", "$V in ('relu', 'tanh')", "$V[:1]", "f\"{$V}!\"", "$V + '!'",
        "{'relu': 1.0}.get($V, 2.0)", "[c for c in $V]", "'re' in $V", "$V.startswith('r')", "sorted($V)",
        "$V or 'none'", "hasattr(torch, $V)", "$V is None",
    ),
    tensors=(
        "getattr(torch, $V)($A)", "getattr($A, $V)()", "$A * len($V)",
        "{'relu': torch.relu, 'tanh': torch.tanh}[$V]($A)", "torch.relu($A) if $V == 'relu' else $A",
    ),
)  # fmt: skip

LISTS = Kind(
    values=("[1.0, 2]", "[]", "[True]", "[1]", "[-0.0]", "[2, [3]]", "[1, 1, 1]", "(1, 2)", "(True,)", "[None]"),
    plain=(
        "$V", "len($V)", "sum($V)", "$V[0]", "$V[-1]", "$V == [1]", "1 in $V", "list($V)", "[v for v in $V]",
        "$V[:1]", "max($V, default=0)", "any($V)", "$V.index(1)", "$V.count(1)", "list(reversed($V))",
        "list(enumerate($V))", "','.join(map(str, $V))", "[*$V, 7]", "$V + [1]", "repr($V)", "list(zip($V, 'ab'))",
        "tuple($V)", "not $V", "isinstance($V, list)", "next(iter($V), None)", "copy.copy($V)", "copy.deepcopy($V)",
        "$V * 2", "list(map(repr, $V))", "(lambda first, *rest: rest)(*$V)", "list(filter(None, $V))",
        "functools.reduce(operator.add, $V)", "list(itertools.accumulate($V))", "$V.copy()",
    ),
    tensors=(
        "$A * len($V)", "$A + sum($V)", "$A + torch.tensor($V).sum()", "$A * $V[0]", "$A + float(1 in $V)",
        "torch.stack([$A * v for v in $V]).sum(0)", "sum((v * $A for v in $V), $A)", "$A if $V else $A * 3",
        "$A.repeat(len($V) + 1)[:3]",
    ),
    changes=(
        "$V.append(3)", "$V.insert(0, 2)", "$V.pop()", "del $V[0]", "$V[0] = True", "$V[0] = 1.0", "$V.reverse()",
        "$V.clear()", "$V[:] = [1.0]", "$V.extend([1, True])", "$V.sort()", "$V[-1] = -0.0",
        "$V[0], $V[-1] = $V[-1], $V[0]",
    ),
)  # fmt: skip

DICTS = Kind(
    values=(
        "{'a': 1.0}", "{'a': 1}", "{'a': True, 'b': 2}", "{'b': 2, 'a': True}", "{}", "{1: 2.0, 'a': 1}",
        "{True: 2.0, 'a': 1}", "{'a': {'b': 1}}", "collections.OrderedDict(a=1, b=2)", "collections.Counter('aab')",
        "collections.defaultdict(int, a=1)", "collections.defaultdict(float, a=1)",
        "types.MappingProxyType({'a': 2})", "collections.UserDict(a=1)", "collections.ChainMap({'a': 1}, {'b': 2})",
    ),
    plain=(
        "dict($V)", "len($V)", "$V['a']", "$V.get('a', 3.0)", "'b' in $V", "list($V)", "sum($V.values())",
        "list($V.items())", "{k: v for k, v in $V.items()}", "{**$V}", "next(iter($V), None)", "$V == {'a': 1}",
        "sorted(map(str, $V))", "$V.keys() == {'a'}", "str($V)", "$V['zz']", "(lambda a=0, **rest: a)(**$V)",
        "not $V", "copy.deepcopy($V)", "'a' in $V.keys()", "[v for v in $V.values()]", "operator.itemgetter('a')($V)",
        "$V.copy()", "type($V).__name__", "dict(zip($V, $V.values()))", "list(reversed($V))",
    ),
    tensors=(
        "$A * $V['a']", "$A + len($V)", "$A + sum($V.values())", "$A * $V.get('b', 0.5)",
        "$A if 'b' in $V else $A * 2", "torch.stack([$A * v for v in $V.values()]).sum(0)",
        "$A * (1 if $V == {'a': 1} else 2)",
    ),
    changes=(
        "$V['a'] = 2", "$V['b'] = 3", "$V.pop('a', None)", "$V.clear()", "del $V['a']", "$V.update(a=True)",
        "$V['a'] = 1", "$V.setdefault('c', 1.0)", "$V['a'] = $V.pop('a')", "$V['a'] = 1.0", "$V.move_to_end('a')",
        "$V['a'] = -0.0", "$V['a']['b'] = 2", "$V.popitem()", "$V.subtract('a')", "$V.default_factory = list",
        "$V.maps.insert(0, {'a': 9})",
    ),
)  # fmt: skip

SETS = Kind(
    values=(
        "{1, 2}", "{True}", "{1.0}", "{8, 0}", "{0, 8}", "set()", "frozenset([1])", "frozenset([True])", "{(1,)}",
        "{(True,)}", "{'a'}",
    ),
    plain=(
        "list($V)", "len($V)", "1 in $V", "sum($V)", "[v for v in $V]", "$V == {1}", "$V | {5}", "repr($V)",
        "sorted($V)", "$V & {1}", "$V <= {1, 2}", "max($V, default=None)", "{v for v in $V}", "not $V", "(1,) in $V",
        "tuple($V)",
    ),
    tensors=("$A + len($V)", "$A + sum($V)", "$A if 1 in $V else $A * 2", "sum((v * $A for v in $V), $A)"),
    changes=(
        "$V.add(3)", "$V.discard(1)", "$V.clear()", "$V.update([True, 9])", "$V.remove(8)", "$V.add(8)",
        "$V.add(1.0)",
    ),
)  # fmt: skip

DEQUES = Kind(
    values=(
        "collections.deque([1, 2])", "collections.deque([True, 2])", "collections.deque([1, 2], maxlen=2)",
        "array.array('d', [1, 2])", "array.array('i', [1, 2])", "bytearray(b'ab')", "b'ab'", "range(1, 3)",
        "range(0)", "range(1, 0)", "memoryview(bytearray(b'ab'))", "collections.UserList([1, 2])",
    ),
    plain=(
        "list($V)", "len($V)", "$V[0]", "$V[-1]", "sum($V)", "1 in $V", "getattr($V, 'maxlen', 'no')",
        "repr(list($V))", "list(reversed($V))", "type($V).__name__", "[v for v in $V]",
        "$V == collections.deque([1, 2])", "bytes($V)", "copy.copy($V)[0]", "max($V)", "$V == range(0)",
    ),
    tensors=("$A + len($V)", "$A * $V[0]", "$A + sum($V)", "sum((v * $A for v in $V), $A)"),
    changes=(
        "$V.append(3)", "$V.appendleft(5)", "$V.rotate(1)", "$V[0] = 9", "$V.pop()", "$V.reverse()", "$V.extend([4])",
        "$V[0] = True",
    ),
)  # fmt: skip

RECORDS = Kind(
    values=(
        "Pair(1, 2.0)", "Pair(True, 2.0)", "Pair(1, [2])", "Record(1, 2.0)", "Record(True, 2.0)", "Frozen(1, 2.0)",
        "Frozen(1.0, 2)", "Slotted(1, 2.0)", "types.SimpleNamespace(a=1, b=2.0)", "Plain(1, 2)", "Made(1, 2)",
        "Equal(1, 2)", "Counted(1, 2)", "Dynamic(1, 2)", "Typed({'a': 1, 'b': 2})",
    ),
    plain=(
        "$V.a", "$V.b", "getattr($V, 'a', 7)", "getattr($V, 'more', 7)", "hasattr($V, 'more')",
        "$V == Record(1, 2.0)", "$V == Pair(1, 2.0)", "$V == Equal(1, 2)", "$V in [Equal(1, 2), Frozen(1, 2.0)]",
        "$V.total()", "$V.both", "$V.factor", "len($V)", "$V[0]", "list($V)", "operator.attrgetter('a')($V)",
        "vars($V)", "sorted(vars($V))", "$V.__dict__", "dataclasses.asdict($V)", "dataclasses.replace($V, b=3).a",
        "$V._asdict()", "copy.copy($V).a", "isinstance($V, Plain)", "type($V).__name__", "$V.of_class()",
        "type($V).factor", "$V.__class__.__name__", "hash($V)", "$V.missing_one", "(lambda a, b: a)(*$V)",
        "max($V, Record(1, 1)).a", "$V < Record(2, 2)", "bool($V)", "$V.__dict__.get('a')", "'more' in vars($V)",
        "[$V].index(Equal(1, 2))", "{Frozen(1, 2.0): 'f', Equal(1, 2): 'e'}.get($V)", "repr($V)[:6]",
        "[f for f in $V]", "super(type($V), $V).total()", "$V + 1", "1 + $V", "$V(3)", "$V @ 2",
        "object.__getattribute__($V, 'a')",
    ),
    tensors=(
        "$A * $V.a", "$A + $V.total()", "$A * $V.both", "$A * $V.factor", "$V.scaled($A)", "$V(1) * $A",
        "$A * getattr($V, 'more', 2)", "$A if hasattr($V, 'more') else $A * 2", "entered($V, $A)", "$A + len($V)",
        "$A if $V else -$A", "matched($V, $A)",
    ),
    changes=(
        "$V.a = 3", "$V.a = True", "$V.b = 1", "$V.more = 5", "del $V.more", "$V.b.append(4)", "$V.factor = 9",
        "del $V.factor", "object.__setattr__($V, 'a', 4)", "del $V.a", "$V.__dict__['a'] = 8",
        "$V.__dict__.update(more=1)", "$V.__class__ = Other", "$V.__class__ = Plain", "$V.total = lambda: 50",
        "$V.__dict__.pop('total')", "$V.held_a = 6", "$V['a'] = 5", "$V.__dict__['both'] = 3",
        "$V.__dict__ = {'a': 5, 'b': 6}",
    ),
)  # fmt: skip

OTHERS = Kind(
    values=(
        "torch.float32", "torch.float64", "torch.device('cpu')", "slice(0, 1)", "slice(False, True)", "slice(None)",
        "...", "torch.Size([3])", "(3,)", "re.compile('a')", "Color.RED", "Color.BLUE", "Level.LOW", "1j",
        "fractions.Fraction(1, 2)", "decimal.Decimal(1)", "datetime.timedelta(1)", "uuid.UUID(int=1)",
        "pathlib.PurePosixPath('a')", "torch.strided",
    ),
    plain=(
        "repr($V)", "$V == torch.float32", "type($V).__name__", "$V is Color.RED", "$V == (3,)",
        "$V in (Color.RED, 1)", "getattr($V, 'value', 0)", "getattr($V, 'name', '')",
        "{Color.RED: 1, torch.float32: 2}.get($V)", "$V == 1", "isinstance($V, tuple)", "[1, 2, 3][$V]", "$V + $V",
        "str($V)", "$V.tag",
    ),
    tensors=(
        "$A[$V].sum() + $A", "$A.to($V)", "torch.ones($V) * $A", "torch.ones(3, dtype=$V) + $A",
        "$A * getattr($V, 'value', 3)", "$A if $V is Color.RED else $A * 2",
    ),
    changes=("$V._value_ = 5", "$V.tag = 2"),
)  # fmt: skip

FUNCTIONS = Kind(
    values=(
        "torch.relu", "doubled", "scaled", "functools.partial(scaled, k=3.0)", "functools.partial(scaled, k=[3.0])",
        "torch.nn.Tanh()", "BOX.scaled", "Plain", "Plain(1, 2).scaled", "(lambda t: t + 1)", "math.sin", "cached",
        "wrapped", "CALLER", "Func.apply", "left_alone", "operator.neg", "torch.nn.functional.softplus",
        "Holder.static", "Holder.of_class", "picked", "np.abs",
    ),
    plain=(
        "callable($V)", "getattr($V, '__name__', 'none')", "$V is doubled", "$V == doubled",
        "getattr($V, 'tag', 'none')", "isinstance($V, type)", "getattr($V, '__defaults__', 0)",
        "getattr($V, '__kwdefaults__', 0)", "hasattr($V, 'func')", "$V(2.0)", "{doubled: 1, torch.relu: 2}.get($V)",
        "[$V(v) for v in (1.0, 2.0)]", "list(map($V, (1.0, 2.0)))", "sorted([1.0, -2.0], key=$V)",
        "list(filter($V, (0.0, 2.0)))", "max((1.0, -2.0), key=$V)", "$V.__doc__",
    ),
    tensors=(
        "$V($A)", "functools.reduce(lambda t, g: g(t), [$V, $V], $A)", "[$V(t) for t in ($A, $A + 1)][1]",
        "next(map($V, [$A]))", "$V(t=$A)", "apply($V, $A)", "twice($V)($A)", "next(v for v in [$V($A)])",
        "torch.stack(list(map($V, $A.unbind())))",
    ),
    changes=(
        "$V.tag = 2", "$V.__defaults__ = (5.0,)", "$V.__kwdefaults__ = {'k': 7.0}", "$V.keywords['k'] = 4.0",
        "$V.keywords['k'].insert(0, 6.0)", "$V.__code__ = (lambda t: t - 1).__code__", "$V.__self__.a = 11",
        "$V.k = 5.0", "$V.cache_clear()", "$V.training = False", "$V.register_forward_hook(lambda m, i, o: o * 2)",
        "$V.forward = lambda t: t - 3", "$V.__doc__ = 'other'", "$V.__wrapped__.__defaults__ = (8.0,)",
        "$V.__globals__['TABLE']['k'] = 4", "$V.__func__.__defaults__ = (2.0,)",
    ),
)  # fmt: skip

TENSORS = Kind(
    values=(
        "torch.ones(3)", "torch.ones(3) * 2", "torch.ones(3, dtype=torch.float64)",
        "torch.ones(3, requires_grad=True)", "torch.nn.Parameter(torch.ones(3))", "torch.zeros(1)", "torch.arange(3)",
        "torch.ones(3, 3).t()", "torch.tensor(2.0)", "torch.arange(9.0).view(3, 3).t()",
        "torch.tensor([True, False, True])", "torch.nn.Parameter(torch.ones(3), False)", "torch.ones(2, 3)[0]",
        "torch.ones(4)[1:]", "torch.empty(0)", "None", "torch.ones(3, dtype=torch.bfloat16)",
    ),
    plain=(
        "$V.shape", "$V.dtype", "$V.requires_grad", "$V.grad is None", "$V.is_leaf", "$V.dim()", "$V.numel()",
        "$V.device.type", "$V.stride()", "$V.is_contiguous()", "len($V)", "isinstance($V, torch.nn.Parameter)",
        "$V is None", "$V.size(0)", "$V.storage_offset()", "getattr($V, 'tag', 'none')", "$V.item()", "$V.tolist()",
        "$V.dtype == torch.float32", "$V.is_floating_point()", "hasattr($V, 'tag')", "type($V).__name__",
        "torch.is_tensor($V)", "tuple($V.shape)", "$V.element_size()", "$V.shape == (3,)", "$V.ndim",
        "list($V.shape)[0]", "$V.retains_grad", "$V.T.shape",
    ),
    tensors=(
        "$A + $V", "$A * $V.sum()", "$A + $V.detach()", "$A * $V.shape[0]", "$A if $V.requires_grad else $A * 2",
        "$A * ($V.sum() > 2)", "$A + $V.data", "$A + $V.item()", "sum((row.sum() * $A for row in $V), $A)",
        "torch.cat([$A, $V.reshape(-1)])[:3]", "$A if $V is None else $A + $V.sum()",
        "$A * ($V.grad if $V.grad is not None else 3)", "$A.to($V.dtype)", "$A.type_as($V)",
        "$A if $V.grad is None else $A * $V.grad.sum()", "$A * getattr($V, 'tag', 2)", "$V", "$A + $V[0]",
        "torch.where($V > 1, $A, -$A)", "torch.full_like($V, 2).sum() + $A", "$A.expand_as($V).sum(0)",
    ),
    changes=(
        "$V.data.add_(1)", "$V.data.mul_(2)", "$V.data.zero_()", "$V.data[0] = 5", "$V.data = torch.ones(3) * 4",
        "$V.requires_grad_()", "$V.requires_grad_(False)", "$V.grad = torch.ones_like($V)", "$V.grad = None",
        "$V.data = $V.data.double()", "$V.t_()", "$V.data = $V.data.clone()", "$V.tag = 3.0", "del $V.tag",
        "$V.unsqueeze_(0)", "$V.squeeze_()", "$V.data = $V.data[:2]", "$V.grad.mul_(2)", "$V.detach_()",
        "$V.data = torch.ones(3, 3)", "$V.tag = torch.ones(3)", "$V.data = torch.ones(6)[::2]", "$V.transpose_(0, 1)",
        "$V.data = torch.arange(3)",
    ),
    has_tensors=True,
)  # fmt: skip

ARRAYS = Kind(
    values=(
        "np.ones(3, np.float32)", "np.arange(3)", "np.ones(3)", "np.zeros((1,), np.float32)",
        "np.asfortranarray(np.ones((3, 3)))", "np.ones((3, 3))", "np.array([1, 'a'], dtype=object)",
        "np.array([True])", "np.float32(2)", "np.ones(6, np.float32)[::2]",
    ),
    plain=(
        "$V.shape", "str($V.dtype)", "$V.tolist()", "float($V.sum())", "len($V)", "float($V[0])", "$V.ndim",
        "$V.flags.writeable", "$V.strides", "bool(($V == 1).all())", "[str(v) for v in $V]", "repr($V)",
        "$V.dtype == np.float32",
    ),
    tensors=(
        "torch.from_numpy($V) + $A", "torch.tensor($V) + $A", "$A * float($V.sum())",
        "$A + torch.as_tensor($V).sum()", "$A * $V.shape[0]", "$A * float($V[0])",
    ),
    changes=(
        "$V[0] = 5", "$V *= 2", "$V.fill(3)", "$V.setflags(write=False)", "$V.shape = (3, 1)", "$V.sort()",
        "$V[...] = -1", "$V.resize((2,), refcheck=False)",
    ),
    has_tensors=True,
)  # fmt: skip

WITH_TENSORS = Kind(
    values=(
        "[torch.ones(3)]", "[torch.ones(3), torch.ones(3) * 2]", "{'a': torch.ones(3)}",
        "{'a': torch.ones(3), 'b': 2}", "(torch.ones(3), 1)", "Pair(torch.ones(3), 1)", "Record(torch.ones(3), 1)",
        "[[torch.ones(3)]]", "{'a': [torch.ones(3)]}", "[torch.ones(1), 1.0]", "[TENSOR, TENSOR]", "{'a': TENSOR}",
        "[TENSOR, torch.ones(3) * 2]", "collections.deque([torch.ones(3)])", "types.SimpleNamespace(a=torch.ones(3))",
        "Plain(torch.ones(3), 2)",
    ),
    plain=(
        "len($V)", "type($V).__name__", "'a' in $V", "isinstance($V, list)", "$V[0] is TENSOR", "$V[0] is $V[-1]",
        "hasattr($V, 'a')", "[type(v).__name__ for v in $V]", "list($V)[0] == 'a'", "$V.a is TENSOR",
        "any(v is TENSOR for v in $V)",
    ),
    tensors=(
        "$A + $V[0]", "$A + $V['a']", "$A + $V.a", "sum(($A * v for v in $V), $A)",
        "torch.stack(list($V)).sum(0) + $A", "torch.cat($V)[:3] * $A", "$A + $V[0][0]", "$A + $V['a'][0]",
        "sum(($A * v for v in $V.values()), $A)", "$A * $V[0].sum()", "torch.stack([*$V, $A]).sum(0)",
        "sum((v.sum() for v in $V if isinstance(v, torch.Tensor)), $A)", "$V[-1]",
        "torch.utils._pytree.tree_leaves($V)[0] + $A",
    ),
    changes=(
        "$V.append(torch.ones(3) * 3)", "$V[0] = torch.ones(3) * 5", "$V['a'] = torch.ones(3) * 5",
        "$V['b'] = torch.ones(3)", "$V.a = torch.ones(3) * 7", "$V.pop()", "$V[0].add_(1)", "$V['a'].mul_(2)",
        "$V.a.add_(1)", "$V[0] = torch.ones(1)", "$V[0] = TENSOR", "$V['a'] = TENSOR", "TENSOR.add_(1)",
        "$V.reverse()", "$V[0][0] = torch.ones(3)", "$V['a'] = 2.0", "$V[0] = 2.0", "$V[0] = $V[0].clone()",
        "$V[0].requires_grad_()", "$V[0], $V[-1] = $V[-1], $V[0]", "$V.insert(0, torch.zeros(3))",
    ),
    has_tensors=True,
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "numbers": NUMBERS, "texts": TEXTS, "lists": LISTS, "dicts": DICTS, "sets": SETS, "deques": DEQUES,
    "records": RECORDS, "others": OTHERS, "functions": FUNCTIONS, "tensors": TENSORS, "arrays": ARRAYS,
    "with tensors": WITH_TENSORS,
}  # fmt: skip
