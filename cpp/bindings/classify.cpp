#include "bindings/common.h"
#include "labels.h"

#include <memory>

namespace firth {
namespace {

void check_buckets(const Array<int32_t>& bucket_rows, int64_t rows, bool used) {
    require(!used || bucket_rows.shape(0) > 0, "n-grams require buckets.");
    for (size_t i = 0; i < bucket_rows.shape(0); ++i)
        require(bucket_rows.data()[i] >= -1 && bucket_rows.data()[i] < rows,
                "bucket_rows must be rows of the inputs, or -1.");
}

void check_outputs(const Table& outputs, int32_t labels, int64_t stride) {
    require(labels >= 1 && outputs.shape(0) % 16 == 0 && outputs.shape(0) >= (size_t)labels &&
                (int64_t)outputs.shape(1) == stride && stride % 16 == 0 && (uintptr_t)outputs.data() % 64 == 0,
            "outputs must have aligned rows padded to 16 floats, and a multiple of 16 rows.");
}

// A classifier in training with the arrays it points to.
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
    LabelTask task{};

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
        require(starts.shape(0) == label_starts.shape(0), "label_starts must have one entry per text plus one.");
        check_columns(ids, (int64_t)hashes.shape(0));
        check_columns(labels, label_count);
        check_columns(ngrams, (int64_t)bucket_rows.shape(0));
        const bool ngrams_used = ngrams.shape(0) > 0;
        require(ngram_starts.shape(0) == hashes.shape(0) + 1, "ngram_starts must have one entry per word plus one.");
        check_buckets(bucket_rows, (int64_t)inputs.shape(0), ngrams_used || word_ngrams > 1);
        require(words >= 0 && (size_t)words <= inputs.shape(0), "words must be rows of the inputs.");
        require((uintptr_t)inputs.data() % 64 == 0, "tables must be aligned to 64 bytes.");
        check_outputs(outputs, label_count, (int64_t)inputs.shape(1));
        if (loss == LABEL_NEGATIVE) {
            require(noise.shape(0) == (size_t)label_count && noise.shape(1) == 2 && label_count > 1,
                    "the noise table must have one entry per label, and there must be at least two labels.");
            for (size_t i = 0; i < noise.shape(0); ++i)
                require(noise.data()[2 * i + 1] < (uint32_t)label_count,
                        "the entries of the noise table must be labels.");
        }
        if (loss == LABEL_HIERARCHICAL) {
            check_starts(path_starts, path_nodes.shape(0));
            require(path_starts.shape(0) == (size_t)label_count + 1 && path_nodes.shape(0) == path_turns.shape(0),
                    "paths must have one list per label.");
            check_columns(path_nodes, label_count);
        }
        rows = {words, 0, ngrams_used ? 1 : 0, word_ngrams, bucket_rows.data(), (uint32_t)bucket_rows.shape(0)};
        task = {inputs.data(),
                outputs.data(),
                (int64_t)inputs.shape(1),
                label_count,
                loss,
                negatives,
                reinterpret_cast<const Alias*>(noise.data()),
                path_starts.data(),
                path_nodes.data(),
                path_turns.data()};
    }

    std::pair<double, int64_t> train(Array<int64_t> order, int64_t first, int64_t last, double rate_first,
                                     double rate_last, uint64_t seed, int threads) const {
        const auto size = (int64_t)order.shape(0);
        require(0 <= first && first <= last && last <= size && threads >= 1,
                "first and last must be a range of the order, and threads at least 1.");
        for (int64_t i = first; i < last; ++i)
            require(order.data()[i] >= 0 && order.data()[i] < (int64_t)starts.shape(0) - 1,
                    "order must hold indices of texts.");
        nb::gil_scoped_release unlocked;
        const LabelTally tally = train_labels(task, {ids.data(), starts.data(), labels.data(), label_starts.data()},
                                              {hashes.data(), ngram_starts.data(), ngrams.data()}, rows, order.data(),
                                              first, last, size, rate_first, rate_last, seed, threads);
        return {tally.loss, tally.texts};
    }
};

// A trained classifier with the arrays it points to.
struct LabelPredictor {
    Dense inputs;
    Table outputs;
    Array<int32_t> bucket_rows;
    nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> children;
    std::unique_ptr<TextLabelPredictor> predictor;

    LabelPredictor(nb::bytes words, const std::string& split, bool lowercase, int minn, int maxn, int word_ngrams,
                   Dense inputs_, Array<int32_t> bucket_rows_, int32_t word_count, Table outputs_, int32_t labels,
                   int loss, nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> children_)
        : inputs(inputs_), outputs(outputs_), bucket_rows(bucket_rows_), children(children_) {
        require(word_count >= 0 && (size_t)word_count <= inputs.shape(0), "words must be rows of the inputs.");
        const auto stride = (int64_t)(inputs.shape(1) + 15) / 16 * 16;
        check_outputs(outputs, labels, stride);
        const bool ngrams = maxn > 0 || word_ngrams > 1;
        check_buckets(bucket_rows, (int64_t)inputs.shape(0), ngrams);
        if (loss == LABEL_HIERARCHICAL) {
            require((int64_t)children.shape(0) == labels - 1 && children.shape(1) == 2,
                    "children must have labels − 1 rows of two.");
            for (size_t i = 0; i < children.shape(0) * 2; ++i) {
                const int32_t child = children.data()[i];  // children precede their parents, so no path is endless
                require(child < 0 ? ~child < labels : child < (int32_t)(i / 2),
                        "children must be earlier nodes of the tree, or labels.");
            }
        }
        const bool fasttext = split == "fasttext";
        const Splitting splitting{split_named(fasttext ? "separated" : split), lowercase, fasttext};
        const InputRows rows{word_count, minn, maxn, word_ngrams, bucket_rows.data(), (uint32_t)bucket_rows.shape(0)};
        const LabelTask task{nullptr, outputs.data(), stride, labels, loss, 0, nullptr, nullptr, nullptr, nullptr};
        predictor =
            std::make_unique<TextLabelPredictor>(std::string(words.c_str(), words.size()), splitting, rows,
                                                 inputs.data(), (int64_t)inputs.shape(1), task, children.data());
    }

    static void check_ends(const Array<uint8_t>& data, const Array<int64_t>& ends) {
        int64_t last = 0;
        for (size_t i = 0; i < ends.shape(0); last = ends.data()[i++])
            require(ends.data()[i] >= last && (size_t)ends.data()[i] <= data.shape(0),
                    "ends must ascend within the text.");
    }

    nb::tuple predict(Array<uint8_t> data, Array<int64_t> ends, int32_t k, float threshold, int threads) const {
        check_ends(data, ends);
        require(k >= 1 && threads >= 1, "k and threads must be at least 1.");
        Predictions predictions;
        {
            nb::gil_scoped_release unlocked;
            predictions = predictor->predict(data.data(), ends.data(), (int64_t)ends.shape(0), k, threshold, threads);
        }
        return nb::make_tuple(owned(std::move(predictions.starts)), owned(std::move(predictions.labels)),
                              owned(std::move(predictions.probabilities)));
    }

    void hidden(Array<uint8_t> data, Array<int64_t> ends, Table out, Output<int64_t> counts, int threads) const {
        check_ends(data, ends);
        require(out.shape(0) == ends.shape(0) && counts.shape(0) == ends.shape(0) && out.shape(1) == inputs.shape(1) &&
                    threads >= 1,
                "out and counts must have one row per text.");
        nb::gil_scoped_release unlocked;
        predictor->hidden(data.data(), ends.data(), (int64_t)ends.shape(0), out.data(), counts.data(), threads);
    }
};

}  // namespace

void bind_classify(nb::module_& m) {
    nb::class_<LabelTrainer>(m, "LabelTrainer")
        .def(nb::init<Array<int32_t>, Array<int64_t>, Array<int32_t>, Array<int64_t>, Array<int32_t>, Array<int64_t>,
                      Array<int32_t>, Array<int32_t>, Table, Table, AliasTable, Array<int64_t>, Array<int32_t>,
                      Array<uint8_t>, int32_t, int, int32_t, int, int>(),
             nb::kw_only(), nb::arg("ids"), nb::arg("starts"), nb::arg("labels"), nb::arg("label_starts"),
             nb::arg("hashes"), nb::arg("ngram_starts"), nb::arg("ngrams"), nb::arg("bucket_rows"), nb::arg("inputs"),
             nb::arg("outputs"), nb::arg("noise"), nb::arg("path_starts"), nb::arg("path_nodes"), nb::arg("path_turns"),
             nb::arg("words"), nb::arg("word_ngrams"), nb::arg("label_count"), nb::arg("loss"), nb::arg("negatives"))
        .def("train", &LabelTrainer::train, nb::arg("order"), nb::arg("first"), nb::arg("last"), nb::arg("rate_first"),
             nb::arg("rate_last"), nb::arg("seed"), nb::arg("threads"));
    nb::class_<LabelPredictor>(m, "LabelPredictor")
        .def(nb::init<nb::bytes, const std::string&, bool, int, int, int, Dense, Array<int32_t>, int32_t, Table,
                      int32_t, int, nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(),
             nb::kw_only(), nb::arg("words"), nb::arg("split"), nb::arg("lowercase"), nb::arg("minn"), nb::arg("maxn"),
             nb::arg("word_ngrams"), nb::arg("inputs"), nb::arg("bucket_rows"), nb::arg("word_count"),
             nb::arg("outputs"), nb::arg("labels"), nb::arg("loss"), nb::arg("children"))
        .def("predict", &LabelPredictor::predict, nb::arg("data"), nb::arg("ends"), nb::arg("k"), nb::arg("threshold"),
             nb::arg("threads"))
        .def("hidden", &LabelPredictor::hidden, nb::arg("data"), nb::arg("ends"), nb::arg("out"), nb::arg("counts"),
             nb::arg("threads"));
    m.def(
        "mark_buckets",
        [](Array<int32_t> ids, Array<int64_t> starts, Array<int32_t> hashes, int word_ngrams, Output<uint8_t> used,
           int threads) {
            check_starts(starts, ids.shape(0));
            check_columns(ids, (int64_t)hashes.shape(0));
            require(used.shape(0) > 0 && threads >= 1, "n-grams require buckets.");
            const InputRows rows{0, 0, 0, word_ngrams, nullptr, (uint32_t)used.shape(0)};
            nb::gil_scoped_release unlocked;
            mark_buckets({ids.data(), starts.data(), nullptr, nullptr}, (int64_t)starts.shape(0) - 1,
                         {hashes.data(), nullptr, nullptr}, rows, used.data(), threads);
        },
        nb::arg("ids"), nb::arg("starts"), nb::arg("hashes"), nb::arg("word_ngrams"), nb::arg("used"),
        nb::arg("threads"));
    m.def(
        "take_labels",
        [](Array<uint8_t> data, Array<int64_t> ends, bool take, bool separate) {
            LabelPredictor::check_ends(data, ends);
            ExtractedLabels extracted;
            {
                nb::gil_scoped_release unlocked;
                extracted = take_labels(data.data(), data.shape(0), ends.data(), ends.shape(0), take, separate);
            }
            return nb::make_tuple(owned(std::move(extracted.text)), owned(std::move(extracted.text_ends)),
                                  owned(std::move(extracted.labels)), owned(std::move(extracted.label_ends)));
        },
        nb::arg("data"), nb::arg("ends"), nb::arg("take"), nb::arg("separate"));
}

}  // namespace firth
