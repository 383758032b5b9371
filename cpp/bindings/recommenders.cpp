#include "bindings/common.h"
#include "recommenders.h"

namespace firth {
namespace {

void check_table(const Table& table) {
    require(table.shape(1) % 16 == 0 && (uintptr_t)table.data() % 64 == 0,
            "tables must be aligned to 64 bytes, with rows padded to 16 floats.");
}

// One side of alternating least squares with the arrays it points to.
struct AlsSide {
    Array<int64_t> starts;
    Array<int32_t> columns;
    Array<float> values;
    Table rows, others;
    Array<float> ridge;
    AlsTask task{};

    AlsSide(Array<int64_t> starts_, Array<int32_t> columns_, Array<float> values_, Table rows_, Table others_,
            Array<float> ridge_, float alpha, float mean, int bias_column, int steps)
        : starts(starts_), columns(columns_), values(values_), rows(rows_), others(others_), ridge(ridge_) {
        check_starts(starts, columns.shape(0));
        check_columns(columns, (int64_t)others.shape(0));
        check_table(rows);
        check_table(others);
        require(values.shape(0) == columns.shape(0), "columns and values must have the same length.");
        require(rows.shape(0) + 1 == starts.shape(0) && ridge.shape(0) == rows.shape(0),
                "starts must have one entry per row plus one, and ridge one per row.");
        require(rows.shape(1) == others.shape(1), "rows and others must have the same width.");
        require(steps >= 0 && bias_column >= -1 && bias_column < (int64_t)rows.shape(1),
                "steps must be at least 0, and bias_column a column or -1.");
        task = {starts.data(), columns.data(), values.data(), others.data(), rows.data(), (int64_t)rows.shape(1),
                nullptr,       ridge.data(),   alpha,         mean,          bias_column, steps};
    }

    double solve(nb::object gram, int64_t first, int64_t last, int threads) const {
        require(0 <= first && first <= last && (size_t)last <= rows.shape(0) && threads >= 1,
                "first and last must be a range of the rows, and threads at least 1.");
        AlsTask current = task;
        Dense matrix;
        if (!gram.is_none()) {
            matrix = nb::cast<Dense>(gram);
            require(matrix.shape(0) == rows.shape(1) && matrix.shape(1) == rows.shape(1) &&
                        (uintptr_t)matrix.data() % 64 == 0,
                    "the gram matrix must be aligned and as wide as the rows.");
            current.gram = matrix.data();
        }
        require(current.gram || current.steps == 0, "conjugate gradients require the gram matrix.");
        nb::gil_scoped_release unlocked;
        return als_solve(current, first, last, threads);
    }
};

// A BPR task with the arrays it points to.
struct BprTrainer {
    Array<int64_t> starts;
    Array<int32_t> columns, owners;
    Table users, items;
    AliasTable noise;
    BprTask task{};

    BprTrainer(Array<int64_t> starts_, Array<int32_t> columns_, Array<int32_t> owners_, Table users_, Table items_,
               AliasTable noise_, int bias, float regularization)
        : starts(starts_), columns(columns_), owners(owners_), users(users_), items(items_), noise(noise_) {
        check_starts(starts, columns.shape(0));
        check_columns(columns, (int64_t)items.shape(0));
        check_columns(owners, (int64_t)users.shape(0));
        check_table(users);
        check_table(items);
        require(users.shape(0) + 1 == starts.shape(0) && owners.shape(0) == columns.shape(0),
                "starts must have one entry per user plus one, and owners one per interaction.");
        require(users.shape(1) == items.shape(1) && bias >= 0 && bias < (int64_t)users.shape(1),
                "users and items must have the same width, and bias must be a column.");
        require(noise.shape(0) == items.shape(0) && noise.shape(1) == 2,
                "the noise table must have one entry per item.");
        for (size_t i = 0; i < noise.shape(0); ++i)
            require(noise.data()[2 * i + 1] < items.shape(0), "the entries of the noise table must be items.");
        task = {starts.data(),
                columns.data(),
                owners.data(),
                (int64_t)columns.shape(0),
                users.data(),
                items.data(),
                (int64_t)users.shape(1),
                bias,
                (int32_t)items.shape(0),
                reinterpret_cast<const Alias*>(noise.data()),
                0,
                regularization,
                0};
    }

    BprTask with(float rate, uint64_t seed) const {
        BprTask current = task;
        current.rate = rate;
        current.seed = seed;
        return current;
    }

    std::pair<double, int64_t> train(int64_t first, int64_t last, float rate, uint64_t seed, int threads) const {
        require(0 <= first && first <= last && threads >= 1 && task.entries > 0,
                "first and last must be a range of samples, threads at least 1, and there must be interactions.");
        nb::gil_scoped_release unlocked;
        const BprTally tally = bpr_train(with(rate, seed), first, last, threads);
        return {tally.loss, tally.samples};
    }

    void fold(int64_t passes, float rate, uint64_t seed, int threads) const {
        require(passes >= 1 && threads >= 1, "passes and threads must be at least 1.");
        nb::gil_scoped_release unlocked;
        bpr_fold(with(rate, seed), (int64_t)users.shape(0), passes, threads);
    }
};

}  // namespace

void bind_recommenders(nb::module_& m) {
    m.def(
        "als_gram",
        [](Table table, Table out, int threads) {
            check_table(table);
            require(out.shape(0) == table.shape(1) && out.shape(1) == table.shape(1) && threads >= 1,
                    "out must be as wide and as high as the table is wide.");
            nb::gil_scoped_release unlocked;
            als_gram(table.data(), (int64_t)table.shape(0), (int64_t)table.shape(1), out.data(), threads);
        },
        nb::arg("table"), nb::arg("out"), nb::arg("threads"));
    nb::class_<AlsSide>(m, "AlsSide")
        .def(nb::init<Array<int64_t>, Array<int32_t>, Array<float>, Table, Table, Array<float>, float, float, int,
                      int>(),
             nb::arg("starts"), nb::arg("columns"), nb::arg("values"), nb::arg("rows"), nb::arg("others"),
             nb::arg("ridge"), nb::arg("alpha"), nb::arg("mean"), nb::arg("bias_column"), nb::arg("steps"))
        .def("solve", &AlsSide::solve, nb::arg("gram").none(), nb::arg("first"), nb::arg("last"), nb::arg("threads"));
    nb::class_<BprTrainer>(m, "BprTrainer")
        .def(nb::init<Array<int64_t>, Array<int32_t>, Array<int32_t>, Table, Table, AliasTable, int, float>(),
             nb::arg("starts"), nb::arg("columns"), nb::arg("owners"), nb::arg("users"), nb::arg("items"),
             nb::arg("noise"), nb::arg("bias"), nb::arg("regularization"))
        .def("train", &BprTrainer::train, nb::arg("first"), nb::arg("last"), nb::arg("rate"), nb::arg("seed"),
             nb::arg("threads"))
        .def("fold", &BprTrainer::fold, nb::arg("passes"), nb::arg("rate"), nb::arg("seed"), nb::arg("threads"));
}

}  // namespace firth
