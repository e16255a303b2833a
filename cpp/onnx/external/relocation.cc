#include "onnx/external/relocation.h"

#include "onnx/parts/tensor.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {

void forEachNumberedTensor(
    Bytes model, const std::function<void(const Path&, std::optional<std::size_t>)>& visit) {
  std::size_t initializers = 0;
  forEachTensor(model, [&](const Path& path) {
    const bool is_main = path.size() == 2 && path[0].number == numbers::kGraph &&
                         path[1].number == numbers::kInitializer;
    visit(path, is_main ? std::optional<std::size_t>(initializers++) : std::nullopt);
  });
}

Pieces relocate(Bytes model, const Relocation& relocation) {
  Splices splices(model);
  forEachNumberedTensor(model, [&](const Path& path, std::optional<std::size_t> number) {
    const Bytes tensor = path.back().body;
    if (number) {
      const auto place = relocation.places.find(*number);
      if (place != relocation.places.end()) {
        return splices.replace(path, withPlace(tensor, place->second));
      }
      const auto payload = relocation.payloads.find(*number);
      if (payload != relocation.payloads.end()) {
        if (readTensorHead(tensor).external) splices.replace(path, withoutPlace(tensor));
        return splices.append(path, numbers::kRawData, payload->second);
      }
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
