// One token through a causal Transformer: every weight is read once, so memory sets the pace, and several threads read it.
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

// The kernels of one instruction set.
struct Rows {
    // out[i] = bias[i] + row i · x; without biases if null. Rows of `width` floats lie behind each other.
    void (*multiply)(const float* rows, int64_t width, int64_t count, const float* x, const float* bias, float* out);
    // One head: softmax over `count` keys of query · key · scale, then the values mixed. `scores` has room for `count`.
    void (*attend)(const float* query, const float* keys, const float* values, int64_t count, int64_t dim, float scale,
                   float* scores, float* out);
};

namespace baseline { extern const Rows rows; }
namespace avx2 { extern const Rows rows; }
namespace avx512 { extern const Rows rows; }

enum class Bend { gelu, gelu_tanh, relu, swiglu };

struct Affine {
    const float* weight;
    const float* bias;
};

struct Layer {
    Affine attention_norm, query_key_value, output, feed_norm, wide, back;
};

// The shape of the net; `layers`, the last norm and the outputs are the net's own arrays.
struct Writer {
    int64_t dim, heads, hidden, places, words;
    Bend bend;
    float epsilon;
    std::vector<Layer> layers;
    Affine norm;
    const float* outputs;  // words × dim

    // The token at `place`, whose input vector is `x` (changed): its logits. Keys and values (layers, heads, places, dim of a
    // head) get their rows for it. `turns`: cosines, then sines, of this place, for rotary positions; null without.
    void write(float* x, int64_t place, const float* turns, float* keys, float* values, float* logits, int threads) const;
};

}  // namespace firth
