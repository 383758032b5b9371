#include "subwords.h"

#include "bindings/common.h"

namespace firth {
namespace {

WordList checked(const Array<uint8_t>& text, const Array<int64_t>& starts) {
    check_starts(starts, text.shape(0));
    return {text.data(), starts.data(), static_cast<int64_t>(starts.shape(0)) - 1};
}

}  // namespace

void bind_subwords(nb::module_& m) {
    m.def("hash_words", [](Array<uint8_t> text, Array<int64_t> starts, Room<uint32_t> hashes) {
        const WordList given = checked(text, starts);
        require(hashes.shape(0) == static_cast<size_t>(given.words), "hashes need one place a word.");
        nb::gil_scoped_release unlocked;
        hash_words(given, hashes.data());
    });
    m.def("subwords", [](Array<uint8_t> text, Array<int64_t> starts, int minn, int maxn, int32_t buckets,
                         Room<int64_t> row_starts) {
        const WordList given = checked(text, starts);
        require(row_starts.shape(0) == starts.shape(0), "row_starts must be as long as starts.");
        require(buckets >= (maxn > 0), "n-grams need at least one bucket.");
        std::vector<int32_t> rows;
        {
            nb::gil_scoped_release unlocked;
            rows = subwords(given, minn, maxn, static_cast<uint32_t>(buckets), row_starts.data());
        }
        return owned(std::move(rows));
    });
}

}  // namespace firth
