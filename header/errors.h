// ================================================================================================
// Errors
// ================================================================================================

/// Messages of a library to its host: one store per library, safe to use from several threads.
class MXerrorMsgs {
 public:
  /// Lives until the process ends, since threads may use it while others exit.
  static MXerrorMsgs* get();
  /// Starts a message with "<file>[<line>]: "; the caller appends the rest to the stream.
  std::stringstream& add(const char* file, int line);
  /// Adds a whole message.
  void add(const std::string& text);
  int size();
  /// Returns message number idx, valid and unchanged until the process ends; null if out of range.
  const std::string* get(int idx);

 private:
  struct Message;
  struct Store;
  MXerrorMsgs();
  std::stringstream& start();
  Store* const store_;  // never deleted: streams may be in use, the host reads texts
};

/// Reports the reason of a failure: MX_ERROR_MSG << "no weight named " << name; return MX_FAIL;
/// Threads may use it.
#define MX_ERROR_MSG mxnet::ext::MXerrorMsgs::get()->add(__FILE__, __LINE__)

/// A graph is inconsistent: an edge to a node outside the graph, or a cycle.
class GraphStructureError : public std::runtime_error {
 public:
  explicit GraphStructureError(const std::string& message) : std::runtime_error(message) {}
};

/// An attribute is missing or has another type. what() names node, operator and attribute.
class AttributeError : public std::invalid_argument {
 public:
  explicit AttributeError(const std::string& message) : std::invalid_argument(message) {}
};
