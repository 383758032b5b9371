#include "bpr.h"

#include "hash.h"
#include "vec.h"

namespace firth {
namespace ISA {

constexpr int TRIES = 16;  // draws for an item that the user does not have

struct Triple {
    int32_t user, liked, other;  // other = -1: none was found
};

static bool has(const BprJob& job, int32_t user, int32_t item) {
    int64_t low = job.starts[user], high = job.starts[user + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (job.columns[middle] < item) low = middle + 1;
        else high = middle;
    }
    return low < job.starts[user + 1] && job.columns[low] == item;
}

// The item that a user is asked to like less.
static int32_t draw_other(const BprJob& job, int32_t user, uint64_t state) {
    for (int i = 0; i < TRIES; ++i) {
        state += GOLDEN;
        const uint64_t bits = mix(state);
        const auto slot = (int32_t)(((bits >> 32) * (uint64_t)job.item_count) >> 32);
        const Alias alias = job.noise[slot];
        const int32_t item = (uint32_t)bits < alias.cut ? slot : alias.other;
        if (!has(job, user, item)) return item;
    }
    return -1;
}

static inline int64_t scaled(uint64_t bits, int64_t count) {
    return (int64_t)(((unsigned __int128)bits * (unsigned __int128)count) >> 64);
}

static Triple triple(const BprJob& job, int64_t sample) {
    const uint64_t hash = mix(job.seed + (uint64_t)sample * GOLDEN);
    const int64_t entry = scaled(hash, job.entries);
    const int32_t user = job.owners[entry];
    return {user, job.columns[entry], draw_other(job, user, hash)};
}

static inline void fetch(const float* row, int64_t stride) {
    for (int64_t d = 0; d < stride; d += 16) __builtin_prefetch(row + d, 1, 3);
}

// One step along the gradient; the loss before it. With FOLD the items stay as they are.
template <bool FOLD>
static inline double step(const BprJob& job, float* user, float* liked, float* other) {
    const int64_t stride = job.stride;
    vec total = {};
    for (int64_t d = 0; d < stride; d += LANES) total += load(user + d) * (load(liked + d) - load(other + d));
    const float x = sum(total);
    const float e = exp_vec(splat(x > 0 ? -x : x))[0];  // e^−|x|
    const float pull = (x > 0 ? e : 1.0f) / (1.0f + e);  // σ(−x)
    const float one = user[job.bias];
    const vec forward = splat(job.rate * pull), shrink = splat(1.0f - job.rate * job.regularization);
    for (int64_t d = 0; d < stride; d += LANES) {
        const vec u = load(user + d), i = load(liked + d), j = load(other + d);
        store(user + d, shrink * u + forward * (i - j));
        if (FOLD) continue;
        store(liked + d, shrink * i + forward * u);
        store(other + d, shrink * j - forward * u);
    }
    user[job.bias] = one;
    return (double)(x > 0 ? 0.0f : -x) + (double)log_vec(splat(1.0f + e))[0];
}

static BprTally train(const BprJob& job, int64_t first, int64_t last) {
    constexpr int64_t AHEAD = 4;  // samples whose rows are fetched meanwhile
    Triple coming[AHEAD];
    BprTally tally;
    for (int64_t n = first; n < last + AHEAD; ++n) {
        Triple& place = coming[n % AHEAD];
        if (n >= first + AHEAD && place.other >= 0) {
            tally.loss += step<false>(job, job.users + place.user * job.stride, job.items + place.liked * job.stride,
                                      job.items + place.other * job.stride);
            ++tally.samples;
        }
        if (n >= last) continue;
        place = triple(job, n);
        if (place.other < 0) continue;
        fetch(job.users + place.user * job.stride, job.stride);
        fetch(job.items + place.liked * job.stride, job.stride);
        fetch(job.items + place.other * job.stride, job.stride);
    }
    return tally;
}

static void fold(const BprJob& job, int64_t user, int64_t samples) {
    const int64_t begin = job.starts[user], count = job.starts[user + 1] - begin;
    BprJob now = job;
    for (int64_t n = 0; n < samples; ++n) {
        const uint64_t hash = mix(job.seed + (uint64_t)n * GOLDEN);
        const int32_t other = draw_other(job, (int32_t)user, hash);
        if (other < 0) continue;
        now.rate = job.rate * (1.0f - (float)n / (float)samples);
        step<true>(now, job.users + user * job.stride, job.items + job.columns[begin + scaled(hash, count)] * job.stride,
                   job.items + other * job.stride);
    }
}

extern const Bpr bpr;
const Bpr bpr = {train, fold};

}  // namespace ISA
}  // namespace firth
