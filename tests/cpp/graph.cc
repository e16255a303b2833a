// Graph: edits, orders, text.
#include "check.h"
#include "header.h"

using namespace mxnet::ext;

namespace {

/// data -> a -> b -> c, and data -> c.
struct Chain {
  Graph graph;
  Node* data = graph.addNode("data", "null");
  Node* a = graph.addNode("a", "relu");
  Node* b = graph.addNode("b", "_copy");
  Node* c = graph.addNode("c", "broadcast_add");
  Chain() {
    graph.inputs.push_back(data);
    graph.connect(data, 0, a, 0);
    graph.connect(a, 0, b, 0);
    graph.connect(b, 0, c, 0);
    graph.connect(data, 0, c, 1);
    graph.outputs.push_back(NodeEntry(c, 0));
  }
};

std::string edges(const Graph& graph) {
  std::string text;
  for (const Node* node : graph.nodes) {
    for (const NodeEntry& input : node->inputs) {
      text += input.node->name + std::to_string(input.entry) + ">" + node->name + " ";
    }
  }
  return text;
}

std::string names(const std::vector<Node*>& nodes) {
  std::string text;
  for (const Node* node : nodes) text += node->name + " ";
  return text;
}

std::unique_ptr<Graph> read(const std::string& text) {
  return std::unique_ptr<Graph>(Graph::fromString(text));
}

}  // namespace

TEST(graph_connect_replaces_an_input) {
  Chain chain;
  chain.graph.connect(chain.a, 0, chain.c, 0);
  CHECK_EQUAL(edges(chain.graph), "data0>a a0>b a0>c data0>c ");
  CHECK(chain.b->outputs.empty());
  CHECK_EQUAL(chain.a->outputs.size(), std::size_t(2));
}

TEST(graph_connect_refuses_a_gap) {
  Chain chain;
  CHECK_THROWS(chain.graph.connect(chain.a, 0, chain.c, 3), std::out_of_range, "'c' has 2 inputs");
  CHECK_THROWS(chain.graph.connect(chain.a, 0, chain.c, -1), std::out_of_range, "no input -1");
  CHECK_THROWS(chain.graph.connect(chain.a, -1, chain.c, 0), std::out_of_range, "");
  CHECK_EQUAL(edges(chain.graph), "data0>a a0>b b0>c data0>c ");
}

TEST(graph_replace_moves_all_uses) {
  Chain chain;
  chain.graph.outputs.push_back(NodeEntry(chain.b, 0));
  CHECK_EQUAL(chain.graph.replace(NodeEntry(chain.b, 0), NodeEntry(chain.a, 0)), std::size_t(2));
  CHECK_EQUAL(edges(chain.graph), "data0>a a0>b a0>c data0>c ");
  CHECK(chain.graph.outputs[1] == NodeEntry(chain.a, 0));
  CHECK(chain.b->outputs.empty());
}

TEST(graph_replace_heeds_the_output_number) {
  Chain chain;
  CHECK_EQUAL(chain.graph.replace(NodeEntry(chain.b, 1), NodeEntry(chain.a, 0)), std::size_t(0));
  CHECK_EQUAL(edges(chain.graph), "data0>a a0>b b0>c data0>c ");
}

TEST(graph_replace_puts_a_node_behind_another) {
  Chain chain;
  Node* behind = chain.graph.addNode("behind", "relu");
  chain.graph.connect(chain.c, 0, behind, 0);
  CHECK_EQUAL(chain.graph.replace(NodeEntry(chain.c, 0), NodeEntry(behind, 0)), std::size_t(1));
  CHECK(chain.graph.outputs[0].node == behind);
  CHECK(behind->inputs[0].node == chain.c);
}

TEST(graph_replace_within_one_node) {
  Chain chain;
  CHECK_EQUAL(chain.graph.replace(NodeEntry(chain.a, 0), NodeEntry(chain.a, 1)), std::size_t(1));
  CHECK_EQUAL(edges(chain.graph), "data0>a a1>b b0>c data0>c ");
  CHECK_EQUAL(chain.a->outputs.size(), std::size_t(1));
}

TEST(graph_remove_takes_edges_along) {
  Chain chain;
  chain.graph.outputs.push_back(NodeEntry(chain.b, 0));
  chain.c->control_deps.push_back(chain.b);
  chain.graph.removeNode(chain.b);
  CHECK_EQUAL(edges(chain.graph), "data0>a data0>c ");
  CHECK(chain.a->outputs.empty() && chain.c->control_deps.empty());
  CHECK_EQUAL(chain.graph.outputs.size(), std::size_t(1));
  CHECK_EQUAL(chain.data->outputs[1].entry, 0);  // the input moved up
  CHECK_THROWS(chain.graph.removeNode(chain.b), std::invalid_argument, "not in this graph");
}

TEST(graph_remove_a_variable) {
  Chain chain;
  chain.graph.removeNode(chain.data);
  CHECK(chain.graph.inputs.empty());
  CHECK_EQUAL(edges(chain.graph), "a0>b b0>c ");
}

TEST(graph_remove_everything_at_once) {
  Chain chain;
  chain.graph.removeNodes(chain.graph.nodes);
  CHECK_EQUAL(chain.graph.size(), std::size_t(0));
  CHECK(chain.graph.outputs.empty());
}

TEST(graph_orders) {
  Chain chain;
  std::reverse(chain.graph.nodes.begin(), chain.graph.nodes.end());
  CHECK_EQUAL(names(chain.graph.sorted()), "data a b c ");
  CHECK_EQUAL(names(chain.graph.topological_sort()), "c b a data ");
  chain.a->control_deps.push_back(chain.c);
  CHECK_THROWS(chain.graph.sorted(), GraphStructureError, "cycle");
  CHECK_THROWS(chain.graph.toString(), GraphStructureError, "'a'");
}

TEST(graph_keeps_an_order_that_is_topological) {
  Graph graph;
  Node* const first = graph.addNode("first", "null");
  Node* const second = graph.addNode("second", "null");
  graph.connect(second, 0, graph.addNode("f", "relu"), 0);
  graph.connect(first, 0, graph.addNode("g", "relu"), 0);
  CHECK_EQUAL(names(graph.sorted()), "first second f g ");
}

TEST(graph_text_is_stable) {
  Chain chain;
  chain.a->attrs["z"] = "1";
  chain.a->attrs["b"] = "\"2\"";
  const std::string text = chain.graph.toString();
  CHECK_EQUAL(
      text,
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}, "
      "{\"op\": \"relu\", \"name\": \"a\", \"attrs\": {\"b\": \"\\\"2\\\"\", \"z\": \"1\"}, "
      "\"inputs\": [[0, 0, 0]]}, "
      "{\"op\": \"_copy\", \"name\": \"b\", \"inputs\": [[1, 0, 0]]}, "
      "{\"op\": \"broadcast_add\", \"name\": \"c\", \"inputs\": [[2, 0, 0], [0, 0, 0]]}], "
      "\"arg_nodes\": [0], \"node_row_ptr\": [0, 1, 2, 3, 4], \"heads\": [[3, 0, 0]]}");
  CHECK_EQUAL(read(text)->toString(), text);
  std::string pretty;
  chain.graph.writePretty(&pretty);
  CHECK_EQUAL(read(pretty)->toString(), text);
}

TEST(graph_forward_references) {
  const std::unique_ptr<Graph> graph = read(
      "{\"nodes\": [{\"op\": \"relu\", \"name\": \"r\", \"inputs\": [[1, 0, 0]]}, "
      "{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [1], "
      "\"heads\": [[0, 0, 0]]}");
  CHECK_EQUAL(names(graph->nodes), "r x ");
  CHECK_EQUAL(names(graph->sorted()), "x r ");
  CHECK(graph->toString().find("\"x\"") < graph->toString().find("\"r\""));
}

/// Memory of a host, in which a text lies in one piece.
class Piece : public host::TextBuffer::Memory {
 public:
  char* grow(std::size_t used, std::size_t* size) override {
    text_.resize(used);
    text_.resize(*size);
    return &text_[0];
  }
  static std::string write(const Graph& graph, bool pretty) {
    Piece piece;
    host::TextBuffer buffer(&piece);
    host::GraphWriter(pretty, &buffer).write(graph, graph.attrs);
    return piece.text_.substr(0, buffer.size());
  }

 private:
  std::string text_;
};

/// A graph with attributes that nodes share, nested graphs, and control dependencies, whose text
/// takes several blocks of memory.
std::unique_ptr<Graph> largeGraph(std::size_t layers) {
  const std::string nested =
      "{\"nodes\": [{\"op\": \"relu\", \"name\": \"r\", \"attrs\": {\"k\": \"v\"}, "
      "\"inputs\": [[1, 0, 0]]}, {\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], "
      "\"arg_nodes\": [1], \"heads\": [[0, 0, 0]]}";
  std::string text = "{\"nodes\": [{\"op\": \"null\", \"name\": \"d\", \"inputs\": []}";
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    text += ", {\"op\": \"relu\", \"name\": \"n" + number + "\", \"attrs\": {\"kind\": \"" +
            (i % 3 == 0 ? std::string(100, 'a') : std::string(50, 'b')) + "\"}, \"inputs\": [[" +
            number + ", 0, 0]]";
    if (i % 7 == 0) text += ", \"control_deps\": [0]";
    if (i % 50 == 0) text += ", \"subgraphs\": [" + nested + "]";
    text += "}";
  }
  return read(text + "], \"arg_nodes\": [0], \"heads\": [[" + std::to_string(layers) + ", 2, 0]]}");
}

TEST(graph_text_of_nodes_in_any_order) {
  const std::unique_ptr<Graph> graph = largeGraph(20000);
  const std::vector<Node*> first = graph->nodes;
  for (std::size_t moved : {std::size_t(1), first.size() / 2, first.size()}) {
    // Behind all others, a part of the text is written when the order shows.
    graph->nodes = first;
    std::rotate(graph->nodes.begin() + (moved - 1), graph->nodes.begin() + moved,
                graph->nodes.end());
    if (moved == first.size()) std::reverse(graph->nodes.begin(), graph->nodes.end());
    const std::string text = graph->toString();
    std::string pretty;
    graph->writePretty(&pretty);
    CHECK(text == Piece::write(*graph, false));
    CHECK(pretty == Piece::write(*graph, true));
    graph->nodes = graph->sorted();
    CHECK(text == graph->toString());
    CHECK(pretty == Piece::write(*graph, true));
    CHECK(read(text)->toString() == text);
  }
  CHECK(graph->toString().size() > std::size_t(2) << 20);
}

TEST(graph_keeps_what_it_does_not_know) {
  const std::string text =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": [], \"odd\": [1.50, {}]}], "
      "\"arg_nodes\": [0], \"node_row_ptr\": [0, 1], \"heads\": [[0, 0, 0]], "
      "\"attrs\": {\"k\": true}, \"more\": -0}";
  const std::unique_ptr<Graph> graph = read(text);
  const JsonMembers& extra = graph->nodes[0]->extra;
  CHECK_EQUAL(extra.size(), 1u);
  CHECK(extra[0].first == "odd" && extra[0].second == "[1.50, {}]");
  CHECK_EQUAL(graph->getAttr("more").dump(), "-0");
  CHECK_THROWS(graph->getAttr("less"), std::out_of_range, "'less'");
  CHECK_EQUAL(graph->toString(), text);
}

TEST(graph_node_twice_or_null_in_the_list) {
  Chain chain;
  chain.graph.nodes.push_back(chain.a);
  CHECK_THROWS(chain.graph.toString(), GraphStructureError, "'a' is listed twice");
  chain.graph.nodes.back() = nullptr;
  CHECK_THROWS(chain.graph.toString(), GraphStructureError, "node number 4 is null");
}

TEST(graph_tables_find_only_their_nodes) {
  Chain chain;
  Node stranger;
  const NodeTable table(chain.graph.nodes);
  CHECK_EQUAL(table.find(chain.c), 3);
  CHECK_EQUAL(table.find(&stranger), -1);
  CHECK_EQUAL(table.find(nullptr), -1);
}

TEST(graph_tables_at_any_addresses) {
  // A table reads no node, so any address will do: neighbours, pages, and equal low bits.
  for (const uint64_t stride : {16ull, 272ull, 4096ull, 1ull << 16, 1ull << 36}) {
    std::vector<Node*> nodes;
    for (uint64_t i = 1; i <= 2000; ++i) nodes.push_back(reinterpret_cast<Node*>(i * stride));
    const NodeTable whole(nodes);
    NodeTable grown((std::vector<Node*>()));
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      CHECK_EQUAL(grown.find(nodes[pos]), -1);
      CHECK_EQUAL(grown.add(nodes[pos]), pos);
    }
    CHECK_EQUAL(grown.size(), nodes.size());
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      CHECK_EQUAL(whole.find(nodes[pos]), static_cast<int64_t>(pos));
      CHECK_EQUAL(grown.find(nodes[pos]), static_cast<int64_t>(pos));
    }
    CHECK_EQUAL(whole.find(reinterpret_cast<Node*>(2001 * stride)), -1);
  }
}

TEST(graph_allocation_needs_a_pass) {
  Chain chain;
  CHECK_THROWS(chain.data->alloc_arg({1}, MXContext::CPU(), kFloat32), std::runtime_error,
               "'data'");
}

TEST(graph_node_of_two_graphs_is_deleted_once) {
  std::unique_ptr<Graph> graph(new Graph());
  Node* shared = graph->addNode("shared", "relu");
  for (int i = 0; i < 2; ++i) {
    Graph* nested = new Graph();
    nested->nodes.push_back(shared);
    nested->addNode("own", "relu");
    nested->nodes.push_back(nested->nodes.back());
    graph->addNode("holder", "_subgraph")->subgraphs.push_back(nested);
  }
}

TEST(graph_largest_numbers_of_outputs) {
  Chain chain;
  chain.graph.outputs[0].entry = std::numeric_limits<int>::max();
  CHECK(chain.graph.toString().find("2147483651") != std::string::npos);
  const std::string text = chain.graph.toString();
  CHECK_THROWS(read(text), JsonError, "is not within 0 to 2147483647");
}

TEST(graph_indentation_is_bounded) {
  Graph graph;
  Graph* level = &graph;
  for (int i = 0; i < 2000; ++i) {
    Node* node = level->addNode("n", "s");
    node->subgraphs.push_back(new Graph());
    level = node->subgraphs.back();
  }
  std::string text;
  graph.writePretty(&text);
  CHECK(text.size() < 2000 * 2000);
  CHECK_EQUAL(read(text)->toString(), graph.toString());
}

TEST(graph_unknown_keys_of_a_node) {
  std::string text = "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []";
  for (int i = 0; i < 20000; ++i) text += ", \"k" + std::to_string(i) + "\": 1";
  const std::string end = "}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}";
  CHECK_EQUAL(read(text + end)->nodes[0]->extra.size(), 20000u);
  for (const char* key : {"k0", "k15", "k16", "k17", "k19999"}) {
    CHECK_THROWS(read(text + ", \"" + key + "\": 2" + end), JsonError, "occurs twice");
  }
}

TEST(graph_attributes_that_collide) {
  std::unordered_map<std::string, std::string> table;
  table.reserve(200);
  std::string attributes;
  int count = 0;
  for (int i = 0; count < 200; ++i) {
    const std::string key = "a" + std::to_string(i);
    if (table.bucket(key) != 0) continue;
    attributes += (count++ > 0 ? ", \"" : "\"") + key + "\": \"\"";
  }
  const std::string text =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": [], \"attrs\": {" + attributes +
      "}}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}";
  CHECK_THROWS(read(text), JsonError, "chosen to collide");
}

TEST(graph_depth_of_what_was_read_before) {
  const std::string node =
      "{\"op\": \"Op\", \"name\": \"n\", \"attrs\": {\"k\": \"v\"}, \"inputs\": []}";
  const std::string deep = "{\"nodes\": [" + node + "], \"arg_nodes\": [], \"heads\": [[0, 0]]}";
  std::string text = node.substr(0, node.size() - 1) + ", \"subgraphs\": [" + deep + "]}";
  text = "{\"nodes\": [" + node + ", " + text + "], \"arg_nodes\": [], \"heads\": [[0, 0]]}";
  JsonOptions options;
  for (options.max_depth = 1; options.max_depth < 12; ++options.max_depth) {
    const char* const message = options.max_depth < 8 ? "deeper than" : nullptr;
    try {
      const std::unique_ptr<Graph> graph(Graph::fromString(text.data(), text.size(), options));
      CHECK(message == nullptr);
    } catch (const JsonError& error) {
      CHECK(message != nullptr && std::string(error.what()).find(message) != std::string::npos);
    }
  }
}

TEST(graph_shared_attributes_are_changed_alone) {
  const std::string node = "\"attrs\": {\"k\": \"v\", \"l\": \"w\"}, \"inputs\": []}";
  const std::unique_ptr<Graph> graph =
      read("{\"nodes\": [{\"op\": \"Op\", \"name\": \"a\", " + node + ", {\"op\": \"Op\", " +
           "\"name\": \"b\", " + node + "], \"arg_nodes\": [], \"heads\": [[0, 0]]}");
  Node* const first = graph->nodes[0];
  Node* const second = graph->nodes[1];
  second->attrs = first->attrs;
  std::size_t words = 0;
  CHECK(host::AttributeTexts(first->attrs).packed(&words) ==
        host::AttributeTexts(second->attrs).packed(&words));
  NodeAttributes copy = first->attrs;
  first->attrs["k"] = "changed";
  CHECK_EQUAL(second->attrs.at("k"), std::string("v"));
  CHECK_EQUAL(copy.at("k"), std::string("v"));
  copy = second->attrs;
  second->attrs.clear();
  CHECK_EQUAL(copy.at("l"), std::string("w"));
  copy.swap(first->attrs);
  CHECK_EQUAL(copy.at("k"), std::string("changed"));
  CHECK_EQUAL(first->attrs.at("k"), std::string("v"));
}
