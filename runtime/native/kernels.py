"""The C file that all libraries share: matrix products, and PyTorch's vector functions under the compiler's names."""

from __future__ import annotations

from runtime.native.elementary import OWN
from runtime.native.prelude import FUNCTIONS, by_rows

KERNELS = r"""
#include <stdint.h>
typedef int64_t i64;
#ifdef __AVX512F__
#define BYTES 64
#else
#define BYTES 32
#endif
#define ALWAYS static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#define KERNELS(T, S, GEMM_T) \
typedef T v_##S __attribute__((vector_size(BYTES), aligned(sizeof(T)))); \
typedef T w_##S __attribute__((vector_size(BYTES / 2), aligned(sizeof(T)))); \
typedef T q_##S __attribute__((vector_size(BYTES / 4), aligned(sizeof(T)))); \
enum { L_##S = BYTES / sizeof(T) }; \
ALWAYS T sum_##S(v_##S v) { \
    T t[L_##S]; *(v_##S *)t = v; w_##S w = *(w_##S *)t + *(w_##S *)(t + L_##S / 2); *(w_##S *)t = w; \
    q_##S q = *(q_##S *)t + *(q_##S *)(t + L_##S / 4); T s = 0; \
    UNROLL for (int l = 0; l < L_##S / 4; l++) s += q[l]; /* one for doubles in 32 bytes */ \
    return s; \
} \
ALWAYS void tile_##S(const int R, const int W, i64 k, const T *a, i64 ra, \
    i64 ca, const T *b, i64 lb, T *c, i64 lc, int add) { \
    v_##S acc[4][4]; \
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int w = 0; w < W; w++) \
        acc[r][w] = add ? *(v_##S *)(c + r * lc + w * L_##S) : (v_##S){0}; \
    for (i64 p = 0; p < k; p++) \
        UNROLL for (int w = 0; w < W; w++) { \
            v_##S x = *(const v_##S *)(b + p * lb + w * L_##S); \
            UNROLL for (int r = 0; r < R; r++) acc[r][w] += x * a[r * ra + p * ca]; \
        } \
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int w = 0; w < W; w++) \
        *(v_##S *)(c + r * lc + w * L_##S) = acc[r][w]; \
} \
/* fewer columns than a vector has: b is copied to rows of whole vectors */ \
static void rest_##S(i64 m, i64 n, i64 k, const T *a, i64 ra, i64 ca, const T *b, i64 lb, T *c, i64 lc, int add) { \
    T wide[128 * L_##S], out[4 * L_##S]; \
    for (i64 p = 0; p < k; p += 128, add = 1) { \
        i64 depth = k - p < 128 ? k - p : 128; \
        for (i64 s = 0; s < depth; s++) for (i64 q = 0; q < L_##S; q++) \
            wide[s * L_##S + q] = q < n ? b[(p + s) * lb + q] : 0; \
        for (i64 i = 0, rows; i < m; i += rows) { \
            rows = m - i < 4 ? 1 : 4; \
            for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < L_##S; q++) \
                out[r * L_##S + q] = add && q < n ? c[(i + r) * lc + q] : 0; \
            const T *from = a + i * ra + p * ca; \
            if (rows == 4) tile_##S(4, 1, depth, from, ra, ca, wide, L_##S, out, L_##S, 1); \
            else tile_##S(1, 1, depth, from, ra, ca, wide, L_##S, out, L_##S, 1); \
            for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < n; q++) c[(i + r) * lc + q] = out[r * L_##S + q]; \
        } \
    } \
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
    if (j < n) rest_##S(m, n - j, k, a, ra, ca, b + j, lb, c + j, lc, add); \
} \
/* b, which is turned, as rows: to[p * n + j] = b[j * lb + p] */ \
void turn_##S(i64 n, i64 k, const T *b, i64 lb, T *to) { \
    for (i64 j = 0; j < n; j += 16) for (i64 p = 0; p < k; p += 16) { \
        i64 je = j + 16 < n ? j + 16 : n, pe = p + 16 < k ? p + 16 : k; \
        for (i64 s = p; s < pe; s++) for (i64 q = j; q < je; q++) to[s * n + q] = b[q * lb + s]; \
    } \
} \
ALWAYS void dot_##S(const int C, i64 k, const T *a, const T *b, i64 lb, T *c, int add) { \
    v_##S acc[4]; T last[4]; i64 p = 0; \
    UNROLL for (int q = 0; q < C; q++) acc[q] = (v_##S){0}, last[q] = 0; \
    for (; p + L_##S <= k; p += L_##S) UNROLL for (int q = 0; q < C; q++) \
        acc[q] += *(const v_##S *)(a + p) * *(const v_##S *)(b + q * lb + p); \
    for (; p < k; p++) UNROLL for (int q = 0; q < C; q++) last[q] += a[p] * b[q * lb + p]; \
    UNROLL for (int q = 0; q < C; q++) { T s = sum_##S(acc[q]) + last[q]; c[q] = add ? c[q] + s : s; } \
} \
static void dots_##S(i64 m, i64 n, i64 k, const T *a, i64 ra, const T *b, i64 lb, T *c, i64 lc, int add) { \
    for (i64 i = 0; i < m; i++) { \
        i64 j = 0; \
        for (; j + 4 <= n; j += 4) dot_##S(4, k, a + i * ra, b + j * lb, lb, c + i * lc + j, add); \
        for (; j < n; j++) dot_##S(1, k, a + i * ra, b + j * lb, lb, c + i * lc + j, add); \
    } \
} \
typedef void (*GEMM_T)(const char *, const char *, const int *, const int *, const int *, const T *, const T *, \
    const int *, const T *, const int *, const T *, T *, const int *); \
static GEMM_T blas_##S; \
void gemm_##S(int ta, int tb, i64 m, i64 n, i64 k, const T *a, i64 la, const T *b, i64 lb, T *c, i64 lc, int add) { \
    if (m <= 0 || n <= 0) return; \
    i64 ra = ta ? 1 : la, ca = ta ? la : 1, work = m * n * k; \
    if (!k) { if (!add) for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) c[i * lc + j] = 0; return; } \
    if (n == 1 && lc == 1 && (tb || lb == 1)) { /* a vector: the other way round */ \
        if (ta) rows_##S(1, m, k, b, 0, 1, a, la, c, m, add); \
        else dots_##S(1, m, k, b, 0, a, la, c, m, add); \
        return; \
    } \
    if (!tb && (m == 1 || BY_ROWS)) { \
        rows_##S(m, n, k, a, ra, ca, b, lb, c, lc, add); return; } \
    if (tb && ca == 1 && m <= 2 && (m == 1 || work <= 400000)) { \
        dots_##S(m, n, k, a, ra, b, lb, c, lc, add); return; } \
    if (tb && work <= 40000 && n * k <= 4096) { \
        T rows[4096]; \
        turn_##S(n, k, b, lb, rows); \
        rows_##S(m, n, k, a, ra, ca, rows, n, c, lc, add); return; \
    } \
    T one = 1, beta = add; int im = m, in = n, ik = k, ia = la, ib = lb, ic = lc; \
    blas_##S(tb ? "T" : "N", ta ? "T" : "N", &in, &im, &ik, &one, b, &ib, a, &ia, &beta, c, &ic); \
}
KERNELS(float, f, sgemm_t)
KERNELS(double, d, dgemm_t)
""".replace("BY_ROWS", by_rows("m", "n", "k"))
"""Small products are computed here, others by PyTorch's library."""


def kernel_file(vectors: bool) -> str:
    """The text of the file; ``vectors``: with the functions of PyTorch's library."""
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
