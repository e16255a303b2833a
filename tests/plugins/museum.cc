// For the museum: a pass and an operator that compile with every lib_api.h of passlib since its
// first commit. -DEXHIBIT=name is a part of the names of both.
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib_api.h"

using namespace mxnet::ext;

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

using Options = std::unordered_map<std::string, std::string>;

/// Replaces exp by the operator of the option "by", and notes a text too long for short strings.
static MXReturnValue replaceExp(Graph* graph, const Options& options) {
  for (int i = 0; i < static_cast<int>(graph->size()); ++i) {
    Node* node = graph->getNode(static_cast<std::size_t>(i));
    if (node->op != "exp") continue;
    node->op = options.at("by");
    node->attrs["__note__"] = node->name + " was an exp before " TEXT(EXHIBIT) " replaced it";
  }
  return MX_SUCCESS;
}
REGISTER_PASS(JOIN(museumReplace_, EXHIBIT)).setBody(replaceExp);

#ifdef REGISTER_OP
static MXReturnValue forward(const Options& attributes, std::vector<MXTensor>* inputs,
                             std::vector<MXTensor>* outputs, const OpResource&) {
  const float factor = std::stof(attributes.at("factor"));
  const float* in = inputs->at(0).data<float>();
  float* out = outputs->at(0).data<float>();
  for (int64_t i = 0; i < static_cast<int64_t>(inputs->at(0).size()); ++i) out[i] = in[i] * factor;
  return MX_SUCCESS;
}
static MXReturnValue parse(const Options&, int* inputs, int* outputs) {
  *inputs = *outputs = 1;
  return MX_SUCCESS;
}
static MXReturnValue types(const Options&, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}
static MXReturnValue shapes(const Options&, std::vector<std::vector<unsigned int>>* in,
                            std::vector<std::vector<unsigned int>>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}
REGISTER_OP(JOIN(museum_scale_, EXHIBIT))
    .setForward(forward, "cpu")
    .setParseAttrs(parse)
    .setInferType(types)
    .setInferShape(shapes);
#endif

MXReturnValue initialize(int version) { return version >= 10700 ? MX_SUCCESS : MX_FAIL; }
