#include "dialects/plain_json.h"

#include <algorithm>

namespace passlib {

std::string_view PlainJson::valueText() {
  reader_.peek();
  const std::size_t start = reader_.offset();
  open_.clear();
  keys_.clear();
  do {
    const char character = reader_.peek();
    if (character == '{' || character == '[') {
      open_.push_back(Open{character == '{', true, keys_.size()});
      character == '{' ? reader_.beginObject() : reader_.beginList();
    } else if (character == '"') {
      reader_.readString();
    } else if (character == 't' || character == 'f') {
      reader_.readBool();
    } else if (character == 'n') {
      reader_.readNull();
    } else {
      reader_.readNumber();
    }
  } while (advance());
  return text_.substr(start, reader_.offset() - start);
}

bool PlainJson::advance() {
  while (!open_.empty()) {
    Open& open = open_.back();
    Slice key;
    if (!open.is_object) {
      if (reader_.nextItem(&open.first)) return true;
    } else if (reader_.nextKey(&open.first, &key)) {
      keys_.emplace_back(key.data, key.size);
      require(isPart(keys_.back()));
      return true;
    } else {
      const auto own = keys_.begin() + static_cast<std::ptrdiff_t>(open.keys);
      std::sort(own, keys_.end());
      require(std::adjacent_find(own, keys_.end()) == keys_.end());
      keys_.erase(own, keys_.end());
    }
    open_.pop_back();
  }
  return false;
}

}  // namespace passlib
