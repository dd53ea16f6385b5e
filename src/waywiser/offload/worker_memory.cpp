#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {

// A client whose memory cannot be used sends its bytes instead: that is no failure.
void RemoteWorker::pin(const RemoteRequest& request) {
  RemoteReply told;
  try {
    client_memory_.add(request.array, channel_.open_file_of_client(request.at), request.bytes, request.secret);
    told.placed = true;
  } catch (const Error&) {
  }
  reply(std::move(told));
}

void RemoteWorker::make_from(const RemoteRequest& request) {
  const Seconds begin = now_seconds();
  attempt(array_text(request.array), [&] {
    check_new(request.array);
    const Region from = client_memory_.find(request.memory, request.at, request.head.bytes());
    HeldArray made = allocate(request.head);
    if (from.bytes != 0) copy_now(made.memory, from);
    add(request.array, std::move(made));
  });
  input_.add(begin, now_seconds());
  reply();
}

void RemoteWorker::put_from(const RemoteRequest& request) {
  const Seconds begin = now_seconds();
  attempt(array_text(request.array), [&] {
    work_.settle();
    const Region into = find(request.array).memory.slice(request.offset, request.bytes);
    const Region from = client_memory_.find(request.memory, request.at, request.bytes);
    if (from.bytes != 0) copy_now(into, from);
  });
  input_.add(begin, now_seconds());
  reply();
}

void RemoteWorker::begin_put(const RemoteRequest& request) {
  attempt(array_text(request.array), [&] {
    const HeldArray& array = find(request.array);
    const Region into = array.memory.slice(request.offset, request.bytes);
    const Region from = client_memory_.find(request.memory, request.at, request.bytes);
    if (from.bytes == 0) return;
    work_.carry(array.owner, [&](Stream& stream) { stream.copy(into, from); });
  });
}

// Copies that were begun may still read it.
bool RemoteWorker::forget_memory(std::uint64_t number) {
  try {
    work_.settle_all();
  } catch (const Error& error) {
    attempt("free", [&] { throw Error(error); });
  }
  return client_memory_.forget(number);
}

void RemoteWorker::get_into(const RemoteRequest& request) {
  RemoteReply told;
  told.placed = true;
  Seconds begin = now_seconds();
  attempt(array_text(request.array), [&] {
    work_.settle();
    begin = now_seconds();
    const HeldArray& array = find(request.array);
    const std::string problem = why_no_room(array.head, request.head.type, request.head.elements());
    if (!problem.empty()) throw Error(ErrorKind::invalid_input, problem);
    const Region into = client_memory_.find(request.memory, request.at, array.memory.bytes);
    if (into.bytes != 0) copy_now(into, array.memory);
    told.head = array.head;
  });
  output_.add(begin, now_seconds());
  reply(std::move(told));
}

}  // namespace waywiser
