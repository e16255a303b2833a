// Edits of the core on graphs that Python changes.
#ifndef PASSLIB_BINDINGS_EDITING_EDIT_H_
#define PASSLIB_BINDINGS_EDITING_EDIT_H_

#include <pybind11/numpy.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "model/edit.h"

namespace passlib {

/// The changes that rules and algorithms of the core make to a graph of Python's.
class PythonEdit {
 public:
  /// `params`: name, array, dtype code of variables. `file`: an OnnxFile or None. `allocate(shape,
  /// code)` returns an array for a new parameter. `settle(made, gone, folds)` gets new parameters
  /// by name, each with its element type if that has no code, the names of those that are gone, and
  /// operators on constants to compute. It returns all parameters, as in `params`, if it replaced
  /// any operator, else None.
  PythonEdit(const GraphHandle& graph, const AttributeTexts& attributes, const py::list& params,
             const py::object& file, py::function allocate, py::function settle);

  model::Edit& edit() { return *edit_; }
  const std::shared_ptr<EditedGraph>& owner() const { return owner_; }
  /// Lets Python compute operators.
  model::Edit::Fold fold();
  /// Passes new and removed parameters to Python.
  void settle() { settled({}); }

 private:
  py::object settled(const std::vector<Node*>& folds);
  /// Passes a new parameter to Python, which then owns it alone.
  void give(const model::Edit::NewWeight& weight);
  void lend(const py::list& params);

  std::shared_ptr<EditedGraph> owner_;
  py::object file_;
  py::function allocate_;
  py::function settle_;
  std::vector<py::array> arrays_;  ///< that nodes point to
  std::unique_ptr<model::Edit> edit_;
};

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_EDITING_EDIT_H_
