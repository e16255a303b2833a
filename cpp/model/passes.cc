#include "model/passes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "facts/file_facts.h"
#include "graph/attributes.h"
#include "graph/variables.h"
#include "library/calls/call.h"
#include "library/calls/output.h"
#include "mxnet/operators.h"
#include "mxnet/reading.h"
#include "partition/partition.h"
#include "rules/known.h"

namespace passlib::model {

namespace {

using mxnet::ext::FlatText;

constexpr const char* kDialect = "dialect";

/// The weights of a model, or its auxiliary states, lent to one call.
class Lent {
 public:
  Lent(const Model& model, const NameList& names, bool are_states, Lending lending)
      : are_states_(are_states) {
    given_.reserve(names.size());
    block_.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto found = model.arrays.find(std::string(names[i]));
      if (found != model.arrays.end() && found->second.is_state == are_states &&
          !isSmall(found->second)) {
        add(found->first, found->second, lending);
      }
    }
    copies_.make();
    for (std::size_t i = 0; i < copies_.count(); ++i) {
      block_.setData(copies_.place(i), copies_.data(i));
    }
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  const ParamBlock& block() const { return block_; }
  const Array& array(std::size_t number) const { return *given_[number].second; }

  /// Replaces those of the arrays that the pass wrote to.
  void takeChanges(Arrays* arrays) const {
    for (std::size_t i = 0; i < copies_.count(); ++i) {
      const auto& [name, array] = given_[copies_.place(i)];
      if (arrays->count(*name) == 0 || !copies_.differs(i)) continue;
      const std::shared_ptr<const char> kept = copies_.kept(i);
      (*arrays)[*name] = {array->type, array->dims, onnx::Bytes(kept.get(), copies_.size(i)),
                          kept,        nullptr,     are_states_};
    }
  }

 private:
  void add(const std::string& name, const Array& array, Lending lending) {
    const Array* lent = &array;
    if (array.scaled != nullptr && lending != Lending::kNothing) {
      made_.push_back(std::make_unique<Array>(computed(array)));
      lent = made_.back().get();
    }
    const auto type = static_cast<int>(rules::arrayType(array.type));
    int64_t* const sizes = block_.add(name, nullptr, array.dims.size(), type);
    std::copy(array.dims.begin(), array.dims.end(), sizes);
    const std::size_t number = given_.size();
    given_.emplace_back(&name, lent);
    const std::size_t size = lent->data.size();
    if (lending == Lending::kOnDemand) {
      block_.setOnDemand(number, !are_states_, {lent->data.data(), size, type});
    } else if (lending == Lending::kWhole) {
      const std::size_t element = elementSize(type);
      const auto address = reinterpret_cast<uintptr_t>(lent->data.data());
      copies_.add(number, lent->data.data(), size, element == 0 || address % element == 0);
    }
  }

  bool are_states_;
  ParamBlock block_;
  Copies copies_;
  std::vector<std::pair<const std::string*, const Array*>> given_;
  std::vector<std::unique_ptr<Array>> made_;
};

/// Infers types while a pass runs, at its first question.
class Types {
 public:
  Types(const Model& model, std::shared_ptr<const Graph> graph)
      : model_(model), graph_(std::move(graph)) {}

  /// Two texts for each node; null if they are not all known. In any thread.
  const FlatText* read() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!asked_) infer();
    asked_ = true;
    return spans_.empty() ? nullptr : spans_.data();
  }

  /// Sets the attributes of the nodes of a graph that is equal to the one that is asked about.
  void setIn(Graph* graph) {
    if (read() == nullptr) return;
    for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
      setAttribute(graph->nodes[i], MX_STR_SHAPE, texts_[i].first);
      setAttribute(graph->nodes[i], MX_STR_DTYPE, texts_[i].second);
    }
  }

 private:
  static std::map<int, int> codes() {
    std::map<int, int> made;
    for (int code = 1; code < 32; ++code) {
      const mxnet::ext::MXDType type = rules::arrayType(code);
      if (type != mxnet::ext::kUNSET) made[code] = static_cast<int>(type);
    }
    return made;
  }

  void infer() {
    facts::FileFacts found(model_.file->originals(), graph_, arrayFacts(model_, *graph_));
    const bool unchanged = equalGraphs(*model_.file->graph()->get(), *graph_);
    found.infer(opsetsOf(model_), {}, unchanged, true, false);
    texts_ = found.texts(codes());
    for (const auto& [shape, type] : texts_) {
      spans_.push_back({shape.data(), shape.size()});
      spans_.push_back({type.data(), type.size()});
    }
  }

  const Model& model_;
  std::shared_ptr<const Graph> graph_;
  std::mutex mutex_;
  bool asked_ = false;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<FlatText> spans_;
};

/// Puts new parameters among the arrays of a model. A state stays one, however it is allocated.
void takeParams(std::vector<NewParam> params, const Lent& args, const Lent& aux,
                const Model& before, Arrays* arrays) {
  for (NewParam& param : params) {
    const int type = rules::onnxType(static_cast<mxnet::ext::MXDType>(param.dtype));
    const auto old = before.arrays.find(param.name);
    const bool is_state =
        old != before.arrays.end() ? old->second.is_state : !before.isOnnx() && !param.is_arg;
    Array made{type, std::move(param.shape), {}, nullptr, nullptr, is_state};
    if (param.scaled) {
      const Lent& lent = param.scaled->of_arg ? args : aux;
      made.scaled = std::make_shared<const Scaled>(std::move(param.scaled->elements));
      made.owner = lent.array(param.scaled->number).owner;
      if (!made.scaled->isOfFile()) made = computed(made);
    } else {
      made.data = onnx::Bytes(static_cast<const char*>(param.memory.data()), param.memory.size());
      made.owner = std::shared_ptr<const void>(param.memory.release());
    }
    (*arrays)[param.name] = std::move(made);
  }
}

/// Removes inferred types, which hold for one call.
void dropTypes(Graph* graph) {
  static const std::vector<std::string> kKeys = {MX_STR_SHAPE, MX_STR_DTYPE};
  mxnet::ext::host::forEachNode(
      graph, [](Graph*) {}, [](Graph*, Node* node) { dropAttributes(node, kKeys); });
}

/// Runs `body`, which calls a library. `what` does so, for messages.
void enter(const Library& library, const std::string& what, std::string* printed,
           const std::function<void()>& body) {
  try {
    const Visit visit(library, OnInterrupt::kNothing, what);
    const CapturedOutput output(printed);
    body();
  } catch (const std::bad_alloc&) {
    throw PassError(what + " needs more memory than the system has");
  }
}

/// Returns the functions by which a partitioner asks a model's dialect.
PartitionHost hostOf(const Model& model, const Library& library, std::string* printed) {
  PartitionHost host;
  host.visit = [&library, printed](const std::string& what, const std::function<void()>& body) {
    enter(library, what, printed, body);
  };
  if (model.isOnnx()) {
    host.suffix = [](const Node& node, int output) {
      return node.num_outputs > 1 ? "_" + std::to_string(output) : std::string();
    };
    host.states = [](const std::shared_ptr<GraphSource>&) { return AuxiliaryStates(); };
  } else {
    host.suffix = &symbols::outputSuffix;
    host.states = [](const std::shared_ptr<GraphSource>& graph) {
      return symbols::statesOf(*graph->get());
    };
  }
  return host;
}

}  // namespace

Model runPass(const Model& before, const LibraryPass& pass, const OptionList& options,
              std::string* printed) {
  before.check();
  std::shared_ptr<const Graph> graph = before.graph->get();
  const Variables variables =
      before.isOnnx() ? listVariables(*graph, {}) : symbols::variablesOf(*graph);
  const Lent args(before, variables.args, false, pass.lending);
  const Lent aux(before, variables.aux, true, pass.lending);
  GraphTexts attributes = before.attributes;
  if (!before.isOnnx()) attributes.erase(symbols::kOwnAttribute);
  attributes[kDialect] = "\"" + dialectOf(before) + "\"";
  // Only the Python package infers the types of MXNet's operators.
  const bool shows_types =
      pass.needs_shapes && before.isOnnx() && (pass.is_declared || !before.arrays.empty());
  PassCall call{pass.library.get(),
                pass.index,
                parseAttributes(attributes),
                options,
                args.block(),
                aux.block(),
                true,
                true,
                Handover::kFlat,
                false,
                !before.isOnnx(),
                {}};
  const GraphTexts shown = printAttributes(call.attributes);
  Types types(before, graph);
  std::shared_ptr<GraphSource> source = before.graph;
  const bool asks = !pass.is_partitioner && pass.library->handover() == Handover::kFlat;
  if (shows_types && asks) {
    call.types = [&types] { return types.read(); };
  } else if (shows_types) {
    std::unique_ptr<Graph> copy = copyGraph(*graph);
    types.setIn(copy.get());
    source = std::make_shared<GraphSource>(std::move(copy));
    call.consume = true;
  }
  graph.reset();
  PassResult result;
  try {
    if (pass.is_partitioner) {
      const PartitionCall partition{call.library, call.index,   call.attributes,
                                    call.options, call.args,    call.aux,
                                    call.consume, call.ordered, false};
      const PartitionHost host = hostOf(before, *pass.library, printed);
      result.graph = runPartitioner(partition, host, std::move(source))->consume();
      result.graph->attrs = call.attributes;
    } else {
      enter(*pass.library, describePass(call), printed,
            [&] { result = passlib::runPass(call, source.get()); });
    }
  } catch (const std::exception&) {
    before.check();  // the change of a file is the cause
    throw;
  }
  before.check();
  if (shows_types) dropTypes(result.graph.get());
  if (!before.isOnnx()) {
    symbols::completeOperators(result.graph.get());
    result.kinds = {};
  }
  claimNodes(before, result.graph.get());

  Model after = before;
  for (const std::string& name : result.gone) after.arrays.erase(name);
  args.takeChanges(&after.arrays);
  aux.takeChanges(&after.arrays);
  takeParams(std::move(result.params), args, aux, before, &after.arrays);
  after.attributes = printAttributes(result.graph->attrs);
  for (auto& [key, text] : after.attributes) {
    const auto old = shown.find(key);
    if (old != shown.end() && old->second == text) text = attributes.at(key);
  }
  after.attributes.erase(kDialect);
  const auto own = before.attributes.find(symbols::kOwnAttribute);
  if (!before.isOnnx() && own != before.attributes.end()) {
    after.attributes[own->first] = own->second;
  }
  result.graph->attrs.clear();
  after.present = presentAfter(before, *result.graph);
  after.graph = std::make_shared<GraphSource>(std::move(result.graph), std::move(result.kinds));
  return after;
}

}  // namespace passlib::model
