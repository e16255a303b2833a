#include "onnx/reading/graph_builder.h"

#include <utility>

#include "graph/attributes.h"
#include "onnx/parts/opaque.h"
#include "onnx/reading/level_values.h"
#include "onnx/reading/name_map.h"
#include "onnx/text/attribute_text.h"

namespace passlib::onnx {
namespace {

class Builder {
 public:
  Builder(const Level& level, std::vector<BuiltGraph>* built, Arena* arena)
      : level_(level),
        built_(*built),
        arena_(arena),
        graph_(std::make_unique<Graph>()),
        values_(level),
        made_(level.nodes.size(), nullptr),
        makers_(level.names.size()),
        names_(level.nodes.size()) {}

  BuiltGraph build(bool marks_defaults) {
    graph_->nodes.reserve(level_.nodes.size() + level_.initializers.size() + level_.inputs.size());
    addVariables(marks_defaults);
    defineOutputs();
    const std::vector<Need> needs = findMakers();
    if (sorted_) {
      for (std::size_t i = 0; i < level_.nodes.size(); ++i) addNode(i);
    } else {
      for (const uint32_t i : orderNodes(level_, needs)) addNode(i);
    }
    addHeads();
    return {std::move(graph_), std::move(captured_)};
  }

 private:
  // Variables.

  Node* addVariable(Bytes name, std::string key) {
    Node* node = graph_->addNode(std::string(name), "null");
    node->_declareOutputs(1);
    graph_->inputs.push_back(node);
    if (!key.empty()) {
      std::pair<std::string, std::string> id(keys::kId, std::move(key));
      node->attrs._pack(&id, 1);
    }
    return node;
  }

  Node* addNamed(Bytes name, std::string key) {
    Node* node = addVariable(name, std::move(key));
    Maker maker;
    maker.variable = node;
    maker.where = Maker::kVariable;
    values_.define(name, maker);
    return node;
  }

  void addVariables(bool marks_defaults) {
    const auto tie = [&](Node* node, bool has_input) {
      if (has_input && marks_defaults) addAttribute(node, keys::kDefault, "True");
    };
    for (const auto& [name, number] : level_.inputs) {
      addNamed(name, level_.prefix + "input." + std::to_string(number));
    }
    std::size_t number = 0;
    for (const Initializer& initializer : level_.initializers) {
      const Tensor& tensor = initializer.tensor;
      Node* node = addNamed(tensor.name, level_.prefix + "initializer." + std::to_string(number++));
      if (const char* kind = opaqueKind(tensor)) addAttribute(node, keys::kOpaque, kind);
      tie(node, initializer.has_input);
    }
    number = 0;
    for (const auto& [name, has_input] : level_.sparse) {
      Node* node = addNamed(name, level_.prefix + "sparse." + std::to_string(number++));
      addAttribute(node, keys::kOpaque, "sparse");
      tie(node, has_input);
    }
  }

  // Names.

  void defineOutputs() {
    for (uint32_t i = 0; i < level_.nodes.size(); ++i) {
      const Range& outputs = level_.nodes[i].outputs;
      for (uint32_t k = 0; k < outputs.count; ++k) {
        const Bytes name = level_.names[outputs.first + k];
        if (name.empty()) continue;
        checkedName(name, [&] { return titleOf(level_, level_.nodes[i], i); });
        Maker maker;
        maker.node = i;
        maker.output = k;
        maker.where = Maker::kNode;
        values_.define(name, maker);
      }
    }
  }

  /// Finds the makers of all inputs, and whether each comes before its users; if not, returns what
  /// each node needs.
  std::vector<Need> findMakers() {
    for (uint32_t i = 0; i < level_.nodes.size(); ++i) {
      forEachUse(i, [&](const Maker& maker) {
        sorted_ = sorted_ && (maker.where != Maker::kNode || maker.node < i);
      });
    }
    std::vector<Need> needs;
    if (sorted_) return needs;
    for (uint32_t i = 0; i < level_.nodes.size(); ++i) {
      forEachUse(i, [&](const Maker& maker) {
        if (maker.where == Maker::kNode) needs.push_back({maker.node, i});
      });
    }
    return needs;
  }

  template <typename Visit>
  void forEachUse(uint32_t number, Visit visit) {
    const NodeRecord& node = level_.nodes[number];
    for (uint32_t slot = 0; slot < node.inputs.count; ++slot) {
      Maker& maker = makers_[node.inputs.first + slot];
      maker = values_.find(level_.names[node.inputs.first + slot],
                           [&] { return userOf(number, slot); });
      visit(maker);
    }
    forEachNested(node, [&](std::size_t nested) {
      for (const Captured& captured : built_[nested].captured) {
        visit(values_.find(captured.name, [&] { return captured.user; }));
      }
    });
  }

  template <typename Visit>
  void forEachNested(const NodeRecord& node, Visit visit) const {
    for (uint32_t i = 0; i < node.attributes.count; ++i) {
      const Range& levels = level_.attributes[node.attributes.first + i].levels;
      for (uint32_t k = 0; k < levels.count; ++k) visit(std::size_t{levels.first} + k);
    }
  }

  std::string userOf(std::size_t node, uint32_t slot) const {
    return "input " + std::to_string(slot) + " of " + titleOf(level_, level_.nodes[node], node);
  }

  /// Returns a value as an end of an edge. `user` returns the text for messages.
  template <typename User>
  NodeEntry entryOf(const Maker& maker, Bytes name, User user) {
    switch (maker.where) {
      case Maker::kVariable:
        return NodeEntry(maker.variable, 0);
      case Maker::kNode:
        return NodeEntry(made_[maker.node], static_cast<int>(maker.output));
      case Maker::kOmitted:
        if (absent_ == nullptr) absent_ = addVariable(kAbsent, "");
        return NodeEntry(absent_, 0);
      case Maker::kOutside:
        break;
    }
    const auto [variable, fresh] = outside_.insert(name, nullptr);
    if (fresh) {
      *variable = addVariable(name, "");
      captured_.push_back({name, *variable, user()});
    }
    return NodeEntry(*variable, 0);
  }

  // Operators.

  void addNode(std::size_t number) {
    const NodeRecord& record = level_.nodes[number];
    if (record.constant) {
      Node* node = addVariable(level_.names[record.outputs.first], level_.keyOf(number));
      const Attribute& value = level_.attributes[record.attributes.first].attribute;
      if (const char* kind = opaqueKind(value)) addAttribute(node, keys::kOpaque, kind);
      made_[number] = node;
      return;
    }
    entries_.clear();
    for (uint32_t slot = 0; slot < record.inputs.count; ++slot) {
      const uint32_t place = record.inputs.first + slot;
      entries_.push_back(
          entryOf(makers_[place], level_.names[place], [&] { return userOf(number, slot); }));
    }
    takeCaptured(record);
    Node* node = graph_->addNode(uniqueName(record, number), std::string(record.op));
    made_[number] = node;
    if (record.outputs.count > 0) node->_declareOutputs(static_cast<int>(record.outputs.count));
    addAttributes(record, number, node);
    node->inputs.reserve(entries_.size());
    for (const NodeEntry& entry : entries_) {
      entry.node->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.push_back(entry);
    }
  }

  /// Makes what the nested graphs of a node capture inputs of the node, numbered by first use.
  void takeCaptured(const NodeRecord& record) {
    const std::size_t formal = entries_.size();
    NameMap<std::size_t> slots;
    forEachNested(record, [&](std::size_t nested) {
      for (const Captured& captured : built_[nested].captured) {
        const auto [slot, fresh] = slots.insert(captured.name, entries_.size());
        addAttribute(captured.variable, keys::kOuter, std::to_string(*slot));
        if (!fresh) continue;
        const auto user = [&] { return captured.user; };
        entries_.push_back(entryOf(values_.find(captured.name, user), captured.name, user));
      }
    });
    captured_count_ = entries_.size() - formal;
  }

  void addAttributes(const NodeRecord& record, std::size_t number, Node* node) {
    pairs_.clear();
    const std::string key = level_.keyOf(number);
    collect(keys::kId, key);
    const auto place = [&] { return shown(node->name); };
    if (!record.domain.empty()) collect(keys::kDomain, checkedName(record.domain, place));
    if (!record.overload.empty()) {
      collect(keys::kOverload, checkedName(record.overload, place));
    }
    for (uint32_t i = 0; i < record.attributes.count; ++i) {
      const AttributeRecord& item = level_.attributes[record.attributes.first + i];
      const std::string name(item.attribute.name);
      collect(name, attributeText(item.attribute, key, node->subgraphs.size(), item.levels.count,
                                  arena_));
      for (uint32_t k = 0; k < item.levels.count; ++k) {
        node->subgraphs.push_back(nullptr);
        node->subgraphs.back() = built_[item.levels.first + k].graph.release();
      }
    }
    for (uint32_t i = 0; i < record.marks.count; ++i) {
      const auto& [mark, text] = level_.marks[record.marks.first + i];
      collect(checkedName(mark, place), checkedName(text, place));
    }
    if (!node->subgraphs.empty()) {
      collect(keys::kFormal, std::to_string(record.inputs.count));
      collect(keys::kCaptured, std::to_string(captured_count_));
    }
    if (node->attrs._pack(pairs_.data(), pairs_.size()) == nullptr) return;
    // The first one of a name counts; a stable sort kept them in order.
    for (const auto& [name, text] : pairs_) node->attrs.emplace(name, text);
  }

  void collect(Bytes name, Bytes text) { pairs_.emplace_back(name, text); }

  std::string uniqueName(const NodeRecord& record, std::size_t number) {
    Bytes wish = record.name;
    if (wish.empty() || !names_.insert(wish, true).second) {
      const std::string key = "_" + level_.keyOf(number);
      std::string text = std::string(wish.empty() ? record.op : wish) + key;
      while (names_.find(text) != nullptr) text += key;
      wish = arena_->emplace_back(std::move(text));
      names_.insert(wish, true);
    }
    return std::string(wish);
  }

  void addHeads() {
    for (std::size_t i = 0; i < level_.outputs.size(); ++i) {
      const Bytes name = level_.outputs[i];
      const auto user = [&] { return "output " + std::to_string(i) + " of the graph"; };
      graph_->outputs.push_back(entryOf(values_.find(name, user), name, user));
    }
    if (level_.outputs.empty() && level_.nested) {
      const std::string place = level_.prefix.substr(0, level_.prefix.size() - 1);
      throw GraphError("nested graph " + shown(place) + " has no outputs");
    }
  }

  const Level& level_;
  std::vector<BuiltGraph>& built_;
  Arena* arena_;
  std::unique_ptr<Graph> graph_;
  LevelValues values_;
  std::vector<Node*> made_;
  std::vector<Maker> makers_;  ///< of inputs, by their places in Level::names
  NameMap<bool> names_;        ///< of operators
  NameMap<Node*> outside_;
  std::vector<Captured> captured_;
  std::vector<NodeEntry> entries_;  ///< inputs of the node that is being added
  std::vector<std::pair<std::string, std::string>> pairs_;  ///< its attributes
  std::size_t captured_count_ = 0;
  Node* absent_ = nullptr;
  bool sorted_ = true;
};

}  // namespace

BuiltGraph buildGraph(const Level& level, bool marks_defaults, std::vector<BuiltGraph>* built,
                      Arena* arena) {
  return Builder(level, built, arena).build(marks_defaults);
}

}  // namespace passlib::onnx
