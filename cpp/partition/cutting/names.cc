#include "partition/cutting/names.h"

#include "graph/attributes.h"
#include "graph/text_hash.h"

namespace passlib {
namespace {

/// Sets `kind` to operator, attributes and numbers: those for which a suffix holds.
void describeKind(const NodeEntry& entry, std::string* kind) {
  const Node& node = *entry.node;
  const int counts[] = {entry.entry, node.num_outputs};
  std::size_t words = 0;
  if (const uint32_t* packed = mxnet::ext::host::AttributeTexts(node.attrs).packed(&words)) {
    // As kindOf does, in memory that was used before.
    *kind = node.op;
    (*kind += '\0').append(reinterpret_cast<const char*>(packed), words * sizeof(uint32_t));
  } else {
    *kind = kindOf(node);
  }
  kind->append(reinterpret_cast<const char*>(counts), sizeof counts);
}

}  // namespace

std::string OutputNames::name(const NodeEntry& entry) {
  describeKind(entry, &kind_);
  if (last_ == nullptr || last_->first != kind_) {
    auto found = suffixes_.find(kind_);
    if (found == suffixes_.end()) {
      found = suffixes_.emplace(kind_, suffix_(*entry.node, entry.entry)).first;
    }
    last_ = &*found;
  }
  return entry.node->name + last_->second;
}

void TextCounts::clear() {
  used_ = 0;
  if (++round_ != 0) return;
  slots_.assign(slots_.size(), Slot());
  round_ = 1;
}

int& TextCounts::operator[](std::string_view text) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  const std::size_t hash = TextHash()(text);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t pos = hash & mask;; pos = (pos + 1) & mask) {
    Slot& slot = slots_[pos];
    if (slot.round != round_) {
      slot = Slot{round_, static_cast<uint32_t>(used_), hash};
      return add(text);
    }
    auto& [known, count] = texts_[slot.number];
    if (slot.hash == hash && known == text) return count;
  }
}

int& TextCounts::add(std::string_view text) {
  if (used_ == texts_.size()) texts_.emplace_back();
  auto& [known, count] = texts_[used_++];
  known = text;
  return count = 0;
}

void TextCounts::grow() {
  std::vector<Slot> larger(slots_.empty() ? 16 : 2 * slots_.size());
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.round != round_) continue;
    std::size_t pos = slot.hash & mask;
    while (larger[pos].round == round_) pos = (pos + 1) & mask;
    larger[pos] = slot;
  }
  slots_ = std::move(larger);
}

}  // namespace passlib
