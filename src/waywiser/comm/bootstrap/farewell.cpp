#include "waywiser/comm/bootstrap/farewell.hpp"

#include <exception>

namespace waywiser {
namespace {

constexpr Seconds saying_patience = 0.2;
constexpr Seconds reading_patience = 0.5;  // with those that do not read
constexpr Seconds listening_patience = 2;
constexpr std::size_t largest_of_a_rank = 81 << 10;

const std::function<bool()> nobody;

}  // namespace

void say_why(Connection& line, const std::string& why) noexcept {
  const Interruptible undisturbed(nobody);
  try {
    line.send(refused_frame(why), Deadline::in(saying_patience));
  } catch (const std::exception&) {  // it has gone
  }
}

void say_farewell(const std::vector<Connection*>& lines, const std::string& why) noexcept {
  for (Connection* line : lines) {
    say_why(*line, why);
    line->end_sending();
  }
  const Deadline deadline = Deadline::in(reading_patience);
  for (Connection* line : lines) line->await_end(deadline);
}

std::string last_words(Connection& line, std::size_t ranks) noexcept {
  const Interruptible undisturbed(nobody);
  try {
    line.set_limit(largest_of_a_rank * ranks);
    for (const Deadline deadline = Deadline::in(listening_patience);;)
      if (const Frame frame = line.receive(deadline); frame.kind == FrameKind::refused) return reason_in(frame);
  } catch (const std::exception&) {  // it has ended without
    return {};
  }
}

}  // namespace waywiser
