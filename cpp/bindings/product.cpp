#include "product.h"

#include "bindings/common.h"

namespace firth {
namespace {

using Codes = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Cut checked(const Dense& matrix, int64_t width, size_t centroids) {
    const Cut cut{matrix.data(), static_cast<int64_t>(matrix.shape(0)), static_cast<int64_t>(matrix.shape(1)), width};
    require(width >= 1 && width <= std::max<int64_t>(1, cut.dim), "the width of a part must be 1 to the dimension.");
    require(centroids == static_cast<size_t>(cut.dim) * CENTROIDS, "there must be 256 centroids a part.");
    return cut;
}

}  // namespace

void bind_product(nb::module_& m) {
    m.def("find_centroids", [](Dense sample, int64_t width, int iterations, Room<float> centroids, int threads) {
        const Cut cut = checked(sample, width, centroids.shape(0));
        require(cut.rows >= 1 && threads >= 1, "k-means needs a row and a thread.");
        nb::gil_scoped_release unlocked;
        find_centroids(cut, iterations, centroids.data(), threads);
    });
    m.def("assign_codes", [](Dense matrix, int64_t width, Array<float> centroids, Codes codes, int threads) {
        const Cut cut = checked(matrix, width, centroids.shape(0));
        require(static_cast<int64_t>(codes.shape(0)) == cut.rows && static_cast<int64_t>(codes.shape(1)) == cut.parts(),
                "codes need a row a row and a column a part.");
        require(threads >= 1, "threads must be at least 1.");
        nb::gil_scoped_release unlocked;
        assign_codes(cut, centroids.data(), codes.data(), threads);
    });
}

}  // namespace firth
