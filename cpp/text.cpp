#include "text.h"

#include "threads.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace firth {

namespace {

constexpr int kUnsegmentedRun = 8;  // longer than usual words of Chinese, Japanese or Thai
constexpr uint64_t kHighBits = 0x8080808080808080ull;

// Masks of the first `size` of 16 bytes.
struct Keep {
    uint64_t low[17], high[17];
    Keep() {
        for (int size = 0; size <= 16; ++size) {
            low[size] = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
            high[size] = size <= 8 ? 0 : size == 16 ? ~uint64_t{0} : (uint64_t{1} << 8 * (size - 8)) - 1;
        }
    }
};
const Keep kKeep;

// Appends a normalized token to `out`: lowercased if requested, invalid bytes as U+FFFD.
void normalize(const uint8_t* p, const uint8_t* end, bool lowercase, std::string& out, TextStatistics& statistics) {
    const UnicodeTables& tables = unicode();
    int run = 0, longest = 0;
    char bytes[4];
    while (p < end) {
        const Decoded decoded = decode(p, end);
        p += decoded.size;
        statistics.invalid += !decoded.valid;
        run = tables.classes[decoded.code] & kUnsegmented ? run + 1 : 0;
        longest = std::max(longest, run);
        const uint32_t code = lowercase ? static_cast<uint32_t>(tables.lower[decoded.code]) : decoded.code;
        out.append(bytes, static_cast<size_t>(encode_utf8(code, bytes)));
    }
    statistics.unsegmented += longest >= kUnsegmentedRun;
}

}  // namespace

// Looks tokens up in batches: first computes all hashes and prefetches the table, then searches it.
struct TextEncoder::Sink {
    Slot& slot;
    Buffer& buffer;
    bool lowercase;
    const uint8_t* base;  // the byte at offset `position` of the block
    int64_t position;
    const int64_t* ends;
    const int64_t* last;

    void invalid(int) { ++slot.statistics.invalid; }

    void tokens(const uint8_t* const* edges, size_t count) {
        if (count == 0) return;
        Word words[kStep * 5];
        slot.scratch.clear();
        slot.scratch.reserve(3 *
                             static_cast<size_t>(edges[2 * count - 1] - edges[0]));  // one byte becomes at most three
        for (size_t i = 0; i < count; ++i) {
            prepare(words[i], edges[2 * i], edges[2 * i + 1]);
            slot.table.prefetch(words[i].hash);
        }
        int32_t* out = buffer.ids.get() + buffer.filled;
        for (size_t i = 0; i < count; ++i) {
            while (ends != last && edges[2 * i] - base + position >= *ends) *out++ = kDocumentEnd, ++ends;
            WordTable::Entry& entry = slot.table.find(words[i]);
            ++entry.count;
            *out++ = entry.id;
        }
        buffer.filled = static_cast<size_t>(out - buffer.ids.get());
    }

    void prepare(Word& word, const uint8_t* begin, const uint8_t* end) {
        const auto size = static_cast<size_t>(end - begin);
        if (size <= 16) {
            uint64_t low = load8(begin) & kKeep.low[size], high = load8(begin + 8) & kKeep.high[size];
            if (!((low | high) & kHighBits)) {
                if (lowercase) low = lower8(low), high = lower8(high);
                return word.short_word(low, high, static_cast<uint32_t>(size));
            }
        }
        const size_t at = slot.scratch.size();
        normalize(begin, end, lowercase, slot.scratch, slot.statistics);
        if (slot.scratch.size() - at > INT32_MAX) throw std::length_error("a word is longer than 2 GB");
        word = Word::of(slot.scratch.data() + at, slot.scratch.size() - at);
    }

    void finish() {
        for (; ends != last; ++ends) buffer.ids.get()[buffer.filled++] = kDocumentEnd;
    }
};

TextEncoder::TextEncoder(Split split, bool lowercase, int slots, Trim trim)
    : split_(split), lowercase_(lowercase), trim_(trim) {
    for (int i = 0; i < slots; ++i) slots_.push_back(std::make_unique<Slot>());
}

void TextEncoder::seed(const std::string& words) {
    for (size_t at = 0; at < words.size(); ++seeds_) {
        const size_t end = std::min(words.find('\0', at), words.size());
        for (auto& slot : slots_) {
            if (end > at) slot->table.find(Word::of(words.data() + at, end - at));
            if (slot->table.size() != seeds_ + 1)
                throw std::invalid_argument("known words must be distinct and not empty.");
        }
        at = end + 1;
    }
}

void TextEncoder::encode(const uint8_t* data, size_t size, const int64_t* ends, size_t n_ends) {
    // Small enough that a slow thread does not delay the others, large enough to be worth a thread.
    const size_t part = std::clamp<size_t>(size / (8 * slots_.size()), 1 << 15, 1 << 20);
    std::vector<size_t> cuts{0};
    for (size_t target = part; target < size; target += part) {
        const size_t cut = safe_cut(data + cuts.back(), target - cuts.back(), split_);
        if (cut) cuts.push_back(cuts.back() + cut);
    }
    cuts.push_back(size);
    const auto upto = [&](size_t position) {
        return std::upper_bound(ends, ends + n_ends, static_cast<int64_t>(position));
    };
    turn_ = 1 - turn_;
    for (auto& slot : slots_) slot->buffers[turn_].filled = 0;
    stretches_.assign(cuts.size() - 1, {0, 0, 0});
    std::atomic<size_t> next{0};
    on_threads(static_cast<int>(std::min(slots_.size(), stretches_.size())), [&](int number) {
        Slot& slot = *slots_[static_cast<size_t>(number)];
        Buffer& buffer = slot.buffers[turn_];
        for (size_t i; (i = next++) < stretches_.size();) {
            const size_t filled = buffer.filled;
            encode_part(slot, buffer, data, cuts[i], cuts[i + 1], i ? upto(cuts[i]) : ends, upto(cuts[i + 1]));
            stretches_[i] = {number, filled, buffer.filled - filled};
        }
    });
    first_block_ = false;
}

void TextEncoder::encode_part(Slot& slot, Buffer& buffer, const uint8_t* data, size_t begin, size_t end,
                              const int64_t* ends, const int64_t* last) {
    if (split_ == Split::gpt2 || split_ == Split::bert) return count_part(slot, data, begin, end, ends, last);
    buffer.make_room(end - begin + static_cast<size_t>(last - ends));
    Sink sink{slot, buffer, lowercase_, data, 0, ends, last};
    Scanner<Sink> scanner(split_, sink);
    // The scanner reads up to kStep bytes past the end, so the last words are scanned in a padded copy.
    const size_t near_end = end - begin > kStep ? end - kStep - begin : 0;
    const size_t cut = begin + safe_cut(data + begin, near_end, split_);
    scanner.scan(data + begin, data + cut);
    std::vector<uint8_t> tail(data + cut, data + end);
    tail.resize(end - cut + kStep, 0);
    sink.base = tail.data(), sink.position = static_cast<int64_t>(cut);
    scanner.scan(tail.data(), tail.data() + (end - cut));
    sink.finish();
}

size_t TextEncoder::bytes(int slot) const { return slots_.at(static_cast<size_t>(slot))->table.bytes(); }

TextStatistics TextEncoder::statistics() const {
    TextStatistics sum;
    for (const auto& slot : slots_)
        sum.invalid += slot->statistics.invalid, sum.unsegmented += slot->statistics.unsegmented;
    return sum;
}

namespace {

struct ListSink {
    bool lowercase;
    std::string list;
    TextStatistics statistics;

    void invalid(int) {}
    void tokens(const uint8_t* const* edges, size_t count) {
        for (size_t i = 0; i < count; ++i) {
            normalize(edges[2 * i], edges[2 * i + 1], lowercase, list, statistics);
            list.push_back('\0');
        }
    }
};

}  // namespace

std::string tokenize(const std::string& text, Split split, bool lowercase) {
    if (split == Split::gpt2 || split == Split::bert) return list_pieces(text, split, lowercase);
    std::vector<uint8_t> padded(text.size() + kStep, 0);
    std::memcpy(padded.data(), text.data(), text.size());
    ListSink sink{lowercase, {}, {}};
    Scanner<ListSink>(split, sink).scan(padded.data(), padded.data() + text.size());
    return sink.list;
}

size_t safe_cut(const uint8_t* data, size_t size, Split split) {
    if (split == Split::gpt2 || split == Split::bert) return cut_before_space(data, size);
    for (size_t i = size; i > 0; --i)
        if (split == Split::separated ? data[i - 1] == 0 : ascii_space(data[i - 1])) return i;
    if (split == Split::separated) return 0;
    // No space at all, as in Chinese: after another separator, or before a character if each is a token.
    for (size_t i = size; i-- > 0;) {
        if ((data[i] & 0xC0) == 0x80) continue;
        const Decoded decoded = decode(data + i, data + size);
        const int kind = unicode().classes[decoded.code] & kClassMask;
        if (!decoded.valid || kind == kMark) continue;
        if (kind == kSpace) return i + static_cast<size_t>(decoded.size);
        if (split == Split::whitespace) continue;
        if (kind != kOther) {
            if (split == Split::characters && i > 0) return i;
        } else if (decoded.code != '\'' && decoded.code != '.' && decoded.code != ',' && decoded.code != 0x2019) {
            return i + static_cast<size_t>(decoded.size);
        }
    }
    return 0;
}

std::vector<int64_t> line_ends(const uint8_t* data, size_t size) {
    std::vector<int64_t> ends;
    for (const uint8_t* p = data; p < data + size; ++p) {
        p = static_cast<const uint8_t*>(std::memchr(p, '\n', static_cast<size_t>(data + size - p)));
        if (!p) break;
        ends.push_back(p - data + 1);
    }
    return ends;
}

std::vector<int64_t> paragraph_ends(const uint8_t* data, size_t size, int& state) {
    bool line = state & 1, paragraph = state & 2;
    std::vector<int64_t> ends;
    for (size_t i = 0; i < size; ++i) {
        if (data[i] == '\n') {
            if (!line && paragraph) ends.push_back(static_cast<int64_t>(i) + 1), paragraph = false;
            line = false;
        } else if (!ascii_space(data[i])) {
            line = paragraph = true;
        }
    }
    state = line | paragraph << 1;
    return ends;
}

Translated translate(const int32_t* ids, size_t size, const int32_t* map, int32_t* out, int64_t* ends) {
    Translated written;
    for (size_t i = 0; i < size; ++i) {
        if (ids[i] == kDocumentEnd) {
            ends[written.documents++] = written.ids;
            continue;
        }
        out[written.ids] = map[ids[i]];
        written.ids += out[written.ids] >= 0;  // a dropped word is overwritten by the next
    }
    return written;
}

}  // namespace firth
