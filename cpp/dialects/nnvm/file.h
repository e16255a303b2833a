// NNVM's graph JSON to a graph, for files without anything that Python must look at.
#ifndef PASSLIB_DIALECTS_NNVM_FILE_H_
#define PASSLIB_DIALECTS_NNVM_FILE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/text_table.h"

namespace passlib::nnvm {

/// A top-level member of a file, and where its value stands.
struct Member {
  std::string key;
  std::size_t start;
  std::size_t end;
};

struct File {
  std::unique_ptr<Graph> graph;
  std::vector<Member> members;  ///< besides those that define the graph
};

struct Conventions {
  std::string place;               ///< the attribute that has the number of a node
  TextMap<std::string> per_entry;  ///< types of the graph attributes with a value for each output
  std::size_t max_depth;
};

/// Reads a file whose nodes are in order, state their numbers of outputs and are named uniquely,
/// without nested graphs and control dependencies. Returns nothing for any other file, a wrong one
/// too.
std::optional<File> readPlain(std::string_view text, const Conventions& conventions);

}  // namespace passlib::nnvm

#endif  // PASSLIB_DIALECTS_NNVM_FILE_H_
