// GloVe (Pennington, Socher & Manning 2014): w · c + b_w + b_c is fitted to log X, the logarithm of how often a word
// and a context were met, each pair weighed by f(X). AdaGrad (Duchi et al. 2011), the step as Stanford's program has it.
#pragma once

#include <cstdint>

namespace firth {

struct GloveRecord {
    int32_t word, context;
    float log_count;  // log X
    float weight;     // f(X) = min(1, (X / x_max)^exponent)
};

// A row is a vector of `stride` floats (64-byte aligned, zero beyond the dimension) and behind it AdaGrad's sums of
// squares (never zero), so that a record finds both in one place. A bias is a pair: itself and its sum.
struct GloveJob {
    float* words;
    float* contexts;
    float* word_biases;
    float* context_biases;
    int64_t stride;
    float rate;
};

// The kernel of one instruction set: takes a step for each record; the sum of ½ f(X) (w · c + b_w + b_c − log X)².
struct Glove {
    double (*train)(const GloveJob&, const GloveRecord* records, int64_t count);
};

namespace baseline { extern const Glove glove; }
namespace avx2 { extern const Glove glove; }
namespace avx512 { extern const Glove glove; }

}  // namespace firth
