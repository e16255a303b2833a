// The functions of passlib.h, over the rooms of the host.
#include "passlib.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/attributes.h"
#include "graph/edited.h"
#include "graph/text_table.h"
#include "graph/variables.h"
#include "model/session.h"
#include "model/writing.h"
#include "mxnet/operators.h"

using passlib::EditedGraph;
using passlib::Graph;
using passlib::Node;
using passlib::NodeEntry;
using passlib::Step;
namespace host = passlib::model;

struct passlib_error {
  passlib_error_kind kind;
  std::string message;
  int64_t offset;
};

struct passlib_session {
  host::Session passes;
};

struct passlib_model {
  explicit passlib_model(host::Model made) : model(std::move(made)) { note(); }

  /// Sets the graph that the reading functions use.
  void note() {
    graph = model.graph->get();
    table = nullptr;
  }
  std::size_t numberOf(const Node* node) const {
    const std::lock_guard<std::mutex> lock(mutex);
    if (table == nullptr) table = std::make_unique<mxnet::ext::NodeTable>(graph->nodes);
    return static_cast<std::size_t>(table->find(node));
  }
  void set(host::Model made) {
    model = std::move(made);
    note();
  }

  host::Model model;
  std::shared_ptr<const Graph> graph;
  mutable std::mutex mutex;
  mutable std::unique_ptr<mxnet::ext::NodeTable> table;  ///< made at the first question
};

struct passlib_edit {
  passlib_model* model;
  std::shared_ptr<passlib::GraphSource> source;  ///< the graph of the model when this began
  std::vector<std::pair<const Node*, std::string>> weights;  ///< with their names in the model
  EditedGraph editor;
  std::unique_ptr<passlib::TextMap<Node*>> names;  ///< or null
};

namespace {

Node* nodeOf(passlib_node* node) { return reinterpret_cast<Node*>(node); }
passlib_node* handleOf(Node* node) { return reinterpret_cast<passlib_node*>(node); }

/// Set where there is no memory for another error; never freed.
passlib_error no_memory{PASSLIB_SYSTEM, "there is not enough memory", -1};

void set(passlib_error** error, passlib_error_kind kind, const char* message,
         int64_t offset = -1) noexcept {
  if (error == nullptr) return;
  try {
    *error = new passlib_error{kind, message, offset};
  } catch (const std::bad_alloc&) {
    *error = &no_memory;
  }
}

/// Notes the exception that is handled.
void note(passlib_error** error) noexcept {
  try {
    throw;
  } catch (const passlib::StepsError& found) {
    set(error, PASSLIB_USAGE, found.what(), static_cast<int64_t>(found.offset));
  } catch (const host::UsageError& found) {
    set(error, PASSLIB_USAGE, found.what());
  } catch (const passlib::rules::RuleError& found) {
    set(error, PASSLIB_FORMAT, found.what());
  } catch (const passlib::FormatError& found) {
    const bool placed = found.offset != passlib::FormatError::kNoOffset;
    set(error, PASSLIB_FORMAT, found.what(), placed ? static_cast<int64_t>(found.offset) : -1);
  } catch (const mxnet::ext::JsonError& found) {
    set(error, PASSLIB_FORMAT, found.what(), static_cast<int64_t>(found.offset));
  } catch (const mxnet::ext::GraphStructureError& found) {
    set(error, PASSLIB_GRAPH, found.what());
  } catch (const passlib::LoadError& found) {
    set(error, PASSLIB_LOAD, found.what());
  } catch (const passlib::GraphError& found) {
    set(error, PASSLIB_GRAPH, found.what());
  } catch (const passlib::UnsupportedError& found) {
    set(error, PASSLIB_UNSUPPORTED, found.what());
  } catch (const passlib::LibraryError& found) {
    set(error, PASSLIB_PASS, found.what());
  } catch (const std::system_error& found) {
    set(error, PASSLIB_SYSTEM, found.what());
  } catch (const std::bad_alloc&) {
    if (error != nullptr) *error = &no_memory;
  } catch (const std::invalid_argument& found) {
    set(error, PASSLIB_USAGE, found.what());
  } catch (const std::out_of_range& found) {
    set(error, PASSLIB_USAGE, found.what());
  } catch (const std::exception& found) {
    set(error, PASSLIB_INTERNAL, found.what());
  } catch (...) {
    set(error, PASSLIB_INTERNAL, "an unknown exception");
  }
}

/// Runs a body; returns what it returns, or `failed` after an exception.
template <typename Result, typename Body>
Result guarded(passlib_error** error, Result failed, Body body) {
  try {
    return body();
  } catch (...) {
    note(error);
    return failed;
  }
}

template <typename Body>
int guarded(passlib_error** error, Body body) {
  return guarded(error, 0, [&body] {
    body();
    return 1;
  });
}

void require(const void* given, const char* what) {
  if (given == nullptr) throw host::UsageError(std::string(what) + " is null");
}

void requireBelow(std::size_t number, std::size_t count, const char* what) {
  if (number >= count) {
    throw host::UsageError(std::string("there is no ") + what + " " + std::to_string(number) +
                           "; there are " + std::to_string(count));
  }
}

/// Copies as much of a struct as the caller has room for, whose size it states.
template <typename Info>
void give(Info made, Info* info) {
  require(info, "info");
  if (info->size < sizeof(std::size_t) || info->size > 4096) {
    throw host::UsageError("the member size of a struct is not set to its size");
  }
  const std::size_t size = std::min(info->size, sizeof(Info));
  made.size = info->size;
  std::memcpy(info, &made, size);
}

/// The options of a caller, whose struct may be shorter than ours.
template <typename Options>
Options taken(const Options* given) {
  Options made{};
  if (given == nullptr) return made;
  if (given->size < sizeof(std::size_t) || given->size > 4096) {
    throw host::UsageError("the member size of a struct is not set to its size");
  }
  std::memcpy(&made, given, std::min(given->size, sizeof(Options)));
  return made;
}

/// A number of an output or input as graphs have it. One that is too large is none of any node's.
int numbered(std::size_t number) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (number > kMost) throw host::UsageError("there is no value " + std::to_string(number));
  return static_cast<int>(number);
}

NodeEntry outputOf(passlib_node* node, std::size_t output) {
  return {nodeOf(node), numbered(output)};
}

char* copied(std::string_view text) {
  auto* const made = static_cast<char*>(std::malloc(text.size() + 1));
  if (made == nullptr) throw std::bad_alloc();
  std::memcpy(made, text.data(), text.size());
  made[text.size()] = '\0';
  return made;
}

/// The folder of the file that has this code.
std::string ownFolder() {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&passlib_version), &found) == 0) return ".";
  std::string path = found.dli_fname;
  // The word of the command line, if this is linked into a program that the shell found in PATH.
  if (path.find('/') == std::string::npos) path = "/proc/self/exe";
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real != nullptr) path = real.get();
  return path.substr(0, path.rfind('/'));
}

/// The library of standard passes: in the folder `passlib` beside this library, next to it, or
/// where a program in `bin` that contains this library has it.
std::string standardPasses() {
  const std::string folder = ownFolder();
  constexpr const char* kName = "libpasslib_passes.so";
  for (const char* place : {"/passlib/", "/", "/../" PASSLIB_LIBDIR "/passlib/"}) {
    std::string path = folder + place + kName;
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return folder + "/passlib/" + kName;
}

const Node& nodeAt(const passlib_model* model, std::size_t number) {
  require(model, "model");
  requireBelow(number, model->graph->nodes.size(), "node");
  return *model->graph->nodes[number];
}

bool isWeight(const passlib_model& model, const Node& node) {
  return node.op == "null" && model.model.arrays.count(node.name) != 0;
}

passlib_value valueOf(const passlib_model* model, const NodeEntry& entry) {
  return {model->numberOf(entry.node), static_cast<std::size_t>(entry.entry)};
}

/// Hands what happens in a run to the functions of its options.
host::Observer observerOf(const passlib_run_options& given) {
  host::Observer observer;
  observer.printed = [given](const std::string& text) {
    if (given.print != nullptr) given.print(text.data(), text.size(), given.context);
  };
  if (given.step == nullptr) return observer;
  observer.counts_changes = given.counts_changes != 0;
  observer.step = [given](const host::StepReport& report, const host::Model& model) {
    const passlib_model shown(model);
    passlib_step_info info{};
    info.size = sizeof info;
    info.name = report.name.c_str();
    info.text = report.text.c_str();
    info.model = &shown;
    info.seconds = report.seconds;
    info.changed_node_count = report.changed_nodes;
    info.is_modified = report.is_modified ? 1 : 0;
    info.has_failed = report.has_failed ? 1 : 0;
    given.step(&info, given.context);
  };
  return observer;
}

/// A step of a named pipeline with further values of an option that is a list, or with another
/// value of one that is not.
Step extended(const host::Session& session, Step step, const std::string& option,
              const std::vector<std::string>& values) {
  const passlib::Declaration& declaration = session.find(step.name).declaration;
  std::size_t place = 0;
  std::vector<std::string> all;
  const auto named = [&option](const auto& each) { return each.name == option; };
  const auto& options = declaration.options;
  const auto declared = std::find_if(options.begin(), options.end(), named);
  const bool is_list = declared != options.end() && declared->is_list;
  if (is_list) all = passlib::listedIn(declaration.checked(step.options, &place), option);
  for (const std::string& value : values) {
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  }
  const auto isIt = [&option](const auto& each) { return each.first == option; };
  step.options.erase(std::remove_if(step.options.begin(), step.options.end(), isIt),
                     step.options.end());
  step.options.emplace_back(option, is_list ? passlib::printList(all) : all.back());
  return step;
}

/// Steps without those of some names, which named pipelines skip if they are of standard passes.
/// `found` gets the names that were there.
std::vector<Step> without(const host::Session& session, const std::vector<Step>& steps,
                          const std::set<std::string>& names, std::set<std::string>* found) {
  std::set<std::string> standard;
  for (const std::string& name : names) {
    if (session.isStandard(name)) standard.insert(name);
  }
  // Repeats in progress: the steps around them, and the place there.
  struct Frame {
    const std::vector<Step>* from;
    std::size_t place;
    std::vector<Step> kept;
  };
  std::vector<Frame> frames;
  frames.push_back({&steps, 0, {}});
  for (;;) {
    Frame& frame = frames.back();
    if (frame.place == frame.from->size()) {
      std::vector<Step> kept = std::move(frame.kept);
      frames.pop_back();
      if (frames.empty()) return kept;
      Frame& outer = frames.back();
      const Step& repeat = (*outer.from)[outer.place++];
      if (kept.empty()) continue;
      Step made;
      made.times = repeat.times;
      made.steps = std::move(kept);
      outer.kept.push_back(std::move(made));
      continue;
    }
    const Step& step = (*frame.from)[frame.place];
    if (step.times > 0) {
      frames.push_back({&step.steps, 0, {}});
      continue;
    }
    ++frame.place;
    if (names.count(step.name) != 0) {
      found->insert(step.name);
    } else if (!standard.empty() && session.find(step.name).is_pipeline) {
      found->insert(standard.begin(), standard.end());
      frame.kept.push_back(extended(session, step, "skip",
                                    std::vector<std::string>(standard.begin(), standard.end())));
    } else {
      frame.kept.push_back(step);
    }
  }
}

}  // namespace

const char* passlib_version(void) { return PASSLIB_VERSION; }

int passlib_api_version(void) { return PASSLIB_API_VERSION; }

passlib_error_kind passlib_error_get_kind(const passlib_error* error) { return error->kind; }

const char* passlib_error_message(const passlib_error* error) { return error->message.c_str(); }

int64_t passlib_error_offset(const passlib_error* error) { return error->offset; }

void passlib_error_free(passlib_error* error) {
  if (error != &no_memory) delete error;
}

void passlib_free(void* memory) { std::free(memory); }

passlib_session* passlib_session_new(const passlib_session_options* options,
                                     passlib_error** error) {
  return guarded(error, static_cast<passlib_session*>(nullptr), [&] {
    const passlib_session_options given = taken(options);
    return new passlib_session{
        host::Session(given.standard_passes != nullptr ? given.standard_passes : standardPasses())};
  });
}

void passlib_session_free(passlib_session* session) { delete session; }

int passlib_session_load(passlib_session* session, const char* path, int replaces,
                         passlib_error** error) {
  return guarded(error, [&] {
    require(session, "session");
    require(path, "path");
    session->passes.load(path, replaces != 0);
  });
}

size_t passlib_session_pass_count(const passlib_session* session) {
  return session == nullptr ? 0 : session->passes.passes().size();
}

int passlib_session_pass(const passlib_session* session, size_t number, passlib_pass_info* info,
                         passlib_error** error) {
  return guarded(error, [&] {
    require(session, "session");
    requireBelow(number, session->passes.passes().size(), "pass");
    const host::KnownPass& pass = session->passes.passes()[number];
    const passlib::Declaration& declaration = pass.declaration;
    passlib_pass_info made{};
    made.name = declaration.name.c_str();
    made.description = declaration.description.c_str();
    made.source = pass.source.c_str();
    made.option_count = declaration.options.size();
    made.is_exact = declaration.exact ? 1 : 0;
    made.is_declared = declaration.declared ? 1 : 0;
    made.supports_onnx = declaration.isFor("onnx") ? 1 : 0;
    const bool enters = declaration.enters_functions || !declaration.pipelines.empty();
    made.enters_functions = made.supports_onnx != 0 && enters ? 1 : 0;
    made.is_partitioner = pass.library.is_partitioner ? 1 : 0;
    give(made, info);
  });
}

int passlib_session_option(const passlib_session* session, size_t pass, size_t number,
                           passlib_option_info* info, passlib_error** error) {
  return guarded(error, [&] {
    require(session, "session");
    requireBelow(pass, session->passes.passes().size(), "pass");
    const host::KnownPass& known = session->passes.passes()[pass];
    requireBelow(number, known.accepted.size(), "option");
    const passlib::OptionDeclaration& option = known.declaration.options[number];
    passlib_option_info made{};
    made.name = option.name.c_str();
    made.description = option.description.c_str();
    made.kind = option.kind.c_str();
    made.accepted = known.accepted[number].c_str();
    made.preset = option.default_text.c_str();
    made.is_list = option.is_list ? 1 : 0;
    give(made, info);
  });
}

passlib_model* passlib_model_load(const char* path, passlib_error** error) {
  return guarded(error, static_cast<passlib_model*>(nullptr), [&] {
    require(path, "path");
    return new passlib_model(host::loadModel(path));
  });
}

passlib_model* passlib_model_read(const void* data, size_t size, passlib_error** error) {
  return guarded(error, static_cast<passlib_model*>(nullptr), [&] {
    if (size > 0) require(data, "data");
    std::string bytes(static_cast<const char*>(data), size);
    return new passlib_model(host::modelOf(host::File::of(std::move(bytes))));
  });
}

passlib_model* passlib_model_copy(const passlib_model* model, passlib_error** error) {
  return guarded(error, static_cast<passlib_model*>(nullptr), [&] {
    require(model, "model");
    return new passlib_model(model->model);
  });
}

void passlib_model_free(passlib_model* model) { delete model; }

const char* passlib_model_dialect(const passlib_model* model) {
  if (model == nullptr) return nullptr;
  return model->model.isOnnx() ? "onnx" : "mxnet";
}

size_t passlib_model_file_bytes(const passlib_model* model) {
  return model == nullptr || !model->model.isOnnx() ? 0 : model->model.file->size();
}

int passlib_model_save(const passlib_model* model, const char* path, passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(path, "path");
    host::save(model->model, path);
  });
}

int passlib_model_save_files(const passlib_model* model, const char* path,
                             void (*visit)(const char* file, void* context), void* context,
                             passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(path, "path");
    if (visit == nullptr) throw host::UsageError("visit is null");
    for (const std::string& file : host::save(model->model, path)) visit(file.c_str(), context);
  });
}

int passlib_model_serialize(const passlib_model* model, void** data, size_t* size,
                            passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(data, "data");
    require(size, "size");
    *data = host::serialize(model->model, size).release();
  });
}

int passlib_model_run(passlib_model* model, const passlib_session* session, const char* pipeline,
                      const passlib_run_options* options, passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(session, "session");
    require(pipeline, "pipeline");
    const passlib_run_options given = taken(options);
    const std::string text = pipeline;
    const std::vector<Step> steps = passlib::readSteps(text);
    session->passes.check(steps, text, host::dialectOf(model->model));
    model->graph.reset();
    try {
      model->set(session->passes.run(model->model, steps, observerOf(given)));
    } catch (...) {
      model->note();
      throw;
    }
  });
}

char* passlib_pipeline_without(const passlib_session* session, const char* pipeline,
                               const char* const* names, size_t count, passlib_error** error) {
  return guarded(error, static_cast<char*>(nullptr), [&] {
    require(session, "session");
    require(pipeline, "pipeline");
    if (count > 0) require(names, "names");
    const std::string text = pipeline;
    const std::vector<Step> steps = passlib::readSteps(text);
    session->passes.check(steps, text, "");
    const std::set<std::string> skipped(names, names + count);
    std::set<std::string> found;
    const std::vector<Step> kept = without(session->passes, steps, skipped, &found);
    for (const std::string& name : skipped) {
      if (found.count(name) == 0) {
        throw host::UsageError("the pipeline has no pass '" + name + "' to skip");
      }
    }
    return copied(passlib::printSteps(kept));
  });
}

char* passlib_pipeline_with(const passlib_session* session, const char* pipeline,
                            const char* option, const char* const* values, size_t count,
                            passlib_error** error) {
  return guarded(error, static_cast<char*>(nullptr), [&]() -> char* {
    require(session, "session");
    require(pipeline, "pipeline");
    require(option, "option");
    requireBelow(0, count, "value");
    require(values, "values");
    const std::string text = pipeline;
    std::vector<Step> steps = passlib::readSteps(text);
    session->passes.check(steps, text, "");
    for (Step& step : steps) {
      if (step.times > 0 || !session->passes.find(step.name).is_pipeline) continue;
      const std::vector<std::string> given(values, values + count);
      Step alone;  // so that messages are about these values
      alone.name = step.name;
      step = extended(session->passes, step, option, given);
      alone.options = {step.options.back()};
      std::size_t place = 0;
      session->passes.checkOptions(alone, &place);
      return copied(passlib::printSteps(steps));
    }
    return nullptr;
  });
}

size_t passlib_model_node_count(const passlib_model* model) {
  return model == nullptr ? 0 : model->graph->nodes.size();
}

int passlib_model_node(const passlib_model* model, size_t node, passlib_node_info* info,
                       passlib_error** error) {
  return guarded(error, [&] {
    const Node& found = nodeAt(model, node);
    passlib_node_info made{};
    made.name = found.name.c_str();
    made.op = found.op.c_str();
    made.input_count = found.inputs.size();
    made.output_count = static_cast<size_t>(std::max(found.num_outputs, 1));
    made.attribute_count = found.attrs.size();
    made.graph_count = found.subgraphs.size();
    made.is_weight = isWeight(*model, found) ? 1 : 0;
    give(made, info);
  });
}

int passlib_model_node_input(const passlib_model* model, size_t node, size_t number,
                             passlib_value* value, passlib_error** error) {
  return guarded(error, [&] {
    const Node& found = nodeAt(model, node);
    require(value, "value");
    requireBelow(number, found.inputs.size(), "input");
    *value = valueOf(model, found.inputs[number]);
  });
}

int passlib_model_node_attribute(const passlib_model* model, size_t node, size_t number, char** key,
                                 char** text, passlib_error** error) {
  return guarded(error, [&] {
    const auto attributes = passlib::sortedAttributes(nodeAt(model, node));
    requireBelow(number, attributes.size(), "attribute");
    std::unique_ptr<char, decltype(&std::free)> first(copied(attributes[number].first), &std::free);
    if (text != nullptr) *text = copied(attributes[number].second);
    if (key != nullptr) *key = first.release();
  });
}

size_t passlib_model_output_count(const passlib_model* model) {
  return model == nullptr ? 0 : model->graph->outputs.size();
}

int passlib_model_output(const passlib_model* model, size_t number, passlib_value* value,
                         char** name, passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    requireBelow(number, model->graph->outputs.size(), "output");
    if (name != nullptr) *name = copied(host::outputNames(model->model)[number]);
    if (value != nullptr) *value = valueOf(model, model->graph->outputs[number]);
  });
}

int passlib_model_count_operators(const passlib_model* model,
                                  void (*visit)(const char* op, size_t count, void* context),
                                  void* context, passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    if (visit == nullptr) throw host::UsageError("visit is null");
    for (const auto& [op, count] : host::countOperators(model->model)) {
      visit(op.c_str(), count, context);
    }
  });
}

int passlib_model_warnings(const passlib_model* model, const passlib_session* session,
                           void (*visit)(const char* text, void* context), void* context,
                           passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(session, "session");
    if (visit == nullptr) throw host::UsageError("visit is null");
    for (const std::string& text : host::warningsOf(model->model, session->passes.operators())) {
      visit(text.c_str(), context);
    }
  });
}

int passlib_model_weight(const passlib_model* model, const char* name, passlib_array_info* info,
                         passlib_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(name, "name");
    const auto found = model->model.arrays.find(name);
    if (found == model->model.arrays.end()) {
      throw host::UsageError("there is no weight '" + std::string(name) + "'");
    }
    model->model.check();
    const host::Array& array = found->second;
    passlib_array_info made{};
    made.type = array.type;
    made.dim_count = array.dims.size();
    made.dims = array.dims.data();
    made.data = array.scaled != nullptr ? nullptr : array.data.data();
    made.byte_count = array.size();
    give(made, info);
  });
}

passlib_edit* passlib_edit_begin(passlib_model* model, passlib_error** error) {
  return guarded(error, static_cast<passlib_edit*>(nullptr), [&] {
    require(model, "model");
    std::unique_ptr<Graph> graph = passlib::copyGraph(*model->graph);
    std::vector<std::pair<const Node*, std::string>> weights;
    for (const Node* node : graph->nodes) {
      if (isWeight(*model, *node)) weights.emplace_back(node, node->name);
    }
    return new passlib_edit{model, model->model.graph, std::move(weights),
                            EditedGraph(std::move(graph), "an edit", false, {}), nullptr};
  });
}

int passlib_edit_finish(passlib_edit* edit, passlib_error** error) {
  const std::unique_ptr<passlib_edit> owned(edit);
  return guarded(error, [&] {
    require(edit, "edit");
    passlib_model& model = *edit->model;
    if (model.model.graph != edit->source) {
      throw host::UsageError("the model was changed since the edit began; begin another one");
    }
    host::Model made = model.model;
    passlib::NameList kept;
    for (const auto& [node, name] : edit->weights) made.arrays.erase(name);
    for (const auto& [node, name] : edit->weights) {
      if (edit->editor.isRemoved(node)) continue;
      made.arrays[node->name] = model.model.arrays.at(name);
      kept.push(node->name);
    }
    const int depth = passlib::mostNestedGraphs(edit->source.get());
    std::unique_ptr<Graph> graph = edit->editor.close();
    passlib::OperatorKinds kinds;
    const bool is_onnx = model.model.isOnnx();
    try {
      kinds = passlib::finishGraph(graph.get(), !is_onnx, "the edit left a graph that is not sound",
                                   depth);
    } catch (const passlib::PassResultError& problem) {
      throw passlib::GraphError(problem.what());
    }
    if (!is_onnx) {
      passlib::symbols::completeOperators(graph.get());
      kinds = {};
    }
    for (const std::string& name : passlib::missingNames(kept, *graph)) made.arrays.erase(name);
    made.present = host::presentAfter(model.model, *graph);
    made.graph = std::make_shared<passlib::GraphSource>(std::move(graph), std::move(kinds));
    model.set(std::move(made));
  });
}

void passlib_edit_free(passlib_edit* edit) { delete edit; }

passlib_node* passlib_edit_find(passlib_edit* edit, const char* name) {
  if (edit == nullptr || name == nullptr) return nullptr;
  return guarded(nullptr, static_cast<passlib_node*>(nullptr), [&] {
    if (edit->names == nullptr) {
      edit->names = std::make_unique<passlib::TextMap<Node*>>();
      for (Node* node : edit->editor.nodes(edit->editor.root())) {
        edit->names->emplace(node->name, node);
      }
    }
    const auto found = edit->names->find(std::string(name));
    const bool live = found != edit->names->end() && !edit->editor.isRemoved(found->second);
    return live ? handleOf(found->second) : nullptr;
  });
}

passlib_node* passlib_edit_add(passlib_edit* edit, const char* op, const char* name,
                               passlib_node* const* inputs, const size_t* outputs, size_t count,
                               passlib_error** error) {
  return guarded(error, static_cast<passlib_node*>(nullptr), [&] {
    require(edit, "edit");
    require(op, "op");
    if (count > 0) require(inputs, "inputs");
    std::vector<NodeEntry> entries;
    for (std::size_t i = 0; i < count; ++i) {
      require(inputs[i], "an input");
      entries.push_back(outputOf(inputs[i], outputs == nullptr ? 0 : outputs[i]));
    }
    edit->names = nullptr;
    return handleOf(
        edit->editor.addNode(edit->editor.root(), op, name == nullptr ? "" : name, entries, 1));
  });
}

int passlib_edit_set_attribute(passlib_edit* edit, passlib_node* node, const char* key,
                               const char* text, passlib_error** error) {
  return guarded(error, [&] {
    require(edit, "edit");
    require(node, "node");
    require(key, "key");
    edit->editor.requireLive(nodeOf(node));
    if (text == nullptr) {
      passlib::dropAttributes(nodeOf(node), {key});
    } else {
      passlib::setAttribute(nodeOf(node), key, text);
    }
  });
}

int passlib_edit_connect(passlib_edit* edit, passlib_node* from, size_t output, passlib_node* node,
                         size_t input, passlib_error** error) {
  return guarded(error, [&] {
    require(edit, "edit");
    require(from, "from");
    require(node, "node");
    edit->editor.connect(edit->editor.root(), outputOf(from, output), nodeOf(node),
                         numbered(input));
  });
}

int passlib_edit_replace(passlib_edit* edit, passlib_node* from, size_t output, passlib_node* by,
                         size_t by_output, passlib_error** error) {
  return guarded(error, [&] {
    require(edit, "edit");
    require(from, "from");
    require(by, "by");
    edit->editor.replace(edit->editor.root(), outputOf(from, output), outputOf(by, by_output));
  });
}

int passlib_edit_remove(passlib_edit* edit, passlib_node* node, passlib_error** error) {
  return guarded(error, [&] {
    require(edit, "edit");
    require(node, "node");
    edit->editor.remove(edit->editor.root(), {nodeOf(node)});
  });
}

int passlib_edit_rename(passlib_edit* edit, passlib_node* node, const char* name,
                        passlib_error** error) {
  return guarded(error, [&] {
    require(edit, "edit");
    require(node, "node");
    require(name, "name");
    edit->names = nullptr;
    edit->editor.rename(edit->editor.root(), nodeOf(node), name);
  });
}
