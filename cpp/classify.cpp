// Trains one text at a time: the mean of its input rows, the scores, the gradient step. Compiled per instruction set.
#include "classify.h"

#include "hash.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int64_t PREFETCH = 6;  // input rows prefetched ahead; they may belong to the next text

static inline void fetch(const float* from, int64_t floats) {
    for (int64_t d = 0; d < floats; d += 16) __builtin_prefetch(from + d, 1, 3);
}

static inline float dot(const float* x, const float* y, int64_t stride) {
    vec total = {};
    for (int64_t d = 0; d < stride; d += LANES) total += load(x + d) * load(y + d);
    return sum(total);
}

// hidden = the mean of the rows [first, last); rows up to `end` are prefetched.
static void mean_ahead(const LabelTask& task, const int32_t* rows, int64_t first, int64_t last, int64_t end,
                       float* hidden) {
    const int64_t stride = task.stride;
    const auto row = [&](int64_t i) { return task.inputs + rows[i] * stride; };
    for (int64_t d = 0; d < stride; d += LANES) store(hidden + d, vec{});
    int64_t i = first;
    for (; i + 4 <= last; i += 4) {
        for (int64_t j = i + PREFETCH; j < i + PREFETCH + 4 && j < end; ++j) fetch(row(j), stride);
        const float *a = row(i), *b = row(i + 1), *c = row(i + 2), *e = row(i + 3);
        for (int64_t d = 0; d < stride; d += LANES)
            store(hidden + d, load(hidden + d) + ((load(a + d) + load(b + d)) + (load(c + d) + load(e + d))));
    }
    for (; i < last; ++i) {
        if (i + PREFETCH < end) fetch(row(i + PREFETCH), stride);
        const float* a = row(i);
        for (int64_t d = 0; d < stride; d += LANES) store(hidden + d, load(hidden + d) + load(a + d));
    }
    const float share = 1.0f / (float)(last - first);
    for (int64_t d = 0; d < stride; d += LANES) store(hidden + d, load(hidden + d) * share);
}

static void mean(const float* inputs, int64_t width, const int32_t* rows, int64_t count, float* __restrict hidden) {
    for (int64_t d = 0; d < width; ++d) hidden[d] = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i + PREFETCH < count) fetch(inputs + rows[i + PREFETCH] * width, width);
        const float* row = inputs + rows[i] * width;
        for (int64_t d = 0; d < width; ++d) hidden[d] += row[d];
    }
    const float share = 1.0f / (float)count;
    for (int64_t d = 0; d < width; ++d) hidden[d] *= share;
}

static void products(const float* outputs, int64_t stride, int32_t labels, const float* hidden, float* scores) {
    for (int32_t first = 0; first < labels; first += LANES) {
        vec totals[LANES] = {};
        const float* row = outputs + first * stride;
        for (int64_t d = 0; d < stride; d += LANES) {
            const vec h = load(hidden + d);
            for (int i = 0; i < LANES; ++i) totals[i] += h * load(row + i * stride + d);
        }
        store(scores + first, sums(totals));
    }
}

static inline float max_score(const float* scores, int32_t labels) {
    float highest = scores[0];
    for (int32_t i = 1; i < labels; ++i) highest = scores[i] > highest ? scores[i] : highest;
    return highest;
}

static inline int32_t padded(int32_t labels) { return (labels + LANES - 1) / LANES * LANES; }

// Replaces scores by e^(score − highest) and returns their sum.
static float exponentials(float* scores, int32_t labels, float highest) {
    for (int32_t i = labels; i < padded(labels); ++i) scores[i] = -1e30f;
    vec total = {};
    for (int32_t i = 0; i < labels; i += LANES) {
        const vec e = exp_vec(load(scores + i) - highest);
        store(scores + i, e);
        total += e;
    }
    return sum(total);
}

static void softmax(float* scores, int32_t labels) {
    const float total = exponentials(scores, labels, max_score(scores, labels));
    for (int32_t i = 0; i < labels; i += LANES) store(scores + i, load(scores + i) / total);
}

// Adds steps[i] · hidden to COUNT output rows from `row` on, and steps[i] · (old row) to `change`.
template <int COUNT>
static inline void step_rows(float* row, int64_t stride, const float* steps, const float* hidden, float* change) {
    vec step[COUNT];
    for (int i = 0; i < COUNT; ++i) step[i] = splat(steps[i]);
    for (int64_t d = 0; d < stride; d += LANES) {
        const vec h = load(hidden + d);
        vec total = load(change + d);
        for (int i = 0; i < COUNT; ++i) {
            const vec old = load(row + i * stride + d);
            total += step[i] * old;
            store(row + i * stride + d, old + step[i] * h);
        }
        store(change + d, total);
    }
}

static void step_all(const LabelTask& task, LabelScratch& scratch) {
    int32_t i = 0;
    for (; i + 8 <= task.labels; i += 8)
        step_rows<8>(task.outputs + i * task.stride, task.stride, scratch.scores + i, scratch.hidden, scratch.change);
    for (; i + 2 <= task.labels; i += 2)
        step_rows<2>(task.outputs + i * task.stride, task.stride, scratch.scores + i, scratch.hidden, scratch.change);
    if (i < task.labels)
        step_rows<1>(task.outputs + i * task.stride, task.stride, scratch.scores + i, scratch.hidden, scratch.change);
}

static double train_softmax(const LabelTask& task, int32_t label, float rate, LabelScratch& scratch) {
    float* scores = scratch.scores;
    products(task.outputs, task.stride, task.labels, scratch.hidden, scores);
    const float highest = max_score(scores, task.labels), margin = highest - scores[label];
    const float total = exponentials(scores, task.labels, highest);
    if (rate != 0) {
        const float scale = -rate / total;
        for (int32_t i = 0; i < task.labels; i += LANES) store(scores + i, load(scores + i) * scale);
        scores[label] += rate;
        step_all(task, scratch);
    }
    return (double)(__builtin_logf(total) + margin);
}

static double train_one_vs_all(const LabelTask& task, const int32_t* labels, int64_t count, float rate,
                               LabelScratch& scratch) {
    float* scores = scratch.scores;
    products(task.outputs, task.stride, task.labels, scratch.hidden, scores);
    double loss = 0;
    vec losses = {};
    for (int32_t i = task.labels; i < padded(task.labels); ++i) scores[i] = -1e30f;
    for (int64_t j = 0; j < count; ++j) loss -= (double)scores[labels[j]];  // log(1 + e^−x) = log(1 + e^x) − x
    for (int32_t i = 0; i < task.labels; i += LANES) {
        const vec e = exp_vec(load(scores + i));
        losses += log_vec(1.0f + e);
        store(scores + i, -rate * (1.0f - 1.0f / (1.0f + e)));
    }
    if (rate != 0) {
        for (int64_t j = 0; j < count; ++j) scores[labels[j]] += rate;
        step_all(task, scratch);
    }
    return loss + (double)sum(losses);
}

// Binary logistic regression with one output row: takes a step and returns the loss.
static inline double train_binary(const LabelTask& task, int32_t row, bool positive, float rate,
                                  LabelScratch& scratch) {
    float* output = task.outputs + row * task.stride;
    const float score = dot(output, scratch.hidden, task.stride);
    const float signed_score = positive ? -score : score;
    const float error = 1.0f / (1.0f + __builtin_expf(-signed_score));  // probability of the wrong class
    const float step = positive ? rate * error : -rate * error;
    if (rate != 0) step_rows<1>(output, task.stride, &step, scratch.hidden, scratch.change);
    return (double)(signed_score > 20 ? signed_score : __builtin_log1pf(__builtin_expf(signed_score)));
}

static double train_hierarchical(const LabelTask& task, int32_t label, float rate, LabelScratch& scratch) {
    double loss = 0;
    for (int64_t i = task.path_starts[label]; i < task.path_starts[label + 1]; ++i)
        loss += train_binary(task, task.path_nodes[i], task.path_turns[i] != 0, rate, scratch);
    return loss;
}

static double train_negative(const LabelTask& task, int32_t label, uint64_t state, float rate, LabelScratch& scratch) {
    double loss = train_binary(task, label, true, rate, scratch);
    for (int n = 0; n < task.negatives;) {
        const uint64_t bits = mix(state += GOLDEN);
        const auto slot = (int32_t)(((bits >> 32) * (uint64_t)task.labels) >> 32);
        const int32_t negative = (uint32_t)bits < task.noise[slot].cut ? slot : task.noise[slot].other;
        if (negative == label) continue;  // ends, because there are at least two labels
        loss += train_binary(task, negative, false, rate, scratch);
        ++n;
    }
    return loss;
}

static double train(const LabelTask& task, const LabelBatch& batch, LabelScratch& scratch) {
    const int64_t stride = task.stride, end = batch.row_starts[batch.size];
    double loss = 0;
    for (int64_t i = 0; i < batch.size; ++i) {
        const int64_t first = batch.row_starts[i], last = batch.row_starts[i + 1];
        const int32_t* labels = batch.labels + batch.label_starts[i];
        const int64_t count = batch.label_starts[i + 1] - batch.label_starts[i];
        const float rate = batch.rates[i];
        mean_ahead(task, batch.rows, first, last, end, scratch.hidden);
        for (int64_t d = 0; d < stride; d += LANES) store(scratch.change + d, vec{});
        if (task.loss == LABEL_SOFTMAX) loss += train_softmax(task, labels[0], rate, scratch);
        else if (task.loss == LABEL_ONE_VS_ALL) loss += train_one_vs_all(task, labels, count, rate, scratch);
        else if (task.loss == LABEL_HIERARCHICAL) loss += train_hierarchical(task, labels[0], rate, scratch);
        else loss += train_negative(task, labels[0], batch.hashes[i], rate, scratch);
        if (rate == 0) continue;
        const float share = 1.0f / (float)(last - first);  // gradient of the mean
        for (int64_t d = 0; d < stride; d += LANES) store(scratch.change + d, load(scratch.change + d) * share);
        for (int64_t r = first; r < last; ++r) {
            float* row = task.inputs + batch.rows[r] * stride;
            for (int64_t d = 0; d < stride; d += LANES) store(row + d, load(row + d) + load(scratch.change + d));
        }
    }
    return loss;
}

extern const Classify classify;
const Classify classify = {train, mean, products, softmax};

}  // namespace ISA
}  // namespace firth
