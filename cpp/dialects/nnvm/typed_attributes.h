// Typed attributes of a graph: name, type and value, many with a value for each output of each
// node.
#ifndef PASSLIB_DIALECTS_NNVM_TYPED_ATTRIBUTES_H_
#define PASSLIB_DIALECTS_NNVM_TYPED_ATTRIBUTES_H_

#include <string>
#include <vector>

#include "dialects/plain_json.h"
#include "graph/text_table.h"

namespace passlib::nnvm {

/// Reads them and checks that values are of their types. Returns the numbers of values of those
/// that `per_entry` names, which has their types.
std::vector<std::size_t> readTypedAttributes(PlainJson* json,
                                             const TextMap<std::string>& per_entry);

}  // namespace passlib::nnvm

#endif  // PASSLIB_DIALECTS_NNVM_TYPED_ATTRIBUTES_H_
