// Reductions, and operators that search along an axis.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void reduceItems(NodeView& node) {
  const std::vector<Dim>* source = node.items(0);
  if (source == nullptr || node.rankOf(0) != 1 || source->empty()) return;
  if (!fewElements(*node.out(0).shape) || *fewElements(*node.out(0).shape) != 1) return;
  Dim total = source->front();
  const std::string_view op = node.op();
  for (std::size_t i = 1; i < source->size(); ++i) {
    const Dim& item = (*source)[i];
    total = op == "ReduceSum"    ? total + item
            : op == "ReduceProd" ? total * item
            : op == "ReduceMax"  ? maximum(total, item)
            : op == "ReduceMin"  ? minimum(total, item)
                                 : Dim();
  }
  node.setItems(0, {total});
}

void reduce(NodeView& node) {
  node.set(0, node.in(0).type);
  const std::string_view op = node.op();
  if (node.in(0).least >= 0 && op != "ReduceLogSum" && op != "ReduceLogSumExp") {
    node.out(0).least = 0;
  }
  const int64_t keeps_all = node.integer("noop_with_empty_axes", 0);
  require(keeps_all == 0 || keeps_all == 1);
  const Shape& shape = node.shape(0);
  const bool keeps = node.integer("keepdims", 1) == 1;
  std::vector<int64_t> axes;
  if (auto stated = node.integers("axes")) {
    axes = std::move(*stated);
  } else if (node.has(1)) {
    auto found = node.integersOf(1);
    if (!found) {
      require(keeps);
      node.setShape(0, Shape(shape.size()));
      return;
    }
    axes = std::move(*found);
  }
  std::vector<bool> gone(shape.size(), axes.empty() && keeps_all == 0);
  if (!axes.empty()) gone = flagsOf(axes, shape.size());
  Shape made;
  bool changed = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    changed = changed || gone[i];
    if (!gone[i]) {
      made.push_back(shape[i]);
    } else if (keeps) {
      made.emplace_back(1);
    }
  }
  node.setShape(0, std::move(made));
  if (changed) reduceItems(node);
}

void findExtreme(NodeView& node) {
  node.set(0, kInt64);
  node.out(0).least = 0;
  const Shape& shape = node.shape(0);
  const bool keeps = node.integer("keepdims", 1) == 1;
  const std::size_t axis = axisOf(node.integer("axis", 0), shape.size());
  Shape made = shape;
  if (keeps) {
    made[axis] = 1;
  } else {
    made.erase(made.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  node.setShape(0, std::move(made));
}

void runningTotal(NodeView& node) { likeInput(node); }

void largest(NodeView& node) {
  node.set(0, node.in(0).type);
  node.set(1, kInt64);
  const Shape& shape = node.shape(0);
  const std::size_t axis = axisOf(node.integer("axis", -1), shape.size());
  Dim count;
  if (node.opset() < 10) {
    count = node.integer("k", -1);
  } else if (const std::vector<Dim>* found = node.items(1)) {
    if (found->size() == 1) count = found->front();
  }
  if (!atLeast(count, 0)) count = Dim();
  Shape made = shape;
  made[axis] = count;
  node.setShape(0, made);
  node.setShape(1, std::move(made));
}

void determinant(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  require(shape.size() >= 2);
  node.setShape(0, Shape(shape.begin(), shape.end() - 2));
}

void loss(NodeView& node) {
  const bool softmax = node.op() == "SoftmaxCrossEntropyLoss";
  node.set(0, node.in(0).type);
  if (softmax) {
    node.set(1, node.in(0).type);
    node.out(1).shape = node.in(0).shape;
  }
  if (node.text("reduction", "mean") == "none") {
    node.out(0).shape = node.in(1).shape;
  } else {
    node.setShape(0, Shape());
  }
}

}  // namespace

std::vector<Entry> families::reductions() {
  std::vector<Entry> made;
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                         "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    made.push_back({op, reduce});
  }
  const Entry others[] = {{"ArgMax", findExtreme},
                          {"ArgMin", findExtreme},
                          {"CumSum", runningTotal},
                          {"CumProd", runningTotal},
                          {"TopK", largest},
                          {"Det", determinant},
                          {"NegativeLogLikelihoodLoss", loss},
                          {"SoftmaxCrossEntropyLoss", loss}};
  made.insert(made.end(), std::begin(others), std::end(others));
  return made;
}

}  // namespace passlib::facts
