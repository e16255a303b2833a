// Weights of a model.
#ifndef PASSLIB_MODEL_ARRAY_H_
#define PASSLIB_MODEL_ARRAY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/text_table.h"
#include "library/memory.h"
#include "library/weights/scaled.h"
#include "onnx/parts/tensor.h"
#include "onnx/types/messages.h"
#include "owned_alone.h"

namespace passlib::model {

/// An array that nobody changes. Its elements lie in memory, or are computed when they are needed.
struct Array {
  int32_t type = 0;  ///< ONNX's number of the element type
  std::vector<int64_t> dims;
  /// In C order, little endian; maybe not aligned. Elements of 4 bits are two in a byte.
  onnx::Bytes data;
  std::shared_ptr<const void> owner;       ///< of `data`, or of the source of `scaled`
  std::shared_ptr<const Scaled> scaled{};  ///< in place of `data`, unless null
  bool is_state = false;                   ///< an auxiliary state of MXNet

  /// In bytes.
  std::size_t size() const { return scaled != nullptr ? scaled->size() : data.size(); }
};

/// Whether the elements of an array are smaller than a byte: passes do not see it.
inline bool isSmall(const Array& array) { return onnx::elementType(array.type) == nullptr; }

/// Arrays by name. Copies share them until one of them changes.
class Arrays {
 public:
  using Table = TextMap<Array>;

  Arrays() : table_(std::make_shared<Table>()) {}

  Table::const_iterator begin() const { return table_->begin(); }
  Table::const_iterator end() const { return table_->end(); }
  Table::const_iterator find(const std::string& name) const { return table_->find(name); }
  const Array& at(const std::string& name) const { return table_->at(name); }
  std::size_t count(const std::string& name) const { return table_->count(name); }
  std::size_t size() const { return table_->size(); }
  bool empty() const { return table_->empty(); }

  Array& operator[](const std::string& name) { return own()[name]; }
  void erase(const std::string& name) {
    if (count(name) != 0) own().erase(name);
  }

 private:
  Table& own() {
    if (!ownedAlone(table_)) table_ = std::make_shared<Table>(*table_);
    return *table_;
  }

  std::shared_ptr<Table> table_;
};

/// Returns an array with all elements in memory. Throws std::bad_alloc, std::system_error.
Array computed(const Array& array);

/// Whether two arrays are equal in type, shape and every bit.
bool same(const Array& left, const Array& right);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_ARRAY_H_
