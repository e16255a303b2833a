// The entry points of partitioners, called as a host calls them.
#include "check.h"
#include "lib_api.h"
#include "messages.h"

using namespace mxnet::ext;

namespace {

int destroyed = 0;

MXReturnValue supportedOps(const Graph* graph, std::vector<int>* ids,
                           const options_map_t& options) {
  for (std::size_t i = 0; i < ids->size(); ++i) {
    CHECK_EQUAL(ids->at(i), -2);
    if (graph->getNode(i)->op == options.at("op")) (*ids)[i] = -1;
  }
  if (options.count("shrink") != 0) ids->pop_back();
  return MX_SUCCESS;
}

class Selector : public CustomOpSelector {
 public:
  explicit Selector(const Graph* graph) : graph_(graph) {}
  ~Selector() override { destroyed += static_cast<int>(graph_->size()); }  // the graph still lives
  bool Select(int nodeID) override { return graph_->getNode(at(nodeID))->op != "null"; }
  bool SelectInput(int nodeID, int input_nodeID) override {
    if (nodeID == input_nodeID) throw 1;
    return Select(input_nodeID);
  }
  bool SelectOutput(int, int output_nodeID) override { return Select(output_nodeID); }
  void Filter(const std::vector<int>& candidates, std::vector<int>* keep) override {
    if (resets_ == 0) return CustomOpSelector::Filter(candidates, keep);
    keep->assign(candidates.rbegin(), candidates.rend() - 1);
  }
  void Reset() override { ++resets_; }

 private:
  static std::size_t at(int nodeID) { return static_cast<std::size_t>(nodeID); }
  const Graph* graph_;
  int resets_ = 0;
};

MXReturnValue createSelector(const Graph* graph, CustomOpSelector** selector,
                             const options_map_t& options) {
  if (options.count("none") == 0) *selector = new Selector(graph);
  return options.count("fail") == 0 ? MX_SUCCESS : MX_FAIL;
}

MXReturnValue review(const Graph* subgraph, int subgraph_id, bool* accept, const options_map_t&,
                     options_map_t* attributes) {
  CHECK(!*accept);
  const Node* weight = subgraph->getNode(0);
  if (subgraph_id > 0) {
    *accept = weight->tensor != nullptr && weight->tensor->data<float>()[0] > 0;
    (*attributes)["weight"] = weight->attrs.at("argName");
  }
  return MX_SUCCESS;
}

REGISTER_PARTITIONER(both)
    .addStrategy("listed", "first_op")
    .setSupportedOps("listed", supportedOps)
    .setReviewSubgraph("listed", review)
    .addStrategy("selected", "second_op")
    .setCreateSelector("selected", createSelector);

const char kGraph[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"w0\", \"attrs\": {\"isArg\": \"True\", "
    "\"argName\": \"w\"}, \"inputs\": []}, {\"op\": \"relu\", \"name\": \"r\", \"inputs\": "
    "[[0, 0, 0]]}, {\"op\": \"relu\", \"name\": \"s\", \"inputs\": [[1, 0, 0]]}], \"arg_nodes\": "
    "[0], \"heads\": [[2, 0, 0]]}";

}  // namespace

TEST(partitioners_are_listed) {
  CHECK_EQUAL(_partRegSize(), 1);
  const char* name = nullptr;
  CHECK_EQUAL(_partRegGetCount(0, &name), 2);
  CHECK_EQUAL(std::string(name), "both");
  const char* strategy = nullptr;
  const char* op_name = nullptr;
  supportedOps_t supported = nullptr;
  createSelector_t create = nullptr;
  reviewSubgraph_t reviewing = nullptr;
  _partRegGet(0, 0, &strategy, &supported, &create, &reviewing, &op_name);
  CHECK(supported == supportedOps && create == nullptr && reviewing == review);
  CHECK(std::string(strategy) == "listed" && std::string(op_name) == "first_op");
  _partRegGet(0, 1, &strategy, &supported, &create, &reviewing, &op_name);
  CHECK(supported == nullptr && create == createSelector && reviewing == nullptr);
  CHECK_EQUAL(std::string(op_name), "second_op");
}

TEST(supported_nodes) {
  const char* keys[] = {"op", "shrink"};
  const char* vals[] = {"relu", ""};
  int ids[] = {5, 5, 5};
  CHECK_EQUAL(_partCallSupportedOps(supportedOps, kGraph, 3, ids, keys, vals, 1), 1);
  CHECK(ids[0] == -2 && ids[1] == -1 && ids[2] == -1);
  CHECK_EQUAL(_partCallSupportedOps(supportedOps, kGraph, 3, ids, keys, vals, 2), 0);
  CHECK(contains(lastMessage(), "there must be 3 ids, one for each node, the function left 2"));
  CHECK_EQUAL(_partCallSupportedOps(supportedOps, "{\"nodes\"", 3, ids, keys, vals, 1), 0);
}

TEST(selectors) {
  void* selector = nullptr;
  CHECK_EQUAL(_partCallCreateSelector(createSelector, kGraph, &selector, nullptr, nullptr, 0), 1);
  int selected = 5;
  _partCallSelect(selector, 0, &selected);
  CHECK_EQUAL(selected, 0);
  _partCallSelectOutput(selector, 0, 1, &selected);
  CHECK_EQUAL(selected, 1);
  _partCallSelectInput(selector, 1, 0, &selected);
  CHECK_EQUAL(selected, 0);
  CHECK_THROWS(_partCallSelectInput(selector, 1, 1, &selected), std::exception,
               "the selector threw");

  int candidates[] = {1, 2};
  int* keep = nullptr;
  int count = 0;
  _partCallFilter(selector, candidates, 2, &keep, &count);
  CHECK(count == 2 && keep[0] == 1 && keep[1] == 2);
  _opCallFree(keep);
  _partCallReset(selector);
  _partCallFilter(selector, candidates, 2, &keep, &count);
  CHECK(count == 1 && keep[0] == 2);
  _opCallFree(keep);
  CHECK_EQUAL(destroyed, 0);
  _passlibPartDestroySelector(selector);
  CHECK_EQUAL(destroyed, 3);

  const char* key = "fail";
  const char* val = "";
  CHECK_EQUAL(_partCallCreateSelector(createSelector, kGraph, &selector, &key, &val, 1), 0);
  CHECK_EQUAL(destroyed, 6);
  key = "none";
  CHECK_EQUAL(_partCallCreateSelector(createSelector, kGraph, &selector, &key, &val, 1), 0);
  CHECK(contains(lastMessage(), "createSelector: the function made no selector"));
}

TEST(reviews) {
  float data[] = {2};
  const char* names[] = {"w"};
  void* datas[] = {data};
  const int64_t shape[] = {1};
  const int64_t* shapes[] = {shape};
  const int dims[] = {1};
  const int types[] = {kFloat32};
  const size_t ids[] = {0};
  const char* devices[] = {"cpu"};
  const int device_ids[] = {0};
  int accept = 5;
  char** keys = nullptr;
  char** vals = nullptr;
  int count = 5;
  const auto call = [&](int subgraph) {
    return _partCallReviewSubgraph(review, kGraph, subgraph, &accept, nullptr, nullptr, 0, &keys,
                                   &vals, &count, names, 1, datas, shapes, dims, types, ids,
                                   devices, device_ids, nullptr, 0, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, nullptr, nullptr);
  };
  CHECK_EQUAL(call(0), 1);
  CHECK(accept == 0 && count == 0 && keys == nullptr && vals == nullptr);
  CHECK_EQUAL(call(1), 1);
  CHECK(accept == 1 && count == 1);
  CHECK(std::string(keys[0]) == "weight" && std::string(vals[0]) == "w");
  for (char* text : {keys[0], vals[0]}) _opCallFree(text);
  for (char** texts : {keys, vals}) _opCallFree(texts);
}

MXReturnValue initialize(int) { return MX_SUCCESS; }

TEST(numbers_of_nothing_registered) {
  for (int idx : {-1, 1000}) {
    const char* name = "";
    graphPass_t pass = nullptr;
    _passRegGet(idx, &pass, &name);
    CHECK(name == nullptr && pass == nullptr);
    name = "";
    CHECK_EQUAL(_partRegGetCount(idx, &name), 0);
    CHECK(name == nullptr);
    const char* op = "";
    supportedOps_t supported = nullptr;
    createSelector_t create = nullptr;
    reviewSubgraph_t review_function = nullptr;
    for (int part : {0, idx}) {
      _partRegGet(part, idx, &name, &supported, &create, &review_function, &op);
      CHECK(name == nullptr && op == nullptr && supported == nullptr);
    }
  }
}

TEST(exception_without_text) {
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  CHECK_EQUAL(detail::guarded("call", []() -> int { throw Silent(); }), 0);
  CHECK(contains(lastMessage(), "without text"));
}
