#include "onnx/wire/strip.h"

#include <cstring>

#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

/// Raw data of fewer bytes stays in its message.
constexpr std::size_t kSmallest = 4096;

/// Field numbers of a model stay below this, unlike those in random bytes.
constexpr uint32_t kMostNumbers = 1 << 10;

/// Copies what lies between the fields that are written anew.
class Copier {
 public:
  explicit Copier(Bytes source) : written_(source.data()), end_(source.data() + source.size()) {}
  void copyUpTo(const char* place, std::string* out) {
    out->append(written_, static_cast<std::size_t>(place - written_));
  }
  void skipTo(const char* place) { written_ = place; }
  void finish(std::string* out) { copyUpTo(end_, out); }

 private:
  const char* written_;
  const char* end_;
};

/// Appends a graph without its payloads. The count of initializers continues from graph to graph,
/// because repeated messages are merged.
void stripGraph(Bytes graph, CutNode cut_node, std::size_t* count, Stripped* out,
                std::string* target) {
  Copier copier(graph);
  Field field;
  for (Fields fields(graph); fields.next(&field);) {
    std::string cut;
    if (cut_node != nullptr && field.number == numbers::kNode && field.type == kBytes &&
        cut_node(field.body, &cut)) {
      copier.copyUpTo(field.start, target);
      copier.skipTo(field.end);
      appendBody(field.number, cut, target);
    }
    if (field.number != numbers::kInitializer || field.type != kBytes) continue;
    Field raw;
    if (field.body.size() >= kSmallest && findPayload(field.body, &raw)) {
      out->payloads.push_back({*count, raw.body});
      Copier tensor(field.body);
      std::string rest;
      tensor.copyUpTo(raw.start, &rest);
      tensor.skipTo(raw.end);
      tensor.finish(&rest);
      copier.copyUpTo(field.start, target);
      copier.skipTo(field.end);
      appendBody(field.number, rest, target);
    }
    ++*count;
  }
  copier.finish(target);
}

}  // namespace

bool findPayload(Bytes tensor, Field* raw) {
  if (tensor.size() < kSmallest) return false;
  int count = 0;
  Field field;
  for (Fields fields(tensor); fields.next(&field);) {
    if (field.number != numbers::kRawData) continue;
    ++count;
    *raw = field;
  }
  return count == 1 && raw->type == kBytes && raw->body.size() >= kSmallest;
}

bool isModel(Bytes data) {
  bool graph = false;
  bool version = false;
  try {
    Field field;
    for (Fields fields(data); fields.next(&field);) {
      if (field.number >= kMostNumbers || field.type == kGroup) return false;
      const bool is_graph = field.number == numbers::kGraph;
      const bool is_import = field.number == numbers::kOpsetImport;
      const bool is_version = field.number == numbers::kIrVersion;
      if ((is_graph || is_import) && field.type != kBytes) return false;
      if (is_version && field.type != kVarint) return false;
      graph = graph || is_graph;
      version = version || is_import || is_version;
    }
  } catch (const WireError&) {
    return false;
  }
  return graph && version;
}

Stripped stripModel(Bytes data, CutNode cut_node) {
  Stripped result;
  Copier copier(data);
  std::size_t count = 0;
  Field field;
  for (Fields fields(data); fields.next(&field);) {
    if (field.number != numbers::kGraph || field.type != kBytes) continue;
    std::string graph;
    stripGraph(field.body, cut_node, &count, &result, &graph);
    copier.copyUpTo(field.start, &result.message);
    copier.skipTo(field.end);
    appendBody(field.number, graph, &result.message);
  }
  copier.finish(&result.message);
  return result;
}

}  // namespace passlib::onnx
