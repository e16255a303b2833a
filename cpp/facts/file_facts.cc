#include "facts/file_facts.h"

#include <algorithm>
#include <set>

#include "graph/attributes.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::facts {

void FileFacts::infer(const Opsets& opsets, const GivenTypes& given, bool with_stated,
                      bool large_sizes, bool believe_stated,
                      decltype(Settings::of_others) of_others) {
  for (const Node* node : graph_->nodes) {
    if (node->op != "null") continue;
    const auto stated = given.find(node->name);
    if (stated == given.end()) {
      if (known_.count(node) == 0) noteStated(*node);
      continue;
    }
    const auto& [code, dims] = stated->second;
    const auto known = known_.find(node);
    Fact fact = known == known_.end() ? source_->describe(*node) : known->second;
    const bool other = fact.constant || fact.content != nullptr;
    if (other) fact = Fact::tensor(fact.type);
    if (code) fact.type = static_cast<Type>(*code);
    if (dims) {
      Shape shape;
      for (std::size_t i = 0; i < dims->size(); ++i) {
        Dim dim = (*dims)[i] < 0 ? Dim() : Dim((*dims)[i]);
        if ((*dims)[i] == -1 && fact.shape && fact.shape->size() == dims->size()) {
          dim = (*fact.shape)[i];
        }
        shape.push_back(std::move(dim));
      }
      fact.shape = std::move(shape);
    }
    known_[node] = std::move(fact);
  }
  Settings settings = source_->settings(opsets, with_stated);
  settings.large_sizes = large_sizes;
  settings.believe_stated = believe_stated;
  if (with_stated && !doubtful_.empty()) {
    settings.stated = [this, stated = std::move(settings.stated)](const Node& node,
                                                                  std::size_t output) {
      return doubtful_.count({&node, output}) == 0 ? stated(node, output) : nullptr;
    };
  }
  settings.of_others = std::move(of_others);
  settings.describe = [this](const Node& node) {
    const auto found = known_.find(&node);
    return found != known_.end() ? found->second : source_->describe(node);
  };
  facts_ = std::make_unique<Facts>(graph_.get(), std::move(settings));
  facts_->infer();
}

void FileFacts::noteStated(const Node& input) {
  if (attributeOf(input, "__id__").substr(0, 6) != "input.") return;
  if (attributeOf(input, "__shape__").data() == nullptr) return;
  Fact fact = source_->describe(input);
  std::optional<Shape> stated = statedShape(input, fact.shape);
  if (!stated) return;
  fact.shape = std::move(stated);
  known_[&input] = std::move(fact);
}

bool FileFacts::confirms(const std::vector<std::string>& names) const {
  if (names.size() != graph_->outputs.size()) return false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Fact* const expected = source_->stated(names[i]);
    const NodeEntry& head = graph_->outputs[i];
    const Fact& found = facts_->of(head.node, static_cast<std::size_t>(head.entry));
    if (expected == nullptr || !expected->shape || !found.isTensor() ||
        found.type == facts::kUnknownType || expected->type != found.type ||
        disagree(*expected, found)) {
      return false;
    }
  }
  return true;
}

std::vector<std::pair<std::string, std::string>> FileFacts::texts(
    const std::map<int, int>& codes) const {
  std::vector<std::pair<std::string, std::string>> made;
  if (!appendTexts(codes, &made)) made.clear();
  return made;
}

bool FileFacts::appendTexts(const std::map<int, int>& codes,
                            std::vector<std::pair<std::string, std::string>>* made) const {
  std::set<std::pair<const Node*, int>> used;
  for (const Node* node : graph_->nodes) {
    for (const NodeEntry& input : node->inputs) {
      if (input.node->num_outputs > 1) used.emplace(input.node, input.entry);
    }
  }
  for (const NodeEntry& head : graph_->outputs) used.emplace(head.node, head.entry);
  for (const Node* node : graph_->nodes) {
    auto& [shapes, types] = made->emplace_back("[", "[");
    const int count = std::max(node->num_outputs, 1);
    for (int i = 0; i < count; ++i) {
      const Fact& fact = facts_->of(node, static_cast<std::size_t>(i));
      if (i > 0) {
        shapes += ",";
        types += ",";
      }
      if (!fact.present ||
          (source_->isOmitted(*node, static_cast<std::size_t>(i)) && used.count({node, i}) == 0)) {
        shapes += "None";
        types += "-1";
        continue;
      }
      if (fact.type == kUnknownType || !fact.isTensor() || !fact.shape || !isStatic(*fact.shape) ||
          contradicts(*node, static_cast<std::size_t>(i), fact)) {
        return false;
      }
      shapes += "[";
      for (std::size_t k = 0; k < fact.shape->size(); ++k) {
        if (k > 0) shapes += ",";
        shapes += std::to_string((*fact.shape)[k].number());
      }
      shapes += "]";
      const auto code = codes.find(static_cast<int>(fact.type));
      types += code == codes.end() ? "-1" : std::to_string(code->second);
    }
    shapes += "]";
    types += "]";
  }
  return true;
}

bool FileFacts::contradicts(const Node& node, std::size_t output, const Fact& fact) const {
  const Fact* stated = source_->stated(node, output);
  return stated != nullptr && disagree(*stated, fact);
}

bool FileFacts::disagree(const Fact& stated, const Fact& fact) {
  if (!stated.wrappers.empty() ||
      (stated.type != facts::kUnknownType && stated.type != fact.type)) {
    return true;
  }
  if (!stated.shape || !fact.shape) return false;
  if (stated.shape->size() != fact.shape->size()) return true;
  for (std::size_t i = 0; i < fact.shape->size(); ++i) {
    if (differ((*stated.shape)[i], (*fact.shape)[i])) return true;
  }
  return false;
}

namespace {

/// The text of an open size in a file, where names have no quotes.
std::string nameInFile(const Dim& dim) {
  std::string text = print(dim);
  const bool is_quoted =
      dim.name() != nullptr && text.size() > 1 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::string typeMessage(const Fact& fact, const std::function<bool(const Dim&)>& named) {
  namespace numbers = onnx::numbers;
  std::string tensor;
  onnx::appendNumber(numbers::kElementType, static_cast<uint64_t>(fact.type), &tensor);
  if (fact.shape) {
    std::string shape;
    for (const Dim& dim : *fact.shape) {
      std::string size;
      if (dim.isNumber()) {
        onnx::appendNumber(numbers::kDimValue, static_cast<uint64_t>(dim.number()), &size);
      } else if (dim.isKnown() && named(dim)) {
        onnx::appendBody(numbers::kDimParam, nameInFile(dim), &size);
      }
      onnx::appendBody(numbers::kDim, size, &shape);
    }
    onnx::appendBody(numbers::kShape, shape, &tensor);
  }
  std::string type;
  onnx::appendBody(numbers::kTensorType, tensor, &type);
  for (auto wrapper = fact.wrappers.rbegin(); wrapper != fact.wrappers.rend(); ++wrapper) {
    const bool is_map = *wrapper == Wrapper::kMap;
    std::string container;
    if (is_map) {
      onnx::appendNumber(numbers::kKeyType, static_cast<uint64_t>(fact.key), &container);
    }
    onnx::appendBody(is_map ? numbers::kMapValueType : numbers::kElementType, type, &container);
    type.clear();
    onnx::appendBody(is_map                           ? numbers::kMapType
                     : *wrapper == Wrapper::kSequence ? numbers::kSequenceType
                                                      : numbers::kOptionalType,
                     container, &type);
  }
  return type;
}

}  // namespace passlib::facts
