#include "bindings/common.h"
#include "sparse.h"

namespace firth {

void bind_sparse(nb::module_& m) {
    m.def(
        "count_distinct",
        [](Array<int32_t> ids, Array<int64_t> starts, int32_t words, Output<int64_t> distinct, int threads) {
            check_starts(starts, ids.shape(0));
            check_columns(ids, words);
            require(distinct.shape(0) == starts.shape(0) - 1 && threads >= 1,
                    "distinct must have one entry per document.");
            nb::gil_scoped_release free;
            count_distinct(ids.data(), starts.data(), (int64_t)distinct.shape(0), words, distinct.data(), threads);
        },
        nb::arg("ids"), nb::arg("starts"), nb::arg("words"), nb::arg("distinct"), nb::arg("threads"));
    m.def(
        "count_words",
        [](Array<int32_t> ids, Array<int64_t> starts, int32_t words, Array<int64_t> rows, Output<int32_t> columns,
           Output<float> counts, int threads) {
            check_starts(starts, ids.shape(0));
            check_columns(ids, words);
            check_starts(rows, columns.shape(0));
            require(rows.shape(0) == starts.shape(0) && counts.shape(0) == columns.shape(0) && threads >= 1,
                    "rows must have one start per document, and columns and counts the same length.");
            nb::gil_scoped_release free;
            count_words(ids.data(), starts.data(), (int64_t)starts.shape(0) - 1, words, rows.data(), columns.data(),
                        counts.data(), threads);
        },
        nb::arg("ids"), nb::arg("starts"), nb::arg("words"), nb::arg("rows"), nb::arg("columns"), nb::arg("counts"),
        nb::arg("threads"));
    m.def(
        "multiply",
        [](Array<int64_t> starts, Array<int32_t> columns, Array<float> values, Dense dense, Table out, int threads) {
            check_starts(starts, columns.shape(0));
            check_columns(columns, (int64_t)dense.shape(0));
            require(values.shape(0) == columns.shape(0) && threads >= 1,
                    "columns and values must have the same length.");
            require(out.shape(0) + 1 == starts.shape(0) && out.shape(1) == dense.shape(1),
                    "out must have one row per sparse row and one column per dense column.");
            const SparseRows sparse{starts.data(), columns.data(), values.data(), (int64_t)out.shape(0)};
            nb::gil_scoped_release free;
            multiply(sparse, dense.data(), (int64_t)dense.shape(1), out.data(), threads);
        },
        nb::arg("starts"), nb::arg("columns"), nb::arg("values"), nb::arg("dense"), nb::arg("out"), nb::arg("threads"));
}

}  // namespace firth
