#include "product.h"

#include "bindings/common.h"

namespace firth {
namespace {

using Codes = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

PartitionedMatrix checked(const Dense& matrix, int64_t width, size_t centroids) {
    const PartitionedMatrix partitioned{matrix.data(), static_cast<int64_t>(matrix.shape(0)),
                                        static_cast<int64_t>(matrix.shape(1)), width};
    require(width >= 1 && width <= std::max<int64_t>(1, partitioned.dim), "width must be from 1 to the dimension.");
    require(centroids == static_cast<size_t>(partitioned.dim) * CENTROIDS,
            "centroids must have 256 entries per dimension.");
    return partitioned;
}

}  // namespace

void bind_product(nb::module_& m) {
    m.def(
        "find_centroids",
        [](Dense sample, int64_t width, int iterations, Output<float> centroids, int threads) {
            const PartitionedMatrix partitioned = checked(sample, width, centroids.shape(0));
            require(partitioned.rows >= 1 && threads >= 1, "k-means needs at least one row and one thread.");
            nb::gil_scoped_release unlocked;
            find_centroids(partitioned, iterations, centroids.data(), threads);
        },
        nb::arg("sample"), nb::arg("width"), nb::arg("iterations"), nb::arg("centroids"), nb::arg("threads"));
    m.def(
        "assign_codes",
        [](Dense matrix, int64_t width, Array<float> centroids, Codes codes, int threads) {
            const PartitionedMatrix partitioned = checked(matrix, width, centroids.shape(0));
            require(static_cast<int64_t>(codes.shape(0)) == partitioned.rows &&
                        static_cast<int64_t>(codes.shape(1)) == partitioned.parts(),
                    "codes must have one row per matrix row and one column per part.");
            require(threads >= 1, "threads must be at least 1.");
            nb::gil_scoped_release unlocked;
            assign_codes(partitioned, centroids.data(), codes.data(), threads);
        },
        nb::arg("matrix"), nb::arg("width"), nb::arg("centroids"), nb::arg("codes"), nb::arg("threads"));
}

}  // namespace firth
