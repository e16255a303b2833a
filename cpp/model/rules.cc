#include "model/rules.h"

#include <algorithm>
#include <utility>

#include "errors.h"
#include "library/text_file.h"

namespace passlib::model {

namespace {

using mxnet::ext::host::quoted;

bool isAmong(const std::vector<std::string>& names, const rules::Rule& rule) {
  return std::any_of(names.begin(), names.end(), [&rule](const std::string& name) {
    return name == rule.name || (!rule.group.empty() && name == rule.group);
  });
}

}  // namespace

std::shared_ptr<const RulesFile> RulesFile::open(const std::string& path) {
  return std::make_shared<const RulesFile>(readText(path), path);
}

Declaration RulesFile::declaration(const std::string& name) const {
  const std::vector<rules::Rule>& all = book_.rules();
  Declaration made;
  made.name = name;
  made.declared = true;
  made.enters_functions = true;
  made.description = "Apply " + std::to_string(all.size()) + " rules of " + file_;
  made.dialects = {"onnx"};
  made.exact = std::all_of(all.begin(), all.end(), [](const auto& rule) { return rule.exact; });
  OptionDeclaration only;
  only.name = "only";
  only.kind = "text";
  only.is_list = true;
  only.default_text = "[]";
  only.description = "Apply these rules only.";
  OptionDeclaration skip = only;
  skip.name = "skip";
  skip.description = "Skip these rules.";
  OptionDeclaration target = only;
  target.name = "target";
  target.is_list = false;
  target.default_text = "";
  target.description = "Apply rules for this target, too.";
  made.options = {only, skip, target};
  return made;
}

std::vector<std::size_t> RulesFile::chosen(const OptionList& options) const {
  const std::vector<std::string> only = listedIn(options, "only");
  const std::vector<std::string> skip = listedIn(options, "skip");
  std::string target;
  for (const auto& [key, text] : options) {
    if (key == "target") target = text;
  }
  const std::vector<rules::Rule>& all = book_.rules();
  for (const auto* names : {&only, &skip}) {
    for (const std::string& name : *names) {
      const bool known = std::any_of(all.begin(), all.end(), [&name](const rules::Rule& rule) {
        return isAmong({name}, rule);
      });
      if (!known) throw PassError("there is no rule or group of rules " + quoted(name));
    }
  }
  std::vector<std::size_t> made;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const rules::Rule& rule = all[i];
    const auto breaks = [&target](const std::string& fusion) {
      return fusion.compare(0, target.size() + 1, target + ".") == 0;
    };
    if (!rule.target.empty() && rule.target != target) continue;
    if (!target.empty() && std::any_of(rule.breaks.begin(), rule.breaks.end(), breaks)) continue;
    if ((only.empty() || isAmong(only, rule)) && !isAmong(skip, rule)) made.push_back(i);
  }
  return made;
}

void RulesFile::apply(Edit* edit, const OptionList& options) const {
  edit->apply(book_, chosen(options), {}, {}, nullptr);
}

}  // namespace passlib::model
