#include "onnx/acceptance/stated_texts.h"

#include <algorithm>

#include "onnx/types/stated.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

/// Spells stated types; there are few of them, and many values of each.
class Speller {
 public:
  explicit Speller(const std::map<int32_t, int>& codes) : codes_(codes) {}

  /// Appends a type to the texts; false if it is not known in full.
  bool append(Bytes type, TypeTexts* texts) {
    if (type.data() == nullptr) return false;
    const auto [spelled, fresh] = spelled_.insert(type, {});
    if (fresh) *spelled = spell(type);
    if (spelled->shapes.empty()) return false;
    texts->shapes += (texts->shapes.size() > 1 ? "," : "") + spelled->shapes;
    texts->types += (texts->types.size() > 1 ? "," : "") + spelled->types;
    return true;
  }

 private:
  TypeTexts spell(Bytes type) const {
    const InputType stated = typeOf(type);
    TypeTexts texts;
    if (stated.other || !stated.code || !stated.dims) return texts;
    const std::vector<int64_t>& sizes = *stated.dims;
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
      return texts;
    }
    texts.shapes = "[";
    for (const int64_t size : sizes) {
      texts.shapes += (texts.shapes.size() > 1 ? "," : "") + std::to_string(size);
    }
    texts.shapes += "]";
    const auto code = codes_.find(*stated.code);
    texts.types = code == codes_.end() ? "-1" : std::to_string(code->second);
    return texts;
  }

  const std::map<int32_t, int>& codes_;
  NameMap<TypeTexts> spelled_;
};

}  // namespace

std::optional<std::vector<TypeTexts>> statedTexts(const ModelWriter& model,
                                                  const KnownValues& known, const Graph& graph,
                                                  const std::map<int32_t, int>& codes) {
  const Names& names = model.graph().names;
  Speller speller(codes);
  std::vector<TypeTexts> all;
  all.reserve(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    TypeTexts texts{"[", "["};
    const auto count = static_cast<uint32_t>(std::max(graph.nodes[i]->num_outputs, 1));
    for (uint32_t output = 0; output < count; ++output) {
      const Bytes name = output < names.count(i) ? names.of[names.firsts[i] + output] : Bytes();
      if (name.empty()) {  // an omitted output, or the value that stands for omitted inputs
        texts.shapes += texts.shapes.size() > 1 ? ",None" : "None";
        texts.types += texts.types.size() > 1 ? ",-1" : "-1";
        continue;
      }
      const Known* value = known.find(name);
      if (value == nullptr || !speller.append(value->type, &texts)) return std::nullopt;
    }
    texts.shapes += "]";
    texts.types += "]";
    all.push_back(std::move(texts));
  }
  return all;
}

}  // namespace passlib::onnx
