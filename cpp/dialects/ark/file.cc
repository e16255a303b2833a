#include "dialects/ark/file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dialects/ark/memory.h"
#include "dialects/ark/ops.h"
#include "dialects/index.h"
#include "dialects/plain_json.h"

namespace passlib::ark {
namespace {

constexpr const char* kVariable = "null";
constexpr int kMostTries = 100;
/// Of edges between the nodes of one file; Python refuses more.
constexpr std::size_t kMostSources = 2'000'000;

/// A node of the graph and one of its outputs.
struct Output {
  int32_t node = kNone;
  int32_t index = 0;
};

/// What a node of the graph was made of.
struct Source {
  const Op* op;  ///< null for an implied node
  std::vector<Output> inputs;
  Tensors results;

  bool isVirtual() const { return op != nullptr && op->isVirtual(); }
};

class Wiring {
 public:
  Wiring(Ops ops, const Schema& schema)
      : ops_(std::move(ops)),
        schema_(schema),
        made_(ops_.tensors.size()),
        makers_(findMakers(ops_)),
        memory_(ops_, makers_, schema) {}

  std::unique_ptr<Graph> run() {
    checkOrder();
    for (const Op& op : ops_.ops) file_names_.add(op.name, 0);
    for (const Op& op : ops_.ops) place(op);
    addControl();
    findHeads();
    return std::move(owner_);
  }

 private:
  static std::size_t at(int32_t number) { return static_cast<std::size_t>(number); }
  const Tensor& tensor(int32_t number) const { return ops_.tensors[at(number)]; }

  static std::vector<int32_t> findMakers(const Ops& ops) {
    std::vector<int32_t> makers(ops.tensors.size(), kNone);
    for (const Op& op : ops.ops) {
      for (const int32_t result : op.results) {
        require(makers[at(result)] == kNone);
        makers[at(result)] = static_cast<int32_t>(op.unit);
      }
    }
    return makers;
  }

  /// Checks that each node comes after those it needs.
  void checkOrder() {
    for (std::size_t i = 0; i < ops_.units.size(); ++i) {
      require(positions_.add(ops_.units[i].id, static_cast<int32_t>(i)) == kNone);
      for (const int64_t producer : ops_.units[i].producers) {
        const int32_t before = positions_.find(producer);
        require(before != kNone && before < static_cast<int32_t>(i));
      }
    }
    for (const Op& op : ops_.ops) {
      for (const Tensors* list : {&op.reads, &op.writes}) {
        for (const int32_t used : *list)
          require(makers_[at(used)] <= static_cast<int32_t>(op.unit));
      }
    }
  }

  void place(const Op& op) {
    std::vector<Output> inputs;
    for (const Tensors* list : {&op.reads, &op.writes}) {
      for (const int32_t used : *list) inputs.push_back(inputOf(used));
    }
    Buffer* declared = op.declares() ? &memory_.of(op.results[0]) : nullptr;
    const bool is_input = declared != nullptr && declared->is_input && declared->root == kNone;
    attributes_ = op.arguments;
    describe(op);
    const int32_t node = addNode(is_input ? kVariable : std::string(op.type), nameOf(op),
                                 Source{&op, std::move(inputs), op.results});
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      made_[at(op.results[i])] = Output{node, static_cast<int32_t>(i)};
      if (!op.isVirtual()) memory_.write(op.results[i]);
    }
    if (is_input) declared->root = node;
  }

  Output inputOf(int32_t used) {
    if (makers_[at(used)] != kNone) {
      require(made_[at(used)].node != kNone);
      return made_[at(used)];
    }
    Buffer& buffer = memory_.of(used);
    require(buffer.parts.empty());
    if (buffer.is_input) {
      require(!buffer.has_several);
      if (buffer.root == kNone) {
        const std::string number = std::to_string(tensor(used).buffer);
        buffer.root = implied(kVariable, "buffer" + number, "b" + number, used);
      }
      require(sources_[at(buffer.root)].results[0] == used);
      return Output{buffer.root, 0};
    }
    if (made_[at(used)].node == kNone) {
      const std::string number = std::to_string(tensor(used).id);
      made_[at(used)].node = implied(schema_.view, "tensor" + number, "t" + number, used);
    }
    return made_[at(used)];
  }

  /// Adds a node for memory that no op declares.
  int32_t implied(const std::string& op, const std::string& name, const std::string& key,
                  int32_t described) {
    attributes_.clear();
    attributes_.emplace_back(schema_.place, key);
    attributes_.emplace_back(schema_.outputs, "[" + tensor(described).text + "]");
    return addNode(op, fresh(name), Source{nullptr, {}, {described}});
  }

  /// Adds the attributes of an op to its arguments.
  void describe(const Op& op) {
    attributes_.emplace_back(schema_.place, op.key);
    std::string& text = attributes_.emplace_back(schema_.outputs, "[").second;
    for (const int32_t result : op.results) {
      if (text.size() > 1) text += ',';
      text += tensor(result).text;
    }
    text += ']';
    if (!op.isVirtual()) {
      attributes_.emplace_back(schema_.reads, std::to_string(op.reads.size()));
      if (hasEffects(op)) attributes_.emplace_back(schema_.effects, "True");
      return;
    }
    if (op.type != schema_.view) attributes_.emplace_back(schema_.is_virtual, "True");
    if (op.reads.size() < 2 || op.results.empty()) return;
    std::string& parts = attributes_.emplace_back(schema_.parts, "[").second;
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      if (tensor(op.reads[i]).buffer != tensor(op.results[0]).buffer) continue;
      if (parts.size() > 1) parts += ',';
      parts += std::to_string(i);
    }
    parts += ']';
  }

  bool hasEffects(const Op& op) const {
    if (schema_.pure.count(std::string(op.type)) == 0) return true;
    return std::any_of(op.writes.begin(), op.writes.end(), [this](int32_t written) {
      const Tensor& memory = tensor(written);
      return !memory.isOf(ops_.rank) || memory.is_sent || memory.is_received;
    });
  }

  std::string nameOf(const Op& op) {
    if (!op.name.empty()) {
      if (names_.find(op.name) == kNone) return std::string(op.name);
      return fresh(std::string(op.name) + "_" + op.key);
    }
    if (op.isVirtual() && !op.results.empty()) {
      const std::string wish = "buffer" + std::to_string(tensor(op.results[0]).buffer);
      return fresh(op.declares() ? wish : wish + "_" + op.key);
    }
    std::string wish(op.type);
    for (char& letter : wish) {
      require(static_cast<unsigned char>(letter) < 0x80);
      if ('A' <= letter && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return fresh(wish + "_" + op.key);
  }

  /// Returns a name that neither the file nor a node has.
  std::string fresh(const std::string& wish) const {
    std::string name = wish;
    for (int count = 1; names_.find(name) != kNone || file_names_.find(name) != kNone; ++count) {
      require(count <= kMostTries);
      name = wish + "_" + std::to_string(count);
    }
    return name;
  }

  int32_t addNode(const std::string& op, const std::string& name, Source source) {
    Node* node = graph_.addNode(name, op);
    names_.add(node->name, 0);
    require(node->attrs._pack(attributes_.data(), attributes_.size()) == nullptr);
    if (!source.results.empty()) node->_declareOutputs(static_cast<int>(source.results.size()));
    if (op == kVariable) graph_.inputs.push_back(node);
    node->inputs.reserve(source.inputs.size());
    for (const Output& input : source.inputs) {
      Node* producer = graph_.nodes[at(input.node)];
      producer->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.emplace_back(producer, input.index);
    }
    sources_.push_back(std::move(source));
    return static_cast<int32_t>(sources_.size() - 1);
  }

  /// Adds producers from which a node of the file uses no tensor as control dependencies.
  void addControl() {
    const std::size_t count = ops_.units.size();
    std::vector<int32_t> first(count, kNone);
    std::vector<int32_t> last(count, kNone);
    std::vector<std::vector<int32_t>> shown(count);  // units whose tensors are used
    for (std::size_t node = 0; node < sources_.size(); ++node) {
      if (sources_[node].op == nullptr) continue;
      const std::size_t unit = sources_[node].op->unit;
      last[unit] = static_cast<int32_t>(node);
      if (first[unit] == kNone) first[unit] = last[unit];
      for (const Output& input : sources_[node].inputs) {
        const Op* producer = sources_[at(input.node)].op;
        if (producer == nullptr || producer->unit == unit) continue;
        shown[unit].push_back(static_cast<int32_t>(producer->unit));
      }
    }
    std::size_t steps = 0;
    for (std::size_t unit = 0; unit < count; ++unit) {
      std::vector<int32_t>& used = shown[unit];
      std::sort(used.begin(), used.end());
      used.erase(std::unique(used.begin(), used.end()), used.end());
      steps += used.size();
      require(steps <= kMostSources);
      for (const int64_t id : ops_.units[unit].producers) {
        const int32_t producer = positions_.find(id);
        if (std::binary_search(used.begin(), used.end(), producer)) continue;
        if (first[unit] == kNone || last[at(producer)] == kNone) continue;
        graph_.nodes[at(first[unit])]->control_deps.push_back(graph_.nodes[at(last[at(producer)])]);
      }
    }
  }

  /// Finds the outputs of the model, which the file does not name: unused results in memory of
  /// this rank; if there are none, all unused results, or all unused tensors.
  void findHeads() {
    std::vector<std::vector<bool>> used(sources_.size());
    for (std::size_t i = 0; i < used.size(); ++i) used[i].resize(sources_[i].results.size());
    std::vector<bool> recast(sources_.size(), false);
    for (std::size_t i = sources_.size(); i-- > 0;) {
      const Source& source = sources_[i];
      if ((used[i].empty() || !used[i][0]) && isRecast(source)) {
        recast[i] = true;  // a value and its bytes count as one output
        continue;
      }
      if (source.results.empty() && schema_.sinks.count(graph_.nodes[i]->op) != 0) continue;
      for (const Output& input : source.inputs) used[at(input.node)][at(input.index)] = true;
    }
    const std::vector<bool> computed = findComputed();
    std::vector<NodeEntry> heads[3];
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (recast[i]) continue;
      for (std::size_t k = 0; k < used[i].size(); ++k) {
        if (used[i][k]) continue;
        const bool is_own = tensor(sources_[i].results[k]).isOf(ops_.rank);
        const NodeEntry head(graph_.nodes[i], static_cast<int>(k));
        heads[2].push_back(head);
        if (computed[i]) heads[1].push_back(head);
        if (computed[i] && is_own) heads[0].push_back(head);
      }
    }
    for (const std::vector<NodeEntry>& found : heads) {
      if (graph_.outputs.empty()) graph_.outputs = found;
    }
    require(!graph_.outputs.empty());
  }

  /// Whether a node is a view of another element type.
  bool isRecast(const Source& source) const {
    if (!source.isVirtual() || source.inputs.empty() || source.results.size() != 1) return false;
    return tensor(resultOf(source.inputs[0])).dtype != tensor(source.results[0]).dtype;
  }

  int32_t resultOf(const Output& output) const {
    return sources_[at(output.node)].results[at(output.index)];
  }

  /// Whether each node returns computed values or views of them.
  std::vector<bool> findComputed() const {
    std::vector<bool> computed(sources_.size(), false);
    std::vector<int64_t> buffers;  // of computed inputs, sorted
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      if (graph_.nodes[i]->op == kVariable) continue;
      if (source.op != nullptr && !source.op->isVirtual()) {
        computed[i] = true;
        continue;
      }
      buffers.clear();
      for (const Output& input : source.inputs) {
        if (computed[at(input.node)]) buffers.push_back(tensor(resultOf(input)).buffer);
      }
      std::sort(buffers.begin(), buffers.end());
      computed[i] = std::any_of(source.results.begin(), source.results.end(), [&](int32_t result) {
        return std::binary_search(buffers.begin(), buffers.end(), tensor(result).buffer);
      });
    }
    return computed;
  }

  const Ops ops_;
  const Schema& schema_;
  std::unique_ptr<Graph> owner_ = std::make_unique<Graph>();
  Graph& graph_ = *owner_;
  std::vector<Source> sources_;        // of the nodes of the graph
  std::vector<Output> made_;           // by tensor
  const std::vector<int32_t> makers_;  // by tensor, the unit
  Memory memory_;
  IdIndex positions_;  // of units
  NameIndex names_;
  NameIndex file_names_;
  std::vector<std::pair<std::string, std::string>> attributes_;  // of one node
};

}  // namespace

std::optional<File> readPlain(std::string_view text, const Schema& schema, std::size_t max_depth) {
  return unlessRefused([&] {
    Ops ops(text, max_depth);
    ops.read();
    File file{nullptr, ops.rank, ops.world_size};
    file.graph = Wiring(std::move(ops), schema).run();
    return file;
  });
}

}  // namespace passlib::ark
