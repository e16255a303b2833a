#include "onnx/writing/variables.h"

#include <algorithm>

#include "errors.h"
#include "onnx/types/messages.h"
#include "onnx/types/stated.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"
#include "onnx/wire/strip.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// Arrays of fewer bytes are put into the message at once.
constexpr std::size_t kInline = 4096;

/// Order of the first new variable: after all those of the file.
constexpr uint64_t kNew = uint64_t{1} << 40;

/// Arrays with this many axes or more never determine a shape: shapes are vectors.
constexpr std::size_t kMatrixRank = 2;

/// Attribute of a variable: names of its open sizes, separated by commas.
constexpr const char* kDimParams = "__dim_params__";

/// Returns the number of the input whose default a constant is; null if there is none.
const uint32_t* inputOf(const Original& original) {
  const OriginalGraph& graph = *original.graph;
  bool has_input = false;
  if (original.what == Original::kInitializer) {
    has_input = graph.level.initializers[original.number].has_input;
  } else if (original.what == Original::kSparse) {
    has_input = graph.level.sparse[original.number].second;
  }
  return has_input ? graph.input_numbers.find(original.node->name) : nullptr;
}

template <typename List>
void sortByOrder(List* list) {
  std::stable_sort(list->begin(), list->end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
}

template <typename Pair>
std::vector<Bytes> secondsOf(const std::vector<Pair>& list) {
  std::vector<Bytes> seconds;
  seconds.reserve(list.size());
  for (const Pair& pair : list) seconds.push_back(pair.second);
  return seconds;
}

/// Returns the dimensions of the tensor that a ValueInfoProto describes.
std::vector<Bytes> dimensionsOf(Bytes message) {
  std::vector<Bytes> found;
  const Bytes shape = bodyOf(bodyOf(bodyOf(message, kValueType), kTensorType), kShape);
  forEachBody(shape, kDim, [&](Bytes dim) { found.push_back(dim); });
  return found;
}

/// Returns the names of open sizes that a variable states, one an axis, some of them empty.
std::vector<Bytes> statedNames(const Node& node) {
  std::vector<Bytes> names;
  Bytes rest = attributeOf(node, kDimParams);
  while (rest.data() != nullptr) {
    const std::size_t end = rest.find(',');
    names.push_back(rest.substr(0, end));
    rest = end == Bytes::npos ? Bytes() : rest.substr(end + 1);
  }
  return names;
}

/// Returns a description of a tensor whose open sizes have names: given ones, or those of `named`.
std::string withOpenSizes(Bytes described, Bytes named, const std::vector<Bytes>& names) {
  const std::vector<Bytes> made = dimensionsOf(described);
  const std::vector<Bytes> old = dimensionsOf(named);
  std::string shape;
  for (std::size_t axis = 0; axis < made.size(); ++axis) {
    std::string dim(made[axis]);
    if (dim.empty() && axis < names.size() && !names[axis].empty()) {
      appendBody(kDimParam, names[axis], &dim);
    } else if (dim.empty() && old.size() == made.size() && !bodyOf(old[axis], kDimParam).empty()) {
      dim = old[axis];
    }
    appendBody(kDim, dim, &shape);
  }
  const Bytes type = bodyOf(described, kValueType);
  const std::string tensor = withBody(bodyOf(type, kTensorType), kShape, shape);
  return withBody(described, kValueType, withBody(type, kTensorType, tensor));
}

}  // namespace

Bytes Variables::typed(Bytes name, const StatedType& type) {
  return arena_.emplace_back(valueInfo(name, type));
}

Bytes Variables::typed(Bytes name, const GivenArray& like) {
  return typed(name, StatedType{like.type, like.dims});
}

Bytes Variables::add(std::size_t position) {
  const Bytes variable = draft_.nameOf(position);
  const Original* claim = draft_.claim(position);
  const Original* original = claim != nullptr ? claim : draft_.named[position];
  const Bytes name = names_.of[names_.firsts[position]];
  const bool given = is_main_ && host_.has(variable);
  if (original == nullptr || !original->isTensor()) {
    addUntied(position, original, given);
    return Bytes();
  }
  if (const StatedType* fed = is_main_ ? host_.fed(variable) : nullptr) {
    changes_.add(*original, true, false);
    inputs_.emplace_back(kNew + position, typed(name, *fed));
    return Bytes();
  }
  const Bytes constant = original->nameInFile();
  const bool same = !given || host_.same(variable, constant);
  GivenArray array;
  if (!same) {
    array = host_.array(variable);
    GivenArray old;
    const bool seen = host_.inFile(constant, &old);
    const bool like = seen && array.type == old.type && array.dims == old.dims;
    changes_.add(*original, !like, seen && old.dims.size() < kMatrixRank);
  }
  if (original->what == Original::kConstant) {
    return makeConstant(*original, name, same ? nullptr : &array);
  }
  const uint64_t order = claim != nullptr ? original->number : kNew + position;
  if (same && original->what == Original::kSparse) {
    Bytes message = original->message();
    const Bytes values = bodyOf(message, kValues);
    if (bodyOf(values, kTensorName) != name) {
      message =
          arena_.emplace_back(withBody(message, kValues, withBody(values, kTensorName, name)));
    }
    sparse_.emplace_back(order, message);
  } else if (same) {
    keep(order, *original, name);
  } else {
    make(order, variable, name, array, original);
  }
  if (const uint32_t* number = inputOf(*original)) {
    const Bytes input = original->graph->inputs[*number];
    inputs_.emplace_back(*number,
                         same ? withName(input, kValueName, name, &arena_) : typed(name, array));
  }
  return Bytes();
}

Bytes Variables::restore(const Original& original) {
  if (original.what == Original::kConstant) return original.message();
  if (original.what == Original::kSparse) {
    sparse_.emplace_back(original.number, original.message());
  } else {
    keep(original.number, original, original.nameInFile());
  }
  if (const uint32_t* number = inputOf(original)) {
    inputs_.emplace_back(*number, original.graph->inputs[*number]);
  }
  return Bytes();
}

/// Adds a variable that is not a constant of the file.
void Variables::addUntied(std::size_t position, const Original* original, bool given) {
  const Node& node = draft_.node(position);
  const Bytes name = names_.of[names_.firsts[position]];
  const bool is_input = original != nullptr && original->what == Original::kInput;
  const StatedType* fed = is_main_ ? host_.fed(node.name) : nullptr;
  if (fed != nullptr && !is_input) {
    inputs_.emplace_back(kNew + position, typed(name, *fed));
  } else if (given) {
    const GivenArray array = host_.array(node.name);
    make(kNew + position, node.name, name, array, nullptr);
    new_inputs_.push_back(typed(name, array));
  } else if (is_input) {
    inputs_.emplace_back(original->number,
                         withName(retyped(node, *original), kValueName, name, &arena_));
  } else {
    Bytes described = typed(name, host_.stated(node, std::nullopt));
    const std::vector<Bytes> sizes = statedNames(node);
    if (!sizes.empty()) described = arena_.emplace_back(withOpenSizes(described, "", sizes));
    inputs_.emplace_back(kNew + position, described);
  }
}

/// Returns the description of an input of the file, with the type that a pass states for it.
Bytes Variables::retyped(const Node& node, const Original& original) {
  const Bytes message = original.message();
  const bool has_dtype = attributeOf(node, "__dtype__").data() != nullptr;
  const bool has_shape = attributeOf(node, "__shape__").data() != nullptr;
  if (!is_main_ || !(has_dtype || has_shape)) return message;
  const InputType old = typeOf(bodyOf(message, kValueType));
  if (old.other) {
    throw UnsupportedError("input " + shown(node.name) +
                           " is no tensor, so a pass cannot state __shape__ or __dtype__ for it");
  }
  StatedType made = host_.stated(node, old.code);
  if (!has_shape) made.dims = old.dims;
  const std::vector<Bytes> names = statedNames(node);
  if (made.code == old.code && made.dims == old.dims && names.empty()) return message;
  changes_.add(original, true, false);
  std::string described = valueInfo(node.name, made);
  if (made.dims) described = withOpenSizes(described, message, names);
  const auto keep = [](const Field& field) {
    return field.number != kValueName && field.number != kValueType;
  };
  appendFields(message, keep, &described);
  return arena_.emplace_back(std::move(described));
}

void Variables::keep(uint64_t order, const Original& original, Bytes name) {
  const TensorHead& tensor = original.graph->level.initializers[original.number].tensor;
  WrittenInitializer made;
  made.order = order;
  made.name = name;
  made.message = original.message();
  made.array = original.nameInFile();
  made.original = sameText(tensor.name, name);
  const bool seen = is_main_ && host_.isInFile(made.array);
  Field raw;
  if (tensor.external) {
    if (seen) made.external = External::kUnchanged;
    made.aside = seen;
  } else if (seen && findPayload(original.message(), &raw)) {
    made.aside = true;
    made.data = raw.body;
  }
  if (!made.original) {
    std::string message;
    const bool drops = made.aside && !tensor.external;
    const auto kept = [drops](const Field& field) {
      return field.number != kTensorName && !(drops && field.number == kRawData);
    };
    appendFields(original.message(), kept, &message);
    appendBody(kTensorName, name, &message);
    made.message = arena_.emplace_back(std::move(message));
  }
  initializers_.push_back(made);
}

/// Makes an initializer of a parameter, which may replace that of the file.
void Variables::make(uint64_t order, Bytes variable, Bytes name, const GivenArray& array,
                     const Original* original) {
  const bool dense = original != nullptr && original->what == Original::kInitializer;
  const bool external = dense && readTensorHead(original->message()).external;
  std::string message;
  appendTensorHead(array, name, dense ? original->message() : Bytes(""), external, &message);
  WrittenInitializer made;
  made.order = order;
  made.name = name;
  made.array = variable;
  made.given = true;
  made.aside = external || array.size() >= kInline;
  if (external) {
    made.external = External::kChanged;
  } else if (made.aside) {
    made.data = array.data;
    made.computed = array.computed;
  } else {
    appendElements(kRawData, array, &message);
  }
  made.message = arena_.emplace_back(std::move(message));
  initializers_.push_back(made);
}

/// Makes the node of a constant, with other elements if `array` is not null.
Bytes Variables::makeConstant(const Original& original, Bytes name, const GivenArray* array) {
  const bool same = array == nullptr;
  if (same && name == original.node->name) return original.message();
  std::string made;
  const auto keep = [same](const Field& field) {
    return field.number != kNodeOutput && (same || field.number != kAttribute);
  };
  appendFields(original.message(), keep, &made);
  appendBody(kNodeOutput, name, &made);
  if (!same) {
    std::string tensor;
    for (const int64_t size : array->dims) {
      appendNumber(kDims, static_cast<uint64_t>(size), &tensor);
    }
    appendNumber(kDataType, static_cast<uint64_t>(array->type), &tensor);
    appendElements(kRawData, *array, &tensor);
    std::string value;
    appendBody(kName, "value", &value);
    appendNumber(kType, static_cast<uint64_t>(Kind::kTensor), &value);
    appendBody(kT, tensor, &value);
    appendBody(kAttribute, value, &made);
  }
  return arena_.emplace_back(std::move(made));
}

std::vector<Bytes> Variables::inputs(bool with_new) {
  sortByOrder(&inputs_);
  std::vector<Bytes> found = secondsOf(inputs_);
  if (with_new) found.insert(found.end(), new_inputs_.begin(), new_inputs_.end());
  return found;
}

std::vector<WrittenInitializer> Variables::initializers() {
  const auto before = [](const auto& left, const auto& right) { return left.order < right.order; };
  if (!std::is_sorted(initializers_.begin(), initializers_.end(), before)) {
    std::stable_sort(initializers_.begin(), initializers_.end(), before);
  }
  return std::move(initializers_);
}

std::vector<Bytes> Variables::sparse() {
  sortByOrder(&sparse_);
  return secondsOf(sparse_);
}

}  // namespace passlib::onnx
