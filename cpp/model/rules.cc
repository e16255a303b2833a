#include "model/rules.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "errors.h"
#include "graph/check.h"
#include "graph/edited.h"
#include "graph/variables.h"
#include "library/memory.h"
#include "moves/model.h"
#include "rules/knowledge.h"

namespace passlib::model {

namespace {

using mxnet::ext::JsonVal;
using mxnet::ext::MXDType;
using mxnet::ext::MXTensor;
using mxnet::ext::host::quoted;

/// A graph while rules change it, with its arrays, which the nodes point to.
class Edit {
 public:
  Edit(const Model& model, const std::string& what)
      : model_(model),
        what_(what),
        before_(namesOfVariables(*model.graph->get())),
        max_depth_(mostNestedGraphs(model.graph.get())),
        editor_(model.graph->take(), what, false, {}),
        graph_(editor_.root()) {
    GraphTexts attributes = model.attributes;
    attributes["dialect"] = "\"onnx\"";
    graph_->attrs = parseAttributes(attributes);
    for (Node* node : graph_->inputs) {
      const auto found = model.arrays.find(node->name);
      if (found == model.arrays.end()) continue;
      arrays_.push_back(computed(found->second));
      const Array& array = arrays_.back();
      node->tensor =
          keep(const_cast<char*>(array.data.data()), array.dims, rules::arrayType(array.type));
    }
  }
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  void apply(const rules::Book& book, const std::vector<std::size_t>& chosen) {
    editor_.nodes(graph_);  // completes removals
    rules::GraphKnowledge knowledge(graph_, model_.file->originals(), {});
    rules::Hooks hooks;
    hooks.add_node = [this](Graph* where, const std::string& name, const std::string& op) {
      return editor_.addNode(where, op, name, {}, 0);
    };
    hooks.remove_node = [this](Graph*, Node* node) { editor_.noteRemoved(node); };
    hooks.allocate = [this](Node* node, const std::vector<int64_t>& shape, MXDType type) {
      allocate(node, shape, type);
    };
    hooks.known = [&knowledge](const NodeEntry& entry) { return knowledge.of(entry); };
    hooks.added = [&knowledge](Graph* where, Node* node) { knowledge.add(where, node); };
    const rules::Applied applied = book.apply(graph_, chosen, hooks);
    editor_.noteNames();
    editor_.noteOutputs();
    moves::Hooks owner;
    owner.owner = &editor_;
    owner.graph = graph_;
    moves::Model(owner).removeUnused(applied.left);
  }

  Model finish() {
    Model after = model_;
    std::vector<std::pair<std::string, Array>> made;
    for (auto& [node, array] : made_) {
      if (!editor_.isRemoved(node)) made.emplace_back(node->name, std::move(array));
    }
    std::unique_ptr<Graph> result = editor_.close();
    mxnet::ext::host::takeBackParams(result.get());
    result->attrs.clear();
    OperatorKinds kinds =
        finishGraph(result.get(), false, what_ + " left a graph that is not sound", max_depth_);
    for (const std::string& name : missingNames(before_, *result)) after.arrays.erase(name);
    for (auto& [name, array] : made) after.arrays[name] = std::move(array);
    after.present = presentAfter(model_, *result);
    after.graph = std::make_shared<GraphSource>(std::move(result), std::move(kinds));
    return after;
  }

 private:
  MXTensor* keep(void* data, const std::vector<int64_t>& shape, MXDType type) {
    tensors_.emplace_back(data, shape, type, 0, mxnet::ext::MXContext::CPU());
    return &tensors_.back();
  }

  void allocate(Node* node, const std::vector<int64_t>& shape, MXDType type) {
    const auto bytes =
        arrayBytes(rules::bytesOf(type), shape.data(), static_cast<int>(shape.size()));
    if (!bytes) throw PassError(what_ + " needs a parameter that is too large");
    Buffer buffer(*bytes, false);
    Array array{rules::onnxType(type), shape,
                onnx::Bytes(static_cast<const char*>(buffer.data()), buffer.size()), nullptr};
    node->tensor = keep(buffer.data(), shape, type);
    array.owner = std::shared_ptr<const void>(buffer.release());
    made_.emplace_back(node, std::move(array));
  }

  const Model& model_;
  std::string what_;
  NameList before_;
  int max_depth_;
  EditedGraph editor_;
  Graph* graph_;
  std::deque<Array> arrays_;
  std::deque<MXTensor> tensors_;  // nodes point to them
  std::vector<std::pair<Node*, Array>> made_;
};

std::vector<std::string> listIn(const OptionList& options, const std::string& key) {
  std::vector<std::string> names;
  for (const auto& [name, text] : options) {
    if (name != key) continue;
    for (const JsonVal& item : JsonVal::parse(text).list) names.push_back(item.str);
  }
  return names;
}

bool isAmong(const std::vector<std::string>& names, const rules::Rule& rule) {
  return std::any_of(names.begin(), names.end(), [&rule](const std::string& name) {
    return name == rule.name || (!rule.group.empty() && name == rule.group);
  });
}

}  // namespace

std::shared_ptr<const RulesFile> RulesFile::open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!isUtf8(text)) throw FormatError(path + ": this is no text in UTF-8");
  return std::make_shared<const RulesFile>(std::move(text), path);
}

Declaration RulesFile::declaration(const std::string& name) const {
  const std::vector<rules::Rule>& all = book_.rules();
  Declaration made;
  made.name = name;
  made.declared = true;
  made.description = "Apply " + std::to_string(all.size()) + " rules of " + file_;
  made.dialects = {"onnx"};
  made.exact = std::all_of(all.begin(), all.end(), [](const auto& rule) { return rule.exact; });
  OptionDeclaration only;
  only.name = "only";
  only.kind = "text";
  only.is_list = true;
  only.default_text = "[]";
  only.description = "Apply these rules only.";
  OptionDeclaration skip = only;
  skip.name = "skip";
  skip.description = "Skip these rules.";
  OptionDeclaration target = only;
  target.name = "target";
  target.is_list = false;
  target.default_text = "";
  target.description = "Apply rules for this target, too.";
  made.options = {only, skip, target};
  return made;
}

std::vector<std::size_t> RulesFile::chosen(const OptionList& options) const {
  const std::vector<std::string> only = listIn(options, "only");
  const std::vector<std::string> skip = listIn(options, "skip");
  std::string target;
  for (const auto& [key, text] : options) {
    if (key == "target") target = text;
  }
  const std::vector<rules::Rule>& all = book_.rules();
  for (const auto* names : {&only, &skip}) {
    for (const std::string& name : *names) {
      const bool known = std::any_of(all.begin(), all.end(), [&name](const rules::Rule& rule) {
        return isAmong({name}, rule);
      });
      if (!known) throw PassError("there is no rule or group of rules " + quoted(name));
    }
  }
  std::vector<std::size_t> made;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const rules::Rule& rule = all[i];
    const auto breaks = [&target](const std::string& fusion) {
      return fusion.compare(0, target.size() + 1, target + ".") == 0;
    };
    if (!rule.target.empty() && rule.target != target) continue;
    if (!target.empty() && std::any_of(rule.breaks.begin(), rule.breaks.end(), breaks)) continue;
    if ((only.empty() || isAmong(only, rule)) && !isAmong(skip, rule)) made.push_back(i);
  }
  return made;
}

Model RulesFile::apply(const Model& model, const OptionList& options) const {
  const std::string what = "rules " + quoted(file_);
  model.file->check();
  const std::vector<std::size_t> numbers = chosen(options);
  Edit edit(model, what);
  try {
    edit.apply(book_, numbers);
  } catch (const LibraryError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw PassError(what + " failed: " + error.what());
  }
  model.file->check();
  return edit.finish();
}

}  // namespace passlib::model
