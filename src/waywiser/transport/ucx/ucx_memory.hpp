#pragma once

#include <cstdint>
#include <vector>

#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {

// Host memory of this process that others read and write with its key.
class UcxMemory {
 public:
  // Throws device.
  UcxMemory(const UcxWorker& worker, Region memory);
  UcxMemory(const UcxMemory&) = delete;
  UcxMemory& operator=(const UcxMemory&) = delete;
  ~UcxMemory();

  std::vector<std::byte> key() const;  // throws device

 private:
  ucp_context_h context_;
  ucp_mem_h handle_ = nullptr;
};

// Memory of the process at the other end of a connection, opened with its key.
class UcxRemoteMemory {
 public:
  UcxRemoteMemory() = default;
  UcxRemoteMemory(const UcxRemoteMemory&) = delete;
  UcxRemoteMemory& operator=(const UcxRemoteMemory&) = delete;
  ~UcxRemoteMemory();

  // Once, before the others.
  UcxStatus open(const UcxEndpoint& endpoint, const std::vector<std::byte>& key);
  // The results may be errors, as those of a worker.
  UcxRequest put(const UcxEndpoint& endpoint, ConstRegion source, std::uint64_t address) const;
  UcxRequest get(const UcxEndpoint& endpoint, Region destination, std::uint64_t address) const;

 private:
  ucp_rkey_h key_ = nullptr;
};

}  // namespace waywiser
