// The passes that a native host knows, and pipelines of them.
#ifndef PASSLIB_MODEL_SESSION_H_
#define PASSLIB_MODEL_SESSION_H_

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "library/declarations.h"
#include "library/steps.h"
#include "model/passes.h"
#include "model/rules.h"
#include "model/standard.h"
#include "model/workspace.h"

namespace passlib::model {

/// A pass or an option is unknown, or a name is taken. what() has the place in the pipeline.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A pass of a library, a file of rules, rules and algorithms of the core, or a named pipeline.
struct KnownPass {
  Declaration declaration;
  std::vector<std::string> accepted;  ///< values of each option, in words
  std::string source;                 ///< path of the library or of the file
  bool is_standard = false;
  LibraryPass library;                            ///< unless it is one of the others
  std::shared_ptr<const RulesFile> rules;         ///< or null
  std::shared_ptr<const StandardPasses> of_core;  ///< or null
  std::size_t number = 0;                         ///< of a pass of the core
  bool is_pipeline = false;
};

/// The report of a step of a run.
struct StepReport {
  std::string name;
  std::string text;  ///< with the options, as pipelines spell it
  double seconds = 0;
  std::size_t changed_nodes = 0;  ///< operators of the main graph that are new, removed or changed
  bool is_modified = false;       ///< whether anything changed
  bool has_failed = false;
};

/// Observes a run.
struct Observer {
  /// Gets what passes print.
  std::function<void(const std::string&)> printed;
  /// Gets each step with its result, or with its input if it failed. May be empty.
  std::function<void(const StepReport&, const Model&)> step;
  bool counts_changes = false;  ///< whether changed_nodes is counted
};

/// Passes by name. Threads may run pipelines at the same time, but not while something is loaded.
class Session {
 public:
  /// Knows the standard passes: those of a library, and those of the folder `rules` beside it.
  /// Throws LoadError.
  explicit Session(const std::string& standard_passes);

  /// Loads a library, or a file of rules if its name ends in `.rules`: its pass has the name of the
  /// file without the suffix. `replaces`: whether names that are taken are taken over. Throws
  /// LoadError, rules::RuleError, std::system_error.
  void load(const std::string& path, bool replaces);

  /// In the order in which they were loaded, the standard ones and the pipelines first.
  const std::vector<KnownPass>& passes() const { return passes_; }
  /// Throws UsageError.
  const KnownPass& find(const std::string& name) const;
  const LibraryOperators& operators() const { return *operators_; }
  /// Whether passlib has a pass of this name, here or in Python.
  bool isStandard(const std::string& name) const;

  /// Checks names and options of steps before anything runs, and that they run on models of a
  /// dialect, unless it is "". `text`: what they were read from, for messages. Throws UsageError.
  void check(const std::vector<Step>& steps, const std::string& text,
             const std::string& dialect) const;

  /// Checks name and options of a step that is no repeat. `place` gets the number of the option
  /// where one is wrong. Throws UsageError, std::invalid_argument.
  void checkOptions(const Step& step, std::size_t* place) const;

  /// Runs steps that were checked and returns the resulting model. Throws PassError, whose text
  /// names the step.
  Model run(const Model& model, const std::vector<Step>& steps, const Observer& observer) const;

 private:
  /// The names that a pipeline skips. Throws UsageError unless they are names of passes.
  std::vector<std::string> skippedBy(const OptionList& options) const;
  Model runStep(const Model& model, const Step& step, const Observer& observer) const;
  /// The same; errors say which step of a pipeline failed. Throws PassError.
  Model runNumbered(const Model& model, const Step& step, std::size_t number,
                    const Observer& observer) const;
  /// Runs a pass that is no pipeline, with the bodies of functions; nothing if the model stays.
  std::optional<Model> runAlone(const Model& model, const KnownPass& pass,
                                const OptionList& options, const Observer& observer) const;
  Model runPipeline(Model model, const KnownPass& pipeline, const OptionList& options,
                    const Observer& observer) const;
  /// Runs a pass that is no pipeline; nothing if the model stays the same. `options`: checked.
  /// `assumptions`: of passes of the core.
  std::optional<Model> runKnown(Workspace* workspace, const Model& model, const KnownPass& pass,
                                const OptionList& options, const rules::Assumptions& assumptions,
                                const Observer& observer) const;

  /// Throws LoadError if a name belongs to another library.
  void addOperators(const std::shared_ptr<Library>& library, bool replaces);

  std::vector<KnownPass> passes_;
  std::shared_ptr<const LibraryOperators> operators_ = std::make_shared<LibraryOperators>();
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_SESSION_H_
