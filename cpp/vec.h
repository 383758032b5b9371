// A vector of floats as wide as the instruction set this file is compiled for.
//
// Hot files are compiled once per instruction set, each time in its own namespace (firth::ISA). They must not
// instantiate std templates: the linker keeps one copy of those, possibly the one for the wrong instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#ifndef ISA
#error "hot files are compiled with ISA and ISA_<name> defined"
#endif

namespace firth {
namespace ISA {

#if defined(ISA_avx512)
constexpr int LANES = 16;
constexpr int REGISTERS = 32;
#elif defined(ISA_avx2)
constexpr int LANES = 8;
constexpr int REGISTERS = 16;
#else
constexpr int LANES = 4;
constexpr int REGISTERS = 16;
#endif

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));
typedef float loose_vec __attribute__((vector_size(LANES * 4), aligned(4)));

static inline vec load(const float* p) { return *reinterpret_cast<const vec*>(p); }
static inline vec load_loose(const float* p) { return *reinterpret_cast<const loose_vec*>(p); }
static inline void store(float* p, vec v) { *reinterpret_cast<vec*>(p) = v; }
static inline void store_loose(float* p, vec v) { *reinterpret_cast<loose_vec*>(p) = v; }
static inline vec splat(float value) { return value - vec{}; }  // x - 0 is x, also for -0, so no operation remains
static inline vec choose(ivec mask, vec yes, vec no) { return mask ? yes : no; }

// A loop over registers. It is unrolled early, otherwise the compiler keeps the array in memory.
#if defined(__clang__)
#define EACH _Pragma("unroll") for
#else
#define EACH _Pragma("GCC unroll 64") for
#endif

// Sums of LANES vectors at once: lane i of the result is the sum of the lanes of a[i].
// Each level halves the number of vectors, so a sum costs about three operations, not log(LANES).
// `half_sums` does the same for LANES / 2 vectors; the upper lanes of its result repeat the lower ones.
#if defined(ISA_avx512)
static inline vec sums(const vec* a) {
    vec b[8], c[4], d[2];
    EACH (int i = 0; i < 8; ++i) {  // 256-bit halves: lanes 0-7 of a[i], then of a[i + 8]
        b[i] = __builtin_shufflevector(a[i], a[i + 8], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               __builtin_shufflevector(a[i], a[i + 8], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
    EACH (int i = 0; i < 4; ++i) {  // 128-bit quarters
        c[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) +
               __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    }
    EACH (int i = 0; i < 2; ++i) {
        d[i] = __builtin_shufflevector(c[i], c[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
               __builtin_shufflevector(c[i], c[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
    return __builtin_shufflevector(d[0], d[1], 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
           __builtin_shufflevector(d[0], d[1], 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
}
static inline vec half_sums(const vec* a) {
    vec b[4], c[2];
    EACH (int i = 0; i < 4; ++i) {
        b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               __builtin_shufflevector(a[i], a[i + 4], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
    EACH (int i = 0; i < 2; ++i) {
        c[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) +
               __builtin_shufflevector(b[i], b[i + 2], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    }
    const vec d = __builtin_shufflevector(c[0], c[1], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                  __builtin_shufflevector(c[0], c[1], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    return __builtin_shufflevector(d, d, 0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14) +
           __builtin_shufflevector(d, d, 1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15);
}
#elif defined(ISA_avx2)
static inline vec sums(const vec* a) {
    vec c[4], d[2];
    EACH (int i = 0; i < 4; ++i) {
        c[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    EACH (int i = 0; i < 2; ++i) {
        d[i] = __builtin_shufflevector(c[i], c[i + 2], 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(c[i], c[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    return __builtin_shufflevector(d[0], d[1], 0, 8, 2, 10, 4, 12, 6, 14) +
           __builtin_shufflevector(d[0], d[1], 1, 9, 3, 11, 5, 13, 7, 15);
}
static inline vec half_sums(const vec* a) {
    vec c[2];
    EACH (int i = 0; i < 2; ++i) {
        c[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a[i], a[i + 2], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    const vec d = __builtin_shufflevector(c[0], c[1], 0, 1, 8, 9, 4, 5, 12, 13) +
                  __builtin_shufflevector(c[0], c[1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(d, d, 0, 2, 4, 6, 0, 2, 4, 6) +
           __builtin_shufflevector(d, d, 1, 3, 5, 7, 1, 3, 5, 7);
}
#else
static inline vec half_sums(const vec* a) {
    const vec d = __builtin_shufflevector(a[0], a[1], 0, 1, 4, 5) + __builtin_shufflevector(a[0], a[1], 2, 3, 6, 7);
    return __builtin_shufflevector(d, d, 0, 2, 0, 2) + __builtin_shufflevector(d, d, 1, 3, 1, 3);
}
static inline vec sums(const vec* a) {
    vec d[2];
    EACH (int i = 0; i < 2; ++i) {
        d[i] =
            __builtin_shufflevector(a[i], a[i + 2], 0, 1, 4, 5) + __builtin_shufflevector(a[i], a[i + 2], 2, 3, 6, 7);
    }
    return __builtin_shufflevector(d[0], d[1], 0, 4, 2, 6) + __builtin_shufflevector(d[0], d[1], 1, 5, 3, 7);
}
#endif

// out[i] = the sum of the lanes of a[i]; out needs room for COUNT rounded up to LANES.
template <int COUNT>
static inline void store_sums(const vec* a, float* out) {
    if constexpr (COUNT >= LANES) {
        store_loose(out, sums(a));
        store_sums<COUNT - LANES>(a + LANES, out + LANES);
    } else if constexpr (COUNT > 0) {
        constexpr int ROOM = COUNT <= LANES / 2 ? LANES / 2 : LANES;
        vec rest[ROOM];
        EACH (int i = 0; i < ROOM; ++i) rest[i] = i < COUNT ? a[i] : vec{};
        if constexpr (ROOM == LANES) store_loose(out, sums(rest));
        else store_loose(out, half_sums(rest));
    }
}

static inline float sum(vec v) {
    float total = 0;
    for (int i = 0; i < LANES; ++i) total += v[i];
    return total;
}

// e^x to about 2e-7 relative, for x within the range of float (clamped beyond).
static inline vec exp_vec(vec x) {
    x = choose(x > 87.0f, splat(87.0f), x);
    x = choose(x < -87.0f, splat(-87.0f), x);
    const vec turns = x * 1.44269504f + 0x1.8p23f;  // rounds to an integer, which is then in the low bits
    const vec n = turns - 0x1.8p23f;
    vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (vec)(((ivec)turns << 23) + (127 << 23));
}

// ln x for normal positive x.
static inline vec log_vec(vec x) {
    ivec bits = (ivec)x;
    ivec exponent = ((bits >> 23) & 255) - 126;
    vec m = (vec)((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
    ivec small = m < 0.707106781f;
    vec e = __builtin_convertvector(exponent, vec) - choose(small, splat(1.0f), splat(0.0f));
    vec r = m + choose(small, m, splat(0.0f)) - 1.0f;
    vec p = splat(7.0376836292e-2f);
    p = p * r - 1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r - 1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r - 1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r - 2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    vec square = r * r;
    return r + r * square * p - 0.5f * square + e * 0.693147181f + (x - x);  // NaN stays NaN
}

}  // namespace ISA
}  // namespace firth
