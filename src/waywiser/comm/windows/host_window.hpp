#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// Host memory of the ranks of a group, which each rank may read and write by UCX.
class HostWindow {
 public:
  // Collective.
  HostWindow(Session& session, const Members& members, Region local, RankExchange& exchange);
  HostWindow(const HostWindow&) = delete;
  HostWindow& operator=(const HostWindow&) = delete;
  ~HostWindow();

  Bytes bytes_of(int rank) const { return ranks_[static_cast<std::size_t>(rank)].bytes; }
  // To or from a rank, at an offset of its memory. `data` may be reused when they return.
  void put(const Call& call, Bytes offset, ConstRegion data);
  void get(const Call& call, Bytes offset, Region data);
  // Arrives after all earlier puts of this rank.
  void signal(const Call& call, Bytes offset, std::uint64_t value);

 private:
  // The exposed memory of one rank.
  struct Exposed {
    std::uint64_t address = 0;
    Bytes bytes = 0;
    std::vector<std::byte> key;
    std::unique_ptr<UcxRemoteMemory> opened;
  };
  struct Record;
  Record expose(Region local);
  std::uint32_t peer_of(const Call& call) const { return members_.peer(call.peer); }
  Exposed& opened(const Call& call);

  Session& session_;
  const Members members_;
  std::unique_ptr<UcxMemory> mine_;
  std::vector<Exposed> ranks_;
};

// Waits until all puts of this rank have arrived. `peer`: a rank of the session, for error messages.
void flush_puts(Session& session, const Call& call, std::uint32_t peer);

}  // namespace waywiser
