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
enum FieldContent : uint8_t {
  kOther,
  kVarints,
  kFixed32s,
  kFixed64s,
  kFlat,
  kModelProto,
  kGraphProto,
  kNodeProto,
  kAttributeProto,
  kTensorProto,
  kSparseProto,
  kValueProto,
  kTypeProto,
  kTensorTypeProto,
  kElementTypeProto,
  kMapTypeProto,
  kShapeProto,
  kAnnotationProto,
  kTrainingProto,
  kFunctionProto,
  kDevicesProto,
  kShardingProto,
  kGroupEntryProto,
  kShardedDimProto,
  kContents,
};

constexpr std::size_t kFieldNumbers = 32;
using Numbered = std::pair<std::size_t, FieldContent>;
using Rules = std::array<std::array<FieldContent, kFieldNumbers>, kContents>;

Rules makeRules() {
  Rules rules{};
  const auto state = [&rules](FieldContent message, std::initializer_list<Numbered> fields) {
    for (const auto& [number, content] : fields) rules[message][number] = content;
  };
  state(kModelProto, {{7, kGraphProto},
                      {8, kFlat},
                      {14, kFlat},
                      {20, kTrainingProto},
                      {25, kFunctionProto},
                      {26, kFlat}});
  state(kGraphProto, {{1, kNodeProto},
                      {5, kTensorProto},
                      {11, kValueProto},
                      {12, kValueProto},
                      {13, kValueProto},
                      {14, kAnnotationProto},
                      {15, kSparseProto},
                      {16, kFlat}});
  state(kNodeProto, {{5, kAttributeProto}, {9, kFlat}, {10, kDevicesProto}});
  state(kAttributeProto, {{5, kTensorProto},
                          {6, kGraphProto},
                          {7, kFixed32s},
                          {8, kVarints},
                          {10, kTensorProto},
                          {11, kGraphProto},
                          {14, kTypeProto},
                          {15, kTypeProto},
                          {22, kSparseProto},
                          {23, kSparseProto}});
  state(kTensorProto, {{1, kVarints},
                       {3, kFlat},
                       {4, kFixed32s},
                       {5, kVarints},
                       {7, kVarints},
                       {10, kFixed64s},
                       {11, kVarints},
                       {13, kFlat},
                       {16, kFlat}});
  state(kSparseProto, {{1, kTensorProto}, {2, kTensorProto}, {3, kVarints}});
  state(kValueProto, {{2, kTypeProto}, {4, kFlat}});
  state(kTypeProto, {{1, kTensorTypeProto},
                     {4, kElementTypeProto},
                     {5, kMapTypeProto},
                     {7, kFlat},
                     {8, kTensorTypeProto},
                     {9, kElementTypeProto}});
  state(kTensorTypeProto, {{2, kShapeProto}});
  state(kElementTypeProto, {{1, kTypeProto}});
  state(kMapTypeProto, {{2, kTypeProto}});
  state(kShapeProto, {{1, kFlat}});
  state(kAnnotationProto, {{2, kFlat}});
  state(kTrainingProto, {{1, kGraphProto}, {2, kGraphProto}, {3, kFlat}, {4, kFlat}});
  state(kFunctionProto,
        {{7, kNodeProto}, {9, kFlat}, {11, kAttributeProto}, {12, kValueProto}, {14, kFlat}});
  state(kDevicesProto, {{2, kShardingProto}});
  state(kShardingProto, {{2, kVarints}, {3, kGroupEntryProto}, {4, kShardedDimProto}});
  state(kGroupEntryProto, {{2, kVarints}});
  state(kShardedDimProto, {{2, kFlat}});
  return rules;
}

const Rules& allRules() {
  static const Rules rules = makeRules();
  return rules;
}

/// Whether a message can have tensors in it.
bool holdsTensors(FieldContent message) {
  return message == kModelProto || message == kGraphProto || message == kNodeProto ||
         message == kAttributeProto || message == kSparseProto || message == kTrainingProto ||
         message == kFunctionProto;
}

void checkVarints(Bytes packed) {
  const char* cursor = packed.data();
  const char* const end = cursor + packed.size();
  while (cursor < end) readVarint(&cursor, end);
}

}  // namespace

bool checkModel(Bytes model) {
  const Rules& rules = allRules();
  std::vector<std::pair<Fields, FieldContent>> open(1, {Fields(model), kModelProto});
  bool external = false;
  Field field;
  while (!open.empty()) {
    const FieldContent message = open.back().second;
    if (!open.back().first.next(&field)) {
      open.pop_back();
      continue;
    }
    if (field.type != kBytes || field.number >= kFieldNumbers) continue;
    const FieldContent content = rules[message][field.number];
    if (content == kOther) continue;
    external = external || (message == kTensorProto && field.number == numbers::kExternalData);
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
  std::vector<std::pair<Fields, FieldContent>> open(1, {Fields(model), kModelProto});
  Path path;
  Field field;
  while (!open.empty()) {
    if (!open.back().first.next(&field)) {
      open.pop_back();
      if (!path.empty()) path.pop_back();
      continue;
    }
    if (field.type != kBytes || field.number >= kFieldNumbers) continue;
    const FieldContent content = rules[open.back().second][field.number];
    if (content != kTensorProto && !holdsTensors(content)) continue;
    path.push_back(field);
    if (content == kTensorProto) {
      visit(path);
      path.pop_back();
    } else {
      open.emplace_back(Fields(field.body), content);
    }
  }
}

}  // namespace passlib::onnx
