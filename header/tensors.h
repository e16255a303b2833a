// ================================================================================================
// Tensors and parameters
// ================================================================================================

/// Element types, by MXNet's codes.
enum MXDType : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kInt16 = 8,
  kUint16 = 9,
  kUint32 = 10,
  kUint64 = 11,
  kBfloat16 = 12,
  kUNSET = 100,  ///< unknown
};

enum MXStorageType {
  kDefaultStorage = 0,    ///< dense
  kRowSparseStorage = 1,  ///< some rows and their numbers
  kCSRStorage = 2,        ///< compressed sparse rows
};

/// The device of a tensor. The default is no device.
struct MXContext {
  MXContext() : dev_type("error"), dev_id(-1) {}
  explicit MXContext(std::string device, int number)
      : dev_type(std::move(device)), dev_id(number) {}
  explicit MXContext(const char* device, int number) : dev_type(device), dev_id(number) {}
  static MXContext CPU(int number = 0) { return MXContext("cpu", number); }
  static MXContext GPU(int number = 0) { return MXContext("gpu", number); }

  std::string dev_type;
  int dev_id;
};

/// The data of a sparse tensor; all pointers are borrowed from the host.
struct MXSparse {
  void* data = nullptr;
  int64_t data_len = 0;  ///< number of values
  /// CSR: column of each value. Row sparse: number of each stored row.
  int64_t* indices = nullptr;
  int64_t indices_len = 0;
  /// CSR: the start of each row in data, then the end of the last. Row sparse: null.
  int64_t* indptr = nullptr;
  int64_t indptr_len = 0;

  void set(void* data_ptr, const int64_t* dims, int ndims, void* idx, int64_t num_idx,
           void* idx_ptr = nullptr, int64_t num_idx_ptr = 0);
};

// DLPack 0.2. The names are in the global namespace too, see PASSLIB_NO_GLOBAL_DLPACK.
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

/// A tensor whose memory the host owns. Dense data is compact and row-major.
struct MXTensor {
  MXTensor();
  MXTensor(const MXTensor& other);
  MXTensor& operator=(const MXTensor& other);
  MXTensor(void* data, std::vector<int64_t> shape, MXDType dtype, size_t vID, MXContext ctx,
           MXStorageType stype = kDefaultStorage);

  void setTensor(void* data, MXDType type, const int64_t* dims, int ndims, size_t vID,
                 MXContext context, MXStorageType storage_type = kDefaultStorage);
  /// Updates dltensor from the other members. Throws std::runtime_error for a dtype without a
  /// DLPack equivalent.
  void setDLTensor();

  template <typename ValueType>
  ValueType* data() {
    return reinterpret_cast<ValueType*>(data_ptr);
  }
  template <typename ValueType>
  const ValueType* data() const {
    return reinterpret_cast<const ValueType*>(data_ptr);
  }
  /// Number of elements: the product of the shape, 1 for a scalar.
  int64_t size() const;
  /// Whether both refer to the same memory with the same shape, dtype and version.
  bool isSame(const MXTensor& other) const;

  void* data_ptr;  ///< for sparse storage: an MXSparse
  std::vector<int64_t> shape;
  MXDType dtype;
  size_t verID;  ///< raised when the host knows that the data changed
  MXContext ctx;
  dlpack::DLTensor dltensor;  ///< the same tensor for users of DLPack
  MXStorageType stype;
};

class PassResource;

/// The shape of a value. That of a scalar is known and has no extents.
struct ValueShape {
  ValueShape() : known(false) {}
  explicit ValueShape(std::vector<int64_t> sizes) : known(true), extents(std::move(sizes)) {}
  /// Whether rank and all extents are known.
  bool complete() const {
    bool all = known;
    for (std::size_t pos = 0; pos < extents.size(); ++pos) all = all && extents[pos] != -1;
    return all;
  }
  bool known;                    ///< whether the rank is known
  std::vector<int64_t> extents;  ///< -1: unknown. Empty if the rank is unknown, and for a scalar
};

/// Returns what is known of a value's shape: that of a parameter's tensor; else what the host
/// inferred before the pass (MX_STR_SHAPE); else what the model states of a variable. Threads may
/// call it.
ValueShape shapeOf(const NodeEntry& value);
/// Returns the element type of a value in the same way; kUNSET if it is unknown. Threads may call
/// it.
MXDType typeOf(const NodeEntry& value);

/// Whether a node is a weight, a constant or a state of the model: a variable whose value is the
/// same in every run. True also for parameters whose arrays the pass does not get. False for inputs
/// of the model, also if the caller gave arrays for them, as far as the node or its consumers show.
/// Threads may call it.
bool isParameter(const Node* node);
/// Adds a parameter with a new tensor, see Node::alloc_arg. A number follows `name` if a node has
/// that name already. Throws std::runtime_error as alloc_arg does.
Node* addParameter(Graph* graph, const std::string& name, const std::vector<int64_t>& shape,
                   MXDType type, const MXContext& ctx = MXContext::CPU());
/// Makes a variable a weight with the elements of `source`, which is on demand, multiplied by
/// `factors`: each factor scales one of as many equal runs of elements. The host may compute them
/// later, so that weights need not fit in memory; the tensor of the node has no elements. Returns
/// false and changes nothing if the host cannot do that; use alloc_arg then.
bool scaleParameter(Node* node, const MXTensor& source, const std::vector<double>& factors);
/// Returns what the host lends to the running pass; null if no pass runs. Threads may call it.
PassResource* runningPass();
