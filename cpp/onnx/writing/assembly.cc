#include "onnx/writing/assembly.h"

#include <algorithm>

#include "onnx/parts/long_attribute.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/strip.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

bool sameItems(const std::vector<Bytes>& items, const std::vector<Bytes>& old) {
  return std::equal(items.begin(), items.end(), old.begin(), old.end(),
                    [](Bytes left, Bytes right) { return left.data() == right.data(); });
}

bool sameInitializers(const WrittenGraph& written) {
  const std::vector<Bytes>& old = written.file->initializers;
  return std::equal(written.initializers.begin(), written.initializers.end(), old.begin(),
                    old.end(), [](const WrittenInitializer& each, Bytes was) {
                      return each.original && each.message.data() == was.data();
                    });
}

/// One of the lists of a graph.
struct List {
  uint32_t number;
  const std::vector<Bytes>* items;
  bool same;
};

class Assembler {
 public:
  Assembler(const WrittenGraph& written, Content content)
      : written_(written),
        content_(content),
        same_initializers_(content == kWhole && sameInitializers(written)) {
    const OriginalGraph& file = *written.file;
    const auto add = [&](uint32_t number, const std::vector<Bytes>& items,
                         const std::vector<Bytes>& old) {
      lists_.push_back({number, &items, sameItems(items, old)});
    };
    add(kNode, written.nodes, file.nodes);
    lists_.back().same = lists_.back().same && content != kOutline;
    add(kInput, written.inputs, file.inputs);
    add(kOutput, written.outputs, file.outputs);
    add(kSparseInitializer, written.sparse, file.sparse);
    add(kValueInfo, written.values, file.values);
    add(kAnnotation, written.annotations, file.annotations);
    lists_.push_back({kInitializer, nullptr, same_initializers_});
  }

  Pieces assemble() {
    if (written_.file->message.data() == nullptr) appendBody(kGraphName, "graph", out_.text());
    Field field;
    for (Fields fields(written_.file->message); fields.next(&field);) {
      List* list = field.type == kBytes ? find(field.number) : nullptr;
      if (list == nullptr || (list->same && !isDone(*list))) {
        out_.append(wholeField(field));
      } else {
        append(list);
      }
    }
    for (List& list : lists_) {
      if (!list.same) append(&list);
    }
    return std::move(out_);
  }

 private:
  List* find(uint32_t number) {
    const auto found = std::find_if(lists_.begin(), lists_.end(),
                                    [number](const List& list) { return list.number == number; });
    return found == lists_.end() ? nullptr : &*found;
  }

  bool isDone(const List& list) const {
    return std::find(done_.begin(), done_.end(), list.number) != done_.end();
  }

  void append(List* list) {
    if (isDone(*list)) return;
    done_.push_back(list->number);
    if (list->items == nullptr) {
      for (const WrittenInitializer& each : written_.initializers) appendInitializer(each);
      return;
    }
    if (list->number == kNode) return appendNodes(*list->items);
    for (const Bytes item : *list->items) {
      appendHead(list->number, item.size(), out_.text());
      out_.append(item);
    }
  }

  void appendNodes(const std::vector<Bytes>& nodes) {
    for (const Bytes node : nodes) {
      const auto whole = written_.whole->find(node.data());
      std::string rest;
      if (content_ == kOutline && cutNode(node, &rest)) {
        appendBody(kNode, rest, out_.text());
      } else if (content_ != kOutline && whole != written_.whole->end()) {
        appendHead(kNode, whole->second.size(), out_.text());
        out_.append(whole->second);
      } else {
        appendHead(kNode, node.size(), out_.text());
        out_.append(node);
      }
    }
  }

  void appendInitializer(const WrittenInitializer& each) {
    if (content_ != kWhole && each.aside && each.original && !each.data.empty()) {
      Field raw;
      findPayload(each.message, &raw);
      const auto before = static_cast<std::size_t>(raw.start - each.message.data());
      const Bytes after = each.message.substr(before + wholeField(raw).size());
      appendHead(kInitializer, before + after.size(), out_.text());
      out_.append(each.message.substr(0, before));
      out_.append(after);
      return;
    }
    const std::size_t elements =
        each.computed != nullptr ? each.computed->size() : each.data.size();
    const bool with_data = content_ == kWhole && !each.original && elements != 0;
    std::string head;
    if (with_data) appendHead(kRawData, elements, &head);
    const std::size_t size = each.message.size() + (with_data ? head.size() + elements : 0);
    appendHead(kInitializer, size, out_.text());
    out_.append(each.message);
    if (with_data) {
      out_.append(head);
      if (each.computed != nullptr) {
        out_.append(each.computed);
      } else {
        out_.append(each.data);
      }
    }
  }

  const WrittenGraph& written_;
  Content content_;
  bool same_initializers_;
  std::vector<List> lists_;
  std::vector<uint32_t> done_;
  Pieces out_;
};

}  // namespace

bool isSame(const WrittenGraph& written) {
  const OriginalGraph& file = *written.file;
  return sameItems(written.nodes, file.nodes) && sameItems(written.inputs, file.inputs) &&
         sameItems(written.outputs, file.outputs) && sameItems(written.sparse, file.sparse) &&
         sameItems(written.values, file.values) &&
         sameItems(written.annotations, file.annotations) && sameInitializers(written);
}

Pieces assembleGraph(const WrittenGraph& written, Content content) {
  return Assembler(written, content).assemble();
}

}  // namespace passlib::onnx
