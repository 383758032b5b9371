// The forward pass of `Encoder`: attention, norms, activations and pooling around the matrix products of tiles.h.
#include "encoder.h"

#include "tiles.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int64_t BLOCK = 96;  // rows of the feed-forward layer computed at a time, so that they stay in the cache

// ---- elementwise operations ----

// x Φ(x) to 1e-6. Φ(x) = ½ + x q(x²) up to 5.3, where q is a polynomial of degree 14 in x² mapped to [-1, 1], fitted by
// least squares at Chebyshev points; beyond, Φ is 0 or 1 within 6e-8.
constexpr float GELU[] = {
    0.000275117985f, -0.000761715462f, 0.000761078496f, -0.00110510539f, 0.00309642451f,
    -0.00583836297f, 0.00885330047f,   -0.0131919552f,  0.0189174991f,   -0.0252965f,
    0.0320808217f,   -0.0395891406f,   0.0492640883f,   -0.0665185004f,  0.133392558f,
};

static inline vec gelu_vec(vec x) {
    const vec near = smaller(larger(x, splat(-5.3f)), splat(5.3f));
    const vec t = near * near * (2 / (5.3f * 5.3f)) - 1.0f;
    vec q = splat(GELU[0]);
    UNROLLED_FOR (int i = 1; i < 15; ++i) q = q * t + GELU[i];
    return x * (0.5f + near * q);
}

static inline vec activate(vec x, Activation activation) {
    if (activation == Activation::relu) return larger(x, vec{});
    if (activation == Activation::gelu) return gelu_vec(x);
    const vec inside = 0.79788456f * (x + 0.044715f * x * x * x);
    return x - x / (1.0f + exp_vec(2.0f * inside));  // ½ x (1 + tanh)
}

// out = layer norm of (x + added); columns beyond `dim` stay zero.
static void add_and_norm(const float* x, const float* added, int64_t rows, int64_t dim, const float* gain,
                         const float* bias, float epsilon, float* out) {
    const int64_t full = dim / LANES * LANES, width = padded(dim), stride = stride_of(dim);
    for (int64_t row = 0; row < rows; ++row, x += stride, out += stride) {
        vec total = {};
        for (int64_t c = 0; c < width; c += LANES) {
            const vec value = added ? load(x + c) + load(added + row * stride + c) : load(x + c);
            store(out + c, value);
            total += value;
        }
        const float mean = sum(total) / static_cast<float>(dim);
        vec squares = {};
        for (int64_t c = 0; c < full; c += LANES) {
            const vec centered = load(out + c) - mean;
            squares += centered * centered;
        }
        float spread = sum(squares);
        for (int64_t c = full; c < dim; ++c) spread += (out[c] - mean) * (out[c] - mean);
        const float scale = 1 / __builtin_sqrtf(spread / static_cast<float>(dim) + epsilon);
        for (int64_t c = 0; c < width; c += LANES)
            store(out + c, (load(out + c) - mean) * (load(gain + c) * scale) + load(bias + c));
    }
}

// ---- attention ----

struct AttentionWorkspace {
    float *keys, *values, *scores, *mixed;
};

// Replaces scores by e^(score - largest); sums[r] is the sum of row r. Scores beyond `count` become 0.
static void exponents(float* scores, int64_t stride, int64_t rows, int64_t count, float* sums) {
    for (int64_t r = 0; r < rows; ++r, scores += stride) {
        for (int64_t c = count; c < padded(count); ++c) scores[c] = -1e30f;
        vec high = splat(-1e30f);
        for (int64_t c = 0; c < count; c += LANES) high = larger(high, load(scores + c));
        float largest = high[0];
        for (int i = 1; i < LANES; ++i) largest = high[i] > largest ? high[i] : largest;
        vec total = {};
        for (int64_t c = 0; c < count; c += LANES) {
            vec value = exp_vec(load(scores + c) - largest);
            if (c + LANES > count)
                for (int64_t i = count - c; i < LANES; ++i) value[i] = 0;
            store(scores + c, value);
            total += value;
        }
        sums[r] = sum(total);
    }
}

// One text: `qkv` has rows of `stride` with queries (already layout by √d), keys and values of all heads.
static void attend(const EncoderNet& net, const float* qkv, int64_t stride, int64_t length, float* out, int64_t width,
                   const AttentionWorkspace& workspace) {
    const int64_t d = net.dim / net.heads, panels = padded(d) / PANEL, across = padded(length);
    for (int64_t head = 0; head < net.heads; ++head) {
        const float* query = qkv + head * d;
        const float* key = query + net.dim;
        const float* value = key + net.dim;
        for (int64_t first = 0; first < across; first += PANEL)  // panels of keys: d rows of PANEL max_positions
            for (int64_t position = first; position < first + PANEL; ++position) {
                float* to = workspace.keys + first * d + (position - first);
                for (int64_t c = 0; c < d; ++c) to[c * PANEL] = position < length ? key[position * stride + c] : 0.0f;
            }
        for (int64_t p = 0; p < panels; ++p)  // panels of values: one row per position
            for (int64_t position = 0; position < length; ++position) {
                float* to = workspace.values + (p * length + position) * PANEL;
                for (int64_t c = 0; c < PANEL; ++c)
                    to[c] = p * PANEL + c < d ? value[position * stride + p * PANEL + c] : 0.0f;
            }
        for (int64_t row = 0; row < length; row += TILE) {
            const int64_t rows = length - row < TILE ? length - row : TILE;
            multiply(query + row * stride, rows, stride, workspace.keys, d, across / PANEL, nullptr, workspace.scores,
                     across);
            float sums[TILE];
            exponents(workspace.scores, across, rows, length, sums);
            multiply(workspace.scores, rows, across, workspace.values, length, panels, nullptr, workspace.mixed,
                     panels * PANEL);
            for (int64_t r = 0; r < rows; ++r) {
                float* to = out + (row + r) * width + head * d;
                const float scale = 1 / sums[r];
                for (int64_t c = 0; c < d; ++c) to[c] = workspace.mixed[r * panels * PANEL + c] * scale;
            }
        }
    }
}

// ---- forward pass ----

struct Workspace {
    float *x, *mixed, *added, *up, *total;
    AttentionWorkspace attention;
    Rows quantized;
    int64_t size;
};

static Workspace layout(const EncoderNet& net, int64_t tokens, int64_t longest, float* from) {
    Workspace workspace{};
    const auto take = [&](int64_t floats) {
        float* block_start = from ? from + workspace.size : nullptr;
        workspace.size += rounded(floats, 16);
        return block_start;
    };
    const int64_t width = stride_of(net.dim), block = tokens < BLOCK ? tokens : BLOCK;
    const int64_t widest = stride_of(3 * net.dim) * tokens, up = stride_of(net.hidden) * block;
    const int64_t deepest = width > stride_of(net.hidden) ? width : stride_of(net.hidden);
    workspace.x = take(tokens * width);
    workspace.mixed = take(tokens * width);
    workspace.added = take(tokens * width);
    workspace.total = take(tokens * width);
    workspace.up = take(widest > up ? widest : up);  // holds queries, keys and values too
    workspace.attention.keys = take(padded(longest) * padded(net.dim / net.heads));
    workspace.attention.values = take(longest * padded(net.dim / net.heads));
    workspace.attention.scores = take(TILE * padded(longest));
    workspace.attention.mixed = take(TILE * padded(net.dim / net.heads));
    if (net.quantized) {
        workspace.quantized.bytes = reinterpret_cast<uint8_t*>(take(tokens * deepest / 2 + 16));
        workspace.quantized.scales = take(tokens);
        workspace.quantized.zeros = take(tokens);
    }
    return workspace;
}

static int64_t workspace_size(const EncoderNet& net, int64_t tokens, int64_t longest) {
    return layout(net, tokens, longest, nullptr).size;
}

template <class Bytes>
static void linear_bytes(const Linear& linear, const float* x, int64_t stride, int64_t rows, Rows quantized, float* out,
                         int64_t out_stride) {
    quantized.stride = stride_of(linear.in) * Bytes::SIZE;
    to_bytes<Bytes>(x, stride, rows, padded(linear.in), quantized);
    multiply_bytes<Bytes>(quantized, rows, linear, out, out_stride);
}

static void apply(const EncoderNet& net, const Linear& linear, const float* x, int64_t rows, const Rows& quantized,
                  float* out) {
    const int64_t stride = stride_of(linear.in), out_stride = stride_of(linear.out);
    if (!net.quantized)
        multiply(x, rows, stride, static_cast<const float*>(linear.weights), linear.in, padded(linear.out) / PANEL,
                 linear.bias, out, out_stride);
    else if (by_fours()) linear_bytes<Fours>(linear, x, stride, rows, quantized, out, out_stride);
    else linear_bytes<Twos>(linear, x, stride, rows, quantized, out, out_stride);
}

static void layer(const EncoderNet& net, const EncoderLayer& weights, const EncoderChunk& chunk, int64_t tokens,
                  const Workspace& workspace) {
    const int64_t width = stride_of(net.dim), across = stride_of(3 * net.dim), up = stride_of(net.hidden);
    apply(net, weights.query_key_value, workspace.x, tokens, workspace.quantized, workspace.up);
    for (int64_t t = 0; t < chunk.texts; ++t)
        attend(net, workspace.up + chunk.starts[t] * across, across, chunk.starts[t + 1] - chunk.starts[t],
               workspace.mixed + chunk.starts[t] * width, width, workspace.attention);
    apply(net, weights.output, workspace.mixed, tokens, workspace.quantized, workspace.added);
    add_and_norm(workspace.x, workspace.added, tokens, net.dim, weights.attention_gain, weights.attention_bias,
                 net.epsilon, workspace.x);
    for (int64_t row = 0; row < tokens; row += BLOCK) {
        const int64_t rows = tokens - row < BLOCK ? tokens - row : BLOCK;
        float* x = workspace.x + row * width;
        apply(net, weights.up, x, rows, workspace.quantized, workspace.up);
        for (int64_t i = 0; i < rows * up; i += LANES)
            store(workspace.up + i, activate(load(workspace.up + i), net.activation));
        apply(net, weights.down, workspace.up, rows, workspace.quantized, workspace.added);
        add_and_norm(x, workspace.added, rows, net.dim, weights.feed_gain, weights.feed_bias, net.epsilon, x);
    }
}

static void read_tokens(const EncoderNet& net, const EncoderChunk& chunk, float* x, int64_t width) {
    for (int64_t t = 0; t < chunk.texts; ++t)
        for (int64_t i = chunk.starts[t]; i < chunk.starts[t + 1]; ++i) {
            const float* token = net.tokens + chunk.ids[i] * net.dim;
            const float* position = net.positions + (i - chunk.starts[t]) * net.dim;
            float* to = x + i * width;
            for (int64_t c = 0; c < net.dim; ++c) to[c] = token[c] + position[c] + net.segment[c];
            for (int64_t c = net.dim; c < width; ++c) to[c] = 0;
        }
}

// Pools the token rows of each text into one row.
static void pool(const EncoderNet& net, const LayerSelection& selection, const EncoderChunk& chunk, const float* x,
                 int64_t width, float* out) {
    for (int64_t t = 0; t < chunk.texts; ++t, out += selection.width) {
        const int64_t first = chunk.starts[t], last = chunk.starts[t + 1];
        for (int64_t c = 0; c < net.dim; ++c) out[c] = x[first * width + c];
        if (selection.pool == TokenPool::cls) continue;
        for (int64_t i = first + 1; i < last; ++i) {
            const float* row = x + i * width;
            if (selection.pool == TokenPool::max)
                for (int64_t c = 0; c < net.dim; ++c) out[c] = row[c] > out[c] ? row[c] : out[c];
            else
                for (int64_t c = 0; c < net.dim; ++c) out[c] += row[c];
        }
        if (selection.pool == TokenPool::mean)
            for (int64_t c = 0; c < net.dim; ++c) out[c] /= static_cast<float>(last - first);
    }
}

static void encode(const EncoderNet& net, const LayerSelection& selection, const EncoderChunk& chunk, float* from) {
    const int64_t tokens = chunk.starts[chunk.texts], width = stride_of(net.dim);
    int64_t longest = 0, column = 0;
    for (int64_t t = 0; t < chunk.texts; ++t) {
        const int64_t length = chunk.starts[t + 1] - chunk.starts[t];
        longest = length > longest ? length : longest;
    }
    const Workspace workspace = layout(net, tokens, longest, from);
    read_tokens(net, chunk, workspace.x, width);
    for (int64_t i = 0; i < tokens * width; i += LANES) store(workspace.mixed + i, vec{});  // the padding must be 0
    add_and_norm(workspace.x, nullptr, tokens, net.dim, net.gain, net.bias, net.epsilon, workspace.x);
    bool started = false;
    for (int64_t layer_index = 0; layer_index <= selection.highest; ++layer_index) {
        if (layer_index > 0) layer(net, net.blocks[layer_index - 1], chunk, tokens, workspace);
        const float weight = selection.weights[layer_index];
        if (weight == 0) continue;
        if (selection.concat) {
            pool(net, selection, chunk, workspace.x, width, chunk.out + column);
            column += net.dim;
            continue;
        }
        for (int64_t i = 0; i < tokens * width; i += LANES) {
            const vec value = weight * load(workspace.x + i);
            store(workspace.total + i, started ? load(workspace.total + i) + value : value);
        }
        started = true;
    }
    if (!selection.concat) pool(net, selection, chunk, workspace.total, width, chunk.out);
}

extern const EncoderKernel encoder_kernel;
const EncoderKernel encoder_kernel = {packed_size, padded, pack, workspace_size, encode};

}  // namespace ISA
}  // namespace firth
