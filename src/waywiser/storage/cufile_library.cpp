#include "waywiser/storage/cufile_library.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int linux_descriptor = 1, first_error = 5000;
constexpr unsigned p2p_feature = 1u << 4;

struct ErrorWords {
  int error;
  const char* words;
};
constexpr ErrorWords known_errors[] = {
    {5001, "the nvidia-fs driver is not loaded, and cufile.json does not allow compatibility mode"},
    {5004, "the nvidia-fs driver has another version"},
    {5007, "the platform is not supported"},
    {5008, "the file system is not supported"},
    {5009, "the GPU is not supported"},
    {5011, "a CUDA call failed"},
    {5012, "not the address of GPU memory"},
    {5018, "neither a file nor a block device"},
    {5025, "permission denied"},
    {5027, "its log (cufile.log) says why: without udev's record of the device, for one, it takes no file"},
    {5034, "cufile.json switches it off for this file"},
};

}  // namespace

const CuFileLibrary& CuFileLibrary::usual() {
  static std::mutex turn;
  static std::map<std::optional<std::string>, std::unique_ptr<CuFileLibrary>> opened;
  const std::lock_guard one(turn);
  const std::optional<std::string> name = library_override("cufile");
  std::unique_ptr<CuFileLibrary>& library = opened[name];
  if (!library) library.reset(new CuFileLibrary(name));
  return *library;
}

CuFileLibrary::CuFileLibrary(const std::optional<std::string>& name)
    : library_(name ? std::vector<std::string>{*name} : std::vector<std::string>{"libcufile.so.0", "libcufile.so"}) {
  if (!library_.loaded()) {
    why_not_ = name ? library_.why_not() : "libcufile.so.0 is not installed";
    return;
  }
  open_driver_ = library_.find<Status()>("cuFileDriverOpen");
  properties_ = library_.find<Status(Properties*)>("cuFileDriverGetProperties");
  attach_ = library_.find<Status(void**, Description*)>("cuFileHandleRegister");
  detach_ = library_.find<void(void*)>("cuFileHandleDeregister");
  read_ = library_.find<ssize_t(void*, void*, std::size_t, off_t, off_t)>("cuFileRead");
  write_ = library_.find<ssize_t(void*, const void*, std::size_t, off_t, off_t)>("cuFileWrite");
  if (!open_driver_ || !properties_ || !attach_ || !detach_ || !read_ || !write_)
    why_not_ = library_.name() + " lacks calls of cuFile 1";
  else if (const Status status = open_driver_(); status.error != 0)
    why_not_ = library_.name() + ": " + words(status.error);
}

std::string CuFileLibrary::mode() const {
  Properties properties{};
  if (why_not_ || properties_(&properties).error != 0) return "unknown";
  if (properties.major != 0) return "nvidia-fs";
  return (properties.features & p2p_feature) != 0 ? "P2PDMA" : "compatibility mode";
}

void* CuFileLibrary::attach(int descriptor, const std::string& path) const {
  Description description{};
  description.type = linux_descriptor;
  description.descriptor = descriptor;
  void* file = nullptr;
  if (const Status status = attach_(&file, &description); status.error != 0)
    throw Error(ErrorKind::unavailable, path + ": cuFile does not take it: " + words(status.error));
  return file;
}

void CuFileLibrary::detach(void* file) const noexcept { detach_(file); }

Bytes CuFileLibrary::read(void* file, std::byte* gpu_memory, Bytes bytes, Bytes offset) const {
  return moved(read_(file, gpu_memory, bytes, static_cast<off_t>(offset), 0), "cuFileRead");
}

Bytes CuFileLibrary::write(void* file, const std::byte* gpu_memory, Bytes bytes, Bytes offset) const {
  return moved(write_(file, gpu_memory, bytes, static_cast<off_t>(offset), 0), "cuFileWrite");
}

// A system's error is -1 and errno, one of its own the number with another sign.
Bytes CuFileLibrary::moved(ssize_t result, const char* what) const {
  if (result >= 0) return static_cast<Bytes>(result);
  throw Error(ErrorKind::io,
              std::string(what) + ": " + (result == -1 ? last_system_error() : words(static_cast<int>(-result))));
}

std::string CuFileLibrary::words(int error) const {
  for (const ErrorWords& each : known_errors)
    if (each.error == std::abs(error)) return each.words;
  return (std::abs(error) < first_error ? "error " : "error of cuFile ") + std::to_string(std::abs(error));
}

}  // namespace waywiser
