#include "walks.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "hash.h"
#include "sampling.h"
#include "threads.h"

namespace firth {
namespace {

constexpr uint64_t WALK_SALT = 0xd1b54a32d192ed03ull;  // keeps the random bits of walks apart from those of tokens
constexpr int64_t WALKS_PER_TASK = 64;                 // walks taken by a thread at a time
constexpr int MIN_TRIES = 16;

// The random state of one walk and its steps.
class RandomWalker {
  public:
    RandomWalker(const Links& links, const WalkRule& rule) : links_(links), rule_(rule) {
        second_order_ = rule.p != 1 || rule.q != 1;
        far_ = 1 / rule.q;
        back_ = 1 / rule.p;
        // Candidates are accepted below this height. The return edge may exceed it, by `excess_`; that part is sampled
        // separately, otherwise nearly all candidates would be rejected for small p (Yang et al. 2019, KnightKing).
        height_ = std::max(1.0, far_);
        excess_ = std::max(0.0, back_ - height_);
        low_ = std::min({1.0, far_, back_});
    }

    int32_t walk(int32_t first, int32_t number, int32_t* out) {
        state_ = mix(mix(rule_.seed + WALK_SALT + (uint64_t)first * GOLDEN) + (uint64_t)number * GOLDEN);
        int32_t before = -1, at = first;
        int64_t link = -1;  // the one that led from `before` to `at`
        out[0] = first;
        for (int32_t step = 1; step < rule_.length; ++step) {
            const int64_t degree = links_.starts[at + 1] - links_.starts[at];
            if (!degree) return step;
            const int64_t next = second_order_ && before >= 0 && degree > 1 ? biased(before, at, link) : by_weight(at);
            before = at;
            link = next;
            out[step] = at = links_.neighbors[next];
        }
        return rule_.length;
    }

    int64_t draws = 0;

  private:
    uint64_t bits() { return mix(state_ += GOLDEN); }
    double uniform() { return (double)(bits() >> 11) * 0x1p-53; }

    // Samples a link of `at` by weight.
    int64_t by_weight(int32_t at) {
        ++draws;
        const int64_t row = links_.starts[at], degree = links_.starts[at + 1] - row;
        const uint64_t random = bits();
        const int64_t slot = (int64_t)(((random >> 32) * (uint64_t)degree) >> 32);
        if (!links_.alias) return row + slot;
        const Alias alias = links_.alias[row + slot];
        return row + ((uint32_t)random < alias.cut ? slot : alias.other);
    }

    // The link from `from` to `to`, or -1.
    int64_t find(int32_t from, int32_t to) const {
        const int32_t* begin = links_.neighbors + links_.starts[from];
        const int32_t* end = links_.neighbors + links_.starts[from + 1];
        const int32_t* position = std::lower_bound(begin, end, to);
        return position != end && *position == to ? position - links_.neighbors : -1;
    }

    bool linked(int32_t from, int32_t to) const {
        const auto degree = [&](int32_t node) { return links_.starts[node + 1] - links_.starts[node]; };
        if (!links_.directed && degree(to) < degree(from)) std::swap(from, to);  // search the shorter row
        return find(from, to) >= 0;
    }

    // The bias of going to `to` after `before` (Grover & Leskovec 2016, section 3.2.2).
    double bias(int32_t before, int32_t to) const {
        if (to == before) return back_;
        return linked(before, to) ? 1.0 : far_;
    }

    // Samples a link of `at` by weight times bias: candidates by weight, accepted by bias (rejection sampling). After
    // too many rejections it samples from the exact distribution of the row, which is the same one.
    int64_t biased(int32_t before, int32_t at, int64_t link) {
        const int64_t degree = links_.starts[at + 1] - links_.starts[at];
        double excess = 0;  // the share of the total area above the height
        if (excess_ > 0) {
            const double area = excess_ * weight_back(before, at, link);
            excess = area / (area + height_ * (links_.weights ? links_.sums[at] : (double)degree));
        }
        const int64_t tries = MIN_TRIES + degree / 8;
        for (int64_t i = 0; i < tries; ++i) {
            if (excess > 0 && uniform() < excess) return find(at, before);
            const int64_t candidate = by_weight(at);
            const double height = uniform() * height_;
            if (height < low_) return candidate;  // accepted for any bias
            if (height < bias(before, links_.neighbors[candidate])) return candidate;
        }
        return from_whole_row(before, at);
    }

    // The weight of the link from `at` to `before`, or 0. In an undirected graph it is that of the link taken to `at`.
    double weight_back(int32_t before, int32_t at, int64_t link) const {
        if (links_.directed) link = find(at, before);
        if (link < 0) return 0;
        return links_.weights ? (double)links_.weights[link] : 1.0;
    }

    int64_t from_whole_row(int32_t before, int32_t at) {
        const int64_t row = links_.starts[at], end = links_.starts[at + 1];
        const auto share = [&](int64_t i) {
            return (links_.weights ? (double)links_.weights[i] : 1.0) * bias(before, links_.neighbors[i]);
        };
        cumulative_.clear();
        double total = 0;
        for (int64_t i = row; i < end; ++i) cumulative_.push_back(total += share(i));
        draws += end - row;
        const double threshold = uniform() * total;
        const auto position = std::upper_bound(cumulative_.begin(), cumulative_.end(), threshold);
        return std::min(row + (int64_t)(position - cumulative_.begin()), end - 1);
    }

    const Links& links_;
    const WalkRule& rule_;
    bool second_order_;
    double far_, back_, height_, excess_, low_;
    uint64_t state_ = 0;
    std::vector<double> cumulative_;
};

}  // namespace

void link_tables(const int64_t* starts, const float* weights, int32_t nodes, Alias* alias, double* sums, int threads) {
    std::atomic<int64_t> next{0};
    on_threads(threads, [&](int) {
        constexpr int64_t ROWS = 1024;
        std::vector<double> row;
        for (int64_t begin; (begin = next.fetch_add(ROWS)) < nodes;)
            for (int64_t node = begin; node < std::min<int64_t>(begin + ROWS, nodes); ++node) {
                row.assign(weights + starts[node], weights + starts[node + 1]);
                double sum = 0;
                for (const double weight : row) sum += weight;
                sums[node] = sum;
                alias_table(row.data(), (int32_t)row.size(), alias + starts[node]);
            }
    });
}

int64_t walk(const Links& links, const WalkRule& rule, const int32_t* first, const int32_t* number, int64_t walks,
             int32_t* out, int32_t* lengths, int threads) {
    std::atomic<int64_t> next{0}, draws{0};
    on_threads(threads, [&](int) {
        RandomWalker walker(links, rule);
        for (int64_t begin; (begin = next.fetch_add(WALKS_PER_TASK)) < walks;)
            for (int64_t i = begin; i < std::min(begin + WALKS_PER_TASK, walks); ++i)
                lengths[i] = walker.walk(first[i], number[i], out + i * rule.length);
        draws += walker.draws;
    });
    return draws;
}

}  // namespace firth
