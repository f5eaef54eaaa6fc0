"""Serve a saved model over HTTP.

    pip install dy2static[serve]
    python examples/serve_http.py model.d2s --port 8000
    curl -X POST localhost:8000/predict -H 'content-type: application/json' -d '{"x": [[0.5, 1.0, 2.0]]}'

    POST /predict   inputs by name, as nested lists; answers with outputs by name
    GET /signature  names, dtypes and sizes of the inputs, names of the outputs
    GET /health     200 while it serves, 503 while it shuts down
    GET /metrics    counters as Prometheus reads them

A request that does not fit is 422 with the argument's name, one that the model refuses (an exception of the user's
code) 400; both say why. On SIGTERM it takes no more requests, answers those that have arrived, and ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool

from dy2static.errors import Dy2StaticError
from runtime import Predictor

MOST_BYTES = 16 * 2**20
"""Of a request's body."""


class BadRequest(Exception):
    """A request that the client has to change: a status, what is wrong, and the argument's name if it is one."""

    def __init__(self, status: int, problem: str, argument: str | None = None) -> None:
        super().__init__(problem)
        self.status, self.problem, self.argument = status, problem, argument


def tensors(predict: Predictor, body: Any) -> dict[str, torch.Tensor]:
    """The tensors of a request's JSON. Errors raised: BadRequest with the argument's name."""
    if not isinstance(body, dict):
        raise BadRequest(422, "the body is an object with a nested list for each input")
    ports = {one.name: one for one in predict.inputs}
    found = {}
    for name, value in body.items():
        if name not in ports:
            raise BadRequest(422, f"there is no input {name!r}; the inputs are: {', '.join(ports)}", name)
        try:
            made = torch.tensor(value)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise BadRequest(422, f"input '{name}' is no array of numbers: {error}", name) from None
        wanted = ports[name].dtype
        if made.numel() and made.dtype != wanted and not _fits(made.dtype, wanted):
            raise BadRequest(422, f"input '{name}' holds {_said(made.dtype)}, but {_said(wanted)} is needed", name)
        if made.numel() == 0 and made.dim() != len(ports[name].shape):
            raise BadRequest(422, f"input '{name}' is empty, and its sizes are not to be told from that", name)
        if made.numel() and not _in_range(made, wanted):
            raise BadRequest(422, f"input '{name}' holds a number beyond {_said(wanted)}", name)
        found[name] = made.to(wanted)
    for name in ports:
        if name not in found:
            raise BadRequest(422, f"input '{name}' is missing", name)
    return found


def _fits(given: torch.dtype, wanted: torch.dtype) -> bool:
    """Whether JSON's numbers may stand for a dtype: whole ones for floats and ints, others for floats."""
    if given.is_floating_point:
        return wanted.is_floating_point
    return given is torch.int64 and wanted is not torch.bool and not wanted.is_complex


def _in_range(given: torch.Tensor, wanted: torch.dtype) -> bool:
    """Whether whole numbers are those of a dtype."""
    if given.dtype is not torch.int64 or wanted.is_floating_point:
        return True
    bounds = torch.iinfo(wanted)
    return bounds.min <= int(given.min()) and int(given.max()) <= bounds.max


def _said(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def plain(value: Any) -> Any:
    """A result as JSON has it; numbers that JSON has no word for are None."""
    if isinstance(value, torch.Tensor):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return None
    return value


def make_app(predict: Predictor) -> FastAPI:
    """The application; it closes the Predictor when it ends."""
    state = {"serving": True}

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        state["serving"] = False
        await run_in_threadpool(predict.close)

    app = FastAPI(title="dy2static", lifespan=lifespan)

    @app.exception_handler(BadRequest)
    async def bad(request: Request, error: BadRequest) -> JSONResponse:
        return JSONResponse({"error": error.problem, "argument": error.argument}, error.status)

    @app.post("/predict")
    async def answer(request: Request) -> JSONResponse:
        given = tensors(predict, await _body(request))
        try:
            results = await run_in_threadpool(predict.run, given)
        except Dy2StaticError as error:
            raise BadRequest(422, error.summary, _named(predict, error.summary)) from None
        except RuntimeError as error:
            if not state["serving"] or "closed" in str(error):
                raise BadRequest(503, "the server is shutting down") from None
            raise BadRequest(400, f"RuntimeError: {error}") from None
        except Exception as error:  # what the user's code raises for such inputs
            raise BadRequest(400, f"{type(error).__name__}: {error}") from None
        return JSONResponse({name: plain(one) for name, one in results.items()})

    @app.get("/signature")
    async def signature() -> Mapping[str, Any]:
        sizes = {one.name: [dim if isinstance(dim, int) else None for dim in one.shape] for one in predict.inputs}
        return {"inputs": {one.name: {"dtype": _said(one.dtype), "sizes": sizes[one.name]} for one in predict.inputs},
                "outputs": list(predict.outputs)}  # fmt: skip

    @app.get("/health")
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok"} if state["serving"] else {"status": "closing"},
                            200 if state["serving"] else 503)  # fmt: skip

    @app.get("/metrics")
    async def metrics() -> PlainTextResponse:
        told = predict.statistics()
        lines = [f"dy2static_requests_total {told.requests}", f"dy2static_errors_total {told.errors}",
                 f"dy2static_runs_total {told.runs}", f"dy2static_running_seconds_total {told.running:.6f}",
                 f'dy2static_latency_seconds{{quantile="0.5"}} {told.p50:.6f}',
                 f'dy2static_latency_seconds{{quantile="0.99"}} {told.p99:.6f}']  # fmt: skip
        return PlainTextResponse("\n".join(lines) + "\n")

    return app


async def _body(request: Request) -> Any:
    """The JSON of a request. Errors raised: BadRequest for what is none, or too much of it."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise BadRequest(413, f"the body has more than {MOST_BYTES} bytes")
        parts.append(part)
    try:
        return json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise BadRequest(400, "the body is no JSON") from None


def _named(predict: Predictor, summary: str) -> str | None:
    return next((one.name for one in predict.inputs if f"'{one.name}'" in summary), None)


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="what dy2static.save wrote")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--backend", help="interpreter, c or auto")
    parser.add_argument("--max-batch", type=int, help="run requests together, of at most so many rows")
    parser.add_argument("--max-wait", type=float, default=0.002, help="seconds that a batch waits for more requests")
    options = parser.parse_args()
    torch.set_num_threads(max((os.cpu_count() or 2) // 2, 1))
    predict = Predictor(options.model, backend=options.backend, max_batch=options.max_batch, max_wait=options.max_wait)
    uvicorn.run(make_app(predict), host=options.host, port=options.port, timeout_graceful_shutdown=30)


if __name__ == "__main__":
    main()
