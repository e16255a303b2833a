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

namespace passlib::model {

/// A pass or an option is unknown, or a name is taken. what() has the place in the pipeline.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A pass of a library, or a file of rules.
struct KnownPass {
  Declaration declaration;
  std::vector<std::string> accepted;  ///< values of each option, in words
  std::string source;                 ///< path of the library or of the file
  bool is_standard = false;
  LibraryPass library;                     ///< unless it is rules
  std::shared_ptr<const RulesFile> rules;  ///< or null
};

/// Passes by name. Threads may run pipelines at the same time, but not while something is loaded.
class Session {
 public:
  /// Knows the standard passes of a library. Throws LoadError.
  explicit Session(const std::string& standard_passes);

  /// Loads a library, or a file of rules if its name ends in `.rules`: its pass has the name of the
  /// file without the suffix. `replaces`: whether names that are taken are taken over. Throws
  /// LoadError, rules::RuleError, std::system_error.
  void load(const std::string& path, bool replaces);

  /// In the order in which they were loaded.
  const std::vector<KnownPass>& passes() const { return passes_; }
  /// Throws UsageError.
  const KnownPass& find(const std::string& name) const;

  /// Checks names and options of steps before anything runs. `text`: what they were read from, for
  /// messages. Throws UsageError.
  void check(const std::vector<Step>& steps, const std::string& text) const;

  /// Runs steps that were checked and returns the resulting model. `printed` gets what passes
  /// print. Throws PassError and the errors of runPass.
  Model run(const Model& model, const std::vector<Step>& steps,
            const std::function<void(const std::string&)>& printed) const;

 private:
  Model runStep(const Model& model, const Step& step,
                const std::function<void(const std::string&)>& printed) const;

  std::vector<KnownPass> passes_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_SESSION_H_
