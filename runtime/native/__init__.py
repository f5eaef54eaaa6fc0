"""``backend="c"``: Programs as C, loops and gradients included, held against the interpreter everywhere.

    Program -> emitter: regions -> lowering: one C function each (rules, a file a kind of operator) -> build: a library

``values`` says what the generator knows of a value, ``nest`` writes loops over elements, ``region`` is the way into C
and back, ``calls`` and ``serving`` are the way from C to Python. ``cache`` keeps libraries, ``background`` builds them
while the process goes on.
"""

from __future__ import annotations

from runtime.native.executable import NativeExecutable, Share, c_of, compile_now, compile_program

__all__ = ["NativeExecutable", "Share", "c_of", "compile_now", "compile_program"]
