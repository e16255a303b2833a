#include "onnx/reading/level.h"

#include <algorithm>

#include "graph/text_table.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// The attributes of the operator Constant; a node has one of them.
constexpr std::pair<const char*, Kind> kConstantKinds[] = {
    {"value", Kind::kTensor},        {"sparse_value", Kind::kSparseTensor},
    {"value_int", Kind::kInt},       {"value_ints", Kind::kInts},
    {"value_float", Kind::kFloat},   {"value_floats", Kind::kFloats},
    {"value_string", Kind::kString}, {"value_strings", Kind::kStrings},
};

bool isOwnKey(Bytes key) {
  static constexpr const char* own_keys[] = {keys::kId,     keys::kDomain,   keys::kOverload,
                                             keys::kFormal, keys::kCaptured, keys::kOuter,
                                             keys::kOpaque, keys::kDefault};
  return std::find(std::begin(own_keys), std::end(own_keys), key) != std::end(own_keys);
}

/// Whether metadata of a node is a mark that a pass left there.
bool isMark(Bytes key) {
  return key.size() > 4 && key.substr(0, 2) == "__" && key.substr(key.size() - 2) == "__" &&
         !isOwnKey(key);
}

Bytes nameOfValue(Bytes value, uint32_t number) {
  Bytes name = "";  // never null: names are hashed
  forEachBody(value, number, [&](Bytes body) { name = body; });
  return name;
}

template <typename List>
Range rangeSince(const List& list, std::size_t first) {
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(list.size() - first)};
}

class LevelReader {
 public:
  LevelReader(Level* level, std::vector<GraphPlace>* graphs, Arena* arena)
      : level_(*level), graphs_(*graphs), arena_(arena) {}

  void read(Bytes graph) {
    reserve(graph);
    Field field;
    for (Fields fields(graph); fields.next(&field);) {
      if (field.type != kBytes) continue;
      if (field.number == kNode) {
        readNode(field.body);
      } else if (field.number == kInitializer) {
        level_.initializers.push_back({readTensorHead(field.body), false});
        checkVariable(level_.initializers.back().tensor.name, "initializer.",
                      level_.initializers.size() - 1);
      } else if (field.number == kSparseInitializer) {
        const Bytes values = mergedBody(field.body, kValues, arena_);
        level_.sparse.emplace_back(nameOfValue(values, kTensorName), false);
        checkVariable(level_.sparse.back().first, "sparse.", level_.sparse.size() - 1);
      } else if (field.number == kInput) {
        const auto number = static_cast<uint32_t>(level_.inputs.size());
        level_.inputs.emplace_back(nameOfValue(field.body, kValueName), number);
        checkVariable(level_.inputs.back().first, "input.", number);
      } else if (field.number == kOutput) {
        level_.outputs.push_back(nameOfValue(field.body, kValueName));
        checkName(level_.outputs.back(), "output.", level_.outputs.size() - 1);
      }
    }
    tieDefaults();
  }

 private:
  /// Makes room, so that lists do not move while they grow; most graphs are smaller than the limit.
  void reserve(Bytes graph) {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    std::size_t nodes = 0;
    std::size_t initializers = 0;
    Field field;
    for (Fields fields(graph); fields.next(&field);) {
      nodes += field.number == kNode ? 1 : 0;
      initializers += field.number == kInitializer ? 1 : 0;
    }
    level_.nodes.reserve(std::min(nodes, kMost));
    level_.names.reserve(std::min(4 * nodes, kMost));
    level_.attributes.reserve(std::min(3 * nodes, kMost));
    level_.initializers.reserve(std::min(initializers, kMost));
  }

  void checkName(Bytes name, const char* what, std::size_t number) {
    checkedName(name, [&] { return level_.prefix + what + std::to_string(number); });
  }

  void checkVariable(Bytes name, const char* what, std::size_t number) {
    checkName(name, what, number);
    if (name.empty()) throw GraphError("an input or initializer of the graph has no name");
  }

  /// Marks the constants that are defaults of inputs, and leaves these inputs out.
  void tieDefaults() {
    TextViewSet names;
    for (const auto& [name, number] : level_.inputs) {
      if (!names.insert(name).second) {
        throw GraphError("two inputs of the graph are named " + shown(name));
      }
    }
    TextViewSet defaults;
    const auto tie = [&](Bytes name) {
      const bool found = !names.empty() && names.count(name) != 0;
      if (found) defaults.insert(name);
      return found;
    };
    for (Initializer& initializer : level_.initializers) {
      initializer.has_input = tie(initializer.tensor.name);
    }
    for (auto& [name, has_input] : level_.sparse) has_input = tie(name);
    const auto has_default = [&](const auto& input) { return defaults.count(input.first) != 0; };
    level_.inputs.erase(std::remove_if(level_.inputs.begin(), level_.inputs.end(), has_default),
                        level_.inputs.end());
  }

  void readNode(Bytes message) {
    const std::size_t number = level_.nodes.size();
    const auto place = [&] { return "node " + level_.keyOf(number); };
    NodeRecord node;
    // Inputs and outputs may alternate in the file, but each of their ranges is one.
    const std::size_t first_name = level_.names.size();
    const std::size_t first_attribute = level_.attributes.size();
    const std::size_t first_mark = level_.marks.size();
    outputs_.clear();
    Field field;
    for (Fields fields(message); fields.next(&field);) {
      if (field.type != kBytes) continue;
      switch (field.number) {
        case kNodeInput:
          level_.names.push_back(field.body);
          break;
        case kNodeOutput:
          outputs_.push_back(field.body);
          break;
        case kNodeName:
          node.name = field.body;
          break;
        case kOpType:
          node.op = field.body;
          break;
        case kAttribute:
          level_.attributes.push_back({readAttribute(field.body, arena_), {}});
          break;
        case kDomain:
          node.domain = field.body;
          break;
        case kOverload:
          node.overload = field.body;
          break;
        case kMetadata:
          readMark(field.body);
          break;
        default:
          break;
      }
    }
    node.inputs = rangeSince(level_.names, first_name);
    level_.names.insert(level_.names.end(), outputs_.begin(), outputs_.end());
    node.outputs = rangeSince(level_.names, first_name + node.inputs.count);
    node.attributes = rangeSince(level_.attributes, first_attribute);
    node.marks = rangeSince(level_.marks, first_mark);
    checkedName(node.op, place);
    node.constant = isConstant(node);
    if (!node.constant) {
      if (node.op.empty() || node.op == "null") {
        throw FormatError(place() + " has operator " + shown(node.op));
      }
      checkedName(node.name, place);
      checkAttributes(node, number);
      collectNested(node, number);
    }
    level_.nodes.push_back(node);
  }

  void readMark(Bytes entry) {
    const Bytes key = nameOfValue(entry, kKey);
    if (isMark(key)) level_.marks.emplace_back(key, nameOfValue(entry, kValue));
  }

  bool isConstant(const NodeRecord& node) const {
    if (node.op != "Constant" || !(node.domain.empty() || node.domain == "ai.onnx")) return false;
    if (node.inputs.count != 0 || node.outputs.count != 1 || node.attributes.count != 1) {
      return false;
    }
    if (level_.names[node.outputs.first].empty()) return false;
    const Attribute& value = level_.attributes[node.attributes.first].attribute;
    if (!value.reference.empty()) return false;
    return std::any_of(std::begin(kConstantKinds), std::end(kConstantKinds), [&](const auto& pair) {
      return value.name == pair.first && value.kind == pair.second;
    });
  }

  void checkAttributes(const NodeRecord& node, std::size_t number) {
    constexpr uint32_t kFew = 16;
    TextViewSet many;
    const AttributeRecord* const first = level_.attributes.data() + node.attributes.first;
    for (uint32_t i = 0; i < node.attributes.count; ++i) {
      const Bytes name =
          checkedName(first[i].attribute.name, [&] { return titleOf(level_, node, number); });
      if (isOwnKey(name)) {
        throw UnsupportedError(titleOf(level_, node, number) + ": attribute " + shown(name) +
                               " has a name that passlib reserves");
      }
      bool twice = false;
      if (node.attributes.count > kFew) {
        twice = !many.insert(name).second;
      } else {
        for (uint32_t k = 0; k < i; ++k) twice = twice || first[k].attribute.name == name;
      }
      if (twice) {
        throw FormatError(titleOf(level_, node, number) + ": attribute " + shown(name) +
                          " occurs twice");
      }
    }
  }

  void collectNested(const NodeRecord& node, std::size_t number) {
    for (uint32_t i = 0; i < node.attributes.count; ++i) {
      AttributeRecord& record = level_.attributes[node.attributes.first + i];
      const Attribute& attribute = record.attribute;
      if (!attribute.isGraph() || !attribute.reference.empty()) continue;
      const std::string place = level_.keyOf(number) + "." + std::string(attribute.name);
      record.levels.first = static_cast<uint32_t>(graphs_.size());
      if (attribute.kind == Kind::kGraph) {
        graphs_.push_back({attribute.content, place});
        record.levels.count = 1;
        continue;
      }
      forEachBody(attribute.message, kGraphs, [&](Bytes body) {
        graphs_.push_back({body, place + "[" + std::to_string(record.levels.count++) + "]"});
      });
    }
  }

  Level& level_;
  std::vector<GraphPlace>& graphs_;
  Arena* arena_;
  std::vector<Bytes> outputs_;
};

}  // namespace

std::string titleOf(const Level& level, const NodeRecord& node, std::size_t number) {
  const std::string name =
      node.name.empty() ? std::string(node.op) + "_" + level.keyOf(number) : std::string(node.name);
  return "node " + shown(name) + " (" + std::string(node.op) + ")";
}

Level readLevel(std::size_t number, std::vector<GraphPlace>* graphs, Arena* arena) {
  const Bytes message = (*graphs)[number].message;
  Level level;
  level.nested = number > 0;
  if (level.nested) level.prefix = (*graphs)[number].place + ".";
  LevelReader(&level, graphs, arena).read(message);
  return level;
}

}  // namespace passlib::onnx
