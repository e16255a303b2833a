// The standard passes that are rules and algorithms of the core.
#ifndef PASSLIB_MODEL_STANDARD_H_
#define PASSLIB_MODEL_STANDARD_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "library/declarations.h"
#include "library/pass.h"
#include "model/edit.h"
#include "model/inlining.h"
#include "rules/engine.h"
#include "rules/knowledge.h"

namespace passlib::model {

/// One step of a standard pass: rules by groups, or an algorithm on a graph or on a message.
struct StandardStep {
  using Groups = std::vector<std::string>;

  std::string move;                       ///< of moves/moves.h, or ""
  std::string message;                    ///< "inlineFunctions" or "outline", or ""
  Groups groups;                          ///< in any case
  std::map<std::string, Groups> with;     ///< further ones where an option is true, or a text
  std::map<std::string, Groups> without;  ///< further ones where it is not
  std::string keeps;                      ///< of moves/kept.h, or ""
};

/// The passes of the folder `rules` of the package. Threads may share it.
class StandardPasses {
 public:
  /// Reads passes.json of a folder; the rules in it are read when a pass runs. Throws LoadError.
  explicit StandardPasses(const std::string& folder);

  const std::vector<Declaration>& declarations() const { return declarations_; }
  /// The number of the pass of a name. Throws std::out_of_range.
  std::size_t numberOf(const std::string& name) const;

  /// Whether a pass changes the message of a model, local functions included, not its graph.
  bool isOfMessages(std::size_t number) const { return !steps_[number].front().message.empty(); }
  /// Runs such a pass; returns nothing if the model stays. `since`: as of `inlineFunctions`, whose
  /// errors it throws.
  std::optional<std::string> changedMessage(std::size_t number, onnx::Bytes model,
                                            const OptionList& options,
                                            const SinceVersion& since) const;

  /// Runs another pass, by its number. `options`: of the declaration, checked. `fold`: may be null.
  /// Throws PassError, LoadError, std::runtime_error.
  void run(Edit* edit, std::size_t number, const OptionList& options,
           const rules::Assumptions& assumptions, const Edit::Fold& fold) const;

 private:
  const rules::Book& book() const;

  std::string folder_;
  std::vector<Declaration> declarations_;
  std::vector<std::vector<StandardStep>> steps_;
  mutable std::once_flag read_;
  mutable std::unique_ptr<rules::Book> book_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_STANDARD_H_
