// Bayesian personalized ranking (Rendle et al. 2009): for a user u, a positive item i and a negative item j, x = u · (i
// − j) should be large. Minimizes −log σ(x) + regularization by stochastic gradient descent over sampled triples.
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

struct BprTask {
    const int64_t* starts;   // of each user's history
    const int32_t* columns;  // items, ascending within a user
    const int32_t* owners;   // the user of each entry
    int64_t entries;
    // Rows of `stride` floats, 64-byte aligned. Column `bias` holds 1 for users and the bias for items.
    float* users;
    float* items;
    int64_t stride;
    int bias;
    int32_t item_count;
    const Alias* noise;  // alias table of the negative items
    float rate, regularization;
    uint64_t seed;
};

// The summed loss and the number of samples used; a sample without a negative item is skipped.
struct BprTally {
    double loss = 0;
    int64_t samples = 0;
};

// The kernels of one instruction set.
struct Bpr {
    // Trains on samples [first, last) of an epoch; each triple is a hash of seed and sample number.
    BprTally (*train)(const BprTask&, int64_t first, int64_t last);
    // Trains on `samples` triples of one user while the items stay fixed (fold-in).
    void (*fold)(const BprTask&, int64_t user, int64_t samples);
};

namespace baseline { extern const Bpr bpr; }
namespace avx2 { extern const Bpr bpr; }
namespace avx512 { extern const Bpr bpr; }

}  // namespace firth
