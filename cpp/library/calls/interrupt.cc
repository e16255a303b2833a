#include "library/calls/interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "fork_mutex.h"

namespace passlib {
namespace {

std::atomic<InterruptWatch*> active_watch{nullptr};

/// The call that runs native code in this thread; null if there is none.
thread_local const std::string* current_call = nullptr;

/// The beginning of a command's messages; null in other programs.
std::atomic<const std::string*> command_prog{nullptr};

constexpr int kInterrupted = 130;
constexpr std::size_t kHandlerStack = 1 << 16;

/// Writes to stderr; if it is closed, there is nobody to tell.
void say(const char* text, std::size_t size) {
  if (write(STDERR_FILENO, text, size) < 0) return;
}
void say(const std::string& text) { say(text.data(), text.size()); }
void say(const char* text) { say(text, std::strlen(text)); }

struct Crash {
  int signal;
  const char* name;
};
constexpr Crash kCrashes[] = {{SIGSEGV, "SIGSEGV"},
                              {SIGBUS, "SIGBUS"},
                              {SIGFPE, "SIGFPE"},
                              {SIGILL, "SIGILL"},
                              {SIGABRT, "SIGABRT"}};

/// Reports a crash, and lets it end the process: the handler is gone by now.
void reportCrash(int signal) {
  if (current_call != nullptr) {
    say(*command_prog.load());
    say(": ");
    say(*current_call);
    for (const Crash& crash : kCrashes) {
      if (crash.signal != signal) continue;
      say(" crashed (");
      say(crash.name);
      say("); passlib opt --isolate runs it in a separate process and keeps a reproducer\n");
    }
  }
  raise(signal);
}

/// The running calls of all threads.
struct Running {
  ForkMutex<std::mutex> mutex;
  std::vector<const std::string*> calls;
};

Running& running() {
  static auto* const instance = new Running();
  return *instance;
}

}  // namespace

void reportAsCommand(const std::string& prog) {
  static auto* const kept = new std::string();
  *kept = prog;
  if (command_prog.exchange(kept) != nullptr) return;
  stack_t stack;  // a pass may have used up its own
  std::memset(&stack, 0, sizeof(stack));
  stack.ss_sp = new char[kHandlerStack];  // for as long as the process runs
  stack.ss_size = kHandlerStack;
  sigaltstack(&stack, nullptr);
  for (const Crash& crash : kCrashes) {
    struct sigaction now;
    if (sigaction(crash.signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    std::memset(&now, 0, sizeof(now));
    now.sa_handler = &reportCrash;
    now.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
    sigaction(crash.signal, &now, nullptr);
  }
}

std::vector<std::string> runningCalls() {
  const std::lock_guard<ForkMutex<std::mutex>> lock(running().mutex);
  std::vector<std::string> calls;
  for (const std::string* call : running().calls) calls.push_back(*call);
  return calls;
}

InterruptWatch::InterruptWatch(OnInterrupt how, std::atomic<int>* flag, const std::string& what)
    : how_(how), what_(what), flag_(flag), around_(current_call) {
  current_call = &what_;
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(running().mutex);
    running().calls.push_back(&what_);
  }
  std::memset(&before_, 0, sizeof(before_));
  if (how == OnInterrupt::kNothing || active_watch.load() != nullptr) return;
  if (sigaction(SIGINT, nullptr, &before_) != 0) return;
  const bool plain = (before_.sa_flags & SA_SIGINFO) == 0;
  if (plain && (before_.sa_handler == SIG_DFL || before_.sa_handler == SIG_IGN)) return;
  // A handler may not allocate, so the text is made beforehand.
  text_ = "\npasslib: " + what +
          " runs native code; KeyboardInterrupt is raised when it returns. Press Ctrl-C again to "
          "end the process.\n";
  struct sigaction mine = before_;
  mine.sa_flags |= SA_SIGINFO;
  mine.sa_sigaction = &InterruptWatch::handle;
  active_watch.store(this);
  active_ = sigaction(SIGINT, &mine, nullptr) == 0;
  if (!active_) active_watch.store(nullptr);
}

InterruptWatch::~InterruptWatch() {
  current_call = around_;
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(running().mutex);
    std::vector<const std::string*>& calls = running().calls;
    calls.erase(std::find(calls.begin(), calls.end(), &what_));
  }
  if (!active_) return;
  struct sigaction now;
  // The library may have set a handler of its own meanwhile, which then stays.
  if (sigaction(SIGINT, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
      now.sa_sigaction == &InterruptWatch::handle) {
    sigaction(SIGINT, &before_, nullptr);
  }
  active_watch.store(nullptr);
  flag_.load()->store(0);
}

void InterruptWatch::tell(std::atomic<int>* flag) {
  flag_.store(flag);
  if (count_.load() > 0) flag->store(1);
}

void InterruptWatch::handle(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  InterruptWatch* watch = active_watch.load();
  if (watch != nullptr) {
    const bool first = watch->count_++ == 0;
    const bool speaks = watch->how_ == OnInterrupt::kSpeak;
    const std::string* const prog = command_prog.load();
    if (speaks && prog != nullptr) {
      say(*prog);
      say(": interrupted in ");
      say(watch->what_);
      say("\n");
      _exit(kInterrupted);
    }
    watch->flag_.load()->store(1);
    if (first && speaks) say(watch->text_);
    if (!first && speaks) {
      struct sigaction end;
      std::memset(&end, 0, sizeof(end));
      end.sa_handler = SIG_DFL;
      sigaction(SIGINT, &end, nullptr);
      raise(SIGINT);  // delivered when this handler returns
    } else if ((watch->before_.sa_flags & SA_SIGINFO) != 0) {
      watch->before_.sa_sigaction(signal, info, context);
    } else {
      watch->before_.sa_handler(signal);
    }
  }
  errno = saved;
}

}  // namespace passlib
