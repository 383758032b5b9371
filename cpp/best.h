// The k best rows of each of several queries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace firth {

constexpr float LEAST = -std::numeric_limits<float>::infinity();

struct Found {
    float score;
    int64_t row;
};

// The worse of two stands nearer to the top of the heap.
inline bool better(const Found& a, const Found& b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

class Best {
  public:
    Best(int64_t queries, int64_t k)
        : k_(static_cast<size_t>(k)), least_(static_cast<size_t>(queries), LEAST), heaps_(static_cast<size_t>(queries)) {
        for (auto& heap : heaps_) heap.reserve(k_);
    }

    // Rows come in rising order, so that of equal scores the first stays.
    void offer(int64_t row, const float* scores, int64_t queries) {
        int some = 0;
        for (int64_t q = 0; q < queries; ++q) some |= scores[q] > least_[static_cast<size_t>(q)];
        if (!some) return;
        for (int64_t q = 0; q < queries; ++q) offer(row, scores[q], q);
    }

    void offer(int64_t row, float score, int64_t query) {
        const auto q = static_cast<size_t>(query);
        if (score > least_[q]) keep(q, {score, row});
    }

    const float* least() const { return least_.data(); }  // what a row must exceed
    std::vector<Found>& heap(int64_t query) { return heaps_[static_cast<size_t>(query)]; }

  private:
    void keep(size_t query, Found found) {
        auto& heap = heaps_[query];
        if (heap.size() == k_) {
            std::pop_heap(heap.begin(), heap.end(), better);
            heap.back() = found;
        } else {
            heap.push_back(found);
        }
        std::push_heap(heap.begin(), heap.end(), better);
        if (heap.size() == k_) least_[query] = heap.front().score;
    }

    size_t k_;
    std::vector<float> least_;
    std::vector<std::vector<Found>> heaps_;
};

// The best k of one query out of the threads' heaps, best first; fewer, where there are fewer.
inline std::vector<Found> merged(std::vector<Best>& threads, int64_t query, int64_t k) {
    std::vector<Found> all;
    for (auto& best : threads) all.insert(all.end(), best.heap(query).begin(), best.heap(query).end());
    std::sort(all.begin(), all.end(), better);
    if (all.size() > static_cast<size_t>(k)) all.resize(static_cast<size_t>(k));
    return all;
}

}  // namespace firth
