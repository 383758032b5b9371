// Threads over a `Job`: racing (fast) or in a fixed order (the same bytes whatever the number of threads).
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

// Trains on the centres [from, to), blocks dealt to threads that update the tables without locks
// (Recht et al. 2011, Hogwild).
Tally train_racing(const Job& job, int64_t from, int64_t to, int threads);

// Trains `rounds` rounds. The corpus is cut into `streams` equal stretches; in each round every stream trains
// its next `windows` windows on copies of the rows they touch, then each row moves by the mean of the changes that
// streams made to it, added in the order of the streams. (Their sum would throw frequent words about, which every
// stream changes; rare words are changed by one stream alone, and mean and sum are the same.) `cursors` (one a stream) holds the next raw token of each and is moved on; all at their
// ends = epoch over.
Tally train_ordered(const Job& job, int64_t* cursors, int streams, int windows, int64_t rounds, int threads);

// Rows of new documents (documents × stride, given with their first values): each learns to predict its document's
// words while everything else stays as it is. A row depends on its document's words and the seed alone.
void infer(const Job& job, float* rows, int epochs, double rate, uint64_t seed, int threads);

// The stretch of stream `s` of `streams`.
int64_t stream_start(const Job& job, int s, int streams);

}  // namespace firth
