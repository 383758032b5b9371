// A BERT-like encoder (post-norm blocks of self-attention and feed-forward) from token ids to one vector a text.
//
// Texts are taken in chunks of a few hundred tokens whose activations stay in a core's cache; each thread works on a
// chunk of its own through all layers. A text's numbers never depend on what else is in the chunk.
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

enum class Activation : int { gelu, gelu_tanh, relu };
enum class TokenPool : int { mean, cls, max, sum };

// y = W x + b, its weights packed by the kernel: panels of so many outputs as it holds in registers. In bytes, each
// output has its own scale, and the sum of its bytes, by which the inputs' zero is taken out again.
struct Linear {
    int64_t in, out;
    const float* given;  // (out, in), the caller's
    const float* given_bias;
    void* weights;
    float* bias;  // padded with zeros to whole panels, as scales and sums are
    float* scales;
    int32_t* sums;
};

struct EncoderLayer {
    Linear query_key_value, output, wide, back;
    const float *attention_gain, *attention_shift, *feed_gain, *feed_shift;  // of the norms, padded like x
};

struct EncoderNet {
    int64_t layers, dim, heads, hidden, places;
    Activation activation;
    float epsilon;
    bool bytes;  // products in 8 bits
    const float *tokens, *positions, *segment;  // rows of `dim`
    const float *gain, *shift;
    const EncoderLayer* blocks;
};

// Which layers' vectors are added up with which weight (0: not asked for), or stand one behind the other.
struct EncoderAsk {
    const float* weights;  // of layer 0, the input, to the last
    int64_t highest;  // the last with a weight
    bool concat;
    TokenPool pool;
    int64_t width;  // of a row of the result
};

// `texts` texts whose ids lie one behind the other; rows of `out` are theirs.
struct EncoderChunk {
    const int32_t* ids;
    const int64_t* starts;  // texts + 1, from 0 on
    int64_t texts;
    float* out;
};

struct EncoderKernel {
    int64_t (*packed_size)(const Linear&, bool bytes);  // bytes of `weights`
    int64_t (*padded)(int64_t columns);
    void (*pack)(Linear&, bool bytes);
    int64_t (*room)(const EncoderNet&, int64_t tokens, int64_t longest);  // floats that `encode` needs
    void (*encode)(const EncoderNet&, const EncoderAsk&, const EncoderChunk&, float* room);
};

namespace baseline {
extern const EncoderKernel encoder_kernel;
}
namespace avx2 {
extern const EncoderKernel encoder_kernel;
}
namespace avx512 {
extern const EncoderKernel encoder_kernel;
}

// Owns the packed weights and the threads' work.
class Encoder {
  public:
    struct Settings {
        int64_t layers, dim, heads, hidden, places;
        Activation activation;
        float epsilon;
        bool bytes;
    };

    // `arrays`: tokens, places, segment, norm's gain and shift, then for each layer weight and bias of query_key_value
    // and output, gain and shift of the norm, weight and bias of wide and back, gain and shift of the norm. They are
    // read at once, but for tokens, places and segment, which must stay.
    Encoder(const Settings& settings, const std::vector<const float*>& arrays);

    // One row a text, of `texts` texts.
    void encode(const int32_t* ids, const int64_t* starts, int64_t texts, const EncoderAsk& ask, int64_t chunk_tokens,
                float* out, int threads) const;

  private:
    struct alignas(64) Line {
        float floats[16];
    };
    float* take(int64_t floats);
    const float* padded(const float* from, int64_t count);

    const EncoderKernel* kernel_;
    std::vector<std::vector<Line>> kept_;
    std::vector<EncoderLayer> blocks_;
    EncoderNet net_;
};

}  // namespace firth
