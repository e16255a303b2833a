// Facts about graphs while passes and rules change them.
#ifndef PASSLIB_RULES_KNOWLEDGE_H_
#define PASSLIB_RULES_KNOWLEDGE_H_

#include <memory>
#include <unordered_map>

#include "facts/facts.h"
#include "facts/onnx_source.h"
#include "graph/graph.h"
#include "rules/known.h"

namespace passlib::rules {

/// Assumptions about open dimensions; facts::Settings describes the members.
struct Assumptions {
  bool large_sizes = true;
  bool empty_errors = true;

  bool operator==(const Assumptions& other) const {
    return large_sizes == other.large_sizes && empty_errors == other.empty_errors;
  }
};

/// Facts of a graph with arrays, which its nodes point to while facts are inferred.
class GraphKnowledge {
 public:
  /// `file`: that which the graph came from, or null.
  GraphKnowledge(Graph* graph, std::shared_ptr<const onnx::Originals> file,
                 const Assumptions& assumptions);
  GraphKnowledge(const GraphKnowledge&) = delete;
  GraphKnowledge& operator=(const GraphKnowledge&) = delete;

  void infer();
  /// The fact of a value when the graph was inferred.
  const facts::Fact& inferred(const NodeEntry& entry) const { return facts_->of(entry); }
  /// The fact of a value now. Infers the graph when it is first asked.
  Known of(const NodeEntry& entry);
  /// Infers a new operator. In nested graphs the facts of new operators stay unknown.
  void add(const Graph* graph, const Node* node);

 private:
  facts::Fact describe(const Node& node);
  const facts::Fact& ofConstant(const mxnet::ext::MXTensor& tensor);

  Graph* root_;
  std::unique_ptr<facts::OnnxSource> source_;
  std::unique_ptr<facts::Facts> facts_;
  std::unordered_map<const mxnet::ext::MXTensor*, facts::Fact> constants_;
  bool inferred_ = false;
};

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_KNOWLEDGE_H_
