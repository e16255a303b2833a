// ARK's model files to graphs, for files without anything that Python must look at.
#ifndef PASSLIB_DIALECTS_ARK_FILE_H_
#define PASSLIB_DIALECTS_ARK_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/text_table.h"

namespace passlib::ark {

/// What is known of operators and element types, and names of attributes that nodes get.
struct Schema {
  TextSet pure;             ///< operators without effects besides what they write
  TextSet sinks;            ///< operators that write nothing
  TextMap<int> item_sizes;  ///< bytes of an element; 1 for unknown types
  std::string view;         ///< the virtual operator
  std::string place;
  std::string outputs;
  std::string reads;
  std::string effects;
  std::string is_virtual;
  std::string parts;
};

struct File {
  std::unique_ptr<Graph> graph;
  int64_t rank;
  int64_t world_size;
};

/// Reads a model file whose nodes are in order, and whose tensors are results of its ops, or are
/// used while nothing has been written to their buffers. Returns nothing for any other file, a
/// wrong one too.
std::optional<File> readPlain(std::string_view text, const Schema& schema, std::size_t max_depth);

}  // namespace passlib::ark

#endif  // PASSLIB_DIALECTS_ARK_FILE_H_
