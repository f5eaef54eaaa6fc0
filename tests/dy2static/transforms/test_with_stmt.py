"""``with``: managers go through an operator, but not the transforms' own."""

import textwrap

from dy2static.transforms import caught_raise, except_handler, with_stmt
from dy2static.transforms.base import rewritten


def test_ours_are_left_alone():
    source = """
    def f(x, lock):
        try:
            with lock:
                if x:
                    raise ValueError
            if x:
                raise ValueError
        except ValueError:
            pass
    """
    text = rewritten(textwrap.dedent(source), caught_raise.transform, with_stmt.transform, except_handler.transform)
    assert text.count("_d2s.context(") == 1 and "_d2s.context(lock)" in text
    assert text.count("with _d2s.handling(") == 1
    assert "with _d2s.catching(lambda: ValueError, _d2s_attempt_1):" in text
