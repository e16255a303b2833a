// Signals while a library's code runs: Ctrl-C, and crashes.
#ifndef PASSLIB_LIBRARY_CALLS_INTERRUPT_H_
#define PASSLIB_LIBRARY_CALLS_INTERRUPT_H_

#include <atomic>
#include <csignal>
#include <string>
#include <vector>

namespace passlib {

/// The action on SIGINT.
enum class OnInterrupt {
  kNothing,  ///< leave the signal alone
  kTell,     ///< set the flag that the library may ask for, then run the program's own handler
  kSpeak,    ///< also say on stderr what runs; end the process on the second signal
};

/// For a process that is one command: a crash in a library's code is reported on stderr before it
/// ends the process, and SIGINT in such code ends it with exit code 130. `prog` begins the
/// messages.
void reportAsCommand(const std::string& prog);

/// Returns what runs native code at present, as InterruptWatch got it: "pass 'x' of library 'y'".
std::vector<std::string> runningCalls();

/// Notices SIGINT while it lives. Only for the main thread, and not nested: an inner one does
/// nothing.
class InterruptWatch {
 public:
  /// `flag`: set to 1 on the first signal, to 0 at the end. `what`: "pass 'x' of library 'y'".
  InterruptWatch(OnInterrupt how, std::atomic<int>* flag, const std::string& what);
  ~InterruptWatch();
  /// Tells another flag from now on; it is set at once if a signal came before.
  void tell(std::atomic<int>* flag);
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  static void handle(int signal, siginfo_t* info, void* context);

  bool active_ = false;
  OnInterrupt how_;
  const std::string what_;
  std::atomic<std::atomic<int>*> flag_;
  std::string text_;
  std::atomic<int> count_{0};
  const std::string* around_;  ///< what runs in this thread outside of this call; or null
  struct sigaction before_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_INTERRUPT_H_
