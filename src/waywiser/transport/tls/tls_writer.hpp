#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/transport/tls/tls_connection.hpp"

namespace waywiser {

// Messages going out over one connection, one after another: each is a head, then its bytes. Measurements and groups
// write by it.
class TlsWriter {
 public:
  // As far as it goes without waiting; called again with the same message until it is true: all of it has gone.
  bool write(TlsConnection& line, std::span<const std::byte> head, std::span<const std::byte> body);
  // TLS may hold some of the message.
  bool begun() const noexcept { return !record_.empty(); }
  // There is another connection.
  void forget() noexcept;

 private:
  // The head and the first bytes go as one record. It stays where it is until it has gone: where the kernel encrypts,
  // OpenSSL comes back to the bytes that it was given first.
  std::vector<std::byte> record_;
  std::uint64_t sent_ = 0;  // of the head and the bytes
};

}  // namespace waywiser
