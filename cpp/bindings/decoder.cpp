#include "decoder.h"

#include "bindings/common.h"

namespace firth {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

DecoderActivation activation_named(const std::string& name) {
    if (name == "gelu") return DecoderActivation::gelu;
    if (name == "gelu_tanh") return DecoderActivation::gelu_tanh;
    if (name == "relu") return DecoderActivation::relu;
    if (name == "silu") return DecoderActivation::silu;
    throw std::invalid_argument("activation must be gelu, gelu_tanh, relu or silu; got " + name + ".");
}

Storage storage_named(const std::string& name) {
    if (name == "F32") return Storage::f32;
    if (name == "F16") return Storage::f16;
    if (name == "Q8_0") return Storage::q8_0;
    if (name == "Q4_0") return Storage::q4_0;
    if (name == "Q4_1") return Storage::q4_1;
    throw std::invalid_argument("storage must be F32, F16, Q8_0, Q4_0 or Q4_1; got " + name + ".");
}

Norm norm_of(const std::vector<Array<float>>& arrays, size_t index, int64_t dim) {
    const auto& weight = arrays[2 * index];
    const auto& bias = arrays[2 * index + 1];
    for (const auto* array : {&weight, &bias})
        require(array->shape(0) == 0 || static_cast<int64_t>(array->shape(0)) == dim,
                "a norm has the wrong size for the shape of the network.");
    return {weight.shape(0) ? weight.data() : nullptr, bias.shape(0) ? bias.data() : nullptr};
}

void check_weights(const Weights* weights, int64_t in, int64_t out) {
    require(weights && weights->in == in && weights->out == out,
            "weights have the wrong size for the shape of the network.");
}

int64_t length(const Array<float>& array) { return static_cast<int64_t>(array.shape(0)); }

void check_layer(const Decoder& net, const DecoderLayer& layer) {
    check_weights(layer.query, net.dim, net.heads * net.head_dim);
    check_weights(layer.key, net.dim, net.kv_heads * net.head_dim);
    check_weights(layer.value, net.dim, net.kv_heads * net.head_dim);
    check_weights(layer.output, net.heads * net.head_dim, net.dim);
    if (layer.gate) check_weights(layer.gate, net.dim, net.hidden);
    check_weights(layer.up, net.dim, net.hidden);
    check_weights(layer.down, net.hidden, net.dim);
}

}  // namespace

void bind_decoder(nb::module_& m) {
    nb::class_<Weights>(m, "Weights")
        .def(
            "__init__",
            [](Weights* self, const std::string& storage, Bytes rows, int64_t columns, Array<float> bias) {
                new (self) Weights{storage_named(storage),
                                   columns,
                                   static_cast<int64_t>(rows.shape(0)),
                                   rows.data(),
                                   nullptr,
                                   bias.shape(0) ? bias.data() : nullptr};
                require(columns >= 1 && rows.shape(0) >= 1, "weights must have at least one row and column.");
                require(!quantized(self->storage) || columns % BLOCK_VALUES == 0,
                        "quantized rows must have a multiple of 32 columns.");
                require(static_cast<int64_t>(rows.shape(1)) == self->row_bytes(),
                        "rows have the wrong number of bytes for their columns.");
                require(!self->bias || static_cast<int64_t>(bias.shape(0)) == self->out,
                        "bias must have one value per row.");
            },
            nb::arg("storage"), nb::arg("rows"), nb::arg("columns"), nb::arg("bias"))
        .def("packed_size",
             [](const Weights& self) { return quantized(self.storage) ? self.panel_count() * self.panel_bytes() : 0; })
        .def(
            "pack",
            [](Weights& self, Output<uint8_t> memory) {
                require(quantized(self.storage), "only quantized weights are packed.");
                require(static_cast<int64_t>(memory.shape(0)) >= self.panel_count() * self.panel_bytes() &&
                            reinterpret_cast<uintptr_t>(memory.data()) % 64 == 0,
                        "memory must have packed_size bytes, aligned to 64.");
                nb::gil_scoped_release unlocked;
                self.pack(memory.data());
            },
            nb::arg("memory"))
        .def(
            "multiply",
            [](const Weights& self, Dense x, Table out, int threads) {
                require(static_cast<int64_t>(x.shape(1)) == self.in && static_cast<int64_t>(out.shape(1)) == self.out &&
                            x.shape(0) == out.shape(0) && threads >= 1,
                        "x must have one column per column of the weights, and out one per row.");
                require(!quantized(self.storage) || self.panels, "quantized weights must be packed first.");
                nb::gil_scoped_release unlocked;
                multiply(self, x.data(), static_cast<int64_t>(x.shape(0)), out.data(), threads);
            },
            nb::arg("x"), nb::arg("out"), nb::arg("threads"));

    nb::class_<Decoder>(m, "Decoder")
        .def(
            "__init__",
            [](Decoder* self, int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t hidden, int64_t positions,
               bool rms, float epsilon, const std::string& activation, int64_t rotary_pairs, bool interleaved,
               int64_t rotary_tables, float attention_scale, float score_cap, float logit_cap, float embedding_scale,
               bool half_cache, const Weights* embedding, Array<float> position_vectors,
               const std::vector<Array<float>>& norm, const Weights* outputs) {
                new (self) Decoder{embedding->in,
                                   heads,
                                   kv_heads,
                                   head_dim,
                                   hidden,
                                   positions,
                                   rms,
                                   epsilon,
                                   activation_named(activation),
                                   rotary_pairs,
                                   interleaved,
                                   rotary_tables,
                                   attention_scale,
                                   score_cap,
                                   logit_cap,
                                   embedding_scale,
                                   half_cache,
                                   embedding,
                                   length(position_vectors) ? position_vectors.data() : nullptr,
                                   {},
                                   {},
                                   outputs};
                require(kv_heads >= 1 && heads >= kv_heads && heads % kv_heads == 0 && head_dim >= 1 && hidden >= 1 &&
                            positions >= 1,
                        "all sizes must be at least 1, and heads a multiple of kv_heads.");
                require(rotary_pairs >= 0 && 2 * rotary_pairs <= head_dim && rotary_tables >= 0,
                        "rotary_pairs must fit into a head.");
                require(!self->positions || length(position_vectors) == positions * self->dim,
                        "there must be one position vector per position.");
                require(norm.size() == 2, "the last norm must have a weight and a bias.");
                self->norm = norm_of(norm, 0, self->dim);
                check_weights(outputs, self->dim, outputs->out);
            },
            nb::kw_only(), nb::arg("heads"), nb::arg("kv_heads"), nb::arg("head_dim"), nb::arg("hidden"),
            nb::arg("positions"), nb::arg("rms"), nb::arg("epsilon"), nb::arg("activation"), nb::arg("rotary_pairs"),
            nb::arg("interleaved"), nb::arg("rotary_tables"), nb::arg("attention_scale"), nb::arg("score_cap"),
            nb::arg("logit_cap"), nb::arg("embedding_scale"), nb::arg("half_cache"), nb::arg("embedding"),
            nb::arg("position_vectors"), nb::arg("norm"), nb::arg("outputs"))
        .def(
            "add_layer",
            [](Decoder& self, const std::vector<Array<float>>& norms, const Weights* query, const Weights* key,
               const Weights* value, const Weights* output, const Weights* gate, const Weights* up, const Weights* down,
               int64_t window, int64_t rotary_table) {
                require(norms.size() == 12, "a layer has 6 norms, each with a weight and a bias.");
                require(window >= 0 && rotary_table >= -1 && rotary_table < self.rotary_tables,
                        "window must be at least 0, and the rotary table one of those given.");
                const auto norm = [&](size_t index) {
                    return norm_of(norms, index, index < 4 ? self.dim : self.head_dim);
                };
                const DecoderLayer layer{norm(0), norm(1), norm(2), norm(3), norm(4), norm(5), query,       key,
                                         value,   output,  gate,    up,      down,    window,  rotary_table};
                check_layer(self, layer);
                self.layers.push_back(layer);
            },
            nb::arg("norms"), nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("output"),
            nb::arg("gate").none(), nb::arg("up"), nb::arg("down"), nb::arg("window"), nb::arg("rotary_table"))
        .def("cache_bytes", &Decoder::cache_bytes, nb::arg("positions"))
        .def(
            "forward",
            [](const Decoder& self, Array<int32_t> ids, int64_t position, int64_t positions, Array<float> rotary,
               Output<uint8_t> keys, Output<uint8_t> values, Output<float> states, Output<float> logits, int threads) {
                const auto tokens = static_cast<int64_t>(ids.shape(0));
                require(tokens >= 1 && position >= 0 && position + tokens <= positions && threads >= 1 &&
                            positions % PANEL_ROWS == 0,
                        "tokens must fit the positions of the cache, a multiple of 16; tokens and threads at least 1.");
                require(!self.positions || position + tokens <= self.max_positions,
                        "positions must be inside the context.");
                for (int64_t t = 0; t < tokens; ++t)
                    require(ids.data()[t] >= 0 && ids.data()[t] < self.embedding->out,
                            "ids must be in the vocabulary.");
                const int64_t bytes = self.cache_bytes(positions);
                require(static_cast<int64_t>(keys.shape(0)) == bytes && static_cast<int64_t>(values.shape(0)) == bytes,
                        "keys and values must have cache_bytes bytes.");
                require(length(rotary) == self.rotary_tables * positions * 2 * self.rotary_pairs,
                        "rotary must have cosines and sines for every position and pair of dimensions of a head.");
                const auto n_states = static_cast<int64_t>(states.shape(0));
                const auto n_logits = static_cast<int64_t>(logits.shape(0));
                require(n_states == 0 || n_states == tokens * self.dim, "states must have one row per token.");
                require(n_logits == 0 || n_logits == self.outputs->out, "logits must have one value per output.");
                nb::gil_scoped_release unlocked;
                self.forward(ids.data(), tokens, position, {keys.data(), values.data(), rotary.data(), positions},
                             n_states ? states.data() : nullptr, n_logits ? logits.data() : nullptr, threads);
            },
            nb::arg("ids"), nb::arg("position"), nb::arg("positions"), nb::arg("rotary"), nb::arg("keys"),
            nb::arg("values"), nb::arg("states"), nb::arg("logits"), nb::arg("threads"));
}

}  // namespace firth
