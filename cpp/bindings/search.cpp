#include "search.h"

#include "bindings/common.h"

namespace firth {
namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
const T* pointer(const std::optional<Array<T>>& array, size_t size, const char* rule) {
    if (!array) return nullptr;
    require(array->shape(0) == size, rule);
    return array->data();
}

template <class T>
SearchJob of_matrix(const Matrix<T>& matrix, int numbers, const std::optional<Array<float>>& scales,
                    const std::optional<Array<int64_t>>& listed) {
    SearchJob job{};
    job.matrix = matrix.data(), job.numbers = numbers;
    job.rows = static_cast<int64_t>(matrix.shape(0)), job.dim = static_cast<int64_t>(matrix.shape(1));
    job.scales = pointer<float>(scales, matrix.shape(0), "there must be a scale a row.");
    if (listed) {
        job.listed = listed->data(), job.listed_count = static_cast<int64_t>(listed->shape(0));
        for (int64_t i = 0; i < job.listed_count; ++i)
            require(job.listed[i] > (i ? job.listed[i - 1] : -1) && job.listed[i] < job.rows,
                    "listed rows must rise and be rows of the matrix.");
    }
    return job;
}

void run(const SearchJob& job, const Table& scores, const Positions& found, int threads) {
    const size_t k = scores.shape(1);
    require(k >= 1 && threads >= 1, "k and threads must be at least 1.");
    require(scores.shape(0) == static_cast<size_t>(job.count) && found.shape(0) == scores.shape(0) && found.shape(1) == k,
            "scores and found need a row a query and k columns.");
    nb::gil_scoped_release unlocked;
    search(job, static_cast<int64_t>(k), scores.data(), found.data(), threads);
}

template <class T>
void bind_floats(nb::module_& m, int numbers) {
    m.def("search", [numbers](Matrix<T> matrix, Dense queries, std::optional<Array<float>> scales,
                              std::optional<Array<int64_t>> listed, bool squared, Table scores, Positions found,
                              int threads) {
        SearchJob job = of_matrix(matrix, numbers, scales, listed);
        require(queries.shape(1) == matrix.shape(1), "queries must be as wide as the matrix.");
        job.queries = queries.data(), job.count = static_cast<int64_t>(queries.shape(0)), job.squared = squared;
        run(job, scores, found, threads);
    }, nb::arg("matrix"), nb::arg("queries"), nb::arg("scales").none(), nb::arg("listed").none(), nb::arg("squared"),
       nb::arg("scores"), nb::arg("found"), nb::arg("threads"));
}

}  // namespace

void bind_search(nb::module_& m) {
    bind_floats<float>(m, FLOAT32);
    bind_floats<uint16_t>(m, FLOAT16);
    m.def("search_codes", [](Matrix<int8_t> matrix, Array<int32_t> sums, Array<float> scales,
                             std::optional<Array<float>> offsets, Matrix<int8_t> queries, Array<float> query_scales,
                             std::optional<Array<int64_t>> listed, Table scores, Positions found, int threads) {
        SearchJob job = of_matrix(matrix, INT8, scales, listed);
        require(matrix.shape(1) % 4 == 0 && queries.shape(1) == matrix.shape(1),
                "queries must be as wide as the matrix, a multiple of 4.");
        require(sums.shape(0) == matrix.shape(0), "there must be a sum a row.");
        require(query_scales.shape(0) == queries.shape(0), "there must be a scale a query.");
        job.sums = sums.data();
        job.offsets = pointer<float>(offsets, matrix.shape(0), "there must be an offset a row.");
        job.coded = queries.data(), job.coded_scales = query_scales.data();
        job.count = static_cast<int64_t>(queries.shape(0));
        run(job, scores, found, threads);
    }, nb::arg("matrix"), nb::arg("sums"), nb::arg("scales"), nb::arg("offsets").none(), nb::arg("queries"),
       nb::arg("query_scales"), nb::arg("listed").none(), nb::arg("scores"), nb::arg("found"), nb::arg("threads"));
}

}  // namespace firth
