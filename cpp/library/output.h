// Capture of the text that libraries print to std::cout.
#ifndef PASSLIB_LIBRARY_OUTPUT_H_
#define PASSLIB_LIBRARY_OUTPUT_H_

#include <functional>
#include <string>

namespace passlib {

/// While an instance lives, text that this thread prints to std::cout goes to `sink`, in pieces
/// that end where the stream is flushed; other threads print as before. `sink` must not throw.
class CapturedOutput {
 public:
  using Sink = std::function<void(const std::string& text)>;
  explicit CapturedOutput(Sink sink);
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  /// Called by the stream buffer.
  void write(const char* text, std::size_t size);
  void flush();

 private:
  Sink sink_;
  std::string pending_;
  CapturedOutput* outer_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OUTPUT_H_
