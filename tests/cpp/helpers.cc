// The header's helpers for passes: attributes as values, shapes, users, parameters.
#include "check.h"
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

Node with(const std::string& text) {
  Node node;
  node.name = "conv0";
  node.op = "Convolution";
  node.attrs["key"] = text;
  return node;
}

std::string listed(const std::vector<int64_t>& values) {
  std::string text;
  for (int64_t value : values) text += std::to_string(value) + " ";
  return text;
}

/// x -> both inputs of add; w -> fc; add is an output, as is the second output of split.
struct Small {
  Graph graph;
  Node* x = graph.addNode("x", "null");
  Node* add = graph.addNode("add", "elemwise_add");
  Node* split = graph.addNode("split", "SliceChannel");
  Node* relu = graph.addNode("relu", "relu");
  Small() {
    graph.inputs.push_back(x);
    graph.connect(x, 0, add, 0);
    graph.connect(x, 0, add, 1);
    graph.connect(add, 0, split, 0);
    graph.connect(split, 0, relu, 0);
    graph.outputs = {NodeEntry(split, 1), NodeEntry(relu, 0)};
  }
};

}  // namespace

TEST(helpers_integers) {
  for (const char* text : {"3", " 3 ", "+3", "3L"}) {
    const Node node = with(text);
    CHECK_EQUAL(intAttr(&node, "key"), 3);
  }
  const Node least = with("-9223372036854775808");
  CHECK_EQUAL(intAttr(&least, "key"), (std::numeric_limits<int64_t>::min)());
  for (const char* text : {"", "3.5", "9223372036854775808", "+-3", "three", "(3)", "L", "-"}) {
    const Node node = with(text);
    CHECK_THROWS(intAttr(&node, "key"), AttributeError,
                 std::string("node 'conv0' (Convolution): attribute 'key' is '") + text +
                     "', not a whole number");
  }
}

TEST(helpers_lists) {
  const std::pair<const char*, const char*> cases[] = {
      {"(1, 1)", "1 1 "},   {"[1, 1]", "1 1 "},
      {"[1,-2]", "1 -2 "},  {"(2,)", "2 "},
      {"(3L, 3L)", "3 3 "}, {"7", "7 "},
      {"()", ""},           {"[]", ""},
      {"1, 2", "1 2 "},     {" ( 1 , 2 ) ", "1 2 "}};
  for (const auto& each : cases) {
    const Node node = with(each.first);
    CHECK_EQUAL(listed(intsAttr(&node, "key")), each.second);
  }
  for (const char* text : {"(1, 2", "(1]", "[1, x]", "[1,,2]", "[\"1", "[\"\\x\"]", "(", "[,]"}) {
    const Node node = with(text);
    CHECK_THROWS(intsAttr(&node, "key"), AttributeError, "not a list of whole numbers");
  }
}

TEST(helpers_reals) {
  const std::pair<const char*, double> cases[] = {
      {"0.5", 0.5},        {"-1e-3", -1e-3},      {"2", 2},
      {"+2.5", 2.5},       {"1e400", HUGE_VAL},   {"-1e400", -HUGE_VAL},
      {"-inf", -HUGE_VAL}, {"Infinity", HUGE_VAL}};
  for (const auto& each : cases) {
    const Node node = with(each.first);
    CHECK_EQUAL(realAttr(&node, "key"), each.second);
  }
  const Node none = with("nan");
  CHECK(std::isnan(realAttr(&none, "key")));
  for (const char* text : {"", "0.5x", "0x1p3", "1,5", "1 2", "e", "--1"}) {
    const Node node = with(text);
    CHECK_THROWS(realAttr(&node, "key"), AttributeError, "not a number");
  }
}

TEST(helpers_booleans_and_texts) {
  for (const char* text : {"True", "true", "1"}) {
    const Node node = with(text);
    CHECK(boolAttr(&node, "key"));
    CHECK_EQUAL(textAttr(&node, "key"), text);
  }
  for (const char* text : {"False", "false", "0"}) {
    const Node node = with(text);
    CHECK(!boolAttr(&node, "key", true));
  }
  const Node other = with("yes");
  CHECK_THROWS(boolAttr(&other, "key"), AttributeError, "is 'yes', not True or False");
}

TEST(helpers_missing_attributes) {
  const Node none = with("None");
  const Node node = with("1");
  CHECK_EQUAL(intAttr(&node, "axis", -1), -1);
  CHECK_EQUAL(intAttr(&none, "key", -1), -1);
  CHECK_EQUAL(listed(intsAttr(&none, "key", {4, 5})), "4 5 ");
  CHECK_EQUAL(realAttr(&node, "eps", 0.25), 0.25);
  CHECK(boolAttr(&node, "flag", true));
  CHECK_EQUAL(textAttr(&node, "mode", "same"), "same");
  CHECK_EQUAL(textAttr(&none, "key", "same"), "None");
  CHECK_THROWS(intAttr(&node, "axis"), AttributeError,
               "node 'conv0' (Convolution): attribute 'axis' is missing");
  CHECK_THROWS(intAttr(&none, "key"), AttributeError, "attribute 'key' is missing");
  CHECK_THROWS(textAttr(&node, "mode"), AttributeError, "attribute 'mode' is missing");
}

TEST(helpers_shapes) {
  Node node = with("");
  CHECK(!shapeOf(NodeEntry(&node, 0)).known);
  CHECK_EQUAL(static_cast<int>(typeOf(NodeEntry(&node, 0))), static_cast<int>(kUNSET));
  node.attrs[MX_STR_SHAPE] = "[[2,-1],[],None,[4]]";
  node.attrs[MX_STR_DTYPE] = "[0,6,-1,77]";
  const ValueShape first = shapeOf(NodeEntry(&node, 0));
  CHECK(first.known && !first.complete());
  CHECK_EQUAL(listed(first.extents), "2 -1 ");
  const ValueShape scalar = shapeOf(NodeEntry(&node, 1));
  CHECK(scalar.known && scalar.complete() && scalar.extents.empty());
  CHECK(!shapeOf(NodeEntry(&node, 2)).known);
  CHECK_EQUAL(listed(shapeOf(NodeEntry(&node, 3)).extents), "4 ");
  CHECK(!shapeOf(NodeEntry(&node, 4)).known);
  CHECK(!shapeOf(NodeEntry(&node, -1)).known);
  const MXDType types[] = {kFloat32, kInt64, kUNSET, kUNSET, kUNSET};
  for (int i = 0; i < 5; ++i) CHECK(typeOf(NodeEntry(&node, i)) == types[i]);
  float data[6] = {};
  MXTensor tensor(data, {2, 3}, kFloat64, 0, MXContext::CPU());
  node.tensor = &tensor;  // newer than what was inferred
  CHECK_EQUAL(listed(shapeOf(NodeEntry(&node, 0)).extents), "2 3 ");
  CHECK(typeOf(NodeEntry(&node, 0)) == kFloat64);
}

TEST(helpers_users) {
  Small g;
  CHECK(isOutput(&g.graph, NodeEntry(g.split, 1)));
  CHECK(!isOutput(&g.graph, NodeEntry(g.split, 0)));
  CHECK(isOutput(&g.graph, g.split) && !isOutput(&g.graph, g.add));
  CHECK_EQUAL(users(NodeEntry(g.x, 0)).size(), std::size_t(2));
  CHECK(users(NodeEntry(g.split, 1)).empty());
  CHECK(onlyUser(&g.graph, NodeEntry(g.x, 0)) == nullptr);  // one node, but two inputs
  CHECK(onlyUser(&g.graph, NodeEntry(g.add, 0)) == g.split);
  CHECK(onlyUser(&g.graph, NodeEntry(g.split, 0)) == g.relu);
  CHECK(onlyUser(&g.graph, NodeEntry(g.relu, 0)) == nullptr);
  g.graph.outputs.push_back(NodeEntry(g.add, 0));
  CHECK(onlyUser(&g.graph, NodeEntry(g.add, 0)) == nullptr);
}

TEST(helpers_of_no_node) {
  Small small;
  Graph& graph = small.graph;
  const NodeEntry none(onlyUser(&graph, NodeEntry(small.split, 1)), 0);
  CHECK(none.node == nullptr);
  CHECK_THROWS(graph.connect(nullptr, 0, small.add, 0), std::invalid_argument,
               "the producer is null");
  CHECK_THROWS(graph.connect(small.x, 0, nullptr, 0), std::invalid_argument,
               "the consumer is null");
  CHECK_THROWS(graph.replace(none, NodeEntry(small.x, 0)), std::invalid_argument,
               "the node of the value to replace is null");
  CHECK_THROWS(graph.replace(NodeEntry(small.x, 0), none), std::invalid_argument, "is null");
  CHECK_THROWS(graph.removeNode(nullptr), std::invalid_argument, "the node is null");
  CHECK_THROWS(intAttr(none.node, "axis"), AttributeError, "no node");
  CHECK_EQUAL(intAttr(none.node, "axis", 3), 3);
  CHECK_EQUAL(textAttr(none.node, "axis", "none"), "none");
  CHECK(!shapeOf(none).known);
  CHECK_EQUAL(typeOf(none), kUNSET);
  CHECK(users(none).empty());
  CHECK(onlyUser(&graph, none) == nullptr);
  CHECK(!isOutput(&graph, none));
  CHECK(!isParameter(none.node));
  CHECK_EQUAL(small.add->inputs.size(), 2u);
  CHECK_EQUAL(small.x->outputs.size(), 2u);
}

TEST(helpers_parameters_need_a_pass) {
  Small g;
  CHECK_THROWS(addParameter(&g.graph, "w", {1}, kFloat32), std::runtime_error,
               "addParameter of 'w'");
  CHECK_EQUAL(g.graph.nodes.size(), std::size_t(4));
  CHECK(!isParameter(g.add) && !isParameter(g.x));
}

namespace {

/// Every kind of value, as a dialect spells it.
std::string spelled(const char* dialect) {
  Graph graph;
  if (*dialect != '\0') graph.attrs["dialect"] = JsonVal(dialect);
  Node* node = graph.addNode("n", "Op");
  setAttr(&graph, node, "bool", true);
  setAttr(&graph, node, "ints", std::vector<int64_t>{2, -3});
  setAttr(&graph, node, "one", std::vector<int64_t>{2});
  setAttr(&graph, node, "none", std::vector<int64_t>());
  setAttr(&graph, node, "int", 7);
  setAttr(&graph, node, "long", int64_t(1) << 40);
  setAttr(&graph, node, "real", 0.1);
  setAttr(&graph, node, "reals", std::vector<double>{0.5, 1e30});
  setAttr(&graph, node, "text", "relu");
  CHECK(boolAttr(node, "bool"));
  CHECK_EQUAL(listed(intsAttr(node, "ints")), "2 -3 ");
  CHECK_EQUAL(listed(intsAttr(node, "one")), "2 ");
  CHECK(realAttr(node, "real") == 0.1 && intAttr(node, "long") == int64_t(1) << 40);
  std::string text;
  for (const char* key : {"bool", "ints", "one", "none", "int", "long", "real", "reals", "text"}) {
    text += node->attrs.at(key) + ";";
  }
  return text;
}

}  // namespace

TEST(attributes_are_set_in_the_spelling_of_the_dialect) {
  const char* const tuples = "True;(2, -3);(2,);();7;1099511627776;0.1;(0.5, 1e+30);relu;";
  const char* const lists = ";[2, -3];[2];[];7;1099511627776;0.1;[0.5, 1e+30];relu;";
  for (const char* dialect : {"", "mxnet", "nnvm"}) CHECK_EQUAL(spelled(dialect), tuples);
  CHECK_EQUAL(spelled("onnx"), std::string("1") + lists);
  for (const char* dialect : {"ark", "dlprim"}) {
    CHECK_EQUAL(spelled(dialect), std::string("true") + lists);
  }
  Graph graph;
  CHECK_THROWS(setAttr(&graph, nullptr, "k", 1), std::invalid_argument,
               "setAttr: the node is null");
  CHECK_EQUAL(dialectOf(&graph), "mxnet");
  graph.attrs["dialect"] = JsonVal("onnx");
  CHECK_EQUAL(dialectOf(&graph), "onnx");
}

TEST(null_nodes_are_named) {
  Small small;
  Graph& graph = small.graph;
  CHECK_THROWS(graph.connect(nullptr, 0, small.x, 0), std::invalid_argument,
               "connect: the producer is null");
  CHECK_THROWS(graph.connect(small.x, 0, nullptr, 0), std::invalid_argument,
               "connect: the consumer is null");
  CHECK_THROWS(graph.connect(small.x, -1, small.add, 0), std::out_of_range, "has no output -1");
  CHECK_THROWS(graph.replace(NodeEntry(), NodeEntry(small.x, 0)), std::invalid_argument,
               "replace: the node of the value to replace is null");
  CHECK_THROWS(graph.replace(NodeEntry(small.x, 0), NodeEntry()), std::invalid_argument,
               "replace: the node of the new value is null");
  CHECK_THROWS(graph.removeNode(nullptr), std::invalid_argument, "removeNode: the node is null");
  CHECK_THROWS(graph.insertAfter(NodeEntry(), {small.x}), std::invalid_argument,
               "insertAfter: the node of the value is null");
  CHECK_THROWS(graph.insertAfter(NodeEntry(small.x, 0), {small.relu, nullptr}),
               std::invalid_argument, "insertAfter: the node to insert is null");
}

TEST(nodes_are_inserted_behind_a_value) {
  Small small;
  Graph& graph = small.graph;
  Node* first = graph.addNode("first", "abs");
  Node* second = graph.addNode("second", "exp");
  CHECK_EQUAL(graph.insertAfter(NodeEntry(small.split, 1), {first, second}), 1u);
  CHECK(graph.outputs[0] == NodeEntry(second, 0));
  CHECK(second->inputs[0] == NodeEntry(first, 0) && first->inputs[0] == NodeEntry(small.split, 1));
  CHECK(small.relu->inputs[0] == NodeEntry(small.split, 0));
  Node* third = graph.addNode("third", "abs");
  CHECK_EQUAL(graph.insertAfter(NodeEntry(small.x, 0), {third}), 2u);
  CHECK(small.add->inputs[0] == NodeEntry(third, 0) && small.add->inputs[1] == NodeEntry(third, 0));
  CHECK_EQUAL(small.x->outputs.size(), 1u);
  CHECK_EQUAL(graph.insertAfter(NodeEntry(small.x, 0), {}), 0u);
  CHECK_EQUAL(graph.sorted().size(), graph.nodes.size());
}

TEST(nested_graphs_are_walked) {
  Graph graph;
  Node* outer = graph.addNode("outer", "If");
  outer->subgraphs = {new Graph(), new Graph()};
  outer->subgraphs[1]->addNode("inner", "Loop")->subgraphs = {new Graph()};
  outer->subgraphs[1]->nodes[0]->subgraphs[0]->addNode("deep", "relu");
  graph.addNode("last", "relu");
  std::string names;
  graph.forEachNode([&names](Graph*, Node* node) { names += node->name + " "; });
  CHECK_EQUAL(names, "outer last inner deep ");
  std::size_t graphs = 0;
  graph.forEachGraph([&graphs](Graph*) { ++graphs; });
  CHECK_EQUAL(graphs, 4u);
  // Deeper than the stack allows.
  Graph chain;
  Graph* each = &chain;
  for (int depth = 0; depth < 200000; ++depth) {
    Node* node = each->addNode("n", "Op");
    node->subgraphs.push_back(new Graph());
    each = node->subgraphs[0];
  }
  std::size_t nodes = 0;
  chain.forEachNode([&nodes](Graph*, Node*) { ++nodes; });
  CHECK_EQUAL(nodes, 200000u);
}

TEST(attributes_are_visited_without_a_map) {
  Node node = with("value");
  node.attrs["other"] = "text";
  std::map<std::string, std::string> found;
  node.attrs.forEach(
      [&found](const std::string& key, const std::string& text) { found[key] = text; });
  CHECK_EQUAL(found.size(), 2u);
  CHECK(found["key"] == "value" && found["other"] == "text");
}
