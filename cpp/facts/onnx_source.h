// The contents of an ONNX file: types and constants of its variables, and its functions.
#ifndef PASSLIB_FACTS_ONNX_SOURCE_H_
#define PASSLIB_FACTS_ONNX_SOURCE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/facts.h"
#include "graph/text_table.h"
#include "onnx/original/originals.h"

namespace passlib::facts {

/// The shape that a variable states over that of the file, if it is known. Open sizes have the
/// names that the variable states, else those of the file.
std::optional<Shape> statedShape(const Node& variable, const std::optional<Shape>& of_file);

/// Answers what Facts ask of an ONNX file. Keeps the file's originals.
class OnnxSource {
 public:
  explicit OnnxSource(std::shared_ptr<const onnx::Originals> originals);

  /// Describes a variable of the file; an empty fact for one that passes made.
  Fact describe(const Node& variable) const;
  /// Returns what the file states of an output of one of its operators; null if it states nothing.
  const Fact* stated(const Node& node, std::size_t output);
  /// The same of a value of its main graph by its name.
  const Fact* stated(std::string_view value);
  /// Whether the file omits an output of one of its operators.
  bool isOmitted(const Node& node, std::size_t output) const;
  /// Returns a function of the model; null if there is none.
  const Function* function(std::string_view domain, std::string_view name);

  /// Returns settings that refer to this object.
  Settings settings(Opsets opsets, bool with_stated);

 private:
  struct Read;
  using Types = TextViewMap<Fact>;
  const Types& typesOf(const onnx::OriginalGraph& graph);
  void collectFunctions();

  std::shared_ptr<const onnx::Originals> originals_;
  std::unordered_map<const onnx::OriginalGraph*, Types> types_;
  bool collected_ = false;
  TextMap<onnx::Bytes> messages_;  ///< of functions, by domain and name
  TextMap<std::shared_ptr<Read>> read_;
};

/// Makes the content of a constant from elements in memory; null for types that are not followed.
std::shared_ptr<const Content> elementsContent(Type type, const char* data, std::size_t count);
/// The fact of a constant whose elements lie in memory; its content too if they are few. `data`:
/// null for unknown elements.
Fact constantFact(Type type, Shape shape, const char* data);
/// Reads a TypeProto.
Fact typeFact(onnx::Bytes type);
/// Reads a TensorProto: its type and shape, and its elements if they are few and in the file.
Fact tensorFact(onnx::Bytes tensor);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_ONNX_SOURCE_H_
