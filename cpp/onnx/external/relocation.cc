#include "onnx/external/relocation.h"

#include "onnx/parts/tensor.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {

bool isInitializer(const Path& tensor) {
  // A graph, a node and an attribute are around a nested graph.
  return tensor.size() % 3 == 2 && tensor.front().number == numbers::kGraph &&
         tensor.back().number == numbers::kInitializer;
}

void forEachNumberedTensor(
    Bytes model, const std::function<void(const Path&, std::optional<std::size_t>)>& visit) {
  std::size_t initializers = 0;
  forEachTensor(model, [&](const Path& path) {
    const bool is_main = path.size() == 2 && isInitializer(path);
    visit(path, is_main ? std::optional<std::size_t>(initializers++) : std::nullopt);
  });
}

Pieces relocate(Bytes model, const Relocation& relocation) {
  Splices splices(model);
  forEachTensor(model, [&](const Path& path) {
    const Bytes tensor = path.back().body;
    const auto place = relocation.places.find(path.back().start);
    if (place != relocation.places.end()) {
      return splices.replace(path, withPlace(tensor, place->second));
    }
    const auto payload = relocation.payloads.find(path.back().start);
    if (payload != relocation.payloads.end()) {
      if (readTensorHead(tensor).external) splices.replace(path, withoutPlace(tensor));
      return splices.append(path, numbers::kRawData, payload->second);
    }
    if (relocation.files.empty()) return;
    const TensorHead head = readTensorHead(tensor);
    if (!head.external) return;
    const std::string location = plainPath(placeOf(tensor, std::string(head.name)).location);
    const auto file = relocation.files.find(location);
    if (file != relocation.files.end()) splices.replace(path, withLocation(tensor, file->second));
  });
  return splices.finish();
}

}  // namespace passlib::onnx
