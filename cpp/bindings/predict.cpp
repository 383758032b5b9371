#include "bindings/common.h"
#include "sampling.h"
#include "table.h"
#include "train.h"

namespace firth {
namespace {

// Arrays of a job, kept alive with it.
struct Trainer {
    Array<int32_t> ids;
    Array<int64_t> starts;
    Table inputs, outputs;
    Array<uint32_t> keep;
    AliasTable noise;
    Array<int64_t> path_starts;
    Array<int32_t> path_nodes;
    Array<uint8_t> path_turns;
    Array<int64_t> piece_starts;
    Array<int32_t> piece_rows;
    Array<int64_t> tag_starts;
    Array<int32_t> tag_rows;
    Job job{};

    Trainer(Array<int32_t> ids_, Array<int64_t> starts_, Table inputs_, Table outputs_, Array<uint32_t> keep_,
            AliasTable noise_, Array<int64_t> path_starts_, Array<int32_t> path_nodes_,
            Array<uint8_t> path_turns_, Array<int64_t> piece_starts_, Array<int32_t> piece_rows_,
            Array<int64_t> tag_starts_, Array<int32_t> tag_rows_, int architecture, int loss, int window, int negatives,
            bool mean, bool exact, bool shared, int group, int drawn, bool neighbors, bool shrink, int64_t last)
        : ids(ids_), starts(starts_), inputs(inputs_), outputs(outputs_), keep(keep_), noise(noise_),
          path_starts(path_starts_), path_nodes(path_nodes_), path_turns(path_turns_), piece_starts(piece_starts_),
          piece_rows(piece_rows_), tag_starts(tag_starts_), tag_rows(tag_rows_) {
        const auto words = keep.shape(0);
        require(starts.shape(0) >= 2 && starts.data()[0] == 0, "starts must hold 0 and the end of each document.");
        for (size_t d = 1; d < starts.shape(0); ++d)
            require(starts.data()[d - 1] <= starts.data()[d], "starts must not decrease.");
        require((size_t)starts.data()[starts.shape(0) - 1] == ids.shape(0), "the last start must be the number of ids.");
        require(inputs.shape(1) % 16 == 0, "rows must be padded to 16 floats.");
        require(outputs.shape(1) == inputs.shape(1) * (architecture == CONCAT ? 2 * (size_t)window + 1 : 1),
                "outputs must be as wide as inputs, or as all the inputs side by side.");
        require((uintptr_t)inputs.data() % 64 == 0 && (uintptr_t)outputs.data() % 64 == 0, "tables must be aligned.");
        require(words >= 1 && words <= inputs.shape(0), "keep needs one entry a word, and each word a row.");
        require(window <= MOST_WINDOW && window >= 1, "window must be from 1 to 256.");
        require(group == 1 || group == 2 || group == MOST_GROUP, "group must be 1, 2 or 4.");
        require(architecture != CBOW || group == 1 || (!piece_starts.shape(0) && !tag_starts.shape(0)),
                "groups of cbow have neither pieces nor tags.");
        require(architecture >= SKIPGRAM && architecture <= FORWARD, "no such architecture.");
        require(last >= 0 && (size_t)last <= ids.shape(0), "last must lie inside the ids.");
        const int32_t* id = ids.data();
        for (size_t i = 0; i < ids.shape(0); ++i)
            require(id[i] >= 0 && (size_t)id[i] < words, "ids must be rows of the tables.");
        if (loss == NEGATIVE)
            require(noise.shape(0) == words && noise.shape(1) == 2 && outputs.shape(0) == words,
                    "the noise table needs one entry a word.");
        for (size_t w = 0; w < noise.shape(0); ++w)
            require(noise.data()[2 * w + 1] < words, "the noise table must name words.");
        if (loss == HIERARCHICAL) {
            require(path_starts.shape(0) == words + 1 && path_nodes.shape(0) == path_turns.shape(0) &&
                        (size_t)path_starts.data()[words] == path_nodes.shape(0),
                    "paths need one stretch a word.");
            for (size_t i = 0; i < path_nodes.shape(0); ++i)
                require(path_nodes.data()[i] >= 0 && (size_t)path_nodes.data()[i] < outputs.shape(0),
                        "path nodes must be rows of the outputs.");
        }
        if (loss == SOFTMAX) require(outputs.shape(0) == words, "softmax needs one output row a word.");
        if (piece_starts.shape(0)) {
            require(architecture == CBOW || architecture == FORWARD, "pieces are for cbow and forward.");
            require(piece_starts.shape(0) == words + 1, "pieces need one stretch a word.");
            check_starts(piece_starts, piece_rows.shape(0));
            check_columns(piece_rows, (int64_t)inputs.shape(0));
        }
        if (tag_starts.shape(0)) {
            require(architecture != FORWARD, "documents don't act on forward.");
            require(tag_starts.shape(0) == starts.shape(0), "tags need one stretch a document.");
            check_starts(tag_starts, tag_rows.shape(0));
            check_columns(tag_rows, (int64_t)inputs.shape(0));
            for (size_t d = 1; d < tag_starts.shape(0); ++d) {
                const int64_t count = tag_starts.data()[d] - tag_starts.data()[d - 1];
                require(count <= MOST_TAGS, "a document has 64 tags at most.");
                require(architecture != CONCAT || count == 1, "each document must have one tag.");
            }
        }
        job.ids = ids.data();
        job.starts = starts.data();
        job.documents = (int64_t)starts.shape(0) - 1;
        job.inputs = inputs.data();
        job.outputs = outputs.data();
        job.stride = (int64_t)inputs.shape(1);
        job.output_stride = (int64_t)outputs.shape(1);
        job.words = (int32_t)words;
        job.input_rows = (int32_t)inputs.shape(0);
        job.output_rows = (int32_t)outputs.shape(0);
        job.architecture = architecture;
        job.loss = loss;
        job.mean = mean;
        job.exact = exact;
        job.shared = shared;
        job.group = group;
        job.neighbors = neighbors;
        job.shrink = shrink;
        job.window = window;
        job.negatives = negatives;
        job.drawn = drawn;
        job.keep = keep.data();
        job.noise = reinterpret_cast<const Alias*>(noise.data());
        job.path_starts = path_starts.data();
        job.path_nodes = path_nodes.data();
        job.path_turns = path_turns.data();
        job.piece_starts = piece_starts.shape(0) ? piece_starts.data() : nullptr;
        job.piece_rows = piece_starts.shape(0) ? piece_rows.data() : nullptr;
        job.tag_starts = tag_starts.shape(0) ? tag_starts.data() : nullptr;
        job.tag_rows = tag_starts.shape(0) ? tag_rows.data() : nullptr;
        job.first = 0;
        job.last = last;
        require(drawn >= 0 && (!drawn || grouped(job)), "only groups draw noise by strata.");
    }

    Job epoch(uint64_t seed, double rate_first, double rate_last) const {
        Job now = job;
        now.seed = seed;
        now.rate_first = rate_first;
        now.rate_last = rate_last;
        return now;
    }

    std::tuple<double, int64_t, int64_t> racing(int64_t from, int64_t to, uint64_t seed, double rate_first,
                                                double rate_last, int threads) const {
        require(0 <= from && from <= to && (size_t)to <= ids.shape(0) && threads >= 1, "range outside the ids.");
        require(job.architecture != CONCAT || job.tag_rows, "concat trains with documents.");
        Job now = epoch(seed, rate_first, rate_last);
        if (from >= job.last) {  // the part held out: its own contexts only
            now.first = job.last;
            now.last = (int64_t)ids.shape(0);
        }
        nb::gil_scoped_release unlocked;
        const Tally tally = train_racing(now, from, to, threads);
        return {tally.loss, tally.pairs, tally.words};
    }

    std::tuple<double, int64_t, int64_t> ordered(nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig> cursors, int windows,
                                                 int64_t rounds, uint64_t seed, double rate_first, double rate_last,
                                                 int threads) const {
        const int streams = (int)cursors.shape(0);
        require(streams >= 1 && windows >= 1 && threads >= 1, "at least one stream, window and thread.");
        require(job.loss != SOFTMAX, "every window of a softmax touches every row: no copies of them are kept.");
        for (int s = 0; s < streams; ++s)
            require(stream_start(job, s, streams) <= cursors.data()[s] &&
                        cursors.data()[s] <= stream_start(job, s + 1, streams),
                    "cursors must lie in their streams.");
        const Job now = epoch(seed, rate_first, rate_last);
        nb::gil_scoped_release unlocked;
        const Tally tally = train_ordered(now, cursors.data(), streams, windows, rounds, threads);
        return {tally.loss, tally.pairs, tally.words};
    }

    void infer(Table rows, int epochs, double rate, uint64_t seed, int threads) const {
        require((int64_t)rows.shape(0) == job.documents && (int64_t)rows.shape(1) == job.stride &&
                    (uintptr_t)rows.data() % 64 == 0,
                "one aligned row a document.");
        require(epochs >= 1 && threads >= 1, "at least one epoch and thread.");
        require(job.architecture != FORWARD && (job.architecture != SKIPGRAM || !job.neighbors),
                "only the document's own row learns.");
        Job now = job;
        now.frozen = true;
        now.tag_starts = nullptr;
        now.tag_rows = nullptr;
        nb::gil_scoped_release unlocked;
        firth::infer(now, rows.data(), epochs, rate, seed, threads);
    }

    std::vector<int64_t> stream_starts(int streams) const {
        std::vector<int64_t> starts_of;
        for (int s = 0; s <= streams; ++s) starts_of.push_back(stream_start(job, s, streams));
        return starts_of;
    }
};

}  // namespace

void bind_predict(nb::module_& m) {
    nb::class_<Trainer>(m, "Trainer")
        .def(nb::init<Array<int32_t>, Array<int64_t>, Table, Table, Array<uint32_t>, AliasTable, Array<int64_t>,
                      Array<int32_t>, Array<uint8_t>, Array<int64_t>, Array<int32_t>, Array<int64_t>, Array<int32_t>,
                      int, int, int, int, bool, bool, bool, int, int, bool, bool, int64_t>())
        .def("racing", &Trainer::racing)
        .def("ordered", &Trainer::ordered)
        .def("infer", &Trainer::infer)
        .def("stream_starts", &Trainer::stream_starts);
    m.def("huffman_paths", [](Array<int64_t> counts) {
        Paths paths = huffman_paths(counts.data(), (int32_t)counts.shape(0));
        return nb::make_tuple(owned(std::move(paths.starts)), owned(std::move(paths.nodes)), owned(std::move(paths.turns)));
    });
    m.def("alias_table", [](Array<double> weights) {  // rows of {cut, other}
        auto* table = new std::vector<Alias>(weights.shape(0));
        alias_table(weights.data(), (int32_t)weights.shape(0), table->data());
        nb::capsule owner(table, [](void* p) noexcept { delete static_cast<std::vector<Alias>*>(p); });
        return nb::ndarray<nb::numpy, uint32_t, nb::ndim<2>>(table->data(), {table->size(), 2}, owner);
    });
    m.def("new_table", [](int64_t rows, int64_t stride) {
        require(rows >= 0 && stride > 0 && stride % 16 == 0, "rows must be padded to 16 floats.");
        float* data = new_table(rows * stride);
        nb::capsule owner(data, [](void* p) noexcept { free_table(static_cast<float*>(p)); });
        return nb::ndarray<nb::numpy, float, nb::ndim<2>>(data, {(size_t)rows, (size_t)stride}, owner);
    });
}

}  // namespace firth
