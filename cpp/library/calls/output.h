// Capture of the text that libraries print to std::cout.
#ifndef PASSLIB_LIBRARY_CALLS_OUTPUT_H_
#define PASSLIB_LIBRARY_CALLS_OUTPUT_H_

#include <string>

namespace passlib {

/// While an instance lives, text that this thread prints to std::cout is appended to `text`; other
/// threads print as before. It is kept rather than handed on at once, since what takes it is
/// Python, which does not run while a library's lock is held.
class CapturedOutput {
 public:
  explicit CapturedOutput(std::string* text);
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

 private:
  std::string* outer_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_OUTPUT_H_
