#include "waywiser/measure/machine_service.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view order_name = "message of rank 0";
constexpr Seconds between_looks = 0.2;
constexpr Seconds message_patience = 5;

}  // namespace

MachineService::MachineService(PeerSocket line, std::string host, Seconds patience)
    : channel_(std::move(line)), who_("rank 0 on " + std::move(host)), patience_(patience) {}

void MachineService::serve(const Deeds& deeds) {
  for (;;) {
    const std::string word = next_word(deeds);
    if (word == "end") return;
    if (word == "connect")
      deeds.connect();
    else if (word != "alive")
      throw Error(ErrorKind::invalid_input, std::string(order_name) + ": " + quoted(word, 40) + " is no command");
  }
}

std::string MachineService::next_word(const Deeds& deeds) {
  await_word(deeds);
  Json message;
  try {
    message = channel_.receive(Deadline::in(message_patience)).first;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    throw Error(ErrorKind::io, who_ + " has ended, or cannot be reached any more, before it was done");
  }
  return require_string(message, "do", order_name);
}

void MachineService::await_word(const Deeds& deeds) {
  const Deadline deadline = Deadline::in(patience_);
  while (!channel_.readable(Deadline::in(std::min(between_looks, deadline.left())))) {
    if (deeds.idle) deeds.idle();
    if (deadline.passed())
      throw Error(ErrorKind::timeout, who_ + " has given no sign of life for " + format_seconds(patience_));
  }
}

}  // namespace waywiser
