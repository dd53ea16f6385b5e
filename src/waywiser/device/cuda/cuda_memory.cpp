#include "waywiser/device/cuda/cuda_memory.hpp"

#include <algorithm>

#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/cuda/driver.hpp"

namespace waywiser {
namespace {

CUmemAllocationProp properties_on(int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

Bytes round_up(Bytes bytes, const CUmemAllocationProp& properties) {
  std::size_t unit = 0;
  check_driver(driver().mem_granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
               "cuMemGetAllocationGranularity");
  return (std::max<Bytes>(bytes, 1) + unit - 1) / unit * unit;
}

CUdeviceptr address_of(std::byte* data) { return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data)); }

}  // namespace

PlainRange::PlainRange(int ordinal, Bytes bytes) : ordinal_(ordinal) {
  const CurrentDevice current(ordinal_);
  void* data = nullptr;
  check_cuda(cudaMalloc(&data, std::max<Bytes>(bytes, 1)), "cudaMalloc");
  data_ = static_cast<std::byte*>(data);
}

PlainRange::~PlainRange() { cudaFree(data_); }

MappedRange::MappedRange(int ordinal, Bytes bytes, const std::vector<int>& reachers) {
  const CurrentDevice current(ordinal);
  check_cuda(cudaFree(nullptr), "start of the device's context");
  const CUmemAllocationProp properties = properties_on(ordinal);
  length_ = round_up(bytes, properties);
  check_driver(driver().mem_create(&handle_, length_, &properties, 0), "cuMemCreate");
  map(ordinal, reachers);
}

MappedRange::MappedRange(const Descriptor& exported, int ordinal, Bytes bytes, const std::vector<int>& reachers) {
  const CurrentDevice current(ordinal);
  check_cuda(cudaFree(nullptr), "start of the device's context");
  length_ = round_up(bytes, properties_on(ordinal));
  void* number = reinterpret_cast<void*>(static_cast<std::intptr_t>(exported.number()));
  check_driver(driver().mem_import(&handle_, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "cuMemImportFromShareableHandle");
  map(ordinal, reachers);
}

void MappedRange::map(int ordinal, const std::vector<int>& reachers) {
  try {
    CUdeviceptr address = 0;
    check_driver(driver().mem_reserve(&address, length_, 0, 0, 0), "cuMemAddressReserve");
    data_ = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
    check_driver(driver().mem_map(address, length_, 0, handle_, 0), "cuMemMap");
    mapped_ = true;
    std::vector<CUmemAccessDesc> access;
    for (const int reacher : reachers) {
      CUmemAccessDesc one{};
      one.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      one.location.id = reacher;
      one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      access.push_back(one);
    }
    check_driver(driver().mem_set_access(address, length_, access.data(), access.size()),
                 "cuMemSetAccess for GPU " + std::to_string(ordinal));
  } catch (...) {
    release();
    throw;
  }
}

void MappedRange::release() noexcept {
  if (mapped_) driver().mem_unmap(address_of(data_), length_);
  if (data_ != nullptr) driver().mem_address_free(address_of(data_), length_);
  driver().mem_release(handle_);
}

MappedRange::~MappedRange() { release(); }

Descriptor MappedRange::export_descriptor() const {
  int number = -1;
  check_driver(driver().mem_export(&number, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "cuMemExportToShareableHandle");
  return Descriptor(number);
}

OpenedRange::OpenedRange(int ordinal, const cudaIpcMemHandle_t& handle) : ordinal_(ordinal) {
  const CurrentDevice current(ordinal_);
  void* data = nullptr;
  check_cuda(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
  data_ = static_cast<std::byte*>(data);
}

OpenedRange::~OpenedRange() {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(ordinal_);
  cudaIpcCloseMemHandle(data_);
  cudaSetDevice(before);
}

RegisteredRange::RegisteredRange(Memory memory) : memory_(std::move(memory)) {
  data_ = memory_.region().data;
  check_cuda(cudaHostRegister(data_, std::max<Bytes>(memory_.region().bytes, 1),
                              cudaHostRegisterPortable | cudaHostRegisterMapped),
             "cudaHostRegister");
}

RegisteredRange::~RegisteredRange() { cudaHostUnregister(data_); }

Memory own(Place place, Bytes bytes, Allocation allocation, std::shared_ptr<CudaRange> range, Bytes offset) {
  auto block = std::make_unique<CudaMemoryOwner>();
  block->region = {range->data() + offset, bytes, place};
  block->allocation = allocation;
  block->range = std::move(range);
  return Memory(std::move(block));
}

}  // namespace waywiser
