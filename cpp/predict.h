// Words that predict their neighbours: the job that the skip-gram and CBOW kernels work on.
//
// The random decisions for a token (kept or not, how far its window reaches, its noise words) are a hash
// of seed, epoch and position in the corpus. They don't depend on threads, blocks or where a run was
// resumed; only the order of the updates does.
#pragma once

#include <cstdint>

namespace firth {

// SKIPGRAM: each context predicts the centre. CBOW: the mean (or sum) of all contexts does. CONCAT: their rows side by
// side, each place in the window for itself. FORWARD: the centre predicts each context, as fastText has it, so that the
// many rows that make up a word with its subwords are read and written once a window.
enum Architecture : int { SKIPGRAM = 0, CBOW = 1, CONCAT = 2, FORWARD = 3 };
enum Loss : int { NEGATIVE = 0, HIERARCHICAL = 1, SOFTMAX = 2 };

// One slot of an alias table: 32 random bits below `cut` mean the slot itself, else `other`.
struct Alias {
    uint32_t cut;
    int32_t other;
};

struct Job {
    // The corpus: word ids, and where each document starts (the last entry is the end).
    const int32_t* ids;
    const int64_t* starts;
    int64_t documents;
    // The model: rows of `stride` floats, 64-byte aligned, zero beyond the dimension. CONCAT's outputs are wider.
    float* inputs;
    float* outputs;
    int64_t stride, output_stride;
    int32_t words, input_rows, output_rows;
    // The input rows that make up a word (its own first, then its subwords); null: its own alone.
    const int64_t* piece_starts;
    const int32_t* piece_rows;
    // The input rows that stand for a document, in every window of it; null: none.
    const int64_t* tag_starts;
    const int32_t* tag_rows;
    // What to learn.
    int architecture;
    int loss;
    bool mean;    // CBOW: inputs are averaged, else summed
    bool exact;   // CBOW: each input of a mean moves by its share of the gradient, else by all of it
    bool shared;  // one draw of noise words for all pairs of a window
    int group;    // and, as for CBOW, for the windows of so many raw tokens: 1, 2 or 4
    bool neighbors;  // words predict; else the document's rows do it alone
    bool frozen;  // only the row of a new document moves (see `infer`)
    bool shrink;  // the window's reach is drawn from 1..window, else it is window
    int window;
    int negatives;
    int drawn;    // noise words of a group, by strata, that count as much as `negatives` together; 0: these, freely
    // Sampling: a token is kept when 32 random bits are <= keep[word]; noise words by the alias method.
    const uint32_t* keep;
    const Alias* noise;
    // Hierarchical softmax: inner nodes and turns on the way to each word.
    const int64_t* path_starts;
    const int32_t* path_nodes;
    const uint8_t* path_turns;
    // This epoch.
    uint64_t seed;
    double rate_first, rate_last;  // learning rate at the first and after the last token of the epoch
    int64_t first, last;           // the tokens trained on (the rest may be held out)
};

struct Tally {
    double loss = 0;        // sum of -log likelihood
    int64_t pairs = 0;      // predictions made: (context, centre) pairs, or windows where contexts act together
    int64_t words = 0;      // centre words kept
};

constexpr int MOST_GROUP = 4;       // raw tokens of a document that share noise, at the most; divides BLOCK
constexpr int MOST_WINDOW = 256;
constexpr int MOST_CONTEXTS = 2 * MOST_WINDOW + MOST_GROUP;
constexpr int MOST_TAGS = 64;       // rows that stand for one document
constexpr int BLOCK = 4096;         // raw tokens a walker reads at a time

// A stretch of the corpus turned into kept tokens with their windows' limits.
struct Walker {
    int64_t position, end;  // the next raw token to read; where the stretch ends
    int block;              // raw tokens to read at a time
    int next, last;         // the next centre, and the end of the centres, in the arrays below
    int32_t* id;
    int32_t* from;          // first kept token of the same document
    int32_t* to;            // one past its last
    int32_t* offset;        // raw position less `base`
    int32_t* document;      // which one it stands in
    uint64_t* hash;
    int64_t base;
};

// The kept words within a group are targets together, against one draw of noise words, and a window is such a group: rows
// are read and written once for all of its centres. (Static: of an inline function the linker would keep one copy for all
// instruction sets.)
static inline bool grouped(const Job& job) {
    return (job.architecture == SKIPGRAM || job.architecture == CBOW) && job.loss == NEGATIVE && job.shared && job.group > 1;
}

// How often an input row meets each of a group's words, and all of them together.
struct Meetings {
    float word[MOST_GROUP];
    float all;
};

// The training example of a centre word, or of a group of them: input rows and target rows, with a sign for each target.
struct Window {
    int centres, contexts, targets;
    int words;  // of a group: different words among the centres, the first targets
    Meetings meetings[MOST_CONTEXTS];  // of a group's contexts
    Meetings whole;                    // of what meets each centre: the document
    float rate;
    uint64_t hash;
    int32_t centre, document;
    int32_t context[MOST_CONTEXTS];  // words; -1 where CONCAT finds none
    int32_t* target;
    float* sign;       // +1: true, -1: noise
    int32_t entering[MOST_GROUP];  // words that come within reach next
    int enter;                      // how many
};

// Copies of the rows that a stream changes between two merges of the ordered mode.
struct Copies {
    int32_t* input_slot;   // [words]: the slot of an input row's copy, -1 = none yet
    int32_t* output_slot;  // [output rows]
    int32_t* row;          // [most slots]: whose copy a slot holds, id for inputs and ~id for outputs
    float* data;           // [most slots × output stride, the wider one]
    int count;
};

struct Scratch {
    float** inputs;    // [most inputs]
    float** outputs;   // [most targets]
    float* scores;     // [most contexts × targets], padded
    float* signs;      // the same
    float* hidden;     // [MOST_GROUP × output stride]
    float* change;     // [output stride]
    float* total;      // the same
    float* document;   // the row of a new document
    int most_rows;     // inputs that have scores of their own
    int signs_laid;    // for how many targets `signs` is laid out, 0: none
    // Rows of the next window, fetched a line at a time while this one is updated: asking for all of them
    // at once would stall on the processor's few outstanding misses.
    const float** ahead;  // [most targets + MOST_GROUP × most pieces]
    int ahead_count;
    Copies* copies;       // null: rows are changed in place
};

// The kernels of one instruction set.
struct Predict {
    bool (*refill)(const Job&, Walker&);
    int (*prepare)(const Job&, const Walker&, int centre, float rate, Window&);  // how many centres it takes
    void (*look_ahead)(const Job&, const Window&, Scratch&);
    void (*train)(const Job&, const Window&, Scratch&, Tally&);
    void (*to_changes)(const Job&, Copies&);  // each copy less the row it was made from
    void (*add_row)(float* row, const float* change, float share, int64_t stride);
};

namespace baseline { extern const Predict predict; }
namespace avx2 { extern const Predict predict; }
namespace avx512 { extern const Predict predict; }

}  // namespace firth
