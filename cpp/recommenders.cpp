#include "recommenders.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "cpu.h"
#include "floats.h"
#include "threads.h"

namespace firth {
namespace {

const Als& als_kernels() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::als;
    if (isa == "avx2") return avx2::als;
#endif
    return baseline::als;
}

const Bpr& bpr_kernels() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::bpr;
    if (isa == "avx2") return avx2::bpr;
#endif
    return baseline::bpr;
}

// Distributes [first, last) in blocks of `size` over threads: work(begin, end, block, thread).
template <class Work>
void parallel_blocks(int64_t first, int64_t last, int64_t size, int threads, Work work) {
    const int64_t blocks = (last - first + size - 1) / size;
    std::atomic<int64_t> next{0};
    on_threads(static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, blocks))), [&](int thread) {
        for (int64_t s = next.fetch_add(1); s < blocks; s = next.fetch_add(1))
            work(first + s * size, std::min(last, first + (s + 1) * size), s, thread);
    });
}

}  // namespace

void als_gram(const float* table, int64_t rows, int64_t stride, float* out, int threads) {
    constexpr int64_t MOST = 16, ROOM = int64_t{1} << 24;  // limits of the number of partial sums and of their floats
    const Als& kernel = als_kernels();
    const int64_t size = stride * stride;
    // Each part is summed by one thread, then all are added in order; their number does not depend on the threads.
    const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(MOST, ROOM / size));
    const int64_t piece = std::max<int64_t>(1, (rows + pieces - 1) / pieces);
    Floats sums(static_cast<size_t>(pieces * size), true);
    parallel_blocks(0, rows, piece, threads, [&](int64_t begin, int64_t end, int64_t number, int) {
        kernel.gram(table, begin, end, stride, sums.data + number * size);
    });
    for (int64_t i = 0; i < stride; ++i)
        for (int64_t j = i; j < stride; ++j) {
            float total = 0;
            for (int64_t p = 0; p < pieces; ++p) total += sums.data[p * size + i * stride + j];
            out[i * stride + j] = out[j * stride + i] = total;
        }
}

double als_solve(const AlsTask& task, int64_t first, int64_t last, int threads) {
    constexpr int64_t BLOCK = 4 * GROUP;
    const Als& kernel = als_kernels();
    int64_t entries = 0;
    for (int64_t row = first; row < last; row += GROUP)
        entries = std::max(entries, task.starts[std::min(last, row + GROUP)] - task.starts[row]);
    std::vector<double> losses(static_cast<size_t>((last - first + BLOCK - 1) / BLOCK));
    std::vector<std::unique_ptr<Floats>> rooms(static_cast<size_t>(threads));
    for (auto& room : rooms)
        room = std::make_unique<Floats>(static_cast<size_t>(scratch_floats(task.stride, entries)), true);
    parallel_blocks(first, last, BLOCK, threads, [&](int64_t begin, int64_t end, int64_t number, int thread) {
        losses[static_cast<size_t>(number)] = kernel.solve(task, begin, end, rooms[static_cast<size_t>(thread)]->data);
    });
    double loss = 0;
    for (const double part : losses) loss += part;
    return loss;
}

BprTally bpr_train(const BprTask& task, int64_t first, int64_t last, int threads) {
    constexpr int64_t BLOCK = 4096;
    const Bpr& kernel = bpr_kernels();
    std::vector<BprTally> tallies(static_cast<size_t>((last - first + BLOCK - 1) / BLOCK));
    parallel_blocks(first, last, BLOCK, threads, [&](int64_t begin, int64_t end, int64_t number, int) {
        tallies[static_cast<size_t>(number)] = kernel.train(task, begin, end);
    });
    BprTally total;
    for (const BprTally& part : tallies) total.loss += part.loss, total.samples += part.samples;
    return total;
}

void bpr_fold(const BprTask& task, int64_t users, int64_t passes, int threads) {
    const Bpr& kernel = bpr_kernels();
    parallel_blocks(0, users, 8, threads, [&](int64_t begin, int64_t end, int64_t, int) {
        for (int64_t user = begin; user < end; ++user)
            kernel.fold(task, user, passes * (task.starts[user + 1] - task.starts[user]));
    });
}

}  // namespace firth
