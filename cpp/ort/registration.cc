// The entry point that ONNX Runtime calls: makes the operators of libraries its own.

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "library/library.h"
#include "library/operators/elements.h"
#include "ort/calls.h"
#include "ort/kernel.h"

namespace passlib {
namespace {

constexpr const char* kDomain = "passlib";
constexpr const char* kVariable = "PASSLIB_LIBRARIES";
constexpr const char* kEntry = "passlib.libraries";
/// The version that initialize() of a library gets: that of the MXNet that passlib follows.
constexpr int kMxnetVersion = 10901;

/// Runs `body`, and returns its exception as a status. Nothing may be thrown into ONNX Runtime.
template <typename Body>
OrtStatus* guarded(const OrtCalls& calls, Body body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return calls.failure(kOrtFail, "passlib: not enough memory");
  } catch (const std::exception& error) {
    try {
      return calls.failure(kOrtFail, mxnet::ext::host::textOf(error));
    } catch (...) {
      return calls.failure(kOrtFail, "passlib: not enough memory");
    }
  } catch (...) {
    return calls.failure(kOrtFail, "passlib: an operator threw something unknown");
  }
}

/// An operator as ONNX Runtime has it. It takes any number of inputs and outputs of any types,
/// since these depend on the attributes of a node; its kernels check them.
struct RegisteredOperator : OrtCustomOp {
  RegisteredOperator(const OrtCalls& functions, CustomOp library_operator)
      : OrtCustomOp(), calls(functions), op(std::move(library_operator)) {
    version = kOrtVersion;
    name = [](const OrtCustomOp* self) { return of(self).op.functions().name.c_str(); };
    provider = [](const OrtCustomOp*) -> const char* { return nullptr; };
    input_type = output_type = [](const OrtCustomOp*, std::size_t) { return kOrtAnyType; };
    input_count = output_count = [](const OrtCustomOp*) { return std::size_t{1}; };
    input_characteristic =
        output_characteristic = [](const OrtCustomOp*, std::size_t) { return kOrtVariadic; };
    input_memory = [](const OrtCustomOp*, std::size_t) { return 0; };
    fewest_inputs = [](const OrtCustomOp*) { return 0; };
    fewest_outputs = [](const OrtCustomOp*) { return 1; };
    inputs_alike = outputs_alike = [](const OrtCustomOp*) { return 0; };
    first_version = [](const OrtCustomOp*) { return 1; };
    last_version = [](const OrtCustomOp*) { return 1000; };
    create_kernel_checked = [](const OrtCustomOp* self, const OrtApi*, const OrtKernelInfo* info,
                               void** kernel) {
      *kernel = nullptr;
      return guarded(of(self).calls, [&]() {
        *kernel = new NodeKernel{of(self).calls, {of(self).calls, of(self).op, info}};
      });
    };
    compute_checked = [](void* kernel, OrtKernelContext* context) {
      auto& node = *static_cast<NodeKernel*>(kernel);
      return guarded(node.calls, [&]() { node.kernel.compute(context); });
    };
    destroy_kernel = [](void* kernel) { delete static_cast<NodeKernel*>(kernel); };
    infer_shapes = [](const OrtCustomOp* self, OrtShapeInferContext* context) {
      return of(self).infer(context);
    };
  }

 private:
  struct NodeKernel {
    const OrtCalls& calls;
    Kernel kernel;
  };

  static const RegisteredOperator& of(const OrtCustomOp* self) {
    return *static_cast<const RegisteredOperator*>(self);
  }

  /// States the outputs of a node whose inputs have known sizes. Anything that does not fit is
  /// reported when the node runs: ONNX Runtime ignores errors here, and older ones lose them.
  OrtStatus* infer(OrtShapeInferContext* context) const noexcept {
    try {
      std::vector<std::vector<int64_t>> shapes;
      std::vector<int> types;
      for (std::size_t i = 0; i < calls.inputCount(context); ++i) {
        TensorType type = calls.inputType(context, i);
        // A shape without dimensions may also be one that is not known.
        if (type.shape.empty()) return nullptr;
        for (const int64_t extent : type.shape) {
          if (extent < 0) return nullptr;
        }
        types.push_back(dtypeOfElement(type.element));
        if (types.back() == -1) return nullptr;
        shapes.push_back(std::move(type.shape));
      }
      const LibraryNode node(op, calls.attribute(context, kAttributes),
                             calls.attribute(context, kTypes), "");
      if (static_cast<std::size_t>(node.inputCount()) != shapes.size()) return nullptr;
      const std::vector<OutputArray> outputs = node.infer(shapes, types);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        calls.setOutputType(context, i, {elementOfDtype(outputs[i].dtype), outputs[i].shape});
      }
    } catch (...) {
      return nullptr;
    }
    return nullptr;
  }

  const OrtCalls& calls;
  const CustomOp op;
};

/// The operators of some libraries. ONNX Runtime refers to them until its last session ends.
class Domain {
 public:
  Domain(const OrtCalls& calls, const std::vector<std::string>& paths) {
    std::map<std::string, std::string> holders;
    for (const std::string& path : paths) {
      const std::shared_ptr<Library> library =
          Library::open(path, kMxnetVersion, OnInterrupt::kNothing, CalledFor::kOperators);
      for (std::size_t i = 0; i < library->operators().size(); ++i) {
        const std::string& name = library->operators()[i].name;
        const auto [holder, is_new] = holders.emplace(name, path);
        if (!is_new) {
          throw LoadError("cannot load library '" + path + "': its operator '" + name +
                          "' is already registered by '" + holder->second + "'");
        }
        operators_.emplace_back(calls, CustomOp(library, i));
      }
    }
    handle_ = calls.createDomain(kDomain);
    for (const RegisteredOperator& op : operators_) calls.addOperator(handle_, &op);
  }
  OrtCustomOpDomain* handle() const { return handle_; }

 private:
  OrtCustomOpDomain* handle_ = nullptr;
  std::deque<RegisteredOperator> operators_;
};

std::vector<std::string> pathsIn(const std::string& text) {
  std::vector<std::string> paths;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string given = text.substr(begin, end - begin);
    begin = end + 1;
    if (given.empty()) continue;
    // The linker looks for a name without a folder elsewhere.
    std::string path = std::filesystem::absolute(given).string();
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) {
      paths.push_back(std::move(path));
    }
  }
  return paths;
}

/// The registered domains of one ONNX Runtime, of which a process may have several. Never
/// destroyed, since libraries stay loaded until the process ends.
class Runtime {
 public:
  static Runtime& of(const OrtApi& api) {
    static std::mutex mutex;
    static auto& all = *new std::map<const OrtApi*, std::unique_ptr<Runtime>>();
    const std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<Runtime>& runtime = all[&api];
    if (runtime == nullptr) runtime.reset(new Runtime(api));
    return *runtime;
  }

  const OrtCalls& calls() const { return calls_; }

  /// Returns the domain of some libraries, made once.
  const Domain& domainOf(const std::vector<std::string>& paths) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Domain>& domain = domains_[paths];
    if (domain == nullptr) domain = std::make_unique<Domain>(calls_, paths);
    return *domain;
  }

 private:
  explicit Runtime(const OrtApi& api) : calls_(api) {}

  const OrtCalls calls_;
  std::mutex mutex_;  ///< of domains_
  std::map<std::vector<std::string>, std::unique_ptr<Domain>> domains_;
};

void registerLibraries(Runtime* runtime, OrtSessionOptions* options) {
  const OrtCalls& calls = runtime->calls();
  std::string text = calls.configEntry(options, kEntry);
  const char* variable = std::getenv(kVariable);
  if (variable != nullptr) text += std::string(":") + variable;
  const std::vector<std::string> paths = pathsIn(text);
  if (paths.empty()) {
    throw LoadError(std::string("no libraries to load: name them in the environment variable ") +
                    kVariable + ", or in the entry '" + kEntry +
                    "' of the session options before this library is registered; paths are "
                    "separated by ':'");
  }
  calls.addDomain(options, runtime->domainOf(paths).handle());
}

OrtStatus* refuseOldRuntime(const OrtApiBase& base) {
  const std::string text = "libpasslib_ort needs ONNX Runtime 1." + std::to_string(kOrtVersion) +
                           " or later, and this is " + base.version_text();
  return OrtCalls::failureOf(*base.get_api(1), kOrtInvalidArgument, text);
}

}  // namespace
}  // namespace passlib

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(
    OrtSessionOptions* options, const OrtApiBase* base) {
  const OrtApi* api = base->get_api(passlib::kOrtVersion);
  if (api == nullptr) return passlib::refuseOldRuntime(*base);
  passlib::Runtime& runtime = passlib::Runtime::of(*api);
  return passlib::guarded(runtime.calls(),
                          [&]() { passlib::registerLibraries(&runtime, options); });
}
