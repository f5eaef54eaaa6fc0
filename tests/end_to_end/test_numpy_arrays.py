"""NumPy in the middle of a converted function: arrays in tensors' memory, every function of the table against eager."""

import collections
import warnings

import numpy as np
import pytest
import torch

import dy2static
import runtime
from dy2static import InputSpec, to_static
from runtime.errors import Dy2StaticError, ProgramError, StorageError, TraceError
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from runtime.ops import host_numpy
from tests.oracle import same

X = torch.tensor([1.0, 2.0, 3.0])
M = torch.tensor([[2.0, 0.5, 0.25], [0.5, 3.0, 0.125], [0.25, 0.125, 4.0]])
FILTERS = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")


def outcome(function, x):
    """What a call gives or raises, and its argument afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(x), x
        except Dy2StaticError:
            raise
        except Exception as error:
            return type(error), str(error).splitlines()[0]


def check(function, *scales, **options):
    static = to_static(function, **options)
    for scale in scales or (1.0, 0.25, -2.0):
        same(outcome(static, X * scale), outcome(function, X * scale))
    return static


# -- the table

PATTERNS = [
    lambda a, m: (a,), lambda a, m: (m,), lambda a, m: (a, a + 1), lambda a, m: (m, m + 1), lambda a, m: (a, 2),
    lambda a, m: (a.astype("int64"),), lambda a, m: (a.astype("int64"), a.astype("int64") + 1),
    lambda a, m: ([a, a * 2],), lambda a, m: (a, 0, 5.0), lambda a, m: (m, (9,)), lambda a, m: (m, 0, 1),
    lambda a, m: (a > 1, a, a * 2), lambda a, m: (m, 3), lambda a, m: ("ij->ji", m), lambda a, m: (a, "int32"),
    lambda a, m: (a, [0, 2]), lambda a, m: ([m, m],), lambda a, m: (np.expand_dims(m, 0), 3),
    lambda a, m: (a, [0.0, 2.0, 4.0], [1.0, 5.0, 9.0]), lambda a, m: (m, a), lambda a, m: (a > 1,),
    lambda a, m: (a > 1, a > 2), lambda a, m: (np.argsort(m), np.argsort(m), 0), lambda a, m: (m, np.argsort(m), 0),
    lambda a, m: (np.reshape(m, (3, 3, 1)),), lambda a, m: (np.reshape(m, (1, 1, 9)), 3),
    lambda a, m: ([a > 1, a > 2], [a, a * 2]), lambda a, m: (a, (2, 3)),
]  # fmt: skip
"""Arguments that functions are tried with."""


def calls_of(name):
    """The patterns that eager takes: of most functions several."""
    function = host_numpy.function_of(name)
    found = []
    for pattern in PATTERNS:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                given = pattern(X.numpy().copy(), M.numpy().copy())
                if not any(isinstance(one, str) for one in given) or name in ("einsum", "ndarray.astype"):
                    function(*given)
                    found.append(pattern)
            except Exception:  # not for this function
                continue
    return found[:4]


counts = collections.Counter()


def of_name(name):
    return (lambda owner, *rest: getattr(owner, name.partition(".")[2])(*rest)) if name.startswith("ndarray.") else (
        host_numpy.function_of(name))


@FILTERS
@pytest.mark.sample(8)
@pytest.mark.parametrize("name", sorted(host_numpy.NAMES))
def test_every_function_of_the_table(name):
    function = of_name(name)
    patterns = calls_of(name)
    for pattern in patterns:

        def f(x, m, pattern=pattern):
            return function(*pattern(x.numpy(), m.numpy()))

        static = to_static(f)
        for scale in (1.0, 0.5):
            expected = outcome(lambda x: f(x, M.clone()), X * scale)
            try:
                got = outcome(lambda x: static(x, M.clone()), X * scale)
            except Dy2StaticError as error:
                assert error.code == "D2S213", error
                counts["refused"] += 1
                continue
            counts["same"] += 1
            same(got, expected)
    assert patterns or name.endswith((".reduce", ".accumulate", ".outer")) or name in UNTRIED, "no arguments fit"


UNTRIED = {"ldexp", "matvec", "vecmat", "isnat", "modf", "linalg.multi_dot", "linalg.matrix_power"}
"""Functions for which no pattern fits."""


@pytest.mark.slow
def test_counts():
    """Runs last, after all cases: how many calls of the table were the same, and how many refused."""
    print(dict(counts))
    if not counts:
        pytest.skip("no case ran before it in this process")
    assert counts["same"] > 3 * counts["refused"]


# -- arrays in functions


def arithmetic(x):
    a = x.numpy()
    return a + 1, a * a, np.float32(2) * a, 2.0 * a - a / 3, -a, abs(a), a > 1, a @ a, a**2, a // 2, 1 + a.sum()


def attributes(x):
    a = x.numpy()
    return a.shape, a.dtype, a.ndim, a.size, len(a), a.T, a.nbytes, isinstance(a, np.ndarray), type(a), type(a.sum())


def numbers(x):
    a = x.numpy()
    return float(a.sum()), int(a.argmax()), a.max().item(), a.tolist(), bool(a.any()), round(float(a[0]), 2)


def in_branches(x):
    a = x.numpy()
    b = a if x.sum() > 3 else a * 2
    if b.mean() > 1 and not (b < 0).any():
        return b, b.max()
    return b - 1, b.min()


def in_loops(x):
    a, steps = x.numpy(), 0
    while abs(a.sum()) < 50:
        a = a * 2
        steps += 1
    total = 0.0
    for value in a:
        total += value
    return a, steps, total


def in_lists(x):
    found = []
    for i in range(int(x.abs().sum()) + 1):
        found.append(x.numpy() * i)
    return found, {"a": x.numpy(), "b": (x.numpy().sum(),)}, list(x.numpy())


def to_tensors(x):
    a = x.numpy()
    return torch.tensor(a), torch.as_tensor(a.astype(np.float64)), torch.from_numpy(a.astype("int64")), \
        torch.from_numpy(np.sort(a)[::-1].copy()), torch.tensor(a.sum()), torch.asarray(a)


def beside_tensors(x):
    return x * x.numpy().max(), x + float(x.numpy().min()), x[x.numpy().argmax()], x[np.argsort(x.numpy())]


def beside_arrays(x):
    return np.concatenate([x.numpy(), OUTSIDE]), x.numpy() + OUTSIDE, np.where(x.numpy() > 1, x.numpy(), np.zeros(3))


OUTSIDE = np.arange(3, dtype=np.float32)


def of_tensors(x):
    return np.exp(x), np.maximum(x, 0), np.asarray(x), np.array(x), np.asarray(x, dtype=np.float64), np.add(x, x)


def named_results(x):
    return np.linalg.svd(x.numpy().reshape(1, 3)), np.split(x.numpy(), 3), np.meshgrid(x.numpy(), x.numpy())


def wrong_shapes(x):
    return x.numpy() + np.ones(4)


def wrong_index(x):
    return x.numpy()[5]


def no_attribute(x):
    return x.numpy().sorted()


def no_dtype(x):
    return x.bfloat16().numpy()


def shared_memory(x):
    y = x * 2
    z = torch.from_numpy(y.numpy())
    a = y.numpy()
    z.add_(1)
    return y, a, z


def shared_with_an_argument(x):
    a = x.numpy()
    x.add_(1)
    return a, a.sum()


FUNCTIONS = [
    arithmetic, attributes, numbers, in_branches, in_loops, in_lists, to_tensors, beside_tensors, beside_arrays,
    of_tensors, named_results, wrong_shapes, wrong_index, no_attribute, no_dtype, shared_memory,
    shared_with_an_argument,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@FILTERS
def test_arrays_are_eagers(function):
    check(function)


@pytest.mark.parametrize("function", [arithmetic, in_branches, in_loops, to_tensors, shared_memory])
def test_arrays_in_c(function):
    check(function, backend="c")


@pytest.mark.parametrize("function", [arithmetic, in_branches, in_loops, in_lists, to_tensors, beside_arrays])
def test_a_loaded_file_calls_numpy(function, tmp_path):
    dy2static.save(to_static(function), tmp_path / "saved", input_spec=[InputSpec([3])])
    loaded = runtime.load(tmp_path / "saved")
    for scale in (1.0, 0.25):
        same(outcome(loaded, X * scale), outcome(function, X * scale))


def test_what_is_given_out_shares_memory():
    static = to_static(lambda x: (x.numpy(), np.squeeze(x.numpy())))
    x = torch.ones(1, 3)
    whole, part = static(x)
    x[0, 1] = 5
    assert whole[0, 1] == part[1] == 5


def test_an_array_from_outside_is_guarded():
    held = np.arange(3, dtype=np.float32)

    def f(x):
        return x.numpy() + held

    static = to_static(f)
    for _ in range(3):
        held[0] += 1
        np.testing.assert_array_equal(static(X), f(X))


def test_a_tensor_that_needs_a_gradient_raises_as_in_eager():
    def f(x):
        return (x * 2).numpy()

    for function in (f, to_static(f)):
        with pytest.raises(RuntimeError, match="requires grad"):
            function(X.clone().requires_grad_())


def weighted(x):
    y = x * 2
    weight = float(np.sqrt(np.abs(y.detach().numpy()).sum()))
    order = torch.from_numpy(np.argsort(y.detach().numpy()))
    return (y * y * weight)[order].cumsum(0)


@pytest.mark.parametrize("options", [{}, {"backend": "c"}, {"autograd": "eager"}], ids=["", "c", "eager"])
def test_gradients_around_arrays(options):
    for function, found in ((weighted, expected := []), (to_static(weighted, **options), got := [])):
        x = X.clone().requires_grad_()
        (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        found += [g.detach(), torch.autograd.grad(g.sum(), x)[0]]
    torch.testing.assert_close(got, expected)


def silently(x):
    with np.errstate(all="ignore"):
        a = np.log(x.numpy() - 1)
    with np.errstate(divide="raise"):
        b = x.numpy() / 2
    return a, b


def raising(x):
    with np.errstate(divide="raise"):
        return x.numpy() / (x.numpy() - 1)


@pytest.mark.parametrize("function", [silently, raising])
def test_errors_of_floating_point_are_told_as_in_eager(function, tmp_path):
    static = to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(outcome_as_it_is(static), outcome_as_it_is(function))
    dy2static.save(static, tmp_path / "saved", input_spec=[InputSpec([3])])
    same(outcome_as_it_is(runtime.load(tmp_path / "saved")), outcome_as_it_is(function))


def outcome_as_it_is(function):
    try:
        return function(X.clone())
    except Exception as error:
        return type(error), str(error).splitlines()[0]


def test_a_warning_is_given_by_each_run():
    static = to_static(lambda x: x.numpy() / (x.numpy() - 1))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            static(X)


# -- random arrays

STREAM = np.random.RandomState(1)
GENERATOR = np.random.default_rng(2)


def noise(x):
    return x + torch.from_numpy(np.random.randn(3).astype("float32")), np.random.rand(2, 2)


def mixup(x):
    lam = np.random.beta(0.4, 0.4)
    order = np.random.permutation(x.shape[0])
    return lam * x + (1 - lam) * x[order], np.random.choice(5), np.random.choice([1.0, 2.0], 3)


def on_paths(x):
    for _ in range(3):
        if np.random.rand() < 0.5:
            x = x * torch.as_tensor(STREAM.uniform(size=3))
    return x, np.random.normal(size=x.shape), np.random.randint(0, 5, size=(3,))


def by_a_generator(x):
    return GENERATOR.random(3), GENERATOR.integers(5), GENERATOR.permutation(3), x[GENERATOR.integers(3)]


def shuffled(x):
    items = [x, x * 2, x * 3]
    np.random.shuffle(items)
    return items


@pytest.mark.parametrize("function", [noise, mixup, on_paths, by_a_generator, shuffled])
def test_random_arrays(function):
    def several(function):
        np.random.seed(0)
        STREAM.seed(0)
        GENERATOR.bit_generator.state = np.random.default_rng(7).bit_generator.state
        return [outcome(function, X.clone()) for _ in range(3)], np.random.rand(), STREAM.rand(), GENERATOR.random()

    same(several(to_static(function)), several(function))


# -- refusals


def written(x):
    a = x.numpy()
    a[0] = 1
    return a


def written_in_place(x):
    a = x.numpy()
    a += 1
    return a


def by_values(x):
    a = x.numpy()
    return a[a > 1], np.unique(a)


def view_of_what_is_written(x):
    y = x * 2
    a = y.numpy()[1:]
    y.add_(1)
    return a


def backwards(x):
    return x.numpy()[::-1]


def text(x):
    return f"{x.numpy()}"


def given_away(x):
    return np.save("nowhere", x.numpy())


def array_times_tensor(x):
    return x * x.numpy(), x.numpy() * x


def stored(x):
    global KEPT
    KEPT = x.numpy()[::-1]
    return x


KEPT = None


def under_filters(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.numpy() / 0


def test_warnings_that_the_function_silences_are_refused():
    with pytest.raises(TraceError) as caught:
        to_static(under_filters)(X)
    assert caught.value.code == "D2S268"


@pytest.mark.parametrize("function", [
    by_values, backwards, text, given_away, array_times_tensor, stored])  # fmt: skip
def test_refused(function):
    x = X.clone()
    with pytest.raises(TraceError) as caught:
        to_static(function)(x)
    assert caught.value.code in ("D2S213", "D2S222") and caught.value.location is not None
    assert torch.equal(x, X)


@pytest.mark.parametrize("function", [written, written_in_place, view_of_what_is_written])
def test_writes(function):
    check(function)


def test_limits_refuse_numpy(tmp_path):
    dy2static.save(to_static(arithmetic), tmp_path / "saved", input_spec=[InputSpec([3])])
    loaded = runtime.load(tmp_path / "saved", limits=runtime.Limits(max_bytes=1 << 20))
    with pytest.raises(StorageError, match="NumPy"):
        loaded(X)


@pytest.mark.parametrize("line", [
    'host.np.load("x") attrs {gives: ["array"]}', 'host.np.sort(%x) attrs {gives: ["thing"]}', "host.np.sort(%x)",
    'host.np.add(%x, %x, out=%x) attrs {gives: ["array"]}', 'host.np.ndarray.tofile(%x, "x") attrs {gives: ["array"]}'])
def test_a_program_names_no_other_function(line):
    with pytest.raises(ProgramError):
        verify(parse_program(
            f'program "f" {{\n  input %x : f32[3] = "x"\n  %0 : f32[3] = {line}\n  return %0 as $0\n}}'))
