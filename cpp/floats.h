// Working memory for kernels: floats aligned to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace firth {

struct Floats {
    // Uninitialized, or zero.
    explicit Floats(size_t count, bool zero = false) : memory(zero ? new float[count + 16]() : new float[count + 16]) {
        data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) / 64 * 64);
    }
    std::unique_ptr<float[]> memory;
    float* data;
};

}  // namespace firth
