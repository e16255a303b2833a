// ================================================================================================
// Registration
// ================================================================================================

namespace detail {

/// Installs what the entry points of a kind of entry call, when the first one is registered.
template <typename ValueType, typename Unused = void>
struct Calls {
  static void install() {}
};

}  // namespace detail

/// The entries that a library registered, in order; one registry per type and library, which lives
/// until the process ends.
template <class ValueType>
class Registry {
 public:
  static Registry* get() {
    static Registry* const instance = new Registry();
    return instance;
  }
  /// Adds an entry. The reference stays valid.
  ValueType& add(const char* name) {
    detail::Calls<ValueType>::install();
    entries_.reserve(1);
    ValueType* const entry = new ValueType(name);
    entries_.push(entry);
    return *entry;
  }
  int size() const { return static_cast<int>(entries_.size()); }
  const ValueType& get(int idx) const { return *entries_[checked(idx)]; }
  ValueType& get(int idx) { return *entries_[checked(idx)]; }

 private:
  Registry() {}
  std::size_t checked(int idx) const {
    if (idx < 0 || idx >= size()) throw std::out_of_range("there is no such entry");
    return static_cast<std::size_t>(idx);
  }
  detail::PlainList<ValueType*> entries_;
};

#define MX_STR_CONCAT_(__a, __b) __a##__b
#define MX_STR_CONCAT(__a, __b) MX_STR_CONCAT_(__a, __b)
#define MX_STRINGIFY(x) #x
#define MX_TOSTRING(x) MX_STRINGIFY(x)

#define MX_REGISTER_NAME_(Name) MXNet##_CustomOp##_##Name
#define MX_REGISTER_DEF_(Name) static mxnet::ext::CustomOp& MX_REGISTER_NAME_(Name)
#define MX_REGISTER_PROP_NAME_(Name) MXNet##_CustomSubProp##_##Name
#define MX_REGISTER_PROP_DEF_(Name) \
  static mxnet::ext::CustomPartitioner& MX_REGISTER_PROP_NAME_(Name)
#define MX_REGISTER_PASS_NAME_(Name) MXNet##_CustomPass##_##Name
#define MX_REGISTER_PASS_DEF_(Name) static mxnet::ext::CustomPass& MX_REGISTER_PASS_NAME_(Name)

/// Registers an operator: REGISTER_OP(my_gemm).setForward(forward, "cpu").setParseAttrs(parse)...
#define REGISTER_OP(Name)                            \
  MX_STR_CONCAT(MX_REGISTER_DEF_(Name), __COUNTER__) \
  __attribute__((unused)) =                          \
      mxnet::ext::Registry<mxnet::ext::CustomOp>::get()->add(MX_TOSTRING(Name))

/// Registers a partitioner: REGISTER_PARTITIONER(mine).addStrategy("first", "my_subgraph_op")...
#define REGISTER_PARTITIONER(Name)                        \
  MX_STR_CONCAT(MX_REGISTER_PROP_DEF_(Name), __COUNTER__) \
  __attribute__((unused)) =                               \
      mxnet::ext::Registry<mxnet::ext::CustomPartitioner>::get()->add(MX_TOSTRING(Name))

/// Registers a pass under a name: REGISTER_PASS(myPass).setBody(myPass);
#define REGISTER_PASS(Name)                               \
  MX_STR_CONCAT(MX_REGISTER_PASS_DEF_(Name), __COUNTER__) \
  __attribute__((unused)) =                               \
      mxnet::ext::Registry<mxnet::ext::CustomPass>::get()->add(MX_TOSTRING(Name))

/// Registers a pass of patterns; lib_patterns.h defines it.
#define PATTERN_PASS(Name, ...)                                                        \
  static_assert(sizeof(#Name) == 0, "PATTERN_PASS needs #include \"lib_patterns.h\""); \
  static void MXNet_PatternsOf_##Name()
