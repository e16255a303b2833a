#include "library/calls/state.h"

#include <exception>
#include <map>
#include <utility>

#include "errors.h"
#include "header.h"
#include "library/calls/floating_point.h"
#include "platform/library_file.h"

namespace passlib {

namespace {

/// All states, by the linker's handle.
struct States {
  ForkMutex<std::mutex> mutex;
  std::map<void*, CallState*> by_handle;
};

States& states() {
  static auto* const instance = new States();
  return *instance;
}

constexpr const char* kOverwritten =
    "its file was overwritten after it was loaded, which also changed the code in memory; build to "
    "a new file and move it into place, then restart this process";

}  // namespace

CallState& CallState::of(void* handle, const std::string& path) {
  const std::lock_guard<ForkMutex<std::mutex>> lock(states().mutex);
  CallState*& state = states().by_handle[handle];
  if (state == nullptr) state = new CallState(path);
  return *state;
}

void CallState::requireUnwritten(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return;
  const std::lock_guard<ForkMutex<std::mutex>> lock(states().mutex);
  for (const auto& [handle, state] : states().by_handle) {
    const std::lock_guard<ForkMutex<std::mutex>> guard(state->guard_);
    if (state->file_.is(status) && state->file_.overwritten()) refuseLibrary(path, kOverwritten);
  }
}

bool CallState::anyOverwritten() {
  const std::lock_guard<ForkMutex<std::mutex>> lock(states().mutex);
  for (const auto& [handle, state] : states().by_handle) {
    const std::lock_guard<ForkMutex<std::mutex>> guard(state->guard_);
    if (state->file_.overwritten()) return true;
  }
  return false;
}

void CallState::noteMessages(const std::vector<std::string>& messages) {
  if (messages.empty()) return;
  const std::lock_guard<ForkMutex<std::mutex>> lock(guard_);
  messages_.insert(messages_.end(), messages.begin(), messages.end());
}

std::vector<std::string> CallState::takeMessages() {
  const std::lock_guard<ForkMutex<std::mutex>> lock(guard_);
  return std::exchange(messages_, {});
}

std::string CallState::refusal() {
  const std::lock_guard<ForkMutex<std::mutex>> lock(guard_);
  if (process_ != forkCount()) {
    process_ = forkCount();
    if (running_ > 0 && refusal_.empty()) {
      refusal_ =
          "this process was forked while a thread of its parent was in a call of the library, "
          "whose state may be halfway; load libraries after forking, or start processes with "
          "spawn or forkserver";
    }
    running_ = 0;
  }
  if (refusal_.empty() && file_.overwritten()) {
    refusal_ = kOverwritten;
  }
  return refusal_;
}

void CallState::requireUsable() {
  const std::string why = refusal();
  if (why.empty()) return;
  throw LoadError("library " + mxnet::ext::host::quoted(path_) +
                  " cannot be called any more: " + why);
}

CallState::Lock::Lock(CallState* state) : state_(*state), process_(forkCount()) {
  state_.mutex_.lock();
  const std::lock_guard<ForkMutex<std::mutex>> lock(state_.guard_);
  ++state_.running_;
}

CallState::Lock::~Lock() {
  bool last = false;
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(state_.guard_);
    // After a fork within the call, the count of this process begins anew.
    if (process_ == forkCount()) last = --state_.running_ == 0;
  }
  state_.mutex_.unlock();
  if (last && state_.any_doomed_.load()) state_.destroyDoomed();
}

void CallState::destroy(void* object, Destroy function) {
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(guard_);
    doomed_.push_back(Doomed{object, function});
    any_doomed_.store(true);
  }
  destroyDoomed();
}

void CallState::destroyDoomed() {
  if (!refusal().empty()) return;  // leaked, because no code of the library may run
  while (any_doomed_.load()) {
    // A call that runs takes over when it ends: this may be a finalizer, which must not wait.
    if (!mutex_.try_lock()) return;
    std::vector<Doomed> doomed;
    {
      const std::lock_guard<ForkMutex<std::mutex>> lock(guard_);
      if (running_ == 0) {
        doomed.swap(doomed_);
        any_doomed_.store(false);
      }
      ++running_;
    }
    const FloatingPoint before;
    const bool within = doomed.empty();
    for (const Doomed& each : doomed) {
      try {
        each.function(each.object);
      } catch (const std::exception&) {
        // There is nobody to tell: the object's owner is gone.
      }
      PASSLIB_RETHROW_END_OF_THREAD
      catch (...) {
      }
    }
    if (before.restore()) noteArithmetic();
    {
      const std::lock_guard<ForkMutex<std::mutex>> lock(guard_);
      --running_;
    }
    mutex_.unlock();
    if (within) return;
  }
}

}  // namespace passlib
