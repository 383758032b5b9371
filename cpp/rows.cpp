#include "vec.h"
#include "write.h"

namespace firth {
namespace ISA {

static inline vec loose(const float* p) { return *reinterpret_cast<const loose_vec*>(p); }

// COUNT rows at once: each is a separate memory stream, and x is read once for all of them.
template <int COUNT>
static inline void multiply_some(const float* row, int64_t width, const float* x, const float* bias, float* out) {
    vec totals[2][COUNT] = {};  // two sums per row hide the latency of additions
    int64_t d = 0;
    for (; d + 2 * LANES <= width; d += 2 * LANES) {
        const vec first = loose(x + d), second = loose(x + d + LANES);
        for (int i = 0; i < COUNT; ++i) {
            __builtin_prefetch(row + i * width + d + 256);
            totals[0][i] += first * loose(row + i * width + d);
            totals[1][i] += second * loose(row + i * width + d + LANES);
        }
    }
    for (; d + LANES <= width; d += LANES)
        for (int i = 0; i < COUNT; ++i) totals[0][i] += loose(x + d) * loose(row + i * width + d);
    for (int i = 0; i < COUNT; ++i) {
        float total = sum(totals[0][i] + totals[1][i]) + (bias ? bias[i] : 0.0f);
        for (int64_t rest = d; rest < width; ++rest) total += x[rest] * row[i * width + rest];
        out[i] = total;
    }
}

static void multiply(const float* rows, int64_t width, int64_t count, const float* x, const float* bias, float* out) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) multiply_some<4>(rows + i * width, width, x, bias ? bias + i : nullptr, out + i);
    for (; i < count; ++i) multiply_some<1>(rows + i * width, width, x, bias ? bias + i : nullptr, out + i);
}

static void attend(const float* query, const float* keys, const float* values, int64_t count, int64_t dim, float scale,
                   float* scores, float* out) {
    multiply(keys, dim, count, query, nullptr, scores);
    float highest = scores[0], total = 0;
    for (int64_t i = 1; i < count; ++i) highest = scores[i] > highest ? scores[i] : highest;
    for (int64_t i = 0; i < count; ++i) total += scores[i] = __builtin_expf((scores[i] - highest) * scale);
    for (int64_t d = 0; d < dim; ++d) out[d] = 0;
    for (int64_t i = 0; i < count; ++i) {
        const float weight = scores[i] / total;
        for (int64_t d = 0; d < dim; ++d) out[d] += weight * values[i * dim + d];
    }
}

extern const Rows rows;
const Rows rows = {multiply, attend};

}  // namespace ISA
}  // namespace firth
