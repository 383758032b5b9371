// Incremental decoding of a causal Transformer, one token at a time. Every weight is read once per token, so speed is
// bound by memory bandwidth, and several threads share the reading.
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

// The kernels of one instruction set.
struct Rows {
    // out[i] = bias[i] + row i · x; bias may be null. Rows of `width` floats are contiguous.
    void (*multiply)(const float* rows, int64_t width, int64_t count, const float* x, const float* bias, float* out);
    // One attention head: softmax of query · key · scale over `count` keys, then the weighted sum of the values.
    void (*attend)(const float* query, const float* keys, const float* values, int64_t count, int64_t dim, float scale,
                   float* scores, float* out);
};

namespace baseline { extern const Rows rows; }
namespace avx2 { extern const Rows rows; }
namespace avx512 { extern const Rows rows; }

enum class DecoderActivation { gelu, gelu_tanh, relu, swiglu };

struct Affine {
    const float* weight;
    const float* bias;
};

struct Layer {
    Affine attention_norm, query_key_value, output, feed_norm, up, down;
};

// The shape and arrays of a network; the arrays belong to the caller.
struct Writer {
    int64_t dim, heads, hidden, max_positions, vocabulary_size;
    DecoderActivation activation;
    float epsilon;
    std::vector<Layer> layers;
    Affine norm;
    const float* outputs;  // vocabulary × dim

    // Computes the logits after the token at `position`, whose input vector is `x` (overwritten), and adds its keys and
    // values to the cache (layers, heads, positions, head dim). `rotary`: cosines, then sines, of the rotary embedding
    // of this position; null: none.
    void write(float* x, int64_t position, const float* rotary, float* keys, float* values, float* logits,
               int threads) const;
};

}  // namespace firth
