#include "waywiser/bench/rank_channel.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_line = 4096;

std::string times_line(const std::vector<Seconds>& times) {
  std::string line = "times";
  std::array<char, 32> text{};
  for (const Seconds time : times) {
    std::snprintf(text.data(), text.size(), " %.9g", time);
    line += text.data();
  }
  return line;
}

}  // namespace

RankChannel::RankChannel(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Error(ErrorKind::invalid_input, "the socket's path is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  if (!socket_.open() || ::connect(socket_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw Error(ErrorKind::io, path + ": " + last_system_error());
}

bool RankChannel::read_line(std::string& line) {
  std::array<char, 512> part{};
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return true;
    }
    const ssize_t got = ::recv(socket_.number(), part.data(), part.size(), 0);
    if (got <= 0 || received_.size() > longest_line) return false;
    received_.append(part.data(), static_cast<std::size_t>(got));
  }
}

void RankChannel::write_line(std::string line) {
  line += '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t part = ::send(socket_.number(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (part <= 0) throw Error(ErrorKind::io, "the program that conducts the benchmark: " + last_system_error());
    sent += static_cast<std::size_t>(part);
  }
}

void RankChannel::serve(BenchRank& rank) {
  write_line("hello " + std::to_string(rank.rank()) + ' ' + std::to_string(rank.size()) + ' ' + rank.backend());
  for (std::string line; read_line(line) && line.starts_with("run ");) {
    try {
      write_line(times_line(rank.run(parse_bench_request(std::string_view(line).substr(4)))));
    } catch (const Error& error) {
      const bool goes_on = error.kind() == ErrorKind::unavailable;
      write_line((goes_on ? "unavailable " : "failed ") + in_one_line(error.what()));
      if (!goes_on) throw;
    }
  }
}

}  // namespace waywiser
