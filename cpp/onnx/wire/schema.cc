#include "onnx/wire/schema.h"

#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

constexpr std::size_t kDeepest = 100;

/// The content of a field: packed numbers, or a message of one of the kinds that follow. Messages
/// without such fields of their own are kFlat.
enum Content : uint8_t {
  kOther,
  kVarints,
  kFixed32s,
  kFixed64s,
  kFlat,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValue,
  kType,
  kTensorType,
  kElementType,
  kMapType,
  kShape,
  kAnnotation,
  kTraining,
  kFunction,
  kDevices,
  kSharding,
  kGroupEntry,
  kShardedDim,
  kContents,
};

constexpr std::size_t kFieldNumbers = 32;
using Numbered = std::pair<std::size_t, Content>;
using Rules = std::array<std::array<Content, kFieldNumbers>, kContents>;

Rules makeRules() {
  Rules rules{};
  const auto state = [&rules](Content message, std::initializer_list<Numbered> fields) {
    for (const auto& [number, content] : fields) rules[message][number] = content;
  };
  state(kModel,
        {{7, kGraph}, {8, kFlat}, {14, kFlat}, {20, kTraining}, {25, kFunction}, {26, kFlat}});
  state(kGraph, {{1, kNode},
                 {5, kTensor},
                 {11, kValue},
                 {12, kValue},
                 {13, kValue},
                 {14, kAnnotation},
                 {15, kSparse},
                 {16, kFlat}});
  state(kNode, {{5, kAttribute}, {9, kFlat}, {10, kDevices}});
  state(kAttribute, {{5, kTensor},
                     {6, kGraph},
                     {7, kFixed32s},
                     {8, kVarints},
                     {10, kTensor},
                     {11, kGraph},
                     {14, kType},
                     {15, kType},
                     {22, kSparse},
                     {23, kSparse}});
  state(kTensor, {{1, kVarints},
                  {3, kFlat},
                  {4, kFixed32s},
                  {5, kVarints},
                  {7, kVarints},
                  {10, kFixed64s},
                  {11, kVarints},
                  {13, kFlat},
                  {16, kFlat}});
  state(kSparse, {{1, kTensor}, {2, kTensor}, {3, kVarints}});
  state(kValue, {{2, kType}, {4, kFlat}});
  state(kType, {{1, kTensorType},
                {4, kElementType},
                {5, kMapType},
                {7, kFlat},
                {8, kTensorType},
                {9, kElementType}});
  state(kTensorType, {{2, kShape}});
  state(kElementType, {{1, kType}});
  state(kMapType, {{2, kType}});
  state(kShape, {{1, kFlat}});
  state(kAnnotation, {{2, kFlat}});
  state(kTraining, {{1, kGraph}, {2, kGraph}, {3, kFlat}, {4, kFlat}});
  state(kFunction, {{7, kNode}, {9, kFlat}, {11, kAttribute}, {12, kValue}, {14, kFlat}});
  state(kDevices, {{2, kSharding}});
  state(kSharding, {{2, kVarints}, {3, kGroupEntry}, {4, kShardedDim}});
  state(kGroupEntry, {{2, kVarints}});
  state(kShardedDim, {{2, kFlat}});
  return rules;
}

const Rules& allRules() {
  static const Rules rules = makeRules();
  return rules;
}

/// Whether a message can have tensors in it.
bool holdsTensors(Content message) {
  return message == kModel || message == kGraph || message == kNode || message == kAttribute ||
         message == kSparse || message == kTraining || message == kFunction;
}

void checkVarints(Bytes packed) {
  const char* cursor = packed.data();
  const char* const end = cursor + packed.size();
  while (cursor < end) readVarint(&cursor, end);
}

}  // namespace

bool checkModel(Bytes model) {
  const Rules& rules = allRules();
  std::vector<std::pair<Fields, Content>> open(1, {Fields(model), kModel});
  bool external = false;
  Field field;
  while (!open.empty()) {
    const Content message = open.back().second;
    if (!open.back().first.next(&field)) {
      open.pop_back();
      continue;
    }
    if (field.type != kBytes || field.number >= kFieldNumbers) continue;
    const Content content = rules[message][field.number];
    if (content == kOther) continue;
    external = external || (message == kTensor && field.number == numbers::kExternalData);
    if (content == kVarints) {
      checkVarints(field.body);
    } else if (content == kFixed32s || content == kFixed64s) {
      if (field.body.size() % (content == kFixed32s ? 4 : 8) != 0) {
        throw WireError("packed numbers end within a number; the file is damaged", field.start);
      }
    } else if (open.size() > kDeepest) {
      throw WireError("messages are nested more than 100 deep", field.start);
    } else {
      open.emplace_back(Fields(field.body), content);
    }
  }
  return external;
}

void forEachTensor(Bytes model, const std::function<void(const Path&)>& visit) {
  const Rules& rules = allRules();
  std::vector<std::pair<Fields, Content>> open(1, {Fields(model), kModel});
  Path path;
  Field field;
  while (!open.empty()) {
    if (!open.back().first.next(&field)) {
      open.pop_back();
      if (!path.empty()) path.pop_back();
      continue;
    }
    if (field.type != kBytes || field.number >= kFieldNumbers) continue;
    const Content content = rules[open.back().second][field.number];
    if (content != kTensor && !holdsTensors(content)) continue;
    path.push_back(field);
    if (content == kTensor) {
      visit(path);
      path.pop_back();
    } else {
      open.emplace_back(Fields(field.body), content);
    }
  }
}

}  // namespace passlib::onnx
