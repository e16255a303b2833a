// ---- calls of partitioners ---------------------------------------------------------------------

namespace detail {

/// A selector with its graph.
struct OwnedSelector {
  explicit OwnedSelector(const ShownGraph& shown) : graph(shown) {}
  GivenGraph graph;
  Owned<CustomOpSelector> selector;  // destroyed first
};

/// The functions behind the entry points of partitioners; null in a library without partitioners.
struct PartitionerCalls {
  int (*size)();
  CustomPartitioner* (*get)(int idx);
  void (*describe)(int part_idx, int stg_idx, const char** strategy, supportedOps_t* supported_ops,
                   createSelector_t* create_selector, reviewSubgraph_t* review_subgraph,
                   const char** op_name);
  int (*supportedOps)(supportedOps_t function, const ShownGraph& shown, int num_ids, int* ids,
                      const GivenTexts& options);
  int (*createSelector)(createSelector_t function, const ShownGraph& shown, void** selector,
                        const GivenTexts& options);
  void (*select)(void* selector, int node, int* selected);
  void (*selectInput)(void* selector, int node, int input_node, int* selected);
  void (*selectOutput)(void* selector, int node, int output_node, int* selected);
  void (*filter)(void* selector, int* candidates, int num_candidates, int** keep, int* num_keep);
  void (*reset)(void* selector);
  void (*destroySelector)(void* selector);
  int (*reviewSubgraph)(reviewSubgraph_t function, const ShownGraph& shown, int subgraph_id,
                        int* accept, const GivenTexts& options, char*** attr_keys,
                        char*** attr_vals, int* num_attrs, const GivenParams& args,
                        const GivenParams& aux);

  static PartitionerCalls* table() {
    static PartitionerCalls calls = {};
    return &calls;
  }
};

inline int countPartitioners() { return Registry<CustomPartitioner>::get()->size(); }

inline CustomPartitioner* findPartitioner(int idx) {
  Registry<CustomPartitioner>* const partitioners = Registry<CustomPartitioner>::get();
  return idx >= 0 && idx < partitioners->size() ? &partitioners->get(idx) : nullptr;
}

inline void describeStrategy(int part_idx, int stg_idx, const char** strategy,
                             supportedOps_t* supported_ops, createSelector_t* create_selector,
                             reviewSubgraph_t* review_subgraph, const char** op_name) {
  guarded("_partRegGet", [&]() -> int {
    const CustomPartitioner& partitioner = Registry<CustomPartitioner>::get()->get(part_idx);
    *supported_ops = partitioner.getSupportedOps(stg_idx);
    *create_selector = partitioner.getCreateSelector(stg_idx);
    *review_subgraph = partitioner.getReviewSubgraph(stg_idx);
    *op_name = partitioner.op_names.at(static_cast<std::size_t>(stg_idx));
    *strategy = partitioner.strategies.at(static_cast<std::size_t>(stg_idx));
    return MX_SUCCESS;
  });
}

inline int callSupportedOps(supportedOps_t function, const ShownGraph& shown, int num_ids, int* ids,
                            const GivenTexts& options) {
  return guarded("supportedOps", [&]() -> int {
    requireFunction(function, "setSupportedOps");
    const GivenGraph graph(shown);
    std::vector<int> supported(static_cast<std::size_t>(num_ids), -2);
    if (function(graph.get(), &supported, options.map()) != MX_SUCCESS) return MX_FAIL;
    requireCount(supported, num_ids, "ids, one for each node");
    std::copy(supported.begin(), supported.end(), ids);
    return MX_SUCCESS;
  });
}

inline int callCreateSelector(createSelector_t function, const ShownGraph& shown, void** selector,
                              const GivenTexts& options) {
  return guarded("createSelector", [&]() -> int {
    requireFunction(function, "setCreateSelector");
    Owned<OwnedSelector> owned(new OwnedSelector(shown));
    CustomOpSelector* made = nullptr;
    const MXReturnValue result = function(owned->graph.get(), &made, options.map());
    owned->selector.reset(made);
    if (result != MX_SUCCESS) return MX_FAIL;
    if (made == nullptr) throw std::runtime_error("the function made no selector");
    *selector = owned.release();
    return MX_SUCCESS;
  });
}

/// Calls a selector. Its exceptions must be of a type that the host can catch.
template <typename Body>
void callSelector(void* selector, Body body) {
  try {
    body(static_cast<OwnedSelector*>(selector)->selector.get());
  } catch (const std::exception&) {
    throw;
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    throw std::runtime_error("the selector threw something that is not a std::exception");
  }
}

inline void callSelect(void* selector, int node, int* selected) {
  callSelector(selector,
               [&](CustomOpSelector* chosen) { *selected = chosen->Select(node) ? 1 : 0; });
}

inline void callSelectInput(void* selector, int node, int input_node, int* selected) {
  callSelector(selector, [&](CustomOpSelector* chosen) {
    *selected = chosen->SelectInput(node, input_node) ? 1 : 0;
  });
}

inline void callSelectOutput(void* selector, int node, int output_node, int* selected) {
  callSelector(selector, [&](CustomOpSelector* chosen) {
    *selected = chosen->SelectOutput(node, output_node) ? 1 : 0;
  });
}

inline void callFilter(void* selector, int* candidates, int num_candidates, int** keep,
                       int* num_keep) {
  callSelector(selector, [&](CustomOpSelector* chosen) {
    std::vector<int> kept;
    chosen->Filter(std::vector<int>(candidates, candidates + num_candidates), &kept);
    Handout memory;
    *keep = memory.copy(kept);
    *num_keep = static_cast<int>(kept.size());
    memory.release();
  });
}

inline void callReset(void* selector) {
  callSelector(selector, [](CustomOpSelector* chosen) { chosen->Reset(); });
}

inline void callDestroySelector(void* selector) {
  guarded("the selector's destructor", [&]() -> int {
    delete static_cast<OwnedSelector*>(selector);
    return MX_SUCCESS;
  });
}

inline int callReviewSubgraph(reviewSubgraph_t function, const ShownGraph& shown, int subgraph_id,
                              int* accept, const GivenTexts& options, char*** attr_keys,
                              char*** attr_vals, int* num_attrs, const GivenParams& given_args,
                              const GivenParams& given_aux) {
  return guarded("reviewSubgraph", [&]() -> int {
    requireFunction(function, "setReviewSubgraph");
    ParamTable args(given_args);
    ParamTable aux(given_aux);
    const GivenGraph given(shown);
    const CallParams lent(given.get(), &args, &aux, nullptr);
    bool accepted = false;
    options_map_t attributes;
    if (function(given.get(), subgraph_id, &accepted, options.map(), &attributes) != MX_SUCCESS) {
      return MX_FAIL;
    }
    lent.requireAsLent();
    *accept = accepted ? 1 : 0;
    if (attributes.empty()) return MX_SUCCESS;
    Handout memory;
    *attr_keys = memory.array<char*>(attributes.size());
    *attr_vals = memory.array<char*>(attributes.size());
    for (const auto& attribute : attributes) {
      (*attr_keys)[*num_attrs] = memory.copy(attribute.first);
      (*attr_vals)[*num_attrs] = memory.copy(attribute.second);
      ++*num_attrs;
    }
    memory.release();
    return MX_SUCCESS;
  });
}

inline void install(const CustomPartitioner*) {
  *PartitionerCalls::table() = {&countPartitioners, &findPartitioner,     &describeStrategy,
                                &callSupportedOps,  &callCreateSelector,  &callSelect,
                                &callSelectInput,   &callSelectOutput,    &callFilter,
                                &callReset,         &callDestroySelector, &callReviewSubgraph};
}

inline void install(const CustomPass*) {}
inline void install(const PassDeclaration*) {}

}  // namespace detail

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

#if !defined(PASSLIB_NO_GLOBAL_DLPACK) && !defined(DLPACK_DLPACK_H_) && !defined(DLPACK_VERSION)
using namespace mxnet::ext::dlpack;  // MXNet's header has these names in the global namespace
#endif
