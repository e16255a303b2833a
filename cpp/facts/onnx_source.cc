#include "facts/onnx_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "errors.h"
#include "facts/node_view.h"
#include "graph/attributes.h"
#include "onnx/parts/sparse.h"
#include "onnx/reading/model.h"
#include "onnx/text/attribute_text.h"
#include "onnx/text/numbers.h"
#include "onnx/text/strings.h"
#include "onnx/types/settled.h"
#include "onnx/wire/numbers.h"

namespace passlib::facts {
namespace {

using onnx::Bytes;
using onnx::Field;
using onnx::Fields;
namespace numbers = onnx::numbers;

constexpr std::size_t kDeepestType = 16;

/// An open size with a name of a file; unknown if that is empty or long. An expression of some tool
/// is a name like any other, and none of passlib's expressions or names of unknown sizes.
Dim sizeNamed(const std::string& name) {
  if (name.empty() || name.size() > 256) return Dim();
  const bool plain = name.find_first_of("()\"/") == std::string::npos;
  return Dim::named(plain ? name : '"' + name + '"');
}

Dim readDim(Bytes dimension) {
  Dim dim;
  Field field;
  for (Fields fields(dimension); fields.next(&field);) {
    if (field.number == numbers::kDimValue && field.type == onnx::kVarint) {
      const auto size = static_cast<int64_t>(field.value);
      dim = size < 0 ? Dim() : Dim(size);
    } else if (field.number == numbers::kDimParam && field.type == onnx::kBytes) {
      dim = sizeNamed(onnx::decoded(field.body));
    }
  }
  return dim;
}

void readTensorType(Bytes message, onnx::Arena* arena, Fact* fact) {
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.number == numbers::kElementType && field.type == onnx::kVarint &&
        field.value < 1000) {
      fact->type = static_cast<Type>(field.value);
    }
  }
  const Bytes shape = onnx::mergedBody(message, numbers::kShape, arena);
  if (shape.data() == nullptr) return;
  fact->shape.emplace();
  onnx::forEachBody(shape, numbers::kDim, [&](Bytes dimension) {
    if (fact->shape->size() <= kMostAxes) fact->shape->push_back(readDim(dimension));
  });
}

template <typename Number>
void appendItems(const char* data, std::size_t count, std::vector<int64_t>* items) {
  for (std::size_t i = 0; i < count; ++i) {
    Number number;
    std::memcpy(&number, data + i * sizeof number, sizeof number);
    items->push_back(static_cast<int64_t>(number));
  }
}

}  // namespace

std::shared_ptr<const Content> elementsContent(Type type, const char* data, std::size_t count) {
  std::vector<int64_t> items;
  std::vector<double> reals;
  switch (type) {
    case kBool:
    case kUint8:
      appendItems<uint8_t>(data, count, &items);
      break;
    case kInt8:
      appendItems<int8_t>(data, count, &items);
      break;
    case kUint16:
      appendItems<uint16_t>(data, count, &items);
      break;
    case kInt16:
      appendItems<int16_t>(data, count, &items);
      break;
    case kInt32:
      appendItems<int32_t>(data, count, &items);
      break;
    case kInt64:
      appendItems<int64_t>(data, count, &items);
      break;
    case kUint32:
      appendItems<uint32_t>(data, count, &items);
      break;
    case kUint64:
      appendItems<uint64_t>(data, count, &items);
      for (const int64_t item : items) {
        if (item < 0) return nullptr;
      }
      break;
    case kFloat:
      reals.reserve(count);
      for (std::size_t i = 0; i < count; ++i) {
        float number = 0;
        std::memcpy(&number, data + 4 * i, 4);
        reals.push_back(static_cast<double>(number));
      }
      return makeRealContent(std::move(reals));
    case kDouble:
      for (std::size_t i = 0; i < count; ++i) {
        double number = 0;
        std::memcpy(&number, data + 8 * i, 8);
        reals.push_back(number);
      }
      return makeRealContent(std::move(reals));
    case kFloat16:
      for (std::size_t i = 0; i < count; ++i) {
        uint16_t number = 0;
        std::memcpy(&number, data + 2 * i, 2);
        reals.push_back(onnx::widenHalf(number));
      }
      return makeRealContent(std::move(reals));
    default:
      return nullptr;
  }
  return makeContent(std::move(items));
}

Fact typeFact(Bytes type) {
  onnx::Arena arena;
  Fact fact;
  for (std::size_t depth = 0; depth < kDeepestType; ++depth) {
    Field field;
    uint32_t kind = 0;
    onnx::Message inner;
    for (Fields fields(type); fields.next(&field);) {
      if (field.type != onnx::kBytes) continue;
      const bool member = field.number == numbers::kTensorType ||
                          (field.number >= numbers::kSequenceType && field.number != 6 &&
                           field.number <= numbers::kOptionalType);
      if (!member) continue;
      if (field.number != kind) inner = onnx::Message();
      kind = field.number;
      inner.add(field.body, &arena);
    }
    switch (kind) {
      case numbers::kTensorType:
      case numbers::kSparseType:
        readTensorType(inner.bytes(), &arena, &fact);
        return fact;
      case numbers::kSequenceType:
      case numbers::kOptionalType:
        fact.wrappers.push_back(kind == numbers::kSequenceType ? Wrapper::kSequence
                                                               : Wrapper::kOptional);
        type = onnx::mergedBody(inner.bytes(), 1, &arena);
        break;
      case numbers::kMapType: {
        fact.wrappers.push_back(Wrapper::kMap);
        for (Fields fields(inner.bytes()); fields.next(&field);) {
          if (field.number == 1 && field.type == onnx::kVarint && field.value < 1000) {
            fact.key = static_cast<Type>(field.value);
          }
        }
        type = onnx::mergedBody(inner.bytes(), 2, &arena);
        break;
      }
      default:
        return fact;
    }
  }
  return Fact();
}

Fact constantFact(Type type, Shape shape, const char* data) {
  Fact fact = Fact::tensor(type, std::move(shape));
  fact.constant = true;
  const auto few = fewElements(*fact.shape);
  if (data != nullptr && few) fact.content = elementsContent(type, data, *few);
  return fact;
}

Fact tensorFact(Bytes message) {
  const onnx::Tensor tensor = onnx::readTensor(message);
  Fact fact = Fact::tensor(static_cast<Type>(tensor.type));
  fact.shape.emplace(tensor.dims.begin(), tensor.dims.end());
  fact.constant = true;
  if (tensor.external || !fewElements(*fact.shape)) return fact;
  try {
    const onnx::Elements elements = onnx::checkElements(tensor, [] { return std::string(); });
    if (elements.type == nullptr || elements.count != *fewElements(*fact.shape)) return fact;
    if (tensor.has_raw) {
      fact.content = elementsContent(fact.type, elements.raw.data(), elements.count);
    } else {
      std::string copied(elements.count * elements.type->size, '\0');
      onnx::copyElements(tensor, elements, copied.data());
      fact.content = elementsContent(fact.type, copied.data(), elements.count);
    }
  } catch (const FormatError&) {
    // Validation reports it.
  }
  return fact;
}

namespace {

/// Describes what a Constant of the file holds.
Fact attributeFact(const onnx::Attribute& attribute) {
  Fact fact;
  fact.constant = true;
  switch (attribute.kind) {
    case onnx::Kind::kTensor:
      return tensorFact(attribute.content);
    case onnx::Kind::kInt:
      fact = Fact::tensor(kInt64, Shape());
      fact.content = makeContent({attribute.whole});
      break;
    case onnx::Kind::kFloat:
      fact = Fact::tensor(kFloat, Shape());
      fact.content = makeRealContent({static_cast<double>(attribute.real)});
      break;
    case onnx::Kind::kString:
      fact = Fact::tensor(kString, Shape());
      break;
    case onnx::Kind::kInts: {
      std::vector<int64_t> items;
      Field field;
      for (Fields fields(attribute.message); fields.next(&field);) {
        if (field.number != numbers::kInts) continue;
        onnx::forEachVarint(field,
                            [&](uint64_t bits) { items.push_back(static_cast<int64_t>(bits)); });
      }
      fact = Fact::tensor(kInt64, {static_cast<int64_t>(items.size())});
      if (items.size() <= kMostElements) fact.content = makeContent(std::move(items));
      break;
    }
    case onnx::Kind::kFloats: {
      std::vector<double> items;
      Field field;
      for (Fields fields(attribute.message); fields.next(&field);) {
        if (field.number != numbers::kFloats) continue;
        onnx::forEachFixed(field, onnx::kFixed32, [&](const char* place) {
          float number = 0;
          std::memcpy(&number, place, sizeof number);
          items.push_back(static_cast<double>(number));
        });
      }
      fact = Fact::tensor(kFloat, {static_cast<int64_t>(items.size())});
      if (items.size() <= kMostElements) fact.content = makeRealContent(std::move(items));
      break;
    }
    case onnx::Kind::kStrings: {
      int64_t count = 0;
      onnx::forEachBody(attribute.message, numbers::kStrings, [&](Bytes) { ++count; });
      fact = Fact::tensor(kString, {count});
      break;
    }
    case onnx::Kind::kSparseTensor: {
      onnx::Arena arena;
      const onnx::SparseTensor sparse = onnx::readSparse(attribute.content, &arena);
      fact = tensorFact(sparse.values);
      fact.content.reset();
      fact.shape.emplace(sparse.dims.begin(), sparse.dims.end());
      break;
    }
    default:
      break;
  }
  fact.constant = true;
  return fact;
}

void appendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80U));
    value >>= 7U;
  }
  out->push_back(static_cast<char>(value));
}

void appendBody(uint32_t number, Bytes body, std::string* out) {
  appendVarint(number << 3U | 2U, out);
  appendVarint(body.size(), out);
  out->append(body);
}

}  // namespace

/// A function as a model of its own.
struct OnnxSource::Read {
  std::string message;
  onnx::Model model;
  std::shared_ptr<const Graph> graph;
  std::unique_ptr<OnnxSource> source;
  Function function;
};

std::optional<Shape> statedShape(const Node& variable, const std::optional<Shape>& of_file) {
  const auto stated = mxnet::ext::shapeOf(NodeEntry(const_cast<Node*>(&variable), 0));
  if (!stated.known) return std::nullopt;
  const std::size_t rank = stated.extents.size();
  std::string_view names = attributeOf(variable, "__dim_params__");  // with a comma between two
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t end = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    if (stated.extents[i] >= 0) {
      shape.emplace_back(stated.extents[i]);
    } else if (!name.empty()) {
      shape.push_back(sizeNamed(std::string(name)));
    } else if (of_file && of_file->size() == rank && (*of_file)[i].isSymbolic()) {
      shape.push_back((*of_file)[i]);
    } else {
      shape.emplace_back();
    }
  }
  return shape;
}

OnnxSource::OnnxSource(std::shared_ptr<const onnx::Originals> originals)
    : originals_(std::move(originals)) {}

Fact OnnxSource::describe(const Node& variable) const {
  const std::string_view id = attributeOf(variable, "__id__");
  if (id.data() == nullptr) return {};
  const onnx::Original* original = originals_->find(id);
  if (original == nullptr) return {};
  Fact fact;
  try {
    switch (original->what) {
      case onnx::Original::kInput: {
        onnx::Arena arena;
        return typeFact(onnx::mergedBody(original->message(), numbers::kValueType, &arena));
      }
      case onnx::Original::kInitializer:
        fact = tensorFact(original->message());
        break;
      case onnx::Original::kSparse: {
        onnx::Arena arena;
        const onnx::SparseTensor sparse = onnx::readSparse(original->message(), &arena);
        fact = tensorFact(sparse.values);
        fact.content.reset();
        fact.shape.emplace(sparse.dims.begin(), sparse.dims.end());
        break;
      }
      case onnx::Original::kConstant: {
        const onnx::Range range = original->record().attributes;
        if (range.count != 1) return {};
        fact = attributeFact(original->graph->level.attributes[range.first].attribute);
        break;
      }
      default:
        return {};
    }
  } catch (const onnx::WireError&) {
    return {};
  }
  if (attributeOf(variable, "__default__").data() != nullptr) {  // other values may be fed
    fact.constant = false;
    fact.content.reset();
  }
  return fact;
}

const OnnxSource::Types& OnnxSource::typesOf(const onnx::OriginalGraph& graph) {
  const auto [place, fresh] = types_.try_emplace(&graph);
  if (!fresh) return place->second;
  for (const std::vector<Bytes>* list : {&graph.values, &graph.outputs}) {
    for (const Bytes value : *list) {
      try {
        onnx::Arena arena;
        const Bytes name = onnx::bodyOf(value, numbers::kValueName);
        place->second[name] = typeFact(onnx::mergedBody(value, numbers::kValueType, &arena));
      } catch (const onnx::WireError&) {
        continue;
      }
    }
  }
  return place->second;
}

const Fact* OnnxSource::stated(const Node& node, std::size_t output) {
  if (node.op == "null") return nullptr;
  const std::string_view id = attributeOf(node, "__id__");
  if (id.data() == nullptr) return nullptr;
  const onnx::Original* original = originals_->find(id);
  if (original == nullptr || original->what != onnx::Original::kOperator) return nullptr;
  const onnx::NodeRecord& record = original->record();
  const std::string_view domain = attributeOf(node, "__domain__");
  // A pass may have given the node another operator.
  if (record.op != node.op || onnx::plainDomain(record.domain) != onnx::plainDomain(domain)) {
    return nullptr;
  }
  if (output >= record.outputs.count) return nullptr;
  const Types& types = typesOf(*original->graph);
  const auto found = types.find(original->name(record.outputs, static_cast<uint32_t>(output)));
  return found == types.end() ? nullptr : &found->second;
}

const Fact* OnnxSource::stated(std::string_view value) {
  const Types& types = typesOf(originals_->main());
  const auto found = types.find(value);
  return found == types.end() ? nullptr : &found->second;
}

bool OnnxSource::isOmitted(const Node& node, std::size_t output) const {
  const std::string_view id = attributeOf(node, "__id__");
  const onnx::Original* original = id.data() == nullptr ? nullptr : originals_->find(id);
  if (original == nullptr || original->what != onnx::Original::kOperator) return false;
  const onnx::NodeRecord& record = original->record();
  return output >= record.outputs.count ||
         original->name(record.outputs, static_cast<uint32_t>(output)).empty();
}

void OnnxSource::collectFunctions() {
  collected_ = true;
  onnx::forEachBody(originals_->model(), numbers::kFunctions, [&](Bytes function) {
    Bytes name = "";
    Bytes domain = "";
    Field field;
    for (Fields fields(function); fields.next(&field);) {
      if (field.number == 1 && field.type == onnx::kBytes) name = field.body;
      if (field.number == 10 && field.type == onnx::kBytes) domain = field.body;
      if (field.number == 13 && field.type == onnx::kBytes && !field.body.empty()) return;
    }
    std::string key(domain);
    key.append("/").append(name);
    messages_.try_emplace(std::move(key), function);
  });
}

const Function* OnnxSource::function(std::string_view domain, std::string_view name) {
  if (!collected_) collectFunctions();
  if (messages_.empty()) return nullptr;
  std::string key(domain);
  key.append("/").append(name);
  const auto message = messages_.find(key);
  if (message == messages_.end()) return nullptr;
  const auto [place, fresh] = read_.try_emplace(std::move(key));
  if (!fresh) return place->second == nullptr ? nullptr : &place->second->function;
  auto read = std::make_shared<Read>();
  std::string graph;
  std::string imports;
  Opsets opsets;
  onnx::Arena arena;
  try {
    appendBody(numbers::kGraphName, name, &graph);
    Field field;
    for (Fields fields(message->second); fields.next(&field);) {
      if (field.type != onnx::kBytes) continue;
      std::string value;
      switch (field.number) {
        case 7:
          appendBody(numbers::kNode, field.body, &graph);
          break;
        case 4:
        case 5:
          appendBody(numbers::kValueName, field.body, &value);
          appendBody(field.number == 4 ? numbers::kInput : numbers::kOutput, value, &graph);
          break;
        case 9: {
          appendBody(numbers::kOpsetImport, field.body, &imports);
          std::string set;
          int64_t version = 0;
          Field part;
          for (Fields parts(field.body); parts.next(&part);) {
            if (part.number == numbers::kSetDomain && part.type == onnx::kBytes) set = part.body;
            if (part.number == numbers::kSetVersion) version = static_cast<int64_t>(part.value);
          }
          opsets[set == "ai.onnx" ? "" : set] = version;
          break;
        }
        case 11: {
          const onnx::Attribute attribute = onnx::readAttribute(field.body, &arena);
          if (attribute.isGraph()) break;
          read->function.defaults[std::string(attribute.name)] =
              onnx::attributeText(attribute, "", 0, 0, &arena);
          break;
        }
        default:
          break;
      }
    }
    appendVarint(numbers::kIrVersion << 3U, &read->message);
    appendVarint(10, &read->message);
    read->message += imports;
    appendBody(numbers::kGraph, graph, &read->message);
    read->model = onnx::readModel(read->message);
    std::shared_ptr<const Graph> shared = std::move(read->model.graph);
    read->graph = shared;
    read->source = std::make_unique<OnnxSource>(
        std::make_shared<const onnx::Originals>(read->message, read->model, shared));
  } catch (const std::exception&) {  // a body that cannot be read: nothing is known of its results
    return nullptr;
  }
  read->function.graph = read->graph.get();
  read->function.opsets = std::move(opsets);
  OnnxSource* const source = read->source.get();
  read->function.describe = [source](const Node& node) { return source->describe(node); };
  place->second = std::move(read);
  return &place->second->function;
}

Settings OnnxSource::settings(Opsets opsets, bool with_stated) {
  Settings made;
  made.opsets = std::move(opsets);
  made.describe = [this](const Node& node) { return describe(node); };
  if (with_stated) {
    made.stated = [this](const Node& node, std::size_t output) { return stated(node, output); };
  }
  made.function = [this](std::string_view domain, std::string_view name) {
    return function(domain, name);
  };
  return made;
}

}  // namespace passlib::facts
