// Sparse matrices in compressed rows: row r holds values[k] in column columns[k], for k from starts[r] to starts[r +
// 1].
#pragma once

#include <cstdint>

namespace firth {

struct SparseRows {
    const int64_t* starts;
    const int32_t* columns;
    const float* values;
    int64_t rows;
};

// The number of distinct words of each document; `words` is the size of the vocabulary.
void count_distinct(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, int64_t* distinct,
                    int threads);

// The words of each document in ascending order, with counts; `rows` is the start of each document's row, computed from
// `count_distinct`.
void count_words(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, const int64_t* rows,
                 int32_t* columns, float* counts, int threads);

// out = sparse × dense, both dense tables of `width` columns. A row is summed in the order of its columns by one
// thread, so the result doesn't depend on the number of threads.
void multiply(const SparseRows& sparse, const float* dense, int64_t width, float* out, int threads);

// Rows [first, last) of `multiply`; compiled per instruction set.
using MultiplyRows = void (*)(const SparseRows& sparse, const float* dense, int64_t width, float* out, int64_t first,
                              int64_t last);
namespace baseline { extern const MultiplyRows multiply_rows; }
namespace avx2 { extern const MultiplyRows multiply_rows; }
namespace avx512 { extern const MultiplyRows multiply_rows; }

}  // namespace firth
