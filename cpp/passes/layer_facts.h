// What each family calls the layers that can be folded, and how they keep their weights.
#ifndef PASSES_LAYER_FACTS_H_
#define PASSES_LAYER_FACTS_H_

#include "family.h"
#include "lib_api.h"

namespace passes {

/// An attribute that is on or off, and what it is where a node does not have it. Without a key it
/// is off.
struct Flag {
  const char* key;
  bool preset;
  bool of(const Node& node) const { return key != nullptr && boolAttribute(node, key, preset); }
};

/// How the weights of a layer lie.
enum class WeightOrder {
  kOutputsFirst,  ///< (channels, inputs of a group, kernel...)
  kInputsFirst,   ///< (inputs, channels of a group, kernel...)
  kMatrixByFlag,  ///< (channels, inputs) with transB, else (inputs, channels): ONNX's Gemm
};

/// Where the channels of a layer's result are.
enum class ChannelAxis {
  kLayout,   ///< where the attribute layout has its C, or axis 1
  kSecond,   ///< axis 1: the result has two axes
  kFlatten,  ///< axis 1 of two with the attribute flatten, else the last axis
  kLast,     ///< the last axis, of however many there are
};

/// A layer that is linear in its weights. Inputs: data, weight, bias.
struct LayerFacts {
  const char* family;
  const char* op;
  WeightOrder weight;
  ChannelAxis channels;
  const char* groups;      ///< attribute, for kInputsFirst
  Flag has_bias;           ///< attribute that says there is a bias
  Flag no_bias;            ///< attribute that says there is none
  const char* activation;  ///< attribute that names a function of the result, or null
  const char* kernel;      ///< attribute that names another order of the weights, or null
  const char* usual;       ///< the value of it that is `weight`
};

/// Batch normalization. Input 0 is the data; parameters that the node lacks are 1 or 0.
struct NormFacts {
  const char* family;
  const char* op;
  std::size_t scale, shift, mean, variance;  ///< inputs
  const char* epsilon;
  double epsilon_preset;
  Flag unit_scale;  ///< the scale counts as 1, whatever its values
  Flag has_scale;   ///< off: the same. Without a key: on
  Flag has_shift;   ///< off: the shift counts as 0. Without a key: on
  bool axis;        ///< whether the attribute axis says which one, else 1
};

/// The row of a node; null for other nodes.
const LayerFacts* findLayer(const Family& family, const Node& node);
const NormFacts* findNorm(const Family& family, const Node& node);

/// Whether a node normalizes with the statistics of the batch even outside training, as old
/// operator sets of ONNX do unless told otherwise.
bool usesBatchStatistics(const Family& family, const Node& norm);

}  // namespace passes

#endif  // PASSES_LAYER_FACTS_H_
