#include "dialects/nnvm/file.h"

#include <array>
#include <cstdint>
#include <utility>

#include "dialects/nnvm/typed_attributes.h"
#include "dialects/plain_json.h"

namespace passlib::nnvm {
namespace {

/// Node numbers, output numbers and versions are at most this.
constexpr int64_t kLargest = INT32_MAX;
constexpr int64_t kMostOutputs = 1 << 20;
/// More would go into a table, whose places a file could choose to be the same.
constexpr std::size_t kMostAttributes = 63;
constexpr std::size_t kMostMembers = 16;

constexpr std::string_view kVariable = "null";

struct Edge {
  int64_t node = 0;
  int64_t output = 0;
  int64_t version = 0;
};

enum NodeKey { kOp, kName, kInputs, kAttributes, kSource };
enum GraphKey { kNodes, kArgNodes, kRows, kHeads, kTyped };

class Reader {
 public:
  Reader(std::string_view text, const Conventions& conventions)
      : json_(text, conventions.max_depth), conventions_(conventions) {}

  File read() {
    json_.object([this](std::string_view key) { readMember(key); });
    json_.finish();
    for (const GraphKey key : {kNodes, kArgNodes, kRows, kHeads}) require(seen_.has(key));
    nameUniquely();
    declareOutputs();
    connectHeads();
    for (const std::size_t count : per_entry_counts_) {
      require(count == static_cast<std::size_t>(rows_.back()));
    }
    return std::move(file_);
  }

 private:
  std::vector<Node*>& nodes() { return graph_.nodes; }

  void readMember(std::string_view key) {
    if (key == "nodes") {
      seen_.add(kNodes);
      json_.list([this] { readNode(); });
    } else if (key == "arg_nodes") {
      seen_.add(kArgNodes);
      json_.list([this] { arguments_.push_back(json_.integer(0, kLargest)); });
    } else if (key == "node_row_ptr") {
      seen_.add(kRows);
      json_.list([this] { rows_.push_back(json_.integer()); });
    } else if (key == "heads") {
      seen_.add(kHeads);
      json_.list([this] { heads_.push_back(readEdge()); });
    } else {
      readOther(std::string(key));
    }
  }

  void readOther(std::string key) {
    for (const Member& member : file_.members) require(member.key != key);
    require(file_.members.size() < kMostMembers);
    json_.peek();
    const std::size_t start = json_.offset();
    if (key == "attrs" || key == "attr") {
      seen_.add(kTyped);
      per_entry_counts_ = readTypedAttributes(&json_, conventions_.per_entry);
    } else {
      json_.valueText();
    }
    file_.members.push_back(Member{std::move(key), start, json_.offset()});
  }

  void readNode() {
    const std::size_t place = nodes().size();
    Node* node = graph_.addNode(std::string(), std::string());
    SeenKeys seen;
    edges_.clear();
    attribute_count_ = 0;
    addAttribute(conventions_.place).assign(std::to_string(place));
    json_.object([&](std::string_view key) {
      if (key == "op") {
        seen.add(kOp);
        node->op = json_.text();
      } else if (key == "name") {
        seen.add(kName);
        node->name = json_.text();
      } else if (key == "inputs") {
        seen.add(kInputs);
        json_.list([this] { edges_.push_back(readEdge()); });
      } else if (key == "attrs" || key == "attr" || key == "param") {
        seen.add(kAttributes);
        json_.object([this](std::string_view name) {
          std::string& text = addAttribute(name);
          text = json_.text();
        });
      } else {
        require(key == "backward_source_id");
        seen.add(kSource);
        json_.valueText();
      }
    });
    require(seen.has(kOp) && seen.has(kName) && seen.has(kInputs) && !node->op.empty());
    require(node->attrs._pack(attributes_.data(), attribute_count_) == nullptr);
    if (node->op == kVariable) {
      require(edges_.empty());
      graph_.inputs.push_back(node);
    }
    node->inputs.reserve(edges_.size());
    for (const Edge& edge : edges_) {
      require(edge.node < static_cast<int64_t>(place));
      NodeEntry entry = entryOf(edge);
      entry.node->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.push_back(entry);
    }
  }

  std::string& addAttribute(std::string_view key) {
    require(attribute_count_ <= kMostAttributes);
    if (attribute_count_ == attributes_.size()) attributes_.emplace_back();
    auto& [name, text] = attributes_[attribute_count_++];
    name = key;
    return text;
  }

  Edge readEdge() {
    std::array<int64_t, 3> numbers{};
    std::size_t count = 0;
    json_.list([&] {
      require(count < numbers.size());
      numbers[count++] = json_.integer(0, kLargest);
    });
    require(count >= 2);
    return Edge{numbers[0], numbers[1], numbers[2]};
  }

  NodeEntry entryOf(const Edge& edge) {
    return NodeEntry(nodes()[static_cast<std::size_t>(edge.node)], static_cast<int>(edge.output),
                     static_cast<int>(edge.version));
  }

  /// Checks that no two nodes have the same name; else those of operators are changed.
  void nameUniquely() {
    TextViewSet names;
    names.reserve(nodes().size());
    for (const Node* node : nodes()) {
      require(names.insert(node->name).second && (node->op == kVariable || !node->name.empty()));
    }
  }

  void declareOutputs() {
    require(rows_.size() == nodes().size() + 1 && rows_[0] == 0);
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      // The difference cannot overflow: `rows_[i]` is not negative.
      require(rows_[i] <= rows_[i + 1] && rows_[i + 1] - rows_[i] <= kMostOutputs);
      if (rows_[i + 1] > rows_[i]) {
        nodes()[i]->_declareOutputs(static_cast<int>(rows_[i + 1] - rows_[i]));
      }
      for (const NodeEntry& input : nodes()[i]->inputs) {
        require(input.entry < input.node->num_outputs);
      }
    }
  }

  void connectHeads() {
    const auto count = static_cast<int64_t>(nodes().size());
    require(!heads_.empty());
    for (const Edge& head : heads_) {
      require(head.node < count);
      graph_.outputs.push_back(entryOf(head));
      require(graph_.outputs.back().entry < graph_.outputs.back().node->num_outputs);
    }
    for (const int64_t place : arguments_) {
      require(place < count && nodes()[static_cast<std::size_t>(place)]->op == kVariable);
    }
  }

  PlainJson json_;
  const Conventions& conventions_;
  File file_{std::make_unique<Graph>(), {}};
  Graph& graph_ = *file_.graph;
  SeenKeys seen_;
  std::vector<Edge> edges_;  // of one node
  std::vector<std::pair<std::string, std::string>> attributes_;
  std::size_t attribute_count_ = 0;
  std::vector<int64_t> arguments_;
  std::vector<int64_t> rows_;
  std::vector<Edge> heads_;
  std::vector<std::size_t> per_entry_counts_;
};

}  // namespace

std::optional<File> readPlain(std::string_view text, const Conventions& conventions) {
  return unlessRefused([&] { return Reader(text, conventions).read(); });
}

}  // namespace passlib::nnvm
