// From raw tokens to windows: subsampling, contexts and negative samples.
#pragma once

#include "hash.h"
#include "predict.h"
#include "vec.h"

namespace firth {
namespace ISA {

static inline uint64_t token_hash(const Task& task, int64_t position) {
    return mix(task.sampling.seed + (uint64_t)position * GOLDEN);
}

static inline bool is_kept(const Task& task, int64_t position, uint64_t hash) {
    return (uint32_t)(hash >> 32) <= task.sampling.keep[task.corpus.ids[position]];
}

static inline int negative_draws(const Task& task) {
    return task.sampling.group_negatives ? task.sampling.group_negatives : task.sampling.negatives;
}

// The alias table's slot of draw i. Stratified draws (group_negatives) each come from an equal part of the slots, which
// reduces the variance of samples that several windows share: adjacent slots have words of similar frequency, and so
// have their alias words (see `alias_table`). The probability of each word is unchanged.
static inline int32_t noise_slot(const Task& task, int i, uint64_t bits) {
    if (!task.sampling.group_negatives) return (int32_t)(((bits >> 32) * (uint64_t)task.model.words) >> 32);
    const double position =
        (double)(((uint64_t)i << 32) + (bits >> 32)) * (task.model.words / (task.sampling.group_negatives * 0x1p32));
    const int32_t slot = (int32_t)position;
    return slot < task.model.words ? slot : task.model.words - 1;
}

static inline int32_t sample_negative(const Task& task, int i, uint64_t& state) {
    state += GOLDEN;
    const uint64_t bits = mix(state);
    const int32_t slot = noise_slot(task, i, bits);
    const Alias alias = task.sampling.noise[slot];
    return (uint32_t)bits < alias.cut ? slot : alias.other;
}

static int64_t document_of(const Task& task, int64_t position) {
    int64_t low = 0, high = task.corpus.documents;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (task.corpus.starts[middle] <= position ? low : high) = middle;
    }
    return low;
}

static inline void put(CorpusReader& reader, const Task& task, int i, int64_t position, uint64_t hash) {
    reader.id[i] = task.corpus.ids[position];
    reader.hash[i] = hash;
    reader.offset[i] = (int32_t)(position - reader.base);
}

// Reads the next block of raw tokens: the centers, and up to a window of kept tokens before and after them in the same
// document. Returns false at the end of the range.
static bool refill(const Task& task, CorpusReader& reader) {
    if (reader.position >= reader.end) return false;
    const int64_t begin = reader.position;
    const int64_t group_end = (begin + reader.block) / MAX_GROUP * MAX_GROUP;  // blocks never split a group
    const int64_t stop = group_end < reader.end ? group_end : reader.end;
    int64_t document = document_of(task, begin);
    int n = 0;
    reader.base = begin;
    {  // contexts before the block: collected backwards, then reversed
        const int64_t start =
            task.corpus.starts[document] > task.corpus.first ? task.corpus.starts[document] : task.corpus.first;
        for (int64_t p = begin - 1; p >= start && n < task.sampling.window; --p) {
            const uint64_t hash = token_hash(task, p);
            if (is_kept(task, p, hash)) put(reader, task, n++, p, hash);
        }
        for (int i = 0; i < n / 2; ++i) {
            const int j = n - 1 - i;
            const int32_t id = reader.id[i];
            reader.id[i] = reader.id[j];
            reader.id[j] = id;
            const uint64_t hash = reader.hash[i];
            reader.hash[i] = reader.hash[j];
            reader.hash[j] = hash;
            const int32_t offset = reader.offset[i];
            reader.offset[i] = reader.offset[j];
            reader.offset[j] = offset;
        }
    }
    reader.next = n;
    int segment = 0;  // start of the current document in the arrays
    int64_t p = begin;
    while (true) {
        const int64_t document_end = task.corpus.starts[document + 1];
        const int64_t to = document_end < stop ? document_end : stop;
        for (; p < to; ++p) {
            const uint64_t hash = token_hash(task, p);
            if (is_kept(task, p, hash)) put(reader, task, n++, p, hash);
        }
        if (p == stop) {
            reader.last = n;
            const int64_t limit = document_end < task.corpus.last ? document_end : task.corpus.last;
            for (int after = 0; p < limit && after < task.sampling.window; ++p) {
                const uint64_t hash = token_hash(task, p);
                if (is_kept(task, p, hash)) put(reader, task, n++, p, hash), ++after;
            }
        }
        for (int i = segment; i < n; ++i) {
            reader.from[i] = segment;
            reader.to[i] = n;
            reader.document[i] = (int32_t)document;
        }
        if (p >= stop) break;
        segment = n;
        ++document;
    }
    reader.position = stop;
    return true;
}

// A set of words as a 256-bit Bloom filter: most new words are recognized without a search.
struct SeenWords {
    uint64_t bits[4] = {};
    // Adds a word; returns whether it may have been in the set before.
    bool insert(int32_t word) {
        const uint32_t index = (uint32_t)word * 0x9e3779b9u >> 24;
        const uint64_t bit = 1ull << (index & 63), before = bits[index >> 6] & bit;
        bits[index >> 6] |= bit;
        return before;
    }
};

// The index of a word in a list, or `count`.
static inline int find(const int32_t* words, int count, int32_t word) {
    int i = 0;
    while (i < count && words[i] != word) ++i;
    return i;
}

// Appends distinct negative samples to the first `positives` targets, which are never sampled.
static void sample_negatives(const Task& task, Window& window, int positives, uint64_t& state) {
    int targets = positives;
    SeenWords seen;
    for (int j = 0; j < positives; ++j) seen.insert(window.target[j]);
    for (int i = 0; i < negative_draws(task); ++i) {
        const int32_t word = sample_negative(task, i, state);
        if (seen.insert(word) && find(window.target, targets, word) < targets) continue;
        window.target[targets] = word;
        window.sign[targets++] = -1;
    }
    window.targets = targets;
}

// The targets of hierarchical softmax: the path to a word.
static void fill_path(const Task& task, Window& window, int32_t word) {
    const int64_t begin = task.paths.starts[word];
    window.targets = (int)(task.paths.starts[word + 1] - begin);
    for (int i = 0; i < window.targets; ++i) {
        window.target[i] = task.paths.nodes[begin + i];
        window.sign[i] = task.paths.turns[begin + i] ? -1.0f : 1.0f;
    }
}

// The targets that all inputs of a window share: the word and its negative samples, the path to it, or all words.
static void fill_targets(const Task& task, Window& window, int32_t word, uint64_t& state) {
    window.center = word;
    if (task.objective.loss == NEGATIVE) {
        window.target[0] = word;
        window.sign[0] = 1;
        sample_negatives(task, window, 1, state);
    } else if (task.objective.loss == HIERARCHICAL) {
        fill_path(task, window, word);
    } else {
        window.targets = task.model.words;  // the caller has filled target = 0, 1, 2, …
    }
}

static inline int tags(const Task& task, const Window& window) {
    if (task.objective.frozen) return 1;
    return task.model.tags.rows
               ? (int)(task.model.tags.starts[window.document + 1] - task.model.tags.starts[window.document])
               : 0;
}

// The context words of a center; returns their number.
static int fill_contexts(const Task& task, const CorpusReader& reader, int center, int reach, int32_t* context) {
    const int low = reader.from[center], high = reader.to[center];
    int contexts = 0;
    if (task.objective.architecture == CONCAT) {
        for (int i = center - reach; i <= center + reach; ++i)
            if (i != center) context[contexts++] = low <= i && i < high ? reader.id[i] : -1;
        return contexts;
    }
    const int from = center - reach > low ? center - reach : low;
    const int to = center + reach + 1 < high ? center + reach + 1 : high;
    for (int i = from; i < to; ++i)
        if (i != center) context[contexts++] = reader.id[i];
    return contexts;
}

// The number of centers in the group that begins at `center`.
static int group_size(const Task& task, const CorpusReader& reader, int center) {
    const int64_t end = (reader.base + reader.offset[center]) / task.sampling.group * task.sampling.group +
                        task.sampling.group - reader.base;
    int count = 0;
    for (int i = center; i < reader.last && i < reader.to[center] && reader.offset[i] < end; ++i) ++count;
    return count;
}

static inline int reach_of(const Task& task, uint64_t hash) {
    return task.sampling.shrink
               ? task.sampling.window - (int)(((hash & 0xffffffffull) * (uint64_t)task.sampling.window) >> 32)
               : task.sampling.window;
}

// The targets and contexts of a group. Skip-gram has one target per distinct center word, CBOW one per center. Each
// context word occurs once, with the number of pairs it forms with each center.
static void fill_group(const Task& task, const CorpusReader& reader, int first, Window& window) {
    const bool distinct = task.objective.architecture == SKIPGRAM;
    int from[MAX_GROUP], to[MAX_GROUP], column[MAX_GROUP], low = first, high = first;
    window.words = 0;
    window.document_counts = {};
    window.document_counts.total = (float)window.centers;
    for (int c = 0; c < window.centers; ++c) {
        const int center = first + c, reach = task.objective.neighbors ? reach_of(task, reader.hash[center]) : 0;
        from[c] = center - reach > reader.from[center] ? center - reach : reader.from[center];
        to[c] = center + reach + 1 < reader.to[center] ? center + reach + 1 : reader.to[center];
        low = from[c] < low ? from[c] : low;
        high = to[c] > high ? to[c] : high;
        column[c] = distinct ? find(window.target, window.words, reader.id[center]) : c;
        if (column[c] == window.words) window.target[window.words++] = reader.id[center];
        window.document_counts.word[column[c]] += 1;
    }
    window.contexts = 0;
    if (!task.objective.neighbors) return;
    int16_t context_of[MAX_CONTEXTS];
    SeenWords seen;
    for (int i = low; i < high; ++i) {
        if (window.centers == 1 && i == first)
            continue;  // a single center is no context; the centers of a larger group are contexts of each other
        const int32_t word = reader.id[i];
        const int at = seen.insert(word) ? find(window.context, window.contexts, word) : window.contexts;
        context_of[i - low] = (int16_t)at;
        if (at < window.contexts) continue;
        window.context[window.contexts++] = word;
        window.pair_counts[at] = {};
    }
    const auto count_pairs = [&](int begin, int end, int column) {
        for (int i = begin; i < end; ++i) {
            PairCounts& counts = window.pair_counts[context_of[i - low]];
            counts.word[column] += 1;
            counts.total += 1;
        }
    };
    for (int c = 0; c < window.centers; ++c) {
        count_pairs(from[c], first + c, column[c]);
        count_pairs(first + c + 1, to[c], column[c]);
    }
}

// Fills the contexts and targets of a center, or of its group; returns the number of centers.
static int prepare(const Task& task, const CorpusReader& reader, int center, float rate, Window& window) {
    const uint64_t hash = reader.hash[center];
    const bool group = grouped(task);
    window.centers = group ? group_size(task, reader, center) : 1;
    window.rate = rate;
    window.hash = hash;
    window.center = reader.id[center];
    window.document = reader.document[center];
    window.targets = 0;
    window.upcoming_count = 0;
    if (group) fill_group(task, reader, center, window);
    else
        window.contexts =
            task.objective.neighbors ? fill_contexts(task, reader, center, reach_of(task, hash), window.context) : 0;
    if (!window.contexts && !tags(task, window)) return window.centers;
    if (task.objective.architecture == FORWARD) {
        window.upcoming[window.upcoming_count++] = window.center;
    } else if (task.objective.neighbors) {
        for (int i = center + task.sampling.window;
             i < center + task.sampling.window + window.centers && i < reader.to[center]; ++i)
            window.upcoming[window.upcoming_count++] = reader.id[i];
    }
    uint64_t state = hash;
    if (group) {
        sample_negatives(task, window, window.words, state);
    } else if (task.objective.architecture == FORWARD) {
        if (task.objective.loss != NEGATIVE || !task.sampling.shared)
            return window.centers;  // each context has its own targets
        for (int i = 0; i < window.contexts; ++i) window.target[i] = window.context[i];
        sample_negatives(task, window, window.contexts, state);
    } else {
        fill_targets(task, window, window.center, state);
    }
    if (task.objective.loss == NEGATIVE &&
        center + window.centers < reader.last) {  // prefetch the random slots of the next window
        state = reader.hash[center + window.centers];
        for (int i = 0; i < negative_draws(task); ++i)
            __builtin_prefetch(task.sampling.noise + noise_slot(task, i, mix(state += GOLDEN)), 0, 3);
    }
    return window.centers;
}

}  // namespace ISA
}  // namespace firth
