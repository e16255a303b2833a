#include "library/output.h"

#include <iostream>
#include <mutex>
#include <streambuf>
#include <utility>

namespace passlib {
namespace {

/// Bounds the text kept in memory when a pass prints a large graph.
constexpr std::size_t kMostPending = 1 << 16;

thread_local CapturedOutput* current = nullptr;

/// Replaces std::cout's buffer while any thread captures. Threads share no state in it: each writes
/// to its own capture or to the original.
class Router : public std::streambuf {
 public:
  void install() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (users_++ == 0) original_ = std::cout.rdbuf(this);
  }
  void remove() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--users_ == 0) std::cout.rdbuf(original_);
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (current == nullptr) return original_->sputn(text, size);
    current->write(text, static_cast<std::size_t>(size));
    return size;
  }
  int sync() override {
    if (current == nullptr) return original_->pubsync();
    current->flush();
    return 0;
  }

 private:
  std::mutex mutex_;
  int users_ = 0;
  std::streambuf* original_ = nullptr;
};

Router& router() {
  // Never destroyed: std::cout may be used until the process ends.
  static Router* instance = new Router();
  return *instance;
}

}  // namespace

CapturedOutput::CapturedOutput(Sink sink) : sink_(std::move(sink)), outer_(current) {
  router().install();
  current = this;
}

CapturedOutput::~CapturedOutput() {
  flush();
  current = outer_;
  router().remove();
}

void CapturedOutput::write(const char* text, std::size_t size) {
  pending_.append(text, size);
  if (pending_.size() >= kMostPending) flush();
}

void CapturedOutput::flush() {
  if (pending_.empty()) return;
  std::string text;
  text.swap(pending_);
  sink_(text);
}

}  // namespace passlib
