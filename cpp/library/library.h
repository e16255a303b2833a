// A loaded library: its entry points, its passes, partitioners and operators, its messages.
#ifndef PASSLIB_LIBRARY_LIBRARY_H_
#define PASSLIB_LIBRARY_LIBRARY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "header.h"
#include "library/calls/interrupt.h"
#include "library/calls/state.h"
#include "library/entry_points.h"

namespace passlib {

/// Supported versions of the extension ABI. Only the C functions that create and destroy the state
/// of an operator differ between them.
constexpr int kOldestAbi = 7;
constexpr int kNewestAbi = MX_LIBRARY_VERSION;

/// How a pass is handed its graph, from the fastest to the slowest.
enum class Handover {
  kFlat,  ///< as arrays of plain structs
  kJson,  ///< as text
};

/// The calls that a host makes.
enum class CalledFor {
  kEverything,
  kOperators,  ///< neither interrupts calls nor lends weights, and leaves both to another host
};

class Library {
 public:
  struct Pass {
    std::string name;
    mxnet::ext::graphPass_t body;
  };
  /// One way to choose and review subgraphs. Functions that the library did not set are null.
  struct Strategy {
    std::string name;
    std::string op;  ///< of the nodes that replace subgraphs
    mxnet::ext::supportedOps_t supported_ops = nullptr;
    mxnet::ext::createSelector_t create_selector = nullptr;
    mxnet::ext::reviewSubgraph_t review = nullptr;
  };
  struct Partitioner {
    std::string name;
    std::vector<Strategy> strategies;
  };
  /// The entry points for partitioners; null in a library without partitioners.
  struct PartitionerCalls {
    mxnet::ext::partCallSupportedOps_t supported_ops = nullptr;
    mxnet::ext::partCallCreateSelector_t create_selector = nullptr;
    mxnet::ext::partCallSelect_t select = nullptr;
    mxnet::ext::partCallSelectInput_t select_input = nullptr;
    mxnet::ext::partCallSelectOutput_t select_output = nullptr;
    mxnet::ext::partCallFilter_t filter = nullptr;
    mxnet::ext::partCallReset_t reset = nullptr;
    mxnet::ext::partCallReviewSubgraph_t review = nullptr;
    /// Not part of MXNet's ABI: null in libraries built with its lib_api, which never free
    /// selectors.
    void (*destroy_selector)(void* selector) = nullptr;
    // With the graph in the flat form; null unless the library takes it.
    mxnet::ext::passlibCallFlatSupportedOps_t supported_ops_flat = nullptr;
    mxnet::ext::passlibCallFlatCreateSelector_t create_selector_flat = nullptr;
    mxnet::ext::passlibCallFlatReviewSubgraph_t review_flat = nullptr;
  };

  struct Operator {
    std::string name;
    bool is_subgraph = false;  ///< runs the subgraph of its node
    mxnet::ext::parseAttrs_t parse = nullptr;
    mxnet::ext::inferType_t type = nullptr;
    mxnet::ext::inferSType_t storage = nullptr;
    mxnet::ext::inferShape_t shape = nullptr;
    mxnet::ext::mutateInputs_t mutate = nullptr;
    // By device. Only those for kDevice are ever called.
    std::map<std::string, mxnet::ext::fcomp_t> forward;
    std::map<std::string, mxnet::ext::fcomp_t> backward;
    std::map<std::string, mxnet::ext::createOpState_t> create_state;
  };
  static constexpr const char* kDevice = "cpu";
  /// ABI 7 to 9: the state of an operator is created without device, shapes and types.
  using CreateOpStateBefore10 = int (*)(mxnet::ext::createOpState_t fp, const char* const* keys,
                                        const char* const* vals, int num, void** state_op);
  /// The entry points for operators; null in a library without operators.
  struct OperatorCalls {
    mxnet::ext::opCallParseAttrs_t parse = nullptr;
    mxnet::ext::opCallInferShape_t shape = nullptr;
    mxnet::ext::opCallInferType_t type = nullptr;
    mxnet::ext::opCallInferSType_t storage = nullptr;
    mxnet::ext::opCallFComp_t compute = nullptr;
    mxnet::ext::opCallMutateInputs_t mutate = nullptr;
    mxnet::ext::opCallCreateOpState_t create_state = nullptr;    ///< ABI 10 and later
    CreateOpStateBefore10 create_state_before_10 = nullptr;      ///< ABI 7 to 9
    mxnet::ext::opCallDestroyOpState_t destroy_state = nullptr;  ///< ABI 11
    mxnet::ext::opCallFStatefulComp_t compute_stateful = nullptr;
  };

  /// Opens a library: checks its ABI version, calls its initialize() and lists what it registered.
  /// initialize() receives `version`: 10000 * major + 100 * minor + patch of MXNet. `how`: what to
  /// do on SIGINT meanwhile. Throws LoadError.
  static std::shared_ptr<Library> open(const std::string& path, int version, OnInterrupt how,
                                       CalledFor use = CalledFor::kEverything);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return path_; }
  /// See uniqueSymbols of library_file.h; of the file as it was opened.
  const std::vector<std::string>& uniqueSymbols() const { return unique_symbols_; }
  int abiVersion() const { return abi_version_; }
  const std::vector<Pass>& passes() const { return passes_; }
  const std::vector<Partitioner>& partitioners() const { return partitioners_; }
  const PartitionerCalls& partitionerCalls() const { return partitioner_calls_; }
  const std::vector<Operator>& operators() const { return operators_; }
  const OperatorCalls& operatorCalls() const { return operator_calls_; }
  /// The fastest way that its passes can be handed a graph.
  Handover handover() const {
    return call_pass_flat_ != nullptr ? Handover::kFlat : Handover::kJson;
  }
  /// Whether its lib_api is this project's, which preserves everything in a graph.
  bool isOurs() const { return ours_; }
  /// The version of the arrays that it shares graphs as; 0 without them.
  int flatVersion() const { return flat_version_; }
  /// The declarations of its passes as unchecked JSON, which declarationsOf reads; "" if there are
  /// none.
  const std::string& declarations() const { return declarations_; }

  mxnet::ext::passCallGraphPass_t callPass() const { return call_pass_; }
  mxnet::ext::passlibCallFlatPass_t callPassFlat() const { return call_pass_flat_; }
  mxnet::ext::passlibFreeFlat_t freeFlat() const { return free_flat_; }
  /// Releases memory that the library returned; takes the lock.
  void release(void* memory) const;

  /// The number of messages, and those from number `first` on. Libraries of ABI 7 have none.
  int messageCount() const;
  std::vector<std::string> messagesFrom(int first) const;

  /// The state that all calls of the library share; calls go through callLibrary, see calls/call.h.
  CallState& state() const { return *state_; }

 private:
  explicit Library(const std::string& path);
  template <typename Function>
  Function find(const char* name) const;
  template <typename Function>
  Function require(const char* name) const;
  void shakeHands(int version, CalledFor use);
  void offerServices();
  void listPasses();
  void takeDeclarations();
  void listPartitioners();
  void findPartitionerCalls();
  void listOperators();
  void findOperatorCalls();
  void checkOperator(const Operator& op) const;
  void findFlatCalls();

  std::string path_;
  std::vector<std::string> unique_symbols_;
  void* handle_ = nullptr;
  int abi_version_ = 0;
  bool ours_ = false;
  int flat_version_ = 0;
  std::string declarations_;
  std::vector<Pass> passes_;
  std::vector<Partitioner> partitioners_;
  PartitionerCalls partitioner_calls_;
  std::vector<Operator> operators_;
  OperatorCalls operator_calls_;
  mxnet::ext::opCallFree_t call_free_ = nullptr;
  mxnet::ext::msgSize_t message_size_ = nullptr;
  mxnet::ext::msgGet_t message_get_ = nullptr;
  mxnet::ext::passCallGraphPass_t call_pass_ = nullptr;
  mxnet::ext::passlibCallFlatPass_t call_pass_flat_ = nullptr;
  mxnet::ext::passlibFreeFlat_t free_flat_ = nullptr;
  CallState* state_ = nullptr;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_LIBRARY_H_
