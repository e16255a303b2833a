// Linear layers whose parameters are known.
#ifndef PASSES_LAYER_H_
#define PASSES_LAYER_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "facts/family.h"
#include "facts/layer_facts.h"
#include "lib_api.h"

namespace passes {

/// The reason why a node is left unchanged. Attributes that cannot be read are one, too: catch
/// their common base.
class LeftAlone : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// y = scale * x + shift, for every channel.
struct Affine {
  explicit Affine(std::size_t channels) : scale(channels, 1.0), shift(channels, 0.0) {}
  std::vector<double> scale;
  std::vector<double> shift;
};

/// Returns a parameter: a dense array of real numbers. Throws LeftAlone for other inputs.
const MXTensor& parameterOf(const Node& node, std::size_t input);

/// Returns the elements of a parameter in row-major order. Throws LeftAlone for other inputs.
std::vector<double> elementsOf(const Node& node, std::size_t input);

/// Whether a node has an input of this number that is not omitted.
bool hasInput(const Node& node, std::size_t input);

class Layer {
 public:
  /// Throws LeftAlone for a layer that cannot absorb a normalization.
  Layer(const Family& family, Node* layer, const LayerFacts& facts);

  Node& node() const { return *node_; }
  std::size_t channels() const { return channels_; }
  bool hasBias() const { return hasInput(*node_, 2); }

  /// Throws LeftAlone unless `axis`, counted from the end if negative, is known to be the axis of
  /// the channels.
  void requireChannels(int64_t axis) const;

  /// The factors of the weight, see setScaled, and the bias with which the layer computes
  /// scale * y + shift instead of y.
  std::vector<double> weightFactors(const Affine& affine) const;
  std::vector<double> biasFor(const Affine& affine) const;

  /// Sets the attributes for a bias with one value per channel.
  void declareBias() const;

 private:
  bool isTransposedMatrix() const { return boolAttr(node_, "transB", false); }
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
