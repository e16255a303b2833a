// Facts about graphs while passes and rules change them.
#ifndef PASSLIB_BINDINGS_EDITING_KNOWLEDGE_H_
#define PASSLIB_BINDINGS_EDITING_KNOWLEDGE_H_

#include <memory>

#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "rules/knowledge.h"

namespace passlib {

using rules::Assumptions;
using rules::GraphKnowledge;

/// Returns the parts that an OnnxFile was read from; null for None.
std::shared_ptr<const onnx::Originals> originalsOf(const py::object& file);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_EDITING_KNOWLEDGE_H_
