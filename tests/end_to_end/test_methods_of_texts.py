"""Text that is only known while the Program runs: its methods, parts, characters, and what is made of its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from runtime.ops.scalar import TEXT_METHODS
from tests.from_files import module_of
from tests.oracle import check

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "center": ("12", "12, '*'", "n", "n + 10, s[0]", "12, '**'", "'a'"), "count": ("'1'", "s[0]", "'1', 2",
    "'', 1, n"),
    "endswith": ("'1'", "s[-1]", "('a', '1')", "(s[-1], 'b'), 1", "1", "('a', 1)"), "expandtabs": ("", "n",
    "tabsize=3"),
    "find": ("'|'", "s[1]", "'|', n", "'1', 2, -1", "1"), "index": ("'.'", "s[2]", "'.', 1", "'zz'"),
    "ljust": ("12", "n + 8, '-'"), "lstrip": ("", "'+- '", "None", "s[0]"), "removeprefix": ("'+'", "s[:2]"),
    "removesuffix": ("'1'", "s[-1:]"), "replace": ("'1', 'one'", "s[0], 'x'", "'1', s, 1", "'', '-', n", "'1'"),
    "rfind": ("'1'", "s[1], 0, n"), "rindex": ("'.'", "'zz'"), "rjust": ("12", "n + 8, '-'"), "rstrip": ("", "'1'",
    "None"),
    "startswith": ("'+'", "s[0]", "('-', '+')", "'.', 2", "()"), "strip": ("", "'+-1'", "s[0]"), "zfill": ("12",
    "n + 9"),
}  # fmt: skip
METHODS = [f"s.{name}({given})" for name in TEXT_METHODS for given in ARGUMENTS.get(name, ("", "1"))]
PIECES = [
    f"s.{name}({given})" for name, cases in {
        "split": ("", "'|'", "'1'", "sep='|'", "'|', 1", "None, 1", "s[1]", "''", "'|', maxsplit=n", "1"),
        "rsplit": ("", "'|'", "'1'", "'1', 1", "None, 1", "maxsplit=1", "''"), "splitlines": ("", "True",
    "keepends=True"),
        "partition": ("'|'", "'zz'", "s[2]", "''"), "rpartition": ("'1'", "'zz'", "''"),
    }.items() for given in cases
]  # fmt: skip
OTHERS = [
    "len(s)", "s[0]", "s[-1]", "s[n]", "s[99]", "s[1:3]", "s[::-1]", "s[n:]", "s[:-n]", "s[::n]", "s[::0]", "s['a']",
    "'1' in s", "s[0] in 'abc+'", "s in (s, 'b')", "'zz' not in s", "list(s)", "[c for c in s]", "tuple(s)", "[*s]",
    "sorted(s)", "''.join(reversed(s))", "''.join(c for c in s if c != '1')",
    "[i for i, c in enumerate(s) if c == '1']",
    "any(c == '.' for c in s)", "max(s)", "min(s)", "dict(a=s)", "list(zip(s, [1, 2]))", "a, b, *c = s",
    "[*map(str.upper, s)]",
    "str.upper(s)", "str.replace('a+b', s[0], s)", "'abc'.find(s[0])", "'a,b'.split(s[0])", "'a'.center(n, '*')",
    "'1.5|+'.count(s[-1])", "'x'.zfill(n)", "'{}'.format(s.upper())", "f'{s.strip():>12}'",
    "s.upper().lower().strip('+')",
    "int(s.split('|')[1])", "float(s.split('|')[0])", "ord(s[0])", "chr(n + 65)", "bin(n)", "hex(n)", "oct(-n)",
    "chr(-n)",
    "ord(s)", "hex(2.5)", "bin(x)", "hex(torch.tensor(5))", "bin(True)", "s.__len__()", "s.__contains__('1')",
    "s.nothing()",
    "[*map(s.count, '123')]", "sorted('31', key=s.find)", "'abc'[:n]", "'abcd'[n:]",
    "s.__getitem__(0)", "'|'.join(s.split('1'))", "s.split('|')[0].strip()",
    "[p.upper() for p in s.split('.')]",
]  # fmt: skip
USES = [*METHODS, *PIECES, *OTHERS]
CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0], [-3.0, 1.0], [11.0, -0.5])]


def _program(use: str, tmp_path: Path) -> Any:
    text = "import torch\ndef f(x):\n    n = int(x[0])\n    s = f' {float(x.sum()):+.2f}|{n}\\t1\\n'.lstrip()\n"
    shown = "    a, b, *c = s\n    return a, b, c\n" if use.startswith("a, b") else f"    return {use}\n"
    file = tmp_path / "program.py"
    file.write_text(text + shown)
    return module_of(file).f


@pytest.mark.sample(6)
@pytest.mark.parametrize("use", USES)
def test_as_in_eager(use: str, tmp_path: Path) -> None:
    function = _program(use, tmp_path)
    check(function, *CALLS, paths=("program",))


NOT_OF_TEXT = ["s.encode()", "s.translate({49: 'p'})", "s.format(1)", "s % 1", "s.maketrans('a', 'b')"]


@pytest.mark.parametrize("use", NOT_OF_TEXT)
def test_what_gives_no_text_or_number_is_refused(use: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="D2S2"):
        dy2static.to_static(_program(use, tmp_path))(CALLS[0][0])


def test_a_handler_hears_of_what_is_not_there() -> None:
    def found(x: torch.Tensor) -> Any:
        s = f"{int(x[0])}"
        try:
            return s.index("-")
        except ValueError:
            return -1

    try:
        check(found, *CALLS, paths=("program",))
    except TraceError as error:  # only the run knows, and no handler of Python's hears of it
        assert error.code == "D2S229"


def test_a_method_that_is_returned() -> None:
    def methods(x: torch.Tensor) -> Any:
        n = int(x[0])
        return f"{n}".zfill, n.bit_length

    static = dy2static.to_static(methods)
    for (x,) in CALLS:
        fill, length = static(x)
        n = int(x[0])
        assert fill(4) == f"{n}".zfill(4) and fill.__self__ == f"{n}" and length() == n.bit_length()


def test_saved(tmp_path: Path) -> None:
    def report(x: torch.Tensor) -> Any:
        s = f"{float(x.sum()):.2f}"
        return s.upper().ljust(9, "."), len(s), s[1:], s.split("."), "-" in s

    static = dy2static.to_static(report)
    static(CALLS[0][0])
    dy2static.save(static, tmp_path / "report", input_spec=[dy2static.InputSpec([2])])
    loaded: Any = dy2static.load(tmp_path / "report")
    for (x,) in CALLS:
        assert loaded(x.detach()) == report(x.detach())
