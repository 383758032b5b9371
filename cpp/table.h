#pragma once
#include <cstdint>

namespace firth {

// Zeroed floats on huge pages where the system has them: random rows of a large table then cost fewer
// page-table walks.
float* new_table(int64_t floats);
void free_table(float* data);

}  // namespace firth
