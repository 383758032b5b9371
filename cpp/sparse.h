// Sparse matrices in compressed rows: row r holds values[k] in column columns[k], for k from starts[r] to starts[r + 1].
#pragma once

#include <cstdint>

namespace firth {

struct SparseRows {
    const int64_t* starts;
    const int32_t* columns;
    const float* values;
    int64_t rows;
};

// How many different words each document holds; `words` is the size of the vocabulary.
void count_different(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, int64_t* different,
                     int threads);

// The documents' words and how often each occurs, words in ascending order; `rows` is where each document's part
// begins, from `count_different`.
void count_words(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, const int64_t* rows,
                 int32_t* columns, float* counts, int threads);

// out = sparse × dense, both dense tables of `width` columns. A row is summed in the order of its columns by one
// thread, so that the result doesn't depend on how many there are.
void multiply(const SparseRows& sparse, const float* dense, int64_t width, float* out, int threads);

// What is compiled for each instruction set: rows [first, last) of `multiply`.
using MultiplyRows = void (*)(const SparseRows& sparse, const float* dense, int64_t width, float* out, int64_t first,
                              int64_t last);
namespace baseline { extern const MultiplyRows multiply_rows; }
namespace avx2 { extern const MultiplyRows multiply_rows; }
namespace avx512 { extern const MultiplyRows multiply_rows; }

}  // namespace firth
