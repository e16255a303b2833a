// Models while passes of the core change them.
#ifndef PASSLIB_MODEL_WORKSPACE_H_
#define PASSLIB_MODEL_WORKSPACE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/edit.h"
#include "model/model.h"

namespace passlib::model {

/// Runs passes of the core on models, one after another.
class Workspace {
 public:
  Workspace();
  ~Workspace();

  /// Returns what `change` makes of a model: nothing if that is the same. `what`: who changes it,
  /// for messages. Throws PassError, PassResultError, FormatError.
  std::optional<Model> edited(const Model& model, const std::string& what,
                              const std::function<void(Edit*)>& change);

 private:
  struct Open;

  /// The graph of the last model, if it did not change: with what was inferred of it, it is there
  /// for the next pass.
  std::unique_ptr<Open> open_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_WORKSPACE_H_
