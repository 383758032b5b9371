// Working memory for kernels: floats that begin at a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace firth {

struct Floats {
    // As the memory was found, or zero.
    explicit Floats(size_t count, bool zero = false) : memory(zero ? new float[count + 16]() : new float[count + 16]) {
        data = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) / 64 * 64);
    }
    std::unique_ptr<float[]> memory;
    float* data;
};

}  // namespace firth
