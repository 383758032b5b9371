#include "encoder.h"

#include "bindings/common.h"

namespace firth {
namespace {

using FloatArray = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
constexpr size_t BEFORE = 5, EACH = 12;  // number of arrays before the layers, and per layer

// An encoder with the arrays it points to.
struct BoundEncoder {
    std::vector<FloatArray> arrays;
    Encoder::Settings settings;
    Encoder encoder;
};

std::vector<const float*> pointers(const std::vector<FloatArray>& arrays) {
    std::vector<const float*> data;
    for (const FloatArray& array : arrays) data.push_back(array.data());
    return data;
}

void check(const std::vector<FloatArray>& arrays, const Encoder::Settings& settings) {
    require(settings.layers >= 1 && settings.dim >= 1 && settings.heads >= 1 && settings.hidden >= 1 &&
                settings.max_positions >= 1,
            "sizes must be at least 1.");
    require(!settings.quantized || std::max(settings.dim, settings.hidden) <= 65536,
            "dim and hidden must be at most 65536 for int8.");
    require(settings.dim % settings.heads == 0, "dim must be a multiple of heads.");
    require(arrays.size() == BEFORE + EACH * static_cast<size_t>(settings.layers),
            "wrong number of arrays: some are missing or superfluous.");
    const auto d = settings.dim, h = settings.hidden;
    const int64_t each[EACH] = {3 * d * d, 3 * d, d * d, d, d, d, h * d, h, d * h, d, d, d};
    require(arrays[0].size() % static_cast<size_t>(d) == 0, "tokens must have rows of dim.");
    const int64_t before[BEFORE] = {static_cast<int64_t>(arrays[0].size()), settings.max_positions * d, d, d, d};
    for (size_t i = 0; i < arrays.size(); ++i)
        require(static_cast<int64_t>(arrays[i].size()) == (i < BEFORE ? before[i] : each[(i - BEFORE) % EACH]),
                "an array has the wrong size for the settings.");
}

}  // namespace

void bind_encoder(nb::module_& m) {
    nb::class_<BoundEncoder>(m, "Encoder")
        .def(
            "__init__",
            [](BoundEncoder* self, std::vector<FloatArray> arrays, int64_t layers, int64_t heads, int64_t dim,
               int64_t hidden, int64_t positions, int activation, float epsilon, bool quantized) {
                require(activation >= 0 && activation <= 2, "unknown activation.");
                const Encoder::Settings settings{
                    layers, dim, heads, hidden, positions, static_cast<Activation>(activation), epsilon, quantized};
                check(arrays, settings);
                const auto data = pointers(arrays);
                new (self) BoundEncoder{std::move(arrays), settings, Encoder(settings, data)};
            },
            nb::arg("arrays"), nb::arg("layers"), nb::arg("heads"), nb::arg("dim"), nb::arg("hidden"),
            nb::arg("positions"), nb::arg("activation"), nb::arg("epsilon"), nb::arg("quantized"))
        .def(
            "encode",
            [](const BoundEncoder& self, Array<int32_t> ids, Array<int64_t> starts, Array<float> weights, bool concat,
               int pool, int64_t chunk_tokens, Table out, int threads) {
                check_starts(starts, ids.shape(0));
                check_columns(ids, static_cast<int64_t>(self.arrays[0].size()) / self.settings.dim);
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
