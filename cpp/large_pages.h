// Memory in large pages, where the system has them: fewer misses of the table of pages while weights are read from end
// to end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace firth {

constexpr int64_t LARGE_PAGE = int64_t{1} << 21;

// Uninitialized floats, aligned to a large page if they fill one, otherwise to a cache line.
class LargeBlock {
  public:
    explicit LargeBlock(int64_t floats) : memory_(allocate(floats * 4), {alignment(floats * 4)}) {}
    float* floats() const { return memory_.get(); }

  private:
    struct Free {
        std::align_val_t alignment;
        void operator()(float* memory) const { ::operator delete(memory, alignment); }
    };
    static std::align_val_t alignment(int64_t bytes) {
        return static_cast<std::align_val_t>(bytes >= LARGE_PAGE ? LARGE_PAGE : 64);
    }
    static float* allocate(int64_t bytes) {
        void* memory = ::operator new(static_cast<size_t>(bytes), alignment(bytes));
#if defined(__linux__)
        if (bytes >= LARGE_PAGE) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
        return static_cast<float*>(memory);
    }

    std::unique_ptr<float, Free> memory_;
};

// Zeroed arrays that live as long as the arena; each begins a cache line. Blocks grow with what they hold.
class Arena {
  public:
    Arena() = default;
    Arena(const Arena&) = delete;  // others point into it

    float* take(int64_t floats) {
        floats = (floats + 15) / 16 * 16;
        if (floats > left_) {
            const int64_t size = std::max(floats, std::min(total_, LARGEST));
            blocks_.emplace_back(size);
            next_ = blocks_.back().floats();
            left_ = size;
        }
        float* taken = next_;
        std::fill_n(taken, floats, 0.0f);
        next_ += floats;
        left_ -= floats;
        total_ += floats;
        return taken;
    }

  private:
    static constexpr int64_t LARGEST = 16 * LARGE_PAGE / 4;

    std::vector<LargeBlock> blocks_;
    float* next_ = nullptr;
    int64_t left_ = 0, total_ = 0;
};

}  // namespace firth
