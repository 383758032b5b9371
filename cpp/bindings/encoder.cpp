#include "encoder.h"

#include "bindings/common.h"

namespace firth {
namespace {

using Numbers = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
constexpr size_t BEFORE = 5, EACH = 12;  // arrays before the layers', and of each layer

// An encoder with the arrays it reads while it works.
struct BoundEncoder {
    std::vector<Numbers> arrays;
    Encoder::Settings settings;
    Encoder encoder;
};

std::vector<const float*> pointers(const std::vector<Numbers>& arrays) {
    std::vector<const float*> found;
    for (const Numbers& array : arrays) found.push_back(array.data());
    return found;
}

void check(const std::vector<Numbers>& arrays, const Encoder::Settings& given) {
    require(given.layers >= 1 && given.dim >= 1 && given.heads >= 1 && given.hidden >= 1 && given.places >= 1,
            "sizes must be at least 1.");
    require(!given.bytes || std::max(given.dim, given.hidden) <= 65536, "sums of more bytes than 65536 may overflow.");
    require(given.dim % given.heads == 0, "dim must be a multiple of heads.");
    require(arrays.size() == BEFORE + EACH * static_cast<size_t>(given.layers), "an array is missing or too many.");
    const auto d = given.dim, h = given.hidden;
    const int64_t each[EACH] = {3 * d * d, 3 * d, d * d, d, d, d, h * d, h, d * h, d, d, d};
    require(arrays[0].size() % static_cast<size_t>(d) == 0, "tokens must have rows of dim.");
    const int64_t before[BEFORE] = {static_cast<int64_t>(arrays[0].size()), given.places * d, d, d, d};
    for (size_t i = 0; i < arrays.size(); ++i)
        require(static_cast<int64_t>(arrays[i].size()) == (i < BEFORE ? before[i] : each[(i - BEFORE) % EACH]),
                "an array has another size.");
}

}  // namespace

void bind_encoder(nb::module_& m) {
    nb::class_<BoundEncoder>(m, "Encoder")
        .def("__init__",
             [](BoundEncoder* self, std::vector<Numbers> arrays, int64_t layers, int64_t heads, int64_t dim,
                int64_t hidden, int64_t places, int activation, float epsilon, bool bytes) {
                 require(activation >= 0 && activation <= 2, "there is no such activation.");
                 const Encoder::Settings settings{layers,  dim,   heads, hidden, places, static_cast<Activation>(activation),
                                                  epsilon, bytes};
                 check(arrays, settings);
                 const auto found = pointers(arrays);
                 new (self) BoundEncoder{std::move(arrays), settings, Encoder(settings, found)};
             })
        .def("encode", [](const BoundEncoder& self, Array<int32_t> ids, Array<int64_t> starts, Array<float> weights,
                          bool concat, int pool, int64_t chunk_tokens, Table out, int threads) {
            check_starts(starts, ids.shape(0));
            check_columns(ids, static_cast<int64_t>(self.arrays[0].size()) / self.settings.dim);
            const auto texts = static_cast<int64_t>(starts.shape(0)) - 1;
            for (int64_t t = 0; t < texts; ++t) {
                const int64_t length = starts.data()[t + 1] - starts.data()[t];
                require(length >= 1 && length <= self.settings.places, "a text must have a token, and fit the places.");
            }
            require(static_cast<int64_t>(weights.shape(0)) == self.settings.layers + 1, "a weight a layer is needed.");
            int64_t highest = -1, asked = 0;
            for (int64_t l = 0; l <= self.settings.layers; ++l)
                if (weights.data()[l] != 0) highest = l, ++asked;
            require(highest >= 0, "a layer must be asked for.");
            require(pool >= 0 && pool <= 3 && threads >= 1 && chunk_tokens >= 1, "a setting is out of range.");
            const int64_t width = self.settings.dim * (concat ? asked : 1);
            require(static_cast<int64_t>(out.shape(0)) == texts && static_cast<int64_t>(out.shape(1)) == width,
                    "out must have a row a text.");
            const EncoderAsk ask{weights.data(), highest, concat, static_cast<TokenPool>(pool), width};
            nb::gil_scoped_release unlocked;
            self.encoder.encode(ids.data(), starts.data(), texts, ask, chunk_tokens, out.data(), threads);
        });
}

}  // namespace firth
