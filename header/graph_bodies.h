// ---- the graph: structure ----------------------------------------------------------------------

namespace detail {

inline bool AddressTable::add(const void* address) {
  addresses_.push(address);
  if (addresses_.size() * 2 > mask_ + 1) {
    reserve(addresses_.size());
    for (std::size_t pos = 0; pos + 1 < addresses_.size(); ++pos) insert(pos);
  }
  if (insert(addresses_.size() - 1)) return true;
  addresses_.pop();
  return false;
}

inline void AddressTable::removeLast() {
  // No later one was put behind it, since later ones are gone.
  std::size_t slot = home(addresses_.back());
  while (slots_[slot].next != addresses_.size()) slot = (slot + 1) & mask_;
  slots_[slot] = Slot{0, 0};
  addresses_.pop();
}

inline void AddressTable::reserve(std::size_t count) {
  mask_ = 31;
  shift_ = 63;
  for (; mask_ + 1 < count * 2; --shift_) mask_ = mask_ * 2 + 1;
  if (addresses_.size() < count) addresses_.reserve(count - addresses_.size());
  slots_.clear();
  slots_.addZeros(mask_ + 1);
}

inline bool AddressTable::insert(std::size_t position) {
  const void* const address = addresses_[position];
  Slot wanted = slotFor(address);
  wanted.next = static_cast<uint32_t>(position + 1);
  std::size_t slot = home(address);
  for (; slots_[slot].next != 0; slot = (slot + 1) & mask_) {
    if (slots_[slot].tag == wanted.tag && addresses_[slots_[slot].next - 1] == address) {
      return false;
    }
  }
  slots_[slot] = wanted;
  return true;
}

}  // namespace detail

inline NodeTable::NodeTable(Node* const* nodes, std::size_t count) : table_(count) {
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (nodes[pos] == nullptr) detail::failGraph("node number %zu is null", pos);
    if (pos + 16 < count) table_.prefetch(nodes[pos + 16]);
    add(nodes[pos]);
  }
}

inline std::size_t NodeTable::add(const Node* node) {
  if (!table_.add(node)) detail::failGraph("node '%s' is listed twice", node->name.c_str());
  return table_.size() - 1;
}

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
inline std::string describeCycle(const PlainList<Node*>& path, std::size_t start) {
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
                       PlainList<Node*>* order) {
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
  marks.addZeros(count);
  order->reserve(count);
  PlainList<Node*> path;  // the current node and those that depend on it
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
        path.push(nodes[enter]);
        places.push(Place{enter, 0});
      } else if (marks[enter] == kWaiting) {
        std::size_t start = 0;
        while (places[start].position != enter) ++start;
        failGraph("%s", describeCycle(path, start).c_str());
      }
      while (!path.empty() && places.back().next == countDependencies(*path.back())) {
        marks[places.back().position] = kDone;
        order->push(path.back());
        path.pop();
        places.pop();
      }
      if (path.empty()) break;
      enter = dependency(*path.back(), places.back().next++, table);
    }
  }
  return true;
}

}  // namespace detail

PASSLIB_DEMANDED std::vector<Node*> sortNodes(const std::vector<Node*>& nodes,
                                              const NodeTable& table) {
  detail::PlainList<Node*> order;
  if (!detail::orderNodes(nodes.data(), nodes.size(), table, &order)) return nodes;
  return std::vector<Node*>(order.begin(), order.end());
}

inline Graph::~Graph() {
  // Subgraphs are emptied one by one, and two nodes may point to the same one. A node that faulty
  // passes listed twice is deleted once: all lists are read before the first node is deleted.
  detail::GraphTable graphs;
  graphs.add(this);
  for (std::size_t pos = 0; pos < graphs.size(); ++pos) {
    std::vector<Node*>* const lists[] = {&graphs[pos]->nodes, &graphs[pos]->removed_};
    for (std::vector<Node*>* list : lists) {
      for (Node*& node : detail::span(*list)) {
        if (node != nullptr && (node->declared_op_ & Node::kDoomed) != 0) node = nullptr;
        if (node == nullptr) continue;
        node->declared_op_ |= Node::kDoomed;
        for (Graph* subgraph : detail::span(node->subgraphs)) {
          if (subgraph != nullptr) graphs.add(subgraph);
        }
      }
    }
  }
  for (std::size_t pos = 0; pos < graphs.size(); ++pos) {
    std::vector<Node*>* const lists[] = {&graphs[pos]->nodes, &graphs[pos]->removed_};
    for (std::vector<Node*>* list : lists) {
      for (Node* node : detail::span(*list)) delete node;
      list->clear();
    }
  }
  for (std::size_t pos = 1; pos < graphs.size(); ++pos) delete graphs[pos];
}

PASSLIB_END_CODE

inline Graph* Graph::fromString(const char* text, std::size_t size, const JsonOptions& options) {
  detail::Owner<Graph> graph(new Graph());
  detail::TextReader(text, size, options).read(graph.get());
  return graph.release();
}

PASSLIB_DEMANDED Graph* Graph::fromString(const std::string& json) {
  return fromString(json.data(), json.size(), JsonOptions());
}

PASSLIB_DEMANDED Graph* Graph::fromJson(const JsonVal& val) { return fromString(val.dump()); }

inline std::string Graph::toString() const {
  detail::TextBuffer out;
  detail::GraphWriter(false, &out).write(*this, attrs);
  return out.str();
}

PASSLIB_DEMANDED JsonVal Graph::toJson() const { return JsonVal::parse(toString()); }

PASSLIB_DEMANDED void Graph::writePretty(std::string* out) const {
  detail::TextBuffer text;
  detail::GraphWriter(true, &text).write(*this, attrs);
  out->append(text.str());
}

PASSLIB_DEMANDED Node* Graph::addNode(const std::string& name, const std::string& op) {
  Node*& node = detail::append(&nodes);
  node = new Node();
  node->name = name;
  node->op = op;
  return node;
}

namespace detail {

/// Removes the edge (consumer, slot) from the producer's list.
PASSLIB_ON_DEMAND void dropConsumer(Node* producer, const Node* consumer, int slot) {
  std::vector<NodeEntry>& outputs = producer->outputs;
  for (auto use = outputs.begin(); use != outputs.end(); ++use) {
    if (use->node != consumer || use->entry != slot) continue;
    outputs.erase(use);
    return;
  }
}

}  // namespace detail

PASSLIB_DEMANDED void Graph::connect(Node* producer, int producer_output, Node* consumer,
                                     int consumer_input) {
  if (producer == nullptr || consumer == nullptr) {
    throw std::invalid_argument(std::string("connect: there is no ") +
                                (producer == nullptr ? "producer" : "consumer"));
  }
  const int count = static_cast<int>(consumer->inputs.size());
  if (consumer_input < 0 || consumer_input > count || producer_output < 0) {
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

PASSLIB_DEMANDED std::size_t Graph::replace(const NodeEntry& from, const NodeEntry& target) {
  if (from.node == nullptr || target.node == nullptr) {
    throw std::invalid_argument(std::string("replace: there is no node to replace") +
                                (from.node == nullptr ? "" : " it by"));
  }
  std::size_t uses = 0;
  std::vector<NodeEntry> kept;
  std::vector<NodeEntry> moved;
  for (const NodeEntry& use : from.node->outputs) {
    if (use.node == nullptr) continue;
    NodeEntry& input = use.node->inputs.at(static_cast<std::size_t>(use.entry));
    if (use.node == target.node || input.node != from.node || input.entry != from.entry) {
      kept.push_back(use);
      continue;
    }
    input = target;
    moved.push_back(use);
    ++uses;
  }
  from.node->outputs.swap(kept);
  target.node->outputs.insert(target.node->outputs.end(), moved.begin(), moved.end());
  for (NodeEntry& head : outputs) {
    if (head.node != from.node || head.entry != from.entry) continue;
    head = target;
    ++uses;
  }
  return uses;
}

namespace detail {

/// Order of pointers, for qsort and bsearch.
template <typename Object>
int compareAddresses(const void* left, const void* right) {
  const std::less<const Object*> less = {};
  const Object* const first = *static_cast<const Object* const*>(left);
  const Object* const second = *static_cast<const Object* const*>(right);
  return less(first, second) ? -1 : less(second, first) ? 1 : 0;
}

/// Takes items out of a list, whose others keep their order.
template <typename Item, typename Unwanted>
void dropIf(std::vector<Item>* list, Unwanted unwanted) {
  std::size_t kept = 0;
  for (std::size_t pos = 0; pos < list->size(); ++pos) {
    if (!unwanted((*list)[pos])) (*list)[kept++] = (*list)[pos];
  }
  list->resize(kept);
}

/// Sorts nodes by address, and drops repetitions.
PASSLIB_ON_DEMAND void keepDistinct(std::vector<Node*>* nodes) {
  if (!nodes->empty()) qsort(nodes->data(), nodes->size(), sizeof(Node*), &compareAddresses<Node>);
  Node* last = nullptr;
  dropIf(nodes, [&last](Node* node) {
    const bool again = node == last && node != nullptr;
    last = node;
    return again;
  });
}

}  // namespace detail

PASSLIB_DEMANDED void Graph::removeNodes(const std::vector<Node*>& unwanted) {
  std::vector<Node*> once(unwanted);
  detail::keepDistinct(&once);
  if (!once.empty() && once[0] == nullptr) {
    throw std::invalid_argument("removeNode: there is no node");
  }
  const NodeTable gone(once);
  const auto is_gone = [&](const Node* node) { return gone.find(node) >= 0; };
  const auto edge_gone = [&](const NodeEntry& edge) { return is_gone(edge.node); };
  std::vector<Node*> removed;
  for (Node* node : nodes) {
    if (is_gone(node)) removed.push_back(node);
  }
  if (removed.size() != once.size()) {
    throw std::invalid_argument("removeNode: the node is not in this graph");
  }
  removed_.insert(removed_.end(), removed.begin(), removed.end());
  detail::dropIf(&nodes, is_gone);
  detail::dropIf(&inputs, is_gone);
  detail::dropIf(&outputs, edge_gone);

  std::vector<Node*> producers;  // nodes that stay, but lose consumers
  std::vector<Node*> consumers;  // nodes that stay, but lose inputs
  for (Node* node : once) {
    for (const NodeEntry& input : node->inputs) {
      if (input.node != nullptr && !is_gone(input.node)) producers.push_back(input.node);
    }
    for (const NodeEntry& use : node->outputs) {
      if (use.node != nullptr && !is_gone(use.node)) consumers.push_back(use.node);
    }
  }
  detail::keepDistinct(&producers);
  detail::keepDistinct(&consumers);
  for (Node* node : producers) {
    detail::dropIf(&node->outputs, edge_gone);
  }
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
  for (Node* node : nodes) {
    detail::dropIf(&node->control_deps, is_gone);
  }
  for (Node* node : unwanted) {
    node->inputs.clear();
    node->outputs.clear();
    node->control_deps.clear();
  }
}

PASSLIB_DEMANDED void Graph::_dfs_util(Node* start, std::unordered_set<Node*>* to_visit,
                                       std::function<void(Node*)> handler) const {
  struct Step {
    Node* node;
    std::size_t next;  // consumer
  };
  PASSLIB_LATER(std::unordered_set<Node*>)* const left = to_visit;
  detail::PlainList<Step> path;
  path.push(Step{start, 0});
  left->erase(start);
  while (!path.empty()) {
    Node* node = path.back().node;
    if (path.back().next < node->outputs.size()) {
      Node* consumer = node->outputs[path.back().next++].node;
      if (left->erase(consumer) != 0) path.push(Step{consumer, 0});
    } else {
      path.pop();
      handler(node);
    }
  }
}

PASSLIB_DEMANDED void Graph::DFS(std::function<void(Node*)> handler) const {
  PASSLIB_LATER(std::unordered_set<Node*>) to_visit(nodes.begin(), nodes.end());
  for (const std::vector<Node*>* roots : {&inputs, &nodes}) {
    for (Node* root : *roots) {
      if (to_visit.count(root) != 0) _dfs_util(root, &to_visit, handler);
    }
  }
}

PASSLIB_DEMANDED std::vector<Node*> Graph::topological_sort() const {
  std::vector<Node*> order;
  order.reserve(nodes.size());
  DFS([&order](Node* node) { order.push_back(node); });
  return order;
}

PASSLIB_DEMANDED std::vector<Node*> Graph::sorted() const {
  return sortNodes(nodes, NodeTable(nodes));
}

PASSLIB_DEMANDED void Graph::print(int indent) const {
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

PASSLIB_DEMANDED const JsonVal& Graph::getAttr(const std::string& key) const {
  const auto found = attrs.find(key);
  if (found == attrs.end()) {
    throw std::out_of_range("the graph has no attribute " + detail::quoted(key));
  }
  return found->second;
}

namespace detail {

/// Calls `enter` once for a graph and each of its subgraphs, and then `visit` for its nodes.
template <typename Enter, typename Visit>
void forEachNode(Graph* root, Enter enter, Visit visit) {
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
      for (Graph* subgraph : span(node->subgraphs)) {
        if (subgraph != nullptr) graphs.add(subgraph);
      }
    }
  }
}

/// Calls `visit` once for a graph and each of its subgraphs.
template <typename Visit>
void forEachGraph(Graph* root, Visit visit) {
  forEachNode(root, visit, [](Graph*, Node*) {});
}

}  // namespace detail

PASSLIB_SMALL_CODE

namespace detail {

/// The parameter that a variable stands for: in the subgraphs of partitioners, variables have new
/// names and attributes with the name of their parameter. `copy` holds what is not the node's name.
inline const std::string& paramName(const Node& node, std::string* copy) {
  if (node.attrs.size() < 2 || !node.attrs._get("isArg", copy) || *copy != "True") return node.name;
  return node.attrs._get("argName", copy) ? *copy : node.name;
}

inline void ParamTable::assign(const std::vector<Node*>& variables) {
  std::size_t next = 0;
  std::string copy;
  for (Node* node : span(variables)) {
    if (next == names_.size()) return;
    if (paramName(*node, &copy) == names_[next].name) lend(names_[next++].tensor, node);
  }
  if (next == names_.size()) return;
  qsort(names_.begin(), names_.size(), sizeof(Named), &compare);
  for (Node* node : span(variables)) {
    const std::string& name = paramName(*node, &copy);
    const Named wanted = {name.c_str(), nullptr};
    const void* const found =
        strlen(wanted.name) != name.size()
            ? nullptr
            : bsearch(&wanted, names_.begin(), names_.size(), sizeof(Named), &compare);
    if (found != nullptr) lend(static_cast<const Named*>(found)->tensor, node);
  }
}

}  // namespace detail

inline void Graph::_setParams(detail::ParamTable* args, detail::ParamTable* aux) {
  aux->assign(inputs);
  args->assign(inputs);  // of a name in both, the argument
}

inline void Graph::_endPass() {
  detail::forEachNode(this, [](Graph*) {}, [](Graph*, Node* node) { node->tensor = nullptr; });
}

PASSLIB_END_CODE
