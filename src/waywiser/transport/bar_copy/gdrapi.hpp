#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

// The GDRCopy 2 functions that a copy needs, found at run time. A handle is a struct of one 64-bit number, passed by
// value, so it is passed as that number.
class GdrApi {
 public:
  GdrApi();
  // Empty, or what is missing: the library, one of its functions, or the device of its kernel module.
  const std::optional<std::string>& why_not() const noexcept { return why_not_; }

  void* (*open)() = nullptr;
  int (*close)(void* session) = nullptr;
  int (*pin)(void* session, unsigned long address, std::size_t bytes, std::uint64_t token, std::uint32_t space,
             std::uint64_t* handle) = nullptr;
  int (*unpin)(void* session, std::uint64_t handle) = nullptr;
  int (*map)(void* session, std::uint64_t handle, void** address, std::size_t bytes) = nullptr;
  int (*unmap)(void* session, std::uint64_t handle, void* address, std::size_t bytes) = nullptr;
  int (*copy_to)(std::uint64_t handle, void* mapped, const void* host, std::size_t bytes) = nullptr;
  int (*copy_from)(std::uint64_t handle, void* host, const void* mapped, std::size_t bytes) = nullptr;

 private:
  DynamicLibrary library_;
  std::optional<std::string> why_not_;
};

// GPU memory pinned and mapped into this process: page-aligned around a region.
class BarMapping {
 public:
  // Throws device if the driver refuses (memory not from cudaMalloc, or a full BAR).
  BarMapping(const GdrApi& api, void* session, ConstRegion region);
  BarMapping(const BarMapping&) = delete;
  BarMapping& operator=(const BarMapping&) = delete;
  ~BarMapping();

  bool covers(ConstRegion region) const noexcept;
  void write(Region destination, const std::byte* source) const;
  void read(std::byte* destination, ConstRegion source) const;

 private:
  std::byte* at(const std::byte* gpu_address) const;

  const GdrApi& api_;
  void* session_;
  std::uintptr_t first_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t handle_ = 0;
  void* mapped_ = nullptr;
};

}  // namespace waywiser
