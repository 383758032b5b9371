// The instruction sets that this processor and build support.
#pragma once

#include <string>
#include <vector>

namespace firth {

// The fastest last, e.g. {"baseline", "avx2", "avx512"}.
std::vector<std::string> instruction_sets();

// The instruction set that kernels use: FIRTH_ISA if set, else the fastest. Throws if it is not supported.
const std::string& active_isa();

}  // namespace firth
