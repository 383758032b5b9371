#include "bindings/common.h"
#include "walks.h"

namespace firth {
namespace {

// A graph with the arrays and alias tables it points to.
struct Walks {
    Array<int64_t> starts;
    Array<int32_t> neighbors;
    Array<float> weights;  // empty: unweighted
    std::vector<Alias> alias;
    std::vector<double> sums;
    Links links{};

    Walks(Array<int64_t> starts_, Array<int32_t> neighbors_, Array<float> weights_, bool directed, int threads)
        : starts(starts_), neighbors(neighbors_), weights(weights_) {
        check_starts(starts, neighbors.shape(0));
        const auto nodes = (int64_t)starts.shape(0) - 1;
        require(nodes < INT32_MAX && threads >= 1,
                "there can be at most 2,147,483,646 nodes, and threads must be at least 1.");
        check_columns(neighbors, nodes);
        for (int64_t node = 0; node < nodes; ++node)
            for (int64_t i = starts.data()[node] + 1; i < starts.data()[node + 1]; ++i)
                require(neighbors.data()[i - 1] < neighbors.data()[i], "neighbors must ascend within a row.");
        links = {starts.data(), neighbors.data(), nullptr, nullptr, nullptr, (int32_t)nodes, directed};
        if (!weights.shape(0)) return;
        require(weights.shape(0) == neighbors.shape(0), "weights must have one entry per neighbor.");
        for (size_t i = 0; i < weights.shape(0); ++i)
            require(weights.data()[i] > 0 && weights.data()[i] <= 3.402823466e38f, "weights must be positive.");
        alias.resize(neighbors.shape(0));
        sums.resize((size_t)nodes);
        {
            nb::gil_scoped_release unlocked;
            link_tables(starts.data(), weights.data(), (int32_t)nodes, alias.data(), sums.data(), threads);
        }
        links.weights = weights.data();
        links.alias = alias.data();
        links.sums = sums.data();
    }

    // The nodes of all walks one after the other, where each starts (and the end), and the draws made.
    auto walk(Array<int32_t> first, Array<int32_t> number, int length, double p, double q, uint64_t seed,
              int threads) const {
        const size_t count = first.shape(0);
        require(number.shape(0) == count && length >= 1 && threads >= 1,
                "number must have one entry per walk, and length and threads must be at least 1.");
        require(p > 0 && q > 0 && 1 / p > 0 && 1 / q > 0, "p and q must be positive and finite.");
        for (size_t i = 0; i < count; ++i)
            require(first.data()[i] >= 0 && first.data()[i] < links.nodes,
                    "first must hold nodes of the graph to walk from.");
        std::vector<int32_t> nodes(count * (size_t)length), lengths(count);
        std::vector<int64_t> begins(count + 1, 0);
        int64_t draws = 0;
        {
            nb::gil_scoped_release unlocked;
            draws = firth::walk(links, {length, p, q, seed}, first.data(), number.data(), (int64_t)count, nodes.data(),
                                lengths.data(), threads);
            for (size_t i = 0; i < count; ++i) {  // close the gaps after walks that ended early
                const int32_t* from = nodes.data() + i * (size_t)length;
                if (from != nodes.data() + begins[i]) std::copy(from, from + lengths[i], nodes.data() + begins[i]);
                begins[i + 1] = begins[i] + lengths[i];
            }
            nodes.resize((size_t)begins[count]);
        }
        return nb::make_tuple(owned(std::move(nodes)), owned(std::move(begins)), draws);
    }
};

}  // namespace

void bind_walks(nb::module_& m) {
    nb::class_<Walks>(m, "Walks")
        .def(nb::init<Array<int64_t>, Array<int32_t>, Array<float>, bool, int>(), nb::arg("starts"),
             nb::arg("neighbors"), nb::arg("weights"), nb::arg("directed"), nb::arg("threads"))
        .def("walk", &Walks::walk, nb::arg("first"), nb::arg("number"), nb::arg("length"), nb::arg("p"), nb::arg("q"),
             nb::arg("seed"), nb::arg("threads"));
}

}  // namespace firth
