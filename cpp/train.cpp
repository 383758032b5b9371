#include "train.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu.h"
#include "floats.h"

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

int most_targets(const Job& job) {
    if (job.loss == SOFTMAX) return job.words;
    const int right = job.architecture == FORWARD ? 2 * job.window : grouped(job) ? MOST_GROUP : 1;
    if (job.loss == NEGATIVE) return std::max(job.negatives, job.drawn) + right;
    int64_t longest = 0;
    for (int32_t w = 0; w < job.words; ++w)
        longest = std::max(longest, job.path_starts[w + 1] - job.path_starts[w]);
    return (int)longest;
}

// The longest stretch of a list of lists.
int64_t longest(const int64_t* starts, int64_t lists) {
    int64_t most = 0;
    for (int64_t i = 0; starts && i < lists; ++i) most = std::max(most, starts[i + 1] - starts[i]);
    return most;
}

int64_t most_pieces(const Job& job) { return std::max<int64_t>(1, longest(job.piece_starts, job.words)); }

// Rows that act on one window at most.
int64_t most_inputs(const Job& job) {
    const int64_t contexts = 2 * job.window + (grouped(job) ? MOST_GROUP : 0);
    return contexts * most_pieces(job) + std::max<int64_t>(1, longest(job.tag_starts, job.documents));
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
        : inputs(most_inputs(job)),
          outputs(targets + 1),
          scores(scores_size(job, targets)),
          signs(scores_size(job, targets)),
          hidden(job.output_stride * MOST_GROUP),
          change(job.output_stride),
          total(job.output_stride),
          ahead(targets + MOST_GROUP * most_pieces(job)) {
        scratch = {inputs.data(), outputs.data(), scores.data,    signs.data, hidden.data,  change.data, total.data,
                   nullptr,       most_rows(job), 0,              ahead.data(), 0,          nullptr};
    }
    static int most_rows(const Job& job) {
        if (job.architecture == CBOW && grouped(job)) return MOST_GROUP;
        return job.architecture == SKIPGRAM && job.loss != SOFTMAX ? (int)most_inputs(job) : 1;
    }
    static size_t scores_size(const Job& job, int targets) { return size_t(most_rows(job)) * targets + 64; }
    std::vector<float*> inputs, outputs;
    Floats scores, signs, hidden, change, total;
    std::vector<const float*> ahead;
    Scratch scratch;
};

struct WalkerMemory {
    WalkerMemory(const Job& job, int block)
        : ids(size_t(block) + 2 * job.window),
          from(ids.size()),
          to(ids.size()),
          offset(ids.size()),
          document(ids.size()),
          hash(ids.size()) {
        walker = {};
        walker.block = block;
        walker.id = ids.data();
        walker.from = from.data();
        walker.to = to.data();
        walker.offset = offset.data();
        walker.document = document.data();
        walker.hash = hash.data();
    }
    std::vector<int32_t> ids, from, to, offset, document;
    std::vector<uint64_t> hash;
    Walker walker;
};

float rate_at(const Job& job, int64_t position, int64_t first, int64_t last) {
    const double share = last > first ? double(position - first) / double(last - first) : 0.0;
    return (float)(job.rate_first + (job.rate_last - job.rate_first) * share);
}

// Trains the next `most` windows of a walker's stretch, preparing each while the one before is trained; how many
// there were.
int train_windows(const Predict& kernel, const Job& job, Walker& walker, int64_t first, int64_t last,
                  WindowMemory* pair, Scratch& scratch, Tally& tally, int most) {
    Window* now = &pair[0].window;
    Window* coming = &pair[1].window;
    auto prepare = [&](Window& window) {
        const float rate = rate_at(job, walker.base + walker.offset[walker.next], first, last);
        walker.next += kernel.prepare(job, walker, walker.next, rate, window);
    };
    int done = 0;
    while (done < most) {
        while (walker.next >= walker.last)
            if (!kernel.refill(job, walker)) return done;
        prepare(*now);
        for (bool more = true; more; ++done) {
            more = walker.next < walker.last && done + 1 < most;
            scratch.ahead_count = 0;
            if (more) {
                prepare(*coming);
                kernel.look_ahead(job, *coming, scratch);
            }
            kernel.train(job, *now, scratch, tally);
            std::swap(now, coming);
        }
    }
    return done;
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

// All threads wait until the last has come.
class Barrier {
public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        const int64_t turn = turn_;
        if (++waiting_ == threads_) {
            waiting_ = 0;
            ++turn_;
            all_here_.notify_all();
        } else {
            all_here_.wait(lock, [&] { return turn_ != turn; });
        }
    }

private:
    const int threads_;
    int waiting_ = 0;
    int64_t turn_ = 0;
    std::mutex mutex_;
    std::condition_variable all_here_;
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
            memory.walker.next = memory.walker.last = 0;
            train_windows(kernel, job, memory.walker, job.first, job.last, pair, scratch.scratch, tally, BLOCK);
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

// The most rows that `windows` windows after each other can touch.
size_t most_copies(const Job& job, int targets, int windows) {
    const bool many = job.architecture == FORWARD || (job.architecture == SKIPGRAM && job.loss == NEGATIVE && !job.shared);
    const size_t outputs = size_t(windows) * targets * (many ? most_inputs(job) : 1);
    const size_t words = size_t(windows * (grouped(job) ? MOST_GROUP : 1) + 2 * job.window) * most_pieces(job);
    const size_t inputs = words + size_t(windows) * longest(job.tag_starts, job.documents);
    return std::min<size_t>(inputs, job.input_rows) + std::min<size_t>(outputs, job.output_rows);
}

// One stream of the ordered mode: its place in the corpus and the rows it changed since the last merge.
struct Stream {
    Stream(const Job& job, int targets, int windows, int s, int streams, int64_t cursor)
        : walker(job, 1024),
          slots(size_t(job.input_rows) + job.output_rows, -1),
          row(most_copies(job, targets, windows)),
          data(row.size() * job.output_stride) {
        first = stream_start(job, s, streams);
        last = stream_start(job, s + 1, streams);
        walker.walker.position = cursor;
        walker.walker.end = last;
        copies = {slots.data(), slots.data() + job.input_rows, row.data(), data.data, 0};
    }

    void forget_copies() {
        for (int i = 0; i < copies.count; ++i) {
            const int32_t id = row[i];
            (id >= 0 ? copies.input_slot[id] : copies.output_slot[~id]) = -1;
        }
        copies.count = 0;
    }

    // The next raw token, from which a later call goes on.
    int64_t cursor() const {
        const Walker& w = walker.walker;
        return w.next < w.last ? w.base + w.offset[w.next] : w.position;
    }

    WalkerMemory walker;
    std::vector<int32_t> slots, row;
    Floats data;
    Copies copies;
    int64_t first, last;
    Tally tally;
};

}  // namespace

Tally train_ordered(const Job& job, int64_t* cursors, int streams, int windows, int64_t rounds, int threads) {
    const Predict& kernel = kernels();
    const int targets = most_targets(job);
    std::vector<std::unique_ptr<Stream>> all;
    for (int s = 0; s < streams; ++s) all.emplace_back(new Stream(job, targets, windows, s, streams, cursors[s]));
    threads = std::min(threads, streams);
    Barrier barrier(threads);
    std::vector<int32_t> changed_by(size_t(job.input_rows) + job.output_rows, 0);  // how many streams changed a row
    on_threads(threads, [&](int me) {
        WindowMemory pair[2] = {{job, targets}, {job, targets}};
        ScratchMemory memory(job, targets);
        for (int64_t round = 0; round < rounds; ++round) {
            for (int s = me; s < streams; s += threads) {
                Stream& stream = *all[s];
                stream.forget_copies();
                memory.scratch.copies = &stream.copies;
                train_windows(kernel, job, stream.walker.walker, stream.first, stream.last, pair, memory.scratch,
                              stream.tally, windows);
                kernel.to_changes(job, stream.copies);
            }
            barrier.wait();
            // Each row has one owner, who counts and adds its changes in the order of the streams.
            auto own_rows = [&](auto visit) {
                for (const auto& stream : all) {
                    const Copies& copies = stream->copies;
                    for (int i = 0; i < copies.count; ++i) {
                        const bool input = copies.row[i] >= 0;
                        const int32_t id = input ? copies.row[i] : ~copies.row[i];
                        if (id % threads == me) visit(input, id, copies.data + i * job.output_stride);
                    }
                }
            };
            auto sharing = [&](bool input, int32_t id) -> int32_t& { return changed_by[input ? id : job.input_rows + id]; };
            own_rows([&](bool input, int32_t id, const float*) { ++sharing(input, id); });
            own_rows([&](bool input, int32_t id, const float* change) {
                const int64_t stride = input ? job.stride : job.output_stride;
                float* row = (input ? job.inputs : job.outputs) + id * stride;
                kernel.add_row(row, change, 1.0f / (float)sharing(input, id), stride);
            });
            own_rows([&](bool input, int32_t id, const float*) { sharing(input, id) = 0; });
            barrier.wait();
        }
    });
    std::vector<Tally> tallies;  // one a stream: their sum doesn't depend on the threads
    for (int s = 0; s < streams; ++s) {
        cursors[s] = all[s]->cursor();
        tallies.push_back(all[s]->tally);
    }
    return total(tallies);
}

void infer(const Job& job, float* rows, int epochs, double rate, uint64_t seed, int threads) {
    const Predict& kernel = kernels();
    const int targets = most_targets(job);
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int) {
        WalkerMemory memory(job, BLOCK);
        WindowMemory pair[2] = {{job, targets}, {job, targets}};
        ScratchMemory scratch(job, targets);
        Tally tally;
        for (int64_t document; (document = next.fetch_add(1)) < job.documents;) {
            const int64_t length = job.starts[document + 1] - job.starts[document];
            const int64_t starts[2] = {0, length};
            Job alone = job;  // by itself, so that its row depends on its words and the seed alone
            alone.ids += job.starts[document];
            alone.starts = starts;
            alone.documents = 1;
            alone.first = 0;
            alone.last = length;
            scratch.scratch.document = rows + document * job.stride;
            // Documents must not all meet the same noise at the same places: it would pull them all the same way.
            uint64_t words = 0xcbf29ce484222325ull;  // FNV-1a
            for (int64_t i = 0; i < length; ++i) words = (words ^ (uint64_t)alone.ids[i]) * 0x100000001b3ull;
            for (int epoch = 0; epoch < epochs; ++epoch) {
                alone.seed = seed + words + (uint64_t)epoch;
                alone.rate_first = rate * (epochs - epoch) / epochs;
                alone.rate_last = rate * (epochs - epoch - 1) / epochs;
                memory.walker.position = 0;
                memory.walker.end = length;
                memory.walker.next = memory.walker.last = 0;
                while (train_windows(kernel, alone, memory.walker, 0, length, pair, scratch.scratch, tally, BLOCK)) {}
            }
        }
    });
}

}  // namespace firth
