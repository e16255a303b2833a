#include "onnx/reading/model.h"

#include <functional>
#include <utility>

#include "onnx/reading/graph_builder.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/schema.h"

namespace passlib::onnx {
namespace {

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
Bytes readOutermost(Bytes data, Model* model, Arena* arena) {
  Message graph;
  Field field;
  for (Fields fields(data); fields.next(&field);) {
    if (field.number == numbers::kIrVersion && field.type == kVarint) {
      model->ir_version = static_cast<int64_t>(field.value);
    } else if (field.number == numbers::kOpsetImport && field.type == kBytes) {
      model->imports.push_back(readImport(field.body));
    } else if (field.number == numbers::kGraph && field.type == kBytes) {
      graph.add(field.body, arena);
    }
  }
  if (!graph.present()) throw FormatError("this ONNX model has no graph");
  return graph.bytes();
}

/// Checks the constants of levels, and keeps those that become arrays.
class ConstantReader {
 public:
  explicit ConstantReader(std::vector<Constant>* constants) : constants_(*constants) {}

  void read(const Level& level) {
    const bool main = !level.nested;
    if (main) constants_.reserve(level.initializers.size());
    for (const Initializer& initializer : level.initializers) {
      addTensor({initializer.tensor.name, initializer.tensor.message, Constant::What::kInitializer,
                 Kind::kTensor, main});
    }
    for (const NodeRecord& node : level.nodes) {
      if (!node.constant) continue;
      const Attribute& value = level.attributes[node.attributes.first].attribute;
      const Bytes name = level.names[node.outputs.first];
      switch (value.kind) {
        case Kind::kTensor:
          addTensor({name, value.content, Constant::What::kNode, value.kind, main});
          break;
        case Kind::kInt:
        case Kind::kInts:
        case Kind::kFloat:
        case Kind::kFloats:
          if (main)
            constants_.push_back({name, value.message, Constant::What::kNode, value.kind, main});
          break;
        default:
          break;
      }
    }
  }

 private:
  void addTensor(Constant constant) {
    readTensor(constant.message, &tensor_);
    constant.external = tensor_.external;
    const auto place = [&constant] { return constant.place(); };
    if (!tensor_.external && checkElements(tensor_, place).type == nullptr) return;
    if (constant.main || constant.external) constants_.push_back(constant);
  }

  std::vector<Constant>& constants_;
  Tensor tensor_;
};

Model read(Bytes data) {
  Model model;
  model.has_external = checkModel(data);
  const auto read = std::make_shared<Levels>();
  model.levels = read;
  model.message = readOutermost(data, &model, &read->arena);
  read->places.assign(1, {model.message, ""});
  std::vector<Level>& levels = read->all;
  for (std::size_t number = 0; number < read->places.size(); ++number) {
    levels.push_back(readLevel(number, &read->places, &read->arena));
  }
  addReferencesOfModel(data, &read->references);
  for (const GraphPlace& each : read->places) {
    addReferencesOfGraph(each.message, &read->references);
  }
  // Nested graphs come after those around them, and are built before them.
  std::vector<BuiltGraph> built(levels.size());
  for (std::size_t number = levels.size(); number-- > 0;) {
    built[number] = buildGraph(levels[number], model.ir_version >= numbers::kInputsAlso,
                               read->references, &built, &read->arena);
  }
  ConstantReader constants(&model.constants);
  for (const Level& level : levels) constants.read(level);
  model.graph = std::move(built[0].graph);
  // All else that checkGraph looks for follows from how graphs are built: names are UTF-8, and of
  // variables unique (LevelValues), texts come from `decoded`, and edges are those of makers.
  if (model.graph->outputs.empty()) throw GraphError("the graph has no outputs");
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
