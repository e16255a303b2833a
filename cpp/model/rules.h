// Files of rules, applied to models.
#ifndef PASSLIB_MODEL_RULES_H_
#define PASSLIB_MODEL_RULES_H_

#include <memory>
#include <string>
#include <vector>

#include "library/declarations.h"
#include "library/pass.h"
#include "model/edit.h"
#include "rules/engine.h"

namespace passlib::model {

/// Rules that were read. Threads may share one.
class RulesFile {
 public:
  /// Throws rules::RuleError, FormatError, std::system_error.
  static std::shared_ptr<const RulesFile> open(const std::string& path);

  RulesFile(std::string text, const std::string& file)
      : book_(std::move(text), file), file_(file) {}

  /// The rules as a pass of a name.
  Declaration declaration(const std::string& name) const;

  /// Applies rules until none applies. `options`: of the declaration, checked. Throws PassError,
  /// std::runtime_error.
  void apply(Edit* edit, const OptionList& options) const;

 private:
  std::vector<std::size_t> chosen(const OptionList& options) const;

  rules::Book book_;
  std::string file_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_RULES_H_
