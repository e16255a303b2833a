// Models while rules and algorithms of the core change them.
#ifndef PASSLIB_MODEL_EDIT_H_
#define PASSLIB_MODEL_EDIT_H_

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/edited.h"
#include "graph/variables.h"
#include "model/model.h"
#include "moves/moves.h"
#include "rules/engine.h"
#include "rules/knowledge.h"

namespace passlib::model {

using NodeNames = std::unordered_set<std::string>;

/// A graph while it is changed, with its arrays, which the nodes point to.
class Edit {
 public:
  /// `what`: who changes it, for messages.
  Edit(const Model& model, const std::string& what);
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  Graph* graph() const { return graph_; }

  /// Applies rules, by their numbers, until none applies. Operators on constants that rules make
  /// stay, since nothing runs them here. `kept`: operators that no rule replaces.
  void apply(const rules::Book& book, const std::vector<std::size_t>& chosen,
             const rules::Assumptions& assumptions, const NodeNames& kept);
  /// Runs an algorithm of moves/moves.h; false if there is none of the name.
  bool move(std::string_view name, const moves::Options& options,
            const rules::Assumptions& assumptions, const NodeNames& kept);

  /// The resulting model. Ends the edit. Throws PassResultError.
  Model finish();

 private:
  mxnet::ext::MXTensor* keep(void* data, const std::vector<int64_t>& shape,
                             mxnet::ext::MXDType type);
  void allocate(Node* node, const std::vector<int64_t>& shape, mxnet::ext::MXDType type);

  const Model& model_;
  std::string what_;
  NameList before_;
  int max_depth_;
  EditedGraph editor_;
  Graph* graph_;
  std::deque<Array> arrays_;
  std::deque<mxnet::ext::MXTensor> tensors_;  // nodes point to them
  std::vector<std::pair<Node*, Array>> made_;
};

/// Returns a model that `change` changed. Throws PassError, PassResultError, FormatError.
Model edited(const Model& model, const std::string& what, const std::function<void(Edit*)>& change);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_EDIT_H_
