// ================================================================================================
// Data types, contexts, tensors
// ================================================================================================

/// Element types, by MXNet's codes.
enum MXDType {
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
  kUNSET = 100,
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
  PASSLIB_ON_DEMAND bool isSame(const MXTensor& other) const;

  void* data_ptr;  ///< for sparse storage: an MXSparse
  std::vector<int64_t> shape;
  MXDType dtype;
  size_t verID;  ///< raised when the host knows that the data changed
  MXContext ctx;
  dlpack::DLTensor dltensor;  ///< the same tensor for users of DLPack
  MXStorageType stype;
};

PASSLIB_SMALL_CODE
