// Products of a few rows of inputs with `Weights`: rows of floats, and panels of quantized blocks. Included by hot
// files.
#pragma once

#include "decoder.h"
#include "vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace firth {
namespace ISA {

static inline vec loose(const float* p) { return *reinterpret_cast<const loose_vec*>(p); }

static inline vec load_half(const uint16_t* p) {
#if defined(ISA_avx512)
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#else
    typedef uint16_t halves __attribute__((vector_size(LANES * 2), aligned(2)));
    const ivec bits = __builtin_convertvector(*reinterpret_cast<const halves*>(p), ivec);
    const ivec size = (bits & 0x7fff) << 13;  // the exponent is 112 too small
    const ivec infinite = size >= (0x7c00 << 13);
    return (vec)((ivec)((vec)size * 0x1p112f) | (infinite & 0x7f800000) | ((bits & 0x8000) << 16));
#endif
}

// ---- rows of floats ----

struct HalfRows {
    typedef uint16_t number;
    static inline vec load(const uint16_t* p) { return load_half(p); }
};
struct FloatRows {
    typedef float number;
    static inline vec load(const float* p) { return loose(p); }
};

static inline float number(float value) { return value; }
static inline float number(uint16_t half) {
    uint16_t room[LANES] = {half};
    return load_half(room)[0];
}

// ROWS rows at once, each a separate memory stream, for TOKENS inputs.
template <class Rows, int ROWS, int TOKENS>
static inline void row_tile(const typename Rows::number* rows, int64_t width, const float* x, int64_t stride,
                            const float* bias, float* out, int64_t out_stride) {
    vec totals[TOKENS][ROWS] = {};
    int64_t d = 0;
    for (; d + LANES <= width; d += LANES) {
        vec weights[ROWS];
        EACH (int i = 0; i < ROWS; ++i) weights[i] = Rows::load(rows + i * width + d);
        EACH (int t = 0; t < TOKENS; ++t) {
            const vec value = loose(x + t * stride + d);
            EACH (int i = 0; i < ROWS; ++i) totals[t][i] += value * weights[i];
        }
    }
    for (int t = 0; t < TOKENS; ++t)
        for (int i = 0; i < ROWS; ++i) {
            float total = sum(totals[t][i]) + (bias ? bias[i] : 0.0f);
            for (int64_t rest = d; rest < width; ++rest) total += x[t * stride + rest] * number(rows[i * width + rest]);
            out[t * out_stride + i] = total;
        }
}

template <class Rows, int TOKENS>
static void row_tiles(const Weights& weights, int64_t first, int64_t last, const float* x, int64_t stride, float* out,
                      int64_t out_stride) {
    constexpr int ROWS = TOKENS > 1 ? 4 : 8;
    const auto* rows = static_cast<const typename Rows::number*>(weights.rows) + first * weights.in;
    const float* bias = weights.bias ? weights.bias + first : nullptr;
    int64_t i = 0;
    for (; i + ROWS <= last - first; i += ROWS)
        row_tile<Rows, ROWS, TOKENS>(rows + i * weights.in, weights.in, x, stride, bias ? bias + i : nullptr, out + i,
                                     out_stride);
    for (; i < last - first; ++i)
        row_tile<Rows, 1, TOKENS>(rows + i * weights.in, weights.in, x, stride, bias ? bias + i : nullptr, out + i,
                                  out_stride);
}

template <class Rows>
static void all_rows(const Weights& weights, int64_t first, int64_t last, const Inputs& x, int64_t tokens, float* out,
                     int64_t stride) {
    constexpr int64_t ROWS = 32;  // stay in the cache for all tokens
    if (tokens == 1) return row_tiles<Rows, 1>(weights, first, last, x.floats, x.stride, out, stride);
    for (int64_t row = first; row < last; row += ROWS) {
        const int64_t end = row + ROWS < last ? row + ROWS : last;
        int64_t t = 0;
        for (; t + 4 <= tokens; t += 4)
            row_tiles<Rows, 4>(weights, row, end, x.floats + t * x.stride, x.stride, out + t * stride + row - first,
                               stride);
        for (; t < tokens; ++t)
            row_tiles<Rows, 1>(weights, row, end, x.floats + t * x.stride, x.stride, out + t * stride + row - first,
                               stride);
    }
}

static void multiply_rows(const Weights& weights, int64_t first, int64_t last, const Inputs& x, int64_t tokens,
                          float* out, int64_t stride) {
    if (weights.storage == Storage::f16) all_rows<HalfRows>(weights, first, last, x, tokens, out, stride);
    else all_rows<FloatRows>(weights, first, last, x, tokens, out, stride);
}

// ---- panels of quantized blocks ----

// Writes `count` values (a multiple of 32) of a row as bytes, beginning with block `first`. A NaN makes its scale NaN.
static void quantize(const float* x, int64_t count, const Inputs& to, int64_t row, int64_t first) {
    for (int64_t b = 0; b < count / BLOCK_VALUES; ++b, x += BLOCK_VALUES) {
        constexpr int PARTS = BLOCK_VALUES / LANES;
        ivec most = {};
        vec values[PARTS];
        EACH (int part = 0; part < PARTS; ++part) {
            values[part] = loose(x + part * LANES);
            const ivec size = (ivec)values[part] & 0x7fffffff;  // ordered like the numbers; NaN is above infinity
            most = size > most ? size : most;
        }
        int32_t largest = 0;
        for (int i = 0; i < LANES; ++i) largest = most[i] > largest ? most[i] : largest;
        float extent;
        memcpy(&extent, &largest, 4);
        const float inverse = extent > 1e-30f ? 127 / extent : 0;
        int8_t* codes = to.codes + row * to.code_stride + (first + b) * BLOCK_VALUES;
        ivec total = {};
        EACH (int part = 0; part < PARTS; ++part) {
            const vec rounded = values[part] * inverse + 0x1.8p23f;  // the integer is then in the low bits
            const ivec code = (ivec)rounded - 0x4b400000;
            typedef int8_t small __attribute__((vector_size(LANES)));
            const small bytes = __builtin_convertvector(code, small);
            memcpy(codes + part * LANES, &bytes, LANES);
            total += code;
        }
        int32_t all = 0;
        for (int i = 0; i < LANES; ++i) all += total[i];
        const int64_t block = row * to.block_stride + first + b;
        to.scales[block] = extent / 127;
        to.totals[block] = all;
        to.sums[block] = extent / 127 * static_cast<float>(all);
    }
}

typedef uint8_t bytes __attribute__((vector_size(LANES * 4)));
typedef uint8_t loose_bytes __attribute__((vector_size(LANES * 4), aligned(1)));

#if defined(ISA_avx512)
#define WITH_DOT __attribute__((target("avx512vnni")))
#else
#define WITH_DOT
#endif

static inline int32_t four(const int8_t* p) {
    int32_t together;
    memcpy(&together, p, 4);
    return together;
}

// Adds the products of 4 columns: weights of LANES rows, which are unsigned, and 4 inputs. WIDE: weights above 15.
template <bool WIDE>
WITH_DOT static inline ivec add_four(ivec total, bytes weights, const int8_t* inputs) {
#if defined(ISA_avx512)
    return (ivec)_mm512_dpbusd_epi32((__m512i)total, (__m512i)weights, _mm512_set1_epi32(four(inputs)));
#elif defined(ISA_avx2)
    const __m256i x = _mm256_set1_epi32(four(inputs)), ones = _mm256_set1_epi16(1);
    __m256i pairs;
    if constexpr (WIDE) {  // two products of 255 · 127 would overflow 16 bits, those of signed bytes do not
        const __m256i weight = (__m256i)(weights ^ 0x80);
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weight), _mm256_sign_epi8(x, weight));
    } else {
        pairs = _mm256_maddubs_epi16((__m256i)weights, x);
    }
    return total + (ivec)_mm256_madd_epi16(pairs, ones);
#else
    typedef uint8_t eight_bytes __attribute__((vector_size(8)));
    typedef int16_t eight_shorts __attribute__((vector_size(16)));
    eight_bytes halves[2];
    memcpy(halves, &weights, 16);
    const auto x = static_cast<int16_t>(inputs[0]), y = static_cast<int16_t>(inputs[1]);
    const auto z = static_cast<int16_t>(inputs[2]), w = static_cast<int16_t>(inputs[3]);
    const eight_shorts repeated = {x, y, z, w, x, y, z, w};
    ivec pairs[2];
    for (int half = 0; half < 2; ++half) {
        const eight_shorts wide = __builtin_convertvector(halves[half], eight_shorts);
#if defined(__x86_64__)
        pairs[half] = (ivec)_mm_madd_epi16((__m128i)wide, (__m128i)repeated);
#else
        for (int i = 0; i < 4; ++i)
            pairs[half][i] = int32_t(wide[2 * i]) * repeated[2 * i] + int32_t(wide[2 * i + 1]) * repeated[2 * i + 1];
#endif
    }
    return total + __builtin_shufflevector(pairs[0], pairs[1], 0, 2, 4, 6) +
           __builtin_shufflevector(pairs[0], pairs[1], 1, 3, 5, 7);
#endif
}

// What `add_four` computes for a weight of 0, per unit of input: the offset of the codes.
template <Storage STORAGE>
constexpr int offset() {
#if defined(ISA_avx2)
    return STORAGE == Storage::q4_0 ? 8 : 0;
#else
    return STORAGE == Storage::q8_0 ? 128 : STORAGE == Storage::q4_0 ? 8 : 0;
#endif
}

// PANELS consecutive panels for TOKENS inputs, the first of which is row `token` of x.
template <Storage STORAGE, int PANELS, int TOKENS>
WITH_DOT static void panel_tile(const Weights& weights, int64_t panel, const Inputs& x, int64_t token, float* out,
                                int64_t stride) {
    constexpr int PARTS = PANEL_ROWS / LANES, REGISTERS_OUT = PANELS * PARTS;
    constexpr bool WIDE = STORAGE == Storage::q8_0;
    constexpr int64_t CODES = WIDE ? 512 : 256;
    const int64_t blocks = weights.blocks(), size = weights.panel_bytes();
    const uint8_t* scales = weights.panels + panel * size;
    const uint8_t* codes = scales + weights.scale_bytes();
    const int8_t* inputs = x.codes + token * x.code_stride;
    const float *input_scales = x.scales + token * x.block_stride, *input_sums = x.sums + token * x.block_stride;
    const int32_t* input_totals = x.totals + token * x.block_stride;
    vec total[TOKENS][REGISTERS_OUT] = {};
    for (int64_t b = 0; b < blocks; ++b) {
        ivec dots[TOKENS][REGISTERS_OUT];
        EACH (int t = 0; t < TOKENS; ++t) {
            const int32_t start = offset<STORAGE>() ? -offset<STORAGE>() * input_totals[t * x.block_stride + b] : 0;
            EACH (int r = 0; r < REGISTERS_OUT; ++r) dots[t][r] = start - ivec{};
        }
        EACH (int g = 0; g < (WIDE ? 8 : 4); ++g)
            EACH (int r = 0; r < REGISTERS_OUT; ++r) {
                const uint8_t* from = codes + (r / PARTS) * size + b * CODES + g * 64 + (r % PARTS) * LANES * 4;
                const bytes both = *reinterpret_cast<const loose_bytes*>(from);
                if constexpr (WIDE) {
                    EACH (int t = 0; t < TOKENS; ++t)
                        dots[t][r] =
                            add_four<true>(dots[t][r], both, inputs + t * x.code_stride + b * BLOCK_VALUES + g * 4);
                } else {
                    const bytes low = both & 15, high = (bytes)((ivec)both >> 4) & 15;
                    EACH (int t = 0; t < TOKENS; ++t) {
                        const int8_t* column = inputs + t * x.code_stride + b * BLOCK_VALUES + g * 4;
                        dots[t][r] = add_four<false>(dots[t][r], low, column);
                        dots[t][r] = add_four<false>(dots[t][r], high, column + BLOCK_VALUES / 2);
                    }
                }
            }
        EACH (int r = 0; r < REGISTERS_OUT; ++r) {
            const auto* at =
                reinterpret_cast<const uint16_t*>(scales + (r / PARTS) * size) + b * PANEL_ROWS + (r % PARTS) * LANES;
            const vec scale = load_half(at);
            EACH (int t = 0; t < TOKENS; ++t)
                total[t][r] +=
                    __builtin_convertvector(dots[t][r], vec) * (scale * input_scales[t * x.block_stride + b]);
            if constexpr (STORAGE == Storage::q4_1) {
                const vec least = load_half(at + blocks * PANEL_ROWS);
                EACH (int t = 0; t < TOKENS; ++t) total[t][r] += least * input_sums[t * x.block_stride + b];
            }
        }
    }
    EACH (int t = 0; t < TOKENS; ++t)
        EACH (int r = 0; r < REGISTERS_OUT; ++r) store_loose(out + t * stride + r * LANES, total[t][r]);
}

// Panels of a tile for one token, and tokens of a tile for one panel. Each panel is a separate memory stream, and
// several hide the latency of the memory better than one.
constexpr int TILE = LANES >= 8 ? 8 : 4;

// As many panels at once as are left, for one token.
template <Storage STORAGE, int PANELS>
static void one_token(const Weights& weights, int64_t panel, int64_t last, const Inputs& x, float* out) {
    for (; panel + PANELS <= last; panel += PANELS, out += PANELS * PANEL_ROWS)
        panel_tile<STORAGE, PANELS, 1>(weights, panel, x, 0, out, 0);
    if constexpr (PANELS > 1)
        if (panel < last) one_token<STORAGE, PANELS / 2>(weights, panel, last, x, out);
}

template <Storage STORAGE, int TOKENS>
static void last_tokens(int64_t tokens, const Weights& weights, int64_t panel, const Inputs& x, int64_t token,
                        float* out, int64_t stride) {
    if constexpr (TOKENS > 0) {
        if (tokens == TOKENS) panel_tile<STORAGE, 1, TOKENS>(weights, panel, x, token, out, stride);
        else last_tokens<STORAGE, TOKENS - 1>(tokens, weights, panel, x, token, out, stride);
    }
}

template <Storage STORAGE>
static void all_panels(const Weights& weights, int64_t first, int64_t last, const Inputs& x, int64_t tokens, float* out,
                       int64_t stride) {
    if (tokens == 1) return one_token<STORAGE, TILE>(weights, first, last, x, out);
    for (int64_t panel = first; panel < last; ++panel, out += PANEL_ROWS)  // a panel stays in the cache for all tokens
        for (int64_t t = 0; t < tokens; t += TILE) {
            const int64_t left = tokens - t < TILE ? tokens - t : TILE;
            last_tokens<STORAGE, TILE>(left, weights, panel, x, t, out + t * stride, stride);
        }
}

static void multiply_panels(const Weights& weights, int64_t first, int64_t last, const Inputs& x, int64_t tokens,
                            float* out, int64_t stride) {
    float* from = out;
    if (weights.storage == Storage::q8_0) all_panels<Storage::q8_0>(weights, first, last, x, tokens, out, stride);
    else if (weights.storage == Storage::q4_0) all_panels<Storage::q4_0>(weights, first, last, x, tokens, out, stride);
    else all_panels<Storage::q4_1>(weights, first, last, x, tokens, out, stride);
    if (!weights.bias) return;
    const int64_t begin = first * PANEL_ROWS, end = last * PANEL_ROWS < weights.out ? last * PANEL_ROWS : weights.out;
    for (int64_t t = 0; t < tokens; ++t)
        for (int64_t i = begin; i < end; ++i) from[t * stride + i - begin] += weights.bias[i];
}

}  // namespace ISA
}  // namespace firth
