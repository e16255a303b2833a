// The part of ONNX Runtime's C interface that operators need, declared here because its header is
// no part of this project. ONNX Runtime only ever appends to its tables.
#ifndef PASSLIB_ORT_ABI_H_
#define PASSLIB_ORT_ABI_H_

#include <cstddef>
#include <cstdint>

// Objects of ONNX Runtime.
struct OrtStatus;
struct OrtSessionOptions;
struct OrtCustomOpDomain;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtShapeInferContext;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtOpAttr;

/// The table of functions up to version 17 of the interface; OrtCalls names those that are used.
struct OrtApi {
  static constexpr std::size_t kCount = 276;
  void (*functions[kCount])();
};

struct OrtApiBase {
  /// Returns null for a version that this ONNX Runtime does not have.
  const OrtApi* (*get_api)(uint32_t version);
  const char* (*version_text)();
};

/// An operator as ONNX Runtime registers it, in version 17. A null status means success.
struct OrtCustomOp {
  uint32_t version;
  void* (*create_kernel)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info);
  const char* (*name)(const OrtCustomOp* op);
  const char* (*provider)(const OrtCustomOp* op);
  int (*input_type)(const OrtCustomOp* op, std::size_t index);
  std::size_t (*input_count)(const OrtCustomOp* op);
  int (*output_type)(const OrtCustomOp* op, std::size_t index);
  std::size_t (*output_count)(const OrtCustomOp* op);
  void (*compute)(void* kernel, OrtKernelContext* context);
  void (*destroy_kernel)(void* kernel);
  int (*input_characteristic)(const OrtCustomOp* op, std::size_t index);
  int (*output_characteristic)(const OrtCustomOp* op, std::size_t index);
  int (*input_memory)(const OrtCustomOp* op, std::size_t index);
  int (*fewest_inputs)(const OrtCustomOp* op);
  int (*inputs_alike)(const OrtCustomOp* op);
  int (*fewest_outputs)(const OrtCustomOp* op);
  int (*outputs_alike)(const OrtCustomOp* op);
  OrtStatus* (*create_kernel_checked)(const OrtCustomOp* op, const OrtApi* api,
                                      const OrtKernelInfo* info, void** kernel);
  OrtStatus* (*compute_checked)(void* kernel, OrtKernelContext* context);
  OrtStatus* (*infer_shapes)(const OrtCustomOp* op, OrtShapeInferContext* context);
  int (*first_version)(const OrtCustomOp* op);
  int (*last_version)(const OrtCustomOp* op);
};

namespace passlib {

/// The oldest version with everything that is used: errors from kernels, and inference of shapes.
constexpr uint32_t kOrtVersion = 17;

// Values of its enumerations.
constexpr int kOrtFail = 1;             ///< an error code
constexpr int kOrtInvalidArgument = 2;  ///< an error code
constexpr int kOrtVariadic = 2;         ///< a characteristic of inputs or outputs
constexpr int kOrtAnyType = 0;          ///< an element type that is not stated
constexpr int kOrtAttributeText = 5;    ///< a kind of attribute

}  // namespace passlib

#endif  // PASSLIB_ORT_ABI_H_
