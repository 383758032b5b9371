#include "bindings/common.h"
#include "cooccur.h"

namespace firth {
namespace {

Plan plan_of(const Array<int32_t>& bounds, int64_t max_pairs, int threads, int64_t words) {
    const size_t size = bounds.shape(0);
    require(size >= 2 && bounds.data()[0] == 0 && bounds.data()[size - 1] == words && threads >= 1 && max_pairs >= 1,
            "blocks must cover all words.");
    for (size_t b = 1; b < size; ++b) require(bounds.data()[b - 1] < bounds.data()[b], "blocks must not be empty.");
    return {bounds.data(), static_cast<int64_t>(size) - 1, max_pairs, threads};
}

// A corpus to be counted, with the arrays it points to.
struct PairSums {
    Array<int32_t> ids;
    Array<int64_t> starts, weight;
    Array<uint32_t> keep;
    Array<int32_t> bounds;
    Text text;
    Windows windows;
    Plan plan;

    PairSums(Array<int32_t> ids_, Array<int64_t> starts_, int32_t words, Array<uint32_t> keep_, uint64_t seed,
             Array<int64_t> weight_, double scale, bool left, bool right, Array<int32_t> bounds_, int64_t max_pairs,
             int threads)
        : ids(ids_), starts(starts_), weight(weight_), keep(keep_), bounds(bounds_) {
        const size_t documents = starts.shape(0);
        require(documents >= 2 && starts.data()[0] == 0, "starts must hold 0 and the end of each document.");
        for (size_t d = 1; d < documents; ++d)
            require(starts.data()[d - 1] <= starts.data()[d], "starts must not decrease.");
        require((size_t)starts.data()[documents - 1] == ids.shape(0), "the last start must be the number of ids.");
        for (size_t i = 0; i < ids.shape(0); ++i)
            require(ids.data()[i] >= 0 && ids.data()[i] < words, "ids must be words.");
        require(keep.shape(0) == 0 || keep.shape(0) == (size_t)words, "keep must have one entry per word, or none.");
        require(weight.shape(0) >= 2 && scale > 0,
                "weights must have one entry per distance, and scale must be positive.");
        for (size_t d = 1; d < weight.shape(0); ++d) require(weight.data()[d] > 0, "weights must be positive.");
        text = {ids.data(),
                starts.data(),
                static_cast<int64_t>(documents) - 1,
                words,
                keep.shape(0) ? keep.data() : nullptr,
                seed};
        windows = {static_cast<int>(weight.shape(0)) - 1, left, right, weight.data(), scale};
        plan = plan_of(bounds, max_pairs, threads, words);
    }

    void check(int64_t first, int64_t last) const {
        require(0 <= first && first < last && (size_t)last <= ids.shape(0) && last - first <= int64_t(1) << 30,
                "first and last must be a range of at most 2^30 ids.");
    }
};

}  // namespace

void bind_cooccur(nb::module_& m) {
    nb::class_<PairSums>(m, "PairSums")
        .def(nb::init<Array<int32_t>, Array<int64_t>, int32_t, Array<uint32_t>, uint64_t, Array<int64_t>, double, bool,
                      bool, Array<int32_t>, int64_t, int>(),
             nb::arg("ids"), nb::arg("starts"), nb::arg("words"), nb::arg("keep"), nb::arg("seed"), nb::arg("weight"),
             nb::arg("scale"), nb::arg("left"), nb::arg("right"), nb::arg("bounds"), nb::arg("max_pairs"),
             nb::arg("threads"))
        .def(
            "rows",
            [](const PairSums& self, int64_t first, int64_t last, int contexts, int weights, Output<int64_t> lengths) {
                self.check(first, last);
                require(lengths.shape(0) == (size_t)self.text.words, "lengths must have one entry per word.");
                const Result result{contexts, weights, lengths.data()};
                return unlocked_on_disk(
                    [&] { return count_rows(self.text, self.windows, self.plan, first, last, result); });
            },
            nb::arg("first"), nb::arg("last"), nb::arg("contexts"), nb::arg("weights"), nb::arg("lengths"))
        .def(
            "run",
            [](const PairSums& self, int64_t first, int64_t last, int file, int64_t begin, Output<int64_t> offsets) {
                self.check(first, last);
                require(offsets.shape(0) == self.bounds.shape(0), "offsets must have one entry per block plus one.");
                const RunFile run{file, begin, offsets.data()};
                return unlocked_on_disk(
                    [&] { return count_run(self.text, self.windows, self.plan, first, last, run); });
            },
            nb::arg("first"), nb::arg("last"), nb::arg("file"), nb::arg("begin"), nb::arg("offsets"))
        .def(
            "merge",
            [](const PairSums& self, Array<int32_t> files,
               nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig> offsets, int64_t buffer, int contexts, int weights,
               Output<int64_t> lengths) {
                require(offsets.shape(1) == self.bounds.shape(0) && buffer >= 1,
                        "offsets must have one row per run, and buffer must be at least 1.");
                require(files.shape(0) == offsets.shape(0), "files must have one descriptor per run.");
                require(lengths.shape(0) == (size_t)self.text.words, "lengths must have one entry per word.");
                const Result result{contexts, weights, lengths.data()};
                return unlocked_on_disk([&] {
                    return merge_runs(files.data(), offsets.data(), (int64_t)offsets.shape(0), buffer, self.text.words,
                                      self.windows.scale, self.plan, result);
                });
            },
            nb::arg("files"), nb::arg("offsets"), nb::arg("buffer"), nb::arg("contexts"), nb::arg("weights"),
            nb::arg("lengths"));
}

}  // namespace firth
