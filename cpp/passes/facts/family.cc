#include "family.h"

#include <unordered_set>

#include "known_operators.h"

namespace passes {
namespace {

bool startsWith(const std::string& text, const char* beginning) {
  return text.compare(0, strlen(beginning), beginning) == 0;
}

/// Whether an operator behaves differently in training.
bool differsInTraining(const std::string& op) {
  static const std::unordered_set<std::string> names = {"_contrib_BatchNormWithReLU",
                                                        "BatchNorm",
                                                        "BatchNorm_v1",
                                                        "_npx_batch_norm",
                                                        "_contrib_SyncBatchNorm",
                                                        "batch_norm",
                                                        "dropout",
                                                        "Dropout",
                                                        "_npx_dropout",
                                                        "LeakyReLU",
                                                        "_npx_leaky_relu",
                                                        "RNN",
                                                        "_npx_rnn"};
  return names.count(op) != 0;
}

bool drawsNumbers(const Node& node, bool inference) {
  if (node.op == "Dropout" || node.op == "_npx_dropout") {
    return !inference || textAttr(&node, "mode", "") == "always";
  }
  if (inference) return false;
  if (node.op == "LeakyReLU" || node.op == "_npx_leaky_relu") {
    return textAttr(&node, "act_type", "") == "rrelu";
  }
  if (node.op == "RNN" || node.op == "_npx_rnn") {
    return realAttr(&node, "p", 0) != 0;
  }
  return node.op == "dropout";
}

bool isRandomInOnnx(const std::string& op) {
  return startsWith(op, "Random") || op == "Multinomial" || op == "Bernoulli" || op == "Dropout";
}

}  // namespace

Family::Family(const Graph& graph) : name_("mxnet") {
  const auto dialect = graph.attrs.find("dialect");
  if (dialect != graph.attrs.end() && dialect->second.type == STR) name_ = dialect->second.str;
  const auto sets = graph.attrs.find("opset_import");
  if (sets == graph.attrs.end() || sets->second.type != MAP) return;
  for (const auto& set : sets->second.map) {
    const bool own = set.first.str.empty() || set.first.str == "ai.onnx";
    int64_t version = 0;
    if (own && set.second.toInteger(&version)) operator_set_ = version;
  }
}

bool Family::isFunction(const Node& node, bool inference) const {
  if (node.op == "null" || !node.subgraphs.empty()) return false;
  if (name_ == "onnx") {
    const std::string domain = textAttr(&node, "__domain__", "ai.onnx");
    const bool standard = domain == "ai.onnx" || domain == "ai.onnx.ml";
    return standard && !isRandomInOnnx(node.op);
  }
  if (name_ == "ark") {
    // Ops of a plan are assigned to processors, so the pass must not choose between two.
    return node.attrs.count("__effects__") == 0 && node.attrs.count("__virtual__") == 0 &&
           node.attrs.count("__config__") == 0;
  }
  if (name_ == "dlprim") return inference || stateInputs(node).empty();
  if (name_ != "mxnet" && name_ != "nnvm") return false;
  if (differsInTraining(node.op)) {
    return !drawsNumbers(node, inference) && (inference || stateInputs(node).empty());
  }
  return isKnownFunction(node.op, name_ == "nnvm");
}

bool Family::hasEffects(const Node& node) const {
  if (node.op == "null") return false;
  if (name_ == "ark") return node.attrs.count("__effects__") != 0;
  // Operators of ONNX and DLPrimitives have none, in any domain.
  if (name_ == "onnx" || name_ == "dlprim") return false;
  return !differsInTraining(node.op) && !isKnownFunction(node.op, name_ == "nnvm") &&
         !isKnownRandom(node.op);
}

std::vector<std::size_t> Family::stateInputs(const Node& node) const {
  if (name_ == "dlprim") {
    const bool writes = node.op == "BatchNorm" && !boolAttr(&node, "use_global_stats", false);
    return writes ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{};
  }
  if (name_ != "mxnet" && name_ != "nnvm") return {};
  if (node.op == "batch_norm" || node.op == "_contrib_SyncBatchNorm") return {3, 4};
  const bool norm = node.op == "BatchNorm" || node.op == "BatchNorm_v1" ||
                    node.op == "_npx_batch_norm" || node.op == "_contrib_BatchNormWithReLU";
  if (!norm || boolAttr(&node, "use_global_stats", false)) return {};
  return {3, 4};
}

}  // namespace passes
