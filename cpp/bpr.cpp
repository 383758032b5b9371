#include "bpr.h"

#include "hash.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int TRIES = 16;  // draws of a negative item before the sample is skipped

struct Triple {
    int32_t user, positive, negative;  // negative = -1: none found
};

static bool has(const BprTask& task, int32_t user, int32_t item) {
    int64_t low = task.starts[user], high = task.starts[user + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (task.columns[middle] < item) low = middle + 1;
        else high = middle;
    }
    return low < task.starts[user + 1] && task.columns[low] == item;
}

// Samples an item outside the user's history; -1 if all TRIES draws were in it.
static int32_t sample_negative(const BprTask& task, int32_t user, uint64_t state) {
    for (int i = 0; i < TRIES; ++i) {
        state += GOLDEN;
        const uint64_t bits = mix(state);
        const auto slot = (int32_t)(((bits >> 32) * (uint64_t)task.item_count) >> 32);
        const Alias alias = task.noise[slot];
        const int32_t item = (uint32_t)bits < alias.cut ? slot : alias.other;
        if (!has(task, user, item)) return item;
    }
    return -1;
}

static inline int64_t scaled(uint64_t bits, int64_t count) {
    return (int64_t)(((unsigned __int128)bits * (unsigned __int128)count) >> 64);
}

static Triple sample_triple(const BprTask& task, int64_t sample) {
    const uint64_t hash = mix(task.seed + (uint64_t)sample * GOLDEN);
    const int64_t entry = scaled(hash, task.entries);
    const int32_t user = task.owners[entry];
    return {user, task.columns[entry], sample_negative(task, user, hash)};
}

static inline void fetch(const float* row, int64_t stride) {
    for (int64_t d = 0; d < stride; d += 16) __builtin_prefetch(row + d, 1, 3);
}

// Takes one gradient step; returns the loss before it. With FOLD the items stay fixed.
template <bool FOLD>
static inline double step(const BprTask& task, float* user, float* positive, float* negative) {
    const int64_t stride = task.stride;
    vec total = {};
    for (int64_t d = 0; d < stride; d += LANES) total += load(user + d) * (load(positive + d) - load(negative + d));
    const float x = sum(total);
    const float e = exp_vec(splat(x > 0 ? -x : x))[0];       // e^−|x|
    const float gradient = (x > 0 ? e : 1.0f) / (1.0f + e);  // σ(−x)
    const float one = user[task.bias];
    const vec forward = splat(task.rate * gradient), shrink = splat(1.0f - task.rate * task.regularization);
    for (int64_t d = 0; d < stride; d += LANES) {
        const vec u = load(user + d), i = load(positive + d), j = load(negative + d);
        store(user + d, shrink * u + forward * (i - j));
        if (FOLD) continue;
        store(positive + d, shrink * i + forward * u);
        store(negative + d, shrink * j - forward * u);
    }
    user[task.bias] = one;
    return (double)(x > 0 ? 0.0f : -x) + (double)log_vec(splat(1.0f + e))[0];
}

static BprTally train(const BprTask& task, int64_t first, int64_t last) {
    constexpr int64_t AHEAD = 4;  // samples whose rows are prefetched
    Triple pending[AHEAD];
    BprTally tally;
    for (int64_t n = first; n < last + AHEAD; ++n) {
        Triple& triple = pending[n % AHEAD];
        if (n >= first + AHEAD && triple.negative >= 0) {
            tally.loss +=
                step<false>(task, task.users + triple.user * task.stride, task.items + triple.positive * task.stride,
                            task.items + triple.negative * task.stride);
            ++tally.samples;
        }
        if (n >= last) continue;
        triple = sample_triple(task, n);
        if (triple.negative < 0) continue;
        fetch(task.users + triple.user * task.stride, task.stride);
        fetch(task.items + triple.positive * task.stride, task.stride);
        fetch(task.items + triple.negative * task.stride, task.stride);
    }
    return tally;
}

static void fold(const BprTask& task, int64_t user, int64_t samples) {
    const int64_t begin = task.starts[user], count = task.starts[user + 1] - begin;
    BprTask current = task;
    for (int64_t n = 0; n < samples; ++n) {
        const uint64_t hash = mix(task.seed + (uint64_t)n * GOLDEN);
        const int32_t negative = sample_negative(task, (int32_t)user, hash);
        if (negative < 0) continue;
        current.rate = task.rate * (1.0f - (float)n / (float)samples);
        step<true>(current, task.users + user * task.stride,
                   task.items + task.columns[begin + scaled(hash, count)] * task.stride,
                   task.items + negative * task.stride);
    }
}

extern const Bpr bpr;
const Bpr bpr = {train, fold};

}  // namespace ISA
}  // namespace firth
