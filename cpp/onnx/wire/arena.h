// Messages of which a file has several parts. Parsers of protobuf merge repeated occurrences of a
// field that is one message, which equals parsing all parts one after the other.
#ifndef PASSLIB_ONNX_WIRE_ARENA_H_
#define PASSLIB_ONNX_WIRE_ARENA_H_

#include <deque>
#include <string>

#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Keeps joined messages, and texts made for a graph.
using Arena = std::deque<std::string>;

/// One message, present in any number of parts.
class Message {
 public:
  void add(Bytes part, Arena* arena) {
    if (!present_) {
      bytes_ = part;
    } else {
      if (joined_ == nullptr) joined_ = &arena->emplace_back(bytes_);
      joined_->append(part);
      bytes_ = *joined_;
    }
    present_ = true;
  }
  bool present() const { return present_; }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  std::string* joined_ = nullptr;
  bool present_ = false;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_ARENA_H_
