#pragma once

#include <functional>
#include <span>
#include <vector>

#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {

// Something of each rank, by rank, as it came: what several ranks have said alike is there once.
class SharedParts {
 public:
  SharedParts(std::vector<std::byte> all, std::size_t ranks);  // throws invalid_input
  SharedParts(SharedParts&&) = default;                        // the parts stay where they are
  std::size_t size() const noexcept { return numbers_.size(); }
  std::span<const std::byte> operator[](std::size_t rank) const noexcept { return parts_[numbers_[rank]]; }
  // What differs, and which of it a rank has said.
  const std::vector<std::span<const std::byte>>& parts() const noexcept { return parts_; }
  std::uint32_t number(std::size_t rank) const noexcept { return numbers_[rank]; }

 private:
  std::vector<std::byte> all_;
  std::vector<std::span<const std::byte>> parts_;
  std::vector<std::uint32_t> numbers_;
};

// Collective, while a group forms and nothing else uses its connections: something of each rank to all, by rank. Throws
// io, timeout or interrupted, and what another rank has said by tell_refusal().
SharedParts share_with_all(Muster& muster, int rank, std::span<const std::byte> mine, Deadline deadline,
                           const std::function<bool()>& interrupted = {});

// This rank cannot be part of the group: the others hear why, in place of what it would share.
void tell_refusal(Muster& muster, const std::string& why) noexcept;

}  // namespace waywiser
