"""The HTTP server: real requests to a real process, bad ones included, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).resolve().parents[2]


class Halving(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Linear(3, 2)

    def forward(self, x, n):
        steps = 0
        while x.abs().max() > n:
            x = x / 2
            steps += 1
            if steps > 30:
                raise ValueError("too large")
        return {"y": self.scale(x), "steps": steps}


SPECS = [InputSpec([None, 3], "float32", "x"), InputSpec([], "int32", "n")]


class Server:
    """The example as a process, and a client of it."""

    def __init__(self, model: Path, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.log = log
        command = [sys.executable, str(ROOT / "examples" / "serve_http.py"), str(model), "--port", str(port)]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                            env={**os.environ, "PYTHONPATH": path})  # fmt: skip
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def wait(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.client.get("/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError(self.log.read_text(errors="replace"))

    def predict(self, **inputs: Any) -> Any:
        return self.client.post("/predict", json=inputs)

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> tuple[Halving, Path]:
    torch.manual_seed(0)
    made = Halving().eval()
    return made, dy2static.save(made, tmp_path_factory.mktemp("model") / "halving", SPECS)


@pytest.fixture(scope="module")
def server(model, tmp_path_factory) -> Iterator[Server]:
    made = Server(model[1], tmp_path_factory.mktemp("log") / "log.txt")
    try:
        made.wait()
        yield made
    finally:
        made.close()


def test_answers_are_those_of_the_model(server, model):
    for rows in (1, 2, 5):
        x = torch.randn(rows, 3) * 9
        answer = server.predict(x=x.tolist(), n=1)
        assert answer.status_code == 200
        wanted = model[0](x, torch.tensor(1, dtype=torch.int32))
        got = answer.json()
        torch.testing.assert_close(torch.tensor(got["out_y"]), wanted["y"].detach(), rtol=1e-5, atol=1e-6)
        assert got["out_steps"] == wanted["steps"]


def test_many_clients_at_once(server, model):
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for at in range(6):
            x = torch.full((1 + (seed + at) % 3, 3), float(seed + at + 2))
            got = server.predict(x=x.tolist(), n=2)
            wanted = model[0](x, torch.tensor(2, dtype=torch.int32))
            if got.status_code != 200 or got.json()["out_steps"] != wanted["steps"]:
                wrong.append(got.text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


BAD = [
    ({"x": [[1, 2, 3]]}, 422, "n"),
    ({"x": [[1, 2, 3]], "n": 1, "z": 2}, 422, "z"),
    ({"x": [[1, 2]], "n": 1}, 422, "x"),
    ({"x": [1, 2, 3], "n": 1}, 422, "x"),
    ({"x": [["a", 2, 3]], "n": 1}, 422, "x"),
    ({"x": [[1, 2], [3]], "n": 1}, 422, "x"),
    ({"x": [], "n": 1}, 422, "x"),
    ({"x": None, "n": 1}, 422, "x"),
    ({"x": [[1, 2, 3]], "n": 1.5}, 422, "n"),
    ({"x": [[1, 2, 3]], "n": 2**40}, 422, "n"),
    ({"x": [[1, 2, 3]], "n": 2**70}, 422, "n"),
    ({"x": [[True, False, True]], "n": 1}, 422, "x"),
    ({"x": [[1e30, 0, 0]], "n": 0}, 400, None),
    ([1, 2], 422, None),
]


@pytest.mark.parametrize(("body", "status", "argument"), BAD)
def test_a_bad_request_is_told_what_is_wrong(body, status, argument, server):
    answer = server.client.post("/predict", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["argument"] == argument and answer.json()["error"]
    assert argument is None or argument in answer.json()["error"]
    if status == 400:
        assert "ValueError: too large" in answer.json()["error"]
    assert server.predict(x=[[0.0, 0.0, 0.0]], n=1).status_code == 200


def test_what_is_no_json(server):
    for content in (b"", b"{", b"\xff\xfe", b"[" * 100_000):
        answer = server.client.post("/predict", content=content)
        assert answer.status_code in (400, 422) and answer.json()["error"]
    assert server.client.post("/predict", content=b" " * (17 * 2**20)).status_code == 413


def test_signature_health_and_metrics(server):
    told = server.client.get("/signature").json()
    assert told["inputs"]["x"] == {"dtype": "float32", "sizes": [None, 3]} and told["inputs"]["n"]["sizes"] == []
    assert told["outputs"] == ["out_y", "out_steps"]
    assert server.client.get("/health").json() == {"status": "ok"}
    before = _metrics(server)
    server.predict(x=[[0.0, 0.0, 0.0]], n=1)
    server.predict(x=[[1e30, 0, 0]], n=0)
    after = _metrics(server)
    assert after["dy2static_requests_total"] == before["dy2static_requests_total"] + 1
    assert after["dy2static_errors_total"] == before["dy2static_errors_total"] + 1
    assert after['dy2static_latency_seconds{quantile="0.99"}'] > 0


def _metrics(server: Server) -> dict[str, float]:
    lines = server.client.get("/metrics").text.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.slow
def test_it_ends_gracefully(model, tmp_path):
    server = Server(model[1], tmp_path / "log.txt")
    try:
        server.wait()
        statuses: list[int] = []

        def work() -> None:
            for _ in range(400):
                try:
                    statuses.append(server.predict(x=[[900.0, 1.0, 1.0]], n=1).status_code)
                except httpx.TransportError:  # it no longer listens
                    return

        threads = [threading.Thread(target=work) for _ in range(4)]
        for one in threads:
            one.start()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        for one in threads:
            one.join()
        assert server.process.wait(timeout=60) in (0, -signal.SIGTERM)
        assert statuses and set(statuses) <= {200, 503}, json.dumps(statuses[-5:])
        assert "Traceback" not in server.log.read_text(errors="replace")
    finally:
        server.close()
