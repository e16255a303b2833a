#include "onnx/reading/graph_builder.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "graph/attributes.h"
#include "graph/check.h"
#include "graph/name_map.h"
#include "graph/node_blocks.h"
#include "onnx/parts/opaque.h"
#include "onnx/reading/level_values.h"
#include "onnx/text/attribute_text.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {
namespace {

using Slice = mxnet::ext::JsonReader::Slice;
using Pair = std::pair<Slice, Slice>;
Slice sliceOf(Bytes text) { return Slice{text.data(), text.size()}; }

class Builder {
 public:
  Builder(const Level& level, const References& references, std::vector<BuiltGraph>* built,
          Arena* arena)
      : level_(level),
        references_(references),
        built_(*built),
        arena_(arena),
        graph_(std::make_unique<Graph>()),
        blocks_(level.nodes.size() + level.initializers.size() + level.inputs.size()),
        values_(level),
        made_(level.nodes.size(), nullptr),
        makers_(level.names.size()) {}

  BuiltGraph build(bool marks_defaults) {
    graph_->nodes.reserve(level_.nodes.size() + level_.initializers.size() + level_.inputs.size());
    addVariables(marks_defaults);
    defineOutputs();
    lookAtTitles();
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
  Node* addVariable(Bytes name, Bytes key) {
    text_.assign(name);
    Node* node = blocks_.add(graph_.get(), text_, null_);
    mxnet::ext::host::declareOutputs(node, 1);
    graph_->inputs.push_back(node);
    if (!key.empty()) {
      Pair id(sliceOf(keys::kId), sliceOf(key));
      mxnet::ext::host::AttributeTexts::pack(&id, 1, &node->attrs);
    }
    return node;
  }

  /// The identifier of a variable. Valid until the next call.
  Bytes keyOf(const char* what, std::size_t number) {
    key_.assign(level_.prefix).append(what).append(std::to_string(number));
    return key_;
  }

  void addVariables(bool marks_defaults) {
    const auto tie = [&](Node* node, bool has_input) {
      const bool tied = (has_input && marks_defaults) || references_.has(node->name);
      if (tied) addAttribute(node, keys::kDefault, "True");
    };
    std::vector<Bytes> names;
    names.reserve(level_.inputs.size() + level_.initializers.size() + level_.sparse.size());
    for (const auto& [name, number] : level_.inputs) {
      addVariable(name, keyOf("input.", number));
      names.push_back(name);
    }
    first_initializer_ = names.size();
    std::size_t number = 0;
    for (const Initializer& initializer : level_.initializers) {
      const TensorHead& tensor = initializer.tensor;
      Node* node = addVariable(tensor.name, keyOf("initializer.", number++));
      names.push_back(tensor.name);
      if (const char* kind = opaqueKind(tensor)) addAttribute(node, keys::kOpaque, kind);
      tie(node, initializer.has_input);
    }
    number = 0;
    for (const auto& [name, has_input] : level_.sparse) {
      Node* node = addVariable(name, keyOf("sparse.", number++));
      names.push_back(name);
      addAttribute(node, keys::kOpaque, "sparse");
      tie(node, has_input);
    }
    values_.define(
        names.size(), [&](std::size_t i) { return names[i]; },
        [&](std::size_t i) { return makerOf(graph_->nodes[i]); });
  }

  static Maker makerOf(Node* variable) {
    Maker maker;
    maker.variable = variable;
    maker.where = Maker::kVariable;
    return maker;
  }

  static Maker makerOf(uint32_t node, uint32_t output) {
    Maker maker;
    maker.node = node;
    maker.output = output;
    maker.where = Maker::kMade;
    return maker;
  }

  // Names.

  void defineOutputs() {
    std::vector<std::pair<uint32_t, uint32_t>> places;
    places.reserve(level_.nodes.size());
    for (uint32_t i = 0; i < level_.nodes.size(); ++i) {
      const Range& outputs = level_.nodes[i].outputs;
      for (uint32_t k = 0; k < outputs.count; ++k) {
        if (!level_.names[outputs.first + k].empty()) places.emplace_back(i, k);
      }
    }
    const auto name_of = [&](std::size_t number) {
      const auto [node, output] = places[number];
      return level_.names[level_.nodes[node].outputs.first + output];
    };
    values_.define(places.size(), name_of, [&](std::size_t number) {
      const auto& place = places[number];
      const uint32_t node = place.first;
      const uint32_t output = place.second;
      checkedName(name_of(number), [&] { return titleOf(level_, level_.nodes[node], node); });
      return makerOf(node, output);
    });
  }

  /// Notes whether the operators have names, and each another one.
  void lookAtTitles() {
    std::vector<Bytes> titles;
    titles.reserve(level_.nodes.size());
    for (const NodeRecord& node : level_.nodes) {
      if (node.constant) continue;
      if (node.name.empty()) return;
      titles.push_back(node.name);
    }
    NameMap<bool> known;
    bool unique = true;
    known.insertAll(
        titles.size(), [&](std::size_t i) { return titles[i]; }, [](std::size_t) { return true; },
        [&](std::size_t, bool fresh) { unique = unique && fresh; });
    unique_ = unique;
  }

  /// Finds the makers of all inputs, and whether each comes before its users; if not, returns what
  /// each node needs.
  std::vector<Need> findMakers() {
    for (uint32_t i = 0; i < level_.nodes.size(); ++i) {
      forEachUse(i, [&](const Maker& maker) {
        sorted_ = sorted_ && (maker.where != Maker::kMade || maker.node < i);
      });
    }
    std::vector<Need> needs;
    if (sorted_) return needs;
    for (uint32_t i = 0; i < level_.nodes.size(); ++i) {
      forEachUse(i, [&](const Maker& maker) {
        if (maker.where == Maker::kMade) needs.push_back({maker.node, i});
      });
    }
    return needs;
  }

  template <typename Visit>
  void forEachUse(uint32_t number, Visit visit) {
    const NodeRecord& node = level_.nodes[number];
    for (uint32_t slot = 0; slot < node.inputs.count; ++slot) {
      Maker& maker = makers_[node.inputs.first + slot];
      const Bytes name = level_.names[node.inputs.first + slot];
      if (!findNear(name, number, &maker)) {
        maker = values_.find(name, [&] { return userOf(number, slot); });
      }
      visit(maker);
    }
    forEachNested(node, [&](std::size_t nested) {
      for (const Captured& captured : built_[nested].captured) {
        visit(values_.find(captured.name, [&] { return captured.user; }));
      }
    });
  }

  /// Finds a value among those of the nodes before and the initializers after the one found last,
  /// where most are: no table is needed.
  bool findNear(Bytes name, uint32_t number, Maker* maker) {
    constexpr uint32_t kNodes = 6;
    constexpr std::size_t kInitializers = 3;
    if (name.empty()) return false;
    for (uint32_t back = 1; back <= std::min(number, kNodes); ++back) {
      const Range& outputs = level_.nodes[number - back].outputs;
      if (outputs.count == 0 || level_.names[outputs.first] != name) continue;
      *maker = makerOf(number - back, 0);
      return true;
    }
    const std::size_t end = std::min(next_ + kInitializers, level_.initializers.size());
    for (std::size_t i = next_; i < end; ++i) {
      if (level_.initializers[i].tensor.name != name) continue;
      *maker = makerOf(graph_->nodes[first_initializer_ + i]);
      next_ = i + 1;
      return true;
    }
    return false;
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
      case Maker::kMade:
        return NodeEntry(made_[maker.node], static_cast<int>(maker.output));
      case Maker::kOmitted:
        if (absent_ == nullptr) absent_ = addVariable(kAbsent, Bytes());
        return NodeEntry(absent_, 0);
      case Maker::kOutside:
        break;
    }
    const auto [variable, fresh] = outside_.insert(name, nullptr);
    if (fresh) {
      *variable = addVariable(name, Bytes());
      captured_.push_back({name, *variable, user()});
    }
    return NodeEntry(*variable, 0);
  }

  // Operators.

  void addNode(std::size_t number) {
    const NodeRecord& record = level_.nodes[number];
    if (record.constant) {
      Node* node = addVariable(level_.names[record.outputs.first], keyOf("", number));
      const Attribute& value = level_.attributes[record.attributes.first].attribute;
      if (const char* kind = opaqueKind(value)) addAttribute(node, keys::kOpaque, kind);
      if (references_.has(node->name)) addAttribute(node, keys::kDefault, "True");
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
    text_.assign(titleFor(record, number));
    operator_.assign(record.op);
    Node* node = blocks_.add(graph_.get(), text_, operator_);
    if (record.outputs.count > uint32_t{kMostOutputs}) {
      throw GraphError("node " + mxnet::ext::host::quoted(node->name) + " claims to have " +
                       std::to_string(record.outputs.count) + " outputs");
    }
    made_[number] = node;
    if (record.outputs.count > 0)
      mxnet::ext::host::declareOutputs(node, static_cast<int>(record.outputs.count));
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
    kept_ = 0;
    const std::string key = level_.keyOf(number);
    collect(keys::kId, key);
    const auto place = [&] { return shown(node->name); };
    if (!record.domain.empty()) collect(keys::kDomain, checkedName(record.domain, place));
    if (!record.overload.empty()) {
      collect(keys::kOverload, checkedName(record.overload, place));
    }
    for (uint32_t i = 0; i < record.attributes.count; ++i) {
      const AttributeRecord& item = level_.attributes[record.attributes.first + i];
      collect(item.attribute.name, keep(attributeText(item.attribute, key, node->subgraphs.size(),
                                                      item.levels.count, arena_)));
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
      collect(keys::kFormal, keep(std::to_string(record.inputs.count)));
      collect(keys::kCaptured, keep(std::to_string(captured_count_)));
    }
    if (mxnet::ext::host::AttributeTexts::pack(pairs_.data(), pairs_.size(), &node->attrs) ==
        nullptr) {
      return;
    }
    // The first one of a name counts; a stable sort kept them in order.
    for (const auto& [name, text] : pairs_) node->attrs.emplace(name.str(), text.str());
  }

  void collect(Bytes name, Bytes text) { pairs_.emplace_back(sliceOf(name), sliceOf(text)); }

  /// Keeps a text until the attributes of the node are made.
  Bytes keep(std::string text) {
    if (kept_ == texts_.size()) texts_.emplace_back();
    texts_[kept_] = std::move(text);
    return texts_[kept_++];
  }

  Bytes titleFor(const NodeRecord& record, std::size_t number) {
    Bytes wish = record.name;
    if (unique_) return wish;
    if (wish.empty() || !names_.insert(wish, true).second) {
      const std::string key = "_" + level_.keyOf(number);
      std::string text = std::string(wish.empty() ? record.op : wish) + key;
      while (names_.find(text) != nullptr) text += key;
      wish = arena_->emplace_back(std::move(text));
      names_.insert(wish, true);
    }
    return wish;
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
  const References& references_;
  std::vector<BuiltGraph>& built_;
  Arena* arena_;
  std::unique_ptr<Graph> graph_;
  NodeBlocks blocks_;
  LevelValues values_;
  std::vector<Node*> made_;
  std::vector<Maker> makers_;  ///< of inputs, by their places in Level::names
  NameMap<bool> names_;        ///< of operators, unless `unique_`
  NameMap<Node*> outside_;
  std::vector<Captured> captured_;
  std::vector<NodeEntry> entries_;  ///< inputs of the node that is being added
  std::vector<Pair> pairs_;         ///< its attributes
  std::deque<std::string> texts_;   ///< that they refer to, used again for the next node
  std::size_t kept_ = 0;            ///< how many of them are in use
  std::string text_;                ///< a name, in memory that is used again
  std::string operator_;
  std::string key_;
  const std::string null_ = "null";
  std::size_t first_initializer_ = 0;  ///< among the nodes
  std::size_t next_ = 0;               ///< the initializer after the one that was found last
  bool unique_ = false;                ///< operators have names, and each another one
  std::size_t captured_count_ = 0;
  Node* absent_ = nullptr;
  bool sorted_ = true;
};

}  // namespace

BuiltGraph buildGraph(const Level& level, bool marks_defaults, const References& references,
                      std::vector<BuiltGraph>* built, Arena* arena) {
  return Builder(level, references, built, arena).build(marks_defaults);
}

}  // namespace passlib::onnx
