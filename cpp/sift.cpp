// Which rows can be among the best, told by their bytes: a search then reads a quarter, and its answer stays exact.
//
// With x̂ = step · codes of a row x and q̂ of a query q, the product q·x = q̂·x̂ + q·(x − x̂) + (q − q̂)·x̂, so that
//     |q·x − q̂·x̂| ≤ |q| |x − x̂| + |q − q̂| |x̂|   and   |x̂| ≤ |x| + |x − x̂|
// (Cauchy and Schwarz). A row whose upper bound is below the k-th best lower bound is none of the k best. What float32
// may round off, in the bounds and in the scan that judges the rest, is added to the bounds: both are less than
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
constexpr int64_t SHARE = 1920;
constexpr size_t LIMIT = 1024;        // candidates a query that are always looked through, and of rows
constexpr size_t PART = 16;           // a 16th: with more, bytes tell too little
constexpr double ROUNDING = 0x1p-23;  // twice what one operation loses
constexpr double UP = 1 + 1e-6;       // a double becomes a float of at least its size
constexpr float TINY = 1e-37f;        // more than products can lose below the smallest normal number

// What queries add to bounds. For squared distances −|x − q|² = 2 q·x − |x|² less |q|², which is the same for all rows.
struct Asked {
    Asked(const Scores& kernel, const SearchJob& job)
        : kernel(kernel), job(job), sketch(*job.sketch), count(static_cast<int>(job.count)),
          width(count <= FEW ? FEW : (count + kernel.lanes - 1) / kernel.lanes * kernel.lanes),
          rounding(ROUNDING * static_cast<double>(job.dim + 32)), factors(job.count), errors(job.count), norms(job.count),
          constants(job.count), panels(static_cast<size_t>(width * ((sketch.width + 63) / 64 * 64)), true) {
        const auto size = static_cast<size_t>(job.count);
        std::vector<int8_t> codes(size * static_cast<size_t>(sketch.width));
        std::vector<int32_t> sums(size);
        std::vector<float> steps(size), off(size), lengths(size);
        code_rows(job.queries, job.count, job.dim, sketch.width, codes.data(), steps.data(), sums.data(), off.data(),
                  lengths.data());
        kernel.pack_codes(codes.data(), count, sketch.width, panels.data);
        const double times = job.squared ? 2 : 1;
        for (size_t q = 0; q < size; ++q) {
            const double length = lengths[q], both = length + off[q];
            factors[q] = static_cast<float>(times) * steps[q];
            errors[q] = static_cast<float>(times * both * (1 + rounding) * UP);
            norms[q] = static_cast<float>(times * (off[q] + rounding * both) * UP);
            constants[q] = TINY + (job.squared ? static_cast<float>(rounding * length * length * UP) : 0.0f);
        }
    }

    const Scores& kernel;
    const SearchJob& job;
    const Sketch& sketch;
    int count;
    int64_t width;
    double rounding;
    std::vector<float> factors;    // times a product of codes and the row's step
    std::vector<float> errors;     // times the row's error
    std::vector<float> norms;      // times the row's norm
    std::vector<float> constants;
    Floats panels;
};

// Rows that may be among the best of a query, by their upper bounds.
class Candidates {
  public:
    // False once so many are left that a look at every row is better.
    bool add(Found found, float least, size_t limit) {
        if (all_.size() == most_) {
            drop(least);
            if (all_.size() > most_ / 2) most_ *= 2;
        }
        all_.push_back(found);
        return all_.size() <= limit;
    }
    void drop(float least) {
        all_.erase(std::remove_if(all_.begin(), all_.end(), [&](const Found& f) { return f.score < least; }), all_.end());
    }
    const std::vector<Found>& all() const { return all_; }

  private:
    std::vector<Found> all_;
    size_t most_ = LIMIT;
};

class Sift {
  public:
    Sift(const Asked& asked, int64_t k, int64_t rows)
        : best(asked.count, k), candidates(static_cast<size_t>(asked.count)), asked_(asked), job_(asked.job),
          out_(static_cast<size_t>(BLOCK * asked.width)), limit_(std::max(2 * LIMIT, static_cast<size_t>(rows) / PART)) {}

    // False: bytes tell too little.
    bool rows(int64_t first, int64_t last) {
        for (; first < last && tells_; first += BLOCK)
            block(first, static_cast<int>(std::min<int64_t>(BLOCK, last - first)));
        return tells_;
    }

    Best best;  // lower bounds
    std::vector<Candidates> candidates;

  private:
    void block(int64_t first, int count) {
        const int whole = (count + DOZEN - 1) / DOZEN * DOZEN;
        const Sketch& sketch = asked_.sketch;
        int64_t numbers[BLOCK];
        const int8_t* rows[BLOCK];
        int32_t sums[BLOCK];
        for (int r = 0; r < whole; ++r) {
            const int64_t at = first + std::min(r, count - 1);
            numbers[r] = job_.listed ? job_.listed[at] : at;
            rows[r] = sketch.codes + numbers[r] * sketch.width, sums[r] = sketch.sums[numbers[r]];
        }
        asked_.kernel.codes(rows, sums, whole, sketch.width, asked_.panels.data, asked_.count, out_.data, asked_.width);
        for (int r = 0; r < count; ++r) judge(numbers[r], out_.data + r * asked_.width);
    }

    // A bound that is no number rules nothing out.
    void judge(int64_t row, const float* products) {
        const Sketch& sketch = asked_.sketch;
        const float scale = job_.scales ? job_.scales[row] : 1.0f;
        if (scale != scale) return;  // a zero row, which no cosine finds
        const float step = sketch.steps[row] * scale, error = sketch.errors[row] * scale, norm = sketch.norms[row] * scale;
        const float square = job_.squared ? norm * norm : 0.0f, spread = static_cast<float>(asked_.rounding) * square;
        const float *factors = asked_.factors.data(), *errors = asked_.errors.data(), *norms = asked_.norms.data();
        const float* least = best.least();
        const auto high = [&](int q) {
            return products[q] * (factors[q] * step) + (errors[q] * error + norms[q] * norm) - (square - spread);
        };
        int some = 0;
        for (int q = 0; q < asked_.count; ++q) some |= !(high(q) < least[q]);
        if (!some) return;
        for (int q = 0; q < asked_.count; ++q) {
            const float upper = high(q);
            if (upper < least[q]) continue;
            tells_ &= candidates[static_cast<size_t>(q)].add({upper, row}, least[q], limit_);
            // The constant is part of both bounds; taken off twice here, upper bounds need not have it.
            const float lower = products[q] * (factors[q] * step) - (errors[q] * error + norms[q] * norm) -
                                (square + spread) - 2 * asked_.constants[static_cast<size_t>(q)];
            if (lower <= FLT_MAX) best.offer(row, lower, q);
        }
    }

    const Asked& asked_;
    const SearchJob& job_;
    Floats out_;
    size_t limit_;
    bool tells_ = true;
};

}  // namespace

std::optional<std::vector<int64_t>> sift(const Scores& kernel, const SearchJob& job, int64_t k, int threads) {
    const Asked asked(kernel, job);
    const int64_t rows = job.listed ? job.listed_count : job.rows;
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, rows / SHARE)));
    std::vector<Best> best(static_cast<size_t>(threads), Best(0, k));
    std::vector<std::vector<Candidates>> candidates(static_cast<size_t>(threads));
    std::atomic<int64_t> next{0};
    std::atomic<bool> tells{true};
    on_threads(threads, [&](int thread) {
        Sift own(asked, k, rows);
        for (int64_t first = next.fetch_add(SHARE); first < rows && tells; first = next.fetch_add(SHARE))
            if (!own.rows(first, std::min(first + SHARE, rows))) tells = false;
        best[static_cast<size_t>(thread)] = std::move(own.best);
        candidates[static_cast<size_t>(thread)] = std::move(own.candidates);
    });
    if (!tells) return {};
    std::vector<uint8_t> stays(static_cast<size_t>(job.rows));
    for (int64_t q = 0; q < job.count; ++q) {
        const auto lower = merged(best, q, k);
        const float least = lower.size() == static_cast<size_t>(k) ? lower.back().score : LEAST;
        for (auto& own : candidates) {
            own[static_cast<size_t>(q)].drop(least);
            for (const Found& found : own[static_cast<size_t>(q)].all()) stays[static_cast<size_t>(found.row)] = 1;
        }
    }
    std::vector<int64_t> left;
    for (int64_t row = 0; row < job.rows; ++row)
        if (stays[static_cast<size_t>(row)]) left.push_back(row);
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
        double off = 0, square = 0;
        for (int64_t d = 0; d < dim; ++d) {
            const double x = row[d];
            // Rounding to whole numbers: at this size a double has no room for fractions.
            const double whole = std::min(127.0, std::max(-127.0, (x * inverse + 0x1.8p52) - 0x1.8p52));
            code[d] = static_cast<int8_t>(whole), sum += static_cast<int32_t>(whole);
            off += (x - step * whole) * (x - step * whole), square += x * x;
        }
        std::fill(code + dim, code + width, int8_t{0});
        steps[r] = step, sums[r] = sum;
        errors[r] = static_cast<float>(std::sqrt(off) * UP) + TINY;
        norms[r] = static_cast<float>(std::sqrt(square) * UP);
    }
}

}  // namespace firth
