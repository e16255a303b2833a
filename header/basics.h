namespace mxnet {
namespace ext {
// The inline namespace separates these functions from those of MXNet's own lib_api in the same
// process.
inline namespace passlib_api {

class Graph;
class Node;
template <typename Unused>
struct JsonValue;
typedef JsonValue<void> JsonVal;

/// Of a function that only authors call: with it, all templates that it uses are compiled when
/// something calls it. PASSLIB_DEMANDED: of its body, if that stands alone.
#define PASSLIB_ON_DEMAND template <typename Unused = void>
#define PASSLIB_DEMANDED template <typename Unused>

/// A class template's instance that only authors' calls need: names of it in such a function are
/// looked up when the function is compiled, and not with the header.
template <typename Instance, typename Unused>
struct LaterType {
  typedef Instance type;
};
#define PASSLIB_LATER(...) typename LaterType<__VA_ARGS__, Unused>::type

/// Of a function that takes parts of a message as printf does, from parameter number `form` on.
#define PASSLIB_FORM(form) \
  __attribute__((__cold__, __noinline__, __format__(__printf__, form, form + 1)))

/// Of a few instructions: without optimization a compiler takes longer for a function and its
/// calls.
#define PASSLIB_INLINE __attribute__((__always_inline__)) inline

/// The same in hosts, for what is short and called often there.
#ifdef PASSLIB_HOST
#define PASSLIB_HOST_INLINE PASSLIB_INLINE
#else
#define PASSLIB_HOST_INLINE
#endif

namespace detail {
class JsonTree;
class NodeMemory;
class PatternSession;
class TextBuffer;

/// A pointer that several threads read and set, as std::atomic, whose header takes long to compile.
template <typename Object>
class AtomicPointer {
 public:
  PASSLIB_INLINE explicit AtomicPointer(Object* object) : object_(object) {}
  AtomicPointer(const AtomicPointer&) = delete;
  AtomicPointer& operator=(const AtomicPointer&) = delete;
  PASSLIB_INLINE Object* load() const { return __atomic_load_n(&object_, __ATOMIC_ACQUIRE); }
  PASSLIB_INLINE void store(Object* object) {
    __atomic_store_n(&object_, object, __ATOMIC_SEQ_CST);
  }
  /// Where no other thread can read it.
  PASSLIB_INLINE void storeAlone(Object* object) {
    __atomic_store_n(&object_, object, __ATOMIC_RELAXED);
  }
  PASSLIB_INLINE Object* exchange(Object* object) {
    return __atomic_exchange_n(&object_, object, __ATOMIC_SEQ_CST);
  }
  /// Sets the pointer if it is null. Returns what it was.
  PASSLIB_INLINE Object* setFirst(Object* object) { return replace(nullptr, object); }
  /// Sets the pointer if it is `present`. Returns what it was.
  PASSLIB_INLINE Object* replace(Object* present, Object* object) {
    __atomic_compare_exchange_n(&object_, &present, object, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return present;
  }

 private:
  Object* object_;
};

/// A mutex, and who holds it until the end of a block: as std::mutex, whose header takes long.
class Mutex {
 public:
  class Guard {
   public:
    explicit Guard(Mutex& mutex) : mutex_(&mutex.mutex_) { pthread_mutex_lock(mutex_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { pthread_mutex_unlock(mutex_); }

   private:
    pthread_mutex_t* mutex_;
  };
  Mutex() {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Compares a few bytes; for many, memcmp is faster.
PASSLIB_INLINE bool sameBytes(const char* left, const char* right, std::size_t size) {
  uint64_t words[2];
  if (size < 8) return memcmp(left, right, size) == 0;
  for (std::size_t pos = 0;; pos = (std::min)(pos + 8, size - 8)) {
    memcpy(&words[0], left + pos, 8);
    memcpy(&words[1], right + pos, 8);
    if (words[0] != words[1]) return false;
    if (pos == size - 8) return true;
  }
}

/// Bytes that grow.
class PlainBytes {
 public:
  PASSLIB_INLINE PlainBytes() : data_(nullptr), size_(0), room_(0) {}
  PlainBytes(const PlainBytes&) = delete;
  PlainBytes& operator=(const PlainBytes&) = delete;
  ~PlainBytes() { free(data_); }
  /// Returns the place of so many more bytes, which the caller sets.
  void* add(std::size_t count) {
    if (room_ - size_ < count) grow(count);
    size_ += count;
    return data_ + size_ - count;
  }

 protected:
  void grow(std::size_t count);

  char* data_;
  std::size_t size_;
  std::size_t room_;
};

/// A list of items that may be copied as bytes. All kinds grow by one function, where each kind of
/// std::vector has its own: a compiler takes a tenth of the time for it.
template <typename Item>
class PlainList : public PlainBytes {
 public:
  PASSLIB_INLINE PlainList() {
    static_assert(std::is_trivially_destructible<Item>::value, "not plain");
  }
  PASSLIB_INLINE ~PlainList() {}
  PASSLIB_INLINE void push(Item item) { *static_cast<Item*>(add(sizeof(Item))) = item; }
  PASSLIB_INLINE void pop() { size_ -= sizeof(Item); }
  PASSLIB_INLINE void reserve(std::size_t count) {
    if (room_ - size_ < count * sizeof(Item)) grow(count * sizeof(Item));
  }
  /// Adds zeros.
  PASSLIB_INLINE void addZeros(std::size_t count) {
    if (count != 0) memset(add(count * sizeof(Item)), 0, count * sizeof(Item));
  }
  PASSLIB_INLINE void clear() { size_ = 0; }
  PASSLIB_INLINE bool empty() const { return size_ == 0; }
  PASSLIB_INLINE std::size_t size() const { return size_ / sizeof(Item); }
  PASSLIB_INLINE Item* begin() const { return reinterpret_cast<Item*>(data_); }
  PASSLIB_INLINE Item* end() const { return reinterpret_cast<Item*>(data_ + size_); }
  PASSLIB_INLINE Item& operator[](std::size_t pos) const { return begin()[pos]; }
  PASSLIB_INLINE Item& back() const { return end()[-1]; }
};

/// A part of a list, for loops: iterators are six functions for each kind of std::vector.
template <typename Item>
struct Span {
  PASSLIB_INLINE Item* begin() const { return first; }
  PASSLIB_INLINE Item* end() const { return last; }
  Item* first;
  Item* last;
};

template <typename Item>
PASSLIB_INLINE Span<Item> span(std::vector<Item>& list) {
  return Span<Item>{list.data(), list.data() + list.size()};
}
template <typename Item>
PASSLIB_INLINE Span<const Item> span(const std::vector<Item>& list) {
  return Span<const Item>{list.data(), list.data() + list.size()};
}

/// Adds an item to a list. Of all functions that make a list grow, only one is compiled.
template <typename Item>
PASSLIB_INLINE Item& append(std::vector<Item>* list) {
  list->resize(list->size() + 1);
  return list->back();
}

/// Makes an empty list one of so many items, by two thirds of the functions of resize.
template <typename Item>
PASSLIB_INLINE void makeItems(std::vector<Item>* list, std::size_t count) {
  std::vector<Item>(count).swap(*list);
}

/// Owns an object. For std::unique_ptr, a compiler without optimization makes ten times the
/// functions.
template <typename Object>
class Owner {
 public:
  PASSLIB_INLINE explicit Owner(Object* object = nullptr) : object_(object) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  PASSLIB_INLINE ~Owner() { delete object_; }
  PASSLIB_INLINE Object* get() const { return object_; }
  PASSLIB_INLINE Object* operator->() const { return object_; }
  PASSLIB_INLINE Object& operator*() const { return *object_; }
  PASSLIB_INLINE Object* release() {
    Object* const object = object_;
    object_ = nullptr;
    return object;
  }
  void reset(Object* object) {
    Object* const former = object_;
    object_ = object;
    delete former;
  }

 private:
  Object* object_;
};
}  // namespace detail

PASSLIB_COLD_CODE
