// Graphs while rules and algorithms of the core change them.
#ifndef PASSLIB_MODEL_EDIT_H_
#define PASSLIB_MODEL_EDIT_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/attribute_texts.h"
#include "graph/attributes.h"
#include "graph/edited.h"
#include "graph/text_table.h"
#include "moves/moves.h"
#include "rules/engine.h"
#include "rules/knowledge.h"

namespace passlib::model {

using NodeNames = std::unordered_set<std::string>;

/// An edited graph with its weights, which the nodes point to.
class Edit {
 public:
  using Tensor = mxnet::ext::MXTensor;
  using Shape = std::vector<int64_t>;

  struct Memory {
    void* data;
    std::shared_ptr<const void> owner;
  };
  /// Returns memory for a new weight, which is zeroed.
  using Allocate = std::function<Memory(const Shape&, mxnet::ext::MXDType)>;
  /// Replaces operators of the main graph on constants by weights, and lends these. Returns whether
  /// it replaced any.
  using Fold = std::function<bool(const std::vector<Node*>&)>;

  struct NewWeight {
    Node* node;
    const Tensor* tensor;
    std::shared_ptr<const void> owner;

    /// "int4" or "uint4" if each element is in the lower half of a byte of the tensor; else "".
    std::string smallType() const { return std::string(attributeOf(*node, "__opaque__")); }
  };
  /// Gets a new weight that no pass reads any more.
  using Take = std::function<void(NewWeight)>;

  /// `attributes`: of the graph. `file`: that which it came from, or null.
  Edit(std::shared_ptr<EditedGraph> editor, const GraphTexts& attributes,
       std::shared_ptr<const onnx::Originals> file, Allocate allocate, Take take);
  ~Edit();
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  /// Lets the variables to which `find` returns a tensor point to it. The caller keeps its memory.
  void lend(const std::function<std::optional<Tensor>(const std::string& name)>& find);

  /// Applies rules, by their numbers, until none applies; returns how often each did. `kept`: the
  /// operators that no rule replaces. `fold`: may be null.
  std::vector<std::size_t> apply(const rules::Book& book, const std::vector<std::size_t>& chosen,
                                 const rules::Assumptions& assumptions, const NodeNames& kept,
                                 const Fold& fold);
  /// Says why a rule does not apply at a node; see rules::Book.
  std::string why(const rules::Book& book, std::size_t rule, Node* node);
  /// Runs an algorithm of moves/moves.h; false if there is none of the name.
  bool move(std::string_view name, const moves::Options& options,
            const rules::Assumptions& assumptions, const NodeNames& kept);
  /// The operators that moves/kept.h names.
  std::shared_ptr<const NodeNames> keptNames(const std::string& what);
  /// The facts of the values of the present graph.
  std::shared_ptr<rules::GraphKnowledge> knowledge(const rules::Assumptions& assumptions);

  /// Takes the new weights that are still there and were not handed over. Their names may be those
  /// of removed ones.
  std::vector<NewWeight> takeMade();
  /// Takes the names of weights that are gone, for hosts that keep weights elsewhere.
  std::vector<std::string> takeGone();
  /// Takes the lines that algorithms printed, which have names of the file in them.
  std::string takePrinted();

 private:
  void change(const rules::Assumptions& assumptions, const NodeNames& kept,
              const std::function<void(moves::Model*)>& body);
  void allocate(Node* node, const Shape& shape, mxnet::ext::MXDType type);
  void handOver(const Node* node);
  /// Makes memory the new weight of a variable.
  void own(Node* node, const Shape& shape, mxnet::ext::MXDType type, Memory memory);
  rules::Hooks hooks(const rules::Assumptions& assumptions);
  std::vector<Node*> applyOnce(const rules::Book& book, const std::vector<std::size_t>& chosen,
                               const rules::Assumptions& assumptions, const NodeNames& kept,
                               std::vector<std::size_t>* counts);

  std::shared_ptr<EditedGraph> editor_;
  Graph* graph_;
  std::shared_ptr<const onnx::Originals> file_;
  Allocate allocate_;
  Take take_;
  std::deque<Tensor> tensors_;  // nodes point to them
  std::vector<NewWeight> made_;
  std::vector<std::string> gone_;
  std::string printed_;
  std::shared_ptr<rules::GraphKnowledge> knowledge_;
  rules::Assumptions assumptions_;  ///< of knowledge_
  std::size_t known_changes_ = 0;   ///< when knowledge_ was made
  /// By what moves/kept.h calls it: the changes when the names were found, and the names.
  std::map<std::string, std::pair<std::size_t, std::shared_ptr<const NodeNames>>> kept_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_EDIT_H_
