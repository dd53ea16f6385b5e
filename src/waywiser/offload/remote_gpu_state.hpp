#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/process_end.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/remote_gpu.hpp"
#include "waywiser/offload/request_stream.hpp"
#include "waywiser/offload/serve_client.hpp"

namespace waywiser {

struct [[gnu::visibility("hidden")]] RemoteGpu::State {
  State(Group of_two, std::string called, Bytes most, std::shared_ptr<void> kept, bool plain_admitted)
      : connection(std::move(kept)),
        group(std::move(of_two)),
        name(std::move(called)),
        limit(most),
        admits_plain(plain_admitted) {}

  std::shared_ptr<void> connection;  // the server ends the worker when it is closed
  Group group;
  std::optional<Group> plain;  // for arrays that go unencrypted
  const std::string name;
  const Bytes limit;
  const bool admits_plain;  // by the server, for arrays of clients that want it
  bool wants_plain = false;
  RequestStream requests{group};
  RemoteInterval input, compute, output;
  std::uint64_t last = 0, stream = 0;
  bool closed = false;
  std::mutex pinned_mutex;
  std::map<const std::byte*, std::pair<std::uint64_t, std::weak_ptr<PinnedMemory::Block>>> pinned;  // by their ends
  const BeforeProcessEnd before_process_end{[this] { end_with_process(); }};

  // Around each call: keeps other threads out of it.
  GroupHold alone(std::string_view call) {
    try {
      return GroupHold(group);
    } catch (const Error&) {
      refuse_thread(call);
    }
  }
  [[noreturn]] void refuse_thread(std::string_view call) const {
    throw Error(ErrorKind::invalid_input, name + ", " + std::string(call) +
                                              ": another thread is in a call of this GPU: one thread at a time may "
                                              "use it; let each connect by itself");
  }
  // Errors of the group name the server and the call.
  template <typename Function>
  auto told_as(std::string_view call, Function function) {
    try {
      return function();
    } catch (const Error& error) {
      throw Error(error.kind(), name + ", " + std::string(call) + ": " + error.what());
    }
  }
  void check_open() const {
    if (closed) throw Error(ErrorKind::invalid_input, name + " is closed");
  }
  void check_new(const ArrayHead& head) const {
    check(head);
    if (head.bytes() > limit)
      throw Error(ErrorKind::device, name + ": " + std::to_string(head.bytes()) +
                                         " bytes are above this server's limit of " + std::to_string(limit));
  }
  // The group in which the bytes of arrays travel.
  Group& arrays() { return plain ? *plain : group; }
  void add(std::string_view call, const RemoteRequest& request) {
    check_open();
    const std::vector<std::byte> bytes = fitting_bytes(request);
    told_as(call, [&] { requests.add(bytes); });
  }
  // And the bytes that follow it, through one of the groups.
  void add(std::string_view call, const RemoteRequest& request, ConstRegion bytes, Group& through) {
    add(call, request);
    if (bytes.bytes == 0) return;
    told_as(call, [&] {
      requests.flush();
      for (Bytes at = 0; at < bytes.bytes; at += piece_of_array)
        through.send({bytes.slice(at, std::min(piece_of_array, bytes.bytes - at)), DataType::uint8}, worker_rank,
                     array_tag);
    });
  }
  // The bytes of an array, which follow a reply.
  void receive(std::string_view call, Region into) {
    told_as(call, [&] {
      for (Bytes at = 0; at < into.bytes; at += piece_of_array)
        arrays().recv({into.slice(at, std::min(piece_of_array, into.bytes - at)), DataType::uint8}, worker_rank,
                      array_tag);
    });
  }
  RemoteReply answer(std::string_view call, const RemoteRequest& request) {
    check_open();
    told_as(call, [&] {
      requests.add(bytes_of_request(request));
      requests.flush();
    });
    return reply_to(call);
  }
  RemoteReply reply_to(std::string_view call) {
    RemoteReply reply = told_as(call, [&] { return requests.receive_reply(); });
    throw_failure(reply);
    return reply;
  }
  void throw_failure(const RemoteReply& reply) const {
    if (reply.failure) throw Error(reply.failure->kind, name + ": " + reply.failure->text + reply.failure->details);
  }
  RemoteReply answer(std::string_view call) { return answer(call, RemoteRequest{}); }

  void close() noexcept;
  void close_held() noexcept;
  void end_with_process() noexcept;
  // Tells the server which memory is gone.
  void forget_pinned();
  // The memory that the server can use and that has all these bytes; no block: none.
  struct PinnedPart {
    std::shared_ptr<PinnedMemory::Block> block;
    requests::PinnedPlace place;
    explicit operator bool() const noexcept { return block != nullptr; }
  };
  PinnedPart pinned_at(ConstRegion bytes);
  // Asks for a copy from or into such memory. Afterwards the server touches it no more, also if this throws.
  RemoteReply copy_pinned(std::string_view call, const RemoteRequest& request, const PinnedPart& memory);
};

}  // namespace waywiser
