#include "bindings/common.h"
#include "strata.h"

namespace firth {
namespace {

// A GloVe task with the arrays it points to.
struct GloveTrainer {
    Array<uint32_t> records;  // four values each
    Array<int64_t> starts;
    Table words, contexts, word_biases, context_biases;
    int parts;
    GloveTask task{};

    GloveTrainer(Array<uint32_t> records_, Array<int64_t> starts_, int parts_, Table words_, Table contexts_,
                 Table word_biases_, Table context_biases_)
        : records(records_), starts(starts_), words(words_), contexts(contexts_), word_biases(word_biases_),
          context_biases(context_biases_), parts(parts_) {
        const size_t rows = words.shape(0), blocks = (size_t)parts * (size_t)parts;
        require(parts >= 1 && starts.shape(0) == blocks + 1 && records.shape(0) % 4 == 0,
                "starts must have one entry per block plus one.");
        require(words.shape(1) % 32 == 0 && contexts.shape(0) == rows && contexts.shape(1) == words.shape(1),
                "both tables must have rows of two vectors padded to 16 floats.");
        require((uintptr_t)words.data() % 64 == 0 && (uintptr_t)contexts.data() % 64 == 0,
                "tables must be aligned to 64 bytes.");
        for (const Table& biases : {word_biases, context_biases})
            require(biases.shape(0) == rows && biases.shape(1) == 2, "biases must have a row of two values per word.");
        const int64_t count = (int64_t)records.shape(0) / 4;
        require(starts.data()[0] == 0 && starts.data()[blocks] == count, "starts must end at the number of records.");
        const auto* record = data();
        for (size_t block = 0; block < blocks; ++block) {
            const int64_t first = starts.data()[block], last = starts.data()[block + 1];
            require(first <= last && last <= count, "starts must not decrease.");
            const auto row = (int32_t)(block / (size_t)parts), column = (int32_t)(block % (size_t)parts);
            for (int64_t i = first; i < last; ++i)
                require(record[i].word >= 0 && (size_t)record[i].word < rows && record[i].context >= 0 &&
                            (size_t)record[i].context < rows && record[i].word % parts == row &&
                            record[i].context % parts == column,
                        "records must be rows of the tables, each in its block.");
        }
        task = {
            words.data(), contexts.data(), word_biases.data(), context_biases.data(), (int64_t)words.shape(1) / 2, 0};
    }

    const GloveRecord* data() const { return reinterpret_cast<const GloveRecord*>(records.data()); }

    double diagonal(int which, int64_t piece, int64_t pieces, float rate, int threads) const {
        require(0 <= which && which < parts && 0 <= piece && piece < pieces && threads >= 1,
                "which, piece or threads is out of range.");
        GloveTask current = task;
        current.rate = rate;
        nb::gil_scoped_release unlocked;
        return train_diagonal(current, data(), starts.data(), parts, which, piece, pieces, threads);
    }
};

}  // namespace

void bind_glove(nb::module_& m) {
    m.def(
        "write_strata",
        [](Array<int64_t> starts, Array<int32_t> contexts, Array<double> counts, double x_max, double exponent,
           int parts, uint64_t seed, int threads, int file, Output<int64_t> blocks) {
            const size_t words = starts.shape(0) - 1;
            require(starts.shape(0) >= 2 && starts.data()[0] == 0 && contexts.shape(0) == counts.shape(0) &&
                        (size_t)starts.data()[words] == contexts.shape(0),
                    "starts must end at the number of pairs.");
            for (size_t w = 0; w < words; ++w)
                require(starts.data()[w] <= starts.data()[w + 1], "starts must not decrease.");
            for (size_t i = 0; i < contexts.shape(0); ++i)
                require(contexts.data()[i] >= 0, "contexts must not be negative.");
            require(parts >= 1 && threads >= 1 && blocks.shape(0) == (size_t)parts * (size_t)parts + 1,
                    "starts must have one entry per block plus one.");
            const Counts matrix{starts.data(), contexts.data(), counts.data(), (int32_t)words};
            unlocked_on_disk([&] {
                write_strata(matrix, x_max, exponent, parts, seed, threads, file, blocks.data());
                return 0;
            });
        },
        nb::arg("starts"), nb::arg("contexts"), nb::arg("counts"), nb::arg("x_max"), nb::arg("exponent"),
        nb::arg("parts"), nb::arg("seed"), nb::arg("threads"), nb::arg("file"), nb::arg("blocks"));
    nb::class_<GloveTrainer>(m, "GloveTrainer")
        .def(nb::init<Array<uint32_t>, Array<int64_t>, int, Table, Table, Table, Table>(), nb::arg("records"),
             nb::arg("starts"), nb::arg("parts"), nb::arg("words"), nb::arg("contexts"), nb::arg("word_biases"),
             nb::arg("context_biases"))
        .def("diagonal", &GloveTrainer::diagonal, nb::arg("which"), nb::arg("piece"), nb::arg("pieces"),
             nb::arg("rate"), nb::arg("threads"));
}

}  // namespace firth
