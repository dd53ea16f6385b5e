#include "copy_order.hpp"

#include <cstring>
#include <type_traits>

namespace waywiser_nixl {
namespace {

struct Head {
  Key key;
  std::uint64_t number;
  std::uint32_t operation, gpu_memories, host_memories, gpu_ranges, host_ranges, unused;
};

template <typename T>
void put(std::string& text, const T* first, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (count != 0) text.append(reinterpret_cast<const char*>(first), count * sizeof(T));
}

template <typename T>
bool take(std::string_view& text, T* first, std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  if (text.size() < bytes) return false;
  if (bytes != 0) std::memcpy(static_cast<void*>(first), text.data(), bytes);
  text.remove_prefix(bytes);
  return true;
}

template <typename T>
bool take(std::string_view& text, std::vector<T>& all, std::uint32_t count) {
  if (count > text.size() / sizeof(T)) return false;
  all.resize(count);
  return take(text, all.data(), count);
}

std::uint32_t count_of(const auto& all) { return static_cast<std::uint32_t>(all.size()); }

}  // namespace

std::string text_of(const CopyOrder& order) {
  const Head head{order.key,
                  order.number,
                  static_cast<std::uint32_t>(order.operation),
                  count_of(order.gpu_memories),
                  count_of(order.host_memories),
                  count_of(order.gpu_ranges),
                  count_of(order.host_ranges),
                  0};
  std::string text;
  put(text, &head, 1);
  const auto put_all = [&text](const auto& all) { put(text, all.data(), all.size()); };
  put_all(order.gpu_memories);
  put_all(order.host_memories);
  put_all(order.gpu_ranges);
  put_all(order.host_ranges);
  return text;
}

std::optional<CopyOrder> order_from(std::string_view text) {
  Head head{};
  CopyOrder order;
  const bool whole = take(text, &head, 1) && take(text, order.gpu_memories, head.gpu_memories) &&
                     take(text, order.host_memories, head.host_memories) &&
                     take(text, order.gpu_ranges, head.gpu_ranges) && take(text, order.host_ranges, head.host_ranges);
  if (!whole || !text.empty() || head.operation > 1) return {};
  order.key = head.key;
  order.number = head.number;
  order.operation = static_cast<Operation>(head.operation);
  return order;
}

}  // namespace waywiser_nixl
