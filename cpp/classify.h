// fastText's text classifier (Joulin et al. 2016): the mean of a text's input rows, a linear layer, a loss.
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

enum LabelLoss : int { LABEL_SOFTMAX = 0, LABEL_HIERARCHICAL = 1, LABEL_ONE_VS_ALL = 2, LABEL_NEGATIVE = 3 };

struct LabelTask {
    // Rows of `stride` floats, 64-byte aligned, zero beyond the dimension. The outputs have one row per label (or
    // inner node of the tree) and are padded with zero rows to a multiple of 16.
    float* inputs;
    float* outputs;
    int64_t stride;
    int32_t labels;
    int loss;
    int negatives;
    const Alias* noise;  // alias table of the negative labels
    // Hierarchical softmax: inner nodes and turns (1: right) on the path to each label.
    const int64_t* path_starts;
    const int32_t* path_nodes;
    const uint8_t* path_turns;
};

// A batch of texts: text i has the input rows and labels from starts[i] to starts[i + 1], none of them empty. Losses
// for one label use the first.
struct LabelBatch {
    const int32_t* rows;
    const int64_t* row_starts;
    const int32_t* labels;
    const int64_t* label_starts;
    const float* rates;
    const uint64_t* hashes;  // random state of the negative samples
    int64_t size;
};

struct LabelScratch {
    float* hidden;  // [stride]
    float* change;  // [stride]
    float* scores;  // [labels, padded to 16]
};

// The kernels of one instruction set.
struct Classify {
    double (*train)(const LabelTask&, const LabelBatch&, LabelScratch&);  // returns the sum of −log likelihood
    // The mean of unaligned rows of `width` floats; `hidden` beyond `width` is not written.
    void (*mean)(const float* inputs, int64_t width, const int32_t* rows, int64_t count, float* hidden);
    // Scores of all labels, which `softmax` turns into probabilities; `scores` is padded to a multiple of 16.
    void (*products)(const float* outputs, int64_t stride, int32_t labels, const float* hidden, float* scores);
    void (*softmax)(float* scores, int32_t labels);
};

namespace baseline { extern const Classify classify; }
namespace avx2 { extern const Classify classify; }
namespace avx512 { extern const Classify classify; }

}  // namespace firth
