// NIXL's interface of back ends, declared here once more, so that a wrong declaration of the plug-in does not agree
// with itself. Its own library is met by tests/python/nixl_wheel_test.py.
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

namespace made_up_nixl {

using Text = const std::string&;
using Settings = std::unordered_map<std::string, std::string>;
using Messages = std::vector<std::pair<std::string, std::string>>;
using Micro = std::chrono::microseconds;

struct Known {
  virtual ~Known() = default;
  bool hidden = true;
};
struct Span {
  std::uintptr_t at = 0;
  std::size_t length = 0;
  std::uint64_t device = 0;
};
struct SpanWithBlob : Span {
  std::string blob;
};
struct SpanWithKnown : Span {
  Known* known = nullptr;
};

// The first three virtual functions behind the destructor are never called by a back end.
template <typename T>
struct List {
  explicit List(int memory) : kind(memory) {}
  virtual ~List() = default;
  virtual void resize(const std::size_t& count) { spans.resize(count); }
  virtual void add(const T& span) { spans.push_back(span); }
  virtual int index(const Span&) const { return -1; }
  int kind;
  std::vector<T> spans;
};
using KnownList = List<SpanWithKnown>;

struct Pending {
  virtual ~Pending() = default;
};
struct Extra {
  std::string message;
  bool has_message = false;
  std::string custom;
};

class BackEnd {
 private:
  std::string type;
  Settings settings;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> events;
  std::mutex events_lock;

 protected:
  bool wrong = false;
  const std::string agent;
  const bool telemetry = false;

 public:
  virtual ~BackEnd() = default;
  virtual bool remote() const = 0;
  virtual bool local() const = 0;
  virtual bool messages() const = 0;
  virtual std::vector<int> kinds() const = 0;
  virtual int add(const SpanWithBlob&, const int& kind, Known*&) = 0;
  virtual int remove(Known*) = 0;
  virtual int connect(Text agent) = 0;
  virtual int disconnect(Text agent) = 0;
  virtual int unload(Known*) = 0;
  virtual int prepare(const int& way, const KnownList&, const KnownList&, Text agent, Pending*&,
                      const Extra*) const = 0;
  virtual int post(const int& way, const KnownList&, const KnownList&, Text agent, Pending*&, const Extra*) const = 0;
  virtual int check(Pending*) const = 0;
  virtual int release(Pending*) const = 0;
  virtual int view(const void*, void*&, const Extra*) const = 0;
  virtual int local_view(const KnownList&, void*&, const Extra*) const = 0;
  virtual void end_view(void*) const = 0;
  virtual int public_data(const Known*, std::string&) const = 0;
  virtual int connection(std::string&) const = 0;
  virtual int load_connection(Text agent, Text blob) = 0;
  virtual int load_remote(const SpanWithBlob&, const int& kind, Text agent, Known*&) = 0;
  virtual int load_local(Known*, Known*&) = 0;
  virtual int take(Messages&) = 0;
  virtual int send(Text agent, Text message) const = 0;
  virtual int query(const List<SpanWithBlob>&, std::vector<std::optional<Settings>>&) const = 0;
  virtual int cost(const int& way, const KnownList&, const KnownList&, Text agent, Pending* const&, Micro&, Micro&,
                   int& method, const void*) const = 0;

  bool is_wrong() const { return wrong; }
  const std::string& kind_of_back_end() const { return type; }
};

struct Start {
  std::string agent, type;
  Settings* settings = nullptr;
  bool progress = false;
  std::uint64_t delay = 0;
  int sync = 0;
  bool telemetry = false;
};

struct PlugIn {
  int interface;
  BackEnd* (*create)(const Start*);
  void (*destroy)(BackEnd*);
  const char* (*name)();
  const char* (*version)();
  Settings (*options)();
  std::vector<int> (*kinds)();
};

}  // namespace made_up_nixl
