// Pre-tokenization for subword tokenizers, as in the package `tokenizers`.
//
// gpt2: the regular expression 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ ; a piece is
// written with one letter per byte (ByteLevel).
// bert: control characters are removed, whitespace separates, Chinese characters and punctuation are separate pieces;
// with `fold`, accents and case are removed (BertNormalizer, BertPreTokenizer). Unlike that package, combining marks
// other than "Mn" are not put into canonical order; real text has no two such marks in a row.
#pragma once

#include "scan.h"
#include "text.h"

#include <string>

namespace firth {

enum PieceClass : uint8_t {
    kOthers,
    kLetters,
    kNumbers,
    kSpaces,
    kGpt2Mask = 3,
    kInWord = 0,
    kDropped = 1,
    kSeparates = 2,
    kAlone = 3,  // for BERT, in the bits at kPlain or, with `fold`, at kFolded
    kPlain = 2,
    kFolded = 4,
};

struct PieceTables {
    uint8_t* classes;  // [kCodePoints]
    uint32_t* folded;  // [kCodePoints] without accents, in lower case; from kSeveral on, an index into `several`
    const uint32_t (*several)[3];
    char gpt2[256][2];  // the letter of each byte, as UTF-8
    uint8_t gpt2_size[256];
};

constexpr uint32_t kSeveral = 0x80000000u;

// Expanded from the ranges of piece_tables.h at first use.
const PieceTables& piece_tables();

// Calls take(begin, end, simple) for each piece of a text; `simple` pieces are printable ASCII (for gpt2, possibly
// after a space).
template <class Take>
void gpt2_pieces(const uint8_t* p, const uint8_t* end, Take take) {
    const uint8_t* classes = piece_tables().classes;
    const auto class_of = [classes](const Decoded& decoded) { return classes[decoded.code] & kGpt2Mask; };
    // The end of the run of code points of class `kind` at `at`.
    const auto run = [&](const uint8_t* at, int kind, bool& simple) {
        while (at < end) {
            if (*at < 0x80) {
                if ((classes[*at] & kGpt2Mask) != kind) break;
                simple &= *at > 0x20 && *at < 0x7F;
                ++at;
                continue;
            }
            const Decoded decoded = decode(at, end);
            if (class_of(decoded) != kind) break;
            simple = false;
            at += decoded.size;
        }
        return at;
    };
    while (p < end) {
        bool simple = true;
        const uint8_t* next = p;
        if (*p == '\'' && end - p > 1) {
            const uint8_t a = p[1], b = end - p > 2 ? p[2] : 0;
            if (a == 's' || a == 't' || a == 'm' || a == 'd') next = p + 2;
            else if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) next = p + 3;
        }
        if (next == p) {
            const uint8_t* from = *p == ' ' && p + 1 < end ? p + 1 : p;
            int kind = class_of(decode(from, end));
            if (kind == kSpaces) from = p, kind = class_of(decode(p, end));
            next = run(from, kind, simple);
            if (kind == kSpaces && next < end) {  // the last space of a run belongs to the next piece
                const uint8_t* last = next - 1;
                while ((*last & 0xC0) == 0x80) --last;
                if (last > p) next = last;
            }
        }
        take(p, next, simple);
        p = next;
    }
}

template <class Take>
void bert_pieces(const uint8_t* p, const uint8_t* end, bool fold, int64_t& invalid, Take take) {
    const uint8_t* classes = piece_tables().classes;
    const int shift = fold ? kFolded : kPlain;
    const uint8_t* word = nullptr;  // start of the current word
    bool simple = true;
    while (p < end) {
        const Decoded decoded = decode(p, end);
        const uint8_t* next = p + decoded.size;
        invalid += !decoded.valid;
        switch (classes[decoded.code] >> shift & 3) {
            case kInWord:
                if (!word) word = p, simple = true;
                simple &= decoded.code < 0x80;
                break;
            case kDropped: simple = false; break;
            case kAlone:
                if (word) take(word, p, simple);
                take(p, next, decoded.code < 0x80);
                word = nullptr;
                break;
            default:
                if (word) take(word, p, simple);
                word = nullptr;
        }
        p = next;
    }
    if (word) take(word, end, simple);
}

// Appends a normalized piece to `out`; write_gpt2 returns the number of invalid sequences.
int64_t write_gpt2(const uint8_t* p, const uint8_t* end, std::string& out);
void write_bert(const uint8_t* p, const uint8_t* end, bool fold, std::string& out);

}  // namespace firth
