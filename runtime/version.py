"""The version, said once: pyproject.toml reads it, saved files carry it."""

__version__ = "0.1.0.dev0"
