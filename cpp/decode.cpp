// The kernels of `Decoder`: norms, activations, rotary positions and attention. Products are in products.h.
#include "decoder.h"

#include "products.h"
#include "vec.h"

namespace firth {
namespace ISA {

static inline float largest_lane(vec v) {
    float most = v[0];
    for (int i = 1; i < LANES; ++i) most = v[i] > most ? v[i] : most;
    return most;
}

static void norm(const float* x, int64_t dim, const Norm& norm, bool rms, float epsilon, float* out) {
    const int64_t full = dim / LANES * LANES;
    float mean = 0;
    if (!rms) {
        vec total = {};
        for (int64_t d = 0; d < full; d += LANES) total += loose(x + d);
        mean = sum(total);
        for (int64_t d = full; d < dim; ++d) mean += x[d];
        mean /= static_cast<float>(dim);
    }
    vec squares = {};
    for (int64_t d = 0; d < full; d += LANES) squares += (loose(x + d) - mean) * (loose(x + d) - mean);
    float square = sum(squares);
    for (int64_t d = full; d < dim; ++d) square += (x[d] - mean) * (x[d] - mean);
    const float scale = 1 / __builtin_sqrtf(square / static_cast<float>(dim) + epsilon);
    for (int64_t d = 0; d < full; d += LANES) {
        const vec value = (loose(x + d) - mean) * scale * loose(norm.weight + d);
        store_loose(out + d, norm.bias ? value + loose(norm.bias + d) : value);
    }
    for (int64_t d = full; d < dim; ++d)
        out[d] = (x[d] - mean) * scale * norm.weight[d] + (norm.bias ? norm.bias[d] : 0.0f);
}

static inline vec sigmoid(vec x) { return 1.0f / (1.0f + exp_vec(-x)); }
static inline vec tanh_vec(vec x) { return 1.0f - 2.0f / (1.0f + exp_vec(2.0f * x)); }

static inline vec activated(vec x, DecoderActivation activation) {
    switch (activation) {
        case DecoderActivation::relu: return choose(x > 0.0f, x, vec{});
        case DecoderActivation::silu: return x * sigmoid(x);
        case DecoderActivation::gelu_tanh: return x * sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
        default:
            for (int i = 0; i < LANES; ++i) x[i] *= 0.5f * (1 + __builtin_erff(x[i] * 0.70710678f));
            return x;
    }
}

// x = activation of x, times `times` unless that is null. x may be read and written up to the next register.
static void activate(float* x, const float* times, int64_t count, DecoderActivation activation) {
    for (int64_t i = 0; i < count; i += LANES) {
        const vec value = activated(loose(x + i), activation);
        store_loose(x + i, times ? value * loose(times + i) : value);
    }
}

static void cap(float* x, int64_t count, float limit) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store_loose(x + i, limit * tanh_vec(loose(x + i) / limit));
    for (; i < count; ++i) x[i] = limit * tanh_vec(splat(x[i] / limit))[0];
}

static void rotate(float* x, int64_t pairs, const float* cosines, const float* sines, bool interleaved) {
    const int64_t apart = interleaved ? 1 : pairs, step = interleaved ? 2 : 1;
    for (int64_t i = 0; i < pairs; ++i) {
        float *one = x + i * step, *other = one + apart;
        const float first = *one, second = *other;
        *one = first * cosines[i] - second * sines[i];
        *other = first * sines[i] + second * cosines[i];
    }
}

// ---- attention ----

struct Half {
    typedef uint16_t number;
    static inline vec load(const uint16_t* p) { return load_half(p); }
};
struct Single {
    typedef float number;
    static inline vec load(const float* p) { return loose(p); }
};

// Scores of ROWS queries at the 16 positions of a panel of keys.
template <class Cache, int ROWS>
static inline void score_panel(const Attention& task, const typename Cache::number* keys, float* scores) {
    constexpr int PARTS = PANEL_ROWS / LANES;
    vec total[ROWS][PARTS] = {};
    for (int64_t d = 0; d < task.dim; ++d, keys += PANEL_ROWS)
        EACH (int part = 0; part < PARTS; ++part) {
            const vec key = Cache::load(keys + part * LANES);
            EACH (int r = 0; r < ROWS; ++r) total[r][part] += task.queries[r][d] * key;
        }
    EACH (int r = 0; r < ROWS; ++r)
        EACH (int part = 0; part < PARTS; ++part)
            store_loose(scores + r * task.score_stride + part * LANES, total[r][part] * task.scale);
}

// Replaces scores from `first` to `last` by e^(score − largest), and the others of these panels by 0.
static void exponents(float* scores, int64_t begin, int64_t end, int64_t first, int64_t last, float cap_at,
                      float* largest, float* total) {
    for (int64_t p = begin; p < first; ++p) scores[p - begin] = -1e30f;
    for (int64_t p = last; p < end; ++p) scores[p - begin] = -1e30f;
    if (cap_at > 0) cap(scores + (first - begin), last - first, cap_at);
    vec high = splat(-1e30f);
    for (int64_t p = 0; p < end - begin; p += LANES) high = choose(loose(scores + p) > high, loose(scores + p), high);
    const float most = largest_lane(high);
    vec sums = {};
    for (int64_t p = 0; p < end - begin; p += LANES) {
        const vec score = loose(scores + p);
        const vec value = choose(score > -1e29f, exp_vec(score - most), choose(score != score, score, vec{}));
        store_loose(scores + p, value);
        sums += value;
    }
    *largest = most;
    *total = sum(sums);
}

// COLUMNS registers of the weighted sum of the values, for ROWS queries.
template <class Cache, int ROWS, int COLUMNS>
static inline void mix(const Attention& task, int64_t begin, int64_t end, int64_t column) {
    const auto* values = static_cast<const typename Cache::number*>(task.values) + begin * task.width + column;
    vec total[ROWS][COLUMNS] = {};
    for (int64_t p = 0; p < end - begin; ++p, values += task.width)
        EACH (int c = 0; c < COLUMNS; ++c) {
            const vec value = Cache::load(values + c * LANES);
            EACH (int r = 0; r < ROWS; ++r) total[r][c] += task.scores[r * task.score_stride + p] * value;
        }
    EACH (int r = 0; r < ROWS; ++r)
        EACH (int c = 0; c < COLUMNS; ++c) store_loose(task.out[r] + column + c * LANES, total[r][c]);
}

template <class Cache, int ROWS>
static void attend_rows(const Attention& task) {
    if constexpr (ROWS > 0) {
        if (task.rows < ROWS) return attend_rows<Cache, ROWS - 1>(task);
        int64_t first = task.first[0], last = task.last[0];
        for (int r = 1; r < ROWS; ++r) {
            first = task.first[r] < first ? task.first[r] : first;
            last = task.last[r] > last ? task.last[r] : last;
        }
        const int64_t begin = first / PANEL_ROWS * PANEL_ROWS, end = round_up(last, PANEL_ROWS);
        const auto* keys = static_cast<const typename Cache::number*>(task.keys) + begin * task.dim;
        for (int64_t p = begin; p < end; p += PANEL_ROWS, keys += PANEL_ROWS * task.dim)
            score_panel<Cache, ROWS>(task, keys, task.scores + (p - begin));
        for (int r = 0; r < ROWS; ++r)
            exponents(task.scores + r * task.score_stride, begin, end, task.first[r], task.last[r], task.cap,
                      task.largest[r], task.total[r]);
        constexpr int COLUMNS = LANES == 16 ? 4 : 2;
        int64_t column = 0;
        for (; column + COLUMNS * LANES <= task.width; column += COLUMNS * LANES)
            mix<Cache, ROWS, COLUMNS>(task, begin, last, column);
        for (; column < task.width; column += LANES) mix<Cache, ROWS, 1>(task, begin, last, column);
    }
}

static void attend(const Attention& task) {
    if (task.half) attend_rows<Half, ATTEND_ROWS>(task);
    else attend_rows<Single, ATTEND_ROWS>(task);
}

extern const DecoderKernel decoder_kernel;
const DecoderKernel decoder_kernel = {norm, quantize, multiply_rows, multiply_panels, activate, cap, rotate, attend};

}  // namespace ISA
}  // namespace firth
