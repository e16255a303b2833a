// ================================================================================================
// DLPack 0.2, which MXTensor carries
// ================================================================================================

namespace mxnet {
namespace ext {
namespace dlpack {

enum DLDeviceType {
  kDLCPU = 1,
  kDLGPU = 2,
  kDLCPUPinned = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLExtDev = 12
};

struct DLContext {
  DLDeviceType device_type;
  int device_id;
};

/// The last two are not in 0.2; the codes are those of later versions of DLPack.
enum DLDataTypeCode { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLBfloat = 4U, kDLBool = 6U };

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLContext ctx;
  int ndim;
  DLDataType dtype;
  int64_t* shape;    ///< borrowed from the MXTensor that holds this
  int64_t* strides;  ///< always null: compact, row-major
  uint64_t byte_offset;
};

}  // namespace dlpack
}  // namespace ext
}  // namespace mxnet

#if !defined(PASSLIB_NO_GLOBAL_DLPACK) && !defined(DLPACK_DLPACK_H_) && !defined(DLPACK_VERSION)
using namespace mxnet::ext::dlpack;  // MXNet's header has these names in the global namespace
#endif
