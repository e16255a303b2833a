#include "fork_mutex.h"

#include <pthread.h>

namespace passlib {
namespace {

std::atomic<unsigned> forks{0};

// Also counts forks by native code, which Python's os.register_at_fork does not see.
const int registered = pthread_atfork(nullptr, nullptr, []() { ++forks; });

}  // namespace

unsigned forkCount() {
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace passlib
