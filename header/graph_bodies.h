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
