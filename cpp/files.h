// Complete reads and writes at an offset of an open file; failures throw std::system_error.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace firth {

inline void write_all(int file, const void* data, int64_t bytes, int64_t at) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t done = pwrite(file, from, static_cast<size_t>(bytes), at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) throw std::system_error(errno, std::generic_category());
        from += done, at += done, bytes -= done;
    }
}

inline void read_all(int file, void* data, int64_t bytes, int64_t at) {
    char* to = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t done = pread(file, to, static_cast<size_t>(bytes), at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) throw std::system_error(done ? errno : EIO, std::generic_category());
        to += done, at += done, bytes -= done;
    }
}

}  // namespace firth
