#include "model/model.h"

#include <utility>

#include "errors.h"
#include "facts/onnx_source.h"
#include "facts/table.h"
#include "mxnet/operators.h"
#include "onnx/text/strings.h"
#include "onnx/types/operator_sets.h"
#include "onnx/writing/model.h"

namespace passlib::model {

namespace {

using mxnet::ext::JsonVal;

constexpr const char* kOpsets = "opset_import";

/// The operator sets of a file as JSON, in its order.
std::string importsText(const File& file) {
  facts::Opsets left = file.opsets();
  std::string text = "{";
  for (const auto& [domain, version] : file.read().imports) {
    const auto found = left.find(domain);
    if (found == left.end()) continue;
    if (text.size() > 1) text += ", ";
    onnx::appendJsonString(onnx::decoded(found->first), true, &text);
    text += ": " + std::to_string(found->second);
    left.erase(found);
  }
  return text + "}";
}

/// Where the outputs of a graph come from: the identifier and the name of the node, and the output.
std::vector<onnx::Present::Output> headsOf(const Graph& graph) {
  std::vector<onnx::Present::Output> heads;
  for (const NodeEntry& head : graph.outputs) {
    heads.push_back({"", std::string(attributeOf(*head.node, onnx::keys::kId)), head.node->name,
                     static_cast<uint32_t>(head.entry)});
  }
  return heads;
}

bool sameHeads(const std::vector<onnx::Present::Output>& left,
               const std::vector<onnx::Present::Output>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].key != right[i].key || left[i].node != right[i].node ||
        left[i].output != right[i].output) {
      return false;
    }
  }
  return true;
}

onnx::Present presentOf(const Graph& graph, const std::vector<std::string>& names) {
  onnx::Present present;
  present.of_file = false;
  present.outputs = headsOf(graph);
  for (std::size_t i = 0; i < names.size() && i < present.outputs.size(); ++i) {
    present.outputs[i].name = names[i];
  }
  return present;
}

/// The names of the outputs of a graph of MXNet.
std::vector<std::string> symbolOutputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeEntry& head : graph.outputs) {
    names.push_back(head.node->name + symbols::outputSuffix(*head.node, head.entry));
  }
  return names;
}

std::vector<std::string> namesOf(const Model& model, const Graph& graph,
                                 const onnx::Present& present) {
  return onnx::nameOutputs(*model.file->originals(), graph, present);
}

}  // namespace

Model modelOf(std::shared_ptr<const File> file) {
  Model model;
  model.graph = file->graph();
  model.arrays = file->arrays();
  model.attributes["ir_version"] = std::to_string(file->read().ir_version);
  model.attributes[kOpsets] = importsText(*file);
  model.file = std::move(file);
  return model;
}

Model modelOf(std::shared_ptr<const SymbolFile> symbol) {
  Model model;
  model.graph = symbol->graph;
  model.arrays = symbol->arrays;
  model.attributes = symbol->attributes;
  model.symbol = std::move(symbol);
  return model;
}

Model loadModel(const std::string& path) {
  return isSymbolFile(path) ? modelOf(openSymbolFile(path)) : modelOf(File::open(path));
}

std::string dialectOf(const Model& model) { return model.isOnnx() ? "onnx" : "mxnet"; }

void Model::check() const {
  if (file != nullptr) file->check();
  if (symbol != nullptr && symbol->weights != nullptr) symbol->weights->check();
}

facts::Opsets opsetsOf(const Model& model) {
  facts::Opsets sets = model.file->opsets();
  const auto text = model.attributes.find(kOpsets);
  if (text == model.attributes.end() || text->second == importsText(*model.file)) return sets;
  try {
    const JsonVal given = JsonVal::parse(text->second);
    if (given.type == mxnet::ext::MAP) {
      for (const auto& [domain, version] : given.map) {
        int64_t number = 0;
        if (!version.toInteger(&number)) throw std::invalid_argument("no number");
        sets[domain.str] = number;
      }
      return sets;
    }
  } catch (const mxnet::ext::JsonError&) {
  } catch (const std::invalid_argument&) {
  }
  throw GraphError("the graph's attribute opset_import is " + text->second.substr(0, 80) +
                   "; it must be a JSON object of versions by domain");
}

std::vector<std::string> outputNames(const Model& model) {
  if (!model.isOnnx()) return symbolOutputs(*model.graph->get());
  return namesOf(model, *model.graph->get(), model.present);
}

onnx::Present presentAfter(const Model& before, const Graph& after) {
  if (!before.isOnnx()) return {};
  const std::shared_ptr<const Graph> graph = before.graph->get();
  if (sameHeads(headsOf(*graph), headsOf(after))) return before.present;
  onnx::Present kept = before.present;
  try {
    kept = presentOf(*graph, namesOf(before, *graph, before.present));
    return presentOf(after, namesOf(before, after, kept));
  } catch (const GraphError&) {  // as saving will report
    return kept;
  }
}

bool isUnchanged(const Model& model) {
  const Arrays& own = model.file->arrays();
  for (const auto& [name, array] : model.arrays) {
    const auto found = own.find(name);
    if (found == own.end() || !same(array, found->second)) return false;
  }
  return model.graph == model.file->graph() ||
         equalGraphs(*model.file->graph()->get(), *model.graph->get(), MX_STR_ORIGIN);
}

std::unordered_map<const Node*, facts::Fact> arrayFacts(const Model& model, const Graph& graph) {
  std::unordered_map<const Node*, facts::Fact> known;
  for (const Node* node : graph.nodes) {
    if (node->op != "null") continue;
    const auto found = model.arrays.find(node->name);
    if (found == model.arrays.end()) continue;
    const Array& array = found->second;
    known.emplace(node, facts::constantFact(static_cast<facts::Type>(array.type),
                                            facts::Shape(array.dims.begin(), array.dims.end()),
                                            array.scaled == nullptr ? array.data.data() : nullptr));
  }
  return known;
}

void claimNodes(const Model& model, Graph* graph) {
  if (!model.isOnnx() || model.operators == nullptr || model.operators->empty()) return;
  claimLibraryNodes(
      graph, [&model](const std::string& name) { return model.operators->count(name) != 0; });
}

std::map<std::string, std::size_t> countOperators(const Model& model) {
  const std::shared_ptr<const Graph> main = model.graph->get();
  const auto runs_subgraph = [&model](const Node& node) {
    if (model.operators == nullptr) return false;
    const auto found = model.operators->find(node.op);
    return found != model.operators->end() && found->second->functions().is_subgraph;
  };
  std::map<std::string, std::size_t> counts;
  std::vector<const Graph*> pending = {main.get()};
  while (!pending.empty()) {
    const Graph* const graph = pending.back();
    pending.pop_back();
    for (const Node* node : graph->nodes) {
      if (node->op == "null") continue;
      ++counts[node->op];
      if (model.isOnnx() && !runs_subgraph(*node)) {
        pending.insert(pending.end(), node->subgraphs.begin(), node->subgraphs.end());
      }
    }
  }
  return counts;
}

std::vector<std::string> warningsOf(const Model& model, const LibraryOperators& known) {
  std::vector<std::string> found;
  if (!model.isOnnx()) return found;
  const auto version = model.file->opsets().find("");
  if (version != model.file->opsets().end() && version->second > onnx::newestSet()) {
    found.push_back("its operator set is " + std::to_string(version->second) +
                    ", and the newest that passlib knows is " + std::to_string(onnx::newestSet()));
  }
  if (model.file->hasFunctions()) return found;
  for (const auto& [op, node] : facts::unknownOperators(*model.graph->get())) {
    if (known.count(op) != 0) continue;
    found.push_back("ONNX has no operator " + op + " (node " + onnx::shown(node) + ")");
  }
  return found;
}

}  // namespace passlib::model
