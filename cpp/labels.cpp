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

constexpr int64_t kBatch = 32;  // texts that a thread takes at a time
const char kLineEnd[] = "</s>";
const char kLabel[] = "__label__";
constexpr size_t kLabelSize = sizeof(kLabel) - 1;

const Classify& kernels() {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512") return avx512::classify;
    if (isa == "avx2") return avx2::classify;
#endif
    return baseline::classify;
}

struct ScratchMemory {
    explicit ScratchMemory(const LabelJob& job)
        : hidden(static_cast<size_t>(job.stride), true), change(static_cast<size_t>(job.stride), true),
          scores((static_cast<size_t>(job.labels) + 15) / 16 * 16, true), scratch{hidden.data, change.data, scores.data} {}
    Floats hidden, change, scores;
    LabelScratch scratch;
};

// Deals the numbers 0 … count − 1 to threads, `part` at a time: work(thread, first, last).
template <class Work>
void dealt(int64_t count, int64_t part, int threads, Work work) {
    std::atomic<int64_t> next{0};
    const int64_t parts = (count + part - 1) / part;
    on_threads(static_cast<int>(std::min<int64_t>(threads, std::max<int64_t>(1, parts))), [&](int thread) {
        for (int64_t i; (i = next++) < parts;) work(thread, i * part, std::min(count, (i + 1) * part));
    });
}

// Texts gathered for the kernel.
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
        return {rows.data(), row_starts.data(), labels.data(), label_starts.data(), rates.data(), keys.data(),
                static_cast<int64_t>(rates.size())};
    }
};

void add_rows(const LabelledTexts& texts, int64_t text, const KnownWords& known, const InputRows& inputs,
              Gathered& gathered) {
    const int64_t first = texts.starts[text], last = texts.starts[text + 1];
    for (int64_t i = first; i < last; ++i) {
        const int32_t id = texts.ids[i];
        if (id < inputs.words) gathered.rows.push_back(id);
        if (inputs.maxn > 0)
            for (int64_t n = known.ngram_starts[id]; n < known.ngram_starts[id + 1]; ++n)
                inputs.add_bucket(static_cast<uint64_t>(known.ngrams[n]), gathered.rows);
    }
    if (inputs.word_ngrams < 2) return;
    gathered.hashes.clear();
    for (int64_t i = first; i < last; ++i) gathered.hashes.push_back(known.hashes[texts.ids[i]]);
    inputs.each_word_ngram(gathered.hashes.data(), last - first,
                           [&](uint64_t bucket) { inputs.add_bucket(bucket, gathered.rows); });
}

}  // namespace

void mark_buckets(const LabelledTexts& texts, int64_t count, const KnownWords& known, const InputRows& inputs,
                  uint8_t* marks, int threads) {
    std::vector<std::vector<int32_t>> hashes(static_cast<size_t>(threads));
    dealt(count, 256, threads, [&](int thread, int64_t begin, int64_t end) {
        auto& mine = hashes[static_cast<size_t>(thread)];
        for (int64_t text = begin; text < end; ++text) {
            mine.clear();
            for (int64_t i = texts.starts[text]; i < texts.starts[text + 1]; ++i)
                mine.push_back(known.hashes[texts.ids[i]]);
            inputs.each_word_ngram(mine.data(), static_cast<int64_t>(mine.size()), [&](uint64_t bucket) {
                __atomic_store_n(marks + bucket, uint8_t{1}, __ATOMIC_RELAXED);
            });
        }
    });
}

LabelTally train_labels(const LabelJob& job, const LabelledTexts& texts, const KnownWords& known,
                        const InputRows& inputs, const int64_t* order, int64_t from, int64_t to, int64_t size,
                        double rate_first, double rate_last, uint64_t seed, int threads) {
    const Classify& kernel = kernels();
    struct Worker {
        explicit Worker(const LabelJob& job) : memory(job) {}
        ScratchMemory memory;
        Gathered gathered;
        LabelTally tally;
    };
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>(job));
    dealt(to - from, kBatch, threads, [&](int thread, int64_t begin, int64_t end) {
        Worker& worker = *workers[static_cast<size_t>(thread)];
        Gathered& found = worker.gathered;
        found.clear();
        for (int64_t place = from + begin; place < from + end; ++place) {
            const int64_t text = order[place];
            const int64_t first = texts.label_starts[text], count = texts.label_starts[text + 1] - first;
            if (count == 0) continue;
            const size_t before = found.rows.size();
            add_rows(texts, text, known, inputs, found);
            if (found.rows.size() == before) continue;
            const uint64_t key = mix(seed + static_cast<uint64_t>(text) * GOLDEN);
            if (job.loss == LABEL_ONE_VS_ALL)  // each once, however often it is given
                for (int64_t i = first; i < first + count; ++i) {
                    if (std::find(texts.labels + first, texts.labels + i, texts.labels[i]) == texts.labels + i)
                        found.labels.push_back(texts.labels[i]);
                }
            else  // one of them, another one in each epoch
                found.labels.push_back(texts.labels[first + static_cast<int64_t>(((key >> 32) * static_cast<uint64_t>(count)) >> 32)]);
            found.row_starts.push_back(static_cast<int64_t>(found.rows.size()));
            found.label_starts.push_back(static_cast<int64_t>(found.labels.size()));
            found.rates.push_back(static_cast<float>(
                rate_first + (rate_last - rate_first) * static_cast<double>(place) / static_cast<double>(size)));
            found.keys.push_back(key);
        }
        const LabelBatch batch = found.batch();
        worker.tally.loss += kernel.train(job, batch, worker.memory.scratch);
        worker.tally.texts += batch.size;
    });
    LabelTally sum;
    for (const auto& worker : workers) sum.loss += worker->tally.loss, sum.texts += worker->tally.texts;
    return sum;
}

// ---- predicting ----

struct TextLabeller::Best {
    float score;  // a probability, or the logarithm of one
    int32_t label;
    bool operator<(const Best& other) const {  // better first
        return score != other.score ? score > other.score : label < other.label;
    }
};

TextLabeller::TextLabeller(const std::string& words, Splitting splitting, InputRows inputs, const float* table,
                           int64_t width, LabelJob job, const int32_t* children)
    : splitting_(splitting), inputs_(inputs), rows_(table), width_(width), job_(job), children_(children) {
    table_.reserve(static_cast<size_t>(inputs.words));
    int32_t added = 0;
    for (size_t at = 0; at < words.size(); ++added) {
        const size_t end = std::min(words.find('\0', at), words.size());
        if (end == at || table_.find(Word::of(words.data() + at, end - at)).id != added)
            throw std::invalid_argument("words must differ and not be empty.");
        at = end + 1;
    }
    if (added != inputs.words) throw std::invalid_argument("there must be as many words as the model has rows for.");
}

namespace {

bool fasttext_space(uint8_t c) { return c == 0 || c == ' ' || (c >= 9 && c <= 13); }

bool is_label(const char* token, size_t size) { return size >= kLabelSize && std::memcmp(token, kLabel, kLabelSize) == 0; }

}  // namespace

void TextLabeller::rows_of(const char* text, size_t size, std::vector<int32_t>& rows) const {
    std::string given(text, size);
    if (splitting_.fasttext)
        for (char& c : given) c = fasttext_space(static_cast<uint8_t>(c)) ? '\0' : c;
    std::string tokens = tokenize(given, splitting_.split, splitting_.lowercase);
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

void TextLabeller::hidden(const uint8_t* data, const int64_t* ends, int64_t texts, float* out, int64_t* counts,
                          int threads) const {
    const Classify& kernel = kernels();
    dealt(texts, 16, threads, [&](int, int64_t begin, int64_t end) {
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

// Walks down the tree, the likelier child first, and leaves out what can't be among the k best any more.
void TextLabeller::predict_tree(const float* hidden, int32_t k, float threshold, std::vector<Best>& best) const {
    const double least = std::log(static_cast<double>(threshold));
    struct Node {
        int32_t node;
        double score;
    };
    std::vector<Node> open{{job_.labels - 2, 0.0}};
    if (job_.labels == 1) open[0].node = ~0;
    while (!open.empty()) {
        const Node at = open.back();
        open.pop_back();
        // `best` is a heap with its worst in front.
        const bool full = best.size() == static_cast<size_t>(k);
        if (!(at.score >= least)) continue;  // also what is no number
        if (full && at.score < static_cast<double>(best.front().score)) continue;
        if (at.node < 0) {
            best.push_back({static_cast<float>(at.score), ~at.node});
            std::push_heap(best.begin(), best.end());
            if (full) std::pop_heap(best.begin(), best.end()), best.pop_back();
            continue;
        }
        const float* output = job_.outputs + at.node * job_.stride;
        double score = 0;
        for (int64_t d = 0; d < job_.stride; ++d) score += static_cast<double>(output[d]) * static_cast<double>(hidden[d]);
        const double yes = -std::log1p(std::exp(-score)), no = -std::log1p(std::exp(score));
        const Node left{children_[2 * at.node], at.score + no}, right{children_[2 * at.node + 1], at.score + yes};
        open.push_back(score > 0 ? left : right);
        open.push_back(score > 0 ? right : left);
    }
    for (Best& found : best) found.score = std::exp(found.score);
    std::sort(best.begin(), best.end());
}

Predictions TextLabeller::predict(const uint8_t* data, const int64_t* ends, int64_t texts, int32_t k, float threshold,
                                  int threads) const {
    const Classify& kernel = kernels();
    const bool tree = job_.loss == LABEL_HIERARCHICAL;
    std::vector<std::vector<Best>> found(static_cast<size_t>(texts));
    dealt(texts, 16, threads, [&](int, int64_t begin, int64_t end) {
        ScratchMemory memory(job_);
        std::vector<int32_t> rows;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t from = i ? ends[i - 1] : 0;
            rows.clear();
            rows_of(reinterpret_cast<const char*>(data + from), static_cast<size_t>(ends[i] - from), rows);
            if (rows.empty()) continue;
            auto& best = found[static_cast<size_t>(i)];
            float *hidden = memory.hidden.data, *scores = memory.scores.data;
            kernel.mean(rows_, width_, rows.data(), static_cast<int64_t>(rows.size()), hidden);
            if (tree) {
                predict_tree(hidden, k, threshold, best);
                continue;
            }
            kernel.products(job_.outputs, job_.stride, job_.labels, hidden, scores);
            if (job_.loss == LABEL_SOFTMAX) kernel.softmax(scores, job_.labels);
            else kernel.sigmoid(scores, job_.labels);
            for (int32_t label = 0; label < job_.labels; ++label)
                if (scores[label] >= threshold) best.push_back({scores[label], label});
            const auto kept = best.begin() + std::min<int64_t>(k, static_cast<int64_t>(best.size()));
            std::partial_sort(best.begin(), kept, best.end());
            best.erase(kept, best.end());
            best.shrink_to_fit();
        }
    });
    Predictions all;
    for (const auto& best : found) {
        for (const Best& one : best) all.labels.push_back(one.label), all.probabilities.push_back(one.score);
        all.starts.push_back(static_cast<int64_t>(all.labels.size()));
    }
    return all;
}

// ---- fastText's files ----

Taken take_labels(const uint8_t* data, size_t size, const int64_t* ends, size_t n_ends, bool take, bool separate) {
    Taken taken;
    taken.text.reserve(size + (separate ? 5 * n_ends + 1 : 0));
    const auto put = [](std::vector<uint8_t>& to, const uint8_t* from, size_t count) { to.insert(to.end(), from, from + count); };
    size_t at = 0;
    for (size_t document = 0; document <= n_ends; ++document) {
        const size_t end = document < n_ends ? static_cast<size_t>(ends[document]) : size;
        while (at < end) {
            size_t stop = at;
            while (stop < end && fasttext_space(data[stop])) ++stop;
            if (!separate) put(taken.text, data + at, stop - at);
            at = stop;
            while (stop < end && !fasttext_space(data[stop])) ++stop;
            if (stop == at) continue;
            const bool label = take && is_label(reinterpret_cast<const char*>(data + at), stop - at);
            if (label && stop - at > kLabelSize) {
                put(taken.labels, data + at + kLabelSize, stop - at - kLabelSize);
                taken.labels.push_back(0);
            } else if (!label) {
                put(taken.text, data + at, stop - at);
                if (separate) taken.text.push_back(0);
            }
            at = stop;
        }
        if (document == n_ends) break;
        if (separate) put(taken.text, reinterpret_cast<const uint8_t*>(kLineEnd), sizeof(kLineEnd));
        taken.text_ends.push_back(static_cast<int64_t>(taken.text.size()));
        taken.label_ends.push_back(static_cast<int64_t>(taken.labels.size()));
    }
    return taken;
}

}  // namespace firth
