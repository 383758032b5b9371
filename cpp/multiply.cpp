// Rows of sparse × dense: each result row is a sum of dense rows, accumulated in registers.
#include "sparse.h"
#include "vec.h"

namespace firth {
namespace ISA {

// Columns [0, PARTS × LANES) of one row; `dense` and `out` point at the first of them.
template <int PARTS>
static void sum_rows(const SparseRows& sparse, int64_t row, const float* dense, int64_t width, float* out) {
    const int64_t last = sparse.starts[row + 1];
    vec sum[PARTS] = {};
    for (int64_t k = sparse.starts[row]; k < last; ++k) {
        constexpr int PREFETCH = 4;  // entries prefetched ahead
        if (k + PREFETCH < last) {
            const float* next_row = dense + sparse.columns[k + PREFETCH] * width;
            for (int p = 0; p < PARTS; p += 16 / LANES) __builtin_prefetch(next_row + p * LANES);
        }
        const float* from = dense + sparse.columns[k] * width;
        const vec value = splat(sparse.values[k]);
        for (int p = 0; p < PARTS; ++p) sum[p] += value * load_loose(from + p * LANES);
    }
    for (int p = 0; p < PARTS; ++p) store_loose(out + p * LANES, sum[p]);
}

constexpr int MOST = REGISTERS / 2;  // parts of a row held in registers at once

static void one_row(const SparseRows& sparse, int64_t row, const float* dense, int64_t width, float* out) {
    int64_t column = 0;
    for (; column + MOST * LANES <= width; column += MOST * LANES)
        sum_rows<MOST>(sparse, row, dense + column, width, out + column);
    for (; column + 4 * LANES <= width; column += 4 * LANES)
        sum_rows<4>(sparse, row, dense + column, width, out + column);
    for (; column + LANES <= width; column += LANES) sum_rows<1>(sparse, row, dense + column, width, out + column);
    if (column == width) return;
    if (width >= LANES) {  // the last LANES columns; some are computed twice with the same result
        sum_rows<1>(sparse, row, dense + width - LANES, width, out + width - LANES);
        return;
    }
    for (; column < width; ++column) {
        float sum = 0;
        for (int64_t k = sparse.starts[row]; k < sparse.starts[row + 1]; ++k)
            sum += sparse.values[k] * dense[sparse.columns[k] * width + column];
        out[column] = sum;
    }
}

static void rows(const SparseRows& sparse, const float* dense, int64_t width, float* out, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) one_row(sparse, row, dense, width, out + row * width);
}

extern const MultiplyRows multiply_rows;
const MultiplyRows multiply_rows = rows;

}  // namespace ISA
}  // namespace firth
