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
#include "library/weights/written.h"
#include "model/attributes.h"
#include "model/data_files.h"
#include "model/new_file.h"
#include "model/renewal.h"
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

  const LibraryResults& results() const { return results_; }

  /// Sets the types of the results of libraries' operators by node.
  void setResults(LibraryResults results) { results_ = std::move(results); }

  const onnx::RenewedTypes* renewed(const std::string& place) override {
    const auto found = renewed_.find(place);
    return found == renewed_.end() ? nullptr : &found->second;
  }

  void setRenewed(RenewedTypes renewed) { renewed_ = std::move(renewed); }

 private:
  static const Array* find(const Arrays& arrays, Bytes name) {
    const auto found = arrays.find(std::string(name));
    return found == arrays.end() ? nullptr : &found->second;
  }

  const Model& model_;
  const facts::Opsets& opsets_;
  RenewedTypes renewed_;
  LibraryResults results_;
  std::deque<WrittenScaled> computed_;
};

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
    renewTypes();
    checkOutputs();
  }

  onnx::Pieces pieces() const { return writer_->assemble(onnx::kWhole); }

  /// The model without the elements of initializers that are aside.
  std::string message() const { return writer_->assemble(onnx::kWithoutArrays).copy(); }

  /// The initializers whose elements are aside, by number.
  std::map<std::size_t, WeightAside> weights() {
    std::map<std::size_t, WeightAside> made;
    const std::vector<onnx::WrittenInitializer>& all = writer_->graph().initializers;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const onnx::WrittenInitializer& each = all[i];
      if (!each.aside) continue;
      WeightAside& weight = made[i];
      weight.external = each.external;
      if (each.given) {
        const GivenArray array = host_.array(each.array);
        weight.elements = {array.data, array.computed};
      } else {
        weight.elements.data = model_.file->arrays().at(std::string(each.array)).data;
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
    TypeSources sources{model_.file->originals(), arrayFacts(model_, *graph_), inferredSets(), {}};
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

  void renewTypes() {
    Renewal renewal;
    renewal.graph = graph_;
    renewal.sources = {model_.file->originals(), arrayFacts(model_, *graph_), inferredSets(), {}};
    renewal.results = &host_.results();
    const Renewed renewed(*writer_, std::move(renewal));
    if (renewed.holds()) return;
    host_.setRenewed(renewed.types({}));
    write();
  }

  /// Refuses outputs without a type, unless the file has them so.
  void checkOutputs() const {
    const onnx::WrittenGraph& graph = writer_->graph();
    std::set<Bytes> known;
    for (const Bytes old : graph.file->outputs) {
      if (!isTyped(old)) known.insert(onnx::bodyOf(old, onnx::numbers::kValueName));
    }
    for (const Bytes output : graph.outputs) {
      const Bytes name = onnx::bodyOf(output, onnx::numbers::kValueName);
      if (isTyped(output) || known.count(name) != 0) continue;
      throw UnsupportedError("output " + shown(name) +
                             " cannot be written: its type is not known; let the pass keep the "
                             "output, or follow the node by an operator that fixes the type, such "
                             "as Cast");
    }
  }

  static bool isTyped(Bytes output) {
    const Bytes type = onnx::bodyOf(output, onnx::numbers::kValueType);
    const facts::Fact fact = facts::typeFact(type);
    return fact.type != facts::kUnknownType || !fact.wrappers.empty() ||
           !onnx::bodyOf(type, onnx::numbers::kOpaqueType).empty();
  }

  const Model& model_;
  std::shared_ptr<const Graph> graph_;
  facts::Opsets opsets_;
  ArrayHost host_;
  std::optional<onnx::ModelWriter> writer_;
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
  Unplaced unplaced;
  unplaced.message = message;
  unplaced.weights = assembly.weights();
  unplaced.file = [&](const std::string& location,
                      bool needed) -> std::optional<std::shared_ptr<const FileMapping>> {
    try {
      return model.file->folder()->file(location, path);
    } catch (const FormatError&) {
      if (needed) throw;
      return std::nullopt;
    }
  };
  unplaced.users = model.file->users();
  unplaced.path = path;
  unplaced.most = kMostBytes;
  const Placed placed = placeData(unplaced);
  return commit(model, unchanged && !placed.moved ? fileOf(model) : placed.content, placed, path);
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
  const std::map<std::size_t, WeightAside> weights = assembly.weights();
  onnx::Relocation inside;
  onnx::forEachNumberedTensor(
      message, [&](const onnx::Path& tensor, std::optional<std::size_t> number) {
        const auto found = number ? weights.find(*number) : weights.end();
        if (found == weights.end() || found->second.external == onnx::External::kUnchanged) return;
        inside.payloads[tensor.back().start] = found->second.elements;
      });
  const onnx::Pieces whole = onnx::relocate(message, inside);
  requireInMemory(whole.size());
  return whole.copy();
}

bool altersReferences(const Model& model) {
  if (isFile(model)) return false;
  return Assembly(model).writer().graph().alters;
}

}  // namespace passlib::model
