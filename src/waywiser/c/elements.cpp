#include <string>
#include <utility>

#include "waywiser/base/loaded_library.hpp"
#include "waywiser/c/handles.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

// Without the driver in this process nobody has allocated memory on a GPU, and the driver is not loaded to ask it.
bool driver_is_loaded() {
  static LoadedLibrary driver("libcuda.so.1");
  return driver.is_loaded();
}

ConstRegion region_of(const ww_group& group, const void* data, std::size_t count, DataType type) {
  if (count == 0) return {};
  if (data == nullptr)
    throw Error(ErrorKind::invalid_input, "an array of " + std::to_string(count) + " elements is NULL");
  const std::size_t bytes = count * bytes_of(type);
  if (bytes / bytes_of(type) != count)
    throw Error(ErrorKind::invalid_input, std::to_string(count) + " elements are more than there can be");
  return {static_cast<const std::byte*>(data), bytes, group.memory->place_of(group.group, data)};
}

}  // namespace

Place CMemory::place_of(const Group& group, const void* address) const {
  if (!opened_) {
    if (!driver_is_loaded()) return host(0);
    static const bool cuda = !why_no_cuda();
    if (!cuda) return host(0);
  }
  return group.platform()->gpu_of(static_cast<const std::byte*>(address)).value_or(host(0));
}

void* CMemory::add(Memory memory) {
  void* address = memory.region().data;
  const std::lock_guard lock(mutex_);
  given_.emplace(address, std::move(memory));
  return address;
}

void CMemory::free(void* address) {
  const std::lock_guard lock(mutex_);
  if (given_.erase(address) == 0)
    throw Error(ErrorKind::invalid_input, "this memory is not from ww_gpu_allocate, or it has been freed");
}

DataType data_type(ww_type type) {
  if (ww_type_size(type) == 0)
    throw Error(ErrorKind::invalid_input, "there is no type " + std::to_string(static_cast<int>(type)));
  return static_cast<DataType>(type);
}

ReduceOp reduce_op(ww_op op) {
  if (op < WW_SUM || op > WW_LXOR)
    throw Error(ErrorKind::invalid_input, "there is no operation " + std::to_string(static_cast<int>(op)));
  return static_cast<ReduceOp>(op);
}

ConstElements elements(const ww_group& group, const void* data, std::size_t count, ww_type type) {
  return {region_of(group, data, count, data_type(type)), data_type(type)};
}

Elements elements(const ww_group& group, void* data, std::size_t count, ww_type type) {
  const ConstRegion where = region_of(group, data, count, data_type(type));
  return {Region{const_cast<std::byte*>(where.data), where.bytes, where.place}, data_type(type)};
}

std::vector<Exchange> exchanges(const ww_group& group, const ww_exchange* neighbors, std::size_t count) {
  if (count != 0) given(neighbors, "the array of neighbours");
  std::vector<Exchange> all;
  for (const ww_exchange* one = neighbors; one != neighbors + count; ++one)
    all.push_back({one->rank, elements(group, one->give, one->give_count, one->give_type),
                   elements(group, one->take, one->take_count, one->take_type), one->give_tag, one->take_tag});
  return all;
}

}  // namespace waywiser

static_assert(static_cast<int>(waywiser::DataType::float64) == WW_FLOAT64);
static_assert(static_cast<int>(waywiser::DataType::float32) == WW_FLOAT32);
static_assert(static_cast<int>(waywiser::DataType::float16) == WW_FLOAT16);
static_assert(static_cast<int>(waywiser::DataType::bfloat16) == WW_BFLOAT16);
static_assert(static_cast<int>(waywiser::DataType::int8) == WW_INT8);
static_assert(static_cast<int>(waywiser::DataType::int16) == WW_INT16);
static_assert(static_cast<int>(waywiser::DataType::int32) == WW_INT32);
static_assert(static_cast<int>(waywiser::DataType::int64) == WW_INT64);
static_assert(static_cast<int>(waywiser::DataType::uint8) == WW_UINT8);
static_assert(static_cast<int>(waywiser::DataType::uint16) == WW_UINT16);
static_assert(static_cast<int>(waywiser::DataType::uint32) == WW_UINT32);
static_assert(static_cast<int>(waywiser::DataType::uint64) == WW_UINT64);
static_assert(static_cast<int>(waywiser::DataType::complex64) == WW_COMPLEX64);
static_assert(static_cast<int>(waywiser::DataType::complex128) == WW_COMPLEX128);
static_assert(static_cast<int>(waywiser::DataType::float8_e4m3fn) == WW_FLOAT8_E4M3FN);
static_assert(static_cast<int>(waywiser::DataType::float8_e5m2) == WW_FLOAT8_E5M2);
static_assert(WW_FLOAT8_E5M2 + 1 == waywiser::data_types);
static_assert(static_cast<int>(waywiser::ReduceOp::sum) == WW_SUM);
static_assert(static_cast<int>(waywiser::ReduceOp::prod) == WW_PROD);
static_assert(static_cast<int>(waywiser::ReduceOp::min) == WW_MIN);
static_assert(static_cast<int>(waywiser::ReduceOp::max) == WW_MAX);
static_assert(static_cast<int>(waywiser::ReduceOp::avg) == WW_AVG);
static_assert(static_cast<int>(waywiser::ReduceOp::band) == WW_BAND);
static_assert(static_cast<int>(waywiser::ReduceOp::bor) == WW_BOR);
static_assert(static_cast<int>(waywiser::ReduceOp::bxor) == WW_BXOR);
static_assert(static_cast<int>(waywiser::ReduceOp::land) == WW_LAND);
static_assert(static_cast<int>(waywiser::ReduceOp::lor) == WW_LOR);
static_assert(static_cast<int>(waywiser::ReduceOp::lxor) == WW_LXOR && WW_LXOR + 1 == waywiser::reduce_ops);
