#include "ort/kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "library/memory.h"
#include "library/operators/elements.h"

namespace passlib {
namespace {

/// Types of inputs that a node remembers, each with a state: as many as Model.run keeps.
constexpr std::size_t kKept = 8;

std::size_t bytesOf(int dtype, const std::vector<int64_t>& shape) {
  return arrayBytes(elementSize(dtype), shape.data(), static_cast<int>(shape.size())).value_or(0);
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

Kernel::Kernel(const OrtCalls& calls, const CustomOp& op, const OrtKernelInfo* info)
    : calls_(calls),
      node_(op, calls.attribute(info, kAttributes), calls.attribute(info, kTypes),
            calls.nodeName(info)) {
  const auto wanted = static_cast<std::size_t>(node_.inputCount());
  const std::size_t given = calls_.inputCount(info);
  if (given != wanted) {
    node_.fail("takes " + counted(wanted, "input") + ", and its node has " + std::to_string(given));
  }
  const std::size_t most = static_cast<std::size_t>(node_.outputCount()) + node_.mutated().size();
  const std::size_t outputs = calls_.outputCount(info);
  if (outputs > most) {
    node_.fail("has " + counted(most, "output") + ", and its node " + std::to_string(outputs));
  }
  for (std::size_t i = 0; i < given; ++i) {
    const int element = calls_.inputElement(info, i);
    input_types_.push_back(dtypeOfElement(element));
    if (input_types_.back() == -1) {
      node_.fail("cannot get its input " + std::to_string(i) +
                 ": it is no tensor of an element type that the ABI has (type " +
                 std::to_string(element) + " of ONNX)");
    }
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    output_elements_.push_back(calls_.outputElement(info, i));
  }
}

std::shared_ptr<const Settled> Kernel::settled(const std::vector<std::vector<int64_t>>& shapes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = std::find_if(recent_.begin(), recent_.end(), [&shapes](const auto& settled) {
      return settled->inputs == shapes;
    });
    if (known != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, known);
      return recent_.front();
    }
  }
  std::shared_ptr<const Settled> made = node_.settle(shapes, input_types_);
  for (std::size_t i = 0; i < made->outputs.size() && i < output_elements_.size(); ++i) {
    const int element = elementOfDtype(made->outputs[i].dtype);
    if (output_elements_[i] != kOrtAnyType && output_elements_[i] != element) {
      node_.fail("infers the element type " + std::to_string(element) + " of ONNX for its output " +
                 std::to_string(i) + ", which has type " + std::to_string(output_elements_[i]) +
                 " in the model");
    }
  }
  for (std::size_t k = 0; k < node_.mutated().size(); ++k) {
    const std::size_t place = made->outputs.size() + k;
    const int dtype = input_types_[static_cast<std::size_t>(node_.mutated()[k])];
    if (place < output_elements_.size() && output_elements_[place] != elementOfDtype(dtype)) {
      node_.fail("gives its output " + std::to_string(place) + " the element type of its input " +
                 std::to_string(node_.mutated()[k]) + ", and the model another");
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  recent_.push_front(made);
  if (recent_.size() > kKept) recent_.pop_back();
  return made;
}

void Kernel::compute(OrtKernelContext* context) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<void*> data;
  for (std::size_t i = 0; i < input_types_.size(); ++i) {
    const OrtValue* value = calls_.input(context, i);
    if (value == nullptr) node_.fail("lacks its input " + std::to_string(i));
    TensorType type = calls_.typeOf(value);
    if (dtypeOfElement(type.element) != input_types_[i]) {
      node_.fail("gets another element type for its input " + std::to_string(i) +
                 " than the model states");
    }
    shapes.push_back(std::move(type.shape));
    data.push_back(calls_.dataOf(value));
  }
  if (!node_.isStateful()) {
    computeSettled(*settled(shapes), data, context);
    return;
  }
  const std::lock_guard<std::mutex> lock(running_);
  computeSettled(*settled(shapes), data, context);
}

void Kernel::computeSettled(const Settled& settled, const std::vector<void*>& data,
                            OrtKernelContext* context) {
  ComputeCall call;
  call.node = node_.name();
  const std::vector<int>& mutated = node_.mutated();
  // The memory of an output of the node; null if it is not needed.
  const auto place = [&](std::size_t index, const std::vector<int64_t>& shape) -> void* {
    if (index >= output_elements_.size()) return nullptr;
    OrtValue* value = calls_.output(context, index, shape);
    return value == nullptr ? nullptr : calls_.dataOf(value);
  };
  std::vector<Buffer> copies;
  for (std::size_t i = 0; i < data.size(); ++i) {
    InputArray input;
    input.shape = settled.inputs[i];
    input.dtype = input_types_[i];
    input.bytes = bytesOf(input.dtype, input.shape);
    input.data = data[i];
    const auto found = std::find(mutated.begin(), mutated.end(), static_cast<int>(i));
    if (found != mutated.end()) {
      // Inputs belong to the model, so the operator writes to a copy.
      const auto number = static_cast<std::size_t>(found - mutated.begin());
      input.mutated = true;
      input.data = place(settled.outputs.size() + number, input.shape);
      if (input.data == nullptr) {
        copies.emplace_back(input.bytes, false);
        input.data = copies.back().data();
      }
      if (input.bytes != 0) std::memcpy(input.data, data[i], input.bytes);
    }
    call.inputs.push_back(std::move(input));
  }
  for (std::size_t i = 0; i < settled.outputs.size(); ++i) {
    OutputArray output;
    output.shape = settled.outputs[i].shape;
    output.dtype = settled.outputs[i].dtype;
    output.place = place(i, output.shape);
    const std::size_t bytes = bytesOf(output.dtype, output.shape);
    if (output.place != nullptr && bytes != 0) std::memset(output.place, 0, bytes);
    call.outputs.push_back(std::move(output));
  }
  node_.run(settled, &call);
}

}  // namespace passlib
