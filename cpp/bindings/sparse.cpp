#include "bindings/common.h"
#include "sparse.h"

namespace firth {

void bind_sparse(nb::module_& m) {
    m.def("count_different", [](Array<int32_t> ids, Array<int64_t> starts, int32_t words, Room<int64_t> different,
                                int threads) {
        check_starts(starts, ids.shape(0));
        check_columns(ids, words);
        require(different.shape(0) == starts.shape(0) - 1 && threads >= 1, "different needs one place a document.");
        nb::gil_scoped_release free;
        count_different(ids.data(), starts.data(), (int64_t)different.shape(0), words, different.data(), threads);
    });
    m.def("count_words", [](Array<int32_t> ids, Array<int64_t> starts, int32_t words, Array<int64_t> rows,
                            Room<int32_t> columns, Room<float> counts, int threads) {
        check_starts(starts, ids.shape(0));
        check_columns(ids, words);
        check_starts(rows, columns.shape(0));
        require(rows.shape(0) == starts.shape(0) && counts.shape(0) == columns.shape(0) && threads >= 1,
                "rows need one start a document, and columns and counts the same room.");
        nb::gil_scoped_release free;
        count_words(ids.data(), starts.data(), (int64_t)starts.shape(0) - 1, words, rows.data(), columns.data(),
                    counts.data(), threads);
    });
    m.def("multiply", [](Array<int64_t> starts, Array<int32_t> columns, Array<float> values, Dense dense, Table out,
                         int threads) {
        check_starts(starts, columns.shape(0));
        check_columns(columns, (int64_t)dense.shape(0));
        require(values.shape(0) == columns.shape(0) && threads >= 1, "columns and values must have one length.");
        require(out.shape(0) + 1 == starts.shape(0) && out.shape(1) == dense.shape(1),
                "out must have a row for each sparse row and a column for each dense column.");
        const SparseRows sparse{starts.data(), columns.data(), values.data(), (int64_t)out.shape(0)};
        nb::gil_scoped_release free;
        multiply(sparse, dense.data(), (int64_t)dense.shape(1), out.data(), threads);
    });
}

}  // namespace firth
