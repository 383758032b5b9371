// Skip-gram and CBOW for one window at a time (Mikolov et al. 2013a, 2013b), compiled for each instruction set.
//
// Skip-gram: every context word of the window predicts the centre. With noise words shared by the window
// (Ji et al. 2016, pWord2Vec) the scores are one small matrix product, contexts × targets, and both
// updates are made in a single pass over the dimensions with the tile in registers.
#include "predict.h"

#include "vec.h"

namespace firth {
namespace ISA {

static inline uint64_t mix(uint64_t x) {  // the finalizer of splitmix64 (Steele et al. 2014)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

constexpr uint64_t GOLDEN = 0x9e3779b97f4a7c15ull;

static inline uint64_t token_hash(const Job& job, int64_t position) {
    return mix(job.seed + (uint64_t)position * GOLDEN);
}

static inline bool kept(const Job& job, int64_t position, uint64_t hash) {
    return (uint32_t)(hash >> 32) <= job.keep[job.ids[position]];
}

static inline int32_t noise_slot(const Job& job, uint64_t bits) {
    return (int32_t)(((bits >> 32) * (uint64_t)job.words) >> 32);
}

static inline int32_t noise_word(const Job& job, uint64_t& state) {
    state += GOLDEN;
    const uint64_t bits = mix(state);
    const int32_t slot = noise_slot(job, bits);
    const Alias alias = job.noise[slot];
    return (uint32_t)bits < alias.cut ? slot : alias.other;
}

static inline void prefetch(const Scratch& scratch, int64_t d) {
    for (int i = 0; i < scratch.ahead_count; ++i) __builtin_prefetch(scratch.ahead[i] + d, 1, 3);
}

// ---- from raw tokens to windows ----

static int64_t document_of(const Job& job, int64_t position) {
    int64_t low = 0, high = job.documents;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (job.starts[middle] <= position ? low : high) = middle;
    }
    return low;
}

static inline void put(Walker& walker, const Job& job, int i, int64_t position, uint64_t hash) {
    walker.id[i] = job.ids[position];
    walker.hash[i] = hash;
    walker.offset[i] = (int32_t)(position - walker.base);
}

// Reads the next block of raw tokens: the centres, and up to a window of kept tokens before and after
// them in the same document. False when the stretch is over.
static bool refill(const Job& job, Walker& walker) {
    if (walker.position >= walker.end) return false;
    const int64_t begin = walker.position;
    const int64_t stop = begin + walker.block < walker.end ? begin + walker.block : walker.end;
    int64_t document = document_of(job, begin);
    int n = 0;
    walker.base = begin;
    {   // before: collected backwards, then turned around
        const int64_t start = job.starts[document] > job.first ? job.starts[document] : job.first;
        for (int64_t p = begin - 1; p >= start && n < job.window; --p) {
            const uint64_t hash = token_hash(job, p);
            if (kept(job, p, hash)) put(walker, job, n++, p, hash);
        }
        for (int i = 0; i < n / 2; ++i) {
            const int j = n - 1 - i;
            const int32_t id = walker.id[i]; walker.id[i] = walker.id[j]; walker.id[j] = id;
            const uint64_t hash = walker.hash[i]; walker.hash[i] = walker.hash[j]; walker.hash[j] = hash;
            const int32_t offset = walker.offset[i]; walker.offset[i] = walker.offset[j]; walker.offset[j] = offset;
        }
    }
    walker.next = n;
    int segment = 0;  // where the current document begins in the arrays
    int64_t p = begin;
    while (true) {
        const int64_t document_end = job.starts[document + 1];
        const int64_t to = document_end < stop ? document_end : stop;
        for (; p < to; ++p) {
            const uint64_t hash = token_hash(job, p);
            if (kept(job, p, hash)) put(walker, job, n++, p, hash);
        }
        if (p == stop) {
            walker.last = n;
            const int64_t limit = document_end < job.last ? document_end : job.last;
            for (int after = 0; p < limit && after < job.window; ++p) {
                const uint64_t hash = token_hash(job, p);
                if (kept(job, p, hash)) put(walker, job, n++, p, hash), ++after;
            }
        }
        for (int i = segment; i < n; ++i) walker.from[i] = segment, walker.to[i] = n;
        if (p >= stop) break;
        segment = n;
        ++document;
    }
    walker.position = stop;
    return true;
}

// Noise words behind the centre; the centre itself is no noise, and a word drawn twice counts once.
static void draw_noise(const Job& job, Window& window, uint64_t& state) {
    int targets = 1;
    for (int i = 0; i < job.negatives; ++i) {
        const int32_t word = noise_word(job, state);
        bool seen = false;
        for (int j = 0; j < targets; ++j) seen |= window.target[j] == word;
        if (seen) continue;
        window.target[targets] = word;
        window.sign[targets++] = -1;
    }
    window.targets = targets;
}

// The centre's contexts and targets.
static void prepare(const Job& job, const Walker& walker, int centre, float rate, Window& window) {
    const uint64_t hash = walker.hash[centre];
    const int reach = job.shrink ? job.window - (int)(((hash & 0xffffffffull) * (uint64_t)job.window) >> 32) : job.window;
    const int from = centre - reach > walker.from[centre] ? centre - reach : walker.from[centre];
    const int to = centre + reach + 1 < walker.to[centre] ? centre + reach + 1 : walker.to[centre];
    int contexts = 0;
    for (int i = from; i < to; ++i)
        if (i != centre) window.context[contexts++] = walker.id[i];
    window.contexts = contexts;
    window.rate = rate;
    window.hash = hash;
    window.centre = walker.id[centre];
    window.targets = 0;
    if (!contexts) return;
    window.entering = centre + job.window < walker.to[centre] ? walker.id[centre + job.window] : -1;
    if (job.loss == NEGATIVE) {
        uint64_t state = hash;
        window.target[0] = window.centre;
        window.sign[0] = 1;
        draw_noise(job, window, state);
        if (centre + 1 < walker.last) {  // the table is large and its slots random: ask for the next ones now
            state = walker.hash[centre + 1];
            for (int i = 0; i < job.negatives; ++i)
                __builtin_prefetch(job.noise + noise_slot(job, mix(state += GOLDEN)), 0, 3);
        }
    } else if (job.loss == HIERARCHICAL) {
        const int64_t begin = job.path_starts[window.centre];
        window.targets = (int)(job.path_starts[window.centre + 1] - begin);
        for (int i = 0; i < window.targets; ++i) {
            window.target[i] = job.path_nodes[begin + i];
            window.sign[i] = job.path_turns[begin + i] ? -1.0f : 1.0f;
        }
    } else {
        window.targets = job.words;  // the driver laid out target = 0, 1, 2, …
    }
}

// What the next window will want from memory: its targets, and the context that comes within reach.
static void look_ahead(const Job& job, const Window& next, Scratch& scratch) {
    int count = 0;
    if (next.contexts && job.loss != SOFTMAX) {
        for (int t = 0; t < next.targets; ++t) scratch.ahead[count++] = job.outputs + next.target[t] * job.stride;
        if (next.entering >= 0) scratch.ahead[count++] = job.inputs + next.entering * job.stride;
    }
    scratch.ahead_count = count;
}

// ---- rows, in place or as copies ----

static float* copy_of(const float* row, int32_t name, int32_t* slot, int64_t stride, Copies& copies) {
    if (*slot < 0) {
        *slot = copies.count;
        copies.row[copies.count] = name;
        std::memcpy(copies.data + copies.count++ * stride, row, stride * sizeof(float));
    }
    return copies.data + *slot * stride;
}

static inline float* input_row(const Job& job, const Scratch& scratch, int32_t id) {
    float* row = job.inputs + id * job.stride;
    if (!scratch.copies) return row;
    return copy_of(row, id, scratch.copies->input_slot + id, job.stride, *scratch.copies);
}

static inline float* output_row(const Job& job, const Scratch& scratch, int32_t id) {
    float* row = job.outputs + id * job.stride;
    if (!scratch.copies) return row;
    return copy_of(row, ~id, scratch.copies->output_slot + id, job.stride, *scratch.copies);
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
        const int last = same ? (2 * job.window * targets + LANES) : padded;
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
    vec old[MOST_CONTEXTS];
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
#endif
        default: update_many(x, inputs, y, targets, steps, stride, scratch);
    }
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

// One input (a context word, or CBOW's mean of them) against the targets; its change is returned in
// `change` and the targets are updated.
static void train_single(const Job& job, const float* hidden, float* const* y, const Window& window, Scratch& scratch,
                         Tally& tally, float* change) {
    const int64_t stride = job.stride;
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
    for (int64_t d = 0; d < stride; d += LANES) {
        prefetch(scratch, d);
        const vec h = load(hidden + d);
        vec total = {};
        for (int t = 0; t < targets; ++t) {
            const vec step = splat(scratch.scores[t]);
            const vec old = load(y[t] + d);
            total += step * old;
            store(y[t] + d, old + step * h);
        }
        store(change + d, total);
    }
}

// The context words together predict the centre. The gradient of a mean is 1/contexts for each of them;
// word2vec and gensim leave that factor out (İrsoy et al. 2020), as `exact = false` does.
static void train_cbow(const Job& job, float* const* x, int inputs, float* const* y, const Window& window,
                       Scratch& scratch, Tally& tally) {
    const int64_t stride = job.stride;
    const float share = job.mean ? 1.0f / (float)inputs : 1.0f;
    const float back = job.exact ? share : 1.0f;
    for (int64_t d = 0; d < stride; d += LANES) {
        vec total = {};
        for (int i = 0; i < inputs; ++i) total += load(x[i] + d);
        store(scratch.hidden + d, total * share);
    }
    train_single(job, scratch.hidden, y, window, scratch, tally, scratch.change);
    if (window.rate == 0) return;
    for (int64_t d = 0; d < stride; d += LANES) {
        const vec step = load(scratch.change + d) * back;
        for (int i = 0; i < inputs; ++i) store(x[i] + d, load(x[i] + d) + step);
    }
}

// Each pair for itself, one after the other, as in word2vec's C program.
static void train_pairs(const Job& job, Window& window, Scratch& scratch, Tally& tally) {
    uint64_t state = window.hash + (uint64_t)job.negatives * GOLDEN;
    for (int i = 0; i < window.contexts; ++i) {
        if (job.loss == NEGATIVE && i) draw_noise(job, window, state);
        for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(job, scratch, window.target[t]);
        float* row = input_row(job, scratch, window.context[i]);
        train_single(job, row, scratch.outputs, window, scratch, tally, scratch.change);
        if (window.rate == 0) continue;
        for (int64_t d = 0; d < job.stride; d += LANES) store(row + d, load(row + d) + load(scratch.change + d));
    }
}

static void train(const Job& job, const Window& window, Scratch& scratch, Tally& tally) {
    tally.words += 1;
    if (!window.contexts || !window.targets) return;
    if (job.architecture == SKIPGRAM && (job.loss == SOFTMAX || (job.loss == NEGATIVE && !job.shared)))
        return train_pairs(job, const_cast<Window&>(window), scratch, tally);
    for (int i = 0; i < window.contexts; ++i) scratch.inputs[i] = input_row(job, scratch, window.context[i]);
    for (int t = 0; t < window.targets; ++t) scratch.outputs[t] = output_row(job, scratch, window.target[t]);
    if (job.architecture == CBOW)
        train_cbow(job, scratch.inputs, window.contexts, scratch.outputs, window, scratch, tally);
    else
        train_grid(job, scratch.inputs, window.contexts, scratch.outputs, window, scratch, tally);
}

static void to_changes(const Job& job, Copies& copies) {
    for (int i = 0; i < copies.count; ++i) {
        const int32_t row = copies.row[i];
        const float* old = row >= 0 ? job.inputs + row * job.stride : job.outputs + ~row * job.stride;
        float* copy = copies.data + i * job.stride;
        for (int64_t d = 0; d < job.stride; d += LANES) store(copy + d, load(copy + d) - load(old + d));
    }
}

static void add_row(float* row, const float* change, float share, int64_t stride) {
    for (int64_t d = 0; d < stride; d += LANES) store(row + d, load(row + d) + load(change + d) * share);
}

extern const Predict predict;
const Predict predict = {refill, prepare, look_ahead, train, to_changes, add_row};

}  // namespace ISA
}  // namespace firth
