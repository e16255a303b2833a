// ---- memory and lists --------------------------------------------------------------------------

namespace detail {

/// Memory that grows. All kinds of PlainList share its function.
class PlainMemory {
 public:
  PlainMemory() : data_(nullptr), size_(0), room_(0) {}
  PlainMemory(const PlainMemory&) = delete;
  PlainMemory& operator=(const PlainMemory&) = delete;
  ~PlainMemory() { free(data_); }

 protected:
  /// Makes room for `count` more bytes.
  void grow(std::size_t count);
  void add(const void* item, std::size_t size);

  char* data_;
  std::size_t size_;
  std::size_t room_;
};

inline void PlainMemory::grow(std::size_t count) {
  const std::size_t room = (std::max)(2 * room_ + 64, size_ + count);
  void* const moved = realloc(data_, room);
  if (moved == nullptr) throw std::bad_alloc();
  data_ = static_cast<char*>(moved);
  room_ = room;
}

inline void PlainMemory::add(const void* item, std::size_t size) {
  if (room_ - size_ < size) grow(size);
  memcpy(data_ + size_, item, size);
  size_ += size;
}

/// Deletes an object at its end, as std::unique_ptr, of which each kind takes 1 % of the time that
/// a small library compiles at -O0 (bench/compile.py).
template <typename Item>
class Owned {
 public:
  explicit Owned(Item* item = nullptr) : item_(item) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { delete item_; }
  Item* get() const { return item_; }
  Item& operator*() const { return *item_; }
  Item* operator->() const { return item_; }
  void reset(Item* item) {
    delete item_;
    item_ = item;
  }
  Item* release() {
    Item* const item = item_;
    item_ = nullptr;
    return item;
  }

 private:
  Item* item_;
};

template <typename Item>
class Owned<Item[]> {
 public:
  explicit Owned(Item* items) : items_(items) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { delete[] items_; }
  Item* get() const { return items_; }
  Item& operator[](std::size_t pos) const { return items_[pos]; }

 private:
  Item* items_;
};

/// A std::vector of items that may be copied as bytes; resize adds zeros. bench/compile.py: with
/// std::vector in its place, a small library takes half as long again to compile, and three
/// quarters of its functions come from the fifteen kinds of std::vector.
template <typename Item>
class PlainList : public PlainMemory {
 public:
  void push_back(Item item) { add(&item, sizeof(Item)); }
  void pop_back() { size_ -= sizeof(Item); }
  void reserve(std::size_t count) {
    if (room_ < count * sizeof(Item)) grow(count * sizeof(Item) - size_);
  }
  void resize(std::size_t count) {
    reserve(count);
    if (count > size()) memset(data_ + size_, 0, count * sizeof(Item) - size_);
    size_ = count * sizeof(Item);
  }
  void removeFirst(std::size_t count) {
    size_ -= count * sizeof(Item);
    memmove(data_, data_ + count * sizeof(Item), size_);
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_ / sizeof(Item); }
  Item* data() { return reinterpret_cast<Item*>(data_); }
  const Item* data() const { return reinterpret_cast<const Item*>(data_); }
  Item* begin() { return data(); }
  Item* end() { return data() + size(); }
  const Item* begin() const { return data(); }
  const Item* end() const { return data() + size(); }
  Item& operator[](std::size_t pos) { return data()[pos]; }
  const Item& operator[](std::size_t pos) const { return data()[pos]; }
  Item& back() { return end()[-1]; }

 private:
  static_assert(std::is_trivially_destructible<Item>::value, "not plain");
};

inline JsonReader::Slice sliceOf(const JsonReader::Slice& text) { return text; }
inline JsonReader::Slice sliceOf(const std::string& text) {
  return JsonReader::Slice{text.data(), text.size()};
}

/// A text with a number, sorted by both.
struct NumberedText {
  JsonReader::Slice text;
  std::size_t number;
};

inline int compareNumberedTexts(const void* left, const void* right) {
  const NumberedText& first = *static_cast<const NumberedText*>(left);
  const NumberedText& second = *static_cast<const NumberedText*>(right);
  if (first.text < second.text) return -1;
  return second.text < first.text || first.number > second.number ? 1 : -1;
}

inline void sortTexts(PlainList<NumberedText>* texts) {
  if (texts->empty()) return;
  qsort(texts->data(), texts->size(), sizeof(NumberedText), &compareNumberedTexts);
}

}  // namespace detail
