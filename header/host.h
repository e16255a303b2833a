// ================================================================================================
// For hosts: what a program that loads libraries shares with the header. No pass needs it.
//
// A host uses nothing else of `detail`. It is compiled with this very file, so names here may
// change with it; what they do is stated here, and is what a change must keep or state anew.
// ================================================================================================

#ifdef PASSLIB_HOST
namespace host {

// Texts.

/// quoted(name): a name as messages spell it.
using detail::quoted;
/// textOf(exception): its text, or a substitute where what() is null.
using detail::textOf;
/// utf8Length(cursor, end): the bytes of the character at `cursor`, 0 if it is not UTF-8. Reads
/// nothing from `end` on; `cursor` lies before it.
using detail::utf8Length;
/// parseInteger(text, size, &value): whether a text is a decimal integer of 64 bits, with nothing
/// around it; leading zeros and -0 count.
using detail::parseInteger;
/// A hash of texts for tables whose keys come from files, which cannot be chosen to collide.
using detail::TextHash;

// Graphs.

/// forEachGraph(root, visit): calls visit(Graph*) once for a graph and each one nested in it, a
/// graph before its own. visit may change nodes, and their number.
using detail::forEachGraph;
/// forEachNode(root, enter, visit): the same, and visit(Graph*, Node*) for the nodes of each.
using detail::forEachNode;
/// dialectOf(graph): the family of models that it states, "mxnet" if it states none.
using detail::dialectOf;
/// dropConsumer(producer, consumer, slot): takes an input that is to be replaced out of the list
/// of the producer's consumers.
using detail::dropConsumer;
/// prefetchNode(nodes, position, member): a hint to the processor, in walks over all nodes.
using detail::prefetchNode;
/// Names of nodes, and which of them is repeated.
using detail::NameTable;
/// A number below 512 that follows from bytes, which may be chosen to collide.
using detail::smallHash;
/// GraphReader(text, size, options).read(graph): as Graph::fromString. onGraph(draft, ordered) is
/// called when a graph has its edges: `draft` has their numbers.
using detail::GraphDraft;
using detail::GraphReader;
/// GraphWriter(pretty, &buffer).write(graph, attributes): writes the JSON of a graph that passed
/// the host's checks.
using detail::GraphWriter;
/// JsonTree(MAP): members of an object, read by JsonReader::_readItem, which become JsonMembers.
using detail::JsonTree;
/// A text in memory that the host gives: size() of its bytes were written.
using detail::TextBuffer;

// Libraries.

/// FlatStore(memory): flatten(graph) sets `model`, the graph in the flat form.
using detail::FlatStore;

}  // namespace host
#endif  // PASSLIB_HOST

}  // namespace passlib_api
}  // namespace ext
