"""``try`` around an index, key or division that may raise, as only the run knows: the handler runs on those paths."""

from __future__ import annotations

import math

import pytest
import torch

import dy2static
from tests.oracle import check, check_saved


def k(x):
    return int((x > 0).sum())


def try_idx(x):
    i = int(x.sum() > 0) * 7
    try:
        y = x[i]
    except IndexError:
        y = x[0] * 10
    return y


def idx_msg(x):
    try:
        return x[k(x) - 5] * 2, ""
    except IndexError as e:
        return x[0] * 3, str(e)


def idx_set(x):
    y = x * 1
    try:
        y[k(x) + 1] = 9.0
    except IndexError:
        y = y * 0.5
    return y


def idx_t(x):
    try:
        v = x[(x > 0).sum()]
    except IndexError:
        v = x.sum()
    return v


def idx_loop(x):
    out = []
    i = 0
    while True:
        try:
            v = x[i]
        except IndexError:
            break
        out.append(v)
        i += k(x) + 1
    return out


def idx_loop2(x):
    i, total = 0, x.sum() * 0
    while i < 10:
        try:
            total = total + x[i]
        except IndexError:
            total = total * 2
        i += k(x) + 1
    return total


def idx_rows(x):
    m = torch.stack([x, x * 2])
    try:
        return m[k(x)]
    except (IndexError, KeyError):
        return m.sum(0)


def zero_div(x):
    n = k(x)
    try:
        r = 10 / n
    except ZeroDivisionError:
        r = -1.0
    return x * r


def zero_msg(x):
    n = k(x) - 1
    out = []
    for f in (1, 2.5):
        try:
            out.append(f / n)
        except ZeroDivisionError as e:
            out.append(str(e))
    try:
        out.append(7 // n + 7 % n)
    except ArithmeticError as e:
        out.append(str(e))
    return out, x


def zero_f(x):
    s = x.sum().item()
    try:
        m = (1 + s) / s
    except ZeroDivisionError:
        m = 0.0
    return m, x


def zero_aug(x):
    m, n = 5, k(x)
    try:
        m /= n
    except ZeroDivisionError:
        m = None
    return m, x


def zero_nest(x):
    n = k(x)
    try:
        return abs(6 / n) + 3 / (n - 1), x
    except ZeroDivisionError:
        return -1, x


def zero_t(x):
    try:
        return x / (k(x) - 1)
    except ZeroDivisionError:
        return x


def zero_ret_else(x):
    n = k(x)
    try:
        q = 6 // n
    except ZeroDivisionError:
        q = 100
    else:
        q += 1
    finally:
        x = x + 1
    return q, x


def mean_safe(x):
    l = [v for v in x.tolist() if v > 0]
    try:
        return sum(l) / len(l), x
    except ZeroDivisionError:
        return 0.0, x


def text_mod(x):
    try:
        return "%d" % k(x), 4 % k(x), x
    except ZeroDivisionError:
        return "z", 0, x


def both(x):
    l = [1.0, 2.0]
    n = k(x)
    try:
        v = l[n] / (n - 1)
    except IndexError:
        v = -1.0
    except ZeroDivisionError:
        v = -2.0
    return v, x


def raise_again(x):
    n = k(x)
    try:
        v = 1 / n
    except ZeroDivisionError as e:
        raise ValueError("no") from e
    return v, x


def users(x):
    try:
        if x.sum() > 0:
            raise ZeroDivisionError("mine")
        v = 1
    except ZeroDivisionError as e:
        v = str(e)
    return v, x


def key_of_a_path(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    try:
        return d["b"]
    except KeyError as e:
        return d["a"], str(e)


def keys_of_a_loop(x):
    d = {}
    for i in range(3):
        if x[i] > 0:
            d[i] = x[i]
    out = []
    for i in range(3):
        try:
            out.append(d[i] * 2)
        except KeyError:
            out.append(None)
    return out


def key_that_is_missing(x):
    d = {"a": 1}
    try:
        v = d["zz"]
    except KeyError:
        v = 5
    return v, x


def key_deleted(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    try:
        del d["b"]
        n = 1
    except KeyError:
        n = 0
    return n, len(d), d


def cached_by_chosen_key(x):
    cache = {}
    total = x * 0
    for i in range(3):
        key = "p" if x[i] > 0 else "n"
        try:
            v = cache[key]
        except KeyError:
            v = x[i] * 10
            cache[key] = v
        total = total + v
    return total


def key_of_an_inner_dict(x):
    d = {"a": {"b": x}}
    if x.sum() > 0:
        d["a"]["c"] = x * 3
    try:
        return d["a"]["c"] + d["a"]["b"]
    except KeyError:
        return x


def key_error_as_another(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    try:
        return d["a"] + d["b"]
    except (KeyError, ValueError):
        raise RuntimeError("no b")


def index_under_key_error(x):
    l = [x, x * 2]
    try:
        return l[int((x > 0).sum())]
    except KeyError:
        return x


def key_deleted_between(x):
    d = {"a": x, "b": x * 2}
    try:
        v = d["b"]
        if x.sum() > 0:
            del d["b"]
        w = d["b"] + v
    except KeyError:
        w = x * 7
    return w, d


def index_of_nothing(x):
    rows = []
    try:
        return rows[int(x.sum())]
    except IndexError:
        return x


def index_of_nothing_yet(x):
    rows = []
    for i in range(int(x.abs().sum())):
        try:
            x = x + rows[i - 1]
            rows[i] = x
        except IndexError:
            rows.append(x * i)
    return rows, x


PROGRAMS = [
    key_of_a_path, keys_of_a_loop, key_that_is_missing, key_deleted, cached_by_chosen_key,
    key_of_an_inner_dict, key_error_as_another, index_under_key_error, key_deleted_between,
    try_idx, idx_msg, idx_set, idx_t, idx_loop, idx_loop2, idx_rows,
    zero_div, zero_msg, zero_f, zero_aug, zero_nest, zero_t, zero_ret_else,
    mean_safe, text_mod, both, raise_again, users, index_of_nothing, index_of_nothing_yet,
]  # fmt: skip
INPUTS = [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [3.0, -1.0, 0.5], [-2.5, 1.5, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_equal_eager(f, grad):
    calls = [(torch.tensor(values, requires_grad=grad),) for values in INPUTS]
    check(f, *calls, paths=("program",))


@pytest.mark.parametrize("f", PROGRAMS[::4], ids=lambda f: f.__name__)
def test_loaded(f, tmp_path):
    calls = [(torch.tensor(values),) for values in INPUTS]
    static = check(f, *calls, paths=("program",))
    dy2static.save(static, tmp_path / "f.d2s")
    check(f, *calls, static=dy2static.load(tmp_path / "f.d2s"), paths=("program",))


LEFT = {"int": "3", "float": "2.5", "bool": "True", "staged int": "n", "staged float": "s", "chosen": "c"}
BY = {"int": "n", "float": "s", "bool": "b"}


@pytest.mark.parametrize("operator", ["/", "//", "%"])
@pytest.mark.parametrize("left", LEFT)
def test_words_of_divisions(left, operator, tmp_path):
    """Each pair of kinds of numbers, in Python's own words, and the same number where nothing is raised."""
    lines = []
    for right in BY.values():
        lines += ["    try:", f"        v = {LEFT[left]} {operator} {right}", "    except ZeroDivisionError as error:",
                  "        v = str(error)", "    found.append(v)"]
    text = "\n".join([
        "def f(x):", "    n, s = int((x > 0).sum()) - 1, x.sum().item() - 6", "    b = n > 0",
        "    c = 4 if n > 0 else 1.5", "    found = []", *lines, "    return found, x", ""])
    path = tmp_path / "words.py"
    path.write_text(text)
    space = {}
    exec(compile(text, str(path), "exec"), space)
    check(space["f"], *[(torch.tensor(values),) for values in INPUTS], paths=("program",))


def shortened(x):
    items, n = [1.0, 2.0, 3.0], k(x)

    def last(items):
        return items[n - 1]

    try:
        v = items[n - 1]
        items.pop()
        v += last(items)
    except IndexError:
        v = -1.0
    return v, x


def test_what_was_there_is_not_taken_for_there():
    f = dy2static.to_static(shortened)
    with pytest.raises(dy2static.TraceError, match="D2S229"):
        f(torch.tensor([1.0, 2.0, 3.0]))


NUMBERS = [3.0, 0.0, -1.0, float("nan"), float("inf"), -float("inf"), 709.782712893384, 709.7827128933841, -2000.0]


def whole(x):
    out = []
    for a in x.tolist():
        try:
            out.append(int(a))
        except OverflowError as e:
            out.append(str(e))
        except ValueError as e:
            out.append(e.args)
    return out


def exponential(x):
    out = []
    for a in x.tolist():
        try:
            out.append(1 / (1 + math.exp(-a)))
        except OverflowError as e:
            out.append(e.args)
    return out


def several(x):
    try:
        n = int(6 / x[0].item()) + int(math.exp(x[1].item()))
    except ZeroDivisionError:
        n = -1
    except (ValueError, OverflowError):
        n = -2
    return n


@pytest.mark.parametrize("f", [whole, exponential, several])
def test_overflow(f, tmp_path):
    calls = [(torch.tensor([first, second], dtype=torch.float64),) for first in NUMBERS for second in NUMBERS[::3]]
    check_saved(f, check(f, *calls), tmp_path / "f", *calls)
