"""What every generated C file begins with: memory that is counted, lists, and Python's arithmetic.

A ``buf`` is memory with a count of those who refer to it; ``src`` says whose it is: -1 ours, else the number of the
region's input or of the tensor that a callback gave. Big memory comes from PyTorch (``cls`` 61), so that a result
need not be copied; of what a callback gave (62) Python hears when it is dead. All memory of a call hangs on its
``ctx`` and is freed when the call ends, however it ends.
"""

from __future__ import annotations

PRELUDE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

typedef int64_t i64;
#define VIEW ((i64)1 << 50)
typedef int64_t (*callback)(i64 token, i64 what, i64 *words);
typedef struct buf { i64 rc, size, src, cls; char *data; struct buf *next, *all; i64 pad; } buf;
typedef struct lst { i64 rc, len, cap, width, refs; i64 *at; struct lst *all; } lst;
typedef struct { buf *pool[64]; buf *bufs; lst *lists; i64 token; callback call; i64 spins; char *bump; i64 left; } ctx;

static inline void d2s_copy(void *to, const void *from, i64 bytes) { if (bytes) memcpy(to, from, bytes); }
static inline void d2s_zero(void *to, i64 bytes) { if (bytes) memset(to, 0, bytes); }
static buf *d2s_new(ctx *c, i64 bytes) {
    if (bytes < 0 || bytes > ((i64)1 << 46)) return 0;
    i64 cls = bytes <= 64 ? 0 : 58 - __builtin_clzll((unsigned long long)(bytes - 1));
    buf *b = c->pool[cls];
    if (b) { c->pool[cls] = b->next; b->rc = 1; b->size = bytes; return b; }
    i64 room = ((i64)64 << cls) + 64;
    if (bytes > (1 << 18)) {
        i64 words[2] = {bytes, 0};
        if (!(b = malloc(sizeof(buf)))) return 0;
        b->all = c->bufs; c->bufs = b; words[1] = (i64)b;
        if (c->call(c->token, -4, words)) return 0;
        b->rc = 1; b->size = bytes; b->src = -1; b->cls = 61; b->data = (char *)words[0]; b->next = 0;
        return b;
    }
    if (room <= c->left) { b = (buf *)c->bump; c->bump += room; c->left -= room; b->all = 0; }
    else {
        if (posix_memalign((void **)&b, 64, room)) return 0;
        b->all = c->bufs; c->bufs = b;
    }
    b->rc = 1; b->size = bytes; b->src = -1; b->cls = cls; b->data = (char *)b + 64; b->next = 0;
    return b;
}
static inline void d2s_put(ctx *c, buf *b) {
    if (b && --b->rc == 0 && b->cls == 62 && b->src >= 0) {
        c->call(c->token, -3, &b->src);
        b->cls = 0; b->src = -1; b->data = (char *)b + 64; b->next = c->pool[0]; c->pool[0] = b;
    } else if (b && b->rc == 0 && b->src < 0) {
        if (b->cls == 61) { i64 word = (i64)b; c->call(c->token, -5, &word); }
        else { b->next = c->pool[b->cls]; c->pool[b->cls] = b; }
    }
}
static inline void d2s_ref(buf *b) { if (b) b->rc++; }

static lst *l_new(ctx *c, i64 width, i64 refs, i64 cap) {
    lst *l = malloc(sizeof(lst));
    if (!l) return 0;
    l->rc = 1; l->len = 0; l->cap = cap; l->width = width; l->refs = refs; l->all = c->lists; c->lists = l;
    l->at = malloc(8 * (cap * width + 1));
    return l->at ? l : 0;
}
static inline void l_ref(lst *l) { if (l) l->rc++; }
static void l_put(ctx *c, lst *l) {
    if (l && --l->rc == 0) {
        if (l->refs) for (i64 i = 0; i < l->len; i++) d2s_put(c, (buf *)l->at[i * l->width]);
        free(l->at); l->at = 0; l->len = l->cap = 0;
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
static void d2s_end(ctx *c) {
    for (buf *b = c->bufs, *n; b; b = n) { n = b->all; free(b); }
    for (lst *l = c->lists, *n; l; l = n) { n = l->all; if (l->at) free(l->at); free(l); }
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
void gemm_f(int, int, i64, i64, i64, const float *, i64, const float *, i64, float *, i64, int);
void gemm_d(int, int, i64, i64, i64, const double *, i64, const double *, i64, double *, i64, int);
static callback d2s_callback;
"""

FUNCTIONS = {
    "exp": ("expf{}_u10", "expd{}_u10"), "tanh": ("tanhf{}_u10", "tanhd{}_u10"), "log": ("logf{}_u10", "logd{}_u10"),
    "log1p": ("log1pf{}_u10", "log1pd{}_u10"), "expm1": ("expm1f{}_u10", "expm1d{}_u10"),
    "log2": ("log2f{}_u10", "log2d{}_u10"), "log10": ("log10f{}_u10", "log10d{}_u10"),
    "erf": ("erff{}_u10", "erfd{}_u10"), "sin": ("sinf{}_u35", "sind{}_u35"), "cos": ("cosf{}_u35", "cosd{}_u35"),
}  # fmt: skip
"""Functions of one number that the generated C calls, and the vector functions in PyTorch's library that ATen uses."""

_SCALARS = {"exp": "exp", "tanh": "tanh", "log": "log", "log1p": "log1p", "expm1": "expm1", "log2": "log2",
            "log10": "log10", "erf": "erf", "sin": "sin", "cos": "cos"}  # fmt: skip


def slots() -> list[str]:
    """The names of the functions that a library is bound to, in the order of its table."""
    names = ["sgemm_", "dgemm_"]
    for single, double in FUNCTIONS.values():
        names += [f"Sleef_{single.format(8)}", f"Sleef_{double.format(4)}"]
    for single, double in FUNCTIONS.values():
        names += [f"Sleef_{single.format(16)}", f"Sleef_{double.format(8)}"]
    return names


def math_functions(vectors: bool) -> str:
    """C for ``m_exp_f`` and its like. ``vectors``: they are those of PyTorch's library, also for whole vectors."""
    lines: list[str] = []
    if not vectors:
        for name, plain in _SCALARS.items():
            lines.append(f"static inline float m_{name}_f(float x) {{ return {plain}f(x); }}")
            lines.append(f"static inline double m_{name}_d(double x) {{ return {plain}(x); }}")
        return "\n".join(lines)
    for name in FUNCTIONS:
        for kind, ctype in (("f", "float"), ("d", "double")):
            lines.append(f'__attribute__((simd("notinbranch"), const)) {ctype} m_{name}_{kind}({ctype} x);')
    return "\n".join(lines)


KERNELS = r"""
#include <stdint.h>
typedef int64_t i64;
#ifdef __AVX512F__
#define BYTES 64
#else
#define BYTES 32
#endif
#define KERNELS(T, S, GEMM_T) \
typedef T v_##S __attribute__((vector_size(BYTES), aligned(sizeof(T)))); \
enum { L_##S = BYTES / sizeof(T) }; \
static T sum_##S(v_##S v) { T s = 0; for (int l = 0; l < L_##S; l++) s += v[l]; return s; } \
static inline __attribute__((always_inline)) void tile_##S(const int R, const int W, i64 k, const T *a, i64 ra, \
    i64 ca, const T *b, i64 lb, T *c, i64 lc, int add) { \
    v_##S acc[4][4]; \
    for (int r = 0; r < R; r++) for (int w = 0; w < W; w++) \
        acc[r][w] = add ? *(v_##S *)(c + r * lc + w * L_##S) : (v_##S){0}; \
    for (i64 p = 0; p < k; p++) \
        for (int w = 0; w < W; w++) { \
            v_##S x = *(const v_##S *)(b + p * lb + w * L_##S); \
            for (int r = 0; r < R; r++) acc[r][w] += x * a[r * ra + p * ca]; \
        } \
    for (int r = 0; r < R; r++) for (int w = 0; w < W; w++) *(v_##S *)(c + r * lc + w * L_##S) = acc[r][w]; \
} \
static void rows_##S(i64 m, i64 n, i64 k, const T *a, i64 ra, i64 ca, const T *b, i64 lb, T *c, i64 lc, int add) { \
    i64 j = 0; \
    for (; j + 4 * L_##S <= n && m < 4; j += 4 * L_##S) \
        for (i64 i = 0; i < m; i++) tile_##S(1, 4, k, a + i * ra, ra, ca, b + j, lb, c + i * lc + j, lc, add); \
    for (; j + 3 * L_##S <= n; j += 3 * L_##S) { \
        i64 i = 0; \
        for (; i + 4 <= m; i += 4) tile_##S(4, 3, k, a + i * ra, ra, ca, b + j, lb, c + i * lc + j, lc, add); \
        for (; i < m; i++) tile_##S(1, 3, k, a + i * ra, ra, ca, b + j, lb, c + i * lc + j, lc, add); \
    } \
    for (; j + L_##S <= n; j += L_##S) { \
        i64 i = 0; \
        for (; i + 4 <= m; i += 4) tile_##S(4, 1, k, a + i * ra, ra, ca, b + j, lb, c + i * lc + j, lc, add); \
        for (; i < m; i++) tile_##S(1, 1, k, a + i * ra, ra, ca, b + j, lb, c + i * lc + j, lc, add); \
    } \
    if (j < n) for (i64 i = 0; i < m; i++) { \
        T acc[L_##S]; i64 rest = n - j; \
        for (i64 q = 0; q < rest; q++) acc[q] = add ? c[i * lc + j + q] : 0; \
        for (i64 p = 0; p < k; p++) for (i64 q = 0; q < rest; q++) acc[q] += a[i * ra + p * ca] * b[p * lb + j + q]; \
        for (i64 q = 0; q < rest; q++) c[i * lc + j + q] = acc[q]; \
    } \
} \
static inline __attribute__((always_inline)) void dot_##S(const int R, const int C, i64 k, const T *a, i64 ra, \
    const T *b, i64 lb, T *c, i64 lc, int add) { \
    v_##S acc[4][4]; T last[4][4]; i64 p = 0; \
    for (int r = 0; r < R; r++) for (int q = 0; q < C; q++) acc[r][q] = (v_##S){0}, last[r][q] = 0; \
    for (; p + L_##S <= k; p += L_##S) for (int q = 0; q < C; q++) { \
        v_##S y = *(const v_##S *)(b + q * lb + p); \
        for (int r = 0; r < R; r++) acc[r][q] += *(const v_##S *)(a + r * ra + p) * y; \
    } \
    for (; p < k; p++) for (int q = 0; q < C; q++) \
        for (int r = 0; r < R; r++) last[r][q] += a[r * ra + p] * b[q * lb + p]; \
    for (int r = 0; r < R; r++) for (int q = 0; q < C; q++) { \
        T s = sum_##S(acc[r][q]) + last[r][q], *to = c + r * lc + q; *to = add ? *to + s : s; \
    } \
} \
static void dots_##S(i64 m, i64 n, i64 k, const T *a, i64 ra, const T *b, i64 lb, T *c, i64 lc, int add) { \
    i64 i = 0; \
    for (; i + 4 <= m; i += 4) { \
        i64 j = 0; \
        for (; j + 2 <= n; j += 2) dot_##S(4, 2, k, a + i * ra, ra, b + j * lb, lb, c + i * lc + j, lc, add); \
        for (; j < n; j++) dot_##S(4, 1, k, a + i * ra, ra, b + j * lb, lb, c + i * lc + j, lc, add); \
    } \
    for (; i < m; i++) { \
        i64 j = 0; \
        for (; j + 4 <= n; j += 4) dot_##S(1, 4, k, a + i * ra, ra, b + j * lb, lb, c + i * lc + j, lc, add); \
        for (; j < n; j++) dot_##S(1, 1, k, a + i * ra, ra, b + j * lb, lb, c + i * lc + j, lc, add); \
    } \
} \
typedef void (*GEMM_T)(const char *, const char *, const int *, const int *, const int *, const T *, const T *, \
    const int *, const T *, const int *, const T *, T *, const int *); \
static GEMM_T blas_##S; \
void gemm_##S(int ta, int tb, i64 m, i64 n, i64 k, const T *a, i64 la, const T *b, i64 lb, T *c, i64 lc, int add) { \
    if (m <= 0 || n <= 0) return; \
    i64 ra = ta ? 1 : la, ca = ta ? la : 1, work = m * n * k; \
    if (!k) { if (!add) for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) c[i * lc + j] = 0; return; } \
    if (!tb && (work <= 40000 || m == 1 || (k * n <= 6144 && work <= 1000000))) { \
        rows_##S(m, n, k, a, ra, ca, b, lb, c, lc, add); return; } \
    if (tb && ca == 1 && (m == 1 || (m <= 4 && k >= 64 && work <= 400000))) { \
        dots_##S(m, n, k, a, ra, b, lb, c, lc, add); return; } \
    if (tb && work <= 40000 && n * k <= 4096) { \
        T packed[4096]; \
        for (i64 j = 0; j < n; j++) for (i64 p = 0; p < k; p++) packed[p * n + j] = b[j * lb + p]; \
        rows_##S(m, n, k, a, ra, ca, packed, n, c, lc, add); return; \
    } \
    T one = 1, beta = add; int im = m, in = n, ik = k, ia = la, ib = lb, ic = lc; \
    blas_##S(tb ? "T" : "N", ta ? "T" : "N", &in, &im, &ik, &one, b, &ib, a, &ia, &beta, c, &ic); \
}
KERNELS(float, f, sgemm_t)
KERNELS(double, d, dgemm_t)
"""
"""The third of C: products. Small ones are computed here, others by PyTorch's library."""


def kernel_file(vectors: bool) -> str:
    """The second C file: products, and the vector functions under the names that the compiler gives them."""
    if not vectors:
        return KERNELS + "void d2s_bind_kernels(void **table) { blas_f = table[0]; blas_d = table[1]; }\n"
    lines = [
        KERNELS,
        "typedef float f4 __attribute__((vector_size(16))); typedef double d2 __attribute__((vector_size(16)));",
        "typedef float f8 __attribute__((vector_size(32))); typedef double d4 __attribute__((vector_size(32)));",
        "typedef float f16 __attribute__((vector_size(64))); typedef double d8 __attribute__((vector_size(64)));",
    ]
    index = 2
    tables: list[tuple[int, str, str, str]] = []
    for width in (0, 1):
        for name in FUNCTIONS:
            for kind in "fd":
                tables.append((width, name, kind, f"v{index}"))
                index += 1
    for width, name, kind, slot in tables:
        type_ = ("f8" if kind == "f" else "d4") if width == 0 else ("f16" if kind == "f" else "d8")
        if width:
            lines.append("#ifdef __AVX512F__")
        lines.append(f"static {type_} (*{slot})({type_});")
        lanes = {"f8": 8, "d4": 4, "f16": 16, "d8": 8}[type_]
        letter = "d" if width == 0 else "e"
        lines.append(f"{type_} _ZGV{letter}N{lanes}v_m_{name}_{kind}({type_} x) {{ return {slot}(x); }}")
        if width == 0:
            ctype, small = ("float", "f4") if kind == "f" else ("double", "d2")
            count, half = (8, 4) if kind == "f" else (4, 2)
            whole = ", ".join(["x"] * count)
            lines.append(f"{ctype} m_{name}_{kind}({ctype} x) {{ return {slot}(({type_}){{{whole}}})[0]; }}")
            for other in "bc":
                wide = other == "c" and lanes
                if wide:
                    lines.append(f"{type_} _ZGVcN{lanes}v_m_{name}_{kind}({type_} x) {{ return {slot}(x); }}")
                    continue
                twice = ", ".join([f"x[{lane}]" for lane in range(half)] * 2)
                back = ", ".join(f"y[{lane}]" for lane in range(half))
                lines.append(f"{small} _ZGVbN{half}v_m_{name}_{kind}({small} x) {{ {type_} y = {slot}(({type_})"
                             f"{{{twice}}}); return ({small}){{{back}}}; }}")  # fmt: skip
        if width:
            lines.append("#endif")
    lines += ["void d2s_bind_kernels(void **table) {", "blas_f = table[0]; blas_d = table[1];"]
    for width, _, _, slot in tables:
        number = int(slot[1:])
        if width:
            lines.append("#ifdef __AVX512F__")
        lines.append(f"{slot} = table[{number}];")
        if width:
            lines.append("#endif")
    lines.append("}")
    return "\n".join(lines) + "\n"
