#include "onnx/external/places.h"

#include <algorithm>

#include "errors.h"
#include "onnx/parts/attribute.h"
#include "onnx/text/strings.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// Numbers of more digits may not fit into 64 bits.
constexpr std::size_t kMostDigits = 19;

std::pair<Bytes, Bytes> readEntry(Bytes entry) {
  std::pair<Bytes, Bytes> read;
  forEachBody(entry, kKey, [&read](Bytes body) { read.first = body; });
  forEachBody(entry, kValue, [&read](Bytes body) { read.second = body; });
  return read;
}

void appendEntry(Bytes key, Bytes value, std::string* tensor) {
  std::string entry;
  appendBody(kKey, key, &entry);
  appendBody(kValue, value, &entry);
  appendBody(kExternalData, entry, tensor);
}

/// Whether a field of a tensor has elements, or states what they are a part of.
bool isOfElements(uint32_t number) {
  switch (number) {
    case kSegment:
    case kFloatData:
    case kInt32Data:
    case kStringData:
    case kInt64Data:
    case kRawData:
    case kDoubleData:
    case kUint64Data:
      return true;
    default:
      return false;
  }
}

uint64_t readPlaceNumber(Bytes key, Bytes text, const std::string& what) {
  const bool digits =
      !text.empty() && text.size() <= kMostDigits &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) {
    throw FormatError(what + ": external data with " + std::string(key) + " " + shown(text));
  }
  uint64_t number = 0;
  for (const char c : text) number = number * 10 + static_cast<uint64_t>(c - '0');
  return number;
}

}  // namespace

std::vector<std::pair<Bytes, Bytes>> placeEntries(Bytes tensor) {
  std::vector<std::pair<Bytes, Bytes>> entries;
  forEachBody(tensor, kExternalData,
              [&entries](Bytes entry) { entries.push_back(readEntry(entry)); });
  return entries;
}

DataPlace placeOf(Bytes tensor, const std::string& what) {
  DataPlace place;
  std::optional<Bytes> offset;
  std::optional<Bytes> length;
  for (const auto& [key, value] : placeEntries(tensor)) {
    if (key == "location") place.location = value;
    if (key == "offset") offset = value;
    if (key == "length") length = value;
  }
  if (place.location.empty()) throw FormatError(what + ": external data without a location");
  if (offset) place.offset = readPlaceNumber("offset", *offset, what);
  if (length) place.length = readPlaceNumber("length", *length, what);
  return place;
}

std::string withPlace(Bytes tensor, const DataPlace& place) {
  std::vector<std::pair<Bytes, std::string>> left = {{"location", place.location},
                                                     {"offset", std::to_string(place.offset)}};
  if (place.length) left.emplace_back("length", std::to_string(*place.length));
  std::string made;
  Field field;
  for (Fields fields(tensor); fields.next(&field);) {
    if (field.number == kDataLocation || isOfElements(field.number)) continue;
    if (field.number != kExternalData || field.type != kBytes) {
      made.append(field.start, field.end);
      continue;
    }
    const Bytes key = readEntry(field.body).first;
    if (key == "checksum") continue;
    const auto found = std::find_if(left.begin(), left.end(),
                                    [key](const auto& each) { return each.first == key; });
    if (found != left.end()) {
      appendEntry(key, found->second, &made);
      left.erase(found);
    } else if (key != "location" && key != "offset" && key != "length") {
      made.append(field.start, field.end);
    }
  }
  for (const auto& [key, value] : left) appendEntry(key, value, &made);
  appendNumber(kDataLocation, 1, &made);
  return made;
}

std::string withoutPlace(Bytes tensor) {
  std::string made;
  const auto keep = [](const Field& field) {
    return field.number != kExternalData && field.number != kDataLocation &&
           !isOfElements(field.number);
  };
  appendFields(tensor, keep, &made);
  return made;
}

std::string withLocation(Bytes tensor, const std::string& location) {
  std::string made;
  Field field;
  for (Fields fields(tensor); fields.next(&field);) {
    const bool is_entry = field.number == kExternalData && field.type == kBytes;
    const auto entry = is_entry ? readEntry(field.body) : std::pair<Bytes, Bytes>();
    if (entry.first == "location" && plainPath(std::string(entry.second)) != location) {
      appendEntry(entry.first, location, &made);
    } else {
      made.append(field.start, field.end);
    }
  }
  return made;
}

std::string plainPath(const std::string& path) {
  std::string made;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const Bytes part = Bytes(path).substr(start, end - start);
    if (!part.empty() && part != ".") {
      if (!made.empty()) made += '/';
      made += part;
    }
    start = end + 1;
  }
  return made.empty() ? "." : made;
}

}  // namespace passlib::onnx
