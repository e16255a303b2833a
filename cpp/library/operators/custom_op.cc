#include "library/operators/custom_op.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#include "errors.h"
#include "library/calls/call.h"
#include "library/text_columns.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

/// More inputs or outputs than any graph has. Bounds what the host allocates for a library.
constexpr int kMostArity = 1000000;

}  // namespace

CustomOp::CustomOp(std::shared_ptr<Library> library, std::size_t index)
    : library_(std::move(library)), index_(index) {
  library_->operators().at(index_);
}

std::string CustomOp::described(const std::string& what, const std::string& node) const {
  std::string text =
      "operator " + quoted(functions().name) + " of library " + quoted(library_->path());
  if (!node.empty()) text += " (node " + quoted(node) + ")";
  return text + " " + what;
}

void CustomOp::fail(const std::string& what, const std::string& node,
                    std::vector<std::string> messages) const {
  throw OperatorError(described(what, node), std::move(messages), functions().name,
                      library_->path(), node);
}

template <typename Body>
void CustomOp::call(const char* what, const std::string& node, Body body) const {
  CallOutcome outcome = callLibrary(*library_, body);
  if (outcome.succeeded()) return;
  const std::string failed = std::string("failed to ") + what;
  fail(describeFailure(failed, outcome), node, outcome.messages);
}

std::pair<int, int> CustomOp::arity(const Attributes& attributes, const std::string& node) const {
  if (functions().parse == nullptr) {
    fail("does not determine its arity; a subgraph operator has that of its subgraph", node);
  }
  const TextColumns columns(attributes);
  int inputs = 0;
  int outputs = 0;
  call("parse its attributes", node, [&]() {
    return library_->operatorCalls().parse(functions().parse, columns.keys(), columns.values(),
                                           columns.count(), &inputs, &outputs);
  });
  if (inputs < 0 || inputs > kMostArity || outputs < 1 || outputs > kMostArity) {
    fail("reports that it has " + std::to_string(inputs) + " inputs and " +
             std::to_string(outputs) + " outputs; 0 to " + std::to_string(kMostArity) +
             " inputs and at least one output " + "are possible",
         node);
  }
  return {inputs, outputs};
}

std::vector<int> CustomOp::mutatedInputs(const Attributes& attributes, int num_inputs,
                                         const std::string& node) const {
  if (functions().mutate == nullptr) return {};
  const TextColumns columns(attributes);
  int* positions = nullptr;
  int count = 0;
  call("name the inputs that it writes to", node, [&]() {
    return library_->operatorCalls().mutate(functions().mutate, columns.keys(), columns.values(),
                                            columns.count(), &positions, &count);
  });
  const auto release = [this](int* memory) { library_->release(memory); };
  const std::unique_ptr<int, decltype(release)> owned(positions, release);
  // Inputs may be named more than once, but not without limit.
  if (count < 0 || count > kMostArity || (count > 0 && positions == nullptr)) {
    fail("reports that it writes to " + std::to_string(count) + " inputs", node);
  }
  std::set<int> found;
  for (int i = 0; i < count; ++i) {
    if (positions[i] < 0 || positions[i] >= num_inputs) {
      fail("reports that it writes to its input " + std::to_string(positions[i]) + "; it has " +
               std::to_string(num_inputs) + ", counted from 0",
           node);
    }
    found.insert(positions[i]);
  }
  return {found.begin(), found.end()};
}

ShapeAnswer CustomOp::inferShapes(const Attributes& attributes, const std::vector<Extents>& inputs,
                                  int num_outputs, const std::string& node) const {
  if (functions().shape == nullptr) fail("has no function that infers shapes", node);
  const TextColumns columns(attributes);
  ShapeColumns given(inputs);
  ReturnedShapes ins(*library_, given.count());
  ReturnedShapes outs(*library_, num_outputs);
  call("infer shapes", node, [&]() {
    return library_->operatorCalls().shape(functions().shape, columns.keys(), columns.values(),
                                           columns.count(), given.shapes(), given.dims(),
                                           given.count(), ins.shapes(), ins.dims(), outs.shapes(),
                                           outs.dims(), num_outputs);
  });
  ins.complete();
  outs.complete();
  std::string problem;
  ShapeAnswer answer{ins.take("input", &problem), outs.take("output", &problem)};
  if (!problem.empty()) fail(problem, node);
  return answer;
}

NumberAnswer CustomOp::inferTypes(const Attributes& attributes, std::vector<int> inputs,
                                  int num_outputs, const std::string& node) const {
  if (functions().type == nullptr) fail("has no function that infers types", node);
  const TextColumns columns(attributes);
  std::vector<int> outputs(static_cast<std::size_t>(num_outputs), -1);
  call("infer types", node, [&]() {
    return library_->operatorCalls().type(
        functions().type, columns.keys(), columns.values(), columns.count(), inputs.data(),
        static_cast<int>(inputs.size()), outputs.data(), num_outputs);
  });
  return {std::move(inputs), std::move(outputs)};
}

std::vector<int> CustomOp::inferStorage(const Attributes& attributes, std::vector<int> inputs,
                                        int num_outputs, const std::string& node) const {
  std::vector<int> outputs(static_cast<std::size_t>(num_outputs), mxnet::ext::kDefaultStorage);
  if (functions().storage == nullptr) {
    const auto sparse = std::find_if(inputs.begin(), inputs.end(), [](int storage) {
      return storage != mxnet::ext::kDefaultStorage;
    });
    if (sparse != inputs.end()) {
      fail(
          "takes dense inputs only, since setInferSType was not called where it is registered; its "
          "input " +
              std::to_string(sparse - inputs.begin()) + " is sparse",
          node);
    }
    return outputs;
  }
  const std::vector<int> before = inputs;
  const TextColumns columns(attributes);
  outputs.assign(outputs.size(), -1);
  call("infer storage types", node, [&]() {
    return library_->operatorCalls().storage(
        functions().storage, columns.keys(), columns.values(), columns.count(), inputs.data(),
        static_cast<int>(inputs.size()), outputs.data(), num_outputs);
  });
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == before[i]) continue;
    fail("requires storage type " + std::to_string(inputs[i]) + " for its input " +
             std::to_string(i) + ", which has storage type " + std::to_string(before[i]),
         node);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] >= mxnet::ext::kDefaultStorage && outputs[i] <= mxnet::ext::kCSRStorage) {
      continue;
    }
    fail("infers storage type " + std::to_string(outputs[i]) + " for its output " +
             std::to_string(i) + "; there are 0 (dense), 1 (row_sparse) and 2 (csr)",
         node);
  }
  return outputs;
}

}  // namespace passlib
