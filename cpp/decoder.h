// A causal Transformer from token ids to logits, with a key-value cache: prompts are processed in batches, generated
// tokens one at a time. Then every weight is read once per token, so speed is bound by memory bandwidth, and threads
// share the reading.
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

// How weights are stored: floats, or ggml's blocks of 32 (see kernels/blocks.py).
enum class Storage : int { f32, f16, q8_0, q4_0, q4_1 };

constexpr int64_t BLOCK_VALUES = 32;
constexpr int64_t PANEL_ROWS = 16;

inline bool quantized(Storage storage) { return storage >= Storage::q8_0; }
inline int64_t round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

// A matrix (out, in). Floats stay the caller's rows. Blocks are copied into panels of 16 rows: first the scales of the
// panel (block by block, 16 halves each) and in q4_1 the minima, then the codes (block by block, 4 columns of 16 rows
// after another), so that 16 outputs are computed at once, without sums across a register. Bytes of q8_0 are stored
// with 128 added, because the fastest instructions multiply unsigned with signed bytes.
struct Weights {
    Storage storage;
    int64_t in, out;
    const void* rows;
    const uint8_t* panels;
    const float* bias;  // or null

    int64_t blocks() const { return in / BLOCK_VALUES; }
    int64_t row_bytes() const;
    int64_t code_bytes() const;   // of a block of a panel
    int64_t scale_bytes() const;  // of a panel, with the minima
    int64_t panel_bytes() const { return scale_bytes() + blocks() * code_bytes(); }
    int64_t panel_count() const { return round_up(out, PANEL_ROWS) / PANEL_ROWS; }
    void pack(uint8_t* to);                       // panel_count · panel_bytes, aligned to 64 bytes
    void read_row(int64_t row, float* to) const;  // as floats
};

// The inputs of a product: rows of floats, and for quantized weights the same in blocks of bytes.
struct Inputs {
    float* floats;
    int64_t stride;
    int8_t* codes;
    float* scales;    // per block: x is about scale · code
    float* sums;      // per block: scale · the sum of the codes
    int32_t* totals;  // per block: the sum of the codes
    int64_t code_stride, block_stride;
};

struct Norm {
    const float* weight;  // null: no norm
    const float* bias;    // or null
};

enum class DecoderActivation { gelu, gelu_tanh, relu, silu };

struct DecoderLayer {
    Norm attention_norm, attention_post_norm, feed_norm, feed_post_norm, query_norm, key_norm;
    const Weights *query, *key, *value, *output, *gate, *up, *down;  // gate may be null
    int64_t window;                                                  // positions attended to; 0 = all
    int64_t rotary_table;                                            // −1: none
};

// Up to ATTEND_ROWS queries that share keys and values.
constexpr int ATTEND_ROWS = 4;
struct Attention {
    int rows;
    const float* queries[ATTEND_ROWS];
    int64_t first[ATTEND_ROWS], last[ATTEND_ROWS];  // positions attended to: [first, last)
    float* out[ATTEND_ROWS];                        // Σ e^(score − largest) · value
    float *largest[ATTEND_ROWS], *total[ATTEND_ROWS];
    const void *keys, *values;  // panels of 16 positions: (dim, 16); rows of `width`
    bool half;                  // the cache is float16
    int64_t dim, width;
    float scale, cap;  // cap: scores are cap · tanh(score / cap); 0 = none
    float* scores;     // ATTEND_ROWS · `score_stride`
    int64_t score_stride;
};

// The kernels of one instruction set.
struct DecoderKernel {
    void (*norm)(const float* x, int64_t dim, const Norm&, bool rms, float epsilon, float* out);
    void (*quantize)(const float* x, int64_t count, const Inputs& to, int64_t row, int64_t first_block);
    // Outputs [first, last) of `weights`; row t of `out` begins at out[t · stride] with output `first`.
    void (*multiply)(const Weights&, int64_t first, int64_t last, const Inputs&, int64_t tokens, float* out,
                     int64_t stride);
    // Outputs of whole panels; `first` and `last` count panels. `out` has room for whole panels.
    void (*multiply_panels)(const Weights&, int64_t first, int64_t last, const Inputs&, int64_t tokens, float* out,
                            int64_t stride);
    void (*activate)(float* x, const float* times, int64_t count, DecoderActivation activation);
    void (*cap)(float* x, int64_t count, float limit);
    void (*rotate)(float* x, int64_t pairs, const float* cosines, const float* sines, bool interleaved);
    void (*attend)(const Attention&);
};

namespace baseline { extern const DecoderKernel decoder_kernel; }
namespace avx2 { extern const DecoderKernel decoder_kernel; }
namespace avx512 { extern const DecoderKernel decoder_kernel; }

DecoderKernel decoder_kernel();  // of the active instruction set

uint16_t to_half(float value);
float from_half(uint16_t half);

// out (tokens, weights.out) = x (tokens, weights.in) · weightsᵀ + bias.
void multiply(const Weights& weights, const float* x, int64_t tokens, float* out, int threads);

// The keys and values of all layers and heads for `positions` positions, a multiple of 16: keys in panels of 16
// positions (head_dim, 16), values in rows of head_width. `rotary`: for each table, the cosines and sines of every
// position.
struct DecoderCache {
    void *keys, *values;
    const float* rotary;
    int64_t positions;
};

// The shape and weights of a network, which belong to the caller.
struct Decoder {
    int64_t dim, heads, kv_heads, head_dim, hidden, max_positions;
    bool rms;
    float epsilon;
    DecoderActivation activation;
    int64_t rotary_pairs;  // rotated pairs of dimensions of a head
    bool interleaved;      // pairs are adjacent dimensions, or else d and d + rotary_pairs
    int64_t rotary_tables;
    float attention_scale, score_cap, logit_cap, embedding_scale;
    bool half_cache;
    const Weights* embedding;
    const float* positions;  // position vectors that are added to the embeddings, or null
    std::vector<DecoderLayer> layers;
    Norm norm;
    const Weights* outputs;

    int64_t head_width() const { return round_up(head_dim, PANEL_ROWS); }
    int64_t cache_bytes(int64_t positions) const;  // of the keys, and also of the values

    // Processes tokens from `position` on, whose keys and values are added to the cache. `states` (tokens, dim): the
    // normalized outputs of the last layer; or null. `logits`: after the last token; or null.
    void forward(const int32_t* ids, int64_t tokens, int64_t position, const DecoderCache& cache, float* states,
                 float* logits, int threads) const;
};

}  // namespace firth
