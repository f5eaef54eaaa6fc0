"""Loggers that a user's objects hold: what they note for themselves is no change that a path makes."""

from __future__ import annotations

import logging

import torch

from dy2static import not_to_static, to_static


@not_to_static
def _asks_whether_it_records(logger):
    return logger.isEnabledFor(logging.DEBUG)


def _held_by_an_object(x, logger):
    holder = [logger]
    if x.sum() > 0:
        x = x * (2 if _asks_whether_it_records(logger) else 3)
    for _ in range(3):
        x = x * (2 if _asks_whether_it_records(holder[0]) else 3)
        if x.sum() > 20:
            break
    return x


def test_what_a_logger_notes_for_itself_is_no_change():
    """Whoever asks a logger fills its cache, torch's own code in the middle of a trace for one."""
    logger = logging.getLogger("dy2static.tests.asked")
    for value in (1.0, -1.0, 9.0):
        logger.manager._clear_cache()
        static = to_static(_held_by_an_object)
        x = torch.tensor([value, 0.5])
        assert torch.equal(static(x, logger), _held_by_an_object(x, logger))


OTHER = logging.getLogger("dy2static.tests.other")


@not_to_static
def _asks_the_other():
    return OTHER.isEnabledFor(logging.DEBUG)


def _sets_a_level(x, logger):
    logger.setLevel(logging.WARNING)
    if x.sum() > 0:
        x = x * (2 if _asks_the_other() else 3)
    return x


def test_what_all_loggers_note_after_a_level_was_set():
    """Every logger forgets then what it knew. What leads from one to all others leads to what they note as well."""
    logger = logging.getLogger("dy2static.tests.level")
    for value in (1.0, -1.0, 9.0):
        x = torch.tensor([value, 0.5])
        assert torch.equal(to_static(_sets_a_level)(x, logger), _sets_a_level(x, logger))
