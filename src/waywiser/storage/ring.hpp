#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/device/descriptor.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/storage/storage_file.hpp"

namespace waywiser {

// A pair of rings shared with the kernel (io_uring), by its system calls alone.
class Ring {
 public:
  struct Transfer {
    FileUse use = FileUse::read;
    int descriptor = -1;
    std::span<const iovec> memory;  // both stay until the completion
    Bytes offset = 0;
    std::uint64_t id = 0;
    int registered = -1;  // which of register_memory() the memory, one piece then, is in; -1: none
  };
  struct Completion {
    std::uint64_t id = 0;
    int result = 0;  // bytes, or an errno that is negative
  };

  explicit Ring(unsigned entries);  // throws unavailable
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Empty, or why this system gives this process no such ring.
  static std::optional<std::string> why_not();

  // The kernel keeps their pages for the transfers that name them. Throws unavailable.
  void register_memory(std::span<const Mapping> memory);

  // At most `entries` are added before submit().
  void add(const Transfer& transfer);
  // Hands over what was added and waits for that many completions. Throws io.
  void submit(unsigned wait_for);
  std::optional<Completion> next();
  // Takes back what was added and not handed over; how many that are.
  unsigned withdraw();

 private:
  struct Area {
    void* at = nullptr;
    std::size_t length = 0;
  };
  Area map(std::size_t length, std::uint64_t what) const;
  template <typename T>
  T* in(const Area& area, unsigned offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(area.at) + offset);
  }

  Descriptor ring_;
  Area submissions_, completions_, entries_;
  unsigned *tail_ = nullptr, *array_ = nullptr, *done_head_ = nullptr, *done_tail_ = nullptr;
  unsigned mask_ = 0, done_mask_ = 0, done_offset_ = 0, added_ = 0;
};

}  // namespace waywiser
