#include "ort/calls.h"

namespace passlib {
namespace {

/// Sets a member to the function at a place of the table.
template <typename Function>
void take(const OrtApi& api, std::size_t place, Function* member) {
  *member = reinterpret_cast<Function>(api.functions[place]);
}

}  // namespace

OrtCalls::OrtCalls(const OrtApi& api) {
  // Version 1 of the interface.
  take(api, 0, &create_status_);         // CreateStatus
  take(api, 2, &error_message_);         // GetErrorMessage
  take(api, 26, &create_domain_);        // CreateCustomOpDomain
  take(api, 27, &add_operator_);         // CustomOpDomain_Add
  take(api, 28, &add_domain_);           // AddCustomOpDomain
  take(api, 51, &tensor_data_);          // GetTensorMutableData
  take(api, 55, &cast_type_);            // CastTypeInfoToTensorInfo
  take(api, 57, &create_tensor_type_);   // CreateTensorTypeAndShapeInfo
  take(api, 58, &set_element_);          // SetTensorElementType
  take(api, 59, &set_dimensions_);       // SetDimensions
  take(api, 60, &element_);              // GetTensorElementType
  take(api, 61, &dimensions_count_);     // GetDimensionsCount
  take(api, 62, &dimensions_);           // GetDimensions
  take(api, 65, &value_type_);           // GetTensorTypeAndShape
  take(api, 87, &kernel_attribute_);     // KernelInfoGetAttribute_string
  take(api, 88, &context_inputs_);       // KernelContext_GetInputCount
  take(api, 89, &context_outputs_);      // KernelContext_GetOutputCount
  take(api, 90, &context_input_);        // KernelContext_GetInput
  take(api, 91, &context_output_);       // KernelContext_GetOutput
  take(api, 93, &release_status_);       // ReleaseStatus
  take(api, 98, &release_type_);         // ReleaseTypeInfo
  take(api, 99, &release_tensor_type_);  // ReleaseTensorTypeAndShapeInfo
  // Version 14.
  take(api, 230, &kernel_inputs_);       // KernelInfo_GetInputCount
  take(api, 231, &kernel_outputs_);      // KernelInfo_GetOutputCount
  take(api, 234, &kernel_input_type_);   // KernelInfo_GetInputTypeInfo
  take(api, 235, &kernel_output_type_);  // KernelInfo_GetOutputTypeInfo
  take(api, 237, &has_entry_);           // HasSessionConfigEntry
  take(api, 238, &entry_);               // GetSessionConfigEntry
  // Version 15.
  take(api, 244, &node_name_);  // KernelInfo_GetNodeName
  // Version 17.
  take(api, 267, &infer_inputs_);     // ShapeInferContext_GetInputCount
  take(api, 268, &infer_input_);      // ShapeInferContext_GetInputTypeShape
  take(api, 269, &infer_attribute_);  // ShapeInferContext_GetAttribute
  take(api, 270, &infer_output_);     // ShapeInferContext_SetOutputTypeShape
  take(api, 272, &read_attribute_);   // ReadOpAttr
}

OrtStatus* OrtCalls::failure(int code, const std::string& message) const {
  return create_status_(code, message.c_str());
}

OrtStatus* OrtCalls::failureOf(const OrtApi& api, int code, const std::string& message) {
  decltype(create_status_) create = nullptr;
  take(api, 0, &create);
  return create(code, message.c_str());
}

void OrtCalls::check(OrtStatus* status) const {
  if (status == nullptr) return;
  const std::string message = error_message_(status);
  release_status_(status);
  throw OrtError(message);
}

bool OrtCalls::succeeded(OrtStatus* status) const {
  if (status == nullptr) return true;
  release_status_(status);
  return false;
}

std::string OrtCalls::configEntry(const OrtSessionOptions* options, const char* name) const {
  int has = 0;
  check(has_entry_(options, name, &has));
  if (has == 0) return "";
  std::size_t size = 0;
  check(entry_(options, name, nullptr, &size));
  std::string text(size, '\0');  // with the NUL byte at the end
  check(entry_(options, name, text.data(), &size));
  return text.c_str();
}

OrtCustomOpDomain* OrtCalls::createDomain(const char* name) const {
  OrtCustomOpDomain* domain = nullptr;
  check(create_domain_(name, &domain));
  return domain;
}

void OrtCalls::addOperator(OrtCustomOpDomain* domain, const OrtCustomOp* op) const {
  check(add_operator_(domain, op));
}

void OrtCalls::addDomain(OrtSessionOptions* options, OrtCustomOpDomain* domain) const {
  check(add_domain_(options, domain));
}

std::string OrtCalls::nodeName(const OrtKernelInfo* info) const {
  std::size_t size = 0;
  check(node_name_(info, nullptr, &size));
  std::string text(size, '\0');
  check(node_name_(info, text.data(), &size));
  return text.c_str();
}

std::size_t OrtCalls::inputCount(const OrtKernelInfo* info) const {
  std::size_t count = 0;
  check(kernel_inputs_(info, &count));
  return count;
}

std::size_t OrtCalls::outputCount(const OrtKernelInfo* info) const {
  std::size_t count = 0;
  check(kernel_outputs_(info, &count));
  return count;
}

int OrtCalls::elementOf(OrtTypeInfo* type) const {
  const std::unique_ptr<OrtTypeInfo, void (*)(OrtTypeInfo*)> owned(type, release_type_);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  check(cast_type_(type, &tensor));
  int element = kOrtAnyType;
  if (tensor != nullptr) check(element_(tensor, &element));
  return element;
}

int OrtCalls::inputElement(const OrtKernelInfo* info, std::size_t index) const {
  OrtTypeInfo* type = nullptr;
  return succeeded(kernel_input_type_(info, index, &type)) ? elementOf(type) : kOrtAnyType;
}

int OrtCalls::outputElement(const OrtKernelInfo* info, std::size_t index) const {
  OrtTypeInfo* type = nullptr;
  return succeeded(kernel_output_type_(info, index, &type)) ? elementOf(type) : kOrtAnyType;
}

std::string OrtCalls::attribute(const OrtKernelInfo* info, const char* name) const {
  std::size_t size = 0;
  if (!succeeded(kernel_attribute_(info, name, nullptr, &size)) || size == 0) return "";
  std::string text(size, '\0');
  check(kernel_attribute_(info, name, text.data(), &size));
  text.pop_back();
  return text;
}

std::size_t OrtCalls::inputCount(const OrtKernelContext* context) const {
  std::size_t count = 0;
  check(context_inputs_(context, &count));
  return count;
}

std::size_t OrtCalls::outputCount(const OrtKernelContext* context) const {
  std::size_t count = 0;
  check(context_outputs_(context, &count));
  return count;
}

const OrtValue* OrtCalls::input(const OrtKernelContext* context, std::size_t index) const {
  const OrtValue* value = nullptr;
  check(context_input_(context, index, &value));
  return value;
}

OrtValue* OrtCalls::output(OrtKernelContext* context, std::size_t index,
                           const std::vector<int64_t>& shape) const {
  OrtValue* value = nullptr;
  check(context_output_(context, index, shape.data(), shape.size(), &value));
  return value;
}

TensorType OrtCalls::read(const OrtTensorTypeAndShapeInfo* info) const {
  TensorType type;
  check(element_(info, &type.element));
  std::size_t count = 0;
  check(dimensions_count_(info, &count));
  type.shape.resize(count);
  check(dimensions_(info, type.shape.data(), count));
  return type;
}

TensorType OrtCalls::typeOf(const OrtValue* value) const {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(value_type_(value, &info));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owned(
      info, release_tensor_type_);
  return read(info);
}

void* OrtCalls::dataOf(const OrtValue* value) const {
  void* data = nullptr;
  check(tensor_data_(const_cast<OrtValue*>(value), &data));
  return data;
}

std::size_t OrtCalls::inputCount(const OrtShapeInferContext* context) const {
  std::size_t count = 0;
  check(infer_inputs_(context, &count));
  return count;
}

TensorType OrtCalls::inputType(const OrtShapeInferContext* context, std::size_t index) const {
  OrtTensorTypeAndShapeInfo* info = nullptr;  // of the context
  check(infer_input_(context, index, &info));
  return read(info);
}

std::string OrtCalls::attribute(const OrtShapeInferContext* context, const char* name) const {
  const OrtOpAttr* found = nullptr;
  if (!succeeded(infer_attribute_(context, name, &found)) || found == nullptr) return "";
  std::size_t size = 0;
  // Without memory it states the size, and is an error.
  if (!succeeded(read_attribute_(found, kOrtAttributeText, nullptr, 0, &size)) && size == 0) {
    return "";
  }
  std::string text(size, '\0');
  check(read_attribute_(found, kOrtAttributeText, text.data(), text.size(), &size));
  return text;
}

void OrtCalls::setOutputType(const OrtShapeInferContext* context, std::size_t index,
                             const TensorType& type) const {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(create_tensor_type_(&info));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owned(
      info, release_tensor_type_);
  check(set_element_(info, type.element));
  check(set_dimensions_(info, type.shape.data(), type.shape.size()));
  check(infer_output_(context, index, info));
}

}  // namespace passlib
