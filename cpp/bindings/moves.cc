// Standard passes of cpp/moves for Python.
#include "moves/moves.h"

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "bindings/editing/knowledge.h"
#include "bindings/editing/matched.h"
#include "moves/kernels.h"

namespace passlib {
namespace {

/// Runs a pass on a graph. Returns the new parameters by name, and the names of those that are
/// gone. `allocate(shape, code)` returns an array.
template <typename Pass>
py::tuple runMove(const GraphHandle& graph, const AttributeTexts& attributes,
                  const py::list& params, const py::object& file, const Assumptions& assumptions,
                  const std::unordered_set<std::string>& kept, const py::function& allocate,
                  Pass pass) {
  const MatchedGraph lending(graph, attributes, params, false);
  std::unique_ptr<GraphKnowledge> knowledge;
  std::vector<std::pair<Node*, py::array>> made;
  moves::Hooks hooks;
  hooks.owner = graph.owner.get();
  hooks.graph = graph.graph;
  hooks.infer = [&]() {
    graph.owner->nodes(graph.graph);  // completes removals
    knowledge = std::make_unique<GraphKnowledge>(graph.graph, originalsOf(file), assumptions);
    knowledge->infer();
  };
  hooks.fact = [&](const NodeEntry& entry) -> const facts::Fact& {
    return knowledge->inferred(entry);
  };
  hooks.allocate = [&](Node* node, const std::vector<int64_t>& shape, mxnet::ext::MXDType type) {
    const auto array = allocate(py::cast(shape), static_cast<int>(type)).cast<py::array>();
    node->tensor = lending.arrays()->keep(array, static_cast<int>(type));
    made.emplace_back(node, array);
  };
  hooks.kept = kept;
  moves::Model model(hooks);
  pass(&model);
  py::dict left;
  for (const auto& [node, array] : made) {
    if (!graph.owner->isRemoved(node)) left[decode(node->name)] = array;
  }
  py::list gone;
  for (const std::string& name : model.goneConstants()) gone.append(decode(name));
  return py::make_tuple(left, gone);
}

/// `options`: names of the further arguments of the pass.
template <typename... Options, typename... Names>
void bindMove(py::module_* m, const char* name, void (*pass)(moves::Model*, Options...),
              const Names&... options) {
  m->def(
      name,
      [pass](const GraphHandle& graph, const AttributeTexts& attributes, const py::list& params,
             const py::object& file, const Assumptions& assumptions,
             const std::unordered_set<std::string>& kept, const py::function& allocate,
             Options... given) {
        return runMove(graph, attributes, params, file, assumptions, kept, allocate,
                       [&](moves::Model* model) { pass(model, given...); });
      },
      py::arg("graph"), py::arg("attributes"), py::arg("params"), py::arg("file"),
      py::arg("assumptions"), py::arg("kept"), py::arg("allocate"), options...);
}

}  // namespace

void bindMoves(py::module_* m) {
  bindMove(m, "cancel_transposes", &moves::cancelTransposes, py::arg("empty_errors"),
           py::arg("reorder_sums"));
  bindMove(m, "fold_shapes", &moves::foldShapes, py::arg("conditions"));
  bindMove(m, "merge_concats", &moves::mergeConcats);
  bindMove(m, "merge_slices", &moves::mergeSlices);
  bindMove(m, "propagate_casts", &moves::propagateCasts);
  bindMove(m, "merge_factors", &moves::mergeFactors);
  bindMove(m, "merge_reshapes", &moves::mergeReshapes);
  m->def("has_kernel", &moves::hasKernel, py::arg("op"), py::arg("type"), py::arg("opset"));
  m->def("kernels", &moves::kernels);
}

}  // namespace passlib
