#include "bindings_operator.h"

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings_common.h"
#include "compute.h"
#include "custom_op.h"
#include "random_states.h"

namespace passlib {
namespace {

using OutputTuple = std::tuple<int, int, std::vector<int64_t>>;

void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const OperatorError& error) {
    using namespace py::literals;  // NOLINT: this function only
    setLibraryError("OperatorError", error,
                    py::dict("operator"_a = decode(error.op), "library"_a = decode(error.library),
                             "node"_a = decode(error.node)));
  }
}

template <typename Element>
std::pair<Element*, int64_t> borrow(const py::handle& object) {
  if (object.is_none()) return {nullptr, 0};
  const auto array = object.cast<py::array>();
  return {static_cast<Element*>(const_cast<void*>(array.data())),
          static_cast<int64_t>(array.size())};
}

/// An input comes as (dtype code, storage type, shape, data, indices or None, indptr or None,
/// mutated). Arrays must be C-contiguous, indices of int64.
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

/// Bytes in the memory of a buffer, which they own from here on.
py::array takeBuffer(Buffer* buffer) {
  const auto size = static_cast<py::ssize_t>(buffer->size());
  const auto* data = static_cast<const uint8_t*>(buffer->data());
  const py::capsule owner(buffer->release().release(),
                          [](void* pointer) { FreeMemory()(pointer); });
  return py::array_t<uint8_t>({size}, {1}, data, owner);
}

/// An output goes as (shape of what is stored, bytes, bytes of indices, bytes of indptr); the last
/// two are None where there are none.
py::tuple giveOutput(OutputArray* output) {
  py::object indices = py::none();
  py::object indptr = py::none();
  if (output->storage != mxnet::ext::kDefaultStorage) indices = takeBuffer(&output->indices);
  if (output->storage == mxnet::ext::kCSRStorage) indptr = takeBuffer(&output->indptr);
  return py::make_tuple(py::tuple(py::cast(output->stored_shape)), takeBuffer(&output->data),
                        indices, indptr);
}

/// What a Python caller says about a computation, besides the arrays.
struct ComputeSettings {
  std::string node;
  bool is_forward;
  bool check_memory;
};

template <typename Run>
py::list computeWith(const ComputeSettings& settings, const py::list& inputs,
                     const std::vector<OutputTuple>& outputs, const py::function& write, Run run) {
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
  runCaptured(write, [&]() { run(&call); });
  py::list results;
  for (OutputArray& output : call.outputs) results.append(giveOutput(&output));
  return results;
}

/// Destroys a state without the GIL, which another thread that is in the library may wait for.
struct DestroyState {
  void operator()(OperatorState* state) const {
    const py::gil_scoped_release released;
    delete state;
  }
};

}  // namespace

void bindOperators(py::module_* m) {
  py::register_exception_translator(&translate);

  py::class_<ComputeSettings>(*m, "ComputeSettings")
      .def(py::init([](std::string node, bool is_forward, bool check_memory) {
             return ComputeSettings{std::move(node), is_forward, check_memory};
           }),
           py::kw_only(), py::arg("node"), py::arg("is_forward"), py::arg("check_memory"));

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
      .def("described", &CustomOp::described, py::arg("what"), py::arg("node"))
      .def(
          "arity",
          [](const CustomOp& op, const Attributes& attributes, const std::string& node,
             const py::function& write) {
            std::pair<int, int> answer;
            runCaptured(write, [&]() { answer = op.arity(attributes, node); });
            return answer;
          },
          py::arg("attributes"), py::arg("node"), py::arg("write"))
      .def(
          "mutated_inputs",
          [](const CustomOp& op, const Attributes& attributes, int num_inputs,
             const std::string& node, const py::function& write) {
            std::vector<int> answer;
            runCaptured(write, [&]() { answer = op.mutatedInputs(attributes, num_inputs, node); });
            return answer;
          },
          py::arg("attributes"), py::arg("num_inputs"), py::arg("node"), py::arg("write"))
      .def(
          "infer_shapes",
          [](const CustomOp& op, const Attributes& attributes, const std::vector<Extents>& inputs,
             int num_outputs, const std::string& node, const py::function& write) {
            ShapeAnswer answer;
            runCaptured(write,
                        [&]() { answer = op.inferShapes(attributes, inputs, num_outputs, node); });
            return answer;
          },
          py::arg("attributes"), py::arg("inputs"), py::arg("num_outputs"), py::arg("node"),
          py::arg("write"))
      .def(
          "infer_types",
          [](const CustomOp& op, const Attributes& attributes, const std::vector<int>& inputs,
             int num_outputs, const std::string& node, const py::function& write) {
            NumberAnswer answer;
            runCaptured(write,
                        [&]() { answer = op.inferTypes(attributes, inputs, num_outputs, node); });
            return answer;
          },
          py::arg("attributes"), py::arg("inputs"), py::arg("num_outputs"), py::arg("node"),
          py::arg("write"))
      .def(
          "infer_storage",
          [](const CustomOp& op, const Attributes& attributes, const std::vector<int>& inputs,
             int num_outputs, const std::string& node, const py::function& write) {
            std::vector<int> answer;
            runCaptured(write,
                        [&]() { answer = op.inferStorage(attributes, inputs, num_outputs, node); });
            return answer;
          },
          py::arg("attributes"), py::arg("inputs"), py::arg("num_outputs"), py::arg("node"),
          py::arg("write"))
      .def(
          "create_state",
          [](const CustomOp& op, const Attributes& attributes, const std::vector<Extents>& shapes,
             const std::vector<int>& types, const std::string& node, const py::function& write) {
            std::unique_ptr<OperatorState, DestroyState> state;
            runCaptured(write, [&]() {
              state.reset(new OperatorState(op, attributes, shapes, types, node));
            });
            return state;
          },
          py::arg("attributes"), py::arg("shapes"), py::arg("types"), py::arg("node"),
          py::arg("write"))
      .def(
          "compute",
          [](const CustomOp& op, const Attributes& attributes, const ComputeSettings& settings,
             const py::list& inputs, const std::vector<OutputTuple>& outputs,
             const py::function& write) {
            return computeWith(settings, inputs, outputs, write,
                               [&](ComputeCall* call) { compute(op, attributes, call); });
          },
          py::arg("attributes"), py::arg("settings"), py::arg("inputs"), py::arg("outputs"),
          py::arg("write"));

  py::class_<OperatorState, std::unique_ptr<OperatorState, DestroyState>>(*m, "OperatorState")
      .def_property_readonly("made_by_create", &OperatorState::madeByCreate)
      .def(
          "compute",
          [](const OperatorState& state, const ComputeSettings& settings, const py::list& inputs,
             const std::vector<OutputTuple>& outputs, const py::function& write) {
            return computeWith(settings, inputs, outputs, write,
                               [&](ComputeCall* call) { compute(state, call); });
          },
          py::arg("settings"), py::arg("inputs"), py::arg("outputs"), py::arg("write"));

  m->def("seed_random", &seedRandomStates, py::arg("seed"));
}

}  // namespace passlib
