#include "search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu.h"
#include "floats.h"
#include "threads.h"

namespace firth {
namespace {

constexpr int AT_ONCE = 128;    // queries for which the rows are read once: their panels fit a core's cache
constexpr int BLOCK = 48;       // rows scored before the best are looked for: whole dozens
constexpr int64_t SHARE = 960;  // rows that a thread takes at a time

const Scores& kernel(bool codes) {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512" && (!codes || __builtin_cpu_supports("avx512vnni"))) return avx512::scores;
    if (isa != "baseline") return avx2::scores;
#endif
    (void)codes;
    return baseline::scores;
}

struct Found {
    float score;
    int64_t row;
};

// The worse of two stands nearer to the top of the heap.
bool better(const Found& a, const Found& b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

// The k best so far of each query.
class Best {
  public:
    Best(int64_t queries, int64_t k)
        : k_(static_cast<size_t>(k)), least_(static_cast<size_t>(queries), -std::numeric_limits<float>::infinity()),
          heaps_(static_cast<size_t>(queries)) {
        for (auto& heap : heaps_) heap.reserve(k_);
    }

    // Rows come in rising order, so that of equal scores the first stays.
    void offer(int64_t row, const float* scores, int64_t queries) {
        int some = 0;
        for (int64_t q = 0; q < queries; ++q) some |= scores[q] > least_[static_cast<size_t>(q)];
        if (!some) return;
        for (int64_t q = 0; q < queries; ++q)
            if (scores[q] > least_[static_cast<size_t>(q)]) keep(static_cast<size_t>(q), {scores[q], row});
    }

    std::vector<Found>& heap(int64_t query) { return heaps_[static_cast<size_t>(query)]; }

  private:
    void keep(size_t query, Found found) {
        auto& heap = heaps_[query];
        if (heap.size() == k_) {
            std::pop_heap(heap.begin(), heap.end(), better);
            heap.back() = found;
        } else {
            heap.push_back(found);
        }
        std::push_heap(heap.begin(), heap.end(), better);
        if (heap.size() == k_) least_[query] = heap.front().score;
    }

    size_t k_;
    std::vector<float> least_;
    std::vector<std::vector<Found>> heaps_;
};

// Up to AT_ONCE queries as the kernels want them.
struct Packed {
    Packed(const Scores& kernel, const SearchJob& job, int64_t first, int count)
        : kernel(kernel), job(job), count(count), stride((job.dim + 63) / 64 * 64),
          width(count <= FEW ? FEW : (count + kernel.lanes - 1) / kernel.lanes * kernel.lanes),
          room(static_cast<size_t>(width * stride), true), scales(job.coded_scales ? job.coded_scales + first : nullptr) {
        if (job.numbers == INT8) {
            kernel.pack_codes(job.coded + first * job.dim, count, job.dim, room.data);
        } else if (count <= FEW) {
            for (int q = 0; q < count; ++q)
                std::copy_n(job.queries + (first + q) * job.dim, job.dim, room.data + q * stride);
        } else {
            kernel.pack(job.queries + first * job.dim, count, job.dim, room.data);
        }
    }

    const Scores& kernel;
    const SearchJob& job;
    int count;
    int64_t stride;
    int64_t width;
    Floats room;
    const float* scales;
};

// One thread's way through its rows.
class Scan {
  public:
    Scan(const Packed& packed, int64_t k)
        : packed_(packed), job_(packed.job), out_(static_cast<size_t>(BLOCK * packed.width)),
          wide_(static_cast<size_t>(job_.numbers == FLOAT16 ? DOZEN * job_.dim : 0)), best(packed.count, k) {}

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
        score(numbers, whole);
        for (int r = 0; r < count; ++r) {
            float* scores = out_.data + r * packed_.width;
            finish(numbers[r], scores);
            best.offer(numbers[r], scores, packed_.count);
        }
    }

    void score(const int64_t* numbers, int count) {
        if (job_.numbers == INT8)
            score_codes(numbers, count);
        else if (job_.numbers == FLOAT32)
            score_floats(numbers, count, out_.data);
        else  // a dozen at a time: widened, they stay in the nearest cache
            for (int r = 0; r < count; r += DOZEN) score_floats(numbers + r, DOZEN, out_.data + r * packed_.width);
    }

    void score_codes(const int64_t* numbers, int count) {
        const int8_t* rows[BLOCK];
        int32_t sums[BLOCK];
        for (int r = 0; r < count; ++r) {
            rows[r] = static_cast<const int8_t*>(job_.matrix) + numbers[r] * job_.dim;
            sums[r] = job_.sums[numbers[r]];
        }
        packed_.kernel.codes(rows, sums, count, job_.dim, packed_.room.data, packed_.count, out_.data, packed_.width);
    }

    void score_floats(const int64_t* numbers, int count, float* out) {
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

    void finish(int64_t row, float* scores) const {
        const int64_t count = packed_.count;
        if (job_.scales) {
            const float scale = job_.scales[row];
            for (int64_t q = 0; q < count; ++q) scores[q] *= scale;
        }
        if (packed_.scales)
            for (int64_t q = 0; q < count; ++q) scores[q] *= packed_.scales[q];
        if (job_.offsets) {
            const float offset = job_.offsets[row];
            for (int64_t q = 0; q < count; ++q) scores[q] += offset;
        }
    }

    const Packed& packed_;
    const SearchJob& job_;
    Floats out_;
    Floats wide_;

  public:
    Best best;
};

void some_queries(const Packed& packed, int64_t k, float* scores, int64_t* found, int threads) {
    const int64_t rows = packed.job.listed ? packed.job.listed_count : packed.job.rows;
    threads = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, rows / SHARE)));
    std::vector<std::vector<Found>> all(static_cast<size_t>(threads) * static_cast<size_t>(packed.count));
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int thread) {
        Scan scan(packed, k);
        for (int64_t first = next.fetch_add(SHARE); first < rows; first = next.fetch_add(SHARE))
            scan.rows(first, std::min(first + SHARE, rows));
        for (int q = 0; q < packed.count; ++q)
            all[static_cast<size_t>(q * threads + thread)] = std::move(scan.best.heap(q));
    });
    for (int q = 0; q < packed.count; ++q) {
        std::vector<Found> merged;
        for (int thread = 0; thread < threads; ++thread) {
            const auto& heap = all[static_cast<size_t>(q * threads + thread)];
            merged.insert(merged.end(), heap.begin(), heap.end());
        }
        std::sort(merged.begin(), merged.end(), better);
        merged.resize(static_cast<size_t>(k), {-std::numeric_limits<float>::infinity(), -1});
        for (int64_t i = 0; i < k; ++i) {
            scores[q * k + i] = merged[static_cast<size_t>(i)].score;
            found[q * k + i] = merged[static_cast<size_t>(i)].row;
        }
    }
}

}  // namespace

void search(const SearchJob& job, int64_t k, float* scores, int64_t* found, int threads) {
    const Scores& kernels = kernel(job.numbers == INT8);
    for (int64_t first = 0; first < job.count; first += AT_ONCE) {
        const Packed packed(kernels, job, first, static_cast<int>(std::min<int64_t>(AT_ONCE, job.count - first)));
        some_queries(packed, k, scores + first * k, found + first * k, threads);
    }
}

}  // namespace firth
