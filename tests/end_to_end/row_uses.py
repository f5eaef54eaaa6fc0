"""Programs whose lists hold dicts and objects, changed where only the run knows how many there are: bodies of
``f(x, n, c)``.

``x`` is a tensor of three numbers, ``n`` how many times a loop runs, ``c`` a condition, and ``i`` is 0.
"""

from __future__ import annotations

HEADER = """import copy
import dataclasses
from collections import deque
from dataclasses import dataclass, field
import torch

@dataclass
class P:
    n: object
    k: object = 1

@dataclass
class Bag:
    items: list = field(default_factory=list)
    total: object = 0.0

class Node:
    def __init__(self, n, k=1, next=None):
        self.n = n
        self.k = k
        self.next = next

    def add(self, v):
        self.n = self.n + v
        self.k += 1
        return self

    @property
    def twice(self):
        return self.n * 2

class Slots:
    __slots__ = ("n", "k")

    def __init__(self, n, k=1):
        self.n = n
        self.k = k

def bump(r, v):
    r["n"] = r["n"] + v
    r["k"] += 1
    return r

def f(x, n, c):
    i = 0
"""


def _programs(text: str) -> list[str]:
    bodies = text.strip().split("\n\n")
    return [HEADER + "".join(f"    {line}\n" for line in body.splitlines()) for body in bodies]


DICTS = _programs("""
rows = []
while i < n:
    rows.append({"n": x, "k": 1})
    rows[-1]["k"] += i
    i += 1
return rows

rows = []
while i < n:
    rows.append({"n": x, "k": 1})
    rows[-1]["n"] = rows[-1]["n"] * i
    i += 1
return rows

rows = []
while i < n:
    r = {"n": x, "k": 1}
    rows.append(r)
    r["n"] = x * i
    i += 1
return rows

rows = [{"n": x, "k": 0}]
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
for r in rows:
    r["n"] = r["n"] * 2
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
for r in rows:
    r["k"] *= 3
return [r["k"] for r in rows]

rows = []
r = {"n": x, "k": 0}
while i < n:
    rows.append(r)
    r["k"] += 1
    i += 1
return rows, r

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
a = rows[0]
b = rows[-1]
a["k"] = 7
return rows, a is b, b["k"]

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
a = rows[0]
a["n"] = x + 5
return rows, a is rows[0], a is rows[-1]

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
if c:
    rows[0]["n"] = x + 1
else:
    rows[-1]["k"] = 100
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    if c:
        rows[-1]["n"] = rows[-1]["n"] + 1
    i += 1
return rows

rows = []
while i < n:
    r = {"n": x * i, "k": i}
    if i > 0:
        r = rows[-1]
        r["k"] += 10
    rows.append(r)
    i += 1
return rows

rows = []
best = {"n": x, "k": -1}
while i < n:
    r = {"n": x * i, "k": i}
    rows.append(r)
    if r["k"] > best["k"]:
        best = r
    i += 1
best["n"] = best["n"] + 3
return rows, best

rows = []
while i < n:
    rows.append(bump({"n": x, "k": 1}, x * i))
    i += 1
bump(rows[0], x)
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
j = 0
while j < n:
    rows[j]["n"] = rows[j]["n"] + j
    j += 1
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0].update(k=5, n=x)
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0].update({"k": 5})
return rows, rows[0].get("k"), rows[0].get("z", 3), "k" in rows[0], "z" in rows[0], len(rows[0])

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0]["k"] = 9
return [list(r) for r in rows], list(rows[0].keys()), list(rows[0].values()), list(rows[0].items())

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows[0]
vs = r.values()
r["k"] = 50
return list(vs), rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[-1]["k"] = 4
return {**rows[0]}, dict(rows[-1]), rows[0].copy(), rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
d = rows[0].copy()
d["k"] = 44
rows[0]["k"] = 45
return d, rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0]["k"] = 3
a, b = rows[0].values()
return a, b

rows = []
while i < n:
    rows.append({"a": 1.0, "b": 2.0})
    i += 1
r = rows[-1]
for key in r:
    r[key] = r[key] * 2
return rows

rows = []
while i < n:
    rows.append({"a": 1.0, "b": 2.0})
    i += 1
r = rows[-1]
for key, value in r.items():
    r[key] = value * 2
return rows, sum(r.values())

rows = []
while i < n:
    rows.append({"n": x * i, "k": "a"})
    i += 1
rows[-1]["k"] = "b"
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": None})
    i += 1
rows[-1]["k"] = x
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": None})
    i += 1
rows[-1]["k"] = 5
return rows, [r["k"] is None for r in rows]

rows = []
while i < n:
    rows.append({"n": x * i, "k": []})
    rows[-1]["k"].append(x)
    i += 1
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": [x]})
    i += 1
rows[0]["k"].append(x + 1)
rows[0]["n"] = x - 1
return rows

rows = []
while i < n:
    rows.append({"a": {"b": x, "c": 1}})
    i += 1
rows[-1]["a"]["c"] += 4
return rows

rows = []
while i < n:
    rows.append(({"b": x, "c": 1}, i))
    i += 1
rows[-1][0]["c"] += 4
return rows

rows = []
while i < n:
    rows.append([{"b": x, "c": 1}])
    i += 1
rows[-1][0]["c"] += 4
return rows

rows = []
while i < n:
    rows.append([{"b": x, "c": 1}])
    i += 1
rows[-1].append({"b": x + 1, "c": 2})
rows[-1][0]["c"] += 4
return rows

rows = []
while i < n:
    r = {"n": x, "k": i}
    rows.append(r)
    rows.append(r)
    i += 1
rows[0]["k"] = 77
return rows, rows[0] is rows[1], rows[0] is rows[-1]

rows = []
other = []
while i < n:
    r = {"n": x, "k": i}
    rows.append(r)
    other.append(r)
    i += 1
other[0]["k"] = 77
return rows, other

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows.reverse()
rows[0]["k"] = -1
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows.pop()
r["k"] = -1
return rows, r

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows.pop()
r["k"] = -1
rows.insert(0, r)
rows[0]["n"] = x
return rows, r

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
part = rows[1:]
rows[-1]["k"] = 5
return part, rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[-1]["k"] = 5
return [{"n": r["n"], "k": r["k"] + 1} for r in rows], sum([r["k"] for r in rows])

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
total = x * 0
for r in rows:
    total = total + r["n"] * r["k"]
    r["k"] = 0
return total, rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
for j, r in enumerate(rows):
    r["k"] = j * 2
for a, b in zip(rows, rows[1:]):
    b["n"] = b["n"] + a["n"]
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    if i > 1:
        rows[-2]["n"] = rows[-1]["n"]
    i += 1
return rows

rows = []
while i < n:
    d = {"n": x, "k": 0}
    j = 0
    while j < i:
        d["n"] = d["n"] + j
        d["k"] += 1
        j += 1
    rows.append(d)
    i += 1
return rows

rows = []
while i < n:
    rows.append({"n": x, "k": 0})
    j = 0
    while j < i:
        rows[j]["k"] += 1
        j += 1
    i += 1
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows[0] if c else rows[-1]
r["k"] = 9
return rows, r is rows[0]

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows[0] if c else {"n": x, "k": 8}
r["k"] = 9
return rows, r

rows = [{"n": x, "k": 1}]
r = rows[0]
if c:
    rows.append({"n": x * 2, "k": 2})
rows[-1]["k"] = 5
return rows, r

rows = []
r = {"n": x, "k": 1}
if c:
    rows.append(r)
r["k"] = 5
rows.append({"n": x, "k": 2})
rows[0]["n"] = x + 1
return rows, r

rows = []
while i < n:
    rows.append({"k": i, "j": 2 * i})
    i += 1
rows[0]["k"] = 0
return rows[0] == {"k": 0, "j": 0}, rows[-1] == {"k": 0, "j": 0}, rows[0] == rows[-1]

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0]["k"] = 1
return copy.copy(rows[0]), rows[0]

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
match rows[0]:
    case {"k": k, "n": v}:
        rows[0]["k"] = k + 1
        return v, k, rows
return rows

rows = []
for t in x:
    if t > 0:
        rows.append({"n": t, "k": 0})
for r in rows:
    r["n"] = r["n"] + 1
return rows

rows = deque()
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[-1]["k"] = 9
return list(rows)

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
byname = {"first": rows[0], "last": rows[-1]}
byname["first"]["k"] = 6
return byname, rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
def change(r):
    r["k"] += 1
for r in rows:
    change(r)
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
get = rows[0].get
rows[0]["k"] = 31
return get("k"), rows[0].setdefault("k", 3)

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0] |= {"k": 3}
return rows, rows[0] | {"z": 1}

rows = []
while i < n:
    rows.append({"n": x.sum() * i, "k": i})
    i += 1
rows[0]["n"] = x.sum()
return torch.stack([r["n"] for r in rows])

rows = []
while i < n:
    rows.append({"n": x, "k": i})
    rows[-1]["n"] = torch.cat([rows[-1]["n"], x])
    i += 1
return rows

rows = []
while i < n:
    rows.append({0: x, 1: i})
    rows[-1][1] += 2
    i += 1
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows[0]
k = r.pop("k") if "z" in r else 3
r["k"] = k
return rows

rows = []
last = None
while i < n:
    r = {"n": x * i, "k": i}
    rows.append(r)
    if last is not None:
        last["k"] += 100
    last = r
    i += 1
return rows, last is rows[-1]
""")

OBJECTS = _programs("""
rows = []
while i < n:
    rows.append(P(x))
    rows[-1].k += i
    i += 1
return rows

rows = []
while i < n:
    p = P(x)
    rows.append(p)
    p.n = x * i
    i += 1
return rows

rows = [P(x, 0)]
while i < n:
    rows.append(P(x * i, i))
    i += 1
for r in rows:
    r.n = r.n * 2
return rows

rows = []
p = P(x, 0)
while i < n:
    rows.append(p)
    p.k += 1
    i += 1
return rows, p

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
a = rows[0]
b = rows[-1]
a.k = 7
return rows, a is b, b.k

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
a = rows[0]
a.n = x + 5
return rows, a is rows[0], a is rows[-1], a is not rows[0]

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
if c:
    rows[0].n = x + 1
else:
    rows[-1].k = 100
return rows

rows = []
while i < n:
    rows.append(P(x * i, i))
    if c:
        rows[-1].n = rows[-1].n + 1
    i += 1
return rows

rows = []
while i < n:
    p = P(x * i, i)
    if i > 0:
        p = rows[-1]
        p.k += 10
    rows.append(p)
    i += 1
return rows

rows = []
best = P(x, -1)
while i < n:
    p = P(x * i, i)
    rows.append(p)
    if p.k > best.k:
        best = p
    i += 1
best.n = best.n + 3
return rows, best

rows = []
while i < n:
    rows.append(Node(x * i, i))
    i += 1
return [r.n for r in rows]

rows = []
while i < n:
    rows.append(Node(x * i, i))
    rows[-1].add(x)
    i += 1
return rows

rows = []
while i < n:
    rows.append(Node(x * i, i))
    i += 1
for r in rows:
    r.add(x)
return rows, rows[0].twice

head = None
while i < n:
    head = Node(x * i, i, head)
    i += 1
return head

head = None
while i < n:
    head = Node(x * i, i, head)
    i += 1
total = x * 0
node = head
while node is not None:
    total = total + node.n
    node = node.next
return total

head = None
while i < n:
    head = Node(x * i, i, head)
    i += 1
node = head
while node is not None:
    node.n = node.n + 1
    node = node.next
return head

first = Node(x, 0)
last = first
while i < n:
    last.next = Node(x * i, i)
    last = last.next
    i += 1
return first, last

rows = []
while i < n:
    b = Node(x)
    b.next = b
    b.next.k = i
    rows.append(b)
    i += 1
return [r.k for r in rows], [r.next is r for r in rows]

while i < n:
    p, q = Node(x), Node(x * 2)
    a, b = (p, q) if i > 0 else (q, p)
    a.k += 1
    p.k += 10
    i += 1
return a.k, b.k

rows = []
while i < n:
    rows.append(Slots(x * i, i))
    rows[-1].k += 3
    i += 1
return [r.n for r in rows], [r.k for r in rows]

rows = []
while i < n:
    rows.append(Bag())
    rows[-1].items.append(x * i)
    i += 1
return rows

rows = []
while i < n:
    rows.append(Bag())
    j = 0
    while j < i:
        rows[-1].items.append(x * j)
        rows[-1].total += 0.5
        j += 1
    i += 1
return rows

rows = []
while i < n:
    rows.append({"p": P(x, i), "k": i})
    rows[-1]["p"].k += 1
    rows[-1]["k"] += 1
    i += 1
return rows

rows = []
while i < n:
    rows.append((P(x, i), i))
    rows[-1][0].k += 1
    i += 1
return rows

rows = []
while i < n:
    p = P(x, i)
    rows.append(p)
    rows.append(p)
    i += 1
rows[0].k = 77
return rows, rows[0] is rows[1], rows[0] is rows[-1]

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
p = rows.pop()
p.k = -1
rows.insert(0, p)
rows[0].n = x
return rows, p

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
rows[-1].k = 5
new = dataclasses.replace(rows[-1], k=6)
return rows, new

rows = []
while i < n:
    rows.append(P(i * 2, i))
    i += 1
rows[-1].k = 5
return dataclasses.asdict(rows[-1]), dataclasses.astuple(rows[0])

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
rows[-1].k = 5
q = copy.copy(rows[-1])
q.k = 8
return rows, q

rows = []
while i < n:
    rows.append(P(i, 2 * i))
    i += 1
rows[-1].k = 5
return rows[-1] == P(2, 5), rows[0] == rows[0], rows[0] == rows[-1], rows[0] != rows[-1]

rows = []
while i < n:
    rows.append(P(i, 2 * i))
    i += 1
rows[-1].k = 5
r = rows[0]
return getattr(r, "k"), hasattr(r, "k"), hasattr(r, "z"), getattr(r, "z", 3), isinstance(r, P), type(r) is P

rows = []
while i < n:
    rows.append(P(i, 2 * i))
    i += 1
setattr(rows[0], "k", 3)
return rows

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
r = rows[0] if c else rows[-1]
r.k = 9
return rows, r is rows[0]

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
r = rows[0] if c else P(x, 8)
r.k = 9
return rows, r

rows = []
p = P(x, 1)
if c:
    rows.append(p)
p.k = 5
rows.append(P(x, 2))
rows[0].n = x + 1
return rows, p

rows = [P(x, 1)]
p = rows[0]
if c:
    rows.append(P(x * 2, 2))
rows[-1].k = 5
return rows, p

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
match rows[0]:
    case P(n=v, k=k):
        rows[0].k = k + 1
        return v, k, rows
return rows

rows = []
while i < n:
    rows.append(P(x * i, None))
    i += 1
rows[-1].k = x
return rows, [r.k is None for r in rows]

rows = []
while i < n:
    rows.append(P(x * i, "a"))
    i += 1
rows[-1].k = "b"
return rows

rows = []
while i < n:
    rows.append(P(x * i, P(x, i)))
    i += 1
rows[0].k.k += 1
rows[-1].k = rows[0].k
rows[-1].k.n = x * 9
return rows

rows = []
while i < n:
    p = P(x, i)
    rows.append(p)
    rows.append(Node(x, i))
    rows[-2].k += 1
    rows[-1].k += 2
    i += 1
return rows

rows = []
best = None
while i < n:
    p = P(x * i, i)
    rows.append(p)
    if best is None or p.k > best.k:
        best = p
    i += 1
best.k = 100
return rows, best is rows[-1]

rows = []
while i < n:
    p = P(x, 0)
    if c:
        p.k = i
    rows.append(p)
    p.n = p.n + p.k
    i += 1
return rows

rows = []
for t in x:
    if t > 0:
        rows.append(P(t, 0))
for r in rows:
    r.n = r.n + 1
return rows

rows = []
while i < n:
    rows.append(P(x.sum() * i, i))
    i += 1
rows[0].n = x.sum()
return torch.stack([r.n for r in rows]), max(r.k for r in rows), sum(r.k for r in rows)

queue = [P(x, 2)]
out = []
while len(queue) > 0:
    p = queue.pop()
    out.append(p)
    p.n = p.n + 1
    if p.k > 0:
        queue.append(P(p.n * 2, p.k - n))
return out

table = {"a": P(x, 0), "b": P(x * 2, 1)}
rows = []
while i < n:
    rows.append(table["a"] if c else table["b"])
    rows[-1].k += 1
    i += 1
return table, rows

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
try:
    r = rows[2]
    r.k = -5
except IndexError:
    r = rows[0]
    r.k = 5
return rows, r

stack = [Node(x, 0)]
while i < n:
    top = stack[-1]
    child = Node(top.n + i, i, top)
    stack.append(child)
    top.k += 1
    i += 1
return stack, stack[-1].next.k

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
a, *rest = rows
a.k = 6
for r in rest:
    r.k = 8
return rows, a, rest

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
rows.sort(key=lambda r: -r.k)
rows[0].k = 50
return rows
""")

CAUGHT = _programs("""
rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
try:
    rows[2]["k"] = 3
except IndexError:
    rows[0]["k"] = 4
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
try:
    rows[2]["k"] += 3
except IndexError:
    rows[0]["k"] += 4
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
try:
    v = rows[2]["z"]
except (IndexError, KeyError):
    v = 5
rows[0]["k"] = v
return rows, v

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
try:
    v = rows[2]["z"]
except KeyError:
    v = 5
except IndexError:
    v = 6
rows[0]["k"] = v
return rows, v

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
try:
    v = rows[2]["k"]
except LookupError as e:
    v = str(e)
rows[0]["k"] = 1
return rows, v

g = []
while i < n:
    g.append([x * i])
    g[-1].append(x)
    if i > 1:
        g[-1].append(x + 1)
    i += 1
try:
    v = g[-1][2]
except IndexError:
    v = x * 7
return g, v

g = []
while i < n:
    g.append([x * i])
    if i > 1:
        g[-1].append(x + 1)
    i += 1
out = []
for r in g:
    try:
        v = r[1]
        r.pop()
        w = r[1]
    except IndexError:
        w = x * 7
    out.append(w)
return g, out

g = []
while i < n:
    g.append([x * i])
    if i > 1:
        g[-1].append(x + 1)
    i += 1
try:
    g[1][1] = x * 9
except IndexError:
    g[0][0] = x * 8
return g

g = []
while i < n:
    g.append([i])
    if i > 1:
        g[-1].append(i)
    i += 1
try:
    g[2][1] += 10
except IndexError:
    g[0][0] += 5
return g

rows = []
while i < n:
    try:
        rows[i].k = 1
    except IndexError:
        rows.append(P(x, i))
    i += 1
return rows

rows = []
while i < n:
    rows.append(P(x, i))
    i += 1
try:
    rows[2].k += 1
except IndexError:
    rows[0].k -= 1
return rows

rows = []
while i < n:
    rows.append(P(x, i))
    i += 1
try:
    r = rows[2]
    r.k = -5
except IndexError:
    r = rows[0]
    r.k = 5
return rows, r

d = {"a": x}
try:
    v = d["b"]
except (IndexError, KeyError):
    v = x + 1
return v

d = {"a": x}
if c:
    d["b"] = x * 2
try:
    v = d["a"]
except (IndexError, KeyError):
    v = x + 1
return v

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
try:
    del rows[3]
    rows[0]["k"] = 9
except IndexError:
    rows[0]["k"] = 8
return rows
""")

REFUSED = _programs("""
rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0]["k"] += 1
if rows[0] == rows[0]:
    return rows
return None

rows = []
while i < n:
    rows.append({"k": i, "j": 2 * i})
    i += 1
rows[-1]["k"] = 0
return f"{rows[-1]}", str(rows[-1]["k"])

g = []
while i < n:
    g.append([x * i])
    if i > 1:
        g[-1].append(x + 1)
    i += 1
try:
    v = g[-1].pop(1)
except IndexError:
    v = x * 8
return g, v

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0]["k"] = 1
rows[0]["z"] = 2
return rows

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
rows[0]["k"] = 1
del rows[0]["n"]
return rows

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
rows[0].k = 1
rows[0].z = 2
return rows

rows = []
while i < n:
    rows.append(P(x * i, i))
    i += 1
rows[0].k = 1
return vars(rows[0])

rows = []
while i < n:
    rows.append({"n": x * i, "k": i})
    i += 1
r = rows[-1]
for key, value in r.items():
    r["k"] = 7
    r[key] = value * 2
return rows
""")
"""Refused with a located error: what has no place in a table, or is not told while tracing."""
