// ---- calls of passes ---------------------------------------------------------------------------

namespace detail {

/// The graph of a call, as JSON or as plain arrays; the other is null.
struct ShownGraph {
  const char* json;
  const FlatModel* flat;
};

/// The graph of a call, which a host gives as plain arrays or as JSON.
class GivenGraph {
 public:
  explicit GivenGraph(const ShownGraph& shown) : graph_(nullptr) {
    if (shown.flat == nullptr) {
      JsonOptions reading;
      reading.allow_control_characters = true;  // MXNet does not escape them
      read_.reset(Graph::fromString(shown.json, strlen(shown.json), reading));
      graph_ = read_.get();
    } else {
      store_.reset(new FlatStore(shown.flat->memory));
      graph_ = store_->unflatten(*shown.flat);
    }
  }
  Graph* get() const { return graph_; }
  /// Returns the graph as plain arrays, with all that they refer to.
  const FlatModel* releaseFlat(const FlatModel* shown) {
    store_->flatten(*graph_, shown);
    return &store_.release()->model;
  }

 private:
  Owned<FlatStore> store_;
  Owned<Graph> read_;
  Graph* graph_;
};

inline void takeBackParams(Graph* graph) {
  graph->forEachNode([](Graph*, Node* node) { node->tensor = nullptr; });
}

/// Lends parameters to the variables of a graph, for the time of a call.
class CallParams {
 public:
  /// Lends no more than a resource if there are no parameters, which most walks are for.
  CallParams(Graph* graph, ParamTable* args, ParamTable* aux, const PassResource* resource)
      : graph_(graph),
        args_(args),
        aux_(aux),
        resource_(resource),
        any_(!args->empty() || !aux->empty()) {
    if (!any_) return;
    aux->assign(graph->inputs);
    args->assign(graph->inputs);  // of a name in both, the argument
  }
  bool any() const { return any_; }
  CallParams(const CallParams&) = delete;
  CallParams& operator=(const CallParams&) = delete;
  ~CallParams() {
    if (any_ || (resource_ != nullptr && resource_->_hasTensors())) takeBackParams(graph_);
  }
  /// Throws std::runtime_error if the call changed tensors, or gave variables others, in a way that
  /// the host does not see.
  void requireAsLent() const {
    args_->requireAsLent();
    aux_->requireAsLent();
    AddressTable made;
    if (resource_ != nullptr) resource_->_requireAsMade(&made);
    graph_->forEachNode([&](Graph*, Node* node) { requireOwnTensor(*node, made); });
  }

 private:
  void requireOwnTensor(const Node& node, const AddressTable& made) const {
    if (node.tensor == nullptr || node.op != "null") return;
    const ParamTable::Lent* lent = args_->find(node.tensor);
    if (lent == nullptr) lent = aux_->find(node.tensor);
    std::string copy;
    if (lent != nullptr && (lent->node == &node || paramName(node, &copy) == lent->name)) return;
    const int64_t position = made.find(node.tensor);
    if (lent == nullptr && position < 0) {
      failCall("variable '%s' has a tensor that the host did not lend: alloc_arg makes one",
               node.name.c_str());
    }
    const char* const owner =
        lent != nullptr ? lent->name : resource_->_nameOfMade(position).c_str();
    if (lent == nullptr && node.name == owner) return;
    failCall(
        "variable '%s' has the tensor of '%s', which the host does not see: alloc_arg makes one",
        node.name.c_str(), owner);
  }

  Graph* graph_;
  ParamTable* args_;
  ParamTable* aux_;
  const PassResource* resource_;
  bool any_;
};

/// The arguments of a call of a pass.
struct PassCall {
  graphPass_t function;
  const char* name;
  GivenTexts options;
  GivenParams args;
  GivenParams aux;
  nd_malloc_t nd_malloc;
  const void* nd_alloc;
};

/// Runs a pass on a graph.
inline int runPass(const PassCall& call, Graph* graph, const FlatModel* shown) {
  if (call.function == nullptr) {
    MXerrorMsgs::get()->add(printed("pass '%s' has no body: call setBody", call.name));
    return MX_FAIL;
  }
  ParamTable args(call.args);
  ParamTable aux(call.aux);
  PassResource resource(call.nd_malloc, call.nd_alloc);
  resource._setGraph(graph);
  resource._setParams(&args, &aux);
  if (shown != nullptr && shown->types != nullptr) resource._offerTypes(*shown);
  const RunningPass running(&resource);
  const CallParams lent(graph, &args, &aux, &resource);
  for (Node* node : graph->inputs) {
    if (!lent.any()) break;
    const MXTensor* tensor = node->tensor;
    if (tensor == nullptr || tensor->data_ptr != nullptr || tensor->size() == 0) continue;
    if (tensor->verID != 0) continue;  // on demand
    resource._noteUnlent(node);
    node->tensor = nullptr;
  }
  const options_map_t options = call.options.map();
  const DeclaredPasses* declared = DeclaredPasses::get();
  MXReturnValue result = MX_FAIL;
  if (declared->run == nullptr ||
      !declared->run(call.function, call.name, graph, options, &result)) {
    result = call.function(graph, options);
  }
  if (result != MX_SUCCESS) return MX_FAIL;
  if (lent.any() || resource._hasTensors()) lent.requireAsLent();
  return MX_SUCCESS;
}

inline int callPass(const PassCall& call, const char* json, char** result) {
  return guarded(printed("pass '%s'", call.name).c_str(), [&]() -> int {
    GivenGraph graph(ShownGraph{json, nullptr});
    if (runPass(call, graph.get(), nullptr) != MX_SUCCESS) return MX_FAIL;
    const std::string text = graph.get()->toString();
    *result = static_cast<char*>(malloc(text.size() + 1));
    if (*result == nullptr) throw std::bad_alloc();
    memcpy(*result, text.c_str(), text.size() + 1);
    return MX_SUCCESS;
  });
}

inline int callPass(const PassCall& call, const FlatModel* shown, const FlatModel** result) {
  return guarded(printed("pass '%s'", call.name).c_str(), [&]() -> int {
    GivenGraph graph(ShownGraph{nullptr, shown});
    if (runPass(call, graph.get(), shown) != MX_SUCCESS) return MX_FAIL;
    *result = graph.releaseFlat(shown);
    return MX_SUCCESS;
  });
}

}  // namespace detail
