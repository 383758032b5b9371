// One text at a time: mean of its input rows → scores → step, compiled for each instruction set.
#include "classify.h"

#include "hash.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int64_t AHEAD = 6;  // input rows fetched meanwhile; they may belong to the next text

static inline void fetch(const float* from, int64_t floats) {
    for (int64_t d = 0; d < floats; d += 16) __builtin_prefetch(from + d, 1, 3);
}

static inline float dot(const float* x, const float* y, int64_t stride) {
    vec total = {};
    for (int64_t d = 0; d < stride; d += LANES) total += load(x + d) * load(y + d);
    return sum(total);
}

// hidden = the mean of the rows [first, last), with rows up to `end` on their way.
static void mean_ahead(const LabelJob& job, const int32_t* rows, int64_t first, int64_t last, int64_t end, float* hidden) {
    const int64_t stride = job.stride;
    const auto row = [&](int64_t i) { return job.inputs + rows[i] * stride; };
    for (int64_t d = 0; d < stride; d += LANES) store(hidden + d, vec{});
    int64_t i = first;
    for (; i + 4 <= last; i += 4) {
        for (int64_t j = i + AHEAD; j < i + AHEAD + 4 && j < end; ++j) fetch(row(j), stride);
        const float *a = row(i), *b = row(i + 1), *c = row(i + 2), *e = row(i + 3);
        for (int64_t d = 0; d < stride; d += LANES)
            store(hidden + d, load(hidden + d) + ((load(a + d) + load(b + d)) + (load(c + d) + load(e + d))));
    }
    for (; i < last; ++i) {
        if (i + AHEAD < end) fetch(row(i + AHEAD), stride);
        const float* a = row(i);
        for (int64_t d = 0; d < stride; d += LANES) store(hidden + d, load(hidden + d) + load(a + d));
    }
    const float share = 1.0f / (float)(last - first);
    for (int64_t d = 0; d < stride; d += LANES) store(hidden + d, load(hidden + d) * share);
}

static void mean(const float* inputs, int64_t width, const int32_t* rows, int64_t count, float* __restrict hidden) {
    for (int64_t d = 0; d < width; ++d) hidden[d] = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i + AHEAD < count) fetch(inputs + rows[i + AHEAD] * width, width);
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

static inline float most(const float* scores, int32_t labels) {
    float found = scores[0];
    for (int32_t i = 1; i < labels; ++i) found = scores[i] > found ? scores[i] : found;
    return found;
}

static inline int32_t padded(int32_t labels) { return (labels + LANES - 1) / LANES * LANES; }

// Scores become e^(score − highest); their sum.
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
    const float total = exponentials(scores, labels, most(scores, labels));
    for (int32_t i = 0; i < labels; i += LANES) store(scores + i, load(scores + i) / total);
}

// COUNT output rows from `row` on move by steps[i] · hidden; `change` gathers steps[i] · row as it was.
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

static void step_all(const LabelJob& job, LabelScratch& scratch) {
    int32_t i = 0;
    for (; i + 8 <= job.labels; i += 8)
        step_rows<8>(job.outputs + i * job.stride, job.stride, scratch.scores + i, scratch.hidden, scratch.change);
    for (; i + 2 <= job.labels; i += 2)
        step_rows<2>(job.outputs + i * job.stride, job.stride, scratch.scores + i, scratch.hidden, scratch.change);
    if (i < job.labels)
        step_rows<1>(job.outputs + i * job.stride, job.stride, scratch.scores + i, scratch.hidden, scratch.change);
}

static double train_softmax(const LabelJob& job, int32_t label, float rate, LabelScratch& scratch) {
    float* scores = scratch.scores;
    products(job.outputs, job.stride, job.labels, scratch.hidden, scores);
    const float highest = most(scores, job.labels), off = highest - scores[label];
    const float total = exponentials(scores, job.labels, highest);
    if (rate != 0) {
        const float scale = -rate / total;
        for (int32_t i = 0; i < job.labels; i += LANES) store(scores + i, load(scores + i) * scale);
        scores[label] += rate;
        step_all(job, scratch);
    }
    return (double)(__builtin_logf(total) + off);
}

static double train_one_vs_all(const LabelJob& job, const int32_t* labels, int64_t count, float rate,
                               LabelScratch& scratch) {
    float* scores = scratch.scores;
    products(job.outputs, job.stride, job.labels, scratch.hidden, scores);
    double loss = 0;
    vec losses = {};
    for (int32_t i = job.labels; i < padded(job.labels); ++i) scores[i] = -1e30f;
    for (int64_t j = 0; j < count; ++j) loss -= (double)scores[labels[j]];  // log(1 + e^−x) = log(1 + e^x) − x
    for (int32_t i = 0; i < job.labels; i += LANES) {
        const vec e = exp_vec(load(scores + i));
        losses += log_vec(1.0f + e);
        store(scores + i, -rate * (1.0f - 1.0f / (1.0f + e)));
    }
    if (rate != 0) {
        for (int64_t j = 0; j < count; ++j) scores[labels[j]] += rate;
        step_all(job, scratch);
    }
    return loss + (double)sum(losses);
}

// One yes-or-no question: the loss, after a step.
static inline double train_binary(const LabelJob& job, int32_t row, bool yes, float rate, LabelScratch& scratch) {
    float* output = job.outputs + row * job.stride;
    const float score = dot(output, scratch.hidden, job.stride);
    const float away = yes ? -score : score;
    const float wrong = 1.0f / (1.0f + __builtin_expf(-away));  // probability given to the wrong answer
    const float step = yes ? rate * wrong : -rate * wrong;
    if (rate != 0) step_rows<1>(output, job.stride, &step, scratch.hidden, scratch.change);
    return (double)(away > 20 ? away : __builtin_log1pf(__builtin_expf(away)));
}

static double train_hierarchical(const LabelJob& job, int32_t label, float rate, LabelScratch& scratch) {
    double loss = 0;
    for (int64_t i = job.path_starts[label]; i < job.path_starts[label + 1]; ++i)
        loss += train_binary(job, job.path_nodes[i], job.path_turns[i] != 0, rate, scratch);
    return loss;
}

static double train_negative(const LabelJob& job, int32_t label, uint64_t state, float rate, LabelScratch& scratch) {
    double loss = train_binary(job, label, true, rate, scratch);
    for (int n = 0; n < job.negatives;) {
        const uint64_t bits = mix(state += GOLDEN);
        const auto slot = (int32_t)(((bits >> 32) * (uint64_t)job.labels) >> 32);
        const int32_t noise = (uint32_t)bits < job.noise[slot].cut ? slot : job.noise[slot].other;
        if (noise == label) continue;  // there are two labels at least, and each can be drawn
        loss += train_binary(job, noise, false, rate, scratch);
        ++n;
    }
    return loss;
}

static double train(const LabelJob& job, const LabelBatch& batch, LabelScratch& scratch) {
    const int64_t stride = job.stride, end = batch.row_starts[batch.size];
    double loss = 0;
    for (int64_t i = 0; i < batch.size; ++i) {
        const int64_t first = batch.row_starts[i], last = batch.row_starts[i + 1];
        const int32_t* labels = batch.labels + batch.label_starts[i];
        const int64_t count = batch.label_starts[i + 1] - batch.label_starts[i];
        const float rate = batch.rates[i];
        mean_ahead(job, batch.rows, first, last, end, scratch.hidden);
        for (int64_t d = 0; d < stride; d += LANES) store(scratch.change + d, vec{});
        if (job.loss == LABEL_SOFTMAX) loss += train_softmax(job, labels[0], rate, scratch);
        else if (job.loss == LABEL_ONE_VS_ALL) loss += train_one_vs_all(job, labels, count, rate, scratch);
        else if (job.loss == LABEL_HIERARCHICAL) loss += train_hierarchical(job, labels[0], rate, scratch);
        else loss += train_negative(job, labels[0], batch.hashes[i], rate, scratch);
        if (rate == 0) continue;
        const float share = 1.0f / (float)(last - first);  // the mean's gradient
        for (int64_t d = 0; d < stride; d += LANES) store(scratch.change + d, load(scratch.change + d) * share);
        for (int64_t r = first; r < last; ++r) {
            float* row = job.inputs + batch.rows[r] * stride;
            for (int64_t d = 0; d < stride; d += LANES) store(row + d, load(row + d) + load(scratch.change + d));
        }
    }
    return loss;
}

extern const Classify classify;
const Classify classify = {train, mean, products, softmax};

}  // namespace ISA
}  // namespace firth
