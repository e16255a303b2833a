// State shared by all calls of a library: its lock, and whether it may be called.
#ifndef PASSLIB_LIBRARY_CALLS_STATE_H_
#define PASSLIB_LIBRARY_CALLS_STATE_H_

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "fork_mutex.h"
#include "library/calls/loaded_file.h"

namespace passlib {

/// One for each library that the dynamic linker has, by however many paths it was opened. Lives
/// until the process ends, because threads of the library may.
class CallState {
 public:
  using Destroy = void (*)(void* object);

  /// The state of the library with this handle of the dynamic linker.
  static CallState& of(void* handle, const std::string& path);

  /// Throws LoadError if the file of a path is one that the linker has, and was overwritten since.
  static void requireUnwritten(const std::string& path);

  /// Whether the file of any library was overwritten since the linker mapped it.
  static bool anyOverwritten();

  /// Throws LoadError if the library may not be called any more: its file was overwritten, or the
  /// process is a child that was forked while the library ran. Costs one stat.
  void requireUsable();

  /// Holds the library's lock, for one call of one C function: its state may not be thread-safe.
  /// No Python runs meanwhile, and no lock of another library is taken: its holder may be waiting
  /// for this one. The library may call back into the host, so the lock is recursive.
  class Lock {
   public:
    explicit Lock(CallState* state);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    CallState& state_;
    unsigned process_;
  };

  /// Destroys an object of the library now, or after the call that runs at present.
  void destroy(void* object, Destroy function);

  /// The answer to passInterrupted(), see lib_api.h, and where to set it.
  int interrupted() const { return interrupted_.load(); }
  std::atomic<int>* interruptFlag() { return &interrupted_; }

  void noteArithmetic() { changed_arithmetic_.store(true); }
  /// Whether the library changed how this process computes, at the first question since it did for
  /// the first time.
  bool takeArithmeticNote() { return changed_arithmetic_.load() && !told_.exchange(true); }

  /// Keeps what the library reported in calls that succeeded, until somebody takes it.
  void noteMessages(const std::vector<std::string>& messages);
  std::vector<std::string> takeMessages();

 private:
  explicit CallState(const std::string& path) : path_(path), file_(path), process_(forkCount()) {}
  std::string refusal();
  void destroyDoomed();

  struct Doomed {
    void* object;
    Destroy function;
  };

  const std::string path_;
  ForkMutex<std::recursive_mutex> mutex_;
  ForkMutex<std::mutex> guard_;  ///< of what follows
  LoadedFile file_;
  std::string refusal_;
  unsigned process_;  ///< the forkCount() of the process that running_ counts calls of
  int running_ = 0;
  std::vector<Doomed> doomed_;
  std::vector<std::string> messages_;
  std::atomic<bool> any_doomed_{false};
  std::atomic<int> interrupted_{0};
  std::atomic<bool> changed_arithmetic_{false};
  std::atomic<bool> told_{false};
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_STATE_H_
