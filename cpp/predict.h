// The inputs and working memory of the skip-gram and CBOW kernels.
//
// The random decisions for a token (subsampling, the reach of its window, its negative samples) are a hash of seed,
// epoch and position in the corpus. They don't depend on threads, blocks or where a run was resumed; only the order of
// the updates does.
#pragma once

#include <cstdint>

namespace firth {

// SKIPGRAM: each context predicts the center. CBOW: the mean (or sum) of all contexts predicts it. CONCAT: the
// concatenation of the contexts predicts it, with separate output weights for each position of the window. FORWARD: the
// center predicts each context, as in fastText, so that the many rows of a word with subwords are read and written once
// per window.
enum Architecture : int { SKIPGRAM = 0, CBOW = 1, CONCAT = 2, FORWARD = 3 };
enum Loss : int { NEGATIVE = 0, HIERARCHICAL = 1, SOFTMAX = 2 };

// One slot of an alias table: 32 random bits below `cut` mean the slot itself, else `other`.
struct Alias {
    uint32_t cut;
    int32_t other;
};

// Word ids, and where each document starts (the last entry is the end).
struct Corpus {
    const int32_t* ids;
    const int64_t* starts;
    int64_t documents;
    int64_t first, last;  // the tokens to train on; the rest may be held out
};

// Lists of input rows: list i is rows[starts[i]] … rows[starts[i + 1]]. Null: there are none.
struct RowLists {
    const int64_t* starts;
    const int32_t* rows;
};

// The parameters: rows of `stride` floats, 64-byte aligned, zero beyond the dimension. CONCAT's outputs are wider.
struct ModelTables {
    float* inputs;
    float* outputs;
    int64_t stride, output_stride;
    int32_t words, input_rows, output_rows;
    RowLists subwords;  // the input rows of each word, its own first; null: its own only
    RowLists tags;      // the input rows of each document, which take part in all its windows; null: none
};

struct Objective {
    int architecture;
    int loss;
    bool mean;       // CBOW: inputs are averaged, else summed
    bool exact;      // CBOW: the exact gradient of the mean, else word2vec's, which leaves out the factor 1/contexts
    bool neighbors;  // context words are inputs; else the document's rows alone
    bool frozen;     // only the row of a new document is trained (see `infer`)
};

// How windows and negative samples are drawn.
struct Sampling {
    int window;
    bool shrink;           // the reach of a window is sampled from 1..window, else it is `window`
    const uint32_t* keep;  // subsampling: a token is kept when 32 random bits are <= keep[word]
    const Alias* noise;    // alias table of the negative-sampling distribution
    int negatives;
    bool shared;          // all pairs of a window share their negative samples
    int group;            // with `shared`: the windows of 1, 2 or 4 raw tokens share them too
    int group_negatives;  // stratified samples of a group, weighted to count as `negatives`; 0: `negatives` independent
                          // ones
    uint64_t seed;        // of the epoch
};

// Hierarchical softmax: the inner nodes and turns on the path to each word.
struct HuffmanPaths {
    const int64_t* starts;
    const int32_t* nodes;
    const uint8_t* turns;
};

// The learning rate at the first token of the epoch and after the last; linear in between.
struct Schedule {
    double rate_first, rate_last;
};

// Everything that a training kernel reads.
struct Task {
    Corpus corpus;
    ModelTables model;
    Objective objective;
    Sampling sampling;
    HuffmanPaths paths;
    Schedule schedule;
};

struct Tally {
    double loss = 0;    // sum of -log likelihood
    int64_t pairs = 0;  // predictions: (context, center) pairs, or windows for CBOW
    int64_t words = 0;  // center words after subsampling
};

constexpr int MAX_GROUP = 4;  // raw tokens whose windows can share negative samples; divides BLOCK
constexpr int MAX_WINDOW = 256;
constexpr int MAX_CONTEXTS = 2 * MAX_WINDOW + MAX_GROUP;
constexpr int MAX_TAGS = 64;  // input rows of one document
constexpr int BLOCK = 4096;   // raw tokens read at a time

// Reads a range of the corpus: the tokens kept by subsampling, with the bounds of their documents.
struct CorpusReader {
    int64_t position, end;  // the next raw token to read, and the end of the range
    int block;              // raw tokens to read at a time
    int next, last;         // the next center, and the end of the centers, in the arrays below
    int32_t* id;
    int32_t* from;      // first kept token of the same document
    int32_t* to;        // one past its last
    int32_t* offset;    // raw position minus `base`
    int32_t* document;  // the token's document
    uint64_t* hash;
    int64_t base;
};

// Whether windows are trained in groups: the center words of a group share one set of negative samples, and rows are
// read and written once for all of them. (Static, because the linker would keep one copy of an inline function for all
// instruction sets.)
static inline bool grouped(const Task& task) {
    return (task.objective.architecture == SKIPGRAM || task.objective.architecture == CBOW) &&
           task.objective.loss == NEGATIVE && task.sampling.shared && task.sampling.group > 1;
}

// How many (input, center) pairs an input row forms with each word of a group, and in total.
struct PairCounts {
    float word[MAX_GROUP];
    float total;
};

// The training example of a center word or of a group: context words and target rows, with a sign for each target.
struct Window {
    int centers, contexts, targets;
    int words;                             // of a group: distinct center words, which are the first targets
    PairCounts pair_counts[MAX_CONTEXTS];  // of each context of a group
    PairCounts document_counts;            // of the document's rows, which pair with each center
    float rate;
    uint64_t hash;
    int32_t center, document;
    int32_t context[MAX_CONTEXTS];  // words; -1: missing (CONCAT only)
    int32_t* target;
    float* sign;                  // +1: positive, -1: negative sample
    int32_t upcoming[MAX_GROUP];  // words that enter the next window
    int upcoming_count;
};

// Copies of the rows that a stream changes between two merges of ordered training.
struct Copies {
    int32_t* input_slot;   // [input rows]: the slot of a row's copy, -1 = none yet
    int32_t* output_slot;  // [output rows]
    int32_t* row;          // [max slots]: the row that a slot copies, id for inputs and ~id for outputs
    float* data;           // [max slots × output stride]
    int count;
};

struct Scratch {
    float** inputs;     // [max inputs]
    float** outputs;    // [max targets]
    float* scores;      // [max contexts × targets], padded
    float* signs;       // the same
    float* hidden;      // [MAX_GROUP × output stride]
    float* change;      // [output stride]
    float* total;       // the same
    float* document;    // the row of a new document
    int max_rows;       // inputs with separate scores
    int signs_targets;  // the number of targets that `signs` is filled for; 0: none
    // Rows of the next window, prefetched one cache line at a time while this window is updated. Prefetching all of
    // them at once would exceed the processor's outstanding cache misses.
    const float** prefetch_rows;  // [max targets + MAX_GROUP × max subwords]
    int prefetch_count;
    Copies* copies;  // null: rows are updated in place
};

// The kernels of one instruction set.
struct Predict {
    bool (*refill)(const Task&, CorpusReader&);
    int (*prepare)(const Task&, const CorpusReader&, int center, float rate, Window&);  // returns the number of centers
    void (*prefetch_next)(const Task&, const Window&, Scratch&);
    void (*train)(const Task&, const Window&, Scratch&, Tally&);
    void (*to_changes)(const Task&, Copies&);  // replaces each copy by its change
    void (*add_row)(float* row, const float* change, float share, int64_t stride);
};

namespace baseline { extern const Predict predict; }
namespace avx2 { extern const Predict predict; }
namespace avx512 { extern const Predict predict; }

}  // namespace firth
