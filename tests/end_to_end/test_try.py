"""``try`` around what a tensor decides: caught as in eager where it stands in the body, refused elsewhere."""

from __future__ import annotations

import math

import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check

CALLS = tuple(
    (torch.tensor(values, requires_grad=True),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.1, 0.2, -0.1])
)


class Plain:
    pass


def helper(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x * 5


def catches_raise(x):
    try:
        if x.sum() > 0:
            raise ValueError("pos")
        y = x * 2
    except ValueError as e:
        y = x * 3
    return y


def catches_else_finally(x):
    n = 0
    try:
        if x.sum() > 0:
            raise ValueError("pos")
        n += 1
    except ValueError:
        n += 10
    else:
        n += 100
    finally:
        n += 1000
    return x * n


def catches_state(x):
    y = x
    try:
        y = y + 1
        if y.sum() > 3:
            raise ValueError
        y = y + 1
        if y.sum() > 0:
            raise KeyError
        y = y + 1
    except ValueError:
        y = y * 2
    except KeyError:
        y = y * 3
    return y


def catches_loop(x):
    for i in range(4):
        try:
            x = x + 1
            if x.sum() > 3:
                raise ValueError
            x = x * 2
        except ValueError:
            x = x - 3
    return x


def catches_while(x):
    n = 0
    while n < 5 and x.sum() < 100:
        try:
            n += 1
            if x.sum() > 3:
                raise ValueError
            x = x * 2 + 1
        except ValueError:
            x = x * 3
            continue
    return x


def catches_finally_return_swallows(x):
    try:
        if x.sum() > 0:
            raise ValueError("a")
    finally:
        return x * 2


def catches_raise_in_loop_caught_outside(x):
    n = 0
    try:
        while True:
            x = x + 1
            n += 1
            if x.sum() > 10:
                raise StopIteration
    except StopIteration:
        pass
    return (x, n)


def catches_for_tensor_raise_outside(x):
    s = 0
    try:
        for v in x:
            if v > 2:
                raise ValueError(1)
            s = s + v
    except ValueError:
        s = s * 2
    return s


def catches_custom_exc_attr(x):

    class Done(Exception):
        def __init__(self, value):
            self.value = value

    try:
        if x.sum() > 0:
            raise Done(x * 2)
    except Done as e:
        return e.value * 2
    return x


def catches_isinstance_exc(x):
    try:
        if x.sum() > 0:
            raise KeyError("a")
        if x.sum() < -3:
            raise IndexError("a")
    except LookupError as e:
        return x * 2 if isinstance(e, KeyError) else x * 3
    return x


def catches_bare(x):
    try:
        if x.sum() > 0:
            raise ValueError("a")
        y = x
    except ValueError:
        y = x + 1
        raise
    return y


def catches_sibling(x):
    try:
        if x.sum() > 0:
            raise ValueError("a")
        y = x
    except ValueError:
        raise KeyError("z")
    except KeyError:
        y = x * 100
    return y


def catches_same_again(x):
    try:
        if x.sum() > 0:
            raise ValueError("a")
        y = x
    except ValueError as e:
        raise ValueError("better") from e
    return y


def catches_swallow_in_loop(x):
    n = 0
    for i in range(5):
        try:
            for j in range(3):
                if x.sum() + i + j > 4:
                    raise ValueError
                n += 1
        except ValueError:
            n += 100
    return x * n


def catches_continue_in_handler(x):
    n = 0
    for i in range(5):
        try:
            if x.sum() + i > 4:
                raise ValueError
            n += 1
        except ValueError:
            n += 100
            continue
        n += 1000
    return x * n


def catches_break_in_handler(x):
    n = 0
    for i in range(5):
        try:
            if x.sum() + i > 4:
                raise ValueError
            n += 1
        except ValueError:
            n += 100
            break
        n += 1000
    else:
        n += 7
    return x * n


def catches_return_in_handler(x):
    for i in range(5):
        try:
            x = x + 1
            if x.sum() > 6:
                raise ValueError
        except ValueError:
            return (x * 100, i)
        finally:
            x = x * 2
    return (x, -1)


def catches_else(x):
    n = 0
    try:
        if x[0] > 0:
            if x.sum() > 0:
                raise ValueError
            n = 1
    except ValueError:
        n = 2
    else:
        n += 10
    return x * n


def catches_two_raises(x):
    try:
        if x[0] > 0.5:
            raise ValueError("a")
        elif x[0] < 0:
            raise KeyError("b")
        y = x
    except (ValueError, KeyError) as e:
        y = x * (2 if isinstance(e, KeyError) else 3)
    return y


def catches_state_at_raise(x):
    s = []
    try:
        s.append(x)
        x = x * 2
        if x.sum() > 0:
            x = x + 1
            raise ValueError(x)
        x = x * 5
    except ValueError as e:
        s.append(e.args[0])
    else:
        s.append(x)
    return (s, x)


def catches_attr_at_raise(x):
    o = Plain()
    o.n = 0
    try:
        o.n = 1
        if x.sum() > 0:
            o.n += 5
            raise ValueError
        o.n = 7
    except ValueError:
        o.n += 100
    return x * o.n


def catches_inplace_at_raise(x):
    y = x * 1
    try:
        y += 1
        if y.sum() > 0:
            y.mul_(2)
            raise ValueError
        y.mul_(3)
    except ValueError:
        y.add_(10)
    return y


def catches_exception_all(x):
    try:
        if x.sum() > 0:
            raise ValueError("q")
        return x * 2
    except Exception as e:
        return x * len(str(e))


def catches_bareexcept(x):
    try:
        if x.sum() > 0:
            raise ValueError("q")
        return x * 2
    except:  # noqa: E722  # what is tested
        return x * 5


def catches_unmatched(x):
    try:
        if x.sum() > 0:
            raise ValueError("q")
        return x * 2
    except KeyError:
        return x * 5


def catches_nested_fn(x):

    def g():
        try:
            if x.sum() > 0:
                raise ValueError("q")
        except ValueError:
            return 3
        return 4

    return x * g()


def catches_in_branch(x):
    if x[0] > 0:
        try:
            if x.sum() > 1:
                raise ValueError
            y = x
        except ValueError:
            y = x * 7
    else:
        y = x * 2
    return y


def catches_while_staged(x):
    n = 0
    while x.sum() < 20:
        try:
            x = x + 1
            if x[0] > 2:
                raise ValueError
            n += 1
        except ValueError:
            x = x + 5
        finally:
            n += 10
    return (x, n)


def catches_loop_in_try(x):
    n = 0
    try:
        while x.sum() < 20:
            x = x + 1
            for j in range(3):
                n += 1
                if x[0] + j > 4:
                    raise ValueError(n)
    except ValueError as e:
        n = e.args[0] * 100
    return (x, n)


def catches_e_deleted(x):
    e = 5
    try:
        if x.sum() > 0:
            raise ValueError
    except ValueError as e:
        pass
    return x * e


def catches_assert_loop(x):
    for i in range(4):
        try:
            assert x.sum() < 3, f"{i}"
            x = x + 1
        except AssertionError as e:
            x = x * 2
    return x


def catches_finally_raise(x):
    log = []
    try:
        try:
            if x.sum() > 0:
                raise ValueError
        except ValueError:
            log.append(1)
        finally:
            log.append(2)
    except KeyError:
        log.append(3)
    return (x, len(log))


def catches_match(x):
    k = int(x.shape[0])
    try:
        match k:
            case 3:
                if x.sum() > 0:
                    raise ValueError
            case _:
                pass
        y = x * 2
    except ValueError:
        y = x * 3
    return y


def catches_rec(x, d=0):
    try:
        if d == 2 and x.sum() > 0:
            raise ValueError
        if d < 3:
            return catches_rec(x, d + 1) + 1
    except ValueError:
        return x * 10
    return x


def handed_helper(x):
    try:
        return helper(x)
    except ValueError:
        return x


def handed_reraise(x):
    try:
        try:
            if x.sum() > 0:
                raise ValueError("a")
            y = x
        except ValueError:
            raise KeyError("b")
    except KeyError:
        y = x * 7
    return y


def handed_index(x):
    items = [x, x * 2]
    try:
        return items[int(x.sum())]
    except IndexError:
        return x


def handed_zerodiv(x):
    try:
        return x / (1 // int(x.sum()))
    except ZeroDivisionError:
        return x


def catches_math(x):
    try:
        return x * math.sqrt(x.sum().item())
    except ValueError:
        return x


def catches_pops(x):
    a = [x]
    if x.sum() > 0:
        a.append(x)
    try:
        a.pop()
        a.pop()
        return x
    except IndexError:
        return x * 2


def cannot_unbound(x):
    if x.sum() > 0:
        y = x
    try:
        return y
    except UnboundLocalError:
        return x * 2


def cannot_none(x):
    y = None
    if x.sum() > 0:
        y = x
    try:
        return y + 1
    except TypeError:
        return x * 2


def cannot_break_in_handler_inner_loop(x):
    n = 0
    for i in range(5):
        try:
            for j in range(3):
                if x.sum() + i > 4:
                    raise ValueError
            n += 1
        except ValueError:
            break
    return x * n


def handed_with_in_try(x):
    try:
        with torch.no_grad():
            if x.sum() > 0:
                raise ValueError
    except ValueError:
        return x * 2
    return x


def passes_helper(x):
    try:
        return helper(x)
    except ValueError:
        raise


def passes_index(x):
    items = [x, x * 2]
    try:
        return items[int(x.sum() > 0)]
    except IndexError as error:
        raise


def passes_bare(x):
    try:
        return x / (1 // int(x.sum()))
    except:
        raise


def passes_before_one_that_catches(x):
    try:
        return helper(x)
    except (KeyError, ValueError):
        raise
    except Exception:
        return x * 2


def passes_with_a_raise_that_moves(x):
    try:
        if x.sum() < 0:
            raise KeyError("negative")
        return helper(x)
    except KeyError:
        return x * 2
    except ValueError:
        raise


def passes_moved(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        return helper(x)
    except ValueError:
        raise


def passes_loop(x):
    n = 0
    for i in range(3):
        try:
            n += 1 // (i - int(x.sum() > 0) * 7)
        except ZeroDivisionError:
            raise
    return x * n


def handed_pass_to_an_outer_one(x):
    try:
        try:
            return helper(x)
        except ValueError:
            raise
    except ValueError:
        return x


def handed_pass_after_one_that_catches(x):
    try:
        return helper(x)
    except Exception:
        return x
    except ValueError:
        raise


def handed_do_something_before(x):
    told = []
    try:
        return helper(x)
    except ValueError:
        told.append(1)
        raise


def handed_store_at(x):
    items = [x, x * 2]
    try:
        items[int(x.sum())] = x
    except IndexError:
        pass
    return items


def handed_index_tuple(x):
    items = (x, x * 2)
    try:
        return items[int(x.sum())]
    except IndexError:
        return x


def chooses_a_value(x):
    try:
        y = x + 1 if x.sum() > 0 else 2
        z = y * 2
        return z + x
    except IndexError:
        return x


def chooses_a_number(x):
    i = 2 if x.sum() > 0 else 0.5
    try:
        n = (i + 0) in (0, 2)
        return x * n + i
    except (KeyError, ValueError, IndexError):
        return x


def chooses_an_attribute(x):
    one = Plain()
    if x.sum() > 0:
        one.value = 3
    try:
        return x * getattr(one, "value", 5), hasattr(one, "value")
    except IndexError:
        return x


def chooses_a_loop(x):
    items = [x, x * 2] if x.sum() > 0 else (x,)
    n = 0
    try:
        for item in items:
            n = n + item
    except IndexError:
        n = 7
    return n


LIKE_EAGER = [
    passes_helper,
    passes_index,
    passes_bare,
    passes_before_one_that_catches,
    passes_with_a_raise_that_moves,
    passes_moved,
    passes_loop,
    chooses_a_value,
    chooses_a_number,
    chooses_an_attribute,
    chooses_a_loop,
    catches_raise,
    catches_else_finally,
    catches_state,
    catches_loop,
    catches_while,
    catches_finally_return_swallows,
    catches_raise_in_loop_caught_outside,
    catches_for_tensor_raise_outside,
    catches_custom_exc_attr,
    catches_isinstance_exc,
    catches_bare,
    catches_sibling,
    catches_same_again,
    catches_swallow_in_loop,
    catches_continue_in_handler,
    catches_break_in_handler,
    catches_return_in_handler,
    catches_else,
    catches_two_raises,
    catches_state_at_raise,
    catches_attr_at_raise,
    catches_inplace_at_raise,
    catches_exception_all,
    catches_bareexcept,
    catches_unmatched,
    catches_nested_fn,
    catches_in_branch,
    catches_while_staged,
    catches_loop_in_try,
    catches_e_deleted,
    catches_assert_loop,
    catches_finally_raise,
    catches_match,
    catches_rec,
    catches_pops,
    handed_pass_to_an_outer_one,
    handed_pass_after_one_that_catches,
    handed_do_something_before,
    handed_helper,
    handed_reraise,
    handed_with_in_try,
    handed_store_at,
    handed_index_tuple,
    handed_index,
    handed_zerodiv,
    catches_math,
]
REFUSED = [
    cannot_unbound,
    cannot_none,
    cannot_break_in_handler_inner_loop,
]


@pytest.mark.parametrize("function", LIKE_EAGER, ids=lambda function: function.__name__)
def test_like_eager(function):
    check(function, *CALLS)


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_refused(function):
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(function)(*CALLS[0])
    assert caught.value.code == "D2S229"


@pytest.mark.parametrize("name", ["cholesky", "inv", "lu_factor"])
def test_errors_of_linear_algebra_are_raised_under_gradients(name):
    def f(x):
        found = getattr(torch.linalg, name)(torch.diag(torch.relu(x)))
        return found[0] if isinstance(found, tuple) else found

    check(f, *CALLS)


def test_linear_algebra_in_a_try():
    def f(x):
        try:
            return torch.linalg.cholesky(torch.diag(x))
        except torch.linalg.LinAlgError:
            return torch.diag(x)

    check(f, *CALLS)


def known_indices(x, limit):
    position = 0
    try:
        y = x[[1, 2, 0]]
        z = y[0]
        position = (0, 1)[int(limit.shape[0])]
    except IndexError:
        position = 5
    if y.sum() > 0:
        z = z + 1
    return y, z, position


def test_indices_that_are_known_cannot_be_out_of_range():
    check(known_indices, (torch.ones(3), torch.ones(1)), (-torch.ones(3), torch.ones(1)))
    check(known_indices, (torch.ones(3), torch.ones(4)))


def bound_again_in_finally(x, limit):
    m = 1
    if x.sum() > limit:
        pass
    else:
        if x.max() > 0.1:
            m = 2
        else:
            m = 3
        try:
            x = x + {}["absent"]
        except KeyError:
            try:
                x = x + 1
            finally:
                m = m + 1
        x = x * m
    return x


def test_a_variable_of_a_branch_that_only_finally_binds_plainly():
    check(bound_again_in_finally, (torch.ones(3), 9.0), (-torch.ones(3), 9.0), (torch.ones(3), 1.0))


def of_a_branch_only(x, limit):
    m = 1
    if x.sum() > limit:
        pass
    else:
        if x.max() > 0.1:
            m = 2
        else:
            m = 3
        try:
            x = x + 1
        finally:
            m = m + 1
    return x


def test_a_variable_of_a_branch_that_nothing_reads_afterwards():
    check(of_a_branch_only, (torch.ones(3), 9.0), (-torch.ones(3), 9.0), (torch.ones(3), 1.0))


def of_one_of_two_dicts(x, key):
    d = {"p": x}
    if x.sum() > 0:
        d = {**d, "q": x * 2}
    try:
        c = d["absent"]
    except KeyError as error:
        c = x - len(error.args[0])
    try:
        c = c + d["p"]
    except KeyError:
        c = c + 1
    return c


def test_a_key_that_none_of_several_dicts_has():
    check(of_one_of_two_dicts, (torch.ones(3), "p"), (-torch.ones(3), "p"))
