/*
 * A pass that rewrites weights: it folds each BatchNorm into the layer before it. README.md
 * explains it line by line.
 *
 * Outside training, BatchNorm computes y = scale * x + shift for every channel, where
 *
 *     scale = gamma / sqrt(variance + eps)        shift = beta - mean * scale
 *
 * Convolution, Deconvolution and FullyConnected are linear, so the
 * layer alone computes the same once its weights are multiplied by scale and its bias is
 * scale * bias + shift.
 */
#include "attributes.h"
#include "layer.h"
#include "lib_api.h"
#include "numbers.h"

namespace fold {

using namespace mxnet::ext;

static bool isBatchNorm(const Node& node) {
  return node.op == "BatchNorm" || node.op == "BatchNorm_v1" || node.op == "_contrib_SyncBatchNorm";
}

/// y = scale * x + shift, for every channel.
struct Affine {
  explicit Affine(std::size_t channels) : scale(channels, 1.0), shift(channels, 0.0) {}

  /// The effect of a BatchNorm outside training. Throws LeftAlone if its parameters are unknown.
  static Affine ofBatchNorm(const Node& norm, std::size_t channels) {
    if (norm.inputs.size() != 5) {
      throw Inconsistent(norm, "has " + std::to_string(norm.inputs.size()) + " inputs, not 5");
    }
    const double epsilon = numberAttribute<double>(norm, "eps", 1e-3);
    const bool fixed = boolAttribute(norm, "fix_gamma", true);
    const std::vector<double> gamma =
        fixed ? std::vector<double>(channels, 1.0) : channelParameter(norm, 1, channels);
    const std::vector<double> beta = channelParameter(norm, 2, channels);
    const std::vector<double> mean = channelParameter(norm, 3, channels);
    const std::vector<double> variance = channelParameter(norm, 4, channels);
    Affine result(channels);
    for (std::size_t i = 0; i < channels; ++i) {
      result.scale[i] = gamma[i] / std::sqrt(variance[i] + epsilon);
      result.shift[i] = beta[i] - mean[i] * result.scale[i];
    }
    return result;
  }

  /// Composes this with another one after it.
  void append(const Affine& next) {
    for (std::size_t i = 0; i < scale.size(); ++i) {
      scale[i] *= next.scale[i];
      shift[i] = shift[i] * next.scale[i] + next.shift[i];
    }
  }

  std::vector<double> scale;
  std::vector<double> shift;
};

class Folding {
 public:
  explicit Folding(Graph* graph) : graph_(graph) {
    for (const NodeEntry& head : graph->outputs) {
      heads_.insert(head.node);
      if (head.entry != 0) pinned_.insert(head.node);
    }
    for (const Node* node : graph->nodes) {
      pinned_.insert(node->control_deps.begin(), node->control_deps.end());
      if (!node->control_deps.empty()) pinned_.insert(node);
    }
    for (const Node* variable : graph->inputs) names_.insert(variable->name);
  }

  void run() {
    for (Node* node : graph_->sorted()) {
      if (Layer::is(*node)) foldInto(node);
    }
    graph_->removeNodes(folded_);
    removeUnusedParameters();
  }

  /// Prints the result for each BatchNorm, or only the counts.
  void report(bool verbose) const {
    std::size_t left = 0;
    for (const std::string& line : lines_) {
      if (verbose) std::cout << line << "\n";
    }
    for (const Node* node : graph_->nodes) {
      if (!isBatchNorm(*node)) continue;
      ++left;
      if (!verbose) continue;
      const auto reason = reasons_.find(node);
      std::cout << "left " << node->name << ": "
                << (reason != reasons_.end() ? reason->second
                                             : "it does not stand alone behind a linear layer")
                << "\n";
    }
    std::cout << "foldBatchNorm: " << folded_.size() << " folded, " << left << " left\n";
  }

 private:
  /// Folds all consecutive BatchNorms after a layer.
  void foldInto(Node* node) {
    std::vector<Node*> norms;
    Node* norm = onlyUserIfBatchNorm(*node);
    if (norm == nullptr) return;
    try {
      const Layer layer(node);
      requireOwnParameters(layer);
      Affine total(layer.channels);
      for (; norm != nullptr; norm = onlyUserIfBatchNorm(*norm)) {
        try {
          requireFoldable(layer, *norm);
          total.append(Affine::ofBatchNorm(*norm, layer.channels));
        } catch (const LeftAlone& reason) {
          reasons_[norm] = reason.what();
          break;
        }
        norms.push_back(norm);
      }
      if (!norms.empty()) apply(layer, total, norms);
    } catch (const LeftAlone& reason) {
      reasons_[norms.empty() ? norm : norms[0]] = reason.what();
    }
  }

  /// The BatchNorm after a node, if it is the only user of the node's output.
  Node* onlyUserIfBatchNorm(const Node& node) const {
    if (node.outputs.size() != 1 || heads_.count(&node) != 0) return nullptr;
    const NodeEntry& use = node.outputs[0];
    return use.entry == 0 && isBatchNorm(*use.node) ? use.node : nullptr;
  }

  /// Values about to change must have no other users.
  void requireOwnParameters(const Layer& layer) const {
    for (std::size_t i = 1; i < layer.node->inputs.size(); ++i) {
      const Node* parameter = layer.node->inputs[i].node;
      if (parameter->outputs.size() != 1 || heads_.count(parameter) != 0) {
        throw LeftAlone("'" + parameter->name + "' is also used elsewhere");
      }
    }
  }

  void requireFoldable(const Layer& layer, const Node& norm) const {
    const int axis = numberAttribute<int>(norm, "axis", 1);
    int channel_axis;
    int rank;
    layer.findChannels(&channel_axis, &rank);
    const int wanted = axis < 0 && rank > 0 ? axis + rank : axis;
    if (wanted != channel_axis) {
      throw LeftAlone("axis " + std::to_string(axis) + " is not known to be that of the channels");
    }
    if (pinned_.count(&norm) != 0) {
      throw LeftAlone("its mean or variance is an output, or other nodes wait for it");
    }
    for (const NodeEntry& use : norm.outputs) {
      if (use.node->inputs[static_cast<std::size_t>(use.entry)].entry != 0) {
        throw LeftAlone("its mean or variance is used");
      }
    }
  }

  /// Sets the layer's new weights, and reroutes the users of the last BatchNorm to its result.
  /// Throws LeftAlone before any change.
  void apply(const Layer& layer, const Affine& affine, const std::vector<Node*>& norms) {
    const MXTensor old_weight = parameterOf(*layer.node, 1);  // before alloc_arg
    const MXDType bias_type = layer.has_bias ? parameterOf(*layer.node, 2).dtype : old_weight.dtype;
    const std::vector<double> weight = layer.scaledWeight(affine.scale);
    std::vector<double> bias(layer.channels, 0.0);
    if (layer.has_bias) bias = channelParameter(*layer.node, 2, layer.channels);
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] = affine.scale[i] * bias[i] + affine.shift[i];
    }
    if (!fits(weight, old_weight.dtype) || !fits(bias, bias_type)) {
      throw LeftAlone("the new weights would not be finite");
    }

    if (!layer.has_bias) addBias(layer.node);
    // New arrays, since the old ones belong to the caller and must stay unchanged if a later step
    // fails.
    Node* weight_node = layer.node->inputs[1].node;
    writeAll(weight, weight_node->alloc_arg(old_weight.shape, old_weight.ctx, old_weight.dtype));
    const std::vector<int64_t> bias_shape(1, static_cast<int64_t>(layer.channels));
    Node* bias_node = layer.node->inputs[2].node;
    writeAll(bias, bias_node->alloc_arg(bias_shape, old_weight.ctx, bias_type));

    for (const Node* norm : norms) {
      lines_.push_back("folded " + norm->name + " into " + layer.node->name);
    }
    Node* last = norms.back();
    // An output of the model keeps its name.
    if (heads_.count(last) != 0) {
      layer.node->name = last->name;
      heads_.insert(layer.node);
    }
    graph_->replace(NodeEntry(last, 0), NodeEntry(layer.node, 0));
    folded_.insert(folded_.end(), norms.begin(), norms.end());
    for (const Node* norm : norms) {
      for (std::size_t i = 1; i < norm->inputs.size(); ++i) {
        parameters_.push_back(norm->inputs[i].node);
      }
    }
  }

  void addBias(Node* layer) {
    // Named after the weight: names of variables are unique, those of operators need not be.
    std::string name = layer->inputs[1].node->name;
    const std::size_t end = name.rfind("_weight");
    name = name.substr(0, end) + "_bias";
    while (!names_.insert(name).second) name += "_folded";
    Node* bias = graph_->addNode(name, "null");
    graph_->inputs.push_back(bias);
    graph_->connect(bias, 0, layer, 2);
    layer->attrs["no_bias"] = "False";
  }

  /// Removes the parameters of folded nodes that have no other users.
  void removeUnusedParameters() {
    std::unordered_set<const Node*> seen;
    std::vector<Node*> unused;
    for (Node* parameter : parameters_) {
      const bool needed = !parameter->outputs.empty() || heads_.count(parameter) != 0 ||
                          pinned_.count(parameter) != 0;
      if (!needed && seen.insert(parameter).second) unused.push_back(parameter);
    }
    graph_->removeNodes(unused);
  }

  Graph* graph_;
  std::unordered_set<const Node*> heads_;   // nodes whose outputs are outputs of the model
  std::unordered_set<const Node*> pinned_;  // nodes that must not be removed
  std::unordered_set<std::string> names_;   // of the variables
  std::vector<Node*> folded_;
  std::vector<Node*> parameters_;  // of folded nodes
  std::vector<std::string> lines_;
  std::unordered_map<const Node*, std::string> reasons_;
};

/// Folds BatchNorm into the Convolution, Deconvolution or FullyConnected before it, for inference.
///
/// Options: verbose=1 prints the result for each BatchNorm.
static MXReturnValue run(Graph* graph,
                         const std::unordered_map<std::string, std::string>& options) {
  const auto verbose = options.find("verbose");
  try {
    Folding folding(graph);
    folding.run();
    folding.report(verbose != options.end() && isTrue(verbose->second));
    return MX_SUCCESS;
  } catch (const Inconsistent& error) {
    MX_ERROR_MSG << error.what();
    return MX_FAIL;
  }
}

REGISTER_PASS(foldBatchNorm).setBody(run);

}  // namespace fold

mxnet::ext::MXReturnValue initialize(int version) {
  if (version >= 10700) return mxnet::ext::MX_SUCCESS;
  MX_ERROR_MSG << "this library needs the graph passes of MXNet 1.7 or later, not version "
               << version;
  return mxnet::ext::MX_FAIL;
}
