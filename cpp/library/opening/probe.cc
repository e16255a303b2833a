#include "library/opening/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "header.h"
#include "library/calls/call.h"
#include "platform/system.h"

namespace passlib {
namespace {

/// A child that needs longer is given up: it may wait for a lock that another thread of its parent
/// held.
constexpr auto kLongest = std::chrono::seconds(10);

/// The answer of a child, before the text of an exception.
constexpr char kNoFailure = 'n';
constexpr char kThrew = 't';
constexpr char kThrewOther = 'o';
constexpr char kExited = 'e';

/// Only in the child: where it answers.
int answers = -1;

/// Answers at once, so that the other end never waits for the rest.
void answer(char kind, const std::string& text) {
  std::string message = std::string(1, kind) + text;
  message.resize(std::min<std::size_t>(message.size(), PIPE_BUF));
  if (write(answers, message.data(), message.size()) < 0) {
    // The parent has given up.
  }
}

/// Leaves the parent's files, signals and terminal alone.
void becomeChild(int write_end) {
  answers = write_end;
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int file = 0; file < 3 && nothing >= 0; ++file) dup2(nothing, file);
  platform::atExit([](int status) {
    answer(kExited, status == platform::kUnknownStatus ? "" : std::to_string(status));
    _exit(0);
  });
}

[[noreturn]] void loadAndAnswer(const std::string& path) {
  try {
    openThrowing(path);
    answer(kNoFailure, "");
  } catch (const std::exception& error) {
    answer(kThrew, mxnet::ext::host::textOf(error));
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    answer(kThrewOther, "");
  }
  _exit(0);
}

/// Returns what the child answers; "" if it ends or takes too long before.
std::string awaitAnswer(int read_end, bool* late) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  std::string text(PIPE_BUF, '\0');
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    struct pollfd waiting = {read_end, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    *late = ready == 0;
    const ssize_t size = ready > 0 ? read(read_end, &text[0], text.size()) : 0;
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }
}

std::string describe(const std::string& answered, int status) {
  CallOutcome outcome;
  const std::string text = answered.empty() ? "" : answered.substr(1);
  switch (answered.empty() ? '\0' : answered[0]) {
    case kThrew:
      outcome.thrown = "it threw: " + text;
      break;
    case kThrewOther:
      outcome.thrown = "it threw something that is not a std::exception";
      break;
    case kExited:
      outcome.thrown = "it called exit(" + text + ")";
      break;
    default:
      if (!answered.empty()) return "";
      if (WIFEXITED(status)) {
        outcome.thrown = "it ended the process with status " + std::to_string(WEXITSTATUS(status));
        break;
      }
      // A signal that somebody sent says nothing about the library.
      for (const int crash : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
        if (WTERMSIG(status) != crash) continue;
        outcome.thrown = std::string("it ended the process by a signal: ") + strsignal(crash);
      }
      if (outcome.thrown.empty()) return "";
  }
  return describeFailure("a static initializer failed", outcome);
}

}  // namespace

void* openThrowing(const std::string& path) {
  static void* (*volatile const open)(const char*, int) = &dlopen;
  // NOW: a missing symbol is an error here, not a dead process later. LOCAL: libraries do not see
  // each other's symbols.
  return open(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string failureToStart(const std::string& path) {
#if defined(__SANITIZE_THREAD__)
  return "";  // ThreadSanitizer ends children of threaded processes that start threads
#endif
  int ends[2];
  if (!platform::openPipe(ends)) return "";
  const pid_t child = fork();
  if (child == 0) {
    becomeChild(ends[1]);
    loadAndAnswer(path);
  }
  close(ends[1]);
  bool late = false;
  const std::string answered = child < 0 ? "" : awaitAnswer(ends[0], &late);
  close(ends[0]);
  if (child < 0) return "";
  if (late) kill(child, SIGKILL);
  int status = 0;
  pid_t ended = -1;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  // Where the program ignores its children's ends, nobody knows what ended this one.
  if (late || (answered.empty() && ended < 0)) return "";
  return describe(answered, status);
}

}  // namespace passlib
