#include "product.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "cpu.h"
#include "threads.h"

namespace firth {
namespace {

Nearest kernel() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::nearest;
    if (isa == "avx2") return avx2::nearest;
#endif
    return baseline::nearest;
}

// Passes the points of one part, `stride` apart, to the kernel in blocks; visit(i, code, distance) gets the results in
// order.
template <class Visit>
void each_nearest(Nearest nearest, const float* first, int64_t stride, int64_t count, int width, const float* centroids,
                  Visit visit) {
    struct alignas(64) Aligned {
        float floats[16];
    };
    std::vector<Aligned> room(static_cast<size_t>(width) * POINTS / 16);  // the last block is padded with old points
    float* points = room[0].floats;
    alignas(64) int32_t codes[POINTS];
    alignas(64) float distances[POINTS];
    for (int64_t begin = 0; begin < count; begin += POINTS) {
        const int64_t size = std::min<int64_t>(POINTS, count - begin);
        for (int64_t i = 0; i < size; ++i)
            for (int d = 0; d < width; ++d) points[d * POINTS + i] = first[(begin + i) * stride + d];
        nearest(points, width, centroids, codes, distances);
        for (int64_t i = 0; i < size; ++i) visit(begin + i, codes[i], distances[i]);
    }
}

// k-means of one part of a sample.
class Means {
  public:
    Means(const PartitionedMatrix& sample, int64_t part, float* centroids)
        : points_(sample.values + part * sample.width), stride_(sample.dim), count_(sample.rows),
          width_(sample.width_of(part)), distances_(static_cast<size_t>(count_)), centroids_(centroids) {
        for (int c = 0; c < CENTROIDS; ++c) std::copy_n(point(c % count_), width_, centroids_ + c * width_);
    }

    void step(Nearest nearest) {
        std::vector<double> sums(static_cast<size_t>(CENTROIDS * width_), 0.0);
        std::vector<int64_t> sizes(CENTROIDS, 0);
        each_nearest(nearest, points_, stride_, count_, width_, centroids_, [&](int64_t i, int code, float distance) {
            ++sizes[static_cast<size_t>(code)];
            double* sum = sums.data() + code * width_;
            for (int d = 0; d < width_; ++d) sum[d] += point(i)[d];
            distances_[static_cast<size_t>(i)] = distance;
        });
        for (int c = 0; c < CENTROIDS; ++c) {
            const auto size = static_cast<double>(sizes[static_cast<size_t>(c)]);
            for (int d = 0; size > 0 && d < width_; ++d)
                centroids_[c * width_ + d] = static_cast<float>(sums[static_cast<size_t>(c * width_ + d)] / size);
        }
        for (int c = 0; c < CENTROIDS; ++c)
            if (sizes[static_cast<size_t>(c)] == 0 && !move_to_farthest(c)) break;
    }

  private:
    const float* point(int64_t i) const { return points_ + i * stride_; }

    bool move_to_farthest(int centroid) {
        const auto farthest = std::max_element(distances_.begin(), distances_.end());
        if (!(*farthest > 0)) return false;  // every point lies on a centroid
        std::copy_n(point(farthest - distances_.begin()), width_, centroids_ + centroid * width_);
        *farthest = 0;
        return true;
    }

    const float* points_;
    int64_t stride_, count_;
    int width_;
    std::vector<float> distances_;
    float* centroids_;
};

}  // namespace

void find_centroids(const PartitionedMatrix& sample, int iterations, float* centroids, int threads) {
    const Nearest nearest = kernel();
    std::atomic<int64_t> next{0};
    on_threads(static_cast<int>(std::min<int64_t>(threads, sample.parts())), [&](int) {
        for (int64_t part = next.fetch_add(1); part < sample.parts(); part = next.fetch_add(1)) {
            Means means(sample, part, centroids + part * CENTROIDS * sample.width);
            for (int i = 0; i < iterations; ++i) means.step(nearest);
        }
    });
}

void assign_codes(const PartitionedMatrix& matrix, const float* centroids, uint8_t* codes, int threads) {
    const Nearest nearest = kernel();
    const int64_t parts = matrix.parts();
    constexpr int64_t BLOCK = 1024;  // rows, which stay in the cache for all parts
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int) {
        for (int64_t row = next.fetch_add(BLOCK); row < matrix.rows; row = next.fetch_add(BLOCK))
            for (int64_t part = 0; part < parts; ++part)
                each_nearest(nearest, matrix.values + row * matrix.dim + part * matrix.width, matrix.dim,
                             std::min(BLOCK, matrix.rows - row), matrix.width_of(part),
                             centroids + part * CENTROIDS * matrix.width, [&](int64_t i, int code, float) {
                                 codes[(row + i) * parts + part] = static_cast<uint8_t>(code);
                             });
    });
}

}  // namespace firth
