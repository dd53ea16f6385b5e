#include "waywiser/group/taken_message.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {

// All earlier receives that match have got their messages: this one gets what the probe has found.
TakenMessage::TakenMessage(Group& group, const MessageStatus& status)
    : status_(status), bytes_(std::make_shared<std::vector<std::byte>>(status.count * bytes_of(status.type))) {
  const Elements into({bytes_->data(), bytes_->size(), host(0)}, status.type);
  arrival_ = group.recv(into, status.source, status.tag, Mode::begin);
  arrival_.keep(bytes_);
}

void TakenMessage::receive(Elements into) {
  const std::string what = "a message of " + std::to_string(status_.count) + " " + std::string(name(status_.type)) +
                           " from rank " + std::to_string(status_.source);
  if (!bytes_) throw Error(ErrorKind::invalid_input, what + " has been received already");
  if (into.region.place.is_gpu())
    throw Error(ErrorKind::unavailable, what + " that was taken is received into host memory");
  if (into.type != status_.type || into.count() < status_.count)
    throw Error(ErrorKind::invalid_input,
                what + " into " + std::to_string(into.count()) + " " + std::string(name(into.type)));
  arrival_.wait();
  std::ranges::copy(*bytes_, into.region.data);
  bytes_.reset();
}

std::optional<TakenMessage> mprobe(Group& group, int from, int tag, std::optional<Seconds> patience) {
  const GroupHold hold(group);
  const auto found = group.probe(from, tag, patience);
  if (!found) return {};
  return TakenMessage(group, *found);
}

}  // namespace waywiser
