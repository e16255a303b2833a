#include "model/library_nodes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "errors.h"
#include "facts/table.h"
#include "graph/attributes.h"
#include "graph/graph.h"
#include "library/calls/call.h"
#include "library/operators/elements.h"
#include "onnx/reading/level.h"
#include "onnx/text/strings.h"
#include "onnx/writing/attributes.h"

namespace passlib::model {

namespace {

using facts::Dim;
using facts::Fact;
using facts::Shape;

/// The attributes of such nodes in files; see docs/onnxruntime.md.
constexpr const char* kAttributes = "attributes";
constexpr const char* kTypes = "subgraph_types";

std::string blame(const Node& node) {
  return "node " + onnx::shown(node.name) + " (" + node.op + ")";
}

/// Whether a key is about the node, not an attribute of its operator.
bool isMark(std::string_view key) { return onnx::isOwnName(key) && key != MX_STR_EXTRA_INPUTS; }

std::string jsonString(std::string_view text) {
  std::string made;
  onnx::appendJsonString(std::string(text), true, &made);
  return made;
}

std::string jsonObject(const Attributes& attributes) {
  std::string text = "{";
  for (const auto& [key, value] : attributes) {
    if (text.size() > 1) text += ", ";
    text += jsonString(key) + ": " + jsonString(value);
  }
  return text + "}";
}

/// The subgraph of a node as its operator gets it: without references to nodes of the file.
std::string subgraphText(const Graph& subgraph) {
  const std::unique_ptr<Graph> copy = copyGraph(subgraph);
  mxnet::ext::host::forEachNode(
      copy.get(), [](Graph*) {},
      [](Graph*, Node* node) {
        repackAttributes(node, [](std::string_view key) {
          return key != onnx::keys::kId && key != MX_STR_ORIGIN && key != MX_STR_RULES;
        });
      });
  return copy->toString();
}

/// The shapes of a node's subgraph: those of its inputs have names for open sizes, and those of its
/// outputs are in terms of these.
struct SubgraphTypes {
  std::vector<Fact> inputs;
  std::vector<Fact> outputs;
  std::set<std::string> names;
};

/// Whether a text of a size consists of numbers and of names that are known.
bool isIn(const std::set<std::string>& names, const std::string& text) {
  static const std::set<std::string> kFunctions = {"floor", "ceil", "min", "max"};
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (letter || (digit && !word.empty())) {
      word += c;
      continue;
    }
    if (c == '"' || c == '?') return false;
    if (!word.empty() && names.count(word) == 0 && kFunctions.count(word) == 0) return false;
    word.clear();
  }
  return true;
}

bool isTheirs(const Node& node) {
  const std::string_view domain = attributeOf(node, onnx::keys::kDomain);
  if (domain == kLibraryDomain) return attributeOf(node, kAttributes).data() == nullptr;
  return domain.empty() && facts::findRule("", node.op) == nullptr;
}

/// Calls visit(node, operator) for the nodes of libraries until it returns false, but for those of
/// their subgraphs.
template <typename Visit>
void forEachCall(Graph* graph, const LibraryOperators& operators, Visit visit) {
  std::vector<Graph*> pending = {graph};
  while (!pending.empty()) {
    Graph* const level = pending.back();
    pending.pop_back();
    for (Node* node : level->nodes) {
      if (node->op == "null") continue;
      const auto found = operators.find(node->op);
      if (found == operators.end() || !isTheirs(*node)) {
        pending.insert(pending.end(), node->subgraphs.begin(), node->subgraphs.end());
      } else if (!visit(node, found->second)) {
        return;
      }
    }
  }
}

/// Calls visit(node, whether it is a library's) for the nodes whose domain is to be set or dropped,
/// until it returns false.
template <typename Visit>
void forEachClaim(Graph* graph, const IsKnown& is_known, Visit visit) {
  std::vector<Graph*> pending = {graph};
  while (!pending.empty()) {
    Graph* const level = pending.back();
    pending.pop_back();
    for (Node* node : level->nodes) {
      if (node->op == "null") continue;
      const std::string_view domain = attributeOf(*node, onnx::keys::kDomain);
      const bool stated = domain == kLibraryDomain;
      const bool known = (stated || domain.empty()) && is_known(node->op);
      const bool of_onnx = (stated || known) && facts::findRule("", node->op) != nullptr;
      const bool set = known && !stated && !of_onnx;
      const bool drop =
          stated && !known && of_onnx && attributeOf(*node, kAttributes).data() == nullptr;
      if ((set || drop) && !visit(node, set)) return;
      if (!known || (of_onnx && !stated)) {
        pending.insert(pending.end(), node->subgraphs.begin(), node->subgraphs.end());
      }
    }
  }
}

class Writer {
 public:
  Writer(const Graph& graph, TypeSources sources, const LibraryOperators& operators,
         OnInterrupt how)
      : graph_(graph), sources_(std::move(sources)), operators_(operators), how_(how) {}

  LibraryNodes write() {
    std::shared_ptr<Graph> copy = copyGraph(graph_);
    facts::FileFacts::Known known;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto found = sources_.known.find(graph_.nodes[i]);
      if (found != sources_.known.end()) known.emplace(copy->nodes[i], std::move(found->second));
    }
    collect(copy.get());
    facts::FileFacts file(sources_.file, copy, std::move(known));
    file.infer(sources_.opsets, sources_.given, true, true, false,
               [this](const Node& node, const std::vector<const Fact*>& inputs) {
                 return infer(node, inputs);
               });
    LibraryNodes made;
    for (const auto& [node, call] : calls_) {
      std::vector<onnx::StatedType>& types = made.results[node];
      for (int i = 0; i < std::max(node->num_outputs, 1); ++i) {
        types.push_back(stated(file.facts().of(node, static_cast<std::size_t>(i))));
      }
    }
    for (const auto& [node, call] : calls_) rewrite(call);
    made.graph = std::move(copy);
    return made;
  }

 private:
  /// What is known of a node before types are inferred.
  struct Call {
    Node* node = nullptr;
    std::shared_ptr<const CustomOp> op;
    Attributes attributes;
    std::string types;  ///< of a subgraph, as JSON
    int outputs = 0;
  };

  void collect(Graph* graph) {
    forEachCall(graph, operators_, [this](Node* node, const std::shared_ptr<const CustomOp>& op) {
      Call call;
      call.node = node;
      call.op = op;
      forEachAttribute(*node, [&](std::string_view key, std::string_view text) {
        if (isMark(key)) return;
        if (!onnx::isName(key) || !onnx::isName(text)) {
          throw UnsupportedError(blame(*node) + ": the attribute " + onnx::shown(key) +
                                 " is no text in UTF-8");
        }
        call.attributes.emplace(key, text);
      });
      if (op->functions().is_subgraph) {
        prepareSubgraph(node, &call);
      } else {
        prepare(node, &call);
      }
      if (node->num_outputs > call.outputs) {
        throw GraphError(blame(*node) + ": has " + std::to_string(node->num_outputs) +
                         " outputs, the operator makes " + std::to_string(call.outputs));
      }
      mxnet::ext::host::declareOutputs(node, call.outputs);
      calls_.emplace(node, std::move(call));
      return true;
    });
  }

  void prepare(Node* node, Call* call) const {
    const Visit visit = visiting(*node, *call);
    const auto [inputs, outputs] = call->op->arity(call->attributes, node->name);
    if (static_cast<std::size_t>(inputs) != node->inputs.size()) {
      throw GraphError(blame(*node) + ": has " + std::to_string(node->inputs.size()) +
                       " inputs, the operator takes " + std::to_string(inputs));
    }
    if (!call->op->mutatedInputs(call->attributes, inputs, node->name).empty()) {
      throw UnsupportedError(blame(*node) +
                             ": writes to its inputs, and a model of ONNX has no states; give "
                             "the operator an output for what it writes");
    }
    call->outputs = outputs;
  }

  void prepareSubgraph(Node* node, Call* call) const {
    if (node->subgraphs.empty()) {
      throw GraphError(blame(*node) +
                       ": the operator runs a subgraph, and the node has none; partitioners make "
                       "nodes that have one");
    }
    const Graph& subgraph = *node->subgraphs.front();
    std::size_t extra = 0;
    const std::string_view stated = attributeOf(*node, MX_STR_EXTRA_INPUTS);
    const bool counted = stated.data() == nullptr || onnx::parsePosition(stated, &extra);
    if (!counted || node->inputs.size() != subgraph.inputs.size() + extra) {
      throw GraphError(blame(*node) + ": has " + std::to_string(node->inputs.size()) +
                       " inputs, but its subgraph has " + std::to_string(subgraph.inputs.size()) +
                       " and attribute '" MX_STR_EXTRA_INPUTS "' adds " +
                       (stated.data() == nullptr ? "0" : std::string(stated)));
    }
    call->outputs = static_cast<int>(subgraph.outputs.size());
    call->attributes[MX_STR_SUBGRAPH_SYM_JSON] = subgraphText(subgraph);
  }

  Visit visiting(const Node& node, const Call& call) const {
    return Visit(*call.op->library(), how_, call.op->described("", node.name));
  }

  std::vector<Fact> infer(const Node& node, const std::vector<const Fact*>& inputs) {
    const auto found = calls_.find(&node);
    if (found == calls_.end()) return {};
    Call& call = found->second;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]->present && inputs[i]->isTensor()) continue;
      throw UnsupportedError(blame(node) + ": its input " + std::to_string(i) + " is " +
                             (inputs[i]->present ? facts::print(*inputs[i]) : "left out") +
                             ", and operators of libraries take tensors");
    }
    return call.op->functions().is_subgraph ? inferSubgraph(node, &call, inputs)
                                            : inferCall(node, call, inputs);
  }

  std::vector<Fact> inferCall(const Node& node, const Call& call,
                              const std::vector<const Fact*>& inputs) const {
    std::vector<Extents> shapes;
    std::vector<int> types;
    bool any_shape = inputs.empty();
    bool all_shapes = true;
    bool all_types = true;
    for (const Fact* input : inputs) {
      shapes.push_back(extentsOf(node, *input));
      types.push_back(input->type == facts::kUnknownType ? -1 : dtypeOf(node, *input));
      any_shape = any_shape || input->shape.has_value();
      all_shapes = all_shapes && input->shape && facts::isStatic(*input->shape);
      all_types = all_types && types.back() != -1;
    }
    std::vector<Fact> made(static_cast<std::size_t>(call.outputs));
    const Visit visit = visiting(node, call);
    if (any_shape) {
      try {
        const ShapeAnswer answer =
            call.op->inferShapes(call.attributes, shapes, call.outputs, node.name);
        checkShapes(node, inputs, answer.first);
        for (std::size_t i = 0; i < made.size(); ++i) {
          const Extents& extents = answer.second[i];
          if (extents.empty() && !all_shapes) continue;  // a scalar, or nothing is known
          made[i].shape.emplace();
          for (const unsigned int extent : extents) {
            made[i].shape->push_back(extent == kUnknownExtent ? Dim() : Dim(extent));
          }
        }
      } catch (const OperatorError&) {
        if (all_shapes) throw;  // an operator may refuse unknown inputs
      }
    }
    try {
      const NumberAnswer answer =
          call.op->inferTypes(call.attributes, types, call.outputs, node.name);
      for (std::size_t i = 0; i < types.size(); ++i) {
        if (types[i] == -1 || answer.first[i] == -1 || answer.first[i] == types[i]) continue;
        throw GraphError(blame(node) + ": input " + std::to_string(i) + " (" +
                         onnx::shown(node.inputs[i].node->name) + ") is " +
                         facts::print(*inputs[i]) + ", the operator asks for type code " +
                         std::to_string(answer.first[i]));
      }
      for (std::size_t i = 0; i < made.size(); ++i) {
        made[i].type = static_cast<facts::Type>(elementOfDtype(answer.second[i]));
      }
    } catch (const OperatorError&) {
      if (all_types) throw;
    }
    return made;
  }

  void checkShapes(const Node& node, const std::vector<const Fact*>& inputs,
                   const std::vector<Extents>& asked) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (asked[i].empty() || !inputs[i]->shape) continue;
      const Shape& shape = *inputs[i]->shape;
      bool fits = asked[i].size() == shape.size();
      for (std::size_t k = 0; fits && k < shape.size(); ++k) {
        fits = asked[i][k] == kUnknownExtent || !shape[k].isNumber() || shape[k].is(asked[i][k]);
      }
      if (fits) continue;
      Shape wanted;
      for (const unsigned int extent : asked[i]) {
        wanted.push_back(extent == kUnknownExtent ? Dim() : Dim(extent));
      }
      throw GraphError(blame(node) + ": input " + std::to_string(i) + " (" +
                       onnx::shown(node.inputs[i].node->name) + ") has the shape " +
                       facts::print(shape) + ", the operator asks for " + facts::print(wanted));
    }
  }

  Extents extentsOf(const Node& node, const Fact& fact) const {
    Extents extents;
    if (!fact.shape) return extents;
    for (const Dim& dim : *fact.shape) {
      const bool fits = !dim.isNumber() || (dim.number() >= 0 && dim.number() < kUnknownExtent);
      if (!fits) {
        throw UnsupportedError(blame(node) + ": takes the shape " + facts::print(*fact.shape) +
                               ", and the ABI has no size beyond 32 bits");
      }
      extents.push_back(dim.isNumber() ? static_cast<unsigned int>(dim.number()) : kUnknownExtent);
    }
    return extents;
  }

  int dtypeOf(const Node& node, const Fact& fact) const {
    const int dtype = dtypeOfElement(fact.type);
    if (dtype >= 0) return dtype;
    throw UnsupportedError(blame(node) + ": takes " + facts::print(fact) +
                           ", whose element type operators of libraries do not have");
  }

  std::vector<Fact> inferSubgraph(const Node& node, Call* call,
                                  const std::vector<const Fact*>& inputs) {
    SubgraphTypes types;
    std::vector<std::pair<Dim, Dim>> named;  // equal sizes have one name
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Fact& given = *inputs[i];
      if (given.type == facts::kUnknownType || !given.shape) {
        throw UnsupportedError(
            blame(node) + ": runs a subgraph, and the rank or the element type " + "of its input " +
            std::to_string(i) + " (" + onnx::shown(node.inputs[i].node->name) + ") is unknown");
      }
      dtypeOf(node, given);
      Fact fact = Fact::tensor(given.type);
      fact.constant = given.constant;
      if (given.constant) fact.content = given.content;
      fact.shape.emplace();
      for (const Dim& dim : *given.shape) {
        if (dim.isNumber()) {
          fact.shape->push_back(dim);
          continue;
        }
        const auto found = std::find_if(named.begin(), named.end(),
                                        [&](const auto& pair) { return pair.first == dim; });
        if (found != named.end()) {
          fact.shape->push_back(found->second);
          continue;
        }
        const std::string name = "d" + std::to_string(types.names.size());
        types.names.insert(name);
        fact.shape->push_back(Dim::named(name));
        named.emplace_back(dim, fact.shape->back());
      }
      types.inputs.push_back(std::move(fact));
    }
    types.outputs = outputsOf(*node.subgraphs.front(), types.inputs);
    call->types = typesText(node, types);
    // In the sizes of the main graph.
    std::vector<Fact> own;
    for (const Fact* input : inputs) own.push_back(*input);
    return outputsOf(*node.subgraphs.front(), own);
  }

  /// Infers the outputs of a subgraph from those of its node's inputs.
  std::vector<Fact> outputsOf(const Graph& subgraph, const std::vector<Fact>& inputs) const {
    std::unordered_map<const Node*, const Fact*> given;
    for (std::size_t i = 0; i < subgraph.inputs.size(); ++i) {
      given.emplace(subgraph.inputs[i], &inputs[i]);
    }
    facts::Settings settings;
    settings.opsets = sources_.opsets;
    settings.describe = [&given](const Node& variable) {
      const auto found = given.find(&variable);
      return found == given.end() ? Fact() : *found->second;
    };
    facts::Facts inner(&subgraph, std::move(settings));
    inner.infer();
    std::vector<Fact> made;
    for (const NodeEntry& output : subgraph.outputs) made.push_back(inner.of(output));
    return made;
  }

  std::string typesText(const Node& node, const SubgraphTypes& types) const {
    std::string text = "{\"inputs\": [";
    for (const Fact& input : types.inputs) {
      if (text.back() != '[') text += ", ";
      text += typeText(input);
    }
    text += "], \"outputs\": [";
    const Graph& subgraph = *node.subgraphs.front();
    for (std::size_t i = 0; i < types.outputs.size(); ++i) {
      const Fact& output = types.outputs[i];
      bool known = output.isTensor() && dtypeOfElement(output.type) >= 0 && output.shape;
      for (std::size_t k = 0; known && k < output.shape->size(); ++k) {
        known = isIn(types.names, facts::print((*output.shape)[k]));
      }
      if (!known) {
        throw UnsupportedError(
            blame(node) + ": the type of the output " +
            onnx::shown(subgraph.outputs[i].node->name) + " of its subgraph, " +
            facts::print(output) + ", does not follow from the sizes of its inputs" +
            (types.names.empty() ? "" : "; give all sizes of the model's inputs"));
      }
      if (i != 0) text += ", ";
      text += typeText(output);
    }
    return text + "], \"written\": []}";
  }

  static std::string typeText(const Fact& fact) {
    std::string text = "{\"element\": " + std::to_string(fact.type) + ", \"shape\": [";
    for (std::size_t k = 0; k < fact.shape->size(); ++k) {
      const Dim& dim = (*fact.shape)[k];
      if (k != 0) text += ", ";
      text += dim.isNumber() ? std::to_string(dim.number()) : jsonString(facts::print(dim));
    }
    return text + "]}";
  }

  static onnx::StatedType stated(const Fact& fact) {
    onnx::StatedType type;
    if (!fact.isTensor() || fact.type == facts::kUnknownType) return type;
    type.code = fact.type;
    if (!fact.shape) return type;
    type.dims.emplace();
    for (const Dim& dim : *fact.shape) type.dims->push_back(dim.isNumber() ? dim.number() : -1);
    return type;
  }

  static void rewrite(const Call& call) {
    Node* const node = call.node;
    std::vector<std::pair<std::string, std::string>> kept;
    forEachAttribute(*node, [&](std::string_view key, std::string_view text) {
      if (isMark(key) && key != onnx::keys::kDomain) kept.emplace_back(key, text);
    });
    kept.emplace_back(onnx::keys::kDomain, kLibraryDomain);
    kept.emplace_back(kAttributes, jsonObject(call.attributes));
    if (!call.types.empty()) kept.emplace_back(kTypes, call.types);
    mxnet::ext::host::AttributeTexts::pack(kept.data(), kept.size(), &node->attrs);
    for (const Graph* subgraph : node->subgraphs) delete subgraph;
    node->subgraphs.clear();
  }

  const Graph& graph_;
  TypeSources sources_;
  const LibraryOperators& operators_;
  OnInterrupt how_;
  std::unordered_map<const Node*, Call> calls_;
};

}  // namespace

bool needsClaim(const Graph& graph, const IsKnown& is_known) {
  bool found = false;
  // Only read here.
  forEachClaim(const_cast<Graph*>(&graph), is_known, [&found](Node*, bool) {
    found = true;
    return false;
  });
  return found;
}

void claimLibraryNodes(Graph* graph, const IsKnown& is_known) {
  forEachClaim(graph, is_known, [](Node* node, bool is_library) {
    if (is_library) {
      setAttribute(node, onnx::keys::kDomain, kLibraryDomain);
    } else {
      repackAttributes(node, [](std::string_view key) { return key != onnx::keys::kDomain; });
    }
    return true;
  });
}

bool hasLibraryNodes(const Graph& graph, const LibraryOperators& operators) {
  bool found = false;
  // Only read here.
  forEachCall(const_cast<Graph*>(&graph), operators, [&found](Node*, const auto&) {
    found = true;
    return false;
  });
  return found;
}

LibraryNodes writeLibraryNodes(const Graph& graph, TypeSources sources,
                               const LibraryOperators& operators, OnInterrupt how) {
  return Writer(graph, std::move(sources), operators, how).write();
}

}  // namespace passlib::model
