#include "sift.h"

#include "bindings/common.h"

namespace firth {
namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<int8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sketched = std::tuple<Matrix<int8_t>, Array<float>, Array<int32_t>, Array<float>, Array<float>>;

constexpr size_t WIDEST = 1 << 16;  // codes whose summed products fit 32 bits

Sketch checked(const Sketched& arrays, size_t rows, size_t dim) {
    const auto& [codes, steps, sums, errors, norms] = arrays;
    require(codes.shape(0) == rows && codes.shape(1) == (dim + 3) / 4 * 4 && dim <= WIDEST,
            "codes must have the matrix's rows and its width rounded up to a multiple of 4, at most 65,536.");
    require(steps.shape(0) == rows && sums.shape(0) == rows && errors.shape(0) == rows && norms.shape(0) == rows,
            "a sketch must have one step, sum, error and norm per row.");
    return {codes.data(), steps.data(), sums.data(), errors.data(), norms.data(), static_cast<int64_t>(codes.shape(1))};
}

template <class T>
void bind_floats(nb::module_& m, int dtype) {
    m.def(
        "search",
        [dtype](Matrix<T> matrix, Dense queries, std::optional<Array<float>> scales,
                std::optional<Array<int64_t>> listed, bool squared, std::optional<Sketched> sketch, Table scores,
                Positions rows, int threads) {
            const size_t k = scores.shape(1);
            SearchTask task{};
            task.matrix = matrix.data(), task.dtype = dtype;
            task.rows = static_cast<int64_t>(matrix.shape(0)), task.dim = static_cast<int64_t>(matrix.shape(1));
            require(queries.shape(1) == matrix.shape(1), "queries must be as wide as the matrix.");
            task.queries = queries.data(), task.count = static_cast<int64_t>(queries.shape(0)), task.squared = squared;
            require(!scales || scales->shape(0) == matrix.shape(0), "scales must have one scale per row.");
            task.scales = scales ? scales->data() : nullptr;
            if (listed) {
                task.listed = listed->data(), task.listed_count = static_cast<int64_t>(listed->shape(0));
                for (int64_t i = 0; i < task.listed_count; ++i)
                    require(task.listed[i] > (i ? task.listed[i - 1] : -1) && task.listed[i] < task.rows,
                            "listed rows must be ascending rows of the matrix.");
            }
            Sketch checked_sketch{};
            if (sketch)
                checked_sketch = checked(*sketch, matrix.shape(0), matrix.shape(1)), task.sketch = &checked_sketch;
            require(k >= 1 && threads >= 1, "k and threads must be at least 1.");
            require(scores.shape(0) == queries.shape(0) && rows.shape(0) == queries.shape(0) && rows.shape(1) == k,
                    "scores and rows must have one row per query and k columns.");
            nb::gil_scoped_release unlocked;
            search(task, static_cast<int64_t>(k), scores.data(), rows.data(), threads);
        },
        nb::arg("matrix"), nb::arg("queries"), nb::arg("scales").none(), nb::arg("listed").none(), nb::arg("squared"),
        nb::arg("sketch").none(), nb::arg("scores"), nb::arg("rows"), nb::arg("threads"));
}

}  // namespace

void bind_search(nb::module_& m) {
    bind_floats<float>(m, FLOAT32);
    bind_floats<uint16_t>(m, FLOAT16);
    m.def(
        "code_rows",
        [](Dense matrix, Codes codes, Output<float> steps, Output<int32_t> sums, Output<float> errors,
           Output<float> norms) {
            const size_t rows = matrix.shape(0), dim = matrix.shape(1);
            require(codes.shape(0) == rows && codes.shape(1) >= dim && steps.shape(0) == rows &&
                        sums.shape(0) == rows && errors.shape(0) == rows && norms.shape(0) == rows,
                    "codes, steps, sums, errors and norms must have one entry per row, and codes at least the matrix's "
                    "columns.");
            nb::gil_scoped_release unlocked;
            code_rows(matrix.data(), static_cast<int64_t>(rows), static_cast<int64_t>(dim),
                      static_cast<int64_t>(codes.shape(1)), codes.data(), steps.data(), sums.data(), errors.data(),
                      norms.data());
        },
        nb::arg("matrix"), nb::arg("codes"), nb::arg("steps"), nb::arg("sums"), nb::arg("errors"), nb::arg("norms"));
}

}  // namespace firth
