#include "bindings/common.h"
#include "bpe.h"
#include "unicode.h"

namespace firth {
namespace {

void check_words(const nb::bytes& words, const Array<int64_t>& counts) {
    const char* text = words.c_str();
    const auto terminated = std::count(text, text + words.size(), '\0');
    require(static_cast<size_t>(terminated) == counts.shape(0) && (!words.size() || text[words.size() - 1] == '\0'),
            "words must each be followed by a NUL and have a count.");
}

std::string joined(const std::vector<std::string>& tokens) {
    std::string text;
    for (const auto& token : tokens) text.append(token).push_back('\0');
    return text;
}

}  // namespace

void bind_tokenizers(nb::module_& m) {
    m.def(
        "alphabet",
        [](nb::bytes words, Array<int64_t> counts) {
            check_words(words, counts);
            Alphabet alphabet = alphabet_of(words.c_str(), words.size(), counts.data());
            return nb::make_tuple(owned(std::move(alphabet.codes)), owned(std::move(alphabet.counts)),
                                  owned(std::move(alphabet.positions)));
        },
        nb::arg("words"), nb::arg("counts"));
    nb::class_<BpeTrainer>(m, "BpeTrainer")
        .def(
            "__init__",
            [](BpeTrainer* self, nb::bytes words, Array<int64_t> counts, nb::bytes tokens, Array<uint32_t> codes,
               Array<int32_t> plain_ids, Array<int32_t> affixed_ids, bool affix_last, const std::string& prefix) {
                check_words(words, counts);
                require(codes.shape(0) == plain_ids.shape(0) && codes.shape(0) == affixed_ids.shape(0),
                        "codes, plain_ids and affixed_ids must have the same length.");
                const auto n_tokens = std::count(tokens.c_str(), tokens.c_str() + tokens.size(), '\0');
                for (size_t i = 0; i < codes.shape(0); ++i)
                    require(codes.data()[i] < kCodePoints &&
                                std::max(plain_ids.data()[i], affixed_ids.data()[i]) < n_tokens,
                            "codes must be code points, and plain_ids and affixed_ids indices of tokens.");
                nb::gil_scoped_release free;
                const Characters characters{codes.data(), plain_ids.data(), affixed_ids.data(), codes.shape(0),
                                            affix_last};
                new (self) BpeTrainer(words.c_str(), words.size(), counts.data(), counts.shape(0),
                                      {tokens.c_str(), tokens.size()}, characters, prefix);
            },
            nb::arg("words"), nb::arg("counts"), nb::arg("tokens"), nb::arg("codes"), nb::arg("plain_ids"),
            nb::arg("affixed_ids"), nb::arg("affix_last"), nb::arg("prefix"))
        .def(
            "run",
            [](BpeTrainer& self, int64_t vocabulary, int64_t min_count, int64_t steps) {
                nb::gil_scoped_release free;
                return self.run(vocabulary, min_count, steps);
            },
            nb::arg("vocabulary"), nb::arg("min_count"), nb::arg("steps"))
        .def("tokens",
             [](const BpeTrainer& self) {
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
