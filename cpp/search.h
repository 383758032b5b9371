// Exact nearest-neighbor search: scores blocks of rows and keeps the k best.
#pragma once

#include <cstdint>

namespace firth {

enum StorageDtype : int { FLOAT32 = 0, FLOAT16 = 1 };

constexpr int DOZEN = 12;  // kernels take rows in multiples of 12
constexpr int FEW = 4;     // up to this many queries, lanes run along the row; for more, each lane is a query

// The kernels of one instruction set. out[row * width + query] is the score; `width` is `queries` rounded up to
// `lanes`, or FEW.
struct Scores {
    int lanes;
    void (*pack)(const float* queries, int count, int64_t dim, float* panels);
    // `squared`: minus the squared distance instead of the dot product.
    void (*floats)(const float* const* rows, int count, int64_t dim, const float* panels, int queries, bool squared,
                   float* out, int64_t width);
    // The same for up to FEW queries, which are not packed but `stride` floats apart, zero-padded.
    void (*few)(const float* const* rows, int count, int64_t dim, const float* few, int queries, int64_t stride,
                bool squared, float* out, int64_t width);
    // int8 codes, −127 to 127; `dim` is a multiple of 4. `sums` are the sums of the rows' codes.
    void (*pack_codes)(const int8_t* queries, int count, int64_t dim, void* panels);
    void (*codes)(const int8_t* const* rows, const int32_t* sums, int count, int64_t dim, const void* panels,
                  int queries, float* out, int64_t width);
    void (*widen)(const uint16_t* half, int64_t count, float* out);  // float16 to float32
};

namespace baseline { extern const Scores scores; }
namespace avx2 { extern const Scores scores; }
namespace avx512 { extern const Scores scores; }

// Rows as int8 codes: row r is about steps[r] · codes[r]; the norm of the difference is at most errors[r].
struct Sketch {
    const int8_t* codes;  // rows × width, zero-padded
    const float* steps;
    const int32_t* sums;  // of each row's codes
    const float* errors;
    const float* norms;  // upper bound of |row|
    int64_t width;       // a multiple of 4
};

struct SearchTask {
    const void* matrix;  // rows × dim
    int dtype;           // StorageDtype
    int64_t rows;
    int64_t dim;
    const float* scales;    // null, or factors of the rows' scores
    const int64_t* listed;  // only these rows, ascending; null: all
    int64_t listed_count;
    const float* queries;  // count × dim
    int64_t count;
    bool squared;
    const Sketch* sketch;  // null: none
};

// The k best rows of each query, best first; ties go to the lower row. Missing rows are −1.
void search(const SearchTask& task, int64_t k, float* scores, int64_t* rows, int threads);

}  // namespace firth
