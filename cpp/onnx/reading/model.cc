#include "onnx/reading/model.h"

#include <functional>
#include <utility>

#include "graph/check.h"
#include "onnx/reading/graph_builder.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/schema.h"

namespace passlib::onnx {
namespace {

/// Before this file version, each initializer is an input of the graph as well.
constexpr int64_t kInputsAlso = 4;

std::pair<Bytes, int64_t> readImport(Bytes message) {
  std::pair<Bytes, int64_t> import{{}, 0};
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.number == numbers::kSetDomain && field.type == kBytes) import.first = field.body;
    if (field.number == numbers::kSetVersion && field.type == kVarint) {
      import.second = static_cast<int64_t>(field.value);
    }
  }
  return import;
}

/// Reads the outermost fields; returns the graph.
Bytes readOutermost(Bytes data, Model* model) {
  Message graph;
  Field field;
  for (Fields fields(data); fields.next(&field);) {
    if (field.number == numbers::kIrVersion && field.type == kVarint) {
      model->ir_version = static_cast<int64_t>(field.value);
    } else if (field.number == numbers::kOpsetImport && field.type == kBytes) {
      model->imports.push_back(readImport(field.body));
    } else if (field.number == numbers::kGraph && field.type == kBytes) {
      graph.add(field.body, model->arena.get());
    }
  }
  if (!graph.present()) throw FormatError("this ONNX model has no graph");
  return graph.bytes();
}

void addConstant(Constant constant, std::vector<Constant>* constants) {
  if (constant.kind == Kind::kTensor && !constant.tensor.external) {
    constant.elements = checkElements(constant.tensor, constant.place());
    if (constant.elements.type == nullptr) return;
  }
  if (constant.main || constant.tensor.external) constants->push_back(std::move(constant));
}

/// Checks the constants of a level, and keeps those that become arrays.
void collectConstants(Level* level, std::vector<Constant>* constants) {
  const bool main = !level->nested;
  for (Initializer& initializer : level->initializers) {
    Constant constant{initializer.tensor.name, "initializer", main, Kind::kTensor, {}, {}, {}};
    constant.tensor = std::move(initializer.tensor);
    addConstant(std::move(constant), constants);
  }
  for (const NodeRecord& node : level->nodes) {
    if (!node.constant) continue;
    const Attribute& value = level->attributes[node.attributes.first].attribute;
    const bool is_tensor = value.kind == Kind::kTensor;
    const bool is_number = value.kind == Kind::kInt || value.kind == Kind::kInts ||
                           value.kind == Kind::kFloat || value.kind == Kind::kFloats;
    if (!is_tensor && !is_number) continue;
    Constant constant{level->names[node.outputs.first], "constant", main, value.kind, {}, {}, {}};
    constant.value = value;
    if (is_tensor) constant.tensor = readTensor(value.content);
    addConstant(std::move(constant), constants);
  }
}

Model read(Bytes data) {
  Model model;
  model.has_external = checkModel(data);
  model.arena = std::make_unique<Arena>();
  model.message = readOutermost(data, &model);
  std::vector<GraphPlace> graphs(1, {model.message, ""});
  std::vector<Level> levels;
  for (std::size_t number = 0; number < graphs.size(); ++number) {
    levels.push_back(readLevel(number, &graphs, model.arena.get()));
  }
  // Nested graphs come after those around them, and are built before them.
  std::vector<BuiltGraph> built(levels.size());
  for (std::size_t number = levels.size(); number-- > 0;) {
    built[number] =
        buildGraph(levels[number], model.ir_version >= kInputsAlso, &built, model.arena.get());
  }
  for (Level& level : levels) collectConstants(&level, &model.constants);
  model.graph = std::move(built[0].graph);
  checkGraph(model.graph.get());
  return model;
}

}  // namespace

Model readModel(Bytes data) {
  if (data.empty()) throw FormatError("the file is empty");
  try {
    return read(data);
  } catch (const WireError& error) {
    const std::less<> before;
    const bool inside =
        !before(error.at, data.data()) && !before(data.data() + data.size(), error.at);
    throw FormatError(error.what(), inside ? static_cast<std::size_t>(error.at - data.data())
                                           : FormatError::kNoOffset);
  }
}

}  // namespace passlib::onnx
