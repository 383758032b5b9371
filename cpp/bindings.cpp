// The only file that knows Python. Kernels see arrays; the GIL is released while they work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <tuple>

#include "cooccur.h"
#include "cpu.h"
#include "pairs.h"
#include "sampling.h"
#include "sparse.h"
#include "strata.h"
#include "table.h"
#include "text.h"
#include "train.h"
#include "unicode.h"

namespace nb = nanobind;
using namespace firth;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AliasTable = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Dense = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
auto owned(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

void require(bool right, const char* rule) {
    if (!right) throw std::invalid_argument(rule);
}

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
    Job job{};

    Trainer(Array<int32_t> ids_, Array<int64_t> starts_, Table inputs_, Table outputs_, Array<uint32_t> keep_,
            AliasTable noise_, Array<int64_t> path_starts_, Array<int32_t> path_nodes_,
            Array<uint8_t> path_turns_, int architecture, int loss, int window, int negatives, bool mean, bool exact, bool shared,
            bool shrink, int64_t last)
        : ids(ids_), starts(starts_), inputs(inputs_), outputs(outputs_), keep(keep_), noise(noise_),
          path_starts(path_starts_), path_nodes(path_nodes_), path_turns(path_turns_) {
        const auto words = inputs.shape(0);
        require(starts.shape(0) >= 2 && starts.data()[0] == 0, "starts must hold 0 and the end of each document.");
        for (size_t d = 1; d < starts.shape(0); ++d)
            require(starts.data()[d - 1] <= starts.data()[d], "starts must not decrease.");
        require((size_t)starts.data()[starts.shape(0) - 1] == ids.shape(0), "the last start must be the number of ids.");
        require(inputs.shape(1) == outputs.shape(1) && inputs.shape(1) % 16 == 0, "rows must be padded to 16 floats.");
        require((uintptr_t)inputs.data() % 64 == 0 && (uintptr_t)outputs.data() % 64 == 0, "tables must be aligned.");
        require(keep.shape(0) == words, "keep needs one entry a word.");
        require(2 * window <= MOST_CONTEXTS && window >= 1, "window must be from 1 to 256.");
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
        job.ids = ids.data();
        job.starts = starts.data();
        job.documents = (int64_t)starts.shape(0) - 1;
        job.inputs = inputs.data();
        job.outputs = outputs.data();
        job.stride = (int64_t)inputs.shape(1);
        job.words = (int32_t)words;
        job.output_rows = (int32_t)outputs.shape(0);
        job.architecture = architecture;
        job.loss = loss;
        job.mean = mean;
        job.exact = exact;
        job.shared = shared;
        job.shrink = shrink;
        job.window = window;
        job.negatives = negatives;
        job.keep = keep.data();
        job.noise = reinterpret_cast<const Alias*>(noise.data());
        job.path_starts = path_starts.data();
        job.path_nodes = path_nodes.data();
        job.path_turns = path_turns.data();
        job.first = 0;
        job.last = last;
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

    std::vector<int64_t> stream_starts(int streams) const {
        std::vector<int64_t> starts_of;
        for (int s = 0; s <= streams; ++s) starts_of.push_back(stream_start(job, s, streams));
        return starts_of;
    }
};

void bind_predict(nb::module_& m) {
    nb::class_<Trainer>(m, "Trainer")
        .def(nb::init<Array<int32_t>, Array<int64_t>, Table, Table, Array<uint32_t>, AliasTable, Array<int64_t>,
                      Array<int32_t>, Array<uint8_t>, int, int, int, int, bool, bool, bool, bool, int64_t>())
        .def("racing", &Trainer::racing)
        .def("ordered", &Trainer::ordered)
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

template <class T>
using Room = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Split split_named(const std::string& name) {
    if (name == "words") return Split::words;
    if (name == "whitespace") return Split::whitespace;
    if (name == "characters") return Split::characters;
    if (name == "separated") return Split::separated;
    throw std::invalid_argument("split must be words, whitespace, characters or separated; got " + name + ".");
}

nb::dict merged_parts(Merged&& merged) {
    nb::dict parts;
    nb::list maps;
    for (auto& map : merged.maps) maps.append(owned(std::move(map)));
    parts["words"] = nb::bytes(merged.words.data(), merged.words.size());
    parts["counts"] = owned(std::move(merged.counts));
    parts["maps"] = maps;
    parts["types"] = merged.types;
    parts["tokens"] = merged.tokens;
    parts["top_count"] = merged.top_count;
    parts["dropped_types"] = merged.dropped_types;
    parts["dropped_tokens"] = merged.dropped_tokens;
    return parts;
}

// A stream of ids (-1 among them) must lie inside what it indexes.
template <class T>
void check_ids(const Array<int32_t>& ids, const Array<T>& indexed) {
    const int32_t* id = ids.data();
    int32_t most = -1, least = 0;
    for (size_t i = 0; i < ids.shape(0); ++i) most = std::max(most, id[i]), least = std::min(least, id[i]);
    require(least >= -1 && most < static_cast<int64_t>(indexed.shape(0)), "ids must lie inside their map.");
}

void bind_text(nb::module_& m) {
    nb::class_<TextEncoder>(m, "TextEncoder")
        .def("__init__", [](TextEncoder* self, const std::string& split, bool lowercase, int slots) {
            require(slots >= 1, "an encoder needs at least one slot.");
            new (self) TextEncoder(split_named(split), lowercase, slots);
        })
        .def("seed", [](TextEncoder& self, nb::bytes words) { self.seed({words.c_str(), words.size()}); })
        .def("encode", [](TextEncoder& self, Array<uint8_t> data, Array<int64_t> ends) {
            nb::gil_scoped_release free;
            self.encode(data.data(), data.shape(0), ends.data(), ends.shape(0));
        })
        .def("stretches", [](nb::handle_t<TextEncoder> self) {  // (slot, its ids): views, valid as text.h says
            const auto& encoder = nb::cast<TextEncoder&>(self);
            nb::list found;
            for (const auto& part : encoder.stretches())
                found.append(nb::make_tuple(part.slot, nb::ndarray<nb::numpy, const int32_t, nb::ndim<1>>(
                                                           encoder.ids(part.slot) + part.begin, {part.size}, self)));
            return found;
        })
        .def("bytes", &TextEncoder::bytes)
        .def("prune", [](TextEncoder& self, int slot) { return owned(self.prune(slot)); })
        .def("merge", [](TextEncoder& self, int64_t min_count, int64_t max_size) {
            Merged merged;
            {
                nb::gil_scoped_release free;
                merged = self.merge(min_count, max_size);
            }
            return merged_parts(std::move(merged));
        })
        .def("facts", [](const TextEncoder& self) {
            return std::pair(self.facts().invalid, self.facts().unsegmented);
        });
    m.def("tokenize", [](nb::bytes text, const std::string& split, bool lowercase) {
        const std::string tokens = tokenize({text.c_str(), text.size()}, split_named(split), lowercase);
        return nb::bytes(tokens.data(), tokens.size());
    });
    m.def("safe_cut", [](Array<uint8_t> data, const std::string& split) {
        return safe_cut(data.data(), data.shape(0), split_named(split));
    });
    m.def("line_ends", [](Array<uint8_t> data) { return owned(line_ends(data.data(), data.shape(0))); });
    m.def("paragraph_ends", [](Array<uint8_t> data, int state) {
        auto ends = owned(paragraph_ends(data.data(), data.shape(0), state));
        return nb::make_tuple(ends, state);
    });
    m.def("translate", [](Array<int32_t> ids, Array<int32_t> map, Room<int32_t> out, Room<int64_t> ends) {
        require(out.shape(0) >= ids.shape(0) && ends.shape(0) >= ids.shape(0), "both outputs need room for every id.");
        check_ids(ids, map);
        nb::gil_scoped_release free;
        const auto written = translate(ids.data(), ids.shape(0), map.data(), out.data(), ends.data());
        return std::pair(written.ids, written.documents);
    });
    nb::class_<PairCounter>(m, "PairCounter")
        .def(nb::init<size_t>())
        .def("add", [](PairCounter& self, Array<int32_t> ids, Array<int32_t> map, Array<uint8_t> keep) {
            check_ids(ids, map);
            check_ids(map, keep);
            nb::gil_scoped_release free;
            self.add(ids.data(), ids.shape(0), map.data(), keep.data());
        })
        .def("pairs", [](const PairCounter& self, int64_t min_count) {
            Pairs pairs = self.pairs(min_count);
            return nb::make_tuple(owned(std::move(pairs.first)), owned(std::move(pairs.second)),
                                  owned(std::move(pairs.count)));
        })
        .def("dropped", &PairCounter::dropped);
    nb::class_<PairJoiner>(m, "PairJoiner")
        .def("__init__", [](PairJoiner* self, Array<int32_t> first, Array<int32_t> second, Array<int32_t> joined) {
            require(first.shape(0) == second.shape(0) && first.shape(0) == joined.shape(0), "pairs need three arrays.");
            new (self) PairJoiner(first.data(), second.data(), joined.data(), first.shape(0));
        })
        .def("join", [](PairJoiner& self, Array<int32_t> ids, Array<int32_t> map, Room<int32_t> out) {
            require(out.shape(0) > ids.shape(0), "out needs room for one id more than there are.");
            check_ids(ids, map);
            nb::gil_scoped_release free;
            return self.join(ids.data(), ids.shape(0), map.data(), out.data());
        });
    m.def("unicode_version", [] { return unicode().version; });
    m.def("unicode_tables", [] {  // class of each code point, its lower case
        const auto& tables = unicode();
        return nb::make_tuple(owned(std::vector<uint8_t>(tables.classes, tables.classes + kCodePoints)),
                              owned(std::vector<int32_t>(tables.lower, tables.lower + kCodePoints)));
    });
}

// Work without the GIL; what the system refuses (a full disk) becomes OSError.
template <class Work>
auto unlocked_on_disk(Work work) {
    try {
        nb::gil_scoped_release unlocked;
        return work();
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
}

Plan plan_of(const Array<int32_t>& bounds, int64_t most_pairs, int threads, int64_t words) {
    const size_t size = bounds.shape(0);
    require(size >= 2 && bounds.data()[0] == 0 && bounds.data()[size - 1] == words && threads >= 1 && most_pairs >= 1,
            "blocks must cover all words.");
    for (size_t b = 1; b < size; ++b) require(bounds.data()[b - 1] < bounds.data()[b], "blocks must not be empty.");
    return {bounds.data(), static_cast<int64_t>(size) - 1, most_pairs, threads};
}

// Arrays of a corpus to be counted, kept alive with it.
struct PairSums {
    Array<int32_t> ids;
    Array<int64_t> starts, weight;
    Array<uint32_t> keep;
    Array<int32_t> bounds;
    Text text;
    Windows windows;
    Plan plan;

    PairSums(Array<int32_t> ids_, Array<int64_t> starts_, int32_t words, Array<uint32_t> keep_, uint64_t seed,
             Array<int64_t> weight_, double scale, bool left, bool right, Array<int32_t> bounds_, int64_t most_pairs,
             int threads)
        : ids(ids_), starts(starts_), weight(weight_), keep(keep_), bounds(bounds_) {
        const size_t documents = starts.shape(0);
        require(documents >= 2 && starts.data()[0] == 0, "starts must hold 0 and the end of each document.");
        for (size_t d = 1; d < documents; ++d)
            require(starts.data()[d - 1] <= starts.data()[d], "starts must not decrease.");
        require((size_t)starts.data()[documents - 1] == ids.shape(0), "the last start must be the number of ids.");
        for (size_t i = 0; i < ids.shape(0); ++i)
            require(ids.data()[i] >= 0 && ids.data()[i] < words, "ids must be words.");
        require(keep.shape(0) == 0 || keep.shape(0) == (size_t)words, "keep needs one entry a word, or none.");
        require(weight.shape(0) >= 2 && scale > 0, "weights need one entry for each distance.");
        for (size_t d = 1; d < weight.shape(0); ++d) require(weight.data()[d] > 0, "weights must be positive.");
        text = {ids.data(), starts.data(), static_cast<int64_t>(documents) - 1, words,
                keep.shape(0) ? keep.data() : nullptr, seed};
        windows = {static_cast<int>(weight.shape(0)) - 1, left, right, weight.data(), scale};
        plan = plan_of(bounds, most_pairs, threads, words);
    }

    void check(int64_t from, int64_t to) const {
        require(0 <= from && from < to && (size_t)to <= ids.shape(0) && to - from <= int64_t(1) << 30,
                "a shard must lie inside the ids and hold at most 2^30 of them.");
    }
};

void bind_cooccur(nb::module_& m) {
    nb::class_<PairSums>(m, "PairSums")
        .def(nb::init<Array<int32_t>, Array<int64_t>, int32_t, Array<uint32_t>, uint64_t, Array<int64_t>, double, bool,
                      bool, Array<int32_t>, int64_t, int>())
        .def("rows", [](const PairSums& self, int64_t from, int64_t to, int contexts, int weights, Room<int64_t> lengths) {
            self.check(from, to);
            require(lengths.shape(0) == (size_t)self.text.words, "lengths need one entry a word.");
            const Result result{contexts, weights, lengths.data()};
            return unlocked_on_disk([&] { return count_rows(self.text, self.windows, self.plan, from, to, result); });
        })
        .def("run", [](const PairSums& self, int64_t from, int64_t to, int file, int64_t begin, Room<int64_t> offsets) {
            self.check(from, to);
            require(offsets.shape(0) == self.bounds.shape(0), "offsets need one entry a block and one more.");
            const RunFile run{file, begin, offsets.data()};
            return unlocked_on_disk([&] { return count_run(self.text, self.windows, self.plan, from, to, run); });
        })
        .def("merge", [](const PairSums& self, int file, nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig> offsets,
                         int64_t buffer, int contexts, int weights, Room<int64_t> lengths) {
            require(offsets.shape(1) == self.bounds.shape(0) && buffer >= 1, "offsets need one row a run.");
            require(lengths.shape(0) == (size_t)self.text.words, "lengths need one entry a word.");
            const Result result{contexts, weights, lengths.data()};
            return unlocked_on_disk([&] {
                return merge_runs(file, offsets.data(), (int64_t)offsets.shape(0), buffer, self.text.words,
                                  self.windows.scale, self.plan, result);
            });
        });
}

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

void check_starts(const Array<int64_t>& starts, size_t entries) {
    require(starts.shape(0) >= 1 && starts.data()[0] == 0, "starts must begin with 0.");
    for (size_t r = 1; r < starts.shape(0); ++r)
        require(starts.data()[r - 1] <= starts.data()[r], "starts must not decrease.");
    require((size_t)starts.data()[starts.shape(0) - 1] == entries, "the last start must be the number of entries.");
}

void check_columns(const Array<int32_t>& columns, int64_t most) {
    int32_t high = -1, low = 0;
    for (size_t i = 0; i < columns.shape(0); ++i)
        high = std::max(high, columns.data()[i]), low = std::min(low, columns.data()[i]);
    require(low >= 0 && high < most, "columns must lie inside the matrix.");
}

void bind_sparse(nb::module_& m) {
    m.def("count_different", [](Array<int32_t> ids, Array<int64_t> starts, int32_t words, Room<int64_t> different,
                                int threads) {
        check_starts(starts, ids.shape(0));
        check_columns(ids, words);
        require(different.shape(0) == starts.shape(0) - 1 && threads >= 1, "different needs one place a document.");
        nb::gil_scoped_release free;
        count_different(ids.data(), starts.data(), (int64_t)different.shape(0), words, different.data(), threads);
    });
    m.def("count_words", [](Array<int32_t> ids, Array<int64_t> starts, int32_t words, Array<int64_t> rows,
                            Room<int32_t> columns, Room<float> counts, int threads) {
        check_starts(starts, ids.shape(0));
        check_columns(ids, words);
        check_starts(rows, columns.shape(0));
        require(rows.shape(0) == starts.shape(0) && counts.shape(0) == columns.shape(0) && threads >= 1,
                "rows need one start a document, and columns and counts the same room.");
        nb::gil_scoped_release free;
        count_words(ids.data(), starts.data(), (int64_t)starts.shape(0) - 1, words, rows.data(), columns.data(),
                    counts.data(), threads);
    });
    m.def("multiply", [](Array<int64_t> starts, Array<int32_t> columns, Array<float> values, Dense dense, Table out,
                         int threads) {
        check_starts(starts, columns.shape(0));
        check_columns(columns, (int64_t)dense.shape(0));
        require(values.shape(0) == columns.shape(0) && threads >= 1, "columns and values must have one length.");
        require(out.shape(0) + 1 == starts.shape(0) && out.shape(1) == dense.shape(1),
                "out must have a row for each sparse row and a column for each dense column.");
        const SparseRows sparse{starts.data(), columns.data(), values.data(), (int64_t)out.shape(0)};
        nb::gil_scoped_release free;
        multiply(sparse, dense.data(), (int64_t)dense.shape(1), out.data(), threads);
    });
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("instruction_sets", &instruction_sets);
    m.def("chosen_isa", [] { return chosen_isa(); });
    bind_predict(m);
    bind_sparse(m);
    bind_text(m);
    bind_cooccur(m);
    bind_glove(m);
}
