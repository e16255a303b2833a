// Types that changes of a graph have made doubtful, inferred again.
#ifndef PASSLIB_MODEL_RENEWAL_H_
#define PASSLIB_MODEL_RENEWAL_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "model/library_nodes.h"
#include "onnx/writing/model.h"

namespace passlib::model {

/// Types by place of the graph.
using RenewedTypes = std::map<std::string, onnx::RenewedTypes>;

/// The sources of the types of a graph as it is written.
struct Renewal {
  std::shared_ptr<const Graph> graph;
  TypeSources sources;
  const LibraryResults* results = nullptr;  ///< may be null
  /// Types of outputs of the main graph that the facts may leave open.
  std::map<std::string, onnx::StatedType> outputs;
};

/// The doubtful types of a model that is written, inferred again.
class Renewed {
 public:
  /// Refers to the writer.
  Renewed(const onnx::ModelWriter& writer, Renewal renewal);

  /// Whether what the file states holds.
  bool holds() const { return holds_; }

  /// Returns what to write instead. Outputs keep their description unless facts contradict it. Of
  /// other values only what is known is stated. `disputed`: values of whose types another inference
  /// finds others.
  RenewedTypes types(const std::set<std::string>& disputed) const;

 private:
  void noteNames();
  std::string serialized(const facts::Fact& fact) const;
  std::string typeOfOutput(const onnx::DoubtfulValue& value, const facts::Fact& fact,
                           bool is_certain) const;

  const onnx::ModelWriter& writer_;
  std::map<std::string, onnx::StatedType> outputs_;
  std::unique_ptr<facts::FileFacts> facts_;
  bool restated_ = false;  ///< a pass stated the type of an input of the file
  bool holds_ = false;
  std::set<std::string> names_;  ///< of open sizes
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_RENEWAL_H_
