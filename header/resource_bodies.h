// ---- resources ---------------------------------------------------------------------------------

PASSLIB_DEMANDED MXTensor* Node::alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx,
                                           MXDType dtype) {
  PassResource* const resource = _passResource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_arg on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_arg(name, shape, ctx, dtype);
  return tensor;
}

PASSLIB_DEMANDED MXTensor* Node::alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx,
                                           MXDType dtype) {
  PassResource* const resource = _passResource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_aux on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_aux(name, shape, ctx, dtype);
  return tensor;
}

PASSLIB_DEMANDED MXTensor* PassResource::allocate(int is_arg, const std::string& name,
                                                  const std::vector<int64_t>& shape,
                                                  const MXContext& ctx, MXDType dtype) {
  if (name.find('\0') != std::string::npos) {
    throw std::runtime_error("a parameter named " + detail::quoted(name.c_str()) +
                             " and more after a NUL byte cannot be allocated: rename its node");
  }
  void* data = nullptr;
  {
    const detail::Mutex::Guard lock(mutex_);
    nd_malloc_(nd_alloc_, shape.data(), static_cast<int>(shape.size()), ctx.dev_type.c_str(),
               ctx.dev_id, static_cast<int>(dtype), name.c_str(), is_arg, &data);
  }
  if (data == nullptr) {
    throw std::runtime_error(std::string("the host did not allocate ") +
                             (is_arg != 0 ? "arg " : "aux ") + detail::quoted(name));
  }
  return hold(name, MXTensor(data, shape, dtype, 0, ctx));
}

PASSLIB_DEMANDED MXTensor* PassResource::hold(const std::string& name, const MXTensor& made) {
  detail::Owner<Made> held(new Made{name, made, made});
  const detail::Mutex::Guard lock(mutex_);
  made_.push(held.get());
  return &held.release()->tensor;
}

PASSLIB_DEMANDED const MXTensor* Node::readTensor() {
  PassResource* const resource = _passResource();
  if (tensor != nullptr && resource != nullptr) resource->_read(name, tensor);
  return tensor;
}

PASSLIB_DEMANDED bool Node::_scaleArg(const MXTensor& source, const std::vector<double>& factors) {
  PassResource* const resource = _passResource();
  if (resource == nullptr || resource->_scale(source, factors, &name) != PassResource::kFinite) {
    return false;
  }
  tensor = resource->_scaled(name, source);
  return true;
}

namespace detail {

/// What Node::readTensor() asks. Hosts set it once, before they run anything else.
struct WeightSource {
  readWeight_t read;
  scaleWeight_t scale;
  static WeightSource* get() {
    static WeightSource source = {nullptr, nullptr};
    return &source;
  }
};

}  // namespace detail

PASSLIB_DEMANDED void PassResource::_read(const std::string& name, MXTensor* tensor) {
  const detail::WeightSource* source = detail::WeightSource::get();
  const detail::Mutex::Guard lock(mutex_);
  if (tensor->data_ptr != nullptr || source->read == nullptr) return;
  detail::ParamTable::Lent* lent = nullptr;
  for (detail::ParamTable* table : params_) {
    if (lent == nullptr && table != nullptr) lent = table->find(tensor);
  }
  if (lent == nullptr || lent->number == 0) return;
  const void* data = nullptr;
  source->read(nd_alloc_, lent->number, &data);
  if (data == nullptr && tensor->size() != 0) {
    throw std::runtime_error("the host did not read the parameter " + detail::quoted(name));
  }
  lent->data = const_cast<void*>(data);
  tensor->data_ptr = lent->data;
  tensor->dltensor.data = lent->data;
}

PASSLIB_DEMANDED PassResource::Scaling PassResource::_scale(const MXTensor& source,
                                                            const std::vector<double>& factors,
                                                            const std::string* name) {
  const detail::WeightSource* host = detail::WeightSource::get();
  const detail::Mutex::Guard lock(mutex_);
  if (source.verID == 0 || source.data_ptr != nullptr || host->scale == nullptr) {
    return kNotOnDemand;
  }
  return static_cast<Scaling>(host->scale(nd_alloc_, source.verID, factors.data(), factors.size(),
                                          name == nullptr ? nullptr : name->c_str()));
}

namespace detail {

/// Entry `index` of a list in text form, where a nested list is one entry.
PASSLIB_ON_DEMAND std::string listEntry(const std::string& text, unsigned index, const char* what) {
  const std::size_t size = text.size();
  if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
    std::size_t start = 1;
    int depth = 0;
    for (std::size_t pos = 1; pos < size; ++pos) {
      if (depth == 0 && (text[pos] == ',' || pos == size - 1)) {
        if (index == 0 && pos > start) return text.substr(start, pos - start);
        if (index == 0) break;
        --index;
        start = pos + 1;
      }
      if (text[pos] == '[') ++depth;
      if (text[pos] == ']') --depth;
    }
  }
  throw std::out_of_range(std::string(what) + ": no such entry in " + text);
}

}  // namespace detail

PASSLIB_DEMANDED std::string getShapeAt(const std::string& shape, unsigned index) {
  return detail::listEntry(shape, index, "getShapeAt");
}

PASSLIB_DEMANDED std::string getDtypeAt(const std::string& dtype, unsigned index) {
  return detail::listEntry(dtype, index, "getDtypeAt");
}

inline void OpResource::alloc_sparse(MXSparse* sparse, int index, int indices_len,
                                     int indptr_len) const {
  sparse_malloc_(sparse_alloc_, index, indices_len, indptr_len, &sparse->data, &sparse->indices,
                 &sparse->indptr);
  sparse->indices_len = indices_len;
  sparse->indptr_len = indptr_len;
  if (indptr_len > 0) sparse->data_len = indices_len;
}
