// Arrays lent to one call of a library.
#ifndef PASSLIB_BINDINGS_WEIGHTS_LENDING_H_
#define PASSLIB_BINDINGS_WEIGHTS_LENDING_H_

#include <pybind11/numpy.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "library/file_mapping.h"
#include "library/params.h"
#include "library/weights/copies.h"

namespace passlib {

/// The arrays of a dictionary by name, as parameters.
class LentArrays {
 public:
  /// `code_of` returns MXNet's number of an element type, or None for arrays that are not lent.
  /// `other` lends what is no plain array: it gets name and value, and returns name, array and
  /// number. `lending`: "nothing", "on demand", "whole".
  LentArrays(const pybind11::dict& given, const pybind11::sequence& names,
             const pybind11::function& code_of, const pybind11::function& other,
             const std::string& lending, bool are_args);
  LentArrays(const LentArrays&) = delete;
  LentArrays& operator=(const LentArrays&) = delete;

  /// Valid as long as this object.
  const ParamBlock& block() const { return block_; }

  /// An array as given.
  const pybind11::array& array(std::size_t number) const { return given_[number].array; }

  /// Name, array as given, and number of the type of each parameter.
  pybind11::list params() const;

  /// The copies that differ in any bit from their originals, but those of some names: pairs of name
  /// and array.
  pybind11::list changed(const pybind11::set& except) const;

 private:
  struct Given {
    pybind11::object name;
    pybind11::array array;
    pybind11::object code;
  };

  void add(pybind11::object name, pybind11::array array, pybind11::object code);
  const pybind11::object& codeOf(const pybind11::dtype& type, const pybind11::function& code_of);
  pybind11::array arrayOf(std::size_t copy) const;

  Lending lending_;
  ParamBlock block_;
  std::vector<Given> given_;
  Copies copies_;
  std::unordered_map<PyObject*, std::pair<pybind11::dtype, pybind11::object>> codes_;
};

/// Adds FileMapping and LentArrays.
void bindLending(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_WEIGHTS_LENDING_H_
