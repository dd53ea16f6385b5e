#include "waywiser/base/timeout.hpp"

#include <charconv>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds default_timeout = 60;

}  // namespace

Seconds checked_timeout(Seconds timeout, const std::string& what) {
  if (!(timeout > 0 && timeout <= longest_timeout))
    throw Error(ErrorKind::invalid_input, what + " must be a number of seconds above 0");
  return timeout;
}

Seconds usual_timeout() {
  const auto text = environment("WAYWISER_TIMEOUT");
  if (!text) return default_timeout;
  Seconds value = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (problem != std::errc() || end != text->data() + text->size()) value = 0;
  return checked_timeout(value, "WAYWISER_TIMEOUT=" + quoted(*text, 40));
}

}  // namespace waywiser
