// Passes that end badly.
#include <sys/wait.h>
#include <unistd.h>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

/// Spoils the graph first, so that a host which kept it would be found out.
static void spoil(Graph* graph) {
  graph->outputs.clear();
  for (Node* node : graph->nodes) node->name = "spoilt";
}

MXReturnValue throwsException(Graph* graph, const Options&) {
  spoil(graph);
  throw std::runtime_error("a weight is missing");
}
REGISTER_PASS(throwsException).setBody(throwsException);

MXReturnValue throwsInt(Graph* graph, const Options&) {
  spoil(graph);
  throw 42;
}
REGISTER_PASS(throwsInt).setBody(throwsInt);

MXReturnValue failsSilently(Graph* graph, const Options&) {
  spoil(graph);
  return MX_FAIL;
}
REGISTER_PASS(failsSilently).setBody(failsSilently);

MXReturnValue failsWithMessages(Graph* graph, const Options& options) {
  spoil(graph);
  const auto what = options.find("what");
  MX_ERROR_MSG << "cannot fuse " << (what == options.end() ? "anything" : what->second)
               << std::endl;
  MX_ERROR_MSG << "second message";
  return MX_FAIL;
}
REGISTER_PASS(failsWithMessages).setBody(failsWithMessages);

REGISTER_PASS(hasNoBody);

MXReturnValue letsJsonErrorOut(Graph* graph, const Options&) {
  spoil(graph);
  JsonVal::parse("[1,\n2,,]");
  return MX_SUCCESS;
}
REGISTER_PASS(letsJsonErrorOut).setBody(letsJsonErrorOut);

MXReturnValue returnsNonsense(Graph* graph, const Options&) {
  spoil(graph);
  return static_cast<MXReturnValue>(77);
}
REGISTER_PASS(returnsNonsense).setBody(returnsNonsense);

MXReturnValue forksAndReturns(Graph*, const Options&) {
  const pid_t child = fork();
  if (child == 0) return MX_SUCCESS;
  int status = 0;
  waitpid(child, &status, 0);
  MX_ERROR_MSG << "the child ended with " << WEXITSTATUS(status);
  return MX_FAIL;
}
REGISTER_PASS(forksAndReturns).setBody(forksAndReturns);

MXReturnValue initialize(int) { return MX_SUCCESS; }
