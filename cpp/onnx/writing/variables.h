// Variables of a graph as inputs, initializers and constants.
#ifndef PASSLIB_ONNX_WRITING_VARIABLES_H_
#define PASSLIB_ONNX_WRITING_VARIABLES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnx/naming/names.h"
#include "onnx/types/changes.h"
#include "onnx/writing/host.h"

namespace passlib::onnx {

/// Whether and how an initializer is in a file next to the model.
enum class External : uint8_t { kNo, kUnchanged, kChanged };

/// An initializer as it is written.
struct WrittenInitializer {
  uint64_t order = 0;
  Bytes name;
  Bytes message;                       ///< without `data`
  Bytes data;                          ///< raw data that follows the message as a field, if `aside`
  const Computed* computed = nullptr;  ///< in place of `data`
  bool aside = false;     ///< the elements are those of an array, and not in the message
  bool original = false;  ///< `message` is that of the file, with its elements
  bool given = false;     ///< the array is a parameter, not a constant of the file
  Bytes array;            ///< name of the variable or constant that has the elements
  External external = External::kNo;
};

/// Collects the inputs, initializers and constants of one graph.
class Variables {
 public:
  Variables(const Draft& draft, const Names& names, WriteHost* host, Changes* changes, Arena* arena)
      : draft_(draft),
        names_(names),
        host_(*host),
        changes_(*changes),
        arena_(*arena),
        is_main_(draft.is_main) {
    initializers_.reserve(draft.file.initializers.size());
  }

  /// Adds a variable. Returns the message of the node, if it is a constant node of the file; else
  /// null. Throws GraphError, UnsupportedError, and what the host throws.
  Bytes add(std::size_t position);

  /// Adds a constant of the file that no node stands for any more. Returns as `add`.
  Bytes restore(const Original& original);

  // The results, in order.

  /// New initializers included if `with_new`.
  std::vector<Bytes> inputs(bool with_new);
  std::vector<WrittenInitializer> initializers();
  std::vector<Bytes> sparse();

 private:
  using Numbered = std::pair<uint64_t, Bytes>;

  void addUntied(std::size_t position, const Original* original, bool given);
  Bytes retyped(const Node& node, const Original& original);
  void keep(uint64_t order, const Original& original, Bytes name);
  void make(uint64_t order, Bytes variable, Bytes name, const GivenArray& array,
            const Original* original);
  Bytes makeConstant(const Original& original, Bytes name, const GivenArray* array);
  Bytes typed(Bytes name, const GivenArray& like);
  Bytes typed(Bytes name, const StatedType& type);

  const Draft& draft_;
  const Names& names_;
  WriteHost& host_;
  Changes& changes_;
  Arena& arena_;
  bool is_main_;  ///< values of nested graphs stay
  std::vector<Numbered> inputs_;
  std::vector<Bytes> new_inputs_;  ///< descriptions of new initializers
  std::vector<WrittenInitializer> initializers_;
  std::vector<Numbered> sparse_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_VARIABLES_H_
