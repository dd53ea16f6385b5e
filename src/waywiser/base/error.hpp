#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace waywiser {

enum class ErrorKind {
  invalid_input,  // a file, argument, environment variable or message from outside is wrong
  unavailable,    // asked to use something that this machine cannot do
  timeout,        // a deadline passed
  device,         // a driver or library call failed
  io,             // reading or writing a file or socket failed
  corrupt,        // data arrived, but not the data that were sent
  interrupted,    // the user asked to stop
};

// The only exception type. The message names the exact cause in one line.
class [[gnu::visibility("default")]] Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::source_location where = std::source_location::current())
      : std::runtime_error(message), kind_(kind), where_(where) {}

  ErrorKind kind() const noexcept { return kind_; }
  const std::source_location& where() const noexcept { return where_; }

 private:
  ErrorKind kind_;
  std::source_location where_;
};

[[gnu::visibility("default")]] std::string_view name(ErrorKind kind) noexcept;

// In one line: control characters become spaces.
[[gnu::visibility("default")]] std::string in_one_line(std::string_view text);
// Text from outside as part of a message: its first `most` bytes, in one line and in single quotes.
[[gnu::visibility("default")]] std::string quoted(std::string_view text, std::size_t most);

// Throws invalid_input with "what: why" in one line.
[[noreturn, gnu::visibility("default")]] void refuse_input(std::string_view what, const std::string& why);

// The message of errno.
[[gnu::visibility("default")]] std::string last_system_error();

}  // namespace waywiser
