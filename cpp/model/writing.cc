#include "model/writing.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "errors.h"
#include "facts/file_facts.h"
#include "facts/table.h"
#include "graph/attributes.h"
#include "library/weights/written.h"
#include "model/attributes.h"
#include "model/data_files.h"
#include "model/new_file.h"
#include "model/symbol_writing.h"
#include "onnx/external/relocation.h"
#include "onnx/text/strings.h"
#include "onnx/wire/numbers.h"
#include "onnx/writing/model.h"
#include "rules/known.h"

namespace passlib::model {

namespace {

using onnx::Bytes;
using onnx::GivenArray;
using onnx::shown;

/// A protobuf message is limited to 2 GiB.
constexpr std::size_t kMostBytes = (std::size_t{1} << 31) - (std::size_t{1} << 24);

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

/// Answers a writer from the arrays of a model.
class ArrayHost : public onnx::WriteHost {
 public:
  ArrayHost(const Model& model, const facts::Opsets& opsets) : model_(model), opsets_(opsets) {}

  bool has(Bytes variable) override { return find(model_.arrays, variable) != nullptr; }

  bool same(Bytes variable, Bytes constant) override {
    const Array* const left = find(model_.arrays, variable);
    const Array* const right = find(model_.file->arrays(), constant);
    return left != nullptr && right != nullptr && model::same(*left, *right);
  }

  GivenArray array(Bytes variable) override {
    const Array* const found = find(model_.arrays, variable);
    GivenArray given;
    given.type = found->type;
    given.dims = found->dims;
    given.data = found->data;
    if (found->scaled != nullptr) {
      computed_.emplace_back(*found->scaled);
      given.computed = &computed_.back();
    }
    return given;
  }

  bool isInFile(Bytes constant) override {
    return find(model_.file->arrays(), constant) != nullptr;
  }

  bool inFile(Bytes constant, GivenArray* array) override {
    const Array* const found = find(model_.file->arrays(), constant);
    if (found == nullptr) return false;
    *array = {};
    array->type = found->type;
    array->dims = found->dims;
    return true;
  }

  const onnx::StatedType* fed(Bytes /*variable*/) override { return nullptr; }

  onnx::StatedType stated(const Node& variable, std::optional<int32_t> code) override {
    return statedType(variable, code);
  }

  onnx::MadeAttribute attribute(const Node& node, Bytes key, Bytes text, int kind) override {
    return makeAttribute(node, key, text, kind == 0 ? schemaKindOf(node, key, opsets_) : kind);
  }

  Bytes omitted() const override { return MX_STR_ORIGIN; }

  const std::vector<onnx::StatedType>* results(const Node& node) override {
    const auto found = results_.find(&node);
    return found == results_.end() ? nullptr : &found->second;
  }

  /// Sets the types of the results of libraries' operators by node.
  void setResults(std::unordered_map<const Node*, std::vector<onnx::StatedType>> results) {
    results_ = std::move(results);
  }

  const onnx::RenewedTypes* renewed(const std::string& place) override {
    const auto found = renewed_.find(place);
    return found == renewed_.end() ? nullptr : &found->second;
  }

  void setRenewed(std::map<std::string, onnx::RenewedTypes> renewed) {
    renewed_ = std::move(renewed);
  }

 private:
  static const Array* find(const Arrays& arrays, Bytes name) {
    const auto found = arrays.find(std::string(name));
    return found == arrays.end() ? nullptr : &found->second;
  }

  const Model& model_;
  const facts::Opsets& opsets_;
  std::map<std::string, onnx::RenewedTypes> renewed_;
  std::unordered_map<const Node*, std::vector<onnx::StatedType>> results_;
  std::deque<WrittenScaled> computed_;
};

/// The types of those inputs of the file for which a pass stated one.
facts::GivenTypes restatedTypes(const Graph& graph) {
  facts::GivenTypes types;
  for (const Node* node : graph.nodes) {
    if (node->op != "null") continue;
    if (attributeOf(*node, onnx::keys::kId).substr(0, 6) != "input.") continue;
    const bool has_type = !attributeOf(*node, "__dtype__").empty();
    if (!has_type && attributeOf(*node, "__shape__").empty()) continue;
    const onnx::StatedType stated = statedType(*node, facts::kUnknownType);
    types[node->name] = {has_type ? stated.code : std::nullopt, stated.dims};
  }
  return types;
}

/// A changed model in pieces.
class Assembly {
 public:
  explicit Assembly(const Model& model)
      : model_(model), graph_(model.graph->get()), opsets_(opsetsOf(model)), host_(model, opsets_) {
    writeLibraries();
    write();
  }

  const onnx::ModelWriter& writer() const { return *writer_; }

  /// Throws GraphError or UnsupportedError if the model cannot be written.
  void finish() {
    writer_->requireReferences();
    checkOperators();
    if (!writer_->writer().doubtful.empty()) renewTypes();
  }

  onnx::Pieces pieces() const { return writer_->assemble(onnx::kWhole); }

  /// The model without the elements of initializers that are aside.
  std::string message() const { return writer_->assemble(onnx::kWithoutArrays).copy(); }

  /// The elements of initializers that are aside, by number.
  std::vector<onnx::Payload> payloads() {
    std::vector<onnx::Payload> made;
    for (const onnx::WrittenInitializer& each : writer_->graph().initializers) {
      made.emplace_back();
      if (!each.aside) continue;
      if (each.given) {
        const GivenArray array = host_.array(each.array);
        made.back() = {array.data, array.computed};
      } else {
        made.back().data = model_.file->arrays().at(std::string(each.array)).data;
      }
    }
    return made;
  }

 private:
  void write() {
    writer_.emplace(model_.file->originals(), *graph_, model_.present, &host_);
    setImports();
  }

  /// Refuses new operators that ONNX does not have.
  void checkOperators() const {
    facts::OnnxSource source(model_.file->originals());
    for (const auto& [op, node] : writer_->writer().nodes.operators) {
      if (facts::findRule("", op) != nullptr || source.function("", op) != nullptr) continue;
      const std::map<std::string, std::size_t> before = countOperators(modelOf(model_.file));
      if (before.count(op) != 0) continue;
      throw UnsupportedError(
          "node " + shown(node->name) + ": ONNX has no operator " + shown(op) +
          "; load the library that has it, or name its domain in the node's attribute __domain__");
    }
  }

  void writeLibraries() {
    static const LibraryOperators none;
    const LibraryOperators& operators = model_.operators == nullptr ? none : *model_.operators;
    if (operators.empty() && opsets_.count(kLibraryDomain) == 0) return;
    if (!hasLibraryNodes(*graph_, model_.file->originals(), operators)) return;
    TypeSources sources{model_.file->originals(), arrayFacts(model_, *graph_), inferredSets(),
                        restatedTypes(*graph_)};
    LibraryNodes nodes =
        writeLibraryNodes(*graph_, std::move(sources), operators, OnInterrupt::kNothing);
    graph_ = std::move(nodes.graph);
    host_.setResults(std::move(nodes.results));
  }

  /// The operator sets as inference takes them.
  facts::Opsets inferredSets() const { return opsets_.empty() ? facts::Opsets{{"", 1}} : opsets_; }

  void setImports() {
    std::map<std::size_t, int64_t> changed;
    std::vector<std::pair<std::string, int64_t>> added;
    std::map<std::string, std::size_t> present;
    const auto& imports = model_.file->read().imports;
    for (std::size_t i = 0; i < imports.size(); ++i) present[std::string(imports[i].first)] = i;
    std::set<std::string> known;
    for (const auto& [domain, version] : opsets_) {
      known.emplace(onnx::plainDomain(domain));
      const auto found = present.find(domain);
      if (found == present.end()) {
        added.emplace_back(domain, version);
      } else if (imports[found->second].second != version) {
        changed[found->second] = version;
      }
    }
    for (const std::string& domain : writer_->writer().nodes.domains) {
      if (known.count(std::string(onnx::plainDomain(domain))) != 0) continue;
      if (imports.empty() && onnx::plainDomain(domain).empty()) continue;
      if (domain == "com.microsoft" || domain == kLibraryDomain) {  // of one version
        added.emplace_back(domain, 1);
        continue;
      }
      throw UnsupportedError("the passes made operators of " + shown(domain) +
                             ", of which the file imports no operator set: let the pass state its "
                             "version in the graph's attribute opset_import");
    }
    writer_->setImports(std::move(changed), std::move(added));
  }

  /// Changes make what the file states of values doubtful. Outputs keep it unless facts contradict
  /// it; of other values, only what is known for certain is stated.
  void renewTypes() {
    facts::FileFacts found(model_.file->originals(), graph_, arrayFacts(model_, *graph_));
    const facts::GivenTypes restated = restatedTypes(*graph_);
    found.infer(inferredSets(), restated, false, true, false,
                [this](const Node& node, const auto& /*inputs*/) { return resultsOf(node); });
    const std::vector<Bytes>& outputs = writer_->graph().names.outputs;
    if (!writer_->writer().doubts_more && restated.empty() &&
        found.confirms({outputs.begin(), outputs.end()})) {
      return;
    }
    std::map<std::string, onnx::RenewedTypes> renewed;
    for (const onnx::DoubtfulValue& each : writer_->writer().doubtful) {
      const std::string name(each.name);
      const facts::Fact& fact = found.facts().of(each.value);
      onnx::RenewedTypes& types = renewed[each.place];
      if (each.output.data() != nullptr) {
        std::optional<std::string> type = newType(fact, each, !restated.empty());
        if (type) types.outputs[name] = *std::move(type);
      }
      types.values[name] = fact.shape ? typeOf(fact) : std::nullopt;
    }
    host_.setRenewed(std::move(renewed));
    write();
  }

  /// The known types of the results of a library's node.
  std::vector<facts::Fact> resultsOf(const Node& node) {
    std::vector<facts::Fact> made;
    const std::vector<onnx::StatedType>* const types = host_.results(node);
    if (types == nullptr) return made;
    for (const onnx::StatedType& type : *types) {
      made.push_back(facts::Fact::tensor(static_cast<facts::Type>(type.code.value_or(0))));
      if (!type.dims) continue;
      made.back().shape.emplace();
      for (const int64_t size : *type.dims) {
        made.back().shape->push_back(size < 0 ? facts::Dim() : facts::Dim(size));
      }
    }
    return made;
  }

  /// The type of an output, serialized, if it is not what the file states. `restated`: whether a
  /// pass stated types of inputs.
  std::optional<std::string> newType(const facts::Fact& fact, const onnx::DoubtfulValue& value,
                                     bool restated) {
    const bool is_main = value.place.empty();
    facts::Fact stated = facts::typeFact(onnx::bodyOf(value.output, onnx::numbers::kValueType));
    if (std::optional<std::string> type = typeOf(fact)) {
      const bool agrees = stated.shape && !facts::FileFacts::disagree(stated, fact);
      if (agrees && !restated) return std::nullopt;
      if (fact.shape) return type;
      stated.type = fact.type;
      return serialized(stated);
    }
    const bool is_stated = stated.type != facts::kUnknownType || !stated.wrappers.empty();
    if (!is_main || (is_stated && !restated)) return std::nullopt;
    throw UnsupportedError(
        "the type of output " + shown(value.name) +
        (is_stated ? " is another one than in the file" : " is not in the file") +
        ", and native hosts do not infer it: run the pipeline with passlib's "
        "Python package, as passlib opt");
  }

  /// The type of a value, serialized; nothing unless it is a tensor of a known type.
  std::optional<std::string> typeOf(const facts::Fact& fact) {
    if (!fact.isTensor() || fact.type == facts::kUnknownType) return std::nullopt;
    return serialized(fact);
  }

  /// A TypeProto. Sizes that have a name in the file keep it; others that are open have none.
  std::string serialized(const facts::Fact& fact) {
    if (!named_) named_ = namesOfSizes();
    return facts::typeMessage(fact, [this](const facts::Dim& dim) {
      return dim.name() != nullptr && named_->count(*dim.name()) != 0;
    });
  }

  /// The names that the file gives to sizes of inputs.
  std::set<std::string> namesOfSizes() const {
    namespace numbers = onnx::numbers;
    std::set<std::string> names;
    for (const Bytes input : model_.file->originals()->main().inputs) {
      const Bytes type = onnx::bodyOf(input, numbers::kValueType);
      const Bytes tensor = onnx::bodyOf(type, numbers::kTensorType);
      onnx::forEachBody(onnx::bodyOf(tensor, numbers::kShape), numbers::kDim, [&](Bytes dim) {
        const Bytes name = onnx::bodyOf(dim, numbers::kDimParam);
        // Names with '/' are those that inference gives to unknown sizes.
        if (!name.empty() && name.find('/') == name.npos) names.emplace(name);
      });
    }
    return names;
  }

  const Model& model_;
  std::shared_ptr<const Graph> graph_;
  facts::Opsets opsets_;
  ArrayHost host_;
  std::optional<onnx::ModelWriter> writer_;
  std::optional<std::set<std::string>> named_;
};

bool isFile(const Model& model) {
  if (!isUnchanged(model)) return false;
  if (opsetsOf(model) != model.file->opsets()) return false;
  if (model.present.of_file) return true;
  const std::shared_ptr<const Graph> graph = model.file->graph()->get();
  const auto originals = model.file->originals();
  return onnx::nameOutputs(*originals, *graph, model.present) ==
         onnx::nameOutputs(*originals, *graph, {});
}

void makeFolders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) fail(folder);
  }
}

void requireInMemory(std::size_t size) {
  if (size <= kMostBytes) return;
  throw UnsupportedError("the model has " + std::to_string(size) +
                         " bytes, and one in memory may have at most " +
                         std::to_string(kMostBytes) + "; save it as a file");
}

/// The bytes of the file, for a model that is unchanged.
onnx::Pieces fileOf(const Model& model) {
  onnx::Pieces whole;
  whole.append(model.file->bytes());
  return whole;
}

/// Puts new files in place, that of the model last, or none, and returns the paths.
std::vector<std::string> commit(const Model& model, const onnx::Pieces& content,
                                const Placed& placed, const std::string& path) {
  NewFile main(path);
  std::deque<NewFile> added;
  for (const DataFile& file : placed.files) {
    makeFolders(file.path);
    added.emplace_back(file.path).write(file.content);
  }
  main.write(content);
  model.file->check();
  for (NewFile& file : added) file.add();
  for (const KeptFile& kept : placed.kept) {
    struct stat state{};
    const bool is_there = kept.mapping != nullptr ? kept.mapping->isAt(kept.path)
                                                  : ::stat(kept.path.c_str(), &state) == 0;
    if (!is_there) {
      throw std::system_error(ENOENT, std::generic_category(),
                              kept.path + ": another save replaced this data of the model");
    }
  }
  main.replace();
  for (NewFile& file : added) file.keep();
  std::vector<std::string> paths = {path};
  for (const DataFile& file : placed.files) paths.push_back(file.path);
  return paths;
}

}  // namespace

std::vector<std::string> save(const Model& model, const std::string& path) {
  if (!model.isOnnx()) return saveSymbol(model, path);
  model.file->check();
  const bool has_external = model.file->read().has_external;
  const bool unchanged = isFile(model);
  if (unchanged && !has_external) return commit(model, fileOf(model), {}, path);
  Assembly assembly(model);
  if (!unchanged) assembly.finish();
  if (!has_external) {
    const onnx::Pieces whole = assembly.pieces();
    if (whole.size() <= kMostBytes) return commit(model, whole, {}, path);
  }
  const std::string message = assembly.message();
  const std::vector<onnx::Payload> payloads = assembly.payloads();
  const Placed placed = placeData(model, assembly.writer(), message, payloads, path, kMostBytes);
  const onnx::Relocation& moved = placed.relocation;
  if (unchanged && moved.places.empty() && moved.files.empty()) {
    return commit(model, fileOf(model), placed, path);
  }
  const onnx::Pieces content = onnx::relocate(message, moved);
  if (content.size() > kMostBytes) {
    throw UnsupportedError("the model has " + std::to_string(content.size()) +
                           " bytes without its weights, and a file may have at most " +
                           std::to_string(kMostBytes));
  }
  return commit(model, content, placed, path);
}

Allocated serialize(const Model& model, std::size_t* size) {
  if (!model.isOnnx()) {
    throw UnsupportedError("an MXNet model is files of a graph and of weights; save it as files");
  }
  model.file->check();
  if (model.file->read().has_external) {
    throw UnsupportedError("this model has data in other files; save it as a file");
  }
  std::optional<Assembly> assembly;
  onnx::Pieces pieces;
  if (isFile(model)) {
    pieces = fileOf(model);
  } else {
    assembly.emplace(model);
    assembly->finish();
    pieces = assembly->pieces();
  }
  *size = pieces.size();
  requireInMemory(*size);
  Allocated made(static_cast<char*>(std::malloc(*size + 1)), &std::free);  // of 0 it may be null
  if (made == nullptr) throw std::bad_alloc();
  pieces.copyTo(made.get());
  model.file->check();
  return made;
}

std::string contentOf(const Model& model) {
  model.file->check();
  if (isFile(model)) {
    requireInMemory(model.file->bytes().size());
    return std::string(model.file->bytes());
  }
  Assembly assembly(model);
  assembly.finish();
  if (!model.file->read().has_external) {
    const onnx::Pieces whole = assembly.pieces();
    requireInMemory(whole.size());
    return whole.copy();
  }
  const std::string message = assembly.message();
  const std::vector<onnx::Payload> payloads = assembly.payloads();
  onnx::Relocation inside;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const onnx::WrittenInitializer& each = assembly.writer().graph().initializers[i];
    if (each.aside && each.external != onnx::External::kUnchanged) inside.payloads[i] = payloads[i];
  }
  const onnx::Pieces whole = onnx::relocate(message, inside);
  requireInMemory(whole.size());
  return whole.copy();
}

bool altersReferences(const Model& model) {
  if (isFile(model)) return false;
  return Assembly(model).writer().graph().alters;
}

}  // namespace passlib::model
