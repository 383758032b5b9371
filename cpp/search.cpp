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

constexpr int AT_ONCE = 128;       // queries for which the rows are read once: their panels fit a core's cache
constexpr int BLOCK = 48;          // rows scored before the best are looked for: whole dozens
constexpr int64_t SHARE = 960;     // rows that a thread takes at a time
constexpr int64_t MANY = 1 << 20;  // numbers from which on a look at their bytes first pays

const Scores& kernel() {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512") return avx512::scores;
    if (isa != "baseline") return avx2::scores;
#endif
    return baseline::scores;
}

// Bytes are quick in AVX-512 with VNNI; in other sets only a few queries, which wait for memory, gain by them.
const Scores* sketch_kernel(int64_t queries) {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512" && __builtin_cpu_supports("avx512vnni")) return &avx512::scores;
    if (queries <= FEW) return isa == "baseline" ? &baseline::scores : &avx2::scores;
    return nullptr;
#else
    return queries <= FEW ? &baseline::scores : nullptr;
#endif
}

// Up to AT_ONCE queries as the kernels want them.
struct Packed {
    Packed(const Scores& kernel, const SearchJob& job)
        : kernel(kernel), job(job), count(static_cast<int>(job.count)), stride((job.dim + 63) / 64 * 64),
          width(count <= FEW ? FEW : (count + kernel.lanes - 1) / kernel.lanes * kernel.lanes),
          room(static_cast<size_t>(width * stride), true) {
        if (count <= FEW)
            for (int q = 0; q < count; ++q) std::copy_n(job.queries + q * job.dim, job.dim, room.data + q * stride);
        else
            kernel.pack(job.queries, count, job.dim, room.data);
    }

    const Scores& kernel;
    const SearchJob& job;
    int count;
    int64_t stride;
    int64_t width;
    Floats room;
};

// One thread's way through its rows.
class Scan {
  public:
    Scan(const Packed& packed, Best& best)
        : packed_(packed), job_(packed.job), best_(best), out_(static_cast<size_t>(BLOCK * packed.width)),
          wide_(static_cast<size_t>(job_.numbers == FLOAT16 ? DOZEN * job_.dim : 0)) {}

    void rows(int64_t first, int64_t last) {
        for (; first < last; first += BLOCK) block(first, static_cast<int>(std::min<int64_t>(BLOCK, last - first)));
    }

  private:
    void block(int64_t first, int count) {
        const int whole = (count + DOZEN - 1) / DOZEN * DOZEN;
        int64_t numbers[BLOCK];
        for (int r = 0; r < whole; ++r) {  // beyond the last row that one again, and not looked at
            const int64_t at = first + std::min(r, count - 1);
            numbers[r] = job_.listed ? job_.listed[at] : at;
        }
        if (job_.numbers == FLOAT32)
            score(numbers, whole, out_.data);
        else  // a dozen at a time: widened, they stay in the nearest cache
            for (int r = 0; r < whole; r += DOZEN) score(numbers + r, DOZEN, out_.data + r * packed_.width);
        for (int r = 0; r < count; ++r) {
            float* scores = out_.data + r * packed_.width;
            if (job_.scales)
                for (int q = 0; q < packed_.count; ++q) scores[q] *= job_.scales[numbers[r]];
            best_.offer(numbers[r], scores, packed_.count);
        }
    }

    void score(const int64_t* numbers, int count, float* out) {
        const Scores& kernel = packed_.kernel;
        const float* rows[BLOCK];
        for (int r = 0; r < count; ++r) {
            rows[r] = static_cast<const float*>(job_.matrix) + numbers[r] * job_.dim;
            if (job_.numbers == FLOAT16) {
                rows[r] = wide_.data + r * job_.dim;
                const auto* half = static_cast<const uint16_t*>(job_.matrix) + numbers[r] * job_.dim;
                kernel.widen(half, job_.dim, wide_.data + r * job_.dim);
            }
        }
        if (packed_.count <= FEW)
            kernel.few(rows, count, job_.dim, packed_.room.data, packed_.count, packed_.stride, job_.squared, out,
                       packed_.width);
        else
            kernel.floats(rows, count, job_.dim, packed_.room.data, packed_.count, job_.squared, out, packed_.width);
    }

    const Packed& packed_;
    const SearchJob& job_;
    Best& best_;
    Floats out_;
    Floats wide_;
};

void scan(const SearchJob& job, int64_t k, float* scores, int64_t* found, int threads) {
    const Packed packed(kernel(), job);
    const int64_t rows = job.listed ? job.listed_count : job.rows;
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, rows / SHARE)));
    std::vector<Best> best(static_cast<size_t>(threads), Best(job.count, k));
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int thread) {
        Scan own(packed, best[static_cast<size_t>(thread)]);
        for (int64_t first = next.fetch_add(SHARE); first < rows; first = next.fetch_add(SHARE))
            own.rows(first, std::min(first + SHARE, rows));
    });
    for (int64_t q = 0; q < job.count; ++q) {
        auto all = merged(best, q, k);
        all.resize(static_cast<size_t>(k), {LEAST, -1});
        for (int64_t i = 0; i < k; ++i) {
            scores[q * k + i] = all[static_cast<size_t>(i)].score;
            found[q * k + i] = all[static_cast<size_t>(i)].row;
        }
    }
}

}  // namespace

void search(const SearchJob& whole, int64_t k, float* scores, int64_t* found, int threads) {
    for (int64_t first = 0; first < whole.count; first += AT_ONCE) {
        SearchJob job = whole;
        job.queries += first * job.dim, job.count = std::min<int64_t>(AT_ONCE, whole.count - first);
        std::optional<std::vector<int64_t>> left;
        const Scores* bytes = job.sketch ? sketch_kernel(job.count) : nullptr;
        if (bytes && (job.listed ? job.listed_count : job.rows) * job.dim >= MANY) left = sift(*bytes, job, k, threads);
        if (left) job.listed = left->data(), job.listed_count = static_cast<int64_t>(left->size());
        scan(job, k, scores + first * k, found + first * k, threads);
    }
}

}  // namespace firth
