#include "onnx/reading/references.h"

#include <cstdint>
#include <utility>

#include "onnx/parts/attribute.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

void add(Bytes name, References* references) {
  if (!name.empty()) references->all.insert(name, true);
}

/// Adds both texts of a StringStringEntryProto.
void addEntry(Bytes entry, References* references) {
  for (const uint32_t number : {kKey, kValue}) {
    forEachBody(entry, number, [&](Bytes name) { add(name, references); });
  }
}

enum class Part : uint8_t { kTraining, kGraph, kNode, kAttribute };

/// Adds the names that a TrainingInfoProto binds, and those that its graphs take from outside.
void addTraining(Bytes training, References* references) {
  const auto use = [references](Bytes name) {
    add(name, references);
    references->training.push_back(name);
  };
  std::vector<std::pair<Bytes, Part>> open(1, {training, Part::kTraining});
  while (!open.empty()) {
    const auto [message, part] = open.back();
    open.pop_back();
    Field field;
    for (Fields fields(message); fields.next(&field);) {
      if (field.type != kBytes) continue;
      const uint32_t number = field.number;
      if (part == Part::kTraining && (number == kInitialization || number == kAlgorithm)) {
        open.emplace_back(field.body, Part::kGraph);
      } else if (part == Part::kTraining &&
                 (number == kInitializationBinding || number == kUpdateBinding)) {
        forEachBody(field.body, kKey, use);
        forEachBody(field.body, kValue, use);
      } else if (part == Part::kGraph && number == numbers::kNode) {
        open.emplace_back(field.body, Part::kNode);
      } else if (part == Part::kGraph && number == kOutput) {
        forEachBody(field.body, kValueName, use);
      } else if (part == Part::kNode && number == kNodeInput) {
        use(field.body);
      } else if (part == Part::kNode && number == numbers::kAttribute) {
        open.emplace_back(field.body, Part::kAttribute);
      } else if (part == Part::kAttribute && (number == kS || number == kStrings)) {
        use(field.body);  // Gradient names the values that it is about
      } else if (part == Part::kAttribute && (number == kG || number == kGraphs)) {
        open.emplace_back(field.body, Part::kGraph);
      }
    }
  }
}

}  // namespace

void addReferencesOfModel(Bytes model, References* references) {
  Field field;
  for (Fields fields(model); fields.next(&field);) {
    if (field.type != kBytes) continue;
    if (field.number == kTrainingInfo) addTraining(field.body, references);
    if (field.number == kModelMetadata) addEntry(field.body, references);
  }
}

void addReferencesOfGraph(Bytes graph, References* references) {
  Field field;
  for (Fields fields(graph); fields.next(&field);) {
    if (field.type != kBytes) continue;
    if (field.number == kGraphMetadata) addEntry(field.body, references);
    if (field.number != kAnnotation) continue;
    forEachBody(field.body, kTensorNameOf, [&](Bytes name) { add(name, references); });
    forEachBody(field.body, kParameterNames, [&](Bytes entry) {
      forEachBody(entry, kValue, [&](Bytes name) {
        add(name, references);
        references->parameters.push_back(name);
      });
    });
  }
}

}  // namespace passlib::onnx
