/// Returns the family of a model: "mxnet", "onnx", "nnvm", "ark", "dlprim" or that of another
/// package. "mxnet" if the host does not say, as MXNet. Threads may call it.
std::string dialectOf(const Graph* graph);

/// Return an attribute as a value, in the spelling of any dialect: "1", "-0.5", "True", "true",
/// "(1, 1)", "[1, 1]"; a single number is a list of one. If the attribute is missing or "None",
/// return `preset`, or throw AttributeError without a preset. Throw AttributeError for other text.
/// Threads may call them.
int64_t intAttr(const Node* node, const char* key);
int64_t intAttr(const Node* node, const char* key, int64_t preset);
std::vector<int64_t> intsAttr(const Node* node, const char* key);
std::vector<int64_t> intsAttr(const Node* node, const char* key,
                              const std::vector<int64_t>& preset);
double realAttr(const Node* node, const char* key);
double realAttr(const Node* node, const char* key, double preset);
bool boolAttr(const Node* node, const char* key);
bool boolAttr(const Node* node, const char* key, bool preset);
/// Return the text of an attribute as it is, "None" included.
std::string textAttr(const Node* node, const char* key);
std::string textAttr(const Node* node, const char* key, const std::string& preset);

/// Set an attribute to a value, in the spelling of the graph's dialect: a list is "(1, 1)" in MXNet
/// and NNVM, "[1, 1]" elsewhere; a boolean is "True" in MXNet and NNVM, "1" in ONNX, "true"
/// elsewhere. Reals are the shortest text that reads back as the same double. Throw
/// std::invalid_argument for a null node.
void setAttr(const Graph* graph, Node* node, const char* key, const std::string& text);
void setAttr(const Graph* graph, Node* node, const char* key, const char* text);
void setAttr(const Graph* graph, Node* node, const char* key, bool value);
void setAttr(const Graph* graph, Node* node, const char* key, int value);
void setAttr(const Graph* graph, Node* node, const char* key, int64_t value);
void setAttr(const Graph* graph, Node* node, const char* key, double value);
void setAttr(const Graph* graph, Node* node, const char* key, const std::vector<int64_t>& values);
void setAttr(const Graph* graph, Node* node, const char* key, const std::vector<double>& values);
