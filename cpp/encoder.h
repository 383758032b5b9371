// A BERT-like encoder (post-norm blocks of self-attention and feed-forward) from token ids to one vector per text.
//
// Texts are processed in chunks of a few hundred tokens, whose activations stay in a core's cache; each thread takes
// its chunk through all layers. The vector of a text never depends on the other texts of the chunk.
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

enum class Activation : int { gelu, gelu_tanh, relu };
enum class TokenPool : int { mean, cls, max, sum };

// y = W x + b with weights packed by the kernel, in panels of as many outputs as fit its registers. In int8, each
// output has its own scale, and the sum of its weights, which corrects for the zero point of the inputs.
struct Linear {
    int64_t in, out;
    const float* source;  // (out, in), the caller's
    const float* source_bias;
    void* weights;
    float* bias;  // padded with zeros to full panels, like scales and sums
    float* scales;
    int32_t* sums;
};

struct EncoderLayer {
    Linear query_key_value, output, up, down;
    const float *attention_gain, *attention_bias, *feed_gain, *feed_bias;  // of the layer norms, padded like x
};

struct EncoderNet {
    int64_t layers, dim, heads, hidden, max_positions;
    Activation activation;
    float epsilon;
    bool quantized;                             // int8 products
    const float *tokens, *positions, *segment;  // rows of `dim`
    const float *gain, *bias;
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

// Owns the packed weights and distributes chunks over threads.
class Encoder {
  public:
    struct Settings {
        int64_t layers, dim, heads, hidden, max_positions;
        Activation activation;
        float epsilon;
        bool quantized;
    };

    // `arrays`: token, position and segment embeddings, gain and bias of the embedding norm; then for each layer weight
    // and bias of query_key_value and output, gain and bias of the attention norm, weight and bias of up and down, gain
    // and bias of the feed-forward norm. All but the embeddings are copied; those must stay alive.
    Encoder(const Settings& settings, const std::vector<const float*>& arrays);

    // Writes one row per text.
    void encode(const int32_t* ids, const int64_t* starts, int64_t texts, const LayerSelection& selection,
                int64_t chunk_tokens, float* out, int threads) const;

  private:
    struct alignas(64) Line {
        float floats[16];
    };
    float* take(int64_t floats);
    const float* padded(const float* from, int64_t count);

    const EncoderKernel* kernel_;
    std::vector<std::vector<Line>> buffers_;
    std::vector<EncoderLayer> blocks_;
    EncoderNet net_;
};

}  // namespace firth
