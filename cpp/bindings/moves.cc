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
#include "moves/kept.h"
#include "moves/kernels.h"

namespace passlib {
namespace {

/// Runs a pass on a graph. Returns the new parameters by name, and the names of those that are
/// gone. `allocate(shape, code)` returns an array.
py::tuple runMove(const std::string& name, const GraphHandle& graph,
                  const AttributeTexts& attributes, const py::list& params, const py::object& file,
                  const Assumptions& assumptions, const std::unordered_set<std::string>& kept,
                  const py::function& allocate,
                  const std::unordered_map<std::string, int64_t>& given) {
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
  hooks.file = originalsOf(file);
  moves::Model model(hooks);
  moves::Options options;
  for (const auto& [key, value] : given) options.set(key, value);
  if (!moves::run(name, &model, options)) throw py::key_error(name);
  py::dict left;
  for (const auto& [node, array] : made) {
    if (!graph.owner->isRemoved(node)) left[decode(node->name)] = array;
  }
  py::list gone;
  for (const std::string& each : model.goneConstants()) gone.append(decode(each));
  return py::make_tuple(left, gone);
}

py::set keptOf(const std::string& what, const GraphHandle& graph, const AttributeTexts& attributes,
               const py::list& params) {
  const MatchedGraph lending(graph, attributes, params, what != "scaledWeights");
  py::set names;
  for (const std::string& each : moves::keptNames(what, graph.graph)) names.add(decode(each));
  return names;
}

}  // namespace

void bindMoves(py::module_* m) {
  m->def("run_move", &runMove, py::arg("name"), py::arg("graph"), py::arg("attributes"),
         py::arg("params"), py::arg("file"), py::arg("assumptions"), py::arg("kept"),
         py::arg("allocate"), py::arg("options"));
  m->def("kept_names", &keptOf, py::arg("what"), py::arg("graph"), py::arg("attributes"),
         py::arg("params"));
  m->def("has_kernel", &moves::hasKernel, py::arg("op"), py::arg("type"), py::arg("opset"));
  m->def("kernels", &moves::kernels);
}

}  // namespace passlib
