#include "onnx/parts/functions.h"

#include "onnx/original/originals.h"
#include "onnx/types/settled.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {

using namespace numbers;  // NOLINT: this file only

std::string FunctionKey::title() const {
  return domain + "." + name + (overload.empty() ? "" : ":" + overload);
}

FunctionKey keyOfFunction(Bytes function) {
  return {std::string(plainDomain(bodyOf(function, kFunctionDomain))),
          std::string(bodyOf(function, kFunctionName)),
          std::string(bodyOf(function, kFunctionOverload))};
}

FunctionKey keyOfCall(Bytes node) {
  return {std::string(plainDomain(bodyOf(node, kDomain))), std::string(bodyOf(node, kOpType)),
          std::string(bodyOf(node, kOverload))};
}

Functions::Functions(Bytes model) {
  for (const Bytes function : bodiesOf(model, kFunctions)) {
    const auto [place, fresh] = places_.try_emplace(keyOfFunction(function), messages_.size());
    if (fresh) {
      messages_.emplace_back(function);
    } else {
      messages_[place->second] = function;
    }
  }
}

std::optional<std::size_t> Functions::find(const FunctionKey& key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void forEachNodeWithin(const Body& body, const std::function<void(const Path&)>& visit) {
  forEachBodyWithin(body, [&visit](const Body& each) {
    Field field;
    for (Fields fields(each.message); fields.next(&field);) {
      if (field.number != each.nodes || field.type != kBytes) continue;
      visit(joined(each.path, field));
    }
  });
}

std::vector<Bytes> usedBy(Bytes node) {
  std::vector<Bytes> used = bodiesOf(node, kNodeInput);
  for (const Path& inner : graphsOf(node)) {
    const std::vector<Bytes> captured = capturedBy(inner.back().body);
    used.insert(used.end(), captured.begin(), captured.end());
  }
  return used;
}

OperatorSets setsOf(const std::vector<Bytes>& imports) {
  OperatorSets sets;
  for (const Bytes import : imports) {
    int64_t version = 0;
    Field field;
    for (Fields fields(import); fields.next(&field);) {
      if (field.number == kSetVersion) version = static_cast<int64_t>(field.value);
    }
    sets.try_emplace(std::string(plainDomain(bodyOf(import, kSetDomain))), version);
  }
  return sets;
}

std::string importOf(const std::string& domain, int64_t version) {
  std::string made;
  appendBody(kSetDomain, domain, &made);
  appendNumber(kSetVersion, static_cast<uint64_t>(version), &made);
  return made;
}

}  // namespace passlib::onnx
