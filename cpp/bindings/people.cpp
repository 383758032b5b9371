#include "bindings/common.h"
#include "people.h"

namespace firth {
namespace {

void check_table(const Table& table) {
    require(table.shape(1) % 16 == 0 && (uintptr_t)table.data() % 64 == 0, "tables must be aligned, rows padded to 16.");
}

// Entries, both sides' vectors and what else a side of alternating least squares needs, kept alive together.
struct AlsSide {
    Array<int64_t> starts;
    Array<int32_t> columns;
    Array<float> values;
    Table rows, others;
    Array<float> ridge;
    AlsJob job{};

    AlsSide(Array<int64_t> starts_, Array<int32_t> columns_, Array<float> values_, Table rows_, Table others_,
            Array<float> ridge_, float alpha, float mean, int fixed, int steps)
        : starts(starts_), columns(columns_), values(values_), rows(rows_), others(others_), ridge(ridge_) {
        check_starts(starts, columns.shape(0));
        check_columns(columns, (int64_t)others.shape(0));
        check_table(rows);
        check_table(others);
        require(values.shape(0) == columns.shape(0), "columns and values must have one length.");
        require(rows.shape(0) + 1 == starts.shape(0) && ridge.shape(0) == rows.shape(0), "one start and ridge a row.");
        require(rows.shape(1) == others.shape(1), "both sides need rows of one length.");
        require(steps >= 0 && fixed >= -1 && fixed < (int64_t)rows.shape(1), "steps from 0; fixed is a column or -1.");
        job = {starts.data(), columns.data(), values.data(), others.data(), rows.data(), (int64_t)rows.shape(1),
               nullptr, ridge.data(), alpha, mean, fixed, steps};
    }

    double solve(nb::object gram, int64_t first, int64_t last, int threads) const {
        require(0 <= first && first <= last && (size_t)last <= rows.shape(0) && threads >= 1, "no such rows.");
        AlsJob now = job;
        Dense given;
        if (!gram.is_none()) {
            given = nb::cast<Dense>(gram);
            require(given.shape(0) == rows.shape(1) && given.shape(1) == rows.shape(1) &&
                        (uintptr_t)given.data() % 64 == 0,
                    "the gram matrix must be aligned and fit the rows.");
            now.gram = given.data();
        }
        require(now.gram || now.steps == 0, "conjugate gradients need the gram matrix.");
        nb::gil_scoped_release unlocked;
        return als_solve(now, first, last, threads);
    }
};

// Entries and tables of Bayesian personalised ranking, kept alive together.
struct BprTrainer {
    Array<int64_t> starts;
    Array<int32_t> columns, owners;
    Table users, items;
    AliasTable noise;
    BprJob job{};

    BprTrainer(Array<int64_t> starts_, Array<int32_t> columns_, Array<int32_t> owners_, Table users_, Table items_,
               AliasTable noise_, int bias, float regularization)
        : starts(starts_), columns(columns_), owners(owners_), users(users_), items(items_), noise(noise_) {
        check_starts(starts, columns.shape(0));
        check_columns(columns, (int64_t)items.shape(0));
        check_columns(owners, (int64_t)users.shape(0));
        check_table(users);
        check_table(items);
        require(users.shape(0) + 1 == starts.shape(0) && owners.shape(0) == columns.shape(0), "one owner an entry.");
        require(users.shape(1) == items.shape(1) && bias >= 0 && bias < (int64_t)users.shape(1), "bias is a column.");
        require(noise.shape(0) == items.shape(0) && noise.shape(1) == 2, "the noise table needs one entry an item.");
        for (size_t i = 0; i < noise.shape(0); ++i)
            require(noise.data()[2 * i + 1] < items.shape(0), "the noise table must name items.");
        job = {starts.data(), columns.data(), owners.data(), (int64_t)columns.shape(0), users.data(), items.data(),
               (int64_t)users.shape(1), bias, (int32_t)items.shape(0), reinterpret_cast<const Alias*>(noise.data()),
               0, regularization, 0};
    }

    BprJob now(float rate, uint64_t seed) const {
        BprJob one = job;
        one.rate = rate;
        one.seed = seed;
        return one;
    }

    std::pair<double, int64_t> train(int64_t first, int64_t last, float rate, uint64_t seed, int threads) const {
        require(0 <= first && first <= last && threads >= 1 && job.entries > 0, "no such samples.");
        nb::gil_scoped_release unlocked;
        const BprTally tally = bpr_train(now(rate, seed), first, last, threads);
        return {tally.loss, tally.samples};
    }

    void fold(int64_t passes, float rate, uint64_t seed, int threads) const {
        require(passes >= 1 && threads >= 1, "passes and threads from 1 on.");
        nb::gil_scoped_release unlocked;
        bpr_fold(now(rate, seed), (int64_t)users.shape(0), passes, threads);
    }
};

}  // namespace

void bind_people(nb::module_& m) {
    m.def("als_gram", [](Table table, Table out, int threads) {
        check_table(table);
        require(out.shape(0) == table.shape(1) && out.shape(1) == table.shape(1) && threads >= 1,
                "the gram matrix must fit the rows.");
        nb::gil_scoped_release unlocked;
        als_gram(table.data(), (int64_t)table.shape(0), (int64_t)table.shape(1), out.data(), threads);
    });
    nb::class_<AlsSide>(m, "AlsSide")
        .def(nb::init<Array<int64_t>, Array<int32_t>, Array<float>, Table, Table, Array<float>, float, float, int, int>())
        .def("solve", &AlsSide::solve, nb::arg("gram").none(), nb::arg("first"), nb::arg("last"), nb::arg("threads"));
    nb::class_<BprTrainer>(m, "BprTrainer")
        .def(nb::init<Array<int64_t>, Array<int32_t>, Array<int32_t>, Table, Table, AliasTable, int, float>())
        .def("train", &BprTrainer::train)
        .def("fold", &BprTrainer::fold);
}

}  // namespace firth
