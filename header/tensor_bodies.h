// ---- tensors -----------------------------------------------------------------------------------

inline void MXSparse::set(void* data_ptr, const int64_t* dims, int ndims, void* idx,
                          int64_t num_idx, void* idx_ptr, int64_t num_idx_ptr) {
  data = data_ptr;
  // A row-sparse tensor stores whole rows, a CSR matrix single values.
  data_len = num_idx;
  if (idx_ptr == nullptr) {
    for (int pos = 1; pos < ndims; ++pos) data_len *= dims[pos];
  }
  indices = reinterpret_cast<int64_t*>(idx);
  indices_len = num_idx;
  indptr = reinterpret_cast<int64_t*>(idx_ptr);
  indptr_len = num_idx_ptr;
}

inline MXTensor::MXTensor()
    : data_ptr(nullptr), dtype(kUNSET), verID(0), dltensor(), stype(kDefaultStorage) {}

inline MXTensor::MXTensor(const MXTensor& other)
    : data_ptr(other.data_ptr),
      shape(other.shape),
      dtype(other.dtype),
      verID(other.verID),
      ctx(other.ctx),
      dltensor(other.dltensor),
      stype(other.stype) {
  dltensor.shape = shape.data();  // the copy's own shape, not the original's
}

inline MXTensor& MXTensor::operator=(const MXTensor& other) {
  data_ptr = other.data_ptr;
  shape = other.shape;
  dtype = other.dtype;
  verID = other.verID;
  ctx = other.ctx;
  dltensor = other.dltensor;
  dltensor.shape = shape.data();
  stype = other.stype;
  return *this;
}

inline MXTensor::MXTensor(void* data, std::vector<int64_t> tensor_shape, MXDType type, size_t vID,
                          MXContext context, MXStorageType storage_type)
    : data_ptr(data),
      shape(std::move(tensor_shape)),
      dtype(type),
      verID(vID),
      ctx(std::move(context)),
      dltensor(),
      stype(storage_type) {
  setDLTensor();
}

inline void MXTensor::setTensor(void* data, MXDType type, const int64_t* dims, int ndims,
                                size_t vID, MXContext context, MXStorageType storage_type) {
  data_ptr = data;
  dtype = type;
  shape.assign(dims, dims + ndims);
  verID = vID;
  ctx = std::move(context);
  stype = storage_type;
  setDLTensor();
}

inline void MXTensor::setDLTensor() {
  struct DType {
    MXDType type;
    uint8_t code;
    uint8_t bits;
  };
  static const DType table[] = {
      {kFloat32, dlpack::kDLFloat, 32}, {kFloat64, dlpack::kDLFloat, 64},
      {kFloat16, dlpack::kDLFloat, 16}, {kBfloat16, dlpack::kDLBfloat, 16},
      {kUint8, dlpack::kDLUInt, 8},     {kUint16, dlpack::kDLUInt, 16},
      {kUint32, dlpack::kDLUInt, 32},   {kUint64, dlpack::kDLUInt, 64},
      {kInt8, dlpack::kDLInt, 8},       {kInt16, dlpack::kDLInt, 16},
      {kInt32, dlpack::kDLInt, 32},     {kInt64, dlpack::kDLInt, 64},
      {kBool, dlpack::kDLBool, 8},
  };
  const DType* found = nullptr;
  for (const DType& known : table) {
    if (known.type == dtype) found = &known;
  }
  if (found == nullptr) {
    detail::failCall("MXTensor: unknown dtype code %d", static_cast<int>(dtype));
  }
  dltensor.data = data_ptr;
  dltensor.ndim = static_cast<int>(shape.size());
  dltensor.shape = shape.data();
  dltensor.strides = nullptr;
  dltensor.byte_offset = 0;
  dltensor.dtype.code = found->code;
  dltensor.dtype.bits = found->bits;
  dltensor.dtype.lanes = 1;
  dltensor.ctx.device_id = ctx.dev_id;
  dltensor.ctx.device_type = ctx.dev_type == "cpu"   ? dlpack::kDLCPU
                             : ctx.dev_type == "gpu" ? dlpack::kDLGPU
                                                     : dlpack::kDLExtDev;
}

inline int64_t MXTensor::size() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

inline bool MXTensor::isSame(const MXTensor& other) const {
  return data_ptr == other.data_ptr && dtype == other.dtype && verID == other.verID &&
         ctx.dev_type == other.ctx.dev_type && ctx.dev_id == other.ctx.dev_id &&
         shape == other.shape && stype == other.stype;
}
