#include "model/shapes.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include "errors.h"
#include "facts/onnx_source.h"
#include "graph/attributes.h"
#include "header.h"
#include "model/attributes.h"
#include "onnx/original/originals.h"
#include "onnx/reading/level_values.h"

namespace passlib::model {

namespace {

using mxnet::ext::host::quoted;
using Sizes = std::vector<std::optional<uint64_t>>;

/// Reads the sizes behind the colon; false if one has another form.
bool readSizes(std::string_view text, Sizes* sizes) {
  constexpr std::size_t kMostDigits = 19;
  if (trimmed(text).empty()) return true;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (item == "?") {
      sizes->emplace_back();
      continue;
    }
    const bool is_number = item.find_first_not_of("0123456789") == std::string_view::npos;
    if (item.empty() || !is_number || item.size() > kMostDigits) return false;
    sizes->emplace_back(std::stoull(std::string(item)));
  }
  return true;
}

std::string printSizes(const Sizes& sizes) {
  std::string made = "(";
  for (const auto& size : sizes) {
    made += (made.size() == 1 ? "" : ", ") + (size ? std::to_string(*size) : "?");
  }
  return made + ")";
}

/// The inputs of a model of ONNX without those that have values, in the order of the file.
std::vector<const Node*> inputsOf(const Model& model, const Graph& graph) {
  constexpr std::string_view kPlace = "input.";
  std::vector<std::pair<std::size_t, const Node*>> found;
  for (const Node* node : graph.nodes) {
    if (node->op != "null" || node->name == onnx::kAbsent) continue;
    if (model.arrays.count(node->name) != 0) continue;
    const std::string_view id = attributeOf(*node, onnx::keys::kId);
    if (!id.empty() && id.substr(0, kPlace.size()) != kPlace) continue;
    std::size_t place = 0;
    if (id.empty() || !onnx::parsePosition(id.substr(kPlace.size()), &place)) {
      place = std::numeric_limits<std::size_t>::max();
    }
    found.emplace_back(place, node);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<const Node*> inputs;
  for (const auto& [place, node] : found) inputs.push_back(node);
  return inputs;
}

std::string namesOf(const std::vector<const Node*>& nodes) {
  constexpr std::size_t kMost = 8;
  std::string made;
  for (std::size_t i = 0; i < std::min(nodes.size(), kMost); ++i) {
    made += (i == 0 ? "" : ", ") + nodes[i]->name;
  }
  if (nodes.size() > kMost) made += ", ... (" + std::to_string(nodes.size()) + " in all)";
  return made.empty() ? "none" : made;
}

/// The type of an input: what a pass stated, else what the file states.
facts::Fact stated(const facts::OnnxSource& source, const Node& input) {
  facts::Fact fact = source.describe(input);
  const bool is_typed = attributeOf(input, "__dtype__").data() != nullptr;
  if (!fact.isTensor() || (fact.type == facts::kUnknownType && !is_typed)) return fact;
  const onnx::StatedType type = statedType(input, static_cast<int32_t>(fact.type));
  fact.type = static_cast<facts::Type>(*type.code);
  if (type.dims) fact.shape.emplace(type.dims->begin(), type.dims->end());
  return fact;
}

/// Checks sizes that are given for an input, and fills in those that it states.
Sizes completed(const std::string& name, const Sizes& given, const facts::Fact& type) {
  const std::string title = "input " + quoted(name);
  if (!type.isTensor() || type.type == facts::kUnknownType) {
    throw GraphError(title + " is no tensor, so it has no shape");
  }
  Sizes before(given.size());
  if (type.shape) {
    before.clear();
    for (const facts::Dim& dim : *type.shape) {
      const bool is_known = dim.isNumber() && dim.number() >= 0;
      before.push_back(is_known ? std::optional<uint64_t>(dim.number()) : std::nullopt);
    }
  }
  bool fits = before.size() == given.size();
  Sizes made = before;
  for (std::size_t i = 0; fits && i < given.size(); ++i) {
    fits = !before[i] || !given[i] || *before[i] == *given[i];
    if (given[i]) made[i] = given[i];
  }
  if (!fits) {
    throw std::invalid_argument(title + " was given shape " + printSizes(given) +
                                ", but the model states " + printSizes(before));
  }
  for (const auto& size : given) {
    if (!size || (*size > 0 && *size <= std::numeric_limits<int64_t>::max())) continue;
    throw GraphError(title + ": " + std::to_string(*size) +
                     " is no size; write a number above 0, a name of an open size, '?' for one "
                     "without a name, or None for the present one");
  }
  return made;
}

/// The text of __shape__.
std::string attributeText(const Sizes& sizes) {
  std::string made = "(";
  for (const auto& size : sizes) {
    made += (made.size() == 1 ? "" : ", ") + (size ? std::to_string(*size) : "-1");
  }
  return made + (sizes.size() == 1 ? ",)" : ")");
}

}  // namespace

Shapes readShapes(const std::vector<std::string>& texts) {
  Shapes shapes;
  for (const std::string& text : texts) {
    const std::size_t colon = text.rfind(':');
    Sizes sizes;
    if (colon == std::string::npos || colon == 0 ||
        !readSizes(std::string_view(text).substr(colon + 1), &sizes)) {
      throw std::invalid_argument(text + ": write name:1,3,224,224, with ? for an open size");
    }
    const std::string name = text.substr(0, colon);
    const auto named = [&name](const auto& each) { return each.first == name; };
    const auto known = std::find_if(shapes.begin(), shapes.end(), named);
    if (known == shapes.end()) {
      shapes.emplace_back(name, std::move(sizes));
    } else {
      known->second = std::move(sizes);
    }
  }
  return shapes;
}

Model withShapes(const Model& model, const Shapes& shapes) {
  if (!model.isOnnx()) {
    throw UnsupportedError("sizes of inputs are fixed in ONNX models only, and this one is of " +
                           dialectOf(model) +
                           "; Model.to_onnx(shapes=) writes it as ONNX with these sizes");
  }
  std::unique_ptr<Graph> graph = copyGraph(*model.graph->get());
  const std::vector<const Node*> inputs = inputsOf(model, *graph);
  const facts::OnnxSource source(model.file->originals());
  std::vector<std::pair<Node*, std::string>> texts;
  for (const auto& [name, sizes] : shapes) {
    const auto named = [&name = name](const Node* input) { return input->name == name; };
    const auto found = std::find_if(inputs.begin(), inputs.end(), named);
    if (found == inputs.end()) {
      throw GraphError("the model has no input " + quoted(name) + "; its inputs are " +
                       namesOf(inputs));
    }
    const Sizes made = completed(name, sizes, stated(source, **found));
    texts.emplace_back(const_cast<Node*>(*found), attributeText(made));
  }
  for (const auto& [node, text] : texts) setAttribute(node, "__shape__", text);
  Model after = model;
  after.present = presentAfter(model, *graph);
  after.graph = std::make_shared<GraphSource>(std::move(graph));
  return after;
}

}  // namespace passlib::model
