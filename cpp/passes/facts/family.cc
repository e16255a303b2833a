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
  const std::string* value = nullptr;
  if (node.op == "Dropout" || node.op == "_npx_dropout") {
    value = findAttribute(node, "mode");
    return !inference || (value != nullptr && *value == "always");
  }
  if (inference) return false;
  if (node.op == "LeakyReLU" || node.op == "_npx_leaky_relu") {
    value = findAttribute(node, "act_type");
    return value != nullptr && *value == "rrelu";
  }
  if (node.op == "RNN" || node.op == "_npx_rnn") {
    value = findAttribute(node, "p");
    return value != nullptr && value->find_first_not_of("0.") != std::string::npos;
  }
  return node.op == "dropout";
}

bool isRandomInOnnx(const std::string& op) {
  return startsWith(op, "Random") || op == "Multinomial" || op == "Bernoulli" || op == "Dropout";
}

}  // namespace

const std::string* findAttribute(const Node& node, const std::string& key) {
  const auto found = node.attrs.find(key);
  return found == node.attrs.end() ? nullptr : &found->second;
}

bool boolAttribute(const Node& node, const std::string& key, bool preset) {
  const std::string* text = findAttribute(node, key);
  return text == nullptr ? preset : *text == "True" || *text == "true" || *text == "1";
}

bool isHidden(const std::string& key) {
  return key.size() > 4 && startsWith(key, "__") && key.compare(key.size() - 2, 2, "__") == 0;
}

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

bool Family::isParameter(const Node& node) const {
  if (node.op != "null") return false;
  if (name_ == "ark") return false;  // all are inputs
  if (name_ == "dlprim") {
    const std::string* id = findAttribute(node, "__id__");
    const bool input = id != nullptr && startsWith(*id, "inputs[");
    return !input && (node.tensor != nullptr || findAttribute(node, "__shape__") == nullptr);
  }
  if (name_ == "onnx") {
    if (findAttribute(node, "__default__") != nullptr) return false;
    if (isAbsent(node) || findAttribute(node, "__opaque__") != nullptr) return true;
  }
  return node.tensor != nullptr;
}

bool Family::isFunction(const Node& node, bool inference) const {
  if (node.op == "null" || !node.subgraphs.empty()) return false;
  if (name_ == "onnx") {
    const std::string* domain = findAttribute(node, "__domain__");
    const bool standard = domain == nullptr || *domain == "ai.onnx" || *domain == "ai.onnx.ml";
    return standard && !isRandomInOnnx(node.op);
  }
  if (name_ == "ark") {
    // Ops of a plan are assigned to processors, so the pass must not choose between two.
    return findAttribute(node, "__effects__") == nullptr &&
           findAttribute(node, "__virtual__") == nullptr &&
           findAttribute(node, "__config__") == nullptr;
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
  if (name_ == "ark") return findAttribute(node, "__effects__") != nullptr;
  // Operators of ONNX and DLPrimitives have none, in any domain.
  if (name_ == "onnx" || name_ == "dlprim") return false;
  return !differsInTraining(node.op) && !isKnownFunction(node.op, name_ == "nnvm") &&
         !isKnownRandom(node.op);
}

std::vector<std::size_t> Family::stateInputs(const Node& node) const {
  if (name_ == "dlprim") {
    const bool writes = node.op == "BatchNorm" && !boolAttribute(node, "use_global_stats", false);
    return writes ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{};
  }
  if (name_ != "mxnet" && name_ != "nnvm") return {};
  if (node.op == "batch_norm" || node.op == "_contrib_SyncBatchNorm") return {3, 4};
  const bool norm = node.op == "BatchNorm" || node.op == "BatchNorm_v1" ||
                    node.op == "_npx_batch_norm" || node.op == "_contrib_BatchNormWithReLU";
  if (!norm || boolAttribute(node, "use_global_stats", false)) return {};
  return {3, 4};
}

}  // namespace passes
