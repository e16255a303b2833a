// Names that nothing else in a graph has.
#ifndef PASSLIB_GRAPH_NAME_SOURCE_H_
#define PASSLIB_GRAPH_NAME_SOURCE_H_

#include <string>

#include "graph/text_table.h"

namespace passlib {

/// Generates names that are not in use yet, in constant time each on average.
class NameSource {
 public:
  void use(const std::string& name) { used_.insert(name); }

  /// Claims a name: `wish` itself if it is free, or `wish` followed by a number.
  std::string fresh(const std::string& wish) {
    std::string name = wish;
    int& count = counts_[wish];
    while (!used_.insert(name).second) name = wish + "_" + std::to_string(++count);
    return name;
  }

 private:
  TextSet used_;
  TextMap<int> counts_;
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NAME_SOURCE_H_
