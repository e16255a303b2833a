// Weights multiplied by factors.
#ifndef PASSES_WEIGHT_SCALING_H_
#define PASSES_WEIGHT_SCALING_H_

#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// A parameter that gets other elements.
struct NewWeight {
  Node* node;
  MXTensor like;  ///< shape, type and device of the new tensor
  bool is_new;    ///< the node was made for it, with a tensor

  /// Returns the tensor to write to.
  MXTensor* tensor() const;
};

/// The elements of a parameter, each of as many equal runs of them as there are factors multiplied
/// by one. Where the host can do that, they are not in memory before they are needed.
class WeightScaling {
 public:
  WeightScaling(Node* parameter, const std::vector<double>& factors);

  /// Whether all elements are finite, and stay finite.
  bool isFinite() const { return finite_; }
  /// Makes them the elements of a parameter, which may be the same one.
  void apply(const NewWeight& target) const;

 private:
  MXTensor old_;  // a copy: a new tensor takes its place
  const std::vector<double>& factors_;
  bool on_demand_;
  bool finite_;
};

}  // namespace passes

#endif  // PASSES_WEIGHT_SCALING_H_
