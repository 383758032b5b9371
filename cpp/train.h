// Multithreaded training of a `Task`: Hogwild (fast), or in a fixed order (bitwise equal for any number of threads).
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

// Trains on the centers [from, to). Threads take blocks and update the tables without locks (Recht et al. 2011,
// Hogwild).
Tally train_racing(const Task& task, int64_t from, int64_t to, int threads);

// Trains `rounds` rounds. The corpus is split into `streams` equal parts. In each round every stream trains its next
// `windows` windows on copies of the rows they touch. Then each row moves by the mean of the streams' changes, summed
// in the order of the streams. (The sum would be too large for frequent words, which every stream changes; for rare
// words, which one stream changes, mean and sum are equal.) `cursors` holds the next raw token of each stream and is
// advanced; the epoch is over when all have reached their ends.
Tally train_ordered(const Task& task, int64_t* cursors, int streams, int windows, int64_t rounds, int threads);

// Infers the rows of new documents (documents × stride, initialized by the caller): each is trained to predict its
// document's words while all other parameters stay fixed. A row depends only on its document's words and the seed.
void infer(const Task& task, float* rows, int epochs, double rate, uint64_t seed, int threads);

// The first token of stream `s` of `streams`.
int64_t stream_start(const Task& task, int s, int streams);

}  // namespace firth
