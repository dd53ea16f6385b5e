#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/transport/tls/tls_connection.hpp"

namespace waywiser {

// Writes messages to one connection, one after another: each is a header, then its bytes. Used by measurements and
// groups.
class TlsWriter {
 public:
  // Writes as much as possible without waiting. Call it with the same message until it returns true: all bytes are
  // written.
  bool write(TlsConnection& line, std::span<const std::byte> head, std::span<const std::byte> body);
  // TLS may hold some of the message.
  bool begun() const noexcept { return !record_.empty(); }
  // The connection has been replaced.
  void forget() noexcept;

 private:
  // The header and the first bytes form one record. It keeps its address until it is sent: if the kernel encrypts,
  // OpenSSL returns to the address that it got first.
  std::vector<std::byte> record_;
  std::uint64_t sent_ = 0;  // of header and bytes
};

}  // namespace waywiser
