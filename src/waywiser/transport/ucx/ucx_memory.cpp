#include "waywiser/transport/ucx/ucx_memory.hpp"

namespace waywiser {

UcxMemory::UcxMemory(const UcxWorker& worker, Region memory) : context_(worker.context()) {
  ucp_mem_map_params_t parameters{};
  parameters.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  parameters.address = memory.data;
  parameters.length = memory.bytes;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  check_ucx(ucx_library().functions().mem_map(context_, &parameters, &handle_), "expose memory");
}

UcxMemory::~UcxMemory() { ucx_library().functions().mem_unmap(context_, handle_); }

std::vector<std::byte> UcxMemory::key() const {
  const UcxFunctions& ucx = ucx_library().functions();
  void* packed = nullptr;
  std::size_t length = 0;
  check_ucx(ucx.rkey_pack(context_, handle_, &packed, &length), "pack the key of memory");
  const auto* first = static_cast<const std::byte*>(packed);
  std::vector<std::byte> bytes(first, first + length);
  ucx.rkey_buffer_release(packed);
  return bytes;
}

UcxRemoteMemory::~UcxRemoteMemory() {
  if (key_ != nullptr) ucx_library().functions().rkey_destroy(key_);
}

UcxStatus UcxRemoteMemory::open(const UcxEndpoint& endpoint, const std::vector<std::byte>& key) {
  return ucx_library().functions().ep_rkey_unpack(endpoint.get(), key.data(), &key_);
}

UcxRequest UcxRemoteMemory::put(const UcxEndpoint& endpoint, ConstRegion source, std::uint64_t address) const {
  const ucp_request_param_t parameters{};
  return ucx_library().functions().put_nbx(endpoint.get(), source.data, source.bytes, address, key_, &parameters);
}

UcxRequest UcxRemoteMemory::get(const UcxEndpoint& endpoint, Region destination, std::uint64_t address) const {
  const ucp_request_param_t parameters{};
  return ucx_library().functions().get_nbx(endpoint.get(), destination.data, destination.bytes, address, key_,
                                           &parameters);
}

}  // namespace waywiser
