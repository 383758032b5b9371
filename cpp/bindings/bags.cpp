#include "bags.h"
#include "bindings/common.h"

namespace firth {
namespace {

Texts texts_of(const Array<uint8_t>& data, const Array<int64_t>& starts) {
    check_starts(starts, data.shape(0));
    return {data.data(), starts.data(), static_cast<int64_t>(starts.shape(0)) - 1};
}

}  // namespace

void bind_bags(nb::module_& m) {
    nb::class_<WordPieces>(m, "WordPieces")
        .def(
            "__init__",
            [](WordPieces* self, nb::bytes tokens, bool fold, int32_t unknown) {
                require(!tokens.size() || tokens.c_str()[tokens.size() - 1] == '\0',
                        "tokens must each be followed by a NUL.");
                new (self) WordPieces({tokens.c_str(), tokens.size()}, fold, unknown);
            },
            nb::arg("tokens"), nb::arg("fold"), nb::arg("unknown"))
        .def(
            "ids",
            [](const WordPieces& self, Array<uint8_t> data, Array<int64_t> starts) {  // ids, ends
                const Texts texts = texts_of(data, starts);
                std::vector<int64_t> ends(static_cast<size_t>(texts.count));
                std::vector<int32_t> ids;
                {
                    nb::gil_scoped_release free;
                    ids = self.ids(texts, ends.data());
                }
                return nb::make_tuple(owned(std::move(ids)), owned(std::move(ends)));
            },
            nb::arg("data"), nb::arg("starts"))
        .def(
            "means",
            [](const WordPieces& self, Array<uint8_t> data, Array<int64_t> starts, Dense table, Table rows,
               Output<int64_t> known, Output<int64_t> unknown, int threads) {
                const Texts texts = texts_of(data, starts);
                require((int64_t)table.shape(0) == self.tokens(), "the table must have one row per token.");
                require((int64_t)rows.shape(0) == texts.count && rows.shape(1) == table.shape(1),
                        "rows must have one row per text, as wide as the table.");
                require((int64_t)known.shape(0) == texts.count && (int64_t)unknown.shape(0) == texts.count &&
                            threads >= 1,
                        "known and unknown must have one entry per text, and threads must be at least 1.");
                nb::gil_scoped_release free;
                self.means(texts, table.data(), (int64_t)table.shape(1), rows.data(), known.data(), unknown.data(),
                           threads);
            },
            nb::arg("data"), nb::arg("starts"), nb::arg("table"), nb::arg("rows"), nb::arg("known"), nb::arg("unknown"),
            nb::arg("threads"));
}

}  // namespace firth
