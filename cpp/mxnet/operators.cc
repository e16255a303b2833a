#include "mxnet/operators.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "errors.h"
#include "graph/attributes.h"
#include "graph/check.h"
#include "mxnet/registry.h"

namespace passlib::symbols {

namespace {

using mxnet::ext::JsonVal;

/// The most inputs or outputs that an attribute may state.
constexpr std::size_t kMostCounted = std::size_t{1} << 16;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string_view stripped(std::string_view text, const char* characters) {
  const std::size_t start = text.find_first_not_of(characters);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(characters) - start + 1);
}

/// The attributes of a node, with the defaults of its operator.
class Attributes {
 public:
  Attributes(const Operator& op, const Node& node) : op_(op), node_(node) {}

  /// Nothing if there is neither a value nor a default.
  std::optional<std::string> find(const std::string& key) const {
    const std::string_view text = attributeOf(node_, key);
    if (text.data() != nullptr) return std::string(text);
    const auto found = op_.defaults.find(key);
    if (found == op_.defaults.end()) return std::nullopt;
    return found->second;
  }
  std::string text(const std::string& key) const { return find(key).value_or(""); }
  bool isAbsent(const std::string& key) const { return find(key).value_or("None") == "None"; }
  /// Anything that is no boolean is false.
  bool isTrue(const std::string& key) const {
    std::string found = text(key);
    for (char& c : found) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return found == "true" || found == "1";
  }
  /// A number of inputs or outputs; 0 for anything that is no number.
  std::size_t count(const std::string& key) const {
    const std::string found = text(key);
    std::string_view digits = stripped(found, " \t\n\r\f\v");
    if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return 0;
    std::size_t number = 0;
    for (const char digit : digits) {
      number = 10 * number + static_cast<std::size_t>(digit - '0');
      if (number > kMostCounted) {
        throw UnsupportedError("operator '" + op_.name + "': attribute '" + key + "' is " +
                               found.substr(0, 20) + "; at most " + std::to_string(kMostCounted) +
                               " are supported");
      }
    }
    return number;
  }
  /// The number of items of a tuple.
  std::size_t parts(const std::string& key) const {
    const std::string found = text(key);
    const auto items = split(stripped(found, "()[] "), ',');
    return static_cast<std::size_t>(std::count_if(
        items.begin(), items.end(),
        [](const std::string& item) { return !stripped(item, " \t\n\r\f\v").empty(); }));
  }
  /// Whether a condition holds: terms between `|` or between `&`. `a` stands for a true attribute,
  /// `!a` for one that is not true, `?a` for one that is absent, `a=text` for one of this text.
  bool hold(const std::string& condition) const {
    const bool all = condition.find('|') == std::string::npos;
    for (const std::string& term : split(condition, all ? '&' : '|')) {
      if (holds(term) != all) return !all;
    }
    return all;
  }

 private:
  bool holds(const std::string& term) const {
    if (term[0] == '!') return !isTrue(term.substr(1));
    if (term[0] == '?') return isAbsent(term.substr(1));
    const std::size_t equals = term.find('=');
    if (equals == std::string::npos) return isTrue(term);
    return text(term.substr(0, equals)) == term.substr(equals + 1);
  }

  const Operator& op_;
  const Node& node_;
};

Names numberedFrom(const std::string& stem, std::size_t count) {
  Names names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(stem + std::to_string(i));
  return names;
}

/// Outputs without names of their own.
Outputs plainOutputs(std::size_t count) {
  return {count == 1 ? Names{"output"} : numberedFrom("output", count), count};
}

/// Outputs that are always computed, but visible only with a flag.
Outputs moreOutputs(const Attributes& given, const char* flag, const Names& extra,
                    std::size_t all) {
  Outputs made{{"output"}, all};
  if (given.isTrue(flag)) {
    made.visible.insert(made.visible.end(), extra.begin(), extra.end());
  }
  return made;
}

Outputs recurrentOutputs(const Attributes& given, const char* cell) {
  Names names{"output"};
  if (given.isTrue("state_outputs")) {
    names.emplace_back("state_output");
    if (given.text("mode") == "lstm") names.emplace_back(cell);
  }
  const std::size_t count = names.size();
  return {std::move(names), count};
}

/// A quantized output with its range in two more, or a real one.
Outputs rangedOutputs(bool is_quantized) {
  if (is_quantized) return {{"output", "min_output", "max_output"}, 3};
  return {{"output"}, 1};
}

Outputs poolingOutputs(const Attributes& given) {
  // oneDNN's maximum pooling keeps the position of each maximum for the gradient.
  const std::size_t axes = given.parts("kernel");
  const std::string layout = given.find("layout").value_or("None");
  const bool first = layout == "None" || layout == "NCW" || layout == "NCHW" || layout == "NCDHW";
  const bool kept = given.text("pool_type") == "max" && first && axes >= 1 && axes <= 3;
  return {{"output"}, kept ? std::size_t{2} : std::size_t{1}};
}

Outputs topkOutputs(const Attributes& given) {
  const std::string chosen = given.text("ret_typ");
  if (chosen == "both") return {{"output0", "output1"}, 2};
  if (chosen == "value") return {{"output0"}, 2};
  return {{"output"}, 1};
}

Outputs splitOutputs(const Attributes& given) {
  const std::size_t sections = given.count("sections");
  return plainOutputs(sections != 0 ? sections : given.parts("indices"));
}

Outputs uniqueOutputs(const Attributes& given) {
  std::size_t count = 1;
  for (const char* flag : {"return_index", "return_inverse", "return_counts"}) {
    if (given.isTrue(flag)) ++count;
  }
  return plainOutputs(count);
}

Outputs subgraphOutputs(const Attributes& given, std::size_t others, std::size_t mapped) {
  const std::size_t count = given.count("num_args");
  const std::size_t graphs = (count > others ? count - others : 0) / mapped;
  return plainOutputs(graphs * (given.isTrue("return_mapping") ? 2 : 1));
}

using OutputRule = Outputs (*)(const Attributes&);

/// How attributes determine outputs, by operators.
constexpr std::pair<const char*, OutputRule> kOutputs[] = {
    {"BatchNorm BatchNorm_v1 _contrib_SyncBatchNorm",
     [](const Attributes& a) { return moreOutputs(a, "output_mean_var", {"mean", "var"}, 3); }},
    {"_contrib_BatchNormWithReLU",
     [](const Attributes& a) { return moreOutputs(a, "output_mean_var", {"mean", "var"}, 4); }},
    {"GroupNorm LayerNorm",
     [](const Attributes& a) { return moreOutputs(a, "output_mean_var", {"mean", "std"}, 3); }},
    {"_contrib_MultiProposal _contrib_Proposal",
     [](const Attributes& a) { return moreOutputs(a, "output_score", {"score"}, 2); }},
    {"LeakyReLU",
     [](const Attributes& a) {
       if (a.text("act_type") == "rrelu") return Outputs{{"output", "mask"}, 2};
       return Outputs{{"output"}, 1};
     }},
    {"Pooling", poolingOutputs},
    {"RNN", [](const Attributes& a) { return recurrentOutputs(a, "statecell_output"); }},
    // The missing letter is MXNet's.
    {"_contrib_quantized_rnn",
     [](const Attributes& a) { return recurrentOutputs(a, "statecell_ouput"); }},
    {"SliceChannel",
     [](const Attributes& a) {
       const std::size_t count = a.count("num_outputs");
       return Outputs{numberedFrom("output", count), count};
     }},
    {"_cond _foreach _while_loop amp_multicast",
     [](const Attributes& a) { return plainOutputs(a.count("num_outputs")); }},
    {"_np_atleast_1d _np_atleast_2d _np_atleast_3d",
     [](const Attributes& a) { return plainOutputs(a.count("num_args")); }},
    {"_multi_lamb_update _multi_mp_lamb_update",
     [](const Attributes& a) { return plainOutputs(a.count("num_tensors")); }},
    {"_multi_adamw_update _multi_mp_adamw_update multi_mp_sgd_mom_update multi_mp_sgd_update "
     "multi_sgd_mom_update multi_sgd_update preloaded_multi_mp_sgd_mom_update "
     "preloaded_multi_mp_sgd_update preloaded_multi_sgd_mom_update preloaded_multi_sgd_update",
     [](const Attributes& a) { return plainOutputs(a.count("num_weights")); }},
    {"_contrib_dgl_graph_compact", [](const Attributes& a) { return subgraphOutputs(a, 0, 2); }},
    {"_contrib_dgl_subgraph", [](const Attributes& a) { return subgraphOutputs(a, 1, 1); }},
    {"_contrib_quantized_elemwise_mul",
     [](const Attributes& a) { return rangedOutputs(!a.isTrue("enable_float_output")); }},
    {"_sg_mkldnn_selfatt_qk _sg_mkldnn_selfatt_valatt",
     [](const Attributes& a) {
       return rangedOutputs(a.isTrue("quantized") && !a.isTrue("enable_float_output"));
     }},
    {"_npi_average",
     [](const Attributes& a) {
       Outputs made{{"output0"}, 2};
       if (a.isTrue("returned")) made.visible.emplace_back("output1");
       return made;
     }},
    {"_npi_dsplit _npi_hsplit _split_v2", splitOutputs},
    {"_npi_unique", uniqueOutputs},
    {"_sample_multinomial",
     [](const Attributes& a) { return plainOutputs(a.isTrue("get_prob") ? 2 : 1); }},
    {"topk", topkOutputs},
};

OutputRule outputRuleOf(const std::string& name) {
  static const auto* const table = [] {
    auto* const made = new std::map<std::string, OutputRule>;
    for (const auto& [operators, rule] : kOutputs) {
      for (const std::string& op : split(operators, ' ')) (*made)[op] = rule;
    }
    return made;
  }();
  const auto found = table->find(name);
  return found == table->end() ? nullptr : found->second;
}

Names textsOf(const JsonVal& list) {
  Names texts;
  for (const JsonVal& item : list.list) texts.push_back(item.str);
  return texts;
}

/// The default value in a declaration such as "int (non-negative), optional, default=1".
std::optional<std::string> defaultIn(const std::string& declaration) {
  const std::string mark = "default=";
  const std::size_t place = declaration.find(mark);
  if (place == std::string::npos) return std::nullopt;
  const std::string text = declaration.substr(place + mark.size());
  return std::string(stripped(stripped(text, " \t\n\r\f\v"), "'"));
}

Operator readOperator(const std::string& name, const JsonVal& facts) {
  Operator made;
  made.name = name;
  made.outputs.visible = {"output"};
  std::optional<int> total;
  for (const auto& [key, value] : facts.map) {
    if (key.str == "inputs") made.inputs = textsOf(value);
    if (key.str == "explicit") made.makes_variables = value.num == 0;
    if (key.str == "outputs") made.outputs.visible = textsOf(value);
    if (key.str == "total") total = value.num;
    if (key.str == "variadic") {
      made.is_variadic = true;
      made.counting = value.str;
    }
    if (key.str == "mutated") {
      for (const JsonVal& item : value.list) made.written.push_back(item.num);
    }
    if (key.str == "init") {
      for (const auto& [input, text] : value.map) made.initial[input.str] = text.str;
    }
    if (key.str == "parameters") {
      for (const auto& [attribute, text] : value.map) {
        if (auto found = defaultIn(text.str)) made.defaults[attribute.str] = *std::move(found);
      }
    }
  }
  made.outputs.all = total ? static_cast<std::size_t>(*total) : made.outputs.visible.size();
  return made;
}

/// Adds what the table of inputs says of an operator; see Operator.
void addInputs(const JsonVal& inputs, Operator* op) {
  const JsonVal name(op->name);
  const auto& conditions = inputs.map.at(JsonVal("conditions")).map;
  const auto conditional = conditions.find(name);
  if (conditional != conditions.end()) {
    for (const auto& [input, condition] : conditional->second.map) {
      op->conditions[input.str] = condition.str;
    }
  }
  const auto& repeating = inputs.map.at(JsonVal("repeated")).map;
  const auto repeated = repeating.find(name);
  if (repeated == repeating.end()) return;
  const auto& form = repeated->second.map;
  op->counting = form.at(JsonVal("counting")).str;
  op->each = textsOf(form.at(JsonVal("each")));
  op->after = textsOf(form.at(JsonVal("after")));
}

using Registry = TextMap<std::shared_ptr<const Operator>>;

Registry readRegistry() {
  Registry made;
  const JsonVal inputs = JsonVal::parse(kInputs);
  for (const auto& [name, facts] : JsonVal::parse(kRegistry).map) {
    Operator read = readOperator(name.str, facts);
    addInputs(inputs, &read);
    const auto op = std::make_shared<const Operator>(std::move(read));
    made[name.str] = op;
    const auto aliases = facts.map.find(JsonVal("aliases"));
    if (aliases == facts.map.end()) continue;
    for (const std::string& alias : textsOf(aliases->second)) made[alias] = op;
  }
  return made;
}

Names repeatedNames(const Operator& op, const Attributes& given) {
  if (op.name == "UpSampling" && given.text("sample_type") == "bilinear") {
    return {"data", "weight"};
  }
  const std::size_t count = op.counting.empty() ? 0 : given.count(op.counting);
  // The count of these operators includes so many nested graphs.
  for (const auto& [name, graphs] : {std::pair("_foreach", 1), {"_while_loop", 2}, {"_cond", 3}}) {
    const auto others = static_cast<std::size_t>(graphs);
    if (op.name == name) return numberedFrom("data", count > others ? count - others : 0);
  }
  if (op.name == "_contrib_quantized_concat") {
    Names names = numberedFrom("arg", count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string own = names[i];
      names.push_back(own + "_min");
      names.push_back(own + "_max");
    }
    return names;
  }
  if (op.name == "_contrib_dgl_subgraph") {
    Names names = numberedFrom("varray", count == 0 ? 0 : count - 1);
    names.insert(names.begin(), "graph");
    return names;
  }
  if (op.name == "_contrib_dgl_graph_compact") {
    Names names = numberedFrom("graph", count / 2);
    for (std::string& name : numberedFrom("varray", count / 2)) names.push_back(std::move(name));
    return names;
  }
  if (op.each.empty()) return numberedFrom("arg", count);
  Names names;
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::string& name : op.each) names.push_back(name + std::to_string(i));
  }
  names.insert(names.end(), op.after.begin(), op.after.end());
  return names;
}

/// The inputs of a fused convolution with normalization that are its moving statistics. The inputs
/// of the convolution come first.
std::vector<int> fusedStates(const Operator& op, const Node& node) {
  if (node.subgraphs.empty() || !Attributes(op, node).isTrue("with_bn")) return {};
  int first = 0;
  for (const Node* inner : node.subgraphs[0]->nodes) {
    if (inner->op == "Convolution") first = std::max(first, static_cast<int>(inner->inputs.size()));
  }
  return {first + 2, first + 3};
}

/// The inputs of a node that are auxiliary states.
std::vector<int> statesOf(const Operator& op, const Node& node) {
  if (op.name == "_sg_mkldnn_conv") return fusedStates(op, node);
  if (op.each.empty() || op.written.empty()) return op.written;
  const auto step = static_cast<int>(op.each.size());
  const auto count = static_cast<int>(Attributes(op, node).count(op.counting));
  std::vector<int> states;
  for (int i = 0; i < count && i * step < static_cast<int>(node.inputs.size()); ++i) {
    for (const int written : op.written) {
      if (written < step) states.push_back(i * step + written);
    }
  }
  return states;
}

/// The positions of the auxiliary states among the variables of a graph, in the order in which a
/// node that runs it has them as inputs.
std::vector<int> statesAmong(const Graph& graph, const NodeStates& states) {
  const NameList names = listVariables(graph, {}, states).aux;
  TextViewSet found;
  for (std::size_t i = 0; i < names.size(); ++i) found.insert(names[i]);
  std::vector<int> places;
  int place = 0;
  for (const Node* node : graph.nodes) {
    if (node->op != "null") continue;
    if (found.count(node->name) != 0) places.push_back(place);
    ++place;
  }
  return places;
}

/// Names of inputs that take both data and parameters.
constexpr const char* kDataInputs[] = {"data", "label", "lhs", "rhs", "a",         "b",      "x",
                                       "y",    "A",     "B",   "C",   "condition", "indices"};

}  // namespace

const Operator* findOperator(const std::string& name) {
  static const auto* const registry = new Registry(readRegistry());
  const auto found = registry->find(name);
  return found == registry->end() ? nullptr : found->second.get();
}

Names inputNames(const Operator& op, const Node& node) {
  const Attributes given(op, node);
  if (op.is_variadic) return repeatedNames(op, given);
  Names names;
  for (const std::string& input : op.inputs) {
    const auto found = op.conditions.find(input);
    if (found == op.conditions.end() || given.hold(found->second)) names.push_back(input);
  }
  return names;
}

Outputs outputsOf(const Operator& op, const Node& node) {
  const OutputRule rule = outputRuleOf(op.name);
  return rule == nullptr ? op.outputs : rule(Attributes(op, node));
}

std::string outputSuffix(const Node& node, int output) {
  if (node.op == "null") return "";
  const Operator* const op = findOperator(node.op);
  const Names names = op == nullptr ? Names() : outputsOf(*op, node).visible;
  const auto number = static_cast<std::size_t>(output);
  if (number < names.size()) return "_" + names[number];
  return "_output" + (node.num_outputs > 1 ? std::to_string(output) : "");
}

AuxiliaryStates statesOf(const Graph& graph) {
  struct Frame {
    const Graph* graph;
    std::size_t place;  ///< of the next node
    NodeStates states;
  };
  // Graphs in progress: each but the first is that of an operator of a library in the one before.
  std::vector<Frame> frames;
  frames.push_back({&graph, 0, {}});
  for (;;) {
    Frame& frame = frames.back();
    if (frame.place < frame.graph->nodes.size()) {
      const Node& node = *frame.graph->nodes[frame.place++];
      const Operator* const op = findOperator(node.op);
      if (op != nullptr) {
        std::vector<int> own = statesOf(*op, node);
        if (!own.empty()) frame.states.emplace(frame.place - 1, std::move(own));
      } else if (!node.subgraphs.empty()) {
        frames.push_back({node.subgraphs[0], 0, {}});
      }
      continue;
    }
    const Frame done = std::move(frame);
    frames.pop_back();
    if (frames.empty()) return {{}, done.states};
    std::vector<int> own = statesAmong(*done.graph, done.states);
    Frame& outer = frames.back();
    if (!own.empty()) outer.states.emplace(outer.place - 1, std::move(own));
  }
}

Variables variablesOf(const Graph& graph) {
  return listVariables(graph, {}, statesOf(graph).by_node);
}

bool lacksParameters(const Graph& graph, const TextSet& names) {
  for (const Node* node : graph.nodes) {
    std::optional<Names> inputs;
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const Node& variable = *node->inputs[i].node;
      if (variable.op != "null" || names.count(variable.name) != 0) continue;
      if (attributeOf(variable, "__init__").data() != nullptr ||
          attributeOf(variable, "__lr_mult__").data() != nullptr) {
        return true;
      }
      if (!inputs) {
        const Operator* const op = findOperator(node->op);
        const bool is_named = op != nullptr && !op->is_variadic;
        inputs = is_named ? inputNames(*op, *node) : Names();
      }
      if (i < inputs->size() && std::find(std::begin(kDataInputs), std::end(kDataInputs),
                                          (*inputs)[i]) == std::end(kDataInputs)) {
        return true;
      }
    }
  }
  return false;
}

void completeOperators(Graph* graph) {
  mxnet::ext::host::forEachNode(
      graph, [](Graph*) {},
      [](Graph*, Node* node) {
        const Operator* const op = findOperator(node->op);
        if (op != nullptr && op->name != node->op) node->op = op->name;
      });
  bool changed = false;
  for (Node* node : graph->nodes) {
    const Operator* const op = findOperator(node->op);
    std::size_t count = node->op == "null" ? 1 : 0;
    if (op != nullptr) count = outputsOf(*op, *node).all;
    if (count == 0 || static_cast<int>(count) == node->num_outputs) continue;
    mxnet::ext::host::declareOutputs(node, static_cast<int>(count));
    changed = true;
  }
  if (changed) checkGraph(graph);
}

}  // namespace passlib::symbols
