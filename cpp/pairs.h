// Neighbouring words: counted, and joined into phrases. Streams of ids as in text.h; calls go on where the last ended.
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
    void prefetch(uint64_t key) const { __builtin_prefetch(&entries_[place(key)], 1); }
    int64_t& operator[](uint64_t key);        // made with 0 where it is new
    const Entry* find(uint64_t key) const;    // nullptr where there is none
    int64_t drop_half();                      // the entries up to the middle value, which it returns
    bool nearly_full() const { return used_ * 20 >= entries_.size() * 9; }  // it doubles at one half
    size_t bytes() const { return entries_.size() * sizeof(Entry); }
    const std::vector<Entry>& entries() const { return entries_; }  // free ones among them

  private:
    size_t place(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ull >> 20) & (entries_.size() - 1); }
    void rebuild(size_t places, int64_t most);

    std::vector<Entry> entries_;
    size_t used_ = 0;
};

struct Pairs {
    std::vector<int32_t> first, second;
    std::vector<int64_t> count;
};

class PairCounter {
  public:
    // Where the table would outgrow `most_bytes` (0 = none) the rarer half of the pairs is dropped.
    explicit PairCounter(size_t most_bytes) : most_bytes_(most_bytes) {}

    // Counts neighbours map[id], map[next id] where both words are kept.
    void add(const int32_t* ids, size_t size, const int32_t* map, const uint8_t* keep);
    Pairs pairs(int64_t min_count) const;  // in the order of their ids
    int64_t dropped() const { return dropped_; }  // up to which count pairs were dropped; 0 = none were

  private:
    PairTable table_;
    size_t most_bytes_;
    int32_t before_ = -1;
    int64_t dropped_ = 0;
};

class PairJoiner {
  public:
    // first[i], second[i] become joined[i].
    PairJoiner(const int32_t* first, const int32_t* second, const int32_t* joined, size_t size);

    // Joins greedily from the left, never over a document's end or a dropped word; returns how many ids were written
    // to `out` (room: size + 1). The last word waits for the next call; one of size 0 writes it.
    size_t join(const int32_t* ids, size_t size, const int32_t* map, int32_t* out);

  private:
    PairTable table_;
    int32_t waiting_ = -1;
};

}  // namespace firth
