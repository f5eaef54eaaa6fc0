"""What every generated CUDA file begins with: floats of 16 bits, functions of elements, and joins of a block's threads.

The names are those of ``runtime.native.prelude``, so that the text of an element is the same for C and for CUDA. No
header is included where NVRTC compiles: it has none of C's. ``INDEX`` is the type that elements are counted in.
"""

from __future__ import annotations

from runtime.native.prelude import FUNCTIONS

_TYPES = r"""
typedef long long i64;
typedef unsigned long long u64;
#ifndef D2S_HOST
#ifdef __CUDACC_RTC__
typedef long int64_t; typedef int int32_t; typedef short int16_t; typedef signed char int8_t;
typedef unsigned long uint64_t; typedef unsigned int uint32_t; typedef unsigned short uint16_t;
typedef unsigned char uint8_t;
#else
#include <stdint.h>
#endif
#undef INFINITY
#undef NAN
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define TRAP asm("trap;")
#define BITS_OF(f) __float_as_uint(f)
#define FLOAT_OF(u) __uint_as_float(u)
extern __shared__ u64 d2s_rows[];
static __device__ __forceinline__ float hf_wide(uint16_t x) {
    float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x)); return f;
}
static __device__ __forceinline__ uint16_t hf_narrow(float f) {
    uint16_t x; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x) : "f"(f)); return x;
}
#endif
static __device__ inline float bf_wide(uint16_t x) { return FLOAT_OF((uint32_t)x << 16); }
static __device__ inline uint16_t bf_narrow(float f) {
    uint32_t u = BITS_OF(f);
    return f != f ? (uint16_t)0x7fc0 : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
"""

_ROWS = r"""
/* a row of floats of 16 bits that is read and written as one of floats of 32 */
#define ROW_OF_HALVES(NAME, KIND) \
struct NAME { \
    uint16_t *at; \
    struct place { \
        uint16_t *at; \
        __device__ operator float() const { return KIND##_wide(*at); } \
        __device__ float operator=(float v) const { *at = KIND##_narrow(v); return v; } \
    }; \
    __device__ place operator[](i64 j) const { return place{at + j}; } \
    __device__ NAME operator+(i64 j) const { return NAME{at + j}; } \
};
ROW_OF_HALVES(bf_row, bf)
ROW_OF_HALVES(hf_row, hf)
"""

_ARITHMETIC = r"""
static __device__ inline i64 py_floordiv(i64 a, i64 b) {
    i64 q = a / b; return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
static __device__ inline i64 py_mod(i64 a, i64 b) {
    i64 r = a % b; return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
}
static __device__ inline float rem_f(float a, float b) {
    float m = fmodf(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
static __device__ inline double rem_d(double a, double b) {
    double m = fmod(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
"""

_JOINS = r"""
struct join_add { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
struct join_max { template <class T> __device__ T operator()(T a, T b) const { return b > a ? b : a; } };
struct join_min { template <class T> __device__ T operator()(T a, T b) const { return b < a ? b : a; } };
struct join_or { template <class T> __device__ T operator()(T a, T b) const { return a | b; } };
struct join_and { template <class T> __device__ T operator()(T a, T b) const { return a & b; } };
/* every thread of the block gets what the values of all are together; the block is whole warps */
template <class J, class T> static __device__ T block_join(T v) {
    __shared__ T parts[32];
    const J join{};
    const unsigned warps = blockDim.x / 32;
    for (int lanes = 16; lanes; lanes /= 2) v = join(v, (T)__shfl_xor_sync(0xffffffffu, v, lanes));
    if (warps == 1) return v;
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (unsigned w = 1; w < warps; w++) v = join(v, parts[w]);
    return v;
}
"""

JOINS = {"+": "join_add", "max": "join_max", "min": "join_min", "|": "join_or", "&": "join_and"}
"""A sign as folds have it, and the class in CUDA that joins two values."""


def _functions() -> str:
    lines = []
    for name in FUNCTIONS:
        for kind, ctype, end in (("f", "float", "f"), ("d", "double", "")):
            lines.append(f"static __device__ inline {ctype} m_{name}_{kind}({ctype} x) {{ return {name}{end}(x); }}")
    return "\n".join(lines)


PRELUDE = "\n".join([_TYPES, _ROWS, _ARITHMETIC, _functions(), _JOINS])


def source(kernels: str, *, narrow: bool) -> str:
    """A whole file. ``narrow``: elements are counted in 32 bits, for kernels that have few enough."""
    return f"#define INDEX {'unsigned' if narrow else 'long long'}\n{PRELUDE}\n{kernels}\n"


__all__ = ["JOINS", "PRELUDE", "source"]
