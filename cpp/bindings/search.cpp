#include "sift.h"

#include "bindings/common.h"

namespace firth {
namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<int8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sketched = std::tuple<Matrix<int8_t>, Array<float>, Array<int32_t>, Array<float>, Array<float>>;

constexpr size_t WIDEST = 1 << 16;  // codes whose products, added up, stay within 32 bits

Sketch checked(const Sketched& arrays, size_t rows, size_t dim) {
    const auto& [codes, steps, sums, errors, norms] = arrays;
    require(codes.shape(0) == rows && codes.shape(1) == (dim + 3) / 4 * 4 && dim <= WIDEST,
            "codes must have the matrix's rows, as wide as it up to a multiple of 4, at most 65,536.");
    require(steps.shape(0) == rows && sums.shape(0) == rows && errors.shape(0) == rows && norms.shape(0) == rows,
            "a sketch needs a step, sum, error and norm a row.");
    return {codes.data(), steps.data(), sums.data(), errors.data(), norms.data(), static_cast<int64_t>(codes.shape(1))};
}

template <class T>
void bind_floats(nb::module_& m, int numbers) {
    m.def("search", [numbers](Matrix<T> matrix, Dense queries, std::optional<Array<float>> scales,
                              std::optional<Array<int64_t>> listed, bool squared, std::optional<Sketched> sketch,
                              Table scores, Positions found, int threads) {
        const size_t k = scores.shape(1);
        SearchJob job{};
        job.matrix = matrix.data(), job.numbers = numbers;
        job.rows = static_cast<int64_t>(matrix.shape(0)), job.dim = static_cast<int64_t>(matrix.shape(1));
        require(queries.shape(1) == matrix.shape(1), "queries must be as wide as the matrix.");
        job.queries = queries.data(), job.count = static_cast<int64_t>(queries.shape(0)), job.squared = squared;
        require(!scales || scales->shape(0) == matrix.shape(0), "there must be a scale a row.");
        job.scales = scales ? scales->data() : nullptr;
        if (listed) {
            job.listed = listed->data(), job.listed_count = static_cast<int64_t>(listed->shape(0));
            for (int64_t i = 0; i < job.listed_count; ++i)
                require(job.listed[i] > (i ? job.listed[i - 1] : -1) && job.listed[i] < job.rows,
                        "listed rows must rise and be rows of the matrix.");
        }
        Sketch bytes{};
        if (sketch) bytes = checked(*sketch, matrix.shape(0), matrix.shape(1)), job.sketch = &bytes;
        require(k >= 1 && threads >= 1, "k and threads must be at least 1.");
        require(scores.shape(0) == queries.shape(0) && found.shape(0) == queries.shape(0) && found.shape(1) == k,
                "scores and found need a row a query and k columns.");
        nb::gil_scoped_release unlocked;
        search(job, static_cast<int64_t>(k), scores.data(), found.data(), threads);
    }, nb::arg("matrix"), nb::arg("queries"), nb::arg("scales").none(), nb::arg("listed").none(), nb::arg("squared"),
       nb::arg("sketch").none(), nb::arg("scores"), nb::arg("found"), nb::arg("threads"));
}

}  // namespace

void bind_search(nb::module_& m) {
    bind_floats<float>(m, FLOAT32);
    bind_floats<uint16_t>(m, FLOAT16);
    m.def("code_rows", [](Dense matrix, Codes codes, Room<float> steps, Room<int32_t> sums, Room<float> errors,
                          Room<float> norms) {
        const size_t rows = matrix.shape(0), dim = matrix.shape(1);
        require(codes.shape(0) == rows && codes.shape(1) >= dim && steps.shape(0) == rows && sums.shape(0) == rows &&
                    errors.shape(0) == rows && norms.shape(0) == rows,
                "codes, steps, sums, errors and norms need a row a row, codes at least the matrix's columns.");
        nb::gil_scoped_release unlocked;
        code_rows(matrix.data(), static_cast<int64_t>(rows), static_cast<int64_t>(dim),
                  static_cast<int64_t>(codes.shape(1)), codes.data(), steps.data(), sums.data(), errors.data(), norms.data());
    }, nb::arg("matrix"), nb::arg("codes"), nb::arg("steps"), nb::arg("sums"), nb::arg("errors"), nb::arg("norms"));
}

}  // namespace firth
