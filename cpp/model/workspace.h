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

/// Runs passes of the core on models, one after another. Models of one file with the same graph
/// must have the same weights.
class Workspace {
 public:
  Workspace();
  ~Workspace();

  /// Applies `change` to a model; returns nothing if the graph stays. `what`: who changes it, for
  /// messages. Throws PassError, PassResultError, FormatError.
  std::optional<Model> edited(const Model& model, const std::string& what,
                              const std::function<void(Edit*)>& change);

 private:
  struct Open;

  /// The last graph if it stayed, which the next pass uses again with the facts inferred of it.
  std::unique_ptr<Open> open_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_WORKSPACE_H_
