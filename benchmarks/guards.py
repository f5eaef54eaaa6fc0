"""What it costs to find that a Program still fits: a function of one operator, guarded facts, a BERT-sized encoder.

    python benchmarks/guards.py
"""

from __future__ import annotations

import argparse
import linecache
import time
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dy2static import to_static
from dy2static.shortcut import MADE_AT
from dy2static.static_function import StaticFunction


def best(run: Callable[[], Any], repeat: int, rounds: int = 7) -> float:
    """Seconds of one call, the best of several rounds."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeat):
            run()
        found.append((time.perf_counter() - start) / repeat)
    return min(found)


def short(static: StaticFunction, *args: Any, repeat: int) -> float:
    """Seconds to find the Program of a call that came several times: one generated check."""
    for _ in range(MADE_AT[0] + 1):
        static(*args)
    check = static._dispatch.shortcuts[0].check
    assert check(*args) is not None
    return best(lambda: check(*args), repeat)


def checking(static: StaticFunction, *args: Any, repeat: int) -> float:
    """Seconds to bind a call's arguments and to find its Program the long way."""
    static(*args)
    signature = static.signature

    def find() -> Any:
        return static.specialize(*static._dispatch.prepare(signature.bind(args, {})))

    found = find().traced
    assert found is static.specialization().traced
    return best(find, repeat)


def facts(count: int) -> Callable[[Any], Any]:
    """A function that reads so many attributes."""
    space = types.SimpleNamespace(**{f"fact{n}": float(n) for n in range(count)})
    terms = " + ".join(f"space.fact{n}" for n in range(count)) or "0"
    text = f"def f(x):\n    return x + ({terms})\n"
    name = f"<doctest facts {count}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"space": space}
    exec(compile(text, name, "exec"), names)
    function: Callable[[Any], Any] = names["f"]
    return function


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        x = torch.ones(4)
        add: Any = to_static(lambda x: x + 1)
        one, quick = checking(add, x, repeat=20_000), short(add, x, repeat=20_000)
        print(f"one operator:      {quick * 1e6:7.2f} us to find the Program (goal: 3), the long way {one * 1e6:.2f}")
        whole, plain = best(lambda: add(x), 20_000), best(lambda: add.function(x), 20_000)
        print(f"  the whole call:  {whole * 1e6:7.2f} us, eager {plain * 1e6:.2f}")
        few: Any = to_static(facts(10))
        many: Any = to_static(facts(210))
        quick = (short(many, x, repeat=5_000) - short(few, x, repeat=5_000)) / 200
        slow = (checking(many, x, repeat=1_000) - checking(few, x, repeat=5_000)) / 200
        print(f"a guarded fact:    {quick * 1e6:7.3f} us (goal: 0.1), the long way {slow * 1e6:.3f}")

        layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, activation="gelu")
        model = nn.TransformerEncoder(layer, options.layers, enable_nested_tensor=False)
        for module in model.modules():
            module.training = True  # the fast path of eval mode would be one fused operator
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        tokens = torch.randn(1, 128, 768)
        eager = best(lambda: model(tokens), 1, 3)
        to_static(model)
        forward: Any = model.forward
        found = short(forward, tokens, repeat=200)
        static = best(lambda: model(tokens), 1, 3)
        share = f"{100 * found / eager:.2f} % of eager's {eager * 1e3:.1f} ms (goal: 1 %)"
        print(f"{options.layers} layers of BERT: {found * 1e6:7.1f} us, {share}; a call {static * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
