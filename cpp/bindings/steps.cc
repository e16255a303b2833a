// Texts and rounds of pipelines for Python.
#include "library/steps.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/common.h"
#include "library/rounds.h"

namespace passlib {
namespace {

// Python's strings can have halves of surrogate pairs.

std::string bytesOf(const py::handle& text) {
  PyObject* bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass");
  if (bytes == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(bytes);
}

py::str stringOf(const std::string& bytes) {
  PyObject* text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), "surrogatepass");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

py::object stepOf(const Step& step, const py::function& make) {
  py::tuple options(step.options.size());
  py::tuple places(step.options.size());
  for (std::size_t i = 0; i < step.options.size(); ++i) {
    const auto& [key, value] = step.options[i];
    options[i] = py::make_tuple(stringOf(key), stringOf(value));
    places[i] = step.option_places[i];
  }
  return make(stringOf(step.name), options, step.place, places);
}

/// Reads a pipeline. `step(name, options, place, option_places)` and `repeat(times, steps)` return
/// the items of the result.
py::tuple readStepsWith(const py::str& text, const py::function& step, const py::function& repeat) {
  StepsHost host;
  host.accepts_halves = true;
  host.shown = [](const std::string& shown) { return bytesOf(py::repr(stringOf(shown))); };
  const std::vector<Step> steps = readSteps(bytesOf(text), host);
  struct Level {
    const std::vector<Step>* steps;
    std::size_t next = 0;
    py::list made;
  };
  std::vector<Level> levels(1);
  levels.back().steps = &steps;
  for (;;) {
    Level& level = levels.back();
    if (level.next < level.steps->size()) {
      const Step& next = (*level.steps)[level.next++];
      if (next.times == 0) {
        level.made.append(stepOf(next, step));
      } else {
        levels.emplace_back();
        levels.back().steps = &next.steps;
      }
      continue;
    }
    py::tuple made(level.made);
    levels.pop_back();
    if (levels.empty()) return made;
    Level& outer = levels.back();
    outer.made.append(repeat((*outer.steps)[outer.next - 1].times, made));
  }
}

py::str printStep(const py::str& name, const py::iterable& options) {
  Step step;
  step.name = bytesOf(name);
  for (const py::handle option : options) {
    const auto pair = option.cast<std::pair<py::str, py::str>>();
    step.options.emplace_back(bytesOf(pair.first), bytesOf(pair.second));
  }
  return stringOf(printSteps({step}));
}

py::str printItems(const py::iterable& items) {
  std::vector<std::string> texts;
  for (const py::handle item : items) texts.push_back(bytesOf(item));
  return stringOf(printList(texts));
}

using CostPair = std::pair<std::size_t, std::size_t>;

std::vector<std::size_t> orderPasses(
    const std::vector<std::tuple<std::string, std::string, bool, std::string>>& passes) {
  std::vector<JoinedPass> joined;
  for (const auto& [name, after, is_standard, cost] : passes)
    joined.push_back({name, after, is_standard, cost});
  return orderOf(joined);
}

void runRoundsWith(std::size_t passes, const CostPair& start, int64_t max_rounds,
                   std::optional<std::size_t> max_growth,
                   const std::function<bool(std::size_t)>& has_trigger,
                   const std::function<std::optional<CostPair>(std::size_t, std::size_t)>& run,
                   const std::function<bool()>& is_cheaper, const std::function<bool()>& keep) {
  const auto cost = [&run](std::size_t pass, std::size_t room) -> std::optional<Cost> {
    const std::optional<CostPair> made = run(pass, room);
    if (!made) return std::nullopt;
    return Cost{made->first, made->second};
  };
  runRounds({has_trigger, cost, is_cheaper, keep}, passes, {start.first, start.second}, max_rounds,
            max_growth);
}

}  // namespace

void bindSteps(py::module_* m) {
  m->def("read_steps", &readStepsWith, py::arg("text"), py::arg("step"), py::arg("repeat"));
  m->def("print_step", &printStep, py::arg("name"), py::arg("options"));
  m->def("print_list", &printItems, py::arg("items"));
  m->def("order_passes", &orderPasses, py::arg("passes"));
  m->def("run_rounds", &runRoundsWith, py::arg("passes"), py::arg("start"), py::arg("max_rounds"),
         py::arg("max_growth"), py::arg("has_trigger"), py::arg("run"), py::arg("is_cheaper"),
         py::arg("keep"));
}

}  // namespace passlib
