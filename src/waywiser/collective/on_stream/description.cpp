#include "waywiser/collective/on_stream/description.hpp"

#include "waywiser/kernels/block/tag.hpp"

namespace waywiser::on_stream {
namespace {

constexpr unsigned type_at = 4, op_at = 8, root_at = 11, count_at = 16, cut_at = 59;
constexpr std::uint64_t most_count = (std::uint64_t{1} << (cut_at - count_at)) - 1;
constexpr std::uint64_t large_count = std::uint64_t{1} << 26, unknown_count = ~std::uint64_t{0} >> count_at;

bool reduces(std::uint32_t operation) {
  return operation == static_cast<std::uint32_t>(Collective::all_reduce) ||
         operation == static_cast<std::uint32_t>(Collective::reduce) ||
         operation == static_cast<std::uint32_t>(Collective::reduce_scatter);
}
bool has_root(std::uint32_t operation) {
  return operation == static_cast<std::uint32_t>(Collective::reduce) ||
         operation == static_cast<std::uint32_t>(Collective::broadcast);
}

}  // namespace

static_assert(data_types <= 16 && arithmetic_ops <= 8 && collectives <= Description::places);

std::uint64_t Description::word() const {
  return operation | std::uint64_t{static_cast<std::uint8_t>(type)} << type_at |
         std::uint64_t{static_cast<std::uint8_t>(op)} << op_at |
         std::uint64_t{static_cast<std::uint32_t>(root + 1) % 32} << root_at | (count & most_count) << count_at |
         std::uint64_t{cut} << cut_at;
}

Description Description::of(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word % 16),
          static_cast<DataType>(word >> type_at & 15),
          static_cast<ReduceOp>(word >> op_at & 7),
          static_cast<std::int32_t>(word >> root_at & 31) - 1,
          word >> count_at & most_count,
          static_cast<std::uint32_t>(word >> cut_at)};
}

Description describe(const CollectiveCall& call, DataType type, ReduceOp op) {
  const auto operation = static_cast<std::uint32_t>(call.operation);
  if (call.operation == Collective::barrier) return {operation, DataType::uint8, ReduceOp::sum, -1, 0};
  return {operation, type, reduces(operation) ? op : ReduceOp::sum, has_root(operation) ? call.root : -1, call.count};
}

std::uint32_t Description::of_message() const {
  const std::uint64_t low = count < large_count ? count : block::signature_of(count) >> 32 & (large_count - 1);
  return static_cast<std::uint32_t>(low << 5 | static_cast<std::uint8_t>(type) << 1 |
                                    (count < large_count ? 0u : 1u << 31));
}

Description Description::from_message(std::uint32_t signature) {
  Description description;
  description.type = static_cast<DataType>(signature >> 1 & 15);
  description.count = signature >> 31 != 0 ? unknown_count : signature >> 5 & (large_count - 1);
  return description;
}

std::string text(const Description& description, std::uint64_t number) {
  const std::string count =
      description.count == unknown_count ? "another number of" : std::to_string(description.count);
  std::string elements = count + " " + std::string(name(description.type));
  if (description.operation == Description::message) return elements;
  const auto operation = static_cast<Collective>(description.operation % static_cast<unsigned>(collectives));
  std::string text = std::string(name(operation)) + " #" + std::to_string(number);
  if (operation != Collective::barrier) text += " of " + elements;
  if (reduces(description.operation)) text += ", " + std::string(name(description.op));
  if (description.root >= 0) text += ", root " + std::to_string(description.root);
  return text;
}

}  // namespace waywiser::on_stream
