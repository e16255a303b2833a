#include "ort/node.h"

#include <utility>

#include "library/memory.h"
#include "library/operators/elements.h"
#include "ort/types.h"

namespace passlib {
namespace {

using mxnet::ext::JsonVal;

Attributes readAttributes(const CustomOp& op, const std::string& text, const std::string& node) {
  if (text.empty()) return {};
  const std::string which = "has an attribute 'attributes' that is no JSON object of texts";
  JsonVal object;
  try {
    object = JsonVal::parse(text);
  } catch (const std::exception& error) {
    op.fail(which + ": " + mxnet::ext::host::textOf(error), node);
  }
  if (object.type != mxnet::ext::MAP) op.fail(which, node);
  Attributes attributes;
  for (const auto& [key, value] : object.map) {
    if (value.type != mxnet::ext::STR) {
      op.fail(which + ": the value of " + mxnet::ext::host::quoted(key.str) + " is no text", node);
    }
    attributes[key.str] = value.str;
  }
  return attributes;
}

/// A shape that an operator inferred, -1 for an unknown extent.
std::vector<int64_t> shapeOf(const Extents& extents) {
  std::vector<int64_t> shape;
  for (const unsigned int extent : extents) {
    shape.push_back(extent == kUnknownExtent ? -1 : static_cast<int64_t>(extent));
  }
  return shape;
}

bool fits(const std::vector<int64_t>& inferred, const std::vector<int64_t>& known) {
  if (inferred.empty()) return true;  // says nothing
  if (inferred.size() != known.size()) return false;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (inferred[i] >= 0 && inferred[i] != known[i]) return false;
  }
  return true;
}

}  // namespace

LibraryNode::LibraryNode(const CustomOp& op, const std::string& text, const std::string& types,
                         std::string name)
    : op_(op), name_(std::move(name)), attributes_(readAttributes(op, text, name_)) {
  if (op_.functions().is_subgraph) {
    readTypes(types);
    return;
  }
  std::tie(num_inputs_, num_outputs_) = op_.arity(attributes_, name_);
  mutated_ = op_.mutatedInputs(attributes_, num_inputs_, name_);
}

void LibraryNode::readTypes(const std::string& text) {
  if (text.empty() || attributes_.count(MX_STR_SUBGRAPH_SYM_JSON) == 0) {
    fail("runs a subgraph, and its node has none with types: export the model with to_onnx");
  }
  try {
    stated_.emplace(text);
  } catch (const OrtError& error) {
    fail(std::string("has an attribute 'subgraph_types' that is wrong: ") + error.what());
  }
  num_inputs_ = stated_->inputCount();
  num_outputs_ = stated_->outputCount();
  mutated_ = stated_->written();
}

bool LibraryNode::isStateful() const {
  return op_.functions().create_state.count(Library::kDevice) != 0;
}

namespace {

std::vector<Extents> extentsOf(const LibraryNode& node,
                               const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<Extents> all;
  for (const std::vector<int64_t>& shape : shapes) {
    Extents extents;
    for (const int64_t extent : shape) {
      if (extent < 0 || extent >= static_cast<int64_t>(kUnknownExtent)) {
        node.fail("cannot get an input of the shape " + spelled(shape) +
                  ": the ABI has no dimension beyond 32 bits");
      }
      extents.push_back(static_cast<unsigned int>(extent));
    }
    all.push_back(std::move(extents));
  }
  return all;
}

}  // namespace

std::vector<OutputArray> LibraryNode::infer(const std::vector<std::vector<int64_t>>& shapes,
                                            const std::vector<int>& types) const {
  std::vector<OutputArray> outputs =
      stated_.has_value() ? statedOutputs(shapes, types) : inferredOutputs(shapes, types);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string which = " for its output " + std::to_string(i);
    const OutputArray& output = outputs[i];
    for (const int64_t extent : output.shape) {
      if (extent < 0) fail("infers the shape " + spelled(output.shape) + which);
    }
    if (elementOfDtype(output.dtype) == kOrtAnyType) {
      fail(output.dtype == -1 ? "infers no element type" + which
                              : "infers the type code " + std::to_string(output.dtype) + which +
                                    "; the codes are 0 to 12");
    }
    if (output.storage != mxnet::ext::kDefaultStorage) {
      fail("makes a sparse array" + which + ", which ONNX Runtime does not have");
    }
    const int rank = static_cast<int>(output.shape.size());
    if (!arrayBytes(elementSize(output.dtype), output.shape.data(), rank)) {
      fail("infers the shape " + spelled(output.shape) + which + ", which no memory holds");
    }
  }
  return outputs;
}

std::vector<OutputArray> LibraryNode::statedOutputs(const std::vector<std::vector<int64_t>>& shapes,
                                                    const std::vector<int>& types) const {
  try {
    return stated_->outputs(shapes, types);
  } catch (const OrtError& error) {
    fail(error.what());
  }
}

std::vector<OutputArray> LibraryNode::inferredOutputs(
    const std::vector<std::vector<int64_t>>& shapes, const std::vector<int>& types) const {
  const auto [in_shapes, out_shapes] =
      op_.inferShapes(attributes_, extentsOf(*this, shapes), num_outputs_, name_);
  const auto [in_types, out_types] = op_.inferTypes(attributes_, types, num_outputs_, name_);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string which = " for its input " + std::to_string(i) + ", which ";
    const std::vector<int64_t> inferred = shapeOf(in_shapes[i]);
    if (!fits(inferred, shapes[i])) {
      fail("infers the shape " + spelled(inferred) + which + "has the shape " + spelled(shapes[i]));
    }
    if (in_types[i] != -1 && in_types[i] != types[i]) {
      fail("infers the type code " + std::to_string(in_types[i]) + which + "has " +
           std::to_string(types[i]));
    }
  }
  const std::vector<int> storage =
      op_.inferStorage(attributes_, std::vector<int>(shapes.size(), mxnet::ext::kDefaultStorage),
                       num_outputs_, name_);
  std::vector<OutputArray> outputs(out_shapes.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].shape = shapeOf(out_shapes[i]);
    outputs[i].dtype = out_types[i];
    outputs[i].storage = storage[i];
  }
  return outputs;
}

std::shared_ptr<const Settled> LibraryNode::settle(const std::vector<std::vector<int64_t>>& shapes,
                                                   const std::vector<int>& types) const {
  auto settled = std::make_shared<Settled>();
  settled->inputs = shapes;
  settled->outputs = infer(shapes, types);
  if (isStateful()) {
    settled->state =
        std::make_unique<OperatorState>(op_, attributes_, extentsOf(*this, shapes), types, name_);
  }
  return settled;
}

void LibraryNode::run(const Settled& settled, ComputeCall* call) const {
  if (settled.state != nullptr) {
    compute(*settled.state, call);
  } else {
    compute(op_, attributes_, call);
  }
}

}  // namespace passlib
