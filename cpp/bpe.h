// Training of byte-pair encodings: merges the most frequent adjacent pair repeatedly (Sennrich, Haddow & Birch 2016).
//
// The order is that of the package `tokenizers`: the most frequent pair first, ties by smaller ids. A merged pair keeps
// its count, which matters only if two pairs spell the same token ("ab" + "c" and "a" + "bc") and one of them occurs
// again. That package does the same, and the merges must be equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace firth {

// The characters of words by code point, each with its count and its positions in words (bits).
struct Alphabet {
    std::vector<uint32_t> codes;
    std::vector<int64_t> counts;
    std::vector<uint8_t> positions;
};
enum CharacterPosition : uint8_t { kFirstPosition = 1, kLaterPosition = 2, kLastPosition = 4 };

// `words` are valid UTF-8, each followed by NUL.
Alphabet alphabet_of(const char* words, size_t size, const int64_t* counts);

// The token ids of the characters in the alphabet: plain, and with an affix, which all characters but the first of a
// word have (WordPiece's ##), or only the last (</w>).
struct Characters {
    const uint32_t* codes;
    const int32_t *plain_ids, *affixed_ids;  // -1 = none
    size_t count;
    bool affix_last;
};

class BpeTrainer {
  public:
    // `tokens` are the initial tokens, each followed by NUL. `prefix` is removed from the second of two merged tokens.
    BpeTrainer(const char* words, size_t size, const int64_t* counts, size_t n_words, const std::string& tokens,
               const Characters& characters, std::string prefix);

    // Merges until there are `vocabulary` tokens, no pair occurs min_count times, or `steps` merges are done; returns
    // the number of merges.
    int64_t run(int64_t vocabulary, int64_t min_count, int64_t steps);

    struct Merges {
        std::vector<int32_t> left, right, joined;
        std::vector<int64_t> counts;
    };
    const Merges& merges() const { return merges_; }
    const std::vector<std::string>& tokens() const { return tokens_; }

  private:
    // Counts of pairs by (left << 32 | right), in a table with open addressing.
    struct Pair {
        uint64_t key = kNoPair;
        int64_t count = 0;
        int32_t fresh = -1;  // its entry in this step
    };
    // A pair with the words in which it appeared in one step.
    struct Entry {
        uint64_t key;
        std::vector<int32_t> words;
    };
    struct Ranked {
        int64_t count;
        uint64_t key;
        int32_t entry;
        bool operator<(const Ranked& other) const {
            return count != other.count ? count < other.count : key > other.key;
        }
    };
    static constexpr uint64_t kNoPair = ~uint64_t{0};

    Pair& pair(uint64_t key);
    void add(int32_t left, int32_t right, int64_t count, int32_t word);
    void remove(int32_t left, int32_t right, int64_t count);
    void join_in(int32_t word, int32_t left, int32_t right, int32_t joined);
    void rank_fresh();
    int32_t joined_token(int32_t left, int32_t right);

    std::vector<int64_t> counts_;   // of words
    std::vector<int32_t> symbols_;  // of all words, one after the other
    std::vector<size_t> starts_;
    std::vector<int32_t> lengths_;
    std::vector<Pair> pairs_;
    size_t pairs_used_ = 0;
    std::vector<Entry> entries_;
    std::vector<int32_t> fresh_, spare_;  // entries of this step; free entries
    std::priority_queue<Ranked> queue_;
    std::vector<std::string> tokens_;
    std::unordered_map<std::string, int32_t> ids_;
    std::string prefix_;
    Merges merges_;
};

}  // namespace firth
