// Passes in the manner of those that were written for MXNet 1.8 to 2.0: the same idioms, the same
// include path, no function that only this project's header has.
#include <math.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <unordered_set>

#include "mxnet/lib_api.h"

using namespace mxnet::ext;

/* prints the graph */
MXReturnValue styledPrint(mxnet::ext::Graph* g,
                          const std::unordered_map<std::string, std::string>& options) {
  for (auto kv : options) {
    std::cout << "option: " << kv.first << " ==> " << kv.second << std::endl;
  }
  g->print();
  return MX_SUCCESS;
}

REGISTER_PASS(styledPrint).setBody(styledPrint);

/* adds an input to every first operator of a kind, edges written on both sides by hand */
MXReturnValue styledAddInput(mxnet::ext::Graph* graph,
                             const std::unordered_map<std::string, std::string>& options) {
  std::string wanted = "Convolution";
  if (options.count("op") > 0) wanted = options.at("op");
  for (int i = 0; i < graph->size(); i++) {
    mxnet::ext::Node* n = graph->getNode(i);
    if (n->op.compare(wanted) == 0) {
      n->attrs[MX_STR_EXTRA_INPUTS] = std::to_string(1);
      mxnet::ext::Node* input = graph->addNode(n->name + "_input", "null");
      graph->inputs.push_back(input);
      input->outputs.push_back({n, (int)(n->inputs.size())});
      n->inputs.push_back({input, 0});
      return MX_SUCCESS;
    }
  }
  MX_ERROR_MSG << "no operator " << wanted << " in a graph of " << graph->size() << " nodes"
               << std::endl;
  return MX_FAIL;
}

REGISTER_PASS(styledAddInput).setBody(styledAddInput);

/* walks with DFS and topological_sort */
MXReturnValue styledWalk(mxnet::ext::Graph* g,
                         const std::unordered_map<std::string, std::string>& options) {
  int visited = 0;
  std::unordered_set<mxnet::ext::Node*> seen;
  g->DFS([&](mxnet::ext::Node* n) {
    visited++;
    seen.insert(n);
  });
  std::vector<Node*> order = g->topological_sort();
  if (order.size() != g->size() || seen.size() != order.size() || visited != (int)seen.size()) {
    MX_ERROR_MSG << "the walks differ: " << order.size() << " and " << visited;
    return MX_FAIL;
  }
  // backwards: consumers stand before producers
  std::unordered_set<mxnet::ext::Node*> done;
  for (auto n = order.begin(); n != order.end(); n++) {
    for (auto& out : (*n)->outputs) {
      if (done.find(out.node) == done.end()) {
        MX_ERROR_MSG << (*n)->name << " comes before " << out.node->name;
        return MX_FAIL;
      }
    }
    done.insert(*n);
  }
  std::cout << "walked over " << visited << " nodes" << std::endl;
  return MX_SUCCESS;
}

REGISTER_PASS(styledWalk).setBody(styledWalk);

/* looks through the JSON of the graph with a switch over the types */
std::string describe(JsonVal val) {
  switch (val.type) {
    case STR:
      return "STR " + val.str;
    case NUM:
      return "NUM " + std::to_string(val.num);
    case LIST:
      return "LIST " + std::to_string(val.list.size());
    case MAP:
      return "MAP " + std::to_string(val.map.size());
    default:
      return "ERR";
  }
}

MXReturnValue styledJson(mxnet::ext::Graph* g,
                         const std::unordered_map<std::string, std::string>& options) {
  std::string json = g->toString();
  JsonVal json_val = JsonVal::parse(json);
  JsonVal nodes = json_val.map[JsonVal("nodes")];
  std::map<std::string, int> ops;
  for (size_t i = 0; i < nodes.list.size(); i++) {
    std::string op = nodes.list[i].map[JsonVal("op")].str;
    ops[op] += 1;
  }
  std::cout << describe(json_val) << std::endl << describe(nodes) << std::endl;
  std::cout << describe(nodes.list[0].map[JsonVal("name")]) << std::endl;
  std::cout << describe(json_val.map[JsonVal("heads")].list[0].list[1]) << std::endl;
  for (auto& kv : ops) std::cout << kv.first << " " << kv.second << std::endl;
  JsonVal made(MAP);
  made.map[JsonVal("answer")] = JsonVal(42);
  made.map[JsonVal("list")] = JsonVal(LIST);
  made.map[JsonVal("list")].list.push_back(JsonVal("x"));
  std::cout << made.dump() << std::endl;
  return MX_SUCCESS;
}

REGISTER_PASS(styledJson).setBody(styledJson);

/* allocates parameters; without dictionaries the host refuses */
MXReturnValue styledAlloc(mxnet::ext::Graph* g,
                          const std::unordered_map<std::string, std::string>& options) {
  Node* node = g->addNode("styled_alloc", "null");
  g->inputs.push_back(node);
  Node* sum = g->addNode("styled_sum", "broadcast_add");
  mxnet::ext::NodeEntry head = g->outputs[0];
  head.node->outputs.push_back({sum, 0});
  sum->inputs.push_back({head.node, head.entry});
  node->outputs.push_back({sum, 1});
  sum->inputs.push_back({node, 0});
  g->outputs[0] = {sum, 0};
  node->alloc_arg({1}, MXContext::CPU(0), kFloat32);
  node->tensor->data<float>()[0] = 1.5f;
  return MX_SUCCESS;
}

REGISTER_PASS(styledAlloc).setBody(styledAlloc);

/* reads the shapes that a host may have written */
MXReturnValue styledShapes(mxnet::ext::Graph* g,
                           const std::unordered_map<std::string, std::string>& options) {
  int known = 0;
  for (int i = 0; i < g->size(); i++) {
    Node* n = g->getNode(i);
    if (n->attrs.count(MX_STR_SHAPE) > 0 && n->attrs.count(MX_STR_DTYPE) > 0) {
      std::string shape = getShapeAt(n->attrs[MX_STR_SHAPE], 0);
      std::string dtype = getDtypeAt(n->attrs[MX_STR_DTYPE], 0);
      known += shape.size() > 0 && dtype.size() > 0;
    }
  }
  std::cout << "shapes of " << known << " nodes, first [" << getShapeAt("[[2,4],[1]]", 1) << "]"
            << std::endl;
  return MX_SUCCESS;
}

REGISTER_PASS(styledShapes).setBody(styledShapes);

MXReturnValue initialize(int version) {
  if (version >= 10700) {
    std::cout << "MXNet version " << version << " supported" << std::endl;
    return MX_SUCCESS;
  } else {
    MX_ERROR_MSG << "MXNet version " << version << " not supported by custom library" << std::endl;
    return MX_FAIL;
  }
}
