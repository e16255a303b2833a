#include "model/session.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "errors.h"
#include "graph/attributes.h"
#include "graph/difference.h"
#include "header.h"
#include "library/calls/state.h"
#include "model/parts.h"
#include "model/shapes.h"
#include "model/simplify.h"
#include "model/writing.h"
#include "onnx/text/strings.h"
#include "onnx/types/operator_sets.h"

namespace passlib::model {

namespace {

using mxnet::ext::host::quoted;

/// The version that `initialize` gets: that of the MXNet that passlib follows.
constexpr int kMxnetVersion = 10901;

/// The standard passes that are written in Python are not here.
constexpr const char* kPythonPasses[] = {"decompose"};

bool isOfPython(const std::string& name) {
  return std::find(std::begin(kPythonPasses), std::end(kPythonPasses), name) !=
         std::end(kPythonPasses);
}

bool endsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The name of a file without folders and suffix.
std::string stemOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

void setDeclaration(Declaration declaration, KnownPass* pass) {
  for (const OptionDeclaration& option : declaration.options) {
    pass->accepted.push_back(option.typeText());
  }
  pass->declaration = std::move(declaration);
}

/// A library, and the passes that it registered.
struct OpenedLibrary {
  std::shared_ptr<Library> library;
  std::vector<KnownPass> passes;
};

OpenedLibrary openLibrary(const std::string& given, bool is_standard) {
  // A symbolic link is opened, and reported, under its own name.
  const std::string path = std::filesystem::absolute(given).lexically_normal();
  const std::shared_ptr<Library> library =
      Library::open(path, kMxnetVersion, OnInterrupt::kNothing);
  std::vector<Declaration> declared;
  try {
    declared = declarationsOf(*library);
  } catch (const FormatError& error) {
    throw LoadError("what the passes of library " + quoted(path) +
                    " declare cannot be read: " + error.what());
  }
  std::vector<KnownPass> made;
  const auto add = [&](std::size_t index, bool is_partitioner, Declaration declaration) {
    KnownPass pass;
    pass.source = library->path();
    pass.is_standard = is_standard;
    setDeclaration(std::move(declaration), &pass);
    pass.library.library = library;
    pass.library.index = index;
    pass.library.is_partitioner = is_partitioner;
    pass.library.is_declared = pass.declaration.declared;
    pass.library.needs_shapes = pass.declaration.needs_shapes;
    pass.library.lending = !pass.declaration.needs_weights      ? Lending::kNothing
                           : pass.declaration.weights_on_demand ? Lending::kOnDemand
                                                                : Lending::kWhole;
    made.push_back(std::move(pass));
  };
  for (std::size_t i = 0; i < library->passes().size(); ++i) {
    Declaration declaration;
    declaration.name = library->passes()[i].name;
    for (const Declaration& each : declared) {
      if (each.name == declaration.name) declaration = each;
    }
    add(i, false, std::move(declaration));
  }
  // Where a library has both of a name, it is the partitioner's.
  for (std::size_t i = 0; i < library->partitioners().size(); ++i) {
    Declaration declaration;
    declaration.name = library->partitioners()[i].name;
    add(i, true, std::move(declaration));
  }
  return {library, std::move(made)};
}

std::string kindOf(const KnownPass& pass) {
  return pass.library.is_partitioner ? "partitioner" : "pass";
}

std::vector<KnownPass> openStandard(const std::string& folder) {
  const auto passes = std::make_shared<const StandardPasses>(folder);
  std::vector<KnownPass> made;
  for (const Declaration& declaration : passes->declarations()) {
    KnownPass pass;
    pass.of_core = passes;
    pass.number = made.size();
    pass.source = folder;
    pass.is_standard = true;
    setDeclaration(declaration, &pass);
    made.push_back(std::move(pass));
  }
  return made;
}

KnownPass pipelineOf(const std::string& name, const std::string& description, bool exact) {
  Declaration declaration;
  declaration.name = name;
  declaration.description = description;
  declaration.declared = true;
  declaration.exact = exact;
  OptionDeclaration fixed;
  fixed.name = "fixed";
  fixed.kind = "text";
  fixed.is_list = true;
  fixed.default_text = "[]";
  fixed.description = "shapes of inputs, such as x:1,3,224,224";
  OptionDeclaration skip = fixed;
  skip.name = "skip";
  skip.description = "passes to skip";
  OptionDeclaration cost;
  cost.name = "cost";
  cost.kind = "text";
  cost.default_text = "nodes";
  cost.choices = {"nodes", "bytes", "flops", "traffic"};
  cost.description = "measure that each kept step must lower";
  OptionDeclaration growth;
  growth.name = "max_growth";
  growth.kind = "integer";
  growth.default_text = "None";
  growth.description = "maximum growth of the weights in bytes (default: 1 %, at most 1 MB)";
  growth.low = "0";
  OptionDeclaration rounds = growth;
  rounds.name = "max_rounds";
  rounds.default_text = "16";
  rounds.description = "maximum number of rounds";
  rounds.low = "1";
  OptionDeclaration target = cost;
  target.name = "target";
  target.default_text = "onnx";
  target.choices = {"onnx", "onnxruntime"};
  target.description = "runtime whose own operators are made";
  declaration.options = {fixed, skip, cost, growth, rounds, target};
  KnownPass pass;
  pass.is_pipeline = true;
  pass.is_standard = true;
  pass.source = "passlib";
  setDeclaration(std::move(declaration), &pass);
  return pass;
}

KnownPass openRules(const std::string& path) {
  KnownPass pass;
  pass.rules = RulesFile::open(path);
  pass.source = path;
  setDeclaration(pass.rules->declaration(stemOf(path)), &pass);
  return pass;
}

/// Whether anything in a model changed.
bool differs(const Model& before, const Model& after) {
  if (before.arrays.size() != after.arrays.size()) return true;
  for (const auto& [name, array] : after.arrays) {
    const auto found = before.arrays.find(name);
    if (found == before.arrays.end() || found->second.data.data() != array.data.data() ||
        found->second.scaled != array.scaled) {
      return true;
    }
  }
  return before.graph != after.graph && !equalGraphs(*before.graph->get(), *after.graph->get());
}

/// How many operators of the main graph are new, removed or changed; origins do not count.
std::size_t changedNodes(const Model& before, const Model& after) {
  static const std::vector<std::string> kOrigins = {MX_STR_ORIGIN, MX_STR_RULES};
  std::unique_ptr<Graph> graphs[2];
  std::set<std::string> variables[2];
  const Model* const models[2] = {&before, &after};
  for (int i = 0; i < 2; ++i) {
    graphs[i] = copyGraph(*models[i]->graph->get());
    mxnet::ext::host::forEachNode(
        graphs[i].get(), [](Graph*) {}, [](Graph*, Node* node) { dropAttributes(node, kOrigins); });
    for (const Node* node : graphs[i]->nodes) {
      if (node->op == "null") variables[i].insert(node->name);
    }
  }
  const Difference found = differenceOf(*graphs[0], *graphs[1]);
  const auto isOperator = [&variables](int graph, const std::string& name) {
    return variables[graph].count(name) == 0;
  };
  std::size_t count = 0;
  for (const std::string& name : found.removed) count += isOperator(0, name) ? 1 : 0;
  for (const std::string& name : found.added) count += isOperator(1, name) ? 1 : 0;
  for (const std::string& name : found.changed) {
    count += isOperator(0, name) || isOperator(1, name) ? 1 : 0;
  }
  return count;
}

/// The shapes that a pipeline was given do not fit the model, as before any pass.
struct WrongShapes {
  std::exception_ptr error;
};

/// Runs a step and reports it.
std::optional<Model> watched(const Observer& observer, const Step& step, const Model& before,
                             const std::function<std::optional<Model>()>& body) {
  if (!observer.step) return body();
  StepReport report;
  report.name = step.name;
  report.text = printSteps({step});
  const auto start = std::chrono::steady_clock::now();
  const auto end = [&] {
    const auto passed = std::chrono::steady_clock::now() - start;
    report.seconds = std::chrono::duration<double>(passed).count();
  };
  std::optional<Model> made;
  try {
    made = body();
  } catch (...) {
    end();
    report.has_failed = true;
    observer.step(report, before);
    throw;
  }
  end();
  report.is_modified = made && (made->file != before.file || differs(before, *made));
  if (report.is_modified && observer.counts_changes) {
    report.changed_nodes = changedNodes(before, *made);
  }
  observer.step(report, made ? *made : before);
  return made;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string made;
  for (const std::string& text : texts) made += (made.empty() ? "" : ", ") + text;
  return made;
}

/// Runs a pass that changes the message of a model; nothing if the model stays.
std::optional<Model> changedMessage(const Model& model, const KnownPass& pass,
                                    const OptionList& options) {
  const std::string before = contentOf(model);
  std::optional<std::string> made;
  try {
    made = pass.of_core->changedMessage(pass.number, before, options, onnx::sinceVersion);
  } catch (const std::runtime_error& error) {
    throw PassError("pass " + quoted(pass.declaration.name) + " failed: " + error.what());
  }
  if (!made) return std::nullopt;
  Model after = modelOf(File::of(*std::move(made), *model.file));
  after.operators = model.operators;
  return after;
}

/// Whether a pass that is for a dialect runs here: the rules and algorithms of the core are for
/// ONNX alone.
bool runsOn(const KnownPass& pass, const std::string& dialect) {
  return dialect == "onnx" || (pass.of_core == nullptr && pass.rules == nullptr);
}

}  // namespace

Session::Session(const std::string& standard_passes) {
  passes_ = openLibrary(standard_passes, true).passes;
  const std::size_t slash = standard_passes.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : standard_passes.substr(0, slash);
  for (KnownPass& pass : openStandard(folder + "/rules")) passes_.push_back(std::move(pass));
  passes_.push_back(
      pipelineOf("simplify", "Run the standard passes until the cost stops falling.", false));
  passes_.push_back(pipelineOf("clean", "Like simplify, but run only bit-exact passes.", true));
}

void Session::load(const std::string& path, bool replaces) {
  std::vector<KnownPass> made;
  std::shared_ptr<Library> library;
  if (endsWith(path, ".rules")) {
    made.push_back(openRules(path));
  } else if (endsWith(path, ".py")) {
    throw UsageError(path + ": Python files with passes need passlib's Python package");
  } else {
    OpenedLibrary opened = openLibrary(path, false);
    made = std::move(opened.passes);
    library = std::move(opened.library);
  }
  for (const KnownPass& pass : made) {
    for (const KnownPass& known : passes_) {
      if (replaces || known.declaration.name != pass.declaration.name) continue;
      if (known.source == pass.source && known.library.library == pass.library.library) continue;
      const std::string name = quoted(known.declaration.name);
      throw LoadError("cannot load " + quoted(path) + ": " +
                      (known.is_standard
                           ? name + " is the name of a standard pass"
                           : "the " + kindOf(known) + " " + name + " is already registered by " +
                                 quoted(known.source)) +
                      "; rename it, or let it take the name over (--override)");
    }
  }
  if (library != nullptr) addOperators(library, replaces);
  for (KnownPass& pass : made) {
    const auto named = [&pass](const KnownPass& known) {
      return known.declaration.name == pass.declaration.name;
    };
    passes_.erase(std::remove_if(passes_.begin(), passes_.end(), named), passes_.end());
    passes_.push_back(std::move(pass));
  }
}

void Session::addOperators(const std::shared_ptr<Library>& library, bool replaces) {
  if (library->operators().empty()) return;
  auto known = std::make_shared<LibraryOperators>(*operators_);
  for (std::size_t i = 0; i < library->operators().size(); ++i) {
    const std::string& name = library->operators()[i].name;
    const auto made = std::make_shared<const CustomOp>(library, i);
    const auto [place, fresh] = known->try_emplace(name, made);
    if (fresh) continue;
    if (!replaces && place->second->library()->path() != library->path()) {
      throw LoadError("cannot load " + quoted(library->path()) + ": the operator " + quoted(name) +
                      " is already registered by " + quoted(place->second->library()->path()) +
                      "; rename it, or let it take the name over (--override)");
    }
    place->second = made;
  }
  operators_ = std::move(known);
}

bool Session::isStandard(const std::string& name) const {
  return isOfPython(name) ||
         std::any_of(passes_.begin(), passes_.end(), [&name](const KnownPass& pass) {
           return pass.is_standard && !pass.is_pipeline && pass.declaration.name == name;
         });
}

const KnownPass& Session::find(const std::string& name) const {
  for (const KnownPass& pass : passes_) {
    if (pass.declaration.name == name) return pass;
  }
  if (isOfPython(name)) {
    throw UsageError("the pass " + quoted(name) +
                     " is not in native hosts yet: run it with passlib's Python package, as "
                     "passlib opt");
  }
  std::vector<std::string> pipelines;
  std::vector<std::string> partitioners;
  std::vector<std::string> passes;
  for (const KnownPass& pass : passes_) {
    (pass.is_pipeline              ? pipelines
     : pass.library.is_partitioner ? partitioners
                                   : passes)
        .push_back(pass.declaration.name);
  }
  std::string have = "pipelines: " + joined(pipelines);
  if (!partitioners.empty()) have += "; partitioners: " + joined(partitioners);
  throw UsageError("there is no pass or partitioner " + quoted(name) + " (" + have +
                   "; passes: " + joined(passes) + ")");
}

void Session::checkOptions(const Step& step, std::size_t* place) const {
  const KnownPass& pass = find(step.name);
  const OptionList options = pass.declaration.checked(step.options, place);
  if (!pass.is_pipeline) return;
  skippedBy(options);
  readShapes(listedIn(options, "fixed"));
}

void Session::check(const std::vector<Step>& steps, const std::string& text,
                    const std::string& dialect) const {
  std::vector<const Step*> pending;
  const auto push = [&pending](const std::vector<Step>& list) {
    for (auto step = list.rbegin(); step != list.rend(); ++step) pending.push_back(&*step);
  };
  push(steps);
  while (!pending.empty()) {
    const Step& step = *pending.back();
    pending.pop_back();
    push(step.steps);
    if (step.times > 0) continue;
    std::size_t option = step.options.size();
    try {
      checkOptions(step, &option);
      if (dialect.empty()) continue;
      const KnownPass& pass = find(step.name);
      const Declaration& declaration = pass.declaration;
      if (!declaration.isFor(dialect)) {
        throw UsageError("pass " + quoted(step.name) + " is for models of " +
                         joined(declaration.dialects) + ", and this one is of " + dialect);
      }
      for (const auto& [key, value] : step.options) {
        const bool estimates = key == "cost" && (value == "flops" || value == "traffic");
        if (!pass.is_pipeline || !estimates || dialect == "onnx") continue;
        throw UsageError("option 'cost': native hosts do not estimate " + value +
                         " for models of " + dialect +
                         ": run it with passlib's Python package, as passlib opt");
      }
      if (!runsOn(pass, dialect)) {
        throw UsageError("the pass " + quoted(step.name) +
                         " is not in native hosts for models of " + dialect +
                         " yet: run it with passlib's Python package, as passlib opt");
      }
    } catch (const std::exception& error) {
      const std::size_t place =
          option < step.option_places.size() ? step.option_places[option] : step.place;
      throw UsageError("pipeline '" + text + "', character " + std::to_string(place + 1) + ": " +
                       error.what());
    }
  }
}

Model Session::runStep(const Model& model, const Step& step, const Observer& observer) const {
  const KnownPass& pass = find(step.name);
  std::size_t option = 0;
  const OptionList options = pass.declaration.checked(step.options, &option);
  if (pass.is_pipeline) return runPipeline(model, pass, options, observer);
  const auto run = [&] { return runAlone(model, pass, options, observer); };
  return watched(observer, step, model, run).value_or(model);
}

Model Session::runNumbered(const Model& model, const Step& step, std::size_t number,
                           const Observer& observer) const {
  try {
    return runStep(model, step, observer);
  } catch (const WrongShapes& wrong) {
    std::rethrow_exception(wrong.error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw PassError("step " + std::to_string(number) + " of the pipeline, " + printSteps({step}) +
                    ", failed: " + error.what());
  }
}

std::optional<Model> Session::runAlone(const Model& model, const KnownPass& pass,
                                       const OptionList& options, const Observer& observer) const {
  Workspace workspace;
  std::optional<Model> after = runKnown(&workspace, model, pass, options, {}, observer);
  KeptBodies kept;
  kept.passes_errors = pass.declaration.enters_functions;
  const bool enters_functions = kept.passes_errors || !pass.declaration.pipelines.empty();
  const Model& now = after ? *after : model;
  if (!enters_functions || !now.isOnnx() || !now.file->hasFunctions()) return after;
  OptionList inner = pass.declaration.in_functions;
  for (const auto& option : options) {
    const auto same = [&option](const auto& each) { return each.first == option.first; };
    if (std::none_of(inner.begin(), inner.end(), same)) inner.push_back(option);
  }
  const auto change = [&](const Model& body) -> std::optional<Model> {
    std::optional<Model> made = runKnown(&workspace, body, pass, inner, {}, observer);
    return made && differs(body, *made) ? made : std::nullopt;
  };
  std::optional<Model> inside = withBodies(now, change, kept);
  return inside ? inside : after;
}

std::vector<std::string> Session::skippedBy(const OptionList& options) const {
  std::vector<std::string> names = listedIn(options, "skip");
  for (const std::string& name : names) {
    if (!isOfPython(name)) find(name);
  }
  return names;
}

Model Session::runPipeline(Model model, const KnownPass& pipeline, const OptionList& options,
                           const Observer& observer) const {
  std::vector<const Declaration*> all;
  std::vector<bool> is_standard;
  const std::string dialect = dialectOf(model);
  for (const KnownPass& pass : passes_) {
    all.push_back(&pass.declaration);
    is_standard.push_back(pass.is_standard);
  }
  Simplification given;
  given.exact = pipeline.declaration.exact;
  given.passes = joinedPasses(pipeline.declaration.name, all, is_standard);
  for (const auto& [key, text] : options) {
    const long long number = std::strtoll(text.c_str(), nullptr, 10);
    if (key == "max_rounds") given.max_rounds = number;
    if (key == "max_growth") given.max_growth = static_cast<std::size_t>(number);
    if (key == "target") given.target = text;
    if (key == "cost") given.cost = text;
  }
  for (const std::string& name : skippedBy(options)) {
    const auto named = [&name](const Declaration* each) { return each->name == name; };
    given.passes.erase(std::remove_if(given.passes.begin(), given.passes.end(), named),
                       given.passes.end());
  }
  const auto isElsewhere = [&](const Declaration* each) {
    return !each->isFor(dialect) || !runsOn(find(each->name), dialect);
  };
  given.passes.erase(std::remove_if(given.passes.begin(), given.passes.end(), isElsewhere),
                     given.passes.end());
  const Shapes fixed = readShapes(listedIn(options, "fixed"));
  if (!fixed.empty()) {
    try {
      model = withShapes(model, fixed);
    } catch (...) {
      throw WrongShapes{std::current_exception()};
    }
  }
  const rules::Assumptions assumptions{given.exact, given.exact};
  Workspace workspace;
  const auto run = [&](const Model& now, const Declaration& pass, const OptionList& texts) {
    std::size_t place = 0;
    return runKnown(&workspace, now, find(pass.name), pass.checked(texts, &place), assumptions,
                    observer);
  };
  const auto watch = [&observer](const Step& step, const Model& before, const auto& body) {
    return watched(observer, step, before, body);
  };
  return simplifiedThroughout(model, given, run, watch);
}

std::optional<Model> Session::runKnown(Workspace* workspace, const Model& model,
                                       const KnownPass& pass, const OptionList& options,
                                       const rules::Assumptions& assumptions,
                                       const Observer& observer) const {
  const std::string& name = pass.declaration.name;
  if (pass.rules != nullptr) {
    return workspace->edited(model, "rules " + quoted(pass.source),
                             [&](Edit* edit) { pass.rules->apply(edit, options); });
  }
  std::optional<Model> after;
  std::string text;
  if (pass.of_core != nullptr && pass.of_core->isOfMessages(pass.number)) {
    after = changedMessage(model, pass, options);
  } else if (pass.of_core != nullptr) {
    after = workspace->edited(model, "pass " + quoted(name), [&](Edit* edit) {
      // Operators on constants that rules make stay: nothing runs them here.
      pass.of_core->run(edit, pass.number, options, assumptions, nullptr);
      text = onnx::printable(edit->takePrinted());
    });
  } else {
    try {
      after = runPass(model, pass.library, options, &text);
    } catch (...) {
      if (!text.empty()) observer.printed(text);
      throw;
    }
  }
  if (!text.empty()) observer.printed(text);
  // Runtimes may lose such a value.
  if (after && pass.is_standard && model.isOnnx() && model.file->originals()->refersToResults() &&
      altersReferences(*after) && !altersReferences(model)) {
    return std::nullopt;
  }
  return after;
}

Model Session::run(const Model& model, const std::vector<Step>& steps,
                   const Observer& observer) const {
  /// Steps in progress.
  struct Frame {
    const std::vector<Step>* steps;
    std::size_t place;
    int left;  ///< rounds after this one
    Model before;
  };
  Model now = model;
  now.operators = operators_;
  std::vector<Frame> frames = {{&steps, 0, 0, now}};
  std::size_t number = 1;
  while (!frames.empty()) {
    Frame& frame = frames.back();
    if (frame.place < frame.steps->size()) {
      const Step& step = (*frame.steps)[frame.place++];
      if (step.times > 0) {
        frames.push_back({&step.steps, 0, step.times - 1, now});
      } else {
        now = runNumbered(now, step, number++, observer);
      }
    } else if (frame.left > 0 && differs(frame.before, now)) {
      --frame.left;
      frame.place = 0;
      frame.before = now;
    } else {
      frames.pop_back();
    }
  }
  return now;
}

}  // namespace passlib::model
