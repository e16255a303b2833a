// Values computed exactly as in the file, whose type annotations therefore still hold.
#ifndef PASSLIB_ONNX_TYPES_SETTLED_H_
#define PASSLIB_ONNX_TYPES_SETTLED_H_

#include <optional>
#include <vector>

#include "onnx/naming/names.h"
#include "onnx/types/changes.h"

namespace passlib::onnx {

/// The settled values of one graph. Nodes must be added each after its inputs.
class Settled {
 public:
  Settled(const Draft& draft, const Names& names)
      : draft_(draft), names_(names), origins_(names.of.size()), other_(names.of.size(), false) {}

  bool has(Value value) const { return origins_[names_.place(value)].data() != nullptr; }
  /// Returns the name of a value in the file; null unless it is settled with its elements.
  Bytes origin(Value value) const {
    const std::size_t place = names_.place(value);
    return other_[place] ? Bytes() : origins_[place];
  }

  /// Whether a value has the type of that name in the file. `by_elements`: and the same elements,
  /// where these may determine a shape.
  bool standsFor(Value value, Bytes name, bool by_elements) const;

  /// Adds a variable, whose changes are known already if it is a constant.
  void addVariable(std::size_t position, const Changes& changes);
  /// Adds an operator. `same_attributes`: operator, attributes and nested graphs are written as
  /// they are in the file.
  void addOperator(std::size_t position, bool same_attributes);

 private:
  bool takesTheSame(std::size_t position) const;
  /// Types of values with at least two axes of known sizes, by their names in the file.
  const NameMap<Bytes>& described() const;
  /// Results of weighted operators, and of normalizations of them, which have their type: the name
  /// of the former by that of either.
  const NameMap<Bytes>& weighted() const;

  const Draft& draft_;
  const Names& names_;
  std::vector<Bytes> origins_;
  std::vector<bool> other_;  ///< with the type, but not the elements, that they have in the file
  mutable std::optional<NameMap<Bytes>> described_;
  mutable std::optional<NameMap<Bytes>> weighted_;
};

/// Returns the canonical name of a domain: ONNX's own is empty, also called `ai.onnx`.
inline Bytes plainDomain(Bytes domain) { return domain == "ai.onnx" ? Bytes("") : domain; }

/// Whether an operator of ONNX has a weight as its second input, which has as many axes as the
/// first, and may have a bias after it, which does not affect the type of its result.
bool takesBias(Bytes op, Bytes domain);

/// Whether the types of an operator's outputs may depend on elements of its inputs, not on their
/// types alone.
bool usesElements(Bytes op, Bytes domain);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TYPES_SETTLED_H_
