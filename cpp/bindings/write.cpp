#include "write.h"

#include "bindings/common.h"

namespace firth {
namespace {

Bend bend_named(const std::string& name) {
    if (name == "gelu") return Bend::gelu;
    if (name == "gelu_tanh") return Bend::gelu_tanh;
    if (name == "relu") return Bend::relu;
    if (name == "swiglu") return Bend::swiglu;
    throw std::invalid_argument("activation must be gelu, gelu_tanh, relu or swiglu; got " + name + ".");
}

Affine affine(const std::vector<Array<float>>& arrays, size_t at, int64_t weight, int64_t bias) {
    require(static_cast<int64_t>(arrays[at].shape(0)) == weight && static_cast<int64_t>(arrays[at + 1].shape(0)) == bias,
            "an array of the net has not the size that its shape asks for.");
    return {arrays[at].data(), arrays[at + 1].data()};
}

}  // namespace

void bind_write(nb::module_& m) {
    nb::class_<Writer>(m, "Writer")
        .def("__init__",
             [](Writer* self, const std::vector<Array<float>>& arrays, int64_t layers, int64_t dim, int64_t heads,
                int64_t hidden, int64_t places, int64_t words, const std::string& bend, float epsilon) {
                 require(layers >= 1 && dim >= 1 && heads >= 1 && dim % heads == 0 && hidden >= 1 && places >= 1 && words >= 1,
                         "a net has at least one of everything, and its heads share its dimensions.");
                 require(arrays.size() == static_cast<size_t>(layers) * 12 + 3,
                         "a net has 12 arrays a layer, a norm's two and the outputs.");
                 new (self) Writer{dim, heads, hidden, places, words, bend_named(bend), epsilon, {}, {}, nullptr};
                 const int64_t wide = self->bend == Bend::swiglu ? 2 * hidden : hidden;
                 for (int64_t l = 0; l < layers; ++l) {
                     const auto at = static_cast<size_t>(l) * 12;
                     self->layers.push_back({affine(arrays, at, dim, dim), affine(arrays, at + 2, 3 * dim * dim, 3 * dim),
                                             affine(arrays, at + 4, dim * dim, dim), affine(arrays, at + 6, dim, dim),
                                             affine(arrays, at + 8, wide * dim, wide),
                                             affine(arrays, at + 10, dim * hidden, dim)});
                 }
                 self->norm = affine(arrays, arrays.size() - 3, dim, dim);
                 require(static_cast<int64_t>(arrays.back().shape(0)) == words * dim, "outputs need a row a word.");
                 self->outputs = arrays.back().data();
             })
        .def("write", [](const Writer& self, Room<float> x, int64_t place, Array<float> turns, Room<float> keys,
                         Room<float> values, Room<float> logits, int threads) {
            const int64_t cells = static_cast<int64_t>(self.layers.size()) * self.places * self.dim;
            require(static_cast<int64_t>(x.shape(0)) == self.dim && static_cast<int64_t>(logits.shape(0)) == self.words,
                    "x needs a number a dimension, logits one a word.");
            require(static_cast<int64_t>(keys.shape(0)) == cells && static_cast<int64_t>(values.shape(0)) == cells,
                    "keys and values need room for every layer, place and dimension.");
            require(place >= 0 && place < self.places && threads >= 1, "the place must lie within the context.");
            const bool turned = turns.shape(0) > 0;
            require(!turned || static_cast<int64_t>(turns.shape(0)) == self.dim / self.heads,
                    "turns need a number a dimension of a head.");
            nb::gil_scoped_release unlocked;
            self.write(x.data(), place, turned ? turns.data() : nullptr, keys.data(), values.data(), logits.data(), threads);
        });
}

}  // namespace firth
