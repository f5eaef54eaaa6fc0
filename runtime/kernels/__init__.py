"""``backend="cuda"``: runs of Operators on CUDA tensors as few kernels, generated as for C.

    Program -> emitter: regions -> lowering: nests and rows (the rules of runtime.native) -> text: kernels, and the
    Python that launches them -> launch: NVRTC at first use, the current stream

Runs of them, PyTorch's operators included, are recorded and replayed (``recorded``, ``runs``). The tests compile the
kernels with nvcc, and run the same text on the CPU, or all of it on a device if there is one (``tests.devices``).
"""

from __future__ import annotations

from runtime.kernels.executable import KernelExecutable, KernelShare, compile_program

__all__ = ["KernelExecutable", "KernelShare", "compile_program"]
