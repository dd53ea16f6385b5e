#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/argument.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/group/taken_message.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

// A message on a stream has no tag; one with a tag is complete on return, after earlier work of `settle`'s stream.
void send(Group& self, nb::handle data, const Argument<int>& to, const Argument<std::optional<int>>& tag,
          nb::handle stream) {
  const int target = to("to");
  const std::optional<int>& mark = tag("tag");
  const ConstElements give = input(self, data);
  const StreamUse use(self, stream, give.region.place);
  without_gil([&] {
    if (use.stream() != nullptr && !mark) {
      self.send(give, target, 0, Mode::on(*use.stream()));
      return;
    }
    use.settle(self);
    self.send(give, target, mark.value_or(0));
  });
}

// A receive writes the status without the GIL.
void recv(Group& self, nb::handle out, const Argument<int>& from, const Argument<std::optional<int>>& tag,
          nb::handle stream, MessageStatus* status) {
  const int source = from("source");
  const std::optional<int>& mark = tag("tag");
  const Elements take = output(self, out);
  const StreamUse use(self, stream, take.region.place);
  without_gil([&] {
    if (use.stream() != nullptr && !mark) {
      self.recv(take, source, 0, Mode::on(*use.stream()), status);
      return;
    }
    use.settle(self);
    self.recv(take, source, mark.value_or(0), Mode::wait, status);
  });
}

std::optional<MessageStatus> probe(Group& self, const Argument<int>& from, const Argument<int>& tag,
                                   const Argument<std::optional<double>>& patience) {
  const int source = from("source"), mark = tag("tag");
  const std::optional<double>& longest = patience("patience");
  std::optional<MessageStatus> found;
  without_gil([&] { found = self.probe(source, mark, longest); });
  return found;
}

// Keeps the group that it was taken of.
struct PyTakenMessage {
  TakenMessage taken;
  nb::object group;
};

std::optional<PyTakenMessage> take_found(const nb::object& self, const Argument<int>& from, const Argument<int>& tag,
                                         const Argument<std::optional<double>>& patience) {
  auto& group = nb::cast<Group&>(self);
  const int source = from("source"), mark = tag("tag");
  const std::optional<double>& longest = patience("patience");
  std::optional<TakenMessage> found;
  without_gil([&] { found = mprobe(group, source, mark, longest); });
  if (!found) return {};
  return PyTakenMessage{std::move(*found), self};
}

void receive_taken(PyTakenMessage& self, nb::handle out) {
  const Elements into = output(nb::cast<Group&>(self.group), out);
  without_gil([&] { self.taken.receive(into); });
}

void sendrecv(Group& self, nb::handle data, const Argument<int>& to, nb::handle out, const Argument<int>& from,
              const Argument<std::optional<int>>& tag, nb::handle stream) {
  const int target = to("to");
  const int source = from("source");
  const std::optional<int>& mark = tag("tag");
  const ConstElements give = input(self, data);
  const Elements take = output(self, out);
  const StreamUse use(self, stream, give.region.place.is_gpu() ? give.region.place : take.region.place);
  without_gil([&] {
    if (use.stream() != nullptr && !mark) {
      self.sendrecv(give, target, take, source, 0, Mode::on(*use.stream()));
      return;
    }
    use.settle(self);
    self.sendrecv(give, target, take, source, mark.value_or(0));
  });
}

PyFuture start_send(Group& self, const nb::object& data, const Argument<int>& to, const Argument<int>& tag,
                    nb::handle stream) {
  const int target = to("to");
  const int mark = tag("tag");
  const ConstElements give = input(self, data);
  const StreamUse use(self, stream, give.region.place);
  std::optional<Future> future;
  without_gil([&] {
    use.settle(self);
    future = self.send(give, target, mark, Mode::begin);
  });
  return {std::move(*future), data};
}

// Of each run: its first element, and how many.
PyFuture start_send_runs(Group& self, const nb::object& data,
                         const std::vector<std::pair<std::size_t, std::size_t>>& list, int to, nb::handle stream) {
  std::vector<ElementRun> runs;
  for (const auto& [first, count] : list) runs.push_back({first, count});
  const ConstElements give = input(self, data);
  const StreamUse use(self, stream, give.region.place);
  std::optional<Future> future;
  without_gil([&] {
    use.settle(self);
    future = send_runs(self, give, runs, to, 0);
  });
  return {std::move(*future), data};
}

PyFuture start_recv(Group& self, const nb::object& out, const Argument<int>& from, const Argument<int>& tag,
                    nb::handle stream, const nb::object& status) {
  const int source = from("source");
  const int mark = tag("tag");
  const Elements take = output(self, out);
  const StreamUse use(self, stream, take.region.place);
  MessageStatus* place = status.is_none() ? nullptr : nb::cast<MessageStatus*>(status);
  std::optional<Future> future;
  without_gil([&] {
    use.settle(self);
    future = self.recv(take, source, mark, Mode::begin, place);
  });
  return {std::move(*future), nb::make_tuple(out, status)};
}

// Each exchange: rank, give, take, give_tag, take_tag, stream. `asked`: the caller has named one stream for all; else
// the call is complete on return, after earlier work of the arrays' streams.
void neighbor_exchange(Group& self, const nb::list& list, bool asked) {
  std::vector<Exchange> exchanges;
  std::vector<StreamUse> uses;
  for (const nb::handle each : list) {
    exchanges.push_back({item<int>(each[0], "rank"), input(self, each[1]), output(self, each[2]),
                         item<int>(each[3], "give_tag"), item<int>(each[4], "take_tag")});
    const Place give = exchanges.back().give.region.place;
    uses.emplace_back(self, each[5], give.is_gpu() ? give : exchanges.back().take.region.place);
  }
  without_gil([&] {
    const bool enqueued = asked && !uses.empty() && uses.front().stream() != nullptr;
    for (const StreamUse& use : uses)
      if (!enqueued) use.settle(self);
    self.neighbor_exchange(exchanges, enqueued ? Mode::on(*uses.front().stream()) : Mode::wait);
  });
}

}  // namespace

void bind_messages(nb::module_& m, nb::class_<Group>& type) {
  nb::class_<MessageStatus>(m, "MessageStatus", "See waywiser.MessageStatus.")
      .def(nb::init<>())
      .def_ro("source", &MessageStatus::source)
      .def_ro("tag", &MessageStatus::tag)
      .def_prop_ro("type", [](const MessageStatus& self) { return name(self.type); })
      .def_ro("count", &MessageStatus::count);
  nb::class_<PyTakenMessage>(m, "TakenMessage", "See waywiser.TakenMessage.")
      .def_prop_ro("status", [](const PyTakenMessage& self) { return self.taken.status(); })
      .def("recv", receive_taken, "out"_a.none());
  m.attr("ANY_SOURCE") = any_source;
  m.attr("ANY_TAG") = any_tag;
  type.def("send", send, "data"_a.none(), "to"_a.none(), "tag"_a.none(), "stream"_a.none());
  type.def("recv", recv, "out"_a.none(), "source"_a.none(), "tag"_a.none(), "stream"_a.none(),
           "status"_a.none() = nb::none());
  type.def("probe", probe, "source"_a.none(), "tag"_a.none(), "patience"_a.none());
  type.def("mprobe", take_found, "source"_a.none(), "tag"_a.none(), "patience"_a.none());
  type.def("sendrecv", sendrecv, "data"_a.none(), "to"_a.none(), "out"_a.none(), "source"_a.none(), "tag"_a.none(),
           "stream"_a.none());
  type.def("start_send", start_send, "data"_a.none(), "to"_a.none(), "tag"_a.none(), "stream"_a.none());
  type.def("start_send_runs", start_send_runs, "data"_a.none(), "runs"_a, "to"_a, "stream"_a.none());
  type.def("start_recv", start_recv, "out"_a.none(), "source"_a.none(), "tag"_a.none(), "stream"_a.none(),
           "status"_a.none() = nb::none());
  type.def("neighbor_exchange", neighbor_exchange, "neighbors"_a, "asked"_a);
}

}  // namespace waywiser
