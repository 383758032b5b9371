// Skip-gram and CBOW for one window at a time (Mikolov et al. 2013a, 2013b), compiled for each instruction set.
//
// Skip-gram: every context word of the window predicts the centre. With noise words shared by the window
// (Ji et al. 2016, pWord2Vec) the scores are one small matrix product, contexts × targets, and both
// updates are made in a single pass over the dimensions with the tile in registers.
#include "predict.h"

#include "steps.h"
#include "windows.h"

namespace firth {
namespace ISA {

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
    int inputs = 0, pairs = 0;
    const auto meet = [&](int rows, const Meetings& meetings) {
        const vec noise = splat(-meetings.all * noise_weight);
        for (int i = 0; i < rows; ++i, weights += window.targets) {  // what is written too far is the next row's, or room
            std::memcpy(weights, meetings.word, sizeof meetings.word);
            for (int t = window.words; t < window.targets; t += LANES) store_loose(weights + t, noise);
        }
        pairs += rows * (int)meetings.all;
        inputs += rows;
    };
    for (int i = 0; i < window.contexts; ++i) meet(word_rows(job, scratch, window.context[i], x + inputs), window.meetings[i]);
    meet(document_rows(job, scratch, window, x + inputs), window.whole);
    tally.pairs += pairs;
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
