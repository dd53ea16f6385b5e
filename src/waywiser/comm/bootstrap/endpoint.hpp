#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace waywiser {

// Where the root listens: "node7:4711", "[::1]:4711".
struct Endpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port
};
[[gnu::visibility("default")]] std::string text(const Endpoint& endpoint);
[[gnu::visibility("default")]] Endpoint parse_endpoint(std::string_view text);  // throws invalid_input

}  // namespace waywiser
