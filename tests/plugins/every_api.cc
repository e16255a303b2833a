// Calls every public function and touches every public member of the header once, so that none of
// them is only declared. What a call gives is tested in tests/cpp; here it must compile, link and
// hold together inside a library.
#include <memory>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

void require(bool fine, const char* what) {
  if (!fine) throw std::logic_error(what);
}
#define REQUIRE(condition) require(condition, #condition)

void useTensors() {
  float values[6] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[2] = {2, 3};
  MXTensor tensor;
  tensor.setTensor(values, kFloat32, dims, 2, 1, MXContext::CPU());
  REQUIRE(tensor.size() == 6 && tensor.data<float>()[5] > 4);
  const MXTensor copy(tensor);
  REQUIRE(copy.isSame(tensor) && copy.data<float>() == values);
  MXTensor assigned(values, {6}, kFloat32, 0, MXContext("cpu", 0));
  assigned = copy;
  assigned.setDLTensor();
  REQUIRE(assigned.dltensor.ndim == 2 && assigned.stype == kDefaultStorage);
  int64_t rows[2] = {0, 1};
  MXSparse sparse;
  sparse.set(values, dims, 2, rows, 2);
  REQUIRE(sparse.data_len == 6 && sparse.indices_len == 2);
  REQUIRE(MXContext::GPU(1).dev_id == 1 && MXContext().dev_type == "error");
}

void useJson() {
  JsonVal value = JsonVal::parse("{\"a\": [1, -2.5, true, null, \"x\"]}");
  const JsonVal& list = value.map[JsonVal("a")];
  int64_t integer = 0;
  REQUIRE(list.list[0].toInteger(&integer) && integer == 1);
  REQUIRE(list.list[1].toDouble() < -2 && list.list[2] == JsonVal::boolean(true));
  REQUIRE(list.list[3] == JsonVal::null() && list.list[4] == JsonVal(STR, -1, "x"));
  REQUIRE(JsonVal(1) < JsonVal::integer(2) && JsonVal::real(0.5).dump() == "0.5");
  REQUIRE(!value.toString().empty() && JsonVal(std::string("s")).type == STR);
  unsigned int at = 0;
  REQUIRE(JsonVal::parse_num("12 ", &at).num == 12 && at == 2);
  at = 0;
  REQUIRE(JsonVal::parse_string("\"s\"", &at).str == "s");
  at = 0;
  REQUIRE(JsonVal::parse_list("[1]", &at).list.size() == 1);
  at = 0;
  REQUIRE(JsonVal::parse_map("{}", &at).type == MAP && JsonVal(LIST).list.empty());
  try {
    JsonVal::parse("[");
    REQUIRE(false);
  } catch (const JsonError& error) {
    REQUIRE(error.code == kJsonTruncated && error.offset == 1 && error.line == 1 &&
            error.column == 2);
  }
}

void useReader() {
  const std::string text = "{\"k\": [true, null, 7, 1.5, \"s\", {}]}";
  JsonReader reader(text.data(), text.size(), JsonOptions());
  JsonReader::Slice slice;
  bool first_key = true;
  bool first_item = true;
  REQUIRE(reader.peek() == '{');
  reader.beginObject();
  REQUIRE(reader.nextKey(&first_key, &slice) && slice == "k" && slice.str() == "k");
  reader.beginList();
  REQUIRE(reader.nextItem(&first_item) && reader.readBool());
  REQUIRE(reader.nextItem(&first_item));
  reader.readNull();
  REQUIRE(reader.nextItem(&first_item) && reader.readInteger("seven", 0, 9) == 7);
  REQUIRE(reader.nextItem(&first_item) && reader.readNumber() == "1.5");
  REQUIRE(reader.nextItem(&first_item) && reader.readString() == "s");
  REQUIRE(reader.nextItem(&first_item) && reader.readValue().type == MAP);
  REQUIRE(!reader.nextItem(&first_item) && !reader.nextKey(&first_key, &slice));
  reader.finish();
  REQUIRE(reader.offset() == text.size());
}

void useGraph() {
  Graph graph;
  Node* data = graph.addNode("data", "null");
  graph.inputs.push_back(data);
  Node* relu = graph.addNode("relu", "relu");
  Node* copy = graph.addNode("copy", "_copy");
  graph.connect(data, 0, copy, 0);
  graph.connect(copy, 0, relu, 0);
  graph.outputs.push_back(NodeEntry(relu, 0));
  REQUIRE(graph.replace(NodeEntry(copy, 0), NodeEntry(data, 0)) == 1);
  graph.removeNode(copy);
  graph.removeNodes(std::vector<Node*>());
  graph.attrs["note"] = JsonVal("kept");
  REQUIRE(graph.getAttr("note").str == "kept" && graph.size() == 2);
  std::map<std::string, JsonVal>& attributes = graph.attrs;
  attributes.insert(std::make_pair("other", JsonVal(1)));
  for (std::map<std::string, JsonVal>::iterator it = graph.attrs.begin(); it != graph.attrs.end();
       ++it) {
    if (it->first == "other") it->second.num = 2;
  }
  const std::map<std::string, JsonVal> taken = graph.attrs;
  REQUIRE(taken == graph.attrs && taken.at("other").num == 2 && graph.attrs.count("other") == 1);
  REQUIRE(graph.attrs.find("none") == graph.attrs.end() && graph.attrs.erase("other") == 1);
  REQUIRE(graph.getNode(0) == data && graph.sorted().back() == relu);
  REQUIRE(graph.topological_sort().front() == relu);
  std::size_t visited = 0;
  graph.DFS([&visited](Node*) { ++visited; });
  std::unordered_set<Node*> rest(graph.nodes.begin(), graph.nodes.end());
  graph._dfs_util(data, &rest, [&visited](Node*) { ++visited; });
  REQUIRE(visited == 4 && rest.empty());
  std::string pretty;
  graph.writePretty(&pretty);
  const std::unique_ptr<Graph> read(Graph::fromString(pretty));
  const std::unique_ptr<Graph> lenient(
      Graph::fromString(pretty.data(), pretty.size(), JsonOptions()));
  const std::unique_ptr<Graph> from_json(Graph::fromJson(graph.toJson()));
  REQUIRE(read->toString() == graph.toString() && from_json->toString() == lenient->toString());
  const NodeTable table(graph.nodes);
  REQUIRE(table.find(relu) == 1 && table.find(copy) == -1);
  REQUIRE(sortNodes(graph.nodes, table) == graph.nodes);
  REQUIRE(relu->inputs[0] == NodeEntry(data, 0) && relu->extra.empty() && relu->num_outputs == 0);
  graph.print(2);
}

void useMessages() {
  MXerrorMsgs* messages = MXerrorMsgs::get();
  const int before = messages->size();
  messages->add("file.cc", 7) << "text";
  messages->add("whole");
  REQUIRE(messages->size() == before + 2 && *messages->get(before) == "file.cc[7]: text");
  REQUIRE(messages->get(-1) == nullptr && messages->get(before + 2) == nullptr);
}

}  // namespace

MXReturnValue everyApi(Graph* graph, const options_map_t&) {
  useTensors();
  useJson();
  useReader();
  useGraph();
  useMessages();
  REQUIRE(getShapeAt("[[2,4],[4]]", 0) == "[2,4]" && getDtypeAt("[0,6]", 1) == "6");
  REQUIRE(!passInterrupted());
  REQUIRE(Registry<CustomPass>::get()->size() == 1);
  REQUIRE(std::string(Registry<CustomPass>::get()->get(0).name) == "everyApi");
  for (Node* node : graph->nodes) REQUIRE(node->tensor == nullptr);
  return MX_SUCCESS;
}
REGISTER_PASS(everyApi).setBody(everyApi);

/// Whether a parameter can be allocated while no pass runs.
bool allocatesWithoutPass() {
  Node node;
  node.name = "state";
  try {
    node.alloc_aux({1}, MXContext::CPU(), kFloat32);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

MXReturnValue initialize(int version) {
  return version >= 10700 && !allocatesWithoutPass() ? MX_SUCCESS : MX_FAIL;
}
