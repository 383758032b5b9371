// Rows in bytes, and what they rule out of a search.
#pragma once

#include <optional>
#include <vector>

#include "search.h"

namespace firth {

// Rows, rising, among which are the k best of each of the job's queries: all that the sketch can't rule out (sift.cpp);
// nothing, where that would be so many that a look at every row is better.
std::optional<std::vector<int64_t>> sift(const Scores& kernel, const SearchJob& job, int64_t k, int threads);

// Codes of `count` rows of `dim` numbers, each in steps of a 127th of its largest number, and what they are off by.
void code_rows(const float* rows, int64_t count, int64_t dim, int64_t width, int8_t* codes, float* steps, int32_t* sums,
               float* errors, float* norms);

}  // namespace firth
