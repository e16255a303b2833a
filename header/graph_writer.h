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
