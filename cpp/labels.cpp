#include "labels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "cpu.h"
#include "floats.h"
#include "hash.h"
#include "subwords.h"
#include "text.h"
#include "threads.h"

namespace firth {
namespace {

constexpr int64_t kBatch = 32;  // texts taken by a thread at a time
const char kLineEnd[] = "</s>";
const char kLabel[] = "__label__";
constexpr size_t kLabelSize = sizeof(kLabel) - 1;

const Classify& kernels() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::classify;
    if (isa == "avx2") return avx2::classify;
#endif
    return baseline::classify;
}

struct ScratchMemory {
    explicit ScratchMemory(const LabelTask& task)
        : hidden(static_cast<size_t>(task.stride), true), change(static_cast<size_t>(task.stride), true),
          scores((static_cast<size_t>(task.labels) + 15) / 16 * 16, true),
          scratch{hidden.data, change.data, scores.data} {}
    Floats hidden, change, scores;
    LabelScratch scratch;
};

// Distributes 0 … count − 1 over threads in blocks of `part`: work(thread, first, last).
template <class Work>
void parallel_blocks(int64_t count, int64_t part, int threads, Work work) {
    std::atomic<int64_t> next{0};
    const int64_t parts = (count + part - 1) / part;
    on_threads(static_cast<int>(std::min<int64_t>(threads, std::max<int64_t>(1, parts))), [&](int thread) {
        for (int64_t i; (i = next++) < parts;) work(thread, i * part, std::min(count, (i + 1) * part));
    });
}

// A batch of texts for the kernel.
struct Gathered {
    std::vector<int32_t> rows, labels, hashes;
    std::vector<int64_t> row_starts, label_starts;
    std::vector<float> rates;
    std::vector<uint64_t> keys;

    void clear() {
        rows.clear(), labels.clear(), rates.clear(), keys.clear();
        row_starts.assign(1, 0), label_starts.assign(1, 0);
    }
    LabelBatch batch() const {
        return {rows.data(),
                row_starts.data(),
                labels.data(),
                label_starts.data(),
                rates.data(),
                keys.data(),
                static_cast<int64_t>(rates.size())};
    }
};

void add_rows(const LabeledTexts& texts, int64_t text, const WordFeatures& features, const InputRows& inputs,
              Gathered& gathered) {
    const int64_t first = texts.starts[text], last = texts.starts[text + 1];
    for (int64_t i = first; i < last; ++i) {
        const int32_t id = texts.ids[i];
        if (id < inputs.words) gathered.rows.push_back(id);
        if (inputs.maxn > 0)
            for (int64_t n = features.ngram_starts[id]; n < features.ngram_starts[id + 1]; ++n)
                inputs.add_bucket(static_cast<uint64_t>(features.ngrams[n]), gathered.rows);
    }
    if (inputs.word_ngrams < 2) return;
    gathered.hashes.clear();
    for (int64_t i = first; i < last; ++i) gathered.hashes.push_back(features.hashes[texts.ids[i]]);
    inputs.each_word_ngram(gathered.hashes.data(), last - first,
                           [&](uint64_t bucket) { inputs.add_bucket(bucket, gathered.rows); });
}

}  // namespace

void mark_buckets(const LabeledTexts& texts, int64_t count, const WordFeatures& features, const InputRows& inputs,
                  uint8_t* used, int threads) {
    std::vector<std::vector<int32_t>> hashes(static_cast<size_t>(threads));
    parallel_blocks(count, 256, threads, [&](int thread, int64_t begin, int64_t end) {
        auto& word_hashes = hashes[static_cast<size_t>(thread)];
        for (int64_t text = begin; text < end; ++text) {
            word_hashes.clear();
            for (int64_t i = texts.starts[text]; i < texts.starts[text + 1]; ++i)
                word_hashes.push_back(features.hashes[texts.ids[i]]);
            inputs.each_word_ngram(word_hashes.data(), static_cast<int64_t>(word_hashes.size()), [&](uint64_t bucket) {
                __atomic_store_n(used + bucket, uint8_t{1}, __ATOMIC_RELAXED);
            });
        }
    });
}

LabelTally train_labels(const LabelTask& task, const LabeledTexts& texts, const WordFeatures& features,
                        const InputRows& inputs, const int64_t* order, int64_t from, int64_t to, int64_t size,
                        double rate_first, double rate_last, uint64_t seed, int threads) {
    const Classify& kernel = kernels();
    struct Worker {
        explicit Worker(const LabelTask& task) : memory(task) {}
        ScratchMemory memory;
        Gathered gathered;
        LabelTally tally;
    };
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>(task));
    parallel_blocks(to - from, kBatch, threads, [&](int thread, int64_t begin, int64_t end) {
        Worker& worker = *workers[static_cast<size_t>(thread)];
        Gathered& batch_data = worker.gathered;
        batch_data.clear();
        for (int64_t position = from + begin; position < from + end; ++position) {
            const int64_t text = order[position];
            const int64_t first = texts.label_starts[text], count = texts.label_starts[text + 1] - first;
            if (count == 0) continue;
            const size_t before = batch_data.rows.size();
            add_rows(texts, text, features, inputs, batch_data);
            if (batch_data.rows.size() == before) continue;
            const uint64_t key = mix(seed + static_cast<uint64_t>(text) * GOLDEN);
            if (task.loss == LABEL_ONE_VS_ALL)  // each label once
                for (int64_t i = first; i < first + count; ++i) {
                    if (std::find(texts.labels + first, texts.labels + i, texts.labels[i]) == texts.labels + i)
                        batch_data.labels.push_back(texts.labels[i]);
                }
            else  // one sampled label, another one in each epoch
                batch_data.labels.push_back(
                    texts.labels[first + static_cast<int64_t>(((key >> 32) * static_cast<uint64_t>(count)) >> 32)]);
            batch_data.row_starts.push_back(static_cast<int64_t>(batch_data.rows.size()));
            batch_data.label_starts.push_back(static_cast<int64_t>(batch_data.labels.size()));
            batch_data.rates.push_back(static_cast<float>(
                rate_first + (rate_last - rate_first) * static_cast<double>(position) / static_cast<double>(size)));
            batch_data.keys.push_back(key);
        }
        const LabelBatch batch = batch_data.batch();
        worker.tally.loss += kernel.train(task, batch, worker.memory.scratch);
        worker.tally.texts += batch.size;
    });
    LabelTally sum;
    for (const auto& worker : workers) sum.loss += worker->tally.loss, sum.texts += worker->tally.texts;
    return sum;
}

// ---- predicting ----

struct TextLabelPredictor::Best {
    float score;  // the logarithm of a probability
    int32_t label;
};

namespace {

// fastText's rules of prediction including rounding, so that its models give the same predictions here: logarithms of
// probability + 1e-5, tabulated sigmoids, dot products summed from first to last, and ties in the order of its heap.
constexpr float kTableEnd = 8;
constexpr int kTableSteps = 512;

float log_above_zero(float probability) {
    return static_cast<float>(std::log(static_cast<double>(probability) + 1e-5));
}

float dot_in_order(const float* x, const float* y, int64_t width) {
    float total = 0;
    for (int64_t d = 0; d < width; ++d) total += x[d] * y[d];
    return total;
}

struct SigmoidTable {
    float values[kTableSteps + 1];
    SigmoidTable() {
        for (int i = 0; i <= kTableSteps; ++i) {
            const float x = static_cast<float>(i) * 2 * kTableEnd / kTableSteps - kTableEnd;
            values[i] = static_cast<float>(1.0 / (1.0 + static_cast<double>(std::exp(-x))));
        }
    }
    static float position(float x) { return (x + kTableEnd) * kTableSteps / kTableEnd / 2; }
    float operator()(float x) const {
        if (!(x >= -kTableEnd)) return 0;  // also for NaN
        return x > kTableEnd ? 1 : values[static_cast<int>(position(x))];
    }
};

template <class Best>
bool better(const Best& one, const Best& other) {
    return one.score > other.score;
}

// `best` is a heap with its worst in front.
template <class Best>
void offer(std::vector<Best>& best, int32_t k, Best one) {
    const bool full = best.size() == static_cast<size_t>(k);
    if (full && one.score < best.front().score) return;
    best.push_back(one);
    std::push_heap(best.begin(), best.end(), better<Best>);
    if (full) std::pop_heap(best.begin(), best.end(), better<Best>), best.pop_back();
}

}  // namespace

TextLabelPredictor::TextLabelPredictor(const std::string& words, Splitting splitting, InputRows inputs,
                                       const float* table, int64_t width, LabelTask task, const int32_t* children)
    : splitting_(splitting), inputs_(inputs), rows_(table), width_(width), task_(task), children_(children) {
    table_.reserve(static_cast<size_t>(inputs.words));
    int32_t added = 0;
    for (size_t at = 0; at < words.size(); ++added) {
        const size_t end = std::min(words.find('\0', at), words.size());
        if (end == at || table_.find(Word::of(words.data() + at, end - at)).id != added)
            throw std::invalid_argument("words must be distinct and not empty.");
        at = end + 1;
    }
    if (added != inputs.words)
        throw std::invalid_argument("the number of words must equal the number of word rows of the model.");
}

namespace {

bool fasttext_space(uint8_t c) { return c == 0 || c == ' ' || (c >= 9 && c <= 13); }

bool is_label(const char* token, size_t size) {
    return size >= kLabelSize && std::memcmp(token, kLabel, kLabelSize) == 0;
}

}  // namespace

void TextLabelPredictor::rows_of(const char* text, size_t size, std::vector<int32_t>& rows) const {
    std::string normalized(text, size);
    if (splitting_.fasttext)
        for (char& c : normalized) c = fasttext_space(static_cast<uint8_t>(c)) ? '\0' : c;
    std::string tokens = tokenize(normalized, splitting_.split, splitting_.lowercase);
    if (splitting_.fasttext) tokens.append(kLineEnd, sizeof(kLineEnd));
    std::vector<int32_t> hashes;
    std::vector<int32_t> ngrams;
    for (size_t at = 0; at < tokens.size();) {
        const char* token = tokens.data() + at;
        const size_t length = tokens.find('\0', at) - at;
        at += length + 1;
        if (splitting_.fasttext && is_label(token, length)) continue;
        const int32_t id = table_.id(Word::of(token, length));
        if (id >= 0) rows.push_back(id);
        const int64_t bounds[2] = {0, static_cast<int64_t>(length)};
        const WordList word{reinterpret_cast<const uint8_t*>(token), bounds, 1};
        if (inputs_.maxn > 0) {
            int64_t ends[2];
            for (const int32_t bucket : subwords(word, inputs_.minn, inputs_.maxn, inputs_.buckets, ends))
                inputs_.add_bucket(static_cast<uint64_t>(bucket), rows);
        }
        if (inputs_.word_ngrams > 1) {
            uint32_t hash;
            hash_words(word, &hash);
            hashes.push_back(static_cast<int32_t>(hash));
        }
    }
    inputs_.each_word_ngram(hashes.data(), static_cast<int64_t>(hashes.size()),
                            [&](uint64_t bucket) { inputs_.add_bucket(bucket, rows); });
}

void TextLabelPredictor::hidden(const uint8_t* data, const int64_t* ends, int64_t texts, float* out, int64_t* counts,
                                int threads) const {
    const Classify& kernel = kernels();
    parallel_blocks(texts, 16, threads, [&](int, int64_t begin, int64_t end) {
        std::vector<int32_t> rows;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t from = i ? ends[i - 1] : 0;
            rows.clear();
            rows_of(reinterpret_cast<const char*>(data + from), static_cast<size_t>(ends[i] - from), rows);
            counts[i] = static_cast<int64_t>(rows.size());
            if (!rows.empty()) kernel.mean(rows_, width_, rows.data(), counts[i], out + i * width_);
        }
    });
}

// Walks down the tree, left before right, pruning branches that cannot be among the k best.
void TextLabelPredictor::predict_tree(const float* hidden, int32_t k, float threshold, std::vector<Best>& best) const {
    const float least = log_above_zero(threshold);
    std::vector<Best> open{{0.0f, task_.labels == 1 ? ~0 : task_.labels - 2}};  // inner nodes, and labels as ~label
    while (!open.empty()) {
        const Best at = open.back();
        open.pop_back();
        if (!(at.score >= least)) continue;  // also for NaN
        if (best.size() == static_cast<size_t>(k) && at.score < best.front().score) continue;
        if (at.label < 0) {
            offer(best, k, {at.score, ~at.label});
            continue;
        }
        const float score = dot_in_order(task_.outputs + at.label * task_.stride, hidden, width_);
        const auto yes = static_cast<float>(1.0 / static_cast<double>(1 + std::exp(-score)));
        const int32_t* children = children_ + 2 * at.label;
        open.push_back({at.score + log_above_zero(yes), children[1]});
        open.push_back({at.score + log_above_zero(1 - yes), children[0]});
    }
}

// Replaces scores by tabulated sigmoids. Where rounding decides between two steps of the table, the dot product is
// summed again in fastText's order.
void TextLabelPredictor::look_up(const float* hidden, float* scores) const {
    static const SigmoidTable table;
    for (int32_t label = 0; label < task_.labels; ++label) {
        const float position = SigmoidTable::position(scores[label]);
        if (std::abs(position - std::round(position)) < 0.01f)
            scores[label] = dot_in_order(task_.outputs + label * task_.stride, hidden, width_);
        scores[label] = table(scores[label]);
    }
}

Predictions TextLabelPredictor::predict(const uint8_t* data, const int64_t* ends, int64_t texts, int32_t k,
                                        float threshold, int threads) const {
    const Classify& kernel = kernels();
    const bool tree = task_.loss == LABEL_HIERARCHICAL;
    std::vector<std::vector<Best>> best_labels(static_cast<size_t>(texts));
    parallel_blocks(texts, 16, threads, [&](int, int64_t begin, int64_t end) {
        ScratchMemory memory(task_);
        std::vector<int32_t> rows;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t from = i ? ends[i - 1] : 0;
            rows.clear();
            rows_of(reinterpret_cast<const char*>(data + from), static_cast<size_t>(ends[i] - from), rows);
            if (rows.empty()) continue;
            auto& best = best_labels[static_cast<size_t>(i)];
            float *hidden = memory.hidden.data, *scores = memory.scores.data;
            kernel.mean(rows_, width_, rows.data(), static_cast<int64_t>(rows.size()), hidden);
            if (tree) {
                predict_tree(hidden, k, threshold, best);
            } else {
                kernel.products(task_.outputs, task_.stride, task_.labels, hidden, scores);
                if (task_.loss == LABEL_SOFTMAX) kernel.softmax(scores, task_.labels);
                else look_up(hidden, scores);
                for (int32_t label = 0; label < task_.labels; ++label)
                    if (scores[label] >= threshold) offer(best, k, {log_above_zero(scores[label]), label});
            }
            std::sort_heap(best.begin(), best.end(), better<Best>);
        }
    });
    Predictions all;
    for (const auto& best : best_labels) {
        for (const Best& one : best) all.labels.push_back(one.label), all.probabilities.push_back(std::exp(one.score));
        all.starts.push_back(static_cast<int64_t>(all.labels.size()));
    }
    return all;
}

// ---- fastText's files ----

ExtractedLabels take_labels(const uint8_t* data, size_t size, const int64_t* ends, size_t n_ends, bool take,
                            bool separate) {
    ExtractedLabels extracted;
    extracted.text.reserve(size + (separate ? 5 * n_ends + 1 : 0));
    const auto put = [](std::vector<uint8_t>& to, const uint8_t* from, size_t count) {
        to.insert(to.end(), from, from + count);
    };
    size_t at = 0;
    for (size_t document = 0; document <= n_ends; ++document) {
        const size_t end = document < n_ends ? static_cast<size_t>(ends[document]) : size;
        while (at < end) {
            size_t stop = at;
            while (stop < end && fasttext_space(data[stop])) ++stop;
            if (!separate) put(extracted.text, data + at, stop - at);
            at = stop;
            while (stop < end && !fasttext_space(data[stop])) ++stop;
            if (stop == at) continue;
            const bool label = take && is_label(reinterpret_cast<const char*>(data + at), stop - at);
            if (label && stop - at > kLabelSize) {
                put(extracted.labels, data + at + kLabelSize, stop - at - kLabelSize);
                extracted.labels.push_back(0);
            } else if (!label) {
                put(extracted.text, data + at, stop - at);
                if (separate) extracted.text.push_back(0);
            }
            at = stop;
        }
        if (document == n_ends) break;
        if (separate) put(extracted.text, reinterpret_cast<const uint8_t*>(kLineEnd), sizeof(kLineEnd));
        extracted.text_ends.push_back(static_cast<int64_t>(extracted.text.size()));
        extracted.label_ends.push_back(static_cast<int64_t>(extracted.labels.size()));
    }
    return extracted;
}

}  // namespace firth
