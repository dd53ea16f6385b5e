#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// NIXL's interface of back ends by its layout, which is that of versions in `served_versions`; the names are ours. Its
// headers are not needed. The order of the members and of the virtual functions matters, also of those not used.
namespace waywiser_nixl {

inline constexpr int plugin_interface = 1;

enum class Status : int {
  in_progress = 1,
  success = 0,
  invalid = -2,
  backend_error = -3,
  not_found = -4,
  mismatch = -5,
  not_allowed = -6,
  not_supported = -9,
  disconnected = -10,
  canceled = -11,
};
enum class MemoryKind : int { dram = 0, vram = 1, block = 2, object = 3, file = 4 };
enum class Operation : int { read = 0, write = 1 };
enum class CostMethod : int { analytical = 0 };

using Parameters = std::unordered_map<std::string, std::string>;
using Notifications = std::vector<std::pair<std::string, std::string>>;  // agent, message
using Answers = std::vector<std::optional<Parameters>>;
using Microseconds = std::chrono::duration<std::int64_t, std::micro>;

struct Range {
  std::uintptr_t address;
  std::size_t bytes;
  std::uint64_t device;
};

// What a back end knows of registered memory, here or at another agent.
class Metadata {
 public:
  Metadata() = default;
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;
  virtual ~Metadata() = default;

 protected:
  bool is_private = true;
};

struct NamedRange : Range {
  std::string metadata;
};
struct KnownRange : Range {
  Metadata* metadata;
};
struct RemoteRange;  // of calls that are not served

// Made by NIXL, and only read here.
template <typename T>
class Ranges {
 public:
  virtual ~Ranges() = default;

  MemoryKind kind{};
  std::vector<T> all;
};
using KnownRanges = Ranges<KnownRange>;

class RequestHandle {
 public:
  RequestHandle() = default;
  RequestHandle(const RequestHandle&) = delete;
  RequestHandle& operator=(const RequestHandle&) = delete;
  virtual ~RequestHandle() = default;
};

struct PostOptions {
  std::string message;
  bool notifies;
  std::string custom;
};

struct EngineStart {
  std::string agent;
  std::string type;
  const Parameters* parameters;
  bool progress_thread;
  std::uint64_t progress_delay;
  int thread_mode;
  bool telemetry;
};

struct TelemetryEvent;

class EngineBase {
 public:
  explicit EngineBase(const EngineStart& start)
      : type_(start.type), parameters_(*start.parameters), agent_(start.agent), telemetry_(start.telemetry) {}
  EngineBase(const EngineBase&) = delete;
  EngineBase& operator=(const EngineBase&) = delete;

  virtual ~EngineBase() = default;
  virtual bool supports_remote() const = 0;
  virtual bool supports_local() const = 0;
  virtual bool supports_notifications() const = 0;
  virtual std::vector<MemoryKind> memories() const = 0;
  virtual Status add_memory(const NamedRange& memory, const MemoryKind& kind, Metadata*& made) = 0;
  virtual Status remove_memory(Metadata* memory) = 0;
  virtual Status connect(const std::string& agent) = 0;
  virtual Status disconnect(const std::string& agent) = 0;
  virtual Status forget(Metadata* memory) = 0;
  virtual Status prepare(const Operation& operation, const KnownRanges& local, const KnownRanges& remote,
                         const std::string& agent, RequestHandle*& made, const PostOptions* options) const = 0;
  virtual Status post(const Operation& operation, const KnownRanges& local, const KnownRanges& remote,
                      const std::string& agent, RequestHandle*& request, const PostOptions* options) const = 0;
  virtual Status check(RequestHandle* request) const = 0;
  virtual Status release(RequestHandle* request) const = 0;
  virtual Status remote_view(const Ranges<RemoteRange>&, void*&, const PostOptions*) const {
    return Status::not_supported;
  }
  virtual Status local_view(const KnownRanges&, void*&, const PostOptions*) const { return Status::not_supported; }
  virtual void release_view(void*) const {}
  virtual Status told_of_memory(const Metadata* memory, std::string& text) const = 0;
  virtual Status told_of_agent(std::string& text) const = 0;
  virtual Status learn_agent(const std::string& agent, const std::string& text) = 0;
  virtual Status learn_memory(const NamedRange& memory, const MemoryKind& kind, const std::string& agent,
                              Metadata*& made) = 0;
  virtual Status learn_own_memory(Metadata* memory, Metadata*& made) = 0;
  virtual Status take_notifications(Notifications& taken) = 0;
  virtual Status notify(const std::string& agent, const std::string& message) const = 0;
  virtual Status query(const Ranges<NamedRange>&, Answers&) const { return Status::not_supported; }
  virtual Status estimate(const Operation& operation, const KnownRanges& local, const KnownRanges& remote,
                          const std::string& agent, RequestHandle* const& request, Microseconds& time,
                          Microseconds& margin, CostMethod& method, const void* options) const = 0;

 private:
  std::string type_;
  Parameters parameters_;
  std::vector<TelemetryEvent*> telemetry_events_;  // of another type there, and empty here
  std::mutex telemetry_mutex_;

 protected:
  bool failed_ = false;
  const std::string agent_;

 private:
  const bool telemetry_;
};

struct Plugin {
  int interface;
  EngineBase* (*make_engine)(const EngineStart*);
  void (*end_engine)(EngineBase*);
  const char* (*name)();
  const char* (*version)();
  Parameters (*options)();
  std::vector<MemoryKind> (*memories)();
};

static_assert(sizeof(Range) == 24 && sizeof(KnownRange) == 32 && sizeof(NamedRange) == 56);
static_assert(sizeof(KnownRanges) == 40 && sizeof(PostOptions) == 72 && sizeof(EngineStart) == 96);
static_assert(sizeof(EngineBase) == 208);

}  // namespace waywiser_nixl
