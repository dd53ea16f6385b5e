#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {
namespace {

// Calls `function(offset, room)` for all pieces of an array, each with the same room in host memory.
template <typename Function>
void each_piece(Bytes bytes, Function function) {
  std::vector<std::byte> room(std::min(bytes, piece_of_array));
  for (Bytes at = 0; at < bytes; at += piece_of_array)
    function(at, std::span(room).first(std::min(piece_of_array, bytes - at)));
}

}  // namespace

WorkerLines& RemoteWorker::lines() const {
  if (!setup_.lines) throw Error(ErrorKind::unavailable, "this server has no way to another one");
  return *setup_.lines;
}

// The client gets its answer before the other worker comes; the next answer reports what fails then.
void RemoteWorker::carry_out(const requests::Give& give) {
  bool is_announced = false;
  attempt(array_text(give.array), [&] {
    work_.settle_all();
    const HeldArray array = find(give.array);
    const auto line = lines().wait(give.secret, give.plain, [&](const std::string& address) {
      is_announced = true;
      RemoteReply told;
      told.address = address;
      reply(std::move(told));
    });
    RemoteReply about;
    about.head = array.head;
    line->send(frame_of(about));
    each_piece(array.memory.bytes, [&](Bytes at, std::span<std::byte> piece) {
      copy_now({piece.data(), piece.size(), host(0)}, array.memory.slice(at, piece.size()));
      line->send(piece);
    });
    line->close();
  });
  if (!is_announced) reply();
}

// The other worker waits even if an earlier request has failed here: then its bytes are thrown away.
void RemoteWorker::carry_out(const requests::Take& take) {
  const std::string what = array_text(take.array);
  try {
    const auto line = lines().join(take.secret, take.plain, take.address);
    ReplyFrame about;
    line->receive(about);
    const ArrayHead head = read_reply(about).head.value_or(ArrayHead{});
    HeldArray made;
    const bool is_made = attempt(what, [&] {
      check_new(take.array);
      made = allocate(head);
    });
    each_piece(head.bytes(), [&](Bytes at, std::span<std::byte> piece) {
      line->receive(piece);
      if (is_made) copy_now(made.memory.slice(at, piece.size()), {piece.data(), piece.size(), host(0)});
    });
    line->close();
    if (is_made) add(take.array, std::move(made));
  } catch (const Error& error) {
    attempt(what, [&] { throw Error(error); });
  }
}

}  // namespace waywiser
