// Character n-grams of words, numbered by fastText's hash (Bojanowski et al. 2017).
#pragma once

#include <cstdint>
#include <vector>

namespace firth {

// Word w is the bytes text[starts[w]] … text[starts[w + 1]], in UTF-8.
struct WordList {
    const uint8_t* text;
    const int64_t* starts;
    int64_t words;
};

// 32-bit FNV-1a, except that bytes are sign-extended, as in fastText's released models.
constexpr uint32_t HASH_START = 2166136261u;
inline uint32_t hash_on(uint32_t hash, uint8_t byte) {
    return (hash ^ static_cast<uint32_t>(static_cast<int8_t>(byte))) * 16777619u;
}

// The hash of each word, without < and >.
void hash_words(const WordList& list, uint32_t* hashes);

// Hash modulo `buckets` of each n-gram of minn to maxn code points of <word>, in the order of their first characters
// and then of their lengths; row_starts[w] is the start of word w. < and > alone are not n-grams, and the word </s>,
// the end of a line, has none. `buckets` may be 0 only if maxn = 0.
std::vector<int32_t> subwords(const WordList& list, int minn, int maxn, uint32_t buckets, int64_t* row_starts);

}  // namespace firth
