// A pass, a partitioner and an operator that take their time, as options or attributes say:
//   mark     path of a file that is written at the beginning
//   seconds  how long to rest
//   watch    "1": stop and fail once passInterrupted() is true
//   finish   "fail" or "throw"
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

std::string get(const options_map_t& options, const std::string& key, const std::string& other) {
  const auto found = options.find(key);
  return found == options.end() ? other : found->second;
}

MXReturnValue rest(const options_map_t& options) {
  std::cout << "resting" << std::endl;
  if (options.count("mark") != 0) std::ofstream(get(options, "mark", "")) << "begun";
  const auto length = std::chrono::duration<double>(std::stod(get(options, "seconds", "0")));
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    if (get(options, "watch", "") == "1" && passInterrupted()) {
      MX_ERROR_MSG << "stopped";
      return MX_FAIL;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::string finish = get(options, "finish", "");
  if (finish == "throw") throw std::runtime_error("had enough");
  return finish == "fail" ? MX_FAIL : MX_SUCCESS;
}

MXReturnValue slowPass(Graph*, const options_map_t& options) { return rest(options); }

MXReturnValue supportAll(const Graph*, std::vector<int>* ids, const options_map_t& options) {
  ids->assign(ids->size(), -1);
  return rest(options);
}

MXReturnValue parse(const options_map_t&, int* num_inputs, int* num_outputs) {
  *num_inputs = *num_outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue inferType(const options_map_t&, std::vector<int>* in, std::vector<int>* out) {
  *out = *in;
  return MX_SUCCESS;
}

MXReturnValue inferShape(const options_map_t&, std::vector<std::vector<unsigned int>>* in,
                         std::vector<std::vector<unsigned int>>* out) {
  *out = *in;
  return MX_SUCCESS;
}

MXReturnValue forward(const options_map_t& attributes, std::vector<MXTensor>*,
                      std::vector<MXTensor>*, const OpResource&) {
  return rest(attributes);
}

}  // namespace

REGISTER_PASS(slowPass).setBody(slowPass);
REGISTER_PARTITIONER(slowParts).addStrategy("all", "slow_op").setSupportedOps("all", supportAll);
REGISTER_OP(slow_op)
    .setForward(forward, "cpu")
    .setParseAttrs(parse)
    .setInferType(inferType)
    .setInferShape(inferShape);

MXReturnValue initialize(int) { return MX_SUCCESS; }
