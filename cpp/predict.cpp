// Skip-gram and CBOW for one window at a time (Mikolov et al. 2013a, 2013b), compiled for each instruction set.
//
// Skip-gram: every context word of the window predicts the centre. With noise words shared by the window
// (Ji et al. 2016, pWord2Vec) the scores are one small matrix product, contexts × targets, and both
// updates are made in a single pass over the dimensions with the tile in registers.
#include "predict.h"

#include "windows.h"

namespace firth {
namespace ISA {

static inline void prefetch(const Scratch& scratch, int64_t d) {
    for (int i = 0; i < scratch.ahead_count; ++i) __builtin_prefetch(scratch.ahead[i] + d, 1, 3);
}

// What the next window will want from memory: its targets, and the context that comes within reach.
static void look_ahead(const Job& job, const Window& next, Scratch& scratch) {
    int count = 0;
    if (job.loss != SOFTMAX) {
        for (int t = 0; t < next.targets; ++t) scratch.ahead[count++] = job.outputs + next.target[t] * job.output_stride;
        for (int e = 0; e < next.enter; ++e) {
            const int32_t word = next.entering[e];
            if (!job.piece_rows) {
                scratch.ahead[count++] = job.inputs + word * job.stride;
            } else {
                for (int64_t i = job.piece_starts[word]; i < job.piece_starts[word + 1]; ++i)
                    scratch.ahead[count++] = job.inputs + job.piece_rows[i] * job.stride;
            }
        }
    }
    scratch.ahead_count = count;
}

// ---- rows, in place or as copies ----

static float* copy_of(const Job& job, const float* row, int64_t stride, int32_t name, int32_t* slot, Copies& copies) {
    if (*slot < 0) {
        *slot = copies.count;
        copies.row[copies.count] = name;
        std::memcpy(copies.data + copies.count++ * job.output_stride, row, stride * sizeof(float));
    }
    return copies.data + *slot * job.output_stride;
}

static inline float* input_row(const Job& job, const Scratch& scratch, int32_t id) {
    float* row = job.inputs + id * job.stride;
    if (!scratch.copies) return row;
    return copy_of(job, row, job.stride, id, scratch.copies->input_slot + id, *scratch.copies);
}

static inline float* output_row(const Job& job, const Scratch& scratch, int32_t id) {
    float* row = job.outputs + id * job.output_stride;
    if (!scratch.copies) return row;
    return copy_of(job, row, job.output_stride, ~id, scratch.copies->output_slot + id, *scratch.copies);
}

// The rows that make up a word.
static inline int word_rows(const Job& job, const Scratch& scratch, int32_t word, float** rows) {
    if (!job.piece_rows) {
        rows[0] = input_row(job, scratch, word);
        return 1;
    }
    const int64_t from = job.piece_starts[word];
    const int count = (int)(job.piece_starts[word + 1] - from);
    for (int i = 0; i < count; ++i) rows[i] = input_row(job, scratch, job.piece_rows[from + i]);
    return count;
}

// The rows that stand for the window's document.
static inline int document_rows(const Job& job, const Scratch& scratch, const Window& window, float** rows) {
    if (job.frozen) {
        rows[0] = scratch.document;
        return 1;
    }
    const int count = tags(job, window);
    for (int i = 0; i < count; ++i) rows[i] = input_row(job, scratch, job.tag_rows[job.tag_starts[window.document] + i]);
    return count;
}

// ---- scores ----

constexpr int TILE_TARGETS = 6;
constexpr int TILE_INPUTS = REGISTERS == 32 ? 4 : 2;

// scores[i * row + t] = x[i] · y[t], the whole tile in registers.
template <int INPUTS, int TARGETS>
static inline void dot_tile(float* const* x, float* const* y, int64_t stride, float* scores, int row) {
    constexpr int COUNT = INPUTS * TARGETS;
    vec part[COUNT];
    for (int i = 0; i < COUNT; ++i) part[i] = vec{};
    for (int64_t d = 0; d < stride; d += LANES) {
        vec xv[INPUTS];
        for (int i = 0; i < INPUTS; ++i) xv[i] = load(x[i] + d);
        for (int t = 0; t < TARGETS; ++t) {
            const vec yv = load(y[t] + d);
            for (int i = 0; i < INPUTS; ++i) part[i * TARGETS + t] += xv[i] * yv;
        }
    }
    if (row == TARGETS) {  // the scores have room for what is written beyond the last
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

// The signs of `inputs` rows of targets, one after the other, and scores beyond them that cost nothing.
static void lay_out_signs(const Job& job, const Window& window, int inputs, Scratch& scratch) {
    const int targets = window.targets, count = inputs * targets;
    const int padded = (count + LANES - 1) / LANES * LANES;
    const bool same = job.loss == NEGATIVE;  // the centre, then noise: the pattern of the window before
    if (!same || scratch.signs_laid != targets) {
        const int last = same ? scratch.most_rows * targets + LANES : padded;
        for (int i = 0, t = 0; i < last; ++i, t = t + 1 < targets ? t + 1 : 0) scratch.signs[i] = window.sign[t];
        scratch.signs_laid = targets;
    }
    for (int i = count; i < padded; ++i) scratch.scores[i] = 87.0f * scratch.signs[i];
}

// Turns scores into steps: with z = ±score, the loss is -log σ(z) and the step rate · ±(1 - σ(z)).
static float logistic_steps(float* scores, const float* signs, int count, float rate) {
    vec loss = {};
    vec product = splat(1.0f);
    for (int i = 0, since = 0; i < count; i += LANES) {
        const vec sign = load(signs + i);
        const vec right = 1.0f / (1.0f + exp_vec(-sign * load(scores + i)));
        store(scores + i, sign * (1.0f - right) * rate);
        // A sum of logarithms is the logarithm of a product: four factors of at least 1e-9 don't underflow.
        product *= choose(right < 1e-9f, splat(1e-9f), right);
        if (++since == 4) {
            loss -= log_vec(product);
            product = splat(1.0f);
            since = 0;
        }
    }
    loss -= log_vec(product);
    return sum(loss);
}

// The same where each score has a weight with its sign: how often its input and target meet. Fills up with weights of 0.
static float weighted_steps(float* scores, float* weights, int count, float rate) {
    vec loss = {};
    store_loose(weights + count, vec{});
    store_loose(scores + count, vec{});
    for (int i = 0; i < count; i += LANES) {
        const vec weight = load(weights + i);
        const vec sign = (vec)(((ivec)weight & (int32_t)0x80000000) | 0x3f800000);
        const vec right = 1.0f / (1.0f + exp_vec(-sign * load(scores + i)));
        store(scores + i, weight * (1.0f - right) * rate);
        loss -= weight * sign * log_vec(choose(right < 1e-9f, splat(1e-9f), right));
    }
    return sum(loss);
}

// ---- updates ----

// x[i] += Σ_t step[i][t] y[t] and y[t] += Σ_i step[i][t] x[i], both from the old rows, in one pass.
// A word that stands twice among the inputs is updated twice, the second time from its new row.
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

// The same for any number of targets: the inputs' old values wait in a buffer until the outputs need them.
static void update_many(float* const* x, int inputs, float* const* y, int targets, const float* steps, int64_t stride,
                        const Scratch& scratch) {
    vec old[MOST_CONTEXTS + MOST_TAGS];
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

// Six targets at most, whose rows and changes stay in registers; `old`: the inputs' values, kept by the first of them.
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

// As `update_many`, part by part, which is faster but needs inputs of which none is there twice.
static void update_parts(float* const* x, int inputs, float* const* y, int targets, const float* steps, int64_t stride,
                         const Scratch& scratch) {
    vec old[MOST_CONTEXTS + MOST_TAGS];
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

static bool any_twice(float* const* x, int inputs) {
    bool twice = false;
    for (int i = 1; i < inputs; ++i)
        for (int j = 0; j < i; ++j) twice |= x[i] == x[j];
    return twice;
}

static void update_all(float* const* x, int inputs, float* const* y, int targets, const float* steps,
                       int64_t stride, const Scratch& scratch) {
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
            if (inputs <= 32 && !any_twice(x, inputs)) update_parts(x, inputs, y, targets, steps, stride, scratch);
            else update_many(x, inputs, y, targets, steps, stride, scratch);
    }
}

// One input against its targets: the change of the input, while the targets move (or don't).
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

// sum = share · Σ x[i], row by row with a stretch of the sum in registers.
static void add_up(float* const* x, int inputs, float share, int64_t stride, float* sum) {
    constexpr int STRETCH = 7 * LANES;  // 100 dimensions of the widest set are one stretch
    int64_t d = 0;
    for (; d + STRETCH <= stride; d += STRETCH) {
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

// ---- one window ----

// All inputs against all targets at once.
static void train_grid(const Job& job, float* const* x, int inputs, float* const* y, const Window& window,
                       Scratch& scratch, Tally& tally) {
    const int targets = window.targets;
    dot_all(x, inputs, y, targets, job.stride, scratch.scores);
    lay_out_signs(job, window, inputs, scratch);
    tally.loss += logistic_steps(scratch.scores, scratch.signs, inputs * targets, window.rate);
    tally.pairs += inputs;
    if (window.rate != 0) update_all(x, inputs, y, targets, scratch.scores, job.stride, scratch);
}

// What one of a group's noise words counts for each centre.
static inline float weight_of_noise(const Job& job) { return job.drawn ? (float)job.negatives / (float)job.drawn : 1.0f; }

// A group: the words near its centres, and the document's rows, against the centres' words and the noise they share. A
// noise word stands for one of each centre's draw, so that it counts as often as input and centres meet.
static void train_group(const Job& job, const Window& window, Scratch& scratch, Tally& tally) {
    float** x = scratch.inputs;
    float* weights = scratch.signs;
    const float noise_weight = weight_of_noise(job);
    int inputs = 0;
    const auto meet = [&](int rows, const Meetings& meetings) {
        for (int i = 0; i < rows; ++i, weights += window.targets) {  // what is written too far is the next row's, or room
            for (int t = 0; t < window.targets; t += LANES) store_loose(weights + t, splat(-meetings.all * noise_weight));
            for (int t = 0; t < window.words; ++t) weights[t] = meetings.word[t];
        }
        tally.pairs += rows * (int)meetings.all;
        inputs += rows;
    };
    for (int i = 0; i < window.contexts; ++i) meet(word_rows(job, scratch, window.context[i], x + inputs), window.meetings[i]);
    meet(document_rows(job, scratch, window, x + inputs), window.whole);
    dot_all(x, inputs, scratch.outputs, window.targets, job.stride, scratch.scores);
    tally.loss += weighted_steps(scratch.scores, scratch.signs, inputs * window.targets, window.rate);
    if (window.rate == 0) return;
    if (job.frozen) {
        update_hidden<false>(x[inputs - 1], scratch.outputs, window.targets, job.stride, scratch, scratch.change);
        add_to_rows(x + inputs - 1, 1, scratch.change, 1.0f, job.stride);
    } else {
        update_all(x, inputs, scratch.outputs, window.targets, scratch.scores, job.stride, scratch);
    }
}

// Scores of one input turned into the steps of an exact softmax over all words; returns -log p(centre).
static double softmax_steps(float* scores, int words, int32_t centre, float rate) {
    float highest = scores[0];
    for (int w = 1; w < words; ++w) highest = scores[w] > highest ? scores[w] : highest;
    const float right = scores[centre] - highest;
    double total = 0;
    int w = 0;
    for (; w + LANES <= words; w += LANES) {
        loose_vec* at = reinterpret_cast<loose_vec*>(scores + w);
        const vec e = exp_vec(vec(*at) - highest);
        *at = e;
        total += sum(e);
    }
    for (; w < words; ++w) {
        scores[w] = exp_vec(splat(scores[w] - highest))[0];
        total += scores[w];
    }
    const float scale = (float)(-rate / total);
    for (w = 0; w < words; ++w) scores[w] *= scale;
    scores[centre] += rate;
    return (double)log_vec(splat((float)total))[0] - right;
}

// One input (a context word, or the mean of several) against the targets; its change is returned in `change` and the
// targets are updated.
static void train_single(const Job& job, const float* hidden, float* const* y, const Window& window, Scratch& scratch,
                         Tally& tally, float* change) {
    const int64_t stride = job.output_stride;
    float* x[1] = {const_cast<float*>(hidden)};
    const int targets = window.targets;
    dot_all(x, 1, y, targets, stride, scratch.scores);
    if (job.loss == SOFTMAX) {
        tally.loss += softmax_steps(scratch.scores, targets, window.centre, window.rate);
    } else {
        lay_out_signs(job, window, 1, scratch);
        tally.loss += logistic_steps(scratch.scores, scratch.signs, targets, window.rate);
    }
    tally.pairs += 1;
    if (window.rate == 0) return;
    if (job.frozen) update_hidden<false>(hidden, y, targets, stride, scratch, change);
    else update_hidden<true>(hidden, y, targets, stride, scratch, change);
}

// The context words together predict the centre. The gradient of a mean is 1/contexts for each of them;
// word2vec and gensim leave that factor out (İrsoy et al. 2020), as `exact = false` does.
static void train_cbow(const Job& job, float* const* x, int inputs, const Window& window, Scratch& scratch,
                       Tally& tally) {
    const float share = job.mean ? 1.0f / (float)inputs : 1.0f;
    add_up(x, inputs, share, job.stride, scratch.hidden);
    train_single(job, scratch.hidden, scratch.outputs, window, scratch, tally, scratch.change);
    if (window.rate == 0) return;
    if (job.frozen) x += inputs - 1, inputs = 1;  // the document's row stands last
    add_to_rows(x, inputs, scratch.change, job.exact ? share : 1.0f, job.stride);
}

// The means (or sums) of a group's contexts, one for each centre, and the product of each with its own word.
template <int CENTRES>
static void add_up_group(float* const* x, const Window& window, float* const* y, const float* share, int64_t stride,
                         float* hidden, float* own_scores) {
    vec own[CENTRES] = {};
    for (int64_t d = 0; d < stride; d += LANES) {
        vec total[CENTRES] = {};
        for (int i = 0; i < window.contexts; ++i) {
            const vec xv = load(x[i] + d);
            for (int c = 0; c < CENTRES; ++c) total[c] += splat(window.meetings[i].word[c]) * xv;
        }
        for (int c = 0; c < CENTRES; ++c) {
            total[c] *= share[c];
            store(hidden + c * stride + d, total[c]);
            own[c] += total[c] * load(y[c] + d);
        }
    }
    store_sums<CENTRES>(own, own_scores);
}

// The words and the noise move by the means, and the contexts by what the means of their windows would. `steps`: for each
// centre those of the noise, then those of each centre and its own word.
template <int CENTRES>
static void update_group(float* const* x, const Window& window, float* const* y, const float* steps, const float* back,
                         int64_t stride, const Scratch& scratch) {
    const int noise = window.targets - CENTRES;
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        vec hidden[CENTRES], total[CENTRES];
        for (int c = 0; c < CENTRES; ++c) {  // a word that is there twice moves twice, the second time from its new row
            const vec step = splat(steps[CENTRES * noise + c]), old = load(y[c] + d);
            hidden[c] = load(scratch.hidden + c * stride + d);
            total[c] = step * old;
            store(y[c] + d, old + step * hidden[c]);
        }
        for (int t = 0; t < noise; ++t) {
            const vec old = load(y[CENTRES + t] + d);
            vec moved = old;
            for (int c = 0; c < CENTRES; ++c) {
                const vec step = splat(steps[c * noise + t]);
                total[c] += step * old;
                moved += step * hidden[c];
            }
            store(y[CENTRES + t] + d, moved);
        }
        for (int c = 0; c < CENTRES; ++c) total[c] *= back[c];
        for (int i = 0; i < window.contexts; ++i) {
            vec moved = load(x[i] + d);
            for (int c = 0; c < CENTRES; ++c) moved += splat(window.meetings[i].word[c]) * total[c];
            store(x[i] + d, moved);
        }
    }
}

// CBOW for a group: the row of a context is read and written once for all the centres that it helps to predict, and they
// share the noise.
template <int CENTRES>
static void train_centres(const Job& job, const Window& window, Scratch& scratch, Tally& tally) {
    float **x = scratch.inputs, **y = scratch.outputs, *hidden[CENTRES], share[CENTRES], back[CENTRES];
    const float noise_weight = weight_of_noise(job);
    const int noise = window.targets - CENTRES, count = CENTRES * noise;
    for (int i = 0; i < window.contexts; ++i) x[i] = input_row(job, scratch, window.context[i]);
    for (int c = 0; c < CENTRES; ++c) {
        float inputs = 0;
        for (int i = 0; i < window.contexts; ++i) inputs += window.meetings[i].word[c];
        share[c] = job.mean ? 1.0f / inputs : 1.0f;
        back[c] = job.exact ? share[c] : 1.0f;
        hidden[c] = scratch.hidden + c * job.stride;
    }
    float own[LANES + CENTRES];
    add_up_group<CENTRES>(x, window, y, share, job.stride, scratch.hidden, own);
    dot_all(hidden, CENTRES, y + CENTRES, noise, job.stride, scratch.scores);
    for (int i = 0; i < count; ++i) scratch.signs[i] = -noise_weight;
    for (int c = 0; c < CENTRES; ++c) {
        scratch.scores[count + c] = own[c];
        scratch.signs[count + c] = 1;
    }
    tally.loss += weighted_steps(scratch.scores, scratch.signs, count + CENTRES, window.rate);
    tally.pairs += CENTRES;
    if (window.rate != 0) update_group<CENTRES>(x, window, y, scratch.scores, back, job.stride, scratch);
}

static void train_cbow_group(const Job& job, const Window& window, Scratch& scratch, Tally& tally) {
    switch (window.centres) {
        case 1: train_centres<1>(job, window, scratch, tally); break;
        case 2: train_centres<2>(job, window, scratch, tally); break;
        case 3: train_centres<3>(job, window, scratch, tally); break;
        default: train_centres<MOST_GROUP>(job, window, scratch, tally);
    }
}

// As CBOW, with the rows side by side: each place of the window has its own part of the outputs.
static void train_concat(const Job& job, const Window& window, Scratch& scratch, Tally& tally) {
    const int64_t stride = job.stride;
    float** x = scratch.inputs;
    const int places = document_rows(job, scratch, window, x) + window.contexts;
    for (int i = 0, at = places - window.contexts; i < window.contexts; ++i, ++at)
        x[at] = window.context[i] < 0 ? nullptr : input_row(job, scratch, window.context[i]);
    for (int i = 0; i < places; ++i) {
        if (x[i]) std::memcpy(scratch.hidden + i * stride, x[i], stride * sizeof(float));
        else std::memset(scratch.hidden + i * stride, 0, stride * sizeof(float));
    }
    train_single(job, scratch.hidden, scratch.outputs, window, scratch, tally, scratch.change);
    if (window.rate == 0) return;
    for (int i = 0; i < (job.frozen ? 1 : places); ++i)
        if (x[i]) add_to_rows(x + i, 1, scratch.change + i * stride, 1.0f, stride);
}

// Each pair for itself, one after the other, as in word2vec's C program.
static void train_pairs(const Job& job, float* const* x, int inputs, Window& window, Scratch& scratch, Tally& tally) {
    uint64_t state = window.hash + (uint64_t)job.negatives * GOLDEN;
    for (int i = 0; i < inputs; ++i) {
        if (job.loss == NEGATIVE && i) draw_noise(job, window, 1, state);
        for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(job, scratch, window.target[t]);
        train_single(job, x[i], scratch.outputs, window, scratch, tally, scratch.change);
        if (window.rate != 0) add_to_rows(x + i, 1, scratch.change, 1.0f, job.stride);
    }
}

// The centre predicts its contexts one after the other. When each row of a mean moves by `change`, so does the mean:
// the rows themselves can wait for the sum of all changes.
static void train_forward(const Job& job, float* const* x, int inputs, Window& window, Scratch& scratch, Tally& tally) {
    const float share = 1.0f / (float)inputs, back = job.exact ? share : 1.0f;
    const int32_t centre = window.centre;
    add_up(x, inputs, share, job.stride, scratch.hidden);
    std::memset(scratch.total, 0, job.stride * sizeof(float));
    float* together[2] = {scratch.hidden, scratch.total};
    uint64_t state = window.hash;
    for (int i = 0; i < window.contexts; ++i) {
        lay_targets(job, window, window.context[i], state);
        for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(job, scratch, window.target[t]);
        if (!window.targets) continue;
        train_single(job, scratch.hidden, scratch.outputs, window, scratch, tally, scratch.change);
        scratch.ahead_count = 0;
        if (window.rate != 0) add_to_rows(together, 2, scratch.change, back, job.stride);
    }
    window.centre = centre;
    if (window.rate != 0) add_to_rows(x, inputs, scratch.total, 1.0f, job.stride);
}

// The same with one draw of noise words for the window, all contexts at once: a noise word stands for one of each
// context's draw, so its step and loss count once for each context.
static void train_forward_shared(const Job& job, float* const* x, int inputs, const Window& window, Scratch& scratch,
                                 Tally& tally) {
    const int right = window.contexts, noise = window.targets - right, padded = (right + LANES - 1) / LANES * LANES;
    const float share = 1.0f / (float)inputs, times = (float)right;
    add_up(x, inputs, share, job.stride, scratch.hidden);
    float* hidden[1] = {scratch.hidden};
    const int counts[2] = {right, noise};
    for (int side = 0; side < 2; ++side) {
        float* scores = scratch.scores + side * padded;
        float* signs = scratch.signs + side * padded;
        const float sign = side ? -1.0f : 1.0f;
        dot_all(hidden, 1, scratch.outputs + side * right, counts[side], job.stride, scores);
        const int end = (counts[side] + LANES - 1) / LANES * LANES;
        for (int i = 0; i < end; ++i) signs[i] = sign;
        for (int i = counts[side]; i < end; ++i) scores[i] = 87.0f * sign;
        const float weight = side ? times : 1.0f;
        tally.loss += weight * logistic_steps(scores, signs, counts[side], window.rate * weight);
    }
    tally.pairs += right;
    if (window.rate == 0) return;
    std::memmove(scratch.scores + right, scratch.scores + padded, noise * sizeof(float));
    update_hidden<true>(scratch.hidden, scratch.outputs, window.targets, job.stride, scratch, scratch.change);
    add_to_rows(x, inputs, scratch.change, job.exact ? share : 1.0f, job.stride);
}

static void train(const Job& job, const Window& window, Scratch& scratch, Tally& tally) {
    tally.words += window.centres;
    const bool forward = job.architecture == FORWARD, pairs = job.loss == SOFTMAX || (job.loss == NEGATIVE && !job.shared);
    if (!(forward ? window.contexts : window.targets)) return;
    for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(job, scratch, window.target[t]);
    if (job.architecture == CONCAT) return train_concat(job, window, scratch, tally);
    float** x = scratch.inputs;
    int inputs = 0;
    if (forward) {
        inputs = word_rows(job, scratch, window.centre, x);
        if (job.loss == NEGATIVE && job.shared) train_forward_shared(job, x, inputs, window, scratch, tally);
        else train_forward(job, x, inputs, const_cast<Window&>(window), scratch, tally);
        return;
    }
    if (grouped(job) && job.architecture == CBOW) return train_cbow_group(job, window, scratch, tally);
    if (grouped(job)) return train_group(job, window, scratch, tally);
    for (int i = 0; i < window.contexts; ++i) inputs += word_rows(job, scratch, window.context[i], x + inputs);
    inputs += document_rows(job, scratch, window, x + inputs);
    if (job.architecture == CBOW) train_cbow(job, x, inputs, window, scratch, tally);
    else if (pairs || job.frozen) train_pairs(job, x, inputs, const_cast<Window&>(window), scratch, tally);
    else train_grid(job, x, inputs, scratch.outputs, window, scratch, tally);
}

static void to_changes(const Job& job, Copies& copies) {
    for (int i = 0; i < copies.count; ++i) {
        const int32_t row = copies.row[i];
        const float* old = row >= 0 ? job.inputs + row * job.stride : job.outputs + ~row * job.output_stride;
        const int64_t stride = row >= 0 ? job.stride : job.output_stride;
        float* copy = copies.data + i * job.output_stride;
        for (int64_t d = 0; d < stride; d += LANES) store(copy + d, load(copy + d) - load(old + d));
    }
}

static void add_row(float* row, const float* change, float share, int64_t stride) {
    for (int64_t d = 0; d < stride; d += LANES) store(row + d, load(row + d) + load(change + d) * share);
}

extern const Predict predict;
const Predict predict = {refill, prepare, look_ahead, train, to_changes, add_row};

}  // namespace ISA
}  // namespace firth
