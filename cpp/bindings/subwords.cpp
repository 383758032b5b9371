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
    m.def(
        "hash_words",
        [](Array<uint8_t> text, Array<int64_t> starts, Output<uint32_t> hashes) {
            const WordList words = checked(text, starts);
            require(hashes.shape(0) == static_cast<size_t>(words.words), "hashes must have one entry per word.");
            nb::gil_scoped_release unlocked;
            hash_words(words, hashes.data());
        },
        nb::arg("text"), nb::arg("starts"), nb::arg("hashes"));
    m.def(
        "subwords",
        [](Array<uint8_t> text, Array<int64_t> starts, int minn, int maxn, int32_t buckets,
           Output<int64_t> row_starts) {
            const WordList words = checked(text, starts);
            require(row_starts.shape(0) == starts.shape(0), "row_starts must be as long as starts.");
            require(buckets >= (maxn > 0), "n-grams need at least one bucket.");
            std::vector<int32_t> rows;
            {
                nb::gil_scoped_release unlocked;
                rows = subwords(words, minn, maxn, static_cast<uint32_t>(buckets), row_starts.data());
            }
            return owned(std::move(rows));
        },
        nb::arg("text"), nb::arg("starts"), nb::arg("minn"), nb::arg("maxn"), nb::arg("buckets"),
        nb::arg("row_starts"));
}

}  // namespace firth
