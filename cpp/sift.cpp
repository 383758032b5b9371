// Rules out rows by bounds from their int8 codes: a search reads a quarter of the data, and its result stays exact.
//
// With x̂ = step · codes of a row x and q̂ of a query q, the product q·x = q̂·x̂ + q·(x − x̂) + (q − q̂)·x̂, so that
//     |q·x − q̂·x̂| ≤ |q| |x − x̂| + |q − q̂| |x̂|   and   |x̂| ≤ |x| + |x − x̂|
// (Cauchy-Schwarz). A row whose upper bound is below the k-th best lower bound is not among the k best. The rounding
// errors of float32, in the bounds and in the exact scan, are added to the bounds: both are less than
// ROUNDING · (dim + 32) of |q| |x|, or of (|q| + |x|)² for squared distances.
#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>

#include "best.h"
#include "floats.h"
#include "sift.h"
#include "threads.h"

namespace firth {
namespace {

constexpr int BLOCK = 48;
constexpr int64_t ROWS_PER_TASK = 1920;
constexpr size_t LIMIT = 1024;        // initial capacity of the candidates of a query
constexpr size_t MAX_SHARE = 16;      // the sketch is given up when more than 1/16 of the rows remain
constexpr double ROUNDING = 0x1p-23;  // twice the error of one operation
constexpr double UP = 1 + 1e-6;       // rounds a double up when it becomes a float
constexpr float TINY = 1e-37f;        // more than products can lose to subnormal numbers

// The queries' terms of the bounds. For squared distances −|x − q|² = 2 q·x − |x|² − |q|²; |q|² is the same for all
// rows.
struct QueryBounds {
    QueryBounds(const Scores& kernel, const SearchTask& task)
        : kernel(kernel), task(task), sketch(*task.sketch), count(static_cast<int>(task.count)),
          width(count <= FEW ? FEW : (count + kernel.lanes - 1) / kernel.lanes * kernel.lanes),
          rounding(ROUNDING * static_cast<double>(task.dim + 32)), factors(task.count), errors(task.count),
          norms(task.count), constants(task.count),
          panels(static_cast<size_t>(width * ((sketch.width + 63) / 64 * 64)), true) {
        const auto size = static_cast<size_t>(task.count);
        std::vector<int8_t> codes(size * static_cast<size_t>(sketch.width));
        std::vector<int32_t> sums(size);
        std::vector<float> steps(size), error_norms(size), lengths(size);
        code_rows(task.queries, task.count, task.dim, sketch.width, codes.data(), steps.data(), sums.data(),
                  error_norms.data(), lengths.data());
        kernel.pack_codes(codes.data(), count, sketch.width, panels.data);
        const double times = task.squared ? 2 : 1;
        for (size_t q = 0; q < size; ++q) {
            const double length = lengths[q], both = length + error_norms[q];
            factors[q] = static_cast<float>(times) * steps[q];
            errors[q] = static_cast<float>(times * both * (1 + rounding) * UP);
            norms[q] = static_cast<float>(times * (error_norms[q] + rounding * both) * UP);
            constants[q] = TINY + (task.squared ? static_cast<float>(rounding * length * length * UP) : 0.0f);
        }
    }

    const Scores& kernel;
    const SearchTask& task;
    const Sketch& sketch;
    int count;
    int64_t width;
    double rounding;
    std::vector<float> factors;  // factor of a product of codes and the row's step
    std::vector<float> errors;   // factor of the row's error
    std::vector<float> norms;    // factor of the row's norm
    std::vector<float> constants;
    Floats panels;
};

// Rows that may be among the best of a query, by their upper bounds.
class Candidates {
  public:
    // Returns false when so many remain that a full scan is faster.
    bool add(ScoredRow row, float least, size_t limit) {
        if (all_.size() == most_) {
            drop(least);
            if (all_.size() > most_ / 2) most_ *= 2;
        }
        all_.push_back(row);
        return all_.size() <= limit;
    }
    void drop(float least) {
        all_.erase(std::remove_if(all_.begin(), all_.end(), [&](const ScoredRow& f) { return f.score < least; }),
                   all_.end());
    }
    const std::vector<ScoredRow>& all() const { return all_; }

  private:
    std::vector<ScoredRow> all_;
    size_t most_ = LIMIT;
};

class Sift {
  public:
    Sift(const QueryBounds& bounds, int64_t k, int64_t rows)
        : best(bounds.count, k), candidates(static_cast<size_t>(bounds.count)), bounds_(bounds), task_(bounds.task),
          out_(static_cast<size_t>(BLOCK * bounds.width)),
          limit_(std::max(2 * LIMIT, static_cast<size_t>(rows) / MAX_SHARE)) {}

    // Returns false if the sketch rules out too few rows.
    bool rows(int64_t first, int64_t last) {
        for (; first < last && effective_; first += BLOCK)
            block(first, static_cast<int>(std::min<int64_t>(BLOCK, last - first)));
        return effective_;
    }

    Best best;  // lower bounds
    std::vector<Candidates> candidates;

  private:
    void block(int64_t first, int count) {
        const int padded = (count + DOZEN - 1) / DOZEN * DOZEN;
        const Sketch& sketch = bounds_.sketch;
        int64_t row_ids[BLOCK];
        const int8_t* rows[BLOCK];
        int32_t sums[BLOCK];
        for (int r = 0; r < padded; ++r) {
            const int64_t at = first + std::min(r, count - 1);
            row_ids[r] = task_.listed ? task_.listed[at] : at;
            rows[r] = sketch.codes + row_ids[r] * sketch.width, sums[r] = sketch.sums[row_ids[r]];
        }
        bounds_.kernel.codes(rows, sums, padded, sketch.width, bounds_.panels.data, bounds_.count, out_.data,
                             bounds_.width);
        for (int r = 0; r < count; ++r) check_row(row_ids[r], out_.data + r * bounds_.width);
    }

    // A NaN bound rules nothing out.
    void check_row(int64_t row, const float* products) {
        const Sketch& sketch = bounds_.sketch;
        const float scale = task_.scales ? task_.scales[row] : 1.0f;
        if (scale != scale) return;  // a zero row has no cosine
        const float step = sketch.steps[row] * scale, error = sketch.errors[row] * scale,
                    norm = sketch.norms[row] * scale;
        const float square = task_.squared ? norm * norm : 0.0f, spread = static_cast<float>(bounds_.rounding) * square;
        const float *factors = bounds_.factors.data(), *errors = bounds_.errors.data(), *norms = bounds_.norms.data();
        const float* least = best.thresholds();
        const auto high = [&](int q) {
            return products[q] * (factors[q] * step) + (errors[q] * error + norms[q] * norm) - (square - spread);
        };
        int any = 0;
        for (int q = 0; q < bounds_.count; ++q) any |= !(high(q) < least[q]);
        if (!any) return;
        for (int q = 0; q < bounds_.count; ++q) {
            const float upper = high(q);
            if (upper < least[q]) continue;
            effective_ &= candidates[static_cast<size_t>(q)].add({upper, row}, least[q], limit_);
            // The constant belongs to both bounds; it is subtracted twice here, so the upper bounds can omit it.
            const float lower = products[q] * (factors[q] * step) - (errors[q] * error + norms[q] * norm) -
                                (square + spread) - 2 * bounds_.constants[static_cast<size_t>(q)];
            if (lower <= FLT_MAX) best.offer(row, lower, q);
        }
    }

    const QueryBounds& bounds_;
    const SearchTask& task_;
    Floats out_;
    size_t limit_;
    bool effective_ = true;
};

}  // namespace

std::optional<std::vector<int64_t>> sift(const Scores& kernel, const SearchTask& task, int64_t k, int threads) {
    const QueryBounds bounds(kernel, task);
    const int64_t rows = task.listed ? task.listed_count : task.rows;
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, rows / ROWS_PER_TASK)));
    std::vector<Best> best(static_cast<size_t>(threads), Best(0, k));
    std::vector<std::vector<Candidates>> candidates(static_cast<size_t>(threads));
    std::atomic<int64_t> next{0};
    std::atomic<bool> effective{true};
    on_threads(threads, [&](int thread) {
        Sift own(bounds, k, rows);
        for (int64_t first = next.fetch_add(ROWS_PER_TASK); first < rows && effective;
             first = next.fetch_add(ROWS_PER_TASK))
            if (!own.rows(first, std::min(first + ROWS_PER_TASK, rows))) effective = false;
        best[static_cast<size_t>(thread)] = std::move(own.best);
        candidates[static_cast<size_t>(thread)] = std::move(own.candidates);
    });
    if (!effective) return {};
    std::vector<uint8_t> remains(static_cast<size_t>(task.rows));
    for (int64_t q = 0; q < task.count; ++q) {
        const auto lower = merged(best, q, k);
        const float least = lower.size() == static_cast<size_t>(k) ? lower.back().score : LOWEST;
        for (auto& own : candidates) {
            own[static_cast<size_t>(q)].drop(least);
            for (const ScoredRow& candidate : own[static_cast<size_t>(q)].all())
                remains[static_cast<size_t>(candidate.row)] = 1;
        }
    }
    std::vector<int64_t> left;
    for (int64_t row = 0; row < task.rows; ++row)
        if (remains[static_cast<size_t>(row)]) left.push_back(row);
    return left;
}

void code_rows(const float* rows, int64_t count, int64_t dim, int64_t width, int8_t* codes, float* steps, int32_t* sums,
               float* errors, float* norms) {
    for (int64_t r = 0; r < count; ++r) {
        const float* row = rows + r * dim;
        int8_t* code = codes + r * width;
        float largest = 0;
        for (int64_t d = 0; d < dim; ++d) largest = std::max(largest, std::fabs(row[d]));
        const float step = largest / 127;
        const double inverse = step > 0 ? 1 / static_cast<double>(step) : 0.0;
        int32_t sum = 0;
        double error = 0, square = 0;
        for (int64_t d = 0; d < dim; ++d) {
            const double x = row[d];
            // Rounds to an integer: a double of this size has no fraction bits.
            const double rounded = std::min(127.0, std::max(-127.0, (x * inverse + 0x1.8p52) - 0x1.8p52));
            code[d] = static_cast<int8_t>(rounded), sum += static_cast<int32_t>(rounded);
            error += (x - step * rounded) * (x - step * rounded), square += x * x;
        }
        std::fill(code + dim, code + width, int8_t{0});
        steps[r] = step, sums[r] = sum;
        errors[r] = static_cast<float>(std::sqrt(error) * UP) + TINY;
        norms[r] = static_cast<float>(std::sqrt(square) * UP);
    }
}

}  // namespace firth
