// A pass whose mistakes the standard library reports, by the option "mistake"; a partitioner and an
// operator that make one each.
#include <functional>
#include <sstream>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

MXReturnValue careless(Graph* graph, const options_map_t& options) {
  const std::string& mistake = options.at("mistake");
  Node* node = graph->outputs.at(0).node;
  if (mistake == "no attribute") node->attrs.at("axis");
  if (mistake == "no input") node->inputs.at(1000);
  if (mistake == "no number") node->attrs["n"] = std::to_string(std::stoi("None") + std::stod("x"));
  if (mistake == "no text") std::string(mistake).substr(100);
  if (mistake == "no memory") std::vector<int>(static_cast<std::size_t>(node->inputs.size()) - 9);
  if (mistake == "no function") std::function<void()>()();
  if (mistake == "other text") throw std::out_of_range(options.at("text"));
  return MX_SUCCESS;
}

/// Allocates a parameter of the shape that the option "shape" states, numbers with blanks between.
MXReturnValue allocates(Graph* graph, const options_map_t& options) {
  std::istringstream numbers(options.at("shape"));
  std::vector<int64_t> shape;
  for (int64_t extent = 0; numbers >> extent;) shape.push_back(extent);
  graph->inputs.at(0)->alloc_arg(shape, MXContext::CPU(0), kFloat32);
  return MX_SUCCESS;
}

MXReturnValue support(const Graph*, std::vector<int>*, const options_map_t& options) {
  options.at("absent");
  return MX_SUCCESS;
}

MXReturnValue parse(const options_map_t& attributes, int*, int*) {
  std::stoi(attributes.at("size"));
  return MX_SUCCESS;
}

MXReturnValue never(const options_map_t&, std::vector<int>*, std::vector<int>*) { return MX_FAIL; }

MXReturnValue neverShape(const options_map_t&, std::vector<std::vector<unsigned int>>*,
                         std::vector<std::vector<unsigned int>>*) {
  return MX_FAIL;
}

MXReturnValue forward(const options_map_t&, std::vector<MXTensor>*, std::vector<MXTensor>*,
                      const OpResource&) {
  return MX_FAIL;
}

}  // namespace

REGISTER_PASS(careless).setBody(careless);
REGISTER_PASS(allocates).setBody(allocates);
REGISTER_PARTITIONER(carelessParts)
    .addStrategy("all", "careless_op")
    .setSupportedOps("all", support);
REGISTER_OP(careless_op)
    .setForward(forward, "cpu")
    .setParseAttrs(parse)
    .setInferType(never)
    .setInferShape(neverShape);

MXReturnValue initialize(int) { return MX_SUCCESS; }
