// Random walks over a graph in compressed rows: by weight (Perozzi et al. 2014), or drawn back to where they came from
// and out into the open by p and q (Grover & Leskovec 2016).
//
// Every random decision of a walk is a hash of seed, start node, the walk's number and the step, so walks don't depend
// on threads or on which of them are made together. Memory is that of the graph: nothing is kept for pairs of edges.
#pragma once

#include <cstdint>

#include "predict.h"

namespace firth {

struct Links {
    const int64_t* starts;      // [nodes + 1]
    const int32_t* neighbors;   // growing within a row
    const float* weights;       // [links] or null: all the same
    const Alias* alias;         // [links] beside weights: a table a row, `other` counted from the row's start
    const double* sums;         // [nodes] beside weights: the row's weights together
    int32_t nodes;
    bool directed;              // else a link has its counterpart of the same weight
};

// One alias table a row, and the rows' sums.
void link_tables(const int64_t* starts, const float* weights, int32_t nodes, Alias* alias, double* sums, int threads);

struct WalkRule {
    int length;   // nodes in a walk; one that meets a dead end is shorter
    double p, q;  // 1 and 1: by weight alone
    uint64_t seed;
};

// Walk i starts at first[i] and is that node's walk `number[i]`. It is written to out + i * length, lengths[i] nodes of
// it. Gives the number of draws made (a step by weight alone is one; more tell how many were refused).
int64_t walk(const Links& links, const WalkRule& rule, const int32_t* first, const int32_t* number, int64_t walks,
             int32_t* out, int32_t* lengths, int threads);

}  // namespace firth
