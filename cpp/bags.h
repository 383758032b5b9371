// Texts as bags of WordPieces: each the mean of its pieces' rows of a table.
//
// Words are cut as BERT cuts them (pieces.h); a word is the longest piece that begins it, then the longest that goes on
// ("##…"), or unknown as a whole where at some place none fits or it has more than 100 characters (Schuster & Nakajima
// 2012, as the package `tokenizers` has it). Unknown words don't count.
#pragma once

#include "pieces.h"
#include "words.h"

#include <string>
#include <string_view>

namespace firth {

struct Texts {
    const uint8_t* data;
    const int64_t* starts;  // text t is data[starts[t]] … data[starts[t + 1]]
    int64_t count;
};

class WordPieces {
  public:
    // `tokens` have a NUL behind each; their ids are their places. That of `unknown` is never found.
    WordPieces(std::string_view tokens, bool fold, int32_t unknown);

    // Ids of all texts' known pieces, one behind the other; ends[t] is where those of text t end.
    std::vector<int32_t> ids(const Texts& texts, int64_t* ends) const;

    // rows[t] becomes the mean of the rows of `table` that text t's known pieces have, zeros where it has none;
    // known[t] and unknown[t] count pieces and words.
    void means(const Texts& texts, const float* table, int64_t dim, float* rows, int64_t* known, int64_t* unknown,
               int threads) const;

    int64_t tokens() const { return tokens_; }

  private:
    struct Scratch {  // of one text
        std::string word;
        std::vector<int32_t> ids;
        int64_t unknown;
    };

    void read(const uint8_t* begin, const uint8_t* end, Scratch& scratch) const;
    void cut(const char* word, size_t size, Scratch& scratch) const;

    WordTable begins_, goes_on_;  // without the ##
    std::vector<int32_t> begin_ids_, go_on_ids_;
    size_t longest_ = 0;  // bytes of a piece
    bool fold_;
    int32_t unknown_;
    int64_t tokens_ = 0;
};

}  // namespace firth
