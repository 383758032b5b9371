// Scores of a window's inputs against its targets, and the gradient updates. Included by hot files.
#pragma once

#include "predict.h"
#include "vec.h"

namespace firth {
namespace ISA {

static inline void prefetch(const Scratch& scratch, int64_t d) {
    for (int i = 0; i < scratch.prefetch_count; ++i) __builtin_prefetch(scratch.prefetch_rows[i] + d, 1, 3);
}

// ---- scores ----

constexpr int TILE_TARGETS = 6;
constexpr int TILE_INPUTS = REGISTERS == 32 ? 4 : 2;

// scores[i * row + t] = x[i] · y[t], with the tile in registers.
template <int INPUTS, int TARGETS>
static inline void dot_tile(float* const* x, float* const* y, int64_t stride, float* scores, int row) {
    constexpr int COUNT = INPUTS * TARGETS;
    vec part[COUNT];
    EACH (int i = 0; i < COUNT; ++i) part[i] = vec{};
    for (int64_t d = 0; d < stride; d += LANES) {
        vec xv[INPUTS];
        EACH (int i = 0; i < INPUTS; ++i) xv[i] = load(x[i] + d);
        EACH (int t = 0; t < TARGETS; ++t) {
            const vec yv = load(y[t] + d);
            EACH (int i = 0; i < INPUTS; ++i) part[i * TARGETS + t] += xv[i] * yv;
        }
    }
    if (row == TARGETS) {  // the scores are padded: writing past the last is fine
        store_sums<COUNT>(part, scores);
    } else {
        float all[COUNT + LANES];
        store_sums<COUNT>(part, all);
        for (int i = 0; i < INPUTS; ++i)
            for (int t = 0; t < TARGETS; ++t) scores[i * row + t] = all[i * TARGETS + t];
    }
}

template <int TARGETS>
static void dot_columns(float* const* x, int inputs, float* const* y, int64_t stride, float* scores, int row) {
    int i = 0;
    for (; i + TILE_INPUTS <= inputs; i += TILE_INPUTS)
        dot_tile<TILE_INPUTS, TARGETS>(x + i, y, stride, scores + i * row, row);
    if (TILE_INPUTS == 4 && inputs - i == 3) return dot_tile<3, TARGETS>(x + i, y, stride, scores + i * row, row);
    if (TILE_INPUTS == 4 && inputs - i >= 2) {
        dot_tile<2, TARGETS>(x + i, y, stride, scores + i * row, row);
        i += 2;
    }
    if (i < inputs) dot_tile<1, TARGETS>(x + i, y, stride, scores + i * row, row);
}

static void dot_all(float* const* x, int inputs, float* const* y, int targets, int64_t stride, float* scores) {
    int t = 0;
    for (; t + TILE_TARGETS <= targets; t += TILE_TARGETS)
        dot_columns<TILE_TARGETS>(x, inputs, y + t, stride, scores + t, targets);
    switch (targets - t) {
        case 5: dot_columns<5>(x, inputs, y + t, stride, scores + t, targets); break;
        case 4: dot_columns<4>(x, inputs, y + t, stride, scores + t, targets); break;
        case 3: dot_columns<3>(x, inputs, y + t, stride, scores + t, targets); break;
        case 2: dot_columns<2>(x, inputs, y + t, stride, scores + t, targets); break;
        case 1: dot_columns<1>(x, inputs, y + t, stride, scores + t, targets); break;
        default: break;
    }
}

// Fills the signs of `inputs` rows of targets, and the padding of the scores with values whose loss is 0.
static void fill_signs(const Task& task, const Window& window, int inputs, Scratch& scratch) {
    const int targets = window.targets, count = inputs * targets;
    const int padded = (count + LANES - 1) / LANES * LANES;
    const bool same = task.objective.loss ==
                      NEGATIVE;  // the center, then negative samples: often the same pattern as in the window before
    if (!same || scratch.signs_targets != targets) {
        const int last = same ? scratch.max_rows * targets + LANES : padded;
        for (int i = 0, t = 0; i < last; ++i, t = t + 1 < targets ? t + 1 : 0) scratch.signs[i] = window.sign[t];
        scratch.signs_targets = targets;
    }
    for (int i = count; i < padded; ++i) scratch.scores[i] = 87.0f * scratch.signs[i];
}

// Turns scores into steps: with z = ±score, the loss is -log σ(z) and the step rate · ±(1 - σ(z)).
static float logistic_steps(float* scores, const float* signs, int count, float rate) {
    vec loss = {};
    vec product = splat(1.0f);
    for (int i = 0, since = 0; i < count; i += LANES) {
        const vec sign = load(signs + i);
        const vec likelihood = 1.0f / (1.0f + exp_vec(-sign * load(scores + i)));
        store(scores + i, sign * (1.0f - likelihood) * rate);
        // A sum of logarithms is the logarithm of a product: four factors of at least 1e-9 don't underflow.
        product *= choose(likelihood < 1e-9f, splat(1e-9f), likelihood);
        if (++since == 4) {
            loss -= log_vec(product);
            product = splat(1.0f);
            since = 0;
        }
    }
    loss -= log_vec(product);
    return sum(loss);
}

// The same for weighted scores: a weight is the signed number of (input, target) pairs. The padding gets weight 0.
static float weighted_steps(float* scores, float* weights, int count, float rate) {
    vec loss = {};
    store_loose(weights + count, vec{});
    store_loose(scores + count, vec{});
    for (int i = 0; i < count; i += LANES) {
        const vec weight = load(weights + i);
        const vec sign = (vec)(((ivec)weight & (int32_t)0x80000000) | 0x3f800000);
        const vec likelihood = 1.0f / (1.0f + exp_vec(-sign * load(scores + i)));
        store(scores + i, weight * (1.0f - likelihood) * rate);
        loss -= weight * sign * log_vec(choose(likelihood < 1e-9f, splat(1e-9f), likelihood));
    }
    return sum(loss);
}

// ---- updates ----

// x[i] += Σ_t step[i][t] y[t] and y[t] += Σ_i step[i][t] x[i], both from the old rows, in one pass.
// A word that occurs twice among the inputs is updated twice, the second time from its new row.
template <int TARGETS>
static void update_tile(float* const* x, int inputs, float* const* y, const float* steps, int64_t stride,
                        const Scratch& scratch) {
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        vec old[TARGETS], change[TARGETS] = {};
        for (int t = 0; t < TARGETS; ++t) old[t] = load(y[t] + d);
        for (int i = 0; i < inputs; ++i) {
            const vec xv = load(x[i] + d);
            vec moved = xv;
            for (int t = 0; t < TARGETS; ++t) {
                const vec step = splat(steps[i * TARGETS + t]);
                moved += step * old[t];
                change[t] += step * xv;
            }
            store(x[i] + d, moved);
        }
        for (int t = 0; t < TARGETS; ++t) store(y[t] + d, old[t] + change[t]);
    }
}

// The same for any number of targets: the inputs' old values are buffered for the updates of the outputs.
static void update_many(float* const* x, int inputs, float* const* y, int targets, const float* steps, int64_t stride,
                        const Scratch& scratch) {
    vec old[MAX_CONTEXTS + MAX_TAGS];
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        for (int i = 0; i < inputs; ++i) {
            old[i] = load(x[i] + d);
            vec moved = old[i];
            for (int t = 0; t < targets; ++t) moved += splat(steps[i * targets + t]) * load(y[t] + d);
            store(x[i] + d, moved);
        }
        for (int t = 0; t < targets; ++t) {
            vec moved = load(y[t] + d);
            for (int i = 0; i < inputs; ++i) moved += splat(steps[i * targets + t]) * old[i];
            store(y[t] + d, moved);
        }
    }
}

// Up to six targets, whose rows and changes stay in registers; the first part saves the inputs' values in `old`.
template <int TARGETS>
static inline void update_part(float* const* x, int inputs, float* const* y, const float* steps, int row, int64_t d,
                               bool first, vec* old) {
    vec before[TARGETS], change[TARGETS] = {};
    for (int t = 0; t < TARGETS; ++t) before[t] = load(y[t] + d);
    for (int i = 0; i < inputs; ++i) {
        vec moved = load(x[i] + d);
        if (first) old[i] = moved;
        const vec xv = old[i];
        for (int t = 0; t < TARGETS; ++t) {
            const vec step = splat(steps[i * row + t]);
            moved += step * before[t];
            change[t] += step * xv;
        }
        store(x[i] + d, moved);
    }
    for (int t = 0; t < TARGETS; ++t) store(y[t] + d, before[t] + change[t]);
}

// As `update_many`, part by part, which is faster but requires distinct inputs.
static void update_parts(float* const* x, int inputs, float* const* y, int targets, const float* steps, int64_t stride,
                         const Scratch& scratch) {
    vec old[MAX_CONTEXTS + MAX_TAGS];
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        for (int t = 0; t < targets; t += TILE_TARGETS) {
            switch (targets - t) {
                case 1: update_part<1>(x, inputs, y + t, steps + t, targets, d, !t, old); break;
                case 2: update_part<2>(x, inputs, y + t, steps + t, targets, d, !t, old); break;
                case 3: update_part<3>(x, inputs, y + t, steps + t, targets, d, !t, old); break;
                case 4: update_part<4>(x, inputs, y + t, steps + t, targets, d, !t, old); break;
                case 5: update_part<5>(x, inputs, y + t, steps + t, targets, d, !t, old); break;
                default: update_part<TILE_TARGETS>(x, inputs, y + t, steps + t, targets, d, !t, old);
            }
        }
    }
}

static bool has_duplicates(float* const* x, int inputs) {
    bool twice = false;
    for (int i = 1; i < inputs; ++i)
        for (int j = 0; j < i; ++j) twice |= x[i] == x[j];
    return twice;
}

static void update_all(float* const* x, int inputs, float* const* y, int targets, const float* steps, int64_t stride,
                       const Scratch& scratch) {
    switch (targets) {
        case 1: update_tile<1>(x, inputs, y, steps, stride, scratch); break;
        case 2: update_tile<2>(x, inputs, y, steps, stride, scratch); break;
        case 3: update_tile<3>(x, inputs, y, steps, stride, scratch); break;
        case 4: update_tile<4>(x, inputs, y, steps, stride, scratch); break;
        case 5: update_tile<5>(x, inputs, y, steps, stride, scratch); break;
        case 6: update_tile<6>(x, inputs, y, steps, stride, scratch); break;
#if defined(ISA_avx512)
        case 7: update_tile<7>(x, inputs, y, steps, stride, scratch); break;
        case 8: update_tile<8>(x, inputs, y, steps, stride, scratch); break;
        case 9: update_tile<9>(x, inputs, y, steps, stride, scratch); break;
        case 10: update_tile<10>(x, inputs, y, steps, stride, scratch); break;
        case 11: update_tile<11>(x, inputs, y, steps, stride, scratch); break;
        case 12: update_tile<12>(x, inputs, y, steps, stride, scratch); break;
        case 13: update_tile<13>(x, inputs, y, steps, stride, scratch); break;
        case 14: update_tile<14>(x, inputs, y, steps, stride, scratch); break;
#endif
        default:
            if (inputs <= 32 && !has_duplicates(x, inputs)) update_parts(x, inputs, y, targets, steps, stride, scratch);
            else update_many(x, inputs, y, targets, steps, stride, scratch);
    }
}

// One input against its targets: computes the change of the input and, with MOVE, updates the targets.
template <bool MOVE>
static inline void update_hidden(const float* hidden, float* const* y, int targets, int64_t stride,
                                 const Scratch& scratch, float* change) {
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        const vec h = load(hidden + d);
        vec total = {};
        for (int t = 0; t < targets; ++t) {
            const vec step = splat(scratch.scores[t]);
            const vec old = load(y[t] + d);
            total += step * old;
            if (MOVE) store(y[t] + d, old + step * h);
        }
        store(change + d, total);
    }
}

// sum = share · Σ x[i], with a block of the sum in registers.
static void sum_rows(float* const* x, int inputs, float share, int64_t stride, float* sum) {
    constexpr int COLUMNS = 7 * LANES;  // 100 dimensions are one block in AVX-512
    int64_t d = 0;
    for (; d + COLUMNS <= stride; d += COLUMNS) {
        vec total[7] = {};
        for (int i = 0; i < inputs; ++i)
            for (int j = 0; j < 7; ++j) total[j] += load(x[i] + d + j * LANES);
        for (int j = 0; j < 7; ++j) store(sum + d + j * LANES, total[j] * share);
    }
    for (; d < stride; d += LANES) {
        vec total = {};
        for (int i = 0; i < inputs; ++i) total += load(x[i] + d);
        store(sum + d, total * share);
    }
}

// x[i] += share · change, for each row.
static void add_to_rows(float* const* x, int rows, const float* change, float share, int64_t stride) {
    for (int i = 0; i < rows; ++i)
        for (int64_t d = 0; d < stride; d += LANES) store(x[i] + d, load(x[i] + d) + load(change + d) * share);
}

}  // namespace ISA
}  // namespace firth
