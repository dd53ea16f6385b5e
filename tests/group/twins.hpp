#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/kernels/block/float8.hpp"

namespace waywiser {

constexpr Seconds twins_patience = 20;

// An array on the rank's GPU and its twin on the host, equal until a call has changed one of them.
class Twins {
 public:
  Twins(Group& group, DataType type, std::size_t count, int seed, Bytes offset = 8)  // not where memory begins
      : type_(type),
        bytes_(count * bytes_of(type)),
        offset_(offset),
        on_gpu_(group.platform()->allocate(gpu_of_rank(group), offset + bytes_ + 1, Allocation::gpu)),
        pinned_(group.platform()->allocate(host(0), offset + bytes_ + 1, Allocation::pinned)),
        on_host_(bytes_),
        stream_(group.platform()->open_stream(gpu_of_rank(group))) {
    for (std::size_t i = 0; i < count; ++i)
      store(i, static_cast<int>((i * 7 + static_cast<std::size_t>(seed)) % 3) + 1);
    if (bytes_ != 0) std::memcpy(pinned_.region().data, on_host_.data(), bytes_);
    stream_->copy(region(), pinned_.region().slice(0, bytes_));
    stream_->synchronize(Deadline::in(twins_patience));
  }

  Elements gpu_elements() const { return {region(), type_}; }
  const Memory& memory() const { return on_gpu_; }
  Elements host_elements() { return {{on_host_.data(), bytes_, host(0)}, type_}; }
  bool equal() {
    stream_->copy(pinned_.region().slice(0, bytes_), region());
    stream_->synchronize(Deadline::in(twins_patience));
    return bytes_ == 0 || std::memcmp(pinned_.region().data, on_host_.data(), bytes_) == 0;
  }
  // After equal(): describes where they differ.
  std::string difference() const {
    std::size_t different = 0, first = bytes_, last = 0;
    for (std::size_t i = 0; i < bytes_; ++i)
      if (pinned_.region().data[i] != on_host_[i]) {
        first = std::min(first, i);
        last = i;
        ++different;
      }
    if (different == 0) return {};
    std::string text = ": " + std::to_string(different) + " bytes differ, the first at " + std::to_string(first) +
                       ", the last at " + std::to_string(last) + " of " + std::to_string(bytes_) + ": ";
    for (std::size_t i = first; i < std::min(first + 32, bytes_); ++i)
      text += std::to_string(static_cast<int>(pinned_.region().data[i])) + "/" +
              std::to_string(static_cast<int>(on_host_[i])) + " ";
    return text;
  }

 private:
  Region region() const { return on_gpu_.region().slice(offset_, bytes_); }
  // Small whole numbers: sums of them are exact in every type and order.
  void store(std::size_t i, int value) {
    const auto put = [&]<typename T>(T number) {
      std::memcpy(on_host_.data() + i * sizeof number, &number, sizeof number);
    };
    constexpr std::uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200}, bfloats[] = {0, 0x3f80, 0x4000, 0x4040};
    switch (type_) {
      case DataType::float64: return put(static_cast<double>(value));
      case DataType::float32: return put(static_cast<float>(value));
      case DataType::float16: return put(halves[value]);
      case DataType::bfloat16: return put(bfloats[value]);
      case DataType::int8: return put(static_cast<std::int8_t>(value));
      case DataType::int16: return put(static_cast<std::int16_t>(value));
      case DataType::int32: return put(static_cast<std::int32_t>(value));
      case DataType::int64: return put(static_cast<std::int64_t>(value));
      case DataType::uint8: return put(static_cast<std::uint8_t>(value));
      case DataType::uint16: return put(static_cast<std::uint16_t>(value));
      case DataType::uint32: return put(static_cast<std::uint32_t>(value));
      case DataType::uint64: return put(static_cast<std::uint64_t>(value));
      case DataType::complex64: return put(std::complex<float>(static_cast<float>(value), 1));
      case DataType::complex128: return put(std::complex<double>(value, -1));
      case DataType::float8_e4m3fn: return put(to_float8_e4m3fn(static_cast<float>(value == 3 ? -1 : value)));
      case DataType::float8_e5m2: return put(to_float8_e5m2(static_cast<float>(value == 3 ? -1 : value)));
    }
  }

  DataType type_;
  std::size_t bytes_;
  Bytes offset_;
  Memory on_gpu_, pinned_;
  std::vector<std::byte> on_host_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace waywiser
