// Co-occurrence counts, row by row.
//
// A shard of the corpus is copied to a stream, with documents separated and subsampled words removed, and its positions
// are sorted by word. A word's row is the sum over its positions, in an array with one cell per context: no hashing, no
// locks, and rows come out in order. Sums are integers, so they are exact for any threads and shards.
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

struct Text {
    const int32_t* ids;
    const int64_t* starts;  // documents + 1
    int64_t documents;
    int32_t words;
    const uint32_t* keep;  // a token is kept when 32 bits of its hash are <= keep[word]; null: all are kept
    uint64_t seed;
};

struct Windows {
    int reach;
    bool left, right;
    const int64_t* weight;  // by distance, from 1 to reach, as multiples of 1/scale
    double scale;
};

// A pair in a sorted run on disk.
struct PairSum {
    int32_t word, context;
    int64_t sum;
};

// How work is distributed: blocks of consecutive words (bounds: blocks + 1) of at most `max_pairs` records each.
struct Plan {
    const int32_t* bounds;
    int64_t blocks;
    int64_t max_pairs;
    int threads;
};

// The result in two open files: contexts as int32, weights as float64; `lengths` gets the number of records per word.
struct Result {
    int contexts, weights;  // file descriptors
    int64_t* lengths;
};

// A sorted run from record `begin` on of the open file; `offsets` gets the start of each block and the end of the last.
struct RunFile {
    int file;
    int64_t begin;
    int64_t* offsets;
};

// Counts the centers [from, to) into the result, or into a run; returns the number of records.
int64_t count_rows(const Text& text, const Windows& windows, const Plan& plan, int64_t from, int64_t to,
                   const Result& result);
int64_t count_run(const Text& text, const Windows& windows, const Plan& plan, int64_t from, int64_t to,
                  const RunFile& run);

// Sums the runs; block b of run r starts at offsets[r * (blocks + 1) + b] of the open file files[r]. Each thread reads
// each run through a buffer of `buffer` records.
int64_t merge_runs(const int32_t* files, const int64_t* offsets, int64_t runs, int64_t buffer, int32_t words,
                   double scale, const Plan& plan, const Result& result);

}  // namespace firth
