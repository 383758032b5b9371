// Adjacent words, counted and merged into phrases. Streams of ids as in text.h; each call continues the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace firth {

// An open-addressing table from a pair of ids to a number.
class PairTable {
  public:
    struct Entry {
        uint64_t key;  // first << 32 | second, plus one; 0 = free
        int64_t value;
    };

    PairTable() : entries_(1 << 12) {}
    static uint64_t key(int32_t first, int32_t second) {
        return (static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second)) + 1;
    }
    void prefetch(uint64_t key) const { __builtin_prefetch(&entries_[slot(key)], 1); }
    int64_t& operator[](uint64_t key);      // inserted with value 0 if new
    const Entry* find(uint64_t key) const;  // nullptr if missing
    int64_t drop_half();                    // drops the entries up to the median value; returns it
    bool nearly_full() const { return used_ * 20 >= entries_.size() * 9; }  // it doubles at one half
    size_t bytes() const { return entries_.size() * sizeof(Entry); }
    const std::vector<Entry>& entries() const { return entries_; }  // including free ones

  private:
    size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ull >> 20) & (entries_.size() - 1); }
    void rebuild(size_t slots, int64_t most);

    std::vector<Entry> entries_;
    size_t used_ = 0;
};

struct Pairs {
    std::vector<int32_t> first, second;
    std::vector<int64_t> count;
};

class PairCounter {
  public:
    // When the table would exceed `max_bytes` (0 = no limit), the rarer half of the pairs is dropped.
    explicit PairCounter(size_t max_bytes) : max_bytes_(max_bytes) {}

    // Counts adjacent pairs (map[id], map[next id]) if both words are in `keep`.
    void add(const int32_t* ids, size_t size, const int32_t* map, const uint8_t* keep);
    Pairs pairs(int64_t min_count) const;         // in the order of their ids
    int64_t dropped() const { return dropped_; }  // the highest count that was dropped; 0 = none

  private:
    PairTable table_;
    size_t max_bytes_;
    int32_t previous_ = -1;
    int64_t dropped_ = 0;
};

class PairJoiner {
  public:
    // The pair first[i], second[i] becomes joined[i].
    PairJoiner(const int32_t* first, const int32_t* second, const int32_t* joined, size_t size);

    // Merges greedily from the left, never across a document end or a dropped word; returns the number of ids written
    // to `out` (capacity: size + 1). The last word is held back until the next call; a call of size 0 flushes it.
    size_t join(const int32_t* ids, size_t size, const int32_t* map, int32_t* out);

  private:
    PairTable table_;
    int32_t pending_ = -1;
};

}  // namespace firth
