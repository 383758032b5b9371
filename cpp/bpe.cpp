#include "bpe.h"

#include "unicode.h"
#include "words.h"

#include <algorithm>
#include <stdexcept>

namespace firth {

namespace {

// Calls visit(word, code, first, last) for each character of the words, each of which is followed by NUL.
template <class Visit>
void each_character(const char* words, size_t size, Visit visit) {
    const auto* p = reinterpret_cast<const uint8_t*>(words);
    const uint8_t* end = p + size;
    for (size_t word = 0; p < end; ++word, ++p) {
        for (bool first = true; p < end && *p; first = false) {
            const Decoded decoded = decode(p, end);
            p += decoded.size;
            visit(word, decoded.code, first, p == end || !*p);
        }
    }
}

uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Alphabet alphabet_of(const char* words, size_t size, const int64_t* counts) {
    std::vector<int64_t> sums(kCodePoints, 0);
    std::vector<uint8_t> positions(kCodePoints, 0);
    each_character(words, size, [&](size_t word, uint32_t code, bool first, bool last) {
        sums[code] += counts[word];
        positions[code] |= static_cast<uint8_t>((first ? kFirstPosition : kLaterPosition) | (last ? kLastPosition : 0));
    });
    Alphabet alphabet;
    for (uint32_t code = 0; code < kCodePoints; ++code)
        if (positions[code]) {
            alphabet.codes.push_back(code);
            alphabet.counts.push_back(sums[code]);
            alphabet.positions.push_back(positions[code]);
        }
    return alphabet;
}

BpeTrainer::BpeTrainer(const char* words, size_t size, const int64_t* counts, size_t n_words, const std::string& tokens,
                       const Characters& characters, std::string prefix)
    : counts_(counts, counts + n_words), pairs_(1 << 12), prefix_(std::move(prefix)) {
    for (size_t at = 0; at < tokens.size();) {
        const size_t end = std::min(tokens.find('\0', at), tokens.size());
        tokens_.push_back(tokens.substr(at, end - at));
        if (!ids_.emplace(tokens_.back(), static_cast<int32_t>(tokens_.size() - 1)).second)
            throw std::invalid_argument("the initial tokens must be distinct.");
        at = end + 1;
    }
    std::vector<int32_t> plain_ids(kCodePoints, -1), affixed_ids(kCodePoints, -1);
    for (size_t i = 0; i < characters.count; ++i) {
        plain_ids[characters.codes[i]] = characters.plain_ids[i];
        affixed_ids[characters.codes[i]] = characters.affixed_ids[i];
    }
    symbols_.reserve(size);
    starts_.assign(1, 0);
    each_character(words, size, [&](size_t word, uint32_t code, bool first, bool last) {
        while (starts_.size() <= word) starts_.push_back(symbols_.size());
        const bool affixed = characters.affix_last ? last : !first;
        const int32_t id = (affixed ? affixed_ids : plain_ids)[code];
        if (id >= 0) symbols_.push_back(id);
    });
    while (starts_.size() <= n_words) starts_.push_back(symbols_.size());
    lengths_.resize(n_words);
    for (size_t word = 0; word < n_words; ++word) {
        lengths_[word] = static_cast<int32_t>(starts_[word + 1] - starts_[word]);
        for (size_t i = starts_[word]; i + 1 < starts_[word + 1]; ++i)
            add(symbols_[i], symbols_[i + 1], counts_[word], static_cast<int32_t>(word));
    }
    rank_fresh();
}

BpeTrainer::Pair& BpeTrainer::pair(uint64_t key) {
    size_t mask = pairs_.size() - 1;
    if (pairs_used_ * 2 > mask) {
        std::vector<Pair> old(pairs_.size() * 2);
        old.swap(pairs_);
        mask = pairs_.size() - 1;
        for (const Pair& entry : old) {
            if (entry.key == kNoPair) continue;
            size_t at = mix(entry.key ^ kSalt0, kSalt1) & mask;
            while (pairs_[at].key != kNoPair) at = (at + 1) & mask;
            pairs_[at] = entry;
        }
    }
    size_t at = mix(key ^ kSalt0, kSalt1) & mask;
    while (pairs_[at].key != key && pairs_[at].key != kNoPair) at = (at + 1) & mask;
    if (pairs_[at].key == kNoPair) pairs_[at].key = key, ++pairs_used_;
    return pairs_[at];
}

void BpeTrainer::add(int32_t left, int32_t right, int64_t count, int32_t word) {
    Pair& counted = pair(key_of(left, right));
    counted.count += count;
    if (counted.fresh < 0) {
        if (spare_.empty()) {
            counted.fresh = static_cast<int32_t>(entries_.size());
            entries_.push_back({counted.key, {}});
        } else {
            counted.fresh = spare_.back();
            spare_.pop_back();
            entries_[static_cast<size_t>(counted.fresh)].key = counted.key;
        }
        fresh_.push_back(counted.fresh);
    }
    auto& words = entries_[static_cast<size_t>(counted.fresh)].words;
    if (words.empty() || words.back() != word) words.push_back(word);
}

void BpeTrainer::remove(int32_t left, int32_t right, int64_t count) { pair(key_of(left, right)).count -= count; }

// Queues the pairs that changed in this step, with their current counts.
void BpeTrainer::rank_fresh() {
    for (const int32_t number : fresh_) {
        Entry& entry = entries_[static_cast<size_t>(number)];
        Pair& counted = pair(entry.key);
        counted.fresh = -1;
        if (counted.count > 0) {
            entry.words.shrink_to_fit();
            queue_.push({counted.count, entry.key, number});
        } else {
            entry.words.clear();
            spare_.push_back(number);
        }
    }
    fresh_.clear();
}

int32_t BpeTrainer::joined_token(int32_t left, int32_t right) {
    const std::string& second = tokens_[static_cast<size_t>(right)];
    const bool has_prefix = !prefix_.empty() && second.compare(0, prefix_.size(), prefix_) == 0;
    std::string token = tokens_[static_cast<size_t>(left)] + second.substr(has_prefix ? prefix_.size() : 0);
    const auto [position, added] = ids_.emplace(token, static_cast<int32_t>(tokens_.size()));
    if (added) tokens_.push_back(std::move(token));
    return position->second;
}

void BpeTrainer::join_in(int32_t word, int32_t left, int32_t right, int32_t joined) {
    const auto w = static_cast<size_t>(word);
    int32_t* symbols = symbols_.data() + starts_[w];
    const int32_t length = lengths_[w];
    const int64_t count = counts_[w];
    int32_t to = 0;
    for (int32_t from = 0; from < length; ++to) {
        if (symbols[from] != left || from + 1 >= length || symbols[from + 1] != right) {
            symbols[to] = symbols[from++];
            continue;
        }
        if (to > 0) {
            remove(symbols[to - 1], left, count);
            add(symbols[to - 1], joined, count, word);
        }
        from += 2;
        symbols[to] = joined;
        if (from < length) {
            remove(right, symbols[from], count);
            add(joined, symbols[from], count, word);
        }
    }
    lengths_[w] = to;
}

int64_t BpeTrainer::run(int64_t vocabulary, int64_t min_count, int64_t steps) {
    int64_t done = 0;
    while (done < steps && static_cast<int64_t>(tokens_.size()) < vocabulary && !queue_.empty()) {
        Ranked top = queue_.top();
        queue_.pop();
        const int64_t count = pair(top.key).count;
        if (top.count != count) {
            top.count = count;
            queue_.push(top);
            continue;
        }
        if (count < std::max<int64_t>(min_count, 1)) {
            queue_.push(top);
            break;
        }
        const auto left = static_cast<int32_t>(top.key >> 32), right = static_cast<int32_t>(top.key & 0xFFFFFFFFu);
        const int32_t joined = joined_token(left, right);
        merges_.left.push_back(left), merges_.right.push_back(right), merges_.joined.push_back(joined);
        merges_.counts.push_back(count);
        std::vector<int32_t> words;
        words.swap(entries_[static_cast<size_t>(top.entry)].words);
        spare_.push_back(top.entry);
        for (const int32_t word : words) join_in(word, left, right, joined);
        rank_fresh();
        ++done;
    }
    return done;
}

}  // namespace firth
