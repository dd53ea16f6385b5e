#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {

// A client whose memory cannot be used sends its bytes instead: that is no failure.
void RemoteWorker::carry_out(const requests::Pin& pin) {
  RemoteReply told;
  try {
    client_memory_.add(pin.memory, channel_.open_file_of_client(pin.file), pin.bytes, pin.secret);
    told.placed = true;
  } catch (const Error&) {
  }
  reply(std::move(told));
}

Region RemoteWorker::find(const requests::PinnedPlace& place, Bytes bytes) const {
  return client_memory_.find(place.memory, place.offset, bytes);
}

void RemoteWorker::carry_out(const requests::ArrayFrom& wanted) {
  const Seconds begin = now_seconds();
  attempt(array_text(wanted.array), [&] {
    check_new(wanted.array);
    const Region from = find(wanted.place, wanted.head.bytes());
    HeldArray made = allocate(wanted.head);
    if (from.bytes != 0) copy_now(made.memory, from);
    add(wanted.array, std::move(made));
  });
  input_.add(begin, now_seconds());
  reply();
}

void RemoteWorker::carry_out(const requests::PutFrom& put) {
  const Seconds begin = now_seconds();
  attempt(array_text(put.part.array), [&] {
    work_.settle();
    const Region into = find(put.part), from = find(put.place, put.part.bytes);
    if (from.bytes != 0) copy_now(into, from);
  });
  input_.add(begin, now_seconds());
  reply();
}

void RemoteWorker::carry_out(const requests::BeginPut& put) {
  attempt(array_text(put.part.array), [&] {
    const Region into = find(put.part), from = find(put.place, put.part.bytes);
    if (from.bytes == 0) return;
    work_.carry(find(put.part.array).owner, [&](Stream& stream) { stream.copy(into, from); });
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

void RemoteWorker::carry_out(const requests::GetInto& get) {
  RemoteReply told;
  told.placed = true;
  Seconds begin = now_seconds();
  attempt(array_text(get.array), [&] {
    work_.settle();
    begin = now_seconds();
    const HeldArray& array = find(get.array);
    const std::string problem = why_no_room(array.head, get.head.type, get.head.elements());
    if (!problem.empty()) throw Error(ErrorKind::invalid_input, problem);
    const Region into = find(get.place, array.memory.bytes);
    if (into.bytes != 0) copy_now(into, array.memory);
    told.head = array.head;
  });
  output_.add(begin, now_seconds());
  reply(std::move(told));
}

}  // namespace waywiser
