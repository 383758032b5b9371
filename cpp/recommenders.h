// Multithreaded training of recommenders (als.h, bpr.h).
#pragma once

#include "als.h"
#include "bpr.h"

namespace firth {

// out = Σ y yᵀ over all rows of a table: stride × stride, bitwise equal for any number of threads.
void als_gram(const float* table, int64_t rows, int64_t stride, float* out, int threads);

// Solves rows [first, last) and returns the loss; see Als::solve.
double als_solve(const AlsTask& task, int64_t first, int64_t last, int threads);

// Trains on samples [first, last); threads update the rows without locks (Recht et al. 2011, Hogwild).
BprTally bpr_train(const BprTask& task, int64_t first, int64_t last, int threads);

// Fits the row of each user while the items stay fixed, with `passes` samples per item of the user.
void bpr_fold(const BprTask& task, int64_t users, int64_t passes, int threads);

}  // namespace firth
