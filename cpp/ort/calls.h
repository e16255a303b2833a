// Calls of ONNX Runtime, whose errors become exceptions.
#ifndef PASSLIB_ORT_CALLS_H_
#define PASSLIB_ORT_CALLS_H_

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ort/abi.h"

namespace passlib {

/// ONNX Runtime refused a call, or something in a model cannot be passed to a library.
struct OrtError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An element type in ONNX Runtime's form, and dimensions, of which -1 is unknown.
struct TensorType {
  int element = kOrtAnyType;
  std::vector<int64_t> shape;
};

/// The functions of ONNX Runtime that are used. Its table outlives all sessions.
class OrtCalls {
 public:
  explicit OrtCalls(const OrtApi& api);

  OrtStatus* failure(int code, const std::string& message) const;
  /// The same for any version of the table.
  static OrtStatus* failureOf(const OrtApi& api, int code, const std::string& message);

  /// The value of an entry of session options; "" if there is none.
  std::string configEntry(const OrtSessionOptions* options, const char* name) const;
  OrtCustomOpDomain* createDomain(const char* name) const;
  void addOperator(OrtCustomOpDomain* domain, const OrtCustomOp* op) const;
  void addDomain(OrtSessionOptions* options, OrtCustomOpDomain* domain) const;

  // A node, when its kernel is made.
  std::string nodeName(const OrtKernelInfo* info) const;
  std::size_t inputCount(const OrtKernelInfo* info) const;
  std::size_t outputCount(const OrtKernelInfo* info) const;
  /// The element type of an input or output; kOrtAnyType if it is no tensor.
  int inputElement(const OrtKernelInfo* info, std::size_t index) const;
  int outputElement(const OrtKernelInfo* info, std::size_t index) const;
  /// An attribute that is a text; "" if there is none.
  std::string attribute(const OrtKernelInfo* info, const char* name) const;

  // A node, when it runs.
  std::size_t inputCount(const OrtKernelContext* context) const;
  std::size_t outputCount(const OrtKernelContext* context) const;
  /// Null for an input that the node does not have.
  const OrtValue* input(const OrtKernelContext* context, std::size_t index) const;
  /// Allocates an output; null if nothing reads it.
  OrtValue* output(OrtKernelContext* context, std::size_t index,
                   const std::vector<int64_t>& shape) const;
  TensorType typeOf(const OrtValue* value) const;
  void* dataOf(const OrtValue* value) const;

  // A node, when shapes are inferred.
  std::size_t inputCount(const OrtShapeInferContext* context) const;
  TensorType inputType(const OrtShapeInferContext* context, std::size_t index) const;
  std::string attribute(const OrtShapeInferContext* context, const char* name) const;
  void setOutputType(const OrtShapeInferContext* context, std::size_t index,
                     const TensorType& type) const;

 private:
  void check(OrtStatus* status) const;
  /// Whether a call succeeded whose failure is an answer.
  bool succeeded(OrtStatus* status) const;
  TensorType read(const OrtTensorTypeAndShapeInfo* info) const;
  int elementOf(OrtTypeInfo* type) const;

  OrtStatus* (*create_status_)(int code, const char* message);
  const char* (*error_message_)(const OrtStatus* status);
  void (*release_status_)(OrtStatus* status);
  OrtStatus* (*create_domain_)(const char* name, OrtCustomOpDomain** out);
  OrtStatus* (*add_operator_)(OrtCustomOpDomain* domain, const OrtCustomOp* op);
  OrtStatus* (*add_domain_)(OrtSessionOptions* options, OrtCustomOpDomain* domain);
  OrtStatus* (*has_entry_)(const OrtSessionOptions* options, const char* name, int* out);
  OrtStatus* (*entry_)(const OrtSessionOptions* options, const char* name, char* out,
                       std::size_t* size);
  OrtStatus* (*tensor_data_)(OrtValue* value, void** out);
  OrtStatus* (*cast_type_)(const OrtTypeInfo* type, const OrtTensorTypeAndShapeInfo** out);
  OrtStatus* (*create_tensor_type_)(OrtTensorTypeAndShapeInfo** out);
  OrtStatus* (*set_element_)(OrtTensorTypeAndShapeInfo* info, int element);
  OrtStatus* (*set_dimensions_)(OrtTensorTypeAndShapeInfo* info, const int64_t* shape,
                                std::size_t count);
  OrtStatus* (*element_)(const OrtTensorTypeAndShapeInfo* info, int* out);
  OrtStatus* (*dimensions_count_)(const OrtTensorTypeAndShapeInfo* info, std::size_t* out);
  OrtStatus* (*dimensions_)(const OrtTensorTypeAndShapeInfo* info, int64_t* out, std::size_t count);
  OrtStatus* (*value_type_)(const OrtValue* value, OrtTensorTypeAndShapeInfo** out);
  void (*release_type_)(OrtTypeInfo* type);
  void (*release_tensor_type_)(OrtTensorTypeAndShapeInfo* info);
  OrtStatus* (*kernel_attribute_)(const OrtKernelInfo* info, const char* name, char* out,
                                  std::size_t* size);
  OrtStatus* (*kernel_inputs_)(const OrtKernelInfo* info, std::size_t* out);
  OrtStatus* (*kernel_outputs_)(const OrtKernelInfo* info, std::size_t* out);
  OrtStatus* (*kernel_input_type_)(const OrtKernelInfo* info, std::size_t index, OrtTypeInfo** out);
  OrtStatus* (*kernel_output_type_)(const OrtKernelInfo* info, std::size_t index,
                                    OrtTypeInfo** out);
  OrtStatus* (*node_name_)(const OrtKernelInfo* info, char* out, std::size_t* size);
  OrtStatus* (*context_inputs_)(const OrtKernelContext* context, std::size_t* out);
  OrtStatus* (*context_outputs_)(const OrtKernelContext* context, std::size_t* out);
  OrtStatus* (*context_input_)(const OrtKernelContext* context, std::size_t index,
                               const OrtValue** out);
  OrtStatus* (*context_output_)(OrtKernelContext* context, std::size_t index, const int64_t* shape,
                                std::size_t count, OrtValue** out);
  OrtStatus* (*infer_inputs_)(const OrtShapeInferContext* context, std::size_t* out);
  OrtStatus* (*infer_input_)(const OrtShapeInferContext* context, std::size_t index,
                             OrtTensorTypeAndShapeInfo** out);
  OrtStatus* (*infer_attribute_)(const OrtShapeInferContext* context, const char* name,
                                 const OrtOpAttr** out);
  OrtStatus* (*infer_output_)(const OrtShapeInferContext* context, std::size_t index,
                              const OrtTensorTypeAndShapeInfo* info);
  OrtStatus* (*read_attribute_)(const OrtOpAttr* attribute, int kind, void* out, std::size_t size,
                                std::size_t* needed);
};

}  // namespace passlib

#endif  // PASSLIB_ORT_CALLS_H_
