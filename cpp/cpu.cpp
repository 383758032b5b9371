#include "cpu.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace firth {

std::vector<std::string> instruction_sets() {
    std::vector<std::string> supported{"baseline"};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        supported.push_back("avx2");
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            supported.push_back("avx512");
    }
#endif
    return supported;
}

const std::string& active_isa() {
    static thread_local std::string active;  // read on each call, so that tests can switch
    const auto known = instruction_sets();
    const char* requested = std::getenv("FIRTH_ISA");
    active = requested && *requested ? requested : known.back();
    if (std::find(known.begin(), known.end(), active) == known.end()) {
        std::string list;
        for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
        throw std::invalid_argument("FIRTH_ISA must be one of " + list + " on this machine; got " + active + ".");
    }
    return active;
}

}  // namespace firth
