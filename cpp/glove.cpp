#include "glove.h"

#include "vec.h"

namespace firth {
namespace ISA {

static inline float* row(float* table, int64_t which, int64_t stride) { return table + which * 2 * stride; }

static inline float dot(const float* x, const float* y, int64_t stride) {
    vec total = {};
    for (int64_t d = 0; d < stride; d += LANES) total += load(x + d) * load(y + d);
    return sum(total);
}

// Both vectors take an AdaGrad step from their old values: x by step · y / √(x's sum of squares); then the sums grow.
// The compiler vectorizes this loop, because rows of the two tables don't overlap.
static inline void step_rows(float* __restrict x, float* __restrict y, int64_t stride, float step) {
    float* __restrict x_sums = x + stride;
    float* __restrict y_sums = y + stride;
    for (int64_t d = 0; d < stride; ++d) {
        const float dx = step * y[d], dy = step * x[d];
        x[d] -= dx / __builtin_sqrtf(x_sums[d]);
        y[d] -= dy / __builtin_sqrtf(y_sums[d]);
        x_sums[d] += dx * dx;
        y_sums[d] += dy * dy;
    }
}

static inline void step_bias(float* bias, float step) {
    bias[0] -= step / __builtin_sqrtf(bias[1]);
    bias[1] += step * step;
}

static inline void fetch(const float* from, int64_t floats) {
    for (int64_t d = 0; d < floats; d += 16) __builtin_prefetch(from + d, 1, 3);
}

static double train(const GloveTask& task, const GloveRecord* records, int64_t count) {
    constexpr int64_t PREFETCH = 2;  // records whose rows are prefetched
    const int64_t stride = task.stride;
    double loss = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i + PREFETCH < count) {
            fetch(row(task.words, records[i + PREFETCH].word, stride), 2 * stride);
            fetch(row(task.contexts, records[i + PREFETCH].context, stride), 2 * stride);
        }
        const GloveRecord& record = records[i];
        float* word = row(task.words, record.word, stride);
        float* context = row(task.contexts, record.context, stride);
        float* word_bias = task.word_biases + 2 * (int64_t)record.word;
        float* context_bias = task.context_biases + 2 * (int64_t)record.context;
        const float error = dot(word, context, stride) + word_bias[0] + context_bias[0] - record.log_count;
        loss += 0.5 * (double)(record.weight * error) * (double)error;
        if (task.rate == 0) continue;
        const float step = task.rate * record.weight * error;
        step_rows(word, context, stride, step);
        step_bias(word_bias, step);
        step_bias(context_bias, step);
    }
    return loss;
}

extern const Glove glove;
const Glove glove = {train};

}  // namespace ISA
}  // namespace firth
