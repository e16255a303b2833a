// A linear layer with its parameters at hand.
#ifndef PASSES_LAYER_H_
#define PASSES_LAYER_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "family.h"
#include "layer_facts.h"
#include "lib_api.h"

namespace passes {

/// Why a node stays as it is.
class LeftAlone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// y = scale * x + shift, for every channel.
struct Affine {
  explicit Affine(std::size_t channels) : scale(channels, 1.0), shift(channels, 0.0) {}
  std::vector<double> scale;
  std::vector<double> shift;
};

/// Number of an attribute; `preset` where there is none. Throws LeftAlone for what is no number.
double numberAttribute(const Node& node, const char* key, double preset);

/// The data of an input that is a parameter: dense real numbers. Throws LeftAlone where it is not.
const MXTensor& parameterOf(const Family& family, const Node& node, std::size_t input);

/// Whether a node has an input of this number that is not left out.
bool hasInput(const Node& node, std::size_t input);

class Layer {
 public:
  /// Throws LeftAlone for a layer that cannot take a normalization in.
  Layer(const Family& family, Node* layer, const LayerFacts& facts);

  Node& node() const { return *node_; }
  std::size_t channels() const { return channels_; }
  bool hasBias() const { return hasInput(*node_, 2); }

  /// Throws LeftAlone unless an axis, counted from the end if negative, is known to be that of the
  /// channels.
  void requireChannels(int axis) const;

  /// What the weight must be multiplied by, see setScaled, and the bias that the layer must have,
  /// to give scale * y + shift where this one gives y.
  std::vector<double> weightFactors(const Affine& affine) const;
  std::vector<double> biasFor(const Affine& affine) const;

  /// Sets the attributes that tell of a bias of which all values count.
  void declareBias() const;

 private:
  bool isTransposedMatrix() const { return boolAttribute(*node_, "transB", false); }
  std::vector<double> bias() const;
  int inferredRank() const;

  const Family& family_;
  Node* node_;
  const LayerFacts& facts_;
  std::vector<int64_t> shape_;  // of the weight
  std::size_t groups_ = 1;
  std::size_t channels_ = 0;
};

}  // namespace passes

#endif  // PASSES_LAYER_H_
