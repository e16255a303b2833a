/*
 * lib_api.h: everything that the author of a passlib library needs, in one file.
 *
 * A library includes this header, registers passes with REGISTER_PASS, defines initialize(), and is
 * compiled with one line:
 *
 *     g++ -shared -fPIC -fvisibility=hidden -std=c++11 mypass_lib.cc -o libmypass_lib.so -I include
 *
 * The result loads in passlib and, since it implements version 11 of the extension ABI, also in
 * Apache MXNet 1.9 and 2.0. The names are MXNet's: sources written for its lib_api.h compile
 * unchanged. C++11 to C++23, GCC and Clang, no dependency.
 *
 * Order: options, versions, DLPack, errors, tensors, JSON, the graph, resources, operators,
 * partitioners, passes, registration, entry points; then the bodies. The first part is the manual.
 * Passes in text are in lib_patterns.h, which includes this file. Both files are made of the parts
 * in header/ by `make header`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MXNET_LIB_API_H_
#define MXNET_LIB_API_H_

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "lib_api.h needs C++11 or later: compile with -std=c++11"
#elif !defined(__cpp_exceptions) && !defined(__EXCEPTIONS)
#error "lib_api.h reports errors by exceptions: compile without -fno-exceptions"
#else

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#if defined(PASSLIB_HOST) && !defined(PASSLIB_NO_ENTRY_POINTS)
#define PASSLIB_NO_ENTRY_POINTS
#endif
// A compiler takes half as long for the following headers as for all those that MXNet's header has,
// so that nothing which a library without patterns compiles may need them.
#ifdef PASSLIB_HOST
#include <algorithm>
#include <atomic>
#include <deque>
#include <locale>
#include <memory>
#include <mutex>
#include <set>
#endif
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif
#if __cplusplus >= 201703L
#include <charconv>
#endif
#if defined(__NVCC__)
#include <cuda_runtime.h>
#include <curand_kernel.h>
#endif

// ================================================================================================
// Options. Define before including.
//
//   PASSLIB_JSON_MAX_DEPTH    nesting limit of JSON texts (default 1,000,000; depth costs heap, not
//                             stack)
//   PASSLIB_NO_GLOBAL_DLPACK  keep the DLPack types out of the global namespace, for sources that
//                             include another dlpack.h after this header
//   PASSLIB_PATTERNS          include lib_patterns.h at the end of this header
//   PASSLIB_NO_ENTRY_POINTS   types only, no exported C functions: for all sources of a library but
//                             one
//   PASSLIB_HOST              the same for a host, with what it shares (mxnet::ext::host), and its
//                             readers made for speed: all its sources define it
// ================================================================================================

#ifndef PASSLIB_JSON_MAX_DEPTH
#define PASSLIB_JSON_MAX_DEPTH 1000000
#endif

/// Version of the extension ABI: the C functions declared below under "Entry points".
#define MX_LIBRARY_VERSION 11

/// Only the entry points are exported. All else is hidden, so that two libraries in one process
/// never share a registry, a table or a function.
#define PASSLIB_EXPORT __attribute__((visibility("default")))
#define PASSLIB_HIDDEN __attribute__((visibility("hidden")))
#define PRIVATE_SYMBOL PASSLIB_HIDDEN

#if !defined(__clang__)
// GCC warns of classes with members or bases of a hidden type, which here are all of the author's.
#pragma GCC diagnostic ignored "-Wattributes"
#endif
#pragma GCC visibility push(hidden)

// Libraries need no speed where they report errors, describe themselves, and read and write graphs
// in JSON: hosts that want speed hand them over in other ways. Such code is compiled without
// optimization (cold), where it runs often with few (small); what the flat handover runs is as fast
// with -O1 (plain). A host, which reads and writes its files with it, has all of it made for speed.
// None of it is inlined elsewhere.
#if defined(__OPTIMIZE__) && !defined(__clang__) && !defined(PASSLIB_HOST)
#define PASSLIB_COLD_CODE _Pragma("GCC push_options") _Pragma("GCC optimize(\"O0\")")
#define PASSLIB_SMALL_CODE _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")")
#define PASSLIB_PLAIN_CODE _Pragma("GCC push_options") _Pragma("GCC optimize(\"O1\")")
#define PASSLIB_END_CODE _Pragma("GCC pop_options")
#else
#define PASSLIB_COLD_CODE
#define PASSLIB_SMALL_CODE
#define PASSLIB_PLAIN_CODE
#define PASSLIB_END_CODE
#endif

// ================================================================================================
// DLPack 0.2, which MXTensor carries
// ================================================================================================

namespace mxnet {
namespace ext {
namespace dlpack {

enum DLDeviceType {
  kDLCPU = 1,
  kDLGPU = 2,
  kDLCPUPinned = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLExtDev = 12
};

struct DLContext {
  DLDeviceType device_type;
  int device_id;
};

/// The last two are not in 0.2; the codes are those of later versions of DLPack.
enum DLDataTypeCode { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLBfloat = 4U, kDLBool = 6U };

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLContext ctx;
  int ndim;
  DLDataType dtype;
  int64_t* shape;    ///< borrowed from the MXTensor that holds this
  int64_t* strides;  ///< always null: compact, row-major
  uint64_t byte_offset;
};

}  // namespace dlpack
}  // namespace ext
}  // namespace mxnet

#if !defined(PASSLIB_NO_GLOBAL_DLPACK) && !defined(DLPACK_DLPACK_H_) && !defined(DLPACK_VERSION)
using namespace mxnet::ext::dlpack;  // MXNet's header has these names in the global namespace
#endif

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

// ================================================================================================
// Errors
// ================================================================================================

enum MXReturnValue {
  MX_FAIL = 0,
  MX_SUCCESS = 1,
};

/// Messages of a library to its host: one store per library, safe to use from several threads.
class MXerrorMsgs {
 public:
  /// Lives until the process ends, since threads may use it while others exit.
  static MXerrorMsgs* get();
  /// Starts a message with "<file>[<line>]: "; the caller appends the rest to the stream.
  std::stringstream& add(const char* file, int line);
  /// Adds a whole message.
  void add(const std::string& text);
  int size();
  /// Returns message number idx, valid and unchanged until the process ends; null if out of range.
  const std::string* get(int idx);

 private:
  /// Collects what is written to a stream, while other threads may read it.
  class Buffer : public std::streambuf {
   public:
    std::string text() const {
      detail::Mutex::Guard lock(mutex_);
      return text_;
    }

   protected:
    int_type overflow(int_type character) override {
      detail::Mutex::Guard lock(mutex_);
      if (character != traits_type::eof()) text_ += traits_type::to_char_type(character);
      return traits_type::not_eof(character);
    }
    std::streamsize xsputn(const char* text, std::streamsize size) override {
      detail::Mutex::Guard lock(mutex_);
      text_.append(text, static_cast<std::size_t>(size));
      return size;
    }

   private:
    mutable detail::Mutex mutex_;
    std::string text_;
  };
  struct Message {
    Message() : text(nullptr) { static_cast<std::ios&>(stream).rdbuf(&buffer); }
    Buffer buffer;
    std::stringstream stream;
    const std::string* text;  // as last returned
  };
  MXerrorMsgs() {}
  std::stringstream& start();
  detail::Mutex mutex_;
  // What this points to is never deleted: streams may be in use, and texts be read by the host.
  detail::PlainList<Message*> messages_;
};

/// Reports the reason of a failure: MX_ERROR_MSG << "no weight named " << name; return MX_FAIL;
#define MX_ERROR_MSG mxnet::ext::MXerrorMsgs::get()->add(__FILE__, __LINE__)

enum JsonErrorCode {
  kJsonSyntax = 1,     ///< not JSON
  kJsonTruncated,      ///< the text ends too early
  kJsonTrailing,       ///< text after the value
  kJsonUtf8,           ///< invalid UTF-8, or half of a surrogate pair
  kJsonDepth,          ///< nested more deeply than allowed
  kJsonDuplicateKey,   ///< an object has the same key twice
  kJsonType,           ///< a value of the wrong type
  kJsonMissingKey,     ///< an object lacks a required key
  kJsonRange,          ///< a node, output or number out of range
  kJsonCycle,          ///< nodes that depend on each other
  kJsonDuplicateName,  ///< two variables of one name
};

/// A text is not JSON, or not a graph. what() includes the place in the text.
class JsonError : public std::runtime_error {
 public:
  JsonError(JsonErrorCode error_code, const std::string& message, std::size_t error_offset,
            std::size_t error_line, std::size_t error_column)
      : std::runtime_error(message),
        code(error_code),
        offset(error_offset),
        line(error_line),
        column(error_column) {}
  JsonErrorCode code;
  std::size_t offset;  ///< in bytes, from 0
  std::size_t line;    ///< from 1
  std::size_t column;  ///< in bytes, from 1
};

/// A graph is inconsistent: an edge to a node outside the graph, or a cycle.
class GraphStructureError : public std::runtime_error {
 public:
  explicit GraphStructureError(const std::string& message) : std::runtime_error(message) {}
};

PASSLIB_END_CODE

// ================================================================================================
// Data types, contexts, tensors
// ================================================================================================

/// Element types, by MXNet's codes.
enum MXDType {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kInt16 = 8,
  kUint16 = 9,
  kUint32 = 10,
  kUint64 = 11,
  kBfloat16 = 12,
  kUNSET = 100,
};

enum MXStorageType {
  kDefaultStorage = 0,    ///< dense
  kRowSparseStorage = 1,  ///< some rows and their numbers
  kCSRStorage = 2,        ///< compressed sparse rows
};

/// The device of a tensor. The default is no device.
struct MXContext {
  MXContext() : dev_type("error"), dev_id(-1) {}
  explicit MXContext(std::string device, int number)
      : dev_type(std::move(device)), dev_id(number) {}
  explicit MXContext(const char* device, int number) : dev_type(device), dev_id(number) {}
  static MXContext CPU(int number = 0) { return MXContext("cpu", number); }
  static MXContext GPU(int number = 0) { return MXContext("gpu", number); }

  std::string dev_type;
  int dev_id;
};

/// The data of a sparse tensor; all pointers are borrowed from the host.
struct MXSparse {
  void* data = nullptr;
  int64_t data_len = 0;  ///< number of values
  /// CSR: column of each value. Row sparse: number of each stored row.
  int64_t* indices = nullptr;
  int64_t indices_len = 0;
  /// CSR: the start of each row in data, then the end of the last. Row sparse: null.
  int64_t* indptr = nullptr;
  int64_t indptr_len = 0;

  void set(void* data_ptr, const int64_t* dims, int ndims, void* idx, int64_t num_idx,
           void* idx_ptr = nullptr, int64_t num_idx_ptr = 0);
};

/// A tensor whose memory the host owns. Dense data is compact and row-major.
struct MXTensor {
  MXTensor();
  MXTensor(const MXTensor& other);
  MXTensor& operator=(const MXTensor& other);
  MXTensor(void* data, std::vector<int64_t> shape, MXDType dtype, size_t vID, MXContext ctx,
           MXStorageType stype = kDefaultStorage);

  void setTensor(void* data, MXDType type, const int64_t* dims, int ndims, size_t vID,
                 MXContext context, MXStorageType storage_type = kDefaultStorage);
  /// Updates dltensor from the other members. Throws std::runtime_error for a dtype without a
  /// DLPack equivalent.
  void setDLTensor();

  template <typename ValueType>
  ValueType* data() {
    return reinterpret_cast<ValueType*>(data_ptr);
  }
  template <typename ValueType>
  const ValueType* data() const {
    return reinterpret_cast<const ValueType*>(data_ptr);
  }
  /// Number of elements: the product of the shape, 1 for a scalar.
  int64_t size() const;
  /// Whether both refer to the same memory with the same shape, dtype and version.
  PASSLIB_ON_DEMAND bool isSame(const MXTensor& other) const;

  void* data_ptr;  ///< for sparse storage: an MXSparse
  std::vector<int64_t> shape;
  MXDType dtype;
  size_t verID;  ///< raised when the host knows that the data changed
  MXContext ctx;
  dlpack::DLTensor dltensor;  ///< the same tensor for users of DLPack
  MXStorageType stype;
};

PASSLIB_SMALL_CODE

// ================================================================================================
// JSON
// ================================================================================================

/// Kind of a JSON value. BOOL and NIL are additions to MXNet's header, which cannot read them.
enum JsonType { ERR, STR, NUM, LIST, MAP, BOOL, NIL };

/// One JSON value with its children. A template, so that only what is used of it is compiled:
/// JsonVal is the one that there is.
///
/// Numbers: `num` is the number as an int, truncated towards zero and clamped to the range of int.
/// If that loses anything, `str` has the original text, which dump() writes unless `num` was set to
/// another value.
template <typename Unused>
struct JsonValue {
  JsonValue() : type(ERR), num(-1) {}
  explicit JsonValue(JsonType kind) : type(kind), num(-1) {}
  explicit JsonValue(std::string text) : type(STR), num(-1), str(std::move(text)) {}
  explicit JsonValue(const char* text) : type(STR), num(-1), str(text) {}
  explicit JsonValue(int number) : type(NUM), num(number) {}
  JsonValue(JsonType kind, int number, std::string text)
      : type(kind), num(number), str(std::move(text)) {}
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) = default;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue() {
    if (!list.empty() || !map.empty()) clear();
  }

  static JsonValue boolean(bool value) { return JsonValue(BOOL, value ? 1 : 0, std::string()); }
  static JsonValue null() { return JsonValue(NIL); }
  static JsonValue integer(int64_t value);
  /// The number as the shortest text that reads back as the same double. Throws
  /// std::invalid_argument for NaN and infinities, which JSON cannot express.
  static JsonValue real(double value);

  /// The value of a NUM or BOOL as double; 0 for other types.
  double toDouble() const;
  /// Gets the value of a NUM as 64-bit integer. Returns false if it is not one.
  bool toInteger(int64_t* value) const;

  /// A strict weak order over all values: by type, then by value.
  bool operator<(const JsonValue& other) const;
  bool operator==(const JsonValue& other) const;

  /// JSON text: keys sorted, " : " between key and value, "," between items.
  std::string dump() const;
  /// For debugging: json(STR:x), json(INT:5), json(LIST:[..,]), json(MAP:{k : v,}).
  std::string toString() const;

  /// Reads a whole JSON text (RFC 8259, nothing looser). Throws JsonError.
  static JsonValue parse(const std::string& json);
  /// Reads one value that begins at *idx, and moves *idx to its end.
  static JsonValue parse(const std::string& json, unsigned int* idx);
  static JsonValue parse_string(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonValue parse_num(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonValue parse_list(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonValue parse_map(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }

  JsonType type;
  int num;
  std::string str;
  std::vector<JsonValue> list;
  std::map<JsonValue, JsonValue> map;

 private:
  void clear();
};

/// Limits and extensions of a reader of JSON.
struct JsonOptions {
  std::size_t max_depth = PASSLIB_JSON_MAX_DEPTH;
  /// Accept unescaped control characters inside strings, which MXNet's writer produces.
  bool allow_control_characters = false;
  /// Accept comments from // to the end of the line, and a comma after the last item or member.
  bool allow_comments = false;
};

/// A pull reader of JSON text: the caller requests the next expected token. Never recurses, never
/// reads outside the text, and throws JsonError with the place of an unexpected token.
class JsonReader {
 public:
  /// A string of the text: points into the text, or into the reader if it has escapes. Valid until
  /// the reader's next call.
  struct Slice {
    const char* data;
    std::size_t size;
    bool operator==(const char* word) const {
      return strlen(word) == size && memcmp(word, data, size) == 0;
    }
    bool operator<(const Slice& other) const {
      const int order = memcmp(data, other.data, (std::min)(size, other.size));
      return order < 0 || (order == 0 && size < other.size);
    }
    std::string str() const { return std::string(data, size); }
  };

  /// The text is borrowed and must outlive the reader.
  JsonReader(const char* text, std::size_t size, const JsonOptions& options = JsonOptions());

  /// Skips white space and returns the first character of the next token: { [ " t f n - or a digit;
  /// 0 at the end.
  char peek();
  void beginObject();
  /// Moves to the next member of an object and reads its key. Returns false at the closing brace.
  /// `first` is a variable of the caller's loop, true before the first call.
  bool nextKey(bool* first, Slice* key);
  void beginList();
  bool nextItem(bool* first);
  Slice readString();
  /// Reads the text of a number and checks it against the grammar.
  Slice readNumber();
  /// Reads a number without fraction and exponent, within the limits.
  int64_t readInteger(const char* what, int64_t low, int64_t high);
  bool readBool();
  void readNull();
  /// Reads a value of any type with its children.
  PASSLIB_ON_DEMAND JsonVal readValue();
  /// The same, into an item of a tree.
  void _readItem(detail::JsonTree* tree, std::size_t item);
  /// Sorts the members of an object by key. Fails if there are two of one key.
  void _sort(detail::JsonTree* tree, std::size_t object) const;
  void finish();
  /// Whether a string has escapes, so that it is valid until the next call alone; others are valid
  /// for as long as the text.
  bool isDecoded(const Slice& text) const { return text.data == scratch_.data(); }

  std::size_t offset() const { return static_cast<std::size_t>(cursor_ - begin_); }
  /// What is left of the text.
  Slice _rest() const { return Slice{cursor_, static_cast<std::size_t>(end_ - cursor_)}; }
  /// Moves over bytes that were read before at the same place of the grammar. Returns false, and
  /// stays, if they do not follow.
  PASSLIB_INLINE bool _skipKnown(const char* text, std::size_t size) {
    if (static_cast<std::size_t>(end_ - cursor_) < size) return false;
    if (!detail::sameBytes(cursor_, text, size)) return false;
    cursor_ += size;
    return true;
  }
  /// Moves over bytes that were compared.
  void _skip(std::size_t size) { cursor_ += size; }
  /// Whether another object or list may begin here without nesting too deeply.
  bool _mayEnter() const { return depth_ < options_.max_depth; }
  /// Reads an integer of a few digits right here. Returns false, and stays, if there is none.
  PASSLIB_INLINE bool _readDigits(int* value) {
    const char* cursor = cursor_;
    if (!_scanDigits(&cursor, value)) return false;
    cursor_ = cursor;
    return true;
  }
  /// Reads a list of `count` such integers right here. Returns false, and stays, if there is none.
  PASSLIB_INLINE bool _readTuple(int* values, int count) {
    const char* cursor = cursor_;
    if (cursor == end_ || *cursor != '[' || !_mayEnter()) return false;
    for (int pos = 0; pos < count; ++pos) {
      ++cursor;  // over the bracket or the comma
      if (cursor != end_ && *cursor == ' ') ++cursor;
      if (!_scanDigits(&cursor, &values[pos])) return false;
      if (*cursor != (pos + 1 < count ? ',' : ']')) return false;
    }
    cursor_ = cursor + 1;
    return true;
  }
  [[noreturn]] void fail(JsonErrorCode code, const std::string& message, std::size_t place) const;
  [[noreturn]] void fail(JsonErrorCode code, const std::string& message) const {
    fail(code, message, offset());
  }
  /// The same with a message in the form of printf.
  [[noreturn]] PASSLIB_FORM(4) void _fail(JsonErrorCode code, std::size_t place, const char* form,
                                          ...) const;

 private:
  /// Moves behind an integer of at most eight digits, something other than a digit after it.
  PASSLIB_INLINE bool _scanDigits(const char** place, int* value) const {
    const char* cursor = *place;
    if (end_ - cursor < 10) return false;
    unsigned digit = static_cast<unsigned char>(*cursor) - static_cast<unsigned>('0');
    if (digit > 9) return false;
    unsigned sum = digit;
    const char* const first = cursor++;
    for (; (digit = static_cast<unsigned char>(*cursor) - static_cast<unsigned>('0')) <= 9;
         ++cursor) {
      if (sum == 0 || cursor - first == 8) return false;
      sum = 10 * sum + digit;
    }
    if (*cursor == '.' || *cursor == 'e' || *cursor == 'E') return false;
    *place = cursor;
    *value = static_cast<int>(sum);
    return true;
  }
  void skipSpace();
  void enter();
  bool nextElement(bool* first, char close, const char* where);
  void expectWord(const char* word);
  const char* scanString(const char* cursor) const;
  const char* checkUtf8(const char* cursor) const;
  const char* decodeEscape(const char* cursor);
  unsigned readHex4(const char* cursor) const;
  [[noreturn]] __attribute__((__cold__)) void unexpected(const char* wanted) const;
  [[noreturn]] __attribute__((__cold__)) void failHere(JsonErrorCode code, const char* place,
                                                       const char* message) const {
    _fail(code, static_cast<std::size_t>(place - begin_), "%s", message);
  }

  const char* begin_;
  const char* end_;
  const char* cursor_;
  std::size_t depth_;
  JsonOptions options_;
  std::string scratch_;
};

PASSLIB_END_CODE

// ================================================================================================
// The graph
// ================================================================================================

class PassResource;
struct FlatModel;

/// A text, not terminated. `data` may be null if `size` is 0.
struct FlatText {
  const char* data;
  uint64_t size;
};

namespace detail {

/// The types of a call are those of a node only as long as the call runs.
struct TypesPlace {
  uint32_t node = 0;  // its position as the host showed it, from 1; 0 for a node without
  uint16_t call = 0;
};

/// Returns __ext_shape__ and __ext_dtype__ of a node of the running call, which the host infers now
/// unless it did before; null if it cannot, and after the call.
const FlatText* readTypes(const TypesPlace& place);
/// Whether a key is one of these two.
bool isOfTypes(const char* key, std::size_t size);

/// Lends a resource to the pass that runs in this thread. Nodes ask for it here, so that none has
/// to be told: in a large graph, each walk over the nodes costs. Threads that a pass starts get
/// that of the pass that began last.
class RunningPass {
 public:
  explicit RunningPass(PassResource* resource) : resource_(resource), outer_(mine()) {
    mine() = resource;
    last().store(resource);
  }
  RunningPass(const RunningPass&) = delete;
  RunningPass& operator=(const RunningPass&) = delete;
  ~RunningPass() {
    mine() = outer_;
    last().replace(resource_, outer_);
  }
  /// Returns null while no pass runs.
  static PassResource* resource() { return mine() != nullptr ? mine() : last().load(); }

 private:
  static PassResource*& mine() {
    static thread_local PassResource* resource = nullptr;
    return resource;
  }
  static AtomicPointer<PassResource>& last() {
    static AtomicPointer<PassResource> resource(nullptr);
    return resource;
  }

  PassResource* resource_;
  PassResource* outer_;
};

}  // namespace detail

/// One end of an edge. In Node::inputs and Graph::outputs: the producer and the number of its
/// output. In Node::outputs: the consumer and the number of its input.
struct NodeEntry {
  NodeEntry() : node(nullptr), entry(0), version(0) {}
  NodeEntry(Node* other, int index, int mutations = 0)
      : node(other), entry(index), version(mutations) {}
  bool operator==(const NodeEntry& other) const {
    return node == other.node && entry == other.entry && version == other.version;
  }

  Node* node;
  int entry;
  /// The number of in-place writes to the value before this use: usually 0, 1 for the running mean
  /// of a BatchNorm. In Node::outputs always 0.
  int version;
};

/// The text of an attribute, as operator[] and at() of NodeAttributes return it: a std::string to
/// which no number can be assigned, since a std::string would take it for a character.
class AttributeText : public std::string {
  template <typename Value>
  struct IsNumber {
    typedef typename std::decay<Value>::type Plain;
    static constexpr bool value =
        (std::is_arithmetic<Plain>::value || std::is_enum<Plain>::value) &&
        !std::is_same<Plain, char>::value;
  };

 public:
  AttributeText() = default;
  AttributeText(const AttributeText&) = default;
  AttributeText(AttributeText&&) = default;
  AttributeText(const char* text) : std::string(text) {}             // NOLINT: implicit
  AttributeText(std::string text) : std::string(std::move(text)) {}  // NOLINT: implicit
  AttributeText& operator=(const AttributeText&) = default;
  AttributeText& operator=(AttributeText&&) = default;
  template <typename Value, typename = typename std::enable_if<!IsNumber<Value>::value>::type>
  AttributeText& operator=(Value&& value) {
    std::string::operator=(std::forward<Value>(value));
    return *this;
  }
  /// Write std::to_string(value).
  template <typename Value, typename std::enable_if<IsNumber<Value>::value, int>::type = 0>
  AttributeText& operator=(Value value) = delete;
  template <typename Value, typename = typename std::enable_if<!IsNumber<Value>::value>::type>
  AttributeText& operator+=(Value&& value) {
    std::string::operator+=(std::forward<Value>(value));
    return *this;
  }
  template <typename Value, typename std::enable_if<IsNumber<Value>::value, int>::type = 0>
  AttributeText& operator+=(Value value) = delete;
};

/// The attributes of a node: a std::unordered_map that is made when somebody first uses it as one.
/// Until then the texts lie in one block of memory, sorted by key, which is read, copied, compared
/// and written as a whole.
///
/// Converts to and from such a map. What is not declared here is called on the map:
/// `std::unordered_map<std::string, std::string>& map = node->attrs`. As with a map, several
/// threads may read at the same time.
///
/// __ext_shape__ and __ext_dtype__, the types of a node's outputs, may be inferred when somebody
/// first reads them: the map then has both keys, with texts from the moment when one is asked for,
/// or the attributes are gone over.
class NodeAttributes {
 public:
  typedef std::unordered_map<std::string, std::string> Map;
  typedef Map::key_type key_type;
  typedef Map::mapped_type mapped_type;
  typedef Map::value_type value_type;
  typedef Map::size_type size_type;
  typedef Map::difference_type difference_type;
  typedef Map::reference reference;
  typedef Map::const_reference const_reference;
  typedef Map::iterator iterator;
  typedef Map::const_iterator const_iterator;

  NodeAttributes() noexcept : map_(nullptr) {}
  PASSLIB_ON_DEMAND NodeAttributes(const Map& map) : map_(new Map(map)) {}
  PASSLIB_ON_DEMAND NodeAttributes(Map&& map) : map_(new Map(std::move(map))) {}
  PASSLIB_ON_DEMAND NodeAttributes(std::initializer_list<value_type> items)
      : map_(new Map(items)) {}
  NodeAttributes(const NodeAttributes& other) : map_(nullptr) { copy(other); }
  NodeAttributes(NodeAttributes&& other) noexcept : map_(nullptr) { swap(other); }
  ~NodeAttributes() {
    delete known();
    dropBlock();
  }

  NodeAttributes& operator=(const NodeAttributes& other) {
    if (this != &other) NodeAttributes(other).swap(*this);
    return *this;
  }
  NodeAttributes& operator=(NodeAttributes&& other) noexcept {
    NodeAttributes(std::move(other)).swap(*this);
    return *this;
  }
  PASSLIB_ON_DEMAND NodeAttributes& operator=(const Map& map) {
    return *this = NodeAttributes(map);
  }
  PASSLIB_ON_DEMAND NodeAttributes& operator=(Map&& map) {
    return *this = NodeAttributes(std::move(map));
  }
  PASSLIB_ON_DEMAND NodeAttributes& operator=(std::initializer_list<value_type> items) {
    return *this = NodeAttributes(items);
  }
  operator Map&() { return whole(); }
  operator const Map&() const { return whole(); }

  bool empty() const { return size() == 0; }
  size_type size() const {
    if (known() != nullptr) return known()->size();
    return (shared_ == nullptr ? 0 : shared_[0]) + (types_.node == 0 ? 0 : 2);
  }
  PASSLIB_ON_DEMAND size_type max_size() const { return read().max_size(); }
  PASSLIB_ON_DEMAND iterator begin() { return whole().begin(); }
  PASSLIB_ON_DEMAND const_iterator begin() const { return cbegin(); }
  PASSLIB_ON_DEMAND const_iterator cbegin() const { return whole().cbegin(); }
  PASSLIB_ON_DEMAND iterator end() { return read().end(); }
  PASSLIB_ON_DEMAND const_iterator end() const { return cend(); }
  PASSLIB_ON_DEMAND const_iterator cend() const { return read().cend(); }

  PASSLIB_ON_DEMAND AttributeText& operator[](const std::string& key) {
    return static_cast<AttributeText&>(write(key)[key]);
  }
  PASSLIB_ON_DEMAND AttributeText& operator[](std::string&& key) {
    return static_cast<AttributeText&>(write(key)[std::move(key)]);
  }
  PASSLIB_ON_DEMAND AttributeText& at(const std::string& key) {
    return static_cast<AttributeText&>(read(key).at(key));
  }
  PASSLIB_ON_DEMAND const std::string& at(const std::string& key) const {
    return read(key).at(key);
  }
  PASSLIB_ON_DEMAND iterator find(const std::string& key) { return read(key).find(key); }
  PASSLIB_ON_DEMAND const_iterator find(const std::string& key) const {
    return static_cast<const Map&>(read(key)).find(key);
  }
  size_type count(const std::string& key) const {
    JsonReader::Slice text;
    return _find(key.c_str(), key.size(), &text) ? 1 : 0;
  }
  PASSLIB_ON_DEMAND std::pair<iterator, iterator> equal_range(const std::string& key) {
    return read(key).equal_range(key);
  }
  PASSLIB_ON_DEMAND std::pair<const_iterator, const_iterator> equal_range(
      const std::string& key) const {
    return static_cast<const Map&>(read(key)).equal_range(key);
  }

  void clear() noexcept {
    delete known();
    map_.storeAlone(nullptr);
    dropBlock();
    types_ = detail::TypesPlace();
  }
  void swap(NodeAttributes& other) noexcept;
  PASSLIB_ON_DEMAND void swap(Map& other) {
    whole();
    write().swap(other);
    types_ = detail::TypesPlace();
  }
  PASSLIB_ON_DEMAND void reserve(size_type count) { write().reserve(count); }
  PASSLIB_ON_DEMAND size_type erase(const std::string& key) { return write(key).erase(key); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator place) { return write().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(iterator place) { return write().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator first, const_iterator last) {
    return write().erase(first, last);
  }
  PASSLIB_ON_DEMAND std::pair<iterator, bool> insert(const value_type& item) {
    return write().insert(item);
  }
  template <typename Pair, typename = typename std::enable_if<
                               std::is_constructible<value_type, Pair&&>::value>::type>
  std::pair<iterator, bool> insert(Pair&& item) {
    return write().emplace(std::forward<Pair>(item));
  }
  PASSLIB_ON_DEMAND iterator insert(const_iterator hint, const value_type& item) {
    return write().insert(hint, item);
  }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    write().insert(first, last);
  }
  PASSLIB_ON_DEMAND void insert(std::initializer_list<value_type> items) { write().insert(items); }
  template <typename... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    return write().emplace(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  iterator emplace_hint(const_iterator hint, Arguments&&... arguments) {
    return write().emplace_hint(hint, std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const NodeAttributes& left, const NodeAttributes& right) {
    return left.equals(right);
  }
  friend bool operator!=(const NodeAttributes& left, const NodeAttributes& right) {
    return !left.equals(right);
  }
  PASSLIB_ON_DEMAND friend bool operator==(const NodeAttributes& left, const Map& right) {
    return left.whole() == right;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const NodeAttributes& left, const Map& right) {
    return left.whole() != right;
  }
  PASSLIB_ON_DEMAND friend bool operator==(const Map& left, const NodeAttributes& right) {
    return right == left;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const Map& left, const NodeAttributes& right) {
    return right != left;
  }
  friend void swap(NodeAttributes& left, NodeAttributes& right) noexcept { left.swap(right); }

  /// Gets the text of an attribute without making the map. Returns false if there is none.
  bool _find(const char* key, std::size_t size, JsonReader::Slice* text) const;
  bool _has(const char* key) const {
    JsonReader::Slice text;
    return _find(key, strlen(key), &text);
  }
  /// Copies the text of an attribute.
  bool _get(const char* key, std::string* copy) const {
    JsonReader::Slice text;
    if (!_find(key, strlen(key), &text)) return false;
    copy->assign(text.data, text.size);
    return true;
  }
  /// Goes over the attributes, sorted by key unless the map has been made. After _readTypes().
  class Walk {
   public:
    explicit Walk(const NodeAttributes& attributes)
        : map_(attributes.known()), block_(attributes.shared_), cursor_(nullptr), pos_(0) {
      if (map_ != nullptr) place_ = map_->begin();
      if (map_ == nullptr && block_ != nullptr) cursor_ = attributes.texts();
    }
    bool next(JsonReader::Slice* key, JsonReader::Slice* text);

   private:
    const Map* map_;
    Map::const_iterator place_;
    const uint32_t* block_;
    const char* cursor_;
    std::size_t pos_;
  };
  /// Calls visit(key, text) with a slice each, in that order.
  template <typename Visit>
  void _visit(Visit visit) const {
    _readTypes();
    JsonReader::Slice key;
    JsonReader::Slice text;
    for (Walk walk(*this); walk.next(&key, &text);) visit(key, text);
  }
  /// Replaces all attributes by these, which it sorts if they are few. Returns null, or a key that
  /// occurs twice; some of the attributes are missing then.
  template <typename Text>  // std::string or JsonReader::Slice
  const Text* _pack(std::pair<Text, Text>* items, std::size_t count);
  /// Returns the attributes as they lie in memory, see shared_, and the number of words; null if
  /// there are none, or if a map has been made, which has what counts.
  const uint32_t* _packed(std::size_t* count) const {
    const bool packed = known() == nullptr && shared_ != nullptr;
    *count = packed ? words() : 0;
    return packed ? shared_ : nullptr;
  }
  /// Replaces all attributes by a copy of such words, which are well-formed.
  void _setPacked(const uint32_t* packed, std::size_t count) {
    clear();
    shared_ = newBlock(count);
    memcpy(shared_, packed, count * sizeof(uint32_t));
  }
  /// Whether these are still the words that were lent, or a map has just what they have: most
  /// passes make one and only read it.
  bool _isStill(const uint32_t* packed) const;
  /// A hint to the processor: _packed will be called.
  void _prefetch() const { __builtin_prefetch(shared_); }
  /// Replaces all attributes by such words of the host, which outlive this object.
  void _lendPacked(const uint32_t* packed) {
    clear();
    shared_ = const_cast<uint32_t*>(packed);  // nobody writes to a block
    lent_ = true;
  }
  /// Whether the words that _packed returns are the host's.
  bool _isLent() const { return lent_; }
  /// Adds the types, which are inferred when somebody reads them and leave with the call.
  void _offerTypes(uint32_t node, uint16_t call) {
    types_.node = node;
    types_.call = call;
  }
  bool _hasTypes() const { return types_.node != 0; }
  /// Before all attributes are read.
  void _readTypes() const {
    if (types_.node != 0) whole();
  }

 private:
  Map* known() const { return map_.load(); }
  const char* texts() const { return reinterpret_cast<const char*>(&shared_[2 + 2 * shared_[0]]); }
  std::size_t words() const {
    return 2 + 2 * static_cast<std::size_t>(shared_[0]) +
           (static_cast<std::size_t>(shared_[1]) + 3) / 4;
  }
  bool equals(const NodeAttributes& other) const;
  void copy(const NodeAttributes& other);
  Map& read() const;
  /// The map with all texts.
  Map& whole() const;
  /// The map for a use of one attribute.
  Map& read(const std::string& key) const {
    return types_.node != 0 && detail::isOfTypes(key.data(), key.size()) ? whole() : read();
  }
  Map& write() {
    Map& map = read();
    dropBlock();
    return map;
  }
  Map& write(const std::string& key) {
    read(key);
    return write();
  }
  void dropBlock() noexcept {
    uint32_t* const words = shared_;
    const bool lent = lent_;
    shared_ = nullptr;
    lent_ = false;
    if (words == nullptr || lent) return;
    if (__atomic_sub_fetch(words - 1, 1, __ATOMIC_ACQ_REL) == 0) delete[] (words - 1);
  }
  /// Returns memory for a block of one owner.
  static uint32_t* newBlock(std::size_t words) {
    uint32_t* const owners = new uint32_t[words + 1];
    *owners = 1;
    return owners + 1;
  }

  // The map, once there is one, has what counts: it may have been changed through an iterator. The
  // block goes with the first call that cannot be a concurrent reader's.
  mutable detail::AtomicPointer<Map> map_;
  // Of n attributes, at most 64 and sorted by key: n, the size of all texts, n sizes of key and
  // value, and the texts in turn; zeros fill the last word. It never changes. Nodes share it, the
  // number of them stands before it, unless it is lent.
  uint32_t* shared_ = nullptr;
  detail::TypesPlace types_;
  mutable bool has_types_ = false;  // whether the map has their texts
  bool lent_ = false;
};

/// Members of a JSON object as text, in the order in which they were added: keys, and values as
/// JSON on one line, with ", " and ": " as separators. They lie in one piece of memory, which is
/// copied and compared as a whole.
class JsonMembers {
 public:
  typedef JsonReader::Slice Slice;

  PASSLIB_INLINE JsonMembers() noexcept : texts_(nullptr) {}
  JsonMembers(const JsonMembers& other);
  JsonMembers(JsonMembers&& other) noexcept : texts_(nullptr) { swap(other); }
  PASSLIB_INLINE ~JsonMembers() {
    if (texts_ != nullptr) clear();
  }
  JsonMembers& operator=(JsonMembers other) noexcept {
    swap(other);
    return *this;
  }

  PASSLIB_INLINE bool empty() const { return texts_ == nullptr; }
  /// Linear in their number.
  std::size_t size() const;
  void clear() noexcept;
  PASSLIB_INLINE void swap(JsonMembers& other) noexcept {
    Texts* const texts = texts_;
    texts_ = other.texts_;
    other.texts_ = texts;
  }
  friend bool operator==(const JsonMembers& left, const JsonMembers& right) {
    return left.equals(right);
  }
  friend bool operator!=(const JsonMembers& left, const JsonMembers& right) {
    return !left.equals(right);
  }

  /// Adds a member. Its key must be new, its value be JSON as above.
  void add(const Slice& key, const Slice& text) {
    memcpy(add(key, text.size), text.data, text.size);
  }
  /// The same. Returns the place for the value, which the caller sets.
  char* add(const Slice& key, std::size_t size);
  /// Gets the value of a key. Returns false if there is none. Linear in the number of members.
  bool find(const Slice& key, Slice* text) const;
  /// Goes over the members.
  class Walk {
   public:
    PASSLIB_INLINE explicit Walk(const JsonMembers& members)
        : cursor_(members.empty() ? nullptr : members.texts_->begin()),
          end_(members.empty() ? nullptr : members.texts_->end()) {}
    bool next(Slice* key, Slice* text);

   private:
    const char* cursor_;
    const char* end_;
  };

 private:
  typedef detail::PlainList<char> Texts;

  bool equals(const JsonMembers& other) const;

  Texts* texts_;  // of each member in turn: the sizes of key and value, and both; null if none
};

namespace detail {

/// The attributes of a graph as a map, and what that needs: set where the map is made, so that
/// nothing else compiles any of it.
struct GraphValues {
  typedef GraphValues* (*Copy)(const GraphValues& values);
  /// Adds all attributes, sorted by key.
  typedef void (*Print)(const GraphValues& values, JsonMembers* members);
  /// See GraphAttributes::_getString.
  typedef bool (*GetString)(const GraphValues& values, const char* key, std::string* text);
  typedef void (*Destroy)(GraphValues* values);

  Copy copy;
  Print print;
  GetString get_string;
  Destroy destroy;
};

template <typename Unused>
struct GraphMap;

}  // namespace detail

/// The attributes of a graph: a std::map that is made when somebody first uses it as one. Until
/// then they are text.
///
/// Converts to and from such a map. What is not declared here is called on the map:
/// `std::map<std::string, JsonVal>& map = graph->attrs`. As with a map, several threads may read at
/// the same time.
class GraphAttributes {
 public:
  typedef std::map<std::string, JsonVal> Map;
  typedef Map::key_type key_type;
  typedef Map::mapped_type mapped_type;
  typedef Map::value_type value_type;
  typedef Map::size_type size_type;
  typedef Map::difference_type difference_type;
  typedef Map::reference reference;
  typedef Map::const_reference const_reference;
  typedef Map::iterator iterator;
  typedef Map::const_iterator const_iterator;

  PASSLIB_INLINE GraphAttributes() noexcept : values_(nullptr) {}
  PASSLIB_ON_DEMAND GraphAttributes(const Map& map) : values_(Made<Unused>::make(Map(map))) {}
  PASSLIB_ON_DEMAND GraphAttributes(Map&& map) : values_(Made<Unused>::make(std::move(map))) {}
  PASSLIB_ON_DEMAND GraphAttributes(std::initializer_list<value_type> items)
      : values_(Made<Unused>::make(Map(items))) {}
  GraphAttributes(const GraphAttributes& other);
  GraphAttributes(GraphAttributes&& other) noexcept : values_(nullptr) { swap(other); }
  PASSLIB_INLINE ~GraphAttributes() {
    if (values_.load() != nullptr) drop(values_.load());
  }

  GraphAttributes& operator=(const GraphAttributes& other) {
    if (this != &other) GraphAttributes(other).swap(*this);
    return *this;
  }
  GraphAttributes& operator=(GraphAttributes&& other) noexcept {
    GraphAttributes(std::move(other)).swap(*this);
    return *this;
  }
  PASSLIB_ON_DEMAND GraphAttributes& operator=(const Map& map) {
    return *this = GraphAttributes(map);
  }
  PASSLIB_ON_DEMAND GraphAttributes& operator=(Map&& map) {
    return *this = GraphAttributes(std::move(map));
  }
  PASSLIB_ON_DEMAND GraphAttributes& operator=(std::initializer_list<value_type> items) {
    return *this = GraphAttributes(items);
  }
  PASSLIB_ON_DEMAND operator Map&() { return read<Unused>(); }
  PASSLIB_ON_DEMAND operator const Map&() const { return read<Unused>(); }

  PASSLIB_ON_DEMAND bool empty() const { return size<Unused>() == 0; }
  PASSLIB_ON_DEMAND size_type size() const {
    return values_.load() == nullptr ? texts_.size() : read<Unused>().size();
  }
  PASSLIB_ON_DEMAND size_type max_size() const { return read<Unused>().max_size(); }
  PASSLIB_ON_DEMAND iterator begin() { return read<Unused>().begin(); }
  PASSLIB_ON_DEMAND const_iterator begin() const { return read<Unused>().cbegin(); }
  PASSLIB_ON_DEMAND const_iterator cbegin() const { return read<Unused>().cbegin(); }
  PASSLIB_ON_DEMAND iterator end() { return read<Unused>().end(); }
  PASSLIB_ON_DEMAND const_iterator end() const { return read<Unused>().cend(); }
  PASSLIB_ON_DEMAND const_iterator cend() const { return read<Unused>().cend(); }

  PASSLIB_ON_DEMAND JsonVal& operator[](const std::string& key) { return read<Unused>()[key]; }
  PASSLIB_ON_DEMAND JsonVal& operator[](std::string&& key) {
    return read<Unused>()[std::move(key)];
  }
  PASSLIB_ON_DEMAND JsonVal& at(const std::string& key) { return read<Unused>().at(key); }
  PASSLIB_ON_DEMAND const JsonVal& at(const std::string& key) const {
    return read<Unused>().at(key);
  }
  PASSLIB_ON_DEMAND iterator find(const std::string& key) { return read<Unused>().find(key); }
  PASSLIB_ON_DEMAND const_iterator find(const std::string& key) const {
    return constant<Unused>().find(key);
  }
  PASSLIB_ON_DEMAND size_type count(const std::string& key) const {
    JsonReader::Slice text;
    if (values_.load() != nullptr) return read<Unused>().count(key);
    return texts_.find(JsonReader::Slice{key.data(), key.size()}, &text) ? 1 : 0;
  }
  PASSLIB_ON_DEMAND iterator lower_bound(const std::string& key) {
    return read<Unused>().lower_bound(key);
  }
  PASSLIB_ON_DEMAND const_iterator lower_bound(const std::string& key) const {
    return constant<Unused>().lower_bound(key);
  }
  PASSLIB_ON_DEMAND iterator upper_bound(const std::string& key) {
    return read<Unused>().upper_bound(key);
  }
  PASSLIB_ON_DEMAND const_iterator upper_bound(const std::string& key) const {
    return constant<Unused>().upper_bound(key);
  }
  PASSLIB_ON_DEMAND std::pair<iterator, iterator> equal_range(const std::string& key) {
    return read<Unused>().equal_range(key);
  }
  PASSLIB_ON_DEMAND std::pair<const_iterator, const_iterator> equal_range(
      const std::string& key) const {
    return constant<Unused>().equal_range(key);
  }

  void clear() noexcept { GraphAttributes().swap(*this); }
  void swap(GraphAttributes& other) noexcept {
    texts_.swap(other.texts_);
    other.values_.store(values_.exchange(other.values_.load()));
  }
  PASSLIB_ON_DEMAND void swap(Map& other) { read<Unused>().swap(other); }
  PASSLIB_ON_DEMAND size_type erase(const std::string& key) { return read<Unused>().erase(key); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator place) { return read<Unused>().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(iterator place) { return read<Unused>().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator first, const_iterator last) {
    return read<Unused>().erase(first, last);
  }
  PASSLIB_ON_DEMAND std::pair<iterator, bool> insert(const value_type& item) {
    return read<Unused>().insert(item);
  }
  template <typename Pair, typename = typename std::enable_if<
                               std::is_constructible<value_type, Pair&&>::value>::type>
  std::pair<iterator, bool> insert(Pair&& item) {
    return read<void>().emplace(std::forward<Pair>(item));
  }
  PASSLIB_ON_DEMAND iterator insert(const_iterator hint, const value_type& item) {
    return read<Unused>().insert(hint, item);
  }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    read<void>().insert(first, last);
  }
  PASSLIB_ON_DEMAND void insert(std::initializer_list<value_type> items) {
    read<Unused>().insert(items);
  }
  template <typename... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    return read<void>().emplace(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  iterator emplace_hint(const_iterator hint, Arguments&&... arguments) {
    return read<void>().emplace_hint(hint, std::forward<Arguments>(arguments)...);
  }

  PASSLIB_ON_DEMAND friend bool operator==(const GraphAttributes& left,
                                           const GraphAttributes& right) {
    const bool texts = left.values_.load() == nullptr && right.values_.load() == nullptr;
    return texts ? left.texts_ == right.texts_ : left.read<Unused>() == right.read<Unused>();
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const GraphAttributes& left,
                                           const GraphAttributes& right) {
    return !(left == right);
  }
  PASSLIB_ON_DEMAND friend bool operator==(const GraphAttributes& left, const Map& right) {
    return left.read<Unused>() == right;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const GraphAttributes& left, const Map& right) {
    return !(left == right);
  }
  PASSLIB_ON_DEMAND friend bool operator==(const Map& left, const GraphAttributes& right) {
    return right == left;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const Map& left, const GraphAttributes& right) {
    return !(right == left);
  }
  friend void swap(GraphAttributes& left, GraphAttributes& right) noexcept { left.swap(right); }

  /// Returns the attributes as text, sorted by key; `room` has it if a map was made, which counts.
  const JsonMembers& _texts(JsonMembers* room) const;
  /// Replaces all attributes by these, which are sorted by key.
  void _setTexts(JsonMembers* members) noexcept {
    clear();
    texts_.swap(*members);
  }
  /// Copies the value of an attribute without making the map. Returns false if there is none, or
  /// one that is no string.
  bool _getString(const char* key, std::string* text) const;

 private:
  template <typename Unused>
  using Made = detail::GraphMap<Unused>;

  template <typename Unused>
  Map& read() const;
  template <typename Unused>
  const Map& constant() const {
    return read<Unused>();
  }
  static void drop(detail::GraphValues* values) noexcept;

  JsonMembers texts_;  // as they were read
  // The map, once there is one, has what counts.
  mutable detail::AtomicPointer<detail::GraphValues> values_;
};

/// An operator, or a variable ("null"): an input or a parameter of the model.
class Node {
 public:
  Node() : tensor(nullptr), num_outputs(0), declared_op_(0) {}
  /// Nodes that a host described lie in one piece of memory, which is released as a whole: a word
  /// before each node tells.
  static void* operator new(std::size_t size) { return mark(::operator new(size + kMark), false); }
  static void* operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept {
    void* const memory = ::operator new(size + kMark, nothrow);
    return memory == nullptr ? nullptr : mark(memory, false);
  }
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* node) noexcept {
    if (node == nullptr) return;
    void* const memory = static_cast<char*>(node) - kMark;
    if (*static_cast<uint64_t*>(memory) == 0) ::operator delete(memory);
  }

  /// Allocates a tensor for this variable and makes it a parameter of the model: a weight
  /// (alloc_arg) or an auxiliary state (alloc_aux). After the pass the caller's args or aux have it
  /// under this node's name. The host owns the memory, which is zero in passlib and uninitialised
  /// in MXNet. Each call returns another MXTensor, which lives until the pass returns, so that a
  /// weight can be computed from the former one; the last of a name is the parameter. Its shape,
  /// dtype and data pointer, like those of all tensors that the host lends, must stay as they are:
  /// else the pass fails. Throws std::runtime_error if no pass is running, or if the caller gave no
  /// dictionary for new parameters.
  PASSLIB_ON_DEMAND MXTensor* alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx,
                                        MXDType dtype);
  PASSLIB_ON_DEMAND MXTensor* alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx,
                                        MXDType dtype);
  /// Returns `tensor` with its elements, which a pass that takes weights on demand asks for here
  /// and only reads; null if there is none. They stay valid until the pass returns, which fails in
  /// passlib if it wrote to them. Throws std::runtime_error if the host has no memory for them.
  PASSLIB_ON_DEMAND const MXTensor* readTensor();
  /// Makes this variable a weight whose elements are those of `source`, each of as many equal runs
  /// of them as there are factors multiplied by one, in double precision. The host may compute
  /// them when somebody needs them, so that weights need not fit in memory; the tensor here has no
  /// elements. Returns false, and changes nothing, where the host cannot do that: `source` is not
  /// on demand, or not of float32 or float64. Then alloc_arg is the way.
  PASSLIB_ON_DEMAND bool _scaleArg(const MXTensor& source, const std::vector<double>& factors);

  std::string op;
  std::string name;
  MXTensor* tensor;  ///< data of a parameter while a pass runs, or null
  std::vector<NodeEntry> inputs;
  std::vector<NodeEntry> outputs;
  std::vector<Graph*> subgraphs;  ///< owned by the node's graph
  NodeAttributes attrs;
  std::vector<Node*> control_deps;  ///< nodes that must run before this one
  /// Number of outputs, hidden ones included; 0 if unknown. After a change of `op` only a lower
  /// bound.
  int num_outputs;

  /// Sets num_outputs for the present operator.
  void _declareOutputs(int count) {
    num_outputs = count;
    declared_op_ = hashOf(op);
  }
  /// Whether the operator may have an output of this number. False only if it is known not to.
  bool _hasOutput(int index) const {
    return index >= 0 && (index < num_outputs || num_outputs <= 0 || declared_op_ != hashOf(op));
  }

  /// What the host lends for the running pass, or null.
  PassResource* _passResource() const { return detail::RunningPass::resource(); }

 private:
  friend class Graph;
  static uint32_t hashOf(const std::string& op) {
    return static_cast<uint32_t>(std::hash<std::string>()(op)) & ~kDoomed;
  }
  // Being deleted: faulty passes may list a node twice. A bit of declared_op_, since walks over
  // large graphs wait for the memory of nodes.
  static constexpr uint32_t kDoomed = 0x80000000;
  friend class detail::NodeMemory;
  static constexpr std::size_t kMark = sizeof(uint64_t);
  static void* mark(void* memory, bool lent) {
    ::new (memory) uint64_t(lent ? 1 : 0);
    return static_cast<char*>(memory) + kMark;
  }
  uint32_t declared_op_;

 public:
  /// Members of the node's JSON object without a counterpart in this class.
  JsonMembers extra;
};

namespace detail {

/// The parameters of a call. Hosts list them in the order of the graph's variables, so most are
/// found by one comparison of names.
class ParamTable {
 public:
  /// The parameters are added by the caller, as many as announced.
  explicit ParamTable(std::size_t count) : tensors_(nullptr) {
    names_.reserve(count);
    lent_.reserve(count);
    tensors_ = new MXTensor[count];
  }
  ParamTable(const ParamTable&) = delete;
  ParamTable& operator=(const ParamTable&) = delete;
  ~ParamTable() { delete[] tensors_; }
  /// `shape` must live as long as the table.
  void add(const char* name, void* data, MXDType type, const int64_t* shape, int dims,
           size_t number, MXContext context) {
    MXTensor* const tensor = &tensors_[names_.size()];
    names_.push(Named{name, tensor});
    lent_.push(Lent{name, data, type, shape, static_cast<std::size_t>(dims), number, nullptr});
    tensor->setTensor(data, type, shape, dims, number, std::move(context));
  }
  bool empty() const { return names_.empty(); }
  /// Sets `tensor` of the variables that are parameters.
  void assign(const std::vector<Node*>& variables);

  /// What the host lent as a tensor.
  struct Lent {
    const char* name;
    void* data;  ///< null on demand, until the pass asks for it
    MXDType type;
    const int64_t* shape;
    std::size_t dims;
    size_t number;
    const Node* node;  ///< the variable that got the tensor, or null
  };
  /// Returns what one of the table's tensors was lent as; null for another tensor.
  Lent* find(const MXTensor* tensor) const {
    const std::less<const MXTensor*> less;
    if (less(tensor, tensors_) || !less(tensor, tensors_ + lent_.size())) return nullptr;
    return &lent_[static_cast<std::size_t>(tensor - tensors_)];
  }
  /// Throws std::runtime_error if a tensor was changed in what the host does not see.
  void requireAsLent() const;

 private:
  struct Named {
    const char* name;
    MXTensor* tensor;
  };
  void lend(MXTensor* tensor, Node* node) {
    node->tensor = tensor;
    lent_[static_cast<std::size_t>(tensor - tensors_)].node = node;
  }
  static int compare(const void* left, const void* right) {
    return strcmp(static_cast<const Named*>(left)->name, static_cast<const Named*>(right)->name);
  }

  PlainList<Named> names_;
  PlainList<Lent> lent_;  // in the order of the tensors
  MXTensor* tensors_;
};

}  // namespace detail

/// A model: nodes, and those of their outputs that are the model's.
///
/// The graph owns its nodes. An edge is stored on both sides: in `inputs` of the consumer and in
/// `outputs` of the producer. connect, replace and removeNode maintain both; code that writes to
/// the vectors directly must do the same.
class Graph {
 public:
  Graph() {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Reads a graph in NNVM's JSON. The caller owns it. Throws JsonError: invalid JSON, a missing
  /// key, a wrong type, an edge out of range, a cycle, two variables of one name.
  PASSLIB_ON_DEMAND static Graph* fromString(const std::string& json);
  static Graph* fromString(const char* text, std::size_t size, const JsonOptions& options);
  PASSLIB_ON_DEMAND static Graph* fromJson(const JsonVal& val);

  /// Returns NNVM's JSON on one line. Nodes keep their order if each comes after its inputs. Throws
  /// GraphStructureError for a cycle and for edges to nodes outside the graph.
  std::string toString() const;
  PASSLIB_ON_DEMAND JsonVal toJson() const;
  /// Appends the JSON to `out`, in the layout of MXNet's Symbol.tojson.
  PASSLIB_ON_DEMAND void writePretty(std::string* out) const;

  /// Adds a node without edges.
  PASSLIB_ON_DEMAND Node* addNode(const std::string& name, const std::string& op);
  /// Connects output `producer_output` of `producer` to input `consumer_input` of `consumer`, whose
  /// former edge it replaces. A number equal to the count of inputs appends one. Throws
  /// std::out_of_range beyond that, and std::invalid_argument for a null node.
  PASSLIB_ON_DEMAND void connect(Node* producer, int producer_output, Node* consumer,
                                 int consumer_input);
  /// Replaces `from` by `target` in inputs of nodes and outputs of the graph. Uses by the node of
  /// `target` itself stay, so a new node is inserted after an old one by connecting it first.
  /// Returns the number of replaced uses. Throws std::invalid_argument for a null node.
  PASSLIB_ON_DEMAND std::size_t replace(const NodeEntry& from, const NodeEntry& target);
  /// Removes a node with all its edges: consumers lose that input, the graph loses those outputs.
  /// Call replace first to substitute another value. The node's memory lives as long as the graph.
  /// Throws std::invalid_argument for a node that is not in the graph. Linear in the size of the
  /// graph, as is removeNodes for any number of nodes.
  PASSLIB_ON_DEMAND void removeNode(Node* node) { removeNodes(std::vector<Node*>(1, node)); }
  PASSLIB_ON_DEMAND void removeNodes(const std::vector<Node*>& unwanted);

  /// Returns all nodes, each after the nodes it takes input from: in their own order if it is like
  /// that. Throws GraphStructureError as sortNodes does.
  PASSLIB_ON_DEMAND std::vector<Node*> sorted() const;
  /// Returns all nodes, each before the nodes it takes input from, as MXNet does.
  PASSLIB_ON_DEMAND std::vector<Node*> topological_sort() const;
  /// Calls handler on each node after all consumers of its outputs.
  PASSLIB_ON_DEMAND void DFS(std::function<void(Node*)> handler) const;
  PASSLIB_ON_DEMAND void _dfs_util(Node* node, std::unordered_set<Node*>* to_visit,
                                   std::function<void(Node*)> handler) const;
  /// Prints the graph to std::cout.
  PASSLIB_ON_DEMAND void print(int indent = 0) const;

  Node* getNode(size_t idx) { return nodes.at(idx); }
  const Node* getNode(size_t idx) const { return nodes.at(idx); }
  /// Throws std::out_of_range with the key if there is no such attribute.
  PASSLIB_ON_DEMAND const JsonVal& getAttr(const std::string& key) const;
  size_t size() const { return nodes.size(); }

  /// Sets `tensor` of the variables whose names are in args or aux.
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux);
  /// Clears the tensors of all nodes, whose lifetime ends with the call of a pass.
  void _endPass();
  PassResource* _passResource() const { return detail::RunningPass::resource(); }

  std::vector<Node*> nodes;
  std::vector<Node*> inputs;       ///< the variables
  std::vector<NodeEntry> outputs;  ///< the model's outputs ("heads")
  /// Top-level keys of the JSON other than nodes, arg_nodes, node_row_ptr and heads.
  GraphAttributes attrs;

 private:
  friend class detail::PatternSession;
  std::vector<Node*> removed_;
};

namespace detail {

/// Addresses in the order in which they were added, each once. Never dereferences them.
class AddressTable {
 public:
  explicit AddressTable(std::size_t count = 0) { reserve(count); }
  /// Returns the position, or -1.
  int64_t find(const void* address) const {
    const Slot wanted = slotFor(address);
    for (std::size_t pos = home(address);; pos = (pos + 1) & mask_) {
      const Slot& slot = slots_[pos];
      if (slot.next == 0) return -1;
      if (slot.tag == wanted.tag && addresses_[slot.next - 1] == address) return slot.next - 1;
    }
  }
  /// Adds an address at the next position. Returns false if it is there already.
  bool add(const void* address);
  /// Removes what was added last.
  void removeLast();
  /// A hint to the processor: the address will be added.
  void prefetch(const void* address) const { __builtin_prefetch(&slots_[home(address)], 1); }
  const void* operator[](std::size_t pos) const { return addresses_[pos]; }
  std::size_t size() const { return addresses_.size(); }

 private:
  struct Slot {
    uint32_t tag;   // bits of the address
    uint32_t next;  // the position plus one; 0: empty
  };
  static Slot slotFor(const void* address) {
    return Slot{static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) >> 4), 0};
  }
  // Graphs are read mostly in the order in which their nodes were allocated. Nodes of one page of
  // 4 KB share 16 slots, two lines of the cache, in the order of their addresses. Pages are spread
  // by the golden ratio, so that no two regions of memory meet in one run of slots.
  std::size_t home(const void* object) const {
    const uint64_t address = reinterpret_cast<uintptr_t>(object);
    const uint64_t page = ((address >> 12) * 0x9E3779B97F4A7C15ull) >> shift_;
    return static_cast<std::size_t>(page * 16 + ((address >> 8) & 15));
  }
  void reserve(std::size_t count);
  bool insert(std::size_t position);

  PlainList<const void*> addresses_;
  PlainList<Slot> slots_;
  std::size_t mask_;
  unsigned shift_;
};

/// Graphs, each once.
class GraphTable : public AddressTable {
 public:
  Graph* operator[](std::size_t pos) const {
    return static_cast<Graph*>(const_cast<void*>(AddressTable::operator[](pos)));
  }
};

}  // namespace detail

/// Positions of the nodes of a graph, by address. Built in linear time; never dereferences nodes,
/// so that any pointer can be looked up.
class NodeTable {
 public:
  /// Throws GraphStructureError if a node is null or listed twice.
  explicit NodeTable(const std::vector<Node*>& nodes) : NodeTable(nodes.data(), nodes.size()) {}
  NodeTable(Node* const* nodes, std::size_t count);
  /// Returns the position, or -1.
  int64_t find(const Node* node) const { return table_.find(node); }
  /// Adds a node that is not in the table at the next position, which it returns.
  std::size_t add(const Node* node);
  /// The number of nodes.
  std::size_t size() const { return table_.size(); }

 private:
  detail::AddressTable table_;
};

/// Returns the nodes in topological order, control dependencies included: the given order if it is
/// topological, otherwise depth first from `nodes` in turn. Throws GraphStructureError with the
/// nodes of a cycle, or the consumer of an edge to a node that is not in `table`.
PASSLIB_ON_DEMAND std::vector<Node*> sortNodes(const std::vector<Node*>& nodes,
                                               const NodeTable& table);

/// Returns entry `index` of an __ext_shape__ attribute: getShapeAt("[[2,4],[4]]", 0) is "[2,4]".
/// Unknown shapes are "None". Throws std::out_of_range.
PASSLIB_ON_DEMAND std::string getShapeAt(const std::string& shape, unsigned index);
/// Returns entry `index` of an __ext_dtype__ attribute: getDtypeAt("[0,6]", 1) is "6".
PASSLIB_ON_DEMAND std::string getDtypeAt(const std::string& dtype, unsigned index);

#define MX_STR_SUBGRAPH_SYM_JSON "subgraph_sym_json"
#define MX_STR_DTYPE "__ext_dtype__"
#define MX_STR_SHAPE "__ext_shape__"
#define MX_STR_EXTRA_INPUTS "__ext_extra_inputs__"
/// On nodes that patterns made: the names of the nodes that they stand for, as a JSON list.
#define MX_STR_ORIGIN "__origin__"

// ================================================================================================
// Helpers for passes: attributes as values, shapes, users, parameters
// ================================================================================================

/// An attribute is missing or has another type. what() names node, operator and attribute.
class AttributeError : public std::invalid_argument {
 public:
  explicit AttributeError(const std::string& message) : std::invalid_argument(message) {}
};

/// An attribute of a node as a value, in the spelling of any dialect: "1", "-0.5", "True", "true",
/// "(1, 1)", "[1, 1]"; a single number counts as a list of one. An attribute that is missing or
/// "None" has the value `preset`; without a preset it is an error. Throw AttributeError.
PASSLIB_ON_DEMAND int64_t intAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND int64_t intAttr(const Node* node, const char* key, int64_t preset);
PASSLIB_ON_DEMAND std::vector<int64_t> intsAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND std::vector<int64_t> intsAttr(const Node* node, const char* key,
                                                const std::vector<int64_t>& preset);
PASSLIB_ON_DEMAND double realAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND double realAttr(const Node* node, const char* key, double preset);
PASSLIB_ON_DEMAND bool boolAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND bool boolAttr(const Node* node, const char* key, bool preset);
/// The text as it is, "None" included.
PASSLIB_ON_DEMAND std::string textAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND std::string textAttr(const Node* node, const char* key,
                                       const std::string& preset);

/// The shape of a value. That of a scalar is known and has no extents.
struct ValueShape {
  ValueShape() : known(false) {}
  explicit ValueShape(std::vector<int64_t> sizes) : known(true), extents(std::move(sizes)) {}
  /// Whether rank and all extents are known.
  bool complete() const {
    bool all = known;
    for (std::size_t pos = 0; pos < extents.size(); ++pos) all = all && extents[pos] != -1;
    return all;
  }
  bool known;                    ///< whether the rank is known
  std::vector<int64_t> extents;  ///< -1: unknown. Empty if the rank is unknown, and for a scalar
};

/// Returns what is known of a value's shape: of a parameter that of its tensor, of others that
/// which the host inferred before the pass (see MX_STR_SHAPE), of variables otherwise that which
/// the model states.
PASSLIB_ON_DEMAND ValueShape shapeOf(const NodeEntry& value);
/// Returns the element type of a value in the same way; kUNSET if it is unknown.
PASSLIB_ON_DEMAND MXDType typeOf(const NodeEntry& value);

/// Whether a value, or any value of a node, is an output of the graph. Linear in its outputs.
PASSLIB_ON_DEMAND bool isOutput(const Graph* graph, const NodeEntry& value);
PASSLIB_ON_DEMAND bool isOutput(const Graph* graph, const Node* node);
/// Returns the inputs that take a value: consumer and number of its input.
PASSLIB_ON_DEMAND std::vector<NodeEntry> users(const NodeEntry& value);
/// Returns the node that takes a value, if a single input of a node does and it is no output of the
/// graph; otherwise null.
PASSLIB_ON_DEMAND Node* onlyUser(const Graph* graph, const NodeEntry& value);

/// Whether a node is a weight, a constant or a state of the model: a variable whose value is the
/// same in every run. False for inputs of the model, also where the caller gave arrays for them, as
/// far as the node or the operators that take it tell. True as well for parameters whose arrays the
/// pass does not get.
PASSLIB_ON_DEMAND bool isParameter(const Node* node);
/// Adds a parameter with a new tensor, see Node::alloc_arg. Its name is `name`, followed by a
/// number if a node has that name already. Throws std::runtime_error as alloc_arg does.
PASSLIB_ON_DEMAND Node* addParameter(Graph* graph, const std::string& name,
                                     const std::vector<int64_t>& shape, MXDType type,
                                     const MXContext& ctx = MXContext::CPU());

// ================================================================================================
// Resources that the host lends for one call
// ================================================================================================

typedef void* (*xpu_malloc_t)(void* allocator, int size);
typedef void (*sparse_malloc_t)(void* allocator, int index, int indices_len, int indptr_len,
                                void** data, int64_t** indices, int64_t** indptr);
/// Allocates an array that the host owns: shape has num_dims numbers; *data is the memory, null if
/// the host refuses. isArg: 1 for args, 0 for aux.
typedef void (*nd_malloc_t)(const void* allocator, const int64_t* shape, int num_dims,
                            const char* dev_type, int dev_id, int dtype, const char* name,
                            int isArg, void** data);

/// Allocates new parameters during a pass. Any of its threads may call these functions.
class PassResource {
 public:
  /// What the elements of a weight on demand become if each run of them is multiplied by a factor.
  enum Scaling { kNotOnDemand = -1, kNotFinite = 0, kFinite = 1 };

  PassResource(nd_malloc_t nd_malloc, const void* nd_alloc)
      : nd_malloc_(nd_malloc), nd_alloc_(nd_alloc) {}
  PassResource(const PassResource&) = delete;
  PassResource& operator=(const PassResource&) = delete;
  ~PassResource() {
    for (Made* each : made_) delete each;
  }

  PASSLIB_ON_DEMAND MXTensor* alloc_arg(const std::string& name, const std::vector<int64_t>& shape,
                                        const MXContext& ctx, MXDType dtype) {
    return allocate(1, name, shape, ctx, dtype);
  }
  PASSLIB_ON_DEMAND MXTensor* alloc_aux(const std::string& name, const std::vector<int64_t>& shape,
                                        const MXContext& ctx, MXDType dtype) {
    return allocate(0, name, shape, ctx, dtype);
  }

  void _setGraph(const Graph* graph) { graph_ = graph; }
  /// Adds the types that the host offers, whose texts are asked for when they are read.
  void _offerTypes(const FlatModel& shown);
  /// See detail::readTypes.
  const FlatText* _types(const detail::TypesPlace& place);
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux) {
    params_[0] = args;
    params_[1] = aux;
  }
  bool _hasTensors() const { return !made_.empty(); }
  /// Returns the name of the graph's dialect; "" where the host does not tell it.
  PASSLIB_ON_DEMAND std::string _dialect() const;
  /// Notes a parameter whose array the caller has, but does not lend.
  void _noteUnlent(const Node* node) { unlent_.push(node); }
  /// Before the pass runs, when all are noted.
  void _sortUnlent();
  PASSLIB_ON_DEMAND bool _isUnlent(const Node* node) const;
  /// Returns `name`, or the first of name1, name2, ... that no node of the graph has.
  PASSLIB_ON_DEMAND std::string _freeName(const Graph& graph, const std::string& name);
  /// See Node::readTensor.
  PASSLIB_ON_DEMAND void _read(const std::string& name, MXTensor* tensor);
  /// Scales a weight on demand, as the weight `name`; for a null `name`, says what results.
  PASSLIB_ON_DEMAND Scaling _scale(const MXTensor& source, const std::vector<double>& factors,
                                   const std::string* name);
  PASSLIB_ON_DEMAND MXTensor* _scaled(const std::string& name, const MXTensor& source) {
    return hold(name, MXTensor(nullptr, source.shape, source.dtype, 0, source.ctx));
  }
  // After the pass, when its threads have ended.
  /// Lists the new tensors. Throws std::runtime_error if the pass changed one in what the host does
  /// not see.
  void _requireAsMade(detail::AddressTable* tensors) const;
  /// The name under which one of them was made.
  const std::string& _nameOfMade(int64_t position) const {
    return made_[static_cast<std::size_t>(position)]->name;
  }

 private:
  /// The tensor of a new parameter, and what it was made as.
  struct Made {
    std::string name;
    MXTensor tensor;
    MXTensor given;
  };
  PASSLIB_ON_DEMAND MXTensor* allocate(int is_arg, const std::string& name,
                                       const std::vector<int64_t>& shape, const MXContext& ctx,
                                       MXDType dtype);
  PASSLIB_ON_DEMAND MXTensor* hold(const std::string& name, const MXTensor& made);

  detail::Mutex mutex_;  // of all that threads of the pass change
  detail::PlainList<Made*> made_;
  nd_malloc_t nd_malloc_;
  const void* nd_alloc_;
  const Graph* graph_ = nullptr;      // of the running pass
  const FlatModel* shown_ = nullptr;  // unless no types are offered
  const FlatText* types_ = nullptr;
  uint16_t call_ = 0;
  detail::ParamTable* params_[2] = {nullptr, nullptr};
  detail::PlainList<const Node*> unlent_;
  // The names of the first named_ nodes of a graph. A map, because every library has code for this
  // one anyway.
  std::unordered_map<std::string, std::string> names_;
  std::size_t named_ = 0;
  const Graph* named_graph_ = nullptr;
};

/// Numbers of random number states: one for each thread of an operator, so that threads never wait
/// for each other.
#define MX_NUM_CPU_RANDOM_STATES 1024
#define MX_NUM_GPU_RANDOM_STATES 32768

typedef std::mt19937 mx_cpu_rand_t;
#if defined(__NVCC__)
typedef cudaStream_t mx_stream_t;
typedef curandStatePhilox4_32_10_t mx_gpu_rand_t;
#else
typedef void* mx_stream_t;
typedef void* mx_gpu_rand_t;
#endif

/// Resources that an operator may request while it computes. The host owns all of them, until the
/// call returns.
class OpResource {
 public:
  OpResource(xpu_malloc_t cpu_malloc, void* cpu_alloc, xpu_malloc_t gpu_malloc, void* gpu_alloc,
             void* stream, sparse_malloc_t sparse_malloc, void* sparse_alloc, void* rng_cpu_states,
             void* rng_gpu_states)
      : cpu_malloc_(cpu_malloc),
        gpu_malloc_(gpu_malloc),
        sparse_malloc_(sparse_malloc),
        cpu_alloc_(cpu_alloc),
        gpu_alloc_(gpu_alloc),
        sparse_alloc_(sparse_alloc),
        stream_(stream),
        rng_cpu_states_(rng_cpu_states),
        rng_gpu_states_(rng_gpu_states) {}

  /// Scratch memory of `size` bytes, zero in passlib and uninitialised in MXNet; null if the host
  /// has none. MXNet has one workspace, which each request invalidates: request all memory at once.
  void* alloc_cpu(int size) const { return cpu_malloc_(cpu_alloc_, size); }
  void* alloc_gpu(int size) const { return gpu_malloc_(gpu_alloc_, size); }
  /// Allocates sparse output number `index`: indices_len values (CSR) or rows (row sparse), and
  /// indptr_len row starts (CSR only; rows + 1). Sets data, indices, indptr and their lengths;
  /// data_len only for CSR, since the length of a row is unknown here.
  void alloc_sparse(MXSparse* sparse, int index, int indices_len, int indptr_len = 0) const;
  mx_stream_t get_cuda_stream() const { return static_cast<mx_stream_t>(stream_); }
  /// MX_NUM_CPU_RANDOM_STATES states, seeded by the host.
  mx_cpu_rand_t* get_cpu_rand_states() const {
    return static_cast<mx_cpu_rand_t*>(rng_cpu_states_);
  }
  /// Null without a GPU.
  mx_gpu_rand_t* get_gpu_rand_states() const {
    return static_cast<mx_gpu_rand_t*>(rng_gpu_states_);
  }

 private:
  xpu_malloc_t cpu_malloc_;
  xpu_malloc_t gpu_malloc_;
  sparse_malloc_t sparse_malloc_;
  void* cpu_alloc_;
  void* gpu_alloc_;
  void* sparse_alloc_;
  void* stream_;
  void* rng_cpu_states_;
  void* rng_gpu_states_;
};

// ================================================================================================
// Operators, partitioners, passes
// ================================================================================================

typedef std::unordered_map<std::string, std::string> options_map_t;

/// An operator with state between calls. The function given to setCreateOpState creates one for
/// each node of a running model; the host destroys it.
class CustomStatefulOp {
 public:
  CustomStatefulOp() : ignore_warn(false), created_(false) {}
  virtual ~CustomStatefulOp() {}

  /// Creates a state that the host can destroy: *state = CustomStatefulOp::create<My>(x);
  template <class Operator, typename... Arguments>
  static CustomStatefulOp* create(Arguments... arguments) {
    CustomStatefulOp* state = new Operator(arguments...);
    state->created_ = true;
    return state;
  }
  bool wasCreated() const { return created_; }

  virtual MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                                const OpResource& op_res) = 0;
  /// `inputs`: gradients of the outputs, then the inputs, then the outputs of Forward. `outputs`:
  /// one gradient per input.
  inline virtual MXReturnValue Backward(std::vector<MXTensor>* inputs,
                                        std::vector<MXTensor>* outputs, const OpResource& op_res);

  /// Set to silence the host's warning about a state that was not made by create.
  bool ignore_warn;

 private:
  bool created_;  // hosts read both flags at their offsets: directly after the vtable pointer
};

/// Computes an operator. The host allocates all tensors except sparse outputs (see
/// OpResource::alloc_sparse). For a backward function see CustomStatefulOp::Backward.
typedef MXReturnValue (*fcomp_t)(const options_map_t& attributes, std::vector<MXTensor>* inputs,
                                 std::vector<MXTensor>* outputs, const OpResource& res);
/// Sets the numbers of inputs and outputs of an operator with these attributes.
typedef MXReturnValue (*parseAttrs_t)(const options_map_t& attributes, int* num_inputs,
                                      int* num_outputs);
/// Infers dtype codes; -1 is unknown. May also fill in unknown inputs.
typedef MXReturnValue (*inferType_t)(const options_map_t& attributes, std::vector<int>* in_types,
                                     std::vector<int>* out_types);
/// Infers storage types (MXStorageType). Without this function all tensors are dense.
typedef MXReturnValue (*inferSType_t)(const options_map_t& attributes,
                                      std::vector<int>* in_storage_types,
                                      std::vector<int>* out_storage_types);
/// Infers shapes. An unknown input shape is empty, as is that of a scalar; an unknown extent is
/// UINT32_MAX. out_shapes has one empty shape for each output. May also fill in unknown inputs.
typedef MXReturnValue (*inferShape_t)(const options_map_t& attributes,
                                      std::vector<std::vector<unsigned int> >* in_shapes,
                                      std::vector<std::vector<unsigned int> >* out_shapes);
/// Lists the inputs that the operator writes to; they become auxiliary states of the model.
typedef MXReturnValue (*mutateInputs_t)(const options_map_t& attributes,
                                        std::vector<int>* input_indices);
/// Creates the state of one node, with inputs of these shapes and dtype codes. For an operator that
/// runs subgraphs, attributes[MX_STR_SUBGRAPH_SYM_JSON] is the subgraph.
typedef MXReturnValue (*createOpState_t)(const options_map_t& attributes, const MXContext& ctx,
                                         const std::vector<std::vector<unsigned int> >& in_shapes,
                                         const std::vector<int> in_types, CustomStatefulOp**);

/// An operator as registered by a library. Contexts are "cpu" and "gpu", with one function for
/// each. Required: parseAttrs, inferType, inferShape, and a forward function or a state; for
/// subgraph operators only a state.
class CustomOp {
 public:
  PASSLIB_ON_DEMAND explicit CustomOp(const char* op_name)
      : name(op_name),
        parse_attrs(nullptr),
        infer_type(nullptr),
        infer_storage_type(nullptr),
        infer_shape(nullptr),
        mutate_inputs(nullptr),
        isSGop(false),
        valid(true) {}

  PASSLIB_ON_DEMAND CustomOp& setForward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "forward", &forward_fp, &forward_ctx_cstr);
  }
  PASSLIB_ON_DEMAND CustomOp& setBackward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "backward", &backward_fp, &backward_ctx_cstr);
  }
  PASSLIB_ON_DEMAND CustomOp& setCreateOpState(createOpState_t function, const char* ctx) {
    return add(function, ctx, "createOpState", &create_op_fp, &create_op_ctx_cstr);
  }
  PASSLIB_ON_DEMAND CustomOp& setParseAttrs(parseAttrs_t function) {
    return set(&parse_attrs, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setInferType(inferType_t function) {
    return set(&infer_type, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setInferSType(inferSType_t function) {
    return set(&infer_storage_type, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setInferShape(inferShape_t function) {
    return set(&infer_shape, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setMutateInputs(mutateInputs_t function) {
    return set(&mutate_inputs, function);
  }
  /// Declares an operator whose nodes have a subgraph, as partitioners create them.
  PASSLIB_ON_DEMAND CustomOp& setIsSubgraphOp() { return set(&isSGop, true); }

  const char* name;
  parseAttrs_t parse_attrs;
  inferType_t infer_type;
  inferSType_t infer_storage_type;
  inferShape_t infer_shape;
  mutateInputs_t mutate_inputs;
  bool isSGop;
  bool valid;  ///< false after a second function for one context
  std::vector<const char*> forward_ctx_cstr, backward_ctx_cstr, create_op_ctx_cstr;
  std::vector<fcomp_t> forward_fp, backward_fp;
  std::vector<createOpState_t> create_op_fp;

 private:
  template <typename ValueType>
  CustomOp& set(ValueType* member, ValueType value) {
    *member = value;
    return *this;
  }
  template <typename Function>
  CustomOp& add(Function function, const char* ctx, const char* what,
                std::vector<Function>* functions, std::vector<const char*>* contexts);
};

/// Decides node by node what belongs to a subgraph. Node numbers are positions in the graph given
/// to the createSelector function, which lives as long as the selector. passlib destroys selectors;
/// MXNet never does.
class CustomOpSelector {
 public:
  virtual ~CustomOpSelector() {}
  /// Whether a subgraph may start from this node.
  virtual bool Select(int nodeID) = 0;
  /// Whether a subgraph with node nodeID may also include the producer of one of its inputs.
  virtual bool SelectInput(int nodeID, int input_nodeID) = 0;
  /// The same for the consumer of one of its outputs.
  virtual bool SelectOutput(int nodeID, int output_nodeID) = 0;
  /// Chooses the nodes of a grown subgraph to keep; by default all.
  virtual void Filter(const std::vector<int>& candidates, std::vector<int>* keep) {
    for (std::size_t pos = 0; pos < candidates.size(); ++pos) keep->push_back(candidates[pos]);
  }
  /// Called before the growth of a subgraph restarts.
  virtual void Reset() {}
};

/// Sets which nodes are supported: ids has one number per node, initially -2. -2: not supported;
/// -1: in any subgraph; from 0: only together with nodes of the same number.
typedef MXReturnValue (*supportedOps_t)(const Graph* graph, std::vector<int>* ids,
                                        const options_map_t& options);
typedef MXReturnValue (*createSelector_t)(const Graph* graph, CustomOpSelector** sel_inst,
                                          const options_map_t& options);
/// Accepts or rejects a subgraph (*accept is initially false), and sets attributes of the node that
/// replaces it. Variables of the subgraph that are parameters have their tensor.
typedef MXReturnValue (*reviewSubgraph_t)(const Graph* subgraph, int subgraph_id, bool* accept,
                                          const options_map_t& options, options_map_t* attrs);

/// A partitioner: strategies that run in turn. Each needs supportedOps or createSelector (the
/// former takes precedence) and replaces subgraphs by nodes of its own subgraph operator.
class CustomPartitioner {
 public:
  PASSLIB_ON_DEMAND CustomPartitioner() : name("ERROR") {}
  PASSLIB_ON_DEMAND explicit CustomPartitioner(const char* backend_name) : name(backend_name) {}

  PASSLIB_ON_DEMAND CustomPartitioner& addStrategy(const char* prop_name, const char* sg_name) {
    strategies.push_back(prop_name);
    op_names.push_back(sg_name);
    return *this;
  }
  PASSLIB_ON_DEMAND CustomPartitioner& setSupportedOps(const char* prop_name,
                                                       supportedOps_t function) {
    supported_map[prop_name] = function;
    return *this;
  }
  PASSLIB_ON_DEMAND CustomPartitioner& setCreateSelector(const char* prop_name,
                                                         createSelector_t function) {
    selector_map[prop_name] = function;
    return *this;
  }
  PASSLIB_ON_DEMAND CustomPartitioner& setReviewSubgraph(const char* prop_name,
                                                         reviewSubgraph_t function) {
    review_map[prop_name] = function;
    return *this;
  }

  /// Functions of strategy number stg_id; null if not set.
  PASSLIB_ON_DEMAND supportedOps_t getSupportedOps(int stg_id) const {
    return find(supported_map, stg_id);
  }
  PASSLIB_ON_DEMAND createSelector_t getCreateSelector(int stg_id) const {
    return find(selector_map, stg_id);
  }
  PASSLIB_ON_DEMAND reviewSubgraph_t getReviewSubgraph(int stg_id) const {
    return find(review_map, stg_id);
  }

  const char* name;
  std::map<std::string, supportedOps_t> supported_map;
  std::map<std::string, createSelector_t> selector_map;
  std::map<std::string, reviewSubgraph_t> review_map;
  std::vector<const char*> strategies;
  std::vector<const char*> op_names;  ///< the subgraph operator of each strategy

 private:
  template <typename Function>
  Function find(const std::map<std::string, Function>& functions, int stg_id) const {
    const auto found = functions.find(strategies.at(static_cast<std::size_t>(stg_id)));
    return found == functions.end() ? nullptr : found->second;
  }
};

/// A pass: changes the graph in place. After MX_FAIL or an exception the caller's model is
/// unchanged. `options` are the keyword arguments of optimize_for, as text, with the declared
/// defaults.
///
/// A pass may start threads, which must end before it returns. Several of them may at the same time
/// call passInterrupted, MX_ERROR_MSG, Node::readTensor, and alloc_arg and alloc_aux of different
/// nodes; and they may read the graph: its vectors, attributes and tensors, shapeOf, typeOf, users,
/// onlyUser, isOutput, isParameter. What changes the graph (connect, replace, addNode, removeNode,
/// addParameter, attributes, patterns) is for one thread while no other uses the graph. An
/// exception that leaves a thread ends the process, as everywhere in C++.
typedef MXReturnValue (*graphPass_t)(Graph* graph, const options_map_t& options);

/// The value of an option: true or false, a whole number, a real number, text, or a list of one of
/// these.
class OptionValue {
 public:
  enum Kind { kBoolean, kInteger, kReal, kText };
  OptionValue(bool value) : kind(kBoolean), integer(value ? 1 : 0) {}       // NOLINT: implicit
  OptionValue(int value) : kind(kInteger), integer(value) {}                // NOLINT
  OptionValue(long value) : kind(kInteger), integer(value) {}               // NOLINT
  OptionValue(long long value) : kind(kInteger), integer(value) {}          // NOLINT
  OptionValue(double value) : kind(kReal), real(value) {}                   // NOLINT
  OptionValue(std::string value) : kind(kText), text(std::move(value)) {}   // NOLINT
  OptionValue(const char* value) : kind(kText), text(value) {}              // NOLINT
  PASSLIB_ON_DEMAND OptionValue(std::initializer_list<OptionValue> values)  // NOLINT
      : kind(values.size() == 0 ? kText : values.begin()->kind), is_list(true), items(values) {}
  /// A list that may be empty.
  PASSLIB_ON_DEMAND OptionValue(const std::vector<bool>& values)
      : OptionValue(kBoolean, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<int>& values)
      : OptionValue(kInteger, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<int64_t>& values)
      : OptionValue(kInteger, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<double>& values)
      : OptionValue(kReal, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<std::string>& values)
      : OptionValue(kText, values) {}  // NOLINT

  Kind kind;  ///< of a list: of its items
  bool is_list = false;
  int64_t integer = 0;  ///< of kInteger; 0 or 1 of kBoolean
  double real = 0;
  std::string text;
  std::vector<OptionValue> items;

 private:
  template <typename Values>
  OptionValue(Kind of_items, const Values& values)
      : kind(of_items), is_list(true), items(values.begin(), values.end()) {}
};

/// What a pass declares of one option.
struct OptionDeclaration {
  std::string name;
  OptionValue preset;
  std::string description;
  std::vector<OptionValue> choices;  ///< the only values, if there are any
  std::vector<OptionValue> range;    ///< the smallest and the largest number, or nothing
};

struct PassDeclaration;

/// The options of a call in the types of their declarations: the given values, otherwise the
/// defaults. Where the host does not check options, as MXNet, they are checked here: throws
/// std::invalid_argument for an option that is unknown, has another type or is out of range.
class OptionValues {
 public:
  PASSLIB_ON_DEMAND OptionValues(const PassDeclaration& declaration, const options_map_t& given);

  // The value of an option; of a list that of all items. Throw std::logic_error if the pass
  // declares no such option, or one of another type.
  PASSLIB_ON_DEMAND bool boolean(const std::string& name) const;
  PASSLIB_ON_DEMAND int64_t integer(const std::string& name) const;
  PASSLIB_ON_DEMAND double real(const std::string& name) const;
  PASSLIB_ON_DEMAND const std::string& text(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<bool> booleans(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<int64_t> integers(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<double> reals(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<std::string> texts(const std::string& name) const;
  /// Whether the caller gave an option, be it with the value of the default.
  PASSLIB_ON_DEMAND bool given(const std::string& name) const;

 private:
  PASSLIB_ON_DEMAND const OptionValue& find(const std::string& name, OptionValue::Kind kind,
                                            bool is_list) const;
  std::map<std::string, OptionValue> values_;
  options_map_t given_;
};

/// The body of a pass with declared options.
typedef MXReturnValue (*typedPass_t)(Graph* graph, const OptionValues& options);

/// What a pass says about itself, made by the functions of CustomPass.
struct PassDeclaration {
  explicit PassDeclaration(const char* pass_name) : name(pass_name) {}
  std::string name;
  std::string description;
  std::vector<std::string> dialects;
  std::vector<OptionDeclaration> options;
  bool any_options = false;
  bool needs_weights = true;
  bool weights_on_demand = false;
  bool needs_shapes = true;
  bool exact = false;
  std::vector<std::string> triggers;
  std::string cost = "nodes";
  std::vector<std::string> pipelines;
  std::string after;
  std::vector<std::pair<std::string, OptionValue> > pipeline_options;
  std::vector<std::pair<std::string, OptionValue> > rounding_options;
  typedPass_t body = nullptr;
};

/// A pass as registered by a library:
///
///     REGISTER_PASS(foldScale)
///         .setBody(foldScale)
///         .describe("Folds Mul and Add behind a convolution into its weights.")
///         .dialects({"onnx", "mxnet"})
///         .option("bias", "auto", "Whether to add a bias.", {"auto", "never"})
///         .option("level", 1, "How far to go.", 1, 3)
///         .needsShapes(false);
///
/// All but setBody are declarations. With any of them, the pass has exactly the options that it
/// declares, and the host refuses others; without, it takes any, as in MXNet, which ignores
/// declarations.
class CustomPass {
 public:
  CustomPass() : name("ERROR"), pass(nullptr), declaration(nullptr) {}
  explicit CustomPass(const char* pass_name)
      : name(pass_name), pass(nullptr), declaration(nullptr) {}
  CustomPass& setBody(graphPass_t function) {
    pass = function;
    return *this;
  }
  PASSLIB_ON_DEMAND CustomPass& setBody(typedPass_t function);

  /// What the pass does, in a sentence or a few.
  PASSLIB_ON_DEMAND CustomPass& describe(const char* text);
  /// The families of models that it works on; without this, all.
  PASSLIB_ON_DEMAND CustomPass& dialects(std::initializer_list<const char*> names);
  PASSLIB_ON_DEMAND CustomPass& dialects(const std::vector<std::string>& names);
  /// Declares an option, whose default the body gets unless the caller gives a value. Its type is
  /// that of the default: bool, integer, real, text, or a list of
  /// one of these, such as {1, 2} or std::vector<std::string>(). Choices and range, both ends
  /// included, hold for each item of a list.
  PASSLIB_ON_DEMAND CustomPass& option(const char* key, const OptionValue& preset,
                                       const char* text);
  PASSLIB_ON_DEMAND CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                                       std::initializer_list<OptionValue> choices);
  PASSLIB_ON_DEMAND CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                                       const OptionValue& low, const OptionValue& high);
  /// The pass takes options beside those that it declares.
  PASSLIB_ON_DEMAND CustomPass& anyOptions();
  /// Whether the pass reads or writes weights: if not, Node::tensor is null on parameters that the
  /// model has already. By default true.
  PASSLIB_ON_DEMAND CustomPass& needsWeights(bool wanted = true);
  /// The pass reads weights by Node::readTensor() only, and changes none in place: until then,
  /// tensors of parameters have shape and type, and data_ptr is null in passlib. What it does not
  /// ask for costs nothing.
  PASSLIB_ON_DEMAND CustomPass& weightsOnDemand();
  /// Whether the pass reads inferred shapes and types: if not, none are inferred for it. By default
  /// true; then they are inferred when the pass first reads one.
  PASSLIB_ON_DEMAND CustomPass& needsShapes(bool wanted = true);
  /// The pass keeps every bit of the model's results. Without this, they may change by rounding.
  PASSLIB_ON_DEMAND CustomPass& exact();
  /// The pass changes no graph without one of these operators. Without this, it may change any.
  PASSLIB_ON_DEMAND CustomPass& triggers(const std::vector<std::string>& ops);
  /// What the time of the pass grows with, for pipelines that it joins: "nodes", the default;
  /// "weights"; or "runs", if it computes operators.
  PASSLIB_ON_DEMAND CustomPass& cost(const char* grows_with);
  /// The pass is part of a named pipeline: "simplify", or "clean" if it is exact. It runs behind
  /// the pass `after`, or at the end.
  PASSLIB_ON_DEMAND CustomPass& joins(const char* pipeline, const char* after = "");
  /// The value of a declared option in the pipelines that the pass joins.
  PASSLIB_ON_DEMAND CustomPass& inPipelines(const char* key, const OptionValue& value);
  /// The same where results may change by rounding, and in rare cases more: "simplify" by default.
  PASSLIB_ON_DEMAND CustomPass& whenRounding(const char* key, const OptionValue& value);

  const char* name;
  graphPass_t pass;
  PassDeclaration* declaration;  ///< null without any; owned by the registry

 private:
  PASSLIB_ON_DEMAND PassDeclaration& declare();
};

/// Whether the user wants the call that runs now to end, as after Ctrl-C in Python. A pass that may
/// take long asks from time to time and returns MX_FAIL, which leaves the model unchanged. Any
/// thread may ask. Always false under a host that never tells, such as MXNet.
bool passInterrupted();

// ================================================================================================
// Registration
// ================================================================================================

namespace detail {

/// Installs what the entry points of a kind of entry call, when the first one is registered.
template <typename ValueType, typename Unused = void>
struct Calls {
  static void install() {}
};

}  // namespace detail

/// The entries that a library registered, in order; one registry per type and library, which lives
/// until the process ends.
template <class ValueType>
class Registry {
 public:
  static Registry* get() {
    static Registry* const instance = new Registry();
    return instance;
  }
  /// Adds an entry. The reference stays valid.
  ValueType& add(const char* name) {
    detail::Calls<ValueType>::install();
    entries_.reserve(1);
    ValueType* const entry = new ValueType(name);
    entries_.push(entry);
    return *entry;
  }
  int size() const { return static_cast<int>(entries_.size()); }
  const ValueType& get(int idx) const { return *entries_[checked(idx)]; }
  ValueType& get(int idx) { return *entries_[checked(idx)]; }

 private:
  Registry() {}
  std::size_t checked(int idx) const {
    if (idx < 0 || idx >= size()) throw std::out_of_range("there is no such entry");
    return static_cast<std::size_t>(idx);
  }
  detail::PlainList<ValueType*> entries_;
};

#define MX_STR_CONCAT_(__a, __b) __a##__b
#define MX_STR_CONCAT(__a, __b) MX_STR_CONCAT_(__a, __b)
#define MX_STRINGIFY(x) #x
#define MX_TOSTRING(x) MX_STRINGIFY(x)

#define MX_REGISTER_NAME_(Name) MXNet##_CustomOp##_##Name
#define MX_REGISTER_DEF_(Name) static mxnet::ext::CustomOp& MX_REGISTER_NAME_(Name)
#define MX_REGISTER_PROP_NAME_(Name) MXNet##_CustomSubProp##_##Name
#define MX_REGISTER_PROP_DEF_(Name) \
  static mxnet::ext::CustomPartitioner& MX_REGISTER_PROP_NAME_(Name)
#define MX_REGISTER_PASS_NAME_(Name) MXNet##_CustomPass##_##Name
#define MX_REGISTER_PASS_DEF_(Name) static mxnet::ext::CustomPass& MX_REGISTER_PASS_NAME_(Name)

/// Registers an operator: REGISTER_OP(my_gemm).setForward(forward, "cpu").setParseAttrs(parse)...
#define REGISTER_OP(Name)                            \
  MX_STR_CONCAT(MX_REGISTER_DEF_(Name), __COUNTER__) \
  __attribute__((unused)) =                          \
      mxnet::ext::Registry<mxnet::ext::CustomOp>::get()->add(MX_TOSTRING(Name))

/// Registers a partitioner: REGISTER_PARTITIONER(mine).addStrategy("first", "my_subgraph_op")...
#define REGISTER_PARTITIONER(Name)                        \
  MX_STR_CONCAT(MX_REGISTER_PROP_DEF_(Name), __COUNTER__) \
  __attribute__((unused)) =                               \
      mxnet::ext::Registry<mxnet::ext::CustomPartitioner>::get()->add(MX_TOSTRING(Name))

/// Registers a pass under a name: REGISTER_PASS(myPass).setBody(myPass);
#define REGISTER_PASS(Name)                               \
  MX_STR_CONCAT(MX_REGISTER_PASS_DEF_(Name), __COUNTER__) \
  __attribute__((unused)) =                               \
      mxnet::ext::Registry<mxnet::ext::CustomPass>::get()->add(MX_TOSTRING(Name))

/// Registers a pass of patterns; lib_patterns.h defines it.
#define PATTERN_PASS(Name, ...)                                                        \
  static_assert(sizeof(#Name) == 0, "PATTERN_PASS needs #include \"lib_patterns.h\""); \
  static void MXNet_PatternsOf_##Name()

// ================================================================================================
// Entry points: the C functions that a host looks up
//
// All of them are cdecl and take plain C types. A returned int is 1 for success and 0 for failure,
// with the reasons in the message store. Arguments are borrowed for the call. Results are either
// static (names) or allocated with malloc, and the host releases them through _opCallFree of the
// same library. `fp` arguments are function pointers from the library's RegGet functions, opaque to
// the host. No C++ exception leaves these functions, except calls of a selector, which cannot
// report failure otherwise: whatever the selector throws reaches the host as a std::exception.
// ================================================================================================

// A block of parameters: num names, and for each the data, the shape (dims numbers), the dtype
// code, the version of the data, and the device. Arrays may be null if num is 0.
#define PASSLIB_PARAM_BLOCK(kind)                                                           \
  const char *const *kind##_names, int num_##kind, void *const *kind##_data,                \
      const int64_t *const *kind##_shapes, const int *kind##_dims, const int *kind##_types, \
      const size_t *kind##_IDs, const char *const *kind##_dev_type, const int *kind##_dev_id

// Options, or attributes: num pairs of strings.
#define PASSLIB_OPTION_BLOCK const char *const *opt_keys, const char *const *opt_vals, int num_opts
#define PASSLIB_ATTR_BLOCK const char *const *keys, const char *const *vals, int num

// Inputs and outputs of an operator, and the host's resources. intypes: dtype codes; instypes:
// storage types.
#define PASSLIB_IO_BLOCK                                                                           \
  const int64_t **inshapes, int *indims, void **indata, int *intypes, size_t *inIDs,               \
      const char **indev_type, int *indev_id, int num_in, const int64_t **outshapes, int *outdims, \
      void **outdata, int *outtypes, size_t *outIDs, const char **outdev_type, int *outdev_id,     \
      int num_out
#define PASSLIB_RESOURCE_BLOCK                                                                  \
  mxnet::ext::xpu_malloc_t cpu_malloc, void *cpu_alloc, mxnet::ext::xpu_malloc_t gpu_malloc,    \
      void *gpu_alloc, void *stream, mxnet::ext::sparse_malloc_t sparse_malloc,                 \
      void *sparse_alloc, int *instypes, int *outstypes, void **in_indices, void **out_indices, \
      void **in_indptr, void **out_indptr, int64_t *in_indices_shapes,                          \
      int64_t *out_indices_shapes, int64_t *in_indptr_shapes, int64_t *out_indptr_shapes,       \
      void *rng_cpu_states, void *rng_gpu_states

// The same blocks as arguments.
#define PASSLIB_PARAM_NAMES(kind)                                                              \
  kind##_names, num_##kind, kind##_data, kind##_shapes, kind##_dims, kind##_types, kind##_IDs, \
      kind##_dev_type, kind##_dev_id
#define PASSLIB_IO_NAMES                                                                      \
  inshapes, indims, indata, intypes, inIDs, indev_type, indev_id, num_in, outshapes, outdims, \
      outdata, outtypes, outIDs, outdev_type, outdev_id, num_out
#define PASSLIB_RESOURCE_NAMES                                                                 \
  cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream, sparse_malloc, sparse_alloc, instypes, \
      outstypes, in_indices, out_indices, in_indptr, out_indptr, in_indices_shapes,            \
      out_indices_shapes, in_indptr_shapes, out_indptr_shapes, rng_cpu_states, rng_gpu_states

/// Version of the flat form of graphs: the structs whose names begin with Flat. A host uses it only
/// with libraries of the same version.
#define PASSLIB_FLAT_VERSION 2

/// An attribute, or a member of a JSON object, whose value is then JSON.
struct FlatPair {
  FlatText key;
  FlatText text;
};
/// The end of an edge: the position of the producer in its graph, its output, and the version.
struct FlatEdge {
  uint32_t node;
  int32_t entry;
  int32_t version;
};
/// A node. In a result, `op`, `name` and `packed` may be those of the node that the host showed at
/// this place of the outermost graph. What it has several of lies in the arrays of the model, as
/// many as it says, behind what the nodes before it have there.
struct FlatNode {
  FlatText op;
  FlatText name;
  /// Attributes in one block: their number n, at most 64; the bytes of all texts; n times the bytes
  /// of key and text; key and text in turn, without terminators; zeros up to a multiple of 4 bytes.
  /// Sorted by the bytes of the keys, none of which occurs twice. May be null; aligned to 4 bytes.
  const uint32_t* packed;
  uint32_t packed_words;      ///< length of `packed`; 0 if it is null
  uint32_t num_attrs;         ///< in `pairs`, in any order: attributes that are not packed
  uint32_t num_extra;         ///< in `pairs`, behind them: Node::extra
  uint32_t num_inputs;        ///< in `edges`
  uint32_t num_control_deps;  ///< in `control_deps`
  uint32_t num_subgraphs;     ///< in `graphs`
  int32_t num_outputs;        ///< as in Node
  uint32_t outputs_declared;  ///< 1: num_outputs is known for the present operator; 0: it is not
};
/// A graph. Its nodes lie in the model's `nodes`, behind those of the graphs before it. Behind what
/// its nodes have in the other arrays come its outputs, in `edges`, and its attributes, in `pairs`.
struct FlatGraph {
  uint64_t num_nodes;
  uint64_t num_outputs;
  uint64_t num_attrs;
};
/// The host's memory for large pieces: it knows how to get them from the kernel quickly. allocate
/// returns memory aligned to 64 bytes, or null; release takes it back. Both may be called in any
/// thread, also after the call of a pass.
struct FlatMemory {
  void* (*allocate)(uint64_t size);
  void (*release)(void* memory);
};
/// A graph with all that is nested in it, as plain arrays, for compilers and standard libraries
/// with different C++ types. graphs[0] is the outermost; the others are the subgraphs of all nodes
/// in turn. An array may be null if its length is 0. The texts are UTF-8. All belongs to who made
/// it, and none of it is changed; arrays of a result may be those that the host showed.
struct FlatModel {
  uint32_t version;  ///< PASSLIB_FLAT_VERSION
  uint32_t size;     ///< sizeof(FlatModel)
  const FlatGraph* graphs;
  uint64_t num_graphs;
  const FlatNode* nodes;
  uint64_t num_nodes;
  const FlatEdge* edges;
  uint64_t num_edges;
  const uint32_t* control_deps;  ///< positions of nodes in their graph
  uint64_t num_control_deps;
  const FlatPair* pairs;
  uint64_t num_pairs;
  uint64_t packed_words;  ///< of all nodes
  FlatMemory memory;      ///< of the host; nothing looks at that of a result
  void* owner;            ///< for who made it
  /// Null, or infers the types of all nodes: returns __ext_shape__ and __ext_dtype__ of each node
  /// of graphs[0] in turn, which stay valid until the call of the pass returns; null if that
  /// failed, and then the host fails the call. Any thread may call it, before the pass returns.
  const FlatText* (*types)(const void* host);
  const void* host;  ///< what `types` gets
};

typedef int (*opVersion_t)();
typedef int (*initialize_t)(int version);
typedef int (*msgSize_t)();
typedef void (*msgGet_t)(int idx, const char** msg);

typedef int (*opRegSize_t)();
typedef void (*opRegGet_t)(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                           fcomp_t** forward_fp, int* forward_count, const char*** backward_ctx,
                           fcomp_t** backward_fp, int* backward_count, const char*** create_op_ctx,
                           createOpState_t** create_op_fp, int* create_op_count,
                           parseAttrs_t* parse, inferType_t* type, inferSType_t* stype,
                           inferShape_t* shape, mutateInputs_t* mutate);
typedef void (*opCallFree_t)(void* ptr);
typedef int (*opCallParseAttrs_t)(parseAttrs_t function, PASSLIB_ATTR_BLOCK, int* num_in,
                                  int* num_out);
typedef int (*opCallInferShape_t)(inferShape_t function, PASSLIB_ATTR_BLOCK,
                                  unsigned int** inshapes, int* indims, int num_in,
                                  unsigned int*** mod_inshapes, int** mod_indims,
                                  unsigned int*** outshapes, int** outdims, int num_out);
typedef int (*opCallInferType_t)(inferType_t function, PASSLIB_ATTR_BLOCK, int* intypes, int num_in,
                                 int* outtypes, int num_out);
typedef int (*opCallInferSType_t)(inferSType_t function, PASSLIB_ATTR_BLOCK, int* instypes,
                                  int num_in, int* outstypes, int num_out);
typedef int (*opCallFComp_t)(fcomp_t function, PASSLIB_ATTR_BLOCK, PASSLIB_IO_BLOCK,
                             PASSLIB_RESOURCE_BLOCK);
typedef int (*opCallMutateInputs_t)(mutateInputs_t function, PASSLIB_ATTR_BLOCK,
                                    int** mutate_indices, int* indices_size);
typedef int (*opCallCreateOpState_t)(createOpState_t function, PASSLIB_ATTR_BLOCK,
                                     const char* dev_type, int dev_id, unsigned int** inshapes,
                                     int* indims, int num_in, const int* intypes, void** state_op);
typedef void (*opCallDestroyOpState_t)(void* state_op);
typedef int (*opCallFStatefulComp_t)(int is_forward, void* state_op, PASSLIB_IO_BLOCK,
                                     PASSLIB_RESOURCE_BLOCK);

typedef int (*partRegSize_t)();
typedef int (*partRegGetCount_t)(int idx, const char** name);
typedef void (*partRegGet_t)(int part_idx, int stg_idx, const char** strategy,
                             supportedOps_t* supported_ops, createSelector_t* create_selector,
                             reviewSubgraph_t* review_subgraph, const char** op_name);
typedef int (*partCallSupportedOps_t)(supportedOps_t function, const char* json, int num_ids,
                                      int* ids, PASSLIB_OPTION_BLOCK);
typedef int (*partCallCreateSelector_t)(createSelector_t function, const char* json,
                                        void** selector, PASSLIB_OPTION_BLOCK);
typedef void (*partCallSelect_t)(void* selector, int node, int* selected);
typedef void (*partCallSelectInput_t)(void* selector, int node, int input_node, int* selected);
typedef void (*partCallSelectOutput_t)(void* selector, int node, int output_node, int* selected);
typedef void (*partCallFilter_t)(void* selector, int* candidates, int num_candidates, int** keep,
                                 int* num_keep);
typedef void (*partCallReset_t)(void* selector);
typedef int (*partCallReviewSubgraph_t)(reviewSubgraph_t function, const char* json,
                                        int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                        char*** attr_keys, char*** attr_vals, int* num_attrs,
                                        PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux));

typedef void (*passlibPartDestroySelector_t)(void* selector);
typedef int (*passlibCallFlatSupportedOps_t)(supportedOps_t function, const FlatModel* shown,
                                             int num_ids, int* ids, PASSLIB_OPTION_BLOCK);
typedef int (*passlibCallFlatCreateSelector_t)(createSelector_t function, const FlatModel* shown,
                                               void** selector, PASSLIB_OPTION_BLOCK);
typedef int (*passlibCallFlatReviewSubgraph_t)(reviewSubgraph_t function, const FlatModel* shown,
                                               int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                               char*** attr_keys, char*** attr_vals, int* num_attrs,
                                               PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux));

typedef int (*passRegSize_t)();
typedef void (*passRegGet_t)(int idx, graphPass_t* function, const char** name);
typedef int (*passCallGraphPass_t)(graphPass_t function, const char* in_graph, char** out_graph,
                                   PASSLIB_OPTION_BLOCK, const char* pass_name,
                                   PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                                   nd_malloc_t nd_malloc, const void* nd_alloc);
typedef int (*passlibFlatVersion_t)();
typedef int (*passlibCallFlatPass_t)(graphPass_t function, const FlatModel* shown,
                                     const FlatModel** result, PASSLIB_OPTION_BLOCK,
                                     const char* pass_name, PASSLIB_PARAM_BLOCK(arg),
                                     PASSLIB_PARAM_BLOCK(aux), nd_malloc_t nd_malloc,
                                     const void* nd_alloc);
typedef void (*passlibFreeFlat_t)(const FlatModel* model);
typedef int (*interrupted_t)(const void* host);
typedef void (*passlibSetInterrupted_t)(interrupted_t function, const void* host);
/// Sets *data to the elements of a parameter on demand, aligned, valid until the call returns; null
/// if there is no memory for them. nd_alloc: of the call; weight: ID of the parameter in its block.
typedef void (*readWeight_t)(const void* nd_alloc, size_t weight, const void** data);
/// Makes the argument `name` of the elements of a parameter on demand, each run of (elements /
/// count) of them multiplied by one factor. For a null `name` it makes nothing, and says whether
/// all results are finite. Returns 1, 0 for a result that is not finite, or -1 if this is not
/// possible for such a parameter.
typedef int (*scaleWeight_t)(const void* nd_alloc, size_t weight, const double* factors,
                             size_t count, const char* name);
typedef void (*passlibSetWeights_t)(readWeight_t read, scaleWeight_t scale);
typedef int (*passlibDeclarations_t)(const char** json);
typedef const char* (*passlibLoadErrors_t)();

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

extern "C" {

/// Defined by the author of the library. Called once when the library is loaded, with
/// 10000 * major + 100 * minor + patch of the host's MXNet version. MX_FAIL makes the host reject
/// the library.
PASSLIB_EXPORT mxnet::ext::MXReturnValue initialize(int version);

#ifndef PASSLIB_NO_ENTRY_POINTS
#define PASSLIB_ENTRY inline __attribute__((used)) PASSLIB_EXPORT

/// Version of the extension ABI.
PASSLIB_ENTRY int _opVersion();
/// Number of messages.
PASSLIB_ENTRY int _msgSize();
/// Message number idx, owned by the library; null if out of range.
PASSLIB_ENTRY void _msgGet(int idx, const char** msg);
/// Releases memory that a call of this library returned, or null.
PASSLIB_ENTRY void _opCallFree(void* ptr);

/// Number of passes; pass number idx.
PASSLIB_ENTRY int _passRegSize();
PASSLIB_ENTRY void _passRegGet(int idx, mxnet::ext::graphPass_t* function, const char** name);
/// *json: what the passes declare, as JSON text that lives until the process ends; null if none
/// declares anything. The text is
///
///     {"version": 1, "passes": [{"name": "fold", "description": "...", "dialects": ["onnx"],
///      "needs_weights": true, "weights_on_demand": true, "needs_shapes": false,
///      "any_options": false, "options":
///      [{"name": "level", "kind": "integer", "list": false, "default": 1, "description": "...",
///        "choices": [], "range": [1, 3]}],
///      "exact": true, "triggers": ["Mul"],
///      "joins": {"pipelines": ["clean", "simplify"], "after": "", "cost": "weights",
///                "options": {"level": 3}, "rounding": {}}}]}
///
/// with the kinds boolean, integer, real and text. "weights_on_demand", and what follows "options",
/// may be absent, for false, [] and no pipeline. Not part of MXNet's ABI.
PASSLIB_ENTRY int _passlibDeclarations(const char** json);
/// Runs a pass on a graph in JSON. A parameter whose data is null, though its shape has elements,
/// is one that the host does not lend. *out_graph: the result as malloc'd JSON, null on failure.
PASSLIB_ENTRY int _passCallGraphPass(mxnet::ext::graphPass_t function, const char* in_graph,
                                     char** out_graph, PASSLIB_OPTION_BLOCK, const char* pass_name,
                                     PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                                     mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc);

/// Version of the flat form that the library takes and returns. No function whose name begins with
/// _passlib is part of MXNet's ABI.
PASSLIB_ENTRY int _passlibFlatVersion();
/// Runs a pass on a graph in the flat form, which the host owns and keeps until the call returns.
/// *result: the result, null on failure. It belongs to the library, with all that it points to,
/// except for what FlatNode says; the host reads it and then calls _passlibFreeFlat.
PASSLIB_ENTRY int _passlibCallFlatPass(mxnet::ext::graphPass_t function,
                                       const mxnet::ext::FlatModel* shown,
                                       const mxnet::ext::FlatModel** result, PASSLIB_OPTION_BLOCK,
                                       const char* pass_name, PASSLIB_PARAM_BLOCK(arg),
                                       PASSLIB_PARAM_BLOCK(aux), mxnet::ext::nd_malloc_t nd_malloc,
                                       const void* nd_alloc);
/// Releases a result of _passlibCallFlatPass, or null.
PASSLIB_ENTRY void _passlibFreeFlat(const mxnet::ext::FlatModel* model);
/// Sets what passInterrupted() asks: function(host), which returns 0 or 1, needs no lock, never
/// throws, and stays valid until the process ends. Called before initialize. Not part of MXNet's
/// ABI.
PASSLIB_ENTRY void _passlibSetInterrupted(mxnet::ext::interrupted_t function, const void* host);
/// Sets what Node::readTensor() asks, before initialize. In a call of a pass that takes weights on
/// demand, a parameter whose elements are asked for has null data and an ID that is not 0. Not part
/// of MXNet's ABI.
PASSLIB_ENTRY void _passlibSetWeights(mxnet::ext::readWeight_t read,
                                      mxnet::ext::scaleWeight_t scale);
/// Returns why the library cannot be used, such as a pattern that is not well-formed: a line for
/// each reason, or null. The host asks before initialize().
PASSLIB_ENTRY const char* _passlibLoadErrors();

/// Number of operators; operator number idx. The library owns the arrays, with one entry per
/// context; functions that were not set are null.
PASSLIB_ENTRY int _opRegSize();
PASSLIB_ENTRY void _opRegGet(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                             mxnet::ext::fcomp_t** forward_fp, int* forward_count,
                             const char*** backward_ctx, mxnet::ext::fcomp_t** backward_fp,
                             int* backward_count, const char*** create_op_ctx,
                             mxnet::ext::createOpState_t** create_op_fp, int* create_op_count,
                             mxnet::ext::parseAttrs_t* parse, mxnet::ext::inferType_t* type,
                             mxnet::ext::inferSType_t* stype, mxnet::ext::inferShape_t* shape,
                             mxnet::ext::mutateInputs_t* mutate);
PASSLIB_ENTRY int _opCallParseAttrs(mxnet::ext::parseAttrs_t function, PASSLIB_ATTR_BLOCK,
                                    int* num_in, int* num_out);
/// *mod_inshapes and *outshapes: malloc'd arrays of malloc'd shapes, those of the inputs possibly
/// changed; *mod_indims and *outdims: malloc'd arrays of their lengths. Nothing is set on failure.
PASSLIB_ENTRY int _opCallInferShape(mxnet::ext::inferShape_t function, PASSLIB_ATTR_BLOCK,
                                    unsigned int** inshapes, int* indims, int num_in,
                                    unsigned int*** mod_inshapes, int** mod_indims,
                                    unsigned int*** outshapes, int** outdims, int num_out);
/// Types are changed in place.
PASSLIB_ENTRY int _opCallInferType(mxnet::ext::inferType_t function, PASSLIB_ATTR_BLOCK,
                                   int* intypes, int num_in, int* outtypes, int num_out);
PASSLIB_ENTRY int _opCallInferSType(mxnet::ext::inferSType_t function, PASSLIB_ATTR_BLOCK,
                                    int* instypes, int num_in, int* outstypes, int num_out);
PASSLIB_ENTRY int _opCallFCompute(mxnet::ext::fcomp_t function, PASSLIB_ATTR_BLOCK,
                                  PASSLIB_IO_BLOCK, PASSLIB_RESOURCE_BLOCK);
/// *mutate_indices is malloc'd.
PASSLIB_ENTRY int _opCallMutateInputs(mxnet::ext::mutateInputs_t function, PASSLIB_ATTR_BLOCK,
                                      int** mutate_indices, int* indices_size);
/// *state_op is a CustomStatefulOp, to be destroyed by _opCallDestroyOpState.
PASSLIB_ENTRY int _opCallCreateOpState(mxnet::ext::createOpState_t function, PASSLIB_ATTR_BLOCK,
                                       const char* dev_type, int dev_id, unsigned int** inshapes,
                                       int* indims, int num_in, const int* intypes,
                                       void** state_op);
PASSLIB_ENTRY void _opCallDestroyOpState(void* state_op);
PASSLIB_ENTRY int _opCallFStatefulCompute(int is_forward, void* state_op, PASSLIB_IO_BLOCK,
                                          PASSLIB_RESOURCE_BLOCK);

/// Number of partitioners; name and number of strategies of number idx; strategy stg_idx of it.
PASSLIB_ENTRY int _partRegSize();
PASSLIB_ENTRY int _partRegGetCount(int idx, const char** name);
PASSLIB_ENTRY void _partRegGet(int part_idx, int stg_idx, const char** strategy,
                               mxnet::ext::supportedOps_t* supported_ops,
                               mxnet::ext::createSelector_t* create_selector,
                               mxnet::ext::reviewSubgraph_t* review_subgraph, const char** op_name);
PASSLIB_ENTRY int _partCallSupportedOps(mxnet::ext::supportedOps_t function, const char* json,
                                        int num_ids, int* ids, PASSLIB_OPTION_BLOCK);
/// *selector is opaque, for the functions below.
PASSLIB_ENTRY int _partCallCreateSelector(mxnet::ext::createSelector_t function, const char* json,
                                          void** selector, PASSLIB_OPTION_BLOCK);
PASSLIB_ENTRY void _partCallSelect(void* selector, int node, int* selected);
PASSLIB_ENTRY void _partCallSelectInput(void* selector, int node, int input_node, int* selected);
PASSLIB_ENTRY void _partCallSelectOutput(void* selector, int node, int output_node, int* selected);
/// *keep is malloc'd.
PASSLIB_ENTRY void _partCallFilter(void* selector, int* candidates, int num_candidates, int** keep,
                                   int* num_keep);
PASSLIB_ENTRY void _partCallReset(void* selector);
/// Destroys a selector and its graph.
PASSLIB_ENTRY void _passlibPartDestroySelector(void* selector);
/// The same as the functions of partitioners whose names end alike, with the graph in the flat
/// form. The library copies what it keeps.
PASSLIB_ENTRY int _passlibCallFlatSupportedOps(mxnet::ext::supportedOps_t function,
                                               const mxnet::ext::FlatModel* shown, int num_ids,
                                               int* ids, PASSLIB_OPTION_BLOCK);
PASSLIB_ENTRY int _passlibCallFlatCreateSelector(mxnet::ext::createSelector_t function,
                                                 const mxnet::ext::FlatModel* shown,
                                                 void** selector, PASSLIB_OPTION_BLOCK);
PASSLIB_ENTRY int _passlibCallFlatReviewSubgraph(mxnet::ext::reviewSubgraph_t function,
                                                 const mxnet::ext::FlatModel* shown,
                                                 int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                                 char*** attr_keys, char*** attr_vals,
                                                 int* num_attrs, PASSLIB_PARAM_BLOCK(arg),
                                                 PASSLIB_PARAM_BLOCK(aux));
/// *attr_keys and *attr_vals are malloc'd arrays of malloc'd strings, null if there are none.
PASSLIB_ENTRY int _partCallReviewSubgraph(mxnet::ext::reviewSubgraph_t function, const char* json,
                                          int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                          char*** attr_keys, char*** attr_vals, int* num_attrs,
                                          PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux));
#endif  // PASSLIB_NO_ENTRY_POINTS

}  // extern "C"

// ================================================================================================
// Bodies
// ================================================================================================

namespace mxnet {
namespace ext {
inline namespace passlib_api {

PASSLIB_COLD_CODE

// ---- errors ------------------------------------------------------------------------------------

namespace detail {

// Messages are put together by one function, from a form as that of printf: the pieces of each,
// added one by one, were a tenth of a library. A name with a NUL byte ends there.

inline std::string formatText(const char* form, va_list values) {
  va_list again;
  va_copy(again, values);
  const int size = vsnprintf(nullptr, 0, form, again);
  va_end(again);
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  vsnprintf(&text[0], text.size(), form, values);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

PASSLIB_FORM(1) inline std::string printed(const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = formatText(form, values);
  va_end(values);
  return text;
}

[[noreturn]] PASSLIB_FORM(1) inline void failGraph(const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = formatText(form, values);
  va_end(values);
  throw GraphStructureError(text);
}

[[noreturn]] PASSLIB_FORM(1) inline void failCall(const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = formatText(form, values);
  va_end(values);
  throw std::runtime_error(text);
}

__attribute__((noinline)) inline void PlainBytes::grow(std::size_t count) {
  const std::size_t room = (std::max)(2 * room_ + 64, size_ + count);
  void* const moved = realloc(data_, room);
  if (moved == nullptr) throw std::bad_alloc();
  data_ = static_cast<char*>(moved);
  room_ = room;
}

}  // namespace detail

inline MXerrorMsgs* MXerrorMsgs::get() {
  static MXerrorMsgs* const instance = new MXerrorMsgs();
  return instance;
}

inline std::stringstream& MXerrorMsgs::start() {
  messages_.reserve(1);
  messages_.push(new Message());
  return messages_.back()->stream;
}

inline std::stringstream& MXerrorMsgs::add(const char* file, int line) {
  detail::Mutex::Guard lock(mutex_);
  std::stringstream& stream = start();
  stream << file << "[" << line << "]: ";
  return stream;
}

inline void MXerrorMsgs::add(const std::string& text) {
  detail::Mutex::Guard lock(mutex_);
  start() << text;
}

inline int MXerrorMsgs::size() {
  detail::Mutex::Guard lock(mutex_);
  return static_cast<int>(messages_.size());
}

inline const std::string* MXerrorMsgs::get(int idx) {
  detail::Mutex::Guard lock(mutex_);
  if (idx < 0 || static_cast<std::size_t>(idx) >= messages_.size()) return nullptr;
  Message& message = *messages_[static_cast<std::size_t>(idx)];
  const std::string text = message.buffer.text();
  if (message.text == nullptr || *message.text != text) message.text = new std::string(text);
  return message.text;
}

// ---- tensors -----------------------------------------------------------------------------------

inline void MXSparse::set(void* data_ptr, const int64_t* dims, int ndims, void* idx,
                          int64_t num_idx, void* idx_ptr, int64_t num_idx_ptr) {
  data = data_ptr;
  // A row-sparse tensor stores whole rows, a CSR matrix single values.
  data_len = num_idx;
  if (idx_ptr == nullptr) {
    for (int pos = 1; pos < ndims; ++pos) data_len *= dims[pos];
  }
  indices = reinterpret_cast<int64_t*>(idx);
  indices_len = num_idx;
  indptr = reinterpret_cast<int64_t*>(idx_ptr);
  indptr_len = num_idx_ptr;
}

inline MXTensor::MXTensor()
    : data_ptr(nullptr), dtype(kUNSET), verID(0), dltensor(), stype(kDefaultStorage) {}

inline MXTensor::MXTensor(const MXTensor& other)
    : data_ptr(other.data_ptr),
      shape(other.shape),
      dtype(other.dtype),
      verID(other.verID),
      ctx(other.ctx),
      dltensor(other.dltensor),
      stype(other.stype) {
  dltensor.shape = shape.data();  // the copy's own shape, not the original's
}

inline MXTensor& MXTensor::operator=(const MXTensor& other) {
  data_ptr = other.data_ptr;
  shape = other.shape;
  dtype = other.dtype;
  verID = other.verID;
  ctx = other.ctx;
  dltensor = other.dltensor;
  dltensor.shape = shape.data();
  stype = other.stype;
  return *this;
}

inline MXTensor::MXTensor(void* data, std::vector<int64_t> tensor_shape, MXDType type, size_t vID,
                          MXContext context, MXStorageType storage_type)
    : data_ptr(data),
      shape(std::move(tensor_shape)),
      dtype(type),
      verID(vID),
      ctx(std::move(context)),
      dltensor(),
      stype(storage_type) {
  setDLTensor();
}

inline void MXTensor::setTensor(void* data, MXDType type, const int64_t* dims, int ndims,
                                size_t vID, MXContext context, MXStorageType storage_type) {
  data_ptr = data;
  dtype = type;
  shape.assign(dims, dims + ndims);
  verID = vID;
  ctx = std::move(context);
  stype = storage_type;
  setDLTensor();
}

inline void MXTensor::setDLTensor() {
  struct DType {
    MXDType type;
    uint8_t code;
    uint8_t bits;
  };
  static const DType table[] = {
      {kFloat32, dlpack::kDLFloat, 32}, {kFloat64, dlpack::kDLFloat, 64},
      {kFloat16, dlpack::kDLFloat, 16}, {kBfloat16, dlpack::kDLBfloat, 16},
      {kUint8, dlpack::kDLUInt, 8},     {kUint16, dlpack::kDLUInt, 16},
      {kUint32, dlpack::kDLUInt, 32},   {kUint64, dlpack::kDLUInt, 64},
      {kInt8, dlpack::kDLInt, 8},       {kInt16, dlpack::kDLInt, 16},
      {kInt32, dlpack::kDLInt, 32},     {kInt64, dlpack::kDLInt, 64},
      {kBool, dlpack::kDLBool, 8},
  };
  const DType* found = nullptr;
  for (const DType& known : table) {
    if (known.type == dtype) found = &known;
  }
  if (found == nullptr) {
    detail::failCall("MXTensor: unknown dtype code %d", static_cast<int>(dtype));
  }
  dltensor.data = data_ptr;
  dltensor.ndim = static_cast<int>(shape.size());
  dltensor.shape = shape.data();
  dltensor.strides = nullptr;
  dltensor.byte_offset = 0;
  dltensor.dtype.code = found->code;
  dltensor.dtype.bits = found->bits;
  dltensor.dtype.lanes = 1;
  dltensor.ctx.device_id = ctx.dev_id;
  dltensor.ctx.device_type = ctx.dev_type == "cpu"   ? dlpack::kDLCPU
                             : ctx.dev_type == "gpu" ? dlpack::kDLGPU
                                                     : dlpack::kDLExtDev;
}

inline int64_t MXTensor::size() const {
  int64_t count = 1;
  for (int64_t extent : detail::span(shape)) count *= extent;
  return count;
}

PASSLIB_END_CODE

PASSLIB_DEMANDED bool MXTensor::isSame(const MXTensor& other) const {
  return data_ptr == other.data_ptr && dtype == other.dtype && verID == other.verID &&
         ctx.dev_type == other.ctx.dev_type && ctx.dev_id == other.ctx.dev_id &&
         shape == other.shape && stype == other.stype;
}

PASSLIB_SMALL_CODE

// ---- JSON: the reader --------------------------------------------------------------------------

namespace detail {

/// Length of the UTF-8 sequence at p, or 0 if there is none. Rejects overlong forms, surrogates and
/// code points beyond U+10FFFF.
inline std::size_t utf8Length(const char* cursor, const char* end) {
  const unsigned char* unit = reinterpret_cast<const unsigned char*>(cursor);
  const std::size_t left = static_cast<std::size_t>(end - cursor);
  const auto follows = [&](std::size_t pos, unsigned low, unsigned high) {
    return pos < left && unit[pos] >= low && unit[pos] <= high;
  };
  if (unit[0] < 0x80) return 1;
  if (unit[0] >= 0xC2 && unit[0] <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (unit[0] >= 0xE0 && unit[0] <= 0xEF) {
    const unsigned low = unit[0] == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = unit[0] == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (unit[0] >= 0xF0 && unit[0] <= 0xF4) {
    const unsigned low = unit[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned high = unit[0] == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

/// Marks the first of eight bytes that is a quote, a backslash, a control character or not ASCII,
/// and perhaps others behind it, by their highest bits.
inline uint64_t special(uint64_t bytes) {
  const uint64_t ones = 0x0101010101010101ULL;
  const uint64_t highs = 0x8080808080808080ULL;
  const uint64_t quote = bytes ^ (ones * '"');
  const uint64_t backslash = bytes ^ (ones * '\\');
  const uint64_t zeros = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
  const uint64_t control = (bytes - ones * 0x20) & ~bytes;
  return (zeros | control | bytes) & highs;
}

/// Whether no byte of a text is special.
inline bool isPlain(const char* text, std::size_t size) {
  uint64_t bytes = 0;
  if (size < 8) {
    memset(&bytes, ' ', 8);
    for (std::size_t pos = 0; pos < size; ++pos) reinterpret_cast<char*>(&bytes)[pos] = text[pos];
    return special(bytes) == 0;
  }
  const char* const last = text + size - 8;
  for (; text < last; text += 8) {
    memcpy(&bytes, text, 8);
    if (special(bytes) != 0) return false;
  }
  memcpy(&bytes, last, 8);
  return special(bytes) == 0;
}

/// The first special byte, or one of the few before it.
inline const char* skipPlain(const char* cursor, const char* end) {
  while (end - cursor >= 8) {
    uint64_t bytes;
    memcpy(&bytes, cursor, 8);
    const uint64_t marks = special(bytes);
    if (marks != 0) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      cursor += __builtin_ctzll(marks) / 8;
#endif
      break;
    }
    cursor += 8;
  }
  return cursor;
}

inline bool isDigit(char character) { return character >= '0' && character <= '9'; }

inline std::string quoted(const std::string& name) { return "'" + name + "'"; }

/// The limit of numbers that a graph stores as int.
const int64_t kIntMax = (std::numeric_limits<int>::max)();

}  // namespace detail

inline JsonReader::JsonReader(const char* text, std::size_t size, const JsonOptions& options)
    : begin_(text), end_(text + size), cursor_(text), depth_(0), options_(options) {}

inline void JsonReader::fail(JsonErrorCode code, const std::string& message,
                             std::size_t place) const {
  std::size_t line = 1;
  std::size_t line_begin = 0;
  for (std::size_t pos = 0; pos < place && begin_ + pos < end_; ++pos) {
    if (begin_[pos] == '\n') {
      ++line;
      line_begin = pos + 1;
    }
  }
  const std::size_t column = place - line_begin + 1;
  throw JsonError(code,
                  detail::printed("%s (line %zu, column %zu, offset %zu)", message.c_str(), line,
                                  column, place),
                  place, line, column);
}

inline void JsonReader::_fail(JsonErrorCode code, std::size_t place, const char* form, ...) const {
  va_list values;
  va_start(values, form);
  const std::string message = detail::formatText(form, values);
  va_end(values);
  fail(code, message, place);
}

inline void JsonReader::unexpected(const char* wanted) const {
  const std::size_t place = offset();
  if (cursor_ == end_) _fail(kJsonTruncated, place, "the text ends where %s should stand", wanted);
  const unsigned char character = static_cast<unsigned char>(*cursor_);
  const char* form = character >= 0x20 && character < 0x7F ? "'%c' where %s should stand"
                                                           : "byte 0x%02x where %s should stand";
  fail(kJsonSyntax, detail::printed(form, character, wanted));
}

inline void JsonReader::skipSpace() {
  for (;;) {
    while (cursor_ < end_ &&
           (*cursor_ == ' ' || *cursor_ == '\n' || *cursor_ == '\r' || *cursor_ == '\t')) {
      ++cursor_;
    }
    if (!options_.allow_comments || end_ - cursor_ < 2 || cursor_[0] != '/' || cursor_[1] != '/') {
      return;
    }
    while (cursor_ < end_ && *cursor_ != '\n') ++cursor_;
  }
}

inline char JsonReader::peek() {
  skipSpace();
  return cursor_ < end_ ? *cursor_ : '\0';
}

inline void JsonReader::enter() {
  if (++depth_ > options_.max_depth) {
    _fail(kJsonDepth, offset(), "nested deeper than %zu levels", options_.max_depth);
  }
  ++cursor_;
}

inline void JsonReader::beginObject() {
  if (peek() != '{') unexpected("an object");
  enter();
}

inline void JsonReader::beginList() {
  if (peek() != '[') unexpected("a list");
  enter();
}

inline bool JsonReader::nextElement(bool* first, char close, const char* where) {
  const char character = peek();
  if (character == close && cursor_ < end_) {
    ++cursor_;
    --depth_;
    return false;
  }
  if (*first) {
    *first = false;
    return true;
  }
  if (character != ',') unexpected(where);
  ++cursor_;
  if (options_.allow_comments && peek() == close && cursor_ < end_) {
    ++cursor_;
    --depth_;
    return false;
  }
  return true;
}

inline bool JsonReader::nextKey(bool* first, Slice* key) {
  if (!nextElement(first, '}', "',' or '}'")) return false;
  if (peek() != '"') unexpected("a key in quotes");
  *key = readString();
  if (peek() != ':') unexpected("':'");
  ++cursor_;
  return true;
}

inline bool JsonReader::nextItem(bool* first) {
  if (!nextElement(first, ']', "',' or ']'")) return false;
  if (peek() == ']') unexpected("a value");
  return true;
}

inline const char* JsonReader::checkUtf8(const char* cursor) const {
  const std::size_t length = detail::utf8Length(cursor, end_);
  if (length == 0) failHere(kJsonUtf8, cursor, "not UTF-8");
  return cursor + length;
}

inline const char* JsonReader::scanString(const char* cursor) const {
  for (;;) {
    cursor = detail::skipPlain(cursor, end_);
    if (cursor == end_) failHere(kJsonTruncated, cursor, "the text ends inside a string");
    const unsigned char character = static_cast<unsigned char>(*cursor);
    if (character == '"' || character == '\\') return cursor;
    if (character < 0x20 && !options_.allow_control_characters) {
      failHere(kJsonSyntax, cursor, "a control character inside a string must be escaped");
    }
    cursor = character < 0x80 ? cursor + 1 : checkUtf8(cursor);
  }
}

inline unsigned JsonReader::readHex4(const char* cursor) const {
  if (end_ - cursor < 4) failHere(kJsonTruncated, cursor, "the text ends inside an escape");
  unsigned value = 0;
  for (int pos = 0; pos < 4; ++pos) {
    const char character = cursor[pos];
    unsigned digit = 0;
    if (detail::isDigit(character)) {
      digit = static_cast<unsigned>(character - '0');
    } else if (character >= 'a' && character <= 'f') {
      digit = static_cast<unsigned>(character - 'a') + 10;
    } else if (character >= 'A' && character <= 'F') {
      digit = static_cast<unsigned>(character - 'A') + 10;
    } else {
      failHere(kJsonSyntax, cursor, "\\u wants four hexadecimal digits");
    }
    value = value * 16 + digit;
  }
  return value;
}

inline const char* JsonReader::decodeEscape(const char* cursor) {
  const char* const place = cursor;
  ++cursor;
  if (cursor == end_) failHere(kJsonTruncated, place, "the text ends inside an escape");
  static const char from[] = "\"\\/bfnrt";
  static const char target[] = "\"\\/\b\f\n\r\t";
  if (const char* simple = *cursor != '\0' ? strchr(from, *cursor) : nullptr) {
    scratch_ += target[simple - from];
    return cursor + 1;
  }
  if (*cursor != 'u') failHere(kJsonSyntax, place, "unknown escape");
  unsigned code = readHex4(cursor + 1);
  cursor += 5;
  if (code >= 0xDC00 && code <= 0xDFFF)
    failHere(kJsonUtf8, place, "second half of a surrogate pair");
  if (code >= 0xD800 && code <= 0xDBFF) {
    if (end_ - cursor < 2 || cursor[0] != '\\' || cursor[1] != 'u') {
      failHere(kJsonUtf8, place, "half of a surrogate pair");
    }
    const unsigned low = readHex4(cursor + 2);
    if (low < 0xDC00 || low > 0xDFFF) failHere(kJsonUtf8, place, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    cursor += 6;
  }
  const auto append = [this](unsigned byte) { scratch_ += static_cast<char>(byte); };
  if (code < 0x80) {
    append(code);
  } else if (code < 0x800) {
    append(0xC0 | (code >> 6));
    append(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    append(0xE0 | (code >> 12));
    append(0x80 | ((code >> 6) & 0x3F));
    append(0x80 | (code & 0x3F));
  } else {
    append(0xF0 | (code >> 18));
    append(0x80 | ((code >> 12) & 0x3F));
    append(0x80 | ((code >> 6) & 0x3F));
    append(0x80 | (code & 0x3F));
  }
  return cursor;
}

inline JsonReader::Slice JsonReader::readString() {
  if (peek() != '"') unexpected("a string");
  const char* start = cursor_ + 1;
  const char* cursor = scanString(start);
  if (*cursor == '"') {
    cursor_ = cursor + 1;
    return Slice{start, static_cast<std::size_t>(cursor - start)};
  }
  scratch_.assign(start, static_cast<std::size_t>(cursor - start));
  while (*cursor != '"') {
    cursor = decodeEscape(cursor);
    const char* stop = scanString(cursor);
    scratch_.append(cursor, static_cast<std::size_t>(stop - cursor));
    cursor = stop;
  }
  cursor_ = cursor + 1;
  return Slice{scratch_.data(), scratch_.size()};
}

inline JsonReader::Slice JsonReader::readNumber() {
  const char character = peek();
  if (character != '-' && !detail::isDigit(character)) unexpected("a number");
  const char* start = cursor_;
  const auto digits = [this]() {
    if (cursor_ == end_ || !detail::isDigit(*cursor_)) unexpected("a digit");
    while (cursor_ < end_ && detail::isDigit(*cursor_)) ++cursor_;
  };
  if (character == '-') ++cursor_;
  if (cursor_ < end_ && *cursor_ == '0') {
    ++cursor_;
    if (cursor_ < end_ && detail::isDigit(*cursor_)) {
      failHere(kJsonSyntax, start, "a number must not begin with 0");
    }
  } else {
    digits();
  }
  if (cursor_ < end_ && *cursor_ == '.') {
    ++cursor_;
    digits();
  }
  if (cursor_ < end_ && (*cursor_ == 'e' || *cursor_ == 'E')) {
    ++cursor_;
    if (cursor_ < end_ && (*cursor_ == '+' || *cursor_ == '-')) ++cursor_;
    digits();
  }
  return Slice{start, static_cast<std::size_t>(cursor_ - start)};
}

namespace detail {

/// Reads a decimal integer; false for anything else and for what does not fit in 64 bits.
inline bool parseInteger(const char* text, std::size_t size, int64_t* value) {
  const char* cursor = text;
  const char* end = text + size;
  const bool negative = cursor < end && *cursor == '-';
  if (negative) ++cursor;
  if (cursor == end || end - cursor > 19) return false;
  uint64_t magnitude = 0;
  for (; cursor < end; ++cursor) {
    if (!isDigit(*cursor)) return false;
    magnitude = magnitude * 10 + static_cast<uint64_t>(*cursor - '0');
  }
  const uint64_t limit = static_cast<uint64_t>((std::numeric_limits<int64_t>::max)());
  if (magnitude > limit + (negative ? 1 : 0)) return false;
  *value = negative ? static_cast<int64_t>(0 - magnitude) : static_cast<int64_t>(magnitude);
  return true;
}

/// What stands between whole part and fraction in the C library's numbers, which the locale says.
inline std::string decimalPoint() {
  char buffer[32];
  const int size = snprintf(buffer, sizeof(buffer), "%.1f", 0.5);
  return size > 2 ? std::string(buffer + 1, static_cast<std::size_t>(size) - 2) : std::string(".");
}

/// Reads a decimal number as the nearest double, infinity where it is too large, independent of the
/// locale. Returns false if text is left. Without streams, which take many times as long.
inline bool scanDouble(const std::string& text, double* value) {
  // The C library reads hexadecimal numbers and names too.
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  char* end = nullptr;
  *value = strtod(text.c_str(), &end);
  if (*end != '.') return *end == '\0' && end != text.c_str();
  std::string local = text;
  local.replace(static_cast<std::size_t>(end - text.c_str()), 1, decimalPoint());
  *value = strtod(local.c_str(), &end);
  return *end == '\0';
}

/// The double as text of `digits` digits, independent of the locale.
inline std::string printDouble(double value, int digits) {
  char buffer[64];  // the longest has 24 characters and a point of several bytes
  std::string text(
      buffer, static_cast<std::size_t>(snprintf(buffer, sizeof(buffer), "%.*g", digits, value)));
  const std::size_t point = text.find_first_not_of("0123456789+-e");
  if (point == std::string::npos || text[point] == '.') return text;
  const std::size_t fraction = text.find_first_of("0123456789", point);
  return text.replace(point, fraction - point, ".");
}

/// Reads a number in JSON's grammar as double, independent of the locale.
inline double parseDouble(const std::string& text) {
  double value = 0;
#if defined(__cpp_lib_to_chars)
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ec == std::errc()) return value;
#endif
  scanDouble(text, &value);
  return value;
}

/// `num` of a number: truncated towards zero and clamped to the range of int.
inline int toInt(double value) {
  if (value >= static_cast<double>((std::numeric_limits<int>::max)())) {
    return (std::numeric_limits<int>::max)();
  }
  if (value <= static_cast<double>((std::numeric_limits<int>::min)())) {
    return (std::numeric_limits<int>::min)();
  }
  return static_cast<int>(value);
}

}  // namespace detail

inline int64_t JsonReader::readInteger(const char* what, int64_t low, int64_t high) {
  const char character = peek();
  const std::size_t place = offset();
  if (cursor_ == end_) unexpected(what);
  if (character != '-' && !detail::isDigit(character)) {
    _fail(kJsonType, place, "%s must be an integer", what);
  }
  const Slice text = readNumber();
  int64_t value = 0;
  if (!detail::parseInteger(text.data, text.size, &value)) {
    for (std::size_t pos = 0; pos < text.size; ++pos) {
      if (strchr(".eE", text.data[pos]) == nullptr) continue;
      _fail(kJsonType, place, "%s must be an integer", what);
    }
    _fail(kJsonRange, place, "%s %s is out of range", what, text.str().c_str());
  }
  if (value < low || value > high) {
    _fail(kJsonRange, place, "%s %lld is not within %lld to %lld", what,
          static_cast<long long>(value), static_cast<long long>(low), static_cast<long long>(high));
  }
  return value;
}

inline void JsonReader::expectWord(const char* word) {
  for (const char* expected = word; *expected != '\0'; ++expected, ++cursor_) {
    if (cursor_ == end_ || *cursor_ != *expected) unexpected(word);
  }
}

inline bool JsonReader::readBool() {
  const char character = peek();
  if (character != 't' && character != 'f') unexpected("true or false");
  expectWord(character == 't' ? "true" : "false");
  return character == 't';
}

inline void JsonReader::readNull() {
  if (peek() != 'n') unexpected("null");
  expectWord("null");
}

inline void JsonReader::finish() {
  if (peek() != '\0' || cursor_ < end_) {
    failHere(kJsonTrailing, cursor_, "something follows the end of the JSON text");
  }
}

namespace detail {

/// Append-only text, mostly of short pieces. Kept in blocks, so that a long text is never moved
/// while it grows, or in memory of the host, which can grow in place.
class TextBuffer {
 public:
  class Memory {
   public:
    /// Returns memory of at least *size bytes, which it sets to what there is. The text so far, of
    /// `used` bytes, is at its beginning.
    virtual char* grow(std::size_t used, std::size_t* size) = 0;

   protected:
    ~Memory() = default;
  };

  explicit TextBuffer(Memory* memory = nullptr)
      : memory_(memory), size_(0), room_(nullptr), left_(0), ascii_(true) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { clear(); }

  /// Room for `count` more bytes, to be claimed with advance.
  PASSLIB_HOST_INLINE char* room(std::size_t count) {
    if (left_ < count) addBlock(count);
    return room_;
  }
  PASSLIB_HOST_INLINE void advance(std::size_t count) {
    room_ += count;
    left_ -= count;
  }
  /// Claims the room up to `end`.
  PASSLIB_INLINE void advanceTo(const char* end) { advance(static_cast<std::size_t>(end - room_)); }
  PASSLIB_HOST_INLINE void append(const char* text, std::size_t count) {
    memcpy(room(count), text, count);
    advance(count);
  }
  void append(const std::string& text) { append(text.data(), text.size()); }
  template <std::size_t TextSize>
  PASSLIB_INLINE void append(const char (&text)[TextSize]) {
    append(text, TextSize - 1);
  }
  PASSLIB_HOST_INLINE void push(char character) {
    *room(1) = character;
    advance(1);
  }
  /// Appends what was written before, at this place of a text in memory of the host.
  void repeat(std::size_t place, std::size_t count) {
    char* const target = room(count);
    memcpy(target, target - size() + place, count);
    advance(count);
  }
  /// Whether the text lies in one piece.
  PASSLIB_INLINE bool isWhole() const { return memory_ != nullptr; }
  PASSLIB_INLINE void noteNotAscii() { ascii_ = false; }
  bool isAscii() const { return ascii_; }
  std::size_t size() const { return size_ - left_; }

  /// Moves a text in blocks to memory of its size, block by block: a long one is never in memory
  /// twice.
  void moveTo(char* target) {
    closeBlock();
    for (Block& block : blocks_) {
      memcpy(target, block.text, block.size);
      target += block.size;
      free(block.text);
      block.text = nullptr;
    }
    clear();
  }
  void clear() {
    for (const Block& block : blocks_) free(block.text);
    blocks_.clear();
    room_ = nullptr;
    left_ = size_ = 0;
  }
  std::string str() {
    std::string text(size(), '\0');
    moveTo(&text[0]);
    return text;
  }

 private:
  struct Block {
    char* text;
    std::size_t size;
  };

  void closeBlock() {
    if (!blocks_.empty()) blocks_.back().size -= left_;
    size_ -= left_;
    left_ = 0;
  }
  __attribute__((__noinline__)) void addBlock(std::size_t count) {
    if (memory_ != nullptr) {
      const std::size_t used = size();
      size_ = (std::max)(2 * used, used + count);
      room_ = memory_->grow(used, &size_) + used;
      left_ = size_ - used;
      return;
    }
    closeBlock();
    // Little memory for small texts, few blocks for large ones.
    const std::size_t last = blocks_.empty() ? 256 : blocks_.back().size;
    const std::size_t size = (std::max)(count, std::min<std::size_t>(2 * last, 1 << 20));
    blocks_.push(Block{nullptr, 0});
    room_ = static_cast<char*>(malloc(size));
    if (room_ == nullptr) throw std::bad_alloc();
    blocks_.back() = Block{room_, size};
    size_ += size;
    left_ = size;
  }

  Memory* memory_;
  std::size_t size_;  // of that memory, or of the blocks
  PlainList<Block> blocks_;
  char* room_;
  std::size_t left_;
  bool ascii_;
};

/// Appends a string in quotes. `raw_controls`: leave control characters other than \n \r \t
/// unescaped, which is not JSON, but the format of MXNet.
inline void appendString(const char* text, std::size_t size, bool raw_controls, TextBuffer* out) {
  const char* cursor = text;
  const char* end = text + size;
  const char* written = text;
  if (isPlain(text, size)) {
    char* const room = out->room(size + 2);
    room[0] = '"';
    if (size != 0) memcpy(room + 1, text, size);
    room[size + 1] = '"';
    out->advance(size + 2);
    return;
  }
  out->push('"');
  while (cursor < end) {
    cursor = skipPlain(cursor, end);
    if (cursor == end) break;
    const unsigned char character = static_cast<unsigned char>(*cursor);
    if (character >= 0x80) {
      const std::size_t length = utf8Length(cursor, end);
      if (length == 0) {
        const std::size_t place = static_cast<std::size_t>(cursor - text);
        throw JsonError(kJsonUtf8,
                        printed("a string holds bytes that are not UTF-8, which JSON cannot "
                                "express (byte %zu of the string)",
                                place),
                        place, 1, place + 1);
      }
      out->noteNotAscii();
      cursor += length;
      continue;
    }
    if (character >= 0x20 && character != '"' && character != '\\') {
      ++cursor;
      continue;
    }
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char target[] = "\"\\nrtbf";
    const char* simple = character != 0 ? strchr(from, static_cast<char>(character)) : nullptr;
    const bool plain =
        simple == nullptr ? character >= 0x20 || raw_controls : raw_controls && simple - from >= 5;
    if (plain) {
      ++cursor;
      continue;
    }
    out->append(written, static_cast<std::size_t>(cursor - written));
    if (simple != nullptr) {
      out->push('\\');
      out->push(target[simple - from]);
    } else {
      const char digits[] = "0123456789abcdef";
      out->append("\\u00");
      out->push(digits[character >> 4]);
      out->push(digits[character & 15]);
    }
    written = ++cursor;
  }
  out->append(written, static_cast<std::size_t>(end - written));
  out->push('"');
}

/// Prints a number to `target`, which has room for 20 bytes, and returns its end.
inline char* printInteger(int64_t value, char* target) {
  if (value >= 0 && value < 10) {
    *target = static_cast<char>('0' + value);
    return target + 1;
  }
  char digits[20];
  char* cursor = digits + sizeof(digits);
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do {
    *--cursor = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--cursor = '-';
  const std::size_t size = static_cast<std::size_t>(digits + sizeof(digits) - cursor);
  memcpy(target, cursor, size);
  return target + size;
}

/// A JSON value with its children as it was read, to become text or a JsonVal. An item names its
/// relatives by their numbers; that of the root, 0, stands for none. A child has a higher number
/// than its parent.
class JsonTree {
 public:
  typedef JsonReader::Slice Slice;
  struct Item {
    std::size_t parent;
    std::size_t first;  // child
    std::size_t last;
    std::size_t next;   // child of the same parent
    std::size_t count;  // of children
    std::size_t key;    // where it begins in the texts
    std::size_t key_size;
    std::size_t text;  // of a scalar
    std::size_t text_size;
    std::size_t place;  // behind the key of a member, for errors
    JsonType type;
    bool lines;  // whether MXNet writes the children on lines
  };

  explicit JsonTree(JsonType type = ERR) { clear(type); }
  /// Leaves an empty root of this type.
  void clear(JsonType type) {
    items_.clear();
    texts_.clear();
    items_.addZeros(1);
    items_[0].type = type;
  }
  PASSLIB_INLINE std::size_t size() const { return items_.size(); }
  PASSLIB_INLINE const Item& operator[](std::size_t item) const { return items_[item]; }
  PASSLIB_INLINE Slice key(const Item& item) const {
    return Slice{texts_.begin() + item.key, item.key_size};
  }
  PASSLIB_INLINE Slice text(const Item& item) const {
    return Slice{texts_.begin() + item.text, item.text_size};
  }
  bool isComposite(std::size_t item) const {
    return items_[item].type == LIST || items_[item].type == MAP;
  }

  void setType(std::size_t item, JsonType type) {
    items_[item].type = type;
    Item& parent = items_[items_[item].parent];
    if (isComposite(item) && item != 0 && parent.type == LIST) parent.lines = true;
  }
  /// `text`: of a string without escapes, otherwise as in JSON.
  void setScalar(std::size_t item, JsonType type, const Slice& text) {
    items_[item].type = type;
    items_[item].text_size = text.size;
    items_[item].text = keep(text);
  }
  /// Adds a child to a list, or a member to an object.
  std::size_t add(std::size_t parent, const Slice& key = Slice{"", 0}, std::size_t place = 0);
  /// Sorts the members of an object by key. Returns null, or the first that has the key of one
  /// before it.
  const Item* sort(std::size_t object);
  /// Appends an item as JSON, on one line or in the layout of MXNet's writer, of which `depth` is
  /// the indentation.
  void print(std::size_t root, bool pretty, std::size_t depth, TextBuffer* out) const;
  /// Adds the members of the root.
  void print(JsonMembers* members) const;

 private:
  struct Key {
    Slice text;
    std::size_t item;
  };
  static int compare(const void* left, const void* right) {
    const Key& first = *static_cast<const Key*>(left);
    const Key& second = *static_cast<const Key*>(right);
    if (first.text < second.text) return -1;
    return second.text < first.text || first.item > second.item ? 1 : -1;
  }
  std::size_t keep(const Slice& text) {
    const std::size_t place = texts_.size();
    texts_.reserve(text.size + 1);  // no slice is null, not even that of an empty text
    if (text.size != 0) memcpy(texts_.add(text.size), text.data, text.size);
    return place;
  }
  void begin(std::size_t item, bool pretty, std::size_t depth, TextBuffer* out) const;

  PlainList<Item> items_;
  PlainList<char> texts_;
};

inline std::size_t JsonTree::add(std::size_t parent, const Slice& key, std::size_t place) {
  const std::size_t number = items_.size();
  items_.addZeros(1);
  Item& item = items_[number];
  item.parent = parent;
  item.key_size = key.size;
  item.key = keep(key);
  item.place = place;
  Item& above = items_[parent];
  (above.count == 0 ? above.first : items_[above.last].next) = number;
  above.last = number;
  ++above.count;
  if (above.count > (above.type == MAP ? 1u : 10u)) above.lines = true;
  return number;
}

inline const JsonTree::Item* JsonTree::sort(std::size_t object) {
  PlainList<Key> keys;
  bool sorted = true;
  for (std::size_t item = items_[object].first; item != 0; item = items_[item].next) {
    const Key next = {key(items_[item]), item};
    sorted = sorted && (keys.empty() || keys.back().text < next.text);
    keys.push(next);
  }
  if (sorted) return nullptr;
  qsort(keys.begin(), keys.size(), sizeof(Key), &compare);
  std::size_t twice = 0;
  for (std::size_t pos = 1; pos < keys.size(); ++pos) {
    items_[keys[pos - 1].item].next = keys[pos].item;
    // Sorted: if it is not before the next one, it is the same.
    if (keys[pos - 1].text < keys[pos].text || (twice != 0 && twice < keys[pos].item)) continue;
    twice = keys[pos].item;
  }
  items_[object].first = keys[0].item;
  items_[object].last = keys.back().item;
  items_[keys.back().item].next = 0;
  return twice == 0 ? nullptr : &items_[twice];
}

/// How many levels the layout of MXNet's writer indents at most, here and in GraphWriter: the text
/// of what is deeply nested would grow with the square of its depth.
const std::size_t kMostIndented = 64;

inline void appendLine(std::size_t depth, TextBuffer* out) {
  const std::size_t size = 2 * (std::min)(depth, kMostIndented);
  out->push('\n');
  memset(out->room(size), ' ', size);
  out->advance(size);
}

/// Writes what comes before the children of an item, or all of a scalar.
inline void JsonTree::begin(std::size_t item, bool pretty, std::size_t depth,
                            TextBuffer* out) const {
  const Item& from = items_[item];
  if (from.type == STR) return appendString(text(from).data, from.text_size, pretty, out);
  if (!isComposite(item)) return out->append(text(from).data, from.text_size);
  out->push(from.type == LIST ? '[' : '{');
  if (pretty && from.lines) appendLine(depth + 1, out);
}

inline void JsonTree::print(std::size_t root, bool pretty, std::size_t depth,
                            TextBuffer* out) const {
  std::size_t item = root;
  begin(item, pretty, depth, out);
  for (;;) {
    if (items_[item].first != 0) {
      item = items_[item].first;
      ++depth;
    } else {
      // Those that end here, up to one with another child behind it.
      for (bool leaf = true;; leaf = false) {
        if (!leaf && pretty && items_[item].lines) appendLine(depth, out);
        if (isComposite(item)) out->push(items_[item].type == LIST ? ']' : '}');
        if (item == root) return;
        if (items_[item].next != 0) break;
        item = items_[item].parent;
        --depth;
      }
      const bool lines = pretty && items_[items_[item].parent].lines;
      item = items_[item].next;
      out->append(", ");
      if (lines) appendLine(depth, out);
    }
    if (items_[items_[item].parent].type == MAP) {
      appendString(key(items_[item]).data, items_[item].key_size, pretty, out);
      out->append(": ");
    }
    begin(item, pretty, depth, out);
  }
}

inline void JsonTree::print(JsonMembers* members) const {
  for (std::size_t item = items_[0].first; item != 0; item = items_[item].next) {
    TextBuffer out;
    print(item, false, 0, &out);
    out.moveTo(members->add(key(items_[item]), out.size()));
  }
}

}  // namespace detail

inline void JsonReader::_readItem(detail::JsonTree* tree, std::size_t root) {
  for (std::size_t item = root;;) {
    const char character = peek();
    switch (character) {
      case '{':
        beginObject();
        tree->setType(item, MAP);
        break;
      case '[':
        beginList();
        tree->setType(item, LIST);
        break;
      case '"':
        tree->setScalar(item, STR, readString());
        break;
      case 't':
      case 'f':
        readBool();
        tree->setScalar(item, BOOL, character == 't' ? Slice{"true", 4} : Slice{"false", 5});
        break;
      case 'n':
        readNull();
        tree->setScalar(item, NIL, Slice{"null", 4});
        break;
      default:
        if (character != '-' && !detail::isDigit(character)) unexpected("a value");
        tree->setScalar(item, NUM, readNumber());
    }
    const bool composite = tree->isComposite(item);
    if (item == root && !composite) return;
    for (std::size_t open = composite ? item : (*tree)[item].parent;; open = (*tree)[open].parent) {
      bool first = (*tree)[open].count == 0;
      if ((*tree)[open].type == LIST) {
        if (nextItem(&first)) {
          item = tree->add(open);
          break;
        }
      } else {
        Slice key;
        if (nextKey(&first, &key)) {
          item = tree->add(open, key, offset());
          break;
        }
        _sort(tree, open);
      }
      if (open == root) return;
    }
  }
}

inline void JsonReader::_sort(detail::JsonTree* tree, std::size_t object) const {
  const detail::JsonTree::Item* const twice = tree->sort(object);
  if (twice == nullptr) return;
  _fail(kJsonDuplicateKey, twice->place, "the key '%s' occurs twice in one object",
        tree->key(*twice).str().c_str());
}

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

// ---- JSON: values ------------------------------------------------------------------------------

namespace detail {

/// Gets `num` of a number's text. Returns whether the text says no more.
inline bool scanNum(const std::string& text, int* num) {
  int64_t integer = 0;
  if (!parseInteger(text.data(), text.size(), &integer)) {
    *num = toInt(parseDouble(text));
    return false;
  }
  *num = toInt(static_cast<double>(integer));
  return *num == integer && text != "-0";
}

template <typename Value>
Value makeNumber(std::string text) {
  int num = 0;
  const bool same = scanNum(text, &num);
  return Value(NUM, num, same ? std::string() : std::move(text));
}

/// The text of a number: the original one, unless `num` was changed since.
template <typename Value>
std::string numberText(const Value& value) {
  int num = 0;
  if (!value.str.empty()) scanNum(value.str, &num);
  return !value.str.empty() && num == value.num ? value.str : printed("%d", value.num);
}

/// Moves out of `value` every child that has children of its own.
template <typename Value>
void takeDeepChildren(Value* value, std::vector<Value>* taken) {
  const auto take = [taken](Value* child) {
    if (!child->list.empty() || !child->map.empty()) append(taken) = std::move(*child);
  };
  for (Value& child : span(value->list)) take(&child);
  for (auto& member : value->map) take(&member.second);
}

/// Adds a member to an object, behind those with lower keys, which are there.
template <typename Value>
Value* addMember(Value key, std::map<Value, Value>* object) {
  return &object->emplace_hint(object->end(), std::move(key), Value())->second;
}

/// A value and that which becomes its copy.
template <typename Value>
struct JsonCopy {
  const Value* from;
  Value* target;
};

/// Copies type, number and text, and makes room for children, which are queued.
template <typename Value>
void copyShallow(const Value& from, Value* target, PlainList<JsonCopy<Value> >* queue) {
  target->type = from.type;
  target->num = from.num;
  target->str = from.str;
  makeItems(&target->list, from.list.size());
  for (std::size_t pos = 0; pos < from.list.size(); ++pos) {
    queue->push(JsonCopy<Value>{&from.list[pos], &target->list[pos]});
  }
  for (const auto& member : from.map) {
    queue->push(JsonCopy<Value>{&member.second, addMember(member.first, &target->map)});
  }
}

inline int sign(bool less, bool greater) { return less ? -1 : greater ? 1 : 0; }

/// Order of two values without their children: type, number, text.
template <typename Value>
int compareScalars(const Value& left, const Value& right) {
  if (left.type != right.type) return sign(left.type<right.type, left.type> right.type);
  if (left.type == STR) return sign(left.str < right.str, right.str < left.str);
  if (left.type == BOOL) return sign(left.num<right.num, left.num> right.num);
  if (left.type == NUM) {
    if (left.str.empty() && right.str.empty()) return sign(left.num<right.num, left.num> right.num);
    const double left_number = left.toDouble();
    const double right_number = right.toDouble();
    if (left_number < right_number || right_number < left_number)
      return sign(left_number < right_number, right_number < left_number);
    const std::string text_a = numberText(left);
    const std::string text_b = numberText(right);
    return sign(text_a < text_b, text_b < text_a);
  }
  return 0;
}

/// Lexicographic order of two values with all their children; iterative.
template <typename Value>
int compareJson(const Value& left, const Value& right) {
  // A step without values compares two lengths, after all elements were equal.
  struct Step {
    const Value* left;
    const Value* right;
    int verdict;
  };
  PlainList<Step> steps;
  steps.push(Step{&left, &right, 0});
  while (!steps.empty()) {
    const Step step = steps.back();
    steps.pop();
    const int order = step.left == nullptr ? step.verdict : compareScalars(*step.left, *step.right);
    if (order != 0) return order;
    if (step.left == nullptr || (step.left->type != LIST && step.left->type != MAP)) continue;
    const bool lists = step.left->type == LIST;
    const std::size_t size_a = lists ? step.left->list.size() : step.left->map.size();
    const std::size_t size_b = lists ? step.right->list.size() : step.right->map.size();
    steps.push(Step{nullptr, nullptr, sign(size_a<size_b, size_a> size_b)});
    const std::size_t first_child = steps.size();
    if (lists) {
      for (std::size_t pos = 0; pos < (std::min)(size_a, size_b); ++pos) {
        steps.push(Step{&step.left->list[pos], &step.right->list[pos], 0});
      }
    } else {
      auto pos = step.left->map.begin();
      auto other_pos = step.right->map.begin();
      for (; pos != step.left->map.end() && other_pos != step.right->map.end();
           ++pos, ++other_pos) {
        steps.push(Step{&pos->first, &other_pos->first, 0});
        steps.push(Step{&pos->second, &other_pos->second, 0});
      }
    }
    for (std::size_t low = first_child, high = steps.size(); low + 1 < high; ++low) {
      const Step first = steps[low];
      steps[low] = steps[--high];
      steps[high] = first;
    }
  }
  return 0;
}

/// Walks a value in the order of its text, iteratively.
template <typename Value>
class JsonWalk {
 public:
  /// kBegin: a container begins, or a scalar; kChild: a child follows; kClose: a container ends.
  enum Event { kBegin, kChild, kClose, kEnd };
  explicit JsonWalk(const Value& root) : value(&root), key(nullptr) {}
  Event next() {
    if (event_ == kEnd || event_ == kChild) return event_ = kBegin;
    if (event_ == kBegin && (value->type == LIST || value->type == MAP)) {
      open_.push(Frame{value, 0, nullptr});
    }
    if (event_ == kClose) open_.pop();
    if (open_.empty()) return event_ = kEnd;
    Frame& top = open_.back();
    index = top.index++;
    if (top.container->type == LIST && index < top.container->list.size()) {
      value = &top.container->list[index];
      key = nullptr;
      return event_ = kChild;
    }
    if (top.container->type == MAP && index < top.container->map.size()) {
      const std::map<Value, Value>& map = top.container->map;
      const auto member = top.key == nullptr ? map.begin() : map.upper_bound(*top.key);
      key = top.key = &member->first;
      value = &member->second;
      return event_ = kChild;
    }
    value = top.container;
    return event_ = kClose;
  }

  const Value* value;     ///< what begins, follows or ends
  const Value* key;       ///< of the child; null in lists
  std::size_t index = 0;  ///< of a child; of what ends, the number of its children

 private:
  struct Frame {
    const Value* container;
    std::size_t index;
    const Value* key;  // of the last member; iterators of a library's debug mode are not plain
  };
  PlainList<Frame> open_;
  Event event_ = kEnd;
};

template <typename Value>
void appendScalar(const Value& value, TextBuffer* out) {
  switch (value.type) {
    case STR:
      appendString(value.str.data(), value.str.size(), false, out);
      break;
    case NUM:
      out->append(numberText(value));
      break;
    case BOOL:
      out->append(std::string(value.num != 0 ? "true" : "false"));
      break;
    case NIL:
      out->append("null");
      break;
    default:
      throw std::invalid_argument("a JsonVal of type ERR cannot be written as JSON");
  }
}

/// Writes a value, with these texts between items, and between key and value.
template <typename Value>
void printValue(const Value& root, const std::string& comma, const std::string& colon,
                TextBuffer* out) {
  typedef JsonWalk<Value> Walk;
  Walk walk(root);
  for (;;) {
    const typename Walk::Event event = walk.next();
    const bool in_list = walk.value->type == LIST;
    if (event == Walk::kEnd) return;
    if (event == Walk::kClose) {
      out->push(in_list ? ']' : '}');
    } else if (event == Walk::kChild) {
      if (walk.index > 0) out->append(comma);
      if (walk.key == nullptr) continue;
      // Keys of other types, which JSON does not allow, are written as strings.
      const std::string name = walk.key->type == STR ? walk.key->str : walk.key->dump();
      appendString(name.data(), name.size(), false, out);
      out->append(colon);
    } else if (in_list || walk.value->type == MAP) {
      out->push(in_list ? '[' : '{');
    } else {
      appendScalar(*walk.value, out);
    }
  }
}

/// Makes the value that a tree describes.
template <typename Value>
Value valueOf(const JsonTree& tree) {
  Value root;
  PlainList<Value*> targets;  // of the items
  targets.addZeros(tree.size());
  targets[0] = &root;
  for (std::size_t pos = 0; pos < tree.size(); ++pos) {
    const JsonTree::Item& item = tree[pos];
    Value* const target = targets[pos];
    target->type = item.type;
    if (item.type == STR) target->str = tree.text(item).str();
    if (item.type == NUM) *target = makeNumber<Value>(tree.text(item).str());
    if (item.type == BOOL) target->num = tree.text(item) == "true" ? 1 : 0;
    if (item.type == LIST) makeItems(&target->list, item.count);
    std::size_t nth = 0;
    for (std::size_t child = item.first; child != 0; child = tree[child].next) {
      targets[child] = item.type == LIST
                           ? &target->list[nth++]
                           : addMember(Value(tree.key(tree[child]).str()), &target->map);
    }
  }
  return root;
}

}  // namespace detail

template <typename Unused>
void JsonValue<Unused>::clear() {
  std::vector<JsonValue> deep;
  detail::takeDeepChildren(this, &deep);
  list.clear();
  map.clear();
  while (!deep.empty()) {
    JsonValue last = std::move(deep.back());
    deep.pop_back();
    detail::takeDeepChildren(&last, &deep);
    last.list.clear();
    last.map.clear();
  }
}

template <typename Unused>
JsonValue<Unused>::JsonValue(const JsonValue& other) : type(other.type), num(other.num) {
  detail::PlainList<detail::JsonCopy<JsonValue> > queue;
  detail::copyShallow(other, this, &queue);
  while (!queue.empty()) {
    const detail::JsonCopy<JsonValue> next = queue.back();
    queue.pop();
    detail::copyShallow(*next.from, next.target, &queue);
  }
}

template <typename Unused>
JsonValue<Unused>& JsonValue<Unused>::operator=(const JsonValue& other) {
  if (this != &other) {
    JsonValue copy(other);
    *this = std::move(copy);
  }
  return *this;
}

template <typename Unused>
JsonValue<Unused>& JsonValue<Unused>::operator=(JsonValue&& other) noexcept {
  // `other` may be a child of this value: it must be moved out before the children go.
  JsonValue taken(std::move(other));
  this->~JsonValue();
  return *::new (static_cast<void*>(this)) JsonValue(std::move(taken));
}

template <typename Unused>
JsonValue<Unused> JsonValue<Unused>::integer(int64_t value) {
  return detail::makeNumber<JsonValue>(detail::printed("%lld", static_cast<long long>(value)));
}

template <typename Unused>
JsonValue<Unused> JsonValue<Unused>::real(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("JSON has no NaN and no infinity");
  std::string text;
  for (int digits = 15; digits <= 17; ++digits) {
#if defined(__cpp_lib_to_chars)
    char buffer[32];  // the longest has 24 characters
    const std::to_chars_result result =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits);
    text.assign(buffer, result.ptr);
#else
    text = detail::printDouble(value, digits);
#endif
    if (!(detail::parseDouble(text) < value) && !(detail::parseDouble(text) > value)) break;
  }
  return detail::makeNumber<JsonValue>(text);
}

template <typename Unused>
double JsonValue<Unused>::toDouble() const {
  if (type == BOOL) return num;
  if (type != NUM) return 0;
  return str.empty() ? num : detail::parseDouble(detail::numberText(*this));
}

template <typename Unused>
bool JsonValue<Unused>::toInteger(int64_t* value) const {
  if (type != NUM) return false;
  const std::string text = detail::numberText(*this);
  return detail::parseInteger(text.data(), text.size(), value);
}

template <typename Unused>
bool JsonValue<Unused>::operator<(const JsonValue& other) const {
  if (type == STR && other.type == STR) return str < other.str;  // keys: the usual case
  return detail::compareJson(*this, other) < 0;
}

template <typename Unused>
bool JsonValue<Unused>::operator==(const JsonValue& other) const {
  return detail::compareJson(*this, other) == 0;
}

template <typename Unused>
std::string JsonValue<Unused>::dump() const {
  detail::TextBuffer out;
  detail::printValue(*this, ",", " : ", &out);
  return out.str();
}

template <typename Unused>
std::string JsonValue<Unused>::toString() const {
  std::string out;
  typedef detail::JsonWalk<JsonValue> Walk;
  Walk walk(*this);
  for (;;) {
    const typename Walk::Event event = walk.next();
    const bool in_list = walk.value->type == LIST;
    if (event == Walk::kEnd) return out;
    if (event == Walk::kClose) {
      if (walk.index > 0) out += ',';
      out += in_list ? "])" : "})";
    } else if (event == Walk::kChild) {
      if (walk.index > 0) out += ',';
      if (walk.key != nullptr) out.append(walk.key->toString()).append(" : ");
    } else {
      const bool text = walk.value->type == STR;
      switch (walk.value->type) {
        case STR:
        case NUM:
          out.append(text ? "json(STR:" : "json(INT:");
          out.append(text ? walk.value->str : detail::numberText(*walk.value)).append(")");
          break;
        case LIST:
        case MAP:
          out += in_list ? "json(LIST:[" : "json(MAP:{";
          break;
        case BOOL:
          out += walk.value->num != 0 ? "json(BOOL:true)" : "json(BOOL:false)";
          break;
        case NIL:
          out += "json(NULL)";
          break;
        default:
          out += "json(Error)";
      }
    }
  }
}

PASSLIB_DEMANDED JsonVal JsonReader::readValue() {
  detail::JsonTree tree;
  _readItem(&tree, 0);
  return detail::valueOf<PASSLIB_LATER(JsonVal)>(tree);
}

namespace detail {

template <typename Unused>
struct GraphMap : GraphValues {
  typedef std::map<std::string, JsonValue<Unused> > Map;
  Map map;

  static GraphMap* make(Map&& map) {
    Owner<GraphMap> made(new GraphMap());
    made->copy = &copyMap;
    made->print = &printMap;
    made->get_string = &findString;
    made->destroy = &destroyMap;
    made->map = std::move(map);
    return made.release();
  }
  static GraphMap* make(const JsonMembers& texts) {
    Map map;
    JsonReader::Slice key;
    JsonReader::Slice text;
    for (JsonMembers::Walk walk(texts); walk.next(&key, &text);) {
      map.emplace_hint(map.end(), key.str(), readAgain(text).template readValue<Unused>());
    }
    return make(std::move(map));
  }
  static const Map& mapOf(const GraphValues& values) {
    return static_cast<const GraphMap&>(values).map;
  }
  static GraphValues* copyMap(const GraphValues& values) { return make(Map(mapOf(values))); }
  static void printMap(const GraphValues& values, JsonMembers* members) {
    for (const auto& member : mapOf(values)) {
      TextBuffer out;
      printValue(member.second, ", ", ": ", &out);
      const std::string& key = member.first;
      out.moveTo(members->add(JsonReader::Slice{key.data(), key.size()}, out.size()));
    }
  }
  static bool findString(const GraphValues& values, const char* key, std::string* text) {
    const auto found = mapOf(values).find(key);
    if (found == mapOf(values).end() || found->second.type != STR) return false;
    *text = found->second.str;
    return true;
  }
  static void destroyMap(GraphValues* values) { delete static_cast<GraphMap*>(values); }
};

}  // namespace detail

template <typename Unused>
GraphAttributes::Map& GraphAttributes::read() const {
  detail::GraphValues* present = values_.load();
  if (present == nullptr) {
    detail::Owner<Made<Unused> > made(Made<Unused>::make(texts_));
    present = values_.setFirst(made.get());
    if (present == nullptr) present = made.release();  // else another thread was faster
  }
  return static_cast<Made<Unused>*>(present)->map;
}

template <typename Unused>
JsonValue<Unused> JsonValue<Unused>::parse(const std::string& json) {
  JsonReader reader(json.data(), json.size());
  JsonValue value = reader.readValue<Unused>();
  reader.finish();
  return value;
}

template <typename Unused>
JsonValue<Unused> JsonValue<Unused>::parse(const std::string& json, unsigned int* idx) {
  const std::size_t start = std::min<std::size_t>(*idx, json.size());
  JsonReader reader(json.data() + start, json.size() - start);
  JsonValue value = reader.readValue<Unused>();
  *idx = static_cast<unsigned int>(start + reader.offset());
  return value;
}

// ---- the graph: reading ------------------------------------------------------------------------

namespace detail {

#ifdef PASSLIB_HOST
/// A hash of text under a key that differs from process to process (SipHash-1-3): texts of a file
/// cannot be chosen so that they collide.
class TextHash {
 public:
  std::size_t operator()(const char* text, std::size_t size) const {
    uint64_t state[4] = {key()[0] ^ 0x736f6d6570736575ULL, key()[1] ^ 0x646f72616e646f6dULL,
                         key()[0] ^ 0x6c7967656e657261ULL, key()[1] ^ 0x7465646279746573ULL};
    uint64_t word = 0;
    std::size_t pos = 0;
    for (; pos + 8 <= size; pos += 8) {
      memcpy(&word, text + pos, 8);
      absorb(word, state);
    }
    word = 0;
    memcpy(&word, text + pos, size - pos);
    absorb(word | (static_cast<uint64_t>(size) << 56), state);
    state[2] ^= 0xff;
    for (int round = 0; round < 3; ++round) mix(state);
    return static_cast<std::size_t>(state[0] ^ state[1] ^ state[2] ^ state[3]);
  }
  /// For containers of std::string and of std::string_view.
  template <typename TextType>
  std::size_t operator()(const TextType& text) const {
    return (*this)(text.data(), text.size());
  }

 private:
  static const uint64_t* key() {
    static const std::pair<uint64_t, uint64_t> made(makeKey(), makeKey());
    static const uint64_t words[2] = {made.first, made.second};
    return words;
  }
  static uint64_t makeKey() {
    uint64_t word = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&word));
    try {
      std::random_device device;
      word ^= (static_cast<uint64_t>(device()) << 32) ^ device();
    } catch (const std::exception&) {
      // No random device: the address, which differs from process to process, must do.
    }
    return word;
  }
  static uint64_t turn(uint64_t word, int bits) { return (word << bits) | (word >> (64 - bits)); }
  static void mix(uint64_t* state) {
    state[0] += state[1];
    state[1] = turn(state[1], 13) ^ state[0];
    state[0] = turn(state[0], 32);
    state[2] += state[3];
    state[3] = turn(state[3], 16) ^ state[2];
    state[0] += state[3];
    state[3] = turn(state[3], 21) ^ state[0];
    state[2] += state[1];
    state[1] = turn(state[1], 17) ^ state[2];
    state[2] = turn(state[2], 32);
  }
  static void absorb(uint64_t word, uint64_t* state) {
    state[3] ^= word;
    mix(state);
    state[0] ^= word;
  }
};

/// Finds names that occur twice. Their hashes are computed while the nodes are at hand: later they
/// are far away in memory, and are looked at only if they most likely have the same name.
class NameTable {
 public:
  /// The name of the next node.
  void add(const std::string& name) { hashes_.push(TextHash()(name)); }
  void clear() { hashes_.clear(); }
  /// Returns the position of the first of these nodes, whose names were added, that has the name of
  /// one before it; their number if there is none.
  std::size_t repeated(const std::vector<Node*>& nodes) const {
    const std::size_t count = hashes_.size();
    std::size_t mask = 15;
    while (mask < count + count / 2) mask = mask * 2 + 1;
    PlainList<Slot> slots;
    slots.addZeros(mask + 1);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (pos + 8 < count) __builtin_prefetch(&slots[hashes_[pos + 8] & mask]);
      const uint32_t high = static_cast<uint32_t>(hashes_[pos] >> 32);
      std::size_t place = hashes_[pos] & mask;
      for (; slots[place].next != 0; place = (place + 1) & mask) {
        if (slots[place].high != high) continue;
        if (nodes[slots[place].next - 1]->name == nodes[pos]->name) return pos;
      }
      slots[place] = Slot{static_cast<uint32_t>(pos + 1), high};
    }
    return count;
  }

 private:
  struct Slot {
    uint32_t next;  // behind the position of the node; 0: none
    uint32_t high;  // half of the hash
  };
  PlainList<uint64_t> hashes_;
};

#endif  // PASSLIB_HOST

/// Sets an attribute or an option. Returns false if there was one of this key. All that a library
/// does with texts of others goes this way: every other function of the map that sets something is
/// compiled anew.
__attribute__((__noinline__)) inline bool setText(
    const JsonReader::Slice& key, const JsonReader::Slice& text,
    std::unordered_map<std::string, std::string>* texts) {
  const auto added = texts->emplace(key.str(), text.str());
  if (!added.second) added.first->second.assign(text.data, text.size);
  return added.second;
}

}  // namespace detail

PASSLIB_END_CODE

inline void NodeAttributes::swap(NodeAttributes& other) noexcept {
  other.map_.store(map_.exchange(other.known()));
  std::swap(shared_, other.shared_);
  std::swap(lent_, other.lent_);
  std::swap(types_, other.types_);
  std::swap(has_types_, other.has_types_);
}

inline void NodeAttributes::copy(const NodeAttributes& other) {
  const bool has_types = __atomic_load_n(&other.has_types_, __ATOMIC_ACQUIRE);
  if (other.known() != nullptr) {
    map_.store(new Map(*other.known()));
  } else if (other.lent_) {
    _setPacked(other.shared_, other.words());
  } else if (other.shared_ != nullptr) {
    __atomic_add_fetch(other.shared_ - 1, 1, __ATOMIC_RELAXED);
    shared_ = other.shared_;
  }
  types_ = other.types_;
  has_types_ = has_types;
}

inline bool NodeAttributes::equals(const NodeAttributes& other) const {
  if (size() != other.size()) return false;
  if (empty()) return true;
  const bool same_types = types_.node == other.types_.node && types_.call == other.types_.call;
  if (known() != nullptr || other.known() != nullptr || !same_types) {
    return whole() == other.whole();
  }
  if (shared_ == other.shared_) return true;
  return words() == other.words() &&
         memcmp(shared_, other.shared_, words() * sizeof(uint32_t)) == 0;
}

inline bool NodeAttributes::_find(const char* key, std::size_t size,
                                  JsonReader::Slice* text) const {
  if (types_.node != 0 && detail::isOfTypes(key, size)) {
    if (known() != nullptr) {
      whole();
    } else {
      const FlatText* const texts = detail::readTypes(types_);
      if (texts == nullptr) return false;
      const FlatText& found = texts[key[6] == 's' ? 0 : 1];
      *text = JsonReader::Slice{found.data, static_cast<std::size_t>(found.size)};
      return true;
    }
  }
  if (known() != nullptr) {
    const Map::const_iterator found = known()->find(std::string(key, size));
    if (found == known()->end()) return false;
    *text = JsonReader::Slice{found->second.data(), found->second.size()};
    return true;
  }
  const char* cursor = shared_ == nullptr ? nullptr : texts();
  for (std::size_t pos = 0; cursor != nullptr && pos < shared_[0]; ++pos) {
    const uint32_t* sizes = &shared_[2 + 2 * pos];
    if (sizes[0] == size && memcmp(cursor, key, size) == 0) {
      *text = JsonReader::Slice{cursor + size, sizes[1]};
      return true;
    }
    cursor += static_cast<std::size_t>(sizes[0]) + sizes[1];
  }
  return false;
}

inline bool NodeAttributes::_isStill(const uint32_t* packed) const {
  const Map* const map = known();
  if (map == nullptr) return shared_ == packed;
  const std::size_t types =
      types_.node == 0 ? 0 : map->count("__ext_shape__") + map->count("__ext_dtype__");
  if (map->size() != packed[0] + types) return false;
  const char* cursor = reinterpret_cast<const char*>(&packed[2 + 2 * packed[0]]);
  for (std::size_t pos = 0; pos < packed[0]; ++pos) {
    const uint32_t* const sizes = &packed[2 + 2 * pos];
    const Map::const_iterator found = map->find(std::string(cursor, sizes[0]));
    if (found == map->end() || found->second.size() != sizes[1]) return false;
    cursor += sizes[0];
    if (memcmp(found->second.data(), cursor, sizes[1]) != 0) return false;
    cursor += sizes[1];
  }
  return true;
}

inline bool NodeAttributes::Walk::next(JsonReader::Slice* key, JsonReader::Slice* text) {
  if (map_ != nullptr) {
    if (place_ == map_->end()) return false;
    *key = JsonReader::Slice{place_->first.data(), place_->first.size()};
    *text = JsonReader::Slice{place_->second.data(), place_->second.size()};
    ++place_;
    return true;
  }
  if (cursor_ == nullptr || pos_ == block_[0]) return false;
  const uint32_t* const sizes = &block_[2 + 2 * pos_++];
  *key = JsonReader::Slice{cursor_, sizes[0]};
  *text = JsonReader::Slice{cursor_ + sizes[0], sizes[1]};
  cursor_ += static_cast<std::size_t>(sizes[0]) + sizes[1];
  return true;
}

namespace detail {

inline JsonReader::Slice sliceOf(const JsonReader::Slice& text) { return text; }
inline JsonReader::Slice sliceOf(const std::string& text) {
  return JsonReader::Slice{text.data(), text.size()};
}

}  // namespace detail

template <typename Text>
const Text* NodeAttributes::_pack(std::pair<Text, Text>* items, std::size_t count) {
  clear();
  std::size_t size = 0;
  for (std::size_t pos = 0; pos < count; ++pos) {
    size += detail::sliceOf(items[pos].first).size + detail::sliceOf(items[pos].second).size;
  }
  const std::size_t few = 64;
  if (count > few || size > (std::numeric_limits<uint32_t>::max)() / 2) {
    reserve(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (!detail::setText(detail::sliceOf(items[pos].first), detail::sliceOf(items[pos].second),
                           &write())) {
        return &items[pos].first;
      }
    }
    return nullptr;
  }
  if (count == 0) return nullptr;
  for (std::size_t pos = 1; pos < count; ++pos) {  // most files have them sorted
    for (std::size_t place = pos; place > 0; --place) {
      if (!(detail::sliceOf(items[place].first) < detail::sliceOf(items[place - 1].first))) break;
      items[place].swap(items[place - 1]);
    }
  }
  for (std::size_t pos = 1; pos < count; ++pos) {
    // Sorted: if it is not before the next one, it is the same.
    if (!(detail::sliceOf(items[pos - 1].first) < detail::sliceOf(items[pos].first))) {
      return &items[pos].first;
    }
  }
  uint32_t* const block = newBlock(2 + 2 * count + (size + 3) / 4);
  block[0] = static_cast<uint32_t>(count);
  block[1] = static_cast<uint32_t>(size);
  block[1 + 2 * count + (size + 3) / 4] = 0;  // the bytes behind the texts are compared, too
  char* cursor = reinterpret_cast<char*>(&block[2 + 2 * count]);
  for (std::size_t pos = 0; pos < count; ++pos) {
    const JsonReader::Slice texts[] = {detail::sliceOf(items[pos].first),
                                       detail::sliceOf(items[pos].second)};
    for (int part = 0; part < 2; ++part) {
      block[2 + 2 * pos + part] = static_cast<uint32_t>(texts[part].size);
      memcpy(cursor, texts[part].data, texts[part].size);
      cursor += texts[part].size;
    }
  }
  shared_ = block;
  return nullptr;
}

inline NodeAttributes::Map& NodeAttributes::read() const {
  if (known() != nullptr) return *known();
  detail::Owner<Map> made(new Map());
  JsonReader::Slice key;
  JsonReader::Slice text;
  for (Walk walk(*this); walk.next(&key, &text);) detail::setText(key, text, made.get());
  if (types_.node != 0) {
    const JsonReader::Slice nothing = {"", 0};
    detail::setText(JsonReader::Slice{"__ext_shape__", 13}, nothing, made.get());
    detail::setText(JsonReader::Slice{"__ext_dtype__", 13}, nothing, made.get());
  }
  Map* const present = map_.setFirst(made.get());  // another thread's, if that was faster
  return present == nullptr ? *made.release() : *present;
}

/// Other threads may read other attributes meanwhile: nothing moves in the map.
inline NodeAttributes::Map& NodeAttributes::whole() const {
  static detail::Mutex& filling = *new detail::Mutex();
  Map& map = read();
  if (types_.node == 0 || __atomic_load_n(&has_types_, __ATOMIC_ACQUIRE)) return map;
  const FlatText* const texts = detail::readTypes(types_);
  const detail::Mutex::Guard lock(filling);
  if (has_types_) return map;
  for (int which = 0; texts != nullptr && which < 2; ++which) {
    const Map::iterator found = map.find(which == 0 ? "__ext_shape__" : "__ext_dtype__");
    if (found == map.end()) continue;  // erased
    found->second.assign(texts[which].data, static_cast<std::size_t>(texts[which].size));
  }
  __atomic_store_n(&has_types_, true, __ATOMIC_RELEASE);
  return map;
}

PASSLIB_COLD_CODE

namespace detail {

inline bool isOfTypes(const char* key, std::size_t size) {
  return size == 13 &&
         (memcmp(key, "__ext_shape__", 13) == 0 || memcmp(key, "__ext_dtype__", 13) == 0);
}

/// Asks the processor for the nodes that a walk reads some steps after position `pos`, for their
/// inputs and one member more: in a large graph, walks mostly wait for memory.
template <typename Member>
void prefetchNode(Node* const* nodes, std::size_t count, std::size_t pos, Member Node::* also) {
  if (pos + 16 >= count) return;
  const Node* later = nodes[pos + 16];
  __builtin_prefetch(&(later->*also));
  __builtin_prefetch(&later->inputs);
  __builtin_prefetch(nodes[pos + 6]->inputs.data());
}

template <typename Member>
PASSLIB_INLINE void prefetchNode(const std::vector<Node*>& nodes, std::size_t pos,
                                 Member Node::* also) {
  prefetchNode(nodes.data(), nodes.size(), pos, also);
}

bool orderNodes(Node* const* nodes, std::size_t count, const NodeTable& table,
                PlainList<Node*>* order);

PASSLIB_PLAIN_CODE

/// Sets both sides of every edge, for which there is room, and the control dependencies. `first`:
/// of the nodes' numbers of edges; `known`: zeros; `edge`, `dep`: their ends, moved behind those of
/// the graph.
inline void linkNodes(const FlatNode* first, uint32_t* known, const FlatEdge** edge,
                      const uint32_t** dep, Graph* graph) {
  Node* const* const nodes = graph->nodes.data();
  const std::size_t count = graph->nodes.size();
  const FlatEdge* from = *edge;
  for (std::size_t pos = 0; pos < count; ++pos) {
    Node* const node = nodes[pos];
    NodeEntry* const inputs = node->inputs.data();
    for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth, ++from) {
      Node* const producer = nodes[from->node];
      inputs[nth] = NodeEntry(producer, from->entry, from->version);
      producer->outputs[known[from->node]++] = NodeEntry(node, static_cast<int>(nth));
    }
    if (first[pos].num_control_deps != 0) node->control_deps.resize(first[pos].num_control_deps);
    for (uint32_t nth = 0; nth < first[pos].num_control_deps; ++nth) {
      node->control_deps[nth] = nodes[*(*dep)++];
    }
  }
  for (NodeEntry& head : span(graph->outputs)) {
    head = NodeEntry(nodes[from->node], from->entry, from->version);
    ++from;
  }
  *edge = from;
}

PASSLIB_END_CODE

/// What the two readers of graphs in JSON share, that of hosts and that of libraries.
class ReaderParts {
 protected:
  typedef JsonReader::Slice Slice;

  ReaderParts(const char* text, std::size_t size, const JsonOptions& options)
      : reader_(text, size, options) {}
  ~ReaderParts() = default;

  [[noreturn]] void failTwice(const char* key) const {
    reader_._fail(kJsonDuplicateKey, reader_.offset(), "the key '%s' occurs twice in one object",
                  key);
  }

  void readText(std::string* target) {
    const Slice text = reader_.readString();
    target->assign(text.data, text.size);
  }

  /// Reads a member that the readers do not know, into an object.
  __attribute__((__noinline__)) void readOther(const Slice& key, JsonTree* object) {
    reader_._readItem(object, object->add(0, key, reader_.offset()));
  }

  /// Moves such members, if there are any, to a graph, or to a node, which has them as in the text.
  __attribute__((__noinline__)) void keepOthers(JsonTree* object, Graph* graph) const {
    reader_._sort(object, 0);
    JsonMembers members;
    object->print(&members);
    graph->attrs._setTexts(&members);
  }
  __attribute__((__noinline__)) void keepOthers(JsonTree* object, Node* node) const {
    object->print(&node->extra);
    reader_._sort(object, 0);
    object->clear(MAP);
  }

  /// `only_one`: no other object of attributes of the node was read; `give_way`: those of others
  /// take precedence.
  void parseAttributes(Node* node, bool only_one, bool give_way) {
    bool first = true;
    Slice key;
    pairs_.clear();
    decoded_.clear();
    reader_.beginObject();
    while (reader_.nextKey(&first, &key)) {
      key = kept(key);
      if (reader_.peek() != '"') {
        reader_._fail(kJsonType, reader_.offset(), "attribute '%s' of node '%s' must be a string",
                      key.str().c_str(), node->name.c_str());
      }
      pairs_.push(std::pair<Slice, Slice>(key, kept(reader_.readString())));
    }
    requireSpread(*node);
    if (only_one) {
      const Slice* const twice = node->attrs._pack(pairs_.begin(), pairs_.size());
      if (twice == nullptr) return;
      reader_._fail(kJsonDuplicateKey, reader_.offset(), "attribute '%s' occurs twice in node '%s'",
                    twice->str().c_str(), node->name.c_str());
    }
    for (const auto& pair : pairs_) {
      Slice former;
      if (give_way && node->attrs._find(pair.first.data, pair.first.size, &former)) continue;
      std::unordered_map<std::string, std::string>& attributes = node->attrs;
      setText(pair.first, pair.second, &attributes);
    }
  }

  /// Reads an entry of two or three numbers: node, output and, since 0.9, version.
  FlatEdge readEntry(const char* what) {
    int64_t numbers[3] = {0, 0, 0};
    int count = 0;
    bool first = true;
    reader_.peek();
    const std::size_t place = reader_.offset();
    reader_.beginList();
    while (reader_.nextItem(&first)) {
      if (count == 3) failShape(what, place);
      // The count of outputs, one more than the largest number, is an int too.
      const int64_t most = count == 1 ? kIntMax - 1 : kIntMax;
      numbers[count++] = reader_.readInteger("number of an entry", 0, most);
    }
    if (count < 2) failShape(what, place);
    return FlatEdge{static_cast<uint32_t>(numbers[0]), static_cast<int32_t>(numbers[1]),
                    static_cast<int32_t>(numbers[2])};
  }

  JsonReader reader_;

 private:
  /// A text that the reader returned, which is valid until all attributes of the node are read.
  Slice kept(const Slice& text) {
    if (!reader_.isDecoded(text)) return text;
    char* const copy = decoded_.room(text.size);
    decoded_.append(text.data, text.size);
    return Slice{copy, text.size};
  }

  /// Refuses keys chosen so that they collide in the node's table, whose hash has no key: each
  /// would be compared with all before it.
  void requireSpread(const Node& node) const {
    const std::size_t most = 64;  // by chance, a dozen in a million
    if (pairs_.size() <= most) return;
    const std::size_t room = node.attrs.size() + pairs_.size();
    NodeAttributes::Map table;
    table.reserve(room);
    PlainList<uint32_t> filled;
    filled.addZeros(table.bucket_count());
    for (const auto& pair : pairs_) {
      if (++filled[table.bucket(pair.first.str())] <= most) continue;
      reader_._fail(kJsonRange, reader_.offset(),
                    "the attributes of node '%s' have the same key many times, or keys chosen to "
                    "collide in a hash table",
                    node.name.c_str());
    }
  }

  [[noreturn]] void failShape(const char* what, std::size_t place) const {
    reader_._fail(kJsonType, place, "%s entries are [node, output] or [node, output, version]",
                  what);
  }

  PlainList<std::pair<Slice, Slice> > pairs_;  // of one node's attributes
  TextBuffer decoded_;                         // those with escapes
};

#ifdef PASSLIB_HOST

/// Offsets in a text, none below the one before it, in four bytes each: fresh memory is much of
/// what reading a large graph costs.
class TextOffsets {
 public:
  void push(std::size_t offset) {
    for (; offset >> 32 > turns_.size(); turns_.push(low_.size())) {
    }
    low_.push(static_cast<uint32_t>(offset));
  }
  std::size_t size() const { return low_.size(); }
  std::size_t operator[](std::size_t pos) const {
    std::size_t high = 0;
    while (high < turns_.size() && turns_[high] <= pos) ++high;
    return (high << 32) + low_[pos];
  }

 private:
  PlainList<uint32_t> low_;
  PlainList<std::size_t> turns_;  // the numbers of those from which on the higher half is one more
};

/// A graph being read. Edges are numbers of nodes that may not have been read yet.
struct GraphDraft {
  struct Dependency {
    std::size_t node;
    uint32_t other;
  };
  explicit GraphDraft(Graph* target) : graph(target) {}

  Graph* graph;
  PlainList<FlatEdge> edges;     // of all nodes in turn
  PlainList<uint32_t> edge_end;  // per node: one past its last edge
  PlainList<Dependency> control_deps;
  TextOffsets offsets;  // per node: its offset in the text
  PlainList<FlatEdge> heads;
  PlainList<uint32_t> arg_nodes;
  PlainList<uint32_t> row_ptr;
  PlainList<unsigned> uses;  // per node: its consumers, or those that know of it already
  PlainList<uint32_t> variables;
  NameTable names;        // of the variables
  std::size_t start = 0;  // offset of the graph in the text
  bool has_nodes = false;
  bool has_heads = false;
  bool has_arg_nodes = false;
  bool has_row_ptr = false;
  bool outputs_stated = false;  // by row_ptr
};

/// The members of a node's JSON object that mean something to the reader.
enum NodeMember {
  kMemberNone,  ///< before the first one
  kMemberOp,
  kMemberName,
  kMemberInputs,
  kMemberAttrs,
  kMemberAttr,
  kMemberParam,
  kMemberControlDeps,
  kMemberSubgraphs,
  kMemberSourceId,
  kMemberOther,
  kNodeMembers
};

/// What stood between the values of two members of a node. Files repeat it, and the same bytes at
/// the same place of the grammar mean the same: they are compared instead of parsed.
class KnownTexts {
 public:
  KnownTexts() { memset(known_, 0, sizeof(known_)); }

  /// Moves over the text behind the value of a member if it is known. Returns the member whose
  /// value comes next, or kMemberOther. Members that were `seen` are not looked for.
  PASSLIB_INLINE NodeMember skip(NodeMember last, const bool* seen, JsonReader* reader) const {
    const Known* const known = known_[last];
    for (int way = 0; way < kWays && known[way].size != 0; ++way) {
      const bool wanted = !seen[known[way].next];
      if (wanted && reader->_skipKnown(known[way].text, known[way].size)) return known[way].next;
    }
    return kMemberOther;
  }
  void learn(NodeMember last, const char* text, std::size_t size, NodeMember next) {
    Known* const known = known_[last];
    for (int way = kWays - 1; way > 0; --way) known[way] = known[way - 1];
    known[0] = Known{text, size, next};
  }

 private:
  enum { kWays = 3 };
  struct Known {
    const char* text;
    std::size_t size;
    NodeMember next;
  };
  Known known_[kNodeMembers][kWays];
};

/// A place in a table of 512 that may forget, so that bytes may be chosen to collide. Four products
/// at a time, since each waits for the one before it.
inline std::size_t smallHash(const char* bytes, std::size_t size) {
  const uint64_t factor = 0x9e3779b97f4a7c15ULL;
  uint64_t lanes[4] = {size, 1, 2, 3};
  char few[32] = {0};
  if (size < sizeof(few)) {
    memcpy(few, bytes, size);
    bytes = few;
    size = sizeof(few);
  }
  const char* const last = bytes + size - sizeof(few);
  for (;; bytes = (std::min)(bytes + sizeof(few), last)) {
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t word = 0;
      memcpy(&word, bytes + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * factor;
    }
    if (bytes == last) break;
  }
  uint64_t sum = lanes[0];
  for (int lane = 1; lane < 4; ++lane) {
    sum ^= (lanes[lane] << (16 * lane)) | (lanes[lane] >> (64 - 16 * lane));
  }
  return static_cast<std::size_t>(sum * factor >> 55);
}

/// Attributes of nodes by the text of their JSON object. The layers of a model are of few kinds, so
/// that most such texts were read before. A later text may take the place of another.
class KnownAttributes {
 public:
  /// Returns a node with the attributes of the object at the beginning of a text, or null if the
  /// object was not read before. Sets its size, to 0 if it is never noted.
  const Node* find(const JsonReader::Slice& rest, std::size_t* size) {
    *size = objectSize(rest);
    if (*size == 0) return nullptr;
    if (slots_.empty()) slots_.addZeros(kSlots);
    slot_ = &slots_[smallHash(rest.data, *size)];
    if (slot_->size != *size || memcmp(slot_->text, rest.data, *size) != 0) return nullptr;
    std::size_t words = 0;
    return slot_->node->attrs._packed(&words) != nullptr ? slot_->node : nullptr;
  }
  /// Notes the object that was not found last. The node must keep its attributes.
  void learn(const char* text, std::size_t size, const Node* node) {
    *slot_ = Slot{text, size, node};
  }

 private:
  enum { kSlots = 512 };
  struct Slot {
    const char* text;
    std::size_t size;
    const Node* node;
  };
  /// Returns the size of an object at the beginning of a text, if it has no braces inside and is
  /// not large, and 0 otherwise.
  static std::size_t objectSize(const JsonReader::Slice& rest) {
    const std::size_t most = 4096;
    const void* const close = memchr(rest.data, '}', (std::min)(rest.size, most));
    if (close == nullptr) return 0;
    return static_cast<std::size_t>(static_cast<const char*>(close) - rest.data) + 1;
  }

  PlainList<Slot> slots_;
  Slot* slot_ = nullptr;
};

/// Reads NNVM's JSON into a Graph. Nested graphs are kept on a stack of their own. A host that
/// wants to know more about a graph overrides what is virtual.
class GraphReader : private ReaderParts {
 public:
  GraphReader(const char* text, std::size_t size, const JsonOptions& options)
      : ReaderParts(text, size, options) {}
  GraphReader(const GraphReader&) = delete;
  GraphReader& operator=(const GraphReader&) = delete;
  virtual ~GraphReader() {
    while (frame_ != nullptr) pop();
  }

  void read(Graph* graph) {
    push(graph);
    while (frame_ != nullptr) step();
    reader_.finish();
  }

 protected:
  /// Called for each node of a graph whose numbers of outputs are set, which are at hand.
  virtual void onNode(const Node& /*node*/) {}
  /// Called when a graph has all its edges. `ordered`: every producer comes before its consumers.
  virtual void onGraph(const GraphDraft& /*draft*/, bool /*ordered*/) {}

 private:
  enum State { kGraphKeys, kNodeList, kNodeKeys, kSubgraphList };
  struct Frame {
    explicit Frame(Graph* graph) : draft(graph) {}
    GraphDraft draft;
    State state = kGraphKeys;
    bool first_key = true;
    bool first_node = true;
    bool first_field = true;
    bool first_subgraph = true;
    Node* node = nullptr;
    NodeMember member = kMemberNone;    // the last one read
    bool seen[kNodeMembers] = {false};  // of the node
    JsonTree attrs{MAP};
    JsonTree extra{MAP};  // of the node
    int attribute_objects = 0;
    Frame* outer = nullptr;
  };

  void push(Graph* graph) {
    reader_.peek();
    Frame* const frame = new Frame(graph);
    frame->draft.start = reader_.offset();
    frame->outer = frame_;
    frame_ = frame;
    reader_.beginObject();
  }

  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }

  void step() {
    Frame& frame = *frame_;
    JsonReader::Slice key;
    switch (frame.state) {
      case kGraphKeys:
        if (reader_.nextKey(&frame.first_key, &key)) {
          readGraphMember(&frame, key);
        } else {
          keepOthers(&frame.attrs, frame.draft.graph);
          finishGraph(&frame.draft);
          pop();
        }
        break;
      case kNodeList:
        if (reader_.nextItem(&frame.first_node)) {
          beginNode(&frame);
        } else {
          frame.state = kGraphKeys;
        }
        break;
      case kNodeKeys:
        if (nextMember(&frame, &key)) {
          readNodeMember(&frame, key);
        } else {
          finishNode(&frame);
          frame.state = kNodeList;
        }
        break;
      case kSubgraphList:
        if (reader_.nextItem(&frame.first_subgraph)) {
          Graph*& nested = append(&frame.node->subgraphs);
          nested = new Graph();
          push(nested);
        } else {
          frame.state = kNodeKeys;
        }
        break;
    }
  }

  void once(bool* seen, const char* key) const {
    if (*seen) failTwice(key);
    *seen = true;
  }

  void readGraphMember(Frame* frame, const JsonReader::Slice& key) {
    GraphDraft& draft = frame->draft;
    if (key == "nodes") {
      once(&draft.has_nodes, "nodes");
      reader_.beginList();
      frame->state = kNodeList;
    } else if (key == "heads") {
      once(&draft.has_heads, "heads");
      readEntries("head", &draft.heads);
    } else if (key == "arg_nodes") {
      once(&draft.has_arg_nodes, "arg_nodes");
      readIntegers("node number", &draft.arg_nodes);
    } else if (key == "node_row_ptr") {
      once(&draft.has_row_ptr, "node_row_ptr");
      readIntegers("row pointer", &draft.row_ptr);
    } else {
      readOther(key, &frame->attrs);
    }
  }

  void beginNode(Frame* frame) {
    reader_.peek();
    frame->draft.offsets.push(reader_.offset());
    reader_.beginObject();
    Graph* graph = frame->draft.graph;
    Node*& node = append(&graph->nodes);
    node = frame->node = new Node();
    frame->state = kNodeKeys;
    frame->first_field = true;
    frame->first_subgraph = true;
    frame->member = kMemberNone;
    memset(frame->seen, 0, sizeof(frame->seen));
    frame->attribute_objects = 0;
  }

  /// Moves to the value of the next member of a node, of which `key` is set for a kMemberOther
  /// alone. Returns false at the closing brace.
  bool nextMember(Frame* frame, JsonReader::Slice* key) {
    const NodeMember last = frame->member;
    frame->member = known_texts_.skip(last, frame->seen, &reader_);
    frame->first_field = frame->first_field && frame->member == kMemberOther;
    if (frame->member == kMemberOther) {
      const JsonReader::Slice rest = reader_._rest();
      if (!reader_.nextKey(&frame->first_field, key)) return false;
      frame->member = memberOf(*key);
      if (frame->member == kMemberOther) return true;
      // MXNet 0.8 wrote backward_source_id, unused since, which may be repeated.
      if (frame->member == kMemberSourceId) return true;
      once(&frame->seen[frame->member], nameOf(frame->member));
      reader_.peek();
      known_texts_.learn(last, rest.data, rest.size - reader_._rest().size, frame->member);
    }
    frame->seen[frame->member] = true;
    return true;
  }

  static const char* nameOf(NodeMember member) {
    static const char* const names[] = {
        "",     "op",    "name",         "inputs",    "attrs",
        "attr", "param", "control_deps", "subgraphs", "backward_source_id"};
    return names[member];
  }

  static NodeMember memberOf(const JsonReader::Slice& key) {
    for (int member = kMemberOp; member < kMemberOther; ++member) {
      if (key == nameOf(static_cast<NodeMember>(member))) return static_cast<NodeMember>(member);
    }
    return kMemberOther;
  }

  void readNodeMember(Frame* frame, const JsonReader::Slice& key) {
    Node* node = frame->node;
    bool first = true;
    const NodeMember member = frame->member;
    switch (member) {
      case kMemberOp:
        readText(&node->op);
        break;
      case kMemberName:
        readText(&node->name);
        break;
      case kMemberInputs:
        readEntries("input", &frame->draft.edges);
        break;
      case kMemberAttrs:
      case kMemberAttr:
      case kMemberParam:
        // Three spellings from three generations of files. MXNet 0.8 writes both "param" and
        // "attr"; "attr" takes precedence.
        readAttributes(frame, member == kMemberParam);
        break;
      case kMemberControlDeps:
        reader_.beginList();
        while (reader_.nextItem(&first)) {
          frame->draft.control_deps.push(GraphDraft::Dependency{
              frame->draft.graph->nodes.size() - 1,
              static_cast<uint32_t>(reader_.readInteger("node number", 0, kIntMax))});
        }
        break;
      case kMemberSubgraphs:
        reader_.beginList();
        frame->state = kSubgraphList;
        break;
      case kMemberSourceId:
        reader_.readInteger("backward_source_id", -1, kIntMax);
        break;
      default:
        readOther(key, &frame->extra);
    }
  }

  void readAttributes(Frame* frame, bool give_way) {
    Node* node = frame->node;
    const bool only_one = frame->attribute_objects++ == 0;
    reader_.peek();
    const JsonReader::Slice rest = reader_._rest();
    std::size_t size = 0;
    const bool may_know = only_one && reader_._mayEnter();
    const Node* const known = may_know ? known_attributes_.find(rest, &size) : nullptr;
    if (known != nullptr) {
      node->attrs = known->attrs;
      reader_._skip(size);
      return;
    }
    parseAttributes(node, only_one, give_way);
    const bool learns = size != 0 && rest.size - reader_._rest().size == size;
    if (learns && node->attrs._packed(&size) != nullptr) {
      known_attributes_.learn(rest.data, rest.size - reader_._rest().size, node);
    }
  }

  /// Moves to the next item of a list of numbers, or of lists of them.
  bool nextItem(bool* first, JsonReader::Slice* between) {
    const bool learn = !*first;
    if (learn && between->size != 0 && reader_._skipKnown(between->data, between->size))
      return true;
    const JsonReader::Slice rest = reader_._rest();
    if (!reader_.nextItem(first)) return false;
    if (learn) *between = JsonReader::Slice{rest.data, rest.size - reader_._rest().size};
    return true;
  }

  void readIntegers(const char* what, PlainList<uint32_t>* values) {
    bool first = true;
    int plain = 0;
    reader_.beginList();
    while (nextItem(&first, &between_numbers_)) {
      if (!reader_._readDigits(&plain)) {
        plain = static_cast<int>(reader_.readInteger(what, 0, kIntMax));
      }
      values->push(static_cast<uint32_t>(plain));
    }
  }

  void readEntries(const char* what, PlainList<FlatEdge>* edges) {
    bool first = true;
    int plain[3];
    reader_.beginList();
    while (nextItem(&first, &between_entries_)) {
      edges->push(reader_._readTuple(plain, 3)
                      ? FlatEdge{static_cast<uint32_t>(plain[0]), plain[1], plain[2]}
                      : readEntry(what));
    }
  }

  void finishNode(Frame* frame) const {
    if (frame->extra.size() > 1) keepOthers(&frame->extra, frame->node);
    const char* missing = nullptr;
    for (int member = kMemberInputs; member >= kMemberOp; --member) {
      if (!frame->seen[member]) missing = nameOf(static_cast<NodeMember>(member));
    }
    const std::size_t place = frame->draft.offsets[frame->draft.offsets.size() - 1];
    if (missing != nullptr && frame->seen[kMemberName]) {
      reader_._fail(kJsonMissingKey, place, "node '%s' has no '%s'", frame->node->name.c_str(),
                    missing);
    }
    if (missing != nullptr) {
      reader_._fail(kJsonMissingKey, place, "node number %zu has no '%s'",
                    frame->draft.offsets.size() - 1, missing);
    }
    PlainList<uint32_t>& ends = frame->draft.edge_end;
    const std::size_t first = ends.empty() ? 0 : ends.back();
    const std::size_t end = frame->draft.edges.size();
    if (end > (std::numeric_limits<uint32_t>::max)()) {
      reader_._fail(kJsonRange, place, "the graph has more than 4294967295 edges");
    }
    ends.push(static_cast<uint32_t>(end));
    if (frame->node->op == "null") {
      append(&frame->draft.graph->inputs) = frame->node;
      frame->draft.names.add(frame->node->name);
      frame->draft.variables.push(static_cast<uint32_t>(frame->draft.offsets.size() - 1));
    }
    if (end > first) frame->node->inputs.resize(end - first);  // next to the node: walks read both
  }

  void finishGraph(GraphDraft* draft) {
    const char* const missing = !draft->has_nodes       ? "nodes"
                                : !draft->has_arg_nodes ? "arg_nodes"
                                : !draft->has_heads     ? "heads"
                                                        : nullptr;
    if (missing != nullptr) {
      reader_._fail(kJsonMissingKey, draft->start, "the graph has no '%s'", missing);
    }
    const bool ordered = linkNodes(draft);
    checkVariables(*draft);
    draft->graph->outputs.resize(draft->heads.size());
    for (std::size_t pos = 0; pos < draft->heads.size(); ++pos) {
      const FlatEdge& head = draft->heads[pos];
      if (!inRange(*draft, head)) failEdge(*draft, head, printed("head %zu", pos), draft->start);
      draft->graph->outputs[pos] =
          NodeEntry(draft->graph->nodes[head.node], head.entry, head.version);
    }
    onGraph(*draft, ordered);
    if (ordered) return;
    try {
      const std::vector<Node*>& nodes = draft->graph->nodes;
      PlainList<Node*> order;
      orderNodes(nodes.data(), nodes.size(), NodeTable(nodes), &order);
    } catch (const GraphStructureError& error) {
      reader_._fail(kJsonCycle, draft->start, "%s", error.what());
    }
  }

  /// Sets the numbers of outputs, both sides of every edge, and the control dependencies. Returns
  /// whether every producer comes before its consumers. Then it takes one walk: in a large graph,
  /// walks wait for memory.
  bool linkNodes(GraphDraft* draft) {
    const std::size_t count = draft->graph->nodes.size();
    checkRows(draft);
    bool ordered = countUses(draft);
    if (ordered) {
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::num_outputs);
        makeOutputs(draft, pos);
        linkInputs(draft, pos);
      }
    } else {
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::num_outputs);
        makeOutputs(draft, pos);
      }
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::outputs);
        linkInputs(draft, pos);
      }
    }
    for (const GraphDraft::Dependency& dep : draft->control_deps) {
      Node* node = draft->graph->nodes[dep.node];
      const FlatEdge edge = {dep.other, 0, 0};
      if (!inRange(*draft, edge)) {
        failEdge(*draft, edge, printed("a control dependency of node '%s'", node->name.c_str()),
                 draft->offsets[dep.node]);
      }
      append(&node->control_deps) = draft->graph->nodes[dep.other];
      ordered = ordered && dep.other < dep.node;
    }
    return ordered;
  }

  void checkRows(GraphDraft* draft) const {
    const std::vector<Node*>& nodes = draft->graph->nodes;
    const PlainList<uint32_t>& ptr = draft->row_ptr;
    // MXNet's lib_api writes 0..n-1: one number too few, and one output per node.
    draft->outputs_stated = draft->has_row_ptr && ptr.size() != nodes.size();
    if (!draft->outputs_stated) return;
    if (ptr.size() != nodes.size() + 1 || ptr[0] != 0) {
      reader_._fail(kJsonRange, draft->start,
                    "node_row_ptr must begin with 0 and have one number more than there are nodes");
    }
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      if (ptr[pos + 1] >= ptr[pos]) continue;
      reader_._fail(kJsonRange, draft->start, "node_row_ptr decreases at node '%s'",
                    nodes[pos]->name.c_str());
    }
  }

  /// Counts the consumers of every node. Returns whether each input comes from a node before.
  static bool countUses(GraphDraft* draft) {
    const std::size_t count = draft->graph->nodes.size();
    bool ordered = true;
    std::size_t next = 0;
    draft->uses.addZeros(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (; next < draft->edge_end[pos]; ++next) {
        const uint32_t producer = draft->edges[next].node;
        if (producer < count) ++draft->uses[producer];
        ordered = ordered && producer < pos;
      }
    }
    return ordered;
  }

  /// Sets the number of outputs of a node, and makes room for its consumers.
  void makeOutputs(GraphDraft* draft, std::size_t pos) {
    Node* const node = draft->graph->nodes[pos];
    const PlainList<uint32_t>& ptr = draft->row_ptr;
    if (draft->outputs_stated) node->_declareOutputs(static_cast<int>(ptr[pos + 1] - ptr[pos]));
    node->outputs.resize(draft->uses[pos]);
    draft->uses[pos] = 0;
    onNode(*node);
  }

  /// Sets both sides of the edges to a node, whose producers have room.
  void linkInputs(GraphDraft* draft, std::size_t pos) const {
    Node* const* const nodes = draft->graph->nodes.data();
    Node* const node = nodes[pos];
    const std::size_t first = pos == 0 ? 0 : draft->edge_end[pos - 1];
    NodeEntry* const inputs = node->inputs.data();
    for (std::size_t next = first; next < draft->edge_end[pos]; ++next) {
      const FlatEdge& edge = draft->edges[next];
      const std::size_t slot = next - first;
      if (!inRange(*draft, edge)) {
        failEdge(*draft, edge, printed("input %zu of node '%s'", slot, node->name.c_str()),
                 draft->offsets[pos]);
      }
      Node* const producer = nodes[edge.node];
      inputs[slot] = NodeEntry(producer, edge.entry, edge.version);
      producer->outputs[draft->uses[edge.node]++] = NodeEntry(node, static_cast<int>(slot));
    }
  }

  [[noreturn]] void failEdge(const GraphDraft& draft, const FlatEdge& edge, const std::string& what,
                             std::size_t place) const {
    const std::vector<Node*>& nodes = draft.graph->nodes;
    if (edge.node >= nodes.size()) {
      reader_._fail(kJsonRange, place, "%s refers to node %u, but there are %zu nodes",
                    what.c_str(), static_cast<unsigned>(edge.node), nodes.size());
    }
    const Node* node = nodes[edge.node];
    reader_._fail(kJsonRange, place, "%s refers to output %d of node '%s', which has %d",
                  what.c_str(), edge.entry, node->name.c_str(), node->num_outputs);
  }

  static bool inRange(const GraphDraft& draft, const FlatEdge& edge) {
    if (edge.node >= draft.graph->nodes.size()) return false;
    const int outputs = draft.graph->nodes[edge.node]->num_outputs;
    return outputs <= 0 || edge.entry < outputs;
  }

  void checkVariables(const GraphDraft& draft) const {
    const Graph* graph = draft.graph;
    const std::size_t repeated = draft.names.repeated(graph->inputs);
    if (repeated < graph->inputs.size()) {
      const Node* node = graph->inputs[repeated];
      std::size_t place = 0;
      while (graph->nodes[place] != node) ++place;
      reader_._fail(kJsonDuplicateName, draft.offsets[place], "two variables are named '%s'",
                    node->name.c_str());
    }
    for (std::size_t pos = 0; pos < draft.arg_nodes.size(); ++pos) {
      const uint32_t number = draft.arg_nodes[pos];
      if (pos < draft.variables.size() && draft.variables[pos] == number) continue;
      const FlatEdge edge = {number, 0, 0};
      if (!inRange(draft, edge)) failEdge(draft, edge, "arg_nodes", draft.start);
      const Node* node = graph->nodes[number];
      if (node->op == "null") continue;
      reader_._fail(kJsonType, draft.start,
                    "arg_nodes lists node '%s', which is not a variable but '%s'",
                    node->name.c_str(), node->op.c_str());
    }
  }

  KnownTexts known_texts_;
  // What stood between two items of a list.
  JsonReader::Slice between_numbers_{"", 0};
  JsonReader::Slice between_entries_{"", 0};
  KnownAttributes known_attributes_;
  Frame* frame_ = nullptr;  // of the innermost graph
};

typedef GraphReader TextReader;

#else

/// Reads NNVM's JSON into a Graph, in as little code as can be: libraries read it from MXNet, and
/// all compile this. It takes and refuses the same texts as the reader of hosts, with the same
/// errors. Edges are kept, and linked, as those of the flat form.
class TextReader : private ReaderParts {
 public:
  TextReader(const char* text, std::size_t size, const JsonOptions& options)
      : ReaderParts(text, size, options), frame_(nullptr) {}
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;
  ~TextReader() {
    while (frame_ != nullptr) pop();
  }

  void read(Graph* graph) {
    push(graph);
    while (frame_ != nullptr) step(frame_);
    reader_.finish();
  }

 private:
  /// What comes next of a graph: a member, a node, a member of a node, or a subgraph of it.
  enum Part { kMember, kNode, kField, kSubgraph };
  /// The places where a node is named by its number.
  enum Use { kInput, kDependency, kArgument, kHead };
  struct Frame {
    explicit Frame(Graph* target) : graph(target) {}
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    ~Frame() {
      for (Graph* each : nested) delete each;
    }
    Graph* graph;
    Frame* outer = nullptr;
    std::size_t start = 0;  // offset of the graph in the text
    Part part = kMember;
    bool first[4] = {true, true, true, true};  // of each part
    unsigned members = 0;                      // a bit for each that was read
    unsigned fields = 0;
    Node* node = nullptr;
    PlainList<FlatNode> nodes;  // the numbers of their edges
    PlainList<std::size_t> offsets;
    PlainList<FlatEdge> edges;
    PlainList<uint32_t> control_deps;
    PlainList<FlatEdge> heads;
    PlainList<uint32_t> arg_nodes;
    PlainList<uint32_t> row_ptr;
    PlainList<Graph*> nested;  // in the node, which gets them when all are read
    JsonTree attrs{MAP};
    JsonTree extra{MAP};  // of the node
  };

  // The first three of each must be there.
  static const char* const* memberKeys() {
    static const char* const keys[] = {"nodes", "arg_nodes", "heads", "node_row_ptr", nullptr};
    return keys;
  }
  static const char* const* fieldKeys() {
    static const char* const keys[] = {"op",    "name",         "inputs",    "attrs", "attr",
                                       "param", "control_deps", "subgraphs", nullptr};
    return keys;
  }
  static const char* missing(const char* const* keys, unsigned seen) {
    for (int pos = 0; pos < 3; ++pos) {
      if ((seen >> pos & 1) == 0) return keys[pos];
    }
    return nullptr;
  }
  /// Returns the position of a key, which it notes, or that of the end.
  int find(const char* const* keys, const Slice& key, unsigned* seen) const {
    int pos = 0;
    while (keys[pos] != nullptr && !(key == keys[pos])) ++pos;
    if (keys[pos] == nullptr) return pos;
    if ((*seen >> pos & 1) != 0) failTwice(keys[pos]);
    *seen |= 1u << pos;
    return pos;
  }
  void push(Graph* graph) {
    reader_.peek();
    Frame* const frame = new Frame(graph);
    frame->start = reader_.offset();
    frame->outer = frame_;
    frame_ = frame;
    reader_.beginObject();
  }
  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }
  static void enter(Frame* frame, Part part) {
    frame->part = part;
    frame->first[part] = true;
  }

  void step(Frame* frame) {
    Slice key;
    bool* const first = &frame->first[frame->part];
    const bool keyed = frame->part == kMember || frame->part == kField;
    const bool more = keyed ? reader_.nextKey(first, &key) : reader_.nextItem(first);
    switch (frame->part) {
      case kMember:
        if (more) return readMember(frame, key);
        finish(frame);
        return pop();
      case kNode:
        if (more) return beginNode(frame);
        frame->part = kMember;
        return;
      case kField:
        if (more) return readField(frame, key);
        return finishNode(frame);
      case kSubgraph:
        if (!more) return finishSubgraphs(frame);
        frame->nested.push(nullptr);
        push(frame->nested.back() = new Graph());
    }
  }

  void readMember(Frame* frame, const Slice& key) {
    switch (find(memberKeys(), key, &frame->members)) {
      case 0:
        reader_.beginList();
        return enter(frame, kNode);
      case 1:
        return readNumbers("node number", &frame->arg_nodes);
      case 2:
        return readEntries("head", &frame->heads);
      case 3:
        return readNumbers("row pointer", &frame->row_ptr);
      default:
        readOther(key, &frame->attrs);
    }
  }

  void beginNode(Frame* frame) {
    reader_.peek();
    frame->offsets.push(reader_.offset());
    reader_.beginObject();
    frame->nodes.push(FlatNode());
    Node*& node = append(&frame->graph->nodes);
    node = frame->node = new Node();
    frame->fields = 0;
    enter(frame, kField);
  }

  void readField(Frame* frame, const Slice& key) {
    const unsigned attributes = 7u << 3;  // the three spellings
    const bool only_one = (frame->fields & attributes) == 0;
    FlatNode* const node = &frame->nodes.back();
    const int field = find(fieldKeys(), key, &frame->fields);
    switch (field) {
      case 0:
        return readText(&frame->node->op);
      case 1:
        return readText(&frame->node->name);
      case 2: {
        const std::size_t before = frame->edges.size();
        readEntries("input", &frame->edges);
        node->num_inputs = static_cast<uint32_t>(frame->edges.size() - before);
        return;
      }
      case 6: {
        const std::size_t before = frame->control_deps.size();
        readNumbers("node number", &frame->control_deps);
        node->num_control_deps = static_cast<uint32_t>(frame->control_deps.size() - before);
        return;
      }
      case 7:
        reader_.beginList();
        return enter(frame, kSubgraph);
      case 8:
        if (!(key == "backward_source_id")) return readOther(key, &frame->extra);
        reader_.readInteger("backward_source_id", -1, kIntMax);  // of MXNet 0.8; unused since
        return;
      default:
        // Three spellings from three generations of files. MXNet 0.8 writes both "param" and
        // "attr"; "attr" takes precedence.
        parseAttributes(frame->node, only_one, field == 5);
    }
  }

  void readNumbers(const char* what, PlainList<uint32_t>* numbers) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) {
      numbers->push(static_cast<uint32_t>(reader_.readInteger(what, 0, kIntMax)));
    }
  }

  void readEntries(const char* what, PlainList<FlatEdge>* edges) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) edges->push(readEntry(what));
  }

  static void finishSubgraphs(Frame* frame) {
    makeItems(&frame->node->subgraphs, frame->nested.size());
    std::size_t pos = 0;
    for (Graph*& each : span(frame->node->subgraphs)) each = frame->nested[pos++];
    frame->nested.clear();
    frame->part = kField;
  }

  void finishNode(Frame* frame) const {
    if (frame->extra.size() > 1) keepOthers(&frame->extra, frame->node);
    const char* const lacks = missing(fieldKeys(), frame->fields);
    if (lacks != nullptr && (frame->fields >> 1 & 1) != 0) {
      reader_._fail(kJsonMissingKey, frame->offsets.back(), "node '%s' has no '%s'",
                    frame->node->name.c_str(), lacks);
    }
    if (lacks != nullptr) {
      reader_._fail(kJsonMissingKey, frame->offsets.back(), "node number %zu has no '%s'",
                    frame->offsets.size() - 1, lacks);
    }
    frame->part = kNode;
  }

  void finish(Frame* frame) {
    keepOthers(&frame->attrs, frame->graph);
    const char* const lacks = missing(memberKeys(), frame->members);
    if (lacks != nullptr) {
      reader_._fail(kJsonMissingKey, frame->start, "the graph has no '%s'", lacks);
    }
    Graph* const graph = frame->graph;
    PlainList<uint32_t> known;  // per node: the consumers that it knows of
    known.addZeros(graph->nodes.size());
    makeRoom(frame);
    const bool ordered = checkEdges(*frame);
    checkVariables(*frame);
    for (std::size_t pos = 0; pos < frame->heads.size(); ++pos) {
      require(*frame, frame->heads[pos], kHead, 0, pos);
      frame->edges.push(frame->heads[pos]);
    }
    makeItems(&graph->outputs, frame->heads.size());
    const FlatEdge* edge = frame->edges.begin();
    const uint32_t* dep = frame->control_deps.begin();
    linkNodes(frame->nodes.begin(), known.begin(), &edge, &dep, graph);
    if (ordered) return;
    try {
      PlainList<Node*> order;
      Node* const* const nodes = graph->nodes.data();
      orderNodes(nodes, graph->nodes.size(), NodeTable(nodes, graph->nodes.size()), &order);
    } catch (const GraphStructureError& error) {
      reader_._fail(kJsonCycle, frame->start, "%s", error.what());
    }
  }

  /// Sets the numbers of outputs, makes room for edges, and lists the variables.
  void makeRoom(Frame* frame) const {
    const std::vector<Node*>& nodes = frame->graph->nodes;
    const PlainList<uint32_t>& ptr = frame->row_ptr;
    // MXNet's lib_api writes 0..n-1: one number too few, and one output per node.
    const bool stated = (frame->members >> 3 & 1) != 0 && ptr.size() != nodes.size();
    if (stated && (ptr.size() != nodes.size() + 1 || ptr[0] != 0)) {
      reader_._fail(kJsonRange, frame->start,
                    "node_row_ptr must begin with 0 and have one number more than there are nodes");
    }
    PlainList<uint32_t> uses;
    uses.addZeros(nodes.size());
    for (const FlatEdge& edge : frame->edges) {
      if (edge.node < nodes.size()) ++uses[edge.node];
    }
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      Node* node = nodes[pos];
      if (stated && ptr[pos + 1] < ptr[pos]) {
        reader_._fail(kJsonRange, frame->start, "node_row_ptr decreases at node '%s'",
                      node->name.c_str());
      }
      if (stated) node->_declareOutputs(static_cast<int>(ptr[pos + 1] - ptr[pos]));
      makeItems(&node->inputs, frame->nodes[pos].num_inputs);
      makeItems(&node->outputs, uses[pos]);
      if (node->op == "null") append(&frame->graph->inputs) = node;
    }
  }

  /// Returns whether every producer comes before its consumers.
  bool checkEdges(const Frame& frame) const {
    bool ordered = true;
    const FlatEdge* edge = frame.edges.begin();
    for (std::size_t pos = 0; pos < frame.nodes.size(); ++pos) {
      for (uint32_t nth = 0; nth < frame.nodes[pos].num_inputs; ++nth, ++edge) {
        require(frame, *edge, kInput, pos, nth);
        ordered = ordered && edge->node < pos;
      }
    }
    const uint32_t* dep = frame.control_deps.begin();
    for (std::size_t pos = 0; pos < frame.nodes.size(); ++pos) {
      for (uint32_t nth = 0; nth < frame.nodes[pos].num_control_deps; ++nth, ++dep) {
        require(frame, FlatEdge{*dep, 0, 0}, kDependency, pos, nth);
        ordered = ordered && *dep < pos;
      }
    }
    return ordered;
  }

  /// `node`: the position of the consumer, if it is a node; `number`: that of its edge.
  void require(const Frame& frame, const FlatEdge& edge, Use use, std::size_t node,
               std::size_t number) const {
    const std::vector<Node*>& nodes = frame.graph->nodes;
    const Node* const other = edge.node < nodes.size() ? nodes[edge.node] : nullptr;
    if (other != nullptr && (other->num_outputs <= 0 || edge.entry < other->num_outputs)) return;
    const bool of_node = use == kInput || use == kDependency;
    const char* const name = of_node ? nodes[node]->name.c_str() : "";
    const std::size_t place = of_node ? frame.offsets[node] : frame.start;
    const std::string what = use == kInput  ? printed("input %zu of node '%s'", number, name)
                             : use == kHead ? printed("head %zu", number)
                             : of_node      ? printed("a control dependency of node '%s'", name)
                                            : std::string("arg_nodes");
    if (other == nullptr) {
      reader_._fail(kJsonRange, place, "%s refers to node %u, but there are %zu nodes",
                    what.c_str(), static_cast<unsigned>(edge.node), nodes.size());
    }
    reader_._fail(kJsonRange, place, "%s refers to output %d of node '%s', which has %d",
                  what.c_str(), static_cast<int>(edge.entry), other->name.c_str(),
                  other->num_outputs);
  }

  struct Variable {
    const Node* node;
    std::size_t position;
  };
  static int compare(const void* left, const void* right) {
    const Variable& first = *static_cast<const Variable*>(left);
    const Variable& second = *static_cast<const Variable*>(right);
    const int order = first.node->name.compare(second.node->name);
    return order != 0 ? order : first.position < second.position ? -1 : 1;
  }

  void checkVariables(const Frame& frame) const {
    const std::vector<Node*>& nodes = frame.graph->nodes;
    PlainList<Variable> variables;
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      if (nodes[pos]->op == "null") variables.push(Variable{nodes[pos], pos});
    }
    const std::size_t count = variables.size();
    if (count > 1) qsort(variables.begin(), count, sizeof(Variable), &compare);
    std::size_t twice = nodes.size();  // the first that has the name of another before it
    for (std::size_t pos = 1; pos < count; ++pos) {
      const Variable& variable = variables[pos];
      if (variable.position > twice || variables[pos - 1].node->name != variable.node->name) {
        continue;
      }
      twice = variable.position;
    }
    if (twice < nodes.size()) {
      reader_._fail(kJsonDuplicateName, frame.offsets[twice], "two variables are named '%s'",
                    nodes[twice]->name.c_str());
    }
    for (const uint32_t number : frame.arg_nodes) {
      require(frame, FlatEdge{number, 0, 0}, kArgument, 0, 0);
      const Node* const node = nodes[number];
      if (node->op == "null") continue;
      reader_._fail(kJsonType, frame.start,
                    "arg_nodes lists node '%s', which is not a variable but '%s'",
                    node->name.c_str(), node->op.c_str());
    }
  }

  Frame* frame_;  // of the innermost graph
};

#endif  // PASSLIB_HOST

// ---- the graph: writing ------------------------------------------------------------------------

/// What was written for attributes: nodes share theirs, since the layers of a model are of few
/// kinds. Later attributes may take the place of others.
class WrittenAttributes {
 public:
  struct Slot {
    const uint32_t* packed;
    std::size_t depth;
    std::size_t place;  // of the text that was written last
    std::size_t size;
  };
  /// Returns the slot of such attributes, whose size is 0 if they were not written at this depth.
  Slot& find(const uint32_t* packed, std::size_t depth) {
    if (slots_.empty()) slots_.addZeros(kSlots);
    const uint64_t factor = 0x9e3779b97f4a7c15ULL;
    Slot& slot = slots_[reinterpret_cast<uintptr_t>(packed) * factor >> 55];
    if (slot.packed != packed || slot.depth != depth) slot = Slot{packed, depth, 0, 0};
    return slot;
  }

 private:
  enum { kSlots = 512 };
  PlainList<Slot> slots_;
};

/// Writes NNVM's JSON, on one line or in the layout of MXNet's writer: two spaces for each level up
/// to the 64th,
/// a space after every comma, a list on several lines when it has more than ten items or composite
/// ones, an object when it has more than one member.
class GraphWriter {
 public:
  /// `omitted`: the key of an attribute of nodes that is not written; null for none.
  GraphWriter(bool pretty, TextBuffer* out, const char* omitted = nullptr)
      : pretty_(pretty), blank_(1 + 2 * kMostIndented, ' '), out_(*out), omitted_(omitted) {
    blank_[0] = '\n';
  }
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;
  ~GraphWriter() {
    while (frame_ != nullptr) pop();
  }

  /// `attributes`: top-level keys other than NNVM's own, usually those of the graph.
  void write(const Graph& root, const GraphAttributes& attributes) {
    begin(root, attributes, 0);
    while (frame_ != nullptr) {
      Frame& frame = *frame_;
      if (frame.node == frame.count) {
        finish(frame);
        open_.removeLast();
        pop();
        if (frame_ != nullptr) ++frame_->subgraph;
        continue;
      }
      const Node& node = *frame.order[frame.node];
      prefetchNode(frame.order, frame.count, frame.node, &Node::op);
      if (frame.subgraph == 0) {
        if (!frame.addNode(node)) {
          sortRest(&frame);
          continue;
        }
        writeNode(&frame, node);
      }
      if (frame.subgraph < node.subgraphs.size()) {
        separate(frame.subgraph > 0, frame.depth + 4);
        const Graph& nested = nestedGraph(node, frame.subgraph);
        begin(nested, nested.attrs, frame.depth + 4);
        continue;
      }
      if (node.subgraphs.size() != 0) {
        newline(frame.depth + 3);
        out_.push(']');
      }
      out_.append(frame.to_end);
      frame.subgraph = 0;
      ++frame.node;
    }
  }

 private:
  struct Attribute {
    JsonReader::Slice key;
    JsonReader::Slice text;
  };

  struct Frame {
    Frame(const Graph& target, const GraphAttributes& extra, std::size_t level)
        : graph(target),
          attributes(extra),
          depth(level),
          order(target.nodes.data()),
          count(target.nodes.size()),
          table(new NodeTable(order, count)) {}

    /// Finds the producers of a node, which is written next. Returns false if one of them is not
    /// among the nodes before it.
    bool addNode(const Node& added) {
      positions.clear();
      for (const NodeEntry& input : span(added.inputs)) {
        if (!addUse(table->find(input.node), input.entry)) return false;
      }
      for (const Node* dep : span(added.control_deps)) {
        if (!addUse(table->find(dep), -1)) return false;
      }
      outputs.push(added.num_outputs > 0 ? static_cast<uint32_t>(added.num_outputs) : 1);
      if (added.op == "null") variables.push(static_cast<uint32_t>(node));
      return true;
    }
    /// The same for the outputs of the graph, when all nodes are written.
    void addHeads() {
      positions.clear();
      for (const NodeEntry& head : span(graph.outputs)) {
        if (addUse(table->find(head.node), head.entry)) continue;
        failGraph("an output of the graph comes from a node that is not in it");
      }
    }
    bool addUse(int64_t position, int entry) {
      if (position < 0 || position >= static_cast<int64_t>(outputs.size())) return false;
      positions.push(static_cast<uint32_t>(position));
      uint32_t& stated = outputs[static_cast<std::size_t>(position)];
      // A reader that knows the operator must be able to detect uses beyond its outputs.
      if (entry >= 0 && static_cast<uint32_t>(entry) >= stated &&
          order[position]->_hasOutput(entry)) {
        stated = static_cast<uint32_t>(entry) + 1;
      }
      return true;
    }

    const Graph& graph;
    const GraphAttributes& attributes;
    std::size_t depth;
    Node* const* order;  // the graph's own, or `sorted`
    std::size_t count;
    Owner<NodeTable> table;
    PlainList<Node*> sorted;
    PlainList<uint32_t> positions;  // of the producers of a node
    PlainList<uint32_t> outputs;    // of the nodes written so far: how many each has
    PlainList<uint32_t> variables;  // of the nodes written so far
    std::size_t node = 0;
    std::size_t subgraph = 0;
    // What stands between the members of each node.
    std::string to_op;
    std::string to_name;
    std::string to_attrs;
    std::string to_inputs;
    std::string to_end;
    Frame* outer = nullptr;
  };

  /// A list of numbers, or of lists of them: long ones stand on several lines.
  class ListLayout {
   public:
    ListLayout(std::size_t count, const GraphWriter& writer, std::size_t depth)
        : blank_(writer.blank_.data()),
          inner_(count > 10 ? writer.blankSize(depth + 1) : 0),
          outer_(count > 10 ? writer.blankSize(depth) : 0) {}
    /// The most bytes before an item.
    std::size_t most() const { return inner_ + 2; }
    PASSLIB_INLINE char* separate(std::size_t pos, char* target) const {
      if (pos > 0) {
        *target++ = ',';
        *target++ = ' ';
      }
      if (inner_ != 0) memcpy(target, blank_, inner_);
      return target + inner_;
    }
    void close(TextBuffer* out) const {
      out->append(blank_, outer_);
      out->push(']');
    }

   private:
    const char* blank_;
    std::size_t inner_;
    std::size_t outer_;
  };

  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }

  const Graph& nestedGraph(const Node& node, std::size_t index) const {
    const Graph* nested = node.subgraphs[index];
    if (nested == nullptr) failGraph("a subgraph of node '%s' is null", node.name.c_str());
    if (open_.find(nested) >= 0) {
      failGraph("a subgraph of node '%s' contains this node", node.name.c_str());
    }
    return *nested;
  }

  /// How much of blank_ stands before what is so deep. Bounded, since the text of deeply nested
  /// graphs would grow with the square of their depth.
  std::size_t blankSize(std::size_t depth) const {
    return pretty_ ? (std::min)(2 * depth + 1, blank_.size()) : 0;
  }

  void newline(std::size_t depth) { out_.append(blank_.data(), blankSize(depth)); }

  /// What comes before the value of a member of a node.
  std::string before(const char* opening, const char* name, std::size_t depth) const {
    return opening + blank_.substr(0, blankSize(depth)) + '"' + name + "\": ";
  }

  void separate(bool comma, std::size_t depth) {
    if (comma) out_.append(", ");
    newline(depth);
  }

  void key(const char* name, bool comma, std::size_t depth) {
    separate(comma, depth);
    out_.push('"');
    out_.append(name, strlen(name));
    out_.append("\": ");
  }

  void string(const std::string& text) { appendString(text.data(), text.size(), pretty_, &out_); }
  void string(const JsonReader::Slice& text) { appendString(text.data, text.size, pretty_, &out_); }

  void begin(const Graph& graph, const GraphAttributes& attributes, std::size_t depth) {
    open_.add(&graph);
    Frame* const frame = new Frame(graph, attributes, depth);
    frame->outer = frame_;
    frame_ = frame;
    const std::string line = blank_.substr(0, blankSize(depth + 2));
    frame->to_op = line + before("{", "op", depth + 3);
    frame->to_name = before(", ", "name", depth + 3);
    frame->to_attrs = before(", ", "attrs", depth + 3);
    frame->to_inputs = before(", ", "inputs", depth + 3);
    frame->to_end = line + '}';
    out_.push('{');
    key("nodes", false, depth + 1);
    out_.push('[');
  }

  /// Sorts the nodes of a graph of which one comes before a node that it depends on. That shows
  /// while they are written, since a walk of its own would read all of them from memory. Those
  /// that are written come first in the sorted graph, too.
  void sortRest(Frame* frame) {
    orderNodes(frame->order, frame->count, *frame->table, &frame->sorted);  // or throws
    frame->order = frame->sorted.begin();
    frame->table.reset(new NodeTable(frame->order, frame->count));
  }

  void writeNode(Frame* frame, const Node& node) {
    const std::size_t depth = frame->depth + 3;
    if (frame->node > 0) out_.append(", ");
    out_.append(frame->to_op);
    try {
      string(node.op);
      out_.append(frame->to_name);
      string(node.name);
      const std::size_t count = node.attrs.size();
      if (count > 1 || (count == 1 && (omitted_ == nullptr || !node.attrs._has(omitted_)))) {
        out_.append(frame->to_attrs);
        writeAttributes(node, depth);
      }
    } catch (const JsonError& error) {
      failGraph("node number %zu: %s", frame->node, error.what());
    }
    out_.append(frame->to_inputs);
    writeEntries(frame, node.inputs, depth);
    if (node.control_deps.size() != 0) {
      key("control_deps", true, depth);
      const uint32_t* const deps = frame->positions.begin() + node.inputs.size();
      writeIntegers(node.control_deps.size(), depth, [deps](std::size_t pos) { return deps[pos]; });
    }
    if (!node.extra.empty()) writeMembers(node.extra, depth);
    if (node.subgraphs.size() != 0) {
      key("subgraphs", true, depth);
      out_.push('[');
    }
  }

  void writeAttributes(const Node& node, std::size_t depth) {
    node.attrs._readTypes();
    std::size_t words = 0;
    const uint32_t* const packed = node.attrs._packed(&words);
    WrittenAttributes::Slot* slot = nullptr;
    if (packed != nullptr && out_.isWhole()) {
      slot = &written_.find(packed, depth);
      const std::size_t place = out_.size();
      if (slot->size != 0) {
        out_.repeat(slot->place, slot->size);
        slot->place = place;  // is more likely to be in the cache
        return;
      }
      slot->place = place;
    }
    writeEach(node, depth);
    if (slot != nullptr) slot->size = out_.size() - slot->place;
  }

  void writeEach(const Node& node, std::size_t depth) {
    sorted_.clear();
    Attribute each;
    for (NodeAttributes::Walk walk(node.attrs); walk.next(&each.key, &each.text);) {
      if (omitted_ == nullptr || !(each.key == omitted_)) sorted_.push(each);
    }
    std::size_t packed = 0;  // then they are sorted
    if (node.attrs._packed(&packed) == nullptr) {
      qsort(sorted_.begin(), sorted_.size(), sizeof(Attribute), &compareKeys);
    }
    const bool lines = sorted_.size() > 1;
    out_.push('{');
    for (std::size_t pos = 0; pos < sorted_.size(); ++pos) {
      if (pos > 0) out_.append(", ");
      if (lines) newline(depth + 1);
      string(sorted_[pos].key);
      out_.append(": ");
      string(sorted_[pos].text);
    }
    if (lines) newline(depth);
    out_.push('}');
  }

  static int compareKeys(const void* left, const void* right) {
    const JsonReader::Slice& first = static_cast<const Attribute*>(left)->key;
    const JsonReader::Slice& second = static_cast<const Attribute*>(right)->key;
    return first < second ? -1 : second < first ? 1 : 0;
  }

  void writeEntries(Frame* frame, const std::vector<NodeEntry>& entries, std::size_t depth) {
    ListLayout layout(entries.size(), *this, depth);
    out_.push('[');
    for (std::size_t pos = 0; pos < entries.size(); ++pos) {
      char* cursor = layout.separate(pos, out_.room(layout.most() + 64));
      *cursor++ = '[';
      cursor = printInteger(frame->positions[pos], cursor);
      *cursor++ = ',';
      *cursor++ = ' ';
      cursor = printInteger(entries[pos].entry, cursor);
      *cursor++ = ',';
      *cursor++ = ' ';
      cursor = printInteger(entries[pos].version, cursor);
      *cursor++ = ']';
      out_.advanceTo(cursor);
    }
    layout.close(&out_);
  }

  /// number(pos): the numbers in turn.
  template <typename Number>
  void writeIntegers(std::size_t count, std::size_t depth, Number number) {
    ListLayout layout(count, *this, depth);
    out_.push('[');
    for (std::size_t pos = 0; pos < count; ++pos) {
      char* const cursor = layout.separate(pos, out_.room(layout.most() + 24));
      out_.advanceTo(printInteger(static_cast<int64_t>(number(pos)), cursor));
    }
    layout.close(&out_);
  }

  void finish(Frame& frame) {
    const std::size_t depth = frame.depth + 1;
    frame.addHeads();
    if (frame.count != 0) newline(depth);
    out_.push(']');
    key("arg_nodes", true, depth);
    writeIntegers(frame.variables.size(), depth,
                  [&frame](std::size_t pos) { return frame.variables[pos]; });
    key("node_row_ptr", true, depth);
    int64_t row = 0;
    writeIntegers(frame.count + 1, depth, [&frame, &row](std::size_t pos) {
      return pos == 0 ? row : row += frame.outputs[pos - 1];
    });
    key("heads", true, depth);
    writeEntries(&frame, frame.graph.outputs, depth);
    JsonMembers printed;
    writeMembers(frame.attributes._texts(&printed), depth);
    newline(frame.depth);
    out_.push('}');
  }

  void writeMembers(const JsonMembers& members, std::size_t depth) {
    JsonReader::Slice name;
    JsonReader::Slice text;
    for (JsonMembers::Walk walk(members); walk.next(&name, &text);) {
      separate(true, depth);
      string(name);
      out_.append(": ");
      if (pretty_) {
        JsonTree tree;
        readAgain(text)._readItem(&tree, 0);
        tree.print(0, true, depth, &out_);
        continue;
      }
      bool ascii = true;
      for (std::size_t pos = 0; pos < text.size; ++pos) {
        ascii = ascii && static_cast<unsigned char>(text.data[pos]) < 0x80;
      }
      if (!ascii) out_.noteNotAscii();
      out_.append(text.data, text.size);
    }
  }

  bool pretty_;
  std::string blank_;  // a line break and the deepest indentation
  TextBuffer& out_;
  const char* omitted_;
  Frame* frame_ = nullptr;  // of the innermost graph
  AddressTable open_;       // the graphs of the frames
  PlainList<Attribute> sorted_;
  WrittenAttributes written_;
};

}  // namespace detail

PASSLIB_END_CODE
PASSLIB_SMALL_CODE

// ---- the graph: structure ----------------------------------------------------------------------

namespace detail {

inline bool AddressTable::add(const void* address) {
  addresses_.push(address);
  if (addresses_.size() * 2 > mask_ + 1) {
    reserve(addresses_.size());
    for (std::size_t pos = 0; pos + 1 < addresses_.size(); ++pos) insert(pos);
  }
  if (insert(addresses_.size() - 1)) return true;
  addresses_.pop();
  return false;
}

inline void AddressTable::removeLast() {
  // No later one was put behind it, since later ones are gone.
  std::size_t slot = home(addresses_.back());
  while (slots_[slot].next != addresses_.size()) slot = (slot + 1) & mask_;
  slots_[slot] = Slot{0, 0};
  addresses_.pop();
}

inline void AddressTable::reserve(std::size_t count) {
  mask_ = 31;
  shift_ = 63;
  for (; mask_ + 1 < count * 2; --shift_) mask_ = mask_ * 2 + 1;
  if (addresses_.size() < count) addresses_.reserve(count - addresses_.size());
  slots_.clear();
  slots_.addZeros(mask_ + 1);
}

inline bool AddressTable::insert(std::size_t position) {
  const void* const address = addresses_[position];
  Slot wanted = slotFor(address);
  wanted.next = static_cast<uint32_t>(position + 1);
  std::size_t slot = home(address);
  for (; slots_[slot].next != 0; slot = (slot + 1) & mask_) {
    if (slots_[slot].tag == wanted.tag && addresses_[slots_[slot].next - 1] == address) {
      return false;
    }
  }
  slots_[slot] = wanted;
  return true;
}

}  // namespace detail

inline NodeTable::NodeTable(Node* const* nodes, std::size_t count) : table_(count) {
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (nodes[pos] == nullptr) detail::failGraph("node number %zu is null", pos);
    if (pos + 16 < count) table_.prefetch(nodes[pos + 16]);
    add(nodes[pos]);
  }
}

inline std::size_t NodeTable::add(const Node* node) {
  if (!table_.add(node)) detail::failGraph("node '%s' is listed twice", node->name.c_str());
  return table_.size() - 1;
}

namespace detail {

/// The dependencies of a node: its inputs, then its control dependencies.
inline std::size_t countDependencies(const Node& node) {
  return node.inputs.size() + node.control_deps.size();
}

/// Position of dependency `i`. Throws if it is not in the table.
inline std::size_t dependency(const Node& node, std::size_t pos, const NodeTable& table) {
  const bool data = pos < node.inputs.size();
  const Node* other = data ? node.inputs[pos].node : node.control_deps[pos - node.inputs.size()];
  const int64_t position = table.find(other);
  if (position < 0 && data) {
    failGraph("input %zu of node '%s' comes from a node that is not in the graph", pos,
              node.name.c_str());
  }
  if (position < 0) {
    failGraph("a control dependency of node '%s' comes from a node that is not in the graph",
              node.name.c_str());
  }
  return static_cast<std::size_t>(position);
}

/// Spells the names along a cycle. `path`: nodes that each depend on the next, the last one on the
/// node at position `start`.
inline std::string describeCycle(const PlainList<Node*>& path, std::size_t start) {
  const std::size_t shown = 8;
  std::string text = "nodes wait for each other in a cycle: ";
  for (std::size_t pos = start; pos < path.size(); ++pos) {
    if (pos - start == shown && path.size() - pos > 1) {
      text += printed("... (%zu nodes) -> ", path.size() - start);
      pos = path.size() - 1;
    }
    text += printed("'%s' -> ", path[pos]->name.c_str());
  }
  return text + printed("'%s'", path[start]->name.c_str());
}

/// Adds the nodes to `order` as sortNodes says. Returns false, and adds none, if their order is
/// topological already.
inline bool orderNodes(Node* const* nodes, std::size_t count, const NodeTable& table,
                       PlainList<Node*>* order) {
  bool ordered = true;
  for (std::size_t pos = 0; pos < count && ordered; ++pos) {
    prefetchNode(nodes, count, pos, &Node::control_deps);
    for (std::size_t nth = 0; nth < countDependencies(*nodes[pos]); ++nth) {
      ordered = ordered && dependency(*nodes[pos], nth, table) < pos;
    }
  }
  if (ordered) return false;

  enum Mark : char { kNew, kWaiting, kDone };
  PlainList<char> marks;
  marks.addZeros(count);
  order->reserve(count);
  PlainList<Node*> path;  // the current node and those that depend on it
  struct Place {
    std::size_t position;
    std::size_t next;  // dependency
  };
  PlainList<Place> places;  // of the nodes in `path`
  for (std::size_t root = 0; root < count; ++root) {
    if (marks[root] != kNew) continue;
    std::size_t enter = root;
    for (;;) {
      if (marks[enter] == kNew) {
        marks[enter] = kWaiting;
        path.push(nodes[enter]);
        places.push(Place{enter, 0});
      } else if (marks[enter] == kWaiting) {
        std::size_t start = 0;
        while (places[start].position != enter) ++start;
        failGraph("%s", describeCycle(path, start).c_str());
      }
      while (!path.empty() && places.back().next == countDependencies(*path.back())) {
        marks[places.back().position] = kDone;
        order->push(path.back());
        path.pop();
        places.pop();
      }
      if (path.empty()) break;
      enter = dependency(*path.back(), places.back().next++, table);
    }
  }
  return true;
}

}  // namespace detail

PASSLIB_DEMANDED std::vector<Node*> sortNodes(const std::vector<Node*>& nodes,
                                              const NodeTable& table) {
  detail::PlainList<Node*> order;
  if (!detail::orderNodes(nodes.data(), nodes.size(), table, &order)) return nodes;
  return std::vector<Node*>(order.begin(), order.end());
}

inline Graph::~Graph() {
  // Subgraphs are emptied one by one, and two nodes may point to the same one. A node that faulty
  // passes listed twice is deleted once: all lists are read before the first node is deleted.
  detail::GraphTable graphs;
  graphs.add(this);
  for (std::size_t pos = 0; pos < graphs.size(); ++pos) {
    std::vector<Node*>* const lists[] = {&graphs[pos]->nodes, &graphs[pos]->removed_};
    for (std::vector<Node*>* list : lists) {
      for (Node*& node : detail::span(*list)) {
        if (node != nullptr && (node->declared_op_ & Node::kDoomed) != 0) node = nullptr;
        if (node == nullptr) continue;
        node->declared_op_ |= Node::kDoomed;
        for (Graph* subgraph : detail::span(node->subgraphs)) {
          if (subgraph != nullptr) graphs.add(subgraph);
        }
      }
    }
  }
  for (std::size_t pos = 0; pos < graphs.size(); ++pos) {
    std::vector<Node*>* const lists[] = {&graphs[pos]->nodes, &graphs[pos]->removed_};
    for (std::vector<Node*>* list : lists) {
      for (Node* node : detail::span(*list)) delete node;
      list->clear();
    }
  }
  for (std::size_t pos = 1; pos < graphs.size(); ++pos) delete graphs[pos];
}

PASSLIB_END_CODE

inline Graph* Graph::fromString(const char* text, std::size_t size, const JsonOptions& options) {
  detail::Owner<Graph> graph(new Graph());
  detail::TextReader(text, size, options).read(graph.get());
  return graph.release();
}

PASSLIB_DEMANDED Graph* Graph::fromString(const std::string& json) {
  return fromString(json.data(), json.size(), JsonOptions());
}

PASSLIB_DEMANDED Graph* Graph::fromJson(const JsonVal& val) { return fromString(val.dump()); }

inline std::string Graph::toString() const {
  detail::TextBuffer out;
  detail::GraphWriter(false, &out).write(*this, attrs);
  return out.str();
}

PASSLIB_DEMANDED JsonVal Graph::toJson() const { return JsonVal::parse(toString()); }

PASSLIB_DEMANDED void Graph::writePretty(std::string* out) const {
  detail::TextBuffer text;
  detail::GraphWriter(true, &text).write(*this, attrs);
  out->append(text.str());
}

PASSLIB_DEMANDED Node* Graph::addNode(const std::string& name, const std::string& op) {
  Node*& node = detail::append(&nodes);
  node = new Node();
  node->name = name;
  node->op = op;
  return node;
}

namespace detail {

/// Removes the edge (consumer, slot) from the producer's list.
PASSLIB_ON_DEMAND void dropConsumer(Node* producer, const Node* consumer, int slot) {
  std::vector<NodeEntry>& outputs = producer->outputs;
  for (auto use = outputs.begin(); use != outputs.end(); ++use) {
    if (use->node != consumer || use->entry != slot) continue;
    outputs.erase(use);
    return;
  }
}

}  // namespace detail

PASSLIB_DEMANDED void Graph::connect(Node* producer, int producer_output, Node* consumer,
                                     int consumer_input) {
  if (producer == nullptr || consumer == nullptr) {
    throw std::invalid_argument(std::string("connect: there is no ") +
                                (producer == nullptr ? "producer" : "consumer"));
  }
  const int count = static_cast<int>(consumer->inputs.size());
  if (consumer_input < 0 || consumer_input > count || producer_output < 0) {
    throw std::out_of_range("connect: node " + detail::quoted(consumer->name) + " has " +
                            std::to_string(count) + " inputs, there is no input " +
                            std::to_string(consumer_input));
  }
  const NodeEntry entry(producer, producer_output);
  if (consumer_input == count) {
    consumer->inputs.push_back(entry);
  } else {
    NodeEntry& slot = consumer->inputs[static_cast<std::size_t>(consumer_input)];
    if (slot.node != nullptr) detail::dropConsumer(slot.node, consumer, consumer_input);
    slot = entry;
  }
  producer->outputs.emplace_back(consumer, consumer_input);
}

PASSLIB_DEMANDED std::size_t Graph::replace(const NodeEntry& from, const NodeEntry& target) {
  if (from.node == nullptr || target.node == nullptr) {
    throw std::invalid_argument(std::string("replace: there is no node to replace") +
                                (from.node == nullptr ? "" : " it by"));
  }
  std::size_t uses = 0;
  std::vector<NodeEntry> kept;
  std::vector<NodeEntry> moved;
  for (const NodeEntry& use : from.node->outputs) {
    if (use.node == nullptr) continue;
    NodeEntry& input = use.node->inputs.at(static_cast<std::size_t>(use.entry));
    if (use.node == target.node || input.node != from.node || input.entry != from.entry) {
      kept.push_back(use);
      continue;
    }
    input = target;
    moved.push_back(use);
    ++uses;
  }
  from.node->outputs.swap(kept);
  target.node->outputs.insert(target.node->outputs.end(), moved.begin(), moved.end());
  for (NodeEntry& head : outputs) {
    if (head.node != from.node || head.entry != from.entry) continue;
    head = target;
    ++uses;
  }
  return uses;
}

namespace detail {

/// Order of pointers, for qsort and bsearch.
template <typename Object>
int compareAddresses(const void* left, const void* right) {
  const std::less<const Object*> less = {};
  const Object* const first = *static_cast<const Object* const*>(left);
  const Object* const second = *static_cast<const Object* const*>(right);
  return less(first, second) ? -1 : less(second, first) ? 1 : 0;
}

/// Takes items out of a list, whose others keep their order.
template <typename Item, typename Unwanted>
void dropIf(std::vector<Item>* list, Unwanted unwanted) {
  std::size_t kept = 0;
  for (std::size_t pos = 0; pos < list->size(); ++pos) {
    if (!unwanted((*list)[pos])) (*list)[kept++] = (*list)[pos];
  }
  list->resize(kept);
}

/// Sorts nodes by address, and drops repetitions.
PASSLIB_ON_DEMAND void keepDistinct(std::vector<Node*>* nodes) {
  if (!nodes->empty()) qsort(nodes->data(), nodes->size(), sizeof(Node*), &compareAddresses<Node>);
  Node* last = nullptr;
  dropIf(nodes, [&last](Node* node) {
    const bool again = node == last && node != nullptr;
    last = node;
    return again;
  });
}

}  // namespace detail

PASSLIB_DEMANDED void Graph::removeNodes(const std::vector<Node*>& unwanted) {
  std::vector<Node*> once(unwanted);
  detail::keepDistinct(&once);
  if (!once.empty() && once[0] == nullptr) {
    throw std::invalid_argument("removeNode: there is no node");
  }
  const NodeTable gone(once);
  const auto is_gone = [&](const Node* node) { return gone.find(node) >= 0; };
  const auto edge_gone = [&](const NodeEntry& edge) { return is_gone(edge.node); };
  std::vector<Node*> removed;
  for (Node* node : nodes) {
    if (is_gone(node)) removed.push_back(node);
  }
  if (removed.size() != once.size()) {
    throw std::invalid_argument("removeNode: the node is not in this graph");
  }
  removed_.insert(removed_.end(), removed.begin(), removed.end());
  detail::dropIf(&nodes, is_gone);
  detail::dropIf(&inputs, is_gone);
  detail::dropIf(&outputs, edge_gone);

  std::vector<Node*> producers;  // nodes that stay, but lose consumers
  std::vector<Node*> consumers;  // nodes that stay, but lose inputs
  for (Node* node : once) {
    for (const NodeEntry& input : node->inputs) {
      if (input.node != nullptr && !is_gone(input.node)) producers.push_back(input.node);
    }
    for (const NodeEntry& use : node->outputs) {
      if (use.node != nullptr && !is_gone(use.node)) consumers.push_back(use.node);
    }
  }
  detail::keepDistinct(&producers);
  detail::keepDistinct(&consumers);
  for (Node* node : producers) {
    detail::dropIf(&node->outputs, edge_gone);
  }
  for (Node* node : consumers) {
    // Inputs after a lost one move up, so update their producers.
    std::size_t slot = 0;
    for (std::size_t pos = 0; pos < node->inputs.size(); ++pos) {
      const NodeEntry input = node->inputs[pos];
      if (is_gone(input.node)) continue;
      if (slot != pos && input.node != nullptr) {
        for (NodeEntry& use : input.node->outputs) {
          if (use.node != node || use.entry != static_cast<int>(pos)) continue;
          use.entry = static_cast<int>(slot);
          break;
        }
      }
      node->inputs[slot++] = input;
    }
    node->inputs.resize(slot);
  }
  for (Node* node : nodes) {
    detail::dropIf(&node->control_deps, is_gone);
  }
  for (Node* node : unwanted) {
    node->inputs.clear();
    node->outputs.clear();
    node->control_deps.clear();
  }
}

PASSLIB_DEMANDED void Graph::_dfs_util(Node* start, std::unordered_set<Node*>* to_visit,
                                       std::function<void(Node*)> handler) const {
  struct Step {
    Node* node;
    std::size_t next;  // consumer
  };
  PASSLIB_LATER(std::unordered_set<Node*>)* const left = to_visit;
  detail::PlainList<Step> path;
  path.push(Step{start, 0});
  left->erase(start);
  while (!path.empty()) {
    Node* node = path.back().node;
    if (path.back().next < node->outputs.size()) {
      Node* consumer = node->outputs[path.back().next++].node;
      if (left->erase(consumer) != 0) path.push(Step{consumer, 0});
    } else {
      path.pop();
      handler(node);
    }
  }
}

PASSLIB_DEMANDED void Graph::DFS(std::function<void(Node*)> handler) const {
  PASSLIB_LATER(std::unordered_set<Node*>) to_visit(nodes.begin(), nodes.end());
  for (const std::vector<Node*>* roots : {&inputs, &nodes}) {
    for (Node* root : *roots) {
      if (to_visit.count(root) != 0) _dfs_util(root, &to_visit, handler);
    }
  }
}

PASSLIB_DEMANDED std::vector<Node*> Graph::topological_sort() const {
  std::vector<Node*> order;
  order.reserve(nodes.size());
  DFS([&order](Node* node) { order.push_back(node); });
  return order;
}

PASSLIB_DEMANDED std::vector<Node*> Graph::sorted() const {
  return sortNodes(nodes, NodeTable(nodes));
}

PASSLIB_DEMANDED void Graph::print(int indent) const {
  struct Frame {
    Frame(const Graph* target, int width)
        : graph(target), space(static_cast<std::size_t>((std::max)(width, 0)), ' ') {
      const std::vector<Node*> reversed = target->topological_sort();
      order.assign(reversed.rbegin(), reversed.rend());
    }
    const Graph* graph;
    std::string space;
    std::vector<Node*> order;
    std::size_t node = 0;
    std::size_t subgraph = 0;
  };
  std::vector<Frame> frames;
  const auto begin = [&frames](const Graph* graph, int width) {
    frames.emplace_back(graph, width);
    const std::string& space = frames.back().space;
    std::cout << space << "########### Graph #############\n" << space << "attributes: \n";
    for (const auto& attribute : graph->attrs) {
      std::cout << space << "\t" << attribute.first << " : " << attribute.second.str << "\n";
    }
    std::cout << space << "inputs: " << graph->inputs.size() << "\n"
              << space << "outputs: " << graph->outputs.size() << "\n"
              << space << "nodes: " << graph->nodes.size() << "\n";
  };
  begin(this, indent);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    const std::string& space = frame.space;
    if (frame.node == frame.order.size()) {
      std::cout << space << "###############################\n";
      frames.pop_back();
      continue;
    }
    const Node& node = *frame.order[frame.node];
    if (frame.subgraph == 0) {
      std::cout << space << "Node: " << node.name << "\n";
      for (const NodeEntry& input : node.inputs) {
        std::cout << space << "\tInput: " << input.node->name << " " << input.entry << "\n";
      }
      for (const NodeEntry& use : node.outputs) {
        std::cout << space << "\tOutput: " << use.node->name << " " << use.entry << "\n";
      }
    }
    if (frame.subgraph < node.subgraphs.size()) {
      std::cout << space << "\tSubgraph:\n";
      begin(node.subgraphs[frame.subgraph++], static_cast<int>(space.size()) + 2);
    } else {
      frame.subgraph = 0;
      ++frame.node;
    }
  }
  std::cout.flush();
}

PASSLIB_DEMANDED const JsonVal& Graph::getAttr(const std::string& key) const {
  const auto found = attrs.find(key);
  if (found == attrs.end()) {
    throw std::out_of_range("the graph has no attribute " + detail::quoted(key));
  }
  return found->second;
}

namespace detail {

/// Calls `enter` once for a graph and each of its subgraphs, and then `visit` for its nodes.
template <typename Enter, typename Visit>
void forEachNode(Graph* root, Enter enter, Visit visit) {
  GraphTable graphs;
  graphs.add(root);
  for (std::size_t next = 0; next < graphs.size(); ++next) {
    Graph* graph = graphs[next];
    enter(graph);
    for (std::size_t pos = 0; pos < graph->nodes.size(); ++pos) {
      Node* node = graph->nodes[pos];
      if (pos + 12 < graph->nodes.size() && graph->nodes[pos + 12] != nullptr) {
        __builtin_prefetch(&graph->nodes[pos + 12]->op);
        __builtin_prefetch(&graph->nodes[pos + 12]->subgraphs);
        __builtin_prefetch(&graph->nodes[pos + 12]->control_deps);
      }
      if (node == nullptr) continue;
      visit(graph, node);
      for (Graph* subgraph : span(node->subgraphs)) {
        if (subgraph != nullptr) graphs.add(subgraph);
      }
    }
  }
}

/// Calls `visit` once for a graph and each of its subgraphs.
template <typename Visit>
void forEachGraph(Graph* root, Visit visit) {
  forEachNode(root, visit, [](Graph*, Node*) {});
}

}  // namespace detail

PASSLIB_SMALL_CODE

namespace detail {

/// The parameter that a variable stands for: in the subgraphs of partitioners, variables have new
/// names and attributes with the name of their parameter. `copy` holds what is not the node's name.
inline const std::string& paramName(const Node& node, std::string* copy) {
  if (node.attrs.size() < 2 || !node.attrs._get("isArg", copy) || *copy != "True") return node.name;
  return node.attrs._get("argName", copy) ? *copy : node.name;
}

inline void ParamTable::assign(const std::vector<Node*>& variables) {
  std::size_t next = 0;
  std::string copy;
  for (Node* node : span(variables)) {
    if (next == names_.size()) return;
    if (paramName(*node, &copy) == names_[next].name) lend(names_[next++].tensor, node);
  }
  if (next == names_.size()) return;
  qsort(names_.begin(), names_.size(), sizeof(Named), &compare);
  for (Node* node : span(variables)) {
    const std::string& name = paramName(*node, &copy);
    const Named wanted = {name.c_str(), nullptr};
    const void* const found =
        strlen(wanted.name) != name.size()
            ? nullptr
            : bsearch(&wanted, names_.begin(), names_.size(), sizeof(Named), &compare);
    if (found != nullptr) lend(static_cast<const Named*>(found)->tensor, node);
  }
}

}  // namespace detail

inline void Graph::_setParams(detail::ParamTable* args, detail::ParamTable* aux) {
  aux->assign(inputs);
  args->assign(inputs);  // of a name in both, the argument
}

inline void Graph::_endPass() {
  detail::forEachNode(this, [](Graph*) {}, [](Graph*, Node* node) { node->tensor = nullptr; });
}

PASSLIB_END_CODE

// ---- resources ---------------------------------------------------------------------------------

PASSLIB_DEMANDED MXTensor* Node::alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx,
                                           MXDType dtype) {
  PassResource* const resource = _passResource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_arg on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_arg(name, shape, ctx, dtype);
  return tensor;
}

PASSLIB_DEMANDED MXTensor* Node::alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx,
                                           MXDType dtype) {
  PassResource* const resource = _passResource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_aux on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_aux(name, shape, ctx, dtype);
  return tensor;
}

PASSLIB_DEMANDED MXTensor* PassResource::allocate(int is_arg, const std::string& name,
                                                  const std::vector<int64_t>& shape,
                                                  const MXContext& ctx, MXDType dtype) {
  if (name.find('\0') != std::string::npos) {
    throw std::runtime_error("a parameter named " + detail::quoted(name.c_str()) +
                             " and more after a NUL byte cannot be allocated: rename its node");
  }
  void* data = nullptr;
  {
    const detail::Mutex::Guard lock(mutex_);
    nd_malloc_(nd_alloc_, shape.data(), static_cast<int>(shape.size()), ctx.dev_type.c_str(),
               ctx.dev_id, static_cast<int>(dtype), name.c_str(), is_arg, &data);
  }
  if (data == nullptr) {
    throw std::runtime_error(std::string("the host did not allocate ") +
                             (is_arg != 0 ? "arg " : "aux ") + detail::quoted(name));
  }
  return hold(name, MXTensor(data, shape, dtype, 0, ctx));
}

PASSLIB_DEMANDED MXTensor* PassResource::hold(const std::string& name, const MXTensor& made) {
  detail::Owner<Made> held(new Made{name, made, made});
  const detail::Mutex::Guard lock(mutex_);
  made_.push(held.get());
  return &held.release()->tensor;
}

PASSLIB_DEMANDED const MXTensor* Node::readTensor() {
  PassResource* const resource = _passResource();
  if (tensor != nullptr && resource != nullptr) resource->_read(name, tensor);
  return tensor;
}

PASSLIB_DEMANDED bool Node::_scaleArg(const MXTensor& source, const std::vector<double>& factors) {
  PassResource* const resource = _passResource();
  if (resource == nullptr || resource->_scale(source, factors, &name) != PassResource::kFinite) {
    return false;
  }
  tensor = resource->_scaled(name, source);
  return true;
}

namespace detail {

/// What Node::readTensor() asks. Hosts set it once, before they run anything else.
struct WeightSource {
  readWeight_t read;
  scaleWeight_t scale;
  static WeightSource* get() {
    static WeightSource source = {nullptr, nullptr};
    return &source;
  }
};

}  // namespace detail

PASSLIB_DEMANDED void PassResource::_read(const std::string& name, MXTensor* tensor) {
  const detail::WeightSource* source = detail::WeightSource::get();
  const detail::Mutex::Guard lock(mutex_);
  if (tensor->data_ptr != nullptr || source->read == nullptr) return;
  detail::ParamTable::Lent* lent = nullptr;
  for (detail::ParamTable* table : params_) {
    if (lent == nullptr && table != nullptr) lent = table->find(tensor);
  }
  if (lent == nullptr || lent->number == 0) return;
  const void* data = nullptr;
  source->read(nd_alloc_, lent->number, &data);
  if (data == nullptr && tensor->size() != 0) {
    throw std::runtime_error("the host did not read the parameter " + detail::quoted(name));
  }
  lent->data = const_cast<void*>(data);
  tensor->data_ptr = lent->data;
  tensor->dltensor.data = lent->data;
}

PASSLIB_DEMANDED PassResource::Scaling PassResource::_scale(const MXTensor& source,
                                                            const std::vector<double>& factors,
                                                            const std::string* name) {
  const detail::WeightSource* host = detail::WeightSource::get();
  const detail::Mutex::Guard lock(mutex_);
  if (source.verID == 0 || source.data_ptr != nullptr || host->scale == nullptr) {
    return kNotOnDemand;
  }
  return static_cast<Scaling>(host->scale(nd_alloc_, source.verID, factors.data(), factors.size(),
                                          name == nullptr ? nullptr : name->c_str()));
}

namespace detail {

/// Entry `index` of a list in text form, where a nested list is one entry.
PASSLIB_ON_DEMAND std::string listEntry(const std::string& text, unsigned index, const char* what) {
  const std::size_t size = text.size();
  if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
    std::size_t start = 1;
    int depth = 0;
    for (std::size_t pos = 1; pos < size; ++pos) {
      if (depth == 0 && (text[pos] == ',' || pos == size - 1)) {
        if (index == 0 && pos > start) return text.substr(start, pos - start);
        if (index == 0) break;
        --index;
        start = pos + 1;
      }
      if (text[pos] == '[') ++depth;
      if (text[pos] == ']') --depth;
    }
  }
  throw std::out_of_range(std::string(what) + ": no such entry in " + text);
}

}  // namespace detail

PASSLIB_DEMANDED std::string getShapeAt(const std::string& shape, unsigned index) {
  return detail::listEntry(shape, index, "getShapeAt");
}

PASSLIB_DEMANDED std::string getDtypeAt(const std::string& dtype, unsigned index) {
  return detail::listEntry(dtype, index, "getDtypeAt");
}

inline void OpResource::alloc_sparse(MXSparse* sparse, int index, int indices_len,
                                     int indptr_len) const {
  sparse_malloc_(sparse_alloc_, index, indices_len, indptr_len, &sparse->data, &sparse->indices,
                 &sparse->indptr);
  sparse->indices_len = indices_len;
  sparse->indptr_len = indptr_len;
  if (indptr_len > 0) sparse->data_len = indices_len;
}

// ---- attributes as values ----------------------------------------------------------------------

namespace detail {

/// A text without the white space around it.
PASSLIB_ON_DEMAND std::string trimmed(const std::string& text) {
  const char* const space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos) return std::string();
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

PASSLIB_ON_DEMAND bool readBoolean(const std::string& given, bool* value) {
  const std::string text = trimmed(given);
  *value = text == "True" || text == "true" || text == "1";
  return *value || text == "False" || text == "false" || text == "0";
}

/// Reads a whole number, also with a sign in front, and with the L behind that Python 2 wrote.
PASSLIB_ON_DEMAND bool readInteger(const std::string& given, int64_t* value) {
  std::string text = trimmed(given);
  if (text.size() > 1 && text[text.size() - 1] == 'L') text.erase(text.size() - 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.erase(0, 1);
  return parseInteger(text.data(), text.size(), value);
}

PASSLIB_ON_DEMAND bool readReal(const std::string& given, double* value) {
  const std::string text = trimmed(given);
  const bool negative = !text.empty() && text[0] == '-';
  const std::string size = text.substr(!text.empty() && (negative || text[0] == '+') ? 1 : 0);
  if (size == "inf" || size == "Infinity") {
    *value = std::numeric_limits<double>::infinity() * (negative ? -1 : 1);
    return true;
  }
  if (size == "nan" || size == "NaN") {
    *value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (size.empty() || size.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  return scanDouble(text, value);
}

/// Reads a list: "(1, 2)", "[1, 2]" or "1, 2". Items in quotes, which JSON and Python put around
/// texts, lose these. False for brackets or quotes that do not match.
PASSLIB_ON_DEMAND bool readList(const std::string& given, std::vector<std::string>* items) {
  std::string text = trimmed(given);
  const char first = text.empty() ? '\0' : text[0];
  if (first == '[' || first == '(') {
    const char last = first == '[' ? ']' : ')';
    if (text.size() < 2 || text[text.size() - 1] != last) return false;
    text = trimmed(text.substr(1, text.size() - 2));
  }
  for (std::size_t pos = 0; pos < text.size();) {
    pos = text.find_first_not_of(" \t\r\n", pos);
    if (pos == std::string::npos) return true;  // after the comma of Python's "(1,)"
    std::size_t end = pos;
    if (text[pos] == '"' || text[pos] == '\'') {
      for (++end; end < text.size() && text[end] != text[pos]; ++end) end += text[end] == '\\';
      if (end >= text.size()) return false;
      std::string inner = text.substr(pos + 1, end - pos - 1);
      if (text[pos] == '"') {
        inner = JsonVal::parse(text.substr(pos, end - pos + 1)).str;
      } else {
        for (std::size_t at = inner.find('\\'); at != std::string::npos;
             at = inner.find('\\', at + 1)) {
          inner.erase(at, 1);
        }
      }
      items->push_back(inner);
      end = text.find_first_not_of(" \t\r\n", end + 1);
      if (end == std::string::npos) return true;
      if (text[end] != ',') return false;
    } else {
      end = (std::min)(text.find(',', pos), text.size());
      items->push_back(trimmed(text.substr(pos, end - pos)));
      if (items->back().empty()) return false;
    }
    pos = end + 1;
  }
  return true;
}

/// Whether a node has an attribute other than "None".
PASSLIB_ON_DEMAND bool hasAttr(const Node* node, const char* key) {
  std::string text;
  return node != nullptr && node->attrs._get(key, &text) && text != "None";
}

PASSLIB_ON_DEMAND [[noreturn]] void failAttr(const Node* node, const char* key,
                                             const std::string& problem) {
  throw AttributeError("node " + detail::quoted(node->name) + " (" + node->op + "): attribute " +
                       detail::quoted(key) + " " + problem);
}

PASSLIB_ON_DEMAND std::string needAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr) {
    throw AttributeError("there is no node to have the attribute " + detail::quoted(key));
  }
  if (!node->attrs._get(key, &text) || text == "None") failAttr(node, key, "is missing");
  return text;
}

PASSLIB_ON_DEMAND [[noreturn]] void failAttrType(const Node* node, const char* key,
                                                 const char* wanted) {
  failAttr(node, key, "is " + detail::quoted(node->attrs.at(key)) + ", not " + wanted);
}

}  // namespace detail

PASSLIB_DEMANDED int64_t intAttr(const Node* node, const char* key) {
  int64_t value = 0;
  if (!detail::readInteger(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a whole number of 64 bits");
  }
  return value;
}

PASSLIB_DEMANDED int64_t intAttr(const Node* node, const char* key, int64_t preset) {
  return detail::hasAttr(node, key) ? intAttr(node, key) : preset;
}

PASSLIB_DEMANDED std::vector<int64_t> intsAttr(const Node* node, const char* key) {
  std::vector<std::string> items;
  bool valid = false;
  try {
    valid = detail::readList(detail::needAttr(node, key), &items);
  } catch (const JsonError&) {
  }
  std::vector<int64_t> values(items.size());
  for (std::size_t pos = 0; valid && pos < items.size(); ++pos) {
    valid = detail::readInteger(items[pos], &values[pos]);
  }
  if (!valid) detail::failAttrType(node, key, "a list of whole numbers of 64 bits");
  return values;
}

PASSLIB_DEMANDED std::vector<int64_t> intsAttr(const Node* node, const char* key,
                                               const std::vector<int64_t>& preset) {
  return detail::hasAttr(node, key) ? intsAttr(node, key) : preset;
}

PASSLIB_DEMANDED double realAttr(const Node* node, const char* key) {
  double value = 0;
  if (!detail::readReal(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a number");
  }
  return value;
}

PASSLIB_DEMANDED double realAttr(const Node* node, const char* key, double preset) {
  return detail::hasAttr(node, key) ? realAttr(node, key) : preset;
}

PASSLIB_DEMANDED bool boolAttr(const Node* node, const char* key) {
  bool value = false;
  if (!detail::readBoolean(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "True or False");
  }
  return value;
}

PASSLIB_DEMANDED bool boolAttr(const Node* node, const char* key, bool preset) {
  return detail::hasAttr(node, key) ? boolAttr(node, key) : preset;
}

PASSLIB_DEMANDED std::string textAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr || !node->attrs._get(key, &text)) {
    detail::failAttr(node, key, "is missing");
  }
  return text;
}

PASSLIB_DEMANDED std::string textAttr(const Node* node, const char* key,
                                      const std::string& preset) {
  std::string text;
  return node != nullptr && node->attrs._get(key, &text) ? text : preset;
}

// ---- shapes, users, parameters -----------------------------------------------------------------

namespace detail {

/// The entry of an output in __ext_shape__ or __ext_dtype__; "" if there is none.
PASSLIB_ON_DEMAND std::string inferredEntry(const NodeEntry& value, const char* key) {
  std::string text;
  if (value.entry < 0 || !value.node->attrs._get(key, &text)) return std::string();
  try {
    return listEntry(text, static_cast<unsigned>(value.entry), key);
  } catch (const std::out_of_range&) {
    return std::string();
  }
}

/// Whether an operator of MXNet or NNVM takes the data of a layer at its first input.
PASSLIB_ON_DEMAND bool takesDataFirst(const std::string& op) {
  static const char* const ops[] = {"Convolution",
                                    "Convolution_v1",
                                    "Deconvolution",
                                    "FullyConnected",
                                    "BatchNorm",
                                    "BatchNorm_v1",
                                    "LayerNorm",
                                    "GroupNorm",
                                    "InstanceNorm",
                                    "Embedding",
                                    "RNN",
                                    "SoftmaxOutput",
                                    "_contrib_SyncBatchNorm",
                                    "_contrib_BatchNormWithReLU",
                                    "_npx_convolution",
                                    "_npx_deconvolution",
                                    "_npx_fully_connected",
                                    "_npx_batch_norm",
                                    "_npx_layer_norm",
                                    "_npx_group_norm",
                                    "_npx_embedding",
                                    "_npx_rnn",
                                    "conv2d",
                                    "conv2d_transpose",
                                    "dense",
                                    "batch_norm"};
  for (const char* known : ops) {
    if (op == known) return true;
  }
  return false;
}

/// Whether a variable is an input of the model, as far as it or the operators that take it tell.
PASSLIB_ON_DEMAND bool isModelInput(const Node& node, const std::string& dialect) {
  if (dialect == "ark") return true;  // its files have no weights
  std::string place;
  const bool placed = node.attrs._get("__id__", &place);
  if (dialect == "onnx") {
    return (placed && place.compare(0, 6, "input.") == 0) || node.attrs.count("__default__") != 0;
  }
  if (dialect == "dlprim") return placed && place.compare(0, 7, "inputs[") == 0;
  for (const NodeEntry& use : node.outputs) {
    if (use.entry == 0 && takesDataFirst(use.node->op)) return true;
  }
  return false;
}

}  // namespace detail

PASSLIB_DEMANDED ValueShape shapeOf(const NodeEntry& value) {
  if (value.node == nullptr) return ValueShape();
  const Node& node = *value.node;
  if (node.tensor != nullptr) return ValueShape(node.tensor->shape);
  std::string text = detail::inferredEntry(value, MX_STR_SHAPE);
  int64_t least = 0;
  if ((text.empty() || text[0] != '[') && node.op == "null") {
    text = textAttr(&node, "__shape__", "");
    least = 1;  // variables have 0 for an unknown extent
  }
  std::vector<std::string> items;
  if (text.empty() || (text[0] != '[' && text[0] != '(') || !detail::readList(text, &items)) {
    return ValueShape();
  }
  std::vector<int64_t> extents(items.size());
  for (std::size_t pos = 0; pos < items.size(); ++pos) {
    if (!detail::readInteger(items[pos], &extents[pos]) || extents[pos] < least) extents[pos] = -1;
  }
  return ValueShape(extents);
}

PASSLIB_DEMANDED MXDType typeOf(const NodeEntry& value) {
  if (value.node == nullptr) return kUNSET;
  if (value.node->tensor != nullptr) return value.node->tensor->dtype;
  int64_t code = -1;
  std::string text = detail::inferredEntry(value, MX_STR_DTYPE);
  if (text.empty() && value.node->op == "null") text = textAttr(value.node, "__dtype__", "");
  const bool known = detail::readInteger(text, &code) && code >= kFloat32 && code <= kBfloat16;
  return known ? static_cast<MXDType>(code) : kUNSET;
}

PASSLIB_DEMANDED bool isOutput(const Graph* graph, const NodeEntry& value) {
  for (const NodeEntry& head : graph->outputs) {
    if (head.node == value.node && head.entry == value.entry) return true;
  }
  return false;
}

PASSLIB_DEMANDED bool isOutput(const Graph* graph, const Node* node) {
  for (const NodeEntry& head : graph->outputs) {
    if (head.node == node) return true;
  }
  return false;
}

PASSLIB_DEMANDED std::vector<NodeEntry> users(const NodeEntry& value) {
  std::vector<NodeEntry> uses;
  if (value.node == nullptr) return uses;
  for (const NodeEntry& use : value.node->outputs) {
    const NodeEntry& input = use.node->inputs.at(static_cast<std::size_t>(use.entry));
    if (input.entry == value.entry) uses.push_back(use);
  }
  return uses;
}

PASSLIB_DEMANDED Node* onlyUser(const Graph* graph, const NodeEntry& value) {
  const std::vector<NodeEntry> uses = users(value);
  return uses.size() == 1 && !isOutput(graph, value) ? uses[0].node : nullptr;
}

PASSLIB_DEMANDED bool isParameter(const Node* node) {
  if (node == nullptr || node->op != "null") return false;
  PassResource* resource = node->_passResource();
  const std::string dialect = resource == nullptr ? std::string() : resource->_dialect();
  if (detail::isModelInput(*node, dialect)) return false;
  if (dialect == "onnx" && (node->name == "__absent__" || node->attrs.count("__opaque__") != 0)) {
    return true;
  }
  if (dialect == "dlprim" && node->attrs.count("__shape__") == 0) return true;
  return node->tensor != nullptr || (resource != nullptr && resource->_isUnlent(node));
}

inline void PassResource::_offerTypes(const FlatModel& shown) {
  static uint16_t calls = 0;  // one pass of a library runs at a time
  shown_ = &shown;
  call_ = ++calls;
  for (std::size_t pos = 0; pos < graph_->nodes.size(); ++pos) {
    graph_->nodes[pos]->attrs._offerTypes(static_cast<uint32_t>(pos + 1), call_);
  }
}

inline const FlatText* PassResource::_types(const detail::TypesPlace& place) {
  const detail::Mutex::Guard lock(mutex_);
  if (shown_ == nullptr || place.call != call_) return nullptr;
  if (types_ == nullptr) types_ = shown_->types(shown_->host);
  return types_ == nullptr ? nullptr : types_ + 2 * (place.node - 1);
}

inline const FlatText* detail::readTypes(const TypesPlace& place) {
  PassResource* const resource = RunningPass::resource();
  return resource == nullptr ? nullptr : resource->_types(place);
}

PASSLIB_DEMANDED std::string PassResource::_dialect() const {
  if (graph_ == nullptr) return std::string();
  std::string name;
  graph_->attrs._getString("dialect", &name);
  return name;
}

PASSLIB_DEMANDED bool PassResource::_isUnlent(const Node* node) const {
  if (unlent_.empty()) return false;
  return bsearch(&node, unlent_.begin(), unlent_.size(), sizeof(const Node*),
                 &detail::compareAddresses<Node>) != nullptr;
}

PASSLIB_DEMANDED std::string PassResource::_freeName(const Graph& graph, const std::string& name) {
  const detail::Mutex::Guard lock(mutex_);
  if (named_ > graph.nodes.size() || named_graph_ != &graph) {
    names_.clear();
    named_ = 0;
    named_graph_ = &graph;
  }
  for (; named_ < graph.nodes.size(); ++named_) names_[graph.nodes[named_]->name];
  std::string free = name;
  for (int number = 1; names_.count(free) != 0; ++number) free = name + std::to_string(number);
  return free;
}

PASSLIB_DEMANDED Node* addParameter(Graph* graph, const std::string& name,
                                    const std::vector<int64_t>& shape, MXDType type,
                                    const MXContext& ctx) {
  PassResource* resource = graph->_passResource();
  if (resource == nullptr) {
    throw std::runtime_error("addParameter of " + detail::quoted(name) +
                             ": parameters can be added only while a pass runs");
  }
  const std::string free = resource->_freeName(*graph, name);
  MXTensor* tensor = resource->alloc_arg(free, shape, ctx, type);
  Node* node = graph->addNode(free, "null");
  node->_declareOutputs(1);
  node->tensor = tensor;
  graph->inputs.push_back(node);
  return node;
}

// ---- declarations ------------------------------------------------------------------------------

namespace detail {

/// What passes with declarations install, so that a library without any does not contain it.
struct DeclaredPasses {
  /// Returns the declarations as JSON.
  const char* (*describe)();
  /// Runs a body with declared options. Returns false if `function` is none.
  bool (*run)(graphPass_t function, const char* name, Graph* graph, const options_map_t& options,
              MXReturnValue* result);
  static DeclaredPasses* get() {
    static DeclaredPasses installed = {nullptr, nullptr};
    return &installed;
  }
};

/// The form in which hosts know a body with declared options. Only runTyped may call it.
PASSLIB_ON_DEMAND graphPass_t opaqueBody(typedPass_t body) {
  return reinterpret_cast<graphPass_t>(reinterpret_cast<void (*)()>(body));
}

PASSLIB_ON_DEMAND bool runTyped(graphPass_t function, const char* name, Graph* graph,
                                const options_map_t& options, MXReturnValue* result) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  const PassDeclaration* found = nullptr;
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& each = declared->get(pos);
    if (each.body == nullptr || opaqueBody(each.body) != function) continue;
    if (found == nullptr || each.name == name) found = &each;
  }
  if (found == nullptr) return false;
  *result = found->body(graph, OptionValues(*found, options));
  return true;
}

PASSLIB_ON_DEMAND void addDefaults(const char* name, options_map_t* options);

PASSLIB_ON_DEMAND bool runDeclared(graphPass_t function, const char* name, Graph* graph,
                                   const options_map_t& options, MXReturnValue* result) {
  if (runTyped(function, name, graph, options, result)) return true;
  options_map_t all(options);
  addDefaults(name, &all);
  *result = function(graph, all);
  return true;
}

PASSLIB_ON_DEMAND JsonVal jsonOf(const OptionValue& value) {
  switch (value.kind) {
    case OptionValue::kBoolean:
      return JsonVal::boolean(value.integer != 0);
    case OptionValue::kInteger:
      return JsonVal::integer(value.integer);
    case OptionValue::kReal:
      return JsonVal::real(value.real);
    case OptionValue::kText:
      break;
  }
  return JsonVal(value.text);
}

PASSLIB_ON_DEMAND JsonVal jsonOf(const std::vector<OptionValue>& values) {
  JsonVal list(LIST);
  for (const OptionValue& item : values) list.list.push_back(jsonOf(item));
  return list;
}

PASSLIB_ON_DEMAND JsonVal jsonOf(const std::vector<std::string>& texts) {
  JsonVal list(LIST);
  for (const std::string& item : texts) list.list.push_back(JsonVal(item));
  return list;
}

/// Adds the declared defaults of a pass to the options that the caller gave, in the same form.
PASSLIB_DEMANDED void addDefaults(const char* name, options_map_t* options) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    if (pass.name != name) continue;
    for (const OptionDeclaration& option : pass.options) {
      const OptionValue& preset = option.preset;
      std::string text = preset.kind == OptionValue::kText ? preset.text : jsonOf(preset).dump();
      if (preset.kind == OptionValue::kBoolean) text = preset.integer != 0 ? "True" : "False";
      if (preset.is_list) {
        text = "[";
        for (const OptionValue& item : preset.items) {
          text += (text.size() == 1 ? "" : ", ") + jsonOf(item).dump();
        }
        text += "]";
      }
      options->emplace(option.name, text);
    }
  }
}

PASSLIB_ON_DEMAND const char* kindName(OptionValue::Kind kind) {
  static const char* const names[] = {"boolean", "integer", "real", "text"};
  return names[kind];
}

PASSLIB_ON_DEMAND const char* describePasses() {
  JsonVal passes(LIST);
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    JsonVal object(MAP);
    object.map[JsonVal("name")] = JsonVal(pass.name);
    object.map[JsonVal("description")] = JsonVal(pass.description);
    object.map[JsonVal("any_options")] = JsonVal::boolean(pass.any_options);
    object.map[JsonVal("needs_weights")] = JsonVal::boolean(pass.needs_weights);
    if (pass.weights_on_demand) object.map[JsonVal("weights_on_demand")] = JsonVal::boolean(true);
    object.map[JsonVal("needs_shapes")] = JsonVal::boolean(pass.needs_shapes);
    object.map[JsonVal("dialects")] = jsonOf(pass.dialects);
    JsonVal& options = object.map[JsonVal("options")] = JsonVal(LIST);
    for (const OptionDeclaration& option : pass.options) {
      JsonVal member(MAP);
      member.map[JsonVal("name")] = JsonVal(option.name);
      member.map[JsonVal("description")] = JsonVal(option.description);
      member.map[JsonVal("kind")] = JsonVal(kindName(option.preset.kind));
      member.map[JsonVal("list")] = JsonVal::boolean(option.preset.is_list);
      member.map[JsonVal("default")] =
          option.preset.is_list ? jsonOf(option.preset.items) : jsonOf(option.preset);
      member.map[JsonVal("choices")] = jsonOf(option.choices);
      member.map[JsonVal("range")] = jsonOf(option.range);
      options.list.push_back(std::move(member));
    }
    if (pass.exact) object.map[JsonVal("exact")] = JsonVal::boolean(true);
    if (!pass.triggers.empty()) object.map[JsonVal("triggers")] = jsonOf(pass.triggers);
    if (!pass.pipelines.empty()) {
      JsonVal joins(MAP);
      joins.map[JsonVal("pipelines")] = jsonOf(pass.pipelines);
      joins.map[JsonVal("after")] = JsonVal(pass.after);
      joins.map[JsonVal("cost")] = JsonVal(pass.cost);
      JsonVal& always = joins.map[JsonVal("options")] = JsonVal(MAP);
      for (const auto& each : pass.pipeline_options)
        always.map[JsonVal(each.first)] = jsonOf(each.second);
      JsonVal& rounding = joins.map[JsonVal("rounding")] = JsonVal(MAP);
      for (const auto& each : pass.rounding_options)
        rounding.map[JsonVal(each.first)] = jsonOf(each.second);
      object.map[JsonVal("joins")] = std::move(joins);
    }
    passes.list.push_back(std::move(object));
  }
  JsonVal all(MAP);
  all.map[JsonVal("version")] = JsonVal(1);
  all.map[JsonVal("passes")] = std::move(passes);
  static const std::string& text = *new std::string(all.dump());
  return text.c_str();
}

/// Reads an option's text as a value of the declared kind. False for other text.
PASSLIB_ON_DEMAND bool readOption(OptionValue::Kind kind, const std::string& text,
                                  OptionValue* value) {
  bool flag = false;
  value->kind = kind;
  switch (kind) {
    case OptionValue::kBoolean:
      if (!readBoolean(text, &flag)) return false;
      value->integer = flag ? 1 : 0;
      return true;
    case OptionValue::kInteger:
      return readInteger(text, &value->integer);
    case OptionValue::kReal:
      return readReal(text, &value->real);
    case OptionValue::kText:
      break;
  }
  value->text = text;
  return true;
}

PASSLIB_ON_DEMAND double numberOf(const OptionValue& value) {
  return value.kind == OptionValue::kReal ? value.real : static_cast<double>(value.integer);
}

/// Whether choices and range of an option accept a value.
PASSLIB_ON_DEMAND bool accepts(const OptionDeclaration& option, const OptionValue& value) {
  const double number = numberOf(value);
  if (!option.range.empty() &&
      !(number >= numberOf(option.range[0]) && number <= numberOf(option.range[1]))) {
    return false;
  }
  for (const OptionValue& choice : option.choices) {
    if (value.kind == OptionValue::kText ? choice.text == value.text : numberOf(choice) == number) {
      return true;
    }
  }
  return option.choices.empty();
}

/// Returns the value that a text gives to an option. Throws std::invalid_argument.
PASSLIB_ON_DEMAND OptionValue optionValue(const OptionDeclaration& option,
                                          const std::string& text) {
  const OptionValue::Kind kind = option.preset.kind;
  OptionValue value(false);
  value.kind = kind;
  value.is_list = option.preset.is_list;
  std::vector<std::string> texts(1, text);
  bool valid = true;
  if (value.is_list) {
    texts.clear();
    valid = readList(text, &texts);
  }
  for (const std::string& each : texts) {
    OptionValue item(false);
    valid = valid && readOption(kind, each, &item) && accepts(option, item);
    if (value.is_list) {
      value.items.push_back(item);
    } else {
      value = item;
    }
  }
  if (valid) return value;
  std::string wanted = value.is_list ? std::string("a list of ") : std::string();
  wanted += kindName(kind);
  if (!option.choices.empty()) wanted += " of " + jsonOf(option.choices).dump();
  if (!option.range.empty()) wanted += " in the range " + jsonOf(option.range).dump();
  throw std::invalid_argument("option " + detail::quoted(option.name) + " takes " + wanted +
                              ", not " + detail::quoted(text));
}

}  // namespace detail

PASSLIB_DEMANDED OptionValues::OptionValues(const PassDeclaration& declaration,
                                            const options_map_t& given) {
  std::string names;
  for (const OptionDeclaration& option : declaration.options) {
    names += (names.empty() ? "" : ", ") + option.name;
    const auto found = given.find(option.name);
    values_.emplace(option.name, found == given.end() ? option.preset
                                                      : detail::optionValue(option, found->second));
  }
  for (const auto& pair : given) {
    if (values_.count(pair.first) == 0 && !declaration.any_options) {
      throw std::invalid_argument("there is no option " + detail::quoted(pair.first) + " (" +
                                  (names.empty() ? "the pass has none" : "there are: " + names) +
                                  ")");
    }
    given_.insert(pair);
  }
}

PASSLIB_DEMANDED const OptionValue& OptionValues::find(const std::string& name,
                                                       OptionValue::Kind kind, bool is_list) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error("the pass declares no option " + detail::quoted(name));
  }
  if (found->second.kind != kind || found->second.is_list != is_list) {
    throw std::logic_error("option " + detail::quoted(name) + " is declared as " +
                           (found->second.is_list ? "a list of " : "") +
                           detail::kindName(found->second.kind));
  }
  return found->second;
}

PASSLIB_DEMANDED bool OptionValues::boolean(const std::string& name) const {
  return find(name, OptionValue::kBoolean, false).integer != 0;
}
PASSLIB_DEMANDED int64_t OptionValues::integer(const std::string& name) const {
  return find(name, OptionValue::kInteger, false).integer;
}
PASSLIB_DEMANDED double OptionValues::real(const std::string& name) const {
  return find(name, OptionValue::kReal, false).real;
}
PASSLIB_DEMANDED const std::string& OptionValues::text(const std::string& name) const {
  return find(name, OptionValue::kText, false).text;
}
PASSLIB_DEMANDED std::vector<bool> OptionValues::booleans(const std::string& name) const {
  PASSLIB_LATER(std::vector<bool>) values;
  for (const OptionValue& item : find(name, OptionValue::kBoolean, true).items) {
    values.push_back(item.integer != 0);
  }
  return values;
}
PASSLIB_DEMANDED std::vector<int64_t> OptionValues::integers(const std::string& name) const {
  std::vector<int64_t> values;
  for (const OptionValue& item : find(name, OptionValue::kInteger, true).items) {
    values.push_back(item.integer);
  }
  return values;
}
PASSLIB_DEMANDED std::vector<double> OptionValues::reals(const std::string& name) const {
  std::vector<double> values;
  for (const OptionValue& item : find(name, OptionValue::kReal, true).items) {
    values.push_back(item.real);
  }
  return values;
}
PASSLIB_DEMANDED std::vector<std::string> OptionValues::texts(const std::string& name) const {
  std::vector<std::string> values;
  for (const OptionValue& item : find(name, OptionValue::kText, true).items) {
    values.push_back(item.text);
  }
  return values;
}
PASSLIB_DEMANDED bool OptionValues::given(const std::string& name) const {
  return given_.count(name) != 0;
}

PASSLIB_DEMANDED PassDeclaration& CustomPass::declare() {
  if (declaration == nullptr) {
    declaration = &Registry<PassDeclaration>::get()->add(name);
    *detail::DeclaredPasses::get() = {&detail::describePasses, &detail::runDeclared};
  }
  return *declaration;
}

PASSLIB_DEMANDED CustomPass& CustomPass::setBody(typedPass_t function) {
  declare().body = function;
  pass = detail::opaqueBody(function);
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::describe(const char* text) {
  declare().description = text;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::dialects(std::initializer_list<const char*> names) {
  return dialects(std::vector<std::string>(names.begin(), names.end()));
}

PASSLIB_DEMANDED CustomPass& CustomPass::dialects(const std::vector<std::string>& names) {
  declare().dialects = names;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::option(const char* key, const OptionValue& preset,
                                                const char* text) {
  declare().options.push_back(OptionDeclaration{key, preset, text, {}, {}});
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::option(const char* key, const OptionValue& preset,
                                                const char* text,
                                                std::initializer_list<OptionValue> choices) {
  declare().options.push_back(OptionDeclaration{key, preset, text, choices, {}});
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::option(const char* key, const OptionValue& preset,
                                                const char* text, const OptionValue& low,
                                                const OptionValue& high) {
  declare().options.push_back(OptionDeclaration{key, preset, text, {}, {low, high}});
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::anyOptions() {
  declare().any_options = true;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::needsWeights(bool wanted) {
  declare().needs_weights = wanted;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::weightsOnDemand() {
  declare().weights_on_demand = true;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::needsShapes(bool wanted) {
  declare().needs_shapes = wanted;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::exact() {
  declare().exact = true;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::triggers(const std::vector<std::string>& ops) {
  declare().triggers = ops;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::cost(const char* grows_with) {
  declare().cost = grows_with;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::joins(const char* pipeline, const char* after) {
  declare().pipelines.push_back(pipeline);
  declare().after = after;
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::inPipelines(const char* key, const OptionValue& value) {
  declare().pipeline_options.emplace_back(key, value);
  return *this;
}

PASSLIB_DEMANDED CustomPass& CustomPass::whenRounding(const char* key, const OptionValue& value) {
  declare().rounding_options.emplace_back(key, value);
  return *this;
}

// ---- operators ---------------------------------------------------------------------------------

inline MXReturnValue CustomStatefulOp::Backward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                                                const OpResource&) {
  MX_ERROR_MSG << "this operator has no Backward";
  return MX_FAIL;
}

template <typename Function>
CustomOp& CustomOp::add(Function function, const char* ctx, const char* what,
                        std::vector<Function>* functions, std::vector<const char*>* contexts) {
  // No exception: this runs while the library is loaded, and nothing could catch it.
  for (const char* known : *contexts) {
    if (strcmp(known, ctx) != 0) continue;
    MXerrorMsgs::get()->add(std::string("operator '") + name + "' has two " + what +
                            " functions for the context '" + ctx + "'");
    valid = false;
  }
  functions->push_back(function);
  contexts->push_back(ctx);
  return *this;
}

// ---- entry points ------------------------------------------------------------------------------

namespace detail {

#if defined(__GLIBCXX__)
/// Where a thread that is being ended unwinds through, it must not be stopped.
#define PASSLIB_RETHROW_END_OF_THREAD \
  catch (abi::__forced_unwind&) {     \
    throw;                            \
  }
#else
#define PASSLIB_RETHROW_END_OF_THREAD
#endif

/// The text of an exception, also of one that has none.
inline std::string textOf(const std::exception& error) {
  const char* text = error.what();
  return text == nullptr ? std::string("an exception without text") : std::string(text);
}

/// What passInterrupted() asks. Hosts set it once, before they run anything else.
struct InterruptSource {
  interrupted_t function;
  const void* host;
  static InterruptSource* get() {
    static InterruptSource source = {nullptr, nullptr};
    return &source;
  }
};

PASSLIB_COLD_CODE

template <typename Body>
int runBody(void* body) {
  return (*static_cast<Body*>(body))();
}

/// Runs run(body), the body of an entry point. Any exception becomes a message.
inline int runGuarded(const char* what, int (*run)(void*), void* body) {
  try {
    return run(body);
  } catch (const std::exception& error) {
    MXerrorMsgs::get()->add(printed("%s: %s", what, textOf(error).c_str()));
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    MXerrorMsgs::get()->add(printed("%s: something was thrown that is not a std::exception", what));
  }
  return MX_FAIL;
}

template <typename Body>
int guarded(const char* what, Body body) {
  return runGuarded(what, &runBody<Body>, &body);
}

/// Operator number idx; one without name and functions if there is none.
PASSLIB_ON_DEMAND CustomOp& operatorAt(int idx) {
  static CustomOp& none = *new CustomOp(nullptr);
  Registry<CustomOp>* operators = Registry<CustomOp>::get();
  return idx >= 0 && idx < operators->size() ? operators->get(idx) : none;
}

inline options_map_t makeOptions(const char* const* keys, const char* const* vals, int num) {
  options_map_t options;
  for (int pos = 0; pos < num; ++pos) {
    setText(JsonReader::Slice{keys[pos], strlen(keys[pos])},
            JsonReader::Slice{vals[pos], strlen(vals[pos])}, &options);
  }
  return options;
}

// These walk over all weights.
PASSLIB_SMALL_CODE

inline void addParams(ParamTable* params, PASSLIB_PARAM_BLOCK(param)) {
  for (int pos = 0; pos < num_param; ++pos) {
    params->add(param_names[pos], param_data[pos], static_cast<MXDType>(param_types[pos]),
                param_shapes[pos], param_dims[pos], param_IDs[pos],
                MXContext(param_dev_type[pos], param_dev_id[pos]));
  }
}

/// Throws std::runtime_error if a tensor refers to something else than what the host knows.
inline void requireUnchanged(const char* name, const MXTensor& tensor, const void* data,
                             MXDType type, const int64_t* shape, std::size_t dims) {
  const dlpack::DLTensor& view = tensor.dltensor;
  const char* changed = nullptr;
  if (tensor.shape.size() != dims ||
      (dims != 0 && memcmp(tensor.shape.data(), shape, dims * sizeof(int64_t)) != 0)) {
    changed = "shape";
  } else if (tensor.dtype != type) {
    changed = "dtype";
  } else if (tensor.stype != kDefaultStorage) {
    changed = "storage type";
  } else if (tensor.data_ptr != data) {
    changed = "data pointer";
  } else if (view.data != data || view.ndim != static_cast<int>(dims) || view.strides != nullptr ||
             view.byte_offset != 0) {
    changed = "dltensor";
  } else {
    return;
  }
  failCall(
      "the %s of the tensor of '%s' was changed, which the host does not see: in a pass, alloc_arg "
      "makes another tensor, to which the elements are copied",
      changed, name);
}

inline void ParamTable::requireAsLent() const {
  for (std::size_t pos = 0; pos < lent_.size(); ++pos) {
    const Lent& lent = lent_[pos];
    requireUnchanged(lent.name, tensors_[pos], lent.data, lent.type, lent.shape, lent.dims);
  }
}

}  // namespace detail

inline void PassResource::_requireAsMade(detail::AddressTable* tensors) const {
  for (const Made* each : made_) {
    tensors->add(&each->tensor);
    const MXTensor& given = each->given;
    detail::requireUnchanged(each->name.c_str(), each->tensor, given.data_ptr, given.dtype,
                             given.shape.data(), given.shape.size());
  }
}

inline void PassResource::_sortUnlent() {
  if (unlent_.empty()) return;
  qsort(unlent_.begin(), unlent_.size(), sizeof(const Node*), &detail::compareAddresses<Node>);
}

namespace detail {

/// Lends parameters to the variables of a graph, for the time of a call.
class CallParams {
 public:
  /// Lends no more than a resource if there are no parameters, which most walks are for.
  CallParams(Graph* graph, ParamTable* args, ParamTable* aux, const PassResource* resource)
      : graph_(graph),
        args_(args),
        aux_(aux),
        resource_(resource),
        any_(!args->empty() || !aux->empty()) {
    if (any_) graph->_setParams(args, aux);
  }
  bool any() const { return any_; }
  CallParams(const CallParams&) = delete;
  CallParams& operator=(const CallParams&) = delete;
  ~CallParams() {
    if (any_ || (resource_ != nullptr && resource_->_hasTensors())) graph_->_endPass();
  }
  /// Throws std::runtime_error if the call changed tensors, or gave variables others, in a way that
  /// the host does not see.
  void requireAsLent() const {
    args_->requireAsLent();
    aux_->requireAsLent();
    AddressTable made;
    if (resource_ != nullptr) resource_->_requireAsMade(&made);
    forEachNode(graph_, [](Graph*) {}, [&](Graph*, Node* node) { requireOwnTensor(*node, made); });
  }

 private:
  void requireOwnTensor(const Node& node, const AddressTable& made) const {
    if (node.tensor == nullptr || node.op != "null") return;
    const ParamTable::Lent* lent = args_->find(node.tensor);
    if (lent == nullptr) lent = aux_->find(node.tensor);
    std::string copy;
    if (lent != nullptr && (lent->node == &node || paramName(node, &copy) == lent->name)) return;
    const int64_t position = made.find(node.tensor);
    if (lent == nullptr && position < 0) {
      failCall("variable '%s' has a tensor that the host did not lend: alloc_arg makes one",
               node.name.c_str());
    }
    const char* const owner =
        lent != nullptr ? lent->name : resource_->_nameOfMade(position).c_str();
    if (lent == nullptr && node.name == owner) return;
    failCall(
        "variable '%s' has the tensor of '%s', which the host does not see: alloc_arg makes one",
        node.name.c_str(), owner);
  }

  Graph* graph_;
  const ParamTable* args_;
  const ParamTable* aux_;
  const PassResource* resource_;
  bool any_;
};

/// Calls a pass, for both entry points. `args`, `aux`: the parameters.
inline int runPass(graphPass_t function, Graph* graph, const FlatModel* shown,
                   const options_map_t& options, const char* name, ParamTable* args,
                   ParamTable* aux, nd_malloc_t nd_malloc, const void* nd_alloc) {
  if (function == nullptr) {
    MXerrorMsgs::get()->add(printed("pass '%s' has no body: call setBody", name));
    return MX_FAIL;
  }
  PassResource resource(nd_malloc, nd_alloc);
  resource._setGraph(graph);
  resource._setParams(args, aux);
  if (shown != nullptr && shown->types != nullptr) resource._offerTypes(*shown);
  const RunningPass running(&resource);
  const CallParams lent(graph, args, aux, &resource);
  for (Node* node : span(graph->inputs)) {
    if (!lent.any()) break;
    const MXTensor* tensor = node->tensor;
    if (tensor == nullptr || tensor->data_ptr != nullptr || tensor->size() == 0) continue;
    if (tensor->verID != 0) continue;  // on demand
    resource._noteUnlent(node);
    node->tensor = nullptr;
  }
  resource._sortUnlent();
  const DeclaredPasses* declared = DeclaredPasses::get();
  MXReturnValue result = MX_FAIL;
  if (declared->run == nullptr || !declared->run(function, name, graph, options, &result)) {
    result = function(graph, options);
  }
  if (result != MX_SUCCESS) return MX_FAIL;
  if (lent.any() || resource._hasTensors()) lent.requireAsLent();
  return MX_SUCCESS;
}

PASSLIB_END_CODE

/// Why the library cannot be used, a line for each reason: collected while it is loaded.
inline std::string& loadErrors() {
  static std::string& errors = *new std::string();
  return errors;
}

/// Memory for the host, freed here unless released to it.
class Handout {
 public:
  Handout() {}
  ~Handout() {
    for (void* block : blocks_) free(block);
  }
  template <typename ValueType>
  ValueType* array(std::size_t count) {
    blocks_.push(nullptr);
    void* memory = malloc(std::max<std::size_t>(count, 1) * sizeof(ValueType));
    if (memory == nullptr) throw std::bad_alloc();
    blocks_.back() = memory;
    return static_cast<ValueType*>(memory);
  }
  template <typename ValueType>
  ValueType* copy(const std::vector<ValueType>& values) {
    ValueType* memory = array<ValueType>(values.size());
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }
  char* copy(const std::string& text) {
    char* memory = array<char>(text.size() + 1);
    memcpy(memory, text.c_str(), text.size() + 1);
    return memory;
  }
  void release() { blocks_.clear(); }

 private:
  PlainList<void*> blocks_;
};

template <typename ValueType>
void requireCount(const std::vector<ValueType>& values, int count, const char* what) {
  if (values.size() == static_cast<std::size_t>(count)) return;
  throw std::runtime_error(std::string("there must be ") + std::to_string(count) + " " + what +
                           ", the function left " + std::to_string(values.size()));
}

template <typename Function>
void requireFunction(Function function, const char* setter) {
  if (function != nullptr) return;
  throw std::runtime_error(std::string("there is no such function: call ") + setter);
}

typedef std::vector<std::vector<unsigned int> > ShapeList;

PASSLIB_ON_DEMAND ShapeList makeShapes(unsigned int** shapes, const int* dims, int count) {
  ShapeList list;
  for (int pos = 0; pos < count; ++pos) list.emplace_back(shapes[pos], shapes[pos] + dims[pos]);
  return list;
}

PASSLIB_ON_DEMAND void handOut(const ShapeList& list, Handout* memory, unsigned int*** shapes,
                               int** dims) {
  *shapes = memory->array<unsigned int*>(list.size());
  *dims = memory->array<int>(list.size());
  for (std::size_t pos = 0; pos < list.size(); ++pos) {
    (*shapes)[pos] = memory->copy(list[pos]);
    (*dims)[pos] = static_cast<int>(list[pos].size());
  }
}

/// The inputs, or the outputs, of an operator's call.
struct TensorBlock {
  const int64_t** shapes;
  const int* dims;
  void** data;
  const int* types;
  const size_t* ids;
  const char** device_types;
  const int* device_ids;
  int count;
  const int* storage_types;
  void** indices;
  void** indptr;
  const int64_t* indices_counts;
  const int64_t* indptr_counts;
};

/// `sparse` receives the targets of the data_ptr of sparse tensors, and has room for them.
PASSLIB_ON_DEMAND std::vector<MXTensor> makeTensors(const TensorBlock& block,
                                                    std::vector<MXSparse>* sparse) {
  std::vector<MXTensor> tensors(static_cast<std::size_t>(block.count));
  for (int pos = 0; pos < block.count; ++pos) {
    const MXStorageType storage = static_cast<MXStorageType>(block.storage_types[pos]);
    void* data = block.data[pos];
    if (storage != kDefaultStorage) {
      sparse->emplace_back();
      const bool csr = storage == kCSRStorage;
      sparse->back().set(data, block.shapes[pos], block.dims[pos], block.indices[pos],
                         block.indices_counts[pos], csr ? block.indptr[pos] : nullptr,
                         csr ? block.indptr_counts[pos] : 0);
      data = &sparse->back();
    }
    tensors[static_cast<std::size_t>(pos)].setTensor(
        data, static_cast<MXDType>(block.types[pos]), block.shapes[pos], block.dims[pos],
        block.ids[pos], MXContext(block.device_types[pos], block.device_ids[pos]), storage);
  }
  return tensors;
}

/// Calls body(inputs, outputs, resource) with the tensors of an operator's call.
template <typename Body>
int compute(Body body, PASSLIB_IO_BLOCK, PASSLIB_RESOURCE_BLOCK) {
  std::vector<MXSparse> sparse;
  sparse.reserve(static_cast<std::size_t>(num_in) + static_cast<std::size_t>(num_out));
  std::vector<MXTensor> inputs =
      makeTensors({inshapes, indims, indata, intypes, inIDs, indev_type, indev_id, num_in, instypes,
                   in_indices, in_indptr, in_indices_shapes, in_indptr_shapes},
                  &sparse);
  std::vector<MXTensor> outputs =
      makeTensors({outshapes, outdims, outdata, outtypes, outIDs, outdev_type, outdev_id, num_out,
                   outstypes, out_indices, out_indptr, out_indices_shapes, out_indptr_shapes},
                  &sparse);
  const OpResource resource(cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream, sparse_malloc,
                            sparse_alloc, rng_cpu_states, rng_gpu_states);
  return body(&inputs, &outputs, resource) == MX_SUCCESS ? MX_SUCCESS : MX_FAIL;
}

/// Calls an inferType or inferSType function. Outputs are initially -1: unknown.
template <typename Function>
int inferInPlace(Function function, const options_map_t& attributes, int* inputs, int num_in,
                 int* out, int num_out) {
  std::vector<int> in_codes(inputs, inputs + num_in);
  std::vector<int> out_codes(static_cast<std::size_t>(num_out), -1);
  if (function(attributes, &in_codes, &out_codes) != MX_SUCCESS) return MX_FAIL;
  requireCount(in_codes, num_in, "input types");
  requireCount(out_codes, num_out, "output types");
  std::copy(in_codes.begin(), in_codes.end(), inputs);
  std::copy(out_codes.begin(), out_codes.end(), out);
  return MX_SUCCESS;
}

PASSLIB_END_CODE
PASSLIB_PLAIN_CODE
inline char* allocateLarge(const FlatMemory& memory, std::size_t size) {
  void* const place = memory.allocate(size);
  if (place == nullptr) throw std::bad_alloc();
  return static_cast<char*>(place);
}

/// The nodes of a graph that a host described, in one piece of memory. What a pass deletes of them
/// stays in it. Their packed attributes are the host's as long as nobody replaces them.
class NodeMemory {
 public:
  NodeMemory(const FlatMemory& memory, std::size_t count)
      : memory_(memory), begin_(allocateLarge(memory, (count + 1) * kStride)), next_(begin_) {}
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  ~NodeMemory() { memory_.release(begin_); }
  /// `packed`: its attributes, or null.
  Node* make(const uint32_t* packed) {
    Node* const node = ::new (Node::mark(next_, true)) Node();
    next_ += kStride;
    if (packed != nullptr) node->attrs._lendPacked(packed);
    return node;
  }
  /// Whether `nodes` is a prefix of the nodes in the order of their making.
  bool beginsWith(const std::vector<Node*>& nodes) const {
    std::size_t pos = 0;
    while (pos < nodes.size() && reinterpret_cast<const char*>(nodes[pos]) == place(pos)) ++pos;
    return pos == nodes.size();
  }
  /// The place of node number `pos`.
  const char* place(std::size_t pos) const { return begin_ + Node::kMark + pos * kStride; }
  static constexpr std::size_t kStride = Node::kMark + sizeof(Node);

 private:
  const FlatMemory memory_;
  char* begin_;
  char* next_;
};

/// An array of structs of any one kind, without gaps in them.
class FlatArray {
 public:
  explicit FlatArray(const FlatMemory* memory)
      : memory_(memory), data_(nullptr), size_(0), room_(0), shown_(nullptr), shown_size_(0) {}
  FlatArray(const FlatArray&) = delete;
  FlatArray& operator=(const FlatArray&) = delete;
  ~FlatArray() {
    if (data_ != nullptr) memory_->release(data_);
  }
  void reserve(std::size_t bytes) {
    char* moved = allocateLarge(*memory_, bytes);
    if (size_ != 0) memcpy(moved, data_ != nullptr ? data_ : shown_, size_);
    if (data_ != nullptr) memory_->release(data_);
    data_ = moved;
    room_ = bytes;
  }
  /// The array is a host's as long as it gets the same items. Nothing may have been added yet.
  template <typename Item>
  PASSLIB_INLINE void follow(const Item* items, uint64_t count) {
    shown_ = reinterpret_cast<const char*>(items);
    shown_size_ = static_cast<std::size_t>(count) * sizeof(Item);
  }
  template <typename Item>
  void push(const Item& item) {
    if (data_ == nullptr && shown_size_ - size_ >= sizeof(Item)) {
      if (memcmp(shown_ + size_, &item, sizeof(Item)) == 0) {
        size_ += sizeof(Item);
        return;
      }
      reserve(shown_size_ + 1024);
    }
    if (data_ == nullptr || room_ - size_ < sizeof(Item)) {
      reserve(2 * (std::max)(size_, std::size_t(512)));
    }
    memcpy(data_ + size_, &item, sizeof(Item));
    size_ += sizeof(Item);
  }
  template <typename Item>
  PASSLIB_INLINE uint64_t get(const Item** items) const {
    *items = reinterpret_cast<const Item*>(data_ != nullptr ? data_ : shown_);
    return size_ / sizeof(Item);
  }
  std::size_t size() const { return size_; }

 private:
  const FlatMemory* memory_;
  char* data_;
  std::size_t size_;
  std::size_t room_;
  const char* shown_;  // the host's
  std::size_t shown_size_;
};

/// Positions of the nodes of a graph: by their addresses, if they still lie in the order in which a
/// host described them, otherwise by a table.
class FlatPositions {
 public:
  FlatPositions(const std::vector<Node*>& nodes, const NodeMemory* memory)
      : begin_(memory != nullptr && memory->beginsWith(nodes) ? memory->place(0) : nullptr),
        end_(begin_ + (begin_ == nullptr ? 0 : nodes.size() * NodeMemory::kStride)),
        table_(nodes.data(), begin_ == nullptr ? nodes.size() : 0) {}
  int64_t find(const Node* node) const {
    const char* const place = reinterpret_cast<const char*>(node);
    if (begin_ == nullptr) return table_.find(node);
    if (std::less<const char*>()(place, begin_) || !std::less<const char*>()(place, end_)) {
      return -1;
    }
    return (place - begin_) / static_cast<std::ptrdiff_t>(NodeMemory::kStride);
  }

 private:
  const char* begin_;
  const char* end_;
  NodeTable table_;
};

/// A graph in the flat form: the arrays, and the texts that are not the graph's own.
struct FlatStore {
  /// `large`: the host's.
  explicit FlatStore(const FlatMemory& large)
      : graphs_(&model.memory),
        nodes_(&model.memory),
        edges_(&model.memory),
        control_deps_(&model.memory),
        pairs_(&model.memory) {
    model.memory = large;
  }

  FlatModel model = {};
  Owner<NodeMemory> memory;  // of the graph's nodes
  Owner<Graph> graph;        // if it belongs to this object

  /// Sets `model`. Throws GraphStructureError for edges to nodes outside their graph, and for
  /// subgraphs that are null or belong to two nodes. `root` is borrowed.
  /// `shown`: what `graph` was made of, if it was.
  void flatten(const Graph& root, const FlatModel* shown = nullptr);
  /// Sets `graph` and returns it.
  Graph* unflatten(const FlatModel& shown);

 private:
  void add(const Graph& level);
  void addNode(const Node& node, const FlatPositions& positions, const FlatNode* shown);
  static uint32_t found(const Node& node, std::size_t pos, int64_t position) {
    if (position < 0) dependency(node, pos, NodeTable(nullptr, 0));  // says what is wrong
    return static_cast<uint32_t>(position);
  }
  FlatText keepText(const std::string& text, const FlatText* shown);
  const uint32_t* keepPacked(const NodeAttributes& attributes, std::size_t* words);
  void addPair(const JsonReader::Slice& key, const JsonReader::Slice& text) {
    pairs_.push(FlatPair{{key.data, key.size}, {text.data, text.size}});
    ++num_pairs_;
  }
  void addMembers(const JsonMembers& members);

  FlatArray graphs_;
  FlatArray nodes_;
  FlatArray edges_;
  FlatArray control_deps_;
  FlatArray pairs_;
  uint32_t num_pairs_ = 0;
  const FlatNode* shown_ = nullptr;  // what the host showed at the place of the next node
  const FlatNode* shown_end_ = nullptr;
  TextBuffer texts_;
  GraphTable levels_;  // the graphs of the nodes so far
};

/// The texts are copied: members may be printed for this call alone.
inline void FlatStore::addMembers(const JsonMembers& members) {
  JsonReader::Slice key;
  JsonReader::Slice text;
  for (JsonMembers::Walk walk(members); walk.next(&key, &text);) {
    char* const copy = texts_.room(key.size + text.size);
    if (key.size != 0) memcpy(copy, key.data, key.size);
    memcpy(copy + key.size, text.data, text.size);
    texts_.advance(key.size + text.size);
    addPair(JsonReader::Slice{copy, key.size}, JsonReader::Slice{copy + key.size, text.size});
  }
}

/// A host copies the texts, so that a library finds them one behind the other. A library names
/// those that it was shown as the host's own.
inline FlatText FlatStore::keepText(const std::string& text, const FlatText* shown) {
  const std::size_t size = text.size();
  if (shown != nullptr && shown->size == size && memcmp(shown->data, text.data(), size) == 0) {
    return *shown;
  }
  if (memory.get() != nullptr) return FlatText{text.data(), size};
  char* const copy = texts_.room(size);
  memcpy(copy, text.data(), size);
  texts_.advance(size);
  return FlatText{copy, size};
}

/// The host reads in turn: attributes that it lent may be gone when it comes to another place.
inline const uint32_t* FlatStore::keepPacked(const NodeAttributes& attributes, std::size_t* words) {
  const uint32_t* const packed = attributes._packed(words);
  if (memory.get() == nullptr || packed == nullptr || !attributes._isLent()) return packed;
  const std::size_t size = *words * sizeof(uint32_t);
  char* text = texts_.room(size + sizeof(uint32_t));
  const std::size_t beyond = reinterpret_cast<uintptr_t>(text) % sizeof(uint32_t);
  if (beyond != 0) text += sizeof(uint32_t) - beyond;
  memcpy(text, packed, size);
  texts_.advance(size + sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(text);
}

inline void FlatStore::addNode(const Node& node, const FlatPositions& positions,
                               const FlatNode* shown) {
  FlatNode flat = {};
  flat.op = keepText(node.op, shown == nullptr ? nullptr : &shown->op);
  flat.name = keepText(node.name, shown == nullptr ? nullptr : &shown->name);
  if (shown != nullptr && shown->packed != nullptr && node.attrs._isStill(shown->packed)) {
    flat.packed = shown->packed;  // what nobody changed is the host's own, too
    flat.packed_words = shown->packed_words;
  } else {
    std::size_t words = 0;
    flat.packed = keepPacked(node.attrs, &words);
    flat.packed_words = static_cast<uint32_t>(words);
  }
  model.packed_words += flat.packed_words;
  num_pairs_ = 0;
  if (flat.packed == nullptr) {
    JsonReader::Slice key;
    JsonReader::Slice text;
    for (NodeAttributes::Walk walk(node.attrs); walk.next(&key, &text);) {
      if (!node.attrs._hasTypes() || !isOfTypes(key.data, key.size)) addPair(key, text);
    }
  }
  flat.num_attrs = num_pairs_;
  if (!node.extra.empty()) addMembers(node.extra);
  flat.num_extra = num_pairs_ - flat.num_attrs;
  flat.num_inputs = static_cast<uint32_t>(node.inputs.size());
  flat.num_control_deps = static_cast<uint32_t>(node.control_deps.size());
  flat.num_subgraphs = static_cast<uint32_t>(node.subgraphs.size());
  flat.num_outputs = node.num_outputs;
  flat.outputs_declared = node.num_outputs > 0 && !node._hasOutput(node.num_outputs) ? 1 : 0;
  nodes_.push(flat);
  for (std::size_t pos = 0; pos < flat.num_inputs; ++pos) {
    const NodeEntry& input = node.inputs[pos];
    edges_.push(FlatEdge{found(node, pos, positions.find(input.node)), input.entry, input.version});
  }
  for (std::size_t pos = 0; pos < flat.num_control_deps; ++pos) {
    control_deps_.push(found(node, flat.num_inputs + pos, positions.find(node.control_deps[pos])));
  }
  for (const Graph* nested : span(node.subgraphs)) {
    if (nested == nullptr) failGraph("a subgraph of node '%s' is null", node.name.c_str());
    if (!levels_.add(nested)) {
      failGraph("a subgraph of node '%s' also belongs to another node", node.name.c_str());
    }
  }
}

inline void FlatStore::add(const Graph& level) {
  const FlatPositions positions(level.nodes, memory.get());
  for (std::size_t pos = 0; pos < level.nodes.size(); ++pos) {
    prefetchNode(level.nodes, pos, &Node::op);
    if (memory.get() == nullptr && pos + 16 < level.nodes.size()) {
      __builtin_prefetch(&level.nodes[pos + 16]->attrs);
      level.nodes[pos + 6]->attrs._prefetch();
    }
    addNode(*level.nodes[pos], positions, shown_ == shown_end_ ? nullptr : shown_++);
  }
  for (const NodeEntry& head : span(level.outputs)) {
    const int64_t position = positions.find(head.node);
    if (position < 0) failGraph("an output of the graph comes from a node that is not in it");
    edges_.push(FlatEdge{static_cast<uint32_t>(position), head.entry, head.version});
  }
  num_pairs_ = 0;
  JsonMembers printed;
  addMembers(level.attrs._texts(&printed));
  graphs_.push(FlatGraph{level.nodes.size(), level.outputs.size(), num_pairs_});
}

inline void FlatStore::flatten(const Graph& root, const FlatModel* shown) {
  if (shown != nullptr) {
    shown_ = shown->nodes;
    shown_end_ = shown_ + shown->graphs[0].num_nodes;
    nodes_.follow(shown->nodes, shown->num_nodes);
    edges_.follow(shown->edges, shown->num_edges);
    control_deps_.follow(shown->control_deps, shown->num_control_deps);
  } else {
    texts_.room(32 * root.nodes.size());
    nodes_.reserve((root.nodes.size() + 8) * sizeof(FlatNode));
    edges_.reserve((2 * root.nodes.size() + 8) * sizeof(FlatEdge));
  }
  levels_.add(&root);
  for (std::size_t pos = 0; pos < levels_.size(); ++pos) {
    add(*levels_[pos]);
    shown_ = shown_end_;
  }
  model.version = PASSLIB_FLAT_VERSION;
  model.size = sizeof(FlatModel);
  model.num_graphs = graphs_.get(&model.graphs);
  model.num_nodes = nodes_.get(&model.nodes);
  model.num_edges = edges_.get(&model.edges);
  model.num_control_deps = control_deps_.get(&model.control_deps);
  model.num_pairs = pairs_.get(&model.pairs);
  model.owner = this;
}

/// Makes the graph that a host describes, which is sound.
class FlatReader {
 public:
  /// `memory`: for all nodes.
  FlatReader(const FlatModel& model, NodeMemory* memory)
      : memory_(memory),
        node_(model.nodes),
        edge_(model.edges),
        dep_(model.control_deps),
        pair_(model.pairs) {}

  /// `root`: an empty graph.
  void read(const FlatGraph* level, const FlatGraph* end, Graph* root) {
    levels_.push(root);
    for (std::size_t pos = 0; level != end; ++level, ++pos) readLevel(*level, levels_[pos]);
  }

 private:
  static JsonReader::Slice sliceOf(const FlatText& text) {
    return JsonReader::Slice{text.data, static_cast<std::size_t>(text.size)};
  }
  static std::unordered_map<std::string, std::string>& texts(Node* node) { return node->attrs; }
  static void assign(const FlatText& text, std::string* target) {
    target->assign(text.data, static_cast<std::size_t>(text.size));
  }
  /// Takes pairs with JSON, which the host wrote as JsonMembers wants it.
  void takeMembers(uint64_t count, JsonMembers* members) {
    for (; count != 0; --count, ++pair_) members->add(sliceOf(pair_->key), sliceOf(pair_->text));
  }

  void readLevel(const FlatGraph& level, Graph* graph) {
    const FlatNode* const first = node_;
    const std::size_t count = static_cast<std::size_t>(level.num_nodes);
    PlainList<uint32_t> uses;
    uses.addZeros(count);
    const FlatEdge* ahead = edge_;
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth) ++uses[(ahead++)->node];
    }
    graph->nodes.resize(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      Node* const node = graph->nodes[pos] = memory_->make(node_->packed);
      readNode(*node_++, uses[pos], node);
      uses[pos] = 0;
      if (node->op == "null") append(&graph->inputs) = node;
    }
    makeItems(&graph->outputs, static_cast<std::size_t>(level.num_outputs));
    linkNodes(first, uses.begin(), &edge_, &dep_, graph);
    JsonMembers attributes;
    takeMembers(level.num_attrs, &attributes);
    graph->attrs._setTexts(&attributes);
  }

  void readNode(const FlatNode& from, uint32_t uses, Node* node) {
    assign(from.op, &node->op);
    assign(from.name, &node->name);
    // Every list gets its room at once, next to its node: walks read both.
    makeItems(&node->inputs, from.num_inputs);
    makeItems(&node->outputs, uses);
    for (uint32_t nth = 0; nth < from.num_attrs; ++nth, ++pair_) {
      setText(sliceOf(pair_->key), sliceOf(pair_->text), &texts(node));
    }
    takeMembers(from.num_extra, &node->extra);
    if (from.num_subgraphs != 0) makeItems(&node->subgraphs, from.num_subgraphs);
    for (Graph*& nested : span(node->subgraphs)) {
      nested = new Graph();
      levels_.push(nested);
    }
    node->num_outputs = from.num_outputs;
    if (from.outputs_declared != 0) node->_declareOutputs(from.num_outputs);
  }

  NodeMemory* memory_;
  PlainList<Graph*> levels_;  // those of the nodes read so far
  const FlatNode* node_;      // what comes next
  const FlatEdge* edge_;
  const uint32_t* dep_;
  const FlatPair* pair_;
};

inline Graph* FlatStore::unflatten(const FlatModel& shown) {
  memory.reset(new NodeMemory(model.memory, static_cast<std::size_t>(shown.num_nodes)));
  graph.reset(new Graph());
  FlatReader(shown, memory.get()).read(shown.graphs, shown.graphs + shown.num_graphs, graph.get());
  return graph.get();
}

PASSLIB_END_CODE
PASSLIB_COLD_CODE

inline Graph* readGraph(const char* json) {
  JsonOptions reading;
  reading.allow_control_characters = true;  // MXNet does not escape them
  return Graph::fromString(json, strlen(json), reading);
}

/// The graph of a call, which a host gives as plain arrays or as JSON.
class GivenGraph {
 public:
  GivenGraph(const char* json, const FlatModel* flat) : graph_(nullptr) {
    if (flat == nullptr) {
      read_.reset(readGraph(json));
      graph_ = read_.get();
    } else {
      store_.reset(new FlatStore(flat->memory));
      graph_ = store_->unflatten(*flat);
    }
  }
  Graph* get() const { return graph_; }
  /// Returns the graph as plain arrays, with all that they refer to.
  const FlatModel* releaseFlat(const FlatModel* shown) {
    store_->flatten(*graph_, shown);
    return &store_.release()->model;
  }

 private:
  Owner<FlatStore> store_;
  Owner<Graph> read_;
  Graph* graph_;
};

/// The body of both entry points of passes: the graph and its result are JSON or plain arrays.
inline int callPass(graphPass_t function, const char* json, char** json_result,
                    const FlatModel* flat, const FlatModel** flat_result, PASSLIB_OPTION_BLOCK,
                    const char* pass_name, PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                    nd_malloc_t nd_malloc, const void* nd_alloc) {
  return guarded(printed("pass '%s'", pass_name).c_str(), [&]() -> int {
    ParamTable args(static_cast<std::size_t>(num_arg));
    ParamTable aux(static_cast<std::size_t>(num_aux));
    addParams(&args, PASSLIB_PARAM_NAMES(arg));
    addParams(&aux, PASSLIB_PARAM_NAMES(aux));
    GivenGraph graph(json, flat);
    if (runPass(function, graph.get(), flat, makeOptions(opt_keys, opt_vals, num_opts), pass_name,
                &args, &aux, nd_malloc, nd_alloc) != MX_SUCCESS) {
      return MX_FAIL;
    }
    if (flat != nullptr) {
      *flat_result = graph.releaseFlat(flat);
    } else {
      Handout memory;
      *json_result = memory.copy(graph.get()->toString());
      memory.release();
    }
    return MX_SUCCESS;
  });
}

/// A selector with its graph.
struct OwnedSelector {
  OwnedSelector(const char* json, const FlatModel* flat) : graph(json, flat) {}
  GivenGraph graph;
  Owner<CustomOpSelector> selector;  // destroyed first
};

/// Calls a selector. Its exceptions must be of a type that the host can catch.
template <typename Body>
void callSelector(void* selector, Body body) {
  try {
    body(static_cast<OwnedSelector*>(selector)->selector.get());
  } catch (const std::exception&) {
    throw;
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    throw std::runtime_error("the selector threw something that is not a std::exception");
  }
}

/// The family of models that a graph belongs to.
inline std::string dialectOf(const Graph& graph) {
  std::string name;
  return graph.attrs._getString("dialect", &name) ? name : "mxnet";
}

}  // namespace detail

PASSLIB_END_CODE

inline bool passInterrupted() {
  const detail::InterruptSource* source = detail::InterruptSource::get();
  return source->function != nullptr && source->function(source->host) != 0;
}

namespace detail {

/// What the entry points of operators call. All is null in a library without operators, which then
/// compiles none of it: members of a class template are compiled when something names them.
struct OperatorCalls {
  opRegSize_t size;
  opRegGet_t describe;
  opCallParseAttrs_t parseAttrs;
  opCallInferShape_t inferShape;
  opCallInferType_t inferType;
  opCallInferSType_t inferSType;
  opCallFComp_t callFunction;
  opCallMutateInputs_t mutateInputs;
  opCallCreateOpState_t createOpState;
  opCallDestroyOpState_t destroyOpState;
  opCallFStatefulComp_t callState;
  static OperatorCalls* get() {
    static OperatorCalls calls;
    return &calls;
  }
};

/// The same of partitioners.
struct PartitionerCalls {
  partRegSize_t size;
  partRegGetCount_t strategies;
  partRegGet_t describe;
  // With the graph's JSON, or with the graph as plain arrays.
  int (*supportedOps)(supportedOps_t function, const char* json, const FlatModel* flat, int num_ids,
                      int* ids, PASSLIB_OPTION_BLOCK);
  int (*createSelector)(createSelector_t function, const char* json, const FlatModel* flat,
                        void** selector, PASSLIB_OPTION_BLOCK);
  partCallSelect_t select;
  partCallSelectInput_t selectInput;
  partCallSelectOutput_t selectOutput;
  partCallFilter_t filter;
  partCallReset_t reset;
  passlibPartDestroySelector_t destroySelector;
  int (*reviewSubgraph)(reviewSubgraph_t function, const char* json, const FlatModel* flat,
                        int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK, char*** attr_keys,
                        char*** attr_vals, int* num_attrs, PASSLIB_PARAM_BLOCK(arg),
                        PASSLIB_PARAM_BLOCK(aux));
  static PartitionerCalls* get() {
    static PartitionerCalls calls;
    return &calls;
  }
};

template <typename Unused>
struct Calls<CustomOp, Unused> {
  static void install() {
    OperatorCalls* calls = OperatorCalls::get();
    calls->size = &size;
    calls->describe = &describe;
    calls->parseAttrs = &parseAttrs;
    calls->inferShape = &inferShape;
    calls->inferType = &inferType;
    calls->inferSType = &inferSType;
    calls->callFunction = &callFunction;
    calls->mutateInputs = &mutateInputs;
    calls->createOpState = &createOpState;
    calls->destroyOpState = &destroyOpState;
    calls->callState = &callState;
  }

  static int size() { return Registry<CustomOp>::get()->size(); }

  static void describe(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                       fcomp_t** forward_fp, int* forward_count, const char*** backward_ctx,
                       fcomp_t** backward_fp, int* backward_count, const char*** create_op_ctx,
                       createOpState_t** create_op_fp, int* create_op_count, parseAttrs_t* parse,
                       inferType_t* type, inferSType_t* stype, inferShape_t* shape,
                       mutateInputs_t* mutate) {
    CustomOp& op = operatorAt(idx);
    *name = op.name;
    *isSGop = op.isSGop ? 1 : 0;
    // An invalid registration shows no functions, so that hosts reject it.
    const auto count = [&op](std::size_t functions) {
      return op.valid ? static_cast<int>(functions) : 0;
    };
    *forward_ctx = op.forward_ctx_cstr.data();
    *forward_fp = op.forward_fp.data();
    *forward_count = count(op.forward_fp.size());
    *backward_ctx = op.backward_ctx_cstr.data();
    *backward_fp = op.backward_fp.data();
    *backward_count = count(op.backward_fp.size());
    *create_op_ctx = op.create_op_ctx_cstr.data();
    *create_op_fp = op.create_op_fp.data();
    *create_op_count = count(op.create_op_fp.size());
    *parse = op.valid ? op.parse_attrs : nullptr;
    *type = op.infer_type;
    *stype = op.infer_storage_type;
    *shape = op.infer_shape;
    *mutate = op.mutate_inputs;
  }

  static int parseAttrs(parseAttrs_t function, PASSLIB_ATTR_BLOCK, int* num_in, int* num_out) {
    return guarded("parseAttrs", [&]() -> int {
      requireFunction(function, "setParseAttrs");
      return function(makeOptions(keys, vals, num), num_in, num_out);
    });
  }

  static int inferShape(inferShape_t function, PASSLIB_ATTR_BLOCK, unsigned int** inshapes,
                        int* indims, int num_in, unsigned int*** mod_inshapes, int** mod_indims,
                        unsigned int*** outshapes, int** outdims, int num_out) {
    return guarded("inferShape", [&]() -> int {
      requireFunction(function, "setInferShape");
      ShapeList in_shapes = makeShapes(inshapes, indims, num_in);
      ShapeList out_shapes(static_cast<std::size_t>(num_out));
      if (function(makeOptions(keys, vals, num), &in_shapes, &out_shapes) != MX_SUCCESS) {
        return MX_FAIL;
      }
      requireCount(in_shapes, num_in, "input shapes");
      requireCount(out_shapes, num_out, "output shapes");
      Handout memory;
      handOut(in_shapes, &memory, mod_inshapes, mod_indims);
      handOut(out_shapes, &memory, outshapes, outdims);
      memory.release();
      return MX_SUCCESS;
    });
  }

  static int inferType(inferType_t function, PASSLIB_ATTR_BLOCK, int* intypes, int num_in,
                       int* outtypes, int num_out) {
    return guarded("inferType", [&]() -> int {
      requireFunction(function, "setInferType");
      return inferInPlace(function, makeOptions(keys, vals, num), intypes, num_in, outtypes,
                          num_out);
    });
  }

  static int inferSType(inferSType_t function, PASSLIB_ATTR_BLOCK, int* instypes, int num_in,
                        int* outstypes, int num_out) {
    return guarded("inferSType", [&]() -> int {
      requireFunction(function, "setInferSType");
      return inferInPlace(function, makeOptions(keys, vals, num), instypes, num_in, outstypes,
                          num_out);
    });
  }

  static int callFunction(fcomp_t function, PASSLIB_ATTR_BLOCK, PASSLIB_IO_BLOCK,
                          PASSLIB_RESOURCE_BLOCK) {
    return guarded("compute", [&]() -> int {
      requireFunction(function, "setForward or setBackward");
      const options_map_t attributes = makeOptions(keys, vals, num);
      return compute(
          [&](std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
              const OpResource& lent) { return function(attributes, inputs, outputs, lent); },
          PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
    });
  }

  static int mutateInputs(mutateInputs_t function, PASSLIB_ATTR_BLOCK, int** mutate_indices,
                          int* indices_size) {
    return guarded("mutateInputs", [&]() -> int {
      requireFunction(function, "setMutateInputs");
      std::vector<int> indices;
      if (function(makeOptions(keys, vals, num), &indices) != MX_SUCCESS) return MX_FAIL;
      Handout memory;
      *mutate_indices = memory.copy(indices);
      *indices_size = static_cast<int>(indices.size());
      memory.release();
      return MX_SUCCESS;
    });
  }

  static int createOpState(createOpState_t function, PASSLIB_ATTR_BLOCK, const char* dev_type,
                           int dev_id, unsigned int** inshapes, int* indims, int num_in,
                           const int* intypes, void** state_op) {
    return guarded("createOpState", [&]() -> int {
      requireFunction(function, "setCreateOpState");
      CustomStatefulOp* state = nullptr;
      if (function(makeOptions(keys, vals, num), MXContext(dev_type, dev_id),
                   makeShapes(inshapes, indims, num_in),
                   std::vector<int>(intypes, intypes + num_in), &state) != MX_SUCCESS) {
        return MX_FAIL;
      }
      if (state == nullptr) throw std::runtime_error("the function made no state");
      *state_op = state;
      return MX_SUCCESS;
    });
  }

  static void destroyOpState(void* state_op) {
    guarded("the state's destructor", [&]() -> int {
      delete static_cast<CustomStatefulOp*>(state_op);
      return MX_SUCCESS;
    });
  }

  static int callState(int is_forward, void* state_op, PASSLIB_IO_BLOCK, PASSLIB_RESOURCE_BLOCK) {
    return guarded(is_forward != 0 ? "Forward" : "Backward", [&]() -> int {
      CustomStatefulOp* state = static_cast<CustomStatefulOp*>(state_op);
      return compute(
          [&](std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
              const OpResource& lent) {
            return is_forward != 0 ? state->Forward(inputs, outputs, lent)
                                   : state->Backward(inputs, outputs, lent);
          },
          PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
    });
  }
};

template <typename Unused>
struct Calls<CustomPartitioner, Unused> {
  static void install() {
    PartitionerCalls* calls = PartitionerCalls::get();
    calls->size = &size;
    calls->strategies = &strategies;
    calls->describe = &describe;
    calls->supportedOps = &supportedOps;
    calls->createSelector = &createSelector;
    calls->select = &select;
    calls->selectInput = &selectInput;
    calls->selectOutput = &selectOutput;
    calls->filter = &filter;
    calls->reset = &reset;
    calls->destroySelector = &destroySelector;
    calls->reviewSubgraph = &reviewSubgraph;
  }

  static int size() { return Registry<CustomPartitioner>::get()->size(); }

  static int strategies(int idx, const char** name) {
    *name = nullptr;
    const auto* partitioners = Registry<CustomPartitioner>::get();
    if (idx < 0 || idx >= partitioners->size()) return 0;
    *name = partitioners->get(idx).name;
    return static_cast<int>(partitioners->get(idx).strategies.size());
  }

  static void describe(int part_idx, int stg_idx, const char** strategy,
                       supportedOps_t* supported_ops, createSelector_t* create_selector,
                       reviewSubgraph_t* review_subgraph, const char** op_name) {
    guarded("_partRegGet", [&]() -> int {
      const CustomPartitioner& partitioner = Registry<CustomPartitioner>::get()->get(part_idx);
      *supported_ops = partitioner.getSupportedOps(stg_idx);
      *create_selector = partitioner.getCreateSelector(stg_idx);
      *review_subgraph = partitioner.getReviewSubgraph(stg_idx);
      *op_name = partitioner.op_names.at(static_cast<std::size_t>(stg_idx));
      *strategy = partitioner.strategies.at(static_cast<std::size_t>(stg_idx));
      return MX_SUCCESS;
    });
  }

  static int supportedOps(supportedOps_t function, const char* json, const FlatModel* flat,
                          int num_ids, int* ids, PASSLIB_OPTION_BLOCK) {
    return guarded("supportedOps", [&]() -> int {
      requireFunction(function, "setSupportedOps");
      const GivenGraph graph(json, flat);
      std::vector<int> supported(static_cast<std::size_t>(num_ids), -2);
      if (function(graph.get(), &supported, makeOptions(opt_keys, opt_vals, num_opts)) !=
          MX_SUCCESS) {
        return MX_FAIL;
      }
      requireCount(supported, num_ids, "ids, one for each node");
      std::copy(supported.begin(), supported.end(), ids);
      return MX_SUCCESS;
    });
  }

  static int createSelector(createSelector_t function, const char* json, const FlatModel* flat,
                            void** selector, PASSLIB_OPTION_BLOCK) {
    return guarded("createSelector", [&]() -> int {
      requireFunction(function, "setCreateSelector");
      Owner<OwnedSelector> owned(new OwnedSelector(json, flat));
      CustomOpSelector* made = nullptr;
      const MXReturnValue result =
          function(owned->graph.get(), &made, makeOptions(opt_keys, opt_vals, num_opts));
      owned->selector.reset(made);
      if (result != MX_SUCCESS) return MX_FAIL;
      if (made == nullptr) throw std::runtime_error("the function made no selector");
      *selector = owned.release();
      return MX_SUCCESS;
    });
  }

  static void select(void* selector, int node, int* selected) {
    callSelector(selector,
                 [&](CustomOpSelector* chosen) { *selected = chosen->Select(node) ? 1 : 0; });
  }

  static void selectInput(void* selector, int node, int input_node, int* selected) {
    callSelector(selector, [&](CustomOpSelector* chosen) {
      *selected = chosen->SelectInput(node, input_node) ? 1 : 0;
    });
  }

  static void selectOutput(void* selector, int node, int output_node, int* selected) {
    callSelector(selector, [&](CustomOpSelector* chosen) {
      *selected = chosen->SelectOutput(node, output_node) ? 1 : 0;
    });
  }

  static void filter(void* selector, int* candidates, int num_candidates, int** keep,
                     int* num_keep) {
    callSelector(selector, [&](CustomOpSelector* chosen) {
      std::vector<int> kept;
      chosen->Filter(std::vector<int>(candidates, candidates + num_candidates), &kept);
      Handout memory;
      *keep = memory.copy(kept);
      *num_keep = static_cast<int>(kept.size());
      memory.release();
    });
  }

  static void reset(void* selector) {
    callSelector(selector, [](CustomOpSelector* chosen) { chosen->Reset(); });
  }

  static void destroySelector(void* selector) {
    guarded("the selector's destructor", [&]() -> int {
      delete static_cast<OwnedSelector*>(selector);
      return MX_SUCCESS;
    });
  }

  static int reviewSubgraph(reviewSubgraph_t function, const char* json, const FlatModel* flat,
                            int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK, char*** attr_keys,
                            char*** attr_vals, int* num_attrs, PASSLIB_PARAM_BLOCK(arg),
                            PASSLIB_PARAM_BLOCK(aux)) {
    *attr_keys = nullptr;
    *attr_vals = nullptr;
    *num_attrs = 0;
    return guarded("reviewSubgraph", [&]() -> int {
      requireFunction(function, "setReviewSubgraph");
      ParamTable args(static_cast<std::size_t>(num_arg));
      ParamTable aux(static_cast<std::size_t>(num_aux));
      addParams(&args, PASSLIB_PARAM_NAMES(arg));
      addParams(&aux, PASSLIB_PARAM_NAMES(aux));
      const GivenGraph given(json, flat);
      const CallParams lent(given.get(), &args, &aux, nullptr);
      bool accepted = false;
      options_map_t attributes;
      if (function(given.get(), subgraph_id, &accepted, makeOptions(opt_keys, opt_vals, num_opts),
                   &attributes) != MX_SUCCESS) {
        return MX_FAIL;
      }
      lent.requireAsLent();
      *accept = accepted ? 1 : 0;
      if (attributes.empty()) return MX_SUCCESS;
      Handout memory;
      *attr_keys = memory.array<char*>(attributes.size());
      *attr_vals = memory.array<char*>(attributes.size());
      for (const auto& attribute : attributes) {
        (*attr_keys)[*num_attrs] = memory.copy(attribute.first);
        (*attr_vals)[*num_attrs] = memory.copy(attribute.second);
        ++*num_attrs;
      }
      memory.release();
      return MX_SUCCESS;
    });
  }
};

}  // namespace detail

// ================================================================================================
// For hosts: what a program that loads libraries shares with the header. No pass needs it.
//
// A host uses nothing else of `detail`. It is compiled with this very file, so names here may
// change with it; what they do is stated here, and is what a change must keep or state anew.
// ================================================================================================

#ifdef PASSLIB_HOST
namespace host {

// Texts.

/// quoted(name): a name as messages spell it.
using detail::quoted;
/// textOf(exception): its text, or a substitute where what() is null.
using detail::textOf;
/// utf8Length(cursor, end): the bytes of the character at `cursor`, 0 if it is not UTF-8. Reads
/// nothing from `end` on; `cursor` lies before it.
using detail::utf8Length;
/// parseInteger(text, size, &value): whether a text is a decimal integer of 64 bits, with nothing
/// around it; leading zeros and -0 count.
using detail::parseInteger;
/// A hash of texts for tables whose keys come from files, which cannot be chosen to collide.
using detail::TextHash;

// Graphs.

/// forEachGraph(root, visit): calls visit(Graph*) once for a graph and each one nested in it, a
/// graph before its own. visit may change nodes, and their number.
using detail::forEachGraph;
/// forEachNode(root, enter, visit): the same, and visit(Graph*, Node*) for the nodes of each.
using detail::forEachNode;
/// dialectOf(graph): the family of models that it states, "mxnet" if it states none.
using detail::dialectOf;
/// dropConsumer(producer, consumer, slot): takes an input that is to be replaced out of the list
/// of the producer's consumers.
using detail::dropConsumer;
/// prefetchNode(nodes, position, member): a hint to the processor, in walks over all nodes.
using detail::prefetchNode;
/// Names of nodes, and which of them is repeated.
using detail::NameTable;
/// A number below 512 that follows from bytes, which may be chosen to collide.
using detail::smallHash;
/// GraphReader(text, size, options).read(graph): as Graph::fromString. onGraph(draft, ordered) is
/// called when a graph has its edges: `draft` has their numbers.
using detail::GraphDraft;
using detail::GraphReader;
/// GraphWriter(pretty, &buffer).write(graph, attributes): writes the JSON of a graph that passed
/// the host's checks.
using detail::GraphWriter;
/// JsonTree(MAP): members of an object, read by JsonReader::_readItem, which become JsonMembers.
using detail::JsonTree;
/// A text in memory that the host gives: size() of its bytes were written.
using detail::TextBuffer;

// Libraries.

/// FlatStore(memory): flatten(graph) sets `model`, the graph in the flat form.
using detail::FlatStore;

}  // namespace host
#endif  // PASSLIB_HOST

}  // namespace passlib_api
}  // namespace ext

}  // namespace mxnet

#ifndef PASSLIB_NO_ENTRY_POINTS

PASSLIB_COLD_CODE

extern "C" {

inline int _opVersion() { return MX_LIBRARY_VERSION; }

inline int _msgSize() { return mxnet::ext::MXerrorMsgs::get()->size(); }

inline void _msgGet(int idx, const char** msg) {
  *msg = nullptr;
  mxnet::ext::detail::guarded("_msgGet", [&]() -> int {
    const std::string* text = mxnet::ext::MXerrorMsgs::get()->get(idx);
    if (text != nullptr) *msg = text->c_str();
    return mxnet::ext::MX_SUCCESS;
  });
}

inline void _opCallFree(void* ptr) { free(ptr); }

inline int _passRegSize() { return mxnet::ext::Registry<mxnet::ext::CustomPass>::get()->size(); }

inline void _passRegGet(int idx, mxnet::ext::graphPass_t* function, const char** name) {
  *function = nullptr;
  *name = nullptr;
  const auto* passes = mxnet::ext::Registry<mxnet::ext::CustomPass>::get();
  if (idx < 0 || idx >= passes->size()) return;
  *function = passes->get(idx).pass;
  *name = passes->get(idx).name;
}

inline int _passlibDeclarations(const char** json) {
  *json = nullptr;
  return mxnet::ext::detail::guarded("the declarations of the passes", [&]() -> int {
    const auto* declared = mxnet::ext::detail::DeclaredPasses::get();
    if (declared->describe != nullptr) *json = declared->describe();
    return mxnet::ext::MX_SUCCESS;
  });
}

inline int _passCallGraphPass(mxnet::ext::graphPass_t function, const char* in_graph,
                              char** out_graph, PASSLIB_OPTION_BLOCK, const char* pass_name,
                              PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                              mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc) {
  *out_graph = nullptr;
  return mxnet::ext::detail::callPass(function, in_graph, out_graph, nullptr, nullptr, opt_keys,
                                      opt_vals, num_opts, pass_name, PASSLIB_PARAM_NAMES(arg),
                                      PASSLIB_PARAM_NAMES(aux), nd_malloc, nd_alloc);
}

inline int _passlibFlatVersion() { return PASSLIB_FLAT_VERSION; }

inline int _passlibCallFlatPass(mxnet::ext::graphPass_t function,
                                const mxnet::ext::FlatModel* shown,
                                const mxnet::ext::FlatModel** result, PASSLIB_OPTION_BLOCK,
                                const char* pass_name, PASSLIB_PARAM_BLOCK(arg),
                                PASSLIB_PARAM_BLOCK(aux), mxnet::ext::nd_malloc_t nd_malloc,
                                const void* nd_alloc) {
  *result = nullptr;
  return mxnet::ext::detail::callPass(function, nullptr, nullptr, shown, result, opt_keys, opt_vals,
                                      num_opts, pass_name, PASSLIB_PARAM_NAMES(arg),
                                      PASSLIB_PARAM_NAMES(aux), nd_malloc, nd_alloc);
}

inline void _passlibFreeFlat(const mxnet::ext::FlatModel* model) {
  if (model != nullptr) delete static_cast<mxnet::ext::detail::FlatStore*>(model->owner);
}

inline void _passlibSetInterrupted(mxnet::ext::interrupted_t function, const void* host) {
  mxnet::ext::detail::InterruptSource* source = mxnet::ext::detail::InterruptSource::get();
  source->function = function;
  source->host = host;
}

inline void _passlibSetWeights(mxnet::ext::readWeight_t read, mxnet::ext::scaleWeight_t scale) {
  mxnet::ext::detail::WeightSource* source = mxnet::ext::detail::WeightSource::get();
  source->read = read;
  source->scale = scale;
}

inline const char* _passlibLoadErrors() {
  const std::string& errors = mxnet::ext::detail::loadErrors();
  return errors.empty() ? nullptr : errors.c_str();
}

inline int _opRegSize() {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->size;
  return call == nullptr ? 0 : call();
}

inline void _opRegGet(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                      mxnet::ext::fcomp_t** forward_fp, int* forward_count,
                      const char*** backward_ctx, mxnet::ext::fcomp_t** backward_fp,
                      int* backward_count, const char*** create_op_ctx,
                      mxnet::ext::createOpState_t** create_op_fp, int* create_op_count,
                      mxnet::ext::parseAttrs_t* parse, mxnet::ext::inferType_t* type,
                      mxnet::ext::inferSType_t* stype, mxnet::ext::inferShape_t* shape,
                      mxnet::ext::mutateInputs_t* mutate) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->describe;
  *name = nullptr;
  *isSGop = *forward_count = *backward_count = *create_op_count = 0;
  *forward_ctx = *backward_ctx = *create_op_ctx = nullptr;
  *forward_fp = *backward_fp = nullptr;
  *create_op_fp = nullptr;
  *parse = nullptr;
  *type = nullptr;
  *stype = nullptr;
  *shape = nullptr;
  *mutate = nullptr;
  if (call == nullptr) return;
  call(idx, name, isSGop, forward_ctx, forward_fp, forward_count, backward_ctx, backward_fp,
       backward_count, create_op_ctx, create_op_fp, create_op_count, parse, type, stype, shape,
       mutate);
}

inline int _opCallParseAttrs(mxnet::ext::parseAttrs_t function, PASSLIB_ATTR_BLOCK, int* num_in,
                             int* num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->parseAttrs;
  return call == nullptr ? mxnet::ext::MX_FAIL : call(function, keys, vals, num, num_in, num_out);
}

inline int _opCallInferShape(mxnet::ext::inferShape_t function, PASSLIB_ATTR_BLOCK,
                             unsigned int** inshapes, int* indims, int num_in,
                             unsigned int*** mod_inshapes, int** mod_indims,
                             unsigned int*** outshapes, int** outdims, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->inferShape;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, inshapes, indims, num_in, mod_inshapes,
                                mod_indims, outshapes, outdims, num_out);
}

inline int _opCallInferType(mxnet::ext::inferType_t function, PASSLIB_ATTR_BLOCK, int* intypes,
                            int num_in, int* outtypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->inferType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, intypes, num_in, outtypes, num_out);
}

inline int _opCallInferSType(mxnet::ext::inferSType_t function, PASSLIB_ATTR_BLOCK, int* instypes,
                             int num_in, int* outstypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->inferSType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, instypes, num_in, outstypes, num_out);
}

inline int _opCallFCompute(mxnet::ext::fcomp_t function, PASSLIB_ATTR_BLOCK, PASSLIB_IO_BLOCK,
                           PASSLIB_RESOURCE_BLOCK) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->callFunction;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, keys, vals, num, PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
}

inline int _opCallMutateInputs(mxnet::ext::mutateInputs_t function, PASSLIB_ATTR_BLOCK,
                               int** mutate_indices, int* indices_size) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->mutateInputs;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, mutate_indices, indices_size);
}

inline int _opCallCreateOpState(mxnet::ext::createOpState_t function, PASSLIB_ATTR_BLOCK,
                                const char* dev_type, int dev_id, unsigned int** inshapes,
                                int* indims, int num_in, const int* intypes, void** state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->createOpState;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, dev_type, dev_id, inshapes, indims,
                                num_in, intypes, state_op);
}

inline void _opCallDestroyOpState(void* state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->destroyOpState;
  if (call != nullptr) call(state_op);
}

inline int _opCallFStatefulCompute(int is_forward, void* state_op, PASSLIB_IO_BLOCK,
                                   PASSLIB_RESOURCE_BLOCK) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->callState;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(is_forward, state_op, PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
}

inline int _partRegSize() {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->size;
  return call == nullptr ? 0 : call();
}

inline int _partRegGetCount(int idx, const char** name) {
  *name = nullptr;
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->strategies;
  return call == nullptr ? 0 : call(idx, name);
}

inline void _partRegGet(int part_idx, int stg_idx, const char** strategy,
                        mxnet::ext::supportedOps_t* supported_ops,
                        mxnet::ext::createSelector_t* create_selector,
                        mxnet::ext::reviewSubgraph_t* review_subgraph, const char** op_name) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->describe;
  *strategy = *op_name = nullptr;
  *supported_ops = nullptr;
  *create_selector = nullptr;
  *review_subgraph = nullptr;
  if (call == nullptr) return;
  call(part_idx, stg_idx, strategy, supported_ops, create_selector, review_subgraph, op_name);
}

inline int _partCallSupportedOps(mxnet::ext::supportedOps_t function, const char* json, int num_ids,
                                 int* ids, PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, json, nullptr, num_ids, ids, opt_keys, opt_vals, num_opts);
}

inline int _passlibCallFlatSupportedOps(mxnet::ext::supportedOps_t function,
                                        const mxnet::ext::FlatModel* shown, int num_ids, int* ids,
                                        PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, nullptr, shown, num_ids, ids, opt_keys, opt_vals, num_opts);
}

inline int _partCallCreateSelector(mxnet::ext::createSelector_t function, const char* json,
                                   void** selector, PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->createSelector;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, json, nullptr, selector, opt_keys, opt_vals, num_opts);
}

inline int _passlibCallFlatCreateSelector(mxnet::ext::createSelector_t function,
                                          const mxnet::ext::FlatModel* shown, void** selector,
                                          PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->createSelector;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, nullptr, shown, selector, opt_keys, opt_vals, num_opts);
}

inline void _partCallSelect(void* selector, int node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->select;
  if (call != nullptr) call(selector, node, selected);
}

inline void _partCallSelectInput(void* selector, int node, int input_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->selectInput;
  if (call != nullptr) call(selector, node, input_node, selected);
}

inline void _partCallSelectOutput(void* selector, int node, int output_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->selectOutput;
  if (call != nullptr) call(selector, node, output_node, selected);
}

inline void _partCallFilter(void* selector, int* candidates, int num_candidates, int** keep,
                            int* num_keep) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->filter;
  if (call != nullptr) call(selector, candidates, num_candidates, keep, num_keep);
}

inline void _partCallReset(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->reset;
  if (call != nullptr) call(selector);
}

inline void _passlibPartDestroySelector(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->destroySelector;
  if (call != nullptr) call(selector);
}

inline int _partCallReviewSubgraph(mxnet::ext::reviewSubgraph_t function, const char* json,
                                   int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                   char*** attr_keys, char*** attr_vals, int* num_attrs,
                                   PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux)) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, json, nullptr, subgraph_id, accept, opt_keys, opt_vals,
                                num_opts, attr_keys, attr_vals, num_attrs, PASSLIB_PARAM_NAMES(arg),
                                PASSLIB_PARAM_NAMES(aux));
}

inline int _passlibCallFlatReviewSubgraph(mxnet::ext::reviewSubgraph_t function,
                                          const mxnet::ext::FlatModel* shown, int subgraph_id,
                                          int* accept, PASSLIB_OPTION_BLOCK, char*** attr_keys,
                                          char*** attr_vals, int* num_attrs,
                                          PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux)) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, nullptr, shown, subgraph_id, accept, opt_keys, opt_vals,
                                num_opts, attr_keys, attr_vals, num_attrs, PASSLIB_PARAM_NAMES(arg),
                                PASSLIB_PARAM_NAMES(aux));
}

}  // extern "C"

PASSLIB_END_CODE

#endif  // PASSLIB_NO_ENTRY_POINTS

#pragma GCC visibility pop

#ifdef PASSLIB_PATTERNS
#include "lib_patterns.h"
#endif

#endif  // a compiler that suffices
#endif  // MXNET_LIB_API_H_
