#include "onnx/original/lineage.h"

#include <exception>

namespace passlib::onnx {

std::vector<const Original*> lineageOf(const Node& node, const Original* original,
                                       const Originals& originals) {
  std::vector<const Original*> found;
  const Bytes text = attributeOf(node, MX_STR_ORIGIN);
  if (text.data() == nullptr) return found;
  // A list that the file itself states names nodes of another file.
  if (original != nullptr && attributeOf(*original->node, MX_STR_ORIGIN) == text) return found;
  try {
    for (const auto& name : mxnet::ext::JsonVal::parse(std::string(text)).list) {
      const Original* const each = originals.operatorNamed(name.str);
      if (each != nullptr) found.push_back(each);
    }
  } catch (const std::exception&) {  // a pass has put something else there
    found.clear();
  }
  return found;
}

}  // namespace passlib::onnx
