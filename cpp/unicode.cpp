#include "unicode.h"

#include <vector>

namespace firth {

namespace {

struct ClassRange {
    uint32_t first, last;
    int kind;
};

struct LowerRange {
    uint32_t first, last, step;
    int32_t difference;
};

#include "unicode_tables.h"

UnicodeTables build() {
    static std::vector<uint8_t> classes(kCodePoints, kOther);
    static std::vector<int32_t> lower(kCodePoints);
    for (const auto& range : kClassRanges)
        for (uint32_t code = range.first; code <= range.last; ++code) classes[code] = static_cast<uint8_t>(range.kind);
    for (uint32_t code = 0; code < kCodePoints; ++code) lower[code] = static_cast<int32_t>(code);
    for (const auto& range : kLowerRanges)
        for (uint32_t code = range.first; code <= range.last; code += range.step) lower[code] += range.difference;
    return {classes.data(), lower.data(), kUnicodeVersion};
}

}  // namespace

const UnicodeTables& unicode() {
    static const UnicodeTables tables = build();
    return tables;
}

}  // namespace firth
