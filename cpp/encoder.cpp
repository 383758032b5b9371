#include "encoder.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>

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

// Finds arrays by name, checks their shapes and remembers which were used.
class Encoder::Reader {
  public:
    Reader(Encoder& encoder, const WeightArrays& arrays) : encoder_(encoder), arrays_(arrays) {}

    bool has(const std::string& name) const { return arrays_.count(name) != 0; }

    // The array, or nullptr if there is none.
    const float* find(const std::string& name, const std::vector<int64_t>& sizes) {
        const auto found = arrays_.find(name);
        if (found == arrays_.end()) return nullptr;
        used_.insert(name);
        require(found->second.sizes == sizes,
                name + " has the wrong shape: expected " + shown(sizes) + ", got " + shown(found->second.sizes) + ".");
        return found->second.data;
    }

    const float* get(const std::string& name, const std::vector<int64_t>& sizes) {
        const float* data = find(name, sizes);
        require(data, "array missing: " + name + ".");
        return data;
    }

    Linear linear(const std::string& name, int64_t out, int64_t in) {
        Linear linear;
        linear.in = in;
        linear.out = out;
        linear.source = get(name + ".weight", {out, in});
        linear.source_bias = find(name + ".bias", {out});
        return linear;
    }

    NormWeights norm(const std::string& name, int64_t dim) {
        const std::vector<float> zeros(static_cast<size_t>(dim));
        const float *gain = get(name + ".weight", {dim}), *bias = find(name + ".bias", {dim});
        return {encoder_.copied(gain, dim), encoder_.copied(bias ? bias : zeros.data(), dim)};
    }

    // Cosines and sines for pairs of dimensions, as many pairs as `NAME.cos` has columns.
    Rotary rotary(const std::string& name, int64_t positions, int64_t head_dim) {
        if (!has(name + ".cos") && !has(name + ".sin")) return {};
        const auto found = arrays_.find(name + ".cos");
        const int64_t half = found == arrays_.end() || found->second.sizes.size() != 2 ? 1 : found->second.sizes[1];
        require(half >= 1 && 2 * half <= head_dim, name + " rotates more dimensions than a head has.");
        return {encoder_.copied(get(name + ".cos", {positions, half}), positions * half),
                encoder_.copied(get(name + ".sin", {positions, half}), positions * half), half};
    }

    void check_all_used() const {
        for (const auto& item : arrays_) require(used_.count(item.first), "unknown array: " + item.first + ".");
    }

    static void require(bool holds, const std::string& rule) {
        if (!holds) throw std::invalid_argument(rule);
    }

  private:
    static std::string shown(const std::vector<int64_t>& sizes) {
        std::string text = "(";
        for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
        return text + ")";
    }

    Encoder& encoder_;
    const WeightArrays& arrays_;
    std::set<std::string> used_;
};

// A copy padded with zeros to full panels.
const float* Encoder::copied(const float* from, int64_t count) {
    float* to = arena_.take(kernel_->padded(count));
    std::copy_n(from, count, to);
    return to;
}

void Encoder::pack(Linear& linear, bool quantized) {
    const int64_t width = kernel_->padded(linear.out) * (linear.gate ? 2 : 1);
    linear.weights = arena_.take((kernel_->packed_size(linear, quantized) + 3) / 4);
    linear.bias = arena_.take(width);
    linear.scales = arena_.take(width);
    linear.sums = reinterpret_cast<int32_t*>(arena_.take(width));
    kernel_->pack(linear, quantized);
}

EncoderLayer Encoder::layer(Reader& reader, const EncoderSettings& settings, int64_t number) {
    const std::string name = "layers." + std::to_string(number) + ".";
    const int64_t dim = settings.dim;
    EncoderLayer block;

    // Queries are scaled here instead of scores later.
    Linear& qkv = block.query_key_value = reader.linear(name + "query_key_value", 3 * dim, dim);
    std::vector<float> weights(qkv.source, qkv.source + 3 * dim * dim), bias;
    std::for_each_n(weights.begin(), dim * dim, [&](float& weight) { weight *= settings.score_scale; });
    qkv.source = weights.data();
    if (qkv.source_bias) {
        bias.assign(qkv.source_bias, qkv.source_bias + 3 * dim);
        std::for_each_n(bias.begin(), dim, [&](float& value) { value *= settings.score_scale; });
        qkv.source_bias = bias.data();
    }
    pack(qkv, settings.quantized);

    block.output = reader.linear(name + "attention_output", dim, dim);
    pack(block.output, settings.quantized);
    block.up = reader.linear(name + "up", settings.hidden, dim);
    if (settings.gated) {
        const Linear gate = reader.linear(name + "gate", settings.hidden, dim);
        block.up.gate = gate.source;
        block.up.gate_bias = gate.source_bias;
    }
    pack(block.up, settings.quantized);
    block.down = reader.linear(name + "down", dim, settings.hidden);
    pack(block.down, settings.quantized);
    if (number > 0 || settings.first_norm) block.attention_norm = reader.norm(name + "attention_norm", dim);
    block.feed_forward_norm = reader.norm(name + "feed_forward_norm", dim);
    return block;
}

Encoder::Encoder(const EncoderSettings& settings, const WeightArrays& arrays) : kernel_(&active_kernel()) {
    Reader reader(*this, arrays);
    const int64_t dim = settings.dim, embedding_dim = settings.embedding_dim ? settings.embedding_dim : dim;
    const int64_t positions = settings.max_positions;
    net_.layers = settings.layers;
    net_.dim = dim;
    net_.heads = settings.heads;
    net_.hidden = settings.hidden;
    net_.embedding_dim = embedding_dim;
    net_.max_positions = positions;
    net_.activation = settings.activation;
    net_.rms_norm = settings.rms_norm;
    net_.pre_norm = settings.pre_norm;
    net_.quantized = settings.quantized;
    net_.epsilon = settings.epsilon;
    const auto tokens = arrays.find("tokens");
    if (tokens != arrays.end() && !tokens->second.sizes.empty()) vocabulary_size_ = tokens->second.sizes[0];
    net_.tokens = reader.get("tokens", {vocabulary_size_, embedding_dim});
    net_.positions = reader.find("positions", {positions, embedding_dim});
    net_.segment = reader.find("segment", {embedding_dim});
    if (settings.embedding_norm) net_.embedding_norm = reader.norm("norm", embedding_dim);
    if (settings.embedding_dim) {
        net_.projection = reader.linear("embedding_projection", dim, embedding_dim);
        pack(net_.projection, settings.quantized);
    }
    if (settings.final_norm) net_.final_norm = reader.norm("final_norm", dim);
    if (const float* bias = reader.find("distance_bias", {settings.heads, 2 * positions - 1})) {
        net_.distance_stride = 2 * positions + 64;  // a row of scores may read beyond the last distance
        float* rows = arena_.take(settings.heads * net_.distance_stride);
        for (int64_t head = 0; head < settings.heads; ++head)
            std::copy_n(bias + head * (2 * positions - 1), 2 * positions - 1, rows + head * net_.distance_stride);
        net_.distance_bias = rows;
    }
    const Rotary rotary = reader.rotary("rotary", positions, dim / settings.heads);
    const Rotary local = reader.rotary("local_rotary", positions, dim / settings.heads);
    for (int64_t number = 0; number < settings.layers; ++number) {
        blocks_.push_back(layer(reader, settings, number));
        blocks_.back().rotary = rotary;
    }
    for (const int64_t number : settings.local_layers) {
        EncoderLayer& block = blocks_.at(static_cast<size_t>(number));
        block.window = settings.window;
        if (local.half) block.rotary = local;
    }
    net_.blocks = blocks_.data();
    reader.check_all_used();
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
        const int64_t size = kernel_->workspace(net_, most, longest);
        const LargeBlock workspace(size);
        std::fill_n(workspace.floats(), size, 0.0f);
        std::vector<int64_t> own;
        for (int64_t c = next.fetch_add(1); c < chunks; c = next.fetch_add(1)) {
            const int64_t first = firsts[static_cast<size_t>(c)], last = firsts[static_cast<size_t>(c) + 1];
            own.assign(starts + first, starts + last + 1);
            for (int64_t& start : own) start -= starts[first];
            kernel_->encode(net_, selection,
                            {ids + starts[first], own.data(), last - first, out + first * selection.width},
                            workspace.floats());
        }
    });
}

}  // namespace firth
