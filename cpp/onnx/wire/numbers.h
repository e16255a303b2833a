// Numbers of the fields of onnx.proto that are read.
#ifndef PASSLIB_ONNX_WIRE_NUMBERS_H_
#define PASSLIB_ONNX_WIRE_NUMBERS_H_

#include <cstdint>

namespace passlib::onnx::numbers {

/// Before this version of IR, each initializer is an input of the graph as well.
constexpr int64_t kInputsAlso = 4;

// ModelProto
constexpr uint32_t kIrVersion = 1, kProducerName = 2, kProducerVersion = 3, kGraph = 7,
                   kOpsetImport = 8, kModelMetadata = 14, kTrainingInfo = 20, kFunctions = 25;
// TrainingInfoProto
constexpr uint32_t kInitialization = 1, kAlgorithm = 2, kInitializationBinding = 3,
                   kUpdateBinding = 4;
// OperatorSetIdProto
constexpr uint32_t kSetDomain = 1, kSetVersion = 2;
// GraphProto
constexpr uint32_t kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12,
                   kValueInfo = 13, kAnnotation = 14, kSparseInitializer = 15, kGraphMetadata = 16;
// ValueInfoProto
constexpr uint32_t kValueName = 1, kValueType = 2;
// TypeProto, TypeProto.Tensor, TensorShapeProto, its Dimension, TypeProto.Map
constexpr uint32_t kTensorType = 1, kSequenceType = 4, kMapType = 5, kOpaqueType = 7,
                   kSparseType = 8, kOptionalType = 9, kElementType = 1, kShape = 2, kDim = 1,
                   kDimValue = 1, kDimParam = 2, kKeyType = 1, kMapValueType = 2;
// TensorAnnotation
constexpr uint32_t kTensorNameOf = 1, kParameterNames = 2;
// StringStringEntryProto
constexpr uint32_t kKey = 1, kValue = 2;
// NodeProto
constexpr uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOpType = 4, kAttribute = 5,
                   kDocString = 6, kDomain = 7, kOverload = 8, kMetadata = 9;
// FunctionProto
constexpr uint32_t kFunctionName = 1, kFunctionInput = 4, kFunctionOutput = 5,
                   kFunctionAttribute = 6, kFunctionNode = 7, kFunctionImport = 9,
                   kFunctionDomain = 10, kFunctionAttributeProto = 11, kFunctionValueInfo = 12,
                   kFunctionOverload = 13;
// AttributeProto
constexpr uint32_t kName = 1, kF = 2, kI = 3, kS = 4, kT = 5, kG = 6, kFloats = 7, kInts = 8,
                   kStrings = 9, kTensors = 10, kGraphs = 11, kTp = 14, kTypeProtos = 15,
                   kType = 20, kRefAttrName = 21, kSparseTensor = 22, kSparseTensors = 23;
// TensorProto
constexpr uint32_t kDims = 1, kDataType = 2, kSegment = 3, kFloatData = 4, kInt32Data = 5,
                   kStringData = 6, kInt64Data = 7, kTensorName = 8, kRawData = 9, kDoubleData = 10,
                   kUint64Data = 11, kExternalData = 13, kDataLocation = 14;
// SparseTensorProto
constexpr uint32_t kValues = 1, kIndices = 2, kSparseDims = 3;

}  // namespace passlib::onnx::numbers

#endif  // PASSLIB_ONNX_WIRE_NUMBERS_H_
