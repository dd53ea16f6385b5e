#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "waywiser/device/descriptor.hpp"
#include "waywiser/transport/tls/libssl.hpp"

namespace waywiser {

// The secret that only both ends know: it authenticates each end and keys the connection, with fresh keys (ephemeral
// Diffie-Hellman) for each connection.
using TlsKey = std::array<std::byte, 32>;

// How connections are made: TLS 1.3 with an external pre-shared key (RFC 8446, 2.2), AES-128-GCM, no certificates.
class TlsContext {
 public:
  // `by_kernel`: the kernel encrypts where it can (kTLS). Throws unavailable.
  explicit TlsContext(const TlsKey& key, bool by_kernel = false);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  ssl_ctx_st* get() const noexcept { return context_; }
  const SslFunctions& functions() const noexcept { return functions_; }
  // A session with the key, owned by OpenSSL; nullptr without memory.
  ssl_session_st* new_session(ssl_st* connection) const noexcept;

 private:
  const SslFunctions& functions_;
  ssl_ctx_st* context_ = nullptr;
  TlsKey key_;
};

enum class TlsSide { client, server };

// One end of a connection over a non-blocking socket. Nothing waits. write() copies the bytes that it accepts.
class TlsConnection {
 public:
  TlsConnection(const TlsContext& context, Descriptor socket, TlsSide side);
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;
  // Tells the other end, if possible at once, that this end has closed properly.
  ~TlsConnection();

  int number() const noexcept { return socket_.number(); }
  // True once both ends have proved the key. Throws invalid_input if the other end has another key or does not speak
  // TLS, io if it has gone.
  bool handshake();
  // The bytes that write() has accepted so far; each call counts as at least one TLS record.
  std::uint64_t written() const noexcept { return written_; }
  // The number of accepted bytes; 0: no room now. After 0 the next call must begin with the same bytes.
  std::size_t write(std::span<const std::byte> bytes);
  // The number of bytes read; 0: none now. Throws io if the other end has gone, invalid_input for bytes that it did not
  // send.
  std::size_t read(std::span<std::byte> into);
  // Whether the kernel encrypts sent bytes.
  bool encrypted_by_kernel() const;

 private:
  // 0: try later. Throws io.
  std::size_t result(int returned, const char* what);

  const SslFunctions& functions_;
  Descriptor socket_;
  ssl_st* connection_;
  bool ready_ = false;
  std::uint64_t written_ = 0;
};

}  // namespace waywiser
