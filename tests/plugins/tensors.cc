// Passes that use the tensors that the host lends: in threads, twice, and wrongly.
#include <thread>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

constexpr std::size_t kThreads = 4;

/// Runs body(number) for each number below `count`, in threads.
template <typename Body>
void inThreads(std::size_t count, Body body) {
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < kThreads; ++first) {
    threads.emplace_back([=]() {
      for (std::size_t number = first; number < count; number += kThreads) body(number);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Each thread writes to attributes of its own nodes, which were made before.
MXReturnValue sumInThreads(Graph* graph, const OptionValues&) {
  const std::vector<Node*> nodes = graph->inputs;
  std::vector<std::string> sums(nodes.size());
  inThreads(nodes.size(), [&](std::size_t number) {
    // Every thread also asks for the weight that the others ask for.
    for (Node* node : {nodes[number], nodes.back()}) {
      if (!isParameter(node)) continue;
      const MXTensor* tensor = node->readTensor();
      double sum = 0;
      for (int64_t pos = 0; pos < tensor->size(); ++pos) sum += tensor->data<float>()[pos];
      if (node == nodes[number]) sums[number] = std::to_string(sum);
      if (passInterrupted()) MX_ERROR_MSG << "interrupted";
    }
  });
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    if (!sums[number].empty()) nodes[number]->attrs["__sum__"] = sums[number];
  }
  return MX_SUCCESS;
}

MXReturnValue negateInThreads(Graph* graph, const OptionValues&) {
  const std::vector<Node*> nodes = graph->inputs;
  inThreads(nodes.size(), [&](std::size_t number) {
    Node* node = nodes[number];
    const MXTensor* before = isParameter(node) ? node->readTensor() : nullptr;
    if (before == nullptr) return;
    MXTensor* made = node->alloc_arg(before->shape, MXContext::CPU(0), kFloat32);
    for (int64_t pos = 0; pos < made->size(); ++pos) {
      made->data<float>()[pos] = -before->data<float>()[pos];
    }
  });
  return MX_SUCCESS;
}

MXReturnValue doubleTwice(Graph* graph, const OptionValues&) {
  for (Node* node : graph->inputs) {
    for (int round = 0; round < 2 && node->tensor != nullptr; ++round) {
      const MXTensor* before = node->tensor;
      MXTensor* made = node->alloc_arg(before->shape, MXContext::CPU(0), kFloat32);
      for (int64_t pos = 0; pos < made->size(); ++pos) {
        made->data<float>()[pos] = 2 * before->data<float>()[pos];
      }
    }
  }
  return MX_SUCCESS;
}

/// Changes one thing of a tensor that the host lent, or made for this pass.
MXReturnValue changeTensor(Graph* graph, const OptionValues& options) {
  static float memory[64];
  static MXTensor foreign(memory, {2, 3}, kFloat32, 0, MXContext::CPU(0));
  static int64_t strides[] = {1, 2};
  Node* node = nullptr;
  Node* other = nullptr;
  for (Node* each : graph->inputs) {
    if (each->name == "w") node = each;
    if (each->name == "v") other = each;
  }
  if (options.boolean("fresh")) node->alloc_arg({2, 3}, MXContext::CPU(0), kFloat32);
  MXTensor* tensor = node->tensor;
  const std::string what = options.text("what");
  if (what == "shape") std::swap(tensor->shape[0], tensor->shape[1]);
  if (what == "rank") tensor->shape.push_back(1);
  if (what == "dtype") tensor->dtype = kInt32;
  if (what == "storage") tensor->stype = kCSRStorage;
  if (what == "pointer") tensor->data_ptr = memory;
  if (what == "whole") *tensor = MXTensor(memory, {3, 2}, kFloat32, 0, MXContext::CPU(0));
  if (what == "view") tensor->dltensor.data = memory;
  if (what == "strides") tensor->dltensor.strides = strides;
  if (what == "foreign") node->tensor = &foreign;
  if (what == "other") node->tensor = other->tensor;
  if (what == "given away") other->tensor = node->tensor;
  if (what == "renamed") {
    graph->removeNode(node);
    node = graph->addNode("w2", "null");
    node->tensor = tensor;
    graph->inputs.push_back(node);
    graph->outputs.emplace_back(node, 0);
  }
  // Allowed: what says nothing else.
  if (what == "nothing") tensor->setDLTensor();
  if (what == "dropped") node->tensor = nullptr;
  return MX_SUCCESS;
}

MXReturnValue writeOnDemand(Graph* graph, const OptionValues& options) {
  for (Node* node : graph->inputs) {
    if (node->name != options.text("name")) continue;
    node->readTensor();
    node->tensor->data<float>()[node->tensor->size() - 1] = 42;
  }
  return MX_SUCCESS;
}

}  // namespace

REGISTER_PASS(sumInThreads).setBody(sumInThreads).weightsOnDemand().needsShapes(false);
REGISTER_PASS(negateInThreads).setBody(negateInThreads).weightsOnDemand().needsShapes(false);
REGISTER_PASS(doubleTwice).setBody(doubleTwice).needsShapes(false);
REGISTER_PASS(changeTensor)
    .setBody(changeTensor)
    .option("what", "shape", "What to change.")
    .option("fresh", false, "Change a tensor of this pass.")
    .needsShapes(false);
REGISTER_PASS(writeOnDemand)
    .setBody(writeOnDemand)
    .option("name", "w", "Of the weight.")
    .weightsOnDemand()
    .needsShapes(false);

MXReturnValue initialize(int) { return MX_SUCCESS; }
