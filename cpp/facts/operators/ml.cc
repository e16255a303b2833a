// ai.onnx.ml: classical learning.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void sameFloats(NodeView& node) {
  node.set(0, kFloat);
  node.out(0).shape = node.in(0).shape;
}

void sameElements(NodeView& node) { likeInput(node); }

void extract(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  require(!shape.empty());
  Shape made = shape;
  if (shape.size() == 1) made.insert(made.begin(), 1);
  made.back() = Dim();
  if (node.in(1).shape && !node.shape(1).empty()) {  // as ONNX Runtime: all indices, of any rank
    made.back() = Dim(1);
    for (const Dim& size : node.shape(1)) made.back() = made.back() * size;
  }
  node.setShape(0, std::move(made));
}

void castMap(NodeView& node) {
  const std::string_view to = node.text("cast_to", "TO_FLOAT");
  node.set(0, to == "TO_STRING" ? kString : to == "TO_INT64" ? kInt64 : kFloat);
}

void mapCategories(NodeView& node) {
  node.set(0, node.in(0).type == kString  ? kInt64
              : node.in(0).type == kInt64 ? kString
                                          : kUnknownType);
  node.out(0).shape = node.in(0).shape;
}

void vectorizeMap(NodeView& node) {
  if (!node.in(0).wrappers.empty()) node.set(0, node.in(0).type);
}

void vectorizeFeatures(NodeView& node) { node.set(0, kFloat); }

void encodeLabels(NodeView& node) {
  node.out(0).shape = node.in(0).shape;
  if (node.opset() < 2) {
    node.set(0, node.in(0).type == kString  ? kInt64
                : node.in(0).type == kInt64 ? kString
                                            : kUnknownType);
    return;
  }
  if (node.hasAttribute("values_strings")) {
    node.set(0, kString);
  } else if (node.hasAttribute("values_int64s")) {
    node.set(0, kInt64);
  } else if (node.hasAttribute("values_floats")) {
    node.set(0, kFloat);
  } else if (const auto values = node.tensor("values_tensor")) {
    node.set(0, values->type);
  }
}

/// The number of labels of a classifier, and their type.
Dim classesOf(NodeView& node, std::string_view strings, std::string_view integers) {
  if (node.hasAttribute(strings)) {
    node.set(0, kString);
    const auto count = node.countStrings(strings);
    return count ? Dim(static_cast<int64_t>(*count)) : Dim();
  }
  node.set(0, kInt64);
  std::vector<int64_t> found;
  const std::string_view text = node.text(integers);
  if (text.data() == nullptr || !parseIntegers(text, &found)) return {};
  return static_cast<int64_t>(found.size());
}

void classify(NodeView& node, std::string_view strings, std::string_view integers) {
  node.set(1, kFloat);
  const Dim classes = classesOf(node, strings, integers);
  const Shape& shape = node.shape(0);
  require(shape.size() == 1 || shape.size() == 2);
  const Dim batch = shape.size() == 1 ? Dim(1) : shape[0];
  node.setShape(0, {batch});
  node.setShape(1, {batch, classes});
}

void classifyLinear(NodeView& node) {
  classify(node, "classlabels_strings", "classlabels_ints");
  if (node.out(1).shape) (*node.out(1).shape)[1] = Dim();
  std::vector<double> coefficients;
  const Dim classes = classesOf(node, "classlabels_strings", "classlabels_ints");
  if (classes.isNumber() && classes.number() > 2) (*node.out(1).shape)[1] = classes;
}

void classifyVectors(NodeView& node) {
  node.set(1, kFloat);
  classesOf(node, "classlabels_strings", "classlabels_ints");
}

void classifyTrees(NodeView& node) { classify(node, "classlabels_strings", "classlabels_int64s"); }

void regress(NodeView& node) {
  node.set(0, kFloat);
  const Shape& shape = node.shape(0);
  require(shape.size() == 1 || shape.size() == 2);
  const std::string_view key = node.op() == "LinearRegressor" ? "targets" : "n_targets";
  Dim targets;
  if (key == "targets" || node.hasAttribute(key)) targets = node.integer(key, 1);
  node.setShape(0, {shape.size() == 1 ? Dim(1) : shape[0], targets});
}

void treeEnsemble(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  require(shape.size() == 2);
  node.setShape(
      0, {shape[0], node.hasAttribute("n_targets") ? Dim(node.integer("n_targets", 1)) : Dim()});
}

void regressVectors(NodeView& node) { node.set(0, kFloat); }

void encodeCategories(NodeView& node) {
  node.set(0, kFloat);
  Shape made = node.shape(0);
  Dim count;
  std::vector<int64_t> integers;
  const std::string_view text = node.text("cats_int64s");
  if (text.data() != nullptr && parseIntegers(text, &integers)) {
    count = static_cast<int64_t>(integers.size());
  } else if (const auto strings = node.countStrings("cats_strings")) {
    count = static_cast<int64_t>(*strings);
  }
  made.push_back(count);
  node.setShape(0, std::move(made));
}

void zipMap(NodeView& node) {
  Fact& made = node.out(0);
  made.type = kFloat;
  made.key = node.hasAttribute("classlabels_strings") ? kString : kInt64;
  made.wrappers = {Wrapper::kSequence, Wrapper::kMap};
}

}  // namespace

std::vector<Entry> families::ml() {
  return {{"ArrayFeatureExtractor", extract},
          {"Binarizer", sameElements},
          {"CastMap", castMap},
          {"CategoryMapper", mapCategories},
          {"DictVectorizer", vectorizeMap},
          {"FeatureVectorizer", vectorizeFeatures},
          {"Imputer", sameElements},
          {"LabelEncoder", encodeLabels},
          {"LinearClassifier", classifyLinear},
          {"LinearRegressor", regress},
          {"Normalizer", sameFloats},
          {"OneHotEncoder", encodeCategories},
          {"SVMClassifier", classifyVectors},
          {"SVMRegressor", regressVectors},
          {"Scaler", sameFloats},
          {"TreeEnsemble", treeEnsemble},
          {"TreeEnsembleClassifier", classifyTrees},
          {"TreeEnsembleRegressor", regress},
          {"ZipMap", zipMap}};
}

}  // namespace passlib::facts
