#include "subwords.h"

#include <cstring>

namespace firth {
namespace {

bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }  // a character's second to fourth byte

bool ends_a_line(const uint8_t* word, int64_t length) { return length == 4 && std::memcmp(word, "</s>", 4) == 0; }

}  // namespace

void hash_words(const WordList& list, uint32_t* hashes) {
    for (int64_t w = 0; w < list.words; ++w) {
        uint32_t hash = HASH_START;
        for (int64_t i = list.starts[w]; i < list.starts[w + 1]; ++i) hash = hash_on(hash, list.text[i]);
        hashes[w] = hash;
    }
}

std::vector<int32_t> subwords(const WordList& list, int minn, int maxn, uint32_t buckets, int64_t* row_starts) {
    std::vector<int32_t> rows;
    std::vector<uint8_t> word;
    row_starts[0] = 0;
    for (int64_t w = 0; w < list.words; ++w) {
        const uint8_t* bytes = list.text + list.starts[w];
        const int64_t length = list.starts[w + 1] - list.starts[w];
        if (maxn > 0 && !ends_a_line(bytes, length)) {
            word.assign(1, '<');
            word.insert(word.end(), bytes, bytes + length);
            word.push_back('>');
            const size_t size = word.size();
            for (size_t first = 0; first < size; ++first) {
                if (continues(word[first])) continue;
                uint32_t hash = HASH_START;
                size_t end = first;
                for (int n = 1; end < size && n <= maxn; ++n) {
                    do hash = hash_on(hash, word[end++]);
                    while (end < size && continues(word[end]));
                    const bool boundary = n == 1 && (first == 0 || end == size);
                    if (n >= minn && !boundary) rows.push_back(static_cast<int32_t>(hash % buckets));
                }
            }
        }
        row_starts[w + 1] = static_cast<int64_t>(rows.size());
    }
    return rows;
}

}  // namespace firth
