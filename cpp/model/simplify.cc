#include "model/simplify.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "facts/file_facts.h"
#include "facts/work.h"
#include "library/rounds.h"
#include "model/nested_graphs.h"
#include "model/parts.h"

namespace passlib::model {

namespace {

Cost costOf(const Model& model) {
  Cost cost;
  for (const auto& [op, count] : countOperators(model)) cost.nodes += count;
  for (const auto& [name, array] : model.arrays) cost.bytes += array.size();
  if (hasNested(model)) cost.bytes += nestedBytes(*model.graph->get(), *model.file->originals());
  return cost;
}

/// An estimate of one run of a model of ONNX, by the option `cost`.
std::size_t workOf(const Model& model, const std::string& cost) {
  const std::shared_ptr<const Graph> graph = model.graph->get();
  facts::FileFacts known(model.file->originals(), graph, arrayFacts(model, *graph));
  known.infer(opsetsOf(model), {}, true, true, false);
  const auto is_weight = [&model](const Node& node) { return model.arrays.count(node.name) != 0; };
  const facts::TotalWork total = facts::totalOf(*graph, facts::worksOf(known, is_weight));
  return static_cast<std::size_t>(cost == "flops" ? total.flops : total.traffic);
}

/// The operators of the main graph.
std::set<std::string> operatorsOf(const Model& model) {
  std::set<std::string> operators;
  const std::shared_ptr<const Graph> graph = model.graph->get();
  for (const Node* node : graph->nodes) operators.insert(node->op);
  return operators;
}

/// Whether the main graph has an operator that a pass needs.
bool hasTrigger(const std::set<std::string>& operators, const Declaration& pass) {
  return pass.triggers.empty() ||
         std::any_of(pass.triggers.begin(), pass.triggers.end(),
                     [&operators](const std::string& op) { return operators.count(op) != 0; });
}

void setOption(const std::string& key, const std::string& text, OptionList* options) {
  const auto named = [&key](const auto& each) { return each.first == key; };
  const auto found = std::find_if(options->begin(), options->end(), named);
  if (found == options->end()) {
    options->emplace_back(key, text);
  } else {
    found->second = text;
  }
}

/// The options of a pass in a pipeline, whose weights may grow by so many bytes.
OptionList optionsOf(const Declaration& pass, const Simplification& given, std::size_t room) {
  OptionList options = pass.joined;
  if (!given.exact) {
    for (const auto& [key, text] : pass.rounding) setOption(key, text, &options);
  }
  const auto has = [&pass](const char* name) {
    return std::any_of(pass.options.begin(), pass.options.end(),
                       [name](const OptionDeclaration& each) { return each.name == name; });
  };
  if (has("max_growth")) setOption("max_growth", std::to_string(room), &options);
  if (has("target") && given.target != "onnx") setOption("target", given.target, &options);
  return options;
}

}  // namespace

std::vector<const Declaration*> joinedPasses(const std::string& pipeline,
                                             const std::vector<const Declaration*>& all,
                                             const std::vector<bool>& is_standard) {
  std::vector<const Declaration*> found;
  std::vector<JoinedPass> joined;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Declaration& pass = *all[i];
    if (std::find(pass.pipelines.begin(), pass.pipelines.end(), pipeline) == pass.pipelines.end())
      continue;
    found.push_back(&pass);
    joined.push_back({pass.name, pass.after, is_standard[i], pass.cost});
  }
  std::vector<const Declaration*> ordered;
  for (const std::size_t place : orderOf(joined)) ordered.push_back(found[place]);
  return ordered;
}

namespace {

Model simplified(const Model& model, const Simplification& given, const RunPass& run) {
  Model now = model;
  std::set<std::string> operators = operatorsOf(now);
  const Cost start = costOf(now);
  Cost cost = start;
  std::optional<Model> made;
  Cost reached;
  const auto rank_of = [&given](const Model& of, const Cost& price) {
    return given.cost == "nodes"   ? price.nodes
           : given.cost == "bytes" ? price.bytes
                                   : workOf(of, given.cost);
  };
  std::size_t rank = rank_of(now, cost);
  std::size_t reached_rank = rank;
  RoundsHost host;
  host.has_trigger = [&](std::size_t pass) { return hasTrigger(operators, *given.passes[pass]); };
  host.run = [&](std::size_t place, std::size_t room) -> std::optional<Cost> {
    const Declaration& pass = *given.passes[place];
    made.reset();  // a refused result is no longer in memory while the next pass runs
    made = run(now, pass, optionsOf(pass, given, room));
    if (!made) return std::nullopt;
    reached = costOf(*made);
    return reached;
  };
  host.is_cheaper = [&] {
    reached_rank = made->graph == now.graph ? rank : rank_of(*made, reached);
    return reached_rank != rank ? reached_rank < rank : reached < cost;
  };
  host.keep = [&] {
    const bool is_other = made->graph != now.graph;
    now = std::move(*made);
    if (is_other) operators = operatorsOf(now);
    cost = reached;
    rank = reached_rank;
    return is_other;
  };
  runRounds(host, given.passes.size(), start, given.max_rounds, given.max_growth);
  return now;
}

ChangePart cheaperPart(const Simplification& given, const RunPass& run);

// Recursion is as deep as graphs are nested, which messages limit.
Model simplifiedWithNested(const Model& model, const Simplification& given, const RunPass& run,
                           const RunStep& watch) {
  const RunPass watched = [&](const Model& now, const Declaration& pass,
                              const OptionList& options) {
    std::size_t place = 0;
    Step step;
    step.name = pass.name;
    step.options = pass.checked(options, &place);
    return watch(step, now, [&] { return run(now, pass, options); });
  };
  Step nested;
  nested.name = "simplifyNested";
  Model now = simplified(model, given, watched);
  for (bool first = true; hasNested(now); first = false) {
    const auto change = [&] { return withNested(now, cheaperPart(given, run)); };
    const std::optional<Model> inside = first ? watch(nested, now, change) : change();
    if (!inside) break;
    if (!first) watch(nested, now, [&] { return inside; });
    if (!(costOf(*inside) < costOf(now))) break;
    now = simplified(*inside, given, watched);
  }
  return now;
}

ChangePart cheaperPart(const Simplification& given, const RunPass& run) {
  return [&given, &run](const Model& part) -> std::optional<Model> {
    const auto unwatched = [](const Step&, const Model&, const auto& body) { return body(); };
    Model after = simplifiedWithNested(part, given, run, unwatched);
    if (!(costOf(after) < costOf(part))) return std::nullopt;
    return after;
  };
}

}  // namespace

Model simplifiedThroughout(const Model& model, const Simplification& given, const RunPass& run,
                           const RunStep& watch) {
  Model now = simplifiedWithNested(model, given, run, watch);
  Step functions;
  functions.name = "simplifyFunctions";
  while (now.isOnnx() && now.file->hasFunctions()) {
    KeptBodies kept;
    kept.cheaper = true;
    const std::optional<Model> inside =
        watch(functions, now, [&] { return withBodies(now, cheaperPart(given, run), kept); });
    if (!inside) break;
    now = simplifiedWithNested(*inside, given, run, watch);
  }
  return now;
}

}  // namespace passlib::model
