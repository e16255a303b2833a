// passlib-opt: runs passes on a model of ONNX or MXNet, with the options and words of `passlib
// opt`.

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "passlib.hpp"

namespace {

namespace api = passlib::api;

constexpr const char* kProgram = "passlib-opt";

constexpr const char* kUsage = "usage: passlib-opt [options] -o OUT MODEL\n";

constexpr const char* kHelp =
    "\n"
    "Run passes of libraries and rules on a model of ONNX or MXNet, without Python.\n"
    "\n"
    "positional arguments:\n"
    "  MODEL\n"
    "\n"
    "options:\n"
    "  -h, --help               show this help message and exit\n"
    "  --version                show the version and exit\n"
    "  -o OUT, --output OUT     output file\n"
    "  --passes TEXT            pipeline, \"a, repeat<4>(b)\" (default: simplify)\n"
    "  --rules FILE             apply these rules, after --passes (repeatable)\n"
    "  --skip NAME              skip this pass (repeatable)\n"
    "  --fix-shape NAME:1,3,?   simplify for this shape; ? stays open (repeatable)\n"
    "  --target NAME            onnxruntime: simplify with its own operators, too\n"
    "  -l FILE, --library FILE  library with passes (repeatable)\n"
    "  --override               let these files replace passes of the same name\n"
    "  --list-passes            list the passes and their options\n"
    "  --time                   print the time of each pass\n"
    "  --dump DIR               save the model after each step\n"
    "  --quiet                  print errors only\n"
    "  --json                   print JSON\n"
    "\n"
    "example:\n"
    "  passlib-opt model.onnx -o out.onnx --passes \"removeDeadNodes, mergeEqualNodes\"\n";

/// As the Python command exits.
enum Status { kFine = 0, kUsageError = 1, kFailedPass = 2, kUnsound = 3 };

/// The command line is invalid.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Options of the Python command that this one does not have.
constexpr const char* kOfPython[] = {
    "--opset",   "--verify-each", "--check", "--check-each", "--shape",    "--inputs",
    "--rtol",    "--atol",        "--exact", "--report",     "--certify",  "--rewrite-limit",
    "--isolate", "--timeout",     "--jobs",  "--scheduler",  "--traceback"};

struct Arguments {
  std::string model;
  std::string output;
  std::string passes;
  bool has_passes = false;
  std::vector<std::string> rules;
  std::vector<std::string> skip;
  std::vector<std::string> shapes;
  std::string target;
  std::vector<std::string> libraries;
  bool override_names = false;
  std::string dump;
  bool list = false;
  bool time = false;
  bool quiet = false;
  bool json = false;
  bool help = false;
  bool version = false;
};

Arguments parse(int count, char** words) {
  Arguments made;
  if (std::find(words + 1, words + count, std::string("-")) != words + count) {
    throw UsageError("'-', standard input or output, is not supported: give the path of a file");
  }
  bool only_models = false;
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    std::string value;
    bool has_value = false;
    if (only_models || word.empty() || word[0] != '-') {
      if (!made.model.empty()) {
        throw UsageError("several models: run the command for each, or passlib opt");
      }
      made.model = word;
      continue;
    }
    if (word == "--") {
      only_models = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (word[1] == '-' && equals != std::string::npos) {
      value = word.substr(equals + 1);
      word.erase(equals);
      has_value = true;
    } else if (word[1] != '-' && word.size() > 2 && word[1] != 'h') {
      value = word.substr(2);
      word.erase(2);
      has_value = true;
    }
    const auto take = [&]() -> std::string {
      if (has_value) return value;
      if (i + 1 == count) throw UsageError("argument " + word + ": expected one argument");
      return words[++i];
    };
    if (word == "-o" || word == "--output") {
      made.output = take();
    } else if (word == "--passes") {
      made.passes = take();
      made.has_passes = true;
    } else if (word == "--rules") {
      made.rules.push_back(take());
    } else if (word == "--skip") {
      made.skip.push_back(take());
    } else if (word == "--fix-shape") {
      made.shapes.push_back(take());
    } else if (word == "--target") {
      made.target = take();
    } else if (word == "--dump") {
      made.dump = take();
      if (made.dump.empty()) throw UsageError("--dump: the name of the folder is empty");
    } else if (word == "-l" || word == "--library") {
      made.libraries.push_back(take());
    } else if (has_value) {
      throw UsageError("unrecognized arguments: " + std::string(words[i]));
    } else if (word == "--override") {
      made.override_names = true;
    } else if (word == "--list-passes") {
      made.list = true;
    } else if (word == "--time") {
      made.time = true;
    } else if (word == "--quiet") {
      made.quiet = true;
    } else if (word == "--json") {
      made.json = true;
    } else if (word == "-h" || word == "--help") {
      made.help = true;
    } else if (word == "--version") {
      made.version = true;
    } else if (std::find(std::begin(kOfPython), std::end(kOfPython), word) != std::end(kOfPython)) {
      throw UsageError(word + ": needs passlib's Python package; run passlib opt");
    } else {
      throw UsageError("unrecognized arguments: " + std::string(words[i]));
    }
  }
  return made;
}

/// Whether a character is a surrogate, which no valid UTF-8 has.
bool isSurrogate(char32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

/// Calls `visit` with the code and the bytes of each character. A byte that is not UTF-8 has the
/// surrogate that Python's surrogateescape gives to it.
template <typename Visit>
void forEachCharacter(const std::string& text, Visit visit) {
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // of a sequence of this length
  for (std::size_t place = 0; place < text.size();) {
    const auto first = static_cast<unsigned char>(text[place]);
    std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    char32_t code = size == 1 ? first : first & (0xFFU >> (size + 1));
    bool is_valid = size == 1 || (first >= 0xC2 && first < 0xF5 && size <= text.size() - place);
    for (std::size_t i = 1; is_valid && i < size; ++i) {
      const auto next = static_cast<unsigned char>(text[place + i]);
      is_valid = (next & 0xC0U) == 0x80;
      code = code << 6U | (next & 0x3FU);
    }
    if (!is_valid || code < kLeast[size] || code > 0x10FFFF || isSurrogate(code)) {
      size = 1;
      code = 0xDC00 + first;
    }
    visit(code, text.substr(place, size));
    place += size;
  }
}

/// Whether a terminal may act on a character: controls, marks of direction and of format.
bool isFormat(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD || code == 0x61C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF || isSurrogate(code);
}

/// A text without characters that a terminal may act on.
std::string printable(const std::string& text, bool lines = false) {
  std::string made;
  forEachCharacter(text, [&](char32_t code, const std::string& bytes) {
    if (!isFormat(code) || (lines && code == '\n')) {
      made += bytes;
      return;
    }
    char escape[16];
    std::snprintf(escape, sizeof escape, code < 0x100 ? "\\x%02x" : "\\u%04x",
                  static_cast<unsigned>(code));
    made += code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : escape;
  });
  return made;
}

void report(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", kProgram, printable(message, true).c_str());
}

/// A number with commas between thousands.
std::string grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

/// A number of bytes, as in 12 B and 3.4 MB.
std::string sized(std::size_t bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 999.95 && unit + 1 < std::size(kUnits)) {
    size /= 1000;
    ++unit;
  }
  if (unit == 0) return std::to_string(bytes) + " B";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", size, kUnits[unit]);
  return text;
}

using Counts = std::map<std::string, std::size_t>;

Counts countsOf(const api::Model& model) {
  Counts counts;
  api::call(
      passlib_model_count_operators, model.get(),
      [](const char* op, std::size_t count, void* context) {
        (*static_cast<Counts*>(context))[op] = count;
      },
      static_cast<void*>(&counts));
  return counts;
}

std::size_t totalOf(const Counts& counts) {
  std::size_t total = 0;
  for (const auto& [op, count] : counts) total += count;
  return total;
}

/// Prints rows whose columns are aligned, those after the first to the right if they are numbers.
void printTable(const std::vector<std::vector<std::string>>& rows, bool numbers) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      const bool right = numbers && i > 0;
      line += (i == 0 ? "" : "  ") + (right ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

void printOperators(Counts before, Counts after) {
  std::vector<std::vector<std::string>> rows = {{"operator", "before", "after", ""}};
  Counts both = before;
  both.insert(after.begin(), after.end());
  for (const auto& [op, count] : both) {
    rows.push_back({printable(op), grouped(before[op]), grouped(after[op]),
                    before[op] == after[op] ? "" : "*"});
  }
  rows.push_back({"total", grouped(totalOf(before)), grouped(totalOf(after)), ""});
  printTable(rows, true);
}

/// The report of a step.
struct StepDone {
  std::string name;
  std::string text;
  double seconds;
  std::size_t changed_nodes;
  bool modified;
};

void printTimes(const std::vector<StepDone>& steps) {
  std::vector<std::pair<std::string, double>> sums;
  double total = 0;
  for (const StepDone& step : steps) {
    const auto named = [&step](const auto& each) { return each.first == step.name; };
    const auto known = std::find_if(sums.begin(), sums.end(), named);
    if (known == sums.end()) {
      sums.emplace_back(step.name, step.seconds);
    } else {
      known->second += step.seconds;
    }
    total += step.seconds;
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& one, const auto& other) { return one.second > other.second; });
  sums.emplace_back("total", total);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, seconds] : sums) {
    char text[64];
    std::snprintf(text, sizeof text, "%.1f ms", 1000 * seconds);
    rows.push_back({printable(name), text});
  }
  printTable(rows, false);
}

/// Indented JSON.
class Json {
 public:
  Json& begin(char bracket) {
    separate();
    text_ += bracket;
    ++depth_;
    is_first_ = true;
    return *this;
  }
  Json& end(char bracket) {
    --depth_;
    if (!is_first_) indent();
    text_ += bracket;
    is_first_ = false;
    return *this;
  }
  Json& key(const std::string& name) {
    quote(name);
    text_ += ": ";
    has_key_ = true;
    return *this;
  }
  Json& quote(const std::string& value) {
    separate();
    text_ += '"';
    forEachCharacter(value, [this](char32_t code, const std::string& bytes) {
      if (code == '"' || code == '\\') {
        text_ += '\\' + bytes;
      } else if (isFormat(code)) {
        char escape[16];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
        text_ += escape;
      } else {
        text_ += bytes;
      }
    });
    text_ += '"';
    return *this;
  }
  Json& plain(const std::string& value) {
    separate();
    text_ += value;
    return *this;
  }
  Json& number(std::size_t value) { return plain(std::to_string(value)); }
  Json& boolean(bool value) { return plain(value ? "true" : "false"); }
  Json& seconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return plain(text);
  }
  Json& pair(std::size_t before, std::size_t after) {
    begin('{').key("before").number(before).key("after").number(after);
    return end('}');
  }
  const std::string& text() const { return text_; }

 private:
  void indent() { text_ += '\n' + std::string(2 * depth_, ' '); }
  void separate() {
    if (has_key_) {
      has_key_ = false;
      return;
    }
    if (!is_first_) text_ += ',';
    if (depth_ > 0) indent();
    is_first_ = false;
  }

  std::string text_;
  std::size_t depth_ = 0;
  bool is_first_ = true;
  bool has_key_ = false;
};

void listPasses(const api::Session& session) {
  for (std::size_t i = 0; i < passlib_session_pass_count(session.get()); ++i) {
    passlib_pass_info pass{};
    pass.size = sizeof pass;
    api::call(passlib_session_pass, session.get(), i, &pass);
    const std::string description = printable(pass.description);
    std::printf("%s%s%s\n", printable(pass.name).c_str(), description.empty() ? "" : ": ",
                description.c_str());
    if (pass.is_exact != 0) std::printf("  keeps every bit of the results\n");
    if (pass.enters_functions != 0) std::printf("  also changes the bodies of local functions\n");
    if (pass.is_declared == 0) std::printf("  options: not declared, any are passed on\n");
    for (std::size_t k = 0; k < pass.option_count; ++k) {
      passlib_option_info option{};
      option.size = sizeof option;
      api::call(passlib_session_option, session.get(), i, k, &option);
      std::printf("  %s: %s; default %s\n      %s\n", printable(option.name).c_str(),
                  printable(option.accepted).c_str(), printable(option.preset).c_str(),
                  printable(option.description).c_str());
    }
    std::printf("  from %s\n", printable(pass.source).c_str());
  }
}

/// A name or a value as pipelines spell any text.
std::string inQuotes(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

/// The step of a file of rules.
std::string stepOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string suffix = ".rules";
  if (name.size() <= suffix.size() ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) {
    throw UsageError("--rules " + path +
                     ": the name of a file of rules ends in .rules; -l loads libraries");
  }
  name.erase(name.size() - suffix.size());
  return inQuotes(name);
}

/// The pipeline with values of an option of its first named pipeline. `other`: what has the effect
/// on pipelines that have none.
std::string withOption(const api::Session& session, const std::string& pipeline,
                       const std::string& word, const std::string& option,
                       const std::vector<std::string>& values, const std::string& other) {
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  api::Text made;
  if (!pipeline.empty()) {
    made.reset(api::call(passlib_pipeline_with, session.get(), pipeline.c_str(), option.c_str(),
                         texts.data(), texts.size()));
  }
  if (made != nullptr) return made.get();
  throw UsageError(word + ": simplify and clean use it, and --passes has neither; use " + other);
}

/// The text of --fix-shape for a model: `det*.onnx=x:1,3,640,640` is for models of this name.
std::string shapeFor(const std::string& path, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) return text;
  const std::string pattern = text.substr(0, equals);
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto matches = [&pattern](const std::string& each) {
    return ::fnmatch(pattern.c_str(), each.c_str(), FNM_NOESCAPE) == 0;
  };
  return matches(path) || matches(name) ? text.substr(equals + 1) : text;
}

std::string pipelineOf(const Arguments& given, const api::Session& session) {
  std::string text = given.passes;
  for (const std::string& path : given.rules) text += (text.empty() ? "" : ", ") + stepOf(path);
  if (!given.has_passes && given.rules.empty()) text = "simplify";
  if (!text.empty()) {
    std::vector<const char*> names;
    for (const std::string& name : given.skip) names.push_back(name.c_str());
    const api::Text kept(api::call(passlib_pipeline_without, session.get(), text.c_str(),
                                   names.data(), names.size()));
    text = kept.get();
  }
  if (!given.target.empty()) {
    text =
        withOption(session, text, "--target", "target", {given.target}, "fuseLayers{target=...}");
  }
  std::vector<std::string> shapes;
  for (const std::string& shape : given.shapes) shapes.push_back(shapeFor(given.model, shape));
  if (shapes.empty()) return text;
  try {
    return withOption(session, text, "--fix-shape", "fixed", shapes, "passlib set-shape");
  } catch (const api::Error& error) {
    throw UsageError(std::string("--fix-shape ") + error.what());
  }
}

std::size_t sizeOf(const std::string& path) {
  struct stat state{};
  return ::stat(path.c_str(), &state) == 0 ? static_cast<std::size_t>(state.st_size) : 0;
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The steps of a run.
struct Watch {
  const Arguments& given;
  std::vector<StepDone> steps;
  std::exception_ptr error;  ///< of the first step that could not be noted
};

/// Saves the model after a step, or before one that failed.
void dump(const passlib_step_info& step, const Watch& watch) {
  char number[32];
  std::snprintf(number, sizeof number, "%03zu-", watch.steps.size());
  std::string name = number + std::string(step.has_failed != 0 ? "before-" : "");
  bool replaced = false;
  for (const char* c = step.name; *c != '\0'; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    const bool kept =
        std::isalnum(byte) != 0 || byte >= 0x80 || *c == '_' || *c == '.' || *c == '-';
    if (kept || !replaced) name += kept ? *c : '_';
    replaced = !kept;
  }
  const std::filesystem::path folder = std::filesystem::path(watch.given.dump) / name;
  std::filesystem::create_directories(folder);
  const bool is_onnx = passlib_model_dialect(step.model) == std::string("onnx");
  const std::string path = folder / (is_onnx ? "model.onnx" : "model.json");
  api::call(passlib_model_save, step.model, path.c_str());
}

void noteStep(const passlib_step_info* step, void* context) {
  Watch& watch = *static_cast<Watch*>(context);
  if (watch.error != nullptr) return;
  try {
    if (step->has_failed == 0) {
      watch.steps.push_back({step->name, step->text, step->seconds, step->changed_node_count,
                             step->is_modified != 0});
    }
    if (!watch.given.dump.empty()) dump(*step, watch);
  } catch (...) {
    watch.error = std::current_exception();
  }
}

std::vector<StepDone> runPipeline(const Arguments& given, const api::Session& session,
                                  const std::string& pipeline, api::Model* model) {
  Watch watch{given, {}, nullptr};
  passlib_run_options options{};
  options.size = sizeof options;
  options.context = &watch;
  options.print = [](const char* text, std::size_t length, void* context) {
    // The output of passes is no part of the JSON.
    const bool json = static_cast<Watch*>(context)->given.json;
    std::fwrite(text, 1, length, json ? stderr : stdout);
  };
  if (given.json || !given.quiet || !given.dump.empty()) options.step = noteStep;
  options.counts_changes = given.json ? 1 : 0;
  model->run(session, pipeline, &options);
  if (watch.error != nullptr) std::rethrow_exception(watch.error);
  return std::move(watch.steps);
}

std::vector<std::string> save(const api::Model& model, const std::string& path) {
  std::vector<std::string> files;
  api::call(
      passlib_model_save_files, model.get(), path.c_str(),
      [](const char* file, void* context) {
        static_cast<std::vector<std::string>*>(context)->emplace_back(file);
      },
      static_cast<void*>(&files));
  return files;
}

std::vector<std::string> warningsOf(const api::Model& model, const api::Session& session) {
  std::vector<std::string> texts;
  api::call(
      passlib_model_warnings, model.get(), session.get(),
      [](const char* text, void* context) {
        static_cast<std::vector<std::string>*>(context)->emplace_back(text);
      },
      static_cast<void*>(&texts));
  return texts;
}

/// Returns the report of a run in the form of docs/json.md.
std::string jsonOf(const Arguments& given, Counts before, Counts after,
                   const std::vector<StepDone>& steps, const std::vector<std::string>& warnings,
                   const std::vector<std::string>& files, std::size_t size, std::size_t written,
                   double seconds) {
  Json json;
  json.begin('[').begin('{').key("status").quote("done").key("error").quote("");
  json.key("model").quote(given.model).key("output").quote(given.output);
  json.key("operators").begin('{');
  Counts both = before;
  both.insert(after.begin(), after.end());
  for (const auto& [op, count] : both) json.key(op).pair(before[op], after[op]);
  json.end('}').key("nodes").pair(totalOf(before), totalOf(after)).key("steps").begin('[');
  bool changed = false;
  for (const StepDone& step : steps) {
    json.begin('{').key("step").quote(step.text).key("pass").quote(step.name);
    json.key("seconds").seconds(step.seconds).key("changed_nodes").number(step.changed_nodes);
    json.key("modified").boolean(step.modified).end('}');
    changed = changed || step.modified;
  }
  json.end(']').key("changed").boolean(changed).key("bytes");
  if (size > 0) {
    json.pair(size, written);
  } else {
    json.plain("null");
  }
  json.key("warnings").begin('[');
  for (const std::string& text : warnings) json.quote(text);
  json.end(']').key("differences").begin('[').end(']').key("seconds").seconds(seconds);
  json.key("files").begin('[');
  for (const std::string& file : files) json.quote(std::filesystem::absolute(file));
  return json.end(']').end('}').end(']').text();
}

void run(const Arguments& given) {
  const auto start = std::chrono::steady_clock::now();
  if (!given.list) {
    if (given.model.empty()) {
      throw UsageError("the following arguments are required: MODEL");
    }
    if (given.output.empty()) {
      throw UsageError("the following arguments are required: -o/--output");
    }
  }
  for (const std::string& path : given.rules) stepOf(path);  // checks the name
  api::Session session;
  for (const auto* files : {&given.libraries, &given.rules}) {
    for (const std::string& path : *files) session.load(path, given.override_names);
  }
  if (given.list) {
    listPasses(session);
    return;
  }
  const std::string pipeline = pipelineOf(given, session);
  if (!given.dump.empty() && std::filesystem::exists(given.dump) &&
      !std::filesystem::is_directory(given.dump)) {
    throw UsageError("--dump " + given.dump + ": expected a folder, found a file");
  }
  api::Model model(given.model);
  std::size_t size = passlib_model_file_bytes(model.get());
  const std::size_t size_of_path = sizeOf(given.model);
  const std::vector<std::string> warnings = warningsOf(model, session);
  const bool prints = given.json || !given.quiet;
  const Counts before = prints ? countsOf(model) : Counts();
  std::vector<StepDone> steps;
  if (!pipeline.empty()) steps = runPipeline(given, session, pipeline, &model);
  const std::vector<std::string> files = save(model, given.output);
  for (const std::string& text : warnings) report("warning: " + given.model + ": " + text);
  if (!prints) return;
  if (size == 0 && files.size() == 1) size = size_of_path;
  // Data files that are kept are not among those written.
  const bool is_one_file = files.size() == 1 && size == size_of_path;
  const std::size_t written = size == 0 || is_one_file
                                  ? sizeOf(files[0])
                                  : passlib_model_file_bytes(api::Model(files[0]).get());
  const Counts after = countsOf(model);
  const double seconds = secondsSince(start);
  if (given.json) {
    std::printf(
        "%s\n",
        jsonOf(given, before, after, steps, warnings, files, size, written, seconds).c_str());
    return;
  }
  printOperators(before, after);
  if (given.time) printTimes(steps);
  std::string summary =
      pipeline.compare(0, 8, "simplify") == 0 ? "nothing to simplify" : "nothing to change";
  if (std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.modified; })) {
    summary = grouped(totalOf(before)) + " -> " + grouped(totalOf(after)) + " operators";
    if (size > 0) summary += ", " + sized(size) + " -> " + sized(written);
  }
  std::printf("wrote %s: %s, in %.1f s\n", printable(given.output).c_str(), summary.c_str(),
              seconds);
}

int statusOf(passlib_error_kind kind) {
  if (kind == PASSLIB_PASS) return kFailedPass;
  return kind == PASSLIB_FORMAT || kind == PASSLIB_GRAPH ? kUnsound : kUsageError;
}

}  // namespace

int main(int count, char** words) {
  try {
    const Arguments given = parse(count, words);
    if (given.help) {
      std::printf("%s%s", kUsage, kHelp);
    } else if (given.version) {
      std::printf("%s %s\n", kProgram, passlib_version());
    } else {
      run(given);
    }
    if (std::fflush(stdout) != 0) {
      report(std::string("standard output: ") + std::strerror(errno));
      return kUsageError;
    }
    return kFine;
  } catch (const UsageError& error) {
    std::fputs(kUsage, stderr);
    report(error.what());
    return kUsageError;
  } catch (const api::Error& error) {
    report(error.what());
    return statusOf(error.kind);
  } catch (const std::exception& error) {
    report(error.what());
    return kUsageError;
  }
}
