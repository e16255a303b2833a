// The arrays of a dictionary by name, for the bindings.
#ifndef PASSLIB_BINDINGS_FILES_NAMED_ARRAYS_H_
#define PASSLIB_BINDINGS_FILES_NAMED_ARRAYS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/reading/name_map.h"

namespace passlib {

/// Finds the values of a dictionary from Python, which nobody may change meanwhile. A name that
/// follows the last one found, as most do, is found without a search, and no text of Python is
/// made.
class NamedArrays {
 public:
  explicit NamedArrays(pybind11::dict dict);

  /// Returns the value of a name, borrowed; null if there is none.
  PyObject* find(std::string_view name);
  PyObject* find(pybind11::handle name);

 private:
  pybind11::dict dict_;
  std::vector<std::pair<std::string_view, PyObject*>> items_;
  onnx::NameMap<std::size_t> places_;  ///< made when a name is out of order
  std::size_t next_ = 0;
  bool searchable_ = false;
};

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_FILES_NAMED_ARRAYS_H_
