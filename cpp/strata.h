// Stratified order of a sparse matrix's records, for training without conflicts (Gemulla et al. 2011, DSGD).
//
// Words and contexts are divided into `parts` (id modulo parts), records into parts × parts blocks. The blocks of one
// diagonal share no word and no context, so threads train them in parallel without races, and the result is the same
// for any number of threads. A block touches few rows, which stay in the cache.
#pragma once

#include <cstdint>

#include "glove.h"

namespace firth {

struct Counts {
    const int64_t* starts;  // words + 1
    const int32_t* contexts;
    const double* counts;
    int32_t words;
};

// Writes the records block by block to an open file, each block in random order; `starts` (parts² + 1) gets the
// start of each block; word part i and context part j are block i * parts + j.
void write_strata(const Counts& counts, double x_max, double exponent, int parts, uint64_t seed, int threads, int file,
                  int64_t* starts);

// Trains on piece `piece` of `pieces` of each block of a diagonal (blocks i, (i + diagonal) % parts);
// returns the summed loss.
double train_diagonal(const GloveTask& task, const GloveRecord* records, const int64_t* starts, int parts, int diagonal,
                      int64_t piece, int64_t pieces, int threads);

}  // namespace firth
