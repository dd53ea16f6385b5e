#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/path/path.hpp"
#include "waywiser/transport/tls/tls_reader.hpp"
#include "waywiser/transport/tls/tls_writer.hpp"

namespace waywiser {

class PeerChannel;

// Whether the kernel is to encrypt: parameter by=openssl|kernel. Throws invalid_input.
bool is_by_kernel(const Path& path);
// The address of this end's network device; empty: it has none.
std::string address_of_device(const std::string& device);

// Ordered messages of host memory between two processes over one TLS connection. The key is made for the connection and
// sent over the peer channel. Used by one thread at a time.
class TlsSocket {
 public:
  // `name`: for messages.
  TlsSocket(const Path& path, PeerChannel& peer, std::string name);
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  // Both processes call it once, at the same time. Throws unavailable, io or timeout.
  void connect(Deadline deadline);

  // Start a message. Both regions must stay unchanged until it is done.
  void send(ConstRegion source);
  void receive(Region destination);
  // Waits until all are done. Throws corrupt if a message of another size came, timeout, and io if the peer process has
  // ended.
  void finish(Deadline deadline);
  void finish_sends(Deadline deadline);

 private:
  Descriptor connect_or_accept(const Descriptor& listener, const std::string& host, std::uint16_t port,
                               Deadline deadline) const;
  void shake_hands(Deadline deadline);
  void advance();
  bool write_first();
  bool read_first();
  void look(Deadline deadline) const;

  const std::string name_, here_;
  const bool by_kernel_;
  PeerChannel& peer_;
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<TlsConnection> line_;
  TlsWriter writer_;
  std::deque<ConstRegion> sends_;  // each as its length, then its bytes
  TlsReader reader_;
  std::deque<Region> receives_;
  std::uint64_t length_ = 0;  // of the first incoming message, as far as it is known
  bool is_server_ = false;
};

}  // namespace waywiser
