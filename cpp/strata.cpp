#include "strata.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "cpu.h"
#include "files.h"
#include "hash.h"
#include "threads.h"

namespace firth {
namespace {

const Glove& kernel() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::glove;
    if (isa == "avx2") return avx2::glove;
#endif
    return baseline::glove;
}

void shuffle(GloveRecord* records, int64_t count, uint64_t seed) {
    for (int64_t i = count - 1; i > 0; --i) {
        seed += GOLDEN;
        const auto j =
            static_cast<int64_t>((static_cast<unsigned __int128>(mix(seed)) * static_cast<uint64_t>(i + 1)) >> 64);
        std::swap(records[i], records[j]);
    }
}

// Fills `records` with the blocks of one part of the words; `starts` gets the start of each block, and the end.
void fill_part(const Counts& counts, double x_max, double exponent, int parts, int part, uint64_t seed,
               std::vector<GloveRecord>& records, std::vector<int64_t>& starts) {
    starts.assign(static_cast<size_t>(parts) + 1, 0);
    for (int32_t w = part; w < counts.words; w += parts)
        for (int64_t i = counts.starts[w]; i < counts.starts[w + 1]; ++i)
            ++starts[static_cast<size_t>(counts.contexts[i] % parts) + 1];
    for (int p = 0; p < parts; ++p) starts[static_cast<size_t>(p) + 1] += starts[static_cast<size_t>(p)];
    records.resize(static_cast<size_t>(starts.back()));
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (int32_t w = part; w < counts.words; w += parts) {
        for (int64_t i = counts.starts[w]; i < counts.starts[w + 1]; ++i) {
            const double count = counts.counts[i];
            const double weight = count < x_max ? std::pow(count / x_max, exponent) : 1.0;
            records[static_cast<size_t>(next[static_cast<size_t>(counts.contexts[i] % parts)]++)] = {
                w, counts.contexts[i], static_cast<float>(std::log(count)), static_cast<float>(weight)};
        }
    }
    for (int p = 0; p < parts; ++p) {
        const size_t block = static_cast<size_t>(p);
        shuffle(records.data() + starts[block], starts[block + 1] - starts[block],
                mix(seed + static_cast<uint64_t>(part) * static_cast<uint64_t>(parts) + block));
    }
}

}  // namespace

void write_strata(const Counts& counts, double x_max, double exponent, int parts, uint64_t seed, int threads, int file,
                  int64_t* starts) {
    std::vector<int64_t> begin(static_cast<size_t>(parts) + 1, 0);
    for (int32_t w = 0; w < counts.words; ++w)
        begin[static_cast<size_t>(w % parts) + 1] += counts.starts[w + 1] - counts.starts[w];
    for (int p = 0; p < parts; ++p) begin[static_cast<size_t>(p) + 1] += begin[static_cast<size_t>(p)];
    std::atomic<int> next{0};
    on_threads(std::min(threads, parts), [&](int) {
        std::vector<GloveRecord> records;
        std::vector<int64_t> inner;
        for (int part; (part = next++) < parts;) {
            fill_part(counts, x_max, exponent, parts, part, seed, records, inner);
            const int64_t first = begin[static_cast<size_t>(part)];
            for (int p = 0; p < parts; ++p)
                starts[static_cast<int64_t>(part) * parts + p] = first + inner[static_cast<size_t>(p)];
            write_all(file, records.data(), static_cast<int64_t>(records.size() * sizeof(GloveRecord)),
                      first * static_cast<int64_t>(sizeof(GloveRecord)));
        }
    });
    starts[static_cast<int64_t>(parts) * parts] = begin.back();
}

double train_diagonal(const GloveTask& task, const GloveRecord* records, const int64_t* starts, int parts, int diagonal,
                      int64_t piece, int64_t pieces, int threads) {
    const Glove& glove = kernel();
    std::vector<double> losses(static_cast<size_t>(parts),
                               0.0);  // one per block, so that the sum doesn't depend on the threads
    std::atomic<int> next{0};
    on_threads(std::min(threads, parts), [&](int) {
        for (int part; (part = next++) < parts;) {
            const int64_t* block = starts + static_cast<int64_t>(part) * parts + (part + diagonal) % parts;
            const int64_t size = block[1] - block[0];
            const int64_t first = size * piece / pieces, last = size * (piece + 1) / pieces;
            losses[static_cast<size_t>(part)] = glove.train(task, records + block[0] + first, last - first);
        }
    });
    double total = 0;
    for (const double loss : losses) total += loss;
    return total;
}

}  // namespace firth
