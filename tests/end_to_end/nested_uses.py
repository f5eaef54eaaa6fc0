"""Programs whose lists hold lists, changed where only the run knows how many there are: bodies of ``f(x, n, c)``.

``x`` is a tensor of three numbers, ``n`` how many times a loop runs, ``c`` a condition, and ``i`` is 0.
"""

from __future__ import annotations

HEADER = """import torch
from collections import deque

def add(r, v):
    r.append(v)
    return r

def row_of(t, n):
    row = []
    for i in range(n + 1):
        row.append(t * i)
    return row

def f(x, n, c):
    i = 0
"""


def _programs(text: str) -> list[str]:
    bodies = text.strip().split("\n\n")
    return [HEADER + "".join(f"    {line}\n" for line in body.splitlines()) for body in bodies]


EQUAL = _programs("""
g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].append(x)
return g

g = []
while i < n:
    g.append([])
    g[-1].append(x * i)
    i += 1
return g

g = []
while i < n:
    g.append([x])
    g[-1].append(x * i)
    i += 1
return g

g = []
while i < n:
    cur = []
    g.append(cur)
    cur.append(x * i)
    i += 1
return g

g = []
while i < n:
    cur = [x]
    g.append(cur)
    cur.append(x * i)
    i += 1
return g, cur

cur = []
g = []
while i < n:
    cur.append(x * i)
    g.append(cur)
    i += 1
return g

cur = []
g = []
while i < n:
    cur.append(x * i)
    g.append(cur)
    i += 1
return len(g), len(cur), [len(r) for r in g]

cur = []
g = [cur]
while i < n:
    cur.append(x * i)
    i += 1
g.append([x])
return g

cur = [x]
g = [cur]
while i < n:
    g.append([x * i])
    i += 1
cur.append(x)
return g

cur = [x]
g = [cur]
while i < n:
    g.append([x * i])
    cur.append(x)
    i += 1
return g, cur

cur = [x]
g = [cur]
while i < n:
    g.append([x * i])
    i += 1
g[0].append(x)
return cur, g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for row in g:
    row.append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for row in g:
    row[0] = x * 2
return g

g = [[x]]
while i < n:
    g.append([x * i, x])
    i += 1
for row in g:
    row.pop()
return g

g = [[x]]
while i < n:
    g.append([x * i, x])
    i += 1
del g[-1][0]
return g

g = [[x]]
while i < n:
    g.append([x * i, x])
    i += 1
g[0][0] = x * 5
return g

g = [[x]]
while i < n:
    g.append([x * i, x])
    i += 1
g[-1][-1] = x * 5
return g

g = [[x, x]]
while i < n:
    g.append([x * i, x])
    i += 1
j = 0
while j < n:
    g[j][j % 2] = x * 7
    j += 1
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1] += [x, x]
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].extend([x, x * 2])
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].insert(0, x * 2)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].reverse()
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].clear()
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g[-1]
r.append(x)
return g, r

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g[-1]
r.append(x)
return g, r is g[-1]

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g[-1]
return r is g[-1], r is g[0], g[0] is g[0]

g = []
while i < n:
    cur = [x]
    g.append(cur)
    i += 1
return g[-1] is cur, g[0] is cur

g = []
cur = [x]
while i < n:
    g.append(cur)
    i += 1
return g[-1] is cur, g[0] is g[-1]

g = []
cur = [x]
while i < n:
    g.append(cur)
    i += 1
cur.append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
if c:
    g[-1].append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
if c:
    g[-1].append(x)
else:
    g[0].append(x * 2)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g[0] if c else g[-1]
r.append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
if c:
    r = g[0]
else:
    r = g[-1]
r.append(x)
return g, r

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g[0] if c else [x]
r.append(x)
return g, r

cur = []
g = []
while i < n:
    cur.append(x * i)
    i += 1
    g = g
g.append(cur)
return g

cur = []
g = [cur]
while i < n:
    cur.append(x * i)
    i += 1
return g, cur

cur = []
g = []
for t in range(int(n)):
    cur.append(x * t)
    if len(cur) == 2:
        g.append(cur)
        cur = []
if cur:
    g.append(cur)
return g

cur = []
g = [cur]
for t in range(int(n)):
    if len(cur) == 2:
        cur = []
        g.append(cur)
    cur.append(x * t)
return g

cur = [x]
g = [cur]
for t in range(int(n)):
    if (x * t).sum() > 2:
        cur = []
        g.append(cur)
    cur.append(x * t)
return g

g = [[x]]
for t in range(int(n)):
    if (x * t).sum() > 2:
        g.append([])
    g[-1].append(x * t)
return g

g = [[]]
for t in range(int(n)):
    if c:
        g.append([])
    g[-1].append(t)
return g

g = [[]]
for t in range(int(n)):
    if t % 2 == 0:
        g.append([])
    g[-1].append(t)
return g, sum(sum(r) for r in g)

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].append(x)
return sum(t.sum() for r in g for t in r)

g = [[x]]
while i < n:
    g.append([x * i])
    g[-1].append(x * 2)
    i += 1
return sum(t.sum() * len(r) for r in g for t in r)

g = [[x]]
while i < n:
    g.append([x * i])
    g[0].append(x * 2)
    i += 1
return torch.stack(g[0])

g = [[x]]
while i < n:
    g.append([x * i])
    g[0].append(x * 2)
    i += 1
return [torch.stack(r) for r in g]

g = [[x]]
while i < n:
    g.append([x * i])
    g[i].append(x * 2)
    i += 1
return [[t * 2 for t in r] for r in g]

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = g[:]
h[0].append(x)
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = list(g)
h[-1].append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = g.copy()
h.append([x])
h[0].append(x)
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = [list(r) for r in g]
h[0].append(x)
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = [r for r in g]
h[0].append(x)
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = [r for r in g if len(r) < 2]
h[-1].append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = [r + [x] for r in g]
h[0].append(x)
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g.pop()
r.append(x)
return g, r

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g.pop()
r.append(x)
g.append(r)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
r = g[-1]
g.append(r)
r.append(x)
return g

g = [[x]]
while i < n:
    g.append(g[0])
    i += 1
g[-1].append(x)
return g

g = [[x]]
while i < n:
    g[-1].append(x * i)
    g.append(g[-1])
    i += 1
return [len(r) for r in g]

g = [[x]]
while i < n:
    g = g + [[x * i]]
    i += 1
g[0].append(x)
return g

g = [[x]]
while i < n:
    g += [[x * i]]
    i += 1
g[0].append(x)
return g

g = [[x]]
while i < n:
    g.insert(0, [x * i])
    i += 1
g[0].append(x)
return g

g = [[x]]
while i < n:
    g.extend([[x * i], [x]])
    i += 1
g[0].append(x)
g[-1].append(x)
return g

g = [[x], [x]]
while i < n:
    g[0].append(x)
    i += 1
return g

g = [[x], [x]]
while i < n:
    g[i % 2].append(x * i)
    i += 1
return g

g = [[], []]
while i < n:
    g[i % 2].append(x * i)
    i += 1
return g

g = [[] for _ in range(int(n))]
while i < n:
    g[i].append(x)
    i += 1
return g

g = [[0] * 3 for _ in range(int(n))]
while i < n:
    g[i][1] = i
    i += 1
return g

g = [[0] * 3 for _ in range(int(n))]
while i < n:
    g[i][i % 3] += 1
    i += 1
return g

g = [[0, 0]]
while i < n:
    g.append([i, 0])
    i += 1
g[-1][1] += 5
return g

g = [[0, 0]]
while i < n:
    g.append([i, g[-1][1] + 1])
    g[-1][0] += 1
    i += 1
return g

g = [[x]]
a = g
while i < n:
    g.append([x * i])
    i += 1
a[-1].append(x)
return g, a is g

d = {"g": [[x]]}
while i < n:
    d["g"].append([x * i])
    i += 1
d["g"][-1].append(x)
return d

d = {"a": [], "b": []}
while i < n:
    d["a"].append([x * i])
    i += 1
if c:
    d["a"][0].append(x)
return d

d = {"a": []}
while i < n:
    d["a"].append([])
    d["a"][i].append(x)
    i += 1
return d

t = ([], [])
while i < n:
    t[0].append([x])
    t[0][-1].append(x)
    t[1].append(x)
    i += 1
return t

g = deque()
while i < n:
    g.append([x * i])
    i += 1
g[0].append(x)
return list(g)

g = deque([[x]])
while i < n:
    g.appendleft([x * i])
    i += 1
r = g.popleft()
r.append(x)
return list(g), r

g = deque(maxlen=2)
while i < n:
    g.append([x * i])
    g[-1].append(x)
    i += 1
return list(g)

g = [(x, [x])]
while i < n:
    g.append((x * i, [x]))
    i += 1
g[-1][1].append(x)
return g

g = [([], i)]
while i < n:
    g.append(([x], i))
    g[-1][0].append(x)
    i += 1
return g

g = [[[x]]]
while i < n:
    g.append([[x * i]])
    i += 1
g[-1][0].append(x)
return g

g = [[[x]]]
while i < n:
    g[-1].append([x * i])
    g[-1][-1].append(x)
    i += 1
return g

rows = []
while i < n:
    rows.append({"v": [x]})
    rows[-1]["v"].append(x)
    i += 1
return rows

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
a = g[0]
b = g[0]
a.append(x)
b.append(x * 2)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
a, *b = g
a.append(x)
return g, len(b)

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
a = g[0]
g[0] = [x]
a.append(x)
return g, a

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[0], g[-1] = g[-1], g[0]
g[0].append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g.reverse()
g[0].append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for r in reversed(g):
    r.append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for k, r in enumerate(g):
    r.append(x * k)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for r, s in zip(g, g):
    r.append(x)
    s.append(x)
return g

g = [[x]]
h = [[x]]
while i < n:
    g.append([x * i])
    h.append([x])
    i += 1
for r, s in zip(g, h):
    r.append(s[0])
return g, h

g = [[x]]
h = []
while i < n:
    g.append([x * i])
    h.append(g[-1])
    i += 1
h[0].append(x)
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for r in g:
    if r[0].sum() > 1:
        r.append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for r in g:
    while len(r) < 3:
        r.append(r[-1] * 2)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
for r in g:
    for _ in range(int(n)):
        r.append(x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
add(g[-1], x)
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
h = [add(r, x) for r in g]
return g, h

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
s = 0
for r in g:
    r.append(x)
    s = s + sum(r).sum()
return s

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
y = g[0][0]
g[0][0] = y * 2
return g, y

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[0].append(x)
return x in g[0] if False else len(g[0])

g = [[1]]
while i < n:
    g.append([i])
    i += 1
g[-1].append(3)
return max(g[-1]), sum(g[-1]), len(g[-1])

g = [["a"]]
while i < n:
    g.append(["b"])
    i += 1
g[-1].append("c")
return g

g = [[x]]
while i < n:
    g.append([x * i])
    i += 1
g[-1].append(1)
return g

g = [[x]]
while i < n:
    g.append([i])
    i += 1
g[-1].append(x)
return g

g = [[x], x]
while i < n:
    g.append([x * i])
    i += 1
g[-1].append(x)
return g

g = [None]
while i < n:
    g.append([x * i])
    i += 1
g[-1].append(x)
return g

g = [[x]]
while i < n:
    if c:
        g.append([x * i])
    else:
        g[-1].append(x)
    i += 1
return g

g = [[x]]
while i < n:
    if x[0] > i:
        break
    g.append([x * i])
    g[0].append(x)
    i += 1
return g

g = [[x]]
if c:
    g.append([x])
g[-1].append(x)
return g

g = [[x]]
if c:
    g.append([x])
g[-1].append(x)
while i < n:
    g[-1].append(x)
    i += 1
return g

g = [[x]]
if c:
    g = [[x], [x * 2]]
while i < n:
    g[-1].append(x)
    i += 1
return g

g = [[x]]
h = [[x * 2]]
g = g if c else h
while i < n:
    g = [row + [x] for row in g]
    i += 1
return g

g = [[x]]
h = [[x * 2]]
g = g if c else h
while i < n:
    g = [row + [x] for row in g]
    i += 1
return g, h

g = [[x]]
if c:
    g.append([x])
while i < n:
    g = [row + [x] for row in g]
    i += 1
return g

g = [[x]]
if c:
    g = [[x], [x * 2]]
while i < n:
    g = [row + [x] for row in g]
    i += 1
return g

g = [[x]]
while i < n:
    if c:
        g.append([x])
    g = [row + [x] for row in g]
    i += 1
return g

g = [[x]]
while i < n:
    if c:
        g.append([x])
    for _ in range(int(n)):
        g = [[t * 0.5 for t in row] for row in g]
    g.append([x, x])
    i += 1
return g

g = [[x]]
while i < n:
    if c:
        g.append([x])
    j = 0
    while j < 2 and c:
        j += 1
        g = [row + [x] for row in g]
    g.append([x, x])
    i += 1
g[-1] = [x]
return g

g = [row_of(x, 1)]
while i < n:
    g.append(row_of(x, i))
    i += 1
g[-1].append(x)
return g

g = []
while i < n:
    g.append([])
    j = 0
    while j < i:
        g[-1].append(x * j)
        j += 1
    i += 1
return g

cur = []
g = []
while i < n:
    cur.append(x * i)
    i += 1
    g, cur = (g + [cur], []) if i == 2 else (g, cur)
return g, cur

rows = [{"n": 1}]
while i < n:
    rows.append({"n": i})
    i += 1
rows[-1]["n"] += 1
return rows

rows = [{"n": 1, "t": x}]
while i < n:
    rows.append({"n": i, "t": x})
    i += 1
rows[-1]["t"] = x * 2
return rows

rows = [{"n": 1, "t": x}]
while i < n:
    rows.append({"n": i, "t": x})
    i += 1
for row in rows:
    row["n"] += 1
return rows

rows = []
while i < n:
    rows.append({"n": i, "t": x})
    rows[-1]["n"] += 1
    i += 1
return rows

rows = []
while i < n:
    d = {"n": i}
    rows.append(d)
    d["n"] += 1
    i += 1
return rows, rows[-1] is d

rows = []
while i < n:
    rows.append({"v": i})
    i += 1
if c:
    rows[0]["v"] = 7
return rows

rows = []
while i < n:
    rows.append({"v": i})
    i += 1
rows[0].update(v=3)
return rows

g = [[x]]
while i < n:
    g = [[x * 2]]
    if c:
        g[-1] = [x]
        g = [row + [x] for row in g]
        g.append([x])
    i += 1
return g

g = [[1]]
while i < n:
    g.append([i])
    i += 1
g[0].append(3)
return 3 in g[0], g[0] == [1, 3], g
""")

CAUGHT = _programs("""
d = deque()
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[2]
except IndexError:
    v = x * 9
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[2]
except IndexError:
    v = x * 9
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[2] + d[0]
except IndexError as e:
    v = str(e)
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[2]
except IndexError as e:
    v = str(e)
return v

d = deque()
while i < n:
    d.append(x * i)
    i += 1
s = x
while True:
    try:
        s = s + d.popleft()
    except IndexError:
        break
return s, list(d)

d = []
while i < n:
    d.append(x * i)
    i += 1
s = x
while True:
    try:
        t = d.pop()
    except IndexError:
        break
    s = s * 2 + t
return s, d

d = []
while i < n:
    d.append(x * i)
    i += 1
s = x
while True:
    try:
        t = d.pop()
        s = s * 2 + t
    except IndexError:
        break
return s, d

d = deque()
while i < n:
    d.append(x * i)
    i += 1
try:
    d.popleft()
    d.popleft()
except IndexError:
    d.append(x)
return list(d)

d = deque()
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d.pop()
except (IndexError, KeyError) as e:
    v = str(e)
return v

d = deque()
if c:
    d.append(x)
try:
    v = d.pop()
except IndexError as e:
    v = x * 3
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    d[2] = x
except IndexError as e:
    d.append(str(e))
return len(d)

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    del d[2]
except IndexError as e:
    d.append(x)
return d

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[n - 3]
except IndexError as e:
    v = x * 11
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[-3]
except IndexError as e:
    v = x * 11
else:
    v = v * 2
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[-3]
except IndexError as e:
    v = x * 11
finally:
    i = 100
return v, i

d = []
while i < n:
    d.append(x * i)
    i += 1
try:
    v = d[3] * d[0]
    v = v + d[1]
except LookupError:
    v = x
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
v = 0
for k in range(4):
    try:
        v = v + d[k]
    except IndexError:
        v = v + 1
return v

d = []
while i < n:
    d.append(x * i)
    i += 1
v = 0
k = 0
while k < 4:
    try:
        v = v + d[k].sum()
    except IndexError:
        v = v + 1
    k += 1
return v

d = []
while i < n:
    d.append(i)
    i += 1
try:
    return d[2]
except IndexError:
    return -1

d = []
while i < n:
    d.append(i)
    i += 1
try:
    v = min(d[2], 5)
except IndexError:
    return -1
return v

d = []
while i < n:
    d.append(i)
    i += 1
try:
    a = d[0]
    b = d[a + 2]
except IndexError:
    b = 77
return b

d = [[x]]
while i < n:
    d.append([x * i])
    i += 1
try:
    v = d[2][0]
except IndexError:
    v = x * 7
return v

d = [1, 2]
try:
    v = d[5]
except IndexError as e:
    v = str(e)
return v, x

d = {"a": 1}
try:
    v = d["b"]
except LookupError as e:
    v = str(e)
return v, x

d = deque([x], maxlen=3)
while i < n:
    d.appendleft(x * i)
    i += 1
try:
    d[2] = x * 5
except IndexError as e:
    v = str(e)
return list(d)
""")
"""An index in a ``try`` that catches what it raises."""

REFUSED = _programs("""
rows = []
while i < n:
    rows.append({"v": i})
    i += 1
rows[0]["w"] = 3
return rows
""")
