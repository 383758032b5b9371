// Threads over the kernels of people and items (als.h, bpr.h).
#pragma once

#include "als.h"
#include "bpr.h"

namespace firth {

// out = Σ y yᵀ over all rows of a table: stride × stride, the same bytes for any number of threads.
void als_gram(const float* table, int64_t rows, int64_t stride, float* out, int threads);

// Solves rows [first, last) of `job`; the loss, see Als::solve.
double als_solve(const AlsJob& job, int64_t first, int64_t last, int threads);

// Samples [first, last); several threads race for the rows without locks (Recht et al. 2011, Hogwild).
BprTally bpr_train(const BprJob& job, int64_t first, int64_t last, int threads);

// Finds the row of each user with the items as they are, by `passes` samples for each of the user's items.
void bpr_fold(const BprJob& job, int64_t users, int64_t passes, int threads);

}  // namespace firth
