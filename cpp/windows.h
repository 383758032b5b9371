// From raw tokens to windows: which tokens are kept, how far each reaches, what noise it meets.
#pragma once

#include "hash.h"
#include "predict.h"
#include "vec.h"

namespace firth {
namespace ISA {

static inline uint64_t token_hash(const Job& job, int64_t position) {
    return mix(job.seed + (uint64_t)position * GOLDEN);
}

static inline bool kept(const Job& job, int64_t position, uint64_t hash) {
    return (uint32_t)(hash >> 32) <= job.keep[job.ids[position]];
}

static inline int draws(const Job& job) { return job.drawn ? job.drawn : job.negatives; }

// The alias table's slot of draw i. By strata each draw has an equal stretch of the slots to itself, so that what several
// windows share is not by chance all of one kind: slots side by side are of words about as frequent, and lend their rest
// to words about as frequent (see `alias_table`). Each word is still drawn as often as before.
static inline int32_t noise_slot(const Job& job, int i, uint64_t bits) {
    if (!job.drawn) return (int32_t)(((bits >> 32) * (uint64_t)job.words) >> 32);
    const double place = (double)(((uint64_t)i << 32) + (bits >> 32)) * (job.words / (job.drawn * 0x1p32));
    const int32_t slot = (int32_t)place;
    return slot < job.words ? slot : job.words - 1;
}

static inline int32_t noise_word(const Job& job, int i, uint64_t& state) {
    state += GOLDEN;
    const uint64_t bits = mix(state);
    const int32_t slot = noise_slot(job, i, bits);
    const Alias alias = job.noise[slot];
    return (uint32_t)bits < alias.cut ? slot : alias.other;
}

static int64_t document_of(const Job& job, int64_t position) {
    int64_t low = 0, high = job.documents;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (job.starts[middle] <= position ? low : high) = middle;
    }
    return low;
}

static inline void put(Walker& walker, const Job& job, int i, int64_t position, uint64_t hash) {
    walker.id[i] = job.ids[position];
    walker.hash[i] = hash;
    walker.offset[i] = (int32_t)(position - walker.base);
}

// Reads the next block of raw tokens: the centres, and up to a window of kept tokens before and after
// them in the same document. False when the stretch is over.
static bool refill(const Job& job, Walker& walker) {
    if (walker.position >= walker.end) return false;
    const int64_t begin = walker.position;
    const int64_t whole = (begin + walker.block) / MOST_GROUP * MOST_GROUP;  // wherever a walker begins, groups stay whole
    const int64_t stop = whole < walker.end ? whole : walker.end;
    int64_t document = document_of(job, begin);
    int n = 0;
    walker.base = begin;
    {   // before: collected backwards, then turned around
        const int64_t start = job.starts[document] > job.first ? job.starts[document] : job.first;
        for (int64_t p = begin - 1; p >= start && n < job.window; --p) {
            const uint64_t hash = token_hash(job, p);
            if (kept(job, p, hash)) put(walker, job, n++, p, hash);
        }
        for (int i = 0; i < n / 2; ++i) {
            const int j = n - 1 - i;
            const int32_t id = walker.id[i]; walker.id[i] = walker.id[j]; walker.id[j] = id;
            const uint64_t hash = walker.hash[i]; walker.hash[i] = walker.hash[j]; walker.hash[j] = hash;
            const int32_t offset = walker.offset[i]; walker.offset[i] = walker.offset[j]; walker.offset[j] = offset;
        }
    }
    walker.next = n;
    int segment = 0;  // where the current document begins in the arrays
    int64_t p = begin;
    while (true) {
        const int64_t document_end = job.starts[document + 1];
        const int64_t to = document_end < stop ? document_end : stop;
        for (; p < to; ++p) {
            const uint64_t hash = token_hash(job, p);
            if (kept(job, p, hash)) put(walker, job, n++, p, hash);
        }
        if (p == stop) {
            walker.last = n;
            const int64_t limit = document_end < job.last ? document_end : job.last;
            for (int after = 0; p < limit && after < job.window; ++p) {
                const uint64_t hash = token_hash(job, p);
                if (kept(job, p, hash)) put(walker, job, n++, p, hash), ++after;
            }
        }
        for (int i = segment; i < n; ++i) {
            walker.from[i] = segment;
            walker.to[i] = n;
            walker.document[i] = (int32_t)document;
        }
        if (p >= stop) break;
        segment = n;
        ++document;
    }
    walker.position = stop;
    return true;
}

// Words that were met: most are new, as a bit of 256 alone can tell.
struct Met {
    uint64_t bits[4] = {};
    // Whether it may have been met before; it has been from now on.
    bool meet(int32_t word) {
        const uint32_t place = (uint32_t)word * 0x9e3779b9u >> 24;
        const uint64_t bit = 1ull << (place & 63), before = bits[place >> 6] & bit;
        bits[place >> 6] |= bit;
        return before;
    }
};

// Where a word stands in a list, or its end.
static inline int find(const int32_t* words, int count, int32_t word) {
    int at = 0;
    while (at < count && words[at] != word) ++at;
    return at;
}

// Noise words behind the `right` first targets, which are no noise; a word drawn twice counts once.
static void draw_noise(const Job& job, Window& window, int right, uint64_t& state) {
    int targets = right;
    Met met;
    for (int j = 0; j < right; ++j) met.meet(window.target[j]);
    for (int i = 0; i < draws(job); ++i) {
        const int32_t word = noise_word(job, i, state);
        if (met.meet(word) && find(window.target, targets, word) < targets) continue;
        window.target[targets] = word;
        window.sign[targets++] = -1;
    }
    window.targets = targets;
}

// The way through the tree to a word.
static void lay_path(const Job& job, Window& window, int32_t word) {
    const int64_t begin = job.path_starts[word];
    window.targets = (int)(job.path_starts[word + 1] - begin);
    for (int i = 0; i < window.targets; ++i) {
        window.target[i] = job.path_nodes[begin + i];
        window.sign[i] = job.path_turns[begin + i] ? -1.0f : 1.0f;
    }
}

// One word to be told from noise: all targets of a window that are shared by its inputs. For a tree, the way to it.
static void lay_targets(const Job& job, Window& window, int32_t word, uint64_t& state) {
    window.centre = word;
    if (job.loss == NEGATIVE) {
        window.target[0] = word;
        window.sign[0] = 1;
        draw_noise(job, window, 1, state);
    } else if (job.loss == HIERARCHICAL) {
        lay_path(job, window, word);
    } else {
        window.targets = job.words;  // the driver laid out target = 0, 1, 2, …
    }
}

static inline int tags(const Job& job, const Window& window) {
    if (job.frozen) return 1;
    return job.tag_rows ? (int)(job.tag_starts[window.document + 1] - job.tag_starts[window.document]) : 0;
}

// The words within reach of a centre.
static int lay_contexts(const Job& job, const Walker& walker, int centre, int reach, int32_t* context) {
    const int low = walker.from[centre], high = walker.to[centre];
    int contexts = 0;
    if (job.architecture == CONCAT) {
        for (int i = centre - reach; i <= centre + reach; ++i)
            if (i != centre) context[contexts++] = low <= i && i < high ? walker.id[i] : -1;
        return contexts;
    }
    const int from = centre - reach > low ? centre - reach : low;
    const int to = centre + reach + 1 < high ? centre + reach + 1 : high;
    for (int i = from; i < to; ++i)
        if (i != centre) context[contexts++] = walker.id[i];
    return contexts;
}

// How many centres from this one on come within its group, in the same document.
static int group_size(const Job& job, const Walker& walker, int centre) {
    const int64_t end = (walker.base + walker.offset[centre]) / job.group * job.group + job.group - walker.base;
    int count = 0;
    for (int i = centre; i < walker.last && i < walker.to[centre] && walker.offset[i] < end; ++i) ++count;
    return count;
}

static inline int reach_of(const Job& job, uint64_t hash) {
    return job.shrink ? job.window - (int)(((hash & 0xffffffffull) * (uint64_t)job.window) >> 32) : job.window;
}

// The words of a group as targets: of skip-gram each once, of CBOW one for each centre. What is within reach of any of
// them as contexts, each word once, with whom it meets and how often.
static void lay_group(const Job& job, const Walker& walker, int first, Window& window) {
    const bool once = job.architecture == SKIPGRAM;
    int from[MOST_GROUP], to[MOST_GROUP], column[MOST_GROUP], low = first, high = first;
    window.words = 0;
    window.whole = {};
    window.whole.all = (float)window.centres;
    for (int c = 0; c < window.centres; ++c) {
        const int centre = first + c, reach = job.neighbors ? reach_of(job, walker.hash[centre]) : 0;
        from[c] = centre - reach > walker.from[centre] ? centre - reach : walker.from[centre];
        to[c] = centre + reach + 1 < walker.to[centre] ? centre + reach + 1 : walker.to[centre];
        low = from[c] < low ? from[c] : low;
        high = to[c] > high ? to[c] : high;
        column[c] = once ? find(window.target, window.words, walker.id[centre]) : c;
        if (column[c] == window.words) window.target[window.words++] = walker.id[centre];
        window.whole.word[column[c]] += 1;
    }
    window.contexts = 0;
    if (!job.neighbors) return;
    int16_t place[MOST_CONTEXTS];
    Met met;
    for (int i = low; i < high; ++i) {
        if (window.centres == 1 && i == first) continue;  // it meets nobody; the centres of a larger group meet each other
        const int32_t word = walker.id[i];
        const int at = met.meet(word) ? find(window.context, window.contexts, word) : window.contexts;
        place[i - low] = (int16_t)at;
        if (at < window.contexts) continue;
        window.context[window.contexts++] = word;
        window.meetings[at] = {};
    }
    const auto meet = [&](int begin, int end, int column) {
        for (int i = begin; i < end; ++i) {
            Meetings& meetings = window.meetings[place[i - low]];
            meetings.word[column] += 1;
            meetings.all += 1;
        }
    };
    for (int c = 0; c < window.centres; ++c) {
        meet(from[c], first + c, column[c]);
        meet(first + c + 1, to[c], column[c]);
    }
}

// The contexts and targets of a centre, or of its group. Returns how many centres that takes.
static int prepare(const Job& job, const Walker& walker, int centre, float rate, Window& window) {
    const uint64_t hash = walker.hash[centre];
    const bool group = grouped(job);
    window.centres = group ? group_size(job, walker, centre) : 1;
    window.rate = rate;
    window.hash = hash;
    window.centre = walker.id[centre];
    window.document = walker.document[centre];
    window.targets = 0;
    window.enter = 0;
    if (group) lay_group(job, walker, centre, window);
    else window.contexts = job.neighbors ? lay_contexts(job, walker, centre, reach_of(job, hash), window.context) : 0;
    if (!window.contexts && !tags(job, window)) return window.centres;
    if (job.architecture == FORWARD) {
        window.entering[window.enter++] = window.centre;
    } else if (job.neighbors) {
        for (int i = centre + job.window; i < centre + job.window + window.centres && i < walker.to[centre]; ++i)
            window.entering[window.enter++] = walker.id[i];
    }
    uint64_t state = hash;
    if (group) {
        draw_noise(job, window, window.words, state);
    } else if (job.architecture == FORWARD) {
        if (job.loss != NEGATIVE || !job.shared) return window.centres;  // targets differ from context to context
        for (int i = 0; i < window.contexts; ++i) window.target[i] = window.context[i];
        draw_noise(job, window, window.contexts, state);
    } else {
        lay_targets(job, window, window.centre, state);
    }
    if (job.loss == NEGATIVE && centre + window.centres < walker.last) {  // the table is large and its slots random: ask
        state = walker.hash[centre + window.centres];                     // for the next ones now
        for (int i = 0; i < draws(job); ++i)
            __builtin_prefetch(job.noise + noise_slot(job, i, mix(state += GOLDEN)), 0, 3);
    }
    return window.centres;
}

}  // namespace ISA
}  // namespace firth
