// The questions of the writer to its caller: arrays, and attributes made from text.
#ifndef PASSLIB_ONNX_WRITING_HOST_H_
#define PASSLIB_ONNX_WRITING_HOST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/types/messages.h"

namespace passlib::onnx {

/// An attribute made from its text: a message, or the place of one in the file, `<id>/<name>`.
struct MadeAttribute {
  std::string message;
  std::optional<std::string> place;
};

/// Inferred types of one graph that replace those of the file, by name.
struct RenewedTypes {
  std::map<std::string, std::optional<std::string>> values;  ///< TypeProtos; null: unknown
  std::map<std::string, std::string> outputs;                ///< TypeProtos
};

/// Parameters and attributes of the main graph. Functions may throw anything.
class WriteHost {
 public:
  virtual ~WriteHost() = default;

  /// Whether a variable has a parameter.
  virtual bool has(Bytes variable) = 0;
  /// Whether a parameter equals a constant of the file in type, shape and every bit.
  virtual bool same(Bytes variable, Bytes constant) = 0;
  /// Returns a parameter.
  virtual GivenArray array(Bytes variable) = 0;
  /// Whether passes see a constant of the file as an array.
  virtual bool isInFile(Bytes constant) = 0;
  /// Returns its type and shape; false if they do not.
  virtual bool inFile(Bytes constant, GivenArray* array) = 0;
  /// Returns the type of a variable that becomes an input, whatever it is in the file; or null.
  virtual const StatedType* fed(Bytes variable) = 0;
  /// Returns the type that a variable states; `code` is the element type where it states none.
  virtual StatedType stated(const Node& variable, std::optional<int32_t> code) = 0;
  /// Makes an attribute of a type, 0 for that of the operator's schema.
  virtual MadeAttribute attribute(const Node& node, Bytes key, Bytes text, int kind) = 0;
  /// Returns the key of the attribute that nodes do not get in the file; empty if there is none.
  /// Attributes of this key that the file has are kept.
  virtual Bytes omitted() const = 0;
  /// Returns the types of the results of a node to be stated in the file, in their order; or null.
  virtual const std::vector<StatedType>* results(const Node& node) = 0;
  /// Returns the inferred types of a graph of the model that is written, by its place; or null.
  virtual const RenewedTypes* renewed(const std::string& place) = 0;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_HOST_H_
