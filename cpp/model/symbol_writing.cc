#include "model/symbol_writing.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/variables.h"
#include "library/weights/written.h"
#include "model/new_file.h"
#include "mxnet/params.h"
#include "mxnet/reading.h"
#include "rules/known.h"

namespace passlib::model {

namespace {

/// Throws if a name is a folder's, or has the suffix of another format.
void requireSymbolName(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..") {
    throw std::system_error(EISDIR, std::generic_category(), path);
  }
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return;
  std::string suffix = name.substr(dot);
  for (char& c : suffix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (suffix == ".params" || suffix == ".npz" || suffix == ".safetensors") {
    throw UnsupportedError(path + ": " + suffix +
                           " is the suffix of a weight file; the graph gets the name, and the "
                           "weights go next to it: " +
                           path.substr(0, path.size() - suffix.size()) + ".json");
  }
  if (suffix == ".onnx" || suffix == ".dlp" || suffix == ".h5") {
    throw UnsupportedError(
        path + ": " + suffix + " is a suffix of " + (suffix == ".onnx" ? "ONNX" : "DLPrimitives") +
        ", and the model would be written as MXNet; passlib convert of passlib's "
        "Python package writes ONNX files");
  }
}

std::string keyOf(const std::string& name, const Array& array) {
  return (array.is_state ? "aux:" : "arg:") + name;
}

/// The names of the weights in the order of the file: that in which they were read, then those of
/// the graph, then unused ones.
std::vector<std::string> orderOf(const Model& model) {
  std::vector<std::string> order;
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) order.push_back(name);
  };
  for (const std::string& key : model.symbol->order) {
    const auto found = key.size() < 4 ? model.arrays.end() : model.arrays.find(key.substr(4));
    if (found != model.arrays.end() && keyOf(found->first, found->second) == key) add(found->first);
  }
  const std::shared_ptr<const Graph> graph = model.graph->get();
  const NameList names = namesOfVariables(*graph);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name(names[i]);
    if (model.arrays.count(name) != 0) add(name);
  }
  for (const bool is_state : {false, true}) {
    for (const std::string& name : model.symbol->order) {
      const auto found = model.arrays.find(name);
      if (found != model.arrays.end() && found->second.is_state == is_state) add(name);
    }
  }
  return order;
}

/// A .params file.
onnx::Pieces listOf(const Model& model, std::deque<WrittenScaled>* computed) {
  const std::vector<std::string> order = orderOf(model);
  bool numpy_form = false;
  for (const auto& [name, array] : model.arrays) numpy_form = numpy_form || array.dims.empty();
  onnx::Pieces content;
  content.text()->append(symbols::listHead(order.size()));
  std::vector<std::string> keys;
  for (const std::string& name : order) {
    const Array& array = model.arrays.at(name);
    keys.push_back(keyOf(name, array));
    content.text()->append(
        symbols::arrayHead(rules::arrayType(array.type), array.dims, numpy_form));
    if (array.scaled != nullptr) {
      computed->emplace_back(*array.scaled);
      content.append(&computed->back());
    } else {
      content.append(array.data);
    }
  }
  content.text()->append(symbols::listNames(keys));
  return content;
}

std::string weightPath(const std::string& prefix, int64_t epoch) {
  char number[24];
  std::snprintf(number, sizeof number, "-%04lld", static_cast<long long>(epoch));
  return prefix + number + ".params";
}

/// A second name of a file, which puts the file back, or deletes a new one, unless released.
class Backup {
 public:
  explicit Backup(std::string path) : path_(std::move(path)) {
    const std::size_t start = path_.rfind('/') + 1;
    kept_ = path_.substr(0, start) + "." + path_.substr(start, 200) + "." +
            std::to_string(::getpid()) + ".old";
    has_copy_ = ::link(path_.c_str(), kept_.c_str()) == 0;
    is_new_ = !has_copy_ && errno == ENOENT;
  }
  ~Backup() {
    if (has_copy_ && is_released_) ::unlink(kept_.c_str());
    if (has_copy_ && !is_released_) ::rename(kept_.c_str(), path_.c_str());
    if (is_new_ && !is_released_) ::unlink(path_.c_str());
  }
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;
  void release() { is_released_ = true; }

 private:
  std::string path_;
  std::string kept_;
  bool has_copy_ = false;  // false as well where the file system has no links
  bool is_new_ = false;
  bool is_released_ = false;
};

}  // namespace

std::vector<std::string> saveSymbol(const Model& model, const std::string& path) {
  requireSymbolName(path);
  model.check();
  const SymbolNames names = symbolNames(path);
  onnx::Pieces graph;
  graph.text()->append(symbols::printSymbol(*model.graph->get(), model.attributes));
  NewFile symbol(names.symbol);
  symbol.write(graph);
  if (model.arrays.empty()) {
    const std::map<int64_t, std::string> left = weightFiles(names.prefix);
    if (!left.empty()) {
      throw UnsupportedError(names.symbol +
                             ": the model has no weights, but loading it will take those of " +
                             left.rbegin()->second + "; delete them or save under another name");
    }
    symbol.replace();
    return {names.symbol};
  }
  std::deque<WrittenScaled> computed;
  const std::string beside = weightPath(names.prefix, model.symbol->epoch);
  NewFile weights(beside);
  weights.write(listOf(model, &computed));
  model.check();
  Backup backup(weights.target());
  weights.replace();
  symbol.replace();
  backup.release();
  for (const std::string& stamp : stampsOf(names.symbol)) ::unlink(stamp.c_str());
  return {names.symbol, beside};
}

}  // namespace passlib::model
