#include "train.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "cpu.h"

namespace firth {
namespace {

const Predict& kernels() {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512") return avx512::predict;
    if (isa == "avx2") return avx2::predict;
#endif
    return baseline::predict;
}

// 64-byte aligned floats.
struct Floats {
    explicit Floats(size_t count) : memory(new float[count + 16]) {
        data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) / 64 * 64);
    }
    std::unique_ptr<float[]> memory;
    float* data;
};

int most_targets(const Job& job) {
    if (job.loss == SOFTMAX) return job.words;
    if (job.loss == NEGATIVE) return job.negatives + 1;
    int64_t longest = 0;
    for (int32_t w = 0; w < job.words; ++w)
        longest = std::max(longest, job.path_starts[w + 1] - job.path_starts[w]);
    return (int)longest;
}

struct WindowMemory {
    WindowMemory(const Job& job, int targets) : target(targets + 1), sign(targets + 1) {
        if (job.loss == SOFTMAX)
            for (int w = 0; w < job.words; ++w) target[w] = w;
        window.target = target.data();
        window.sign = sign.data();
    }
    std::vector<int32_t> target;
    std::vector<float> sign;
    Window window;
};

struct ScratchMemory {
    ScratchMemory(const Job& job, int targets)
        : inputs(MOST_CONTEXTS),
          outputs(targets + 1),
          scores(scores_size(job, targets)),
          signs(scores_size(job, targets)),
          hidden(job.stride),
          change(job.stride),
          ahead(targets + 1) {
        scratch = {inputs.data(), outputs.data(), scores.data, signs.data, hidden.data, change.data, 0, ahead.data(), 0};
    }
    static size_t scores_size(const Job& job, int targets) {
        return size_t(job.loss == SOFTMAX ? 1 : 2 * job.window) * targets + 64;
    }
    std::vector<float*> inputs, outputs;
    Floats scores, signs, hidden, change;
    std::vector<const float*> ahead;
    Scratch scratch;
};

struct WalkerMemory {
    WalkerMemory(const Job& job, int block)
        : ids(size_t(block) + 2 * job.window), from(ids.size()), to(ids.size()), offset(ids.size()), hash(ids.size()) {
        walker = {};
        walker.block = block;
        walker.id = ids.data();
        walker.from = from.data();
        walker.to = to.data();
        walker.offset = offset.data();
        walker.hash = hash.data();
    }
    std::vector<int32_t> ids, from, to, offset;
    std::vector<uint64_t> hash;
    Walker walker;
};

float rate_at(const Job& job, int64_t position, int64_t first, int64_t last) {
    const double share = last > first ? double(position - first) / double(last - first) : 0.0;
    return (float)(job.rate_first + (job.rate_last - job.rate_first) * share);
}

// Walks one stretch, preparing (and prefetching) each window while the one before is trained.
void train_stretch(const Predict& kernel, const Job& job, Walker& walker, WindowMemory* pair, Scratch& scratch,
                   Tally& tally) {
    Window* now = &pair[0].window;
    Window* coming = &pair[1].window;
    while (kernel.refill(job, walker)) {
        const float rate = rate_at(job, walker.base, job.first, job.last);
        if (walker.next < walker.last) kernel.prepare(job, walker, walker.next, rate, *now);
        for (int i = walker.next; i < walker.last; ++i) {
            scratch.ahead_count = 0;
            if (i + 1 < walker.last) {
                kernel.prepare(job, walker, i + 1, rate, *coming);
                kernel.look_ahead(job, *coming, scratch);
            }
            kernel.train(job, *now, scratch, tally);
            std::swap(now, coming);
        }
    }
}

template <class Work>
void on_threads(int threads, Work work) {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (auto& thread : others) thread.join();
}

Tally total(const std::vector<Tally>& tallies) {
    Tally sum;
    for (const auto& tally : tallies) {
        sum.loss += tally.loss;
        sum.pairs += tally.pairs;
        sum.words += tally.words;
    }
    return sum;
}

// All threads wait until the last has come. Spins, then lets others run: rounds are microseconds long.
class Barrier {
public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait() {
        const int turn = turn_.load(std::memory_order_acquire);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            waiting_.store(0, std::memory_order_relaxed);
            turn_.store(turn + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins)
            if (spins > 2000) std::this_thread::yield();
    }

private:
    const int threads_;
    std::atomic<int> waiting_{0}, turn_{0};
};

}  // namespace

Tally train_racing(const Job& job, int64_t from, int64_t to, int threads) {
    const Predict& kernel = kernels();
    const int targets = most_targets(job);
    std::vector<Tally> tallies(threads);
    std::atomic<int64_t> next{from};
    on_threads(threads, [&](int me) {
        WalkerMemory memory(job, BLOCK);
        WindowMemory pair[2] = {{job, targets}, {job, targets}};
        ScratchMemory scratch(job, targets);
        Tally tally;
        while (true) {
            const int64_t begin = next.fetch_add(BLOCK);
            if (begin >= to) break;
            memory.walker.position = begin;
            memory.walker.end = std::min<int64_t>(begin + BLOCK, to);
            train_stretch(kernel, job, memory.walker, pair, scratch.scratch, tally);
        }
        tallies[me] = tally;
    });
    return total(tallies);
}

int64_t stream_start(const Job& job, int s, int streams) {
    const int64_t tokens = job.last - job.first;
    return job.first + tokens / streams * s + std::min<int64_t>(tokens % streams, s);
}

namespace {

// One stream of the ordered mode, with the window it computed and the changes that window asks for.
struct Stream {
    Stream(const Job& job, int targets, int s, int streams, int64_t cursor)
        : walker(job, 512), window(job, targets), changes(size_t(2 * job.window + targets) * job.stride) {
        first = stream_start(job, s, streams);
        last = stream_start(job, s + 1, streams);
        walker.walker.position = cursor;
        walker.walker.end = last;
    }

    // Computes the next window; an empty one when the stretch is over.
    void compute(const Predict& kernel, const Job& job, Scratch& scratch, Tally& tally) {
        Walker& w = walker.walker;
        window.window.contexts = window.window.targets = 0;
        while (w.next >= w.last)
            if (!kernel.refill(job, w)) return;
        const float rate = rate_at(job, w.base + w.offset[w.next], first, last);
        kernel.prepare(job, w, w.next++, rate, window.window);
        kernel.train_apart(job, window.window, scratch, tally, changes.data);
    }

    // The next raw token, from which a later call goes on.
    int64_t cursor() const {
        const Walker& w = walker.walker;
        return w.next < w.last ? w.base + w.offset[w.next] : w.position;
    }

    WalkerMemory walker;
    WindowMemory window;
    Floats changes;
    int64_t first, last;
};

}  // namespace

Tally train_ordered(const Job& job, int64_t* cursors, int streams, int64_t steps, int threads) {
    const Predict& kernel = kernels();
    const int targets = most_targets(job);
    std::vector<std::unique_ptr<Stream>> all;
    for (int s = 0; s < streams; ++s) all.emplace_back(new Stream(job, targets, s, streams, cursors[s]));
    threads = std::min(threads, streams);
    std::vector<Tally> tallies(streams);  // one a stream: their sum doesn't depend on the threads
    Barrier barrier(threads);
    on_threads(threads, [&](int me) {
        ScratchMemory scratch(job, targets);
        for (int64_t step = 0; step < steps; ++step) {
            for (int s = me; s < streams; s += threads)
                all[s]->compute(kernel, job, scratch.scratch, tallies[s]);
            barrier.wait();
            // Each row has one owner, who adds its changes in the order of the streams.
            for (const auto& stream : all) {
                const Window& window = stream->window.window;
                if (!window.targets) continue;
                const float* change = stream->changes.data;
                for (int i = 0; i < window.contexts; ++i, change += job.stride)
                    if (window.context[i] % threads == me)
                        kernel.add_row(job.inputs + window.context[i] * job.stride, change, job.stride);
                for (int t = 0; t < window.targets; ++t, change += job.stride)
                    if (window.target[t] % threads == me)
                        kernel.add_row(job.outputs + window.target[t] * job.stride, change, job.stride);
            }
            barrier.wait();
        }
    });
    for (int s = 0; s < streams; ++s) cursors[s] = all[s]->cursor();
    return total(tallies);
}

}  // namespace firth
