// passlib._core.run_partition: strategies of partitioners.

#include "partition/partition.h"

#include <pybind11/stl.h>

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

/// The settings of a call that are not parameters or options of the strategy.
struct PartitionSettings {
  std::size_t strategy;
  AuxiliaryInputs auxiliary;
  NodeStates states;
  bool merge_equal;
  bool consume;
  bool ordered;
  bool force_json;
};

/// Runs one strategy; the library's output goes to `write`, a function of a str. `suffix` returns
/// the name of an output, given a node's operator, attributes and number of outputs, and the
/// output.
std::shared_ptr<GraphSource> callPartition(const std::shared_ptr<Library>& library,
                                           std::size_t index,
                                           const std::shared_ptr<GraphSource>& graph,
                                           const AttributeTexts& attributes,
                                           const OptionList& options, const LentArrays& args,
                                           const LentArrays& aux, const PartitionSettings& settings,
                                           const py::function& suffix, const py::function& write) {
  const GateHold hold;
  const PartitionCall call{library.get(),
                           index,
                           settings.strategy,
                           parseAttributes(attributes),
                           options,
                           args.block(),
                           aux.block(),
                           settings.auxiliary,
                           settings.states,
                           settings.merge_equal,
                           settings.consume,
                           settings.ordered,
                           settings.force_json};
  const OutputSuffix suffix_of = [&](const Node& node, int output) {
    const BorrowedGil borrowed;
    return suffix(node.op, attributeDict(node), node.num_outputs, output).cast<std::string>();
  };
  const uint64_t completed = graph->completed();
  PartitionResult result;
  const std::string what = describePartition(call);
  const auto fail = [&](const std::string& problem) { throw PassError(what + " " + problem); };
  runNative({*library, what, fail}, write,
            [&]() { result = runPartition(call, suffix_of, graph.get()); });
  const auto source = std::make_shared<GraphSource>(std::move(result.graph));
  if (result.unseen) source->noteCompleted(completed, true);
  return source;
}

}  // namespace

void bindPartition(py::module_* m) {
  py::class_<PartitionSettings>(*m, "PartitionSettings")
      .def(py::init([](std::size_t strategy, AuxiliaryInputs auxiliary, NodeStates states,
                       bool merge_equal, bool consume, bool ordered, bool force_json) {
             return PartitionSettings{
                 strategy,  std::move(auxiliary), std::move(states), merge_equal, consume, ordered,
                 force_json};
           }),
           py::kw_only(), py::arg("strategy"), py::arg("auxiliary"), py::arg("states"),
           py::arg("merge_equal"), py::arg("consume"), py::arg("ordered"), py::arg("force_json"));

  m->def("run_partition", &callPartition, py::arg("library"), py::arg("index"), py::arg("graph"),
         py::arg("attributes"), py::arg("options"), py::arg("args"), py::arg("aux"),
         py::arg("settings"), py::arg("suffix"), py::arg("write"));
}

}  // namespace passlib
