// Mutexes that a forked child may use, whatever other threads held when the process forked.
#ifndef PASSLIB_FORK_MUTEX_H_
#define PASSLIB_FORK_MUTEX_H_

#include <atomic>
#include <new>
#include <thread>

namespace passlib {

/// Returns the number of forks that lead from the first process to this one.
unsigned forkCount();

/// A mutex that begins anew in a forked child, where the threads that might unlock it do not exist.
template <typename Mutex>
class ForkMutex {
 public:
  ForkMutex() : born_(forkCount()) {}
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() {
    renew();
    mutex_.lock();
  }
  bool try_lock() {
    renew();
    return mutex_.try_lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  void renew() {
    const unsigned now = forkCount();
    unsigned born = born_.load(std::memory_order_acquire);
    while (born != now) {
      if (born != kRenewing && born_.compare_exchange_strong(born, kRenewing)) {
        new (&mutex_) Mutex;  // not destroyed: it may be locked
        born_.store(now, std::memory_order_release);
        return;
      }
      std::this_thread::yield();
      born = born_.load(std::memory_order_acquire);
    }
  }

  static constexpr unsigned kRenewing = ~0U;

  std::atomic<unsigned> born_;  ///< the forkCount() of the process that the mutex belongs to
  Mutex mutex_;
};

}  // namespace passlib

#endif  // PASSLIB_FORK_MUTEX_H_
