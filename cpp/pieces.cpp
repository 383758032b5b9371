#include "pieces.h"

#include <stdexcept>
#include <vector>

namespace firth {

namespace {

struct PieceRange {
    uint32_t first, last;
    int kind;
};
struct PieceLower {
    uint32_t first, last, step;
    int32_t difference;
};
struct Stripped {
    uint32_t code, to[3];
};

#include "piece_tables.h"

// Hangul syllables are numbered leading × 588 + vowel × 28 + trailing (Unicode 14, section 3.12).
constexpr uint32_t kSyllables = 0xAC00, kSyllableCount = 11172, kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11A7;

// GPT-2's letter of a byte: itself if it is a printable Latin-1 character, else the next of U+0100, U+0101, …
void number_bytes(PieceTables& tables) {
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        tables.gpt2_size[byte] = static_cast<uint8_t>(encode_utf8(printable ? byte : next++, tables.gpt2[byte]));
    }
}

PieceTables build() {
    static std::vector<uint8_t> classes(kCodePoints, kOthers);
    static std::vector<uint32_t> folded(kCodePoints), lower(kCodePoints);
    static std::vector<std::array<uint32_t, 3>> several;
    for (const auto& range : kPieceRanges)
        for (uint32_t code = range.first; code <= range.last; ++code) classes[code] = static_cast<uint8_t>(range.kind);
    for (uint32_t code = 0; code < kCodePoints; ++code) lower[code] = code;
    for (const auto& range : kPieceLower)
        for (uint32_t code = range.first; code <= range.last; code += range.step)
            lower[code] = code + static_cast<uint32_t>(range.difference);
    folded = lower;
    const auto put = [&](uint32_t code, uint32_t a, uint32_t b, uint32_t c) {
        folded[code] = b ? kSeveral + static_cast<uint32_t>(several.size()) : lower[a];
        if (b) several.push_back({lower[a], lower[b], lower[c]});
    };
    for (const auto& row : kStripped) put(row.code, row.to[0], row.to[1], row.to[2]);
    for (uint32_t number = 0; number < kSyllableCount; ++number) {
        const uint32_t trailing = number % 28;
        put(kSyllables + number, kLeading + number / 588, kVowel + number % 588 / 28,
            trailing ? kTrailing + trailing : 0);
    }
    PieceTables tables{classes.data(), folded.data(), reinterpret_cast<const uint32_t (*)[3]>(several.data()), {}, {}};
    number_bytes(tables);
    return tables;
}

void append(uint32_t code, std::string& out) {
    char bytes[4];
    out.append(bytes, static_cast<size_t>(encode_utf8(code, bytes)));
}

}  // namespace

const PieceTables& piece_tables() {
    static const PieceTables tables = build();
    return tables;
}

int64_t write_gpt2(const uint8_t* p, const uint8_t* end, std::string& out) {
    const PieceTables& tables = piece_tables();
    const auto put = [&](uint8_t byte) { out.append(tables.gpt2[byte], tables.gpt2_size[byte]); };
    int64_t invalid = 0;
    while (p < end) {
        const Decoded decoded = decode(p, end);
        if (decoded.valid) {
            for (int i = 0; i < decoded.size; ++i) put(p[i]);
        } else {
            put(0xEF), put(0xBF), put(0xBD);  // U+FFFD
            ++invalid;
        }
        p += decoded.size;
    }
    return invalid;
}

void write_bert(const uint8_t* p, const uint8_t* end, bool fold, std::string& out) {
    const PieceTables& tables = piece_tables();
    const int shift = fold ? kFolded : kPlain;
    while (p < end) {
        const Decoded decoded = decode(p, end);
        p += decoded.size;
        if ((tables.classes[decoded.code] >> shift & 3) == kDropped) continue;
        const uint32_t code = fold ? tables.folded[decoded.code] : decoded.code;
        if (code < kSeveral) {
            append(code, out);
            continue;
        }
        for (const uint32_t part : tables.several[code - kSeveral])
            if (part) append(part, out);
    }
}

namespace {

// Trims a document as Corpus does: the line feed after it, and more depending on the unit.
void trim_document(const uint8_t*& begin, const uint8_t*& end, Trim trim, bool from_start, bool to_end) {
    const UnicodeTables& tables = unicode();
    const auto space = [&](const uint8_t* at) {  // as in str.strip, for which NUL is no space
        const uint32_t code = decode(at, end).code;
        return code && tables.classes[code] == kSpace;
    };
    if (to_end && end > begin && end[-1] == '\n') --end;
    if (trim == Trim::line && to_end && end > begin && end[-1] == '\r') --end;
    if (trim != Trim::block) return;
    while (to_end && end > begin) {
        const uint8_t* last = end - 1;
        while (last > begin && (*last & 0xC0) == 0x80) --last;
        if (!space(last)) break;
        end = last;
    }
    while (from_start && begin < end && space(begin)) begin += decode(begin, end).size;
}

}  // namespace

void TextEncoder::count_part(Slot& slot, const uint8_t* data, size_t begin, size_t end, const int64_t* ends,
                             const int64_t* last) {
    const auto count = [&](const uint8_t* from, const uint8_t* to, bool simple) {
        const auto size = static_cast<size_t>(to - from);
        uint8_t key[16] = {};
        Word word;
        if (simple && size <= 15) {
            size_t filled = 0;
            if (*from == ' ') {  // gpt2 only; it is written as two bytes
                const PieceTables& tables = piece_tables();
                key[0] = static_cast<uint8_t>(tables.gpt2[' '][0]), key[1] = static_cast<uint8_t>(tables.gpt2[' '][1]);
                filled = 1, std::memcpy(key + 2, from + 1, size - 1);
            } else {
                std::memcpy(key, from, size);
            }
            uint64_t low = load8(key), high = load8(key + 8);
            if (lowercase_) low = lower8(low), high = lower8(high);
            word = {0, 0, 0, nullptr, 0};
            word.short_word(low, high, static_cast<uint32_t>(size + filled));
        } else {
            slot.scratch.clear();
            if (split_ == Split::gpt2) slot.statistics.invalid += write_gpt2(from, to, slot.scratch);
            else write_bert(from, to, lowercase_, slot.scratch);
            if (slot.scratch.size() > INT32_MAX) throw std::length_error("a word is longer than 2 GB");
            word = Word::of(slot.scratch.data(), slot.scratch.size());
        }
        ++slot.table.find(word).count;
    };
    // Parts end after text, so only the very first one starts a document (see safe_cut).
    bool from_start = begin == 0 && first_block_;
    for (size_t at = begin; at < end || ends != last; from_start = true) {
        const bool to_end = ends != last;
        const size_t stop = to_end ? static_cast<size_t>(*ends++) : end;
        const uint8_t *from = data + at, *to = data + stop;
        trim_document(from, to, trim_, from_start, to_end);
        if (split_ == Split::gpt2) gpt2_pieces(from, to, count);
        else bert_pieces(from, to, lowercase_, slot.statistics.invalid, count);
        at = stop;
    }
}

std::string list_pieces(const std::string& text, Split split, bool fold) {
    const auto* begin = reinterpret_cast<const uint8_t*>(text.data());
    std::string list;
    int64_t invalid = 0;
    const auto put = [&](const uint8_t* from, const uint8_t* to, bool) {
        if (split == Split::gpt2) write_gpt2(from, to, list);
        else write_bert(from, to, fold, list);
        list.push_back('\0');
    };
    if (split == Split::gpt2) gpt2_pieces(begin, begin + text.size(), put);
    else bert_pieces(begin, begin + text.size(), fold, invalid, put);
    return list;
}

size_t cut_before_space(const uint8_t* data, size_t size) {
    for (size_t i = size; i-- > 1;) {
        if (data[i] != ' ' && data[i] != '\n' && data[i] != '\r' && data[i] != '\t')
            continue;  // spaces under all rules
        size_t before = i - 1;
        while (before > 0 && (data[before] & 0xC0) == 0x80) --before;
        const Decoded decoded = decode(data + before, data + i);
        // Not a space under either rule, so that whitespace that trim_document removes is never split.
        if ((piece_tables().classes[decoded.code] & kGpt2Mask) != kSpaces && unicode().classes[decoded.code] != kSpace)
            return i;
    }
    return 0;
}

}  // namespace firth
