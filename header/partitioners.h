// ================================================================================================
// Partitioners
// ================================================================================================

/// Decides node by node what belongs to a subgraph. Node numbers are positions in the graph given
/// to the createSelector function, which lives as long as the selector. passlib destroys selectors;
/// MXNet never does.
class CustomOpSelector {
 public:
  virtual ~CustomOpSelector() {}
  /// Whether a subgraph may start from this node.
  virtual bool Select(int nodeID) = 0;
  /// Whether a subgraph with node nodeID may also include the producer of one of its inputs.
  virtual bool SelectInput(int nodeID, int input_nodeID) = 0;
  /// The same for the consumer of one of its outputs.
  virtual bool SelectOutput(int nodeID, int output_nodeID) = 0;
  /// Chooses the nodes of a grown subgraph to keep; by default all.
  virtual void Filter(const std::vector<int>& candidates, std::vector<int>* keep) {
    for (std::size_t pos = 0; pos < candidates.size(); ++pos) keep->push_back(candidates[pos]);
  }
  /// Called before the growth of a subgraph restarts.
  virtual void Reset() {}
};

/// Sets which nodes are supported: ids has one number per node, initially -2. -2: not supported;
/// -1: in any subgraph; from 0: only together with nodes of the same number.
typedef MXReturnValue (*supportedOps_t)(const Graph* graph, std::vector<int>* ids,
                                        const options_map_t& options);
typedef MXReturnValue (*createSelector_t)(const Graph* graph, CustomOpSelector** sel_inst,
                                          const options_map_t& options);
/// Accepts or rejects a subgraph (*accept is initially false), and sets attributes of the node that
/// replaces it. Variables of the subgraph that are parameters have their tensor.
typedef MXReturnValue (*reviewSubgraph_t)(const Graph* subgraph, int subgraph_id, bool* accept,
                                          const options_map_t& options, options_map_t* attrs);

/// A partitioner: strategies that run in turn. Each needs supportedOps or createSelector (the
/// former takes precedence) and replaces subgraphs by nodes of its own subgraph operator.
class CustomPartitioner {
 public:
  CustomPartitioner() : name("ERROR") {}
  explicit CustomPartitioner(const char* backend_name) : name(backend_name) {}

  CustomPartitioner& addStrategy(const char* prop_name, const char* sg_name) {
    strategies.push_back(prop_name);
    op_names.push_back(sg_name);
    return *this;
  }
  CustomPartitioner& setSupportedOps(const char* prop_name, supportedOps_t function) {
    supported_map[prop_name] = function;
    return *this;
  }
  CustomPartitioner& setCreateSelector(const char* prop_name, createSelector_t function) {
    selector_map[prop_name] = function;
    return *this;
  }
  CustomPartitioner& setReviewSubgraph(const char* prop_name, reviewSubgraph_t function) {
    review_map[prop_name] = function;
    return *this;
  }

  /// Functions of strategy number stg_id; null if not set.
  supportedOps_t getSupportedOps(int stg_id) const { return find(supported_map, stg_id); }
  createSelector_t getCreateSelector(int stg_id) const { return find(selector_map, stg_id); }
  reviewSubgraph_t getReviewSubgraph(int stg_id) const { return find(review_map, stg_id); }

  const char* name;
  std::map<std::string, supportedOps_t> supported_map;
  std::map<std::string, createSelector_t> selector_map;
  std::map<std::string, reviewSubgraph_t> review_map;
  std::vector<const char*> strategies;
  std::vector<const char*> op_names;  ///< the subgraph operator of each strategy

 private:
  template <typename Function>
  Function find(const std::map<std::string, Function>& functions, int stg_id) const {
    const auto found = functions.find(strategies.at(static_cast<std::size_t>(stg_id)));
    return found == functions.end() ? nullptr : found->second;
  }
};

/// Registers a partitioner: REGISTER_PARTITIONER(mine).addStrategy("first", "my_subgraph_op")...
#define REGISTER_PARTITIONER(Name)                                                          \
  static mxnet::ext::CustomPartitioner& MX_STR_CONCAT(                                      \
      MX_STR_CONCAT(MXNet_CustomPartitioner_, Name), __COUNTER__) __attribute__((unused)) = \
      mxnet::ext::Registry<mxnet::ext::CustomPartitioner>::get() -> add(MX_TOSTRING(Name))
