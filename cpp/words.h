// A hash table of words with counts: one cache line per lookup, no allocation per word.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>
#include <sys/mman.h>

namespace firth {

inline uint64_t load8(const void* p) {
    uint64_t value;
    std::memcpy(&value, p, 8);
    return value;
}

// 64 × 64 → 128 bits folded to 64, the mixing step of wyhash (Wang Yi, public domain).
inline uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kSalt0 = 0x2d358dccaa6c78a5ull, kSalt1 = 0x8bb84b93962eacc9ull;

// The key of a word. Up to 16 bytes are stored in `low` and `high`, padded with zeros.
struct Word {
    uint64_t low, high, hash;
    const char* bytes;  // only for words longer than 16 bytes
    uint32_t size;

    void short_word(uint64_t a, uint64_t b, uint32_t length) {
        low = a, high = b, size = length;
        hash = mix(a ^ kSalt0, b ^ kSalt1 ^ length);
    }

    static Word of(const char* p, size_t length) {
        Word word{0, 0, 0, p, static_cast<uint32_t>(length)};
        if (length <= 16) {
            uint64_t pair[2] = {0, 0};
            std::memcpy(pair, p, length);
            word.short_word(pair[0], pair[1], word.size);
            return word;
        }
        word.hash = length * kSalt0;
        for (size_t i = 0; i + 16 < length; i += 16)
            word.hash = mix(load8(p + i) ^ kSalt0 ^ word.hash, load8(p + i + 8) ^ kSalt1);
        word.hash = mix(load8(p + length - 16) ^ kSalt0 ^ word.hash, load8(p + length - 8) ^ kSalt1);
        return word;
    }
};

class WordTable {
  public:
    struct Entry {           // 32 bytes, two per cache line; size 0 = free
        uint64_t low, high;  // the word's bytes or, if longer than 16, its hash and its offset in the arena
        uint32_t size;
        int32_t id;
        int64_t count;
    };

    WordTable() { allocate(1 << 12); }
    WordTable(WordTable&& other) noexcept { swap(other); }
    WordTable& operator=(WordTable&& other) noexcept {
        swap(other);
        return *this;
    }
    ~WordTable() { release(entries_, mask_ + 1); }

    // Reserves capacity for a number of words.
    void reserve(size_t words) {
        size_t slots = mask_ + 1;
        while (words * 2 >= slots) slots *= 2;
        if (slots > mask_ + 1) grow(slots);
    }

    void prefetch(uint64_t hash) const { __builtin_prefetch(entries_ + (hash & mask_), 1); }

    // The word's entry, inserted with count 0 and the next id if new.
    Entry& find(const Word& word) {
        for (size_t at = word.hash & mask_;; at = (at + 1) & mask_) {
            Entry& entry = entries_[at];
            if (entry.size == word.size && same(entry, word)) return entry;
            if (entry.size == 0) return add(word, at);
        }
    }

    // The word's id, or −1.
    int32_t id(const Word& word) const {
        for (size_t at = word.hash & mask_;; at = (at + 1) & mask_) {
            const Entry& entry = entries_[at];
            if (entry.size == 0) return -1;
            if (entry.size == word.size && same(entry, word)) return entry.id;
        }
    }

    template <class Visit>
    void each(Visit visit) const {
        for (size_t at = 0; at <= mask_; ++at)
            if (entries_[at].size) visit(entries_[at]);
    }

    Word word(const Entry& entry) const {
        if (entry.size <= 16) {
            Word word{0, 0, 0, nullptr, 0};
            word.short_word(entry.low, entry.high, entry.size);
            return word;
        }
        return {0, 0, entry.low, arena_.data() + entry.high, entry.size};
    }

    // Points into the entry or the arena; valid until the next `find`.
    std::string_view text(const Entry& entry) const {
        return {entry.size <= 16 ? reinterpret_cast<const char*>(&entry.low) : arena_.data() + entry.high, entry.size};
    }

    int32_t size() const { return size_; }
    size_t bytes() const { return (mask_ + 1) * sizeof(Entry) + arena_.capacity(); }

  private:
    bool same(const Entry& entry, const Word& word) const {
        if (word.size <= 16) return entry.low == word.low && entry.high == word.high;
        return entry.low == word.hash && std::memcmp(arena_.data() + entry.high, word.bytes, word.size) == 0;
    }

    Entry& add(const Word& word, size_t at) {
        if (static_cast<size_t>(size_) * 2 >= mask_ + 1) {
            grow((mask_ + 1) * 2);
            at = free_slot(word.hash);
        }
        Entry& entry = entries_[at];
        entry = {word.low, word.high, word.size, size_++, 0};
        if (word.size > 16) {
            entry.low = word.hash;
            entry.high = arena_.size();
            arena_.insert(arena_.end(), word.bytes, word.bytes + word.size);
        }
        return entry;
    }

    size_t free_slot(uint64_t hash) const {
        size_t at = hash & mask_;
        while (entries_[at].size) at = (at + 1) & mask_;
        return at;
    }

    void grow(size_t new_slots) {
        Entry* old = entries_;
        const size_t slots = mask_ + 1;
        allocate(new_slots);
        for (size_t i = 0; i < slots; ++i)
            if (old[i].size) entries_[free_slot(word(old[i]).hash)] = old[i];
        release(old, slots);
    }

    void allocate(size_t slots) {
        // mmap returns zeroed pages, so all slots are free.
        const size_t size = slots * sizeof(Entry);
        void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) throw std::bad_alloc();
#if defined(__linux__)
        if (size >= 1 << 21) madvise(pages, size, MADV_HUGEPAGE);  // fewer TLB misses; only a hint
#endif
        entries_ = static_cast<Entry*>(pages);
        mask_ = slots - 1;
    }

    static void release(Entry* entries, size_t slots) {
        if (entries) munmap(entries, slots * sizeof(Entry));
    }

    void swap(WordTable& other) noexcept {
        std::swap(entries_, other.entries_);
        std::swap(mask_, other.mask_);
        std::swap(size_, other.size_);
        std::swap(arena_, other.arena_);
    }

    Entry* entries_ = nullptr;
    size_t mask_ = 0;
    int32_t size_ = 0;
    std::vector<char> arena_;
};

}  // namespace firth
