#include "bindings/common.h"
#include "bpe.h"
#include "unicode.h"

namespace firth {
namespace {

void check_words(const nb::bytes& words, const Array<int64_t>& counts) {
    const char* text = words.c_str();
    const auto found = std::count(text, text + words.size(), '\0');
    require(static_cast<size_t>(found) == counts.shape(0) && (!words.size() || text[words.size() - 1] == '\0'),
            "words need a NUL behind each, and a count each.");
}

std::string joined(const std::vector<std::string>& tokens) {
    std::string text;
    for (const auto& token : tokens) text.append(token).push_back('\0');
    return text;
}

}  // namespace

void bind_tokenizers(nb::module_& m) {
    m.def("alphabet", [](nb::bytes words, Array<int64_t> counts) {
        check_words(words, counts);
        Alphabet found = alphabet_of(words.c_str(), words.size(), counts.data());
        return nb::make_tuple(owned(std::move(found.codes)), owned(std::move(found.counts)),
                              owned(std::move(found.places)));
    });
    nb::class_<BpeTrainer>(m, "BpeTrainer")
        .def("__init__", [](BpeTrainer* self, nb::bytes words, Array<int64_t> counts, nb::bytes tokens,
                            Array<uint32_t> codes, Array<int32_t> usual, Array<int32_t> marked, bool mark_last,
                            const std::string& prefix) {
            check_words(words, counts);
            require(codes.shape(0) == usual.shape(0) && codes.shape(0) == marked.shape(0), "characters need three arrays.");
            const auto n_tokens = std::count(tokens.c_str(), tokens.c_str() + tokens.size(), '\0');
            for (size_t i = 0; i < codes.shape(0); ++i)
                require(codes.data()[i] < kCodePoints && std::max(usual.data()[i], marked.data()[i]) < n_tokens,
                        "characters must be code points with ids of tokens.");
            nb::gil_scoped_release free;
            const Characters characters{codes.data(), usual.data(), marked.data(), codes.shape(0), mark_last};
            new (self) BpeTrainer(words.c_str(), words.size(), counts.data(), counts.shape(0),
                                  {tokens.c_str(), tokens.size()}, characters, prefix);
        })
        .def("run", [](BpeTrainer& self, int64_t vocabulary, int64_t min_count, int64_t steps) {
            nb::gil_scoped_release free;
            return self.run(vocabulary, min_count, steps);
        })
        .def("tokens", [](const BpeTrainer& self) {
            const std::string tokens = joined(self.tokens());
            return nb::bytes(tokens.data(), tokens.size());
        })
        .def("merges", [](const BpeTrainer& self) {  // left, right, joined, count
            auto merges = self.merges();
            return nb::make_tuple(owned(std::move(merges.left)), owned(std::move(merges.right)),
                                  owned(std::move(merges.joined)), owned(std::move(merges.counts)));
        });
}

}  // namespace firth
