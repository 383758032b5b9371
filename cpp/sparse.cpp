#include "sparse.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "cpu.h"
#include "threads.h"

namespace firth {
namespace {

constexpr int64_t ENOUGH = 1 << 15;  // entries a thread takes at a time

// Cuts rows into stretches of about ENOUGH entries and deals them to threads: work(first, last, thread).
template <class Work>
void in_stretches(const int64_t* starts, int64_t rows, int threads, Work work) {
    std::vector<int64_t> cuts{0};
    for (int64_t row = 0; row < rows; ++row)
        if (starts[row + 1] - starts[cuts.back()] >= ENOUGH || row + 1 - cuts.back() >= ENOUGH || row + 1 == rows)
            cuts.push_back(row + 1);
    const auto stretches = static_cast<int64_t>(cuts.size()) - 1;
    std::atomic<int64_t> next{0};
    on_threads(static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, stretches))), [&](int thread) {
        for (int64_t s = next.fetch_add(1); s < stretches; s = next.fetch_add(1)) work(cuts[s], cuts[s + 1], thread);
    });
}

MultiplyRows chosen_multiply() {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512") return avx512::multiply_rows;
    if (isa == "avx2") return avx2::multiply_rows;
#endif
    return baseline::multiply_rows;
}

// How often each word occurred in one document, all zero between documents. Bits say which did, and bits over those
// which 64 bits are not all zero, so that words come out in ascending order without sorting.
class Tally {
  public:
    explicit Tally(int32_t words) : counts_(words, 0), low_((words >> 6) + 1, 0), high_((words >> 12) + 1, 0) {}

    // True if it is the word's first time. The bits are set each time: guessing whether they are costs more.
    bool add(int32_t word) {
        low_[word >> 6] |= uint64_t{1} << (word & 63);
        high_[word >> 12] |= uint64_t{1} << (word >> 6 & 63);
        return counts_[word]++ == 0;
    }

    // take(word, count) for each word in ascending order; all are forgotten.
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

void count_different(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, int64_t* different,
                     int threads) {
    // The document that held each word last.
    std::vector<std::vector<int64_t>> last_seen(static_cast<size_t>(threads), std::vector<int64_t>(words, -1));
    in_stretches(starts, documents, threads, [&](int64_t first, int64_t last, int thread) {
        auto& seen = last_seen[static_cast<size_t>(thread)];
        for (int64_t d = first; d < last; ++d) {
            int64_t found = 0;
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i) {
                found += seen[ids[i]] != d;
                seen[ids[i]] = d;
            }
            different[d] = found;
        }
    });
}

void count_words(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, const int64_t* rows,
                 int32_t* columns, float* counts, int threads) {
    std::vector<Tally> tallies(static_cast<size_t>(threads), Tally(words));
    in_stretches(starts, documents, threads, [&](int64_t first, int64_t last, int thread) {
        auto& here = tallies[static_cast<size_t>(thread)];
        for (int64_t d = first; d < last; ++d) {
            int64_t room = rows[d + 1] - rows[d];
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i) room -= here.add(ids[i]);
            if (room != 0) throw std::invalid_argument("rows must have the room that count_different found.");
            int64_t place = rows[d];
            here.empty([&](int32_t word, int32_t count) {
                columns[place] = word;
                counts[place++] = static_cast<float>(count);
            });
        }
    });
}

void multiply(const SparseRows& sparse, const float* dense, int64_t width, float* out, int threads) {
    const MultiplyRows rows = chosen_multiply();
    in_stretches(sparse.starts, sparse.rows, threads,
                 [&](int64_t first, int64_t last, int) { rows(sparse, dense, width, out, first, last); });
}

}  // namespace firth
