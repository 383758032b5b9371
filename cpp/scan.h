// Finds the boundaries of tokens in UTF-8 text, 64 bytes at a step.
//
// Each step turns 64 bytes into bit masks (bit i = byte i): letters, digits, …; code points beyond ASCII are looked up
// one by one and written into the same masks. A token is a run of ones, and its boundaries are found by counting zeros.
#pragma once

#include "unicode.h"

#include <array>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace firth {

enum class Split { words, whitespace, characters, separated, gpt2, bert };  // the last two: see pieces.h

constexpr size_t kStep = 64;  // a scanner may read this many bytes past `end`: see Padded in text.cpp

struct Masks {
    uint64_t letter = 0, digit = 0, underscore = 0, apostrophe = 0, point = 0, space = 0, beyond_ascii = 0;
};

inline bool ascii_space(uint8_t c) { return c == 0 || (c >= 9 && c <= 13) || (c >= 28 && c <= 32); }

#if defined(__SSE2__)
inline Masks ascii_masks(const uint8_t* p, Split split) {
    Masks masks;
    const auto eq = [](__m128i v, char c) { return _mm_cmpeq_epi8(v, _mm_set1_epi8(c)); };
    const auto between = [](__m128i v, char low, char high) {  // unsigned: (v - low) <= (high - low)
        const __m128i above =
            _mm_subs_epu8(_mm_sub_epi8(v, _mm_set1_epi8(low)), _mm_set1_epi8(static_cast<char>(high - low)));
        return _mm_cmpeq_epi8(above, _mm_setzero_si128());
    };
    const auto bits = [](__m128i v, int part) {
        return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(v))) << (16 * part);
    };
    for (int part = 0; part < 4; ++part) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * part));
        masks.beyond_ascii |= bits(v, part);
        if (split == Split::words) {
            masks.letter |= bits(between(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 'z'), part);
            masks.digit |= bits(between(v, '0', '9'), part);
            masks.underscore |= bits(eq(v, '_'), part);
            masks.apostrophe |= bits(eq(v, '\''), part);
            masks.point |= bits(eq(_mm_or_si128(v, _mm_set1_epi8(2)), '.'), part);  // . or ,
        } else if (split == Split::whitespace) {
            const __m128i controls = _mm_or_si128(between(v, 9, 13), between(v, 28, 32));
            masks.space |= bits(_mm_or_si128(controls, eq(v, 0)), part);
        } else {
            masks.space |= bits(eq(v, 0), part);
        }
    }
    return masks;
}
#else
inline Masks ascii_masks(const uint8_t* p, Split split) {
    Masks masks;
    for (size_t i = 0; i < kStep; ++i) {
        const uint8_t c = p[i];
        const auto bit = [i](bool is) { return static_cast<uint64_t>(is) << i; };
        masks.beyond_ascii |= bit(c >= 0x80);
        masks.letter |= bit(static_cast<uint8_t>((c | 0x20) - 'a') < 26);
        masks.digit |= bit(static_cast<uint8_t>(c - '0') < 10);
        masks.underscore |= bit(c == '_');
        masks.apostrophe |= bit(c == '\'');
        masks.point |= bit((c | 2) == '.');
        masks.space |= bit(split == Split::whitespace ? ascii_space(c) : c == 0);
    }
    return masks;
}
#endif

// Calls sink.tokens(edges, count) with `count` pairs of begin and end, and sink.invalid(bytes) where bytes between
// tokens are not UTF-8.
template <class Sink>
class Scanner {
  public:
    Scanner(Split split, Sink& sink) : split_(split), sink_(sink), tables_(unicode()) {}

    void scan(const uint8_t* begin, const uint8_t* end) {
        end_ = end;
        filled_ = 0;
        if (split_ == Split::characters) {
            characters(begin);
        } else {
            before_ = Before{};
            carry_ = Masks{};
            inner_carry_ = 0;
            bool inside = false;
            for (const uint8_t* p = begin; p < end; p += kStep) {
                const bool last = static_cast<size_t>(end - p) < kStep;
                const uint64_t live = last ? (uint64_t{1} << (end - p)) - 1 : ~uint64_t{0};  // bytes before `end`
                const uint64_t token = (split_ == Split::words ? word_bits(p, live) : run_bits(p, live)) & live;
                push_edges(p, token ^ (token << 1 | inside));
                inside = token >> 63;
            }
            if (inside) edges_[filled_++] = end;
        }
        flush();
    }

  private:
    struct Before {  // the class of the byte before the step
        bool letter = false, digit = false, underscore = false;
    };

    void push_edges(const uint8_t* p, uint64_t edges) {
        const uint8_t** out = edges_.data() + filled_;
        for (; edges; edges &= edges - 1) *out++ = p + __builtin_ctzll(edges);
        filled_ = static_cast<size_t>(out - edges_.data());
        if (filled_ >= kBatch) flush();
    }

    void flush() {
        sink_.tokens(edges_.data(), filled_ / 2);
        const bool open = filled_ & 1;
        if (open) edges_[0] = edges_[filled_ - 1];
        filled_ = open;
    }

    // Letters with their marks, digits, underscores; ' and ’ between letters; . and , between digits.
    uint64_t word_bits(const uint8_t* p, uint64_t live) {
        Masks masks = ascii_masks(p, Split::words);
        masks.letter &= live, masks.digit &= live, masks.beyond_ascii &= live;
        uint64_t inner = 0;
        if (masks.beyond_ascii) inner = beyond_ascii(p, masks);
        if (masks.apostrophe | masks.point) {
            const uint64_t after_letter = masks.letter << 1 | before_.letter,
                           after_digit = masks.digit << 1 | before_.digit;
            uint64_t to_letter = masks.letter >> 1, to_digit = masks.digit >> 1;
            if ((masks.apostrophe | masks.point) >> 63 && p + kStep < end_) {
                const uint8_t kind = class_at(p + kStep);
                to_letter |= static_cast<uint64_t>(kind == kLetter) << 63;
                to_digit |= static_cast<uint64_t>(kind == kDigit) << 63;
            }
            inner |= (masks.apostrophe & after_letter & to_letter) | (masks.point & after_digit & to_digit);
        }
        before_ = {masks.letter >> 63 != 0, masks.digit >> 63 != 0, masks.underscore >> 63 != 0};
        return masks.letter | masks.digit | masks.underscore | inner;
    }

    // Writes the classes of the step's non-ASCII code points into the masks; returns the bits of ’ inside words.
    uint64_t beyond_ascii(const uint8_t* p, Masks& masks) {
        masks.letter |= carry_.letter, masks.digit |= carry_.digit, masks.underscore |= carry_.underscore;
        uint64_t inner = inner_carry_;
        uint64_t todo = masks.beyond_ascii & ~carry_.beyond_ascii;
        carry_ = Masks{};
        inner_carry_ = 0;
        while (todo) {
            const int at = __builtin_ctzll(todo);
            const Decoded decoded = decode(p + at, end_);
            if (!decoded.valid) sink_.invalid(decoded.size);
            const uint64_t ones = (uint64_t{1} << decoded.size) - 1, bits = ones << at;
            const uint64_t over = at + decoded.size > 64 ? ones >> (64 - at) : 0;  // bytes in the next step
            todo &= ~bits;
            carry_.beyond_ascii |= over;
            const int kind = tables_.classes[decoded.code] & kClassMask;
            const Before before =
                at ? Before{bit(masks.letter, at - 1), bit(masks.digit, at - 1), bit(masks.underscore, at - 1)}
                   : before_;
            const bool mark = kind == kMark;  // a mark takes the class of its base; alone it is no token
            if (kind == kLetter || (mark && before.letter)) masks.letter |= bits, carry_.letter |= over;
            else if (kind == kDigit || (mark && before.digit)) masks.digit |= bits, carry_.digit |= over;
            else if (mark && before.underscore) masks.underscore |= bits, carry_.underscore |= over;
            else if (decoded.code == 0x2019 && before.letter && p + at + 3 < end_ && class_at(p + at + 3) == kLetter)
                inner |= bits, inner_carry_ |= over;
        }
        return inner;
    }

    // Everything but whitespace (or, for separated tokens, but NUL).
    uint64_t run_bits(const uint8_t* p, uint64_t live) {
        Masks masks = ascii_masks(p, split_);
        uint64_t space = masks.space | carry_.space;
        carry_.space = 0;
        if (split_ == Split::whitespace)
            for (uint64_t todo = masks.beyond_ascii & live; todo; todo &= todo - 1) {
                const int at = __builtin_ctzll(todo);
                const uint8_t lead = p[at];
                if (lead != 0xC2 && (lead < 0xE1 || lead > 0xE3)) continue;  // not the first byte of a space
                const Decoded decoded = decode(p + at, end_);
                if (tables_.classes[decoded.code] != kSpace) continue;
                const uint64_t ones = (uint64_t{1} << decoded.size) - 1;
                space |= ones << at;
                if (at + decoded.size > 64) carry_.space |= ones >> (64 - at);
            }
        return ~space;
    }

    // Each letter, digit or underscore with its marks is a token.
    void characters(const uint8_t* p) {
        while (p < end_) {
            const Decoded decoded = decode(p, end_);
            if (!decoded.valid) sink_.invalid(decoded.size);
            const int kind = tables_.classes[decoded.code] & kClassMask;
            const bool base = kind == kLetter || kind == kDigit || kind == kUnderscore;
            const bool open = filled_ & 1;
            if (open && kind != kMark) edges_[filled_++] = p;
            if (filled_ >= kBatch) flush();
            if (base) edges_[filled_++] = p;
            p += decoded.size;
        }
        if (filled_ & 1) edges_[filled_++] = end_;
    }

    uint8_t class_at(const uint8_t* p) const { return tables_.classes[decode(p, end_).code] & kClassMask; }
    static bool bit(uint64_t mask, int at) { return mask >> at & 1; }

    static constexpr size_t kBatch = 512;  // edges, i.e. 256 tokens: enough to hide the cache misses of the table
    Split split_;
    Sink& sink_;
    const UnicodeTables& tables_;
    const uint8_t* end_ = nullptr;
    Before before_;
    Masks carry_;
    uint64_t inner_carry_ = 0;
    std::array<const uint8_t*, kBatch + 2 * kStep> edges_;
    size_t filled_ = 0;
};

}  // namespace firth
