// The nearest of 256 centroids, for several vectors of points at a time: each lane handles one point.
#include "product.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int TOGETHER = 4;  // vectors of points; independent comparisons hide latency
static_assert(POINTS % (TOGETHER * LANES) == 0, "a block of points is a whole number of steps");

// WIDTH 0 takes the width from the argument; fastText's default of 2 is specialized.
template <int WIDTH>
static void nearest_of_points(const float* points, int any_width, const float* centroids, int32_t* codes,
                              float* distances) {
    const int width = WIDTH ? WIDTH : any_width;
    vec least[TOGETHER];
    ivec which[TOGETHER];
    for (int p = 0; p < TOGETHER; ++p) least[p] = splat(__builtin_inff()), which[p] = ivec{};
    for (int c = 0; c < CENTROIDS; ++c) {
        vec sum[TOGETHER] = {};
        for (int d = 0; d < width; ++d) {
            const vec column = splat(centroids[c * width + d]);
            for (int p = 0; p < TOGETHER; ++p) {
                const vec difference = load(points + d * POINTS + p * LANES) - column;
                sum[p] += difference * difference;
            }
        }
        const ivec number = c - ivec{};
        for (int p = 0; p < TOGETHER; ++p) {
            const ivec nearer = sum[p] < least[p];
            least[p] = choose(nearer, sum[p], least[p]);
            which[p] = nearer ? number : which[p];
        }
    }
    for (int p = 0; p < TOGETHER; ++p) {
        store(distances + p * LANES, least[p]);
        *reinterpret_cast<ivec*>(codes + p * LANES) = which[p];
    }
}

static void find(const float* points, int width, const float* centroids, int32_t* codes, float* distances) {
    for (int at = 0; at < POINTS; at += TOGETHER * LANES) {
        if (width == 2) nearest_of_points<2>(points + at, width, centroids, codes + at, distances + at);
        else nearest_of_points<0>(points + at, width, centroids, codes + at, distances + at);
    }
}

extern const Nearest nearest;
const Nearest nearest = find;

}  // namespace ISA
}  // namespace firth
