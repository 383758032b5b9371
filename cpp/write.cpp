#include "write.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "cpu.h"
#include "threads.h"

namespace firth {
namespace {

const Rows& kernel() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") return avx512::rows;
    if (isa == "avx2") return avx2::rows;
#endif
    return baseline::rows;
}

// Blocks all threads until the last one has arrived. Waits are microseconds, so threads spin; without a free core they
// soon yield.
class SpinBarrier {
  public:
    explicit SpinBarrier(int threads) : threads_(threads) {}
    void wait() {
        const int generation = generation_.load(std::memory_order_relaxed);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            waiting_.store(0, std::memory_order_relaxed);
            generation_.store(generation + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; generation_.load(std::memory_order_acquire) == generation; ++spins)
            if (spins > 2000) std::this_thread::yield();
    }

  private:
    const int threads_;
    std::atomic<int> waiting_{0}, generation_{0};
};

void layer_norm(const float* x, int64_t dim, const Affine& norm, float epsilon, float* out) {
    double mean = 0, square = 0;
    for (int64_t d = 0; d < dim; ++d) mean += x[d];
    mean /= static_cast<double>(dim);
    for (int64_t d = 0; d < dim; ++d) square += (x[d] - mean) * (x[d] - mean);
    const auto middle = static_cast<float>(mean);
    const auto scale = static_cast<float>(1 / std::sqrt(square / static_cast<double>(dim) + epsilon));
    for (int64_t d = 0; d < dim; ++d) out[d] = (x[d] - middle) * scale * norm.weight[d] + norm.bias[d];
}

float activate(float x, DecoderActivation activation) {
    switch (activation) {
        case DecoderActivation::relu: return x > 0 ? x : 0;
        case DecoderActivation::gelu: return 0.5f * x * (1 + std::erf(x * 0.70710678f));
        case DecoderActivation::gelu_tanh: return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
        default: return x / (1 + std::exp(-x));
    }
}

// Rotates pairs of adjacent dimensions by the angles of this position.
void rotate(float* x, int64_t dim, const float* rotary) {
    for (int64_t i = 0; i < dim / 2; ++i) {
        const float even = x[2 * i], odd = x[2 * i + 1], cosine = rotary[i], sine = rotary[dim / 2 + i];
        x[2 * i] = even * cosine - odd * sine;
        x[2 * i + 1] = even * sine + odd * cosine;
    }
}

struct Part {
    int64_t first, last;
    Part(int64_t count, int thread, int threads)
        : first(count * thread / threads), last(count * (thread + 1) / threads) {}
    int64_t size() const { return last - first; }
};

}  // namespace

void Writer::write(float* x, int64_t position, const float* rotary, float* keys, float* values, float* logits,
                   int threads) const {
    const Rows& rows = kernel();
    const int64_t head = dim / heads, gated = activation == DecoderActivation::swiglu ? 2 : 1;
    const float scale = 1 / std::sqrt(static_cast<float>(head));
    std::vector<float> qkv(static_cast<size_t>(3 * dim)), mixed(static_cast<size_t>(dim));
    std::vector<float> up(static_cast<size_t>(gated * hidden)), added(static_cast<size_t>(dim));
    SpinBarrier barrier(threads);
    on_threads(threads, [&](int thread) {
        std::vector<float> input(static_cast<size_t>(dim)), scores(static_cast<size_t>(position + 1));
        // Rows [part] of a matrix times `from`, into `to`.
        const auto multiply = [&](const Affine& matrix, int64_t width, Part part, const float* from, float* to) {
            const float* bias = matrix.bias ? matrix.bias + part.first : nullptr;
            rows.multiply(matrix.weight + part.first * width, width, part.size(), from, bias, to + part.first);
        };
        const Part own(dim, thread, threads), own_heads(heads, thread, threads), own_hidden(hidden, thread, threads);
        for (size_t l = 0; l < layers.size(); ++l) {
            const Layer& layer = layers[l];
            layer_norm(x, dim, layer.attention_norm, epsilon,
                       input.data());  // computed by every thread: no barrier needed
            multiply(layer.query_key_value, dim, Part(3 * dim, thread, threads), input.data(), qkv.data());
            barrier.wait();
            for (int64_t h = own_heads.first; h < own_heads.last; ++h) {
                float *query = qkv.data() + h * head, *key = query + dim, *value = key + dim;
                if (rotary) rotate(query, head, rotary), rotate(key, head, rotary);
                const int64_t begin = (static_cast<int64_t>(l) * heads + h) * max_positions * head;
                std::copy_n(key, head, keys + begin + position * head);
                std::copy_n(value, head, values + begin + position * head);
                rows.attend(query, keys + begin, values + begin, position + 1, head, scale, scores.data(),
                            mixed.data() + h * head);
            }
            barrier.wait();
            multiply(layer.output, dim, own, mixed.data(), added.data());
            for (int64_t d = own.first; d < own.last; ++d) x[d] += added[static_cast<size_t>(d)];
            barrier.wait();
            layer_norm(x, dim, layer.feed_norm, epsilon, input.data());
            multiply(layer.up, dim, own_hidden, input.data(), up.data());
            for (int64_t d = own_hidden.first; d < own_hidden.last; ++d)
                up[static_cast<size_t>(d)] = activate(up[static_cast<size_t>(d)], activation);
            if (gated == 2) {  // the gate's rows come first
                const Affine other{layer.up.weight + hidden * dim, layer.up.bias + hidden};
                multiply(other, dim, own_hidden, input.data(), up.data() + hidden);
                for (int64_t d = own_hidden.first; d < own_hidden.last; ++d)
                    up[static_cast<size_t>(d)] *= up[static_cast<size_t>(hidden + d)];
            }
            barrier.wait();
            multiply(layer.down, hidden, own, up.data(), added.data());
            for (int64_t d = own.first; d < own.last; ++d) x[d] += added[static_cast<size_t>(d)];
            barrier.wait();
        }
        layer_norm(x, dim, norm, epsilon, input.data());
        multiply(Affine{outputs, nullptr}, dim, Part(vocabulary_size, thread, threads), input.data(), logits);
    });
}

}  // namespace firth
