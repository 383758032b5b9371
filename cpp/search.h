// The rows that are nearest to queries, by looking at every row: scores of a block of rows, and the best k kept.
#pragma once

#include <cstdint>

namespace firth {

enum Numbers : int { FLOAT32 = 0, FLOAT16 = 1 };

constexpr int DOZEN = 12;  // rows come to the kernels in whole dozens
constexpr int FEW = 4;     // queries for which lanes lie along the row; for more, each lane is a query

// The kernels of one instruction set. out[row * width + query] is the score; `width` is `queries` rounded up to `lanes`,
// or FEW.
struct Scores {
    int lanes;
    void (*pack)(const float* queries, int count, int64_t dim, float* panels);
    // `squared`: minus the squared distance in place of the product.
    void (*floats)(const float* const* rows, int count, int64_t dim, const float* panels, int queries, bool squared,
                   float* out, int64_t width);
    // The same for a FEW queries, which are not packed but stand `stride` floats apart, zero beyond the dimension.
    void (*few)(const float* const* rows, int count, int64_t dim, const float* few, int queries, int64_t stride,
                bool squared, float* out, int64_t width);
    // Codes of one byte, −127 to 127; `dim` is a multiple of 4. `sums` are the sums of the rows' codes.
    void (*pack_codes)(const int8_t* queries, int count, int64_t dim, void* panels);
    void (*codes)(const int8_t* const* rows, const int32_t* sums, int count, int64_t dim, const void* panels, int queries,
                  float* out, int64_t width);
    void (*widen)(const uint16_t* half, int64_t count, float* out);  // half precision to single
};

namespace baseline { extern const Scores scores; }
namespace avx2 { extern const Scores scores; }
namespace avx512 { extern const Scores scores; }

// Rows in bytes: row r is about steps[r] · codes[r], off by a vector of length errors[r] at the most.
struct Sketch {
    const int8_t* codes;  // rows × width, zero beyond the dimension
    const float* steps;
    const int32_t* sums;   // of each row's codes
    const float* errors;
    const float* norms;  // |row|, at least
    int64_t width;       // a multiple of 4
};

struct SearchJob {
    const void* matrix;  // rows × dim
    int numbers;         // of which kind
    int64_t rows;
    int64_t dim;
    const float* scales;    // a score is the product times the scale of its row, where these are given
    const int64_t* listed;  // only these rows, rising; null for all
    int64_t listed_count;
    const float* queries;  // count × dim
    int64_t count;
    bool squared;
    const Sketch* sketch;  // null where there is none
};

// The k best rows of each query, best first, of equal scores the lower row; −1 where there are fewer than k.
void search(const SearchJob& job, int64_t k, float* scores, int64_t* found, int threads);

}  // namespace firth
