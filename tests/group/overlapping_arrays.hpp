#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser::overlapping {

using Numbers = std::vector<std::int32_t>;

// Numbers in host memory, or on this rank's GPU, in which the arrays of calls lie.
class NumbersSomewhere {
 public:
  NumbersSomewhere(Group& group, bool on_gpu, std::size_t most) : on_host_(most) {
    if (!on_gpu) return;
    const Bytes bytes = most * sizeof(std::int32_t);
    on_gpu_ = group.platform()->allocate(gpu_of_rank(group), bytes, Allocation::gpu);
    pinned_ = group.platform()->allocate(host(0), bytes, Allocation::pinned);
    stream_ = group.platform()->open_stream(gpu_of_rank(group));
  }

  Elements part(std::size_t first, std::size_t count) {
    if (stream_ == nullptr) return std::span(on_host_).subspan(first, count);
    return {on_gpu_.region().slice(first * sizeof(std::int32_t), count * sizeof(std::int32_t)), DataType::int32};
  }
  void set(const Numbers& numbers) {
    if (stream_ == nullptr) return void(std::ranges::copy(numbers, on_host_.begin()));
    const Bytes bytes = numbers.size() * sizeof(std::int32_t);
    std::memcpy(pinned_.region().data, numbers.data(), bytes);
    stream_->copy(on_gpu_.region().slice(0, bytes), pinned_.region().slice(0, bytes));
    stream_->synchronize(Deadline::in(20));
  }
  Numbers get(std::size_t count) {
    if (stream_ == nullptr) return {on_host_.begin(), on_host_.begin() + static_cast<std::ptrdiff_t>(count)};
    const Bytes bytes = count * sizeof(std::int32_t);
    stream_->copy(pinned_.region().slice(0, bytes), on_gpu_.region().slice(0, bytes));
    stream_->synchronize(Deadline::in(20));
    Numbers numbers(count);
    std::memcpy(numbers.data(), pinned_.region().data, bytes);
    return numbers;
  }
  Stream* stream() const { return stream_.get(); }

 private:
  Numbers on_host_;
  Memory on_gpu_, pinned_;
  std::unique_ptr<Stream> stream_;
};

enum class When { wait, begin, stream };

inline std::string words(When when) {
  return when == When::wait ? ", waiting" : when == When::begin ? ", begun" : ", on a stream";
}
inline Mode mode_of(When when, const NumbersSomewhere& numbers) {
  return when == When::wait ? Mode::wait : when == When::begin ? Mode::begin : Mode::on(*numbers.stream());
}

inline Numbers numbers_of(int rank, std::size_t count) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = 100'000 * (rank + 1) + static_cast<std::int32_t>(i);
  return numbers;
}

// Calls it, and requires that it refuses its arrays, in one line that says why.
template <typename Call>
void require_refusal(const std::string& what, Call call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string why = error.what();
    return require_that(error.kind() == ErrorKind::invalid_input && why.find("overlap") != std::string::npos &&
                            why.find('\n') == std::string::npos,
                        what + ": " + why);
  }
  require_that(false, "a refusal of " + what);
}

}  // namespace waywiser::overlapping
