#include "waywiser/base/json.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json_bounds.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace waywiser {
namespace {

constexpr Bytes largest_json = 256ull << 20;
constexpr int deepest_json = 64;
constexpr std::size_t most_values = 5'000'000;            // some 100 bytes each
constexpr std::size_t most_looks_for_keys = 200'000'000;  // each key is looked for among those before it

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

[[noreturn]] void refuse(std::string_view what, const std::string& why) {
  throw Error(ErrorKind::invalid_input, std::string(what) + ": " + why);
}

// nlohmann's own message begins with "[json.exception...] "; people want the rest, up to the offending token.
std::string plain(const std::string& message) {
  const auto end = message.find("] ");
  std::string text = end == std::string::npos ? message : message.substr(end + 2);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text.substr(0, 200);
}

struct OpenFile {
  // Does not wait for the writer of a pipe.
  explicit OpenFile(const std::filesystem::path& file)
      : number(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
  const int number;
};

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& beside) : name_(beside.string() + ".XXXXXX") {
    descriptor_ = ::mkstemp(name_.data());
    if (descriptor_ < 0) throw Error(ErrorKind::io, "cannot write " + beside.string() + ": " + last_system_error());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  bool fill(std::string_view text) const {
    while (!text.empty()) {
      const auto written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return ::fchmod(descriptor_, 0644) == 0 && ::fsync(descriptor_) == 0;
  }
  bool become(const std::filesystem::path& file) {
    if (::rename(name_.c_str(), file.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
};

// One pass over the text, before anything is allocated for it: what a valid one would cost to read.
class JsonBounds {
 public:
  explicit JsonBounds(std::string_view what) : what_(what) {}

  void check(std::string_view text) {
    if (text.size() > largest_json) refuse(what_, "larger than " + format_bytes(largest_json));
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"')
        i = end_of_string(text, i);
      else
        see(text[i]);
    }
  }

 private:
  static std::size_t end_of_string(std::string_view text, std::size_t i) {
    for (++i; i < text.size() && text[i] != '"'; ++i)
      if (text[i] == '\\') ++i;
    return i;
  }
  void see(char c) {
    if (c == '{' || c == '[') {
      if (++depth_ > deepest_json) refuse(what_, "nested deeper than " + std::to_string(deepest_json));
      keys_[static_cast<std::size_t>(depth_)] = 0;
      count_value();
    } else if ((c == '}' || c == ']') && depth_ > 0) {
      --depth_;
    } else if (c == ':') {
      looks_ += ++keys_[static_cast<std::size_t>(depth_)];
      if (looks_ > most_looks_for_keys) refuse(what_, "an object has too many keys");
    } else if (c == ',') {
      count_value();
    }
  }
  void count_value() {
    if (++values_ > most_values) refuse(what_, "more than " + std::to_string(most_values) + " values");
  }

  std::string_view what_;
  int depth_ = 0;
  std::size_t values_ = 0, looks_ = 0;
  std::array<std::size_t, deepest_json + 1> keys_{};
};

}  // namespace

void check_json_bounds(std::string_view text, std::string_view what) { JsonBounds(what).check(text); }

Json parse_json(std::string_view text, std::string_view what) {
  check_json_bounds(text, what);
  try {
    return Json::parse(text);
  } catch (const Json::exception& problem) {
    refuse(what, "not JSON: " + plain(problem.what()));
  }
}

std::string read_text(const std::filesystem::path& file, Bytes largest) {
  const OpenFile opened(file);
  struct stat found{};
  if (opened.number < 0 || ::fstat(opened.number, &found) != 0)
    throw Error(ErrorKind::invalid_input, "cannot read " + file.string() + ": " + last_system_error());
  if (S_ISDIR(found.st_mode)) throw Error(ErrorKind::invalid_input, file.string() + ": is a directory");
  if (!S_ISREG(found.st_mode)) throw Error(ErrorKind::invalid_input, file.string() + ": is not a file");
  std::string text;
  std::array<char, 1 << 16> block{};
  for (;;) {
    const ssize_t got = ::read(opened.number, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(ErrorKind::invalid_input, "cannot read " + file.string() + ": " + last_system_error());
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > largest)
      throw Error(ErrorKind::invalid_input, file.string() + ": larger than " + format_bytes(largest));
  }
}

Json read_json(const std::filesystem::path& file) { return parse_json(read_text(file, largest_json), file.string()); }

void write_text(const std::filesystem::path& file, std::string_view text) {
  TemporaryFile temporary(file);
  if (!temporary.fill(text) || !temporary.become(file))
    throw Error(ErrorKind::io, "cannot write " + file.string() + ": " + last_system_error());
}

void write_json(const std::filesystem::path& file, const Json& value) { write_text(file, value.dump(1) + "\n"); }

void check_schema(const Json& value, std::string_view schema, int version, std::string_view what) {
  check_schema(value, schema, version, version, what);
}

int check_schema(const Json& value, std::string_view schema, int oldest, int newest, std::string_view what) {
  const std::string found = require_string(value, "schema", what);
  if (found != schema) refuse(what, "schema is " + in_quotes(found) + ", expected " + in_quotes(schema));
  const auto number = require_integer(value, "version", what, 0, 1 << 30);
  const std::string readable =
      oldest == newest ? std::to_string(newest) : std::to_string(oldest) + " to " + std::to_string(newest);
  if (number < oldest || number > newest)
    refuse(what, "version " + std::to_string(number) + " of " + found + " cannot be read here, expected " + readable);
  return static_cast<int>(number);
}

const Json& require(const Json& object, std::string_view key, std::string_view what) {
  if (!object.is_object()) refuse(what, "expected an object with " + in_quotes(key) + ", found " + object.type_name());
  const auto found = object.find(key);
  if (found == object.end()) refuse(what, in_quotes(key) + " is missing");
  return *found;
}

std::string require_string(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = require(object, key, what);
  if (!value.is_string()) refuse(what, in_quotes(key) + " must be a string, found " + value.type_name());
  return value.get<std::string>();
}

double require_number(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = require(object, key, what);
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    refuse(what, in_quotes(key) + " must be a finite number");
  return value.get<double>();
}

std::int64_t require_integer(const Json& object, std::string_view key, std::string_view what, std::int64_t least,
                             std::int64_t most) {
  const Json& value = require(object, key, what);
  const bool fits =
      value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    refuse(what,
           in_quotes(key) + " must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return value.get<std::int64_t>();
}

const Json& require_array(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = require(object, key, what);
  if (!value.is_array()) refuse(what, in_quotes(key) + " must be a list, found " + value.type_name());
  return value;
}

}  // namespace waywiser
