#include "model/simplify.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "model/parts.h"

namespace passlib::model {

namespace {

constexpr std::size_t kLargestGrowth = 1000000;
constexpr std::size_t kShare = 100;
/// The minimum size of an operator in a file, with its names.
constexpr std::size_t kBytesOfNode = 64;

using Cost = std::pair<std::size_t, std::size_t>;  ///< operators, bytes of weights

Cost costOf(const Model& model) {
  Cost cost{0, 0};
  for (const auto& [op, count] : countOperators(model)) cost.first += count;
  for (const auto& [name, array] : model.arrays) cost.second += array.size();
  cost.second += nestedBytes(model);
  return cost;
}

/// The limit of the bytes of weights, which each removed operator raises.
std::size_t limit(const Cost& start, const Cost& now, std::size_t growth) {
  const std::size_t fewer = start.first > now.first ? start.first - now.first : 0;
  return start.second + growth + kBytesOfNode * fewer;
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
  struct Joined {
    const Declaration* pass;
    std::tuple<bool, int> place;  ///< standard passes first, then those that cost less
  };
  std::vector<Joined> found;
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& pipelines = all[i]->pipelines;
    if (std::find(pipelines.begin(), pipelines.end(), pipeline) == pipelines.end()) continue;
    const std::string& cost = all[i]->cost;
    found.push_back({all[i], {!is_standard[i], cost == "runs" ? 2 : cost == "weights" ? 1 : 0}});
    names.insert(all[i]->name);
  }
  std::map<std::string, std::vector<Joined>> followers;
  for (const Joined& each : found) {
    const std::string& after = each.pass->after;
    followers[names.count(after) != 0 ? after : ""].push_back(each);
  }
  std::vector<Joined> roots = followers[""];
  std::stable_sort(roots.begin(), roots.end(),
                   [](const auto& one, const auto& other) { return one.place < other.place; });
  roots.insert(roots.end(), found.begin(), found.end());  // those in a cycle are last
  std::vector<const Declaration*> ordered;
  std::set<std::string> placed;
  for (const Joined& root : roots) {
    std::vector<Joined> pending = {root};
    while (!pending.empty()) {
      const Declaration* pass = pending.back().pass;
      pending.pop_back();
      if (!placed.insert(pass->name).second) continue;
      ordered.push_back(pass);
      // The last one is next: passes of libraries directly follow the one that they name.
      std::vector<Joined> later = followers[pass->name];
      std::stable_sort(later.begin(), later.end(), [](const auto& one, const auto& other) {
        const auto& [is_ours, expense] = one.place;
        const auto& [others_is_ours, others_expense] = other.place;
        return std::pair(is_ours, -expense) < std::pair(others_is_ours, -others_expense);
      });
      pending.insert(pending.end(), later.begin(), later.end());
    }
  }
  return ordered;
}

namespace {

Model simplified(const Model& model, const Simplification& given, const RunPass& run) {
  Model now = model;
  std::set<std::string> operators = operatorsOf(now);
  Cost cost = costOf(now);
  const Cost start = cost;
  const std::size_t growth =
      given.max_growth ? *given.max_growth : std::min(kLargestGrowth, start.second / kShare);
  // The graph on which each pass last had no effect.
  std::map<const Declaration*, std::shared_ptr<GraphSource>> settled;
  for (int64_t round = 0; round < given.max_rounds; ++round) {
    bool changed = false;
    for (const Declaration* pass : given.passes) {
      if (settled[pass] == now.graph) continue;
      settled[pass] = now.graph;
      if (!hasTrigger(operators, *pass)) continue;
      const std::size_t most = limit(start, cost, growth);
      const std::size_t room = most - std::min(most, cost.second);
      std::optional<Model> made = run(now, *pass, optionsOf(*pass, given, room));
      if (!made) continue;
      const Cost reached = costOf(*made);
      const bool grown = reached.second > std::max(cost.second, limit(start, reached, growth));
      const bool lowers = given.lowers_bytes ? std::pair(reached.second, reached.first) <
                                                   std::pair(cost.second, cost.first)
                                             : reached < cost;
      if (grown || !lowers) continue;
      settled[pass] = nullptr;
      now = std::move(*made);
      operators = operatorsOf(now);
      cost = reached;
      changed = true;
    }
    if (!changed) break;
  }
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
