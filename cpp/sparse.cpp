#include "sparse.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "cpu.h"
#include "threads.h"

namespace firth {
namespace {

constexpr int64_t BLOCK_ENTRIES = 1 << 15;  // entries taken by a thread at a time

// Distributes rows over threads in blocks of about BLOCK_ENTRIES entries: work(first, last, thread).
template <class Work>
void parallel_blocks(const int64_t* starts, int64_t rows, int threads, Work work) {
    std::vector<int64_t> bounds{0};
    for (int64_t row = 0; row < rows; ++row)
        if (starts[row + 1] - starts[bounds.back()] >= BLOCK_ENTRIES || row + 1 - bounds.back() >= BLOCK_ENTRIES ||
            row + 1 == rows)
            bounds.push_back(row + 1);
    const auto blocks = static_cast<int64_t>(bounds.size()) - 1;
    std::atomic<int64_t> next{0};
    on_threads(static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, blocks))), [&](int thread) {
        for (int64_t s = next.fetch_add(1); s < blocks; s = next.fetch_add(1)) work(bounds[s], bounds[s + 1], thread);
    });
}

MultiplyRows active_multiply() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::multiply_rows;
    if (isa == "avx2") return avx2::multiply_rows;
#endif
    return baseline::multiply_rows;
}

// The word counts of one document, all zero between documents. A two-level bitmap of the words that occur gives them in
// ascending order without sorting.
class Tally {
  public:
    explicit Tally(int32_t words) : counts_(words, 0), low_((words >> 6) + 1, 0), high_((words >> 12) + 1, 0) {}

    // Returns whether the word is new. The bits are set each time, because a branch would cost more.
    bool add(int32_t word) {
        low_[word >> 6] |= uint64_t{1} << (word & 63);
        high_[word >> 12] |= uint64_t{1} << (word >> 6 & 63);
        return counts_[word]++ == 0;
    }

    // Calls take(word, count) for each word in ascending order and clears the counts.
    template <class Take>
    void empty(Take take) {
        for (size_t h = 0; h < high_.size(); ++h) {
            for (; high_[h]; high_[h] &= high_[h] - 1) {
                const size_t l = h << 6 | __builtin_ctzll(high_[h]);
                for (; low_[l]; low_[l] &= low_[l] - 1) {
                    const auto word = static_cast<int32_t>(l << 6 | __builtin_ctzll(low_[l]));
                    take(word, counts_[word]);
                    counts_[word] = 0;
                }
            }
        }
    }

  private:
    std::vector<int32_t> counts_;
    std::vector<uint64_t> low_, high_;
};

}  // namespace

void count_distinct(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, int64_t* distinct,
                    int threads) {
    // The last document in which each word occurred.
    std::vector<std::vector<int64_t>> last_seen(static_cast<size_t>(threads), std::vector<int64_t>(words, -1));
    parallel_blocks(starts, documents, threads, [&](int64_t first, int64_t last, int thread) {
        auto& seen = last_seen[static_cast<size_t>(thread)];
        for (int64_t d = first; d < last; ++d) {
            int64_t count = 0;
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i) {
                count += seen[ids[i]] != d;
                seen[ids[i]] = d;
            }
            distinct[d] = count;
        }
    });
}

void count_words(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, const int64_t* rows,
                 int32_t* columns, float* counts, int threads) {
    std::vector<Tally> tallies(static_cast<size_t>(threads), Tally(words));
    parallel_blocks(starts, documents, threads, [&](int64_t first, int64_t last, int thread) {
        auto& here = tallies[static_cast<size_t>(thread)];
        for (int64_t d = first; d < last; ++d) {
            int64_t expected = rows[d + 1] - rows[d];
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i) expected -= here.add(ids[i]);
            if (expected != 0) throw std::invalid_argument("the row lengths must be those of count_distinct.");
            int64_t position = rows[d];
            here.empty([&](int32_t word, int32_t count) {
                columns[position] = word;
                counts[position++] = static_cast<float>(count);
            });
        }
    });
}

void multiply(const SparseRows& sparse, const float* dense, int64_t width, float* out, int threads) {
    const MultiplyRows rows = active_multiply();
    parallel_blocks(sparse.starts, sparse.rows, threads,
                    [&](int64_t first, int64_t last, int) { rows(sparse, dense, width, out, first, last); });
}

}  // namespace firth
