"""``raise`` under a condition, caught in the same function."""

import textwrap

import pytest

from dy2static.transforms import caught_raise
from dy2static.transforms.base import rewritten

UNCHANGED = {
    "unconditional": "raise ValueError",
    "another type": "if x:\n                raise KeyError",
    "in a with": "with x:\n                if x:\n                    raise ValueError",
    "in a function": "def g():\n                if x:\n                    raise ValueError",
    "bare": "if x:\n                raise",
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_left_alone(name):
    source = f"""
    def f(x):
        try:
            {UNCHANGED[name]}
        except ValueError:
            pass
    """
    assert "attempt" not in rewritten(textwrap.dedent(source), caught_raise.transform)


def test_a_handler_that_leaves_the_loop_around_the_try_stays_out_of_inner_loops():
    source = """
    def f(x):
        for i in x:
            try:
                for j in x:
                    if j:
                        raise ValueError
            except ValueError:
                continue
    """
    assert "attempt" not in rewritten(textwrap.dedent(source), caught_raise.transform)


def test_many_raises_are_left_alone():
    body = "\n".join(f"            if x == {k}:\n                raise ValueError" for k in range(9))
    source = f"""
    def f(x):
        try:
{body}
        except ValueError:
            pass
    """
    assert "attempt" not in rewritten(textwrap.dedent(source), caught_raise.transform)


def test_it_still_runs_as_plain_python():
    source = """
    def f(x):
        found = []
        for k in x:
            try:
                if k == 1:
                    raise ValueError("one")
                assert k != 2, "two"
                found.append(k)
            except ValueError as error:
                found.append(str(error))
                if len(found) > 3:
                    raise KeyError("many")
            except AssertionError as error:
                found.append(str(error))
            except KeyError:
                found.append("never")
            else:
                found.append("else")
        return found
    """
    from dy2static import operators

    spaces = [{}, {"_d2s": operators}]

    exec(textwrap.dedent(source), spaces[0])
    exec(rewritten(textwrap.dedent(source), caught_raise.transform), spaces[1])
    for values in ([0, 1, 2], [1, 2], [], [2, 2, 2, 0]):
        assert spaces[0]["f"](values) == spaces[1]["f"](values)
    for space in spaces:
        with pytest.raises(KeyError, match="many"):
            space["f"]([0, 0, 1])
