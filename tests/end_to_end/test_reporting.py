"""Warnings and log records: made at every run, for the path that is taken, with eager's text and place."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch

import dy2static
from dy2static.errors import TraceError

LOGGER = logging.getLogger("tests.reporting")
ADAPTER = logging.LoggerAdapter(LOGGER, {"who": "me"})


class OwnWarning(UserWarning):
    pass


class _Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        names = ("name", "levelname", "lineno", "pathname", "funcName", "who")
        self.records.append((record.getMessage(), *(getattr(record, name, None) for name in names)))


def told(function, x):
    handler = _Handler()
    LOGGER.addHandler(handler)
    before, LOGGER.propagate = LOGGER.propagate, False
    LOGGER.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = str(function(x))
            except ValueError as error:
                result = repr(error)
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.propagate = before
    return result, [(w.category, str(w.message), w.lineno, w.filename) for w in caught], handler.records


def in_a_branch(x):
    if x.sum() > 0:
        warnings.warn("positive", RuntimeWarning)
    else:
        LOGGER.warning("negative %s and %d", x.sum().item(), 3)
    return x * 2


def at_a_place_of_its_own(x):
    if x.sum() > 0:
        warnings.warn_explicit(f"positive {x.sum().item()}", RuntimeWarning, "file.py", 7)
    warnings.warn_explicit(message="always", category=UserWarning, filename="file.py", lineno=8)
    return x


def always(x):
    warnings.warn("plain")
    LOGGER.info("plain")
    LOGGER.debug("never")
    LOGGER.log(logging.ERROR, "at a level")
    return x * x.sum().item()


def of_the_callers_place(x):
    warnings.warn("caller", DeprecationWarning, stacklevel=2)
    LOGGER.info("caller", stacklevel=2)
    return x


def helper(x, level):
    warnings.warn(f"helper {x.sum().item()}", stacklevel=level)
    LOGGER.info("helper", stacklevel=level)
    return x


def through_a_helper(x):
    y = helper(x, 1)
    if x.sum() > 0:
        y = helper(x, 2)
    return helper(y, 3)


def in_a_loop(x):
    steps = 0
    while x.sum() > 0:
        x = x - 1
        steps = steps + 1
        LOGGER.info("step %d: %s", steps, x)
        if steps > 1:
            warnings.warn(f"step {steps}", OwnWarning)
    return x


def of_an_instance(x):
    warnings.warn(OwnWarning(f"n={int(x.sum())}"))
    return x


def with_extra_fields(x):
    ADAPTER.info("adapted %s", x.sum().item())
    LOGGER.info("extra", extra={"who": "you"})
    return x


def then_raises(x):
    if x.sum() > 0:
        warnings.warn("before")
        raise ValueError("a")
    return x


def differing_text(x):
    text = "yes" if x.sum() > 0 else "no"
    LOGGER.info(text)
    LOGGER.info("it is %s", text)
    warnings.warn(text)
    return x


@pytest.mark.parametrize("function", [
    in_a_branch, always, of_the_callers_place, through_a_helper, in_a_loop, of_an_instance, with_extra_fields,
    then_raises, differing_text, at_a_place_of_its_own,
], ids=lambda f: f.__name__)  # fmt: skip
def test_each_run_tells_what_eager_tells(function):
    converted = dy2static.to_static(function)
    for value in (1.0, -1.0, 2.0, 1.0):
        x = torch.full((2,), value)
        assert told(converted, x.clone()) == told(function, x.clone())


def test_filters_in_force_at_run_time_decide():
    converted = dy2static.to_static(in_a_branch)
    x = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="positive"):
            converted(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            converted(x)
    assert len(caught) == 1


def test_backward_tells_nothing_again():
    converted = dy2static.to_static(in_a_loop)
    x = torch.full((2,), 2.0, requires_grad=True)

    def both(x):
        y = converted(x)
        y.sum().backward()
        return y.detach()

    _, caught, records = told(both, x)
    assert (len(caught), len(records)) == (1, 2)


def test_a_level_is_read_at_each_run():
    converted = dy2static.to_static(always)
    told(converted, torch.ones(2))
    handler = _Handler()
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted(torch.ones(2))
    finally:
        LOGGER.removeHandler(handler)
    assert [record[0] for record in handler.records] == ["at a level"]


def enabled(x):
    return x * 2 if LOGGER.isEnabledFor(logging.DEBUG) else x


def enabled_by_an_adapter(x):
    return x * 2 if ADAPTER.isEnabledFor(level=logging.DEBUG) else x


def effective_level(x):
    return x * LOGGER.getEffectiveLevel()


@pytest.mark.parametrize("function", [enabled, enabled_by_an_adapter, effective_level])
def test_what_a_logger_is_asked_may_change(function):
    converted = dy2static.to_static(function)
    before = LOGGER.level
    try:
        for level in (logging.WARNING, logging.DEBUG, logging.WARNING):
            LOGGER.setLevel(level)
            for _ in range(5):
                assert torch.equal(converted(torch.ones(2)), function(torch.ones(2)))
        assert len(converted.programs) == 2
    finally:
        LOGGER.setLevel(before)


def test_silence_inside_the_function_is_kept():
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("quiet")
        return x

    assert told(dy2static.to_static(f), torch.ones(2))[1] == []


def _traceback(x):
    try:
        if x.sum() > 0:
            raise ValueError("a")
    except ValueError:
        LOGGER.exception("oops")
    return x


def _recorded(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("a")
    return x * len(caught)


def _explicit(x):
    warnings.warn_explicit("a", UserWarning, "file", 1, registry={})
    return x


_UNKNOWN = logging.Logger("tests.reporting")
"""Of the name of another logger, which ``logging.getLogger`` gives."""
_NAMELESS = logging.Logger("tests.reporting.nameless")


def _unknown(x):
    _UNKNOWN.warning("lost")
    return x * 2


def _nameless(x):
    while x.sum() < 10:
        x = x * 2
    _NAMELESS.warning("lost")
    return x


def _with_a_handler(x):
    handler = _Handler()
    LOGGER.addHandler(handler)
    try:
        LOGGER.warning("heard")
    finally:
        LOGGER.removeHandler(handler)
    return x * len(handler.records)


def _at_a_level(x):
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.debug("heard")
    return x


class _Counting(logging.Filter):
    seen = 0

    def filter(self, record):
        _Counting.seen += 1
        return True


HEARD = logging.getLogger("tests.reporting.heard")
HEARD.propagate = False
HEARD.addHandler(_Handler())
HEARD.addFilter(_Counting())


def _reads_what_a_handler_holds(x):
    HEARD.warning("w")
    return x * len(HEARD.handlers[0].records)


def _adds_to_what_a_handler_holds(x):
    HEARD.warning("w")
    HEARD.handlers[0].records.append("end")
    return x


def _reads_what_a_filter_counts(x):
    HEARD.warning("w")
    return x * _Counting.seen


SHOWN = []


def show(message, *rest, **named):
    SHOWN.append(str(message))


def _shows_otherwise(x):
    before, warnings.showwarning = warnings.showwarning, show
    warnings.warn("a")
    warnings.showwarning = before
    return x * len(SHOWN)


def _filters_for_all(x):
    warnings.filterwarnings("error", message="bad")
    try:
        warnings.warn("bad")
    except UserWarning:
        return -x
    return x


@pytest.mark.parametrize("function", [
    _traceback, _recorded, _explicit, _unknown, _nameless, _with_a_handler, _at_a_level, _reads_what_a_handler_holds,
    _adds_to_what_a_handler_holds, _reads_what_a_filter_counts, _shows_otherwise, _filters_for_all,
], ids=lambda f: f.__name__)
def test_what_cannot_be_repeated_is_refused(function):
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(function)(torch.ones(2))
    assert caught.value.code == "D2S268" and caught.value.location is not None


def test_what_a_users_showwarning_holds_is_not_read_inside(monkeypatch):
    def f(x):
        warnings.warn("a")
        return x * len(SHOWN)

    with warnings.catch_warnings(), pytest.raises(TraceError, match="D2S268"):
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        dy2static.to_static(f)(torch.ones(2))


def test_settings_that_are_put_back_before_a_record_are_no_change():
    def f(x):
        level = LOGGER.level
        LOGGER.setLevel(logging.ERROR)
        LOGGER.setLevel(level)
        LOGGER.warning("heard")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("quiet")
        warnings.warn("loud")
        return x

    assert told(dy2static.to_static(f), torch.ones(2)) == told(f, torch.ones(2))


def test_a_saved_program_tells_too(tmp_path):
    dy2static.save(dy2static.to_static(in_a_branch), tmp_path / "f", [torch.ones(2)])
    loaded = dy2static.load(tmp_path / "f")
    _, caught, _ = told(loaded, torch.ones(2))
    assert [(one[0], one[1]) for one in caught] == [(RuntimeWarning, "positive")]
    assert [record[0] for record in told(loaded, -torch.ones(2))[2]] == ["negative -2.0 and 3"]
