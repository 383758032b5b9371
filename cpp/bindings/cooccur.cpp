#include "bindings/common.h"
#include "cooccur.h"

namespace firth {
namespace {

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

}  // namespace

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

}  // namespace firth
