#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "waywiser/base/json.hpp"
#include "waywiser/base/way.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

// One way from one memory to another, as a value. Parameters are text, by name; sizes as in parse_bytes. docs/paths.md
// lists the parameters of each mechanism.
struct Path {
  std::string mechanism;  // a row of mechanisms(): "copy_engine"
  Place source;
  Place destination;
  int processes = 1;  // 2: two processes of this machine own source and destination
  Parameters parameters;

  bool operator==(const Path&) const = default;

  // The value of a parameter. Throws invalid_input if it is missing or not a number in range.
  std::string_view parameter(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
  Bytes bytes(std::string_view name, Bytes least, Bytes most) const;
  bool has(std::string_view name) const;
};

// "host_staged(chunk=2M,depth=4,variant=pipelined)": mechanism and parameters, without the pair.
std::string label(const Path& path);
// "gpu0>gpu1", or "gpu0>>gpu1" between two processes.
std::string pair_text(const Path& path);

Json to_json(const Path& path);
Path path_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
