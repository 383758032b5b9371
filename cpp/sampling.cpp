// The Huffman tree (Huffman 1952; Morin & Bengio 2005 for a tree as softmax) and the alias table (Vose 1991).
#include "sampling.h"

#include <algorithm>
#include <stdexcept>

namespace firth {

Paths huffman_paths(const int64_t* counts, int32_t words) {
    if (!std::is_sorted(counts, counts + words, [](int64_t a, int64_t b) { return a > b; }))
        throw std::invalid_argument("huffman_paths: counts must not increase.");
    Paths paths;
    paths.starts.assign(size_t(words) + 1, 0);
    if (words < 2) return paths;
    // Leaves are sorted and inner nodes are created in increasing order, so the least frequent node is always at one of
    // two positions: linear time.
    const int32_t inner = words - 1;
    std::vector<int64_t> weight(inner);
    std::vector<int32_t> parent(size_t(words) + inner);
    std::vector<uint8_t> turn(size_t(words) + inner, 0);
    int32_t leaf = words - 1, node = 0;
    auto least =
        [&](int32_t made) {  // leaves are 0..words-1, inner nodes follow; ties go to the inner node, as in fastText
            return leaf >= 0 && (node >= made || counts[leaf] < weight[node]) ? leaf-- : words + node++;
        };
    auto weight_of = [&](int32_t which) { return which < words ? counts[which] : weight[which - words]; };
    for (int32_t made = 0; made < inner; ++made) {
        const int32_t left = least(made), right = least(made);
        weight[made] = weight_of(left) + weight_of(right);
        parent[left] = parent[right] = made;
        turn[right] = 1;
    }
    for (int32_t w = 0; w < words; ++w) {
        const size_t begin = paths.nodes.size();
        for (int32_t at = w; at != words + inner - 1; at = words + parent[at]) {
            paths.nodes.push_back(parent[at]);
            paths.turns.push_back(turn[at]);
        }
        std::reverse(paths.nodes.begin() + begin, paths.nodes.end());
        std::reverse(paths.turns.begin() + begin, paths.turns.end());
        paths.starts[w + 1] = (int64_t)paths.nodes.size();
    }
    return paths;
}

void alias_table(const double* weights, int32_t words, Alias* table) {
    double total = 0;
    for (int32_t w = 0; w < words; ++w) total += weights[w];
    std::vector<double> share(words);
    std::vector<int32_t> poor, rich;
    for (int32_t w = 0; w < words; ++w) {
        share[w] = weights[w] / total * words;
        (share[w] < 1 ? poor : rich).push_back(w);
    }
    while (!poor.empty() && !rich.empty()) {
        const int32_t a = poor.back(), b = rich.back();
        poor.pop_back();
        table[a] = {(uint32_t)std::min(4294967295.0, share[a] * 4294967296.0), b};
        share[b] -= 1 - share[a];
        if (share[b] < 1) {
            rich.pop_back();
            poor.push_back(b);
        }
    }
    for (const auto& rest : {poor, rich})
        for (const int32_t w : rest) table[w] = {4294967295u, w};
}

}  // namespace firth
