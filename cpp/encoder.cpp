#include "encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu.h"
#include "threads.h"

namespace firth {
namespace {

const EncoderKernel& chosen() {
#if defined(__x86_64__)
    const auto& isa = chosen_isa();
    if (isa == "avx512") return avx512::encoder_kernel;
    if (isa == "avx2") return avx2::encoder_kernel;
#endif
    return baseline::encoder_kernel;
}

}  // namespace

float* Encoder::take(int64_t floats) {
    kept_.emplace_back(static_cast<size_t>((floats + 15) / 16));
    return kept_.back()[0].floats;
}

const float* Encoder::padded(const float* from, int64_t count) {
    float* to = take(kernel_->padded(count));
    std::copy_n(from, count, to);
    return to;
}

Encoder::Encoder(const Settings& given, const std::vector<const float*>& arrays) : kernel_(&chosen()) {
    const float* const* next = arrays.data();
    net_ = {given.layers,     given.dim,     given.heads, given.hidden, given.places,
            given.activation, given.epsilon, given.bytes, next[0],      next[1],
            next[2],          nullptr,       nullptr,     nullptr};
    net_.gain = padded(next[3], given.dim);
    net_.shift = padded(next[4], given.dim);
    next += 5;
    const auto linear = [&](int64_t out, int64_t in) {
        Linear found{in, out, next[0], next[1], nullptr, nullptr, nullptr, nullptr};
        const int64_t width = kernel_->padded(out);
        found.weights = take((kernel_->packed_size(found, given.bytes) + 3) / 4);
        found.bias = take(width);
        found.scales = take(width);
        found.sums = reinterpret_cast<int32_t*>(take(width));
        next += 2;
        return found;
    };
    const auto packed = [&](Linear found) {
        kernel_->pack(found, given.bytes);
        return found;
    };
    for (int64_t l = 0; l < given.layers; ++l) {
        EncoderLayer block{};
        // Queries divided by √d here need no division of scores later.
        Linear qkv = linear(3 * given.dim, given.dim);
        std::vector<float> weights(qkv.given, qkv.given + 3 * given.dim * given.dim);
        std::vector<float> bias(qkv.given_bias, qkv.given_bias + 3 * given.dim);
        const float scale = 1 / std::sqrt(static_cast<float>(given.dim / given.heads));
        for (int64_t i = 0; i < given.dim * given.dim; ++i) weights[static_cast<size_t>(i)] *= scale;
        for (int64_t i = 0; i < given.dim; ++i) bias[static_cast<size_t>(i)] *= scale;
        qkv.given = weights.data();
        qkv.given_bias = bias.data();
        block.query_key_value = packed(qkv);
        block.output = packed(linear(given.dim, given.dim));
        block.attention_gain = padded(next[0], given.dim);
        block.attention_shift = padded(next[1], given.dim);
        next += 2;
        block.wide = packed(linear(given.hidden, given.dim));
        block.back = packed(linear(given.dim, given.hidden));
        block.feed_gain = padded(next[0], given.dim);
        block.feed_shift = padded(next[1], given.dim);
        next += 2;
        blocks_.push_back(block);
    }
    net_.blocks = blocks_.data();
}

void Encoder::encode(const int32_t* ids, const int64_t* starts, int64_t texts, const EncoderAsk& ask,
                     int64_t chunk_tokens, float* out, int threads) const {
    std::vector<int64_t> firsts;  // of each chunk's texts
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
        std::vector<Line> room(static_cast<size_t>(kernel_->room(net_, most, longest) / 16 + 1));
        std::vector<int64_t> own;
        for (int64_t c = next.fetch_add(1); c < chunks; c = next.fetch_add(1)) {
            const int64_t first = firsts[static_cast<size_t>(c)], last = firsts[static_cast<size_t>(c) + 1];
            own.assign(starts + first, starts + last + 1);
            for (int64_t& start : own) start -= starts[first];
            kernel_->encode(net_, ask, {ids + starts[first], own.data(), last - first, out + first * ask.width},
                            room[0].floats);
        }
    });
}

}  // namespace firth
