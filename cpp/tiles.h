// Matrix products with packed weights (`Linear`), tile by tile, in float32 and int8. Included by hot files.
#pragma once

#include "activations.h"
#include "encoder.h"
#include "vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace firth {
namespace ISA {

constexpr int PANEL = 2 * LANES;  // columns of a tile of the result
#if defined(ISA_avx512)
constexpr int TILE = 12;  // rows: 24 sums in registers, two vectors of weights, one of inputs
#else
constexpr int TILE = 6;
#endif

#define UNROLLED_FOR _Pragma("GCC unroll 16") for  // otherwise the compiler keeps the sums in memory

typedef int16_t shorts __attribute__((vector_size(LANES * 4)));
typedef uint8_t small_vec __attribute__((vector_size(LANES)));
typedef int16_t short_vec __attribute__((vector_size(LANES * 2)));

static inline int64_t rounded(int64_t count, int64_t to) { return (count + to - 1) / to * to; }
static int64_t padded(int64_t columns) { return rounded(columns, PANEL); }

// The distance between rows. Rows a power of two apart would compete for the same cache sets.
static int64_t stride_of(int64_t columns) {
    const int64_t width = padded(columns);
    return width * 4 % 2048 ? width : width + PANEL;
}

// Whether the processor multiplies bytes four at a time (VNNI); otherwise they are widened and multiplied in pairs.
static bool by_fours() {
#if defined(ISA_avx512)
    return __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

// ---- packing ----

// Columns of all panels. Those of a gated layer are half gate, half product.
static int64_t packed_columns(const Linear& linear) { return padded(linear.out) * (linear.gate ? 2 : 1); }

// The weights of a packed column, and its bias; nullptr beyond the last, and for a bias that is missing.
struct PackedColumn {
    const float *weights, *bias;
};

static PackedColumn packed_column(const Linear& linear, int64_t column) {
    const bool gate = linear.gate && column % PANEL < LANES;
    const int64_t o = linear.gate ? column / PANEL * LANES + column % LANES : column;
    if (o >= linear.out) return {nullptr, nullptr};
    const float* bias = gate ? linear.gate_bias : linear.source_bias;
    return {(gate ? linear.gate : linear.source) + o * linear.in, bias ? bias + o : nullptr};
}

static int64_t packed_size(const Linear& linear, bool bytes) {
    const int64_t width = packed_columns(linear);
    if (!bytes) return linear.in * width * 4;
    return by_fours() ? rounded(linear.in, 4) * width : rounded(linear.in, 2) * width * 2;
}

static void pack_floats(Linear& linear) {
    float* to = static_cast<float*>(linear.weights);
    for (int64_t first = 0; first < packed_columns(linear); first += PANEL) {
        const float* from[PANEL];
        for (int o = 0; o < PANEL; ++o) from[o] = packed_column(linear, first + o).weights;
        for (int64_t k = 0; k < linear.in; ++k)
            for (int o = 0; o < PANEL; ++o) *to++ = from[o] ? from[o][k] : 0.0f;
    }
}

template <class Number, int GROUP>
static void pack_groups(Linear& linear) {
    Number* to = static_cast<Number*>(linear.weights);
    for (int64_t first = 0; first < packed_columns(linear); first += PANEL) {
        const float* from[PANEL];
        for (int o = 0; o < PANEL; ++o) from[o] = packed_column(linear, first + o).weights;
        for (int64_t k = 0; k < linear.in; k += GROUP)
            for (int o = 0; o < PANEL; ++o)
                for (int64_t j = k; j < k + GROUP; ++j) {
                    const float scaled = from[o] && j < linear.in ? from[o][j] / linear.scales[first + o] : 0.0f;
                    const int rounded_value = static_cast<int>(scaled + (scaled < 0 ? -0.5f : 0.5f));
                    *to++ = static_cast<Number>(rounded_value);
                    linear.sums[first + o] += rounded_value;
                }
    }
}

static void pack(Linear& linear, bool bytes) {
    for (int64_t o = 0; o < packed_columns(linear); ++o) {
        const PackedColumn column = packed_column(linear, o);
        linear.bias[o] = column.bias ? *column.bias : 0.0f;
        float largest = 0;
        for (int64_t k = 0; bytes && column.weights && k < linear.in; ++k) {
            const float size = __builtin_fabsf(column.weights[k]);
            largest = size > largest ? size : largest;
        }
        linear.scales[o] = largest > 0 ? largest / 127 : 1;
        linear.sums[o] = 0;
    }
    if (!bytes) pack_floats(linear);
    else if (by_fours()) pack_groups<int8_t, 4>(linear);
    else pack_groups<int16_t, 2>(linear);
}

// ---- results ----

// What becomes of the sums of a tile: they are stored, added to the result, activated, or gated.
enum class Then { store, add, activate, gate };

struct Result {
    float* rows;
    int64_t stride;
    Then then = Then::store;
    Activation activation = Activation::gelu;

    Result from_row(int64_t row) const { return {rows + row * stride, stride, then, activation}; }
};

template <Activation activation>
static void finish_activated(const float* sums, int64_t rows, float* out, int64_t stride, bool gated) {
    for (int64_t r = 0; r < rows; ++r, sums += PANEL, out += stride) {
        const vec left = activate<activation>(load(sums)), right = load(sums + LANES);
        store(out, gated ? left * right : left);
        if (!gated) store(out + LANES, activate<activation>(right));
    }
}

// Writes the sums of a tile, rows of PANEL, to panel p of a result.
static void finish_tile(const float* sums, int64_t rows, const Result& result, int64_t p) {
    const bool gated = result.then == Then::gate;
    float* out = result.rows + p * (gated ? LANES : PANEL);
    if (result.then == Then::add) {
        for (int64_t r = 0; r < rows; ++r, sums += PANEL, out += result.stride) {
            store(out, load(out) + load(sums));
            store(out + LANES, load(out + LANES) + load(sums + LANES));
        }
        return;
    }
    switch (result.activation) {
        case Activation::gelu: return finish_activated<Activation::gelu>(sums, rows, out, result.stride, gated);
        case Activation::gelu_tanh:
            return finish_activated<Activation::gelu_tanh>(sums, rows, out, result.stride, gated);
        case Activation::relu: return finish_activated<Activation::relu>(sums, rows, out, result.stride, gated);
        case Activation::silu: return finish_activated<Activation::silu>(sums, rows, out, result.stride, gated);
    }
}

// ---- products ----

// ROWS rows of `a` (broadcast element by element) times one panel of `depth` rows, each PANEL wide.
template <int ROWS>
static void tile(const float* a, int64_t stride, const float* panel, int64_t depth, const float* bias, float* out,
                 int64_t out_stride) {
    vec sum[ROWS][2];
    UNROLLED_FOR (int r = 0; r < ROWS; ++r) {
        sum[r][0] = bias ? load(bias) : vec{};
        sum[r][1] = bias ? load(bias + LANES) : vec{};
    }
    for (int64_t k = 0; k < depth; ++k, panel += PANEL) {
        const vec left = load(panel), right = load(panel + LANES);
        UNROLLED_FOR (int r = 0; r < ROWS; ++r) {
            const vec value = splat(a[r * stride + k]);
            sum[r][0] += value * left;
            sum[r][1] += value * right;
        }
    }
    UNROLLED_FOR (int r = 0; r < ROWS; ++r) {
        store(out + r * out_stride, sum[r][0]);
        store(out + r * out_stride + LANES, sum[r][1]);
    }
}

template <int ROWS = TILE>
static void last_tile(int64_t rows, const float* a, int64_t stride, const float* panel, int64_t depth,
                      const float* bias, float* out, int64_t out_stride) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) tile<ROWS>(a, stride, panel, depth, bias, out, out_stride);
        else last_tile<ROWS - 1>(rows, a, stride, panel, depth, bias, out, out_stride);
    }
}

// Panels of a right-hand matrix: `depth` rows of PANEL, `distance` floats from one panel to the next.
struct Panels {
    const float* first;
    int64_t depth, count, distance;
};

static void multiply(const float* a, int64_t rows, int64_t stride, const Panels& panels, const float* bias,
                     const Result& result) {
    alignas(64) float sums[TILE * PANEL];
    const float* panel = panels.first;
    for (int64_t p = 0; p < panels.count; ++p, panel += panels.distance) {
        const float* from = bias ? bias + p * PANEL : nullptr;
        for (int64_t row = 0; row < rows; row += TILE) {
            const int64_t left = rows - row < TILE ? rows - row : TILE;
            const Result part = result.from_row(row);
            const bool stored = result.then == Then::store;
            last_tile(left, a + row * stride, stride, panel, panels.depth, from, stored ? part.rows + p * PANEL : sums,
                      stored ? part.stride : PANEL);
            if (!stored) finish_tile(sums, left, part, p);
        }
    }
}

// Quantized rows: x is about scale · (code - zero).
struct Rows {
    uint8_t* bytes;  // or 16 bits each
    int64_t stride;  // in bytes
    float* scales;
    float* zeros;
};

// Converts the integer sums of one tile to floats.
template <int ROWS>
static inline void finish(const ivec (*sum)[2], const Linear& linear, int64_t column, const float* scales,
                          const float* zeros, float* out, int64_t out_stride) {
    UNROLLED_FOR (int half = 0; half < 2; ++half) {
        const int64_t at = column + half * LANES;
        const vec scale = load(linear.scales + at), bias = load(linear.bias + at);
        const vec sums = __builtin_convertvector(*reinterpret_cast<const ivec*>(linear.sums + at), vec);
        UNROLLED_FOR (int r = 0; r < ROWS; ++r) {
            const vec rounded_value = __builtin_convertvector(sum[r][half], vec) - sums * zeros[r];
            store(out + r * out_stride + half * LANES, rounded_value * (scale * scales[r]) + bias);
        }
    }
}

static inline shorts twice(const void* p) {
    int32_t both;
    memcpy(&both, p, 4);
    return (shorts)(both - ivec{});
}

static inline ivec add_products(ivec sum, shorts a, shorts b) {
#if defined(ISA_avx512)
    return sum + (ivec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(ISA_avx2)
    return sum + (ivec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
    return sum + (ivec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    for (int i = 0; i < LANES; ++i) sum[i] += int32_t(a[2 * i]) * b[2 * i] + int32_t(a[2 * i + 1]) * b[2 * i + 1];
    return sum;
#endif
}

// Products of 16-bit values, two at a time.
struct Twos {
    static constexpr int SIZE = 2;

    template <int ROWS>
    static void tile(const uint8_t* a, int64_t stride, const Linear& linear, int64_t p, const float* scales,
                     const float* zeros, float* out, int64_t out_stride) {
        const int64_t groups = (linear.in + 1) / 2;
        const shorts* panel = static_cast<const shorts*>(linear.weights) + p * groups * 2;
        ivec sum[ROWS][2] = {};
        for (int64_t k = 0; k < groups; ++k, panel += 2)
            UNROLLED_FOR (int r = 0; r < ROWS; ++r) {
                const shorts value = twice(a + r * stride + k * 4);
                sum[r][0] = add_products(sum[r][0], value, panel[0]);
                sum[r][1] = add_products(sum[r][1], value, panel[1]);
            }
        finish<ROWS>(sum, linear, p * PANEL, scales, zeros, out, out_stride);
    }
};

#if defined(ISA_avx512)
// Products of 8-bit values, four at a time (VNNI): unsigned inputs, signed weights.
struct Fours {
    static constexpr int SIZE = 1;

    template <int ROWS>
    __attribute__((target("avx512vnni"))) static void tile(const uint8_t* a, int64_t stride, const Linear& linear,
                                                           int64_t p, const float* scales, const float* zeros,
                                                           float* out, int64_t out_stride) {
        const int64_t groups = (linear.in + 3) / 4;
        const __m512i* panel = static_cast<const __m512i*>(linear.weights) + p * groups * 2;
        ivec sum[ROWS][2] = {};
        for (int64_t k = 0; k < groups; ++k, panel += 2) {
            const __m512i left = panel[0], right = panel[1];
            UNROLLED_FOR (int r = 0; r < ROWS; ++r) {
                int32_t four;
                memcpy(&four, a + r * stride + k * 4, 4);
                const __m512i value = _mm512_set1_epi32(four);
                sum[r][0] = (ivec)_mm512_dpbusd_epi32((__m512i)sum[r][0], value, left);
                sum[r][1] = (ivec)_mm512_dpbusd_epi32((__m512i)sum[r][1], value, right);
            }
        }
        finish<ROWS>(sum, linear, p * PANEL, scales, zeros, out, out_stride);
    }
};
#else
using Fours = Twos;
#endif

template <class Bytes, int ROWS = TILE>
static void last_bytes_tile(int64_t rows, const uint8_t* a, int64_t stride, const Linear& linear, int64_t p,
                            const float* scales, const float* zeros, float* out, int64_t out_stride) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) Bytes::template tile<ROWS>(a, stride, linear, p, scales, zeros, out, out_stride);
        else last_bytes_tile<Bytes, ROWS - 1>(rows, a, stride, linear, p, scales, zeros, out, out_stride);
    }
}

template <class Bytes>
static void multiply_bytes(const Rows& x, int64_t rows, const Linear& linear, const Result& result) {
    alignas(64) float sums[TILE * PANEL];
    const bool stored = result.then == Then::store;
    const int64_t panels = packed_columns(linear) / PANEL;
    for (int64_t p = 0; p < panels; ++p)
        for (int64_t row = 0; row < rows; row += TILE) {
            const int64_t left = rows - row < TILE ? rows - row : TILE;
            const Result part = result.from_row(row);
            last_bytes_tile<Bytes>(left, x.bytes + row * x.stride, x.stride, linear, p, x.scales + row, x.zeros + row,
                                   stored ? part.rows + p * PANEL : sums, stored ? part.stride : PANEL);
            if (!stored) finish_tile(sums, left, part, p);
        }
}

template <class Bytes>
static void to_bytes(const float* from, int64_t stride, int64_t rows, int64_t columns, const Rows& to) {
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        vec low = {}, high = {};  // the padding is 0
        for (int64_t c = 0; c < columns; c += LANES) {
            low = smaller(low, load(from + c));
            high = larger(high, load(from + c));
        }
        float least = 0, most = 0;
        for (int i = 0; i < LANES; ++i) {
            least = low[i] < least ? low[i] : least;
            most = high[i] > most ? high[i] : most;
        }
        const float scale = most - least > 1e-30f ? (most - least) / 255 : 1;
        const float zero = static_cast<float>(static_cast<int>(0.5f - least / scale));
        to.scales[row] = scale;
        to.zeros[row] = zero;
        uint8_t* bytes = to.bytes + row * to.stride;
        for (int64_t c = 0; c < columns; c += LANES) {
            vec value = load(from + c) * (1 / scale) + (zero + 0.5f);  // truncation rounds it
            value = smaller(larger(value, vec{}), splat(255.0f));
            const ivec rounded_value = __builtin_convertvector(value, ivec);
            if constexpr (Bytes::SIZE == 1) {
                const small_vec small = __builtin_convertvector(rounded_value, small_vec);
                memcpy(bytes + c, &small, LANES);
            } else {
                const short_vec small = __builtin_convertvector(rounded_value, short_vec);
                memcpy(bytes + 2 * c, &small, 2 * LANES);
            }
        }
    }
}

}  // namespace ISA
}  // namespace firth
