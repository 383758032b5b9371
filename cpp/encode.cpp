// The arithmetic of `Encoder` around its products: attention, norms, activations, pooling; and the order of it all.
#include "encoder.h"

#include "tiles.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int64_t BLOCK = 96;  // rows that the wide layer is computed for at a time, so that they stay in the cache

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

// out = the norm of (x + added); columns behind `dim` are zeros and stay so.
static void add_and_norm(const float* x, const float* added, int64_t rows, int64_t dim, const float* gain,
                         const float* shift, float epsilon, float* out) {
    const int64_t whole = dim / LANES * LANES, width = padded(dim), stride = stride_of(dim);
    for (int64_t row = 0; row < rows; ++row, x += stride, out += stride) {
        vec total = {};
        for (int64_t c = 0; c < width; c += LANES) {
            const vec value = added ? load(x + c) + load(added + row * stride + c) : load(x + c);
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
    const int64_t width = stride_of(net.dim), block = tokens < BLOCK ? tokens : BLOCK;
    const int64_t widest = stride_of(3 * net.dim) * tokens, wide = stride_of(net.hidden) * block;
    const int64_t deepest = width > stride_of(net.hidden) ? width : stride_of(net.hidden);
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
    bytes.stride = stride_of(linear.in) * Bytes::SIZE;
    to_bytes<Bytes>(x, stride, rows, padded(linear.in), bytes);
    multiply_bytes<Bytes>(bytes, rows, linear, out, out_stride);
}

static void apply(const EncoderNet& net, const Linear& linear, const float* x, int64_t rows, const Rows& bytes,
                  float* out) {
    const int64_t stride = stride_of(linear.in), out_stride = stride_of(linear.out);
    if (!net.bytes)
        multiply(x, rows, stride, static_cast<const float*>(linear.weights), linear.in, padded(linear.out) / PANEL,
                 linear.bias, out, out_stride);
    else if (by_fours()) linear_bytes<Fours>(linear, x, stride, rows, bytes, out, out_stride);
    else linear_bytes<Twos>(linear, x, stride, rows, bytes, out, out_stride);
}

static void layer(const EncoderNet& net, const EncoderLayer& weights, const EncoderChunk& chunk, int64_t tokens,
                  const Room& room) {
    const int64_t width = stride_of(net.dim), across = stride_of(3 * net.dim), wide = stride_of(net.hidden);
    apply(net, weights.query_key_value, room.x, tokens, room.bytes, room.wide);
    for (int64_t t = 0; t < chunk.texts; ++t)
        attend(net, room.wide + chunk.starts[t] * across, across, chunk.starts[t + 1] - chunk.starts[t],
               room.mixed + chunk.starts[t] * width, width, room.attention);
    apply(net, weights.output, room.mixed, tokens, room.bytes, room.added);
    add_and_norm(room.x, room.added, tokens, net.dim, weights.attention_gain, weights.attention_shift,
                 net.epsilon, room.x);
    for (int64_t row = 0; row < tokens; row += BLOCK) {
        const int64_t rows = tokens - row < BLOCK ? tokens - row : BLOCK;
        float* x = room.x + row * width;
        apply(net, weights.wide, x, rows, room.bytes, room.wide);
        for (int64_t i = 0; i < rows * wide; i += LANES)
            store(room.wide + i, activated(load(room.wide + i), net.activation));
        apply(net, weights.back, room.wide, rows, room.bytes, room.added);
        add_and_norm(x, room.added, rows, net.dim, weights.feed_gain, weights.feed_shift, net.epsilon, x);
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
    const int64_t tokens = chunk.starts[chunk.texts], width = stride_of(net.dim);
    int64_t longest = 0, column = 0;
    for (int64_t t = 0; t < chunk.texts; ++t) {
        const int64_t length = chunk.starts[t + 1] - chunk.starts[t];
        longest = length > longest ? length : longest;
    }
    const Room room = divided(net, tokens, longest, from);
    read_tokens(net, chunk, room.x, width);
    for (int64_t i = 0; i < tokens * width; i += LANES) store(room.mixed + i, vec{});  // its padding stays 0
    add_and_norm(room.x, nullptr, tokens, net.dim, net.gain, net.shift, net.epsilon, room.x);
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
