#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include <waywiser/base/error.hpp>

namespace apps {

[[noreturn]] inline void refuse(const std::string& why) {
  throw waywiser::Error(waywiser::ErrorKind::invalid_input, why);
}

// The options of a program, `--name value`; each has a default.
class Options {
 public:
  struct Option {
    std::string name, value, meaning;
  };

  Options(std::string program, std::vector<Option> known) : program_(std::move(program)), known_(std::move(known)) {
    for (const Option& each : known_) values_[each.name] = each.value;
  }

  // Throws invalid_input: an unknown option, one without a value.
  void read(int count, char** words) {
    for (int i = 1; i < count; i += 2) {
      const std::string_view word = words[i];
      if (!word.starts_with("--") || !values_.contains(std::string(word.substr(2))))
        refuse("'" + std::string(word) + "': the options are " + names());
      if (i + 1 == count) refuse(std::string(word) + " needs a value");
      values_[std::string(word.substr(2))] = words[i + 1];
    }
  }
  std::string usage() const {
    std::string text = "waywiser run -n RANKS " + program_ + " [--OPTION VALUE]...\n";
    for (const Option& each : known_)
      text += "  --" + each.name + std::string(12 - std::min<std::size_t>(11, each.name.size()), ' ') + each.meaning +
              " (" + (each.value.empty() ? "empty" : each.value) + ")\n";
    return text;
  }
  const std::string& program() const noexcept { return program_; }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  // One of `allowed`.
  const std::string& choice(const std::string& name, const std::vector<std::string>& allowed) const {
    if (std::ranges::find(allowed, text(name)) != allowed.end()) return text(name);
    std::string list;
    for (const std::string& each : allowed) list += (list.empty() ? "" : ", ") + each;
    refuse("--" + name + " '" + text(name) + "': write one of " + list);
  }
  std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most) const {
    return number(name, text(name), least, most);
  }
  // "64x64x128": so many numbers; a single one stands for all.
  std::vector<std::int64_t> shape(const std::string& name, std::size_t dimensions, std::int64_t least,
                                  std::int64_t most) const {
    std::vector<std::int64_t> sides;
    std::string_view rest = text(name);
    while (true) {
      const std::size_t end = rest.find('x');
      sides.push_back(number(name, rest.substr(0, end), least, most));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
    if (sides.size() == 1) sides.resize(dimensions, sides.front());
    if (sides.size() != dimensions)
      refuse("--" + name + " '" + text(name) + "': write " + std::to_string(dimensions) + " numbers with x between");
    return sides;
  }

 private:
  std::string names() const {
    std::string list = "--help";
    for (const Option& each : known_) list += ", --" + each.name;
    return list;
  }
  std::int64_t number(const std::string& name, std::string_view written, std::int64_t least, std::int64_t most) const {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(written.data(), written.data() + written.size(), value);
    if (code != std::errc() || end != written.data() + written.size() || value < least || value > most)
      refuse("--" + name + " '" + text(name) + "': whole numbers from " + std::to_string(least) + " to " +
             std::to_string(most));
    return value;
  }

  std::string program_;
  std::vector<Option> known_;
  std::map<std::string, std::string> values_;
};

}  // namespace apps
