#include "weight_scaling.h"

#include "tensor_values.h"

namespace passes {

MXTensor* NewWeight::tensor() const {
  return is_new ? node->tensor : node->alloc_arg(like.shape, like.ctx, like.dtype);
}

WeightScaling::WeightScaling(Node* parameter, const std::vector<double>& factors)
    : old_(*parameter->tensor), factors_(factors) {
  const PassResource::Scaling result = runningPass()->_scale(old_, factors, nullptr);
  on_demand_ = result != PassResource::kNotOnDemand;
  if (!on_demand_) old_ = *parameter->readTensor();
  finite_ = on_demand_ ? result == PassResource::kFinite : scalesToFinite(old_, factors);
}

void WeightScaling::apply(const NewWeight& target) const {
  if (on_demand_ && scaleParameter(target.node, old_, factors_)) return;
  setScaled(target.tensor(), old_, factors_);
}

}  // namespace passes
