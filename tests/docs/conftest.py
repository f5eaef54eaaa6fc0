"""The examples of the documents print what users see: small straight lines run under torch's autograd."""

from __future__ import annotations

import pytest

from runtime.autodiff import node


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "BIG", 65_536)
