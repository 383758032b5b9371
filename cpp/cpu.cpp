#include "cpu.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace firth {

std::vector<std::string> instruction_sets() {
    std::vector<std::string> found{"baseline"};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        found.push_back("avx2");
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            found.push_back("avx512");
    }
#endif
    return found;
}

const std::string& chosen_isa() {
    static thread_local std::string chosen;  // read anew, so that tests can walk through every path
    const auto known = instruction_sets();
    const char* asked = std::getenv("FIRTH_ISA");
    chosen = asked && *asked ? asked : known.back();
    if (std::find(known.begin(), known.end(), chosen) == known.end()) {
        std::string list;
        for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
        throw std::invalid_argument("FIRTH_ISA must be one of " + list + " on this machine; got " + chosen + ".");
    }
    return chosen;
}

}  // namespace firth
