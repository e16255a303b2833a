#include "model/edit.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "moves/kept.h"
#include "moves/model.h"

namespace passlib::model {

using mxnet::ext::MXDType;

namespace {

constexpr int kMostRounds = 16;

}  // namespace

Edit::Edit(std::shared_ptr<EditedGraph> editor, const GraphTexts& attributes,
           std::shared_ptr<const onnx::Originals> file, Allocate allocate, Take take)
    : editor_(std::move(editor)),
      graph_(editor_->root()),
      file_(std::move(file)),
      allocate_(std::move(allocate)),
      take_(std::move(take)) {
  editor_->requireOpen();
  graph_->attrs = parseAttributes(attributes);
}

Edit::~Edit() {
  if (editor_->root() == nullptr) return;
  mxnet::ext::host::takeBackParams(graph_);
  graph_->attrs.clear();
}

void Edit::lend(const std::function<std::optional<Tensor>(const std::string& name)>& find) {
  editor_->requireOpen();
  for (Node* node : graph_->inputs) {
    std::optional<Tensor> found = find(node->name);
    if (!found) continue;
    tensors_.push_back(*std::move(found));
    node->tensor = &tensors_.back();
  }
}

std::shared_ptr<rules::GraphKnowledge> Edit::knowledge(const rules::Assumptions& assumptions) {
  editor_->requireOpen();
  const std::size_t changes = editor_->changes();
  if (knowledge_ == nullptr || known_changes_ != changes || !(assumptions_ == assumptions)) {
    editor_->nodes(graph_);  // completes removals
    knowledge_ = std::make_shared<rules::GraphKnowledge>(graph_, file_, assumptions);
    assumptions_ = assumptions;
    known_changes_ = changes;
  }
  return knowledge_;
}

std::shared_ptr<const NodeNames> Edit::keptNames(const std::string& what) {
  editor_->requireOpen();
  const std::size_t changes = editor_->changes();
  const auto known = kept_.find(what);
  if (known != kept_.end() && known->second.first == changes) return known->second.second;
  editor_->nodes(graph_);
  auto names = std::make_shared<const NodeNames>(moves::keptNames(what, graph_));
  kept_[what] = {changes, names};
  return names;
}

rules::Hooks Edit::hooks(const rules::Assumptions& assumptions) {
  const std::shared_ptr<rules::GraphKnowledge> known = knowledge(assumptions);
  rules::Hooks made;
  made.add_node = [this](Graph* where, const std::string& name, const std::string& op) {
    return editor_->addNode(where, op, name, {}, 0);
  };
  made.remove_node = [this](Graph* where, Node* node) {
    editor_->noteRemoved(node);
    if (where == graph_ && node->op == "null") gone_.push_back(node->name);
  };
  made.allocate = [this](Node* node, const Shape& shape, MXDType type) {
    allocate(node, shape, type);
  };
  made.known = [known](const NodeEntry& entry) { return known->of(entry); };
  made.added = [known](Graph* where, Node* node) { known->add(where, node); };
  return made;
}

std::vector<Node*> Edit::applyOnce(const rules::Book& book, const std::vector<std::size_t>& chosen,
                                   const rules::Assumptions& assumptions, const NodeNames& kept,
                                   std::vector<std::size_t>* counts) {
  rules::Hooks given = hooks(assumptions);
  given.kept = &kept;
  const rules::Applied applied = book.apply(graph_, chosen, given);
  const bool any = std::any_of(applied.counts.begin(), applied.counts.end(),
                               [](std::size_t count) { return count != 0; });
  if (any) editor_->noteChange();
  editor_->noteNames();
  editor_->noteOutputs();
  moves::Hooks owner;
  owner.owner = editor_.get();
  owner.graph = graph_;
  moves::Model left(owner);
  left.removeUnused(applied.left);
  gone_.insert(gone_.end(), left.goneConstants().begin(), left.goneConstants().end());
  counts->resize(applied.counts.size());
  for (std::size_t i = 0; i < counts->size(); ++i) (*counts)[i] += applied.counts[i];
  if (applied.folds.empty()) return {};
  // Simplification of nested graphs folds the others.
  const std::vector<Node*>& nodes = editor_->nodes(graph_);
  const std::unordered_set<const Node*> own(nodes.begin(), nodes.end());
  std::vector<Node*> folds;
  for (Node* node : applied.folds) {
    if (own.count(node) != 0) folds.push_back(node);
  }
  return folds;
}

std::vector<std::size_t> Edit::apply(const rules::Book& book,
                                     const std::vector<std::size_t>& chosen,
                                     const rules::Assumptions& assumptions, const NodeNames& kept,
                                     const Fold& fold) {
  std::vector<std::size_t> counts;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<Node*> folds = applyOnce(book, chosen, assumptions, kept, &counts);
    if (folds.empty() || !fold || !fold(folds)) break;
  }
  return counts;
}

std::string Edit::why(const rules::Book& book, std::size_t rule, Node* node) {
  return book.why(graph_, node, rule, hooks({}));
}

bool Edit::move(std::string_view name, const moves::Options& options,
                const rules::Assumptions& assumptions, const NodeNames& kept) {
  bool known = false;
  change(assumptions, kept, [&](moves::Model* model) { known = moves::run(name, model, options); });
  return known;
}

void Edit::change(const rules::Assumptions& assumptions, const NodeNames& kept,
                  const std::function<void(moves::Model*)>& body) {
  moves::Hooks given;
  std::shared_ptr<rules::GraphKnowledge> known;
  given.owner = editor_.get();
  given.graph = graph_;
  given.infer = [&]() {
    known = knowledge(assumptions);
    known->infer();
  };
  given.fact = [&known](const NodeEntry& entry) -> const facts::Fact& {
    return known->inferred(entry);
  };
  given.allocate = [this](Node* node, const Shape& shape, MXDType type) {
    allocate(node, shape, type);
  };
  given.lend = [this](Node* node, const Shape& shape, MXDType type, const char* data,
                      const std::shared_ptr<const void>& owner) {
    own(node, shape, type, {const_cast<char*>(data), owner});
  };
  given.hand_over = [this](const Node* node) { handOver(node); };
  given.kept = &kept;
  given.file = file_;
  editor_->nodes(graph_);
  moves::Model model(given);
  body(&model);
  gone_.insert(gone_.end(), model.goneConstants().begin(), model.goneConstants().end());
  printed_ += model.printed();
}

void Edit::allocate(Node* node, const Shape& shape, MXDType type) {
  own(node, shape, type, allocate_(shape, type));
}

void Edit::own(Node* node, const Shape& shape, MXDType type, Memory memory) {
  tensors_.emplace_back(memory.data, shape, type, 0, mxnet::ext::MXContext::CPU());
  node->tensor = &tensors_.back();
  made_.push_back({node, node->tensor, std::move(memory.owner)});
}

void Edit::handOver(const Node* node) {
  const auto found = std::find_if(made_.rbegin(), made_.rend(),
                                  [node](const NewWeight& each) { return each.node == node; });
  if (found == made_.rend()) throw std::logic_error("a weight was handed over that is not new");
  NewWeight weight = std::move(*found);
  made_.erase(std::next(found).base());
  take_(std::move(weight));
}

std::vector<Edit::NewWeight> Edit::takeMade() {
  std::vector<NewWeight> taken;
  for (NewWeight& each : made_) {
    if (!editor_->isRemoved(each.node)) taken.push_back(std::move(each));
  }
  made_.clear();
  return taken;
}

std::vector<std::string> Edit::takeGone() {
  std::vector<std::string> taken;
  taken.swap(gone_);
  return taken;
}

std::string Edit::takePrinted() {
  std::string taken;
  taken.swap(printed_);
  return taken;
}

}  // namespace passlib::model
