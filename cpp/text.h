// Text to word counts and int32 ids on all cores, in one pass, with memory proportional to the vocabulary.
//
// Each thread has a slot with its own word table, which persists from block to block; its ids are provisional. `merge`
// merges the tables into one vocabulary whose order does not depend on threads or blocks, and `translate` turns
// provisional ids into final ones. In a stream of ids, kDocumentEnd follows each document.
#pragma once

#include "scan.h"
#include "words.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace firth {

constexpr int32_t kDocumentEnd = -1;

struct TextStatistics {
    int64_t invalid = 0;      // byte sequences that are not UTF-8
    int64_t unsegmented = 0;  // tokens with a long run of a script that writes no spaces
};

struct Merged {
    std::string words;                             // separated by NUL
    std::vector<int64_t> counts;                   // of the vocabulary
    std::vector<std::vector<int32_t>> maps;        // slot's id → final id, -1: dropped
    int64_t types = 0, tokens = 0, top_count = 0;  // before dropping words; count of the most frequent word
    int64_t dropped_types = 0, dropped_tokens = 0;
};

// What is trimmed from a document: a line feed at its end; for a line, also a carriage return before it; for a block,
// all whitespace around it.
enum class Trim { file, line, block };

class TextEncoder {
  public:
    TextEncoder(Split split, bool lowercase, int slots, Trim trim = Trim::file);
    TextEncoder(const TextEncoder&) = delete;

    // These words get the ids 0, 1, … in every slot and are never dropped; each is followed by NUL.
    void seed(const std::string& words);

    // Tokenizes `size` bytes over the slots. `ends` (ascending) are document ends, each preceded by a separator; the
    // block ends after a separator or at the end of the text. The ids are in `stretches()`, valid until the next call
    // but one, so they can be written to disk while the next block is encoded. Subword pieces (gpt2, bert) are only
    // counted; no separator marks them, so blocks and documents end where safe_cut allows.
    void encode(const uint8_t* data, size_t size, const int64_t* ends, size_t n_ends);

    // The slot's words in the order of their ids, each followed by NUL, and their counts.
    std::pair<std::string, std::vector<int64_t>> words(int slot) const;
    // Adds words with their counts, each followed by NUL, to a slot's table, such as those that other processes
    // counted; returns their ids. Threads may add to different slots at the same time.
    std::vector<int32_t> add(int slot, const char* words, size_t size, const int64_t* counts, size_t n_words);

    struct Stretch {
        int slot;
        size_t begin, size;  // in ids(slot)
    };
    const std::vector<Stretch>& stretches() const { return stretches_; }  // in the order of the text
    const int32_t* ids(int slot) const { return slots_[static_cast<size_t>(slot)]->buffers[turn_].ids.get(); }

    size_t bytes(int slot) const;  // memory of the slot's table
    // Drops the rarer half of the slot's words; returns old id → new id, -1: dropped.
    std::vector<int32_t> prune(int slot);

    // The vocabulary: words with at least min_count, most frequent first (equal counts by bytes), at most max_size
    // (0 = all). The slots are empty afterwards.
    Merged merge(int64_t min_count, int64_t max_size);
    TextStatistics statistics() const;
    int slots() const { return static_cast<int>(slots_.size()); }

  private:
    struct Buffer {
        struct Free {
            void operator()(int32_t* p) const { std::free(p); }
        };
        std::unique_ptr<int32_t, Free> ids;
        size_t room = 0, filled = 0;

        void make_room(size_t more) {  // unused pages take no memory
            if (filled + more <= room) return;
            room = std::max(filled + more, room * 2);
            void* larger = std::realloc(ids.get(), room * sizeof(int32_t));
            if (!larger) throw std::bad_alloc();
            static_cast<void>(ids.release());
            ids.reset(static_cast<int32_t*>(larger));
        }
    };
    struct Slot {  // the state of one thread
        WordTable table;
        Buffer buffers[2];  // used alternately
        int64_t pruned_types = 0, pruned_tokens = 0;
        TextStatistics statistics;
        std::string scratch;
    };
    struct Sink;
    void encode_part(Slot& slot, Buffer& buffer, const uint8_t* data, size_t begin, size_t end, const int64_t* ends,
                     const int64_t* last);
    void count_part(Slot& slot, const uint8_t* data, size_t begin, size_t end, const int64_t* ends,
                    const int64_t* last);

    Split split_;
    bool lowercase_;
    Trim trim_;
    bool first_block_ = true;
    int32_t seeds_ = 0;
    int turn_ = 0;
    std::vector<Stretch> stretches_;
    std::vector<std::unique_ptr<Slot>> slots_;
};

// The tokens of one text, each followed by NUL.
std::string tokenize(const std::string& text, Split split, bool lowercase);

// The last offset within `size` bytes where text can be split without splitting a token: after a separator; 0 = none.
// For subword pieces, which include spaces: before a space that follows text.
size_t safe_cut(const uint8_t* data, size_t size, Split split);

// The same for subword pieces (pieces.cpp).
std::string list_pieces(const std::string& text, Split split, bool fold);
size_t cut_before_space(const uint8_t* data, size_t size);

// ASCII letters of 8 bytes to lower case: bit 7 of a sum says whether a byte is ≥ 'A' or > 'Z'.
inline uint64_t lower8(uint64_t bytes) {
    constexpr uint64_t ones = 0x0101010101010101ull, high_bits = 0x80 * ones;
    const uint64_t from_a = bytes + (0x80 - 'A') * ones, beyond_z = bytes + (0x7F - 'Z') * ones;
    return bytes | ((from_a ^ beyond_z) & high_bits) >> 2;
}

// The offset after each line feed.
std::vector<int64_t> line_ends(const uint8_t* data, size_t size);

// The ends of paragraphs: after a blank line that follows text. `state` is passed from one part of a file to the next
// (0 at the start): bit 0 = the current line has text, bit 1 = the current paragraph has text.
std::vector<int64_t> paragraph_ends(const uint8_t* data, size_t size, int& state);

struct Translated {
    int64_t ids = 0, documents = 0;
};

// Writes map[id] for each id, without -1; `ends` gets the number of ids written before each kDocumentEnd. Both outputs
// need a capacity of `size`.
Translated translate(const int32_t* ids, size_t size, const int32_t* map, int32_t* out, int64_t* ends);

}  // namespace firth
