// The k best rows of each of several queries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace firth {

constexpr float LOWEST = -std::numeric_limits<float>::infinity();

struct ScoredRow {
    float score;
    int64_t row;
};

// Order of the heaps: the worst row is on top.
inline bool better(const ScoredRow& a, const ScoredRow& b) {
    return a.score > b.score || (a.score == b.score && a.row < b.row);
}

class Best {
  public:
    Best(int64_t queries, int64_t k)
        : k_(static_cast<size_t>(k)), thresholds_(static_cast<size_t>(queries), LOWEST),
          heaps_(static_cast<size_t>(queries)) {
        for (auto& heap : heaps_) heap.reserve(k_);
    }

    // Rows come in ascending order, so ties keep the first.
    void offer(int64_t row, const float* scores, int64_t queries) {
        int any = 0;
        for (int64_t q = 0; q < queries; ++q) any |= scores[q] > thresholds_[static_cast<size_t>(q)];
        if (!any) return;
        for (int64_t q = 0; q < queries; ++q) offer(row, scores[q], q);
    }

    void offer(int64_t row, float score, int64_t query) {
        const auto q = static_cast<size_t>(query);
        if (score > thresholds_[q]) insert(q, {score, row});
    }

    const float* thresholds() const { return thresholds_.data(); }  // the score that a row must exceed
    std::vector<ScoredRow>& heap(int64_t query) { return heaps_[static_cast<size_t>(query)]; }

  private:
    void insert(size_t query, ScoredRow row) {
        auto& heap = heaps_[query];
        if (heap.size() == k_) {
            std::pop_heap(heap.begin(), heap.end(), better);
            heap.back() = row;
        } else {
            heap.push_back(row);
        }
        std::push_heap(heap.begin(), heap.end(), better);
        if (heap.size() == k_) thresholds_[query] = heap.front().score;
    }

    size_t k_;
    std::vector<float> thresholds_;
    std::vector<std::vector<ScoredRow>> heaps_;
};

// The k best rows of one query from the heaps of all threads, best first.
inline std::vector<ScoredRow> merged(std::vector<Best>& threads, int64_t query, int64_t k) {
    std::vector<ScoredRow> all;
    for (auto& best : threads) all.insert(all.end(), best.heap(query).begin(), best.heap(query).end());
    std::sort(all.begin(), all.end(), better);
    if (all.size() > static_cast<size_t>(k)) all.resize(static_cast<size_t>(k));
    return all;
}

}  // namespace firth
