// Random walks over a graph in compressed rows: first-order, by edge weight (DeepWalk, Perozzi et al. 2014), or
// second-order, biased by p and q (node2vec, Grover & Leskovec 2016).
//
// Every random decision of a walk is a hash of seed, start node, the walk's number and the step, so walks don't depend
// on threads or on other walks. Memory is linear in the graph: nothing is stored for pairs of edges.
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

struct Links {
    const int64_t* starts;     // [nodes + 1]
    const int32_t* neighbors;  // ascending within a row
    const float* weights;      // [links] or null: unweighted
    const Alias* alias;        // [links] if weighted: one table per row; `other` is relative to the row
    const double* sums;        // [nodes] if weighted: the sum of a row's weights
    int32_t nodes;
    bool directed;  // if not, each link is stored in both directions with the same weight
};

// Builds one alias table per row, and the sums of the rows.
void link_tables(const int64_t* starts, const float* weights, int32_t nodes, Alias* alias, double* sums, int threads);

struct WalkRule {
    int length;   // nodes in a walk; shorter at a dead end
    double p, q;  // 1 and 1: first-order
    uint64_t seed;
};

// Walk i starts at first[i] and is that node's walk `number[i]`. It is written to out + i * length and has
// lengths[i] nodes. Returns the number of candidates sampled, including rejected ones.
int64_t walk(const Links& links, const WalkRule& rule, const int32_t* first, const int32_t* number, int64_t walks,
             int32_t* out, int32_t* lengths, int threads);

}  // namespace firth
