#include "encoder.h"

#include "bindings/common.h"

namespace firth {
namespace {

using FloatArray = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

// An encoder with the embedding tables it points to.
struct BoundEncoder {
    std::vector<FloatArray> tables;
    EncoderSettings settings;
    Encoder encoder;
};

void check(const EncoderSettings& settings) {
    require(settings.layers >= 1 && settings.dim >= 1 && settings.heads >= 1 && settings.hidden >= 1 &&
                settings.max_positions >= 1 && settings.embedding_dim >= 0 && settings.window >= 0,
            "sizes must be at least 1.");
    require(!settings.quantized || std::max({settings.dim, settings.hidden, settings.embedding_dim}) <= 65536,
            "dim, hidden and embedding_dim must be at most 65536 for int8.");
    require(settings.dim % settings.heads == 0, "dim must be a multiple of heads.");
    require(settings.local_layers.empty() || settings.window >= 1, "local layers need a window of at least 1.");
    for (const int64_t layer : settings.local_layers)
        require(layer >= 0 && layer < settings.layers, "local_layers must be layers.");
}

WeightArrays arrays_of(const std::vector<std::pair<std::string, FloatArray>>& weights) {
    WeightArrays arrays;
    for (const auto& [name, array] : weights) {
        std::vector<int64_t> sizes;
        for (size_t axis = 0; axis < array.ndim(); ++axis) sizes.push_back(static_cast<int64_t>(array.shape(axis)));
        arrays[name] = {array.data(), sizes};
    }
    return arrays;
}

}  // namespace

void bind_encoder(nb::module_& m) {
    nb::class_<BoundEncoder>(m, "Encoder")
        .def(
            "__init__",
            [](BoundEncoder* self, const std::vector<std::pair<std::string, FloatArray>>& weights, int64_t layers,
               int64_t dim, int64_t heads, int64_t hidden, int64_t positions, int64_t embedding_dim, int activation,
               bool gated, bool rms_norm, bool pre_norm, bool first_norm, bool embedding_norm, bool final_norm,
               float epsilon, float score_scale, int64_t window, const std::vector<int64_t>& local_layers,
               bool quantized) {
                require(activation >= 0 && activation <= 3, "unknown activation.");
                const EncoderSettings settings{layers,
                                               dim,
                                               heads,
                                               hidden,
                                               positions,
                                               embedding_dim,
                                               static_cast<Activation>(activation),
                                               gated,
                                               rms_norm,
                                               pre_norm,
                                               first_norm,
                                               embedding_norm,
                                               final_norm,
                                               epsilon,
                                               score_scale,
                                               window,
                                               local_layers,
                                               quantized};
                check(settings);
                std::vector<FloatArray> tables;
                for (const auto& [name, array] : weights)
                    if (name == "tokens" || name == "positions" || name == "segment") tables.push_back(array);
                new (self) BoundEncoder{std::move(tables), settings, Encoder(settings, arrays_of(weights))};
            },
            nb::arg("weights"), nb::arg("layers"), nb::arg("dim"), nb::arg("heads"), nb::arg("hidden"),
            nb::arg("positions"), nb::arg("embedding_dim"), nb::arg("activation"), nb::arg("gated"),
            nb::arg("rms_norm"), nb::arg("pre_norm"), nb::arg("first_norm"), nb::arg("embedding_norm"),
            nb::arg("final_norm"), nb::arg("epsilon"), nb::arg("score_scale"), nb::arg("window"),
            nb::arg("local_layers"), nb::arg("quantized"))
        .def(
            "encode",
            [](const BoundEncoder& self, Array<int32_t> ids, Array<int64_t> starts, Array<float> weights, bool concat,
               int pool, int64_t chunk_tokens, Table out, int threads) {
                check_starts(starts, ids.shape(0));
                check_columns(ids, self.encoder.vocabulary_size());
                const auto texts = static_cast<int64_t>(starts.shape(0)) - 1;
                for (int64_t t = 0; t < texts; ++t) {
                    const int64_t length = starts.data()[t + 1] - starts.data()[t];
                    require(length >= 1 && length <= self.settings.max_positions,
                            "a text must have from 1 token to as many as there are positions.");
                }
                require(static_cast<int64_t>(weights.shape(0)) == self.settings.layers + 1,
                        "weights must have one weight per layer, and one for the embeddings.");
                int64_t highest = -1, selected = 0;
                for (int64_t l = 0; l <= self.settings.layers; ++l)
                    if (weights.data()[l] != 0) highest = l, ++selected;
                require(highest >= 0, "at least one weight must not be zero.");
                require(pool >= 0 && pool <= 3 && threads >= 1 && chunk_tokens >= 1,
                        "pool, threads or chunk_tokens is out of range.");
                const int64_t width = self.settings.dim * (concat ? selected : 1);
                require(static_cast<int64_t>(out.shape(0)) == texts && static_cast<int64_t>(out.shape(1)) == width,
                        "out must have one row per text.");
                const LayerSelection selection{weights.data(), highest, concat, static_cast<TokenPool>(pool), width};
                nb::gil_scoped_release unlocked;
                self.encoder.encode(ids.data(), starts.data(), texts, selection, chunk_tokens, out.data(), threads);
            },
            nb::arg("ids"), nb::arg("starts"), nb::arg("weights"), nb::arg("concat"), nb::arg("pool"),
            nb::arg("chunk_tokens"), nb::arg("out"), nb::arg("threads"));
}

}  // namespace firth
