"""What tests of several processes share."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


__all__ = ["free_port"]
