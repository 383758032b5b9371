// Quantization of rows to int8, and the search that uses it.
#pragma once

#include <optional>
#include <vector>

#include "search.h"

namespace firth {

// The rows that the sketch cannot rule out, ascending; the k best of each query are among them (sift.cpp). Empty if
// they are so many that a full scan is faster.
std::optional<std::vector<int64_t>> sift(const Scores& kernel, const SearchTask& task, int64_t k, int threads);

// Quantizes `count` rows to int8, in steps of 1/127 of the largest absolute value, and bounds the errors.
void code_rows(const float* rows, int64_t count, int64_t dim, int64_t width, int8_t* codes, float* steps, int32_t* sums,
               float* errors, float* norms);

}  // namespace firth
