// ---- members of objects ------------------------------------------------------------------------

inline JsonMembers::JsonMembers(const JsonMembers& other) : texts_(nullptr) {
  if (other.empty()) return;
  detail::Owner<Texts> copy(new Texts());
  memcpy(copy->add(other.texts_->size()), other.texts_->begin(), other.texts_->size());
  texts_ = copy.release();
}

inline void JsonMembers::clear() noexcept {
  delete texts_;
  texts_ = nullptr;
}

inline std::size_t JsonMembers::size() const {
  std::size_t count = 0;
  Slice key;
  Slice text;
  for (Walk walk(*this); walk.next(&key, &text);) ++count;
  return count;
}

inline bool JsonMembers::equals(const JsonMembers& other) const {
  if (empty() || other.empty()) return empty() == other.empty();
  return texts_->size() == other.texts_->size() &&
         memcmp(texts_->begin(), other.texts_->begin(), texts_->size()) == 0;
}

inline char* JsonMembers::add(const Slice& key, std::size_t size) {
  if (texts_ == nullptr) texts_ = new Texts();
  const std::size_t sizes[] = {key.size, size};
  char* const target = static_cast<char*>(
      static_cast<detail::PlainBytes*>(texts_)->add(sizeof(sizes) + key.size + size));
  memcpy(target, sizes, sizeof(sizes));
  if (key.size != 0) memcpy(target + sizeof(sizes), key.data, key.size);
  return target + sizeof(sizes) + key.size;
}

inline bool JsonMembers::find(const Slice& key, Slice* text) const {
  Slice each;
  for (Walk walk(*this); walk.next(&each, text);) {
    if (each.size == key.size && memcmp(each.data, key.data, key.size) == 0) return true;
  }
  return false;
}

inline bool JsonMembers::Walk::next(Slice* key, Slice* text) {
  if (cursor_ == end_) return false;
  std::size_t sizes[2];
  memcpy(sizes, cursor_, sizeof(sizes));
  cursor_ += sizeof(sizes);
  *key = Slice{cursor_, sizes[0]};
  *text = Slice{cursor_ + sizes[0], sizes[1]};
  cursor_ += sizes[0] + sizes[1];
  return true;
}

inline GraphAttributes::GraphAttributes(const GraphAttributes& other)
    : texts_(other.texts_), values_(nullptr) {
  const detail::GraphValues* const values = other.values_.load();
  if (values != nullptr) values_.storeAlone(values->copy(*values));
}

inline void GraphAttributes::drop(detail::GraphValues* values) noexcept {
  if (values != nullptr) values->destroy(values);
}

inline const JsonMembers& GraphAttributes::_texts(JsonMembers* room) const {
  const detail::GraphValues* const values = values_.load();
  if (values == nullptr) return texts_;
  room->clear();
  values->print(*values, room);
  return *room;
}

namespace detail {

/// A reader of JSON that was read before.
inline JsonReader readAgain(const JsonReader::Slice& text) {
  JsonOptions reading;
  reading.max_depth = (std::numeric_limits<std::size_t>::max)();
  return JsonReader(text.data, text.size, reading);
}

}  // namespace detail

inline bool GraphAttributes::_getString(const char* key, std::string* text) const {
  const detail::GraphValues* const values = values_.load();
  if (values != nullptr) return values->get_string(*values, key, text);
  JsonReader::Slice json;
  if (!texts_.find(JsonReader::Slice{key, strlen(key)}, &json)) return false;
  if (json.size == 0 || *json.data != '"') return false;
  *text = detail::readAgain(json).readString().str();
  return true;
}

PASSLIB_END_CODE
PASSLIB_COLD_CODE
