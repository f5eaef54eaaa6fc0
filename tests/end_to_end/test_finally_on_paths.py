"""A ``finally`` of a ``try`` whose body raises on some paths only: it runs on every path, however that leaves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check, check_saved


def leaves_f1(x):
    log = []
    def f():
        try:
            if x.sum() > 0:
                return "t"
            raise KeyError(1)
        except KeyError:
            return "k"
        finally:
            log.append(1)
    return f(), log


def leaves_f2(x):
    log = []
    def f():
        try:
            if x.sum() > 0:
                return "t"
            raise KeyError(1)
        except KeyError:
            return "k"
    return f(), log


def leaves_f3(x):
    log = []
    r = 0
    try:
        if x.sum() > 0:
            r = 1
        else:
            raise KeyError(1)
    except KeyError:
        r = 2
    finally:
        log.append(1)
    return r, log


def leaves_f4(x):
    log = []
    def f():
        r = 0
        try:
            if x.sum() > 0:
                r = 1
            else:
                raise KeyError(1)
        except KeyError:
            r = 2
        finally:
            log.append(1)
        return r
    return f(), log


def leaves_f5(x):
    log = []
    def f():
        r = 0
        try:
            if x.sum() > 0:
                r = 1
            else:
                raise KeyError(1)
        except KeyError:
            return 2
        finally:
            log.append(1)
        return r
    return f(), log


def leaves_f6(x):
    log = []
    def f():
        r = 0
        try:
            if x.sum() > 0:
                return 1
            else:
                raise KeyError(1)
        except KeyError:
            r = 2
        finally:
            log.append(1)
        return r
    return f(), log


def leaves_f7(x):
    log = []
    for i in range(2):
        try:
            if x.sum() > i:
                continue
            raise KeyError(1)
        except KeyError:
            break
        finally:
            log.append(i)
    return log


def leaves_f8(x):
    log = []
    def f():
        try:
            if x.sum() > 0:
                return 1
            else:
                raise KeyError(1)
        except KeyError:
            raise ValueError(2)
        finally:
            log.append(1)
    try:
        r = f()
    except ValueError:
        r = 7
    return r, log


def leaves_f9(x):
    log = []
    def f():
        try:
            if x.sum() > 0:
                return 1
            else:
                raise KeyError(1)
        except KeyError:
            return 4
        else:
            log.append(3)
        finally:
            log.append(1)
            if x[0] > 0:
                log.append(2)
    return f(), log


def leaves_h1(x):
    def f():
        try:
            try:
                if x.sum() > 0:
                    return 1
                raise KeyError(1)
            finally:
                x.mul_(2)
        except KeyError:
            return 4
    return f(), x * 1


def leaves_h2(x):
    y = x * 1
    def f():
        try:
            if x.sum() > 0:
                return 1
            raise KeyError(1)
        except KeyError:
            return 4
        finally:
            y.mul_(2)
    return f(), y


def leaves_h3(x):
    def f():
        try:
            if x.sum() > 0:
                return x
            raise KeyError(1)
        except KeyError:
            return x * 3
        finally:
            return x * 7
    return f()


def raises_a1(x):
    log = []
    def f():
        try:
            if x.sum() > 0:
                return 1
            raise KeyError(1)
        except KeyError:
            return 4
        finally:
            if x[0] > 0:
                raise ValueError("v")
            log.append(2)
    try:
        r = f()
    except ValueError:
        r = 9
    return r, log


def boom(t):
    if t.sum() > 0:
        raise IndexError("b")
    return t


def raises_a2(x):
    log = []
    def f():
        try:
            return boom(x)
        except IndexError:
            return x * 3
        finally:
            log.append(1)
    return f(), log


def raises_a3(x):
    log = []
    def f():
        try:
            return boom(x)
        finally:
            log.append(1)
    try:
        r = f()
    except IndexError:
        r = x * 5
    return r, log


def raises_a4(x):
    log = []
    def f():
        for i in range(3):
            try:
                boom(x - i * 2)
                if x.sum() > -3:
                    return i
            except IndexError:
                continue
            finally:
                log.append(i)
        return 8
    return f(), log


def raises_a5(x):
    log = []
    def f():
        try:
            return boom(x)
        except IndexError:
            return x * 3
        finally:
            boom(-x)
    try:
        r = f()
    except IndexError:
        r = x * 5
    return r, log


def raises_a6(x):
    log = []
    def f():
        try:
            try:
                return boom(x)
            finally:
                log.append(1)
        finally:
            log.append(2)
    try:
        r = f()
    except IndexError:
        r = x * 5
    return r, log


def raises_a8(x):
    s = {"n": 0}
    def f():
        s["n"] += 1
        try:
            if x.sum() > 0:
                raise KeyError("a")
            return s["n"]
        except KeyError:
            s["n"] += 10
            return s["n"]
        finally:
            s["n"] += 100
    return f(), f(), s["n"]


def raises_a9(x):
    log = []
    def f():
        try:
            if x.sum() > 0:
                return "t"
            raise KeyError(1)
        except KeyError:
            pass
        else:
            log.append("else")
        finally:
            log.append(1)
        log.append("after")
        return "e"
    return f(), log


def raises_b1(x):
    log = []
    def f():
        while True:
            try:
                if x.sum() > 0:
                    break
                raise KeyError(1)
            except KeyError:
                break
            finally:
                log.append(1)
        return len(log)
    return f(), log


def raises_b2(x):
    log = []
    def f(t):
        try:
            if t.sum() > 0:
                return t
            raise KeyError(1)
        except KeyError:
            raise ValueError("z")
        finally:
            log.append(float(t[0]))
    out = []
    for t in (x, -x):
        try:
            out.append(f(t))
        except ValueError as e:
            out.append(str(e))
    return out, log


RESULTS = {
    "tensor": "x * 2", "none": "None", "number": "len(log)", "text": "'left'", "list": "[x, x + 1]",
    "grown": "log", "dict": "{'a': x * 3}", "pair": "(x, 'b')", "of the data": "x.sum().item()",
}  # fmt: skip
"""What a function may give on one path, where on another its ``finally`` is passed by an exception."""
SEVERAL = """def f(x):
    log = [x]
    if x[0] > 2:
        log.append(x)
        return {first}
    try:
        if x.sum() < 0:
            raise KeyError("left")
        log.append(-x)
    finally:
        log.append(x * 0.5)
    return {second}
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("second", RESULTS)
@pytest.mark.parametrize("first", RESULTS)
def test_results_of_several_kinds_beside_an_exception(
    tmp_path: Path, first: str, second: str, gradient: bool
) -> None:
    """The exception leaves the whole function; what is left to give are the other paths' results."""
    (tmp_path / "several.py").write_text(SEVERAL.format(first=RESULTS[first], second=RESULTS[second]))
    function = module_of(tmp_path / "several.py").f
    calls = [(torch.tensor(one, requires_grad=gradient),) for one in ([3.0, 2.0], [-1.0, -2.0], [1.0, 0.5])]
    check_saved(function, check(function, *calls), tmp_path / "f.d2s", *calls)


REFUSED = ("raises_a1", "raises_a5")
"""Those whose ``finally`` itself raises on some paths."""
FUNCTIONS = [one for name, one in list(globals().items()) if name.startswith(("leaves_", "raises_"))]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_runs(function: Callable[..., Any]) -> None:
    calls = [(torch.tensor(one),) for one in ([1.0, 2.0], [-1.0, -2.0], [0.0, 0.0], [3.0, -1.0])]
    if function.__name__ in REFUSED:
        with pytest.raises(TraceError, match="D2S229"):
            to_static(function)(*calls[0])
    else:
        check(function, *calls)


GROUPS = """
def staged(x):
    try:
        if x.sum() > 0:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as error:
        r = len(error.exceptions)
    except* KeyError:
        r = 5
    else:
        r = 9
    return r

def known(x):
    try:
        if x.shape[0] > 1:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as error:
        r = len(error.exceptions)
    except* KeyError:
        r = 5
    return r * x

def calm(x):
    try:
        y = x * 2 if x.sum() > 0 else x
    except* ValueError:
        y = x * 7
    return y
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is Python 3.11 syntax")
def test_exception_groups(tmp_path: Path) -> None:
    (tmp_path / "groups.py").write_text(GROUPS)
    module = module_of(tmp_path / "groups.py")
    for function in (module.known, module.calm):
        check(function, (torch.ones(2),), (-torch.ones(2),))
    with pytest.raises(TraceError, match="D2S229"):
        to_static(module.staged)(torch.ones(2))
