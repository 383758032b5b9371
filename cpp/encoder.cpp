#include "encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu.h"
#include "threads.h"

namespace firth {
namespace {

const EncoderKernel& active_kernel() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::encoder_kernel;
    if (isa == "avx2") return avx2::encoder_kernel;
#endif
    return baseline::encoder_kernel;
}

}  // namespace

float* Encoder::take(int64_t floats) {
    buffers_.emplace_back(static_cast<size_t>((floats + 15) / 16));
    return buffers_.back()[0].floats;
}

const float* Encoder::padded(const float* from, int64_t count) {
    float* to = take(kernel_->padded(count));
    std::copy_n(from, count, to);
    return to;
}

Encoder::Encoder(const Settings& settings, const std::vector<const float*>& arrays) : kernel_(&active_kernel()) {
    const float* const* next = arrays.data();
    net_ = {settings.layers,
            settings.dim,
            settings.heads,
            settings.hidden,
            settings.max_positions,
            settings.activation,
            settings.epsilon,
            settings.quantized,
            next[0],
            next[1],
            next[2],
            nullptr,
            nullptr,
            nullptr};
    net_.gain = padded(next[3], settings.dim);
    net_.bias = padded(next[4], settings.dim);
    next += 5;
    const auto linear = [&](int64_t out, int64_t in) {
        Linear linear_layer{in, out, next[0], next[1], nullptr, nullptr, nullptr, nullptr};
        const int64_t width = kernel_->padded(out);
        linear_layer.weights = take((kernel_->packed_size(linear_layer, settings.quantized) + 3) / 4);
        linear_layer.bias = take(width);
        linear_layer.scales = take(width);
        linear_layer.sums = reinterpret_cast<int32_t*>(take(width));
        next += 2;
        return linear_layer;
    };
    const auto packed = [&](Linear linear_layer) {
        kernel_->pack(linear_layer, settings.quantized);
        return linear_layer;
    };
    for (int64_t l = 0; l < settings.layers; ++l) {
        EncoderLayer block{};
        // Queries layout by √d here need no division of scores later.
        Linear qkv = linear(3 * settings.dim, settings.dim);
        std::vector<float> weights(qkv.source, qkv.source + 3 * settings.dim * settings.dim);
        std::vector<float> bias(qkv.source_bias, qkv.source_bias + 3 * settings.dim);
        const float scale = 1 / std::sqrt(static_cast<float>(settings.dim / settings.heads));
        for (int64_t i = 0; i < settings.dim * settings.dim; ++i) weights[static_cast<size_t>(i)] *= scale;
        for (int64_t i = 0; i < settings.dim; ++i) bias[static_cast<size_t>(i)] *= scale;
        qkv.source = weights.data();
        qkv.source_bias = bias.data();
        block.query_key_value = packed(qkv);
        block.output = packed(linear(settings.dim, settings.dim));
        block.attention_gain = padded(next[0], settings.dim);
        block.attention_bias = padded(next[1], settings.dim);
        next += 2;
        block.up = packed(linear(settings.hidden, settings.dim));
        block.down = packed(linear(settings.dim, settings.hidden));
        block.feed_gain = padded(next[0], settings.dim);
        block.feed_bias = padded(next[1], settings.dim);
        next += 2;
        blocks_.push_back(block);
    }
    net_.blocks = blocks_.data();
}

void Encoder::encode(const int32_t* ids, const int64_t* starts, int64_t texts, const LayerSelection& selection,
                     int64_t chunk_tokens, float* out, int threads) const {
    std::vector<int64_t> firsts;  // the first text of each chunk
    int64_t most = 0, longest = 0;
    for (int64_t t = 0; t < texts; ++t) {
        longest = std::max(longest, starts[t + 1] - starts[t]);
        if (firsts.empty() || starts[t + 1] - starts[firsts.back()] > chunk_tokens) firsts.push_back(t);
        most = std::max(most, starts[t + 1] - starts[firsts.back()]);
    }
    firsts.push_back(texts);
    const auto chunks = static_cast<int64_t>(firsts.size()) - 1;
    std::atomic<int64_t> next{0};
    on_threads(static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(threads, chunks))), [&](int) {
        std::vector<Line> workspace(static_cast<size_t>(kernel_->workspace(net_, most, longest) / 16 + 1));
        std::vector<int64_t> own;
        for (int64_t c = next.fetch_add(1); c < chunks; c = next.fetch_add(1)) {
            const int64_t first = firsts[static_cast<size_t>(c)], last = firsts[static_cast<size_t>(c) + 1];
            own.assign(starts + first, starts + last + 1);
            for (int64_t& start : own) start -= starts[first];
            kernel_->encode(net_, selection,
                            {ids + starts[first], own.data(), last - first, out + first * selection.width},
                            workspace[0].floats);
        }
    });
}

}  // namespace firth
