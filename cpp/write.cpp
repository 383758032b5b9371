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
    const auto& isa = chosen_isa();
    if (isa == "avx512") return avx512::rows;
    if (isa == "avx2") return avx2::rows;
#endif
    return baseline::rows;
}

// All threads wait until the last has come. Waits are microseconds, so they look again rather than sleep; a thread that has no
// core of its own soon gives way to the one it waits for.
class Meeting {
public:
    explicit Meeting(int threads) : threads_(threads) {}
    void wait() {
        const int turn = turn_.load(std::memory_order_relaxed);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            waiting_.store(0, std::memory_order_relaxed);
            turn_.store(turn + 1, std::memory_order_release);
            return;
        }
        for (int looks = 0; turn_.load(std::memory_order_acquire) == turn; ++looks)
            if (looks > 2000) std::this_thread::yield();
    }

private:
    const int threads_;
    std::atomic<int> waiting_{0}, turn_{0};
};

void normed(const float* x, int64_t dim, const Affine& norm, float epsilon, float* out) {
    double mean = 0, square = 0;
    for (int64_t d = 0; d < dim; ++d) mean += x[d];
    mean /= static_cast<double>(dim);
    for (int64_t d = 0; d < dim; ++d) square += (x[d] - mean) * (x[d] - mean);
    const auto middle = static_cast<float>(mean);
    const auto scale = static_cast<float>(1 / std::sqrt(square / static_cast<double>(dim) + epsilon));
    for (int64_t d = 0; d < dim; ++d) out[d] = (x[d] - middle) * scale * norm.weight[d] + norm.bias[d];
}

float bent(float x, Bend bend) {
    switch (bend) {
        case Bend::relu: return x > 0 ? x : 0;
        case Bend::gelu: return 0.5f * x * (1 + std::erf(x * 0.70710678f));
        case Bend::gelu_tanh: return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
        default: return x / (1 + std::exp(-x));
    }
}

// Pairs of neighbouring dimensions, turned by this place's angle.
void turn(float* x, int64_t dim, const float* turns) {
    for (int64_t i = 0; i < dim / 2; ++i) {
        const float even = x[2 * i], odd = x[2 * i + 1], cosine = turns[i], sine = turns[dim / 2 + i];
        x[2 * i] = even * cosine - odd * sine;
        x[2 * i + 1] = even * sine + odd * cosine;
    }
}

struct Part {
    int64_t first, last;
    Part(int64_t count, int thread, int threads) : first(count * thread / threads), last(count * (thread + 1) / threads) {}
    int64_t size() const { return last - first; }
};

}  // namespace

void Writer::write(float* x, int64_t place, const float* turns, float* keys, float* values, float* logits,
                   int threads) const {
    const Rows& rows = kernel();
    const int64_t head = dim / heads, gated = bend == Bend::swiglu ? 2 : 1;
    const float scale = 1 / std::sqrt(static_cast<float>(head));
    std::vector<float> qkv(static_cast<size_t>(3 * dim)), mixed(static_cast<size_t>(dim));
    std::vector<float> wide(static_cast<size_t>(gated * hidden)), added(static_cast<size_t>(dim));
    Meeting meeting(threads);
    on_threads(threads, [&](int thread) {
        std::vector<float> input(static_cast<size_t>(dim)), scores(static_cast<size_t>(place + 1));
        // Rows [part] of a matrix times `from`, into `to`.
        const auto multiply = [&](const Affine& matrix, int64_t width, Part part, const float* from, float* to) {
            const float* bias = matrix.bias ? matrix.bias + part.first : nullptr;
            rows.multiply(matrix.weight + part.first * width, width, part.size(), from, bias, to + part.first);
        };
        const Part own(dim, thread, threads), own_heads(heads, thread, threads), own_hidden(hidden, thread, threads);
        for (size_t l = 0; l < layers.size(); ++l) {
            const Layer& layer = layers[l];
            normed(x, dim, layer.attention_norm, epsilon, input.data());  // each thread for itself: no need to meet
            multiply(layer.query_key_value, dim, Part(3 * dim, thread, threads), input.data(), qkv.data());
            meeting.wait();
            for (int64_t h = own_heads.first; h < own_heads.last; ++h) {
                float *query = qkv.data() + h * head, *key = query + dim, *value = key + dim;
                if (turns) turn(query, head, turns), turn(key, head, turns);
                const int64_t begin = (static_cast<int64_t>(l) * heads + h) * places * head;
                std::copy_n(key, head, keys + begin + place * head);
                std::copy_n(value, head, values + begin + place * head);
                rows.attend(query, keys + begin, values + begin, place + 1, head, scale, scores.data(),
                            mixed.data() + h * head);
            }
            meeting.wait();
            multiply(layer.output, dim, own, mixed.data(), added.data());
            for (int64_t d = own.first; d < own.last; ++d) x[d] += added[static_cast<size_t>(d)];
            meeting.wait();
            normed(x, dim, layer.feed_norm, epsilon, input.data());
            multiply(layer.wide, dim, own_hidden, input.data(), wide.data());
            for (int64_t d = own_hidden.first; d < own_hidden.last; ++d)
                wide[static_cast<size_t>(d)] = bent(wide[static_cast<size_t>(d)], bend);
            if (gated == 2) {  // the gate's rows stand first
                const Affine other{layer.wide.weight + hidden * dim, layer.wide.bias + hidden};
                multiply(other, dim, own_hidden, input.data(), wide.data() + hidden);
                for (int64_t d = own_hidden.first; d < own_hidden.last; ++d)
                    wide[static_cast<size_t>(d)] *= wide[static_cast<size_t>(hidden + d)];
            }
            meeting.wait();
            multiply(layer.back, hidden, own, wide.data(), added.data());
            for (int64_t d = own.first; d < own.last; ++d) x[d] += added[static_cast<size_t>(d)];
            meeting.wait();
        }
        normed(x, dim, norm, epsilon, input.data());
        multiply(Affine{outputs, nullptr}, dim, Part(words, thread, threads), input.data(), logits);
    });
}

}  // namespace firth
