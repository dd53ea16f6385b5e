#include "waywiser/transport/memory_message.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view handle_name = "memory handle from the peer process";
constexpr std::int64_t largest_memory = std::int64_t{1} << 50;
constexpr std::pair<HandleKind, std::string_view> kinds[] = {{HandleKind::descriptor, "descriptor"},
                                                             {HandleKind::cuda_ipc, "cuda_ipc"},
                                                             {HandleKind::gpu_descriptor, "gpu_descriptor"}};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::invalid_input, std::string(handle_name) + ": " + why);
}

HandleKind kind_of(const std::string& text) {
  const auto found = std::ranges::find(kinds, text, &std::pair<HandleKind, std::string_view>::second);
  if (found == std::end(kinds)) refuse(quoted(text, 40) + " is no kind of handle");
  return found->first;
}

}  // namespace

Json to_json(const MemoryHandle& handle) {
  Json opaque = Json::array();
  for (const std::byte value : handle.opaque) opaque.push_back(std::to_integer<unsigned>(value));
  return {{"kind", std::ranges::find(kinds, handle.kind, &std::pair<HandleKind, std::string_view>::first)->second},
          {"place", text(handle.place)},
          {"bytes", handle.bytes},
          {"offset", handle.offset},
          {"opaque", opaque},
          {"descriptor", handle.descriptor.open()}};
}

MemoryHandle memory_handle_from_json(const Json& value, std::vector<Descriptor>& descriptors) {
  MemoryHandle handle;
  handle.kind = kind_of(require_string(value, "kind", handle_name));
  handle.place = parse_place(require_string(value, "place", handle_name));
  handle.bytes = static_cast<Bytes>(require_integer(value, "bytes", handle_name, 0, largest_memory));
  handle.offset = static_cast<Bytes>(require_integer(value, "offset", handle_name, 0, largest_memory));
  const Json& opaque = require_array(value, "opaque", handle_name);
  if (opaque.size() != handle.opaque.size()) refuse("'opaque' must have 64 bytes");
  for (std::size_t i = 0; i < opaque.size(); ++i) {
    if (!opaque[i].is_number_unsigned() || opaque[i] > 255) refuse("'opaque' must be bytes");
    handle.opaque[i] = static_cast<std::byte>(opaque[i].get<unsigned>());
  }
  const Json& travels = require(value, "descriptor", handle_name);
  if (!travels.is_boolean()) refuse("'descriptor' must be true or false");
  if (!travels.get<bool>()) return handle;
  if (descriptors.empty()) refuse("its file descriptor is missing");
  handle.descriptor = std::move(descriptors.front());
  descriptors.erase(descriptors.begin());
  return handle;
}

}  // namespace waywiser
