// Skip-gram and CBOW for one window at a time (Mikolov et al. 2013a, 2013b), compiled for each instruction set.
//
// Skip-gram: every context word of the window predicts the center. With negative samples shared by the window (Ji et
// al. 2016, pWord2Vec) the scores are one small matrix product, contexts × targets, and both updates are made in a
// single pass over the dimensions with the tile in registers.
#include "predict.h"

#include "steps.h"
#include "windows.h"

namespace firth {
namespace ISA {

// Collects the rows of the next window to prefetch: its targets and the words that enter it.
static void prefetch_next(const Task& task, const Window& next, Scratch& scratch) {
    int count = 0;
    if (task.objective.loss != SOFTMAX) {
        for (int t = 0; t < next.targets; ++t)
            scratch.prefetch_rows[count++] = task.model.outputs + next.target[t] * task.model.output_stride;
        for (int e = 0; e < next.upcoming_count; ++e) {
            const int32_t word = next.upcoming[e];
            if (!task.model.subwords.rows) {
                scratch.prefetch_rows[count++] = task.model.inputs + word * task.model.stride;
            } else {
                for (int64_t i = task.model.subwords.starts[word]; i < task.model.subwords.starts[word + 1]; ++i)
                    scratch.prefetch_rows[count++] =
                        task.model.inputs + task.model.subwords.rows[i] * task.model.stride;
            }
        }
    }
    scratch.prefetch_count = count;
}

// ---- rows, in place or as copies ----

static float* copy_of(const Task& task, const float* row, int64_t stride, int32_t name, int32_t* slot, Copies& copies) {
    if (*slot < 0) {
        *slot = copies.count;
        copies.row[copies.count] = name;
        std::memcpy(copies.data + copies.count++ * task.model.output_stride, row, stride * sizeof(float));
    }
    return copies.data + *slot * task.model.output_stride;
}

static inline float* input_row(const Task& task, const Scratch& scratch, int32_t id) {
    float* row = task.model.inputs + id * task.model.stride;
    if (!scratch.copies) return row;
    return copy_of(task, row, task.model.stride, id, scratch.copies->input_slot + id, *scratch.copies);
}

static inline float* output_row(const Task& task, const Scratch& scratch, int32_t id) {
    float* row = task.model.outputs + id * task.model.output_stride;
    if (!scratch.copies) return row;
    return copy_of(task, row, task.model.output_stride, ~id, scratch.copies->output_slot + id, *scratch.copies);
}

// The input rows of a word: its own and its subwords'.
static inline int word_rows(const Task& task, const Scratch& scratch, int32_t word, float** rows) {
    if (!task.model.subwords.rows) {
        rows[0] = input_row(task, scratch, word);
        return 1;
    }
    const int64_t from = task.model.subwords.starts[word];
    const int count = (int)(task.model.subwords.starts[word + 1] - from);
    for (int i = 0; i < count; ++i) rows[i] = input_row(task, scratch, task.model.subwords.rows[from + i]);
    return count;
}

// The input rows of the window's document.
static inline int document_rows(const Task& task, const Scratch& scratch, const Window& window, float** rows) {
    if (task.objective.frozen) {
        rows[0] = scratch.document;
        return 1;
    }
    const int count = tags(task, window);
    for (int i = 0; i < count; ++i)
        rows[i] = input_row(task, scratch, task.model.tags.rows[task.model.tags.starts[window.document] + i]);
    return count;
}

// ---- one window ----

// All inputs against all targets at once.
static void train_grid(const Task& task, float* const* x, int inputs, float* const* y, const Window& window,
                       Scratch& scratch, Tally& tally) {
    const int targets = window.targets;
    dot_all(x, inputs, y, targets, task.model.stride, scratch.scores);
    fill_signs(task, window, inputs, scratch);
    tally.loss += logistic_steps(scratch.scores, scratch.signs, inputs * targets, window.rate);
    tally.pairs += inputs;
    if (window.rate != 0) update_all(x, inputs, y, targets, scratch.scores, task.model.stride, scratch);
}

// The weight of one of a group's negative samples, per center.
static inline float negative_weight(const Task& task) {
    return task.sampling.group_negatives ? (float)task.sampling.negatives / (float)task.sampling.group_negatives : 1.0f;
}

// A group: its context words and document rows against its center words and shared negative samples. The weight of a
// negative sample is the number of (input, center) pairs it stands for.
static void train_group(const Task& task, const Window& window, Scratch& scratch, Tally& tally) {
    float** x = scratch.inputs;
    float* weights = scratch.signs;
    const float weight = negative_weight(task);
    int inputs = 0, pairs = 0;
    const auto add_inputs = [&](int rows, const PairCounts& counts) {
        const vec negative = splat(-counts.total * weight);
        for (int i = 0; i < rows;
             ++i, weights += window.targets) {  // writes past the row end up in the next row or in the padding
            std::memcpy(weights, counts.word, sizeof counts.word);
            for (int t = window.words; t < window.targets; t += LANES) store_loose(weights + t, negative);
        }
        pairs += rows * (int)counts.total;
        inputs += rows;
    };
    for (int i = 0; i < window.contexts; ++i)
        add_inputs(word_rows(task, scratch, window.context[i], x + inputs), window.pair_counts[i]);
    add_inputs(document_rows(task, scratch, window, x + inputs), window.document_counts);
    tally.pairs += pairs;
    dot_all(x, inputs, scratch.outputs, window.targets, task.model.stride, scratch.scores);
    tally.loss += weighted_steps(scratch.scores, scratch.signs, inputs * window.targets, window.rate);
    if (window.rate == 0) return;
    if (task.objective.frozen) {
        update_hidden<false>(x[inputs - 1], scratch.outputs, window.targets, task.model.stride, scratch,
                             scratch.change);
        add_to_rows(x + inputs - 1, 1, scratch.change, 1.0f, task.model.stride);
    } else {
        update_all(x, inputs, scratch.outputs, window.targets, scratch.scores, task.model.stride, scratch);
    }
}

// Turns the scores of one input into the steps of a full softmax over all words; returns -log p(center).
static double softmax_steps(float* scores, int words, int32_t center, float rate) {
    float highest = scores[0];
    for (int w = 1; w < words; ++w) highest = scores[w] > highest ? scores[w] : highest;
    const float center_score = scores[center] - highest;
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
    scores[center] += rate;
    return (double)log_vec(splat((float)total))[0] - center_score;
}

// One input (a context word, or the mean of several) against the targets: computes its change and updates the targets.
static void train_single(const Task& task, const float* hidden, float* const* y, const Window& window, Scratch& scratch,
                         Tally& tally, float* change) {
    const int64_t stride = task.model.output_stride;
    float* x[1] = {const_cast<float*>(hidden)};
    const int targets = window.targets;
    dot_all(x, 1, y, targets, stride, scratch.scores);
    if (task.objective.loss == SOFTMAX) {
        tally.loss += softmax_steps(scratch.scores, targets, window.center, window.rate);
    } else {
        fill_signs(task, window, 1, scratch);
        tally.loss += logistic_steps(scratch.scores, scratch.signs, targets, window.rate);
    }
    tally.pairs += 1;
    if (window.rate == 0) return;
    if (task.objective.frozen) update_hidden<false>(hidden, y, targets, stride, scratch, change);
    else update_hidden<true>(hidden, y, targets, stride, scratch, change);
}

// CBOW: the context words together predict the center. The gradient of a mean has the factor 1/contexts for each of
// them; word2vec and gensim leave it out (İrsoy et al. 2020), as `exact = false` does.
static void train_cbow(const Task& task, float* const* x, int inputs, const Window& window, Scratch& scratch,
                       Tally& tally) {
    const float share = task.objective.mean ? 1.0f / (float)inputs : 1.0f;
    sum_rows(x, inputs, share, task.model.stride, scratch.hidden);
    train_single(task, scratch.hidden, scratch.outputs, window, scratch, tally, scratch.change);
    if (window.rate == 0) return;
    if (task.objective.frozen) x += inputs - 1, inputs = 1;  // the document's row is the last
    add_to_rows(x, inputs, scratch.change, task.objective.exact ? share : 1.0f, task.model.stride);
}

// The means (or sums) of a group's contexts, one per center, and the score of each with its center word.
template <int CENTERS>
static void sum_group_rows(float* const* x, const Window& window, float* const* y, const float* share, int64_t stride,
                           float* hidden, float* own_scores) {
    vec own[CENTERS] = {};
    for (int64_t d = 0; d < stride; d += LANES) {
        vec total[CENTERS] = {};
        for (int i = 0; i < window.contexts; ++i) {
            const vec xv = load(x[i] + d);
            for (int c = 0; c < CENTERS; ++c) total[c] += splat(window.pair_counts[i].word[c]) * xv;
        }
        for (int c = 0; c < CENTERS; ++c) {
            total[c] *= share[c];
            store(hidden + c * stride + d, total[c]);
            own[c] += total[c] * load(y[c] + d);
        }
    }
    store_sums<CENTERS>(own, own_scores);
}

// Updates the center words and negative samples from the means, and the contexts by the changes of the means they are
// in. `steps` holds for each center the steps of the negative samples, then the steps of the center words.
template <int CENTERS>
static void update_group(float* const* x, const Window& window, float* const* y, const float* steps,
                         const float* gradient_share, int64_t stride, const Scratch& scratch) {
    const int negatives = window.targets - CENTERS;
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        vec hidden[CENTERS], total[CENTERS];
        for (int c = 0; c < CENTERS;
             ++c) {  // a word that is a center twice moves twice, the second time from its new row
            const vec step = splat(steps[CENTERS * negatives + c]), old = load(y[c] + d);
            hidden[c] = load(scratch.hidden + c * stride + d);
            total[c] = step * old;
            store(y[c] + d, old + step * hidden[c]);
        }
        for (int t = 0; t < negatives; ++t) {
            const vec old = load(y[CENTERS + t] + d);
            vec moved = old;
            for (int c = 0; c < CENTERS; ++c) {
                const vec step = splat(steps[c * negatives + t]);
                total[c] += step * old;
                moved += step * hidden[c];
            }
            store(y[CENTERS + t] + d, moved);
        }
        for (int c = 0; c < CENTERS; ++c) total[c] *= gradient_share[c];
        for (int i = 0; i < window.contexts; ++i) {
            vec moved = load(x[i] + d);
            for (int c = 0; c < CENTERS; ++c) moved += splat(window.pair_counts[i].word[c]) * total[c];
            store(x[i] + d, moved);
        }
    }
}

// CBOW for a group: each context row is read and written once for all centers, which share their negative samples.
template <int CENTERS>
static void train_centers(const Task& task, const Window& window, Scratch& scratch, Tally& tally) {
    float **x = scratch.inputs, **y = scratch.outputs, *hidden[CENTERS], share[CENTERS], gradient_share[CENTERS];
    const float weight = negative_weight(task);
    const int negatives = window.targets - CENTERS, count = CENTERS * negatives;
    for (int i = 0; i < window.contexts; ++i) x[i] = input_row(task, scratch, window.context[i]);
    for (int c = 0; c < CENTERS; ++c) {
        float inputs = 0;
        for (int i = 0; i < window.contexts; ++i) inputs += window.pair_counts[i].word[c];
        share[c] = task.objective.mean ? 1.0f / inputs : 1.0f;
        gradient_share[c] = task.objective.exact ? share[c] : 1.0f;
        hidden[c] = scratch.hidden + c * task.model.stride;
    }
    float own[LANES + CENTERS];
    sum_group_rows<CENTERS>(x, window, y, share, task.model.stride, scratch.hidden, own);
    dot_all(hidden, CENTERS, y + CENTERS, negatives, task.model.stride, scratch.scores);
    for (int i = 0; i < count; ++i) scratch.signs[i] = -weight;
    for (int c = 0; c < CENTERS; ++c) {
        scratch.scores[count + c] = own[c];
        scratch.signs[count + c] = 1;
    }
    tally.loss += weighted_steps(scratch.scores, scratch.signs, count + CENTERS, window.rate);
    tally.pairs += CENTERS;
    if (window.rate != 0)
        update_group<CENTERS>(x, window, y, scratch.scores, gradient_share, task.model.stride, scratch);
}

static void train_cbow_group(const Task& task, const Window& window, Scratch& scratch, Tally& tally) {
    switch (window.centers) {
        case 1: train_centers<1>(task, window, scratch, tally); break;
        case 2: train_centers<2>(task, window, scratch, tally); break;
        case 3: train_centers<3>(task, window, scratch, tally); break;
        default: train_centers<MAX_GROUP>(task, window, scratch, tally);
    }
}

// The concatenation of the rows predicts the center: each position of the window has its own part of the outputs.
static void train_concat(const Task& task, const Window& window, Scratch& scratch, Tally& tally) {
    const int64_t stride = task.model.stride;
    float** x = scratch.inputs;
    const int slots = document_rows(task, scratch, window, x) + window.contexts;
    for (int i = 0, at = slots - window.contexts; i < window.contexts; ++i, ++at)
        x[at] = window.context[i] < 0 ? nullptr : input_row(task, scratch, window.context[i]);
    for (int i = 0; i < slots; ++i) {
        if (x[i]) std::memcpy(scratch.hidden + i * stride, x[i], stride * sizeof(float));
        else std::memset(scratch.hidden + i * stride, 0, stride * sizeof(float));
    }
    train_single(task, scratch.hidden, scratch.outputs, window, scratch, tally, scratch.change);
    if (window.rate == 0) return;
    for (int i = 0; i < (task.objective.frozen ? 1 : slots); ++i)
        if (x[i]) add_to_rows(x + i, 1, scratch.change + i * stride, 1.0f, stride);
}

// Each pair separately, one after the other, as in word2vec's C code.
static void train_pairs(const Task& task, float* const* x, int inputs, Window& window, Scratch& scratch, Tally& tally) {
    uint64_t state = window.hash + (uint64_t)task.sampling.negatives * GOLDEN;
    for (int i = 0; i < inputs; ++i) {
        if (task.objective.loss == NEGATIVE && i) sample_negatives(task, window, 1, state);
        for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(task, scratch, window.target[t]);
        train_single(task, x[i], scratch.outputs, window, scratch, tally, scratch.change);
        if (window.rate != 0) add_to_rows(x + i, 1, scratch.change, 1.0f, task.model.stride);
    }
}

// The center predicts its contexts one after the other. When each row of a mean moves by `change`, so does the mean, so
// the rows are updated once, by the sum of all changes.
static void train_forward(const Task& task, float* const* x, int inputs, Window& window, Scratch& scratch,
                          Tally& tally) {
    const float share = 1.0f / (float)inputs, gradient_share = task.objective.exact ? share : 1.0f;
    const int32_t center = window.center;
    sum_rows(x, inputs, share, task.model.stride, scratch.hidden);
    std::memset(scratch.total, 0, task.model.stride * sizeof(float));
    float* mean_and_total[2] = {scratch.hidden, scratch.total};
    uint64_t state = window.hash;
    for (int i = 0; i < window.contexts; ++i) {
        fill_targets(task, window, window.context[i], state);
        for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(task, scratch, window.target[t]);
        if (!window.targets) continue;
        train_single(task, scratch.hidden, scratch.outputs, window, scratch, tally, scratch.change);
        scratch.prefetch_count = 0;
        if (window.rate != 0) add_to_rows(mean_and_total, 2, scratch.change, gradient_share, task.model.stride);
    }
    window.center = center;
    if (window.rate != 0) add_to_rows(x, inputs, scratch.total, 1.0f, task.model.stride);
}

// The same with negative samples shared by all contexts of the window: the step and loss of a negative sample count
// once per context.
static void train_forward_shared(const Task& task, float* const* x, int inputs, const Window& window, Scratch& scratch,
                                 Tally& tally) {
    const int positives = window.contexts, negatives = window.targets - positives;
    const int padded = (positives + LANES - 1) / LANES * LANES;
    const float share = 1.0f / (float)inputs, times = (float)positives;
    sum_rows(x, inputs, share, task.model.stride, scratch.hidden);
    float* hidden[1] = {scratch.hidden};
    const int counts[2] = {positives, negatives};
    for (int side = 0; side < 2; ++side) {
        float* scores = scratch.scores + side * padded;
        float* signs = scratch.signs + side * padded;
        const float sign = side ? -1.0f : 1.0f;
        dot_all(hidden, 1, scratch.outputs + side * positives, counts[side], task.model.stride, scores);
        const int end = (counts[side] + LANES - 1) / LANES * LANES;
        for (int i = 0; i < end; ++i) signs[i] = sign;
        for (int i = counts[side]; i < end; ++i) scores[i] = 87.0f * sign;
        const float weight = side ? times : 1.0f;
        tally.loss += weight * logistic_steps(scores, signs, counts[side], window.rate * weight);
    }
    tally.pairs += positives;
    if (window.rate == 0) return;
    std::memmove(scratch.scores + positives, scratch.scores + padded, negatives * sizeof(float));
    update_hidden<true>(scratch.hidden, scratch.outputs, window.targets, task.model.stride, scratch, scratch.change);
    add_to_rows(x, inputs, scratch.change, task.objective.exact ? share : 1.0f, task.model.stride);
}

static void train(const Task& task, const Window& window, Scratch& scratch, Tally& tally) {
    tally.words += window.centers;
    const bool forward = task.objective.architecture == FORWARD,
               pairs = task.objective.loss == SOFTMAX || (task.objective.loss == NEGATIVE && !task.sampling.shared);
    if (!(forward ? window.contexts : window.targets)) return;
    for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(task, scratch, window.target[t]);
    if (task.objective.architecture == CONCAT) return train_concat(task, window, scratch, tally);
    float** x = scratch.inputs;
    int inputs = 0;
    if (forward) {
        inputs = word_rows(task, scratch, window.center, x);
        if (task.objective.loss == NEGATIVE && task.sampling.shared)
            train_forward_shared(task, x, inputs, window, scratch, tally);
        else train_forward(task, x, inputs, const_cast<Window&>(window), scratch, tally);
        return;
    }
    if (grouped(task) && task.objective.architecture == CBOW) return train_cbow_group(task, window, scratch, tally);
    if (grouped(task)) return train_group(task, window, scratch, tally);
    for (int i = 0; i < window.contexts; ++i) inputs += word_rows(task, scratch, window.context[i], x + inputs);
    inputs += document_rows(task, scratch, window, x + inputs);
    if (task.objective.architecture == CBOW) train_cbow(task, x, inputs, window, scratch, tally);
    else if (pairs || task.objective.frozen) train_pairs(task, x, inputs, const_cast<Window&>(window), scratch, tally);
    else train_grid(task, x, inputs, scratch.outputs, window, scratch, tally);
}

static void to_changes(const Task& task, Copies& copies) {
    for (int i = 0; i < copies.count; ++i) {
        const int32_t row = copies.row[i];
        const float* old = row >= 0 ? task.model.inputs + row * task.model.stride
                                    : task.model.outputs + ~row * task.model.output_stride;
        const int64_t stride = row >= 0 ? task.model.stride : task.model.output_stride;
        float* copy = copies.data + i * task.model.output_stride;
        for (int64_t d = 0; d < stride; d += LANES) store(copy + d, load(copy + d) - load(old + d));
    }
}

static void add_row(float* row, const float* change, float share, int64_t stride) {
    for (int64_t d = 0; d < stride; d += LANES) store(row + d, load(row + d) + load(change + d) * share);
}

extern const Predict predict;
const Predict predict = {refill, prepare, prefetch_next, train, to_changes, add_row};

}  // namespace ISA
}  // namespace firth
