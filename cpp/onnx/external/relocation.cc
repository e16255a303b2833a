#include "onnx/external/relocation.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "onnx/parts/tensor.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

/// Changes of the bytes of messages inside others, whose lengths follow.
class Splices {
 public:
  explicit Splices(Bytes whole) : whole_(whole) {}

  /// Replaces the message at the end of a path.
  void replace(const Path& path, std::string body) {
    const Bytes old = path.back().body;
    grow(path, static_cast<int64_t>(body.size()) - static_cast<int64_t>(old.size()));
    edits_.push_back({old.data(), old.size(), std::move(body), {}});
  }

  /// Adds a field of bytes at the end of the message at the end of a path.
  void append(const Path& path, uint32_t number, const Payload& payload) {
    std::string head;
    appendHead(number, payload.size(), &head);
    grow(path, static_cast<int64_t>(head.size() + payload.size()));
    edits_.push_back({path.back().end, 0, std::move(head), payload});
  }

  Pieces finish() {
    changeLengths();
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& left, const Edit& right) { return left.at < right.at; });
    Pieces made;
    const char* cursor = whole_.data();
    for (const Edit& edit : edits_) {
      made.append(Bytes(cursor, static_cast<std::size_t>(edit.at - cursor)));
      made.append(edit.text);
      edit.payload.appendTo(&made);
      cursor = edit.at + edit.removed;
    }
    const char* const end = whole_.data() + whole_.size();
    made.append(Bytes(cursor, static_cast<std::size_t>(end - cursor)));
    return made;
  }

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

  void grow(const Path& path, int64_t by) {
    const char* outer = nullptr;
    for (std::size_t depth = 0; depth < path.size(); ++depth) {
      Grown& grown = grown_.try_emplace({depth, path[depth].start}, Grown{path[depth], outer, 0})
                         .first->second;
      if (depth + 1 == path.size()) grown.by += by;
      outer = path[depth].start;
    }
  }

  /// Innermost messages first: what a length takes adds to the message around.
  void changeLengths() {
    for (auto each = grown_.rbegin(); each != grown_.rend(); ++each) {
      const auto& [field, outer, by] = each->second;
      if (by == 0) continue;
      const char* at = field.start;
      readVarint(&at, field.end);
      const auto old = static_cast<std::size_t>(field.body.data() - at);
      std::string length;
      appendVarint(static_cast<uint64_t>(static_cast<int64_t>(field.body.size()) + by), &length);
      if (outer != nullptr) {
        grown_.at({each->first.first - 1, outer}).by +=
            by + static_cast<int64_t>(length.size()) - static_cast<int64_t>(old);
      }
      edits_.push_back({at, old, std::move(length), {}});
    }
  }

  Bytes whole_;
  std::vector<Edit> edits_;
  std::map<std::pair<Depth, const char*>, Grown> grown_;  ///< by depth and start
};

}  // namespace

void forEachNumberedTensor(
    Bytes model, const std::function<void(const Path&, std::optional<std::size_t>)>& visit) {
  std::size_t initializers = 0;
  forEachTensor(model, [&](const Path& path) {
    const bool is_main = path.size() == 2 && path[0].number == numbers::kGraph &&
                         path[1].number == numbers::kInitializer;
    visit(path, is_main ? std::optional<std::size_t>(initializers++) : std::nullopt);
  });
}

Pieces relocate(Bytes model, const Relocation& relocation) {
  Splices splices(model);
  forEachNumberedTensor(model, [&](const Path& path, std::optional<std::size_t> number) {
    const Bytes tensor = path.back().body;
    if (number) {
      const auto place = relocation.places.find(*number);
      if (place != relocation.places.end()) {
        return splices.replace(path, withPlace(tensor, place->second));
      }
      const auto payload = relocation.payloads.find(*number);
      if (payload != relocation.payloads.end()) {
        return splices.append(path, numbers::kRawData, payload->second);
      }
    }
    if (relocation.files.empty()) return;
    const TensorHead head = readTensorHead(tensor);
    if (!head.external) return;
    const std::string location = plainPath(placeOf(tensor, std::string(head.name)).location);
    const auto file = relocation.files.find(location);
    if (file != relocation.files.end()) splices.replace(path, withLocation(tensor, file->second));
  });
  return splices.finish();
}

}  // namespace passlib::onnx
