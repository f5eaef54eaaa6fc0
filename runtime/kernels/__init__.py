"""``backend="cuda"``: runs of Operators on CUDA tensors as few kernels, generated as for C.

    Program -> emitter: regions -> lowering: nests and rows (the rules of runtime.native) -> text: kernels, and the
    Python that launches them -> launch: NVRTC at first use, the current stream

No kernel has run on a GPU yet. The tests compile them with nvcc, and run the same text on the CPU.
"""

from __future__ import annotations

from runtime.kernels.executable import KernelExecutable, KernelShare, compile_program

__all__ = ["KernelExecutable", "KernelShare", "compile_program"]
