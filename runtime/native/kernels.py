"""The C file that all libraries share: matrix products, and PyTorch's vector functions under the compiler's names.

A product is cut into tiles of up to 12 rows and two vectors of columns, whose sums stay in registers from the first to
the last of k. Panels of two vectors of columns are copied side by side (packed), as many as the second cache takes,
unless they lie in rows anyway and are read once or twice; then each tile of rows goes over all of them. Sums begin with
nothing, or with a matrix or a row (a bias), so that neither needs a pass of its own. Each element is summed in the
order of k whatever was packed, so panels and tiles never change a result's bits. A few rows times a matrix that is
turned are dot products, which read the matrix once, as it lies.

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
#define DEPTH 768 /* rows of a panel that are read at a time */
#define ROOM (1 << 18) /* bytes of panels that are packed at a time: they stay in the second cache */
#define FETCHED 256 /* how long rows may be that are fetched ahead: more at a time hold up others */
#define HIDDEN __attribute__((visibility("hidden")))
#define ALWAYS static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
/* how many of the rows that are left make the next tile: the last two are of one height, as low tiles are slow */
ALWAYS i64 next_tile(i64 left) { return left <= MOST ? left : left < 2 * MOST ? (left + 1) / 2 : MOST; }
/* how many rows of a panel at a time: parts of nearly the same height */
ALWAYS i64 depth_of(i64 k) { i64 parts = (k + DEPTH - 1) / DEPTH; return (k + parts - 1) / parts; }
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
/* R rows of c, W vectors wide: each element is summed in the order of k, whatever R, W and the panels are. Sums begin
with rows of from, lf apart (0: one row for all), or with nothing; t: a is turned */
ALWAYS void tile_x(const int R, const int W, const int t, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb,
                   NUM *c, i64 lc, const NUM *from, i64 lf) {
    v_x acc[MOST][4];
    if (from) UNROLL for (int r = 0; r < R; r++, from += lf) {
        UNROLL for (int w = 0; w < W; w++) acc[r][w] = *(const v_x *)(from + w * L_x);
    } else UNROLL for (int r = 0; r < R; r++) UNROLL for (int w = 0; w < W; w++) acc[r][w] = (v_x){0};
#define STEP(Y) { \
        v_x x[4]; \
        UNROLL for (int w = 0; w < W; w++) x[w] = *(const v_x *)(b + w * L_x); \
        UNROLL for (int r = 0; r < R; r++) { \
            NUM y = Y; \
            UNROLL for (int w = 0; w < W; w++) acc[r][w] += x[w] * y; \
        } \
    }
    if (t) for (; k > 0; k--, b += lb, a += la) STEP(a[r])
    else {
        const NUM *row[(MOST + 2) / 3]; /* each third: the others are addressed from it, so registers suffice */
        UNROLL for (int g = 0; g < (R + 2) / 3; g++) { row[g] = a + 3 * g * la; __asm__("" : "+r"(row[g])); }
        for (; k > 0; k--, b += lb) {
            STEP(row[r / 3][r % 3 * la])
            UNROLL for (int g = 0; g < (R + 2) / 3; g++) row[g]++;
        }
    }
#undef STEP
    UNROLL for (int r = 0; r < R; r++, c += lc) UNROLL for (int w = 0; w < W; w++) *(v_x *)(c + w * L_x) = acc[r][w];
}
#define TILE(R, W) static __attribute__((noinline)) void tile_##R##_##W##_x(int t, i64 k, const NUM *a, i64 la, \
    const NUM *b, i64 lb, NUM *c, i64 lc, const NUM *from, i64 lf) { \
    tile_x(R, W, t, k, a, la, b, lb, c, lc, from, lf); }
TILES
#undef TILE
#define TILE(R) static __attribute__((noinline)) void tile_##R##_f_x(int t, i64 k, const NUM *a, i64 la, \
    const NUM *b, i64 lb, NUM *c, i64 lc, const NUM *from, i64 lf) { \
    tile_x(R, FLAT, t, k, a, la, b, lb, c, lc, from, lf); }
TILE(1) TILE(2) TILE(3) TILE(4)
#undef TILE
typedef void (*tile_of_x)(int, i64, const NUM *, i64, const NUM *, i64, NUM *, i64, const NUM *, i64);
static const tile_of_x wide_x[] = {WIDE}, narrow_x[] = {NARROW};
static const tile_of_x flat_x[] = {tile_1_f_x, tile_2_f_x, tile_3_f_x, tile_4_f_x};
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
#define BLOCKS(SIDE, TURN) for (; j + SIDE <= n; j += SIDE) { \
        i64 p = 0; \
        for (; p + SIDE <= k; p += SIDE) TURN(b + j * lb + p, lb, to + p * width + j, width); \
        for (; p < k; p++) for (i64 q = j; q < j + SIDE; q++) to[p * width + q] = b[q * lb + p]; \
    }
    BLOCKS(BIG_x, big_x)
    BLOCKS(SQUARE, square_x)
#undef BLOCKS
    for (; j < n; j++) for (i64 p = 0; p < k; p++) to[p * width + j] = b[j * lb + p];
    for (; j < width; j++) for (i64 p = 0; p < k; p++) to[p * width + j] = 0;
}
/* columns that do not fill their vectors: sums are held beside c */
static void rest_x(tile_of_x tile, i64 width, int t, i64 rows, i64 n, i64 k, const NUM *a, i64 la, const NUM *panel,
                   NUM *c, i64 lc, const NUM *from, i64 lf) {
    NUM out[MOST * PANEL_x] __attribute__((aligned(64)));
    for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < width; q++)
        out[r * width + q] = from && q < n ? from[r * lf + q] : 0;
    tile(t, k, a, la, panel, width, out, width, out, width);
    for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < n; q++) c[r * lc + q] = out[r * width + q];
}
/* a times k rows, from row p on, of panels that lie one behind the other, high rows each */
static void some_x(int t, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *panels, i64 high, i64 p, NUM *c,
                   i64 lc, const NUM *from, i64 lf) {
    a += p * (t ? la : 1);
    for (i64 i = 0, rows; i < m; i += rows, a += rows * (t ? 1 : la), c += rows * lc) {
        rows = next_tile(m - i);
        i64 strips = (n + PANEL_x - 1) / PANEL_x;
        for (i64 j = 0; j < n; j += PANEL_x) {
            i64 some = n - j < PANEL_x ? n - j : PANEL_x, width = some <= L_x ? L_x : PANEL_x;
            tile_of_x tile = (width == L_x ? narrow_x : wide_x)[rows - 1];
            const NUM *first = from ? from + i * lf + j : 0;
            const NUM *panel = panels + j * high + p * width;
            if (!t && rows < m - i && k <= FETCHED) /* each panel's turn fetches some of the next tile's rows */
                for (i64 r = rows + j / PANEL_x; r < rows + MOST; r += strips)
                    for (i64 q = 0; q < k; q += 64 / sizeof(NUM)) __builtin_prefetch(a + r * la + q, 0, 2);
            if (some == width) tile(t, k, a, la, panel, width, c + j, lc, first, lf);
            else rest_x(tile, width, t, rows, some, k, a, la, panel, c + j, lc, first, lf);
        }
    }
}
/* how many columns at a time: their panels stay in the second cache */
ALWAYS i64 wide_enough_x(i64 depth) { return ROOM / sizeof(NUM) / depth / PANEL_x * PANEL_x; }
static void packed_x(int t, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *panels, NUM *c, i64 lc,
                     const NUM *from, i64 lf) {
    i64 most = depth_of(k), wide = wide_enough_x(most);
    for (i64 j = 0; j < n; j += wide) for (i64 p = 0; p < k; p += most)
        some_x(t, m, n - j < wide ? n - j : wide, k - p < most ? k - p : most, a, la, panels + j * k, k, p, c + j, lc,
               p ? c + j : from ? from + j : 0, p ? lc : lf);
}
i64 d2s_panels_x(i64 n, i64 k) { return (n + L_x - 1) / L_x * L_x * k; }
void d2s_pack_x(int tb, i64 n, i64 k, const NUM *b, i64 lb, NUM *to) {
    for (i64 j = 0; j < n; j += PANEL_x)
        pack_x(tb, n - j < PANEL_x ? n - j : PANEL_x, k, tb ? b + j * lb : b + j, lb, to + j * k);
}
/* a times some columns of b */
static void columns_x(int t, int tb, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, i64 lc,
                      const NUM *from, i64 lf) {
    NUM panels[ROOM / sizeof(NUM)] __attribute__((aligned(64)));
    if (!tb && (m <= 2 * MOST || k <= 8)) { /* to be read twice at most, or short: as it lies */
        i64 j = 0;
        for (i64 width = PANEL_x; j + L_x <= n; j += width) {
            if (j + width > n) width = L_x;
            const tile_of_x *tiles = width == L_x ? narrow_x : wide_x;
            for (i64 i = 0, rows; i < m; i += rows) {
                rows = next_tile(m - i);
                tiles[rows - 1](t, k, a + i * (t ? 1 : la), la, b + j, lb, c + i * lc + j, lc,
                                from ? from + i * lf + j : 0, lf);
            }
        }
        b += j; c += j; n -= j;
        if (from) from += j;
    }
    i64 most = depth_of(k), wide = wide_enough_x(most);
    for (i64 j = 0; j < n; j += wide) for (i64 p = 0; p < k; p += most) {
        i64 some = n - j < wide ? n - j : wide, depth = k - p < most ? k - p : most;
        const NUM *first = p ? c + j : from ? from + j : 0;
        d2s_pack_x(tb, some, depth, tb ? b + j * lb + p : b + p * lb + j, lb, panels);
        some_x(t, m, some, depth, a + p * (t ? la : 1), la, panels, depth, 0, c + j, lc, first, p ? lc : lf);
    }
}
ALWAYS void dot_x(const int C, i64 k, const NUM *a, const NUM *b, i64 lb, NUM *c, const NUM *from) {
    v_x acc[4]; NUM last[4]; i64 p = 0;
    UNROLL for (int q = 0; q < C; q++) acc[q] = (v_x){0}, last[q] = 0;
    for (; p + L_x <= k; p += L_x) UNROLL for (int q = 0; q < C; q++)
        acc[q] += *(const v_x *)(a + p) * *(const v_x *)(b + q * lb + p);
    for (; p < k; p++) UNROLL for (int q = 0; q < C; q++) last[q] += a[p] * b[q * lb + p];
    UNROLL for (int q = 0; q < C; q++) { NUM s = sum_x(acc[q]) + last[q]; c[q] = from ? from[q] + s : s; }
}
static void dots_x(i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, i64 lc, const NUM *from,
                   i64 lf) {
    for (i64 i = 0; i < m; i++) {
        const NUM *first = from ? from + i * lf : 0;
        i64 j = 0;
        for (; j + 4 <= n; j += 4) dot_x(4, k, a + i * la, b + j * lb, lb, c + i * lc + j, first ? first + j : 0);
        for (; j < n; j++) dot_x(1, k, a + i * la, b + j * lb, lb, c + i * lc + j, first ? first + j : 0);
    }
}
/* one row times b, which lies in rows */
static void row_x(int t, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, const NUM *from) {
    i64 j = 0;
    for (; j + 4 * L_x <= n; j += 4 * L_x) tile_1_4_x(t, k, a, la, b + j, lb, c + j, 0, from ? from + j : 0, 0);
    for (; j + L_x <= n; j += L_x) tile_1_1_x(t, k, a, la, b + j, lb, c + j, 0, from ? from + j : 0, 0);
    if (j < n) columns_x(t, 0, 1, n - j, k, a, la, b + j, lb, c + j, 0, from ? from + j : 0, 0);
}
typedef void (*blas_of_x)(const char *, const char *, const int *, const int *, const int *, const NUM *, const NUM *,
    const int *, const NUM *, const int *, const NUM *, NUM *, const int *);
static blas_of_x blas_x;
static void part_x(int t, int tb, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, i64 lc,
                   const NUM *from, i64 lf, int few) {
    if (few < 0) { packed_x(t, m, n, k, a, la, b, c, lc, from, lf); return; }
    if (!tb && few == 1) { row_x(t, n, k, a, la, b, lb, c, from); return; }
    if (few) { dots_x(m, n, k, a, la, b, lb, c, lc, from, lf); return; }
    i64 j = 0;
    if (!tb && m <= 4) { /* b is read once */
        for (; j + FLAT * L_x <= n; j += FLAT * L_x)
            for (i64 i = 0; i < m; i += 4)
                flat_x[(m - i < 4 ? m - i : 4) - 1](t, k, a + i * (t ? 1 : la), la, b + j, lb, c + i * lc + j, lc,
                                                    from ? from + i * lf + j : 0, lf);
    }
    if (j < n) columns_x(t, tb, m, n - j, k, a, la, tb ? b + j * lb : b + j, lb, c + j, lc, from ? from + j : 0, lf);
}
typedef struct { int t, tb, few; i64 m, n, k, la, lb, lc, lf, step; const NUM *a, *b, *from; NUM *c; } product_x;
/* this thread's columns, or rows where there are more of them */
static void shared_x(void *all) {
    product_x *p = all;
    int rows = p->m > p->n && p->few <= 0;
    i64 size = rows ? p->m : p->n, steps = (size + p->step - 1) / p->step, team_ = omp_get_num_threads();
    i64 at = steps * place / team_ * p->step, to = steps * (place + 1) / team_ * p->step;
    if (to > size) to = size;
    if (at >= to) return;
    const NUM *from = p->from ? p->from + at * (rows ? p->lf : 1) : 0;
    if (rows) part_x(p->t, p->tb, to - at, p->n, p->k, p->a + at * (p->t ? 1 : p->la), p->la, p->b, p->lb,
                     p->c + at * p->lc, p->lc, from, p->lf, p->few);
    else part_x(p->t, p->tb, p->m, to - at, p->k, p->a, p->la,
                p->b + at * (p->few < 0 ? p->k : p->tb ? p->lb : 1), p->lb, p->c + at, p->lc, from, p->lf, p->few);
}
static void run_x(product_x *p) {
    if (p->m * p->n * p->k >= ALONE && d2s_threads() > 1) GOMP_parallel(shared_x, p, 0, 0);
    else part_x(p->t, p->tb, p->m, p->n, p->k, p->a, p->la, p->b, p->lb, p->c, p->lc, p->from, p->lf, p->few);
}
/* c is what is there before anything is added to it */
static void begin_x(i64 m, i64 n, NUM *c, i64 lc, const NUM *from, i64 lf) {
    for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) c[i * lc + j] = from ? from[i * lf + j] : 0;
}
void gemm_packed_x(int ta, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *panels, NUM *c, i64 lc,
                   const NUM *from, i64 lf) {
    if (m <= 0) return;
    if (!k) { begin_x(m, n, c, lc, from, lf); return; }
    product_x p = {ta, 0, -1, m, n, k, la, 0, lc, lf, m > n ? MOST : PANEL_x, a, panels, from, c};
    run_x(&p);
}
void gemm_x(int ta, int tb, i64 m, i64 n, i64 k, const NUM *a, i64 la, const NUM *b, i64 lb, NUM *c, i64 lc,
            const NUM *from, i64 lf) {
    if (m <= 0 || n <= 0) return;
    if (!k) { begin_x(m, n, c, lc, from, lf); return; }
    if (tb && !ta && m <= 5 && n > 1 && m * n * k < ALONE) { dots_x(m, n, k, a, la, b, lb, c, lc, from, lf); return; }
    if (blas_x && m >= 64 && n >= 64 && k >= 64) {
        NUM one = 1, beta = from != 0; int im = m, in = n, ik = k, ia = la, ib = lb, ic = lc;
        if (from && from != c) begin_x(m, n, c, lc, from, lf);
        blas_x(tb ? "T" : "N", ta ? "T" : "N", &in, &im, &ik, &one, b, &ib, a, &ia, &beta, c, &ic);
        return;
    }
    product_x p = {ta, tb, 0, m, n, k, la, lb, lc, lf, PANEL_x, a, b, from, c};
    if (n == 1 && lc == 1 && (tb || lb == 1)) { /* a vector: the other way round */
        if (from && lf != 1) { begin_x(m, 1, c, 1, from, lf); from = c; }
        p = (product_x){0, !ta, 1, 1, m, k, 0, la, m, m, PANEL_x, b, a, from, c};
    } else if (tb ? !ta && m <= 5 : m == 1) p.few = m;
    else if (m > n) p.step = MOST;
    run_x(&p);
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
#ifdef __AVX512F__
enum { BIG_f = 16, BIG_d = 4 };
ALWAYS void big_f(const float *b, i64 lb, float *to, i64 width) {
    __m512 r[16], s[16];
    UNROLL for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(b + i * lb);
    UNROLL for (int i = 0; i < 16; i += 2)
        s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    UNROLL for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(s[i], s[i + 2], 0x44), r[i + 1] = _mm512_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(s[i + 1], s[i + 3], 0x44), r[i + 3] = _mm512_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) { /* r[i + 4 * g]: columns i, i + 4, ... of rows 4 * g and the next three */
        __m512 low = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x44), high = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xee);
        __m512 more = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x44);
        __m512 last = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xee);
        _mm512_storeu_ps(to + i * width, _mm512_shuffle_f32x4(low, more, 0x88));
        _mm512_storeu_ps(to + (i + 4) * width, _mm512_shuffle_f32x4(low, more, 0xdd));
        _mm512_storeu_ps(to + (i + 8) * width, _mm512_shuffle_f32x4(high, last, 0x88));
        _mm512_storeu_ps(to + (i + 12) * width, _mm512_shuffle_f32x4(high, last, 0xdd));
    }
}
#else
enum { BIG_f = 8, BIG_d = 4 };
#define big_f square_f
#endif
#define big_d square_d
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
