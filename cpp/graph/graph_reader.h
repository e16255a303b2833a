// Reads NNVM's JSON into a Graph as the header does, faster on large files.
#ifndef PASSLIB_GRAPH_GRAPH_READER_H_
#define PASSLIB_GRAPH_GRAPH_READER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/name_table.h"
#include "graph/small_hash.h"
#include "header.h"

namespace passlib {

using mxnet::ext::FlatEdge;
using mxnet::ext::GraphStructureError;
using mxnet::ext::JsonOptions;
using mxnet::ext::JsonReader;
using mxnet::ext::NodeEntry;
using mxnet::ext::NodeTable;
using mxnet::ext::host::AttributeTexts;
using mxnet::ext::host::JsonTree;
using mxnet::ext::host::kIntMax;
using mxnet::ext::host::orderNodes;
using mxnet::ext::host::PlainList;
using mxnet::ext::host::prefetchNode;
using mxnet::ext::host::printed;
using mxnet::ext::host::ReaderParts;

/// Whether two texts of this size are equal. For a few bytes, memcmp is slower.
inline bool sameBytes(const char* left, const char* right, std::size_t size) {
  uint64_t words[2];
  if (size < 8) return std::memcmp(left, right, size) == 0;
  for (std::size_t pos = 0;; pos = std::min(pos + 8, size - 8)) {
    std::memcpy(&words[0], left + pos, 8);
    std::memcpy(&words[1], right + pos, 8);
    if (words[0] != words[1]) return false;
    if (pos == size - 8) return true;
  }
}

/// Moves over bytes that were read before at the same place of the grammar. Returns false, and
/// stays, if they do not follow.
inline bool skipKnown(const char* text, std::size_t size, JsonReader* reader) {
  const JsonReader::Slice rest = reader->_rest();
  if (rest.size < size || !sameBytes(rest.data, text, size)) return false;
  reader->_skip(size);
  return true;
}

/// Moves behind an integer of at most eight digits, something other than a digit after it.
inline bool scanDigits(const char** place, const char* end, int* value) {
  const char* cursor = *place;
  if (end - cursor < 10) return false;
  unsigned digit = static_cast<unsigned char>(*cursor) - static_cast<unsigned>('0');
  if (digit > 9) return false;
  unsigned sum = digit;
  const char* const first = cursor++;
  for (; (digit = static_cast<unsigned char>(*cursor) - static_cast<unsigned>('0')) <= 9;
       ++cursor) {
    if (sum == 0 || cursor - first == 8) return false;
    sum = 10 * sum + digit;
  }
  if (*cursor == '.' || *cursor == 'e' || *cursor == 'E') return false;
  *place = cursor;
  *value = static_cast<int>(sum);
  return true;
}

/// Reads an integer of a few digits right here. Returns false, and stays, if there is none.
inline bool readDigits(JsonReader* reader, int* value) {
  const JsonReader::Slice rest = reader->_rest();
  const char* cursor = rest.data;
  if (!scanDigits(&cursor, rest.data + rest.size, value)) return false;
  reader->_skip(static_cast<std::size_t>(cursor - rest.data));
  return true;
}

/// Reads a list of `count` such integers right here. Returns false, and stays, if there is none.
inline bool readTuple(JsonReader* reader, int* values, int count) {
  const JsonReader::Slice rest = reader->_rest();
  const char* cursor = rest.data;
  const char* const end = cursor + rest.size;
  if (cursor == end || *cursor != '[' || !reader->_mayEnter()) return false;
  for (int pos = 0; pos < count; ++pos) {
    ++cursor;  // over the bracket or the comma
    if (cursor != end && *cursor == ' ') ++cursor;
    if (!scanDigits(&cursor, end, &values[pos])) return false;
    if (*cursor != (pos + 1 < count ? ',' : ']')) return false;
  }
  reader->_skip(static_cast<std::size_t>(cursor + 1 - rest.data));
  return true;
}

/// Offsets in a text, none below the one before it, in four bytes each: fresh memory is much of
/// what reading a large graph costs.
class TextOffsets {
 public:
  void push_back(std::size_t offset) {
    for (; offset >> 32 > turns_.size(); turns_.push_back(low_.size())) {
    }
    low_.push_back(static_cast<uint32_t>(offset));
  }
  std::size_t size() const { return low_.size(); }
  std::size_t operator[](std::size_t pos) const {
    std::size_t high = 0;
    while (high < turns_.size() && turns_[high] <= pos) ++high;
    return (high << 32) + low_[pos];
  }

 private:
  std::vector<uint32_t> low_;
  std::vector<std::size_t>
      turns_;  // the numbers of those from which on the higher half is one more
};

/// A graph being read. Edges are numbers of nodes that may not have been read yet.
struct GraphDraft {
  struct Dependency {
    std::size_t node;
    uint32_t other;
  };
  explicit GraphDraft(Graph* target) : graph(target) {}

  Graph* graph;
  std::vector<FlatEdge> edges;     // of all nodes in turn
  std::vector<uint32_t> edge_end;  // per node: one past its last edge
  std::vector<Dependency> control_deps;
  TextOffsets offsets;  // per node: its offset in the text
  std::vector<FlatEdge> heads;
  std::vector<uint32_t> arg_nodes;
  std::vector<uint32_t> row_ptr;
  std::vector<unsigned> uses;  // per node: its consumers, or those that know of it already
  std::vector<uint32_t> variables;
  NameTable names;        // of the variables
  std::size_t start = 0;  // offset of the graph in the text
  bool has_nodes = false;
  bool has_heads = false;
  bool has_arg_nodes = false;
  bool has_row_ptr = false;
  bool outputs_stated = false;  // by row_ptr
};

/// The members of a node's JSON object that mean something to the reader.
enum NodeMember {
  kMemberNone,  ///< before the first one
  kMemberOp,
  kMemberName,
  kMemberInputs,
  kMemberAttrs,
  kMemberAttr,
  kMemberParam,
  kMemberControlDeps,
  kMemberSubgraphs,
  kMemberSourceId,
  kMemberOther,
  kNodeMembers
};

/// The text between the values of two members of a node. Files repeat it, and the same bytes at
/// the same place of the grammar mean the same: they are compared instead of parsed.
class KnownTexts {
 public:
  KnownTexts() { std::memset(known_, 0, sizeof(known_)); }

  /// Moves over the text behind the value of a member if it is known. Returns the member whose
  /// value comes next, or kMemberOther. Members that were `seen` are not looked for.
  NodeMember skip(NodeMember last, const bool* seen, JsonReader* reader) const {
    const Known* const known = known_[last];
    for (int way = 0; way < kWays && known[way].size != 0; ++way) {
      const bool wanted = !seen[known[way].next];
      if (wanted && skipKnown(known[way].text, known[way].size, reader)) return known[way].next;
    }
    return kMemberOther;
  }
  void learn(NodeMember last, const char* text, std::size_t size, NodeMember next) {
    Known* const known = known_[last];
    for (int way = kWays - 1; way > 0; --way) known[way] = known[way - 1];
    known[0] = Known{text, size, next};
  }

 private:
  enum { kWays = 3 };
  struct Known {
    const char* text;
    std::size_t size;
    NodeMember next;
  };
  Known known_[kNodeMembers][kWays];
};

/// Attributes of nodes by the text of their JSON object. The layers of a model are of few kinds, so
/// that most such texts were read before. A later text may take the place of another.
class KnownAttributes {
 public:
  /// Returns a node with the attributes of the object at the beginning of a text, or null if the
  /// object was not read before. Sets its size, to 0 if it is never noted.
  const Node* find(const JsonReader::Slice& rest, std::size_t* size) {
    *size = objectSize(rest);
    if (*size == 0) return nullptr;
    if (slots_.empty()) slots_.resize(kSlots);
    slot_ = &slots_[smallHash(rest.data, *size)];
    if (slot_->size != *size || std::memcmp(slot_->text, rest.data, *size) != 0) return nullptr;
    std::size_t words = 0;
    return AttributeTexts(slot_->node->attrs).packed(&words) != nullptr ? slot_->node : nullptr;
  }
  /// Notes the object that was not found last. The node must keep its attributes.
  void learn(const char* text, std::size_t size, const Node* node) {
    *slot_ = Slot{text, size, node};
  }

 private:
  enum { kSlots = 512 };
  struct Slot {
    const char* text;
    std::size_t size;
    const Node* node;
  };
  /// Returns the size of an object at the beginning of a text, if it has no braces inside and is
  /// not large, and 0 otherwise.
  static std::size_t objectSize(const JsonReader::Slice& rest) {
    const std::size_t most = 4096;
    const void* const close = std::memchr(rest.data, '}', std::min(rest.size, most));
    if (close == nullptr) return 0;
    return static_cast<std::size_t>(static_cast<const char*>(close) - rest.data) + 1;
  }

  std::vector<Slot> slots_;
  Slot* slot_ = nullptr;
};

/// Reads NNVM's JSON into a Graph. Nested graphs are kept on a stack of their own. A host that
/// wants to know more about a graph overrides what is virtual.
class GraphReader : private ReaderParts {
 public:
  GraphReader(const char* text, std::size_t size, const JsonOptions& options)
      : ReaderParts(text, size, options) {}
  GraphReader(const GraphReader&) = delete;
  GraphReader& operator=(const GraphReader&) = delete;
  virtual ~GraphReader() {
    while (frame_ != nullptr) pop();
  }

  void read(Graph* graph) {
    push(graph);
    while (frame_ != nullptr) step();
    reader_.finish();
  }

 protected:
  /// Called for each node of a graph whose numbers of outputs are set, which are at hand.
  virtual void onNode(const Node& /*node*/) {}
  /// Called when a graph has all its edges. `ordered`: every producer comes before its consumers.
  virtual void onGraph(const GraphDraft& /*draft*/, bool /*ordered*/) {}

 private:
  enum State { kGraphKeys, kNodeList, kNodeKeys, kSubgraphList };
  struct Frame {
    explicit Frame(Graph* graph) : draft(graph) {}
    GraphDraft draft;
    State state = kGraphKeys;
    bool first_key = true;
    bool first_node = true;
    bool first_field = true;
    bool first_subgraph = true;
    Node* node = nullptr;
    NodeMember member = kMemberNone;    // the last one read
    bool seen[kNodeMembers] = {false};  // of the node
    JsonTree attrs{mxnet::ext::MAP};
    JsonTree extra{mxnet::ext::MAP};  // of the node
    int attribute_objects = 0;
    Frame* outer = nullptr;
  };

  void push(Graph* graph) {
    reader_.peek();
    Frame* const frame = new Frame(graph);
    frame->draft.start = reader_.offset();
    frame->outer = frame_;
    frame_ = frame;
    reader_.beginObject();
  }

  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }

  void step() {
    Frame& frame = *frame_;
    JsonReader::Slice key;
    switch (frame.state) {
      case kGraphKeys:
        if (reader_.nextKey(&frame.first_key, &key)) {
          readGraphMember(&frame, key);
        } else {
          keepOthers(&frame.attrs, frame.draft.graph);
          finishGraph(&frame.draft);
          pop();
        }
        break;
      case kNodeList:
        if (reader_.nextItem(&frame.first_node)) {
          beginNode(&frame);
        } else {
          frame.state = kGraphKeys;
        }
        break;
      case kNodeKeys:
        if (nextMember(&frame, &key)) {
          readNodeMember(&frame, key);
        } else {
          finishNode(&frame);
          frame.state = kNodeList;
        }
        break;
      case kSubgraphList:
        if (reader_.nextItem(&frame.first_subgraph)) {
          frame.node->subgraphs.push_back(nullptr);
          push(frame.node->subgraphs.back() = new Graph());
        } else {
          frame.state = kNodeKeys;
        }
        break;
    }
  }

  void once(bool* seen, const char* key) const {
    if (*seen) failTwice(key);
    *seen = true;
  }

  void readGraphMember(Frame* frame, const JsonReader::Slice& key) {
    GraphDraft& draft = frame->draft;
    if (key == "nodes") {
      once(&draft.has_nodes, "nodes");
      reader_.beginList();
      frame->state = kNodeList;
    } else if (key == "heads") {
      once(&draft.has_heads, "heads");
      readEntries("head", &draft.heads);
    } else if (key == "arg_nodes") {
      once(&draft.has_arg_nodes, "arg_nodes");
      readIntegers("node number", &draft.arg_nodes);
    } else if (key == "node_row_ptr") {
      once(&draft.has_row_ptr, "node_row_ptr");
      readIntegers("row pointer", &draft.row_ptr);
    } else {
      readOther(key, &frame->attrs);
    }
  }

  void beginNode(Frame* frame) {
    reader_.peek();
    frame->draft.offsets.push_back(reader_.offset());
    reader_.beginObject();
    Graph* graph = frame->draft.graph;
    graph->nodes.push_back(nullptr);
    graph->nodes.back() = frame->node = new Node();
    frame->state = kNodeKeys;
    frame->first_field = true;
    frame->first_subgraph = true;
    frame->member = kMemberNone;
    std::memset(frame->seen, 0, sizeof(frame->seen));
    frame->attribute_objects = 0;
  }

  /// Moves to the value of the next member of a node, of which `key` is set for a kMemberOther
  /// alone. Returns false at the closing brace.
  bool nextMember(Frame* frame, JsonReader::Slice* key) {
    const NodeMember last = frame->member;
    frame->member = known_texts_.skip(last, frame->seen, &reader_);
    frame->first_field = frame->first_field && frame->member == kMemberOther;
    if (frame->member == kMemberOther) {
      const JsonReader::Slice rest = reader_._rest();
      if (!reader_.nextKey(&frame->first_field, key)) return false;
      frame->member = memberOf(*key);
      if (frame->member == kMemberOther) return true;
      // MXNet 0.8 wrote backward_source_id, unused since, which may be repeated.
      if (frame->member == kMemberSourceId) return true;
      once(&frame->seen[frame->member], nameOf(frame->member));
      reader_.peek();
      known_texts_.learn(last, rest.data, rest.size - reader_._rest().size, frame->member);
    }
    frame->seen[frame->member] = true;
    return true;
  }

  static const char* nameOf(NodeMember member) {
    static const char* const names[] = {
        "",     "op",    "name",         "inputs",    "attrs",
        "attr", "param", "control_deps", "subgraphs", "backward_source_id"};
    return names[member];
  }

  static NodeMember memberOf(const JsonReader::Slice& key) {
    for (int member = kMemberOp; member < kMemberOther; ++member) {
      if (key == nameOf(static_cast<NodeMember>(member))) return static_cast<NodeMember>(member);
    }
    return kMemberOther;
  }

  void readNodeMember(Frame* frame, const JsonReader::Slice& key) {
    Node* node = frame->node;
    bool first = true;
    const NodeMember member = frame->member;
    switch (member) {
      case kMemberOp:
        readText(&node->op);
        break;
      case kMemberName:
        readText(&node->name);
        break;
      case kMemberInputs:
        readEntries("input", &frame->draft.edges);
        break;
      case kMemberAttrs:
      case kMemberAttr:
      case kMemberParam:
        // Three spellings from three generations of files. MXNet 0.8 writes both "param" and
        // "attr"; "attr" takes precedence.
        readAttributes(frame, member == kMemberParam);
        break;
      case kMemberControlDeps:
        reader_.beginList();
        while (reader_.nextItem(&first)) {
          frame->draft.control_deps.push_back(GraphDraft::Dependency{
              frame->draft.graph->nodes.size() - 1,
              static_cast<uint32_t>(reader_.readInteger("node number", 0, kIntMax))});
        }
        break;
      case kMemberSubgraphs:
        reader_.beginList();
        frame->state = kSubgraphList;
        break;
      case kMemberSourceId:
        reader_.readInteger("backward_source_id", -1, kIntMax);
        break;
      default:
        readOther(key, &frame->extra);
    }
  }

  void readAttributes(Frame* frame, bool give_way) {
    Node* node = frame->node;
    const bool only_one = frame->attribute_objects++ == 0;
    reader_.peek();
    const JsonReader::Slice rest = reader_._rest();
    std::size_t size = 0;
    const bool may_know = only_one && reader_._mayEnter();
    const Node* const known = may_know ? known_attributes_.find(rest, &size) : nullptr;
    if (known != nullptr) {
      node->attrs = known->attrs;
      reader_._skip(size);
      return;
    }
    parseAttributes(node, only_one, give_way);
    const bool learns = size != 0 && rest.size - reader_._rest().size == size;
    if (learns && AttributeTexts(node->attrs).packed(&size) != nullptr) {
      known_attributes_.learn(rest.data, rest.size - reader_._rest().size, node);
    }
  }

  /// Moves to the next item of a list of numbers, or of lists of them.
  bool nextItem(bool* first, JsonReader::Slice* between) {
    const bool learn = !*first;
    if (learn && between->size != 0 && skipKnown(between->data, between->size, &reader_))
      return true;
    const JsonReader::Slice rest = reader_._rest();
    if (!reader_.nextItem(first)) return false;
    if (learn) *between = JsonReader::Slice{rest.data, rest.size - reader_._rest().size};
    return true;
  }

  void readIntegers(const char* what, std::vector<uint32_t>* values) {
    bool first = true;
    int plain = 0;
    reader_.beginList();
    while (nextItem(&first, &between_numbers_)) {
      if (!readDigits(&reader_, &plain)) {
        plain = static_cast<int>(reader_.readInteger(what, 0, kIntMax));
      }
      values->push_back(static_cast<uint32_t>(plain));
    }
  }

  void readEntries(const char* what, std::vector<FlatEdge>* edges) {
    bool first = true;
    int plain[3];
    reader_.beginList();
    while (nextItem(&first, &between_entries_)) {
      edges->push_back(readTuple(&reader_, plain, 3)
                           ? FlatEdge{static_cast<uint32_t>(plain[0]), plain[1], plain[2]}
                           : readEntry(what));
    }
  }

  void finishNode(Frame* frame) const {
    if (frame->extra.size() > 1) keepOthers(&frame->extra, frame->node);
    const char* missing = nullptr;
    for (int member = kMemberInputs; member >= kMemberOp; --member) {
      if (!frame->seen[member]) missing = nameOf(static_cast<NodeMember>(member));
    }
    const std::size_t place = frame->draft.offsets[frame->draft.offsets.size() - 1];
    if (missing != nullptr && frame->seen[kMemberName]) {
      reader_.fail(mxnet::ext::kJsonMissingKey,
                   printed("node '%s' has no '%s'", frame->node->name.c_str(), missing), place);
    }
    if (missing != nullptr) {
      reader_.fail(mxnet::ext::kJsonMissingKey,
                   printed("node number %zu has no '%s'", frame->draft.offsets.size() - 1, missing),
                   place);
    }
    std::vector<uint32_t>& ends = frame->draft.edge_end;
    const std::size_t first = ends.empty() ? 0 : ends.back();
    const std::size_t end = frame->draft.edges.size();
    if (end > std::numeric_limits<uint32_t>::max()) {
      reader_.fail(mxnet::ext::kJsonRange, "the graph has more than 4294967295 edges", place);
    }
    ends.push_back(static_cast<uint32_t>(end));
    if (frame->node->op == "null") {
      frame->draft.graph->inputs.push_back(frame->node);
      frame->draft.names.add(frame->node->name);
      frame->draft.variables.push_back(static_cast<uint32_t>(frame->draft.offsets.size() - 1));
    }
    if (end > first) frame->node->inputs.resize(end - first);  // next to the node: walks read both
  }

  void finishGraph(GraphDraft* draft) {
    const char* const missing = !draft->has_nodes       ? "nodes"
                                : !draft->has_arg_nodes ? "arg_nodes"
                                : !draft->has_heads     ? "heads"
                                                        : nullptr;
    if (missing != nullptr) {
      reader_.fail(mxnet::ext::kJsonMissingKey, printed("the graph has no '%s'", missing),
                   draft->start);
    }
    const bool ordered = linkNodes(draft);
    checkVariables(*draft);
    draft->graph->outputs.resize(draft->heads.size());
    for (std::size_t pos = 0; pos < draft->heads.size(); ++pos) {
      const FlatEdge& head = draft->heads[pos];
      if (!inRange(*draft, head)) failEdge(*draft, head, printed("head %zu", pos), draft->start);
      draft->graph->outputs[pos] =
          NodeEntry(draft->graph->nodes[head.node], head.entry, head.version);
    }
    onGraph(*draft, ordered);
    if (ordered) return;
    try {
      const std::vector<Node*>& nodes = draft->graph->nodes;
      std::vector<Node*> order;
      orderNodes(nodes.data(), nodes.size(), NodeTable(nodes), &order);
    } catch (const GraphStructureError& error) {
      reader_.fail(mxnet::ext::kJsonCycle, error.what(), draft->start);
    }
  }

  /// Sets the numbers of outputs, both sides of every edge, and the control dependencies. Returns
  /// whether every producer comes before its consumers. Then it takes one walk: in a large graph,
  /// walks wait for memory.
  bool linkNodes(GraphDraft* draft) {
    const std::size_t count = draft->graph->nodes.size();
    checkRows(draft);
    bool ordered = countUses(draft);
    if (ordered) {
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::num_outputs);
        makeOutputs(draft, pos);
        linkInputs(draft, pos);
      }
    } else {
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::num_outputs);
        makeOutputs(draft, pos);
      }
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::outputs);
        linkInputs(draft, pos);
      }
    }
    for (const GraphDraft::Dependency& dep : draft->control_deps) {
      Node* node = draft->graph->nodes[dep.node];
      const FlatEdge edge = {dep.other, 0, 0};
      if (!inRange(*draft, edge)) {
        failEdge(*draft, edge, printed("a control dependency of node '%s'", node->name.c_str()),
                 draft->offsets[dep.node]);
      }
      node->control_deps.push_back(draft->graph->nodes[dep.other]);
      ordered = ordered && dep.other < dep.node;
    }
    return ordered;
  }

  void checkRows(GraphDraft* draft) const {
    const std::vector<Node*>& nodes = draft->graph->nodes;
    const std::vector<uint32_t>& ptr = draft->row_ptr;
    // MXNet's lib_api writes 0..n-1: one number too few, and one output per node.
    draft->outputs_stated = draft->has_row_ptr && ptr.size() != nodes.size();
    if (!draft->outputs_stated) return;
    if (ptr.size() != nodes.size() + 1 || ptr[0] != 0) {
      reader_.fail(mxnet::ext::kJsonRange,
                   "node_row_ptr must begin with 0 and have one number more than there are nodes",
                   draft->start);
    }
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      if (ptr[pos + 1] >= ptr[pos]) continue;
      reader_.fail(mxnet::ext::kJsonRange,
                   printed("node_row_ptr decreases at node '%s'", nodes[pos]->name.c_str()),
                   draft->start);
    }
  }

  /// Counts the consumers of every node. Returns whether each input comes from a node before.
  static bool countUses(GraphDraft* draft) {
    const std::size_t count = draft->graph->nodes.size();
    bool ordered = true;
    std::size_t next = 0;
    draft->uses.resize(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (; next < draft->edge_end[pos]; ++next) {
        const uint32_t producer = draft->edges[next].node;
        if (producer < count) ++draft->uses[producer];
        ordered = ordered && producer < pos;
      }
    }
    return ordered;
  }

  /// Sets the number of outputs of a node, and makes room for its consumers.
  void makeOutputs(GraphDraft* draft, std::size_t pos) {
    Node* const node = draft->graph->nodes[pos];
    const std::vector<uint32_t>& ptr = draft->row_ptr;
    if (draft->outputs_stated)
      mxnet::ext::host::declareOutputs(node, static_cast<int>(ptr[pos + 1] - ptr[pos]));
    node->outputs.resize(draft->uses[pos]);
    draft->uses[pos] = 0;
    onNode(*node);
  }

  /// Sets both sides of the edges to a node, whose producers have room.
  void linkInputs(GraphDraft* draft, std::size_t pos) const {
    Node* const* const nodes = draft->graph->nodes.data();
    Node* const node = nodes[pos];
    const std::size_t first = pos == 0 ? 0 : draft->edge_end[pos - 1];
    NodeEntry* const inputs = node->inputs.data();
    for (std::size_t next = first; next < draft->edge_end[pos]; ++next) {
      const FlatEdge& edge = draft->edges[next];
      const std::size_t slot = next - first;
      if (!inRange(*draft, edge)) {
        failEdge(*draft, edge, printed("input %zu of node '%s'", slot, node->name.c_str()),
                 draft->offsets[pos]);
      }
      Node* const producer = nodes[edge.node];
      inputs[slot] = NodeEntry(producer, edge.entry, edge.version);
      producer->outputs[draft->uses[edge.node]++] = NodeEntry(node, static_cast<int>(slot));
    }
  }

  [[noreturn]] void failEdge(const GraphDraft& draft, const FlatEdge& edge, const std::string& what,
                             std::size_t place) const {
    const std::vector<Node*>& nodes = draft.graph->nodes;
    if (edge.node >= nodes.size()) {
      reader_.fail(mxnet::ext::kJsonRange,
                   printed("%s refers to node %u, but there are %zu nodes", what.c_str(),
                           static_cast<unsigned>(edge.node), nodes.size()),
                   place);
    }
    const Node* node = nodes[edge.node];
    reader_.fail(mxnet::ext::kJsonRange,
                 printed("%s refers to output %d of node '%s', which has %d", what.c_str(),
                         edge.entry, node->name.c_str(), node->num_outputs),
                 place);
  }

  static bool inRange(const GraphDraft& draft, const FlatEdge& edge) {
    if (edge.node >= draft.graph->nodes.size()) return false;
    const int outputs = draft.graph->nodes[edge.node]->num_outputs;
    return outputs <= 0 || edge.entry < outputs;
  }

  void checkVariables(const GraphDraft& draft) const {
    const Graph* graph = draft.graph;
    const std::size_t repeated = draft.names.repeated(graph->inputs);
    if (repeated < graph->inputs.size()) {
      const Node* node = graph->inputs[repeated];
      std::size_t place = 0;
      while (graph->nodes[place] != node) ++place;
      reader_.fail(mxnet::ext::kJsonDuplicateName,
                   printed("two variables are named '%s'", node->name.c_str()),
                   draft.offsets[place]);
    }
    for (std::size_t pos = 0; pos < draft.arg_nodes.size(); ++pos) {
      const uint32_t number = draft.arg_nodes[pos];
      if (pos < draft.variables.size() && draft.variables[pos] == number) continue;
      const FlatEdge edge = {number, 0, 0};
      if (!inRange(draft, edge)) failEdge(draft, edge, "arg_nodes", draft.start);
      const Node* node = graph->nodes[number];
      if (node->op == "null") continue;
      reader_.fail(mxnet::ext::kJsonType,
                   printed("arg_nodes lists node '%s', which is not a variable but '%s'",
                           node->name.c_str(), node->op.c_str()),
                   draft.start);
    }
  }

  KnownTexts known_texts_;
  // The text between two items of a list.
  JsonReader::Slice between_numbers_{"", 0};
  JsonReader::Slice between_entries_{"", 0};
  KnownAttributes known_attributes_;
  Frame* frame_ = nullptr;  // of the innermost graph
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_GRAPH_READER_H_
