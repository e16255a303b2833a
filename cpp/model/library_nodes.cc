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
#include "model/attributes.h"
#include "onnx/parts/long_attribute.h"
#include "onnx/reading/level.h"
#include "onnx/text/strings.h"
#include "onnx/writing/attributes.h"

namespace passlib::model {

namespace {

using facts::Dim;
using facts::Fact;
using facts::Shape;
using mxnet::ext::JsonVal;

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

/// Whether a graph has operators that only sizes fit which they divide.
bool dividesExactly(const Graph& graph) {
  static const std::set<std::string> kOperators = {"Reshape", "SpaceToDepth", "Split",
                                                   "DepthToSpace", "SplitToSequence"};
  bool found = false;
  // Only read here.
  mxnet::ext::host::forEachNode(
      const_cast<Graph*>(&graph), [](Graph*) {},
      [&found](Graph*, const Node* node) { found = found || kOperators.count(node->op) != 0; });
  return found;
}

/// Whether the text of an attribute stands for content of the file that the model came from.
bool refersToFile(std::string_view text) {
  return onnx::isSummary(text) ||
         (text.substr(0, 1) == "{" && text.find("\"same_as\": ") != text.npos);
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

/// Whether a node is in the form that files have.
bool isWritten(const Node& node) {
  return attributeOf(node, onnx::keys::kDomain) == kLibraryDomain &&
         attributeOf(node, kAttributes).data() != nullptr;
}

enum class Walk { kEnter, kSkip, kEnd };

/// Calls visit(node) for the operators of a graph, and for those of its nested graphs where it
/// returns kEnter.
template <typename Visit>
void walk(Graph* graph, Visit visit) {
  std::vector<Graph*> pending = {graph};
  while (!pending.empty()) {
    Graph* const level = pending.back();
    pending.pop_back();
    for (Node* node : level->nodes) {
      if (node->op == "null") continue;
      const Walk next = visit(node);
      if (next == Walk::kEnd) return;
      if (next == Walk::kSkip) continue;
      pending.insert(pending.end(), node->subgraphs.begin(), node->subgraphs.end());
    }
  }
}

/// Calls visit(node, operator) for the nodes of libraries until it returns false, but for those of
/// their subgraphs. The operator is null where no library has it.
template <typename Visit>
void forEachCall(Graph* graph, facts::OnnxSource* source, const LibraryOperators& operators,
                 Visit visit) {
  walk(graph, [&](Node* node) {
    const std::string_view domain = attributeOf(*node, onnx::keys::kDomain);
    const bool stated = domain == kLibraryDomain;
    const auto found = stated || domain.empty() ? operators.find(node->op) : operators.end();
    const bool known = found != operators.end();
    const bool theirs = stated ? (known || isWritten(*node)) &&
                                     source->function(kLibraryDomain, node->op) == nullptr
                               : known && facts::findRule("", node->op) == nullptr;
    if (!theirs) return Walk::kEnter;
    return visit(node, known ? found->second : nullptr) ? Walk::kSkip : Walk::kEnd;
  });
}

/// Calls visit(node, whether it is a library's) for the nodes whose domain is to be set or dropped,
/// until it returns false.
template <typename Visit>
void forEachClaim(Graph* graph, const IsKnown& is_known, Visit visit) {
  walk(graph, [&](Node* node) {
    const std::string_view domain = attributeOf(*node, onnx::keys::kDomain);
    const bool stated = domain == kLibraryDomain;
    const bool known = (stated || domain.empty()) && is_known(node->op);
    const bool of_onnx = (stated || known) && facts::findRule("", node->op) != nullptr;
    const bool set = known && !stated && !of_onnx;
    const bool drop = stated && !known && of_onnx && !isWritten(*node);
    if ((set || drop) && !visit(node, set)) return Walk::kEnd;
    return known && (stated || !of_onnx) ? Walk::kSkip : Walk::kEnter;
  });
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
        const auto output = static_cast<std::size_t>(i);
        types.push_back(stated(file.facts().of(node, output)));
        if (call.op != nullptr) continue;
        types.back().dims.reset();  // they are from other inputs, perhaps
        if (output < call.elements.size()) types.back().code = call.elements[output];
      }
    }
    for (const auto& [node, call] : calls_) rewrite(call);
    made.graph = std::move(copy);
    return made;
  }

 private:
  /// The operator and the attributes of a node.
  struct Call {
    Node* node = nullptr;
    std::shared_ptr<const CustomOp> op;
    Attributes attributes;
    std::string types;  ///< of a subgraph, as JSON
    int outputs = 0;
    // The rest is for nodes in the form of files.
    bool is_written = false;
    bool is_changed = false;    ///< by a pass
    std::vector<int> elements;  ///< of the results of a subgraph, by ONNX's numbers
    std::vector<int> written;   ///< the inputs that the operator writes to
  };

  void collect(Graph* graph) {
    facts::OnnxSource source(sources_.file);
    const auto visit = [this](Node* node, std::shared_ptr<const CustomOp> op) {
      if (isWritten(*node)) {
        readWritten(node, std::move(op));
        return true;
      }
      Call call;
      call.node = node;
      call.op = std::move(op);
      forEachAttribute(*node, [&](std::string_view key, std::string_view text) {
        if (isMark(key)) return;
        if (!onnx::isName(key) || !onnx::isName(text)) {
          throw UnsupportedError(blame(*node) + ": the attribute " + onnx::shown(key) +
                                 " is no text in UTF-8");
        }
        requireWhole(*node, key, text);
        call.attributes.emplace(key, text);
      });
      if (call.op->functions().is_subgraph) {
        prepareSubgraph(node, &call);
      } else {
        prepare(node, &call);
      }
      checkOutputs(*node, static_cast<std::size_t>(call.outputs));
      mxnet::ext::host::declareOutputs(node, call.outputs);
      calls_.emplace(node, std::move(call));
      return true;
    };
    forEachCall(graph, &source, operators_, visit);
  }

  /// Takes a node as a file has it. Its types follow from those of its inputs if its library is
  /// loaded; else, and where it runs a subgraph, from what the file states.
  void readWritten(Node* node, std::shared_ptr<const CustomOp> op) {
    Call call;
    call.node = node;
    call.is_written = true;
    call.outputs = std::max(node->num_outputs, 1);
    try {
      const JsonVal object = JsonVal::parse(std::string(attributeOf(*node, kAttributes)));
      for (const auto& [key, value] : object.map) call.attributes[key.str] = value.str;
      const std::string_view types = attributeOf(*node, kTypes);
      if (types.data() != nullptr) {
        const JsonVal whole = JsonVal::parse(std::string(types));
        for (const JsonVal& output : whole.map.at(JsonVal("outputs")).list) {
          call.elements.push_back(output.map.at(JsonVal("element")).num);
        }
        op = nullptr;
      }
    } catch (const std::exception&) {
      return;  // ONNX Runtime will say what is wrong
    }
    forEachAttribute(*node, [&](std::string_view key, std::string_view text) {
      if (isMark(key) || key == kAttributes || key == kTypes) return;
      requireWhole(*node, key, text);
      call.attributes[std::string(key)] = text;  // set by a pass
      call.is_changed = true;
    });
    if (op != nullptr && !op->functions().is_subgraph) {
      call.op = std::move(op);
      const Visit visit = visiting(*node, call);
      const auto [inputs, outputs] = call.op->arity(call.attributes, node->name);
      checkInputs(*node, inputs);
      call.outputs = outputs;
      call.written = call.op->mutatedInputs(call.attributes, inputs, node->name);
      checkOutputs(*node, static_cast<std::size_t>(outputs) + call.written.size());
    }
    calls_.emplace(node, std::move(call));
  }

  static void checkInputs(const Node& node, int inputs) {
    if (static_cast<std::size_t>(inputs) == node.inputs.size()) return;
    throw GraphError(blame(node) + ": has " + std::to_string(node.inputs.size()) +
                     " inputs, the operator takes " + std::to_string(inputs));
  }

  static void checkOutputs(const Node& node, std::size_t outputs) {
    if (node.num_outputs <= static_cast<int>(outputs)) return;
    throw GraphError(blame(node) + ": has " + std::to_string(node.num_outputs) +
                     " outputs, the operator makes " + std::to_string(outputs));
  }

  /// Refuses an attribute whose content is in the file that the model came from alone.
  static void requireWhole(const Node& node, std::string_view key, std::string_view text) {
    if (!refersToFile(text)) return;
    throw UnsupportedError(blame(node) + ": the attribute " + onnx::shown(key) +
                           " is too long to be handed to a library");
  }

  void prepare(Node* node, Call* call) const {
    const Visit visit = visiting(*node, *call);
    const auto [inputs, outputs] = call->op->arity(call->attributes, node->name);
    checkInputs(*node, inputs);
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
    requireWhole(*node, subgraph);
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

  /// Refuses a subgraph with contents that are in the file that the model came from alone.
  static void requireWhole(const Node& owner, const Graph& subgraph) {
    // Only read here.
    mxnet::ext::host::forEachNode(
        const_cast<Graph*>(&subgraph), [](Graph*) {},
        [&](Graph* graph, const Node* node) {
          forEachAttribute(*node, [&](std::string_view key, std::string_view text) {
            if (!isMark(key)) requireWhole(*node, key, text);
          });
          if (graph == &subgraph || node->op != "null") return;
          const std::string_view id = attributeOf(*node, onnx::keys::kId);
          const bool holds = id.data() != nullptr && id.substr(0, 6) != "input." &&
                             attributeOf(*node, onnx::keys::kOuter).data() == nullptr;
          if (!holds) return;
          throw UnsupportedError(blame(owner) + ": a graph nested in its subgraph has the weight " +
                                 onnx::shown(node->name) +
                                 "; run constantsToWeights before the partitioner");
        });
  }

  Visit visiting(const Node& node, const Call& call) const {
    return Visit(*call.op->library(), how_, call.op->described("", node.name));
  }

  std::vector<Fact> infer(const Node& node, const std::vector<const Fact*>& inputs) {
    const auto found = calls_.find(&node);
    if (found == calls_.end()) return {};
    Call& call = found->second;
    if (call.op == nullptr) {
      std::vector<Fact> made;
      for (const int element : call.elements) {
        made.push_back(Fact::tensor(static_cast<facts::Type>(element)));
      }
      return made;
    }
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
    std::vector<Fact> made(static_cast<std::size_t>(call.outputs));
    const Visit visit = visiting(node, call);
    inferShapes(node, call, inputs, &made);
    inferTypes(node, call, inputs, &made);
    for (const int position : call.written) {
      made.push_back(*inputs[static_cast<std::size_t>(position)]);
    }
    return made;
  }

  void inferTypes(const Node& node, const Call& call, const std::vector<const Fact*>& inputs,
                  std::vector<Fact>* made) const {
    std::vector<int> types;
    for (const Fact* input : inputs) {
      types.push_back(input->type == facts::kUnknownType ? -1 : dtypeOf(node, *input));
    }
    const bool all = std::find(types.begin(), types.end(), -1) == types.end();
    NumberAnswer answer;
    try {
      answer = call.op->inferTypes(call.attributes, types, call.outputs, node.name);
    } catch (const OperatorError&) {
      if (all) throw;  // an operator may refuse unknown inputs
      return;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] == -1 || answer.first[i] == -1 || answer.first[i] == types[i]) continue;
      throw GraphError(blame(node) + ": input " + std::to_string(i) + " (" +
                       onnx::shown(node.inputs[i].node->name) + ") is " + facts::print(*inputs[i]) +
                       ", the operator asks for type code " + std::to_string(answer.first[i]));
    }
    for (std::size_t i = 0; i < made->size(); ++i) {
      const int code = answer.second[i];
      (*made)[i].type = static_cast<facts::Type>(elementOfDtype(code));
      if ((*made)[i].type != facts::kUnknownType || (code == -1 && !all)) continue;
      call.op->fail(
          (code == -1 ? "infers no element type" : "infers the type code " + std::to_string(code)) +
              " for its output " + std::to_string(i) + "; the codes are 0 to 12",
          node.name);
    }
  }

  /// Infers shapes. Operators compute with sizes, also where these are open: they are asked with
  /// two sizes for each open one, and what they answer is taken where it follows from that.
  void inferShapes(const Node& node, const Call& call, const std::vector<const Fact*>& inputs,
                   std::vector<Fact>* made) const {
    std::vector<Dim> open;
    bool any = inputs.empty();
    bool ranked = true;
    for (const Fact* input : inputs) {
      any = any || input->shape.has_value();
      ranked = ranked && input->shape.has_value();
      if (!input->shape) continue;
      for (const Dim& dim : *input->shape) {
        if (!dim.isNumber() && placeOf(open, dim) == open.size()) open.push_back(dim);
      }
    }
    if (!any || open.size() > kMostOpen) return;
    const auto ask = [&](bool again) {
      std::vector<Extents> shapes;
      std::size_t unnamed = open.size();
      for (const Fact* input : inputs)
        shapes.push_back(extentsOf(node, *input, open, again, &unnamed));
      ShapeAnswer answer = call.op->inferShapes(call.attributes, shapes, call.outputs, node.name);
      checkShapes(node, inputs, answer.first);
      return std::move(answer.second);
    };
    std::vector<Extents> first;
    std::vector<Extents> second;
    try {
      first = ask(false);
      second = open.empty() ? first : ask(true);
    } catch (const OperatorError&) {
      if (ranked && open.empty()) throw;  // an operator may refuse unknown inputs, and some sizes
      return;
    }
    for (std::size_t i = 0; i < made->size(); ++i) {
      if (first[i].size() != second[i].size()) continue;
      if (first[i].empty() && !ranked) continue;  // a scalar, or nothing is known
      (*made)[i].shape.emplace();
      for (std::size_t k = 0; k < first[i].size(); ++k) {
        (*made)[i].shape->push_back(sizeOf(first[i][k], second[i][k], open));
      }
    }
  }

  /// The place of a size among open ones; their number if it is not there. Unnamed sizes are not.
  static std::size_t placeOf(const std::vector<Dim>& open, const Dim& dim) {
    return static_cast<std::size_t>(std::find(open.begin(), open.end(), dim) - open.begin());
  }

  /// The number that stands for an open size, in the first question or the second. These have many
  /// divisors and are in opposite orders. No sum, difference, multiple, minimum or maximum of two
  /// is another one in both questions, or the same number.
  static int64_t probeOf(std::size_t place, bool again, const std::vector<Dim>& open) {
    constexpr int64_t kProbe = 120;
    const auto number = static_cast<int64_t>(place + 1);
    const auto last = static_cast<int64_t>(2 * open.size() + 1);  // with the unnamed sizes
    return kProbe * (again ? last * last - number * number : 2 * number);
  }

  /// More open sizes do not have such numbers in 32 bits.
  static constexpr std::size_t kMostOpen = 2048;

  /// The size that was answered with these numbers.
  static Dim sizeOf(unsigned int first, unsigned int second, const std::vector<Dim>& open) {
    if (first == kUnknownExtent || second == kUnknownExtent) return Dim();
    if (first == second) return Dim(first);
    for (std::size_t place = 0; place < open.size(); ++place) {
      if (first == probeOf(place, false, open) && second == probeOf(place, true, open))
        return open[place];
    }
    return Dim();
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

  /// The shape of an input, with a number for each open size. `unnamed`: how many have one so far.
  static Extents extentsOf(const Node& node, const Fact& fact, const std::vector<Dim>& open,
                           bool again, std::size_t* unnamed) {
    Extents extents;
    if (!fact.shape) return extents;
    for (const Dim& dim : *fact.shape) {
      const bool fits = !dim.isNumber() || (dim.number() >= 0 && dim.number() < kUnknownExtent);
      if (!fits) {
        throw UnsupportedError(blame(node) + ": takes the shape " + facts::print(*fact.shape) +
                               ", and the ABI has no size beyond 32 bits");
      }
      const std::size_t place = dim.isNumber() ? 0 : placeOf(open, dim);
      const std::size_t number = place < open.size() ? place : (*unnamed)++;
      extents.push_back(
          static_cast<unsigned int>(dim.isNumber() ? dim.number() : probeOf(number, again, open)));
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
        const bool is_named = dim.name() == nullptr || *dim.name() != "?";
        if (found != named.end() && is_named) {
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
    const bool splits = !types.names.empty() && dividesExactly(*node.subgraphs.front());
    const Graph& subgraph = *node.subgraphs.front();
    for (std::size_t i = 0; i < types.outputs.size(); ++i) {
      const Fact& output = types.outputs[i];
      bool known = output.isTensor() && dtypeOfElement(output.type) >= 0 && output.shape;
      for (std::size_t k = 0; known && k < output.shape->size(); ++k) {
        const std::string size = facts::print((*output.shape)[k]);
        known = isIn(types.names, size) && !(splits && size.find("floor") != size.npos);
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
    if (call.is_written && !call.is_changed) return;
    Node* const node = call.node;
    std::vector<std::pair<std::string, std::string>> kept;
    forEachAttribute(*node, [&](std::string_view key, std::string_view text) {
      if (isMark(key) && key != onnx::keys::kDomain) kept.emplace_back(key, text);
    });
    kept.emplace_back(onnx::keys::kDomain, kLibraryDomain);
    kept.emplace_back(kAttributes, jsonObject(call.attributes));
    const std::string_view types = attributeOf(*node, kTypes);  // of a file
    if (!call.types.empty()) {
      kept.emplace_back(kTypes, call.types);
    } else if (types.data() != nullptr) {
      kept.emplace_back(kTypes, types);
    }
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

bool addStatedTypes(const Graph& graph, TypeSources* sources) {
  const facts::OnnxSource source(sources->file);
  bool is_restated = false;
  for (const Node* node : graph.nodes) {
    if (node->op != "null" || sources->known.count(node) != 0) continue;
    const bool has_type = !attributeOf(*node, "__dtype__").empty();
    if (!has_type && attributeOf(*node, "__shape__").empty()) continue;
    const Bytes id = attributeOf(*node, onnx::keys::kId);
    const bool is_input = id.substr(0, 6) == "input.";
    if (!is_input && !id.empty()) continue;  // a constant of the file
    Fact fact = source.describe(*node);
    if (has_type) {
      fact.type = static_cast<facts::Type>(*statedType(*node, facts::kUnknownType).code);
    }
    std::optional<facts::Shape> shape = facts::statedShape(*node, fact.shape);
    if (shape) fact.shape = std::move(shape);
    sources->known[node] = std::move(fact);
    is_restated = is_restated || is_input;
  }
  return is_restated;
}

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

bool hasLibraryNodes(const Graph& graph, const std::shared_ptr<const onnx::Originals>& file,
                     const LibraryOperators& operators) {
  facts::OnnxSource source(file);
  bool found = false;
  // Only read here.
  forEachCall(const_cast<Graph*>(&graph), &source, operators, [&found](Node*, const auto&) {
    found = true;
    return false;
  });
  return found;
}

LibraryNodes writeLibraryNodes(const Graph& graph, TypeSources sources,
                               const LibraryOperators& operators, OnInterrupt how) {
  addStatedTypes(graph, &sources);
  return Writer(graph, std::move(sources), operators, how).write();
}

}  // namespace passlib::model
