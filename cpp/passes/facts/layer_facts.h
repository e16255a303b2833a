// The names and weight formats of foldable layers in each family.
#ifndef PASSES_FACTS_LAYER_FACTS_H_
#define PASSES_FACTS_LAYER_FACTS_H_

#include "family.h"
#include "lib_api.h"

namespace passes {

/// A boolean attribute and its value for nodes without it. Always false without a key.
struct Flag {
  const char* key;
  bool preset;
  bool of(const Node& node) const { return key != nullptr && boolAttr(&node, key, preset); }
};

/// The layout of a layer's weights.
enum class WeightOrder {
  kOutputsFirst,  ///< (channels, inputs of a group, kernel...)
  kInputsFirst,   ///< (inputs, channels of a group, kernel...)
  kMatrixByFlag,  ///< (channels, inputs) with transB, else (inputs, channels): ONNX's Gemm
};

/// The axis of the channels in a layer's result.
enum class ChannelAxis {
  kLayout,   ///< the C of the attribute layout, or axis 1
  kSecond,   ///< axis 1: the result has two axes
  kFlatten,  ///< axis 1 of two with the attribute flatten, else the last axis
  kLast,     ///< the last axis
};

/// A layer that is linear in its weights. Inputs: data, weight, bias.
struct LayerFacts {
  const char* family;
  const char* op;
  WeightOrder weight;
  ChannelAxis channels;
  const char* groups;      ///< attribute, for kInputsFirst
  Flag has_bias;           ///< attribute for the presence of a bias
  Flag no_bias;            ///< attribute for its absence
  const char* activation;  ///< attribute that names a function of the result, or null
  const char* kernel;      ///< attribute that names another order of the weights, or null
  const char* usual;       ///< the value of `kernel` for the order `weight`
};

/// Batch normalization. Input 0 is the data; missing parameters are 1 or 0.
struct NormFacts {
  const char* family;
  const char* op;
  std::size_t scale, shift, mean, variance;  ///< inputs
  const char* epsilon;
  double epsilon_preset;
  Flag unit_scale;  ///< the scale counts as 1, whatever its values
  Flag has_scale;   ///< off: the scale counts as 1. Without a key: on
  Flag has_shift;   ///< off: the shift counts as 0. Without a key: on
  bool axis;        ///< whether there is an attribute axis; otherwise the axis is 1
};

/// Returns the facts for a node; null for other nodes.
const LayerFacts* findLayer(const Family& family, const Node& node);
const NormFacts* findNorm(const Family& family, const Node& node);

/// Whether a node uses the statistics of the batch even outside training, the default in old
/// operator sets of ONNX.
bool usesBatchStatistics(const Family& family, const Node& norm);

}  // namespace passes

#endif  // PASSES_FACTS_LAYER_FACTS_H_
