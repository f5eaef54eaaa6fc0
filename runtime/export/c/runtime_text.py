"""The C that every exported library may need, in pieces; ``needed`` takes those that its own text speaks of.

It is C11 with the overflow builtins that GCC and Clang have. Memory of a call hangs on its context and is used again by
the next call. A ``buf`` is memory with a count of those who refer to it; ``src`` is -1 for ours, 0 for the caller's.
"""

from __future__ import annotations

import re

from runtime.native.elementary import ELEMENTARY
from runtime.native.prelude import FUNCTIONS

_MEMORY = {
    "ctx": r"""
typedef int64_t i64;
typedef struct buf { i64 rc, size, src, cls; char *data; struct buf *next, *all, *before; } buf;
typedef struct lst { i64 rc, len, cap, width, refs; i64 *at; buf *own, *room; } lst;
enum { D2S_CLASSES = 160, D2S_TEXT = 1024 };
typedef struct ctx {
    const char *weights;
    size_t limit, held, most;
    buf *all, *pool[D2S_CLASSES];
    int code, no_memory, at;
    char text[D2S_TEXT];
} ctx;
#define VIEW ((i64)1 << 50)
_Static_assert(sizeof(void *) == 8 && sizeof(double) == 8 && sizeof(float) == 4, "a machine with 64-bit addresses");
""",
    "d2s_copy": r"""
static inline void d2s_copy(void *to, const void *from, i64 bytes) { if (bytes > 0) memmove(to, from, (size_t)bytes); }
""",
    "d2s_zero": r"""
static inline void d2s_zero(void *to, i64 bytes) { if (bytes > 0) memset(to, 0, (size_t)bytes); }
""",
    "d2s_free": r"""
static void d2s_free(ctx *c, buf *b) {
    if (b->before) b->before->all = b->all; else c->all = b->all;
    if (b->all) b->all->before = b->before;
    c->held -= (size_t)b->cls;
    free(b);
}
""",
    "d2s_class": r"""
/* memory comes in sizes of four steps to each power of two: the number of the step, and its bytes */
static inline int d2s_class(i64 bytes, i64 *room) {
    i64 size = 64;
    int found = 0;
    while (size < bytes && found < D2S_CLASSES - 4) {
        i64 step = size / 4;
        if (bytes <= size + step) { size += step; found += 1; break; }
        if (bytes <= size + 2 * step) { size += 2 * step; found += 2; break; }
        if (bytes <= size + 3 * step) { size += 3 * step; found += 3; break; }
        size *= 2; found += 4;
    }
    *room = size;
    return found;
}
""",
    "d2s_tidy": r"""
/* gives back to the system what nothing refers to */
static void d2s_tidy(ctx *c) {
    for (buf *b = c->all, *n; b; b = n) { n = b->all; if (b->rc == 0) d2s_free(c, b); }
    memset(c->pool, 0, sizeof(c->pool));
}
""",
    "d2s_new": r"""
static buf *d2s_new(ctx *c, i64 bytes) {
    i64 room;
    buf *b = 0;
    if (bytes < 0 || bytes > (i64)1 << 46) { c->no_memory = 1; return 0; }
    int cls = d2s_class(bytes, &room);
#ifdef D2S_EXACT /* for sanitizers: each tensor in memory of exactly its size */
    room = bytes;
    (void)cls;
#else
    b = c->pool[cls];
    if (b) c->pool[cls] = b->next;
#endif
    if (!b) {
        size_t whole = sizeof(buf) + (size_t)room;
        for (int again = 0; again < 2 && !b; again++) {
            if (again) d2s_tidy(c);
            if (!c->limit || c->held + whole <= c->limit) b = malloc(whole);
        }
        if (!b) { c->no_memory = 1; return 0; }
        b->cls = (i64)whole;
        b->data = (char *)b + sizeof(buf);
        b->before = 0; b->all = c->all;
        if (c->all) c->all->before = b;
        c->all = b;
        c->held += whole;
        if (c->held > c->most) c->most = c->held;
    }
    b->rc = 1; b->size = bytes; b->src = -1; b->next = 0;
    return b;
}
""",
    "d2s_put": r"""
static void d2s_put(ctx *c, buf *b) {
    if (!b || --b->rc || b->src >= 0) return;
#ifdef D2S_EXACT
    d2s_free(c, b);
#else
    i64 room;
    int cls = d2s_class(b->cls - (i64)sizeof(buf), &room);
    b->next = c->pool[cls]; c->pool[cls] = b;
#endif
}
""",
    "d2s_reset": r"""
/* what is left of the call before is used again */
static void d2s_reset(ctx *c) {
    for (buf *b = c->all, *n; b; b = n) {
        n = b->all;
        if (b->rc > 0) { b->rc = 1; b->src = -1; d2s_put(c, b); }
    }
    c->code = c->no_memory = c->at = 0;
    c->text[0] = 0;
}
""",
    "d2s_ref": r"""
static inline void d2s_ref(buf *b) { if (b) b->rc++; }
""",
    "l_new": r"""
static lst *l_new(ctx *c, i64 width, i64 refs, i64 cap) {
    buf *own = d2s_new(c, (i64)sizeof(lst)), *room;
    if (!own || cap > ((i64)1 << 40) / width) return 0;
    if (!(room = d2s_new(c, 8 * cap * width))) { d2s_put(c, own); return 0; }
    lst *l = (lst *)(void *)own->data;
    l->rc = 1; l->len = 0; l->cap = cap; l->width = width; l->refs = refs;
    l->at = (i64 *)(void *)room->data; l->own = own; l->room = room;
    return l;
}
""",
    "l_ref": r"""
static inline void l_ref(lst *l) { if (l) l->rc++; }
""",
    "l_put": r"""
static void l_put(ctx *c, lst *l) {
    if (!l || --l->rc) return;
    if (l->refs) for (i64 i = 0; i < l->len; i++) d2s_put(c, (buf *)l->at[i * l->width]);
    d2s_put(c, l->room);
    d2s_put(c, l->own);
}
""",
    "l_own": r"""
/* the list with room for more items, as a list that nobody else refers to */
static lst *l_own(ctx *c, lst *l, i64 more) {
    if (l->rc == 1 && l->len + more <= l->cap) return l;
    i64 cap = l->len + more > 2 * l->len ? l->len + more : 2 * l->len;
    if (l->rc == 1) {
        buf *room = d2s_new(c, 8 * cap * l->width);
        if (!room) return 0;
        d2s_copy(room->data, l->at, 8 * l->len * l->width);
        d2s_put(c, l->room);
        l->room = room; l->at = (i64 *)(void *)room->data; l->cap = cap;
        return l;
    }
    lst *n = l_new(c, l->width, l->refs, cap);
    if (!n) return 0;
    d2s_copy(n->at, l->at, 8 * l->len * l->width);
    n->len = l->len;
    if (l->refs) for (i64 i = 0; i < l->len; i++) d2s_ref((buf *)l->at[i * l->width]);
    l->rc--;
    return n;
}
""",
    "d2s_spin": r"""
static inline int d2s_spin(const ctx *c) { (void)c; return 0; }
""",
}

_NUMBERS = {
    "as_double": r"""
static inline double as_double(i64 w) { double d; memcpy(&d, &w, 8); return d; }
""",
    "as_word": r"""
static inline i64 as_word(double d) { i64 w; memcpy(&w, &d, 8); return w; }
""",
    "nought": r"""
static i64 nought; /* added to a whole number that was a float: GCC makes trunc() of there and back, and keeps -0.0 */
#ifdef __GNUC__
static __attribute__((used)) void d2s_set_nought(i64 value) { nought = value; } /* so that no compiler takes it for 0 */
#endif
""",
    "py_floordiv": r"""
static inline i64 py_floordiv(i64 a, i64 b) { i64 q = a / b; return q - ((a % b != 0) & ((a < 0) != (b < 0))); }
""",
    "py_mod": r"""
static inline i64 py_mod(i64 a, i64 b) { i64 r = a % b; return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0); }
""",
    "py_fmod": r"""
static inline double py_fmod(double a, double b) {
    double m = fmod(a, b);
    if (m != 0) { if ((b < 0) != (m < 0)) m += b; } else m = copysign(0.0, b);
    return m;
}
""",
    "py_ffloordiv": r"""
static inline double py_ffloordiv(double a, double b) {
    double m = fmod(a, b), d = (a - m) / b, f;
    if (m != 0) { if ((b < 0) != (m < 0)) d -= 1.0; }
    if (d == 0) return copysign(0.0, a / b);
    f = floor(d);
    return d - f > 0.5 ? f + 1.0 : f;
}
""",
    "py_ipow": r"""
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
""",
    "exact": r"""
static inline int exact(i64 a) { return a <= ((i64)1 << 53) && a >= -((i64)1 << 53); }
""",
    "rem_f": r"""
static inline float rem_f(float a, float b) { float m = fmodf(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
""",
    "rem_d": r"""
static inline double rem_d(double a, double b) {
    double m = fmod(a, b);
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
""",
    "div_f": r"""
static inline float div_f(float a, float b) {
    if (b == 0) return a / b;
    float m = fmodf(a, b), d = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) d -= 1;
    if (d == 0) return copysignf(0, a / b);
    float f = floorf(d);
    return d - f > 0.5f ? f + 1 : f;
}
""",
    "div_d": r"""
static inline double div_d(double a, double b) {
    if (b == 0) return a / b;
    double m = fmod(a, b), d = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) d -= 1;
    if (d == 0) return copysign(0, a / b);
    double f = floor(d);
    return d - f > 0.5 ? f + 1 : f;
}
""",
    "whole_floor": r"""
static inline i64 whole_floor(i64 a, i64 b, int *zero) {
    if (!b) { *zero = 1; return 0; }
    return b == -1 ? (i64)(0 - (uint64_t)a) : py_floordiv(a, b);
}
""",
    "whole_mod": r"""
static inline i64 whole_mod(i64 a, i64 b, int *zero) {
    if (!b) { *zero = 1; return 0; }
    return b == -1 ? 0 : py_mod(a, b);
}
""",
    "whole_trunc": r"""
static inline i64 whole_trunc(i64 a, i64 b, int *zero) {
    if (!b) { *zero = 1; return 0; }
    return b == -1 ? (i64)(0 - (uint64_t)a) : a / b;
}
""",
    "whole_fmod": r"""
static inline i64 whole_fmod(i64 a, i64 b, int *zero) {
    if (!b) { *zero = 1; return 0; }
    return b == -1 ? 0 : a % b;
}
""",
    "d2s_power": r"""
static inline i64 d2s_power(i64 a, i64 n) { /* wraps around; of 1 and -1 for negative exponents, else 0 */
    uint64_t x = 1, b = (uint64_t)a;
    if (n < 0) return a == 1 ? 1 : a == -1 ? (n % 2 ? -1 : 1) : 0;
    for (; n; n >>= 1, b *= b) if (n & 1) x *= b;
    return (i64)x;
}
""",
    "d2s_count": r"""
static inline i64 d2s_count(double start, double end, double step) {
    double n = ceil((end - start) / step);
    return n >= 0 && n < 1e15 ? (i64)n : -1;
}
""",
}

_TEXTS = {
    "d2s_say": r"""
static void d2s_say(ctx *c, const char *text) {
    size_t used = strlen(c->text), more = strlen(text);
    if (more > D2S_TEXT - 1 - used) more = D2S_TEXT - 1 - used;
    memcpy(c->text + used, text, more);
    c->text[used + more] = 0;
}
""",
    "d2s_say_int": r"""
static void d2s_say_int(ctx *c, i64 n) {
    char digits[32];
    snprintf(digits, sizeof(digits), "%lld", (long long)n);
    d2s_say(c, digits);
}
""",
    "d2s_say_bool": r"""
static void d2s_say_bool(ctx *c, i64 n) { d2s_say(c, n ? "True" : "False"); }
""",
    "d2s_say_float": r"""
/* as Python writes it: the fewest digits that give the number back */
static void d2s_say_float(ctx *c, double x) {
    char text[64], digits[32], *mark;
    int n = 0, exponent, used = 0;
    if (isnan(x)) { d2s_say(c, "nan"); return; }
    if (isinf(x)) { d2s_say(c, x > 0 ? "inf" : "-inf"); return; }
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, fabs(x));
        if (strtod(text, 0) == fabs(x)) break;
    }
    mark = strchr(text, 'e');
    exponent = atoi(mark + 1);
    for (char *p = text; p < mark; p++) if (*p >= '0' && *p <= '9') digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0') n--;
    if (signbit(x)) text[used++] = '-';
    if (exponent < -4 || exponent >= 16) {
        text[used++] = digits[0];
        if (n > 1) text[used++] = '.';
        for (int i = 1; i < n; i++) text[used++] = digits[i];
        snprintf(text + used, 16, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else {
        if (exponent < 0) {
            text[used++] = '0'; text[used++] = '.';
            for (int i = -1; i > exponent; i--) text[used++] = '0';
        }
        for (int i = 0; i < n || i <= exponent; i++) {
            text[used++] = i < n ? digits[i] : '0';
            if (i == exponent) text[used++] = '.';
        }
        if (exponent >= n - 1) text[used++] = '0';
        text[used] = 0;
    }
    d2s_say(c, text);
}
""",
}

_TYPED = {
    "fma": r"""
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline T fma_@(T a, T b, T c) { return _Generic(a, float: fmaf, double: fma)(a, b, c); }
#else
static inline T fma_@(T a, T b, T c) { return a * b + c; } /* where fma() is a call */
#endif
""",
    "gemm": r"""
/* c = from + a @ b; ta, tb: a, b are stored transposed; rows are la, lb, lc, lf elements apart. from may be 0, or c.
   Columns of b are taken 16 at a time, 128 rows deep, into memory that lies as it is read. */
static void tile_@(i64 k, i64 m, const T *a, i64 ra, i64 ca, const T *wide, T *out) {
    if (m == 4) {
        T s0[16], s1[16], s2[16], s3[16];
        for (int q = 0; q < 16; q++) { s0[q] = out[q]; s1[q] = out[16 + q]; s2[q] = out[32 + q]; s3[q] = out[48 + q]; }
        for (i64 p = 0; p < k; p++) {
            const T *row = wide + p * 16, x0 = a[p * ca], x1 = a[ra + p * ca], x2 = a[2 * ra + p * ca];
            const T x3 = a[3 * ra + p * ca];
            for (int q = 0; q < 16; q++) {
                s0[q] = fma_@(x0, row[q], s0[q]); s1[q] = fma_@(x1, row[q], s1[q]);
                s2[q] = fma_@(x2, row[q], s2[q]); s3[q] = fma_@(x3, row[q], s3[q]);
            }
        }
        for (int q = 0; q < 16; q++) { out[q] = s0[q]; out[16 + q] = s1[q]; out[32 + q] = s2[q]; out[48 + q] = s3[q]; }
        return;
    }
    for (i64 r = 0; r < m; r++) {
        T s[16];
        for (int q = 0; q < 16; q++) s[q] = out[r * 16 + q];
        for (i64 p = 0; p < k; p++) {
            const T x = a[r * ra + p * ca], *row = wide + p * 16;
            for (int q = 0; q < 16; q++) s[q] = fma_@(x, row[q], s[q]);
        }
        for (int q = 0; q < 16; q++) out[r * 16 + q] = s[q];
    }
}
static void gemm_@(int ta, int tb, i64 m, i64 n, i64 k, const T *a, i64 la, const T *b, i64 lb, T *c, i64 lc,
                   const T *from, i64 lf) {
    const i64 ra = ta ? 1 : la, ca = ta ? la : 1, rb = tb ? 1 : lb, cb = tb ? lb : 1;
    T wide[128 * 16], out[64];
    if (m <= 0 || n <= 0) return;
    if (from != c) for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) c[i * lc + j] = from ? from[i * lf + j] : 0;
    if (m <= 2) {
        for (i64 i = 0; i < m; i++) {
            if (rb == 1) { /* rows of b are next to each other the other way round: products of vectors */
                for (i64 j = 0; j < n; j++) {
                    T s[8] = {0};
                    T rest = 0;
                    i64 p = 0;
                    for (; ca == 1 && p + 8 <= k; p += 8)
                        for (int q = 0; q < 8; q++) s[q] += a[i * ra + p + q] * b[j * cb + p + q];
                    for (; p < k; p++) rest += a[i * ra + p * ca] * b[j * cb + p];
                    c[i * lc + j] += (((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))) + rest;
                }
            } else {
                for (i64 p = 0; p < k; p++) {
                    const T x = a[i * ra + p * ca], *row = b + p * rb;
                    for (i64 j = 0; j < n; j++) c[i * lc + j] += x * row[j * cb];
                }
            }
        }
        return;
    }
    for (i64 j = 0; j < n; j += 16) {
        const i64 columns = n - j < 16 ? n - j : 16;
        for (i64 p = 0; p < k; p += 128) {
            const i64 depth = k - p < 128 ? k - p : 128;
            if (columns == 16 && rb == 1)
                for (i64 q = 0; q < 16; q++) {
                    const T *from = b + (j + q) * cb + p;
                    for (i64 s = 0; s < depth; s++) wide[s * 16 + q] = from[s];
                }
            else if (columns == 16 && cb == 1)
                for (i64 s = 0; s < depth; s++) memcpy(wide + s * 16, b + (p + s) * rb + j, 16 * sizeof(T));
            else
                for (i64 s = 0; s < depth; s++) for (i64 q = 0; q < 16; q++)
                    wide[s * 16 + q] = q < columns ? b[(p + s) * rb + (j + q) * cb] : 0;
            for (i64 i = 0; i < m; i += 4) {
                const i64 rows = m - i < 4 ? m - i : 4;
                for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < 16; q++)
                    out[r * 16 + q] = q < columns ? c[(i + r) * lc + j + q] : 0;
                tile_@(depth, rows, a + i * ra + p * ca, ra, ca, wide, out);
                for (i64 r = 0; r < rows; r++) for (i64 q = 0; q < columns; q++)
                    c[(i + r) * lc + j + q] = out[r * 16 + q];
            }
        }
    }
}
""",
    "turn": r"""
static void turn_@(i64 n, i64 k, const T *b, i64 lb, T *to) {
    for (i64 j = 0; j < n; j++) for (i64 p = 0; p < k; p++) to[p * n + j] = b[j * lb + p];
}
""",
    "d2s_cols": r"""
/* what each place of the kernel sees, as rows; n, k, o, s, p, d: sizes, kernel, result, stride, padding, dilation */
static void d2s_cols_@(T *to, const T *x, i64 channels, const i64 *n, const i64 *k, const i64 *o, const i64 *s,
                       const i64 *p, const i64 *d) {
    for (i64 c = 0; c < channels; c++)
    for (i64 a = 0; a < k[0]; a++) for (i64 b = 0; b < k[1]; b++) for (i64 e = 0; e < k[2]; e++)
    for (i64 i = 0; i < o[0]; i++) for (i64 j = 0; j < o[1]; j++) {
        const i64 u = i * s[0] - p[0] + a * d[0], v = j * s[1] - p[1] + b * d[1];
        const int inside = u >= 0 && u < n[0] && v >= 0 && v < n[1];
        for (i64 l = 0; l < o[2]; l++) {
            const i64 w = l * s[2] - p[2] + e * d[2];
            *to++ = inside && w >= 0 && w < n[2] ? x[((c * n[0] + u) * n[1] + v) * n[2] + w] : 0;
        }
    }
}
""",
    "d2s_spread": r"""
static void d2s_spread_@(T *to, const T *x, const T *weight, i64 given, i64 made, const i64 *n, const i64 *k,
                         const i64 *o, const i64 *s, const i64 *p, const i64 *d) {
    for (i64 c = 0; c < given; c++)
    for (i64 i = 0; i < n[0]; i++) for (i64 j = 0; j < n[1]; j++) for (i64 l = 0; l < n[2]; l++) {
        const T value = *x++;
        for (i64 m = 0; m < made; m++)
        for (i64 a = 0; a < k[0]; a++) for (i64 b = 0; b < k[1]; b++) for (i64 e = 0; e < k[2]; e++) {
            const i64 u = i * s[0] - p[0] + a * d[0], v = j * s[1] - p[1] + b * d[1], w = l * s[2] - p[2] + e * d[2];
            if (u >= 0 && u < o[0] && v >= 0 && v < o[1] && w >= 0 && w < o[2])
                to[((m * o[0] + u) * o[1] + v) * o[2] + w] +=
                    value * weight[(((c * made + m) * k[0] + a) * k[1] + b) * k[2] + e];
        }
    }
}
""",
    "d2s_top": r"""
static void d2s_top_@(T *to, i64 *where, const T *x, i64 planes, const i64 *n, const i64 *k, const i64 *o, const i64 *s,
                      const i64 *p, const i64 *d) {
    for (i64 c = 0; c < planes; c++, x += n[0] * n[1] * n[2])
    for (i64 i = 0; i < o[0]; i++) for (i64 j = 0; j < o[1]; j++) for (i64 l = 0; l < o[2]; l++) {
        T best = -INFINITY;
        i64 place = -1;
        for (i64 a = 0; a < k[0]; a++) for (i64 b = 0; b < k[1]; b++) for (i64 e = 0; e < k[2]; e++) {
            const i64 u = i * s[0] - p[0] + a * d[0], v = j * s[1] - p[1] + b * d[1], w = l * s[2] - p[2] + e * d[2];
            if (u < 0 || u >= n[0] || v < 0 || v >= n[1] || w < 0 || w >= n[2]) continue;
            const i64 at = (u * n[1] + v) * n[2] + w;
            if (place < 0 || x[at] > best || x[at] != x[at]) { best = x[at]; place = at; }
        }
        *to++ = best;
        if (where) *where++ = place;
    }
}
""",
    "d2s_mean": r"""
static void d2s_mean_@(T *to, const T *x, i64 planes, const i64 *n, const i64 *k, const i64 *o, const i64 *s,
                       const i64 *p, int with_padding, i64 divisor) {
    for (i64 c = 0; c < planes; c++, x += n[0] * n[1] * n[2])
    for (i64 i = 0; i < o[0]; i++) for (i64 j = 0; j < o[1]; j++) for (i64 l = 0; l < o[2]; l++) {
        const i64 at[3] = {i * s[0] - p[0], j * s[1] - p[1], l * s[2] - p[2]};
        i64 from[3], end[3], all = 1, seen = 1;
        for (int q = 0; q < 3; q++) {
            i64 last = at[q] + k[q] < n[q] + p[q] ? at[q] + k[q] : n[q] + p[q];
            all *= last - at[q];
            from[q] = at[q] > 0 ? at[q] : 0;
            end[q] = last < n[q] ? last : n[q];
            seen *= end[q] > from[q] ? end[q] - from[q] : 0;
        }
        T sum = 0;
        for (i64 u = from[0]; u < end[0]; u++) for (i64 v = from[1]; v < end[1]; v++)
            for (i64 w = from[2]; w < end[2]; w++) sum += x[(u * n[1] + v) * n[2] + w];
        *to++ = seen ? sum / (T)(divisor ? divisor : with_padding ? all : seen) : 0;
    }
}
""",
    "d2s_adapt": r"""
static void d2s_adapt_@(T *to, i64 *where, const T *x, i64 planes, const i64 *n, const i64 *o, int largest) {
    for (i64 c = 0; c < planes; c++, x += n[0] * n[1] * n[2])
    for (i64 i = 0; i < o[0]; i++) for (i64 j = 0; j < o[1]; j++) for (i64 l = 0; l < o[2]; l++) {
        const i64 at[3] = {i, j, l};
        i64 from[3], end[3], place = -1;
        T sum = 0;
        for (int q = 0; q < 3; q++) {
            from[q] = at[q] * n[q] / o[q];
            end[q] = ((at[q] + 1) * n[q] + o[q] - 1) / o[q];
        }
        for (i64 u = from[0]; u < end[0]; u++) for (i64 v = from[1]; v < end[1]; v++)
        for (i64 w = from[2]; w < end[2]; w++) {
            const i64 here = (u * n[1] + v) * n[2] + w;
            if (!largest) sum += x[here];
            else if (place < 0 || x[here] > sum || x[here] != x[here]) { sum = x[here]; place = here; }
        }
        *to++ = largest ? sum : sum / (T)((end[0] - from[0]) * (end[1] - from[1]) * (end[2] - from[2]));
        if (where) *where++ = place;
    }
}
""",
}

_EIGHT = {
    "d2s_stepped": r"""
/* the number of a step, as fake_quantize counts them: nan is the lowest */
static inline float d2s_stepped(float x, float inverse, float zero, float low, float high) {
    const float place = nearbyintf(x * inverse) + zero;
    return !(place > low) ? low : place < high ? place : high;
}
""",
    "d2s_rounded": r"""
static inline float d2s_rounded(float x, float scale, float zero, float low, float high) {
    return (d2s_stepped(x, 1.0f / scale, zero, low, high) - zero) * scale;
}
""",
    "d2s_eight": r"""
/* rows of x, rounded, times rows of w in 8 bits, in whole numbers; a has room for four rows of x */
static void d2s_eight(float *to, const float *x, i64 rows, i64 n, i64 k, const int8_t *w, const float *scales,
                      float weight_scale, float scale, int zero, int low, int high, const float *bias, int16_t *a) {
    const float inverse = 1.0f / scale, from = (float)zero, least = (float)low, most = (float)high;
    for (i64 i = 0; i < rows; i += 4) {
        const i64 count = rows - i < 4 ? rows - i : 4;
        for (i64 p = 0; p < count * k; p++)
            a[p] = (int16_t)(d2s_stepped(x[i * k + p], inverse, from, least, most) - from);
        for (i64 j = 0; j < n; j++) {
            const int8_t *own = w + j * k;
            const float factor = scale * (scales ? scales[j] : weight_scale), first = bias ? bias[j] : 0.0f;
            int32_t sums[4] = {0, 0, 0, 0};
            if (count == 4) {
                const int16_t *b = a + k, *c = b + k, *d = c + k;
                int32_t s = 0, t = 0, u = 0, v = 0;
                for (i64 p = 0; p < k; p++) {
                    s += (int32_t)a[p] * own[p]; t += (int32_t)b[p] * own[p];
                    u += (int32_t)c[p] * own[p]; v += (int32_t)d[p] * own[p];
                }
                sums[0] = s; sums[1] = t; sums[2] = u; sums[3] = v;
            } else for (i64 q = 0; q < count; q++) {
                int32_t s = 0;
                for (i64 p = 0; p < k; p++) s += (int32_t)a[q * k + p] * own[p];
                sums[q] = s;
            }
            for (i64 q = 0; q < count; q++) to[(i + q) * n + j] = (float)sums[q] * factor + first;
        }
    }
}
""",
}

_ORDER = r"""
/* the places of x in order, in the first half of at; equal elements keep their order, nan is the largest */
static int before_@(T a, T b, int down) {
    if (a != a || b != b) return down ? a != a && b == b : a == a && b != b;
    return down ? a > b : a < b;
}
static void d2s_order_@(i64 *at, const T *x, i64 n, int down) {
    i64 *from = at, *to = at + n;
    for (i64 i = 0; i < n; i++) from[i] = i;
    for (i64 width = 1; width < n; width *= 2) {
        for (i64 start = 0; start < n; start += 2 * width) {
            const i64 middle = start + width < n ? start + width : n, end = middle + width < n ? middle + width : n;
            i64 i = start, j = middle;
            for (i64 k = start; k < end; k++)
                to[k] = j >= end || (i < middle && !before_@(x[from[j]], x[from[i]], down)) ? from[i++] : from[j++];
        }
        i64 *swap = from; from = to; to = swap;
    }
    if (from != at) memcpy(at, from, (size_t)n * 8);
}
"""


def _pieces() -> dict[str, str]:
    """Every piece by its name, those that others need before them."""
    rooms = (_MEMORY, _NUMBERS, _TEXTS, _EIGHT)
    found = {name: text for room in rooms for name, text in room.items()}
    assert len(found) == sum(map(len, rooms)), "two pieces have one name"
    for name, text in _TYPED.items():
        for end, ctype in (("f", "float"), ("d", "double")):
            found[f"{name}_{end}"] = re.sub(r"\bT\b", ctype, text.replace("@", end))
    for end, ctype in (("f", "float"), ("d", "double"), ("i", "int64_t"), ("w", "int32_t"), ("b", "uint8_t")):
        text = _ORDER.replace("@", end)
        if end in "iwb":  # whole numbers are never nan
            text = text.replace("    if (a != a || b != b) return down ? a != a && b == b : a == a && b != b;\n", "")
        found[f"d2s_order_{end}"] = re.sub(r"\bT\b", ctype, text)
    found["ELEMENTARY"] = ELEMENTARY.replace("static inline __attribute__((always_inline))", "static inline")
    for name, _ in FUNCTIONS.items():
        for end, ctype, c_end in (("f", "float", "f"), ("d", "double", "")):
            if f"m_{name}_{end}(" not in ELEMENTARY:
                found[f"m_{name}_{end}"] = (
                    f"\nstatic inline {ctype} m_{name}_{end}({ctype} x) {{ return {name}{c_end}(x); }}\n")  # fmt: skip
    return found


PIECES = _pieces()
_OF_ELEMENTARY = frozenset({"m_exp_f", "m_tanh_f", "m_erf_f"})
_ALWAYS = ("ctx", "d2s_say", "d2s_reset", "d2s_free")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def needed(text: str) -> str:
    """The pieces that a text of C speaks of, and those that these need, in their order."""
    wanted: set[str] = set()
    todo = [*_ALWAYS, *_words(text)]
    while todo:
        name = todo.pop()
        name = "ELEMENTARY" if name in _OF_ELEMENTARY else name
        if name in PIECES and name not in wanted:
            wanted.add(name)
            todo += _words(PIECES[name])
    return "".join(piece for name, piece in PIECES.items() if name in wanted).lstrip("\n")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


__all__ = ["PIECES", "needed"]
