// Products of matrices and attention.
#include <map>

#include "facts/operators/common.h"

namespace passlib::facts {

Shape matrixProduct(const Shape& left, const Shape& right) {
  require(!left.empty() && !right.empty());
  Shape one = left;
  Shape other = right;
  if (left.size() == 1) one.insert(one.begin(), 1);
  if (right.size() == 1) other.emplace_back(1);
  Shape made = broadcast(Shape(one.begin(), one.end() - 2), Shape(other.begin(), other.end() - 2));
  if (left.size() > 1) made.push_back(one[one.size() - 2]);
  if (right.size() > 1) made.push_back(other.back());
  return made;
}

namespace {

void multiplyMatrices(NodeView& node) {
  const bool linear = node.op() == "QLinearMatMul";
  node.set(0, node.op() == "MatMulInteger" ? kInt32 : linear ? node.in(7).type : node.in(0).type);
  node.setShape(0, matrixProduct(node.shape(0), node.shape(linear ? 3 : 1)));
}

void gemm(NodeView& node) {
  node.set(0, node.in(0).type);
  if (node.rankOf(0) != 2 || node.rankOf(1) != 2) {
    require(node.rankOf(0) == 2 || node.rankOf(0) == -1);
    require(node.rankOf(1) == 2 || node.rankOf(1) == -1);
  }
  Shape made(2);
  const bool left = node.integer("transA", 0) != 0;
  const bool right = node.integer("transB", 0) != 0;
  if (node.in(0).shape) made[0] = node.shape(0)[left ? 1 : 0];
  if (node.in(1).shape) made[1] = node.shape(1)[right ? 0 : 1];
  node.setShape(0, std::move(made));
}

void einsum(NodeView& node) {
  node.set(0, node.in(0).type);
  std::string equation;
  for (const char letter : node.text("equation", "")) {
    if (letter != ' ') equation += letter;
  }
  const std::size_t arrow = equation.find("->");
  const std::string terms = equation.substr(0, arrow);
  std::map<char, Dim> sizes;
  std::map<char, int> uses;
  Shape ellipsis;
  std::size_t input = 0;
  std::size_t at = 0;
  for (;;) {
    const std::size_t comma = terms.find(',', at);
    const std::string term = terms.substr(at, comma == std::string::npos ? comma : comma - at);
    const Shape& shape = node.shape(input++);
    const std::size_t dots = term.find("...");
    std::size_t letters = term.size() - (dots == std::string::npos ? 0 : 3);
    require(dots == std::string::npos ? letters == shape.size() : letters <= shape.size());
    std::size_t axis = 0;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        Shape own(shape.begin() + static_cast<std::ptrdiff_t>(axis),
                  shape.begin() + static_cast<std::ptrdiff_t>(axis + shape.size() - letters));
        axis += own.size();
        ellipsis = broadcast(ellipsis, own);
        i += 2;
        continue;
      }
      const Dim& size = shape.at(axis++);
      const auto [place, fresh] = sizes.try_emplace(term[i], size);
      if (!fresh) place->second = broadcastDim(place->second, size);
      ++uses[term[i]];
    }
    if (comma == std::string::npos) break;
    at = comma + 1;
  }
  require(input == node.count());
  Shape made;
  if (arrow == std::string::npos) {
    made = ellipsis;
    for (const auto& [letter, count] : uses) {
      if (count == 1) made.push_back(sizes[letter]);
    }
  } else {
    const std::string result = equation.substr(arrow + 2);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result.compare(i, 3, "...") == 0) {
        made.insert(made.end(), ellipsis.begin(), ellipsis.end());
        i += 2;
      } else {
        made.push_back(sizes[result[i]]);
      }
    }
  }
  node.setShape(0, std::move(made));
}

void attention(NodeView& node) {
  node.set(0, node.in(0).type);
  node.set(1, node.in(1).type);
  node.set(2, node.in(2).type);
  node.set(3, node.in(0).type);
  const Shape& query = node.shape(0);
  const Shape& key = node.shape(1);
  const Shape& value = node.shape(2);
  require(query.size() == key.size() && key.size() == value.size());
  require(query.size() == 3 || query.size() == 4);
  const std::size_t along = key.size() - 2;
  require(!differ(key[along], value[along]));
  Dim total = key[along];
  Shape past;
  if (node.has(4)) {
    past = node.shape(4);
    total = past.size() == 4 ? total + past[2] : Dim();
  }
  Dim heads = query[1];
  Dim key_heads = key[1];
  Dim key_size = key.back();
  Dim value_size = value.back();
  if (query.size() == 3) {
    heads = node.integer("q_num_heads", 0);
    key_heads = node.integer("kv_num_heads", 0);
    require(atLeast(heads, 1) && atLeast(key_heads, 1));
    key_size = wholeQuotient(key.back(), key_heads);
    value_size = wholeQuotient(value.back(), key_heads);
    node.setShape(0, {query[0], query[1], value_size * heads});
  } else {
    node.setShape(0, {query[0], query[1], query[2], value.back()});
  }
  node.setShape(1, {query[0], key_heads, total, key_size});
  node.setShape(2, {query[0], key_heads, total, value_size});
  node.setShape(3, {query[0], heads, query[query.size() - 2], total});
}

void linearAttention(NodeView& node) {
  node.set(0, node.in(0).type);
  node.set(1, node.has(3) ? node.in(3).type : node.in(0).type);
  const Shape& query = node.shape(0, 3);
  const Shape& key = node.shape(1, 3);
  const Shape& value = node.shape(2, 3);
  const Dim heads = node.integer("q_num_heads", 0);
  const Dim key_heads = node.integer("kv_num_heads", 0);
  require(atLeast(heads, 1) && atLeast(key_heads, 1));
  const Dim width = wholeQuotient(value[2], key_heads);
  node.setShape(0, {query[0], query[1], width * heads});
  if (node.in(3).shape) {
    node.out(1).shape = node.in(3).shape;
  } else {
    node.setShape(1, {query[0], key_heads, wholeQuotient(key[2], key_heads), width});
  }
}

void rotate(NodeView& node) { likeInput(node); }

}  // namespace

std::vector<Entry> families::contractions() {
  return {{"MatMul", multiplyMatrices},
          {"MatMulInteger", multiplyMatrices},
          {"QLinearMatMul", multiplyMatrices},
          {"Gemm", gemm},
          {"Einsum", einsum},
          {"Attention", attention},
          {"LinearAttention", linearAttention},
          {"RotaryEmbedding", rotate}};
}

}  // namespace passlib::facts
