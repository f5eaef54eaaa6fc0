"""The server in C: built by its Makefile, asked over HTTP, held against eager; bad requests, slow ones, and its end."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import torch
from torch import Tensor

import dy2static
from examples.c_server.export import Spirals, points
from tests.oracle import same

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples/c_server"
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
pytestmark = pytest.mark.skipif(COMPILER is None or shutil.which("make") is None or sys.platform != "linux",
                                reason="there is no C compiler or make")  # fmt: skip


def made(folder: Path, *targets: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = ["make", "-C", SOURCE, f"BUILD={folder}", f"PYTHON={sys.executable}", f"CC={COMPILER}",
               "CFLAGS=-O2 -Werror", *targets]  # fmt: skip
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=600)
    assert run.returncode == 0, f"{run.stdout[-2000:]}{run.stderr[-2000:]}"
    return run.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder, and what make said."""
    folder = tmp_path_factory.mktemp("c_server")
    return folder, made(folder, "all")


@pytest.fixture(scope="module")
def model(built: tuple[Path, str]) -> Spirals:
    """What was exported, for eager."""
    model = Spirals()
    model.load_state_dict(dy2static.load_state(built[0] / "spirals.d2s"))
    return model.eval()


class Server:
    """A process of the server at a free port, and requests to it."""

    def __init__(self, folder: Path, program: str = "server", *options: str) -> None:
        command = [str(folder / program), str(folder / "spirals/spirals.weights"), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said.startswith("listening at http://127.0.0.1:"), said + self.end()[2]
        self.port = int(said.split()[2].rsplit(":")[-1])

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method: str, path: str, body: str | bytes | None = None,
            connection: HTTPConnection | None = None) -> tuple[int, str]:  # fmt: skip
        """Status and text of an answer."""
        own = connection or self.connect()
        try:
            own.request(method, path, body.encode() if isinstance(body, str) else body)
            answer = own.getresponse()
            return answer.status, answer.read().decode()
        finally:
            if connection is None:
                own.close()

    def raw(self, *parts: bytes, pause: float = 0.0, half_close: bool = True, wait: float = 60) -> bytes:
        """All that comes back for these bytes, until the server ends the connection, or sends nothing for so long."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as own:
            for part in parts:
                own.sendall(part)
                time.sleep(pause)
            if half_close:
                own.shutdown(socket.SHUT_WR)
            own.settimeout(wait)
            found = b""
            with contextlib.suppress(*([TimeoutError] if wait < 60 else [])):
                while part := own.recv(65536):
                    found += part
            return found

    def end(self) -> tuple[int, str, str]:
        """The exit status after SIGTERM, and what it printed."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def running(*arguments: object) -> Iterator[Server]:
    server = Server(*arguments)  # type: ignore[arg-type]
    try:
        yield server
        assert server.process.poll() is None, server.process.communicate()
        assert server.end() == (0, "stopped\n", "")
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def server(built: tuple[Path, str]) -> Iterator[Server]:
    yield from running(built[0])


def body_of(x: Tensor) -> str:
    return "\n".join(" ".join(f"{number:.9g}" for number in row) for row in x.tolist())


def hold(answer: tuple[int, str], model: Spirals, x: Tensor) -> int:
    """The answer is eager's; gives the number of steps."""
    with torch.no_grad():
        likely, steps = model(x)
    status, text = answer
    first, *rows = text.splitlines()
    assert status == 200 and first == f"steps {steps}"
    found = torch.tensor([[float(number) for number in row.split()] for row in rows])
    same(found, likely, tolerance=1e-5)
    return steps


def every_path(server: Server, model: Spirals) -> None:
    """The loop in several lengths up to where patience ends, the branch for percent, and the exception."""
    torch.manual_seed(0)
    connection = server.connect()  # all of them through one
    lengths = {hold(server.ask("POST", "/predict", body_of(x), connection), model, x)
               for x in (*torch.rand(60, 1, 2) * 2 - 1, points(50)[0], torch.rand(300, 2) * 2 - 1)}  # fmt: skip
    assert len(lengths) >= 5 and model.patience in lengths
    for x in torch.rand(5, 3, 2) * 190 - 95:
        hold(server.ask("POST", "/predict", body_of(x), connection), model, x)
    said = server.ask("POST", "/predict", "0 0\n3 -101", connection)
    assert said[0] == 422 and said[1].endswith("ValueError: a coordinate is beyond 100\n"), said
    with pytest.raises(ValueError, match="a coordinate is beyond 100"):
        model(torch.tensor([[0.0, 0.0], [3.0, -101.0]]))
    connection.close()


BAD: list[tuple[str, str, str | bytes | None, int, str]] = [
    ("POST", "/predict", "", 400, "the body holds no numbers"),
    ("POST", "/predict", " \r\n\n , \n", 400, "the body holds no numbers"),
    ("POST", "/predict", "1 2\n3", 400, "line 2 has 1 number, and 2 are needed"),
    ("POST", "/predict", "1 2 3", 400, "line 1 has 3 numbers, and 2 are needed"),
    ("POST", "/predict", "1 2\n\n1 two", 400, "line 3: 'two' is not a number"),
    ("POST", "/predict", "1 nan", 400, "line 1: 'nan' is not a number"),
    ("POST", "/predict", "0x10 1", 400, "line 1: '0x10' is not a number"),
    ("POST", "/predict", "1 -", 400, "line 1: '-' is not a number"),
    ("POST", "/predict", "1 1e99", 400, "line 1: '1e99' is beyond float32"),
    ("POST", "/predict", b"1 2\0\n", 400, "line 1: '2?' is not a number"),
    ("POST", "/predict", b"\xff\xfe\x80", 400, "line 1: '???' is not a number"),
    ("POST", "/predict", "1" * 47 + " 2", 400, "is beyond float32"),
    ("POST", "/predict", "1" * 48 + " 2", 400, "111...' is not a number"),
    ("POST", "/predict", "1 2\n" * 4097, 413, "there are too many rows: at most 4096 are taken"),
    ("POST", "/predict", "1 " * 131_073, 413, "the body is too large: at most 262144 bytes are taken"),
    ("POST", "/predict", "1 " * 131_072, 400, "line 1 has 131072 numbers, and 2 are needed"),
    ("POST", "/predict", "200 1", 422, "ValueError: a coordinate is beyond 100"),
    ("GET", "/predict", None, 405, "/predict takes POST"),
    ("POST", "/health", "1 2", 405, "/health takes GET"),
    ("DELETE", "/predict", None, 405, "/predict takes POST"),
    ("BREW" * 10, "/health", None, 405, "/health takes GET"),
    ("GET", "/nothing", None, 404, "there is no such path here"),
    ("GET", "/" + "x" * 4000, None, 404, "there is no such path here"),
]


def bad_requests(server: Server) -> None:
    """Each is told what is wrong, and the server goes on."""
    for method, path, body, status, text in BAD:
        found = server.ask(method, path, body)
        assert found[0] == status and text in found[1] and found[1].count("\n") == 1, (method, path, found)
    assert server.ask("GET", "/health") == (200, "ok\n")
    assert server.ask("HEAD", "/health?full=1") == (200, "")
    assert server.ask("GET", "/")[1].startswith("POST /predict")


HEAD = b"POST /predict HTTP/1.1\r\nHost: here\r\n"
GET = b"GET /health HTTP/1.1\r\n"
HOSTILE: list[tuple[bytes, int, str]] = [
    (b"\r\n\r\n", 400, "the first line is no request of HTTP"),
    (b"hello\r\n\r\n", 400, "the first line is no request of HTTP"),
    (b"GET /health\r\n\r\n", 400, "the first line is no request of HTTP"),
    (b"GET  HTTP/1.1\r\n\r\n", 400, "the first line is no request of HTTP"),
    (b"\x16\x03\x01\x02\0\x01\0\r\n\r\n", 400, "the head holds a zero byte"),
    (b"GET /health HTTP/2.0\r\n\r\n", 505, "only HTTP/1.0 and HTTP/1.1"),
    (b"GET /health HTTP/1.1\rX\r\n\r\n", 400, "a line of the head has no proper end"),
    (GET + b"A: b\rC: d\r\n\r\n", 400, "a line of the head has no proper end"),
    (GET + b"no colon\r\n\r\n", 400, "a line of the head is no 'name: value'"),
    (GET + b": value\r\n\r\n", 400, "a line of the head is no 'name: value'"),
    (GET + b"A: b\r\n folded: c\r\n\r\n", 400, "a line of the head is no 'name: value'"),
    (GET + b"A: " + b"x" * 9000 + b"\r\n\r\n", 431, "the head is too large: at most 8192 bytes"),
    (b"x" * 100_000, 431, "the head is too large"),
    (HEAD + b"\r\n1 2", 411, "Content-Length is missing"),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n1 2\r\n0\r\n\r\n", 411, "send Content-Length"),
    (HEAD + b"Content-Length: -1\r\n\r\n", 400, "Content-Length is no number of bytes"),
    (HEAD + b"Content-Length: \r\n\r\n", 400, "Content-Length is no number of bytes"),
    (HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n1 2", 400, "Content-Length is no number of bytes"),
    (HEAD + b"Content-Length: 99999999999999999999999999\r\n\r\n", 413, "the body is too large"),
    (HEAD + b"Content-Length: 18446744073709551615\r\n\r\n", 413, "the body is too large"),
    (HEAD, 400, "the request is cut off in its head"),
    (HEAD + b"Content-Length: 10\r\n\r\n1 2", 400, "the request is cut off: 3 of the 10 bytes of its body have come"),
]


def hostile(server: Server) -> None:
    """What is no request, or not a whole one; in one piece, and byte by byte."""
    for data, status, text in HOSTILE:
        cuts = range(len(data) + 1) if len(data) < 200 else (0, 9, len(data))
        for parts in ([data], [data[start:end] for start, end in zip(cuts, cuts[1:])]):
            found = server.raw(*parts).decode()
            assert found.startswith(f"HTTP/1.1 {status} ") and text in found, (data[:80], found)
            assert "Connection: close\r\n" in found
    for _ in range(20):  # gone before the answer
        with socket.create_connection(("127.0.0.1", server.port)) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closed with a reset
            own.sendall(HEAD + b"Content-Length: 3\r\n\r\n1 2")
    assert server.ask("GET", "/health") == (200, "ok\n")


def mutants(server: Server, count: int = 300) -> None:
    """Requests with bytes that were changed, left out and put in twice: answered or refused, and the server goes on."""
    chance = random.Random(0)
    whole = HEAD + b"Connection: keep-alive\r\nContent-Length: 15\r\n\r\n0.5 0.25\n-1, 1\n" + GET + b"\r\n"
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            end = at + chance.choice((1, 1, 2, 30))
            data[at:end] = chance.choice((b"", bytes([chance.randrange(256)]), data[at:end] * 2, b"\r\n"))
        found = server.raw(bytes(data))
        statuses = {int(one) for one in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)}
        assert statuses and statuses <= {200, 400, 404, 405, 411, 413, 422, 505}, (bytes(data), found)
    assert server.ask("GET", "/health") == (200, "ok\n")


def test_what_make_says(built: tuple[Path, str]) -> None:
    said = [line for line in built[1].splitlines() if " KiB" in line]
    assert [line.split("  ")[0] for line in said] == ["the model", "the server", "weights", *["working memory"] * 3]


def test_as_in_eager(server: Server, model: Spirals) -> None:
    every_path(server, model)


def test_bad_requests(server: Server) -> None:
    bad_requests(server)


def test_hostile(server: Server) -> None:
    hostile(server)
    mutants(server)


def test_many_clients(server: Server, model: Spirals) -> None:
    """More than there are threads, each with its own rows, through one connection each."""
    torch.manual_seed(1)
    rows = [torch.rand(1 + at % 5, 2) * 2 - 1 for at in range(24)]
    wrong: list[object] = []

    def work(first: int) -> None:
        connection = server.connect()
        try:
            for at in range(40):
                x = rows[(first + at) % len(rows)]
                hold(server.ask("POST", "/predict", body_of(x), connection), model, x)
        except BaseException as error:
            wrong.append(error)
        connection.close()

    threads = [threading.Thread(target=work, args=(3 * first,)) for first in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_several_requests_at_once(server: Server) -> None:
    """All sent before the first answer is read: they are answered in order."""
    ask = HEAD + b"Content-Length: 3\r\n\r\n0 0"
    found = server.raw(ask * 5 + GET + b"\r\n" + ask + GET + b"Connection: close\r\n\r\n" + ask)
    assert found.count(b"HTTP/1.1 200 OK") == 8
    assert [part[-3:] for part in found.split(b"HTTP/1.1 200 OK")][6::2] == [b"ok\n", b"ok\n"]


def test_it_waits_where_the_client_does(server: Server) -> None:
    """A client that asks first whether the body is wanted, and the older protocol, which ends the connection."""
    found = server.raw(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", b"0 0", pause=0.2)
    assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert b"100 Continue" not in server.raw(HEAD + b"Expect: 100-continue\r\nContent-Length: 999999\r\n\r\n")
    assert b"Connection: close" in server.raw(b"GET /health HTTP/1.0\r\n\r\n", half_close=False)


def test_slow_clients(built: tuple[Path, str], model: Spirals) -> None:
    """They hold up nobody, although there are more of them than threads, and are told in the end."""
    for server in running(built[0], "server", "--threads", "1", "--timeout", "1"):
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(20)]
        for at, one in enumerate(slow):
            one.sendall((HEAD + b"Content-Length: 1000\r\n\r\n1 2")[: 10 + 4 * at])
        x = torch.tensor([[0.5, 0.25]])
        hold(server.ask("POST", "/predict", body_of(x)), model, x)
        for one in slow:
            found = one.recv(65536)
            assert found.startswith(b"HTTP/1.1 408 Request Timeout") and b"within 1000 ms" in found
            one.close()
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as own:  # never reads its answers
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            own.setblocking(False)
            try:
                while True:
                    own.send(HEAD + b"Content-Length: 16380\r\n\r\n" + b"0 0\n" * 4095)
            except BlockingIOError:
                hold(server.ask("POST", "/predict", body_of(x)), model, x)


def test_more_connections_than_it_takes(built: tuple[Path, str]) -> None:
    """Those that wait for nothing make room; where all have begun a request, the next is told."""
    for server in running(built[0]):
        idle = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(300)]
        assert server.ask("GET", "/health") == (200, "ok\n")
        assert sum(one.recv(1) == b"" for one in idle[:40]) == 40
        for one in idle:
            one.close()
        begun = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(256)]
        for one in begun:
            one.sendall(b"GET")
        until = time.monotonic() + 30
        while server.raw(half_close=False)[:12] != b"HTTP/1.1 503":  # until the last has been read
            assert time.monotonic() < until
        for one in begun:
            one.close()
        until = time.monotonic() + 30
        while server.raw(half_close=False, wait=0.2)[:12] == b"HTTP/1.1 503":  # until it has seen that they are gone
            assert time.monotonic() < until
        assert server.ask("GET", "/health") == (200, "ok\n")


def test_it_ends_gracefully(built: tuple[Path, str], model: Spirals) -> None:
    """What has begun is answered, nothing new is taken, idle connections are closed."""
    server = Server(built[0])
    idle = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    ask = HEAD + b"Content-Length: 3\r\n\r\n0 0"
    begun = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    begun.sendall(ask[:-2])
    assert server.ask("GET", "/health") == (200, "ok\n")
    server.process.send_signal(signal.SIGTERM)
    assert idle.recv(10) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=60)
    begun.sendall(ask[-2:])
    found = begun.recv(65536)
    assert found.startswith(b"HTTP/1.1 200 OK") and b"Connection: close" in found
    begun.close()
    idle.close()
    assert server.end() == (0, "stopped\n", "")


def test_mistakes_at_the_start(built: tuple[Path, str], server: Server, tmp_path: Path) -> None:
    program, weights = built[0] / "server", built[0] / "spirals/spirals.weights"

    def said(*arguments: object) -> tuple[int, str]:
        run = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
        return run.returncode, run.stderr

    for arguments in ([], [weights, "--port"], [weights, "--port", "x"], [weights, "--threads", "0"], [weights, "-v"]):
        status, text = said(*arguments)
        assert status == 2 and text.startswith("server: usage: server WEIGHTS")
    (tmp_path / "damaged").write_bytes(weights.read_bytes()[:-1] + b"x")
    assert said(tmp_path / "missing") == (1, "server: the file of weights cannot be opened\n")
    assert said(tmp_path / "damaged") == (1, "server: the file of weights is damaged\n")
    assert said(weights, "--host", "nowhere") == (1, "server: cannot listen at nowhere: Invalid argument\n")
    assert said(weights, "--port", server.port)[1].endswith("Address already in use\n")


def test_under_sanitizers(built: tuple[Path, str], model: Spirals, tmp_path: Path) -> None:
    """Memory, undefined behaviour and leaks, on every path and for all bad requests."""
    (tmp_path / "try.c").write_text("int main(void) { return 0; }")
    command = [str(COMPILER), "-fsanitize=address,undefined", "try.c", "-o", "try"]
    if (subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode
            or subprocess.run(["./try"], cwd=tmp_path, capture_output=True, check=False).returncode):  # fmt: skip
        pytest.skip("the compiler has no sanitizers")
    made(built[0], "sanitized")
    for server in running(built[0], "server-sanitized", "--threads", "2"):
        every_path(server, model)
        bad_requests(server)
        hostile(server)
        mutants(server)
