#include "waywiser/comm/message/wire.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {

void WireWriter::block(std::span<const std::byte> bytes) {
  number(static_cast<std::uint32_t>(bytes.size()));
  const std::size_t before = bytes_.size();
  bytes_.resize(before + bytes.size());
  std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(before));
}

void WireWriter::text(std::string_view text) { block(std::as_bytes(std::span(text))); }

std::span<const std::byte> WireReader::raw(std::size_t count) {
  if (count > bytes_.size()) refuse("it ends too early");
  const auto part = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return part;
}

std::span<const std::byte> WireReader::block(std::size_t most) {
  const auto length = number<std::uint32_t>();
  if (length > most)
    refuse("a part announces " + std::to_string(length) + " bytes; the limit is " + std::to_string(most));
  return raw(length);
}

std::string WireReader::text(std::size_t most) {
  const auto part = block(most);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

void WireReader::end() const {
  if (!bytes_.empty()) refuse(std::to_string(bytes_.size()) + " bytes too many");
}

void WireReader::refuse(const std::string& why) const { throw Error(ErrorKind::invalid_input, what_ + ": " + why); }

}  // namespace waywiser
