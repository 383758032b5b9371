// Bayesian personalised ranking (Rendle et al. 2009): for a user u, an item i of theirs and one j that is not,
// x = u · (i − j) should be large: −log σ(x) + regularization is minimised, one drawn triple after the other.
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

struct BprJob {
    const int64_t* starts;   // of each user's items
    const int32_t* columns;  // items, ascending within a user
    const int32_t* owners;   // the user of each entry
    int64_t entries;
    // Rows of `stride` floats, 64-byte aligned. In column `bias` users hold 1 and items their bias.
    float* users;
    float* items;
    int64_t stride;
    int bias;
    int32_t item_count;
    const Alias* noise;  // which j are drawn
    float rate, regularization;
    uint64_t seed;
};

// What samples came to: the loss summed, and how many there were (where a user has nearly all items, none may be found).
struct BprTally {
    double loss = 0;
    int64_t samples = 0;
};

// The kernels of one instruction set.
struct Bpr {
    // Samples [first, last) of an epoch: which triple each one is, a hash of seed and number tells.
    BprTally (*train)(const BprJob&, int64_t first, int64_t last);
    // `samples` triples of one user, whose row alone moves.
    void (*fold)(const BprJob&, int64_t user, int64_t samples);
};

namespace baseline { extern const Bpr bpr; }
namespace avx2 { extern const Bpr bpr; }
namespace avx512 { extern const Bpr bpr; }

}  // namespace firth
