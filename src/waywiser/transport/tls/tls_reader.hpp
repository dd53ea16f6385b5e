#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "waywiser/transport/tls/tls_connection.hpp"

namespace waywiser {

// Reads messages from one connection, one after another: each is a header, then its bytes. Used by measurements and
// groups.
class TlsReader {
 public:
  // One read of the part that is next: the rest of `head`, or the body. The number of bytes that came; 0: none now.
  std::size_t read(TlsConnection& line, std::span<std::byte> head);
  bool has_head(std::span<const std::byte> head) const noexcept { return head_read_ == head.size(); }
  // Of the body, what has not come yet.
  std::uint64_t body_left() const noexcept { return body_left_; }
  // After a whole header: the length and place of the body. nullptr: its bytes are discarded.
  void expect(std::uint64_t bytes, std::byte* into) noexcept;
  // Discards the rest of the body.
  void discard() noexcept { into_ = nullptr; }
  // The next bytes belong to a new header.
  void begin_message() noexcept { head_read_ = 0; }

 private:
  std::size_t read_body(TlsConnection& line);

  std::size_t head_read_ = 0;
  std::uint64_t body_left_ = 0;
  std::byte* into_ = nullptr;
};

}  // namespace waywiser
