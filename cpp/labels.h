// Text classification: the input rows of a text, multithreaded training, prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "classify.h"
#include "scan.h"
#include "words.h"

namespace firth {

// The input rows of a text, as in fastText: those of its words, and those of the buckets of its character n-grams and
// word n-grams. Words from `words` on have no row of their own, only their n-grams.
struct InputRows {
    int32_t words;
    int minn, maxn, word_ngrams;
    const int32_t* bucket_rows;  // the row of each bucket; −1: none
    uint32_t buckets;

    void add_bucket(uint64_t bucket, std::vector<int32_t>& rows) const {
        const int32_t row = bucket_rows[bucket];
        if (row >= 0) rows.push_back(row);
    }

    // Visits the buckets of the n-grams of two to `word_ngrams` words. Hashes are sign-extended, as in fastText.
    template <class Visit>
    void each_word_ngram(const int32_t* hashes, int64_t count, Visit visit) const {
        for (int64_t i = 0; i < count; ++i) {
            auto hash = static_cast<uint64_t>(static_cast<int64_t>(hashes[i]));
            for (int64_t j = i + 1; j < count && j < i + word_ngrams; ++j) {
                hash = hash * 116049371u + static_cast<uint64_t>(static_cast<int64_t>(hashes[j]));
                visit(hash % buckets);
            }
        }
    }
};

// The hash of each word id, and the buckets of its character n-grams.
struct WordFeatures {
    const int32_t* hashes;
    const int64_t* ngram_starts;
    const int32_t* ngrams;
};

struct LabeledTexts {
    const int32_t* ids;
    const int64_t* starts;
    const int32_t* labels;
    const int64_t* label_starts;
};

// Sets used[bucket] for the word n-grams of all texts.
void mark_buckets(const LabeledTexts& texts, int64_t count, const WordFeatures& features, const InputRows& inputs,
                  uint8_t* used, int threads);

struct LabelTally {
    double loss = 0;
    int64_t texts = 0;  // trained on: those with a label and at least one row
};

// Trains on the texts order[from] … order[to − 1]; threads update the tables without locks. The rate falls linearly
// over the `size` texts of an epoch.
LabelTally train_labels(const LabelTask& task, const LabeledTexts& texts, const WordFeatures& features,
                        const InputRows& inputs, const int64_t* order, int64_t from, int64_t to, int64_t size,
                        double rate_first, double rate_last, uint64_t seed, int threads);

// How text is split: like the encoder, or like fastText at ASCII whitespace, with </s> after each text.
struct Splitting {
    Split split;
    bool lowercase;
    bool fasttext;
};

struct Predictions {
    std::vector<int64_t> starts{0};
    std::vector<int32_t> labels;
    std::vector<float> probabilities;
};

// Predicts the labels of texts. `table` has rows of `width` floats, the outputs are as in LabelTask.
class TextLabelPredictor {
  public:
    TextLabelPredictor(const std::string& words, Splitting splitting, InputRows inputs, const float* table,
                       int64_t width, LabelTask task, const int32_t* children);

    // Appends the input rows of one text.
    void rows_of(const char* text, size_t size, std::vector<int32_t>& rows) const;

    // The k most probable labels with at least `threshold` probability, as in fastText; none for a text without rows.
    // Text i is data[ends[i − 1]] … data[ends[i]].
    Predictions predict(const uint8_t* data, const int64_t* ends, int64_t texts, int32_t k, float threshold,
                        int threads) const;

    // The mean row of each text, unchanged if it has no rows; `counts` gets the number of rows.
    void hidden(const uint8_t* data, const int64_t* ends, int64_t texts, float* out, int64_t* counts,
                int threads) const;

  private:
    struct Best;
    void predict_tree(const float* hidden, int32_t k, float threshold, std::vector<Best>& best) const;
    void look_up(const float* hidden, float* scores) const;

    WordTable table_;
    Splitting splitting_;
    InputRows inputs_;
    const float* rows_;
    int64_t width_;
    LabelTask task_;
    const int32_t* children_;  // [inner nodes × 2]: an inner node, or ~label
};

// Splits fastText's file format: words that begin with __label__ are labels, each followed by NUL in the result. `text`
// is the rest, or with `separate` its words, each followed by NUL, and </s> at the end of each document.
struct ExtractedLabels {
    std::vector<uint8_t> text, labels;
    std::vector<int64_t> text_ends, label_ends;
};
ExtractedLabels take_labels(const uint8_t* data, size_t size, const int64_t* ends, size_t n_ends, bool take,
                            bool separate);

}  // namespace firth
