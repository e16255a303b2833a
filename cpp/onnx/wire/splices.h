// Changes of messages inside of a serialized one, whose other bytes stay.
#ifndef PASSLIB_ONNX_WIRE_SPLICES_H_
#define PASSLIB_ONNX_WIRE_SPLICES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onnx/wire/computed.h"
#include "onnx/wire/output.h"
#include "onnx/wire/schema.h"

namespace passlib::onnx {

/// The elements of a tensor.
struct Payload {
  Bytes data;
  const Computed* computed = nullptr;  ///< in place of `data`

  std::size_t size() const { return computed != nullptr ? computed->size() : data.size(); }
  void appendTo(Pieces* pieces) const {
    if (computed != nullptr) {
      pieces->append(computed);
    } else {
      pieces->append(data);
    }
  }
};

/// Changes of the bytes of messages inside others, whose lengths follow. The paths are those of one
/// message.
class Splices {
 public:
  explicit Splices(Bytes whole) : whole_(whole) {}

  /// Replaces the body of the field at the end of a path.
  void replace(const Path& path, std::string body);
  /// Removes the field at the end of a path.
  void remove(const Path& path);
  /// Adds a field of bytes at the end of the message at the end of a path.
  void append(const Path& path, uint32_t number, const Payload& payload);
  /// Returns the changed message. Refers to the memory of the original and of payloads.
  Pieces finish();

 private:
  struct Edit {
    const char* at;
    std::size_t removed;
    std::string text;
    Payload payload;  ///< after the text
  };
  struct Grown {
    Field field;
    const char* outer;  ///< start of the field around it, or null
    int64_t by;
  };
  using Depth = std::size_t;

  void grow(const Path& path, int64_t by);
  void changeLengths();

  Bytes whole_;
  std::vector<Edit> edits_;
  std::map<std::pair<Depth, const char*>, Grown> grown_;  ///< by depth and start
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_SPLICES_H_
