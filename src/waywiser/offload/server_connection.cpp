#include "waywiser/offload/server_connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {
namespace {

constexpr Seconds greeting_patience = 5;
constexpr Seconds first_rest = 0.01, longest_rest = 0.32;
constexpr std::string_view white_space = " \t\r\n\v\f";
constexpr std::size_t shortest_key = 32;
constexpr Bytes largest_key_file = 4096;

std::filesystem::path usual_key_file() {
  if (const auto folder = environment("XDG_CONFIG_HOME"); folder && !folder->empty())
    return std::filesystem::path(*folder) / "waywiser/serve.key";
  return std::filesystem::path(environment("HOME").value_or("/")) / ".config/waywiser/serve.key";
}

void check_private(const std::filesystem::path& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & 077) != 0)
    throw Error(ErrorKind::invalid_input,
                file.string() + ": other users may read this key: chmod 600 " + file.string() + ", and make a new key");
}

Descriptor connected(const std::string& address) {
  const std::string what = "no server of GPUs at " + address;
  const Endpoint endpoint = parse_endpoint(address);
  Descriptor socket = begin_connecting(endpoint);
  if (!wait_for_socket(socket.number(), POLLOUT, Deadline::in(greeting_patience)))
    throw Error(ErrorKind::io, what + ": it does not answer");
  int problem = 0;
  socklen_t length = sizeof problem;
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &problem, &length);
  if (problem != 0) {
    errno = problem;
    throw_broken(what + ": " + last_system_error());
  }
  return socket;
}

Json answer_of(ServeLine& line, std::span<const std::byte> key, const Json& question, Seconds patience) {
  line.greet_server(key, Deadline::in(greeting_patience));
  line.send(question.dump(), Deadline::in(greeting_patience));
  Json answer = parse_json(line.receive(Deadline::in(patience)), "the answer");
  if (answer.is_object() && answer.contains("problem"))
    throw Error(ErrorKind::invalid_input, in_one_line(require_string(answer, "problem", "the answer")));
  return answer;
}

}  // namespace

std::vector<std::byte> read_serve_key(const std::filesystem::path& file) {
  const std::filesystem::path from = file.empty() ? usual_key_file() : file;
  std::string text = read_text(from, largest_key_file);
  check_private(from);
  std::string_view digits = text;
  digits.remove_prefix(std::min(digits.find_first_not_of(white_space), digits.size()));
  digits = digits.substr(0, digits.find_last_not_of(white_space) + 1);
  std::vector<std::byte> key(digits.size() / 2);
  bool good = digits.size() % 2 == 0 && key.size() >= shortest_key;
  for (std::size_t i = 0; i < key.size() && good; ++i) {
    unsigned value = 0;
    const char* const pair = &digits[2 * i];
    const auto [end, problem] = std::from_chars(pair, pair + 2, value, 16);
    good = problem == std::errc() && end == pair + 2;
    key[i] = static_cast<std::byte>(value);
  }
  wipe(std::as_writable_bytes(std::span(text)));
  if (!good)
    throw Error(ErrorKind::invalid_input, from.string() + ": a key has at least " + std::to_string(2 * shortest_key) +
                                              " hexadecimal digits: `waywiser serve --new-key` makes one");
  return key;
}

std::pair<std::shared_ptr<ServeLine>, Json> ask_server(const std::string& address, std::span<const std::byte> key,
                                                       const Json& question, Seconds patience, Deadline deadline) {
  for (Seconds rest = first_rest;; rest = std::min(2 * rest, longest_rest)) {
    throw_if_interrupted();
    std::shared_ptr<ServeLine> line;
    try {
      line = std::make_shared<ServeLine>(connected(address));
      return {line, answer_of(*line, key, question, patience)};
    } catch (const TryLater& error) {
      if (deadline.left() <= rest) throw Error(error.kind(), address + ": " + error.what());
    } catch (const Error& error) {
      if (!line) throw;  // it names the address
      throw Error(error.kind(), address + ": " + error.what());
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(rest));
  }
}

}  // namespace waywiser
