#include "bindings/common.h"
#include "strata.h"

namespace firth {
namespace {

// Records, tables and biases of a GloVe model, kept alive together.
struct GloveTrainer {
    Array<uint32_t> records;  // four numbers each
    Array<int64_t> starts;
    Table words, contexts, word_biases, context_biases;
    int parts;
    GloveJob job{};

    GloveTrainer(Array<uint32_t> records_, Array<int64_t> starts_, int parts_, Table words_, Table contexts_,
                 Table word_biases_, Table context_biases_)
        : records(records_), starts(starts_), words(words_), contexts(contexts_), word_biases(word_biases_),
          context_biases(context_biases_), parts(parts_) {
        const size_t rows = words.shape(0), blocks = (size_t)parts * (size_t)parts;
        require(parts >= 1 && starts.shape(0) == blocks + 1 && records.shape(0) % 4 == 0, "one start a block.");
        require(words.shape(1) % 32 == 0 && contexts.shape(0) == rows && contexts.shape(1) == words.shape(1),
                "both tables need rows of two vectors padded to 16 floats.");
        require((uintptr_t)words.data() % 64 == 0 && (uintptr_t)contexts.data() % 64 == 0, "tables must be aligned.");
        for (const Table& biases : {word_biases, context_biases})
            require(biases.shape(0) == rows && biases.shape(1) == 2, "biases need a row of two for each word.");
        const int64_t count = (int64_t)records.shape(0) / 4;
        require(starts.data()[0] == 0 && starts.data()[blocks] == count, "starts must lead to the end of the records.");
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
        job = {words.data(), contexts.data(), word_biases.data(), context_biases.data(), (int64_t)words.shape(1) / 2, 0};
    }

    const GloveRecord* data() const { return reinterpret_cast<const GloveRecord*>(records.data()); }

    double diagonal(int which, int64_t piece, int64_t pieces, float rate, int threads) const {
        require(0 <= which && which < parts && 0 <= piece && piece < pieces && threads >= 1, "no such diagonal.");
        GloveJob now = job;
        now.rate = rate;
        nb::gil_scoped_release unlocked;
        return train_diagonal(now, data(), starts.data(), parts, which, piece, pieces, threads);
    }
};

}  // namespace

void bind_glove(nb::module_& m) {
    m.def("write_strata", [](Array<int64_t> starts, Array<int32_t> contexts, Array<double> counts, double x_max,
                             double exponent, int parts, uint64_t seed, int threads, int file, Room<int64_t> blocks) {
        const size_t words = starts.shape(0) - 1;
        require(starts.shape(0) >= 2 && starts.data()[0] == 0 && contexts.shape(0) == counts.shape(0) &&
                    (size_t)starts.data()[words] == contexts.shape(0),
                "starts must lead to the end of the pairs.");
        for (size_t w = 0; w < words; ++w) require(starts.data()[w] <= starts.data()[w + 1], "starts must not decrease.");
        for (size_t i = 0; i < contexts.shape(0); ++i) require(contexts.data()[i] >= 0, "contexts must be ids.");
        require(parts >= 1 && threads >= 1 && blocks.shape(0) == (size_t)parts * (size_t)parts + 1, "one start a block.");
        const Counts given{starts.data(), contexts.data(), counts.data(), (int32_t)words};
        unlocked_on_disk([&] {
            write_strata(given, x_max, exponent, parts, seed, threads, file, blocks.data());
            return 0;
        });
    });
    nb::class_<GloveTrainer>(m, "GloveTrainer")
        .def(nb::init<Array<uint32_t>, Array<int64_t>, int, Table, Table, Table, Table>())
        .def("diagonal", &GloveTrainer::diagonal);
}

}  // namespace firth
