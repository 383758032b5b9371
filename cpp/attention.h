// Self-attention over one text: rotary positions, scores biased by distance, full or local. Included by hot files.
#pragma once

#include "tiles.h"
#include "vec.h"

namespace firth {
namespace ISA {

struct AttentionWorkspace {
    float *keys, *values, *scores, *mixed;
};

// Rotates the queries and keys of one text in place (Su et al. 2021); `qkv` has rows of queries, keys and values.
static void rotate(const EncoderNet& net, const Rotary& rotary, float* qkv, int64_t stride, int64_t length) {
    const int64_t half = rotary.half, d = net.dim / net.heads;
    for (int64_t position = 0; position < length; ++position) {
        const float *cos = rotary.cos + position * half, *sin = rotary.sin + position * half;
        for (int64_t head = 0; head < 2 * net.heads; ++head) {
            float *low = qkv + position * stride + head * d, *high = low + half;
            int64_t i = 0;
            for (; i + LANES <= half; i += LANES) {
                const vec a = load_loose(low + i), b = load_loose(high + i);
                const vec c = load_loose(cos + i), s = load_loose(sin + i);
                store_loose(low + i, a * c - b * s);
                store_loose(high + i, b * c + a * s);
            }
            for (; i < half; ++i) {
                const float a = low[i], b = high[i];
                low[i] = a * cos[i] - b * sin[i];
                high[i] = b * cos[i] + a * sin[i];
            }
        }
    }
}

// Replaces one row of scores by e^(score - largest) and returns the sum. Scores before `first` and from `last` on do
// not count and become 0 or nearly so; the row is padded. `bias` is added to the scores, if there is one.
static float exponents(float* scores, int64_t first, int64_t last, const float* bias) {
    const int64_t width = padded(last);
    for (int64_t c = 0; bias && c < width; c += LANES) store(scores + c, load(scores + c) + load_loose(bias + c));
    for (int64_t c = 0; c < first; ++c) scores[c] = -1e30f;
    for (int64_t c = last; c < width; ++c) scores[c] = -1e30f;
    vec high = load(scores);
    for (int64_t c = LANES; c < width; c += LANES) high = larger(high, load(scores + c));
    float largest = high[0];
    for (int i = 1; i < LANES; ++i) largest = high[i] > largest ? high[i] : largest;
    vec total = {};
    for (int64_t c = 0; c < width; c += LANES) {
        const vec value = exp_vec(load(scores + c) - largest);
        store(scores + c, value);
        total += value;
    }
    return sum(total);
}

// Keys as panels of d rows with PANEL positions each, values as panels with one row per position.
static void pack_head(const float* key, const float* value, int64_t stride, int64_t length, int64_t d,
                      const AttentionWorkspace& workspace) {
    for (int64_t first = 0; first < padded(length); first += PANEL)
        for (int64_t position = first; position < first + PANEL; ++position) {
            float* to = workspace.keys + first * d + (position - first);
            for (int64_t c = 0; c < d; ++c) to[c * PANEL] = position < length ? key[position * stride + c] : 0.0f;
        }
    for (int64_t first = 0; first < padded(d); first += PANEL)
        for (int64_t position = 0; position < length; ++position) {
            float* to = workspace.values + first * length + position * PANEL;
            const float* from = value + position * stride + first;
            const int64_t count = d - first < PANEL ? d - first : PANEL;
            for (int64_t c = 0; c < count; ++c) to[c] = from[c];
            for (int64_t c = count; c < PANEL; ++c) to[c] = 0;
        }
}

// One text: `qkv` has rows of `stride` with queries (already scaled), keys and values of all heads. A tile of queries
// at a time, so that scores need TILE rows; local layers only visit the panels of keys that a window touches.
static void attend(const EncoderNet& net, const EncoderLayer& block, float* qkv, int64_t stride, int64_t length,
                   float* out, int64_t width, const AttentionWorkspace& workspace) {
    const int64_t d = net.dim / net.heads, window = block.window ? block.window : length;
    if (block.rotary.half) rotate(net, block.rotary, qkv, stride, length);
    for (int64_t head = 0; head < net.heads; ++head) {
        const float* query = qkv + head * d;
        pack_head(query + net.dim, query + 2 * net.dim, stride, length, d, workspace);
        const float* bias = net.distance_bias ? net.distance_bias + head * net.distance_stride : nullptr;
        for (int64_t row = 0; row < length; row += TILE) {
            const int64_t rows = length - row < TILE ? length - row : TILE;
            const int64_t before = row > window ? (row - window) / PANEL * PANEL : 0;
            const int64_t end = row + rows + window < length ? row + rows + window : length;
            const int64_t keys = end - before, across = padded(keys);
            const Panels key_panels{workspace.keys + before * d, d, across / PANEL, d * PANEL};
            multiply(query + row * stride, rows, stride, key_panels, nullptr, {workspace.scores, across});
            float sums[TILE];
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t i = row + r, first = i - window > before ? i - window - before : 0;
                const int64_t last = i + window + 1 < end ? i + window + 1 - before : keys;
                float* scores = workspace.scores + r * across;
                sums[r] = exponents(scores, first, last, bias ? bias + net.max_positions - 1 - i + before : nullptr);
                for (int64_t c = padded(last); c < across; ++c) scores[c] = 0;
            }
            const Panels value_panels{workspace.values + before * PANEL, keys, padded(d) / PANEL, length * PANEL};
            multiply(workspace.scores, rows, across, value_panels, nullptr, {workspace.mixed, padded(d)});
            for (int64_t r = 0; r < rows; ++r) {
                float* to = out + (row + r) * width + head * d;
                const float scale = 1 / sums[r];
                for (int64_t c = 0; c < d; ++c) to[c] = workspace.mixed[r * padded(d) + c] * scale;
            }
        }
    }
}

}  // namespace ISA
}  // namespace firth
