#pragma once
#include <cstdint>

namespace firth {

// Zeroed floats, on huge pages where available, so that random access to a large table causes fewer TLB misses.
float* new_table(int64_t floats);
void free_table(float* data);

}  // namespace firth
