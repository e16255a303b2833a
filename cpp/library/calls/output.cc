#include "library/calls/output.h"

#include <atomic>
#include <iostream>
#include <mutex>
#include <streambuf>
#include <utility>

#include "fork_mutex.h"

namespace passlib {
namespace {

thread_local std::string* captured_text = nullptr;

/// Replaces std::cout's buffer while any thread captures. Threads share no state in it: each writes
/// to its own capture or to the original.
class Router : public std::streambuf {
 public:
  void install() {
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    if (users_++ != 0) return;
    original_ = std::cout.rdbuf();  // first: other threads may write as soon as this is the buffer
    std::cout.rdbuf(this);
  }
  void remove() {
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    if (--users_ == 0) std::cout.rdbuf(original_);
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (captured_text == nullptr) return original_.load()->sputn(text, size);
    captured_text->append(text, static_cast<std::size_t>(size));
    return size;
  }
  int sync() override { return captured_text == nullptr ? original_.load()->pubsync() : 0; }

 private:
  ForkMutex<std::mutex> mutex_;
  int users_ = 0;
  std::atomic<std::streambuf*> original_{nullptr};
};

Router& router() {
  // Never destroyed: std::cout may be used until the process ends.
  static Router* instance = new Router();
  return *instance;
}

}  // namespace

CapturedOutput::CapturedOutput(std::string* text) : outer_(std::exchange(captured_text, text)) {
  router().install();
}

CapturedOutput::~CapturedOutput() {
  captured_text = outer_;
  router().remove();
}

}  // namespace passlib
