// GloVe (Pennington, Socher & Manning 2014): w · c + b_w + b_c is fitted to the log co-occurrence count log X of word
// and context, each pair weighted by f(X). AdaGrad (Duchi et al. 2011), with the step of Stanford's implementation.
#pragma once

#include <cstdint>

namespace firth {

struct GloveRecord {
    int32_t word, context;
    float log_count;  // log X
    float weight;     // f(X) = min(1, (X / x_max)^exponent)
};

// A row is a vector of `stride` floats (64-byte aligned, zero beyond the dimension), followed by AdaGrad's sums of
// squares (never zero), so that both are in adjacent memory. A bias is a pair: its value and its sum.
struct GloveTask {
    float* words;
    float* contexts;
    float* word_biases;
    float* context_biases;
    int64_t stride;
    float rate;
};

// The kernel of one instruction set: takes a step for each record; returns the sum of ½ f(X) (w · c + b_w + b_c − log
// X)².
struct Glove {
    double (*train)(const GloveTask&, const GloveRecord* records, int64_t count);
};

namespace baseline { extern const Glove glove; }
namespace avx2 { extern const Glove glove; }
namespace avx512 { extern const Glove glove; }

}  // namespace firth
