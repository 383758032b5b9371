#include "write.h"

#include "bindings/common.h"

namespace firth {
namespace {

DecoderActivation activation_named(const std::string& name) {
    if (name == "gelu") return DecoderActivation::gelu;
    if (name == "gelu_tanh") return DecoderActivation::gelu_tanh;
    if (name == "relu") return DecoderActivation::relu;
    if (name == "swiglu") return DecoderActivation::swiglu;
    throw std::invalid_argument("activation must be gelu, gelu_tanh, relu or swiglu; got " + name + ".");
}

Affine affine(const std::vector<Array<float>>& arrays, size_t at, int64_t weight, int64_t bias) {
    require(static_cast<int64_t>(arrays[at].shape(0)) == weight &&
                static_cast<int64_t>(arrays[at + 1].shape(0)) == bias,
            "an array has the wrong size for the shape of the network.");
    return {arrays[at].data(), arrays[at + 1].data()};
}

}  // namespace

void bind_write(nb::module_& m) {
    nb::class_<Writer>(m, "Writer")
        .def(
            "__init__",
            [](Writer* self, const std::vector<Array<float>>& arrays, int64_t layers, int64_t dim, int64_t heads,
               int64_t hidden, int64_t max_positions, int64_t vocabulary_size, const std::string& activation,
               float epsilon) {
                require(layers >= 1 && dim >= 1 && heads >= 1 && dim % heads == 0 && hidden >= 1 &&
                            max_positions >= 1 && vocabulary_size >= 1,
                        "all sizes must be at least 1, and dim a multiple of heads.");
                require(arrays.size() == static_cast<size_t>(layers) * 12 + 3,
                        "there must be 12 arrays per layer, two of the last norm, and the outputs.");
                new (self) Writer{dim,     heads, hidden, max_positions, vocabulary_size, activation_named(activation),
                                  epsilon, {},    {},     nullptr};
                const int64_t up = self->activation == DecoderActivation::swiglu ? 2 * hidden : hidden;
                for (int64_t l = 0; l < layers; ++l) {
                    const auto at = static_cast<size_t>(l) * 12;
                    self->layers.push_back(
                        {affine(arrays, at, dim, dim), affine(arrays, at + 2, 3 * dim * dim, 3 * dim),
                         affine(arrays, at + 4, dim * dim, dim), affine(arrays, at + 6, dim, dim),
                         affine(arrays, at + 8, up * dim, up), affine(arrays, at + 10, dim * hidden, dim)});
                }
                self->norm = affine(arrays, arrays.size() - 3, dim, dim);
                require(static_cast<int64_t>(arrays.back().shape(0)) == vocabulary_size * dim,
                        "outputs must have one row per token of the vocabulary.");
                self->outputs = arrays.back().data();
            },
            nb::arg("arrays"), nb::arg("layers"), nb::arg("dim"), nb::arg("heads"), nb::arg("hidden"),
            nb::arg("positions"), nb::arg("vocabulary_size"), nb::arg("activation"), nb::arg("epsilon"))
        .def(
            "write",
            [](const Writer& self, Output<float> x, int64_t position, Array<float> rotary, Output<float> keys,
               Output<float> values, Output<float> logits, int threads) {
                const int64_t cells = static_cast<int64_t>(self.layers.size()) * self.max_positions * self.dim;
                require(static_cast<int64_t>(x.shape(0)) == self.dim &&
                            static_cast<int64_t>(logits.shape(0)) == self.vocabulary_size,
                        "x must have one value per dimension, and logits one per token of the vocabulary.");
                require(static_cast<int64_t>(keys.shape(0)) == cells && static_cast<int64_t>(values.shape(0)) == cells,
                        "keys and values must have one value per layer, position and dimension.");
                require(position >= 0 && position < self.max_positions && threads >= 1,
                        "position must be inside the context, and threads at least 1.");
                const bool has_rotary = rotary.shape(0) > 0;
                require(!has_rotary || static_cast<int64_t>(rotary.shape(0)) == self.dim / self.heads,
                        "rotary must have one value per dimension of a head.");
                nb::gil_scoped_release unlocked;
                self.write(x.data(), position, has_rotary ? rotary.data() : nullptr, keys.data(), values.data(),
                           logits.data(), threads);
            },
            nb::arg("x"), nb::arg("position"), nb::arg("rotary"), nb::arg("keys"), nb::arg("values"), nb::arg("logits"),
            nb::arg("threads"));
}

}  // namespace firth
