// DLPrimitives' networks to graphs, for files without anything that Python must look at.
#ifndef PASSLIB_DIALECTS_DLPRIM_FILE_H_
#define PASSLIB_DIALECTS_DLPRIM_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace passlib::dlprim {

/// A tensor's element type and shape, by a number that is the same for the same ones.
using Spec = int;
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// An input of a network: its type, and the attributes that state it.
struct Input {
  Spec spec = 0;
  Attributes attributes;
};

/// What follows from type, options and input types of an operator.
struct Inferred {
  Attributes attributes;  ///< its options
  Spec output = 0;
  std::vector<Spec> parameters;
  bool is_alias = false;  ///< the output is another name of the first input's memory
};

/// What is known of operators. A function returns nothing for what has to be looked at.
struct Schema {
  std::function<std::optional<Input>(std::string_view dtype, const std::vector<int64_t>& shape)>
      input;
  /// Called once for equal arguments. `options` is the text of an object.
  std::function<std::optional<Inferred>(std::string_view op, std::string_view options,
                                        const std::vector<Spec>& inputs)>
      infer;
};

/// Names of attributes that nodes get.
struct Notes {
  std::string place;
  std::string tensor;
  std::string frozen;
};

struct File {
  std::unique_ptr<Graph> graph;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::pair<std::size_t, Spec>> parameters;  ///< place of the node, and type
};

/// Reads a sound network in which no tensor is read by one name after its memory was written to by
/// another, and whose names are unique. Returns nothing for any other file, a wrong one too.
std::optional<File> readPlain(std::string_view text, const Schema& schema, const Notes& notes,
                              std::size_t max_depth);

}  // namespace passlib::dlprim

#endif  // PASSLIB_DIALECTS_DLPRIM_FILE_H_
