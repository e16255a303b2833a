// The arrays of a dictionary by name, for the bindings.
#ifndef PASSLIB_BINDINGS_FILES_NAMED_ARRAYS_H_
#define PASSLIB_BINDINGS_FILES_NAMED_ARRAYS_H_

#include <pybind11/pybind11.h>

#include <string_view>
#include <vector>

#include "onnx/reading/name_index.h"

namespace passlib {

/// Finds the values that a dictionary has when this object is made, without making a text of
/// Python, and mostly without a search. Code in Python that runs meanwhile may change the
/// dictionary.
class NamedArrays {
 public:
  explicit NamedArrays(const pybind11::dict& dict);

  /// Returns the value of a name, borrowed; null if there is none.
  PyObject* find(std::string_view name);
  PyObject* find(pybind11::handle name);

 private:
  pybind11::dict items_;  ///< keeps names and values
  std::vector<PyObject*> values_;
  onnx::NameIndex places_;
};

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_FILES_NAMED_ARRAYS_H_
