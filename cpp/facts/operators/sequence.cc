// Sequences, optional values and maps.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

bool isWrapped(const Fact& fact, Wrapper wrapper) {
  return !fact.wrappers.empty() && fact.wrappers.front() == wrapper;
}

/// The facts that two elements of a sequence share.
Fact joinElements(const Fact& left, const Fact& right) {
  Fact made;
  made.type = left.type != kUnknownType ? left.type : right.type;
  made.wrappers = left.wrappers;
  if (left.shape && right.shape && left.rank() == right.rank()) {
    Shape shape;
    for (std::size_t i = 0; i < left.rank(); ++i) {
      const Dim& one = (*left.shape)[i];
      shape.push_back(one == (*right.shape)[i] ? one : Dim());
    }
    made.shape = std::move(shape);
  }
  return made;
}

Fact elementOf(const Fact& sequence) {
  Fact made = sequence;
  made.constant = false;
  made.content.reset();
  made.least = -1;
  if (!made.wrappers.empty()) made.wrappers.erase(made.wrappers.begin());
  return made;
}

Fact wrapped(Fact fact, Wrapper wrapper) {
  fact.constant = false;
  fact.content.reset();
  fact.least = -1;
  fact.wrappers.insert(fact.wrappers.begin(), wrapper);
  return fact;
}

void makeSequence(NodeView& node) {
  require(node.count() > 0);
  Fact element = node.in(0);
  for (std::size_t i = 1; i < node.count(); ++i) element = joinElements(element, node.in(i));
  node.out(0) = wrapped(std::move(element), Wrapper::kSequence);
}

void emptySequence(NodeView& node) {
  node.out(0) =
      wrapped(Fact::tensor(static_cast<Type>(node.integer("dtype", 1))), Wrapper::kSequence);
}

void sequenceAt(NodeView& node) {
  require(isWrapped(node.in(0), Wrapper::kSequence));
  node.out(0) = elementOf(node.in(0));
}

void sequenceErase(NodeView& node) {
  node.out(0) = node.in(0);
  node.out(0).constant = false;
}

void sequenceInsert(NodeView& node) {
  require(isWrapped(node.in(0), Wrapper::kSequence));
  node.out(0) = wrapped(joinElements(elementOf(node.in(0)), node.in(1)), Wrapper::kSequence);
}

void sequenceLength(NodeView& node) {
  node.set(0, kInt64, Shape());
  node.out(0).least = 0;
}

void concatSequence(NodeView& node) {
  require(isWrapped(node.in(0), Wrapper::kSequence));
  node.set(0, node.in(0).type);
  if (!node.in(0).shape) return;
  Shape made = *node.in(0).shape;
  if (node.integer("new_axis", 0) != 0) {
    const std::size_t axis = axisOf(node.integer("axis", 0), made.size() + 1);
    made.insert(made.begin() + static_cast<std::ptrdiff_t>(axis), Dim());
  } else {
    made[axisOf(node.integer("axis", 0), made.size())] = Dim();
  }
  node.setShape(0, std::move(made));
}

void splitSequence(NodeView& node) {
  Fact element = Fact::tensor(node.in(0).type);
  if (node.in(0).shape) {
    Shape made = *node.in(0).shape;
    const std::size_t axis = axisOf(node.integer("axis", 0), made.size());
    const Dim size = made[axis];
    if (!node.has(1)) {
      made[axis] = 1;
      if (node.integer("keepdims", 1) == 0)
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(axis));
    } else {
      made[axis] = Dim();
      const auto parts = node.integersOf(1);
      if (parts && node.rankOf(1) == 0) {
        if (parts->front() > 0 && size.isNumber() && size.number() % parts->front() == 0) {
          made[axis] = parts->front();
        }
      } else if (parts && !parts->empty() &&
                 std::all_of(parts->begin(), parts->end(),
                             [&](int64_t part) { return part == parts->front(); })) {
        made[axis] = parts->front();
      }
    }
    element.shape = std::move(made);
  }
  node.out(0) = wrapped(std::move(element), Wrapper::kSequence);
}

void optional(NodeView& node) {
  if (node.has(0)) {
    node.out(0) = wrapped(node.in(0), Wrapper::kOptional);
    return;
  }
  // {"tensorType": {"elemType": 1, "shape": ...}}
  const std::string_view text = node.text("type");
  const bool sequence = text.substr(0, 15) == "{\"sequenceType\"";
  const std::size_t at = text.find("\"tensorType\": {\"elemType\": ");
  if (at == std::string_view::npos) return;
  int64_t code = 0;
  for (std::size_t i = at + 27; i < text.size() && text[i] >= '0' && text[i] <= '9' && code < 1000;
       ++i) {
    code = code * 10 + (text[i] - '0');
  }
  Fact made = Fact::tensor(static_cast<Type>(code));
  if (sequence) made = wrapped(std::move(made), Wrapper::kSequence);
  node.out(0) = wrapped(std::move(made), Wrapper::kOptional);
}

void optionalElement(NodeView& node) {
  node.out(0) = isWrapped(node.in(0), Wrapper::kOptional) ? elementOf(node.in(0)) : node.in(0);
}

void optionalHas(NodeView& node) { node.set(0, kBool, Shape()); }

}  // namespace

std::vector<Entry> families::sequence() {
  return {{"SequenceConstruct", makeSequence},
          {"SequenceEmpty", emptySequence},
          {"SequenceAt", sequenceAt},
          {"SequenceErase", sequenceErase},
          {"SequenceInsert", sequenceInsert},
          {"SequenceLength", sequenceLength},
          {"ConcatFromSequence", concatSequence},
          {"SplitToSequence", splitSequence},
          {"Optional", optional},
          {"OptionalGetElement", optionalElement},
          {"OptionalHasElement", optionalHas}};
}

}  // namespace passlib::facts
