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
