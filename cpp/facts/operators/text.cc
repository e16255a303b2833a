// Operators on strings, and a few others of the language models' family.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void joinStrings(NodeView& node) {
  node.set(0, kString);
  node.setShape(0, broadcast(node.shape(0), node.shape(1)));
}

void splitStrings(NodeView& node) {
  node.set(0, kString);
  node.set(1, kInt64);
  node.out(1).shape = node.in(0).shape;
  Shape made = node.shape(0);
  made.emplace_back();
  node.setShape(0, std::move(made));
}

void normalizeStrings(NodeView& node) {
  node.set(0, kString);
  const Shape& shape = node.shape(0);
  require(shape.size() == 1 || shape.size() == 2);
  Shape made(shape.size());
  if (shape.size() == 2) made[0] = 1;
  node.setShape(0, std::move(made));
}

void matchStrings(NodeView& node) {
  node.set(0, kBool);
  node.out(0).shape = node.in(0).shape;
}

void countTerms(NodeView& node) {
  node.set(0, kFloat);
  const Shape& shape = node.shape(0);
  require(shape.size() == 1 || shape.size() == 2);
  Dim size;
  const std::string_view text = node.text("ngram_indexes");
  std::vector<int64_t> indexes;
  if (text.data() != nullptr && parseIntegers(text, &indexes) && !indexes.empty()) {
    size = Dim(*std::max_element(indexes.begin(), indexes.end())) + 1;
  }
  node.setShape(0, shape.size() == 1 ? Shape{size} : Shape{shape[0], size});
}

void gatedActivation(NodeView& node) {
  likeInput(node);
  if (!node.in(0).shape) node.out(0).shape = node.in(1).shape;
}

}  // namespace

std::vector<Entry> families::text() {
  return {{"StringConcat", joinStrings},          {"StringSplit", splitStrings},
          {"StringNormalizer", normalizeStrings}, {"RegexFullMatch", matchStrings},
          {"TfIdfVectorizer", countTerms},        {"SwiGLU", gatedActivation}};
}

}  // namespace passlib::facts
