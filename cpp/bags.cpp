#include "bags.h"

#include "threads.h"

#include <algorithm>
#include <atomic>

namespace firth {

namespace {

constexpr size_t kMaxCharacters = 100;  // of a word
constexpr int64_t kTexts = 64;          // taken by a thread at a time
constexpr int kPrefetch = 4;            // rows prefetched ahead

bool is_continuation_byte(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

size_t characters(const char* p, size_t size) {
    return size - static_cast<size_t>(std::count_if(p, p + size, is_continuation_byte));
}

void mean_row(const float* table, int64_t dim, const std::vector<int32_t>& ids, float* out) {
    std::fill(out, out + dim, 0.0f);
    for (size_t i = 0; i < ids.size(); ++i) {
        if (i + kPrefetch < ids.size()) {
            const float* next_row = table + ids[i + kPrefetch] * dim;
            for (int64_t d = 0; d < dim; d += 16) __builtin_prefetch(next_row + d);
        }
        const float* row = table + ids[i] * dim;
        for (int64_t d = 0; d < dim; ++d) out[d] += row[d];
    }
    const float share = 1.0f / static_cast<float>(std::max<size_t>(1, ids.size()));
    for (int64_t d = 0; d < dim; ++d) out[d] *= share;
}

}  // namespace

WordPieces::WordPieces(std::string_view tokens, bool fold, int32_t unknown) : fold_(fold), unknown_(unknown) {
    for (size_t at = 0; at < tokens.size(); ++tokens_) {
        const size_t size = tokens.find('\0', at) - at;
        const bool continuation = size > 2 && tokens[at] == '#' && tokens[at + 1] == '#';
        const size_t from = continuation ? at + 2 : at, length = continuation ? size - 2 : size;
        if (length && tokens_ != unknown) {
            WordTable& table = continuation ? continuation_ : initial_;
            auto& ids = continuation ? continuation_ids_ : initial_ids_;
            if (table.find(Word::of(tokens.data() + from, length)).id == static_cast<int32_t>(ids.size()))
                ids.push_back(static_cast<int32_t>(tokens_));
            longest_ = std::max(longest_, length);
        }
        at += size + 1;
    }
}

void WordPieces::tokenize_word(const char* word, size_t size, Scratch& scratch) const {
    const size_t first_id = scratch.ids.size();
    bool known = size <= kMaxCharacters || characters(word, size) <= kMaxCharacters;
    for (size_t at = 0; known && at < size;) {
        const WordTable& table = at ? continuation_ : initial_;
        size_t length = std::min(size - at, longest_);
        int32_t id = -1;
        for (; length; --length) {
            if (at + length < size && is_continuation_byte(word[at + length])) continue;  // inside a character
            id = table.id(Word::of(word + at, length));
            if (id >= 0) break;
        }
        known = id >= 0;
        if (known) scratch.ids.push_back((at ? continuation_ids_ : initial_ids_)[static_cast<size_t>(id)]);
        at += length;
    }
    if (known) return;
    scratch.ids.resize(first_id);
    ++scratch.unknown;
}

void WordPieces::read(const uint8_t* begin, const uint8_t* end, Scratch& scratch) const {
    scratch.ids.clear();
    scratch.unknown = 0;
    int64_t invalid = 0;
    bert_pieces(begin, end, fold_, invalid, [&](const uint8_t* from, const uint8_t* to, bool simple) {
        scratch.word.clear();
        if (simple) {
            scratch.word.assign(reinterpret_cast<const char*>(from), static_cast<size_t>(to - from));
            if (fold_)
                for (char& letter : scratch.word)
                    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + ('a' - 'A'));
        } else {
            write_bert(from, to, fold_, scratch.word);
        }
        if (!scratch.word.empty()) tokenize_word(scratch.word.data(), scratch.word.size(), scratch);
    });
}

std::vector<int32_t> WordPieces::ids(const Texts& texts, int64_t* ends) const {
    std::vector<int32_t> all_ids;
    Scratch scratch;
    for (int64_t t = 0; t < texts.count; ++t) {
        read(texts.data + texts.starts[t], texts.data + texts.starts[t + 1], scratch);
        all_ids.insert(all_ids.end(), scratch.ids.begin(), scratch.ids.end());
        ends[t] = static_cast<int64_t>(all_ids.size());
    }
    return all_ids;
}

void WordPieces::means(const Texts& texts, const float* table, int64_t dim, float* rows, int64_t* known_counts,
                       int64_t* unknown, int threads) const {
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int) {
        Scratch scratch;
        for (int64_t first; (first = next.fetch_add(kTexts)) < texts.count;) {
            for (int64_t t = first; t < std::min(first + kTexts, texts.count); ++t) {
                read(texts.data + texts.starts[t], texts.data + texts.starts[t + 1], scratch);
                mean_row(table, dim, scratch.ids, rows + t * dim);
                known_counts[t] = static_cast<int64_t>(scratch.ids.size());
                unknown[t] = scratch.unknown;
            }
        }
    });
}

}  // namespace firth
