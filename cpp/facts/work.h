// Estimates of the arithmetic and the memory traffic of one run, for operators of all dialects.
#ifndef PASSLIB_FACTS_WORK_H_
#define PASSLIB_FACTS_WORK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "facts/file_facts.h"
#include "header.h"

namespace passlib::facts {

/// The size of a value, with open dimensions counted as 1.
struct ValueSize {
  std::optional<std::vector<int64_t>> dims;  ///< nothing if the rank is unknown
  int64_t item = 4;                          ///< bytes of an element

  int64_t elements() const;
  int64_t bytes() const;
};

/// Estimates for a node; numbers beyond int64 are its largest.
struct Work {
  int64_t flops = 0;    ///< a multiply-add counts as two
  int64_t read = 0;     ///< bytes, weights included; 0 for views
  int64_t written = 0;  ///< bytes; 0 for views
  int64_t weights = 0;  ///< bytes of weights among the inputs
  int64_t live = 0;     ///< bytes of all results and inputs that are alive while the node runs
};

/// Estimates the work of each node of a graph, without nested graphs. A result is alive from the
/// node that makes it to the last one that reads it or a view of it. `sizeOf`: of an output of a
/// node. `isWeight`: whether a variable is a weight.
std::vector<Work> worksOf(const Graph& graph,
                          const std::function<ValueSize(const NodeEntry&)>& sizeOf,
                          const std::function<bool(const Node&)>& isWeight);

/// The same of a graph with facts.
std::vector<Work> worksOf(const FileFacts& known, const std::function<bool(const Node&)>& isWeight);

/// The sums of the operators of a graph.
struct TotalWork {
  int64_t flops = 0;
  int64_t traffic = 0;  ///< bytes read and written
};
TotalWork totalOf(const Graph& graph, const std::vector<Work>& works);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_WORK_H_
