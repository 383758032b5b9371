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
        .def("__init__", [](WordPieces* self, nb::bytes tokens, bool fold, int32_t unknown) {
            require(!tokens.size() || tokens.c_str()[tokens.size() - 1] == '\0', "tokens need a NUL behind each.");
            new (self) WordPieces({tokens.c_str(), tokens.size()}, fold, unknown);
        })
        .def("ids", [](const WordPieces& self, Array<uint8_t> data, Array<int64_t> starts) {  // ids, where texts end
            const Texts texts = texts_of(data, starts);
            std::vector<int64_t> ends(static_cast<size_t>(texts.count));
            std::vector<int32_t> ids;
            {
                nb::gil_scoped_release free;
                ids = self.ids(texts, ends.data());
            }
            return nb::make_tuple(owned(std::move(ids)), owned(std::move(ends)));
        })
        .def("means", [](const WordPieces& self, Array<uint8_t> data, Array<int64_t> starts, Dense table, Table rows,
                         Room<int64_t> known, Room<int64_t> unknown, int threads) {
            const Texts texts = texts_of(data, starts);
            require((int64_t)table.shape(0) == self.tokens(), "the table needs a row for each token.");
            require((int64_t)rows.shape(0) == texts.count && rows.shape(1) == table.shape(1),
                    "there must be a row for each text, as wide as the table.");
            require((int64_t)known.shape(0) == texts.count && (int64_t)unknown.shape(0) == texts.count && threads >= 1,
                    "counts need a place for each text, and threads must be at least 1.");
            nb::gil_scoped_release free;
            self.means(texts, table.data(), (int64_t)table.shape(1), rows.data(), known.data(), unknown.data(), threads);
        });
}

}  // namespace firth
