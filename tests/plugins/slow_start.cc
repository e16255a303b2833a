// Takes its time to load, as the environment says:
//   SLOW_START    "constructor" of a static object, or "initialize"
//   SLOW_MARK     path of a file that is written at the beginning
//   SLOW_SECONDS  how long to rest; initialize() stops earlier when passInterrupted() is true
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

bool rest(const std::string& phase) {
  const char* wanted = std::getenv("SLOW_START");
  if (wanted == nullptr || wanted != phase) return true;
  std::ofstream(std::getenv("SLOW_MARK")) << "begun";
  const auto length = std::chrono::duration<double>(std::stod(std::getenv("SLOW_SECONDS")));
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    if (phase == "initialize" && passInterrupted()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

const bool ready = rest("constructor");

}  // namespace

MXReturnValue initialize(int) { return ready && rest("initialize") ? MX_SUCCESS : MX_FAIL; }
