#include "library/library.h"

#include <dlfcn.h>

#include <cctype>
#include <cstring>
#include <set>
#include <sstream>

#include "errors.h"
#include "library/calls/call.h"
#include "library/opening/linker.h"
#include "library/params.h"
#include "platform/library_file.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

/// Pairs devices with functions. A library may list a device more than once.
template <typename Function>
std::map<std::string, Function> byDevice(const char** devices, Function* functions, int count) {
  std::map<std::string, Function> result;
  for (int i = 0; i < count && devices != nullptr && functions != nullptr; ++i) {
    if (devices[i] != nullptr && functions[i] != nullptr) result[devices[i]] = functions[i];
  }
  return result;
}

/// Lines after the first, as the continuation of a message.
std::string indented(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, "  ");
  }
  return text;
}

/// `items`: passes or partitioners; `kind` names them. Throws LoadError if two have one name.
template <typename Items>
void requireDistinct(const std::string& path, const char* kind, const Items& items) {
  std::set<std::string> names;
  for (const auto& item : items) {
    if (names.insert(item.name).second) continue;
    refuseLibrary(path,
                  std::string("it registers the ") + kind + " " + quoted(item.name) + " twice");
  }
}

}  // namespace

Library::Library(const std::string& path) : path_(path) {
  const FloatingPoint arithmetic;
  handle_ = openLibraryFile(path);
  unique_symbols_ = passlib::uniqueSymbols(path);
  state_ = &CallState::of(handle_, path);
  if (arithmetic.restore()) state_->noteArithmetic();
}

Library::~Library() {
  // Never dlclose'd: graphs and arrays may hold pointers into the library, which may also have
  // threads or atexit handlers.
}

template <typename Function>
Function Library::find(const char* name) const {
  return reinterpret_cast<Function>(dlsym(handle_, name));
}

template <typename Function>
Function Library::require(const char* name) const {
  const auto function = find<Function>(name);
  if (function == nullptr) {
    refuseLibrary(path_, std::string("it has no function ") + name +
                             "; a library includes lib_api.h and defines initialize()");
  }
  return function;
}

std::shared_ptr<Library> Library::open(const std::string& path, int version, OnInterrupt how,
                                       CalledFor use) {
  // Static constructors and initialize() may take as long as any pass.
  std::atomic<int> unasked{0};
  InterruptWatch watch(how, &unasked, "loading library " + quoted(path));
  std::shared_ptr<Library> library(new Library(path));
  watch.tell(library->state_->interruptFlag());
  library->shakeHands(version, use);
  library->takeDeclarations();
  const CallState::Lock lock(library->state_);
  try {
    library->listPasses();
    library->listPartitioners();
    library->listOperators();
    library->findFlatCalls();
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    refuseLibrary(path,
                  "it threw while it listed what it holds: " + mxnet::ext::host::textOf(error));
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    refuseLibrary(path,
                  "it threw something that is no std::exception while it listed what it holds");
  }
  return library;
}

void Library::release(void* memory) const {
  if (memory == nullptr) return;
  const CallState::Lock lock(state_);
  call_free_(memory);
}

void Library::shakeHands(int version, CalledFor use) {
  const auto abi = require<mxnet::ext::opVersion_t>("_opVersion");
  const auto start = require<mxnet::ext::initialize_t>("initialize");
  call_free_ = require<mxnet::ext::opCallFree_t>("_opCallFree");
  abi_version_ = abi();
  if (abi_version_ < kOldestAbi || abi_version_ > kNewestAbi) {
    refuseLibrary(path_, "it speaks version " + std::to_string(abi_version_) +
                             " of the extension ABI; passlib speaks " + std::to_string(kOldestAbi) +
                             " to " + std::to_string(kNewestAbi) +
                             ", so compile it against a lib_api.h of one of these");
  }
  message_size_ = find<mxnet::ext::msgSize_t>("_msgSize");
  message_get_ = find<mxnet::ext::msgGet_t>("_msgGet");
  if (use == CalledFor::kEverything) offerServices();
  if (const auto errors = find<mxnet::ext::passlibLoadErrors_t>("_passlibLoadErrors")) {
    const char* text = errors();
    if (text != nullptr) refuseLibrary(path_, indented(text));
  }
  const CallOutcome outcome = callLibrary(*this, [&]() { return start(version); });
  if (outcome.succeeded()) return;
  refuseLibrary(path_,
                describeFailure("its initialize(" + std::to_string(version) + ") failed", outcome));
}

void Library::offerServices() {
  if (const auto set = find<mxnet::ext::passlibSetInterrupted_t>("_passlibSetInterrupted")) {
    const CallState::Lock lock(state_);
    set([](const void* state) { return static_cast<const CallState*>(state)->interrupted(); },
        state_);
  }
  if (const auto set = find<mxnet::ext::passlibSetWeights_t>("_passlibSetWeights")) {
    const CallState::Lock lock(state_);
    set(&Allocator::read, &Allocator::scale);
  }
}

void Library::takeDeclarations() {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  const auto get = find<mxnet::ext::passlibDeclarations_t>("_passlibDeclarations");
  if (get == nullptr) return;
  const char* text = nullptr;
  const CallOutcome outcome = callLibrary(*this, [&]() { return get(&text); });
  if (!outcome.succeeded()) {
    refuseLibrary(path_, describeFailure("its _passlibDeclarations failed", outcome));
  }
  if (text == nullptr) return;
  const std::size_t size = strnlen(text, kMost + 1);
  if (size > kMost) {
    refuseLibrary(
        path_, "its _passlibDeclarations returned more than " + std::to_string(kMost) + " bytes");
  }
  declarations_.assign(text, size);
}

void Library::listPasses() {
  const auto size = find<mxnet::ext::passRegSize_t>("_passRegSize");
  const int count = size == nullptr ? 0 : size();
  if (count <= 0) return;
  const auto get = require<mxnet::ext::passRegGet_t>("_passRegGet");
  call_pass_ = require<mxnet::ext::passCallGraphPass_t>("_passCallGraphPass");
  for (int i = 0; i < count; ++i) {
    mxnet::ext::graphPass_t body = nullptr;
    const char* name = nullptr;
    get(i, &body, &name);
    if (name == nullptr) refuseLibrary(path_, "pass number " + std::to_string(i) + " has no name");
    passes_.push_back(Pass{name, body});
  }
  requireDistinct(path_, "pass", passes_);
}

void Library::listPartitioners() {
  const auto size = find<mxnet::ext::partRegSize_t>("_partRegSize");
  const int count = size == nullptr ? 0 : size();
  if (count <= 0) return;
  const auto get_count = require<mxnet::ext::partRegGetCount_t>("_partRegGetCount");
  const auto get = require<mxnet::ext::partRegGet_t>("_partRegGet");
  findPartitionerCalls();
  for (int i = 0; i < count; ++i) {
    const char* name = nullptr;
    const int strategies = get_count(i, &name);
    if (name == nullptr)
      refuseLibrary(path_, "partitioner number " + std::to_string(i) + " has no name");
    Partitioner partitioner{name, {}};
    for (int k = 0; k < strategies; ++k) {
      Strategy strategy;
      const char* strategy_name = nullptr;
      const char* op = nullptr;
      get(i, k, &strategy_name, &strategy.supported_ops, &strategy.create_selector,
          &strategy.review, &op);
      strategy.name = strategy_name == nullptr ? "" : strategy_name;
      strategy.op = op == nullptr ? "" : op;
      partitioner.strategies.push_back(std::move(strategy));
    }
    partitioners_.push_back(std::move(partitioner));
  }
  requireDistinct(path_, "partitioner", partitioners_);
}

void Library::findPartitionerCalls() {
  PartitionerCalls& calls = partitioner_calls_;
  calls.supported_ops = require<mxnet::ext::partCallSupportedOps_t>("_partCallSupportedOps");
  calls.create_selector = require<mxnet::ext::partCallCreateSelector_t>("_partCallCreateSelector");
  calls.select = require<mxnet::ext::partCallSelect_t>("_partCallSelect");
  calls.select_input = require<mxnet::ext::partCallSelectInput_t>("_partCallSelectInput");
  calls.select_output = require<mxnet::ext::partCallSelectOutput_t>("_partCallSelectOutput");
  calls.filter = require<mxnet::ext::partCallFilter_t>("_partCallFilter");
  calls.reset = require<mxnet::ext::partCallReset_t>("_partCallReset");
  calls.review = require<mxnet::ext::partCallReviewSubgraph_t>("_partCallReviewSubgraph");
  calls.destroy_selector = find<void (*)(void*)>("_passlibPartDestroySelector");
}

void Library::listOperators() {
  const auto size = find<mxnet::ext::opRegSize_t>("_opRegSize");
  const int count = size == nullptr ? 0 : size();
  if (count <= 0) return;
  const auto get = require<mxnet::ext::opRegGet_t>("_opRegGet");
  findOperatorCalls();
  for (int i = 0; i < count; ++i) {
    Operator op;
    const char* name = nullptr;
    int is_subgraph = 0;
    const char** devices[3] = {nullptr, nullptr, nullptr};
    int counts[3] = {0, 0, 0};
    mxnet::ext::fcomp_t* forward = nullptr;
    mxnet::ext::fcomp_t* backward = nullptr;
    mxnet::ext::createOpState_t* create = nullptr;
    get(i, &name, &is_subgraph, &devices[0], &forward, &counts[0], &devices[1], &backward,
        &counts[1], &devices[2], &create, &counts[2], &op.parse, &op.type, &op.storage, &op.shape,
        &op.mutate);
    if (name == nullptr)
      refuseLibrary(path_, "operator number " + std::to_string(i) + " has no name");
    op.name = name;
    op.is_subgraph = is_subgraph != 0;
    op.forward = byDevice(devices[0], forward, counts[0]);
    op.backward = byDevice(devices[1], backward, counts[1]);
    op.create_state = byDevice(devices[2], create, counts[2]);
    checkOperator(op);
    operators_.push_back(std::move(op));
  }
}

void Library::findOperatorCalls() {
  OperatorCalls& calls = operator_calls_;
  calls.parse = require<mxnet::ext::opCallParseAttrs_t>("_opCallParseAttrs");
  calls.shape = require<mxnet::ext::opCallInferShape_t>("_opCallInferShape");
  calls.type = require<mxnet::ext::opCallInferType_t>("_opCallInferType");
  calls.storage = require<mxnet::ext::opCallInferSType_t>("_opCallInferSType");
  calls.compute = require<mxnet::ext::opCallFComp_t>("_opCallFCompute");
  calls.mutate = require<mxnet::ext::opCallMutateInputs_t>("_opCallMutateInputs");
  calls.compute_stateful = require<mxnet::ext::opCallFStatefulComp_t>("_opCallFStatefulCompute");
  const char* create = "_opCallCreateOpState";
  if (abi_version_ < 10) {
    calls.create_state_before_10 = require<CreateOpStateBefore10>(create);
  } else {
    calls.create_state = require<mxnet::ext::opCallCreateOpState_t>(create);
  }
  // Before version 11 libraries cannot destroy states, which are then never freed.
  if (abi_version_ >= 11) {
    calls.destroy_state = require<mxnet::ext::opCallDestroyOpState_t>("_opCallDestroyOpState");
  }
}

/// Refuses operators that MXNet refuses at load time.
void Library::checkOperator(const Operator& op) const {
  const auto missing = [&](const char* setter) {
    refuseLibrary(path_, "its operator " + quoted(op.name) + " is not complete: " + setter +
                             " was not called where it is registered");
  };
  if (op.is_subgraph) {  // arity, types and shapes are those of the node's subgraph
    if (op.create_state.empty()) missing("setCreateOpState");
    return;
  }
  if (op.parse == nullptr) missing("setParseAttrs");
  if (op.type == nullptr) missing("setInferType");
  if (op.shape == nullptr) missing("setInferShape");
  if (op.forward.empty() && op.create_state.empty()) missing("setForward or setCreateOpState");
}

void Library::findFlatCalls() {
  const auto version = find<mxnet::ext::passlibFlatVersion_t>("_passlibFlatVersion");
  ours_ = version != nullptr;
  flat_version_ = ours_ ? version() : 0;
  if (flat_version_ != PASSLIB_FLAT_VERSION) return;
  free_flat_ = find<mxnet::ext::passlibFreeFlat_t>("_passlibFreeFlat");
  if (free_flat_ == nullptr) return;
  call_pass_flat_ = find<mxnet::ext::passlibCallFlatPass_t>("_passlibCallFlatPass");
  PartitionerCalls& calls = partitioner_calls_;
  calls.supported_ops_flat =
      find<mxnet::ext::passlibCallFlatSupportedOps_t>("_passlibCallFlatSupportedOps");
  calls.create_selector_flat =
      find<mxnet::ext::passlibCallFlatCreateSelector_t>("_passlibCallFlatCreateSelector");
  calls.review_flat =
      find<mxnet::ext::passlibCallFlatReviewSubgraph_t>("_passlibCallFlatReviewSubgraph");
}

int Library::messageCount() const { return message_size_ == nullptr ? 0 : message_size_(); }

std::vector<std::string> Library::messagesFrom(int first) const {
  std::vector<std::string> messages;
  if (message_get_ == nullptr) return messages;
  const int count = messageCount();
  for (int i = first; i < count; ++i) {
    const char* text = nullptr;
    message_get_(i, &text);
    if (text == nullptr) continue;
    messages.emplace_back(text);
    std::string& message = messages.back();
    // By MXNet's custom, messages often end with std::endl.
    while (!message.empty() && std::isspace(static_cast<unsigned char>(message.back()))) {
      message.pop_back();
    }
  }
  return messages;
}

}  // namespace passlib
