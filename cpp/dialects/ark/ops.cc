#include "dialects/ark/ops.h"

namespace passlib::ark {
namespace {

constexpr std::size_t kMostDimensions = 4;
constexpr int64_t kLargestSize = (int64_t{1} << 62) - 1;
constexpr std::size_t kMostArguments = 32;
constexpr std::size_t kMostMembers = 16;

enum FileKey { kRank, kWorldSize, kNodes };
enum UnitKey { kId, kProducers, kConsumers, kOps };
enum OpKey { kType, kName, kVirtual, kReads, kWrites, kResults, kArgs };
enum TensorKey { kNumber, kElementType, kShape, kStrides, kOffsets, kPadding, kBuffer };
enum BufferKey { kBufferId, kOwner, kSent, kReceived };

/// Whether JSON prints a text as it is.
bool isPlain(std::string_view text) {
  for (const char character : text) {
    if (character == '"' || character == '\\' || static_cast<unsigned char>(character) < 0x20) {
      return false;
    }
  }
  return true;
}

}  // namespace

void Ops::read() {
  SeenKeys seen;
  std::vector<std::string> others;
  json_.object([&](std::string_view key) {
    if (key == "Rank") {
      seen.add(kRank);
      rank = json_.integer();
    } else if (key == "WorldSize") {
      seen.add(kWorldSize);
      world_size = json_.integer();
    } else if (key == "Nodes") {
      seen.add(kNodes);
      json_.list([this] { readUnit(); });
    } else {
      for (const std::string& other : others) require(other != key);
      require(others.size() < kMostMembers);
      others.emplace_back(key);
      json_.valueText();
    }
  });
  json_.finish();
  require(seen.has(kRank) && seen.has(kWorldSize) && seen.has(kNodes));
}

void Ops::readUnit() {
  Unit& unit = units.emplace_back();
  SeenKeys seen;
  json_.object([&](std::string_view key) {
    if (key == "Id") {
      seen.add(kId);
      unit.id = json_.integer();
    } else if (key == "ProducerNodeIds") {
      seen.add(kProducers);
      json_.list([&] { unit.producers.push_back(json_.integer()); });
    } else if (key == "ConsumerNodeIds") {
      seen.add(kConsumers);
      json_.list([this] { json_.integer(); });
    } else if (key == "Op") {
      seen.add(kOps);
      readOp(0, true);
    } else {
      require(key == "Ops");
      seen.add(kOps);
      std::size_t position = 0;
      json_.list([&] { readOp(position++, false); });
    }
  });
  require(seen.has(kId) && seen.has(kProducers) && seen.has(kConsumers) && seen.has(kOps));
}

void Ops::readOp(std::size_t position, bool single) {
  Op& op = ops.emplace_back();
  op.unit = units.size() - 1;
  op.key = std::to_string(op.unit);
  if (!single) op.key.append(".").append(std::to_string(position));
  SeenKeys seen;
  json_.object([&](std::string_view key) {
    if (key == "Type") {
      seen.add(kType);
      op.type = json_.keptText();
    } else if (key == "Name") {
      seen.add(kName);
      op.name = json_.keptText();
    } else if (key == "IsVirtual") {
      seen.add(kVirtual);
      op.states_virtual = json_.boolean();
    } else if (key == "ReadTensors") {
      seen.add(kReads);
      readTensors(&op.reads);
    } else if (key == "WriteTensors") {
      seen.add(kWrites);
      readTensors(&op.writes);
    } else if (key == "ResultTensors") {
      seen.add(kResults);
      readTensors(&op.results);
    } else {
      require(key == "Args");
      seen.add(kArgs);
      readArguments(&op);
    }
  });
  for (const OpKey key : {kType, kName, kVirtual, kReads, kWrites, kResults, kArgs}) {
    require(seen.has(key));
  }
  require(!op.type.empty() && op.type != "null");
}

void Ops::readArguments(Op* op) {
  json_.object([&](std::string_view name) {
    require(op->arguments.size() < kMostArguments);
    std::string& text = op->arguments.emplace_back(name, "").second;
    bool found = false;
    json_.object([&](std::string_view) {
      require(!found);
      found = true;
      switch (json_.peek()) {
        case 't':
        case 'f':
          text = json_.boolean() ? "True" : "False";
          break;
        case '"':
          text = json_.text();
          break;
        case '[':
          text = "[";
          json_.list([&] {
            if (text.size() > 1) text += ',';
            text += json_.number();
          });
          text += ']';
          break;
        default:
          text = json_.number();
      }
    });
    require(found);
  });
}

void Ops::readTensors(Tensors* list) {
  json_.list([&] { list->push_back(readTensor()); });
}

int32_t Ops::readTensor() {
  Tensor tensor;
  std::size_t padding = 0;
  SeenKeys seen;
  text_ = "{";
  json_.object([&](std::string_view key) {
    appendKey(key);
    if (key == "Id") {
      seen.add(kNumber);
      tensor.id = readNumber();
    } else if (key == "DataType") {
      seen.add(kElementType);
      tensor.dtype = json_.keptText();
      require(isPlain(tensor.dtype));
      text_.append("\"").append(tensor.dtype).append("\"");
    } else if (key == "Shape") {
      seen.add(kShape);
      tensor.shape = readSizes();
    } else if (key == "Strides") {
      seen.add(kStrides);
      tensor.strides = readSizes();
    } else if (key == "Offsets") {
      seen.add(kOffsets);
      tensor.offsets = readSizes();
    } else if (key == "PaddedShape" || key == "Pads") {
      seen.add(kPadding);
      padding = readSizes().size();
    } else {
      require(key == "Buffer");
      seen.add(kBuffer);
      readBuffer(&tensor);
    }
  });
  text_ += '}';
  for (const TensorKey key :
       {kNumber, kElementType, kShape, kStrides, kOffsets, kPadding, kBuffer}) {
    require(seen.has(key));
  }
  const std::size_t count = tensor.shape.size();
  require(tensor.strides.size() == count && tensor.offsets.size() == count && padding == count);
  for (std::size_t i = 0; i < count; ++i) {
    require(tensor.shape[i] >= 1 && tensor.offsets[i] >= 0);
    require(tensor.offsets[i] + tensor.shape[i] <= tensor.strides[i]);
  }
  const auto number = static_cast<int32_t>(tensors.size());
  const int32_t known = places_.add(tensor.id, number);
  if (known != IdIndex::kNone) {
    require(tensors[static_cast<std::size_t>(known)].text == text_);
    return known;
  }
  tensor.text = text_;
  tensors.push_back(std::move(tensor));
  return number;
}

void Ops::readBuffer(Tensor* tensor) {
  SeenKeys seen;
  text_ += '{';
  json_.object([&](std::string_view key) {
    appendKey(key);
    if (key == "Id") {
      seen.add(kBufferId);
      tensor->buffer = readNumber();
    } else if (key == "Rank") {
      seen.add(kOwner);
      tensor->rank = readNumber();
    } else if (key == "SendTags") {
      seen.add(kSent);
      tensor->is_sent = readTags();
    } else {
      require(key == "RecvTags");
      seen.add(kReceived);
      tensor->is_received = readTags();
    }
  });
  text_ += '}';
  require(seen.has(kBufferId) && seen.has(kOwner));
}

bool Ops::readTags() {
  bool found = false;
  text_ += '[';
  json_.list([&] {
    if (found) text_ += ',';
    found = true;
    require(readSizes().size() == 2);
  });
  text_ += ']';
  return found;
}

void Ops::appendKey(std::string_view key) {
  if (text_.back() != '{') text_ += ',';
  text_.append("\"").append(key).append("\":");
}

int64_t Ops::readNumber() {
  const int64_t number = json_.integer();
  text_ += std::to_string(number);
  return number;
}

Sizes Ops::readSizes() {
  Sizes sizes;
  text_ += '[';
  json_.list([&] {
    if (!sizes.empty()) text_ += ',';
    sizes.push_back(readNumber());
    require(sizes.size() <= kMostDimensions);
    require(-kLargestSize <= sizes.back() && sizes.back() <= kLargestSize);
  });
  text_ += ']';
  require(!sizes.empty());
  return sizes;
}

}  // namespace passlib::ark
