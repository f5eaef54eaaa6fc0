"""The version of this project, said once (for pyproject.toml and saved files), and of the PyTorch it knows."""

__version__ = "0.1.0.dev0"

TORCH_TESTED = (2, 11), (2, 15)
"""The lowest supported version of PyTorch, and the highest that the tests have run with (``make test-matrix``)."""


class UntestedTorchWarning(UserWarning):
    """This PyTorch is newer than any that the tests have run with: shown once, when dy2static is imported."""
