// The end of the interpreter while threads run native code.
#ifndef PASSLIB_BINDINGS_CALLS_EXIT_GATE_H_
#define PASSLIB_BINDINGS_CALLS_EXIT_GATE_H_

#include <pybind11/pybind11.h>

#include <optional>

namespace passlib {

// A daemon thread that takes the GIL after the interpreter has ended is ended where it stands,
// which C++ destructors turn into the end of the process. Hence passlib's atexit function stops
// what begins after it in other threads, waits for what runs, and after a while leaves it to
// itself: such a thread sleeps until the process ends, instead of taking the GIL.

/// Keeps the interpreter from ending while C++ code calls Python. With the GIL. Does not return
/// where another thread has begun to end the interpreter.
class GateHold {
 public:
  /// How the GIL is released and taken meanwhile: by ReleasedGil, or by code of another package.
  enum class Gil { kOurs, kForeign };

  explicit GateHold(Gil gil = Gil::kOurs);
  ~GateHold();
  GateHold(const GateHold&) = delete;
  GateHold& operator=(const GateHold&) = delete;

 private:
  const Gil gil_;
};

/// Releases the GIL while it lives.
class ReleasedGil {
 public:
  ReleasedGil();
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  GateHold hold_;
  std::optional<pybind11::gil_scoped_release> released_;
};

/// Holds the GIL for a while where a ReleasedGil lives further up.
class BorrowedGil {
 public:
  BorrowedGil();
  ~BorrowedGil();
  BorrowedGil(const BorrowedGil&) = delete;
  BorrowedGil& operator=(const BorrowedGil&) = delete;

 private:
  std::optional<pybind11::gil_scoped_acquire> acquired_;
};

/// Runs `body`, which needs the GIL, in any thread.
void withGil(void (*body)(void* object), void* object);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_CALLS_EXIT_GATE_H_
