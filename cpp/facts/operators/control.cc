// Operators with nested graphs.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

constexpr int kMostRounds = 8;

/// The facts about a value that is either of two.
Fact either(const Fact& left, const Fact& right) {
  Fact made;
  if (left.type != right.type || left.wrappers != right.wrappers || left.key != right.key) {
    // A branch that leaves its type open.
    if (left.type == kUnknownType && left.wrappers.empty() && !left.shape) {
      made.type = right.type;
      made.wrappers = right.wrappers;
      made.key = right.key;
    } else if (right.type == kUnknownType && right.wrappers.empty() && !right.shape) {
      made.type = left.type;
      made.wrappers = left.wrappers;
      made.key = left.key;
    } else if (left.wrappers == right.wrappers) {
      made.wrappers = left.wrappers;
    }
    return made;
  }
  made.type = left.type;
  made.wrappers = left.wrappers;
  made.key = left.key;
  made.least = std::min(left.least, right.least);
  if (!left.shape || !right.shape || left.rank() != right.rank()) return made;
  Shape shape;
  for (std::size_t i = 0; i < left.rank(); ++i) {
    const Dim& one = (*left.shape)[i];
    shape.push_back(one == (*right.shape)[i] ? one : Dim());
  }
  made.shape = std::move(shape);
  if (left.content != nullptr && right.content != nullptr &&
      left.content->items.size() == right.content->items.size() && left.content->reals.empty() &&
      right.content->reals.empty() && left.content->divisors == right.content->divisors) {
    auto content = std::make_shared<Content>(*left.content);
    for (std::size_t i = 0; i < content->items.size(); ++i) {
      if (content->items[i] != right.content->items[i]) content->items[i] = Dim();
    }
    if (content->divisors.empty()) made.content = std::move(content);
  }
  return made;
}

/// Whether a name belongs to a nested graph of a node: it means something else after it.
void forgetInner(const NodeView& node, Fact* fact) {
  const std::string mark = node.node().name + "/";
  const auto isInner = [&](const Dim& dim) {
    if (!dim.isSymbolic()) return false;
    for (const auto& [names, factor] : dim.terms()) {
      for (const std::string& name : names) {
        if (name.find(mark) != std::string::npos) return true;
      }
    }
    return false;
  };
  if (fact->shape) {
    for (Dim& dim : *fact->shape) {
      if (isInner(dim)) dim = Dim();
    }
  }
  if (fact->content != nullptr &&
      std::any_of(fact->content->items.begin(), fact->content->items.end(), isInner)) {
    auto made = std::make_shared<Content>(*fact->content);
    for (Dim& item : made->items) {
      if (isInner(item)) item = Dim();
    }
    if (made->divisors.empty()) {
      fact->content = std::move(made);
    } else {
      fact->content.reset();
    }
  }
}

void branch(NodeView& node) {
  const Graph* const one = node.body("then_branch");
  const Graph* const other = node.body("else_branch");
  require(one != nullptr && other != nullptr);
  const std::vector<Fact> first = node.inferBody(*one, {});
  const std::vector<Fact> second = node.inferBody(*other, {});
  const auto condition = node.integerOf(0);
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    require(i < first.size() && i < second.size());
    Fact& made = node.out(i);
    made = condition ? (*condition != 0 ? first[i] : second[i]) : either(first[i], second[i]);
    made.constant = false;
    if (!condition) forgetInner(node, &made);
  }
}

/// Finds facts of carried values that hold in every round.
std::vector<Fact> settleCarried(NodeView& node, const Graph& body, std::vector<Fact> formals,
                                std::size_t first, std::size_t count, std::size_t first_result) {
  std::vector<Fact> results;
  std::vector<bool> mixed(count);  // a tensor in one round and a container in another
  for (int round = 0; round < kMostRounds; ++round) {
    const bool last = round == kMostRounds - 1;
    if (last) {
      for (std::size_t i = 0; i < count; ++i) {
        Fact& carried = formals[first + i];
        carried.content.reset();
        carried.least = -1;
        carried.shape.reset();
      }
    }
    results = node.inferBody(body, formals);
    bool settled = true;
    for (std::size_t i = 0; i < count && first_result + i < results.size(); ++i) {
      Fact& carried = formals[first + i];
      Fact result = results[first_result + i];
      forgetInner(node, &result);
      Fact joined = either(carried, result);
      mixed[i] = mixed[i] || (carried.type != kUnknownType && result.type != kUnknownType &&
                              carried.wrappers != result.wrappers);
      if (mixed[i]) {
        joined = Fact();
      } else if (joined.type == kUnknownType && carried.type != kUnknownType) {
        joined.type = carried.type;
      }
      // A size that is open in each round must not have a name that holds for all.
      const auto sameShape = [](const std::optional<Shape>& a, const std::optional<Shape>& b) {
        if (a.has_value() != b.has_value()) return false;
        if (!a) return true;
        if (a->size() != b->size()) return false;
        for (std::size_t k = 0; k < a->size(); ++k) {
          if ((*a)[k] != (*b)[k] && ((*a)[k].isKnown() || (*b)[k].isKnown())) return false;
        }
        return true;
      };
      const auto sameContent = [](const Fact& a, const Fact& b) {
        if (a.content == nullptr || b.content == nullptr) return a.content == b.content;
        if (a.content->items.size() != b.content->items.size()) return false;
        for (std::size_t k = 0; k < a.content->items.size(); ++k) {
          const Dim& x = a.content->items[k];
          const Dim& y = b.content->items[k];
          if (x != y && (x.isKnown() || y.isKnown())) return false;
        }
        return true;
      };
      if (!sameShape(joined.shape, carried.shape) || !sameContent(joined, carried) ||
          joined.least != carried.least || joined.type != carried.type) {
        settled = false;
      }
      joined.constant = false;
      carried = std::move(joined);
    }
    if (settled || last) break;
  }
  // The values after the last round: those before the first, or a result.
  for (std::size_t i = 0; i < count && first_result + i < results.size(); ++i) {
    results[first_result + i] = formals[first + i];
  }
  return results;
}

/// Takes a constant's facts away that hold for one round only.
Fact carriedFact(const Fact& source) {
  Fact made = source;
  made.constant = false;
  return made;
}

void loop(NodeView& node) {
  const Graph* const body = node.body("body");
  require(body != nullptr && node.count() >= 2);
  const std::size_t carried = node.count() - 2;
  std::vector<Fact> formals;
  formals.push_back(Fact::tensor(kInt64, Shape()));
  formals.back().least = 0;
  formals.push_back(Fact::tensor(kBool, Shape()));
  for (std::size_t i = 0; i < carried; ++i) formals.push_back(carriedFact(node.in(i + 2)));
  const std::vector<Fact> results = settleCarried(node, *body, std::move(formals), 2, carried, 1);
  // The number of rounds, if nothing ends the loop earlier.
  Dim rounds;
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    require(i + 1 < results.size());
    Fact made = results[i + 1];
    made.constant = false;
    made.content = i < carried ? made.content : nullptr;
    forgetInner(node, &made);
    if (i >= carried) {
      if (made.shape) made.shape->insert(made.shape->begin(), rounds);
    }
    node.out(i) = std::move(made);
  }
}

void scan(NodeView& node) {
  const Graph* const body = node.body("body");
  require(body != nullptr);
  const bool old = node.opset() < 9;
  const std::size_t offset = old ? 1 : 0;  // sequence lengths come first
  const auto scans =
      static_cast<std::size_t>(std::max<int64_t>(node.integer("num_scan_inputs", 0), 0));
  require(node.count() >= scans + offset);
  const std::size_t states = node.count() - scans - offset;
  const auto input_axes = node.integers("scan_input_axes");
  const auto output_axes = node.integers("scan_output_axes");
  std::vector<Fact> formals;
  Dim batch;
  Dim length;
  for (std::size_t i = 0; i < states; ++i) {
    Fact fact = carriedFact(node.in(offset + i));
    if (old) {
      fact.content.reset();
      if (fact.shape) {
        require(!fact.shape->empty());
        batch = mergeDim(batch, fact.shape->front());
        fact.shape->erase(fact.shape->begin());
      }
    }
    formals.push_back(std::move(fact));
  }
  for (std::size_t i = 0; i < scans; ++i) {
    Fact fact = carriedFact(node.in(offset + states + i));
    fact.content.reset();
    if (fact.shape) {
      if (old) {
        require(fact.shape->size() >= 2);
        batch = mergeDim(batch, (*fact.shape)[0]);
        length = mergeDim(length, (*fact.shape)[1]);
        fact.shape->erase(fact.shape->begin(), fact.shape->begin() + 2);
      } else {
        const int64_t stated = input_axes && i < input_axes->size() ? (*input_axes)[i] : 0;
        const std::size_t axis = axisOf(stated, fact.shape->size());
        length = mergeDim(length, (*fact.shape)[axis]);
        fact.shape->erase(fact.shape->begin() + static_cast<std::ptrdiff_t>(axis));
      }
    }
    formals.push_back(std::move(fact));
  }
  const std::vector<Fact> results = settleCarried(node, *body, std::move(formals), 0, states, 0);
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    require(i < results.size());
    Fact made = results[i];
    made.constant = false;
    forgetInner(node, &made);
    if (i >= states) made.content.reset();
    if (made.shape && old) {
      if (i >= states) made.shape->insert(made.shape->begin(), length);
      made.shape->insert(made.shape->begin(), batch);
      made.content.reset();
    } else if (made.shape && i >= states) {
      const std::size_t k = i - states;
      const int64_t stated = output_axes && k < output_axes->size() ? (*output_axes)[k] : 0;
      const std::size_t axis = axisOf(stated, made.shape->size() + 1);
      made.shape->insert(made.shape->begin() + static_cast<std::ptrdiff_t>(axis), length);
    }
    node.out(i) = std::move(made);
  }
}

void mapSequence(NodeView& node) {
  const Graph* const body = node.body("body");
  require(body != nullptr);
  std::vector<Fact> formals;
  for (std::size_t i = 0; i < node.count(); ++i) {
    Fact fact = carriedFact(node.in(i));
    if (!fact.wrappers.empty() && fact.wrappers.front() == Wrapper::kSequence) {
      fact.wrappers.erase(fact.wrappers.begin());
    }
    formals.push_back(std::move(fact));
  }
  const std::vector<Fact> results = node.inferBody(*body, formals);
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    require(i < results.size());
    Fact made = results[i];
    made.constant = false;
    made.content.reset();
    forgetInner(node, &made);
    made.wrappers.insert(made.wrappers.begin(), Wrapper::kSequence);
    node.out(i) = std::move(made);
  }
}

}  // namespace

std::vector<Entry> families::control() {
  return {{"If", branch}, {"Loop", loop}, {"Scan", scan}, {"SequenceMap", mapSequence}};
}

}  // namespace passlib::facts
