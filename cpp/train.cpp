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
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::predict;
    if (isa == "avx2") return avx2::predict;
#endif
    return baseline::predict;
}

int max_targets(const Task& task) {
    if (task.objective.loss == SOFTMAX) return task.model.words;
    const int positives = task.objective.architecture == FORWARD ? 2 * task.sampling.window
                          : grouped(task)                        ? MAX_GROUP
                                                                 : 1;
    if (task.objective.loss == NEGATIVE)
        return std::max(task.sampling.negatives, task.sampling.group_negatives) + positives;
    int64_t longest = 0;
    for (int32_t w = 0; w < task.model.words; ++w)
        longest = std::max(longest, task.paths.starts[w + 1] - task.paths.starts[w]);
    return (int)longest;
}

// The length of the longest list.
int64_t longest(const int64_t* starts, int64_t lists) {
    int64_t most = 0;
    for (int64_t i = 0; starts && i < lists; ++i) most = std::max(most, starts[i + 1] - starts[i]);
    return most;
}

int64_t max_subwords(const Task& task) {
    return std::max<int64_t>(1, longest(task.model.subwords.starts, task.model.words));
}

// The maximum number of input rows of a window.
int64_t max_inputs(const Task& task) {
    const int64_t contexts = 2 * task.sampling.window + (grouped(task) ? MAX_GROUP : 0);
    return contexts * max_subwords(task) + std::max<int64_t>(1, longest(task.model.tags.starts, task.corpus.documents));
}

struct WindowMemory {
    WindowMemory(const Task& task, int targets) : target(targets + 1), sign(targets + 1) {
        if (task.objective.loss == SOFTMAX)
            for (int w = 0; w < task.model.words; ++w) target[w] = w;
        window.target = target.data();
        window.sign = sign.data();
    }
    std::vector<int32_t> target;
    std::vector<float> sign;
    Window window;
};

struct ScratchMemory {
    ScratchMemory(const Task& task, int targets)
        : inputs(max_inputs(task)), outputs(targets + 1), scores(scores_size(task, targets)),
          signs(scores_size(task, targets)), hidden(task.model.output_stride * MAX_GROUP),
          change(task.model.output_stride), total(task.model.output_stride),
          prefetch_rows(targets + MAX_GROUP * max_subwords(task)) {
        scratch = {inputs.data(), outputs.data(), scores.data,    signs.data, hidden.data,          change.data,
                   total.data,    nullptr,        max_rows(task), 0,          prefetch_rows.data(), 0,
                   nullptr};
    }
    static int max_rows(const Task& task) {
        if (task.objective.architecture == CBOW && grouped(task)) return MAX_GROUP;
        return task.objective.architecture == SKIPGRAM && task.objective.loss != SOFTMAX ? (int)max_inputs(task) : 1;
    }
    static size_t scores_size(const Task& task, int targets) { return size_t(max_rows(task)) * targets + 64; }
    std::vector<float*> inputs, outputs;
    Floats scores, signs, hidden, change, total;
    std::vector<const float*> prefetch_rows;
    Scratch scratch;
};

struct ReaderMemory {
    ReaderMemory(const Task& task, int block)
        : ids(size_t(block) + 2 * task.sampling.window), from(ids.size()), to(ids.size()), offset(ids.size()),
          document(ids.size()), hash(ids.size()) {
        reader = {};
        reader.block = block;
        reader.id = ids.data();
        reader.from = from.data();
        reader.to = to.data();
        reader.offset = offset.data();
        reader.document = document.data();
        reader.hash = hash.data();
    }
    std::vector<int32_t> ids, from, to, offset, document;
    std::vector<uint64_t> hash;
    CorpusReader reader;
};

float rate_at(const Task& task, int64_t position, int64_t first, int64_t last) {
    const double share = last > first ? double(position - first) / double(last - first) : 0.0;
    return (float)(task.schedule.rate_first + (task.schedule.rate_last - task.schedule.rate_first) * share);
}

// Trains up to `limit` windows of a reader's range, preparing each before the previous one is trained, so that its rows
// can be prefetched. Returns the number of windows.
int train_windows(const Predict& kernel, const Task& task, CorpusReader& reader, int64_t first, int64_t last,
                  WindowMemory* pair, Scratch& scratch, Tally& tally, int limit) {
    Window* current = &pair[0].window;
    Window* next_window = &pair[1].window;
    auto prepare = [&](Window& window) {
        const float rate = rate_at(task, reader.base + reader.offset[reader.next], first, last);
        reader.next += kernel.prepare(task, reader, reader.next, rate, window);
    };
    int done = 0;
    while (done < limit) {
        while (reader.next >= reader.last)
            if (!kernel.refill(task, reader)) return done;
        prepare(*current);
        for (bool more = true; more; ++done) {
            more = reader.next < reader.last && done + 1 < limit;
            scratch.prefetch_count = 0;
            if (more) {
                prepare(*next_window);
                kernel.prefetch_next(task, *next_window, scratch);
            }
            kernel.train(task, *current, scratch, tally);
            std::swap(current, next_window);
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

// Blocks all threads until the last one has arrived.
class Barrier {
  public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        const int64_t turn = turn_;
        if (++waiting_ == threads_) {
            waiting_ = 0;
            ++turn_;
            all_arrived_.notify_all();
        } else {
            all_arrived_.wait(lock, [&] { return turn_ != turn; });
        }
    }

  private:
    const int threads_;
    int waiting_ = 0;
    int64_t turn_ = 0;
    std::mutex mutex_;
    std::condition_variable all_arrived_;
};

}  // namespace

Tally train_racing(const Task& task, int64_t from, int64_t to, int threads) {
    const Predict& kernel = kernels();
    const int targets = max_targets(task);
    std::vector<Tally> tallies(threads);
    std::atomic<int64_t> next{from};
    on_threads(threads, [&](int me) {
        ReaderMemory memory(task, BLOCK);
        WindowMemory pair[2] = {{task, targets}, {task, targets}};
        ScratchMemory scratch(task, targets);
        Tally tally;
        while (true) {
            const int64_t begin = next.fetch_add(BLOCK);
            if (begin >= to) break;
            memory.reader.position = begin;
            memory.reader.end = std::min<int64_t>(begin + BLOCK, to);
            memory.reader.next = memory.reader.last = 0;
            train_windows(kernel, task, memory.reader, task.corpus.first, task.corpus.last, pair, scratch.scratch,
                          tally, BLOCK);
        }
        tallies[me] = tally;
    });
    return total(tallies);
}

int64_t stream_start(const Task& task, int s, int streams) {
    const int64_t tokens = task.corpus.last - task.corpus.first;
    return task.corpus.first + tokens / streams * s + std::min<int64_t>(tokens % streams, s);
}

namespace {

// The maximum number of rows that `windows` consecutive windows can touch.
size_t max_copies(const Task& task, int targets, int windows) {
    const bool many =
        task.objective.architecture == FORWARD ||
        (task.objective.architecture == SKIPGRAM && task.objective.loss == NEGATIVE && !task.sampling.shared);
    const size_t outputs = size_t(windows) * targets * (many ? max_inputs(task) : 1);
    const size_t words =
        size_t(windows * (grouped(task) ? MAX_GROUP : 1) + 2 * task.sampling.window) * max_subwords(task);
    const size_t inputs = words + size_t(windows) * longest(task.model.tags.starts, task.corpus.documents);
    return std::min<size_t>(inputs, task.model.input_rows) + std::min<size_t>(outputs, task.model.output_rows);
}

// One stream of ordered training: its position in the corpus and the rows it has changed since the last merge.
struct Stream {
    Stream(const Task& task, int targets, int windows, int s, int streams, int64_t cursor)
        : reader(task, 1024), slots(size_t(task.model.input_rows) + task.model.output_rows, -1),
          row(max_copies(task, targets, windows)), data(row.size() * task.model.output_stride) {
        first = stream_start(task, s, streams);
        last = stream_start(task, s + 1, streams);
        reader.reader.position = cursor;
        reader.reader.end = last;
        copies = {slots.data(), slots.data() + task.model.input_rows, row.data(), data.data, 0};
    }

    void clear_copies() {
        for (int i = 0; i < copies.count; ++i) {
            const int32_t id = row[i];
            (id >= 0 ? copies.input_slot[id] : copies.output_slot[~id]) = -1;
        }
        copies.count = 0;
    }

    // The next raw token, where a later call resumes.
    int64_t cursor() const {
        const CorpusReader& w = reader.reader;
        return w.next < w.last ? w.base + w.offset[w.next] : w.position;
    }

    ReaderMemory reader;
    std::vector<int32_t> slots, row;
    Floats data;
    Copies copies;
    int64_t first, last;
    Tally tally;
};

}  // namespace

Tally train_ordered(const Task& task, int64_t* cursors, int streams, int windows, int64_t rounds, int threads) {
    const Predict& kernel = kernels();
    const int targets = max_targets(task);
    std::vector<std::unique_ptr<Stream>> all;
    for (int s = 0; s < streams; ++s) all.emplace_back(new Stream(task, targets, windows, s, streams, cursors[s]));
    threads = std::min(threads, streams);
    Barrier barrier(threads);
    std::vector<int32_t> changed_by(size_t(task.model.input_rows) + task.model.output_rows,
                                    0);  // number of streams that changed a row
    on_threads(threads, [&](int me) {
        WindowMemory pair[2] = {{task, targets}, {task, targets}};
        ScratchMemory memory(task, targets);
        for (int64_t round = 0; round < rounds; ++round) {
            for (int s = me; s < streams; s += threads) {
                Stream& stream = *all[s];
                stream.clear_copies();
                memory.scratch.copies = &stream.copies;
                train_windows(kernel, task, stream.reader.reader, stream.first, stream.last, pair, memory.scratch,
                              stream.tally, windows);
                kernel.to_changes(task, stream.copies);
            }
            barrier.wait();
            // Each row is owned by one thread, which counts and adds its changes in the order of the streams.
            auto own_rows = [&](auto visit) {
                for (const auto& stream : all) {
                    const Copies& copies = stream->copies;
                    for (int i = 0; i < copies.count; ++i) {
                        const bool input = copies.row[i] >= 0;
                        const int32_t id = input ? copies.row[i] : ~copies.row[i];
                        if (id % threads == me) visit(input, id, copies.data + i * task.model.output_stride);
                    }
                }
            };
            auto sharing = [&](bool input, int32_t id) -> int32_t& {
                return changed_by[input ? id : task.model.input_rows + id];
            };
            own_rows([&](bool input, int32_t id, const float*) { ++sharing(input, id); });
            own_rows([&](bool input, int32_t id, const float* change) {
                const int64_t stride = input ? task.model.stride : task.model.output_stride;
                float* row = (input ? task.model.inputs : task.model.outputs) + id * stride;
                kernel.add_row(row, change, 1.0f / (float)sharing(input, id), stride);
            });
            own_rows([&](bool input, int32_t id, const float*) { sharing(input, id) = 0; });
            barrier.wait();
        }
    });
    std::vector<Tally> tallies;  // one per stream, so that the sum doesn't depend on the threads
    for (int s = 0; s < streams; ++s) {
        cursors[s] = all[s]->cursor();
        tallies.push_back(all[s]->tally);
    }
    return total(tallies);
}

void infer(const Task& task, float* rows, int epochs, double rate, uint64_t seed, int threads) {
    const Predict& kernel = kernels();
    const int targets = max_targets(task);
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int) {
        ReaderMemory memory(task, BLOCK);
        WindowMemory pair[2] = {{task, targets}, {task, targets}};
        ScratchMemory scratch(task, targets);
        Tally tally;
        for (int64_t document; (document = next.fetch_add(1)) < task.corpus.documents;) {
            const int64_t length = task.corpus.starts[document + 1] - task.corpus.starts[document];
            const int64_t starts[2] = {0, length};
            Task document_task = task;  // a corpus of its own, so that its row depends only on its words and the seed
            document_task.corpus.ids += task.corpus.starts[document];
            document_task.corpus.starts = starts;
            document_task.corpus.documents = 1;
            document_task.corpus.first = 0;
            document_task.corpus.last = length;
            scratch.scratch.document = rows + document * task.model.stride;
            // FNV-1a of the words: with the same negative samples at the same positions, all documents would be pulled
            // in the same direction.
            uint64_t document_hash = 0xcbf29ce484222325ull;
            for (int64_t i = 0; i < length; ++i)
                document_hash = (document_hash ^ (uint64_t)document_task.corpus.ids[i]) * 0x100000001b3ull;
            for (int epoch = 0; epoch < epochs; ++epoch) {
                document_task.sampling.seed = seed + document_hash + (uint64_t)epoch;
                document_task.schedule.rate_first = rate * (epochs - epoch) / epochs;
                document_task.schedule.rate_last = rate * (epochs - epoch - 1) / epochs;
                memory.reader.position = 0;
                memory.reader.end = length;
                memory.reader.next = memory.reader.last = 0;
                while (train_windows(kernel, document_task, memory.reader, 0, length, pair, scratch.scratch, tally,
                                     BLOCK)) {}
            }
        }
    });
}

}  // namespace firth
