#include "tests/explorer/one_sided.hpp"

#include <algorithm>
#include <cstring>

namespace waywiser::explorer {
namespace {

std::byte* bytes_at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

void* OneSided::put(std::uint32_t from, std::uint64_t address, ConstRegion data) {
  auto* mine = const_cast<std::byte*>(data.data);
  return &begin({Kind::put, from, mine, bytes_at(address), std::vector<std::byte>(data.bytes)});
}

void* OneSided::get(std::uint32_t from, std::uint64_t address, Region data) {
  return &begin({Kind::get, from, data.data, bytes_at(address), std::vector<std::byte>(data.bytes)});
}

void* OneSided::flush(std::uint32_t from) { return &begin({Kind::flush, from, nullptr, nullptr, {}}); }

bool OneSided::is_over(void*& request) {
  auto& access = *static_cast<Access*>(request);
  if (!is_complete(access)) return false;
  request = nullptr;
  access.freed = true;
  if (access.kind == Kind::flush) access.stage = Stage::over;
  forget();
  course_.changed();
  return true;
}

OneSided::Access& OneSided::begin(Access access) {
  if (access.kind == Kind::flush)
    for (const Access& other : accesses_)
      if (other.from == access.from) access.earlier.push_back(&other);
  accesses_.push_back(std::move(access));
  course_.changed();
  return accesses_.back();
}

void OneSided::advance(Access& access) {
  std::vector<std::byte>& bytes = access.bytes;
  if (access.kind == Kind::get) {
    std::memcpy(access.mine, access.theirs, bytes.size());
    access.stage = Stage::over;
  } else if (access.stage == Stage::begun) {
    std::memcpy(bytes.data(), access.mine, bytes.size());
    access.stage = Stage::read;
  } else {
    std::memcpy(access.theirs, bytes.data(), bytes.size());
    access.stage = Stage::over;
  }
}

bool OneSided::is_complete(const Access& access) const {
  if (access.kind != Kind::flush) return access.stage != Stage::begun;
  return std::ranges::none_of(accesses_, [&](const Access& other) {
    return other.stage != Stage::over && std::ranges::find(access.earlier, &other) != access.earlier.end();
  });
}

// Those that are over, whose requests were freed.
void OneSided::forget() {
  for (auto one = accesses_.begin(); one != accesses_.end();) {
    if (!one->freed || one->stage != Stage::over) {
      ++one;
      continue;
    }
    for (Access& other : accesses_) std::erase(other.earlier, &*one);
    one = accesses_.erase(one);
  }
}

void OneSided::carry() {
  for (;;) {
    std::vector<Access*> next;
    for (Access& access : accesses_)
      if (access.kind != Kind::flush && access.stage != Stage::over) next.push_back(&access);
    if (next.empty()) {
      course_.idle();
      continue;
    }
    advance(*next[course_.choose(static_cast<unsigned>(next.size()), true)]);
    forget();
    course_.changed();
    course_.step();
  }
}

}  // namespace waywiser::explorer
