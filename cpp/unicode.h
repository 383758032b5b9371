// Unicode for the tokenizers: classes of code points, lower case, and decoding of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firth {

enum CodePointClass : uint8_t { kOther, kLetter, kDigit, kMark, kUnderscore, kSpace, kClassMask = 7, kUnsegmented = 8 };

constexpr uint32_t kCodePoints = 0x110000;
constexpr uint32_t kReplacement = 0xFFFD;

struct UnicodeTables {
    uint8_t* classes;  // [kCodePoints] CodePointClass
    int32_t* lower;    // [kCodePoints] simple lower case
    const char* version;
};

// Expanded from the ranges of unicode_tables.h at first use; a text touches few of the pages.
const UnicodeTables& unicode();

struct Decoded {
    uint32_t code;  // kReplacement if the bytes are invalid
    int size;       // bytes used
    bool valid;
};

// Decodes one code point of UTF-8 at `p` (< end). The longest prefix of a valid sequence counts as one invalid
// character, as with Python's errors="replace" (Unicode 14, section 3.9, table 3-8).
inline Decoded decode(const uint8_t* p, const uint8_t* end) {
    const uint32_t first = p[0];
    if (first < 0x80) return {first, 1, true};
    if (first < 0xC2 || first > 0xF4) return {kReplacement, 1, false};
    const int size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    // The second byte has a narrower range after E0, ED, F0 and F4: no overlong forms, surrogates or > U+10FFFF.
    const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (p + 1 >= end || p[1] < low || p[1] > high) return {kReplacement, 1, false};
    uint32_t code = (first & (0x7F >> size)) << 6 | (p[1] & 0x3F);
    for (int i = 2; i < size; ++i) {
        if (p + i >= end || (p[i] & 0xC0) != 0x80) return {kReplacement, i, false};
        code = code << 6 | (p[i] & 0x3F);
    }
    return {code, size, true};
}

// Writes `code` as UTF-8 to `out`; returns the number of bytes.
inline int encode_utf8(uint32_t code, char* out) {
    if (code < 0x80) {
        out[0] = static_cast<char>(code);
        return 1;
    }
    const int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; --i, code >>= 6) out[i] = static_cast<char>(0x80 | (code & 0x3F));
    out[0] = static_cast<char>((0xF00 >> size) | code);
    return size;
}

}  // namespace firth
