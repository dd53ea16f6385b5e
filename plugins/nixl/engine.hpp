#pragma once

#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "agent_socket.hpp"
#include "memory_table.hpp"
#include "nixl_types.hpp"
#include "peer.hpp"
#include "plan_rates.hpp"
#include "post_office.hpp"
#include "workers.hpp"

namespace waywiser_nixl {

// The back end of one agent of NIXL: memory of hosts and GPUs, within an agent and between agents of one machine.
class Engine : public EngineBase {
 public:
  explicit Engine(const EngineStart& start);  // throws Refusal

  bool supports_remote() const override { return true; }
  bool supports_local() const override { return true; }
  bool supports_notifications() const override { return true; }
  std::vector<MemoryKind> memories() const override { return served_memories(); }
  static std::vector<MemoryKind> served_memories();

  Status add_memory(const NamedRange& memory, const MemoryKind& kind, Metadata*& made) override;
  Status remove_memory(Metadata* memory) override;
  Status connect(const std::string& agent) override;
  Status disconnect(const std::string& agent) override;
  Status forget(Metadata* memory) override;
  Status prepare(const Operation& operation, const KnownRanges& local, const KnownRanges& remote,
                 const std::string& agent, RequestHandle*& made, const PostOptions* options) const override;
  Status post(const Operation& operation, const KnownRanges& local, const KnownRanges& remote, const std::string& agent,
              RequestHandle*& request, const PostOptions* options) const override;
  Status check(RequestHandle* request) const override;
  Status release(RequestHandle* request) const override;
  Status told_of_memory(const Metadata* memory, std::string& text) const override;
  Status told_of_agent(std::string& text) const override;
  Status learn_agent(const std::string& agent, const std::string& text) override;
  Status learn_memory(const NamedRange& memory, const MemoryKind& kind, const std::string& agent,
                      Metadata*& made) override;
  Status learn_own_memory(Metadata* memory, Metadata*& made) override;
  Status take_notifications(Notifications& taken) override;
  Status notify(const std::string& agent, const std::string& message) const override;
  Status estimate(const Operation& operation, const KnownRanges& local, const KnownRanges& remote,
                  const std::string& agent, RequestHandle* const& request, Microseconds& time, Microseconds& margin,
                  CostMethod& method, const void* options) const override;

 private:
  std::shared_ptr<Peer> find(const std::string& agent) const;  // null: not known
  std::optional<Expected> expect(const Request& request) const;
  void compare_with_plan(const Request& request) const;

  const AgentAddress address_;
  const PlanRates plan_;
  const std::shared_ptr<OwnMemoryTable> table_;
  mutable PostOffice post_office_;
  const std::shared_ptr<Peer> self_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<Peer>> peers_;
  mutable Workers workers_;
};

}  // namespace waywiser_nixl
