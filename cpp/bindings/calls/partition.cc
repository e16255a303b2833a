// passlib._core.run_partitioner.

#include "partition/partition.h"

#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/calls/native_call.h"
#include "bindings/common.h"
#include "bindings/weights/lending.h"
#include "errors.h"

namespace passlib {
namespace {

/// The settings of a call that are not parameters or options of the partitioner.
struct PartitionSettings {
  bool consume;
  bool ordered;
  bool force_json;
};

/// Runs a partitioner; the library's output goes to `write`, a function of a str. `suffix` returns
/// the name of an output, given a node's operator, attributes and number of outputs, and the
/// output. `states` returns the inputs of a graph's nodes that are auxiliary states: by operator,
/// and by position of the node.
std::shared_ptr<GraphSource> callPartitioner(
    const std::shared_ptr<Library>& library, std::size_t index,
    const std::shared_ptr<GraphSource>& graph, const AttributeTexts& attributes,
    const OptionList& options, const LentArrays& args, const LentArrays& aux,
    const PartitionSettings& settings, const py::function& suffix, const py::function& states,
    const py::function& write) {
  const GateHold hold;
  const PartitionCall call{library.get(),
                           index,
                           parseAttributes(attributes),
                           options,
                           args.block(),
                           aux.block(),
                           settings.consume,
                           settings.ordered,
                           settings.force_json};
  PartitionHost host;
  host.suffix = [&](const Node& node, int output) {
    const BorrowedGil borrowed;
    return suffix(node.op, attributeDict(node), node.num_outputs, output).cast<std::string>();
  };
  host.states = [&](const std::shared_ptr<GraphSource>& source) {
    auto found = states(source).cast<std::pair<AuxiliaryInputs, NodeStates>>();
    return AuxiliaryStates{std::move(found.first), std::move(found.second)};
  };
  host.visit = [&](const std::string& what, const std::function<void()>& body) {
    const auto fail = [&](const std::string& problem) { throw PassError(what + " " + problem); };
    runNative({*library, what, fail}, write, body);
  };
  return runPartitioner(call, host, graph);
}

}  // namespace

void bindPartition(py::module_* m) {
  py::class_<PartitionSettings>(*m, "PartitionSettings")
      .def(py::init([](bool consume, bool ordered, bool force_json) {
             return PartitionSettings{consume, ordered, force_json};
           }),
           py::kw_only(), py::arg("consume"), py::arg("ordered"), py::arg("force_json"));

  m->def("run_partitioner", &callPartitioner, py::arg("library"), py::arg("index"),
         py::arg("graph"), py::arg("attributes"), py::arg("options"), py::arg("args"),
         py::arg("aux"), py::arg("settings"), py::arg("suffix"), py::arg("states"),
         py::arg("write"));
}

}  // namespace passlib
