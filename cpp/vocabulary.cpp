// Merges the slots' word tables into one vocabulary.
#include "text.h"
#include "threads.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace firth {

std::pair<std::string, std::vector<int64_t>> TextEncoder::words(int slot) const {
    const WordTable& table = slots_.at(static_cast<size_t>(slot))->table;
    std::vector<const WordTable::Entry*> order(static_cast<size_t>(table.size()));
    size_t bytes = order.size();
    table.each([&](const WordTable::Entry& entry) {
        order[static_cast<size_t>(entry.id)] = &entry;
        bytes += entry.size;
    });
    std::pair<std::string, std::vector<int64_t>> listed;
    listed.first.reserve(bytes);
    listed.second.reserve(order.size());
    for (const auto* entry : order) {
        listed.first.append(table.text(*entry)).push_back('\0');
        listed.second.push_back(entry->count);
    }
    return listed;
}

std::vector<int32_t> TextEncoder::add(int slot, const char* words, size_t size, const int64_t* counts, size_t n_words) {
    WordTable& table = slots_.at(static_cast<size_t>(slot))->table;
    std::vector<int32_t> ids;
    ids.reserve(n_words);
    std::array<Word, 64> batch;  // looked up after prefetching the table
    for (size_t at = 0, filled = 1; filled > 0;) {
        for (filled = 0; filled < batch.size() && ids.size() + filled < n_words && at < size; ++filled) {
            const char* const end = static_cast<const char*>(std::memchr(words + at, '\0', size - at));
            if (!end || end == words + at) break;
            batch[filled] = Word::of(words + at, static_cast<size_t>(end - words) - at);
            table.prefetch(batch[filled].hash);
            at = static_cast<size_t>(end - words) + 1;
        }
        for (size_t i = 0; i < filled; ++i) {
            WordTable::Entry& entry = table.find(batch[i]);
            entry.count += counts[ids.size()];
            ids.push_back(entry.id);
        }
    }
    if (ids.size() != n_words) throw std::invalid_argument("there must be one count per word.");
    return ids;
}

std::vector<int32_t> TextEncoder::prune(int slot) {
    Slot& pruned = *slots_.at(static_cast<size_t>(slot));
    std::vector<const WordTable::Entry*> entries;
    pruned.table.each([&](const WordTable::Entry& entry) {
        if (entry.id >= seeds_) entries.push_back(&entry);
    });
    const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(entries.size() / 2);
    const auto rarer = [](const auto* a, const auto* b) { return a->count < b->count; };
    std::nth_element(entries.begin(), middle, entries.end(), rarer);
    const int64_t most = middle == entries.end() ? 0 : (*middle)->count;  // words up to this count are dropped
    std::vector<int32_t> map(static_cast<size_t>(pruned.table.size()), -1);
    WordTable remaining;
    std::vector<const WordTable::Entry*> order(map.size());
    pruned.table.each([&](const WordTable::Entry& entry) { order[static_cast<size_t>(entry.id)] = &entry; });
    for (const auto* entry : order) {
        if (entry->id >= seeds_ && entry->count <= most) {
            ++pruned.pruned_types;
            pruned.pruned_tokens += entry->count;
            continue;
        }
        WordTable::Entry& copy = remaining.find(pruned.table.word(*entry));
        copy.count = entry->count;
        map[static_cast<size_t>(entry->id)] = copy.id;
    }
    pruned.table = std::move(remaining);
    return map;
}

namespace {

struct Rank {
    int64_t count;
    uint64_t prefix;  // first 8 bytes, big-endian: decides most comparisons
    std::string_view text;
    int32_t id;  // in the part's table
    uint32_t part;

    bool operator<(const Rank& other) const {
        if (count != other.count) return count > other.count;
        return prefix != other.prefix ? prefix < other.prefix : text < other.text;
    }
};

// The words of all slots whose hash belongs to one part.
struct Part {
    WordTable table;
    std::vector<int32_t> finals;  // table's id → final id; initially a seed's id, else -1
    std::vector<Rank> ranks;      // the candidates for the vocabulary, in order
    std::vector<Rank> seeds;
    int64_t tokens = 0, top_count = 0;

    void rank(uint32_t number, int64_t min_count) {
        ranks.reserve(static_cast<size_t>(table.size()));  // unused pages take no memory
        table.each([&](const WordTable::Entry& entry) {
            tokens += entry.count;
            top_count = std::max(top_count, entry.count);
            const bool seed = finals[static_cast<size_t>(entry.id)] >= 0;
            if (!seed && entry.count < min_count) return;
            const std::string_view text = table.text(entry);
            uint64_t prefix = 0;
            std::memcpy(&prefix, text.data(), std::min<size_t>(text.size(), 8));
            (seed ? seeds : ranks).push_back({entry.count, __builtin_bswap64(prefix), text, entry.id, number});
        });
        std::sort(ranks.begin(), ranks.end());
    }
};

std::vector<Rank> in_order(std::vector<Part>& parts) {
    std::vector<Rank> all;
    size_t words = 0;
    for (const Part& part : parts) words += part.ranks.size();
    all.reserve(words);
    for (const Part& part : parts) {
        const auto middle = static_cast<std::ptrdiff_t>(all.size());
        all.insert(all.end(), part.ranks.begin(), part.ranks.end());
        std::inplace_merge(all.begin(), all.begin() + middle, all.end());
    }
    return all;
}

// Assigns final ids: seeds keep theirs, the others follow in order.
void number_words(std::vector<Part>& parts, int32_t seeds, int64_t max_size, Merged& merged) {
    std::vector<Rank> order(static_cast<size_t>(seeds));
    for (const Part& part : parts)
        for (const Rank& seed : part.seeds)
            order[static_cast<size_t>(part.finals[static_cast<size_t>(seed.id)])] = seed;
    const std::vector<Rank> ranks = in_order(parts);
    const size_t free = max_size <= 0 ? ranks.size() : static_cast<size_t>(std::max<int64_t>(0, max_size - seeds));
    order.insert(order.end(), ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(free, ranks.size())));
    merged.dropped_types = merged.types - static_cast<int64_t>(order.size());
    merged.dropped_tokens = merged.tokens;
    for (size_t i = 0; i < order.size(); ++i) {
        const Rank& word = order[i];
        if (i + 16 < order.size()) __builtin_prefetch(order[i + 16].text.data());
        parts[word.part].finals[static_cast<size_t>(word.id)] = static_cast<int32_t>(merged.counts.size());
        merged.counts.push_back(word.count);
        merged.words.append(word.text).push_back('\0');
        merged.dropped_tokens -= word.count;
    }
}

}  // namespace

Merged TextEncoder::merge(int64_t min_count, int64_t max_size) {
    const size_t n = slots_.size();
    const auto part_of = [n](const Word& word) { return static_cast<size_t>((word.hash >> 32) % n); };
    Merged merged;
    merged.maps.resize(n);
    size_t words = 0;
    for (size_t s = 0; s < n; ++s) {
        merged.maps[s].resize(static_cast<size_t>(slots_[s]->table.size()));
        words += merged.maps[s].size();
    }
    std::vector<Part> parts(n);
    on_threads(static_cast<int>(n), [&](int number) {
        Part& part = parts[static_cast<size_t>(number)];
        part.table.reserve(words / n);
        for (size_t s = 0; s < n; ++s) {
            struct Pending {
                Word word;
                const WordTable::Entry* entry;
            };
            std::array<Pending, 64> pending;  // looked up as a batch, after prefetching the table
            size_t filled = 0;
            const auto look_up = [&] {
                for (size_t i = 0; i < filled; ++i) {
                    const WordTable::Entry& entry = *pending[i].entry;
                    WordTable::Entry& entry_in_part = part.table.find(pending[i].word);
                    entry_in_part.count += entry.count;
                    merged.maps[s][static_cast<size_t>(entry.id)] = entry_in_part.id;
                    if (static_cast<size_t>(entry_in_part.id) == part.finals.size())
                        part.finals.push_back(entry.id < seeds_ ? entry.id : -1);
                }
                filled = 0;
            };
            slots_[s]->table.each([&](const WordTable::Entry& entry) {
                const Word word = slots_[s]->table.word(entry);
                if (part_of(word) != static_cast<size_t>(number)) return;
                part.table.prefetch(word.hash);
                pending[filled++] = {word, &entry};
                if (filled == pending.size()) look_up();
            });
            look_up();
        }
        part.rank(static_cast<uint32_t>(number), min_count);
    });
    for (const Part& part : parts) {
        merged.types += part.table.size();
        merged.tokens += part.tokens;
        merged.top_count = std::max(merged.top_count, part.top_count);
    }
    for (const auto& slot : slots_) merged.types += slot->pruned_types, merged.tokens += slot->pruned_tokens;
    number_words(parts, seeds_, max_size, merged);
    on_threads(static_cast<int>(n), [&](int number) {
        auto& table = slots_[static_cast<size_t>(number)]->table;
        auto& map = merged.maps[static_cast<size_t>(number)];
        table.each([&](const WordTable::Entry& entry) {
            int32_t& id = map[static_cast<size_t>(entry.id)];
            id = parts[part_of(table.word(entry))].finals[static_cast<size_t>(id)];
        });
        table = WordTable();
    });
    return merged;
}

}  // namespace firth
