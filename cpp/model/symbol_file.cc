#include "model/symbol_file.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "errors.h"
#include "header.h"
#include "library/text_file.h"
#include "model/folder.h"
#include "mxnet/operators.h"
#include "mxnet/params.h"
#include "mxnet/reading.h"
#include "rules/known.h"

namespace passlib::model {

namespace {

using mxnet::ext::JsonVal;

constexpr const char* kSymbol = "-symbol.json";
constexpr const char* kParams = ".params";

/// How many bytes at the end of a file are searched for its version.
constexpr std::size_t kTail = 4096;

/// Removes the end of a text if it is this one.
bool removeEnd(const std::string& end, std::string* text) {
  if (text->size() < end.size() || text->compare(text->size() - end.size(), end.size(), end) != 0) {
    return false;
  }
  text->erase(text->size() - end.size());
  return true;
}

/// Reads `-0007.params` at a place of a name: its number, and its length in bytes.
std::optional<std::pair<int64_t, std::size_t>> epochAt(const std::string& name, std::size_t place) {
  if (place >= name.size() || name[place] != '-') return std::nullopt;
  const std::size_t end = name.find_first_not_of("0123456789", place + 1);
  if (end == std::string::npos) return std::nullopt;
  const std::size_t digits = end - place - 1;
  if (digits < 4 || digits > 18 || name.compare(end, 7, kParams) != 0) return std::nullopt;
  return std::pair(std::strtoll(name.c_str() + place + 1, nullptr, 10), digits + 8);
}

/// The names of a model by any of its files, and the epoch in the name.
std::pair<SymbolNames, std::optional<int64_t>> namesOfAny(const std::string& path) {
  for (std::size_t place = 0; place < path.size(); ++place) {
    const auto found = epochAt(path, place);
    if (!found) continue;
    if (place + found->second < path.size()) break;
    const std::string prefix = path.substr(0, place);
    return {{prefix, prefix + kSymbol}, found->first};
  }
  return {symbolNames(path), std::nullopt};
}

std::string nameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> namesIn(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (open == nullptr) return names;
  while (const dirent* const entry = ::readdir(open.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

/// The identity and the state of a file, which differ for one that replaces it; null if there is
/// none.
JsonVal stateOf(const std::string& path) {
  struct stat state{};
  if (::stat(path.c_str(), &state) != 0) return JsonVal::null();
  JsonVal made(mxnet::ext::LIST);
  made.list = {
      JsonVal::integer(static_cast<int64_t>(state.st_ino)),
      JsonVal::integer(static_cast<int64_t>(state.st_size)),
      JsonVal::integer(int64_t{state.st_mtim.tv_sec} * 1000000000 + state.st_mtim.tv_nsec)};
  return made;
}

/// The states of files before a save and after it, by their names, that a stamp notes.
std::optional<JsonVal> readStamp(const std::string& path) {
  constexpr off_t kLargest = 1 << 16;
  struct stat state{};
  if (::stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode) || state.st_size > kLargest) {
    return std::nullopt;
  }
  try {
    JsonVal stamp = JsonVal::parse(readText(path));
    if (stamp.type != mxnet::ext::MAP) return std::nullopt;
    for (const auto& [name, states] : stamp.map) {
      if (states.type != mxnet::ext::LIST || states.list.size() != 2) return std::nullopt;
    }
    return stamp;
  } catch (const std::exception&) {
    return std::nullopt;  // nothing that passlib wrote
  }
}

/// Throws FormatError if an interrupted save left the files of a model half replaced.
void requireWhole(const std::string& symbol) {
  for (const std::string& path : stampsOf(symbol)) {
    const std::optional<JsonVal> stamp = readStamp(path);
    if (!stamp) continue;
    bool old = true;
    bool made = true;
    for (const auto& [name, states] : stamp->map) {
      const JsonVal now = stateOf(folderOf(symbol) + "/" + name.str);
      old = old && now == states.list[0];
      made = made && now == states.list[1];
    }
    if (old || made) continue;
    const std::string stem = nameOf(path).substr(0, nameOf(path).rfind('.'));
    throw FormatError(symbol +
                      ": a save was interrupted, and the files of this model are now of two saves; "
                      "save the model again, or put together what belongs together (its other "
                      "files are " +
                      stem + "-*.tmp in the same folder) and delete " + nameOf(path));
  }
}

/// The path of a file without links.
std::string realPathOf(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real == nullptr ? path : real.get();
}

/// The content of a weight file as arguments and auxiliary states.
void takeArrays(const std::vector<symbols::ListedArray>& listed, const std::string& file,
                SymbolFile* into) {
  const std::shared_ptr<const Graph> graph = into->graph->get();
  TextSet states;
  const NameList found = symbols::variablesOf(*graph).aux;
  for (std::size_t i = 0; i < found.size(); ++i) states.emplace(found[i]);
  for (const symbols::ListedArray& each : listed) {
    into->order.push_back(each.name);
    const bool has_prefix =
        each.name.compare(0, 4, "arg:") == 0 || each.name.compare(0, 4, "aux:") == 0;
    const std::string name = has_prefix ? each.name.substr(4) : each.name;
    Array made{rules::onnxType(each.type), each.dims, each.data, into->weights};
    made.is_state = has_prefix ? each.name[1] == 'u' : states.count(name) != 0;
    const auto known = into->arrays.find(name);
    if (known == into->arrays.end()) {
      into->arrays[name] = std::move(made);
      continue;
    }
    const bool same_kind = known->second.is_state == made.is_state;
    throw FormatError(
        same_kind ? file + ": '" + name + "' is in the file twice, with a prefix and without"
                  : file + ": " + name +
                        " is in the file twice, as an argument and as an auxiliary state; read "
                        "both with passlib.nd.load, and save the right one");
  }
}

std::string joined(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.empty()) return "none";
  if (names.size() > most) text += ", ... (" + std::to_string(names.size()) + " in all)";
  return text;
}

/// Throws GraphError if the weights have names that the graph does not have, and it lacks some of
/// its parameters.
void requireOwnWeights(const SymbolFile& file) {
  const std::shared_ptr<const Graph> graph = file.graph->get();
  TextSet variables;
  std::vector<std::string> unknown;
  std::vector<std::string> lacking;
  TextSet named;
  for (const auto& [name, array] : file.arrays) named.insert(name);
  const NameList names = namesOfVariables(*graph);
  for (std::size_t i = 0; i < names.size(); ++i) {
    variables.emplace(names[i]);
    if (named.count(std::string(names[i])) == 0) lacking.emplace_back(names[i]);
  }
  for (const std::string& name : named) {
    if (variables.count(name) == 0) unknown.push_back(name);
  }
  if (unknown.empty() || !symbols::lacksParameters(*graph, named)) return;
  std::sort(unknown.begin(), unknown.end());
  throw GraphError(std::to_string(unknown.size()) + " of " + std::to_string(named.size()) +
                   " weights belong to no variable of the graph: " + joined(unknown, 4) +
                   "; its variables without a weight are " + joined(lacking, 4) +
                   ". Are they the weights of another model?");
}

}  // namespace

SymbolNames symbolNames(const std::string& path) {
  std::string prefix = path;
  if (removeEnd(kSymbol, &prefix) || removeEnd(".json", &prefix)) return {prefix, path};
  return {path, path + kSymbol};
}

std::map<int64_t, std::string> weightFiles(const std::string& prefix) {
  std::map<int64_t, std::string> files;
  const std::string folder = prefix.substr(0, prefix.rfind('/') + 1);
  const std::string start = nameOf(prefix);
  for (const std::string& name : namesIn(folder.empty() ? "." : folder)) {
    if (name.compare(0, start.size(), start) != 0) continue;
    const auto found = epochAt(name, start.size());
    if (found && start.size() + found->second == name.size()) files[found->first] = folder + name;
  }
  return files;
}

std::vector<std::string> stampsOf(const std::string& symbol) {
  std::vector<std::string> paths;
  const std::string real = realPathOf(symbol);
  for (std::string name : namesIn(folderOf(real))) {
    const std::string path = folderOf(real) + "/" + name;
    if (name.compare(0, 9, ".passlib-") != 0 || !removeEnd(".stamp", &name)) continue;
    const std::optional<JsonVal> stamp = readStamp(path);
    if (stamp && stamp->map.count(JsonVal(nameOf(real))) != 0) paths.push_back(path);
  }
  return paths;
}

bool isSymbolFile(const std::string& path) {
  std::string symbol = namesOfAny(path).first.symbol;
  std::shared_ptr<const FileMapping> content;
  try {
    content = mapFile(symbol);
  } catch (const std::system_error&) {
    return false;
  } catch (const FormatError&) {
    return false;
  }
  if (content == nullptr || content->data()[0] != '{') return false;
  if (removeEnd(kSymbol, &symbol)) return true;
  // The version is the last member; other programs that write NNVM's JSON have none.
  const std::string_view text(content->data(), content->size());
  return text.substr(text.size() - std::min(text.size(), kTail)).find("\"mxnet_version\"") !=
         std::string_view::npos;
}

std::shared_ptr<const SymbolFile> openSymbolFile(const std::string& path) {
  const auto [names, epoch] = namesOfAny(path);
  requireWhole(names.symbol);
  const std::map<int64_t, std::string> saved = weightFiles(names.prefix);
  if (epoch && saved.count(*epoch) == 0) {
    std::string have;
    for (const auto& [number, file] : saved) {
      have += (have.empty() ? "those saved are " : ", ") + std::to_string(number);
    }
    throw std::system_error(ENOENT, std::generic_category(),
                            path + ": there are no weights of epoch " + std::to_string(*epoch) +
                                "; " + (have.empty() ? "none was saved" : have));
  }
  const auto made = std::make_shared<SymbolFile>();
  const std::shared_ptr<const FileMapping> content = mapFile(names.symbol);
  const auto text = std::make_shared<std::string>();
  if (content != nullptr) text->assign(content->data(), content->size());
  if (content != nullptr) content->check();
  try {
    symbols::Symbol symbol = symbols::readSymbol(text);
    made->graph = std::move(symbol.graph);
    made->attributes = std::move(symbol.attributes);
  } catch (const mxnet::ext::JsonError& error) {
    throw FormatError(names.symbol + ": " + error.what(), error.offset);
  } catch (const FormatError& error) {
    throw FormatError(names.symbol + ": " + error.what(), error.offset);
  } catch (const GraphError& error) {
    throw GraphError(names.symbol + ": " + error.what());
  }
  if (saved.empty()) return made;
  made->epoch = epoch ? *epoch : saved.rbegin()->first;
  const std::string& file = saved.at(made->epoch);
  made->weights = mapFile(file);
  std::string_view bytes;
  if (made->weights != nullptr) bytes = {made->weights->data(), made->weights->size()};
  takeArrays(symbols::readList(bytes, file), file, made.get());
  requireOwnWeights(*made);
  return made;
}

}  // namespace passlib::model
