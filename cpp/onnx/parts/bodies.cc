#include "onnx/parts/bodies.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "onnx/original/originals.h"
#include "onnx/parts/attribute.h"
#include "onnx/wire/splices.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// Calls `visit` for each field of a message that is bytes.
template <typename Visit>
void forEachBytes(Bytes message, Visit visit) {
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.type == kBytes) visit(field);
  }
}

bool isNameOfValue(uint32_t number) {
  return number == kInput || number == kOutput || number == kInitializer;
}

/// The name of an input, an output or an initializer.
Bytes nameIn(const Field& item) {
  return bodyOf(item.body, item.number == kInitializer ? kTensorName : kValueName);
}

/// The names that a graph defines.
struct Scope {
  NamesOfValues names;
  std::size_t outer;  ///< the number of the one around it, or its own
};

bool isDefined(const std::deque<Scope>& scopes, std::size_t number, Bytes name) {
  while (scopes[number].names.count(name) == 0) {
    if (scopes[number].outer == number) return false;
    number = scopes[number].outer;
  }
  return true;
}

}  // namespace

std::vector<Bytes> bodiesOf(Bytes message, uint32_t number) {
  std::vector<Bytes> found;
  forEachBody(message, number, [&found](Bytes body) { found.push_back(body); });
  return found;
}

Path joined(Path path, const Field& field) {
  path.push_back(field);
  return path;
}

std::vector<Path> graphsOf(Bytes node) {
  std::vector<Path> found;
  forEachBytes(node, [&found](const Field& attribute) {
    if (attribute.number != kAttribute) return;
    forEachBytes(attribute.body, [&](const Field& field) {
      if (field.number == kG || field.number == kGraphs) found.push_back({attribute, field});
    });
  });
  return found;
}

void forEachBodyWithin(const Body& body, const std::function<void(const Body&)>& visit) {
  std::vector<Body> pending = {body};
  while (!pending.empty()) {
    const Body each = std::move(pending.back());
    pending.pop_back();
    visit(each);
    forEachBytes(each.message, [&](const Field& node) {
      if (node.number != each.nodes) return;
      for (const Path& inner : graphsOf(node.body)) {
        Body nested;
        nested.message = inner.back().body;
        nested.path = joined(each.path, node);
        nested.path.insert(nested.path.end(), inner.begin(), inner.end());
        pending.push_back(std::move(nested));
      }
    });
  }
}

NamesOfValues valuesWithin(Bytes graph) {
  NamesOfValues names;
  forEachBodyWithin({graph, {}}, [&names](const Body& body) {
    forEachBytes(body.message, [&](const Field& item) {
      if (isNameOfValue(item.number)) names.insert(nameIn(item));
      if (item.number != body.nodes) return;
      forEachBytes(item.body, [&names](const Field& field) {
        if (field.number == kNodeInput || field.number == kNodeOutput) names.insert(field.body);
      });
    });
  });
  return names;
}

std::vector<Bytes> definedWithin(Bytes graph) {
  std::vector<Bytes> names;
  forEachBodyWithin({graph, {}}, [&names](const Body& body) {
    std::vector<Bytes> results;
    forEachBytes(body.message, [&](const Field& item) {
      if (item.number == kInitializer) names.push_back(nameIn(item));
      if (item.number != body.nodes) return;
      forEachBody(item.body, kNodeOutput, [&results](Bytes name) { results.push_back(name); });
    });
    names.insert(names.end(), results.begin(), results.end());
  });
  return names;
}

std::vector<Bytes> capturedBy(Bytes graph) {
  std::vector<Bytes> found;
  NamesOfValues known;
  std::deque<Scope> scopes = {{{}, 0}};
  std::vector<std::pair<Bytes, std::size_t>> pending = {{graph, 0}};  // and what is around it
  while (!pending.empty()) {
    const auto [body, outer] = pending.back();
    pending.pop_back();
    const std::size_t own = scopes.size();
    scopes.push_back({{}, outer});
    std::vector<Bytes> used;
    std::vector<Bytes> outputs;
    std::vector<Bytes> nested;
    forEachBytes(body, [&](const Field& item) {
      if (item.number == kInput || item.number == kInitializer) {
        scopes[own].names.insert(nameIn(item));
      } else if (item.number == kOutput) {
        outputs.push_back(nameIn(item));
      } else if (item.number == kNode) {
        forEachBytes(item.body, [&](const Field& field) {
          if (field.number == kNodeOutput) scopes[own].names.insert(field.body);
          if (field.number == kNodeInput && !field.body.empty()) used.push_back(field.body);
        });
        for (const Path& inner : graphsOf(item.body)) nested.push_back(inner.back().body);
      }
    });
    used.insert(used.end(), outputs.begin(), outputs.end());
    for (const Bytes name : used) {
      if (!isDefined(scopes, own, name) && known.insert(name).second) found.push_back(name);
    }
    for (const Bytes inner : nested) pending.emplace_back(inner, own);
  }
  return found;
}

std::string withValueNames(Bytes graph, const std::unordered_map<Bytes, Bytes>& names) {
  Splices splices(graph);
  const auto rename = [&](const Path& path) {
    const auto found = names.find(path.back().body);
    if (found != names.end()) splices.replace(path, std::string(found->second));
  };
  forEachBodyWithin({graph, {}}, [&](const Body& body) {
    forEachBytes(body.message, [&](const Field& item) {
      const Path path = joined(body.path, item);
      const bool is_node = item.number == body.nodes;
      if (!is_node && item.number != kOutput && item.number != kInitializer) return;
      const uint32_t name = item.number == kInitializer ? kTensorName : kValueName;
      forEachBytes(item.body, [&](const Field& field) {
        const bool is_name = is_node ? field.number == kNodeInput || field.number == kNodeOutput
                                     : field.number == name;
        if (is_name) rename(joined(path, field));
      });
    });
  });
  return splices.finish().copy();
}

std::string withItems(Bytes message, const std::map<uint32_t, std::vector<Bytes>>& items) {
  std::map<uint32_t, std::string> made;
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (items.count(field.number) == 0) made[field.number].append(wholeField(field));
  }
  for (const auto& [number, bodies] : items) {
    for (const Bytes body : bodies) appendBody(number, body, &made[number]);
  }
  std::string text;
  for (const auto& [number, fields] : made) text += fields;
  return text;
}

std::string constantNode(Bytes tensor) {
  std::string value;
  appendBody(kName, "value", &value);
  appendBody(kT, withItems(tensor, {{kTensorName, {}}}), &value);
  appendNumber(kType, static_cast<uint64_t>(Kind::kTensor), &value);
  std::string node;
  appendBody(kNodeOutput, bodyOf(tensor, kTensorName), &node);
  appendBody(kOpType, "Constant", &node);
  appendBody(kAttribute, value, &node);
  return node;
}

std::string withFunctions(Bytes model, const std::vector<std::string>& functions) {
  std::string made;
  appendFields(model, [](const Field& field) { return field.number != kFunctions; }, &made);
  for (const std::string& each : functions) appendBody(kFunctions, each, &made);
  return made;
}

}  // namespace passlib::onnx
