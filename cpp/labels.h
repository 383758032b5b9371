// Texts and their labels: which rows of the input table a text is the mean of, training on all threads, predicting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "classify.h"
#include "scan.h"
#include "words.h"

namespace firth {

// Which rows a text is made of, as in fastText: its words' own, and those of the buckets that the n-grams of its words'
// characters and of its words fall into. Words from `words` on have no row of their own, only their n-grams.
struct InputRows {
    int32_t words;
    int minn, maxn, word_ngrams;
    const int32_t* bucket_rows;  // the row of each bucket; −1: none
    uint32_t buckets;

    void add_bucket(uint64_t bucket, std::vector<int32_t>& rows) const {
        const int32_t row = bucket_rows[bucket];
        if (row >= 0) rows.push_back(row);
    }

    // The n-grams of two to `word_ngrams` words; `hashes` are the words' own. Widened with their sign, as fastText does.
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

// Words by id: hash of each, and the buckets of its n-grams of characters.
struct KnownWords {
    const int32_t* hashes;
    const int64_t* ngram_starts;
    const int32_t* ngrams;
};

struct LabelledTexts {
    const int32_t* ids;
    const int64_t* starts;
    const int32_t* labels;
    const int64_t* label_starts;
};

// Marks the buckets of the word n-grams of all texts.
void mark_buckets(const LabelledTexts& texts, int64_t count, const KnownWords& known, const InputRows& inputs,
                  uint8_t* marks, int threads);

struct LabelTally {
    double loss = 0;
    int64_t texts = 0;  // trained on: those with a label and at least one row
};

// Trains on the texts order[from] … order[to − 1], dealt to threads that update the tables without locks. The rate falls
// evenly from the first to the last of the `size` texts of an epoch.
LabelTally train_labels(const LabelJob& job, const LabelledTexts& texts, const KnownWords& known,
                        const InputRows& inputs, const int64_t* order, int64_t from, int64_t to, int64_t size,
                        double rate_first, double rate_last, uint64_t seed, int threads);

// How text becomes words: like the encoder, or as fastText does, at ASCII white space, with </s> behind each text.
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

// Predicts the labels of texts. `inputs` is a table of `width` floats a row, `outputs` as in LabelJob.
class TextLabeller {
  public:
    TextLabeller(const std::string& words, Splitting splitting, InputRows inputs, const float* table, int64_t width,
                 LabelJob job, const int32_t* children);

    // The rows of one text.
    void rows_of(const char* text, size_t size, std::vector<int32_t>& rows) const;

    // The k best labels with at least `threshold` probability, best first, as fastText finds them; none for a text of
    // no rows. Text i is data[ends[i − 1]] … data[ends[i]].
    Predictions predict(const uint8_t* data, const int64_t* ends, int64_t texts, int32_t k, float threshold,
                        int threads) const;

    // The mean row of each text, zeros where there is none; `counts` says of how many.
    void hidden(const uint8_t* data, const int64_t* ends, int64_t texts, float* out, int64_t* counts, int threads) const;

  private:
    struct Best;
    void predict_tree(const float* hidden, int32_t k, float threshold, std::vector<Best>& best) const;
    void look_up(const float* hidden, float* scores) const;

    WordTable table_;
    Splitting splitting_;
    InputRows inputs_;
    const float* rows_;
    int64_t width_;
    LabelJob job_;
    const int32_t* children_;  // [inner nodes × 2]: an inner node, or ~label
};

// fastText's file format: words that begin with __label__ are labels. Both come with a NUL after each; `text` as it
// was but for the labels, or (`separate`) its words with a NUL after each and </s> at the end of each document.
struct Taken {
    std::vector<uint8_t> text, labels;
    std::vector<int64_t> text_ends, label_ends;
};
Taken take_labels(const uint8_t* data, size_t size, const int64_t* ends, size_t n_ends, bool take, bool separate);

}  // namespace firth
