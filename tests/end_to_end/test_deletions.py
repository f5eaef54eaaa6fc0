"""What a function deletes is gone at the next call: Python raises then, whether or not anything read it before."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import to_static
from runtime.errors import TraceError

SHARED: Any = 4


class Plain:
    pass


class Slots:
    __slots__ = ("a",)


class Inherits(Plain):
    pass


Deletion = tuple[Callable[[], None], Callable[[], None]]


def _of_an_object() -> Deletion:
    one = Plain()

    def delete() -> None:
        del one.a

    return delete, lambda: setattr(one, "a", [1])


def _that_the_class_has_too() -> Deletion:
    class Both:
        a = 1

    one = Both()

    def delete() -> None:
        del one.a

    return delete, lambda: setattr(one, "a", 2)


def _of_slots() -> Deletion:
    one = Slots()

    def delete() -> None:
        del one.a

    return delete, lambda: setattr(one, "a", 1)


def _by_the_slot() -> Deletion:
    one = Slots()
    return lambda: Slots.__dict__["a"].__delete__(one), lambda: setattr(one, "a", 1)


def _of_a_class() -> Deletion:
    class One:
        pass

    def delete() -> None:
        del One.a  # type: ignore[attr-defined]

    return delete, lambda: setattr(One, "a", 1)


def _of_a_class_that_inherits_it() -> Deletion:
    class Base:
        a = 1

    class One(Base):
        pass

    def delete() -> None:
        del One.a

    return delete, lambda: setattr(One, "a", 2)


def _by_delattr() -> Deletion:
    one = Plain()
    return lambda: delattr(one, "a"), lambda: setattr(one, "a", "t")


def _by_the_method() -> Deletion:
    one = Plain()
    return lambda: one.__delattr__("a"), lambda: setattr(one, "a", "t")


def _by_object() -> Deletion:
    one = Plain()
    return lambda: object.__delattr__(one, "a"), lambda: setattr(one, "a", "t")


def _of_a_parameter() -> Deletion:
    module = nn.Linear(2, 2)

    def delete() -> None:
        del module.weight

    return delete, lambda: setattr(module, "weight", nn.Parameter(torch.ones(2, 2)))


def _of_a_buffer() -> Deletion:
    module = nn.Module()

    def delete() -> None:
        del module.a

    return delete, lambda: module.register_buffer("a", torch.ones(2))


def _of_a_part() -> Deletion:
    module = nn.Module()

    def delete() -> None:
        del module.a

    return delete, lambda: setattr(module, "a", nn.Tanh())


def _of_a_modules_note() -> Deletion:
    module = nn.Tanh()

    def delete() -> None:
        del module.a

    return delete, lambda: setattr(module, "a", 3)


def _of_a_function() -> Deletion:
    def one() -> None:
        pass

    def delete() -> None:
        del one.a  # type: ignore[attr-defined]

    return delete, lambda: setattr(one, "a", 3)


def _of_a_namespace() -> Deletion:
    one = types.SimpleNamespace()

    def delete() -> None:
        del one.a

    return delete, lambda: setattr(one, "a", 3)


def _of_a_global() -> Deletion:
    def delete() -> None:
        global SHARED
        del SHARED

    return delete, lambda: globals().update(SHARED=5)


def _of_a_cell() -> Deletion:
    one: Any = None

    def delete() -> None:
        nonlocal one
        del one

    def put() -> None:
        nonlocal one
        one = 5

    return delete, put


def _of_an_item() -> Deletion:
    one: dict[str, int] = {}

    def delete() -> None:
        del one["a"]

    return delete, lambda: one.update(a=1)


CASES = {name: make for name, make in list(globals().items()) if name.startswith("_of") or name.startswith("_by")
         or name.startswith("_that")}  # fmt: skip


@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("is_caught", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_next_call_finds_it_gone(case: str, is_caught: bool, on_a_path: bool) -> None:
    seen: list[list[str]] = []
    for convert in (lambda function: function, to_static):
        delete, put = CASES[case]()

        def function(x: torch.Tensor, delete: Callable[[], None] = delete) -> torch.Tensor:
            if on_a_path and x.sum() < 0:
                return x * 3
            if not is_caught:
                delete()
                return x
            try:
                delete()
            except (AttributeError, KeyError, NameError) as error:
                return x * len(type(error).__name__)
            return x

        run: Any = convert(function)
        results: list[str] = []
        for number, value in enumerate((1.0, 1.0, -1.0, 1.0, 1.0)):
            if number in (0, 3):
                put()
            try:
                results.append(str(run(torch.tensor([value]))))
            except (AttributeError, KeyError, NameError) as error:
                results.append(f"{type(error).__name__}: {error}")
        seen.append(results)
    assert seen[1] == seen[0]


def _bound_on_a_path(x: torch.Tensor) -> torch.Tensor:
    global SHARED
    if x.sum() > 0:
        SHARED = 1
    del SHARED
    return x


def _caught_on_a_path(x: torch.Tensor) -> torch.Tensor:
    global SHARED
    if x.sum() > 0:
        SHARED = 1
    try:
        del SHARED
    except NameError:
        return x * 5
    return x


def test_a_global_that_only_some_paths_bind() -> None:
    static: Any = to_static(_bound_on_a_path)
    for sign in (1.0, -1.0, 1.0):
        seen = []
        for function in (_bound_on_a_path, static):
            globals().pop("SHARED", None)
            try:
                seen.append(str(function(torch.tensor([sign]))))
            except NameError as error:
                seen.append(str(error))
            seen.append("SHARED" in globals())
        assert seen[2:] == seen[:2]


def test_a_handler_of_what_only_some_paths_lack_is_refused() -> None:
    globals().pop("SHARED", None)
    with pytest.raises(TraceError, match="D2S229"):
        to_static(_caught_on_a_path)(torch.ones(1))
