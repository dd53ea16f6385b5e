#pragma once

#include <memory>
#include <string>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_frame.hpp"
#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// Whom a joining rank comes to: rank 0, or the rank above it.
struct Host {
  int rank;
  Launch launch;  // of this rank, with the host's address or the name of its socket

  std::string name() const { return "rank " + std::to_string(rank); }
};

// The host has refused this rank for good: retrying is useless.
class Refusal : public Error {
 public:
  Refusal(const std::string& host, std::string why)
      : Error(ErrorKind::invalid_input, host + " refused this rank: " + why), reason(std::move(why)) {}

  std::string reason;
};

inline constexpr std::size_t largest_answer = 4096;

// Tries until the host has let this rank join. Throws Refusal, timeout, interrupted, or what else has gone wrong.
std::unique_ptr<Connection> come_to(const Host& host, const Joining& mine, Deadline deadline);
// What the host answers when all have come. It knew this rank: there is no second try. Throws like come_to().
Frame answer_of(Connection& line, const std::string& host, Deadline deadline);
// Nothing comes from the host now but a refusal, which this throws, as it does if the line has ended.
void check_line(Connection& line, const std::string& host);

}  // namespace waywiser
