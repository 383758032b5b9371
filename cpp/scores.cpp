// Scores of a block of rows with several queries: small matrix products with the tile of results in registers.
//
// A panel holds LANES queries, interleaved element by element. Each element of a row is broadcast to all lanes and
// multiplied with that element of one or two panels. So nothing is summed across lanes, and rows are read in place.
#include "search.h"
#include "vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace firth {
namespace ISA {

constexpr int TILE = REGISTERS == 32 ? 12 : 6;  // rows; their sums with two panels fill the registers
static_assert(DOZEN % TILE == 0, "rows come in whole tiles");

static void pack(const float* queries, int count, int64_t dim, float* panels) {
    const int number = (count + LANES - 1) / LANES;
    for (int p = 0; p < number; ++p)
        for (int64_t d = 0; d < dim; ++d)
            for (int lane = 0; lane < LANES; ++lane) {
                const int q = p * LANES + lane;
                panels[(p * dim + d) * LANES + lane] = q < count ? queries[q * dim + d] : 0.0f;
            }
}

template <int PANELS, bool SQUARED>
static void tile(const float* const* rows, int64_t dim, const float* panels, float* out, int64_t width) {
    vec sum[TILE][PANELS] = {};
    for (int64_t d = 0; d < dim; ++d) {
        vec query[PANELS];
        EACH (int p = 0; p < PANELS; ++p) query[p] = load(panels + (p * dim + d) * LANES);
        EACH (int r = 0; r < TILE; ++r) {
            const vec x = splat(rows[r][d]);
            EACH (int p = 0; p < PANELS; ++p) {
                if (SQUARED) {
                    const vec difference = x - query[p];
                    sum[r][p] -= difference * difference;
                } else {
                    sum[r][p] += x * query[p];
                }
            }
        }
    }
    EACH (int r = 0; r < TILE; ++r)
        EACH (int p = 0; p < PANELS; ++p) store_loose(out + r * width + p * LANES, sum[r][p]);
}

static void floats(const float* const* rows, int count, int64_t dim, const float* panels, int queries, bool squared,
                   float* out, int64_t width) {
    const int number = (queries + LANES - 1) / LANES;
    for (int r = 0; r < count; r += TILE) {
        for (int p = 0; p < number; p += 2) {
            const float* panel = panels + p * dim * LANES;
            float* where = out + r * width + p * LANES;
            if (p + 1 < number)
                squared ? tile<2, true>(rows + r, dim, panel, where, width)
                        : tile<2, false>(rows + r, dim, panel, where, width);
            else
                squared ? tile<1, true>(rows + r, dim, panel, where, width)
                        : tile<1, false>(rows + r, dim, panel, where, width);
        }
    }
}

// Few queries: lanes run along_row the row, and rows are read sequentially, which is fastest for memory.
constexpr int ROWS = 4;  // rows whose lanes are summed together; divides TILE

template <int QUERIES, bool SQUARED>
static void along_row(const float* const* rows, int64_t dim, const float* queries, int64_t stride, float* out,
                      int64_t width) {
    constexpr int CHAINS = 4 / QUERIES;  // independent sums hide the latency of additions
    vec total[ROWS * QUERIES];
    EACH (int r = 0; r < ROWS; ++r) {
        const float* row = rows[r];
        vec sum[QUERIES][CHAINS] = {};
        const auto step = [&](vec x, int64_t d, int chain) {
            EACH (int q = 0; q < QUERIES; ++q) {
                const vec query = load(queries + q * stride + d);
                if (SQUARED) {
                    const vec difference = x - query;
                    sum[q][chain] -= difference * difference;
                } else {
                    sum[q][chain] += x * query;
                }
            }
        };
        int64_t d = 0;
        for (; d + CHAINS * LANES <= dim; d += CHAINS * LANES)
            EACH (int c = 0; c < CHAINS; ++c) step(load_loose(row + d + c * LANES), d + c * LANES, c);
        for (; d + LANES <= dim; d += LANES) step(load_loose(row + d), d, 0);
        if (d < dim) {
            alignas(64) float rest[LANES] = {};
            memcpy(rest, row + d, static_cast<size_t>(dim - d) * 4);
            step(load(rest), d, 0);
        }
        EACH (int q = 0; q < QUERIES; ++q) {
            total[q * ROWS + r] = sum[q][0];
            EACH (int c = 1; c < CHAINS; ++c) total[q * ROWS + r] += sum[q][c];
        }
    }
    alignas(64) float scores_out[ROWS * QUERIES + LANES];
    store_sums<ROWS * QUERIES>(total, scores_out);
    for (int r = 0; r < ROWS; ++r)
        for (int q = 0; q < QUERIES; ++q) out[r * width + q] = scores_out[q * ROWS + r];
}

template <bool SQUARED>
static void score_along_rows(const float* const* rows, int count, int64_t dim, const float* queries, int number,
                             int64_t stride, float* out, int64_t width) {
    for (int r = 0; r < count; r += ROWS) {
        if (number == 1) along_row<1, SQUARED>(rows + r, dim, queries, stride, out + r * width, width);
        else if (number == 2) along_row<2, SQUARED>(rows + r, dim, queries, stride, out + r * width, width);
        else along_row<4, SQUARED>(rows + r, dim, queries, stride, out + r * width, width);
    }
}

static void few(const float* const* rows, int count, int64_t dim, const float* queries, int number, int64_t stride,
                bool squared, float* out, int64_t width) {
    if (squared) score_along_rows<true>(rows, count, dim, queries, number, stride, out, width);
    else score_along_rows<false>(rows, count, dim, queries, number, stride, out, width);
}

// float16 has a sign, 5 exponent bits and 10 fraction bits. Shifted to their float32 positions, the value is too small
// by 2^112, also for subnormals. Infinity and NaN are rejected earlier.
static void widen(const uint16_t* half, int64_t count, float* out) {
#if !defined(ISA_avx512)
    typedef uint16_t halves __attribute__((vector_size(LANES * 2), aligned(2)));
    const vec up = splat(5.192296858534828e33f);
#endif
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
#if defined(ISA_avx512)
        const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(half + i));
        store_loose(out + i, (vec)_mm512_maskz_cvtph_ps(0xffff, halves));
#else
        const ivec bits = __builtin_convertvector(*reinterpret_cast<const halves*>(half + i), ivec);
        const vec size = (vec)((bits & 0x7fff) << 13) * up;
        store_loose(out + i, (vec)((ivec)size | ((bits & 0x8000) << 16)));
#endif
    }
    for (; i < count; ++i) {
        const uint32_t bits = half[i], shifted = (bits & 0x7fff) << 13;
        float size;
        memcpy(&size, &shifted, 4);
        size *= 5.192296858534828e33f;
        out[i] = bits & 0x8000 ? -size : size;
    }
}

#if defined(ISA_avx512)
// VNNI: 64 products of unsigned and signed bytes per instruction. Queries are made unsigned by adding 128, which is
// subtracted again by the sums of the rows' codes. (Processors without VNNI use the AVX2 kernel for codes.)
constexpr int GROUP = 4;  // values per lane
typedef uint8_t query_code;
constexpr int SHIFT = 128;

constexpr int STEP = LANES * GROUP;  // codes per vector
#define CODES_TARGET __attribute__((target("avx512vnni")))

static inline CODES_TARGET ivec step_codes(ivec sum, const int8_t* row, const query_code* query) {
    return (ivec)_mm512_dpbusd_epi32((__m512i)sum, _mm512_load_si512(query), _mm512_loadu_si512(row));
}

template <int PANELS>
static CODES_TARGET void code_tile(const int8_t* const* rows, const int32_t* sums, int64_t dim,
                                   const query_code* panels, float* out, int64_t width) {
    ivec sum[TILE][PANELS];
    EACH (int r = 0; r < TILE; ++r)
        EACH (int p = 0; p < PANELS; ++p) sum[r][p] = -SHIFT * sums[r] - ivec{};
    for (int64_t d = 0; d < dim; d += GROUP) {
        __m512i query[PANELS];
        EACH (int p = 0; p < PANELS; ++p) query[p] = _mm512_load_si512(panels + (p * dim + d) * LANES);
        EACH (int r = 0; r < TILE; ++r) {
            int32_t four;
            memcpy(&four, rows[r] + d, 4);
            const __m512i x = _mm512_set1_epi32(four);
            EACH (int p = 0; p < PANELS; ++p) sum[r][p] = (ivec)_mm512_dpbusd_epi32((__m512i)sum[r][p], query[p], x);
        }
    }
    EACH (int r = 0; r < TILE; ++r)
        EACH (int p = 0; p < PANELS; ++p)
            store_loose(out + r * width + p * LANES, __builtin_convertvector(sum[r][p], vec));
}
#else
// Multiplies and adds pairs of 16-bit values: exact, and available in every instruction set.
constexpr int GROUP = 2;
typedef int16_t query_code;
constexpr int SHIFT = 0;

static inline ivec pair_products(ivec a, ivec b) {
#if defined(ISA_avx2)
    return (ivec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
    return (ivec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

constexpr int STEP = LANES * GROUP;
#define CODES_TARGET

static inline ivec step_codes(ivec sum, const int8_t* row, const query_code* query) {
    typedef int8_t bytes __attribute__((vector_size(STEP), aligned(1)));
    typedef int16_t pairs __attribute__((vector_size(STEP * 2)));
    const pairs wide = __builtin_convertvector(*reinterpret_cast<const bytes*>(row), pairs);
    return sum + pair_products((ivec)wide, *reinterpret_cast<const ivec*>(query));
}

template <int PANELS>
static void code_tile(const int8_t* const* rows, const int32_t*, int64_t dim, const query_code* panels, float* out,
                      int64_t width) {
    ivec sum[TILE][PANELS] = {};
    for (int64_t d = 0; d < dim; d += GROUP) {
        ivec query[PANELS];
        EACH (int p = 0; p < PANELS; ++p) query[p] = *reinterpret_cast<const ivec*>(panels + (p * dim + d) * LANES);
        EACH (int r = 0; r < TILE; ++r) {
            const uint32_t low = static_cast<uint16_t>(rows[r][d]), high = static_cast<uint16_t>(rows[r][d + 1]);
            const ivec x = static_cast<int32_t>(low | high << 16) - ivec{};
            EACH (int p = 0; p < PANELS; ++p) sum[r][p] += pair_products(query[p], x);
        }
    }
    EACH (int r = 0; r < TILE; ++r)
        EACH (int p = 0; p < PANELS; ++p)
            store_loose(out + r * width + p * LANES, __builtin_convertvector(sum[r][p], vec));
}
#endif

// As `along_row`, for codes: the query as `query_code`, padded with (shifted) zeros.
static CODES_TARGET void codes_along_row(const int8_t* const* rows, const int32_t* sums, int64_t dim,
                                         const query_code* query, float* out, int64_t width) {
    vec total[ROWS];
    EACH (int r = 0; r < ROWS; ++r) {
        const int8_t* row = rows[r];
        ivec sum = {};
        sum[0] = -SHIFT * sums[r];
        int64_t d = 0;
        for (; d + STEP <= dim; d += STEP) sum = step_codes(sum, row + d, query + d);
        if (d < dim) {
            alignas(64) int8_t rest[STEP] = {};
            memcpy(rest, row + d, static_cast<size_t>(dim - d));
            sum = step_codes(sum, rest, query + d);
        }
        total[r] = __builtin_convertvector(sum, vec);
    }
    alignas(64) float scores_out[ROWS + LANES];
    store_sums<ROWS>(total, scores_out);
    for (int r = 0; r < ROWS; ++r) out[r * width] = scores_out[r];
}

static inline int64_t whole_steps(int64_t dim) { return (dim + STEP - 1) / STEP * STEP; }

// Few queries are packed one after the other, more of them into panels.
static void pack_codes(const int8_t* queries, int count, int64_t dim, void* room) {
    auto* panels = static_cast<query_code*>(room);
    if (count <= FEW) {
        const int64_t stride = whole_steps(dim);
        for (int q = 0; q < count; ++q)
            for (int64_t d = 0; d < stride; ++d)
                panels[q * stride + d] = static_cast<query_code>(SHIFT + (d < dim ? queries[q * dim + d] : 0));
        return;
    }
    const int number = (count + LANES - 1) / LANES;
    for (int p = 0; p < number; ++p)
        for (int64_t d = 0; d < dim; d += GROUP)
            for (int lane = 0; lane < LANES; ++lane) {
                const int q = p * LANES + lane;
                for (int i = 0; i < GROUP; ++i)
                    panels[(p * dim + d) * LANES + lane * GROUP + i] =
                        static_cast<query_code>(SHIFT + (q < count ? queries[q * dim + d + i] : 0));
            }
}

static void codes(const int8_t* const* rows, const int32_t* sums, int count, int64_t dim, const void* room, int queries,
                  float* out, int64_t width) {
    const auto* panels = static_cast<const query_code*>(room);
    if (queries <= FEW) {
        for (int q = 0; q < queries; ++q)
            for (int r = 0; r < count; r += ROWS)
                codes_along_row(rows + r, sums + r, dim, panels + q * whole_steps(dim), out + r * width + q, width);
        return;
    }
    const int number = (queries + LANES - 1) / LANES;
    for (int r = 0; r < count; r += TILE) {
        for (int p = 0; p < number; p += 2) {
            const query_code* panel = panels + p * dim * LANES;
            float* where = out + r * width + p * LANES;
            if (p + 1 < number) code_tile<2>(rows + r, sums + r, dim, panel, where, width);
            else code_tile<1>(rows + r, sums + r, dim, panel, where, width);
        }
    }
}

extern const Scores scores;
const Scores scores = {LANES, pack, floats, few, pack_codes, codes, widen};

}  // namespace ISA
}  // namespace firth
