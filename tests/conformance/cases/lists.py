"""Lists that grow in loops, comprehensions and generators."""

from __future__ import annotations

import torch

from tests.conformance.family import BOTH, EACH, Family, normal, num, vec

family = Family("Loops")
case = family.case
COUNTS = tuple((vec(1.0, 2.0), num(n)) for n in (1, 2, 4))
WITH_ZERO = tuple((vec(1.0, 2.0), num(n)) for n in (0, 1, 4))


@case("append and stack", *COUNTS)
def append_stack(x, n):
    out = []
    for i in range(n):
        x = x * 2 + i
        out.append(x)
    return torch.stack(out)


@case("append one item for each row", *COUNTS)
def append_for_each(x, n):
    rows = torch.arange(n * 2).reshape(-1, 2) * x
    state = x * 0
    states, sums = [], []
    for i, row in enumerate(rows):
        state = torch.tanh(state + row)
        states.append(state * i)
        sums.append(row.sum())
    return torch.stack(states), sums, state


@case("append one item for each row", *COUNTS)
def append_for_each_of_two(x, n):
    rows = torch.arange(n * 2).reshape(-1, 2) * x
    products = []
    for a, b in zip(rows, rows + 1):
        if a.sum() > b.mean():
            a = a * 2
        products.append(a * b)
    return torch.stack(products).sum(0), len(products)


@case("append and cat", *COUNTS)
def append_cat(x, n):
    out = [x]
    while n > 0:
        out.append(out[-1] + 1)
        n = n - 1
    return torch.cat(out, dim=0)


@case("append and cat of none", *WITH_ZERO)
def stack_of_none(x, n):
    out = []
    for i in range(n):
        out.append(x)
    return torch.stack(out)


@case("list that grew is returned", *WITH_ZERO)
def list_returned(x, n):
    out = []
    for i in range(n):
        out.append(x * i)
    return out


@case("list that grew is returned", *WITH_ZERO)
def number_list(x, n):
    out = []
    for i in range(n):
        out.append(i * i)
    return out, len(out)


@case("list of tuples that grew", *WITH_ZERO)
def tuple_list(x, n):
    out = []
    for i in range(n):
        out.append((x + i, i))
    return out


@case("pop", *COUNTS)
def pops(x, n):
    stack = [x]
    for i in range(n):
        stack.append(stack[-1] * 2)
    last = stack.pop()
    return last, len(stack)


@case("pop in a loop", *WITH_ZERO)
def pops_in_loop(x, n):
    stack = []
    for i in range(n):
        stack.append(x * i)
    total = x * 0
    while len(stack) > 0:
        total = total * 2 + stack.pop()
    return total, len(stack)


@case("pop while the list is not empty", *WITH_ZERO)
def pops_while_any(x, n):
    stack = []
    for i in range(n):
        stack.append(i)
    total = 0
    while stack:
        total = total * 10 + stack.pop()
    return total


@case("pop from an empty list raises", (vec(1.0), num(2)), (vec(1.0), num(0)))
def pop_empty(x, n):
    stack = []
    for i in range(n):
        stack.append(x)
    return stack.pop()


@case("pop of the first item", *COUNTS)
def pops_first(x, n):
    queue = [x]
    for i in range(n):
        queue.append(x + i)
    first = queue.pop(0)
    return first, queue


@case("extend", *WITH_ZERO)
def extends(x, n):
    out = []
    for i in range(n):
        out.extend([x, x + i])
    return out, len(out)


@case("concatenation with +=", *WITH_ZERO)
def concatenated(x, n):
    out = []
    for i in range(n):
        out += [x * i]
    return out


@case("concatenation with +", *WITH_ZERO)
def added(x, n):
    out = []
    for i in range(n):
        out = out + [i]
    return out + [99]


@case("indexing", *COUNTS)
def indexed(x, n):
    out = []
    for i in range(n):
        out.append(x + i)
    return out[0], out[-1], out[n - 1]


@case("index out of range raises", (vec(1.0), num(4)), (vec(1.0), num(1)))
def index_out_of_range(x, n):
    out = []
    for i in range(n):
        out.append(x + i)
    return out[2]


@case("slicing", *WITH_ZERO)
def sliced(x, n):
    out = []
    for i in range(n):
        out.append(x + i)
    return out[1:], out[-2:]


@case("item assignment", *COUNTS)
def item_assigned(x, n):
    out = []
    for i in range(n):
        out.append(x)
    out[0] = x * 10
    return out


@case("iterating a list that grew", *WITH_ZERO)
def iterated(x, n):
    out = []
    for i in range(n):
        out.append(x + i)
    total = x * 0
    for item in out:
        total = total + item
    return total


@case("iterating a list that grew", *WITH_ZERO)
def enumerated(x, n):
    out = []
    for i in range(n):
        out.append(x + i)
    total = x * 0
    for k, item in enumerate(out):
        total = total + item * k
    return total


@case("append under a condition", (vec(1.0, -1.0, 2.0),), (vec(-1.0, -1.0, -2.0),), (vec(1.0, 1.0, 2.0),))
def append_if(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out, len(out)


@case("list in a staged branch of a loop", *[(vec(1.0, -1.0), num(n)) for n in (0, 1, 4)])
def append_branches(x, n):
    ups, downs = [], []
    for i in range(n):
        x = -x * 1.5
        if x[0] > 0:
            ups.append(x)
        else:
            downs.append(x)
    return ups, downs


@case("items of differing size", *COUNTS)
def differing_sizes(x, n):
    out = []
    for i in range(n):
        x = torch.cat([x, x[:1]])
        out.append(x)
    return out


@case("items of differing structure", (vec(1.0), num(3)))
def differing_structure(x, n):
    out = []
    for i in range(n):
        if x.sum() > 2:
            out.append((x, 1))
        else:
            out.append(x)
        x = x + 1
    return out


@case("comprehension over range of a tensor", *WITH_ZERO)
def comprehension_range(x, n):
    return [x * i for i in range(n)]


@case("comprehension over range of a tensor", *COUNTS)
def comprehension_stack(x, n):
    return torch.stack([x + i for i in range(int(n))]).sum(0)


@case("comprehension with a filter on tensors", (vec(1.0, -1.0, 2.0),), (vec(-1.0, -1.0, -2.0),), search=1)
def comprehension_filter(x):
    return [v * 2 for v in x if v > 0]


@case("comprehension with a condition", *EACH)
def comprehension_condition(x):
    return [v if v > 0 else v * 0 for v in x]


@case("nested comprehension", *BOTH)
def comprehension_nested(x):
    return [[a * b for a in x] for b in x], [a + b for a in x for b in (1, 2)]


@case("dict comprehension", *BOTH)
def comprehension_dict(x):
    return {str(i): v if v > 0 else -v for i, v in enumerate(x)}


@case("dict comprehension with a filter on tensors", *((vec(a, b),) for a in (1.0, -1.0) for b in (1.0, -1.0)))
def comprehension_dict_filter(x):
    return {i: v for i, v in enumerate(x) if v > 0}


@case("set comprehension", *BOTH)
def comprehension_set(x):
    return {i % 2 for i in range(4)}, x * len({v for v in (1, 1, 2)})


@case("generator expression", *EACH)
def generator_expression(x):
    return sum(v * 2 if v > 0 else v for v in x), max(v for v in x)


def pairs(x):
    for i in range(3):
        yield x[i], i


@case("generator function", *BOTH)
def generator_function(x):
    total = 0
    for v, i in pairs(x):
        if v > 0:
            total = total + v * i
        else:
            total = total - v
    return total


@case("walrus in a condition", *EACH)
def walrus(x):
    if (s := x.sum()) > 1:
        return x * s
    return s


@case("walrus in a while condition", (vec(1.0),), (vec(99.0),))
def walrus_while(x):
    n = 0
    while (y := x * 2).sum() < 50:
        x = y + 1
        n += 1
    return x, y, n


@case("walrus in a comprehension", *EACH)
def walrus_comprehension(x):
    parts = [last := v * 2 for v in x]
    return parts, last


@case("growing list held in a tuple of lists", *WITH_ZERO)
def two_lists(x, n):
    hs, cs = [], []
    h = c = x
    for i in range(n):
        h, c = c + 1, h * 2
        hs.append(h)
        cs.append(c)
    return hs, cs


@case("beam of fixed width", (normal(4, 3),), (normal(4, 3, seed=3),))
def beam(scores):
    best = [(0.0, [])]
    for row in scores:
        value, index = row.max(0)
        total, path = best[0]
        best = [(total + value, path + [index])]
    return best[0][0], torch.stack(best[0][1])


@case("greedy decoding until an end token", (normal(5, 5),), (normal(5, 5, seed=1),), (normal(5, 5, seed=2),), search=1)
def greedy(table):
    token = torch.tensor(0)
    tokens = []
    while len(tokens) < 6:
        token = table[token].argmax()
        tokens.append(token)
        if token == 2:
            break
    return torch.stack(tokens)


@case("a list in a list that grows, changed through it", *BOTH)
def last_of_a_growing_list(x):
    rows = [[]]
    for k in range((x > 0).sum()):
        rows.append([x * k])
        rows[-1].append(x)
    for row in rows:
        row.append(x + 1)
    return rows


@case("a list in a list that grows, changed by another name", *BOTH)
def named_in_a_growing_list(x):
    rows, row = [], [x]
    for k in range((x > 0).sum()):
        rows.append(row)
        row = [x * k]
    row.append(x)
    rows.append(row)
    row.append(x + 1)
    return rows, rows[-1] is row
