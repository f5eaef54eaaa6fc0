"""Ordinary programs with containers, as people write them: beams, queues, counters, records, nested accumulators.

Each takes one tensor of three floats; which path it takes, and how much it collects, depends on the values.
"""

from __future__ import annotations

import bisect
import collections
import copy
import dataclasses
import functools
import heapq
import itertools
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import torch


class Step(NamedTuple):
    name: str
    value: Any


@dataclasses.dataclass
class Trace:
    items: list = dataclasses.field(default_factory=list)
    names: list = dataclasses.field(default_factory=list)
    best: Any = None

    def add(self, name, value):
        self.items.append(value)
        self.names.append(name)
        if self.best is None or value.sum() > self.best.sum():
            self.best = value


class Registry:
    limit = 3
    seen = ()

    def __init__(self):
        self.rows = {}

    def put(self, key, value):
        self.rows.setdefault(key, []).append(value)
        return len(self.rows[key]) < self.limit


def halves(x):
    while x.sum() > 1:
        yield x
        x = x * 0.5


def positive(xs):
    return [t for t in xs if t.sum() > 0]


def parts(x):
    return [x, x - 1, x * 2, x - 3]


# -- lists that grow


def collected(x):
    out = []
    while x.sum() > 1:
        out.append(x)
        x = x * 0.5
    return out


def early_return(x):
    out = []
    for t in parts(x):
        if t.sum() < -1:
            return out
        out.append(t * 2)
    return out + [x]


def early_return_of_two(x):
    out = []
    for i in range(6):
        if x.sum() * i > 4:
            return "over", out, i
        out.append(x * i)
    return "done", out, -1


def filtered(x):
    return positive(parts(x))


def filtered_twice(x):
    kept = [t for t in parts(x) if t.sum() > 0 if t[0] < 5]
    return len(kept), sum(kept, x)


def nested_comprehension(x):
    return [[a * b for b in (x, 2.0) if a.sum() > 0] for a in (x, x - 2)]


def flat_comprehension(x):
    return [a * b for a in parts(x) if a.sum() > 0 for b in (1.0, 2.0)]


def slices(x):
    xs = collected(x)
    return xs[1:], xs[:-1], xs[::2], xs[::-1], xs[-2:]


def deleted(x):
    xs = parts(x)
    if x.sum() > 0:
        del xs[0]
    if x[0] > 1:
        del xs[-1]
    return xs


def deleted_slice(x):
    xs = parts(x)
    if x.sum() > 0:
        del xs[1:3]
    return xs, len(xs)


def inserted(x):
    xs = [x]
    for i in range(int((x > 0).sum())):
        xs.insert(0, x * i)
    return xs


def inserted_in_the_middle(x):
    xs = [x, x * 2]
    if x.sum() > 0:
        xs.insert(1, x * 3)
    xs.insert(-1, x * 4)
    return xs


def popped_first(x):
    xs = parts(x)
    out = x
    while xs and out.sum() < 9:
        out = out + xs.pop(0).abs()
    return out, xs


def popped_last(x):
    xs = collected(x)
    total = x
    while xs:
        total = total + xs.pop() * len(xs)
    return total


def extended(x):
    xs = [x]
    xs.extend(collected(x))
    xs += positive(parts(x))
    xs += [x]
    return xs


def extended_by_a_generator(x):
    xs = [x]
    xs.extend(halves(x))
    xs.extend(t * 2 for t in halves(x))
    return xs


def slice_assigned(x):
    xs = parts(x)
    if x.sum() > 0:
        xs[1:3] = [x * 7]
    else:
        xs[0:0] = [x * 8, x * 9]
    return xs


def swapped(x):
    xs = parts(x)
    for i in range(len(xs) - 1):
        if xs[i].sum() > xs[i + 1].sum():
            xs[i], xs[i + 1] = xs[i + 1], xs[i]
    return xs


def bubble_sorted(x):
    xs = [x[0], x[1], x[2]]
    for _ in range(3):
        for j in range(2):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return torch.stack(xs)


def stacked(x):
    xs = collected(x) or [x]
    return torch.stack(xs), torch.cat(xs).sum()


def concatenated(x):
    return collected(x) + parts(x) + collected(x * 2)


def repeated(x):
    xs = [x] * int((x > 0).sum())
    return xs, [0.0] * 2 + [1.0]


def indexed(x):
    xs = parts(x)
    i = int((x > 0).sum())
    return xs[i], xs[-i], xs[i % 2]


def found(x):
    names = ["a", "b", "c"]
    name = "b" if x.sum() > 0 else "c"
    return names.index(name), name in names, names.count(name), names[names.index(name)]


def copied(x):
    xs = [x]
    ys = xs.copy()
    zs = xs
    if x.sum() > 0:
        xs.append(x * 2)
        ys.append(x * 3)
    return xs, ys, zs, zs is xs


def deep_copied(x):
    state = {"rows": [x], "n": 1}
    other = copy.deepcopy(state)
    if x.sum() > 0:
        state["rows"].append(x * 2)
        other["n"] += 1
    return state, other


def cleared(x):
    xs = collected(x)
    n = len(xs)
    if x[0] > 1:
        xs.clear()
    xs.append(x)
    return xs, n


def running_mean(x):
    seen, means = [], []
    for t in halves(x):
        seen.append(t)
        means.append(sum(seen) / len(seen))
    return means


def last_two(x):
    history = [x, x]
    for t in halves(x):
        history.append(history[-1] + history[-2] * 0.5 - t)
    return history[-1], len(history)


def truth_of_lists(x):
    xs = positive(parts(x))
    return "some" if xs else "none", not xs, bool(xs), xs and xs[0]


def compared_lengths(x):
    a, b = positive(parts(x)), collected(x)
    longer = a if len(a) > len(b) else b
    return longer, max(len(a), len(b)), len(a) == len(b)


def list_of_pairs(x):
    pairs = [(i, t) for i, t in enumerate(parts(x)) if t.sum() > 0]
    return pairs, [i for i, _ in pairs], [t * i for i, t in pairs]


def dict_of_pairs(x):
    pairs = [("a", x), ("b", x * 2)]
    if x.sum() > 0:
        pairs.append(("c", x * 3))
    return sum(t for _, t in pairs), [k for k, _ in pairs]


# -- sorting and searching


def sorted_by_key(x):
    return sorted(parts(x), key=lambda t: t.sum())


def sorted_reversed(x):
    return sorted([(t.sum().item(), i) for i, t in enumerate(parts(x))], reverse=True)


def largest_of(x):
    return max(parts(x), key=lambda t: t[0]), min(parts(x), key=lambda t: t.abs().sum())


def largest_of_grown(x):
    xs = collected(x) or [x]
    return max(xs, key=lambda t: t[0]), min(t.sum() for t in xs)


def index_of_largest(x):
    xs = parts(x)
    best = 0
    for i, t in enumerate(xs):
        if t.sum() > xs[best].sum():
            best = i
    return best, xs[best]


def top_two(x):
    first, second = None, None
    for t in parts(x):
        if first is None or t.sum() > first.sum():
            first, second = t, first
        elif second is None or t.sum() > second.sum():
            second = t
    return first, second


def heap_of_plain_numbers(x):
    heap = [3, 1, 2]
    heapq.heapify(heap)
    out = [heapq.heappop(heap) for _ in range(2)]
    return [x * n for n in out], heap


def beam(x):
    beams = [(0.0, [x])]
    for step in range(3):
        grown = []
        for score, path in beams:
            for factor in (0.5, 2.0):
                value = path[-1] * factor
                if value.sum() < 9:
                    grown.append((score + factor, [*path, value]))
        if not grown:
            break
        beams = grown[:2]
    return beams


def beam_by_score(x):
    beams = [(x.sum(), x)]
    for _ in range(2):
        candidates = [(s + t.sum(), t * f) for s, t in beams for f in (0.5, -1.0)]
        candidates = sorted(candidates, key=lambda pair: pair[0], reverse=True)
        beams = candidates[:2]
    return [t for _, t in beams]


def greedy(x):
    path = [x]
    for _ in range(4):
        options = [path[-1] * 0.5, path[-1] - 1]
        better = options[0] if options[0].sum() > options[1].sum() else options[1]
        if better.sum() < 0:
            break
        path.append(better)
    return path


def bisected(x):
    edges = [0.0, 1.0, 5.0]
    return bisect.bisect_left(edges, 0.5), [edges[bisect.bisect(edges, e)] for e in (0.0, 0.9)], x


# -- deques


def window(x):
    last = deque(maxlen=2)
    for t in parts(x):
        if t.sum() > 0:
            last.append(t)
    return list(last), len(last)


def window_means(x):
    last, out = deque([x], maxlen=3), []
    for t in halves(x):
        last.append(t)
        out.append(sum(last) / len(last))
    return out


def queue(x):
    todo, done = deque([x]), []
    while todo:
        t = todo.popleft()
        done.append(t)
        if t.sum() > 2:
            todo.append(t * 0.3)
            todo.append(t * 0.2)
    return done


def both_ends(x):
    d = deque(parts(x))
    while len(d) > 1:
        if d[0].sum() > d[-1].sum():
            d.pop()
        else:
            d.popleft()
    return d[0]


def rotated(x):
    d = deque(parts(x))
    d.rotate(1 if x.sum() > 0 else -1)
    d.appendleft(x)
    return list(d)


def tried_popleft(x):
    d = deque(positive(parts(x)))
    out = []
    for _ in range(3):
        try:
            out.append(d.popleft())
        except IndexError:
            break
    return out


def tried_pop(x):
    xs = positive(parts(x))
    try:
        first = xs.pop(0)
        second = xs.pop(0)
    except IndexError:
        return x
    return first - second


def tried_index(x):
    xs = collected(x)
    try:
        return xs[2]
    except IndexError:
        return x * 0


def tried_key(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    try:
        return d["b"]
    except KeyError:
        return d["a"]


def tried_number(x):
    total, skipped = x, 0
    for text in ("1", "two", "3"):
        try:
            total = total * int(text)
        except ValueError:
            skipped += 1
    return total if total.sum() > 0 else -total, skipped


# -- dicts


def keyed(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    if "b" in d:
        d["c"] = d["b"] + 1
    return d, list(d), len(d)


def counted(x):
    counts = {}
    for t in parts(x):
        name = "up" if t.sum() > 0 else "down"
        counts[name] = counts.get(name, 0) + 1
    return counts


def grouped(x):
    groups = {"up": [], "down": []}
    for t in parts(x):
        groups["up" if t.sum() > 0 else "down"].append(t)
    return groups, len(groups["up"])


def grouped_by_default(x):
    groups = defaultdict(list)
    for t in parts(x):
        groups["up" if t.sum() > 0 else "down"].append(t)
    return dict(groups)


def summed_by_default(x):
    sums = defaultdict(float)
    for i, t in enumerate(parts(x)):
        if t.sum() > 0:
            sums[i % 2] += t
    return sums[0], sums[1]


def counter_of_names(x):
    names = ["up" if t.sum() > 0 else "down" for t in parts(x)]
    c = Counter(names)
    return c["up"], c["down"], c["other"]


def counter_of_one(x):
    c = Counter()
    name = "a" if x.sum() > 0 else "b"
    c[name] += 2
    c.update([name, "a"])
    return c["a"], c["b"], sum(c.values())


def nested_accumulators(x):
    state = {"sum": {"up": x * 0, "down": x * 0}, "n": {"up": 0, "down": 0}}
    for t in parts(x):
        k = "up" if t.sum() > 0 else "down"
        state["sum"][k] = state["sum"][k] + t
        state["n"][k] += 1
    return state


def setdefaults(x):
    d = {}
    for i, t in enumerate(parts(x)):
        if t.sum() > 0:
            d.setdefault("kept", []).append(t)
        d.setdefault("all", []).append(i)
    return d.get("kept", []), d["all"]


def merged(x):
    a, b = {"a": x, "n": 1}, {"b": x * 2}
    if x.sum() > 0:
        b["a"] = x * 3
    return {**a, **b}, a | b, dict(a, c=x)


def popped_key(x):
    d = {"a": x, "b": x * 2}
    if x.sum() > 0:
        last = d.pop("b")
    else:
        last = d.pop("z", x)
    return last, d


def items_changed(x):
    d = {"a": x, "b": x - 2}
    for k, v in d.items():
        d[k] = v * 2 if v.sum() > 0 else v
    return d


def dict_comprehension(x):
    d = {f"k{i}": t for i, t in enumerate(parts(x))}
    return {k: v * 2 for k, v in d.items() if k != "k1"}, {v: k for k, v in enumerate("ab")}


def dict_of_kept(x):
    return {i: t for i, t in enumerate(parts(x)) if i % 2 == 0}, x


def inverted(x):
    table = {"up": 1.0, "down": -1.0}
    name = "up" if x.sum() > 0 else "down"
    back = {v: k for k, v in table.items()}
    return x * table[name], back[table[name]], name


def dispatched(x):
    table = {"relu": torch.relu, "neg": torch.neg, "sq": lambda t: t * t}
    name = "relu" if x[0] > 2 else "neg" if x.sum() > 0 else "sq"
    return table[name](x), name


def ordered(x):
    d = OrderedDict(a=x, b=x * 2, c=x * 3)
    if x.sum() > 0:
        d.move_to_end("a")
    return list(d), list(d.values())


def least_recent(x):
    cache = OrderedDict()
    for key in ("a", "b", "a", "c"):
        if key in cache:
            cache.move_to_end(key)
        else:
            cache[key] = x * len(cache)
        if len(cache) > 2:
            cache.popitem(last=False)
    return (dict(cache), x) if x.sum() > 0 else (dict(cache), -x)


def memoised(x):
    memo = {}

    def fib(n):
        if n not in memo:
            memo[n] = x * n if n < 2 else fib(n - 1) + fib(n - 2) * 0.5
        return memo[n]

    return fib(5) if x.sum() > 0 else fib(3), len(memo)


def updated_options(x):
    options = {"scale": 1.0, "shift": 0.0}
    options.update(scale=2.0) if x.sum() > 0 else options.update({"shift": 3.0})
    return x * options["scale"] + options["shift"], options


def keyword_options(x):
    def apply(t, scale=1.0, shift=0.0, **rest):
        return t * scale + shift, sorted(rest)

    options = {"scale": 2.0}
    if x.sum() > 0:
        options["shift"] = 1.0
    return apply(x, **options), apply(x, **{**options, "other": 1})


# -- sets and text


def seen_names(x):
    seen = set()
    for t in parts(x):
        seen.add("up" if t.sum() > 0 else "down")
    return len(seen), "up" in seen, sorted(seen)


def set_algebra(x):
    a = {"a", "b"}
    b = {"b", "c"} if x.sum() > 0 else {"c"}
    return sorted(a | b), sorted(a & b), sorted(a - b), a.isdisjoint(b)


def visited(x):
    edges, seen, todo = {0: [1, 2], 1: [3], 2: [3], 3: []}, set(), [0]
    total = x * 0
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        total = total + x * node
        todo.extend(edges[node])
    return total if x.sum() > 0 else -total, sorted(seen)


def path_text(x):
    text = ""
    for t in parts(x):
        text += "u" if t.sum() > 0 else "d"
    return text, text.count("u"), text[::-1], text.startswith("u")


def joined_names(x):
    names = [f"p{i}" for i, t in enumerate(parts(x)) if t.sum() > 0]
    return ", ".join(names), len(names)


def formatted(x):
    n = len(collected(x))
    return f"{n} steps", "%d of %d" % (n, 9), "{:>3}".format(n)


def padded(x):
    words = ["a", "bb"]
    if x.sum() > 0:
        words.append("ccc")
    width = max(len(w) for w in words)
    return [w.ljust(width, ".") for w in words], width


def split_text(x):
    spec = "a:1,b:2" if x.sum() > 0 else "a:3"
    table = dict(pair.split(":") for pair in spec.split(","))
    return x * float(table["a"]), len(table)


# -- records


def traced_record(x):
    trace = Trace()
    for i, t in enumerate(parts(x)):
        if t.sum() > 0:
            trace.add(f"s{i}", t)
    return trace.items, trace.names, trace.best


def record_of_steps(x):
    steps = []
    for t in halves(x):
        steps.append(Step("half", t))
    return steps, [s.value for s in steps], len(steps)


def named_tuples(x):
    s = Step("a", x)
    if x.sum() > 0:
        s = s._replace(name="b", value=x * 2)
    name, value = s
    return s, name, value, s._asdict()


def registered(x):
    r = Registry()
    going = True
    for t in parts(x):
        if going:
            going = r.put("up" if t.sum() > 0 else "down", t)
    return r.rows.get("up", []), going


def class_attributes(x):
    class Local(Registry):
        limit = 1

    r = Local()
    first = r.put("a", x)
    r.limit = 5 if x.sum() > 0 else 1
    return first, r.put("a", x * 2), Local.limit, r.limit, r.rows


def linked(x):
    node = None
    for t in parts(x):
        if t.sum() > 0:
            node = (t, node)
    out = []
    while node is not None:
        value, node = node
        out.append(value)
    return out


def tree_of_dicts(x):
    root = {"value": x, "children": []}
    for t in parts(x):
        if t.sum() > 0:
            root["children"].append({"value": t, "children": []})
    return root["value"] + sum(c["value"] for c in root["children"]), len(root["children"])


def history_of_records(x):
    records = []
    for i in range(3):
        records.append({"i": i, "loss": (x * i).sum(), "up": bool(x.sum() > i)})
    return [r["i"] for r in records if r["up"]], records[-1]["loss"]


def best_record(x):
    best = {"score": float("-inf"), "value": None}
    for t in parts(x):
        score = t.sum().item()
        if score > best["score"]:
            best = {"score": score, "value": t}
    return best["value"], best["score"]


def patience(x):
    best, bad, losses = None, 0, []
    for t in parts(x) + parts(x * 0.5):
        loss = t.abs().sum()
        losses.append(loss)
        if best is None or loss < best:
            best, bad = loss, 0
        else:
            bad += 1
        if bad >= 2:
            break
    return best, bad, len(losses)


def frozen_keys(x):
    @dataclasses.dataclass(frozen=True)
    class Key:
        a: int

    table = {Key(1): x, Key(2): x * 2}
    return table[Key(1 if x.sum() > 0 else 2)]


# -- iteration


def enumerated(x):
    total = x * 0
    for i, t in enumerate(collected(x), start=1):
        total = total + t / i
    return total


def zipped(x):
    xs = collected(x)
    return [a - b for a, b in zip(xs, xs[1:])], sum(a * b for a, b in zip(xs, parts(x)))


def zipped_strictly(x):
    xs, ys = parts(x), [1.0, 2.0, 3.0, 4.0]
    return [t * s for t, s in zip(xs, ys, strict=True) if t.sum() > 0]


def unzipped(x):
    pairs = [(t, t.sum()) for t in halves(x)]
    if not pairs:
        return x
    values, sums = zip(*pairs)
    return torch.stack(values).sum(0), len(sums)


def reversed_grown(x):
    out = x
    for t in reversed(collected(x)):
        out = out * 0.5 + t
    return out


def chained(x):
    return list(itertools.chain(collected(x), [x], halves(x * 2)))


def chunks(x):
    xs = parts(x) + ([x] if x.sum() > 0 else [])
    return [sum(xs[i : i + 2]) for i in range(0, len(xs), 2)]


def taken_while(x):
    return list(itertools.takewhile(lambda t: t.sum() > 0, parts(x)))


def first_that(x):
    return next((t for t in parts(x) if t.sum() < 0), None)


def any_and_all(x):
    return any(t.sum() > 3 for t in parts(x)), all(t.sum() > -9 for t in parts(x))


def number_that(x):
    return sum(1 for t in parts(x) if t.sum() > 0), sum(t.sum() > 0 for t in parts(x))


def mapped(x):
    return list(map(lambda a, b: a * b, collected(x), parts(x))), list(map(torch.relu, parts(x)))


def filtered_by(x):
    return list(filter(lambda t: t.sum() > 0, parts(x)))


def reduced(x):
    return functools.reduce(lambda a, b: a * 0.5 + b, collected(x), x), functools.reduce(operator.mul, parts(x))


def accumulated(x):
    return list(itertools.accumulate(collected(x) or [x])), list(itertools.accumulate([1, 2, 3]))


def generator_pipeline(x):
    values = (t * 2 for t in halves(x))
    kept = (t for t in values if t[0] > 0)
    return sum(kept, x)


def delegated(x):
    def both(t):
        yield from halves(t)
        yield t * 9
        yield from halves(t * 2)

    return list(both(x))


def generator_with_state(x):
    def running(ts):
        total = torch.zeros(3)
        for t in ts:
            total = total + t
            if total.sum() > 5:
                return
            yield total

    return list(running(parts(x)))


def while_with_else(x):
    xs = parts(x)
    while xs:
        t = xs.pop()
        if t.sum() > 2:
            found = t
            break
    else:
        found = x * 0
    return found, len(xs)


def nested_breaks(x):
    out = []
    for a in parts(x):
        for b in (0.5, -1.0):
            if (a * b).sum() > 1:
                break
            out.append(a * b)
        else:
            out.append(a)
    return out


def continued(x):
    out, skipped = [], []
    for i, t in enumerate(parts(x)):
        if t.sum() < 0:
            skipped.append(i)
            continue
        out.append(t)
    return out, skipped


def work_list(x):
    todo = [x]
    for t in todo:
        if t.sum() > 1:
            todo.append(t * 0.4)
            todo.append(t * 0.3)
    return len(todo), sum(todo)


def pairs_of_grown(x):
    xs = collected(x)
    return [a * b for i, a in enumerate(xs) for b in xs[i + 1 :]]


def matrix_of_lists(x):
    rows = [[x * i * j for j in range(2)] for i in range(2)]
    if x.sum() > 0:
        rows[0][1] = x
        rows[1].append(x * 5)
    return rows, [len(r) for r in rows]


def rows_grown(x):
    rows = []
    for i in range(int((x > 0).sum())):
        rows.append([x * i])
        rows[-1].append(x + i)
    return rows


def ragged(x):
    rows = []
    for t in parts(x):
        row = []
        while t.sum() > 1:
            row.append(t)
            t = t * 0.4
        rows.append(row)
    return rows, sum(len(r) for r in rows)


def stack_machine(x):
    stack = []
    for token in ("x", "2", "mul", "x", "add") if x.sum() > 0 else ("x", "x", "mul"):
        if token == "x":
            stack.append(x)
        elif token == "mul":
            b, a = stack.pop(), stack.pop()
            stack.append(a * b)
        elif token == "add":
            b, a = stack.pop(), stack.pop()
            stack.append(a + b)
        else:
            stack.append(float(token))
    return stack


def intervals(x):
    spans, start = [], None
    for i, v in enumerate([x[0], x[1], x[2], -x[0]]):
        if v > 0 and start is None:
            start = i
        elif v <= 0 and start is not None:
            spans.append((start, i))
            start = None
    return spans, start


def run_lengths(x):
    runs = []
    for v in (x[0] > 0, x[1] > 0, x[2] > 0):
        sign = 1 if v else 0
        if runs and runs[-1][0] == sign:
            runs[-1][1] += 1
        else:
            runs.append([sign, 1])
    return runs


def moving_buffer(x):
    buffer = [x] * 3
    for t in halves(x):
        buffer = buffer[1:] + [t]
    return buffer


def tuple_built(x):
    t = ()
    for v in parts(x):
        if v.sum() > 0:
            t += (v,)
    return t, len(t)


def star_arguments(x):
    def total(first, *rest, scale=1.0):
        return first * scale + sum(rest)

    xs = collected(x) or [x]
    return total(*xs), total(x, *xs, scale=0.5), [*xs, x], (*xs, *xs)


def star_targets(x):
    xs = [x, *collected(x)]
    first, *rest = xs
    *start, last = xs
    return first, rest, start, last


def partial_functions(x):
    steps = [functools.partial(torch.mul, x)]
    if x.sum() > 0:
        steps.append(functools.partial(torch.add, x))
    for step in steps:
        x = step(x)
    return x


def list_of_functions(x):
    layers = [torch.relu, torch.tanh]
    if x.sum() > 0:
        layers.append(torch.neg)
    for layer in layers:
        x = layer(x)
    return x, len(layers)


def chain_map(x):
    defaults, own = {"a": 1.0, "b": 2.0}, {}
    if x.sum() > 0:
        own["a"] = 3.0
    both = collections.ChainMap(own, defaults)
    return x * both["a"] + both["b"], len(both)
