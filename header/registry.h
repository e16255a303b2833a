// ---- registries --------------------------------------------------------------------------------

namespace detail {

// Connect the entry points of operators and partitioners to their code, which a library that
// registers none does not contain.
inline void install(const CustomPass*);
inline void install(const PassDeclaration*);
inline void install(const CustomOp*);
inline void install(const CustomPartitioner*);

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
    ValueType* const entry = new ValueType(name);
    entries_.push_back(entry);
    detail::install(entry);
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
