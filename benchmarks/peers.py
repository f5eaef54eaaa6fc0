"""dy2static beside other frameworks: W1 to W7 and recurrent cells, a column each.

    make bench                                                      (or the two steps by themselves)
    python benchmarks/peers.py --install                            the peers' environment, .venv-bench, from PyPI
    python benchmarks/peers.py --repeats 9 [--only W3,W4] [--columns eager,c,jax]

Each framework runs in a process of its own (``benchmarks/peer``), one thread, and is asked for one measurement after
another, in turn with all others. A cell is the median over the repeats of processor time, beside eager's. Results are
held against eager's sum of magnitudes. What does not install, or cannot do a workload, is a cell that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer"))

from data import WORKLOADS

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".venv-bench"
PACKAGES = {"jax": ["jax"], "tensorflow": ["tensorflow-cpu"], "onnxruntime": ["onnxruntime", "onnx"],
            "paddle": ["paddlepaddle"]}  # fmt: skip
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "FLAGS_paddle_num_threads",
                            "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")  # fmt: skip


def install() -> None:
    """Make the environment, and put into it what installs."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    for name, packages in PACKAGES.items():
        stamp = ENVIRONMENT / f".installed-{name}"
        if stamp.exists():
            continue
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
                              check=False)  # fmt: skip
        if done.returncode == 0:
            stamp.touch()
        print(f"{name}: {'installed' if done.returncode == 0 else 'does not install here'}", flush=True)


class Peer:
    """A process that measures one framework."""

    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [python, HERE / "peer" / f"{name}_.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env={**os.environ, **ONE_THREAD, **self.caches()},
        )  # fmt: skip
        said = self.ask({"versions": True})
        self.versions: dict[str, str] = said.get("versions", {})
        self.columns: list[str] = said.get("columns", [])

    def caches(self) -> dict[str, str]:
        """Where compilers keep what they made: nothing is there at first."""
        self.folder = tempfile.TemporaryDirectory()
        return dict.fromkeys(("DY2STATIC_CACHE", "TORCHINDUCTOR_CACHE_DIR"), self.folder.name)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """One answer; a process that is gone has none."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        found: dict[str, Any] = json.loads(line) if line else {"error": f"{self.name} does not run here"}
        return found

    def close(self) -> None:
        """End the process."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()
        self.folder.cleanup()


def measure(name: str, peers: list[tuple[Peer, str]], repeats: int) -> dict[str, Any]:
    """For each column its median time, the time of its first call, or why there is none."""
    cells: dict[str, Any] = {}
    sums: dict[str, float] = {}
    for peer, column in peers:
        cells[column] = peer.ask({"prepare": name, "column": column})
        if "sum" in cells[column]:
            sums[column] = cells[column]["sum"]
    expected = sums.get("eager")
    for column, found in sums.items():
        if expected is not None and abs(found - expected) > 1e-2 * max(abs(expected), 1e-3):
            cells[column] = {"error": f"another result: {found:.6g}, not {expected:.6g}"}
    times: dict[str, list[float]] = {column: [] for _, column in peers if "error" not in cells[column]}
    for _ in range(repeats):
        for peer, column in peers:
            if column in times:
                times[column].append(peer.ask({"time": name, "column": column})["us"])
    for column, found in times.items():
        cells[column]["us"] = statistics.median(found)
    return cells


def cell(found: dict[str, Any], eager: float | None, column: str) -> str:
    """What a table says."""
    if "error" in found:
        return "not written" if found["error"].startswith("not written") else "fails"
    if column == "eager" or not eager:
        return f"{found['us']:.0f} us"
    return f"{found['us'] / eager:.3f}"


def main() -> None:
    """Measure, and print two tables: times, and first calls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--columns", default="")
    options = parser.parse_args()
    if options.install:
        install()
        return
    pythons = {"torch": Path(sys.executable), **dict.fromkeys(PACKAGES, ENVIRONMENT / "bin" / "python")}
    peers = [Peer(name, python) for name, python in pythons.items() if python.exists()]
    words = [one for one in options.columns.split(",") if one]
    columns = [(peer, column) for peer in peers for column in peer.columns
               if column == "eager" or not words or any(word in column for word in words)]  # fmt: skip
    versions = {key: value for peer in peers for key, value in peer.versions.items()}
    print(f"Python {platform.python_version()}; {', '.join(f'{key} {value}' for key, value in versions.items())}")
    missing = [name for name in PACKAGES if not any(peer.name == name and peer.columns for peer in peers)]
    if missing:
        print(f"not here: {', '.join(missing)}")
    print(processor(), flush=True)
    head = [column for _, column in columns]
    firsts, reasons = [], []
    print(f"| | {' | '.join(head)} |\n| --- | {' | '.join(['---:'] * len(head))} |", flush=True)
    wanted = [one for one in options.only.split(",") if one]
    for name, title in WORKLOADS.items():
        if wanted and name not in wanted:
            continue
        cells = measure(name, columns, options.repeats)
        eager = cells.get("eager", {}).get("us")
        print(f"| {title} | {' | '.join(cell(cells[column], eager, column) for column in head)} |", flush=True)
        found = [f"{cells[column]['first']:.2f}" if "us" in cells[column] else "" for column in head]
        firsts.append(f"| {title} | {' | '.join(found)} |")
        reasons += [f"{name}, {column}: {one['error']}" for column, one in cells.items()
                    if "error" in one and not one["error"].startswith("not written")]  # fmt: skip
    print("\nThe first call, in seconds:\n")
    print(f"| | {' | '.join(head)} |\n| --- | {' | '.join(['---:'] * len(head))} |")
    print("\n".join(firsts))
    print("\n" + "\n".join(f"- {one}" for one in reasons))
    for peer in peers:
        peer.close()


def processor() -> str:
    """The processor's name and vector instructions."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    facts = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    name = facts.get("model name", ": ?").strip(": \t")
    known = facts.get("flags", "").split()
    flags = [flag for flag in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16") if flag in known]
    family, model = (facts.get(key, ": ?").strip(": \t") for key in ("cpu family", "model"))
    return f"{name}, family {family}, model {model}; {' '.join(flags)}; one thread"


if __name__ == "__main__":
    main()
