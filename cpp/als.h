// Alternating least squares: with one side's vectors fixed, each row of the other side is solved separately,
//     (G + ridge·I + Σ wᵢ yᵢ yᵢᵀ) x = Σ tᵢ yᵢ        over the entries i of the row.
// Implicit feedback (Hu, Koren & Volinsky 2008): G = Σ y yᵀ over all of the other side, wᵢ = alpha·r, tᵢ = 1 + alpha·r.
// Explicit ratings (Koren, Bell & Volinsky 2009): no G, wᵢ = 1, tᵢ = r − mean − (the other side's bias).
#pragma once

#include <cstdint>

namespace firth {

struct AlsTask {
    // The entries of each row in compressed rows: column on the other side, and r.
    const int64_t* starts;
    const int32_t* columns;
    const float* values;
    // Rows of `stride` floats, 64-byte aligned, zero beyond the dimension.
    const float* others;
    float* rows;
    int64_t stride;
    const float* gram;   // stride × stride; null: ratings
    const float* ridge;  // one value per row
    float alpha;
    float mean;
    int bias_column;  // ratings: the column that holds the biases in `others` and 1 in `rows`; -1: none
    int steps;        // conjugate gradient steps from the row's current value; 0: exact solution
};

// The kernels of one instruction set. The result of a row depends on that row only.
struct Als {
    // out += Σ y yᵀ over rows [first, last) of a table; the upper triangle only.
    void (*gram)(const float* table, int64_t first, int64_t last, int64_t stride, float* out);
    // Solves rows [first, last) and returns their summed objective: Σ c (p − x·y)² + ridge·|x|² over all of the other
    // side (c = 1 + alpha·r, p = 1; without an entry c = 1, p = 0), or for ratings Σ (t − x·y)² + ridge·|x|².
    // `scratch` holds `scratch_floats` floats.
    double (*solve)(const AlsTask&, int64_t first, int64_t last, float* scratch);
};

constexpr int64_t GROUP = 8;    // rows that share a pass over G
constexpr int64_t GATHER = 64;  // entries gathered for one matrix product

// `entries`: the maximum number of entries of GROUP consecutive rows.
constexpr int64_t scratch_floats(int64_t stride, int64_t entries) {
    const int64_t iterative = 3 * GROUP * stride + 2 * (entries + 64);
    const int64_t exact = stride * stride + 2 * GATHER * stride + 3 * stride;
    return (iterative > exact ? iterative : exact) + 64;
}

namespace baseline { extern const Als als; }
namespace avx2 { extern const Als als; }
namespace avx512 { extern const Als als; }

}  // namespace firth
