// Objects that one shared pointer alone owns.
#ifndef PASSLIB_OWNED_ALONE_H_
#define PASSLIB_OWNED_ALONE_H_

#include <atomic>
#include <memory>

namespace passlib {

/// Whether `pointer` is the only one to its object, so that the object may be changed. The count
/// alone orders nothing: reads through pointers that other threads dropped must come before.
template <typename T>
bool ownedAlone(const std::shared_ptr<T>& pointer) {
  if (pointer == nullptr || pointer.use_count() != 1) return false;
#if defined(__SANITIZE_THREAD__)
  std::shared_ptr<T>(pointer).reset();  // orders alike, and the sanitizer knows it
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return true;
}

}  // namespace passlib

#endif  // PASSLIB_OWNED_ALONE_H_
