// A transformer encoder (blocks of self-attention and feed-forward) from token ids to one vector per text: BERT and its
// relatives. Norms come before or after the sublayers; positions are learned, rotary (Su et al. 2021) or a bias of the
// scores by distance; the feed-forward may be gated (Shazeer 2020) and attention local (Beltagy et al. 2020).
//
// Texts are processed in chunks of a few hundred tokens, whose activations stay in a core's cache; each thread takes
// its chunk through all layers. The vector of a text never depends on the other texts of the chunk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "large_pages.h"

namespace firth {

enum class Activation : int { gelu, gelu_tanh, relu, silu };
enum class TokenPool : int { mean, cls, max, sum };

// y = W x + b with weights packed by the kernel, in panels of as many outputs as fit its registers. In int8, each
// output has its own scale, and the sum of its weights, which corrects for the zero point of the inputs.
// A gated layer is y = f(G x + g) ∘ (W x + b); each panel has rows of G, then the same rows of W.
struct Linear {
    int64_t in = 0, out = 0;
    const float *source = nullptr, *source_bias = nullptr;  // (out, in), the caller's; a bias may be missing
    const float *gate = nullptr, *gate_bias = nullptr;      // likewise
    void* weights = nullptr;
    float* bias = nullptr;  // padded with zeros to full panels, like scales and sums
    float* scales = nullptr;
    int32_t* sums = nullptr;
};

// Gain and bias of a layer norm or RMS norm, padded like x. Without a gain there is no norm.
struct NormWeights {
    const float *gain = nullptr, *bias = nullptr;
};

// Dimensions i and i + half of queries and keys are rotated by an angle given by its cosine and sine, (positions,
// half).
struct Rotary {
    const float *cos = nullptr, *sin = nullptr;
    int64_t half = 0;
};

struct EncoderLayer {
    Linear query_key_value, output, up, down;
    NormWeights attention_norm, feed_forward_norm;
    Rotary rotary;
    int64_t window = 0;  // keys are at most this far from the query; 0: any key
};

struct EncoderSettings {
    int64_t layers, dim, heads, hidden, max_positions, embedding_dim;  // embedding_dim 0: dim, without a projection
    Activation activation;
    bool gated, rms_norm, pre_norm, first_norm, embedding_norm, final_norm;
    float epsilon, score_scale;
    int64_t window;
    std::vector<int64_t> local_layers;
    bool quantized;  // int8 products
};

struct EncoderNet {
    int64_t layers, dim, heads, hidden, embedding_dim, max_positions;
    Activation activation;
    bool rms_norm, pre_norm, quantized;
    float epsilon;
    const float *tokens, *positions, *segment;  // rows of `embedding_dim`; only tokens are always present
    Linear projection;                          // to `dim`, if embedding_dim differs
    NormWeights embedding_norm, final_norm;
    const float* distance_bias;  // (heads, distance_stride), entry max_positions - 1 is for equal positions
    int64_t distance_stride;
    const EncoderLayer* blocks;
};

// The weights of the layers in the pooled sum (0: not used), or the layers that are concatenated.
struct LayerSelection {
    const float* weights;  // of layer 0 (the embeddings) to the last
    int64_t highest;       // the last layer with a weight
    bool concat;
    TokenPool pool;
    int64_t width;  // of a result row
};

// Texts with concatenated ids; row t of `out` belongs to text t.
struct EncoderChunk {
    const int32_t* ids;
    const int64_t* starts;  // texts + 1, from 0 on
    int64_t texts;
    float* out;
};

struct EncoderKernel {
    int64_t (*packed_size)(const Linear&, bool quantized);  // bytes of `weights`
    int64_t (*padded)(int64_t columns);
    void (*pack)(Linear&, bool quantized);
    int64_t (*workspace)(const EncoderNet&, int64_t tokens, int64_t longest);  // floats that `encode` needs
    void (*encode)(const EncoderNet&, const LayerSelection&, const EncoderChunk&, float* workspace);
};

namespace baseline { extern const EncoderKernel encoder_kernel; }
namespace avx2 { extern const EncoderKernel encoder_kernel; }
namespace avx512 { extern const EncoderKernel encoder_kernel; }

struct WeightArray {
    const float* data;
    std::vector<int64_t> sizes;
};
using WeightArrays = std::map<std::string, WeightArray>;

// Owns the packed weights and distributes chunks over threads.
class Encoder {
  public:
    // Throws std::invalid_argument if an array is missing, unknown or of the wrong shape. `tokens`, `positions` and
    // `segment` must stay alive; the others are copied.
    Encoder(const EncoderSettings& settings, const WeightArrays& arrays);

    // Writes one row per text.
    void encode(const int32_t* ids, const int64_t* starts, int64_t texts, const LayerSelection& selection,
                int64_t chunk_tokens, float* out, int threads) const;

    int64_t vocabulary_size() const { return vocabulary_size_; }

  private:
    class Reader;
    const float* copied(const float* from, int64_t count);
    void pack(Linear& linear, bool quantized);
    EncoderLayer layer(Reader& reader, const EncoderSettings& settings, int64_t number);

    const EncoderKernel* kernel_;
    Arena arena_;
    std::vector<EncoderLayer> blocks_;
    EncoderNet net_{};
    int64_t vocabulary_size_ = 0;
};

}  // namespace firth
