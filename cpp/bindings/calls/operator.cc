// passlib._core.CustomOp and OperatorState: operators of libraries.

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/calls/native_call.h"
#include "bindings/common.h"
#include "library/calls/output.h"
#include "library/operators/compute.h"
#include "library/operators/custom_op.h"
#include "library/operators/random_states.h"
#include "library/operators/state.h"

namespace passlib {
namespace {

using ArrayTuple = std::tuple<int, int, std::vector<int64_t>>;

template <typename Element>
std::pair<Element*, int64_t> borrow(const py::handle& object) {
  if (object.is_none()) return {nullptr, 0};
  const auto array = object.cast<py::array>();
  return {static_cast<Element*>(const_cast<void*>(array.data())),
          static_cast<int64_t>(array.size())};
}

/// Reads an input given as (dtype code, storage type, shape, data, indices or None, indptr or None,
/// mutated). Arrays must be C-contiguous, indices and indptr of int64.
InputArray readInput(const py::handle& item) {
  const auto fields = item.cast<py::tuple>();
  InputArray input;
  input.dtype = fields[0].cast<int>();
  input.storage = fields[1].cast<int>();
  input.shape = fields[2].cast<std::vector<int64_t>>();
  const auto data = fields[3].cast<py::array>();
  input.data = const_cast<void*>(data.data());
  input.bytes = static_cast<std::size_t>(data.nbytes());
  std::tie(input.indices, input.num_indices) = borrow<int64_t>(fields[4]);
  std::tie(input.indptr, input.num_indptr) = borrow<int64_t>(fields[5]);
  input.mutated = fields[6].cast<bool>();
  return input;
}

/// Returns an output as (shape of the stored data, bytes, bytes of indices, bytes of indptr); the
/// last two are None for storage types without them.
py::tuple takeOutput(OutputArray* output) {
  py::object indices = py::none();
  py::object indptr = py::none();
  if (output->storage != mxnet::ext::kDefaultStorage)
    indices = ownedBytes(std::move(output->indices));
  if (output->storage == mxnet::ext::kCSRStorage) indptr = ownedBytes(std::move(output->indptr));
  return py::make_tuple(py::tuple(py::cast(output->stored_shape)),
                        ownedBytes(std::move(output->data)), indices, indptr);
}

/// The settings of a computation that are not arrays.
struct ComputeSettings {
  std::string node;
  bool is_forward;
  bool check_memory;
};

/// A call of an operator, for runNative.
NativeCall callOf(const CustomOp& op, const std::string& node) {
  std::string what = op.described("", node);
  what.pop_back();  // a space
  return {*op.library(), std::move(what),
          [&op, &node](const std::string& problem) { op.fail(problem, node); }};
}

template <typename Run>
py::list computeWith(const CustomOp& op, const ComputeSettings& settings, const py::list& inputs,
                     const std::vector<ArrayTuple>& outputs, const py::function& write, Run run) {
  const GateHold hold;
  ComputeCall call;
  call.node = settings.node;
  call.is_forward = settings.is_forward;
  call.check_memory = settings.check_memory;
  for (const py::handle& item : inputs) call.inputs.push_back(readInput(item));
  for (const auto& [dtype, storage, shape] : outputs) {
    OutputArray output;
    output.dtype = dtype;
    output.storage = storage;
    output.shape = shape;
    call.outputs.push_back(std::move(output));
  }
  runNative(callOf(op, call.node), write, [&]() { run(&call); });
  py::list results;
  for (OutputArray& output : call.outputs) results.append(takeOutput(&output));
  return results;
}

/// The method sys.stdout.write; None while the interpreter ends, whose modules may be gone.
py::object standardOutput() {
  if (isEnding()) return py::none();
  return py::module_::import("sys").attr("stdout").attr("write");
}

/// Destroys a state without the GIL, which another thread inside the library may be waiting for.
/// Output of the destructor goes to sys.stdout, if that still exists.
struct DestroyState {
  void operator()(OperatorState* state) const {
    const GateHold hold;
    std::string text;
    {
      const ReleasedGil released;
      const CapturedOutput output(&text);
      delete state;
    }
    try {
      if (!text.empty()) writeText(text, standardOutput());
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("sys.stdout.write");
    }
  }
};

/// Wraps a method of CustomOp that calls the library, whose last argument is the node's name: a
/// further argument, `write`, gets the library's output.
template <typename Result, typename... Arguments>
auto captured(Result (CustomOp::*method)(Arguments...) const) {
  return [method](const CustomOp& op, Arguments... arguments, const py::function& write) {
    const GateHold hold;
    Result result;
    const std::string& node = std::get<sizeof...(Arguments) - 1>(std::tie(arguments...));
    runNative(callOf(op, node), write, [&]() { result = (op.*method)(arguments...); });
    return result;
  };
}

}  // namespace

void bindOperators(py::module_* m) {
  py::class_<ComputeSettings>(*m, "ComputeSettings")
      .def(py::init([](std::string node, bool is_forward, bool check_memory) {
             return ComputeSettings{std::move(node), is_forward, check_memory};
           }),
           py::kw_only(), py::arg("node"), py::arg("is_forward"), py::arg("check_memory"));

  const auto attributes = py::arg("attributes");
  const auto settings = py::arg("settings");
  const auto inputs = py::arg("inputs");
  const auto outputs = py::arg("outputs");
  const auto num_outputs = py::arg("num_outputs");
  const auto node = py::arg("node");
  const auto write = py::arg("write");
  py::class_<CustomOp, std::shared_ptr<CustomOp>>(*m, "CustomOp")
      .def(py::init<std::shared_ptr<Library>, std::size_t>(), py::arg("library"), py::arg("index"))
      .def_property_readonly("is_subgraph",
                             [](const CustomOp& op) { return op.functions().is_subgraph; })
      .def_property_readonly("is_stateful",
                             [](const CustomOp& op) {
                               return op.functions().create_state.count(Library::kDevice) != 0;
                             })
      .def_property_readonly(
          "has_backward_function",
          [](const CustomOp& op) { return op.functions().backward.count(Library::kDevice) != 0; })
      .def("described", &CustomOp::described, py::arg("what"), node)
      .def("arity", captured(&CustomOp::arity), attributes, node, write)
      .def("mutated_inputs", captured(&CustomOp::mutatedInputs), attributes, py::arg("num_inputs"),
           node, write)
      .def("infer_shapes", captured(&CustomOp::inferShapes), attributes, inputs, num_outputs, node,
           write)
      .def("infer_types", captured(&CustomOp::inferTypes), attributes, inputs, num_outputs, node,
           write)
      .def("infer_storage", captured(&CustomOp::inferStorage), attributes, inputs, num_outputs,
           node, write)
      .def(
          "create_state",
          [](const CustomOp& op, const Attributes& values, const std::vector<Extents>& shapes,
             const std::vector<int>& types, const std::string& node_name,
             const py::function& writer) {
            const GateHold hold;
            std::unique_ptr<OperatorState, DestroyState> state;
            runNative(callOf(op, node_name), writer, [&]() {
              state.reset(new OperatorState(op, values, shapes, types, node_name));
            });
            return state;
          },
          attributes, py::arg("shapes"), py::arg("types"), node, write)
      .def(
          "compute",
          [](const CustomOp& op, const Attributes& values, const ComputeSettings& how,
             const py::list& ins, const std::vector<ArrayTuple>& outs, const py::function& writer) {
            return computeWith(op, how, ins, outs, writer,
                               [&](ComputeCall* call) { compute(op, values, call); });
          },
          attributes, settings, inputs, outputs, write);

  py::class_<OperatorState, std::unique_ptr<OperatorState, DestroyState>>(*m, "OperatorState")
      .def_property_readonly("made_by_create", &OperatorState::madeByCreate)
      .def(
          "compute",
          [](const OperatorState& state, const ComputeSettings& how, const py::list& ins,
             const std::vector<ArrayTuple>& outs, const py::function& writer) {
            return computeWith(state.op(), how, ins, outs, writer,
                               [&](ComputeCall* call) { compute(state, call); });
          },
          settings, inputs, outputs, write);

  m->def("seed_random", &seedRandomStates, py::arg("seed"));
}

}  // namespace passlib
