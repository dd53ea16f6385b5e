#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/units.hpp"

namespace waywiser {

// NVIDIA's cuFile (GPUDirect Storage), of which nothing is known when this library is built: libcufile.so.0, or the one
// that WAYWISER_LIBCUFILE names. Opened at the first use and never closed, as it asks for.
class CuFileLibrary {
 public:
  static const CuFileLibrary& usual();

  // Nothing: its driver is open. Otherwise the reason, for people.
  const std::optional<std::string>& why_not() const noexcept { return why_not_; }
  // How it moves bytes here: "nvidia-fs", "P2PDMA" or "compatibility mode", which copies through host memory.
  std::string mode() const;

  // What it calls an open file. Throws unavailable with the path.
  void* attach(int descriptor, const std::string& path) const;
  void detach(void* file) const noexcept;
  // Bytes that have been moved; 0: the end of the file. Throws io with words for the caller to begin with the path.
  Bytes read(void* file, std::byte* gpu_memory, Bytes bytes, Bytes offset) const;
  Bytes write(void* file, const std::byte* gpu_memory, Bytes bytes, Bytes offset) const;

 private:
  // The layouts of cufile.h, version 1.
  struct Status {
    int error, cuda_error;
  };
  struct Description {
    int type;
    union {
      int descriptor;
      void* handle;
    };
    const void* operations;
  };
  struct Properties {
    unsigned major, minor;
    std::size_t poll_threshold, largest_direct;
    unsigned status_flags, control_flags, features, cache, buffer_cache, pinned, batch, batch_timeout;
    unsigned room[32];  // of later versions
  };

  explicit CuFileLibrary(const std::optional<std::string>& name);
  std::string words(int error) const;
  Bytes moved(ssize_t result, const char* what) const;

  DynamicLibrary library_;
  std::optional<std::string> why_not_;
  Status (*open_driver_)() = nullptr;
  Status (*properties_)(Properties*) = nullptr;
  Status (*attach_)(void**, Description*) = nullptr;
  void (*detach_)(void*) = nullptr;
  ssize_t (*read_)(void*, void*, std::size_t, off_t, off_t) = nullptr;
  ssize_t (*write_)(void*, const void*, std::size_t, off_t, off_t) = nullptr;
};

}  // namespace waywiser
