#include "waywiser/transport/tls/tls_reader.hpp"

#include <algorithm>
#include <array>

namespace waywiser {
namespace {

constexpr std::size_t discarded_at_once = 16 << 10;

}  // namespace

std::size_t TlsReader::read(TlsConnection& line, std::span<std::byte> head) {
  if (body_left_ != 0) return read_body(line);
  const std::size_t came = line.read(head.subspan(head_read_));
  head_read_ += came;
  return came;
}

std::size_t TlsReader::read_body(TlsConnection& line) {
  std::array<std::byte, discarded_at_once> nowhere;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::span<std::byte> place = std::span(nowhere).first(std::min<std::uint64_t>(body_left_, nowhere.size()));
  if (into_ != nullptr) place = {into_, body_left_};
  const std::size_t came = line.read(place);
  body_left_ -= came;
  if (into_ != nullptr) into_ += came;
  return came;
}

void TlsReader::expect(std::uint64_t bytes, std::byte* into) noexcept {
  body_left_ = bytes;
  into_ = into;
}

}  // namespace waywiser
