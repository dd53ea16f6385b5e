#include "tests/explorer/one_sided.hpp"

#include <algorithm>
#include <cstring>

namespace waywiser::explorer {
namespace {

OneSided* served = nullptr;

// A handle is a number, never 0, that nobody follows.
template <typename Handle>
Handle handle(std::uint32_t number) {
  return reinterpret_cast<Handle>(std::uintptr_t{number} + 1);
}
template <typename Handle>
std::uint32_t number(Handle handle) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) - 1);
}

std::byte* bytes_at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

OneSided::OneSided(Course& course, std::uint32_t ranks) : course_(course), ranks_(ranks) { served = this; }

OneSided::~OneSided() { served = nullptr; }

ucp_ep_h OneSided::endpoint(std::uint32_t rank, std::uint32_t peer) { return handle<ucp_ep_h>(rank * ranks_ + peer); }

ucp_worker_h OneSided::worker(std::uint32_t rank) { return handle<ucp_worker_h>(rank); }

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

UcxFunctions functions_of_one_sided() {
  using Each = OneSided::Access;
  using Kind = OneSided::Kind;
  UcxFunctions table;
  table.mem_map = [](ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h* memory) {
    *memory = handle<ucp_mem_h>(0);
    return UCS_OK;
  };
  table.mem_unmap = [](ucp_context_h, ucp_mem_h) { return UCS_OK; };
  table.rkey_pack = [](ucp_context_h, ucp_mem_h, void** key, std::size_t* bytes) {
    *key = new std::byte[8]();
    *bytes = 8;
    return UCS_OK;
  };
  table.rkey_buffer_release = [](void* key) { delete[] static_cast<std::byte*>(key); };
  table.ep_rkey_unpack = [](ucp_ep_h, const void*, ucp_rkey_h* key) {
    *key = handle<ucp_rkey_h>(0);
    return UCS_OK;
  };
  table.rkey_destroy = [](ucp_rkey_h) {};
  table.put_nbx = [](ucp_ep_h endpoint, const void* data, std::size_t bytes, std::uint64_t address, ucp_rkey_h,
                     const ucp_request_param_t*) -> ucs_status_ptr_t {
    auto* mine = static_cast<std::byte*>(const_cast<void*>(data));
    return &served->begin(
        Each{Kind::put, number(endpoint) / served->ranks_, mine, bytes_at(address), std::vector<std::byte>(bytes)});
  };
  table.get_nbx = [](ucp_ep_h endpoint, void* data, std::size_t bytes, std::uint64_t address, ucp_rkey_h,
                     const ucp_request_param_t*) -> ucs_status_ptr_t {
    return &served->begin(Each{Kind::get, number(endpoint) / served->ranks_, static_cast<std::byte*>(data),
                               bytes_at(address), std::vector<std::byte>(bytes)});
  };
  table.worker_flush_nbx = [](ucp_worker_h worker, const ucp_request_param_t*) -> ucs_status_ptr_t {
    return &served->begin(Each{Kind::flush, number(worker), nullptr, nullptr, {}});
  };
  table.request_check_status = [](void* request) {
    return served->is_complete(*static_cast<Each*>(request)) ? UCS_OK : UCS_INPROGRESS;
  };
  table.request_free = [](void* request) {
    auto& access = *static_cast<Each*>(request);
    access.freed = true;
    if (access.kind == Kind::flush) access.stage = OneSided::Stage::over;
    served->forget();
    served->course_.changed();
  };
  return table;
}

}  // namespace waywiser::explorer
