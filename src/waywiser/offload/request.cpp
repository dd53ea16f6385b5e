#include "waywiser/offload/request.hpp"

#include <bit>
#include <concepts>
#include <utility>

#include "waywiser/offload/array_head_wire.hpp"

namespace waywiser {
namespace {

constexpr std::size_t used_bytes = 2;
constexpr std::size_t argument_kinds = static_cast<std::size_t>(KernelArgument::Kind::float64) + 1;
constexpr std::string_view request_words = "a request";

std::size_t used_of(std::span<const std::byte> frame) {
  WireReader reader(frame, request_words);
  const auto used = reader.number<std::uint16_t>();
  static_cast<void>(reader.raw(used));
  return used;
}

// Writes the fields of a request, as they are.
class FieldWriter {
 public:
  explicit FieldWriter(WireWriter& writer) : writer_(writer) {}

  void number(std::uint64_t value) { writer_.number(value); }
  void real(double value) { writer_.number(std::bit_cast<std::uint64_t>(value)); }
  void length(Bytes bytes, Bytes, std::string_view) { writer_.number(bytes); }
  void text(std::string_view text, std::size_t) { writer_.text(text); }
  void secret(std::string_view secret) { writer_.text(secret); }
  void flag(bool is_set) { byte(is_set); }
  void one_of(auto value, std::size_t, std::string_view) { byte(value); }
  void head(const ArrayHead& head) { write(writer_, head); }
  void shape(const LaunchShape& shape) {
    for (const auto& lengths : {shape.grid, shape.block})
      for (const std::uint32_t length : lengths) writer_.number(length);
    writer_.number(shape.shared);
  }
  void list(const auto& items, auto write_item) {
    byte(items.size());
    for (const auto& item : items) write_item(item);
  }

 private:
  void byte(auto value) { writer_.number(static_cast<std::uint8_t>(value)); }
  WireWriter& writer_;
};

// Reads the same fields, and refuses what is out of bounds.
class FieldReader {
 public:
  explicit FieldReader(WireReader& reader) : reader_(reader) {}

  void number(std::uint64_t& value) { value = reader_.number<std::uint64_t>(); }
  void real(double& value) { value = std::bit_cast<double>(reader_.number<std::uint64_t>()); }
  void length(Bytes& bytes, Bytes most, std::string_view what) {
    number(bytes);
    if (bytes > most) reader_.refuse(std::string(what) + " of " + std::to_string(bytes) + " bytes");
  }
  void text(std::string& text, std::size_t most) { text = reader_.text(most); }
  void secret(std::string& secret) {
    text(secret, digits_of_secret);
    if (secret.size() != digits_of_secret || secret.find_first_not_of("0123456789abcdef") != std::string::npos)
      reader_.refuse("a secret that is not 64 hexadecimal digits");
  }
  void flag(bool& is_set) { is_set = byte() != 0; }
  void one_of(auto& value, std::size_t many, std::string_view what) {
    const std::uint8_t told = byte();
    if (told >= many) reader_.refuse(std::string(what) + ", " + std::to_string(told));
    value = static_cast<std::remove_reference_t<decltype(value)>>(told);
  }
  void head(ArrayHead& head) { head = read_array_head(reader_); }
  void shape(LaunchShape& shape) {
    for (auto* lengths : {&shape.grid, &shape.block})
      for (std::uint32_t& length : *lengths) length = reader_.number<std::uint32_t>();
    shape.shared = reader_.number<std::uint32_t>();
  }
  void list(auto& items, auto read_item) {
    items.resize(byte());
    for (auto& item : items) read_item(item);
  }

 private:
  std::uint8_t byte() { return reader_.number<std::uint8_t>(); }
  WireReader& reader_;
};

// A request to write, which is const, or to read.
template <typename Given, typename Request>
concept Some = std::derived_from<std::remove_const_t<Given>, Request>;

// What travels of each request, in this order.
void fields(auto&, Some<requests::Synchronize> auto&) {}
void fields(auto&, Some<requests::End> auto&) {}
void fields(auto& wire, Some<requests::Numbered> auto& asked) { wire.number(asked.number); }
void fields(auto& wire, Some<requests::WithHead> auto& made) {
  wire.number(made.array);
  wire.head(made.head);
}
void fields(auto& wire, Some<requests::PartOfArray> auto& part) {
  wire.number(part.array);
  wire.number(part.offset);
  wire.length(part.bytes, largest_remote_array, "a part");
}
void fields(auto& wire, Some<requests::PinnedPlace> auto& place) {
  wire.number(place.memory);
  wire.number(place.offset);
}
void fields(auto& wire, Some<requests::PartAndPlace> auto& asked) {
  fields(wire, asked.part);
  fields(wire, asked.place);
}
void fields(auto& wire, Some<requests::HeadAndPlace> auto& asked) {
  wire.number(asked.array);
  wire.head(asked.head);
  fields(wire, asked.place);
}
void fields(auto& wire, Some<requests::Since> auto& since) {
  wire.number(since.later);
  wire.number(since.earlier);
}
void fields(auto& wire, Some<requests::Run> auto& run) {
  wire.number(run.result);
  wire.text(run.function, longest_function_name);
  wire.list(run.arrays, [&](auto& array) { wire.number(array); });
  wire.list(run.numbers, [&](auto& number) {
    wire.text(number.first, longest_number_name);
    wire.real(number.second);
  });
}
void fields(auto& wire, Some<requests::LoadCode> auto& load) {
  wire.number(load.code);
  wire.length(load.bytes, longest_code, "a code");
}
void fields(auto& wire, Some<requests::LaunchKernel> auto& launch) {
  wire.number(launch.code);
  wire.text(launch.kernel, longest_function_name);
  wire.shape(launch.shape);
  wire.list(launch.arguments, [&](auto& argument) {
    wire.one_of(argument.kind, argument_kinds, "an argument of an unknown kind");
    wire.number(argument.bits);
  });
}
void fields(auto& wire, Some<requests::Give> auto& give) {
  wire.number(give.array);
  wire.secret(give.secret);
  wire.flag(give.plain);
}
void fields(auto& wire, Some<requests::Take> auto& take) {
  wire.number(take.array);
  wire.secret(take.secret);
  wire.text(take.address, longest_address);
  wire.flag(take.plain);
}
void fields(auto& wire, Some<requests::UseRoad> auto& use) {
  wire.one_of(use.road, data_roads.size(), "an unknown road");
}
void fields(auto& wire, Some<requests::OpenPlain> auto& open) { wire.secret(open.secret); }
void fields(auto& wire, Some<requests::Pin> auto& pin) {
  wire.number(pin.memory);
  wire.length(pin.bytes, largest_remote_array, "memory");
  wire.number(pin.file);
  wire.secret(pin.secret);
}
void fields(auto& wire, Some<requests::CopyBytes> auto& copy) {
  fields(wire, copy.to);
  wire.number(copy.from);
  wire.number(copy.from_offset);
}
void fields(auto& wire, Some<requests::Fill> auto& fill) {
  fields(wire, fill.part);
  wire.number(fill.value);
  wire.number(fill.unit);
}
void fields(auto& wire, Some<requests::StartKernel> auto& start) {
  wire.number(start.kernel);
  wire.shape(start.shape);
  wire.text(start.parameters, most_parameter_bytes);
}
void fields(auto& wire, Some<requests::Ask> auto& ask) {
  wire.text(ask.question, longest_function_name);
  wire.number(ask.number);
  wire.list(ask.arguments, [&](auto& argument) { wire.number(argument); });
  wire.length(ask.name_bytes, longest_kernel_name, "a name");
}

// The request of this place in the variant.
template <std::size_t... places>
RemoteRequest request_at(std::size_t wanted, std::index_sequence<places...>) {
  RemoteRequest request;
  static_cast<void>(((places == wanted && (request.emplace<places>(), true)) || ...));
  return request;
}

}  // namespace

std::vector<std::byte> bytes_of_request(const RemoteRequest& request) {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(request.index()));
  FieldWriter wire(writer);
  std::visit([&](const auto& asked) { fields(wire, asked); }, request);
  return std::move(writer).bytes();
}

RequestReader::RequestReader(std::span<const std::byte> frame)
    : left_(used_of(frame)), reader_(frame.subspan(used_bytes, left_), request_words) {}

std::optional<RemoteRequest> RequestReader::next() {
  if (left_ == 0) return {};
  constexpr std::size_t kinds = std::variant_size_v<RemoteRequest>;
  FieldReader wire(reader_);
  std::size_t kind = 0;
  wire.one_of(kind, kinds, "an unknown kind");
  RemoteRequest request = request_at(kind, std::make_index_sequence<kinds>{});
  std::visit([&](auto& asked) { fields(wire, asked); }, request);
  left_ = reader_.left();
  return request;
}

}  // namespace waywiser
