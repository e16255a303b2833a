// Depth and size: run with a stack of 1 MB and 60 s of processor time. Linear time takes about one
// of these seconds, quadratic time more than all.
#include <streambuf>

#include "check.h"
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

class NullBuffer : public std::streambuf {
 protected:
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
  std::streamsize xsputn(const char*, std::streamsize size) override { return size; }
};

std::string chain(std::size_t length) {
  std::string text = "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}";
  for (std::size_t i = 1; i < length; ++i) {
    text += ", {\"op\": \"relu\", \"name\": \"n" + std::to_string(i) + "\", \"inputs\": [[" +
            std::to_string(i - 1) + ", 0, 0]]}";
  }
  return text + "], \"arg_nodes\": [0], \"heads\": [[" + std::to_string(length - 1) + ", 0, 0]]}";
}

void repeat(const std::string& piece, std::size_t times, std::string* text) {
  for (std::size_t i = 0; i < times; ++i) *text += piece;
}

}  // namespace

TEST(tables_of_nodes) {
  const std::size_t count = 400000;
  for (const uint64_t stride : {272ull, 4096ull, 1ull << 20}) {
    std::vector<Node*> nodes;
    for (uint64_t i = 1; i <= count; ++i) nodes.push_back(reinterpret_cast<Node*>(i * stride));
    const NodeTable table(nodes);
    for (std::size_t pos = 0; pos < count; ++pos) {
      CHECK(table.find(nodes[pos]) == static_cast<int64_t>(pos));
    }
  }
}

TEST(lists_in_lists) {
  const std::size_t depth = 400000;
  const std::string text = std::string(depth, '[') + std::string(depth, ']');
  JsonVal value = JsonVal::parse(text);
  CHECK(value.dump() == text);
  CHECK(!value.toString().empty());
  JsonVal copy = value;
  CHECK(copy == value);
  CHECK(!(copy < value));
  JsonVal* innermost = &copy;
  while (!innermost->list.empty()) innermost = &innermost->list[0];
  innermost->list.emplace_back(1);
  CHECK(value < copy);
}

TEST(objects_in_objects) {
  const std::size_t depth = 400000;
  std::string text;
  repeat("{\"k\" : ", depth, &text);
  text += "{}" + std::string(depth, '}');
  JsonVal value = JsonVal::parse(text);
  CHECK(value.dump() == text);
  const JsonVal copy = value;
  value = JsonVal(1);
  CHECK(copy.dump() == text);
}

TEST(long_chain_of_nodes) {
  const std::size_t length = 1000000;
  const std::unique_ptr<Graph> graph(Graph::fromString(chain(length)));
  CHECK(graph->size() == length);
  const std::vector<Node*> order = graph->sorted();
  CHECK(order == graph->nodes);
  std::size_t visited = 0;
  graph->DFS([&visited](Node*) { ++visited; });
  CHECK(visited == length);
  const std::string text = graph->toString();
  const std::unique_ptr<Graph> again(Graph::fromString(text));
  CHECK(again->toString() == text);
  NullBuffer nothing;
  std::streambuf* before = std::cout.rdbuf(&nothing);
  graph->print();
  std::cout.rdbuf(before);
}

TEST(long_chain_backwards) {
  const std::size_t length = 1000000;
  const std::unique_ptr<Graph> graph(Graph::fromString(chain(length)));
  std::reverse(graph->nodes.begin(), graph->nodes.end());
  const std::vector<Node*> order = graph->sorted();
  CHECK(order.front()->name == "x" && order.size() == length);
  CHECK(graph->toString().size() > length);
}

TEST(long_cycle) {
  const std::size_t length = 1000000;
  const std::unique_ptr<Graph> graph(Graph::fromString(chain(length)));
  graph->connect(graph->nodes.back(), 0, graph->nodes[1], 0);
  CHECK_THROWS(graph->toString(), GraphStructureError,
               "(" + std::to_string(length - 1) + " nodes)");
}

TEST(many_nodes_removed_at_once) {
  const std::size_t length = 1000000;
  const std::unique_ptr<Graph> graph(Graph::fromString(chain(length)));
  std::vector<Node*> unwanted;
  for (std::size_t i = 1; i + 1 < length; i += 2) {
    graph->replace(NodeEntry(graph->nodes[i], 0), graph->nodes[i]->inputs[0]);
    unwanted.push_back(graph->nodes[i]);
  }
  graph->removeNodes(unwanted);
  CHECK(graph->sorted().size() == length - unwanted.size());
}

TEST(graphs_in_graphs) {
  const std::size_t depth = 200000;  // each is four levels of JSON
  std::string text;
  repeat("{\"nodes\": [{\"op\": \"s\", \"name\": \"n\", \"inputs\": [], \"subgraphs\": [", depth,
         &text);
  text += "{\"nodes\": [], \"arg_nodes\": [], \"node_row_ptr\": [0], \"heads\": []}";
  repeat("]}], \"arg_nodes\": [], \"node_row_ptr\": [0, 1], \"heads\": [[0, 0, 0]]}", depth, &text);
  const std::unique_ptr<Graph> graph(Graph::fromString(text));
  CHECK(graph->toString() == text);
}
