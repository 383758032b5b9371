#pragma once
#include <cstdint>
#include <vector>

#include "predict.h"

namespace firth {

// The path from the root to each word in a Huffman tree: `nodes` (inner nodes, the root is words - 2) and
// `turns` (0 left, 1 right), word w's from starts[w] to starts[w + 1].
struct Paths {
    std::vector<int64_t> starts;
    std::vector<int32_t> nodes;
    std::vector<uint8_t> turns;
};

// `counts` from the most frequent word to the rarest.
Paths huffman_paths(const int64_t* counts, int32_t words);

// Vose's alias table. To sample, pick a slot uniformly and 32 random bits: below cut it is the slot itself, else other.
void alias_table(const double* weights, int32_t words, Alias* table);

}  // namespace firth
