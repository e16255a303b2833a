// Random edits of a graph, after each of which both sides of every edge must agree: what the
// graph's own functions keep is compared with a recount from one side alone.
#include <random>
#include <set>
#include <tuple>

#include "check.h"
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::tuple<const Node*, int, const Node*> Use;  // producer, slot, consumer

void compareSides(const Graph& graph) {
  std::multiset<Use> by_inputs;
  std::multiset<Use> by_outputs;
  const std::set<const Node*> known(graph.nodes.begin(), graph.nodes.end());
  for (const Node* node : graph.nodes) {
    for (std::size_t slot = 0; slot < node->inputs.size(); ++slot) {
      CHECK(known.count(node->inputs[slot].node) == 1);
      by_inputs.insert(Use(node->inputs[slot].node, static_cast<int>(slot), node));
    }
    for (const NodeEntry& use : node->outputs) {
      CHECK(known.count(use.node) == 1);
      by_outputs.insert(Use(node, use.entry, use.node));
    }
  }
  CHECK(by_inputs == by_outputs);
  for (const NodeEntry& head : graph.outputs) CHECK(known.count(head.node) == 1);
  for (const Node* input : graph.inputs) CHECK(known.count(input) == 1 && input->op == "null");
}

class Editor {
 public:
  explicit Editor(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) addVariable();
  }

  void step() {
    switch (pick(7)) {
      case 0:
        addVariable();
        break;
      case 1:
      case 2:
        addOperator();
        break;
      case 3:
        reconnect();
        break;
      case 4:
        graph_.replace(NodeEntry(any(), static_cast<int>(pick(2))), NodeEntry(any(), 0));
        break;
      case 5:
        if (graph_.size() > 4) graph_.removeNode(any());
        break;
      default:
        if (graph_.size() > 9) graph_.removeNodes({graph_.nodes[1], graph_.nodes[4]});
    }
    if (graph_.nodes.empty()) addVariable();
    compareSides(graph_);
  }

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }
  Node* any() { return graph_.nodes[pick(graph_.size())]; }

  void addVariable() {
    graph_.inputs.push_back(graph_.addNode("v" + std::to_string(made_++), "null"));
  }

  void addOperator() {
    std::vector<Node*> before = graph_.nodes;
    Node* node = graph_.addNode("n" + std::to_string(made_++), "op");
    const std::size_t inputs = pick(4);
    for (std::size_t i = 0; i < inputs; ++i) {
      // Often the same producer twice, which is where lists of uses go wrong.
      Node* producer = pick(3) == 0 && i > 0 ? node->inputs[0].node : before[pick(before.size())];
      graph_.connect(producer, static_cast<int>(pick(2)), node, static_cast<int>(i));
    }
    if (pick(3) == 0) graph_.outputs.push_back(NodeEntry(node, 0));
  }

  void reconnect() {
    Node* node = any();
    if (node->inputs.empty()) return;
    graph_.connect(any(), 0, node, static_cast<int>(pick(node->inputs.size())));
  }

  Graph graph_;
  std::mt19937 random_;
  int made_ = 0;
};

}  // namespace

TEST(random_edits_keep_both_sides_true) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Editor editor(seed);
    for (int step = 0; step < 120; ++step) editor.step();
  }
}
