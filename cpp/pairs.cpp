#include "pairs.h"

#include "text.h"

#include <algorithm>

namespace firth {

int64_t& PairTable::operator[](uint64_t key) {
    if (used_ * 2 >= entries_.size()) rebuild(entries_.size() * 2, INT64_MIN);
    for (size_t at = slot(key);; at = (at + 1) & (entries_.size() - 1)) {
        if (entries_[at].key == key) return entries_[at].value;
        if (entries_[at].key == 0) {
            entries_[at].key = key;
            ++used_;
            return entries_[at].value;
        }
    }
}

const PairTable::Entry* PairTable::find(uint64_t key) const {
    for (size_t at = slot(key); entries_[at].key; at = (at + 1) & (entries_.size() - 1))
        if (entries_[at].key == key) return &entries_[at];
    return nullptr;
}

int64_t PairTable::drop_half() {
    std::vector<int64_t> values;
    for (const Entry& entry : entries_)
        if (entry.key) values.push_back(entry.value);
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    rebuild(entries_.size(), *middle);
    return *middle;
}

void PairTable::rebuild(size_t slots, int64_t most) {
    std::vector<Entry> old(slots);
    old.swap(entries_);
    used_ = 0;
    for (const Entry& entry : old) {
        if (!entry.key || entry.value <= most) continue;
        size_t at = slot(entry.key);
        while (entries_[at].key) at = (at + 1) & (slots - 1);
        entries_[at] = entry;
        ++used_;
    }
}

void PairCounter::add(const int32_t* ids, size_t size, const int32_t* map, const uint8_t* keep) {
    constexpr size_t batch = 64;  // keys that are prefetched before they are counted
    uint64_t keys[batch];
    for (size_t begin = 0; begin < size; begin += batch) {
        size_t count = 0;
        for (size_t i = begin; i < std::min(begin + batch, size); ++i) {
            const int32_t word = ids[i] == kDocumentEnd ? -1 : map[ids[i]];
            const int32_t counted = word >= 0 && keep[word] ? word : -1;
            if (previous_ >= 0 && counted >= 0) table_.prefetch(keys[count++] = PairTable::key(previous_, counted));
            previous_ = counted;
        }
        for (size_t i = 0; i < count; ++i) ++table_[keys[i]];
        // Drops pairs where growing would exceed the limit.
        if (max_bytes_ && table_.bytes() * 2 > max_bytes_ && table_.nearly_full())
            dropped_ = std::max(dropped_, table_.drop_half());
    }
}

Pairs PairCounter::pairs(int64_t min_count) const {
    std::vector<PairTable::Entry> entries;
    for (const auto& entry : table_.entries())
        if (entry.key && entry.value >= min_count) entries.push_back(entry);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    Pairs pairs;
    for (const auto& entry : entries) {
        pairs.first.push_back(static_cast<int32_t>((entry.key - 1) >> 32));
        pairs.second.push_back(static_cast<int32_t>((entry.key - 1) & 0xFFFFFFFFu));
        pairs.count.push_back(entry.value);
    }
    return pairs;
}

PairJoiner::PairJoiner(const int32_t* first, const int32_t* second, const int32_t* joined, size_t size) {
    for (size_t i = 0; i < size; ++i) table_[PairTable::key(first[i], second[i])] = joined[i];
}

size_t PairJoiner::join(const int32_t* ids, size_t size, const int32_t* map, int32_t* out) {
    int32_t* const begin = out;
    const auto release = [&] {
        if (pending_ >= 0) *out++ = pending_;
        pending_ = -1;
    };
    if (size == 0) release();
    for (size_t i = 0; i < size; ++i) {
        const int32_t word = ids[i] == kDocumentEnd ? -1 : map[ids[i]];
        const PairTable::Entry* phrase =
            pending_ >= 0 && word >= 0 ? table_.find(PairTable::key(pending_, word)) : nullptr;
        if (phrase) {
            *out++ = static_cast<int32_t>(phrase->value);
            pending_ = -1;
            continue;
        }
        release();
        pending_ = word;
        if (ids[i] == kDocumentEnd) *out++ = kDocumentEnd;
    }
    return static_cast<size_t>(out - begin);
}

}  // namespace firth
