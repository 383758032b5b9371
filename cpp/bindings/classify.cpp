#include "bindings/common.h"
#include "labels.h"

#include <memory>

namespace firth {
namespace {

void check_buckets(const Array<int32_t>& bucket_rows, int64_t rows, bool used) {
    require(!used || bucket_rows.shape(0) > 0, "n-grams need buckets.");
    for (size_t i = 0; i < bucket_rows.shape(0); ++i)
        require(bucket_rows.data()[i] >= -1 && bucket_rows.data()[i] < rows, "buckets must lead to rows of the inputs.");
}

void check_outputs(const Table& outputs, int32_t labels, int64_t stride) {
    require(labels >= 1 && outputs.shape(0) % 16 == 0 && outputs.shape(0) >= (size_t)labels &&
                (int64_t)outputs.shape(1) == stride && stride % 16 == 0 && (uintptr_t)outputs.data() % 64 == 0,
            "outputs need aligned rows of 16 floats, padded to a multiple of 16 rows.");
}

// Texts, labels and tables of a classifier in training, kept alive together.
struct LabelTrainer {
    Array<int32_t> ids;
    Array<int64_t> starts;
    Array<int32_t> labels;
    Array<int64_t> label_starts;
    Array<int32_t> hashes;
    Array<int64_t> ngram_starts;
    Array<int32_t> ngrams;
    Array<int32_t> bucket_rows;
    Table inputs, outputs;
    AliasTable noise;
    Array<int64_t> path_starts;
    Array<int32_t> path_nodes;
    Array<uint8_t> path_turns;
    InputRows rows{};
    LabelJob job{};

    LabelTrainer(Array<int32_t> ids_, Array<int64_t> starts_, Array<int32_t> labels_, Array<int64_t> label_starts_,
                 Array<int32_t> hashes_, Array<int64_t> ngram_starts_, Array<int32_t> ngrams_,
                 Array<int32_t> bucket_rows_, Table inputs_, Table outputs_, AliasTable noise_,
                 Array<int64_t> path_starts_, Array<int32_t> path_nodes_, Array<uint8_t> path_turns_, int32_t words,
                 int word_ngrams, int32_t label_count, int loss, int negatives)
        : ids(ids_), starts(starts_), labels(labels_), label_starts(label_starts_), hashes(hashes_),
          ngram_starts(ngram_starts_), ngrams(ngrams_), bucket_rows(bucket_rows_), inputs(inputs_), outputs(outputs_),
          noise(noise_), path_starts(path_starts_), path_nodes(path_nodes_), path_turns(path_turns_) {
        check_starts(starts, ids.shape(0));
        check_starts(label_starts, labels.shape(0));
        check_starts(ngram_starts, ngrams.shape(0));
        require(starts.shape(0) == label_starts.shape(0), "texts need labels, if only none.");
        check_columns(ids, (int64_t)hashes.shape(0));
        check_columns(labels, label_count);
        check_columns(ngrams, (int64_t)bucket_rows.shape(0));
        const bool ngrams_used = ngrams.shape(0) > 0;
        require(ngram_starts.shape(0) == hashes.shape(0) + 1, "every word needs its n-grams, if only none.");
        check_buckets(bucket_rows, (int64_t)inputs.shape(0), ngrams_used || word_ngrams > 1);
        require(words >= 0 && (size_t)words <= inputs.shape(0), "words must be rows of the inputs.");
        require((uintptr_t)inputs.data() % 64 == 0, "tables must be aligned.");
        check_outputs(outputs, label_count, (int64_t)inputs.shape(1));
        if (loss == LABEL_NEGATIVE) {
            require(noise.shape(0) == (size_t)label_count && noise.shape(1) == 2 && label_count > 1,
                    "the noise table needs one entry a label, and two of them.");
            for (size_t i = 0; i < noise.shape(0); ++i)
                require(noise.data()[2 * i + 1] < (uint32_t)label_count, "the noise table must name labels.");
        }
        if (loss == LABEL_HIERARCHICAL) {
            check_starts(path_starts, path_nodes.shape(0));
            require(path_starts.shape(0) == (size_t)label_count + 1 && path_nodes.shape(0) == path_turns.shape(0),
                    "paths need one stretch a label.");
            check_columns(path_nodes, label_count);
        }
        rows = {words, 0, ngrams_used ? 1 : 0, word_ngrams, bucket_rows.data(), (uint32_t)bucket_rows.shape(0)};
        job = {inputs.data(), outputs.data(), (int64_t)inputs.shape(1), label_count, loss, negatives,
               reinterpret_cast<const Alias*>(noise.data()), path_starts.data(), path_nodes.data(), path_turns.data()};
    }

    std::pair<double, int64_t> train(Array<int64_t> order, int64_t from, int64_t to, double rate_first,
                                     double rate_last, uint64_t seed, int threads) const {
        const auto size = (int64_t)order.shape(0);
        require(0 <= from && from <= to && to <= size && threads >= 1, "range outside the order.");
        for (int64_t i = from; i < to; ++i)
            require(order.data()[i] >= 0 && order.data()[i] < (int64_t)starts.shape(0) - 1, "order must name texts.");
        nb::gil_scoped_release unlocked;
        const LabelTally tally =
            train_labels(job, {ids.data(), starts.data(), labels.data(), label_starts.data()},
                         {hashes.data(), ngram_starts.data(), ngrams.data()}, rows, order.data(), from, to, size,
                         rate_first, rate_last, seed, threads);
        return {tally.loss, tally.texts};
    }
};

// A model ready to be asked, kept alive with its arrays.
struct Labeller {
    Dense inputs;
    Table outputs;
    Array<int32_t> bucket_rows;
    nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> children;
    std::unique_ptr<TextLabeller> asked;

    Labeller(nb::bytes words, const std::string& split, bool lowercase, int minn, int maxn, int word_ngrams,
             Dense inputs_, Array<int32_t> bucket_rows_, int32_t word_count, Table outputs_, int32_t labels, int loss,
             nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> children_)
        : inputs(inputs_), outputs(outputs_), bucket_rows(bucket_rows_), children(children_) {
        require(word_count >= 0 && (size_t)word_count <= inputs.shape(0), "words must be rows of the inputs.");
        const auto stride = (int64_t)(inputs.shape(1) + 15) / 16 * 16;
        check_outputs(outputs, labels, stride);
        const bool ngrams = maxn > 0 || word_ngrams > 1;
        check_buckets(bucket_rows, (int64_t)inputs.shape(0), ngrams);
        if (loss == LABEL_HIERARCHICAL) {
            require((int64_t)children.shape(0) == labels - 1 && children.shape(1) == 2, "a tree has labels − 1 nodes.");
            for (size_t i = 0; i < children.shape(0) * 2; ++i) {
                const int32_t child = children.data()[i];  // children stand before their parents, so no walk is endless
                require(child < 0 ? ~child < labels : child < (int32_t)(i / 2), "children must be nodes of the tree.");
            }
        }
        const bool fasttext = split == "fasttext";
        const Splitting splitting{split_named(fasttext ? "separated" : split), lowercase, fasttext};
        const InputRows rows{word_count, minn, maxn, word_ngrams, bucket_rows.data(), (uint32_t)bucket_rows.shape(0)};
        const LabelJob job{nullptr, outputs.data(), stride, labels, loss, 0, nullptr, nullptr, nullptr, nullptr};
        asked = std::make_unique<TextLabeller>(std::string(words.c_str(), words.size()), splitting, rows, inputs.data(),
                                               (int64_t)inputs.shape(1), job, children.data());
    }

    static void check_ends(const Array<uint8_t>& data, const Array<int64_t>& ends) {
        int64_t last = 0;
        for (size_t i = 0; i < ends.shape(0); last = ends.data()[i++])
            require(ends.data()[i] >= last && (size_t)ends.data()[i] <= data.shape(0), "ends must rise within the text.");
    }

    nb::tuple predict(Array<uint8_t> data, Array<int64_t> ends, int32_t k, float threshold, int threads) const {
        check_ends(data, ends);
        require(k >= 1 && threads >= 1, "at least one label and one thread.");
        Predictions found;
        {
            nb::gil_scoped_release unlocked;
            found = asked->predict(data.data(), ends.data(), (int64_t)ends.shape(0), k, threshold, threads);
        }
        return nb::make_tuple(owned(std::move(found.starts)), owned(std::move(found.labels)),
                              owned(std::move(found.probabilities)));
    }

    void hidden(Array<uint8_t> data, Array<int64_t> ends, Table out, Room<int64_t> counts, int threads) const {
        check_ends(data, ends);
        require(out.shape(0) == ends.shape(0) && counts.shape(0) == ends.shape(0) && out.shape(1) == inputs.shape(1) &&
                    threads >= 1,
                "one row a text.");
        nb::gil_scoped_release unlocked;
        asked->hidden(data.data(), ends.data(), (int64_t)ends.shape(0), out.data(), counts.data(), threads);
    }
};

}  // namespace

void bind_classify(nb::module_& m) {
    nb::class_<LabelTrainer>(m, "LabelTrainer")
        .def(nb::init<Array<int32_t>, Array<int64_t>, Array<int32_t>, Array<int64_t>, Array<int32_t>, Array<int64_t>,
                      Array<int32_t>, Array<int32_t>, Table, Table, AliasTable, Array<int64_t>, Array<int32_t>,
                      Array<uint8_t>, int32_t, int, int32_t, int, int>())
        .def("train", &LabelTrainer::train);
    nb::class_<Labeller>(m, "Labeller")
        .def(nb::init<nb::bytes, const std::string&, bool, int, int, int, Dense, Array<int32_t>, int32_t, Table, int32_t,
                      int, nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>>())
        .def("predict", &Labeller::predict)
        .def("hidden", &Labeller::hidden);
    m.def("mark_buckets", [](Array<int32_t> ids, Array<int64_t> starts, Array<int32_t> hashes, int word_ngrams,
                             Room<uint8_t> marks, int threads) {
        check_starts(starts, ids.shape(0));
        check_columns(ids, (int64_t)hashes.shape(0));
        require(marks.shape(0) > 0 && threads >= 1, "n-grams need buckets.");
        const InputRows rows{0, 0, 0, word_ngrams, nullptr, (uint32_t)marks.shape(0)};
        nb::gil_scoped_release unlocked;
        mark_buckets({ids.data(), starts.data(), nullptr, nullptr}, (int64_t)starts.shape(0) - 1,
                     {hashes.data(), nullptr, nullptr}, rows, marks.data(), threads);
    });
    m.def("take_labels", [](Array<uint8_t> data, Array<int64_t> ends, bool take, bool separate) {
        Labeller::check_ends(data, ends);
        Taken taken;
        {
            nb::gil_scoped_release unlocked;
            taken = take_labels(data.data(), data.shape(0), ends.data(), ends.shape(0), take, separate);
        }
        return nb::make_tuple(owned(std::move(taken.text)), owned(std::move(taken.text_ends)),
                              owned(std::move(taken.labels)), owned(std::move(taken.label_ends)));
    });
}

}  // namespace firth
