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
constexpr const char* WRONG_ROOM = "rows must have the room that count_different found.";

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

// A count for each word, all zero between documents; filled by one thread.
std::vector<std::vector<int32_t>> tallies(int threads, int32_t words) {
    return std::vector<std::vector<int32_t>>(static_cast<size_t>(threads), std::vector<int32_t>(words, 0));
}

}  // namespace

void count_different(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, int64_t* different,
                     int threads) {
    auto seen = tallies(threads, words);
    in_stretches(starts, documents, threads, [&](int64_t first, int64_t last, int thread) {
        auto& here = seen[static_cast<size_t>(thread)];
        for (int64_t d = first; d < last; ++d) {
            int64_t found = 0;
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i) found += here[ids[i]]++ == 0;
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i) here[ids[i]] = 0;
            different[d] = found;
        }
    });
}

void count_words(const int32_t* ids, const int64_t* starts, int64_t documents, int32_t words, const int64_t* rows,
                 int32_t* columns, float* counts, int threads) {
    auto tally = tallies(threads, words);
    in_stretches(starts, documents, threads, [&](int64_t first, int64_t last, int thread) {
        auto& here = tally[static_cast<size_t>(thread)];
        for (int64_t d = first; d < last; ++d) {
            int32_t* const begin = columns + rows[d];
            int32_t* end = begin;
            int32_t* const room = columns + rows[d + 1];
            for (int64_t i = starts[d]; i < starts[d + 1]; ++i)
                if (here[ids[i]]++ == 0) {
                    if (end == room) throw std::invalid_argument(WRONG_ROOM);
                    *end++ = ids[i];
                }
            if (end != room) throw std::invalid_argument(WRONG_ROOM);
            std::sort(begin, end);
            for (int32_t* word = begin; word < end; ++word) {
                counts[word - columns] = static_cast<float>(here[*word]);
                here[*word] = 0;
            }
        }
    });
}

void multiply(const SparseRows& sparse, const float* dense, int64_t width, float* out, int threads) {
    const MultiplyRows rows = chosen_multiply();
    in_stretches(sparse.starts, sparse.rows, threads,
                 [&](int64_t first, int64_t last, int) { rows(sparse, dense, width, out, first, last); });
}

}  // namespace firth
