// Details of the header for authors that the host also uses. A host is compiled with this very
// file, so that names here may change with it.
#ifndef PASSLIB_HEADER_H_
#define PASSLIB_HEADER_H_

#ifndef PASSLIB_NO_ENTRY_POINTS
#define PASSLIB_NO_ENTRY_POINTS
#endif
#include "lib_api.h"

namespace mxnet::ext::host {

/// The family of models that a graph states, "mxnet" if it states none.
inline std::string dialectOf(const Graph& graph) { return mxnet::ext::dialectOf(&graph); }
/// Takes an input that is to be replaced out of the list of its producer's consumers.
using detail::dropConsumer;
/// Prefetches what a walk over all nodes reads next.
using detail::prefetchNode;
/// Calls enter(graph) once for a graph and each one nested in it, and visit(graph, node) for its
/// nodes.
template <typename Enter, typename Visit>
void forEachNode(Graph* root, Enter enter, Visit visit) {
  detail::walkGraphs(root, enter, visit);
}
template <typename Visit>
void forEachGraph(Graph* root, Visit visit) {
  root->forEachGraph(visit);
}
using detail::AddressTable;
using detail::declareOutputs;
using detail::hasOutput;
using detail::kNodeMark;
using detail::leaveBlock;
using detail::markNode;
using detail::NodeCount;
using detail::orderNodes;
using detail::takeBackParams;

// Texts.
using detail::parseInteger;
using detail::printDouble;
using detail::printed;
using detail::quoted;
using detail::scanDouble;
using detail::textOf;
using detail::trimmed;
/// Reads a decimal number, or a name of infinity or NaN, in any locale. Returns false for others.
inline bool readReal(const std::string& text, double* number) {
  if (scanDouble(text, number)) return true;
  if (text.find_first_of("0123456789(") != std::string::npos) return false;
  char* end = nullptr;
  *number = strtod(text.c_str(), &end);
  return end != text.c_str() && end == text.c_str() + text.size();
}
/// The bytes of the character at `cursor`, 0 if it is not UTF-8. Reads nothing from `end` on;
/// `cursor` lies before it.
using detail::kIntMax;
using detail::utf8Length;

/// A member of a JSON object; null if there is none, or the value is no object.
inline const JsonVal* memberOf(const JsonVal& value, const char* key) {
  if (value.type != MAP) return nullptr;
  const auto found = value.map.find(JsonVal(key));
  return found == value.map.end() ? nullptr : &found->second;
}

// Attributes as texts, and members of JSON objects.
using detail::AttributeTexts;
using detail::GraphAttributeTexts;
using detail::JsonTree;
using detail::PlainList;

// Readers and writers.
using detail::FlatStore;
using detail::GraphWriter;
using detail::ReaderParts;
using detail::TextBuffer;

}  // namespace mxnet::ext::host

#endif  // PASSLIB_HEADER_H_
