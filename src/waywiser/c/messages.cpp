#include "waywiser/c/handles.hpp"

using namespace waywiser;

namespace {

static_assert(WW_ANY_SOURCE == any_source && WW_ANY_TAG == any_tag);

void tell(const MessageStatus& from, ww_message_status& to) {
  to = {from.source, from.tag, static_cast<ww_type>(from.type), from.count};
}

void tell_end(const ww_future& future) {
  if (future.told != nullptr) tell(future.status, *future.told);
}

}  // namespace

int ww_send(ww_group* group, const void* data, size_t count, ww_type type, int to, int tag, ww_mode mode) {
  return call_in_mode(group, mode,
                      [&](Mode when) { return group->group.send(elements(*group, data, count, type), to, tag, when); });
}

int ww_recv(ww_group* group, void* data, size_t count, ww_type type, int from, int tag, ww_mode mode) {
  return call_in_mode(
      group, mode, [&](Mode when) { return group->group.recv(elements(*group, data, count, type), from, tag, when); });
}

int ww_recv_status(ww_group* group, void* data, size_t count, ww_type type, int from, int tag,
                   ww_message_status* status, ww_mode mode) {
  if (mode.future == nullptr || mode.stream != nullptr) {
    MessageStatus told;
    return call_in_mode(group, mode, [&](Mode when) {
      ww_message_status& place = given(status, "the place for the status");
      Future done = group->group.recv(elements(*group, data, count, type), from, tag, when, &told);
      tell(told, place);
      return done;
    });
  }
  return guarded([&] {
    auto begun = std::make_unique<ww_future>();
    begun->told = &given(status, "the place for the status");
    begun->future = given(group, "the group")
                        .group.recv(elements(*group, data, count, type), from, tag, Mode::begin, &begun->status);
    *mode.future = begun.release();
  });
}

int ww_probe(ww_group* group, int from, int tag, ww_message_status* status) {
  return guarded([&] {
    ww_message_status& place = given(status, "the place for the status");
    tell(given(group, "the group").group.probe(from, tag).value(), place);
  });
}

int ww_iprobe(ww_group* group, int from, int tag, double patience, int* found, ww_message_status* status) {
  return guarded([&] {
    int& answer = given(found, "the place for the answer");
    ww_message_status& place = given(status, "the place for the status");
    const auto known = given(group, "the group").group.probe(from, tag, patience);
    answer = static_cast<int>(known.has_value());
    if (known) tell(*known, place);
  });
}

int ww_mprobe(ww_group* group, int from, int tag, double patience, ww_message_status* status, ww_message** message) {
  return guarded([&] {
    ww_message_status& place = given(status, "the place for the status");
    given(message, "the address for the message") = nullptr;
    auto taken =
        mprobe(given(group, "the group").group, from, tag, patience < 0 ? std::nullopt : std::optional(patience));
    if (!taken) return;
    tell(taken->status(), place);
    *message = new ww_message{std::move(*taken), group};
  });
}

int ww_mrecv(ww_message* message, void* data, size_t count, ww_type type) {
  return guarded([&] {
    ww_message& from = given(message, "the message");
    from.taken.receive(elements(*from.group, data, count, type));
  });
}

void ww_message_free(ww_message* message) { delete message; }

int ww_sendrecv(ww_group* group, const void* data, size_t count, int to, void* into, size_t into_count, int from,
                ww_type type, int tag, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.sendrecv(elements(*group, data, count, type), to, elements(*group, into, into_count, type),
                                 from, tag, when);
  });
}

int ww_neighbor_exchange(ww_group* group, const ww_exchange* neighbors, size_t count, ww_mode mode) {
  return call_in_mode(group, mode, [&](Mode when) {
    return group->group.neighbor_exchange(exchanges(*group, neighbors, count), when);
  });
}

int ww_future_test(ww_future* future, int* done) {
  return guarded([&] {
    given(done, "the place for the answer");
    *done = static_cast<int>(given(future, "the future").future.done());
    if (*done != 0) tell_end(*future);
  });
}

int ww_future_wait(ww_future* future) {
  return guarded([&] {
    given(future, "the future").future.wait();
    tell_end(*future);
  });
}

int ww_wait_all(ww_future* const* futures, size_t count) {
  return guarded([&] {
    if (count != 0) given(futures, "the array of futures");
    for (ww_future* const* each = futures; each != futures + count; ++each)
      if (*each != nullptr) {
        (*each)->future.wait();
        tell_end(**each);
      }
  });
}

int ww_wait_any(ww_future* const* futures, size_t count, size_t* place) {
  return guarded([&] {
    given(place, "the place for the answer");
    if (count != 0) given(futures, "the array of futures");
    std::vector<Future*> all;
    for (ww_future* const* each = futures; each != futures + count; ++each)
      all.push_back(*each == nullptr ? nullptr : &(*each)->future);
    *place = wait_any(all);
    tell_end(*futures[*place]);
  });
}

void ww_future_free(ww_future* future) { delete future; }
