"""Writes docs/third_party.md from what the tests declare: ``python -m tests.third_party.table``.

It needs the libraries, for their versions.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from components import COMPONENTS, Component
from generation import CAPTURED, NEW
from generation import REFUSED as NOT_GENERATED
from libraries import DISTRIBUTIONS, LIBRARIES, Library
from loops import LOOPS
from models import FLOAT32, KINDS, LENGTHS, MODELS, REFUSED

COMPONENTS = {**COMPONENTS, **LOOPS}
PIECES: dict[str, Library | Component] = {**LIBRARIES, **COMPONENTS}
PAGE = Path(__file__).parents[2] / "docs" / "third_party.md"

_HEAD = """# Code that was not written for dy2static

What other people's code does when it is converted, unmodified. The lists are those of
[tests/third_party](../tests/third_party), which hold each line against eager PyTorch; in a checkout, install the
libraries with `pip install -e ".[dev,third-party]"` and run them with `pytest -m slow tests/third_party`. This page is
written by `python -m tests.third_party.table`.
"""

_VERSIONS = "Versions: "

_MODELS = """## Hugging Face transformers

Tiny random models, forward captured whole by `to_static(model)`, with loss where the model has one: one Program for
the inputs tried. Outputs are equal to eager to the last bit, in training (with dropout, under one seed) and in
evaluation; gradients of all parameters agree to 1e-10 of the largest one in double precision (1e-5 for those marked
\\*, compared in single precision).
"""

_EXPERTS = """The mixtures of experts run with `experts_implementation="eager"`, the loop over the experts that were
chosen: the grouped matrix product that transformers takes otherwise has no shape rule for single precision on CPUs in
torch 2.13.
"""

_LIBRARIES = """{pieces} pieces of {libraries} libraries. Results and gradients are held against eager on inputs that
take different paths; most are called with three sizes.
"""

_TAIL = """## In other tools' hands

[tests/end_to_end/test_composability.py](../tests/end_to_end/test_composability.py) holds these against eager.

"""


def page(versions: str) -> str:
    """The text of the page; ``versions``: of the libraries that were used."""
    parts = [_HEAD, f"{_VERSIONS}{versions}.\n", _MODELS, _models(), _EXPERTS, _files(), _generation()]
    loops = {name: one for name, one in PIECES.items() if one.loop and not one.refused}
    others = {name: one for name, one in LIBRARIES.items() if not one.loop and not one.refused}
    refused = {name: one for name, one in LIBRARIES.items() if one.refused}
    parts += ["## Loops that depend on data\n", _loops(loops)]
    parts += ["## Branches, routing and sizes that depend on data\n", _rows("what is converted", others, "what")]
    parts += [_components()]
    parts += ["## Refused, with a located error\n", _rows("why", refused, "why", code=True), _SLOW]
    parts += [_TAIL + _kept_table()]
    return "\n".join(parts).rstrip() + "\n"


_SLOW = """The line search of pytorch-minimize's `bfgs`, `l-bfgs` and `cg` takes minutes to trace: its bracket is one of
many lists of different kinds of numbers. Loops in one another whose inner ones carry much take long as well: POT's
`sinkhorn_epsilon_scaling` more than a minute, xitorch's `rootfinder` with Broyden's methods 17 CPU seconds, torchode's
`tsit5` 6. POT makes its backend, and with it a generator of random numbers, at the first call, which must not be a
converted one (D2S214).
"""


def _models() -> str:
    lines = [f"{len(MODELS)} architectures:\n", "| kind | architectures |", "| --- | --- |"]
    for kind, names in KINDS.items():
        lines.append(f"| {kind} | {', '.join(name + (chr(92) + '*') * (name in FLOAT32) for name in names)} |")
    refused = "; ".join(f"{name} ({code}: {why})" for name, (_, _, code, why) in REFUSED.items())
    return "\n".join([*lines, "", f"Refused, with a located error: {refused}.", ""])


def _files() -> str:
    text = f"""**Files.** {len(LENGTHS)} of them are saved with batch and length open, each with an attention mask and
        without one, and run by a process that has neither transformers nor the converter: results for three batch
        sizes and lengths, and the losses of twenty training steps, are eager's
        (`tests/third_party/test_model_files.py`: {", ".join(LENGTHS)}; run with transformers 5.24.0, 19 minutes on a
        core). With and without a mask are two files."""
    return _filled(text)


def _generation() -> str:
    done = "; ".join(f"{name}, {way}{', with a mask' * masked}{', with an early end' * (end is not None)}"
                     for name, way, masked, end in CAPTURED)  # fmt: skip
    refused = "; ".join(f"{name}, {way} ({code}: {why})" for name, way, code, why in NOT_GENERATED)
    text = f"""**Generation.** `generate` captured whole, in one function that calls it, with a cache that grows and up
        to {NEW} new tokens: eager's tokens to the bit, and eager's random stream afterwards. {done}. The first call is
        traced for about 10 seconds, and so is one with other sizes; sizes of greedy search after these are served by
        the second Program. Refused: {refused}."""
    return _filled(text)


def _filled(text: str) -> str:
    """Paragraphs in lines of 120."""
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    fill = functools.partial(textwrap.fill, width=120, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(map(fill, paragraphs)) + "\n"


def _loops(loops: dict[str, Library | Component]) -> str:
    """A row for the pieces of a library that loop for one reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, one in loops.items():
        library = one.distribution if isinstance(one, Component) else DISTRIBUTIONS[one.package]
        rows.setdefault((library, one.loop), []).append(_short(name, library))
    libraries = len({library for library, _ in rows})
    lines = [_filled(_LIBRARIES.format(pieces=len(loops), libraries=libraries))]
    lines += ["| library | code | why its loop depends on data |", "| --- | --- | --- |"]
    ordered = sorted(rows.items(), key=lambda row: row[0][0].lower())
    lines += [f"| {library} | {', '.join(names)} | {why} |" for (library, why), names in ordered]
    return "\n".join([*lines, ""])


_COMPONENTS = """## Layers, losses, metrics, flows, optimizers

{pieces} more pieces of {libraries} libraries, each called with three sizes, modules in training and in evaluation
(losses in one of them): values, gradients and buffers are eager's.
"""


def _components() -> str:
    taken = {name: one for name, one in COMPONENTS.items() if not one.refused and not one.loop}
    by_library: dict[str, list[str]] = {}
    for name, one in taken.items():
        by_library.setdefault(one.distribution, []).append(_short(name, one.distribution))
    text = _COMPONENTS.format(pieces=len(taken), libraries=len(by_library))
    lines = [_filled(text), "| library | what is converted |", "| --- | --- |"]
    lines += [f"| {library} | {'; '.join(names)} |" for library, names in sorted(by_library.items())]
    return "\n".join([*lines, ""])


def _short(name: str, library: str) -> str:
    """What a piece is, without the name of its library."""
    given = name.replace("_", "-").removeprefix(library)
    return name[len(name) - len(given):].strip() or library


def _rows(column: str, libraries: dict[str, Library], field: str, code: bool = False) -> str:
    lines = [f"| library and code | {column} |{' code |' * code}", f"| --- | --- |{' --- |' * code}"]
    rows: dict[str, Library | Component] = {**libraries}
    if code:
        rows.update({name: one for name, one in COMPONENTS.items() if one.refused})
    for name, one in rows.items():
        lines.append(f"| {name} | {getattr(one, field)} |" + f" {one.refused} |" * code)
    return "\n".join([*lines, ""])


def _kept_table() -> str:
    """The last table of the page: it is written by hand."""
    return PAGE.read_text().split(_TAIL, 1)[1]


def versions_of(text: str) -> str:
    """Those that a page names."""
    line = next(line for line in text.splitlines() if line.startswith(_VERSIONS))
    return line.removeprefix(_VERSIONS).removesuffix(".")


def installed() -> str:
    """Those of the libraries installed here."""
    names = sorted({"torch", "transformers", *(DISTRIBUTIONS[one.package] for one in LIBRARIES.values()),
                    *(one.distribution for one in COMPONENTS.values())})  # fmt: skip
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def main() -> None:
    """Write the page; one line says what to install where a library is missing."""
    try:
        versions = installed()
    except importlib.metadata.PackageNotFoundError as error:
        sys.exit(f"{error.name} is not installed, and the page names its version: pip install -e '.[dev,third-party]'")
    PAGE.write_text(page(versions))
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
