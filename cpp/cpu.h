// Which instruction sets this processor and this build can run.
#pragma once

#include <string>
#include <vector>

namespace firth {

// Best last: {"baseline", "avx2", "avx512"} at the most.
std::vector<std::string> instruction_sets();

// The set that kernels run on: FIRTH_ISA if given, else the best. Throws on an unknown name.
const std::string& chosen_isa();

}  // namespace firth
