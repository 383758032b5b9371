// Product quantisation (Jégou et al. 2011): rows cut into parts of `width` columns (the last may be narrower), each part
// replaced by the nearest of 256 centroids that k-means found for it. A code is the centroid's number.
#pragma once

#include <cstdint>

namespace firth {

constexpr int CENTROIDS = 256;

constexpr int POINTS = 256;  // that the kernel takes at a time

// For a block of points, column by column (column d of point i is points[d * POINTS + i], 64-byte aligned): the number of
// the nearest centroid, of equally near ones the first, and its squared distance.
using Nearest = void (*)(const float* points, int width, const float* centroids, int32_t* codes, float* distances);

// A matrix of `rows` × `dim` and how it is cut. `centroids` hold part after part, in each its 256 centroids.
struct Cut {
    const float* matrix;
    int64_t rows;
    int64_t dim;
    int64_t width;

    int64_t parts() const { return (dim + width - 1) / width; }
    int width_of(int64_t part) const { return static_cast<int>(part + 1 < parts() ? width : dim - part * width); }
};

// k-means for each part, from the first 256 rows on (taken round again where there are fewer). A centroid that has no
// points left goes to the point that is furthest from its own.
void find_centroids(const Cut& sample, int iterations, float* centroids, int threads);

// The nearest centroid in each part: codes of `rows` × parts.
void assign_codes(const Cut& given, const float* centroids, uint8_t* codes, int threads);

namespace baseline { extern const Nearest nearest; }
namespace avx2 { extern const Nearest nearest; }
namespace avx512 { extern const Nearest nearest; }

}  // namespace firth
