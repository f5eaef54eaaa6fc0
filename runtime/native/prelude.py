"""What every generated C file begins with: memory that is counted, lists, and Python's arithmetic.

A ``buf`` is memory with a count of those who refer to it; ``src`` says whose it is: -1 ours, else the number of the
region's input or of the tensor that a callback gave. Of big inputs that the region may let go (``cls`` 63), and of what
a callback gave (62), Python hears when they are dead. Small memory is cut from chunks, the last of which the next call
gets. Big memory comes from PyTorch (``cls`` 61), so that a result need not be copied, and goes back before more is
asked for. The rows of small lists that leave are written to the room that Python gives for all of them, so that it has
nothing to copy. All memory of a call hangs on its ``ctx`` and is freed when the call ends, however it ends.
"""

from __future__ import annotations

from runtime.native.elementary import ELEMENTARY, OWN

PRELUDE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

typedef int64_t i64;
static i64 nought; /* added to a whole number that was a float: GCC makes trunc() of there and back, and keeps -0.0 */
static __attribute__((used)) void set_nought(i64 value) { nought = value; } /* so that no compiler takes it for 0 */
#define VIEW ((i64)1 << 50)
#define BIG ((i64)1 << 18) /* bytes beyond which memory is PyTorch's */
#define ASKED ((i64)1 << 16) /* bytes from which on copying a result takes longer than asking for its memory */
typedef int64_t (*callback)(i64 token, i64 what, i64 *words);
typedef struct buf { i64 rc, size, src, cls; char *data; struct buf *next, *all; i64 pad; } buf;
typedef struct lst { i64 rc, len, cap, width, refs; i64 *at; struct lst *all, *next; } lst;
typedef struct chunk { i64 size; struct chunk *next; i64 pad[6]; } chunk;
typedef struct {
    buf *pool[64]; buf *bufs; lst *lists, *dead; chunk *chunks;
    i64 token; callback call; i64 spins; char *bump; i64 left, gone; char *room; i64 space;
} ctx;
static chunk *d2s_spare; /* memory of the last call, for the next */

static inline float bf_wide(uint16_t x) {
    uint32_t u = (uint32_t)x << 16; float f; memcpy(&f, &u, 4); return f;
}
static inline uint16_t bf_narrow(float f) {
    uint32_t u; memcpy(&u, &f, 4);
    return f != f ? 0x7fc0 : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
#ifdef __FLT16_MAX__
static inline float hf_wide(uint16_t x) { _Float16 h; memcpy(&h, &x, 2); return (float)h; }
static inline uint16_t hf_narrow(float f) { _Float16 h = (_Float16)f; uint16_t x; memcpy(&x, &h, 2); return x; }
#endif
static inline void d2s_copy(void *to, const void *from, i64 bytes) { if (bytes) memcpy(to, from, bytes); }
static inline void d2s_zero(void *to, i64 bytes) { if (bytes) memset(to, 0, bytes); }
static void d2s_tidy(ctx *c) { /* PyTorch gets back what nobody uses; only what tells of memory stays */
    for (buf *b; (b = c->pool[62]);) {
        i64 word = (i64)b;
        c->pool[62] = b->next;
        c->call(c->token, -5, &word);
        b->next = c->pool[61]; c->pool[61] = b;
    }
}
static buf *d2s_big(ctx *c, i64 bytes, i64 what, i64 word) { /* PyTorch's memory; word: what Python is told */
    i64 words[2] = {word, 0};
    buf *b;
    for (buf **at = &c->pool[62]; *at; at = &(*at)->next)
        if ((*at)->size == bytes) { b = *at; *at = b->next; b->rc = 1; return b; }
    d2s_tidy(c);
    if ((b = c->pool[61])) c->pool[61] = b->next;
    else {
        if (!(b = malloc(sizeof(buf)))) return 0;
        b->all = c->bufs; c->bufs = b;
    }
    words[1] = (i64)b;
    if (c->call(c->token, what, words)) return 0;
    b->rc = 1; b->size = bytes; b->src = -1; b->cls = 61; b->data = (char *)words[0]; b->next = 0;
    return b;
}
#define d2s_out(c, bytes, output) d2s_big(c, bytes, -6, output) /* what leaves the region as it is */
static buf *d2s_new(ctx *c, i64 bytes) {
    if (bytes < 0 || bytes > ((i64)1 << 46)) return 0;
    i64 cls = bytes <= 64 ? 0 : 58 - __builtin_clzll((unsigned long long)(bytes - 1));
    buf *b = c->pool[cls];
    if (b) { c->pool[cls] = b->next; b->rc = 1; b->size = bytes; return b; }
    i64 room = ((i64)64 << cls) + 64;
    if (bytes > BIG) return d2s_big(c, bytes, -4, bytes);
#ifdef __SANITIZE_ADDRESS__
    if (posix_memalign((void **)&b, 64, room)) return 0;
    b->all = c->bufs; c->bufs = b;
#else
    if (room > c->left) {
        chunk *k = c->chunks ? 0 : __atomic_exchange_n(&d2s_spare, 0, __ATOMIC_ACQUIRE);
        if (!k || k->size < room) {
            i64 size = c->chunks ? 2 * c->chunks->size : 1 << 17;
            if (k) free(k);
            if (size < room) size = room;
            if (posix_memalign((void **)&k, 64, size + sizeof(chunk))) return 0;
            k->size = size;
        }
        k->next = c->chunks; c->chunks = k; c->bump = (char *)(k + 1); c->left = k->size;
    }
    b = (buf *)c->bump; c->bump += room; c->left -= room; b->all = 0;
#endif
    b->rc = 1; b->size = bytes; b->src = -1; b->cls = cls; b->data = (char *)b + 64; b->next = 0;
    return b;
}
/* for what leaves the region: in PyTorch's memory where copying takes longer than asking for it */
static buf *d2s_own(ctx *c, i64 bytes) {
    return bytes >= ASKED && bytes <= BIG ? d2s_big(c, bytes, -4, bytes) : d2s_new(c, bytes);
}
/* for the rows of a small list that leaves the region: in the room that Python gave for all of them, if it suffices */
static buf *d2s_room(ctx *c, i64 bytes) {
    i64 whole = (bytes + 63) & -64;
    buf *b;
    if (bytes <= 0 || bytes >= ASKED || whole > c->space) return d2s_own(c, bytes);
    if (!(b = d2s_new(c, 0))) return 0;
    b->rc = (i64)1 << 40; b->size = bytes; b->data = c->room; /* it is nobody's to use again */
    c->room += whole; c->space -= whole;
    return b;
}
/* whether reshape gives a view: 0 it copies, 1 a view that lies row after row, -1 another view */
static int d2s_viewable(int rank, const i64 *sizes, const i64 *strides, int wanted, const i64 *to) {
    i64 all = 1, base, count = 1, seen = 1, dense = 1;
    int at = wanted - 1, same = 1;
    for (int d = 0; d < rank; d++) all *= sizes[d];
    if (!all) return -1;
    if (!rank) return 1;
    base = strides[rank - 1];
    for (int d = rank - 1; d >= 0; d--) {
        count *= sizes[d];
        if (d && (sizes[d - 1] == 1 || strides[d - 1] == count * base)) continue;
        while (at >= 0 && (seen < count || to[at] == 1)) {
            if (to[at] != 1 && seen * base != dense) same = 0;
            seen *= to[at]; dense *= to[at]; at--;
        }
        if (seen != count) return 0;
        if (d) { base = strides[d - 1]; count = seen = 1; }
    }
    return at >= 0 ? 0 : same ? 1 : -1;
}
static inline void d2s_put(ctx *c, buf *b) {
    if (b && --b->rc == 0 && b->cls == 63) {
        if (b->size < ASKED) return; /* not worth the call: it goes when the region ends */
        c->gone = 1; /* from here on nothing can run again */
        c->call(c->token, -7, &b->src);
    } else if (b && b->rc == 0 && b->cls == 62 && b->src >= 0) {
        c->call(c->token, -3, &b->src);
        b->cls = 0; b->src = -1; b->data = (char *)b + 64; b->next = c->pool[0]; c->pool[0] = b;
    } else if (b && b->rc == 0 && b->src < 0) {
        if (b->cls == 61) { b->next = c->pool[62]; c->pool[62] = b; } /* idle: for whoever wants as much next */
        else { b->next = c->pool[b->cls]; c->pool[b->cls] = b; }
    }
}
static inline void d2s_ref(buf *b) { if (b) b->rc++; }

static lst *l_new(ctx *c, i64 width, i64 refs, i64 cap) {
    lst *l = c->dead;
    if (l) {
        c->dead = l->next;
        if (l->cap * l->width < cap * width) {
            free(l->at);
            l->at = malloc(8 * (cap * width + 1));
            l->cap = cap;
        } else l->cap = l->cap * l->width / width;
    } else {
        if (!(l = malloc(sizeof(lst)))) return 0;
        l->all = c->lists; c->lists = l; l->cap = cap;
        l->at = malloc(8 * (cap * width + 1));
    }
    l->rc = 1; l->len = 0; l->width = width; l->refs = refs;
    return l->at ? l : 0;
}
static inline void l_ref(lst *l) { if (l) l->rc++; }
static void l_put(ctx *c, lst *l) {
    if (l && --l->rc == 0) {
        if (l->refs) for (i64 i = 0; i < l->len; i++) d2s_put(c, (buf *)l->at[i * l->width]);
#ifdef __SANITIZE_ADDRESS__
        free(l->at); l->at = 0; l->len = l->cap = 0;
#else
        l->len = 0; l->next = c->dead; c->dead = l;
#endif
    }
}
static lst *l_own(ctx *c, lst *l, i64 more) {
    lst *n = l;
    if (l->rc == 1 && l->len + more <= l->cap) return l;
    i64 cap = l->len + more > 2 * l->len ? l->len + more : 2 * l->len;
    if (l->rc == 1) {
        i64 *at = realloc(l->at, 8 * (cap * l->width + 1));
        if (!at) return 0;
        l->at = at; l->cap = cap; return l;
    }
    n = l_new(c, l->width, l->refs, cap);
    if (!n) return 0;
    d2s_copy(n->at, l->at, 8 * l->len * l->width); n->len = l->len;
    if (l->refs) for (i64 i = 0; i < l->len; i++) d2s_ref((buf *)l->at[i * l->width]);
    l->rc--;
    return n;
}
/* a list of Python's: n tensors with words of their own, or (n is -2) the rows of one tensor */
static lst *l_in(ctx *c, const i64 *w, i64 n, i64 rank, i64 size, i64 objects) {
    i64 stack = n == -2, width = 3 + 2 * rank, whole = 1;
    buf *b = 0;
    if (stack) n = w[2];
    lst *l = l_new(c, width, 1, n);
    if (!l) return 0;
    if (stack) {
        if (!(b = d2s_new(c, 0))) return 0;
        for (i64 d = 0; d < rank; d++) whole *= w[3 + d];
        b->rc = n; b->src = w[0]; b->data = (char *)w[1]; b->size = whole * n * size;
    }
    for (i64 i = 0; i < n; i++) {
        i64 *t = l->at + i * width, s = 1;
        const i64 *dims = stack ? w + 3 : w + 2;
        memset(t, 0, 8 * width); l->len = i + 1;
        if (stack) { t[0] = (i64)b; t[1] = w[1] + i * whole * size; t[2] = objects + i + 1; }
        else if (w[0] >= 0) {
            if (!(b = d2s_new(c, 0))) return 0;
            b->src = w[0]; b->data = (char *)w[1]; t[0] = (i64)b; t[1] = w[1]; t[2] = w[0] + 1;
        }
        if (t[0]) for (i64 d = rank - 1; d >= 0; d--) { t[3 + d] = dims[d]; t[3 + rank + d] = s; s *= dims[d]; }
        if (!stack) { if (t[0]) b->size = s * size; w += 2 + rank; }
    }
    return l;
}
static void d2s_end(ctx *c) {
    for (buf *b = c->bufs, *n; b; b = n) { n = b->all; free(b); }
    for (lst *l = c->lists, *n; l; l = n) { n = l->all; if (l->at) free(l->at); free(l); }
    for (chunk *k = c->chunks, *n; k; k = n) {
        n = k->next;
        if (k == c->chunks && k->size <= (1 << 22)) k = __atomic_exchange_n(&d2s_spare, k, __ATOMIC_RELEASE);
        if (k) free(k);
    }
}
static inline int d2s_spin(ctx *c) { return (++c->spins & 0xffff) == 0 && c->call(c->token, -1, 0); }
static inline double as_double(i64 w) { double d; memcpy(&d, &w, 8); return d; }
static inline i64 as_word(double d) { i64 w; memcpy(&w, &d, 8); return w; }

static inline i64 py_floordiv(i64 a, i64 b) { i64 q = a / b; return q - ((a % b != 0) & ((a < 0) != (b < 0))); }
static inline i64 py_mod(i64 a, i64 b) { i64 r = a % b; return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0); }
static double py_fmod(double a, double b) {
    double m = fmod(a, b);
    if (m) { if ((b < 0) != (m < 0)) m += b; } else m = copysign(0.0, b);
    return m;
}
static double py_ffloordiv(double a, double b) {
    double m = fmod(a, b), d = (a - m) / b, f;
    if (m) { if ((b < 0) != (m < 0)) d -= 1.0; }
    if (!d) return copysign(0.0, a / b);
    f = floor(d);
    return d - f > 0.5 ? f + 1.0 : f;
}
static int py_ipow(i64 a, i64 n, i64 *r) {
    i64 x = 1;
    while (n) {
        if ((n & 1) && __builtin_mul_overflow(x, a, &x)) return 1;
        n >>= 1;
        if (n && __builtin_mul_overflow(a, a, &a)) return 1;
    }
    *r = x;
    return 0;
}
static inline int exact(i64 a) { return a <= ((i64)1 << 53) && a >= -((i64)1 << 53); }
static inline float rem_f(float a, float b) { float m = fmodf(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
static inline double rem_d(double a, double b) {
    double m = fmod(a, b);
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
void gemm_f(int, int, i64, i64, i64, const float *, i64, const float *, i64, float *, i64, const float *, i64);
void gemm_d(int, int, i64, i64, i64, const double *, i64, const double *, i64, double *, i64, const double *, i64);
__attribute__((visibility("hidden"))) int d2s_threads(void);
__attribute__((visibility("hidden"))) int omp_get_thread_num(void);
void gemm_packed_f(int, i64, i64, i64, const float *, i64, const float *, float *, i64, const float *, i64);
void gemm_packed_d(int, i64, i64, i64, const double *, i64, const double *, double *, i64, const double *, i64);
i64 d2s_panels_f(i64, i64);
i64 d2s_panels_d(i64, i64);
void d2s_pack_f(int, i64, i64, const float *, i64, float *);
void d2s_pack_d(int, i64, i64, const double *, i64, double *);
void turn_f(i64, i64, const float *, i64, float *);
void turn_d(i64, i64, const double *, i64, double *);
static callback d2s_callback;
"""

FUNCTIONS = {
    "exp": ("expf{}_u10", "expd{}_u10"), "tanh": ("tanhf{}_u10", "tanhd{}_u10"), "log": ("logf{}_u10", "logd{}_u10"),
    "log1p": ("log1pf{}_u10", "log1pd{}_u10"), "expm1": ("expm1f{}_u10", "expm1d{}_u10"),
    "log2": ("log2f{}_u10", "log2d{}_u10"), "log10": ("log10f{}_u10", "log10d{}_u10"),
    "erf": ("erff{}_u10", "erfd{}_u10"), "sin": ("sinf{}_u35", "sind{}_u35"), "cos": ("cosf{}_u35", "cosd{}_u35"),
}  # fmt: skip
"""Functions of one number that the generated C calls, and the vector functions in PyTorch's library that ATen uses."""


BLAS = ("sgemm_", "dgemm_")
BOUND = {
    "sgemm_": "blas_f", "dgemm_": "blas_d", "GOMP_parallel": "omp_run", "omp_get_thread_num": "omp_place",
    "omp_get_num_threads": "omp_count", "omp_in_parallel": "omp_inside", "_ZN2at15get_num_threadsEv": "torch_threads",
}  # fmt: skip
"""Functions of PyTorch's library, and of what it needs, and their names in C."""
OPENMP = tuple(name for name in BOUND if name not in BLAS)


def slots() -> list[str]:
    """The names of the functions that a library is bound to, in the order of its table."""
    names = [*BOUND]
    for single, double in FUNCTIONS.values():
        names += [f"Sleef_{single.format(8)}", f"Sleef_{double.format(4)}"]
    for single, double in FUNCTIONS.values():
        names += [f"Sleef_{single.format(16)}", f"Sleef_{double.format(8)}"]
    return names


def math_functions(vectors: bool) -> str:
    """C for ``m_exp_f`` and its like. ``vectors``: they are those of PyTorch's library, also for whole vectors."""
    lines = [ELEMENTARY]
    for name in FUNCTIONS:
        for kind, ctype, end in (("f", "float", "f"), ("d", "double", "")):
            if kind == "f" and name in OWN:
                continue
            if vectors:
                lines.append(f'__attribute__((simd("notinbranch"), const)) {ctype} m_{name}_{kind}({ctype} x);')
            else:
                lines.append(f"static inline {ctype} m_{name}_{kind}({ctype} x) {{ return {name}{end}(x); }}")
    return "\n".join(lines)
