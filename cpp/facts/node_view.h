// A node as a rule sees it: facts of its inputs, attributes, and its outputs to be filled in.
#ifndef PASSLIB_FACTS_NODE_VIEW_H_
#define PASSLIB_FACTS_NODE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/fact.h"
#include "graph/graph.h"

namespace passlib::facts {

/// Thrown by a rule that meets a node which cannot run, or an attribute that is not readable.
/// Shapes and contents of the outputs are unknown then.
struct Unknowable {};

/// The questions of a node view about the graphs around its node.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  /// Returns the text of an attribute; a null view if the node has none.
  virtual std::string_view attribute(const Node& node, std::string_view key) = 0;
  /// Returns facts of the outputs of a nested graph whose own inputs have these facts.
  virtual std::vector<Fact> inferBody(const Graph& graph, const std::vector<Fact>& formals) = 0;
  /// The version of ONNX's operator set, or of that of another domain.
  virtual int64_t opset(std::string_view domain) = 0;
  /// Notes a dimension for which 0 makes the model fail.
  virtual void need(const Dim& dim) = 0;
  /// Whether a dimension is at least 1 wherever the model runs.
  virtual bool isPositive(const Dim& dim) const = 0;
};

class NodeView {
 public:
  NodeView(const Node& node, std::string_view domain, std::vector<const Fact*> inputs,
           std::vector<Fact>* outputs, Surroundings* around)
      : node_(node),
        domain_(domain),
        inputs_(std::move(inputs)),
        outputs_(*outputs),
        around_(*around),
        opset_(around->opset(domain)) {}

  const Node& node() const { return node_; }
  std::string_view op() const { return node_.op; }
  /// The version of the operator set of the node's domain.
  int64_t opset() const { return opset_; }
  /// For operators of another domain that mean the same.
  void setOpset(int64_t version) { opset_ = version; }

  // Inputs. One that is omitted has an empty fact.

  std::size_t count() const { return inputs_.size(); }
  bool has(std::size_t number) const { return number < inputs_.size() && inputs_[number]->present; }
  const Fact& in(std::size_t number) const {
    return number < inputs_.size() ? *inputs_[number] : absent();
  }
  /// The shape of an input; throws Unknowable if its rank is unknown.
  const Shape& shape(std::size_t number) const;
  /// The same; throws also unless it has this rank.
  const Shape& shape(std::size_t number, std::size_t rank) const;
  /// The rank of an input; -1 if it is unknown.
  std::ptrdiff_t rankOf(std::size_t number) const {
    return in(number).shape ? static_cast<std::ptrdiff_t>(in(number).rank()) : -1;
  }
  /// Elements of an integer tensor, one by one possibly unknown; null if the tensor is not
  /// followed.
  const std::vector<Dim>* items(std::size_t number) const;
  /// The elements of an input that are all numbers.
  std::optional<std::vector<int64_t>> integersOf(std::size_t number) const;
  std::optional<int64_t> integerOf(std::size_t number) const;
  std::optional<std::vector<double>> realsOf(std::size_t number) const;

  // Attributes. A malformed one throws Unknowable.

  bool hasAttribute(std::string_view key) const { return text(key).data() != nullptr; }
  /// A null view if there is none.
  std::string_view text(std::string_view key) const { return around_.attribute(node_, key); }
  std::string_view text(std::string_view key, std::string_view preset) const;
  int64_t integer(std::string_view key, int64_t preset) const;
  std::optional<int64_t> integer(std::string_view key) const;
  double real(std::string_view key, double preset) const;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<double>> reals(std::string_view key) const;
  /// The number of strings in a list; nothing if there is none, or it is too long to be seen.
  std::optional<std::size_t> countStrings(std::string_view key) const;
  bool isList(std::string_view key) const;
  /// A tensor with its elements, if they are few.
  std::optional<Fact> tensor(std::string_view key) const;
  const Graph* body(std::string_view key) const;
  std::vector<Fact> inferBody(const Graph& graph, const std::vector<Fact>& formals) {
    return around_.inferBody(graph, formals);
  }

  void need(const Dim& dim) { around_.need(dim); }
  bool isPositive(const Dim& dim) const { return around_.isPositive(dim); }

  // Outputs.

  std::size_t outputs() const { return outputs_.size(); }
  /// An output; one that the node does not have is thrown away.
  Fact& out(std::size_t number) { return number < outputs_.size() ? outputs_[number] : spare_; }
  void set(std::size_t number, Type type) { out(number).type = type; }
  void set(std::size_t number, Type type, Shape shape) {
    out(number).type = type;
    out(number).shape = std::move(shape);
  }
  void setShape(std::size_t number, Shape shape) { out(number).shape = std::move(shape); }
  void setItems(std::size_t number, std::vector<Dim> items);

 private:
  static const Fact& absent();
  const Node& node_;
  std::string_view domain_;
  std::vector<const Fact*> inputs_;
  std::vector<Fact>& outputs_;
  Surroundings& around_;
  int64_t opset_;
  Fact spare_;
};

/// Throws Unknowable unless something holds.
inline void require(bool holds) {
  if (!holds) throw Unknowable();
}

/// Returns an axis counted from the first one; throws Unknowable if it is not there.
std::size_t axisOf(int64_t axis, std::size_t rank);

/// Reads `[1, 2]`; false for other texts.
bool parseIntegers(std::string_view text, std::vector<int64_t>* numbers);
/// Reads a tensor as attributes have it: {"dtype": "int64", "shape": [2], "data": [1, 2]}.
std::optional<Fact> parseTensor(std::string_view text);
/// Makes the content of a constant of few elements.
std::shared_ptr<const Content> makeContent(std::vector<int64_t> items);
std::shared_ptr<const Content> makeRealContent(std::vector<double> reals);
/// Returns a quotient of dimensions as floating point has it, in lowest terms; unknown if it might
/// be rounded to another integer.
bool reduceReal(Dim* number, int64_t* divisor);
/// Returns ONNX's number of an element type by its name.
Type typeNamed(std::string_view name);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_NODE_VIEW_H_
