// The forward pass of `Encoder`: embeddings, norms, layers and pooling around attention.h and the products of tiles.h.
#include "encoder.h"

#include "attention.h"
#include "tiles.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int64_t BLOCK = 96;  // rows of the feed-forward layer computed at a time, so that they stay in the cache

// out = layer norm or RMS norm of x; columns beyond `dim` stay zero.
static void normalize(const EncoderNet& net, const NormWeights& norm, const float* x, int64_t rows, int64_t dim,
                      float* out) {
    const int64_t full = dim / LANES * LANES, width = padded(dim), stride = stride_of(dim);
    for (int64_t row = 0; row < rows; ++row, x += stride, out += stride) {
        vec total = {};
        for (int64_t c = 0; c < width; c += LANES) total += load(x + c);
        const float mean = net.rms_norm ? 0 : sum(total) / static_cast<float>(dim);
        vec squares = {};
        for (int64_t c = 0; c < full; c += LANES) {
            const vec centered = load(x + c) - mean;
            squares += centered * centered;
        }
        float spread = sum(squares);
        for (int64_t c = full; c < dim; ++c) spread += (x[c] - mean) * (x[c] - mean);
        const float scale = 1 / __builtin_sqrtf(spread / static_cast<float>(dim) + net.epsilon);
        for (int64_t c = 0; c < width; c += LANES)
            store(out + c, (load(x + c) - mean) * (load(norm.gain + c) * scale) + load(norm.bias + c));
    }
}

struct Workspace {
    float *x, *mixed, *up, *total;
    AttentionWorkspace attention;
    Rows quantized;
    int64_t size;
};

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

static Workspace layout(const EncoderNet& net, int64_t tokens, int64_t longest, float* from) {
    Workspace workspace{};
    const auto take = [&](int64_t floats) {
        float* block_start = from ? from + workspace.size : nullptr;
        workspace.size += rounded(floats, 16);
        return block_start;
    };
    const int64_t width = stride_of(net.dim), hidden = stride_of(net.hidden), d = padded(net.dim / net.heads);
    const int64_t embedding = larger_of(width, stride_of(net.embedding_dim));
    workspace.x = take(tokens * width);
    workspace.mixed = take(tokens * embedding);  // holds embeddings before their projection, and normalized rows
    workspace.total = take(tokens * width);
    workspace.up = take(larger_of(stride_of(3 * net.dim) * tokens,  // queries, keys and values, then the feed-forward
                                  hidden * (tokens < BLOCK ? tokens : BLOCK)));
    workspace.attention.keys = take(padded(longest) * d);
    workspace.attention.values = take(longest * d);
    workspace.attention.scores = take(TILE * padded(longest));
    workspace.attention.mixed = take(TILE * d);
    if (net.quantized) {
        workspace.quantized.bytes = reinterpret_cast<uint8_t*>(take(tokens * larger_of(embedding, hidden) / 2 + 16));
        workspace.quantized.scales = take(tokens);
        workspace.quantized.zeros = take(tokens);
    }
    return workspace;
}

static int64_t workspace_size(const EncoderNet& net, int64_t tokens, int64_t longest) {
    return layout(net, tokens, longest, nullptr).size;
}

template <class Bytes>
static void apply_bytes(const Linear& linear, const float* x, int64_t stride, int64_t rows, Rows quantized,
                        const Result& result) {
    quantized.stride = stride_of(linear.in) * Bytes::SIZE;
    to_bytes<Bytes>(x, stride, rows, padded(linear.in), quantized);
    multiply_bytes<Bytes>(quantized, rows, linear, result);
}

static void apply(const EncoderNet& net, const Linear& linear, const float* x, int64_t rows, const Rows& quantized,
                  float* out, Then then = Then::store) {
    const int64_t stride = stride_of(linear.in);
    const Result result{out, stride_of(linear.out), then, net.activation};
    const Panels panels{static_cast<const float*>(linear.weights), linear.in, packed_columns(linear) / PANEL,
                        linear.in * PANEL};
    if (!net.quantized) multiply(x, rows, stride, panels, linear.bias, result);
    else if (by_fours()) apply_bytes<Fours>(linear, x, stride, rows, quantized, result);
    else apply_bytes<Twos>(linear, x, stride, rows, quantized, result);
}

// x + attention(x), then x + feed_forward(x). Each sublayer reads the normalized x (pre-norm), or their sum is
// normalized (post-norm).
static void layer(const EncoderNet& net, const EncoderLayer& block, const EncoderChunk& chunk, int64_t tokens,
                  const Workspace& workspace) {
    const int64_t width = stride_of(net.dim), across = stride_of(3 * net.dim);
    const auto input = [&](const NormWeights& norm, int64_t row, int64_t rows) -> const float* {
        const float* x = workspace.x + row * width;
        if (!net.pre_norm || !norm.gain) return x;
        normalize(net, norm, x, rows, net.dim, workspace.mixed + row * width);
        return workspace.mixed + row * width;
    };
    apply(net, block.query_key_value, input(block.attention_norm, 0, tokens), tokens, workspace.quantized,
          workspace.up);
    for (int64_t t = 0; t < chunk.texts; ++t)
        attend(net, block, workspace.up + chunk.starts[t] * across, across, chunk.starts[t + 1] - chunk.starts[t],
               workspace.mixed + chunk.starts[t] * width, width, workspace.attention);
    apply(net, block.output, workspace.mixed, tokens, workspace.quantized, workspace.x, Then::add);
    if (!net.pre_norm && block.attention_norm.gain)
        normalize(net, block.attention_norm, workspace.x, tokens, net.dim, workspace.x);
    for (int64_t row = 0; row < tokens; row += BLOCK) {
        const int64_t rows = tokens - row < BLOCK ? tokens - row : BLOCK;
        float* x = workspace.x + row * width;
        apply(net, block.up, input(block.feed_forward_norm, row, rows), rows, workspace.quantized, workspace.up,
              block.up.gate ? Then::gate : Then::activate);
        apply(net, block.down, workspace.up, rows, workspace.quantized, x, Then::add);
        if (!net.pre_norm) normalize(net, block.feed_forward_norm, x, rows, net.dim, x);
    }
}

// The sum of token, position and segment embeddings, normalized; then projected to `dim`, if they are narrower.
static void embed(const EncoderNet& net, const EncoderChunk& chunk, int64_t tokens, const Workspace& workspace) {
    const int64_t dim = net.embedding_dim, width = stride_of(dim);
    float* x = net.projection.weights ? workspace.mixed : workspace.x;
    for (int64_t t = 0; t < chunk.texts; ++t)
        for (int64_t i = chunk.starts[t]; i < chunk.starts[t + 1]; ++i) {
            const float* token = net.tokens + chunk.ids[i] * dim;
            const float* position = net.positions ? net.positions + (i - chunk.starts[t]) * dim : nullptr;
            float* to = x + i * width;
            for (int64_t c = 0; c < dim; ++c) to[c] = token[c];
            for (int64_t c = 0; position && c < dim; ++c) to[c] += position[c];
            for (int64_t c = 0; net.segment && c < dim; ++c) to[c] += net.segment[c];
            for (int64_t c = dim; c < width; ++c) to[c] = 0;
        }
    if (net.embedding_norm.gain) normalize(net, net.embedding_norm, x, tokens, dim, x);
    if (net.projection.weights) apply(net, net.projection, x, tokens, workspace.quantized, workspace.x);
    for (int64_t i = 0; i < tokens * stride_of(net.dim); i += LANES)
        store(workspace.mixed + i, vec{});  // attention leaves the padding as it is
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
    embed(net, chunk, tokens, workspace);
    bool started = false;
    for (int64_t layer_index = 0; layer_index <= selection.highest; ++layer_index) {
        if (layer_index > 0) layer(net, net.blocks[layer_index - 1], chunk, tokens, workspace);
        if (layer_index == net.layers && net.final_norm.gain)
            normalize(net, net.final_norm, workspace.x, tokens, net.dim, workspace.x);
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
