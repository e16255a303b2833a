// A node of a library's operator as a kernel of ONNX Runtime.
#ifndef PASSLIB_ORT_KERNEL_H_
#define PASSLIB_ORT_KERNEL_H_

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "ort/calls.h"
#include "ort/node.h"

namespace passlib {

/// The attribute of nodes that holds the operator's own attributes.
constexpr const char* kAttributes = "attributes";
/// The attribute of nodes that run a subgraph that holds its types: see StatedTypes.
constexpr const char* kTypes = "subgraph_types";

/// Runs one node in any number of threads. Behind the operator's outputs, a node may have one for
/// each input that the operator writes to, which gets the new content.
class Kernel {
 public:
  Kernel(const OrtCalls& calls, const CustomOp& op, const OrtKernelInfo* info);
  void compute(OrtKernelContext* context);

 private:
  std::shared_ptr<const Settled> settled(const std::vector<std::vector<int64_t>>& shapes);
  void computeSettled(const Settled& settled, const std::vector<void*>& data,
                      OrtKernelContext* context);

  const OrtCalls& calls_;
  LibraryNode node_;
  std::vector<int> input_types_;      ///< by MXNet's codes
  std::vector<int> output_elements_;  ///< as the model states them
  std::mutex mutex_;                  ///< of recent_
  std::list<std::shared_ptr<const Settled>> recent_;
  std::mutex running_;  ///< held while an operator with a state runs
};

}  // namespace passlib

#endif  // PASSLIB_ORT_KERNEL_H_
