// Product quantization (Jégou et al. 2011): rows are split into parts of `width` columns (the last may be narrower),
// each part is replaced by the nearest of 256 centroids trained by k-means. A code is the index of the centroid.
#pragma once

#include <cstdint>

namespace firth {

constexpr int CENTROIDS = 256;

constexpr int POINTS = 256;  // points that the kernel takes at a time

// For a block of points, column by column (column d of point i is points[d * POINTS + i], 64-byte aligned): the index
// of the nearest centroid (ties: the first) and its squared distance.
using Nearest = void (*)(const float* points, int width, const float* centroids, int32_t* codes, float* distances);

// A matrix of `rows` × `dim` and how it is split. `centroids` holds the 256 centroids of each part, part after part.
struct PartitionedMatrix {
    const float* values;
    int64_t rows;
    int64_t dim;
    int64_t width;

    int64_t parts() const { return (dim + width - 1) / width; }
    int width_of(int64_t part) const { return static_cast<int>(part + 1 < parts() ? width : dim - part * width); }
};

// k-means for each part, initialized with the first 256 rows (repeated if there are fewer). A centroid without points
// moves to the point that is farthest from its centroid.
void find_centroids(const PartitionedMatrix& sample, int iterations, float* centroids, int threads);

// The nearest centroid in each part: codes of `rows` × parts.
void assign_codes(const PartitionedMatrix& matrix, const float* centroids, uint8_t* codes, int threads);

namespace baseline { extern const Nearest nearest; }
namespace avx2 { extern const Nearest nearest; }
namespace avx512 { extern const Nearest nearest; }

}  // namespace firth
