#include "onnx/types/settled.h"

#include <algorithm>
#include <iterator>

#include "onnx/reading/level_values.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

/// Elements of arrays with this many axes or more never determine a shape: shapes are vectors.
constexpr int kMatrix = 2;

/// Operators whose last input, the third, does not affect the type of the output.
constexpr Bytes kWithBias[] = {"Conv", "ConvTranspose", "Gemm"};
constexpr std::size_t kBias = 2;

/// More operators whose output type depends on the types of the inputs only, not on elements.
constexpr Bytes kWeighted[] = {"Add", "BatchNormalization", "Div", "MatMul", "Mul", "PRelu", "Sub"};

template <std::size_t Count>
bool isAmong(const Bytes (&list)[Count], Bytes op) {
  return std::find(std::begin(list), std::end(list), op) != std::end(list);
}

/// Returns the only value of a field of bytes; null if it has none or several, which are merged.
Bytes onlyBody(Bytes message, uint32_t number) {
  Bytes found;
  int count = 0;
  forEachBody(message, number, [&](Bytes body) {
    found = body;
    ++count;
  });
  return count == 1 ? found : Bytes();
}

bool isKnownSize(Bytes dim) {
  bool known = false;
  Field field;
  for (Fields fields(dim); fields.next(&field);) {
    if (field.number == numbers::kDimValue && field.type == kVarint) {
      known = static_cast<int64_t>(field.value) > 0;
    } else if (field.number == numbers::kDimParam && field.type == kBytes) {
      known = !field.body.empty();
    }
  }
  return known;
}

/// Whether a type is that of a tensor with at least two axes, all of known sizes.
bool isMatrix(Bytes type) {
  const Bytes tensor = onlyBody(type, numbers::kTensorType);
  const Bytes shape = tensor.data() == nullptr ? tensor : onlyBody(tensor, numbers::kShape);
  if (shape.data() == nullptr) return false;
  int axes = 0;
  bool known = true;
  forEachBody(shape, numbers::kDim, [&](Bytes dim) {
    ++axes;
    known = known && isKnownSize(dim);
  });
  return known && axes >= kMatrix;
}

}  // namespace

bool takesBias(Bytes op, Bytes domain) {
  return plainDomain(domain).empty() && isAmong(kWithBias, op);
}

bool usesElements(Bytes op, Bytes domain) {
  return !plainDomain(domain).empty() || !(isAmong(kWithBias, op) || isAmong(kWeighted, op));
}

void Settled::addVariable(std::size_t position, const Changes& changes) {
  const Original* claim = draft_.claim(position);
  const std::size_t place = names_.firsts[position];
  if (draft_.isAbsent(position)) {
    origins_[place] = "";
  } else if (draft_.isOuter(position)) {
    const Node& node = draft_.node(position);
    const Bytes outer = attributeOf(node, keys::kOuter);
    std::size_t slot = 0;
    const std::vector<Bytes>& origins = draft_.around.origins;
    if (parsePosition(outer, &slot) && slot < origins.size() && origins[slot] == node.name &&
        origins[slot].data() != nullptr) {
      origins_[place] = node.name;
    }
  } else if (claim != nullptr && !changes.isRetyped(*claim)) {
    origins_[place] = claim->nameInFile();
    other_[place] = claim->isTensor() && changes.isChanged(*claim) && changes.mayShape(*claim);
  }
}

void Settled::addOperator(std::size_t position, bool same_attributes) {
  const Original* original = draft_.original(position);
  // A changed nested graph may return other values.
  if (original == nullptr || !same_attributes || !takesTheSame(position)) return;
  const bool passed_on =
      std::any_of(draft_.begin(position), draft_.end(position),
                  [&](const Value& value) { return bool(other_[names_.place(value)]); });
  const Range& outputs = original->record().outputs;
  for (uint32_t i = 0; i < outputs.count; ++i) {
    const Bytes name = original->name(outputs, i);
    origins_[names_.firsts[position] + i] = name;
    // It may determine a shape later.
    if (passed_on && described().find(name) == nullptr) {
      other_[names_.firsts[position] + i] = true;
    }
  }
}

bool Settled::takesTheSame(std::size_t position) const {
  const Node& node = draft_.node(position);
  const Original& original = *draft_.original(position);
  const Range& formal = original.record().inputs;
  const Value* const first = draft_.begin(position);
  auto count = static_cast<std::size_t>(draft_.end(position) - first);
  const bool with_bias = takesBias(node.op, original.record().domain);
  if (with_bias && count == kBias + 1 && formal.count == kBias) --count;
  if (!node.subgraphs.empty()) {
    if (count < formal.count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes origin = this->origin(first[i]);
      if (origin.data() == nullptr) return false;
      if (i < formal.count && !sameText(origin, original.name(formal, static_cast<uint32_t>(i)))) {
        return false;
      }
    }
    return true;
  }
  if (count != formal.count) return false;
  const bool by_elements = usesElements(node.op, original.record().domain);
  for (uint32_t i = 0; i < count; ++i) {
    if (!standsFor(first[i], original.name(formal, i), by_elements)) return false;
  }
  return true;
}

bool Settled::standsFor(Value value, Bytes name, bool by_elements) const {
  const std::size_t place = names_.place(value);
  const Bytes origin = origins_[place];
  if (origin.data() == nullptr) return false;
  if (sameText(origin, name)) return !by_elements || !other_[place];
  const Bytes* kind = described().find(origin);
  const Bytes* other = described().find(name);
  if (kind != nullptr && other != nullptr) return *kind == *other;
  const Bytes* const source = weighted().find(origin);
  const Bytes* const expected = weighted().find(name);
  return source != nullptr && expected != nullptr && sameText(*source, *expected);
}

const NameMap<Bytes>& Settled::weighted() const {
  if (weighted_) return *weighted_;
  weighted_.emplace();
  const auto& names = draft_.file.level.names;
  for (const NodeRecord& node : draft_.file.level.nodes) {
    if (node.outputs.count == 0 || node.inputs.count == 0) continue;
    const Bytes output = names[node.outputs.first];
    if (takesBias(node.op, node.domain)) {
      *weighted_->insert(output, output).first = output;
    } else if (node.op == "BatchNormalization" && plainDomain(node.domain).empty()) {
      const Bytes* const source = weighted_->find(names[node.inputs.first]);
      if (source != nullptr) {
        const Bytes known = *source;
        *weighted_->insert(output, known).first = known;
      }
    }
  }
  return *weighted_;
}

const NameMap<Bytes>& Settled::described() const {
  if (!described_) {
    described_.emplace(draft_.file.values.size());
    for (const auto* list : {&draft_.file.values, &draft_.file.inputs, &draft_.file.outputs}) {
      for (const Bytes value : *list) {
        const Bytes type = onlyBody(value, numbers::kValueType);
        if (type.data() == nullptr || !isMatrix(type)) continue;
        *described_->insert(bodyOf(value, numbers::kValueName), type).first = type;
      }
    }
  }
  return *described_;
}

}  // namespace passlib::onnx
