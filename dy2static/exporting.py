"""export_c: a layer or function for inference as a C library.

    export_c(model, "build/net", input_spec=[InputSpec([None, 64])])      ->      net.h net.c net.weights main.c ...
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from dy2static.saving import artefact_for_inference
from runtime.export.c import export_artefact
from runtime.kinds import is_a
from runtime.storage.artefact import Artefact
from runtime.translated import TranslatedLayer
from runtime.translated.located import located


@located
def export_c(
    layer: Any, folder: str | os.PathLike[str], input_spec: Any = None, *, name: str | None = None,
    method: str = "forward",
) -> Path:  # fmt: skip
    """Write a self-contained C library that computes what a layer or function computes. Returns the folder.

    Args:
        layer: An ``nn.Module`` (in eval mode, whatever it is in now), a function (converted by ``to_static`` or not),
            or a loaded layer.
        folder: Where to. It is made, or replaced if it holds an earlier export.
        input_spec: InputSpecs for the arguments, as ``save`` takes them; sizes of None are told at run time.
        name: The library's name, with which all of its names begin; else the folder's.
        method: The method of a module to export.

    Errors raised: StorageError D2S530 for an operator that exported C does not have, at its place in the source, and
    D2S531 for arguments, results or effects that it has no form for; whatever ``save`` raises. The disk is touched only
    when everything else has worked.
    """
    target = Path(folder)
    name = re.sub(r"\W", "_", target.name) if name is None else name
    artefact = artefact_to_export(layer, input_spec, method)
    return export_artefact(artefact, target, name, method).folder


def artefact_to_export(layer: Any, input_spec: Any, method: str) -> Artefact:
    """What is exported of a layer, a function or a loaded layer. Errors raised: ValueError for a method it has not."""
    if is_a(layer, TranslatedLayer):
        if input_spec is not None:
            raise TypeError("a loaded layer is exported as it is; it takes no input_spec")
        artefact = layer.artefact()
    else:
        artefact = artefact_for_inference(layer, input_spec, method)
    if method not in artefact.methods:
        raise ValueError(f"there is no method {method!r} to export; there are: {', '.join(artefact.methods)}")
    return artefact


__all__ = ["artefact_to_export", "export_c"]
