#include "waywiser/device/peer_switch.hpp"

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {

bool is_peer_access_off() {
  const std::string text = environment("WAYWISER_PEER_ACCESS").value_or("on");
  if (text == "on" || text == "off") return text == "off";
  throw Error(ErrorKind::invalid_input, "WAYWISER_PEER_ACCESS=" + quoted(text, 40) + " must be on or off");
}

}  // namespace waywiser
