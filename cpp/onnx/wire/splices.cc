#include "onnx/wire/splices.h"

#include <algorithm>

namespace passlib::onnx {

void Splices::replace(const Path& path, std::string body) {
  const Bytes old = path.back().body;
  grow(path, static_cast<int64_t>(body.size()) - static_cast<int64_t>(old.size()));
  edits_.push_back({old.data(), old.size(), std::move(body), {}});
}

void Splices::remove(const Path& path) {
  const Field& field = path.back();
  const auto size = static_cast<std::size_t>(field.end - field.start);
  grow(Path(path.begin(), path.end() - 1), -static_cast<int64_t>(size));
  edits_.push_back({field.start, size, "", {}});
}

void Splices::append(const Path& path, uint32_t number, const Payload& payload) {
  std::string head;
  appendHead(number, payload.size(), &head);
  grow(path, static_cast<int64_t>(head.size() + payload.size()));
  edits_.push_back({path.back().end, 0, std::move(head), payload});
}

Pieces Splices::finish() {
  changeLengths();
  std::stable_sort(edits_.begin(), edits_.end(),
                   [](const Edit& left, const Edit& right) { return left.at < right.at; });
  Pieces made;
  const char* cursor = whole_.data();
  for (const Edit& edit : edits_) {
    made.append(Bytes(cursor, static_cast<std::size_t>(edit.at - cursor)));
    made.text()->append(edit.text);
    edit.payload.appendTo(&made);
    cursor = edit.at + edit.removed;
  }
  const char* const end = whole_.data() + whole_.size();
  made.append(Bytes(cursor, static_cast<std::size_t>(end - cursor)));
  return made;
}

void Splices::grow(const Path& path, int64_t by) {
  const char* outer = nullptr;
  for (std::size_t depth = 0; depth < path.size(); ++depth) {
    Grown& grown =
        grown_.try_emplace({depth, path[depth].start}, Grown{path[depth], outer, 0}).first->second;
    if (depth + 1 == path.size()) grown.by += by;
    outer = path[depth].start;
  }
}

/// Innermost messages first: what a length takes adds to the message around.
void Splices::changeLengths() {
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

}  // namespace passlib::onnx
