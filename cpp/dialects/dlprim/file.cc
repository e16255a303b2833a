#include "dialects/dlprim/file.h"

#include <cstdint>
#include <string>
#include <utility>

#include "dialects/index.h"
#include "dialects/plain_json.h"
#include "graph/text_table.h"

namespace passlib::dlprim {
namespace {

constexpr const char* kVariable = "null";

enum FileKey { kInputs, kOperators, kOutputs };
enum InputKey { kInputName, kShape, kElementType };
enum OperatorKey { kName, kType, kInputNames, kOutputNames, kParams, kOptions, kFrozen };

/// A name of memory. What it was last written under is the node that has the content.
struct Tensor {
  Spec spec;
  std::size_t memory;
  std::size_t value;    ///< the node that returns the content under this name
  std::size_t written;  ///< the last node that had written to the memory when `value` was set
};

/// An operator as it stands in the file.
struct Operator {
  std::string_view name;
  std::string_view type;
  std::string_view options = "{}";
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> params;
  bool is_frozen = false;

  void clear() {
    inputs.clear();
    outputs.clear();
    params.clear();
    options = "{}";
    is_frozen = false;
  }
};

class Reader {
 public:
  Reader(std::string_view text, const Schema& schema, const Notes& notes, std::size_t max_depth)
      : json_(text, max_depth, true), schema_(schema), notes_(notes) {}

  File read() {
    SeenKeys seen;
    json_.object([&](std::string_view key) {
      if (key == "inputs") {
        seen.add(kInputs);
        json_.list([this] { readInput(); });
      } else if (key == "operators") {
        require(seen.has(kInputs));
        seen.add(kOperators);
        json_.list([this] { readOperator(); });
      } else {
        require(key == "outputs");
        seen.add(kOutputs);
        json_.list([this] { file_.outputs.emplace_back(json_.text()); });
      }
    });
    json_.finish();
    require(seen.has(kInputs) && seen.has(kOperators) && seen.has(kOutputs));
    for (const std::string& name : file_.inputs) {
      require(parameter_places_.find(name) == NameIndex::kNone);
    }
    connectHeads();
    return std::move(file_);
  }

 private:
  void readInput() {
    std::string_view name;
    std::string_view dtype = "float";
    std::vector<int64_t> shape;
    SeenKeys seen;
    json_.object([&](std::string_view key) {
      if (key == "name") {
        seen.add(kInputName);
        name = json_.keptText();
      } else if (key == "dtype") {
        seen.add(kElementType);
        dtype = json_.keptText();
      } else {
        require(key == "shape");
        seen.add(kShape);
        json_.list([&] { shape.push_back(json_.integer(1, INT32_MAX)); });
      }
    });
    require(seen.has(kInputName) && seen.has(kShape));
    std::optional<Input> input = schema_.input(dtype, shape);
    require(input.has_value());
    input->attributes.emplace_back(notes_.place,
                                   "inputs[" + std::to_string(file_.inputs.size()) + "]");
    const std::size_t node = addNode(name, kVariable, &input->attributes);
    require(place(name) == NameIndex::kNone);
    tensors_.push_back(newTensor(input->spec, node));
    file_.inputs.emplace_back(name);
  }

  void readOperator() {
    Operator& made = made_;
    made.clear();
    SeenKeys seen;
    json_.object([&](std::string_view key) {
      if (key == "name") {
        seen.add(kName);
        made.name = json_.keptText();
      } else if (key == "type") {
        seen.add(kType);
        made.type = json_.keptText();
      } else if (key == "inputs") {
        seen.add(kInputNames);
        readNames(&made.inputs);
      } else if (key == "outputs") {
        seen.add(kOutputNames);
        readNames(&made.outputs);
      } else if (key == "params") {
        seen.add(kParams);
        readNames(&made.params);
      } else if (key == "options") {
        seen.add(kOptions);
        require(json_.peek() == '{');
        made.options = json_.valueText();
      } else {
        require(key == "frozen");
        seen.add(kFrozen);
        made.is_frozen = json_.boolean();
      }
    });
    require(seen.has(kName) && seen.has(kType) && made.outputs.size() == 1);
    require(operators_.add(made.name, 0) == NameIndex::kNone);
    add(made);
    ++operator_count_;
  }

  void readNames(std::vector<std::string_view>* names) {
    json_.list([&] { names->push_back(json_.keptText()); });
  }

  void add(const Operator& made) {
    specs_.clear();
    used_.clear();
    for (const std::string_view name : made.inputs) {
      const Tensor& tensor = tensorOf(name);
      specs_.push_back(tensor.spec);
      used_.push_back(tensor.value);
    }
    const Inferred& inferred = infer(made);
    addParameters(made, inferred.parameters);
    attributes_ = inferred.attributes;
    attributes_.emplace_back(notes_.place, "operators[" + std::to_string(operator_count_) + "]");
    attributes_.emplace_back(notes_.tensor, made.outputs[0]);
    if (made.is_frozen) attributes_.emplace_back(notes_.frozen, "true");
    const std::size_t position = addNode(made.name, made.type, &attributes_);
    Node* node = graph_.nodes[position];
    node->inputs.reserve(used_.size());
    for (const std::size_t producer : used_) {
      graph_.nodes[producer]->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.emplace_back(graph_.nodes[producer], 0);
    }
    write(made, inferred, position);
  }

  /// Finds a tensor that is read, whose content must be what was last written under its name.
  const Tensor& tensorOf(std::string_view name) const {
    const int32_t place = tensor_places_.find(name);
    require(place != NameIndex::kNone);
    const Tensor& tensor = tensors_[static_cast<std::size_t>(place)];
    require(tensor.written == latest_[tensor.memory]);
    return tensor;
  }

  const Inferred& infer(const Operator& made) {
    key_.clear();
    appendNumber(made.type.size());
    key_ += made.type;
    appendNumber(specs_.size());
    for (const Spec spec : specs_) appendNumber(static_cast<std::size_t>(spec));
    key_ += made.options;
    const auto known = inferred_.find(key_);
    if (known != inferred_.end()) return known->second;
    std::optional<Inferred> found = schema_.infer(made.type, made.options, specs_);
    require(found.has_value());
    return inferred_.emplace(key_, std::move(*found)).first->second;
  }

  void appendNumber(std::size_t number) {
    key_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }

  void addParameters(const Operator& made, const std::vector<Spec>& specs) {
    require(made.params.size() <= specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      std::string_view name = i < made.params.size() ? made.params[i] : std::string_view();
      std::string automatic;
      if (name.empty() || name == "auto") {
        automatic.append(made.name).append(".").append(std::to_string(i));
        name = automatic;
      }
      used_.push_back(parameter(name, specs[i]));
    }
  }

  /// Returns the node of a parameter, which must be of this type wherever it is used.
  std::size_t parameter(std::string_view name, Spec spec) {
    const int32_t known = parameter_places_.find(name);
    if (known != NameIndex::kNone) {
      const auto& [node, present] = file_.parameters[static_cast<std::size_t>(known)];
      require(present == spec);
      return node;
    }
    parameter_places_.add(json_.keep(name), static_cast<int32_t>(file_.parameters.size()));
    attributes_.clear();
    const std::size_t node = addNode(name, kVariable, &attributes_);
    file_.parameters.emplace_back(node, spec);
    return node;
  }

  void write(const Operator& made, const Inferred& inferred, std::size_t position) {
    const std::string_view name = made.outputs[0];
    const int32_t known = place(name);
    if (known == NameIndex::kNone) {
      tensors_.push_back(inferred.is_alias ? aliasOf(made.inputs[0], inferred.output, position)
                                           : newTensor(inferred.output, position));
      return;
    }
    bool in_place = false;
    for (const std::string_view input : made.inputs) in_place = in_place || input == name;
    Tensor& tensor = tensors_[static_cast<std::size_t>(known)];
    require(in_place && tensor.spec == inferred.output);
    if (inferred.is_alias) {
      tensor = aliasOf(made.inputs[0], inferred.output, position);
    } else {
      latest_[tensor.memory] = tensor.written = tensor.value = position;
    }
  }

  /// The number of a tensor; kNone for a new name, whose tensor must be added.
  int32_t place(std::string_view name) {
    return tensor_places_.add(name, static_cast<int32_t>(tensors_.size()));
  }

  Tensor aliasOf(std::string_view source, Spec spec, std::size_t node) const {
    const std::size_t memory = tensorOf(source).memory;
    return Tensor{spec, memory, node, latest_[memory]};
  }

  Tensor newTensor(Spec spec, std::size_t node) {
    latest_.push_back(node);
    return Tensor{spec, latest_.size() - 1, node, node};
  }

  std::size_t addNode(std::string_view name, std::string_view op, Attributes* attributes) {
    Node* node = graph_.addNode(std::string(name), std::string(op));
    require(node->attrs._pack(attributes->data(), attributes->size()) == nullptr);
    node->_declareOutputs(1);
    if (op == kVariable) graph_.inputs.push_back(node);
    return graph_.nodes.size() - 1;
  }

  void connectHeads() {
    require(!file_.outputs.empty());
    TextViewSet names;
    for (const std::string& name : file_.outputs) {
      require(names.insert(name).second);
      graph_.outputs.emplace_back(graph_.nodes[tensorOf(name).value], 0);
    }
  }

  PlainJson json_;
  const Schema& schema_;
  const Notes& notes_;
  File file_{std::make_unique<Graph>(), {}, {}, {}};
  Graph& graph_ = *file_.graph;
  NameIndex tensor_places_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> latest_;  // the node that last wrote to each memory
  NameIndex operators_;
  std::size_t operator_count_ = 0;
  NameIndex parameter_places_;
  TextMap<Inferred> inferred_;
  // Of one operator, kept for their memory:
  Operator made_;
  std::string key_;
  std::vector<Spec> specs_;
  std::vector<std::size_t> used_;
  Attributes attributes_;
};

}  // namespace

std::optional<File> readPlain(std::string_view text, const Schema& schema, const Notes& notes,
                              std::size_t max_depth) {
  return unlessRefused([&] { return Reader(text, schema, notes, max_depth).read(); });
}

}  // namespace passlib::dlprim
