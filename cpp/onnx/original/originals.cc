#include "onnx/original/originals.h"

#include <algorithm>
#include <utility>

#include "onnx/parts/long_attribute.h"
#include "onnx/wire/arena.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

constexpr std::size_t kLongestPosition = 12;

/// How the identifiers of initializers of the main graph begin.
constexpr Bytes kInitializerId = "initializer.";

void readItems(OriginalGraph* graph) {
  Field field;
  for (Fields fields(graph->message); fields.next(&field);) {
    if (field.type != kBytes) continue;
    switch (field.number) {
      case numbers::kNode:
        graph->nodes.push_back(field.body);
        break;
      case numbers::kInitializer:
        graph->initializers.push_back(field.body);
        break;
      case numbers::kInput:
        graph->inputs.push_back(field.body);
        break;
      case numbers::kOutput:
        graph->outputs.push_back(field.body);
        break;
      case numbers::kValueInfo:
        graph->values.push_back(field.body);
        break;
      case numbers::kAnnotation:
        graph->annotations.push_back(field.body);
        break;
      case numbers::kSparseInitializer:
        graph->sparse.push_back(field.body);
        break;
      default:
        break;
    }
  }
}

/// Lists the inputs by name if some have defaults. Models of the first versions have an input for
/// each initializer.
void listInputs(OriginalGraph* graph) {
  bool tied = false;
  for (const Initializer& each : graph->level.initializers) tied = tied || each.has_input;
  for (const auto& [name, has_input] : graph->level.sparse) tied = tied || has_input;
  if (!tied) return;
  for (uint32_t i = 0; i < graph->inputs.size(); ++i) {
    graph->input_numbers.insert(bodyOf(graph->inputs[i], numbers::kValueName), i);
  }
}

/// Whether an identifier is a number as it is printed: one of an operator of the main graph.
bool isNumber(Bytes id) {
  const auto is_digit = [](char each) { return each >= '0' && each <= '9'; };
  return !id.empty() && std::all_of(id.begin(), id.end(), is_digit) &&
         (id.size() == 1 || id.front() != '0');
}

}  // namespace

Bytes bodyOf(Bytes message, uint32_t number) {
  Bytes found = "";
  forEachBody(message, number, [&](Bytes body) { found = body; });
  return found;
}

bool parsePosition(Bytes text, std::size_t* position) {
  if (text.empty() || text.size() >= kLongestPosition) return false;
  std::size_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    value = value * 10 + static_cast<std::size_t>(digit - '0');
  }
  *position = value;
  return true;
}

Bytes Original::message() const {
  switch (what) {
    case kInput:
      return graph->inputs[number];
    case kInitializer:
      return graph->initializers[number];
    case kSparse:
      return graph->sparse[number];
    default:
      return graph->nodes[number];
  }
}

Bytes Original::nameInFile() const {
  switch (what) {
    case kInitializer:
      return graph->level.initializers[number].tensor.name;
    case kConstant:
      return name(record().outputs, 0);
    default:
      return node->name;
  }
}

Originals::Originals(Bytes file, const Model& read, std::shared_ptr<const Graph> graph)
    : model_(file),
      graph_(std::move(graph)),
      ir_version_(read.ir_version),
      levels_(read.levels),
      elsewhere_(read.elsewhere) {
  for (std::size_t number = 0; number < levels_->all.size(); ++number) {
    OriginalGraph& made = graphs_.emplace_back(levels_->places[number], levels_->all[number]);
    readItems(&made);
    listInputs(&made);
  }
  operators_.resize(graphs_.front().nodes.size(), 0);
  initializers_.resize(graphs_.front().initializers.size(), 0);
  for (const OriginalGraph& made : graphs_) by_place_.insert(made.place, &made);
  std::vector<const Graph*> built(graphs_.size(), nullptr);
  built[0] = graph_.get();
  for (std::size_t number = 0; number < graphs_.size(); ++number) {
    if (built[number] != nullptr) collect(graphs_[number], *built[number], &built);
  }
}

const Elsewhere* Originals::elsewhere(Bytes message) const {
  const auto found = elsewhere_.find(message.data());
  return found == elsewhere_.end() ? nullptr : &found->second;
}

const OriginalGraph* Originals::findGraph(Bytes place) const {
  if (place.empty()) return nullptr;
  const OriginalGraph* const* found = by_place_.find(place);
  return found == nullptr ? nullptr : *found;
}

void Originals::collect(const OriginalGraph& original, const Graph& graph,
                        std::vector<const Graph*>* nested) {
  constexpr std::size_t kSteps = 12;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node* const node = graph.nodes[i];
    if (i + kSteps < graph.nodes.size()) {
      __builtin_prefetch(&graph.nodes[i + kSteps]->op);
      __builtin_prefetch(&graph.nodes[i + kSteps]->attrs);
    }
    const Bytes id = attributeOf(*node, keys::kId);
    if (id.data() == nullptr) continue;  // an omitted input, or a value from outside
    add(original, node, id);
    const Original& made = all_.back();
    if (made.what != Original::kOperator) continue;
    const NodeRecord& record = made.record();
    std::size_t subgraph = 0;
    for (uint32_t k = 0; k < record.attributes.count; ++k) {
      const Range& levels = original.level.attributes[record.attributes.first + k].levels;
      for (uint32_t n = 0; n < levels.count; ++n) {
        (*nested)[levels.first + n] = node->subgraphs[subgraph++];
      }
    }
  }
}

void Originals::add(const OriginalGraph& original, const Node* node, Bytes id) {
  const Bytes rest = id.substr(original.level.prefix.size());
  const std::size_t dot = rest.rfind('.');
  const Bytes what = dot == Bytes::npos ? Bytes("") : rest.substr(0, dot);
  std::size_t number = 0;
  parsePosition(dot == Bytes::npos ? rest : rest.substr(dot + 1), &number);
  Original made{&original, node, static_cast<uint32_t>(number), static_cast<uint32_t>(all_.size()),
                Original::kOperator};
  if (what == "input") {
    made.what = Original::kInput;
  } else if (what == "initializer") {
    made.what = Original::kInitializer;
  } else if (what == "sparse") {
    made.what = Original::kSparse;
  } else if (isVariable(*node)) {
    made.what = Original::kConstant;
  }
  const std::size_t counts[] = {original.nodes.size(), original.inputs.size(),
                                original.initializers.size(), original.sparse.size(),
                                original.nodes.size()};
  if (number >= counts[made.what]) throw GraphError("the graph is not that of its file");
  made.referred = made.isTensor() && attributeOf(*node, keys::kDefault).data() != nullptr &&
                  references().has(made.nameInFile());
  all_.push_back(made);
  const auto [list, place] = placeOf(id);
  if (list != nullptr) {
    (this->*list)[place] = made.index + 1;
  } else {
    *by_id_.insert(id, made.index).first = made.index;
  }
}

std::pair<std::vector<uint32_t> Originals::*, std::size_t> Originals::placeOf(Bytes id) const {
  const bool is_initializer = id.substr(0, kInitializerId.size()) == kInitializerId;
  const auto list = is_initializer ? &Originals::initializers_ : &Originals::operators_;
  const Bytes text = is_initializer ? id.substr(kInitializerId.size()) : id;
  std::size_t number = 0;
  const bool known =
      isNumber(text) && parsePosition(text, &number) && number < (this->*list).size();
  return {known ? list : nullptr, number};
}

const Original* Originals::find(Bytes id) const {
  const auto [list, place] = placeOf(id);
  if (list != nullptr) {
    const uint32_t number = (this->*list)[place];
    return number == 0 ? nullptr : &all_[number - 1];
  }
  const uint32_t* index = by_id_.find(id);
  return index == nullptr ? nullptr : &all_[*index];
}

const Original* Originals::operatorNamed(Bytes name) const {
  if (!operator_names_) {
    operator_names_.emplace(all_.size());
    for (const Original& each : all_) {
      if (each.what == Original::kOperator) operator_names_->insert(each.node->name, each.index);
    }
  }
  const uint32_t* index = operator_names_->find(name);
  return index == nullptr ? nullptr : &all_[*index];
}

std::vector<const Original*> Originals::referred() const {
  std::vector<const Original*> found;
  if (references().all.empty()) return found;
  for (const Original& each : all_) {
    if (each.referred && each.graph == &main()) found.push_back(&each);
  }
  return found;
}

bool Originals::refersToResults() const {
  NameMap<bool> wanted;
  for (const auto* list : {&references().training, &references().parameters}) {
    for (const Bytes name : *list) wanted.insert(name, true);
  }
  if (wanted.empty()) return false;
  return std::any_of(all_.begin(), all_.end(), [&](const Original& each) {
    if (each.what != Original::kOperator || each.graph != &main()) return false;
    const Range& outputs = each.record().outputs;
    for (uint32_t i = 0; i < outputs.count; ++i) {
      if (wanted.find(each.name(outputs, i)) != nullptr) return true;
    }
    return false;
  });
}

void Originals::prefetchAfter(const Original& original) const {
  constexpr std::size_t kSteps = 12;
  if (original.index + kSteps >= all_.size()) return;
  __builtin_prefetch(&all_[original.index + kSteps].node->name);
  __builtin_prefetch(all_[original.index + kSteps / 2].node->name.data());
}

const NameMap<bool>& Originals::names() const {
  if (!names_) {
    names_.emplace(all_.size());
    for (const Original& each : all_) {
      if (each.what != Original::kOperator) {
        names_->insert(each.node->name, true);
        continue;
      }
      const Range& outputs = each.record().outputs;
      for (uint32_t i = 0; i < outputs.count; ++i) {
        const Bytes name = each.name(outputs, i);
        if (!name.empty()) names_->insert(name, true);
      }
    }
  }
  return *names_;
}

const Attribute* Originals::summarised(Bytes summary) const {
  if (!summarised_) {
    summarised_.emplace();
    for (const Original& each : all_) {
      if (each.what != Original::kOperator) continue;
      const Range& range = each.record().attributes;
      for (uint32_t i = 0; i < range.count; ++i) {
        const Attribute& attribute = each.graph->level.attributes[range.first + i].attribute;
        if (!isLong(attribute)) continue;
        const Bytes text = attributeOf(*each.node, attribute.name);
        if (isSummary(text)) summarised_->insert(text, &attribute);
      }
    }
  }
  const Attribute* const* const found = summarised_->find(summary);
  return found == nullptr ? nullptr : *found;
}

}  // namespace passlib::onnx
