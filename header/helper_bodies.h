// ---- shapes, users, parameters -----------------------------------------------------------------

namespace detail {

/// The entry of an output in __ext_shape__ or __ext_dtype__; "" if there is none.
inline std::string inferredEntry(const NodeEntry& value, const char* key) {
  std::string text;
  if (value.entry < 0 || !AttributeTexts(value.node->attrs).get(key, &text)) return std::string();
  try {
    return listEntry(text, static_cast<unsigned>(value.entry), key);
  } catch (const std::out_of_range&) {
    return std::string();
  }
}

/// Whether an operator of MXNet or NNVM takes the data of a layer at its first input.
inline bool takesDataFirst(const std::string& op) {
  static const char* const ops[] = {"Convolution",
                                    "Convolution_v1",
                                    "Deconvolution",
                                    "FullyConnected",
                                    "BatchNorm",
                                    "BatchNorm_v1",
                                    "LayerNorm",
                                    "GroupNorm",
                                    "InstanceNorm",
                                    "Embedding",
                                    "RNN",
                                    "SoftmaxOutput",
                                    "_contrib_SyncBatchNorm",
                                    "_contrib_BatchNormWithReLU",
                                    "_npx_convolution",
                                    "_npx_deconvolution",
                                    "_npx_fully_connected",
                                    "_npx_batch_norm",
                                    "_npx_layer_norm",
                                    "_npx_group_norm",
                                    "_npx_embedding",
                                    "_npx_rnn",
                                    "conv2d",
                                    "conv2d_transpose",
                                    "dense",
                                    "batch_norm"};
  for (const char* known : ops) {
    if (op == known) return true;
  }
  return false;
}

/// Whether a variable is an input of the model, as far as it or the operators that take it tell.
inline bool isModelInput(const Node& node, const std::string& dialect) {
  if (dialect == "ark") return true;  // its files have no weights
  std::string place;
  const bool placed = AttributeTexts(node.attrs).get("__id__", &place);
  if (dialect == "onnx") {
    return (placed && place.compare(0, 6, "input.") == 0) || node.attrs.count("__default__") != 0;
  }
  if (dialect == "dlprim") return placed && place.compare(0, 7, "inputs[") == 0;
  for (const NodeEntry& use : node.outputs) {
    if (use.entry == 0 && takesDataFirst(use.node->op)) return true;
  }
  return false;
}

}  // namespace detail

inline ValueShape shapeOf(const NodeEntry& value) {
  if (value.node == nullptr) return ValueShape();
  const Node& node = *value.node;
  if (node.tensor != nullptr) return ValueShape(node.tensor->shape);
  std::string text = detail::inferredEntry(value, MX_STR_SHAPE);
  int64_t least = 0;
  if ((text.empty() || text[0] != '[') && node.op == "null") {
    text = textAttr(&node, "__shape__", "");
    least = 1;  // variables have 0 for an unknown extent
  }
  std::vector<std::string> items;
  if (text.empty() || (text[0] != '[' && text[0] != '(') || !detail::readList(text, &items)) {
    return ValueShape();
  }
  std::vector<int64_t> extents(items.size());
  for (std::size_t pos = 0; pos < items.size(); ++pos) {
    if (!detail::readInteger(items[pos], &extents[pos]) || extents[pos] < least) extents[pos] = -1;
  }
  return ValueShape(extents);
}

inline MXDType typeOf(const NodeEntry& value) {
  if (value.node == nullptr) return kUNSET;
  if (value.node->tensor != nullptr) return value.node->tensor->dtype;
  int64_t code = -1;
  std::string text = detail::inferredEntry(value, MX_STR_DTYPE);
  if (text.empty() && value.node->op == "null") text = textAttr(value.node, "__dtype__", "");
  const bool known = detail::readInteger(text, &code) && code >= kFloat32 && code <= kBfloat16;
  return known ? static_cast<MXDType>(code) : kUNSET;
}

inline bool isOutput(const Graph* graph, const NodeEntry& value) {
  for (const NodeEntry& head : graph->outputs) {
    if (head.node == value.node && head.entry == value.entry) return true;
  }
  return false;
}

inline bool isOutput(const Graph* graph, const Node* node) {
  for (const NodeEntry& head : graph->outputs) {
    if (head.node == node) return true;
  }
  return false;
}

inline std::vector<NodeEntry> users(const NodeEntry& value) {
  std::vector<NodeEntry> uses;
  if (value.node == nullptr) return uses;
  for (const NodeEntry& use : value.node->outputs) {
    const NodeEntry& input = use.node->inputs.at(static_cast<std::size_t>(use.entry));
    if (input.entry == value.entry) uses.push_back(use);
  }
  return uses;
}

inline Node* onlyUser(const Graph* graph, const NodeEntry& value) {
  const std::vector<NodeEntry> uses = users(value);
  return uses.size() == 1 && !isOutput(graph, value) ? uses[0].node : nullptr;
}

inline bool isParameter(const Node* node) {
  if (node == nullptr || node->op != "null") return false;
  const PassResource* const resource = detail::RunningPass::resource();
  const Graph* const graph = resource == nullptr ? nullptr : resource->_graph();
  std::string dialect;  // unknown in MXNet, and outside a pass
  if (graph != nullptr) detail::GraphAttributeTexts::getString(graph->attrs, "dialect", &dialect);
  if (detail::isModelInput(*node, dialect)) return false;
  if (dialect == "onnx" && (node->name == "__absent__" || node->attrs.count("__opaque__") != 0)) {
    return true;
  }
  if (dialect == "dlprim" && node->attrs.count("__shape__") == 0) return true;
  return node->tensor != nullptr || (resource != nullptr && resource->_isUnlent(node));
}

inline Node* addParameter(Graph* graph, const std::string& name, const std::vector<int64_t>& shape,
                          MXDType type, const MXContext& ctx) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr) {
    throw std::runtime_error("addParameter of " + detail::quoted(name) +
                             ": parameters can be added only while a pass runs");
  }
  const std::string free = resource->_freeName(*graph, name);
  MXTensor* tensor = resource->alloc_arg(free, shape, ctx, type);
  Node* node = graph->addNode(free, "null");
  detail::declareOutputs(node, 1);
  node->tensor = tensor;
  graph->inputs.push_back(node);
  return node;
}
