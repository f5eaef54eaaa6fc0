"""Programs of loops and the statements that leave them. CASES: function -> argument tuples."""

LOG = []


def log(value):
    LOG.append(value)
    return value


def while_simple(n):
    s = 0
    while n > 0:
        s += n
        n -= 1
    return s, n


def while_else(n):
    while n < 5:
        n += 1
    else:
        n = -n
    return n


def while_break_else(n, stop):
    while n < 5:
        if n == stop:
            log("stop")
            break
        n += 1
    else:
        log("else")
        n = 100
    return n


def while_true_break(n):
    while True:
        n += 1
        if n > 7:
            break
        log(n)
    return n


def while_true_return(n):
    while True:
        n += 1
        if n % 3 == 0:
            return log(n)


def for_simple(xs):
    total = 0
    for x in xs:
        total += x
    return total


def for_target_after(xs):
    for x in xs:
        pass
    return x


def for_target_rebound(xs):
    for x in xs:
        x = x * 2
        log(x)
    return x


def for_tuple_target(pairs):
    out = []
    for i, (a, *b) in enumerate(pairs):
        out.append((i, a, b))
    return out


def for_starred_target(rows):
    for *head, last in rows:
        log((head, last))
    return head, last


def for_attribute_target(box, xs):
    for box.value in xs:
        log(box.value)
    return box.value


def for_subscript_target(items, xs):
    i = 0
    for items[i] in xs:
        i = (i + 1) % 2
    return items


def for_break_else(xs, stop):
    for x in xs:
        if x == stop:
            break
        log(x)
    else:
        x = "none"
    return x


def for_infinite_break(stop):
    import itertools

    for i in itertools.count():
        if i == stop:
            break
    return i


def for_iterator_not_overrun(xs, stop):
    it = iter(xs)
    for x in it:
        if x == stop:
            break
    return list(it)


def for_iterator_continue(xs):
    it = iter(xs)
    for x in it:
        if x % 2:
            continue
        log(next(it, None))
    return list(it)


def for_continue_many(xs):
    out = []
    for x in xs:
        if x < 0:
            continue
        if x > 10:
            if x > 20:
                continue
            x = -x
        out.append(x)
    return out


def for_continue_in_else(xs):
    for x in xs:
        if x:
            log(x)
        else:
            continue
        log("after")
    else:
        log("done")


def for_break_and_continue(xs):
    for x in xs:
        if x == 1:
            continue
        elif x == 2:
            break
        else:
            log(x)
        log("tail")
    return x


def for_both_branches_leave(xs):
    for x in xs:
        if x < 3:
            continue
        else:
            break
    return x


def for_partial_break(xs):
    n = 0
    for x in xs:
        if x > 2:
            if x > 5:
                break
            n += 10
        n += x
    return n


def for_return_value(xs):
    for x in xs:
        if x > 3:
            return x, "found"
    return None


def for_return_nothing(xs):
    for x in xs:
        if x > 3:
            return
        log(x)
    return "end"


def for_return_in_else(xs):
    for x in xs:
        if x > 3:
            break
    else:
        return "else"
    return x


def nested_breaks(rows):
    found = None
    for row in rows:
        for x in row:
            if x < 0:
                break
            if x == 7:
                found = row
                break
            log(x)
        else:
            continue
        log("left")
        if found is not None:
            break
    else:
        log("all")
    return found


def nested_return(rows):
    for i, row in enumerate(rows):
        j = 0
        while j < len(row):
            if row[j] == 7:
                return i, j
            if row[j] < 0:
                break
            j += 1
        else:
            log(("row", i))
    return -1


def nested_else_break(rows):
    for row in rows:
        for x in row:
            if x:
                break
        else:
            break
    return row, x


def triple_nested(n):
    out = []
    for a in range(n):
        for b in range(n):
            if b > a:
                break
            for c in range(n):
                if c == b:
                    continue
                if a + b + c > 5:
                    return out, "early"
                out.append((a, b, c))
            else:
                out.append("c")
        else:
            out.append("b")
    return out


def loop_carried(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def bound_in_loop(xs):
    for x in xs:
        y = x + 1
    return y


def bound_conditionally_in_loop(xs):
    for x in xs:
        if x > 2:
            big = x
        log(big if x > 1 else None)
    return big


def delete_in_loop(xs):
    for x in xs:
        y = x
        if x > 2:
            del y
        else:
            log(y)
    return y


def while_walrus(xs):
    it = iter(xs)
    while (x := next(it, 0)) > 0:
        log(x)
    return x


def while_walrus_and(xs):
    it = iter(xs)
    n = 0
    while n < 3 and (x := next(it, None)) is not None:
        n += 1
        if x == 5:
            continue
        if x == 9:
            break
        log(x)
    else:
        log("else")
    return n, x


def while_walrus_comprehension(n):
    while any((last := i) > 2 for i in range(n)):
        n -= 1
    return n, last


def loop_over_dict(d):
    out = {}
    for k, v in d.items():
        if not v:
            continue
        out[v] = k
    return out


def loop_modifies_list(xs):
    for x in xs:
        if x > 0:
            xs.append(x - 1)
        if len(xs) > 20:
            break
    return xs


def zero_iterations(n):
    for i in range(n):
        pass
    return i


def loop_in_loop_same_name(n):
    for i in range(n):
        for i in range(2):
            log(i)
    return i


def error_in_loop(xs):
    for x in xs:
        log(10 // x)
    return x


def not_iterable(x):
    for y in x:
        log(y)


def wrong_unpacking(xs):
    for a, b in xs:
        log((a, b))
    return a


class Box:
    value = None

    def __eq__(self, other):
        return type(other) is Box and self.__dict__ == other.__dict__


ROWS = [[[1, 2], [7, 1]], [[-1, 2], [3]], [[1], []], [], [[0], [0]], [[7, 7], [1]]]
LISTS = [[], [1], [1, 2, 3], [3, 2, 1, 0], [5, 9, 1], [0, -1, 12, 25, 3], [2, 1, 4, 7]]

CASES = {
    while_simple: [(0,), (3,), (-2,)],
    while_else: [(0,), (7,)],
    while_break_else: [(0, 3), (0, 9), (6, 1)],
    while_true_break: [(0,), (9,)],
    while_true_return: [(0,), (2,)],
    for_simple: [(xs,) for xs in LISTS],
    for_target_after: [(xs,) for xs in LISTS],
    for_target_rebound: [(xs,) for xs in LISTS],
    for_tuple_target: [([(1, 2, 3), "ab"],), ([],), ([()],)],
    for_starred_target: [([(1, 2, 3), "ab"],), ([],)],
    for_attribute_target: [(Box(), [1, 2]), (Box(), [])],
    for_subscript_target: [([0, 0], [1, 2, 3]), ([0], [1, 2, 3])],
    for_break_else: [(xs, 3) for xs in LISTS],
    for_infinite_break: [(0,), (4,)],
    for_iterator_not_overrun: [(xs, 1) for xs in LISTS],
    for_iterator_continue: [(xs,) for xs in LISTS],
    for_continue_many: [(xs,) for xs in LISTS],
    for_continue_in_else: [(xs,) for xs in LISTS],
    for_break_and_continue: [(xs,) for xs in LISTS],
    for_both_branches_leave: [(xs,) for xs in LISTS],
    for_partial_break: [(xs,) for xs in LISTS],
    for_return_value: [(xs,) for xs in LISTS],
    for_return_nothing: [(xs,) for xs in LISTS],
    for_return_in_else: [(xs,) for xs in LISTS],
    nested_breaks: [(rows,) for rows in ROWS],
    nested_return: [(rows,) for rows in ROWS],
    nested_else_break: [(rows,) for rows in ROWS],
    triple_nested: [(0,), (2,), (3,), (5,)],
    loop_carried: [(0,), (1,), (10,)],
    bound_in_loop: [([],), ([1, 2],)],
    bound_conditionally_in_loop: [(xs,) for xs in LISTS],
    delete_in_loop: [(xs,) for xs in LISTS],
    while_walrus: [(xs,) for xs in LISTS],
    while_walrus_and: [(xs,) for xs in LISTS],
    while_walrus_comprehension: [(0,), (2,), (6,)],
    loop_over_dict: [({},), ({"a": 1, "b": 0},)],
    loop_modifies_list: [([3],), ([],), ([9, 9],)],
    zero_iterations: [(0,), (2,)],
    loop_in_loop_same_name: [(0,), (2,)],
    error_in_loop: [([1, 2],), ([1, 0],)],
    not_iterable: [(1,), (None,), ("ab",)],
    wrong_unpacking: [([(1, 2), (3,)],), ([1],), ([],)],
}
