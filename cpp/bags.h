// Texts as bags of WordPiece tokens: each text is the mean of its tokens' rows of a table.
//
// Text is pre-tokenized as BERT does it (pieces.h). A word is split greedily into the longest token that starts it,
// then the longest continuations ("##…"). It is unknown as a whole if no token matches at some position or if it has
// more than 100 characters (Schuster & Nakajima 2012, as in the package `tokenizers`). Unknown words are ignored.
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
    // Each token is followed by a NUL; its id is its index. The token `unknown` never matches text.
    WordPieces(std::string_view tokens, bool fold, int32_t unknown);

    // The known token ids of all texts, concatenated; ends[t] is the end of text t.
    std::vector<int32_t> ids(const Texts& texts, int64_t* ends) const;

    // rows[t] becomes the mean of the table rows of text t's known tokens, or zeros if there are none. known[t] is the
    // number of known tokens, unknown[t] the number of unknown words.
    void means(const Texts& texts, const float* table, int64_t dim, float* rows, int64_t* known, int64_t* unknown,
               int threads) const;

    int64_t tokens() const { return tokens_; }

  private:
    struct Scratch {  // for one text
        std::string word;
        std::vector<int32_t> ids;
        int64_t unknown;
    };

    void read(const uint8_t* begin, const uint8_t* end, Scratch& scratch) const;
    void tokenize_word(const char* word, size_t size, Scratch& scratch) const;

    WordTable initial_, continuation_;  // tokens without the ##
    std::vector<int32_t> initial_ids_, continuation_ids_;
    size_t longest_ = 0;  // bytes of a token
    bool fold_;
    int32_t unknown_;
    int64_t tokens_ = 0;
};

}  // namespace firth
