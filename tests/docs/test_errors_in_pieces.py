"""Every example of the page of errors that cannot become a Program runs with ``full_graph=False``, as eager runs it."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import api, settings
from tests.docs.test_errors import EXAMPLES, IMPORTS, Entry
from tests.oracle import seeded

WITHOUT_EAGER = {"D2S110", "D2S111", "D2S283", "D2S284", "D2S285", "D2S294"}
"""Examples that ask for a source text, or for what eager has no answer to: decisions under ``vmap``, a trace."""


def tracing(entry: Entry) -> bool:
    return entry.code < "D2S3" and entry.code not in WITHOUT_EAGER


def ran(entry: Entry, folder: Path, monkeypatch: pytest.MonkeyPatch, lenient: bool) -> tuple[Any, Any, str, Any]:
    """What the example's last names hold, the exception it ends in, what it prints, and the next random number."""
    file = folder / f"example_{lenient}.py"
    example = str(entry.example)
    file.write_text(f"{IMPORTS}\n{example}", "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    seeded(3)
    text = io.StringIO()
    names: dict[str, Any] = {}
    raised: Exception | None = None
    real = api.to_static

    def loose(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **{**kwargs, "full_graph": False})

    with monkeypatch.context() as patched, contextlib.redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if lenient:
            patched.setattr(dy2static, "to_static", loose)
        else:
            settings.enable_to_static(False)
        try:
            names = runpy.run_path(str(file), run_name="__main__")
        except Exception as error:  # eager's, too
            raised = error
        finally:
            settings.enable_to_static(True)
    return names, raised, text.getvalue(), torch.rand(())


@pytest.mark.parametrize("entry", [entry for entry in EXAMPLES if tracing(entry)], ids=lambda entry: entry.code)
def test_example(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, raised, said, drawn = ran(entry, tmp_path, monkeypatch, True)
    names_eager, raised_eager, said_eager, drawn_eager = ran(entry, tmp_path, monkeypatch, False)
    assert type(raised) is type(raised_eager), f"{raised!r} and in eager {raised_eager!r}"
    assert str(raised) == str(raised_eager)
    assert said == said_eager
    assert torch.equal(drawn, drawn_eager)
    for name, value in names_eager.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(names[name], value), name
