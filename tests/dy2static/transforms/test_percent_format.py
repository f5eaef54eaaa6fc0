"""Only text literals: another left side decides itself what ``%`` means."""

from __future__ import annotations

from dy2static.transforms import percent_format
from dy2static.transforms.base import rewritten


def test_text_literals_only():
    text = rewritten("def f(a, b):\n    return a % b, b'x' % b, 3 % a, 'x%s' % a", percent_format.transform)
    assert text.count("percent") == 1 and "_d2s.percent('x%s', a)" in text
