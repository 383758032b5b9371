// The arithmetic of `Encoder`: matrix products on packed weights, attention, norms; in floats or in bytes.
#include "encoder.h"

#include "vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace firth {
namespace ISA {

constexpr int PANEL = 2 * LANES;  // columns that a tile of the result has
#if defined(ISA_avx512)
constexpr int TILE = 12;  // rows: 24 sums in registers, two vectors of weights, one of inputs
#else
constexpr int TILE = 6;
#endif
constexpr int64_t BLOCK = 96;  // rows that the wide layer is computed for at a time, so that they stay in the cache

#define UNROLL _Pragma("GCC unroll 16")  // sums that a loop walks over would stand in memory

typedef int16_t shorts __attribute__((vector_size(LANES * 4)));
typedef uint8_t small_vec __attribute__((vector_size(LANES)));
typedef int16_t short_vec __attribute__((vector_size(LANES * 2)));

static inline vec load_loose(const float* p) { return *reinterpret_cast<const loose_vec*>(p); }
static inline vec larger(vec a, vec b) { return choose(a > b, a, b); }
static inline vec smaller(vec a, vec b) { return choose(a < b, a, b); }
static inline int64_t rounded(int64_t count, int64_t to) { return (count + to - 1) / to * to; }
static int64_t padded(int64_t columns) { return rounded(columns, PANEL); }

// Where the processor multiplies bytes four at a time; elsewhere they are widened and multiplied two at a time.
static bool by_fours() {
#if defined(ISA_avx512)
    return __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

// ---- packing ----

static int64_t packed_size(const Linear& linear, bool bytes) {
    const int64_t width = padded(linear.out);
    if (!bytes) return linear.in * width * 4;
    return by_fours() ? rounded(linear.in, 4) * width : rounded(linear.in, 2) * width * 2;
}

static void pack_floats(Linear& linear) {
    float* to = static_cast<float*>(linear.weights);
    for (int64_t first = 0; first < padded(linear.out); first += PANEL)
        for (int64_t k = 0; k < linear.in; ++k)
            for (int64_t o = first; o < first + PANEL; ++o)
                *to++ = o < linear.out ? linear.given[o * linear.in + k] : 0.0f;
}

template <class Number, int GROUP>
static void pack_groups(Linear& linear) {
    Number* to = static_cast<Number*>(linear.weights);
    for (int64_t first = 0; first < padded(linear.out); first += PANEL)
        for (int64_t k = 0; k < linear.in; k += GROUP)
            for (int64_t o = first; o < first + PANEL; ++o)
                for (int64_t j = k; j < k + GROUP; ++j) {
                    const bool real = o < linear.out && j < linear.in;
                    const float scaled = real ? linear.given[o * linear.in + j] / linear.scales[o] : 0.0f;
                    const int whole = static_cast<int>(scaled + (scaled < 0 ? -0.5f : 0.5f));
                    *to++ = static_cast<Number>(whole);
                    linear.sums[o] += whole;
                }
}

static void pack(Linear& linear, bool bytes) {
    for (int64_t o = 0; o < padded(linear.out); ++o) linear.bias[o] = o < linear.out ? linear.given_bias[o] : 0.0f;
    if (!bytes) {
        pack_floats(linear);
        return;
    }
    for (int64_t o = 0; o < padded(linear.out); ++o) {
        float greatest = 0;
        for (int64_t k = 0; o < linear.out && k < linear.in; ++k) {
            const float size = __builtin_fabsf(linear.given[o * linear.in + k]);
            greatest = size > greatest ? size : greatest;
        }
        linear.scales[o] = greatest > 0 ? greatest / 127 : 1;
        linear.sums[o] = 0;
    }
    if (by_fours()) pack_groups<int8_t, 4>(linear);
    else pack_groups<int16_t, 2>(linear);
}

// ---- products ----

// ROWS rows of `a` (broadcast number by number) times one panel of `depth` rows, each PANEL wide.
template <int ROWS>
static void tile(const float* a, int64_t stride, const float* panel, int64_t depth, const float* bias, float* out,
                 int64_t out_stride) {
    vec sum[ROWS][2];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        sum[r][0] = bias ? load(bias) : vec{};
        sum[r][1] = bias ? load(bias + LANES) : vec{};
    }
    for (int64_t k = 0; k < depth; ++k, panel += PANEL) {
        const vec left = load(panel), right = load(panel + LANES);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const vec value = splat(a[r * stride + k]);
            sum[r][0] += value * left;
            sum[r][1] += value * right;
        }
    }
    UNROLL for (int r = 0; r < ROWS; ++r) {
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

// While a panel meets the rows tile by tile, the next one is brought near, a share of it at each tile.
static inline void fetch(const void* panel, int64_t bytes, int64_t row, int64_t rows) {
    const int64_t share = (bytes * TILE / rows + 63) / 64 * 64, first = row / TILE * share;
    const char* from = static_cast<const char*>(panel) + first;
    for (int64_t i = 0; i < share && first + i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
}

// `panels` panels one behind the other.
static void multiply(const float* a, int64_t rows, int64_t stride, const float* weights, int64_t depth, int64_t panels,
                     const float* bias, float* out, int64_t out_stride) {
    for (int64_t p = 0; p < panels; ++p, weights += depth * PANEL) {
        const float* from = bias ? bias + p * PANEL : nullptr;
        for (int64_t row = 0; row < rows; row += TILE) {
            const int64_t left = rows - row < TILE ? rows - row : TILE;
            if (p + 1 < panels) fetch(weights + depth * PANEL, depth * PANEL * 4, row, rows);
            last_tile(left, a + row * stride, stride, weights, depth, from, out + row * out_stride + p * PANEL,
                      out_stride);
        }
    }
}

// Rows in bytes: x is about scale · (byte - zero).
struct Rows {
    uint8_t* bytes;  // or 16 bits each
    int64_t stride;  // in bytes
    float* scales;
    float* zeros;
};

// The sums of one tile become floats.
template <int ROWS>
static inline void finish(const ivec (*sum)[2], const Linear& linear, int64_t column, const float* scales,
                          const float* zeros, float* out, int64_t out_stride) {
    UNROLL for (int half = 0; half < 2; ++half) {
        const int64_t at = column + half * LANES;
        const vec scale = load(linear.scales + at), bias = load(linear.bias + at);
        const vec sums = __builtin_convertvector(*reinterpret_cast<const ivec*>(linear.sums + at), vec);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const vec whole = __builtin_convertvector(sum[r][half], vec) - sums * zeros[r];
            store(out + r * out_stride + half * LANES, whole * (scale * scales[r]) + bias);
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

// Products of 16 bits, two at a time.
struct Twos {
    static constexpr int GROUP = 2, SIZE = 2;

    template <int ROWS>
    static void tile(const uint8_t* a, int64_t stride, const Linear& linear, int64_t p, const float* scales,
                     const float* zeros, float* out, int64_t out_stride) {
        const int64_t groups = (linear.in + 1) / 2;
        const shorts* panel = static_cast<const shorts*>(linear.weights) + p * groups * 2;
        ivec sum[ROWS][2] = {};
        for (int64_t k = 0; k < groups; ++k, panel += 2)
            UNROLL for (int r = 0; r < ROWS; ++r) {
                const shorts value = twice(a + r * stride + k * 4);
                sum[r][0] = add_products(sum[r][0], value, panel[0]);
                sum[r][1] = add_products(sum[r][1], value, panel[1]);
            }
        finish<ROWS>(sum, linear, p * PANEL, scales, zeros, out, out_stride);
    }
};

#if defined(ISA_avx512)
// Products of 8 bits, four at a time (VNNI): unsigned inputs, signed weights.
struct Fours {
    static constexpr int GROUP = 4, SIZE = 1;

    template <int ROWS>
    __attribute__((target("avx512vnni"))) static void tile(const uint8_t* a, int64_t stride, const Linear& linear,
                                                           int64_t p, const float* scales, const float* zeros,
                                                           float* out, int64_t out_stride) {
        const int64_t groups = (linear.in + 3) / 4;
        const __m512i* panel = static_cast<const __m512i*>(linear.weights) + p * groups * 2;
        ivec sum[ROWS][2] = {};
        for (int64_t k = 0; k < groups; ++k, panel += 2) {
            const __m512i left = panel[0], right = panel[1];
            UNROLL for (int r = 0; r < ROWS; ++r) {
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
static void multiply_bytes(const Rows& x, int64_t rows, const Linear& linear, float* out, int64_t out_stride) {
    const int64_t panels = padded(linear.out) / PANEL;
    const int64_t size = rounded(linear.in, Bytes::GROUP) * PANEL * Bytes::SIZE;
    const char* weights = static_cast<const char*>(linear.weights);
    for (int64_t p = 0; p < panels; ++p)
        for (int64_t row = 0; row < rows; row += TILE) {
            const int64_t left = rows - row < TILE ? rows - row : TILE;
            if (p + 1 < panels) fetch(weights + (p + 1) * size, size, row, rows);
            last_bytes_tile<Bytes>(left, x.bytes + row * x.stride, x.stride, linear, p, x.scales + row, x.zeros + row,
                                   out + row * out_stride + p * PANEL, out_stride);
        }
}

template <class Bytes>
static void to_bytes(const float* from, int64_t stride, int64_t rows, int64_t columns, const Rows& to) {
    for (int64_t row = 0; row < rows; ++row, from += stride) {
        vec low = {}, high = {};  // what lies behind the columns is 0
        for (int64_t c = 0; c < columns; c += LANES) {
            low = smaller(low, load(from + c));
            high = larger(high, load(from + c));
        }
        float least = 0, most = 0;
        for (int i = 0; i < LANES; ++i) {
            least = low[i] < least ? low[i] : least;
            most = high[i] > most ? high[i] : most;
        }
        const float scale = most > least ? (most - least) / 255 : 1;
        const float zero = static_cast<float>(static_cast<int>(0.5f - least / scale));
        to.scales[row] = scale;
        to.zeros[row] = zero;
        uint8_t* bytes = to.bytes + row * to.stride;
        for (int64_t c = 0; c < columns; c += LANES) {
            vec value = load(from + c) * (1 / scale) + (zero + 0.5f);  // rounded when its fraction is cut off
            value = smaller(larger(value, vec{}), splat(255.0f));
            const ivec whole = __builtin_convertvector(value, ivec);
            if constexpr (Bytes::SIZE == 1) {
                const small_vec small = __builtin_convertvector(whole, small_vec);
                memcpy(bytes + c, &small, LANES);
            } else {
                const short_vec small = __builtin_convertvector(whole, short_vec);
                memcpy(bytes + 2 * c, &small, 2 * LANES);
            }
        }
    }
}

// ---- what stands between products ----

// x Φ(x) to 1e-6. Φ(x) = ½ + x q(x²) up to 5.3, where q is a polynomial of degree 14 in x² moved to [-1, 1], found by
// least squares at Chebyshev's points; beyond, Φ is 0 or 1 within 6e-8.
constexpr float GELU[] = {
    0.000275117985f, -0.000761715462f, 0.000761078496f, -0.00110510539f, 0.00309642451f,
    -0.00583836297f, 0.00885330047f, -0.0131919552f, 0.0189174991f, -0.0252965f,
    0.0320808217f, -0.0395891406f, 0.0492640883f, -0.0665185004f, 0.133392558f,
};

static inline vec gelu_vec(vec x) {
    const vec near = smaller(larger(x, splat(-5.3f)), splat(5.3f));
    const vec t = near * near * (2 / (5.3f * 5.3f)) - 1.0f;
    vec q = splat(GELU[0]);
    UNROLL for (int i = 1; i < 15; ++i) q = q * t + GELU[i];
    return x * (0.5f + near * q);
}

static inline vec activated(vec x, Activation kind) {
    if (kind == Activation::relu) return larger(x, vec{});
    if (kind == Activation::gelu) return gelu_vec(x);
    const vec inside = 0.79788456f * (x + 0.044715f * x * x * x);
    return x - x / (1.0f + exp_vec(2.0f * inside));  // ½ x (1 + tanh)
}

// out = the norm of (x + added); x and out have `width` columns, the last of them zeros.
static void add_and_norm(const float* x, const float* added, int64_t rows, int64_t dim, int64_t width,
                         const float* gain, const float* shift, float epsilon, float* out) {
    const int64_t whole = dim / LANES * LANES;
    for (int64_t row = 0; row < rows; ++row, x += width, out += width) {
        vec total = {};
        for (int64_t c = 0; c < width; c += LANES) {
            const vec value = added ? load(x + c) + load(added + row * width + c) : load(x + c);
            store(out + c, value);
            total += value;
        }
        const float mean = sum(total) / static_cast<float>(dim);
        vec squares = {};
        for (int64_t c = 0; c < whole; c += LANES) {
            const vec away = load(out + c) - mean;
            squares += away * away;
        }
        float spread = sum(squares);
        for (int64_t c = whole; c < dim; ++c) spread += (out[c] - mean) * (out[c] - mean);
        const float scale = 1 / __builtin_sqrtf(spread / static_cast<float>(dim) + epsilon);
        for (int64_t c = 0; c < width; c += LANES)
            store(out + c, (load(out + c) - mean) * (load(gain + c) * scale) + load(shift + c));
    }
}

// ---- attention ----

struct AttentionRoom {
    float *keys, *values, *scores, *mixed;
};

// Rows of e^(score - greatest); sums[r] is their sum. Scores behind `count` become 0.
static void exponents(float* scores, int64_t stride, int64_t rows, int64_t count, float* sums) {
    for (int64_t r = 0; r < rows; ++r, scores += stride) {
        for (int64_t c = count; c < padded(count); ++c) scores[c] = -1e30f;
        vec high = splat(-1e30f);
        for (int64_t c = 0; c < count; c += LANES) high = larger(high, load(scores + c));
        float greatest = high[0];
        for (int i = 1; i < LANES; ++i) greatest = high[i] > greatest ? high[i] : greatest;
        vec total = {};
        for (int64_t c = 0; c < count; c += LANES) {
            vec value = exp_vec(load(scores + c) - greatest);
            if (c + LANES > count)
                for (int64_t i = count - c; i < LANES; ++i) value[i] = 0;
            store(scores + c, value);
            total += value;
        }
        sums[r] = sum(total);
    }
}

// One text: `qkv` has rows of `stride` with queries (already divided by √d), keys and values of all heads.
static void attend(const EncoderNet& net, const float* qkv, int64_t stride, int64_t length, float* out, int64_t width,
                   const AttentionRoom& room) {
    const int64_t d = net.dim / net.heads, panels = padded(d) / PANEL, across = padded(length);
    for (int64_t head = 0; head < net.heads; ++head) {
        const float* query = qkv + head * d;
        const float* key = query + net.dim;
        const float* value = key + net.dim;
        for (int64_t first = 0; first < across; first += PANEL)  // panels of keys: d rows of PANEL places
            for (int64_t place = first; place < first + PANEL; ++place) {
                float* to = room.keys + first * d + (place - first);
                for (int64_t c = 0; c < d; ++c) to[c * PANEL] = place < length ? key[place * stride + c] : 0.0f;
            }
        for (int64_t p = 0; p < panels; ++p)  // panels of values: a row a place
            for (int64_t place = 0; place < length; ++place) {
                float* to = room.values + (p * length + place) * PANEL;
                for (int64_t c = 0; c < PANEL; ++c)
                    to[c] = p * PANEL + c < d ? value[place * stride + p * PANEL + c] : 0.0f;
            }
        for (int64_t row = 0; row < length; row += TILE) {
            const int64_t rows = length - row < TILE ? length - row : TILE;
            multiply(query + row * stride, rows, stride, room.keys, d, across / PANEL, nullptr, room.scores, across);
            float sums[TILE];
            exponents(room.scores, across, rows, length, sums);
            multiply(room.scores, rows, across, room.values, length, panels, nullptr, room.mixed, panels * PANEL);
            for (int64_t r = 0; r < rows; ++r) {
                float* to = out + (row + r) * width + head * d;
                const float scale = 1 / sums[r];
                for (int64_t c = 0; c < d; ++c) to[c] = room.mixed[r * panels * PANEL + c] * scale;
            }
        }
    }
}

// ---- the whole ----

struct Room {
    float *x, *mixed, *added, *wide, *total;
    AttentionRoom attention;
    Rows bytes;
    int64_t size;
};

static Room divided(const EncoderNet& net, int64_t tokens, int64_t longest, float* from) {
    Room room{};
    const auto take = [&](int64_t floats) {
        float* found = from ? from + room.size : nullptr;
        room.size += rounded(floats, 16);
        return found;
    };
    const int64_t width = padded(net.dim), block = tokens < BLOCK ? tokens : BLOCK;
    const int64_t widest = padded(3 * net.dim) * tokens, wide = padded(net.hidden) * block;
    const int64_t deepest = width > padded(net.hidden) ? width : padded(net.hidden);
    room.x = take(tokens * width);
    room.mixed = take(tokens * width);
    room.added = take(tokens * width);
    room.total = take(tokens * width);
    room.wide = take(widest > wide ? widest : wide);  // holds queries, keys and values too
    room.attention.keys = take(padded(longest) * padded(net.dim / net.heads));
    room.attention.values = take(longest * padded(net.dim / net.heads));
    room.attention.scores = take(TILE * padded(longest));
    room.attention.mixed = take(TILE * padded(net.dim / net.heads));
    if (net.bytes) {
        room.bytes.stride = deepest * 2;
        room.bytes.bytes = reinterpret_cast<uint8_t*>(take(tokens * deepest / 2 + 16));
        room.bytes.scales = take(tokens);
        room.bytes.zeros = take(tokens);
    }
    return room;
}

static int64_t room_size(const EncoderNet& net, int64_t tokens, int64_t longest) {
    return divided(net, tokens, longest, nullptr).size;
}

template <class Bytes>
static void linear_bytes(const Linear& linear, const float* x, int64_t stride, int64_t rows, Rows bytes, float* out,
                         int64_t out_stride) {
    bytes.stride = padded(linear.in) * Bytes::SIZE;
    to_bytes<Bytes>(x, stride, rows, padded(linear.in), bytes);
    multiply_bytes<Bytes>(bytes, rows, linear, out, out_stride);
}

static void apply(const EncoderNet& net, const Linear& linear, const float* x, int64_t rows, const Rows& bytes,
                  float* out) {
    const int64_t stride = padded(linear.in), out_stride = padded(linear.out);
    if (!net.bytes)
        multiply(x, rows, stride, static_cast<const float*>(linear.weights), linear.in, out_stride / PANEL,
                 linear.bias, out, out_stride);
    else if (by_fours()) linear_bytes<Fours>(linear, x, stride, rows, bytes, out, out_stride);
    else linear_bytes<Twos>(linear, x, stride, rows, bytes, out, out_stride);
}

static void layer(const EncoderNet& net, const EncoderLayer& weights, const EncoderChunk& chunk, int64_t tokens,
                  const Room& room) {
    const int64_t width = padded(net.dim), across = padded(3 * net.dim), wide = padded(net.hidden);
    apply(net, weights.query_key_value, room.x, tokens, room.bytes, room.wide);
    for (int64_t t = 0; t < chunk.texts; ++t)
        attend(net, room.wide + chunk.starts[t] * across, across, chunk.starts[t + 1] - chunk.starts[t],
               room.mixed + chunk.starts[t] * width, width, room.attention);
    apply(net, weights.output, room.mixed, tokens, room.bytes, room.added);
    add_and_norm(room.x, room.added, tokens, net.dim, width, weights.attention_gain, weights.attention_shift,
                 net.epsilon, room.x);
    for (int64_t row = 0; row < tokens; row += BLOCK) {
        const int64_t rows = tokens - row < BLOCK ? tokens - row : BLOCK;
        float* x = room.x + row * width;
        apply(net, weights.wide, x, rows, room.bytes, room.wide);
        for (int64_t i = 0; i < rows * wide; i += LANES)
            store(room.wide + i, activated(load(room.wide + i), net.activation));
        apply(net, weights.back, room.wide, rows, room.bytes, room.added);
        add_and_norm(x, room.added, rows, net.dim, width, weights.feed_gain, weights.feed_shift, net.epsilon, x);
    }
}

static void read_tokens(const EncoderNet& net, const EncoderChunk& chunk, float* x, int64_t width) {
    for (int64_t t = 0; t < chunk.texts; ++t)
        for (int64_t i = chunk.starts[t]; i < chunk.starts[t + 1]; ++i) {
            const float* token = net.tokens + chunk.ids[i] * net.dim;
            const float* place = net.positions + (i - chunk.starts[t]) * net.dim;
            float* to = x + i * width;
            for (int64_t c = 0; c < net.dim; ++c) to[c] = token[c] + place[c] + net.segment[c];
            for (int64_t c = net.dim; c < width; ++c) to[c] = 0;
        }
}

// One row a text, from one row a token.
static void pool(const EncoderNet& net, const EncoderAsk& ask, const EncoderChunk& chunk, const float* x, int64_t width,
                 float* out) {
    for (int64_t t = 0; t < chunk.texts; ++t, out += ask.width) {
        const int64_t first = chunk.starts[t], last = chunk.starts[t + 1];
        for (int64_t c = 0; c < net.dim; ++c) out[c] = x[first * width + c];
        if (ask.pool == TokenPool::cls) continue;
        for (int64_t i = first + 1; i < last; ++i) {
            const float* row = x + i * width;
            if (ask.pool == TokenPool::max)
                for (int64_t c = 0; c < net.dim; ++c) out[c] = row[c] > out[c] ? row[c] : out[c];
            else
                for (int64_t c = 0; c < net.dim; ++c) out[c] += row[c];
        }
        if (ask.pool == TokenPool::mean)
            for (int64_t c = 0; c < net.dim; ++c) out[c] /= static_cast<float>(last - first);
    }
}

static void encode(const EncoderNet& net, const EncoderAsk& ask, const EncoderChunk& chunk, float* from) {
    const int64_t tokens = chunk.starts[chunk.texts], width = padded(net.dim);
    int64_t longest = 0, column = 0;
    for (int64_t t = 0; t < chunk.texts; ++t) {
        const int64_t length = chunk.starts[t + 1] - chunk.starts[t];
        longest = length > longest ? length : longest;
    }
    const Room room = divided(net, tokens, longest, from);
    read_tokens(net, chunk, room.x, width);
    for (int64_t i = 0; i < tokens * width; i += LANES) store(room.mixed + i, vec{});  // its padding stays 0
    add_and_norm(room.x, nullptr, tokens, net.dim, width, net.gain, net.shift, net.epsilon, room.x);
    bool begun = false;
    for (int64_t number = 0; number <= ask.highest; ++number) {
        if (number > 0) layer(net, net.blocks[number - 1], chunk, tokens, room);
        const float weight = ask.weights[number];
        if (weight == 0) continue;
        if (ask.concat) {
            pool(net, ask, chunk, room.x, width, chunk.out + column);
            column += net.dim;
            continue;
        }
        for (int64_t i = 0; i < tokens * width; i += LANES) {
            const vec value = weight * load(room.x + i);
            store(room.total + i, begun ? load(room.total + i) + value : value);
        }
        begun = true;
    }
    if (!ask.concat) pool(net, ask, chunk, room.total, width, chunk.out);
}

extern const EncoderKernel encoder_kernel;
const EncoderKernel encoder_kernel = {packed_size, padded, pack, room_size, encode};

}  // namespace ISA
}  // namespace firth
