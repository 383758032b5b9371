#include "bindings/common.h"
#include "sampling.h"
#include "table.h"
#include "train.h"

namespace firth {
namespace {

// Arrays of Python, which a trainer keeps alive.
struct CorpusArrays {
    Array<int32_t> ids;
    Array<int64_t> starts;
};
struct ListArrays {
    Array<int64_t> starts;
    Array<int32_t> rows;

    bool empty() const { return !starts.shape(0); }
    RowLists lists() const { return empty() ? RowLists{nullptr, nullptr} : RowLists{starts.data(), rows.data()}; }
};
struct ModelArrays {
    Table inputs, outputs;
    ListArrays subwords, tags;
};
struct SamplingArrays {
    Array<uint32_t> keep;
    AliasTable noise;
};
struct PathArrays {
    Array<int64_t> starts;
    Array<int32_t> nodes;
    Array<uint8_t> turns;
};

void check_corpus(const CorpusArrays& corpus, size_t words, int64_t last) {
    const auto& [ids, starts] = corpus;
    require(starts.shape(0) >= 2 && starts.data()[0] == 0, "starts must hold 0 and the end of each document.");
    for (size_t d = 1; d < starts.shape(0); ++d)
        require(starts.data()[d - 1] <= starts.data()[d], "starts must not decrease.");
    require((size_t)starts.data()[starts.shape(0) - 1] == ids.shape(0), "the last start must be the number of ids.");
    require(last >= 0 && (size_t)last <= ids.shape(0), "last must be from 0 to the number of ids.");
    const int32_t* id = ids.data();
    for (size_t i = 0; i < ids.shape(0); ++i)
        require(id[i] >= 0 && (size_t)id[i] < words, "ids must be rows of the tables.");
}

void check_tables(const ModelArrays& model, size_t words, const Objective& objective, int window) {
    const Table &inputs = model.inputs, &outputs = model.outputs;
    require(inputs.shape(1) % 16 == 0, "rows must be padded to 16 floats.");
    require(outputs.shape(1) == inputs.shape(1) * (objective.architecture == CONCAT ? 2 * (size_t)window + 1 : 1),
            "outputs must be as wide as inputs; for concat, as wide as all inputs of a window.");
    require((uintptr_t)inputs.data() % 64 == 0 && (uintptr_t)outputs.data() % 64 == 0,
            "tables must be aligned to 64 bytes.");
    require(words >= 1 && words <= inputs.shape(0), "keep needs one entry per word, and each word an input row.");
    if (objective.loss == SOFTMAX) require(outputs.shape(0) == words, "softmax needs one output row per word.");
}

void check_subwords(const ModelArrays& model, size_t words, int architecture) {
    if (model.subwords.empty()) return;
    require(architecture == CBOW || architecture == FORWARD, "subwords require the architecture cbow or forward.");
    require(model.subwords.starts.shape(0) == words + 1, "subwords need one list per word.");
    check_starts(model.subwords.starts, model.subwords.rows.shape(0));
    check_columns(model.subwords.rows, (int64_t)model.inputs.shape(0));
}

void check_tags(const ModelArrays& model, size_t documents, int architecture) {
    if (model.tags.empty()) return;
    const auto& [starts, rows] = model.tags;
    require(architecture != FORWARD, "tags are not available for the architecture forward.");
    require(starts.shape(0) == documents + 1, "tags need one list per document.");
    check_starts(starts, rows.shape(0));
    check_columns(rows, (int64_t)model.inputs.shape(0));
    for (size_t d = 1; d < starts.shape(0); ++d) {
        const int64_t count = starts.data()[d] - starts.data()[d - 1];
        require(count <= MAX_TAGS, "a document can have at most 64 tags.");
        require(architecture != CONCAT || count == 1, "concat needs exactly one tag per document.");
    }
}

void check_sampling(const Sampling& sampling, const SamplingArrays& arrays, const ModelArrays& model,
                    const Objective& objective) {
    const size_t words = arrays.keep.shape(0);
    require(sampling.window <= MAX_WINDOW && sampling.window >= 1, "window must be from 1 to 256.");
    require(sampling.group == 1 || sampling.group == 2 || sampling.group == MAX_GROUP, "group must be 1, 2 or 4.");
    require(objective.architecture != CBOW || sampling.group == 1 || (model.subwords.empty() && model.tags.empty()),
            "cbow with group > 1 does not support subwords or tags.");
    if (objective.loss == NEGATIVE)
        require(arrays.noise.shape(0) == words && arrays.noise.shape(1) == 2 && model.outputs.shape(0) == words,
                "the noise table needs one entry per word.");
    for (size_t w = 0; w < arrays.noise.shape(0); ++w)
        require(arrays.noise.data()[2 * w + 1] < words, "the entries of the noise table must be words.");
}

void check_paths(const PathArrays& paths, size_t words, size_t output_rows) {
    require(paths.starts.shape(0) == words + 1 && paths.nodes.shape(0) == paths.turns.shape(0) &&
                (size_t)paths.starts.data()[words] == paths.nodes.shape(0),
            "paths need one list per word.");
    for (size_t i = 0; i < paths.nodes.shape(0); ++i)
        require(paths.nodes.data()[i] >= 0 && (size_t)paths.nodes.data()[i] < output_rows,
                "path nodes must be rows of the outputs.");
}

// A task with the arrays it points to.
struct Trainer {
    CorpusArrays corpus;
    ModelArrays model;
    SamplingArrays sampling;
    PathArrays paths;
    Task task{};

    Trainer(CorpusArrays corpus_, ModelArrays model_, SamplingArrays sampling_, PathArrays paths_, Objective objective,
            Sampling settings, int64_t last)
        : corpus(corpus_), model(model_), sampling(sampling_), paths(paths_) {
        const size_t words = sampling.keep.shape(0), documents = corpus.starts.shape(0) - 1;
        require(objective.architecture >= SKIPGRAM && objective.architecture <= FORWARD, "unknown architecture.");
        check_corpus(corpus, words, last);
        check_tables(model, words, objective, settings.window);
        check_sampling(settings, sampling, model, objective);
        check_subwords(model, words, objective.architecture);
        check_tags(model, documents, objective.architecture);
        if (objective.loss == HIERARCHICAL) check_paths(paths, words, model.outputs.shape(0));
        task.corpus = {corpus.ids.data(), corpus.starts.data(), (int64_t)documents, 0, last};
        task.model = {model.inputs.data(),
                      model.outputs.data(),
                      (int64_t)model.inputs.shape(1),
                      (int64_t)model.outputs.shape(1),
                      (int32_t)words,
                      (int32_t)model.inputs.shape(0),
                      (int32_t)model.outputs.shape(0),
                      model.subwords.lists(),
                      model.tags.lists()};
        task.objective = objective;
        task.sampling = settings;
        task.sampling.keep = sampling.keep.data();
        task.sampling.noise = reinterpret_cast<const Alias*>(sampling.noise.data());
        task.paths = {paths.starts.data(), paths.nodes.data(), paths.turns.data()};
        require(settings.group_negatives >= 0 && (!settings.group_negatives || grouped(task)),
                "group_negatives requires groups that share negative samples.");
    }

    Task epoch(uint64_t seed, double rate_first, double rate_last) const {
        Task current = task;
        current.sampling.seed = seed;
        current.schedule = {rate_first, rate_last};
        return current;
    }

    std::tuple<double, int64_t, int64_t> racing(int64_t first, int64_t last, uint64_t seed, double rate_first,
                                                double rate_last, int threads) const {
        require(0 <= first && first <= last && (size_t)last <= corpus.ids.shape(0) && threads >= 1,
                "first and last must be a range of the ids, and threads at least 1.");
        require(task.objective.architecture != CONCAT || task.model.tags.rows, "concat needs tags.");
        Task current = epoch(seed, rate_first, rate_last);
        if (first >= task.corpus.last) {  // held-out tokens have only held-out contexts
            current.corpus.first = task.corpus.last;
            current.corpus.last = (int64_t)corpus.ids.shape(0);
        }
        nb::gil_scoped_release unlocked;
        const Tally tally = train_racing(current, first, last, threads);
        return {tally.loss, tally.pairs, tally.words};
    }

    std::tuple<double, int64_t, int64_t> ordered(nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig> cursors, int windows,
                                                 int64_t rounds, uint64_t seed, double rate_first, double rate_last,
                                                 int threads) const {
        const int streams = (int)cursors.shape(0);
        require(streams >= 1 && windows >= 1 && threads >= 1, "cursors, windows and threads must be at least 1.");
        require(task.objective.loss != SOFTMAX,
                "ordered training is not available for softmax, which changes every row in every window.");
        for (int s = 0; s < streams; ++s)
            require(stream_start(task, s, streams) <= cursors.data()[s] &&
                        cursors.data()[s] <= stream_start(task, s + 1, streams),
                    "each cursor must be inside its stream.");
        const Task current = epoch(seed, rate_first, rate_last);
        nb::gil_scoped_release unlocked;
        const Tally tally = train_ordered(current, cursors.data(), streams, windows, rounds, threads);
        return {tally.loss, tally.pairs, tally.words};
    }

    void infer(Table rows, int epochs, double rate, uint64_t seed, int threads) const {
        require((int64_t)rows.shape(0) == task.corpus.documents && (int64_t)rows.shape(1) == task.model.stride &&
                    (uintptr_t)rows.data() % 64 == 0,
                "rows must hold one row per document, as wide as the inputs and aligned to 64 bytes.");
        require(epochs >= 1 && threads >= 1, "epochs and threads must be at least 1.");
        require(task.objective.architecture != FORWARD &&
                    (task.objective.architecture != SKIPGRAM || !task.objective.neighbors),
                "documents cannot be inferred with this architecture.");
        Task current = task;
        current.objective.frozen = true;
        current.model.tags = {nullptr, nullptr};
        nb::gil_scoped_release unlocked;
        firth::infer(current, rows.data(), epochs, rate, seed, threads);
    }

    std::vector<int64_t> stream_starts(int streams) const {
        std::vector<int64_t> starts;
        for (int s = 0; s <= streams; ++s) starts.push_back(stream_start(task, s, streams));
        return starts;
    }
};

}  // namespace

void bind_predict(nb::module_& m) {
    nb::class_<Trainer>(m, "Trainer")
        .def(
            "__init__",
            [](Trainer* self, Array<int32_t> ids, Array<int64_t> starts, Table inputs, Table outputs,
               Array<int64_t> subword_starts, Array<int32_t> subword_rows, Array<int64_t> tag_starts,
               Array<int32_t> tag_rows, Array<uint32_t> keep, AliasTable noise, Array<int64_t> path_starts,
               Array<int32_t> path_nodes, Array<uint8_t> path_turns, int architecture, int loss, bool mean, bool exact,
               bool neighbors, int window, bool shrink, int negatives, bool shared, int group, int group_negatives,
               int64_t last) {
                const ModelArrays model{inputs, outputs, {subword_starts, subword_rows}, {tag_starts, tag_rows}};
                const Objective objective{architecture, loss, mean, exact, neighbors, false};
                const Sampling settings{window, shrink, nullptr, nullptr, negatives, shared, group, group_negatives, 0};
                new (self) Trainer({ids, starts}, model, {keep, noise}, {path_starts, path_nodes, path_turns},
                                   objective, settings, last);
            },
            nb::kw_only(), nb::arg("ids"), nb::arg("starts"), nb::arg("inputs"), nb::arg("outputs"),
            nb::arg("subword_starts"), nb::arg("subword_rows"), nb::arg("tag_starts"), nb::arg("tag_rows"),
            nb::arg("keep"), nb::arg("noise"), nb::arg("path_starts"), nb::arg("path_nodes"), nb::arg("path_turns"),
            nb::arg("architecture"), nb::arg("loss"), nb::arg("mean"), nb::arg("exact"), nb::arg("neighbors"),
            nb::arg("window"), nb::arg("shrink"), nb::arg("negatives"), nb::arg("shared"), nb::arg("group"),
            nb::arg("group_negatives"), nb::arg("last"))
        .def("racing", &Trainer::racing, nb::arg("first"), nb::arg("last"), nb::arg("seed"), nb::arg("rate_first"),
             nb::arg("rate_last"), nb::arg("threads"))
        .def("ordered", &Trainer::ordered, nb::arg("cursors"), nb::arg("windows"), nb::arg("rounds"), nb::arg("seed"),
             nb::arg("rate_first"), nb::arg("rate_last"), nb::arg("threads"))
        .def("infer", &Trainer::infer, nb::arg("rows"), nb::arg("epochs"), nb::arg("rate"), nb::arg("seed"),
             nb::arg("threads"))
        .def("stream_starts", &Trainer::stream_starts, nb::arg("streams"));
    m.def(
        "huffman_paths",
        [](Array<int64_t> counts) {
            Paths paths = huffman_paths(counts.data(), (int32_t)counts.shape(0));
            return nb::make_tuple(owned(std::move(paths.starts)), owned(std::move(paths.nodes)),
                                  owned(std::move(paths.turns)));
        },
        nb::arg("counts"));
    m.def(
        "alias_table",
        [](Array<double> weights) {  // rows of {cut, other}
            auto* table = new std::vector<Alias>(weights.shape(0));
            alias_table(weights.data(), (int32_t)weights.shape(0), table->data());
            nb::capsule owner(table, [](void* p) noexcept { delete static_cast<std::vector<Alias>*>(p); });
            return nb::ndarray<nb::numpy, uint32_t, nb::ndim<2>>(table->data(), {table->size(), 2}, owner);
        },
        nb::arg("weights"));
    m.def(
        "new_table",
        [](int64_t rows, int64_t stride) {
            require(rows >= 0 && stride > 0 && stride % 16 == 0, "rows must be padded to 16 floats.");
            float* data = new_table(rows * stride);
            nb::capsule owner(data, [](void* p) noexcept { free_table(static_cast<float*>(p)); });
            return nb::ndarray<nb::numpy, float, nb::ndim<2>>(data, {(size_t)rows, (size_t)stride}, owner);
        },
        nb::arg("rows"), nb::arg("stride"));
}

}  // namespace firth
