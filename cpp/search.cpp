#include "search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "best.h"
#include "cpu.h"
#include "floats.h"
#include "sift.h"
#include "threads.h"

namespace firth {
namespace {

constexpr int QUERY_BATCH = 128;                // queries per pass over the rows: their panels fit a core's cache
constexpr int BLOCK = 48;                       // rows scored at a time; a multiple of DOZEN
constexpr int64_t ROWS_PER_TASK = 960;          // rows taken by a thread at a time
constexpr int64_t MIN_SKETCH_VALUES = 1 << 20;  // matrix size from which the sketch pays off

const Scores& kernel() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::scores;
    if (isa != "baseline") return avx2::scores;
#endif
    return baseline::scores;
}

// The kernel for int8 codes. They are fast with AVX-512 VNNI; otherwise only a few queries, which are memory-bound,
// gain.
const Scores* sketch_kernel(int64_t queries) {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512" && __builtin_cpu_supports("avx512vnni")) return &avx512::scores;
    if (queries <= FEW) return isa == "baseline" ? &baseline::scores : &avx2::scores;
    return nullptr;
#else
    return queries <= FEW ? &baseline::scores : nullptr;
#endif
}

// Up to QUERY_BATCH queries, packed for the kernels.
struct Packed {
    Packed(const Scores& kernel, const SearchTask& task)
        : kernel(kernel), task(task), count(static_cast<int>(task.count)), stride((task.dim + 63) / 64 * 64),
          width(count <= FEW ? FEW : (count + kernel.lanes - 1) / kernel.lanes * kernel.lanes),
          room(static_cast<size_t>(width * stride), true) {
        if (count <= FEW)
            for (int q = 0; q < count; ++q) std::copy_n(task.queries + q * task.dim, task.dim, room.data + q * stride);
        else kernel.pack(task.queries, count, task.dim, room.data);
    }

    const Scores& kernel;
    const SearchTask& task;
    int count;
    int64_t stride;
    int64_t width;
    Floats room;
};

// The scan of one thread.
class Scan {
  public:
    Scan(const Packed& packed, Best& best)
        : packed_(packed), task_(packed.task), best_(best), out_(static_cast<size_t>(BLOCK * packed.width)),
          wide_(static_cast<size_t>(task_.dtype == FLOAT16 ? DOZEN * task_.dim : 0)) {}

    void rows(int64_t first, int64_t last) {
        for (; first < last; first += BLOCK) block(first, static_cast<int>(std::min<int64_t>(BLOCK, last - first)));
    }

  private:
    void block(int64_t first, int count) {
        const int padded = (count + DOZEN - 1) / DOZEN * DOZEN;
        int64_t row_ids[BLOCK];
        for (int r = 0; r < padded; ++r) {  // the padding repeats the last row; its scores are ignored
            const int64_t at = first + std::min(r, count - 1);
            row_ids[r] = task_.listed ? task_.listed[at] : at;
        }
        if (task_.dtype == FLOAT32) score(row_ids, padded, out_.data);
        else  // a dozen at a time, so that the widened rows stay in the L1 cache
            for (int r = 0; r < padded; r += DOZEN) score(row_ids + r, DOZEN, out_.data + r * packed_.width);
        for (int r = 0; r < count; ++r) {
            float* scores = out_.data + r * packed_.width;
            if (task_.scales)
                for (int q = 0; q < packed_.count; ++q) scores[q] *= task_.scales[row_ids[r]];
            best_.offer(row_ids[r], scores, packed_.count);
        }
    }

    void score(const int64_t* row_ids, int count, float* out) {
        const Scores& kernel = packed_.kernel;
        const float* rows[BLOCK];
        for (int r = 0; r < count; ++r) {
            rows[r] = static_cast<const float*>(task_.matrix) + row_ids[r] * task_.dim;
            if (task_.dtype == FLOAT16) {
                rows[r] = wide_.data + r * task_.dim;
                const auto* half = static_cast<const uint16_t*>(task_.matrix) + row_ids[r] * task_.dim;
                kernel.widen(half, task_.dim, wide_.data + r * task_.dim);
            }
        }
        if (packed_.count <= FEW)
            kernel.few(rows, count, task_.dim, packed_.room.data, packed_.count, packed_.stride, task_.squared, out,
                       packed_.width);
        else kernel.floats(rows, count, task_.dim, packed_.room.data, packed_.count, task_.squared, out, packed_.width);
    }

    const Packed& packed_;
    const SearchTask& task_;
    Best& best_;
    Floats out_;
    Floats wide_;
};

void scan(const SearchTask& task, int64_t k, float* scores, int64_t* rows_out, int threads) {
    const Packed packed(kernel(), task);
    const int64_t rows = task.listed ? task.listed_count : task.rows;
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, rows / ROWS_PER_TASK)));
    std::vector<Best> best(static_cast<size_t>(threads), Best(task.count, k));
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int thread) {
        Scan own(packed, best[static_cast<size_t>(thread)]);
        for (int64_t first = next.fetch_add(ROWS_PER_TASK); first < rows; first = next.fetch_add(ROWS_PER_TASK))
            own.rows(first, std::min(first + ROWS_PER_TASK, rows));
    });
    for (int64_t q = 0; q < task.count; ++q) {
        auto all = merged(best, q, k);
        all.resize(static_cast<size_t>(k), {LOWEST, -1});
        for (int64_t i = 0; i < k; ++i) {
            scores[q * k + i] = all[static_cast<size_t>(i)].score;
            rows_out[q * k + i] = all[static_cast<size_t>(i)].row;
        }
    }
}

}  // namespace

void search(const SearchTask& all, int64_t k, float* scores, int64_t* rows_out, int threads) {
    for (int64_t first = 0; first < all.count; first += QUERY_BATCH) {
        SearchTask task = all;
        task.queries += first * task.dim, task.count = std::min<int64_t>(QUERY_BATCH, all.count - first);
        std::optional<std::vector<int64_t>> left;
        const Scores* bytes = task.sketch ? sketch_kernel(task.count) : nullptr;
        if (bytes && (task.listed ? task.listed_count : task.rows) * task.dim >= MIN_SKETCH_VALUES)
            left = sift(*bytes, task, k, threads);
        if (left) task.listed = left->data(), task.listed_count = static_cast<int64_t>(left->size());
        scan(task, k, scores + first * k, rows_out + first * k, threads);
    }
}

}  // namespace firth
