#include "waywiser/transport/bar_copy/gdrapi.hpp"

#include <unistd.h>

#include <cstring>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::uintptr_t gpu_page = 64 << 10;
constexpr const char* module_device = "/dev/gdrdrv";

void check(int result, const char* what) {
  if (result != 0)
    throw Error(ErrorKind::device, std::string("bar_copy: ") + what + " failed: " + std::strerror(result));
}

std::uintptr_t number(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

GdrApi::GdrApi()
    : library_(library_override("gdrapi") ? std::vector<std::string>{*library_override("gdrapi")}
                                          : std::vector<std::string>{"libgdrapi.so.2", "libgdrapi.so"}) {
  if (!library_.loaded()) {
    why_not_ = library_override("gdrapi") ? library_.why_not() : "libgdrapi.so.2 is not installed";
    return;
  }
  open = library_.find<void*()>("gdr_open");
  close = library_.find<int(void*)>("gdr_close");
  pin = library_.find<int(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, std::uint64_t*)>(
      "gdr_pin_buffer");
  unpin = library_.find<int(void*, std::uint64_t)>("gdr_unpin_buffer");
  map = library_.find<int(void*, std::uint64_t, void**, std::size_t)>("gdr_map");
  unmap = library_.find<int(void*, std::uint64_t, void*, std::size_t)>("gdr_unmap");
  copy_to = library_.find<int(std::uint64_t, void*, const void*, std::size_t)>("gdr_copy_to_mapping");
  copy_from = library_.find<int(std::uint64_t, void*, const void*, std::size_t)>("gdr_copy_from_mapping");
  const bool complete = open && close && pin && unpin && map && unmap && copy_to && copy_from;
  if (!complete)
    why_not_ = library_.name() + " lacks calls of GDRCopy 2";
  else if (!library_override("gdrapi") && ::access(module_device, R_OK | W_OK) != 0)
    why_not_ = std::string(module_device) +
               (errno == EACCES ? " may not be opened by this user" : " is not there: load the gdrdrv kernel module");
}

BarMapping::BarMapping(const GdrApi& api, void* session, ConstRegion region) : api_(api), session_(session) {
  first_ = number(region.data) / gpu_page * gpu_page;
  const std::uintptr_t end = (number(region.data) + region.bytes + gpu_page - 1) / gpu_page * gpu_page;
  bytes_ = end - first_;
  check(api_.pin(session_, first_, bytes_, 0, 0, &handle_), "gdr_pin_buffer");
  const int result = api_.map(session_, handle_, &mapped_, bytes_);
  if (result != 0) api_.unpin(session_, handle_);
  check(result, "gdr_map");
}

BarMapping::~BarMapping() {
  api_.unmap(session_, handle_, mapped_, bytes_);
  api_.unpin(session_, handle_);
}

bool BarMapping::covers(ConstRegion region) const noexcept {
  return number(region.data) >= first_ && number(region.data) + region.bytes <= first_ + bytes_;
}

std::byte* BarMapping::at(const std::byte* gpu_address) const {
  return static_cast<std::byte*>(mapped_) + (number(gpu_address) - first_);
}

void BarMapping::write(Region destination, const std::byte* source) const {
  check(api_.copy_to(handle_, at(destination.data), source, destination.bytes), "gdr_copy_to_mapping");
}

void BarMapping::read(std::byte* destination, ConstRegion source) const {
  check(api_.copy_from(handle_, destination, at(source.data), source.bytes), "gdr_copy_from_mapping");
}

}  // namespace waywiser
