#include "decoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "cpu.h"
#include "threads.h"

namespace firth {

DecoderKernel decoder_kernel() {
#if defined(__x86_64__)
    const auto& isa = active_isa();
    if (isa == "avx512") {
        DecoderKernel kernel = avx512::decoder_kernel;
        if (!__builtin_cpu_supports("avx512vnni")) kernel.multiply_panels = avx2::decoder_kernel.multiply_panels;
        return kernel;
    }
    if (isa == "avx2") return avx2::decoder_kernel;
#endif
    return baseline::decoder_kernel;
}

// Rounds to nearest, ties to even.
uint16_t to_half(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00;
    if (bits >= 0x47800000) return sign | 0x7c00;
    if (bits < 0x38800000) {  // below the least normal number; adding ½ shifts the bits that are kept to the end
        std::memcpy(&value, &bits, 4);
        value += 0.5f;
        std::memcpy(&bits, &value, 4);
        return sign | static_cast<uint16_t>(bits - 0x3f000000);
    }
    bits += 0xc8000fff + ((bits >> 13) & 1);
    return sign | static_cast<uint16_t>(bits >> 13);
}

float from_half(uint16_t half) {
    uint32_t bits = static_cast<uint32_t>(half & 0x7fff) << 13;
    float value;
    std::memcpy(&value, &bits, 4);
    value *= 0x1p112f;
    std::memcpy(&bits, &value, 4);
    if ((half & 0x7c00) == 0x7c00) bits |= 0x7f800000;
    bits |= static_cast<uint32_t>(half & 0x8000) << 16;
    std::memcpy(&value, &bits, 4);
    return value;
}

// ---- weights ----

namespace {

// Of a block: where its codes begin, after the scale and the minimum.
int64_t codes_begin(Storage storage) { return storage == Storage::q4_1 ? 4 : 2; }
int64_t block_bytes(Storage storage) { return codes_begin(storage) + (storage == Storage::q8_0 ? 32 : 16); }

uint16_t half_at(const uint8_t* p) {
    uint16_t half;
    std::memcpy(&half, p, 2);
    return half;
}

}  // namespace

int64_t Weights::row_bytes() const {
    if (storage == Storage::f32) return in * 4;
    if (storage == Storage::f16) return in * 2;
    return blocks() * block_bytes(storage);
}

int64_t Weights::code_bytes() const { return PANEL_ROWS * (storage == Storage::q8_0 ? 32 : 16); }

int64_t Weights::scale_bytes() const {
    return round_up(blocks() * PANEL_ROWS * 2 * (storage == Storage::q4_1 ? 2 : 1), 64);
}

void Weights::pack(uint8_t* to) {
    panels = to;
    const int64_t size = block_bytes(storage), begin = codes_begin(storage), columns = code_bytes() / PANEL_ROWS;
    const int flip = storage == Storage::q8_0 ? 0x80 : 0;
    std::memset(to, 0, static_cast<size_t>(panel_count() * panel_bytes()));
    for (int64_t row = 0; row < out; ++row) {
        const auto* from = static_cast<const uint8_t*>(rows) + row * row_bytes();
        uint8_t* panel = to + row / PANEL_ROWS * panel_bytes();
        const int64_t lane = row % PANEL_ROWS;
        for (int64_t b = 0; b < blocks(); ++b, from += size) {
            std::memcpy(panel + (b * PANEL_ROWS + lane) * 2, from, 2);
            if (storage == Storage::q4_1) std::memcpy(panel + ((blocks() + b) * PANEL_ROWS + lane) * 2, from + 2, 2);
            uint8_t* codes = panel + scale_bytes() + b * code_bytes();
            for (int64_t c = 0; c < columns; ++c)
                codes[c / 4 * 4 * PANEL_ROWS + lane * 4 + c % 4] = static_cast<uint8_t>(from[begin + c] ^ flip);
        }
    }
}

void Weights::read_row(int64_t row, float* to) const {
    const auto* from = static_cast<const uint8_t*>(rows) + row * row_bytes();
    if (storage == Storage::f32) {
        std::memcpy(to, from, static_cast<size_t>(in) * 4);
        return;
    }
    if (storage == Storage::f16) {
        for (int64_t c = 0; c < in; ++c) to[c] = from_half(half_at(from + 2 * c));
        return;
    }
    for (int64_t b = 0; b < blocks(); ++b, from += block_bytes(storage), to += BLOCK_VALUES) {
        const float scale = from_half(half_at(from));
        const float least = storage == Storage::q4_1 ? from_half(half_at(from + 2)) : -8 * scale;
        const uint8_t* codes = from + codes_begin(storage);
        for (int64_t c = 0; c < BLOCK_VALUES; ++c) {
            if (storage == Storage::q8_0) to[c] = scale * static_cast<float>(static_cast<int8_t>(codes[c]));
            else to[c] = scale * static_cast<float>(c < 16 ? codes[c] & 15 : codes[c - 16] >> 4) + least;
        }
    }
}

// ---- forward pass ----

namespace {

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

struct Part {
    int64_t first, last;
};

// The part of a thread.
Part part_of(int64_t count, int64_t thread, int64_t threads) {
    return {count * thread / threads, count * (thread + 1) / threads};
}

// Memory for the activations of a call, aligned to cache lines.
class Workspace {
  public:
    template <class T>
    T* take(int64_t count) {
        buffers_.emplace_back(static_cast<size_t>(round_up(count * static_cast<int64_t>(sizeof(T)), 64) / 64));
        return reinterpret_cast<T*>(buffers_.back().data());
    }

    Inputs inputs(int64_t tokens, int64_t width) {
        const int64_t stride = round_up(width, BLOCK_VALUES), blocks = stride / BLOCK_VALUES;
        return {take<float>(tokens * stride),
                stride,
                take<int8_t>(tokens * stride),
                take<float>(tokens * blocks),
                take<float>(tokens * blocks),
                take<int32_t>(tokens * blocks),
                stride,
                blocks};
    }

  private:
    struct alignas(64) Line {
        char bytes[64];
    };
    std::vector<std::vector<Line>> buffers_;
};

// Outputs [first, last) panels of 16 of weights in any storage; `out` begins with the first of them.
void multiply_part(const DecoderKernel& kernel, const Weights& weights, Part panels, const Inputs& x, int64_t tokens,
                   float* out, int64_t stride) {
    if (panels.first == panels.last) return;
    if (quantized(weights.storage)) kernel.multiply_panels(weights, panels.first, panels.last, x, tokens, out, stride);
    else
        kernel.multiply(weights, panels.first * PANEL_ROWS, std::min(weights.out, panels.last * PANEL_ROWS), x, tokens,
                        out, stride);
}

}  // namespace

void multiply(const Weights& weights, const float* x, int64_t tokens, float* out, int threads) {
    const DecoderKernel kernel = decoder_kernel();
    Workspace workspace;
    const Inputs inputs = workspace.inputs(tokens, weights.in);
    const int64_t width = round_up(weights.out, PANEL_ROWS);
    float* padded = workspace.take<float>(tokens * width);
    for (int64_t t = 0; t < tokens; ++t) {
        std::copy_n(x + t * weights.in, weights.in, inputs.floats + t * inputs.stride);
        if (quantized(weights.storage)) kernel.quantize(x + t * weights.in, weights.in, inputs, t, 0);
    }
    on_threads(threads, [&](int thread) {
        const Part own = part_of(weights.panel_count(), thread, threads);
        multiply_part(kernel, weights, own, inputs, tokens, padded + own.first * PANEL_ROWS, width);
    });
    for (int64_t t = 0; t < tokens; ++t) std::copy_n(padded + t * width, weights.out, out + t * weights.out);
}

int64_t Decoder::cache_bytes(int64_t positions) const {
    return static_cast<int64_t>(layers.size()) * kv_heads * positions * head_width() * (half_cache ? 2 : 4);
}

namespace {

// One call of `forward`: the activations of its tokens, and the steps of a layer. Between steps, threads wait for each
// other. Steps divide tokens, outputs or heads among the threads.
struct Pass {
    const Decoder& net;
    const DecoderKernel kernel;
    const int32_t* ids;
    const int64_t tokens, position;
    const DecoderCache cache;
    const int threads;
    SpinBarrier barrier;
    Workspace workspace;

    const int64_t width, group, splits, query_width, kv_width, qkv_width, end;
    float *x, *added, *qkv, *partial, *partial_stats;
    Inputs input, mixed, inner;
    std::vector<float*> scores, gates;
    std::atomic<int64_t> next_tile{0};

    Pass(const Decoder& decoder, const int32_t* token_ids, int64_t count, int64_t at, const DecoderCache& memory,
         int thread_count)
        : net(decoder), kernel(decoder_kernel()), ids(token_ids), tokens(count), position(at), cache(memory),
          threads(thread_count), barrier(thread_count), width(round_up(net.dim, PANEL_ROWS)),
          group(net.heads / net.kv_heads), splits(tokens == 1 ? threads : 1),
          query_width(round_up(net.heads * net.head_dim, PANEL_ROWS)),
          kv_width(round_up(net.kv_heads * net.head_dim, PANEL_ROWS)), qkv_width(query_width + 2 * kv_width),
          end(round_up(position + tokens, PANEL_ROWS)), x(workspace.take<float>(tokens * width)),
          added(workspace.take<float>(tokens * width)), qkv(workspace.take<float>(tokens * qkv_width)),
          partial(workspace.take<float>(splits * tokens * net.heads * net.head_width())),
          partial_stats(workspace.take<float>(splits * tokens * net.heads * 2)),
          input(workspace.inputs(tokens, net.dim)), mixed(workspace.inputs(tokens, net.heads * net.head_dim)),
          inner(workspace.inputs(tokens, net.hidden)) {
        for (int thread = 0; thread < threads; ++thread) {
            scores.push_back(workspace.take<float>(ATTEND_ROWS * end));
            gates.push_back(workspace.take<float>(2 * (tokens == 1 ? inner.stride : tokens * BLOCK_VALUES)));
        }
    }

    void embed(int64_t t) {
        float* row = x + t * width;
        net.embedding->read_row(ids[t], row);
        if (net.embedding_scale != 1)
            for (int64_t d = 0; d < net.dim; ++d) row[d] *= net.embedding_scale;
        if (net.positions)
            for (int64_t d = 0; d < net.dim; ++d) row[d] += net.positions[(position + t) * net.dim + d];
    }

    // x += the norm of what was added; then the norm of x becomes the input of the products with `readers`.
    void add_and_norm(int64_t t, const Norm* post_norm, const Norm& norm,
                      std::initializer_list<const Weights*> readers) {
        float *row = x + t * width, *more = added + t * width, *to = input.floats + t * input.stride;
        if (post_norm) {
            if (post_norm->weight) kernel.norm(more, net.dim, *post_norm, net.rms, net.epsilon, more);
            for (int64_t d = 0; d < net.dim; ++d) row[d] += more[d];
        }
        if (norm.weight) kernel.norm(row, net.dim, norm, net.rms, net.epsilon, to);
        else std::copy_n(row, net.dim, to);
        for (const Weights* reader : readers)
            if (reader && quantized(reader->storage)) return kernel.quantize(to, net.dim, input, t, 0);
    }

    // Norm and rotary positions of the heads of a token's queries or keys.
    void prepare(const DecoderLayer& layer, int64_t t, float* head, const Norm& norm) {
        if (norm.weight) kernel.norm(head, net.head_dim, norm, true, net.epsilon, head);
        if (layer.rotary_table < 0) return;
        const float* angles =
            cache.rotary + (layer.rotary_table * cache.positions + position + t) * 2 * net.rotary_pairs;
        kernel.rotate(head, net.rotary_pairs, angles, angles + net.rotary_pairs, net.interleaved);
    }

    template <class Number>
    void store(const DecoderLayer& layer, int64_t l, int64_t t, int64_t kv_head) {
        float* key = qkv + t * qkv_width + query_width + kv_head * net.head_dim;
        const float* value = key + kv_width;
        prepare(layer, t, key, layer.key_norm);
        const int64_t begin = (l * net.kv_heads + kv_head) * cache.positions * net.head_width();
        const int64_t at = position + t, panel = at / PANEL_ROWS * PANEL_ROWS;
        Number* key_to = static_cast<Number*>(cache.keys) + begin + panel * net.head_dim + at % PANEL_ROWS;
        Number* value_to = static_cast<Number*>(cache.values) + begin + at * net.head_width();
        for (int64_t d = 0; d < net.head_dim; ++d) {
            if constexpr (sizeof(Number) == 2) {
                key_to[d * PANEL_ROWS] = to_half(key[d]);
                value_to[d] = to_half(value[d]);
            } else {
                key_to[d * PANEL_ROWS] = key[d];
                value_to[d] = value[d];
            }
        }
    }

    // Head `index` of all tokens: first the keys, whose cache is written, then the queries.
    void prepare_head(const DecoderLayer& layer, int64_t l, int64_t index) {
        const int64_t t = index / (net.kv_heads + net.heads), head = index % (net.kv_heads + net.heads);
        if (head >= net.kv_heads)
            prepare(layer, t, qkv + t * qkv_width + (head - net.kv_heads) * net.head_dim, layer.query_norm);
        else if (net.half_cache) store<uint16_t>(layer, l, t, head);
        else store<float>(layer, l, t, head);
    }

    float* partial_row(int64_t split, int64_t t, int64_t head) {
        return partial + ((split * tokens + t) * net.heads + head) * net.head_width();
    }
    float* stats(int64_t split, int64_t t, int64_t head) {
        return partial_stats + ((split * tokens + t) * net.heads + head) * 2;
    }

    int64_t tiles_per_head() const { return (tokens * group + ATTEND_ROWS - 1) / ATTEND_ROWS; }

    // A tile is up to ATTEND_ROWS queries, of consecutive tokens and heads, that share a head of keys and values. One
    // token alone has few of them, so its positions are split too.
    void attend(const DecoderLayer& layer, int64_t l, int64_t tile, int thread) {
        const int64_t split = tile % splits, kv_head = tile / splits % net.kv_heads;
        const int64_t first_row = tile / splits / net.kv_heads * ATTEND_ROWS;
        Attention task{};
        task.rows = static_cast<int>(std::min<int64_t>(ATTEND_ROWS, tokens * group - first_row));
        for (int r = 0; r < task.rows; ++r) {
            const int64_t t = (first_row + r) / group, head = kv_head * group + (first_row + r) % group;
            const int64_t last = position + t + 1, first = layer.window ? std::max<int64_t>(0, last - layer.window) : 0;
            const int64_t panels = round_up(last, PANEL_ROWS) / PANEL_ROWS - first / PANEL_ROWS;
            const Part part = part_of(panels, split, splits);
            const int64_t base = first / PANEL_ROWS;
            task.queries[r] = qkv + t * qkv_width + head * net.head_dim;
            task.first[r] = std::max(first, (base + part.first) * PANEL_ROWS);
            task.last[r] = std::min(last, (base + part.last) * PANEL_ROWS);
            task.out[r] = partial_row(split, t, head);
            task.largest[r] = stats(split, t, head);
            task.total[r] = stats(split, t, head) + 1;
            if (task.first[r] >= task.last[r]) *task.largest[r] = -1e30f, *task.total[r] = 0;
        }
        if (task.first[0] >= task.last[0]) return;  // fewer panels than splits; then there is one token
        const int64_t begin = (l * net.kv_heads + kv_head) * cache.positions * net.head_width();
        const int64_t bytes = begin * (net.half_cache ? 2 : 4);
        task.keys = static_cast<const char*>(cache.keys) + bytes;
        task.values = static_cast<const char*>(cache.values) + bytes;
        task.half = net.half_cache;
        task.dim = net.head_dim;
        task.width = net.head_width();
        task.scale = net.attention_scale;
        task.cap = net.score_cap;
        task.scores = scores[static_cast<size_t>(thread)];
        task.score_stride = end;
        kernel.attend(task);
    }

    // Joins the splits and divides by the sum of the softmax.
    void merge(const DecoderLayer& layer, int64_t t) {
        for (int64_t head = 0; head < net.heads; ++head) {
            float* to = mixed.floats + t * mixed.stride + head * net.head_dim;
            float most = stats(0, t, head)[0], total = 0;
            for (int64_t s = 1; s < splits; ++s) most = std::max(most, stats(s, t, head)[0]);
            std::fill_n(to, net.head_dim, 0.0f);
            for (int64_t s = 0; s < splits; ++s) {
                const float* pair = stats(s, t, head);
                if (pair[1] == 0) continue;
                const float share = __builtin_expf(pair[0] - most), *from = partial_row(s, t, head);
                total += share * pair[1];
                for (int64_t d = 0; d < net.head_dim; ++d) to[d] += share * from[d];
            }
            const float inverse = 1 / total;
            for (int64_t d = 0; d < net.head_dim; ++d) to[d] *= inverse;
        }
        if (quantized(layer.output->storage))
            kernel.quantize(mixed.floats + t * mixed.stride, net.heads * net.head_dim, mixed, t, 0);
    }

    // Blocks of 32 outputs of the first feed-forward layer, activated: blocks of the inputs of the second one.
    void feed(const DecoderLayer& layer, int64_t first, int64_t last, int thread) {
        const int64_t stride = (last - first) * BLOCK_VALUES, shift = first * BLOCK_VALUES;
        float *up = gates[static_cast<size_t>(thread)], *gate = layer.gate ? up + tokens * stride : up;
        const Part panels{2 * first, std::min(layer.up->panel_count(), 2 * last)};
        multiply_part(kernel, *layer.up, panels, input, tokens, up, stride);
        if (layer.gate) multiply_part(kernel, *layer.gate, panels, input, tokens, gate, stride);
        for (int64_t t = 0; t < tokens; ++t) {
            float* activated = gate + t * stride;
            const int64_t count = std::min(stride, net.hidden - shift);
            kernel.activate(activated, layer.gate ? up + t * stride : nullptr, count, net.activation);
            if (quantized(layer.down->storage)) kernel.quantize(activated, stride, inner, t, first);
            else std::copy_n(activated, count, inner.floats + t * inner.stride + shift);
        }
    }

    void product(const Weights& weights, const Inputs& from, float* to, int64_t stride, int thread) {
        const Part own = part_of(weights.panel_count(), thread, threads);
        multiply_part(kernel, weights, own, from, tokens, to + own.first * PANEL_ROWS, stride);
    }

    void layer(int64_t l, int thread, const Norm* previous) {
        const DecoderLayer& layer = net.layers[static_cast<size_t>(l)];
        const Part own = part_of(tokens, thread, threads);
        for (int64_t t = own.first; t < own.last; ++t)
            add_and_norm(t, previous, layer.attention_norm, {layer.query, layer.key, layer.value});
        barrier.wait();
        product(*layer.query, input, qkv, qkv_width, thread);
        product(*layer.key, input, qkv + query_width, qkv_width, thread);
        product(*layer.value, input, qkv + query_width + kv_width, qkv_width, thread);
        barrier.wait();
        const Part heads = part_of(tokens * (net.kv_heads + net.heads), thread, threads);
        for (int64_t i = heads.first; i < heads.last; ++i) prepare_head(layer, l, i);
        if (thread == 0) next_tile.store(0, std::memory_order_relaxed);
        barrier.wait();
        // Later tokens attend to more positions: tiles are taken one by one, the longest first.
        const int64_t tiles = tiles_per_head() * net.kv_heads * splits;
        for (int64_t tile; (tile = next_tile.fetch_add(1, std::memory_order_relaxed)) < tiles;)
            attend(layer, l, tiles - 1 - tile, thread);
        barrier.wait();
        for (int64_t t = own.first; t < own.last; ++t) merge(layer, t);
        barrier.wait();
        product(*layer.output, mixed, added, width, thread);
        barrier.wait();
        for (int64_t t = own.first; t < own.last; ++t)
            add_and_norm(t, &layer.attention_post_norm, layer.feed_norm, {layer.gate, layer.up});
        barrier.wait();
        const Part blocks = part_of(round_up(net.hidden, BLOCK_VALUES) / BLOCK_VALUES, thread, threads);
        const int64_t step =
            tokens == 1 ? std::max<int64_t>(1, blocks.last - blocks.first) : 1;  // rows stay in the cache
        for (int64_t first = blocks.first; first < blocks.last; first += step) feed(layer, first, first + step, thread);
        barrier.wait();
        product(*layer.down, inner, added, width, thread);
        barrier.wait();
    }

    void run(int thread, float* states, float* logits, float* padded_logits) {
        const Part own = part_of(tokens, thread, threads);
        for (int64_t t = own.first; t < own.last; ++t) embed(t);
        const Norm* previous = nullptr;
        for (size_t l = 0; l < net.layers.size(); ++l) {
            layer(static_cast<int64_t>(l), thread, previous);
            previous = &net.layers[l].feed_post_norm;
        }
        for (int64_t t = own.first; t < own.last; ++t) {
            add_and_norm(t, previous, net.norm, {net.outputs});
            if (states) std::copy_n(input.floats + t * input.stride, net.dim, states + t * net.dim);
        }
        if (!logits) return;
        barrier.wait();
        Inputs last = input;
        last.floats += (tokens - 1) * input.stride;
        last.codes += (tokens - 1) * input.code_stride;
        for (float** rows : {&last.scales, &last.sums}) *rows += (tokens - 1) * input.block_stride;
        last.totals += (tokens - 1) * input.block_stride;
        const Part part = part_of(net.outputs->panel_count(), thread, threads);
        multiply_part(kernel, *net.outputs, part, last, 1, padded_logits + part.first * PANEL_ROWS, 0);
        const int64_t first = part.first * PANEL_ROWS,
                      count = std::min(net.outputs->out, part.last * PANEL_ROWS) - first;
        if (net.logit_cap > 0 && count > 0) kernel.cap(padded_logits + first, count, net.logit_cap);
        if (count > 0) std::copy_n(padded_logits + first, count, logits + first);
    }
};

}  // namespace

void Decoder::forward(const int32_t* ids, int64_t tokens, int64_t position, const DecoderCache& cache, float* states,
                      float* logits, int threads) const {
    Pass pass(*this, ids, tokens, position, cache, threads);
    float* padded = logits ? pass.workspace.take<float>(round_up(outputs->out, PANEL_ROWS)) : nullptr;
    on_threads(threads, [&](int thread) { pass.run(thread, states, logits, padded); });
}

}  // namespace firth
