// Passes that declare themselves, and what they get.
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

/// Writes what it is called with into the attributes of the graph.
MXReturnValue echo(Graph* graph, const OptionValues& options) {
  std::ostringstream text;
  text << std::boolalpha << options.boolean("flag") << " " << options.integer("level") << " "
       << options.real("rate") << " " << options.text("mode") << " [";
  for (int64_t value : options.integers("axes")) text << value << ";";
  for (const std::string& value : options.texts("names")) text << value << ";";
  for (double value : options.reals("rates")) text << value << ";";
  for (bool value : options.booleans("flags")) text << value << ";";
  text << "] " << options.given("level");
  graph->attrs["echo"] = JsonVal(text.str());
  return MX_SUCCESS;
}

/// Writes all options that it is called with into the attributes of the graph.
MXReturnValue echoTexts(Graph* graph, const options_map_t& options) {
  std::string text;
  for (const auto& option : std::map<std::string, std::string>(options.begin(), options.end())) {
    text += option.first + "=" + option.second + ";";
  }
  graph->attrs["echo"] = JsonVal(text);
  return MX_SUCCESS;
}

/// Asks for an option of another type than declared.
MXReturnValue confused(Graph*, const OptionValues& options) {
  return options.integer("mode") == 0 ? MX_SUCCESS : MX_FAIL;
}

MXReturnValue undeclared(Graph*, const OptionValues& options) {
  return options.boolean("other") ? MX_SUCCESS : MX_FAIL;
}

/// Writes into every node what the pass knows of it.
MXReturnValue look(Graph* graph, const options_map_t&) {
  for (Node* node : graph->nodes) {
    std::string known = isParameter(node) ? "parameter" : "value";
    if (node->tensor != nullptr) known += " lent";
    if (node->attrs.count(MX_STR_SHAPE) != 0) known += " inferred";
    node->attrs["__known__"] = known;
  }
  return MX_SUCCESS;
}

/// Adds the parameter `name` twice, and 2 to the model's output with the second.
MXReturnValue addBias(Graph* graph, const OptionValues& options) {
  addParameter(graph, options.text("name"), {}, kFloat32);
  Node* bias = addParameter(graph, options.text("name"), {1}, kFloat32);
  bias->tensor->data<float>()[0] = 2;
  const NodeEntry old = graph->outputs[0];
  Node* sum = graph->addNode("biased", "broadcast_add");
  graph->connect(old.node, old.entry, sum, 0);
  graph->connect(bias, 0, sum, 1);
  graph->replace(old, NodeEntry(sum, 0));
  return isParameter(bias) ? MX_SUCCESS : MX_FAIL;
}

REGISTER_PASS(declaredEcho)
    .setBody(echo)
    .describe("Repeats its options.")
    .dialects({"mxnet"})
    .option("flag", false, "Whether it is set.")
    .option("level", 1, "How far it goes.", 1, 3)
    .option("rate", 0.5, "A share.", 0, 1)
    .option("mode", "fast", "How it works.", {"fast", "exact"})
    .option("axes", {0, 1}, "Some axes.", -4, 4)
    .option("names", std::vector<std::string>(), "Some names.")
    .option("rates", {0.25}, "Some rates.")
    .option("flags", {true, false}, "Some flags.");
REGISTER_PASS(declaredConfused).setBody(confused).option("mode", "fast", "");
REGISTER_PASS(declaredWithout).setBody(undeclared);
REGISTER_PASS(declaredLook).setBody(look).describe("Looks.");
REGISTER_PASS(declaredGraphOnly).setBody(look).needsWeights(false).needsShapes(false);
REGISTER_PASS(declaredNoWeights).setBody(look).needsWeights(false);
REGISTER_PASS(declaredAny).setBody(look).option("level", 1, "", 1, 3).anyOptions();
REGISTER_PASS(declaredNothing).setBody(look);
REGISTER_PASS(declaredBias)
    .setBody(addBias)
    .option("name", "bias", "The name of the parameter.")
    .needsWeights(false);
REGISTER_PASS(declaredTexts)
    .setBody(echoTexts)
    .option("flag", true, "Whether it is set.")
    .option("level", 2, "How far it goes.", 1, 3)
    .option("rate", 0.5, "How much.")
    .option("mode", "fast", "Which way.", {"fast", "exact"})
    .option("axes", {1, 2}, "Which axes.")
    .option("names", std::vector<std::string>(), "Which names.")
    .anyOptions();

}  // namespace

MXReturnValue initialize(int) { return MX_SUCCESS; }
