#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "waywiser/comm/message/tag.hpp"

namespace waywiser {

// The group numbers that this rank uses in tags. Groups are counted; the number is the count modulo most_groups, and
// the generation distinguishes groups with the same number. The group of all ranks is the first.
class GroupNumbers {
 public:
  static constexpr std::size_t words = (most_groups + 63) / 64;
  using Used = std::array<std::int64_t, words>;  // a bit for each number

  // The first count from `next` on whose number no rank uses; empty if all are in use.
  static std::optional<std::int64_t> first_free(std::int64_t next, const Used& used);

  GroupNumbers() { bits_->front() = 1; }
  std::int64_t next() const { return next_; }
  void set_next(std::int64_t next) { next_ = next; }
  Used used() const;
  // The number is free again when the returned object is destroyed, in any thread.
  std::shared_ptr<const void> take(std::int64_t count);
  // nullptr: this rank uses it.
  std::shared_ptr<const void> take_if_free(std::int64_t count);

 private:
  std::int64_t next_ = 1;
  std::shared_ptr<Used> bits_ = std::make_shared<Used>();  // changed as atomics
};

}  // namespace waywiser
