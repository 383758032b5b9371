#include "als.h"

#include "vec.h"

namespace firth {
namespace ISA {

constexpr int TILE_ROWS = REGISTERS == 32 ? 8 : 4;
constexpr int TILE_PARTS = 2;

// A small matrix product in registers: out[r][c] += sign · Σₖ a(k, r) · b(k, c) for TILE_ROWS rows r and PARTS × LANES
// columns c. a(k, r) = a[k · a_step + r · a_row]; b(k, c) = b[k · b_step + c].
template <int PARTS>
static inline void tile(const float* a, int64_t a_step, int64_t a_row, const float* b, int64_t b_step, int64_t count,
                        float* out, int64_t out_row, float sign) {
    vec total[TILE_ROWS][PARTS] = {};
    for (int64_t k = 0; k < count; ++k) {
        vec right[PARTS];
        for (int p = 0; p < PARTS; ++p) right[p] = load(b + k * b_step + p * LANES);
        for (int r = 0; r < TILE_ROWS; ++r) {
            const vec left = splat(a[k * a_step + r * a_row]);
            for (int p = 0; p < PARTS; ++p) total[r][p] += left * right[p];
        }
    }
    for (int r = 0; r < TILE_ROWS; ++r)
        for (int p = 0; p < PARTS; ++p) {
            float* to = out + r * out_row + p * LANES;
            store(to, load(to) + sign * total[r][p]);
        }
}

// Columns [from, to) of such a product; both are multiples of LANES.
static void strip(const float* a, int64_t a_step, int64_t a_row, const float* b, int64_t b_step, int64_t count,
                  float* out, int64_t out_row, int64_t from, int64_t to, float sign) {
    int64_t c = from;
    for (; c + TILE_PARTS * LANES <= to; c += TILE_PARTS * LANES)
        tile<TILE_PARTS>(a, a_step, a_row, b + c, b_step, count, out + c, out_row, sign);
    for (; c < to; c += LANES) tile<1>(a, a_step, a_row, b + c, b_step, count, out + c, out_row, sign);
}

static inline int64_t down(int64_t column) { return column / LANES * LANES; }

// out += Σₖ a_k b_kᵀ, the upper triangle (and the lower parts of the tiles on the diagonal).
static void outer_products(const float* a, const float* b, int64_t count, int64_t stride, float* out) {
    for (int64_t i = 0; i < stride; i += TILE_ROWS)
        strip(a + i, stride, 1, b, stride, count, out + i * stride, stride, down(i), stride, 1.0f);
}

static void gram(const float* table, int64_t first, int64_t last, int64_t stride, float* out) {
    constexpr int64_t BLOCK_ROWS = 128;  // rows that stay in the cache for all tiles
    for (int64_t k = first; k < last; k += BLOCK_ROWS) {
        const float* rows = table + k * stride;
        outer_products(rows, rows, last - k < BLOCK_ROWS ? last - k : BLOCK_ROWS, stride, out);
    }
}

static inline float dot(const float* x, const float* y, int64_t stride) {
    vec total = {};
    for (int64_t d = 0; d < stride; d += LANES) total += load(x + d) * load(y + d);
    return sum(total);
}

// y += scale · x
static inline void add(float* y, float scale, const float* x, int64_t stride) {
    const vec factor = splat(scale);
    for (int64_t d = 0; d < stride; d += LANES) store(y + d, load(y + d) + factor * load(x + d));
}

static inline void fetch(const AlsTask& task, int64_t entry) {
    const float* row = task.others + (int64_t)task.columns[entry] * task.stride;
    for (int64_t d = 0; d < task.stride; d += 16) __builtin_prefetch(row + d, 0, 3);
}

// COUNT entries from `entry` on: dots = y · p, then sum += (RESIDUAL ? t − w · dot : w · dot) · y.
template <int COUNT, bool RESIDUAL>
static inline void pass(const AlsTask& task, int64_t entry, const float* p, float* sum, float* dots) {
    const int64_t stride = task.stride;
    const float* y[COUNT];
    for (int i = 0; i < COUNT; ++i) y[i] = task.others + (int64_t)task.columns[entry + i] * stride;
    vec totals[COUNT] = {};
    for (int64_t d = 0; d < stride; d += LANES) {
        const vec at = load(p + d);
        for (int i = 0; i < COUNT; ++i) totals[i] += load(y[i] + d) * at;
    }
    store_sums<COUNT>(totals, dots);
    vec factor[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        const float weight = task.alpha * task.values[entry + i];
        factor[i] = splat(RESIDUAL ? 1.0f + weight - weight * dots[i] : weight * dots[i]);
    }
    for (int64_t d = 0; d < stride; d += LANES) {
        vec total = load(sum + d);
        for (int i = 0; i < COUNT; ++i) total += factor[i] * load(y[i] + d);
        store(sum + d, total);
    }
}

// All entries of a row; `dots` is padded by LANES.
template <bool RESIDUAL>
static void pass_row(const AlsTask& task, int64_t row, const float* p, float* sum, float* dots) {
    const int64_t first = task.starts[row], last = task.starts[row + 1];
    int64_t k = first;
    for (; k + 8 <= last; k += 8) {
        if (RESIDUAL)  // the first pass over these rows
            for (int64_t next = k + 8; next < k + 16 && next < last; ++next) fetch(task, next);
        pass<8, RESIDUAL>(task, k, p, sum, dots + (k - first));
    }
    if (k + 4 <= last) {
        pass<4, RESIDUAL>(task, k, p, sum, dots + (k - first));
        k += 4;
    }
    for (; k < last; ++k) pass<1, RESIDUAL>(task, k, p, sum, dots + (k - first));
}

// Conjugate gradients (Hestenes & Stiefel 1952; Takács et al. 2011 for ALS) for up to GROUP rows at once, so that G is
// read once for all of them. At any x with residual r the objective is Σ c − Σ c s − r·x with s = y·x; the products s
// are updated with each step, so the loss is free.
static double iterate(const AlsTask& task, int64_t first, int64_t count, float* scratch) {
    constexpr float SMALL = 1e-20f;
    const int64_t stride = task.stride;
    float* r = scratch;
    float* p = r + GROUP * stride;
    float* ap = p + GROUP * stride;
    float* products = ap + GROUP * stride;  // y · x of every entry
    const int64_t entry = task.starts[first], entries = task.starts[first + count] - entry;
    float* dots = products + entries + 32;
    float squared_norm[GROUP];
    const auto times_gram = [&](const float* x, float* out, float sign) {
        for (int64_t i = 0; i < count; i += TILE_ROWS)
            strip(x + i * stride, 1, stride, task.gram, stride, stride, out + i * stride, stride, 0, stride, sign);
    };
    std::memset(scratch, 0, 3 * GROUP * stride * sizeof(float));
    for (int64_t i = 0; i < count; ++i)
        std::memcpy(p + i * stride, task.rows + (first + i) * stride, stride * sizeof(float));
    times_gram(p, r, -1.0f);
    for (int64_t i = 0; i < count; ++i) {
        float* residual = r + i * stride;
        pass_row<true>(task, first + i, p + i * stride, residual, dots);
        std::memcpy(products + (task.starts[first + i] - entry), dots,
                    (task.starts[first + i + 1] - task.starts[first + i]) * sizeof(float));
        add(residual, -task.ridge[first + i], p + i * stride, stride);
        std::memcpy(p + i * stride, residual, stride * sizeof(float));
        squared_norm[i] = dot(residual, residual, stride);
    }
    for (int step = 0; step < task.steps; ++step) {
        std::memset(ap, 0, GROUP * stride * sizeof(float));
        times_gram(p, ap, 1.0f);
        for (int64_t i = 0; i < count; ++i) {
            if (squared_norm[i] < SMALL) continue;
            float *residual = r + i * stride, *direction = p + i * stride, *product = ap + i * stride;
            const int64_t begin = task.starts[first + i], end = task.starts[first + i + 1];
            pass_row<false>(task, first + i, direction, product, dots);
            add(product, task.ridge[first + i], direction, stride);
            const float alpha = squared_norm[i] / dot(direction, product, stride);
            add(task.rows + (first + i) * stride, alpha, direction, stride);
            add(residual, -alpha, product, stride);
            for (int64_t k = begin; k < end; ++k) products[k - entry] += alpha * dots[k - begin];
            const float new_squared_norm = dot(residual, residual, stride);
            const vec beta = splat(new_squared_norm / squared_norm[i]);
            for (int64_t d = 0; d < stride; d += LANES)
                store(direction + d, load(residual + d) + beta * load(direction + d));
            squared_norm[i] = new_squared_norm;
        }
    }
    double loss = 0;
    for (int64_t k = 0; k < entries; ++k) {
        const double confidence = 1.0 + (double)task.alpha * (double)task.values[entry + k];
        loss += confidence * (1.0 - (double)products[k]);
    }
    for (int64_t i = 0; i < count; ++i) loss -= (double)dot(r + i * stride, task.rows + (first + i) * stride, stride);
    return loss;
}

// A = UᵀU in place, in the upper triangle, TILE_ROWS rows at a time, so that most of the work is in `strip`. `diagonal`
// holds one row.
static void cholesky(float* a, int64_t stride, float* diagonal) {
    for (int64_t i = 0; i < stride; ++i) diagonal[i] = a[i * stride + i];
    for (int64_t j = 0; j < stride; j += TILE_ROWS) {
        strip(a + j, stride, 1, a, stride, j, a + j * stride, stride, down(j), stride, -1.0f);
        for (int64_t i = j; i < j + TILE_ROWS; ++i) {
            float* row = a + i * stride;
            for (int64_t k = j; k < i; ++k) {
                const vec factor = splat(a[k * stride + i]);
                for (int64_t d = down(i); d < stride; d += LANES)
                    store(row + d, load(row + d) - factor * load(a + k * stride + d));
            }
            // In a nearly singular matrix, rounding may leave a pivot without a correct digit, or negative. That
            // unknown is then solved on its own, which keeps it bounded.
            const bool singular = !(row[i] > 1e-6f * diagonal[i]);
            const float pivot = __builtin_sqrtf(singular ? diagonal[i] : row[i]);
            const vec factor = splat(singular ? 0.0f : 1.0f / pivot);
            for (int64_t d = down(i); d < stride; d += LANES) store(row + d, factor * load(row + d));
            row[i] = pivot;
        }
    }
}

// x = A⁻¹ b by UᵀU x = b; b becomes x.
static void substitute(const float* u, float* b, int64_t stride) {
    for (int64_t j = 0; j < stride; ++j) {
        b[j] /= u[j * stride + j];
        for (int64_t d = j + 1; d < stride; ++d) b[d] -= b[j] * u[j * stride + d];
    }
    for (int64_t j = stride - 1; j >= 0; --j) {
        float total = b[j];
        for (int64_t d = j + 1; d < stride; ++d) total -= u[j * stride + d] * b[d];
        b[j] = total / u[j * stride + j];
    }
}

static double solve_exactly(const AlsTask& task, int64_t row, float* scratch) {
    const int64_t stride = task.stride;
    float* a = scratch;
    float* weighted = a + stride * stride;
    float* plain = weighted + GATHER * stride;
    float* b = plain + GATHER * stride;
    float* x = b + stride;
    float* diagonal = x + stride;
    if (task.gram) std::memcpy(a, task.gram, stride * stride * sizeof(float));
    else std::memset(a, 0, stride * stride * sizeof(float));
    std::memset(b, 0, stride * sizeof(float));
    for (int64_t d = 0; d < stride; ++d) a[d * stride + d] += task.ridge[row];
    double constant = 0;
    for (int64_t k = task.starts[row]; k < task.starts[row + 1]; k += GATHER) {
        const int64_t left = task.starts[row + 1] - k, count = left < GATHER ? left : GATHER;
        for (int64_t i = 0; i < count; ++i) {
            const float* y = task.others + (int64_t)task.columns[k + i] * stride;
            const float value = task.values[k + i];
            const float weight = task.gram ? task.alpha * value : 1.0f;
            const float target =
                task.gram ? 1.0f + weight : value - task.mean - (task.bias_column >= 0 ? y[task.bias_column] : 0.0f);
            constant += task.gram ? (double)target : (double)target * (double)target;
            std::memcpy(plain + i * stride, y, stride * sizeof(float));
            if (task.bias_column >= 0) plain[i * stride + task.bias_column] = 0;
            const vec factor = splat(weight);
            for (int64_t d = 0; d < stride; d += LANES)
                store(weighted + i * stride + d, factor * load(plain + i * stride + d));
            add(b, target, plain + i * stride, stride);
        }
        outer_products(weighted, plain, count, stride, a);
    }
    std::memcpy(x, b, stride * sizeof(float));
    cholesky(a, stride, diagonal);
    substitute(a, x, stride);
    const double loss = constant - (double)dot(b, x, stride);
    if (task.bias_column >= 0) x[task.bias_column] = 1;
    std::memcpy(task.rows + row * stride, x, stride * sizeof(float));
    return loss;
}

static double solve(const AlsTask& task, int64_t first, int64_t last, float* scratch) {
    double loss = 0;
    if (task.steps > 0)
        for (int64_t row = first; row < last; row += GROUP)
            loss += iterate(task, row, last - row < GROUP ? last - row : GROUP, scratch);
    else
        for (int64_t row = first; row < last; ++row) loss += solve_exactly(task, row, scratch);
    return loss;
}

extern const Als als;
const Als als = {gram, solve};

}  // namespace ISA
}  // namespace firth
