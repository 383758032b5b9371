#include "cooccur.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "files.h"
#include "hash.h"
#include "threads.h"

namespace firth {
namespace {

uint64_t token_hash(uint64_t seed, int64_t position) {  // as in windows.h
    return mix(seed + static_cast<uint64_t>(position) * GOLDEN);
}

// ---- a shard ----

// The kept tokens of a shard with -1 between documents, and the positions of each word among the centers.
struct Shard {
    std::unique_ptr<int32_t[]> stream;
    std::unique_ptr<uint32_t[]> positions;  // of word w: from starts[w] to starts[w + 1]
    std::vector<int64_t> starts;
    int64_t first = 0, last = 0;  // the centers in the stream
};

class StreamWriter {
  public:
    StreamWriter(const Text& text, int32_t* out) : text_(text), out_(out) { out_[size_++] = -1; }

    bool token(int64_t position) {
        const int32_t id = text_.ids[position];
        if (text_.keep && static_cast<uint32_t>(token_hash(text_.seed, position) >> 32) > text_.keep[id]) return false;
        out_[size_++] = id;
        return true;
    }
    void end_document() {
        if (out_[size_ - 1] != -1) out_[size_++] = -1;
    }
    void reverse() { std::reverse(out_ + 1, out_ + size_); }
    int64_t size() const { return size_; }

  private:
    const Text& text_;
    int32_t* out_;
    int64_t size_ = 0;
};

// The centers [from, to) with up to `reach` kept tokens before and after them in the same documents.
void fill_stream(const Text& text, int reach, int64_t from, int64_t to, Shard& shard) {
    shard.stream.reset(new int32_t[static_cast<size_t>(2 * (to - from) + 2 * reach + 4)]);
    StreamWriter writer(text, shard.stream.get());
    int64_t document = std::upper_bound(text.starts, text.starts + text.documents + 1, from) - text.starts - 1;
    for (int64_t p = from - 1; p >= text.starts[document] && writer.size() <= reach; --p) writer.token(p);
    writer.reverse();
    shard.first = writer.size();
    int64_t p = from;
    for (; p < to; ++document) {
        for (const int64_t end = std::min(text.starts[document + 1], to); p < end; ++p) writer.token(p);
        if (p == text.starts[document + 1]) writer.end_document();
        if (p == to) break;
    }
    shard.last = writer.size();
    for (int after = 0; p < text.starts[document + 1] && after < reach; ++p) after += writer.token(p);
    writer.end_document();
}

// Sorts the centers by word; each thread handles its own words.
void fill_positions(const Text& text, const Plan& plan, Shard& shard) {
    const int threads = static_cast<int>(std::min<int64_t>(plan.threads, plan.blocks));
    const auto bound = [&](int thread) { return plan.bounds[plan.blocks * thread / threads]; };
    const int32_t* stream = shard.stream.get();
    shard.starts.assign(static_cast<size_t>(text.words) + 1, 0);
    int64_t* starts = shard.starts.data();
    on_threads(threads, [&](int me) {
        const auto low = static_cast<uint32_t>(bound(me)), size = static_cast<uint32_t>(bound(me + 1)) - low;
        for (int64_t i = shard.first; i < shard.last; ++i)
            if (static_cast<uint32_t>(stream[i]) - low < size) ++starts[stream[i] + 1];
    });
    for (int32_t w = 0; w < text.words; ++w) starts[w + 1] += starts[w];
    shard.positions.reset(new uint32_t[static_cast<size_t>(starts[text.words])]);
    on_threads(threads, [&](int me) {
        const auto low = static_cast<uint32_t>(bound(me)), size = static_cast<uint32_t>(bound(me + 1)) - low;
        for (int64_t i = shard.first; i < shard.last; ++i)
            if (static_cast<uint32_t>(stream[i]) - low < size)
                shard.positions[static_cast<size_t>(starts[stream[i]]++)] = static_cast<uint32_t>(i);
    });
    for (int32_t w = text.words; w > 0; --w) starts[w] = starts[w - 1];  // they had advanced to their ends
    starts[0] = 0;
}

// ---- a row ----

// One cell per context. A two-level bitmap puts the touched cells in order.
class Row {
  public:
    explicit Row(int32_t words)
        : sums_(static_cast<size_t>(words), 0), touched_(static_cast<size_t>(words) + 1),
          bits_(static_cast<size_t>(words) / 64 + 1, 0), groups_(bits_.size() / 64 + 1, 0) {}

    void add(int32_t context, int64_t sum) {  // sum > 0
        int64_t& cell = sums_[static_cast<size_t>(context)];
        touched_[count_] = context;
        count_ += cell == 0;
        cell += sum;
    }

    // Visits each context with its sum, in order, and clears the row; returns the number of contexts.
    template <class Visit>
    int64_t take(Visit visit) {
        for (size_t i = 0; i < count_; ++i) {
            const auto c = static_cast<size_t>(touched_[i]);
            bits_[c / 64] |= 1ull << c % 64;
            groups_[c / 4096] |= 1ull << c / 64 % 64;
        }
        for (size_t g = 0; g < groups_.size(); ++g) {
            for (uint64_t group = groups_[g]; group; group &= group - 1) {
                const size_t b = g * 64 + static_cast<size_t>(__builtin_ctzll(group));
                for (uint64_t bits = bits_[b]; bits; bits &= bits - 1) {
                    const size_t c = b * 64 + static_cast<size_t>(__builtin_ctzll(bits));
                    visit(static_cast<int32_t>(c), sums_[c]);
                    sums_[c] = 0;
                }
                bits_[b] = 0;
            }
            groups_[g] = 0;
        }
        const auto count = static_cast<int64_t>(count_);
        count_ = 0;
        return count;
    }

  private:
    std::vector<int64_t> sums_;
    std::vector<int32_t> touched_;
    std::vector<uint64_t> bits_, groups_;
    size_t count_ = 0;
};

void count_row(const Shard& shard, const Windows& windows, int32_t word, Row& row) {
    constexpr int64_t ahead = 12;  // positions whose contexts are prefetched
    const int32_t* stream = shard.stream.get();
    const uint32_t* positions = shard.positions.get();
    const int64_t end = shard.starts[static_cast<size_t>(word) + 1];
    for (int64_t i = shard.starts[static_cast<size_t>(word)]; i < end; ++i) {
        if (i + ahead < end) __builtin_prefetch(stream + positions[i + ahead]);
        const int32_t* here = stream + positions[i];
        if (windows.left)
            for (int d = 1; d <= windows.reach && here[-d] >= 0; ++d) row.add(here[-d], windows.weight[d]);
        if (windows.right)
            for (int d = 1; d <= windows.reach && here[d] >= 0; ++d) row.add(here[d], windows.weight[d]);
    }
}

// ---- blocks, computed by any thread, written in order ----

// Assigns each block its offset after the blocks before it.
class BlockOrder {
  public:
    int64_t take(int64_t block, int64_t records) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return failed_ || next_ == block; });
        if (failed_) throw std::runtime_error("another thread failed");
        const int64_t begin = total_;
        total_ += records;
        ++next_;
        changed_.notify_all();
        return begin;
    }
    void fail() {
        std::lock_guard<std::mutex> lock(mutex_);
        failed_ = true;
        changed_.notify_all();
    }
    int64_t total() const { return total_; }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int64_t next_ = 0, total_ = 0;
    bool failed_ = false;
};

// Runs work(order, block) for all blocks and returns the total number of records. `start` creates the work of a thread
// with its memory.
template <class Start>
int64_t in_blocks(const Plan& plan, Start start) {
    BlockOrder order;
    std::atomic<int64_t> next{0};
    std::exception_ptr error;  // the first one; other threads only report that they were stopped
    std::mutex mutex;
    on_threads(static_cast<int>(std::min<int64_t>(plan.threads, plan.blocks)), [&](int) {
        try {
            auto work = start();
            for (int64_t block; (block = next++) < plan.blocks;) work(order, block);
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            if (!error) error = std::current_exception();
            order.fail();
        }
    });
    if (error) std::rethrow_exception(error);
    return order.total();
}

// A block of the result, to be written to the files.
class ResultBlock {
  public:
    ResultBlock(const Plan& plan, double scale, const Result& result)
        : scale_(scale), result_(result), contexts_(new int32_t[static_cast<size_t>(plan.max_pairs)]),
          weights_(new double[static_cast<size_t>(plan.max_pairs)]) {}

    void take(int32_t word, Row& row) {
        result_.lengths[word] = row.take([&](int32_t context, int64_t sum) {
            contexts_[size_] = context;
            weights_[size_++] = static_cast<double>(sum) / scale_;
        });
    }
    void write(BlockOrder& order, int64_t block) {
        const auto size = static_cast<int64_t>(size_), begin = order.take(block, size);
        write_all(result_.contexts, contexts_.get(), size * 4, begin * 4);
        write_all(result_.weights, weights_.get(), size * 8, begin * 8);
        size_ = 0;
    }

  private:
    double scale_;
    Result result_;
    std::unique_ptr<int32_t[]> contexts_;  // not zeroed, so that unused pages take no memory
    std::unique_ptr<double[]> weights_;
    size_t size_ = 0;
};

class RunBlock {
  public:
    RunBlock(const Plan& plan, const RunFile& run)
        : run_(run), pairs_(new PairSum[static_cast<size_t>(plan.max_pairs)]) {}

    void take(int32_t word, Row& row) {
        row.take([&](int32_t context, int64_t sum) { pairs_[size_++] = {word, context, sum}; });
    }
    void write(BlockOrder& order, int64_t block) {
        const auto size = static_cast<int64_t>(size_), begin = run_.begin + order.take(block, size);
        run_.offsets[block] = begin;
        write_all(run_.file, pairs_.get(), size * 16, begin * 16);
        size_ = 0;
    }

  private:
    RunFile run_;
    std::unique_ptr<PairSum[]> pairs_;
    size_t size_ = 0;
};

template <class Block>
int64_t count_blocks(const Text& text, const Windows& windows, const Plan& plan, int64_t from, int64_t to,
                     const Block& make) {
    Shard shard;
    fill_stream(text, windows.reach, from, to, shard);
    fill_positions(text, plan, shard);
    return in_blocks(plan, [&] {
        return [&, row = Row(text.words), out = make()](BlockOrder& order, int64_t block) mutable {
            for (int32_t word = plan.bounds[block]; word < plan.bounds[block + 1]; ++word) {
                count_row(shard, windows, word, row);
                out.take(word, row);
            }
            out.write(order, block);
        };
    });
}

// ---- runs ----

// Reads a range of the file through a buffer.
class RunReader {
  public:
    RunReader(int64_t buffer) : pairs_(static_cast<size_t>(buffer)) {}

    void open(int file, int64_t begin, int64_t end) { file_ = file, next_ = begin, end_ = end, at_ = size_ = 0; }
    // Adds the pairs of `word`, which come next if there are any.
    void add(int32_t word, Row& row) {
        while (at_ < size_ || refill()) {
            if (pairs_[at_].word != word) return;
            row.add(pairs_[at_].context, pairs_[at_].sum);
            ++at_;
        }
    }

  private:
    bool refill() {
        at_ = 0, size_ = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(pairs_.size()), end_ - next_));
        read_all(file_, pairs_.data(), static_cast<int64_t>(size_) * 16, next_ * 16);
        next_ += static_cast<int64_t>(size_);
        return size_ > 0;
    }
    std::vector<PairSum> pairs_;
    size_t at_ = 0, size_ = 0;
    int file_ = -1;
    int64_t next_ = 0, end_ = 0;
};

}  // namespace

int64_t count_rows(const Text& text, const Windows& windows, const Plan& plan, int64_t from, int64_t to,
                   const Result& result) {
    return count_blocks(text, windows, plan, from, to, [&] { return ResultBlock(plan, windows.scale, result); });
}

int64_t count_run(const Text& text, const Windows& windows, const Plan& plan, int64_t from, int64_t to,
                  const RunFile& run) {
    const int64_t records = count_blocks(text, windows, plan, from, to, [&] { return RunBlock(plan, run); });
    run.offsets[plan.blocks] = run.begin + records;
    return records;
}

int64_t merge_runs(const int32_t* files, const int64_t* offsets, int64_t runs, int64_t buffer, int32_t words,
                   double scale, const Plan& plan, const Result& result) {
    return in_blocks(plan, [&] {
        std::vector<RunReader> readers(static_cast<size_t>(runs), RunReader(buffer));
        return [&, readers = std::move(readers), row = Row(words),
                out = ResultBlock(plan, scale, result)](BlockOrder& order, int64_t block) mutable {
            for (int64_t r = 0; r < runs; ++r) {
                const int64_t* run = offsets + r * (plan.blocks + 1);
                readers[static_cast<size_t>(r)].open(files[r], run[block], run[block + 1]);
            }
            for (int32_t word = plan.bounds[block]; word < plan.bounds[block + 1]; ++word) {
                for (auto& reader : readers) reader.add(word, row);
                out.take(word, row);
            }
            out.write(order, block);
        };
    });
}

}  // namespace firth
