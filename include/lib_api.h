/*
 * lib_api.h: the header for libraries of graph passes, operators and partitioners.
 *
 * A model is a Graph of Nodes. A pass is a function that changes a Graph. This library registers a
 * pass that replaces each operator "Dropout" by its input:
 *
 *     #include "lib_api.h"
 *
 *     using namespace mxnet::ext;
 *
 *     MXReturnValue dropDropout(Graph* graph, const options_map_t& options) {
 *       std::vector<Node*> unused;
 *       for (Node* node : graph->nodes) {
 *         if (node->op != "Dropout") continue;
 *         graph->replace(NodeEntry(node, 0), node->inputs.at(0));
 *         unused.push_back(node);
 *       }
 *       graph->removeNodes(unused);
 *       return MX_SUCCESS;
 *     }
 *
 *     REGISTER_PASS(dropDropout).setBody(dropDropout);
 *
 *     MXReturnValue initialize(int version) { return MX_SUCCESS; }
 *
 * Compile and run it:
 *
 *     g++ -shared -fPIC -std=c++11 -I include drop_dropout.cc -o libdrop_dropout.so
 *
 *     import passlib
 *     passlib.library.load("libdrop_dropout.so")
 *     model = passlib.load("model.onnx").optimize_for("dropDropout")
 *
 * The library also loads in Apache MXNet 1.9 and 2.0: it implements version 11 of MXNet's extension
 * ABI, and sources written for MXNet's lib_api.h compile unchanged. The header needs C++11 to C++23
 * with GCC or Clang, and no other file. Several source files of a library may include it; all but
 * one define PASSLIB_NO_ENTRY_POINTS first, or none does.
 *
 * Contents: graphs, nodes and attributes; passes, options and REGISTER_PASS; tensors and
 * parameters; uses, orders and shapes of values; operators; partitioners; JSON; errors and
 * MX_ERROR_MSG; and the bodies of all these. Passes in text are in lib_patterns.h, which includes
 * this file. `make header` joins both files from the parts in header/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MXNET_LIB_API_H_
#define MXNET_LIB_API_H_

#if !defined(__cplusplus) || __cplusplus < 201103L
#error "lib_api.h needs C++11 or later: compile with -std=c++11"
#elif !defined(__cpp_exceptions) && !defined(__EXCEPTIONS)
#error "lib_api.h reports errors by exceptions: compile without -fno-exceptions"
#else

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif
#if __cplusplus >= 201703L
#include <charconv>
#endif
#if defined(__NVCC__)
#include <cuda_runtime.h>
#include <curand_kernel.h>
#endif

// Macros that a source may define before it includes this header:
//
//   PASSLIB_NO_ENTRY_POINTS   declare types and helpers only, without exported C functions
//   PASSLIB_PATTERNS          include lib_patterns.h at the end of this header
//   PASSLIB_NO_GLOBAL_DLPACK  keep DLPack's names out of the global namespace
//   PASSLIB_JSON_MAX_DEPTH    nesting limit of JSON texts (default: 1,000,000)

// Only the C functions are exported. Everything else is hidden, so that two libraries in one
// process never share a registry.
#if defined(_WIN32)
#define PASSLIB_EXPORT __declspec(dllexport)
#else
#define PASSLIB_EXPORT __attribute__((visibility("default")))
#endif
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wattributes"  // of author's classes with hidden members
#endif
#pragma GCC visibility push(hidden)

// The form of printf: g++ for Windows would check it for the functions of an old C library.
#if defined(__MINGW32__) && !defined(__clang__)
#define PASSLIB_PRINTF __gnu_printf__
#else
#define PASSLIB_PRINTF __printf__
#endif

namespace mxnet {
namespace ext {
// An inline namespace separates these functions from those of MXNet's own lib_api in one process.
inline namespace passlib_api {

class Graph;
class Node;
class OptionValue;
enum MXDType : int;
struct JsonOptions;
struct JsonVal;
struct MXContext;
struct MXTensor;
struct PassDeclaration;
namespace detail {
class AttributeTexts;
class GraphAttributeTexts;
class GraphMap;
class NodeMarks;
class PatternSession;
}  // namespace detail

/// The result of every function that a library registers.
enum MXReturnValue { MX_FAIL = 0, MX_SUCCESS = 1 };

// ================================================================================================
// Graph and nodes
// ================================================================================================

/// One end of an edge. In Node::inputs and Graph::outputs: the producer and the number of its
/// output. In Node::outputs: the consumer and the number of its input.
struct NodeEntry {
  NodeEntry() : node(nullptr), entry(0), version(0) {}
  NodeEntry(Node* other, int index, int mutations = 0)
      : node(other), entry(index), version(mutations) {}
  bool operator==(const NodeEntry& other) const {
    return node == other.node && entry == other.entry && version == other.version;
  }

  Node* node;
  int entry;
  /// The number of in-place writes to the value before this use: usually 0, 1 for the running mean
  /// of a BatchNorm. Always 0 in Node::outputs.
  int version;
};

/// The text of an attribute: a std::string that refuses numbers, which a std::string would take for
/// characters. Use setAttr or std::to_string for them.
class AttributeText : public std::string {
 public:
  AttributeText() {}
  AttributeText(const char* text) : std::string(text) {}             // NOLINT: implicit
  AttributeText(std::string text) : std::string(std::move(text)) {}  // NOLINT: implicit
  using std::string::operator=;
  using std::string::operator+=;
  void operator=(int number) = delete;
  void operator=(double number) = delete;
  void operator+=(int number) = delete;
  void operator+=(double number) = delete;
};

/// The functions of a std::unordered_map or std::map, which `Self` makes when one of them is first
/// called. As with a map, several threads may read at the same time.
template <typename Self, typename MapType>
class MapFunctions {
 public:
  typedef MapType Map;
  typedef typename Map::key_type key_type;
  typedef typename Map::mapped_type mapped_type;
  typedef typename Map::value_type value_type;
  typedef typename Map::size_type size_type;
  typedef typename Map::difference_type difference_type;
  typedef typename Map::reference reference;
  typedef typename Map::const_reference const_reference;
  typedef typename Map::iterator iterator;
  typedef typename Map::const_iterator const_iterator;

  operator Map&() { return whole(); }
  operator const Map&() const { return whole(); }
  bool empty() const { return self().size() == 0; }
  size_type max_size() const { return whole().max_size(); }
  iterator begin() { return whole().begin(); }
  iterator end() { return self().makeMap().end(); }
  const_iterator begin() const { return whole().begin(); }
  const_iterator end() const { return self().makeMap().end(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  const mapped_type& at(const std::string& key) const { return self().makeMap(key).at(key); }
  iterator find(const std::string& key) { return self().makeMap(key).find(key); }
  const_iterator find(const std::string& key) const { return self().makeMap(key).find(key); }
  std::pair<iterator, iterator> equal_range(const std::string& key);
  std::pair<const_iterator, const_iterator> equal_range(const std::string& key) const;
  template <typename... Keys>  // a key, a place, or two places
  auto erase(const Keys&... keys) -> decltype(std::declval<Map&>().erase(keys...)) {
    return changed().erase(keys...);
  }
  std::pair<iterator, bool> insert(const value_type& item) { return changed().insert(item); }
  void insert(std::initializer_list<value_type> items) { changed().insert(items); }
  template <typename... Items>
  auto insert(Items&&... items)
      -> decltype(std::declval<Map&>().insert(std::forward<Items>(items)...)) {
    return changed().insert(std::forward<Items>(items)...);
  }
  template <typename... Parts>
  std::pair<iterator, bool> emplace(Parts&&... parts);
  template <typename... Parts>
  iterator emplace_hint(const_iterator hint, Parts&&... parts);
  friend bool operator==(const Self& left, const Self& right) { return same(left, right); }
  friend bool operator!=(const Self& left, const Self& right) { return !same(left, right); }
  friend bool operator==(const Self& left, const Map& right) { return left.whole() == right; }
  friend bool operator!=(const Self& left, const Map& right) { return !(left.whole() == right); }
  friend bool operator==(const Map& left, const Self& right) { return right.whole() == left; }
  friend bool operator!=(const Map& left, const Self& right) { return !(right.whole() == left); }
  friend void swap(Self& left, Self& right) noexcept { left.swap(right); }

 protected:
  static bool same(const Self& left, const Self& right) { return left.equals(right); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  Map& whole() const { return self().makeWhole(); }
  Map& changed() { return static_cast<Self&>(*this).changeMap(); }
};

/// The attributes of a node: use them as a std::unordered_map of texts, or through intAttr, setAttr
/// and the like below, which are faster on large graphs because they make no map. __ext_shape__ and
/// __ext_dtype__, the types of the outputs, may be inferred when somebody first reads them.
class NodeAttributes
    : public MapFunctions<NodeAttributes, std::unordered_map<std::string, std::string> > {
 public:
  NodeAttributes() noexcept {}
  NodeAttributes(Map map) { changeMap().swap(map); }  // NOLINT: implicit
  NodeAttributes(std::initializer_list<value_type> items) : NodeAttributes(Map(items)) {}
  NodeAttributes(const NodeAttributes& other);
  NodeAttributes(NodeAttributes&& other) noexcept { swap(other); }
  NodeAttributes& operator=(NodeAttributes other) noexcept;
  ~NodeAttributes() { clear(); }

  size_type size() const;
  size_type count(const std::string& key) const;
  AttributeText& operator[](const std::string& key);
  AttributeText& at(const std::string& key);
  using MapFunctions::at;
  /// Calls visit(key, text) with two std::strings for each attribute, in no fixed order.
  template <typename Visit>
  void forEach(Visit visit) const;
  void reserve(size_type count) { changeMap().reserve(count); }
  void clear() noexcept;
  void swap(NodeAttributes& other) noexcept;
  void swap(Map& other);

 private:
  friend MapFunctions;
  friend class detail::AttributeTexts;
  bool equals(const NodeAttributes& other) const;
  Map& makeMap() const;
  Map& makeMap(const std::string& key) const;
  Map& makeWhole() const;  // with the texts of the types
  Map& changeMap();
  mutable std::atomic<Map*> map_{nullptr};      // if there is one, it has the present attributes
  const uint32_t* packed_ = nullptr;            // the attributes as the host gave them
  uint64_t types_ = 0;                          // as AttributeTexts::offerTypes sets it
  mutable std::atomic<bool> has_types_{false};  // whether the map has their texts
  bool lent_ = false;                           // whether the host owns packed_
};

/// Members of a JSON object: keys, and values as JSON text.
typedef std::vector<std::pair<std::string, std::string> > JsonMembers;

/// The attributes of a graph: use them as a std::map of JSON values.
class GraphAttributes : public MapFunctions<GraphAttributes, std::map<std::string, JsonVal> > {
 public:
  GraphAttributes() noexcept {}
  GraphAttributes(const Map& map);  // NOLINT: implicit
  GraphAttributes(std::initializer_list<value_type> items);
  GraphAttributes(const GraphAttributes& other);
  GraphAttributes(GraphAttributes&& other) noexcept { swap(other); }
  GraphAttributes& operator=(GraphAttributes other) noexcept;
  ~GraphAttributes() { clear(); }

  size_type size() const;
  size_type count(const std::string& key) const;
  JsonVal& operator[](const std::string& key);
  JsonVal& at(const std::string& key);
  using MapFunctions::at;
  iterator lower_bound(const std::string& key);
  iterator upper_bound(const std::string& key);
  const_iterator lower_bound(const std::string& key) const;
  const_iterator upper_bound(const std::string& key) const;
  void clear() noexcept;
  void swap(GraphAttributes& other) noexcept;
  void swap(Map& other);

 private:
  friend MapFunctions;
  friend class detail::GraphAttributeTexts;
  bool equals(const GraphAttributes& other) const;
  Map& makeMap() const;
  Map& makeMap(const std::string&) const { return makeMap(); }
  Map& makeWhole() const { return makeMap(); }
  Map& changeMap() { return makeMap(); }
  mutable std::atomic<detail::GraphMap*> map_{nullptr};  // as in NodeAttributes
  JsonMembers texts_;                                    // as they were read, sorted by key
};

/// An operator, or a variable ("null"): an input or a parameter of the model.
class Node {
 public:
  std::string op;
  std::string name;
  MXTensor* tensor = nullptr;  ///< data of a parameter while a pass runs, or null
  std::vector<NodeEntry> inputs;
  std::vector<NodeEntry> outputs;
  std::vector<Graph*> subgraphs;  ///< owned by the node's graph
  NodeAttributes attrs;
  std::vector<Node*> control_deps;  ///< nodes that must run before this one
  /// Number of outputs, hidden ones included; 0 if unknown. A lower bound after a change of `op`.
  int num_outputs = 0;
  JsonMembers extra;  ///< members of the node's JSON object without a counterpart here

  /// Allocates a tensor for this variable and makes it a parameter of the model: a weight
  /// (alloc_arg) or an auxiliary state (alloc_aux). After the pass the caller's args or aux have it
  /// under this node's name. The host owns the memory, which is zero in passlib and uninitialised
  /// in MXNet. Each call returns another MXTensor, valid until the pass returns; the last of a name
  /// is the parameter. The pass fails if it changes the shape, dtype or data pointer of a tensor.
  /// Threads may call it for different nodes. Throws std::runtime_error if no pass runs, or if the
  /// caller gave no dictionary for new parameters.
  MXTensor* alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype);
  MXTensor* alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype);
  /// Returns `tensor` with its elements, or null if there is none. A pass that declares
  /// weightsOnDemand gets elements here, and only reads them. They stay valid until the pass
  /// returns. Threads may call it. Throws std::runtime_error if the host has no memory for them.
  const MXTensor* readTensor();

  // A host puts many nodes into one block, which delete of one node does not release.
  static void* operator new(std::size_t size);
  static void* operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept;
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* node) noexcept;

 private:
  friend class detail::NodeMarks;
  uint32_t marks_ = 0;
};

/// A model: nodes, and those of their outputs that are the model's.
///
/// The graph owns its nodes. An edge is stored on both sides: in `inputs` of the consumer and in
/// `outputs` of the producer. connect, replace, insertAfter and removeNode maintain both; code that
/// writes to the vectors directly must do the same.
///
/// Threads of a pass may read one graph at the same time. While one thread changes it, no other may
/// use it.
class Graph {
 public:
  Graph() {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::vector<Node*> nodes;
  std::vector<Node*> inputs;       ///< the variables
  std::vector<NodeEntry> outputs;  ///< the model's outputs ("heads")
  /// Top-level keys of the JSON other than nodes, arg_nodes, node_row_ptr and heads.
  GraphAttributes attrs;

  size_t size() const { return nodes.size(); }
  Node* getNode(size_t idx) { return nodes.at(idx); }
  const Node* getNode(size_t idx) const { return nodes.at(idx); }
  /// Throws std::out_of_range if there is no such attribute.
  const JsonVal& getAttr(const std::string& key) const;

  /// Adds a node without edges.
  Node* addNode(const std::string& name, const std::string& op);
  /// Connects output `producer_output` of `producer` to input `consumer_input` of `consumer`, whose
  /// former edge it replaces. A number equal to the count of inputs appends one. Throws
  /// std::out_of_range beyond that, and std::invalid_argument for a null node.
  void connect(Node* producer, int producer_output, Node* consumer, int consumer_input);
  /// Replaces `from` by `target` in inputs of nodes and outputs of the graph. Uses by the node of
  /// `target` itself stay, so a new node is inserted after an old one by connecting it first.
  /// Returns the number of replaced uses. Throws std::invalid_argument for a null node.
  std::size_t replace(const NodeEntry& from, const NodeEntry& target);
  /// Inserts a chain of new nodes behind a value: the first takes the value as input 0, each other
  /// takes output 0 of the one before it, and all former uses of the value take output 0 of the
  /// last. Returns the number of these uses. Throws std::invalid_argument for a null node.
  std::size_t insertAfter(const NodeEntry& value, const std::vector<Node*>& chain);
  /// Removes a node with all its edges: consumers lose that input, the graph loses those outputs.
  /// Call replace first to substitute another value. The node's memory lives as long as the graph.
  /// Throws std::invalid_argument for a node that is not in the graph. Linear in the size of the
  /// graph, as is removeNodes for any number of nodes.
  void removeNode(Node* node) { removeNodes(std::vector<Node*>(1, node)); }
  void removeNodes(const std::vector<Node*>& unwanted);

  /// Returns all nodes, each after the nodes it takes input from: in their own order if it is
  /// topological. Throws GraphStructureError for a cycle and for edges to nodes outside the graph.
  std::vector<Node*> sorted() const;
  /// Returns all nodes, each before the nodes it takes input from, as MXNet does.
  std::vector<Node*> topological_sort() const;
  /// Calls handler on each node after all consumers of its outputs.
  void DFS(std::function<void(Node*)> handler) const;
  void _dfs_util(Node* node, std::unordered_set<Node*>* to_visit,
                 std::function<void(Node*)> handler) const;

  /// Calls visit(graph, node) for each node of this graph and of the graphs nested in it: each
  /// graph once, outer graphs first. visit may add nodes, which are visited too.
  template <typename Visit>
  void forEachNode(Visit visit);
  /// Calls visit(graph) for this graph and each graph nested in it.
  template <typename Visit>
  void forEachGraph(Visit visit);

  /// Reads a graph in NNVM's JSON. The caller owns it. Throws JsonError: invalid JSON, a missing
  /// key, a wrong type, an edge out of range, a cycle, two variables of one name.
  static Graph* fromString(const std::string& json);
  static Graph* fromString(const char* text, std::size_t size, const JsonOptions& options);
  static Graph* fromJson(const JsonVal& val);
  /// Returns NNVM's JSON on one line. Nodes keep their order if each comes after its inputs. Throws
  /// GraphStructureError for a cycle and for edges to nodes outside the graph.
  std::string toString() const;
  JsonVal toJson() const;
  /// Appends the JSON to `out`, in the layout of MXNet's Symbol.tojson.
  void writePretty(std::string* out) const;
  /// Prints the graph to std::cout.
  void print(int indent = 0) const;

 private:
  friend class detail::PatternSession;
  void noteOrigin(Node* old, Node* made);
  void noteHeirs(const std::vector<Node*>& removed, const std::unordered_set<Node*>& gone);
  std::vector<Node*> removed_;  // owned, because passes may still point to them
  std::vector<Node*> heirs_;    // replaced nodes, each with the new node that stands for it
};

/// Returns the family of a model: "mxnet", "onnx", "nnvm", "ark", "dlprim" or that of another
/// package. "mxnet" if the host does not say, as MXNet. Threads may call it.
std::string dialectOf(const Graph* graph);

/// Return an attribute as a value, in the spelling of any dialect: "1", "-0.5", "True", "true",
/// "(1, 1)", "[1, 1]"; a single number is a list of one. If the attribute is missing or "None",
/// return `preset`, or throw AttributeError without a preset. Throw AttributeError for other text.
/// Threads may call them.
int64_t intAttr(const Node* node, const char* key);
int64_t intAttr(const Node* node, const char* key, int64_t preset);
std::vector<int64_t> intsAttr(const Node* node, const char* key);
std::vector<int64_t> intsAttr(const Node* node, const char* key,
                              const std::vector<int64_t>& preset);
double realAttr(const Node* node, const char* key);
double realAttr(const Node* node, const char* key, double preset);
bool boolAttr(const Node* node, const char* key);
bool boolAttr(const Node* node, const char* key, bool preset);
/// Return the text of an attribute as it is, "None" included.
std::string textAttr(const Node* node, const char* key);
std::string textAttr(const Node* node, const char* key, const std::string& preset);

/// Set an attribute to a value, in the spelling of the graph's dialect: a list is "(1, 1)" in MXNet
/// and NNVM, "[1, 1]" elsewhere; a boolean is "True" in MXNet and NNVM, "1" in ONNX, "true"
/// elsewhere. Reals are the shortest text that reads back as the same double. Throw
/// std::invalid_argument for a null node.
void setAttr(const Graph* graph, Node* node, const char* key, const std::string& text);
void setAttr(const Graph* graph, Node* node, const char* key, const char* text);
void setAttr(const Graph* graph, Node* node, const char* key, bool value);
void setAttr(const Graph* graph, Node* node, const char* key, int value);
void setAttr(const Graph* graph, Node* node, const char* key, int64_t value);
void setAttr(const Graph* graph, Node* node, const char* key, double value);
void setAttr(const Graph* graph, Node* node, const char* key, const std::vector<int64_t>& values);
void setAttr(const Graph* graph, Node* node, const char* key, const std::vector<double>& values);

// ================================================================================================
// Passes, options, registration
// ================================================================================================

/// Options of a call: texts by name.
typedef std::unordered_map<std::string, std::string> options_map_t;

/// A pass: changes the graph in place. `options` are the keyword arguments of optimize_for, as
/// text, and the declared defaults. After MX_FAIL or an exception the caller's model is unchanged.
///
/// A pass may start threads, which must end before it returns. They may call at the same time what
/// says "Threads may call it": passInterrupted, MX_ERROR_MSG, Node::readTensor, alloc_arg and
/// alloc_aux of different nodes, and everything that reads the graph. What changes the graph is for
/// one thread while no other uses the graph: connect, replace, insertAfter, addNode, removeNode,
/// addParameter, setAttr, patterns. An exception that leaves a thread ends the process, as always
/// in C++.
typedef MXReturnValue (*graphPass_t)(Graph* graph, const options_map_t& options);

class OptionValues;
/// The body of a pass with declared options.
typedef MXReturnValue (*typedPass_t)(Graph* graph, const OptionValues& options);

/// A pass as registered by a library:
///
///     REGISTER_PASS(foldScale)
///         .setBody(foldScale)
///         .describe("Folds Mul and Add behind a convolution into its weights.")
///         .dialects({"onnx", "mxnet"})
///         .option("bias", "auto", "Whether to add a bias.", {"auto", "never"})
///         .option("level", 1, "How far to go.", 1, 3)
///         .needsShapes(false);
///
/// All but setBody are declarations. With any of them, the pass has exactly the options that it
/// declares, and the host refuses others; without, it takes any, as in MXNet, which ignores
/// declarations.
class CustomPass {
 public:
  explicit CustomPass(const char* pass_name = "ERROR") : name(pass_name) {}
  CustomPass& setBody(graphPass_t function);
  CustomPass& setBody(typedPass_t function);

  /// A description of the pass, in a sentence or a few.
  CustomPass& describe(const char* text);
  /// The families of models that it works on; without this, all.
  CustomPass& dialects(std::initializer_list<const char*> names);
  CustomPass& dialects(const std::vector<std::string>& names);
  /// Declares an option, whose default the body gets unless the caller gives a value. Its type is
  /// that of the default: bool, integer, real, text, or a list of one of these, such as {1, 2} or
  /// std::vector<std::string>(). Choices and range, both ends included, hold for each item of a
  /// list.
  CustomPass& option(const char* key, const OptionValue& preset, const char* text);
  CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                     std::initializer_list<OptionValue> choices);
  CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                     const OptionValue& low, const OptionValue& high);
  /// The pass takes options beside those that it declares.
  CustomPass& anyOptions();
  /// Whether the pass reads or writes weights: if not, Node::tensor is null on parameters that the
  /// model has already. By default true.
  CustomPass& needsWeights(bool wanted = true);
  /// The pass reads weights by Node::readTensor() only, and changes none in place: until then,
  /// tensors of parameters have shape and type, and data_ptr is null in passlib. What it does not
  /// ask for costs nothing.
  CustomPass& weightsOnDemand();
  /// Whether the pass reads inferred shapes and types: if not, none are inferred for it. By default
  /// true; then they are inferred when the pass first reads one.
  CustomPass& needsShapes(bool wanted = true);
  /// The pass keeps every bit of the model's results. Without this, they may change by rounding.
  CustomPass& exact();
  /// The pass also runs on the body of each local function of an ONNX model, which is then the
  /// graph. It must keep inputs, outputs and operators of the domain "referring", which stand for
  /// the results and for operators that read attributes of the call.
  CustomPass& entersFunctions();
  /// The pass changes no graph without one of these operators. Without this, it may change any.
  CustomPass& triggers(const std::vector<std::string>& ops);
  /// The time of the pass grows with this, for pipelines that it joins: "nodes", the default;
  /// "weights"; or "runs", if it computes operators.
  CustomPass& cost(const char* grows_with);
  /// The pass is part of a named pipeline: "simplify", or "clean" if it is exact. It runs behind
  /// the pass `after`, or at the end.
  CustomPass& joins(const char* pipeline, const char* after = "");
  /// The value of a declared option in the pipelines that the pass joins.
  CustomPass& inPipelines(const char* key, const OptionValue& value);
  /// The same where results may change by rounding, and in rare cases more: "simplify" by default.
  CustomPass& whenRounding(const char* key, const OptionValue& value);

  const char* name;
  graphPass_t pass = nullptr;
  PassDeclaration* declaration = nullptr;  ///< null without any; owned by the registry

 private:
  PassDeclaration& declare();
};

/// The options of a call in the types of their declarations: the given values, otherwise the
/// defaults. Where the host does not check options, as MXNet, they are checked here: throws
/// std::invalid_argument for an option that is unknown, has another type or is out of range.
class OptionValues {
 public:
  OptionValues(const PassDeclaration& declaration, const options_map_t& given);

  // The value of an option; of a list that of all items. Throw std::logic_error if the pass
  // declares no such option, or one of another type.
  bool boolean(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  std::vector<bool> booleans(const std::string& name) const;
  std::vector<int64_t> integers(const std::string& name) const;
  std::vector<double> reals(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  /// Whether the caller gave an option, be it with the value of the default.
  bool given(const std::string& name) const;

 private:
  const OptionValue& find(const std::string& name, int kind, bool is_list) const;
  std::map<std::string, OptionValue> values_;
  options_map_t given_;
};

/// Whether the user wants the running call to end, as after Ctrl-C in Python. A pass that may take
/// long asks from time to time and returns MX_FAIL, which leaves the model unchanged. Threads may
/// call it. Always false in hosts that do not tell, such as MXNet.
bool passInterrupted();

/// Registers a pass under a name: REGISTER_PASS(myPass).setBody(myPass);
#define REGISTER_PASS(Name)                                                            \
  static mxnet::ext::CustomPass& MX_STR_CONCAT(MX_STR_CONCAT(MXNet_CustomPass_, Name), \
                                               __COUNTER__) __attribute__((unused)) =  \
      mxnet::ext::Registry<mxnet::ext::CustomPass>::get() -> add(MX_TOSTRING(Name))

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

/// Every library defines this function, which the host calls once, after loading, with the number
/// of its MXNet version, such as 10901 for 1.9.1. MX_FAIL makes the host reject the library.
extern "C" PASSLIB_EXPORT mxnet::ext::MXReturnValue initialize(int version);

// ---- values of options
// ---------------------------------------------------------------------------

#define MX_STR_CONCAT_(__a, __b) __a##__b
#define MX_STR_CONCAT(__a, __b) MX_STR_CONCAT_(__a, __b)
#define MX_STRINGIFY(x) #x
#define MX_TOSTRING(x) MX_STRINGIFY(x)

/// Registers a pass of patterns; lib_patterns.h defines it.
#define PATTERN_PASS(Name, ...)                                                        \
  static_assert(sizeof(#Name) == 0, "PATTERN_PASS needs #include \"lib_patterns.h\""); \
  static void MXNet_PatternsOf_##Name()

namespace mxnet {
namespace ext {
inline namespace passlib_api {

/// The value of an option: true or false, a whole number, a real number, text, or a list of one of
/// these.
class OptionValue {
 public:
  enum Kind { kBoolean, kInteger, kReal, kText };
  OptionValue(bool value) : kind(kBoolean), integer(value ? 1 : 0) {}      // NOLINT: implicit
  OptionValue(int value) : kind(kInteger), integer(value) {}               // NOLINT
  OptionValue(long value) : kind(kInteger), integer(value) {}              // NOLINT
  OptionValue(long long value) : kind(kInteger), integer(value) {}         // NOLINT
  OptionValue(double value) : kind(kReal), real(value) {}                  // NOLINT
  OptionValue(std::string value) : kind(kText), text(std::move(value)) {}  // NOLINT
  OptionValue(const char* value) : kind(kText), text(value) {}             // NOLINT
  OptionValue(std::initializer_list<OptionValue> values)                   // NOLINT
      : kind(values.size() == 0 ? kText : values.begin()->kind), is_list(true), items(values) {}
  /// A list that may be empty.
  OptionValue(const std::vector<bool>& values) : OptionValue(kBoolean, values) {}      // NOLINT
  OptionValue(const std::vector<int>& values) : OptionValue(kInteger, values) {}       // NOLINT
  OptionValue(const std::vector<int64_t>& values) : OptionValue(kInteger, values) {}   // NOLINT
  OptionValue(const std::vector<double>& values) : OptionValue(kReal, values) {}       // NOLINT
  OptionValue(const std::vector<std::string>& values) : OptionValue(kText, values) {}  // NOLINT

  Kind kind;  ///< of a list: of its items
  bool is_list = false;
  int64_t integer = 0;  ///< of kInteger; 0 or 1 of kBoolean
  double real = 0;
  std::string text;
  std::vector<OptionValue> items;

 private:
  template <typename Values>
  OptionValue(Kind of_items, const Values& values)
      : kind(of_items), is_list(true), items(values.begin(), values.end()) {}
};

// ================================================================================================
// Tensors and parameters
// ================================================================================================

/// Element types, by MXNet's codes.
enum MXDType : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kInt16 = 8,
  kUint16 = 9,
  kUint32 = 10,
  kUint64 = 11,
  kBfloat16 = 12,
  kUNSET = 100,  ///< unknown
};

enum MXStorageType {
  kDefaultStorage = 0,    ///< dense
  kRowSparseStorage = 1,  ///< some rows and their numbers
  kCSRStorage = 2,        ///< compressed sparse rows
};

/// The device of a tensor. The default is no device.
struct MXContext {
  MXContext() : dev_type("error"), dev_id(-1) {}
  explicit MXContext(std::string device, int number)
      : dev_type(std::move(device)), dev_id(number) {}
  explicit MXContext(const char* device, int number) : dev_type(device), dev_id(number) {}
  static MXContext CPU(int number = 0) { return MXContext("cpu", number); }
  static MXContext GPU(int number = 0) { return MXContext("gpu", number); }

  std::string dev_type;
  int dev_id;
};

/// The data of a sparse tensor; all pointers are borrowed from the host.
struct MXSparse {
  void* data = nullptr;
  int64_t data_len = 0;  ///< number of values
  /// CSR: column of each value. Row sparse: number of each stored row.
  int64_t* indices = nullptr;
  int64_t indices_len = 0;
  /// CSR: the start of each row in data, then the end of the last. Row sparse: null.
  int64_t* indptr = nullptr;
  int64_t indptr_len = 0;

  void set(void* data_ptr, const int64_t* dims, int ndims, void* idx, int64_t num_idx,
           void* idx_ptr = nullptr, int64_t num_idx_ptr = 0);
};

// DLPack 0.2. The names are in the global namespace too, see PASSLIB_NO_GLOBAL_DLPACK.
namespace dlpack {

enum DLDeviceType {
  kDLCPU = 1,
  kDLGPU = 2,
  kDLCPUPinned = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLExtDev = 12
};

struct DLContext {
  DLDeviceType device_type;
  int device_id;
};

/// The last two are not in 0.2; the codes are those of later versions of DLPack.
enum DLDataTypeCode { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLBfloat = 4U, kDLBool = 6U };

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLContext ctx;
  int ndim;
  DLDataType dtype;
  int64_t* shape;    ///< borrowed from the MXTensor that holds this
  int64_t* strides;  ///< always null: compact, row-major
  uint64_t byte_offset;
};

}  // namespace dlpack

/// A tensor whose memory the host owns. Dense data is compact and row-major.
struct MXTensor {
  MXTensor();
  MXTensor(const MXTensor& other);
  MXTensor& operator=(const MXTensor& other);
  MXTensor(void* data, std::vector<int64_t> shape, MXDType dtype, size_t vID, MXContext ctx,
           MXStorageType stype = kDefaultStorage);

  void setTensor(void* data, MXDType type, const int64_t* dims, int ndims, size_t vID,
                 MXContext context, MXStorageType storage_type = kDefaultStorage);
  /// Updates dltensor from the other members. Throws std::runtime_error for a dtype without a
  /// DLPack equivalent.
  void setDLTensor();

  template <typename ValueType>
  ValueType* data() {
    return reinterpret_cast<ValueType*>(data_ptr);
  }
  template <typename ValueType>
  const ValueType* data() const {
    return reinterpret_cast<const ValueType*>(data_ptr);
  }
  /// Number of elements: the product of the shape, 1 for a scalar.
  int64_t size() const;
  /// Whether both refer to the same memory with the same shape, dtype and version.
  bool isSame(const MXTensor& other) const;

  void* data_ptr;  ///< for sparse storage: an MXSparse
  std::vector<int64_t> shape;
  MXDType dtype;
  size_t verID;  ///< raised when the host knows that the data changed
  MXContext ctx;
  dlpack::DLTensor dltensor;  ///< the same tensor for users of DLPack
  MXStorageType stype;
};

class PassResource;

/// The shape of a value. That of a scalar is known and has no extents.
struct ValueShape {
  ValueShape() : known(false) {}
  explicit ValueShape(std::vector<int64_t> sizes) : known(true), extents(std::move(sizes)) {}
  /// Whether rank and all extents are known.
  bool complete() const {
    bool all = known;
    for (std::size_t pos = 0; pos < extents.size(); ++pos) all = all && extents[pos] != -1;
    return all;
  }
  bool known;                    ///< whether the rank is known
  std::vector<int64_t> extents;  ///< -1: unknown. Empty if the rank is unknown, and for a scalar
};

/// Returns what is known of a value's shape: that of a parameter's tensor; else what the host
/// inferred before the pass (MX_STR_SHAPE); else what the model states of a variable. Threads may
/// call it.
ValueShape shapeOf(const NodeEntry& value);
/// Returns the element type of a value in the same way; kUNSET if it is unknown. Threads may call
/// it.
MXDType typeOf(const NodeEntry& value);

/// Whether a node is a weight, a constant or a state of the model: a variable whose value is the
/// same in every run. True also for parameters whose arrays the pass does not get. False for inputs
/// of the model, also if the caller gave arrays for them, as far as the node or its consumers show.
/// Threads may call it.
bool isParameter(const Node* node);
/// Adds a parameter with a new tensor, see Node::alloc_arg. A number follows `name` if a node has
/// that name already. Throws std::runtime_error as alloc_arg does.
Node* addParameter(Graph* graph, const std::string& name, const std::vector<int64_t>& shape,
                   MXDType type, const MXContext& ctx = MXContext::CPU());
/// Makes a variable a weight with the elements of `source`, which is on demand, multiplied by
/// `factors`: each factor scales one of as many equal runs of elements. The host may compute them
/// later, so that weights need not fit in memory; the tensor of the node has no elements. Returns
/// false and changes nothing if the host cannot do that; use alloc_arg then.
bool scaleParameter(Node* node, const MXTensor& source, const std::vector<double>& factors);
/// Returns what the host lends to the running pass; null if no pass runs. Threads may call it.
PassResource* runningPass();

// ================================================================================================
// Uses of values, orders
// ================================================================================================

#define MX_STR_SUBGRAPH_SYM_JSON "subgraph_sym_json"
#define MX_STR_DTYPE "__ext_dtype__"
#define MX_STR_SHAPE "__ext_shape__"
#define MX_STR_EXTRA_INPUTS "__ext_extra_inputs__"
/// On new nodes: the names of the nodes that they stand for, as a JSON list. replace sets it.
#define MX_STR_ORIGIN "__origin__"
/// On nodes that rules made: the names of the rules, the last one last, as a JSON list. Files have
/// it where they have the origin.
#define MX_STR_RULES "__rules__"

namespace detail {
class AddressTable;
}  // namespace detail

/// Whether a value, or any value of a node, is an output of the graph. Linear in its outputs.
/// Threads may call these functions.
bool isOutput(const Graph* graph, const NodeEntry& value);
bool isOutput(const Graph* graph, const Node* node);
/// Returns the inputs that take a value: each the consumer and the number of its input.
std::vector<NodeEntry> users(const NodeEntry& value);
/// Returns the only consumer of a value; null if there are several or none, or if the value is an
/// output of the graph.
Node* onlyUser(const Graph* graph, const NodeEntry& value);

/// Positions of the nodes of a graph, by address. Built in linear time; never dereferences nodes,
/// so that any pointer can be looked up. Threads may call find.
class NodeTable {
 public:
  /// Throws GraphStructureError if a node is null or listed twice.
  explicit NodeTable(const std::vector<Node*>& nodes);
  NodeTable(Node* const* nodes, std::size_t count);
  /// Returns the position, or -1.
  int64_t find(const Node* node) const;
  /// Adds a node that is not in the table at the next position, which it returns.
  std::size_t add(const Node* node);
  /// Returns the number of nodes.
  std::size_t size() const;
  ~NodeTable();

 private:
  std::unique_ptr<detail::AddressTable> table_;
};

/// Returns the nodes in topological order, control dependencies included: the given order if it is
/// topological, otherwise depth first from `nodes` in turn. Throws GraphStructureError with the
/// nodes of a cycle, or the consumer of an edge to a node that is not in `table`.
std::vector<Node*> sortNodes(const std::vector<Node*>& nodes, const NodeTable& table);

/// Returns entry `index` of an __ext_shape__ attribute: getShapeAt("[[2,4],[4]]", 0) is "[2,4]".
/// Unknown shapes are "None". Throws std::out_of_range.
std::string getShapeAt(const std::string& shape, unsigned index);
/// Returns entry `index` of an __ext_dtype__ attribute: getDtypeAt("[0,6]", 1) is "6".
std::string getDtypeAt(const std::string& dtype, unsigned index);

// ================================================================================================
// Operators
// ================================================================================================

typedef void* (*xpu_malloc_t)(void* allocator, int size);
typedef void (*sparse_malloc_t)(void* allocator, int index, int indices_len, int indptr_len,
                                void** data, int64_t** indices, int64_t** indptr);

/// Numbers of random number states: one for each thread of an operator, so that threads never wait
/// for each other.
#define MX_NUM_CPU_RANDOM_STATES 1024
#define MX_NUM_GPU_RANDOM_STATES 32768

typedef std::mt19937 mx_cpu_rand_t;
#if defined(__NVCC__)
typedef cudaStream_t mx_stream_t;
typedef curandStatePhilox4_32_10_t mx_gpu_rand_t;
#else
typedef void* mx_stream_t;
typedef void* mx_gpu_rand_t;
#endif

/// Resources that an operator may request while it computes. The host owns all of them, until the
/// call returns.
class OpResource {
 public:
  OpResource(xpu_malloc_t cpu_malloc, void* cpu_alloc, xpu_malloc_t gpu_malloc, void* gpu_alloc,
             void* stream, sparse_malloc_t sparse_malloc, void* sparse_alloc, void* rng_cpu_states,
             void* rng_gpu_states)
      : cpu_malloc_(cpu_malloc),
        gpu_malloc_(gpu_malloc),
        sparse_malloc_(sparse_malloc),
        cpu_alloc_(cpu_alloc),
        gpu_alloc_(gpu_alloc),
        sparse_alloc_(sparse_alloc),
        stream_(stream),
        rng_cpu_states_(rng_cpu_states),
        rng_gpu_states_(rng_gpu_states) {}

  /// Scratch memory of `size` bytes, zero in passlib and uninitialised in MXNet; null if the host
  /// has none. MXNet has one workspace, which each request invalidates: request all memory at once.
  void* alloc_cpu(int size) const { return cpu_malloc_(cpu_alloc_, size); }
  void* alloc_gpu(int size) const { return gpu_malloc_(gpu_alloc_, size); }
  /// Allocates sparse output number `index`: indices_len values (CSR) or rows (row sparse), and
  /// indptr_len row starts (CSR only; rows + 1). Sets data, indices, indptr and their lengths;
  /// data_len only for CSR, since the length of a row is unknown here.
  void alloc_sparse(MXSparse* sparse, int index, int indices_len, int indptr_len = 0) const;
  mx_stream_t get_cuda_stream() const { return static_cast<mx_stream_t>(stream_); }
  /// MX_NUM_CPU_RANDOM_STATES states, seeded by the host.
  mx_cpu_rand_t* get_cpu_rand_states() const {
    return static_cast<mx_cpu_rand_t*>(rng_cpu_states_);
  }
  /// Null without a GPU.
  mx_gpu_rand_t* get_gpu_rand_states() const {
    return static_cast<mx_gpu_rand_t*>(rng_gpu_states_);
  }

 private:
  xpu_malloc_t cpu_malloc_;
  xpu_malloc_t gpu_malloc_;
  sparse_malloc_t sparse_malloc_;
  void* cpu_alloc_;
  void* gpu_alloc_;
  void* sparse_alloc_;
  void* stream_;
  void* rng_cpu_states_;
  void* rng_gpu_states_;
};

/// An operator with state between calls. The function given to setCreateOpState creates one for
/// each node of a running model; the host destroys it.
class CustomStatefulOp {
 public:
  CustomStatefulOp() : ignore_warn(false), created_(false) {}
  virtual ~CustomStatefulOp() {}

  /// Creates a state that the host can destroy: *state = CustomStatefulOp::create<My>(x);
  template <class Operator, typename... Arguments>
  static CustomStatefulOp* create(Arguments... arguments) {
    CustomStatefulOp* state = new Operator(arguments...);
    state->created_ = true;
    return state;
  }
  bool wasCreated() const { return created_; }

  virtual MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                                const OpResource& op_res) = 0;
  /// `inputs`: gradients of the outputs, then the inputs, then the outputs of Forward. `outputs`:
  /// one gradient per input.
  inline virtual MXReturnValue Backward(std::vector<MXTensor>* inputs,
                                        std::vector<MXTensor>* outputs, const OpResource& op_res);

  /// Set to silence the host's warning about a state that was not made by create.
  bool ignore_warn;

 private:
  bool created_;  // hosts read both flags at their offsets: directly after the vtable pointer
};

/// Computes an operator. The host allocates all tensors except sparse outputs (see
/// OpResource::alloc_sparse). For a backward function see CustomStatefulOp::Backward.
typedef MXReturnValue (*fcomp_t)(const options_map_t& attributes, std::vector<MXTensor>* inputs,
                                 std::vector<MXTensor>* outputs, const OpResource& res);
/// Sets the numbers of inputs and outputs of an operator with these attributes.
typedef MXReturnValue (*parseAttrs_t)(const options_map_t& attributes, int* num_inputs,
                                      int* num_outputs);
/// Infers dtype codes; -1 is unknown. May also fill in unknown inputs.
typedef MXReturnValue (*inferType_t)(const options_map_t& attributes, std::vector<int>* in_types,
                                     std::vector<int>* out_types);
/// Infers storage types (MXStorageType). Without this function all tensors are dense.
typedef MXReturnValue (*inferSType_t)(const options_map_t& attributes,
                                      std::vector<int>* in_storage_types,
                                      std::vector<int>* out_storage_types);
/// Infers shapes. An unknown input shape is empty, as is that of a scalar; an unknown extent is
/// UINT32_MAX. out_shapes has one empty shape for each output. May also fill in unknown inputs.
typedef MXReturnValue (*inferShape_t)(const options_map_t& attributes,
                                      std::vector<std::vector<unsigned int> >* in_shapes,
                                      std::vector<std::vector<unsigned int> >* out_shapes);
/// Lists the inputs that the operator writes to; they become auxiliary states of the model.
typedef MXReturnValue (*mutateInputs_t)(const options_map_t& attributes,
                                        std::vector<int>* input_indices);
/// Creates the state of one node, with inputs of these shapes and dtype codes. For an operator that
/// runs subgraphs, attributes[MX_STR_SUBGRAPH_SYM_JSON] is the subgraph.
typedef MXReturnValue (*createOpState_t)(const options_map_t& attributes, const MXContext& ctx,
                                         const std::vector<std::vector<unsigned int> >& in_shapes,
                                         const std::vector<int> in_types, CustomStatefulOp**);

/// An operator as registered by a library. Contexts are "cpu" and "gpu", with one function for
/// each. Required: parseAttrs, inferType, inferShape, and a forward function or a state; for
/// subgraph operators only a state.
class CustomOp {
 public:
  explicit CustomOp(const char* op_name)
      : name(op_name),
        parse_attrs(nullptr),
        infer_type(nullptr),
        infer_storage_type(nullptr),
        infer_shape(nullptr),
        mutate_inputs(nullptr),
        isSGop(false),
        valid(true) {}

  CustomOp& setForward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "forward", &forward_fp, &forward_ctx_cstr);
  }
  CustomOp& setBackward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "backward", &backward_fp, &backward_ctx_cstr);
  }
  CustomOp& setCreateOpState(createOpState_t function, const char* ctx) {
    return add(function, ctx, "createOpState", &create_op_fp, &create_op_ctx_cstr);
  }
  CustomOp& setParseAttrs(parseAttrs_t function) { return set(&parse_attrs, function); }
  CustomOp& setInferType(inferType_t function) { return set(&infer_type, function); }
  CustomOp& setInferSType(inferSType_t function) { return set(&infer_storage_type, function); }
  CustomOp& setInferShape(inferShape_t function) { return set(&infer_shape, function); }
  CustomOp& setMutateInputs(mutateInputs_t function) { return set(&mutate_inputs, function); }
  /// Declares an operator whose nodes have a subgraph, as partitioners create them.
  CustomOp& setIsSubgraphOp() { return set(&isSGop, true); }

  const char* name;
  parseAttrs_t parse_attrs;
  inferType_t infer_type;
  inferSType_t infer_storage_type;
  inferShape_t infer_shape;
  mutateInputs_t mutate_inputs;
  bool isSGop;
  bool valid;  ///< false after a second function for one context
  std::vector<const char*> forward_ctx_cstr, backward_ctx_cstr, create_op_ctx_cstr;
  std::vector<fcomp_t> forward_fp, backward_fp;
  std::vector<createOpState_t> create_op_fp;

 private:
  template <typename ValueType>
  CustomOp& set(ValueType* member, ValueType value) {
    *member = value;
    return *this;
  }
  template <typename Function>
  CustomOp& add(Function function, const char* ctx, const char* what,
                std::vector<Function>* functions, std::vector<const char*>* contexts);
};

/// Registers an operator: REGISTER_OP(my_gemm).setForward(forward, "cpu").setParseAttrs(parse)...
#define REGISTER_OP(Name)                                                                       \
  static mxnet::ext::CustomOp& MX_STR_CONCAT(MX_STR_CONCAT(MXNet_CustomOp_, Name), __COUNTER__) \
      __attribute__((unused)) =                                                                 \
          mxnet::ext::Registry<mxnet::ext::CustomOp>::get() -> add(MX_TOSTRING(Name))

// ================================================================================================
// Partitioners
// ================================================================================================

/// Decides node by node what belongs to a subgraph. Node numbers are positions in the graph given
/// to the createSelector function, which lives as long as the selector. passlib destroys selectors;
/// MXNet never does.
class CustomOpSelector {
 public:
  virtual ~CustomOpSelector() {}
  /// Whether a subgraph may start from this node.
  virtual bool Select(int nodeID) = 0;
  /// Whether a subgraph with node nodeID may also include the producer of one of its inputs.
  virtual bool SelectInput(int nodeID, int input_nodeID) = 0;
  /// The same for the consumer of one of its outputs.
  virtual bool SelectOutput(int nodeID, int output_nodeID) = 0;
  /// Chooses the nodes of a grown subgraph to keep; by default all.
  virtual void Filter(const std::vector<int>& candidates, std::vector<int>* keep) {
    for (std::size_t pos = 0; pos < candidates.size(); ++pos) keep->push_back(candidates[pos]);
  }
  /// Called before the growth of a subgraph restarts.
  virtual void Reset() {}
};

/// Sets which nodes are supported: ids has one number per node, initially -2. -2: not supported;
/// -1: in any subgraph; from 0: only together with nodes of the same number.
typedef MXReturnValue (*supportedOps_t)(const Graph* graph, std::vector<int>* ids,
                                        const options_map_t& options);
typedef MXReturnValue (*createSelector_t)(const Graph* graph, CustomOpSelector** sel_inst,
                                          const options_map_t& options);
/// Accepts or rejects a subgraph (*accept is initially false), and sets attributes of the node that
/// replaces it. Variables of the subgraph that are parameters have their tensor.
typedef MXReturnValue (*reviewSubgraph_t)(const Graph* subgraph, int subgraph_id, bool* accept,
                                          const options_map_t& options, options_map_t* attrs);

/// A partitioner: strategies that run in turn. Each needs supportedOps or createSelector (the
/// former takes precedence) and replaces subgraphs by nodes of its own subgraph operator.
class CustomPartitioner {
 public:
  CustomPartitioner() : name("ERROR") {}
  explicit CustomPartitioner(const char* backend_name) : name(backend_name) {}

  CustomPartitioner& addStrategy(const char* prop_name, const char* sg_name) {
    strategies.push_back(prop_name);
    op_names.push_back(sg_name);
    return *this;
  }
  CustomPartitioner& setSupportedOps(const char* prop_name, supportedOps_t function) {
    supported_map[prop_name] = function;
    return *this;
  }
  CustomPartitioner& setCreateSelector(const char* prop_name, createSelector_t function) {
    selector_map[prop_name] = function;
    return *this;
  }
  CustomPartitioner& setReviewSubgraph(const char* prop_name, reviewSubgraph_t function) {
    review_map[prop_name] = function;
    return *this;
  }

  /// Functions of strategy number stg_id; null if not set.
  supportedOps_t getSupportedOps(int stg_id) const { return find(supported_map, stg_id); }
  createSelector_t getCreateSelector(int stg_id) const { return find(selector_map, stg_id); }
  reviewSubgraph_t getReviewSubgraph(int stg_id) const { return find(review_map, stg_id); }

  const char* name;
  std::map<std::string, supportedOps_t> supported_map;
  std::map<std::string, createSelector_t> selector_map;
  std::map<std::string, reviewSubgraph_t> review_map;
  std::vector<const char*> strategies;
  std::vector<const char*> op_names;  ///< the subgraph operator of each strategy

 private:
  template <typename Function>
  Function find(const std::map<std::string, Function>& functions, int stg_id) const {
    const auto found = functions.find(strategies.at(static_cast<std::size_t>(stg_id)));
    return found == functions.end() ? nullptr : found->second;
  }
};

/// Registers a partitioner: REGISTER_PARTITIONER(mine).addStrategy("first", "my_subgraph_op")...
#define REGISTER_PARTITIONER(Name)                                                          \
  static mxnet::ext::CustomPartitioner& MX_STR_CONCAT(                                      \
      MX_STR_CONCAT(MXNet_CustomPartitioner_, Name), __COUNTER__) __attribute__((unused)) = \
      mxnet::ext::Registry<mxnet::ext::CustomPartitioner>::get() -> add(MX_TOSTRING(Name))

// ================================================================================================
// JSON
// ================================================================================================

#ifndef PASSLIB_JSON_MAX_DEPTH
#define PASSLIB_JSON_MAX_DEPTH 1000000  // depth costs heap, but no stack
#endif

namespace detail {
class JsonTree;
}  // namespace detail

/// Kind of a JSON value. BOOL and NIL are additions to MXNet's header, which cannot read them.
enum JsonType { ERR, STR, NUM, LIST, MAP, BOOL, NIL };

/// One JSON value with its children.
///
/// Numbers: `num` is the number as an int, truncated towards zero and clamped to the range of int.
/// If that loses anything, `str` has the original text, which dump() writes unless `num` was set to
/// another value.
struct JsonVal {
  JsonVal() : type(ERR), num(-1) {}
  explicit JsonVal(JsonType kind) : type(kind), num(-1) {}
  explicit JsonVal(std::string text) : type(STR), num(-1), str(std::move(text)) {}
  explicit JsonVal(const char* text) : type(STR), num(-1), str(text) {}
  explicit JsonVal(int number) : type(NUM), num(number) {}
  JsonVal(JsonType kind, int number, std::string text)
      : type(kind), num(number), str(std::move(text)) {}
  JsonVal(const JsonVal& other);
  JsonVal(JsonVal&& other) = default;
  JsonVal& operator=(const JsonVal& other);
  JsonVal& operator=(JsonVal&& other) noexcept;
  ~JsonVal() {
    if (!list.empty() || !map.empty()) clear();
  }

  static JsonVal boolean(bool value) { return JsonVal(BOOL, value ? 1 : 0, std::string()); }
  static JsonVal null() { return JsonVal(NIL); }
  static JsonVal integer(int64_t value);
  /// The number as the shortest text that reads back as the same double. Throws
  /// std::invalid_argument for NaN and infinities, which JSON cannot express.
  static JsonVal real(double value);

  /// The value of a NUM or BOOL as double; 0 for other types.
  double toDouble() const;
  /// Gets the value of a NUM as 64-bit integer. Returns false if it is not one.
  bool toInteger(int64_t* value) const;

  /// A strict weak order over all values: by type, then by value.
  bool operator<(const JsonVal& other) const;
  bool operator==(const JsonVal& other) const;

  /// JSON text: keys sorted, " : " between key and value, "," between items.
  std::string dump() const;
  /// For debugging: json(STR:x), json(INT:5), json(LIST:[..,]), json(MAP:{k : v,}).
  std::string toString() const;

  /// Reads a whole JSON text (RFC 8259, nothing looser). Throws JsonError.
  static JsonVal parse(const std::string& json);
  /// Reads one value that begins at *idx, and moves *idx to its end.
  static JsonVal parse(const std::string& json, unsigned int* idx);
  static JsonVal parse_string(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonVal parse_num(const std::string& json, unsigned int* idx) { return parse(json, idx); }
  static JsonVal parse_list(const std::string& json, unsigned int* idx) { return parse(json, idx); }
  static JsonVal parse_map(const std::string& json, unsigned int* idx) { return parse(json, idx); }

  JsonType type;
  int num;
  std::string str;
  std::vector<JsonVal> list;
  std::map<JsonVal, JsonVal> map;

 private:
  void clear();
};

enum JsonErrorCode {
  kJsonSyntax = 1,     ///< not JSON
  kJsonTruncated,      ///< the text ends too early
  kJsonTrailing,       ///< text after the value
  kJsonUtf8,           ///< invalid UTF-8, or half of a surrogate pair
  kJsonDepth,          ///< nested more deeply than allowed
  kJsonDuplicateKey,   ///< an object has the same key twice
  kJsonType,           ///< a value of the wrong type
  kJsonMissingKey,     ///< an object lacks a required key
  kJsonRange,          ///< a node, output or number out of range
  kJsonCycle,          ///< nodes that depend on each other
  kJsonDuplicateName,  ///< two variables of one name
};

/// A text is not JSON, or not a graph. what() includes the place in the text.
class JsonError : public std::runtime_error {
 public:
  JsonError(JsonErrorCode error_code, const std::string& message, std::size_t error_offset,
            std::size_t error_line, std::size_t error_column)
      : std::runtime_error(message),
        code(error_code),
        offset(error_offset),
        line(error_line),
        column(error_column) {}
  JsonErrorCode code;
  std::size_t offset;  ///< in bytes, from 0
  std::size_t line;    ///< from 1
  std::size_t column;  ///< in bytes, from 1
};

/// Limits and extensions of a reader of JSON.
struct JsonOptions {
  std::size_t max_depth = PASSLIB_JSON_MAX_DEPTH;
  /// Accept unescaped control characters inside strings, which MXNet's writer produces.
  bool allow_control_characters = false;
  /// Accept comments from // to the end of the line, and a comma after the last item or member.
  bool allow_comments = false;
};

/// A pull reader of JSON text: the caller requests the next expected token. Never recurses, never
/// reads outside the text, and throws JsonError with the place of an unexpected token.
class JsonReader {
 public:
  /// A string of the text: points into the text, or into the reader if it has escapes. Valid until
  /// the reader's next call.
  struct Slice {
    const char* data;
    std::size_t size;
    bool operator==(const char* word) const {
      // An empty text may have no address.
      return strlen(word) == size && (size == 0 || memcmp(word, data, size) == 0);
    }
    bool operator<(const Slice& other) const {
      const std::size_t common = (std::min)(size, other.size);
      const int order = common == 0 ? 0 : memcmp(data, other.data, common);
      return order < 0 || (order == 0 && size < other.size);
    }
    std::string str() const { return std::string(data, size); }
  };

  /// The text is borrowed and must outlive the reader.
  JsonReader(const char* text, std::size_t size, const JsonOptions& options = JsonOptions());

  /// Skips white space and returns the first character of the next token: { [ " t f n - or a digit;
  /// 0 at the end.
  char peek();
  void beginObject();
  /// Moves to the next member of an object and reads its key. Returns false at the closing brace.
  /// `first` is a variable of the caller's loop, true before the first call.
  bool nextKey(bool* first, Slice* key);
  void beginList();
  bool nextItem(bool* first);
  Slice readString();
  /// Reads the text of a number and checks it against the grammar.
  Slice readNumber();
  /// Reads a number without fraction and exponent, within the limits.
  int64_t readInteger(const char* what, int64_t low, int64_t high);
  bool readBool();
  void readNull();
  /// Reads a value of any type with its children.
  JsonVal readValue();
  /// The same, into an item of a tree.
  void _readItem(detail::JsonTree* tree, std::size_t item);
  /// Sorts the members of an object by key. Fails if there are two of one key.
  void _sort(detail::JsonTree* tree, std::size_t object) const;
  void finish();
  /// Whether a string has escapes, so that it is valid until the next call alone; others are valid
  /// for as long as the text.
  bool isDecoded(const Slice& text) const { return text.data == scratch_.data(); }

  std::size_t offset() const { return static_cast<std::size_t>(cursor_ - begin_); }
  /// The unread rest of the text.
  Slice _rest() const { return Slice{cursor_, static_cast<std::size_t>(end_ - cursor_)}; }
  /// Moves over bytes that were compared.
  void _skip(std::size_t size) { cursor_ += size; }
  /// Whether another object or list may begin here without nesting too deeply.
  bool _mayEnter() const { return depth_ < options_.max_depth; }
  [[noreturn]] __attribute__((__cold__)) void fail(JsonErrorCode code, const std::string& message,
                                                   std::size_t place) const;
  [[noreturn]] __attribute__((__cold__)) void fail(JsonErrorCode code,
                                                   const std::string& message) const {
    fail(code, message, offset());
  }

  /// The same with a message in the form of printf.
  [[noreturn]] __attribute__((__cold__, __format__(PASSLIB_PRINTF, 4, 5))) void failAt(
      JsonErrorCode code, std::size_t place, const char* form, ...) const;

 private:
  void skipSpace();
  void enter();
  bool nextElement(bool* first, char close, const char* where);
  void expectWord(const char* word);
  const char* scanString(const char* cursor) const;
  const char* checkUtf8(const char* cursor) const;
  const char* decodeEscape(const char* cursor);
  unsigned readHex4(const char* cursor) const;
  [[noreturn]] __attribute__((__cold__)) void unexpected(const char* wanted) const;
  [[noreturn]] __attribute__((__cold__)) void failHere(JsonErrorCode code, const char* place,
                                                       const char* message) const {
    failAt(code, static_cast<std::size_t>(place - begin_), "%s", message);
  }

  const char* begin_;
  const char* end_;
  const char* cursor_;
  std::size_t depth_;
  JsonOptions options_;
  std::string scratch_;
};

// ================================================================================================
// Errors
// ================================================================================================

/// Messages of a library to its host: one store per library, safe to use from several threads.
class MXerrorMsgs {
 public:
  /// Lives until the process ends, since threads may use it while others exit.
  static MXerrorMsgs* get();
  /// Starts a message with "<file>[<line>]: "; the caller appends the rest to the stream.
  std::stringstream& add(const char* file, int line);
  /// Adds a whole message.
  void add(const std::string& text);
  int size();
  /// Returns message number idx, valid and unchanged until the process ends; null if out of range.
  const std::string* get(int idx);

 private:
  struct Message;
  struct Store;
  MXerrorMsgs();
  std::stringstream& start();
  Store* const store_;  // never deleted: streams may be in use, the host reads texts
};

/// Reports the reason of a failure: MX_ERROR_MSG << "no weight named " << name; return MX_FAIL;
/// Threads may use it.
#define MX_ERROR_MSG mxnet::ext::MXerrorMsgs::get()->add(__FILE__, __LINE__)

/// A graph is inconsistent: an edge to a node outside the graph, or a cycle.
class GraphStructureError : public std::runtime_error {
 public:
  explicit GraphStructureError(const std::string& message) : std::runtime_error(message) {}
};

/// An attribute is missing or has another type. what() names node, operator and attribute.
class AttributeError : public std::invalid_argument {
 public:
  explicit AttributeError(const std::string& message) : std::invalid_argument(message) {}
};

// ---- memory and lists --------------------------------------------------------------------------

namespace detail {

/// Memory that grows. All kinds of PlainList share its function.
class PlainMemory {
 public:
  PlainMemory() : data_(nullptr), size_(0), room_(0) {}
  PlainMemory(const PlainMemory&) = delete;
  PlainMemory& operator=(const PlainMemory&) = delete;
  ~PlainMemory() { free(data_); }

 protected:
  /// Makes room for `count` more bytes.
  void grow(std::size_t count);
  void add(const void* item, std::size_t size);

  char* data_;
  std::size_t size_;
  std::size_t room_;
};

inline void PlainMemory::grow(std::size_t count) {
  const std::size_t room = (std::max)(2 * room_ + 64, size_ + count);
  void* const moved = realloc(data_, room);
  if (moved == nullptr) throw std::bad_alloc();
  data_ = static_cast<char*>(moved);
  room_ = room;
}

inline void PlainMemory::add(const void* item, std::size_t size) {
  if (room_ - size_ < size) grow(size);
  memcpy(data_ + size_, item, size);
  size_ += size;
}

/// Deletes an object at its end, as std::unique_ptr, of which each kind takes 1 % of the time that
/// a small library compiles at -O0 (bench/compile.py).
template <typename Item>
class Owned {
 public:
  explicit Owned(Item* item = nullptr) : item_(item) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { delete item_; }
  Item* get() const { return item_; }
  Item& operator*() const { return *item_; }
  Item* operator->() const { return item_; }
  void reset(Item* item) {
    delete item_;
    item_ = item;
  }
  Item* release() {
    Item* const item = item_;
    item_ = nullptr;
    return item;
  }

 private:
  Item* item_;
};

template <typename Item>
class Owned<Item[]> {
 public:
  explicit Owned(Item* items) : items_(items) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { delete[] items_; }
  Item* get() const { return items_; }
  Item& operator[](std::size_t pos) const { return items_[pos]; }

 private:
  Item* items_;
};

/// A std::vector of items that may be copied as bytes; resize adds zeros. bench/compile.py: with
/// std::vector in its place, a small library takes half as long again to compile, and three
/// quarters of its functions come from the fifteen kinds of std::vector.
template <typename Item>
class PlainList : public PlainMemory {
 public:
  void push_back(Item item) { add(&item, sizeof(Item)); }
  void pop_back() { size_ -= sizeof(Item); }
  void reserve(std::size_t count) {
    if (room_ < count * sizeof(Item)) grow(count * sizeof(Item) - size_);
  }
  void resize(std::size_t count) {
    reserve(count);
    if (count > size()) memset(data_ + size_, 0, count * sizeof(Item) - size_);
    size_ = count * sizeof(Item);
  }
  void removeFirst(std::size_t count) {
    size_ -= count * sizeof(Item);
    memmove(data_, data_ + count * sizeof(Item), size_);
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_ / sizeof(Item); }
  Item* data() { return reinterpret_cast<Item*>(data_); }
  const Item* data() const { return reinterpret_cast<const Item*>(data_); }
  Item* begin() { return data(); }
  Item* end() { return data() + size(); }
  const Item* begin() const { return data(); }
  const Item* end() const { return data() + size(); }
  Item& operator[](std::size_t pos) { return data()[pos]; }
  const Item& operator[](std::size_t pos) const { return data()[pos]; }
  Item& back() { return end()[-1]; }

 private:
  static_assert(std::is_trivially_destructible<Item>::value, "not plain");
};

inline JsonReader::Slice sliceOf(const JsonReader::Slice& text) { return text; }
inline JsonReader::Slice sliceOf(const std::string& text) {
  return JsonReader::Slice{text.data(), text.size()};
}

/// A text with a number, sorted by both.
struct NumberedText {
  JsonReader::Slice text;
  std::size_t number;
};

inline int compareNumberedTexts(const void* left, const void* right) {
  const NumberedText& first = *static_cast<const NumberedText*>(left);
  const NumberedText& second = *static_cast<const NumberedText*>(right);
  if (first.text < second.text) return -1;
  return second.text < first.text || first.number > second.number ? 1 : -1;
}

inline void sortTexts(PlainList<NumberedText>* texts) {
  if (texts->empty()) return;
  qsort(texts->data(), texts->size(), sizeof(NumberedText), &compareNumberedTexts);
}

}  // namespace detail

// ================================================================================================
// Bodies
// ================================================================================================

// ---- errors ------------------------------------------------------------------------------------

namespace detail {

// Messages in the form of printf: text that is put together where it is needed would be a tenth of
// a library. A name with a NUL byte ends there.

inline std::string printText(const char* form, va_list values) {
  va_list again;
  va_copy(again, values);
  const int size = vsnprintf(nullptr, 0, form, again);
  va_end(again);
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  vsnprintf(&text[0], text.size(), form, values);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

__attribute__((__format__(PASSLIB_PRINTF, 1, 2))) inline std::string printed(const char* form,
                                                                             ...) {
  va_list values;
  va_start(values, form);
  const std::string text = printText(form, values);
  va_end(values);
  return text;
}

[[noreturn]] __attribute__((__cold__, __format__(PASSLIB_PRINTF, 1, 2))) inline void failGraph(
    const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = printText(form, values);
  va_end(values);
  throw GraphStructureError(text);
}

[[noreturn]] __attribute__((__cold__, __format__(PASSLIB_PRINTF, 1, 2))) inline void failCall(
    const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = printText(form, values);
  va_end(values);
  throw std::runtime_error(text);
}

}  // namespace detail

/// A message, whose text is collected while other threads may read it.
struct MXerrorMsgs::Message {
  class Buffer : public std::streambuf {
   public:
    std::string text() const {
      const std::lock_guard<std::mutex> lock(mutex_);
      return text_;
    }

   protected:
    int_type overflow(int_type character) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (character != traits_type::eof()) text_ += traits_type::to_char_type(character);
      return traits_type::not_eof(character);
    }
    std::streamsize xsputn(const char* text, std::streamsize size) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      text_.append(text, static_cast<std::size_t>(size));
      return size;
    }

   private:
    mutable std::mutex mutex_;
    std::string text_;
  };
  Message() : text(nullptr) {
    static_cast<std::ios&>(stream).rdbuf(&buffer);
    // A C++ library that is linked in statically may not find its facets by the identities that it
    // shares with the process's, and would print no number.
    if (!std::has_facet<std::num_put<char> >(stream.getloc())) {
      std::locale own(stream.getloc(), new std::num_put<char>());
      own = std::locale(own, new std::numpunct<char>());
      stream.imbue(std::locale(own, new std::ctype<char>()));
    }
  }
  Buffer buffer;
  std::stringstream stream;
  const std::string* text;  // as last returned
};

struct MXerrorMsgs::Store {
  std::mutex mutex;
  detail::PlainList<Message*> messages;
};

inline MXerrorMsgs::MXerrorMsgs() : store_(new Store()) {}

inline MXerrorMsgs* MXerrorMsgs::get() {
  static MXerrorMsgs* const instance = new MXerrorMsgs();
  return instance;
}

inline std::stringstream& MXerrorMsgs::start() {
  store_->messages.push_back(new Message());
  return store_->messages.back()->stream;
}

inline std::stringstream& MXerrorMsgs::add(const char* file, int line) {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  std::stringstream& stream = start();
  stream << file << "[" << line << "]: ";
  return stream;
}

inline void MXerrorMsgs::add(const std::string& text) {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  start() << text;
}

inline int MXerrorMsgs::size() {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  return static_cast<int>(store_->messages.size());
}

inline const std::string* MXerrorMsgs::get(int idx) {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  if (idx < 0 || static_cast<std::size_t>(idx) >= store_->messages.size()) return nullptr;
  Message& message = *store_->messages[static_cast<std::size_t>(idx)];
  const std::string text = message.buffer.text();
  if (message.text == nullptr || *message.text != text) message.text = new std::string(text);
  return message.text;
}

// ---- tensors -----------------------------------------------------------------------------------

inline void MXSparse::set(void* data_ptr, const int64_t* dims, int ndims, void* idx,
                          int64_t num_idx, void* idx_ptr, int64_t num_idx_ptr) {
  data = data_ptr;
  // A row-sparse tensor stores whole rows, a CSR matrix single values.
  data_len = num_idx;
  if (idx_ptr == nullptr) {
    for (int pos = 1; pos < ndims; ++pos) data_len *= dims[pos];
  }
  indices = reinterpret_cast<int64_t*>(idx);
  indices_len = num_idx;
  indptr = reinterpret_cast<int64_t*>(idx_ptr);
  indptr_len = num_idx_ptr;
}

inline MXTensor::MXTensor()
    : data_ptr(nullptr), dtype(kUNSET), verID(0), dltensor(), stype(kDefaultStorage) {}

inline MXTensor::MXTensor(const MXTensor& other)
    : data_ptr(other.data_ptr),
      shape(other.shape),
      dtype(other.dtype),
      verID(other.verID),
      ctx(other.ctx),
      dltensor(other.dltensor),
      stype(other.stype) {
  dltensor.shape = shape.data();  // the copy's own shape, not the original's
}

inline MXTensor& MXTensor::operator=(const MXTensor& other) {
  data_ptr = other.data_ptr;
  shape = other.shape;
  dtype = other.dtype;
  verID = other.verID;
  ctx = other.ctx;
  dltensor = other.dltensor;
  dltensor.shape = shape.data();
  stype = other.stype;
  return *this;
}

inline MXTensor::MXTensor(void* data, std::vector<int64_t> tensor_shape, MXDType type, size_t vID,
                          MXContext context, MXStorageType storage_type)
    : data_ptr(data),
      shape(std::move(tensor_shape)),
      dtype(type),
      verID(vID),
      ctx(std::move(context)),
      dltensor(),
      stype(storage_type) {
  setDLTensor();
}

inline void MXTensor::setTensor(void* data, MXDType type, const int64_t* dims, int ndims,
                                size_t vID, MXContext context, MXStorageType storage_type) {
  data_ptr = data;
  dtype = type;
  shape.assign(dims, dims + ndims);
  verID = vID;
  ctx = std::move(context);
  stype = storage_type;
  setDLTensor();
}

inline void MXTensor::setDLTensor() {
  struct DType {
    MXDType type;
    uint8_t code;
    uint8_t bits;
  };
  static const DType table[] = {
      {kFloat32, dlpack::kDLFloat, 32}, {kFloat64, dlpack::kDLFloat, 64},
      {kFloat16, dlpack::kDLFloat, 16}, {kBfloat16, dlpack::kDLBfloat, 16},
      {kUint8, dlpack::kDLUInt, 8},     {kUint16, dlpack::kDLUInt, 16},
      {kUint32, dlpack::kDLUInt, 32},   {kUint64, dlpack::kDLUInt, 64},
      {kInt8, dlpack::kDLInt, 8},       {kInt16, dlpack::kDLInt, 16},
      {kInt32, dlpack::kDLInt, 32},     {kInt64, dlpack::kDLInt, 64},
      {kBool, dlpack::kDLBool, 8},
  };
  const DType* found = nullptr;
  for (const DType& known : table) {
    if (known.type == dtype) found = &known;
  }
  if (found == nullptr) {
    detail::failCall("MXTensor: unknown dtype code %d", static_cast<int>(dtype));
  }
  dltensor.data = data_ptr;
  dltensor.ndim = static_cast<int>(shape.size());
  dltensor.shape = shape.data();
  dltensor.strides = nullptr;
  dltensor.byte_offset = 0;
  dltensor.dtype.code = found->code;
  dltensor.dtype.bits = found->bits;
  dltensor.dtype.lanes = 1;
  dltensor.ctx.device_id = ctx.dev_id;
  dltensor.ctx.device_type = ctx.dev_type == "cpu"   ? dlpack::kDLCPU
                             : ctx.dev_type == "gpu" ? dlpack::kDLGPU
                                                     : dlpack::kDLExtDev;
}

inline int64_t MXTensor::size() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

inline bool MXTensor::isSame(const MXTensor& other) const {
  return data_ptr == other.data_ptr && dtype == other.dtype && verID == other.verID &&
         ctx.dev_type == other.ctx.dev_type && ctx.dev_id == other.ctx.dev_id &&
         shape == other.shape && stype == other.stype;
}

// ---- nodes -------------------------------------------------------------------------------------

namespace detail {

/// Two bits of a node, and the operator for which its number of outputs is known, as a hash. They
/// share a word, because walks over large graphs wait for the memory of nodes.
class NodeMarks {
 public:
  static constexpr uint32_t kDoomed = 0x80000000;  // being deleted: passes may list a node twice
  static constexpr uint32_t kAdded = 0x40000000;   // made by Graph::addNode

  static bool has(const Node& node, uint32_t mark) { return (node.marks_ & mark) != 0; }
  static void set(Node* node, uint32_t mark) { node->marks_ |= mark; }
  static void declareOutputs(Node* node, int count) {
    node->num_outputs = count;
    node->marks_ = hashOf(node->op) | (node->marks_ & kAdded);
  }
  static bool hasOutput(const Node& node, int index) {
    if (index < 0) return false;
    return index < node.num_outputs || node.num_outputs <= 0 ||
           (node.marks_ & ~kAdded) != hashOf(node.op);
  }

 private:
  static uint32_t hashOf(const std::string& op) {
    return static_cast<uint32_t>(std::hash<std::string>()(op)) & ~(kDoomed | kAdded);
  }
};

/// Sets num_outputs for the present operator.
inline void declareOutputs(Node* node, int count) { NodeMarks::declareOutputs(node, count); }

/// Whether the operator may have an output of this number. False only if it is known not to.
inline bool hasOutput(const Node& node, int index) { return NodeMarks::hasOutput(node, index); }

/// Before each node stands a word: 0 if the node has memory of its own, kLent if a host owns it,
/// otherwise the address of the count of nodes in the block that it lies in.
const std::size_t kNodeMark = sizeof(uint64_t);
const uint64_t kLent = 1;

inline void* markNode(void* memory, uint64_t mark) {
  ::new (memory) uint64_t(mark);
  return static_cast<char*>(memory) + kNodeMark;
}

/// The beginning of a block of nodes. The last node releases the block.
typedef std::atomic<uint64_t> NodeCount;

inline void leaveBlock(NodeCount* count) {
  if (count->fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete(count);
}

}  // namespace detail

inline void* Node::operator new(std::size_t size) {
  return detail::markNode(::operator new(size + detail::kNodeMark), 0);
}

inline void* Node::operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept {
  void* const memory = ::operator new(size + detail::kNodeMark, nothrow);
  return memory == nullptr ? nullptr : detail::markNode(memory, 0);
}

inline void Node::operator delete(void* node) noexcept {
  if (node == nullptr) return;
  void* const memory = static_cast<char*>(node) - detail::kNodeMark;
  const uint64_t mark = *static_cast<uint64_t*>(memory);
  if (mark == 0) {
    ::operator delete(memory);
  } else if (mark != detail::kLent) {
    detail::leaveBlock(reinterpret_cast<detail::NodeCount*>(static_cast<uintptr_t>(mark)));
  }
}

// ---- registries --------------------------------------------------------------------------------

namespace detail {

// Connect the entry points of operators and partitioners to their code, which a library that
// registers none does not contain.
inline void install(const CustomPass*);
inline void install(const PassDeclaration*);
inline void install(const CustomOp*);
inline void install(const CustomPartitioner*);

}  // namespace detail

/// The entries that a library registered, in order; one registry per type and library, which lives
/// until the process ends.
template <class ValueType>
class Registry {
 public:
  static Registry* get() {
    static Registry* const instance = new Registry();
    return instance;
  }
  /// Adds an entry. The reference stays valid.
  ValueType& add(const char* name) {
    ValueType* const entry = new ValueType(name);
    entries_.push_back(entry);
    detail::install(entry);
    return *entry;
  }
  int size() const { return static_cast<int>(entries_.size()); }
  const ValueType& get(int idx) const { return *entries_[checked(idx)]; }
  ValueType& get(int idx) { return *entries_[checked(idx)]; }

 private:
  Registry() {}
  std::size_t checked(int idx) const {
    if (idx < 0 || idx >= size()) throw std::out_of_range("there is no such entry");
    return static_cast<std::size_t>(idx);
  }
  detail::PlainList<ValueType*> entries_;
};

// ---- JSON: the reader --------------------------------------------------------------------------

namespace detail {

/// Length of the UTF-8 sequence at p, or 0 if there is none. Rejects overlong forms, surrogates and
/// code points beyond U+10FFFF.
inline std::size_t utf8Length(const char* cursor, const char* end) {
  const unsigned char* unit = reinterpret_cast<const unsigned char*>(cursor);
  const std::size_t left = static_cast<std::size_t>(end - cursor);
  const auto follows = [&](std::size_t pos, unsigned low, unsigned high) {
    return pos < left && unit[pos] >= low && unit[pos] <= high;
  };
  if (unit[0] < 0x80) return 1;
  if (unit[0] >= 0xC2 && unit[0] <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (unit[0] >= 0xE0 && unit[0] <= 0xEF) {
    const unsigned low = unit[0] == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = unit[0] == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (unit[0] >= 0xF0 && unit[0] <= 0xF4) {
    const unsigned low = unit[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned high = unit[0] == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

/// Marks the first of eight bytes that is a quote, a backslash, a control character or not ASCII,
/// and perhaps others behind it, by their highest bits.
inline uint64_t special(uint64_t bytes) {
  const uint64_t ones = 0x0101010101010101ULL;
  const uint64_t highs = 0x8080808080808080ULL;
  const uint64_t quote = bytes ^ (ones * '"');
  const uint64_t backslash = bytes ^ (ones * '\\');
  const uint64_t zeros = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
  const uint64_t control = (bytes - ones * 0x20) & ~bytes;
  return (zeros | control | bytes) & highs;
}

/// Whether no byte of a text is special.
inline bool isPlain(const char* text, std::size_t size) {
  uint64_t bytes = 0;
  if (size < 8) {
    memset(&bytes, ' ', 8);
    for (std::size_t pos = 0; pos < size; ++pos) reinterpret_cast<char*>(&bytes)[pos] = text[pos];
    return special(bytes) == 0;
  }
  const char* const last = text + size - 8;
  for (; text < last; text += 8) {
    memcpy(&bytes, text, 8);
    if (special(bytes) != 0) return false;
  }
  memcpy(&bytes, last, 8);
  return special(bytes) == 0;
}

/// The first special byte, or one of the few before it.
inline const char* skipPlain(const char* cursor, const char* end) {
  while (end - cursor >= 8) {
    uint64_t bytes;
    memcpy(&bytes, cursor, 8);
    const uint64_t marks = special(bytes);
    if (marks != 0) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      cursor += __builtin_ctzll(marks) / 8;
#endif
      break;
    }
    cursor += 8;
  }
  return cursor;
}

inline bool isDigit(char character) { return character >= '0' && character <= '9'; }

inline std::string quoted(const std::string& name) { return "'" + name + "'"; }

/// The limit of numbers that a graph stores as int.
const int64_t kIntMax = (std::numeric_limits<int>::max)();

}  // namespace detail

inline JsonReader::JsonReader(const char* text, std::size_t size, const JsonOptions& options)
    : begin_(text), end_(text + size), cursor_(text), depth_(0), options_(options) {}

inline void JsonReader::fail(JsonErrorCode code, const std::string& message,
                             std::size_t place) const {
  std::size_t line = 1;
  std::size_t line_begin = 0;
  for (std::size_t pos = 0; pos < place && begin_ + pos < end_; ++pos) {
    if (begin_[pos] == '\n') {
      ++line;
      line_begin = pos + 1;
    }
  }
  const std::size_t column = place - line_begin + 1;
  throw JsonError(code,
                  detail::printed("%s (line %zu, column %zu, offset %zu)", message.c_str(), line,
                                  column, place),
                  place, line, column);
}

inline void JsonReader::failAt(JsonErrorCode code, std::size_t place, const char* form, ...) const {
  va_list values;
  va_start(values, form);
  const std::string message = detail::printText(form, values);
  va_end(values);
  fail(code, message, place);
}

inline void JsonReader::unexpected(const char* wanted) const {
  const std::size_t place = offset();
  if (cursor_ == end_) failAt(kJsonTruncated, place, "the text ends where %s should stand", wanted);
  const unsigned char character = static_cast<unsigned char>(*cursor_);
  const bool shown = character >= 0x20 && character < 0x7F;
  fail(kJsonSyntax, (shown ? detail::printed("'%c'", character)
                           : detail::printed("byte 0x%02x", static_cast<unsigned>(character))) +
                        " where " + wanted + " should stand");
}

inline void JsonReader::skipSpace() {
  for (;;) {
    while (cursor_ < end_ &&
           (*cursor_ == ' ' || *cursor_ == '\n' || *cursor_ == '\r' || *cursor_ == '\t')) {
      ++cursor_;
    }
    if (!options_.allow_comments || end_ - cursor_ < 2 || cursor_[0] != '/' || cursor_[1] != '/') {
      return;
    }
    while (cursor_ < end_ && *cursor_ != '\n') ++cursor_;
  }
}

inline char JsonReader::peek() {
  skipSpace();
  return cursor_ < end_ ? *cursor_ : '\0';
}

inline void JsonReader::enter() {
  if (++depth_ > options_.max_depth) {
    failAt(kJsonDepth, offset(), "nested deeper than %zu levels", options_.max_depth);
  }
  ++cursor_;
}

inline void JsonReader::beginObject() {
  if (peek() != '{') unexpected("an object");
  enter();
}

inline void JsonReader::beginList() {
  if (peek() != '[') unexpected("a list");
  enter();
}

inline bool JsonReader::nextElement(bool* first, char close, const char* where) {
  const char character = peek();
  if (character == close && cursor_ < end_) {
    ++cursor_;
    --depth_;
    return false;
  }
  if (*first) {
    *first = false;
    return true;
  }
  if (character != ',') unexpected(where);
  ++cursor_;
  if (options_.allow_comments && peek() == close && cursor_ < end_) {
    ++cursor_;
    --depth_;
    return false;
  }
  return true;
}

inline bool JsonReader::nextKey(bool* first, Slice* key) {
  if (!nextElement(first, '}', "',' or '}'")) return false;
  if (peek() != '"') unexpected("a key in quotes");
  *key = readString();
  if (peek() != ':') unexpected("':'");
  ++cursor_;
  return true;
}

inline bool JsonReader::nextItem(bool* first) {
  if (!nextElement(first, ']', "',' or ']'")) return false;
  if (peek() == ']') unexpected("a value");
  return true;
}

inline const char* JsonReader::checkUtf8(const char* cursor) const {
  const std::size_t length = detail::utf8Length(cursor, end_);
  if (length == 0) failHere(kJsonUtf8, cursor, "not UTF-8");
  return cursor + length;
}

inline const char* JsonReader::scanString(const char* cursor) const {
  for (;;) {
    cursor = detail::skipPlain(cursor, end_);
    if (cursor == end_) failHere(kJsonTruncated, cursor, "the text ends inside a string");
    const unsigned char character = static_cast<unsigned char>(*cursor);
    if (character == '"' || character == '\\') return cursor;
    if (character < 0x20 && !options_.allow_control_characters) {
      failHere(kJsonSyntax, cursor, "a control character inside a string must be escaped");
    }
    cursor = character < 0x80 ? cursor + 1 : checkUtf8(cursor);
  }
}

inline unsigned JsonReader::readHex4(const char* cursor) const {
  if (end_ - cursor < 4) failHere(kJsonTruncated, cursor, "the text ends inside an escape");
  unsigned value = 0;
  for (int pos = 0; pos < 4; ++pos) {
    const char character = cursor[pos];
    unsigned digit = 0;
    if (detail::isDigit(character)) {
      digit = static_cast<unsigned>(character - '0');
    } else if (character >= 'a' && character <= 'f') {
      digit = static_cast<unsigned>(character - 'a') + 10;
    } else if (character >= 'A' && character <= 'F') {
      digit = static_cast<unsigned>(character - 'A') + 10;
    } else {
      failHere(kJsonSyntax, cursor, "\\u wants four hexadecimal digits");
    }
    value = value * 16 + digit;
  }
  return value;
}

inline const char* JsonReader::decodeEscape(const char* cursor) {
  const char* const place = cursor;
  ++cursor;
  if (cursor == end_) failHere(kJsonTruncated, place, "the text ends inside an escape");
  static const char from[] = "\"\\/bfnrt";
  static const char target[] = "\"\\/\b\f\n\r\t";
  if (const char* simple = *cursor != '\0' ? strchr(from, *cursor) : nullptr) {
    scratch_ += target[simple - from];
    return cursor + 1;
  }
  if (*cursor != 'u') failHere(kJsonSyntax, place, "unknown escape");
  unsigned code = readHex4(cursor + 1);
  cursor += 5;
  if (code >= 0xDC00 && code <= 0xDFFF)
    failHere(kJsonUtf8, place, "second half of a surrogate pair");
  if (code >= 0xD800 && code <= 0xDBFF) {
    if (end_ - cursor < 2 || cursor[0] != '\\' || cursor[1] != 'u') {
      failHere(kJsonUtf8, place, "half of a surrogate pair");
    }
    const unsigned low = readHex4(cursor + 2);
    if (low < 0xDC00 || low > 0xDFFF) failHere(kJsonUtf8, place, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    cursor += 6;
  }
  const auto append = [this](unsigned byte) { scratch_ += static_cast<char>(byte); };
  if (code < 0x80) {
    append(code);
  } else if (code < 0x800) {
    append(0xC0 | (code >> 6));
    append(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    append(0xE0 | (code >> 12));
    append(0x80 | ((code >> 6) & 0x3F));
    append(0x80 | (code & 0x3F));
  } else {
    append(0xF0 | (code >> 18));
    append(0x80 | ((code >> 12) & 0x3F));
    append(0x80 | ((code >> 6) & 0x3F));
    append(0x80 | (code & 0x3F));
  }
  return cursor;
}

inline JsonReader::Slice JsonReader::readString() {
  if (peek() != '"') unexpected("a string");
  const char* start = cursor_ + 1;
  const char* cursor = scanString(start);
  if (*cursor == '"') {
    cursor_ = cursor + 1;
    return Slice{start, static_cast<std::size_t>(cursor - start)};
  }
  scratch_.assign(start, static_cast<std::size_t>(cursor - start));
  while (*cursor != '"') {
    cursor = decodeEscape(cursor);
    const char* stop = scanString(cursor);
    scratch_.append(cursor, static_cast<std::size_t>(stop - cursor));
    cursor = stop;
  }
  cursor_ = cursor + 1;
  return Slice{scratch_.data(), scratch_.size()};
}

inline JsonReader::Slice JsonReader::readNumber() {
  const char character = peek();
  if (character != '-' && !detail::isDigit(character)) unexpected("a number");
  const char* start = cursor_;
  const auto digits = [this]() {
    if (cursor_ == end_ || !detail::isDigit(*cursor_)) unexpected("a digit");
    while (cursor_ < end_ && detail::isDigit(*cursor_)) ++cursor_;
  };
  if (character == '-') ++cursor_;
  if (cursor_ < end_ && *cursor_ == '0') {
    ++cursor_;
    if (cursor_ < end_ && detail::isDigit(*cursor_)) {
      failHere(kJsonSyntax, start, "a number must not begin with 0");
    }
  } else {
    digits();
  }
  if (cursor_ < end_ && *cursor_ == '.') {
    ++cursor_;
    digits();
  }
  if (cursor_ < end_ && (*cursor_ == 'e' || *cursor_ == 'E')) {
    ++cursor_;
    if (cursor_ < end_ && (*cursor_ == '+' || *cursor_ == '-')) ++cursor_;
    digits();
  }
  return Slice{start, static_cast<std::size_t>(cursor_ - start)};
}

namespace detail {

/// Reads a decimal integer; false for anything else and for what does not fit in 64 bits.
inline bool parseInteger(const char* text, std::size_t size, int64_t* value) {
  const char* cursor = text;
  const char* end = text + size;
  const bool negative = cursor < end && *cursor == '-';
  if (negative) ++cursor;
  if (cursor == end || end - cursor > 19) return false;
  uint64_t magnitude = 0;
  for (; cursor < end; ++cursor) {
    if (!isDigit(*cursor)) return false;
    magnitude = magnitude * 10 + static_cast<uint64_t>(*cursor - '0');
  }
  const uint64_t limit = static_cast<uint64_t>((std::numeric_limits<int64_t>::max)());
  if (magnitude > limit + (negative ? 1 : 0)) return false;
  *value = negative ? static_cast<int64_t>(0 - magnitude) : static_cast<int64_t>(magnitude);
  return true;
}

/// The decimal separator of the C library's numbers, which depends on the locale.
inline std::string decimalPoint() {
  char buffer[32];
  const int size = snprintf(buffer, sizeof(buffer), "%.1f", 0.5);
  return size > 2 ? std::string(buffer + 1, static_cast<std::size_t>(size) - 2) : std::string(".");
}

/// Reads a decimal number as the nearest double, infinity where it is too large, independent of the
/// locale. Returns false if text is left. Without streams, which take many times as long.
inline bool scanDouble(const std::string& text, double* value) {
  // The C library reads hexadecimal numbers and names too.
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  char* end = nullptr;
  *value = strtod(text.c_str(), &end);
  if (*end != '.') return *end == '\0' && end != text.c_str();
  std::string local = text;
  local.replace(static_cast<std::size_t>(end - text.c_str()), 1, decimalPoint());
  *value = strtod(local.c_str(), &end);
  return *end == '\0';
}

/// The double as text of `digits` digits, independent of the locale.
inline std::string printDouble(double value, int digits) {
  char buffer[64];  // the longest has 24 characters and a point of several bytes
  std::string text(
      buffer, static_cast<std::size_t>(snprintf(buffer, sizeof(buffer), "%.*g", digits, value)));
  const std::size_t point = text.find_first_not_of("0123456789+-e");
  if (point == std::string::npos || text[point] == '.') return text;
  const std::size_t fraction = text.find_first_of("0123456789", point);
  return text.replace(point, fraction - point, ".");
}

/// Reads a number in JSON's grammar as double, independent of the locale.
inline double parseDouble(const std::string& text) {
  double value = 0;
#if defined(__cpp_lib_to_chars)
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ec == std::errc()) return value;
#endif
  scanDouble(text, &value);
  return value;
}

/// `num` of a number: truncated towards zero and clamped to the range of int.
inline int toInt(double value) {
  if (value >= static_cast<double>((std::numeric_limits<int>::max)())) {
    return (std::numeric_limits<int>::max)();
  }
  if (value <= static_cast<double>((std::numeric_limits<int>::min)())) {
    return (std::numeric_limits<int>::min)();
  }
  return static_cast<int>(value);
}

}  // namespace detail

inline int64_t JsonReader::readInteger(const char* what, int64_t low, int64_t high) {
  const char character = peek();
  const std::size_t place = offset();
  if (cursor_ == end_) unexpected(what);
  if (character != '-' && !detail::isDigit(character)) {
    failAt(kJsonType, place, "%s must be an integer", what);
  }
  const Slice text = readNumber();
  int64_t value = 0;
  if (!detail::parseInteger(text.data, text.size, &value)) {
    for (std::size_t pos = 0; pos < text.size; ++pos) {
      if (strchr(".eE", text.data[pos]) == nullptr) continue;
      failAt(kJsonType, place, "%s must be an integer", what);
    }
    failAt(kJsonRange, place, "%s %s is out of range", what, text.str().c_str());
  }
  if (value < low || value > high) {
    failAt(kJsonRange, place, "%s %lld is not within %lld to %lld", what,
           static_cast<long long>(value), static_cast<long long>(low),
           static_cast<long long>(high));
  }
  return value;
}

inline void JsonReader::expectWord(const char* word) {
  for (const char* expected = word; *expected != '\0'; ++expected, ++cursor_) {
    if (cursor_ == end_ || *cursor_ != *expected) unexpected(word);
  }
}

inline bool JsonReader::readBool() {
  const char character = peek();
  if (character != 't' && character != 'f') unexpected("true or false");
  expectWord(character == 't' ? "true" : "false");
  return character == 't';
}

inline void JsonReader::readNull() {
  if (peek() != 'n') unexpected("null");
  expectWord("null");
}

inline void JsonReader::finish() {
  if (peek() != '\0' || cursor_ < end_) {
    failHere(kJsonTrailing, cursor_, "something follows the end of the JSON text");
  }
}

namespace detail {

/// Append-only text, mostly of short pieces. Kept in blocks, so that a long text is never moved
/// while it grows, or in memory of the host, which can grow in place.
class TextBuffer {
 public:
  class Memory {
   public:
    /// Returns memory of at least *size bytes, which it sets to what there is. The text so far, of
    /// `used` bytes, is at its beginning.
    virtual char* grow(std::size_t used, std::size_t* size) = 0;

   protected:
    ~Memory() = default;
  };

  explicit TextBuffer(Memory* memory = nullptr)
      : memory_(memory), size_(0), room_(nullptr), left_(0), ascii_(true) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { clear(); }

  /// Room for `count` more bytes, to be claimed with advance.
  char* room(std::size_t count) {
    if (left_ < count) addBlock(count);
    return room_;
  }
  void advance(std::size_t count) {
    room_ += count;
    left_ -= count;
  }
  /// Claims the room up to `end`.
  void advanceTo(const char* end) { advance(static_cast<std::size_t>(end - room_)); }
  void append(const char* text, std::size_t count) {
    memcpy(room(count), text, count);
    advance(count);
  }
  void append(const std::string& text) { append(text.data(), text.size()); }
  template <std::size_t TextSize>
  void append(const char (&text)[TextSize]) {
    append(text, TextSize - 1);
  }
  void push_back(char character) {
    *room(1) = character;
    advance(1);
  }
  /// Appends what was written before, at this place of a text in memory of the host.
  void repeat(std::size_t place, std::size_t count) {
    char* const target = room(count);
    memcpy(target, target - size() + place, count);
    advance(count);
  }
  /// Whether the text lies in one piece.
  bool isWhole() const { return memory_ != nullptr; }
  void noteNotAscii() { ascii_ = false; }
  bool isAscii() const { return ascii_; }
  std::size_t size() const { return size_ - left_; }

  /// Moves a text in blocks to memory of its size, block by block: a long one is never in memory
  /// twice.
  void moveTo(char* target) {
    closeBlock();
    for (Block& block : blocks_) {
      memcpy(target, block.text, block.size);
      target += block.size;
      free(block.text);
      block.text = nullptr;
    }
    clear();
  }
  void clear() {
    for (const Block& block : blocks_) free(block.text);
    blocks_.clear();
    room_ = nullptr;
    left_ = size_ = 0;
  }
  std::string str() {
    std::string text(size(), '\0');
    moveTo(&text[0]);
    return text;
  }

 private:
  struct Block {
    char* text;
    std::size_t size;
  };

  void closeBlock() {
    if (!blocks_.empty()) blocks_.back().size -= left_;
    size_ -= left_;
    left_ = 0;
  }
  __attribute__((__noinline__)) void addBlock(std::size_t count) {
    if (memory_ != nullptr) {
      const std::size_t used = size();
      size_ = (std::max)(2 * used, used + count);
      room_ = memory_->grow(used, &size_) + used;
      left_ = size_ - used;
      return;
    }
    closeBlock();
    // Little memory for small texts, few blocks for large ones.
    const std::size_t last = blocks_.empty() ? 256 : blocks_.back().size;
    const std::size_t size = (std::max)(count, std::min<std::size_t>(2 * last, 1 << 20));
    blocks_.push_back(Block{nullptr, 0});
    room_ = static_cast<char*>(malloc(size));
    if (room_ == nullptr) throw std::bad_alloc();
    blocks_.back() = Block{room_, size};
    size_ += size;
    left_ = size;
  }

  Memory* memory_;
  std::size_t size_;  // of that memory, or of the blocks
  PlainList<Block> blocks_;
  char* room_;
  std::size_t left_;
  bool ascii_;
};

/// Appends a string in quotes. `raw_controls`: leave control characters other than \n \r \t
/// unescaped, which is not JSON, but the format of MXNet.
inline void appendString(const char* text, std::size_t size, bool raw_controls, TextBuffer* out) {
  const char* cursor = text;
  const char* end = text + size;
  const char* written = text;
  if (isPlain(text, size)) {
    char* const room = out->room(size + 2);
    room[0] = '"';
    if (size != 0) memcpy(room + 1, text, size);
    room[size + 1] = '"';
    out->advance(size + 2);
    return;
  }
  out->push_back('"');
  while (cursor < end) {
    cursor = skipPlain(cursor, end);
    if (cursor == end) break;
    const unsigned char character = static_cast<unsigned char>(*cursor);
    if (character >= 0x80) {
      const std::size_t length = utf8Length(cursor, end);
      if (length == 0) {
        const std::size_t place = static_cast<std::size_t>(cursor - text);
        throw JsonError(kJsonUtf8,
                        printed("a string holds bytes that are not UTF-8, which JSON cannot "
                                "express (byte %zu of the string)",
                                place),
                        place, 1, place + 1);
      }
      out->noteNotAscii();
      cursor += length;
      continue;
    }
    if (character >= 0x20 && character != '"' && character != '\\') {
      ++cursor;
      continue;
    }
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char target[] = "\"\\nrtbf";
    const char* simple = character != 0 ? strchr(from, static_cast<char>(character)) : nullptr;
    const bool plain =
        simple == nullptr ? character >= 0x20 || raw_controls : raw_controls && simple - from >= 5;
    if (plain) {
      ++cursor;
      continue;
    }
    out->append(written, static_cast<std::size_t>(cursor - written));
    if (simple != nullptr) {
      out->push_back('\\');
      out->push_back(target[simple - from]);
    } else {
      const char digits[] = "0123456789abcdef";
      out->append("\\u00");
      out->push_back(digits[character >> 4]);
      out->push_back(digits[character & 15]);
    }
    written = ++cursor;
  }
  out->append(written, static_cast<std::size_t>(end - written));
  out->push_back('"');
}

/// Appends a list of texts.
inline void appendTexts(const std::vector<std::string>& texts, TextBuffer* out) {
  out->push_back('[');
  for (const std::string& text : texts) {
    if (&text != &texts[0]) out->push_back(',');
    appendString(text.data(), text.size(), false, out);
  }
  out->push_back(']');
}

/// Prints a number to `target`, which has room for 20 bytes, and returns its end.
inline char* printInteger(int64_t value, char* target) {
  if (value >= 0 && value < 10) {
    *target = static_cast<char>('0' + value);
    return target + 1;
  }
  char digits[20];
  char* cursor = digits + sizeof(digits);
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do {
    *--cursor = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--cursor = '-';
  const std::size_t size = static_cast<std::size_t>(digits + sizeof(digits) - cursor);
  memcpy(target, cursor, size);
  return target + size;
}

/// A JSON value with its children as it was read, to become text or a JsonVal. An item names its
/// relatives by their numbers; that of the root, 0, stands for none. A child has a higher number
/// than its parent.
class JsonTree {
 public:
  typedef JsonReader::Slice Slice;
  struct Item {
    std::size_t parent;
    std::size_t first;  // child
    std::size_t last;
    std::size_t next;   // child of the same parent
    std::size_t count;  // of children
    std::size_t key;    // where it begins in the texts
    std::size_t key_size;
    std::size_t text;  // of a scalar
    std::size_t text_size;
    std::size_t place;  // behind the key of a member, for errors
    JsonType type;
    bool lines;  // whether MXNet writes the children on lines
  };

  explicit JsonTree(JsonType type = ERR) { clear(type); }
  /// Leaves an empty root of this type.
  void clear(JsonType type) {
    items_.clear();
    texts_.clear();
    items_.resize(items_.size() + 1);
    items_[0].type = type;
  }
  std::size_t size() const { return items_.size(); }
  const Item& operator[](std::size_t item) const { return items_[item]; }
  Slice key(const Item& item) const { return Slice{texts_.data() + item.key, item.key_size}; }
  Slice text(const Item& item) const { return Slice{texts_.data() + item.text, item.text_size}; }
  bool isComposite(std::size_t item) const {
    return items_[item].type == LIST || items_[item].type == MAP;
  }

  void setType(std::size_t item, JsonType type) {
    items_[item].type = type;
    Item& parent = items_[items_[item].parent];
    if (isComposite(item) && item != 0 && parent.type == LIST) parent.lines = true;
  }
  /// `text`: of a string without escapes, otherwise as in JSON.
  void setScalar(std::size_t item, JsonType type, const Slice& text) {
    items_[item].type = type;
    items_[item].text_size = text.size;
    items_[item].text = keep(text);
  }
  /// Adds a child to a list, or a member to an object.
  std::size_t add(std::size_t parent, const Slice& key = Slice{"", 0}, std::size_t place = 0);
  /// Sorts the members of an object by key. Returns null, or the first that has the key of one
  /// before it.
  const Item* sort(std::size_t object);
  /// Appends an item as JSON, on one line or in the layout of MXNet's writer, of which `depth` is
  /// the indentation.
  void print(std::size_t root, bool pretty, std::size_t depth, TextBuffer* out) const;
  /// Appends the members of the root.
  void print(JsonMembers* members) const;

 private:
  std::size_t keep(const Slice& text) {
    const std::size_t place = texts_.size();
    texts_.append(text.data, text.size);
    return place;
  }
  void begin(std::size_t item, bool pretty, std::size_t depth, TextBuffer* out) const;

  PlainList<Item> items_;
  std::string texts_;
};

inline std::size_t JsonTree::add(std::size_t parent, const Slice& key, std::size_t place) {
  const std::size_t number = items_.size();
  items_.resize(items_.size() + 1);
  Item& item = items_[number];
  item.parent = parent;
  item.key_size = key.size;
  item.key = keep(key);
  item.place = place;
  Item& above = items_[parent];
  (above.count == 0 ? above.first : items_[above.last].next) = number;
  above.last = number;
  ++above.count;
  if (above.count > (above.type == MAP ? 1u : 10u)) above.lines = true;
  return number;
}

inline const JsonTree::Item* JsonTree::sort(std::size_t object) {
  PlainList<NumberedText> keys;
  bool sorted = true;
  for (std::size_t item = items_[object].first; item != 0; item = items_[item].next) {
    const NumberedText next = {key(items_[item]), item};
    sorted = sorted && (keys.empty() || keys.back().text < next.text);
    keys.push_back(next);
  }
  if (sorted) return nullptr;
  sortTexts(&keys);
  std::size_t twice = 0;
  for (std::size_t pos = 1; pos < keys.size(); ++pos) {
    items_[keys[pos - 1].number].next = keys[pos].number;
    // Sorted: if it is not before the next one, it is the same.
    if (keys[pos - 1].text < keys[pos].text || (twice != 0 && twice < keys[pos].number)) continue;
    twice = keys[pos].number;
  }
  items_[object].first = keys[0].number;
  items_[object].last = keys.back().number;
  items_[keys.back().number].next = 0;
  return twice == 0 ? nullptr : &items_[twice];
}

/// How many levels the layout of MXNet's writer indents at most, here and in GraphWriter: the text
/// of what is deeply nested would grow with the square of its depth.
const std::size_t kMostIndented = 64;

inline void appendLine(std::size_t depth, TextBuffer* out) {
  const std::size_t size = 2 * (std::min)(depth, kMostIndented);
  out->push_back('\n');
  memset(out->room(size), ' ', size);
  out->advance(size);
}

/// Writes what comes before the children of an item, or all of a scalar.
inline void JsonTree::begin(std::size_t item, bool pretty, std::size_t depth,
                            TextBuffer* out) const {
  const Item& from = items_[item];
  if (from.type == STR) return appendString(text(from).data, from.text_size, pretty, out);
  if (!isComposite(item)) return out->append(text(from).data, from.text_size);
  out->push_back(from.type == LIST ? '[' : '{');
  if (pretty && from.lines) appendLine(depth + 1, out);
}

inline void JsonTree::print(std::size_t root, bool pretty, std::size_t depth,
                            TextBuffer* out) const {
  std::size_t item = root;
  begin(item, pretty, depth, out);
  for (;;) {
    if (items_[item].first != 0) {
      item = items_[item].first;
      ++depth;
    } else {
      // The values that end here, up to one with another child behind it.
      for (bool leaf = true;; leaf = false) {
        if (!leaf && pretty && items_[item].lines) appendLine(depth, out);
        if (isComposite(item)) out->push_back(items_[item].type == LIST ? ']' : '}');
        if (item == root) return;
        if (items_[item].next != 0) break;
        item = items_[item].parent;
        --depth;
      }
      const bool lines = pretty && items_[items_[item].parent].lines;
      item = items_[item].next;
      out->append(", ");
      if (lines) appendLine(depth, out);
    }
    if (items_[items_[item].parent].type == MAP) {
      appendString(key(items_[item]).data, items_[item].key_size, pretty, out);
      out->append(": ");
    }
    begin(item, pretty, depth, out);
  }
}

inline void JsonTree::print(JsonMembers* members) const {
  for (std::size_t item = items_[0].first; item != 0; item = items_[item].next) {
    TextBuffer out;
    print(item, false, 0, &out);
    members->emplace_back(key(items_[item]).str(), out.str());
  }
}

}  // namespace detail

inline void JsonReader::_readItem(detail::JsonTree* tree, std::size_t root) {
  for (std::size_t item = root;;) {
    const char character = peek();
    switch (character) {
      case '{':
        beginObject();
        tree->setType(item, MAP);
        break;
      case '[':
        beginList();
        tree->setType(item, LIST);
        break;
      case '"':
        tree->setScalar(item, STR, readString());
        break;
      case 't':
      case 'f':
        readBool();
        tree->setScalar(item, BOOL, character == 't' ? Slice{"true", 4} : Slice{"false", 5});
        break;
      case 'n':
        readNull();
        tree->setScalar(item, NIL, Slice{"null", 4});
        break;
      default:
        if (character != '-' && !detail::isDigit(character)) unexpected("a value");
        tree->setScalar(item, NUM, readNumber());
    }
    const bool composite = tree->isComposite(item);
    if (item == root && !composite) return;
    for (std::size_t open = composite ? item : (*tree)[item].parent;; open = (*tree)[open].parent) {
      bool first = (*tree)[open].count == 0;
      if ((*tree)[open].type == LIST) {
        if (nextItem(&first)) {
          item = tree->add(open);
          break;
        }
      } else {
        Slice key;
        if (nextKey(&first, &key)) {
          item = tree->add(open, key, offset());
          break;
        }
        _sort(tree, open);
      }
      if (open == root) return;
    }
  }
}

inline void JsonReader::_sort(detail::JsonTree* tree, std::size_t object) const {
  const detail::JsonTree::Item* const twice = tree->sort(object);
  if (twice == nullptr) return;
  failAt(kJsonDuplicateKey, twice->place, "the key '%s' occurs twice in one object",
         tree->key(*twice).str().c_str());
}

// ---- JSON: values ------------------------------------------------------------------------------

namespace detail {

/// Gets `num` of a number's text. Returns whether the text says no more.
inline bool scanNum(const std::string& text, int* num) {
  int64_t integer = 0;
  if (!parseInteger(text.data(), text.size(), &integer)) {
    *num = toInt(parseDouble(text));
    return false;
  }
  *num = toInt(static_cast<double>(integer));
  return *num == integer && text != "-0";
}

/// The shortest text that reads back as the same double. Throws std::invalid_argument for numbers
/// that JSON does not have.
inline std::string shortestText(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("JSON has no NaN and no infinity");
  std::string text;
  for (int digits = 15; digits <= 17; ++digits) {
#if defined(__cpp_lib_to_chars)
    char buffer[32];  // the longest has 24 characters
    const std::to_chars_result result =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits);
    text.assign(buffer, result.ptr);
#else
    text = printDouble(value, digits);
#endif
    if (!(parseDouble(text) < value) && !(parseDouble(text) > value)) break;
  }
  return text;
}

inline JsonVal makeNumber(std::string text) {
  int num = 0;
  const bool same = scanNum(text, &num);
  return JsonVal(NUM, num, same ? std::string() : std::move(text));
}

/// The text of a number: the original one, unless `num` was changed since.
inline std::string numberText(const JsonVal& value) {
  int num = 0;
  if (!value.str.empty()) scanNum(value.str, &num);
  return !value.str.empty() && num == value.num ? value.str : printed("%d", value.num);
}

/// Moves out of `value` every child that has children of its own.
inline void takeDeepChildren(JsonVal* value, std::vector<JsonVal>* taken) {
  const auto take = [taken](JsonVal* child) {
    if (!child->list.empty() || !child->map.empty()) taken->push_back(std::move(*child));
  };
  for (JsonVal& child : value->list) take(&child);
  for (auto& member : value->map) take(&member.second);
}

/// Adds a member to an object, behind those with lower keys, which are there.
inline JsonVal* addMember(JsonVal key, std::map<JsonVal, JsonVal>* object) {
  return &object->emplace_hint(object->end(), std::move(key), JsonVal())->second;
}

/// A value and that which becomes its copy.
struct JsonCopy {
  const JsonVal* from;
  JsonVal* target;
};

/// Copies type, number and text, and makes room for children, which are queued.
inline void copyShallow(const JsonVal& from, JsonVal* target, PlainList<JsonCopy>* queue) {
  target->type = from.type;
  target->num = from.num;
  target->str = from.str;
  target->list.resize(from.list.size());
  for (std::size_t pos = 0; pos < from.list.size(); ++pos) {
    queue->push_back(JsonCopy{&from.list[pos], &target->list[pos]});
  }
  for (const auto& member : from.map) {
    queue->push_back(JsonCopy{&member.second, addMember(member.first, &target->map)});
  }
}

inline int sign(bool less, bool greater) { return less ? -1 : greater ? 1 : 0; }

/// Order of two values without their children: type, number, text.
inline int compareScalars(const JsonVal& left, const JsonVal& right) {
  if (left.type != right.type) return sign(left.type<right.type, left.type> right.type);
  if (left.type == STR) return sign(left.str < right.str, right.str < left.str);
  if (left.type == BOOL) return sign(left.num<right.num, left.num> right.num);
  if (left.type == NUM) {
    if (left.str.empty() && right.str.empty()) return sign(left.num<right.num, left.num> right.num);
    const double left_number = left.toDouble();
    const double right_number = right.toDouble();
    if (left_number < right_number || right_number < left_number)
      return sign(left_number < right_number, right_number < left_number);
    const std::string text_a = numberText(left);
    const std::string text_b = numberText(right);
    return sign(text_a < text_b, text_b < text_a);
  }
  return 0;
}

/// Lexicographic order of two values with all their children; iterative.
inline int compareJson(const JsonVal& left, const JsonVal& right) {
  // A step without values compares two lengths, after all elements were equal.
  struct Step {
    const JsonVal* left;
    const JsonVal* right;
    int verdict;
  };
  PlainList<Step> steps;
  steps.push_back(Step{&left, &right, 0});
  while (!steps.empty()) {
    const Step step = steps.back();
    steps.pop_back();
    const int order = step.left == nullptr ? step.verdict : compareScalars(*step.left, *step.right);
    if (order != 0) return order;
    if (step.left == nullptr || (step.left->type != LIST && step.left->type != MAP)) continue;
    const bool lists = step.left->type == LIST;
    const std::size_t size_a = lists ? step.left->list.size() : step.left->map.size();
    const std::size_t size_b = lists ? step.right->list.size() : step.right->map.size();
    steps.push_back(Step{nullptr, nullptr, sign(size_a<size_b, size_a> size_b)});
    const std::size_t first_child = steps.size();
    if (lists) {
      for (std::size_t pos = 0; pos < (std::min)(size_a, size_b); ++pos) {
        steps.push_back(Step{&step.left->list[pos], &step.right->list[pos], 0});
      }
    } else {
      auto pos = step.left->map.begin();
      auto other_pos = step.right->map.begin();
      for (; pos != step.left->map.end() && other_pos != step.right->map.end();
           ++pos, ++other_pos) {
        steps.push_back(Step{&pos->first, &other_pos->first, 0});
        steps.push_back(Step{&pos->second, &other_pos->second, 0});
      }
    }
    for (std::size_t low = first_child, high = steps.size(); low + 1 < high; ++low) {
      const Step first = steps[low];
      steps[low] = steps[--high];
      steps[high] = first;
    }
  }
  return 0;
}

/// Walks a value in the order of its text, iteratively.
class JsonWalk {
 public:
  /// kBegin: a container begins, or a scalar; kChild: a child follows; kClose: a container ends.
  enum Event { kBegin, kChild, kClose, kEnd };
  explicit JsonWalk(const JsonVal& root) : value(&root), key(nullptr) {}
  Event next() {
    if (event_ == kEnd || event_ == kChild) return event_ = kBegin;
    if (event_ == kBegin && (value->type == LIST || value->type == MAP)) {
      open_.push_back(Frame{value, 0, nullptr});
    }
    if (event_ == kClose) open_.pop_back();
    if (open_.empty()) return event_ = kEnd;
    Frame& top = open_.back();
    index = top.index++;
    if (top.container->type == LIST && index < top.container->list.size()) {
      value = &top.container->list[index];
      key = nullptr;
      return event_ = kChild;
    }
    if (top.container->type == MAP && index < top.container->map.size()) {
      const std::map<JsonVal, JsonVal>& map = top.container->map;
      const auto member = top.key == nullptr ? map.begin() : map.upper_bound(*top.key);
      key = top.key = &member->first;
      value = &member->second;
      return event_ = kChild;
    }
    value = top.container;
    return event_ = kClose;
  }

  const JsonVal* value;   ///< what begins, follows or ends
  const JsonVal* key;     ///< of the child; null in lists
  std::size_t index = 0;  ///< of a child; of what ends, the number of its children

 private:
  struct Frame {
    const JsonVal* container;
    std::size_t index;
    const JsonVal* key;  // of the last member; iterators of a library's debug mode are not plain
  };
  PlainList<Frame> open_;
  Event event_ = kEnd;
};

inline void appendScalar(const JsonVal& value, TextBuffer* out) {
  switch (value.type) {
    case STR:
      appendString(value.str.data(), value.str.size(), false, out);
      break;
    case NUM:
      out->append(numberText(value));
      break;
    case BOOL:
      out->append(std::string(value.num != 0 ? "true" : "false"));
      break;
    case NIL:
      out->append("null");
      break;
    default:
      throw std::invalid_argument("a JsonVal of type ERR cannot be written as JSON");
  }
}

/// Writes a value, with these texts between items, and between key and value.
inline void printValue(const JsonVal& root, const std::string& comma, const std::string& colon,
                       TextBuffer* out) {
  typedef JsonWalk Walk;
  Walk walk(root);
  for (;;) {
    const Walk::Event event = walk.next();
    const bool in_list = walk.value->type == LIST;
    if (event == Walk::kEnd) return;
    if (event == Walk::kClose) {
      out->push_back(in_list ? ']' : '}');
    } else if (event == Walk::kChild) {
      if (walk.index > 0) out->append(comma);
      if (walk.key == nullptr) continue;
      // Keys of other types, which JSON does not allow, are written as strings.
      const std::string name = walk.key->type == STR ? walk.key->str : walk.key->dump();
      appendString(name.data(), name.size(), false, out);
      out->append(colon);
    } else if (in_list || walk.value->type == MAP) {
      out->push_back(in_list ? '[' : '{');
    } else {
      appendScalar(*walk.value, out);
    }
  }
}

/// Makes the value that a tree describes.
inline JsonVal valueOf(const JsonTree& tree) {
  JsonVal root;
  PlainList<JsonVal*> targets;  // of the items
  targets.resize(tree.size());
  targets[0] = &root;
  for (std::size_t pos = 0; pos < tree.size(); ++pos) {
    const JsonTree::Item& item = tree[pos];
    JsonVal* const target = targets[pos];
    target->type = item.type;
    if (item.type == STR) target->str = tree.text(item).str();
    if (item.type == NUM) *target = makeNumber(tree.text(item).str());
    if (item.type == BOOL) target->num = tree.text(item) == "true" ? 1 : 0;
    if (item.type == LIST) target->list.resize(item.count);
    std::size_t nth = 0;
    for (std::size_t child = item.first; child != 0; child = tree[child].next) {
      targets[child] = item.type == LIST
                           ? &target->list[nth++]
                           : addMember(JsonVal(tree.key(tree[child]).str()), &target->map);
    }
  }
  return root;
}

}  // namespace detail

inline void JsonVal::clear() {
  std::vector<JsonVal> deep;
  detail::takeDeepChildren(this, &deep);
  list.clear();
  map.clear();
  while (!deep.empty()) {
    JsonVal last = std::move(deep.back());
    deep.pop_back();
    detail::takeDeepChildren(&last, &deep);
    last.list.clear();
    last.map.clear();
  }
}

inline JsonVal::JsonVal(const JsonVal& other) : type(other.type), num(other.num) {
  detail::PlainList<detail::JsonCopy> queue;
  detail::copyShallow(other, this, &queue);
  while (!queue.empty()) {
    const detail::JsonCopy next = queue.back();
    queue.pop_back();
    detail::copyShallow(*next.from, next.target, &queue);
  }
}

inline JsonVal& JsonVal::operator=(const JsonVal& other) {
  if (this != &other) {
    JsonVal copy(other);
    *this = std::move(copy);
  }
  return *this;
}

inline JsonVal& JsonVal::operator=(JsonVal&& other) noexcept {
  // `other` may be a child of this value: it must be moved out before the children go.
  JsonVal taken(std::move(other));
  this->~JsonVal();
  return *::new (static_cast<void*>(this)) JsonVal(std::move(taken));
}

inline JsonVal JsonVal::integer(int64_t value) {
  return detail::makeNumber(detail::printed("%lld", static_cast<long long>(value)));
}

inline JsonVal JsonVal::real(double value) {
  return detail::makeNumber(detail::shortestText(value));
}

inline double JsonVal::toDouble() const {
  if (type == BOOL) return num;
  if (type != NUM) return 0;
  return str.empty() ? num : detail::parseDouble(detail::numberText(*this));
}

inline bool JsonVal::toInteger(int64_t* value) const {
  if (type != NUM) return false;
  const std::string text = detail::numberText(*this);
  return detail::parseInteger(text.data(), text.size(), value);
}

inline bool JsonVal::operator<(const JsonVal& other) const {
  if (type == STR && other.type == STR) return str < other.str;  // keys: the usual case
  return detail::compareJson(*this, other) < 0;
}

inline bool JsonVal::operator==(const JsonVal& other) const {
  return detail::compareJson(*this, other) == 0;
}

inline std::string JsonVal::dump() const {
  detail::TextBuffer out;
  detail::printValue(*this, ",", " : ", &out);
  return out.str();
}

inline std::string JsonVal::toString() const {
  std::string out;
  typedef detail::JsonWalk Walk;
  Walk walk(*this);
  for (;;) {
    const Walk::Event event = walk.next();
    const bool in_list = walk.value->type == LIST;
    if (event == Walk::kEnd) return out;
    if (event == Walk::kClose) {
      if (walk.index > 0) out += ',';
      out += in_list ? "])" : "})";
    } else if (event == Walk::kChild) {
      if (walk.index > 0) out += ',';
      if (walk.key != nullptr) out.append(walk.key->toString()).append(" : ");
    } else {
      const bool text = walk.value->type == STR;
      switch (walk.value->type) {
        case STR:
        case NUM:
          out.append(text ? "json(STR:" : "json(INT:");
          out.append(text ? walk.value->str : detail::numberText(*walk.value)).append(")");
          break;
        case LIST:
        case MAP:
          out += in_list ? "json(LIST:[" : "json(MAP:{";
          break;
        case BOOL:
          out += walk.value->num != 0 ? "json(BOOL:true)" : "json(BOOL:false)";
          break;
        case NIL:
          out += "json(NULL)";
          break;
        default:
          out += "json(Error)";
      }
    }
  }
}

inline JsonVal JsonReader::readValue() {
  detail::JsonTree tree;
  _readItem(&tree, 0);
  return detail::valueOf(tree);
}

inline JsonVal JsonVal::parse(const std::string& json) {
  JsonReader reader(json.data(), json.size());
  JsonVal value = reader.readValue();
  reader.finish();
  return value;
}

inline JsonVal JsonVal::parse(const std::string& json, unsigned int* idx) {
  const std::size_t start = std::min<std::size_t>(*idx, json.size());
  JsonReader reader(json.data() + start, json.size() - start);
  JsonVal value = reader.readValue();
  *idx = static_cast<unsigned int>(start + reader.offset());
  return value;
}

// ---- what hosts give to libraries: plain arrays and functions ----------------------------------

/// Version of the flat form of graphs: the structs whose names begin with Flat. A host uses it only
/// with libraries of the same version.
#define PASSLIB_FLAT_VERSION 2

/// A text, not terminated. `data` may be null if `size` is 0.
struct FlatText {
  const char* data;
  uint64_t size;
};
/// An attribute, or a member of a JSON object, whose value is then JSON.
struct FlatPair {
  FlatText key;
  FlatText text;
};
/// The end of an edge: the position of the producer in its graph, its output, and the version.
struct FlatEdge {
  uint32_t node;
  int32_t entry;
  int32_t version;
};
/// A node. In a result, `op`, `name` and `packed` may be those of the node that the host showed at
/// this place of the outermost graph. Its inputs, attributes and subgraphs are the next
/// `num_...` items of the model's arrays.
struct FlatNode {
  FlatText op;
  FlatText name;
  /// Attributes in one block: their number n, at most 64; the bytes of all texts; n times the bytes
  /// of key and text; key and text in turn, without terminators; zeros up to a multiple of 4 bytes.
  /// Sorted by the bytes of the keys, none of which occurs twice. May be null; aligned to 4 bytes.
  const uint32_t* packed;
  uint32_t packed_words;      ///< length of `packed`; 0 if it is null
  uint32_t num_attrs;         ///< in `pairs`, in any order: attributes that are not packed
  uint32_t num_extra;         ///< in `pairs`, behind them: Node::extra
  uint32_t num_inputs;        ///< in `edges`
  uint32_t num_control_deps;  ///< in `control_deps`
  uint32_t num_subgraphs;     ///< in `graphs`
  int32_t num_outputs;        ///< as in Node
  uint32_t outputs_declared;  ///< 1: num_outputs is known for the present operator; 0: it is not
};
/// A graph. Its nodes lie in the model's `nodes`, behind those of the graphs before it. Behind what
/// its nodes have in the other arrays come its outputs, in `edges`, and its attributes, in `pairs`.
struct FlatGraph {
  uint64_t num_nodes;
  uint64_t num_outputs;
  uint64_t num_attrs;
};
/// The host's memory for large pieces: it knows how to get them from the kernel quickly. allocate
/// returns memory aligned to 64 bytes, or null; release takes it back. Both may be called in any
/// thread, also after the call of a pass.
struct FlatMemory {
  void* (*allocate)(uint64_t size);
  void (*release)(void* memory);
};
/// A graph with all that is nested in it, as plain arrays, for compilers and standard libraries
/// with different C++ types. graphs[0] is the outermost; the others are the subgraphs of all nodes
/// in turn. An array may be null if its length is 0. The texts are UTF-8. All belongs to who made
/// it, and none of it is changed; arrays of a result may be those that the host showed.
struct FlatModel {
  uint32_t version;  ///< PASSLIB_FLAT_VERSION
  uint32_t size;     ///< sizeof(FlatModel)
  const FlatGraph* graphs;
  uint64_t num_graphs;
  const FlatNode* nodes;
  uint64_t num_nodes;
  const FlatEdge* edges;
  uint64_t num_edges;
  const uint32_t* control_deps;  ///< positions of nodes in their graph
  uint64_t num_control_deps;
  const FlatPair* pairs;
  uint64_t num_pairs;
  uint64_t packed_words;  ///< of all nodes
  FlatMemory memory;      ///< of the host; nothing looks at that of a result
  void* owner;            ///< for who made it
  /// Null, or infers the types of all nodes: returns __ext_shape__ and __ext_dtype__ of each node
  /// of graphs[0] in turn, which stay valid until the call of the pass returns; null if that
  /// failed, and then the host fails the call. Any thread may call it, before the pass returns.
  const FlatText* (*types)(const void* host);
  const void* host;  ///< what `types` gets
};

typedef int (*interrupted_t)(const void* host);
/// Sets *data to the elements of a parameter on demand, aligned, valid until the call returns; null
/// if there is no memory for them. nd_alloc: of the call; weight: ID of the parameter in its block.
typedef void (*readWeight_t)(const void* nd_alloc, size_t weight, const void** data);
/// Makes the argument `name` of the elements of a parameter on demand, each run of (elements /
/// count) of them multiplied by one factor. For a null `name` it makes nothing, and says whether
/// all results are finite. Returns 1, 0 for a result that is not finite, or -1 if this is not
/// possible for such a parameter.
typedef int (*scaleWeight_t)(const void* nd_alloc, size_t weight, const double* factors,
                             size_t count, const char* name);
/// Allocates an array that the host owns: shape has num_dims numbers; *data is the memory, null if
/// the host refuses. isArg: 1 for args, 0 for aux.
typedef void (*nd_malloc_t)(const void* allocator, const int64_t* shape, int num_dims,
                            const char* dev_type, int dev_id, int dtype, const char* name,
                            int isArg, void** data);

// ---- attributes as texts -----------------------------------------------------------------------

namespace detail {

/// Returns __ext_shape__ and __ext_dtype__ of a node of the running call, which the host infers now
/// unless it did before; null if it cannot, and after the call.
inline const FlatText* readTypes(uint64_t place);

/// Whether a key is __ext_shape__ or __ext_dtype__.
inline bool isOfTypes(const char* key, std::size_t size) {
  return size == 13 &&
         (memcmp(key, "__ext_shape__", 13) == 0 || memcmp(key, "__ext_dtype__", 13) == 0);
}

/// The attributes of a node as texts, without a map.
///
/// Most nodes keep them packed, as FlatNode::packed describes. A packed block never changes, and
/// copies of a node share it: the number of its owners stands before it. Blocks that the host lent
/// have no owners; the host keeps them until the call of the pass ends.
class AttributeTexts {
 public:
  typedef JsonReader::Slice Slice;
  typedef NodeAttributes::Map Map;

  explicit AttributeTexts(const NodeAttributes& attributes) : attributes_(attributes) {}

  /// Adds the types, which are inferred when somebody reads them and leave with the call. `node`:
  /// its position as the host showed it, from 1.
  static void offerTypes(uint32_t node, uint16_t call, NodeAttributes* target) {
    target->types_ = static_cast<uint64_t>(call) << 32 | node;
  }
  bool hasTypes() const { return attributes_.types_ != 0; }
  /// Reads the types. Before all attributes are read.
  void readTypes() const {
    if (hasTypes()) attributes_.makeWhole();
  }

  /// Gets the text of an attribute. Returns false if there is none.
  bool find(const char* key, std::size_t size, Slice* text) const;
  bool has(const char* key) const {
    Slice text;
    return find(key, strlen(key), &text);
  }
  bool get(const char* key, std::string* copy) const {
    Slice text;
    if (!find(key, strlen(key), &text)) return false;
    copy->assign(text.data, text.size);
    return true;
  }
  /// Calls visit(key, text) with a Slice each: sorted by key, unless a map has been made.
  template <typename Visit>
  void visit(Visit visit) const {
    readTypes();
    visitPresent(visit);
  }
  /// The same without types that nobody has read.
  template <typename Visit>
  void visitPresent(Visit visit) const {
    if (const Map* map = mapOf(attributes_)) {
      for (const auto& pair : *map) visit(sliceOf(pair.first), sliceOf(pair.second));
      return;
    }
    const uint32_t* const block = attributes_.packed_;
    const char* cursor = block == nullptr ? nullptr : textsOf(block);
    for (std::size_t pos = 0; block != nullptr && pos < block[0]; ++pos) {
      const uint32_t* const sizes = &block[2 + 2 * pos];
      visit(Slice{cursor, sizes[0]}, Slice{cursor + sizes[0], sizes[1]});
      cursor += static_cast<std::size_t>(sizes[0]) + sizes[1];
    }
  }
  /// Returns the packed attributes and the number of words; null if there are none, or if a map has
  /// been made, which has the present attributes.
  const uint32_t* packed(std::size_t* words) const {
    const uint32_t* const block = mapOf(attributes_) == nullptr ? attributes_.packed_ : nullptr;
    *words = block == nullptr ? 0 : wordsOf(block);
    return block;
  }
  /// Whether the attributes are still those of a packed block: most passes make a map only to read.
  bool areStill(const uint32_t* block) const;
  /// Whether the host owns the packed attributes.
  bool areLent() const { return attributes_.lent_; }
  /// A hint to the processor that `packed` will be called.
  void prefetch() const { __builtin_prefetch(attributes_.packed_); }

  /// Replaces all attributes by these, which it sorts if they are few. Returns null, or a key that
  /// occurs twice; some attributes are missing then. Text: std::string or Slice.
  template <typename Text>
  static const Text* pack(std::pair<Text, Text>* items, std::size_t count, NodeAttributes* target);
  /// Replaces all attributes by a copy of a packed block, which is well-formed.
  static void copyPacked(const uint32_t* block, std::size_t words, NodeAttributes* target) {
    target->clear();
    uint32_t* const made = newBlock(words);
    memcpy(made, block, words * sizeof(uint32_t));
    target->packed_ = made;
  }
  /// Replaces all attributes by a packed block of the host, which outlives them.
  static void lendPacked(const uint32_t* block, NodeAttributes* target) {
    target->clear();
    target->packed_ = block;
    target->lent_ = true;
  }
  /// Makes `target`, which is empty, a copy.
  void copyTo(NodeAttributes* target) const;
  /// Drops the packed block.
  static void drop(NodeAttributes* target) noexcept;

  static std::size_t wordsOf(const uint32_t* block) {
    return 2 + 2 * static_cast<std::size_t>(block[0]) +
           (static_cast<std::size_t>(block[1]) + 3) / 4;
  }

 private:
  typedef std::atomic<uint32_t> Owners;
  static_assert(sizeof(Owners) == sizeof(uint32_t), "the number of owners takes one word");

  static Map* mapOf(const NodeAttributes& attributes) {
    return attributes.map_.load(std::memory_order_acquire);
  }
  static const char* textsOf(const uint32_t* block) {
    return reinterpret_cast<const char*>(&block[2 + 2 * block[0]]);
  }
  /// Returns memory for a block of one owner.
  static uint32_t* newBlock(std::size_t words) {
    uint32_t* const memory = new uint32_t[words + 1];
    ::new (memory) Owners(1);
    return memory + 1;
  }
  static Owners* ownersOf(const uint32_t* block) {
    return reinterpret_cast<Owners*>(const_cast<uint32_t*>(block) - 1);
  }

  const NodeAttributes& attributes_;
};

/// Sets an attribute or an option. Returns false if there was one of this key.
inline bool setText(const JsonReader::Slice& key, const JsonReader::Slice& text,
                    std::unordered_map<std::string, std::string>* texts) {
  const auto added = texts->emplace(key.str(), text.str());
  if (!added.second) added.first->second.assign(text.data, text.size);
  return added.second;
}

inline bool AttributeTexts::find(const char* key, std::size_t size, Slice* text) const {
  if (hasTypes() && isOfTypes(key, size)) {
    if (mapOf(attributes_) == nullptr) {
      const FlatText* const texts = detail::readTypes(attributes_.types_);
      if (texts == nullptr) return false;
      const FlatText& found = texts[key[6] == 's' ? 0 : 1];
      *text = Slice{found.data, static_cast<std::size_t>(found.size)};
      return true;
    }
    attributes_.makeWhole();
  }
  if (const Map* map = mapOf(attributes_)) {
    const Map::const_iterator found = map->find(std::string(key, size));
    if (found == map->end()) return false;
    *text = sliceOf(found->second);
    return true;
  }
  const uint32_t* const block = attributes_.packed_;
  const char* cursor = block == nullptr ? nullptr : textsOf(block);
  for (std::size_t pos = 0; block != nullptr && pos < block[0]; ++pos) {
    const uint32_t* const sizes = &block[2 + 2 * pos];
    if (sizes[0] == size && memcmp(cursor, key, size) == 0) {
      *text = Slice{cursor + size, sizes[1]};
      return true;
    }
    cursor += static_cast<std::size_t>(sizes[0]) + sizes[1];
  }
  return false;
}

inline bool AttributeTexts::areStill(const uint32_t* block) const {
  const Map* const map = mapOf(attributes_);
  if (map == nullptr) return attributes_.packed_ == block;
  const std::size_t types =
      hasTypes() ? map->count("__ext_shape__") + map->count("__ext_dtype__") : 0;
  if (map->size() != block[0] + types) return false;
  const char* cursor = textsOf(block);
  for (std::size_t pos = 0; pos < block[0]; ++pos) {
    const uint32_t* const sizes = &block[2 + 2 * pos];
    const Map::const_iterator found = map->find(std::string(cursor, sizes[0]));
    if (found == map->end() || found->second.size() != sizes[1]) return false;
    cursor += sizes[0];
    if (memcmp(found->second.data(), cursor, sizes[1]) != 0) return false;
    cursor += sizes[1];
  }
  return true;
}

template <typename Text>
const Text* AttributeTexts::pack(std::pair<Text, Text>* items, std::size_t count,
                                 NodeAttributes* target) {
  target->clear();
  std::size_t size = 0;
  for (std::size_t pos = 0; pos < count; ++pos) {
    size += sliceOf(items[pos].first).size + sliceOf(items[pos].second).size;
  }
  const std::size_t few = 64;
  if (count > few || size > (std::numeric_limits<uint32_t>::max)() / 2) {
    Map& map = target->changeMap();
    map.reserve(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (!setText(sliceOf(items[pos].first), sliceOf(items[pos].second), &map)) {
        return &items[pos].first;
      }
    }
    return nullptr;
  }
  if (count == 0) return nullptr;
  for (std::size_t pos = 1; pos < count; ++pos) {  // most files have them sorted
    for (std::size_t place = pos; place > 0; --place) {
      if (!(sliceOf(items[place].first) < sliceOf(items[place - 1].first))) break;
      items[place].swap(items[place - 1]);
    }
  }
  for (std::size_t pos = 1; pos < count; ++pos) {
    // Sorted: if it is not before the next one, it is the same.
    if (!(sliceOf(items[pos - 1].first) < sliceOf(items[pos].first))) return &items[pos].first;
  }
  uint32_t* const block = newBlock(2 + 2 * count + (size + 3) / 4);
  block[0] = static_cast<uint32_t>(count);
  block[1] = static_cast<uint32_t>(size);
  block[1 + 2 * count + (size + 3) / 4] = 0;  // the bytes behind the texts are compared, too
  char* cursor = reinterpret_cast<char*>(&block[2 + 2 * count]);
  for (std::size_t pos = 0; pos < count; ++pos) {
    const Slice texts[] = {sliceOf(items[pos].first), sliceOf(items[pos].second)};
    for (int part = 0; part < 2; ++part) {
      block[2 + 2 * pos + static_cast<std::size_t>(part)] = static_cast<uint32_t>(texts[part].size);
      if (texts[part].size != 0) memcpy(cursor, texts[part].data, texts[part].size);
      cursor += texts[part].size;
    }
  }
  target->packed_ = block;
  return nullptr;
}

inline void AttributeTexts::copyTo(NodeAttributes* target) const {
  const bool has_types = attributes_.has_types_.load(std::memory_order_acquire);
  if (const Map* map = mapOf(attributes_)) {
    target->map_.store(new Map(*map));
  } else if (attributes_.lent_) {
    copyPacked(attributes_.packed_, wordsOf(attributes_.packed_), target);
  } else if (attributes_.packed_ != nullptr) {
    ownersOf(attributes_.packed_)->fetch_add(1, std::memory_order_relaxed);
    target->packed_ = attributes_.packed_;
  }
  target->types_ = attributes_.types_;
  target->has_types_.store(has_types, std::memory_order_relaxed);
}

inline void AttributeTexts::drop(NodeAttributes* target) noexcept {
  const uint32_t* const block = target->packed_;
  const bool lent = target->lent_;
  target->packed_ = nullptr;
  target->lent_ = false;
  if (block == nullptr || lent) return;
  if (ownersOf(block)->fetch_sub(1, std::memory_order_acq_rel) == 1) delete[] (block - 1);
}

}  // namespace detail

template <typename Self, typename MapType>
std::pair<typename MapType::iterator, typename MapType::iterator>
MapFunctions<Self, MapType>::equal_range(const std::string& key) {
  return self().makeMap(key).equal_range(key);
}

template <typename Self, typename MapType>
std::pair<typename MapType::const_iterator, typename MapType::const_iterator>
MapFunctions<Self, MapType>::equal_range(const std::string& key) const {
  return self().makeMap(key).equal_range(key);
}

template <typename Self, typename MapType>
template <typename... Parts>
std::pair<typename MapType::iterator, bool> MapFunctions<Self, MapType>::emplace(Parts&&... parts) {
  return changed().emplace(std::forward<Parts>(parts)...);
}

template <typename Self, typename MapType>
template <typename... Parts>
typename MapType::iterator MapFunctions<Self, MapType>::emplace_hint(const_iterator hint,
                                                                     Parts&&... parts) {
  return changed().emplace_hint(hint, std::forward<Parts>(parts)...);
}

inline NodeAttributes::NodeAttributes(const NodeAttributes& other) {
  detail::AttributeTexts(other).copyTo(this);
}

inline NodeAttributes& NodeAttributes::operator=(NodeAttributes other) noexcept {
  swap(other);
  return *this;
}

inline AttributeText& NodeAttributes::operator[](const std::string& key) {
  makeMap(key);
  return static_cast<AttributeText&>(changeMap()[key]);
}

inline AttributeText& NodeAttributes::at(const std::string& key) {
  return static_cast<AttributeText&>(makeMap(key).at(key));
}

inline NodeAttributes::size_type NodeAttributes::size() const {
  const Map* const map = map_.load(std::memory_order_acquire);
  if (map != nullptr) return map->size();
  return (packed_ == nullptr ? 0 : packed_[0]) + (types_ == 0 ? 0 : 2);
}

inline NodeAttributes::size_type NodeAttributes::count(const std::string& key) const {
  JsonReader::Slice text;
  return detail::AttributeTexts(*this).find(key.data(), key.size(), &text) ? 1 : 0;
}

inline void NodeAttributes::clear() noexcept {
  if (const Map* map = map_.load(std::memory_order_acquire)) {
    delete map;
    map_.store(nullptr, std::memory_order_relaxed);
  }
  detail::AttributeTexts::drop(this);
  types_ = 0;
  has_types_.store(false, std::memory_order_relaxed);
}

inline void NodeAttributes::swap(Map& other) {
  makeWhole();
  changeMap().swap(other);
  types_ = 0;
}

inline void NodeAttributes::swap(NodeAttributes& other) noexcept {
  other.map_.store(map_.exchange(other.map_.load()));
  std::swap(packed_, other.packed_);
  std::swap(lent_, other.lent_);
  std::swap(types_, other.types_);
  other.has_types_.store(has_types_.exchange(other.has_types_.load()));
}

inline bool NodeAttributes::equals(const NodeAttributes& other) const {
  if (size() != other.size()) return false;
  if (size() == 0) return true;
  std::size_t words = 0;
  std::size_t others = 0;
  const uint32_t* const block = detail::AttributeTexts(*this).packed(&words);
  const uint32_t* const other_block = detail::AttributeTexts(other).packed(&others);
  if (block == nullptr || other_block == nullptr || types_ != other.types_) {
    return makeWhole() == other.makeWhole();
  }
  return block == other_block ||
         (words == others && memcmp(block, other_block, words * sizeof(uint32_t)) == 0);
}

inline NodeAttributes::Map& NodeAttributes::makeMap() const {
  if (Map* present = map_.load(std::memory_order_acquire)) return *present;
  detail::Owned<Map> made(new Map());
  detail::AttributeTexts(*this).visitPresent(
      [&made](const JsonReader::Slice& key, const JsonReader::Slice& text) {
        detail::setText(key, text, made.get());
      });
  if (types_ != 0) {  // their keys, with texts once somebody reads them
    (*made)["__ext_shape__"];
    (*made)["__ext_dtype__"];
  }
  Map* present = nullptr;  // another thread's, if that was faster
  return map_.compare_exchange_strong(present, made.get()) ? *made.release() : *present;
}

inline NodeAttributes::Map& NodeAttributes::makeMap(const std::string& key) const {
  const bool types = types_ != 0 && detail::isOfTypes(key.data(), key.size());
  return types ? makeWhole() : makeMap();
}

/// Other threads may read other attributes meanwhile: nothing moves in the map.
inline NodeAttributes::Map& NodeAttributes::makeWhole() const {
  static std::mutex& filling = *new std::mutex();
  Map& map = makeMap();
  if (types_ == 0 || has_types_.load(std::memory_order_acquire)) return map;
  const FlatText* const texts = detail::readTypes(types_);
  const std::lock_guard<std::mutex> lock(filling);
  if (has_types_.load(std::memory_order_relaxed)) return map;
  for (int which = 0; texts != nullptr && which < 2; ++which) {
    const Map::iterator found = map.find(which == 0 ? "__ext_shape__" : "__ext_dtype__");
    if (found == map.end()) continue;  // erased
    found->second.assign(texts[which].data, static_cast<std::size_t>(texts[which].size));
  }
  has_types_.store(true, std::memory_order_release);
  return map;
}

inline NodeAttributes::Map& NodeAttributes::changeMap() {
  Map& map = makeMap();
  detail::AttributeTexts::drop(this);
  return map;
}

namespace detail {

/// A reader of JSON that was read before.
inline JsonReader readAgain(const std::string& text) {
  JsonOptions reading;
  reading.max_depth = (std::numeric_limits<std::size_t>::max)();
  return JsonReader(text.data(), text.size(), reading);
}

/// The map of a graph's attributes. Only what makes one uses JsonGraphMap, so that a library that
/// never looks at the attributes contains no code for them.
class GraphMap {
 public:
  virtual ~GraphMap() {}
  virtual GraphMap* copy() const = 0;
  virtual std::size_t size() const = 0;
  virtual bool has(const std::string& key) const = 0;
  /// Gets a string. Returns false for other values, and if there is no such attribute.
  virtual bool getString(const char* key, std::string* text) const = 0;
  /// Appends the attributes as text, sorted by key.
  virtual void print(JsonMembers* members) const = 0;
};

class JsonGraphMap : public GraphMap {
 public:
  typedef GraphAttributes::Map Map;
  JsonGraphMap* copy() const override { return new JsonGraphMap(*this); }
  std::size_t size() const override { return map.size(); }
  bool has(const std::string& key) const override { return map.count(key) != 0; }
  bool getString(const char* key, std::string* text) const override {
    const Map::const_iterator found = map.find(key);
    if (found == map.end() || found->second.type != STR) return false;
    *text = found->second.str;
    return true;
  }
  void print(JsonMembers* members) const override {
    for (const auto& member : map) {
      TextBuffer out;
      printValue(member.second, ", ", ": ", &out);
      members->emplace_back(member.first, out.str());
    }
  }
  Map map;
};

/// The attributes of a graph as texts.
class GraphAttributeTexts {
 public:
  /// Returns the attributes as text, sorted by key; `room` has it if a map was made.
  static const JsonMembers& list(const GraphAttributes& attributes, JsonMembers* room) {
    const GraphMap* const map = attributes.map_.load();
    if (map == nullptr) return attributes.texts_;
    room->clear();
    map->print(room);
    return *room;
  }
  /// Replaces all attributes by these, which are sorted by key.
  static void set(JsonMembers* members, GraphAttributes* target) noexcept {
    target->clear();
    target->texts_.swap(*members);
  }
  /// Gets the value of an attribute without making a map. Returns false if there is none, or one
  /// that is no string.
  static bool getString(const GraphAttributes& attributes, const char* key, std::string* text) {
    if (const GraphMap* map = attributes.map_.load()) return map->getString(key, text);
    const std::string* const json = find(attributes.texts_, key);
    if (json == nullptr || json->empty() || (*json)[0] != '"') return false;
    *text = readAgain(*json).readString().str();
    return true;
  }
  static const std::string* find(const JsonMembers& members, const std::string& key) {
    for (const auto& member : members) {
      if (member.first == key) return &member.second;
    }
    return nullptr;
  }
};

}  // namespace detail

inline GraphAttributes::GraphAttributes(const GraphAttributes& other) : texts_(other.texts_) {
  if (const detail::GraphMap* map = other.map_.load()) map_.store(map->copy());
}

inline GraphAttributes& GraphAttributes::operator=(GraphAttributes other) noexcept {
  swap(other);
  return *this;
}

inline GraphAttributes::size_type GraphAttributes::size() const {
  const detail::GraphMap* const map = map_.load();
  return map == nullptr ? texts_.size() : map->size();
}

inline GraphAttributes::size_type GraphAttributes::count(const std::string& key) const {
  const detail::GraphMap* const map = map_.load();
  const bool present =
      map != nullptr ? map->has(key) : detail::GraphAttributeTexts::find(texts_, key) != nullptr;
  return present ? 1 : 0;
}

inline GraphAttributes::GraphAttributes(const Map& map) { makeMap() = map; }
inline GraphAttributes::GraphAttributes(std::initializer_list<value_type> items) {
  makeMap() = items;
}

inline JsonVal& GraphAttributes::operator[](const std::string& key) { return makeMap()[key]; }
inline JsonVal& GraphAttributes::at(const std::string& key) { return makeMap().at(key); }
inline GraphAttributes::iterator GraphAttributes::lower_bound(const std::string& key) {
  return makeMap().lower_bound(key);
}
inline GraphAttributes::iterator GraphAttributes::upper_bound(const std::string& key) {
  return makeMap().upper_bound(key);
}
inline GraphAttributes::const_iterator GraphAttributes::lower_bound(const std::string& key) const {
  return makeMap().lower_bound(key);
}
inline GraphAttributes::const_iterator GraphAttributes::upper_bound(const std::string& key) const {
  return makeMap().upper_bound(key);
}
inline void GraphAttributes::swap(Map& other) { makeMap().swap(other); }

inline void GraphAttributes::clear() noexcept {
  delete map_.exchange(nullptr);
  texts_.clear();
}

inline void GraphAttributes::swap(GraphAttributes& other) noexcept {
  texts_.swap(other.texts_);
  other.map_.store(map_.exchange(other.map_.load()));
}

inline bool GraphAttributes::equals(const GraphAttributes& other) const {
  const bool texts = map_.load() == nullptr && other.map_.load() == nullptr;
  return texts ? texts_ == other.texts_ : makeMap() == other.makeMap();
}

inline GraphAttributes::Map& GraphAttributes::makeMap() const {
  detail::GraphMap* present = map_.load();
  if (present == nullptr) {
    detail::Owned<detail::JsonGraphMap> made(new detail::JsonGraphMap());
    for (const auto& member : texts_) {
      made->map.emplace_hint(made->map.end(), member.first,
                             detail::readAgain(member.second).readValue());
    }
    // Unless another thread was faster.
    if (map_.compare_exchange_strong(present, made.get())) present = made.release();
  }
  return static_cast<detail::JsonGraphMap*>(present)->map;
}

// ---- tables of addresses -----------------------------------------------------------------------

namespace detail {

/// Addresses in the order in which they were added, each once. Never dereferences them.
/// std::unordered_map takes four times as long for the nodes of a large graph (bench/halves.cc).
class AddressTable {
 public:
  explicit AddressTable(std::size_t count = 0) { reserve(count); }
  /// Returns the position, or -1.
  int64_t find(const void* address) const {
    const uint32_t tag = tagOf(address);
    for (std::size_t pos = home(address);; pos = (pos + 1) & mask_) {
      const Slot& slot = slots_[pos];
      if (slot.next == 0) return -1;
      if (slot.tag == tag && addresses_[slot.next - 1] == address) return slot.next - 1;
    }
  }
  /// Adds an address at the next position. Returns false if it is there already.
  bool add(const void* address) {
    if ((addresses_.size() + 1) * 2 > mask_ + 1) {
      reserve(addresses_.size() + 1);
      for (std::size_t pos = 0; pos < addresses_.size(); ++pos) insert(pos);
    }
    addresses_.push_back(address);
    if (insert(addresses_.size() - 1)) return true;
    addresses_.pop_back();
    return false;
  }
  /// Removes the address that was added last.
  void removeLast() {
    // No later one was put behind it, since later ones are gone.
    std::size_t slot = home(addresses_.back());
    while (slots_[slot].next != addresses_.size()) slot = (slot + 1) & mask_;
    slots_[slot] = Slot{0, 0};
    addresses_.pop_back();
  }
  /// A hint to the processor that the address will be added.
  void prefetch(const void* address) const { __builtin_prefetch(&slots_[home(address)], 1); }
  const void* operator[](std::size_t pos) const { return addresses_[pos]; }
  std::size_t size() const { return addresses_.size(); }

 private:
  struct Slot {
    uint32_t tag;   // bits of the address
    uint32_t next;  // the position plus one; 0: empty
  };
  static uint32_t tagOf(const void* address) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) >> 4);
  }
  // Graphs are read mostly in the order in which their nodes were allocated. Nodes of one page of
  // 4 KB share 16 slots, two lines of the cache, in the order of their addresses. Pages are spread
  // by the golden ratio, so that no two regions of memory meet in one run of slots.
  std::size_t home(const void* object) const {
    const uint64_t address = reinterpret_cast<uintptr_t>(object);
    const uint64_t page = ((address >> 12) * 0x9E3779B97F4A7C15ull) >> shift_;
    return static_cast<std::size_t>(page * 16 + ((address >> 8) & 15));
  }
  void reserve(std::size_t count) {
    std::size_t mask = 31;
    unsigned shift = 63;
    for (; mask + 1 < count * 2; --shift) mask = mask * 2 + 1;
    addresses_.reserve(count);
    slots_.reserve(mask + 1);  // before anything changes, since it may fail
    mask_ = mask;
    shift_ = shift;
    slots_.clear();
    slots_.resize(mask_ + 1);
  }
  bool insert(std::size_t position) {
    const void* const address = addresses_[position];
    const Slot wanted = {tagOf(address), static_cast<uint32_t>(position + 1)};
    std::size_t slot = home(address);
    for (; slots_[slot].next != 0; slot = (slot + 1) & mask_) {
      if (slots_[slot].tag == wanted.tag && addresses_[slots_[slot].next - 1] == address) {
        return false;
      }
    }
    slots_[slot] = wanted;
    return true;
  }

  PlainList<const void*> addresses_;
  PlainList<Slot> slots_;
  std::size_t mask_;
  unsigned shift_;
};

/// Graphs, each once.
class GraphTable : public AddressTable {
 public:
  Graph* operator[](std::size_t pos) const {
    return static_cast<Graph*>(const_cast<void*>(AddressTable::operator[](pos)));
  }
};

/// Prefetches the nodes that a walk reads some steps after position `pos`, their inputs and one
/// member more: walks over large graphs mostly wait for memory.
template <typename Member>
void prefetchNode(Node* const* nodes, std::size_t count, std::size_t pos, Member Node::* also) {
  if (pos + 16 >= count) return;
  const Node* later = nodes[pos + 16];
  __builtin_prefetch(&(later->*also));
  __builtin_prefetch(&later->inputs);
  __builtin_prefetch(nodes[pos + 6]->inputs.data());
}

template <typename Member>
void prefetchNode(const std::vector<Node*>& nodes, std::size_t pos, Member Node::* also) {
  prefetchNode(nodes.data(), nodes.size(), pos, also);
}

/// Calls `enter` once for a graph and each of its subgraphs, and then `visit` for its nodes.
template <typename Enter, typename Visit>
void walkGraphs(Graph* root, Enter enter, Visit visit) {
  GraphTable graphs;
  graphs.add(root);
  for (std::size_t next = 0; next < graphs.size(); ++next) {
    Graph* graph = graphs[next];
    enter(graph);
    for (std::size_t pos = 0; pos < graph->nodes.size(); ++pos) {
      Node* node = graph->nodes[pos];
      if (pos + 12 < graph->nodes.size() && graph->nodes[pos + 12] != nullptr) {
        __builtin_prefetch(&graph->nodes[pos + 12]->op);
        __builtin_prefetch(&graph->nodes[pos + 12]->subgraphs);
        __builtin_prefetch(&graph->nodes[pos + 12]->control_deps);
      }
      if (node == nullptr) continue;
      visit(graph, node);
      for (Graph* subgraph : node->subgraphs) {
        if (subgraph != nullptr) graphs.add(subgraph);
      }
    }
  }
}

}  // namespace detail

template <typename Visit>
void Graph::forEachNode(Visit visit) {
  detail::walkGraphs(this, [](Graph*) {}, visit);
}

template <typename Visit>
void Graph::forEachGraph(Visit visit) {
  detail::walkGraphs(this, visit, [](Graph*, Node*) {});
}

inline NodeTable::NodeTable(const std::vector<Node*>& nodes)
    : NodeTable(nodes.data(), nodes.size()) {}

inline NodeTable::NodeTable(Node* const* nodes, std::size_t count)
    : table_(new detail::AddressTable(count)) {
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (nodes[pos] == nullptr) detail::failGraph("node number %zu is null", pos);
    if (pos + 16 < count) table_->prefetch(nodes[pos + 16]);
    add(nodes[pos]);
  }
}

inline NodeTable::~NodeTable() {}

inline int64_t NodeTable::find(const Node* node) const { return table_->find(node); }

inline std::size_t NodeTable::add(const Node* node) {
  if (!table_->add(node)) {
    detail::failGraph("node '%s' is listed twice", node->name.c_str());
  }
  return table_->size() - 1;
}

inline std::size_t NodeTable::size() const { return table_->size(); }

// ---- parameters that the host lends for a call -------------------------------------------------

namespace detail {

/// Options, or attributes of an operator, as a host gives them.
struct GivenTexts {
  const char* const* keys;
  const char* const* values;
  int count;
  options_map_t map() const {
    options_map_t texts;
    for (int pos = 0; pos < count; ++pos) {
      setText(JsonReader::Slice{keys[pos], strlen(keys[pos])},
              JsonReader::Slice{values[pos], strlen(values[pos])}, &texts);
    }
    return texts;
  }
};

/// Parameters as a host gives them: `count` entries in each array.
struct GivenParams {
  const char* const* names;
  int count;
  void* const* data;
  const int64_t* const* shapes;
  const int* dims;
  const int* types;
  const size_t* ids;
  const char* const* device_types;
  const int* device_ids;
};

/// The parameter that a variable stands for: in the subgraphs of partitioners, variables have new
/// names and attributes with the name of their parameter. `copy` holds it unless it is the node's.
inline const std::string& paramName(const Node& node, std::string* copy) {
  const AttributeTexts attributes(node.attrs);
  if (node.attrs.size() < 2 || !attributes.get("isArg", copy) || *copy != "True") return node.name;
  return attributes.get("argName", copy) ? *copy : node.name;
}

/// Throws std::runtime_error if a tensor refers to something else than what the host knows.
inline void requireUnchanged(const char* name, const MXTensor& tensor, const void* data,
                             MXDType type, const int64_t* shape, std::size_t dims) {
  const dlpack::DLTensor& view = tensor.dltensor;
  const char* changed = nullptr;
  if (tensor.shape.size() != dims ||
      (dims != 0 && memcmp(tensor.shape.data(), shape, dims * sizeof(int64_t)) != 0)) {
    changed = "shape";
  } else if (tensor.dtype != type) {
    changed = "dtype";
  } else if (tensor.stype != kDefaultStorage) {
    changed = "storage type";
  } else if (tensor.data_ptr != data) {
    changed = "data pointer";
  } else if (view.data != data || view.ndim != static_cast<int>(dims) || view.strides != nullptr ||
             view.byte_offset != 0) {
    changed = "dltensor";
  } else {
    return;
  }
  failCall(
      "the %s of the tensor of '%s' was changed, which the host does not see: in a pass, alloc_arg "
      "makes another tensor, to which the elements are copied",
      changed, name);
}

/// The parameters of a call. Hosts list them in the order of the graph's variables, so most are
/// found by one comparison of names.
class ParamTable {
 public:
  /// A parameter as the host lent it.
  struct Lent {
    const char* name;
    void* data;  ///< null on demand, until the pass asks for it
    MXDType type;
    const int64_t* shape;  ///< the host's
    std::size_t dims;
    size_t number;
    const Node* node;  ///< the variable that got the tensor, or null
  };

  explicit ParamTable(std::size_t count) : tensors_(new MXTensor[count]) { lent_.reserve(count); }
  explicit ParamTable(const GivenParams& given)
      : ParamTable(static_cast<std::size_t>(given.count)) {
    for (int pos = 0; pos < given.count; ++pos) {
      add(given.names[pos], given.data[pos], static_cast<MXDType>(given.types[pos]),
          given.shapes[pos], given.dims[pos], given.ids[pos],
          MXContext(given.device_types[pos], given.device_ids[pos]));
    }
  }
  ParamTable(const ParamTable&) = delete;
  ParamTable& operator=(const ParamTable&) = delete;
  /// Adds a parameter, of as many as announced.
  void add(const char* name, void* data, MXDType type, const int64_t* shape, int dims,
           size_t number, MXContext context) {
    tensors_[lent_.size()].setTensor(data, type, shape, dims, number, std::move(context));
    lent_.push_back(Lent{name, data, type, shape, static_cast<std::size_t>(dims), number, nullptr});
  }
  bool empty() const { return lent_.empty(); }

  /// Sets `tensor` of the variables that are parameters.
  void assign(const std::vector<Node*>& variables) {
    std::size_t next = 0;
    std::string copy;
    for (Node* node : variables) {
      if (next == lent_.size()) return;
      if (paramName(*node, &copy) == lent_[next].name) lend(next++, node);
    }
    if (next == lent_.size()) return;
    PlainList<NumberedText> names;
    for (std::size_t pos = 0; pos < lent_.size(); ++pos) {
      names.push_back(
          NumberedText{JsonReader::Slice{lent_[pos].name, strlen(lent_[pos].name)}, pos});
    }
    sortTexts(&names);
    for (Node* node : variables) {
      const JsonReader::Slice name = sliceOf(paramName(*node, &copy));
      std::size_t low = 0;
      std::size_t high = names.size();
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        (names[middle].text < name ? low : high) = names[middle].text < name ? middle + 1 : middle;
      }
      if (low < names.size() && !(name < names[low].text)) lend(names[low].number, node);
    }
  }
  /// Returns the parameter that has a tensor of the table; null for another tensor.
  Lent* find(const MXTensor* tensor) {
    const std::less<const MXTensor*> less = {};
    if (less(tensor, tensors_.get()) || !less(tensor, tensors_.get() + lent_.size())) {
      return nullptr;
    }
    return &lent_[static_cast<std::size_t>(tensor - tensors_.get())];
  }
  /// Throws std::runtime_error if a tensor was changed in what the host does not see.
  void requireAsLent() const {
    for (std::size_t pos = 0; pos < lent_.size(); ++pos) {
      const Lent& lent = lent_[pos];
      requireUnchanged(lent.name, tensors_[pos], lent.data, lent.type, lent.shape, lent.dims);
    }
  }

 private:
  void lend(std::size_t pos, Node* node) {
    node->tensor = &tensors_[pos];
    lent_[pos].node = node;
  }

  PlainList<Lent> lent_;
  Owned<MXTensor[]> tensors_;  // in the same order
};

/// Lends a resource to the pass that runs in this thread. Nodes ask for it here, so that none has
/// to know it. Threads that a pass starts get that of the pass that began last.
class RunningPass {
 public:
  explicit RunningPass(PassResource* resource) : resource_(resource), outer_(mine()) {
    mine() = resource;
    last().store(resource);
  }
  RunningPass(const RunningPass&) = delete;
  RunningPass& operator=(const RunningPass&) = delete;
  ~RunningPass() {
    mine() = outer_;
    last().compare_exchange_strong(resource_, outer_);
  }
  /// Returns null while no pass runs.
  static PassResource* resource() { return mine() != nullptr ? mine() : last().load(); }

 private:
  static PassResource*& mine() {
    static thread_local PassResource* resource = nullptr;
    return resource;
  }
  static std::atomic<PassResource*>& last() {
    static std::atomic<PassResource*> resource(nullptr);
    return resource;
  }

  PassResource* resource_;
  PassResource* outer_;
};

/// The host's functions behind Node::readTensor(). Hosts set it once, before they run anything
/// else.
struct WeightSource {
  readWeight_t read;
  scaleWeight_t scale;
  static WeightSource* get() {
    static WeightSource source = {nullptr, nullptr};
    return &source;
  }
};

/// The host's function behind passInterrupted(). Hosts set it once, before they run anything else.
struct InterruptSource {
  interrupted_t function;
  const void* host;
  static InterruptSource* get() {
    static InterruptSource source = {nullptr, nullptr};
    return &source;
  }
};

}  // namespace detail

inline bool passInterrupted() {
  const detail::InterruptSource* source = detail::InterruptSource::get();
  return source->function != nullptr && source->function(source->host) != 0;
}

/// Allocates new parameters during a pass. Threads of the pass may call these functions.
class PassResource {
 public:
  /// The elements of a weight on demand after each run of them is multiplied by a factor.
  enum Scaling { kNotOnDemand = -1, kNotFinite = 0, kFinite = 1 };

  PassResource(nd_malloc_t nd_malloc, const void* nd_alloc)
      : nd_malloc_(nd_malloc), nd_alloc_(nd_alloc) {}
  PassResource(const PassResource&) = delete;
  PassResource& operator=(const PassResource&) = delete;
  ~PassResource() {
    for (const Made* each : made_) delete each;
  }

  MXTensor* alloc_arg(const std::string& name, const std::vector<int64_t>& shape,
                      const MXContext& ctx, MXDType dtype) {
    return allocate(1, name, shape, ctx, dtype);
  }
  MXTensor* alloc_aux(const std::string& name, const std::vector<int64_t>& shape,
                      const MXContext& ctx, MXDType dtype) {
    return allocate(0, name, shape, ctx, dtype);
  }

  void _setGraph(const Graph* graph) { graph_ = graph; }
  const Graph* _graph() const { return graph_; }
  /// Adds the types that the host offers, whose texts are asked for when they are read.
  void _offerTypes(const FlatModel& shown) {
    static uint16_t calls = 0;  // one pass of a library runs at a time
    shown_ = &shown;
    call_ = ++calls;
    for (std::size_t pos = 0; pos < graph_->nodes.size(); ++pos) {
      detail::AttributeTexts::offerTypes(static_cast<uint32_t>(pos + 1), call_,
                                         &graph_->nodes[pos]->attrs);
    }
  }
  /// See detail::readTypes.
  const FlatText* _types(uint64_t place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (shown_ == nullptr || place >> 32 != call_) return nullptr;
    if (types_ == nullptr) types_ = shown_->types(shown_->host);
    return types_ == nullptr ? nullptr : types_ + 2 * (static_cast<uint32_t>(place) - 1);
  }
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux) {
    params_[0] = args;
    params_[1] = aux;
  }
  bool _hasTensors() const { return !made_.empty(); }
  /// Notes a parameter whose array the caller has, but does not lend. Before the pass runs.
  void _noteUnlent(const Node* node) { unlent_.add(node); }
  bool _isUnlent(const Node* node) const { return unlent_.find(node) >= 0; }
  /// Returns `name`, or the first of name1, name2, ... that no node of the graph has.
  std::string _freeName(const Graph& graph, const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (named_ > graph.nodes.size() || named_graph_ != &graph) {
      names_ = std::make_shared<std::unordered_set<std::string> >();
      named_ = 0;
      named_graph_ = &graph;
    }
    for (; named_ < graph.nodes.size(); ++named_) names_->insert(graph.nodes[named_]->name);
    std::string free = name;
    for (int number = 1; names_->count(free) != 0; ++number) free = name + std::to_string(number);
    return free;
  }
  /// See Node::readTensor.
  void _read(const std::string& name, MXTensor* tensor);
  /// Scales a weight on demand, as the weight `name`; for a null `name`, says what results.
  Scaling _scale(const MXTensor& source, const std::vector<double>& factors,
                 const std::string* name);
  MXTensor* _scaled(const std::string& name, const MXTensor& source) {
    return hold(name, MXTensor(nullptr, source.shape, source.dtype, 0, source.ctx));
  }
  // After the pass, when its threads have ended.
  /// Lists the new tensors. Throws std::runtime_error if the pass changed one in what the host does
  /// not see.
  void _requireAsMade(detail::AddressTable* tensors) const {
    for (const Made* each : made_) {
      tensors->add(&each->tensor);
      const MXTensor& given = each->given;
      detail::requireUnchanged(each->name.c_str(), each->tensor, given.data_ptr, given.dtype,
                               given.shape.data(), given.shape.size());
    }
  }
  /// The name under which one of them was made.
  const std::string& _nameOfMade(int64_t position) const {
    return made_[static_cast<std::size_t>(position)]->name;
  }

 private:
  /// The tensor of a new parameter, and what it was made as.
  struct Made {
    std::string name;
    MXTensor tensor;
    MXTensor given;
  };
  MXTensor* allocate(int is_arg, const std::string& name, const std::vector<int64_t>& shape,
                     const MXContext& ctx, MXDType dtype);
  MXTensor* hold(const std::string& name, const MXTensor& made) {
    const std::lock_guard<std::mutex> lock(mutex_);
    made_.reserve(made_.size() + 1);  // so that the list cannot fail to take it
    made_.push_back(new Made{name, made, made});
    return &made_.back()->tensor;
  }

  std::mutex mutex_;  // of all that threads of the pass change
  detail::PlainList<Made*> made_;
  nd_malloc_t nd_malloc_;
  const void* nd_alloc_;
  const Graph* graph_ = nullptr;      // of the running pass
  const FlatModel* shown_ = nullptr;  // unless no types are offered
  const FlatText* types_ = nullptr;
  uint16_t call_ = 0;
  detail::ParamTable* params_[2] = {nullptr, nullptr};
  detail::AddressTable unlent_;
  std::shared_ptr<std::unordered_set<std::string> > names_;  // of the first named_ nodes
  std::size_t named_ = 0;
  const Graph* named_graph_ = nullptr;
};

inline const FlatText* detail::readTypes(uint64_t place) {
  PassResource* const resource = RunningPass::resource();
  return resource == nullptr ? nullptr : resource->_types(place);
}

inline MXTensor* PassResource::allocate(int is_arg, const std::string& name,
                                        const std::vector<int64_t>& shape, const MXContext& ctx,
                                        MXDType dtype) {
  if (name.find('\0') != std::string::npos) {
    throw std::runtime_error("a parameter named " + detail::quoted(name.c_str()) +
                             " and more after a NUL byte cannot be allocated: rename its node");
  }
  void* data = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    nd_malloc_(nd_alloc_, shape.data(), static_cast<int>(shape.size()), ctx.dev_type.c_str(),
               ctx.dev_id, static_cast<int>(dtype), name.c_str(), is_arg, &data);
  }
  if (data == nullptr) {
    throw std::runtime_error(std::string("the host did not allocate ") +
                             (is_arg != 0 ? "arg " : "aux ") + detail::quoted(name));
  }
  return hold(name, MXTensor(data, shape, dtype, 0, ctx));
}

inline void PassResource::_read(const std::string& name, MXTensor* tensor) {
  const detail::WeightSource* source = detail::WeightSource::get();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (tensor->data_ptr != nullptr || source->read == nullptr) return;
  detail::ParamTable::Lent* lent = nullptr;
  for (detail::ParamTable* table : params_) {
    if (lent == nullptr && table != nullptr) lent = table->find(tensor);
  }
  if (lent == nullptr || lent->number == 0) return;
  const void* data = nullptr;
  source->read(nd_alloc_, lent->number, &data);
  if (data == nullptr && tensor->size() != 0) {
    throw std::runtime_error("the host did not read the parameter " + detail::quoted(name));
  }
  lent->data = const_cast<void*>(data);
  tensor->data_ptr = lent->data;
  tensor->dltensor.data = lent->data;
}

inline PassResource::Scaling PassResource::_scale(const MXTensor& source,
                                                  const std::vector<double>& factors,
                                                  const std::string* name) {
  const detail::WeightSource* host = detail::WeightSource::get();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (source.verID == 0 || source.data_ptr != nullptr || host->scale == nullptr) {
    return kNotOnDemand;
  }
  return static_cast<Scaling>(host->scale(nd_alloc_, source.verID, factors.data(), factors.size(),
                                          name == nullptr ? nullptr : name->c_str()));
}

inline MXTensor* Node::alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx,
                                 MXDType dtype) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_arg on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_arg(name, shape, ctx, dtype);
  return tensor;
}

inline MXTensor* Node::alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx,
                                 MXDType dtype) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_aux on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_aux(name, shape, ctx, dtype);
  return tensor;
}

inline const MXTensor* Node::readTensor() {
  PassResource* const resource = detail::RunningPass::resource();
  if (tensor != nullptr && resource != nullptr) resource->_read(name, tensor);
  return tensor;
}

inline PassResource* runningPass() { return detail::RunningPass::resource(); }

inline bool scaleParameter(Node* node, const MXTensor& source, const std::vector<double>& factors) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr ||
      resource->_scale(source, factors, &node->name) != PassResource::kFinite) {
    return false;
  }
  node->tensor = resource->_scaled(node->name, source);
  return true;
}

// ---- reading graphs from JSON ------------------------------------------------------------------

namespace detail {

bool orderNodes(Node* const* nodes, std::size_t count, const NodeTable& table,
                std::vector<Node*>* order);

/// Sets both sides of every edge, for which there is room, and the control dependencies. `first`:
/// of the nodes' numbers of edges; `known`: zeros; `edge`, `dep`: their ends, moved behind those of
/// the graph.
inline void linkNodes(const FlatNode* first, uint32_t* known, const FlatEdge** edge,
                      const uint32_t** dep, Graph* graph) {
  Node* const* const nodes = graph->nodes.data();
  const std::size_t count = graph->nodes.size();
  const FlatEdge* from = *edge;
  for (std::size_t pos = 0; pos < count; ++pos) {
    Node* const node = nodes[pos];
    NodeEntry* const inputs = node->inputs.data();
    for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth, ++from) {
      Node* const producer = nodes[from->node];
      inputs[nth] = NodeEntry(producer, from->entry, from->version);
      producer->outputs[known[from->node]++] = NodeEntry(node, static_cast<int>(nth));
    }
    if (first[pos].num_control_deps != 0) node->control_deps.resize(first[pos].num_control_deps);
    for (uint32_t nth = 0; nth < first[pos].num_control_deps; ++nth) {
      node->control_deps[nth] = nodes[*(*dep)++];
    }
  }
  for (NodeEntry& head : graph->outputs) {
    head = NodeEntry(nodes[from->node], from->entry, from->version);
    ++from;
  }
  *edge = from;
}

/// Shared by the two readers of graphs in JSON: that of hosts and that of libraries.
class ReaderParts {
 protected:
  typedef JsonReader::Slice Slice;

  ReaderParts(const char* text, std::size_t size, const JsonOptions& options)
      : reader_(text, size, options) {}
  ~ReaderParts() = default;

  [[noreturn]] void failTwice(const char* key) const {
    reader_.failAt(kJsonDuplicateKey, reader_.offset(), "the key '%s' occurs twice in one object",
                   key);
  }

  void readText(std::string* target) {
    const Slice text = reader_.readString();
    target->assign(text.data, text.size);
  }

  /// Reads a member that the readers do not know, into an object.
  void readOther(const Slice& key, JsonTree* object) {
    reader_._readItem(object, object->add(0, key, reader_.offset()));
  }

  /// Moves such members, if there are any, to a graph, or to a node, which has them as in the text.
  void keepOthers(JsonTree* object, Graph* graph) const {
    reader_._sort(object, 0);
    JsonMembers members;
    object->print(&members);
    GraphAttributeTexts::set(&members, &graph->attrs);
  }
  void keepOthers(JsonTree* object, Node* node) const {
    object->print(&node->extra);
    reader_._sort(object, 0);
    object->clear(MAP);
  }

  /// `only_one`: no other object of attributes of the node was read; `give_way`: those of others
  /// take precedence.
  void parseAttributes(Node* node, bool only_one, bool give_way) {
    bool first = true;
    Slice key;
    pairs_.clear();
    decoded_.clear();
    reader_.beginObject();
    while (reader_.nextKey(&first, &key)) {
      key = kept(key);
      if (reader_.peek() != '"') {
        reader_.failAt(kJsonType, reader_.offset(), "attribute '%s' of node '%s' must be a string",
                       key.str().c_str(), node->name.c_str());
      }
      pairs_.push_back(std::pair<Slice, Slice>(key, kept(reader_.readString())));
    }
    requireSpread(*node);
    if (only_one) {
      const Slice* const twice = AttributeTexts::pack(pairs_.data(), pairs_.size(), &node->attrs);
      if (twice == nullptr) return;
      reader_.failAt(kJsonDuplicateKey, reader_.offset(),
                     "attribute '%s' occurs twice in node '%s'", twice->str().c_str(),
                     node->name.c_str());
    }
    for (const auto& pair : pairs_) {
      Slice former;
      if (give_way && AttributeTexts(node->attrs).find(pair.first.data, pair.first.size, &former))
        continue;
      std::unordered_map<std::string, std::string>& attributes = node->attrs;
      setText(pair.first, pair.second, &attributes);
    }
  }

  /// Reads an entry of two or three numbers: node, output and, since 0.9, version.
  FlatEdge readEntry(const char* what) {
    int64_t numbers[3] = {0, 0, 0};
    int count = 0;
    bool first = true;
    reader_.peek();
    const std::size_t place = reader_.offset();
    reader_.beginList();
    while (reader_.nextItem(&first)) {
      if (count == 3) failShape(what, place);
      // The count of outputs, one more than the largest number, is an int too.
      const int64_t most = count == 1 ? kIntMax - 1 : kIntMax;
      numbers[count++] = reader_.readInteger("number of an entry", 0, most);
    }
    if (count < 2) failShape(what, place);
    return FlatEdge{static_cast<uint32_t>(numbers[0]), static_cast<int32_t>(numbers[1]),
                    static_cast<int32_t>(numbers[2])};
  }

  JsonReader reader_;

 private:
  /// A text that the reader returned, which is valid until all attributes of the node are read.
  Slice kept(const Slice& text) {
    if (!reader_.isDecoded(text)) return text;
    char* const copy = decoded_.room(text.size);
    decoded_.append(text.data, text.size);
    return Slice{copy, text.size};
  }

  /// Refuses keys chosen so that they collide in the node's table, whose hash has no key: each
  /// would be compared with all before it.
  void requireSpread(const Node& node) const {
    const std::size_t most = 64;  // by chance, a dozen in a million
    if (pairs_.size() <= most) return;
    const std::size_t room = node.attrs.size() + pairs_.size();
    NodeAttributes::Map table;
    table.reserve(room);
    PlainList<uint32_t> filled;
    filled.resize(table.bucket_count());
    for (const auto& pair : pairs_) {
      if (++filled[table.bucket(pair.first.str())] <= most) continue;
      reader_.failAt(kJsonRange, reader_.offset(),
                     "the attributes of node '%s' have the same key many times, or keys chosen to "
                     "collide in a hash table",
                     node.name.c_str());
    }
  }

  [[noreturn]] void failShape(const char* what, std::size_t place) const {
    reader_.failAt(kJsonType, place, "%s entries are [node, output] or [node, output, version]",
                   what);
  }

  PlainList<std::pair<Slice, Slice> > pairs_;  // of one node's attributes
  TextBuffer decoded_;                         // those with escapes
};

/// Reads NNVM's JSON into a Graph, in as little code as can be: libraries read it from MXNet, and
/// all compile this. It takes and refuses the same texts as the reader of hosts, with the same
/// errors. Edges are kept, and linked, as those of the flat form.
class TextReader : private ReaderParts {
 public:
  TextReader(const char* text, std::size_t size, const JsonOptions& options)
      : ReaderParts(text, size, options), frame_(nullptr) {}
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;
  ~TextReader() {
    while (frame_ != nullptr) pop();
  }

  void read(Graph* graph) {
    push(graph);
    while (frame_ != nullptr) step(frame_);
    reader_.finish();
  }

 private:
  /// The next part of a graph: a member, a node, a member of a node, or a subgraph of it.
  enum Part { kMember, kNode, kField, kSubgraph };
  /// The places where a node is named by its number.
  enum Use { kInput, kDependency, kArgument, kHead };
  struct Frame {
    explicit Frame(Graph* target) : graph(target) {}
    Graph* graph;
    Frame* outer = nullptr;
    std::size_t start = 0;  // offset of the graph in the text
    Part part = kMember;
    bool first[4] = {true, true, true, true};  // of each part
    unsigned members = 0;                      // a bit for each that was read
    unsigned fields = 0;
    Node* node = nullptr;
    PlainList<FlatNode> nodes;  // the numbers of their edges
    PlainList<std::size_t> offsets;
    PlainList<FlatEdge> edges;
    PlainList<uint32_t> control_deps;
    PlainList<FlatEdge> heads;
    PlainList<uint32_t> arg_nodes;
    PlainList<uint32_t> row_ptr;
    JsonTree attrs{MAP};
    JsonTree extra{MAP};  // of the node
  };

  // The first three of each must be there.
  static const char* const* memberKeys() {
    static const char* const keys[] = {"nodes", "arg_nodes", "heads", "node_row_ptr", nullptr};
    return keys;
  }
  static const char* const* fieldKeys() {
    static const char* const keys[] = {"op",    "name",         "inputs",    "attrs", "attr",
                                       "param", "control_deps", "subgraphs", nullptr};
    return keys;
  }
  static const char* missing(const char* const* keys, unsigned seen) {
    for (int pos = 0; pos < 3; ++pos) {
      if ((seen >> pos & 1) == 0) return keys[pos];
    }
    return nullptr;
  }
  /// Returns the position of a key, which it notes, or that of the end.
  int find(const char* const* keys, const Slice& key, unsigned* seen) const {
    int pos = 0;
    while (keys[pos] != nullptr && !(key == keys[pos])) ++pos;
    if (keys[pos] == nullptr) return pos;
    if ((*seen >> pos & 1) != 0) failTwice(keys[pos]);
    *seen |= 1u << pos;
    return pos;
  }
  void push(Graph* graph) {
    reader_.peek();
    Frame* const frame = new Frame(graph);
    frame->start = reader_.offset();
    frame->outer = frame_;
    frame_ = frame;
    reader_.beginObject();
  }
  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }
  static void enter(Frame* frame, Part part) {
    frame->part = part;
    frame->first[part] = true;
  }

  void step(Frame* frame) {
    Slice key;
    bool* const first = &frame->first[frame->part];
    const bool keyed = frame->part == kMember || frame->part == kField;
    const bool more = keyed ? reader_.nextKey(first, &key) : reader_.nextItem(first);
    switch (frame->part) {
      case kMember:
        if (more) return readMember(frame, key);
        finish(frame);
        return pop();
      case kNode:
        if (more) return beginNode(frame);
        frame->part = kMember;
        return;
      case kField:
        if (more) return readField(frame, key);
        return finishNode(frame);
      case kSubgraph:
        if (!more) {
          frame->part = kField;
          return;
        }
        frame->node->subgraphs.push_back(nullptr);
        push(frame->node->subgraphs.back() = new Graph());
    }
  }

  void readMember(Frame* frame, const Slice& key) {
    switch (find(memberKeys(), key, &frame->members)) {
      case 0:
        reader_.beginList();
        return enter(frame, kNode);
      case 1:
        return readNumbers("node number", &frame->arg_nodes);
      case 2:
        return readEntries("head", &frame->heads);
      case 3:
        return readNumbers("row pointer", &frame->row_ptr);
      default:
        readOther(key, &frame->attrs);
    }
  }

  void beginNode(Frame* frame) {
    reader_.peek();
    frame->offsets.push_back(reader_.offset());
    reader_.beginObject();
    frame->nodes.push_back(FlatNode());
    frame->graph->nodes.push_back(nullptr);
    frame->graph->nodes.back() = frame->node = new Node();
    frame->fields = 0;
    enter(frame, kField);
  }

  void readField(Frame* frame, const Slice& key) {
    const unsigned attributes = 7u << 3;  // the three spellings
    const bool only_one = (frame->fields & attributes) == 0;
    FlatNode* const node = &frame->nodes.back();
    const int field = find(fieldKeys(), key, &frame->fields);
    switch (field) {
      case 0:
        return readText(&frame->node->op);
      case 1:
        return readText(&frame->node->name);
      case 2: {
        const std::size_t before = frame->edges.size();
        readEntries("input", &frame->edges);
        node->num_inputs = static_cast<uint32_t>(frame->edges.size() - before);
        return;
      }
      case 6: {
        const std::size_t before = frame->control_deps.size();
        readNumbers("node number", &frame->control_deps);
        node->num_control_deps = static_cast<uint32_t>(frame->control_deps.size() - before);
        return;
      }
      case 7:
        reader_.beginList();
        return enter(frame, kSubgraph);
      case 8:
        if (!(key == "backward_source_id")) return readOther(key, &frame->extra);
        reader_.readInteger("backward_source_id", -1, kIntMax);  // of MXNet 0.8; unused since
        return;
      default:
        // Three spellings from three generations of files. MXNet 0.8 writes both "param" and
        // "attr"; "attr" takes precedence.
        parseAttributes(frame->node, only_one, field == 5);
    }
  }

  void readNumbers(const char* what, PlainList<uint32_t>* numbers) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) {
      numbers->push_back(static_cast<uint32_t>(reader_.readInteger(what, 0, kIntMax)));
    }
  }

  void readEntries(const char* what, PlainList<FlatEdge>* edges) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) edges->push_back(readEntry(what));
  }

  void finishNode(Frame* frame) const {
    if (frame->extra.size() > 1) keepOthers(&frame->extra, frame->node);
    const char* const lacks = missing(fieldKeys(), frame->fields);
    if (lacks != nullptr && (frame->fields >> 1 & 1) != 0) {
      reader_.failAt(kJsonMissingKey, frame->offsets.back(), "node '%s' has no '%s'",
                     frame->node->name.c_str(), lacks);
    }
    if (lacks != nullptr) {
      reader_.failAt(kJsonMissingKey, frame->offsets.back(), "node number %zu has no '%s'",
                     frame->offsets.size() - 1, lacks);
    }
    frame->part = kNode;
  }

  void finish(Frame* frame) {
    keepOthers(&frame->attrs, frame->graph);
    const char* const lacks = missing(memberKeys(), frame->members);
    if (lacks != nullptr) {
      reader_.failAt(kJsonMissingKey, frame->start, "the graph has no '%s'", lacks);
    }
    Graph* const graph = frame->graph;
    PlainList<uint32_t> known;  // per node: the consumers that it knows of
    known.resize(graph->nodes.size());
    makeRoom(frame);
    const bool ordered = checkEdges(*frame);
    checkVariables(*frame);
    for (std::size_t pos = 0; pos < frame->heads.size(); ++pos) {
      require(*frame, frame->heads[pos], kHead, 0, pos);
      frame->edges.push_back(frame->heads[pos]);
    }
    graph->outputs.resize(frame->heads.size());
    const FlatEdge* edge = frame->edges.data();
    const uint32_t* dep = frame->control_deps.data();
    linkNodes(frame->nodes.data(), known.data(), &edge, &dep, graph);
    if (ordered) return;
    try {
      std::vector<Node*> order;
      Node* const* const nodes = graph->nodes.data();
      orderNodes(nodes, graph->nodes.size(), NodeTable(nodes, graph->nodes.size()), &order);
    } catch (const GraphStructureError& error) {
      reader_.fail(kJsonCycle, error.what(), frame->start);
    }
  }

  /// Sets the numbers of outputs, makes room for edges, and lists the variables.
  void makeRoom(Frame* frame) const {
    const std::vector<Node*>& nodes = frame->graph->nodes;
    const PlainList<uint32_t>& ptr = frame->row_ptr;
    // MXNet's lib_api writes 0..n-1: one number too few, and one output per node.
    const bool stated = (frame->members >> 3 & 1) != 0 && ptr.size() != nodes.size();
    if (stated && (ptr.size() != nodes.size() + 1 || ptr[0] != 0)) {
      reader_.failAt(
          kJsonRange, frame->start,
          "node_row_ptr must begin with 0 and have one number more than there are nodes");
    }
    PlainList<uint32_t> uses;
    uses.resize(nodes.size());
    for (const FlatEdge& edge : frame->edges) {
      if (edge.node < nodes.size()) ++uses[edge.node];
    }
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      Node* node = nodes[pos];
      if (stated && ptr[pos + 1] < ptr[pos]) {
        reader_.failAt(kJsonRange, frame->start, "node_row_ptr decreases at node '%s'",
                       node->name.c_str());
      }
      if (stated) declareOutputs(node, static_cast<int>(ptr[pos + 1] - ptr[pos]));
      node->inputs.resize(frame->nodes[pos].num_inputs);
      node->outputs.resize(uses[pos]);
      if (node->op == "null") frame->graph->inputs.push_back(node);
    }
  }

  /// Returns whether every producer comes before its consumers.
  bool checkEdges(const Frame& frame) const {
    bool ordered = true;
    const FlatEdge* edge = frame.edges.data();
    for (std::size_t pos = 0; pos < frame.nodes.size(); ++pos) {
      for (uint32_t nth = 0; nth < frame.nodes[pos].num_inputs; ++nth, ++edge) {
        require(frame, *edge, kInput, pos, nth);
        ordered = ordered && edge->node < pos;
      }
    }
    const uint32_t* dep = frame.control_deps.data();
    for (std::size_t pos = 0; pos < frame.nodes.size(); ++pos) {
      for (uint32_t nth = 0; nth < frame.nodes[pos].num_control_deps; ++nth, ++dep) {
        require(frame, FlatEdge{*dep, 0, 0}, kDependency, pos, nth);
        ordered = ordered && *dep < pos;
      }
    }
    return ordered;
  }

  /// `node`: the position of the consumer, if it is a node; `number`: that of its edge.
  void require(const Frame& frame, const FlatEdge& edge, Use use, std::size_t node,
               std::size_t number) const {
    const std::vector<Node*>& nodes = frame.graph->nodes;
    const Node* const other = edge.node < nodes.size() ? nodes[edge.node] : nullptr;
    if (other != nullptr && (other->num_outputs <= 0 || edge.entry < other->num_outputs)) return;
    const bool of_node = use == kInput || use == kDependency;
    const char* const name = of_node ? nodes[node]->name.c_str() : "";
    const std::size_t place = of_node ? frame.offsets[node] : frame.start;
    const std::string what = use == kInput  ? printed("input %zu of node '%s'", number, name)
                             : use == kHead ? printed("head %zu", number)
                             : of_node      ? printed("a control dependency of node '%s'", name)
                                            : std::string("arg_nodes");
    if (other == nullptr) {
      reader_.failAt(kJsonRange, place, "%s refers to node %u, but there are %zu nodes",
                     what.c_str(), static_cast<unsigned>(edge.node), nodes.size());
    }
    reader_.failAt(kJsonRange, place, "%s refers to output %d of node '%s', which has %d",
                   what.c_str(), static_cast<int>(edge.entry), other->name.c_str(),
                   other->num_outputs);
  }

  void checkVariables(const Frame& frame) const {
    const std::vector<Node*>& nodes = frame.graph->nodes;
    PlainList<NumberedText> variables;  // names and positions
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      if (nodes[pos]->op == "null")
        variables.push_back(NumberedText{sliceOf(nodes[pos]->name), pos});
    }
    sortTexts(&variables);
    std::size_t twice = nodes.size();  // the first that has the name of another before it
    for (std::size_t pos = 1; pos < variables.size(); ++pos) {
      // Sorted: if it is not before the next one, it is the same.
      if (variables[pos - 1].text < variables[pos].text) continue;
      twice = (std::min)(twice, variables[pos].number);
    }
    if (twice < nodes.size()) {
      reader_.failAt(kJsonDuplicateName, frame.offsets[twice], "two variables are named '%s'",
                     nodes[twice]->name.c_str());
    }
    for (const uint32_t number : frame.arg_nodes) {
      require(frame, FlatEdge{number, 0, 0}, kArgument, 0, 0);
      const Node* const node = nodes[number];
      if (node->op == "null") continue;
      reader_.failAt(kJsonType, frame.start,
                     "arg_nodes lists node '%s', which is not a variable but '%s'",
                     node->name.c_str(), node->op.c_str());
    }
  }

  Frame* frame_;  // of the innermost graph
};

}  // namespace detail

// ---- writing graphs as JSON --------------------------------------------------------------------

namespace detail {

/// The texts written for attributes: many nodes have the same ones, since a model has few kinds of
/// layers. Later attributes may take the place of others.
class WrittenAttributes {
 public:
  struct Slot {
    const uint32_t* packed;
    std::size_t depth;
    std::size_t place;  // of the text that was written last
    std::size_t size;
  };
  /// Returns the slot of such attributes, whose size is 0 if they were not written at this depth.
  Slot& find(const uint32_t* packed, std::size_t depth) {
    if (slots_.empty()) slots_.resize(kSlots);
    const uint64_t factor = 0x9e3779b97f4a7c15ULL;
    Slot& slot = slots_[reinterpret_cast<uintptr_t>(packed) * factor >> 55];
    if (slot.packed != packed || slot.depth != depth) slot = Slot{packed, depth, 0, 0};
    return slot;
  }

 private:
  enum { kSlots = 512 };
  PlainList<Slot> slots_;
};

/// Writes NNVM's JSON, on one line or in the layout of MXNet's writer: two spaces for each level up
/// to the 64th,
/// a space after every comma, a list on several lines when it has more than ten items or composite
/// ones, an object when it has more than one member.
class GraphWriter {
 public:
  /// `omitted`: the key of an attribute of nodes that is not written; null for none.
  GraphWriter(bool pretty, TextBuffer* out, const char* omitted = nullptr)
      : pretty_(pretty), blank_(1 + 2 * kMostIndented, ' '), out_(*out), omitted_(omitted) {
    blank_[0] = '\n';
  }
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;
  ~GraphWriter() {
    while (frame_ != nullptr) pop();
  }

  /// `attributes`: top-level keys other than NNVM's own, usually those of the graph.
  void write(const Graph& root, const GraphAttributes& attributes) {
    begin(root, attributes, 0);
    while (frame_ != nullptr) {
      Frame& frame = *frame_;
      if (frame.node == frame.count) {
        finish(frame);
        open_.removeLast();
        pop();
        if (frame_ != nullptr) ++frame_->subgraph;
        continue;
      }
      const Node& node = *frame.order[frame.node];
      prefetchNode(frame.order, frame.count, frame.node, &Node::op);
      if (frame.subgraph == 0) {
        if (!frame.addNode(node)) {
          sortRest(&frame);
          continue;
        }
        writeNode(&frame, node);
      }
      if (frame.subgraph < node.subgraphs.size()) {
        separate(frame.subgraph > 0, frame.depth + 4);
        const Graph& nested = nestedGraph(node, frame.subgraph);
        begin(nested, nested.attrs, frame.depth + 4);
        continue;
      }
      if (node.subgraphs.size() != 0) {
        newline(frame.depth + 3);
        out_.push_back(']');
      }
      out_.append(frame.to_end);
      frame.subgraph = 0;
      ++frame.node;
    }
  }

 private:
  struct Frame {
    Frame(const Graph& target, const GraphAttributes& extra, std::size_t level)
        : graph(target),
          attributes(extra),
          depth(level),
          order(target.nodes.data()),
          count(target.nodes.size()),
          table(new NodeTable(order, count)) {}

    /// Finds the producers of a node, which is written next. Returns false if one of them is not
    /// among the nodes before it.
    bool addNode(const Node& added) {
      positions.clear();
      for (const NodeEntry& input : added.inputs) {
        if (!addUse(table->find(input.node), input.entry)) return false;
      }
      for (const Node* dep : added.control_deps) {
        if (!addUse(table->find(dep), -1)) return false;
      }
      outputs.push_back(added.num_outputs > 0 ? static_cast<uint32_t>(added.num_outputs) : 1);
      if (added.op == "null") variables.push_back(static_cast<uint32_t>(node));
      return true;
    }
    /// The same for the outputs of the graph, when all nodes are written.
    void addHeads() {
      positions.clear();
      for (const NodeEntry& head : graph.outputs) {
        if (addUse(table->find(head.node), head.entry)) continue;
        failGraph("an output of the graph comes from a node that is not in it");
      }
    }
    bool addUse(int64_t position, int entry) {
      if (position < 0 || position >= static_cast<int64_t>(outputs.size())) return false;
      positions.push_back(static_cast<uint32_t>(position));
      uint32_t& stated = outputs[static_cast<std::size_t>(position)];
      // A reader that knows the operator must be able to detect uses beyond its outputs.
      if (entry >= 0 && static_cast<uint32_t>(entry) >= stated &&
          hasOutput(*order[position], entry)) {
        stated = static_cast<uint32_t>(entry) + 1;
      }
      return true;
    }

    const Graph& graph;
    const GraphAttributes& attributes;
    std::size_t depth;
    Node* const* order;  // the graph's own, or `sorted`
    std::size_t count;
    Owned<NodeTable> table;
    std::vector<Node*> sorted;
    PlainList<uint32_t> positions;  // of the producers of a node
    PlainList<uint32_t> outputs;    // of the nodes written so far: how many each has
    PlainList<uint32_t> variables;  // of the nodes written so far
    std::size_t node = 0;
    std::size_t subgraph = 0;
    // The text between the members of each node.
    std::string to_op;
    std::string to_name;
    std::string to_attrs;
    std::string to_inputs;
    std::string to_end;
    Frame* outer = nullptr;
  };

  /// A list of numbers, or of lists of them: long ones stand on several lines.
  class ListLayout {
   public:
    ListLayout(std::size_t count, const GraphWriter& writer, std::size_t depth)
        : blank_(writer.blank_.data()),
          inner_(count > 10 ? writer.blankSize(depth + 1) : 0),
          outer_(count > 10 ? writer.blankSize(depth) : 0) {}
    /// The most bytes before an item.
    std::size_t most() const { return inner_ + 2; }
    char* separate(std::size_t pos, char* target) const {
      if (pos > 0) {
        *target++ = ',';
        *target++ = ' ';
      }
      if (inner_ != 0) memcpy(target, blank_, inner_);
      return target + inner_;
    }
    void close(TextBuffer* out) const {
      out->append(blank_, outer_);
      out->push_back(']');
    }

   private:
    const char* blank_;
    std::size_t inner_;
    std::size_t outer_;
  };

  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }

  const Graph& nestedGraph(const Node& node, std::size_t index) const {
    const Graph* nested = node.subgraphs[index];
    if (nested == nullptr) failGraph("a subgraph of node '%s' is null", node.name.c_str());
    if (open_.find(nested) >= 0) {
      failGraph("a subgraph of node '%s' contains this node", node.name.c_str());
    }
    return *nested;
  }

  /// How much of blank_ stands before what is so deep. Bounded, since the text of deeply nested
  /// graphs would grow with the square of their depth.
  std::size_t blankSize(std::size_t depth) const {
    return pretty_ ? (std::min)(2 * depth + 1, blank_.size()) : 0;
  }

  void newline(std::size_t depth) { out_.append(blank_.data(), blankSize(depth)); }

  /// The text before the value of a member of a node.
  std::string before(const char* opening, const char* name, std::size_t depth) const {
    return opening + blank_.substr(0, blankSize(depth)) + '"' + name + "\": ";
  }

  void separate(bool comma, std::size_t depth) {
    if (comma) out_.append(", ");
    newline(depth);
  }

  void key(const char* name, bool comma, std::size_t depth) {
    separate(comma, depth);
    out_.push_back('"');
    out_.append(name, strlen(name));
    out_.append("\": ");
  }

  void string(const std::string& text) { appendString(text.data(), text.size(), pretty_, &out_); }
  void string(const JsonReader::Slice& text) { appendString(text.data, text.size, pretty_, &out_); }

  void begin(const Graph& graph, const GraphAttributes& attributes, std::size_t depth) {
    open_.add(&graph);
    Frame* const frame = new Frame(graph, attributes, depth);
    frame->outer = frame_;
    frame_ = frame;
    const std::string line = blank_.substr(0, blankSize(depth + 2));
    frame->to_op = line + before("{", "op", depth + 3);
    frame->to_name = before(", ", "name", depth + 3);
    frame->to_attrs = before(", ", "attrs", depth + 3);
    frame->to_inputs = before(", ", "inputs", depth + 3);
    frame->to_end = line + '}';
    out_.push_back('{');
    key("nodes", false, depth + 1);
    out_.push_back('[');
  }

  /// Sorts the nodes of a graph of which one comes before a node that it depends on. That shows
  /// while they are written, since a walk of its own would read all of them from memory. Those
  /// that are written come first in the sorted graph, too.
  void sortRest(Frame* frame) {
    orderNodes(frame->order, frame->count, *frame->table, &frame->sorted);  // or throws
    frame->order = frame->sorted.data();
    frame->table.reset(new NodeTable(frame->order, frame->count));
  }

  void writeNode(Frame* frame, const Node& node) {
    const std::size_t depth = frame->depth + 3;
    if (frame->node > 0) out_.append(", ");
    out_.append(frame->to_op);
    try {
      string(node.op);
      out_.append(frame->to_name);
      string(node.name);
      const std::size_t count = node.attrs.size();
      if (count > 2 || (count > 0 && hasWritten(node))) {
        out_.append(frame->to_attrs);
        writeAttributes(node, depth);
      }
    } catch (const JsonError& error) {
      failGraph("node number %zu: %s", frame->node, error.what());
    }
    out_.append(frame->to_inputs);
    writeEntries(frame, node.inputs, depth);
    if (node.control_deps.size() != 0) {
      key("control_deps", true, depth);
      writeIntegers(frame->positions.data() + node.inputs.size(), node.control_deps.size(), depth);
    }
    if (!node.extra.empty()) writeMembers(node.extra, depth);
    if (node.subgraphs.size() != 0) {
      key("subgraphs", true, depth);
      out_.push_back('[');
    }
  }

  /// Without origins there are no rules either.
  bool isOmitted(const JsonReader::Slice& key) const {
    return omitted_ != nullptr &&
           (key == omitted_ || (key == MX_STR_RULES && strcmp(omitted_, MX_STR_ORIGIN) == 0));
  }

  bool hasWritten(const Node& node) const {
    bool found = omitted_ == nullptr;
    if (found) return true;
    AttributeTexts(node.attrs)
        .visit([this, &found](const JsonReader::Slice& key, const JsonReader::Slice&) {
          found = found || !isOmitted(key);
        });
    return found;
  }

  void writeAttributes(const Node& node, std::size_t depth) {
    AttributeTexts(node.attrs).readTypes();
    std::size_t words = 0;
    const uint32_t* const packed = AttributeTexts(node.attrs).packed(&words);
    WrittenAttributes::Slot* slot = nullptr;
    if (packed != nullptr && out_.isWhole()) {
      slot = &written_.find(packed, depth);
      const std::size_t place = out_.size();
      if (slot->size != 0) {
        out_.repeat(slot->place, slot->size);
        slot->place = place;  // is more likely to be in the cache
        return;
      }
      slot->place = place;
    }
    writeEach(node, depth);
    if (slot != nullptr) slot->size = out_.size() - slot->place;
  }

  void writeEach(const Node& node, std::size_t depth) {
    keys_.clear();
    texts_.clear();
    const AttributeTexts attributes(node.attrs);
    attributes.visit([this](const JsonReader::Slice& key, const JsonReader::Slice& text) {
      if (isOmitted(key)) return;
      keys_.push_back(NumberedText{key, keys_.size()});
      texts_.push_back(text);
    });
    std::size_t words = 0;
    if (attributes.packed(&words) == nullptr) sortTexts(&keys_);
    const bool lines = keys_.size() > 1;
    out_.push_back('{');
    for (std::size_t pos = 0; pos < keys_.size(); ++pos) {
      if (pos > 0) out_.append(", ");
      if (lines) newline(depth + 1);
      string(keys_[pos].text);
      out_.append(": ");
      string(texts_[keys_[pos].number]);
    }
    if (lines) newline(depth);
    out_.push_back('}');
  }

  void writeEntries(Frame* frame, const std::vector<NodeEntry>& entries, std::size_t depth) {
    ListLayout layout(entries.size(), *this, depth);
    out_.push_back('[');
    for (std::size_t pos = 0; pos < entries.size(); ++pos) {
      char* cursor = layout.separate(pos, out_.room(layout.most() + 64));
      *cursor++ = '[';
      cursor = printInteger(frame->positions[pos], cursor);
      *cursor++ = ',';
      *cursor++ = ' ';
      cursor = printInteger(entries[pos].entry, cursor);
      *cursor++ = ',';
      *cursor++ = ' ';
      cursor = printInteger(entries[pos].version, cursor);
      *cursor++ = ']';
      out_.advanceTo(cursor);
    }
    layout.close(&out_);
  }

  void writeIntegers(const uint32_t* numbers, std::size_t count, std::size_t depth) {
    ListLayout layout(count, *this, depth);
    out_.push_back('[');
    for (std::size_t pos = 0; pos < count; ++pos) {
      char* const cursor = layout.separate(pos, out_.room(layout.most() + 24));
      out_.advanceTo(printInteger(numbers[pos], cursor));
    }
    layout.close(&out_);
  }

  /// Writes 0 and the sums of the first numbers, which may exceed 32 bits.
  void writeSums(const PlainList<uint32_t>& numbers, std::size_t depth) {
    ListLayout layout(numbers.size() + 1, *this, depth);
    int64_t sum = 0;
    out_.push_back('[');
    for (std::size_t pos = 0; pos <= numbers.size(); ++pos) {
      if (pos != 0) sum += numbers[pos - 1];
      char* const cursor = layout.separate(pos, out_.room(layout.most() + 24));
      out_.advanceTo(printInteger(sum, cursor));
    }
    layout.close(&out_);
  }

  void finish(Frame& frame) {
    const std::size_t depth = frame.depth + 1;
    frame.addHeads();
    if (frame.count != 0) newline(depth);
    out_.push_back(']');
    key("arg_nodes", true, depth);
    writeIntegers(frame.variables.data(), frame.variables.size(), depth);
    key("node_row_ptr", true, depth);
    writeSums(frame.outputs, depth);
    key("heads", true, depth);
    writeEntries(&frame, frame.graph.outputs, depth);
    JsonMembers printed;
    writeMembers(GraphAttributeTexts::list(frame.attributes, &printed), depth);
    newline(frame.depth);
    out_.push_back('}');
  }

  void writeMembers(const JsonMembers& members, std::size_t depth) {
    for (const auto& member : members) {
      const std::string& text = member.second;
      separate(true, depth);
      string(member.first);
      out_.append(": ");
      if (pretty_) {
        JsonTree tree;
        readAgain(text)._readItem(&tree, 0);
        tree.print(0, true, depth, &out_);
        continue;
      }
      for (const char character : text) {
        if (static_cast<unsigned char>(character) >= 0x80) out_.noteNotAscii();
      }
      out_.append(text);
    }
  }

  bool pretty_;
  std::string blank_;  // a line break and the deepest indentation
  TextBuffer& out_;
  const char* omitted_;
  Frame* frame_ = nullptr;        // of the innermost graph
  AddressTable open_;             // the graphs of the frames
  PlainList<NumberedText> keys_;  // of the attributes of a node
  PlainList<JsonReader::Slice> texts_;
  WrittenAttributes written_;
};

}  // namespace detail

// ---- the graph: structure ----------------------------------------------------------------------

namespace detail {

/// The dependencies of a node: its inputs, then its control dependencies.
inline std::size_t countDependencies(const Node& node) {
  return node.inputs.size() + node.control_deps.size();
}

/// Position of dependency `i`. Throws if it is not in the table.
inline std::size_t dependency(const Node& node, std::size_t pos, const NodeTable& table) {
  const bool data = pos < node.inputs.size();
  const Node* other = data ? node.inputs[pos].node : node.control_deps[pos - node.inputs.size()];
  const int64_t position = table.find(other);
  if (position < 0 && data) {
    failGraph("input %zu of node '%s' comes from a node that is not in the graph", pos,
              node.name.c_str());
  }
  if (position < 0) {
    failGraph("a control dependency of node '%s' comes from a node that is not in the graph",
              node.name.c_str());
  }
  return static_cast<std::size_t>(position);
}

/// Spells the names along a cycle. `path`: nodes that each depend on the next, the last one on the
/// node at position `start`.
inline std::string describeCycle(const std::vector<Node*>& path, std::size_t start) {
  const std::size_t shown = 8;
  std::string text = "nodes wait for each other in a cycle: ";
  for (std::size_t pos = start; pos < path.size(); ++pos) {
    if (pos - start == shown && path.size() - pos > 1) {
      text += printed("... (%zu nodes) -> ", path.size() - start);
      pos = path.size() - 1;
    }
    text += printed("'%s' -> ", path[pos]->name.c_str());
  }
  return text + printed("'%s'", path[start]->name.c_str());
}

/// Adds the nodes to `order` as sortNodes says. Returns false, and adds none, if their order is
/// topological already.
inline bool orderNodes(Node* const* nodes, std::size_t count, const NodeTable& table,
                       std::vector<Node*>* order) {
  bool ordered = true;
  for (std::size_t pos = 0; pos < count && ordered; ++pos) {
    prefetchNode(nodes, count, pos, &Node::control_deps);
    for (std::size_t nth = 0; nth < countDependencies(*nodes[pos]); ++nth) {
      ordered = ordered && dependency(*nodes[pos], nth, table) < pos;
    }
  }
  if (ordered) return false;

  enum Mark : char { kNew, kWaiting, kDone };
  PlainList<char> marks;
  marks.resize(count);
  order->reserve(count);
  std::vector<Node*> path;  // the current node and those that depend on it
  struct Place {
    std::size_t position;
    std::size_t next;  // dependency
  };
  PlainList<Place> places;  // of the nodes in `path`
  for (std::size_t root = 0; root < count; ++root) {
    if (marks[root] != kNew) continue;
    std::size_t enter = root;
    for (;;) {
      if (marks[enter] == kNew) {
        marks[enter] = kWaiting;
        path.push_back(nodes[enter]);
        places.push_back(Place{enter, 0});
      } else if (marks[enter] == kWaiting) {
        std::size_t start = 0;
        while (places[start].position != enter) ++start;
        failGraph("%s", describeCycle(path, start).c_str());
      }
      while (!path.empty() && places.back().next == countDependencies(*path.back())) {
        marks[places.back().position] = kDone;
        order->push_back(path.back());
        path.pop_back();
        places.pop_back();
      }
      if (path.empty()) break;
      enter = dependency(*path.back(), places.back().next++, table);
    }
  }
  return true;
}

}  // namespace detail

inline std::vector<Node*> sortNodes(const std::vector<Node*>& nodes, const NodeTable& table) {
  std::vector<Node*> order;
  if (!detail::orderNodes(nodes.data(), nodes.size(), table, &order)) return nodes;
  return order;
}

inline Graph::~Graph() {
  // Subgraphs are emptied one by one, and two nodes may point to the same one. A node that faulty
  // passes listed twice is deleted once: all lists are read before the first node is deleted.
  detail::GraphTable graphs;
  graphs.add(this);
  for (std::size_t pos = 0; pos < graphs.size(); ++pos) {
    std::vector<Node*>* const lists[] = {&graphs[pos]->nodes, &graphs[pos]->removed_};
    for (std::vector<Node*>* list : lists) {
      for (Node*& node : *list) {
        if (node != nullptr && detail::NodeMarks::has(*node, detail::NodeMarks::kDoomed))
          node = nullptr;
        if (node == nullptr) continue;
        detail::NodeMarks::set(node, detail::NodeMarks::kDoomed);
        for (Graph* subgraph : node->subgraphs) {
          if (subgraph != nullptr) graphs.add(subgraph);
        }
      }
    }
  }
  for (std::size_t pos = 0; pos < graphs.size(); ++pos) {
    std::vector<Node*>* const lists[] = {&graphs[pos]->nodes, &graphs[pos]->removed_};
    for (std::vector<Node*>* list : lists) {
      for (Node* node : *list) delete node;
      list->clear();
    }
  }
  for (std::size_t pos = 1; pos < graphs.size(); ++pos) delete graphs[pos];
}

inline Graph* Graph::fromString(const char* text, std::size_t size, const JsonOptions& options) {
  detail::Owned<Graph> graph(new Graph());
  detail::TextReader(text, size, options).read(graph.get());
  return graph.release();
}

inline Graph* Graph::fromString(const std::string& json) {
  return fromString(json.data(), json.size(), JsonOptions());
}

inline Graph* Graph::fromJson(const JsonVal& val) { return fromString(val.dump()); }

inline std::string Graph::toString() const {
  detail::TextBuffer out;
  detail::GraphWriter(false, &out).write(*this, attrs);
  return out.str();
}

inline JsonVal Graph::toJson() const { return JsonVal::parse(toString()); }

inline void Graph::writePretty(std::string* out) const {
  detail::TextBuffer text;
  detail::GraphWriter(true, &text).write(*this, attrs);
  out->append(text.str());
}

inline Node* Graph::addNode(const std::string& name, const std::string& op) {
  nodes.push_back(nullptr);
  Node*& node = nodes.back();
  node = new Node();
  detail::NodeMarks::set(node, detail::NodeMarks::kAdded);
  node->name = name;
  node->op = op;
  return node;
}

namespace detail {

/// Removes the edge (consumer, slot) from the producer's list.
inline void dropConsumer(Node* producer, const Node* consumer, int slot) {
  std::vector<NodeEntry>& outputs = producer->outputs;
  for (auto use = outputs.begin(); use != outputs.end(); ++use) {
    if (use->node != consumer || use->entry != slot) continue;
    outputs.erase(use);
    return;
  }
}

}  // namespace detail

namespace detail {

inline void requireNode(const Node* node, const char* function, const char* role) {
  if (node != nullptr) return;
  throw std::invalid_argument(std::string(function) + ": the " + role + " is null");
}

}  // namespace detail

inline void Graph::connect(Node* producer, int producer_output, Node* consumer,
                           int consumer_input) {
  detail::requireNode(producer, "connect", "producer");
  detail::requireNode(consumer, "connect", "consumer");
  const int count = static_cast<int>(consumer->inputs.size());
  if (producer_output < 0) {
    throw std::out_of_range("connect: node " + detail::quoted(producer->name) + " has no output " +
                            std::to_string(producer_output));
  }
  if (consumer_input < 0 || consumer_input > count) {
    throw std::out_of_range("connect: node " + detail::quoted(consumer->name) + " has " +
                            std::to_string(count) + " inputs, there is no input " +
                            std::to_string(consumer_input));
  }
  const NodeEntry entry(producer, producer_output);
  if (consumer_input == count) {
    consumer->inputs.push_back(entry);
  } else {
    NodeEntry& slot = consumer->inputs[static_cast<std::size_t>(consumer_input)];
    if (slot.node != nullptr) detail::dropConsumer(slot.node, consumer, consumer_input);
    slot = entry;
  }
  producer->outputs.emplace_back(consumer, consumer_input);
}

namespace detail {

/// Replaces the uses of a value except those by nodes that `stays` accepts. Returns their number.
template <typename Stays>
std::size_t replaceUses(Graph* graph, const NodeEntry& from, const NodeEntry& target, Stays stays) {
  std::size_t uses = 0;
  std::vector<NodeEntry> kept;
  std::vector<NodeEntry> moved;
  for (const NodeEntry& use : from.node->outputs) {
    if (use.node == nullptr) continue;
    NodeEntry& input = use.node->inputs.at(static_cast<std::size_t>(use.entry));
    if (stays(use.node) || input.node != from.node || input.entry != from.entry) {
      kept.push_back(use);
      continue;
    }
    input = target;
    moved.push_back(use);
    ++uses;
  }
  from.node->outputs.swap(kept);
  target.node->outputs.insert(target.node->outputs.end(), moved.begin(), moved.end());
  for (NodeEntry& head : graph->outputs) {
    if (head.node != from.node || head.entry != from.entry) continue;
    head = target;
    ++uses;
  }
  return uses;
}

}  // namespace detail

namespace detail {

/// Appends the names of the nodes of the model that a node stands for.
inline void appendOrigins(const Node& node, bool added, std::vector<std::string>* names) {
  std::string earlier;
  std::vector<std::string> found;
  if (!AttributeTexts(node.attrs).get(MX_STR_ORIGIN, &earlier)) {
    if (!added) found.push_back(node.name);
  } else {
    try {
      bool first = true;
      JsonReader reader(earlier.data(), earlier.size());
      for (reader.beginList(); reader.nextItem(&first);) {
        found.push_back(reader.readString().str());
      }
      reader.finish();
    } catch (const JsonError&) {  // an attribute of the pass
      found.clear();
    }
  }
  const std::size_t most = 256;
  for (const std::string& name : found) {
    const bool known = std::find(names->begin(), names->end(), name) != names->end();
    if (!known && names->size() < most) names->push_back(name);
  }
}

}  // namespace detail

/// Hosts of passlib state the dialect, and keep the attribute out of files; MXNet does not.
inline void Graph::noteOrigin(Node* old, Node* made) {
  const PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr || resource->_graph()->attrs.count("dialect") == 0) return;
  if (old == made || old->op == "null" || !detail::NodeMarks::has(*made, detail::NodeMarks::kAdded))
    return;
  for (const NodeEntry& input : made->inputs) {
    if (input.node == old) return;  // inserted behind it
  }
  std::vector<std::string> names;
  detail::appendOrigins(*made, true, &names);
  detail::appendOrigins(*old, detail::NodeMarks::has(*old, detail::NodeMarks::kAdded), &names);
  detail::TextBuffer text;
  detail::appendTexts(names, &text);
  made->attrs[MX_STR_ORIGIN] = text.str();
  heirs_.push_back(old);
  heirs_.push_back(made);
}

inline std::size_t Graph::replace(const NodeEntry& from, const NodeEntry& target) {
  detail::requireNode(from.node, "replace", "node of the value to replace");
  detail::requireNode(target.node, "replace", "node of the new value");
  const std::size_t uses = detail::replaceUses(
      this, from, target, [&target](const Node* user) { return user == target.node; });
  noteOrigin(from.node, target.node);
  return uses;
}

inline std::size_t Graph::insertAfter(const NodeEntry& value, const std::vector<Node*>& chain) {
  detail::requireNode(value.node, "insertAfter", "node of the value");
  for (const Node* node : chain) detail::requireNode(node, "insertAfter", "node to insert");
  if (chain.empty()) return 0;
  const std::size_t uses =
      detail::replaceUses(this, value, NodeEntry(chain.back(), 0), [&chain](const Node* user) {
        return std::find(chain.begin(), chain.end(), user) != chain.end();
      });
  NodeEntry last = value;
  for (Node* node : chain) {
    connect(last.node, last.entry, node, 0);
    node->inputs[0].version = last.version;
    last = NodeEntry(node, 0);
  }
  return uses;
}

namespace detail {

/// Takes items out of a list, whose others keep their order.
template <typename Item, typename Unwanted>
void dropIf(std::vector<Item>* list, Unwanted unwanted) {
  list->erase(std::remove_if(list->begin(), list->end(), unwanted), list->end());
}

}  // namespace detail

/// The new node that stands for a removed one stands also for what only that one used.
inline void Graph::noteHeirs(const std::vector<Node*>& removed,
                             const std::unordered_set<Node*>& gone) {
  std::unordered_map<Node*, Node*> heirs;
  for (std::size_t pos = 0; pos < heirs_.size(); pos += 2) heirs[heirs_[pos]] = heirs_[pos + 1];
  for (auto node = removed.rbegin(); node != removed.rend(); ++node) {
    const auto heir = heirs.find(*node);
    if (heir == heirs.end()) continue;
    Node* const made = heir->second;
    for (const NodeEntry& input : (*node)->inputs) {
      if (gone.count(input.node) == 0 || heirs.count(input.node) != 0) continue;
      noteOrigin(input.node, made);
      heirs[input.node] = made;
    }
  }
}

inline void Graph::removeNodes(const std::vector<Node*>& unwanted) {
  const std::unordered_set<Node*> gone(unwanted.begin(), unwanted.end());
  if (gone.count(nullptr) != 0) throw std::invalid_argument("removeNode: the node is null");
  const auto is_gone = [&gone](Node* node) { return gone.count(node) != 0; };
  const auto edge_gone = [&is_gone](const NodeEntry& edge) { return is_gone(edge.node); };
  std::vector<Node*> removed;
  for (Node* node : nodes) {
    if (is_gone(node)) removed.push_back(node);
  }
  if (!heirs_.empty()) noteHeirs(removed, gone);
  if (removed.size() != gone.size()) {
    throw std::invalid_argument("removeNode: the node is not in this graph");
  }
  removed_.insert(removed_.end(), removed.begin(), removed.end());
  detail::dropIf(&nodes, is_gone);
  detail::dropIf(&inputs, is_gone);
  detail::dropIf(&outputs, edge_gone);

  std::unordered_set<Node*> producers;  // nodes that stay, but lose consumers
  std::unordered_set<Node*> consumers;  // nodes that stay, but lose inputs
  for (Node* node : removed) {
    for (const NodeEntry& input : node->inputs) {
      if (input.node != nullptr && !is_gone(input.node)) producers.insert(input.node);
    }
    for (const NodeEntry& use : node->outputs) {
      if (use.node != nullptr && !is_gone(use.node)) consumers.insert(use.node);
    }
  }
  for (Node* node : producers) detail::dropIf(&node->outputs, edge_gone);
  for (Node* node : consumers) {
    // Inputs after a lost one move up, so update their producers.
    std::size_t slot = 0;
    for (std::size_t pos = 0; pos < node->inputs.size(); ++pos) {
      const NodeEntry input = node->inputs[pos];
      if (is_gone(input.node)) continue;
      if (slot != pos && input.node != nullptr) {
        for (NodeEntry& use : input.node->outputs) {
          if (use.node != node || use.entry != static_cast<int>(pos)) continue;
          use.entry = static_cast<int>(slot);
          break;
        }
      }
      node->inputs[slot++] = input;
    }
    node->inputs.resize(slot);
  }
  for (Node* node : nodes) detail::dropIf(&node->control_deps, is_gone);
  for (Node* node : removed) {
    node->inputs.clear();
    node->outputs.clear();
    node->control_deps.clear();
  }
}

inline void Graph::_dfs_util(Node* start, std::unordered_set<Node*>* to_visit,
                             std::function<void(Node*)> handler) const {
  struct Step {
    Node* node;
    std::size_t next;  // consumer
  };
  std::unordered_set<Node*>* const left = to_visit;
  std::vector<Step> path;
  path.push_back(Step{start, 0});
  left->erase(start);
  while (!path.empty()) {
    Node* node = path.back().node;
    if (path.back().next < node->outputs.size()) {
      Node* consumer = node->outputs[path.back().next++].node;
      if (left->erase(consumer) != 0) path.push_back(Step{consumer, 0});
    } else {
      path.pop_back();
      handler(node);
    }
  }
}

inline void Graph::DFS(std::function<void(Node*)> handler) const {
  std::unordered_set<Node*> to_visit(nodes.begin(), nodes.end());
  for (const std::vector<Node*>* roots : {&inputs, &nodes}) {
    for (Node* root : *roots) {
      if (to_visit.count(root) != 0) _dfs_util(root, &to_visit, handler);
    }
  }
}

inline std::vector<Node*> Graph::topological_sort() const {
  std::vector<Node*> order;
  order.reserve(nodes.size());
  DFS([&order](Node* node) { order.push_back(node); });
  return order;
}

inline std::vector<Node*> Graph::sorted() const { return sortNodes(nodes, NodeTable(nodes)); }

inline void Graph::print(int indent) const {
  struct Frame {
    Frame(const Graph* target, int width)
        : graph(target), space(static_cast<std::size_t>((std::max)(width, 0)), ' ') {
      const std::vector<Node*> reversed = target->topological_sort();
      order.assign(reversed.rbegin(), reversed.rend());
    }
    const Graph* graph;
    std::string space;
    std::vector<Node*> order;
    std::size_t node = 0;
    std::size_t subgraph = 0;
  };
  std::vector<Frame> frames;
  const auto begin = [&frames](const Graph* graph, int width) {
    frames.emplace_back(graph, width);
    const std::string& space = frames.back().space;
    std::cout << space << "########### Graph #############\n" << space << "attributes: \n";
    for (const auto& attribute : graph->attrs) {
      std::cout << space << "\t" << attribute.first << " : " << attribute.second.str << "\n";
    }
    std::cout << space << "inputs: " << graph->inputs.size() << "\n"
              << space << "outputs: " << graph->outputs.size() << "\n"
              << space << "nodes: " << graph->nodes.size() << "\n";
  };
  begin(this, indent);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    const std::string& space = frame.space;
    if (frame.node == frame.order.size()) {
      std::cout << space << "###############################\n";
      frames.pop_back();
      continue;
    }
    const Node& node = *frame.order[frame.node];
    if (frame.subgraph == 0) {
      std::cout << space << "Node: " << node.name << "\n";
      for (const NodeEntry& input : node.inputs) {
        std::cout << space << "\tInput: " << input.node->name << " " << input.entry << "\n";
      }
      for (const NodeEntry& use : node.outputs) {
        std::cout << space << "\tOutput: " << use.node->name << " " << use.entry << "\n";
      }
    }
    if (frame.subgraph < node.subgraphs.size()) {
      std::cout << space << "\tSubgraph:\n";
      begin(node.subgraphs[frame.subgraph++], static_cast<int>(space.size()) + 2);
    } else {
      frame.subgraph = 0;
      ++frame.node;
    }
  }
  std::cout.flush();
}

inline const JsonVal& Graph::getAttr(const std::string& key) const {
  const auto found = attrs.find(key);
  if (found == attrs.end()) {
    throw std::out_of_range("the graph has no attribute " + detail::quoted(key));
  }
  return found->second;
}

// ---- attributes as values ----------------------------------------------------------------------

namespace detail {

/// Entry `index` of a list in text form, where a nested list is one entry.
inline std::string listEntry(const std::string& text, unsigned index, const char* what) {
  const std::size_t size = text.size();
  if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
    std::size_t start = 1;
    int depth = 0;
    for (std::size_t pos = 1; pos < size; ++pos) {
      if (depth == 0 && (text[pos] == ',' || pos == size - 1)) {
        if (index == 0 && pos > start) return text.substr(start, pos - start);
        if (index == 0) break;
        --index;
        start = pos + 1;
      }
      if (text[pos] == '[') ++depth;
      if (text[pos] == ']') --depth;
    }
  }
  throw std::out_of_range(std::string(what) + ": no such entry in " + text);
}

}  // namespace detail

inline std::string getShapeAt(const std::string& shape, unsigned index) {
  return detail::listEntry(shape, index, "getShapeAt");
}

inline std::string getDtypeAt(const std::string& dtype, unsigned index) {
  return detail::listEntry(dtype, index, "getDtypeAt");
}

namespace detail {

/// A text without the white space around it.
inline std::string trimmed(const std::string& text) {
  const char* const space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos) return std::string();
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

inline bool readBoolean(const std::string& given, bool* value) {
  const std::string text = trimmed(given);
  *value = text == "True" || text == "true" || text == "1";
  return *value || text == "False" || text == "false" || text == "0";
}

/// Reads a whole number, also with a sign in front, and with the L behind that Python 2 wrote.
inline bool readInteger(const std::string& given, int64_t* value) {
  std::string text = trimmed(given);
  if (text.size() > 1 && text[text.size() - 1] == 'L') text.erase(text.size() - 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.erase(0, 1);
  return parseInteger(text.data(), text.size(), value);
}

inline bool readReal(const std::string& given, double* value) {
  const std::string text = trimmed(given);
  const bool negative = !text.empty() && text[0] == '-';
  const std::string size = text.substr(!text.empty() && (negative || text[0] == '+') ? 1 : 0);
  if (size == "inf" || size == "Infinity") {
    *value = std::numeric_limits<double>::infinity() * (negative ? -1 : 1);
    return true;
  }
  if (size == "nan" || size == "NaN") {
    *value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (size.empty() || size.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  return scanDouble(text, value);
}

/// Reads a list: "(1, 2)", "[1, 2]" or "1, 2". Items in quotes, which JSON and Python put around
/// texts, lose these. False for brackets or quotes that do not match.
inline bool readList(const std::string& given, std::vector<std::string>* items) {
  std::string text = trimmed(given);
  const char first = text.empty() ? '\0' : text[0];
  if (first == '[' || first == '(') {
    const char last = first == '[' ? ']' : ')';
    if (text.size() < 2 || text[text.size() - 1] != last) return false;
    text = trimmed(text.substr(1, text.size() - 2));
  }
  for (std::size_t pos = 0; pos < text.size();) {
    pos = text.find_first_not_of(" \t\r\n", pos);
    if (pos == std::string::npos) return true;  // after the comma of Python's "(1,)"
    std::size_t end = pos;
    if (text[pos] == '"' || text[pos] == '\'') {
      for (++end; end < text.size() && text[end] != text[pos]; ++end) end += text[end] == '\\';
      if (end >= text.size()) return false;
      std::string inner = text.substr(pos + 1, end - pos - 1);
      if (text[pos] == '"') {
        inner = JsonReader(&text[pos], end - pos + 1).readString().str();
      } else {
        for (std::size_t at = inner.find('\\'); at != std::string::npos;
             at = inner.find('\\', at + 1)) {
          inner.erase(at, 1);
        }
      }
      items->push_back(inner);
      end = text.find_first_not_of(" \t\r\n", end + 1);
      if (end == std::string::npos) return true;
      if (text[end] != ',') return false;
    } else {
      end = (std::min)(text.find(',', pos), text.size());
      items->push_back(trimmed(text.substr(pos, end - pos)));
      if (items->back().empty()) return false;
    }
    pos = end + 1;
  }
  return true;
}

/// Whether a node has an attribute other than "None".
inline bool hasAttr(const Node* node, const char* key) {
  std::string text;
  return node != nullptr && detail::AttributeTexts(node->attrs).get(key, &text) && text != "None";
}

[[noreturn]] inline void failAttr(const Node* node, const char* key, const std::string& problem) {
  throw AttributeError("node " + detail::quoted(node->name) + " (" + node->op + "): attribute " +
                       detail::quoted(key) + " " + problem);
}

inline std::string needAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr) {
    throw AttributeError("there is no node to have the attribute " + detail::quoted(key));
  }
  if (!detail::AttributeTexts(node->attrs).get(key, &text) || text == "None")
    failAttr(node, key, "is missing");
  return text;
}

[[noreturn]] inline void failAttrType(const Node* node, const char* key, const char* wanted) {
  failAttr(node, key, "is " + detail::quoted(node->attrs.at(key)) + ", not " + wanted);
}

}  // namespace detail

inline int64_t intAttr(const Node* node, const char* key) {
  int64_t value = 0;
  if (!detail::readInteger(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a whole number of 64 bits");
  }
  return value;
}

inline int64_t intAttr(const Node* node, const char* key, int64_t preset) {
  return detail::hasAttr(node, key) ? intAttr(node, key) : preset;
}

inline std::vector<int64_t> intsAttr(const Node* node, const char* key) {
  std::vector<std::string> items;
  bool valid = false;
  try {
    valid = detail::readList(detail::needAttr(node, key), &items);
  } catch (const JsonError&) {
  }
  std::vector<int64_t> values(items.size());
  for (std::size_t pos = 0; valid && pos < items.size(); ++pos) {
    valid = detail::readInteger(items[pos], &values[pos]);
  }
  if (!valid) detail::failAttrType(node, key, "a list of whole numbers of 64 bits");
  return values;
}

inline std::vector<int64_t> intsAttr(const Node* node, const char* key,
                                     const std::vector<int64_t>& preset) {
  return detail::hasAttr(node, key) ? intsAttr(node, key) : preset;
}

inline double realAttr(const Node* node, const char* key) {
  double value = 0;
  if (!detail::readReal(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a number");
  }
  return value;
}

inline double realAttr(const Node* node, const char* key, double preset) {
  return detail::hasAttr(node, key) ? realAttr(node, key) : preset;
}

inline bool boolAttr(const Node* node, const char* key) {
  bool value = false;
  if (!detail::readBoolean(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "True or False");
  }
  return value;
}

inline bool boolAttr(const Node* node, const char* key, bool preset) {
  return detail::hasAttr(node, key) ? boolAttr(node, key) : preset;
}

inline std::string textAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr || !detail::AttributeTexts(node->attrs).get(key, &text)) {
    detail::failAttr(node, key, "is missing");
  }
  return text;
}

inline std::string textAttr(const Node* node, const char* key, const std::string& preset) {
  std::string text;
  return node != nullptr && detail::AttributeTexts(node->attrs).get(key, &text) ? text : preset;
}

template <typename Visit>
void NodeAttributes::forEach(Visit visit) const {
  detail::AttributeTexts(*this).visit(
      [&visit](const JsonReader::Slice& key, const JsonReader::Slice& text) {
        visit(key.str(), text.str());
      });
}

inline std::string dialectOf(const Graph* graph) {
  std::string name;
  return detail::GraphAttributeTexts::getString(graph->attrs, "dialect", &name) ? name : "mxnet";
}

inline void setAttr(const Graph*, Node* node, const char* key, const std::string& text) {
  detail::requireNode(node, "setAttr", "node");
  node->attrs[key] = text;
}

inline void setAttr(const Graph* graph, Node* node, const char* key, const char* text) {
  setAttr(graph, node, key, std::string(text));
}

inline void setAttr(const Graph* graph, Node* node, const char* key, bool value) {
  const std::string dialect = dialectOf(graph);
  const char* const texts[] = {"True", "False", "1", "0", "true", "false"};
  const int spelling = dialect == "mxnet" || dialect == "nnvm" ? 0 : dialect == "onnx" ? 2 : 4;
  setAttr(graph, node, key, texts[spelling + (value ? 0 : 1)]);
}

inline void setAttr(const Graph* graph, Node* node, const char* key, int value) {
  setAttr(graph, node, key, std::to_string(value));
}

inline void setAttr(const Graph* graph, Node* node, const char* key, int64_t value) {
  setAttr(graph, node, key, std::to_string(value));
}

namespace detail {

/// The shortest text that reads back as the same double, in the spelling of all dialects.
inline std::string realText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return shortestText(value);
}

/// A list in the spelling of the graph's dialect. Python's tuple of one item ends with a comma.
inline std::string listText(const Graph* graph, const std::vector<std::string>& items) {
  const std::string dialect = dialectOf(graph);
  const bool tuple = dialect == "mxnet" || dialect == "nnvm";
  std::string text(1, tuple ? '(' : '[');
  for (const std::string& item : items) text += (&item == &items[0] ? "" : ", ") + item;
  if (tuple && items.size() == 1) text += ",";
  return text + (tuple ? ')' : ']');
}

}  // namespace detail

inline void setAttr(const Graph* graph, Node* node, const char* key, double value) {
  setAttr(graph, node, key, detail::realText(value));
}

inline void setAttr(const Graph* graph, Node* node, const char* key,
                    const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(std::to_string(value));
  setAttr(graph, node, key, detail::listText(graph, items));
}

inline void setAttr(const Graph* graph, Node* node, const char* key,
                    const std::vector<double>& values) {
  std::vector<std::string> items;
  for (const double value : values) items.push_back(detail::realText(value));
  setAttr(graph, node, key, detail::listText(graph, items));
}

// ---- shapes, users, parameters -----------------------------------------------------------------

namespace detail {

/// The entry of an output in __ext_shape__ or __ext_dtype__; "" if there is none.
inline std::string inferredEntry(const NodeEntry& value, const char* key) {
  std::string text;
  if (value.entry < 0 || !AttributeTexts(value.node->attrs).get(key, &text)) return std::string();
  try {
    return listEntry(text, static_cast<unsigned>(value.entry), key);
  } catch (const std::out_of_range&) {
    return std::string();
  }
}

/// Whether an operator of MXNet or NNVM takes the data of a layer at its first input.
inline bool takesDataFirst(const std::string& op) {
  static const char* const ops[] = {"Convolution",
                                    "Convolution_v1",
                                    "Deconvolution",
                                    "FullyConnected",
                                    "BatchNorm",
                                    "BatchNorm_v1",
                                    "LayerNorm",
                                    "GroupNorm",
                                    "InstanceNorm",
                                    "Embedding",
                                    "RNN",
                                    "SoftmaxOutput",
                                    "_contrib_SyncBatchNorm",
                                    "_contrib_BatchNormWithReLU",
                                    "_npx_convolution",
                                    "_npx_deconvolution",
                                    "_npx_fully_connected",
                                    "_npx_batch_norm",
                                    "_npx_layer_norm",
                                    "_npx_group_norm",
                                    "_npx_embedding",
                                    "_npx_rnn",
                                    "conv2d",
                                    "conv2d_transpose",
                                    "dense",
                                    "batch_norm"};
  for (const char* known : ops) {
    if (op == known) return true;
  }
  return false;
}

/// Whether a variable is an input of the model, as far as it or the operators that take it tell.
inline bool isModelInput(const Node& node, const std::string& dialect) {
  if (dialect == "ark") return true;  // its files have no weights
  std::string place;
  const bool placed = AttributeTexts(node.attrs).get("__id__", &place);
  if (dialect == "onnx") {
    return (placed && place.compare(0, 6, "input.") == 0) || node.attrs.count("__default__") != 0;
  }
  if (dialect == "dlprim") return placed && place.compare(0, 7, "inputs[") == 0;
  for (const NodeEntry& use : node.outputs) {
    if (use.entry == 0 && takesDataFirst(use.node->op)) return true;
  }
  return false;
}

}  // namespace detail

inline ValueShape shapeOf(const NodeEntry& value) {
  if (value.node == nullptr) return ValueShape();
  const Node& node = *value.node;
  if (node.tensor != nullptr) return ValueShape(node.tensor->shape);
  std::string text = detail::inferredEntry(value, MX_STR_SHAPE);
  int64_t least = 0;
  if ((text.empty() || text[0] != '[') && node.op == "null") {
    text = textAttr(&node, "__shape__", "");
    least = 1;  // variables have 0 for an unknown extent
  }
  std::vector<std::string> items;
  if (text.empty() || (text[0] != '[' && text[0] != '(') || !detail::readList(text, &items)) {
    return ValueShape();
  }
  std::vector<int64_t> extents(items.size());
  for (std::size_t pos = 0; pos < items.size(); ++pos) {
    if (!detail::readInteger(items[pos], &extents[pos]) || extents[pos] < least) extents[pos] = -1;
  }
  return ValueShape(extents);
}

inline MXDType typeOf(const NodeEntry& value) {
  if (value.node == nullptr) return kUNSET;
  if (value.node->tensor != nullptr) return value.node->tensor->dtype;
  int64_t code = -1;
  std::string text = detail::inferredEntry(value, MX_STR_DTYPE);
  if (text.empty() && value.node->op == "null") text = textAttr(value.node, "__dtype__", "");
  const bool known = detail::readInteger(text, &code) && code >= kFloat32 && code <= kBfloat16;
  return known ? static_cast<MXDType>(code) : kUNSET;
}

inline bool isOutput(const Graph* graph, const NodeEntry& value) {
  for (const NodeEntry& head : graph->outputs) {
    if (head.node == value.node && head.entry == value.entry) return true;
  }
  return false;
}

inline bool isOutput(const Graph* graph, const Node* node) {
  for (const NodeEntry& head : graph->outputs) {
    if (head.node == node) return true;
  }
  return false;
}

inline std::vector<NodeEntry> users(const NodeEntry& value) {
  std::vector<NodeEntry> uses;
  if (value.node == nullptr) return uses;
  for (const NodeEntry& use : value.node->outputs) {
    const NodeEntry& input = use.node->inputs.at(static_cast<std::size_t>(use.entry));
    if (input.entry == value.entry) uses.push_back(use);
  }
  return uses;
}

inline Node* onlyUser(const Graph* graph, const NodeEntry& value) {
  const std::vector<NodeEntry> uses = users(value);
  return uses.size() == 1 && !isOutput(graph, value) ? uses[0].node : nullptr;
}

inline bool isParameter(const Node* node) {
  if (node == nullptr || node->op != "null") return false;
  const PassResource* const resource = detail::RunningPass::resource();
  const Graph* const graph = resource == nullptr ? nullptr : resource->_graph();
  std::string dialect;  // unknown in MXNet, and outside a pass
  if (graph != nullptr) detail::GraphAttributeTexts::getString(graph->attrs, "dialect", &dialect);
  if (detail::isModelInput(*node, dialect)) return false;
  if (dialect == "onnx" && (node->name == "__absent__" || node->attrs.count("__opaque__") != 0)) {
    return true;
  }
  if (dialect == "dlprim" && node->attrs.count("__shape__") == 0) return true;
  return node->tensor != nullptr || (resource != nullptr && resource->_isUnlent(node));
}

inline Node* addParameter(Graph* graph, const std::string& name, const std::vector<int64_t>& shape,
                          MXDType type, const MXContext& ctx) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr) {
    throw std::runtime_error("addParameter of " + detail::quoted(name) +
                             ": parameters can be added only while a pass runs");
  }
  const std::string free = resource->_freeName(*graph, name);
  MXTensor* tensor = resource->alloc_arg(free, shape, ctx, type);
  Node* node = graph->addNode(free, "null");
  detail::declareOutputs(node, 1);
  node->tensor = tensor;
  graph->inputs.push_back(node);
  return node;
}

// ---- declarations ------------------------------------------------------------------------------

/// The declaration of one option of a pass.
struct OptionDeclaration {
  std::string name;
  OptionValue preset;
  std::string description;
  std::vector<OptionValue> choices;  ///< the only values, if there are any
  std::vector<OptionValue> range;    ///< the smallest and the largest number, or nothing
};

/// The declaration of a pass, set by the functions of CustomPass.
struct PassDeclaration {
  explicit PassDeclaration(const char* pass_name) : name(pass_name) {}
  std::string name;
  std::string description;
  std::vector<std::string> dialects;
  std::vector<OptionDeclaration> options;
  bool any_options = false;
  bool needs_weights = true;
  bool weights_on_demand = false;
  bool needs_shapes = true;
  bool exact = false;
  bool enters_functions = false;
  std::vector<std::string> triggers;
  std::string cost = "nodes";
  std::vector<std::string> pipelines;
  std::string after;
  std::vector<std::pair<std::string, OptionValue> > pipeline_options;
  std::vector<std::pair<std::string, OptionValue> > rounding_options;
  typedPass_t body = nullptr;
};

namespace detail {

/// Installed by passes with declarations; a library without any does not contain it.
struct DeclaredPasses {
  /// Returns the declarations as JSON.
  const char* (*describe)();
  /// Runs a body with declared options. Returns false if `function` is none.
  bool (*run)(graphPass_t function, const char* name, Graph* graph, const options_map_t& options,
              MXReturnValue* result);
  static DeclaredPasses* get() {
    static DeclaredPasses installed = {nullptr, nullptr};
    return &installed;
  }
};

/// The form in which hosts know a body with declared options. Only runTyped may call it.
inline graphPass_t opaqueBody(typedPass_t body) {
  return reinterpret_cast<graphPass_t>(reinterpret_cast<void (*)()>(body));
}

inline bool runTyped(graphPass_t function, const char* name, Graph* graph,
                     const options_map_t& options, MXReturnValue* result) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  const PassDeclaration* found = nullptr;
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& each = declared->get(pos);
    if (each.body == nullptr || opaqueBody(each.body) != function) continue;
    if (found == nullptr || each.name == name) found = &each;
  }
  if (found == nullptr) return false;
  *result = found->body(graph, OptionValues(*found, options));
  return true;
}

inline void addDefaults(const char* name, options_map_t* options);

inline bool runDeclared(graphPass_t function, const char* name, Graph* graph,
                        const options_map_t& options, MXReturnValue* result) {
  if (runTyped(function, name, graph, options, result)) return true;
  options_map_t all(options);
  addDefaults(name, &all);
  *result = function(graph, all);
  return true;
}

inline void appendJson(const std::string& text, TextBuffer* out) {
  appendString(text.data(), text.size(), false, out);
}

inline void appendJson(const std::vector<OptionValue>& values, TextBuffer* out);

inline void appendJson(const OptionValue& value, TextBuffer* out) {
  if (value.is_list) return appendJson(value.items, out);
  switch (value.kind) {
    case OptionValue::kBoolean:
      return out->append(std::string(value.integer != 0 ? "true" : "false"));
    case OptionValue::kInteger:
      return out->append(printed("%lld", static_cast<long long>(value.integer)));
    case OptionValue::kReal:
      return out->append(shortestText(value.real));
    case OptionValue::kText:
      break;
  }
  appendJson(value.text, out);
}

inline void appendJson(const std::vector<OptionValue>& values, TextBuffer* out) {
  out->push_back('[');
  for (const OptionValue& item : values) {
    if (&item != &values[0]) out->push_back(',');
    appendJson(item, out);
  }
  out->push_back(']');
}

template <typename Value>
std::string jsonOf(const Value& value) {
  TextBuffer text;
  appendJson(value, &text);
  return text.str();
}

/// Adds the declared defaults of a pass to the options that the caller gave, in the same form.
__attribute__((__cold__)) inline void addDefaults(const char* name, options_map_t* options) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    if (pass.name != name) continue;
    for (const OptionDeclaration& option : pass.options) {
      const OptionValue& preset = option.preset;
      std::string text = preset.kind == OptionValue::kText ? preset.text : jsonOf(preset);
      if (preset.kind == OptionValue::kBoolean) text = preset.integer != 0 ? "True" : "False";
      if (preset.is_list) {
        text = "[";
        for (const OptionValue& item : preset.items) {
          text += (text.size() == 1 ? "" : ", ") + jsonOf(item);
        }
        text += "]";
      }
      options->emplace(option.name, text);
    }
  }
}

inline const char* kindName(OptionValue::Kind kind) {
  static const char* const names[] = {"boolean", "integer", "real", "text"};
  return names[kind];
}

/// Appends a member behind others of an object. Cold, like other functions that run once in a
/// library or a call: they are compiled for size.
__attribute__((__cold__)) inline void appendMember(const char* key, const std::string& json,
                                                   TextBuffer* out) {
  out->append(printed(",\"%s\":%s", key, json.c_str()));
}

__attribute__((__cold__)) inline void appendFlag(const char* key, bool value, TextBuffer* out) {
  appendMember(key, value ? "true" : "false", out);
}

__attribute__((__cold__)) inline std::string jsonOf(const std::vector<std::string>& texts) {
  TextBuffer text;
  appendTexts(texts, &text);
  return text.str();
}

/// The options that a pass has in a pipeline. Of those for one key, the last counts.
__attribute__((__cold__)) inline std::string jsonOf(
    const std::vector<std::pair<std::string, OptionValue> >& options) {
  TextBuffer text;
  text.push_back('{');
  for (const auto& option : options) {
    if (&option != &options[0]) text.push_back(',');
    appendJson(option.first, &text);
    text.push_back(':');
    appendJson(option.second, &text);
  }
  text.push_back('}');
  return text.str();
}

__attribute__((__cold__)) inline const char* describePasses() {
  TextBuffer out;
  out.append("{\"version\":1,\"passes\":[");
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    if (pos > 0) out.push_back(',');
    out.append("{\"name\":");
    appendJson(pass.name, &out);
    appendMember("description", jsonOf(pass.description), &out);
    appendFlag("any_options", pass.any_options, &out);
    appendFlag("needs_weights", pass.needs_weights, &out);
    if (pass.weights_on_demand) appendFlag("weights_on_demand", true, &out);
    appendFlag("needs_shapes", pass.needs_shapes, &out);
    appendMember("dialects", jsonOf(pass.dialects), &out);
    out.append(",\"options\":[");
    for (const OptionDeclaration& option : pass.options) {
      if (&option != &pass.options[0]) out.push_back(',');
      out.append("{\"name\":");
      appendJson(option.name, &out);
      appendMember("description", jsonOf(option.description), &out);
      appendMember("kind", jsonOf(std::string(kindName(option.preset.kind))), &out);
      appendFlag("list", option.preset.is_list, &out);
      appendMember("default", jsonOf(option.preset), &out);
      appendMember("choices", jsonOf(option.choices), &out);
      appendMember("range", jsonOf(option.range), &out);
      out.push_back('}');
    }
    out.push_back(']');
    if (pass.exact) appendFlag("exact", true, &out);
    if (pass.enters_functions) appendFlag("enters_functions", true, &out);
    if (!pass.triggers.empty()) appendMember("triggers", jsonOf(pass.triggers), &out);
    if (!pass.pipelines.empty()) {
      out.append(",\"joins\":{\"pipelines\":");
      out.append(jsonOf(pass.pipelines));
      appendMember("after", jsonOf(pass.after), &out);
      appendMember("cost", jsonOf(pass.cost), &out);
      appendMember("options", jsonOf(pass.pipeline_options), &out);
      appendMember("rounding", jsonOf(pass.rounding_options), &out);
      out.push_back('}');
    }
    out.push_back('}');
  }
  out.append("]}");
  static const std::string& text = *new std::string(out.str());
  return text.c_str();
}

/// Reads an option's text as a value of the declared kind. False for other text.
inline bool readOption(OptionValue::Kind kind, const std::string& text, OptionValue* value) {
  bool flag = false;
  value->kind = kind;
  switch (kind) {
    case OptionValue::kBoolean:
      if (!readBoolean(text, &flag)) return false;
      value->integer = flag ? 1 : 0;
      return true;
    case OptionValue::kInteger:
      return readInteger(text, &value->integer);
    case OptionValue::kReal:
      return readReal(text, &value->real);
    case OptionValue::kText:
      break;
  }
  value->text = text;
  return true;
}

inline double numberOf(const OptionValue& value) {
  return value.kind == OptionValue::kReal ? value.real : static_cast<double>(value.integer);
}

/// Whether choices and range of an option accept a value.
inline bool accepts(const OptionDeclaration& option, const OptionValue& value) {
  const double number = numberOf(value);
  if (!option.range.empty() &&
      !(number >= numberOf(option.range[0]) && number <= numberOf(option.range[1]))) {
    return false;
  }
  for (const OptionValue& choice : option.choices) {
    if (value.kind == OptionValue::kText ? choice.text == value.text : numberOf(choice) == number) {
      return true;
    }
  }
  return option.choices.empty();
}

/// Returns the value that a text gives to an option. Throws std::invalid_argument.
__attribute__((__cold__)) inline OptionValue optionValue(const OptionDeclaration& option,
                                                         const std::string& text) {
  const OptionValue::Kind kind = option.preset.kind;
  OptionValue value(false);
  value.kind = kind;
  value.is_list = option.preset.is_list;
  std::vector<std::string> texts(1, text);
  bool valid = true;
  if (value.is_list) {
    texts.clear();
    valid = readList(text, &texts);
  }
  for (const std::string& each : texts) {
    OptionValue item(false);
    valid = valid && readOption(kind, each, &item) && accepts(option, item);
    if (value.is_list) {
      value.items.push_back(item);
    } else {
      value = item;
    }
  }
  if (valid) return value;
  std::string wanted = value.is_list ? std::string("a list of ") : std::string();
  wanted += kindName(kind);
  if (!option.choices.empty()) wanted += " of " + jsonOf(option.choices);
  if (!option.range.empty()) wanted += " in the range " + jsonOf(option.range);
  throw std::invalid_argument("option " + detail::quoted(option.name) + " takes " + wanted +
                              ", not " + detail::quoted(text));
}

}  // namespace detail

inline OptionValues::OptionValues(const PassDeclaration& declaration, const options_map_t& given) {
  std::string names;
  for (const OptionDeclaration& option : declaration.options) {
    names += (names.empty() ? "" : ", ") + option.name;
    const auto found = given.find(option.name);
    values_.emplace(option.name, found == given.end() ? option.preset
                                                      : detail::optionValue(option, found->second));
  }
  for (const auto& pair : given) {
    if (values_.count(pair.first) == 0 && !declaration.any_options) {
      throw std::invalid_argument("there is no option " + detail::quoted(pair.first) + " (" +
                                  (names.empty() ? "the pass has none" : "there are: " + names) +
                                  ")");
    }
    given_.insert(pair);
  }
}

inline const OptionValue& OptionValues::find(const std::string& name, int kind,
                                             bool is_list) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error("the pass declares no option " + detail::quoted(name));
  }
  if (found->second.kind != kind || found->second.is_list != is_list) {
    throw std::logic_error("option " + detail::quoted(name) + " is declared as " +
                           (found->second.is_list ? "a list of " : "") +
                           detail::kindName(found->second.kind));
  }
  return found->second;
}

inline bool OptionValues::boolean(const std::string& name) const {
  return find(name, OptionValue::kBoolean, false).integer != 0;
}
inline int64_t OptionValues::integer(const std::string& name) const {
  return find(name, OptionValue::kInteger, false).integer;
}
inline double OptionValues::real(const std::string& name) const {
  return find(name, OptionValue::kReal, false).real;
}
inline const std::string& OptionValues::text(const std::string& name) const {
  return find(name, OptionValue::kText, false).text;
}
inline std::vector<bool> OptionValues::booleans(const std::string& name) const {
  std::vector<bool> values;
  for (const OptionValue& item : find(name, OptionValue::kBoolean, true).items) {
    values.push_back(item.integer != 0);
  }
  return values;
}
inline std::vector<int64_t> OptionValues::integers(const std::string& name) const {
  std::vector<int64_t> values;
  for (const OptionValue& item : find(name, OptionValue::kInteger, true).items) {
    values.push_back(item.integer);
  }
  return values;
}
inline std::vector<double> OptionValues::reals(const std::string& name) const {
  std::vector<double> values;
  for (const OptionValue& item : find(name, OptionValue::kReal, true).items) {
    values.push_back(item.real);
  }
  return values;
}
inline std::vector<std::string> OptionValues::texts(const std::string& name) const {
  std::vector<std::string> values;
  for (const OptionValue& item : find(name, OptionValue::kText, true).items) {
    values.push_back(item.text);
  }
  return values;
}
inline bool OptionValues::given(const std::string& name) const { return given_.count(name) != 0; }

inline PassDeclaration& CustomPass::declare() {
  if (declaration == nullptr) {
    declaration = &Registry<PassDeclaration>::get()->add(name);
    *detail::DeclaredPasses::get() = {&detail::describePasses, &detail::runDeclared};
  }
  return *declaration;
}

inline CustomPass& CustomPass::setBody(graphPass_t function) {
  pass = function;
  return *this;
}

inline CustomPass& CustomPass::setBody(typedPass_t function) {
  declare().body = function;
  pass = detail::opaqueBody(function);
  return *this;
}

inline CustomPass& CustomPass::describe(const char* text) {
  declare().description = text;
  return *this;
}

inline CustomPass& CustomPass::dialects(std::initializer_list<const char*> names) {
  return dialects(std::vector<std::string>(names.begin(), names.end()));
}

inline CustomPass& CustomPass::dialects(const std::vector<std::string>& names) {
  declare().dialects = names;
  return *this;
}

inline CustomPass& CustomPass::option(const char* key, const OptionValue& preset,
                                      const char* text) {
  declare().options.push_back(OptionDeclaration{key, preset, text, {}, {}});
  return *this;
}

inline CustomPass& CustomPass::option(const char* key, const OptionValue& preset, const char* text,
                                      std::initializer_list<OptionValue> choices) {
  declare().options.push_back(OptionDeclaration{key, preset, text, choices, {}});
  return *this;
}

inline CustomPass& CustomPass::option(const char* key, const OptionValue& preset, const char* text,
                                      const OptionValue& low, const OptionValue& high) {
  declare().options.push_back(OptionDeclaration{key, preset, text, {}, {low, high}});
  return *this;
}

inline CustomPass& CustomPass::anyOptions() {
  declare().any_options = true;
  return *this;
}

inline CustomPass& CustomPass::needsWeights(bool wanted) {
  declare().needs_weights = wanted;
  return *this;
}

inline CustomPass& CustomPass::weightsOnDemand() {
  declare().weights_on_demand = true;
  return *this;
}

inline CustomPass& CustomPass::needsShapes(bool wanted) {
  declare().needs_shapes = wanted;
  return *this;
}

inline CustomPass& CustomPass::exact() {
  declare().exact = true;
  return *this;
}

inline CustomPass& CustomPass::entersFunctions() {
  declare().enters_functions = true;
  return *this;
}

inline CustomPass& CustomPass::triggers(const std::vector<std::string>& ops) {
  declare().triggers = ops;
  return *this;
}

inline CustomPass& CustomPass::cost(const char* grows_with) {
  declare().cost = grows_with;
  return *this;
}

inline CustomPass& CustomPass::joins(const char* pipeline, const char* after) {
  declare().pipelines.push_back(pipeline);
  declare().after = after;
  return *this;
}

inline CustomPass& CustomPass::inPipelines(const char* key, const OptionValue& value) {
  declare().pipeline_options.emplace_back(key, value);
  return *this;
}

inline CustomPass& CustomPass::whenRounding(const char* key, const OptionValue& value) {
  declare().rounding_options.emplace_back(key, value);
  return *this;
}

// ---- graphs as plain arrays: reading and writing -----------------------------------------------

namespace detail {

inline char* allocateLarge(const FlatMemory& memory, std::size_t size) {
  void* const place = memory.allocate(size);
  if (place == nullptr) throw std::bad_alloc();
  return static_cast<char*>(place);
}

/// The nodes of a graph that a host described, in one piece of memory. Nodes that a pass
/// deletes stay in it. Their packed attributes are the host's as long as nobody replaces them.
class NodeMemory {
 public:
  NodeMemory(const FlatMemory& memory, std::size_t count)
      : memory_(memory), begin_(allocateLarge(memory, (count + 1) * kStride)), next_(begin_) {}
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  ~NodeMemory() { memory_.release(begin_); }
  /// `packed`: its attributes, or null.
  Node* make(const uint32_t* packed) {
    Node* const node = ::new (markNode(next_, kLent)) Node();
    next_ += kStride;
    if (packed != nullptr) AttributeTexts::lendPacked(packed, &node->attrs);
    return node;
  }
  /// Whether `nodes` is a prefix of the nodes in the order of their making.
  bool beginsWith(const std::vector<Node*>& nodes) const {
    std::size_t pos = 0;
    while (pos < nodes.size() && reinterpret_cast<const char*>(nodes[pos]) == place(pos)) ++pos;
    return pos == nodes.size();
  }
  /// The place of node number `pos`.
  const char* place(std::size_t pos) const { return begin_ + kNodeMark + pos * kStride; }
  static constexpr std::size_t kStride = kNodeMark + sizeof(Node);

 private:
  const FlatMemory memory_;
  char* begin_;
  char* next_;
};

/// An array of structs of any one kind, without gaps in them.
class FlatArray {
 public:
  explicit FlatArray(const FlatMemory* memory)
      : memory_(memory), data_(nullptr), size_(0), room_(0), shown_(nullptr), shown_size_(0) {}
  FlatArray(const FlatArray&) = delete;
  FlatArray& operator=(const FlatArray&) = delete;
  ~FlatArray() {
    if (data_ != nullptr) memory_->release(data_);
  }
  void reserve(std::size_t bytes) {
    char* moved = allocateLarge(*memory_, bytes);
    if (size_ != 0) memcpy(moved, data_ != nullptr ? data_ : shown_, size_);
    if (data_ != nullptr) memory_->release(data_);
    data_ = moved;
    room_ = bytes;
  }
  /// The array is a host's as long as it gets the same items. Nothing may have been added yet.
  template <typename Item>
  void follow(const Item* items, uint64_t count) {
    shown_ = reinterpret_cast<const char*>(items);
    shown_size_ = static_cast<std::size_t>(count) * sizeof(Item);
  }
  template <typename Item>
  void push_back(const Item& item) {
    if (data_ == nullptr && shown_size_ - size_ >= sizeof(Item)) {
      if (memcmp(shown_ + size_, &item, sizeof(Item)) == 0) {
        size_ += sizeof(Item);
        return;
      }
      reserve(shown_size_ + 1024);
    }
    if (data_ == nullptr || room_ - size_ < sizeof(Item)) {
      reserve(2 * (std::max)(size_, std::size_t(512)));
    }
    memcpy(data_ + size_, &item, sizeof(Item));
    size_ += sizeof(Item);
  }
  template <typename Item>
  uint64_t get(const Item** items) const {
    *items = reinterpret_cast<const Item*>(data_ != nullptr ? data_ : shown_);
    return size_ / sizeof(Item);
  }
  std::size_t size() const { return size_; }

 private:
  const FlatMemory* memory_;
  char* data_;
  std::size_t size_;
  std::size_t room_;
  const char* shown_;  // the host's
  std::size_t shown_size_;
};

/// Positions of the nodes of a graph: by their addresses, if they still lie in the order in which a
/// host described them, otherwise by a table.
class FlatPositions {
 public:
  FlatPositions(const std::vector<Node*>& nodes, const NodeMemory* memory)
      : begin_(memory != nullptr && memory->beginsWith(nodes) ? memory->place(0) : nullptr),
        end_(begin_ + (begin_ == nullptr ? 0 : nodes.size() * NodeMemory::kStride)),
        table_(nodes.data(), begin_ == nullptr ? nodes.size() : 0) {}
  int64_t find(const Node* node) const {
    const char* const place = reinterpret_cast<const char*>(node);
    if (begin_ == nullptr) return table_.find(node);
    if (std::less<const char*>()(place, begin_) || !std::less<const char*>()(place, end_)) {
      return -1;
    }
    return (place - begin_) / static_cast<std::ptrdiff_t>(NodeMemory::kStride);
  }

 private:
  const char* begin_;
  const char* end_;
  NodeTable table_;
};

/// A graph in the flat form: the arrays, and the texts that are not the graph's own.
struct FlatStore {
  /// `large`: the host's.
  explicit FlatStore(const FlatMemory& large)
      : graphs_(&model.memory),
        nodes_(&model.memory),
        edges_(&model.memory),
        control_deps_(&model.memory),
        pairs_(&model.memory) {
    model.memory = large;
  }

  FlatModel model = {};
  Owned<NodeMemory> memory;  // of the graph's nodes
  Owned<Graph> graph;        // if it belongs to this object

  /// Sets `model`. Throws GraphStructureError for edges to nodes outside their graph, and for
  /// subgraphs that are null or belong to two nodes. `root` is borrowed.
  /// `shown`: what `graph` was made of, if it was.
  void flatten(const Graph& root, const FlatModel* shown = nullptr);
  /// Sets `graph` and returns it.
  Graph* unflatten(const FlatModel& shown);

 private:
  void add(const Graph& level);
  void addNode(const Node& node, const FlatPositions& positions, const FlatNode* shown);
  static uint32_t found(const Node& node, std::size_t pos, int64_t position) {
    if (position < 0) dependency(node, pos, NodeTable(nullptr, 0));  // says what is wrong
    return static_cast<uint32_t>(position);
  }
  FlatText keepText(const std::string& text, const FlatText* shown);
  const uint32_t* keepPacked(const NodeAttributes& attributes, std::size_t* words);
  void addPair(const JsonReader::Slice& key, const JsonReader::Slice& text) {
    pairs_.push_back(FlatPair{{key.data, key.size}, {text.data, text.size}});
    ++num_pairs_;
  }
  void addMembers(const JsonMembers& members);

  FlatArray graphs_;
  FlatArray nodes_;
  FlatArray edges_;
  FlatArray control_deps_;
  FlatArray pairs_;
  uint32_t num_pairs_ = 0;
  const FlatNode* shown_ = nullptr;  // what the host showed at the place of the next node
  const FlatNode* shown_end_ = nullptr;
  TextBuffer texts_;
  GraphTable levels_;  // the graphs of the nodes so far
};

/// The texts are copied: members may be printed for this call alone.
inline void FlatStore::addMembers(const JsonMembers& members) {
  for (const auto& member : members) {
    const std::size_t key_size = member.first.size();
    const std::size_t size = member.second.size();
    char* const copy = texts_.room(key_size + size);
    member.first.copy(copy, key_size);
    member.second.copy(copy + key_size, size);
    texts_.advance(key_size + size);
    addPair(JsonReader::Slice{copy, key_size}, JsonReader::Slice{copy + key_size, size});
  }
}

/// A host copies the texts, so that a library finds them one behind the other. A library names
/// those that it was shown as the host's own.
inline FlatText FlatStore::keepText(const std::string& text, const FlatText* shown) {
  const std::size_t size = text.size();
  if (shown != nullptr && shown->size == size && memcmp(shown->data, text.data(), size) == 0) {
    return *shown;
  }
  if (memory.get() != nullptr) return FlatText{text.data(), size};
  char* const copy = texts_.room(size);
  memcpy(copy, text.data(), size);
  texts_.advance(size);
  return FlatText{copy, size};
}

/// The host reads in turn: attributes that it lent may be gone when it comes to another place.
inline const uint32_t* FlatStore::keepPacked(const NodeAttributes& attributes, std::size_t* words) {
  const AttributeTexts texts(attributes);
  const uint32_t* const packed = texts.packed(words);
  if (memory.get() == nullptr || packed == nullptr || !texts.areLent()) return packed;
  const std::size_t size = *words * sizeof(uint32_t);
  char* text = texts_.room(size + sizeof(uint32_t));
  const std::size_t beyond = reinterpret_cast<uintptr_t>(text) % sizeof(uint32_t);
  if (beyond != 0) text += sizeof(uint32_t) - beyond;
  memcpy(text, packed, size);
  texts_.advance(size + sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(text);
}

inline void FlatStore::addNode(const Node& node, const FlatPositions& positions,
                               const FlatNode* shown) {
  FlatNode flat = {};
  flat.op = keepText(node.op, shown == nullptr ? nullptr : &shown->op);
  flat.name = keepText(node.name, shown == nullptr ? nullptr : &shown->name);
  if (shown != nullptr && shown->packed != nullptr &&
      AttributeTexts(node.attrs).areStill(shown->packed)) {
    flat.packed = shown->packed;  // what nobody changed is the host's own, too
    flat.packed_words = shown->packed_words;
  } else {
    std::size_t words = 0;
    flat.packed = keepPacked(node.attrs, &words);
    flat.packed_words = static_cast<uint32_t>(words);
  }
  model.packed_words += flat.packed_words;
  num_pairs_ = 0;
  if (flat.packed == nullptr) {
    const AttributeTexts texts(node.attrs);
    texts.visitPresent([&](const JsonReader::Slice& key, const JsonReader::Slice& text) {
      if (!texts.hasTypes() || !isOfTypes(key.data, key.size)) addPair(key, text);
    });
  }
  flat.num_attrs = num_pairs_;
  if (!node.extra.empty()) addMembers(node.extra);
  flat.num_extra = num_pairs_ - flat.num_attrs;
  flat.num_inputs = static_cast<uint32_t>(node.inputs.size());
  flat.num_control_deps = static_cast<uint32_t>(node.control_deps.size());
  flat.num_subgraphs = static_cast<uint32_t>(node.subgraphs.size());
  flat.num_outputs = node.num_outputs;
  flat.outputs_declared = node.num_outputs > 0 && !hasOutput(node, node.num_outputs) ? 1 : 0;
  nodes_.push_back(flat);
  for (std::size_t pos = 0; pos < flat.num_inputs; ++pos) {
    const NodeEntry& input = node.inputs[pos];
    edges_.push_back(
        FlatEdge{found(node, pos, positions.find(input.node)), input.entry, input.version});
  }
  for (std::size_t pos = 0; pos < flat.num_control_deps; ++pos) {
    control_deps_.push_back(
        found(node, flat.num_inputs + pos, positions.find(node.control_deps[pos])));
  }
  for (const Graph* nested : node.subgraphs) {
    if (nested == nullptr) failGraph("a subgraph of node '%s' is null", node.name.c_str());
    if (!levels_.add(nested)) {
      failGraph("a subgraph of node '%s' also belongs to another node", node.name.c_str());
    }
  }
}

inline void FlatStore::add(const Graph& level) {
  const FlatPositions positions(level.nodes, memory.get());
  for (std::size_t pos = 0; pos < level.nodes.size(); ++pos) {
    prefetchNode(level.nodes, pos, &Node::op);
    if (memory.get() == nullptr && pos + 16 < level.nodes.size()) {
      __builtin_prefetch(&level.nodes[pos + 16]->attrs);
      AttributeTexts(level.nodes[pos + 6]->attrs).prefetch();
    }
    addNode(*level.nodes[pos], positions, shown_ == shown_end_ ? nullptr : shown_++);
  }
  for (const NodeEntry& head : level.outputs) {
    const int64_t position = positions.find(head.node);
    if (position < 0) failGraph("an output of the graph comes from a node that is not in it");
    edges_.push_back(FlatEdge{static_cast<uint32_t>(position), head.entry, head.version});
  }
  num_pairs_ = 0;
  JsonMembers printed;
  addMembers(GraphAttributeTexts::list(level.attrs, &printed));
  graphs_.push_back(FlatGraph{level.nodes.size(), level.outputs.size(), num_pairs_});
}

inline void FlatStore::flatten(const Graph& root, const FlatModel* shown) {
  if (shown != nullptr) {
    shown_ = shown->nodes;
    shown_end_ = shown_ + shown->graphs[0].num_nodes;
    nodes_.follow(shown->nodes, shown->num_nodes);
    edges_.follow(shown->edges, shown->num_edges);
    control_deps_.follow(shown->control_deps, shown->num_control_deps);
  } else {
    texts_.room(32 * root.nodes.size());
    nodes_.reserve((root.nodes.size() + 8) * sizeof(FlatNode));
    edges_.reserve((2 * root.nodes.size() + 8) * sizeof(FlatEdge));
  }
  levels_.add(&root);
  for (std::size_t pos = 0; pos < levels_.size(); ++pos) {
    add(*levels_[pos]);
    shown_ = shown_end_;
  }
  model.version = PASSLIB_FLAT_VERSION;
  model.size = sizeof(FlatModel);
  model.num_graphs = graphs_.get(&model.graphs);
  model.num_nodes = nodes_.get(&model.nodes);
  model.num_edges = edges_.get(&model.edges);
  model.num_control_deps = control_deps_.get(&model.control_deps);
  model.num_pairs = pairs_.get(&model.pairs);
  model.owner = this;
}

/// Makes the graph that a host describes, which is sound.
class FlatReader {
 public:
  /// `memory`: for all nodes.
  FlatReader(const FlatModel& model, NodeMemory* memory)
      : memory_(memory),
        node_(model.nodes),
        edge_(model.edges),
        dep_(model.control_deps),
        pair_(model.pairs) {}

  /// `root`: an empty graph.
  void read(const FlatGraph* level, const FlatGraph* end, Graph* root) {
    levels_.push_back(root);
    for (std::size_t pos = 0; level != end; ++level, ++pos) readLevel(*level, levels_[pos]);
  }

 private:
  static JsonReader::Slice sliceOf(const FlatText& text) {
    return JsonReader::Slice{text.data, static_cast<std::size_t>(text.size)};
  }
  static std::unordered_map<std::string, std::string>& texts(Node* node) { return node->attrs; }
  static void assign(const FlatText& text, std::string* target) {
    target->assign(text.data, static_cast<std::size_t>(text.size));
  }
  /// Takes pairs with JSON, which the host wrote as JsonMembers wants it.
  void takeMembers(uint64_t count, JsonMembers* members) {
    for (; count != 0; --count, ++pair_) {
      members->emplace_back(sliceOf(pair_->key).str(), sliceOf(pair_->text).str());
    }
  }

  void readLevel(const FlatGraph& level, Graph* graph) {
    const FlatNode* const first = node_;
    const std::size_t count = static_cast<std::size_t>(level.num_nodes);
    PlainList<uint32_t> uses;
    uses.resize(count);
    const FlatEdge* ahead = edge_;
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth) ++uses[(ahead++)->node];
    }
    graph->nodes.resize(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      Node* const node = graph->nodes[pos] = memory_->make(node_->packed);
      readNode(*node_++, uses[pos], node);
      uses[pos] = 0;
      if (node->op == "null") graph->inputs.push_back(node);
    }
    graph->outputs.resize(static_cast<std::size_t>(level.num_outputs));
    linkNodes(first, uses.data(), &edge_, &dep_, graph);
    JsonMembers attributes;
    takeMembers(level.num_attrs, &attributes);
    GraphAttributeTexts::set(&attributes, &graph->attrs);
  }

  void readNode(const FlatNode& from, uint32_t uses, Node* node) {
    assign(from.op, &node->op);
    assign(from.name, &node->name);
    // Every list gets its room at once, next to its node: walks read both.
    node->inputs.resize(from.num_inputs);
    node->outputs.resize(uses);
    for (uint32_t nth = 0; nth < from.num_attrs; ++nth, ++pair_) {
      setText(sliceOf(pair_->key), sliceOf(pair_->text), &texts(node));
    }
    takeMembers(from.num_extra, &node->extra);
    if (from.num_subgraphs != 0) node->subgraphs.resize(from.num_subgraphs);
    for (Graph*& nested : node->subgraphs) {
      nested = new Graph();
      levels_.push_back(nested);
    }
    node->num_outputs = from.num_outputs;
    if (from.outputs_declared != 0) declareOutputs(node, from.num_outputs);
  }

  NodeMemory* memory_;
  PlainList<Graph*> levels_;  // those of the nodes read so far
  const FlatNode* node_;      // what comes next
  const FlatEdge* edge_;
  const uint32_t* dep_;
  const FlatPair* pair_;
};

inline Graph* FlatStore::unflatten(const FlatModel& shown) {
  memory.reset(new NodeMemory(model.memory, static_cast<std::size_t>(shown.num_nodes)));
  graph.reset(new Graph());
  FlatReader(shown, memory.get()).read(shown.graphs, shown.graphs + shown.num_graphs, graph.get());
  return graph.get();
}

}  // namespace detail

// ---- messages and exceptions at the C functions ------------------------------------------------

namespace detail {

#if defined(__GLIBCXX__)
/// Where a thread that is being ended unwinds through, it must not be stopped.
#define PASSLIB_RETHROW_END_OF_THREAD \
  catch (abi::__forced_unwind&) {     \
    throw;                            \
  }
#else
#define PASSLIB_RETHROW_END_OF_THREAD
#endif

/// The text of an exception, also of one that has none.
inline std::string textOf(const std::exception& error) {
  const char* text = error.what();
  return text == nullptr ? std::string("an exception without text") : std::string(text);
}

template <typename Body>
int runBody(void* body) {
  return (*static_cast<Body*>(body))();
}

/// Runs run(body), the body of an entry point. Any exception becomes a message.
inline int runGuarded(const char* what, int (*run)(void*), void* body) {
  try {
    return run(body);
  } catch (const std::exception& error) {
    MXerrorMsgs::get()->add(printed("%s: %s", what, textOf(error).c_str()));
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    MXerrorMsgs::get()->add(printed("%s: something was thrown that is not a std::exception", what));
  }
  return MX_FAIL;
}

template <typename Body>
int guarded(const char* what, Body body) {
  return runGuarded(what, &runBody<Body>, &body);
}

/// Why the library cannot be used, a line for each reason: collected while it is loaded.
inline std::string& loadErrors() {
  static std::string& errors = *new std::string();
  return errors;
}

}  // namespace detail

// ---- calls of passes ---------------------------------------------------------------------------

namespace detail {

/// The graph of a call, as JSON or as plain arrays; the other is null.
struct ShownGraph {
  const char* json;
  const FlatModel* flat;
};

/// The graph of a call, which a host gives as plain arrays or as JSON.
class GivenGraph {
 public:
  explicit GivenGraph(const ShownGraph& shown) : graph_(nullptr) {
    if (shown.flat == nullptr) {
      JsonOptions reading;
      reading.allow_control_characters = true;  // MXNet does not escape them
      read_.reset(Graph::fromString(shown.json, strlen(shown.json), reading));
      graph_ = read_.get();
    } else {
      store_.reset(new FlatStore(shown.flat->memory));
      graph_ = store_->unflatten(*shown.flat);
    }
  }
  Graph* get() const { return graph_; }
  /// Returns the graph as plain arrays, with all that they refer to.
  const FlatModel* releaseFlat(const FlatModel* shown) {
    store_->flatten(*graph_, shown);
    return &store_.release()->model;
  }

 private:
  Owned<FlatStore> store_;
  Owned<Graph> read_;
  Graph* graph_;
};

inline void takeBackParams(Graph* graph) {
  graph->forEachNode([](Graph*, Node* node) { node->tensor = nullptr; });
}

/// Lends parameters to the variables of a graph, for the time of a call.
class CallParams {
 public:
  /// Lends no more than a resource if there are no parameters, which most walks are for.
  CallParams(Graph* graph, ParamTable* args, ParamTable* aux, const PassResource* resource)
      : graph_(graph),
        args_(args),
        aux_(aux),
        resource_(resource),
        any_(!args->empty() || !aux->empty()) {
    if (!any_) return;
    aux->assign(graph->inputs);
    args->assign(graph->inputs);  // of a name in both, the argument
  }
  bool any() const { return any_; }
  CallParams(const CallParams&) = delete;
  CallParams& operator=(const CallParams&) = delete;
  ~CallParams() {
    if (any_ || (resource_ != nullptr && resource_->_hasTensors())) takeBackParams(graph_);
  }
  /// Throws std::runtime_error if the call changed tensors, or gave variables others, in a way that
  /// the host does not see.
  void requireAsLent() const {
    args_->requireAsLent();
    aux_->requireAsLent();
    AddressTable made;
    if (resource_ != nullptr) resource_->_requireAsMade(&made);
    graph_->forEachNode([&](Graph*, Node* node) { requireOwnTensor(*node, made); });
  }

 private:
  void requireOwnTensor(const Node& node, const AddressTable& made) const {
    if (node.tensor == nullptr || node.op != "null") return;
    const ParamTable::Lent* lent = args_->find(node.tensor);
    if (lent == nullptr) lent = aux_->find(node.tensor);
    std::string copy;
    if (lent != nullptr && (lent->node == &node || paramName(node, &copy) == lent->name)) return;
    const int64_t position = made.find(node.tensor);
    if (lent == nullptr && position < 0) {
      failCall("variable '%s' has a tensor that the host did not lend: alloc_arg makes one",
               node.name.c_str());
    }
    const char* const owner =
        lent != nullptr ? lent->name : resource_->_nameOfMade(position).c_str();
    if (lent == nullptr && node.name == owner) return;
    failCall(
        "variable '%s' has the tensor of '%s', which the host does not see: alloc_arg makes one",
        node.name.c_str(), owner);
  }

  Graph* graph_;
  ParamTable* args_;
  ParamTable* aux_;
  const PassResource* resource_;
  bool any_;
};

/// The arguments of a call of a pass.
struct PassCall {
  graphPass_t function;
  const char* name;
  GivenTexts options;
  GivenParams args;
  GivenParams aux;
  nd_malloc_t nd_malloc;
  const void* nd_alloc;
};

/// Runs a pass on a graph.
inline int runPass(const PassCall& call, Graph* graph, const FlatModel* shown) {
  if (call.function == nullptr) {
    MXerrorMsgs::get()->add(printed("pass '%s' has no body: call setBody", call.name));
    return MX_FAIL;
  }
  ParamTable args(call.args);
  ParamTable aux(call.aux);
  PassResource resource(call.nd_malloc, call.nd_alloc);
  resource._setGraph(graph);
  resource._setParams(&args, &aux);
  if (shown != nullptr && shown->types != nullptr) resource._offerTypes(*shown);
  const RunningPass running(&resource);
  const CallParams lent(graph, &args, &aux, &resource);
  for (Node* node : graph->inputs) {
    if (!lent.any()) break;
    const MXTensor* tensor = node->tensor;
    if (tensor == nullptr || tensor->data_ptr != nullptr || tensor->size() == 0) continue;
    if (tensor->verID != 0) continue;  // on demand
    resource._noteUnlent(node);
    node->tensor = nullptr;
  }
  const options_map_t options = call.options.map();
  const DeclaredPasses* declared = DeclaredPasses::get();
  MXReturnValue result = MX_FAIL;
  if (declared->run == nullptr ||
      !declared->run(call.function, call.name, graph, options, &result)) {
    result = call.function(graph, options);
  }
  if (result != MX_SUCCESS) return MX_FAIL;
  if (lent.any() || resource._hasTensors()) lent.requireAsLent();
  return MX_SUCCESS;
}

inline int callPass(const PassCall& call, const char* json, char** result) {
  return guarded(printed("pass '%s'", call.name).c_str(), [&]() -> int {
    GivenGraph graph(ShownGraph{json, nullptr});
    if (runPass(call, graph.get(), nullptr) != MX_SUCCESS) return MX_FAIL;
    const std::string text = graph.get()->toString();
    *result = static_cast<char*>(malloc(text.size() + 1));
    if (*result == nullptr) throw std::bad_alloc();
    memcpy(*result, text.c_str(), text.size() + 1);
    return MX_SUCCESS;
  });
}

inline int callPass(const PassCall& call, const FlatModel* shown, const FlatModel** result) {
  return guarded(printed("pass '%s'", call.name).c_str(), [&]() -> int {
    GivenGraph graph(ShownGraph{nullptr, shown});
    if (runPass(call, graph.get(), shown) != MX_SUCCESS) return MX_FAIL;
    *result = graph.releaseFlat(shown);
    return MX_SUCCESS;
  });
}

}  // namespace detail

// ---- calls of operators ------------------------------------------------------------------------

namespace detail {

/// Shapes of a call: `count` arrays of `dims` numbers.
struct GivenShapes {
  unsigned int** shapes;
  const int* dims;
  int count;
};

/// The inputs, or the outputs, of an operator's call.
struct GivenTensors {
  const int64_t** shapes;
  const int* dims;
  void** data;
  const int* types;
  const size_t* ids;
  const char** device_types;
  const int* device_ids;
  int count;
  const int* storage_types;
  void** indices;
  void** indptr;
  const int64_t* indices_counts;
  const int64_t* indptr_counts;
};

/// The functions behind the entry points of operators; null in a library without operators.
struct OperatorCalls {
  int (*size)();
  CustomOp* (*get)(int idx);
  int (*parseAttrs)(parseAttrs_t function, const GivenTexts& attributes, int* num_in, int* num_out);
  int (*inferShape)(inferShape_t function, const GivenTexts& attributes, const GivenShapes& inputs,
                    unsigned int*** mod_inshapes, int** mod_indims, unsigned int*** outshapes,
                    int** outdims, int num_out);
  int (*inferType)(inferType_t function, const GivenTexts& attributes, int* inputs, int num_in,
                   int* outputs, int num_out);
  int (*inferSType)(inferSType_t function, const GivenTexts& attributes, int* inputs, int num_in,
                    int* outputs, int num_out);
  int (*compute)(fcomp_t function, const GivenTexts& attributes, const GivenTensors& inputs,
                 const GivenTensors& outputs, const OpResource& resource);
  int (*mutateInputs)(mutateInputs_t function, const GivenTexts& attributes, int** indices,
                      int* count);
  int (*createState)(createOpState_t function, const GivenTexts& attributes,
                     const MXContext& context, const GivenShapes& inputs, const int* types,
                     void** state);
  void (*destroyState)(void* state);
  int (*computeState)(bool forward, void* state, const GivenTensors& inputs,
                      const GivenTensors& outputs, const OpResource& resource);

  static OperatorCalls* table() {
    static OperatorCalls calls = {};
    return &calls;
  }
};

template <typename ValueType>
void requireCount(const std::vector<ValueType>& values, int count, const char* what) {
  if (values.size() == static_cast<std::size_t>(count)) return;
  failCall("there must be %d %s, the function left %zu", count, what, values.size());
}

template <typename Function>
void requireFunction(Function function, const char* setter) {
  if (function == nullptr) failCall("there is no such function: call %s", setter);
}

/// Memory for the host, freed here unless released to it.
class Handout {
 public:
  Handout() {}
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;
  ~Handout() {
    for (void* block : blocks_) free(block);
  }
  template <typename ValueType>
  ValueType* array(std::size_t count) {
    blocks_.push_back(nullptr);
    blocks_.back() = malloc(std::max<std::size_t>(count, 1) * sizeof(ValueType));
    if (blocks_.back() == nullptr) throw std::bad_alloc();
    return static_cast<ValueType*>(blocks_.back());
  }
  template <typename ValueType>
  ValueType* copy(const std::vector<ValueType>& values) {
    ValueType* const memory = array<ValueType>(values.size());
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }
  char* copy(const std::string& text) {
    char* const memory = array<char>(text.size() + 1);
    memcpy(memory, text.c_str(), text.size() + 1);
    return memory;
  }
  void release() { blocks_.clear(); }

 private:
  std::vector<void*> blocks_;
};

typedef std::vector<std::vector<unsigned int> > ShapeList;

inline ShapeList makeShapes(const GivenShapes& given) {
  ShapeList list;
  for (int pos = 0; pos < given.count; ++pos) {
    list.emplace_back(given.shapes[pos], given.shapes[pos] + given.dims[pos]);
  }
  return list;
}

inline void handOut(const ShapeList& list, Handout* memory, unsigned int*** shapes, int** dims) {
  *shapes = memory->array<unsigned int*>(list.size());
  *dims = memory->array<int>(list.size());
  for (std::size_t pos = 0; pos < list.size(); ++pos) {
    (*shapes)[pos] = memory->copy(list[pos]);
    (*dims)[pos] = static_cast<int>(list[pos].size());
  }
}

/// `sparse` receives the targets of the data_ptr of sparse tensors, and has room for them.
inline std::vector<MXTensor> makeTensors(const GivenTensors& given, std::vector<MXSparse>* sparse) {
  std::vector<MXTensor> tensors(static_cast<std::size_t>(given.count));
  for (int pos = 0; pos < given.count; ++pos) {
    const MXStorageType storage = static_cast<MXStorageType>(given.storage_types[pos]);
    void* data = given.data[pos];
    if (storage != kDefaultStorage) {
      sparse->emplace_back();
      const bool csr = storage == kCSRStorage;
      sparse->back().set(data, given.shapes[pos], given.dims[pos], given.indices[pos],
                         given.indices_counts[pos], csr ? given.indptr[pos] : nullptr,
                         csr ? given.indptr_counts[pos] : 0);
      data = &sparse->back();
    }
    tensors[static_cast<std::size_t>(pos)].setTensor(
        data, static_cast<MXDType>(given.types[pos]), given.shapes[pos], given.dims[pos],
        given.ids[pos], MXContext(given.device_types[pos], given.device_ids[pos]), storage);
  }
  return tensors;
}

/// Calls body(inputs, outputs) with the tensors of an operator's call.
template <typename Body>
int compute(const GivenTensors& inputs, const GivenTensors& outputs, Body body) {
  std::vector<MXSparse> sparse;
  sparse.reserve(static_cast<std::size_t>(inputs.count) + static_cast<std::size_t>(outputs.count));
  std::vector<MXTensor> in_tensors = makeTensors(inputs, &sparse);
  std::vector<MXTensor> out_tensors = makeTensors(outputs, &sparse);
  return body(&in_tensors, &out_tensors) == MX_SUCCESS ? MX_SUCCESS : MX_FAIL;
}

/// Calls an inferType or inferSType function. Outputs are initially -1: unknown.
template <typename Function>
int inferInPlace(Function function, const GivenTexts& attributes, int* inputs, int num_in,
                 int* outputs, int num_out) {
  std::vector<int> in_codes(inputs, inputs + num_in);
  std::vector<int> out_codes(static_cast<std::size_t>(num_out), -1);
  if (function(attributes.map(), &in_codes, &out_codes) != MX_SUCCESS) return MX_FAIL;
  requireCount(in_codes, num_in, "input types");
  requireCount(out_codes, num_out, "output types");
  std::copy(in_codes.begin(), in_codes.end(), inputs);
  std::copy(out_codes.begin(), out_codes.end(), outputs);
  return MX_SUCCESS;
}

inline int countOperators() { return Registry<CustomOp>::get()->size(); }

inline CustomOp* findOperator(int idx) {
  Registry<CustomOp>* const operators = Registry<CustomOp>::get();
  return idx >= 0 && idx < operators->size() ? &operators->get(idx) : nullptr;
}

inline int callParseAttrs(parseAttrs_t function, const GivenTexts& attributes, int* num_in,
                          int* num_out) {
  return guarded("parseAttrs", [&]() -> int {
    requireFunction(function, "setParseAttrs");
    return function(attributes.map(), num_in, num_out);
  });
}

inline int callInferShape(inferShape_t function, const GivenTexts& attributes,
                          const GivenShapes& inputs, unsigned int*** mod_inshapes, int** mod_indims,
                          unsigned int*** outshapes, int** outdims, int num_out) {
  return guarded("inferShape", [&]() -> int {
    requireFunction(function, "setInferShape");
    ShapeList in_shapes = makeShapes(inputs);
    ShapeList out_shapes(static_cast<std::size_t>(num_out));
    if (function(attributes.map(), &in_shapes, &out_shapes) != MX_SUCCESS) return MX_FAIL;
    requireCount(in_shapes, inputs.count, "input shapes");
    requireCount(out_shapes, num_out, "output shapes");
    Handout memory;
    handOut(in_shapes, &memory, mod_inshapes, mod_indims);
    handOut(out_shapes, &memory, outshapes, outdims);
    memory.release();
    return MX_SUCCESS;
  });
}

inline int callInferType(inferType_t function, const GivenTexts& attributes, int* inputs,
                         int num_in, int* outputs, int num_out) {
  return guarded("inferType", [&]() -> int {
    requireFunction(function, "setInferType");
    return inferInPlace(function, attributes, inputs, num_in, outputs, num_out);
  });
}

inline int callInferSType(inferSType_t function, const GivenTexts& attributes, int* inputs,
                          int num_in, int* outputs, int num_out) {
  return guarded("inferSType", [&]() -> int {
    requireFunction(function, "setInferSType");
    return inferInPlace(function, attributes, inputs, num_in, outputs, num_out);
  });
}

inline int callCompute(fcomp_t function, const GivenTexts& attributes, const GivenTensors& inputs,
                       const GivenTensors& outputs, const OpResource& resource) {
  return guarded("compute", [&]() -> int {
    requireFunction(function, "setForward or setBackward");
    const options_map_t texts = attributes.map();
    return compute(inputs, outputs, [&](std::vector<MXTensor>* from, std::vector<MXTensor>* into) {
      return function(texts, from, into, resource);
    });
  });
}

inline int callMutateInputs(mutateInputs_t function, const GivenTexts& attributes, int** indices,
                            int* count) {
  return guarded("mutateInputs", [&]() -> int {
    requireFunction(function, "setMutateInputs");
    std::vector<int> mutated;
    if (function(attributes.map(), &mutated) != MX_SUCCESS) return MX_FAIL;
    Handout memory;
    *indices = memory.copy(mutated);
    *count = static_cast<int>(mutated.size());
    memory.release();
    return MX_SUCCESS;
  });
}

inline int callCreateState(createOpState_t function, const GivenTexts& attributes,
                           const MXContext& context, const GivenShapes& inputs, const int* types,
                           void** state) {
  return guarded("createOpState", [&]() -> int {
    requireFunction(function, "setCreateOpState");
    CustomStatefulOp* made = nullptr;
    if (function(attributes.map(), context, makeShapes(inputs),
                 std::vector<int>(types, types + inputs.count), &made) != MX_SUCCESS) {
      return MX_FAIL;
    }
    if (made == nullptr) throw std::runtime_error("the function made no state");
    *state = made;
    return MX_SUCCESS;
  });
}

inline void callDestroyState(void* state) {
  guarded("the state's destructor", [&]() -> int {
    delete static_cast<CustomStatefulOp*>(state);
    return MX_SUCCESS;
  });
}

inline int callComputeState(bool forward, void* state, const GivenTensors& inputs,
                            const GivenTensors& outputs, const OpResource& resource) {
  return guarded(forward ? "Forward" : "Backward", [&]() -> int {
    CustomStatefulOp* const made = static_cast<CustomStatefulOp*>(state);
    return compute(inputs, outputs, [&](std::vector<MXTensor>* from, std::vector<MXTensor>* into) {
      return forward ? made->Forward(from, into, resource) : made->Backward(from, into, resource);
    });
  });
}

inline void install(const CustomOp*) {
  *OperatorCalls::table() = {&countOperators,   &findOperator,     &callParseAttrs,
                             &callInferShape,   &callInferType,    &callInferSType,
                             &callCompute,      &callMutateInputs, &callCreateState,
                             &callDestroyState, &callComputeState};
}

}  // namespace detail

inline MXReturnValue CustomStatefulOp::Backward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                                                const OpResource&) {
  MX_ERROR_MSG << "this operator has no Backward";
  return MX_FAIL;
}

template <typename Function>
CustomOp& CustomOp::add(Function function, const char* ctx, const char* what,
                        std::vector<Function>* functions, std::vector<const char*>* contexts) {
  // No exception: this runs while the library is loaded, and nothing could catch it.
  for (const char* known : *contexts) {
    if (strcmp(known, ctx) != 0) continue;
    MXerrorMsgs::get()->add(std::string("operator '") + name + "' has two " + what +
                            " functions for the context '" + ctx + "'");
    valid = false;
  }
  functions->push_back(function);
  contexts->push_back(ctx);
  return *this;
}

inline void OpResource::alloc_sparse(MXSparse* sparse, int index, int indices_len,
                                     int indptr_len) const {
  sparse_malloc_(sparse_alloc_, index, indices_len, indptr_len, &sparse->data, &sparse->indices,
                 &sparse->indptr);
  sparse->indices_len = indices_len;
  sparse->indptr_len = indptr_len;
  if (indptr_len > 0) sparse->data_len = indices_len;
}

// ---- calls of partitioners ---------------------------------------------------------------------

namespace detail {

/// A selector with its graph.
struct OwnedSelector {
  explicit OwnedSelector(const ShownGraph& shown) : graph(shown) {}
  GivenGraph graph;
  Owned<CustomOpSelector> selector;  // destroyed first
};

/// The functions behind the entry points of partitioners; null in a library without partitioners.
struct PartitionerCalls {
  int (*size)();
  CustomPartitioner* (*get)(int idx);
  void (*describe)(int part_idx, int stg_idx, const char** strategy, supportedOps_t* supported_ops,
                   createSelector_t* create_selector, reviewSubgraph_t* review_subgraph,
                   const char** op_name);
  int (*supportedOps)(supportedOps_t function, const ShownGraph& shown, int num_ids, int* ids,
                      const GivenTexts& options);
  int (*createSelector)(createSelector_t function, const ShownGraph& shown, void** selector,
                        const GivenTexts& options);
  void (*select)(void* selector, int node, int* selected);
  void (*selectInput)(void* selector, int node, int input_node, int* selected);
  void (*selectOutput)(void* selector, int node, int output_node, int* selected);
  void (*filter)(void* selector, int* candidates, int num_candidates, int** keep, int* num_keep);
  void (*reset)(void* selector);
  void (*destroySelector)(void* selector);
  int (*reviewSubgraph)(reviewSubgraph_t function, const ShownGraph& shown, int subgraph_id,
                        int* accept, const GivenTexts& options, char*** attr_keys,
                        char*** attr_vals, int* num_attrs, const GivenParams& args,
                        const GivenParams& aux);

  static PartitionerCalls* table() {
    static PartitionerCalls calls = {};
    return &calls;
  }
};

inline int countPartitioners() { return Registry<CustomPartitioner>::get()->size(); }

inline CustomPartitioner* findPartitioner(int idx) {
  Registry<CustomPartitioner>* const partitioners = Registry<CustomPartitioner>::get();
  return idx >= 0 && idx < partitioners->size() ? &partitioners->get(idx) : nullptr;
}

inline void describeStrategy(int part_idx, int stg_idx, const char** strategy,
                             supportedOps_t* supported_ops, createSelector_t* create_selector,
                             reviewSubgraph_t* review_subgraph, const char** op_name) {
  guarded("_partRegGet", [&]() -> int {
    const CustomPartitioner& partitioner = Registry<CustomPartitioner>::get()->get(part_idx);
    *supported_ops = partitioner.getSupportedOps(stg_idx);
    *create_selector = partitioner.getCreateSelector(stg_idx);
    *review_subgraph = partitioner.getReviewSubgraph(stg_idx);
    *op_name = partitioner.op_names.at(static_cast<std::size_t>(stg_idx));
    *strategy = partitioner.strategies.at(static_cast<std::size_t>(stg_idx));
    return MX_SUCCESS;
  });
}

inline int callSupportedOps(supportedOps_t function, const ShownGraph& shown, int num_ids, int* ids,
                            const GivenTexts& options) {
  return guarded("supportedOps", [&]() -> int {
    requireFunction(function, "setSupportedOps");
    const GivenGraph graph(shown);
    std::vector<int> supported(static_cast<std::size_t>(num_ids), -2);
    if (function(graph.get(), &supported, options.map()) != MX_SUCCESS) return MX_FAIL;
    requireCount(supported, num_ids, "ids, one for each node");
    std::copy(supported.begin(), supported.end(), ids);
    return MX_SUCCESS;
  });
}

inline int callCreateSelector(createSelector_t function, const ShownGraph& shown, void** selector,
                              const GivenTexts& options) {
  return guarded("createSelector", [&]() -> int {
    requireFunction(function, "setCreateSelector");
    Owned<OwnedSelector> owned(new OwnedSelector(shown));
    CustomOpSelector* made = nullptr;
    const MXReturnValue result = function(owned->graph.get(), &made, options.map());
    owned->selector.reset(made);
    if (result != MX_SUCCESS) return MX_FAIL;
    if (made == nullptr) throw std::runtime_error("the function made no selector");
    *selector = owned.release();
    return MX_SUCCESS;
  });
}

/// Calls a selector. Its exceptions must be of a type that the host can catch.
template <typename Body>
void callSelector(void* selector, Body body) {
  try {
    body(static_cast<OwnedSelector*>(selector)->selector.get());
  } catch (const std::exception&) {
    throw;
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    throw std::runtime_error("the selector threw something that is not a std::exception");
  }
}

inline void callSelect(void* selector, int node, int* selected) {
  callSelector(selector,
               [&](CustomOpSelector* chosen) { *selected = chosen->Select(node) ? 1 : 0; });
}

inline void callSelectInput(void* selector, int node, int input_node, int* selected) {
  callSelector(selector, [&](CustomOpSelector* chosen) {
    *selected = chosen->SelectInput(node, input_node) ? 1 : 0;
  });
}

inline void callSelectOutput(void* selector, int node, int output_node, int* selected) {
  callSelector(selector, [&](CustomOpSelector* chosen) {
    *selected = chosen->SelectOutput(node, output_node) ? 1 : 0;
  });
}

inline void callFilter(void* selector, int* candidates, int num_candidates, int** keep,
                       int* num_keep) {
  callSelector(selector, [&](CustomOpSelector* chosen) {
    std::vector<int> kept;
    chosen->Filter(std::vector<int>(candidates, candidates + num_candidates), &kept);
    Handout memory;
    *keep = memory.copy(kept);
    *num_keep = static_cast<int>(kept.size());
    memory.release();
  });
}

inline void callReset(void* selector) {
  callSelector(selector, [](CustomOpSelector* chosen) { chosen->Reset(); });
}

inline void callDestroySelector(void* selector) {
  guarded("the selector's destructor", [&]() -> int {
    delete static_cast<OwnedSelector*>(selector);
    return MX_SUCCESS;
  });
}

inline int callReviewSubgraph(reviewSubgraph_t function, const ShownGraph& shown, int subgraph_id,
                              int* accept, const GivenTexts& options, char*** attr_keys,
                              char*** attr_vals, int* num_attrs, const GivenParams& given_args,
                              const GivenParams& given_aux) {
  return guarded("reviewSubgraph", [&]() -> int {
    requireFunction(function, "setReviewSubgraph");
    ParamTable args(given_args);
    ParamTable aux(given_aux);
    const GivenGraph given(shown);
    const CallParams lent(given.get(), &args, &aux, nullptr);
    bool accepted = false;
    options_map_t attributes;
    if (function(given.get(), subgraph_id, &accepted, options.map(), &attributes) != MX_SUCCESS) {
      return MX_FAIL;
    }
    lent.requireAsLent();
    *accept = accepted ? 1 : 0;
    if (attributes.empty()) return MX_SUCCESS;
    Handout memory;
    *attr_keys = memory.array<char*>(attributes.size());
    *attr_vals = memory.array<char*>(attributes.size());
    for (const auto& attribute : attributes) {
      (*attr_keys)[*num_attrs] = memory.copy(attribute.first);
      (*attr_vals)[*num_attrs] = memory.copy(attribute.second);
      ++*num_attrs;
    }
    memory.release();
    return MX_SUCCESS;
  });
}

inline void install(const CustomPartitioner*) {
  *PartitionerCalls::table() = {&countPartitioners, &findPartitioner,     &describeStrategy,
                                &callSupportedOps,  &callCreateSelector,  &callSelect,
                                &callSelectInput,   &callSelectOutput,    &callFilter,
                                &callReset,         &callDestroySelector, &callReviewSubgraph};
}

inline void install(const CustomPass*) {}
inline void install(const PassDeclaration*) {}

}  // namespace detail

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

#if !defined(PASSLIB_NO_GLOBAL_DLPACK) && !defined(DLPACK_DLPACK_H_) && !defined(DLPACK_VERSION)
using namespace mxnet::ext::dlpack;  // MXNet's header has these names in the global namespace
#endif

// ================================================================================================
// The C functions that a host looks up
//
// All of them are cdecl and take plain C types. A returned int is 1 for success and 0 for failure,
// with the reasons in the message store. Arguments are borrowed for the call. Results are either
// static (names) or allocated with malloc, and the host releases them through _opCallFree of the
// same library. `function` arguments are pointers from the library's RegGet functions, opaque to
// the host. No C++ exception leaves these functions, except calls of a selector, which cannot
// report failure otherwise: what the selector throws reaches the host as a std::exception.
// Functions whose names begin with _passlib are not part of MXNet's ABI.
//
// Parameters of a call (arg_..., aux_...): num names, and for each the data, the shape (dims
// numbers), the dtype code, the version of the data, and the device. Arrays may be null if num is
// 0. A parameter whose data is null, though its shape has elements, is one that the host does not
// lend.
// ================================================================================================

/// Version of the extension ABI, which these functions implement.
#define MX_LIBRARY_VERSION 11
#define PRIVATE_SYMBOL __attribute__((visibility("hidden")))

#ifndef PASSLIB_NO_ENTRY_POINTS
#define PASSLIB_ENTRY inline __attribute__((used)) PASSLIB_EXPORT

extern "C" {

/// Returns the version of the extension ABI.
PASSLIB_ENTRY int _opVersion() { return MX_LIBRARY_VERSION; }

/// Returns the number of messages.
PASSLIB_ENTRY int _msgSize() { return mxnet::ext::MXerrorMsgs::get()->size(); }

/// *msg: message number idx, owned by the library; null if out of range.
PASSLIB_ENTRY void _msgGet(int idx, const char** msg) {
  *msg = nullptr;
  mxnet::ext::detail::guarded("_msgGet", [&]() -> int {
    const std::string* text = mxnet::ext::MXerrorMsgs::get()->get(idx);
    if (text != nullptr) *msg = text->c_str();
    return mxnet::ext::MX_SUCCESS;
  });
}

/// Releases memory that a call of this library returned, or null.
PASSLIB_ENTRY void _opCallFree(void* ptr) { free(ptr); }

// Passes.

/// Returns the number of passes.
PASSLIB_ENTRY int _passRegSize() {
  return mxnet::ext::Registry<mxnet::ext::CustomPass>::get()->size();
}

/// *function, *name: pass number idx; null if out of range.
PASSLIB_ENTRY void _passRegGet(int idx, mxnet::ext::graphPass_t* function, const char** name) {
  *function = nullptr;
  *name = nullptr;
  const auto* passes = mxnet::ext::Registry<mxnet::ext::CustomPass>::get();
  if (idx < 0 || idx >= passes->size()) return;
  *function = passes->get(idx).pass;
  *name = passes->get(idx).name;
}

/// *json: what the passes declare, as JSON text that lives until the process ends; null if none
/// declares anything. The text is
///
///     {"version": 1, "passes": [{"name": "fold", "description": "...", "dialects": ["onnx"],
///      "needs_weights": true, "weights_on_demand": true, "needs_shapes": false,
///      "any_options": false, "options":
///      [{"name": "level", "kind": "integer", "list": false, "default": 1, "description": "...",
///        "choices": [], "range": [1, 3]}],
///      "exact": true, "enters_functions": true, "triggers": ["Mul"],
///      "joins": {"pipelines": ["clean", "simplify"], "after": "", "cost": "weights",
///                "options": {"level": 3}, "rounding": {}}}]}
///
/// with the kinds boolean, integer, real and text. "weights_on_demand", and what follows "options",
/// may be absent, for false, [] and no pipeline.
PASSLIB_ENTRY int _passlibDeclarations(const char** json) {
  *json = nullptr;
  return mxnet::ext::detail::guarded("the declarations of the passes", [&]() -> int {
    const auto* declared = mxnet::ext::detail::DeclaredPasses::get();
    if (declared->describe != nullptr) *json = declared->describe();
    return mxnet::ext::MX_SUCCESS;
  });
}

/// Runs a pass on a graph in JSON. *out_graph: the result as malloc'd JSON, null on failure.
PASSLIB_ENTRY int _passCallGraphPass(
    mxnet::ext::graphPass_t function, const char* in_graph, char** out_graph,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, const char* pass_name,
    const char* const* arg_names, int num_arg, void* const* arg_data,
    const int64_t* const* arg_shapes, const int* arg_dims, const int* arg_types,
    const size_t* arg_IDs, const char* const* arg_dev_type, const int* arg_dev_id,
    const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id,
    mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc) {
  *out_graph = nullptr;
  const mxnet::ext::detail::PassCall call = {function,
                                             pass_name,
                                             {opt_keys, opt_vals, num_opts},
                                             {arg_names, num_arg, arg_data, arg_shapes, arg_dims,
                                              arg_types, arg_IDs, arg_dev_type, arg_dev_id},
                                             {aux_names, num_aux, aux_data, aux_shapes, aux_dims,
                                              aux_types, aux_IDs, aux_dev_type, aux_dev_id},
                                             nd_malloc,
                                             nd_alloc};
  return mxnet::ext::detail::callPass(call, in_graph, out_graph);
}

/// Returns the version of the flat form that the library takes and returns.
PASSLIB_ENTRY int _passlibFlatVersion() { return PASSLIB_FLAT_VERSION; }

/// Runs a pass on a graph in the flat form, which the host owns and keeps until the call returns.
/// *result: the result, null on failure. It belongs to the library, with all that it points to,
/// except for what FlatNode says; the host reads it and then calls _passlibFreeFlat.
PASSLIB_ENTRY int _passlibCallFlatPass(
    mxnet::ext::graphPass_t function, const mxnet::ext::FlatModel* shown,
    const mxnet::ext::FlatModel** result, const char* const* opt_keys, const char* const* opt_vals,
    int num_opts, const char* pass_name, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id,
    mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc) {
  *result = nullptr;
  const mxnet::ext::detail::PassCall call = {function,
                                             pass_name,
                                             {opt_keys, opt_vals, num_opts},
                                             {arg_names, num_arg, arg_data, arg_shapes, arg_dims,
                                              arg_types, arg_IDs, arg_dev_type, arg_dev_id},
                                             {aux_names, num_aux, aux_data, aux_shapes, aux_dims,
                                              aux_types, aux_IDs, aux_dev_type, aux_dev_id},
                                             nd_malloc,
                                             nd_alloc};
  return mxnet::ext::detail::callPass(call, shown, result);
}

/// Releases a result of _passlibCallFlatPass, or null.
PASSLIB_ENTRY void _passlibFreeFlat(const mxnet::ext::FlatModel* model) {
  if (model != nullptr) delete static_cast<mxnet::ext::detail::FlatStore*>(model->owner);
}

/// Sets what passInterrupted() asks: function(host), which returns 0 or 1, needs no lock, never
/// throws, and stays valid until the process ends. Called before initialize. Not part of MXNet's
/// ABI.
PASSLIB_ENTRY void _passlibSetInterrupted(mxnet::ext::interrupted_t function, const void* host) {
  mxnet::ext::detail::InterruptSource* const source = mxnet::ext::detail::InterruptSource::get();
  source->function = function;
  source->host = host;
}

/// Sets what Node::readTensor() asks, before initialize. In a call of a pass that takes weights on
/// demand, a parameter whose elements are asked for has null data and an ID that is not 0.
PASSLIB_ENTRY void _passlibSetWeights(mxnet::ext::readWeight_t read,
                                      mxnet::ext::scaleWeight_t scale) {
  mxnet::ext::detail::WeightSource* const source = mxnet::ext::detail::WeightSource::get();
  source->read = read;
  source->scale = scale;
}

/// Returns why the library cannot be used, such as a pattern that is not well-formed: a line for
/// each reason, or null. The host asks before initialize().
PASSLIB_ENTRY const char* _passlibLoadErrors() {
  const std::string& errors = mxnet::ext::detail::loadErrors();
  return errors.empty() ? nullptr : errors.c_str();
}

// Operators.

/// Returns the number of operators.
PASSLIB_ENTRY int _opRegSize() {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->size;
  return call == nullptr ? 0 : call();
}

/// Gets operator number idx. The library owns the arrays, with one entry per context; functions
/// that were not set are null. Without such an operator, the name is null.
PASSLIB_ENTRY void _opRegGet(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                             mxnet::ext::fcomp_t** forward_fp, int* forward_count,
                             const char*** backward_ctx, mxnet::ext::fcomp_t** backward_fp,
                             int* backward_count, const char*** create_op_ctx,
                             mxnet::ext::createOpState_t** create_op_fp, int* create_op_count,
                             mxnet::ext::parseAttrs_t* parse, mxnet::ext::inferType_t* type,
                             mxnet::ext::inferSType_t* stype, mxnet::ext::inferShape_t* shape,
                             mxnet::ext::mutateInputs_t* mutate) {
  *name = nullptr;
  *isSGop = *forward_count = *backward_count = *create_op_count = 0;
  *forward_ctx = *backward_ctx = *create_op_ctx = nullptr;
  *forward_fp = *backward_fp = nullptr;
  *create_op_fp = nullptr;
  *parse = nullptr;
  *type = nullptr;
  *stype = nullptr;
  *shape = nullptr;
  *mutate = nullptr;
  const auto call = mxnet::ext::detail::OperatorCalls::table()->get;
  mxnet::ext::CustomOp* const op = call == nullptr ? nullptr : call(idx);
  if (op == nullptr) return;
  *name = op->name;
  *isSGop = op->isSGop ? 1 : 0;
  *type = op->infer_type;
  *stype = op->infer_storage_type;
  *shape = op->infer_shape;
  *mutate = op->mutate_inputs;
  if (!op->valid) return;  // without functions, so that hosts reject it
  *parse = op->parse_attrs;
  *forward_ctx = op->forward_ctx_cstr.data();
  *forward_fp = op->forward_fp.data();
  *forward_count = static_cast<int>(op->forward_fp.size());
  *backward_ctx = op->backward_ctx_cstr.data();
  *backward_fp = op->backward_fp.data();
  *backward_count = static_cast<int>(op->backward_fp.size());
  *create_op_ctx = op->create_op_ctx_cstr.data();
  *create_op_fp = op->create_op_fp.data();
  *create_op_count = static_cast<int>(op->create_op_fp.size());
}

PASSLIB_ENTRY int _opCallParseAttrs(mxnet::ext::parseAttrs_t function, const char* const* keys,
                                    const char* const* vals, int num, int* num_in, int* num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->parseAttrs;
  return call == nullptr ? mxnet::ext::MX_FAIL : call(function, {keys, vals, num}, num_in, num_out);
}

/// *mod_inshapes and *outshapes: malloc'd arrays of malloc'd shapes, those of the inputs possibly
/// changed; *mod_indims and *outdims: malloc'd arrays of their lengths. Nothing is set on failure.
PASSLIB_ENTRY int _opCallInferShape(mxnet::ext::inferShape_t function, const char* const* keys,
                                    const char* const* vals, int num, unsigned int** inshapes,
                                    int* indims, int num_in, unsigned int*** mod_inshapes,
                                    int** mod_indims, unsigned int*** outshapes, int** outdims,
                                    int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->inferShape;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, {inshapes, indims, num_in},
                                mod_inshapes, mod_indims, outshapes, outdims, num_out);
}

/// Types are changed in place.
PASSLIB_ENTRY int _opCallInferType(mxnet::ext::inferType_t function, const char* const* keys,
                                   const char* const* vals, int num, int* intypes, int num_in,
                                   int* outtypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->inferType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, intypes, num_in, outtypes, num_out);
}

PASSLIB_ENTRY int _opCallInferSType(mxnet::ext::inferSType_t function, const char* const* keys,
                                    const char* const* vals, int num, int* instypes, int num_in,
                                    int* outstypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->inferSType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, instypes, num_in, outstypes, num_out);
}

/// intypes, outtypes: dtype codes; instypes, outstypes: storage types.
PASSLIB_ENTRY int _opCallFCompute(
    mxnet::ext::fcomp_t function, const char* const* keys, const char* const* vals, int num,
    const int64_t** inshapes, int* indims, void** indata, int* intypes, size_t* inIDs,
    const char** indev_type, int* indev_id, int num_in, const int64_t** outshapes, int* outdims,
    void** outdata, int* outtypes, size_t* outIDs, const char** outdev_type, int* outdev_id,
    int num_out, mxnet::ext::xpu_malloc_t cpu_malloc, void* cpu_alloc,
    mxnet::ext::xpu_malloc_t gpu_malloc, void* gpu_alloc, void* stream,
    mxnet::ext::sparse_malloc_t sparse_malloc, void* sparse_alloc, int* instypes, int* outstypes,
    void** in_indices, void** out_indices, void** in_indptr, void** out_indptr,
    int64_t* in_indices_shapes, int64_t* out_indices_shapes, int64_t* in_indptr_shapes,
    int64_t* out_indptr_shapes, void* rng_cpu_states, void* rng_gpu_states) {
  const mxnet::ext::detail::GivenTensors inputs = {
      inshapes,        indims, indata,   intypes,    inIDs,     indev_type,
      indev_id,        num_in, instypes, in_indices, in_indptr, in_indices_shapes,
      in_indptr_shapes};
  const mxnet::ext::detail::GivenTensors outputs = {
      outshapes,        outdims, outdata,   outtypes,    outIDs,     outdev_type,
      outdev_id,        num_out, outstypes, out_indices, out_indptr, out_indices_shapes,
      out_indptr_shapes};
  const mxnet::ext::OpResource resource(cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream,
                                        sparse_malloc, sparse_alloc, rng_cpu_states,
                                        rng_gpu_states);
  const auto call = mxnet::ext::detail::OperatorCalls::table()->compute;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, inputs, outputs, resource);
}

/// *mutate_indices is malloc'd.
PASSLIB_ENTRY int _opCallMutateInputs(mxnet::ext::mutateInputs_t function, const char* const* keys,
                                      const char* const* vals, int num, int** mutate_indices,
                                      int* indices_size) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->mutateInputs;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, mutate_indices, indices_size);
}

/// *state_op: a CustomStatefulOp, which _opCallDestroyOpState destroys.
PASSLIB_ENTRY int _opCallCreateOpState(mxnet::ext::createOpState_t function,
                                       const char* const* keys, const char* const* vals, int num,
                                       const char* dev_type, int dev_id, unsigned int** inshapes,
                                       int* indims, int num_in, const int* intypes,
                                       void** state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->createState;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {keys, vals, num}, mxnet::ext::MXContext(dev_type, dev_id),
                    {inshapes, indims, num_in}, intypes, state_op);
}

PASSLIB_ENTRY void _opCallDestroyOpState(void* state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->destroyState;
  if (call != nullptr) call(state_op);
}

PASSLIB_ENTRY int _opCallFStatefulCompute(
    int is_forward, void* state_op, const int64_t** inshapes, int* indims, void** indata,
    int* intypes, size_t* inIDs, const char** indev_type, int* indev_id, int num_in,
    const int64_t** outshapes, int* outdims, void** outdata, int* outtypes, size_t* outIDs,
    const char** outdev_type, int* outdev_id, int num_out, mxnet::ext::xpu_malloc_t cpu_malloc,
    void* cpu_alloc, mxnet::ext::xpu_malloc_t gpu_malloc, void* gpu_alloc, void* stream,
    mxnet::ext::sparse_malloc_t sparse_malloc, void* sparse_alloc, int* instypes, int* outstypes,
    void** in_indices, void** out_indices, void** in_indptr, void** out_indptr,
    int64_t* in_indices_shapes, int64_t* out_indices_shapes, int64_t* in_indptr_shapes,
    int64_t* out_indptr_shapes, void* rng_cpu_states, void* rng_gpu_states) {
  const mxnet::ext::detail::GivenTensors inputs = {
      inshapes,        indims, indata,   intypes,    inIDs,     indev_type,
      indev_id,        num_in, instypes, in_indices, in_indptr, in_indices_shapes,
      in_indptr_shapes};
  const mxnet::ext::detail::GivenTensors outputs = {
      outshapes,        outdims, outdata,   outtypes,    outIDs,     outdev_type,
      outdev_id,        num_out, outstypes, out_indices, out_indptr, out_indices_shapes,
      out_indptr_shapes};
  const mxnet::ext::OpResource resource(cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream,
                                        sparse_malloc, sparse_alloc, rng_cpu_states,
                                        rng_gpu_states);
  const auto call = mxnet::ext::detail::OperatorCalls::table()->computeState;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(is_forward != 0, state_op, inputs, outputs, resource);
}

// Partitioners.

/// Returns the number of partitioners.
PASSLIB_ENTRY int _partRegSize() {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->size;
  return call == nullptr ? 0 : call();
}

/// Returns the number of strategies of partitioner number idx; *name: its name.
PASSLIB_ENTRY int _partRegGetCount(int idx, const char** name) {
  *name = nullptr;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->get;
  mxnet::ext::CustomPartitioner* const partitioner = call == nullptr ? nullptr : call(idx);
  if (partitioner == nullptr) return 0;
  *name = partitioner->name;
  return static_cast<int>(partitioner->strategies.size());
}

/// Gets strategy number stg_idx of partitioner number part_idx.
PASSLIB_ENTRY void _partRegGet(int part_idx, int stg_idx, const char** strategy,
                               mxnet::ext::supportedOps_t* supported_ops,
                               mxnet::ext::createSelector_t* create_selector,
                               mxnet::ext::reviewSubgraph_t* review_subgraph,
                               const char** op_name) {
  *strategy = *op_name = nullptr;
  *supported_ops = nullptr;
  *create_selector = nullptr;
  *review_subgraph = nullptr;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->describe;
  if (call == nullptr) return;
  call(part_idx, stg_idx, strategy, supported_ops, create_selector, review_subgraph, op_name);
}

PASSLIB_ENTRY int _partCallSupportedOps(mxnet::ext::supportedOps_t function, const char* json,
                                        int num_ids, int* ids, const char* const* opt_keys,
                                        const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {json, nullptr}, num_ids, ids, {opt_keys, opt_vals, num_opts});
}

/// *selector: opaque, for the functions below.
PASSLIB_ENTRY int _partCallCreateSelector(mxnet::ext::createSelector_t function, const char* json,
                                          void** selector, const char* const* opt_keys,
                                          const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->createSelector;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {json, nullptr}, selector, {opt_keys, opt_vals, num_opts});
}

/// *attr_keys and *attr_vals: malloc'd arrays of malloc'd strings, null if there are none.
PASSLIB_ENTRY int _partCallReviewSubgraph(
    mxnet::ext::reviewSubgraph_t function, const char* json, int subgraph_id, int* accept,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, char*** attr_keys,
    char*** attr_vals, int* num_attrs, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id) {
  *attr_keys = *attr_vals = nullptr;
  *num_attrs = 0;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {json, nullptr}, subgraph_id, accept,
                                {opt_keys, opt_vals, num_opts}, attr_keys, attr_vals, num_attrs,
                                {arg_names, num_arg, arg_data, arg_shapes, arg_dims, arg_types,
                                 arg_IDs, arg_dev_type, arg_dev_id},
                                {aux_names, num_aux, aux_data, aux_shapes, aux_dims, aux_types,
                                 aux_IDs, aux_dev_type, aux_dev_id});
}

/// The same with the graph in the flat form. The library copies what it keeps.
PASSLIB_ENTRY int _passlibCallFlatSupportedOps(mxnet::ext::supportedOps_t function,
                                               const mxnet::ext::FlatModel* shown, int num_ids,
                                               int* ids, const char* const* opt_keys,
                                               const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {nullptr, shown}, num_ids, ids, {opt_keys, opt_vals, num_opts});
}

/// The same with the graph in the flat form. The library copies what it keeps.
/// *selector: opaque, for the functions below.
PASSLIB_ENTRY int _passlibCallFlatCreateSelector(mxnet::ext::createSelector_t function,
                                                 const mxnet::ext::FlatModel* shown,
                                                 void** selector, const char* const* opt_keys,
                                                 const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->createSelector;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {nullptr, shown}, selector, {opt_keys, opt_vals, num_opts});
}

/// The same with the graph in the flat form. The library copies what it keeps.
/// *attr_keys and *attr_vals: malloc'd arrays of malloc'd strings, null if there are none.
PASSLIB_ENTRY int _passlibCallFlatReviewSubgraph(
    mxnet::ext::reviewSubgraph_t function, const mxnet::ext::FlatModel* shown, int subgraph_id,
    int* accept, const char* const* opt_keys, const char* const* opt_vals, int num_opts,
    char*** attr_keys, char*** attr_vals, int* num_attrs, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id) {
  *attr_keys = *attr_vals = nullptr;
  *num_attrs = 0;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {nullptr, shown}, subgraph_id, accept,
                                {opt_keys, opt_vals, num_opts}, attr_keys, attr_vals, num_attrs,
                                {arg_names, num_arg, arg_data, arg_shapes, arg_dims, arg_types,
                                 arg_IDs, arg_dev_type, arg_dev_id},
                                {aux_names, num_aux, aux_data, aux_shapes, aux_dims, aux_types,
                                 aux_IDs, aux_dev_type, aux_dev_id});
}

PASSLIB_ENTRY void _partCallSelect(void* selector, int node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->select;
  if (call != nullptr) call(selector, node, selected);
}

PASSLIB_ENTRY void _partCallSelectInput(void* selector, int node, int input_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->selectInput;
  if (call != nullptr) call(selector, node, input_node, selected);
}

PASSLIB_ENTRY void _partCallSelectOutput(void* selector, int node, int output_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->selectOutput;
  if (call != nullptr) call(selector, node, output_node, selected);
}

/// *keep is malloc'd.
PASSLIB_ENTRY void _partCallFilter(void* selector, int* candidates, int num_candidates, int** keep,
                                   int* num_keep) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->filter;
  if (call != nullptr) call(selector, candidates, num_candidates, keep, num_keep);
}

PASSLIB_ENTRY void _partCallReset(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->reset;
  if (call != nullptr) call(selector);
}

/// Destroys a selector and its graph.
PASSLIB_ENTRY void _passlibPartDestroySelector(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->destroySelector;
  if (call != nullptr) call(selector);
}

}  // extern "C"

#endif  // PASSLIB_NO_ENTRY_POINTS

#pragma GCC visibility pop

#ifdef PASSLIB_PATTERNS
#include "lib_patterns.h"
#endif

#endif  // a compiler that suffices
#endif  // MXNET_LIB_API_H_
