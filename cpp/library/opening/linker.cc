#include "library/opening/linker.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fork_mutex.h"
#include "header.h"
#include "library/calls/call.h"
#include "library/calls/state.h"
#include "library/opening/probe.h"
#include "platform/library_file.h"

namespace passlib {
namespace {

/// A file that was handed to the linker, or that it was about to get.
struct Opened {
  dev_t device;
  ino_t number;
  std::string place;  ///< its path without links
  std::vector<std::string> unique;
  bool half = false;  ///< a static initializer failed in this process
};

/// Of all files, by the path that the linker got: it takes equal paths for the same file.
struct OpenedFiles {
  ForkMutex<std::mutex> mutex;
  std::map<std::string, Opened> files;
};

OpenedFiles& openedFiles() {
  static auto* const instance = new OpenedFiles();
  return *instance;
}

std::string withoutLinks(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> place(realpath(path.c_str(), nullptr),
                                                          &std::free);
  return place == nullptr ? path : place.get();
}

/// GCC gives inline functions' static variables to the whole process, whatever library they are of.
void requireOwnData(const std::string& path, const Opened& now, const Opened& before) {
  std::vector<std::string> shared;
  std::set_intersection(now.unique.begin(), now.unique.end(), before.unique.begin(),
                        before.unique.end(), std::back_inserter(shared));
  if (shared.empty()) return;
  refuseLibrary(path, "it would share " + readableSymbol(shared[0]) +
                          " with its earlier build, which stays in this process; compile it with "
                          "-fvisibility=hidden, then restart this process");
}

/// Notes a file, and returns a path of it that the linker takes for no other.
std::string noteFile(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return path;
  Opened now{status.st_dev, status.st_ino, withoutLinks(path), uniqueSymbols(path)};
  OpenedFiles& opened = openedFiles();
  const std::lock_guard<ForkMutex<std::mutex>> lock(opened.mutex);
  for (const auto& [text, before] : opened.files) {
    const bool same = before.device == now.device && before.number == now.number;
    if (same && before.half) {
      refuseLibrary(path,
                    "a static initializer failed when it was loaded before, so that only half of "
                    "it works; restart this process");
    }
    if (!same && before.place == now.place) requireOwnData(path, now, before);
  }
  const std::size_t name = path.rfind('/') + 1;
  for (std::string text = path;; text.insert(name, "./")) {
    const auto [place, added] = opened.files.emplace(text, now);
    const Opened& known = place->second;
    if (added || (known.device == now.device && known.number == now.number)) return text;
  }
}

void noteHalf(const std::string& opening) {
  OpenedFiles& opened = openedFiles();
  const std::lock_guard<ForkMutex<std::mutex>> lock(opened.mutex);
  opened.files.at(opening).half = true;
}

/// The linker's message about its last failure.
std::string linkerError() {
  const char* reason = dlerror();
  std::string text = reason == nullptr ? "unknown reason" : reason;
  if (text.find("position-independent executable") != std::string::npos) {
    text = "it is a program, not a library; compile it with g++ -shared -fPIC -fvisibility=hidden";
  }
  if (text.find("undefined symbol") != std::string::npos) {
    text +=
        "; if the library was written for MXNet, compile MXNet's src/lib_api.cc into it or use "
        "passlib's lib_api.h, which needs no other file";
  }
  return text;
}

}  // namespace

void* openLibraryFile(const std::string& path) {
  checkLibraryFile(path);
  CallState::requireUnwritten(path);
  const std::string opening = noteFile(path);
  // One that the linker has runs no initializers again.
  void* handle = dlopen(opening.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != nullptr) return handle;
  const std::string failure = failureToStart(opening);
  if (!failure.empty()) refuseLibrary(path, failure);
  CallOutcome outcome;
  try {
    handle = openThrowing(opening);
  } catch (const std::exception& error) {
    outcome.thrown = "it threw: " + mxnet::ext::host::textOf(error);
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    outcome.thrown = "it threw something that is not a std::exception";
  }
  if (!outcome.thrown.empty()) {
    noteHalf(opening);
    refuseLibrary(path, describeFailure("a static initializer failed", outcome) +
                            "\n  The dynamic linker may stay locked: restart this process");
  }
  if (handle == nullptr) refuseLibrary(path, linkerError());
  return handle;
}

}  // namespace passlib
