"""``dy2static.export_c``: a Program for inference as a C library of its own, without Python and PyTorch.

    Artefact > Variant -> Program -> source.write -> templates -> a folder: header, source, weights, main.c, Makefile

``source`` writes the function with the generator of ``runtime.native``; ``rules`` is the index of what it does beyond
that (``spatial``, ``indexing``, ``ordering``, ``shaping``, ``products``, ``normalising``, ``recurrent``,
``arithmetic``), ``failures`` what is said where it gives up, ``runtime_text`` the C that it stands on, ``interface``
the caller's side.
"""

from __future__ import annotations

from runtime.export.c.library import Exported, export_artefact

__all__ = ["Exported", "export_artefact"]
