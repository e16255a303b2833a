/*
 * foldBatchNormalization: folds batch normalizations into the linear layers before them.
 *
 * Outside training, a batch normalization computes y = scale * x + shift for every channel, with
 *
 *     scale = gamma / sqrt(variance + epsilon)        shift = beta - mean * scale
 *
 * A convolution, transposed convolution or fully connected layer computes the same if its weights
 * are multiplied by scale and its bias is scale * bias + shift. Weights with other users are left
 * unchanged, and the layer gets copies. Batch normalizations that do not match are left alone.
 */
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "layer.h"
#include "lineage.h"
#include "weights/tensor_values.h"
#include "weights/weight_scaling.h"

namespace passes {
namespace {

/// A name of a file on one line of the report.
std::string onOneLine(std::string name) {
  for (std::size_t i = 0; (i = name.find_first_of("\r\n", i)) != std::string::npos;) {
    name.replace(i, 1, name[i] == '\n' ? "\\n" : "\\r");
  }
  return name;
}

class Folding {
 public:
  Folding(Graph* graph, const Family& family) : graph_(graph), family_(family) {
    for (const NodeEntry& head : graph->outputs) {
      heads_.insert(head.node);
      if (head.entry != 0) pinned_.insert(head.node);
    }
    for (const Node* node : graph->nodes) {
      pinned_.insert(node->control_deps.begin(), node->control_deps.end());
      if (!node->control_deps.empty()) pinned_.insert(node);
    }
  }

  void run() {
    for (Node* node : graph_->sorted()) {
      const LayerFacts* facts = findLayer(family_, *node);
      if (facts != nullptr) foldInto(node, *facts);
    }
    graph_->removeNodes(folded_);
    removeUnusedParameters();
  }

  void report() const {
    std::size_t left = 0;
    for (const Node* node : folded_) std::cout << "folded " << onOneLine(node->name) << "\n";
    for (const Node* node : graph_->nodes) {
      if (findNorm(family_, *node) == nullptr) continue;
      ++left;
      const auto reason = reasons_.find(node);
      std::cout << "left " << onOneLine(node->name) << ": "
                << (reason != reasons_.end() ? reason->second
                                             : "it is not the only user of a linear layer")
                << "\n";
    }
    std::cout << "foldBatchNormalization: " << folded_.size() << " folded, " << left << " left\n";
  }

 private:
  /// Folds all consecutive batch normalizations after a layer.
  void foldInto(Node* node, const LayerFacts& facts) {
    Node* norm = normBehind(*node);
    if (norm == nullptr) return;
    std::vector<Node*> norms;
    try {
      const Layer layer(family_, node, facts);
      Affine total(layer.channels());
      for (; norm != nullptr; norm = normBehind(*norm)) {
        try {
          append(layer, *norm, &total);
        } catch (const std::invalid_argument& reason) {
          reasons_[norm] = reason.what();
          break;
        }
        norms.push_back(norm);
      }
      if (!norms.empty()) apply(layer, total, norms);
    } catch (const std::invalid_argument& reason) {
      reasons_[norms.empty() ? norm : norms.front()] = reason.what();
    }
  }

  /// The batch normalization that is the only user of a node's result, or null.
  Node* normBehind(const Node& node) const {
    if (node.outputs.size() != 1 || heads_.count(&node) != 0) return nullptr;
    const NodeEntry& use = node.outputs.front();
    const bool normalized =
        use.entry == 0 && findNorm(family_, *use.node) != nullptr && use.node->inputs[0].entry == 0;
    return normalized ? use.node : nullptr;
  }

  /// Composes `total` with a batch normalization after it. Throws LeftAlone before any change.
  void append(const Layer& layer, const Node& norm, Affine* total) const {
    const NormFacts& facts = *findNorm(family_, norm);
    if (usesBatchStatistics(family_, norm)) throw LeftAlone("it normalizes as in training");
    layer.requireChannels(facts.axis ? intAttr(&norm, "axis", 1) : 1);
    if (pinned_.count(&norm) != 0) {
      throw LeftAlone("its mean or variance is an output, or it has control dependencies");
    }
    for (const NodeEntry& use : norm.outputs) {
      if (use.node->inputs[static_cast<std::size_t>(use.entry)].entry != 0) {
        throw LeftAlone("its mean or variance is used");
      }
    }
    const std::size_t channels = layer.channels();
    const bool scaled = facts.has_scale.key == nullptr || facts.has_scale.of(norm);
    const bool shifted = facts.has_shift.key == nullptr || facts.has_shift.of(norm);
    const std::vector<double> scale = scaled && !facts.unit_scale.of(norm)
                                          ? parameter(norm, facts.scale, channels)
                                          : std::vector<double>(channels, 1.0);
    const std::vector<double> shift =
        shifted ? parameter(norm, facts.shift, channels) : std::vector<double>(channels, 0.0);
    const std::vector<double> mean = parameter(norm, facts.mean, channels);
    const std::vector<double> variance = parameter(norm, facts.variance, channels);
    const double epsilon = realAttr(&norm, facts.epsilon, facts.epsilon_preset);
    for (std::size_t i = 0; i < channels; ++i) {
      const double factor = scale[i] / std::sqrt(variance[i] + epsilon);
      total->scale[i] *= factor;
      total->shift[i] = (total->shift[i] - mean[i]) * factor + shift[i];
    }
  }

  std::vector<double> parameter(const Node& norm, std::size_t input, std::size_t channels) const {
    if (input >= norm.inputs.size()) {
      throw LeftAlone("it has " + std::to_string(norm.inputs.size()) + " inputs");
    }
    const MXTensor& tensor = parameterOf(norm, input);
    if (tensor.shape != std::vector<int64_t>(1, static_cast<int64_t>(channels))) {
      throw LeftAlone("'" + norm.inputs[input].node->name + "' is not one number a channel");
    }
    return elementsOf(norm, input);
  }

  /// Throws LeftAlone before any change.
  void apply(const Layer& layer, const Affine& affine, const std::vector<Node*>& norms) {
    Node& node = layer.node();
    const MXTensor old = parameterOf(node, 1);  // before alloc_arg changes it
    const MXDType bias_type = layer.hasBias() ? parameterOf(node, 2).dtype : old.dtype;
    const std::vector<double> factors = layer.weightFactors(affine);
    const std::vector<double> bias = layer.biasFor(affine);
    const WeightScaling scaling(node.inputs[1].node, factors);
    if (!scaling.isFinite() || !isFiniteAs(bias, bias_type)) {
      throw LeftAlone("the new weights would not be finite");
    }
    const std::vector<int64_t> bias_shape(1, static_cast<int64_t>(bias.size()));
    scaling.apply(own(&node, 1, "_weight", MXTensor(nullptr, old.shape, old.dtype, 0, old.ctx)));
    setValues(own(&node, 2, "_bias", MXTensor(nullptr, bias_shape, bias_type, 0, old.ctx)).tensor(),
              bias);
    layer.declareBias();
    noteOrigin(*graph_, &node, norms);
    Node* last = norms.back();
    if (heads_.count(last) != 0) {
      if (family_.namesOutputsByNode()) node.name = last->name;
      heads_.insert(&node);
    }
    graph_->replace(NodeEntry(last, 0), NodeEntry(&node, 0));
    for (const Node* norm : norms) {
      for (std::size_t i = 1; i < norm->inputs.size(); ++i) {
        replaced_.push_back(norm->inputs[i].node);
      }
    }
    folded_.insert(folded_.end(), norms.begin(), norms.end());
  }

  /// The parameter at an input, or a new one there if other nodes use the present one. Shape, type
  /// and device of its new tensor are those of `like`.
  NewWeight own(Node* layer, std::size_t input, const char* suffix, const MXTensor& like) {
    if (hasInput(*layer, input)) {
      Node* present = layer->inputs[input].node;
      const bool shared = present->outputs.size() != 1 || heads_.count(present) != 0;
      if (!shared) return NewWeight{present, like, false};
    }
    Node* made = addParameter(graph_, layer->name + suffix, like.shape, like.dtype, like.ctx);
    if (input < layer->inputs.size()) replaced_.push_back(layer->inputs[input].node);
    graph_->connect(made, 0, layer, static_cast<int>(input));
    return NewWeight{made, like, true};
  }

  void removeUnusedParameters() {
    std::unordered_set<const Node*> seen;
    std::vector<Node*> unused;
    for (Node* node : replaced_) {
      const bool needed = !node->outputs.empty() || heads_.count(node) != 0 ||
                          pinned_.count(node) != 0 || !isParameter(node);
      if (!needed && seen.insert(node).second) unused.push_back(node);
    }
    graph_->removeNodes(unused);
  }

  Graph* graph_;
  const Family& family_;
  std::unordered_set<const Node*> heads_;   // nodes with outputs of the model
  std::unordered_set<const Node*> pinned_;  // nodes that must stay
  std::vector<Node*> folded_;
  std::vector<Node*> replaced_;  // parameters that may be unused now
  std::unordered_map<const Node*, std::string> reasons_;
};

MXReturnValue foldBatchNormalization(Graph* graph, const OptionValues& options) {
  const Family family(*graph);
  Folding folding(graph, family);
  folding.run();
  if (options.boolean("verbose")) folding.report();
  return MX_SUCCESS;
}

REGISTER_PASS(foldBatchNormalization)
    .setBody(foldBatchNormalization)
    .weightsOnDemand()
    .describe("Fold batch normalizations into the weights of the linear layers before them.")
    .option("verbose", false, "Print the result for each batch normalization, with the reason.")
    .triggers({"BatchNormalization", "BatchNorm", "batch_norm", "BatchNorm_v1", "SyncBatchNorm"})
    .cost("weights")
    .joins("simplify", "rebuildShapes");

}  // namespace
}  // namespace passes
