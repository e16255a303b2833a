#include "model/standard.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "errors.h"
#include "header.h"
#include "library/text_file.h"
#include "model/outlining.h"

namespace passlib::model {

namespace {

using mxnet::ext::JsonVal;
using mxnet::ext::host::quoted;

std::vector<std::string> namesIn(const JsonVal& list) {
  std::vector<std::string> names;
  for (const JsonVal& item : list.list) names.push_back(item.str);
  return names;
}

StandardStep readStep(const JsonVal& object) {
  StandardStep made;
  const auto byOption = [](const JsonVal& value) {
    std::map<std::string, StandardStep::Groups> groups;
    for (const auto& [option, names] : value.map) groups[option.str] = namesIn(names);
    return groups;
  };
  for (const auto& [key, value] : object.map) {
    if (key.str == "move") made.move = value.str;
    if (key.str == "message") made.message = value.str;
    if (key.str == "keeps") made.keeps = value.str;
    if (key.str == "groups") made.groups = namesIn(value);
    if (key.str == "if") made.with = byOption(value);
    if (key.str == "unless") made.without = byOption(value);
  }
  return made;
}

/// The text of an option, or of its default; nothing if the pass does not have it.
std::optional<std::string> textOf(const Declaration& declaration, const OptionList& options,
                                  const std::string& name) {
  for (const auto& [key, text] : options) {
    if (key == name) return text;
  }
  for (const OptionDeclaration& each : declaration.options) {
    if (each.name == name) return each.default_text;
  }
  return std::nullopt;
}

int64_t numberIn(const std::string& text) {
  if (text == "True" || text == "true") return 1;
  return std::strtoll(text.c_str(), nullptr, 10);  // 0 for other words
}

/// The value of an option that is true or false, or an integer; of "option=text", whether it is
/// this text. `absent` if the pass does not have it.
int64_t valueOf(const Declaration& declaration, const OptionList& options,
                const std::string& condition, int64_t absent = 0) {
  const std::size_t end = condition.find('=');
  const std::optional<std::string> text = textOf(declaration, options, condition.substr(0, end));
  if (!text) return absent;
  if (end != std::string::npos) return *text == condition.substr(end + 1) ? 1 : 0;
  return numberIn(*text);
}

/// The options of a pass as algorithms get them.
moves::Options optionsOf(const Declaration& declaration, const OptionList& options) {
  moves::Options made;
  for (const OptionDeclaration& each : declaration.options) {
    const std::string text = *textOf(declaration, options, each.name);
    if (each.is_list) {
      made.set(each.name, listedIn({{each.name, text}}, each.name));
    } else if (each.kind == "text") {
      made.set(each.name, text);
    } else {
      made.set(each.name, numberIn(text));
    }
  }
  return made;
}

void add(const StandardStep::Groups& more, StandardStep::Groups* groups) {
  groups->insert(groups->end(), more.begin(), more.end());
}

/// The numbers of the rules of some groups, in the order of the book.
std::vector<std::size_t> rulesOf(const rules::Book& book, const StandardStep::Groups& groups) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < book.rules().size(); ++i) {
    if (std::find(groups.begin(), groups.end(), book.rules()[i].group) != groups.end())
      numbers.push_back(i);
  }
  return numbers;
}

}  // namespace

StandardPasses::StandardPasses(const std::string& folder) : folder_(folder) {
  const std::string path = folder + "/passes.json";
  try {
    JsonVal whole = JsonVal::parse(readText(path));
    std::vector<OptionList> in_functions;
    for (JsonVal& pass : whole.map.at(JsonVal("passes")).list) {
      steps_.emplace_back();
      for (const JsonVal& step : pass.map.at(JsonVal("steps")).list) {
        steps_.back().push_back(readStep(step));
      }
      in_functions.emplace_back();
      for (const auto& [option, value] : pass.map[JsonVal("in_functions")].map) {
        in_functions.back().emplace_back(option.str, value.dump());
      }
      pass.map.erase(JsonVal("steps"));
      pass.map.erase(JsonVal("in_functions"));
    }
    declarations_ = readDeclarations(whole);
    for (std::size_t i = 0; i < declarations_.size(); ++i) {
      std::size_t place = 0;
      declarations_[i].in_functions = declarations_[i].checked(in_functions[i], &place);
    }
  } catch (const std::exception& error) {
    throw LoadError("cannot read the standard passes: " + std::string(error.what()));
  }
}

const rules::Book& StandardPasses::book() const {
  std::call_once(read_, [this]() {
    std::vector<std::string> paths;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() == ".rules") paths.push_back(file.path().string());
    }
    std::sort(paths.begin(), paths.end());
    std::string text;
    for (const std::string& path : paths) text += (text.empty() ? "" : "\n") + readText(path);
    book_ = std::make_unique<rules::Book>(text, "");
  });
  return *book_;
}

std::size_t StandardPasses::numberOf(const std::string& name) const {
  const auto named = [&name](const Declaration& each) { return each.name == name; };
  const auto found = std::find_if(declarations_.begin(), declarations_.end(), named);
  if (found == declarations_.end()) throw std::out_of_range("there is no pass " + quoted(name));
  return static_cast<std::size_t>(found - declarations_.begin());
}

std::optional<std::string> StandardPasses::changedMessage(std::size_t number, onnx::Bytes model,
                                                          const OptionList& options,
                                                          const SinceVersion& since) const {
  const Declaration& declaration = declarations_[number];
  const std::string& name = steps_[number].front().message;
  const auto text = [&](const char* option) { return *textOf(declaration, options, option); };
  if (name == "inlineFunctions") {
    return inlineFunctions(model, listedIn({{"names", text("names")}}, "names"), since);
  }
  if (name == "outline") {
    return outline(model, static_cast<std::size_t>(numberIn(text("least"))), text("domain"));
  }
  throw PassError("there is no algorithm " + quoted(name));
}

void StandardPasses::run(Edit* edit, std::size_t number, const OptionList& options,
                         const rules::Assumptions& assumptions, const Edit::Fold& fold) const {
  const Declaration& declaration = declarations_[number];
  const moves::Options given = optionsOf(declaration, options);
  rules::Assumptions assumed = assumptions;
  if (valueOf(declaration, options, "large_sizes", 1) == 0) assumed.large_sizes = false;
  static const NodeNames none;
  std::shared_ptr<const NodeNames> kept;
  for (const StandardStep& step : steps_[number]) {
    if (!step.keeps.empty() && kept == nullptr) kept = edit->keptNames(step.keeps);
    const NodeNames& stays = step.keeps.empty() ? none : *kept;
    if (step.move.empty()) {
      StandardStep::Groups groups = step.groups;
      for (const auto& [option, more] : step.with) {
        if (valueOf(declaration, options, option) != 0) add(more, &groups);
      }
      for (const auto& [option, more] : step.without) {
        if (valueOf(declaration, options, option) == 0) add(more, &groups);
      }
      if (groups.empty()) continue;
      edit->apply(book(), rulesOf(book(), groups), assumptions, stays, fold);
    } else if (!edit->move(step.move, given, assumed, stays)) {
      throw PassError("there is no algorithm " + quoted(step.move));
    }
  }
}

}  // namespace passlib::model
