// Threads are started for one call and joined before it returns, so that a fork cannot break a pool.
#pragma once

#include <exception>
#include <thread>
#include <vector>

namespace firth {

// Runs work(0), …, work(count - 1), each on its own thread; rethrows the first exception.
template <class Work>
void on_threads(int count, Work work) {
    std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
    std::vector<std::thread> threads;
    const auto guarded = [&](int i) {
        try {
            work(i);
        } catch (...) {
            errors[static_cast<size_t>(i)] = std::current_exception();
        }
    };
    for (int i = 1; i < count; ++i) threads.emplace_back(guarded, i);
    guarded(0);
    for (auto& thread : threads) thread.join();
    for (auto& error : errors)
        if (error) std::rethrow_exception(error);
}

}  // namespace firth
