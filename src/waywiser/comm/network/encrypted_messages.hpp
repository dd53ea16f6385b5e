#pragma once

#include <poll.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"
#include "waywiser/comm/message/carrier.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/transport/tls/tls_reader.hpp"
#include "waywiser/transport/tls/tls_writer.hpp"

namespace waywiser {

// Messages between ranks of different machines over TLS instead of UCX: encrypted, and both ends have proved that they
// know the job's secret. A rank sends over connections that it has made and receives over connections that others have
// made. Short messages are sent at once; a long message is announced (RTS) and sent when the receiver is ready (CTS).
// Used by one thread; bytes move only inside progress().
class EncryptedMessages final : public Carrier {
 public:
  struct Options {
    bool by_kernel = false;  // the kernel encrypts, if it can
    // After this many bytes a new connection with new keys replaces the old one: AES-GCM keeps its safety margin for
    // 2^24.5 records of at most 16 KiB (RFC 8446, 5.5).
    std::uint64_t bytes_of_key = std::uint64_t{1} << 38;
  };
  // Listens on `host`, at any free port. `mask`: the bits of a tag that are matched. Throws unavailable or io.
  EncryptedMessages(const std::string& host, const TlsKey& key, Tag mask, const Options& options);
  EncryptedMessages(const EncryptedMessages&) = delete;
  EncryptedMessages& operator=(const EncryptedMessages&) = delete;
  ~EncryptedMessages();

  // The address at which this rank listens.
  std::string offer() const;
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me) override;
  bool reaches(std::uint32_t peer) const noexcept { return peer < peers_.size() && peers_[peer].endpoint.port != 0; }

  bool takes(const Message& message) override { return reaches(message.peer); }
  void send(Message& message, Awaited awaited) override;
  void receive(Message& message) override;
  bool test(Message& message) override { return !message.is_open(); }
  std::optional<Received> probe(std::uint32_t peer, Tag tag, Tag mask) override;
  void cancel(Message& message) noexcept override;
  void progress();
  void tell_sent(SentByMechanism& sent) const override { sent["TLS over TCP"] += sent_.get(); }
  std::optional<std::string> broken() const override;
  // The connection broke because of bytes that the peer has not sent, not because the peer has ended.
  bool came_wrong() const noexcept { return came_wrong_; }
  // Waits until all sent messages have been handed to the kernel.
  void close(Deadline deadline, const std::function<void()>& turn) noexcept override;
  // What encrypts messages to the peer: "openssl" or "kernel"; empty: there is no connection.
  std::string encrypted_by(std::uint32_t peer) const;

 private:
  // Up to this size a message is sent before the receiver asks for it, and buffered if it has not asked.
  static constexpr std::uint64_t longest_unasked = defaults::encrypted_unasked;
  enum class Kind : std::uint32_t { hello, data, rts, cts, rest, renew };
  struct Header {
    Kind kind = Kind::hello;
    std::uint32_t rank = 0;  // from its hello
    std::uint64_t tag = 0, bytes = 0, number = 0;
  };
  // An outgoing header, and the message that it belongs to, if any.
  struct Outgoing {
    Header header;
    Message* message = nullptr;  // its bytes follow; it is complete when they are sent
  };
  // A message that arrived before its receive.
  struct Early {
    Header header;
    std::vector<std::byte> data{};
    bool whole = false;
    Message* wanted_by = nullptr;  // its receive was posted while it arrives
  };
  // An incoming connection and the message that arrives on it: a header, then bytes.
  struct Incoming {
    std::unique_ptr<TlsConnection> line;
    Deadline introduced_by = Deadline::in(0);
    std::optional<std::uint32_t> peer;
    std::optional<std::uint32_t> succeeds;  // the peer's older connection, which has not ended
    Header header;
    TlsReader reader;
    bool has_more = false, ended = false;
    Message* message = nullptr;
    Early* early = nullptr;
  };
  struct Peer {
    Endpoint endpoint;
    std::unique_ptr<TlsConnection> line;  // outgoing
    bool ready = false, gone = false;
    Deadline given_up_at = Deadline::in(0), next_try = Deadline::in(0);  // of connecting
    std::deque<Outgoing> outgoing;
    TlsWriter writer;  // of the first outgoing
    std::vector<Message*> receives;
    std::list<Early> early;
    std::map<std::uint64_t, Message*> rts_sent, expected;  // by number: RTS sent, CTS sent
  };

  bool match(Tag one, Tag other) const noexcept { return ((one ^ other) & mask_) == 0; }
  void begin(Message& message) noexcept;
  void post(std::uint32_t rank, const Header& header, Message* message);
  void write_out(std::uint32_t rank);
  static bool write_first(Peer& peer);
  void begin_connection(std::uint32_t rank);
  void succeed(std::uint32_t rank);
  bool is_known(std::uint32_t rank) const;
  void connect(std::uint32_t rank);
  void try_again(std::uint32_t rank, const Error& problem);
  void accept_new();
  void drop_late();
  void read_in(Incoming& from);
  bool read_part(Incoming& from);
  void hear(Incoming& from);
  void hear_hello(Incoming& from);
  void hear_data(Incoming& from, Peer& peer);
  void hear_rts(Peer& peer, const Header& header);
  void hear_cts(Peer& peer, const Header& header);
  void hear_rest(Incoming& from, Peer& peer);
  void finish_body(Incoming& from);
  void take(Message& message, const Header& rts);
  void take_early(Peer& peer, std::list<Early>::iterator early, Message& message);
  static void complete(Message& message, const Header& header) noexcept;
  Message* take_posted(Peer& peer, Tag tag);
  void break_off(std::uint32_t rank, const std::string& why, bool came_wrong = false) noexcept;

  TlsContext context_;
  Descriptor listener_;
  std::string host_;
  Tag mask_;
  std::uint64_t bytes_of_key_;
  std::vector<Peer> peers_;  // by rank
  std::list<Incoming> lines_;
  std::uint32_t me_ = 0;
  std::uint64_t next_number_ = 0;
  std::vector<pollfd> sockets_;
  std::optional<std::pair<std::uint32_t, std::string>> broken_;
  bool came_wrong_ = false;
  SentBytes sent_;
};

}  // namespace waywiser
