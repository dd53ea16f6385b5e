#include "waywiser/offload/request.hpp"

#include <bit>
#include <utility>

#include "waywiser/offload/array_head_wire.hpp"

namespace waywiser {
namespace {

constexpr std::size_t used_bytes = 2;
constexpr std::string_view request_words = "a request";

std::size_t used_of(std::span<const std::byte> frame) {
  WireReader reader(frame, request_words);
  const auto used = reader.number<std::uint16_t>();
  static_cast<void>(reader.raw(used));
  return used;
}

void write_call(WireWriter& writer, const RemoteRequest& request) {
  writer.text(request.function);
  writer.number(static_cast<std::uint8_t>(request.arguments.size()));
  for (const std::uint64_t array : request.arguments) writer.number(array);
  writer.number(static_cast<std::uint8_t>(request.numbers.size()));
  for (const auto& [name, value] : request.numbers) {
    writer.text(name);
    writer.number(std::bit_cast<std::uint64_t>(value));
  }
}

void read_call(WireReader& reader, RemoteRequest& request) {
  request.function = reader.text(longest_function_name);
  const auto arguments = reader.number<std::uint8_t>();
  for (int i = 0; i < arguments; ++i) request.arguments.push_back(reader.number<std::uint64_t>());
  const auto numbers = reader.number<std::uint8_t>();
  for (int i = 0; i < numbers; ++i) {
    std::string name = reader.text(longest_number_name);
    request.numbers.emplace_back(std::move(name), std::bit_cast<double>(reader.number<std::uint64_t>()));
  }
}

void write_shape(WireWriter& writer, const LaunchShape& shape) {
  for (const auto& lengths : {shape.grid, shape.block})
    for (const std::uint32_t length : lengths) writer.number(length);
  writer.number(shape.shared);
}

LaunchShape read_shape(WireReader& reader) {
  LaunchShape shape;
  for (auto* lengths : {&shape.grid, &shape.block})
    for (std::uint32_t& length : *lengths) length = reader.number<std::uint32_t>();
  shape.shared = reader.number<std::uint32_t>();
  return shape;
}

void write_launch(WireWriter& writer, const RemoteRequest& request) {
  writer.text(request.function);
  write_shape(writer, request.shape);
  writer.number(static_cast<std::uint8_t>(request.kernel_arguments.size()));
  for (const KernelArgument& argument : request.kernel_arguments) {
    writer.number(static_cast<std::uint8_t>(argument.kind));
    writer.number(argument.bits);
  }
}

void read_launch(WireReader& reader, RemoteRequest& request) {
  request.function = reader.text(longest_function_name);
  request.shape = read_shape(reader);
  const auto arguments = reader.number<std::uint8_t>();
  request.kernel_arguments.reserve(arguments);
  for (int i = 0; i < arguments; ++i) {
    const auto kind = reader.number<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(KernelArgument::Kind::float64))
      reader.refuse("argument of kind " + std::to_string(kind));
    request.kernel_arguments.push_back({static_cast<KernelArgument::Kind>(kind), reader.number<std::uint64_t>()});
  }
}

void write_part(WireWriter& writer, const RemoteRequest& request) {
  writer.number(request.offset);
  writer.number(request.bytes);
}

void write_place(WireWriter& writer, const RemoteRequest& request) {
  writer.number(request.memory);
  writer.number(request.at);
}

void read_place(WireReader& reader, RemoteRequest& request) {
  request.memory = reader.number<std::uint64_t>();
  request.at = reader.number<std::uint64_t>();
}

Bytes read_length(WireReader& reader) {
  const auto bytes = reader.number<std::uint64_t>();
  if (bytes > largest_remote_array) reader.refuse("more bytes than any array has");
  return bytes;
}

void read_part(WireReader& reader, RemoteRequest& request) {
  request.offset = reader.number<std::uint64_t>();
  request.bytes = read_length(reader);
}

std::string read_secret(WireReader& reader) {
  std::string secret = reader.text(digits_of_road);
  if (secret.size() != digits_of_road || secret.find_first_not_of("0123456789abcdef") != std::string::npos)
    reader.refuse("a secret that is not 64 hexadecimal digits");
  return secret;
}

DataRoad read_road(WireReader& reader) {
  const auto road = reader.number<std::uint8_t>();
  if (road >= data_roads.size()) reader.refuse("an unknown road, " + std::to_string(road));
  return static_cast<DataRoad>(road);
}

}  // namespace

std::vector<std::byte> bytes_of_request(const RemoteRequest& request) {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(request.kind));
  writer.number(request.array);
  switch (request.kind) {
    case RequestKind::zeros:
    case RequestKind::array: write(writer, request.head); break;
    case RequestKind::put: write_part(writer, request); break;
    case RequestKind::pin:
      writer.number(request.bytes);
      writer.number(request.at);
      writer.text(request.secret);
      break;
    case RequestKind::array_from:
    case RequestKind::get_into:
      write(writer, request.head);
      write_place(writer, request);
      break;
    case RequestKind::put_from:
    case RequestKind::begin_put:
    case RequestKind::get_part:
    case RequestKind::copy:
      write_part(writer, request);
      write_place(writer, request);
      break;
    case RequestKind::fill:
      write_part(writer, request);
      writer.number(request.at);
      writer.number(request.earlier);
      break;
    case RequestKind::start:
      write_shape(writer, request.shape);
      writer.text(request.parameters);
      break;
    case RequestKind::ask:
      write_call(writer, request);
      writer.number(request.bytes);
      break;
    case RequestKind::run: write_call(writer, request); break;
    case RequestKind::code: writer.number(request.bytes); break;
    case RequestKind::launch: write_launch(writer, request); break;
    case RequestKind::give:
      writer.text(request.secret);
      writer.number(static_cast<std::uint8_t>(request.plain));
      break;
    case RequestKind::plain: writer.text(request.secret); break;
    case RequestKind::take:
      writer.text(request.secret);
      writer.text(request.address);
      writer.number(static_cast<std::uint8_t>(request.plain));
      break;
    case RequestKind::road: writer.number(static_cast<std::uint8_t>(request.road)); break;
    case RequestKind::since: writer.number(request.earlier); break;
    default: break;
  }
  return std::move(writer).bytes();
}

RequestReader::RequestReader(std::span<const std::byte> frame)
    : left_(used_of(frame)), reader_(frame.subspan(used_bytes, left_), request_words) {}

std::optional<RemoteRequest> RequestReader::next() {
  if (left_ == 0) return {};
  RemoteRequest request;
  const auto kind = reader_.number<std::uint8_t>();
  if (kind == 0 || kind > last_request_kind) reader_.refuse("an unknown kind, " + std::to_string(kind));
  request.kind = static_cast<RequestKind>(kind);
  request.array = reader_.number<std::uint64_t>();
  switch (request.kind) {
    case RequestKind::zeros:
    case RequestKind::array: request.head = read_array_head(reader_); break;
    case RequestKind::put: read_part(reader_, request); break;
    case RequestKind::pin:
      request.bytes = read_length(reader_);
      request.at = reader_.number<std::uint64_t>();
      request.secret = read_secret(reader_);
      break;
    case RequestKind::array_from:
    case RequestKind::get_into:
      request.head = read_array_head(reader_);
      read_place(reader_, request);
      break;
    case RequestKind::put_from:
    case RequestKind::begin_put:
    case RequestKind::get_part:
    case RequestKind::copy:
      read_part(reader_, request);
      read_place(reader_, request);
      break;
    case RequestKind::fill:
      read_part(reader_, request);
      request.at = reader_.number<std::uint64_t>();
      request.earlier = reader_.number<std::uint64_t>();
      break;
    case RequestKind::start:
      request.shape = read_shape(reader_);
      request.parameters = reader_.text(most_parameter_bytes);
      break;
    case RequestKind::ask:
      read_call(reader_, request);
      request.bytes = reader_.number<std::uint64_t>();
      if (request.bytes > longest_kernel_name) reader_.refuse("a name of " + std::to_string(request.bytes) + " bytes");
      break;
    case RequestKind::run: read_call(reader_, request); break;
    case RequestKind::code:
      request.bytes = reader_.number<std::uint64_t>();
      if (request.bytes > longest_code) reader_.refuse("a code of " + std::to_string(request.bytes) + " bytes");
      break;
    case RequestKind::launch: read_launch(reader_, request); break;
    case RequestKind::give:
      request.secret = read_secret(reader_);
      request.plain = reader_.number<std::uint8_t>() != 0;
      break;
    case RequestKind::plain: request.secret = read_secret(reader_); break;
    case RequestKind::take:
      request.secret = read_secret(reader_);
      request.address = reader_.text(longest_address);
      request.plain = reader_.number<std::uint8_t>() != 0;
      break;
    case RequestKind::road: request.road = read_road(reader_); break;
    case RequestKind::since: request.earlier = reader_.number<std::uint64_t>(); break;
    default: break;
  }
  left_ = reader_.left();
  return request;
}

}  // namespace waywiser
