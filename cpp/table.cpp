#include "table.h"

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace firth {

float* new_table(int64_t floats) {
    constexpr size_t PAGE = size_t(2) << 20;
    const size_t bytes = size_t(floats) * sizeof(float);
    const size_t alignment = bytes >= PAGE ? PAGE : 64;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* data = std::aligned_alloc(alignment, rounded ? rounded : alignment);
    if (!data) throw std::bad_alloc();
#if defined(__linux__)
    if (alignment == PAGE) madvise(data, rounded, MADV_HUGEPAGE);
#endif
    std::memset(data, 0, rounded ? rounded : alignment);
    return static_cast<float*>(data);
}

void free_table(float* data) { std::free(data); }

}  // namespace firth
