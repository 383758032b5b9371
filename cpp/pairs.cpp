#include "pairs.h"

#include "text.h"

#include <algorithm>

namespace firth {

int64_t& PairTable::operator[](uint64_t key) {
    if (used_ * 2 >= entries_.size()) rebuild(entries_.size() * 2, INT64_MIN);
    for (size_t at = place(key);; at = (at + 1) & (entries_.size() - 1)) {
        if (entries_[at].key == key) return entries_[at].value;
        if (entries_[at].key == 0) {
            entries_[at].key = key;
            ++used_;
            return entries_[at].value;
        }
    }
}

const PairTable::Entry* PairTable::find(uint64_t key) const {
    for (size_t at = place(key); entries_[at].key; at = (at + 1) & (entries_.size() - 1))
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

void PairTable::rebuild(size_t places, int64_t most) {
    std::vector<Entry> old(places);
    old.swap(entries_);
    used_ = 0;
    for (const Entry& entry : old) {
        if (!entry.key || entry.value <= most) continue;
        size_t at = place(entry.key);
        while (entries_[at].key) at = (at + 1) & (places - 1);
        entries_[at] = entry;
        ++used_;
    }
}

void PairCounter::add(const int32_t* ids, size_t size, const int32_t* map, const uint8_t* keep) {
    constexpr size_t batch = 64;  // keys whose lines are fetched while earlier ones are counted
    uint64_t keys[batch];
    for (size_t begin = 0; begin < size; begin += batch) {
        size_t count = 0;
        for (size_t i = begin; i < std::min(begin + batch, size); ++i) {
            const int32_t word = ids[i] == kDocumentEnd ? -1 : map[ids[i]];
            const int32_t kept = word >= 0 && keep[word] ? word : -1;
            if (before_ >= 0 && kept >= 0) table_.prefetch(keys[count++] = PairTable::key(before_, kept));
            before_ = kept;
        }
        for (size_t i = 0; i < count; ++i) ++table_[keys[i]];
        // Where growing would take too much, room is made instead.
        if (most_bytes_ && table_.bytes() * 2 > most_bytes_ && table_.nearly_full())
            dropped_ = std::max(dropped_, table_.drop_half());
    }
}

Pairs PairCounter::pairs(int64_t min_count) const {
    std::vector<PairTable::Entry> found;
    for (const auto& entry : table_.entries())
        if (entry.key && entry.value >= min_count) found.push_back(entry);
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    Pairs pairs;
    for (const auto& entry : found) {
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
        if (waiting_ >= 0) *out++ = waiting_;
        waiting_ = -1;
    };
    if (size == 0) release();
    for (size_t i = 0; i < size; ++i) {
        const int32_t word = ids[i] == kDocumentEnd ? -1 : map[ids[i]];
        const PairTable::Entry* found = waiting_ >= 0 && word >= 0 ? table_.find(PairTable::key(waiting_, word)) : nullptr;
        if (found) {
            *out++ = static_cast<int32_t>(found->value);
            waiting_ = -1;
            continue;
        }
        release();
        waiting_ = word;
        if (ids[i] == kDocumentEnd) *out++ = kDocumentEnd;
    }
    return static_cast<size_t>(out - begin);
}

}  // namespace firth
