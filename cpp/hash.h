// Random decisions are hashes: the finalizer of splitmix64 over seeds and positions (Steele et al. 2014).
#pragma once

#include <cstdint>

namespace firth {

constexpr uint64_t GOLDEN = 0x9e3779b97f4a7c15ull;

// Static, so that each instruction set has its own copy.
static inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

}  // namespace firth
