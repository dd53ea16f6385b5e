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

// What both ends know, and nobody else: it proves each to the other and keys the connection, with fresh keys
// (ephemeral Diffie-Hellman) for each one.
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
  // A session that holds the key, for OpenSSL to own; nullptr when it has no memory.
  ssl_session_st* new_session(ssl_st* connection) const noexcept;

 private:
  const SslFunctions& functions_;
  ssl_ctx_st* context_ = nullptr;
  TlsKey key_;
};

enum class TlsSide { client, server };

// One end of a connection over a non-blocking socket. Nothing waits. What write() has taken is copied.
class TlsConnection {
 public:
  TlsConnection(const TlsContext& context, Descriptor socket, TlsSide side);
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;
  // Tells the other end, if that is possible at once, that this one has ended in order.
  ~TlsConnection();

  int number() const noexcept { return socket_.number(); }
  // True once both ends have proved the key. Throws invalid_input when the other end has another one or does not speak
  // TLS, io when it has gone.
  bool handshake();
  // What write() has taken so far, each piece counted as a record of the TLS protocol at least.
  std::uint64_t written() const noexcept { return written_; }
  // How many bytes were taken; 0: there is no room now. After 0 the next call begins with the same bytes.
  std::size_t write(std::span<const std::byte> bytes);
  // How many came; 0: none now. Throws io when the other end has gone, invalid_input for bytes that it did not send.
  std::size_t read(std::span<std::byte> into);
  // Whether the kernel encrypts what is sent.
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
