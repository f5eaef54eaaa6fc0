"""The C file that all libraries share: matrix products, and PyTorch's vector functions under the compiler's names.

A product goes over its columns in panels of two vectors. A panel's rows are copied side by side (packed), 512 at a
time, unless they lie in rows anyway and are read once or twice; tiles of up to 12 rows of a are multiplied with it.
Each element is summed in the order of k whatever was packed, so panels and tiles never change a result's bits. A few
rows times a matrix that is turned are dot products, which read the matrix once, as it lies.

Threads are those of PyTorch's OpenMP, as many as ``torch.get_num_threads()`` says: the compiler turns ``omp parallel``
of the generated text into calls of ``GOMP_parallel``, which stands here and hands them on. What one thread computes
does not depend on how many there are, so neither do bits.
"""

from __future__ import annotations

import re

from runtime.native.elementary import OWN
from runtime.native.prelude import BOUND, FUNCTIONS

_HEAD = r"""
#include <stdint.h>
typedef int64_t i64;
#ifdef __AVX512F__
#define BYTES 64
#define FLAT 4 /* vectors of a tile of up to four rows */
#define MOST 12 /* rows of a tile: MOST * 2 vectors of sums, 2 of b and one number of a fit into the registers */
#else
#define BYTES 32
#define FLAT 3
#define MOST 6
#endif
#ifndef ALONE
#define ALONE (1 << 20) /* multiplications up to which one thread is quicker */
#endif
#define DEPTH 512 /* rows of a panel: it stays in the second cache */
#define HIDDEN __attribute__((visibility("hidden")))
#define ALWAYS static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
"""

_PRODUCTS = r"""
typedef NUM v_x __attribute__((vector_size(BYTES), aligned(sizeof(NUM))));
typedef NUM w_x __attribute__((vector_size(BYTES / 2), aligned(sizeof(NUM))));
typedef NUM q_x __attribute__((vector_size(BYTES / 4), aligned(sizeof(NUM))));
enum { L_x = BYTES / sizeof(NUM), PANEL_x = 2 * L_x };
ALWAYS NUM sum_x(v_x v) {
    NUM t[L_x]; *(v_x *)t = v; w_x w = *(w_x *)t + *(w_x *)(t + L_x / 2); *(w_x *)t = w;
    q_x q = *(q_x *)t + *(q_x *)(t + L_x / 4); NUM s = 0;
    UNROLL for (int l = 0; l < L_x / 4; l++) s += q[l]; /* one for doubles in 32 bytes */
    return s;
}
/* R rows of c, W vectors wide: each element is summed in the order of k, whatever R, W and the panels are */
ALWAYS void tile_x(const int R, const int W, i64 k, const NUM *a, i64 ra, i64 ca, const NUM *b, i64 lb,
                   NUM *c, i64 lc, int add) {
    v_x acc[MOST][4];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int w = 0; w < W; w++)
        acc[r][w] = add ? *(v_x *)(c + r * lc + w * L_x) : (v_x){0};
    for (i64 p = 0; p < k; p++) {
        v_x x[4];
        UNROLL for (int w = 0; w < W; w++) x[w] = *(const v_x *)(b + p * lb + w * L_x);
        UNROLL for (int r = 0; r < R; r++) {
            NUM y = a[r * ra + p * ca];
            UNROLL for (int w = 0; w < W; w++) acc[r][w] += x[w] * y;
        }
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int w = 0; w < W; w++)
        *(v_x *)(c + r * lc + w * L_x) = acc[r][w];
}
#define TILE(R, W) static __attribute__((noinline)) void tile_##R##_##W##_x(i64 k, const NUM *a, i64 ra, i64 ca, \
    const NUM *b, i64 lb, NUM *c, i64 lc, int add) { tile_x(R, W, k, a, ra, ca, b, lb, c, lc, add); }
TILES
#undef TILE
#define TILE(R) static __attribute__((noinline)) void tile_##R##_f_x(i64 k, const NUM *a, i64 ra, i64 ca, \
    const NUM *b, i64 lb, NUM *c, i64 lc, int add) { tile_x(R, FLAT, k, a, ra, ca, b, lb, c, lc, add); }
TILE(1) TILE(2) TILE(3) TILE(4)
#undef TILE
typedef void (*tile_of_x)(i64, const NUM *, i64, i64, const NUM *, i64, NUM *, i64, int);
static const tile_of_x wide_x[] = {WIDE}, narrow_x[] = {NARROW};
static const tile_of_x flat_x[] = {tile_1_f_x, tile_2_f_x, tile_3_f_x, tile_4_f_x};
/* all rows of one or two vectors of columns, in tiles of nearly the same height */
static void strip_x(const tile_of_x *tiles, i64 m, i64 k, const NUM *a, i64 ra, i64 ca, const NUM *b, i64 lb,
                    NUM *c, i64 lc, int add) {
    i64 parts = (m + MOST - 1) / MOST, each = (m + parts - 1) / parts;
    for (i64 i = 0, rows; i < m; i += rows) {
        rows = m - i < each ? m - i : each;
        tiles[rows - 1](k, a + i * ra, ra, ca, b, lb, c + i * lc, lc, add);
    }
}
/* b, which is turned, as rows: to[p * n + j] = b[j * lb + p] */
void turn_x(i64 n, i64 k, const NUM *b, i64 lb, NUM *to) {
    for (i64 j = 0; j < n; j += 16) for (i64 p = 0; p < k; p += 16) {
        i64 je = j + 16 < n ? j + 16 : n, pe = p + 16 < k ? p + 16 : k;
        for (i64 s = p; s < pe; s++) for (i64 q = j; q < je; q++) to[s * n + q] = b[q * lb + s];
    }
}
/* n columns of b side by side, the rest of each row of the panel zero */
static void pack_x(int tb, i64 n, i64 k, const NUM *b, i64 lb, NUM *to) {
    i64 width = n <= L_x ? L_x : PANEL_x, j = 0;
    if (!tb) {
        for (i64 p = 0; p < k; p++) {
            for (j = 0; j + L_x <= n; j += L_x) *(v_x *)(to + p * width + j) = *(const v_x *)(b + p * lb + j);
            for (; j < n; j++) to[p * width + j] = b[p * lb + j];
            for (; j < width; j++) to[p * width + j] = 0;
        }
        return;
    }
    for (; j + SQUARE <= n; j += SQUARE) {
        i64 p = 0;
        for (; p + SQUARE <= k; p += SQUARE) square_x(b + j * lb + p, lb, to + p * width + j, width);
        for (; p < k; p++) for (i64 q = j; q < j + SQUARE; q++) to[p * width + q] = b[q * lb + p];
    }
    for (; j < n; j++) for (i64 p = 0; p < k; p++) to[p * width + j] = b[j * lb + p];
    for (; j < width; j++) for (i64 p = 0; p < k; p++) to[p * width + j] = 0;
}
/* columns that do not fill their vectors: sums are held beside c */
static void rest_x(const tile_of_x *tiles, i64 width, i64 m, i64 n, i64 k, const NUM *a, i64 ra, i64 ca,
                   const NUM *panel, NUM *c, i64 lc, int add) {
    NUM out[MOST * PANEL_x] __attribute__((aligned(64)));
    i64 parts = (m + MOST - 1) / MOST, each = (m + parts - 1) / parts;
    for (i64 i = 0, rows; i < m; i += rows) {
        rows = m - i < each ? m - i : each;
        for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < width; q++)
            out[r * width + q] = add && q < n ? c[(i + r) * lc + q] : 0;
        tiles[rows - 1](k, a + i * ra, ra, ca, panel, width, out, width, 1);
        for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < n; q++) c[(i + r) * lc + q] = out[r * width + q];
    }
}
/* a times up to two vectors of columns of b */
static void columns_x(int tb, i64 m, i64 n, i64 k, const NUM *a, i64 ra, i64 ca, const NUM *b, i64 lb, NUM *c, i64 lc,
                      int add) {
    NUM panel[DEPTH * PANEL_x] __attribute__((aligned(64)));
    const tile_of_x *tiles = n <= L_x ? narrow_x : wide_x;
    i64 width = n <= L_x ? L_x : PANEL_x;
    if (!tb && n == width && m <= 2 * MOST) { strip_x(tiles, m, k, a, ra, ca, b, lb, c, lc, add); return; }
    for (i64 p = 0; p < k; p += DEPTH, add = 1) {
        i64 depth = k - p < DEPTH ? k - p : DEPTH;
        pack_x(tb, n, depth, tb ? b + p : b + p * lb, lb, panel);
        if (n == width) strip_x(tiles, m, depth, a + p * ca, ra, ca, panel, width, c, lc, add);
        else rest_x(tiles, width, m, n, depth, a + p * ca, ra, ca, panel, c, lc, add);
    }
}
ALWAYS void dot_x(const int C, i64 k, const NUM *a, const NUM *b, i64 lb, NUM *c, int add) {
    v_x acc[4]; NUM last[4]; i64 p = 0;
    UNROLL for (int q = 0; q < C; q++) acc[q] = (v_x){0}, last[q] = 0;
    for (; p + L_x <= k; p += L_x) UNROLL for (int q = 0; q < C; q++)
        acc[q] += *(const v_x *)(a + p) * *(const v_x *)(b + q * lb + p);
    for (; p < k; p++) UNROLL for (int q = 0; q < C; q++) last[q] += a[p] * b[q * lb + p];
    UNROLL for (int q = 0; q < C; q++) { NUM s = sum_x(acc[q]) + last[q]; c[q] = add ? c[q] + s : s; }
}
static void dots_x(i64 m, i64 n, i64 k, const NUM *a, i64 ra, const NUM *b, i64 lb, NUM *c, i64 lc, int add) {
    for (i64 i = 0; i < m; i++) {
        i64 j = 0;
        for (; j + 4 <= n; j += 4) dot_x(4, k, a + i * ra, b + j * lb, lb, c + i * lc + j, add);
        for (; j < n; j++) dot_x(1, k, a + i * ra, b + j * lb, lb, c + i * lc + j, add);
    }
}
/* one row times b, which lies in rows */
static void row_x(i64 n, i64 k, const NUM *a, i64 ca, const NUM *b, i64 lb, NUM *c, int add) {
    i64 j = 0;
    for (; j + 4 * L_x <= n; j += 4 * L_x) tile_1_4_x(k, a, 0, ca, b + j, lb, c + j, 0, add);
    for (; j + L_x <= n; j += L_x) tile_1_1_x(k, a, 0, ca, b + j, lb, c + j, 0, add);
    if (j < n) columns_x(0, 1, n - j, k, a, 0, ca, b + j, lb, c + j, 0, add);
}
typedef void (*blas_of_x)(const char *, const char *, const int *, const int *, const int *, const NUM *, const NUM *,
    const int *, const NUM *, const int *, const NUM *, NUM *, const int *);
static blas_of_x blas_x;
/* the same with a matrix that was packed as a whole, panel behind panel */
static void packed_x(i64 m, i64 n, i64 k, const NUM *a, i64 ra, i64 ca, const NUM *panels, NUM *c, i64 lc, int add) {
    for (i64 j = 0; j < n; j += PANEL_x) {
        i64 some = n - j < PANEL_x ? n - j : PANEL_x, width = some <= L_x ? L_x : PANEL_x;
        const tile_of_x *tiles = some <= L_x ? narrow_x : wide_x;
        if (some == width) strip_x(tiles, m, k, a, ra, ca, panels + j * k, width, c + j, lc, add);
        else rest_x(tiles, width, m, some, k, a, ra, ca, panels + j * k, c + j, lc, add);
    }
}
i64 d2s_panels_x(i64 n, i64 k) { return (n + L_x - 1) / L_x * L_x * k; }
void d2s_pack_x(int tb, i64 n, i64 k, const NUM *b, i64 lb, NUM *to) {
    for (i64 j = 0; j < n; j += PANEL_x)
        pack_x(tb, n - j < PANEL_x ? n - j : PANEL_x, k, tb ? b + j * lb : b + j, lb, to + j * k);
}
static void part_x(int ta, int tb, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, i64 lc,
                   int add, int few) {
    i64 ra = ta ? 1 : la, ca = ta ? la : 1;
    i64 begin = 0;
    if (!tb && !few && (m <= 4 || k <= 8)) { /* little to gain from high tiles: b is read once, or hardly at all */
        for (; begin + FLAT * L_x <= n; begin += FLAT * L_x)
            for (i64 i = 0; i < m; i += 4)
                flat_x[(m - i < 4 ? m - i : 4) - 1](k, a + i * ra, ra, ca, b + begin, lb, c + i * lc + begin, lc, add);
    }
    if (few < 0) { packed_x(m, n, k, a, ra, ca, b, c, lc, add); return; }
    if (!tb && few == 1) { row_x(n, k, a, ca, b, lb, c, add); return; }
    if (few) { dots_x(m, n, k, a, ra, b, lb, c, lc, add); return; }
    for (i64 j = begin; j < n; j += PANEL_x)
        columns_x(tb, m, n - j < PANEL_x ? n - j : PANEL_x, k, a, ra, ca, tb ? b + j * lb : b + j, lb, c + j, lc, add);
}
typedef struct { int ta, tb, add, few; i64 m, n, k, la, lb, lc, step; const NUM *a, *b; NUM *c; } product_x;
/* this thread's columns, or rows where there are more of them */
static void shared_x(void *all) {
    product_x *p = all;
    int rows = p->m > p->n && p->few <= 0;
    i64 size = rows ? p->m : p->n, steps = (size + p->step - 1) / p->step, team_ = omp_get_num_threads();
    i64 from = steps * place / team_ * p->step, to = steps * (place + 1) / team_ * p->step;
    if (to > size) to = size;
    if (from >= to) return;
    if (rows) part_x(p->ta, p->tb, to - from, p->n, p->k, p->a + from * (p->ta ? 1 : p->la), p->la, p->b, p->lb,
                     p->c + from * p->lc, p->lc, p->add, p->few);
    else part_x(p->ta, p->tb, p->m, to - from, p->k, p->a, p->la,
                p->b + from * (p->few < 0 ? p->k : p->tb ? p->lb : 1), p->lb, p->c + from, p->lc, p->add, p->few);
}
void gemm_packed_x(int ta, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *panels, NUM *c, i64 lc, int add) {
    if (m <= 0) return;
    product_x p = {ta, 0, add, -1, m, n, k, la, 0, lc, m > n ? MOST : PANEL_x, a, panels, c};
    if (m * n * k >= ALONE && d2s_threads() > 1) GOMP_parallel(shared_x, &p, 0, 0);
    else part_x(ta, 0, m, n, k, a, la, panels, 0, c, lc, add, -1);
}
void gemm_x(int ta, int tb, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, i64 lc, int add) {
    if (m <= 0 || n <= 0) return;
    if (!k) { if (!add) for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) c[i * lc + j] = 0; return; }
    if (blas_x && m >= 64 && n >= 64 && k >= 64) {
        NUM one = 1, beta = add; int im = m, in = n, ik = k, ia = la, ib = lb, ic = lc;
        blas_x(tb ? "T" : "N", ta ? "T" : "N", &in, &im, &ik, &one, b, &ib, a, &ia, &beta, c, &ic);
        return;
    }
    product_x p = {ta, tb, add, 0, m, n, k, la, lb, lc, PANEL_x, a, b, c};
    if (n == 1 && lc == 1 && (tb || lb == 1)) /* a vector: the other way round */
        p = (product_x){0, !ta, add, 1, 1, m, k, 0, la, m, PANEL_x, b, a, c};
    else if (tb ? !ta && m <= 5 : m == 1) p.few = m;
    else if (m > n) p.step = MOST;
    if (m * n * k >= ALONE && d2s_threads() > 1) GOMP_parallel(shared_x, &p, 0, 0);
    else part_x(p.ta, p.tb, p.m, p.n, p.k, p.a, p.la, p.b, p.lb, p.c, p.lc, p.add, p.few);
}
"""
_THREADS = r"""
static void (*omp_run)(void (*)(void *), void *, unsigned, unsigned);
static int (*omp_place)(void), (*omp_count)(void), (*omp_inside)(void), (*torch_threads)(void);
static __thread int place, team; /* of this thread in what runs here; team 0: nothing does */
typedef struct { void (*run)(void *); void *with; } job;
static void share(void *all) {
    job *one = all;
    place = omp_place(); team = omp_count();
    one->run(one->with);
    place = team = 0;
}
HIDDEN int d2s_threads(void) {
    return !omp_run || team || omp_inside() ? 1 : torch_threads();
}
HIDDEN void GOMP_parallel(void (*run)(void *), void *with, unsigned most, unsigned flags) {
    int threads = most == 1 ? 1 : d2s_threads();
    if (threads > 1) { job one = {run, with}; omp_run(share, &one, threads, flags); return; }
    int before = place, others = team;
    place = 0; team = 1;
    run(with);
    place = before; team = others;
}
HIDDEN int omp_get_thread_num(void) { return place; }
HIDDEN int omp_get_num_threads(void) { return team ? team : 1; }
"""

_SQUARES = r"""
#ifdef __AVX2__
#include <immintrin.h>
ALWAYS void square_f(const float *b, i64 lb, float *to, i64 width) {
    __m256 r[8], s[8];
    UNROLL for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(b + i * lb);
    UNROLL for (int i = 0; i < 8; i += 2)
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    UNROLL for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44), r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44), r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}
ALWAYS void square_d(const double *b, i64 lb, double *to, i64 width) {
    __m256d r[4], s[4];
    UNROLL for (int i = 0; i < 4; i++) r[i] = _mm256_loadu_pd(b + i * lb);
    UNROLL for (int i = 0; i < 4; i += 2)
        s[i] = _mm256_unpacklo_pd(r[i], r[i + 1]), s[i + 1] = _mm256_unpackhi_pd(r[i], r[i + 1]);
    UNROLL for (int i = 0; i < 2; i++) {
        _mm256_storeu_pd(to + i * width, _mm256_permute2f128_pd(s[i], s[i + 2], 0x20));
        _mm256_storeu_pd(to + (i + 2) * width, _mm256_permute2f128_pd(s[i], s[i + 2], 0x31));
    }
}
#else
ALWAYS void square_f(const float *b, i64 lb, float *to, i64 width) {
    for (i64 i = 0; i < 8; i++) for (i64 j = 0; j < 8; j++) to[j * width + i] = b[i * lb + j];
}
ALWAYS void square_d(const double *b, i64 lb, double *to, i64 width) {
    for (i64 i = 0; i < 4; i++) for (i64 j = 0; j < 4; j++) to[j * width + i] = b[i * lb + j];
}
#endif
"""


def _products(number: str, letter: str, square: int) -> str:
    """The products of one type of elements."""
    low, high = range(1, 7), range(7, 13)

    def rows(text: str) -> str:
        both = (" ".join(text.format(r) for r in part) for part in (low, high))
        return "\n#ifdef __AVX512F__\n".join(both) + "\n#endif\n"

    text = _PRODUCTS.replace("TILES", rows("TILE({0}, 1) TILE({0}, 2)") + "TILE(1, 4)")
    for name, width in (("WIDE", 2), ("NARROW", 1)):
        text = text.replace(f"{{{name}}}", "{" + rows(f"tile_{{0}}_{width}_x,") + "}")
    text = re.sub(r"_x\b", f"_{letter}", text.replace("##_x", f"##_{letter}"))
    return text.replace("NUM", number).replace("SQUARE", str(square))


KERNELS = _HEAD + _THREADS + _SQUARES + _products("float", "f", 8) + _products("double", "d", 4)
"""Matrix products: in panels of two vectors of columns, packed where that pays, times tiles of rows."""


_BOUND = "\n".join(f"{name} = table[{place}];" for place, name in enumerate(BOUND.values()))


def kernel_file(vectors: bool) -> str:
    """The text of the file; ``vectors``: with the functions of PyTorch's library."""
    if not vectors:
        return KERNELS + "void d2s_bind_kernels(void **table) {\n" + _BOUND + "}\n"
    lines = [
        KERNELS,
        "typedef float f4 __attribute__((vector_size(16))); typedef double d2 __attribute__((vector_size(16)));",
        "typedef float f8 __attribute__((vector_size(32))); typedef double d4 __attribute__((vector_size(32)));",
        "typedef float f16 __attribute__((vector_size(64))); typedef double d8 __attribute__((vector_size(64)));",
    ]
    index = len(BOUND)
    tables: list[tuple[int, str, str, str]] = []
    for width in (0, 1):
        for name in FUNCTIONS:
            for kind in "fd":
                tables.append((width, name, kind, f"v{index}"))
                index += 1
    tables = [row for row in tables if row[2] == "d" or row[1] not in OWN]
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
    lines += ["void d2s_bind_kernels(void **table) {", _BOUND]
    for width, _, _, slot in tables:
        number = int(slot[1:])
        if width:
            lines.append("#ifdef __AVX512F__")
        lines.append(f"{slot} = table[{number}];")
        if width:
            lines.append("#endif")
    lines.append("}")
    return "\n".join(lines) + "\n"
